"""Pivoted-Cholesky feature maps: phi(x) = L^-1 k(P, x) with pivots P, L L' = K_PP + nu I, for any semidefinite kernel.

Pivots are drawn in proportion to the residual diagonal (randomly pivoted Cholesky: Chen, Epperly, Tropp, Webber 2025,
doi:10.1002/cpa.22234), in blocks with rejection, which leaves their distribution as it is and makes the work BLAS 3
(Epperly, Tropp, Webber 2024, arXiv:2410.03969).

Rounding, so that the certificate also holds in floating point. Let r = |P|, u the unit roundoff, e a bound on the error
of a kernel value; factor and solve are right-looking in blocks of b (32) columns, T_k = |L[:, k b:]|_F^2 the trace of
the Schur complement before block k, about tr K_PP for k = 0 and falling as the spectrum does.

- Cholesky's backward error: L L' = K_PP + nu I + D. A block step errs by (b + 2) u |L_k| |L_k'| entrywise (Higham
  2002, theorems 8.5 and 10.3, for b columns) and by u |Schur complement| when that is stored, so that
  |D|_2 <= c = 1.01 u ((b + 3) T_0 + sum_(k > 0) T_k) + r e. This is computed from the L that came out, and nu = 5/4 c
  or more is checked against it: L L' - K_PP >= nu' I with nu' = nu - c. Without the shift the factorisation fails
  where K_PP is singular to working precision, and it is what makes K - Phi Phi' semidefinite. (The bound for any
  order of summation is r u T_0: for r = 1000 a shift, and so a least residual, twenty times larger.)
- The triangular solve: L phi(x) = k(P, x) + R(x) with, by the same count (which leaves two roundings a block, so that
  diagonal entries may be divided by through their reciprocals),
  |R(x)| <= 1.01 u ((b + 3) T_0^(1/2) + sum_(k > 0) T_k^(1/2)) |phi(x)| + r^(1/2) e. That is a *backward* error;
  multiplying by an explicit inverse has no such bound (it loses cond(L), 1e7 and more here).
- So [K, Phi L'; L Phi', L L'] >= [0, R; R', nu' I] >= -[R R' / nu', 0; 0, 0], and by the Schur complement
  K - Phi Phi' + R R' / nu' is semidefinite: what is negative has entries at most max |R|^2 / nu' (``defect``, about
  200 u max k), and its diagonal is added to ``residual``, beside the rounding of k(x, x) - |phi|^2 itself, which
  a running error bound follows: all computed residuals are upper bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from .._core import moments as _moments
from .._core import pivots as _core
from ..base import parallel
from ..base.protocol import Cost, FeatureMap, Kernel, Moments, Summary
from ..base.rounding import UNIT, UNIT32, rounding_factor, unit_roundoff
from ..base.stored import Record, refusing
from ..rows.view import Pass, Rows
from .draws import DRAWS, Draws, drawn_among

__all__ = [
    "SAMPLE_ROWS",
    "PivotMap",
    "RankProbe",
    "candidates_for",
    "may_be_means",
    "pivot_map",
    "pivots_cost",
    "pivots_rounding",
    "probe_rank",
    "random_pivots",
    "residual_draws",
    "second_round",
]

BLOCK = 128
"""Most pivots proposed at once: enough for BLAS 3, few enough that rejection (b^3 / 3 flops, one thread) is cheap."""
SAMPLE_ROWS = 4096
CANDIDATES = 4
"""Rows, for each pivot, that are enough to choose pivots among."""
LANCZOS_STEPS = 16
"""To the largest eigenvalue of a sample of what pivots leave."""
LEAST_LOOKED_AT = 65
"""Rows that tell something of the residual's largest eigenvalue."""
WEIGHTS_ROUNDING = 1e-12
"""Rounding of phi(x).c, over |phi(x)| |c|, up to which weights of the kernel values may take the place of phi. What is
known for certain of the features themselves, is that they are off by ten thousand times as much (``_slope``)."""
SOLVE_FLOPS = 0.1
"""Of the triangular solve, for a row and each pair of pivots, in the flops that offers count in, by the compiled loops
or by BLAS, whichever is taken here."""
CHOOSING, PROPOSAL_FLOPS = 2.0, 5e4
"""To choose pivots takes so many times what the candidates' features do, and so much for each pivot: of calls."""
LLOYD_ITERATIONS = 2
SURE_DRAWS = 8.0
"""A row expected this often among independent draws is missed once in three thousand times."""


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
        Whether ``predicted`` is at most what was asked for.
    nu : float
        What was added to the diagonal of K_PP.
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
        self.pivots = np.ascontiguousarray(pivots, dtype=np.float64)
        self.n_features = len(self.pivots)
        self.predicted = float("nan")
        self.reached = True
        self.factor, self.nu, self._margin, self.entry_error = _factor(kernel, self.pivots, entry_error)
        self._set_rounding()

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
        top = float(_diagonal(self.kernel, self.pivots).max())
        self.defect = (self._slope * np.sqrt(top) + self._level) ** 2

    def defect_norm(self, n: float, trace: float) -> float:
        """tr(R R') / nu' over n rows, by Minkowski; ``defect`` speaks of rows no larger than the largest pivot."""
        return float(self._slope * np.sqrt(max(trace, 0.0)) + self._level * np.sqrt(n)) ** 2

    def _judge(self, judged: float, trace: float, n_rows: float, tol: float) -> PivotMap:
        """Set ``predicted`` from the pivots' own judgement, and what the shift and rounding add to it (for each row
        about twice nu: the residual of interpolation weights whose squares sum to about one)."""
        added = 2.0 * (self.nu + self.defect) * n_rows
        self.predicted = (judged + added) / trace if trace > 0.0 else 0.0
        self.reached = self.predicted <= tol
        return self

    def features(self, X: np.ndarray) -> np.ndarray:
        """phi of a tile, (n, D), column-major, dtype of X; computed in float64."""
        if self.n_features == 0:
            return np.zeros((len(X), 0), dtype=X.dtype)
        tile = _block(self.kernel, self.pivots, np.ascontiguousarray(X, dtype=np.float64))
        _core.solve(self.factor, tile)
        return tile.astype(X.dtype, copy=False).T

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        """k(x, x) - |phi(x)|^2, (n,), float64, and all that rounding can have hidden: an upper bound."""
        if Phi is None:
            Phi = self.features(X)
        remaining = _diagonal(self.kernel, np.ascontiguousarray(X, dtype=np.float64)).copy()
        diagonal = remaining.copy()
        magnitude = np.zeros(len(remaining))
        _core.subtract_squares(np.ascontiguousarray(Phi.T, dtype=np.float64), remaining, magnitude)
        error = 1.01 * UNIT * magnitude + self.entry_error
        if Phi.dtype != np.float64:
            error += 4.0 * unit_roundoff(Phi.dtype) * diagonal
        size = np.maximum(diagonal - remaining, 0.0) + error
        error += (self._slope * np.sqrt(size) + self._level) ** 2
        return np.maximum(remaining, 0.0) + error

    def applied(self, C: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """By weights of the kernel values, D instead of D^2 operations a row, where their rounding allows that."""
        weights, accurate = self._accurate_weights(C)
        if not accurate.all():
            return super().applied(C)

        def values(X: np.ndarray) -> np.ndarray:
            block = _block(self.kernel, np.ascontiguousarray(X, dtype=np.float64), self.pivots)
            return (block @ weights).astype(X.dtype, copy=False)

        return values

    def _accurate_weights(self, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the kernel values that give Phi C, and for which columns they are accurate enough."""
        weights = self.landmark_weights(C)
        # |k(x, p)| <= (k(x, x) k(p, p))^(1/2), so this is relative to |phi(x)| |C|.
        # Errors of kernel values are in the features as well.
        size = np.sqrt(_diagonal(self.kernel, self.pivots)) @ np.abs(weights)
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
            K = _block(self.kernel, X, self.pivots)
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

    def refined(self, rows: Rows, **options: Any) -> FeatureMap:
        return second_round(self, rows, **options)[0]

    def formula(self) -> dict[str, Any]:
        return {"kind": "pivots", "pivots": self.pivots, "factor": self.factor}

    @classmethod
    def stored_size(cls, own: Record, n_columns: int) -> int:
        return len(own.array("pivots", (None, n_columns)))

    def __repr__(self) -> str:
        return f"{self.kernel!r} by {self.n_features} pivots"

    def quick_moments(self) -> Moments | None:
        # of a kernel of the rows' difference no feature is larger than those of the pivots: squares stay in float32
        safe = may_be_means(self.kernel) and self.n_features and SAFE[0] <= self.factor[0, 0] <= SAFE[1]
        return _SingleMoments(self) if safe and _moments.SINGLE_IS_FASTER else None

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
        and kernel belong together; all rows would cost as much as to make L anew."""
        L, r = self.factor, self.n_features
        if not (self._margin > 0.0 and L.diagonal().min() > 0.0 and self.nu > 0.0):
            raise own.refuse("its factor is singular")
        if any(L[i, i + 1 :].any() for i in range(r)):
            raise own.refuse("its factor is not lower triangular")
        with refusing("the pivots' feature map"):
            row = _block(self.kernel, self.pivots[-1:], self.pivots)[0]
            row[-1] += self.nu
            off, size = float(np.abs(L @ L[-1] - row).max()), float(np.abs(row).max())
        if not off <= 1e-6 * size + 4.0 * r * (self.nu + self.entry_error):
            raise own.refuse(f"its factor is not that of {self.kernel!r} on its pivots")


class _SingleMoments(Moments):
    """Products of centred features in float32: for a loose tolerance."""

    def add(self, X: np.ndarray, Phi: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        if weights is not None:
            raise NotImplementedError("these sums are of rows without weights")
        residual = self.map.residual(X, Phi)
        self.residual_trace += float(residual.sum())
        self.count = _moments.update_single(np.ascontiguousarray(Phi.T), self.count, self._mean, self._scatter)
        return residual

    @property
    def error(self) -> float:
        """A sum of products is off by its roundings times the sum of their sizes. So is, in norm, the matrix of all
        sums by that times its trace: |C'||C| has no larger one. Products that underflow come on top."""
        roundings = 1.01 * _moments.SINGLE_ROUNDINGS * UNIT32
        return roundings * self.trace + self.count * self.map.n_features * float(np.finfo(np.float32).tiny)


SAFE = 1e-6, 1e6
"""Largest features between which squares of what is centred neither overflow in float32 nor, but for the smallest,
underflow."""
QUICK = 1500
"""Pivots up to which their matrix is factored in a fraction of a second."""


def _block(kernel: Kernel, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.require(kernel.block(X, Y), dtype=np.float64, requirements=["C", "W"])


def _diagonal(kernel: Kernel, X: np.ndarray) -> np.ndarray:
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
    strip = r if r <= QUICK else 1024  # Ctrl-C is seen between two of them
    for i in range(0, r, strip):
        K[i : i + strip] = _block(kernel, pivots[i : i + strip], pivots)
    trace = float(np.trace(K))
    b = _core.FACTOR_BLOCK
    tiny = float(np.finfo(float).tiny)
    nu = max(1.5 * ((b + 4) * UNIT * trace + r * entry_error), tiny)
    surely = 1.5 * ((b + r // b + 4) * UNIT * trace + r * entry_error)
    while nu <= max(1e-5 * trace, 4.0 * surely, tiny):
        L = K.copy()
        L.flat[:: r + 1] += nu
        if parallel.interruptible(lambda: _core.factor(L)) if r > QUICK else _core.factor(L):  # noqa: B023
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
    raise ValueError(
        f"{kernel!r} declares itself positive semidefinite, but its values on {r} pivots are not; "
        "set positive_semidefinite = False for it"
    )


@dataclass
class _Selection:
    """Numbers of the pivots, the judged residual trace after each, whether nothing but rounding is left, and features.

    The features (k, n) are those of all candidates.
    """

    index: np.ndarray
    trace: np.ndarray
    exhausted: bool
    features: np.ndarray


@dataclass
class _Candidates:
    """Rows that pivots are drawn from, and the number of rows that they represent.

    Attributes
    ----------
    rows : ndarray (n, d)
    diagonal, weights : ndarray (n,)
        k(x, x), and what a row's residual counts.
    shares : ndarray (n,), optional
        Where a row stands for rows that are not here: for how many draws; 0: for itself alone.
    features : ndarray (k, n), optional
        Features that are already taken.
    """

    rows: np.ndarray
    diagonal: np.ndarray
    weights: np.ndarray
    shares: np.ndarray | None = None
    features: np.ndarray | None = None


class _Judgement:
    """The residual trace of all rows, as the candidates tell it.

    Where some stand for rows that are not among them, by those that are not pivots themselves, scaled up (the pivots'
    own residuals are zero and say nothing about other rows), plus two standard errors.
    """

    def __init__(self, candidates: _Candidates):
        n, weights = len(candidates.rows), candidates.weights
        self.shares = np.zeros(n) if candidates.shares is None else candidates.shares.astype(np.float64)
        self.weights, self.all_shares = weights, float(self.shares.sum())
        self.parts = np.stack([weights * (self.shares == 0.0), weights * (self.shares > 0.0)], axis=1)

    def after(self, picked: np.ndarray, residual: np.ndarray, of_each: np.ndarray, of_rows: np.ndarray) -> np.ndarray:
        """After each of the pivots ``picked``, for the sums of their squared features: what is beyond the target can
        then be dropped. ``residual`` is that before them."""
        sums = np.maximum(residual @ self.parts - np.cumsum(of_each, axis=0), 0.0)
        judged: np.ndarray = sums[:, 0]
        if self.all_shares:
            left = self.shares.sum() - np.cumsum(self.shares[picked])
            self.shares[picked] = 0.0
            ahead = np.maximum(residual - of_rows, 0.0)
            margin = 1.0 + 2.0 * _relative_error(self.weights * ahead, self.shares)
            judged = judged + sums[:, 1] * np.where(left > 0.0, margin * self.all_shares / np.maximum(left, 1.0), 1.0)
        return judged


def _select(
    kernel: Kernel,
    candidates: _Candidates,
    target: float,
    max_pivots: int,
    rng: np.random.Generator,
    entry_error: float = 0.0,
    n_threads: int = 1,
) -> _Selection:
    """Draw pivots from the candidates until sum(weights * residual) <= target.

    ``trace`` of the selection records the judgement after 0, 1, 2, ... pivots.
    """
    S, weights, start = candidates.rows, candidates.weights, candidates.features
    n = len(S)
    done = 0 if start is None else len(start)
    F = np.empty((done + min(max_pivots, 2 * BLOCK), n))
    residual = candidates.diagonal.copy()
    if start is not None:
        F[:done] = start
        residual = np.maximum(residual - np.einsum("ij,ij->j", start, start), 0.0)
    floor = 16 * UNIT * candidates.diagonal + 2.0 * entry_error  # below it a residual is noise
    judgement, trace = _Judgement(candidates), [float(weights @ residual)]
    chosen: list[np.ndarray] = []
    count = 0
    while trace[-1] > target and count < max_pivots:
        k = done + count
        size = min(n, max_pivots - count, max(64, min(BLOCK, k // 2)))
        proposed = _proposed(np.where(residual > floor, weights * residual, 0.0), size, rng)
        if not len(proposed):
            break
        if k + size > len(F):
            F = np.concatenate([F[:k], np.empty((min(max(k, BLOCK), done + max_pivots - k), n))])
        accepted, new = _features_of_accepted(kernel, S, F, k, proposed, rng.random(size), floor, n_threads)
        if len(accepted) == 0:  # residuals that were rounding: strike them out, and end when none is left
            residual[proposed] = 0.0
            continue
        of_each, of_rows = _squares(new, judgement.parts, n_threads)
        judged = judgement.after(accepted, residual, of_each, of_rows)
        reached = np.flatnonzero(judged <= target)
        m = int(reached[0]) + 1 if len(reached) else len(accepted)
        residual = np.maximum(residual - (of_rows if m == len(new) else (new[:m] ** 2).sum(axis=0)), 0.0)
        residual[accepted[:m]] = 0.0
        chosen.append(accepted[:m])
        trace.extend(judged[:m])
        count += m
    index = np.concatenate(chosen) if chosen else np.empty(0, dtype=np.intp)
    exhausted = trace[-1] > target and count < max_pivots
    return _Selection(index, np.asarray(trace), exhausted, F[: done + count])


def _proposed(weights: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """So many numbers drawn in proportion to the weights; none where all weights are zero."""
    cumulative = np.cumsum(weights)
    if not cumulative[-1] > 0.0:
        return np.empty(0, dtype=np.intp)
    drawn = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    return np.minimum(drawn, len(weights) - 1)


def _features_of_accepted(
    kernel: Kernel,
    S: np.ndarray,
    F: np.ndarray,
    k: int,
    proposed: np.ndarray,
    draws: np.ndarray,
    floor: np.ndarray,
    n_threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """(which of the proposed rows of S are accepted as pivots, their features of all rows), after the first k of F.

    The features are written behind these.
    """
    F_proposed = np.ascontiguousarray(F[:k, proposed].T)
    S_proposed = S[proposed]
    H = _block(kernel, S_proposed, S_proposed)
    H -= F_proposed @ F_proposed.T
    accepted, L = _core.accept(H, draws, floor[proposed])
    if len(accepted) == 0:
        return proposed[:0], np.empty((0, len(S)))
    new = F[k : k + len(accepted)]
    _features(kernel, S_proposed[accepted], L, S, n_threads, new, F[:k], F_proposed[accepted])
    return proposed[accepted], new


def _squares(new: np.ndarray, parts: np.ndarray, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of squared features (k, n): over the rows with both weights of ``parts`` (n, 2), and for each row."""
    of_rows = np.empty(new.shape[1])
    pieces = parallel.shares(len(of_rows), parallel.A_NUMBER * new.size)

    def task(i: int) -> np.ndarray:
        squares = new[:, pieces[i]] ** 2
        squares.sum(axis=0, out=of_rows[pieces[i]])
        return np.asarray(squares @ parts[pieces[i]])

    return parallel.tree_reduce(task, len(pieces), np.add, n_threads=n_threads), of_rows


def _features(
    kernel: Kernel,
    pivots: np.ndarray,
    L: np.ndarray,
    S: np.ndarray,
    n_threads: int,
    out: np.ndarray,
    F: np.ndarray | None = None,
    F_pivots: np.ndarray | None = None,
) -> None:
    """Those that the pivots add to the rows of S after features F, if any: L^-1 (k(pivots, S) - F_pivots F)."""
    done = np.empty((0, len(S))) if F is None else F
    coefficients = np.empty((len(pivots), 0)) if F_pivots is None else np.ascontiguousarray(F_pivots)
    parts = parallel.shares(len(S), len(S) * len(pivots) * (parallel.A_NUMBER + len(done) + len(pivots) / 2))

    def task(i: int) -> None:
        new = _block(kernel, pivots, S[parts[i]])
        _core.project_out(new, done[:, parts[i]], coefficients)
        _core.solve(L, new)
        out[:, parts[i]] = new

    parallel.each(task, len(parts), n_threads=n_threads)


def _relative_error(values: np.ndarray, shares: np.ndarray) -> float:
    """Standard error of the sum of ``values`` over the sum, for rows that stand for ``shares`` draws (0: left out)."""
    kept = shares > 0.0
    values, shares = values[kept], shares[kept]
    count, total = float(shares.sum()), float(values.sum())
    if count < 2.0 or not total > 0.0:
        return 0.0
    mean = total / count
    return float(np.sqrt(shares @ (values / shares - mean) ** 2)) / total


def _check(kernel: Kernel, diagonal: np.ndarray) -> None:
    if not kernel.positive_semidefinite:
        raise ValueError(f"pivoted Cholesky needs a positive semidefinite kernel, and {kernel!r} does not declare it")
    if not (np.isfinite(diagonal).all() and (diagonal >= 0.0).all()):
        raise ValueError(f"{kernel!r} declares itself positive semidefinite but has negative or infinite k(x, x)")


def pivot_map(
    kernel: Kernel,
    sample_or_rows: np.ndarray | Rows,
    *,
    tol: float,
    max_features: int,
    rng: np.random.Generator,
    n_samples: int | None = None,
    sample_rows: int = SAMPLE_ROWS,
    entry_error: float | None = None,
    means: bool = False,
    n_threads: int = 1,
) -> PivotMap:
    """Feature map of randomly pivoted Cholesky with predicted residual trace over trace at most ``tol``.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite.
    sample_or_rows : ndarray (n, d) or Rows
        Where pivots are drawn from: a sample (``Summary.sample``), or rows of which at most ``sample_rows`` are taken.
    tol : float
        Residual trace over trace.
    max_features : int
    rng : numpy.random.Generator
    n_samples : int, optional
        How many rows the sample stands for; by default it is all there is. Where it stands for more, the prediction
        leaves the pivots themselves out and adds two standard errors.
    entry_error : float, optional
        ``Kernel.entry_error`` of the data; None: the certificate is of the values that ``block`` returns.
    means : bool
        Whether the pivots may be means of rows instead of rows, for a kernel of the rows' difference.

    Returns
    -------
    PivotMap
        ``reached`` is False where ``max_features`` pivots did not suffice, or where what is left is rounding;
        ``predicted`` says what was reached.
    """
    if isinstance(sample_or_rows, Rows):
        n_samples = sample_or_rows.n_samples
        if n_samples > sample_rows:
            index = np.sort(rng.choice(n_samples, sample_rows, replace=False))
            S = sample_or_rows.take(index)
        else:
            S = sample_or_rows.all()
    else:
        S = np.ascontiguousarray(sample_or_rows, dtype=np.float64)
    n = len(S)
    diagonal = _diagonal(kernel, S)
    _check(kernel, diagonal)
    trace = float(diagonal.sum())
    shares = np.ones(n) if n_samples is not None and n_samples > n else None
    error = entry_error or 0.0
    candidates = _Candidates(S, diagonal, np.ones(n), shares)
    selection = _select(kernel, candidates, tol * trace, max_features, rng, error, n_threads)
    pivots, judged = S[selection.index], float(selection.trace[-1])
    del selection  # its features take as much memory as what follows
    if means and may_be_means(kernel) and len(pivots) < n:
        moved = PivotMap(kernel, _means(kernel, S, pivots, n_threads), entry_error=error)
        step = parallel.tile_rows(len(pivots))

        def task(i: int) -> float:
            return float(moved.residual(S[i * step : (i + 1) * step]).sum())

        left = sum(parallel.run(task, -(-n // step), n_threads=n_threads))
        if left < judged:  # not where the kernel's nearest rows have no mean, of a periodic one say
            return moved._judge(left, trace, n, tol)
    return PivotMap(kernel, pivots, entry_error=error)._judge(judged, trace, n, tol)


def may_be_means(kernel: Kernel) -> bool:
    """Whether means of rows are rows like others, as for a kernel of the rows' difference."""
    return kernel.translation == "kernel"


def _means(kernel: Kernel, S: np.ndarray, pivots: np.ndarray, n_threads: int) -> np.ndarray:
    """The pivots after a few of Lloyd's iterations: each becomes the mean of the rows to which it is the nearest, so
    that it leaves less of them (Zhang, Tsang, Kwok 2008, doi:10.1145/1390156.1390311)."""
    parts = parallel.shares(len(S), parallel.A_NUMBER * len(S) * len(pivots))
    for _ in range(LLOYD_ITERATIONS):
        task = partial(_nearest, kernel, S, parts, pivots)
        nearest = np.concatenate(list(parallel.run(task, len(parts), n_threads=n_threads)))
        order = np.argsort(nearest, kind="stable")
        of, start, count = np.unique(nearest[order], return_index=True, return_counts=True)
        pivots = pivots.copy()
        pivots[of] = np.add.reduceat(S[order], start) / count[:, None]
    return pivots


def _nearest(kernel: Kernel, S: np.ndarray, parts: list[slice], pivots: np.ndarray, i: int) -> np.ndarray:
    return _block(kernel, S[parts[i]], pivots).argmax(axis=1)


def candidates_for(count: int, n: int) -> int:
    """Rows to choose so many pivots among, of n: all of a few thousand, so that no far row is missed; of more rows a
    quarter, where these are enough to choose well."""
    return n if n <= SAMPLE_ROWS else max(CANDIDATES * count, n // 4)


def random_pivots(
    kernel: Kernel,
    S: np.ndarray,
    count: int,
    rng: np.random.Generator,
    entry_error: float = 0.0,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Numbers of ``count`` rows of S by randomly pivoted Cholesky; fewer where nothing but rounding is left."""
    diagonal = _diagonal(kernel, S)
    _check(kernel, diagonal)
    weights = np.ones(len(S)) if weights is None else weights
    return _select(kernel, _Candidates(S, diagonal, weights), 0.0, count, rng, entry_error).index


def second_round(
    old: PivotMap,
    rows: Rows,
    *,
    tol: float,
    max_features: int,
    rng: np.random.Generator,
    seen: tuple[float, Draws] | None = None,
    n_draws: int = DRAWS,
    n_threads: int = 1,
    progress: parallel.Progress | None = None,
) -> tuple[PivotMap, float]:
    """The map with pivots added where the residual of all rows lies.

    Pivots drawn on a sample miss a small far cluster. Here rows are drawn from all of them in proportion to their
    residual under ``old``, and pivoting goes on among these, weighted so that the sum it stops on estimates the
    residual trace of all rows. That takes one pass; ``seen`` is what one has found already: the trace of K, and the
    draws.

    Returns
    -------
    PivotMap
        ``old`` itself where its residual over all rows is already at most ``tol``.
    float
        Residual trace over trace of ``old`` over all rows, exact up to rounding.
    """
    trace, draws = seen or residual_draws(old, rows, rng, n_draws=n_draws, n_threads=n_threads, progress=progress)
    total, n_draws = draws.total, len(draws.index)
    before = total / trace if trace > 0.0 else 0.0
    if before <= tol or old.n_features >= max_features:
        return old, before
    index, position, counts = np.unique(draws.index, return_index=True, return_counts=True)
    S = rows.take(index)
    expected = draws.residual[position] * (n_draws / total)
    # rows that were all but sure to be drawn stand for themselves, the others for those that were not
    known = expected >= SURE_DRAWS
    weights = np.where(known, 1.0, counts / expected)
    if rows.weights is not None:
        weights *= np.asarray(rows.weights[index], dtype=np.float64)
    start = np.ascontiguousarray(old.features(S).T)
    shares = np.where(known, 0.0, counts)
    candidates = _Candidates(S, _diagonal(old.kernel, S), weights, shares, start)
    error = old.entry_error
    selection = _select(old.kernel, candidates, tol * trace, max_features - old.n_features, rng, error, n_threads)
    pivots = np.concatenate([old.pivots, S[selection.index]])
    new = PivotMap(old.kernel, pivots, entry_error=old.entry_error)
    total_rows = rows.n_samples if rows.weights is None else float(np.sum(rows.weights, dtype=np.float64))
    new._judge(float(selection.trace[-1]), trace, total_rows, tol)
    return new, before


def residual_draws(
    feature_map: PivotMap,
    rows: Rows,
    rng: np.random.Generator,
    *,
    n_draws: int = DRAWS,
    each: Callable[[slice, np.ndarray], None] | None = None,
    n_threads: int = 1,
    progress: parallel.Progress | None = None,
) -> tuple[float, Draws]:
    """The trace of K, and rows drawn in proportion to their residual.

    ``each`` is called with the features of every tile, in any order.
    """
    seed = int(rng.integers(2**63))
    step = parallel.tile_rows(max(feature_map.n_features, rows.n_features))
    n = rows.n_samples

    def task(rows: Rows, i: int) -> tuple[float, Draws]:
        start, stop = i * step, min(n, (i + 1) * step)
        X = np.ascontiguousarray(rows.tile(start, stop), dtype=np.float64)
        Phi = feature_map.features(X)
        if each is not None:
            each(slice(start, stop), Phi)
        residual, diagonal = feature_map.residual(X, Phi), _diagonal(feature_map.kernel, X)
        w = rows.tile_weights(start, stop)
        if w is not None:
            residual, diagonal = np.where(w > 0, w * residual, 0.0), np.where(w > 0, w * diagonal, 0.0)
        draws = drawn_among([residual], [np.arange(start, stop)], i, n_draws, seed)
        assert draws is not None
        return float(diagonal.sum()), draws

    n_threads = n_threads if feature_map.kernel.thread_safe else 1
    over = Pass(
        "residual of the pivots",
        task,
        step,
        lambda a, b: (a[0] + b[0], a[1].join(b[1], seed)),
        alone=not feature_map.kernel.thread_safe,
    )
    trace, draws = rows.reduce(over, n_threads=n_threads, progress=progress)
    return trace, draws


@dataclass(frozen=True)
class RankProbe:
    """What pivots on a small sample say about the rank at any tolerance.

    Attributes
    ----------
    curve : ndarray
        Predicted residual trace over trace after 0, 1, 2, ... pivots.
    n_rows : int
        Rows of the sample.
    exhausted : bool
        Nothing but rounding is left after the last pivot of the curve.
    beside : tuple of (int, float, float)
        After so many pivots, on rows that they were not chosen from: residual trace over trace, and what is known of
        the largest eigenvalue of what is left, over its trace.
    n_samples : float
        All rows, of which these are a sample.
    of_fewer : tuple of ndarray
        The same curve on a quarter of the sample, and on half of it: more rows need more pivots.
    """

    curve: np.ndarray
    n_rows: int
    exhausted: bool
    beside: tuple[tuple[int, float, float], ...] = ()
    n_samples: float = np.inf
    of_fewer: tuple[np.ndarray, ...] = ()

    def rank(self, tol: float) -> float:
        """Number of pivots predicted for ``tol``; beyond the curve extrapolated, inf where it does not fall."""
        if self.beside:
            ranks, of_curve = np.geomspace(1.0, 1e5, 400), self._rank_of_curve(tol)
            enough = np.flatnonzero(self.residual_beside(ranks) <= tol)
            beside = float(np.ceil(ranks[enough[0]])) if len(enough) else np.inf
            return max(min(beside, float(np.ceil(of_curve + self._far_rows(tol)))), of_curve)
        return self._rank_of_curve(tol)

    def _far_rows(self, tol: float) -> float:
        """Pivots that bring what is left of other rows to ``tol``, where it is that of a few far ones.

        Each takes the largest eigenvalue's share of what is left. There are more such rows than in the sample, as there
        are more rows.
        """
        _, left, share = self.beside[1]
        if not 0.0 < tol < left or not share < 1.0:
            return 0.0 if left <= tol else np.inf
        return self.n_samples / self.n_rows * np.log(left / tol) / -np.log1p(-share)

    def _rank_of_curve(self, tol: float) -> float:
        return float(np.ceil(self._rank_of_sample(tol) * self._growth(tol)))

    def _growth(self, tol: float) -> float:
        """Pivots for all rows over those for the sample.

        Each doubling of the rows adds about as many as the one before, on rows with tails, or a part of that part, on
        rows in a box, whose numbers of pivots have a limit.
        """
        reached = max(tol, *(float(x[-1]) for x in (self.curve, *self.of_fewer)))
        if len(self.of_fewer) < 2 or not 0.0 < reached < 1.0:
            return 1.0
        quarter, half, whole = (int(np.count_nonzero(x > reached)) for x in (*self.of_fewer, self.curve))
        added, before = max(whole - half, 0), max(half - quarter, 1)
        doublings = np.arange(1.0, np.log2(max(self.n_samples / self.n_rows, 1.0)) + 1.0)
        return 1.0 + added / max(whole, 1) * float(np.sum(min(added / before, 1.0) ** doublings))

    def _rank_of_sample(self, tol: float) -> float:
        below = np.flatnonzero(self.curve <= tol)
        if len(below):
            return float(below[0])
        last = len(self.curve) - 1
        if self.exhausted:
            return float(last)
        slope, power = self._tail()
        if not (slope > 0.0 and tol > 0.0):
            return float("inf")
        fall = (np.log(self.curve[last]) - np.log(tol)) / slope
        with np.errstate(over="ignore"):
            growth = np.exp(fall) if power < 1e-3 else (1.0 + power * fall) ** (1.0 / power)
        return float(np.ceil(last * growth))

    def residual(self, rank: np.ndarray) -> np.ndarray:
        """Residual trace over trace predicted after so many pivots."""
        last = len(self.curve) - 1
        within = self.curve[np.minimum(rank, last).astype(np.intp)]
        slope, power = self._tail()
        if self.exhausted or not slope > 0.0:
            return within
        growth = np.maximum(rank, last) / last
        fall = np.log(growth) if power < 1e-3 else (growth**power - 1.0) / power
        return np.where(rank <= last, within, self.curve[last] * np.exp(-slope * fall))

    def residual_beside(self, rank: np.ndarray) -> np.ndarray:
        """``residual``, of rows that the pivots were not chosen from: these have more, the more pivots there are.

        Beyond the curve it falls between two: by the power of the rank by which these rows' residual fell before, which
        is mostly too little, and as the curve, which is mostly too much.
        """
        (k0, t0, _), (k1, t1, _) = self.beside
        if not self.curve[k1] > 0.0:
            return np.minimum(self.residual(rank) + t1, 1.0)
        more0, more1 = t0 / self.curve[k0], t1 / self.curve[k1]
        power = max(np.log(more1 / more0) / np.log(k1 / k0), 0.0)
        more = max(more1, 1.0) * (np.minimum(np.maximum(rank, 1.0), k1) / k1) ** power
        within = self.residual(np.minimum(rank, k1)) * np.maximum(more, 1.0)
        beyond = np.maximum(rank, k1) / k1
        with np.errstate(divide="ignore"):
            of_curve = np.log(self.residual(np.maximum(rank, k1)) / self.curve[k1])
        slope = max(np.log(t0 / t1) / np.log(k1 / k0), 0.0)
        return np.minimum(within * np.exp(0.25 * of_curve - 0.75 * slope * np.log(beyond)), 1.0)

    def largest_share(self, rank: np.ndarray, n: np.ndarray) -> np.ndarray:
        """The largest eigenvalue of the residual of so many pivots, over its trace, on n rows drawn by residual."""
        (k0, _, x0), (k1, _, x1) = self.beside
        power = np.clip(np.log(x0 / x1) / np.log(k1 / k0), 0.0, 1.0)  # it falls as a power of their number
        return np.minimum((np.sqrt(x1 * (k1 / np.maximum(rank, 1.0)) ** power) + np.sqrt(1.0 / n)) ** 2, 1.0)

    def _tail(self) -> tuple[float, float]:
        """The slope of -log t over log k at the end of the curve, and p: log t = a - b k^p goes on from there.

        p is between 0 (algebraic decay) and 1 (exponential), by the slopes in the last two thirds of the curve. A slope
        of zero: it does not fall, or the curve is too short.
        """
        last = len(self.curve) - 1
        if last < 6 or not self.curve[last] > 0.0:
            return 0.0, 0.0
        k0, k1 = last // 3, (2 * last) // 3
        t0, t1, t2 = (np.log(self.curve[k]) for k in (k0, k1, last))
        early = (t0 - t1) / np.log(k1 / k0)
        late = (t1 - t2) / np.log(last / k1)
        if not late > 0.0:
            return 0.0, 0.0
        power = np.log(late / early) / np.log(np.sqrt(last / k0)) if early > 0.0 else 0.0
        power = min(1.0, max(0.0, float(power)))
        # at the end of the curve, not at the middle of its last third
        return float(late * np.sqrt(last / k1) ** power), power

    def cost(self, tol: float, kernel_flops: float, n_samples: float = np.inf) -> Cost:
        """Cost of a pivot map at ``tol``, of no more pivots than rows; ``kernel_flops``: of one kernel value."""
        rank = min(self.rank(tol), float(n_samples))
        if not rank < 2**31 - 1:  # of a curve that hardly falls it may be 1e200, whose cube overflows
            return Cost(n_features=2**31 - 1, row_flops=np.inf, setup_flops=np.inf, memory=np.inf, residual=tol)
        return pivots_cost(rank, kernel_flops, tol)


def pivots_cost(rank: float, kernel_flops: float, residual: float, *, candidates: int = SAMPLE_ROWS) -> Cost:
    """Cost of a map of so many pivots, chosen among ``candidates``; ``kernel_flops``: of one kernel value."""
    row = rank * (kernel_flops + SOLVE_FLOPS * rank)
    setup = CHOOSING * candidates * row + PROPOSAL_FLOPS * rank
    return Cost(n_features=int(rank), row_flops=row, setup_flops=setup, residual=residual)


def pivots_rounding(rank: float, entry_error: float) -> float:
    """About what rounding adds to the residual trace of so many pivots, over the trace: twice the shift nu, for kernel
    values of 1 that err by ``entry_error``."""
    return 2.0 * 1.25 * rank * ((_core.FACTOR_BLOCK + 3) * UNIT + entry_error)


def probe_rank(
    kernel: Kernel,
    summary: Summary,
    tol: float,
    rng: np.random.Generator,
    *,
    max_probe: int = 256,
    sample_rows: int = 1024,
    beside: bool = False,
    n_threads: int = 1,
) -> RankProbe:
    """Pivots to ``tol``, at most ``max_probe`` of them, on ``sample_rows`` (at most 2048) rows of the sample.

    ``beside``: look at what they leave of other rows, too.
    """
    S, others = summary.sample, summary.sample[:0]
    size = min(sample_rows, 2048)
    if len(S) > size:
        taken = np.sort(rng.choice(len(S), size, replace=False))
        S, others = S[taken], np.delete(S, taken, axis=0)
    n = len(S)
    diagonal = _diagonal(kernel, S)
    _check(kernel, diagonal)
    trace = float(diagonal.sum())
    shares = np.ones(n) if summary.n_samples > n else None
    candidates = _Candidates(S, diagonal, np.ones(n), shares)
    selection = _select(kernel, candidates, tol * trace, min(max_probe, n), rng, n_threads=n_threads)
    curve = selection.trace / trace if trace > 0.0 else np.zeros(1)
    parts = (4, 2) if shares is not None and n >= 4 else ()
    fewer = [_curve(kernel, S[::part], tol, max_probe, n_threads) for part in parts]
    if len(others) < n // 2:
        others = np.delete(S, selection.index, axis=0)
    spread = np.linspace(0, len(others) - 1, min(n, len(others))).astype(np.intp)
    seen_beside = _look_beside(kernel, S, others[spread], selection, rng, n_threads) if beside else ()
    return RankProbe(curve, n, selection.exhausted, seen_beside, float(summary.n_samples), tuple(fewer))


def _curve(kernel: Kernel, S: np.ndarray, tol: float, max_probe: int, n_threads: int) -> np.ndarray:
    """Residual trace over trace after 0, 1, 2, ... pivots."""
    diagonal, n = _diagonal(kernel, S), len(S)
    trace = float(diagonal.sum())
    if not trace > 0.0:
        return np.zeros(1)
    candidates = _Candidates(S, diagonal, np.ones(n), None)
    rng = np.random.default_rng(0)
    return _select(kernel, candidates, tol * trace, min(max_probe, n), rng, n_threads=n_threads).trace / trace


def _sampled_less(share: float, n: int) -> float:
    """The share of all rows, of that of a sample of n: for a flat spectrum it is that much larger (Marchenko and Pastur
    1967), for one large eigenvalue less so."""
    return max(float(np.sqrt(share)) - float(np.sqrt(1.0 / n)), 0.0) ** 2


def _look_beside(
    kernel: Kernel,
    S: np.ndarray,
    others: np.ndarray,
    selection: _Selection,
    rng: np.random.Generator,
    n_threads: int,
) -> tuple[tuple[int, float, float], ...]:
    """``RankProbe.beside`` after half of the pivots, and after all, on ``others``, half of which are drawn again in
    proportion to their residual."""
    k, n, diagonal = len(selection.index), len(others), _diagonal(kernel, others)
    if k < 8 or n < LEAST_LOOKED_AT:
        return ()
    # the features of the pivots themselves are the factor of their matrix
    factor = np.ascontiguousarray(selection.features[:, selection.index].T)
    F = np.empty((k, n))
    _features(kernel, S[selection.index], factor, others, n_threads, F)
    drawn = []
    for rank in (k // 2, k):
        residual = np.maximum(diagonal - np.einsum("ij,ij->j", F[:rank], F[:rank]), 0.0)
        left = float(residual.sum())
        if not left > 1e-12 * diagonal.sum():
            return ()
        index, counts = np.unique(rng.choice(n, n // 2, p=residual / left), return_counts=True)
        drawn.append((rank, left, residual, index, counts))

    def task(i: int) -> tuple[int, float, float]:
        rank, left, residual, index, counts = drawn[i]
        few = np.ascontiguousarray(F[:rank, index])
        scale = np.sqrt(counts / residual[index])
        G = (_block(kernel, others[index], others[index]) - few.T @ few) * scale[:, None] * scale
        share = _largest_eigenvalue(G) / counts.sum()
        return rank, left / float(diagonal.sum()), max(_sampled_less(share, n // 2), 0.1 / n)

    return tuple(parallel.run(task, len(drawn), n_threads=n_threads))


def _largest_eigenvalue(G: np.ndarray) -> float:
    """From below, within a percent or so, by Lanczos's method; much cheaper than LAPACK's."""
    if len(G) < 32:
        return float(np.linalg.eigvalsh(G)[-1])
    v, before, beside = np.sqrt(G.diagonal()), np.zeros(len(G)), 0.0
    v /= np.linalg.norm(v)
    T = np.zeros((LANCZOS_STEPS + 1, LANCZOS_STEPS + 1))  # the lower triangle
    with parallel.blas_threads():
        for i in range(LANCZOS_STEPS):
            w = G @ v - beside * before
            T[i, i] = w @ v
            w -= T[i, i] * v
            beside = float(np.linalg.norm(w))
            if beside <= 1e-8 * abs(T[0, 0]):
                break
            T[i + 1, i] = beside
            v, before = w / beside, v
        return float(np.linalg.eigvalsh(T[: i + 1, : i + 1])[-1])
