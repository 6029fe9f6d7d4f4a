"""An orthonormal basis that grows block by block, and Rayleigh-Ritz on it: every iteration in this package uses it.

The caller multiplies by A, in float32 or float64. From the products the basis keeps the compression Q'AQ, and the part
of the images outside of its span.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base import tall
from ..base.rounding import UNIT, rounding_factor
from .certificate import YOUNG_PARAMETER, RitzBlock

NEGLIGIBLE_NORM = float(np.sqrt(UNIT))
"""Fraction of the norm of images below which their part outside of the span is added to ``lost`` and dropped: its
square is rounding."""


class Basis:
    """Orthonormal columns Q (n, m) that grow block by block, and the compression of a symmetric matrix A to their span.

    A Q = Q T + N: T is the compression, and N, the part of the images outside of the span, is stored for the columns
    whose images the span does not contain yet: the last block of a Krylov space, a wide first block, or the vectors
    kept by a restart. Where the span contains the images up to rounding, only a bound on |N|^2 is stored (``lost``).

    Parameters
    ----------
    n : int
    rng : numpy.random.Generator
        Source of random directions in place of columns that vanish.
    centred : bool
        Every column is orthogonal to the vector of ones.
    reserve : int
        Columns up to which the store may grow by doubling; 0: only as much as is needed, with a copy for each block.
    n_threads : int
        Threads of the products with arrays of n rows; bits do not depend on it.
    """

    def __init__(
        self, n: int, rng: np.random.Generator, *, centred: bool = False, reserve: int = 0, n_threads: int = 1
    ):
        self.n, self.rng, self.centred, self.n_threads = n, rng, centred, n_threads
        self.size = 0
        self.compression = np.empty((0, 0))
        """T = Q'AQ as computed: the lower blocks are the transposes of the upper ones."""
        self.lost = 0.0
        """Bound on the squared Frobenius norm of the columns of N that are dropped, which are zero up to rounding."""
        self._reserve = reserve
        self._Q = np.empty((n, 0), order="F")
        self._gram = np.empty((0, 0))
        self._outside: list[tuple[slice, np.ndarray]] = []
        """Columns of Q, and their columns of N."""

    @property
    def Q(self) -> np.ndarray:
        return self._Q[:, : self.size]

    @property
    def free_columns(self) -> int:
        """Columns that may still be added."""
        return self.n - int(self.centred) - self.size

    @property
    def gram(self) -> np.ndarray:
        """Q'Q as computed."""
        seen = len(self._gram)
        if seen < self.size:
            columns = tall.inner(self.Q, self.Q[:, seen:], self.n_threads)
            self._gram = _bordered(self._gram, columns, columns[:seen].T)
            corner = self._gram[seen:, seen:]
            self._gram[seen:, seen:] = (corner + corner.T) / 2
        return self._gram

    @property
    def is_krylov(self) -> bool:
        """True if the span holds the images of all columns but the last block's."""
        return self.holds_images_from(0)

    def holds_images_from(self, first: int) -> bool:
        """True if the span holds the images of all columns from ``first`` on but the last block's."""
        return all(columns.stop in range(first + 1) or columns.stop == self.size for columns, _ in self._outside)

    # growing -------------------------------------------------------------------------------------------------

    def orthonormal(self, X: np.ndarray, *, noise: float = 0.0, projected: bool = False) -> np.ndarray:
        """``tall.orthonormal`` of X, orthogonal to Q.

        X is rank deficient where the space has become invariant; only random directions can then find what it misses
        (repeated eigenvalues).
        """
        return tall.orthonormal(
            X, self.Q, self.rng, centred=self.centred, noise=noise, projected=projected, n_threads=self.n_threads
        )

    def append(self, X: np.ndarray, image: np.ndarray) -> None:
        """Add orthonormal columns X, with ``image`` = A X, which is overwritten."""
        m, b = self.size, X.shape[1]
        self._Q = _with_columns(self._Q, m, X, self._reserve)
        self.size = m + b
        before, self._outside = self._outside, []
        for columns, part in before:
            self._keep(columns, part, X)
        border = tall.inner(self.Q, image, self.n_threads)
        self.compression = _bordered(self.compression, border, border[:m].T)
        self._outside.append((slice(m, m + b), tall.subtract(image, self.Q, border, self.n_threads)))

    def _keep(self, columns: slice, part: np.ndarray, X: np.ndarray) -> None:
        """Store or drop N of these columns (``part``), made orthogonal to the new columns X."""
        size = float(np.vdot(tall.norms(part), tall.norms(part)))
        part = tall.subtract(part, X, tall.inner(X, part, self.n_threads), self.n_threads)
        left = float(np.vdot(tall.norms(part), tall.norms(part)))
        # the remainder may be no more than the rounding of the images, of which N is a small part where K is nearly I
        images = size + float(np.square(self.compression[:, columns]).sum())
        if left > max(NEGLIGIBLE_NORM**2 * size, (4.0 * rounding_factor(self.n) * UNIT) ** 2 * images):
            self._outside.append((columns, part))
        else:  # the rounding of the product that was taken off comes on top
            self.lost += 2.0 * left + 2.0 * (rounding_factor(self.n) * UNIT) ** 2 * part.shape[1] * size

    def next_block(
        self, ritz: RitzPairs | None, most: int, noise: float = 0.0, *, wanted: int = 0, continues: bool = False
    ) -> np.ndarray:
        """The next orthonormal columns: the last columns of N, in a Krylov space (and at most ``most`` of them) or
        where ``continues``; else the largest residuals of the leading Ritz vectors, at least those ``wanted``."""
        part = self._outside[-1][1]
        if continues or (self.is_krylov and part.shape[1] <= most) or ritz is None:
            return self.orthonormal(part, noise=noise, projected=True)
        count = min(max(2 * most, wanted), len(ritz.theta))
        largest = np.argsort(-ritz.squares[:count], kind="stable")[:most]
        return self.orthonormal(self.residuals(ritz.Y[:, largest]), noise=noise, projected=True)

    def restart(self, ritz: RitzPairs, keep: np.ndarray) -> None:
        """Thick restart: only these Ritz vectors stay."""
        Y = ritz.Y[:, keep]
        gram, outside = Y.T @ self.gram @ Y, self.residuals(Y)
        self._Q = tall.times(self.Q, Y, self.n_threads)
        self._gram, self.compression = gram, np.diag(ritz.theta[keep])
        self.size = Y.shape[1]
        self._outside = [(slice(0, self.size), outside)]

    # Rayleigh-Ritz -------------------------------------------------------------------------------------------

    def ritz(self) -> RitzPairs:
        """Ritz values, descending, with their vectors' coordinates and residuals."""
        values, vectors = np.linalg.eigh(symmetric(self.compression))
        theta, Y = values[::-1], vectors[:, ::-1]
        parts = np.vstack([Y[columns] for columns, _ in self._outside])
        gram = parts.T @ self._outside_gram() @ parts
        return RitzPairs(theta, Y, gram)

    def _outside_gram(self) -> np.ndarray:
        """Upper bound on N'N of the stored columns: its rounding E has x'E x <= ``_rounding`` sum x_i^2 |N_i|^2."""
        blocks = [part for _, part in self._outside]
        gram = np.block([[tall.inner(a, b, self.n_threads) for b in blocks] for a in blocks])
        gram.flat[:: len(gram) + 1] *= 1.0 + self._rounding()
        return gram

    def _rounding(self) -> float:
        """Relative rounding of N'N and of its product with coordinates, where large residuals cancel to small ones."""
        b = sum(part.shape[1] for _, part in self._outside)
        return float(np.sqrt(b)) * (rounding_factor(self.n) + 2.0 * rounding_factor(b)) * UNIT

    def largest_beyond(self, size: int) -> float:
        """Largest Ritz value on the span of the columns after the first ``size``."""
        return float(np.linalg.eigvalsh(symmetric(self.compression[size:, size:]))[-1])

    def vectors(self, Y: np.ndarray) -> np.ndarray:
        """Q Y."""
        return tall.times(self.Q, Y, self.n_threads)

    def residuals(self, Y: np.ndarray) -> np.ndarray:
        """A Q Y - Q T Y: for the coordinates of Ritz vectors, their residuals."""
        total: np.ndarray | None = None
        for columns, part in self._outside:
            product = tall.times(part, Y[columns], self.n_threads)
            total = product if total is None else np.add(total, product, out=total)
        assert total is not None
        return total

    def pairs(self, ritz: RitzPairs, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The first Ritz vectors, and their images."""
        Y = ritz.Y[:, :count]
        V = self.vectors(Y)
        return V, self.residuals(Y) + V * ritz.theta[:count]

    def ritz_block(self, ritz: RitzPairs, product_error: float, size: float) -> RitzBlock:
        """The inner products for a certificate; ``size`` bounds |A|.

        The images are those of the recurrence, Y = Q T + N, where the products W = A Q + F err by F. N is the part of W
        outside of the span. T has Q_i'W_j for i <= j, and its transpose for the others: it is off by a symmetric matrix
        whose norm is at most 2^(1/2) |Q'F|, so that |Y - A Q|^2 <= 2 |Q'F|^2 + |(I - QQ')F|^2 <= 2 |F|^2.

        A part L of N with |L|^2 <= ``lost`` is dropped: (N + L)'(N + L) is at most (1 + a) N'N + (1 + 1/a) L'L, and at
        least (1 - a) N'N - (1/a - 1) L'L. The first bounds residuals, the second is subtracted from |A|_F^2. There the
        rounding of N'N is subtracted twice, as it was added once.
        """
        m, a = self.size, YOUNG_PARAMETER if self.lost else 0.0
        left = self.lost / a if self.lost else 0.0
        return RitzBlock(
            compression=np.diag(ritz.theta),
            gram=ritz.Y.T @ self.gram @ ritz.Y,
            residual_gram=(1.0 + a) * ritz.residual_gram + (a + 1.0) * left * np.eye(m),
            n=self.n,
            product_error=1.4143 * product_error + 16.0 * np.sqrt(m) * UNIT * size,
            least_squares=(1.0 - a) * ritz.squares - left - 2.0 * self._rounding() * ritz.squares.sum(),
        )

    def leading_block(self, count: int, product_error: float, size: float) -> RitzBlock:
        """`ritz_block` of the first ``count`` columns alone, while the first block is all that there is."""
        ((_, part),) = self._outside
        values, vectors = np.linalg.eigh(symmetric(self.compression[:count, :count]))
        Y, below = vectors[:, ::-1], self.compression[count:, :count]
        gram = tall.inner(part[:, :count], part[:, :count], self.n_threads)
        gram.flat[:: count + 1] *= 1.0 + self._rounding()
        inside = below.T @ below
        gram += inside * (1.0 + 4.0 * rounding_factor(self.size) * UNIT)
        squares = Y.T @ gram @ Y
        return RitzBlock(
            compression=np.diag(values[::-1]),
            gram=Y.T @ self.gram[:count, :count] @ Y,
            residual_gram=squares,
            n=self.n,
            product_error=1.4143 * product_error + 16.0 * np.sqrt(self.size) * UNIT * size,
        )


@dataclass(frozen=True)
class RitzPairs:
    """Rayleigh-Ritz on a basis.

    Attributes
    ----------
    theta : ndarray (m,)
        Ritz values, descending.
    Y : ndarray (m, m)
        Coordinates of their vectors.
    residual_gram : ndarray (m, m)
        Inner products of the residuals.
    """

    theta: np.ndarray
    Y: np.ndarray
    residual_gram: np.ndarray

    @property
    def squares(self) -> np.ndarray:
        """Squared norms of the residuals."""
        return self.residual_gram.diagonal()


@dataclass
class Space:
    """A basis, and how it grows.

    Attributes
    ----------
    basis : Basis
    block, widest : int
        Columns of the next pass, and their maximum.
    columns : int
        Maximal columns of the basis.
    kept : int
        Ritz vectors that a restart keeps; 0: ``columns`` less two blocks.
    """

    basis: Basis
    block: int
    widest: int
    columns: int
    kept: int = 0

    @property
    def full(self) -> bool:
        return self.basis.size + self.block > self.columns


def symmetric(A: np.ndarray) -> np.ndarray:
    return (A + A.T) / 2


def _with_columns(store: np.ndarray, used: int, X: np.ndarray, reserve: int) -> np.ndarray:
    """The used columns of a store followed by X, in the same store where they fit."""
    needed = used + X.shape[1]
    if used == 0:
        return X
    if needed > store.shape[1]:
        wider = np.empty((len(store), max(needed, min(2 * store.shape[1], reserve))), order="F")
        wider[:, :used] = store[:, :used]
        store = wider
    store[:, used:needed] = X
    return store


def _bordered(A: np.ndarray, right: np.ndarray, below: np.ndarray) -> np.ndarray:
    """[A, right; below, .]; ``right`` includes the corner."""
    m = len(A)
    wider = np.empty((len(right), len(right)))
    wider[:m, :m] = A
    wider[:, m:] = right
    wider[m:, :m] = below
    return wider
