"""Weights of rows: a whole number is so many copies of the row, on every route and for every public function."""

import intervals
import numpy as np
import pytest
from quiet import silent
from threadpoolctl import threadpool_limits

import fastkpca as fk

N, D, C = 90, 3, 4
ROUTES = {
    "dense, gaussian": ("gaussian", {"sigma": 1.5}, {"method": "dense"}),
    "dense, linear": ("linear", {}, {"method": "dense"}),
    "dense, polynomial": ("polynomial", {"degree": 2, "offset": 0.7}, {"method": "dense"}),
    "dense, laplacian": ("laplacian", {"length_scale": 2.0}, {"method": "dense"}),
    "dense, tanh": ("tanh", {"scale": 0.1, "offset": 0.2}, {"method": "dense"}),
    "krylov, tanh": ("tanh", {"scale": 0.1, "offset": 0.2}, {"method": "krylov"}),
    "krylov, gaussian": ("gaussian", {"sigma": 1.5}, {"method": "krylov"}),
    "krylov, grid": ("gaussian", {"sigma": 1.5}, {"products": "grid", "tol": 1e-6}),
    "monomial, gaussian": ("gaussian", {"sigma": 2.5}, {"features": "monomial"}),
    "monomial, linear": ("linear", {}, {"features": "monomial"}),
    "monomial, polynomial": ("polynomial", {"degree": 2, "offset": 0.7}, {"features": "monomial"}),
    "pivots, gaussian": ("gaussian", {"sigma": 1.5}, {"features": "pivots"}),
    "pivots, laplacian": ("laplacian", {"length_scale": 2.0}, {"features": "pivots"}),
    "fourier, gaussian": ("gaussian", {"sigma": 1.5}, {"features": "fourier", "tol": 1e-6}),
}
HOLDS_ROWS = [name for name in ROUTES if name.split(",")[0] in ("dense", "krylov")]
MAPS = [name for name in ROUTES if name not in HOLDS_ROWS]


def data(seed=0):
    """Rows, whole weights with zeros among them, and new rows; rows of weight zero lie elsewhere."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * [1.0, 0.8, 0.5] + 3.0
    w = rng.integers(1, 6, N).astype(float)
    w[:4] = 0.0
    X[:4] += 1.0
    w[X[:, 0] > 3.5] *= 3  # the weighted mean is another one
    return X, w, rng.standard_normal((12, D)) * 1.2 + 3.2


def fit(route, X, w=None, **more):
    kernel, parameters, options = ROUTES[route]
    c = 2 if kernel == "linear" else C
    return silent(fk.kpca, X, kernel, c, sample_weight=w, **({"tol": 1e-9} | options | parameters | more))


def slack(*models):
    """Angle that the subspaces of the models may differ by."""
    return 1e-8 + sum(float(model.angle_bounds.max()) for model in models)


def fit_like(first, X, w):
    return silent(fk.kpca, X, like=first, sample_weight=w, keep_moments=True, tol=1e-9)


def same_up_to_signs(A, B, atol):
    signs = np.sign(np.sum(A * B, axis=0))
    np.testing.assert_allclose(A * signs, B, atol=atol, rtol=0)


def assert_same_model(one, other, new, scale=1.0):
    """Every public function gives the same of two models, whose weights differ by a factor ``scale``."""
    angle = slack(one, other)
    size = float(np.abs(fk.kpca_project(other, new)).max())
    same_up_to_signs(fk.kpca_project(one, new), fk.kpca_project(other, new), angle * size)
    t2 = fk.kpca_t2(one, new) * one.latent[0] / scale, fk.kpca_t2(other, new) * other.latent[0]
    if scale == 1.0:
        np.testing.assert_allclose(*t2, rtol=1e3 * angle)
    spe = [fk.kpca_spe(model, new, bounds=True) for model in (one, other)]
    diagonal = float(np.abs(spe[1][0]).max()) + size**2
    np.testing.assert_allclose(spe[0][0], spe[1][0], atol=10 * angle * diagonal)
    same_preimages(one, other, new, angle)


def same_preimages(one, other, new, angle):
    """By descents from the same rows; of the other kernels a descent may end in one minimum or another."""
    kernel = type(one.kernel).__name__
    methods = {"Linear": ["linear"], "Gaussian": ["fixed-point"], "Polynomial": ["gradient"]}.get(kernel, [])
    signs = np.sign(np.sum(fk.kpca_project(one, new) * fk.kpca_project(other, new), axis=0))
    Z = fk.kpca_project(one, new)
    for method in methods:
        options = {"method": method, "tol": 1e-9, "max_iter": 5000} | ({} if method == "linear" else {"start": new})
        found = fk.kpca_preimage(one, Z, **options), fk.kpca_preimage(other, Z * signs, **options)
        atol = 1e-3 if method == "gradient" else 1e-5
        np.testing.assert_allclose(*found, atol=atol + 10 * angle, err_msg=method)
    if kernel in ("Linear", "Gaussian"):
        np.testing.assert_allclose(fk.kpca_denoise(one, new), fk.kpca_denoise(other, new), atol=1e-4 + 10 * angle)


@pytest.mark.parametrize("route", ROUTES)
def test_whole_weights_are_repeated_rows(route):
    X, w, new = data()
    times, present = w.astype(int), w > 0
    one, other = fit(route, X, w), fit(route, np.repeat(X, times, axis=0))
    assert_same_model(one, other, new)
    # approximations differ in what they leave out, within the stated bounds; what is exact is equal to rounding
    apart, angle = 2 * max(1e-12, intervals.width(one), intervals.width(other)), slack(one, other)
    for found, expected in ((one.eigenvalues, other.eigenvalues), (one.latent, other.latent)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=apart * expected[0])
    np.testing.assert_allclose(one.explained, other.explained, rtol=apart + 1e-12, atol=150 * apart)
    size = np.abs(other.score).max()
    same_up_to_signs(np.repeat(one.score, times, axis=0), other.score, angle * size)
    np.testing.assert_allclose(np.repeat(one.tsquared, times), other.tsquared, rtol=1e3 * angle, atol=angle)
    copies = np.add.reduceat(other.coeff, np.r_[0, np.cumsum(times[present])[:-1]], axis=0)
    assert not one.coeff[~present].any() and one.weight_sum == w.sum() and one.n_samples == N
    same_up_to_signs(one.coeff[present], copies, 10 * angle * np.abs(copies).max())
    # rows of weight zero have the scores of new rows
    np.testing.assert_allclose(one.score[~present], fk.kpca_project(one, X[~present]), rtol=0, atol=1e-9 * size)
    assert one.projector.grows_with_n == (route in HOLDS_ROWS)


@pytest.mark.parametrize("route", ROUTES)
def test_small_weights_change_the_variances_alone(route):
    """Weights x 0.01: eigenvalues scale, scores, SPE and pre-images stay; variances divide by the sum minus one."""
    X, w, new = data()
    one, other = fit(route, X, 0.01 * w), fit(route, X, w)
    np.testing.assert_allclose(one.eigenvalues, 0.01 * other.eigenvalues, rtol=1e-6)
    np.testing.assert_allclose(one.latent, one.eigenvalues / (0.01 * w.sum() - 1), rtol=1e-12)
    assert_same_model(one, other, new, scale=one.latent[0] / other.latent[0])
    z = fk.kpca_project(one, new)
    np.testing.assert_allclose(fk.kpca_t2(one, new), np.sum(z**2 / one.latent, axis=1), rtol=1e-9)


def test_far_rows_that_only_weight_brings_in():
    """A second round of pivots goes where weight times residual is large."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20000, 2))
    X[17] += 40.0
    w = np.ones(len(X))
    w[17] = 1e4
    model = fk.kpca(X, "gaussian", 3, sigma=3.0, features="pivots", tol=1e-6, sample_weight=w)
    heavy = fk.kpca(np.vstack([X, np.repeat(X[17:18], 9999, axis=0)]), "gaussian", 3, sigma=3.0, tol=1e-6)
    np.testing.assert_allclose(model.eigenvalues, heavy.eigenvalues, rtol=0, atol=2e-6 * heavy.eigenvalues[0])


def test_the_default_bandwidth_and_a_fraction_are_those_of_repeated_rows():
    X, w, _ = data()
    copies = np.repeat(X, w.astype(int), axis=0)
    one, other = fk.kpca(X, "gaussian", 2, sample_weight=w), fk.kpca(copies, "gaussian", 2)
    assert one.kernel == other.kernel
    for kernel, parameters in (("polynomial", {"degree": 2}), ("gaussian", {"sigma": 2.0})):
        one, other = fk.kpca(X, kernel, 0.9, sample_weight=w, **parameters), fk.kpca(copies, kernel, 0.9, **parameters)
        assert one.n_components == other.n_components
        assert one.explained.sum() >= 90 - 1e-6


WRONG = {
    "length": (np.ones(3), ValueError, r"shape \(3,\); give 90 numbers"),
    "negative": (np.r_[np.ones(89), -1.0], ValueError, r"contains -1.0 \(first at row 89\)"),
    "nan": (np.r_[np.nan, np.ones(89)], ValueError, r"contains NaN or infinity \(first at row 0\)"),
    "infinite": (np.r_[np.ones(89), np.inf], ValueError, r"contains NaN or infinity \(first at row 89\)"),
    "one row": (np.eye(90)[3] * 5, ValueError, "leaves 1 rows of positive weight"),
    "normalised": (np.full(90, 1 / 90), ValueError, r"sums to 1; .*scale them"),
    "words": (["a"] * 90, TypeError, "of the type <U1"),
    "matrix": (np.ones((90, 1)), ValueError, r"shape \(90, 1\)"),
    "masked": (
        np.ma.masked_less(np.arange(90), 2),
        ValueError,
        r"2 masked entries \(first at row 0\).*0 leaves a row out",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_weights(case):
    weights, error, text = WRONG[case]
    with pytest.raises(error, match=text):
        fk.kpca(data()[0], "gaussian", 2, sigma=1.0, sample_weight=weights)


def test_weights_that_leave_few_rows_and_those_with_an_empty_mask():
    X, w, _ = data()
    w[10:] = 0.0
    with pytest.warns(fk.errors.ComponentsWarning):
        model = fk.kpca(X, "gaussian", 20, sigma=1.0, sample_weight=w, method="dense")
    assert model.n_components <= np.count_nonzero(w) - 1
    found = fk.kpca(X, "gaussian", 2, sigma=1.0, sample_weight=w)
    assert fk.kpca(X, "gaussian", 2, sigma=1.0, sample_weight=np.ma.array(w)).eigenvalues[0] == found.eigenvalues[0]


@pytest.mark.parametrize("route", ["dense", "krylov"])
def test_scores_of_rows_with_small_weights_are_their_projections(route):
    """The root of a weight of 1e-6 would divide what the vectors of small eigenvalues err by."""
    rng = np.random.default_rng(1)
    X, w = rng.uniform(size=(60, 2)), 10.0 ** rng.uniform(-6, 6, 60)
    model = fk.kpca(X, "gaussian", 8, sigma=3.0, method=route, sample_weight=w)
    assert model.eigenvalues[-1] < 1e-6 * model.eigenvalues[0]
    np.testing.assert_allclose(fk.kpca_project(model, X), model.score, rtol=0, atol=5e-11)


@pytest.mark.parametrize("n", [58, 120])
def test_a_loaded_model_on_pivots_projects_to_the_same_bits_where_blas_has_two_threads(n, tmp_path):
    """Its triangular solve is made while it is read: with two threads of BLAS that gave other bits."""
    X = np.random.default_rng(n).standard_normal((n, 7))
    model = fk.kpca(X, "gaussian", 2, sigma=0.5, features="pivots", tol=1e-6)
    fk.save(model, tmp_path / "m.kpca")
    with threadpool_limits(2, "blas"):
        again = fk.load(tmp_path / "m.kpca")
        np.testing.assert_array_equal(again.projector.expansion(), model.projector.expansion())
    np.testing.assert_array_equal(fk.kpca_project(again, X, n_threads=1), fk.kpca_project(model, X, n_threads=1))


@pytest.mark.parametrize("route", MAPS)
def test_what_a_map_leaves_out_of_the_mean_is_an_average_by_weight(route):
    X, w, _ = data()
    first = fit_like(fit(route, X, w, **({} if "fourier" in route else {"tol": 0.1})), X, w)
    other = fit_like(first, X, 0.011 * w)
    assert np.isclose(other.mean_residual, first.mean_residual, rtol=1e-9)
    for found, same in zip(*(fk.kpca_spe(m, X[w > 0], bounds=True)[1].T for m in (first, other))):
        np.testing.assert_allclose(found, same, atol=1e-9 * np.abs(same).max(), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::fastkpca.errors.LimitsWarning")
@pytest.mark.parametrize("route", [*HOLDS_ROWS, "pivots, gaussian", "monomial, polynomial"])
@pytest.mark.parametrize(
    ("t2", "spe", "joint"), [("F", "box", False), ("chi2", "empirical", True), ("empirical", "empirical", True)]
)
def test_limits_are_those_of_repeated_rows(route, t2, spe, joint):
    X, w, new = data()
    one, other = fit(route, X, w), fit(route, np.repeat(X, w.astype(int), axis=0))
    angle = slack(one, other)
    options = {"confidence": 0.9, "t2": t2, "spe": spe, "joint": joint}
    many = np.vstack([new, X[w > 0]])
    for rows in [many] + [None] * (route in HOLDS_ROWS):
        found, same = fk.kpca_limits(one, rows, **options), fk.kpca_limits(other, rows, **options)
        assert np.isclose(found.t2, same.t2, rtol=1e-6 + 1e3 * angle)
        assert np.isclose(found.spe, same.spe, rtol=1e-6 + 1e3 * angle, atol=1e-9)


def test_limits_of_weights_that_count_few_rows():
    X, w, new = data()
    model = fit("dense, gaussian", X, w * (4.5 / w.sum()))  # four and a half rows
    assert np.isfinite(fk.kpca_limits(model, new, t2="F", spe="box").t2)
    few = fit("dense, gaussian", X, w * (3.5 / w.sum()))
    with pytest.raises(ValueError, match=r"sum of the weights is 3\.5.*chi2"):
        fk.kpca_limits(few, new, t2="F", spe="box")
    assert np.isfinite(fk.kpca_limits(few, new, t2="chi2", spe="box").t2)
    with pytest.raises(ValueError, match="rows"):
        fk.kpca_limits(few, t2="empirical")


@pytest.mark.parametrize("method", ["dense", "krylov"])
def test_precomputed_matrices(method, tmp_path):
    X, w, new = data()
    gauss = lambda A, B: np.exp(-((A[:, None] - B) ** 2).sum(axis=2) / 4.5)  # noqa: E731
    times = w.astype(int)
    copies = np.repeat(X, times, axis=0)
    one = fk.kpca(gauss(X, X), "precomputed", C, method=method, sample_weight=w, tol=1e-11)
    fk.save(one, tmp_path / "m.kpca")
    other = fk.kpca(gauss(copies, copies), "precomputed", C, method=method, tol=1e-11)
    diagonal = np.ones(len(new))
    for model in (one, fk.load(tmp_path / "m.kpca")):
        mine, theirs = (gauss(new, A) for A in (X, copies))
        np.testing.assert_allclose(fk.kpca_t2(model, mine), fk.kpca_t2(other, theirs), rtol=1e-6)
        found, same = (fk.kpca_spe(m, k, diagonal=diagonal, bounds=True) for m, k in ((model, mine), (other, theirs)))
        np.testing.assert_allclose(found[0], same[0], rtol=1e-6, atol=1e-9)
        Z = fk.kpca_project(model, mine)
        signs = np.sign(np.sum(Z * fk.kpca_project(other, theirs), axis=0))
        # two neighbours of the penalties that are tried may do equally well: a solver's error then chooses
        alpha = None if method == "dense" else 1e-3
        back = (fk.kpca_preimage(m, z, train=A, alpha=alpha) for m, z, A in ((model, Z, X), (other, Z * signs, copies)))
        np.testing.assert_allclose(*back, atol=2e-3 * np.ptp(X))


@pytest.mark.parametrize("route", ["monomial, gaussian", "pivots, gaussian", "monomial, polynomial"])
@pytest.mark.filterwarnings("ignore::fastkpca.errors.CertificateWarning")
def test_merged_and_updated_models(route, tmp_path):
    X, w, new = data()
    first = fit(route, X[:50], w[:50], keep_moments=True)
    merged = fk.kpca_merge(first, fit_like(first, X[50:], w[50:]))
    fk.save(fk.kpca_update(first, X[50:], sample_weight=w[50:]), tmp_path / "model.kpca")
    updated = fk.load(tmp_path / "model.kpca")
    repeated = fk.kpca_update(first, np.repeat(X[50:], w[50:].astype(int), axis=0))
    small = fk.kpca_update(fit_like(first, X[:50], 0.1 * w[:50]), X[50:], sample_weight=0.1 * w[50:])
    whole = fit(route, X, w)
    assert merged.weight_sum == updated.weight_sum == repeated.weight_sum == w.sum()
    for model in (merged, updated, repeated):
        low, high = fk.kpca_spe(model, new, bounds=True)[1].T
        lowest, highest = fk.kpca_spe(whole, new, bounds=True)[1].T
        tolerance = 10 * slack(model, whole)
        assert (low <= highest + tolerance).all() and (lowest <= high + tolerance).all()
        limit, same = (fk.kpca_limits(m, new, t2="F", spe="box").t2 for m in (model, whole))
        assert np.isclose(limit, same, rtol=1e-12)
    for a, b in zip(fk.kpca_spe(small, new, bounds=True)[1].T, fk.kpca_spe(updated, new, bounds=True)[1].T):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_weights_are_the_models_own():
    """Later changes of the user's array change nothing."""
    X, w, new = data()
    for route in ("dense, gaussian", "pivots, gaussian"):
        mine = w.copy()
        model = fit(route, X, mine)
        coeff, spe = model.coeff.copy(), fk.kpca_spe(model, new)
        again = fit(route, X, mine)
        mine[:] = 1.0
        np.testing.assert_array_equal(again.coeff, coeff)
        np.testing.assert_array_equal(fk.kpca_spe(again, new), spe)


# Values at the ends of the range -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"method": "dense"}, {"method": "krylov"}, {"features": "monomial"}, {"features": "pivots"}], ids=str
)
def test_statistics_beyond_the_range_are_errors(options):
    X, _, new = data()
    model = fk.kpca(X, "polynomial", 2, degree=3, **options)
    for value in (1e60, 1e200):
        for call in (fk.kpca_t2, fk.kpca_spe, lambda m, rows: fk.kpca_spe(m, rows, bounds=True)):
            with pytest.raises(ValueError, match=r"not finite.*row 1\)"):
                call(model, [[0.0] * 3, [value] * 3])
        for t2 in ("F", "chi2", "empirical"):
            with pytest.raises(ValueError, match="not finite"):
                fk.kpca_limits(model, [[0.0] * 3, [value] * 3], t2=t2, confidence=0.5)
    for call in (fk.kpca_project, fk.kpca_denoise):
        with pytest.raises(ValueError, match="range of float64|not finite|beyond|NaN"):
            call(model, [[0.0] * 3, [1e200] * 3])
    single = fk.kpca(X.astype(np.float32), "polynomial", 2, degree=3, **options)
    with pytest.raises(ValueError, match="float32"):
        fk.kpca_t2(single, np.full((1, 3), 1e9, dtype=np.float32))
    # SPE of 1e200: its square is no number, its limit is
    linear = fk.kpca(X, "linear", 1, method="dense")
    rows = [linear.shift + f * (new - linear.shift) for f in (1.0, 1e100)]
    small, large = (fk.kpca_limits(linear, x, t2="F", spe="box").spe for x in rows)
    assert np.isclose(large, 1e200 * small)


@pytest.mark.parametrize("features", ["pivots", "monomial"])
def test_updates_at_the_ends_of_the_range(features):
    X, _, _ = data()
    model = fk.kpca(X, "polynomial", 2, degree=3, features=features, keep_moments=True)
    for w in ([1e300, 1e300], [1e308, 1e308], [1e150, 0.0]):
        with pytest.raises(ValueError, match="sample_weight sums to"):
            fk.kpca_update(model, X[:2], sample_weight=w)
    for value in (1e155, 1e200):
        with pytest.raises(ValueError, match="finite|overflow|range"):
            fk.kpca_update(model, np.full((2, 3), value))


def test_one_weight_that_rules_leaves_numbers_and_the_scale_of_the_others():
    """An interval as wide as its eigenvalue says nothing of the SPE; and a mean is rounded far from zero."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((60, 2)), np.ones(60)
    w[3] = 1e14
    model = silent(fk.kpca, X, "gaussian", 3, sigma=0.05, center=False, sample_weight=w, method="dense")
    spe, interval = fk.kpca_spe(model, np.full((1, 2), 1e3), bounds=True)
    assert interval[0, 0] <= spe[0] == 1.0 <= interval[0, 1]
    X[3], w[3] = 50.0, 1e11
    scale = silent(fk.kpca, X + 1e8, "gaussian", 2, sigma=1e3, standardize=True, sample_weight=w).scale
    Z, W = (X + 1e8 - 1e8).astype(np.longdouble), w.astype(np.longdouble)
    exact = np.sqrt(W @ (Z - W @ Z / W.sum()) ** 2 / (W.sum() - 1))
    np.testing.assert_allclose(scale, exact.astype(float), rtol=1e-14)


@pytest.mark.parametrize("options", [{"method": "dense"}, {"method": "krylov"}, {"method": "features"}, {}])
@pytest.mark.parametrize("weights", [None, "ones", "uneven"])
def test_small_components_of_rows_in_float32(options, weights):
    """Their coefficients are large, and the products cancel: results are those of the same rows in float64, rounded."""
    X = np.random.default_rng(0).standard_normal((300, 1)).astype(np.float32)
    new = np.linspace(-3.0, 3.0, 40, dtype=np.float32)[:, None]
    uneven = np.random.default_rng(1).uniform(0.1, 3.0, 300)
    weights = {None: None, "ones": np.ones(300), "uneven": uneven}[weights]
    options = options | {"sigma": 3.0, "tol": 1e-10, "sample_weight": weights}
    one, two = (fk.kpca(rows, "gaussian", 9, **options) for rows in (X, X.astype(np.float64)))
    assert one.score.dtype == one.coeff.dtype == np.float32
    assert one.eigenvalues[8] < 1e-9 * one.eigenvalues[0]

    def near(a, b, most=1e-6):
        assert np.abs(a - b).max() <= most * np.abs(b).max()

    near(one.tsquared, two.tsquared)
    near(fk.kpca_spe(one, new), fk.kpca_spe(two, new.astype(np.float64)))
    near(fk.kpca_t2(one, new), fk.kpca_t2(two, new.astype(np.float64)))
    parts = (fk.kpca_contributions(m, x, train=X).values for m, x in ((one, new), (two, new.astype(np.float64))))
    near(*parts)
    places = (fk.kpca_preimage(model, two.score[:5].astype(np.float64), train=X) for model in (one, two))
    near(*places)
    weighted = 1.0 if weights is None else weights[:, None]
    np.testing.assert_allclose((weighted * one.score.astype(np.float64) ** 2).sum(axis=0), one.eigenvalues, rtol=1e-4)
    projected, again = fk.kpca_project(one, X), fk.kpca_project(one, new)
    assert projected.dtype == again.dtype == np.float32
    exact = fk.kpca_project(two, new.astype(np.float64))
    for j in range(9):
        near(projected[:, j], one.score[:, j], 1e-4)
        near(again[:, j], exact[:, j])
