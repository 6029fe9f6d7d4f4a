"""A small matrix in memory: intervals hold whatever the spectrum is, and whatever the search has missed."""

import intervals
import numpy as np
import pytest
from child import child

import fastkpca as fk
from fastkpca.products.vectors import row_sums
from fastkpca.solve import small
from fastkpca.solve.small import pairs_of_small

SPECTRA = {
    "fast": lambda n: 0.5 ** np.arange(n),
    "slow": lambda n: 1.0 / (1.0 + np.arange(n)),
    "cubes": lambda n: (1.0 + np.arange(n)) ** -3.0,
    "steps": lambda n: np.repeat(10.0 ** -np.arange(n), 4)[:n],
    "cluster at the last": lambda n: np.where(np.arange(n) < 20, 1.0 - 1e-3 * np.arange(n), 1e-3),
    "one": lambda n: np.where(np.arange(n) == 0, 1.0, 1e-9),
    "plateau": lambda n: np.where(np.arange(n) < 8, 1.0, 0.05 / (1.0 + np.arange(n))),
    "flat": lambda n: np.ones(n),
}


def matrix(n, spectrum, rng, *, local=False):
    """A semidefinite matrix with these eigenvalues; ``local``: the first vectors live on few rows."""
    V = np.linalg.qr(rng.standard_normal((n, n)))[0]
    if local:
        V = np.eye(n)[:, rng.permutation(n)]
    K = (V * SPECTRA[spectrum](n)) @ V.T
    return (K + K.T) / 2


def exact_eigenvalues(K, centred):
    A = K.astype(np.longdouble)
    if centred:
        A = A - A.mean(axis=0)
        A = A - A.mean(axis=1)[:, None]
    return np.linalg.eigvalsh(A.astype(np.float64))[::-1]


def pairs_of(K, means, c, tol, entry_error=0.0):
    return pairs_of_small(K, means, c, tol, entry_error, float(np.sqrt(row_sums(K)[1])))


def assert_true(pairs, K, centred, c, tol):
    exact = exact_eigenvalues(K, centred)[:c]
    intervals.hold(pairs.certificate, exact, 1e-15 * len(K) * np.linalg.norm(K), tol=tol * (1 + 1e-9))
    assert pairs.certificate.bound_kind == "guaranteed"


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("centred", [True, False])
def test_intervals_hold_for_any_spectrum(spectrum, centred):
    rng = np.random.default_rng(1)
    found = 0
    for trial in range(9):
        n, c = int(rng.integers(180, 350)), int(rng.integers(1, 11))
        tol = 10.0 ** rng.integers(-10, -1)
        K = matrix(n, spectrum, rng, local=trial % 3 == 0)
        K += (0.0, 1.0, 30.0)[trial % 3] / n * K[0, 0]  # a mean, which centring takes off
        K *= 10.0 ** float(rng.choice([-120, -20, 0, 20, 120]))
        pairs = pairs_of(K, K.mean(axis=0) if centred else None, c, tol)
        if pairs is not None:
            found += 1
            assert_true(pairs, K, centred, c, tol)
            gram = pairs.vectors.T @ pairs.vectors
            np.testing.assert_allclose(gram, np.eye(c), atol=1e-12)
    assert found >= 6 or spectrum in ("slow", "flat", "cluster at the last", "one", "steps", "plateau")
    assert found == 0 or spectrum != "flat" or not centred


@pytest.mark.parametrize("tol", [1e-10, 1e-9, 1e-3])
def test_an_eigenvalue_as_often_as_the_block_has_columns_takes_no_more_products(tol):
    """Groups of rows that are alike, far from each other: the smallest Ritz value of the block is near the largest."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n, groups, noise = rng.choice([176, 198, 200, 333]), rng.integers(8, 15), rng.choice([0.0, 1e-8, 1e-4, 1e-3])
        X = (20.0 * rng.standard_normal((groups, 20)))[np.arange(n) % groups] + noise * rng.standard_normal((n, 20))
        c = int(rng.integers(1, 3))
        model = fk.kpca(X, "gaussian", c, sigma=1.0, tol=tol, n_threads=1)
        assert model.info.get("matrix_passes", 0) <= 2 * n / 8  # columns of the block
        K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
        intervals.hold(model, exact_eigenvalues(K, True), 1e-13 * len(X))


@pytest.mark.parametrize(
    ("n", "d", "kernel", "parameters", "c", "tol", "most"),
    [
        (200, 10, "gaussian", {"sigma": 1.0}, 10, 1e-6, 8),
        (500, 10, "gaussian", {"sigma": 1.0}, 10, 1e-10, 12),
        # a search that stops too soon goes on
        (600, 3, "gaussian", {}, 1, 1e-9, 20),
        (250, 2, "gaussian", {"sigma": 0.2}, 1, 1e-9, 20),
        (250, 2, "gaussian", {"sigma": 0.2}, 10, None, 20),
        (600, 1, "laplacian", {}, 10, None, 20),
    ],
)
def test_few_products_are_enough(n, d, kernel, parameters, c, tol, most):
    X = np.random.default_rng(0).random((n, d))
    model = fk.kpca(X, kernel, c, tol=tol, n_threads=1, **parameters)
    assert model.info.get("matrix_passes", 99) <= most and model.bound_kind == "guaranteed"


NORMS = """
from fractions import Fraction
import numpy as np
from fastkpca.products.vectors import row_sums
rng = np.random.default_rng(0)
for _ in range(200):
    n, value = int(rng.integers(640, 701)), float(rng.uniform(1.0, 2.0))
    square = Fraction(float(row_sums(np.full((n, n), value))[1]))
    assert abs(square / (Fraction(value) ** 2 * n * n) - 1) <= (5.0 * n + 8.0) * 2.0**-53
"""


@pytest.mark.parametrize("processor", ["", "Prescott"])
def test_the_norm_of_equal_values_is_right_whatever_vectors_blas_has(processor):
    """Such values round alike: BLAS of short vectors adds n^2 of them up with an error in proportion to n^2."""
    child(NORMS, **({"OPENBLAS_CORETYPE": processor} if processor else {}))


@pytest.mark.parametrize("missing", [0, 1, 3])
@pytest.mark.parametrize(("spectrum", "share"), [("fast", 1.0), ("plateau", 1.0), ("cubes", 0.5)])
def test_a_block_that_misses_an_eigenvector_is_never_certified(spectrum, share, missing, monkeypatch):
    rng = np.random.default_rng(missing)
    for n in (180, 300):
        K = matrix(n, spectrum, rng)
        vectors = np.linalg.eigh(K)[1][:, ::-1]
        kept = np.delete(np.arange(17), missing)
        V = vectors[:, kept][:, :16]
        pairs = (V.T @ (K @ V)).diagonal(), V, K @ V
        monkeypatch.setattr(small, "_search", lambda *_, pairs=pairs: (pairs, 4))
        assert pairs_of(K, None, 4, 1e-3 * share) is None


@pytest.mark.parametrize("n", [300, 500])
def test_an_eigenvalue_that_float32_does_not_see_is_not_missed(n):
    """Of values near 1: what is below half of their spacing in float32 is the largest part of the centred matrix."""
    spacing = 2.0**-23
    hidden, seen = np.where(np.arange(n) % 2, 1.0, -1.0), np.zeros((n, 60))
    for j in range(60):  # blocks of few rows, whose values float32 does see
        seen[4 * j : 4 * j + 4, j] = 8.0 if j == 0 else 2.0 if j == 1 else 1.0
    X = np.column_stack([np.sqrt(2.75e-8) * hidden, np.sqrt(seen * spacing / 2)])
    model = fk.kpca(X, "polynomial", 1, degree=2, offset=1 + 2 * spacing, tol=1e-2)
    intervals.hold(model, exact_eigenvalues((X @ X.T + 1 + 2 * spacing) ** 2, True), 1e-12)
    assert model.bound_kind == "guaranteed"


def test_a_factorisation_proves_what_the_norm_does_not():
    rng = np.random.default_rng(0)
    X = rng.random((200, 5))
    model = fk.kpca(X, "gaussian", 10, sigma=0.5, n_threads=1)
    assert model.info["method"] == "dense" and model.info["factorisations"] == 1
    exact = fk.kpca(X, "gaussian", 10, sigma=0.5, method="dense")
    assert "matrix_passes" not in exact.info  # asked for by name it is LAPACK
    intervals.hold(model, exact.eigenvalues)
    assert model.bound_kind == "guaranteed"


def test_errors_of_entries_widen_the_intervals():
    K = matrix(180, "fast", np.random.default_rng(3))
    narrow, wide = (pairs_of(K, None, 3, 1e-2, error).certificate for error in (0.0, 1e-6))
    assert wide.width > narrow.width + 180 * 1e-6
