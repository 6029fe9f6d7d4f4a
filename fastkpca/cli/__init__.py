"""The command line, ``fastkpca fit | project | info | kernels | demo``: wording only; the library does the work."""

from .commands import main

__all__ = ["main"]
