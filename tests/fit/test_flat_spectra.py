"""Flat spectra: block Krylov takes many passes there, and auto has to find LAPACK, where that fits, in time."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import reference
from data import look
from sklearn.datasets import load_digits

import fastkpca as fk
from fastkpca.base import parallel
from fastkpca.base.protocol import Summation
from fastkpca.errors import CertificateWarning
from fastkpca.fit import planning
from fastkpca.fit.dense import solve_dense
from fastkpca.fit.look import Glance, Look, look_at, look_at_first
from fastkpca.kernels import gaussian
from fastkpca.solve.beyond import KRYLOV_AFTER_FEATURES
from fastkpca.solve.costs import TooDearError, ritz_seconds
from fastkpca.solve.krylov import block_krylov
from fastkpca.solve.sampled import SAMPLING_FAILURE
from fastkpca.solve.task import KernelMatrix, SolverBudget, SolverTarget

FLAT = np.random.default_rng(0).random((700, 3))
ASKED = {"kernel": "gaussian", "c": 30, "sigma": 0.05}


@pytest.fixture
def unsuspecting(monkeypatch):
    """A plan that takes every spectrum for a steep one."""
    monkeypatch.setattr(planning, "_passes", lambda *_, **__: planning.Passes(1.0, 1.0))
    monkeypatch.setattr(planning, "KRYLOV_OVERHEAD", 0.0)
    monkeypatch.setattr(planning, "_algebra_seconds", lambda *_, **__: 0.0)


def test_the_plan_sees_a_flat_spectrum():
    X = np.random.default_rng(1).random((1500, 3))
    flattest, flat, steep = (fk.plan(X, "gaussian", 20, sigma=sigma) for sigma in (0.02, 0.05, 1.0))
    assert flattest.method == "dense"
    assert flattest.krylov.seconds > 2 * flattest.dense.seconds
    # a factorisation proves what an exploration would; which of the two is the faster depends on the processor
    assert 0.8 * flat.dense.seconds < flat.krylov.seconds < 4 * flat.dense.seconds
    assert steep.krylov.seconds < steep.dense.seconds


def test_an_unproved_run_is_priced_by_the_few_columns_behind_which_a_factorisation_proves_the_rest():
    X = np.random.default_rng(3).standard_normal((3000, 20))
    plan = fk.plan(X, "gaussian", 50, sigma=1.57, tol=1e-4)
    assert plan.method == "krylov" and plan.krylov.seconds < 0.9 * plan.dense.seconds


def test_passes_over_values_that_are_kept_make_none(monkeypatch):
    """Of a kernel whose values are made in Python, all passes of the search but the first one only multiply."""
    prices = []
    for kept in (True, False):
        if not kept:
            monkeypatch.setattr(planning, "_values_kept", lambda *_, **__: 0.0)
        kernel = fk.get_kernel("laplacian", length_scale=100.0)
        X = np.random.default_rng(4).standard_normal((3000, 256))
        prices.append(fk.plan(X, kernel, 10, tol=1e-6, method="krylov", products="exact").chosen.seconds)
    assert prices[0] < 0.8 * prices[1]  # where values are the cheapest beside products: AVX2, 0.74


def test_the_look_allows_for_what_a_sample_makes_larger():
    """Of 3000 rows far apart each share is 1/3000; of the few that are looked at each is much larger."""
    X = np.random.default_rng(2).standard_normal((3000, 30))
    kernel = fk.get_kernel("gaussian", sigma=0.3)
    data = look(X)[1]
    seen = look_at(kernel, data)
    shares, beyond = seen.spectrum(3000)
    assert seen.share(5) > 4 / 3000
    np.testing.assert_allclose([shares[4], beyond], 1 / 3000, rtol=0.05)


def test_shares_of_a_look_that_saw_all_rows_stay():
    shares = np.geomspace(0.5, 1e-8, 40)
    found, beyond = Look(shares, None).spectrum(40)
    np.testing.assert_allclose(found, np.maximum(shares[:20], beyond))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_run_that_is_left_gives_what_lapack_gives(unsuspecting, n_threads):
    with warnings.catch_warnings():
        warnings.simplefilter("error", CertificateWarning)  # no certificate with a probability either
        model = fk.kpca(FLAT, **ASKED, n_threads=n_threads)
    assert model.plan.method == "krylov" and model.info["method"] == "dense"
    assert model.info["krylov_tried"] == fk.kpca(FLAT, **ASKED).info["krylov_tried"] < 8
    np.testing.assert_array_equal(model.eigenvalues, fk.kpca(FLAT, **ASKED, method="dense").eigenvalues)


TAILS = np.random.default_rng(2).standard_normal((2500, 6))


@pytest.mark.parametrize(("tol", "ends"), [(1e-2, "features"), (1e-7, "dense")])
def test_a_run_that_is_left_goes_to_a_feature_map_where_that_costs_less_than_lapack(monkeypatch, tol, ends):
    """And to LAPACK where the map, which was given fewer features than it needs, misses tol."""
    asked = {"kernel": "gaussian", "c": 30, "sigma": 3.0, "tol": tol}
    made = fk.plan(TAILS, **asked)
    dense, krylov = made.dense, replace(made.krylov, seconds=1e-9)
    map_ = next(x for x in fk.plan(TAILS, **asked | {"tol": 1e-2}, method="features").candidates if x.name == "pivots")
    map_ = replace(map_, room=replace(map_.room, features=map_.n_features), seconds=1e-8)
    planned = replace(made, method="krylov", name=krylov.name, candidates=(dense, krylov, map_))
    monkeypatch.setattr("fastkpca.fit.kpca.make_plan", lambda _: planned)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CertificateWarning)
        model = fk.kpca(TAILS, **asked)
    assert model.info["method"] == ends and model.info["krylov_tried"] == 0 and "features_tried" not in model.info
    assert model.failure_probability in (0.0, SAMPLING_FAILURE + KRYLOV_AFTER_FEATURES)
    assert (model.bound_kind == "probabilistic") == (ends == "features")
    true = fk.kpca(TAILS, **asked, method="dense").eigenvalues
    low, high = model.eigenvalue_bounds.T
    slack = 1e-12 * true[0]
    assert (low - slack <= true).all() and (true <= high + slack).all()
    assert np.ptp(model.eigenvalue_bounds, axis=1).max() <= tol * true[0]


def test_nothing_holds_the_memory_of_a_run_that_is_left(unsuspecting, monkeypatch):
    """The traceback of what ended it would keep its basis and its kernel values beside LAPACK's matrix."""
    followed = []

    def dense(problem):
        followed.append(sys.exc_info())
        return solve_dense(problem)

    monkeypatch.setattr("fastkpca.fit.krylov.solve_dense", dense)
    assert fk.kpca(FLAT, **ASKED).info["method"] == "dense"
    assert followed == [(None, None, None)]


def test_lapack_follows_where_a_feature_map_may_cost_as_much(monkeypatch):
    made = fk.plan(FLAT, **ASKED)
    dense, krylov = made.dense, replace(made.krylov, seconds=1e-9, obstacle="")
    map_ = replace(krylov, method="features", name="pivots", seconds=0.5 * dense.seconds)
    planned = replace(made, method="krylov", name=krylov.name, candidates=(map_, dense, krylov))
    assert planned.instead_of_krylov == (dense, dense.seconds)
    nearer = replace(planned, candidates=(replace(map_, seconds=0.1 * dense.seconds), dense, krylov))
    assert nearer.instead_of_krylov[0].name == "pivots" and nearer.instead_of_krylov[1] < dense.seconds
    assert nearer.without_krylov(map_).krylov is None and nearer.without_krylov(map_).method == "features"
    # not a map that rounding is expected to keep from tol; and none where nothing could follow one that misses it
    missing = replace(nearer, candidates=(replace(nearer.candidates[0], misses=True), dense, krylov))
    assert missing.instead_of_krylov == (dense, dense.seconds)
    assert replace(nearer, candidates=(nearer.candidates[0], krylov)).instead_of_krylov is None


@pytest.mark.parametrize(("seed", "c", "sigma", "tol"), [(1, 80, 4.0, 1e-8), (2, 100, 5.0, 5e-9)])
def test_one_pass_and_one_factorisation_do_where_entries_err_by_about_the_last_eigenvalue(seed, c, sigma, tol):
    """Few rows are far larger than the others, and what a factorisation takes off its bound is as large as a gap, or as
    the last eigenvalues: then a gap does not do, and a bound may lie above the last eigenvalue by less than tol."""
    X = np.exp(np.random.default_rng(seed).standard_normal((800, 9))) - 1.6
    kernel = fk.get_kernel("gaussian", sigma=sigma) * fk.get_kernel("polynomial", degree=6, scale=1 / 9, offset=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CertificateWarning)
        model = fk.kpca(X, kernel, c, tol=tol, method="krylov", products="exact")
    assert model.info["matrix_passes"] == model.info["factorisations"] == 1
    true = fk.kpca(X, kernel, c, method="dense").eigenvalue_bounds
    assert (model.eigenvalue_bounds[:, 0] <= true[:, 1]).all() and (true[:, 0] <= model.eigenvalue_bounds[:, 1]).all()


def test_forced_krylov_is_never_left(unsuspecting):
    for forced in ({"method": "krylov"}, {"products": "exact"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)
            info = fk.kpca(FLAT, **ASKED, **forced, tol=1e-3).info
        assert info["method"] == "krylov" and "krylov_tried" not in info and info["matrix_passes"] > 5


def test_no_run_is_left_where_lapack_does_not_fit(unsuspecting):
    limit = int(0.99 * fk.plan(FLAT, **ASKED).dense.memory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        info = fk.kpca(FLAT, **ASKED, memory_limit=limit, tol=1e-3).info
    assert info["method"] == "krylov" and "krylov_tried" not in info


class _Dense(Summation):
    def __init__(self, K):
        self.K, self.shape = K, K.shape

    def matmat(self, U):
        return self.K @ U


def test_the_budget_counts_and_changes_nothing_before_it_ends():
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    K = (Q * np.linspace(1.0, 0.5, 200)) @ Q.T
    problem = KernelMatrix(_Dense(K), trace=float(np.trace(K)), positive_semidefinite=True), SolverTarget(5, 1e-9)
    free = block_krylov(*problem)
    ample = block_krylov(*problem, SolverBudget(pass_seconds=1.0, seconds=100.0))
    assert free.passes > 4
    np.testing.assert_array_equal(free.certificate.eigenvalue_bounds, ample.certificate.eigenvalue_bounds)
    for budget in (1.5, 3.5):
        with pytest.raises(TooDearError) as caught:
            block_krylov(*problem, SolverBudget(pass_seconds=1.0, seconds=budget))
        assert caught.value.passes == int(budget)  # Rayleigh-Ritz is nothing beside a pass of a second
    assert ritz_seconds(200, 100) < 0.1


def test_a_run_that_ends_short_is_left_for_what_costs_a_few_times_as_much():
    K = np.diag(np.linspace(1.0, 0.5, 200))
    problem = KernelMatrix(_Dense(K), trace=float(np.trace(K)), positive_semidefinite=True), SolverTarget(5, 1e-9)
    with pytest.raises(TooDearError):
        block_krylov(*problem, SolverBudget(passes=4, pass_seconds=1.0, seconds=15.0))
    assert not block_krylov(*problem, SolverBudget(passes=4, pass_seconds=1.0, seconds=17.0)).converged


@pytest.mark.parametrize("n", [200, 600])
def test_distances_have_no_positive_eigenvalue(n):
    """Minus a Gram matrix, whose zeros rounding makes positive: no component, not one with a wide interval."""
    X = np.random.default_rng(4).standard_normal((n, 3))
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    for method in ("krylov", "dense"):
        with pytest.raises(ValueError, match="no component of Precomputed.*-0.5"):
            fk.kpca(D, "precomputed", 3, method=method)
    model = fk.kpca(-0.5 * D, "precomputed", 3, method="krylov")
    assert np.ptp(model.eigenvalue_bounds, axis=1).max() < 1e-6 * model.eigenvalues[0]


def test_what_a_warning_advises_helps():
    """Of a spectrum that is too flat for the passes: more passes narrow the intervals, and LAPACK reaches tol."""
    X = np.random.default_rng(1).standard_normal((2100, 32))  # more than are held: each pass is over kernel values
    options = {"sigma": 0.15 * 32**0.5, "tol": 1e-4}
    with pytest.warns(CertificateWarning, match=r"more passes \(max_passes\) help, or method='dense'") as caught:
        model = fk.kpca(X, "gaussian", 5, method="krylov", products="exact", max_passes=12, **options)
    assert len(caught) == 1 and model.info["passes"] == 12
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        longer = fk.kpca(X, "gaussian", 5, method="krylov", products="exact", max_passes=30, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dense = fk.kpca(X, "gaussian", 5, method="dense", **options)
    widths = [np.diff(x.eigenvalue_bounds, axis=1).max() / x.eigenvalues[0] for x in (model, longer, dense)]
    assert widths[0] < 1.0 and widths[1] < 0.5 * widths[0] and widths[2] <= 1e-4
    for other in (model, longer):
        assert (other.eigenvalue_bounds[:, 0] <= dense.eigenvalue_bounds[:, 1]).all()
        assert (dense.eigenvalue_bounds[:, 0] <= other.eigenvalue_bounds[:, 1]).all()


def test_maps_that_cannot_win_are_not_looked_for(monkeypatch):
    """Of 64 columns, where pivots would have to be many thousands; an exact map is found all the same."""
    X = np.random.default_rng(0).random((5000, 64))
    monkeypatch.setattr(gaussian, "ranked_map", lambda *_, **__: pytest.fail("a search for a map that cannot win"))
    for n in (1200, 5000):
        assert fk.plan(X[:n], "gaussian", 10).method == "krylov"
    assert fk.plan(X[:, :40], "polynomial", 10, degree=2).name == "monomial"


@pytest.mark.parametrize(
    ("n", "d", "sigma", "method"), [(500, 10, 1.0, "dense"), (800, 10, 1.0, "krylov"), (1200, 40, 3.0, "krylov")]
)
def test_a_small_matrix_is_held_without_a_look(monkeypatch, n, d, sigma, method):
    X = np.random.default_rng(0).random((n, d))
    monkeypatch.setattr(planning, "look_at", lambda *_, **__: pytest.fail("a look that costs as much as the rest"))
    model = fk.kpca(X, "gaussian", 10, sigma=sigma)
    assert model.plan.method == method and model.info["passes"] == 1 and model.info["matrix_passes"] > 1
    assert fk.plan(X[:150], "gaussian", 10, sigma=1.0).method == "dense"
    exact = reference.eigh(reference.gram("gaussian", X, sigma=sigma))[0][:10]
    assert model.bound_kind == "guaranteed"
    lower, upper = model.eigenvalue_bounds.T
    assert (lower <= exact).all() and (exact <= upper).all() and (upper - lower).max() <= 1e-6 * exact[0]


def test_a_small_matrix_with_a_flat_spectrum_is_lapacks():
    rng = np.random.default_rng(0)
    for X, c in ((rng.random((500, 5)), 10), (rng.standard_normal((600, 20)), 20)):
        assert fk.plan(X, "gaussian", c, sigma=0.1).name == "LAPACK"
        assert fk.plan(X, "gaussian", c, sigma=5.0).name != "LAPACK"


@pytest.mark.parametrize("sigma", [0.02, 0.2, 2.0])
def test_how_many_eigenvalues_share_the_trace(sigma):
    X = np.random.default_rng(1).random((1500, 3))
    values = reference.eigh(reference.gram("gaussian", X, sigma=sigma))[0]
    seen = Glance(fk.get_kernel("gaussian", sigma=sigma), look(X)[1]).participating(len(X))
    assert seen == pytest.approx(values.sum() ** 2 / (values**2).sum(), rel=0.5)


def test_no_glance_at_few_rows_of_very_many_columns(monkeypatch):
    """The matrix itself says soon enough how its spectrum falls."""
    monkeypatch.setattr(Glance, "participating", lambda *_: pytest.fail("a glance that costs as much as it may save"))
    X = np.random.default_rng(0).standard_normal((500, 2000))
    assert fk.plan(X, "gaussian", 5, sigma=60.0).method == "dense"
    low_rank = X[:, :3] @ np.random.default_rng(1).standard_normal((3, 2000))
    model = fk.kpca(low_rank, "gaussian", 5, sigma=100.0)
    assert model.info["method"] == "dense" and model.info["matrix_passes"] < 24


def test_no_look_at_few_rows_of_many_columns(monkeypatch):
    """Its kernel values would cost more than all those of the matrix."""
    monkeypatch.setattr(planning, "look_at", lambda *_, **__: pytest.fail("a look that costs more than LAPACK"))
    X = np.random.default_rng(0).standard_normal((300, 4000))
    assert fk.plan(X, "gaussian", 5, sigma=60.0).method == "dense"


def test_lapack_takes_over_where_exact_passes_narrow_too_slowly():
    """Vectors that have converged, and a norm of the rest that falls by a few percent a pass: the end is far."""
    X = load_digits().data
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = fk.kpca(X, "gaussian", 5, sigma=3.5, tol=1e-9)
    assert model.plan.method == "krylov"
    assert model.info["method"] == "dense" and model.info["krylov_tried"] <= 12


def test_a_run_that_hardly_gets_there_is_priced_as_one_that_is_left_for_lapack():
    X = np.random.default_rng(0).random((3000, 40))  # all kernel values beside the diagonal are nearly zero
    assert fk.plan(X, "gaussian", 10, tol=1e-9, sigma=0.2).chosen.method == "dense"


def _clusters(n, d, seed):
    rng = np.random.default_rng(seed)
    which, centres, widths = rng.choice(10, n, p=rng.dirichlet(np.full(10, 0.7))), rng.random((10, d)), rng.random(10)
    return centres[which] + (0.01 + 0.09 * widths[which, None]) * rng.standard_normal((n, d))


@pytest.mark.parametrize("seed", [0, 1])
def test_no_approximate_product_is_planned_where_block_krylov_cannot_win_whatever_it_costs(monkeypatch, seed):
    X = _clusters(20_000, 3, seed)
    asked = {"kernel": "gaussian", "c": 10, "sigma": 0.1, "tol": 1e-6}
    short = fk.plan(X, **asked)
    assert short.name == "fourier" and [x.name for x in short.candidates if x.method == "krylov"] == ["exact"]
    monkeypatch.setattr(planning, "_approximate_is_slower", lambda *_: False)
    whole = fk.plan(X, **asked)
    approximate = [x for x in whole.candidates if x not in short.candidates]
    assert len(approximate) > 1 and {x.method for x in approximate} == {"krylov"}
    assert whole.chosen.offer.cost == short.chosen.offer.cost and whole.chosen.seconds == short.chosen.seconds
    assert min(x.seconds for x in approximate) > whole.chosen.seconds


def test_approximate_products_are_planned_where_they_may_win():
    X = np.random.default_rng(0).random((10_000, 3))
    asked = {"kernel": "gaussian", "c": 10, "sigma": 0.05, "tol": 1e-6}
    names = {x.name for x in fk.plan(X, **asked).candidates if x.method == "krylov"}
    assert {"exact", "clusters"} <= names


@pytest.mark.parametrize("name", ["ranked", "fourier", "monomial"])
def test_a_map_by_name_needs_the_first_eigenvalue_of_a_look_alone(monkeypatch, name):
    X = np.random.default_rng(4).random((9000, 2))
    asked = {"kernel": "gaussian", "sigma": 0.7, "features": name}
    seen = []

    def whole_look(kernel, data, **options):
        seen.append(look_at(kernel, data, **options).share(1))
        return look_at(kernel, data, **options)

    def first(kernel, data):
        look = look_at_first(kernel, data)
        assert 0.7 * seen[0] <= look.share(1) <= seen[0] * (1 + 1e-12) and look.share(2) == 0.0
        return look

    monkeypatch.setattr(planning, "look_at", whole_look)
    monkeypatch.setattr(planning, "look_at_first", first)
    # a share of the trace asks for all eigenvalues of the look
    assert fk.plan(X, c=0.9, **asked).name == name and len(seen) == 1
    assert fk.plan(X, c=5, **asked).name == name and len(seen) == 1


def test_the_parts_of_a_look_are_shared_by_threads(monkeypatch):
    X = np.random.default_rng(0).random((3000, 5))
    data, kernel, pieces, run = look(X)[1], fk.get_kernel("gaussian", sigma=1.0), [], parallel.run
    monkeypatch.setattr(parallel, "run", lambda task, n, **k: pieces.append((n, k["n_threads"])) or run(task, n, **k))
    looks = [look_at(kernel, data, n_threads=n) for n in (1, 2, 3)]
    assert (2, 2) in pieces and (2, 3) in pieces
    for seen in looks[1:]:
        np.testing.assert_array_equal(seen.shares, looks[0].shares)
        np.testing.assert_array_equal(seen.probe.curve, looks[0].probe.curve)
