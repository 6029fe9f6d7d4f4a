"""What several kernels share: lengths where none is given, and how far out rows may lie."""

from __future__ import annotations

import numpy as np

from fastkpca.kernels import Gaussian, Summary

__all__ = ["FARTHEST", "by_median", "evenly"]

FARTHEST = 1e100
"""In units of the length: rows farther out have exact products only."""


def evenly(sample: np.ndarray, most: int = 1000) -> np.ndarray:
    """At most so many rows of a sample, spread evenly: it is random, but in the order of the rows."""
    return sample[np.linspace(0, len(sample) - 1, min(most, len(sample))).astype(np.intp)]


def by_median(data: Summary) -> float:
    """The length that the Gaussian takes as its sigma where none is given: median distance / sqrt(2)."""
    resolved = Gaussian().resolve(data)
    return float(resolved.get_parameters()["sigma"])
