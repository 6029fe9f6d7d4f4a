"""The ANOVA kernel."""

from .kernels.anova import Anova

__all__ = ["Anova"]
