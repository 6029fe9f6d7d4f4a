"""A loose tolerance: what a map leaves out is bounded by a sample of the rows, and by intervals of second order."""

from dataclasses import replace

import intervals
import numpy as np
import pytest
import second_order_calls as cases
from reference import eigh, long_gaussian

import fastkpca as fk
from fastkpca.errors import CertificateWarning
from fastkpca.fit import feature_route
from fastkpca.fit.narrowing import bounded_again, refined_by_pass
from fastkpca.kernels import get_kernel
from fastkpca.maps.draws import scaled_residuals
from fastkpca.maps.passes import moments_and_draws
from fastkpca.maps.pivots import PivotMap
from fastkpca.rows.view import Rows
from fastkpca.solve.sampled import ScaledSample, sampled_bound, upper_share


def rows_of(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def hold(model, X, **more):
    true = eigh(model.kernel.block(X - model.shift, X - model.shift))[0]
    intervals.hold(model, true, 1e-9 * true[model.n_components - 1], **more)


def test_a_loose_tolerance_is_met_with_a_sample_and_no_warning():
    X = rows_of(1500, 6)
    model = fk.kpca(X, "gaussian", 4, tol=1e-2, features="pivots")
    assert model.bound_kind == "probabilistic" and 0 < model.failure_probability <= 1e-6
    assert model.info["residual_norm"] < 0.2 * model.info["residual_trace"]
    hold(model, X, tol=1e-2)


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


def test_what_draws_say_of_the_vectors_has_no_bias():
    rng = np.random.default_rng(0)
    B, V = rng.standard_normal((2, 30, 3))
    R, found = B @ B.T, []
    r = R.diagonal()
    for _ in range(4000):
        index, counts = np.unique(rng.choice(30, 3, p=r / r.sum()), return_counts=True)
        scale = np.sqrt(counts / r[index])
        drawn = scale[:, None] * R[np.ix_(index, index)] * scale
        found.append(ScaledSample(drawn, 3, 0.0, index, scale, r.sum()).moved(V[index]))
    assert (np.abs(np.mean(found, axis=0) - V.T @ R @ V) <= np.std(found, axis=0) / 15).all()


@pytest.mark.parametrize("sigma, d", [(0.5, 3), (2.0, 3), (20.0, 3), (1.0, 10)])
def test_error_of_the_scaled_residuals_is_bounded(sigma, d):
    pivots, X = np.split(rows_of(700, d), [60])  # what is left of a pivot is rounding, and its share of no use
    kernel = get_kernel("gaussian", sigma=sigma)
    chosen = PivotMap(kernel, pivots)
    residual, counts = chosen.residual(X), np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    found, error = scaled_residuals(kernel, chosen, X, residual, counts, 0.0)
    assert np.array_equal(found, scaled_residuals(kernel, chosen, X, residual, counts, 0.0, n_threads=4)[0])
    # the semidefinite matrix that the shift of the factor leaves, in extended precision
    L = chosen.factor.astype(np.longdouble)
    K, Phi = (long_gaussian(A, X, sigma) for A in (X, pivots))
    for i in range(60):
        Phi[i] = (Phi[i] - L[i, :i] @ Phi[:i]) / L[i, i]
    scale = np.sqrt(counts / residual)
    exact = (K - Phi.T @ Phi) * scale[:, None] * scale
    assert np.linalg.norm((found - exact).astype(np.float64), 2) <= error


def test_a_zero_residual_needs_no_sample():
    X = np.repeat(rows_of(12, 3), 50, axis=0)
    model = fk.kpca(X, "gaussian", 3, tol=1e-2, features="pivots")
    assert model.bound_kind == "guaranteed"
    hold(model, X)


def test_a_budget_of_features_is_kept_and_needs_no_tolerance():
    X = rows_of(1200, 8)
    model = fk.kpca(X, "gaussian", 4, max_features=60)
    assert model.info["n_features"] == 60 and model.info["tol"] is None
    hold(model, X)
    assert intervals.width(model) > 1e-3
    assert fk.plan(X, "gaussian", 4, max_features=60).chosen.n_features == 60
    exact = fk.kpca(X, "polynomial", 4, degree=1, max_features=60)
    assert exact.info["n_features"] <= 10 and exact.bound_kind == "guaranteed"


def test_a_budget_and_a_tolerance_warn_where_the_budget_is_too_small():
    X = rows_of(2500, 8)
    with pytest.warns(CertificateWarning, match="with 60 features .* more features, or a larger tol, would do"):
        fk.kpca(X, "gaussian", 4, max_features=60, tol=1e-3)
    model = fk.kpca(X, "gaussian", 4, max_features=1500, tol=5e-2)
    assert model.info["n_features"] < 1000


def test_landmarks_by_number_and_as_rows_are_the_same():
    X, index = rows_of(1200, 5) + 3.0, np.random.default_rng(5).choice(1200, 80, replace=False)
    first, second = (fk.kpca(X, "gaussian", 3, landmarks=given) for given in (index, X[index]))
    assert np.array_equal(first.eigenvalues, second.eigenvalues)
    assert np.array_equal(first.projector.map.pivots, X[index] - first.shift)
    hold(first, X)
    outside = fk.kpca(X, "gaussian", 3, landmarks=rows_of(50, 5, seed=9) + 3.0)
    hold(outside, X)


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


@pytest.mark.parametrize("draws", [1, 30, 3000, 10**5, 10**8, 10**12])
@pytest.mark.parametrize("failure", [1e-12, 1e-6, 0.5, 0.999])
def test_upper_share_is_above_the_root_in_fifty_digits(draws, failure, attack):
    mpmath = pytest.importorskip("mpmath")
    rng = attack.rng(f"share {failure}", draws)
    ends = 10.0 ** -rng.uniform(0, 15, 8)
    x = np.concatenate([[0.0, 1e-300, 1e-16, 1 - 1e-16], rng.random(8), ends, 1.0 - ends])
    with mpmath.workdps(50):
        allowed = mpmath.log(1 / mpmath.mpf(failure)) / draws
        for p, q in zip(map(mpmath.mpf, x), map(mpmath.mpf, upper_share(x, draws, failure))):
            assert p <= q <= 1
            for at, sign in ((q, 1), (q * (1 - 1e-7), -1)):  # it is rounded up, and by no more than that
                if p < at < 1 and draws > 1 and p < 1 - 1e-6:
                    divergence = (p * mpmath.log(p / at) if p else 0) + (1 - p) * mpmath.log((1 - p) / (1 - at))
                    assert sign * (divergence - allowed) >= -(sign < 0) * 1e-6 * allowed


def test_no_better_than_the_trace_is_the_trace_for_certain():
    bound = sampled_bound(3.0, ScaledSample(np.ones((1, 1)), 1, 0.0), 1e-6)
    assert (bound.mu, bound.failure_probability) == (3.0, 0.0)
    bound = sampled_bound(3.0, ScaledSample(np.eye(100), 100, 0.0), 1e-6)
    assert 0.0 < bound.mu < 3.0 and bound.failure_probability == 1e-6


# Second order: from rows of what a map leaves out, and from a pass, held against LAPACK -----------------------------


def fit(X, how="rows", failure=1e-3, c=3, weights=None, count=600, **options):
    given = cases.Call(X, c, {"sigma": 2.5, "max_features": 60} | options, weights, how, count=count)
    return cases.fitted(given, 0, failure), given


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
    assert "residual_rows" in first.info and "residual_rows" not in merged.info
    intervals.hold(merged, cases.reference(cases.Call(X, 3, {}), merged)[0])


def test_a_tolerance_is_met_by_a_pass_or_by_rows():
    X = rows_of(900, 12)
    for tol in (1e-2, 1e-4):
        model = fk.kpca(X, "gaussian", 5, tol=tol, method="features")
        assert "residual_rows" in model.info
        intervals.hold(model, cases.reference(cases.Call(X, 5, {}), model)[0], tol=tol)


def test_a_better_bound_needs_no_second_pass(monkeypatch):
    """What a pass has found is kept: by another bound on the rest it gives the intervals of another pass."""
    given = []
    recorded = lambda *a: given.append((refined_by_pass(*a), *a[:4])) or given[-1][0]  # noqa: E731
    monkeypatch.setattr(feature_route, "refined_by_pass", recorded)
    fk.kpca(rows_of(900, 12), "gaussian", 5, tol=1e-3, method="features")
    before, known, c, sums, problem = given[-1]
    for times in (0.3, 1.0):
        less = replace(sums, residual=replace(sums.left_out, mu=times * sums.left_out.mu))
        again, anew = bounded_again(before, known, less), refined_by_pass(known, c, less, problem)
        for found in (again.found, anew.found):
            assert (found.values >= found.certificate.eigenvalue_bounds[:, 0]).all()
        np.testing.assert_allclose(
            again.found.certificate.eigenvalue_bounds, anew.found.certificate.eigenvalue_bounds, rtol=1e-12
        )
        assert (again.width < before.width) == (times < 1.0)


def test_no_pivots_are_added_where_a_pass_is_cheaper():
    X = rows_of(4000, 6)
    model = fk.kpca(X, "laplacian", 3, tol=1e-2)
    assert model.info["residual_rows"] == len(X)
    assert model.info["n_features"] == fk.plan(X, "laplacian", 3, tol=1e-2).chosen.n_features
    intervals.hold(model, cases.reference(cases.Call(X, 3, {}), model)[0], tol=1e-2)


def test_a_tolerance_is_met_for_certain():
    X = rows_of(12_000, 5)
    model = fk.kpca(X, "gaussian", 4, tol=1e-3, guaranteed=True, method="features")
    assert (model.bound_kind, model.info["residual_rows"]) == ("guaranteed", 12_000)
    assert intervals.width(model) <= 1e-3
    intervals.meet(model, fk.kpca(X, "gaussian", 4, tol=1e-9))


def test_an_exact_map_is_left_as_it_is():
    model = fk.kpca(rows_of(2000, 4), "polynomial", 3, degree=2, tol=1e-2)
    assert model.bound_kind == "guaranteed" and "residual_rows" not in model.info
