"""Warnings point at the user's line: on every route, from every public function, through estimators and threads."""

from __future__ import annotations

import _thread
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from fake_plugins import SCALED

import fastkpca as fk
from fastkpca.errors import (
    CertificateWarning,
    ComponentsWarning,
    LimitsWarning,
    PluginWarning,
    PreimageWarning,
    ScalesWarning,
    warn_caller,
)

X = np.random.default_rng(0).standard_normal((300, 3))
FLAT = np.random.default_rng(0).standard_normal((6000, 3))


def updated():
    model = fk.kpca(X, "gaussian", 3, sigma=2.0, tol=1e-3, features="pivots", keep_moments=True)
    return fk.kpca_update(model, X, tol=1e-15)


def denoised():
    model = fk.kpca(X, "gaussian", 20, sigma=0.5, method="dense")
    return fk.kpca_denoise(model, X[:20] + 0.3, max_iter=1)


# each place that warns once: which route led there, one helper does not know
CALLS = {
    "krylov": (CertificateWarning, lambda: fk.kpca(FLAT, "gaussian", 5, sigma=0.3, method="krylov", max_passes=2)),
    "few components": (ComponentsWarning, lambda: fk.kpca(X, "linear", 5, method="features")),
    "kpca_update": (CertificateWarning, updated),
    "kpca_denoise": (PreimageWarning, denoised),
    "kpca_limits": (LimitsWarning, lambda: fk.kpca_limits(fk.kpca(X, "gaussian", 3, sigma=1.0))),
    "ranges of columns": (ScalesWarning, lambda: fk.plan(X * [1.0, 1e4, 1.0], "gaussian", 2)),
    "pca": (ComponentsWarning, lambda: fk.pca(X, 5)),
}


def assert_here(caught, category):
    ours = [w for w in caught if issubclass(w.category, category)]
    assert ours, [str(w.message) for w in caught]
    assert {w.filename for w in ours} == {__file__}


@pytest.mark.parametrize("name", CALLS)
def test_the_line_is_the_users(name):
    category, call = CALLS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert_here(caught, category)


def test_the_line_is_the_users_through_an_estimator():
    """Of a pipeline in a search, deepest below the user's line."""
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    from fastkpca.sklearn import KernelPCA

    steps = make_pipeline(KernelPCA(3, kernel="rbf", tol=1e-16), LogisticRegression())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GridSearchCV(steps, {"kernelpca__gamma": [0.5]}, cv=2).fit(X, (X[:, 0] > 0).astype(int))
    assert_here(caught, CertificateWarning)


def test_the_line_is_the_users_in_a_thread_of_theirs():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        thread = threading.Thread(target=lambda: CALLS["krylov"][1]())
        thread.start()
        thread.join()
    assert_here(caught, CertificateWarning)


def test_a_thread_that_starts_in_fastkpca_warns_too():
    """No line of the user's is on its stack; the warning comes all the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(fk.kpca, X, "linear", 5).result()
    assert [w.category for w in caught] == [ComponentsWarning]
    done = threading.Event()
    scope = {"__name__": "fastkpca.made_up", "warn": warn_caller, "done": done}
    exec("def run():\n    warn('said', UserWarning)\n    done.set()", scope)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _thread.start_new_thread(scope["run"], ())
        assert done.wait(10)
    assert [str(w.message) for w in caught] == ["said"]


def test_code_without_a_module_of_its_own_is_warned():
    """Of a text that is executed, as those of notebooks of some kinds and of rules engines."""
    with pytest.raises(ComponentsWarning):
        exec("kpca(X, 'linear', 5)", {"kpca": fk.kpca, "X": X})


def test_a_filter_makes_it_an_error_and_once_is_once():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ComponentsWarning)
        with pytest.raises(ComponentsWarning):
            fk.kpca(X, "linear", 5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            fk.kpca(X, "linear", 5)
    assert len(caught) == 1


def quietly(X, *args, **options):
    """The model, and the text of its CertificateWarning, or None."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fk.kpca(X, *args, **options)
    said = [str(w.message) for w in caught if issubclass(w.category, CertificateWarning)]
    width = float(np.ptp(model.eigenvalue_bounds, axis=1).max() / model.eigenvalues[0])
    return model, width, said[0] if said else None


SPREAD = np.random.default_rng(0).standard_normal((1200, 3))
GOES_ON, TOL, MEMORY = "method='auto' goes on with exact products", "a larger tol helps", "a larger memory_limit"
LAPACK = "method='dense' and memory_limit="
PIVOTS = {"features": "pivots", "tol": 1e-5, "sigma": 0.3}
ADVICE = {
    # (what is asked for, what of all advice is given, what follows it)
    "no memory for LAPACK": (
        {"method": "krylov", "sigma": 0.05, "tol": 1e-4, "memory_limit": "25MB", "max_passes": 4},
        {LAPACK},
        {"method": "dense", "memory_limit": "29MB"},
    ),
    "rounding of pivots": (PIVOTS | {"tol": 1e-15, "sigma": 1.0}, {GOES_ON}, {"features": "auto"}),
    "rounding": ({"features": "monomial", "tol": 1e-15, "sigma": 3.0}, {TOL}, {"tol": 1e-11}),
    "memory": (PIVOTS | {"memory_limit": "6MB"}, {GOES_ON, MEMORY}, {"memory_limit": "200MB"}),
    "memory, exact": (PIVOTS | {"memory_limit": "14MB"}, {GOES_ON, MEMORY}, {"features": "auto"}),
}


@pytest.mark.parametrize("case", ADVICE)
def test_advice_helps_where_it_is_followed(case):
    options, words, change = ADVICE[case]
    options = {"kernel": "gaussian", "c": 5} | options
    _, width, said = quietly(SPREAD, **options)
    assert said is not None and {word for word in (GOES_ON, TOL, MEMORY, LAPACK) if word in said} == words
    _, narrower, again = quietly(SPREAD, **options | change)
    assert again is None or narrower <= max(0.1 * width, options["tol"]), said


ROUGH = {"features": "pivots", "tol": 0.9, "c": 0.999, "sigma": 1.0}
FRACTIONS = {
    "max_passes": ({"method": "krylov", "max_passes": 2}, {"max_passes": 20}),
    "method='krylov'": ({"method": "krylov", "max_passes": 2}, {"method": "dense"}),
    "smaller tol": (ROUGH, {"tol": 1e-3}),
    "method='dense'": (ROUGH, {"features": "auto", "method": "dense"}),
}


@pytest.mark.parametrize("advice", FRACTIONS)
def test_advice_of_a_fraction_helps_where_it_is_followed(advice):
    options, change = FRACTIONS[advice]
    options = {"kernel": "gaussian", "c": 0.5, "sigma": 0.3, "tol": 1e-4} | options
    # so many rows that their values are not held, over which there would be more passes
    X = np.random.default_rng(0).standard_normal((2200, 3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fk.kpca(X, **options)
    text = next(str(w.message) for w in caught if w.category is ComponentsWarning)
    assert "for certain, less than asked for; " in text and advice in text
    other = fk.kpca(X, **options | change)
    assert other.explained.sum() >= 100 * options["c"] * (1 - 1e-9) > model.explained.sum()


@pytest.mark.parametrize("change", [{"max_iter": 200}, {"method": "auto", "eigen_solver": "dense"}])
def test_advice_where_tol_is_zero_helps_where_it_is_followed(change):
    sklearn = pytest.importorskip("fastkpca.sklearn")

    def width(**options):
        estimator = sklearn.KernelPCA(5, kernel="rbf", gamma=5.0, **{"method": "krylov"} | options).fit(SPREAD)
        return float(np.ptp(estimator.model_.eigenvalue_bounds, axis=1).max() / estimator.model_.eigenvalues[0])

    with pytest.warns(CertificateWarning, match=r"a larger max_iter or eigen_solver='dense' may narrow it"):
        wide = width(max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        assert width(**{"max_iter": 1} | change) <= 0.5 * wide


def test_a_probability_is_on_the_model_and_no_warning_where_tol_is_met():
    X = np.random.default_rng(0).random((5000, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fk.kpca(X, "gaussian", 5, sigma=0.8, features="pivots", tol=1e-3, return_scores=False)
        flat = fk.kpca(FLAT, "gaussian", 2, sigma=0.02, method="krylov", tol=1e-3, max_passes=60, return_scores=False)
        sure = fk.kpca(SPREAD, "gaussian", 2, sigma=2.0)
    assert (sure.bound_kind, sure.failure_probability) == ("guaranteed", 0.0)
    assert "failure probability" not in repr(sure)
    for found in (model, flat):
        assert found.bound_kind == "probabilistic" and 0 < found.failure_probability <= 1e-5
        assert f"probabilistic (failure probability {found.failure_probability:.2g}) intervals" in repr(found)


def test_estimators_in_threads_leave_the_filters_alone():
    """``catch_warnings`` in two threads at once may leave its filter behind for good."""
    pytest.importorskip("sklearn")
    from fastkpca.sklearn import KernelPCA

    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        fits = [pool.submit(KernelPCA(5, kernel="linear", n_jobs=1).fit, X) for _ in range(40)]
        for fit in fits:
            fit.result()
    assert list(warnings.filters) == before


def test_no_warning_of_ours_goes_another_way():
    """One helper finds the line, for both distributions."""
    import kernels_contrib

    for package in (Path(fk.__file__).parent, Path(kernels_contrib.__file__).parent):
        for path in package.rglob("*.py"):
            assert "warnings.warn(" not in path.read_text(encoding="utf-8"), path


def test_warnings_of_plugins_point_at_the_user(plugins):
    plugins("acme", {"gaussian": "acme_module:Product"}, {"acme_module": SCALED})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fk.list_kernels()
    assert_here(caught, PluginWarning)
