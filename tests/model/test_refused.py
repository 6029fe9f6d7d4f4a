"""What the functions of a model refuse, in words."""

from functools import cache

import numpy as np
import pytest

import fastkpca as fk

P = np.random.default_rng(0).standard_normal((60, 3))
K = P @ P.T
NAN = np.full((2, 3), np.nan)
MONOMIAL = {"degree": 2, "features": "monomial"}


@cache
def model(kernel="gaussian", c=2, rows=60, **options):
    return fk.kpca(K if kernel == "precomputed" else P[:rows], kernel, c, **options)


@cache
def limits():
    return fk.kpca_limits(model(), P + 1.0, confidence=0.9)


def holed(row, value):
    rows = P[:9].copy()
    rows[row] = value
    return rows


def limited(*rows, **options):
    return lambda: fk.kpca_limits(model(), *(rows or (P + 1.0,)), **options)


def preimage(Z=None, of=("gaussian",), **options):
    def call():
        given = model(of[0], *of[1:], **(MONOMIAL if of[0] == "polynomial" else {}))
        fk.kpca_preimage(given, given.score if Z is None else Z, **options)

    return call


def sure(rows=P, of=("polynomial",), **options):
    return lambda: fk.kpca_uncertainty(model(*of, **options.pop("model", {})), *rows, **options)


MONITOR = [
    (lambda: fk.kpca_spe("model", P), TypeError, "give what kpca"),
    (lambda: fk.kpca_spe(model(), NAN), ValueError, "NaN"),
    (lambda: fk.kpca_t2(model(), P[:, :2]), ValueError, "columns"),
    (
        lambda: fk.kpca_project(model("precomputed"), K[:, :59]),
        ValueError,
        "one column for each of the 60 training rows",
    ),
    *((limited(confidence=x), ValueError, "confidence") for x in (0, 1, 1.5, np.nan)),
    *((limited(confidence=x), TypeError, "confidence") for x in (True, "high")),
    (limited(t2="empirical", spe="box"), ValueError, "at least 99 rows, and there are 60"),
    (limited(spe="empirical", t2="F", joint=True), ValueError, "at least 199 rows, and there are 60"),
    (limited(t2="normal"), ValueError, "'F', 'chi2'"),
    (lambda: fk.kpca_limits(model("polynomial", **MONOMIAL)), ValueError, "holds no training rows"),
    (lambda: fk.kpca_limits(model("precomputed")), ValueError, "precomputed"),
    (lambda: limits().exceeded(), TypeError, "give t2="),
    # by place SPE alone would be compared with the limit of T^2
    (lambda: limits().exceeded(P[:, 0]), TypeError, "positional"),
    (lambda: limits().exceeded(t2=[1.0], spe=[1.0, 2.0]), ValueError, r"shapes differ: t2 \(1,\) and spe \(2,\); give"),
    (lambda: limits().exceeded(t2=[1.0], spe=[np.nan]), ValueError, "spe contains NaN, which is neither above nor bel"),
    (lambda: model("linear").with_limits(0.99), TypeError, "give what kpca_limits"),
    (lambda: fk.kpca(P[:, :2], "linear", 1).with_limits(limits()), ValueError, "rows of 3 columns, the model of 2"),
    (lambda: fk.kpca_spe(model("precomputed"), K[:10]), ValueError, "diagonal="),
]
PREIMAGES = [
    (lambda: fk.kpca_preimage(None, P), TypeError, "give what kpca"),
    (preimage(P[:, :1]), ValueError, "Z has 1 columns?, and the model has 2 components"),
    (preimage(NAN[:, :2]), ValueError, "Z contains NaN"),
    (preimage(start=P[1:]), ValueError, "start has 59 rows and Z has 60"),
    (preimage(start=P[:, :2]), ValueError, "columns"),
    *((preimage(alpha=x), ValueError, "alpha") for x in (0, -1, True, "a", np.inf, np.nan)),
    (preimage(method="linear"), ValueError, "'ridge'"),
    (preimage(method="newton"), ValueError, "method"),
    (preimage(of=("polynomial",), method="fixed-point"), ValueError, "'ridge' or 'gradient'"),
    *((preimage(of=("polynomial",), method=x), ValueError, "give train=") for x in ("auto", "ridge")),
    (preimage(of=("precomputed",), train=P[1:]), ValueError, "59 rows"),
    (preimage(of=("precomputed",)), ValueError, "its kernel is on a matrix or on objects"),
    (preimage(of=("precomputed",), method="gradient", train=P), ValueError, "precomputed"),
    (lambda: fk.kpca_denoise(model("precomputed"), K), ValueError, "precomputed"),
    (lambda: fk.kpca_denoise(model(), P[:, :2]), ValueError, "columns"),
    (lambda: fk.kpca_denoise(P, P), TypeError, "give what kpca"),
    (
        lambda: fk.kpca_denoise(model("polynomial", 1, degree=7, features="pivots"), [[1e54] * 3]),
        ValueError,
        "the projection is not finite in float64",
    ),
]
UNCERTAINTY = [
    (sure(()), ValueError, "holds no training rows"),
    (sure((P[:-1],)), ValueError, "counts 59 rows, and the model was made of 60"),
    (sure((P + 1.0,)), ValueError, "give the rows that it was fitted on"),
    (sure((P,), ("tanh",), model={"scale": 0.1}), ValueError, "not positive semidefinite"),
    (sure((), ("precomputed",)), ValueError, "rows of coordinates"),
    (sure((P[:10],), ("linear", 2, 10)), ValueError, "too few for a bootstrap"),
    (sure((P,), n_components=3), ValueError, "the model has 2"),
    (sure((P[:40],), ("gaussian", 12, 40), n_components=12), ValueError, "40 rows tell of 10 at most"),
    (sure((P,), level=95), ValueError, "level"),
    (
        lambda: fk.kpca_uncertainty(fk.kpca(P, "linear", 2, sample_weight=[1e9] * 60), P, sample_weight=[1e9] * 60),
        ValueError,
        "too many copies",
    ),
]
COLUMNS = [
    (lambda: fk.kpca_importance(model("polynomial")), ValueError, r"kpca_importance\(model, X\) the rows that it was"),
    (lambda: fk.kpca_importance(model(), P[:1]), ValueError, "one row; give at least two .*kpca_contributions says"),
    (lambda: fk.kpca_importance(model(), np.ones((5, 3))), ValueError, "all rows are equal"),
    (lambda: fk.kpca_importance(model(), np.full((5, 3), 0.1)), ValueError, "no column of X varies"),
    (lambda: fk.kpca_importance(model(), sample_weight=np.ones(60)), ValueError, "give both or neither"),
    (lambda: fk.kpca_importance(model("precomputed"), K), ValueError, "has no columns"),
    (lambda: fk.kpca_importance(model(), P[:, :2]), ValueError, "columns"),
    (lambda: fk.kpca_importance(model(), P, method="shap"), ValueError, "gradient"),
    (lambda: fk.kpca_contributions(model("precomputed"), K[:1]), ValueError, "moves values of columns"),
    (
        lambda: fk.kpca_contributions(model("polynomial", **MONOMIAL), P[:1]),
        ValueError,
        "needs the range of each column, .* give train=",
    ),
    (lambda: fk.kpca_contributions(model(), P[:1], statistic="q"), ValueError, "statistic is 'q'"),
    (
        lambda: fk.kpca_contributions(model(), P[:1], train=np.ones((3, 2))),
        ValueError,
        "train has 2 columns, the model was fitted on 3",
    ),
    (lambda: fk.kpca_fill(model(), holed(5, np.nan)), ValueError, "row 5 of X has no value at all"),
    (lambda: fk.kpca_fill(model(), holed((6, 1), np.inf)), ValueError, r"infinity \(first at row 6\)"),
    (lambda: fk.kpca_fill(model("precomputed"), K[:3]), ValueError, "moves values of columns"),
    (
        lambda: fk.kpca_fill(model("polynomial", **MONOMIAL), holed((6, 1), np.nan)),
        ValueError,
        "holds no rows; give train=",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), [*MONITOR, *PREIMAGES, *UNCERTAINTY, *COLUMNS])
def test_what_cannot_be_told_is_refused_in_words(call, error, text):
    with pytest.raises(error, match=text):
        call()
