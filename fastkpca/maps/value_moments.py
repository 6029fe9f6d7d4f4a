"""Second moments of phi(x) = L^-1 k(P, x) from those of the values k(P, x) themselves: no row is solved for.

With C the centred second moment of the values, that of the features is M = L^-1 C L^-T, which takes D^3 operations once
instead of D^2 for each row. What is rounded on the way is multiplied by the condition of L, so this is for loose
tolerances, and a bound of it goes with the moments. With u the unit roundoff, and absolute values by entries:

- Sums. |error of C| <= g d d', d_j = C_jj^(1/2), g = rounding_factor(n) u as for any moments (Cauchy and Schwarz), so
  that M errs in norm, and in trace, by at most g |w|^2, w = |L^-1| d.
- Solves. L X = C, then L M = X': |error of X| <= h |L^-1| |L| |X| with h = rounding_factor(D) u (Higham 2002, theorem
  8.5). With the norms m of the rows of M and x of the columns of X, and q >= ||L^-1| |L||_2, the error of M has a
  Frobenius norm of at most h ||L^-1| |L| m| + h q ||L^-1| x|, and a trace of D^(1/2) times that.
- The mean L^-1 m errs by h |L^-1| |L| |L^-1 m| and by what m does. Sums about zero take n |mean|^2.
- The computed inverse is off by h q of its own size, which COVER covers while h q is small.

The residual trace is the sum of k(x, x) less that of M and n |mean|^2. Residuals of single rows, to draw rows in
proportion to them, are known of few rows only: the first features of a row, which are cheap, bound its residual from
above. Rows are drawn by these bounds, and each is kept with the share that its residual has of its bound.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from .._core import moments as _moments
from .._core import pivots as _core
from ..base import parallel
from ..base.protocol import FeatureMap, Kernel, Moments
from ..base.rounding import UNIT, rounding_factor

__all__ = ["FactoredMap", "ValueMoments"]

MANY_TERMS = 1_000_000
"""Rows whose sums are allowed for at least, so that few rows tell what the error for many is over the trace."""
COVER = 1.1
"""Over the computed inverse, which is off by up to WELL_CONDITIONED, and over the rounding of what it multiplies."""
WELL_CONDITIONED = 1e-3
"""Largest error of the computed inverse, over its size."""


class FactoredMap(FeatureMap):
    """phi(x) = L^-1 k(P, x) with L = ``factor``, lower triangular, and ``entry_error`` that of a kernel value.

    What is asked of such a map here; `PivotMap`, which is one, imports this module.
    """

    kernel: Kernel
    factor: np.ndarray
    entry_error: float

    def values(self, X: np.ndarray) -> np.ndarray:
        """k(P, X) of a tile, (D, n); a new array."""
        raise NotImplementedError

    def bounds_excess(self, n: float, trace: float) -> float:
        """How far the sum of ``row_bounds`` may lie above the residual trace, for n rows and tr K."""
        raise NotImplementedError


class ValueMoments(Moments):
    """Accumulates the values; ``finished`` gives the moments of the features.

    Parameters
    ----------
    feature_map : FactoredMap
    first : int
        Features that bound the residual of a row; 0: it is not asked for.
    """

    map: FactoredMap

    def __init__(self, feature_map: FactoredMap, first: int = 0):
        super().__init__(feature_map)
        self.diagonal = 0.0
        self._corner = np.ascontiguousarray(feature_map.factor[:first, :first])

    def update(self, X: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray | None:
        """Returns upper bounds of the rows' residuals (`FeatureMap.row_bounds`), where these are asked for."""
        if weights is not None:
            raise NotImplementedError("these sums are of rows without weights")
        X = np.ascontiguousarray(X, dtype=np.float64)
        values = self.map.values(X)
        self.diagonal += float(np.sum(self.map.kernel.diagonal(X), dtype=np.float64))
        self.count = _moments.update(values, None, self.count, self._mean, self._scatter)
        if not len(self._corner):
            return None
        few = values[: len(self._corner)]
        _core.solve(self._corner, few)
        return self.map.row_bounds(X, few.T)

    def merge(self, other: Moments) -> Moments:
        assert isinstance(other, ValueMoments)
        self.diagonal += other.diagonal
        return super().merge(other)

    def finished(self) -> Moments:
        with parallel.blas_threads():  # two threads of BLAS give other bits than one
            return _Solved(self)


class _Solved(Moments):
    """Read only: rows are added to the values' moments."""

    map: FactoredMap

    def __init__(self, values: ValueMoments):
        self.map, self.count = values.map, values.count
        L, D, n = self.map.factor, self.map.n_features, self.count
        self._inverse, self._size = np.abs(lapack.dtrtri(L, lower=1)[0]), np.abs(L)
        self._solve_error = 1.01 * (rounding_factor(D) + 4.0) * UNIT
        self._sum_error = 1.01 * (rounding_factor(int(max(n, MANY_TERMS))) + 16.0) * UNIT
        C, mean = values.dense(), values.mean
        assert C is not None
        # where values hardly vary, what is left of them is the rounding of their mean
        spread = np.sqrt(C.diagonal() + n * (8.0 * UNIT * mean) ** 2)
        X = scipy.linalg.solve_triangular(L, C, lower=True, check_finite=False)
        M = scipy.linalg.solve_triangular(L, X.T, lower=True, check_finite=False)
        centre = scipy.linalg.solve_triangular(L, mean, lower=True, check_finite=False)
        ones = np.ones(D)
        # q: ||A||_2^2 <= |A|_1 |A|_inf, A = |L^-1| |L|
        rows, columns = self._conditioned(ones).max(), (self._size.T @ (self._inverse.T @ ones)).max()
        q = COVER * float(np.sqrt(rows * columns))
        error = self._error_of_sums(spread) + self._error_of_solves(X, M, q) + self._error_of_mean(mean, centre, spread)
        well = self._solve_error * q <= WELL_CONDITIONED and np.isfinite(error)
        self._error = error if well else float("inf")
        self._scatter = np.tril((M + M.T) / 2.0)
        self._mean = np.stack([centre, np.zeros(D)])
        self._set_residual(values.diagonal)

    # the errors, as the module's notes have them

    def _conditioned(self, x: np.ndarray) -> np.ndarray:
        """|L^-1| |L| x"""
        return np.asarray(self._inverse @ (self._size @ x))

    def _error_of_sums(self, spread: np.ndarray) -> float:
        return self._sum_error * float(np.sum((COVER * (self._inverse @ spread)) ** 2))

    def _error_of_solves(self, X: np.ndarray, M: np.ndarray, q: float) -> float:
        """Of the trace: D^(1/2) times that in Frobenius norm."""
        first = q * float(np.linalg.norm(self._inverse @ _lengths(X.T)))
        second = float(np.linalg.norm(self._conditioned(_lengths(M))))
        return 1.01 * float(np.sqrt(len(M))) * COVER * self._solve_error * (COVER * first + second)

    def _error_of_mean(self, mean: np.ndarray, centre: np.ndarray, spread: np.ndarray) -> float:
        """Of n |mean|^2, which sums about zero take."""
        n, size = self.count, float(np.linalg.norm(centre))
        of_values = self._inverse @ (self._sum_error * (np.abs(mean) + spread / np.sqrt(max(n, 1.0))))
        of_solve = self._solve_error * self._conditioned(np.abs(centre))
        off = COVER * float(np.linalg.norm(of_solve + of_values))
        return n * off * (2.0 * size + off)

    def _set_residual(self, diagonal: float) -> None:
        n, phi = self.count, self.map
        left = diagonal - self.trace - n * float(self.mean @ self.mean)
        error = 2.0 * (rounding_factor(int(max(n, MANY_TERMS))) + 16.0) * UNIT * diagonal
        error += n * phi.entry_error + self._error  # the trace that is taken off may be too large by as much
        self.residual_trace = max(left, 0.0) + error + phi.defect_norm(n, diagonal)
        self._bounds_trace = self.residual_trace + error + phi.bounds_excess(n, diagonal)

    @property
    def bounds_trace(self) -> float:
        return self._bounds_trace

    @property
    def error(self) -> float:
        return self._error


def _lengths(A: np.ndarray) -> np.ndarray:
    """Norms of the rows, where squares may leave the range of float64: L^-1 C goes with k(x, x)^(3/2)."""
    size = float(np.abs(A).max()) or 1.0
    return np.asarray(size * np.linalg.norm(A / size, axis=1))
