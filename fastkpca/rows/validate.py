"""Checks of user input; every error says what was found, what is needed, and how to get there.

Two halves: ``as_rows`` and what belongs to it turn whatever a user holds into ``rows.Rows`` without copying what can
be read in place; the ``check_*`` functions return an argument in the one form that the rest of the library uses.
"""

from __future__ import annotations

import math
import numbers
import operator
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base import parallel
from ..errors import with_near
from .dask import dask_source
from .sources import find_source, reserve_map
from .view import EXACT, Rows

__all__ = [
    "as_rows",
    "check_c",
    "check_choice",
    "check_columns",
    "check_count",
    "check_enough",
    "check_finite",
    "check_flag",
    "check_memory_limit",
    "check_name",
    "check_names",
    "check_out",
    "check_rng",
    "check_tol",
    "check_weights",
    "column_names",
]


# Rows -----------------------------------------------------------------------------------------------------------

_NEED_ARRAY = "give an array, sparse matrix or data frame of shape (rows, columns)"


def as_rows(X: Any, *, name: str = "X", at_least: int = 1, purpose: str = "kpca") -> Rows:
    """Rows of numbers from an array, sparse matrix, data frame or nested sequence, or from what is not in memory.

    Arrays, memory maps and CSR matrices are read in place, tile by tile, whatever their byte order, strides or type,
    and so are HDF5 and zarr datasets, Parquet, Dask collections and iterables of blocks (``sources``); nothing is ever
    written to. Integers of 64 bits and long doubles keep all their digits until a shift has been subtracted
    (``rows.Rows``); other numbers become float64 here, and whole numbers that it would round are refused. NaN and
    infinity are left to the pass that reads the values (``rows.summarize``,
    ``check_finite``).

    Parameters
    ----------
    X : array-like, shape (n_samples, n_features)
    name : str
        What the caller's user knows X as.
    at_least : int
        Fewest rows that make sense: 2 to fit, 1 to project.
    purpose : str
        The function that needs the rows; errors name it.

    Returns
    -------
    Rows

    Raises
    ------
    TypeError
        The values are not real numbers (complex, dates, strings, objects, None).
    ValueError
        The shape is not (rows, columns), rows are missing or masked, or a value exceeds float64.
    """
    if X is None:
        raise TypeError(f"{name} is None; {_NEED_ARRAY}")
    source: Any
    if sp.issparse(X):
        source = X.tocsr() if X.ndim == 2 else X
    elif (source := dask_source(X, name, _from_block)) is not None or (
        source := find_source(X, name, _from_block)
    ) is not None:
        _check_dtype(source.dtype, name, False)
        if getattr(source, "counted", True) or at_least > 2:
            _check_shape(source, name, at_least, purpose)
        return Rows(source)
    elif _is_frame(X):
        source = _from_frame(X, name)
    else:
        source = _from_array(X, name)
    _check_shape(source, name, at_least, purpose)
    _check_dtype(source.dtype, name, sp.issparse(source))
    if source.dtype.kind == "O":
        source = _from_objects(source, name)
    if source.dtype.kind == "f" and source.dtype.itemsize > 8:
        _check_range(source, name)
    return Rows(source)


def _is_frame(X: Any) -> bool:
    # pandas, polars and their relatives, known by what they offer: none of them is imported here
    return hasattr(X, "columns") and hasattr(X, "dtypes") and (hasattr(X, "to_numpy") or hasattr(X, "__array__"))


def _from_frame(X: Any, name: str) -> np.ndarray:
    labels = [str(label) for label in X.columns]
    kinds = []
    for j, (label, dtype) in enumerate(zip(labels, X.dtypes)):
        numeric = getattr(dtype, "is_numeric", None)
        if callable(numeric):  # polars
            word = str(dtype)
            accepted = bool(numeric()) or word == "Boolean"
            kinds.append("single" if word == "Float32" else "other")
        else:  # pandas: numpy's types and its own, nullable and sparse ones
            word = str(dtype)
            # a category reports the kind of object; its codes have no metric
            accepted = getattr(dtype, "kind", "O") in "fiub"
            kinds.append("single" if word == "float32" else "other")
        if not accepted:
            raise TypeError(
                f"{name} has the column {label!r} (number {j}) of type {word}; kpca needs numbers: convert it "
                f"(pandas.to_numeric, one-hot encoding, seconds since a date), or leave it out"
            )
    dtype = np.dtype(np.float32 if kinds and set(kinds) == {"single"} else np.float64)
    if not kinds:
        return np.empty((len(X), 0))
    if any(hasattr(t, "na_value") for t in X.dtypes):  # pandas' own types: a missing value becomes NaN, found later
        values = X.to_numpy(dtype=dtype, na_value=np.nan)
    else:
        values = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    if values.dtype.kind == "f":
        for j, word in enumerate(map(str, X.dtypes)):
            if "int64" in word.lower():
                _check_whole(values[:, j], name, labels[j])
    return values if values.dtype.kind in "fiub" else values.astype(dtype)


def _check_whole(column: np.ndarray, name: str, label: str) -> None:
    """Whole numbers that become float64 beside other columns, or nulls, must be such as it holds."""
    beyond = np.abs(column.astype(np.float64)) > EXACT
    if beyond.any():
        raise ValueError(
            f"{name} has whole numbers beyond 2^53 in the column {label!r} (first at row {int(np.argmax(beyond))}), "
            "which float64 would round; subtract an offset from that column first, as in x - x[0]"
        )


def _from_block(X: Any, name: str) -> np.ndarray:
    """One block of an iterable: an array, sparse matrix, data frame, or table of Arrow's."""
    if isinstance(X, np.ndarray):
        block = _from_array(X, name)
    elif sp.issparse(X):
        block = X.toarray()
    elif hasattr(X, "num_columns") and hasattr(X, "schema"):
        block = _from_arrow(X, name)
    elif _is_frame(X):
        block = _from_frame(X, name)
    else:
        block = _from_array(X, name)
    if block.dtype.kind == "O" and block.ndim == 2:
        block = _from_objects(block, name)
    _check_dtype(block.dtype, name, False)
    if block.dtype.kind == "f" and block.dtype.itemsize > 8 and block.ndim == 2:
        _check_range(block, name)
    return block


def _from_arrow(X: Any, name: str) -> np.ndarray:
    """Columns of a table or record batch side by side; what is null becomes NaN, found later."""
    columns: list[np.ndarray] = []
    for label, column in zip(X.schema.names, X.columns):
        word = str(column.type)
        if not word.startswith(("float", "double", "halffloat", "int", "uint", "bool")):
            raise TypeError(
                f"{name} has the column {label!r} (number {len(columns)}) of type {word}; kpca needs numbers: convert "
                "it, or leave it out"
            )
        chunks = hasattr(column, "chunks")
        columns.append(column.to_numpy() if chunks else column.to_numpy(zero_copy_only=False))
        if word.endswith("int64"):
            _check_whole(columns[-1], name, label)
    short = {"float": np.float32, "halffloat": np.float16}  # as a frame of them; whole numbers may have nulls
    types = [short.get(str(t), np.float64) for t in X.schema.types]
    block = np.empty((X.num_rows, len(columns)), dtype=np.result_type(*types) if types else np.float64)
    for j, column in enumerate(columns):
        block[:, j] = column
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
    if isinstance(X, (dict, set, frozenset)) or (hasattr(X, "__next__") and not hasattr(X, "__array__")):
        raise TypeError(f"{name} is of type {type(X).__name__}; {_NEED_ARRAY}")
    try:
        values = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{name} cannot be made an array: {_ragged(X) or error}") from error
    except Exception as error:  # an object that has __array__ but refuses, as sparse and GPU arrays do
        raise TypeError(f"{name}, of type {type(X).__name__}, cannot be made an array: {error}") from error
    # numpy turns [1, "a"] into strings, and [2**60 + 1, 0.5] into rounded floats: look at the elements as given
    mixed = values.dtype == np.float64 and (np.abs(values) >= EXACT).any()
    if (values.dtype.kind in "USO" or mixed) and isinstance(X, Sequence):
        values = np.asarray(X, dtype=object)
    return values


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
    """Of rows that were counted after ``as_rows`` only."""
    if n < at_least:
        hint = ": one row has no variance" if n == 1 else ""
        raise ValueError(f"{name} has {n} row{'s' * (n != 1)}; {purpose} needs at least {at_least}{hint}")


def _check_shape(source: Any, name: str, at_least: int, purpose: str) -> None:
    shape = source.shape
    if len(shape) == 1:
        raise ValueError(
            f"{name} has shape {shape}; {purpose} needs two dimensions, (rows, columns): {name}.reshape(-1, 1) if "
            f"these are rows of one number, {name}.reshape(1, -1) if they are one row"
        )
    if len(shape) == 0:
        if source.dtype.kind == "O":
            raise TypeError(f"{name} is of type {type(source[()]).__name__}; {_NEED_ARRAY}")
        raise ValueError(f"{name} is a single value; {purpose} needs an array of shape (rows, columns)")
    if len(shape) > 2:
        raise ValueError(
            f"{name} has {len(shape)} dimensions, shape {shape}; {purpose} needs two, (rows, columns): "
            f"{name}.reshape(len({name}), -1) makes one row of each {name}[i]"
        )
    n, d = shape
    if d == 0:
        raise ValueError(f"{name} has no columns, shape {tuple(shape)}; {purpose} needs at least one")
    if n == 0:
        raise ValueError(f"{name} has no rows, shape {tuple(shape)}; {purpose} needs at least {at_least}")
    if n < at_least:
        if n == 1:
            _refuse_nested(source, name)
            raise ValueError(
                f"{name} has 1 row; {purpose} needs at least {at_least}: one row has no variance (if the rows lie "
                f"along the columns, pass {name}.T)"
            )
        check_enough(n, name=name, at_least=at_least, purpose=purpose)


def _refuse_nested(source: Any, name: str) -> None:
    """A cell array or a struct as scipy.io.loadmat returns it: one row of arrays, but not one row too few."""
    if fields := source.dtype.names:
        inner = f"{name}[{fields[0]!r}][0, 0]"
    elif source.dtype.kind == "O" and isinstance(source[0, 0], np.ndarray):
        inner = f"{name}[0, 0]"
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
        "V": f"is a structured array (fields {dtype.names}); numpy.lib.recfunctions.structured_to_unstructured makes "
        "columns of its fields",
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


def _check_range(source: Any, name: str) -> None:
    """Long doubles that are finite, but not as float64: they would be reported as infinity further on."""
    largest = np.finfo(np.float64).max
    step = parallel.tile_rows(2 * source.shape[1])
    for start in range(0, source.shape[0], step):
        tile = source[start : start + step]
        tile = tile.toarray() if sp.issparse(tile) else tile
        beyond = np.isfinite(tile) & (np.abs(tile) > largest)
        if beyond.any():
            row, column = np.argwhere(beyond)[0]
            raise ValueError(
                f"{name} contains {tile[row, column]!s} (first at row {start + row}, column {column}), "
                "beyond float64's 1.8e308; rescale it"
            )


def check_finite(rows: Rows, name: str = "X", purpose: str = "kpca_project", *, first: int = 0) -> None:
    """Raise ValueError that names the first row and column of ``rows`` where a value is NaN or infinite; ``first`` is
    the number of the first row."""
    rows = rows.shifted(np.zeros(rows.n_features))  # a look: rounding is no matter
    for start, tile in rows.tiles(parallel.tile_rows(2 * rows.n_features)):
        finite = np.isfinite(tile)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            word = "NaN" if np.isnan(tile[row, column]) else "infinity"
            raise ValueError(
                f"{name} contains {word} (first at row {first + start + row}, column {column}); "
                f"drop or impute these rows before {purpose}"
            )


def check_weights(weights: Any, n_samples: int, name: str = "sample_weight", *, fit: bool = True) -> np.ndarray | None:
    """Weights of the rows, (N,), non-negative; None stays None. A memory map is read in place.

    Raises
    ------
    TypeError, ValueError
        They are not N finite numbers >= 0, or sum to 1e100 or more; or, to ``fit``, all but one are zero or they sum to
        no more than 1.
    """
    if weights is None:
        return None
    need = f"give {n_samples} numbers, zero or positive, one for each row"
    if isinstance(weights, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(weights)
        if mask.any():
            raise ValueError(
                f"{name} has {int(np.count_nonzero(mask))} masked entries (first at row {int(np.argmax(mask))}); "
                f"{need}: {name}.filled(0) leaves these rows out"
            )
        weights = weights.data
    try:
        w = weights if isinstance(weights, np.ndarray) else np.asarray(weights)
    except ValueError as error:
        raise ValueError(f"{name} cannot be made an array ({error}); {need}") from error
    if w.dtype.kind not in "fiub":
        raise TypeError(f"{name} has the type {w.dtype}; {need}")
    if w.shape != (n_samples,):
        raise ValueError(f"{name} has shape {w.shape}; {need}")
    step, total, present = 1 << 16, 0.0, 0
    for start in range(0, n_samples, step):
        part = np.asarray(w[start : start + step], dtype=np.float64)
        wrong = ~(np.isfinite(part) & (part >= 0))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"{name} contains {part[row]} (first at row {start + row}); {need}")
        with np.errstate(over="ignore"):  # refused below
            total += float(part.sum())
        present += int(np.count_nonzero(part))
    if not total < 1e100:  # squares of sums and of their products with kernel values must stay within float64
        raise ValueError(f"{name} sums to {total:g}; weights count rows: scale them, as in {name} / {name}.max()")
    if present == 0:
        raise ValueError(f"{name} is zero for every row, so no row counts; {need}, some of them positive")
    if not fit:
        return w
    if present < 2:
        raise ValueError(f"{name} leaves {present} rows of positive weight; kpca needs at least 2")
    if not total > 1.0 + 1e-9:
        raise ValueError(
            f"{name} sums to {total:g}; weights count rows, and variances divide by their sum minus 1: scale them, as "
            f"in {name} * (N / {name}.sum())"
        )
    return w


def check_columns(n_features: int, found: int, name: str = "X") -> None:
    """Raise ValueError unless new rows have as many columns as those that the model was fitted on."""
    if found != n_features:
        hint = f"; {name} may be transposed" if found == 1 else ""
        raise ValueError(
            f"{name} has {found} column{'s' * (found != 1)}, the model was fitted on {n_features}; "
            f"give the same columns in the same order{hint}"
        )


def column_names(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a data frame or an Arrow table, where all of them are strings; else None."""
    found = getattr(X, "column_names", None) if hasattr(X, "num_columns") else getattr(X, "columns", None)
    try:
        names = tuple(found)  # type: ignore[arg-type]
    except TypeError:
        return None
    return tuple(map(str, names)) if names and all(isinstance(name, str) for name in names) else None


def check_names(expected: tuple[str, ...] | None, X: Any, name: str = "X") -> None:
    """Raise ValueError where the columns of new rows are named otherwise than those that the model was fitted on.

    Rows without names, and a model of such, are taken as they come.
    """
    found = column_names(X)
    if expected is None or found is None or found == expected:
        return
    order = f"take {name}[list(model.feature_names)]"
    if sorted(found) == sorted(expected):
        first = next(i for i, (a, b) in enumerate(zip(found, expected)) if a != b)
        raise ValueError(
            f"{name} has the columns that the model was fitted on in another order (first at column {first}: "
            f"{found[first]!r}, fitted on {expected[first]!r}); {order}"
        )
    missing = [x for x in expected if x not in found]
    others = [x for x in found if x not in expected]
    text = [f"lacks {_listed(missing)}"] * bool(missing) + [f"has {_listed(others)} besides"] * bool(others)
    raise ValueError(
        f"{name} {' and '.join(text) or 'repeats columns'}: the model was fitted on other columns; {order}, or rows "
        "without names where these are the same columns"
    )


def _listed(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


# Arguments ------------------------------------------------------------------------------------------------------


def _whole(value: Any) -> int | None:
    """An int from anything that is a whole number and not a truth value, else None."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        pass
    if isinstance(value, numbers.Real) and math.isfinite(value) and float(value).is_integer():
        return int(float(value))
    return None


def _real(value: Any, name: str, need: str) -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        shown = repr(value)  # a whole array, perhaps
        shown = shown if len(shown) <= 60 else f"of type {type(value).__name__}"
        raise TypeError(f"{name} is {shown}; give {need}")
    if math.isnan(value):
        raise ValueError(f"{name} is nan; give {need}")
    return float(value)


def check_c(c: Any, n_samples: int) -> int | float | None:
    """How many components: an int in 1..n_samples, a fraction of the variance in (0, 1), or None for all.

    Raises
    ------
    TypeError, ValueError
        Anything else; 1.0 is refused because it may mean one component or all of the variance.
    """
    if c is None:
        return None
    need = "a whole number of components (c=5), a fraction of the variance between 0 and 1 (c=0.95), or None for all"
    if isinstance(c, (bool, np.bool_)):
        raise TypeError(f"c is {c!r}, a truth value; give {need}")
    try:
        whole: int | None = operator.index(c)
    except TypeError:
        value = _real(c, "c", need)
        if value == 1.0:
            raise ValueError(
                "c is 1.0, which may mean one component or 100 % of the variance; "
                "give c=1 for one component, c=None for all"
            ) from None
        if 0.0 < value < 1.0:
            return value
        whole = _whole(value)
    if whole is None:
        raise ValueError(f"c is {c!r}; give {need}")
    if whole < 1:
        raise ValueError(f"c is {c!r}; give {need}, at least one component")
    if whole > n_samples:
        raise ValueError(
            f"c is {whole}, but X has {n_samples} rows, which give at most {n_samples} components; "
            f"give c of at most {n_samples}, or None for all"
        )
    return whole


def check_count(value: Any, name: str, least: int = 1) -> int:
    """A whole number of at least ``least``."""
    need = f"a whole number, {least} or more"
    whole = _whole(value)
    if whole is None:
        raise TypeError(f"{name} is {value!r}; give {need}")
    if whole < least:
        raise ValueError(f"{name} is {whole}; give {need}")
    return whole


def check_tol(tol: Any, name: str = "tol") -> float:
    """A relative accuracy, 1e-100 <= tol < 1: products and quotients of smaller ones leave the range of float64."""
    need = "a number between 0 and 1, as in 1e-6: the width of the eigenvalue intervals relative to the largest"
    value = _real(tol, name, need)
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} is {tol!r}; give {need}")
    if value < 1e-100:
        raise ValueError(f"{name} is {tol!r}; give 1e-100 or more: float64 reaches nothing below about 1e-15")
    return value


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


def check_memory_limit(limit: Any) -> int | None:
    """Bytes from a number of bytes or a text like "500MB" (10^6) or "2GiB" (2^30); None stays None, the plan's own."""
    need = 'bytes as a whole number, or a text like "500MB" or "2GiB"'
    if limit is None:
        return None
    if isinstance(limit, str):
        match = _SIZE.fullmatch(limit)
        if not match:
            raise ValueError(f"memory_limit is {limit!r}; give {need}")
        size = int(float(match[1]) * _UNITS[(match[2] or "").lower()])
    else:
        whole = _whole(limit)
        if whole is None:
            raise TypeError(f"memory_limit is {limit!r}; give {need}")
        size = whole
    if size < 1:
        raise ValueError(f"memory_limit is {limit!r}; give {need}, more than nothing")
    return size


def check_rng(rng: Any) -> np.random.Generator:
    """A Generator as SPEC 7 has it: from None (fresh entropy), an int, a SeedSequence or bit generator, or itself."""
    need = "an int, a numpy.random.Generator or SeedSequence, or None for a different result every time"
    if isinstance(rng, (bool, np.bool_)) or not (
        rng is None
        or isinstance(rng, (np.random.Generator, np.random.SeedSequence, np.random.BitGenerator))
        or hasattr(rng, "__index__")
        or (isinstance(rng, Sequence) and not isinstance(rng, (str, bytes)))
    ):
        hint = "; numpy.random.default_rng(seed) replaces RandomState" if "RandomState" in type(rng).__name__ else ""
        raise TypeError(f"rng is {rng!r}; give {need}{hint}")
    try:
        return np.random.default_rng(rng)
    except (ValueError, TypeError) as error:
        raise type(error)(f"rng is {rng!r} ({error}); give {need}") from error


def check_name(value: object, argument: str, needed: str) -> None:
    """Raise TypeError for a name that is no string; ``needed`` says what to give."""
    if not isinstance(value, str):
        raise TypeError(f"{argument} is {value!r}; give {needed}")


def check_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """One of a few words."""
    if isinstance(value, str) and value in choices:
        return value
    text = f"{name} is {value!r}; give one of {', '.join(map(repr, choices))}"
    if not isinstance(value, str):
        raise TypeError(text)
    raise ValueError(with_near(text, value, choices))


def check_flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}; give True or False")
    return bool(value)


def check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype, rows: Rows, name: str = "out") -> Any:
    """What the result can be written into as it is: an array, memory map, HDF5 or zarr dataset; None stays None.

    A function is called with shape and type, and returns one. The rows themselves are never written to.
    """
    if out is None:
        return None
    if callable(out):
        out, name = out(shape, np.dtype(dtype)), f"what {name} returned"
    need = f"a writeable array of shape {shape} and type {np.dtype(dtype)}, as np.empty({shape}, {np.dtype(dtype)})"
    dataset = all(hasattr(out, x) for x in ("shape", "dtype", "__setitem__", "__getitem__"))
    if not isinstance(out, np.ndarray) and (not dataset or hasattr(out, "dask")):
        hint = "; a Dask array can't be written to: give the zarr or HDF5 dataset" if hasattr(out, "dask") else ""
        raise TypeError(f"{name} is of type {type(out).__name__}; give {need}{hint}")
    if tuple(out.shape) != shape or out.dtype != dtype:
        raise ValueError(f"{name} has shape {tuple(out.shape)} and type {out.dtype}; give {need}")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError(f"{name} is read-only; give {need}")
    held = getattr(rows.source, "mapped", rows.source)
    if isinstance(out, np.ndarray) and isinstance(held, np.ndarray) and np.shares_memory(out, held):
        raise ValueError(f"{name} shares memory with the rows, which would be overwritten; give {need}")
    reserve_map(out)
    return out
