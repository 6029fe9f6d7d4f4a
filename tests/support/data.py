"""Rows to try things on, and what the library sees of them."""

from __future__ import annotations

import numpy as np

from fastkpca.base.checks import Randomness
from fastkpca.rows.summary import summarize
from fastkpca.rows.view import Rows


def rows(rng, kind, n, d):
    if kind == "uniform":
        return rng.random((n, d))
    if kind == "clustered":
        centres = 5 * rng.standard_normal((int(rng.integers(2, 9)), d))
        return centres[rng.integers(len(centres), size=n)] + rng.choice([1e-3, 0.1, 1]) * rng.standard_normal((n, d))
    if kind == "low-dimensional":
        return rng.standard_normal((n, min(2, d))) @ rng.standard_normal((min(2, d), d))
    if kind == "outliers":
        X = rng.standard_normal((n, d))
        X[rng.permutation(n)[: max(1, n // 50)]] *= 10 ** rng.uniform(1, 3)
        return X
    if kind == "duplicates":
        return rng.standard_normal((max(2, n // 5), d))[rng.integers(max(2, n // 5), size=n)]
    if kind == "offset":
        return rng.standard_normal((n, d)) + 10.0 ** rng.uniform(2, 8)
    if kind == "far clusters":
        centres = 10.0 ** rng.uniform(2, 6) * rng.standard_normal((int(rng.integers(2, 5)), d))
        return centres[rng.integers(len(centres), size=n)] + rng.standard_normal((n, d))
    X = rng.standard_normal((n, d))
    X[:, rng.random(d) < 0.5] = 3.0
    X[:, 0] = rng.standard_normal(n)
    return X


def unkind_rows(rng, n, d):
    """Rows of one of the unkind kinds."""
    X = rng.standard_normal((n, d))
    kind = rng.integers(9)
    if kind == 1:  # duplicates
        X = X[rng.integers(0, max(1, n // 7), n)]
    elif kind == 2:  # far outliers
        X[: max(1, n // 20)] *= 1e3
    elif kind == 3:  # collinear
        X = np.outer(rng.standard_normal(n), rng.standard_normal(d))
    elif kind == 4:  # constant columns
        X[:, 1:] = 3.0
    elif kind == 5:  # clusters
        X = 0.01 * X + 5.0 * rng.standard_normal((4, d))[rng.integers(0, 4, n)]
    elif kind == 6:  # constant
        X[:] = X[0]
    elif kind == 7:  # a curve
        t = rng.random(n)
        X = np.stack([np.sin((j + 1) * t) for j in range(d)], axis=1)
    elif kind == 8:  # uneven scales
        X = X * 10.0 ** rng.uniform(-3, 1, d)
    return np.ascontiguousarray(X)


def look(X, shift=True):
    """(rows, summary) as ``kpca`` sees them."""
    return summarize(Rows(X), shift=shift, randomness=Randomness(0))
