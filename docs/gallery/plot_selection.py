"""
Choosing kernel and width by rows left out
==========================================

The median heuristic takes sigma from the distances between rows. Where these are distances between far groups, what
happens inside a group is lost. ``kpca_select`` tries widths on rows that the components were not made of.
"""

# %%
# Two sites, a hundred units apart. At each, healthy samples lie on an inner ring and ill ones on an outer ring.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fastkpca as fk
from fastkpca import plot


def draw(n, rng):
    ill, site = rng.integers(2, size=(2, n))
    t = rng.uniform(0, 2 * np.pi, n)
    X = (1 + ill)[:, None] * np.column_stack([np.cos(t), np.sin(t)]) + 0.15 * rng.standard_normal((n, 2))
    X[:, 0] += 100 * site
    return X, np.array(["healthy", "ill"])[ill]


rng = np.random.default_rng(0)
(X, label), (X_new, label_new) = draw(500, rng), draw(2000, rng)
median = fk.kpca(X, "gaussian", 2).kernel.sigma

# scores are scaled first, since their spread depends on sigma
classifier = make_pipeline(StandardScaler(), LogisticRegression())
widths = {"gaussian": {"sigma": median * 2.0 ** np.arange(-8, 2)}}
choice = fk.kpca_select(X, widths, c=[5, 10, 20], y=label, classifier=classifier)
print(choice)

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
plot.selection(choice, ax)
ax.axvline(median, color="0.6", linewidth=0.8)
ax.annotate("median heuristic", (median, 0.98), (-4, 0), textcoords="offset points", rotation=90, ha="right", va="top",
            color="0.4", xycoords=("data", "axes fraction"))  # fmt: skip
plt.show()

# %%
# On new samples the median heuristic is about as good as guessing, and the choice is not. The components show why:
# with the median's sigma they tell the sites apart, and are nearly linear inside each.

fig, axes = plt.subplots(2, 2, figsize=(7, 6.4), layout="constrained")
for row, (name, kernel, c) in zip(
    axes, [("median heuristic", fk.get_kernel("gaussian", sigma=median), 10), ("choice", choice.kernel, choice.c)]
):
    model = fk.kpca(X, kernel, c)
    right = classifier.fit(model.score, label).score(fk.kpca_project(model, X_new), label_new)
    print(f"{name}: sigma = {model.kernel.sigma:.3g}, c = {c}, {100 * right:.1f} % of new samples right")
    for ax, site in zip(row, (0, 100)):
        here = np.abs(X_new[:, 0] - site) < 50
        wrong = here & (classifier.predict(fk.kpca_project(model, X_new)) != label_new)
        for kind, colour in (("healthy", "#3f90da"), ("ill", "#bd1f01")):
            of_kind = here & ~wrong & (label_new == kind)
            ax.plot(*X_new[of_kind].T, ".", color=colour, markersize=2.5, label=kind)
        ax.plot(*X_new[wrong].T, "x", color="black", markersize=4, markeredgewidth=0.8, label="wrong")
        ax.set_aspect("equal")
        ax.set_title(f"{name}, site {1 + site // 100}: {100 * wrong.sum() / here.sum():.0f} % wrong", fontsize="medium")
axes[0, 0].legend(loc="center", frameon=False, fontsize="small", markerscale=2)
plt.show()

# %%
# Without labels no measure knows what the components are for. Each of the others answers a question of its own: how
# well rows come back as pre-images, how much of their feature space the components hold, how much the components of
# two halves have in common. The last two may decide on the number of components of one kernel, never between kernels:
# a large sigma makes the feature space flat, so that they look better and better while the classes disappear.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, measure in zip(axes, ("reconstruction", "stability")):
    plot.selection(choice, ax, measure=measure)
plt.show()

# %%
# When not to believe it: the best of many candidates looks better than it is, so a score for a report needs further
# rows, as above. Rows that belong together (repeats of one sample) must not be in different folds. And where the
# labels are few, the standard errors are wide and the choice falls on the simplest kernel.
