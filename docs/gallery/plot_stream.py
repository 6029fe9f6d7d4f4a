"""
A stream with three regimes
===========================

Rows keep coming, and the process moves twice. The model takes each batch without reading an old row again, and adds
features for what it has not seen. Every interval holds the eigenvalue of all rows so far.
"""

# %%
# Forty batches of a process that runs at three set points in turn. ``exact`` is LAPACK's answer for all rows so far.

import warnings

import matplotlib.pyplot as plt
import numpy as np

import fastkpca as fk

rng = np.random.default_rng(0)
points = np.array([[0.0, 0.0], [5.0, 0.0], [3.0, 6.0]])
batches = [points[3 * i // 40] + rng.standard_normal((60, 2)) * [1.0, 0.4] for i in range(40)]


def exact(X, k):
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=-1) / 2)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    return np.linalg.eigvalsh(K)[::-1][:k]


warnings.simplefilter("ignore")  # the model warns that the process has moved
model = fk.kpca(batches[0], "gaussian", 3, sigma=1.0, tol=1e-2, features="pivots", keep_moments=True)
fixed = model
bounds, widths, truth, features = [], [], [], []
for i, batch in enumerate(batches[1:], start=2):
    model = fk.kpca_update(model, batch, tol=1e-2)
    fixed = fk.kpca_update(fixed, batch, tol=1e-2, grow=False)
    bounds.append(model.eigenvalue_bounds)
    widths.append([np.ptp(x.eigenvalue_bounds[0]) / x.eigenvalues[0] for x in (model, fixed)])
    truth.append(exact(np.concatenate(batches[:i]), 3))
    features.append(model.info["n_features"])
bounds, truth = np.array(bounds), np.array(truth)

# %%
# The bands are the intervals of the first three eigenvalues, the lines the exact ones. Below, the width of the first
# interval over the eigenvalue: with features that grow, and with those of the first batch for ever.

fig, (top, bottom) = plt.subplots(2, 1, figsize=(8, 6.5), sharex=True, layout="constrained", height_ratios=[2, 1])
at = np.arange(2, 41)
for j in range(3):
    top.fill_between(at, bounds[:, j, 0], bounds[:, j, 1], alpha=0.4, color=f"C{j}", lw=0)
    top.plot(at, truth[:, j], color=f"C{j}", lw=1.2, label=f"eigenvalue {j + 1}")
top.set_ylabel("eigenvalue")
top.legend(loc="upper left")
for series, label in zip(np.array(widths).T, ("features are added", "features of the first batch")):
    bottom.semilogy(at, series, label=label)
bottom.set_xlabel("batch")
bottom.set_ylabel("width / eigenvalue")
bottom.legend(loc="lower right")
for ax in (top, bottom):
    for change in (14, 27):
        ax.axvline(change + 0.5, color="0.6", lw=0.8, ls=":")
plt.show()
assert ((bounds[..., 0] <= truth) & (truth <= bounds[..., 1])).all()

# %%
# Number of features after each third. They cost memory for their moments, and nothing for old rows.

print("features:", features[0], features[12], features[25], features[-1])
print(model)

# %%
# With ``forget=0.8`` the rows before count less with every batch, and the components become those of the last regime.

follows = fk.kpca(batches[0], "gaussian", 3, sigma=1.0, tol=1e-2, features="pivots", keep_moments=True)
for batch in batches[1:]:
    follows = fk.kpca_update(follows, batch, tol=1e-2, forget=0.8)
fresh = points[2] + rng.standard_normal((2000, 2)) * [1.0, 0.4]
alone = fk.kpca(np.concatenate(batches[28:]), "gaussian", 3, sigma=1.0)
for name, one in (("keeps all rows", model), ("forgets", follows), ("a model of the last regime", alone)):
    scores = fk.kpca_project(one, fresh)
    print(f"{name:28s} variance of new rows along three components: {scores.var(axis=0).sum():.3f}")
