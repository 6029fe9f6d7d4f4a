"""What attacks on kpca, gram and features found."""

import attack_cases as cases
import numpy as np
import pytest
from peak import traced
from quiet import silent

import fastkpca as fk
from fastkpca.errors import ComponentsWarning
from fastkpca.kernels import get_kernel
from fastkpca.maps.monomial import PolynomialMap
from fastkpca.maps.pivots import PivotMap
from fastkpca.solve.certificate import FeatureSums, feature_trace


def fitted(exact, X, kernel, c, **options):
    """A model whose intervals hold."""
    model = silent(fk.kpca, X, kernel, c, **options)
    for what, excess in [*cases.check_eigenvalues(model, exact), *cases.check_trace(model, exact)]:
        assert excess <= 0, what
    return model


@pytest.mark.parametrize("method", ["dense", "krylov", "auto"])
def test_clusters_far_apart_are_as_certain_as_their_coordinates(method):
    rng = np.random.default_rng(0)
    centres = 1e6 * rng.standard_normal((3, 3))
    X = centres[rng.integers(3, size=60)] + rng.standard_normal((60, 3))
    fitted(cases.reference("gaussian", X, {"sigma": 1.0}), X, "gaussian", 3, sigma=1.0, tol=1e-12, method=method)


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4])
def test_the_total_variance_of_features_allows_for_rounding(offset):
    X = np.random.default_rng(1).standard_normal((100, 2))
    p = {"degree": 4, "offset": offset, "scale": 0.1}
    exact = cases.reference("polynomial", X, p)
    model = fk.kpca(X, "polynomial", 2, method="features", features="monomial", tol=1e-3, **p)
    low, high = (99 * x for x in model.total_variance_bounds)
    assert low <= exact.trace - exact.trace_error < exact.trace + exact.trace_error <= high
    # features in float64 against the same in longdouble
    rounding = PolynomialMap(2, 4, 0.1, offset).rounding
    assert high - low <= 8 * rounding * np.sqrt(exact.trace * exact.norm_K * 100) + 1e-12 * exact.trace


def test_the_trace_of_features_widens_by_what_is_left_out():
    low, high = feature_trace(FeatureSums(10, 5.0, 0.5, 8.0, entry_defect=1e-3, rounding=0.0))
    assert (low, high) == pytest.approx((4.99, 5.51), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "kernel, p", [("gaussian", {"sigma": 1.0}), ("linear", {}), ("polynomial", {"degree": 2, "scale": 1.0})]
)
def test_krylov_on_a_handful_of_rows(n, kernel, p):
    """Too few rows for a map to start from."""
    X = np.random.default_rng(n).standard_normal((n, 3))
    fitted(cases.reference(kernel, X, p), X, kernel, n - 1, method="krylov", **p)


def test_what_pivots_leave_indefinite_counts_rows_larger_than_every_pivot():
    kernel = get_kernel("polynomial", degree=2)
    pivots = np.random.default_rng(0).standard_normal((6, 2))
    feature_map = PivotMap(kernel, pivots)
    X = np.vstack([pivots, 1e6 * np.ones((1, 2))])  # of the span of the pivots' features, and not among them
    K = kernel.block(X, X)
    trace = float(np.trace(K))
    assert 7 * feature_map.defect < 1e-6 * feature_map.defect_norm(7, trace)
    Phi = feature_map.features(X).astype(np.longdouble)
    exact, _ = cases.gram_long("polynomial", X, {"degree": 2, "scale": 1.0, "offset": 1.0})
    lowest = np.linalg.eigvalsh(np.asarray(exact - Phi @ Phi.T, dtype=np.float64))[0]
    assert -lowest <= feature_map.defect_norm(7, trace)


@pytest.mark.parametrize("scale", [1e-6, 1e-8, 1e-10, 1e-12])
def test_the_norm_of_a_nearly_constant_matrix_allows_for_rounding(scale):
    """Row means from the float32 search are off by 1e-8 of K, up to a thousand times all that centring leaves."""
    X = np.random.default_rng(5).standard_normal((120, 9))
    p = {"scale": scale, "offset": -1.6}
    model = fitted(cases.reference("tanh", X, p), X, "tanh", 5, method="krylov", tol=1e-9, **p)
    assert model.info["search_passes"] > 0


def test_what_a_truncated_map_leaves_out_is_not_called_zero():
    X = np.random.default_rng(0).standard_normal((100, 2))
    exact = cases.reference("gaussian", X, {"sigma": 30.0})
    with pytest.warns(ComponentsWarning) as caught:
        model = fk.kpca(X, "gaussian", 20, sigma=30.0, method="features", features="monomial", tol=1e-3)
    assert model.n_components < 7 and "within the accuracy reached" in str(caught[0].message)
    most = float(str(caught[0].message).split("(at most ")[1].split(")")[0])
    assert exact.values[model.n_components] <= 1.06 * most <= 1e-3 * exact.size


@pytest.mark.parametrize(
    "kernel, p",
    [
        ("tanh", {"scale": 1e-50, "offset": 0.0}),
        ("polynomial", {"degree": 5, "scale": 1e10, "offset": 1.0}),
        ("polynomial", {"degree": 5, "scale": 1e-10, "offset": 0.0}),
    ],
)
def test_krylov_beyond_the_range_of_float32(kernel, p):
    X = np.random.default_rng(0).standard_normal((80, 4))
    assert fitted(cases.reference(kernel, X, p), X, kernel, 3, method="krylov", **p).info["search_passes"] == 0


@pytest.mark.parametrize("method", ["dense", "krylov", "auto"])
@pytest.mark.parametrize("size", [1e-170, 1e150])
def test_values_whose_squares_leave_float64_are_refused(size, method):
    K = np.eye(30) * size
    with pytest.raises(ValueError, match="squares leave the range of float64"):
        fk.kpca(K, "precomputed", 3, method=method)
    if size > 1 and method != "krylov":
        with pytest.raises(ValueError, match="squares leave the range of float64"):
            fk.kpca(np.diag(np.full(30, size**0.5)), "linear", 3, method=method)
        with pytest.raises(ValueError, match=r"largest number in X is 1e\+150; its square leaves the range of float64"):
            fk.kpca(np.diag(np.full(30, size)), "linear", 3, method=method)


@pytest.mark.parametrize("kernel, p", [("gaussian", {"sigma": 1.0}), ("polynomial", {"degree": 2})])
def test_a_feature_matrix_keeps_its_tolerance_on_rows_beyond_the_sample(kernel, p):
    rng = np.random.default_rng(3)
    n = 4400
    X = rng.standard_normal((n, 2))
    X[rng.permutation(n)[:3]] = 30.0 + rng.standard_normal((3, 2)) if kernel == "gaussian" else 1e4 * np.eye(3, 2)
    F = fk.features(X, kernel, tol=1e-8, features="pivots", **p)
    diagonal = np.ones(n) if kernel == "gaussian" else ((X**2).sum(axis=1) + 1) ** 2
    Phi = F @ np.eye(F.shape[1])
    assert (diagonal - (Phi**2).sum(axis=1)).sum() - 1e-13 * diagonal.sum() <= F.residual_trace
    assert F.residual_trace <= 1e-8 * diagonal.sum()
    if kernel == "gaussian":
        X = rng.standard_normal((20_000, 2))
        X[0] = 300.0
        with pytest.raises(ValueError, match="reaches a residual of .* tol=1e-08; raise tol"):
            fk.features(X, kernel, tol=1e-8, features="monomial", sigma=5.0)


@pytest.mark.parametrize("n, c", [(2, 1), (5, 4), (20, 8), (28, 11)])
def test_krylov_whose_first_block_is_the_whole_space(n, c):
    """A matrix that is not known to be semidefinite needs its norm, and one pass had no row means to take it about."""
    A = np.random.default_rng(n).standard_normal((n, n))
    K = A @ A.T
    exact = cases.spectrum(K.astype(np.longdouble))
    assert fitted(exact, K, "precomputed", c, method="krylov").n_components == c


def test_a_mixture_of_very_many_gaussians_is_not_planned():
    """54,000 of them for 40 rows: the table of all cuts between them would take 22 GB."""
    X, given = np.random.default_rng(0).random((40, 2)), {"alpha": 1.36e-3, "length_scale": 1e-2, "tol": 5.6e-10}

    def refused():
        with pytest.raises(ValueError, match="offers no products named 'split' on these rows"):
            fk.gram(X, "rational_quadratic", products="split", **given)

    assert traced(refused) < 1e8
