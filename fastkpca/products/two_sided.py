"""Base class of products that prepare X and Y in the same way, so that K U and K' U share one loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.protocol import Summary, Summation
from ..rows.view import Rows

__all__ = ["TwoSidedSummation", "joint_box"]


def joint_box(data_x: Summary, data_y: Summary) -> np.ndarray:
    """The box (2, d) that holds the rows of both."""
    return np.stack([np.minimum(data_x.box[0], data_y.box[0]), np.maximum(data_x.box[1], data_y.box[1])])


class TwoSidedSummation(Summation):
    """K U from sources to targets, and K' U the same way back.

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
        raise NotImplementedError

    def _multiply(self, U: np.ndarray, targets: Any, sources: Any) -> np.ndarray:
        """K U, for two sides from ``_prepared``."""
        raise NotImplementedError

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, self._targets, self._sources)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, self._sources, self._targets)
