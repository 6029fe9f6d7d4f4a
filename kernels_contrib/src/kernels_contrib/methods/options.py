"""Checks of what several methods are asked for."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

__all__ = ["accuracy", "regularization_strength"]


def regularization_strength(value: object, reason: str = "", *, zero: bool = False) -> float:
    """A method's ``regularization``: positive, or zero where ``zero``; ``reason`` says what it is needed for."""
    wanted = "zero or a positive, finite number" if zero else "a positive, finite number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"regularization is {value!r}; give {wanted}{reason}")
    number = float(value)
    if not (0.0 < number < math.inf or (zero and number == 0.0)):
        raise ValueError(f"regularization is {value!r}; give {wanted}{reason}")
    return number


def accuracy(value: object, name: str) -> float:
    """A relative accuracy of a method: between 0 and 1."""
    wanted = "a number between 0 and 1, as in 1e-6"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} is {value!r}; give {wanted}")
    number = float(value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} is {value!r}; give {wanted}")
    return number
