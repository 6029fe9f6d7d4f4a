"""Products through a feature map: K U ~ Phi_x (Phi_y' U), two passes over rows and nothing over pairs.

For the polynomial this is exact, and its coefficients are the A_k of Raykar & Ankur 2003, section 7; for the Gaussian
it is their truncated expansion about one centre, section 8 (the C_m).
"""

from __future__ import annotations

import numpy as np

from ..base import parallel
from ..base.protocol import FeatureMap, Summation
from ..base.rounding import UNIT, rounding_factor
from ..maps.passes import accumulate, apply
from ..rows.view import Rows

__all__ = ["ExpansionSummation", "expansion_rounding"]


def expansion_rounding(rounding: float, n: int, D: int) -> float:
    """Bound on the error of a product by rounding, over max |phi(x)| max |phi(y)| sum |u|.

    ``rounding`` is ``FeatureMap.rounding``, n the number of rows that are summed and D that of features: the two
    features, the sum over rows (in the worst case, since equal rows round alike: a tile's rows, the tiles of a task,
    a tree of tasks), and that over features (five standard deviations: Higham and Mary 2019).
    """
    step = parallel.tile_rows(D)
    in_rows = min(float(n), step + n / (64.0 * step) + 8.0)
    return 1.01 * (2.0 * rounding + (in_rows + rounding_factor(D) + 8.0) * UNIT)


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
