"""Kernel partial least squares."""

from .methods.pls import PLSModel, kernel_pls

__all__ = ["PLSModel", "kernel_pls"]
