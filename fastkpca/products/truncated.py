"""Coarse products with a Gaussian kernel matrix: the values that are not nearly zero, in a sparse matrix.

Narrow kernels have few of them. What is left out, E = K - B, has no negative entry, and neither has D^(1/2) E D^(1/2)
for weights w, D = diag(w). The norm of such a symmetric matrix M is its largest eigenvalue, and that is at most the
largest (M z)_i / z_i for any positive z (Collatz 1942). With z = D^(1/2) 1:

    |D^(1/2) (K - B) D^(1/2)| <= max_i (K w - B w)_i.

So one more column of a product with K bounds the error of B, for any rows.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import scipy  # scipy.sparse, scipy.spatial and scipy.special are loaded where they are used first

from .._core.sparse import COLUMNS
from .._core.sparse import product as sparse_product
from ..base import parallel
from ..base.protocol import Cost, Offer, Summary, Summation
from ..base.rounding import UNIT, rounding_factor
from .rates import RATE
from .vectors import columns_of

__all__ = [
    "COLUMNS",
    "PROBE_ROWS",
    "TruncatedSummation",
    "WithSums",
    "distance_bound",
    "free_bytes",
    "norm_bound",
    "truncated_offer",
    "truncated_summation",
    "truncation_radius",
]

LEFT_OUT_FRACTION, LOOSE_FRACTION = 0.1, 0.25
"""Share of a row's sum that is left out where rows lie evenly, over the root of tol, and at most over tol. Eigenvectors
of the truncated matrix err by about as much, and eigenvalues from an exact product with these by its square. Where no
gap is wider than what is left out, that has to be a part of tol itself."""
LEAST_LOOSE_TOL = 1e-3
"""Tolerance up to which the root of tol alone counts: there a gap wider than that is needed for the eigenvectors."""
PROBE_ROWS = 128
"""Rows of a probe that predicts costs: it counts their near rows, or leaves of clusters, or takes the mean of their
values."""
PEAK_BYTES = 40.0
"""Peak bytes for each value while the matrix is assembled."""


def truncation_radius(sigma: float, d: int, tol: float) -> float:
    """The distance beyond which values are left out: the share of a Gaussian beyond it is that of chi-squared."""
    share = min(LEFT_OUT_FRACTION * sqrt(tol), max(LOOSE_FRACTION * tol, LEFT_OUT_FRACTION * sqrt(LEAST_LOOSE_TOL)))
    return sigma * sqrt(2.0 * float(scipy.special.gammainccinv(0.5 * d, share)))


class TruncatedSummation(Summation):
    """B U; `truncated_summation` makes it.

    Parameters
    ----------
    matrix : sparse array (n, n), compressed rows
        B.
    order : ndarray (n,)
        Row i of the matrix is the given row order[i]: rows that are near lie near each other in memory.
    """

    def __init__(self, matrix: scipy.sparse.csr_array, order: np.ndarray):
        self.shape, self.count, self._order = matrix.shape, matrix.nnz, order
        self._starts, self._values = matrix.indptr.astype(np.intp), matrix.data
        self._columns = matrix.indices.astype(np.int32, copy=False)
        starts = np.searchsorted(self._starts, np.arange(0, self.count, parallel.MIN_TASK_FLOPS // COLUMNS))
        self._bounds = np.unique(np.append(starts, len(order))).tolist()

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """B U, shape (n, k)."""
        U = columns_of(U, len(self._order))
        product = np.empty_like(U)
        for j in range(0, U.shape[1], COLUMNS):
            some = U[self._order, j : j + COLUMNS]
            wide = np.pad(some, ((0, 0), (0, COLUMNS - some.shape[1])))
            product[self._order, j : j + COLUMNS] = self._product(wide)[:, : some.shape[1]]
        return product

    def _product(self, U: np.ndarray) -> np.ndarray:
        """B U for `COLUMNS` columns, rows in the matrix's own order."""
        out, ends = np.empty_like(U), self._bounds

        def task(i: int) -> None:
            sparse_product(self._starts, self._columns, self._values, U, ends[i], ends[i + 1], out)

        parallel.each(task, len(ends) - 1, n_threads=self.n_threads)
        return out

    @property
    def seconds(self) -> float:
        """Predicted, for a product with `COLUMNS`."""
        return RATE.sparse_value * self.count + RATE.sparse_row * len(self._order)


def distance_bound(own: np.ndarray, sums: np.ndarray, error: float) -> float:
    """Bound on the norm of D^(1/2) (K - B) D^(1/2).

    Parameters
    ----------
    own, sums : ndarray (n,)
        B w, and K w.
    error : float
        Bound on the error of an entry of ``sums``, and on the norm of that part of K - B which has no sign.
    """
    return float((sums - own).max()) + 2.0 * error + 4.0 * rounding_factor(len(own)) * UNIT * float(sums.max())


def norm_bound(own: np.ndarray) -> float:
    """Bound on the norm of D^(1/2) B D^(1/2) from B w, ``own``."""
    return float(own.max()) * (1.0 + 4.0 * rounding_factor(len(own)) * UNIT)


class WithSums(Summation):
    """A product K U whose first pass also tells ``sums``, K w; an array of no numbers before."""

    def __init__(self, inner: Summation, weights: np.ndarray):
        self.inner, self.shape, self.symmetric = inner, inner.shape, inner.symmetric
        self.error_bound = inner.error_bound
        self.weights, self.sums = weights, np.empty(0)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        if len(self.sums):
            return self.inner.matmat(U)
        product = self.inner.matmat(np.hstack([U, self.weights[:, None]]))
        self.sums = product[:, -1].copy()
        return product[:, :-1]


def truncated_offer(data: Summary, sigma: float, tol: float) -> Offer:
    """The offer of the truncated matrix, for intervals of this tol: as many values are predicted as the sample
    shows."""
    n, sample, reach = data.n_samples, data.sample, truncation_radius(sigma, data.n_features, tol)
    few, m = sample[:: max(len(sample) // PROBE_ROWS, 1)], len(sample)
    pairs = float(scipy.spatial.cKDTree(few).count_neighbors(scipy.spatial.cKDTree(sample), reach)) - len(few)
    count = n + pairs * n * (n - 1.0) / max(len(few) * (m - 1.0), 1.0)
    cost = Cost(
        row_flops=RATE.features * (RATE.sparse_value * count / n + RATE.sparse_row),
        column_flops=0.0,
        setup_flops=RATE.features * RATE.new_sparse_value * count,
        memory=PEAK_BYTES * count,
    )
    return Offer("near", cost, lambda X, Y=None: truncated_summation(X.all(), sigma, reach))


def free_bytes(offer: Offer) -> float:
    """Bytes of the offer's memory that are free again once the matrix is assembled."""
    kept = np.dtype(np.float32).itemsize + np.dtype(np.int32).itemsize  # a value and its column
    return offer.cost.memory * (1.0 - kept / PEAK_BYTES)


def truncated_summation(X: np.ndarray, sigma: float, reach: float) -> TruncatedSummation:
    """The truncated matrix of rows X (n, d) with the values of pairs that are no farther apart than ``reach``."""
    X = np.asarray(X, dtype=np.float64)
    order = scipy.spatial.cKDTree(X).indices
    rows = np.ascontiguousarray(X[order])
    n, coordinates = len(rows), np.ascontiguousarray(rows.T)
    pairs = scipy.spatial.cKDTree(rows).query_pairs(reach, output_type="ndarray")
    values = np.ones(2 * len(pairs) + n, dtype=np.float32)
    step = parallel.tile_rows(rows.shape[1])
    for first in range(0, len(pairs), step):
        some = pairs[first : first + step]
        x, y = (coordinates.take(some[:, end], axis=1) for end in (0, 1))
        values[first : first + len(some)] = np.exp(-0.5 / sigma**2 * np.square(x - y).sum(axis=0))
    half = values[: len(pairs)]
    np.nextafter(half, np.float32(0.0), out=half)  # no larger than in float64: K - B keeps its sign
    values[len(pairs) : -n] = half
    (i, j), own = pairs.T.astype(np.int32), np.arange(n, dtype=np.int32)
    places = np.concatenate([i, j, own]), np.concatenate([j, i, own])
    matrix = scipy.sparse.coo_array((values, places), shape=(n, n))
    matrix.has_canonical_format = True  # no place comes twice: nothing is to be sorted
    return TruncatedSummation(matrix.tocsr(), order)
