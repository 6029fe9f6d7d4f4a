"""Advice of fits, kernels and checks of arguments: (a call that fails, words of its message, the call after that)."""

from __future__ import annotations

from typing import Any

import dask.array
import numpy as np
from advice import FOLDER, GAPS, SPARE, Case, Nearest, U, X, Y, fitted, gram, without_warnings
from kernels_contrib.cca import kernel_cca
from kernels_contrib.hsic import hsic_test
from kernels_contrib.matern import Matern
from kernels_contrib.mmd import mmd_test

import fastkpca as fk
from fastkpca.kernels import Gaussian, Kernel, ObjectKernel, Precomputed
from fastkpca.kernels.columns import OnColumns

K = Gaussian(sigma=2.0).block(X, X)
HALF = X[:30]
INDEFINITE = K - 0.5 * np.eye(60)
OUTWEIGHED = np.diag(np.r_[np.arange(1.0, 6.0), np.full(55, -10.0)])
NUMERIC = fk.get_kernel("gaussian", sigma=2.0)


def semidefinite(K):
    w, V = np.linalg.eigh(K)  # the words of the advice
    return (V * np.maximum(w, 0)) @ V.T


def moments(**options):
    return fitted(keep_moments=True, features="pivots", **options)


def population(X_new=SPARE, model=None, **options):
    return fk.kpca_population(model or fitted(), X_new, **options)


def select(*kernels, rows=X, **options):
    return fk.kpca_select(rows, *kernels, **{"c": [2], "folds": 3} | options)


class Wide(Kernel):
    """A kernel that leaves the check of its width to the base class."""

    api_version = 1
    positive_semidefinite = True
    parameters = {"width": 1.0}
    width_parameter = "width"

    def block(self, X, Y):
        return X @ Y.T / self.width**2


class Blockless:
    block = None


def baseline(rows, *model, **options):
    return without_warnings(lambda: fk.kpca_baseline(rows, *model, confidence=0.9, **options))


def boxed(times):
    """A model like one of Fourier features, whose rows span some times the range of X."""
    first = fk.kpca(times * X[:, :2], "gaussian", 2, sigma=0.5, keep_moments=True, tol=1e-4, features="fourier")
    return fk.kpca(2.0 * X[:, :2], c=2, like=first, tol=1e-2)


CASES: dict[str, Case] = {
    # arguments of every fit
    "c is a truth value": (
        lambda: fitted(True),
        "(c=5), a fraction of the variance between 0 and 1 (c=0.95), or None for all",
        lambda: [fitted(c=5), fitted(c=0.95), fitted(c=None)],
    ),
    "tol is nan": (lambda: fitted(tol=np.nan), "a number between 0 and 1, as in 1e-6", lambda: fitted(tol=1e-6)),
    "tol below all": (lambda: fitted(tol=1e-200), "give 1e-100 or more", lambda: fitted(method="dense", tol=1e-12)),
    "memory of nothing": (lambda: fitted(memory_limit=0), "more than nothing", lambda: fitted(memory_limit="500MB")),
    "rng is a word": (lambda: select("gaussian", rng="a"), "give an int", lambda: select("gaussian", rng=1)),
    "rng is negative": (lambda: select("gaussian", rng=-1), "give an int", lambda: select("gaussian", rng=1)),
    "RandomState": (
        lambda: select("gaussian", rng=np.random.RandomState(0)),
        "numpy.random.default_rng(seed) replaces RandomState",
        lambda: select("gaussian", rng=np.random.default_rng(0)),
    ),
    "fewer features than components": (
        lambda: fitted(5, max_features=3),
        "raise it",
        lambda: fitted(5, max_features=30),
    ),
    "more features than rows": (
        lambda: fitted(max_features=61),
        "give at most that many, or leave it out",
        lambda: [fitted(max_features=60), fitted()],
    ),
    "ragged weights": (
        lambda: fitted(sample_weight=[[1.0], [1.0, 2.0]]),
        "give",
        lambda: fitted(sample_weight=np.ones(60)),
    ),
    "masked weights": (
        lambda: fitted(sample_weight=np.ma.masked_equal(np.arange(60.0), 3)),
        "give",
        lambda: fitted(sample_weight=np.arange(60.0)),
    ),
    "weights are words": (lambda: fitted(sample_weight=["a"] * 60), "give", lambda: fitted(sample_weight=[1.0] * 60)),
    "weights of other rows": (
        lambda: fitted(sample_weight=np.ones(3)),
        "give",
        lambda: fitted(sample_weight=np.ones(60)),
    ),
    "weights that are not finite": (
        lambda: fitted(sample_weight=np.full(60, np.nan)),
        "give",
        lambda: fitted(sample_weight=np.ones(60)),
    ),
    "out without a number of components": (
        lambda: fitted(0.9, out=np.empty((60, 2))),
        "give out as a function of (shape, dtype) that makes the array, or c as a whole number",
        lambda: [fitted(0.9, out=np.empty), fitted(2, out=np.empty((60, 2)))],
    ),
    # routes
    "landmarks of another map": (
        lambda: fitted(landmarks=[1, 2, 3], features="fourier"),
        "drop one",
        lambda: fitted(landmarks=[1, 2, 3]),
    ),
    "features and like": (
        lambda: fitted(like=moments(), features="pivots"),
        "drop one",
        lambda: fitted(like=moments()),
    ),
    "max_features and like": (
        lambda: fitted(like=moments(), max_features=5),
        "drop one",
        lambda: fitted(like=moments()),
    ),
    "another kernel and like": (
        lambda: fk.kpca(X, "gaussian", 2, sigma=3.0, like=moments()),
        "drop one",
        lambda: [fk.kpca(X, c=2, like=moments()), fk.kpca(X, "gaussian", 2, sigma=3.0)],
    ),
    "like without a map": (
        lambda: fitted(like=fitted()),
        "method='features' (or keep_moments=True)",
        lambda: [
            fitted(like=fitted(tol=1e-6, **how), tol=1e-2) for how in ({"method": "features"}, {"keep_moments": True})
        ],
    ),
    "features of a kernel without": (
        lambda: fitted(kernel="tanh", max_features=5),
        "leave them out",
        lambda: fitted(kernel="tanh"),
    ),
    "products and features": (
        lambda: fitted(products="exact", max_features=5),
        "drop one",
        lambda: [fitted(products="exact"), fitted(max_features=30)],
    ),
    "a forced method": (
        lambda: fitted(features="pivots", method="dense"),
        "drop one",
        lambda: [fitted(features="pivots"), fitted(method="dense")],
    ),
    "no route": (
        lambda: fitted(method="dense", memory_limit="75kB"),
        "raise memory_limit or tol, ask for fewer components, or take another method",
        lambda: [fitted(method="dense", memory_limit="70MB"), fitted(method="auto")],
    ),
    "too few features for a map": (
        lambda: fk.kpca(X, "polynomial", 2, degree=3, features="monomial", max_features=10),
        "raise max_features, memory_limit or tol, ask for fewer components, or take another method",
        lambda: [
            fk.kpca(X, "polynomial", 2, degree=3, features="monomial", max_features=35),
            fk.kpca(X, "polynomial", 2, degree=3, max_features=10),
        ],
    ),
    "no memory to begin": (
        lambda: fitted(memory_limit=1000),
        "raise memory_limit",
        lambda: fitted(memory_limit="500MB"),
    ),
    "standardized matrix": (
        lambda: fk.kpca(K, "precomputed", 2, standardize=True),
        "leave it out",
        lambda: fk.kpca(K, "precomputed", 2),
    ),
    "values beyond float32": (
        lambda: fk.kpca(np.float32(X) * np.float32(1e16), "polynomial", 2, degree=4),
        "give X as float64, or scale it",
        lambda: [
            fk.kpca((np.float32(X) * np.float32(1e16)).astype(np.float64), "polynomial", 2, degree=4),
            fk.kpca(np.float32(X), "polynomial", 2, degree=4),
        ],
    ),
    "no variance to explain": (
        lambda: fk.kpca(OUTWEIGHED, "precomputed", 0.9, semidefinite=False),
        "give a number of components",
        lambda: without_warnings(lambda: fk.kpca(OUTWEIGHED, "precomputed", 2, semidefinite=False)),
    ),
    "rows outside the box of like": (
        lambda: boxed(1.0),
        "make the first model from rows that span the range (two at its corners",
        lambda: boxed(2.1),
    ),
    # gram() and features()
    "tol of entries is a word": (lambda: gram(tol="a"), "give a positive number", lambda: gram(tol=1e-3)),
    "tol of entries is zero": (lambda: gram(tol=0.0), "give a positive number", lambda: gram(tol=1e-3)),
    "features of tanh": (lambda: fk.features(X, "tanh"), "use gram()", lambda: fk.gram(X, "tanh") @ U),
    "landmarks that miss a tolerance": (
        lambda: fk.features(X, "gaussian", sigma=2.0, landmarks=range(20), tol=1e-3),
        "give more landmarks, or leave out tol",
        lambda: [
            fk.features(X, "gaussian", sigma=2.0, landmarks=range(60), tol=1e-3),
            fk.features(X, "gaussian", sigma=2.0, landmarks=range(20)),
        ],
    ),
    "landmarks are features": (
        lambda: fk.features(X, "gaussian", sigma=2.0, landmarks=[1, 2], max_features=2),
        "drop one",
        lambda: fk.features(X, "gaussian", sigma=2.0, landmarks=[1, 2]),
    ),
    "few features": (
        lambda: fk.features(X, "gaussian", sigma=0.1, tol=1e-3, max_features=5),
        "raise tol or max_features, or use gram()",
        lambda: [fk.features(X, "gaussian", sigma=0.1, tol=1e-3, max_features=60), gram() @ U],
    ),
    # missing values, the population, baselines, choices
    "a column without values": (
        lambda: fk.kpca_baseline(
            np.where(np.arange(4) == 1, np.nan, SPARE), "linear", 2, confidence=0.9, fill_missing=True
        ),
        "leave it out",
        lambda: baseline(GAPS, fill_missing=True),
    ),
    "all components fill": (
        lambda: baseline(GAPS, "linear", 4, fill_missing=True),
        "give fewer components",
        lambda: baseline(GAPS, "linear", 2, fill_missing=True),
    ),
    "baseline of a matrix": (
        lambda: fk.kpca_baseline(K, "precomputed"),
        "give it the rows",
        lambda: fk.kpca_baseline(SPARE, confidence=0.9),
    ),
    "baseline of few rows": (
        lambda: fk.kpca_baseline(X[:3], confidence=0.9, lags=2),
        "give more rows",
        lambda: fk.kpca_baseline(SPARE, confidence=0.9, lags=2),
    ),
    "population of the training rows": (
        lambda: population(X),
        "fit on one half of the rows, and give the other",
        lambda: population(X[30:], fk.kpca(X[:30], "gaussian", 2, sigma=2.0)),
    ),
    "population of few rows": (lambda: population(SPARE[:2]), "rows that the fit has not seen", lambda: population()),
    "an unbounded kernel": (
        lambda: population(model=fitted(kernel="linear")),
        "take a kernel of x - y, as 'gaussian', or give squared_diameter=",
        lambda: [population(), population(model=fitted(kernel="linear"), squared_diameter=400.0)],
    ),
    "a diameter of zero": (
        lambda: population(squared_diameter=0),
        "give a positive number",
        lambda: population(squared_diameter=2.0),
    ),
    "permutations without end": (
        lambda: [call(X, SPARE, permutations=1.5e8) for call in (hsic_test, mmd_test, kernel_cca)],
        "and 1000000 at most",
        lambda: [call(X, SPARE, permutations=9) for call in (hsic_test, mmd_test)],
    ),
    "resamples without end": (
        lambda: fk.kpca_uncertainty(fitted(), X, n_bootstrap=10**8),
        "and 1000000 at most",
        lambda: fk.kpca_uncertainty(fitted(), X, n_bootstrap=100),
    ),
    "components of a population": (
        lambda: population(n_components=3),
        "and 2 at most",
        lambda: population(n_components=2),
    ),
    "a small diameter": (
        lambda: population(squared_diameter=1e-3),
        "give a bound on all rows that the process can give",
        lambda: population(squared_diameter=2.0),
    ),
    "a spectrum of scaled rows": (
        lambda: population(spectrum=fitted(standardize=True), model=fitted(standardize=True)),
        "leave spectrum out, or divide the columns by numbers that were fixed before",
        lambda: [
            population(),
            population(SPARE / 2.0, fk.kpca(X / 2.0, NUMERIC, 2), spectrum=fk.kpca(SPARE / 2.0, NUMERIC, 2)),
        ],
    ),
    "forget": (
        lambda: fk.kpca_update(moments(), X, forget=2.0),
        "as in 0.9",
        lambda: fk.kpca_update(moments(), X, forget=0.9),
    ),
    "part of itself": (
        lambda: fk.kpca_subtract(moments(), moments()),
        "give a model of some of its rows",
        lambda: fk.kpca_subtract(moments(), fk.kpca(HALF, c=2, like=moments(), keep_moments=True)),
    ),
    "merged with a stranger": (
        lambda: fk.kpca_merge(moments(), fk.kpca(SPARE, NUMERIC, 2, keep_moments=True, features="pivots")),
        "make the others with like=the first",
        lambda: fk.kpca_merge(moments(), fk.kpca(SPARE, c=2, tol=0.5, keep_moments=True, like=moments()), tol=0.5),
    ),
    "a classifier that is none": (
        lambda: select(y=Y, classifier=3),
        "give an object with fit(Z, y) and score(Z, y)",
        lambda: select(y=Y, classifier=Nearest()),
    ),
    "a classifier without labels": (
        lambda: select(classifier=Nearest()),
        "give y=, one for each row, too",
        lambda: select(y=Y, classifier=Nearest()),
    ),
    "a list of values": (
        lambda: select({"gaussian": [1.0]}),
        "as in {'sigma': [0.5, 1.0]}",
        lambda: select({"gaussian": {"sigma": [0.5, 1.0]}}),
    ),
    "labels of other rows": (lambda: select(y=Y[:3]), "give one label for each of the 60 rows", lambda: select(y=Y)),
    "rows that are lazy": (
        lambda: select(rows=dask.array.from_array(X)),
        "give a sample of these, as in X[index]",
        lambda: select(rows=np.asarray(dask.array.from_array(X)[np.arange(0, 60, 2)])),
    ),
    "a label is missing": (
        lambda: select(y=np.where(np.arange(60) == 3, np.nan, Y)),
        "drop such rows, from X too",
        lambda: select(rows=np.delete(X, 3, 0), y=np.delete(Y, 3)),
    ),
    "labels are fractions": (
        lambda: select(y=X[:, 0]),
        "an object with fit(Z, y) and score(Z, y)",
        lambda: select(y=X[:, 0], classifier=Nearest()),
    ),
    "components of half of the rows": (
        lambda: select("gaussian", c=[40], criterion="stability", folds=2),
        "give c of at most 29, or more rows",
        lambda: select(NUMERIC, c=[29], criterion="stability", folds=2),
    ),
    "folds of few rows": (
        lambda: select(c=[10], folds=20, y=Y),
        "give at most folds=6, or a smaller c",
        lambda: [select(c=[10], folds=6, y=Y), select(c=[2], folds=20, y=Y)],
    ),
    "as many components as columns": (
        lambda: select(c=[4], criterion="preimage"),
        "give a smaller c, or y=",
        lambda: [select(c=[3]), select(c=[4], y=Y)],
    ),
    "several kernels": (
        lambda: select(["gaussian", "linear"], criterion="stability"),
        "give one kernel with its parameters, as in get_kernel('gaussian', sigma=1.0), or y= for criterion='score'",
        lambda: [
            select(fk.get_kernel("gaussian", sigma=1.0), criterion="stability"),
            select(["gaussian", "linear"], y=Y, criterion="score"),
            select(["gaussian", "linear"], c=[3], criterion="preimage"),
        ],
    ),
    "a smaller rank": (
        lambda: select("linear", c=[5], y=Y),
        "give a smaller c, or other kernels",
        lambda: [select("linear", c=[3], y=Y), select("gaussian", c=[5], y=Y)],
    ),
    "an indefinite kernel to choose": (
        lambda: select(["gaussian", "tanh"], y=Y),
        "leave it out",
        lambda: select(["gaussian"], y=Y),
    ),
    # kernels
    "an object without block": (
        lambda: ObjectKernel(object=Blockless()),
        "give an object with a method block(X, Y)",
        lambda: ObjectKernel(object=NUMERIC),
    ),
    "widths of zero": (
        lambda: OnColumns(kernel=NUMERIC, widths=(0.0, 1.0)),
        "give one positive number for each column",
        lambda: OnColumns(kernel=NUMERIC, widths=(2.0, 1.0)),
    ),
    "widths of other columns": (
        lambda: OnColumns(kernel=NUMERIC, columns=(0, 1), widths=(2.0, 1.0, 3.0)),
        "give one for each",
        lambda: OnColumns(kernel=NUMERIC, columns=(0, 1), widths=(2.0, 1.0)),
    ),
    "a mask of other columns": (
        lambda: fk.kpca(X, fk.on_columns("gaussian", [True, False]), 2),
        "give a truth value for each",
        lambda: fk.kpca(X, fk.on_columns("gaussian", [True, False, True, True]), 2),
    ),
    "equal rows": (
        lambda: fk.kpca(np.ones((9, 2)), "gaussian", 2),
        "check X, or give the parameter",
        lambda: gram(sigma=1.0) @ U,
    ),
    "no widths": (lambda: Gaussian(sigma=[]), "give one number, or one for each column", lambda: Gaussian(sigma=1.0)),
    "a width is a word": (lambda: Gaussian(sigma="a"), "give a number", lambda: Gaussian(sigma=2.0)),
    "an infinite scale": (
        lambda: fk.get_kernel("polynomial", offset=np.inf),
        "give a finite number",
        lambda: fk.get_kernel("polynomial", offset=1.0),
    ),
    "a width whose square overflows": (
        lambda: Gaussian(sigma=1e200),
        "give a number from",
        lambda: Gaussian(sigma=1e100),
    ),
    "a width that is not set": (
        lambda: Gaussian().block(X, X),
        "give it, or resolve the kernel on data first",
        lambda: Gaussian(sigma=1.0).block(X, X),
    ),
    "a degree of a half": (
        lambda: fk.get_kernel("polynomial", degree=0.5),
        "give a whole number from",
        lambda: fk.get_kernel("polynomial", degree=3),
    ),
    "an order that is not known": (lambda: Matern(nu=1e9), "give", lambda: Matern(nu=1.5)),
    "a width of the base class": (
        lambda: fk.kpca(X, Wide(width=0.0), 2),
        "give a positive number",
        lambda: fk.kpca(X, Wide(width=1.0), 2),
    ),
    "a polynomial overflows": (
        lambda: fk.kpca(X * 1e60, "polynomial", 2, degree=4),
        "standardise the columns of X, or give a smaller scale",
        lambda: [
            fk.kpca(X * 1e60, "polynomial", 2, degree=4, standardize=True),
            fk.kpca(X * 1e60, "polynomial", 2, degree=4, scale=1 / np.square(X * 1e60).sum(axis=1).max()),
        ],
    ),
    "a matrix that is not square": (
        lambda: fk.kpca(K[:, :5], "precomputed", 2),
        "give the values between all pairs of training rows",
        lambda: [fk.kpca(K, "precomputed", 2), fk.kpca_project(fk.kpca(K, "precomputed", 2), K[:5])],
    ),
    "no matrix is bound": (
        lambda: Precomputed().block(X, X),
        "pass the Gram matrix itself in place of X",
        lambda: fk.kpca(K, "precomputed", 2),
    ),
    "an indefinite matrix": (
        lambda: fk.kpca(INDEFINITE, "precomputed", 2, semidefinite=True),
        "w, V = np.linalg.eigh(K); K = (V * np.maximum(w, 0)) @ V.T",
        lambda: fk.kpca(semidefinite(INDEFINITE), "precomputed", 2, semidefinite=True),
    ),
    "objects are missing": (
        lambda: fk.kpca(["a", None, "b"], Words(), 1),
        "leave out what is missing",
        lambda: fk.kpca(["a", "ab", "b"], Words(), 1),
    ),
    "objects of another kind": (
        lambda: fk.kpca_project(fk.kpca(["a", "ab", "b"], Words(), 1), X),
        "give a list of one or more such",
        lambda: fk.kpca_project(fk.kpca(["a", "ab", "b"], Words(), 1), ["a"]),
    ),
    "a name that is none": (
        lambda: fk.register_kernel("1 2", np.inner),
        "use letters, digits, '_', '.', '-', starting with a letter",
        lambda: fk.register_kernel("a_1.b-c", np.inner).close(),
    ),
    "a name in use": (
        lambda: fk.register_kernel("matern", np.inner),
        "choose another name, or pass overwrite=True",
        lambda: [
            fk.register_kernel("mine", np.inner).close(),
            fk.register_kernel("matern", np.inner, overwrite=True).close(),
        ],
    ),
    "a kernel without a name": (
        lambda: fk.save(fk.kpca(X, np.inner, 2), FOLDER / "inner"),
        "fastkpca.register_kernel(name, ...)",
        lambda: registered(),
    ),
}


class Words(Kernel):
    """Letters that two words share."""

    api_version = 1
    takes_objects = True
    positive_semidefinite = True

    def block(self, X, Y):
        return np.array([[float(len({*x} & {*y})) for y in Y] for x in X])


def registered() -> Any:
    with fk.register_kernel("letters", np.inner):
        fk.save(fk.kpca(X, np.inner, 2), FOLDER / "inner", overwrite=True)
