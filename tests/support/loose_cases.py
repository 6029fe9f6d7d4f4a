"""Problems for the sampled bound: what a feature map leaves out, as features b_i of the rows, and bounds of |b_i|^2.

And calls of kpca of many rows, by Fourier moments, and of narrow Gaussians, whose bounds are probable.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from unittest import mock

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
import scipy.spatial
from reference import dense_top
from tally import MAY_FAIL

import fastkpca as fk
from fastkpca.solve.proofs import Factorisation
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


def _made(B, slack=None):
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


def loose_diagonal(rng):
    """Of weighted rows."""
    n = _size(rng)
    B = np.sqrt(10.0 ** rng.uniform(-12, 0, n))[:, None] * rng.standard_normal((n, 3))
    return _made(B, slack=rng.uniform(1.0, 4.0, n))


FAMILIES = (one_row, two_clusters, many_clusters, duplicates, decaying, heavy_tails, loose_diagonal)


def draws_of(rng, n):
    """s of 1 to n, and sometimes more."""
    return int(np.exp(rng.uniform(0, np.log(2 * n))))


def bounds(rng, asked, family):
    """The attack on the bound alone: draw, bound, compare."""
    residual = family(rng)
    n = len(residual.bounds)
    s = draws_of(rng, n)
    index = np.searchsorted(np.cumsum(residual.bounds), rng.random(s) * residual.total, side="right")
    # B'B of the scaled rows has the eigenvalues of their Gram matrix, and is small
    u = residual.B[np.minimum(index, n - 1)] / np.sqrt(residual.bounds[np.minimum(index, n - 1)])[:, None]
    bound = sampled_bound(residual.total, ScaledSample(u.T @ u, s, 0.0), asked.failure)
    yield family.__name__, f"{n} rows, {s} draws", [(MAY_FAIL, float(bound.mu < residual.largest * (1 - 1e-12)))]


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
        return X, "polynomial", {"degree": 2, "offset": 1.0, "max_features": most}
    return X, "gaussian", {"sigma": sigma, "max_features": most}


def many(rng, asked):
    """The attack on pivots of many rows, where a factor L of the matrix, K = L L' + (a trace that is known), is found
    without fastkpca.
    """
    X, kernel, options = many_rows(rng)
    yield "pivots of many rows", f"{kernel} {options} {X.shape}", None
    options |= {"failure_probability": asked.failure, "rng": int(rng.integers(1 << 30))}
    with _no_certain_proof():
        model = fk.kpca(X, kernel, 3, **options)
    X = X - model.shift
    L, left = _factor(X, model.kernel)
    Phi = model.projector.map.features(X)
    n = len(X)
    residual = scipy.sparse.linalg.LinearOperator(
        (n, n), matvec=lambda x: L @ (L.T @ x) - Phi @ (Phi.T @ x), dtype=float
    )
    largest = float(scipy.sparse.linalg.eigsh(residual, 1, which="LA", tol=1e-8, v0=np.ones(n) + X[:, 0])[0][0])
    centred = L - L.mean(axis=0)
    true = np.linalg.eigvalsh(centred.T @ centred)[::-1][:3]
    slack = left + 1e-9 * true[0]
    wrong = outside(model, true, slack) or largest > model.info["residual_norm"] + slack
    yield "pivots of many rows", "", probable(model, wrong)


def outside(model, true, slack):
    """Whether an eigenvalue lies outside its interval by more than the reference may err."""
    low, high = model.eigenvalue_bounds.T
    true = true[: len(low)]
    return bool((low > true + slack).any() or (true > high + slack).any())


def probable(model, wrong):
    """What is found of a model whose intervals may fail, or may not."""
    return [(MAY_FAIL if model.failure_probability > 0 else "what is certain", float(wrong))]


@contextlib.contextmanager
def _no_certain_proof():
    """Of few rows all entries prove it for certain: not here."""
    with mock.patch.object(Factorisation, "cost", lambda *_: float("inf")):
        yield


def _factor(X, kernel):
    """(L, at most what it leaves of the trace): by so many random pivots that little is left."""

    def block(A, B):
        if hasattr(kernel, "degree"):
            return (A @ B.T + kernel.offset) ** kernel.degree
        squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
        return np.exp(-np.maximum(squares, 0.0) / (2.0 * kernel.sigma**2))

    rng = np.random.default_rng(0)
    diagonal = np.array([block(x[None], x[None])[0, 0] for x in X])
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


def moments(rng, asked):
    """Fourier maps of three axes, whose eigensolver may prove by random columns that it has missed nothing."""
    n, kind = int(rng.integers(900, 1500)), int(rng.integers(4))
    X = rng.random((n, 3))
    if kind == 1:
        X = rng.random((9, 3))[rng.integers(9, size=n)] + 0.02 * rng.standard_normal((n, 3))
    if kind == 2:
        X = np.concatenate([X[: n // 2], X[: n // 2] + [2.0, 0.0, 0.0]])
    if kind == 3:
        X = np.indices((10, 10, 10)).reshape(3, -1).T / 9.0
    options = {"sigma": float(rng.uniform(0.09, 0.16)), "tol": 10.0 ** rng.uniform(-6, -2), "features": "fourier"}
    c = int(rng.choice([1, 3, 8]))
    yield "moments", f"kind {kind} n={n} c={c} {options}", None
    options |= {"rng": int(rng.integers(1 << 30)), "failure_probability": asked.failure, "memory_limit": "1GB"}
    with _no_certain_proof():
        model = fk.kpca(X, "gaussian", c, **options)
    true = dense_top(X / options["sigma"], c)
    yield "moments", "", probable(model, outside(model, true, 1e-13 * len(X) * true[0]))


# Narrow Gaussians, whose spectra fall slowly -----------------------------------------------------------------------


def _copies(rng, n, d):
    """Six islands of the same rows: every eigenvalue six times, centred at least five times: a block is narrower."""
    part = rng.standard_normal((n // 6, d))
    return np.concatenate([part + 1000.0 * k for k in range(6)])


NARROW = {
    "normal": lambda rng, n, d: rng.standard_normal((n, d)),
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "clusters": lambda rng, n, d: rng.random((9, d))[rng.integers(9, size=n)] + 0.02 * rng.standard_normal((n, d)),
    "copies": _copies,
    "lattice": lambda rng, n, d: np.indices((round(n ** (1 / d)),) * d).reshape(d, -1).T.astype(float),
    "duplicates": lambda rng, n, d: np.repeat(rng.standard_normal((n // 4, d)), 4, axis=0),
    "one dense spot": lambda rng, n, d: np.concatenate(
        [10.0 * rng.random((n - 60, d)), 0.03 * rng.standard_normal((60, d)) + 5.0]
    ),
}
"""(rng, n, d) -> rows."""


def narrow(rng, asked):
    """Exact products at a bandwidth at which a row has from one to some tens of near neighbours: bounds from random
    blocks.
    """
    family = str(rng.choice(list(NARROW)))
    X = NARROW[family](rng, int(rng.integers(600, 1200)), int(rng.integers(2, 5)))
    some = X[rng.choice(len(X), 200, replace=False)]
    apart = np.sort(scipy.spatial.distance.cdist(some, X), axis=1)[:, 5]
    sigma = float(np.median(apart[apart > 0]) if (apart > 0).any() else 0.1) * float(rng.uniform(0.1, 0.6))
    options = {"tol": 10.0 ** float(rng.uniform(-8, -2)), "max_passes": 40, "method": "krylov", "products": "auto"}
    c = int(rng.choice([1, 4, 10, 25]))
    yield "narrow", f"{family} {X.shape} sigma={sigma} c={c} {options}", None
    options |= {"rng": int(rng.integers(1 << 30)), "failure_probability": asked.failure}
    with _no_certain_proof():
        model = fk.kpca(X, "gaussian", c, sigma=sigma, **options)
    true = dense_top(X / sigma, c)
    yield "narrow", "", probable(model, outside(model, true, 1e-13 * len(X) * true[0]))
