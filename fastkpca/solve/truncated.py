"""The search where few kernel values are not near zero: on a truncated matrix of these (`task.TruncatedMatrix`).

A product with it takes little time, so blocks are narrow and steps are many: a polynomial of degree 30 of few columns
brings more than one of degree 7 of many. The space is restarted often, as a long basis would cost more than products.
It ends where a gap shows, behind which a filter (``filtered``) has proved that nothing was missed.

Without it eight narrow Gaussians of up to 30 components took 9 times as long (median), two of 50 components a third
(benchmarks/speed/special_cases.py, random_set.py).
"""

from __future__ import annotations

import numpy as np

from ..base.protocol import Cost
from ..base.tall import without_means
from ..products.implicit import KernelMatrix, TruncatedMatrix
from ..products.rates import RATE
from .basis import Basis, Space
from .certifier import Proof
from .complement import failure_of_attempt
from .costs import NARROW_COLUMNS, BudgetExceededError, Expenses, check_seconds, step_seconds
from .eigen import WIDTH_GOAL, ConvergenceMonitor, grow
from .filtered import STEPS_FACTOR, Aim, cheapest_aim, filtered_beyond
from .operators import Operator
from .proofs import Filter, FilteredSearch
from .task import SolverBudget, SolverTarget

KEPT_BLOCKS, ADDED_BLOCKS = 2, 6
"""Vectors beyond c that a restart keeps, and columns that are added to them, both in blocks."""
EXPECTED_PRODUCTS = 45.0
"""Products with the truncated matrix, of a search and a filter. A quarter takes .9 to 17 times as long, four times as
many 3.3 times (``benchmarks/speed/constants.py``)."""


class TruncatedOperator(Operator):
    """H B H."""

    centred, certain = True, False

    def __init__(self, truncated: TruncatedMatrix, n_threads: int):
        self.truncated, self.n, self.n_threads = truncated, truncated.product.shape[0], n_threads

    def multiply(self, X: np.ndarray) -> np.ndarray:
        return without_means(self.truncated.product.matmat(X), self.n_threads)

    def noise(self, theta: np.ndarray) -> float:
        return 1e-12 * float(theta[0])


class GapSearch(ConvergenceMonitor):
    """True if a gap behind some Ritz vectors has been ``found``; each costs ``column_cost`` in products."""

    found: Aim | None = None
    steps = bound = np.inf
    """Predicted steps in all, from the Ritz values so far; and the bound on the eigenvalues behind the gap."""
    filters = 0

    def __init__(
        self,
        A: TruncatedOperator,
        space: Space,
        target: SolverTarget,
        expenses: Expenses,
        column_cost: float,
        failure: float,
    ):
        super().__init__(A, space, target, expenses)
        self.truncated, self.column_cost, self.failure = A.truncated, column_cost, failure

    def _is_enough(self) -> bool:
        theta, squares, before = self.ritz.theta, np.maximum(self.ritz.squares, 0.0), self.steps
        width, cost = WIDTH_GOAL * self.target.tol * float(theta[0]), self.column_cost
        n, failure = self.A.n, failure_of_attempt(self.failure, self.filters)
        self.found = cheapest_aim(theta, squares, self.c, width, n=n, distance=0.0, failure=failure, column_cost=cost)
        if self.found is not None:
            self.steps = self.expenses.passes + self.found.steps + cost * self.found.columns
        # more vectors may leave less to the filter
        enough = self.found is not None and self.steps >= before
        return enough or self.expenses.over or self.basis.free_columns == 0

    def missed(self) -> np.ndarray | None:
        """Columns in which an eigenvalue stands out that the search has missed; None where a filter sees none.

        A narrow block misses some of many isolated groups of rows. The search goes on with these columns.
        """
        aim, basis = self.found, self.basis
        assert aim is not None
        failure = failure_of_attempt(self.failure, self.filters)
        low = aim.top - aim.wanted  # what follows needs a truncated matrix that is nearer than that
        self.bound, columns, steps = filtered_beyond(self.truncated, basis, self.ritz, aim, low, failure)
        self.filters += 1
        self.expenses.seconds += steps * self.expenses.budget.pass_seconds
        if self.bound <= aim.wanted or self.expenses.over:
            return None
        basis.restart(self.ritz, np.arange(min(self.space.kept, basis.size)))
        self.n_checks, self.found, self.steps = 0, None, np.inf
        return columns


def truncated_seconds(cost: Cost, n: int, c: int) -> float:
    """Predicted, of the search and the proof, with the truncated matrix that an offer of this cost makes."""
    step = n * cost.row_flops / RATE.features + step_seconds(
        n, c + (KEPT_BLOCKS + 0.5 * ADDED_BLOCKS) * NARROW_COLUMNS, NARROW_COLUMNS
    )
    return cost.setup_flops / RATE.features + EXPECTED_PRODUCTS * (step + check_seconds(c, certified=False))


def truncated_start(
    matrix: KernelMatrix,
    target: SolverTarget,
    expenses: Expenses,
    column_seconds: float,
    failure: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, list[Proof]] | None:
    """Vectors (n, p) for the first float64 pass, all Ritz values, and proofs that bound the complement of the vectors.

    None where no gap has shown, or one that is too narrow for a filter. ``column_seconds``: predicted seconds of each
    vector in a float64 pass; ``failure``: probability of failure of all filters.

    Raises
    ------
    BudgetExceededError
        The search has cost as much as the budget.
    """
    truncated, c = matrix.truncated, target.c
    assert truncated is not None
    A = TruncatedOperator(truncated, matrix.n_threads)
    kept = c + KEPT_BLOCKS * NARROW_COLUMNS
    columns = min(kept + ADDED_BLOCKS * NARROW_COLUMNS, A.n - 1)
    basis = Basis(A.n, rng, centred=True, reserve=columns, n_threads=A.n_threads)
    space = Space(basis, min(NARROW_COLUMNS, A.n - 1), NARROW_COLUMNS, columns, kept)
    left = expenses.budget.seconds - expenses.seconds
    search_expenses = Expenses(SolverBudget(int(STEPS_FACTOR * EXPECTED_PRODUCTS), None, truncated.seconds, left), None)
    monitor = GapSearch(A, space, target, search_expenses, column_seconds / truncated.seconds, failure)
    X: np.ndarray | None = rng.standard_normal((A.n, space.block))
    while X is not None:
        try:
            grow(A, X, space, monitor, search_expenses)
        except BudgetExceededError as error:  # passes are those over the kernel values
            raise BudgetExceededError(expenses.passes, expenses.seconds + error.seconds) from None
        X = None if monitor.found is None else monitor.missed()
    expenses.seconds += search_expenses.seconds
    expenses.log("%d products with the truncated matrix, %d filters", search_expenses.passes, monitor.filters)
    if monitor.found is None:
        return None
    theta, squares, k = monitor.ritz.theta, monitor.ritz.squares, monitor.found.columns
    top, vectors = float(theta[k] + np.sqrt(max(squares[k], 0.0))), basis.vectors(monitor.ritz.Y[:, :k])
    last = failure_of_attempt(failure, monitor.filters - 1)  # that is left to others
    proofs = [FilteredSearch(truncated, vectors, monitor.bound, failure - last), Filter(truncated, top, last)]
    return vectors, theta, proofs
