"""What pictures refuse, in words."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import fastkpca as fk
from fastkpca import plot
from fastkpca.model.limits import Limits

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from matplotlib.figure import Figure

P = np.random.default_rng(0).standard_normal((60, 3))
MANY = np.zeros((30_000, 2))
CLASSES = np.arange(60) % 3
LIMITS = Limits(10.0, 0.5, 0.99, "F", "box", 100)
NOTHING = "labels are missing or not finite .first at row 7"
NO_COMPONENT = "no component {}: the model has {}"


@cache
def model(kernel="gaussian", c=6, columns=3, **options):
    return fk.kpca(P[:, :columns], kernel, c, **options)


@cache
def which(method="gradient"):
    return fk.kpca_importance(model(c=4), P, method=method)


def changed(values, row, value):
    values = np.array(values, dtype=object if value is None or isinstance(values[0], str) else float)
    values[row] = value
    return values


SCORES = [
    (lambda: plot.scores(P, np.zeros(59)), ValueError, r"labels have shape \(59,\); give one for each of the 60"),
    (lambda: plot.scores(P[:, 0]), ValueError, r"scores have shape \(60,\)"),
    (lambda: plot.scores(object()), TypeError, r"as in pipeline\[-1\]"),
    *((lambda x=x: plot.scores(P, components=x), ValueError, "give 1 or 2 or 3 of them") for x in ((), (0, 1, 2, 0))),
    *((lambda x=x: plot.scores(P, components=x), TypeError, "columns of the scores, as in") for x in (0, "xy", None)),
    *(
        (lambda x=x: plot.scores(P, components=(0, x)), ValueError, NO_COMPONENT.format(word, "3, counted from 0"))
        for x, word in ((3, 3), (-1, -1), (0.5, 0.5), (True, True), ([1], r"\[1\]"))
    ),
    (lambda: plot.scores(P, ax=Figure().add_subplot(), components=(0, 1, 2)), ValueError, "projection"),
    (lambda: plot.scores(P, ax=Figure().add_subplot(projection="3d")), ValueError, "two-dimensional"),
    *((lambda x=x: plot.scores(P, changed([1.0] * 60, 7, x)), ValueError, NOTHING) for x in (np.nan, np.inf, None)),
    *((lambda x=x: plot.scores(P, changed(["a"] * 60, 7, x)), ValueError, NOTHING) for x in (np.nan, None)),
    (lambda: plot.scores(P, pd.array(["a"] * 7 + [None] + ["b"] * 52, dtype="string")), ValueError, NOTHING),
    (lambda: plot.scores(changed(P, (5, 1), np.nan)), ValueError, "scores contains NaN or infinity .first at row 5"),
    (lambda: plot.scores(MANY, MANY[:, 0], density=True), ValueError, "density counts rows in two .* without labels"),
    (lambda: plot.scores(P, new=P[:, :2]), ValueError, r"new has shape \(60, 2\)"),
    (lambda: plot.scores(P, new_labels=[1]), ValueError, "none are given"),
    (lambda: plot.scores(P, CLASSES, new=P), ValueError, "give both or neither"),
    (lambda: plot.scores(P, new=P, components=(0,)), ValueError, "not over the row number"),
    *(
        (
            lambda x=x, y=y: plot.scores(P, x, new=P[:2], new_labels=y),
            ValueError,
            "labels are [a-z]+ and .* of one kind",
        )
        for x, y in ((P[:, 0], np.arange(2).astype("m8[s]")), (CLASSES, ["a", "b"]), (["a"] * 60, [1, 2]))
    ),
    *(
        (lambda x=x, y=y: plot.scores(P, y, **x), ValueError, f"labels set {next(iter(x))}; leave out one of the two")
        for x, y in (({"marker": "x"}, CLASSES), ({"color": "red"}, CLASSES), ({"c": P[:, 0]}, P[:, 0]))
    ),
    (lambda: plot.scores(P, CLASSES, ellipses=95), ValueError, "between 0 and 1"),
    *((lambda x=x: plot.scores(P, x, ellipses=0.9), ValueError, "ellipses are of classes") for x in (None, P[:, 0])),
]
CHARTS = [
    (lambda: plot.monitor(LIMITS, [1.0, 2.0, 3.0], x=["a", None, "b"]), ValueError, "x misses the value of row 1"),
    (lambda: plot.monitor(LIMITS, [1.0, 2.0, 3.0], x=["a"]), ValueError, "name for each of 3 rows"),
    (lambda: plot.monitor(LIMITS, [np.nan, 1.0]), ValueError, "t2 contains NaN or infinity .first at row 0"),
    (lambda: plot.monitor(LIMITS, None, [1.0, np.inf]), ValueError, "spe contains NaN or infinity .first at row 1"),
    (lambda: plot.monitor(LIMITS, [1.0], [1.0, 2.0]), ValueError, "t2 has 1 values and spe 2"),
    (lambda: plot.monitor(LIMITS, []), ValueError, "one value for each row"),
    (lambda: plot.monitor(LIMITS), TypeError, "give t2=kpca_t2"),
    (lambda: plot.monitor(10.0, [1.0]), TypeError, "kpca_limits"),
    (lambda: plot.monitor(LIMITS, [1.0], x=[1, 2]), ValueError, "x has shape"),
    (lambda: plot.monitor(LIMITS, [1.0], [1.0], Figure().subplots()), ValueError, "2 charts and 1 axes"),
    (lambda: plot.influence(LIMITS, P[:, 0], P[:, 1], names=["a"]), ValueError, "one for each"),
    (lambda: plot.influence(1.0, P[:, 0], P[:, 1]), TypeError, "give what kpca_limits"),
    (lambda: plot.contributions(fk.kpca_contributions(model(), P[:2], train=P), row=2), ValueError, "no row 2"),
    (lambda: plot.contributions(model()), TypeError, "kpca_contributions"),
]
SCREE = [
    *((lambda x=x: plot.scree(model(), n_components=x), ValueError, "the model has 1 to 6") for x in (0, 7)),
    *((lambda x=x: plot.scree(model(), n_components=x), TypeError, "give a whole number") for x in (0.5, "1")),
    (lambda: plot.scree(SimpleNamespace(model_=3)), TypeError, "a fitted estimator"),
    (
        lambda: plot.scree(model(), uncertainty=fk.kpca_uncertainty(model("linear", 2), P, n_permutations=0)),
        ValueError,
        "of another model",
    ),
]
CONTOURS = [
    (lambda: plot.contours(model("polynomial", 3)), ValueError, "does not hold its training rows; give X, or limits"),
    (lambda: plot.contours(model("polynomial", 3), limits=((0, 1), (0, 1))), ValueError, "of the other inputs"),
    (lambda: plot.contours(fk.kpca(P @ P.T, "precomputed", 2)), ValueError, "precomputed matrix has no inputs"),
    (lambda: plot.contours(model(c=2, columns=1)), ValueError, "have one column"),
    (lambda: plot.contours(model(), inputs=(0, 3)), ValueError, "no input 3: the rows have 3 columns, counted from 0"),
    (lambda: plot.contours(model(), inputs=(0, 1.5)), ValueError, "no input 1.5: the rows have 3 columns"),
    (lambda: plot.contours(model(), inputs=(1, 1)), ValueError, "two different columns"),
    (lambda: plot.contours(model(), inputs=("height", "age")), ValueError, "not named"),
    (lambda: plot.contours(model(), inputs=(0,)), ValueError, "two columns of the rows"),
    *(
        (lambda x=x: plot.contours(model(), component=x), ValueError, NO_COMPONENT.format(repr(x), 6))
        for x in (6, 1.5, "0")
    ),
    (lambda: plot.contours(model(), component=[]), ValueError, "component is empty; give one or more"),
    (lambda: plot.contours(model(), levels=0), ValueError, "levels is 0; give a whole number, 1 or more"),
    (lambda: plot.contours(model(), at=[1.0]), ValueError, "a value for each of the 3 inputs"),
    (lambda: plot.contours(model(), limits=((1, 0), (0, 1))), ValueError, "of the two inputs"),
    (lambda: plot.contours(model(), resolution=1), ValueError, "resolution is 1; give a whole number, 2 or more"),
    (lambda: plot.contours(model(), P, labels=[1, 2]), ValueError, "one for each of the 60"),
    (lambda: plot.contours(model(), P[:, :2]), ValueError, "columns"),
    (lambda: plot.contours(model(), ax=[Figure().subplots()], component=(0, 1)), ValueError, "2 components and 1 axes"),
]
RUNS = [
    (lambda: plot.accuracy([]), ValueError, "models is empty"),
    (lambda: plot.accuracy([model()], [1.0]), ValueError, "the 6 largest eigenvalues"),
    (lambda: plot.accuracy([model()], tol=[1.0, 2.0]), ValueError, "one positive number for each of the 1 models"),
    (lambda: plot.accuracy([replace(model(), info={})]), ValueError, "was made without tol"),
    (lambda: plot.accuracy(3), TypeError, "a list of models"),
    (lambda: plot.accuracy([P]), TypeError, r"models\[0\] is of type ndarray; give what kpca"),
    (lambda: plot.convergence("model"), TypeError, "model is of type str; give what kpca"),
    *(
        (lambda x=x: plot.convergence(model(method=x)), ValueError, f"this model is of the {x} route")
        for x in ("dense", "features")
    ),
    (lambda: plot.candidates(model(), quantity="flops"), ValueError, "'seconds', 'memory'"),
    (lambda: plot.candidates(P), TypeError, r"give what fastkpca\.plan\(\) or kpca\(\) returned"),
    (lambda: plot.selection(fk.kpca_select(P, "linear", 2), measure="score"), ValueError, "measure is 'score'; give"),
    (lambda: plot.selection(model()), TypeError, "what kpca_select returned; found KPCAModel"),
]
IMPORTANCE = [
    (lambda: plot.importance(which(), P), TypeError, "axes are given as ax="),
    (lambda: plot.importance(which().importance), TypeError, "kpca_importance"),
    (lambda: plot.importance(which(), n_columns=0), ValueError, "n_columns"),
    *(
        (lambda x=x: plot.importance(which(), component=x), ValueError, NO_COMPONENT.format(word, 4))
        for x, word in ((4, 4), (1.5, 1.5), ([0], r"\[0\]"))
    ),
    *(
        (lambda x=x: plot.importance(which(), component=x), (TypeError, ValueError), "component")
        for x in (scipy.sparse.csr_array(np.eye(2)), np.zeros(1), "1", True)
    ),
    (lambda: plot.biplot(model(c=4), which(), n_arrows="2"), TypeError, "n_arrows is '2'; give a whole number"),
    (lambda: plot.biplot(model("linear", 1), P), ValueError, "no component 1: the model has 1"),
    (lambda: plot.biplot(model(c=4), which(), components=(0, 1, 2)), ValueError, "give 2 of them"),
    (lambda: plot.biplot(model("linear", 2), which()), ValueError, "of 4 components, and the model has 2"),
    (lambda: plot.biplot(model(c=4), which("permutation")), ValueError, "method='gradient'"),
]


TYPES = [
    (lambda: plot.scree(model(), uncertainty=3), TypeError, "uncertainty is of type int; give what kpca_uncertainty"),
    (lambda: plot.accuracy(None), TypeError, "models is None; give a list of models"),
    (lambda: plot.accuracy([model()], [0.0, 0.0]), ValueError, "reference has shape"),
    (lambda: plot.accuracy([model()], tol=[-1.0]), ValueError, "tol is -1; give one positive number"),
    (lambda: plot.contours(model(), P, resolution=10**9), ValueError, r"resolution is 1000000000; .* at most"),
    (lambda: plot.contours(model(), P, levels=10**9), ValueError, r"levels is 1000000000; .* 256 at most"),
    (lambda: plot.contours(model(), P, cmap="grass"), ValueError, "cmap is 'grass'; give a name"),
    (lambda: plot.contours(model(), P, component=True), ValueError, "no component True"),
    (lambda: plot.scores(model(), np.ma.masked_equal(CLASSES, 0)), ValueError, "labels are missing .* row 0"),
    (lambda: plot.scores(model(), label_name=3), TypeError, "label_name is 3; give text"),
    (lambda: plot.monitor(LIMITS, [1.0], x=[np.datetime64("NaT")]), ValueError, "x misses the value of row 0;"),
]


@pytest.mark.filterwarnings("ignore::fastkpca.errors.CertificateWarning")
@pytest.mark.parametrize(("call", "error", "text"), [*SCORES, *CHARTS, *SCREE, *CONTOURS, *RUNS, *IMPORTANCE, *TYPES])
def test_what_cannot_be_drawn_is_refused_in_words(call, error, text):
    with pytest.raises(error, match=text):
        call()
