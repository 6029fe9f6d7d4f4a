"""The vectors that a product is given, as its loops want them; loops over them and over small matrices."""

from __future__ import annotations

import numpy as np

from .._core.symmetric import centre_single, row_sums, signs
from .._core.tiles import add_tall_product, panel_rows, tall_inner

__all__ = [
    "add_tall_product",
    "aligned",
    "aligned_columns",
    "aligned_pair",
    "centre_single",
    "columns_of",
    "row_sums",
    "signs",
    "tall_inner",
    "tall_product",
    "with_ones",
]

LINE = 64
"""Bytes of a line of the cache, and of the widest vectors."""
LARGE_PAGE = 1 << 21
"""Bytes of a large page of memory, where there are such pages."""
LARGEST_IN_HEAP = 1 << 25
"""Bytes of a block that glibc always gives back to the system: the next one is new, and is cleared page by page."""


def aligned(count: int, dtype: type[np.floating]) -> np.ndarray:
    """An array of so many numbers, not set, that begins with a line of the cache: no vector of it lies on two.

    Of many numbers it begins with a large page: each of these costs the system a fifth of what its small ones would,
    and numpy asks for them from 4 MB on. What is before it is never touched.
    """
    size = np.dtype(dtype).itemsize
    line = LARGE_PAGE if count * size >= 2 * LARGE_PAGE else LINE
    room = np.empty(count + line // size, dtype=dtype)
    start = -room.ctypes.data % line // size
    return room[start : start + count]


def aligned_pair(count: int, dtype: type[np.floating]) -> tuple[np.ndarray, np.ndarray]:
    """Two such arrays: one block, of which fewer pages are small, where the next call finds it in the heap again."""
    both = 2 * count * np.dtype(dtype).itemsize
    if both + LARGE_PAGE > LARGEST_IN_HEAP:
        return aligned(count, dtype), aligned(count, dtype)
    block = aligned(2 * count, dtype)
    return block[:count], block[count:]


def aligned_columns(n: int, columns: int) -> np.ndarray:
    """An array (n, columns) of float64, not set, column by column, each of which begins with a line of the cache."""
    length = -(-n * 8 // LINE) * LINE // 8
    return aligned(columns * length, np.float64).reshape(columns, length)[:, :n].T


def columns_of(U: np.ndarray, n: int, *, finite: bool = True) -> np.ndarray:
    """U (n, k) in C order and float64; ValueError for another shape and, where ``finite``, for NaN and infinity."""
    U = np.ascontiguousarray(U, dtype=np.float64)
    if U.ndim != 2 or len(U) != n:
        raise ValueError(f"U has shape {U.shape}; ({n}, k) is needed")
    if finite and not np.isfinite(U).all():
        raise ValueError("U contains NaN or infinity")
    return U


def tall_product(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    """A B, for ``A`` and ``out`` of many rows, column by column; no array of that size is made."""
    if panel_rows():  # own loops, which add
        out[...] = 0.0
        add_tall_product(A, B, out)
    else:
        np.matmul(B.T, A.T, out=out.T)


def with_ones(V: np.ndarray) -> np.ndarray:
    """V and a column of ones beside it, C order, float64: one copy, whatever the order of V."""
    U = np.empty((len(V), V.shape[1] + 1))
    U[:, :-1] = V
    U[:, -1] = 1.0
    return U
