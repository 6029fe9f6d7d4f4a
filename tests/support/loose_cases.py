"""Problems for the sampled bound: what a feature map leaves out, as features b_i of the rows, and bounds of |b_i|^2.

And calls of kpca that use it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
import scipy.spatial

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


# Many rows: pivots move to means of rows ----------------------------------------------------------------------------


def many_rows(rng):
    """At least 16384 rows with few landmarks: some a small cluster far off, or a few rows that count far more."""
    n, kind = int(rng.integers(16384, 18000)), int(rng.integers(5))
    most = int(rng.integers(4, 40))
    X = rng.standard_normal((n, 2)) * np.exp(rng.uniform(-1, 0, 2))
    sigma = float(np.exp(rng.uniform(-0.7, 1.0)))
    if kind == 1:
        X[: int(rng.integers(2, 60))] += 12.0 * sigma
    if kind == 2:
        X = X[rng.integers(0, 300, n)]
    if kind == 3:
        X = rng.random((n, 3)) * sigma * 3.0
    if kind == 4:
        X = rng.standard_normal((n, 6))
        X[: int(rng.integers(1, 4))] *= 30.0
        return Call(X, "polynomial", {"degree": 2, "offset": 1.0, "max_features": most})
    return Call(X, "gaussian", {"sigma": sigma, "max_features": most})


def many_misses(given, seed, failure):
    """`call_misses` where a factor L of the matrix, K = L L' + (a trace that is known), is found without fastkpca."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = given.options | {"failure_probability": failure}
        model = fk.kpca(given.X, given.kernel, 3, rng=seed, **options)
    X = given.X - model.shift
    L, left = _factor(X, given)
    Phi = model.projector.map.features(X)
    n = len(X)
    residual = scipy.sparse.linalg.LinearOperator(
        (n, n), matvec=lambda x: L @ (L.T @ x) - Phi @ (Phi.T @ x), dtype=float
    )
    largest = float(scipy.sparse.linalg.eigsh(residual, 1, which="LA", tol=1e-8, v0=np.ones(n) + X[:, 0])[0][0])
    centred = L - L.mean(axis=0)
    true = np.linalg.eigvalsh(centred.T @ centred)[::-1][:3]
    slack = left + 1e-9 * true[0]
    low, high = model.eigenvalue_bounds.T
    true = true[: len(low)]
    wrong = (low > true + slack).any() or (true > high + slack).any()
    missed = largest > model.info["residual_norm"] + slack
    return bool(wrong or missed), model.failure_probability > 0


def _factor(X, given):
    """(L, at most what it leaves of the trace): by so many random pivots that little is left."""

    def block(A, B):
        if given.kernel == "polynomial":
            return (A @ B.T + given.options["offset"]) ** given.options["degree"]
        squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
        return np.exp(-np.maximum(squares, 0.0) / (2.0 * given.options["sigma"] ** 2))

    rng = np.random.default_rng(0)
    diagonal = np.array([block(x[None], x[None])[0, 0] for x in X]) if given.kernel == "polynomial" else np.ones(len(X))
    L, left = np.zeros((len(X), 0)), diagonal.copy()
    while left.sum() > 1e-9 * diagonal.sum() and L.shape[1] < 1600:
        P = np.unique(rng.choice(len(X), 100, p=left / left.sum()))
        rest = block(X, X[P]) - L @ L[P].T
        values, vectors = np.linalg.eigh((rest[P] + rest[P].T) / 2)
        keep = values > 1e-12 * diagonal.max()
        L = np.hstack([L, rest @ (vectors[:, keep] / np.sqrt(values[keep]))])
        left = np.maximum(diagonal - (L**2).sum(axis=1), 1e-16 * diagonal)
    return L, float(left.sum())


# Moments that are held as operators ---------------------------------------------------------------------------------


def moment_misses(rng, seed, failure):
    """Fourier maps of three axes, whose eigensolver may prove by random columns that it has missed nothing."""
    n, kind = int(rng.integers(900, 1500)), int(rng.integers(4))
    X = rng.random((n, 3))
    if kind == 1:
        X = rng.random((9, 3))[rng.integers(9, size=n)] + 0.02 * rng.standard_normal((n, 3))
    if kind == 2:
        X = np.concatenate([X[: n // 2], X[: n // 2] + [2.0, 0.0, 0.0]])
    if kind == 3:
        X = np.indices((10, 10, 10)).reshape(3, -1).T / 9.0
    asked = {"sigma": float(rng.uniform(0.09, 0.16)), "tol": 10.0 ** rng.uniform(-6, -2), "features": "fourier"}
    c = int(rng.choice([1, 3, 8]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fk.kpca(X, "gaussian", c, rng=seed, failure_probability=failure, memory_limit="500MB", **asked)
    K = np.exp(-0.5 * scipy.spatial.distance.cdist(X, X, "sqeuclidean") / asked["sigma"] ** 2)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    true = scipy.linalg.eigvalsh(K, subset_by_index=[len(X) - c, len(X) - 1])[::-1]
    low, high = model.eigenvalue_bounds.T
    true, slack = true[: len(low)], 1e-13 * len(X) * true[0]
    return bool((low > true + slack).any() or (true > high + slack).any()), model.failure_probability > 0


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
