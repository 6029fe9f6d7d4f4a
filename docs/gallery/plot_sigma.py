"""
Choosing sigma
==============

The width of a Gaussian kernel decides what "similar" means. If it is too small, no row is similar to another;
if it is too large, the components are those of ordinary principal component analysis.
"""

# %%
# Wine, thirteen standardised inputs, from a quarter to eight times the width of the median heuristic.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import fastkpca as fk
from fastkpca import plot

X, kind = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
kind = np.array(["barolo", "grignolino", "barbera"])[kind]
median = fk.kpca(X, "gaussian", 2).kernel.sigma
print(f"median heuristic: sigma = {median:.3g}")

fig, axes = plt.subplots(2, 3, figsize=(9, 5.6), layout="constrained")
for ax, factor in zip(axes.flat, (0.25, 0.5, 1, 2, 4, 8)):
    model = fk.kpca(X, "gaussian", 2, sigma=factor * median)
    plot.scores(model, kind, ax)
    if factor != 1:
        ax.get_legend().remove()
    ax.set_title(f"{factor:g} x median", fontsize="medium")
plt.show()

# %%
# The spectrum says the same. A small sigma spreads the variance over as many components as there are rows (the matrix
# is nearly the identity); a large one needs no more components than there are inputs.

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for factor, style in zip((0.25, 0.5, 1, 2, 4), (":", "-.", "-", "--", "-")):
    model = fk.kpca(X, "gaussian", 60, sigma=factor * median, method="dense")
    ax.plot(np.arange(1, 61), np.cumsum(model.explained), style, label=f"{factor:g} x median")
ax.axvline(13, color="0.7", linewidth=0.8)
ax.annotate("13 inputs", (13, 4), (4, 0), textcoords="offset points", color="0.4")
ax.set_xlabel("components")
ax.set_ylabel("cumulative share of the variance (%)")
ax.set_ylim(0, 101)
ax.legend(frameon=False)
plt.show()

# %%
# If there is a task, it can decide: here the share of rows whose class a nearest-neighbour rule finds from two
# components, leaving one out. The projections of the training rows are used as they are, which is enough for a
# picture; for a number in a report, fit inside each fold.

widths = np.geomspace(0.2, 8, 25)
rates = []
for factor in widths:
    score = fk.kpca(X, "gaussian", 2, sigma=factor * median).score
    distance = ((score[:, None] - score[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    rates.append(100 * np.mean(kind[distance.argmin(axis=1)] == kind))

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.semilogx(widths, rates, "o-", markersize=4)
ax.set_xticks([0.25, 0.5, 1, 2, 4, 8], labels=["0.25", "0.5", "1", "2", "4", "8"])
ax.xaxis.set_minor_formatter("")
ax.axvline(1, color="0.7", linewidth=0.8)
ax.set_xlabel("sigma / median heuristic")
ax.set_ylabel("nearest neighbour right (%)")
plt.show()
