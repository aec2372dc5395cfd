"""
A threshold with a guaranteed precision
=======================================

"Alert only where at least 90 % of the alerts are right." A threshold that was
tuned looks better than it will be; ``RiskController`` chooses one with a
guarantee.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import pimeter as pm

X, y = make_classification(
    4000, n_informative=6, flip_y=0.1, class_sep=0.8, random_state=0
)
model = LogisticRegression().fit(X[:2000], y[:2000])
score = model.predict_proba(X)[:, 1]
held_out, new = slice(2000, 3000), slice(3000, 4000)

control = pm.RiskController("precision", 0.8).fit(y[held_out], score[held_out])
alert = control.predict(score[new]) == 1
print(f"alerts above {control.threshold_:.2f}: {alert.mean():.0%} of rows")
print(f"precision of new alerts: {y[new][alert].mean():.1%}")

# %%

levels = np.linspace(0.5, 0.97, 48)
precision = [y[new][score[new] >= one].mean() for one in levels]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(levels, precision, color="#0072b2")
ax.axhline(0.8, color="#888888", linestyle="--")
ax.axvline(control.threshold_, color="#222222", label="chosen")
ax.set(xlabel="threshold", ylabel="precision of new rows")
ax.legend(frameon=False)
plt.show()
