"""Problems for the sampled bound: what a feature map leaves out, as features b_i of the rows, and bounds of |b_i|^2.

And calls of kpca that use it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

import fastkpca as fk
from fastkpca.errors import CertificateWarning, ComponentsWarning
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


# Through kpca -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """The arguments of a call of kpca whose landmarks leave much of the rows out."""

    X: np.ndarray
    kernel: str
    options: dict
    weights: np.ndarray | None = None


def _rows(rng, largest):
    n = int(np.exp(rng.uniform(np.log(10), np.log(largest))))
    return rng.standard_normal((n, int(rng.integers(1, 6))))


def few_landmarks(rng, largest):
    X = _rows(rng, largest)
    sigma = float(np.exp(rng.uniform(-1.5, 1.5)))
    return Call(X, "gaussian", {"sigma": sigma, "max_features": int(rng.integers(1, max(2, len(X) // 3)))})


def a_cluster_without_landmarks(rng, largest):
    X = _rows(rng, largest)
    n = len(X)
    far = rng.random(n) < rng.uniform(0.02, 0.6)
    far[: max(2, n // 8)] = False
    X[far] = 0.01 * X[far] + 30.0
    near = np.flatnonzero(~far)
    return Call(X, "gaussian", {"sigma": 1.0, "landmarks": rng.choice(near, max(1, len(near) // 3), replace=False)})


def one_row_far_off(rng, largest):
    X = _rows(rng, largest)
    X[-1] *= float(rng.choice([3.0, 30.0]))
    index = rng.choice(len(X) - 1, max(1, len(X) // 4), replace=False)
    return Call(X, "polynomial", {"degree": 2, "offset": 0.3, "landmarks": index})


def rows_more_than_once(rng, largest):
    X = _rows(rng, largest)
    X = X[rng.integers(0, max(3, len(X) // 5), len(X))]
    return Call(X, "gaussian", {"sigma": 0.3, "landmarks": X[:1]})


def weights_of_many_decades(rng, largest):
    given = few_landmarks(rng, largest)
    weights = 10.0 ** rng.uniform(-6, 6, len(given.X)) * (rng.random(len(given.X)) > 0.1)
    weights[:3] = 1.0
    return Call(given.X, given.kernel, given.options, weights)


def samples_after_a_pilot(rng, largest):
    """A tolerance that needs many draws: a bound from a few, and others, whose number those tell."""
    X = _rows(rng, largest // 2)
    X = 10.0 * np.vstack([X, X, X])
    X = np.vstack([X + rng.standard_normal(X.shape), X[:1] + 0.01 * rng.standard_normal((len(X) // 2, X.shape[1]))])
    options = {"sigma": float(np.exp(rng.uniform(-2.0, -1.0))), "tol": 10.0 ** rng.uniform(-1.6, -1.1)}
    return Call(X, "gaussian", options | {"max_features": int(rng.integers(1, max(2, len(X) // 5)))})


CALLS = {
    f.__name__: f
    for f in (
        few_landmarks,
        a_cluster_without_landmarks,
        one_row_far_off,
        rows_more_than_once,
        weights_of_many_decades,
        samples_after_a_pilot,
    )
}


def call_misses(given, seed, failure):
    """(whether the bound on what the map leaves out, or an interval, is missed; whether it is probabilistic)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComponentsWarning)
        warnings.simplefilter("ignore", CertificateWarning)
        options = given.options | {"failure_probability": failure}
        model = fk.kpca(given.X, given.kernel, None, rng=seed, sample_weight=given.weights, **options)
    X = given.X - model.shift
    weights = np.ones(len(X)) if given.weights is None else given.weights
    root = np.sqrt(weights)
    K = root[:, None] * model.kernel.block(X, X) * root
    Phi = root[:, None] * model.projector.map.features(X)
    center = np.eye(len(X)) - np.outer(root, root) / weights.sum()
    slack = 1e-11 * np.trace(K)
    missed = np.linalg.eigvalsh(K - Phi @ Phi.T)[-1] > model.info["residual_norm"] + slack
    low, high = model.eigenvalue_bounds.T
    true = np.linalg.eigvalsh(center @ K @ center)[::-1][: len(low)]
    wrong = (low > true + slack).any() or (true > high + slack).any()
    return bool(missed or wrong), model.failure_probability > 0
