"""The command line, ``fastkpca fit | plan | project | monitor ...``. Wording; the library does the work."""

from .commands import main

__all__ = ["main"]
