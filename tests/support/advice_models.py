"""Advice of fitted models, products, files, estimators: (a call that fails, words of its message, the call after)."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from advice import FOLDER, GAPS, SPARE, Case, U, X, Y, fitted, gram, without_warnings
from advice_fits import NUMERIC, Words
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fastkpca as fk
from fastkpca.kernels import Gaussian
from fastkpca.sklearn import KernelPCA, KernelPCANovelty, Nystroem
from fastkpca.state import save_state
from fastkpca.testing import check_kernel

K = Gaussian(sigma=2.0).block(X, X)
WORDS = ["a", "ab", "b", "abc", "bc", "cd"]
NEW = SPARE[:40]


def of_map(**options):
    return fk.kpca(X, "polynomial", 2, method="features", **options)


def of_matrix():
    return fk.kpca(K, "precomputed", 2)


def of_words(**options):
    return fk.kpca(WORDS, Words(), 1, **options)


def limits(model=None, **options):
    return fk.kpca_limits(model or fitted(), SPARE, **{"confidence": 0.9} | options)


def lagged():
    return without_warnings(lambda: fk.kpca_baseline(SPARE, "linear", 2, confidence=0.9, lags=2))


def put(name, model=None, **options):
    fk.save(model or fitted(), FOLDER / name, **options)


def state(values, **options):
    save_state(FOLDER / "values", options.pop("kind", "my_package:MyModel"), values, overwrite=True)


def grown(X=X, **options):
    return KernelPCA(**{"n_components": 2, "kernel": "rbf", "gamma": 0.1, "tol": 1e-3} | options).partial_fit(X)


def estimator(**options):
    return KernelPCA(**{"n_components": 2, "kernel": "rbf", "gamma": 0.1} | options)


def shift_and_map():
    F = fk.features(X, "gaussian", sigma=2.0, tol=1e-3)
    return {"map": F.map, "kernel": F.kernel, "shift": F.shift}


CASES: dict[str, Case] = {
    # files
    "a model as a number": (
        lambda: fk.save(fitted(), 3),
        "give the name of a file as text or as a pathlib.Path",
        lambda: [put("m"), fk.save(fitted(), str(FOLDER / "n"))],
    ),
    "no folder": (
        lambda: put("folder/m"),
        "make it first",
        lambda: [(FOLDER / "folder").mkdir(), put("folder/m"), shutil.rmtree(FOLDER / "folder")],
    ),
    "a folder": (lambda: fk.save(fitted(), FOLDER), "give the name of a file", lambda: put("o")),
    "the ending of MATLAB": (
        lambda: put("p.mat"),
        "export_mat(model,",
        lambda: [fk.export_mat(fitted(), FOLDER / "p.mat"), put("model.kpca")],
    ),
    "a file that is there": (
        lambda: [put("q"), put("q")],
        "save(..., overwrite=True) replaces it",
        lambda: put("q", overwrite=True),
    ),
    "a number to load": (
        lambda: fk.load(3),
        "give the name of a file, as a string or a Path",
        lambda: [put("r"), fk.load(FOLDER / "r"), fk.load(str(FOLDER / "r"))],
    ),
    "a device to load": (
        lambda: fk.load("/dev/null"),
        "give the name of a model file",
        lambda: [put("s"), fk.load(FOLDER / "s")],
    ),
    "words for MATLAB": (
        lambda: named_words(lambda model: fk.export_mat(model, FOLDER / "t.mat")),
        "use save",
        lambda: named_words(lambda model: put("words", model)),
    ),
    "kind of a state": (lambda: state({"a": 1}, kind=3), "as in 'my_package:MyModel'", lambda: state({"a": 1})),
    "values of a state": (lambda: state([1]), "give a mapping of names to values", lambda: state({"a": 1})),
    "a dot in a name": (
        lambda: state({"a.b": X, "a": {"b": X}}),
        "leave the dot out of the names of values",
        lambda: state({"ab": X, "a": {"b": X}}),
    ),
    "a map alone": (
        lambda: state({"map": shift_and_map()["map"]}),
        "add its kernel as 'kernel' in values, and its array 'shift'",
        lambda: state(shift_and_map()),
    ),
    # models
    "no model": (
        lambda: fk.kpca_project(3, X),
        "give what kpca() or load() returned, or a fitted estimator",
        lambda: [
            fk.kpca_project(fitted(), X),
            fk.kpca_project(estimator().fit(X), X),
            fk.kpca_project(make_pipeline(StandardScaler(), estimator()).fit(X)[-1], X),
        ],
    ),
    "no range of columns": (
        lambda: fk.kpca_contributions(of_map(), NEW),
        "give train=, the rows that it was fitted on, or limits",
        lambda: [
            fk.kpca_contributions(of_map(), NEW, train=X),
            fk.kpca_contributions(of_map().with_limits(limits(of_map())), NEW),
        ],
    ),
    "a row without values": (
        lambda: fk.kpca_fill(fitted(), np.vstack([GAPS, np.full(4, np.nan)])),
        "leave it out",
        lambda: fk.kpca_fill(fitted(), GAPS),
    ),
    "importance of one row": (
        lambda: fk.kpca_importance(fitted(), X[:1]),
        "give at least two (kpca_contributions",
        lambda: [fk.kpca_importance(fitted(), X[:2]), fk.kpca_contributions(fitted(), X[:1])],
    ),
    "importance of far rows": (
        lambda: fk.kpca_importance(fitted(), X + 1e6),
        "give rows on the same scale (in a pipeline: pipeline[:-1]",
        lambda: pipeline_importance(),
    ),
    "an empirical limit of few rows": (
        lambda: limits(confidence=0.99, spe="empirical"),
        "give more rows, a lower confidence, or another limit",
        lambda: [
            fk.kpca_limits(fitted(), np.tile(SPARE, (3, 1)) + 0.1, confidence=0.99, spe="empirical"),
            limits(confidence=0.9, spe="empirical"),
            limits(confidence=0.99, spe="box", t2="chi2"),
        ],
    ),
    "statistics of other rows": (
        lambda: limits().exceeded(t2=np.ones(3), spe=np.ones(2)),
        "give both of the same rows",
        lambda: limits().exceeded(t2=np.ones(3), spe=np.ones(3)),
    ),
    "a statistic is missing": (
        lambda: limits().exceeded(t2=[1.0, np.nan]),
        "leave these rows out",
        lambda: limits().exceeded(t2=[1.0]),
    ),
    "labels of other rows in a monitor": (
        lambda: fk.kpca_monitor(fitted(), NEW, limits=limits(), labels=[1]),
        "give one for each of the 40 rows",
        lambda: fk.kpca_monitor(fitted(), NEW, limits=limits(), labels=range(40)),
    ),
    "a confidence and no limits": (
        lambda: fk.kpca_monitor(fitted(), NEW, limits=0.9),
        "give what kpca_limits(model, X, joint=True) returns",
        lambda: fk.kpca_monitor(fitted(), NEW, limits=limits(joint=True)),
    ),
    "no limits": (
        lambda: fk.kpca_monitor(fitted(), NEW),
        "give limits=kpca_limits(model, X, joint=True)",
        lambda: [
            fk.kpca_monitor(fitted(), NEW, limits=limits(joint=True)),
            fk.kpca_monitor(fitted().with_limits(limits()), NEW),
        ],
    ),
    "no rows before": (
        lambda: fk.kpca_monitor(lagged(), NEW[:2]),
        "give more rows in a row",
        lambda: fk.kpca_monitor(lagged(), NEW[:3]),
    ),
    "no diagonal": (
        lambda: fk.kpca_spe(of_matrix(), K[:3]),
        "give diagonal=, one value for each row",
        lambda: fk.kpca_spe(of_matrix(), K[:3], diagonal=np.ones(3)),
    ),
    "limits of objects": (
        lambda: fk.kpca_limits(of_words(), confidence=0.6),
        "give kpca_limits(model, X) some from normal operation",
        lambda: fk.kpca_limits(of_words(), ["abcd", "ac", "bd", "ad"], confidence=0.6),
    ),
    "limits of a matrix": (
        lambda: fk.kpca_limits(of_matrix(), confidence=0.9),
        "give kpca_limits(model, K_new, diagonal=...)",
        lambda: fk.kpca_limits(of_matrix(), NUMERIC.block(SPARE, X), diagonal=np.ones(60), confidence=0.9),
    ),
    "SPE of one row": (
        lambda: fk.kpca_limits(fitted(), SPARE[:1], confidence=0.9, spe="box", t2="chi2"),
        "give more rows",
        lambda: limits(spe="box", t2="chi2"),
    ),
    "F of few rows": (
        lambda: limits(fitted(sample_weight=np.full(60, 0.03)), t2="F"),
        "give t2='chi2', fit fewer components, or scale the weights so that they count rows",
        lambda: [
            limits(fitted(sample_weight=np.full(60, 0.03)), t2="chi2", spe="box"),
            limits(fitted(1, sample_weight=np.full(60, 0.03)), t2="F", spe="box"),
            limits(fitted(sample_weight=np.ones(60)), t2="F"),
        ],
    ),
    "scores that overflow": (
        lambda: fk.kpca_preimage(fitted(kernel="linear"), np.full((1, 2), 1.7e308)),
        "give scores like those of the training rows",
        lambda: fk.kpca_preimage(fitted(kernel="linear"), np.ones((1, 2))),
    ),
    "the regularisation of a search": (
        lambda: fk.kpca_preimage(fitted(), np.ones((1, 2)), alpha=1.0),
        "drop it, or give method='ridge'",
        lambda: [
            fk.kpca_preimage(fitted(), 0.1 * np.ones((1, 2))),
            fk.kpca_preimage(fitted(), np.ones((1, 2)), alpha=1.0, train=X, method="ridge"),
        ],
    ),
    "the start of a regression": (
        lambda: fk.kpca_preimage(fitted(), np.ones((1, 2)), start=X[:1], train=X, method="ridge"),
        "drop one",
        lambda: [
            fk.kpca_preimage(fitted(), 0.1 * np.ones((1, 2)), start=X[:1]),
            fk.kpca_preimage(fitted(), np.ones((1, 2)), train=X, method="ridge"),
        ],
    ),
    "a projection that overflows": (
        lambda: fk.kpca_project(fk.kpca(np.float32(X), "polynomial", 2, degree=4), np.float32(X) * np.float32(1e12)),
        "scale X as the training rows were, or leave that row out",
        lambda: fk.kpca_project(fk.kpca(np.float32(X), "polynomial", 2, degree=4), np.float32(X)),
    ),
    # uncertainty
    "an indefinite kernel's uncertainty": (
        lambda: fk.kpca_uncertainty(fitted(kernel="tanh"), X),
        "take a kernel that is",
        lambda: fk.kpca_uncertainty(fitted(), X, n_bootstrap=100),
    ),
    "other rows": (
        lambda: fk.kpca_uncertainty(fitted(), SPARE),
        "give the rows that it was fitted on",
        lambda: fk.kpca_uncertainty(fitted(), X, n_bootstrap=100),
    ),
    "some of the rows": (
        lambda: fk.kpca_uncertainty(fitted(), X[:50]),
        "give the rows that it was fitted on",
        lambda: fk.kpca_uncertainty(fitted(), X, n_bootstrap=100),
    ),
    "weights that are not known": (
        lambda: fk.kpca_uncertainty(read_back(), X),
        "give sample_weight=",
        lambda: fk.kpca_uncertainty(read_back(), X, sample_weight=np.arange(60.0), n_bootstrap=100),
    ),
    "a bootstrap of few rows": (
        lambda: fk.kpca_uncertainty(fk.kpca(X[:5], NUMERIC, 1), X[:5]),
        "give at least",
        lambda: fk.kpca_uncertainty(fitted(), X, n_bootstrap=100),
    ),
    # products
    "a word for rows": (
        lambda: gram()["a"],
        "give a number, a slice, or numbers or truth values of the 60 rows",
        lambda: [gram()[3], gram()[1:3], gram()[[1, 2]], gram()[Y == 1]],
    ),
    "a product that overflows": (
        lambda: fk.features(X, "linear", tol=1e-3, max_features=4) @ np.full((4, 1), 1.7e308),
        "scale the rows or U down, or change the kernel's parameters",
        lambda: [gram() @ U, fk.gram(X, "linear") @ U],
    ),
    "an infinite factor": (lambda: np.inf * gram(), "give such a number", lambda: (2.0 * gram()) @ U),
    "a summand of another shape": (
        lambda: gram() + np.ones((3, 3)),
        "as in K + scipy.sparse.diags(v) for numbers v on the diagonal",
        lambda: [(gram() + np.ones((60, 60))) @ U, (gram() + scipy.sparse.diags(np.arange(60.0))) @ U],
    ),
    "a complex summand": (
        lambda: gram() + scipy.sparse.identity(60, dtype=complex),
        "add real ones",
        lambda: (gram() + np.eye(60)) @ U,
    ),
    "an array that is too large": (
        lambda: np.asarray(fk.gram(np.zeros((20000, 1)) + np.arange(20000)[:, None], "gaussian", sigma=1.0)),
        "take products, K @ U, or some rows of a Gram matrix, K[rows]",
        lambda: [gram() @ U, gram()[[1, 2]]],
    ),
    "almost singular": (
        lambda: inverse_of_twins(alpha=1e-300),
        "give a larger alpha",
        lambda: inverse_of_twins(alpha=1e-3),
    ),
    "checks of a matrix's kernel": (
        lambda: check_kernel(Words()),
        "give as X a list of 50 to 200 objects that it takes, as in check_kernel(kernel, X)",
        lambda: check_kernel(Words(), [f"{i:b}" for i in range(1, 61)]),
    ),
    # estimators
    "a huge number": (
        lambda: estimator(gamma=10**400).fit(X),
        "give a smaller one",
        lambda: estimator(gamma=10).fit(X),
    ),
    "partial_fit of a matrix": (
        lambda: cause(lambda: grown(kernel="precomputed")),
        "use fit",
        lambda: estimator(kernel="precomputed", gamma=None).fit(K),
    ),
    "partial_fit of tanh": (
        lambda: grown(kernel=fk.get_kernel("tanh", scale=0.1), gamma=None),
        "use fit",
        lambda: estimator(kernel=fk.get_kernel("tanh", scale=0.1), gamma=None).fit(X),
    ),
    "partial_fit and an inverse": (
        lambda: grown(fit_inverse_transform=True),
        "set fit_inverse_transform=False",
        lambda: grown(fit_inverse_transform=False),
    ),
    "partial_fit and a method": (
        lambda: grown(method="dense"),
        "set method='auto', or use fit",
        lambda: [grown(method="auto"), estimator(method="dense").fit(X)],
    ),
    "partial_fit of one row": (
        lambda: grown(X[:1]),
        "give it as many as there are components, two at least",
        lambda: grown(X[:30]),
    ),
    "an inverse after partial_fit": (
        lambda: grown().inverse_transform(np.zeros((1, 2))),
        "fastkpca.kpca_preimage(estimator, Z, train=rows) learns it from rows that you give, or set",
        lambda: [
            fk.kpca_preimage(grown(), np.zeros((1, 2)), train=X),
            estimator(fit_inverse_transform=True).fit(X).inverse_transform(np.zeros((1, 2))),
        ],
    ),
    "an inverse that was not learned": (
        lambda: estimator().fit(X).inverse_transform(np.zeros((1, 2))),
        "fit_inverse_transform=True; set it and fit again",
        lambda: estimator(fit_inverse_transform=True).fit(X).inverse_transform(np.zeros((1, 2))),
    ),
    "an inverse of rows": (
        lambda: estimator(fit_inverse_transform=True).fit(X).inverse_transform(X),
        "give scores, as transform returns them",
        lambda: (lambda e: e.inverse_transform(e.transform(X)))(estimator(fit_inverse_transform=True).fit(X)),
    ),
    "scores in another order": (
        lambda: in_another_order().inverse_transform(SCORES[SCORES.columns[::-1]]),
        "take X[list(estimator.get_feature_names_out())]",
        lambda: (lambda e: e.inverse_transform(SCORES[SCORES.columns[::-1]][list(e.get_feature_names_out())]))(
            in_another_order()
        ),
    ),
    "two ways to solve": (
        lambda: estimator(method="krylov", eigen_solver="dense").fit(X),
        "give one of them",
        lambda: [estimator(method="krylov").fit(X), estimator(eigen_solver="dense").fit(X)],
    ),
    "every component": (
        lambda: estimator(n_components=None, memory_limit="100kB").fit(np.tile(X, (9, 1))),
        "n_components=10, say,",
        lambda: estimator(n_components=10, memory_limit="100MB").fit(np.tile(X, (9, 1))),
    ),
    "random pivots of tanh": (
        lambda: Nystroem(kernel="sigmoid", selection="random_pivoting", n_components=5).fit(X),
        "take selection='uniform'",
        lambda: Nystroem(kernel="sigmoid", selection="uniform", n_components=5).fit(X),
    ),
    "values that are not finite": (
        lambda: estimator(kernel=lambda x, y: np.inf, gamma=None).fit(X),
        "rescale X or change the kernel's parameters",
        lambda: estimator(kernel=lambda x, y: float(x @ y), gamma=None).fit(X),
    ),
    "a ceiling": (
        lambda: KernelPCANovelty(kernel="rbf", gamma=100.0, n_components=2).fit(X),
        "Scale the columns, as by StandardScaler, or give a gamma a tenth as large",
        lambda: KernelPCANovelty(kernel="rbf", gamma=0.1, n_components=2).fit(StandardScaler().fit_transform(X)),
    ),
}
SCORES = pd.DataFrame(np.zeros((3, 2)), columns=["kernelpca0", "kernelpca1"])


def read_back():
    """A model of weighted rows from a file, which holds none of them."""
    put("weighted", of_map(sample_weight=np.arange(60.0)), overwrite=True)
    return fk.load(FOLDER / "weighted")


def inverse_of_twins(**options):
    return estimator(fit_inverse_transform=True, **options).fit(np.repeat(X, 2, 0))


def cause(call):
    """What scikit-learn has raised its own error from."""
    try:
        call()
    except AttributeError as error:
        raise error.__cause__ from None


def in_another_order():
    return estimator(fit_inverse_transform=True).fit(X)


def named_words(call) -> Any:
    with fk.register_kernel("words", Words):
        call(of_words())


def pipeline_importance() -> Any:
    pipeline = make_pipeline(StandardScaler(), estimator()).fit(X + 1e6)
    return fk.kpca_importance(pipeline[-1], pipeline[:-1].transform(X + 1e6))
