"""
Novelty: rows unlike those a model was made of
==============================================

A row's image in feature space has a part inside the subspace of the components, and a part orthogonal to it. The
squared length of the latter is the *squared prediction error* (SPE, or Q); Hotelling's *T^2* is the squared distance of
the former from the mean, in units of standard deviations. Process monitoring compares both with control limits.
"""

# %%
# In the plane
# ------------
# Rows along a ring: rows inside it are as unlike them as rows outside. Linear PCA cannot detect that.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.svm import OneClassSVM

import fastkpca as fk

rng = np.random.default_rng(0)


def ring(n):
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) * (1 + 0.08 * rng.standard_normal((n, 1)))


X = ring(1000)
model = fk.kpca(X, "gaussian", 12, sigma=0.5)
limits = fk.kpca_limits(model, ring(1000), confidence=0.99)
print(limits)

side = np.linspace(-1.8, 1.8, 151)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
maps = {
    "SPE": (fk.kpca_spe(model, grid), limits.spe),
    r"$T^2$": (fk.kpca_t2(model, grid), limits.t2),
}
fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.7), layout="constrained", sharey=True)
for ax, (name, (values, limit)) in zip(axes, maps.items()):
    values = values.reshape(len(side), len(side))
    drawn = ax.contourf(side, side, values, levels=20, cmap="Blues")
    ax.plot(*X[:300].T, ".", color="0.2", markersize=2)
    ax.contour(side, side, values, levels=[limit], colors="tab:red", linewidths=1.8)
    ax.set(aspect="equal", title=f"{name}, and its 99 % limit")
    fig.colorbar(drawn, ax=ax, shrink=0.9, ticks=MaxNLocator(5))
plt.show()

# %%
# The two measure different things: SPE rises wherever no training row is near; T^2 says how unusual a row is *within*
# the components, and with a kernel that vanishes at a distance it is small again far from all training rows. Read
# SPE first.
#
# False alarms
# ------------
# Limits made of rows that the model has not seen hold for any distribution: of new rows of the same kind 1 % are
# flagged by each.

new = ring(20_000)
t2, spe = fk.kpca_t2(model, new), fk.kpca_spe(model, new)
print(f"flagged by SPE {limits.exceeded(spe=spe).mean():.2%}, by T^2 {limits.exceeded(t2=t2).mean():.2%}")

# %%
# Digits
# ------
# A model of one digit, and all the other digits to find. For comparison, a one-class support vector machine with the
# same kernel.

images, labels = load_digits(return_X_y=True)
images = images / 16
fig, ax = plt.subplots(figsize=(5.2, 4.6), layout="constrained")
for digit, colour in zip((0, 3, 8), ("tab:blue", "tab:orange", "tab:green")):
    own = images[labels == digit]
    known, rest = own[:100], np.vstack([own[100:], images[labels != digit]])
    strange = np.r_[np.zeros(len(own) - 100), np.ones(np.sum(labels != digit))]
    model = fk.kpca(known, "gaussian", 30)
    machine = OneClassSVM(gamma=1 / (2 * model.kernel.sigma**2), nu=0.05).fit(known)
    for name, values, line in (("SPE", fk.kpca_spe(model, rest), "-"), ("SVM", -machine.score_samples(rest), ":")):
        false, true, _ = roc_curve(strange, values)
        ax.plot(false, true, line, color=colour, label=f"{digit}, {name}: area {roc_auc_score(strange, values):.4f}")
ax.set(xlabel="share of the digit itself that is flagged", ylabel="share of the others that is", xlim=(-0.01, 0.4))
ax.set_title("Which images are not that digit?")
ax.legend(frameon=False, loc="lower right")
plt.show()
