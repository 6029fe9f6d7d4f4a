"""The command line, ``fastkpca fit | plan | project | info | kernels | demo``. Wording; the library does the work."""

from .commands import main

__all__ = ["main"]
