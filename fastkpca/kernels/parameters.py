"""Checks of kernel parameters, for authors too: each returns the plain Python number or says what is wrong with it.

``kernel`` is the kernel, or its name, for the text of the error.
"""

from __future__ import annotations

import reprlib
from math import inf, isfinite
from typing import Any

from ..base.checks import as_float
from ..base.protocol import MAX_ABS_VALUE, MIN_ABS_VALUE
from ..errors import KernelParameterError

__all__ = ["finite_number", "length", "positive_number", "resolved", "whole_number"]


def _name(kernel: object) -> str:
    return kernel if isinstance(kernel, str) else type(kernel).__name__.lower()


def finite_number(kernel: object, name: str, value: Any, needed: str = "a number") -> float:
    number = as_float(value)
    if number is None:
        raise KernelParameterError(f"{_name(kernel)}: {name} is {reprlib.repr(value)}; give {needed}")
    if not isfinite(number):
        raise KernelParameterError(f"{_name(kernel)}: {name} is {reprlib.repr(value)}; give a finite number")
    return number


def positive_number(
    kernel: object, name: str, value: Any, needed: str = "a number", *, least: float = 0.0, most: float = inf
) -> float:
    number = finite_number(kernel, name, value, needed)
    if number <= 0:
        raise KernelParameterError(f"{_name(kernel)}: {name} is {value!r}; give a positive number")
    if not least <= number <= most:
        raise KernelParameterError(f"{_name(kernel)}: {name} is {value!r}; give a number from {least:g} to {most:g}")
    return number


def length(kernel: object, name: str, value: Any) -> float:
    """A positive number in the units of X, whose square is within float64."""
    number = positive_number(kernel, name, value, "a number, or a list of one for each column")
    if not MIN_ABS_VALUE <= number <= MAX_ABS_VALUE:
        raise KernelParameterError(
            f"{_name(kernel)}: {name} is {value!r}, and its square leaves the range of float64; give a number from "
            f"{MIN_ABS_VALUE:g} to {MAX_ABS_VALUE:g}, and X in the same units"
        )
    return number


def resolved(kernel: object, name: str, value: float | None) -> float:
    """A parameter that ``resolve`` finds where none is given."""
    if value is None:
        raise KernelParameterError(f"{_name(kernel)}: {name} is not set; give it, or resolve the kernel on data first")
    return value


def whole_number(kernel: object, name: str, value: Any, *, least: int, most: int) -> int:
    number = finite_number(kernel, name, value)
    if number != int(number) or not least <= number <= most:
        raise KernelParameterError(f"{_name(kernel)}: {name} is {value!r}; give a whole number from {least} to {most}")
    return int(number)
