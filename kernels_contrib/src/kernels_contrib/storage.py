"""Model files of the methods."""

from .methods.storage import load, save

__all__ = ["load", "save"]
