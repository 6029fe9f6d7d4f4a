"""Derivatives by central differences, for kernels and feature maps that do not know their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .rounding import EPS

DIFFERENCE_STEP = float(np.cbrt(EPS))
"""Step of a central difference over the length on which the function changes: eps^(1/3)."""


def central_difference(
    function: Callable[[np.ndarray], np.ndarray], X: np.ndarray, column: int, steps: np.ndarray
) -> np.ndarray:
    """(f(X + step) - f(X - step)) / (2 step), moving one column: f gives an array with a first axis for the rows of X.

    Parameters
    ----------
    function : callable
    X : ndarray (n, d)
    column : int
    steps : ndarray (n,)
    """
    up, down = X.copy(), X.copy()
    up[:, column] += steps
    down[:, column] -= steps
    width = up[:, column] - down[:, column]  # the step after rounding
    change = function(up) - function(down)
    return change / np.where(width > 0.0, width, 1.0).reshape(-1, *[1] * (change.ndim - 1))
