"""The second moment of features about zero, for kernel PCA without centring, from the centred one."""

from __future__ import annotations

import numpy as np

from ..base.protocol import Moments, OperatorMoments
from ..base.rounding import UNIT, rounding_factor

__all__ = ["about", "about_zero"]


def about(moments: Moments, *, center: bool) -> Moments:
    """The moments themselves, or those about zero."""
    return moments if center else about_zero(moments)


def about_zero(moments: Moments) -> Moments:
    """The same sums with the second moment about zero, and so with a mean of zero: C + N m m'.

    Nothing cancels: both terms are semidefinite. The moments that are added up stay the centred ones.
    """
    return _AboutZero(moments)


class _RankOneMore:
    """C + m m' for an operator C: norms and errors add."""

    def __init__(self, operator: OperatorMoments, m: np.ndarray, n_features: int):
        self._operator, self._m, self.n_features = operator, m, n_features
        self._square = float(m @ m) * (1.0 + 4.0 * rounding_factor(len(m)) * UNIT)

    @property
    def trace(self) -> float:
        return self._operator.trace + self._square

    @property
    def norm(self) -> float:
        return self._operator.norm + self._square

    @property
    def product_error(self) -> float:
        return self._operator.product_error + (4.0 * rounding_factor(len(self._m)) + 8.0) * UNIT * self._square

    @property
    def indefinite(self) -> float:
        return self._operator.indefinite

    def matmat(self, C: np.ndarray) -> np.ndarray:
        return self._operator.matmat(C) + np.multiply.outer(self._m, self._m @ C)


class _AboutZero(OperatorMoments):
    """Read only: rows are added to the moments that it is made of."""

    def __init__(self, moments: Moments):
        self.map, self._moments = moments.map, moments
        self.count, self.residual_trace = moments.count, moments.residual_trace
        self._root = np.sqrt(self.count) * moments.mean

    @property
    def mean(self) -> np.ndarray:
        return np.zeros(self.map.n_features)

    @property
    def trace(self) -> float:
        return self._moments.trace + float(self._root @ self._root)

    def dense(self) -> np.ndarray | None:
        C = self._moments.dense()
        return None if C is None else C + np.multiply.outer(self._root, self._root)

    def operator(self) -> OperatorMoments | None:
        return None if self._moments.operator() is None else self

    def _sum(self) -> _RankOneMore:
        operator = self._moments.operator()
        assert operator is not None
        return _RankOneMore(operator, self._root, self.map.n_features)

    def matmat(self, C: np.ndarray) -> np.ndarray:
        return self._moments.matmat(C) + np.multiply.outer(self._root, self._root @ C)

    @property
    def norm(self) -> float:
        return self._sum().norm

    @property
    def product_error(self) -> float:
        return self._sum().product_error

    @property
    def indefinite(self) -> float:
        return self._moments.indefinite

    @property
    def error(self) -> float:
        return self._moments.error
