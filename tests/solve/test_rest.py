"""Bounds from the entries of the matrix beyond some vectors, against LAPACK on that matrix."""

import warnings

import numpy as np
import pytest
from dense_products import centered, entries_of

import fastkpca as fk
from fastkpca.kernels import get_kernel
from fastkpca.solve.rest import Rest


def flat_matrix(rng, n, *, indefinite=False):
    """A kernel matrix with a flat spectrum, and an offset that centring removes."""
    d = int(rng.integers(3, 12))
    X = rng.standard_normal((n, d))
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    K = np.exp(-squares / (2 * d * rng.uniform(0.02, 1.0) ** 2)) + rng.choice([0.0, 1.0, 30.0])
    if indefinite:
        K = K - 0.5 * np.eye(n)
    return (K + K.T) / 2


def rest_of(K, p, noise, rng, rows=None):
    """(Rest, P A P) for p eigenvectors that are off by some noise."""
    A = centered(K)
    V = np.linalg.eigh(A)[1][:, ::-1][:, :p]
    V = V + noise * rng.standard_normal(V.shape)
    V = np.linalg.qr(V - V.mean(axis=0))[0]
    P = np.eye(len(K)) - V @ V.T
    entries = entries_of(K) if rows is None else rows
    rest = Rest(entries, V, A @ V, K.mean(axis=1), 1e-15 * np.linalg.norm(K))
    return rest, P @ A @ P


def test_a_factorisation_never_proves_too_small_a_bound():
    """On either side of the largest eigenvalue, close to it and far, for definite and indefinite matrices."""
    rng, proved = np.random.default_rng(0), 0
    for trial in range(60):
        n = int(rng.integers(20, 400))
        K = flat_matrix(rng, n, indefinite=trial % 3 == 0)
        rest, left = rest_of(K, int(rng.integers(1, 8)), 10.0 ** rng.uniform(-12, 0), rng)
        largest = np.linalg.eigvalsh(left)[-1]
        for off in (-0.5, -1e-2, -1e-4, -1e-6, 1e-6, 1e-4, 1e-2, 0.5):
            bound = rest.factorised_bound(largest * (1.0 + off))
            if np.isfinite(bound.mu):
                proved += 1
                assert off > 0.0 and bound.mu == largest * (1.0 + off) and bound.failure_probability == 0.0
        assert np.isfinite(rest.factorised_bound(1.1 * largest).mu)
    assert proved >= 60


@pytest.mark.parametrize("scale", [1e-44, 1e-39, 1e38, 1e120])
def test_a_factorisation_proves_as_much_of_values_beyond_the_range_of_float32(scale):
    rng = np.random.default_rng(0)
    for _ in range(4):
        K = flat_matrix(rng, int(rng.integers(100, 400)))
        rest, left = rest_of(scale * K, 4, 1e-6, rng)
        largest = np.linalg.eigvalsh(left / scale)[-1] * scale
        for off in (-0.5, -1e-2, -1e-4):
            assert np.isinf(rest.factorised_bound(largest * (1.0 + off)).mu)
        assert np.isfinite(rest.factorised_bound(1.1 * largest).mu)


def test_flat_spectra_of_few_rows_are_certain():
    """These took a random exploration before, or ended without a useful interval."""
    X = np.random.default_rng(1).standard_normal((1500, 8))
    for kernel, options in (("gaussian", {"sigma": 0.7}), ("tanh", {"scale": 3.0, "offset": -1.0})):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = fk.kpca(X, kernel, 5, tol=1e-5, method="krylov", products="exact", **options)
        values = fk.kpca(X, kernel, 5, method="dense", **options).eigenvalues
        assert model.bound_kind == "guaranteed" and model.failure_probability == 0.0
        assert np.diff(model.eigenvalue_bounds, axis=1).max() <= 1e-5 * values[0]
        rounding = 1e-13 * values[0]
        assert (model.eigenvalue_bounds[:, 0] <= values + rounding).all()
        assert (values - rounding <= model.eigenvalue_bounds[:, 1]).all()


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_factorisation_is_what_makes_them_certain(weighted, center):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((1200, 6))
    weights = rng.integers(1, 4, len(X)).astype(float) if weighted else None
    options = {"sigma": 0.4, "tol": 1e-5, "sample_weight": weights, "center": center}
    model = fk.kpca(X, "gaussian", 4, method="krylov", products="exact", **options)
    assert model.info["factorisations"] == 1 and model.bound_kind == "guaranteed"
    values = fk.kpca(X, "gaussian", 4, method="dense", **options).eigenvalues
    np.testing.assert_allclose(model.eigenvalues, values, rtol=1e-5)
    assert (model.eigenvalue_bounds[:, 0] <= values * (1 + 1e-12)).all()
    assert (values * (1 - 1e-12) <= model.eigenvalue_bounds[:, 1]).all()


def test_a_factorisation_comes_before_passes_over_a_wide_basis_that_cost_more():
    X = np.random.default_rng(0).standard_normal((1000, 20))
    kernel = get_kernel("polynomial", degree=5, scale=0.05, offset=1.0)
    model = fk.kpca(X, kernel, 30, tol=1e-2, method="krylov", products="exact")
    assert model.info["factorisations"] == 1 and model.info["matrix_passes"] == model.info["search_passes"] + 1
    assert model.bound_kind == "guaranteed"
    values = fk.kpca(X, kernel, 30, method="dense").eigenvalues
    rounding = 1e-13 * values[0]
    assert (model.eigenvalue_bounds[:, 0] <= values + rounding).all()
    assert (values - rounding <= model.eigenvalue_bounds[:, 1]).all()
