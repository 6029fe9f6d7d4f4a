"""Warnings point at the user's line: on every route, from every public function, through estimators and threads."""

from __future__ import annotations

import _thread
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import CertificateWarning, ComponentsWarning, PluginWarning, PreimageWarning, warn_caller

X = np.random.default_rng(0).standard_normal((300, 3))
FLAT = np.random.default_rng(1).standard_normal((700, 8))


def model_with_moments():
    return fk.kpca(X, "gaussian", 3, sigma=2.0, tol=1e-3, features="pivots", keep_moments=True)


def preimages():
    model = fk.kpca(X, "gaussian", 20, sigma=0.5, method="dense")
    return fk.kpca_preimage(model, 3.0 * model.score[:20], max_iter=1)


def denoised():
    model = fk.kpca(X, "gaussian", 20, sigma=0.5, method="dense")
    return fk.kpca_denoise(model, X[:20] + 0.3, max_iter=1)


CALLS = {
    "dense": (CertificateWarning, lambda: fk.kpca(X, "gaussian", 3, sigma=1.0, tol=1e-16, method="dense")),
    "dense, few components": (ComponentsWarning, lambda: fk.kpca(X, "linear", 5, method="dense")),
    "features": (CertificateWarning, lambda: fk.kpca(X, "gaussian", 3, sigma=1.0, tol=1e-15, features="pivots")),
    "features, few components": (ComponentsWarning, lambda: fk.kpca(X, "linear", 5, method="features")),
    "krylov": (
        CertificateWarning,
        lambda: fk.kpca(FLAT, "gaussian", 5, sigma=0.3, method="krylov", max_passes=2),
    ),
    "krylov, few components": (ComponentsWarning, lambda: fk.kpca(X, "linear", 5, method="krylov")),
    "auto, LAPACK does not fit": (
        CertificateWarning,
        lambda: fk.kpca(FLAT, "gaussian", 5, sigma=0.3, max_passes=2, memory_limit="12MB"),
    ),
    "like": (CertificateWarning, lambda: fk.kpca(3.0 * X, c=3, like=model_with_moments())),
    "kpca_merge": (CertificateWarning, lambda: fk.kpca_merge(model_with_moments(), tol=1e-15)),
    "kpca_update": (CertificateWarning, lambda: fk.kpca_update(model_with_moments(), X, tol=1e-15)),
    "kpca_preimage": (PreimageWarning, preimages),
    "kpca_denoise": (PreimageWarning, denoised),
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


@pytest.mark.parametrize("wrapped", ["fit", "fit_transform", "pipeline", "search"])
def test_the_line_is_the_users_through_an_estimator(wrapped):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    from fastkpca.sklearn import KernelPCA

    estimator = KernelPCA(3, kernel="rbf", gamma=0.5, tol=1e-16)
    y = (X[:, 0] > 0).astype(int)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if wrapped == "pipeline":
            make_pipeline(estimator, LogisticRegression()).fit(X, y)
        elif wrapped == "search":
            GridSearchCV(make_pipeline(estimator, LogisticRegression()), {"kernelpca__gamma": [0.5]}, cv=2).fit(X, y)
        else:
            getattr(estimator, wrapped)(X)
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


def test_warnings_of_plugins_point_at_the_user(monkeypatch):
    from fastkpca.kernels import _registry

    problem = "distribution acme claims 'gaussian'"
    monkeypatch.setattr(type(_registry._KERNELS), "plugins", lambda self, fresh=False: ([], [problem]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fk.list_kernels()
    assert_here(caught, PluginWarning)
