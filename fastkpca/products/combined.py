"""Products with sums and scalings of kernel matrices, made of the products of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from ..base.protocol import Summation
from ..base.rounding import UNIT


class _OfParts(Summation):
    parts: tuple[Summation, ...]

    def __init__(self, parts: Sequence[Summation]):
        self.parts = tuple(parts)
        self.symmetric = all(part.symmetric for part in self.parts)
        self.shape = self.parts[0].shape

    @property
    def n_threads(self) -> int:
        return max(part.n_threads for part in self.parts)

    @n_threads.setter
    def n_threads(self, value: int) -> None:
        for part in self.parts:
            part.n_threads = value


class SumSummation(_OfParts):
    """(K_1 + K_2 + ...) U; error bounds add, and ``rounding`` on top."""

    def __init__(self, parts: Sequence[Summation], rounding: float = 0.0):
        super().__init__(parts)
        self.error_bound = (sum(part.error_bound for part in self.parts) + rounding) * (1 + len(self.parts) * 2.0**-52)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return reduce(add, (part.matmat(U) for part in self.parts))

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return reduce(add, (part.rmatmat(U) for part in self.parts))


class ScaledSummation(_OfParts):
    """factor K U."""

    def __init__(self, part: Summation, factor: float):
        super().__init__([part])
        self.factor = factor
        self.error_bound = factor * part.error_bound * (1 + 4 * UNIT)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self.factor * self.parts[0].matmat(U)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self.factor * self.parts[0].rmatmat(U)
