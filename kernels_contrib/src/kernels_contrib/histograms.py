"""Kernels on histograms: chi-squared and intersection."""

from .kernels.histograms import ChiSquared, Intersection

__all__ = ["ChiSquared", "Intersection"]
