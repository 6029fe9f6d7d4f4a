"""An orthonormal basis that grows block by block, and Rayleigh-Ritz on it: every iteration in this room uses it.

The caller multiplies by A, in float32 or float64. From the products the basis keeps the compression Q'AQ and, where
asked to, the images AQ themselves, so that residuals can be computed directly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from ..base import parallel
from ..base.rounding import UNIT, rounding_factor
from ..products.vectors import add_tall_product, aligned_columns, tall_inner, tall_product
from .certificate import RitzBlock

__all__ = ["LOOSE", "STRIP", "Basis", "inner", "times", "without_means"]

STRIP = 32
"""Columns of temporary arrays of n rows."""
FEW = 512
"""Rows of an array that BLAS multiplies as it is."""
PANEL = 8192
"""Rows of a task, of many."""
LOOSE = 1e-9
"""Entries of Q'Q - I that do no harm where A is known in float32 alone."""
TINY = 1e-140
"""Norm of a column whose products with others may underflow."""


class Basis:
    """Orthonormal columns Q (n, m), with A's compression to their span and, where asked for, its images.

    Parameters
    ----------
    n : int
    rng : numpy.random.Generator
        For random directions in place of columns that vanish.
    centred : bool
        Every column is orthogonal to the vector of ones.
    keeps_images : bool
    reserve : int
        Columns up to which the store may grow by doubling; 0: only as much as is needed, with a copy for each block.
    n_threads : int
        Of the products with arrays of n rows; bits do not depend on it.
    """

    def __init__(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        centred: bool = False,
        keeps_images: bool = False,
        reserve: int = 0,
        n_threads: int = 1,
    ):
        self.n, self.rng, self.centred, self.keeps_images = n, rng, centred, keeps_images
        self.n_threads = n_threads
        self.size = 0
        self._reserve = reserve
        self._Q = np.empty((n, 0), order="F")
        self._W = np.empty((n, 0), order="F")
        self._gram = np.empty((0, 0))
        self.compression = np.empty((0, 0))
        """Q'(AQ) as computed; without images its lower blocks are the transposes of the upper ones."""
        self._loss = 0.0
        """About the largest entry of Q'Q - I that blocks made orthonormal in one round have brought."""

    @property
    def Q(self) -> np.ndarray:
        return self._Q[:, : self.size]

    @property
    def images(self) -> np.ndarray:
        """A Q."""
        return self._W[:, : self.size]

    @property
    def room(self) -> int:
        """Columns that may still be added."""
        return self.n - int(self.centred) - self.size

    @property
    def gram(self) -> np.ndarray:
        """Q'Q as computed."""
        seen = len(self._gram)
        if seen < self.size:
            columns = inner(self.Q, self.Q[:, seen:], self.n_threads)
            self._gram = _bordered(self._gram, columns, columns[:seen].T)
            corner = self._gram[seen:, seen:]
            self._gram[seen:, seen:] = (corner + corner.T) / 2
        return self._gram

    def orthonormal(
        self,
        X: np.ndarray,
        *,
        noise: float = 0.0,
        projected: bool = False,
        beside: np.ndarray | None = None,
        image: np.ndarray | None = None,
    ) -> np.ndarray:
        """An orthonormal basis of X's part outside the span of Q; random directions where X is rank deficient.

        Deficiency means that the space has become invariant; only random directions can then find what it misses
        (repeated eigenvalues).

        Parameters
        ----------
        X : ndarray (n, b)
        noise : float
            Norm below which a column of X (after projection) is rounding and is replaced.
        projected : bool
            X is orthogonal to Q already, up to rounding; it is overwritten.
        beside : ndarray (n, k), optional
            More orthonormal columns, to which the result is orthogonal too.
        image : ndarray (n, b), optional
            What X is the projection of. Where given, Q'Q - I may have entries up to ``LOOSE``.
        """
        Q = self.Q if beside is None else np.hstack([self.Q, beside])
        b = min(X.shape[1], self.n - int(self.centred) - Q.shape[1])
        given = X
        if not projected:
            X = self._project(_copied(X, self.n_threads), Q)
        squares = inner(X, X, self.n_threads)
        norms = np.sqrt(squares.diagonal())
        kept = norms > noise
        if not kept.all():
            X, squares = X[:, kept], squares[np.ix_(kept, kept)]
        if X.shape[1] == b:
            # well-conditioned blocks, the rule: Cholesky QR, twice with a projection between ("twice is enough", Kahan)
            once, spread = _cholesky_qr(X, squares, self.n_threads)
            if once is not None:
                if image is not None and self._one_round_is_enough(norms, image, spread):
                    return once
                if not projected and spread >= 1.0 - 0.1 / b and not _lost(norms, given):
                    return once
                X = self._project(once, Q)
                twice, _ = _cholesky_qr(X, inner(X, X, self.n_threads), self.n_threads)
                if twice is not None:
                    return twice
        if X.shape[1]:
            X = X / np.maximum(_norms(X), 1e-300)
            X, r, _ = scipy.linalg.qr(X, mode="economic", pivoting=True, check_finite=False)
            X = X[:, np.abs(np.diag(r)) > 1e-10][:, :b]
        if X.shape[1] < b:
            X = np.hstack([X, self.rng.standard_normal((self.n, b - X.shape[1])) / np.sqrt(self.n)])
        for _ in range(3):
            X = scipy.linalg.qr(self._project(np.array(X, order="F"), Q), mode="economic", check_finite=False)[0]
        return np.asfortranarray(X)

    def orthonormal_of(self, part: np.ndarray) -> tuple[np.ndarray, float]:
        """``orthonormal`` of columns that are orthogonal to Q already, and a bound on what it does not hold of them, in
        Frobenius norm: rounding, but where columns without full rank were replaced. Overwrites them."""
        size = float(_norms(part).max(initial=0.0)) * np.sqrt(part.shape[1])
        X = self.orthonormal(_copied(part, self.n_threads), projected=True)
        left = _norms(_subtract(part, X, inner(X, part, self.n_threads), self.n_threads))
        return X, float(np.sqrt(np.sum(left**2))) + 2.0 * rounding_factor(self.n) * UNIT * size

    def _one_round_is_enough(self, norms: np.ndarray, image: np.ndarray, spread: float) -> bool:
        """Whether a block is orthogonal to Q, and orthonormal, up to ``LOOSE``: rounding, and what Q has lost before,
        are as large beside its columns as the images were, and its factor is ill-conditioned by 1 / ``spread``."""
        loss = (self._loss + 16.0 * UNIT) / (spread**2 * float((norms / _norms(image)).min()))
        if loss > LOOSE:
            return False
        self._loss = loss
        return True

    def _project(self, X: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """X without its part along Q (and ones), in place."""
        if self.centred:
            without_means(X, self.n_threads, out=X)
        return _subtract(X, Q, inner(Q, X, self.n_threads), self.n_threads) if Q.shape[1] else X

    def append(self, X: np.ndarray, image: np.ndarray) -> np.ndarray:
        """Add orthonormal columns X, with ``image`` = A X; returns Q' image, where Q includes X."""
        m, b = self.size, X.shape[1]
        self._Q = _with_columns(self._Q, m, X, self._reserve, self.n_threads)
        self.size = m + b
        border = inner(self.Q, image, self.n_threads)
        if self.keeps_images:
            lower = inner(X, self._W[:, :m], self.n_threads)
            self._W = _with_columns(self._W, m, image, self._reserve, self.n_threads)
        else:
            lower = border[:m].T
        self.compression = _bordered(self.compression, border, lower)
        return border

    def outside(self, image: np.ndarray, border: np.ndarray) -> np.ndarray:
        """image - Q border."""
        return _subtract(_copied(image, self.n_threads), self.Q, border, self.n_threads)

    def ritz(self, leading: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Ritz values, descending, and the coordinates Y of the Ritz vectors Q Y; all of them, or the leading ones."""
        T = symmetric(self.compression)
        if leading is None or leading >= len(T):
            return descending_eigenpairs(T)
        return descending_eigenpairs(T, subset_by_index=(len(T) - leading, len(T) - 1))

    def vectors(self, Y: np.ndarray) -> np.ndarray:
        """Q Y."""
        return times(self.Q, Y, self.n_threads)

    def ritz_block(self, Y: np.ndarray, residuals: np.ndarray, product_error: float) -> RitzBlock:
        """The Ritz vectors Q Y with their ``residuals`` (n, k), for a certificate."""
        return RitzBlock(
            compression=Y.T @ self.compression @ Y,
            gram=Y.T @ self.gram @ Y,
            residual_gram=inner(residuals, residuals, self.n_threads),
            n=self.n,
            product_error=product_error,
        )

    def residuals(self, theta: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """A Q Y - Q Y diag(theta), from the images."""
        return _subtract(times(self.images, Y, self.n_threads), self.Q, Y * theta, self.n_threads)

    def restart(self, theta: np.ndarray, Y: np.ndarray) -> None:
        """Thick restart: only these Ritz vectors stay, with their images and inner products."""
        gram, images = self.gram, self.images
        self._Q = times(self.Q, Y, self.n_threads)
        self.size = Y.shape[1]
        if self.keeps_images:
            self._W = times(images, Y, self.n_threads)
            self._gram, self.compression = Y.T @ gram @ Y, Y.T @ self.compression @ Y
        else:
            self._gram, self.compression = np.empty((0, 0)), np.diag(theta)

    def truncate(self, size: int) -> None:
        """Keep only the first columns."""
        self.size = size
        self._gram, self.compression = self._gram[:size, :size], self.compression[:size, :size]

    def largest_beyond(self, size: int) -> float:
        """Largest Ritz value on the span of the columns after the first ``size``."""
        return float(np.linalg.eigvalsh(symmetric(self.compression[size:, size:]))[-1])


def _panels(n: int, columns: int) -> list[slice]:
    """Rows of the tasks of a product with n x ``columns`` multiplications, by these numbers alone."""
    return parallel.shares(n, n * columns, most=max(4, -(-n // PANEL)))


def times(A: np.ndarray, B: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """A B, column-major where A is: saves a copy where that is needed."""
    panels = _panels(len(A), B.size)
    if len(A) < FEW:
        return (B.T @ A.T).T
    out = aligned_columns(len(A), B.shape[1])

    def task(i: int) -> None:
        tall_product(A[panels[i]], B, out[panels[i]])

    parallel.each(task, len(panels), n_threads=n_threads)
    return out


def inner(A: np.ndarray, B: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """A' B, the panels' products added along a fixed tree."""
    panels = _panels(len(A), A.shape[1] * B.shape[1])
    if len(panels) == 1:
        return tall_inner(A, B)
    return parallel.tree_reduce(
        lambda i: tall_inner(A[panels[i]], B[panels[i]]), len(panels), np.add, n_threads=n_threads
    )


def symmetric(A: np.ndarray) -> np.ndarray:
    return (A + A.T) / 2


def descending_eigenpairs(T: np.ndarray, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    # all of them: divide and conquer, where scipy's default is for a few
    values, vectors = scipy.linalg.eigh(T, check_finite=False, **options) if options else np.linalg.eigh(T)
    return values[::-1], vectors[:, ::-1]


def _subtract(X: np.ndarray, Q: np.ndarray, coordinates: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """X - Q coordinates, in place, a panel of rows and a strip of columns at a time."""
    panels = _panels(len(X), coordinates.size)
    negative = -coordinates

    def task(i: int) -> None:
        rows = panels[i]
        for j in range(0, X.shape[1], STRIP):
            add_tall_product(Q[rows], negative[:, j : j + STRIP], X[rows, j : j + STRIP])

    parallel.each(task, len(panels), n_threads=n_threads)
    return X


def _copied(X: np.ndarray, n_threads: int) -> np.ndarray:
    """A copy of X, column-major. The first touch of its pages is what takes the time: it is shared, too."""
    n, columns = X.shape
    panels = _panels(n, parallel.A_NUMBER * columns)
    if len(panels) == 1:
        return np.array(X, order="F")
    out = aligned_columns(n, columns)

    def task(i: int) -> None:
        out[panels[i]] = X[panels[i]]

    parallel.each(task, len(panels), n_threads=n_threads)
    return out


def without_means(X: np.ndarray, n_threads: int = 1, *, out: np.ndarray | None = None) -> np.ndarray:
    """X less the mean of each column, float64: a new array, column-major, or ``out``."""
    n, columns = X.shape
    panels = _panels(n, parallel.A_NUMBER * columns)
    result = aligned_columns(n, columns) if out is None else out
    if len(panels) == 1:
        return np.subtract(X, X.mean(axis=0, dtype=np.float64), out=result)
    sums = parallel.tree_reduce(
        lambda i: X[panels[i]].sum(axis=0, dtype=np.float64), len(panels), np.add, n_threads=n_threads
    )
    mean = sums / n

    def task(i: int) -> None:
        np.subtract(X[panels[i]], mean, out=result[panels[i]])

    parallel.each(task, len(panels), n_threads=n_threads)
    return result


def _with_columns(store: np.ndarray, used: int, X: np.ndarray, reserve: int, n_threads: int) -> np.ndarray:
    """The used columns of a store and X behind them, in the same store where there is room."""
    needed, n = used + X.shape[1], len(store)
    if used == 0:
        return X
    wider = store
    if needed > store.shape[1]:
        wider = aligned_columns(n, max(needed, min(2 * store.shape[1], reserve)))
    panels = _panels(n, parallel.A_NUMBER * (needed if wider is not store else X.shape[1]))

    def task(i: int) -> None:
        if wider is not store:
            wider[panels[i], :used] = store[panels[i], :used]
        wider[panels[i], used:needed] = X[panels[i]]

    parallel.each(task, len(panels), n_threads=n_threads)
    return wider


def _bordered(A: np.ndarray, right: np.ndarray, below: np.ndarray) -> np.ndarray:
    """[A, right; below, .]: ``right`` has the corner too."""
    m = len(A)
    wider = np.empty((len(right), len(right)))
    wider[:m, :m] = A
    wider[:, m:] = right
    wider[m:, :m] = below
    return wider


def _norms(X: np.ndarray) -> np.ndarray:
    """Of the columns."""
    return np.sqrt(np.einsum("ij,ij->j", X, X))


def _lost(norms: np.ndarray, given: np.ndarray) -> bool:
    """Whether a projection left less than half of some column: what is left may then lie along the rest by rounding."""
    return not bool((norms >= 0.5 * _norms(given)).all())


def _cholesky_qr(X: np.ndarray, squares: np.ndarray, n_threads: int) -> tuple[np.ndarray | None, float]:
    """(Orthonormal basis of well-conditioned columns with X'X ``squares``, the spread of their factor), BLAS 3 only;
    None where they are not, or their squares underflow.

    The spread is the least diagonal entry of the factor of the columns made unit vectors, over the largest: from 1 - s
    on, the rest of a column of the factor has squares that add up to 2 s at most.
    """
    norms = np.sqrt(squares.diagonal())
    if not norms.min() > TINY:
        return None, 0.0
    R, failed = lapack.dpotrf(squares / norms / norms[:, None])
    diagonal = R.diagonal()
    spread = 0.0 if failed else float(diagonal.min() / diagonal.max())
    if not spread >= 1e-5:
        return None, spread
    return times(X, lapack.dtrtri(R)[0] / norms[:, None], n_threads), spread
