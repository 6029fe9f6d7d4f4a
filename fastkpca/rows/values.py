"""Checks of rows, their weights, and the array for a result."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.checks import check_numbers
from . import foreign
from .sinks import reserve_map
from .view import Rows, refuse_not_finite


def check_finite(rows: Rows, name: str = "X", purpose: str = "kpca_project", *, first: int = 0) -> None:
    """Raise ValueError that names the first row and column of ``rows`` where a value is NaN or infinite; ``first`` is
    the number of the first row."""
    rows = rows.shifted(np.zeros(rows.n_features))  # a first check: rounding is no matter
    for start, tile in rows.tiles(rows.step):
        if not np.isfinite(tile).all():
            refuse_not_finite(tile, first + start, name, purpose)


def complete(rows: Rows, *, some: bool = False) -> np.ndarray:
    """True for rows without missing values (NaN); for those that have ``some`` value."""
    every = np.any if some else np.all
    tiles = rows.shifted(np.zeros(rows.n_features)).tiles(rows.step)
    return np.concatenate([every(~np.isnan(tile), axis=1) for _, tile in tiles])


def not_finite(rows: Rows) -> tuple[tuple[str, int, int] | None, np.ndarray]:
    """(the first value that is NaN or infinite: which of these, its row and column; in how many rows each column has
    such)."""
    first, counts = None, np.zeros(rows.n_features, dtype=np.intp)
    for start, tile in rows.shifted(np.zeros(rows.n_features)).tiles(rows.step):
        wrong = ~np.isfinite(tile)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            first = first or ("NaN" if np.isnan(tile[row, column]) else "infinity", start + int(row), int(column))
            counts += np.count_nonzero(wrong, axis=0)
    return first, counts


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
    foreign.mapped_part(weights, name)
    need = f"{n_samples} numbers, zero or positive, one for each row (0 leaves a row out)"
    w = check_numbers(weights, name, need, (n_samples,))
    if w.min(initial=0.0) < 0.0:
        row = int(np.argmax(w < 0.0))
        raise ValueError(f"{name} contains {w[row]} (first at row {row}); give {need}")
    with np.errstate(over="ignore"):  # refused below
        total, present = float(w.sum()), int(np.count_nonzero(w))
    if not total < 1e100:  # squares of sums and of their products with kernel values must stay within float64
        raise ValueError(f"{name} sums to {total:g}; weights count rows: scale them, as in {name} / {name}.max()")
    if present == 0:
        raise ValueError(f"{name} is zero for every row, so no row counts; give {need}, some of them positive")
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


def check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype, rows: Rows, name: str = "out") -> Any:
    """An output that the result can be written into: an array, memory map, HDF5 or zarr dataset; None stays None.

    A function is called with shape and type, and returns one. The rows themselves are never written to.
    """
    if out is None:
        return None
    if callable(out):
        try:
            out, name = out(shape, np.dtype(dtype)), f"what {name} returned"
        except (OSError, MemoryError):
            raise
        except Exception as error:
            raise TypeError(
                f"{name} raised {type(error).__name__}: {error}; it is called with the shape {shape} and the type "
                f"{np.dtype(dtype)}, and makes the array, as in {name}=np.empty"
            ) from error
    need = f"a writeable array of shape {shape} and type {np.dtype(dtype)}, as np.empty({shape}, {np.dtype(dtype)})"
    plain = isinstance(out, np.ndarray) and not isinstance(out, np.ma.MaskedArray)
    if not plain and (isinstance(out, np.ndarray) or not foreign.is_writeable_dataset(out)):
        dask = foreign.is_dask(out)
        hint = "; a Dask array can't be written to: give the zarr or HDF5 dataset" if dask else ""
        raise TypeError(f"{name} is of type {type(out).__name__}; give {need}{hint}")
    if tuple(out.shape) != shape or out.dtype != dtype:
        raise ValueError(f"{name} has shape {tuple(out.shape)} and type {out.dtype}; give {need}")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError(f"{name} is read-only; give {need}")
    if isinstance(out, np.ndarray) and _overlaps_itself(out):
        raise ValueError(f"{name} has several entries in one place of memory (strides {out.strides}); give {need}")
    if isinstance(out, np.ndarray) and rows.shares_memory(out):
        raise ValueError(f"{name} shares memory with the rows, which would be overwritten; give {need}")
    reserve_map(out)
    return out


def _overlaps_itself(out: np.ndarray) -> bool:
    """True if entries of an array may lie in one place: as a view that was broadcast, or of sliding windows."""
    reach = out.itemsize
    for step, n in sorted((abs(step), n) for step, n in zip(out.strides, out.shape) if n > 1):
        if step < reach:
            return True
        reach += step * (n - 1)
    return False
