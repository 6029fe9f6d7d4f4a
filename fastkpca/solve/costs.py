"""Columns, bytes and seconds of block Krylov: predicted by the plan, and kept by the solver."""

from __future__ import annotations

import numpy as np

from ..base.parallel import Progress
from ..products.exact import band_rows
from ..products.rates import RATE
from .task import SolverBudget

__all__ = [
    "HELD_GUARDS",
    "Expenses",
    "TooDearError",
    "basis_bytes",
    "column_limit",
    "default_block_size",
    "factorising_seconds",
    "leading_pairs_seconds",
    "least_columns",
    "near_seconds",
    "rest_bytes",
    "ritz_seconds",
    "sample_bytes",
    "sampling_seconds",
    "saved_seconds",
    "search_seconds",
    "widest_block",
]

NEAR_RATE = 0.4e9
"""Near values that are multiplied with four columns in a second."""
PASS_SECONDS = 1e-3
"""Of a pass over few values: calls, and small matrices."""
WIDEST = 128
"""Columns of a block at most."""
EVALUATION_COLUMNS = 18
"""What evaluating the kernel values costs, in columns of a product with them."""


HELD_GUARDS = 8
"""Columns beyond c of a block, where no values are evaluated."""


class TooDearError(Exception):
    """The run has stopped, because another method is now cheaper; ``passes`` is the number of passes made."""

    def __init__(self, passes: int):
        super().__init__(passes)
        self.passes = passes


class Expenses:
    """The costs of a run so far: passes, and predicted seconds."""

    def __init__(self, budget: SolverBudget, progress: Progress | None):
        self.budget, self._progress = budget, progress
        self.passes = self.search_passes = self.near_passes = 0
        self.seconds = 0.0

    def count_pass(self, *, search: bool) -> None:
        self.passes += 1
        self.search_passes += search
        self.seconds += (0.5 if search else 1.0) * self.budget.pass_seconds
        if self._progress is not None:
            self._progress("krylov", self.passes, self.budget.passes)

    def count_near(self, products: int, seconds: float) -> None:
        """Products with near values, which are kept: the budget has no limit for these but their costs."""
        self.near_passes += products
        self.seconds += seconds

    def check(self, later_seconds: list[float]) -> None:
        """Raise TooDearError where the run with its next pass, or the later passes alone, cost more than the budget.

        ``later_seconds``: of the algebra after each pass that is certain to be made.
        """
        ahead = [self.budget.pass_seconds + seconds for seconds in later_seconds]
        if self.seconds + ahead[0] > self.budget.seconds or sum(ahead) > self.budget.seconds:
            raise TooDearError(self.passes)


def default_block_size(n: int, c: int, *, held: bool = False) -> int:
    """c and some guard columns, which speed up convergence of the last wanted vectors.

    Guards pay until they cost about as much as evaluating the kernel values does: on digits, c = 10, blocks of 20, 28
    and 40 err by 8e-6, 4e-7 and 3e-8 of lambda_1 after four passes. Few pay where the values are ``held`` in float64.
    """
    guards = HELD_GUARDS if held else min(EVALUATION_COLUMNS, max(8, 2 * c))
    return max(1, min(n - 1, c + guards))


def ritz_seconds(n: int, columns: float) -> float:
    """Predicted seconds of Rayleigh-Ritz and the certificate on so many columns."""
    return 8.0 * n * columns**2 / RATE.multiplications + 40.0 * columns**3 / RATE.eigen


def leading_pairs_seconds(n: int, columns: int, block: int) -> float:
    """Predicted seconds of the algebra of one pass where only a block of leading Ritz pairs is formed."""
    return 12.0 * n * columns * block / RATE.multiplications + 4.0 * float(columns) ** 3 / RATE.eigen


def search_seconds(n: int, columns: int, block: int) -> float:
    """Predicted seconds of the algebra of one pass in float32."""
    return 6.0 * n * columns * block / RATE.multiplications + 4.0 * float(columns) ** 3 / RATE.eigen


def saved_seconds(n: int, columns: int, block: int) -> float:
    """Predicted gain of a pass over values that are held in float32, where it saves so many columns in float64."""
    return 2.0 * float(n) ** 2 * (columns - 0.6 * block) / RATE.products - PASS_SECONDS


def near_seconds(values: float, products: float) -> float:
    """Predicted seconds of products of four columns with so many near values."""
    return values * products / NEAR_RATE


def factorising_seconds(n: int, columns: int, pass_seconds: float) -> float:
    """Predicted seconds of forming the matrix beyond a basis, and of its factorisation in float32."""
    return pass_seconds + 2.0 * float(n) ** 2 * columns / RATE.multiplications + _factor_seconds(n)


def sampling_seconds(draws: int, columns: int) -> float:
    """Predicted seconds of a bound from so many rows, for a basis of so many columns."""
    entry = 1.0 / RATE.blocks + 4.0 * columns / RATE.multiplications
    return float(draws) ** 2 * entry + _factor_seconds(draws)


def _factor_seconds(n: int) -> float:
    return float(n) ** 3 / (3.0 * RATE.factorisations)


def sample_bytes(n: int, columns: int, draws: int) -> float:
    """Memory of such a bound: twice the matrix in float32, and what it is formed from."""
    return 10.0 * float(draws) ** 2 + 32.0 * (n + draws) * (columns + 1)


def rest_bytes(n: int, columns: int) -> float:
    """Memory of the matrix beyond a basis in float32, and of what it is formed from."""
    return 4.0 * float(n) ** 2 + 32.0 * n * (columns + 1)


def basis_bytes(n: int, columns: int, block: int) -> float:
    """Memory of a run whose space has so many columns.

    Of size n x columns: the basis, its images and the residuals (in the first pass: the columns that are multiplied,
    and their product). Besides there are a few blocks, the bands of a product's tasks, and a dozen matrices of inner
    products.
    """
    return _column_bytes(n) * columns + 32.0 * n * block + 96.0 * columns**2


def _column_bytes(n: int) -> float:
    return 24.0 * n + 80.0 * min(n, band_rows(n, 1))


def least_columns(n: int, c: int, block: int) -> int:
    """The fewest columns with which a run is possible: those that a restart keeps, and two blocks."""
    return min(c + 2 * block, n - 1)


def widest_block(n: int, c: int, block: int, memory: float | None) -> int:
    """Columns to which a block may grow while the eigenvalues do not yet reach a fraction of the trace."""
    widest = max(block, min(WIDEST, n - 1))
    while memory is not None and basis_bytes(n, least_columns(n, c, widest), widest) > memory:
        widest = max(block, widest // 2)
        if widest == block:
            break
    return widest


def column_limit(n: int, c: int, block: int, memory: float | None) -> int:
    """Columns of the basis that memory allows."""
    if memory is None:
        # with more columns, Rayleigh-Ritz on the whole space costs more than a restart
        return min(n - 1, max(640, c + 16 * block))
    least = least_columns(n, c, block)
    if basis_bytes(n, least, block) > memory:
        raise ValueError(
            f"memory_limit of {memory:.3g} bytes is too small for a basis; c = {c} in blocks of {block} needs "
            f"{least} columns, which are {basis_bytes(n, least, block):.3g} bytes"
        )
    room = memory - 32.0 * n * block
    # 96 m^2 + a m = room
    a = _column_bytes(n)
    columns = int(2.0 * room / (a + np.sqrt(a * a + 384.0 * room)))
    return max(least, min(columns, n - 1))
