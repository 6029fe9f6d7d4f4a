"""Upper bounds mu on lambda_max(P A P), the complement of a basis: the eigensolver takes the cheapest that suffices.

Each is a `Proof` with a ``certificate`` and a ``cost``, the predicted seconds until the intervals meet tol by it;
infinite where it is not possible. A ``free`` proof needs no work beyond the passes and is evaluated at every
check; its cost is that of the passes until it suffices, infinite if passes do not improve it. At least one free proof
has a certificate at every check (`Sums` always has). Once the vectors have converged, the proof with the lowest cost is
selected: a free one means that passes go on, another one is carried out at once. To add one, write a class, and name it
where ``block_krylov`` or ``moments.leading_pairs`` make their lists.

====================  ==============================================================================================
`Sums`                trace or norm minus the part on the basis: certain; more passes lower it
`Searched`            a search in float32 whose products err by a known bound: certain
`RandomStart`         the random block that the Krylov space began with (``random_start``): with a probability
`Exploration`         a second random block, beyond the columns so far (``complement``): with a probability
`Filter`              polynomials of a truncated matrix, times random columns (``filtered``): with a probability
`FilteredSearch`      the same, of those that ended a search: with a probability
`Factorisation`       Cholesky of mu I - P A P for some of the Ritz vectors (``deflated``): certain
`OfMap`               theta_(k+1) of a feature map plus a bound on its residual (``second_order``): as that bound
====================  ==============================================================================================
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base.rounding import UNIT, rounding_factor
from ..base.tall import without_span
from ..products.implicit import TruncatedMatrix
from .basis import Space
from .certificate import NO_BOUND, Bound, Certificate
from .certifier import Certifier, Proof
from .complement import (
    GAP_FRACTION,
    MU_FRACTION,
    deterministic_bound,
    exploration_bound,
    failure_of_attempt,
    gap_behind,
    lanczos_steps,
)
from .costs import basis_bytes, check_seconds, factorising_seconds, rest_bytes, step_seconds
from .deflated import DeflatedMatrix
from .filtered import COLUMNS, MAX_STEPS, STEPS_FACTOR, Aim, cheapest_aim, filter_steps, filtered_beyond
from .operators import CentredProducts
from .random_start import GaussianStart, separated
from .task import SolverBudget

COLUMNS_PER_VECTOR = 2.0
"""Columns of a Krylov space for each eigenvalue that has to be subtracted from trace or norm. Half a column takes 1.8
times as long (median of five fits; ``benchmarks/speed/constants.py``)."""
EXPLORING_PASSES = 8
"""Least number of passes of an exploration. Two take 2.6 times as long, 32 as long (median of the fits that change;
``benchmarks/speed/constants.py``)."""


def sufficient_bound(run: Certifier) -> float:
    """Estimate of the largest bound on the complement with which the intervals meet tol; 0: none."""
    theta, c, tol = run.ritz.theta, run.c, run.target.tol
    last = float(theta[c - 1])
    if tol * float(theta[0]) > last:
        # mu may be above the last wanted eigenvalue, by less than tol; then no gap bounds the angle of its vector
        above = run.bound_for(0.9 * tol)
        if above > last:
            return above
    return max(min(run.bound_for(0.5 * tol), MU_FRACTION * last), 0.0)


class Sums(Proof):
    """Bounds on the complement from the trace of a semidefinite matrix, and from the norm of any."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, float]] = []
        """Columns and the bound, at the last two checks."""

    def cost(self, run: Certifier) -> float:
        """Seconds of the passes until trace or norm suffice: each new column lowers both by at most about the smallest
        guard value, and by less than the columns before it."""
        theta, c, b, values = run.ritz.theta, run.c, run.space.block, run.eigenvalues()
        guard, enough = max(float(theta[min(len(theta), b) - 1]), 0.0), MU_FRACTION * float(theta[c - 1])
        free_columns = max(min(run.space.columns, run.A.n - 1) - len(theta), 0)
        further = np.minimum(np.maximum(values[len(theta) :], 0.0), guard)
        # the last values of a search have not converged: they are below the eigenvalues
        behind = min(max(further.min(initial=guard), run.least_complement(np.append(theta, further))), guard)
        further = np.append(further, np.full(free_columns, behind))[:free_columns]
        predicted = run.expected_mu(np.concatenate([theta, further]))[len(theta) - 1 :]
        low = np.flatnonzero(predicted <= enough)
        columns = COLUMNS_PER_VECTOR * low[0] if len(low) else np.inf
        (before, above), (size, bound) = self.seen if len(self.seen) > 1 else [(0, np.inf), *self.seen]
        if before < size and above < np.inf and bound > enough:
            needed, fall = bound - enough, (above - bound) / (size - before)
            columns = max(columns, needed / fall) if fall * free_columns >= needed else np.inf
        return max(np.ceil(columns / b), 1.0) * run.pass_seconds() if columns <= free_columns else np.inf

    def certificate(self, run: Certifier) -> Certificate:
        """Certificate; while an exploration runs, or a fraction is wanted, without a bound until it may suffice."""
        bound = deterministic_bound(run.block, run.info())
        self.seen = [*self.seen[-1:], (run.basis.size, bound.mu)]
        waits = run.proofs.is_exploring or run.target.fraction is not None
        useless = waits and not run.is_last and not run.may_suffice(bound.mu)
        return run.certificate_with(NO_BOUND if useless else bound)


class Searched(Proof):
    """Upper bounds ``upper`` on the eigenvalues from a float32 phase: wide by rounding, but from all its vectors."""

    def __init__(self, upper: np.ndarray):
        self.upper = upper

    def certificate(self, run: Certifier) -> Certificate:
        block, outside = separated(self.upper, run.block, run.c, 0.0)
        return run.certificate_with(outside, block).tightened(self.upper)


class RandomStart(Proof):
    """The random first block Omega: the basis contains its Krylov space p(A) Omega for all p of degree < ``steps``."""

    certain = False

    def __init__(self, block: np.ndarray, failure: float):
        self.start, self.failure = GaussianStart(block, failure), failure
        self.steps, self.pure = 0, True

    def appended(self, run: Certifier) -> None:
        self.pure = self.pure and run.basis.is_krylov
        self.steps += self.pure

    def restarted(self) -> None:
        self.pure = False

    def _upper(self, run: Certifier, more: int = 0) -> np.ndarray:
        error = 4.0 * run.A.error(run.basis.size)
        return self.start.eigenvalue_bounds(run.ritz.theta, self.steps + more, error)

    def cost(self, run: Certifier) -> float:
        """Passes until a gap at or below the last wanted eigenvalue shows."""
        theta, c = run.ritz.theta, run.c
        if not self.pure:
            return np.inf
        for more in (1, 2, 4, 8, 16):
            upper = self._upper(run, more)
            p = np.arange(c, min(len(upper), len(theta)))
            if np.any(upper[p] < theta[p - 1] - 0.1 * (theta[p - 1] - theta[p])):
                fits = run.basis.size + more * run.space.block <= run.space.columns
                return more * run.pass_seconds() if fits else np.inf
        return np.inf

    def certificate(self, run: Certifier) -> Certificate | None:
        if self.steps < 2:
            return None
        upper = self._upper(run)
        block, outside = separated(upper, run.block, run.c, self.failure)
        found = run.certificate_with(outside, block).tightened(upper)
        return replace(found, failure_probability=self.failure) if np.isfinite(found.width) else None


class Exploration(Proof):
    """Randomly started block Lanczos on the complement of the first columns of the basis."""

    certain = False

    def __init__(self, failure: float, order: int, stops: int):
        self.failure, self.order, self.stops = failure, order, stops
        self.first: int | None = None
        """Columns before the random block, while an exploration goes on."""
        self.starts = self.steps = self.expected = self.kept = self.attempts = 0
        self.wanted = np.inf

    def next_block(self, run: Certifier) -> np.ndarray | None:
        """A random block, where an exploration is to begin."""
        if run.proofs.cheapest is not self or self.first is not None:
            return None
        if self.kept < run.basis.size:
            run.proofs.restarted()
            run.restart(self.kept)
        X = run.basis.orthonormal(run.basis.rng.standard_normal((run.A.n, run.space.block)))
        self.first, self.starts, self.steps = run.basis.size, X.shape[1], 0
        self.attempts += 1
        return X

    def appended(self, run: Certifier) -> None:
        if self.first is not None and run.basis.holds_images_from(self.first):
            self.steps += 1
        else:
            self.first = None

    def restarted(self) -> None:
        self.first = None

    def steps_to_come(self) -> int | None:
        return None if self.first is None else max(self.expected - self.steps, 0)

    @property
    def _failure(self) -> float:
        """Failure probability of this attempt, or of the next one."""
        return failure_of_attempt(self.failure, self.attempts - (self.first is not None))

    def cost(self, run: Certifier) -> float:
        """Predicted seconds of the steps until the complement, of which an estimate is known, is bounded well
        enough."""
        steps, kept, _ = self._course(run)
        columns = kept + 0.5 * steps * run.space.block
        algebra = step_seconds(run.A.n, columns, run.space.block) + check_seconds(columns)
        return steps * (run.expenses.budget.pass_seconds + algebra)

    def chosen(self, run: Certifier) -> None:
        steps, kept, self.wanted = self._course(run)
        self.expected, self.kept = int(steps), min(kept, run.basis.size)

    def _course(self, run: Certifier) -> tuple[float, int, float]:
        """(Steps, columns before the random block, wanted bound on the complement); infinitely many steps where it is
        not possible."""
        size, wanted = run.basis.size, sufficient_bound(run)
        if self.first is not None or run.A.lowest is None or not wanted > 0.0:
            return np.inf, 0, wanted
        optimistic_bound = run.optimistic_bound()
        middle = 0.5 * (optimistic_bound + wanted)
        # after all columns, or, where the memory for further ones is too small, after the Ritz vectors of large values
        for kept, largest in ((size, optimistic_bound), (max(run.c + 2, int((run.ritz.theta > middle).sum())), middle)):
            steps = self._steps(run, largest, wanted)
            if self._fits(run, kept, steps) and steps <= run.expenses.left:
                return max(steps, EXPLORING_PASSES), kept, wanted
        return np.inf, 0, wanted

    def _steps(self, run: Certifier, largest: float, wanted: float) -> float:
        """Steps that prove the bound ``wanted`` where the largest eigenvalue of the complement is ``largest``."""
        return lanczos_steps(self.order, run.space.block, self._failure / self.stops, 1.0 - largest / wanted)

    def _fits(self, run: Certifier, first: int, steps: float) -> bool:
        return first + steps * run.space.block <= min(run.space.columns, run.A.n - 1)

    def certificate(self, run: Certifier) -> Certificate | None:
        if self.first is None or self.steps < 1 or run.A.lowest is None:
            return None
        largest = max(run.basis.largest_beyond(self.first), 0.0)
        enough = max(self.wanted, MU_FRACTION * float(run.ritz.theta[run.c - 1]))
        if self.steps >= 2 and not self._fits(run, self.first, self._steps(run, largest, enough)):
            self.first = None  # it had been missed, and is in the space now: explore again beyond it
            return None
        error = run.A.error(run.basis.size)
        bound = exploration_bound(
            largest + error,
            order=self.order - self.first,
            steps=self.steps,
            starts=self.starts,
            lowest=run.A.lowest - error,
            stops=self.stops,
            failure=self._failure,
        )
        # outside the first columns, and these are in the basis: it holds outside all of them
        return replace(run.certificate_with(bound), failure_probability=self.failure)


class FilteredSearch(Proof):
    """Bound of the filter that ended a search on the truncated matrix; the basis contains the search's vectors."""

    certain = False

    def __init__(self, truncated: TruncatedMatrix, vectors: np.ndarray, bound: float, failure: float):
        self.truncated, self.bound, self.failure = truncated, bound, failure
        self.vectors: np.ndarray | None = vectors

    def appended(self, run: Certifier) -> None:
        """Adapt the bound to the first block. V are the search's vectors, P = I - V V' and B the truncated matrix. A
        unit x orthogonal to the block has |V'x| <= e, so x'Bx is at most the bound on P B P plus (2 e + e^2) |B|."""
        if self.vectors is None:
            return
        V = without_span(self.vectors.copy(), run.basis.Q, run.basis.n_threads)
        outside = float(np.linalg.norm(V)) + 4.0 * np.sqrt(V.shape[1]) * rounding_factor(len(V)) * UNIT
        self.bound, self.vectors = self.bound + (2.0 + outside) * outside * self.truncated.size, None

    def restarted(self) -> None:
        self.bound = np.inf

    def certificate(self, run: Certifier) -> Certificate | None:
        if not self.bound < np.inf:
            return None
        return run.certificate_with(Bound(self.bound + self.truncated.distance(), "filter", self.failure))


class Filter(Proof):
    """Chebyshev polynomials of the truncated matrix on the complement of some Ritz vectors, times random columns.

    The result is a bound, or columns that contain an eigenvector that was missed.
    """

    free = certain = False

    def __init__(self, truncated: TruncatedMatrix, top: float, failure: float):
        self.truncated, self.failure = truncated, failure
        self.top = top
        """Estimate of the largest eigenvalue of the truncated matrix beyond the first block."""
        self.attempts = 0
        self.found: np.ndarray | None = None
        """Columns in which an eigenvalue that was missed stands out, until they are taken."""

    def _aim(self, run: Certifier) -> Aim | None:
        """Number of Ritz vectors, and the bound on their complement with which the intervals meet tol."""
        theta, squares, c, n = run.ritz.theta, np.maximum(run.ritz.squares, 0.0), run.c, run.A.n
        distance, width = self.truncated.distance(), run.target.tol * float(theta[0])
        failure = failure_of_attempt(self.failure, self.attempts)
        values = np.append(theta, self.top)  # behind all of them
        aim = cheapest_aim(values, np.append(squares, 0.0), c, 0.9 * width, n=n, distance=distance, failure=failure)
        if aim is None:  # what is beyond may be larger than the last wanted eigenvalue, by less than an interval
            wanted = float(theta[c - 1]) + 0.5 * width - distance
            top = max(self.top, float(theta[c - 1]))
            aim = Aim(len(theta), top, wanted, filter_steps(n, (-distance, top), wanted, failure))
        predicted = Bound(aim.wanted + distance, "hope")
        possible = run.done(run.certificate_with(predicted, run.block.leading(aim.columns)))
        return aim if possible and STEPS_FACTOR * aim.steps <= MAX_STEPS else None

    def cost(self, run: Certifier) -> float:
        if self.found is not None or run.is_short:
            return np.inf
        aim = self._aim(run)
        return (
            np.inf
            if aim is None
            else aim.steps * (self.truncated.seconds + step_seconds(run.A.n, aim.columns, COLUMNS))
        )

    def certificate(self, run: Certifier) -> Certificate | None:
        aim = self._aim(run)
        if aim is None:
            return None
        distance = self.truncated.distance()
        failure = failure_of_attempt(self.failure, self.attempts)
        bound, columns, _ = filtered_beyond(self.truncated, run.basis, run.ritz, aim, -distance, failure)
        self.attempts += 1
        if bound > aim.wanted:
            self.found = columns
            return None
        outside = Bound(bound + distance, "filter", self.failure)
        return run.certificate_with(outside, run.block.leading(aim.columns))

    def next_block(self, run: Certifier) -> np.ndarray | None:
        found, self.found = self.found, None
        return None if found is None else run.basis.orthonormal(found)


class Factorisation(Proof):
    """Cholesky factorisation of mu I - P A P, P projecting onto the complement of the first Ritz vectors, or of all."""

    free = False

    def _gap(self, run: Certifier) -> tuple[int, float] | None:
        """(k, mu): number of Ritz vectors, and bound on their complement with which the intervals meet tol; or None."""
        theta, squares, c, tol = run.eigenvalues()[: run.basis.size], run.ritz.squares, run.c, run.target.tol
        width, columns, bound = gap_behind(theta, squares, c)
        if width <= 0.9 * tol * theta[0]:
            return columns, bound
        wanted = sufficient_bound(run)
        moving = theta[c:][squares[c:] > (GAP_FRACTION * theta[c - 1]) ** 2]
        return (len(theta), wanted) if wanted > max(run.optimistic_bound(), moving.max(initial=0.0)) else None

    def seconds(self, A: CentredProducts, columns: int, space: Space, budget: SolverBudget) -> float:
        """Predicted seconds of a factorisation with ``columns`` vectors; infinite without entries or memory for it."""
        spare = np.inf if budget.memory is None else budget.memory - basis_bytes(A.n, space.basis.size, space.block)
        if A.matrix.entries is None or rest_bytes(A.n, columns) > spare:
            return np.inf
        return factorising_seconds(A.n, columns, budget.pass_seconds)

    def passes_for(self, A: CentredProducts, c: int, space: Space, budget: SolverBudget, block: int) -> float:
        """Number of passes of ``block`` columns that take as long as a factorisation; infinite if memory is short."""
        columns = c + EXPLORING_PASSES * block
        product = budget.pass_seconds * block / space.block
        each = product + step_seconds(A.n, columns, block) + check_seconds(columns)
        return self.seconds(A, c + space.block, space, budget) / each

    def cost(self, run: Certifier) -> float:
        A = run.A
        if not isinstance(A, CentredProducts) or run.is_short:
            return np.inf
        gap = self._gap(run)
        return np.inf if gap is None else self.seconds(A, gap[0], run.space, run.expenses.budget)

    def certificate(self, run: Certifier) -> Certificate | None:
        A, gap = run.A, self._gap(run)
        assert isinstance(A, CentredProducts) and A.matrix.entries is not None
        if gap is None:
            return None
        k, wanted = gap
        # the factor 2^(1/2): images of the recurrence (`Basis.ritz_block`)
        V, images = run.basis.pairs(run.ritz, k)
        deflated = DeflatedMatrix(A.matrix.entries, V, images, A.row_means, 1.4143 * A.error(k + 1))
        if not wanted > deflated.error:
            return None
        run.proofs.factorisations += 1
        bound = deflated.factorised_bound(wanted)
        return None if bound is NO_BOUND else run.certificate_with(bound, run.block.leading(k))
