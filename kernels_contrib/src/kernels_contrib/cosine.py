"""The cosine kernel."""

from .kernels.cosine import Cosine

__all__ = ["Cosine"]
