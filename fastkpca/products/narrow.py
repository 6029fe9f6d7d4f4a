"""Gaussian products with the values that are not nearly zero, kept in memory: narrow kernels have few of them.

The rows are put in the order of a bisection tree (``_core.clusters``), so that those near a row lie close to it in
memory. Values at or below ``drop`` are left out, the others kept in float32: both errors are within ``error_bound``.
The products themselves are in float64. Values are computed from differences, the same for (x, y) and (y, x), so the
matrix that is kept is symmetric: its own eigenvalues are within N ``error_bound`` of those of the kernel matrix.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from .._core import clusters as _clusters
from .._core import tiles
from ..base import parallel
from ..base.protocol import NearProduct
from ..base.rounding import UNIT, UNIT32, rounding_factor
from .vectors import columns_of

__all__ = ["NearSummation", "joined", "near_summation"]

LEAF = 64
STRIPE = 32
"""Leaves whose rows are multiplied together."""
TOGETHER = 4
"""Columns that are multiplied at once."""
LOOK = 16
"""Leaves that tell how many values there will be."""
VALUE_BYTES = 8.0
"""Of a value that is kept, with its column's number."""


class NearSummation(NearProduct):
    """K U from the near values of a Gaussian on one set of rows; ``near_summation`` makes it.

    Parameters
    ----------
    order : ndarray (n,)
        Row i of the matrix that is kept is the given row order[i].
    parts : list of (counts, values, columns)
        Of consecutive rows, as ``_core.clusters.keep`` returns them.
    error_bound : float
    n_threads : int
        Products have the same bits at any number.
    """

    def __init__(
        self,
        order: np.ndarray,
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
        error_bound: float,
        n_threads: int,
    ):
        self.shape, self.n_threads, self.error_bound = (len(order), len(order)), n_threads, error_bound
        self._order = order
        self._parts, sums, longest = [], 0.0, 0
        for i in range(0, len(parts), STRIPE):
            counts, values, columns = (np.concatenate(x) for x in zip(*parts[i : i + STRIPE]))
            start = np.append(0, np.cumsum(counts))
            self._parts.append((start, values, columns))
            # every row has its diagonal
            sums = max(sums, float(np.add.reduceat(values, start[:-1], dtype=np.float64).max()))
            longest = max(longest, int(counts.max()))
        self.count = sum(len(values) for _, values, _ in self._parts)
        # no eigenvalue of a matrix exceeds the largest sum of sizes in a row
        self.norm = sums * (1.0 + rounding_factor(longest) * UNIT)
        self.rounding = rounding_factor(longest) * UNIT * self.norm

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """K U, shape (n, k)."""
        n, k = self.shape[0], np.shape(U)[1]
        wide = np.zeros((n, -(-k // TOGETHER) * TOGETHER))
        wide[:, :k] = columns_of(U, n)[self._order]
        product = np.empty((n, k))
        for j in range(0, k, TOGETHER):
            B = np.ascontiguousarray(wide[:, j : j + TOGETHER])

            def task(number: int, B: np.ndarray = B) -> np.ndarray:
                return _clusters.sparse_product(*self._parts[number], B)

            stripes = list(parallel.run(task, len(self._parts), n_threads=self.n_threads, stage="near values"))
            product[self._order, j : j + TOGETHER] = np.concatenate(stripes)[:, : min(TOGETHER, k - j)]
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
        gap = np.maximum(np.maximum(low - high[i], low[i] - high), 0.0)
        near = np.einsum("ij,ij->i", gap, gap) <= reach * reach
        runs.append(joined(start[near], stop[near]))
    sizes = stop - start
    if sum(float(size) * float(np.sum(b - a)) for size, (a, b) in zip(sizes, runs)) > pairs:
        return None

    def task(i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        K = tiles.gaussian_block(rows[start[i] : stop[i]], _clusters.gather(rows, *runs[i]), sigma)
        return _clusters.keep(np.asarray(K, dtype=np.float64), *runs[i], drop)

    some = range(0, len(leaves), max(1, len(leaves) // LOOK))
    if sum(len(task(i)[1]) for i in some) * VALUE_BYTES * len(leaves) / len(some) > 1.5 * most:
        return None
    parts, held = [], 0.0
    for part in parallel.run(task, len(leaves), n_threads=n_threads, stage="near values"):
        held += VALUE_BYTES * len(part[1])
        if held > most:
            return None
        parts.append(part)
    # what is left out is at most ``drop``, and its own rounding; a value is at most 1
    return NearSummation(order, parts, drop * (1.0 + 1e-9) + UNIT32, n_threads)


def joined(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs in ascending order, those that touch made one."""
    if not len(start):
        return start, stop
    apart = start[1:] != stop[:-1]
    return start[np.append(True, apart)], stop[np.append(apart, True)]
