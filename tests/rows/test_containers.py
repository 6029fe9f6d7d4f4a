"""Rows in the containers that people have: taken as the array they hold, or refused with advice that works as it is."""

from __future__ import annotations

import re
import warnings
from decimal import Decimal

import doors
import numpy as np
import pandas as pd
import pytest
from numpy.lib.recfunctions import structured_to_unstructured, unstructured_to_structured

import fastkpca as fk
from fastkpca.__main__ import main
from fastkpca.errors import NoRouteError
from fastkpca.methods import as_rows

X = np.random.default_rng(0).standard_normal((40, 3))
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(X, columns=NAMES)
SWAPPED = FRAME[["c", "a", "b"]]


class OnlyDLPack:
    """An array of a library that numpy knows by its protocol alone."""

    def __init__(self, values):
        self._values = values

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


class Elsewhere(OnlyDLPack):
    def __dlpack__(self, **options):
        raise BufferError("the values are on another device")


def records(dtype=None):
    return unstructured_to_structured(X, np.dtype(dtype or [(name, float) for name in NAMES]))


def labelled(values=X):
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(values, dims=("row", "column"), coords={"column": NAMES})


TAKEN = {
    "records": (records, NAMES),
    "records of floats and whole numbers": (lambda: records([("a", "f4"), ("b", "f8"), ("c", "i2")]), NAMES),
    "a recarray": (lambda: FRAME.to_records(index=False), NAMES),
    "DLPack": (lambda: OnlyDLPack(X.copy()), None),
    "xarray": (labelled, NAMES),
    "xarray on Dask": (lambda: labelled(pytest.importorskip("dask.array").from_array(X, chunks=(10, 3))), NAMES),
    "a frame of objects": (lambda: FRAME.astype(object), NAMES),
    "one column of objects": (lambda: FRAME.astype({"b": object}), NAMES),
    "truth values": (lambda: FRAME > 0, NAMES),
    "an Arrow dataset": (lambda: pytest.importorskip("pyarrow.dataset").dataset(_table()), NAMES),
    "a LazyFrame": (lambda: _lazy(), NAMES),
    "a LazyFrame in narwhals": (lambda: pytest.importorskip("narwhals").from_native(_lazy()), NAMES),
    "a frame in narwhals": (lambda: pytest.importorskip("narwhals").from_native(FRAME), NAMES),
    "a stream of Arrow's": (lambda: doors.Stream(_table()), NAMES),
    "DuckDB": (lambda: _duck("SELECT * FROM rows", _table()), NAMES),
    "blocks of frames": (lambda: lambda: iter([FRAME[:15], FRAME[15:]]), NAMES),
}


def _table():
    return pytest.importorskip("pyarrow").table({name: FRAME[name].to_numpy() for name in NAMES})


def _lazy():
    return pytest.importorskip("polars").DataFrame(dict(FRAME)).lazy()


def _duck(query, rows=None):
    return pytest.importorskip("duckdb").sql(query)


@pytest.mark.parametrize("kind", TAKEN)
def test_taken_with_the_names_of_columns(kind):
    make, names = TAKEN[kind]
    rows = as_rows(make())
    assert rows.names == (None if names is None else tuple(names))
    values = np.asarray(rows.all())
    expected = {
        "records of floats and whole numbers": lambda: structured_to_unstructured(make()),
        "truth values": lambda: (X > 0).astype(float),
    }.get(kind, lambda: X)()
    np.testing.assert_array_equal(values, expected)
    model = fk.kpca(make(), "linear", 2)
    np.testing.assert_allclose(model.eigenvalues, fk.kpca(values, "linear", 2).eigenvalues, rtol=1e-12)
    assert model.feature_names == rows.names


def test_xarray_on_dask_stays_lazy():
    array = pytest.importorskip("dask.array").from_array(X, chunks=(10, 3))
    assert hasattr(fk.kpca_project(fk.kpca(X, "linear", 2), labelled(array)), "dask")


# Queries that have not run ------------------------------------------------------------------------------------------


def test_a_query_runs_once_and_gives_a_frame_back():
    polars = pytest.importorskip("polars")
    runs = []

    def counted(frame):
        runs.append(len(frame))
        return frame

    model = fk.kpca(FRAME, "gaussian", 2, sigma=2.0)
    lazy = _lazy().map_batches(counted, slice_pushdown=False)
    watched = model.with_limits(fk.kpca_limits(model, FRAME + 0.1, confidence=0.5))
    for call in (
        lambda X: fk.kpca(X, "gaussian", 2, sigma=2.0),
        lambda X: fk.kpca_monitor(watched, X),
        lambda X: fk.kpca_fill(model, X, train=FRAME),
    ):
        runs.clear()
        result = call(lazy)
        assert runs.count(40) == 1 and sum(runs) == 40, runs
    assert type(result) is polars.DataFrame and result.equals(lazy.collect())
    np.testing.assert_array_equal(fk.kpca_denoise(model, lazy), fk.kpca_denoise(model, X))


@pytest.mark.parametrize("call", [fk.kpca_project, fk.kpca_denoise, lambda m, X: fk.kpca_fill(m, X, train=SWAPPED)])
@pytest.mark.parametrize("make", [lambda: _lazy(), lambda: doors.Stream(_table())])
def test_queries_of_other_columns(make, call):
    model, X = fk.kpca(SWAPPED, "gaussian", 2, sigma=2.0), make()
    with pytest.raises(ValueError, match="another order") as caught:
        call(model, X)
    pyarrow = pytest.importorskip("pyarrow")
    taken = eval(str(caught.value).rpartition("; take ")[2], {"X": X, "model": model, "pyarrow": pyarrow})
    np.testing.assert_array_equal(np.asarray(call(model, taken)), np.asarray(call(model, SWAPPED)))


@pytest.mark.parametrize("make", [lambda: _lazy(), lambda: doors.Stream(_table())])
def test_a_query_is_read_no_further_than_the_memory_limit(make, tmp_path):
    with pytest.raises(NoRouteError, match=r"X is a query, a copy of which takes .* give a Parquet file of its rows"):
        as_rows(make(), memory=500)
    assert as_rows(make(), memory=5000).n_samples == 40
    FRAME.to_parquet(tmp_path / "x.parquet")
    np.testing.assert_array_equal(as_rows(tmp_path / "x.parquet", memory=500).all(), X)


def test_decimals_of_arrow_are_numbers_and_rounded_by_no_more_than_a_float():
    pa = pytest.importorskip("pyarrow")
    cents, sums = pa.array([1, 2, None, 4]).cast(pa.decimal128(20, 0)), [Decimal("1.25"), None, Decimal("-3"), 0]
    table = pa.table({"sum": cents, "mean": pa.array(sums, pa.decimal128(5, 2))})
    values = as_rows(table, missing=True).all()
    np.testing.assert_array_equal(values, [[1, 1.25], [2, np.nan], [np.nan, -3], [4, 0]])
    table = pa.table({"sum": pa.array([1, 2**60 + 1]).cast(pa.decimal128(38, 0))})
    with pytest.raises(ValueError, match=r"whole numbers beyond 2\^53 in the column 'sum' \(first at row 1\)"):
        as_rows(table)


def test_a_relation_of_duckdb():
    rows = _duck("SELECT 1.5 * i AS x, SUM(i) OVER (ORDER BY i) AS s, i::UTINYINT AS u FROM range(40) t(i)")
    i = np.arange(40.0)
    np.testing.assert_array_equal(as_rows(rows).all(), np.column_stack([1.5 * i, np.cumsum(i), i]))
    with pytest.raises(ValueError, match=r"X contains NaN \(first at row 3, column 0\)"):
        fk.kpca(_duck("SELECT nullif(i, 3) AS x, i AS y FROM range(40) t(i)"), "linear", 1)
    with pytest.raises(TypeError, match=r"has the column 'w' \(number 1\) of type string"):
        fk.kpca(_duck("SELECT i, 'a' AS w FROM range(40) t(i)"), "linear", 1)
    with pytest.raises(ValueError, match="X has no rows"):
        fk.kpca(_duck("SELECT i FROM range(40) t(i) WHERE i > 40"), "linear", 1)
    with pytest.raises(NoRouteError):
        as_rows(rows, memory=10)
    assert as_rows(rows).n_samples == 40  # the query that was left unread keeps no other one waiting


class OnDevice(pd.Series):
    """A column that numpy cannot read unasked, as one of cuDF."""

    def __array__(self, *args, **options):
        raise TypeError("implicit conversion to a host array is not allowed; use .to_numpy()")


class FrameOnDevice(pd.DataFrame):
    """A frame that numpy cannot read unasked, and that warns of what it does slowly, as one of modin."""

    _constructor_sliced = OnDevice

    def isetitem(self, *args):
        warnings.warn("defaulting to pandas implementation", UserWarning, stacklevel=2)
        super().isetitem(*args)

    @property
    def _constructor(self):
        return FrameOnDevice

    def __array__(self, *args, **options):
        raise TypeError("implicit conversion to a host array is not allowed; use .to_numpy()")


def test_frames_that_numpy_cannot_read_unasked():
    model = fk.kpca(FRAME, "gaussian", 2, sigma=2.0)
    frame = FrameOnDevice(holes(FRAME))
    assert as_rows(FrameOnDevice(FRAME)).names == tuple(NAMES)
    filled = fk.kpca_fill(model, frame, train=FrameOnDevice(FRAME))
    assert type(filled) is FrameOnDevice
    np.testing.assert_array_equal(filled.to_numpy(), fk.kpca_fill(model, holes(FRAME), train=X))


def structs(**options):
    """What scipy.io.loadmat returns for a struct with the field X."""
    scipy_io = pytest.importorskip("scipy.io")
    import io

    file = io.BytesIO()
    scipy_io.savemat(file, {"data": {"X": X, "label": "ring"}})
    return scipy_io.loadmat(file, **options)["data"]


ADVICE = {
    "Dataset of xarray": (
        lambda: pytest.importorskip("xarray").Dataset({name: ("row", FRAME[name].to_numpy()) for name in NAMES}),
        r"or (X\.to_dataarray\('column'\)\.transpose\(\.\.\., 'column'\))",
    ),
    "struct": (structs, r"one of those, as (X\['X'\]\[0, 0\])"),
    "squeezed struct": (lambda: structs(squeeze_me=True), r"one of those, as (X\['X'\]\[\(\)\])"),
    "struct as an object": (
        lambda: structs(struct_as_record=False, squeeze_me=True), r"one of its fields, as (X\.X)$",
    ),
    "words among records": (
        lambda: unstructured_to_structured(X, np.dtype([("a", float), ("b", "U9"), ("c", float)])),
        r"the field 'b'|its field 'b' of type <U9 does not hold one number a row; take (X\[\['a', 'c'\]\])",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ADVICE)
@pytest.mark.parametrize("door", ["fit", "project"])
def test_advice_is_followed(kind, door):
    make, text = ADVICE[kind]
    given = make()
    model = fk.kpca(X[:, :2] if kind == "words among records" else X, "linear", 2)
    call = {"fit": lambda Y: fk.kpca(Y, "linear", 2), "project": lambda Y: fk.kpca_project(model, Y)}[door]
    with pytest.raises(TypeError) as caught:
        call(given)
    found = re.search(text, str(caught.value))
    assert found, caught.value
    call(eval(found[1], {"X": given}))


def test_what_cannot_be_read():
    with pytest.raises(TypeError, match="cannot be read through DLPack: the values are on another device; copy it"):
        fk.kpca(Elsewhere(X), "linear", 2)
    with pytest.raises(ValueError, match="whole numbers beyond 2.53 in the column 'b'"):
        fk.kpca(np.array([(1.0, 2**60 + 1), (2.0, 1)], [("a", float), ("b", np.int64)]), "linear", 1)
    blocks = [FRAME[:15], FRAME[15:][["b", "a", "c"]]]
    with pytest.raises(ValueError, match=r"block 1 of X .*has the columns 'b', 'a', 'c', and the first block has 'a'"):
        fk.kpca(lambda: iter(blocks), "linear", 2)


# Rows that come back -----------------------------------------------------------------------------------------------


def holes(frame):
    frame = frame.copy()
    frame.iloc[1, 0] = frame.iloc[3, 2] = np.nan
    return frame


@pytest.mark.parametrize("types", [float, np.float32, "Float64", "Float32", "mixed"])
def test_what_fills_a_frame_returns_a_frame(types):
    t = np.random.default_rng(1).uniform(-1, 1, 60)
    whole = np.arange(60) % 4
    frame = pd.DataFrame({"a": t, "b": whole, "c": t + whole}, index=[f"row {i}" for i in range(60)])
    model = fk.kpca(frame, "linear", 2)
    given = holes(frame[:9])
    given = given.convert_dtypes() if types == "mixed" else given.astype({"a": types, "c": types})
    before = given.copy()
    filled = fk.kpca_fill(model, given, train=frame)
    pd.testing.assert_frame_equal(given, before)
    assert type(filled) is pd.DataFrame and filled.columns.equals(given.columns) and filled.index.equals(given.index)
    assert (filled.dtypes == given.dtypes).all() and not filled.isna().any().any()
    assert filled["b"].equals(given["b"]) and filled["a"].drop("row 1").equals(given["a"].drop("row 1"))
    np.testing.assert_allclose(filled["a"].astype(float), frame["a"][:9], atol=1e-6)
    with pytest.raises(ValueError, match="another order"):
        fk.kpca_fill(model, given[["b", "a", "c"]], train=frame)


def test_polars_and_xarray_come_back():
    polars = pytest.importorskip("polars")
    model = fk.kpca(FRAME, "gaussian", 2, sigma=2.0)
    expected = fk.kpca_fill(model, holes(FRAME).to_numpy(), train=X)
    assert isinstance(expected, np.ndarray)
    given = polars.DataFrame({name: [None if x != x else x for x in holes(FRAME)[name].tolist()] for name in NAMES})
    filled = fk.kpca_fill(model, given, train=X)
    assert filled.schema == given.schema
    np.testing.assert_array_equal(filled.to_numpy(), expected)
    again = fk.kpca_fill(model, labelled(holes(FRAME).to_numpy()), train=X)
    np.testing.assert_array_equal(again.to_numpy(), expected)
    assert again.coords["column"].values.tolist() == NAMES
    clean = fk.kpca_denoise(model, FRAME[::2].astype({"b": np.float32}))
    assert clean.index.equals(FRAME.index[::2]) and clean.dtypes.tolist() == [np.float64, np.float32, np.float64]
    np.testing.assert_allclose(clean["a"], fk.kpca_denoise(model, X[::2])[:, 0], rtol=1e-6)


def test_rows_of_scores_in_a_frame_have_the_names_of_the_fit():
    estimators = pytest.importorskip("fastkpca.sklearn")
    frame = FRAME.set_axis([f"row {i}" for i in range(40)])
    pca = estimators.KernelPCA(2, kernel="rbf", gamma=0.5, fit_inverse_transform=True).set_output(transform="pandas")
    Z = pca.fit(frame).transform(frame)
    back = pca.inverse_transform(Z)
    assert list(back.columns) == NAMES and back.index.equals(frame.index)
    np.testing.assert_array_equal(back, pca.inverse_transform(Z.to_numpy()))
    swapped = Z[Z.columns[::-1]]
    with pytest.raises(ValueError, match=r"in another order; take X\[list\(estimator\.get_feature_names_out\(\)\)\]"):
        pca.inverse_transform(swapped)
    np.testing.assert_array_equal(pca.inverse_transform(swapped[list(pca.get_feature_names_out())]), back)
    rows = fk.kpca_preimage(pca, Z)
    assert list(rows.columns) == NAMES and rows.index.equals(frame.index)
    bare = fk.kpca(X, "gaussian", 2, sigma=1.0)
    assert isinstance(fk.kpca_preimage(bare, Z), np.ndarray)


# The command line --------------------------------------------------------------------------------------------------


def test_fields_of_structs_by_name(tmp_path, capsys, monkeypatch):
    savemat = pytest.importorskip("scipy.io").savemat
    monkeypatch.chdir(tmp_path)
    inside = {"X": X, "word": "ring", "deep": {"Z": X[:, :2]}}
    savemat("one.mat", {"data": {"X": X}})
    savemat("more.mat", {"data": inside})
    savemat("both.mat", {"data": inside, "B": X[:, 1:]})
    for arguments, columns in [
        ("one.mat", 3), ("more.mat --var data.X", 3), ("more.mat --var data.deep.Z", 2), ("both.mat", 2),
        ("both.mat --var data.X", 3),
    ]:  # fmt: skip
        assert main(["fit", *arguments.split(), "-c", "2"]) == 0
        assert re.search(rf"columns +{columns}\n", capsys.readouterr().out), arguments
    assert main(["fit", "more.mat"]) != 0
    said = capsys.readouterr().err
    assert "choose one with --var: data.X (40 x 3), data.deep.Z (40 x 2)" in said
    assert main(["fit", "more.mat", "--var", "data.word"]) != 0
    assert "no array of real numbers called 'data.word'; it has data.X" in capsys.readouterr().err


def test_columns_of_another_name_that_the_command_line_is_given(tmp_path, capsys, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    FRAME.to_parquet("fit.parquet")
    FRAME.rename(columns={"a": "z"})[["c", "z", "b"]].to_parquet("new.parquet")
    assert main(["fit", "fit.parquet", "-c", "2", "-o", "m.kpca"]) == 0
    capsys.readouterr()
    assert main(["project", "m.kpca", "new.parquet", "--columns", "z,b,c", "--digits", "17"]) == 0
    out, said = capsys.readouterr()
    assert "'z' is taken for 'a'" in said
    scores = np.array([line.split(",") for line in out.split()[1:]], dtype=float)
    np.testing.assert_allclose(scores, fk.kpca_project(fk.load("m.kpca"), FRAME))


def test_truth_values_in_text_and_records_in_npy(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = FRAME.assign(good=X[:, 0] > 0)
    frame.to_csv("t.csv", index=False)
    assert main(["fit", "t.csv", "-c", "2"]) != 0
    said = capsys.readouterr().err
    assert "'True'; write 1 and 0 for truth values; leave out with --skip-columns good" in said
    assert main(["fit", "t.csv", "-c", "2", "--skip-columns", "good"]) == 0
    frame.astype({"good": int}).to_csv("t.csv", index=False)
    assert main(["fit", "t.csv", "-c", "2"]) == 0
    np.save("r.npy", records())
    capsys.readouterr()
    assert main(["fit", "r.npy", "-c", "2"]) != 0
    assert "the fields a, b, c; save its columns as an array of numbers, numpy.lib.rec" in capsys.readouterr().err
    np.save("r.npy", structured_to_unstructured(records()))
    assert main(["fit", "r.npy", "-c", "2"]) == 0
