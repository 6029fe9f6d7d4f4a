"""Kernel canonical correlation."""

from .methods.cca import CCAModel, kernel_cca

__all__ = ["CCAModel", "kernel_cca"]
