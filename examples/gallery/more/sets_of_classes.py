"""
Sets of classes that hold the true one
======================================

``SetClassifier`` answers with one class where it can and with several where it
must, so that 95 % of the sets hold the true class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import pimeter as pm

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(
    len(y)
)  # writers follow each other
X, y = X[order] / 16, y[order]
model = LogisticRegression(max_iter=300, C=0.01).fit(X[:600], y[:600])
sets = pm.SetClassifier(model, confidence_level=0.95)
sets.calibrate(X[600:1200], y[600:1200])
member = sets.predict_set(X[1200:])  # a table of truth values
held = member[np.arange(len(member)), y[1200:]].mean()
print(f"{held:.1%} of the sets hold the true digit")
print(f"{(member.sum(axis=1) == 1).mean():.0%} of them hold nothing else")

# %%
# The digits with the largest sets:

hardest = member.sum(axis=1).argsort()[::-1][:6]
fig, axes = plt.subplots(1, 6, figsize=(8, 1.9), layout="constrained")
for ax, row in zip(axes, hardest, strict=True):
    ax.imshow(X[1200 + row].reshape(8, 8), cmap="gray_r")
    ax.set(xticks=[], yticks=[])
    ax.set_title(", ".join(map(str, np.flatnonzero(member[row]))), fontsize=9)
plt.show()
