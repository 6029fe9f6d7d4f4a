"""Exact products with the kernel matrix, tile by tile: nothing of size N x N is ever held.

The rows are cut into bands by the number of rows alone. A task is a pair of bands, and returns what its tiles add to
the product's two bands; the tasks' results are added in the order of their numbers, whatever the number of threads,
so that a product has the same bits at any. In the square case the task (I, J), I < J, serves both
V_I += K_IJ U_J and V_J += K_IJ' U_I.

Memory beside the rows and the product: a few bands of rows and columns for each thread (at most 2048 rows each; no
copy of the product for each thread).

How a kernel comes by the compiled walk: where it defines ``compiled_tile()`` and that returns (kind, parameters), the
tiles are those of ``fastkpca._core.tiles`` and the whole of a task runs without the GIL. kind and the names in
parameters are "linear" {}, "polynomial" {scale, offset, degree: int >= 1}, "gaussian" {sigma}, "tanh"
{scale, offset}. Where it returns None, or is absent, tiles come from ``block``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

import numpy as np

from .._core import tiles as _tiles
from ..base import parallel
from ..base.protocol import Kernel, NormPass, Summation
from ..rows.view import Rows
from .blocks import TILE, checked_block, squares_about_means, upper_tiles
from .vectors import columns_of, with_ones

__all__ = ["ExactSummation", "band_rows", "kept_bytes", "sum_terms"]

MEAN_ROWS = 64
"""Rows that tell the mean of all values, and as many others."""
MOST_WORK = 1 << 32
"""Multiplications of a task: a quarter of a second."""
Means = tuple[np.ndarray, np.ndarray, float]
"""Row means of the two bands of a task, and the grand mean: the squares about them are wanted too."""
_Part = tuple[np.ndarray | None, np.ndarray | None, tuple[float, float] | None]
"""K Uy, K' Ux, and the sums of squares about the means and of the values themselves."""
_Pair = Callable[..., _Part]
"""(X, Y, Ux, Uy, means) -> _Part for a pair of bands; Y and Uy None: the rows of X with themselves. Compiled ones take
four more, ``kept``, ``known``, ``low`` and ``shift``, as ``tiles.product`` does."""


def band_rows(n: int, d: int) -> int:
    """Rows of a band, by the shape alone: large enough to hide the cost of a task, several to a small problem, and few
    enough that a task takes a fraction of a second where rows are long: nothing interrupts it."""
    rows = 2048 if n > 16384 else 1024 if n > 4096 else 512
    while rows > 256 and rows * rows * d > MOST_WORK:
        rows //= 2
    return rows


def sum_terms(n: int, d: int) -> float:
    """Additions that a term of a sum over n rows sees, at most: those of its tile, the tiles of its band, the bands.

    The error of the sum is at most so many unit roundoffs of sum |terms|, in the worst case: rows that are all equal
    round alike, and the square root of so many would not do. Bands elsewhere may be longer (1 / 16 of the rows).
    """
    return min(float(n), TILE + n / band_rows(n, d) + n / (16.0 * 192.0) + 32.0) + 2.0


def _ends_of_tiles(tiles: list[tuple[slice, slice]]) -> list[int]:
    """Where the values of each pair of bands begin in one array of all that are kept, and its length."""
    lengths = (_tiles.kept_entries(I.stop - I.start, J.stop - J.start, I == J) for I, J in tiles)
    return list(accumulate(lengths, initial=0))


def kept_bytes(n: int, d: int, itemsize: int) -> float:
    """Memory of the values that an ``ExactSummation`` of n rows of d numbers keeps."""
    step = band_rows(n, d)
    full, rest = divmod(n, step)
    entries = full * _tiles.kept_entries(step, step, True)
    entries += full * (full - 1) // 2 * _tiles.kept_entries(step, step, False)
    if rest:
        entries += full * _tiles.kept_entries(step, rest, False) + _tiles.kept_entries(rest, rest, True)
    return float(itemsize * entries)


def _compiled_pair(kind: str, parameters: dict[str, Any], single: bool) -> _Pair:
    def pair(
        X: np.ndarray,
        Y: np.ndarray | None,
        Ux: np.ndarray | None,
        Uy: np.ndarray | None,
        means: Means | None,
        kept: np.ndarray | None = None,
        known: bool = False,
        low: np.ndarray | None = None,
        shift: float = 0.0,
    ) -> _Part:
        rx, ry, g = (None, None, 0.0) if means is None else means
        ry = None if Y is None else ry
        return _tiles.product(kind, parameters, X, Y, Ux, Uy, single, rx, ry, g, kept, known, low, shift)

    return pair


def _block_pair(kernel: Kernel, single: bool) -> _Pair:
    dtype = np.float32 if single else np.float64

    def columns(U: np.ndarray | None) -> np.ndarray | None:
        return None if U is None else U.astype(dtype, copy=False)

    def pair(
        X: np.ndarray, Y: np.ndarray | None, Ux: np.ndarray | None, Uy: np.ndarray | None, means: Means | None
    ) -> _Part:
        same = Y is None
        X = np.asarray(X, dtype=dtype)
        Y = X if Y is None else np.asarray(Y, dtype=dtype)
        for rows in (X, Y):
            rows.flags.writeable = False
        Ux = columns(Ux)
        Uy = Ux if same else columns(Uy)
        left = None if Uy is None else np.zeros((len(X), Uy.shape[1]))
        right = None if Ux is None else left if same else np.zeros((len(Y), Ux.shape[1]))
        sums = np.zeros(2)
        for i in range(0, len(X), TILE):
            I = slice(i, min(len(X), i + TILE))
            for j in range(i if same else 0, len(Y), TILE):
                parallel.checkpoint()
                J = slice(j, min(len(Y), j + TILE))
                mirror = same and i != j
                K = checked_block(kernel, X[I], Y[J]).astype(dtype, copy=False)
                # a kernel's overflow is found in the product, and named there
                with np.errstate(over="ignore", invalid="ignore"):
                    if left is not None and Uy is not None:
                        left[I] += K @ Uy[J]
                    if right is not None and Ux is not None and (mirror or not same):
                        right[J] += K.T @ Ux[I]
                    if means is not None:
                        rx, ry, g = means
                        sums += squares_about_means(K, rx[I], ry[J], g) * (2.0 if mirror else 1.0)
        return left, None if same else right, None if means is None else (float(sums[0]), float(sums[1]))

    return pair


class ExactSummation(Summation):
    """K U and K' U with every kernel value computed; in the square case each is computed once and used twice.

    Parameters
    ----------
    kernel : Kernel
        With every parameter resolved.
    rows_x : Rows (N, d)
    rows_y : Rows (M, d), optional
        None is the square case, K = k(X, X), which takes the kernel to be symmetric.
    n_threads : int
        Products have the same bits at any number. A kernel with ``thread_safe = False`` is called from one thread.
    dtype : numpy.float64 or numpy.float32
        float32: tiles are evaluated and multiplied in float32 and added up in float64; for searching only.
    keeps : bool
        The tiles of the first product stay in memory (``kept_bytes``), and later ones evaluate nothing. Of the square
        case alone, of a kernel with compiled tiles, and of rows that are here.
    progress : callable (stage, done, total), optional

    Raises
    ------
    PluginError
        From products, where ``Kernel.block`` returns a wrong shape or anything but real numbers.
    ValueError
        From products, where the result is not finite: the kernel overflowed, or returned NaN.
    """

    error_bound = 0.0

    def __init__(
        self,
        kernel: Kernel,
        rows_x: Rows,
        rows_y: Rows | None = None,
        *,
        n_threads: int = 1,
        dtype: Any = np.float64,
        keeps: bool = False,
        progress: parallel.Progress | None = None,
    ):
        self.kernel = kernel
        self.rows_x = rows_x
        self.rows_y = rows_y
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype is {self.dtype}; tiles are float64 or float32")
        if rows_y is not None and rows_y.n_features != rows_x.n_features:
            raise ValueError(f"rows of {rows_x.n_features} and of {rows_y.n_features} numbers have no kernel value")
        self.symmetric = self.gives_norm = rows_y is None
        self.shape = (len(rows_x), len(rows_x if rows_y is None else rows_y))
        self.n_threads = n_threads if kernel.thread_safe else 1
        self.progress = progress
        self._pair = self._make_pair(self.dtype == np.float32)
        self._keeps, self._kept, self._known = keeps, np.empty(0, dtype=self.dtype), False
        self._low: np.ndarray | None = None
        """What the values that are kept lose in float32, where these serve a search too."""
        self.shift = 0.0
        """The values that are kept are those of the kernel less this."""
        self.measured: NormPass | None = None
        """The pass that has computed the values for a search, about ``shift`` as all row means."""

    def _make_pair(self, single: bool) -> _Pair:
        compiled = self.kernel.compiled_tile()
        return _compiled_pair(*compiled, single) if compiled is not None else _block_pair(self.kernel, single)

    def in_float32(self) -> ExactSummation:
        """The same product in float32, for searching, with values that both keep; they are computed now.

        About their mean is taken off before they are rounded: products with vectors of mean zero lose the less. What
        rounding loses is kept beside them, in float32 too, for this product (``kept_error``).
        """
        n = self.shape[0]
        self.shift = self._mean_of_some()
        self._kept, self._low = np.empty((2, _ends_of_tiles(self.bands)[-1]), dtype=np.float32)
        self.measured = self.pass_with_norm(np.empty((n, 0)), np.full(n, self.shift), self.shift)
        single = ExactSummation(
            self.kernel, self.rows_x, n_threads=self.n_threads, dtype=np.float32, keeps=True, progress=self.progress
        )
        single.shift, single._kept, single._known = self.shift, self._kept, True
        return single

    def _mean_of_some(self) -> float:
        """Mean of the values between a few rows and others; 0 where that is not finite, which a product names."""
        rows = self.rows_x.take(np.linspace(0, self.shape[0] - 1, 2 * MEAN_ROWS).astype(np.intp))
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(checked_block(self.kernel, rows[::2], rows[1::2]).mean())
        return mean if np.isfinite(mean) else 0.0

    @property
    def kept_error(self) -> float:
        """Bound on the Frobenius norm of what values lose that are kept in two parts: 48 bits of K_ij - s stay."""
        return 0.0 if self.measured is None else 4.5e-15 * float(np.sqrt(self.measured.centred_square))

    @property
    def bands(self) -> list[tuple[slice, slice]]:
        """The pairs of bands of the square case."""
        return upper_tiles(self.shape[0], band_rows(self.shape[0], self.rows_x.n_features))

    def kept_block(self, number: int) -> np.ndarray:
        """The values of a pair of ``bands``, kept in float64, or from now on: a new array."""
        if not self._known:
            self.matmat(np.empty((self.shape[1], 0)))
        (I, J), ends = self.bands[number], _ends_of_tiles(self.bands)
        part = slice(ends[number], ends[number + 1])
        kept = self._kept[part]
        if self._low is not None:
            with np.errstate(all="ignore"):  # the padding between tiles holds anything
                kept = self.shift + np.add(kept, self._low[part], dtype=np.float64)
        return _tiles.kept_block(kept, I.stop - I.start, J.stop - J.start, I == J)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """K U, shape (shape[0], k), float64."""
        return self._multiply(U, transposed=False)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        """K' U, shape (shape[1], k), float64."""
        return self._multiply(U, transposed=not self.symmetric)

    def pass_with_norm(self, V: np.ndarray, row_means: np.ndarray, grand_mean: float) -> NormPass:
        """As ``Summation.pass_with_norm``, from tiles in the product's own dtype: a bound needs those of float64."""
        if not self.symmetric:
            raise ValueError("pass_with_norm needs the square case: one set of rows with itself")
        n = self.shape[0]
        if V.ndim != 2 or len(V) != n:
            raise ValueError(f"V has shape {V.shape}; ({n}, k) is needed")
        r = np.ascontiguousarray(row_means, dtype=np.float64)
        if r.shape != (n,):
            raise ValueError(f"row_means has shape {r.shape}; one for each of the {n} rows is needed")
        product, sums = self._square(self._pair, with_ones(V), r, float(grand_mean))
        self._check_finite(product, V)
        return NormPass(product[:, :-1], product[:, -1].copy(), float(sums[0]), float(sums[1]))

    def _multiply(self, U: np.ndarray, *, transposed: bool) -> np.ndarray:
        U = columns_of(U, self.shape[0] if transposed else self.shape[1], finite=False)
        product = self._square(self._pair, U)[0] if self.symmetric else self._rectangular(U, transposed)
        self._check_finite(product, U)
        return product

    def _check_finite(self, product: np.ndarray, U: np.ndarray) -> None:
        if np.isfinite(product).all():
            return
        if not np.isfinite(U).all():
            raise ValueError("U contains NaN or infinity")
        row = int(np.argwhere(~np.isfinite(product))[0, 0])
        raise ValueError(
            f"the product with the kernel matrix of {self.kernel!r} is not finite (first at row {row}): its values "
            f"overflow {self.dtype} or are NaN; scale the data down, or change the kernel's parameters"
        )

    def _square(
        self, pair: _Pair, U: np.ndarray, r: np.ndarray | None = None, g: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        n, step = self.shape[0], band_rows(self.shape[0], self.rows_x.n_features)
        if self.rows_x.distributed:
            return self._square_elsewhere(pair, U, r, g, step)
        tiles = upper_tiles(n, step)
        product, sums = np.zeros((n, U.shape[1])), np.zeros(2)
        ends = _ends_of_tiles(tiles) if self._keeps else []
        rows = None
        if self._keeps and not self._known:
            if self._low is None:
                self._kept = np.empty(ends[-1], dtype=self.dtype)
            rows = self.rows_x.all()  # shifted once, not for each pair of bands

        def band(which: slice) -> np.ndarray:
            return self._band(which) if rows is None else rows[which]

        shift = self.shift if self._low is None else 0.0  # else tiles of float64 have the kernel's own values

        def task(number: int) -> tuple[slice, slice, _Part]:
            I, J = tiles[number]
            same = I == J
            means = None if r is None else (r[I] - shift, r[J] - shift, g - shift)
            values: tuple[Any, ...] = ()
            if self._keeps:
                part = slice(ends[number], ends[number + 1])
                values = self._kept[part], self._known, None if self._low is None else self._low[part], self.shift
            X, Y = band(I), None if same else band(J)
            return I, J, pair(X, Y, U[I], None if same else U[J], means, *values)

        for I, J, (left, right, squares) in self._run(task, len(tiles)):
            product[I] += left
            if I != J:
                product[J] += right
            if squares is not None:
                sums += np.array(squares) * (1.0 if I == J else 2.0)
        self._known = self._keeps
        if shift:
            product += shift * U.sum(axis=0, dtype=np.float64)
        return product, sums

    def _band(self, band: slice) -> np.ndarray:
        """Rows; without numbers where their kernel values are known."""
        if self._known:
            return np.empty((band.stop - band.start, 0))
        return self.rows_x.tile(band.start, band.stop)

    def _square_elsewhere(
        self, pair: _Pair, U: np.ndarray, r: np.ndarray | None, g: float, step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same on Dask's scheduler: equal bits up to 65536 rows, and for more from larger bands."""
        rows = self.rows_x

        def task(X: np.ndarray, Y: np.ndarray | None, x: tuple, y: tuple) -> _Part:
            y = x if Y is None else y
            return pair(X, Y, x[0], None if Y is None else y[0], None if x[1] is None else (x[1], y[1], g))

        product, squares = rows.source.square(
            rows.frame, task, step, (U, r), stage="product", alone=not self.kernel.thread_safe
        )
        sums = np.zeros(2)
        for i, j, square in squares:
            if square is not None:
                sums += np.array(square) * (1.0 if i == j else 2.0)
        return product, sums

    def _rectangular(self, U: np.ndarray, transposed: bool) -> np.ndarray:
        n, m = self.shape
        rows_y = self.rows_y
        assert rows_y is not None
        step_x, step_y = band_rows(n, rows_y.n_features), band_rows(m, rows_y.n_features)
        bands_y = -(-m // step_y)
        product = np.zeros((m if transposed else n, U.shape[1]))

        def task(number: int) -> tuple[slice, np.ndarray | None]:
            i, j = divmod(number, bands_y)
            I, J = slice(i * step_x, min(n, (i + 1) * step_x)), slice(j * step_y, min(m, (j + 1) * step_y))
            X, Y = self.rows_x.tile(I.start, I.stop), rows_y.tile(J.start, J.stop)
            if transposed:
                return J, self._pair(X, Y, U[I], None, None)[1]
            return I, self._pair(X, Y, None, U[J], None)[0]

        for band, part in self._run(task, -(-n // step_x) * bands_y):
            product[band] += part
        return product

    def _run(self, task: Callable[[int], Any], n_tasks: int) -> Iterator[Any]:
        return parallel.run(
            task, n_tasks, n_threads=self.n_threads, progress=self.progress, stage="exact kernel product"
        )
