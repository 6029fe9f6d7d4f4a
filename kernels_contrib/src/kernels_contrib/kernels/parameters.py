"""Checks of parameters: each returns a plain Python number or says what is wrong with the value."""

from __future__ import annotations

import math

from fastkpca.kernels import Gaussian, KernelParameterError, Summary
from fastkpca.methods import as_float

__all__ = ["FARTHEST", "by_median", "length", "positive"]

LEAST_LENGTH, LARGEST_LENGTH = 1e-140, 1e140
"""As the sigma of the Gaussian: squares stay within float64."""
FARTHEST = 1e100
"""In units of the length: rows farther out have exact products only."""


def positive(
    kernel: str, name: str, value: object, *, least: float = 0.0, most: float = math.inf, infinite: bool = False
) -> float:
    """A positive number from ``least`` to ``most``; finite, or else ``infinite`` says that infinity has a meaning."""
    number = as_float(value)
    if number is None or not number > 0.0 or (math.isinf(number) and not infinite):
        raise KernelParameterError(f"{kernel}: {name} is {value!r}; give a positive, finite number")
    if number < least:
        raise KernelParameterError(f"{kernel}: {name} is {value!r}; give a number of at least {least:g}")
    if number > most:
        raise KernelParameterError(f"{kernel}: {name} is {value!r}; give a number of at most {most:g}")
    return number


def length(kernel: str, name: str, value: object) -> float:
    """A positive number in the units of X, whose square is within float64."""
    number = positive(kernel, name, value)
    if not LEAST_LENGTH <= number <= LARGEST_LENGTH:
        raise KernelParameterError(
            f"{kernel}: {name} is {value!r}, and its square leaves the range of float64; give a number from "
            f"{LEAST_LENGTH:g} to {LARGEST_LENGTH:g}, and X in the same units"
        )
    return number


def by_median(data: Summary) -> float:
    """The length that the Gaussian takes as its sigma where none is given: median distance / sqrt(2)."""
    resolved = Gaussian().resolve(data)
    return float(resolved.get_parameters()["sigma"])
