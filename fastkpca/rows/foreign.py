"""Adapters to objects of other libraries: frames, Arrow tables, datasets, memory maps, iterables of blocks.

None of these libraries is imported here but pyarrow, for a Parquet file given by its path and for a stream of Arrow's
batches: an object says by its class or by what it offers where it comes from. Objects are asked for their attributes
here, and in ``dask``, alone.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataChangedError
from .columns import listed
from .sources import PAGE_CACHE_BYTES, ChunkedSource, FileSource, SequentialSource, Source, TableSource, page_rows
from .view import MAX_INTEGER, Rows

# Kinds of objects -------------------------------------------------------------------------------------------------


def is_frame(X: Any) -> bool:
    # pandas, polars and their relatives, known by what they offer: none of them is imported here
    return hasattr(X, "columns") and hasattr(X, "dtypes") and (hasattr(X, "to_numpy") or hasattr(X, "__array__"))


def is_series(X: Any) -> bool:
    """One column of a data frame."""
    return any(cls.__name__ == "Series" and _root(cls) in ("pandas", "polars", "modin") for cls in type(X).__mro__)


def is_missing(value: Any) -> bool:
    """True if an object stands for a missing one: None, an ellipsis, NaN, or NA and NaT of pandas."""
    if value is None or value is ... or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return type(value).__name__.startswith(("float", "Decimal")) and bool(value != value)


def is_arrow(X: Any) -> bool:
    """A table or record batch of Arrow's."""
    return hasattr(X, "num_columns") and hasattr(X, "schema")


def is_structured(X: Any) -> bool:
    """An array of records, each with the same named fields."""
    return isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.names is not None


def is_labelled(X: Any) -> bool:
    """An array of xarray's."""
    return hasattr(type(X), "dims") and hasattr(type(X), "coords") and not hasattr(type(X), "data_vars")


def is_lazy(X: Any) -> bool:
    """A query of polars that has not run."""
    return hasattr(type(X), "collect_schema") and not hasattr(type(X), "to_numpy")


def is_stream(X: Any) -> bool:
    """True if the rows come as a stream of Arrow's batches alone, as those of a relation of DuckDB."""
    known = is_frame(X) or is_series(X) or hasattr(type(X), "dims") or bool(_library(X))
    return hasattr(type(X), "__arrow_c_stream__") and not known


def is_iterator(X: Any) -> bool:
    """True if the object can be read once only."""
    return hasattr(X, "__next__") and not hasattr(X, "__array__")


def is_dask(X: Any) -> bool:
    """True if this is a Dask collection."""
    return any(_root(cls) in ("dask", "dask_expr") for cls in type(X).__mro__)


def is_writeable_dataset(X: Any) -> bool:
    """True if the object has a shape and a type and takes values by slice, as a dataset of h5py or zarr."""
    sparse = hasattr(X, "tocsr")
    return not (is_dask(X) or sparse) and all(hasattr(X, x) for x in ("shape", "dtype", "__setitem__", "__getitem__"))


@dataclass(frozen=True)
class Named:
    """Names of the columns of what a user gave as ``X``, and how they are written in its library.

    Attributes
    ----------
    names : tuple of str
    listed, taken : str
        Its list of names, with the argument's name for {0}; and its columns of other names {1}.
    """

    names: tuple[str, ...]
    listed: str = "{0}.columns"
    taken: str = "{0}[list({1})]"


IN_BLOCKS = "{0}.schema.names", "the columns {1} from each block of {0}"
# forms that also take the query that gave the table
_ARROW = "pyarrow.table({0}).schema.names", "pyarrow.table({0}).select(list({1}))"
_POLARS = "{0}.collect_schema().names()", "{0}.select(list({1}))"
_STRUCTURED = "{0}.dtype.names", "{0}[list({1})]"
_XARRAY = "{0}.to_pandas().columns", "{0}.to_pandas()[list({1})]"


def named_columns(X: Any) -> Named | None:
    """Names of the columns of a data frame, a query, an Arrow table, a structured array or a labelled array of
    xarray's, where all of them are strings; else None."""
    found: Any
    written: tuple[str, ...]
    if isinstance(X, Rows):
        return X.named
    if is_structured(X):
        found, written = X.dtype.names, _STRUCTURED
    elif is_arrow(X):
        found, written = X.schema.names, _ARROW
    elif is_labelled(X):
        labels = X.coords.get(X.dims[1]) if len(X.dims) == 2 else None
        found, written = None if labels is None else labels.values.tolist(), _XARRAY
    elif hasattr(type(X), "collect_schema"):  # a LazyFrame warns where it is asked for its columns
        found, written = X.collect_schema().names(), _POLARS
    else:
        found, written = getattr(X, "columns", None), _ARROW if is_stream(X) else ()
    try:
        names = tuple(found)
    except TypeError:
        return None
    return Named(tuple(map(str, names)), *written) if names and all(isinstance(x, str) for x in names) else None


def plain(X: Any, name: str) -> Any:
    """The values of a labelled array, of records, or of what speaks DLPack alone; anything else as it is.

    Raises
    ------
    TypeError
        What holds no rows that numpy can read.
    """
    if hasattr(type(X), "to_dataarray"):
        raise TypeError(
            f"{name} is a Dataset of xarray; give one array, a variable of it, or {name}.to_dataarray('column')"
            ".transpose(..., 'column') where each variable is a column"
        )
    if type(X).__name__ == "mat_struct":
        raise TypeError(f"{name} is a struct of MATLAB; give one of its fields, as {name}.{X._fieldnames[0]}")
    if is_labelled(X):
        return X.data
    if is_structured(X):
        return _from_records(X, name)
    if hasattr(type(X), "__dlpack__") and not hasattr(type(X), "__array__"):
        try:
            return np.from_dlpack(X)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise TypeError(
                f"{name}, of type {type(X).__name__}, cannot be read through DLPack: {error}; copy it to an array of "
                "numpy"
            ) from error
    if is_frame(X) and hasattr(type(X), "infer_objects") and any(str(dtype) == "object" for dtype in X.dtypes):
        return X.infer_objects()  # floats among objects are floats
    return X


def query_parts(X: Any, name: str) -> Generator[Any, None, None]:
    """Parts of the table that a query gives, which runs once: frames of polars or tables of Arrow's. The first has the
    columns and no row."""
    if is_lazy(X):
        yield X.clear().collect()  # by its schema: head(0) may run it
        yield from X.collect_batches() if hasattr(X, "collect_batches") else [X.collect()]
        return
    pyarrow = _pyarrow("pyarrow", f"{name} is of type {type(X).__name__}, and reading its rows")
    with pyarrow.RecordBatchReader.from_stream(X) as reader:  # DuckDB runs one query at a time
        yield reader.schema.empty_table()
        yield from (pyarrow.Table.from_batches([batch]) for batch in reader)


def _pyarrow(module: str, need: str) -> Any:
    """pyarrow, or a module of it; an ImportError begins with what the user gave that ``need``s it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{need} needs pyarrow (pip install pyarrow)") from None


def _from_records(X: np.ndarray, name: str) -> np.ndarray:
    """The fields of a structured array side by side."""
    from numpy.lib.recfunctions import structured_to_unstructured

    fields, dtypes = X.dtype.names or (), [X.dtype[field] for field in X.dtype.names or ()]
    if others := [field for field, dtype in zip(fields, dtypes) if dtype.kind not in "fiub"]:
        numeric = [field for field in fields if field not in others]
        advice = f"take {name}[{numeric}]" if numeric else "give an array of numbers"
        raise TypeError(
            f"{name} is a structured array, and its field {others[0]!r} of type {X.dtype[others[0]]} does not hold one "
            f"number a row; {advice}"
        )
    values = structured_to_unstructured(X)
    if values.dtype.kind == "f":
        for field, dtype in zip(fields, dtypes):
            if dtype.kind in "iu" and dtype.itemsize == 8:
                _check_whole(X[field], name, field, 0)
    return np.asarray(values)


# Frames and tables in memory --------------------------------------------------------------------------------------


def frame_source(X: Any, name: str, most: float) -> Source | None:
    """The rows of a data frame, converted when they are read; None where they are few (a copy takes at most ``most``
    bytes), or lie as those of an array."""
    if len(X.columns) * len(X) * 8 <= min(PAGE_CACHE_BYTES, most) or not (hasattr(X, "iloc") or hasattr(X, "slice")):
        return None
    first = from_frame(_part(X, 0, 1), name)
    if hasattr(X, "iloc") and np.may_share_memory(from_frame(X.iloc[:2], name), X.iloc[:, 0].to_numpy()):
        return None

    # whole numbers of polars are such in parts of a column without nulls only
    nulls = hasattr(X, "null_count") and any(X.null_count().row(0))
    dtype = np.dtype(np.float64) if nulls and first.dtype.kind in "iub" else first.dtype
    return TableSource(
        name, X, dtype, lambda start, stop: from_frame(_part(X, start, stop), name, start, dtype.kind == "f")
    )


def _part(X: Any, start: int, stop: int) -> Any:
    """Some rows of a frame or an Arrow table."""
    return X.iloc[start:stop] if hasattr(X, "iloc") else X.slice(start, stop - start)


def _types(X: Any) -> Iterator[tuple[str, str, bool]]:
    """(name, type, whether it is numeric) of each column of a frame or an Arrow table."""
    if is_arrow(X):
        yield from arrow_types(X.schema)
        return
    for label, dtype in zip(X.columns, X.dtypes):
        # of pandas numpy's types and its own; a category reports the kind of object: its codes have no metric
        of_polars = callable(getattr(dtype, "is_numeric", None))
        numeric = dtype.is_numeric() or str(dtype) == "Boolean" if of_polars else getattr(dtype, "kind", "O") in "fiub"
        yield str(label), str(dtype), numeric


def arrow_types(schema: Any) -> Iterator[tuple[str, str, bool]]:
    """(name, type, whether it is numeric) of each column."""
    for label, word in zip(schema.names, map(str, schema.types)):
        yield label, word, word.startswith(("float", "double", "halffloat", "int", "uint", "bool", "decimal"))


def columns_of_words(X: Any) -> str:
    """Columns of a frame or an Arrow table that are not numeric, and advice; empty where all are."""
    found = [(label, j, word) for j, (label, word, numeric) in enumerate(_types(X)) if not numeric]
    if not found:
        return ""
    several = len(found) > 1
    which = listed((f"{label!r} (number {j}) of type {word}" for label, j, word in found), 8)
    how = "" if is_arrow(X) else " (pandas.to_numeric, one-hot encoding, seconds since a date)"
    them = "them" if several else "it"
    return f"has the column{'s' * several} {which}; kpca needs numbers: convert {them}{how}, or leave {them} out"


def from_frame(X: Any, name: str, start: int = 0, floats: bool = False) -> np.ndarray:
    """An array of these rows, the first of which has the number ``start``; in the frame's memory where it can be. With
    ``floats``, whole numbers become float64."""
    labels, types = [str(label) for label in X.columns], list(X.dtypes)
    words = list(map(str, types))
    of_polars = bool(types) and callable(getattr(types[0], "is_numeric", None))
    if not_numeric := columns_of_words(X):
        raise TypeError(f"{name} {not_numeric}")
    dtype = np.dtype(np.float32 if set(words) == {"Float32" if of_polars else "float32"} else np.float64)
    if not words:
        return np.empty((len(X), 0))
    if any(hasattr(t, "na_value") for t in types):  # pandas' own types: a missing value becomes NaN, found later
        values = X.to_numpy(dtype=dtype, na_value=np.nan)
    elif hasattr(X, "iloc") and "bool" in words and len(set(words)) > 1:  # of these pandas would make objects
        values = X.to_numpy(dtype=dtype)
    else:
        values = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    if values.dtype.kind not in ("f" if floats else "fiub"):
        values = values.astype(dtype)
    if values.dtype.kind == "f":
        for j, word in enumerate(words):
            if "int64" in word.lower():
                _check_whole(values[:, j], name, labels[j], start)
    return values


def like_given(values: np.ndarray, X: Any) -> Any:
    """Rows in the columns of X as X is: in a frame of pandas or polars, or a labelled array of xarray's, with its names
    and its index; the array itself for anything else.

    Floats keep their type, columns that are equal to those of X are those of X, and others are float64.
    """
    if is_labelled(X):
        return X.copy(data=values)
    if not is_frame(X) or is_dask(X) or not (hasattr(X, "iloc") or hasattr(X, "with_columns")):
        return values
    frame = X.copy() if hasattr(X, "copy") else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of modin, that this is slow
        return _with_columns(frame, values, X)


def _with_columns(frame: Any, values: np.ndarray, X: Any) -> Any:
    """A copy of the frame X with these values where they differ from its own."""
    for j, dtype in enumerate(X.dtypes):
        old = X.iloc[:, j] if hasattr(X, "iloc") else X.to_series(j)
        if np.array_equal(old.to_numpy(), values[:, j]):
            continue
        if hasattr(X, "iloc"):
            wide = "Float64" if hasattr(dtype, "na_value") else np.float64
            kept = dtype if getattr(dtype, "kind", "O") == "f" else wide
            frame.isetitem(j, type(old)(values[:, j], index=X.index).astype(kept))
        else:
            new = type(old)(old.name, values[:, j])
            frame = frame.with_columns(new.cast(dtype) if dtype.is_float() else new)
    return frame


def frame_of(values: np.ndarray, scores: Any, names: tuple[str, ...] | None) -> Any:
    """Rows that scores stand for: in a frame with the index of the scores, where these are a frame of pandas or polars
    and the names of the columns are known; else the array."""
    if not is_frame(scores) or is_dask(scores) or names is None:
        return values
    if hasattr(scores, "iloc"):
        return type(scores)(values, index=scores.index, columns=list(names))
    return type(scores)(values, schema=list(names)) if hasattr(scores, "with_columns") else values


def _check_whole(column: np.ndarray, name: str, label: str, start: int) -> None:
    """Refuse whole numbers that float64 cannot hold, in columns that become float64 because of other columns or
    nulls."""
    beyond = np.abs(column.astype(np.float64)) > MAX_INTEGER
    if beyond.any():
        row = start + int(np.argmax(beyond))
        raise ValueError(
            f"{name} has whole numbers beyond 2^53 in the column {label!r} (first at row {row}), "
            "which float64 would round; subtract an offset from that column first, as in x - x[0]"
        )


def from_arrow(X: Any, name: str, start: int = 0) -> np.ndarray:
    """Columns of a table or record batch side by side, whose first row has the number ``start``; what is null becomes
    NaN, found later."""
    columns: list[np.ndarray] = []
    if not_numeric := columns_of_words(X):
        raise TypeError(f"{name} {not_numeric}")
    for label, column in zip(X.schema.names, X.columns):
        word = str(column.type)
        column = column.cast("float64") if word.startswith("decimal") else column
        chunks = hasattr(column, "chunks")
        columns.append(column.to_numpy() if chunks else column.to_numpy(zero_copy_only=False))
        if word.endswith(("int64", ", 0)")):  # sums of whole numbers are decimals in DuckDB
            _check_whole(columns[-1], name, label, start)
    short = {"float": np.float32, "halffloat": np.float16}  # as a frame of them; whole numbers may have nulls
    types = [short.get(str(t), np.float64) for t in X.schema.types]
    block = np.empty((X.num_rows, len(columns)), dtype=np.result_type(*types) if types else np.float64)
    for j, column in enumerate(columns):
        block[:, j] = column
    return block


# Memory maps --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MappedPart:
    """Position of the numbers of an array in the file of a memory map.

    Attributes
    ----------
    path : str, path-like or None
        None where only the mapping holds the file.
    first, low, high : int
        The bytes of the file: of the first number, the least one, and the one after the last. The file of a mapping
        without a path is counted from where it is mapped.
    size : callable
        size() -> bytes that the file has now.
    private : bool
        Numbers may have been changed that the file does not have.
    """

    path: Any
    first: int
    low: int
    high: int
    size: Callable[[], int]
    private: bool

    def check(self, X: np.ndarray, name: str) -> None:
        """Raise DataChangedError where the file is too short by now: to read its numbers would end the process."""
        if (size := self.size()) < self.high:
            raise DataChangedError(
                f"{name} is a memory map of {self.path or 'a file'}, which has {size} bytes now; {self.high} are "
                f"needed for {' x '.join(map(str, X.shape))} numbers of type {X.dtype}"
            )


def mapped_part(X: Any, name: str) -> MappedPart | None:
    """Position of an array in a file, if it is a memory map or any view of one, else None.

    Raises
    ------
    DataChangedError
        The file has been cut short.
    """
    mapped, base = None, X
    while isinstance(base, (np.ndarray, memoryview)):
        mapped = base if isinstance(base, np.memmap) else mapped
        base = base.obj if isinstance(base, memoryview) else base.base
    if base is X or type(base).__name__ != "mmap" or X.size == 0:
        return None
    import mmap

    first = _address(X) - _address(np.frombuffer(base, dtype=np.uint8))
    if mapped is not None:
        first += mapped.offset - mapped.offset % mmap.ALLOCATIONGRANULARITY
    reach = [(n - 1) * step for n, step in zip(X.shape, X.strides)]
    low = first + sum(min(x, 0) for x in reach)
    high = first + sum(max(x, 0) for x in reach) + X.itemsize
    path, private = getattr(mapped, "filename", None), getattr(mapped, "mode", "") == "c"
    part = MappedPart(path, first, low, high, base.size, private)
    part.check(X, name)
    return part


def _address(X: np.ndarray) -> int:
    return X.__array_interface__["data"][0]


def file_source(X: Any, name: str) -> Source | None:
    """The file of an array that is a view of a memory map; None for any other array.

    Raises
    ------
    DataChangedError
        The file has been cut short.
    """
    part = None if X.ndim != 2 or X.dtype.hasobject or sys.platform == "win32" else mapped_part(X, name)
    if part is None:
        return None
    if part.path is not None and not part.private:
        with contextlib.suppress(OSError):  # deleted: the map still holds it
            source = FileSource(name, X, part, os.open(part.path, os.O_RDONLY))
            if source.is_same_file():
                return source
    return FileSource(name, X, part)


# Sources ------------------------------------------------------------------------------------------------------------


def find_source(X: Any, name: str, convert: Callable[[Any, str], np.ndarray]) -> Source | None:
    """The source behind what a user gives; None for what is an array, a matrix or a frame in memory.

    Raises
    ------
    TypeError
        An iterator that can be read once only.
    """
    library = _library(X)
    if isinstance(X, Source):
        return X
    if isinstance(X, np.ndarray):
        return None
    if library in ("h5py", "zarr") and hasattr(X, "dtype") and len(getattr(X, "shape", ())) == 2:
        if 0 in X.shape or np.dtype(X.dtype).kind not in "fiub":
            return None
        return ChunkedSource(name, X, lambda start, stop: X[start:stop])
    if library == "pyarrow" or (isinstance(X, (str, Path)) and str(X).endswith((".parquet", ".pq"))):
        return _arrow_source(X, name, convert)
    if isinstance(X, (list, tuple)) and X and all(isinstance(x, np.ndarray) and x.ndim == 2 for x in X):
        return SequentialSource(name, lambda: iter(X), convert, sum(map(len, X)))
    return _iterable_source(X, name, convert)


def _library(X: Any) -> str:
    """The package that an object's class, or a base of it, comes from."""
    return next((root for root in map(_root, type(X).__mro__) if root in ("h5py", "zarr", "pyarrow")), "")


def _root(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _arrow_source(X: Any, name: str, convert: Callable[[Any, str], np.ndarray]) -> Source:
    if isinstance(X, (str, Path)):
        dataset = _pyarrow("pyarrow.dataset", f"{name} is the path of a Parquet file, and reading one")
        X = dataset.dataset(str(X), format="parquet")
    if hasattr(X, "iter_batches"):  # pyarrow.parquet.ParquetFile
        return SequentialSource(name, lambda: _by_row_groups(X), convert, X.metadata.num_rows)
    if hasattr(X, "get_fragments"):  # pyarrow.dataset.Dataset
        return SequentialSource(name, lambda: arrow_batches(X), convert, X.count_rows())
    if hasattr(X, "count_rows"):  # Scanner
        return SequentialSource(name, X.to_batches, convert, X.count_rows())
    if is_arrow(X) and hasattr(X, "slice"):  # Table, RecordBatch
        if not hasattr(X, "shape"):  # a RecordBatch of pyarrow 15
            import pyarrow

            X = pyarrow.Table.from_batches([X])

        def read(start: int, stop: int) -> np.ndarray:
            return from_arrow(_part(X, start, stop), name, start)

        return TableSource(name, X, read(0, 1).dtype, read)
    raise TypeError(
        f"{name} is of type pyarrow.{type(X).__name__}, which can be read once only or is no table; give a Table, a "
        "ParquetFile or a Dataset"
    )


def _by_row_groups(file: Any) -> Iterator[Any]:
    """The batches of a ``ParquetFile``: asked for all row groups at once it would keep them all."""
    rows = 4 * page_rows(file.metadata.num_columns)  # a few megabytes
    for group in range(file.num_row_groups):
        yield from file.iter_batches(rows, row_groups=[group], use_threads=False)


def arrow_batches(dataset: Any, columns: list[str] | None = None) -> Iterator[Any]:
    """The record batches of a ``pyarrow.dataset.Dataset``, in order, with few of them in memory.

    A scan by Arrow reads ahead of a slow reader by up to 1 GiB, and of Parquet fetches whole files beforehand: so
    Parquet is read file by file, or by row groups where the files are not of the same columns.
    """
    rows = 4 * page_rows(len(dataset.schema.names if columns is None else columns))
    options: dict[str, Any] = {"batch_size": rows, "columns": columns}
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # a filtered dataset does not tell what it is made of
        yield from dataset.to_batches(**options)
        return
    for fragment in fragments:
        if not hasattr(fragment, "row_groups"):
            yield from fragment.to_batches(schema=dataset.schema, **options)
        elif fragment.physical_schema.equals(dataset.schema):
            from pyarrow.parquet import ParquetFile

            groups = [group.id for group in fragment.row_groups]
            with fragment.open() as raw, ParquetFile(raw, pre_buffer=False, buffer_size=8 * rows) as file:
                for batch in file.iter_batches(row_groups=groups, use_threads=False, **options):
                    yield batch if columns is None else batch.select(columns)
        else:
            for group in fragment.split_by_row_group():
                yield from group.to_batches(schema=dataset.schema, **options)


def _iterable_source(X: Any, name: str, convert: Callable[[Any, str], np.ndarray]) -> Source | None:
    if isinstance(X, (str, bytes, dict, set, frozenset, list, tuple, range, memoryview)) or hasattr(X, "__array__"):
        return None
    if hasattr(X, "__next__"):
        raise TypeError(
            f"{name} is of type {type(X).__name__}, which can be read once only; kpca reads the rows several times: "
            f"give a function that returns a new iterator over blocks of rows (for a generator function, {name} "
            "itself without the parentheses), or an object whose __iter__ starts anew"
        )
    if hasattr(X, "columns") and hasattr(X, "dtypes"):  # a frame, even if it has other interfaces
        return None
    if hasattr(X, "__iter__"):
        again: Callable[[], Iterable] = X.__iter__
    elif callable(X) and not isinstance(X, type) and not hasattr(X, "matvec"):  # those of LinearOperators multiply
        again = X
    else:
        return None
    last: list[Any] = [None]

    def start() -> Iterator:
        iterator = again()
        if iterator is last[0]:
            raise TypeError(
                f"{name} returned the same iterator twice; every pass over the rows needs a new one, from the first row"
            )
        last[0] = iterator
        return iter(iterator)

    return SequentialSource(name, start, convert, None)
