"""Leading eigenpairs of a small, cheap semidefinite operator, with intervals: block Lanczos, the whole basis kept.

For second moments that exist only as products (``maps.fourier``). Unlike ``krylov`` nothing here is a pass over
data: a product takes a fraction of a millisecond, so blocks are narrow, and the bookkeeping has to be cheap.

That no eigenvalue was missed follows from one of three, in this order: the traces (sum and sum of squares of the
eigenvalues outside the Krylov space), a Cholesky factorisation of t I - P C P where C is small enough to be formed, or
randomly started Lanczos on the complement, with a stated probability (``beyond``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..base.room import DEFAULT_MEMORY
from ..base.rounding import UNIT, rounding_factor
from .basis import Basis
from .beyond import deterministic_bound, exploration_bound, failure_of_attempt, formed_bound
from .certificate import NO_BOUND, Bound, Certificate, MatrixInfo, RitzBlock, ritz_certificate
from .task import SolverTarget

__all__ = ["FORMED", "Lanczos", "LeadingPairs", "SymmetricOperator", "leading_pairs"]

FORMED = 3000
"""Largest order for which a Cholesky factorisation pays."""
BLOCK = 6
EXPLORING_COLUMNS = 4
"""Random columns of an exploration."""
LANCZOS_COLUMNS = 640
"""Of the space, where memory allows them."""
WIDE = 20000
"""Order from which a pass over the basis costs more than a few needless columns."""
EXPLORED = 60
"""Columns of a usual exploration, about."""
NARROW_SHARE = 0.3
"""Of tol: a bound on the other eigenvalues that is so small leaves intervals narrow, however small the wanted ones."""


@dataclass(frozen=True)
class SymmetricOperator:
    """A symmetric matrix C as products, semidefinite up to a known error.

    Attributes
    ----------
    matmat : callable
        U (n, k) -> C U.
    n : int
    trace, norm : float
        tr C; upper bound on |C|_F.
    product_error : float
        Bound on |computed C u - C u| / |u|.
    indefinite : float
        Distance (in norm) to a semidefinite matrix whose trace and mean it shares.
    form : callable, optional
        Returns C itself, where that is affordable.
    dear : bool
        A product costs more than what is done with its result.
    """

    matmat: Callable[[np.ndarray], np.ndarray]
    n: int
    trace: float
    norm: float
    product_error: float
    indefinite: float = 0.0
    form: Callable[[], np.ndarray] | None = None
    dear: bool = False


@dataclass(frozen=True)
class LeadingPairs:
    """Ritz pairs of an operator.

    Attributes
    ----------
    values : ndarray (k,)
    vectors : ndarray (n, k)
    certificate : Certificate
        Of all k; ``wanted`` of them were asked for, and one more gives the gap behind the last.
    wanted : int
    residual : float
        |C V - V diag(values)|_2, rounding included.
    steps : int
        Products with a block.
    columns : int
        Columns multiplied, all together.
    """

    values: np.ndarray
    vectors: np.ndarray
    certificate: Certificate
    wanted: int
    residual: float
    steps: int
    columns: int


def leading_pairs(
    operator: SymmetricOperator,
    target: SolverTarget,
    *,
    total: float = 0.0,
    memory_limit: float | None = None,
    rng: np.random.Generator | int = 0,
    n_threads: int = 1,
) -> LeadingPairs:
    """The largest eigenvalues of a symmetric semidefinite operator, intervals at most tol * theta_1 wide.

    Parameters
    ----------
    operator : SymmetricOperator
    target : SolverTarget
    total : float
        The sum to which a fraction refers.
    memory_limit : float, optional
        Bytes.
    rng : numpy.random.Generator or int
    n_threads : int
        Of the work on the basis; results do not depend on it.
    """
    room = DEFAULT_MEMORY if memory_limit is None else memory_limit
    limit = max(min(LANCZOS_COLUMNS, int(0.5 * room / (8.0 * operator.n))), target.c + 4 * BLOCK)
    search = _Search(Lanczos(operator, limit, np.random.default_rng(rng), n_threads=n_threads), target, total)
    search.run()
    certificate = search.proved()
    return search.result(certificate)


class Lanczos:
    """Block Lanczos with full orthogonalisation: the basis, the last block's image outside of it, and bounds."""

    def __init__(
        self,
        operator: SymmetricOperator,
        limit: int,
        rng: np.random.Generator,
        *,
        centred: bool = False,
        n_threads: int = 1,
    ):
        self.operator, self.rng = operator, rng
        self.n, self.limit = operator.n, min(limit, operator.n)
        self.basis = Basis(self.n, rng, reserve=self.limit, centred=centred, n_threads=n_threads)
        self.steps = 0
        self.next = np.empty((self.n, 0))
        """The part of C times the last block outside of the basis: C Q - Q T has these columns, and next to zeros."""
        self._lost = 0.0
        """The sum of squares of the other columns: what the next blocks do not hold of such parts."""

    @property
    def size(self) -> int:
        return self.basis.size

    @property
    def room(self) -> int:
        return self.limit - self.basis.size

    def start(self, block: int) -> None:
        self._advance(self.basis.orthonormal(self.rng.standard_normal((self.n, block))))

    def step(self) -> None:
        X, lost = self.basis.orthonormal_of(self.next)
        self._lost += lost**2
        self._advance(X)

    def _advance(self, X: np.ndarray) -> None:
        image = self.operator.matmat(X)
        self.steps += 1
        self.next = self.basis.outside(image, self.basis.append(X, image))

    def residual_squares(self, Y: np.ndarray) -> np.ndarray:
        """|C Q y - Q T y|^2 for each column y, which rounding may take below zero."""
        last = Y[-self.next.shape[1] :]
        return np.maximum(np.einsum("ij,ij->j", last, (self.next.T @ self.next) @ last), 0.0)

    def ritz_block(self, theta: np.ndarray, Y: np.ndarray) -> RitzBlock:
        """The inner products for a certificate, from the recurrence.

        C Q - Q T has its last block's columns, and else what `Basis.orthonormal_of` says that blocks lost: both
        are known. In T, products Q_i' (C Q_j) stand for their transposes: two more product errors a
        column.
        """
        operator, m = self.operator, self.size
        last = Y[-self.next.shape[1] :]
        return RitzBlock(
            compression=np.diag(theta),
            gram=Y.T @ self.basis.gram @ Y,
            residual_gram=1.001 * (last.T @ (self.next.T @ self.next) @ last)
            + 1001.0 * self._lost * np.eye(len(theta)),
            n=self.n,
            product_error=3.0 * np.sqrt(m) * operator.product_error + 16.0 * m * UNIT * operator.norm,
        )

    def formed_bound(self, wanted: float) -> Bound:
        """From the matrix itself."""
        assert self.operator.form is not None
        rounding = 64.0 * (rounding_factor(self.n) + np.sqrt(self.size)) * UNIT * self.operator.norm
        error = rounding + 4.0 * np.sqrt(self.n) * self.operator.product_error
        return formed_bound(self.operator.form(), self.basis.Q, error, wanted)

    def explored_bound(
        self, last: float, failure: float, *, share: float = 0.85, give_up: float = 0.97, most_steps: int = 60
    ) -> Bound:
        """From randomly started block Lanczos on the complement of the basis, which is not changed.

        It ends when the bound is below ``share`` times the Ritz value ``last``, when that cannot be reached (a Ritz
        value of the complement is above ``give_up`` times it), or after ``most_steps``.
        """
        basis, operator, first = self.basis, self.operator, self.size
        block = min(EXPLORING_COLUMNS, basis.room)
        if block < 1:
            return NO_BOUND
        best = NO_BOUND
        X = basis.orthonormal(self.rng.standard_normal((self.n, block)))
        for k in range(1, most_steps + 1):
            image = operator.matmat(X)
            self.steps += 1
            border = basis.append(X, image)
            largest = max(basis.largest_beyond(first), 0.0)
            error = 4.0 * np.sqrt(block * k) * operator.product_error
            error += 64.0 * rounding_factor(self.n) * UNIT * operator.norm
            bound = exploration_bound(
                largest + error,
                order=self.n - first,
                steps=k,
                starts=block,
                lowest=-operator.indefinite - operator.product_error,
                stops=most_steps,
                failure=failure,
            )
            best = min(best, bound, key=lambda bound: bound.mu)
            if best.mu < share * last or (k > 8 and largest > give_up * last) or basis.room < block:
                break
            X = basis.orthonormal(basis.outside(image, border), projected=True)
        basis.truncate(first)
        return best


class _Search:
    """Lanczos until the wanted vectors have converged; then a bound on the others, so that none was missed."""

    def __init__(self, lanczos: Lanczos, target: SolverTarget, total: float):
        self.lanczos, self.target, self.total = lanczos, target, total
        self.operator, self.n = lanczos.operator, lanczos.n
        self.block = min(BLOCK if self.n < WIDE else 2 * BLOCK, self.n)
        self._certificate: Certificate | None = None
        self.explorations = 0
        self.narrowest, self.stuck = np.inf, False
        """Width that the traces gave when last asked; more columns would not narrow the intervals."""
        self._seen: list[tuple[int, float]] = []
        """Columns, and the bound that the traces gave with them."""
        self.enough = np.inf
        """A bound on the eigenvalues that were not found has to be below this for intervals to be narrow, about."""

    def _look(self) -> None:
        """Ritz values and vectors as they are now, and how many of them are wanted."""
        self.theta, self.Y = self.lanczos.basis.ritz()
        self.c = self.target.count(self.theta, self.total) or self.lanczos.size + 1
        last = self.theta[min(self.c, self.lanczos.size) - 1]
        self.enough = max(float(last), NARROW_SHARE * self.target.tol * float(self.theta[0]), 1e-300)

    def run(self) -> None:
        lanczos = self.lanczos
        lanczos.start(self.block)
        again = 0.0
        while True:
            full = lanczos.room < self.block
            if full or lanczos.size >= again:
                self._look()
                enough = lanczos.size >= self.c + 2
                if (full or enough) and self._ends(full):
                    return
                # for a long recurrence Rayleigh-Ritz costs as much as many steps
                again = lanczos.size + max(0.04 * lanczos.size, self._idle_columns() if enough else 0.0)
            lanczos.step()

    def _idle_columns(self) -> float:
        """Of the next ones, those after which the bound from the traces will still be too large.

        It falls the more slowly the longer it has fallen, at times faster again: less than what is expected, and never
        so many that a search which has to end in another way would notice.
        """
        if len(self._seen) < 2 or not self._traces_will_do():
            return 0.0
        return min(0.7 * self._columns_until(self.enough), 0.25 * self.lanczos.size)

    def _columns_until(self, bound: float) -> float:
        """More columns with which the traces may give this bound: it falls about exponentially."""
        (before, larger), (now, mu) = self._seen[-2:]
        if mu <= bound:
            return 0.0
        fallen = float(np.log(max(larger / mu, 1.0)))
        return float(np.log(mu / bound)) * (now - before) / fallen if fallen else np.inf

    def _ends(self, full: bool) -> bool:
        mu = self._expected_mu()
        self._seen.append((self.lanczos.size, mu))
        ready, settled = self._expected_narrow(mu)
        if ready or full:
            certificate = self._certified_by_traces()
            # what is left of the widths is then rounding, which grows with the columns
            self.stuck = self.narrowest <= self._width(certificate) < np.inf
            self.narrowest = self._width(certificate)
            if full or self.stuck or self._narrow(certificate):
                self._certificate = certificate
                return True
        return not ready and settled and not self._traces_will_do()

    def proved(self) -> Certificate:
        """The certificate from the traces, or from a bound on the rest of the spectrum where that is needed."""
        lanczos = self.lanczos
        certificate = self._certificate or self._certified_by_traces()
        for attempt in range(4):
            # (the traces' own error grows with the columns, that of a bound on the complement does not: it has one try)
            if self._narrow(certificate) or (self.stuck and (attempt or self._only_rounding(certificate))):
                break
            if not (self._may_form or self.target.probabilistic):
                break
            if attempt:
                # the other eigenvalues are closer than expected: a longer recurrence, and another attempt
                enough = min(lanczos.limit - self.block, lanczos.size + max(4 * self.block, lanczos.size // 2))
                if lanczos.size > enough:
                    break
                while lanczos.size <= enough:
                    lanczos.step()
                self._look()
            other = self._certified_by_complement()
            if other is not None and (attempt or other.width < certificate.width):
                certificate = other
        return certificate

    def result(self, certificate: Certificate) -> LeadingPairs:
        lanczos = self.lanczos
        kept, c = min(self.c + 1, lanczos.size), min(self.c, lanczos.size)
        V = np.ascontiguousarray(lanczos.basis.vectors(self.Y[:, :kept]))
        ritz = lanczos.ritz_block(self.theta[:c], self.Y[:, :c])
        residual = float(np.sqrt(np.trace(ritz.residual_gram))) + float(np.sqrt(c)) * ritz.product_error
        return LeadingPairs(self.theta[:kept].copy(), V, certificate, c, residual, lanczos.steps, lanczos.size)

    def _expected_mu(self) -> float:
        """A bound from the traces, less what the Ritz values account for (without the residuals' sum of squares)."""
        by_sum, by_squares = self._left()
        error, slack = self._least_mu()
        return min(by_sum + error, float(np.hypot(np.sqrt(by_squares), slack)))

    def _left(self) -> tuple[float, float]:
        """Of the trace and of the squared norm, beside the Ritz values."""
        operator, theta = self.operator, self.theta
        return max(operator.trace - float(theta.sum()), 0.0), max(operator.norm**2 - float(theta @ theta), 0.0)

    def _least_mu(self) -> tuple[float, float]:
        """What rounding leaves of either bound, however many columns there are."""
        operator, m = self.operator, self.lanczos.size
        return self._trace_error() + m * (3.0 * operator.product_error + 16.0 * UNIT * operator.norm), (
            4.0 * np.sqrt(UNIT) * operator.norm
        )

    def _expected_narrow(self, mu: float) -> tuple[bool, bool]:
        """Whether the intervals would be narrow with this mu; and with the smallest mu that can be expected."""
        theta, c = self.theta, self.c
        if self.lanczos.size < c or not theta[0] > 0:
            return False, False
        residuals = self.lanczos.residual_squares(self.Y[:, :c])
        goal = 0.7 * self.target.tol * theta[0]
        # an exploration ends at 0.85 of the last; where products are dear it is not to be made twice
        hope = (0.85 if self.operator.dear else 0.7) * self.enough
        return bool(_above(theta[:c], residuals, mu).max() <= goal), bool(
            _above(theta[:c], residuals, hope).max() <= goal
        )

    def _traces_will_do(self) -> bool:
        """Whether a few more columns will make the bound from the traces small enough.

        A column lowers the sum by at most about theta_c, and the sum of squares by its square. Later columns lower them
        by less, so this count is too small: three times it must fit the limit, and not be many more than there are now.
        """
        size, last = self.lanczos.size, 0.8 * self.enough
        (by_sum, by_squares), (error, slack) = self._left(), self._least_mu()
        left = min(
            max(by_sum + error - last, 0.0) / last if error < last else np.inf,
            max(by_squares + slack**2 - last**2, 0.0) / last**2 if slack < last else np.inf,
        )
        if self.operator.dear and len(self._seen) > 1 and self._columns_until(last) > EXPLORED:
            return False  # random columns may prove the same
        # where a column is expensive, the proof may cost as much as the vectors did, but not several times that
        return size + 3.0 * left <= min(self.lanczos.limit, 2 * size + (400 if self.n < WIDE else 100))

    def _trace_error(self) -> float:
        """The trace form is of the semidefinite matrix nearby: each of m + 2 quantities differs by ``indefinite``."""
        operator = self.operator
        rounding = 8.0 * rounding_factor(self.n) * UNIT * operator.trace
        return rounding + (self.lanczos.size + 4.0) * operator.indefinite

    def _certified_by_traces(self) -> Certificate:
        operator, m = self.operator, self.lanczos.size
        ritz = self.lanczos.ritz_block(self.theta, self.Y)
        matrix = MatrixInfo((operator.trace, self._trace_error()), operator.norm)
        return ritz_certificate(ritz, min(self.c + 1, m), matrix, deterministic_bound(ritz, matrix))

    @property
    def _may_form(self) -> bool:
        return self.operator.form is not None and self.n <= FORMED

    def _certified_by_complement(self) -> Certificate | None:
        lanczos = self.lanczos
        ritz = lanczos.ritz_block(self.theta, self.Y)
        last = self.enough
        if self._may_form:
            bound = lanczos.formed_bound(0.8 * last)
        else:
            bound = lanczos.explored_bound(last, failure_of_attempt(self.target.failure, self.explorations))
            if bound is NO_BOUND:
                return None
            self.explorations += 1
            bound = replace(bound, failure_probability=self.target.failure)
        return ritz_certificate(ritz, min(self.c + 1, lanczos.size), outside=bound)

    def _only_rounding(self, certificate: Certificate) -> bool:
        """Whether no bound on the other eigenvalues would make the intervals narrow."""
        wide = 2.0 * certificate.rounding > self.target.tol * self.theta[0]
        return wide or not self.enough > self.operator.indefinite

    def _narrow(self, certificate: Certificate) -> bool:
        return self._width(certificate) <= self.target.tol * self.theta[0]

    def _width(self, certificate: Certificate) -> float:
        """Of the widest of the intervals that are wanted."""
        ends = certificate.eigenvalue_bounds[: self.c]
        return float(np.ptp(ends, axis=1).max()) if len(ends) >= self.c else np.inf


def _above(theta: np.ndarray, squares: np.ndarray, mu: float) -> np.ndarray:
    """By how much the largest eigenvalues of [[theta, r], [r, mu]] lie above each theta, r^2 the ``squares``."""
    half = 0.5 * (theta - mu)
    root = np.hypot(half, np.sqrt(squares))
    return np.where(half > 0, squares / np.maximum(half + root, 1e-300), root - half)
