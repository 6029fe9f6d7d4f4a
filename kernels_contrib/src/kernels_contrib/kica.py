"""Kernel independent component analysis."""

from .methods.kica import KICAModel, kica, kica_contrast, kica_project

__all__ = ["KICAModel", "kica", "kica_contrast", "kica_project"]
