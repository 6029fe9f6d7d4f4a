"""The eigensolver: block Krylov with full Rayleigh-Ritz, until the intervals around the eigenvalues meet tol.

One loop (`grow`) is for all matrices A: the centred kernel matrix in float32 and in float64, and second moments of
feature maps. It multiplies a block, appends it to the basis, and stops when a convergence monitor says so:

- `Search`, for products in float32: one pass in float64 on some of the Ritz vectors is expected to finish.
- `certifier.Certifier`, for products whose error is known: the intervals (``certificate``) meet tol. Once the vectors
  have converged, and only a bound on the complement is missing, it selects the cheapest of the proofs in ``proofs``.
- `truncated.GapSearch`, for products with a truncated matrix: the spectrum has a gap, after which a filter is cheap.

The caller gives the matrix (``operators``), the first block, and the budget.
"""

from __future__ import annotations

import numpy as np

from ..base.rounding import UNIT
from ..products.rates import RATE
from .basis import RitzPairs, Space
from .certificate import ritz_certificate
from .complement import GAP_FRACTION, MU_FRACTION, deterministic_bound, gap_behind
from .costs import Expenses, check_seconds, step_seconds
from .operators import Operator
from .task import SolverTarget

WIDTH_GOAL = 0.6
"""Width over tol that the float64 pass after a search is expected to reach."""
CHECK_GROWTH_FACTOR = 1.15
"""Growth of the basis since the last convergence check at which the next is due, at any cost."""
CHECKS_FOR_PACE = 3
"""Convergence checks that set the pace: before a spectrum is called flat, and before the widths are extrapolated. As
many follow where the vectors of a search have converged, and trace or norm may still bound the complement."""


def grow(A: Operator, X: np.ndarray, space: Space, monitor: ConvergenceMonitor, expenses: Expenses) -> None:
    """Multiply, append and check, block by block; the first block is X, made orthonormal and orthogonal to the basis.

    Raises
    ------
    BudgetExceededError
        The next pass would cost more than the budget leaves.
    """
    X = space.basis.orthonormal(X)
    while True:
        algebra = RATE.a_pass + step_seconds(A.n, space.basis.size + X.shape[1], X.shape[1])
        expenses.check(expenses.budget.pass_seconds + algebra)
        space.basis.append(X, A.multiply(X))
        expenses.count_pass(search=not A.certain, times=A.share * max(X.shape[1] / space.block, 1.0))
        expenses.seconds += algebra
        if monitor.ends_after_check():
            return
        X = monitor.next_block()


class ConvergenceMonitor:
    """Convergence monitor: checks Ritz pairs once the passes since the last check cost half as much as a check.

    Attributes
    ----------
        A, space, target, expenses
        Matrix, Krylov space, target and budget of the run.
    ritz : RitzPairs
        Ritz pairs at the last check.
    c : int
        Number of components wanted: the target's, at most the columns of the basis.
    history : list of (passes, width over the largest eigenvalue)
        One entry for each check.
    n_checks : int
        Number of checks.
    """

    ritz: RitzPairs
    c: int
    continues = False
    """True if the last block has to be continued, for any Ritz vectors."""

    def __init__(self, A: Operator, space: Space, target: SolverTarget, expenses: Expenses):
        self.A, self.space, self.target, self.expenses = A, space, target, expenses
        self.basis, self.n_checks = space.basis, 0
        self.history: list[tuple[int, float]] = []
        self._seconds_at_check, self._size_at_check = expenses.seconds, 0
        self._pace: list[tuple[int, float]] = []

    # when to check -------------------------------------------------------------------------------------------

    def ends_after_check(self) -> bool:
        """Do a convergence check where one is due, with the proofs that it selects; True if the run ends."""
        if not self._check_is_due():
            return False
        self.ritz = self.basis.ritz()
        self.n_checks += 1
        self.expenses.seconds += check_seconds(self.basis.size, certified=False)
        self._seconds_at_check, self._size_at_check = self.expenses.seconds, self.basis.size
        self.c = min(self.count(self.ritz.theta) or self.basis.size, self.basis.size)
        return self._is_enough()

    def _check_is_due(self) -> bool:
        size = self.basis.size
        if self.space.full or self.expenses.over or self.basis.free_columns == 0 or not self.basis.is_krylov:
            return True
        is_cheap = self.expenses.seconds - self._seconds_at_check >= 0.5 * self.check_seconds(size)
        return is_cheap or size >= CHECK_GROWTH_FACTOR * self._size_at_check

    def _is_enough(self) -> bool:
        raise NotImplementedError

    def pass_seconds(self) -> float:
        """Predicted seconds of the next pass, of its orthogonalisation and of the check."""
        size, b = self.basis.size + self.space.block, self.space.block
        return self.expenses.budget.pass_seconds + step_seconds(self.A.n, size, b) + self.check_seconds(size)

    def check_seconds(self, columns: int) -> float:
        return check_seconds(columns, certified=self.A.certain)

    def record(self, width: float) -> None:
        """Add the width of the widest interval, over the largest eigenvalue, to the history and to the log."""
        self.history.append((self.expenses.passes, width))
        kind = "intervals" if self.A.certain else "expected intervals"
        self.expenses.log("%d columns, %s of %.2g of the largest eigenvalue", self.basis.size, kind, width)

    def check_pace(self, width: float) -> None:
        """Raise BudgetExceededError where the widths fall so slowly that another method is predicted to end sooner."""
        self._pace = [*self._pace[-CHECKS_FOR_PACE:], (self.expenses.passes, width)]
        (before, first), (passes, last) = self._pace[0], self._pace[-1]
        if len(self._pace) <= CHECKS_FOR_PACE or not 0.0 < first < np.inf or passes == before:
            return
        fall = min(np.log(max(last, 1e-300) / first) / (passes - before), np.log(0.999))  # a pass
        later = np.clip(np.log(self.target.tol / max(last, 1e-300)) / fall, 1.0, self.expenses.budget.passes)
        # where the vectors have converged, a pass or two bring the bound on the complement: no forecast falls
        check = self.expenses.check if last <= self.target.tol else self.expenses.check_forecast
        check(float(later) * self.pass_seconds())

    # estimates -----------------------------------------------------------------------------------------------

    def count(self, lower: np.ndarray) -> int | None:
        """Number of components to return; with a fraction the smallest whose lower ends reach it, None if none does."""
        return self.target.count(lower, self.A.total)

    @property
    def is_short(self) -> bool:
        """True if the basis has fewer components than wanted."""
        return self.count(self.ritz.theta) is None if self.target.fraction is not None else self.c < self.target.c

    @property
    def is_outgrown(self) -> bool:
        """True if the components that fill the space do not reach the fraction asked for."""
        return self.target.fraction is not None and self.space.full and self.count(self.ritz.theta) is None

    def expected_mu(self, theta: np.ndarray) -> np.ndarray:
        """Estimated bounds from trace and norm on the complement of the first 1, 2, ... of these Ritz vectors."""
        trace, norm = self.A.expected_sums()
        by_trace = np.full(len(theta), np.inf) if trace is None else trace - np.cumsum(theta)
        by_norm = np.inf if norm is None else np.sqrt(np.maximum(norm**2 - np.cumsum(theta**2), 0.0))
        return np.maximum(np.minimum(by_trace, by_norm), 0.0)

    def predicted_width(self, mu: float) -> float:
        """Estimated width of the widest interval, over the largest eigenvalue, for the bound mu on the complement."""
        theta = self.ritz.theta
        if self.is_short or not theta[0] > 0.0:
            return np.inf
        return float(self._predicted_widths(mu, self.ritz.squares[: self.c]).max() / theta[0])

    def _predicted_widths(self, mu: float, squares: np.ndarray) -> np.ndarray:
        """Widths of all intervals: the largest eigenvalue of [[theta, r], [r, mu]] less theta."""
        squares, half = np.maximum(squares, 0.0), 0.5 * (self.ritz.theta[: self.c] - mu)
        root = np.hypot(half, np.sqrt(squares))
        return np.where(half > 0.0, squares / np.where(half > 0.0, half + root, 1.0), root - half)

    def bound_for(self, width: float) -> float:
        """The largest bound on the complement with no larger `predicted_width`: the mu of x (x + theta - mu) = r^2."""
        theta, c, x = self.ritz.theta, self.c, width * float(self.ritz.theta[0])
        if self.is_short or not x > 0.0:
            return -np.inf
        return float((theta[:c] + x - np.maximum(self.ritz.squares[:c], 0.0) / x).min())

    # next block ----------------------------------------------------------------------------------------------

    def next_block(self) -> np.ndarray:
        space, basis = self.space, self.basis
        noise = self.A.noise(self.ritz.theta) if self.n_checks else 0.0
        if space.full:
            self.restart(space.kept or space.columns - 2 * space.block)
        if self.target.fraction is not None and self.n_checks and self.count(self.ritz.theta) is None:
            return self._widened(noise)
        if not self.n_checks:
            return basis.next_block(None, space.block)
        return basis.next_block(self.ritz, space.block, noise, wanted=self.c, continues=self.continues)

    def restart(self, kept: int) -> None:
        """Thick restart with ``kept`` Ritz vectors: those wanted, two more, and the largest others."""
        least = min(self.c + 2, self.basis.size)
        self.basis.restart(self.ritz, by_size(self.ritz.theta, least)[: max(kept, least)])
        self.ritz = self.basis.ritz()

    def _widened(self, noise: float) -> np.ndarray:
        """Wider block, filled with random columns, while the eigenvalues do not reach the fraction asked for."""
        space, basis = self.space, self.basis
        X = basis.next_block(self.ritz, space.block, noise, wanted=self.c)
        extra = min(X.shape[1], space.widest - X.shape[1], space.columns - basis.size - 2 * X.shape[1])
        if extra <= 0:
            return X
        space.block = X.shape[1] + extra
        return basis.orthonormal(np.hstack([X, basis.rng.standard_normal((basis.n, extra))]))


class Search(ConvergenceMonitor):
    """Convergence monitor of the float32 phase: it stops when one pass in float64 is expected to finish.

    ``factorising``: predicted seconds of a factorisation that will bound the complement where trace and norm do not,
    if a random block would take longer.
    """

    flat = False
    """True if the spectrum falls so slowly that the float32 phase is of no use."""
    factorising = np.inf
    """Predicted seconds of a factorisation; infinite where none will follow."""
    rate = 1.0
    """Factor by which a pass shrinks the widths."""
    extra = 0
    """Convergence checks since the vectors have converged."""
    most_extra: float = CHECKS_FOR_PACE
    """Checks after which a search no longer waits for trace or norm to bound the complement."""
    low = MU_FRACTION
    """Sufficient bound on the complement, over the last wanted eigenvalue."""

    def _is_enough(self) -> bool:
        theta, c = self.ritz.theta, self.c
        noise = float(self.A.noise(theta) / theta[0]) if theta[0] > 0.0 else np.inf
        if self.basis.free_columns == 0 or self.expenses.left <= 1 or not noise < 1e-2 or self.is_outgrown:
            return True
        goal = max(WIDTH_GOAL * self.target.tol, 100.0 * noise**2)
        if self.n_checks == CHECKS_FOR_PACE and not self._converges_in_time():
            self.factorising = np.inf
        if self.n_checks == CHECKS_FOR_PACE and not self.factorising < np.inf and self._no_bound_suffices():
            self.flat = True
            return True
        if self.count(theta) is None:
            self.A.measures = True
            return False
        after = self._after() if len(theta) > c else 0.0
        width = self.predicted_width(min(after, 0.999 * float(theta[c - 1])))
        before, rate = min(self.history[-1][1], 1.0) if self.history else 1.0, self.rate
        self.rate = min(width / before if self.history else (after / float(theta[c - 1])) ** 2, 1.0)
        if len(self.history) > 1:
            self.rate *= min(self.rate / rate, 1.0)  # convergence is superlinear
        highest = self.bound_for(goal / (1.5 * max(self.rate, 1e-12)))
        self.low = float(np.clip(highest / max(float(theta[c - 1]), 1e-300), MU_FRACTION, 1.0 - GAP_FRACTION))
        # the norm costs nothing more in a pass, and may bound the complement where the trace does not
        self.A.measures = self.A.measures or float(self.expected_mu(theta)[-1]) > self.low * theta[c - 1]
        self.record(width)
        self.check_pace(width)
        unproved = float(self.expected_mu(theta)[-1]) > theta[c - 1]
        if self.factorising < np.inf and unproved:
            width, *_ = gap_behind(theta, self.ritz.squares, c)
            if width > goal * theta[0]:
                return False
            # an unknown norm is computed in the pass in float64 at no further cost
            if self.factorising <= CHECKS_FOR_PACE * self.pass_seconds() or self.A.expected_sums()[1] is None:
                return True
        elif self.predicted_width(self.low * float(theta[c - 1])) * self.rate > goal:
            return False
        # a few more columns may lower the bound on the complement as well
        self.extra += 1
        more = max(self.most_extra - self.extra, 0.0) if self.most_extra > CHECKS_FOR_PACE else 1.0
        return self.extra >= self.most_extra or not self._bound_falls(more)

    def _after(self) -> float:
        """Estimate of the largest eigenvalue after those of a block."""
        theta = self.ritz.theta
        return max(float(theta[min(self.space.block, len(theta)) - 1]), 0.0)

    def _bound_falls(self, blocks: float) -> bool:
        """True if trace and norm do not bound the complement well now, but are expected to after ``blocks`` more
        blocks."""
        theta, c, b = self.ritz.theta, self.c, self.space.block
        enough = max(self.low * float(theta[c - 1]), self.bound_for(WIDTH_GOAL * self.target.tol))
        if float(self.expected_mu(theta)[-1]) <= enough:
            return False
        more = np.full(int(min(blocks * b, self.basis.free_columns)), self._after())
        return float(self.expected_mu(np.concatenate([theta, more]))[-1]) <= enough

    def _converges_in_time(self) -> bool:
        """True if the passes left suffice at the rate exp(-2 acosh(2 theta_c / theta_(b+1) - 1)) a pass (Chebyshev)."""
        theta, last = self.ritz.theta, float(self.ritz.theta[self.c - 1])
        after = max(float(theta[min(self.space.block, len(theta) - 1)]), 1e-3 * last)
        if not last > 0.0:
            return False
        gain = 2.0 * float(np.arccosh(max(2.0 * last / after - 1.0, 1.0)))
        return bool(np.log(theta[0] / (self.target.tol * last)) <= gain * (self.expenses.left - 2))

    def _no_bound_suffices(self) -> bool:
        """True if no bound from trace or norm is expected to fall below the last wanted eigenvalue."""
        theta, c, blocks = self.ritz.theta, self.c, 12
        fits = len(theta) + blocks * self.space.block <= self.A.n
        if not (fits and self.target.fraction is None and c >= self.target.c and theta[c - 1] > 0.0):
            return False
        return float(self.expected_mu(theta)[-1]) > self.low * theta[c - 1] and not self._bound_falls(blocks)

    def proved_ends(self) -> np.ndarray:
        """Upper bounds on the m largest eigenvalues, m columns in the basis; infinite if their error is unknown."""
        m, error = self.basis.size, self.A.error(self.basis.size)
        if not error < np.inf:
            return np.full(m, np.inf)
        block, info = self.basis.ritz_block(self.ritz, error, self.A.size), self.A.info(m)
        return ritz_certificate(block, m, info, deterministic_bound(block, info)).eigenvalue_bounds[:, 1]

    def columns(self, upper: np.ndarray) -> np.ndarray:
        """Columns of the pass in float64: Ritz vectors whose complement has a small bound, and residuals of some.

        Wanted Ritz vectors that have not converged take the step v + r / (theta - s), which costs no column: it
        divides the part of v in the eigenvalues [0, 2 s] by (theta - s) / s. Where that is not enough, the residual
        becomes a column, too. ``upper`` are proven upper bounds on the eigenvalues: upper[p] bounds the complement of
        p Ritz vectors whose values lie above it.
        """
        theta, c, tol = self.ritz.theta, self.c, self.target.tol
        least = min(c + 2, len(theta))
        order = by_size(theta, least)
        limit = max(min(len(theta), self.space.columns - self.space.block), least)
        bounds = self.expected_mu(theta[order])
        bounds[:-1] = np.minimum(bounds[:-1], np.where(theta[:-1] > upper[1:], upper[1:], np.inf))
        bounds = np.minimum.accumulate(bounds)
        low = np.flatnonzero(bounds[least - 1 : limit] <= self.low * theta[c - 1])
        # out of reach: more columns would not help
        keep = order[: least + low[0]] if len(low) else order[: max(least, min(limit, self.space.block))]
        V = self.basis.vectors(self.ritz.Y[:, keep])
        bound = min(float(bounds[len(keep) - 1]), self.low * float(theta[c - 1]))
        squares, goal = self.ritz.squares[:c], WIDTH_GOAL * tol * theta[0]
        wide = np.flatnonzero(self._predicted_widths(bound, squares) > goal)
        if not (len(wide) and theta[0] > 0.0) or self.basis.free_columns == 0 or self.is_outgrown:
            return V
        middle = 0.5 * self._after()
        beyond = np.maximum(theta[:c] - middle, max(middle, UNIT * float(theta[0])))
        still = self._predicted_widths(bound, squares * (middle / beyond) ** 2) > goal
        R = self.basis.residuals(self.ritz.Y[:, wide])
        V[:, wide] += R / beyond[wide]
        return np.hstack([V, R[:, still[wide]]])


def by_size(theta: np.ndarray, c: int) -> np.ndarray:
    """Order of Ritz values: the c largest, then the others by absolute value (those of an indefinite matrix count in
    its norm)."""
    return np.concatenate([np.arange(c), c + np.argsort(-np.abs(theta[c:]), kind="stable")])
