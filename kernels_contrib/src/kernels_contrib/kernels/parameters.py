"""Lengths that several kernels share: where none is given, and how far out rows may lie."""

from __future__ import annotations

from fastkpca.kernels import Gaussian, Summary

__all__ = ["FARTHEST", "by_median"]

FARTHEST = 1e100
"""In units of the length: rows farther out have exact products only."""


def by_median(data: Summary) -> float:
    """The length that the Gaussian takes as its sigma where none is given: median distance / sqrt(2)."""
    resolved = Gaussian().resolve(data)
    return float(resolved.get_parameters()["sigma"])
