"""Input and arguments: each kind of bad input gets its own error, everything else the right numbers, untouched."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import fastkpca as fk
from fastkpca.base.checks import (
    Randomness,
    check_c,
    check_choice,
    check_count,
    check_flag,
    check_memory_limit,
    check_numbers,
    check_rng,
    check_tol,
)
from fastkpca.rows.convert import as_rows
from fastkpca.rows.summary import summarize
from fastkpca.rows.values import check_finite
from fastkpca.sklearn import KernelPCA, Nystroem

RNG = np.random.default_rng(7)
DENSE = RNG.integers(-40, 40, size=(37, 3)) / 8.0  # exact in every type below, float16 included


MODEL = fk.kpca(DENSE, "gaussian", 2, sigma=1.0)


def reversed_strides(X):
    return X[::-1, ::-1].copy()[::-1, ::-1]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def strided(X):
    wide = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    wide[::2, 1::3] = X
    return wide[::2, 1::3]


ACCEPTED = {
    "float64": lambda X: X.copy(),
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "big-endian float64": lambda X: X.astype(">f8"),
    "big-endian float32": lambda X: X.astype(">f4"),
    "F-order": np.asfortranarray,
    "negative strides": reversed_strides,
    "strided view": strided,
    "read-only": read_only,
    "list of lists": lambda X: X.tolist(),
    "tuple of arrays": lambda X: tuple(X.copy()),
    "objects": lambda X: X.astype(object),
    "objects of every number type": lambda X: np.array(
        [[Decimal(str(a)), Fraction(b), np.float32(c)] for a, b, c in X.tolist()], dtype=object
    ),
    "matrix": lambda X: X.copy().view(np.matrix),
    "masked array, nothing masked": lambda X: np.ma.masked_invalid(X.copy()),
    "csr": sp.csr_matrix,
    "csr array": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "lil": sp.lil_matrix,
    "dok": sp.dok_array,
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "csr longdouble": lambda X: sp.csr_array(X.astype(np.longdouble)),
    "frame": pd.DataFrame,
    "frame of float32": lambda X: pd.DataFrame(X.astype(np.float32)),
    "frame of mixed types": lambda X: pd.DataFrame(X).astype({0: "Float64", 1: "float32"}),
    "frame with sparse columns": lambda X: pd.DataFrame(X).astype(pd.SparseDtype("float64", 0.0)),
    "frame with twin names": lambda X: pd.DataFrame(X, columns=["a", "a", "b"]),
}

EIGENVALUES = np.linalg.svd(DENSE - DENSE.mean(axis=0), compute_uv=False)[:2] ** 2
IN_PLACE = ("float64", "float32", "float16", "big-endian float64", "F-order", "negative strides")


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # np.matrix
@pytest.mark.parametrize("kind", ACCEPTED)
@pytest.mark.parametrize("shifted", [False, True])
def test_accepted_and_left_alone(kind, shifted):
    X = ACCEPTED[kind](DENSE)
    before = X.copy() if hasattr(X, "copy") else [list(row) for row in X]
    rows = as_rows(X, at_least=2)
    shift = np.array([1e3, -2.0, 0.25]) if shifted else None
    rows = rows.shifted(shift)
    expected = DENSE if shift is None else DENSE - shift
    parts = np.vstack([rows.tile(0, 10), rows.tile(10, len(rows))])
    assert type(parts) is np.ndarray
    assert parts.dtype == np.float64
    np.testing.assert_array_equal(parts, expected)
    np.testing.assert_array_equal(rows.take(np.array([3, 30])), expected[[3, 30]])
    single = kind in ("float32", "big-endian float32", "csr float32", "frame of float32")
    assert (rows.dtype == np.float32) == single  # what the scores' type follows
    if not shifted:
        model = fk.kpca(X, "linear", 2)
        assert model.score.dtype == (np.float32 if single else np.float64)
        np.testing.assert_allclose(model.eigenvalues, EIGENVALUES, rtol=1e-5 if single else 1e-12)
        np.testing.assert_allclose(fk.kpca_project(model, X), model.score, atol=1e-4 if single else 1e-9)
    if kind in IN_PLACE:
        assert np.shares_memory(rows.source, X)
    if sp.issparse(X):
        assert sp.issparse(rows.source)
        assert X.format != "csr" or np.shares_memory(rows.source.data, X.data)
        assert (X != before).nnz == 0
    elif isinstance(X, pd.DataFrame):
        pd.testing.assert_frame_equal(X, before)
    else:
        np.testing.assert_array_equal(np.array(X, dtype=object), np.array(before, dtype=object))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", ">i4", "u4", "i8", "u8", "?"])
def test_whole_numbers(dtype):
    X = RNG.integers(0, 2 if dtype == "?" else 100, size=(20, 4)).astype(dtype)
    rows = as_rows(X)
    np.testing.assert_array_equal(rows.all(), X.astype(np.float64))
    np.testing.assert_array_equal(rows.shifted(np.full(4, 0.5)).all(), X.astype(np.float64) - 0.5)


def test_polars_frames():
    polars = pytest.importorskip("polars")
    X = polars.DataFrame({"a": [1.0, 2.5, 3.0], "b": [1, 2, 3], "c": [True, False, True]})
    np.testing.assert_array_equal(as_rows(X).all(), [[1.0, 1, 1], [2.5, 2, 0], [3, 3, 1]])
    with pytest.raises(TypeError, match=r"column 'when' \(number 1\) of type Date"):
        as_rows(polars.DataFrame({"a": [1.0], "when": [18262]}).cast({"when": polars.Date}))


def test_all_columns_of_a_frame_with_missing_values_are_named():
    X = pd.DataFrame(np.ones((20, 3)), columns=["height", "weight", "age"])
    X.loc[[7, 9], "weight"], X.loc[12, "age"] = np.nan, np.inf
    text = r"NaN \(first at row 7, column 'weight'\); missing by column: 'weight' \(2\), 'age' \(1\); drop .* "
    with pytest.raises(ValueError, match=text + "before kpca_spe"):
        as_rows(X, purpose="kpca_spe")
    with pytest.raises(ValueError, match=r"infinity \(first at row 12, column 2\); missing by column: 2 \(1\)"):
        as_rows(pd.DataFrame(X[["height", "height", "age"]].to_numpy()))
    X = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"first at row 1, column 'a'\); missing by column: 'a' \(1\);"):
        as_rows(X)


WORDS = [["abc", "de"], np.array(["abc", "de"]), [{1, 2}, {3}]]
if np.lib.NumpyVersion(np.__version__) >= "2.0.0":  # which has strings of any length
    WORDS.append(np.array(["abc", "de"], dtype="T"))


@pytest.mark.parametrize("X", WORDS)
def test_objects_with_a_kernel_on_rows_are_told_what_kernel_they_need(X):
    with pytest.raises(TypeError, match=r"X holds objects of type (str|set); .* a function of two lists of them"):
        as_rows(X)


class Refuses:
    def __array__(self, *args, **kwargs):
        raise RuntimeError("lives on another device")


def masked():
    X = np.ma.array(DENSE.copy())
    X[4, 2] = np.ma.masked
    X[9, 0] = np.ma.masked
    return X


def spoiled(value, dtype=object):
    X = DENSE.astype(dtype)
    X[5, 1] = value
    return X


def cells():
    """{1, 'a'} as scipy.io.loadmat reads it."""
    X = np.empty((1, 2), dtype=object)
    X[0, 0], X[0, 1] = np.array([[1.0]]), np.array(["a"])
    return X


def damaged(kind, **parts):
    """A sparse matrix of this format with one entry of each of these arrays replaced, (place, value); as one from a
    file that nobody checked."""
    S = sp.csr_array(DENSE).asformat(kind)
    if kind == "coo":
        S.coords = tuple(part.astype(np.int64) for part in S.coords)
    for name, (place, value) in parts.items():
        getattr(S, name)[place] = value
    return S


def shortened(kind, name):
    S = sp.csr_array(DENSE).asformat(kind)
    setattr(S, name, getattr(S, name)[:-1])
    return S


DAMAGED = {
    "csr, column beyond the last": damaged("csr", indices=(7, 3)),
    "csr, column far beyond": damaged("csr", indices=(7, 10**8)),
    "csr, negative column": damaged("csr", indices=(0, -1)),
    "csr, row of negative length": damaged("csr", indptr=(5, 2)),
    "csr, rows from another place": damaged("csr", indptr=(0, 4)),
    "csr, more entries than there are": damaged("csr", indptr=(-1, 10**6)),
    "csr, fewer values": shortened("csr", "data"),
    "csr, fewer rows": shortened("csr", "indptr"),
    "csc, row beyond the last": damaged("csc", indices=(7, 37)),
    "csc, row far beyond": damaged("csc", indices=(7, 10**8)),
    "csc, column of negative length": damaged("csc", indptr=(1, -3)),
    "bsr, block beyond the last": damaged("bsr", indices=(0, 40)),
    "bsr, block of negative number": damaged("bsr", indices=(0, -40)),
    "coo, row beyond the last": damaged("coo", row=(3, 37)),
    "coo, negative column": damaged("coo", col=(3, -(10**6))),
    "coo, fewer values": shortened("coo", "data"),
    "dia, fewer diagonals": shortened("dia", "data"),
    "dia, the same diagonal twice": damaged("dia", offsets=(1, -36)),
    "lil, column beyond the last": damaged("lil", rows=(2, [0, 7, 10**6])),
    "lil, more values than columns": damaged("lil", data=(2, [1.0] * 1000)),
}

REFUSED = {
    "None": (None, TypeError, "X is None"),
    "number": (3.0, ValueError, "single value"),
    "string": ("data.csv", TypeError, "X is a string"),
    "dict": ({"__header__": b"", "a": [1]}, TypeError, r"of type dict; .* as \w+\['a'\]"),
    "dict of nothing": ({}, TypeError, "of type dict"),
    "cell array": (cells(), TypeError, r"cell array of MATLAB .* as \w+\[0, 0\]"),
    "struct": (np.zeros((1, 1), [("a", object)]), TypeError, r"struct of MATLAB .* as \w+\['a'\]\[0, 0\]"),
    "set": ({1, 2}, TypeError, "of type set"),
    "generator": ((i for i in range(3)), TypeError, "of type generator"),
    "object": (object(), TypeError, "X is of type object"),
    "array that refuses": (Refuses(), TypeError, "of type Refuses, cannot be made an array: lives on another device"),
    "1-D": (np.arange(4.0), ValueError, r"X\.reshape\(-1, 1\).*X\.reshape\(1, -1\)"),
    "series": (pd.Series([1.0, 2.0]), ValueError, r"np\.asarray\(X\)\.reshape\(-1, 1\)"),
    "0-D": (np.array(1.0), ValueError, "single value"),
    "3-D": (np.zeros((2, 3, 4)), ValueError, r"3 dimensions, shape \(2, 3, 4\)"),
    "no rows": (np.zeros((0, 3)), ValueError, r"no rows, shape \(0, 3\)"),
    "no columns": (np.zeros((3, 0)), ValueError, r"no columns, shape \(3, 0\)"),
    "empty list": ([], ValueError, r"shape \(0,\)"),
    "empty frame": (pd.DataFrame(index=range(3)), ValueError, "no columns"),
    "no objects": (np.array([], dtype=object), ValueError, r"shape \(0,\)"),
    "no bytes": (np.array([], dtype="S3"), ValueError, r"shape \(0,\)"),
    "ragged": ([[1.0, 2.0], [1.0, 2.0], [3.0]], ValueError, "row 2 has 1 entries where row 0 has 2"),
    "one sample": (np.zeros((1, 3)), ValueError, r"X has 1 row; kpca needs at least 2.*X\.T"),
    "one sparse sample": (sp.csr_matrix(np.ones((1, 3))), ValueError, "X has 1 row; kpca needs at least 2"),
    "a date among objects": (spoiled(np.timedelta64(1, "s")), TypeError, "contains .*timedelta64"),
    "complex": (DENSE + 1j, TypeError, "X is complex"),
    "complex sparse": (sp.csr_matrix(DENSE + 1j), TypeError, "X is complex"),
    "datetime": (
        np.zeros((3, 2), "M8[s]"),
        TypeError,
        r"dates.* turn them into numbers first, as in .*np.timedelta64\(1, 's'\)",
    ),
    "timedelta": (np.zeros((3, 2), "m8[s]"), TypeError, r"durations.*np.timedelta64\(1, 's'\)"),
    "strings": (np.array([["1", "2"], ["3", "4"]]), TypeError, r"strings; convert them with X\.astype\(float\)"),
    "bytes": (np.array([[b"1", b"2"], [b"3", b"4"]]), TypeError, "byte strings"),
    "structured": (np.zeros((3, 2), [("a", float)]), TypeError, r"structured array \(fields \('a',\)\)"),
    "list with a string": ([[1, 2], [3, "a"]], TypeError, r"contains 'a' of type str \(first at row 1, column 1\)"),
    "list with None": ([[1, None], [3, 4]], TypeError, r"contains None .*\(first at row 0, column 1\)"),
    "objects with a string": (spoiled("7"), TypeError, r"contains '7' of type str \(first at row 5, column 1\)"),
    "objects with None": (spoiled(None), TypeError, r"contains None of type NoneType \(first at row 5, column 1\)"),
    "objects with NA": (spoiled(pd.NA), TypeError, r"contains <NA> of type NAType \(first at row 5, column 1\)"),
    "objects with complex": (spoiled(1j), TypeError, r"contains 1j of type complex \(first at row 5, column 1\)"),
    "objects with a huge int": (spoiled(10**400), ValueError, r"beyond float64.*row 5, column 1"),
    "masked entries": (masked(), ValueError, r"2 masked entries \(first at row 4, column 2\)"),
    "string column": (pd.DataFrame({"a": [1.0], "b": ["x"]}), TypeError, r"column 'b' \(number 1\) of type str|object"),
    "category": (pd.DataFrame({"a": pd.Categorical([1, 2])}), TypeError, "column 'a' .number 0. of type category"),
    "date column": (pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])}), TypeError, "column 't' .* of type datetime64"),
    "zoned dates": (
        pd.DataFrame({"t": pd.to_datetime(["2020-01-01"], utc=True)}),
        TypeError,
        "column 't' .* of type datetime64.*UTC",
    ),
    "duration column": (pd.DataFrame({"t": pd.to_timedelta([1], unit="s")}), TypeError, "column 't' .* timedelta64"),
    "complex column": (pd.DataFrame({"z": [1j]}), TypeError, "column 'z' .* complex128"),
} | {case: (S, ValueError, f"a damaged {case[:3].upper()} matrix") for case, S in DAMAGED.items()}


DOORS = [
    lambda X: fk.kpca(X, "gaussian", 2),
    lambda X: fk.kpca_project(MODEL, X),
]
OTHER_DOORS = [
    lambda S: fk.kpca(S, sigma=1.0, c=2, method="dense"),
    lambda S: fk.kpca(lambda: iter([S]), sigma=1.0, c=2),
    lambda S: fk.pca(S, c=2),
    lambda S: fk.gram(S, "gaussian", sigma=1.0),
    lambda S: fk.gram(DENSE, "gaussian", S, sigma=1.0),
    lambda S: KernelPCA(2, kernel="rbf").fit(S),
    lambda S: KernelPCA(2, kernel="rbf").fit(DENSE).transform(S),
    lambda S: Nystroem(n_components=5).fit(S),
]


@pytest.mark.parametrize("case", REFUSED)
def test_refused_under_the_name_of_the_argument(case):
    X, error, text = REFUSED[case]
    with pytest.raises(error, match=re.sub(r"\bX\b", "Xnew", text)) as caught:
        as_rows(X, name="Xnew", at_least=2)
    assert not re.search(r"\bX\b", str(caught.value))
    of_a_crafted_file = case in ("csr, negative column", "coo, row beyond the last")
    for call in DOORS + OTHER_DOORS * of_a_crafted_file:
        if "one " not in case and "MATLAB" not in text:
            with pytest.raises(error, match=text):
                call(X)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="long double is double here")
@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_long_doubles_beyond_double(wrap):
    X = DENSE.astype(np.longdouble)
    X[30, 2] = np.longdouble("1e400")
    with pytest.raises(ValueError, match=r"1e\+400 \(first at row 30, column 2\), beyond float64"):
        as_rows(wrap(X))
    X[30, 2] = np.inf  # infinity is infinity: reported as such by the pass that reads the values
    with pytest.raises(ValueError, match=r"infinity \(first at row 30, column 2\)"):
        check_finite(as_rows(wrap(X)))


@pytest.mark.parametrize("value, word", [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("wrap", [np.asarray, np.asfortranarray, sp.csr_matrix])
def test_the_first_value_that_is_not_finite_is_named(value, word, wrap):
    X = RNG.standard_normal((9000, 3))  # more than one tile
    X[8700, 1] = X[8700, 2] = X[8999, 0] = value
    rows = as_rows(wrap(X), name="Xnew")
    place = r"\(first at row 8700, column 1\); drop or impute these rows before "
    with pytest.raises(ValueError, match=f"Xnew contains {word} {place}kpca_project"):
        check_finite(rows, "Xnew")
    with pytest.raises(ValueError, match=f"X contains {word} {place}kpca"):
        summarize(rows, shift=True, randomness=Randomness(0))
    check_finite(as_rows(X[:8700]))
    check_finite(as_rows(np.full((50, 2), 1.7e308)))  # whose sum overflows
    place = r"\(first at row 8700, column 1\); missing by column: 0 \(1\), 1 \(1\), 2 \(1\); drop or impute these rows "
    for purpose in ("kpca_project", "kpca"):
        filled = r", or let the model fill them in: kpca_project\(model, kpca_fill\(model, Xnew\)\)"
        end = purpose + filled * (word == "NaN" and purpose == "kpca_project")
        with pytest.raises(ValueError, match=f"Xnew contains {word} {place}before {end}$"):
            as_rows(pd.DataFrame(X), name="Xnew", purpose=purpose)
    check_finite(as_rows(pd.DataFrame(X[:8700])))


# Arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "c, expected",
    [(1, 1), (10, 10), (np.int32(3), 3), (np.array(4), 4), (5.0, 5), (np.float64(2.0), 2), (None, None)]
    + [(0.95, 0.95), (np.float32(0.5), 0.5), (Fraction(1, 4), 0.25), (1e-9, 1e-9)],
)
def test_c(c, expected):
    result = check_c(c, 10)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    "c, error, text",
    [
        (True, TypeError, "truth value"),
        (np.False_, TypeError, "truth value"),
        (0, ValueError, "at least one component"),
        (-3, ValueError, "at least one component"),
        (0.0, ValueError, "c is 0.0"),
        (-0.5, ValueError, "c is -0.5"),
        (11, ValueError, r"c is 11, but X has 10 rows, which give at most 9 components \(10 with center=False\)"),
        (1.0, ValueError, "one component or 100 % .*c=1 for one component, c=None for all"),
        (np.float32(1), ValueError, "one component or 100 %"),
        (1.5, ValueError, "c is 1.5; give a whole number"),
        (float("nan"), ValueError, "c is nan"),
        (float("inf"), ValueError, "c is inf"),
        ("5", TypeError, "c is '5'; give a whole number"),
        ([1, 2], TypeError, r"c is \[1, 2\]"),
        (2j, TypeError, "c is 2j"),
    ],
)
def test_bad_c(c, error, text):
    with pytest.raises(error, match=text):
        fk.kpca(np.arange(10.0)[:, None], "gaussian", c, sigma=1.0)


check_row = partial(check_numbers, name="t", need="one", shape=(None,))
NO_LIMIT = [0, -5, "0MB", "", "much", "5 XB", "-3GB", "1e9", True, 0.5, [1], float("nan")]


@pytest.mark.parametrize(
    ("check", "values", "error", "text"),
    [
        (
            check_tol,
            (0, 1, 0.0, 1.0, -1e-3, 2.0, np.nan, np.inf),
            ValueError,
            "tol is .*; give a number between 0 and 1",
        ),
        (check_tol, (5e-324, 1e-200), ValueError, "tol is .*1e-100"),
        (check_tol, ("1e-6", None, True, [1e-6], 1e-6j), TypeError, "tol is .*; give a number between 0 and 1"),
        (check_memory_limit, NO_LIMIT, (TypeError, ValueError), 'memory_limit is .*"500MB" or "2GiB"'),
        (check_rng, (True, 1.5, "seed", np.random.RandomState(0), object()), TypeError, "rng is "),
        (check_rng, (np.random.RandomState(0),), TypeError, r"default_rng\(seed\) replaces RandomState"),
        (check_rng, (-1,), ValueError, "rng is -1"),
        (partial(check_count, name="max_passes"), (0,), ValueError, "max_passes is 0; give a whole number, 1 or more"),
        (partial(check_count, name="n"), (True, 1.5, "3", None, np.inf), TypeError, "n is .*; give a whole number"),
        (
            partial(check_choice, name="m", choices=("a", "b")),
            ("lapack",),
            ValueError,
            "m is 'lapack'; give one of 'a', 'b'",
        ),
        (partial(check_choice, name="m", choices=("a", "b")), (3,), TypeError, "m is 3; give one of"),
        (
            check_row,
            ([np.nan, 1.0], [1.0, np.inf]),
            ValueError,
            "t contains NaN or infinity .first at row",
        ),
        (check_row, ([1j], ["a"]), TypeError, "t is an array of the type .*; give one"),
        (check_row, ([[1.0]], 3.0), ValueError, "t has shape .*; give one"),
        (partial(check_flag, name="progress"), (1,), TypeError, "progress is 1; give True or False"),
    ],
)
def test_refused_arguments(check, values, error, text):
    for value in values:
        with pytest.raises(error, match=text):
            check(value)


def test_accepted_arguments():
    assert check_tol(np.float32(0.5)) == 0.5
    limits = [(None, None), (12345, 12345), (np.int64(9), 9), (1e9, 10**9), ("800", 800), ("500MB", 500 * 10**6)]
    limits += [("2GiB", 2 * 2**30), (" 1.5 gb ", 1_500_000_000), ("64kB", 64_000), ("3KiB", 3072), ("1T", 10**12)]
    assert [check_memory_limit(limit) for limit, _ in limits] == [expected for _, expected in limits]
    first = np.random.default_rng(3).random(4)
    for seed in (3, np.int64(3), np.random.SeedSequence(3), np.random.default_rng(3), np.random.PCG64(3)):
        np.testing.assert_array_equal(check_rng(seed).random(4), first)
    generator = np.random.default_rng()
    assert check_rng(generator) is generator
    assert check_rng(None).random() != check_rng(None).random()
    assert check_count(np.int16(20), "max_passes") == check_count(20.0, "max_passes") == 20
    assert check_choice("dense", "method", ("auto", "dense")) == "dense"
    assert check_flag(np.True_, "progress") is True


@pytest.mark.parametrize("of_model", [True, False])
def test_a_function_that_makes_the_place_of_scores_and_fails_is_named(of_model):
    X = RNG.standard_normal((60, 3))
    model = fk.kpca(X, "linear", 2)

    def call(out):
        return fk.kpca_project(model, X, out=out) if of_model else fk.kpca(X, "linear", 2, out=out)

    words = r"out raised AttributeError: .* no attribute 'nothing'; it is called with the shape \(60, 2\) and the type "
    with pytest.raises(TypeError, match=words) as caught:
        call(lambda shape, dtype: shape @ dtype.nothing)
    assert isinstance(caught.value.__cause__, AttributeError)
    with pytest.raises(OSError, match="full"):  # the disk's errors stay what they are
        call(full)
    assert call(np.empty) is not None


def full(shape, dtype):
    raise OSError("full")
