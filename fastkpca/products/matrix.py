"""The whole kernel matrix, assembled tile by tile: for small N, where evaluating the kernel once is what counts."""

from __future__ import annotations

import numpy as np

from ..base import parallel
from ..base.protocol import Kernel, NormPass, Summation
from ..rows.view import Rows
from .blocks import TILE, checked_block, squares_about_means, upper_tiles
from .rates import is_compiled
from .vectors import with_ones

__all__ = ["KeptTiles", "MatrixSummation", "check_values", "gram_matrix", "kept_bytes"]


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
        K = checked_block(kernel, X, X)
        if checked:
            check_values(K, kernel)
        return K
    K = np.empty((n, n))

    def task(t: int) -> None:
        I, J = tiles[t]
        left = X[I]
        tile = checked_block(kernel, left, left if I == J else X[J])
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

        parallel.each(task, len(self._bands), n_threads=self.n_threads)
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


def kept_bytes(n: int) -> float:
    """Memory of ``KeptTiles``."""
    return 2.0 * n * (n + TILE)


class KeptTiles(Summation):
    """Products with a symmetric kernel matrix in float32 whose tiles are kept from the first product on: for searching.

    Only the tiles on and above the diagonal. Tiles are multiplied in float32 and added up in float64.

    Parameters
    ----------
    kernel : Kernel
    rows : Rows (N, d)
    K : ndarray (N, N), optional
        The values, where they are known.
    n_threads : int
        Products have the same bits at any number.
    """

    gives_norm = True

    def __init__(self, kernel: Kernel, rows: Rows, K: np.ndarray | None = None, *, n_threads: int = 1):
        n = rows.n_samples
        self.shape, self.n_threads = (n, n), n_threads if kernel.thread_safe else 1
        self._kernel, self._rows, self._K = kernel, rows, K
        self._places = upper_tiles(n, TILE)
        self._kept: list[np.ndarray | None] = [None] * len(self._places)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """K U, shape (N, k), float64; U is rounded to float32."""
        return self._multiply(U)[0]

    def pass_with_norm(self, V: np.ndarray, row_means: np.ndarray, grand_mean: float) -> NormPass:
        """As ``Summation.pass_with_norm``, to the accuracy of float32."""
        product, squares = self._multiply(with_ones(V), row_means, grand_mean)
        return NormPass(product[:, :-1], product[:, -1].copy(), float(squares[0]), float(squares[1]))

    def _multiply(
        self, U: np.ndarray, means: np.ndarray | None = None, grand_mean: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        U = np.ascontiguousarray(U, dtype=np.float32)
        r = None if means is None else means.astype(np.float32)
        product, squares = np.zeros(U.shape), np.zeros(2)

        def task(number: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
            I, J = self._places[number]
            tile = self._tile(number)
            right = None if I == J else tile.T @ U[I]
            sums = None if r is None else _squares(tile, r[I], r[J], grand_mean)
            return tile @ U[J], right, sums

        done = parallel.run(task, len(self._places), n_threads=self.n_threads)
        for (I, J), (left, right, sums) in zip(self._places, done):
            product[I] += left
            if right is not None:
                product[J] += right
            if sums is not None:
                squares += sums * (1.0 if I == J else 2.0)
        return product, squares

    def _tile(self, number: int) -> np.ndarray:
        tile = self._kept[number]
        if tile is None:
            I, J = self._places[number]
            if self._K is not None:
                tile = self._K[I, J].astype(np.float32)
            else:
                X, Y = (self._rows.tile(x.start, x.stop).astype(np.float32) for x in (I, J))
                tile = checked_block(self._kernel, X, Y).astype(np.float32, copy=False)
            self._kept[number] = tile
        return tile


def _squares(tile: np.ndarray, means_x: np.ndarray, means_y: np.ndarray, grand_mean: float) -> np.ndarray:
    """``squares_about_means``, in float64 where the squares leave the range of float32."""
    with np.errstate(over="ignore"):
        sums = squares_about_means(tile, means_x, means_y, grand_mean)
    if np.isfinite(sums).all():
        return sums
    return squares_about_means(tile.astype(np.float64), means_x, means_y, grand_mean)
