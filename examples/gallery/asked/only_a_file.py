"""
Is my model any good? I only have a file
========================================

Two columns are enough: what happened, and what the model said. On the command
line it is ``pimeter measure file.csv --out report.html``; here the same from
Python.
"""

import io

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import pimeter as pm

rng = np.random.default_rng(0)
said = rng.uniform(10, 20, size=400).round(2)
happened = said + rng.normal(scale=1.5, size=400).round(2)
file = io.StringIO()
pl.DataFrame({"target": happened, "prediction": said}).write_csv(file)

table = pl.read_csv(file.getvalue().encode())
result = pm.measure(table["target"], table["prediction"])
print(result)

# %%
# ``result.to_html("report.html")`` writes the page with the slider;
# ``result.plot()`` draws what it shows:

result.plot()
plt.show()
