"""Products with the Gram matrix of weighted rows, transformed (by a reflection) so that ordinary centring can be used.

With D = diag(w), W = sum w and b = D^(1/2) 1 / W^(1/2) the weighted and centred matrix is

    (I - b b') D^(1/2) K D^(1/2) (I - b b'),

whose null vector is b and not 1 / n^(1/2). The reflection P that exchanges the two (up to sign) makes of it
H K' H with H = I - 1 1'/n and K' = P D^(1/2) K D^(1/2) P: the same eigenvalues, norm and trace, so that methods for
centred Gram matrices apply to K' unchanged. Vectors come back as P v.

Kernel PCA without centring is the same with one more row and column of zeros: b is the last unit vector, P exchanges it
with 1 / (n + 1)^(1/2), and H K' H = K'.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ..base import parallel
from ..base.protocol import Kernel, NormPass, Summation
from ..base.rounding import EPS, rounding_factor
from ..rows.view import Rows
from .blocks import TILE_ROWS, squares_about_means, upper_tiles
from .exact import ExactSummation, band_rows
from .vectors import centre, with_ones


class Entries:
    """The kernel matrix of weighted rows, D^(1/2) K D^(1/2), entry by entry; where all weights are 1, K.

    Attributes
    ----------
    coordinates : Coordinates
        Coordinates of a solver with this matrix.
    n_threads : int

    Parameters
    ----------
    kept : ExactSummation, optional
        What keeps the values, where they are known.
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Rows,
        coordinates: Coordinates,
        n_threads: int = 1,
        kept: ExactSummation | None = None,
    ):
        self._kernel, self._rows, self._kept = kernel, rows, kept
        self.coordinates, self.n_threads = coordinates, n_threads if kernel.thread_safe else 1
        w = rows.weights
        self._root = None if w is None else np.sqrt(np.asarray(w, dtype=np.float64))

    @property
    def bands(self) -> list[tuple[slice, slice]]:
        """Pairs of ranges of rows, which cover the diagonal and what is above it."""
        n = self._rows.n_samples
        return upper_tiles(n, band_rows(n, 1)) if self._kept is None else self._kept.bands

    def block(self, number: int) -> np.ndarray:
        """Entries of a pair of ``bands``: a new array."""
        I, J = self.bands[number]
        if self._kept is not None:
            values = self._kept.kept_block(number)
        else:
            X, Y = self._rows.tile(I.start, I.stop), self._rows.tile(J.start, J.stop)
            values = np.array(self._kernel.block(X, Y), dtype=np.float64)
        return self._scaled(values, I, J)

    def among(self, I: np.ndarray, J: np.ndarray) -> np.ndarray:
        """Entries for rows by their numbers: a new array."""
        values = np.array(self._kernel.block(self._rows.take(I), self._rows.take(J)), dtype=np.float64)
        return self._scaled(values, I, J)

    def first_block(self, count: int, block: int, rng: np.random.Generator, *, follows: bool) -> np.ndarray | None:
        """A first block, in the solver's coordinates: near the leading vectors of a few rows (Nystroem).

        It is some passes ahead of a random one, for a fraction of what a pass takes: a product of these rows' matrix
        with random columns is as good a start as its eigenvectors (``peers.py``). With their columns F of K,
        F K_PP^-1 F' is the nearer to K the more they are: where that is cheap, they are many, and a product with it
        ``follows``. None of values that are not finite, which a product names.
        """
        kernel, rows, coordinates = self._kernel, self._rows, self.coordinates
        some = Rows(rows.take(np.sort(rng.choice(rows.n_samples, count, replace=False))))
        with np.errstate(over="ignore", invalid="ignore"):
            K = np.array(kernel.block(some.all(), some.all()), dtype=np.float64)
            factor = K + len(K) * EPS * K.trace() * np.eye(len(K)) if follows else None
            centre(K)
        if not np.isfinite(K).all():
            return None
        columns = ExactSummation(kernel, rows, some, n_threads=self.n_threads)

        def block_of(V: np.ndarray) -> np.ndarray:
            start = coordinates.block(columns.matmat(V))
            return start - start.mean(axis=0)

        start = block_of(np.linalg.qr(K @ rng.standard_normal((len(K), block)))[0])
        if factor is not None:
            factor, singular = lapack.dpotrf(factor)
            if not singular:
                V = columns.rmatmat(coordinates.coefficients(np.linalg.qr(start)[0]))
                start = block_of(lapack.dpotrs(factor, V)[0])
        norms = np.linalg.norm(start, axis=0)
        return start[:, norms > 0.0] / norms[norms > 0.0]

    def _scaled(self, values: np.ndarray, I: slice | np.ndarray, J: slice | np.ndarray) -> np.ndarray:
        if self._root is not None:
            values *= self._root[I, None]
            values *= self._root[J]
        return values


class Coordinates:
    """Coordinates in which centring is the ordinary one: of rows that count once each, their own.

    A solver works with the products and the columns that these return; ``block`` goes there, the others come back.
    """

    center = True

    def __init__(self, count: float):
        self.count = float(count)

    def trace(self, diagonal: np.ndarray) -> float:
        return float(diagonal.sum())

    def product(self, product: Summation) -> Summation:
        """The one that the solver multiplies with."""
        return product

    def search_product(self, search: Summation) -> Summation:
        return search

    def block(self, V: np.ndarray) -> np.ndarray:
        """Values at the rows, as the solver's columns."""
        return V

    def coefficients(self, vectors: np.ndarray) -> np.ndarray:
        """The solver's columns, as coefficients of the rows."""
        return vectors

    def at_rows(self, columns: np.ndarray) -> np.ndarray:
        """The solver's columns in the coordinates of the rows, in which ``Entries`` computes the matrix."""
        return columns

    def images(self, images: np.ndarray) -> np.ndarray:
        """The solver's images, as values at the rows."""
        return images

    def means(self, row_means: np.ndarray) -> np.ndarray:
        """Means of the columns of K."""
        return row_means


class _Reflected(Coordinates):
    """Coordinates of weighted rows, or of a matrix that is not centred: see the module's notes."""

    def __init__(self, kernel: Kernel, rows: Rows, diagonal: np.ndarray, largest: float, n_threads: int, center: bool):
        n, self.center = rows.n_samples, center
        self.weights = np.ones(n) if rows.weights is None else np.asarray(rows.weights, dtype=np.float64)
        super().__init__(self.weights.sum())
        self.kernel, self.rows, self.n_threads = kernel, rows, n_threads if kernel.thread_safe else 1
        size = self.count * max(largest, float(np.abs(diagonal).max()))
        size = self.trace(diagonal) if kernel.positive_semidefinite else size
        self.rounding = 4.0 * rounding_factor(n) * EPS * size / n
        """Rounding of the reflections and weights, as a part of ``error_bound``."""
        self.root = np.sqrt(self.weights)
        b = self.root / np.sqrt(self.count) if center else np.eye(1, n + 1, n)[0]
        v = b + 1.0 / np.sqrt(len(b))  # both are positive: nothing cancels
        self._v = v / np.linalg.norm(v)

    def trace(self, diagonal: np.ndarray) -> float:
        return float(diagonal @ self.weights)

    def product(self, product: Summation) -> Summation:
        return _ReflectedSummation(product, self, gives_norm=product.gives_norm)

    def search_product(self, search: Summation) -> Summation:
        return _ReflectedSummation(search, self, gives_norm=False)

    def reflect(self, U: np.ndarray) -> np.ndarray:
        """P U."""
        U = np.asarray(U, dtype=np.float64)
        R = np.multiply.outer(-2.0 * self._v, self._v @ U)
        R += U
        return R

    def block(self, V: np.ndarray) -> np.ndarray:
        whole = np.zeros((len(self._v), V.shape[1]))
        np.multiply(V, self.root[:, None], out=whole[: len(V)])
        return self.reflect(whole)

    def coefficients(self, vectors: np.ndarray) -> np.ndarray:
        U = self.at_rows(vectors)
        U *= self.root[:, None]
        return U

    def at_rows(self, columns: np.ndarray) -> np.ndarray:
        return self.reflect(columns)[: len(self.root)]

    def images(self, images: np.ndarray) -> np.ndarray:
        return self.at_rows(images) / self.root[:, None]

    def means(self, row_means: np.ndarray) -> np.ndarray:
        """K w / W from K' 1 / n; zero where nothing is subtracted."""
        if not self.center:
            return np.zeros(len(self.root))
        return -self.reflect(row_means) / (self.root * np.sqrt(self.count / len(self.root)))


class _ReflectedSummation(Summation):
    """K' U for products with K, ``inner``; ``gives_norm``: and the norm of the matrix from its entries."""

    symmetric = True

    def __init__(self, inner: Summation, coordinates: _Reflected, *, gives_norm: bool):
        self.inner, self.coordinates, self.gives_norm = inner, coordinates, gives_norm
        self.shape = (len(coordinates._v),) * 2
        # an entry of K u errs by e sum |u|, so D^(1/2) K D^(1/2) u by W e |u|
        self.error_bound = inner.error_bound * coordinates.count / inner.shape[0] + coordinates.rounding

    def matmat(self, U: np.ndarray) -> np.ndarray:
        U = self.coordinates.coefficients(U)
        V = self.inner.matmat(U)
        if not self.inner.symmetric:
            V = (V + self.inner.rmatmat(U)) / 2
        return self.coordinates.block(V)

    def pass_with_norm(self, V: np.ndarray, row_means: np.ndarray, grand_mean: float) -> NormPass:
        """As ``Summation.pass_with_norm``, of K'; its entries are not needed for that, the norm being the same."""
        to, U = self.coordinates, with_ones(V)
        n, weight = len(to.root), to.weights[0]
        # K'_ij - r_i - r_j + g is, reflected back, root_i root_j (K_ij - a_i - a_j + h)
        a, h = to.means(row_means), grand_mean * n / to.count if to.center else 0.0
        if np.all(to.weights == weight):
            passed = self.inner.pass_with_norm(to.coefficients(U), a, h)
            product, sums = to.block(passed.product), weight**2 * np.array([passed.centred_square, passed.square])
        else:
            product, sums = self.matmat(U), _squares(to.kernel, to.rows, (a, h), to.root, to.n_threads)
        return NormPass(product[:, :-1], product[:, -1].copy(), float(sums[0]), float(sums[1]))


def _squares(
    kernel: Kernel, rows: Rows, means: tuple[np.ndarray, float], root: np.ndarray, n_threads: int
) -> np.ndarray:
    """Sums of root_i^2 root_j^2 (K_ij - a_i - a_j + h)^2, (a, h) = ``means``, and of root_i^2 root_j^2 K_ij^2."""
    a, h = means
    tiles = upper_tiles(rows.n_samples, TILE_ROWS)

    def task(number: int) -> np.ndarray:
        I, J = tiles[number]
        X, Y = rows.tile(I.start, I.stop), rows.tile(J.start, J.stop)
        K = np.array(kernel.block(X, Y), dtype=np.float64)
        squares = squares_about_means(K, a[I], a[J], h, np.multiply.outer(root[I], root[J]))
        return squares * (1.0 if I == J else 2.0)

    return parallel.tree_reduce(task, len(tiles), np.add, n_threads=n_threads, stage="exact kernel product")


def coordinates_for(
    kernel: Kernel, rows: Rows, diagonal: np.ndarray, largest: float, n_threads: int, *, center: bool = True
) -> Coordinates:
    """The coordinates for rows with these weights, or without any; ``center``: whether the matrix is centred.

    ``diagonal`` (n,) is that of the kernel matrix, ``largest`` about the size of its largest entry.
    """
    if center and rows.weights is None:
        return Coordinates(rows.n_samples)
    return _Reflected(kernel, rows, diagonal, largest, n_threads, center)
