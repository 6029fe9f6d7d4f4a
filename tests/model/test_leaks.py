"""Calls that are made many times leave nothing behind: objects of Python, and layers around a work array."""

import gc
import sys

import numpy as np
import pytest
from child import child

import fastkpca as fk

X = np.random.default_rng(0).standard_normal((60, 3))
MAX_OBJECTS_PER_CALL = 1.0
KINDS = {
    "linear": lambda: fk.pca(X, 2),
    "polynomial": lambda: fk.kpca(X, "polynomial", 2, degree=2, features="monomial", keep_moments=True),
    "single": lambda: fk.kpca(X.astype(np.float32), "polynomial", 2, degree=2, features="monomial"),
    "taylor": lambda: fk.kpca(X, "gaussian", 2, sigma=3.0, tol=1e-6, features="monomial"),
    "fourier": lambda: fk.kpca(X[:, :2], "gaussian", 2, sigma=0.8, tol=1e-3, features="fourier"),
    "pivots": lambda: fk.kpca(X, "gaussian", 2, sigma=2.0, tol=1e-3, features="pivots"),
    "dense": lambda: fk.kpca(X, "gaussian", 2, sigma=1.0, method="dense"),
    "krylov": lambda: fk.kpca(X, "gaussian", 2, sigma=1.0, method="krylov"),
}


def left_behind(call, calls, rounds=5):
    """Objects that a call leaves behind: the fewest of some rounds, since what is kept on purpose comes once."""
    found = []
    for _ in range(rounds):
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(calls):
            call()
        gc.collect()
        found.append((sys.getallocatedblocks() - before) / calls)
    return min(found)


@pytest.mark.parametrize("kind", KINDS)
def test_projections_leave_no_objects_behind(kind):
    model = KINDS[kind]()
    rows = X[:5, :2] if kind == "fourier" else X[:5]
    assert left_behind(lambda: fk.kpca_project(model, rows, n_threads=1), calls=200) < MAX_OBJECTS_PER_CALL


@pytest.mark.parametrize("kind", KINDS)
def test_fits_leave_no_objects_behind(kind):
    assert left_behind(KINDS[kind], calls=60) < MAX_OBJECTS_PER_CALL


@pytest.mark.slow
def test_200_000_projections_and_a_larger_work_array_after_them():
    words = child("""
        import numpy as np, fastkpca as fk
        X = np.random.default_rng(0).standard_normal((60, 8))
        model = fk.pca(X[:, :3], 2)
        for _ in range(200_000):
            fk.kpca_project(model, X[:5, :3], n_threads=1)
        fk.kpca(X, "polynomial", 2, degree=4, method="features")
        print("alive")
    """)
    assert words == ["alive"]
