"""Block Krylov from a random block, for spectra that fall so slowly that sums of eigenvalues prove nothing.

Nothing is restarted: ``random_start`` turns the number of passes since the random block into upper ends of all
eigenvalues. Once the wanted vectors have converged, a second random block, on the complement of the space, may prove
the rest sooner: what is left there is smaller, so fewer passes do. Only the leading Ritz pairs are formed.

mu: upper bound on the eigenvalues outside the basis (`certificate.Bound`).
"""

from __future__ import annotations

import numpy as np

from ..base.rounding import UNIT, rounding_factor
from .beyond import lanczos_failure_epsilon
from .certificate import Bound, ritz_certificate
from .costs import leading_pairs_seconds
from .exact_passes import OF_EXPLORATIONS, OF_START, ExactRun, Exploration, Pairs, Verdict
from .outlook import MOST_COLUMNS_WITHOUT_RESTART, Outlook
from .random_start import GaussianStart, separated_bound

__all__ = ["FlatRun"]

MOST_PASSES = 40
"""As far as predictions go."""


class FlatRun(ExactRun):
    """As ``ExactRun``, with bounds that rest on the random block that the space began with."""

    def __init__(self, outlook: Outlook, rng: np.random.Generator, *, before: ExactRun | None = None):
        super().__init__(outlook, rng, want_norm=False, before=before)
        outlook.block = outlook.random_block
        outlook.columns = min(outlook.columns, MOST_COLUMNS_WITHOUT_RESTART)
        block = rng.standard_normal((self.n, outlook.block))
        block -= block.mean(axis=0)  # H block: the space belongs to H K H
        self.start, self.first_block = (
            GaussianStart(block, OF_START * outlook.target.failure),
            self.basis.orthonormal(block),
        )
        self.steps = 0
        self.exploration_failed = False
        self.upper = np.full(outlook.block, np.inf)

    def run_from_random_block(self) -> tuple[Pairs, Verdict]:
        X = self.first_block
        while True:
            self._multiply(X)
            if not self._look_is_due(X.shape[1]):
                X = self.basis.orthonormal(self.basis.images[:, -X.shape[1] :], noise=self.noise)
                continue
            pairs = self._look()
            verdict = self._with_factorisation(pairs, self._judge(pairs))
            if self._at_end(pairs.theta, verdict, explore=False) or self._full():
                break
            X = self._block_after(pairs, X.shape[1], verdict.c)
        self._switch_if_other_method_is_cheap(pairs, verdict)
        return pairs, verdict

    def _multiply(self, X: np.ndarray) -> None:
        self.expenses.check([leading_pairs_seconds(self.n, self.basis.size + X.shape[1], X.shape[1])])
        self.basis.append(X, self.products.exact(X, False))
        if self.exploration is not None:
            self.exploration.steps += 1
        elif not self.exploration_failed:  # else other columns have come between
            self.steps += 1

    def _look_is_due(self, last: int) -> bool:
        """After each pass where passes are dear; after every second one where Ritz pairs are."""
        budget, passes = self.expenses.budget, self.expenses.passes
        cheap = budget.pass_seconds < 2.0 * leading_pairs_seconds(self.n, self.basis.size, last)
        at_end = passes >= budget.passes or self.basis.room == 0 or self.basis.size + last > self.outlook.columns
        return at_end or passes % 2 == 0 or not cheap or self.basis.size < 4 * last

    def _look(self) -> Pairs:
        block = self.outlook.block
        self.expenses.seconds += leading_pairs_seconds(self.n, self.basis.size, block)
        theta, Y = self.basis.ritz(leading=block)
        size = max(self.products.estimated_size(theta), float(theta[0]))
        self.noise = 4 * rounding_factor(self.n) * UNIT * size
        if self.exploration is not None:
            self._restart_exploration_if_it_found_a_missed_eigenvalue(theta)
            self.exploration_failed |= self.exploration is None
        elif not self.exploration_failed:
            self._tighten_upper_ends(self.start.eigenvalue_bounds(theta, self.steps, self._error_of_space()))
        return Pairs(theta, Y, self.basis.residuals(theta, Y))

    def _block_after(self, pairs: Pairs, last: int, c: int) -> np.ndarray:
        if self.exploration is None and self._second_block_pays(pairs, c):
            self.exploration = self._new_exploration(min(self.outlook.block, self.basis.room))
            return self.basis.orthonormal(self.rng.standard_normal((self.n, self.outlook.block)))
        return self.basis.orthonormal(self.basis.images[:, -last:], noise=self.noise)

    # the certificate -----------------------------------------------------------------------------------------

    def _take_ends_of_exploration(self, exploration: Exploration, last: float) -> None:
        """The complement of the first columns is bounded, and these columns are in the space: certify all of it."""
        outside = self._explored_bound(exploration, self.products.error(self.basis.size))
        if outside.mu > last:
            return
        theta, Y = self.basis.ritz()
        ritz = self._ritz_block(Pairs(theta, Y, self.basis.residuals(theta, Y)))
        certificate = ritz_certificate(ritz, min(len(self.upper), len(theta)), self.products.info, outside)
        self._tighten_upper_ends(certificate.eigenvalue_bounds[:, 1])

    def _tighten_upper_ends(self, ends: np.ndarray) -> None:
        self.upper[: len(ends)] = np.minimum(self.upper[: len(ends)], ends)

    def _error_of_space(self) -> float:
        """How far from H K H the matrix is to which the computed space belongs."""
        return 4.0 * self.products.error(self.basis.size)

    def _certify(self, pairs: Pairs) -> Verdict:
        theta, ritz = pairs.theta, self._ritz_block(pairs)
        c = min(self.target.c, len(theta))
        if self.exploration is not None and self.exploration.steps > 0:
            self._take_ends_of_exploration(self.exploration, float(theta[c - 1]))
        failure = (OF_START + (OF_EXPLORATIONS if self.explorations else 0.0)) * self.target.failure
        outside = separated_bound(self.upper, ritz, failure)
        certificate = ritz_certificate(ritz, c, self.products.info, outside).tightened(self.upper)
        return Verdict(certificate, c, self._done(certificate, theta, c), False)

    # whether to explore --------------------------------------------------------------------------------------

    def _second_block_pays(self, pairs: Pairs, c: int) -> bool:
        """The vectors have converged, and the first block would need more passes than a second one."""
        if c > len(pairs.theta) or self.basis.size < 3 * self.outlook.block:
            return False
        hope = Bound(0.95 * max(float(pairs.theta[c - 1]), 0.0), "hope")
        hoped = ritz_certificate(self.ritz, c, self.products.info, hope)
        if not self._done(hoped, pairs.theta, c):
            return False
        passes = self._passes_of_exploration(float(pairs.theta[c - 1]))
        fits = self.basis.size + (passes + 1) * self.outlook.block <= min(self.outlook.columns, self.n - 1)
        in_time = passes <= self.expenses.budget.passes - self.expenses.passes
        return fits and in_time and not self._separates_within(passes, pairs.theta, c)

    def _passes_of_exploration(self, last: float) -> int:
        """Until it proves what is beyond the space to be below the last wanted eigenvalue."""
        block = self.outlook.block
        # the last two blocks show most of what the columns before them left over
        failure = self._failure_of_exploration()
        left = 1.15 * max(self.basis.largest_beyond(self.basis.size - 2 * block), 0.0)
        for steps in range(2, MOST_PASSES):
            eps = lanczos_failure_epsilon(self.n, steps, block, failure / MOST_PASSES)
            if left <= 0.97 * last * (1.0 - eps):
                return steps
        return MOST_PASSES

    def _separates_within(self, passes: int, theta: np.ndarray, c: int) -> bool:
        """Whether the first block, after so many more passes, proves a gap at or below the last wanted eigenvalue."""
        if self.exploration_failed or passes >= MOST_PASSES:
            return not self.exploration_failed
        upper = self.start.eigenvalue_bounds(theta, self.steps + passes, self._error_of_space())
        p = np.arange(c, min(len(upper), len(theta)))
        return bool(np.any(upper[p] < theta[p - 1] - 0.1 * (theta[p - 1] - theta[p])))
