"""Pivoted-Cholesky feature maps: phi(x) = L^-1 k(P, x) with pivots P, L L' = K_PP + nu I, for any semidefinite kernel.

1. ``choosing``, ``probe``: the pivots P, and their number m for a tolerance.
2. `_factor`: K_PP strip by strip, and a first shift nu from its trace.
3. ``_core.factor``: L L' = K_PP + nu I; where it fails, nu grows fourfold, up to a limit.
4. `_schur_traces`: the bound c on its backward error; where nu < 1.2 c, nu = 1.25 c and step 3 again.
5. `PivotMap._set_rounding`: bound on the negative part of K - Phi Phi' (``defect``) from the margin nu' = nu - c.
6. `PivotMap.features`: phi(x) by a triangular solve (``_core.solve``).
7. `PivotMap.residual`: an upper bound on k(x, x) - |phi(x)|^2, rounding included.
8. `PivotMap.extended`: more pivots, by the Schur complement, with a shift of their own.

K_PP is the kernel matrix of the pivots, L lower triangular, and nu > 0 a small shift. Unlike in the other modules, P
are the pivots, D and c the backward error of the factor and its bound, and R the error of the triangular solve. The
residual of the map is E = K - Phi Phi'.

Rounding, so that the certificate also holds in floating point. Let r = |P|, u the unit roundoff, e a bound on the error
of a kernel value. Factor and solve are right-looking in blocks of b (32) columns. Let T_k = |L[:, k b:]|_F^2, the trace
of the Schur complement before block k: T_0 is about tr K_PP, and T_k falls as the spectrum does.

- Cholesky's backward error: L L' = K_PP + nu I + D. A block step errs by (b + 2) u |L_k| |L_k'| entrywise (Higham
  2002, theorems 8.5 and 10.3, for b columns), and by u |Schur complement| when that is stored. So |D|_2 <= c, where

      c = 1.01 u ((b + 3) T_0 + sum_(k > 0) T_k) + r e

  is computed from L. If nu >= 1.2 c, which is checked, then L L' - K_PP >= nu' I with nu' = nu - c. Without the shift
  nu the factorisation fails where K_PP is singular to working precision, and the shift makes K - Phi Phi' semidefinite.
  (The bound for any order of summation is r u T_0. For r = 1000 it needs a shift, and so leaves a residual, twenty
  times larger.)
- The triangular solve: L phi(x) = k(P, x) + R(x). By the same count

      |R(x)| <= 1.01 u ((b + 3) T_0^(1/2) + sum_(k > 0) T_k^(1/2)) |phi(x)| + r^(1/2) e.

  The count has two spare roundings a block: a diagonal entry may be applied as a multiplication by its reciprocal. That
  is a *backward* error; multiplying by an explicit inverse has no such bound (it loses cond(L), 1e7 and more here).
- So [K, Phi L'; L Phi', L L'] >= [0, R; R', nu' I] >= -[R R' / nu', 0; 0, 0], where row i of R is R(x_i)'. By the Schur
  complement K - Phi Phi' + R R' / nu' is semidefinite. The entries of R R' / nu' are at most max |R(x)|^2 / nu'
  (``defect``, about 200 u max k). All computed residuals are upper bounds: to k(x, x) - |phi|^2 are added the diagonal
  of R R' / nu' and a running error bound on the rounding of that difference.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import scipy.linalg

from .._core import pivots as _core
from .._core.arrays import contiguous
from ..base import parallel
from ..base.lapack import QUICK_ORDER
from ..base.protocol import FeatureMap, Kernel, Summary
from ..base.rounding import UNIT, rounding_factor, unit_roundoff
from ..base.stored import Record, refusing

SEMIDEFINITE = "declares itself positive semidefinite, but its values"
NO_CLAIM = "set positive_semidefinite = False for it"

MAX_NEGATIVE_RESIDUAL = 1e-5
"""Largest negative residual, over the largest k(x, x), that is taken for unknown errors of kernel values."""

WEIGHTS_ROUNDING = 1e-12
"""Rounding of phi(x).c, over |phi(x)| |c|, up to which weights of the kernel values may take the place of phi. The
guaranteed bound on the error of the features themselves (``_slope``) is ten thousand times larger."""
MARGIN_SPENT = 0.1
"""Fraction of the margin nu' that each extension of a map uses up: twenty of them leave an eighth."""


class PivotMap(FeatureMap):
    """phi(x) = L^-1 k(P, x); K - Phi Phi' is positive semidefinite up to ``defect``.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite.
    pivots : ndarray (D, d)
        Rows in the coordinates that the kernel is called with (shifted ones), in the order in which they were drawn.
    entry_error : float
        Bound on |computed - k| for the values of ``kernel.block`` and ``kernel.diagonal`` (``Kernel.entry_error``).

    Attributes
    ----------
    predicted : float
        Residual trace over trace that the rows seen while choosing the pivots predict for all rows; nan where the
        pivots were given.
    reached : bool
        True if ``predicted`` is at most the tolerance.
    nu : float
        Shift added to the diagonal of K_PP.
    """

    kind = "pivots"

    def __init__(
        self,
        kernel: Kernel,
        pivots: np.ndarray,
        *,
        entry_error: float = 0.0,
    ):
        self.kernel = kernel
        self.pivots = contiguous(pivots, np.float64)
        self.n_features = len(self.pivots)
        self.predicted = float("nan")
        self.reached = True
        self.factor, self.nu, self._margin, self.entry_error = _factor(kernel, self.pivots, entry_error)
        self._set_rounding()

    def extended(self, pivots: np.ndarray) -> PivotMap:
        """The map with more pivots Q, whose first features are those of this map; ValueError where rounding forbids it.

        L is continued by the rows of Q with a shift nu_Q of their own. The error D of the old block is at most
        nu - nu'. Let c bound |D| of the whole, and let 0 < nu'' < nu' be the new margin. Then

            L L' - K >= [nu' I  -c I; -c I  (nu_Q - c) I] >= nu'' I,   as (nu' - nu'') (nu_Q - c - nu'') >= c^2.
        """
        Q = np.ascontiguousarray(pivots, dtype=np.float64)
        old, r, b = self.n_features, self.n_features + len(Q), _core.FACTOR_BLOCK
        wide = copy(self)
        wide.pivots, wide.n_features = np.concatenate([self.pivots, Q]), r
        L = np.zeros((r, r))
        L[:old, :old], L[old:, :old] = self.factor, self.features(Q)
        below = L[old:, :old]
        schur = values_of(self.kernel, Q, Q) - below @ below.T
        size = float(np.einsum("ij,ij->", below, below))
        margin = wide._margin = (1.0 - MARGIN_SPENT) * self._margin
        c = 1.01 * UNIT * (b + 4) * float(diagonal_of(self.kernel, wide.pivots).sum()) + r * self.entry_error
        for _ in range(8):
            wide.nu = 1.01 * (c + margin + c * c / (self._margin - margin))
            if not wide.nu < schur.diagonal().max():  # a shift larger than the residual that the pivots would remove
                break
            corner = schur + wide.nu * np.eye(len(Q))
            if _core.factor(corner):
                L[old:, old:] = corner
                wide.factor = L
                traces = _schur_traces(L)
                roots = (b + 3) * float(np.sqrt(traces[0])) + float(np.sqrt(traces[1:]).sum())
                # one more than for a factor in one go: the Schur complement of the old block is stored
                bound = (b + 4) * float(traces[0]) + float(traces[1:].sum())
                bound += roots * np.sqrt(size) + rounding_factor(old) * size  # of the solve, and of the product
                bound = 1.01 * UNIT * bound + r * self.entry_error
                if c >= bound:
                    wide._set_rounding()
                    return wide
                c = bound
            c *= 1.5
        raise ValueError(f"{len(Q)} pivots cannot be added to {old}: their kernel matrix is singular to rounding")

    def _set_rounding(self) -> None:
        # |R|^2 / nu' <= (slope |phi| + level)^2
        self._slope = self._level = self.defect = 0.0
        r = self.n_features
        if r == 0:
            return
        traces = _schur_traces(self.factor)
        relative = (_core.FACTOR_BLOCK + 3) * np.sqrt(traces[0]) + np.sqrt(traces[1:]).sum()
        self._slope = 1.01 * UNIT * float(relative) / np.sqrt(self._margin)
        self._level = np.sqrt(r) * self.entry_error / np.sqrt(self._margin)
        top = float(diagonal_of(self.kernel, self.pivots).max())
        self.defect = (self._slope * np.sqrt(top) + self._level) ** 2

    def defect_norm(self, n: float, trace: float) -> float:
        """Bound on tr(R R') / nu' over n rows (Minkowski); ``defect`` is for rows no larger than the largest pivot."""
        return float(self._slope * np.sqrt(max(trace, 0.0)) + self._level * np.sqrt(n)) ** 2

    def _set_predicted(self, estimated: float, trace: float, n_rows: float, tol: float) -> PivotMap:
        """Set ``predicted``: the residual trace ``estimated`` that the drawing of the pivots predicts, plus what shift
        and rounding add. That is about 2 nu a row: the squares of its interpolation weights sum to about 1."""
        added = 2.0 * (self.nu + self.defect) * n_rows
        self.predicted = (estimated + added) / trace if trace > 0.0 else 0.0
        self.reached = self.predicted <= tol
        return self

    def features(self, X: np.ndarray) -> np.ndarray:
        """phi of a tile, (n, D), column-major, dtype of X; computed in float64."""
        if self.n_features == 0:
            return np.zeros((len(X), 0), dtype=X.dtype)
        tile = values_of(self.kernel, self.pivots, contiguous(X, np.float64))
        _core.solve(self.factor, tile)
        return tile.astype(X.dtype, copy=False).T

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        """Upper bound on k(x, x) - |phi(x)|^2, (n,), float64, rounding included."""
        if Phi is None:
            Phi = self.features(X)
        remaining = diagonal_of(self.kernel, contiguous(X, np.float64)).copy()
        diagonal = remaining.copy()
        magnitude = np.zeros(len(remaining))
        _core.subtract_squares(contiguous(Phi.T, np.float64), remaining, magnitude)
        error = 1.01 * UNIT * magnitude + self.entry_error
        if Phi.dtype != np.float64:
            error += 4.0 * unit_roundoff(Phi.dtype) * diagonal
        size = np.maximum(diagonal - remaining, 0.0) + error
        error += (self._slope * np.sqrt(size) + self._level) ** 2
        below = remaining + error + MAX_NEGATIVE_RESIDUAL * np.abs(diagonal).max(initial=0.0)
        if below.min(initial=0.0) < 0.0:
            i = int(below.argmin())
            raise self.kernel.refusal(
                f"{SEMIDEFINITE} are not: k(x, x) = {diagonal[i]:.6g} for a row of which the values on "
                f"{self.n_features} pivots need {diagonal[i] - remaining[i]:.6g}; {NO_CLAIM}"
            )
        return np.maximum(remaining, 0.0) + error

    def applied(self, C: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """C'phi(x) as (L^-T C)'k(P, x), if its rounding allows that: D operations a row and column, and no solve."""
        weights, accurate = self._accurate_weights(C)
        if not accurate.all():
            return super().applied(C)

        def values(X: np.ndarray) -> np.ndarray:
            block = values_of(self.kernel, contiguous(X, np.float64), self.pivots)
            with np.errstate(over="ignore", invalid="ignore"):  # scores that are not finite are refused in words
                return (block @ weights).astype(X.dtype, copy=False)

        return values

    def _accurate_weights(self, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the kernel values that give Phi C, and for which columns they are accurate enough."""
        weights = self.landmark_weights(C)
        # |k(x, p)| <= (k(x, x) k(p, p))^(1/2), so this is relative to |phi(x)| |C|.
        # Errors of kernel values are in the features as well.
        size = np.sqrt(diagonal_of(self.kernel, self.pivots)) @ np.abs(weights)
        error = rounding_factor(self.n_features) * UNIT * size
        return weights, error <= WEIGHTS_ROUNDING * np.hypot.reduce(C, axis=0)

    def quick_columns(self, C: np.ndarray) -> int:
        return int(np.argmin(np.append(self._accurate_weights(C)[1], False)))

    @property
    def landmarks(self) -> np.ndarray | None:
        return self.pivots if self.n_features else None

    def landmark_weights(self, B: np.ndarray) -> np.ndarray:
        """b.phi(x) = (L^-T b)' k(pivots, x)."""
        with parallel.blas_threads():  # two threads of BLAS give other bits than one
            return scipy.linalg.solve_triangular(self.factor, B, lower=True, trans="T", check_finite=False)

    def gradients(self, C: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        weights = self.landmark_weights(C)

        def gradients(X: np.ndarray, steps: np.ndarray) -> np.ndarray:
            K = values_of(self.kernel, X, self.pivots)
            return self.kernel.gradient_sums(X, self.pivots, K, steps)(None, weights)

        return gradients

    @property
    def thread_safe(self) -> bool:
        return self.kernel.thread_safe

    def widened(self, kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        # the pivots are rows of the first model: how well their matrix is factored, no other row changes
        error = kernel.entry_error(data, np.dtype(np.float64)) or 0.0
        if error <= self.entry_error:
            return self
        wide = copy(self)
        wide.entry_error = error
        wide._set_rounding()
        return wide

    def formula(self) -> dict[str, Any]:
        return {"kind": "pivots", "pivots": self.pivots, "factor": self.factor}

    @classmethod
    def stored_size(cls, own: Record, n_columns: int) -> int:
        return len(own.array("pivots", (None, n_columns)))

    def __repr__(self) -> str:
        return f"{self.kernel!r} by {self.n_features} pivots"

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        header = {
            "map": self.kind,
            "entry_error": self.entry_error,
            "nu": self.nu,
            "margin": self._margin,
            "reached": bool(self.reached),
            "predicted": self.predicted if np.isfinite(self.predicted) else None,
        }
        return header, {"pivots": self.pivots, "factor": self.factor}

    @classmethod
    def from_state(cls, kernel: Kernel, header: dict, arrays: dict[str, np.ndarray]) -> PivotMap:
        """The map that ``state`` described; the kernel is not part of the state."""
        own = Record(header, arrays, "the pivots' feature map")
        own.keys(("map", "entry_error", "nu", "margin", "reached", "predicted"))
        own.names(("pivots", "factor"))
        self = cls.__new__(cls)
        self.kernel = kernel
        self.pivots = np.ascontiguousarray(own.array("pivots", (None, None)), dtype=np.float64)
        r = self.n_features = len(self.pivots)
        self.factor = np.ascontiguousarray(own.array("factor", (r, r)), dtype=np.float64)
        self.entry_error = own.number("entry_error", least=0.0)
        self.nu = own.number("nu", least=0.0)
        self.reached = own.flag("reached")
        self.predicted = float("nan") if header["predicted"] is None else own.number("predicted", least=0.0)
        self._margin = own.number("margin", least=0.0)
        if r:
            self._check_factor(own)
        self._set_rounding()
        return self

    def _check_factor(self, own: Record) -> None:
        """L is lower triangular with a positive diagonal, and its last row that of K_PP + nu I, so that pivots, factor
        and kernel belong together. All rows would cost as much as to make L anew."""
        L, r = self.factor, self.n_features
        if not (self._margin > 0.0 and L.diagonal().min() > 0.0 and self.nu > 0.0):
            raise own.refuse("its factor is singular")
        if any(L[i, i + 1 :].any() for i in range(r)):
            raise own.refuse("its factor is not lower triangular")
        with refusing("the pivots' feature map"):
            row = values_of(self.kernel, self.pivots[-1:], self.pivots)[0]
            row[-1] += self.nu
            off, size = float(np.abs(L @ L[-1] - row).max()), float(np.abs(row).max())
        if not off <= 1e-6 * size + 4.0 * r * (self.nu + self.entry_error):
            raise own.refuse(f"its factor is not that of {self.kernel!r} on its pivots")


def values_of(kernel: Kernel, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.require(kernel.block(X, Y), dtype=np.float64, requirements=["C", "A", "W"])


def diagonal_of(kernel: Kernel, X: np.ndarray) -> np.ndarray:
    return np.asarray(kernel.diagonal(X), dtype=np.float64)


def _schur_traces(L: np.ndarray) -> np.ndarray:
    """T_k = |L[:, k b:]|_F^2 for every block of b columns."""
    columns = np.einsum("ij,ij->j", L, L)
    return np.cumsum(columns[::-1])[::-1][:: _core.FACTOR_BLOCK]


def _factor(kernel: Kernel, pivots: np.ndarray, entry_error: float) -> tuple[np.ndarray, float, float, float]:
    """(L, nu, nu', e): the lower factor of K_PP + nu I, C order, the margin nu' with L L' - K_PP >= nu' I, and the
    error of a kernel value that all this allows for."""
    r = len(pivots)
    if r == 0:
        return np.zeros((0, 0)), 0.0, 0.0, entry_error
    K = np.empty((r, r))
    strip = r if r <= QUICK_ORDER else 1024  # Ctrl-C is seen between two of them
    for i in range(0, r, strip):
        K[i : i + strip] = values_of(kernel, pivots[i : i + strip], pivots)
    trace = float(np.trace(K))
    b = _core.FACTOR_BLOCK
    tiny = float(np.finfo(float).tiny)
    nu = max(1.5 * ((b + 4) * UNIT * trace + r * entry_error), tiny)
    surely = 1.5 * ((b + r // b + 4) * UNIT * trace + r * entry_error)
    while nu <= max(1e-5 * trace, 4.0 * surely, tiny):
        L = K.copy()
        L.flat[:: r + 1] += nu
        if parallel.interruptible(lambda: _core.factor(L)) if r > QUICK_ORDER else _core.factor(L):  # noqa: B023
            traces = _schur_traces(L)
            bound = 1.01 * UNIT * ((b + 3) * float(traces[0]) + float(traces[1:].sum())) + r * entry_error
            if nu >= 1.2 * bound:
                return L, nu, nu - bound, entry_error
            nu = 1.25 * bound
            continue
        nu *= 4.0
        if nu > 4.0 * surely:
            # the values of block are further from semidefinite than rounding and entry_error explain: believe them
            entry_error = max(entry_error, nu / (4.0 * r))
    raise kernel.refusal(f"{SEMIDEFINITE} on {r} pivots are not; {NO_CLAIM}")


def pivots_rounding(rank: float, entry_error: float) -> float:
    """Approximate residual trace that rounding adds with m pivots, over the trace: twice the shift nu, for kernel
    values of 1 that err by ``entry_error``."""
    return 2.0 * 1.25 * rank * ((_core.FACTOR_BLOCK + 3) * UNIT + entry_error)
