"""Narrow Gaussians, whose spectra fall slowly: rows, and kpca's intervals against LAPACK's eigenvalues."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.linalg
import scipy.spatial

import fastkpca as fk


def _copies(rng, n, d):
    """Six islands of the same rows: every eigenvalue six times, centred at least five times: a block is narrower."""
    part = rng.standard_normal((n // 6, d))
    return np.concatenate([part + 1000.0 * k for k in range(6)])


ROWS = {
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


def narrow_problem(rng: np.random.Generator, n: int) -> dict:
    """Rows, a bandwidth at which a row has from one to some tens of near neighbours, and what is asked for."""
    family = str(rng.choice(list(ROWS)))
    X = ROWS[family](rng, n, int(rng.integers(2, 5)))
    some = X[rng.choice(len(X), 200, replace=False)]
    apart = np.sort(scipy.spatial.distance.cdist(some, X), axis=1)[:, 5]
    sigma = float(np.median(apart[apart > 0]) if (apart > 0).any() else 0.1) * float(rng.uniform(0.1, 0.6))
    tol, c = 10.0 ** float(rng.uniform(-8, -2)), int(rng.choice([1, 4, 10, 25]))
    return {"family": family, "X": X, "sigma": sigma, "tol": tol, "c": c}


def broken(case: dict, rng: int, failure: float = 1e-6) -> tuple[bool, fk.KPCAModel]:
    """Whether an interval misses the eigenvalue of LAPACK by more than that may be off; and the model."""
    X, sigma = case["X"], case["sigma"]
    K = np.exp(-0.5 * scipy.spatial.distance.cdist(X / sigma, X / sigma, "sqeuclidean"))
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    n, c = len(X), case["c"]
    exact = scipy.linalg.eigvalsh(K, subset_by_index=[n - c, n - 1])[::-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = {"tol": case["tol"], "max_passes": 40, "rng": rng, "failure_probability": failure}
        model = fk.kpca(X, "gaussian", c, sigma=sigma, method="krylov", products="auto", **asked)
    slack = 1e-13 * n * exact[0]
    low, high = model.eigenvalue_bounds.T
    exact = exact[: len(low)]
    return bool(np.any(low > exact + slack) or np.any(high < exact - slack)), model
