"""Second moments of monomial features from fewer sums: of products of two features that are equal, one is enough.

Without them 12 problems of benchmarks/speed/random_set.py took 1.5 times as long (median) from 5,000 rows on, up to 9
times; 8 of fewer rows 1.15 (see also special_cases.py there).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import comb

import numpy as np
import scipy.special

from .._core import multiindex
from .._core.arrays import contiguous
from ..base.protocol import FeatureMap, Moments
from ..base.rounding import UNIT, rounding_factor

MIN_SUMMED_FEATURES, MAX_SUMMED_FEATURES = 48, 2500
"""Features for which the sums are made: below, they take as long as all products; beyond, their table takes memory."""
MAX_DEGREE = 64
"""Largest degree of a polynomial kernel."""


@lru_cache(maxsize=64)
def product_flops(d: int, degree: int, lower: bool) -> float | None:
    """Flops of the distinct sums for a row; None where they do not save time."""
    D = comb(d + (degree if lower else degree - 1), degree)
    if not (MIN_SUMMED_FEATURES <= D <= MAX_SUMMED_FEATURES and 2 <= degree <= MAX_DEGREE):
        return None
    rows, columns = multiindex.ranges(d + lower, degree)[0][:, (1, 3)].T
    if rows @ columns >= D * (D + 1) / 2:
        return None
    return 2.0 * float(rows @ columns)


@lru_cache(maxsize=4)
def product_sums(d: int, degree: int, lower: bool, binomial: bool) -> multiindex.ProductSums | None:
    """For the monomials of d coordinates of this degree, and of ``lower`` ones; None where they do not save time.

    The weight of x^alpha is 1 / sqrt(alpha!), and where it is ``binomial`` another 1 / sqrt((degree - |alpha|)!), times
    what depends on the sum of the exponents of a product alone.
    """
    if product_flops(d, degree, lower) is None:
        return None
    parent, coordinate, _, start = multiindex.table(d, degree)
    sequences = np.zeros((len(parent), degree), dtype=np.int32)  # with 1 as coordinate 0
    for k in range(1, degree + 1):
        rows = slice(start[k], start[k + 1])
        sequences[rows, :-1] = sequences[parent[rows], 1:]
        sequences[rows, -1] = coordinate[rows] + 1
    if not lower:
        sequences = sequences[start[degree] :] - 1
    counts = np.stack([(sequences == j).sum(axis=1) for j in range(d + lower)], axis=1)
    counts = counts if binomial or not lower else counts[:, 1:]
    return multiindex.ProductSums(sequences, np.exp(-0.5 * scipy.special.gammaln(counts + 1.0).sum(axis=1)))


class MonomialMoments(Moments):
    """Sums of the products that differ: the second moment about zero, from which the mean's part is subtracted."""

    def __init__(
        self,
        feature_map: FeatureMap,
        scaled: Callable[[np.ndarray], np.ndarray],
        expansion: multiindex.Expansion,
        products: multiindex.ProductSums,
    ):
        """``scaled``: from a tile to what the ``expansion`` takes."""
        self.map, self._scaled, self._expansion, self._products = feature_map, scaled, expansion, products
        self.count = self.residual_trace = 0.0
        self._about_zero: float | None = 0.0
        self._points = self._times = 0  # those summed by themselves, and how often such sums were added up, at most
        self._sums, self._totals = np.zeros(products.n_sums), np.zeros(products.n_features)

    def update(self, X: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        if weights is not None:
            raise NotImplementedError("these sums are of rows without weights")
        X = contiguous(X, np.float64)
        residual = self.map.residual(X)
        self.residual_trace += float(residual.sum())
        points, times = self._products.add(self._expansion, self._scaled(X), self._sums, self._totals)
        self._points, self._times = max(self._points, points), self._times + times
        self.count += len(X)
        self._about_zero = None
        return residual

    def merge(self, other: Moments) -> Moments:
        assert isinstance(other, MonomialMoments)
        self.count += other.count
        self.residual_trace += other.residual_trace
        self._sums += other._sums
        self._totals += other._totals
        self._points, self._times = max(self._points, other._points), max(self._times, other._times) + 1
        self._about_zero = None
        return self

    @property
    def mean(self) -> np.ndarray:
        return self._totals / self.count

    @property
    def _trace_about_zero(self) -> float:
        if self._about_zero is None:
            self._about_zero = self._products.trace(self._sums)
        return self._about_zero

    @property
    def trace(self) -> float:
        return self._trace_about_zero - float(self._totals @ self._totals) / self.count

    @property
    def error(self) -> float:
        """Each sum of products is off by its rounding times the sum of the terms' sizes. So is, in norm, the matrix of
        all of them by that times its trace, and the mean's part by twice as much. Sums of few points are added up, and
        those of tasks along a tree: a term goes through far fewer additions than there are rows. All of the former may
        round alike, as where rows are equal.
        """
        additions = rounding_factor(self._points) + self._times
        terms = 3.0 * additions + 12.0 * self._products.degree + 16.0
        return terms * UNIT * self._trace_about_zero

    def dense(self) -> np.ndarray:
        return self._products.second_moment(self._sums, self._totals / np.sqrt(self.count))

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        header = {"count": self.count, "residual_trace": self.residual_trace}
        header |= {"points": self._points, "times": self._times}
        return header, {"sums": self._sums, "totals": self._totals}

    def restore(self, header: dict, arrays: dict[str, np.ndarray]) -> Moments:
        self.count, self.residual_trace = float(header["count"]), float(header["residual_trace"])
        self._points, self._times = int(header["points"]), int(header["times"])
        self._sums, self._totals = np.array(arrays["sums"]), np.array(arrays["totals"])
        self._about_zero = None
        return self
