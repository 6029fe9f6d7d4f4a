"""The whole kernel matrix, assembled tile by tile: for the dense route, where N x N fits and LAPACK is fastest."""

from __future__ import annotations

import numpy as np

from .. import execute
from ..protocol import Kernel
from ..rows import Rows
from .exact import checked_block

__all__ = ["gram_matrix"]


def gram_matrix(
    kernel: Kernel, rows: Rows, *, n_threads: int = 1, progress: execute.Progress | None = None
) -> np.ndarray:
    """K (N, N), float64, exactly symmetric: each tile above the diagonal is computed once and written twice.

    Raises
    ------
    PluginError
        A tile has the wrong shape.
    ValueError
        A value is not finite.
    """
    n = rows.n_samples
    X = rows.all()
    step = execute.tile_rows(512)
    starts = range(0, n, step)
    pairs = [(i, j) for i in starts for j in starts if j >= i]
    K = np.empty((n, n))

    def task(t: int) -> None:
        i, j = pairs[t]
        tile = checked_block(kernel, X[i : i + step], X[j : j + step])
        if i == j:  # a kernel from outside may round its two halves differently
            tile = np.tril(tile) + np.tril(tile, -1).T
        K[i : i + step, j : j + step] = tile
        K[j : j + step, i : i + step] = tile.T

    for _ in execute.run(task, len(pairs), n_threads=n_threads, progress=progress, stage="kernel"):
        pass
    return K
