"""The vectors that a product is given, as its loops want them; sums over small matrices."""

from __future__ import annotations

import numpy as np

from .._core.arrays import contiguous


def centre(K: np.ndarray) -> None:
    """Take the means of its columns from a Gram matrix, in place, then those of its rows."""
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]


def columns_of(U: np.ndarray, n: int, *, finite: bool = True) -> np.ndarray:
    """U (n, k) in C order and float64; ValueError for another shape and, where ``finite``, for NaN and infinity."""
    U = contiguous(U, np.float64)
    if U.ndim != 2 or len(U) != n:
        raise ValueError(f"U has shape {U.shape}; ({n}, k) is needed")
    if finite and not np.isfinite(U).all():
        raise ValueError("U contains NaN or infinity")
    return U


def row_sums(K: np.ndarray) -> tuple[np.ndarray, float]:
    """(sums of the rows of a matrix, sum of all squares); squares are added up a few rows at a time, by one thread."""
    step = max(1, (1 << 15) // max(1, len(K)))
    parts = (K[i : i + step] for i in range(0, len(K), step))
    return K.dot(np.ones(K.shape[1])), float(sum(np.vdot(part, part) for part in parts))


def with_ones(V: np.ndarray) -> np.ndarray:
    """(V, 1) in C order, float64: one copy for any order of V."""
    U = np.empty((len(V), V.shape[1] + 1))
    U[:, :-1] = V
    U[:, -1] = 1.0
    return U
