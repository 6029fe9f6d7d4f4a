"""Kernel ridge regression."""

from .methods.ridge import RidgeModel, kernel_ridge

__all__ = ["RidgeModel", "kernel_ridge"]
