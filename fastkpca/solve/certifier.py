"""Convergence check for products with a known error: intervals, and the proof that makes them meet tol."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base.rounding import UNIT
from .basis import Space
from .certificate import NO_BOUND, Bound, Certificate, MatrixInfo, RitzBlock, ritz_certificate
from .complement import MU_FRACTION
from .costs import Expenses, certificate_seconds
from .eigen import ConvergenceMonitor
from .operators import Operator
from .task import SolverTarget

MAX_WIDTH_RATIO = 4.0
"""Predicted width, over tol, above which no certificate is computed."""
MAX_LAST_PROOF_RATIO = 4.0
"""Largest cost of a proof when no pass is left, over the cost of the run so far."""
UNCERTAIN_FACTOR = 2.0
"""Factor on the predicted cost of a proof that may fail, when it is compared with a certain one."""


class Certifier(ConvergenceMonitor):
    """Convergence monitor: stops where the intervals meet tol; else selects the cheapest proof, or the next block.

    Attributes
    ----------
    proofs : Proofs
    searched : ndarray
        Ritz values of the float32 phase, for predictions; the basis holds only a few of their vectors.
    block : RitzBlock
        Inner products at the last check.
    certificate : Certificate
        The best one at that check; ``is_done``: it meets tol.
    """

    block: RitzBlock
    certificate: Certificate
    is_done = False

    def __init__(
        self,
        A: Operator,
        space: Space,
        target: SolverTarget,
        expenses: Expenses,
        proofs: Proofs,
        searched: np.ndarray | None = None,
    ):
        super().__init__(A, space, target, expenses)
        self.proofs, self.searched = proofs, np.empty(0) if searched is None else searched

    def ends_after_check(self) -> bool:
        self.proofs.appended(self)
        return super().ends_after_check()

    def _is_enough(self) -> bool:
        theta = self.ritz.theta
        optimistic_bound = self.optimistic_bound()
        last = self.is_last
        if self.target.fraction is None and not last and not self.may_suffice(optimistic_bound):
            self.record(np.inf)
            self._check_pace(np.inf)
            return False
        self.block = self.basis.ritz_block(self.ritz, self.A.error(self.basis.size), self.A.size)
        best = self.proofs.certified(self)
        if not self.done(best) and (last or self.predicted_width(optimistic_bound) <= 0.5 * self.target.tol):
            best = self.proofs.proved(self, best, last=last)
        self.certificate, self.is_done = best, self.done(best)
        self.record(relative_width(best, theta))
        if self.is_done or last or self._at_rounding():
            return True
        self._check_pace(relative_width(best, theta))
        return False

    def _check_pace(self, width: float) -> None:
        """Check the pace with the predicted width where none is proved yet; an exploration has its own forecast."""
        if not self.proofs.is_exploring:
            self.check_pace(width if np.isfinite(width) else self.predicted_width(self.optimistic_bound()))

    @property
    def is_last(self) -> bool:
        """True if no pass can follow."""
        return self.expenses.over or self.basis.free_columns == 0 or self.is_outgrown

    def may_suffice(self, mu: float) -> bool:
        """True if the intervals may meet tol with mu as bound on the complement."""
        return self.predicted_width(mu) <= MAX_WIDTH_RATIO * self.target.tol

    def eigenvalues(self) -> np.ndarray:
        """Estimates of the largest eigenvalues: the larger of the Ritz values of the basis and of the float32 phase."""
        theta, searched = self.ritz.theta, self.searched
        if len(searched) <= len(theta):
            searched = np.append(searched, np.full(len(theta) - len(searched), -np.inf))
        found = searched.copy()
        found[: len(theta)] = np.maximum(theta, searched[: len(theta)])
        return found

    def optimistic_bound(self) -> float:
        """Optimistic bound on the complement, as the Ritz values suggest."""
        values, c, m = self.eigenvalues(), self.c, self.basis.size
        optimistic_bound = max(float(values[min(m - 1, c + (m - c) // 2)]), 0.0) if m > c else 0.0
        optimistic_bound = max(optimistic_bound, float(values[m])) if len(values) > m else optimistic_bound
        return max(
            min(optimistic_bound, MU_FRACTION * max(float(self.ritz.theta[c - 1]), 0.0)),
            self.least_complement(self.ritz.theta),
        )

    def least_complement(self, theta: np.ndarray) -> float:
        """Estimate of the lower bound |P A P|_F^2 / tr(P A P) of lambda_max(P A P), beyond eigenvalues ``theta``.

        In a flat spectrum it is above the Ritz values behind those wanted, which have not converged.
        """
        info, theta = self.info(), np.maximum(theta, 0.0)
        if info.trace is None or info.norm is None:
            return 0.0
        trace, square = info.trace[0] - float(theta.sum()), info.norm**2 - float(theta @ theta)
        # what is more than the square of the sum is rounding
        return square / trace if trace > info.trace[1] and 0.0 < square <= trace**2 else 0.0

    def info(self) -> MatrixInfo:
        return self.A.info(self.basis.size)

    def certificate_with(self, outside: Bound, block: RitzBlock | None = None) -> Certificate:
        """Certificate of all Ritz vectors, or of another ``block`` of these; counted among the expenses."""
        block = self.block if block is None else block
        self.expenses.seconds += certificate_seconds(len(block.theta)) if np.isfinite(outside.mu) else 0.0
        return ritz_certificate(block, self.c, self.info(), outside)

    def certificate_of(self, count: int) -> Certificate:
        """Certificate of the last check for another number of Ritz values."""
        found, outside = self.certificate, self.certificate.outside
        other = ritz_certificate(self.block, count, self.info(), NO_BOUND if outside is None else outside)
        return replace(other.tightened(found.eigenvalue_bounds[:, 1]), failure_probability=found.failure_probability)

    def done(self, certificate: Certificate) -> bool:
        theta = self.ritz.theta
        if self.target.fraction is None:
            enough = self.c >= self.target.c
        else:
            enough = self.count(theta - certificate.rounding) is not None
        return bool(enough and theta[0] > 0 and certificate.width <= self.target.tol * theta[0])

    def next_block(self) -> np.ndarray:
        if self.target.fraction is not None and self.n_checks:
            self.space.block = max(self.space.block, min(self.c + 8, self.space.widest))
        if self.n_checks:
            semidefinite = self.A.lowest is not None and self.A.lowest >= -UNIT * self.A.size
            low = float(self.expected_mu(self.ritz.theta)[-1]) <= 0.3 * max(float(self.ritz.theta[self.c - 1]), 0.0)
            self.A.measures = not (semidefinite and low)
        if self.space.full:
            self.proofs.restarted()
        X = self.proofs.next_block(self)
        self.continues = self.proofs.is_exploring
        return super().next_block() if X is None else X

    def _at_rounding(self) -> bool:
        """True if the widths are mostly rounding, and above tol: further passes would only add to it."""
        theta, certificate = self.ritz.theta, self.certificate
        if self.target.fraction is not None and self.count(theta - certificate.rounding) is None:
            return False  # more components are still to come
        rounding = 2 * certificate.rounding
        return rounding > 0.1 * self.target.tol * theta[0] and certificate.width < 2 * rounding


class Proof:
    """A method that bounds the eigenvalues on the complement of the basis (see ``proofs``)."""

    free = certain = True
    due = 0.0
    """Predicted seconds of the run before which the proof is not repeated: its own cost after the last time."""

    def cost(self, run: Certifier) -> float:
        """Predicted seconds until the intervals meet tol by this proof; infinite where that is not possible, or where
        further passes do not improve it."""
        return np.inf

    def chosen(self, run: Certifier) -> None:
        """Note that this free proof is the cheapest: passes are made until it suffices."""

    def certificate(self, run: Certifier) -> Certificate | None:
        """Certificate with this bound, computed at its cost unless it is free; None if there is no bound."""
        raise NotImplementedError

    def steps_to_come(self) -> int | None:
        """Predicted number of blocks until an exploration suffices, each of which continues the last; else None."""
        return None

    def appended(self, run: Certifier) -> None:
        """Note that a block of the Krylov space has been appended."""

    def restarted(self) -> None:
        """Note that most of the basis has been dropped."""

    def next_block(self, run: Certifier) -> np.ndarray | None:
        """Next block, where the proof needs a particular one; else None."""
        return None


class Proofs:
    """Proofs that a run may use; ``factorisations`` counts those by Cholesky."""

    def __init__(self, proofs: list[Proof]):
        self.proofs = proofs
        self.cheapest: Proof | None = None
        """Free proof for which passes are made, chosen by the last call of ``proved``; else None."""
        self.recorded_failures: dict[Proof, float] = {}
        """Failure probabilities of the proofs that have returned a certificate."""
        self.factorisations = 0

    def certified(self, run: Certifier) -> Certificate:
        """The first certificate of the free proofs that is certain and meets tol; else the narrowest."""
        best = None
        for proof in self.proofs:
            if best is not None and best.bound_kind == "guaranteed" and run.done(best):
                break
            other = proof.certificate(run) if proof.free else None
            if other is None:
                continue
            self.recorded_failures[proof] = max(other.failure_probability, self.recorded_failures.get(proof, 0.0))
            if best is None or (other.width < best.width and (other.width < 0.5 * best.width or not run.done(best))):
                best = other
        assert best is not None
        return self._jointly(best)

    def _jointly(self, best: Certificate) -> Certificate:
        """The certificate with the failure probabilities added up: the choice depends on all of them (union bound)."""
        return (
            replace(best, failure_probability=sum(self.recorded_failures.values()))
            if best.failure_probability
            else best
        )

    def proved(self, run: Certifier, best: Certificate, *, last: bool) -> Certificate:
        """The certificate after the proofs that are carried out now, in the order of their costs."""
        limit = run.expenses.budget.seconds  # for the proof alone: it ends the run, whose past cost does not matter
        steps = self.steps_to_come()
        if steps and not last:
            return best
        candidates = [x for x in self.proofs if x.due <= run.expenses.seconds and (steps is None or not x.free)]
        ranked = sorted(
            (x.cost(run) * (1.0 if x.certain else UNCERTAIN_FACTOR), self.proofs.index(x)) for x in candidates
        )
        self.cheapest = None
        for seconds, i in ranked:
            proof = self.proofs[i]
            too_slow = seconds > (min(limit, MAX_LAST_PROOF_RATIO * run.expenses.seconds) if last else limit)
            if seconds == np.inf or too_slow or (last and proof.free):
                continue
            if proof.free:
                self.cheapest = proof
                proof.chosen(run)
                break
            run.expenses.log("a %s follows: %.2g s predicted", type(proof).__name__.lower(), seconds)
            run.expenses.seconds += seconds
            if proof.certain:  # a probabilistic one that has failed has found a missed eigenvector, and may be repeated
                proof.due = run.expenses.seconds + seconds
            other = proof.certificate(run)
            if other is not None:
                self.recorded_failures[proof] = max(other.failure_probability, self.recorded_failures.get(proof, 0.0))
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

    def steps_to_come(self) -> int | None:
        """Remaining steps of an exploration; None if none is running."""
        return next((n for n in (proof.steps_to_come() for proof in self.proofs) if n is not None), None)

    @property
    def is_exploring(self) -> bool:
        return self.steps_to_come() is not None

    def next_block(self, run: Certifier) -> np.ndarray | None:
        """Next block of the first proof that needs a particular one."""
        return next((X for X in (proof.next_block(run) for proof in self.proofs) if X is not None), None)


def relative_width(certificate: Certificate, theta: np.ndarray) -> float:
    return float(certificate.width / theta[0]) if theta[0] > 0 else np.inf
