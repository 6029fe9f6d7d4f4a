"""Seconds and bytes of the eigensolver: predicted by the plan, and kept by a run."""

from __future__ import annotations

import logging

import numpy as np

from ..base.parallel import Progress
from ..products.exact import band_rows
from ..products.rates import RATE
from .task import SolverBudget

_logger = logging.getLogger("fastkpca")

MAX_BLOCK_COLUMNS = 128
"""Columns of a block at most."""
EVALUATION_COLUMNS = 18
"""Cost of evaluating the kernel values, in columns of a product with them. Flat: 4 and 72 take .98 and 1.02 times
as long (median of the fits that change; ``benchmarks/speed/constants.py``)."""
GUARD_COLUMNS = 8
"""Columns of a block beyond c where no values are evaluated."""
NARROW_COLUMNS = 6
"""Columns of a block where a product takes a fraction of a millisecond: more cost time in the basis. One
column takes 11 times as long, 24 columns 1.6 times (median of 8 narrow fits; ``benchmarks/speed/constants.py``)."""
MOST_COLUMNS = 640
"""Columns of a basis beyond which Rayleigh-Ritz costs more than a restart, of few components. Flat: 160 and 2560 take
.9 and 1.04 times as long (``benchmarks/speed/constants.py``)."""


class BudgetExceededError(Exception):
    """A run has stopped, because it would cost more than it may; ``passes`` and predicted ``seconds`` so far."""

    def __init__(self, passes: int = 0, seconds: float = 0.0):
        super().__init__(passes, seconds)
        self.passes, self.seconds = passes, seconds


PATIENCE = 0.25
"""Fraction of the budget from which on the forecast has to fall; a quarter of it takes 2.4 times as long
(median of three fits), from 1 on nothing changes (``benchmarks/speed/constants.py``, 50 fits)."""


class Expenses:
    """The costs of a run so far: passes, and predicted seconds.

    ``stage``: name of the run for its progress and for the log, "" where passes take too little time for either.
    ``has_pace``: the widths of intervals fall from the first passes on, so that they forecast the passes to come. With
    blocks of few columns they do not fall at first, and the budget alone ends a run.
    """

    def __init__(self, budget: SolverBudget, progress: Progress | None, *, stage: str = "", has_pace: bool = True):
        self.budget, self._progress, self.stage, self.has_pace = budget, progress, stage, has_pace
        self.passes = self.search_passes = 0
        self.seconds = 0.0
        self._forecast = 0.0, np.inf
        """Seconds spent at the last forecast, and seconds that it expected from then on."""

    def count_pass(self, *, search: bool, times: float = 1.0) -> None:
        """``times``: what it costs, over ``pass_seconds``."""
        self.passes += 1
        self.search_passes += search
        self.seconds += times * self.budget.pass_seconds
        if self._progress is not None:
            self._progress(self.stage, self.passes, self.budget.passes)
        self.log("pass %d of at most %d, in %s", self.passes, self.budget.passes, "float32" if search else "float64")

    def log(self, line: str, *values: object) -> None:
        """Write a line to the log, below that of a step of the fit, where the run has a name."""
        if self.stage:
            _logger.info(f"    {line}", *values)

    def check(self, later_seconds: float) -> None:
        """Raise BudgetExceededError where the run, or what is certain to come alone, costs more than the budget."""
        if self.seconds + later_seconds > self.budget.seconds:
            raise BudgetExceededError(self.passes, self.seconds)

    def check_forecast(self, later_seconds: float) -> None:
        """Raise BudgetExceededError where the forecast exceeds the budget, or does not fall as seconds are spent.

        From ``PATIENCE`` of the budget on, it has to fall by half of what was spent since the last one: of a flat
        spectrum the end is always a few passes away.
        """
        if not self.has_pace:
            return
        spent, later = self._forecast
        falls = later - later_seconds >= 0.5 * (self.seconds - spent)
        self._forecast = self.seconds, later_seconds
        self.check(later_seconds)
        if self.seconds > PATIENCE * self.budget.seconds and not falls:
            raise BudgetExceededError(self.passes, self.seconds)

    @property
    def seconds_left(self) -> float:
        """Seconds that may follow."""
        return self.budget.seconds - self.seconds

    @property
    def left(self) -> int:
        """Passes that may follow."""
        return self.budget.passes - self.passes

    @property
    def over(self) -> bool:
        """No pass is left."""
        return self.left <= 0


def default_block_size(n: int, c: int, *, held: bool = False) -> int:
    """c and some guard columns, which speed up convergence of the last wanted vectors.

    Guards pay until they cost about as much as evaluating the kernel values does: on digits, c = 10, blocks of 20, 28
    and 40 err by 8e-6, 4e-7 and 3e-8 of lambda_1 after four passes. Few pay where the values are ``held``.
    """
    return max(1, min(n - 1, c + (GUARD_COLUMNS if held else min(EVALUATION_COLUMNS, max(GUARD_COLUMNS, 2 * c)))))


def step_seconds(n: int, columns: float, block: int) -> float:
    """Predicted seconds of making a block orthogonal to ``columns`` columns, twice, and of its inner products."""
    return 8.0 * n * columns * block / RATE.multiplications


def check_seconds(columns: float, *, certified: bool = True) -> float:
    """Predicted seconds of Rayleigh-Ritz on ``columns`` columns, and of one certificate."""
    return RATE.a_pass + 5.0 * columns**3 / RATE.eigen + (certificate_seconds(columns) if certified else 0.0)


def certificate_seconds(columns: float) -> float:
    """Predicted seconds of the eigenvalues of a matrix of twice the order."""
    return 11.0 * columns**3 / RATE.eigen


def factorising_seconds(n: int, columns: int, pass_seconds: float) -> float:
    """Predicted seconds of forming the matrix beyond ``columns`` vectors, and of its factorisation in float32."""
    products = 2.0 * float(n) ** 2 * columns / RATE.multiplications + float(n) ** 2 / RATE.rows
    return pass_seconds + products + float(n) ** 3 / (3.0 * RATE.factorisations)


def rest_bytes(n: int, columns: int) -> float:
    """Memory of the matrix beyond a basis in float32, and of what it is formed from."""
    return 4.0 * float(n) ** 2 + 32.0 * n * (columns + 1)


def basis_bytes(n: int, columns: int, block: int) -> float:
    """Bytes of a run whose space has ``columns`` columns.

    Arrays of n x columns are the basis, and the part of a wide first block's images outside its span. In the first pass
    they are the columns and their product. There are also a few blocks, the bands of a product's tasks, and a dozen
    matrices of inner products.
    """
    return _column_bytes(n) * columns + 32.0 * n * block + 96.0 * columns**2


def _column_bytes(n: int) -> float:
    return 24.0 * n + 80.0 * min(n, band_rows(n, 1))


def least_columns(n: int, c: int, block: int) -> int:
    """The fewest columns with which a run is possible: those that a restart keeps, and two blocks."""
    return min(c + 2 * block, n - 1)


def widest_block(n: int, c: int, block: int, memory: float | None) -> int:
    """Columns to which a block may grow while the eigenvalues do not yet reach a fraction of the trace."""
    widest = max(block, min(MAX_BLOCK_COLUMNS, n - 1))
    while memory is not None and basis_bytes(n, least_columns(n, c, widest), widest) > memory:
        widest = max(block, widest // 2)
        if widest == block:
            break
    return widest


def usual_columns(n: int, c: int, block: int) -> int:
    """Columns in which most runs prove their intervals."""
    return min(n - 1, c + 16 * block)


def column_limit(n: int, c: int, block: int, memory: float | None) -> int:
    """Columns of the basis that memory allows."""
    if memory is None:
        return max(min(n - 1, MOST_COLUMNS), usual_columns(n, c, block))
    least = least_columns(n, c, block)
    if basis_bytes(n, least, block) > memory:
        raise ValueError(
            f"memory_limit of {memory:.3g} bytes is too small for a basis; c = {c} in blocks of {block} needs "
            f"{least} columns, which are {basis_bytes(n, least, block):.3g} bytes"
        )
    free_bytes = memory - 32.0 * n * block
    # solves 96 m^2 + a m = room, the memory left
    a = _column_bytes(n)
    columns = int(2.0 * free_bytes / (a + np.sqrt(a * a + 384.0 * free_bytes)))
    return max(least, min(columns, n - 1))
