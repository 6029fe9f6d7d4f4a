"""
The sharp truncation bound
==========================

The truncated Gaussian expansion of Raykar and Ankur (2003) keeps the terms of degree less than p. The bound on the
other terms decides how large p has to be, and the cost is C(d + p - 1, d) features.
"""

# %%
# With lengths in units of sigma, on a ball of radius R:
#
# - the paper's bound (its section 8): R^(2p) exp(R^2) / p!;
# - ours: P(p, R^2), the regularised lower incomplete gamma function, that is the probability that a Poisson variable of
#   mean R^2 is at least p. It is attained, at x = y on the rim.
#
# The crosses are the largest error over 4000 pairs of points, the terms that are left out summed one by one.

from math import comb, exp, lgamma, log

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import gammainc

PAPER, SHARP = "#e76300", "#3f90da"


def paper(p: int, R: float) -> float:
    return exp(2 * p * log(R) + R**2 - lgamma(p + 1))


def error(x: np.ndarray, y: np.ndarray, p: int) -> np.ndarray:
    """Sum of the terms m >= p, exp(-(|x|^2 + |y|^2)/2) sum_(m >= p) (x.y)^m / m!, summed as it stands."""
    dot = np.abs(np.einsum("ij,ij->i", x, y))
    m = np.arange(p, p + 200)
    logs = np.array([lgamma(k + 1) for k in m])
    weight = -(np.einsum("ij,ij->i", x, x) + np.einsum("ij,ij->i", y, y)) / 2
    with np.errstate(divide="ignore"):
        return np.exp(weight[:, None] + m * np.log(dot)[:, None] - logs).sum(axis=1)


rng = np.random.default_rng(0)
fig, axes = plt.subplots(1, 3, figsize=(9, 3.8), layout="constrained", sharey=True)
for ax, R in zip(axes, (0.5, 1.0, 2.0)):
    orders = np.arange(1, 26)
    # pairs in the ball of radius R, and each point of the rim with itself
    x, y = (v / np.linalg.norm(v, axis=1)[:, None] * R for v in rng.standard_normal((2, 2000, 3)))
    x *= rng.random((2000, 1)) ** (1 / 3)
    x, y = np.vstack([x, y]), np.vstack([y, y])
    measured = [error(x, y, p).max() for p in orders]
    ax.semilogy(orders, [paper(p, R) for p in orders], color=PAPER, label="the paper's bound")
    ax.semilogy(orders, gammainc(orders, R**2), color=SHARP, label="P(p, R²)")
    ax.semilogy(orders, measured, "x", color="black", markersize=4, label="measured")
    assert (measured <= gammainc(orders, R**2) * (1 + 1e-9)).all()
    ax.set_title(f"radius {R:g} sigma", fontsize="medium")
    ax.set_xlabel("order p")
    ax.set_ylim(1e-16, 1e3)
    ax.grid(color="0.92", linewidth=0.6)
axes[0].set_ylabel("largest error of a kernel value")
axes[0].legend(frameon=False)
plt.show()

# %%
# At radius 2 the paper's bound is more than a thousand times too large:

for p in (5, 10, 15, 20):
    sharp = gammainc(p, 4.0)
    print(f"p = {p:2}: P(p, 4) = {sharp:.2e}, the paper's bound is {paper(p, 2.0) / sharp:.0f} times that")

# %%
# Consequence for the number of features. For each radius the smallest p that each bound allows at an error of 1e-6,
# and what it costs in four dimensions:


def order(bound, R: float, tol: float = 1e-6) -> int:
    return next(p for p in range(1, 2000) if bound(p, R) <= tol)


radii = np.linspace(0.3, 4, 75)
sharp = [comb(4 + order(lambda p, R: gammainc(p, R**2), R) - 1, 4) for R in radii]
old = [comb(4 + order(paper, R) - 1, 4) for R in radii]
fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.semilogy(radii, old, color=PAPER, label="by the paper's bound")
ax.semilogy(radii, sharp, color=SHARP, label="by P(p, R²)")
ax.set_xlabel("radius of the data / sigma")
ax.set_ylabel("features for an error of 1e-6 (d = 4)")
ax.grid(color="0.92", linewidth=0.6)
ax.legend(frameon=False)
plt.show()

# %%
# For eigenvalues the trace of the error counts, sum_i P(p, \|x_i\|^2), which follows the data instead of the worst
# corner and needs fewer features still; see :doc:`/theory`.
