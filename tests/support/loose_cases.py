"""Problems for the sampled bound: what a feature map leaves out, as features b_i of the rows, and bounds of |b_i|^2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastkpca.solve.sampled import ScaledSample, sampled_bound


@dataclass(frozen=True)
class Residual:
    """R = B B', upper bounds r of its diagonal, weights of the rows."""

    B: np.ndarray
    bounds: np.ndarray

    @property
    def total(self):
        return float(self.bounds.sum())

    @property
    def largest(self):
        return float(np.linalg.eigvalsh(self.B.T @ self.B)[-1])


def _made(B, weights=None, slack=None):
    if weights is not None:
        B = np.sqrt(weights)[:, None] * B
    bounds = np.einsum("ij,ij->i", B, B)
    return Residual(B, bounds if slack is None else bounds * slack)


def _size(rng):
    return int(np.exp(rng.uniform(np.log(10), np.log(300))))


def one_row(rng):
    """One row carries much of the residual, or all of it; the others have directions of their own."""
    n = _size(rng)
    B = np.zeros((n, 3))
    B[:, 1 + rng.integers(0, 2)] = rng.uniform(0.1, 1.0)
    share = rng.choice([1.0, rng.uniform(0.0, 0.6)])
    B[0] = [np.sqrt(share / max(1.0 - share, 1e-9) * (B[1:] ** 2).sum()), 0.0, 0.0]
    return _made(B)


def two_clusters(rng):
    """Far apart: within each all rows are equal, so that a draw says yes or no."""
    n = _size(rng)
    first = rng.random(n) < rng.uniform(0.01, 0.99)
    first[0] = True
    return _made(np.column_stack([first * 1.0, ~first * rng.uniform(0.1, 1.0)]))


def many_clusters(rng):
    """One above many small ones: the sample's own largest eigenvalue helps little."""
    n, k = _size(rng) + 40, 40
    share = rng.uniform(0.02, 0.5)
    which = np.where(rng.random(n) < share, 0, rng.integers(1, k, n))
    return _made(np.eye(k)[which])


def duplicates(rng):
    few = rng.standard_normal((int(rng.integers(1, 6)), 4)) * 10.0 ** rng.uniform(-3, 0, 4)
    return _made(few[rng.integers(0, len(few), _size(rng))])


def decaying(rng):
    k = int(rng.integers(1, 8))
    return _made(rng.standard_normal((_size(rng), k)) * np.arange(1, k + 1.0) ** -rng.uniform(0, 3))


def heavy_tails(rng):
    return _made(rng.standard_cauchy((_size(rng), 4)))


def weighted(rng):
    n = _size(rng)
    return _made(rng.standard_normal((n, 3)), weights=10.0 ** rng.uniform(-12, 0, n))


def loose_diagonal(rng):
    n = _size(rng)
    return _made(rng.standard_normal((n, 3)), slack=rng.uniform(1.0, 4.0, n))


FAMILIES = {
    f.__name__: f
    for f in (one_row, two_clusters, many_clusters, duplicates, decaying, heavy_tails, weighted, loose_diagonal)
}


def draws_of(rng, n):
    """s of 1 to n, and sometimes more."""
    return int(np.exp(rng.uniform(0, np.log(2 * n))))


def bound_misses(rng, residual, failure):
    """Draw, bound, compare: whether the bound is below the largest eigenvalue, and the bound over it."""
    n = len(residual.bounds)
    s = draws_of(rng, n)
    index = np.searchsorted(np.cumsum(residual.bounds), rng.random(s) * residual.total, side="right")
    # B'B of the scaled rows has the eigenvalues of their Gram matrix, and is small
    u = residual.B[np.minimum(index, n - 1)] / np.sqrt(residual.bounds[np.minimum(index, n - 1)])[:, None]
    bound = sampled_bound(residual.total, ScaledSample(u.T @ u, s, 0.0), failure)
    largest = residual.largest
    return bound.mu < largest * (1 - 1e-12), bound.mu / largest
