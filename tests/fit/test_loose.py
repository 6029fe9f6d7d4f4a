"""A loose tolerance: what a feature map leaves out is bounded by a sample of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from reference import eigh

import fastkpca as fk
from fastkpca.errors import CertificateWarning
from fastkpca.fit import features, offers
from fastkpca.kernels import get_kernel
from fastkpca.maps.draws import scaled_residuals
from fastkpca.maps.passes import moments_and_draws
from fastkpca.maps.pivots import PivotMap
from fastkpca.rows.view import Rows


@pytest.fixture
def first_order(monkeypatch):
    """No rows of what a map leaves out are looked at."""
    for module in (features, offers):
        monkeypatch.setattr(module, "takes_pass", lambda *_: False)


def rows_of(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def contains(model, X):
    low, high = model.eigenvalue_bounds.T
    true = eigh(model.kernel.block(X - model.shift, X - model.shift))[0][: len(low)]
    return bool((low <= true * (1 + 1e-9)).all() and (true * (1 - 1e-9) <= high).all())


def test_a_loose_tolerance_is_met_with_a_sample_and_no_warning():
    X = rows_of(1500, 6)
    model = fk.kpca(X, "gaussian", 4, tol=1e-2, features="pivots")
    low, high = model.eigenvalue_bounds.T
    assert (high - low).max() <= 1e-2 * model.eigenvalues[0]
    assert model.bound_kind == "probabilistic" and 0 < model.failure_probability <= 1e-6
    assert model.info["residual_norm"] < 0.2 * model.info["residual_trace"]
    assert contains(model, X)


def test_of_many_rows_fewer_pivots_do(monkeypatch, first_order):
    X, tol = rows_of(20_000, 6), 1e-2
    model = fk.kpca(X, "gaussian", 4, tol=tol, features="pivots")
    low, high = model.eigenvalue_bounds.T
    assert (high - low).max() <= tol * model.eigenvalues[0]
    monkeypatch.setattr(offers, "MEANS_FROM", np.inf)  # so pivots are rows, and leave more
    rows = fk.kpca(X, "gaussian", 4, tol=tol, features="pivots")
    assert model.info["n_features"] < rows.info["n_features"]
    assert (low <= rows.eigenvalue_bounds[:, 1]).all() and (rows.eigenvalue_bounds[:, 0] <= high).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_draws_follow_the_residual(weighted):
    X = rows_of(40_000, 3)
    rows = Rows(X).weighted(np.random.default_rng(2).random(len(X)) if weighted else None)
    chosen = PivotMap(get_kernel("gaussian", sigma=1.0), X[:20])
    moments, draws = moments_and_draws(chosen, rows, np.random.default_rng(3), n_draws=200_000)
    residual = chosen.residual(X) * (rows.weights if weighted else 1.0)
    np.testing.assert_allclose(draws.total, residual.sum(), rtol=1e-12)
    np.testing.assert_allclose(draws.total, moments.residual_trace, rtol=1e-12)
    np.testing.assert_allclose(draws.residual, residual[draws.index], rtol=1e-9)
    # in groups of rows, by their number and by their residual
    for groups in (np.arange(len(X)) // 4000, np.argsort(np.argsort(residual)) // 4000):
        expected = np.bincount(groups, residual) / residual.sum() * len(draws.index)
        found = np.bincount(groups[draws.index], minlength=len(expected))
        assert (np.abs(found - expected) <= 5 * np.sqrt(expected) + 5).all()


def test_draws_are_the_same_at_any_number_of_threads():
    X = rows_of(60_000, 3)
    chosen = PivotMap(get_kernel("gaussian", sigma=1.0), X[:300])
    one, two = (moments_and_draws(chosen, Rows(X), np.random.default_rng(3), n_threads=t)[1] for t in (1, 2))
    assert np.array_equal(one.index, two.index) and one.total == two.total


@pytest.mark.parametrize("sigma, d", [(0.5, 3), (2.0, 3), (20.0, 3), (1.0, 10)])
def test_error_of_the_scaled_residuals_is_bounded(sigma, d):
    X = rows_of(700, d)
    kernel = get_kernel("gaussian", sigma=sigma)
    chosen = PivotMap(kernel, X[:60])
    residual, counts = chosen.residual(X), np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    found, error = scaled_residuals(kernel, chosen, X, residual, counts, 0.0)
    # the semidefinite matrix that the shift of the factor leaves, in extended precision
    L = chosen.factor.astype(np.longdouble)
    K = np.exp(-((X[:, None] - X).astype(np.longdouble) ** 2).sum(axis=2) / (2 * np.longdouble(sigma) ** 2))
    Phi = K[:60].copy()
    for i in range(60):
        Phi[i] = (Phi[i] - L[i, :i] @ Phi[:i]) / L[i, i]
    scale = np.sqrt(counts / residual)
    exact = (K - Phi.T @ Phi) * scale[:, None] * scale
    assert np.linalg.norm((found - exact).astype(np.float64), 2) <= error


def test_a_zero_residual_needs_no_sample():
    X = np.repeat(rows_of(12, 3), 50, axis=0)
    model = fk.kpca(X, "gaussian", 3, tol=1e-2, features="pivots")
    assert model.bound_kind == "guaranteed" and contains(model, X)


def test_a_budget_of_features_is_kept_and_needs_no_tolerance():
    X = rows_of(1200, 8)
    model = fk.kpca(X, "gaussian", 4, max_features=60)
    assert model.info["n_features"] == 60 and model.info["tol"] is None
    assert contains(model, X)
    assert 1e-3 < (model.eigenvalue_bounds[:, 1] - model.eigenvalue_bounds[:, 0]).max() / model.eigenvalues[0]
    assert fk.plan(X, "gaussian", 4, max_features=60).chosen.n_features == 60
    exact = fk.kpca(X, "polynomial", 4, degree=1, max_features=60)
    assert exact.info["n_features"] <= 10 and exact.bound_kind == "guaranteed"


def test_a_budget_and_a_tolerance_warn_where_the_budget_is_too_small():
    X = rows_of(2500, 8)
    with pytest.warns(CertificateWarning, match="60 features leave .* more features, or a larger tol, would do"):
        fk.kpca(X, "gaussian", 4, max_features=60, tol=1e-3)
    model = fk.kpca(X, "gaussian", 4, max_features=1500, tol=5e-2)
    assert model.info["n_features"] < 1000


def test_landmarks_by_number_and_as_rows_are_the_same():
    X, index = rows_of(1200, 5) + 3.0, np.random.default_rng(5).choice(1200, 80, replace=False)
    first, second = (fk.kpca(X, "gaussian", 3, landmarks=given) for given in (index, X[index]))
    assert np.array_equal(first.eigenvalues, second.eigenvalues)
    assert np.array_equal(first.projector.map.pivots, X[index] - first.shift)
    assert contains(first, X)
    outside = fk.kpca(X, "gaussian", 3, landmarks=rows_of(50, 5, seed=9) + 3.0)
    assert contains(outside, X)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"max_features": 2}, "max_features is 2, which gives at most 2 components, and c=4; raise it"),
        ({"max_features": 101}, "max_features is 101, and X has 100 rows"),
        ({"max_features": 0}, "max_features is 0; give a whole number"),
        ({"max_features": 20, "method": "dense"}, "max_features=20 forces method='features', and method='dense'"),
        ({"max_features": 20, "method": "krylov"}, "forces method='features'"),
        ({"max_features": 20, "products": "exact"}, "needs no features"),
        ({"max_features": 20, "landmarks": [1, 2]}, "landmarks= are the features, and max_features="),
        ({"landmarks": [1, 2, 3, 4, 100]}, "landmarks has row number 100, and X has rows 0 to 99"),
        ({"landmarks": [1, 2, 3, 4, -1]}, "row number -1"),
        ({"landmarks": np.ones((5, 2))}, "columns"),
        ({"landmarks": [1, 2]}, "the number of different landmarks is 2, which gives at most 2 components"),
        ({"landmarks": []}, "landmarks must be whole numbers of rows"),
        ({"landmarks": [0.5, 1.5]}, "landmarks must be whole numbers of rows"),
        ({"landmarks": np.full((5, 3), np.nan)}, "landmarks contains NaN"),
        ({"landmarks": [1, 2, 3, 4], "features": "monomial"}, "landmarks= make a map of pivots"),
        ({"guaranteed": "yes"}, "guaranteed"),
    ],
)
def test_bad_budgets_are_refused(options, text):
    with pytest.raises((ValueError, TypeError), match=text):
        fk.kpca(rows_of(100, 3), "gaussian", 4, **options)


def test_features_within_a_budget():
    X = rows_of(1200, 6)
    F = fk.features(X, "gaussian", max_features=40)
    assert F.shape == (1200, 40) and F.residual_trace > 1e-3 * F.trace()
    K = F.kernel.block(X - F.shift, X - F.shift)
    left = K - (F @ np.eye(40)) @ (F @ np.eye(40)).T
    np.testing.assert_allclose(np.trace(left), F.residual_trace, rtol=1e-9)
    assert np.linalg.eigvalsh(left)[0] > -1e-9
    assert fk.features(X, "polynomial", degree=1, max_features=40).shape[1] <= 7
    assert np.array_equal(fk.features(X, "gaussian", landmarks=[3, 1, 4]).map.pivots, X[[3, 1, 4]] - F.shift)
    for options, text in (
        ({"tol": 1e-6}, "raise tol or max_features"),
        ({"landmarks": [1]}, "landmarks= are the features"),
        ({"features": "nothing"}, "has no feature map 'nothing' of at most 10 features"),
    ):
        with pytest.raises(ValueError, match=text):
            fk.features(X, "gaussian", max_features=10, **options)


def test_rows_of_dask_and_on_disk_give_the_same_bounds(tmp_path):
    da = pytest.importorskip("dask.array")
    X = rows_of(9000, 5)
    np.save(tmp_path / "X.npy", X)
    options = {"sigma": 1.5, "max_features": 100}
    first = fk.kpca(X, "gaussian", 3, **options)
    second = fk.kpca(np.load(tmp_path / "X.npy", mmap_mode="r"), "gaussian", 3, **options)
    assert np.array_equal(first.eigenvalue_bounds, second.eigenvalue_bounds) and first.bound_kind == "probabilistic"
    third = fk.kpca(da.from_array(X, chunks=(2500, 5)), "gaussian", 3, **options)
    assert third.bound_kind == "probabilistic"
    # other tasks, so other draws: of the same residual
    np.testing.assert_allclose(third.info["residual_norm"], first.info["residual_norm"], rtol=0.2)
