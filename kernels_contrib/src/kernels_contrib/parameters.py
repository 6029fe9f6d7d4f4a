"""Checks of parameters: each returns a plain Python number or says what is wrong with what it was given."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from fastkpca.kernels import KernelParameterError

__all__ = ["positive", "regularization_strength"]


def positive(kernel: str, name: str, value: object, *, least: float = 0.0, infinite: bool = False) -> float:
    """A positive number, of at least ``least``; finite, or else ``infinite`` says that infinity has a meaning."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or not 0.0 < float(value) <= math.inf:
        raise KernelParameterError(f"{kernel}: {name} is {value!r}; give a positive, finite number")
    number = float(value)
    if math.isinf(number) and not infinite:
        raise KernelParameterError(f"{kernel}: {name} is {value!r}; give a positive, finite number")
    if number < least:
        raise KernelParameterError(f"{kernel}: {name} is {value!r}; give a number of at least {least:g}")
    return number


def regularization_strength(value: object, reason: str = "", *, zero: bool = False) -> float:
    """A method's ``regularization``: positive, or zero where ``zero``; ``reason`` says what it is needed for."""
    wanted = "zero or a positive, finite number" if zero else "a positive, finite number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"regularization is {value!r}; give {wanted}{reason}")
    number = float(value)
    if not (0.0 < number < math.inf or (zero and number == 0.0)):
        raise ValueError(f"regularization is {value!r}; give {wanted}{reason}")
    return number
