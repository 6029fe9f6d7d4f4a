"""
Spheres and rings
=================

The two examples of a textbook chapter on kernel principal components: groups that linear components cannot separate,
and a logistic regression on kernel components. Kernels are ``exp(-|x - y|² / c)``, that is sigma = sqrt(c / 2).
"""

# %%
# **Two spheres** of radius 1 and 3 in three dimensions, with noise of 0.3. The first two linear components, and any two
# of the inputs, show one cloud. The first two kernel components show two groups.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

import fastkpca as fk

INNER, OUTER = "#3f90da", "#e76300"


def spheres(n, rng):
    outer = rng.random(n) < 0.5
    phi, theta = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, np.pi, n)
    direction = np.column_stack([np.cos(phi) * np.sin(theta), np.sin(phi) * np.sin(theta), np.cos(theta)])
    return (1 + 2 * outer)[:, None] * direction + 0.3 * rng.standard_normal((n, 3)), outer


def points(ax, Z, outer, title, labels):
    for group, colour, marker, name in ((~outer, INNER, "o", "inner"), (outer, OUTER, "^", "outer")):
        ax.plot(*Z[group].T, marker, color=colour, markersize=3, linestyle="none", label=name)
    ax.set_title(title, fontsize="medium")
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])


X, outer = spheres(300, np.random.default_rng(0))
fig = plt.figure(figsize=(9, 7.6), layout="constrained")
points(fig.add_subplot(2, 2, 1), fk.pca(X, 2).score, outer, "two linear components", ("PC1", "PC2"))
points(fig.add_subplot(2, 2, 2), X[:, :2], outer, "two of the inputs", ("x₁", "x₂"))
ax = fig.add_subplot(2, 2, 3, projection="3d")
points(ax, X, outer, "the observations", ("x₁", "x₂"))
ax.set_zlabel("x₃")
ax.set_box_aspect(None, zoom=0.85)
model = fk.kpca(X, "gaussian", 2, sigma=np.sqrt(0.5))
points(fig.add_subplot(2, 2, 4), model.score, outer, "two kernel components, c = 1", ("kernel PC1", "kernel PC2"))
fig.axes[0].legend(frameon=False)
plt.show()

# %%
# **Two rings** of radius 1 and 2, with noise of 0.5: no line separates them.


def rings(n, rng):
    outer = rng.random(n) < 0.5
    theta = rng.uniform(0, 2 * np.pi, n)
    ring = (1 + outer)[:, None] * np.column_stack([np.cos(theta), np.sin(theta)])
    return ring + 0.5 * rng.standard_normal((n, 2)), outer


X, outer = rings(300, np.random.default_rng(0))
fig, ax = plt.subplots(figsize=(5, 4.6), layout="constrained")
points(ax, X, outer, "", ("x₁", "x₂"))
ax.set_aspect("equal")
ax.legend(frameon=False)
plt.show()

# %%
# Logistic regression on the kernel components that explain 90 % of the variance, trained on 300 points and tested on
# 300 others, for four widths. The chapter shows one random sample; here are the mean and the standard deviation of 20.

CHAPTER = {"linear": ("-", 51.67), 0.1: (77, 76.00), 1: (21, 81.33), 6: (5, 84.33), 10: (5, 84.00)}
ours = {c: [] for c in (*CHAPTER, 0.2)}
for draw in range(20):
    rng = np.random.default_rng(1000 + draw)
    (X, outer), (X_new, outer_new) = rings(300, rng), rings(300, rng)
    for c, found in ours.items():
        model = fk.pca(X, 2) if c == "linear" else fk.kpca(X, "gaussian", 0.9, sigma=np.sqrt(c / 2))
        unit = model.score.std(axis=0)
        # hardly a penalty: at c = 0.1 the training points can be separated, and without one there is no maximum
        regression = LogisticRegression(C=1e3, max_iter=10_000).fit(model.score / unit, outer)
        right = regression.score(fk.kpca_project(model, X_new) / unit, outer_new)
        found.append((model.n_components, 100 * right))

print("c        q: chapter  ours           % right: chapter  ours")
for c in ("linear", 0.1, 0.2, 1, 6, 10):
    (q, right), (sq, sright) = np.mean(ours[c], axis=0), np.std(ours[c], axis=0, ddof=1)
    q_chapter, right_chapter = CHAPTER.get(c, ("-", "-"))
    print(f"{c!s:8s} {q_chapter!s:>10}  {q:5.1f} ± {sq:4.1f}  {right_chapter!s:>16}  {right:5.1f} ± {sright:3.1f}")

# %%
# One row disagrees. The chapter's q = 77 at c = 0.1 is what c = 0.2 gives here, in every draw; at c = 0.1 about half
# as many again are needed. The other rows agree, so that row of the chapter was probably made with another c.

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
widths = sorted(c for c in ours if c != "linear")
for ax, column, name in zip(axes, (0, 1), ("components for 90 % of the variance", "right on new points (%)")):
    values = np.array([[draw[column] for draw in ours[c]] for c in widths])
    ax.errorbar(widths, values.mean(axis=1), values.std(axis=1, ddof=1), fmt="o-", color=INNER, capsize=3, label="ours")
    chapter = {c: row[column] for c, row in CHAPTER.items() if c != "linear"}
    ax.plot(list(chapter), list(chapter.values()), "x", color="black", markersize=8, label="chapter")
    ax.set_xscale("log")
    ax.set_xlabel("c")
    ax.set_ylabel(name)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_yscale("log")
axes[0].legend(frameon=False)
plt.show()

# %%
# When not to believe it: bars are standard deviations over draws of the data, and one draw may lie anywhere in them.
# The table is about one classifier and one number of points, and the best c is that of these rings.
