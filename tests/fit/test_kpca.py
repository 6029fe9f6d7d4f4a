"""kpca and kpca_project through the public door: what a model holds, what is warned of, refused and planned."""

import re

import intervals
import numpy as np
import pytest
import reference
import scipy.spatial.distance
from quiet import silent
from sklearn.datasets import load_digits, load_iris, load_wine

import fastkpca as fk
from fastkpca.errors import CertificateWarning, ComponentsWarning, ScoresNotKeptError
from fastkpca.kernels.gaussian import median_distance
from fastkpca.products.exact import ExactSummation


def test_the_result_is_what_the_table_says():
    X = load_iris().data
    model = fk.kpca(X, "polynomial", 3, degree=2, offset=1.0)
    coeff, score, latent, tsquared, explained = model
    Kc = reference.center(reference.gram("polynomial", X, degree=2))
    np.testing.assert_allclose(Kc @ coeff, score, atol=1e-9 * np.abs(score).max())
    np.testing.assert_allclose(latent, score.var(axis=0, ddof=1), rtol=1e-10)
    np.testing.assert_allclose(explained, 100 * model.eigenvalues / np.trace(Kc), rtol=1e-10)
    np.testing.assert_allclose(tsquared, (score**2 / latent).sum(axis=1))
    assert (np.diff(model.eigenvalues) <= 0).all()
    assert (score[np.abs(score).argmax(axis=0), np.arange(3)] > 0).all()
    assert model.eigenvalues.dtype == np.float64
    assert "3 components" in repr(model)
    with pytest.raises(AttributeError):
        model.eigenvalues = None


def test_float32_in_float32_out_but_eigenvalues_in_float64():
    X = load_digits().data.astype(np.float32)[:400] / 16
    for method in ("dense", "krylov", "features"):
        model = fk.kpca(X, "linear", 3, method=method)
        assert model.score.dtype == model.coeff.dtype == np.float32
        assert model.eigenvalues.dtype == model.eigenvalue_bounds.dtype == np.float64
        assert fk.kpca_project(model, X[:3]).dtype == np.float32
        assert fk.kpca_project(model, X[:3].astype(np.float64)).dtype == np.float64
        exact = reference.eigh(reference.gram("linear", X.astype(np.float64)))[0]
        np.testing.assert_allclose(model.eigenvalues, exact[:3], atol=1e-6 * exact[0])


def test_more_components_than_there_are_is_said():
    X = np.random.default_rng(0).standard_normal((30, 2))
    with pytest.warns(ComponentsWarning, match="5 components asked for, 2 returned"):
        model = fk.kpca(X, "linear", 5)
    assert model.n_components == 2
    same = np.repeat(X[:3], 10, axis=0)
    with pytest.warns(ComponentsWarning, match="returned"):
        assert fk.kpca(same, "gaussian", 4, sigma=1.0).n_components == 2


@pytest.mark.parametrize("n", [2, 3, 4, 40, 513])
def test_the_median_heuristic_is_numpys_median(n):
    rng = np.random.default_rng(n)
    for sample in (rng.random((n, 3)), rng.integers(0, 2, (n, 1)) + 0.0):
        squares = scipy.spatial.distance.pdist(sample[np.linspace(0, n - 1, min(n, 512)).astype(int)], "sqeuclidean")
        if squares.any():
            expected = np.sqrt(np.median(squares) or np.median(squares[squares > 0]))
            assert median_distance(sample) == expected


EQUAL = {
    "few rows": (np.ones((20, 3)), "gaussian", {"sigma": 1.0}),
    "many rows": (np.full((3000, 4), 0.1), "linear", {}),
    "values of 1": (1e-3 * np.random.default_rng(0).standard_normal((300, 9)), "gaussian", {"sigma": 1e130}),
    "values of an indefinite kernel": (1e-3 * np.ones((300, 9)), "tanh", {"offset": 5e6}),
}


@pytest.mark.parametrize("method", ["auto", "krylov", "features"])
@pytest.mark.parametrize("case", EQUAL)
def test_values_that_are_all_equal_are_an_error_that_says_so(case, method):
    X, kernel, parameters = EQUAL[case]
    words = "not positive semidefinite|does not declare" if (kernel, method) == ("tanh", "features") else "no component"
    with pytest.raises(ValueError, match=words):
        fk.kpca(X, kernel, 1, method=method, **parameters)


def test_scores_out_and_not_kept():
    X = load_iris().data
    out = np.empty((150, 2))
    model = fk.kpca(X, "polynomial", 2, degree=2, out=out)
    assert model.score is out
    np.testing.assert_allclose(out, fk.kpca_project(model, X), rtol=1e-12)
    with pytest.raises(ScoresNotKeptError, match="kpca_project"):
        _ = fk.kpca(X, "polynomial", 2, degree=2, return_scores=False).score
    with pytest.raises(ValueError, match="out has shape"):
        fk.kpca_project(model, X, out=np.empty((1, 1)))
    for c, out, text in (
        (2, np.empty((150, 3)), r"out has shape \(150, 3\)"),
        (2, np.empty((150, 2), np.float32), "type float32"),
        (0.9, np.empty((150, 2)), r"not known beforehand with c=0.9; give out as a function"),
        (None, np.empty((150, 2)), "not known beforehand with c=None"),
    ):
        with pytest.raises(ValueError, match=text):
            fk.kpca(X, "polynomial", c, out=out)


def test_scores_are_not_written_over_the_rows(tmp_path):
    X = load_iris().data
    model = fk.kpca(X, "polynomial", 4, degree=2)
    table = np.hstack([X, np.zeros((150, 4))])
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r+")
    for rows in (table[:, :4], mapped):
        for call in (
            lambda rows, out: fk.kpca(rows, "polynomial", 4, degree=2, out=out),
            lambda rows, out: fk.kpca(rows, "polynomial", 4, degree=2, out=lambda shape, dtype: out),
            lambda rows, out: fk.kpca_project(model, rows, out=out),
        ):
            with pytest.raises(ValueError, match="shares memory with the rows"):
                call(rows, rows)
            assert np.array_equal(rows, X)
    fk.kpca_project(model, table[:, :4], out=table[:, 4:])  # beside them, in one array
    np.testing.assert_array_equal(table[:, :4], X)
    np.testing.assert_allclose(table[:, 4:], model.score, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["dense", "krylov", "features"])
def test_scores_of_components_that_turn_out_to_be_fewer(method, tmp_path):
    h5py = pytest.importorskip("h5py")
    X = np.random.default_rng(0).standard_normal((300, 2))
    asked = []

    def place(shape, dtype):
        asked.append(shape)
        return np.empty(shape, dtype)

    with pytest.warns(fk.errors.ComponentsWarning):
        expected = fk.kpca(X, "linear", 5, method=method)
        array = np.full((300, 5), np.nan)
        model = fk.kpca(X, "linear", 5, method=method, out=array)
        dataset = h5py.File(tmp_path / "s.h5", "w").create_dataset("s", (300, 5), dtype="f8")
        fk.kpca(X, "linear", 5, method=method, out=dataset)
        fk.kpca(X, "linear", 5, method=method, out=place)
    assert asked == [(300, 2)]
    assert model.score.shape == (300, 2) and np.shares_memory(model.score, array)
    np.testing.assert_array_equal(model.score, expected.score)
    for found in (array, dataset[:]):
        np.testing.assert_array_equal(found, np.pad(expected.score, ((0, 0), (0, 3))))
    assert fk.kpca_project(model, X, out=place).shape == (300, 2)
    with pytest.raises(ValueError, match="what out returned has shape"):
        fk.kpca_project(model, X, out=lambda shape, dtype: np.empty(3))


def test_the_model_does_not_follow_the_rows():
    for method in ("dense", "krylov", "features"):
        X = load_iris().data.copy()
        model = fk.kpca(X, "polynomial", 2, degree=2, method=method)
        np.testing.assert_array_equal(X, load_iris().data)
        expected = fk.kpca_project(model, X[:5])
        X[:] = 0
        np.testing.assert_array_equal(fk.kpca_project(model, load_iris().data[:5]), expected)


def test_a_model_of_features_does_not_grow_with_n(tmp_path):
    sizes = []
    for n in (1000, 4000):
        X = np.random.default_rng(0).standard_normal((n, 4))
        fk.save(fk.kpca(X, "polynomial", 5, degree=3), tmp_path / f"{n}.kpca")
        sizes.append((tmp_path / f"{n}.kpca").stat().st_size)
    assert abs(sizes[0] - sizes[1]) < 300  # of the plan's table; 3000 rows are 96,000 bytes


def test_plan_shows_every_candidate_and_runs_nothing():
    X = np.random.default_rng(0).standard_normal((3000, 3))
    plan = fk.plan(X, "gaussian", 5, sigma=1.0)
    assert all(word in str(plan) for word in ("dense", "features", "krylov", "seconds", "memory"))
    ran = fk.kpca(X, "gaussian", 5, sigma=1.0).plan
    assert (ran.method, ran.name, ran.reason) == (plan.method, plan.name, plan.reason)
    assert ran.candidates == plan.candidates[: len(ran.candidates)]  # and those that a fit need not price


SMOOTH = np.linspace(0, 1, 3000)[:, None] * np.ones(3)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"method": "magic"}, ValueError, "method is 'magic'"),
        ({"features": "fast"}, ValueError, r"='fast': Gaussian\(.*\) has no map .*; it has '.*', 'pivots'$"),
        ({"features": "pivots", "method": "dense"}, ValueError, "method='dense' was asked for"),
        ({"features": 3}, TypeError, "features is 3"),
        (
            {"kernel": "polynomial", "degree": 5, "features": "monomial", "max_features": 10},
            ValueError,
            "features='monomial' is not possible .*needs more than 10 features",
        ),
        (
            {"products": "split", "sigma": 1.0},
            ValueError,
            r"no products named 'split' .* within \S+, which is needed here: .*moves an eigenvalue by up to N e, and "
            r"this is 0.002 of tol times the largest.*it offers 'exact', 'expansion'",
        ),
        ({"kernel": "precomputed", "X": np.triu(np.ones((9, 9)))}, ValueError, "not symmetric: entries"),
        ({"kernel": "precomputed", "X": np.ones((9, 10))}, ValueError, "must be square"),
        ({"kernel": "linear", "c": 3001}, ValueError, "c"),
        ({"X": np.ones((1, 3)), "c": 1}, ValueError, "needs at least 2|at least 2"),
    ],
)
def test_refusals_name_the_argument_that_was_given(given, error, text):
    for call in (fk.kpca, fk.plan):
        with pytest.raises(error, match=text) as caught:
            call(**({"X": SMOOTH, "kernel": "gaussian", "c": 5} | given))
        if given.keys() & {"features", "products"} and "max_features" not in given:
            assert not re.search("memory_limit|tol=", str(caught.value))  # these have nothing to do with it


def test_a_share_of_a_reduced_trace_says_so():
    """20 of 200 random eigenvalues, half of them negative, and of the same matrix where it is declared semidefinite."""
    A = np.random.default_rng(0).standard_normal((200, 200))
    words = r"explaining [\d.]+ % of a trace that negative eigenvalues may reduce"
    assert re.search(words, repr(fk.kpca(A + A.T + 6.0 * np.eye(200), "precomputed", 20)))
    model = fk.kpca(A @ A.T, "precomputed", 20, semidefinite=True)
    assert model.explained_of == "the variance" and "reduce" not in repr(model) + model._repr_html_()
    assert "reduce" in fk.kpca(A @ A.T, "precomputed", 20)._repr_html_()


def test_no_percentages_of_a_trace_that_is_not_positive():
    X = load_iris().data
    exact = reference.eigh(reference.gram("tanh", X, scale=0.1, offset=0.0))[0]
    assert exact.sum() < 0 < exact[0]
    model = fk.kpca(X, "tanh", 3, scale=0.1)
    np.testing.assert_allclose(model.eigenvalues, exact[:3], rtol=1e-9)
    assert np.isnan(model.explained).all() and "explaining" not in repr(model)
    with pytest.raises(ValueError, match=r"c=0.9: there is no fraction .* give a number of components"):
        fk.kpca(X, "tanh", 0.9, scale=0.1)


@pytest.mark.parametrize("method", ["dense", "features"])
@pytest.mark.parametrize("n", [50, 200, 333])
def test_eigenvalues_that_are_all_equal(method, n):
    # K is the identity to the last bit: asked for a few, LAPACK's bisection returns none
    X = np.random.default_rng(0).standard_normal((n, 4))
    model = fk.kpca(X, "gaussian", 3, sigma=1e-3, method=method)
    np.testing.assert_allclose(model.eigenvalues, 1.0, rtol=1e-9)
    H = np.eye(n) - 1 / n
    np.testing.assert_allclose(H @ model.coeff, model.score, atol=1e-9)
    np.testing.assert_allclose(model.score.T @ model.score, np.eye(3), atol=1e-9)
    assert len(np.unique(model.clusters)) == 1


def test_passes_over_the_kernel_values_on_digits():
    """Eigenvalues good to 1e-6 after at most 4 passes, certified to 1e-6 after at most 5, through the public door."""
    X = load_digits().data
    sigma = fk.gram(X, "gaussian").kernel.sigma
    exact = reference.eigh(reference.gram("gaussian", X, sigma=sigma))[0]
    asked = {"sigma": sigma, "method": "krylov", "tol": 1e-6}
    model, early = (silent(fk.kpca, X, "gaussian", 10, max_passes=most, **asked) for most in (20, 4))
    assert model.info["passes"] <= 5 and intervals.width(model) <= 1e-6
    assert early.info["passes"] <= 4
    assert np.abs(early.eigenvalues - exact[:10]).max() <= 1e-6 * exact[0]


def test_a_search_starts_near_the_leading_vectors_of_many_rows():
    """From fewer rows, or without the product that follows, the first pass ends ten times as far off."""
    X = np.random.default_rng(0).standard_normal((12_000, 8))
    model = fk.kpca(X, "gaussian", 1, sigma=3.0, tol=1e-6, method="krylov", products="exact")
    first_pass, width = model.info["search_widths"][0]
    assert first_pass == 1 and width < 1.5e-3


def test_passes_run_out(monkeypatch):
    X = reference.standardise(load_wine().data)
    asked = {"method": "krylov", "tol": 1e-8}
    # too little to hold the values, over which there would be more passes
    held = fk.plan(X, "gaussian", 3, sigma=0.3, **asked).chosen.memory
    asked["memory_limit"] = int(held) - 1
    # an indefinite kernel has no upper end at all without the norm, which one pass brings
    with pytest.warns(CertificateWarning, match="after 1 pass the"):
        model = fk.kpca(X, "tanh", 3, scale=0.02, max_passes=1, **asked)
    exact = reference.eigh(reference.gram("tanh", X, scale=0.02))[0]
    intervals.hold(model, exact)
    assert np.isfinite(model.eigenvalue_bounds).all()
    with monkeypatch.context() as patch:
        never = property(lambda self: False, lambda self, value: None)
        patch.setattr(ExactSummation, "gives_norm", never, raising=False)
        with pytest.raises(fk.errors.NotConvergedError, match="no interval was reached") as caught:
            fk.kpca(X, "tanh", 3, scale=0.02, max_passes=1, **asked)
    partial = caught.value.partial
    assert partial.score.shape == (len(X), 3)
    assert np.isinf(partial.eigenvalue_bounds).any()


def test_where_rounding_limits_block_krylov_lapack_is_named():
    """Its intervals are ten times as narrow there, and may reach what was asked for."""
    X = np.random.default_rng(0).random((400, 3))
    options = {"sigma": 1.0, "tol": 1e-12}
    with pytest.warns(CertificateWarning, match=r"rounding in float64 alone .* helps, or method='dense' \(LAPACK"):
        fk.kpca(X, "gaussian", 3, method="krylov", **options)
    model = fk.kpca(X, "gaussian", 3, method="dense", **options)
    assert intervals.width(model) <= 1e-12


@pytest.mark.parametrize(("products", "sigma"), [("grid", 0.15), ("grid", 1.0), ("clusters", 0.1)])
@pytest.mark.parametrize("tol", [1e-1, 1e-6])
def test_approximate_products_keep_the_tolerance(products, tol, sigma):
    """Their error enters the certificate by the square root of the columns, and must not use tol up; flat and steep."""
    X = np.random.default_rng(0).uniform(-1, 1, (900, 2))
    exact = reference.eigh(reference.gram("gaussian", X, sigma=sigma))[0]
    # probabilistic, where the spectrum is flat
    model = silent(fk.kpca, X, "gaussian", 5, sigma=sigma, tol=tol, products=products)
    assert (model.plan.method, model.plan.name) == ("krylov", products)
    intervals.hold(model, exact, 1e-12 * exact[0], tol=tol)
    low, high = (len(X) - 1) * np.array(model.total_variance_bounds)
    assert low <= exact.sum() <= high
    np.testing.assert_allclose(fk.kpca_project(model, X), model.score, atol=max(tol, 1e-7) * np.abs(model.score).max())


def test_a_flat_spectrum_is_not_left_to_a_product_without_a_norm():
    """Predicted at a near tie, an approximate product would lose the guarantee that exact tiles have."""
    X = np.random.default_rng(0).standard_normal((2000, 3))
    model = fk.kpca(X, "gaussian", 5, sigma=0.5)
    assert model.bound_kind == "guaranteed" and intervals.width(model) <= 1e-6


def test_forced_map_of_far_more_features_than_rows_is_refused():
    X = np.random.default_rng(0).random((13, 3))
    expected = r"has 3276 features, and 13 rows have 12 components at most: leave features='monomial' out"
    with pytest.raises(ValueError, match=expected):
        fk.kpca(X, "polynomial", 2, degree=25, features="monomial")
    assert fk.kpca(X, "polynomial", 2, degree=25).n_components == 2
    # one that is truncated, for a looser tolerance
    with pytest.warns(CertificateWarning, match="with .* features the widest of .* intervals is"):
        assert fk.kpca(X, "gaussian", 2, sigma=0.2, features="monomial", tol=1e-12).info["n_features"] <= 2048
    # a map that costs nothing may have more features than rows: moments are merged with those of other rows
    assert fk.kpca(X, "gaussian", 2, sigma=1.0, features="monomial", tol=1e-12).info["n_features"] > 13


@pytest.mark.parametrize("method", ["dense", "features", "krylov"])
def test_progress_ends_at_its_total(method):
    """Also where fewer passes than allowed are enough."""
    last = {}
    X = np.random.default_rng(0).standard_normal((600, 3))
    fk.kpca(
        X, "gaussian", 2, sigma=3.0, tol=1e-4, method=method, progress=lambda *call: last.update({call[0]: call[1:]})
    )
    assert last and all(done == total for done, total in last.values())


def test_a_map_that_turns_out_far_larger_than_products_cost_is_left_before_its_pass(monkeypatch):
    from fastkpca.kernels import gaussian

    larger = gaussian.TaylorMap
    X = np.random.default_rng(0).random((3000, 3))
    expected = fk.kpca(X, "gaussian", 5, sigma=1.0)
    assert expected.plan.name == "monomial"
    monkeypatch.setattr(gaussian, "TaylorMap", lambda d, sigma, order, center: larger(d, sigma, order + 14, center))
    model = fk.kpca(X, "gaussian", 5, sigma=1.0)
    assert model.info["features_tried"] == "monomial"
    assert model.plan.name == "pivots" and "\n* features (pivots)" in repr(model.plan)
    np.testing.assert_allclose(model.eigenvalues, expected.eigenvalues, rtol=1e-6)


@pytest.mark.parametrize("tol", [1e-6, 1e-3])
def test_a_map_that_misses_for_far_rows_is_followed_by_one_that_finds_them(tol):
    """Monomials are counted by a sample, which has few of them; products would cost a hundred times as much."""
    X = np.random.default_rng(7).standard_t(3, (20_000, 1))
    model = fk.kpca(X, "gaussian", 10, sigma=4.0, tol=tol)
    assert model.info["features_tried"] == "monomial"
    assert model.plan.name in ("fourier", "pivots") and model.bound_kind == "guaranteed"
    assert model.failure_probability == 0.0 and intervals.width(model) <= tol
    exact = fk.kpca(X, "gaussian", 10, sigma=4.0, tol=1e-8, method="krylov")
    assert (model.eigenvalue_bounds[:, 0] <= exact.eigenvalue_bounds[:, 1]).all()
    assert (model.eigenvalue_bounds[:, 1] >= exact.eigenvalue_bounds[:, 0]).all()


def test_rows_in_few_dimensions_are_looked_at():
    """Monomials of all ten columns would be 1001 for what 35 pivots hold."""
    rng = np.random.default_rng(0)
    X = rng.random((3000, 3)) @ rng.standard_normal((3, 10))
    model = fk.kpca(X, "polynomial", 5, degree=4)
    assert model.info["n_features"] < 100


def test_features_find_the_one_row_among_equal_ones_that_differs():
    X = np.ones((20000, 3))
    X[777, 0] = 3.0
    for kernel, parameters in (("linear", {}), ("gaussian", {"sigma": 1.0})):
        model = fk.kpca(X, kernel, 1, method="features", **parameters)
        k = 4.0 if kernel == "linear" else 2 * (1 - np.exp(-2.0))  # |phi(x) - phi(y)|^2
        intervals.hold(model, [k * (1 - 1 / 20000)], 1e-12 * k)


def test_work_that_a_looser_tol_makes_short_is_told(monkeypatch):
    from fastkpca.fit import planning

    X = np.random.default_rng(0).random((3000, 3))
    asked = {"c": 5, "sigma": 0.3, "method": "krylov"}
    seconds = {tol: fk.plan(X, "gaussian", tol=tol, **asked).chosen.seconds for tol in (1e-9, 1e-4)}
    monkeypatch.setattr(planning, "SLOW_SECONDS", 0.9 * seconds[1e-9])
    monkeypatch.setattr(planning, "EASIER_FRACTION", 1.01 * seconds[1e-4] / seconds[1e-9])
    with pytest.warns(fk.errors.SlowRouteWarning, match=r"about [0-9.e-]+ s with tol=0.0001"):
        warned = fk.kpca(X, "gaussian", tol=1e-9, **asked)
    monkeypatch.setattr(planning, "SLOW_SECONDS", 1.1 * seconds[1e-9])
    silent = fk.kpca(X, "gaussian", tol=1e-9, **asked)
    assert np.array_equal(silent.eigenvalues, warned.eigenvalues)  # the second plan draws nothing from rng


@pytest.mark.parametrize("door", ["kpca", "kernel_pcr", "command"])
def test_all_components_are_announced_once_by_every_door(door, monkeypatch, tmp_path, capsys):
    """Before the work: what it takes, and what the first components take."""
    from fastkpca import cli
    from fastkpca.fit import planning

    X = np.random.default_rng(0).standard_normal((1500, 4))
    monkeypatch.setattr(planning, "SLOW_SECONDS", 0.01)
    said = r"this will take about [0-9.]+ s, and about [0-9.]+ s for the first 10 components alone"
    if door == "command":
        np.save(tmp_path / "x.npy", X)
        assert cli.main(["fit", str(tmp_path / "x.npy"), "-c", "all"]) == 0
        err = capsys.readouterr().err
        assert len(re.findall(said, err)) == 1 and "'fastkpca plan' shows the routes" in err
        return
    components = pytest.importorskip("kernels_contrib.components")
    with pytest.warns(fk.errors.SlowRouteWarning, match=said) as caught:
        if door == "kpca":
            fk.kpca(X)
        else:
            components.kernel_pcr(X, X[:, 0], c=None)
    slow = [one for one in caught if one.category is fk.errors.SlowRouteWarning]
    assert [one.filename for one in slow] == [__file__]
