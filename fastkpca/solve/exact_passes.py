"""The main loop of block Krylov: float64 passes, and after each one the intervals, until these are narrow enough.

mu: upper bound on the eigenvalues outside the basis (`certificate.Bound`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..base.rounding import UNIT, rounding_factor
from ..errors import rounded_up
from .basis import Basis, inner, times
from .beyond import (
    Guards,
    beyond_leading,
    deterministic_bound,
    exploration_bound,
    failure_of_attempt,
    feature_bound,
    guarded_bound,
)
from .certificate import NO_BOUND, Bound, Certificate, RitzBlock, ritz_certificate
from .costs import (
    HELD_GUARDS,
    TooDearError,
    default_block_size,
    factorising_seconds,
    near_seconds,
    ritz_seconds,
    sampling_seconds,
)
from .filtered import filter_steps, filtered_bound
from .narrow import COLUMNS, NarrowStart
from .outlook import Gap, Outlook, by_size, next_is_last
from .rest import Rest
from .sampled import draws_for

__all__ = ["ExactRun", "Exploration", "KrylovResult", "Pairs", "Verdict"]

OF_START, OF_EXPLORATIONS, OF_SAMPLES = 0.3, 0.6, 0.1
"""Shares of the probability of failure: of the random block that a flat spectrum's run begins with, of all later ones
over all their stopping times, and of samples of rows."""
SHARES = (0.9, 0.8, 0.7, 0.6, 0.4, 0.2)
"""Of the last wanted eigenvalue: bounds on those beyond the basis that a sample is to prove."""
ABOVE_SHARES = (0.8, 0.5)
"""Of the width that an interval may have: bounds above the last wanted eigenvalue, where that is smaller than this."""
NEAR_SHARES = (0.99, 0.98, 0.97, 0.95, 0.93, *SHARES)
"""The same for polynomials of near values, to which a narrow gap costs little."""
MOST_STEPS = 400
"""Of such a polynomial."""
FILTER_SLACK = 4.0
"""Steps over those that it is predicted to take."""
LEAST_EXPLORING_PASSES = 4
APPROACH, LOOK = 6, 2
"""Passes at most without a certificate, and those after which a spectrum may look flat."""
PACE, SLOW = 3, 0.8
"""Exact passes whose widths tell the pace, and by what factor each narrows where that is too slow to wait for more."""
GROWTH = 1.5
"""Factor by which a basis has to have grown before another try to prove that."""
SWITCH_FACTOR = 4.0
"""If a run misses its tolerance, switch to the other method when that costs at most SWITCH_FACTOR times what this run
has cost."""


@dataclass(frozen=True)
class KrylovResult:
    """What ``block_krylov`` reached.

    Attributes
    ----------
    theta : ndarray (c,)
        Ritz values, descending.
    vectors : ndarray (n, c)
        Ritz vectors, orthonormal, each orthogonal to the vector of ones.
    images : ndarray (n, c)
        Kc times the vectors, as the exact passes computed it.
    certificate : Certificate
    converged : bool
        Every interval is at most tol * theta_1 wide (and the fraction is reached, where one was asked for).
    passes, search_passes : int
        Over the exact kernel values, all of them; and how many of these were in float32.
    factorisations : int
        By Cholesky, of the matrix beyond some vectors.
    near_passes : int
        Products with near values, which are kept (`narrow`).
    negative_end : float
        Most negative Ritz value, 0 if none is: how indefinite the matrix is at least.
    history : tuple of (passes, width / theta_1)
        After each float64 pass.
    search_history : tuple of (passes, width / theta_1)
        What the search expected after its float32 passes: estimates, no bounds.
    row_means : ndarray (n,)
        Of K.
    grand_mean : float
    trace : float or None
        tr Kc, where tr K was given.
    norm : float or None
        |Kc|_F, where a pass computed it.
    message : str
        What was reached and what would help, where not converged; else empty.
    """

    theta: np.ndarray
    vectors: np.ndarray
    images: np.ndarray
    certificate: Certificate
    converged: bool
    passes: int
    search_passes: int
    factorisations: int
    near_passes: int
    negative_end: float
    history: tuple[tuple[int, float], ...]
    search_history: tuple[tuple[int, float], ...]
    row_means: np.ndarray
    grand_mean: float
    trace: float | None
    norm: float | None
    message: str


@dataclass
class Exploration:
    """A random block beyond the first columns of the basis, and its Krylov space."""

    first: int
    starts: int
    failure: float
    steps: int = 0


@dataclass(frozen=True)
class Verdict:
    """The certificate after a pass, for ``c`` components."""

    certificate: Certificate
    c: int
    done: bool  # narrow enough
    only_mu_is_missing: bool  # it would be, if mu were as small as can be expected


@dataclass
class Pairs:
    """Ritz values, their vectors in the basis, and all residuals."""

    theta: np.ndarray
    Y: np.ndarray
    residuals: np.ndarray


class ExactRun:
    """float64 passes, a certificate after each, until it is narrow enough."""

    def __init__(
        self,
        outlook: Outlook,
        rng: np.random.Generator,
        *,
        want_norm: bool,
        narrow: NarrowStart | None = None,
        before: ExactRun | None = None,
        guards: Guards | None = None,
    ):
        self.outlook, self.rng, self.want_norm = outlook, rng, want_norm
        self.products, self.target = outlook.products, outlook.target
        self.expenses = outlook.products.expenses
        self.n = self.products.n
        self.basis = Basis(self.n, rng, centred=True, keeps_images=True, n_threads=self.products.matrix.n_threads)
        self.narrow, self.missed = narrow, False
        """Where the run begins; and whether it looks as if that has missed an eigenvalue."""
        self.guards = guards
        """Of the vectors of the first pass."""
        self.exploration: Exploration | None = None
        # attempts of a run that was given up count too: all of them share one probability of failure
        self.explorations: int = 0 if before is None else before.explorations
        self.samples: int = 0 if before is None else before.samples
        self.factorisations = 0
        self.last_try = 0
        """Columns of the basis when a bound from entries was last tried."""
        self.patience = 2  # ordinary blocks that may still lower mu before an exploration begins
        self.history: list[tuple[int, float]] = []
        self._projected: list[np.ndarray] = []  # V' H Phi of the columns so far

    # the story -----------------------------------------------------------------------------------------------

    def approach(self, X: np.ndarray, history: list[tuple[int, float]]) -> np.ndarray:
        """Passes without a certificate, until the next one is expected to be the last: the columns for that one.

        The search of matrices so small that a certificate costs more than a pass. ``history`` gains
        (passes, expected width over theta_1) after each pass.
        """
        basis, c, theta = self.basis, self.target.c, np.empty(0)
        while self.expenses.passes < min(APPROACH, self.expenses.budget.passes - 1):
            if basis.size + 2 * X.shape[1] > min(self.outlook.columns, self.n - 1):
                break
            self.outlook.check_budget(basis.size)
            image = self.products.exact(X, False)
            border = basis.append(X, image)
            theta, Y = basis.ritz()
            X = basis.orthonormal(basis.outside(image, border), projected=True)
            if c >= len(theta):
                continue
            last, next_one = theta[c - 1], max(float(theta[min(self.outlook.block, len(theta) - 1)]), 0.0)
            if last <= 0.0:
                break
            residuals = (X.T @ image) @ Y[-image.shape[1] :, :c]
            width = float(np.vdot(residuals, residuals)) / max(last - next_one, 1e-3 * last)
            history.append((self.expenses.passes, float(width / theta[0])))
            enough, _ = next_is_last(history, (next_one / last) ** 2, 0.3 * self.target.tol)
            if enough:
                break
            if len(history) == LOOK and self.outlook.looks_flat(theta):
                break
        self.want_norm = self.want_norm or self.outlook.norm_would_help(theta)
        return X

    def run(self, X: np.ndarray) -> tuple[Pairs, Verdict] | None:
        """None where the spectrum turns out to be flat, or a narrow start to have missed an eigenvalue.

        ``X``: the first block, or that of `approach`.
        """
        X = self._orthonormal_start(X) if X.shape[1] and not self.basis.size else X
        while True:
            pairs = self._pass(X)
            del X
            if self.exploration is not None:
                self.exploration.steps += 1
                self._restart_exploration_if_it_found_a_missed_eigenvalue(pairs.theta)
            verdict = self._with_filter(pairs, self._judge(pairs))
            if not verdict.done and (self.missed or (len(self.history) == 2 and self._turns_flat(pairs.theta))):
                return None
            if self.target.fraction is not None:
                wanted = min(default_block_size(self.n, verdict.c), self.outlook.widest)
                self.outlook.block = max(self.outlook.block, wanted)
            verdict = self._with_norm_of_whole_space(pairs, verdict)
            explore = verdict.only_mu_is_missing and self._exploration_is_due(pairs.theta, verdict.c)
            last = self.expenses.passes >= self.expenses.budget.passes
            if explore or last or self.outlook.by_factorisation or self._factorises_sooner(verdict):
                verdict = self._with_factorisation(pairs, verdict)
            if explore and not verdict.done and self.exploration is None:
                verdict = self._with_sample(pairs, verdict)
            if self._at_end(pairs.theta, verdict, explore):
                break
            self._check_pace()
            self.want_norm = self._norm_still_helps(pairs.theta, verdict)
            self.guards = None
            furthest = self._furthest(pairs.residuals, verdict.c)
            del pairs.residuals  # the next block needs their memory
            X = self._next_block(pairs, furthest, explore, verdict.c)
        self._switch_if_other_method_is_cheap(pairs, verdict)
        return pairs, verdict

    def _orthonormal_start(self, X: np.ndarray) -> np.ndarray:
        V = self.basis.orthonormal(X)
        if self.guards is not None:  # which are orthogonal to X
            moved = float(np.linalg.norm(X - times(V, inner(V, X))))
            error = 2.0 * (self.guards.orthogonality_error + moved)
            self.guards = replace(self.guards, orthogonality_error=error) if V.shape == X.shape else None
        return V

    def _check_pace(self) -> None:
        """TooDearError where the widths of the last passes fall so slowly that the other method is there sooner."""
        widths = [width for _, width in self.history[-PACE - 1 :]]
        if len(widths) <= PACE or self.exploration is not None or self.outlook.by_factorisation:
            return
        rate = (widths[-1] / widths[0]) ** (1.0 / PACE)
        if SLOW < rate < np.inf:
            later = np.log(self.target.tol / widths[-1]) / np.log(min(rate, 0.999))
            self.outlook.check_budget(self.basis.size, int(min(max(later, 1.0), self.expenses.budget.passes)))

    def _turns_flat(self, theta: np.ndarray) -> bool:
        if self.outlook.by_factorisation or not self.outlook.looks_flat(theta):
            return False
        self.outlook.by_factorisation = self.outlook.awaits_factorisation(theta)
        return not self.outlook.by_factorisation

    def _switch_if_other_method_is_cheap(self, pairs: Pairs, verdict: Verdict) -> None:
        """TooDearError if this run has missed its tolerance, and the other method is cheap (``SWITCH_FACTOR``)."""
        rounding = 2 * verdict.certificate.rounding
        cheap = self.expenses.budget.seconds <= SWITCH_FACTOR * self.expenses.seconds
        if not verdict.done and rounding <= 0.4 * self.target.tol * pairs.theta[0] and cheap:
            raise TooDearError(self.expenses.passes)

    def _pass(self, X: np.ndarray) -> Pairs:
        self.outlook.check_budget(self.basis.size)
        self.basis.append(X, self.products.exact(X, self.want_norm and self.products.norm_wanting))
        self.expenses.seconds += ritz_seconds(self.n, self.basis.size)
        theta, Y = self.basis.ritz()
        return Pairs(theta, Y, self.basis.residuals(theta, Y))

    def _restart_exploration_if_it_found_a_missed_eigenvalue(self, theta: np.ndarray) -> None:
        """It had been missed, and is in the space now: look again beyond it."""
        assert self.exploration is not None
        last = theta[min(self.target.c, len(theta)) - 1]
        if self.exploration.steps >= 2 and self.basis.largest_beyond(self.exploration.first) > 0.9 * last:
            self.exploration = None

    def _judge(self, pairs: Pairs) -> Verdict:
        verdict = self._certify(pairs)
        self.history.append((self.expenses.passes, float(relative_width(verdict.certificate, pairs.theta))))
        return verdict

    def _with_norm_of_whole_space(self, pairs: Pairs, verdict: Verdict) -> Verdict:
        """One more pass where the space is complete, but no bound on |K| and |Kc| is known, and so none on rounding."""
        passes_left = self.expenses.passes < self.expenses.budget.passes
        if self.basis.room > 0 or verdict.done or not self.products.norm_within_reach or not passes_left:
            return verdict
        self.products.exact(self.basis.Q[:, :1], True)
        return self._judge(pairs)

    def _with_filter(self, pairs: Pairs, verdict: Verdict) -> Verdict:
        """Where the vectors have converged: a bound on the rest from products with near values, which cost little."""
        size, theta, c = self.basis.size, pairs.theta, verdict.c
        if self.narrow is None or verdict.done or c < self.target.c or size < GROWTH * self.last_try:
            return verdict
        near = self.narrow.product
        left_out = self.n * (float(near.error_bound) + self.products.matrix.entry_error)
        top = self.narrow.top
        wanted = self._sufficient_mu(theta, c, NEAR_SHARES) - left_out
        failure = self._failure_of_exploration()
        steps = int(FILTER_SLACK * min(filter_steps(self.n, COLUMNS, top, wanted, failure), MOST_STEPS))
        if steps >= MOST_STEPS:
            return verdict
        self.last_try, self.explorations = size, self.explorations + 1
        bound = self._filtered(pairs, top, wanted, steps, failure)
        self.missed = bound.mu > wanted
        bound = replace(bound, mu=bound.mu + left_out, failure_probability=OF_EXPLORATIONS * self.target.failure)
        certificate = ritz_certificate(self.ritz, c, self.products.info, bound)
        done = self._done(certificate, theta, c)
        return self._better(Verdict(certificate, c, done, verdict.only_mu_is_missing), verdict, theta)

    def _filtered(self, pairs: Pairs, top: float, wanted: float, steps: int, failure: float) -> Bound:
        """On the matrix of near values beyond the basis."""
        assert self.narrow is not None
        near, V, size = self.narrow.product, self.basis.Q, self.basis.size
        taken = 0

        def multiply(U: np.ndarray) -> np.ndarray:
            nonlocal taken
            taken += 1
            return near.matmat(U)

        def project(U: np.ndarray) -> np.ndarray:
            U = U - U.mean(axis=0)
            U -= times(V, inner(V, U, self.basis.n_threads), self.basis.n_threads)
            return U

        orthogonality = float(np.linalg.norm(self.basis.gram - np.eye(size)))
        projecting = 2.0 * orthogonality + 4.0 * np.sqrt(size + 1.0) * rounding_factor(self.n) * UNIT
        bound = filtered_bound(
            multiply,
            project,
            self.rng.standard_normal((self.n, COLUMNS)),
            top,
            wanted=wanted,
            error=near.rounding + 2.0 * projecting * near.norm,
            failure=failure,
            most_steps=steps,
        )
        self.expenses.count_near(taken, near_seconds(near.count, taken))
        return bound

    def _factorises_sooner(self, verdict: Verdict) -> bool:
        """Whether a factorisation costs far less than the next pass, which may lower mu enough or not."""
        size, block, seconds = self.basis.size, self.outlook.block, self.expenses.budget.pass_seconds
        next_pass = seconds + ritz_seconds(self.n, size + block)
        factorising = factorising_seconds(self.n, min(size, verdict.c + block), seconds)
        return verdict.only_mu_is_missing and 2.0 * factorising <= next_pass

    def _with_factorisation(self, pairs: Pairs, verdict: Verdict) -> Verdict:
        """Where the wanted vectors have converged: prove from all entries that nothing else is as large."""
        size, theta, c = self.basis.size, pairs.theta, verdict.c
        last = self.expenses.passes >= self.expenses.budget.passes
        within = SWITCH_FACTOR * self.expenses.seconds if last else None
        if verdict.done or c < self.target.c or not self.outlook.factorises(size, within):
            return verdict
        if size < GROWTH * self.last_try and not last:
            return verdict
        gap = self._gap_to_prove(theta, verdict)
        if gap is None:
            return verdict
        self.last_try = size
        first = Pairs(theta[: gap.columns], pairs.Y[:, : gap.columns], pairs.residuals[:, : gap.columns])
        rest = self._rest(first)
        if not gap.bound > rest.error:  # which is taken off it
            return verdict
        self.expenses.seconds += factorising_seconds(self.n, gap.columns, self.expenses.budget.pass_seconds)
        self.factorisations += 1
        bound = rest.factorised_bound(gap.bound)
        certificate = ritz_certificate(self._ritz_block(first), c, self.products.info, bound)
        done = self._done(certificate, theta, c)
        return self._better(Verdict(certificate, c, done, verdict.only_mu_is_missing), verdict, theta)

    def _gap_to_prove(self, theta: np.ndarray, verdict: Verdict) -> Gap | None:
        """Behind the first few Ritz values, which have converged, or behind all of them; None where neither will do."""
        c, m = verdict.c, len(theta)
        gap = self.outlook.gap_behind(theta, np.diag(self.ritz.residual_gram), c)
        narrow = gap.width <= 0.9 * self.target.tol * theta[0]
        # the error of the entries is taken off the bound, which has to stay above what there is
        if narrow and gap.bound - Rest.PRODUCT_ERRORS * self.products.error(gap.columns) > theta[gap.columns]:
            return gap if gap.bound < verdict.certificate.mu else None
        if not verdict.only_mu_is_missing:
            return None
        wanted = self._sufficient_mu(theta, c)
        return Gap(m, wanted, 0.0) if wanted > theta[min(m - 1, c + (m - c) // 2)] else None

    def _with_sample(self, pairs: Pairs, verdict: Verdict) -> Verdict:
        """Where the vectors have converged: a bound on the rest from a sample of rows, which costs no pass."""
        size, theta, c = self.basis.size, pairs.theta, verdict.c
        matrix = self.products.matrix
        if matrix.entries is None or not (matrix.positive_semidefinite and self.target.probabilistic):
            return verdict
        wanted, failure = (
            self._sufficient_mu(theta, c),
            failure_of_attempt(OF_SAMPLES * self.target.failure, self.samples),
        )
        if not wanted > 0.0 or size < GROWTH * self.last_try or self.products.trace is None:
            return verdict
        left = self.products.trace[0] - float(theta.sum())
        expected = 1.6 * max(float(theta[c + (size - c) // 2]) if size > c else 0.0, 0.0)
        draws = draws_for(expected / left, wanted / left, failure) if left > 0.0 else 0
        draws = self.outlook.draws_within(draws, size)
        if not draws:
            return verdict
        self.last_try, self.samples = size, self.samples + 1
        self.expenses.seconds += sampling_seconds(draws, size)
        rest = self._rest(pairs)
        bound = rest.sampled_bound(rest.diagonal_bounds(), draws, self.rng, failure)
        if bound.failure_probability:
            bound = replace(bound, failure_probability=OF_SAMPLES * self.target.failure)
        certificate = ritz_certificate(self.ritz, c, self.products.info, bound)
        return self._better(Verdict(certificate, c, self._done(certificate, theta, c), True), verdict, theta)

    def _sufficient_mu(self, theta: np.ndarray, c: int, shares: tuple[float, ...] = SHARES) -> float:
        """The largest of a few bounds on what is beyond the basis that make the intervals narrow enough; 0: none."""
        last, tol = float(theta[c - 1]), self.target.tol * float(theta[0])
        # what may be beyond the last wanted eigenvalue widens its interval, by less than it may where that is small
        above = [last + share * tol for share in ABOVE_SHARES] if tol > last else []
        for mu in [*above, *(share * last for share in shares)]:
            bound = Bound(mu, "hope")
            if self._done(ritz_certificate(self.ritz, c, self.products.info, bound), theta, c):
                return bound.mu
        return 0.0

    def _better(self, verdict: Verdict, before: Verdict, theta: np.ndarray) -> Verdict:
        if not verdict.certificate.width < before.certificate.width:
            return before
        self.history[-1] = (self.expenses.passes, float(relative_width(verdict.certificate, theta)))
        return verdict

    def _rest(self, pairs: Pairs) -> Rest:
        entries, vectors = self.products.matrix.entries, self.basis.vectors(pairs.Y)
        assert entries is not None
        images = pairs.residuals + vectors * pairs.theta
        return Rest(entries, vectors, images, self.products.row_means, self.products.error(len(pairs.theta) + 1))

    def _at_end(self, theta: np.ndarray, verdict: Verdict, explore: bool) -> bool:
        if verdict.done or self.expenses.passes >= self.expenses.budget.passes or self.basis.room == 0:
            return True
        if self._at_rounding(verdict.certificate, theta):
            return True
        if explore and not (self.target.probabilistic and verdict.c <= len(theta) and theta[verdict.c - 1] > 0):
            return True
        return self.exploration is not None and self._full()  # memory ends the exploration

    # the certificate -----------------------------------------------------------------------------------------

    def _certify(self, pairs: Pairs) -> Verdict:
        """The best certificate, the number of components, and whether mu alone keeps the intervals wide."""
        theta, m = pairs.theta, len(pairs.theta)
        error = self.products.error(m)
        ritz = self._ritz_block(pairs)
        matrix = self.products.info
        c = min(self.outlook.count(theta - error) or m, m)
        others = [] if self.products.matrix.features is None else [self._feature_bound(theta, error)]
        if self.guards is not None:
            others.append(guarded_bound(ritz, matrix, self.guards, self.products.search_error))
        bound = deterministic_bound(ritz, matrix, others)
        few = c + HELD_GUARDS
        if m >= 2 * few:  # a quarter of the order, an eighth of the work
            certificate = ritz_certificate(ritz.leading(few), c, matrix, beyond_leading(ritz, few, bound))
            if self._done(certificate, theta, c):
                return Verdict(certificate, c, True, False)
        certificate = ritz_certificate(ritz, c, matrix, bound)
        if self._done(certificate, theta, c):
            return Verdict(certificate, c, True, False)
        # if a mu as low as the Ritz values suggest would be enough, the vectors have converged, and mu is too large
        hope = max(float(theta[min(m - 1, c + (m - c) // 2)]), 0.0) if m > c else 0.0
        hope = min(hope, 0.9 * max(float(theta[c - 1]), 0.0))
        hoped = ritz_certificate(ritz, c, matrix, Bound(hope, "hope"))
        only_mu_is_missing = self._done(hoped, theta, c) and certificate.mu > 0.9 * theta[c - 1]
        if self.exploration is not None and self.exploration.steps > 0:
            other = ritz_certificate(ritz, c, matrix, self._explored_bound(self.exploration, error))
            if other.width < 0.5 * certificate.width:
                certificate = replace(other, failure_probability=OF_EXPLORATIONS * self.target.failure)
        return Verdict(certificate, c, self._done(certificate, theta, c), only_mu_is_missing)

    def _ritz_block(self, pairs: Pairs) -> RitzBlock:
        self.ritz = self.basis.ritz_block(pairs.Y, pairs.residuals, self.products.error(len(pairs.theta)))
        return self.ritz

    def _done(self, certificate: Certificate, theta: np.ndarray, c: int) -> bool:
        if self.target.fraction is None:
            enough = c >= self.target.c
        else:
            enough = self.outlook.count(theta - certificate.rounding) is not None
        return bool(enough and theta[0] > 0 and certificate.width <= self.target.tol * theta[0])

    def _feature_bound(self, theta: np.ndarray, error: float) -> Bound:
        features, m = self.products.matrix.features, len(theta)
        assert features is not None
        seen = sum(len(W) for W in self._projected)
        self._projected.append(features.project(self.basis.Q[:, seen:]))
        trace = self.products.trace
        gap = trace[0] - float(theta.sum()) if trace is not None else None
        gap_error = (trace[1] if trace is not None else 0.0) + 2 * m * error
        orthogonality_error = float(np.linalg.norm(self.basis.gram - np.eye(m))) + m * rounding_factor(self.n) * UNIT
        return feature_bound(features, np.vstack(self._projected), self.n, gap, orthogonality_error, gap_error)

    def _new_exploration(self, starts: int) -> Exploration:
        failure = self._failure_of_exploration()
        self.explorations += 1
        return Exploration(self.basis.size, starts, failure)

    def _failure_of_exploration(self) -> float:
        """Of the next one."""
        return failure_of_attempt(OF_EXPLORATIONS * self.target.failure, self.explorations)

    def _explored_bound(self, exploration: Exploration, error: float) -> Bound:
        """A bound outside the first columns, from Rayleigh-Ritz on the Krylov space of the random block."""
        first = exploration.first
        lowest = -error
        if not self.products.matrix.positive_semidefinite:
            norm = self.products.norm_bound
            if norm is None:
                return NO_BOUND
            inside = float(np.linalg.norm(self.basis.compression[:first, :first]))
            lowest = -float(np.sqrt(max(norm**2 - inside**2, 0.0))) - error
        return exploration_bound(
            max(self.basis.largest_beyond(first), 0.0) + error,
            order=self.n - first,
            steps=exploration.steps,
            starts=exploration.starts,
            lowest=lowest,
            stops=self.expenses.budget.passes,
            failure=exploration.failure,
        )

    # whether to go on ----------------------------------------------------------------------------------------

    def _at_rounding(self, certificate: Certificate, theta: np.ndarray) -> bool:
        """Whether the widths are mostly rounding, and above tol: further passes would only add to it."""
        if self.target.fraction is not None and self.outlook.count(theta - certificate.rounding) is None:
            return False  # more components are still to come
        rounding, history = 2 * certificate.rounding, self.history
        grew = len(history) >= 3 and history[-1][1] > history[-2][1] > history[-3][1]
        return rounding > 0.1 * self.target.tol * theta[0] and (certificate.width < 2 * rounding or grew)

    def _exploration_is_due(self, theta: np.ndarray, c: int) -> bool:
        """False while the ordinary next block lowers mu faster than a random one."""
        if self.exploration is not None or self.patience == 0:
            return True
        falls = self.outlook.mu_falls(theta, c, float(self.outlook.mu(theta)[-1]))
        self.patience -= falls
        return not falls

    def _norm_still_helps(self, theta: np.ndarray, verdict: Verdict) -> bool:
        semidefinite = self.products.matrix.positive_semidefinite
        return not semidefinite or verdict.certificate.mu > 0.3 * max(theta[verdict.c - 1], 0.0)

    def _full(self) -> bool:
        return self.basis.size + self.outlook.block > self.outlook.columns

    # the next block ------------------------------------------------------------------------------------------

    def _furthest(self, residuals: np.ndarray, c: int) -> np.ndarray:
        """The largest residuals of the wanted and the guard vectors."""
        b = self.outlook.block
        candidates = residuals[:, : max(b, c + default_block_size(self.n, 1))]
        largest = np.argsort(-np.einsum("ij,ij->j", candidates, candidates), kind="stable")[:b]
        return candidates.T[largest].T  # column by column: a copy that turned the array took longer than its products

    def _next_block(self, pairs: Pairs, furthest: np.ndarray, explore: bool, c: int) -> np.ndarray:
        """Columns of the next pass; ``furthest``: the residuals that extend the space."""
        basis, theta, b = self.basis, pairs.theta, self.outlook.block
        size = max(self.products.estimated_size(theta), float(np.max(np.abs(theta))))
        noise = 4 * rounding_factor(self.n) * UNIT * size
        if self.exploration is not None:
            # the Krylov space of the deflated matrix: the last block's image, made orthogonal to all before
            return basis.orthonormal(basis.images[:, -self.exploration.starts :], noise=noise)
        ahead = 8 if explore else 2  # blocks that the space must still hold: an exploration can't be restarted
        if self._full() or (explore and basis.size + ahead * b > self.outlook.columns):
            least = min(c + 2, len(theta))
            keep = by_size(theta, least)[: max(min(len(theta), self.outlook.columns - ahead * b), least)]
            basis.restart(theta[keep], pairs.Y[:, keep])
            self._projected = []
        if explore:
            self.outlook.check_budget(basis.size, LEAST_EXPLORING_PASSES)
            self.exploration = self._new_exploration(min(b, basis.room))
            return basis.orthonormal(self.rng.standard_normal((self.n, b)))
        if furthest.shape[1] < b:
            furthest = np.hstack([furthest, np.zeros((self.n, b - furthest.shape[1]))])
        X = basis.orthonormal(furthest, noise=noise)
        return self.outlook.widened(X, basis) if self.outlook.count(theta) is None else X

    # the result ----------------------------------------------------------------------------------------------

    def result(self, ended: tuple[Pairs, Verdict], search_history: list[tuple[int, float]]) -> KrylovResult:
        pairs, verdict = ended
        theta, c, products = pairs.theta, verdict.c, self.products
        vectors = self.basis.vectors(pairs.Y[:, :c])
        trace = products.trace
        return KrylovResult(
            theta=theta[:c].copy(),
            vectors=vectors,
            images=pairs.residuals[:, :c] + vectors * theta[:c],
            certificate=verdict.certificate,
            converged=verdict.done,
            passes=self.expenses.passes,
            search_passes=self.expenses.search_passes,
            factorisations=self.factorisations,
            near_passes=self.expenses.near_passes,
            negative_end=min(float(theta[-1]), 0.0),
            history=tuple(self.history),
            search_history=tuple(search_history),
            row_means=products.row_means,
            grand_mean=products.grand_mean,
            trace=None if trace is None else trace[0],
            norm=None if products.norm is None else products.norm.centred,
            message="" if verdict.done else self._message(verdict.certificate, theta, c),
        )

    def _message(self, certificate: Certificate, theta: np.ndarray, c: int) -> str:
        tol, fraction, positive = self.target.tol, self.target.fraction, bool(theta[0] > 0)
        width = relative_width(certificate, theta)
        passes = self.expenses.passes
        text = f"after {passes} pass{'es' * (passes != 1)} the widest of {c} intervals is {rounded_up(width)} of the "
        text += "largest eigenvalue"
        rounding = self.products.rounding_alone(len(theta))
        if positive and rounding > 0.8 * tol * theta[0]:
            floor = min(rounding / theta[0], width)  # other bounds may be below that
            ways = ["a smaller sigma or a larger tol helps", self.expenses.budget.alternative]
            return (
                f"{text}, tol is {tol:g}; rounding in float64 alone is {floor:.2g}: the kernel matrix is nearly "
                f"constant or its entries are large; {', or '.join(filter(None, ways))}"
            )
        short = c < self.target.c or (fraction is not None and self.outlook.count(theta) is None)
        if c < self.target.c:
            text += f", and the space holds no more than {c} of the {self.target.c} components"
        elif short:
            text += f", and the {c} components don't carry the fraction {fraction}"
        else:
            text += f", tol is {tol:g}"
        ways = ["more passes (max_passes) help"] if short or self._still_falls() else []
        if positive and 2 * certificate.rounding > 0.8 * tol * theta[0]:
            ways = ["the products are approximate, and their own error is more than tol allows: products='exact' helps"]
        if self.expenses.budget.alternative:
            ways.append(self.expenses.budget.alternative)
        return f"{text}; {', or '.join(ways or ['more passes (max_passes), a larger tol or fewer components help'])}"

    def _still_falls(self) -> bool:
        """Whether the last exact passes have narrowed the intervals; after few passes: whether any is finite enough."""
        widths = [width for _, width in self.history]
        return widths[-1] < (1.0 if len(widths) < 4 else 0.7 * widths[-4])


def relative_width(certificate: Certificate, theta: np.ndarray) -> float:
    return certificate.width / theta[0] if theta[0] > 0 else np.inf
