"""Exact products with the kernel matrix, tile by tile: nothing of size N x N is ever held.

The rows are cut into bands by the number of rows alone. A task is a pair of bands, and returns what its tiles add to
the product's two bands. The tasks' results are added in the order of their numbers, so that a product has
the same bits for any number of threads. In the square case the task (I, J), I < J, serves both
V_I += K_IJ U_J and V_J += K_IJ' U_I.

Memory in addition to the rows and the product: a few bands of rows and columns for each thread (at most 2048 rows each;
no copy of the product for each thread).

A kernel has compiled tiles if its ``compiled_tile()`` returns (kind, parameters): they are those of
``fastkpca._core.tiles``, and the whole of a task runs without the GIL. kind and the names in parameters are "linear"
{}, "polynomial" {scale, offset, degree: int >= 1}, "gaussian" {sigma}, "tanh" {scale, offset}. Where the method returns
None, or is absent, tiles come from ``block``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._core import tiles as _tiles
from .._core.arrays import contiguous
from ..base import parallel
from ..base.caching import cached_property
from ..base.protocol import Kernel, NormPass, Summation
from ..base.rounding import UNIT32, rounding_factor
from ..rows.view import Rows
from .blocks import TILE_ROWS, all_tiles, squares_about_means, upper_tiles
from .truncated import PROBE_ROWS
from .vectors import columns_of, with_ones

MAX_TASK_FLOPS = 1 << 32
"""Multiplications of a task: a quarter of a second."""
Means = tuple[np.ndarray, np.ndarray, float]
"""Row means of the two bands of a task, and the grand mean: the squares about them are wanted too."""
_Some = np.ndarray | None
_Part = tuple[_Some, _Some, tuple[float, float] | None]
"""K Uy, K' Ux, and the sums of squares about the means and of the values themselves."""


def band_rows(n: int, d: int) -> int:
    """Rows of a band, by the shape alone: large enough to hide the cost of a task, several to a small problem, and few
    enough that a task takes a fraction of a second where rows are long: nothing interrupts it."""
    rows = 2048 if n > 16384 else 1024 if n > 4096 else 512
    while rows > 256 and rows * rows * d > MAX_TASK_FLOPS:
        rows //= 2
    return rows


def sum_terms(n: int, d: int) -> float:
    """Largest number s of additions that a term of a sum over n rows takes part in: in its tile, band, and over bands.

    The error of the sum is at most s u sum |terms|. This worst case occurs: rows that are all equal round alike, so
    that sqrt(s) u sum |terms| would be too small. Bands elsewhere may be longer (1 / 16 of the rows).
    """
    return min(float(n), TILE_ROWS + n / band_rows(n, d) + n / (16.0 * 192.0) + 32.0) + 2.0


def kept_bytes(kernel: Kernel, n: int, d: int, itemsize: int) -> float:
    """Memory of the values that an ``ExactSummation`` of n rows of d numbers keeps."""
    step, entries_of = band_rows(n, d), _pair_for(kernel, single=False).entries
    full, remainder = divmod(n, step)
    entries = full * entries_of(step, step, True)
    entries += full * (full - 1) // 2 * entries_of(step, step, False)
    if remainder:
        entries += full * entries_of(step, remainder, False) + entries_of(remainder, remainder, True)
    return float(itemsize * entries)


def _aligned(count: int, dtype: Any) -> np.ndarray:
    """An array, not set, that begins with a line of the cache: no vector of it lies on two."""
    buffer = np.empty(count + _tiles.LINE // np.dtype(dtype).itemsize, dtype=dtype)
    start = -buffer.ctypes.data % _tiles.LINE // buffer.itemsize
    return buffer[start : start + count]


def _pair_for(kernel: Kernel, *, single: bool) -> _CompiledPair | _BlockPair:
    compiled = kernel.compiled_tile()
    return _BlockPair(kernel, single) if compiled is None else _CompiledPair(*compiled, single)


class _Kept(NamedTuple):
    """Storage of the kernel values of a pair of bands.

    Attributes
    ----------
    values : ndarray (entries,) or None
        Stored values of this pair.
    known : bool
        They are there already, and are only multiplied; else they are written there.
    rounded : ndarray (entries,), float32, or None
        Where they are written as well, less ``shift``.
    """

    values: _Some
    known: bool
    rounded: _Some = None
    shift: float = 0.0


_NOT_KEPT = _Kept(None, False)


class _CompiledPair:
    """Products and sums of a pair of bands, by the compiled tiles.

    A call takes Y and Uy None for the rows of X with themselves. Values that are kept take ``entries`` numbers;
    ``values`` are these as a new matrix.
    """

    entries = staticmethod(_tiles.kept_entries)
    values = staticmethod(_tiles.kept_block)

    def __init__(self, kind: str, parameters: dict[str, Any], single: bool):
        self._kind, self._parameters, self._single = kind, parameters, single

    def __call__(
        self, X: np.ndarray, Y: _Some, Ux: _Some, Uy: _Some, means: Means | None = None, kept: _Kept = _NOT_KEPT
    ) -> _Part:
        rx, ry, g = (None, None, 0.0) if means is None else means
        ry = None if Y is None else ry
        what = self._kind, self._parameters, X, Y, Ux, Uy, self._single
        return _tiles.product(*what, rx, ry, g, *kept)


class _BlockPair:
    """The same by ``Kernel.block``; what is kept is the matrix, row by row."""

    def __init__(self, kernel: Kernel, single: bool):
        self._kernel, self._dtype = kernel, np.dtype(np.float32 if single else np.float64)

    @staticmethod
    def entries(n: int, m: int, symmetric: bool) -> int:
        return n * m

    @staticmethod
    def values(kept: np.ndarray, n: int, m: int, symmetric: bool) -> np.ndarray:
        return kept.reshape(n, m).copy()

    def __call__(
        self, X: np.ndarray, Y: _Some, Ux: _Some, Uy: _Some, means: Means | None = None, kept: _Kept = _NOT_KEPT
    ) -> _Part:
        symmetric = Y is None
        X = np.asarray(X, dtype=self._dtype)
        Y = X if Y is None else np.asarray(Y, dtype=self._dtype)
        for rows in (X, Y):
            rows.flags.writeable = False
        Ux, Uy = (None if U is None else U.astype(self._dtype, copy=False) for U in (Ux, Uy))
        Uy = Ux if symmetric else Uy
        left = None if Uy is None else np.zeros((len(X), Uy.shape[1]))
        right = None if Ux is None else left if symmetric else np.zeros((len(Y), Ux.shape[1]))
        values = None if kept.values is None else kept.values.reshape(len(X), len(Y))
        sums = np.zeros(2)
        for I, J in upper_tiles(len(X), TILE_ROWS) if symmetric else all_tiles(len(X), len(Y), TILE_ROWS):
            parallel.checkpoint()
            mirror = symmetric and I != J
            if values is None or not kept.known:
                K = self._kernel.block(X[I], Y[J]).astype(self._dtype, copy=False)
                if values is not None:
                    values[I, J] = K
                    if mirror:
                        values[J, I] = K.T
            else:
                K = values[I, J]
            # a kernel's overflow is found in the product, and named there
            with np.errstate(over="ignore", invalid="ignore"):
                if left is not None and Uy is not None:
                    left[I] += K @ Uy[J]
                if right is not None and Ux is not None and (mirror or not symmetric):
                    right[J] += K.T @ Ux[I]
                if means is not None:
                    rx, ry, g = means
                    sums += squares_about_means(K, rx[I], ry[J], g) * (2.0 if mirror else 1.0)
        if kept.rounded is not None and kept.values is not None:
            np.subtract(kept.values, kept.shift, out=kept.rounded, casting="same_kind")
        return left, None if symmetric else right, None if means is None else (float(sums[0]), float(sums[1]))


@dataclass(frozen=True)
class KeptSums:
    """Sums in float64 of kernel values that are stored in float32.

    Attributes
    ----------
    shift : float
        It is taken off them before they are rounded.
    row_sums : ndarray (N,)
        K 1.
    square : float
        sum_ij (K_ij - shift)^2.
    """

    shift: float
    row_sums: np.ndarray
    square: float

    @property
    def unit_error(self) -> float:
        """Bound on the norm of the error of a product with a unit vector, but for a constant.

        Values and vectors are rounded once each; a sum in float32 has no more terms than a tile has columns.
        """
        return (rounding_factor(TILE_ROWS) + 4.0) * UNIT32 * float(np.sqrt(self.square)) * (1.0 + 1e-8)


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
        case alone, and of rows that are here.
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
        self._pair = _pair_for(kernel, single=self.dtype == np.float32)
        self._keeps, self._kept, self._known = keeps, np.empty(0, dtype=self.dtype), False
        self._shift = 0.0
        """The values that are kept are those of the kernel less this."""
        self.sums: KeptSums | None = None
        """Sums of a product in float32, where they are known."""

    def in_float32(self) -> ExactSummation:
        """The same product in float32, for searching: of the values that this one keeps, which are computed now.

        An estimate of their mean is subtracted before rounding, so that products with vectors of mean zero lose less.
        """
        shift, n = self._mean_of_some(), self.shape[0]
        single = ExactSummation(
            self.kernel, self.rows_x, n_threads=self.n_threads, dtype=np.float32, keeps=True, progress=self.progress
        )
        single._shift, single._known = shift, True
        single._kept = _aligned(self._places[-1].stop, np.float32)
        product, sums = self._square(np.ones((n, 1)), np.full(n, shift), shift, single)
        self._check_finite(product, np.empty((n, 0)))
        single.sums = KeptSums(shift, product[:, 0], float(sums[0]))
        return single

    def _mean_of_some(self) -> float:
        """Mean of the values between some rows and others; 0 where that is not finite, which a product names."""
        rows = self.rows_x.take(np.linspace(0, self.shape[0] - 1, PROBE_ROWS).astype(np.intp))
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(self.kernel.block(rows[::2], rows[1::2]).mean())
        return mean if np.isfinite(mean) else 0.0

    @property
    def bands(self) -> list[tuple[slice, slice]]:
        """The pairs of bands of the square case."""
        return upper_tiles(self.shape[0], band_rows(self.shape[0], self.rows_x.n_features))

    def kept_block(self, number: int) -> np.ndarray:
        """The values of a pair of ``bands``, kept in float64, or from now on: a new array."""
        if not self._known:
            self.matmat(np.empty((self.shape[1], 0)))
        I, J = self.bands[number]
        return self._pair.values(self._kept[self._places[number]], I.stop - I.start, J.stop - J.start, I == J)

    @cached_property
    def _places(self) -> list[slice]:
        """Slices of the stored values, one for each pair of ``bands``."""
        lengths = (self._pair.entries(I.stop - I.start, J.stop - J.start, I == J) for I, J in self.bands)
        ends = list(itertools.accumulate(lengths, initial=0))
        return list(map(slice, ends[:-1], ends[1:]))

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
        r = contiguous(row_means, np.float64)
        if r.shape != (n,):
            raise ValueError(f"row_means has shape {r.shape}; one for each of the {n} rows is needed")
        product, sums = self._square(with_ones(V), r, float(grand_mean))
        self._check_finite(product, V)
        return NormPass(product[:, :-1], product[:, -1].copy(), float(sums[0]), float(sums[1]))

    def _multiply(self, U: np.ndarray, *, transposed: bool) -> np.ndarray:
        U = columns_of(U, self.shape[0] if transposed else self.shape[1], finite=False)
        product = self._square(U)[0] if self.symmetric else self._rectangular(U, transposed)
        self._check_finite(product, U)
        return product

    def _check_finite(self, product: np.ndarray, U: np.ndarray) -> None:
        if np.isfinite(product).all():
            return
        if not np.isfinite(U).all():
            raise ValueError("U contains NaN or infinity")
        row = int(np.argwhere(~np.isfinite(product))[0, 0])
        raise ValueError(
            f"the product with the kernel matrix of {self.kernel!r} is not finite (first at row {row}): its values, "
            f"or their sums with the vectors, overflow {self.dtype} or are NaN; scale the data or the vectors down, or "
            "change the kernel's parameters"
        )

    def _square(
        self, U: np.ndarray, r: np.ndarray | None = None, g: float = 0.0, single: ExactSummation | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(K U, sums of squares about the means r and g); ``single`` is to keep the values too, in float32."""
        if self.rows_x.distributed:
            return self._square_elsewhere(U, r, g)
        tiles, shift = self.bands, self._shift
        product, sums = np.zeros((self.shape[0], U.shape[1])), np.zeros(2)
        if self._keeps and not self._known:
            self._kept = _aligned(self._places[-1].stop, self.dtype)
        rows_of = self._reading()

        def task(number: int) -> tuple[slice, slice, Any]:
            I, J = tiles[number]
            symmetric = I == J
            means = None if r is None else (r[I] - shift, r[J] - shift, g - shift)
            kept = _NOT_KEPT
            if self._keeps:
                part = self._places[number]
                kept = _Kept(self._kept[part], self._known)
                if single is not None:
                    kept = kept._replace(rounded=single._kept[part], shift=single._shift)
            X, Y = rows_of(I), None if symmetric else rows_of(J)
            return I, J, self._pair(X, Y, U[I], None if symmetric else U[J], means, kept)

        for I, J, (left, right, squares) in parallel.run(task, len(tiles), **self._options):
            product[I] += left
            if I != J:
                product[J] += right
            if squares is not None:
                sums += np.array(squares) * (1.0 if I == J else 2.0)
        self._known = self._keeps
        if shift:
            product += shift * U.sum(axis=0, dtype=np.float64)
        return product, sums

    def _reading(self) -> Callable[[slice], np.ndarray]:
        """Function that returns the rows of a band: of no columns where their kernel values are stored."""
        if self._known:
            return lambda band: np.empty((band.stop - band.start, 0))
        if self._keeps:  # shifted once, not for each pair of bands
            return self.rows_x.all().__getitem__
        return lambda band: self.rows_x.tile(band.start, band.stop)

    def _square_elsewhere(self, U: np.ndarray, r: np.ndarray | None, g: float) -> tuple[np.ndarray, np.ndarray]:
        """The same on Dask's scheduler: equal bits up to 65536 rows, and for more from larger bands."""
        rows, pair = self.rows_x, self._pair
        step = band_rows(self.shape[0], rows.n_features)

        def task(X: np.ndarray, Y: np.ndarray | None, x: tuple, y: tuple) -> _Part:
            y = x if Y is None else y
            means = None if x[1] is None else (x[1], y[1], g)
            return pair(X, Y, x[0], None if Y is None else y[0], means)

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

        def task(number: int) -> tuple[slice, Any]:
            i, j = divmod(number, bands_y)
            I, J = slice(i * step_x, min(n, (i + 1) * step_x)), slice(j * step_y, min(m, (j + 1) * step_y))
            X, Y = self.rows_x.tile(I.start, I.stop), rows_y.tile(J.start, J.stop)
            if transposed:
                return J, self._pair(X, Y, U[I], None)[1]
            return I, self._pair(X, Y, None, U[J])[0]

        for band, part in parallel.run(task, -(-n // step_x) * bands_y, **self._options):
            product[band] += part
        return product

    @property
    def _options(self) -> dict[str, Any]:
        """Options of the loops over bands."""
        return {"n_threads": self.n_threads, "progress": self.progress, "stage": "exact kernel product"}
