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


def weights_of(rng, n):
    """Weights of some kind: whole ones with zeros, real ones, of any size, one that outweighs all."""
    kind = str(rng.choice(["whole", "real", "extreme", "one dominates", "single", "tiny", "huge"]))
    if kind == "whole":
        w = rng.integers(0, 5, n).astype(rng.choice([np.int64, np.float64, np.uint8]))
    elif kind == "real":
        w = rng.random(n) * (rng.random(n) < 0.9) + 0.01
    elif kind == "extreme":
        w = 10.0 ** rng.uniform(-12, 12, n)
    elif kind == "one dominates":
        w = rng.random(n)
        w[rng.integers(n)] = 10.0 ** rng.uniform(3, 12)
    elif kind == "single":
        w = (rng.random(n) * 3).astype(np.float32)
    else:
        w = (rng.random(n) + 0.1) * (1e-12 if kind == "tiny" else 1e12)
        if kind == "tiny":
            w[:3] = 1.5
    w[:3] = np.maximum(w[:3], 1)  # the sum has to be above one, and the first shard to have rows
    return w, kind


def look(X, shift=True):
    """(rows, summary) as ``kpca`` sees them."""
    return summarize(Rows(X), shift=shift, randomness=Randomness(0))
