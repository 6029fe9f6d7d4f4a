"""The search where few kernel values are not near zero: on a coarse matrix of these (`task.NearMatrix`).

A product with it takes little time, so blocks are narrow and steps are many: a polynomial of degree 30 of few columns
brings more than one of degree 7 of many. The space is restarted often, as a long basis would cost more than products.
It ends where a gap shows, behind which a filter (``filtered``) is to prove that nothing was missed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..base.protocol import Cost
from ..base.rounding import UNIT, rounding_factor
from ..products.rates import RATE
from .basis import Basis, Space, without_means
from .costs import Expenses, TooDearError, look_seconds, step_seconds
from .eigen import Judge, grow
from .filtered import SLACK, Aim, cheapest_aim, filtered, projection, random_columns
from .operators import Operator
from .task import KernelMatrix, NearMatrix, SolverBudget, SolverTarget

__all__ = ["NearStart", "near_seconds", "near_start"]

BLOCK = 6
"""Columns of a block: more of them have their price in the basis."""
KEPT, NEW = 2, 6
"""Vectors beyond c that a restart keeps, and columns that are added to them, both in blocks."""
MOST_STEPS, FEW = 150, 8.0
"""Of the search; and of a filter that is not worth more of them."""
EXPECTED = 45.0
"""Products with the coarse matrix, of a search and a filter."""
LOWEST = 0.01
"""Below zero, of the largest eigenvalue: about where those of the coarse matrix begin."""
GOAL = 0.3
"""Width over tol that the exact pass is to reach."""


class NearStart(NamedTuple):
    """Where exact passes begin.

    Attributes
    ----------
    vectors : ndarray (n, p)
        Approximate eigenvectors.
    theta : ndarray
        All Ritz values, on the coarse matrix.
    top : float
        About the largest eigenvalue of the coarse matrix beyond these vectors.
    """

    vectors: np.ndarray
    theta: np.ndarray
    top: float


class NearOperator(Operator):
    """H B H."""

    centred, certain = True, False

    def __init__(self, near: NearMatrix, n_threads: int):
        self.near, self.n, self.n_threads = near, near.product.shape[0], n_threads

    def multiply(self, X: np.ndarray) -> np.ndarray:
        return without_means(self.near.product.matmat(X), self.n_threads)

    def expected_sums(self) -> tuple[float | None, float | None]:
        return None, None

    def noise(self, theta: np.ndarray) -> float:
        return 1e-12 * float(theta[0])


class BehindGap(Judge):
    """Whether a gap behind some Ritz vectors has been ``found``; each costs ``column_price`` in products."""

    found: Aim | None = None
    steps = np.inf
    """That the whole takes, as far as was seen."""

    def __init__(self, A: NearOperator, space: Space, target: SolverTarget, expenses: Expenses, column_price: float):
        super().__init__(A, space, target, expenses)
        self.column_price = column_price

    def _is_enough(self) -> bool:
        theta, squares, tol = self.ritz.theta, np.maximum(self.ritz.squares, 0.0), self.target.tol
        before, self.found = (
            self.steps,
            cheapest_aim(
                theta,
                squares,
                self.c,
                GOAL * tol * float(theta[0]),
                n=self.A.n,
                distance=0.0,
                failure=self.target.failure,
                column_price=self.column_price,
            ),
        )
        if self.found is not None:
            self.steps = self.expenses.passes + self.found.steps + self.column_price * self.found.columns
        # more vectors may leave less to the filter
        enough = self.found is not None and (self.found.steps <= FEW or self.steps >= before)
        return enough or self.expenses.over or self.basis.room == 0

    def missed(self, failure: float) -> np.ndarray | None:
        """Columns in which an eigenvalue stands out that the search has missed; None where a filter sees none.

        The same before the exact pass as the proof after it: of many isolated groups of rows, a narrow block misses
        some. The search goes on with these columns.
        """
        A, aim, basis, largest = self.A, self.found, self.basis, float(self.ritz.theta[0])
        assert aim is not None and isinstance(A, NearOperator)
        project = projection(basis.vectors(self.ritz.Y[:, : aim.columns]), A.n_threads)
        found = filtered(
            lambda Z: project(A.near.product.matmat(Z)),
            project(random_columns(A.n, basis.rng)),
            (-LOWEST * largest, aim.top),
            wanted=aim.wanted,
            error=rounding_factor(A.n) * UNIT * largest,
            failure=failure,
            most_steps=int(SLACK * aim.steps) + 1,
        )
        self.expenses.seconds += found.steps * self.expenses.budget.pass_seconds
        if found.bound <= aim.wanted or self.expenses.over:
            return None
        basis.restart(self.ritz, np.arange(min(self.space.kept, basis.size)))
        self.looks, self.found, self.steps = 0, None, np.inf
        return found.columns


def near_seconds(cost: Cost, n: int, c: int) -> float:
    """Predicted, of the search and the proof, with the coarse matrix that an offer of this cost makes."""
    step = n * cost.row_flops / RATE.features + step_seconds(n, c + (KEPT + 0.5 * NEW) * BLOCK, BLOCK)
    return cost.setup_flops / RATE.features + EXPECTED * (step + look_seconds(c, certified=False))


def near_start(
    matrix: KernelMatrix, target: SolverTarget, expenses: Expenses, column_seconds: float, rng: np.random.Generator
) -> NearStart | None:
    """Vectors for the first exact pass; ``column_seconds``: of each of them in it. None where no gap has shown, or
    one that is too narrow for a filter.

    Raises
    ------
    TooDearError
        The search has cost as much as the budget.
    """
    near, c = matrix.near, target.c
    assert near is not None
    A = NearOperator(near, matrix.n_threads)
    kept = c + KEPT * BLOCK
    columns = min(kept + NEW * BLOCK, A.n - 1)
    basis = Basis(A.n, rng, centred=True, reserve=columns, n_threads=A.n_threads)
    space = Space(basis, min(BLOCK, A.n - 1), BLOCK, columns, kept)
    left = expenses.budget.seconds - expenses.seconds
    spent = Expenses(SolverBudget(MOST_STEPS, None, near.seconds, left), None)
    judge = BehindGap(A, space, target, spent, column_seconds / near.seconds)
    X: np.ndarray | None = rng.standard_normal((A.n, space.block))
    while X is not None:
        try:
            grow(A, basis.orthonormal(X), space, judge, spent)
        except TooDearError:
            raise TooDearError(expenses.passes) from None  # passes are those over the kernel values
        X = None if judge.found is None else judge.missed(target.failure)
    expenses.seconds += spent.seconds
    if judge.found is None:
        return None
    theta, squares, k = judge.ritz.theta, judge.ritz.squares, judge.found.columns
    top = float(theta[k] + np.sqrt(max(squares[k], 0.0)))
    return NearStart(basis.vectors(judge.ritz.Y[:, :k]), theta, top)
