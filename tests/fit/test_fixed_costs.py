"""What a call costs whatever the rows: counts of Python calls and of certificates, never seconds."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.base import blas
from fastkpca.fit import planning, problem
from fastkpca.fit.look import Look
from fastkpca.kernels import gaussian
from fastkpca.maps import fourier, pivots
from fastkpca.rows.view import Rows
from fastkpca.solve import exact_passes


def calls_of(task: Callable[[], object]) -> int:
    """Calls of functions, in Python and in C, of the second of two runs."""
    task()
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        task()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(("n", "most"), [(50, 789), (200, 1014), (500, 1086)])
def test_small_problems_take_few_calls(n, most):
    X = np.random.default_rng(0).random((n, 10))
    assert calls_of(lambda: fk.kpca(X, "gaussian", 10, sigma=1.0, n_threads=1)) <= most


@pytest.mark.parametrize("n", [50, 200, 2000])
def test_no_generator_is_made_where_nothing_is_drawn(n, monkeypatch):
    """From a seed that takes as long as thirty calls; the draws of small matrices are those of the first one."""
    X = np.random.default_rng(0).random((n, 10))
    parameters = {"sigma": 1.0} if n < 2000 else {"degree": 2}
    models = [fk.kpca(X, "gaussian" if n < 2000 else "polynomial", 5, **parameters)]
    monkeypatch.setattr(np.random, "default_rng", lambda *_: pytest.fail("random numbers"))
    models.append(fk.kpca(X, "gaussian" if n < 2000 else "polynomial", 5, **parameters))
    assert np.array_equal(models[0].score, models[1].score)


@pytest.fixture
def rows_read(monkeypatch):
    """How many rows each read has shifted."""
    counts, finish = [], Rows._finish

    def noted(self, part, **options):
        counts.append(part.shape[0])
        return finish(self, part, **options)

    monkeypatch.setattr(Rows, "_finish", noted)
    return counts


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_few_wide_rows_are_read_and_shifted_once(kernel, dtype, rows_read):
    """Once for their mean, and once for all that follows, the model included."""
    X = np.random.default_rng(0).random((150, 300)).astype(dtype)
    model = fk.kpca(X, kernel, 3, n_threads=1)
    assert sum(rows_read) <= 2 * len(X)
    assert not np.shares_memory(model.projector.X, X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_whose_kernel_values_are_kept_are_shifted_once_for_all_products(dtype, rows_read):
    """Twice for their summary, once for products, the diagonal, the start and the model, besides samples of them."""
    X = np.random.default_rng(0).random((4200, 48)).astype(dtype)
    model = fk.kpca(X, "gaussian", 5, sigma=3.0, method="krylov", products="exact", n_threads=1)
    assert model.info["matrix_passes"] > 0
    assert sum(rows_read) <= 3 * len(X) + 4500
    assert not np.shares_memory(model.projector.X, X)


@pytest.mark.parametrize(("d", "sigma"), [(2, 0.3), (3, 1.0)])
def test_choice_of_a_map_takes_few_calls(d, sigma):
    X = np.random.default_rng(0).random((2000, d))
    assert calls_of(lambda: fk.kpca(X, "gaussian", 10, sigma=sigma, n_threads=1)) <= 1725


def test_no_further_map_is_priced_where_one_is_cheap(monkeypatch):
    monkeypatch.setattr(gaussian, "fourier_offers", lambda *_: pytest.fail("Fourier features were priced"))
    X = np.random.default_rng(0).random((2000, 3))
    plan = fk.plan(X, "gaussian", 10, sigma=1.0)
    assert (plan.method, plan.name) == ("features", "monomial")


def test_on_a_line_each_map_is_priced():
    """There Fourier features are fewer, and take less time than a map that is cheap itself."""
    plan = fk.plan(np.random.default_rng(0).random((1500, 1)), "gaussian", 10, sigma=0.05)
    seconds = {x.name: x.seconds for x in plan.candidates if x.method == "features"}
    assert plan.name == "fourier" and seconds["monomial"] <= planning.WORTH_ASKING


def test_blas_is_asked_for_its_threads_once_a_call(monkeypatch):
    """Holds of the cap inside of others ask nothing, and nothing is set where BLAS has one thread anyway."""
    libraries = [SimpleNamespace(threads=1), SimpleNamespace(threads=3)]
    asked = []

    def threads_of(library):
        asked.append(library)
        return library.threads

    for library in libraries:
        library.get_num_threads = lambda library=library: threads_of(library)
        library.set_num_threads = lambda threads, library=library: setattr(library, "threads", threads)
    cap = blas._BlasCap()
    monkeypatch.setattr(cap, "_controller", SimpleNamespace(lib_controllers=libraries))
    for library in libraries:
        library.user_api = "blas"
    cap.enter(1)
    assert [x.threads for x in libraries] == [1, 1]
    assert len(asked) == 2
    cap.enter(2)
    cap.leave(2)
    assert len(asked) == 2
    cap.lift(threading.get_ident())
    assert [x.threads for x in libraries] == [1, 3]
    cap.enter(3)
    assert [x.threads for x in libraries] == [1, 1]
    cap.leave(3)
    cap.leave(1)
    assert [x.threads for x in libraries] == [1, 3]


def test_no_kernel_value_is_looked_at_where_a_map_without_error_is_the_cheapest(monkeypatch):
    monkeypatch.setattr(problem, "Glance", lambda *_: pytest.fail("a look at kernel values"))
    X = np.random.default_rng(0).random((2000, 10))
    plan = fk.plan(X, "polynomial", 10, degree=3, offset=1.0)
    assert (plan.method, plan.name) == ("features", "monomial")


def test_small_matrix_that_is_held_is_certified_once(monkeypatch):
    certificates = []

    def noted(*given, **named):
        certificates.append(given)
        return certify(*given, **named)

    certify = exact_passes.ritz_certificate
    monkeypatch.setattr(exact_passes, "ritz_certificate", noted)
    X = np.random.default_rng(0).random((720, 10))
    model = fk.kpca(X, "gaussian", 10, sigma=1.0)
    assert model.info["method"] == "krylov"
    assert (model.info["search_passes"], model.info["matrix_passes"]) == (0, 3)
    assert len(certificates) == 1
    assert [passes for passes, _ in model.info["search_widths"]] == [1, 2]
    exact = fk.kpca(X, "gaussian", 10, sigma=1.0, method="dense").eigenvalues
    low, high = model.eigenvalue_bounds.T
    assert (low <= exact).all() and (exact <= high).all()
    assert model.bound_kind == "guaranteed" and (high - low).max() <= 1e-6 * exact[0]


def test_search_does_not_stop_on_a_rate_from_a_width_beyond_the_largest_eigenvalue():
    """After two passes widths fall by 4 / 0.1, the first of which says only that nothing was known."""
    X = np.random.default_rng(1).uniform(-1.7, 1.7, (2500, 5))
    model = fk.kpca(X, "gaussian", 10, sigma=0.9, method="krylov", products="exact", tol=1e-2)
    found = [width for _, width in model.info["search_widths"]]
    assert found[0] > 1.0 and found[1] < 1.0
    assert len(found) >= 4 and model.info["passes"] - model.info["search_passes"] <= 3
    assert model.bound_kind == "guaranteed"


class Seen(Look):
    """A look at all rows, to which nothing is added."""

    def spectrum(self, n):
        return self.shares, 0.0


@pytest.mark.parametrize(("mu", "doubt"), [(0.3, 0.0), (0.75, planning.DOUBT), (0.85, 1.0)])
def test_plan_expects_a_proof_where_the_solver_keeps_columns_for_one(mu, doubt):
    shares = np.full(180, mu / 10.0)  # the norm of the 100 beyond those that are kept is mu
    shares[:10] = 1.0
    assert planning._passes(Seen(shares, None), 1000, 10, 28, 1e-2, trace=True, norm=True).doubt == doubt


def predictions(monkeypatch):
    """What plans expect from here on."""
    passes, predicted = planning._passes, []

    def noted(*args, **options):
        predicted.append(passes(*args, **options))
        return predicted[-1]

    monkeypatch.setattr(planning, "_passes", noted)
    return predicted


@pytest.mark.parametrize(
    "n, d, c, sigma, tol", [(1200, 16, 20, 2.0, 1e-8), (1000, 6, 20, 0.8, 1e-7), (1000, 4, 10, 0.4, 1e-9)]
)
def test_plan_expects_the_passes_that_a_flat_spectrum_takes(n, d, c, sigma, tol, monkeypatch):
    """Chebyshev polynomials of one block say up to twice as many."""
    predicted = predictions(monkeypatch)
    X = np.random.default_rng(0).standard_normal((n, d))
    model = fk.kpca(X, "gaussian", c, sigma=sigma, tol=tol, method="krylov", products="exact", n_threads=1)
    search = predicted[0].search
    assert predicted[0].doubt == 1.0 and model.info["factorisations"] == 1
    assert search / 1.5 <= model.info["search_passes"] <= 1.5 * search


def test_plan_expects_the_passes_that_a_proof_takes_columns_from():
    """However loose tol is: 60 values of .21 beside ten of 1 are too many for the norm of what is left."""
    shares = np.append(np.ones(10), np.full(60, 0.21))
    look = Seen(shares, None)
    expected = planning._passes(look, 1000, 10, 14, 1e-2, trace=True, norm=True)
    left = np.array([np.linalg.norm(shares[j:]) for j in range(70)])
    assert expected.doubt < 1.0 and expected.search == (10 + np.flatnonzero(left[10:] <= 0.8)[0]) / 14
    assert planning._passes(look, 1000, 10, 28, 1e-2, trace=True, norm=False).search > 2.0


@pytest.mark.parametrize("kernel, c, tol, most", [("laplacian", 5, 1e-4, 9), ("matern", 20, 1e-3, 13)])
def test_plan_expects_few_passes_where_all_eigenvalues_are_nearly_one(kernel, c, tol, most, monkeypatch):
    """They lie in a narrow interval far from zero: what stands out of it converges fast, though it is hardly larger."""
    predicted = predictions(monkeypatch)
    X = np.random.default_rng(1).standard_normal((1000, 20))
    options = {"nu": 1.5} if kernel == "matern" else {}
    made = fk.get_kernel(kernel, length_scale=2.2, **options)
    model = fk.kpca(X, made, c, tol=tol, method="krylov", products="exact", n_threads=1)
    assert model.info["factorisations"] == 1 and model.info["search_passes"] <= most
    assert predicted[0].gap and predicted[0].search <= 2.0 * model.info["search_passes"]


def test_plan_expects_a_long_exploration_where_no_gap_can_be_proved():
    """All eigenvalues of rows that lie far apart are one: a random block has to prove that to within tol."""
    X = np.random.default_rng(0).standard_normal((1500, 21))
    plan = fk.plan(X, "gaussian", 5, sigma=0.6, tol=1e-2)
    assert plan.method == "dense" and plan.krylov.seconds > 2.0 * plan.dense.seconds


def test_plan_counts_a_part_of_a_factorisation_where_a_proof_takes_most_of_the_columns_kept():
    """The look lets expect a proof by 56 of the 65 columns; the run needs a factorisation, and takes four times as long
    as the map."""
    X = np.random.default_rng(0).random((5000, 3))
    plan = fk.plan(X, "gaussian", 5, sigma=0.13, tol=1e-6)
    assert (plan.method, plan.name) == ("features", "fourier")


@pytest.mark.parametrize(
    ("features", "d", "sigma", "module", "name"),
    [("pivots", 5, 1.0, pivots.PivotMap, "landmark_weights"), ("fourier", 3, 0.3, fourier.FourierMap, "_pack")],
)
def test_what_depends_on_the_axes_alone_is_done_once(features, d, sigma, module, name, monkeypatch):
    X = np.random.default_rng(0).random((1200, d))
    model = fk.kpca(X, "gaussian", 4, sigma=sigma, features=features, method="features")
    calls, made = 0, getattr(module, name)

    def counted(*arguments):
        nonlocal calls
        calls += 1
        return made(*arguments)

    monkeypatch.setattr(module, name, counted)
    rows = [fk.kpca_project(model, X[i : i + 1]) for i in range(5)]
    assert calls == 1
    together = fk.kpca_project(model, X[:5])
    assert calls == 1 and np.abs(np.vstack(rows) - together).max() <= 1e-10 * np.abs(together).max()
    # models still travel, and what was prepared does not go with them
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(fk.kpca_project(again, X[:5]), together) and calls == 2


def test_estimator_reads_its_signature_once():
    sklearn = pytest.importorskip("fastkpca.sklearn")
    X = np.random.default_rng(0).random((50, 10))
    estimator = sklearn.KernelPCA(10, kernel="rbf", gamma=0.5, n_jobs=1)
    assert calls_of(lambda: estimator.fit(X)) <= 1511
    assert type(estimator)._get_param_names() == sorted(estimator.get_params())


def test_a_bound_that_is_missing_for_one_more_pass_is_not_proved_by_a_factorisation():
    """After the first exact pass the bound on the rest is too large; the next one lowers it, and costs a third."""
    X = np.random.default_rng(0).random((6000, 8))
    model = fk.kpca(X, "gaussian", 10, sigma=1.0, products="exact")
    assert model.info["passes"] <= 4 and "factorisations" not in model.info
