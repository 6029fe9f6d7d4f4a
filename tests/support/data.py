"""Rows to try things on, and what the library sees of them."""

import numpy as np

from fastkpca.base.checks import Randomness
from fastkpca.rows.summary import summarize
from fastkpca.rows.view import Rows


def _about(rng, n, d, centres, width):
    return centres[rng.integers(len(centres), size=n)] + width * rng.standard_normal((n, d))


def _outliers(rng, n, d):
    X = rng.standard_normal((n, d))
    X[rng.permutation(n)[: max(1, n // 50)]] *= 10 ** rng.uniform(1, 3)
    return X


def _constant_columns(rng, n, d):
    X = np.where(rng.random(d) < 0.5, 3.0, rng.standard_normal((n, d)))
    X[:, 0] = rng.standard_normal(n)
    return X


ROWS = {
    "normal": lambda rng, n, d: rng.standard_normal((n, d)),
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "clustered": lambda rng, n, d: _about(
        rng, n, d, 5 * rng.standard_normal((int(rng.integers(2, 9)), d)), rng.choice([1e-3, 1e-2, 0.1, 1])
    ),
    "low-dimensional": lambda rng, n, d: rng.standard_normal((n, min(2, d))) @ rng.standard_normal((min(2, d), d)),
    "collinear": lambda rng, n, d: np.outer(rng.standard_normal(n), rng.standard_normal(d)),
    "outliers": _outliers,
    "duplicates": lambda rng, n, d: rng.standard_normal((max(2, n // 5), d))[rng.integers(max(2, n // 5), size=n)],
    "constant": _constant_columns,
    "a curve": lambda rng, n, d: np.sin(rng.random((n, 1)) * np.arange(1.0, d + 1)),
    "uneven scales": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 1, d),
    "wide scales": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-6, 6, d),
    "offset": lambda rng, n, d: rng.standard_normal((n, d)) + 10.0 ** rng.uniform(2, 8),
    "far clusters": lambda rng, n, d: _about(
        rng, n, d, 10.0 ** rng.uniform(2, 6) * rng.standard_normal((int(rng.integers(2, 5)), d)), 1.0
    ),
    "all equal": lambda rng, n, d: np.repeat(rng.standard_normal((1, d)), n, axis=0),
}
"""(rng, n, d) -> rows."""


def rows(rng, kind, n, d):
    return ROWS[kind](rng, n, d)


def unkind_rows(rng, n, d):
    """Rows of one of the kinds about zero."""
    kinds = [
        kind for kind in ROWS if kind not in ("uniform", "low-dimensional", "wide scales", "offset", "far clusters")
    ]
    return np.ascontiguousarray(rows(rng, str(rng.choice(kinds)), n, d))


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
