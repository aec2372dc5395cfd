"""
Name the columns of the answer
==============================

Frames go in, frames come out: of the same library, with the same index.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV

import pimeter as pm

X, y = load_diabetes(return_X_y=True, as_frame=True)
X.index = y.index = [f"patient {i}" for i in range(442)]
model = pm.IntervalRegressor(RidgeCV(), confidence_level=0.9, random_state=0)
model.fit(X[:400], y[:400])
answer = model.predict_interval(X[400:], as_frame=True)
print(answer.head().round(1))

# %%

answer = answer.join(y).sort_values("prediction")
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.fill_between(range(42), answer["lower"], answer["upper"], alpha=0.25)
ax.plot(range(42), answer["prediction"], label="prediction")
ax.plot(range(42), answer["target"], ".", color="#222222", label="target")
ax.set(xlabel="new rows, by their predictions", ylabel="progression")
ax.legend(frameon=False)
plt.show()
