"""Kernels on histograms, rows of numbers >= 0: chi-squared and intersection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastkpca.base.rounding import UNIT, unit_roundoff
from fastkpca.kernels import Cost, Kernel, KernelParameterError, Offer, Summary, Summation
from fastkpca.kernels.parameters import positive_number, resolved

from .kernels.parameters import Correlation, evenly

__all__ = ["ChiSquared", "Intersection"]


def _refuse_negative(kernel: str, *arrays: np.ndarray) -> None:
    least = min((float(array.min()) for array in arrays if array.size), default=0.0)
    if least < 0.0:
        raise KernelParameterError(f"{kernel}: rows have values down to {least:.3g}; histograms are not negative")


def _chi_squares(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """sum_j (x_j - y_j)^2 / (x_j + y_j), float64; a bin that is empty in both is left out."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    _refuse_negative("chi_squared", X, Y)
    squares, sums = np.zeros((len(X), len(Y))), np.empty((len(X), len(Y)))
    for x, y in zip(X.T, Y.T):
        values = np.subtract.outer(x, y)
        np.add.outer(x, y + np.finfo(float).tiny, out=sums)
        values *= values
        values /= sums
        squares += values
    return squares


class ChiSquared(Correlation):
    """Chi-squared kernel exp(-gamma sum_j (x_j - y_j)^2 / (x_j + y_j)), scikit-learn's ``chi2_kernel``.

    For histograms (Zhang, Marszalek, Lazebnik, Schmid 2007).

    Parameters
    ----------
    gamma : float, optional
        Default: one over the mean of the sum, as in that paper.
    """

    api_version = 1
    parameters = {"gamma": None}

    gamma: float | None

    def check(self) -> None:
        if self.gamma is not None:
            self.__dict__["gamma"] = positive_number("chi_squared", "gamma", self.gamma)

    def resolve(self, data: Summary) -> ChiSquared:
        _refuse_negative("chi_squared", data.box[0])
        if self.gamma is not None:
            return self
        rows = evenly(data.sample)
        mean = float(_chi_squares(rows, rows).sum()) / max(1, len(rows) * (len(rows) - 1))
        if not mean > 0.0:
            raise KernelParameterError("chi_squared: all rows of X are equal, so there is no mean distance; give gamma")
        return ChiSquared(gamma=1.0 / mean)

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        values, gamma = _chi_squares(X, Y), resolved("chi_squared", "gamma", self.gamma)
        return np.exp(np.multiply(values, -gamma, out=values), out=values).astype(X.dtype, copy=False)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float:
        # d + 5 roundings of the exponent t, where t exp(-t) <= 1/e, and of exp
        return (data.n_features + 5.0) * UNIT + 4.0 * UNIT + 2.0 * unit_roundoff(dtype)


class Intersection(Kernel):
    """Histogram intersection sum_j min(x_j, y_j) (Swain, Ballard 1991).

    Products take the sorted values of each column (Maji, Berg, Malik 2008): O(N d log N) instead of O(N^2 d).
    """

    api_version = 1
    positive_semidefinite = True

    def resolve(self, data: Summary) -> Intersection:
        _refuse_negative("intersection", data.box[0])
        return self

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        _refuse_negative("intersection", X, Y)
        values, part = np.zeros((len(X), len(Y))), np.empty((len(X), len(Y)))
        for x, y in zip(np.asarray(X, dtype=np.float64).T, np.asarray(Y, dtype=np.float64).T):
            values += np.minimum.outer(x, y, out=part)
        return values.astype(X.dtype, copy=False)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X.sum(axis=1, dtype=np.float64))

    def value_bound(self, data: Summary) -> float:
        return 1.01 * float(data.box[1].sum())

    def entry_error(self, data: Summary, dtype: np.dtype) -> float:
        # d - 1 additions and the rounding to the tiles' type, each of at most the largest value
        return (data.n_features * UNIT + 2.0 * unit_roundoff(dtype)) * self.value_bound(data)

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Sequence[Offer]:
        _refuse_negative("intersection", data_x.box[0], data_y.box[0])  # this product calls no block
        n, d = data_y.n_samples, data_y.n_features
        # of a column: n roundings of the sum below and 2 n of that above, all of sizes up to x_i sum_j |u_j|
        rounding = (3 * n + d + 4) * UNIT * max(self.value_bound(data_x), self.value_bound(data_y))
        if tol is not None and rounding > tol:
            return ()
        cost = Cost(
            row_flops=40.0 * d,
            setup_flops=30.0 * d * (data_x.n_samples + n) * math.log2(n + 2),
            residual=rounding,
            memory=32.0 * d * n,
        )
        return (Offer("sorted", cost, lambda X, Y=None: _SortedProduct(X, Y, rounding)),)


class _SortedProduct(Summation):
    """K U through the sorted values of each column: sums of y u over smaller y, and x times sums of u over larger."""

    def __init__(self, X: Any, Y: Any, error_bound: float):
        self.symmetric, self.error_bound = Y is None, error_bound
        self._x = np.ascontiguousarray(X.all().T, dtype=np.float64)
        self._y = self._x if Y is None else np.ascontiguousarray(Y.all().T, dtype=np.float64)
        self.shape = (self._x.shape[1], self._y.shape[1])

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._product(self._x, self._y, U)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._product(self._y, self._x, U)

    @staticmethod
    def _product(X: np.ndarray, Y: np.ndarray, U: np.ndarray) -> np.ndarray:
        result = np.zeros((X.shape[1], U.shape[1]))
        below, above = np.zeros((2, Y.shape[1] + 1, U.shape[1]))
        for x, y in zip(X, Y):
            order = np.argsort(y, kind="stable")
            V = U[order]
            np.cumsum(y[order, None] * V, axis=0, out=below[1:])
            np.cumsum(V[::-1], axis=0, out=above[-2::-1])
            ranks = np.searchsorted(y[order], x, side="right")
            result += below[ranks] + x[:, None] * above[ranks]
        return result
