"""Gaussian products with the values that are not nearly zero, kept in memory: narrow kernels have few of them.

The rows are put in the order of a bisection tree (``_core.clusters``), so that those near a row lie close to it in
memory. Values at or below ``drop`` are left out, and those above the diagonal kept in a sparse matrix of scipy: both
halves are products with these. Values are computed from differences. The matrix that is kept is symmetric, so its own
eigenvalues are within N ``error_bound`` of those of the kernel matrix.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import scipy.sparse as sp

from .._core import clusters as _clusters
from .._core import tiles
from ..base import parallel
from ..base.protocol import NearProduct
from ..base.rounding import UNIT, rounding_factor
from .vectors import columns_of

__all__ = ["NearSummation", "joined", "near_summation"]

LEAF = 64
"""Rows of a leaf of the tree."""
LOOK = 16
"""Leaves that tell how many values there will be."""
VALUE_BYTES = 12.0
"""Of a value that is kept, with its column's number."""


class NearSummation(NearProduct):
    """K U from the near values of a Gaussian on one set of rows; ``near_summation`` makes it.

    Parameters
    ----------
    order : ndarray (n,)
        Row i of the matrix that is kept is the given row order[i].
    above : sparse array (n, n)
        Its values above the diagonal; those on it are 1.
    error_bound : float
    """

    def __init__(self, order: np.ndarray, above: sp.csr_array, error_bound: float):
        self.shape, self.error_bound = (len(order), len(order)), error_bound
        self._order, self._above, self._below = order, above, above.T
        self.count = 2 * above.nnz + len(order)
        counts = np.diff(above.indptr) + np.bincount(above.indices, minlength=len(order)) + 1
        # no eigenvalue of a matrix exceeds the largest sum of sizes in a row
        sums = float(self.matmat(np.ones((len(order), 1))).max())
        self.norm = sums * (1.0 + rounding_factor(int(counts.max())) * UNIT)
        self.rounding = rounding_factor(int(counts.max())) * UNIT * self.norm

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """K U, shape (n, k)."""
        U = columns_of(U, self.shape[0])[self._order]
        product = np.empty_like(U)
        product[self._order] = U + self._above @ U + self._below @ U
        return product


def near_summation(
    X: np.ndarray, sigma: float, drop: float, most: float, pairs: float, *, n_threads: int = 1
) -> NearSummation | None:
    """Products with the values of exp(-|x - y|^2 / (2 sigma^2)) above ``drop``; None where these are too many.

    Parameters
    ----------
    X : ndarray (n, d)
    sigma, drop : float
    most : float
        Bytes of the values.
    pairs : float
        Kernel values that may be computed to find them.
    n_threads : int
    """
    if X.shape[1] > tiles.DIRECT or not 0.0 < drop < 1.0:
        return None
    rows, order, start, stop, left, _, low, high, _ = _clusters.bisect(np.ascontiguousarray(X, dtype=np.float64), LEAF)
    leaves = np.flatnonzero(left < 0)
    leaves = leaves[np.argsort(start[leaves])]
    start, stop, low, high = start[leaves], stop[leaves], low[leaves], high[leaves]
    reach = sigma * sqrt(2.0 * log(1.0 / drop)) * (1.0 + 1e-9)
    runs = []
    for i in range(len(leaves)):
        gap = np.maximum(np.maximum(low[i:] - high[i], low[i] - high[i:]), 0.0)
        near = i + np.flatnonzero(np.einsum("ij,ij->i", gap, gap) <= reach * reach)
        runs.append(joined(start[near], stop[near]))
    sizes = stop - start
    if sum(float(size) * float(np.sum(b - a)) for size, (a, b) in zip(sizes, runs)) > pairs:
        return None

    def task(i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(how many in each row, values, numbers of their columns)."""
        K = np.asarray(tiles.gaussian_block(rows[start[i] : stop[i]], _clusters.gather(rows, *runs[i]), sigma))
        columns = np.concatenate([np.arange(a, b, dtype=np.int32) for a, b in zip(*runs[i])])
        kept = K > drop
        kept[:, : len(K)] &= ~np.tri(len(K), dtype=bool)  # the first columns are those of the rows themselves
        places = np.flatnonzero(kept)
        return np.count_nonzero(kept, axis=1), K.ravel()[places], columns[places % len(columns)]

    some = range(0, len(leaves), max(1, len(leaves) // LOOK))
    if sum(len(task(i)[1]) for i in some) * VALUE_BYTES * len(leaves) / len(some) > 1.5 * most:
        return None
    parts, held = [], 0.0
    for part in parallel.run(task, len(leaves), n_threads=n_threads, stage="near values"):
        held += VALUE_BYTES * len(part[1])
        if held > most:
            return None
        parts.append(part)
    counts, values, columns = (np.concatenate(x) for x in zip(*parts))
    del parts
    above = sp.csr_array((values, columns, np.append(0, np.cumsum(counts))), shape=(len(rows), len(rows)))
    # what is left out is at most ``drop``, and its own rounding; a value is at most 1
    return NearSummation(order, above, drop * (1.0 + 1e-9) + 2.0 * (X.shape[1] + 10) * UNIT)


def joined(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs in ascending order, those that touch made one."""
    if not len(start):
        return start, stop
    apart = start[1:] != stop[:-1]
    return start[np.append(True, apart)], stop[np.append(apart, True)]
