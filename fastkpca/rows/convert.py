"""Rows from what a user gives: every error says what was found, what is needed, and how to get there."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.protocol import Kernel
from ..base.room import DEFAULT_MEMORY
from ..errors import NoRouteError
from .columns import check_columns_of, listed
from .dask import dask_source
from .foreign import (
    IN_BLOCKS,
    Named,
    file_source,
    find_source,
    frame_source,
    from_arrow,
    from_frame,
    is_arrow,
    is_frame,
    is_iterator,
    is_lazy,
    is_stream,
    mapped_part,
    named_columns,
    plain,
    query_parts,
)
from .sources import Source, TableSource
from .values import check_finite, not_finite
from .view import EXACT, Rows, instead_of_missing

_NO_NUMBERS = (str, bytes, dict, set, frozenset)  # side by side these are no rows
_NEED_ARRAY = "give an array, sparse matrix or data frame of shape (rows, columns)"


def as_rows(
    X: Any,
    *,
    name: str = "X",
    at_least: int = 1,
    purpose: str = "kpca",
    memory: float | None = None,
    missing: bool = False,
) -> Rows:
    """Rows of numbers from an array, sparse matrix, data frame or nested sequence, or from what is not in memory.

    Arrays, memory maps and CSR matrices are read in place, tile by tile, in any byte order, strides or type. So are
    HDF5 and zarr datasets, Parquet, Dask collections and iterables of blocks (``sources``). A query that has not run
    (``run_query``) runs once. Nothing is ever written to. Integers of 64 bits and long doubles keep all their digits
    until a shift has been subtracted (``rows.Rows``); other numbers become float64 here, and whole numbers that it
    would round are refused. NaN and infinity are left to the pass that reads the values (``rows.summarize``,
    ``check_finite``), but for those of a data frame, which are named by their columns here.

    This is where names of columns are taken: the rows keep them (``Rows.names``), and ``check_same_columns`` compares.

    Parameters
    ----------
    X : array-like, shape (n_samples, n_features)
        ``Rows`` are returned as they are.
    name : str
        What the caller's user knows X as.
    at_least : int
        Fewest rows that make sense: 2 to fit, 1 to project.
    purpose : str
        The function that needs the rows; errors name it.
    memory : float, optional
        Bytes that a copy of the rows may take, as of lists, objects and sparse matrices other than CSR; by default any
        number. A table of columns (a mixed data frame, a table of Arrow's) that takes more than a quarter of it, or of
        the default, is converted anew each time that it is read.
    missing : bool
        Whether a data frame may hold NaN.

    Returns
    -------
    Rows
        ``copied`` says how many bytes of such a copy there are.

    Raises
    ------
    TypeError
        The values are not real numbers (complex, dates, strings, objects, None).
    NoRouteError
        A copy would take more than ``memory``.
    ValueError
        The shape is not (rows, columns), rows are missing or masked, a value exceeds float64, or a data frame holds
        NaN or infinity.
    """
    if X is None:
        raise TypeError(f"{name} is None; {_NEED_ARRAY}")
    if isinstance(X, Rows):  # whose values were checked when they were made
        check_enough(X.n_samples, name=name, at_least=at_least, purpose=purpose)
        return X
    table, blocks = run_query(X, name, memory), _Blocks()
    named, ran = named_columns(X) or named_columns(table), table is not X
    X = plain(table, name)
    rows = _read(X, blocks, name=name, at_least=at_least, purpose=purpose, memory=memory, missing=missing)
    rows.named = named or blocks.named
    if ran and isinstance(rows.source, TableSource):  # which keeps the table
        rows.copied += _table_size(table)
    return rows


def run_query(X: Any, name: str = "X", memory: float | None = None) -> Any:
    """The table of a query that has not run, the frame inside a wrapper of narwhals, or anything else as it is.

    Queries are a LazyFrame of polars, a relation of DuckDB, and other objects that have only Arrow's stream protocol.

    Raises
    ------
    NoRouteError
        The table takes more than ``memory`` bytes; reading stops there.
    """
    if type(X).__module__.startswith("narwhals."):
        X = X.to_native()
    if not (is_lazy(X) or is_stream(X)):
        return X
    with closing(query_parts(X, name)) as parts:
        tables, size = [next(parts)], 0
        for part in parts:
            tables.append(part)
            size += _table_size(part)
            _check_copy(size, memory, f"{name} is a query", "a Parquet file of its rows")
    library: Any = sys.modules[type(tables[0]).__module__.partition(".")[0]]
    return library.concat(tables) if is_frame(tables[0]) else library.concat_tables(tables)


def _table_size(table: Any) -> int:
    """Bytes of a frame of polars or a table of Arrow's; 0 for what a user holds."""
    if is_arrow(table):
        return table.nbytes
    return table.estimated_size() if hasattr(type(table), "estimated_size") else 0


def bind_rows(kernel: Kernel, X: Any, *train: Any) -> tuple[Any, Any]:
    """``kernel.bind`` for what may be ``Rows``: these keep the names of their columns, unless they are a matrix."""
    given = X.source if isinstance(X, Rows) else X
    bound, taken = kernel.bind(given, *train)
    return bound, X if taken is given else taken


def _read(
    X: Any, blocks: _Blocks, *, name: str, at_least: int, purpose: str, memory: float | None, missing: bool
) -> Rows:
    source: Any
    if sp.issparse(X):
        source = as_csr(X, name, memory) if X.ndim == 2 else X
    elif (source := dask_source(X, name, _from_block)) is not None or (
        source := find_source(X, name, blocks)
    ) is not None:
        _check_dtype(source.dtype, name, False)
        counted = not isinstance(source, Source) or source.counted  # an array stands for what is to be refused
        if counted or at_least > 2:
            _check_shape(source, name, at_least, purpose)
        return _within(memory, source)
    else:
        if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], (list, tuple, np.ndarray)):
            _check_copy(8.0 * len(X) * len(X[0]), memory, f"{name} is a {type(X).__name__}", f"numpy.array({name})")
        if is_frame(X):
            source = frame_source(X, name, _table_bytes(memory)) or from_frame(X, name)
        else:
            source = _from_array(X, name)
        source = source if isinstance(source, Source) else file_source(source, name) or source
    array = name if isinstance(X, np.ndarray) else f"np.asarray({name})"
    _check_shape(source, name, at_least, purpose, array)
    _check_dtype(source.dtype, name, sp.issparse(source))
    if source.dtype.kind == "O":
        _check_copy(8.0 * source.size, memory, f"{name} is an array of objects", f"{name}.astype(float)")
        source = _from_objects(source, name)
    copied = _copied_bytes(X, source)
    rows = _within(memory, source)
    rows.copied += int(copied)
    if is_frame(X) and not missing:
        _check_missing(rows, list(X.columns), name, purpose)
    _check_range(rows, name)
    return rows


def _within(memory: float | None, source: Any) -> Rows:
    """The rows of a source; of a table of columns those of a copy, where that fits."""
    if not isinstance(source, TableSource) or source.n_samples * source.row_bytes > _table_bytes(memory):
        return Rows(source)
    rows = Rows(source.copy())
    rows.copied = rows.source.nbytes
    return rows


def _table_bytes(memory: float | None) -> float:
    """Bytes that a copy of a table of columns may take."""
    return (DEFAULT_MEMORY if memory is None else memory) / 4


def _check_copy(size: float, memory: float | None, what: str, instead: str) -> None:
    """Raise NoRouteError for a copy of the rows that takes more than the limit, before it is made."""
    if memory is not None and size > memory:
        raise NoRouteError(
            f"{what}, a copy of which takes {size / 1e6:.3g} MB, and the limit is {memory / 1e6:.3g} MB; give "
            f"{instead}, which is read in place, or raise memory_limit"
        )


def _csr_bytes(X: Any) -> float:
    """Bytes of a sparse matrix as CSR; twice that where numbers of its rows and columns are made or converted first."""
    index = 4 if max(X.nnz, *X.shape) < 2**31 else 8
    once = float(X.nnz) * (X.dtype.itemsize + index) + index * (X.shape[0] + 1.0)
    twice = X.format in ("bsr", "dok") or (X.format == "coo" and X.row.itemsize != index)
    return once * (1.0 + twice)


def _copied_bytes(X: Any, source: Any) -> float:
    """Bytes of rows in memory that are nobody else's: they were made of what the user gave."""
    if source is X or isinstance(source, Source):
        return 0.0
    if not isinstance(source, np.ndarray):
        return _csr_bytes(source)
    owner = source if source.base is None else source.base
    # its names here and in the caller, or its view; and the call itself
    fresh = isinstance(owner, np.ndarray) and sys.getrefcount(owner) <= 3 + (owner is source)
    return float(owner.nbytes) if fresh and owner is not X and owner.flags.owndata else 0.0


def as_csr(X: Any, name: str = "X", memory: float | None = None) -> Any:
    """CSR of a sparse matrix with two dimensions, a CSR matrix itself.

    Raises
    ------
    NoRouteError
        A copy would take more than ``memory`` bytes.
    ValueError
        Its arrays of numbers do not fit each other: compiled loops would read and write wherever these point.
    """
    for part in ("data", "indptr", "indices", "row", "col"):
        mapped_part(getattr(X, part, None), f"{name}.{part}")
    try:
        if X.format == "lil" and any(len(a) != len(b) for a, b in zip(X.rows, X.data)):
            raise ValueError("a row has not as many values as columns")
        if X.format == "bsr" and (X.shape[0] % X.blocksize[0] or X.shape[1] % X.blocksize[1]):
            raise ValueError(f"blocks of shape {X.blocksize} do not fill a matrix of shape {X.shape}")
        _check_parts(X)
        if X.format != "csr":
            _check_copy(_csr_bytes(X), memory, f"{name} is a {X.format.upper()} matrix", f"{name}.tocsr()")
        result = X.tocsr()
        if result is not X:
            _check_parts(result)
    except NoRouteError:
        raise
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        raise ValueError(
            f"{name} is a damaged {X.format.upper()} matrix ({error}); make it anew from its rows, columns and values, "
            "as in scipy.sparse.csr_array((values, (rows, columns)), shape)"
        ) from error
    return result


def _check_parts(X: Any) -> None:
    """Raise ValueError where numbers of rows or columns of a sparse matrix are out of range, or their number is not
    that of the values.

    scipy's own checks are made of a second matrix around the same arrays: they may replace these.
    """
    names = ("indptr", "indices", "row", "col", "offsets")
    if any(getattr(X, name).dtype.kind != "i" for name in names if hasattr(X, name)):
        raise ValueError("rows and columns are not numbered by signed whole numbers")
    if X.format == "dia" and (X.offsets != X.offsets.astype(np.int32)).any():  # scipy would cut it short
        raise ValueError("a diagonal lies beyond 2^31")
    second = getattr(sp, f"{X.format}_array")(X)
    if hasattr(second, "check_format"):
        second.check_format(full_check=True)


class _Blocks:
    """``_from_block`` for blocks of one source, which must have the same names of columns: those of the first."""

    def __init__(self) -> None:
        self.named: Named | None = None

    def __call__(self, X: Any, name: str) -> np.ndarray:
        named, block = named_columns(X), _from_block(plain(X, name), name)
        if self.named is None:
            self.named = named and Named(named.names, *IN_BLOCKS)
        elif named is not None and named.names != self.named.names:
            raise ValueError(
                f"{name} has the columns {listed(map(repr, named.names))}, and the first block has "
                f"{listed(map(repr, self.named.names))}; give each block the same columns in the same order"
            )
        return block


def _from_block(X: Any, name: str) -> np.ndarray:
    """One block of an iterable: an array, sparse matrix, data frame, or table of Arrow's."""
    if sp.issparse(X):
        block = as_csr(X, name).toarray()
    elif is_arrow(X):
        block = from_arrow(X, name)
    else:
        block = from_frame(X, name) if is_frame(X) else _from_array(X, name)
        mapped_part(block, name)
    if block.dtype.kind == "O" and block.ndim == 2:
        block = _from_objects(block, name)
    _check_dtype(block.dtype, name, False)
    if block.ndim == 2:
        _check_range(Rows(block), name)
    return block


def _from_array(X: Any, name: str) -> np.ndarray:
    if isinstance(X, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(X)
        if mask.any():
            place = ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column", "layer"), np.argwhere(mask)[0]))
            raise ValueError(
                f"{name} has {int(np.count_nonzero(mask))} masked entries (first at {place}); "
                f"drop or impute these rows, or pass {name}.data if the values under the mask are meant"
            )
        X = X.data
    if isinstance(X, np.ndarray):
        return X.view(np.ndarray)  # without the habits of subclasses (np.matrix, units), in the same memory
    if isinstance(X, (str, bytes)):
        raise TypeError(f"{name} is a string; give an array (the command line `fastkpca fit FILE` reads files)")
    if isinstance(X, dict) and (names := [key for key in X if isinstance(key, str) and not key.startswith("_")]):
        raise TypeError(f"{name} is of type dict; {_NEED_ARRAY}: one of its entries, as {name}[{names[0]!r}]")
    if isinstance(X, (dict, set, frozenset)) or is_iterator(X):
        raise TypeError(f"{name} is of type {type(X).__name__}; {_NEED_ARRAY}")
    try:
        values = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{name} cannot be made an array: {_ragged(X) or error}") from error
    except Exception as error:  # an object that has __array__ but refuses, as sparse and GPU arrays do
        raise TypeError(f"{name}, of type {type(X).__name__}, cannot be made an array: {error}") from error
    # numpy turns [1, "a"] into strings, and [2**60 + 1, 0.5] into rounded floats: the elements are checked as given
    if isinstance(X, Sequence) and (values.dtype.kind in "USO" or _reaches(values, EXACT)):
        values = np.asarray(X, dtype=object)
    return values


def _reaches(values: np.ndarray, most: float) -> bool:
    """True if a float64 among these is as large, without an array of their sizes."""
    if values.dtype != np.float64:
        return False
    return bool(max(np.fmax.reduce(values, None, initial=0.0), -np.fmin.reduce(values, None, initial=0.0)) >= most)


def _ragged(X: Any) -> str:
    try:
        lengths = [len(row) for row in X]
    except TypeError:
        return ""
    for i, length in enumerate(lengths):
        if length != lengths[0]:
            return f"row {i} has {length} entries where row 0 has {lengths[0]}; all rows need the same length"
    return ""


def check_enough(n: int, *, name: str = "X", at_least: int = 2, purpose: str = "kpca") -> None:
    """Raise ValueError where there are too few rows: ``as_rows`` asks this too, but for rows that it cannot count."""
    if n < at_least:
        hint = ": one row has no variance" if n == 1 else ""
        raise ValueError(f"{name} has {n} row{'s' * (n != 1)}; {purpose} needs at least {at_least}{hint}")


def _way_for_objects(purpose: str) -> str:
    if purpose == "kpca_select":
        return "kpca_select takes rows of numbers alone: fit each kernel on objects by kpca, and compare the models"
    if purpose == "check_kernel" or purpose.startswith("kpca"):
        return (
            "this kernel needs rows of numbers: for objects give as the kernel a function of two lists of them, which "
            "returns the matrix of their values, or a Kernel with takes_objects = True whose block does"
        )
    return (
        f"{purpose} takes rows of numbers: compute the matrix of kernel values, as in K = kernel.block(X, X), and give "
        "it in the place of X with the kernel 'precomputed'"
    )


def _check_shape(source: Any, name: str, at_least: int, purpose: str, array: str = "") -> None:
    """``array``: the user's object as an array that can be reshaped."""
    shape, array = source.shape, array or name
    if len(shape) == 1 and shape[0] and source.dtype.kind in "USTO":
        kind = str if source.dtype.kind == "U" else type(source[0])
        if source.dtype.kind != "O" or kind in _NO_NUMBERS:
            raise TypeError(f"{name} holds objects of type {kind.__name__}; {_way_for_objects(purpose)}")
    if len(shape) == 1:
        if source.dtype.kind == "O" and shape[0] and isinstance(source[0], (np.ndarray, list, tuple)):
            raise ValueError(f"{name} is one column, each entry of which is a row; give np.stack({name})")
        raise ValueError(
            f"{name} has shape {shape}; {purpose} needs two dimensions, (rows, columns): {array}.reshape(-1, 1) if "
            f"these are rows of one number, {array}.reshape(1, -1) if they are one row"
        )
    if len(shape) == 0:
        _refuse_nested(source, name)
        if source.dtype.kind == "O":
            raise TypeError(f"{name} is of type {type(source[()]).__name__}; {_NEED_ARRAY}")
        raise ValueError(f"{name} is a single value; {purpose} needs an array of shape (rows, columns)")
    if len(shape) > 2:
        raise ValueError(
            f"{name} has {len(shape)} dimensions, shape {shape}; {purpose} needs two, (rows, columns): "
            f"{name}.reshape(len({name}), -1) makes one row of each {name}[i]"
        )
    _refuse_nested(source, name)
    n, d = shape
    if d == 0:
        raise ValueError(f"{name} has no columns, shape {tuple(shape)}; {purpose} needs at least one")
    if n == 0:
        raise ValueError(f"{name} has no rows, shape {tuple(shape)}; {purpose} needs at least {at_least}")
    if n < at_least:
        if n == 1:
            raise ValueError(
                f"{name} has 1 row; {purpose} needs at least {at_least}: one row has no variance (if the rows lie "
                f"along the columns, pass {name}.T)"
            )
        check_enough(n, name=name, at_least=at_least, purpose=purpose)


def _check_missing(rows: Rows, labels: list, name: str, purpose: str) -> None:
    """Raise ValueError that names all columns of a data frame that hold NaN or infinity, with how many."""
    if rows.dtype.kind != "f":
        return
    first, counts = not_finite(rows)
    if first is not None:
        word, row, column = first
        columns = listed([f"{labels[j]!r} ({counts[j]})" for j in np.flatnonzero(counts)], 8)
        raise ValueError(
            f"{name} contains {word} (first at row {row}, column {labels[column]!r}); missing by column: {columns}; "
            + instead_of_missing(word, name, purpose)
        )


def _refuse_nested(source: Any, name: str) -> None:
    """Refuse a cell array or a struct as scipy.io.loadmat returns it: arrays, and no rows."""
    first = "0, 0" if source.ndim == 2 else "()"
    fields = source.dtype.names
    if fields and source.dtype[0].kind == "O":
        inner = f"{name}[{fields[0]!r}][{first}]"
    elif source.dtype.kind == "O" and source.size and isinstance(source.flat[0], np.ndarray):
        inner = f"{name}[{first}]"
    else:
        return
    kind = "struct" if fields else "cell array"
    raise TypeError(f"{name} holds arrays, as a {kind} of MATLAB does; {_NEED_ARRAY}: one of those, as {inner}")


def _check_dtype(dtype: np.dtype, name: str, sparse: bool) -> None:
    if dtype.kind in "fiub" or (dtype.kind == "O" and not sparse):
        return
    need = {
        "c": "is complex; kpca works on real numbers: stack the parts, np.hstack([X.real, X.imag])",
        "M": "holds dates (datetime64); turn them into numbers first, as in (X - X.min()) / np.timedelta64(1, 's')",
        "m": "holds durations (timedelta64); turn them into numbers first, as in X / np.timedelta64(1, 's')",
        "U": "holds strings; convert them with X.astype(float), or encode them as numbers",
        "S": "holds byte strings; convert them with X.astype(float), or encode them as numbers",
        "V": f"is a structured array (fields {dtype.names}) of two dimensions; give one of its fields, as "
        f"X[{(dtype.names or ('',))[0]!r}]",
    }
    text = need.get(dtype.kind, f"has the type {dtype}; kpca needs real numbers")
    raise TypeError(f"{name} {text.replace('X', name)}")


def _from_objects(source: np.ndarray, name: str) -> np.ndarray:
    """float64 of an array of Python numbers; the first element that is not one is named."""
    values = np.empty(source.shape)
    for place in np.ndindex(source.shape):
        value = source[place]
        at = f"row {place[0]}, column {place[1]}"
        if not isinstance(value, (numbers.Real, np.bool_, Decimal)) or isinstance(value, np.timedelta64):
            raise TypeError(
                f"{name} contains {value!r} of type {type(value).__name__} (first at {at}); "
                "kpca needs real numbers: convert, drop or impute these"
            )
        try:
            values[place] = value
        except OverflowError:
            raise ValueError(f"{name} contains a number beyond float64's 1.8e308 (first at {at}); rescale it") from None
        if abs(values[place]) >= EXACT and math.isfinite(values[place]) and int(values[place]) != value:
            raise ValueError(
                f"{name} contains {value} (first at {at}), which float64 would round; subtract an offset from its "
                f"column first, or make whole numbers of 64 bits of all, {name}.astype(np.int64)"
            )
    return values


def _check_range(rows: Rows, name: str) -> None:
    """Long doubles that are finite, but not as float64: they would be reported as infinity further on."""
    if rows.dtype.kind != "f" or rows.dtype.itemsize <= 8:
        return
    largest = np.finfo(np.float64).max
    for start in range(0, rows.n_samples, rows.step):
        tile = rows.source[start : start + rows.step]
        tile = tile.toarray() if sp.issparse(tile) else tile
        beyond = np.isfinite(tile) & (np.abs(tile) > largest)
        if beyond.any():
            row, column = np.argwhere(beyond)[0]
            raise ValueError(
                f"{name} contains {tile[row, column]!s} (first at row {start + row}, column {column}), "
                "beyond float64's 1.8e308; rescale it"
            )


def landmark_rows(landmarks: Any, kernel: Kernel, rows: Rows) -> np.ndarray:
    """The rows that are given as landmarks, by number or as they are, in the coordinates of the kernel.

    Raises
    ------
    ValueError, TypeError
        Numbers that are out of range, or rows of other columns.
    """
    given = np.asarray(landmarks)
    if given.ndim == 1 and given.dtype.kind in "iu" and len(given):
        wrong = given[(given < 0) | (given >= rows.n_samples)]
        if len(wrong):
            raise ValueError(f"landmarks has row number {wrong[0]}, and X has rows 0 to {rows.n_samples - 1}")
        return rows.take(given.astype(np.intp))
    if (given.ndim == 1 and given.dtype.names is None) or kernel.by_number:
        raise ValueError("landmarks must be whole numbers of rows of X (at least one), or an array of rows (m, d)")
    other = as_rows(landmarks, name="landmarks")
    check_columns_of(other, rows, name="landmarks")
    check_finite(other, name="landmarks")
    return Rows(other.source, **rows.frame).all()


def different(chosen: np.ndarray) -> np.ndarray:
    """These rows, the same ones once: landmarks span no more when one of them comes again."""
    first = np.unique(chosen, axis=0, return_index=True)[1]
    return chosen if len(first) == len(chosen) else chosen[np.sort(first)]
