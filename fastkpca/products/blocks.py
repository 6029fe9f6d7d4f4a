"""Tiles of kernel values from ``Kernel.block``, and the base of every loop over them."""

from __future__ import annotations

import numpy as np

TILE_ROWS = 512
"""Rows and columns of a tile: 2 MB of float64, and few enough calls into Python."""


def upper_tiles(n: int, step: int) -> list[tuple[slice, slice]]:
    """(rows, columns) of the tiles on and above the diagonal of an n x n matrix, row by row."""
    bands = _bands(n, step)
    return [(rows, columns) for i, rows in enumerate(bands) for columns in bands[i:]]


def all_tiles(n: int, m: int, step: int) -> list[tuple[slice, slice]]:
    """(rows, columns) of the tiles of an n x m matrix, row by row."""
    return [(rows, columns) for rows in _bands(n, step) for columns in _bands(m, step)]


def _bands(n: int, step: int) -> list[slice]:
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]


def squares_about_means(
    K: np.ndarray, means_x: np.ndarray, means_y: np.ndarray, grand_mean: float, scale: np.ndarray | None = None
) -> np.ndarray:
    """Sums over a tile of (K_ij - r_i - r_j + g)^2 and of K_ij^2, each number times ``scale`` before it is squared."""
    K = np.asarray(K, dtype=np.float64)  # squares may leave the range of float32
    centred = K - (means_x[:, None] - grand_mean) - means_y
    if scale is not None:
        centred, K = centred * scale, K * scale
    centred, plain = centred.ravel(), K.ravel()
    return np.array([centred @ centred, plain @ plain])
