"""The second moment of features about zero, for kernel PCA without centring, from the centred one."""

from __future__ import annotations

import numpy as np

from ..base.protocol import Moments
from ..base.rounding import UNIT, rounding_factor
from .combined import OfMoments


def second_moment(moments: Moments, *, center: bool) -> Moments:
    """The moments themselves, or those about zero."""
    return moments if center else about_zero(moments)


def about_zero(moments: Moments) -> Moments:
    """The same sums with the second moment about zero, and so with a mean of zero: C + N m m'.

    Nothing cancels: both terms are semidefinite. The moments that are added up stay the centred ones.
    """
    return _AboutZero(moments)


class _AboutZero(OfMoments):
    """Read only: rows are added to the moments that it is made of."""

    def __init__(self, moments: Moments):
        self.map, self._of_part = moments.map, moments
        self.count, self.residual_trace = moments.count, moments.residual_trace
        self._root = np.sqrt(self.count) * moments.mean

    @property
    def mean(self) -> np.ndarray:
        return np.zeros(self.map.n_features)

    @property
    def trace(self) -> float:
        return self._of_part.trace + float(self._root @ self._root)

    def dense(self) -> np.ndarray | None:
        C = self._of_part.dense()
        return None if C is None else C + np.multiply.outer(self._root, self._root)

    @property
    def _square(self) -> float:
        """Upper bound on the squared norm of the addition."""
        return float(self._root @ self._root) * (1.0 + 4.0 * rounding_factor(len(self._root)) * UNIT)

    def matmat(self, C: np.ndarray, n_threads: int = 1) -> np.ndarray:
        return self._of_part.matmat(C, n_threads) + np.multiply.outer(self._root, self._root @ C)

    @property
    def norm(self) -> float:
        return self._part_operator.norm + self._square

    @property
    def product_error(self) -> float:
        return self._part_operator.product_error + (4.0 * rounding_factor(len(self._root)) + 8.0) * UNIT * self._square

    @property
    def indefinite(self) -> float:
        return self._of_part.indefinite

    @property
    def error(self) -> float:
        return self._of_part.error
