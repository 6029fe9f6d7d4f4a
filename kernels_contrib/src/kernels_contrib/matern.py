"""The Matérn kernel."""

from .kernels.matern import Matern

__all__ = ["Matern"]
