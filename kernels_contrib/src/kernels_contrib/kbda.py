"""Kernel biased discriminant analysis."""

from .methods.kbda import KBDAModel, kbda, kbda_project

__all__ = ["KBDAModel", "kbda", "kbda_project"]
