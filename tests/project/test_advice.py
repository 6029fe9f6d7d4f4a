"""Advice is followed literally: what an error or a warning tells to do ends it.

Each case is a call, the words of its error that tell what to do, and the same call with that done. Advice without a
case is in ``advice_without_a_test.txt``, with the reason in a word.
"""

from __future__ import annotations

import advice
import advice_fits
import advice_models
import advice_plots
import advice_rows
import advice_tables
import numpy as np
import pytest
from advice import GAPS, Nearest, U, X, Y, fitted, gram

import fastkpca as fk
from fastkpca import plot
from fastkpca.kernels import CallableKernel, Gaussian

MOVED = X[::-1] + 1e-9


def vectors(V=X, kernel="linear", **options):
    return fk.certify(X, kernel, V, **options)


def sklearn_pca(kernel="rbf"):
    decomposition = pytest.importorskip("sklearn.decomposition")
    return decomposition.KernelPCA(2, kernel=kernel)


def of_features(**options):
    return fitted(kernel="polynomial", method="features", **options)


def other_rows(rows):
    return lambda: fk.kpca_project(fitted(), rows)


def iterator():
    yield X


CASES: dict[str, advice.Case] = {
    "c too large": (
        lambda: fitted(61),
        "give c of at most 59, or None for all",
        lambda: (fitted(59), fitted(None)),
    ),
    "c of 1.0": (lambda: fitted(1.0), "c=1 for one component, c=None for all", lambda: (fitted(1), fitted(None))),
    "c is zero": (lambda: fitted(0), "at least one component", lambda: fitted(1)),
    "threads": (
        lambda: fitted(n_threads=0),
        "a positive whole number, or None for all processors",
        lambda: (fitted(n_threads=1), fitted(n_threads=None)),
    ),
    "memory": (
        lambda: fitted(memory_limit="much"),
        '"500MB" or "2GiB"',
        lambda: [fitted(memory_limit=x) for x in ("500MB", "2GiB")],
    ),
    "guaranteed": (
        lambda: fitted(guaranteed=True, failure_probability=0.1),
        "drop one",
        lambda: (fitted(guaranteed=True), fitted(failure_probability=0.1)),
    ),
    "no feature map": (
        lambda: fitted(kernel="tanh", method="features"),
        "take method='auto'",
        lambda: fitted(kernel="tanh", method="auto"),
    ),
    "landmarks and features": (
        lambda: fitted(landmarks=[1, 2, 3], features="pivots", max_features=3),
        "drop one",
        lambda: fitted(landmarks=[1, 2, 3]),
    ),
    "features and products": (
        lambda: fitted(features="pivots", products="exact"),
        "drop one",
        lambda: (fitted(features="pivots"), fitted(products="exact")),
    ),
    "pca has no kernel": (
        lambda: fk.pca(X, kernel="gaussian", c=2),
        "use kpca(X, kernel, c)",
        lambda: fk.kpca(X, "gaussian", 2),
    ),
    "a string in place of a path": (
        lambda: fk.kpca("x.csv", "gaussian", 2),
        "give an array",
        lambda: fk.kpca(np.array(X), "gaussian", 2),
    ),
    "NaN": (lambda: fk.kpca(GAPS, "gaussian", 2), "drop", lambda: fk.kpca(np.delete(GAPS, 3, 0), "gaussian", 2)),
    **{
        name: (
            lambda name=name: getattr(fk, name)(fitted(), GAPS),
            f"{name}(model, kpca_fill(model, X))",
            lambda name=name: getattr(fk, name)(fitted(), fk.kpca_fill(fitted(), GAPS)),
        )
        for name in ("kpca_project", "kpca_t2", "kpca_spe", "kpca_denoise", "kpca_contributions")
    },
    "infinity in fill": (
        lambda: fk.kpca_fill(fitted(), np.where(np.isnan(GAPS), np.inf, GAPS)),
        "NaN: write that where a value is missing",
        lambda: fk.kpca_fill(fitted(), GAPS),
    ),
    "masked": (
        lambda: fk.kpca(np.ma.masked_greater(X, 2.0), "gaussian", 2),
        "pass X.data if the values under the mask are meant",
        lambda: fk.kpca(np.ma.masked_greater(X, 2.0).data, "gaussian", 2),
    ),
    "one row": (lambda: fk.kpca(X[:1], "gaussian", 1), "pass X.T", lambda: fk.kpca(X[:1].T, "gaussian", 1)),
    "one number": (
        lambda: fk.kpca(X[:, 0], "gaussian", 1),
        "X.reshape(-1, 1) if these are rows of one number",
        lambda: fk.kpca(X[:, 0].reshape(-1, 1), "gaussian", 1),
    ),
    "one column of a list": (
        lambda: fk.kpca(X[:, 0].tolist(), "gaussian", 1),
        "np.asarray(X).reshape(-1, 1) if these are rows of one number",
        lambda: fk.kpca(np.asarray(X[:, 0].tolist()).reshape(-1, 1), "gaussian", 1),
    ),
    "a column of rows": (
        lambda: fk.kpca(column_of_rows(), "gaussian", 1),
        "give np.stack(X)",
        lambda: fk.kpca(np.stack(column_of_rows()), "gaussian", 1),
    ),
    "a generator": (
        lambda: fk.kpca(iterator(), "gaussian", 2),
        "for a generator function, X itself without the parentheses",
        lambda: fk.kpca(iterator, "gaussian", 2),
    ),
    "a long integer": (
        lambda: fk.kpca(X.astype(np.longdouble) + np.longdouble(2) ** -60, "polynomial", 2),
        "X.astype(float)",
        lambda: fk.kpca((X.astype(np.longdouble) + np.longdouble(2) ** -60).astype(float), "polynomial", 2),
    ),
    "scores of another model": (
        lambda: fk.kpca_preimage(fitted(), X),
        "give scores, as kpca_project(model, X) returns them",
        lambda: fk.kpca_preimage(fitted(), fk.kpca_project(fitted(), X)),
    ),
    "no rows to learn from": (
        lambda: fk.kpca_preimage(of_features(), np.ones((1, 2))),
        "give train=, the training rows or others like them",
        lambda: fk.kpca_preimage(of_features(), np.ones((1, 2)), train=X),
    ),
    "limits of nothing": (
        lambda: fitted().with_limits(0.9),
        "give what kpca_limits(model, X) returned",
        lambda: fitted().with_limits(fk.kpca_limits(fitted(), X + 0.1, confidence=0.9)),
    ),
    "limits of few rows": (
        lambda: fk.kpca_limits(fitted(), X + 0.1),
        "give more rows or a lower confidence",
        lambda: (
            fk.kpca_limits(fitted(), np.tile(X, (3, 1)) + 0.1),
            fk.kpca_limits(fitted(), X + 0.1, confidence=0.9),
        ),
    ),
    "limits of the training rows": (
        lambda: fk.kpca_limits(fitted(), confidence=0.9),
        "give kpca_limits(model, X) rows that it has not seen",
        lambda: fk.kpca_limits(fitted(), X + 0.1, confidence=0.9),
    ),
    "no moments": (
        lambda: fk.kpca_update(fitted(), X),
        "kpca(..., keep_moments=True)",
        lambda: fk.kpca_update(fitted(keep_moments=True, features="pivots"), X),
    ),
    "models of two maps": (
        lambda: fk.kpca_merge(fitted(keep_moments=True), fk.kpca(MOVED, "gaussian", 2, sigma=2.0, keep_moments=True)),
        "make the others with like=the first",
        lambda: fk.kpca_merge(first := fitted(keep_moments=True), fk.kpca(MOVED, like=first, c=2, keep_moments=True)),
    ),
    "a map that is larger already": (
        lambda: fk.kpca_update(fitted(keep_moments=True, features="pivots"), X, grow=2),
        "features; give",
        lambda: fk.kpca_update(fitted(keep_moments=True, features="pivots"), X, grow=False),
    ),
    "no scores": (
        lambda: fitted(return_scores=False).score,
        "kpca_project(model, X) computes them (kpca(..., return_scores=True)",
        lambda: (fk.kpca_project(fitted(return_scores=False), X), fitted(return_scores=True).score),
    ),
    "weights without rows": (
        lambda: fk.kpca_importance(fitted(), sample_weight=np.ones(60)),
        "give both or neither",
        lambda: (fk.kpca_importance(fitted(), X, sample_weight=np.ones(60)), fk.kpca_importance(fitted())),
    ),
    "no rows in the model": (
        lambda: fk.kpca_importance(of_features()),
        "give kpca_importance(model, X) the rows that it was fitted on",
        lambda: fk.kpca_importance(of_features(), X),
    ),
    "labels": (
        lambda: fk.kpca_select(X, c=[2], criterion="score"),
        "give y=",
        lambda: fk.kpca_select(X, c=[2], criterion="score", y=Y, folds=3),
    ),
    "no numbers of components": (
        lambda: fk.kpca_select(X, c=[], y=Y),
        "as in c=[2, 5, 10]",
        lambda: fk.kpca_select(X, c=[2, 5, 10], y=Y),
    ),
    "no kernels": (
        lambda: fk.kpca_select(X, kernels=[], c=[2], y=Y),
        "as in kernels=['gaussian', 'linear']",
        lambda: fk.kpca_select(X, kernels=["gaussian", "linear"], c=[2], y=Y, folds=3),
    ),
    "a class of a classifier": (
        lambda: fk.kpca_select(X, c=[2], y=Y, classifier=Nearest),
        "add parentheses",
        lambda: fk.kpca_select(X, c=[2], y=Y, classifier=Nearest(), folds=3),
    ),
    "sparse vectors": (lambda: gram() @ sparse(U), "give U.toarray()", lambda: gram() @ sparse(U).toarray()),
    "a number on the diagonal": (
        lambda: gram() + 1.0,
        "for K + mu I give K + mu * scipy.sparse.identity(len(X))",
        lambda: (gram() + 1.0 * identity(len(X))) @ U,
    ),
    "division by zero": (lambda: gram() / 0, "give another number", lambda: gram() / 2),
    "a pair function's adapter": (
        lambda: CallableKernel(function=3),
        "give a callable f(X, Y) on tiles",
        lambda: CallableKernel(function=np.inner),
    ),
    "translation": (
        lambda: CallableKernel(function=np.inner, translation="yes"),
        'give "kernel", "centered" or None',
        lambda: [CallableKernel(function=np.inner, translation=x) for x in ("kernel", "centered", None)],
    ),
    "a width": (lambda: Gaussian(sigma=-1.0), "give a", lambda: Gaussian(sigma=1.0)),
    "two spellings": (
        lambda: Gaussian(sigma=1.0, gamma=0.5),
        "give only one of them",
        lambda: (Gaussian(sigma=1.0), Gaussian(gamma=0.5)),
    ),
    "a column twice": (
        lambda: fk.on_columns("gaussian", [0, 0]),
        "give each column once",
        lambda: fk.on_columns("gaussian", [0]),
    ),
    "a name of a column": (
        lambda: fk.kpca(X, fk.on_columns("gaussian", ["a"]), 2),
        "give a data frame, or numbers of columns",
        lambda: fk.kpca(X, fk.on_columns("gaussian", [0]), 2),
    ),
    "widths": (
        lambda: fk.kpca(X, "gaussian", 2, sigma=[1.0, 2.0]),
        "give one for each",
        lambda: fk.kpca(X, "gaussian", 2, sigma=[1.0, 2.0, 3.0, 4.0]),
    ),
    "a name and a sign": (
        lambda: Gaussian(sigma=1.0) + "linear",
        "as in kernel + fastkpca.get_kernel('linear')",
        lambda: Gaussian(sigma=1.0) + fk.get_kernel("linear"),
    ),
    "a reserved name": (
        lambda: fk.register_kernel("gaussian", np.inner),
        "choose another name",
        lambda: fk.register_kernel("mine", np.inner).close(),
    ),
    "not symmetric": (
        lambda: fk.kpca(UPPER, "precomputed", 2),
        "use (K + K.T) / 2",
        lambda: fk.kpca((UPPER + UPPER.T) / 2, "precomputed", 2),
    ),
    "weights of zero": (
        lambda: fitted(sample_weight=np.zeros(60)),
        "some of them positive",
        lambda: fitted(sample_weight=np.arange(60.0)),
    ),
    "two statistics": (
        lambda: fk.kpca_limits(fitted(), X + 0.1, confidence=0.9).exceeded(),
        "give t2=kpca_t2(model, X), spe=kpca_spe(model, X), or both",
        lambda: fk.kpca_limits(fitted(), X + 0.1, confidence=0.9).exceeded(
            t2=fk.kpca_t2(fitted(), X), spe=fk.kpca_spe(fitted(), X)
        ),
    ),
    "scores of an array": (lambda: plot.scores(3), "a fitted model or estimator", lambda: plot.scores(fitted())),
    "no vectors": (lambda: fk.certify(X, "linear"), "give the vectors as columns", lambda: vectors()),
    "certain bounds of random rows": (
        lambda: vectors(guaranteed=True, rows=30),
        "leave one of them out",
        lambda: vectors(rows=30),
    ),
    "vectors without columns": (lambda: vectors(X[:, :0]), "V has no columns; give the vectors", lambda: vectors()),
    "constant vectors": (lambda: vectors(U), "are constant, which centring makes zero; give", lambda: vectors()),
    "vectors as rows": (lambda: vectors(X.T), "give V.T", lambda: vectors(X)),
    "vectors of other rows": (lambda: vectors(X[:9]), "V has 9 rows, and X has 60; give", lambda: vectors()),
    "a value that is none": (
        lambda: vectors().count_above("many"),
        "give a number",
        lambda: vectors().count_above(1.0),
    ),
    "an estimator that is not fitted": (
        lambda: vectors(sklearn_pca(), kernel=None),
        "fit it before",
        lambda: vectors(sklearn_pca().fit(X), kernel=None),
    ),
    "a regression that is singular": (
        lambda: inverse(1.0),
        "give a larger alpha",
        lambda: inverse(1e6),
    ),
    "an estimator with a function": (
        lambda: vectors(sklearn_pca(np.dot).fit(X), kernel=None),
        "give V.eigenvectors_ as V, and a kernel: a name",
        lambda: vectors(sklearn_pca(np.dot).fit(X).eigenvectors_, kernel="linear"),
    ),
    "two kernels with vectors": (
        lambda: vectors(fitted(), kernel="linear"),
        "brings its kernel",
        lambda: vectors(fitted(), kernel=None),
    ),
    "intervals of vectors too wide": (
        lambda: vectors(np.ones((60, 1)) + X, tol=1e-15),
        "a larger tol",
        lambda: vectors(X, tol=1e-6),
    ),
}
UPPER = Gaussian(sigma=2.0).block(X, X) + np.triu(np.ones((60, 60)), 1)


def column_of_rows():
    column = np.empty(len(X), dtype=object)
    column[:] = list(X)
    return column


def inverse(alpha):
    from fastkpca.sklearn import KernelPCA

    return KernelPCA(2, kernel="poly", fit_inverse_transform=True, alpha=alpha).fit(10 * X[:12])


def sparse(A):
    import scipy.sparse

    return scipy.sparse.csr_array(A)


def identity(n):
    import scipy.sparse

    return scipy.sparse.identity(n)


for more in (advice_fits.CASES, advice_models.CASES, advice_plots.CASES, advice_rows.CASES, advice_tables.CASES):
    assert not CASES.keys() & more.keys(), "two cases of one name"
    CASES |= more


@pytest.mark.parametrize("name", CASES)
def test_the_advice_ends_the_error(name):
    _, words, right = CASES[name]
    assert words in advice.message(CASES[name])
    right()  # warnings are errors here


def test_advice_without_a_case_is_listed():
    open_ones = advice.not_followed([advice.message(case) for case in CASES.values()])
    listed = advice.listed().keys()
    assert all(advice.listed().values())
    new = sorted(open_ones - listed)
    assert not new, "no case of this file follows this advice: " + "\n".join(new)
    assert not listed - open_ones, "followed, or said no longer; take it from the list: " + "\n".join(
        listed - open_ones
    )
