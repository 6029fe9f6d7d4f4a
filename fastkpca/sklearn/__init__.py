"""scikit-learn's interface: ``KernelPCA``, ``KernelPCANovelty`` and ``Nystroem`` with scikit-learn's parameters and
attributes."""

from .base import KernelEstimator as _needs_scikit_learn  # noqa: F401  its absence is told in words
from .decomposition import KernelPCA
from .kernel_approximation import Nystroem
from .novelty import KernelPCANovelty

__all__ = ["KernelPCA", "KernelPCANovelty", "Nystroem"]
