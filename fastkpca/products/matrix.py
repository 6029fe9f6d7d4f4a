"""The whole kernel matrix, assembled tile by tile: for small N, where evaluating the kernel once is what counts."""

from __future__ import annotations

import numpy as np

from ..base import parallel
from ..base.protocol import Kernel, NormPass, Summation
from ..rows.view import Rows
from .blocks import checked_block, upper_tiles
from .vectors import with_ones

__all__ = ["MatrixSummation", "gram_matrix"]


def gram_matrix(
    kernel: Kernel, rows: Rows, *, n_threads: int = 1, progress: parallel.Progress | None = None
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
    step = parallel.tile_rows(512)
    tiles = upper_tiles(n, step)
    K = np.empty((n, n))

    def task(t: int) -> None:
        I, J = tiles[t]
        tile = checked_block(kernel, X[I], X[J])
        if not np.isfinite(tile).all():  # here, where it can be named: LAPACK would only fail, or not even that
            row, column = np.argwhere(~np.isfinite(tile))[0]
            raise ValueError(
                f"{kernel!r} is {tile[row, column]} for rows {I.start + row} and {J.start + column}; scale the data "
                "down, or change the kernel's parameters"
            )
        if I == J:  # a kernel from outside may round its two halves differently
            tile = np.tril(tile) + np.tril(tile, -1).T
        K[I, J] = tile
        K[J, I] = tile.T

    for _ in parallel.run(task, len(tiles), n_threads=n_threads, progress=progress, stage="kernel"):
        pass
    return K


class MatrixSummation(Summation):
    """Products with a symmetric kernel matrix that is held whole.

    Parameters
    ----------
    K : ndarray (N, N)
    n_threads : int
        Products have the same bits at any number: rows are cut into bands by N alone.
    """

    gives_norm = True

    def __init__(self, K: np.ndarray, *, n_threads: int = 1):
        self.K = K
        self.shape = (K.shape[0], K.shape[1])
        self.n_threads = n_threads
        step = parallel.tile_rows(1024)
        self._bands = [slice(i, min(len(K), i + step)) for i in range(0, len(K), step)]

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """K U, shape (N, k)."""
        product = np.empty((self.shape[0], U.shape[1]))

        def task(i: int) -> None:
            np.matmul(self.K[self._bands[i]], U, out=product[self._bands[i]])

        for _ in parallel.run(task, len(self._bands), n_threads=self.n_threads):
            pass
        return product

    def pass_with_norm(self, V: np.ndarray, row_means: np.ndarray, grand_mean: float) -> NormPass:
        """As ``Summation.pass_with_norm``."""
        product = self.matmat(with_ones(V))
        centred_square = square = 0.0
        for band in self._bands:
            K = self.K[band]
            centred = K - row_means
            centred -= (row_means[band] - grand_mean)[:, None]
            centred_square += float(np.vdot(centred, centred))
            square += float(np.vdot(K, K))
        return NormPass(product[:, :-1], product[:, -1].copy(), centred_square, square)
