"""Products through a feature map: K U ~ Phi_x (Phi_y' U), two passes over rows and nothing over pairs.

For the polynomial this is exact, and its coefficients are the A_k of Raykar & Ankur 2003, section 7; for the Gaussian
it is their truncated expansion about one centre, section 8 (the C_m).
"""

from __future__ import annotations

import numpy as np

from .. import execute
from ..protocol import FeatureMap, Summation
from ..rows import Rows

__all__ = ["ExpansionSummation"]


class ExpansionSummation(Summation):
    """K U through a feature map.

    Parameters
    ----------
    feature_map : FeatureMap
    rows_x, rows_y : Rows
        Targets and sources; rows_y None: the same rows.
    error_bound : float
        On every entry of the kernel matrix.
    """

    symmetric = True

    def __init__(
        self,
        feature_map: FeatureMap,
        rows_x: Rows,
        rows_y: Rows | None = None,
        *,
        error_bound: float = 0.0,
        n_threads: int = 1,
    ):
        self.map = feature_map
        self.rows_x = rows_x
        self.rows_y = rows_x if rows_y is None else rows_y
        self.symmetric = rows_y is None
        self.shape = (self.rows_x.n_samples, self.rows_y.n_samples)
        self.error_bound = error_bound
        self.n_threads = n_threads

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return apply(self.map, self.rows_x, accumulate(self.map, self.rows_y, U, self.n_threads), self.n_threads)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return apply(self.map, self.rows_y, accumulate(self.map, self.rows_x, U, self.n_threads), self.n_threads)


def accumulate(feature_map: FeatureMap, rows: Rows, U: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """Phi' U over all rows: (D, k), float64."""
    n, step = rows.n_samples, execute.tile_rows(feature_map.n_features)
    tiles_a_task = max(1, -(-n // (64 * step)))
    span = step * tiles_a_task

    def task(i: int) -> np.ndarray:
        total = np.zeros((feature_map.n_features, U.shape[1]))
        for start in range(i * span, min(n, (i + 1) * span), step):
            stop = min(n, start + step)
            total += feature_map.accumulate(rows.tile(start, stop), U[start:stop])
        return total

    return execute.tree_reduce(task, -(-n // span), np.add, n_threads=n_threads)


def apply(
    feature_map: FeatureMap,
    rows: Rows,
    C: np.ndarray,
    n_threads: int = 1,
    *,
    constant: np.ndarray | None = None,
    out: np.ndarray | None = None,
    progress: execute.Progress | None = None,
    stage: str = "",
) -> np.ndarray:
    """Phi C - constant over all rows: (N, k), into ``out`` (any float dtype) where given."""
    n, step = rows.n_samples, execute.tile_rows(feature_map.n_features)
    result = np.empty((n, C.shape[1])) if out is None else out

    def task(i: int) -> None:
        start, stop = i * step, min(n, (i + 1) * step)
        part = feature_map.apply(rows.tile(start, stop), C)
        result[start:stop] = part if constant is None else part - constant

    for _ in execute.run(task, -(-n // step), n_threads=n_threads, progress=progress, stage=stage):
        pass
    return result
