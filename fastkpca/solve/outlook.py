"""Guesses about the next passes of block Krylov; used to plan, never to prove.

mu: upper bound on the eigenvalues outside the basis (`certificate.Bound`); here only guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.rounding import UNIT32
from .basis import Basis
from .beyond import guarded_mu
from .centred import CentredProducts
from .costs import basis_bytes, factorising_seconds, rest_bytes, ritz_seconds, sample_bytes, sampling_seconds
from .sampled import DRAWS, FEWEST
from .task import SolverTarget

__all__ = [
    "EXPLORING_PASSES",
    "LARGER_SHARES",
    "MOST_COLUMNS_WITHOUT_RESTART",
    "NARROWEST",
    "SHARE",
    "Gap",
    "Outlook",
    "by_size",
    "next_is_last",
]

SHORTLY, SOON = 12, 320
"""Blocks, and columns, within which a bound has to come down, or the spectrum is called flat."""
LEAST_STEPS = 8
"""Passes without which a random block proves nothing."""
SPARE, LEAST_SPARE = 25, 8
"""Random columns beyond c: the more, the smaller the constant of the bounds, and the further down a gap may lie."""
EXPLORING_PASSES, EXPLORING_COLUMNS = 8, 300
"""Passes that an exploration takes as a rule, and columns of the basis meanwhile."""
NARROWEST = 0.01
"""Of a gap, relative to the last wanted eigenvalue: what lies in it must be found, or be proved not to be there."""
SHARE, LARGER_SHARES = 0.8, (0.97, 0.93, 0.88)
"""Of the last wanted eigenvalue that mu may be; larger ones take fewer columns, and vectors that err less."""
MOST_COLUMNS_WITHOUT_RESTART = 1600
"""Of a space without restarts; with more Rayleigh-Ritz costs more than it brings."""


@dataclass(frozen=True)
class Gap:
    """Between the first ``columns`` Ritz values and the others, with a ``bound`` inside that the others are to keep.

    ``width``: of the intervals, once it is proved.
    """

    columns: int
    bound: float
    width: float


@dataclass
class Outlook:
    """What a run may expect of its next passes.

    Attributes
    ----------
    products : CentredProducts
    target : SolverTarget
    columns : int
        Most columns of a basis.
    block, widest : int
        Columns of a pass now, and at most.
    by_factorisation : bool
        The spectrum is flat, and a factorisation is to prove that nothing was missed.
    share : float
        Of the last wanted eigenvalue: the mu that the columns of an exact pass are to reach.
    """

    products: CentredProducts
    target: SolverTarget
    columns: int
    block: int
    widest: int
    by_factorisation: bool = False
    share: float = SHARE

    def check_budget(self, size: int, passes: int = 1) -> None:
        """TooDearError where the next ``passes`` on a basis of this size make the run cost more than its budget."""
        sizes = [min(size + i * self.block, self.columns) for i in range(1, passes + 1)]
        self.products.expenses.check([ritz_seconds(self.products.n, columns) for columns in sizes])

    def count(self, lower: np.ndarray) -> int | None:
        """Number of components to return; with a fraction the smallest whose lower ends reach it, None if none does."""
        trace = self.products.trace
        return self.target.count(lower, None if trace is None else sum(trace))

    def mu(self, theta: np.ndarray, with_norm: bool = True, theta_error: float = 0.0) -> np.ndarray:
        """Estimates of mu when the first 1, 2, ... of these Ritz values, which err by ``theta_error``, are kept."""
        products, matrix = self.products, self.products.matrix
        mu = np.full(len(theta), np.inf)
        if matrix.positive_semidefinite and matrix.trace is not None and len(products.row_means):
            mu = np.minimum(mu, matrix.trace - products.n * products.grand_mean - np.cumsum(theta))
        norm = products.norm.centred if products.norm is not None else products.estimated_norm
        if norm is not None and with_norm:
            lost = 2.0 * theta_error * float(np.linalg.norm(theta))
            mu = np.minimum(mu, np.sqrt(np.maximum(norm**2 - np.cumsum(theta**2), 0.0) + lost))
        if matrix.features is not None:
            mu = np.minimum(mu, matrix.features.residual_trace + np.append(theta[1:], theta[-1]))
        return np.maximum(mu, 0.0)

    @property
    def may_guard(self) -> bool:
        """Whether Ritz values of the search may prove a bound: its products say how far they err."""
        search = self.products.matrix.search_product
        return self.target.fraction is None and search is not None and search.search_error is not None

    def guarded_mu(self, theta: np.ndarray, squares: np.ndarray, columns: int) -> float:
        """The mu that the Ritz values of a search beyond so many vectors are expected to prove, whose residuals have
        these ``squares``; infinite where errors of its products are not known."""
        products, matrix = self.products, self.products.matrix
        norm = products.estimated_norm
        if norm is None or not np.isfinite(products.search_error):
            return np.inf
        first, rest = theta[:columns], theta[columns:]
        trace = np.inf
        if matrix.positive_semidefinite and matrix.trace is not None:
            trace = matrix.trace - products.n * products.grand_mean - float(first.sum())
        square = norm**2 - float(np.vdot(first, first)) - 2.0 * float(squares[:columns].sum())
        return guarded_mu(rest, squares[columns:], products.search_error, trace, square, 0.0)

    def search_theta_error(self, theta: np.ndarray) -> float:
        """About how far Ritz values of the search are off: the norm of what values lose in float32, as it is random."""
        return UNIT32 * self.products.search_size(theta) / float(np.sqrt(self.products.n))

    def mu_falls(self, theta: np.ndarray, c: int, now: float, enough: float = 0.9, theta_error: float = 0.0) -> bool:
        """Whether mu is not below ``enough`` of the last wanted eigenvalue, but likely to be within a few blocks.

        Each new column lowers the remaining trace or norm by at most about the smallest converged guard value.
        """
        if now <= enough * theta[c - 1]:
            return False
        guard = max(float(theta[min(len(theta), self.block) - 1]), 0.0)
        hoped = np.concatenate([theta, np.full(2 * self.block, guard)])
        return float(self.mu(hoped, theta_error=theta_error)[-1]) <= enough * theta[c - 1]

    def spare_memory(self, columns: int) -> float:
        """Bytes that a basis of so many columns leaves."""
        memory = self.products.expenses.budget.memory
        return np.inf if memory is None else memory - basis_bytes(self.products.n, columns, self.block)

    def factorises(self, columns: int, within: float | None = None) -> bool:
        """Whether a factorisation of the matrix beyond so many columns fits, and costs less than an exploration (or
        than so many seconds)."""
        products, n = self.products, self.products.n
        if products.matrix.entries is None or rest_bytes(n, columns) > self.spare_memory(columns):
            return False
        budget, spent = products.expenses.budget, products.expenses.seconds
        seconds = factorising_seconds(n, columns, budget.pass_seconds)
        if not (self.target.probabilistic and products.matrix.positive_semidefinite):
            return spent + seconds <= budget.seconds
        return seconds <= (self._exploring_seconds(EXPLORING_COLUMNS) if within is None else within)

    def draws_within(self, draws: int, columns: int) -> int:
        """So many rows for a sample, or more where they cost less than a pass; 0 where these cost too much."""
        n, spare, limit = self.products.n, self.spare_memory(columns), self._exploring_seconds(columns)
        if sample_bytes(n, columns, draws) > spare or sampling_seconds(draws, columns) > limit:
            return 0
        limit = self.products.expenses.budget.pass_seconds
        more = range(draws, DRAWS + 1, FEWEST)
        fit = [x for x in more if sample_bytes(n, columns, x) <= spare and sampling_seconds(x, columns) <= limit]
        return max([draws, *fit]) if draws else 0

    def _exploring_seconds(self, columns: int) -> float:
        pass_seconds = self.products.expenses.budget.pass_seconds
        return EXPLORING_PASSES * (pass_seconds + ritz_seconds(self.products.n, columns))

    def awaits_factorisation(self, theta: np.ndarray) -> bool:
        """Whether a flat spectrum is best left to a factorisation: one that fits, on vectors that converge in time.

        A block gains a factor exp(2 acosh(2 theta_c / theta_(b+1) - 1)) a pass (Chebyshev).
        """
        budget, passes, c = self.products.expenses.budget, self.products.expenses.passes, self.target.c
        last, after = float(theta[c - 1]), float(theta[min(self.block, len(theta) - 1)])
        if not (last > 0 and self.factorises(EXPLORING_COLUMNS)):
            return False
        gain = 2.0 * np.arccosh(max(2.0 * last / max(after, 1e-3 * last) - 1.0, 1.0))
        return bool(np.log(theta[0] / (self.target.tol * last)) <= gain * (budget.passes - passes - 2))

    def gap_behind(self, theta: np.ndarray, squares: np.ndarray, c: int) -> Gap:
        """The gap behind which a factorisation is to prove that nothing else lies, and how wide that leaves intervals.

        ``squares``: of the norms of the residuals of all Ritz vectors.
        """
        p = np.arange(c, len(theta))
        p = p[theta[p] <= (1.0 - NARROWEST) * theta[c - 1]]
        if not len(p) or not theta[c - 1] > 0:
            return Gap(0, np.inf, np.inf)
        widths = 2.0 * np.cumsum(squares)[p - 1] / (theta[c - 1] - theta[p])
        best = int(np.argmin(widths))
        bound = 0.5 * (float(theta[c - 1]) + max(float(theta[p[best]]), 0.0))
        return Gap(int(p[best]), bound, float(widths[best]))

    @property
    def random_block(self) -> int:
        """Columns of a random block to begin with: as wide as the passes to come leave room for; 0 where none fits."""
        expenses, c = self.products.expenses, self.target.c
        passes = expenses.budget.passes - expenses.passes
        possible = self.target.probabilistic and self.target.fraction is None and passes >= LEAST_STEPS
        if not possible or not self.products.matrix.positive_semidefinite:
            return 0
        columns = min(self.columns, MOST_COLUMNS_WITHOUT_RESTART, self.products.n - 1)
        block = max(min(c + SPARE, max(self.block, columns // passes)), c + LEAST_SPARE)
        return block if LEAST_STEPS * block <= columns else 0

    def starts_flat(self) -> bool:
        """Most of the trace lies beyond any feature map, and nothing else than the trace bounds what is left."""
        matrix = self.products.matrix
        only_the_trace = matrix.features is None and not matrix.product.gives_norm
        return only_the_trace and self.random_block > 0

    def looks_flat(self, theta: np.ndarray) -> bool:
        """Will no bound from trace, norm or feature map ever get below the last wanted eigenvalue? After two passes."""
        c, more = self.target.c, max(SHORTLY * self.block, SOON)
        if not self.random_block or len(theta) + more > self.products.n or c > len(theta) or not theta[c - 1] > 0:
            return False
        guard = max(float(theta[min(len(theta), self.block) - 1]), 0.0)
        hoped = np.concatenate([theta, np.full(more, guard)])
        return float(self.mu(hoped)[-1]) > 0.9 * theta[c - 1]

    def columns_to_keep(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Indices of the Ritz vectors for the exact pass, and the mu that they are expected to give.

        With more of them mu is smaller, and the pass costs more. First come the wanted ones, then those with the
        largest absolute values (the negative ones of an indefinite matrix count in |A|_F).
        """
        c = min(self.count(theta) or self.target.c, len(theta))
        least = min(c + 2, len(theta))
        order = by_size(theta, least)
        limit = max(min(len(theta), max(8 * c, c + 60), self.columns - self.block), least)
        expected = self.mu(theta[order], theta_error=self.search_theta_error(theta))[least - 1 : limit]
        enough = np.flatnonzero(expected <= self.share * theta[c - 1])
        if len(enough):
            return order[: least + enough[0]], float(expected[enough[0]])
        mu = float(expected[-1])
        # out of reach: more columns help an exploration, and are wasted where there will be none
        if not self.target.probabilistic and mu > 1.1 * theta[c - 1]:
            limit = max(min(self.block, limit), least)
        return order[:limit], mu

    def norm_would_help(self, theta: np.ndarray) -> bool:
        """Whether to compute the norm in the first exact pass, after a search that ended with these Ritz values."""
        if not len(theta):
            return False
        c = min(self.count(theta) or self.target.c, len(theta))
        order = self.columns_to_keep(theta)[0]
        without = float(self.mu(theta[order], with_norm=False)[-1])
        # the estimate from a feature map will hold; that from the trace needs every column to converge
        return without > (0.3 if self.products.matrix.features is None else self.share) * theta[c - 1]

    def widened(self, X: np.ndarray, basis: Basis) -> np.ndarray:
        """While the eigenvalues do not reach the fraction asked for: twice the block, filled with random columns."""
        extra = min(X.shape[1], self.widest - X.shape[1], self.columns - basis.size - 2 * X.shape[1])
        if self.target.fraction is None or extra <= 0:
            return X
        more = basis.rng.standard_normal((basis.n, extra))
        return np.hstack([X, basis.orthonormal(more, beside=X)])


def next_is_last(history: list[tuple[int, float]], first_rate: float, goal: float) -> tuple[bool, float]:
    """(Whether one more pass is expected to reach a width of ``goal``, the factor by which it narrows).

    ``history``: (passes, width over the largest eigenvalue) so far. The factor is that of the last pass, of the first
    one ``first_rate``. A width beyond the largest eigenvalue says that nothing is known, not how fast it falls.
    """
    width = history[-1][1]
    rate = min(width / min(history[-2][1], 1.0) if len(history) > 1 else first_rate, 1.0)
    return width * rate <= goal, rate


def by_size(theta: np.ndarray, c: int) -> np.ndarray:
    """Order of Ritz values: the c largest, then the others by absolute value."""
    return np.concatenate([np.arange(c), c + np.argsort(-np.abs(theta[c:]), kind="stable")])
