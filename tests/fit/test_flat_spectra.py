"""Flat spectra: block Krylov takes many passes there, and auto has to find LAPACK, where that fits, in time."""

from dataclasses import replace

import intervals
import numpy as np
import pytest
from quiet import silent
from sklearn.datasets import load_digits

import fastkpca as fk
from fastkpca.errors import CertificateWarning
from fastkpca.fit import krylov

FLAT = np.random.default_rng(0).random((700, 3))
ASKED = {"kernel": "gaussian", "c": 30, "sigma": 0.05}


@pytest.fixture
def unsuspecting(monkeypatch):
    """A plan that takes every spectrum for a steep one."""
    made = krylov._candidate
    monkeypatch.setattr(krylov, "_candidate", lambda *x: replace(made(*x), seconds=1e-4))


def test_the_plan_sees_a_flat_spectrum():
    X = np.random.default_rng(1).random((1500, 3))
    flattest, steep = (fk.plan(X, "gaussian", 20, sigma=sigma) for sigma in (0.02, 1.0))
    assert flattest.chosen.seconds > 0.7 * flattest.dense.seconds and steep.chosen.seconds < 0.1 * steep.dense.seconds


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_run_that_is_left_gives_what_lapack_gives(unsuspecting, n_threads):
    model = fk.kpca(FLAT, **ASKED, n_threads=n_threads)  # a warning is an error: no certificate with a probability
    assert model.plan.method == model.info["method"] == "dense" and "method='dense'" in repr(model)
    assert str(model.plan).startswith("dense (LAPACK): krylov (exact) was planned") and "* dense" in str(model.plan)
    assert fk.KPCAModel.from_state(*model.state()).plan == model.plan
    assert model.info["krylov_tried"] == fk.kpca(FLAT, **ASKED).info["krylov_tried"] <= 8
    lapack = fk.kpca(FLAT, **ASKED, method="dense").eigenvalues
    np.testing.assert_allclose(model.eigenvalues, lapack, rtol=1e-9)


@pytest.mark.parametrize(("seed", "c", "sigma", "tol"), [(1, 80, 4.0, 1e-8), (2, 100, 5.0, 5e-9)])
def test_few_passes_and_a_factorisation_do_where_entries_err_by_about_the_last_eigenvalue(seed, c, sigma, tol):
    """Few rows are far larger than the others, and what a factorisation takes off its bound is as large as a gap, or as
    the last eigenvalues: then a gap does not do, and a bound may lie above the last eigenvalue by less than tol."""
    X = np.exp(np.random.default_rng(seed).standard_normal((800, 9))) - 1.6
    kernel = fk.get_kernel("gaussian", sigma=sigma) * fk.get_kernel("polynomial", degree=6, scale=1 / 9, offset=1.0)
    model = fk.kpca(X, kernel, c, tol=tol, method="krylov", products="exact")
    assert model.info["factorisations"] >= 1 and model.info["matrix_passes"] <= 6
    intervals.meet(model, fk.kpca(X, kernel, c, method="dense"))


def test_no_run_is_left_that_is_forced_or_where_lapack_does_not_fit(unsuspecting):
    limit = int(0.99 * fk.plan(FLAT, **ASKED).dense.memory)
    for forced in ({"method": "krylov"}, {"products": "exact"}, {"memory_limit": limit}):
        info = silent(fk.kpca, FLAT, **ASKED, **forced, tol=1e-3).info
        assert info["method"] == "krylov" and "krylov_tried" not in info
        assert "memory_limit" in forced or info["matrix_passes"] > 5


@pytest.mark.filterwarnings("ignore::fastkpca.errors.DistancesWarning")
@pytest.mark.parametrize("n", [200, 400])
def test_distances_have_no_positive_eigenvalue(n):
    """Minus a Gram matrix, whose zeros rounding makes positive: no component, not one with a wide interval."""
    X = np.random.default_rng(4).standard_normal((n, 3))
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    for method, distances in (("krylov", D), ("dense", D), ("auto", D), ("auto", np.sqrt(D))):
        with pytest.raises(ValueError, match=r"no component of Precomputed.*-0\.5 \* D \*\* 2"):
            fk.kpca(distances, "precomputed", 3, method=method)
    model = fk.kpca(-0.5 * D, "precomputed", 3, method="krylov")
    assert intervals.width(model) < 1e-6
    np.testing.assert_allclose(model.eigenvalues, fk.pca(X, 3).eigenvalues, rtol=1e-6)


def test_what_a_warning_advises_helps():
    """Of a spectrum that is too flat for the passes: more passes narrow the intervals, and LAPACK reaches tol."""
    X = np.random.default_rng(1).standard_normal((2100, 32))  # more than are held: each pass is over kernel values
    options = {"sigma": 0.15 * 32**0.5, "tol": 1e-4}
    with pytest.warns(CertificateWarning, match=r"more passes \(max_passes\) help, or method='dense'") as caught:
        model = fk.kpca(X, "gaussian", 5, method="krylov", products="exact", max_passes=12, **options)
    assert len(caught) == 1 and model.info["passes"] == 12
    with pytest.warns(CertificateWarning):
        longer = fk.kpca(X, "gaussian", 5, method="krylov", products="exact", max_passes=20, **options)
    dense = fk.kpca(X, "gaussian", 5, method="dense", **options)  # a warning is an error here
    widths = [intervals.width(x) for x in (model, longer, dense)]
    assert widths[0] < 0.2 and widths[1] < 0.9 * widths[0] and widths[2] <= 1e-4
    for other in (model, longer):
        intervals.meet(other, dense)


def test_errors_of_entries_count_for_passes_in_float64_alone():
    """Those of the search would leave intervals above tol, and LAPACK would follow."""
    X = load_digits().data
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = fk.kpca(X, "gaussian", 5, sigma=3.5, tol=1e-9)
    assert model.info["search_passes"] > 1 and model.info["method"] == "krylov"
    assert np.ptp(model.eigenvalue_bounds, axis=1).max() <= 1e-9 * model.eigenvalues[0]
    dense = fk.kpca(X, "gaussian", 5, sigma=3.5, tol=1e-9, method="dense")
    intervals.meet(model, dense)


def test_lapack_takes_over_where_exact_passes_narrow_too_slowly():
    """Vectors that have converged, and a norm of the rest that falls by a few percent a pass: the end is far."""
    X = load_digits().data
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = fk.kpca(X, "gaussian", 5, sigma=3.0, tol=1e-9)
    assert fk.plan(X, "gaussian", 5, sigma=3.0, tol=1e-9).method == "krylov"
    assert model.info["method"] == "dense" and model.info["krylov_tried"] <= 20


def test_a_run_that_hardly_gets_there_is_priced_as_one_that_is_left_for_lapack():
    X = np.random.default_rng(0).random((3000, 40))  # all kernel values beside the diagonal are nearly zero
    assert fk.plan(X, "gaussian", 10, tol=1e-9, sigma=0.2).chosen.method == "dense"


def test_approximate_products_are_planned_where_they_may_win():
    X = np.random.default_rng(0).random((10_000, 3))
    asked = {"kernel": "gaussian", "c": 10, "sigma": 0.05, "tol": 1e-6}
    names = {x.name for x in fk.plan(X, **asked).candidates if x.method == "krylov"}
    assert {"exact", "clusters"} <= names
