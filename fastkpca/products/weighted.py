"""Products with the Gram matrix of weighted rows, transformed (by a reflection) so that ordinary centring can be used.

With D = diag(w), W = sum w and b = D^(1/2) 1 / W^(1/2) the weighted and centred matrix is

    (I - b b') D^(1/2) K D^(1/2) (I - b b'),

whose null vector is b and not 1 / n^(1/2). The reflection P that exchanges the two (up to sign) makes of it
H K' H with H = I - 1 1'/n and K' = P D^(1/2) K D^(1/2) P: the same eigenvalues, norm and trace, and whatever works with
centred Gram matrices works with K' as it is. Vectors come back as P v.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base import parallel
from ..base.protocol import Kernel, NormPass, Summation
from ..base.rounding import EPS, rounding_factor
from ..rows.view import Rows
from .blocks import TILE, checked_block, squares_about_means, upper_tiles
from .exact import ExactSummation, band_rows
from .vectors import with_ones

__all__ = ["Coordinates", "Entries", "WeightedExactSummation", "WeightedSummation", "coordinates_for"]


class WeightedSummation(Summation):
    """K' U for products with K and weights w > 0.

    Parameters
    ----------
    inner : Summation
        Of the rows with themselves.
    weights : ndarray (n,)
        Positive.
    rounding : float
        What the reflections and the weights add to the error of an entry, as ``error_bound`` counts it.
    """

    def __init__(self, inner: Summation, weights: np.ndarray, rounding: float = 0.0):
        self.inner = inner
        self.symmetric = True
        self.shape = inner.shape
        w = np.asarray(weights, dtype=np.float64)
        n = len(w)
        self.total = float(w.sum())
        self.root = np.sqrt(w)
        v = self.root / np.sqrt(self.total) + 1.0 / np.sqrt(n)  # both are positive: nothing cancels
        self._v = v / np.linalg.norm(v)
        # an entry of K u errs by e sum |u|, so D^(1/2) K D^(1/2) u by W e |u|
        self.error_bound = inner.error_bound * self.total / n + rounding

    def reflect(self, U: np.ndarray) -> np.ndarray:
        """P U."""
        U = np.asarray(U, dtype=np.float64)
        R = np.multiply.outer(-2.0 * self._v, self._v @ U)
        R += U
        return R

    def matmat(self, U: np.ndarray) -> np.ndarray:
        if self.inner.symmetric:
            return self._between(self.inner.matmat, U)
        return (self._between(self.inner.matmat, U) + self._between(self.inner.rmatmat, U)) / 2

    def _between(self, product: Callable[[np.ndarray], np.ndarray], U: np.ndarray) -> np.ndarray:
        U = self.reflect(U)
        U *= self.root[:, None]
        V = product(U)
        del U
        V = np.multiply(V, self.root[:, None], out=V if V.flags.owndata else None)
        return self.reflect(V)

    def row_means(self, sums: np.ndarray) -> np.ndarray:
        """K w / W from K' 1 / n."""
        return -self.reflect(sums) / (self.root * np.sqrt(self.total / len(self.root)))


class WeightedExactSummation(WeightedSummation):
    """The same, and the norm of the matrix from its entries."""

    gives_norm = True

    def __init__(
        self,
        inner: Summation,
        weights: np.ndarray,
        rounding: float,
        kernel: Kernel,
        rows: Rows,
        n_threads: int,
    ):
        super().__init__(inner, weights, rounding)
        self._kernel, self._rows, self._threads = kernel, rows, n_threads if kernel.thread_safe else 1

    def pass_with_norm(self, V: np.ndarray, row_means: np.ndarray, grand_mean: float) -> NormPass:
        """As ``Summation.pass_with_norm``, of K'; its entries are not needed for that, the norm being the same."""
        n = self.shape[0]
        product = self.matmat(with_ones(V))
        # K'_ij - r_i - r_j + g is, reflected back, root_i root_j (K_ij - a_i - a_j + h)
        scale = np.sqrt(n / self.total)
        a = -self.reflect(row_means) / self.root * scale
        h = grand_mean * scale**2
        sums = _squares(self._kernel, self._rows, (a, h), self.root, self._threads)
        return NormPass(product[:, :-1], product[:, -1].copy(), float(sums[0]), float(sums[1]))


class Entries:
    """The kernel matrix of weighted rows, D^(1/2) K D^(1/2), entry by entry; where all weights are 1, K.

    Attributes
    ----------
    diagonal : ndarray (n,)
    coordinates : Coordinates
        Of a solver that works on this matrix.
    n_threads : int

    Parameters
    ----------
    K : ndarray (n, n), optional
    kept : ExactSummation, optional
        The values, where they are known: all of them, or as a product keeps them.
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Rows,
        diagonal: np.ndarray,
        coordinates: Coordinates,
        K: np.ndarray | None = None,
        n_threads: int = 1,
        kept: ExactSummation | None = None,
    ):
        self._kernel, self._rows, self._K, self._kept = kernel, rows, K, kept
        self.coordinates, self.n_threads = coordinates, n_threads if kernel.thread_safe else 1
        w = rows.weights
        self._root = None if w is None else np.sqrt(np.asarray(w, dtype=np.float64))
        self.diagonal = diagonal if w is None else diagonal * np.asarray(w, dtype=np.float64)

    @property
    def bands(self) -> list[tuple[slice, slice]]:
        """Pairs of ranges of rows, which cover the diagonal and what is above it."""
        n = len(self.diagonal)
        return upper_tiles(n, band_rows(n, 1)) if self._kept is None else self._kept.bands

    def block(self, number: int) -> np.ndarray:
        """Of a pair of ``bands``: a new array."""
        I, J = self.bands[number]
        if self._K is not None:
            values = self._K[I, J].copy()
        elif self._kept is not None:
            values = self._kept.kept_block(number)
        else:
            X, Y = self._rows.tile(I.start, I.stop), self._rows.tile(J.start, J.stop)
            values = np.array(checked_block(self._kernel, X, Y), dtype=np.float64)
        return self._scaled(values, I, J)

    def among(self, I: np.ndarray, J: np.ndarray) -> np.ndarray:
        """Of rows by their numbers: a new array."""
        if self._K is not None:
            values = self._K[np.ix_(I, J)]
        else:
            values = np.array(checked_block(self._kernel, self._rows.take(I), self._rows.take(J)), dtype=np.float64)
        return self._scaled(values, I, J)

    def _scaled(self, values: np.ndarray, I: slice | np.ndarray, J: slice | np.ndarray) -> np.ndarray:
        if self._root is not None:
            values *= self._root[I, None]
            values *= self._root[J]
        return values


class UncentredSummation(WeightedSummation):
    """K' U of order n + 1, for kernel PCA without centring: P [[D^(1/2) K D^(1/2), 0], [0, 0]] P.

    Its null vector is the last unit vector, which P exchanges with 1 / (n + 1)^(1/2): so H K' H = K', and the other
    eigenvalues, norm and trace are those of D^(1/2) K D^(1/2). As ``WeightedSummation``; without weights D is I.
    """

    def __init__(self, inner: Summation, weights: np.ndarray, rounding: float = 0.0):
        n = inner.shape[0]
        self.inner, self.symmetric, self.shape = inner, True, (n + 1, n + 1)
        self.root = np.sqrt(np.asarray(weights, dtype=np.float64))
        self.total = float(self.root @ self.root)
        v = np.full(n + 1, 1.0 / np.sqrt(n + 1.0))
        v[-1] += 1.0
        self._v = v / np.linalg.norm(v)
        self.error_bound = inner.error_bound * self.total / n + rounding

    def inside(self, U: np.ndarray) -> np.ndarray:
        """D^(1/2) times the first n entries of P U."""
        return self.reflect(U)[:-1] * self.root[:, None]

    def outside(self, V: np.ndarray) -> np.ndarray:
        """P [D^(1/2) V; 0]."""
        whole = np.zeros((len(V) + 1, V.shape[1]))
        np.multiply(V, self.root[:, None], out=whole[:-1])
        return self.reflect(whole)

    def _between(self, product: Callable[[np.ndarray], np.ndarray], U: np.ndarray) -> np.ndarray:
        return self.outside(product(self.inside(U)))

    def row_means(self, sums: np.ndarray) -> np.ndarray:
        """Zero: nothing is subtracted."""
        return np.zeros(len(self.root))


class UncentredExactSummation(WeightedExactSummation, UncentredSummation):
    """The same, and the norm of the matrix from its entries."""

    def pass_with_norm(self, V: np.ndarray, row_means: np.ndarray, grand_mean: float) -> NormPass:
        """As ``Summation.pass_with_norm``: the row means of K' are zero, and those given are that up to rounding."""
        sums = np.zeros(self.shape[0])
        if self.inner.gives_norm and np.all(self.root == 1.0):
            passed = self.inner.pass_with_norm(self.inside(V), np.zeros(len(self.root)), 0.0)
            return NormPass(self.outside(passed.product), sums, passed.square, passed.square)
        zeros = np.zeros(len(self.root))
        square = _squares(self._kernel, self._rows, (zeros, 0.0), self.root, self._threads)[1]
        return NormPass(self.matmat(V), sums, float(square), float(square))


def _squares(
    kernel: Kernel, rows: Rows, means: tuple[np.ndarray, float], root: np.ndarray, n_threads: int
) -> np.ndarray:
    """Sums of root_i^2 root_j^2 (K_ij - a_i - a_j + h)^2, (a, h) = ``means``, and of root_i^2 root_j^2 K_ij^2."""
    a, h = means
    tiles = upper_tiles(rows.n_samples, TILE)

    def task(number: int) -> np.ndarray:
        I, J = tiles[number]
        X, Y = rows.tile(I.start, I.stop), rows.tile(J.start, J.stop)
        K = np.array(checked_block(kernel, X, Y), dtype=np.float64)
        squares = squares_about_means(K, a[I], a[J], h, np.multiply.outer(root[I], root[J]))
        return squares * (1.0 if I == J else 2.0)

    return parallel.tree_reduce(task, len(tiles), np.add, n_threads=n_threads, stage="exact kernel product")


class Coordinates:
    """Coordinates in which centring is the ordinary one: of rows that count once each, their own.

    A solver works with the products and the columns that these return; ``block`` goes there, the others come back.
    """

    center = True

    def __init__(self, count: float):
        self.count = float(count)

    def trace(self, diagonal: np.ndarray) -> float:
        return float(diagonal.sum())

    def product(self, product: Summation, *, exact: bool) -> Summation:
        """The one that the solver multiplies with."""
        return product

    def search_product(self, search: Summation) -> Summation:
        return search

    @property
    def largest_weight(self) -> float:
        return 1.0

    def block(self, V: np.ndarray) -> np.ndarray:
        """Values at the rows, as the solver's columns."""
        return V

    def coefficients(self, vectors: np.ndarray) -> np.ndarray:
        """The solver's columns, as coefficients of the rows."""
        return vectors

    def at_rows(self, columns: np.ndarray) -> np.ndarray:
        """The solver's columns, beside which its matrix is that of ``Entries``."""
        return columns

    def images(self, images: np.ndarray) -> np.ndarray:
        """The solver's images, as values at the rows."""
        return images

    def means(self, row_means: np.ndarray) -> np.ndarray:
        """Of the columns of K."""
        return row_means


class _WeightedCoordinates(Coordinates):
    """Those of weighted rows: see the module's notes."""

    def __init__(self, kernel: Kernel, rows: Rows, diagonal: np.ndarray, largest: float, n_threads: int):
        self.weights = np.asarray(rows.weights, dtype=np.float64)
        super().__init__(self.weights.sum())
        self._kernel, self._rows, self._n_threads = kernel, rows, n_threads
        size = self.count * max(largest, float(np.abs(diagonal).max()))
        size = self.trace(diagonal) if kernel.positive_semidefinite else size
        n = rows.n_samples
        self._rounding = 4.0 * rounding_factor(n) * EPS * size / n

    def trace(self, diagonal: np.ndarray) -> float:
        return float(diagonal @ self.weights)

    def product(self, product: Summation, *, exact: bool) -> Summation:
        self._weighted = (
            WeightedExactSummation(product, self.weights, self._rounding, self._kernel, self._rows, self._n_threads)
            if exact
            else WeightedSummation(product, self.weights, self._rounding)
        )
        return self._weighted

    def search_product(self, search: Summation) -> Summation:
        return WeightedSummation(search, self.weights)

    @property
    def largest_weight(self) -> float:
        return float(self.weights.max())

    def block(self, V: np.ndarray) -> np.ndarray:
        return self._weighted.reflect(self._weighted.root[:, None] * V)

    def coefficients(self, vectors: np.ndarray) -> np.ndarray:
        return self._weighted.root[:, None] * self._weighted.reflect(vectors)

    def at_rows(self, columns: np.ndarray) -> np.ndarray:
        return self._weighted.reflect(columns)

    def images(self, images: np.ndarray) -> np.ndarray:
        return self._weighted.reflect(images) / self._weighted.root[:, None]

    def means(self, row_means: np.ndarray) -> np.ndarray:
        return self._weighted.row_means(row_means)


class _UncentredCoordinates(_WeightedCoordinates):
    """Those in which centring changes nothing: see ``UncentredSummation``."""

    center = False

    def __init__(self, kernel: Kernel, rows: Rows, diagonal: np.ndarray, largest: float, n_threads: int):
        weighted = rows if rows.weights is not None else rows.weighted(np.ones(rows.n_samples))
        super().__init__(kernel, weighted, diagonal, largest, n_threads)
        self._rows = rows

    def product(self, product: Summation, *, exact: bool) -> Summation:
        self._uncentred = (
            UncentredExactSummation(product, self.weights, self._rounding, self._kernel, self._rows, self._n_threads)
            if exact
            else UncentredSummation(product, self.weights, self._rounding)
        )
        return self._uncentred

    def search_product(self, search: Summation) -> Summation:
        return UncentredSummation(search, self.weights)

    def block(self, V: np.ndarray) -> np.ndarray:
        return self._uncentred.outside(V)

    def coefficients(self, vectors: np.ndarray) -> np.ndarray:
        return self._uncentred.inside(vectors)

    def at_rows(self, columns: np.ndarray) -> np.ndarray:
        return self._uncentred.reflect(columns)[:-1]

    def images(self, images: np.ndarray) -> np.ndarray:
        return self._uncentred.reflect(images)[:-1] / self._uncentred.root[:, None]

    def means(self, row_means: np.ndarray) -> np.ndarray:
        return self._uncentred.row_means(row_means)


def coordinates_for(
    kernel: Kernel, rows: Rows, diagonal: np.ndarray, largest: float, n_threads: int, *, center: bool = True
) -> Coordinates:
    """The coordinates for rows with these weights, or without any; ``center``: whether the matrix is centred.

    ``diagonal`` (n,) is that of the kernel matrix, ``largest`` about the size of its largest entry.
    """
    if not center:
        return _UncentredCoordinates(kernel, rows, diagonal, largest, n_threads)
    if rows.weights is None:
        return Coordinates(rows.n_samples)
    return _WeightedCoordinates(kernel, rows, diagonal, largest, n_threads)
