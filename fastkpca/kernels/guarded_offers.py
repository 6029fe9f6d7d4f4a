"""What a kernel from outside offers, as the core sees it: its feature maps and its products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.protocol import FeatureMap, Kernel, Moments, Summary, Summation
from ..rows.view import Rows
from . import contract
from .watch import Proxy, Watch, read_only

__all__ = ["GuardedMap", "GuardedSummation"]

TILE = 8192
"""Kernel values of the one exact row that are held at once."""


class GuardedMap(Proxy, FeatureMap):
    """A feature map of a class from outside."""

    thread_safe = True  # where the map and the kernel are

    def __init__(self, feature_map: FeatureMap, watch: Watch, kernel_is_safe: bool):
        self.__dict__.update(_inner=feature_map, _watch=watch, _kernel_is_safe=kernel_is_safe)
        self.__dict__.update(thread_safe=bool(feature_map.thread_safe) and kernel_is_safe)

    def features(self, X: np.ndarray) -> np.ndarray:
        return self._array("features", (len(X), self.n_features), X)

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        residual = self._array("residual", (len(X),), X, Phi)
        if not (residual >= 0).all():
            row = int(np.argmin(residual >= 0))
            observed = f"returned {residual[row]} (first at row {row})"
            self._refuse("residual", (X,), observed, "it is never negative: an upper bound")
        return residual

    def outside_error(self, X: np.ndarray) -> np.ndarray:
        return self._array("outside_error", (len(X),), X)

    def accumulate(self, X: np.ndarray, U: np.ndarray) -> np.ndarray:
        if self._inherits("accumulate"):
            return FeatureMap.accumulate(self, X, U)
        return self._array("accumulate", (self.n_features, U.shape[1]), X, U)

    def apply(self, X: np.ndarray, C: np.ndarray) -> np.ndarray:
        if self._inherits("apply"):
            return FeatureMap.apply(self, X, C)
        return self._array("apply", (len(X), C.shape[1]), X, C)

    def new_moments(self) -> Moments:
        return Moments(self) if self._inherits("new_moments") else self._call("new_moments")

    def widened(self, kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        # what it raises is about the user's rows
        return self._around(self._inner.widened(kernel, data, radius))

    def _around(self, feature_map: FeatureMap) -> FeatureMap:
        return self if feature_map is self._inner else GuardedMap(feature_map, self._watch, self._kernel_is_safe)


class GuardedSummation(Proxy, Summation):
    """A product from outside; the first one in each direction is held against one row of exact values.

    Parameters
    ----------
    summation : Summation
    watch : Watch
    kernel : Kernel
        The guard whose values are exact.
    error : float
        Of a kernel value.
    rows_x, rows_y : Rows
    """

    gives_norm = False  # nothing looks at a norm from outside

    def __init__(
        self, summation: Summation, watch: Watch, kernel: Kernel, error: float, rows_x: Rows, rows_y: Rows | None
    ):
        self.__dict__.update(_inner=summation, _watch=watch, _kernel=kernel, _error=error, _done=set())
        self.__dict__.update(_rows=(rows_x, rows_x if rows_y is None else rows_y))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._product("matmat", U, *self._rows)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._product("rmatmat", U, *self._rows[::-1])

    def _product(self, method: str, U: np.ndarray, targets: Rows, sources: Rows) -> np.ndarray:
        U = read_only(np.ascontiguousarray(U, dtype=np.float64))
        product = self._array(method, (len(targets), U.shape[1]), U)
        if not np.isfinite(product.sum()) and not np.isfinite(product).all() and np.isfinite(U).all():
            row = int(np.argwhere(~np.isfinite(product))[0, 0])
            self._refuse(method, (U,), f"returned a product that is not finite (first at row {row})", "it must be")
        if method not in self._done and U.size:
            self._done.add(method)
            self._hold_one_row(method, U, product, targets, sources)
        return product

    def _hold_one_row(self, method: str, U: np.ndarray, product: np.ndarray, targets: Rows, sources: Rows) -> None:
        n, m = len(targets), len(sources)
        index = np.random.default_rng(n).integers(n, size=1)
        X = targets.take(index)
        exact, sizes = np.zeros((1, U.shape[1])), np.zeros((1, U.shape[1]))
        for start in range(0, m, TILE):
            K = self._kernel.block(X, sources.tile(start, min(m, start + TILE)))
            exact += K @ U[start : start + TILE]
            sizes += np.abs(K) @ np.abs(U[start : start + TILE])
        finding = contract.product_keeps_its_bound(
            product[index], exact, sizes, U, bound=self.error_bound, error=self._error, first_row=int(index[0])
        )
        if finding.broken:
            self._refuse(method, (U,), finding.observed, finding.needed)
