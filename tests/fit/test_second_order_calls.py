"""kpca with intervals of second order, held against LAPACK: from rows of what a map leaves out, and from a pass."""

from __future__ import annotations

import numpy as np
import pytest
import second_order_calls as cases

import fastkpca as fk


def fit(X, how="rows", failure=1e-3, c=3, weights=None, count=600, **options):
    given = cases.Call(X, c, {"sigma": 2.5, "max_features": 60} | options, weights, how, count=count)
    return cases.fitted(given, 0, failure), given


def rows_of(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("how", ["rows", "pass"])
def test_better_eigenvalues_than_those_of_the_map(how):
    X = rows_of(800, 5)
    model, given = fit(X, how)
    first = fk.kpca(X, "gaussian", None, sigma=2.5, max_features=60)  # all: no second order
    true = cases.reference(given, model)[0][:3]
    assert "residual_rows" in model.info and "residual_rows" not in first.info
    errors = [np.abs(x.eigenvalues[:3] - true).max() for x in (model, first)]
    assert errors[0] < 0.3 * errors[1]
    widths = [np.ptp(x.eigenvalue_bounds[:3], axis=1).max() for x in (model, first)]
    assert widths[0] < 0.5 * widths[1]
    assert (model.info["residual_rows"] == 800) == (how == "pass") and "second-order probabilistic" in repr(model)


@pytest.mark.parametrize("how", ["rows", "pass"])
def test_scores_are_those_of_the_eigenvectors(how):
    """Orthogonal, as long as the eigenvalues say; of new rows as of old ones; and nearer to those of LAPACK."""
    X = rows_of(800, 5)
    model, given = fit(X, how)
    products = model.score.T @ model.score
    np.testing.assert_allclose(products, np.diag(model.eigenvalues), rtol=0, atol=1e-9 * model.eigenvalues[0])
    np.testing.assert_allclose(fk.kpca_project(model, X), model.score, rtol=0, atol=1e-9)
    _, vectors = cases.reference(given, model)
    first = fk.kpca(X, "gaussian", None, sigma=2.5, max_features=60)
    sines = []
    for score in (model.score, first.score):
        u = score[:, 2] / np.linalg.norm(score[:, 2])
        sines.append(np.linalg.norm(u - vectors[:, 2] * (vectors[:, 2] @ u)))
    assert sines[0] < sines[1]


def test_squared_errors_and_pre_images_take_the_dual_axes():
    X = rows_of(500, 3)
    model, _ = fit(X, "pass", max_features=20)
    axes, projector = model.projector.axes, model.projector
    assert np.abs(axes.T @ axes - np.eye(3)).max() > 1e-3
    np.testing.assert_allclose(axes.T @ projector.duals, np.eye(3), atol=1e-12)
    Phi = projector.map.features(X - model.shift) - projector.mean
    inside = Phi @ axes @ np.linalg.solve(axes.T @ axes, axes.T)
    within = ((Phi - inside) ** 2).sum(axis=1)
    left = projector.map.residual(X - model.shift)
    np.testing.assert_allclose(fk.kpca_spe(model, X), within + left, rtol=1e-9)


def test_merged_models_keep_the_bounds_of_first_order():
    X = rows_of(1200, 4)
    first, _ = fit(X[:700], "pass", keep_moments=True)
    with pytest.warns(fk.errors.CertificateWarning):
        merged = fk.kpca_update(first, X[700:])
    low, high = merged.eigenvalue_bounds.T
    true = cases.reference(cases.Call(X, 3, {}), merged)[0][:3]
    assert "residual_rows" in first.info and "residual_rows" not in merged.info
    assert (low <= true).all() and (true <= high).all()


def test_a_tolerance_is_met_by_a_pass_or_by_rows():
    X = rows_of(900, 12)
    for tol in (1e-2, 1e-4):
        model = fk.kpca(X, "gaussian", 5, tol=tol, method="features")
        true = cases.reference(cases.Call(X, 5, {}), model)[0][:5]
        low, high = model.eigenvalue_bounds.T
        assert "residual_rows" in model.info
        assert (high - low).max() <= tol * model.eigenvalues[0]
        assert (low <= true).all() and (true <= high).all()


def test_a_tolerance_is_met_for_certain():
    X = rows_of(12_000, 5)
    model = fk.kpca(X, "gaussian", 4, tol=1e-3, guaranteed=True, method="features")
    assert (model.bound_kind, model.info["residual_rows"]) == ("guaranteed", 12_000)
    assert np.ptp(model.eigenvalue_bounds, axis=1).max() <= 1e-3 * model.eigenvalues[0]
    fine = fk.kpca(X, "gaussian", 4, tol=1e-9)
    low, high = model.eigenvalue_bounds.T
    assert (low <= fine.eigenvalue_bounds[:, 1]).all() and (fine.eigenvalue_bounds[:, 0] <= high).all()


def test_an_exact_map_is_left_as_it_is():
    model = fk.kpca(rows_of(2000, 4), "polynomial", 3, degree=2, tol=1e-2)
    assert model.bound_kind == "guaranteed" and "residual_rows" not in model.info


def test_threads_give_the_same_bits():
    models = [fit(rows_of(3000, 6), how, n_threads=t)[0] for how in ("rows", "pass") for t in (1, 3)]
    for one, other in (models[:2], models[2:]):
        np.testing.assert_array_equal(one.eigenvalue_bounds, other.eigenvalue_bounds)
        np.testing.assert_array_equal(one.score, other.score)
