"""scikit-learn's interface: ``KernelPCA`` and ``Nystroem`` with scikit-learn's parameters and attributes."""

from .base import KernelEstimator as _needs_scikit_learn  # noqa: F401  its absence is told in words
from .decomposition import KernelPCA
from .kernel_approximation import Nystroem

__all__ = ["KernelPCA", "Nystroem"]
