"""The whole kernel matrix, assembled tile by tile: for LAPACK."""

from __future__ import annotations

import numpy as np

from ..base import parallel
from ..base.protocol import Kernel
from ..rows.view import Rows
from .blocks import upper_tiles
from .rates import is_compiled


def gram_matrix(
    kernel: Kernel,
    rows: Rows,
    *,
    n_threads: int = 1,
    progress: parallel.Progress | None = None,
    checked: bool = True,
) -> np.ndarray:
    """K (N, N), float64, exactly symmetric: each tile above the diagonal is computed once and written twice.

    ``checked`` False: whether its values are finite, the caller sees, and `check_values`.

    Raises
    ------
    PluginError
        A tile has the wrong shape.
    ValueError
        A value is not finite.
    """
    n = rows.n_samples
    X = rows.all()
    step = parallel.tile_rows(512)
    tiles = upper_tiles(n, step)
    if len(tiles) == 1 and is_compiled(kernel):  # a new array, which is symmetric
        K = kernel.block(X, X)
        if checked:
            check_values(K, kernel)
        return K
    K = np.empty((n, n))

    def task(t: int) -> None:
        I, J = tiles[t]
        left = X[I]
        tile = kernel.block(left, left if I == J else X[J])
        if checked:
            check_values(tile, kernel, I.start, J.start)
        K[I, J] = tile
        if I == J:
            if not np.array_equal(tile, tile.T):  # a kernel may round its two halves differently
                _mirror(K[I, I])
        else:
            K[J, I] = tile.T

    parallel.each(task, len(tiles), n_threads=n_threads, progress=progress, stage="kernel")
    return K


def check_values(tile: np.ndarray, kernel: Kernel, i: int = 0, j: int = 0) -> None:
    """Refuse values that are not finite here, where they can be named: LAPACK would only fail, or not even that."""
    if np.isfinite(tile.sum()) or np.isfinite(tile).all():
        return
    row, column = np.argwhere(~np.isfinite(tile))[0]
    raise ValueError(
        f"{kernel!r} is {tile[row, column]} for rows {i + row} and {j + column}; scale the data down, or change the "
        "kernel's parameters"
    )


def _mirror(K: np.ndarray, step: int = 64) -> None:
    """Write the lower triangle over the upper one, in place."""
    for i in range(0, len(K), step):
        here, below = slice(i, i + step), slice(i + step, None)
        square = K[here, here]
        square[...] = np.tril(square) + np.tril(square, -1).T
        K[here, below] = K[below, here].T
