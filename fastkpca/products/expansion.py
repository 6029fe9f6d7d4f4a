"""Products through a feature map: K U ~ Phi_x (Phi_y' U), two passes over rows and nothing over pairs.

For the polynomial this is exact, and its coefficients are the A_k of Raykar & Ankur 2003, section 7; for the Gaussian
it is their truncated expansion about one centre, section 8 (the C_m).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import parallel
from ..base.protocol import FeatureMap, Summary, Summation
from ..base.rounding import UNIT, rounding_factor
from ..maps.passes import accumulate, apply
from ..rows.view import Rows


def joint_box(data_x: Summary, data_y: Summary) -> np.ndarray:
    """The box (2, d) that holds the rows of both."""
    return np.stack([np.minimum(data_x.box[0], data_y.box[0]), np.maximum(data_x.box[1], data_y.box[1])])


class TwoSidedSummation(Summation):
    """K U from sources to targets, and K' U from targets to sources.

    A subclass calls ``_set_sides`` once it can prepare rows.
    """

    def _set_sides(self, rows_x: Rows, rows_y: Rows | None) -> None:
        """Targets and sources; rows_y None: the same rows."""
        self.symmetric = rows_y is None
        self.shape = (len(rows_x), len(rows_x if rows_y is None else rows_y))
        self._targets = self._prepared(rows_x)
        self._sources = self._targets if rows_y is None else self._prepared(rows_y)

    def _prepared(self, rows: Rows) -> Any:
        """One side, prepared for every product."""
        return rows

    def _multiply(self, U: np.ndarray, targets: Any, sources: Any) -> np.ndarray:
        """K U, for two sides from ``_prepared``."""
        raise NotImplementedError

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, self._targets, self._sources)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, self._sources, self._targets)


def expansion_rounding(rounding: float, n: int, D: int) -> float:
    """Bound on the error of a product by rounding, over max |phi(x)| max |phi(y)| sum |u|.

    ``rounding`` is ``FeatureMap.rounding``, n the number of rows that are summed and D that of features: the two
    features, the sum over rows (in the worst case, since equal rows round alike: a tile's rows, the tiles of a task,
    a tree of tasks), and that over features (five standard deviations: Higham and Mary 2019).
    """
    step = parallel.tile_rows(D)
    in_rows = min(float(n), step + n / (64.0 * step) + 8.0)
    return 1.01 * (2.0 * rounding + (in_rows + rounding_factor(D) + 8.0) * UNIT)


class ExpansionSummation(TwoSidedSummation):
    """K U through a feature map.

    Parameters
    ----------
    feature_map : FeatureMap
    rows_x, rows_y : Rows
        Targets and sources; rows_y None: the same rows.
    error_bound : float
        Bound on the error of every entry of the kernel matrix.
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        rows_x: Rows,
        rows_y: Rows | None = None,
        *,
        error_bound: float = 0.0,
        n_threads: int = 1,
    ):
        self.map, self.error_bound, self.n_threads = feature_map, error_bound, n_threads
        self._set_sides(rows_x, rows_y)

    def _multiply(self, U: np.ndarray, targets: Rows, sources: Rows) -> np.ndarray:
        return apply(self.map, targets, accumulate(self.map, sources, U, self.n_threads), self.n_threads)
