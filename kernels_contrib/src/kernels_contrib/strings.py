"""The spectrum kernel on strings."""

from .kernels.strings import Spectrum

__all__ = ["Spectrum"]
