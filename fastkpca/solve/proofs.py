"""Proofs that no eigenvalue outside of a basis is large: the list from which the eigensolver takes the cheapest.

Each is a `Proof` with a ``price``, seconds until it is expected to make the intervals narrow, infinite where it is not
possible, and a ``certificate``. Those that are ``free`` are asked after every look, and must have one (`Sums` always
has). When the vectors have converged and nothing else is missing, the cheapest of all is taken: of a free one, whose
price is that of the passes until it will do, this means to go on. To add one, write a class, and name it where
``block_krylov`` or ``moments.leading_pairs`` make their lists; a free one without passes to wait for has no price
(infinite).

====================  ==============================================================================================
`Sums`                what trace and norm leave over: certain; more passes lower it
`Searched`            a search in float32 whose products err by a known bound: certain
`RandomStart`         the random block that the Krylov space began with (``random_start``): with a probability
`Exploration`         a second random block, beyond the columns so far (``beyond``): with a probability
`Filter`              polynomials of a coarse matrix, times random columns (``filtered``): with a probability
`FilteredSearch`      the same, of those that ended a search: with a probability
`Factorisation`       Cholesky of the kernel matrix beyond some Ritz vectors (``rest``): certain
`OfMap`               what a feature map leaves out, beyond its leading vectors (``second_order``): as certain as that
====================  ==============================================================================================
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..base.rounding import UNIT, rounding_factor
from .basis import Space, inner, times
from .beyond import deterministic_bound, exploration_bound, failure_of_attempt, lanczos_steps
from .certificate import NO_BOUND, Bound, Certificate, ritz_certificate
from .costs import basis_bytes, factorising_seconds, look_seconds, rest_bytes, step_seconds
from .filtered import COLUMNS, MOST, NARROWEST, SLACK, Aim, cheapest_aim, filter_steps, filtered_beyond
from .operators import CentredProducts
from .random_start import GaussianStart, separated
from .rest import Rest
from .task import NearMatrix, SolverBudget

Certifier = Any
"""`eigen.Certifier`, which asks for proofs: its basis, the Ritz pairs of its last look, its target and its costs."""

BELOW = 0.9
"""Of the last wanted eigenvalue: a bound on the rest that a proof aims at is no nearer to it."""
FOLLOWING = 4.0
"""Times what a run has cost, that a proof may cost when no pass is left."""
EXPLORING_PASSES = 8
"""Passes of an exploration, as a rule."""
UNCERTAIN = 2.0
"""Times the price of a proof that may fail, that one which is certain may have."""


class Proof:
    """One way to bound what a basis has not found."""

    free = certain = True
    due = 0.0
    """Seconds that the run has to have cost, before it is carried out once more: as much again as the last time."""

    def price(self, run: Certifier) -> float:
        """Seconds until it makes the intervals narrow, as expected; infinite where it is not possible, or says at
        once all that it ever will."""
        return np.inf

    def certificate(self, run: Certifier) -> Certificate | None:
        """From what it knows now, or for its price; None where that is nothing."""
        raise NotImplementedError

    def appended(self, run: Certifier) -> None:
        """A block of the Krylov space has been appended."""

    def restarted(self) -> None:
        """Most of the basis has been dropped."""

    def next_block(self, run: Certifier) -> np.ndarray | None:
        """What is to be multiplied next, where the proof asks for something."""
        return None


class Proofs:
    """Those that a run may take; ``tried`` counts those that are not free."""

    def __init__(self, proofs: list[Proof]):
        self.proofs = proofs
        self.cheapest: Proof | None = None
        """Of those that are possible, at the last look at which the rest alone was unproved."""
        self.spoken: dict[Proof, float] = {}
        """Probabilities with which those that have said something may fail."""
        self.factorisations = 0

    def certified(self, run: Certifier) -> Certificate:
        """The first certificate of what is known for free that is certain and narrow enough; else the narrowest."""
        best = None
        for proof in self.proofs:
            if best is not None and best.bound_kind == "guaranteed" and run.done(best):
                break
            other = proof.certificate(run) if proof.free else None
            if other is None:
                continue
            self.spoken[proof] = max(other.failure_probability, self.spoken.get(proof, 0.0))
            if best is None or (other.width < best.width and (other.width < 0.5 * best.width or not run.done(best))):
                best = other
        assert best is not None
        return self._jointly(best)

    def _jointly(self, best: Certificate) -> Certificate:
        """One is chosen by what the others say: any of them may be the one that fails."""
        return replace(best, failure_probability=sum(self.spoken.values())) if best.failure_probability else best

    def proved(self, run: Certifier, best: Certificate, *, last: bool) -> Certificate:
        """The certificate after the cheapest proof, where that is one to be carried out now."""
        limit = run.expenses.budget.seconds  # what has been spent is spent: a proof is the last of the costs
        exploring = self.exploration if self.is_exploring else None
        if exploring is not None and not last and exploring.steps < exploring.expected:
            return best
        candidates = [x for x in self.proofs if x.due <= run.expenses.seconds and (exploring is None or not x.free)]
        priced = sorted((x.price(run) * (1.0 if x.certain else UNCERTAIN), self.proofs.index(x)) for x in candidates)
        self.cheapest = None
        for seconds, i in priced:
            proof = self.proofs[i]
            too_dear = seconds > (min(limit, FOLLOWING * run.expenses.seconds) if last else limit)
            if seconds == np.inf or too_dear or (last and proof.free):
                continue
            if proof.free:
                self.cheapest = proof
                break
            run.expenses.seconds += seconds
            if proof.certain:  # one by chance that has failed has found what was missed
                proof.due = run.expenses.seconds + seconds
            other = proof.certificate(run)
            if other is not None:
                self.spoken[proof] = max(other.failure_probability, self.spoken.get(proof, 0.0))
                best = other if other.width < best.width else best
            if run.done(best):
                break
        return self._jointly(best)

    def appended(self, run: Certifier) -> None:
        for proof in self.proofs:
            proof.appended(run)

    def restarted(self) -> None:
        for proof in self.proofs:
            proof.restarted()

    @property
    def exploration(self) -> Exploration | None:
        return next((x for x in self.proofs if isinstance(x, Exploration)), None)

    @property
    def is_exploring(self) -> bool:
        exploration = self.exploration
        return exploration is not None and exploration.first is not None

    def next_block(self, run: Certifier) -> np.ndarray | None:
        """What one of them asks for."""
        return next((X for X in (proof.next_block(run) for proof in self.proofs) if X is not None), None)


def sufficient_bound(run: Certifier) -> float:
    """About the largest bound on the rest that makes the intervals narrow enough; 0: none."""
    theta, c, tol = run.ritz.theta, run.c, run.target.tol
    last = float(theta[c - 1])
    if tol * float(theta[0]) > last:
        # what is beyond the last wanted eigenvalue may widen its interval, by less than tol; no gap bounds its angle
        above = run.bound_for(0.9 * tol)
        if above > last:
            return above
    return max(min(run.bound_for(0.5 * tol), BELOW * last), 0.0)


class Gap(NamedTuple):
    """Between the first ``columns`` Ritz values and the others, with a ``bound`` inside that the others are to keep.

    ``width``: of the intervals, once it is proved; infinite where there is no gap.
    """

    columns: int
    bound: float
    width: float


def gap_behind(theta: np.ndarray, squares: np.ndarray, c: int) -> Gap:
    """The gap that leaves intervals the narrowest; ``squares``: of the norms of the residuals of all Ritz vectors."""
    last = float(theta[c - 1])
    p = np.arange(min(c + 1, len(theta) - 1), len(theta))  # one more: a gap behind the last bounds its angle
    p = p[(theta[p] <= (1.0 - NARROWEST) * last) & (p >= c)]
    if len(p) and last > 0.0:
        bounds = 0.5 * (last + np.maximum(theta[p], 0.0))
        # the largest eigenvalue of the rest is that much above its Ritz value, about
        above = np.minimum(squares[p] / (NARROWEST * last), np.sqrt(np.maximum(squares[p], 0.0)))
        widths = np.where(theta[p] + above < bounds, 2.0 * np.cumsum(squares)[p - 1] / (last - theta[p]), np.inf)
        best = int(np.argmin(widths))
        if widths[best] < np.inf:
            return Gap(int(p[best]), float(bounds[best]), float(widths[best]))
    return Gap(0, np.inf, np.inf)


class Sums(Proof):
    """What the trace of a semidefinite matrix, and the norm of any, leave beside the Ritz values."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, float]] = []
        """Columns and the bound, at the last two looks."""

    def price(self, run: Certifier) -> float:
        """Each new column lowers them by at most about the smallest guard value, and by less than those before it."""
        theta, c, b, values = run.ritz.theta, run.c, run.space.block, run.eigenvalues()
        guard, enough = max(float(theta[min(len(theta), b) - 1]), 0.0), BELOW * float(theta[c - 1])
        room = max(min(run.space.columns, run.A.n - 1) - len(theta), 0)
        further = np.minimum(np.maximum(values[len(theta) :], 0.0), guard)
        further = np.append(further, np.full(room, further.min(initial=guard)))[:room]
        hoped = run.expected_mu(np.concatenate([theta, further]))[len(theta) - 1 :]
        low = np.flatnonzero(hoped <= enough)
        columns = 2.0 * low[0] if len(low) else np.inf
        (before, above), (size, bound) = self.seen if len(self.seen) > 1 else [(0, np.inf), *self.seen]
        if before < size and above < np.inf and bound > enough:
            needed, fall = bound - enough, (above - bound) / (size - before)
            columns = max(columns, needed / fall) if fall * room >= needed else np.inf
        return max(np.ceil(columns / b), 1.0) * run.pass_seconds() if columns <= room else np.inf

    def certificate(self, run: Certifier) -> Certificate:
        """While an exploration goes on, with no bound on the rest as long as they are not expected to suffice."""
        bound = deterministic_bound(run.block, run.info())
        self.seen = [*self.seen[-1:], (run.basis.size, bound.mu)]
        useless = run.proofs.is_exploring and not run.is_last and not run.may_suffice(bound.mu)
        return run.certificate_with(NO_BOUND if useless else bound)


class Searched(Proof):
    """``upper`` ends of the eigenvalues that a search has proved: wide by its rounding, but from all of its vectors."""

    def __init__(self, upper: np.ndarray):
        self.upper = upper

    def certificate(self, run: Certifier) -> Certificate:
        block, outside = separated(self.upper, run.block, run.c, 0.0)
        return ritz_certificate(block, run.c, run.info(), outside).tightened(self.upper)


class RandomStart(Proof):
    """The random block that the space began with, of which the space holds a Krylov space."""

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

    def price(self, run: Certifier) -> float:
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
        found = ritz_certificate(block, run.c, run.info(), outside).tightened(upper)
        return replace(found, failure_probability=self.failure) if np.isfinite(found.width) else None


class Exploration(Proof):
    """A random block beyond the first columns of the basis, and its Krylov space."""

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

    @property
    def _failure(self) -> float:
        """Of this attempt, or of the next one."""
        return failure_of_attempt(self.failure, self.attempts - (self.first is not None))

    def price(self, run: Certifier) -> float:
        """Steps until the largest eigenvalue of the rest, which is guessed, is known well enough."""
        A, size, wanted, b = run.A, run.basis.size, sufficient_bound(run), run.space.block
        if self.first is not None or A.lowest is None or not wanted > 0.0:
            return np.inf
        hope = run.hope()
        middle = 0.5 * (hope + wanted)
        # behind all columns, or, where these leave too little room, behind the Ritz vectors of large values
        for kept, rest in ((size, hope), (max(run.c + 2, int((run.ritz.theta > middle).sum())), middle)):
            steps = self._steps(run, rest, wanted)
            if self._fits(run, kept, steps) and steps <= run.expenses.left:
                steps = max(steps, EXPLORING_PASSES)
                self.expected, self.wanted, self.kept = int(steps), wanted, min(kept, size)
                columns = kept + 0.5 * steps * b
                algebra = step_seconds(A.n, columns, b) + look_seconds(columns)
                return steps * (run.expenses.budget.pass_seconds + algebra)
        return np.inf

    def _steps(self, run: Certifier, rest: float, wanted: float) -> float:
        """That show the rest to be no larger than ``wanted``, where it is as large as ``rest``."""
        return lanczos_steps(self.order, run.space.block, self._failure / self.stops, 1.0 - rest / wanted)

    def _fits(self, run: Certifier, first: int, steps: float) -> bool:
        return first + steps * run.space.block <= min(run.space.columns, run.A.n - 1)

    def certificate(self, run: Certifier) -> Certificate | None:
        if self.first is None or self.steps < 1 or run.A.lowest is None:
            return None
        largest = max(run.basis.largest_beyond(self.first), 0.0)
        enough = max(self.wanted, BELOW * float(run.ritz.theta[run.c - 1]))
        if self.steps >= 2 and not self._fits(run, self.first, self._steps(run, largest, enough)):
            self.first = None  # it had been missed, and is in the space now: look again beyond it
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
    """The filter that ended a search on the coarse matrix, of whose vectors the space holds the span."""

    certain = False

    def __init__(self, near: NearMatrix, vectors: np.ndarray, bound: float, failure: float):
        self.near, self.bound, self.failure = near, bound, failure
        self.vectors: np.ndarray | None = vectors

    def appended(self, run: Certifier) -> None:
        """The first block: x'Bx for a unit x beyond it, P x beyond the search's V, and |V'x| <= e, is at most that of
        P x, and (2 e + e^2) |B|."""
        if self.vectors is None:
            return
        V, Q, threads = self.vectors, run.basis.Q, run.basis.n_threads
        outside = float(np.linalg.norm(V - times(Q, inner(Q, V, threads), threads)))
        outside += 4.0 * np.sqrt(V.shape[1]) * rounding_factor(len(V)) * UNIT
        self.bound, self.vectors = self.bound + (2.0 + outside) * outside * self.near.size, None

    def restarted(self) -> None:
        self.bound = np.inf

    def certificate(self, run: Certifier) -> Certificate | None:
        if not self.bound < np.inf:
            return None
        return run.certificate_with(Bound(self.bound + self.near.distance(), "filter", self.failure))


class Filter(Proof):
    """Polynomials of a coarse matrix beyond some Ritz vectors, times random columns: a bound, or what was missed."""

    free = certain = False

    def __init__(self, near: NearMatrix, top: float, failure: float):
        self.near, self.failure = near, failure
        self.top = top
        """About the largest eigenvalue of the coarse matrix beyond the first block."""
        self.attempts = 0
        self.found: np.ndarray | None = None
        """Columns in which an eigenvalue that was missed stands out, until they are taken."""

    def _aim(self, run: Certifier) -> Aim | None:
        """The vectors and the bound beyond them that make the intervals narrow."""
        theta, squares, c, n = run.ritz.theta, np.maximum(run.ritz.squares, 0.0), run.c, run.A.n
        distance, width = self.near.distance(), run.target.tol * float(theta[0])
        failure = failure_of_attempt(self.failure, self.attempts)
        values = np.append(theta, self.top)  # behind all of them
        aim = cheapest_aim(values, np.append(squares, 0.0), c, 0.9 * width, n=n, distance=distance, failure=failure)
        if aim is None:  # what is beyond may be larger than the last wanted eigenvalue, by less than an interval
            wanted = float(theta[c - 1]) + 0.5 * width - distance
            top = max(self.top, float(theta[c - 1]))
            aim = Aim(len(theta), top, wanted, filter_steps(n, (-distance, top), wanted, failure))
        hoped = Bound(aim.wanted + distance, "hope")
        possible = run.done(ritz_certificate(run.block.leading(aim.columns), c, run.info(), hoped))
        return aim if possible and SLACK * aim.steps <= MOST else None

    def price(self, run: Certifier) -> float:
        if self.found is not None or run.is_short:
            return np.inf
        aim = self._aim(run)
        return np.inf if aim is None else aim.steps * (self.near.seconds + step_seconds(run.A.n, aim.columns, COLUMNS))

    def certificate(self, run: Certifier) -> Certificate | None:
        basis, aim = run.basis, self._aim(run)
        if aim is None:
            return None
        distance = self.near.distance()
        bound, columns, _ = filtered_beyond(
            self.near.product.matmat,
            basis.vectors(run.ritz.Y[:, : aim.columns]),
            aim,
            -distance,
            size=self.near.size,
            failure=failure_of_attempt(self.failure, self.attempts),
            rng=basis.rng,
            n_threads=basis.n_threads,
        )
        self.attempts += 1
        if bound > aim.wanted:
            self.found = columns
            return None
        outside = Bound(bound + distance, "filter", self.failure)
        return ritz_certificate(run.block.leading(aim.columns), run.c, run.info(), outside)

    def next_block(self, run: Certifier) -> np.ndarray | None:
        found, self.found = self.found, None
        return None if found is None else run.basis.orthonormal(found)


class Factorisation(Proof):
    """Of the kernel matrix beyond the first few Ritz vectors, or beyond all of them."""

    free = False

    def _gap(self, run: Certifier) -> tuple[int, float] | None:
        """(Ritz vectors, bound beyond them) that leave intervals narrow; None where there are none."""
        theta, squares, c, tol = run.eigenvalues()[: run.basis.size], run.ritz.squares, run.c, run.target.tol
        gap = gap_behind(theta, squares, c)
        if gap.width <= 0.9 * tol * theta[0]:
            return gap.columns, gap.bound
        wanted = sufficient_bound(run)
        moving = theta[c:][squares[c:] > (NARROWEST * theta[c - 1]) ** 2]
        return (len(theta), wanted) if wanted > max(run.hope(), moving.max(initial=0.0)) else None

    def seconds(self, A: CentredProducts, columns: int, space: Space, budget: SolverBudget) -> float:
        """Of one beyond so many columns; infinite where it does not fit."""
        spare = np.inf if budget.memory is None else budget.memory - basis_bytes(A.n, space.basis.size, space.block)
        if A.matrix.entries is None or rest_bytes(A.n, columns) > spare:
            return np.inf
        return factorising_seconds(A.n, columns, budget.pass_seconds)

    def passes_for(self, A: CentredProducts, c: int, space: Space, budget: SolverBudget, block: int) -> float:
        """Passes of ``block`` columns that take as long; infinite where it does not fit."""
        columns = c + EXPLORING_PASSES * block
        product = budget.pass_seconds * block / space.block
        each = product + step_seconds(A.n, columns, block) + look_seconds(columns)
        return self.seconds(A, c + space.block, space, budget) / each

    def price(self, run: Certifier) -> float:
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
        Y = run.ritz.Y[:, :k]
        V = run.basis.vectors(Y)
        images = run.basis.residuals(Y) + V * run.ritz.theta[:k]
        rest = Rest(A.matrix.entries, V, images, A.row_means, 1.4143 * A.error(k + 1))
        if not wanted > rest.error:
            return None
        run.proofs.factorisations += 1
        bound = rest.factorised_bound(wanted)
        return None if bound is NO_BOUND else ritz_certificate(run.block.leading(k), run.c, run.info(), bound)
