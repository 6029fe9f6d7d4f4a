"""Rows for the kernels that do not take all rows of numbers."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

OF_THEIR_OWN = "anova", "chi_squared", "intersection", "spectrum"
"""The kernels, by name, that refuse some of the rows that all other kernels on rows take."""


def own_rows(kernel: str, rows: np.ndarray) -> Any:
    """Rows of any numbers made into such as the kernel of that name takes, alike where the rows are."""
    if kernel in ("chi_squared", "intersection"):  # no negative numbers
        return np.abs(rows)
    if kernel == "anova" and rows.shape[1] < 2:  # at least ``degree`` columns
        return np.repeat(rows, 2, axis=1)
    if kernel == "spectrum":  # for each column 22 letters, the more of them small the larger the number
        lengths = np.rint(11.0 + np.clip(np.arcsinh(100.0 * rows), -8.0, 8.0)).astype(int)
        letters = list(zip(string.ascii_lowercase, string.ascii_uppercase))
        return ["".join(a * n + b * (22 - n) for (a, b), n in zip(letters, row)) for row in lengths.tolist()]
    return rows
