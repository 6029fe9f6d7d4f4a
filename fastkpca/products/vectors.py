"""The vectors that a product is given, as its loops want them; sums over small matrices."""

from __future__ import annotations

import numpy as np

__all__ = [
    "aligned",
    "aligned_columns",
    "aligned_pair",
    "columns_of",
    "row_sums",
    "signs",
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


def row_sums(K: np.ndarray) -> tuple[np.ndarray, float]:
    """(sums of the rows of a matrix, sum of all squares); squares are added up row by row."""
    return K.sum(axis=1), float(np.einsum("ij,ij->i", K, K).sum())


def signs(V: np.ndarray) -> np.ndarray:
    """(k,): those that make the largest |number| of each column of V (n, k) positive; of near-ties, the first counts.

    1 for a column of zeros, and for one that is not finite.
    """
    if not V.size:
        return np.ones(V.shape[1])
    sizes = np.abs(V)
    first = (sizes >= (1.0 - 1e-6) * sizes.max(axis=0)).argmax(axis=0)
    return np.where(V[first, np.arange(V.shape[1])] < 0.0, -1.0, 1.0)


def with_ones(V: np.ndarray) -> np.ndarray:
    """V and a column of ones beside it, C order, float64: one copy, whatever the order of V."""
    U = np.empty((len(V), V.shape[1] + 1))
    U[:, :-1] = V
    U[:, -1] = 1.0
    return U
