"""Kernel Fisher discriminant analysis and kernel Fisherfaces."""

from .methods.klda import KLDAModel, kernel_fisherfaces, klda, klda_predict, klda_probability, klda_project

__all__ = ["KLDAModel", "kernel_fisherfaces", "klda", "klda_predict", "klda_probability", "klda_project"]
