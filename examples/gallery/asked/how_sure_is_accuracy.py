"""
How sure are accuracy, precision and the others?
================================================

A classifier's metrics come from a limited number of rows. Each has an interval
that means what it says, also for few rows and rates near 0 or 1.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pimeter as pm

X, y = load_breast_cancer(return_X_y=True)
model = make_pipeline(StandardScaler(), LogisticRegression())
score = model.fit(X[:285], y[:285]).predict_proba(X[285:])[:, 1]
metrics = ["accuracy", "precision", "recall", "specificity", "f1", "mcc"]
found = pm.classification_uncertainty(
    y[285:], score, metrics=metrics, random_state=0
)
print(found)

# %%

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for row, name in enumerate(metrics):
    ax.plot([found.lower[name], found.upper[name]], [row, row], color="#0072b2")
    ax.plot(found.value[name], row, "o", color="#0072b2")
ax.set_yticks(range(len(metrics)), metrics)
ax.invert_yaxis()
ax.set(xlabel="with 95 % intervals")
plt.show()
