"""
Do scores mean probabilities?
=============================

If a score of .8 means that 80 % of such rows are positive, points lie on the
diagonal. Bars say how far chance alone takes them from it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

import pimeter as pm

X, y = make_classification(4000, n_informative=4, n_redundant=6, random_state=0)
score = GaussianNB().fit(X[:1000], y[:1000]).predict_proba(X)[:, 1]
pm.plot_reliability(y[1000:2500], score[1000:2500])
plt.show()

# %%
# Scores that were calibrated on other rows:

mapped = pm.calibrated_scores(y[1000:2500], score[1000:2500], score[2500:])
pm.plot_reliability(y[2500:], mapped)
plt.show()
