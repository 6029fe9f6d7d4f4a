"""The Laplacian kernel."""

from .kernels.laplacian import Laplacian

__all__ = ["Laplacian"]
