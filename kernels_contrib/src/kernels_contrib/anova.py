"""The ANOVA kernel: all interactions of a given number of columns."""

from __future__ import annotations

import math

import numpy as np

from fastkpca.base.rounding import UNIT, unit_roundoff
from fastkpca.kernels import Kernel, KernelParameterError, Summary
from fastkpca.kernels.parameters import length, resolved
from fastkpca.methods import check_count

from .kernels.parameters import by_median

__all__ = ["Anova"]


class Anova(Kernel):
    """ANOVA kernel: the sum over all sets of ``degree`` columns of the product of their Gaussians.

    Stitson, Gammerman, Vapnik, Vovk, Watkins, Weston, Support vector regression with ANOVA decomposition kernels, 1999.
    These are elementary symmetric polynomials of the Gaussians exp(-(x_j - y_j)^2 / (2 sigma^2)) of single columns,
    which one sweep over the columns adds up (Shawe-Taylor, Cristianini 2004, section 9.2), in d * ``degree`` steps.

    Parameters
    ----------
    degree : int
        Columns that interact, 2 by default; at most the number of columns.
    sigma : float, optional
        Default: the median distance between rows, over sqrt(2 d), so that it is about single columns.
    """

    api_version = 1
    positive_semidefinite = True
    translation = "kernel"
    nonnegative = True
    parameters = {"degree": 2, "sigma": None}
    width_parameter = "sigma"

    degree: int
    sigma: float | None

    def check(self) -> None:
        self.__dict__["degree"] = check_count(self.degree, "degree")
        if self.sigma is not None:
            self.__dict__["sigma"] = length("anova", "sigma", self.sigma)

    def resolve(self, data: Summary) -> Anova:
        self._terms(data.n_features)
        if self.sigma is not None:
            return self
        return Anova(degree=self.degree, sigma=by_median(data) / math.sqrt(data.n_features))

    def _terms(self, d: int) -> float:
        """The number of sets of columns: k(x, x)."""
        if self.degree > d or math.comb(d, self.degree) > 1e100:
            raise KernelParameterError(
                f"anova: degree is {self.degree}; rows have {d} columns, which have no or too many sets of so many"
            )
        return float(math.comb(d, self.degree))

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        sigma = resolved("anova", "sigma", self.sigma)
        self._terms(X.shape[1])
        A, B = (np.asarray(rows, dtype=np.float64) / sigma for rows in (X, Y))
        sums = [np.ones((len(A), len(B)))] + [np.zeros((len(A), len(B))) for _ in range(self.degree)]
        for column in range(A.shape[1]):
            values = np.subtract.outer(A[:, column], B[:, column])
            np.multiply(values, values, out=values)
            np.exp(np.multiply(values, -0.5, out=values), out=values)
            for p in range(min(self.degree, column + 1), 0, -1):
                sums[p] += values * sums[p - 1]
        return sums[self.degree].astype(X.dtype, copy=False)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self._terms(X.shape[1]))

    def entry_error(self, data: Summary, dtype: np.dtype) -> float:
        # Error of a Gaussian: t exp(-t) <= 1/e with 4 roundings of t, two ulp of exp, and rows that the shift and the
        # division moved by 3 u |x| each, where the slope is at most exp(-1/2) / sigma; d + degree of positive sums.
        assert self.sigma is not None  # resolved
        d = data.n_features
        each = 8.0 * UNIT + 6.0 * UNIT * data.radius / self.sigma
        return self._terms(d) * (self.degree * each + (d + self.degree) * UNIT + 2.0 * unit_roundoff(dtype))
