"""Rounding: the units of float64 and float32, and how far a sum of rounded terms may be off."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

__all__ = ["EPS", "UNIT", "UNIT32", "factorisation_error", "rounding_factor", "unit_roundoff"]


def unit_roundoff(dtype: Any) -> float:
    """u of a floating type: rounding to nearest changes a number by at most u times its size."""
    return float(np.finfo(dtype).eps) / 2


UNIT = unit_roundoff(np.float64)
"""Unit roundoff of float64, 2^-53."""
UNIT32 = unit_roundoff(np.float32)
"""Unit roundoff of float32, 2^-24."""
EPS = UNIT + UNIT
"""Distance from 1 to the next float64, 2^-52."""


def rounding_factor(n: int) -> float:
    """Relative rounding error of a sum or inner product of n terms, in units of the unit roundoff times sum |terms|.

    min(n, 5 sqrt(n)) + 8: Higham and Mary 2019, theorem 2.4 with lambda = 5 (fails with probability
    2 exp(-12.5) an entry, and then by little), the 8 for the few operations before and after the sum. In the same
    model the errors of an m x m matrix of such sums are independent, and its norm is at most sqrt(m) times this.
    """
    return min(float(n), 5.0 * sqrt(n)) + 8.0


def factorisation_error(n: int, unit: float) -> float:
    """Norm of the backward error of a Cholesky factorisation of an n x n matrix, over its largest diagonal entry.

    An entry comes from an inner product of at most n terms, whose absolute values add up to no more than the largest
    diagonal entry (Higham, Accuracy and Stability, theorem 10.3). In the model of ``rounding_factor`` the errors of the
    entries are independent, about sqrt(n) u each, and the norm of such a matrix is about 2 n u: twice that, and some
    more for small n. The worst case, which the theorem alone gives, would be another n times as large.
    """
    return 4.0 * (n + 8) * unit
