"""Tables of numbers from files (csv, npy, npz, mat; by ``lazyfiles`` also HDF5, zarr and Parquet), for the command
line. ``textfiles`` reads text."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...errors import DataFileError
from ...rows.columns import listed
from ...rows.convert import as_rows
from ...rows.foreign import file_source
from ...rows.lags import lag_names, lagged, starts_of
from ...rows.values import complete, not_finite
from ...rows.view import Rows
from . import lazyfiles, sheets
from .archives import Mat, Npz, data_file_errors
from .cells import Reading
from .collected import CollectedRows
from .selection import ColumnSelection, Table, column_keys, column_label
from .text import TextFile

_NOT_TEXT = {".xls": "an old spreadsheet", ".ods": "a spreadsheet", ".feather": "a Feather file",
             ".pkl": "a pickle", ".pickle": "a pickle", ".kpca": "a fastkpca model"}  # fmt: skip
_READABLE = ".csv .tsv .txt (also .gz), .xlsx, SQLite, DuckDB, .npy, .npz, .mat, HDF5, zarr, Parquet, Arrow can be read"


def read(
    path: str | os.PathLike,
    *,
    var: str | None = None,
    called: str | None = None,
    allow_missing: bool = False,
    memory: float | None = None,
    **options: Any,
) -> Table:
    """Read a table of numbers; the kind of file is told from its first bytes.

    Parameters
    ----------
    path : str or path-like
    var : str, optional
        Which array of an .npz, .mat, HDF5 or zarr file; by default the only one with two dimensions.
    called : str, optional
        What errors call the file, in place of its path.
    allow_missing : bool
        Missing values in a text file become NaN, as they are in other files; else they are an error.
    memory : float, optional
        Bytes that a line of text, a chunk of a dataset, or an array of a MATLAB file may take.
    **options
        The fields of ``ColumnSelection``: which columns are taken, and of ``Reading``: how the cells of text and of
        spreadsheets are read.

    Raises
    ------
    DataFileError
        With one line of text that says what is wrong, where, and what to do.
    FileNotFoundError
    """
    name = called or str(path)
    selecting = options.keys() & {x.name for x in fields(ColumnSelection)}
    selection = ColumnSelection(name, **{key: options.pop(key) for key in selecting})
    form = Reading(**options | {"na_values": tuple(options.get("na_values", ()))})
    if "://" in str(path):
        return sheets.database(path, name, form, memory).read(selection, allow_missing)
    if os.path.isdir(path):
        kind = lazyfiles.kind_of_folder(path)
        if kind == "zarr":
            return _from_archive(lazyfiles.Zarr(path, name, memory), var, selection)
        if kind == "parquet":
            return _from_parquet(path, var, selection)
        raise DataFileError(f"{name} is a folder, and neither a zarr store nor a folder of Parquet files; give a file")
    try:
        with open(path, "rb") as file:
            start = file.read(560)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {name!r}") from None
    if not start:
        raise DataFileError(f"{name} is empty")
    suffix = Path(path).suffix.lower()
    is_book = start.startswith(b"PK") and (suffix == ".xlsx" or sheets.is_workbook(path))
    is_database = sheets.is_database(start)
    if form.sheet and not is_book:
        raise DataFileError(f"{name} is not a spreadsheet (.xlsx); leave out --sheet")
    if form.query and not is_database:
        raise DataFileError(f"{name} is not a database; leave out --query")
    if start.startswith(b"\x93NUMPY"):
        _refuse_var(name, var, ".npy")
        # the number of values may overflow, which is an error of its own
        with data_file_errors(name, "cannot be read"), np.errstate(over="ignore"):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        return _from_array(array, selection)
    if suffix in _NOT_TEXT and not start.startswith(b"ARROW1"):
        raise DataFileError(f"{name} is {_NOT_TEXT[suffix]}; {_READABLE}")
    if is_database:
        _refuse_var(name, var, "database")
        return sheets.database(path, name, form, memory, start).read(selection, allow_missing)
    if is_book:
        _refuse_var(name, var, "spreadsheet")
        return sheets.workbook(path, name, form, memory).read(selection, allow_missing)
    if start.startswith(b"PK"):
        return _from_archive(Npz(path, name), var, selection)
    if start.startswith((b"PAR1", b"ARROW1")) or suffix == ".parquet":
        return _from_parquet(path, var, selection, "ipc" if start.startswith(b"ARROW1") else "parquet")
    if start.startswith(b"\x89HDF") or start[512:516] == b"\x89HDF" or suffix in (".h5", ".hdf5"):
        return _from_archive(lazyfiles.Hdf5(path, name, start.startswith(b"MATLAB"), memory), var, selection)
    if start.startswith(b"MATLAB") or suffix == ".mat":
        return _from_archive(Mat(path, name, memory), var, selection)
    if suffix in (".npy", ".npz"):
        raise DataFileError(f"{name} is not a {suffix} file (it begins with {start[:8]!r})")
    _refuse_var(name, var, "text")
    return TextFile(path, name, start, form, _READABLE, memory).read(selection, allow_missing)


def _refuse_var(name: str, var: str | None, kind: str) -> None:
    if var is not None:
        raise DataFileError(f"{name} is a {kind} file and names no arrays; leave out --var {var}")


# ---- arrays ----------------------------------------------------------------------------------------------------------


def _from_array(X: Any, selection: ColumnSelection) -> Table:
    """A table from an array or source. Nothing is copied where a range of columns is taken, or of a source."""
    name = selection.file
    if X.dtype.names:
        raise DataFileError(
            f"{name}: the array has the fields {listed(X.dtype.names)}; save its columns as an array of numbers, "
            "numpy.lib.recfunctions.structured_to_unstructured(X)"
        )
    if X.ndim != 2:
        raise DataFileError(f"{name}: the array has shape {tuple(X.shape)}; rows and columns are needed (2 dimensions)")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataFileError(f"{name}: the array is empty, its shape is {tuple(X.shape)}")
    if X.dtype.kind not in "biuf":
        raise DataFileError(f"{name}: the array has dtype {X.dtype}; real numbers are needed")
    taken, *extra = selection.resolve(X.shape[1], None)
    labels, identifiers = (None if i is None else np.ravel(_loaded(X[:, [i]])) for i in extra)
    if taken == list(range(taken[0], taken[-1] + 1)):
        rows = X[:, taken[0] : taken[-1] + 1]
    else:
        file = file_source(X, name)
        rows = X[:, taken] if file is None else file[:, taken]
    return Table(rows, None, labels, identifiers=identifiers, n_rows=X.shape[0], places=taken)


def _loaded(X: Any) -> np.ndarray:
    """An array, a sparse matrix or a source as an array."""
    return X.toarray() if sp.issparse(X) else X[:]


def faults(table: Table) -> tuple[str, int]:
    """Columns with values that are no finite numbers, their number of rows, and the first line of a text file; how many
    columns do not."""
    first, of_columns = not_finite(as_rows(table.X))
    counts, where = of_columns.tolist(), ""
    texts = [f"{table.label(i)}: {count} row{'s' * (count > 1)}" for i, count in enumerate(counts) if count]
    if first is not None and table.lines is not None:
        row = first[1] if table.kept is None else np.flatnonzero(table.kept)[first[1]]
        where = f" (first in line {table.lines(np.array([row]))[0]})"
    return listed(texts, 8) + where, len(counts) - len(texts)


def without_missing(table: Table, name: str, *, empty: bool = False) -> Table:
    """The table without the rows that hold a NaN, or only those that hold nothing else (``empty``); ``kept`` and a note
    say which these are. ``name``: of the file."""
    rows = as_rows(table.X)
    if rows.dtype.kind != "f":
        return table
    kept = complete(rows, some=empty)
    if kept.all():
        return table
    if not kept.any():
        what = "every row lacks all values of the columns" if empty else "every row has a missing value in a column"
        raise DataFileError(f"{name}: {what} that {'are' if empty else 'is'} taken; take others (--columns)")
    left_out = np.flatnonzero(~kept)
    several = "s" * (len(left_out) > 1)
    if table.lines is None:
        where = f"row{several} {listed(map(str, left_out + 1))}, counted from 1"
    else:
        where = f"line{several} {listed(map(str, table.lines(left_out)))}"
    lack = "no value at all" if empty else "missing values" if several else "a missing value"
    have, are = ("have", "are") if several else ("has", "is")
    note = f"{len(left_out)} of {len(kept)} rows {have} {lack} and {are} left out: {where}"
    return replace(only(table, kept, name), notes=[*table.notes, note])


def only(table: Table, chosen: np.ndarray, name: str) -> Table:
    """The table of the rows where ``chosen`` (n,) is true; ``kept`` says which rows of the file these are. ``name``: of
    the file."""
    rows = as_rows(table.X)
    kept = chosen
    if table.kept is not None:
        kept = table.kept.copy()
        kept[table.kept] = chosen
    return replace(
        table,
        X=rows.source[chosen] if rows.in_memory else _collected(rows.shifted(np.zeros(rows.n_features)), chosen, name),
        n_rows=int(np.count_nonzero(chosen)),
        labels=None if table.labels is None else table.labels[chosen],
        kept=kept,
    )


def joined(parts: Sequence[Table]) -> Table:
    """The rows of several tables of the same columns, all of whose rows are named, in memory; one as it is."""
    if len(parts) == 1:
        return parts[0]
    X = np.concatenate([as_rows(part.X, missing=True).all() for part in parts])
    notes = [note for part in parts for note in part.notes]
    identifiers = np.concatenate([np.asarray(part.identifiers, dtype=object) for part in parts])
    starts = tuple(np.cumsum([0, *(part.n_rows for part in parts[:-1])]).tolist())
    return Table(X, parts[0].names, None, notes, identifiers, n_rows=len(X), places=parts[0].places, starts=starts)


def with_lags(table: Table, lags: int, name: str) -> Table:
    """The rows of a table with the rows before them as further columns. Those that have too few before them, where a
    file begins, rows were left out, or times have a gap, are left out. ``name``: of the file."""
    too_few = DataFileError(f"{name}: no row has {lags} rows before it that follow each other without a gap")
    if lags >= table.n_rows:
        raise too_few
    places = np.arange(table.n_rows) if table.kept is None else np.flatnonzero(table.kept)
    starts = starts_of(None if table.identifiers is None else np.asarray(table.identifiers)[places], table.n_rows)
    starts[1:] |= (np.diff(places) > 1) | np.isin(places[1:], table.starts)
    X, known = lagged(as_rows(table.X, missing=True).all(), lags, starts)
    if not known.any():
        raise too_few
    names = None if table.names is None else lag_names(table.names, lags)
    note = f"{np.count_nonzero(~known)} of {len(known)} rows are left out: what goes before them for --lags is missing"
    long = replace(table, X=X, names=names, places=table.places * (lags + 1), notes=[*table.notes, note])
    return only(long, known, name)


def _collected(rows: Rows, chosen: np.ndarray, name: str) -> Any:
    """The chosen rows of a source that is read page by page."""
    with CollectedRows(rows.n_features, name) as whole:
        for start, tile in rows.tiles(rows.step):
            whole.append(tile[chosen[start : start + len(tile)]])
        return whole.rows()


def _from_parquet(path: str | os.PathLike, var: str | None, selection: ColumnSelection, kind: str = "parquet") -> Table:
    _refuse_var(selection.file, var, "Parquet")
    file = lazyfiles.Parquet(path, selection.file, kind)
    if 0 in file.shape:
        raise DataFileError(f"{selection.file}: the table is empty, its shape is {file.shape}")
    taken, *extra = selection.resolve(file.shape[1], file.names)
    words = file.not_numeric(taken)
    if words:
        named = listed([f"{column_label(i, file.names)} of type {kind}" for i, kind in words])
        may_skip = len(taken) - len(words) >= selection.needs
        advice = f"; leave out with --skip-columns {column_keys([i for i, _ in words], file.names)}" if may_skip else ""
        raise DataFileError(f"{selection.file}: not numeric: {named}{advice}")
    labels, identifiers = (None if i is None else file.column(i) for i in extra)
    names = [file.names[i] for i in taken]
    return Table(file.rows(taken), names, labels, selection.notes, identifiers, n_rows=file.shape[0], places=taken)


_Archive = Npz | Mat | lazyfiles.Hdf5 | lazyfiles.Zarr


def _load(archive: _Archive, var: str) -> Any:
    with data_file_errors(archive.name, f"has an array {var!r} that cannot be read"):
        return archive.load(var)


def _from_archive(archive: _Archive, var: str | None, selection: ColumnSelection) -> Table:
    shapes = archive.shapes()
    name = archive.name

    def described(names: Sequence[str]) -> str:
        return listed([f"{n} ({' x '.join(map(str, shapes[n]))})" for n in names])

    if not shapes:
        raise DataFileError(f"{name} holds no array of real numbers")
    if var is None:
        tables = [n for n, shape in shapes.items() if len(shape) == 2]
        if not archive.has_vectors:  # in MATLAB: one row or column is a table where there is no other
            tables = [n for n in tables if min(shapes[n]) > 1] or tables
            tables = [n for n in tables if "." not in n] or tables  # those in structs
        if not tables:
            raise DataFileError(f"{name} holds no table of rows and columns; it has {described(list(shapes))}")
        if len(tables) > 1:
            raise DataFileError(f"{name} holds several tables; choose one with --var: {described(tables)}")
        var = tables[0]
    elif var not in shapes:
        raise DataFileError(f"{name} has no array of real numbers called {var!r}; it has {described(list(shapes))}")
    X = _load(archive, var)
    extra = selection.label_column
    if extra not in shapes or extra == var:
        return _from_array(X, selection)
    selection.label_column = None
    table = _from_array(X, selection)
    if (count := math.prod(shapes[extra])) != X.shape[0]:
        raise DataFileError(f"{name}: {extra!r} has {count} entries for {X.shape[0]} rows of {var!r}")
    table.labels = np.ravel(_loaded(_load(archive, extra)))
    return table
