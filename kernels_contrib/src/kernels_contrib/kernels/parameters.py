"""Code shared by several kernels: default lengths, and rows of a sample."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from fastkpca.kernels import Gaussian, Kernel, Summary
from fastkpca.kernels.parameters import length, resolved


def evenly(sample: np.ndarray, most: int = 1000) -> np.ndarray:
    """Rows of a sample, evenly spaced and limited in number: it is random, but in the order of the rows."""
    return sample[np.linspace(0, len(sample) - 1, min(most, len(sample))).astype(np.intp)]


def by_median(data: Summary) -> float:
    """The length that the Gaussian takes as its sigma where none is given: median distance / sqrt(2)."""
    resolved = Gaussian().resolve(data)
    return float(resolved.get_parameters()["sigma"])


class Correlation(Kernel):
    """A kernel with k(x, x) = 1, which no value exceeds."""

    positive_semidefinite = True

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.ones(len(X))

    def value_bound(self, data: Summary) -> float:
        return 1.0


class OfDistance(Correlation):
    """Such a kernel of the distance in units of ``length_scale``."""

    known_as: ClassVar[str]
    width_parameter = "length_scale"
    length_scale: float | None

    def check(self) -> None:
        if self.length_scale is not None:
            self.__dict__["length_scale"] = length(self.known_as, "length_scale", self.length_scale)

    def resolve(self, data: Summary) -> Self:
        if self.length_scale is not None:
            return self
        return type(self)(**(self.get_parameters() | {"length_scale": self.default_length(data)}))

    def default_length(self, data: Summary) -> float:
        """Default length: that of the Gaussian."""
        return by_median(data)

    @property
    def _length(self) -> float:
        return resolved(self.known_as, "length_scale", self.length_scale)
