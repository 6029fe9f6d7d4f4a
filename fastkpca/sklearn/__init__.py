"""scikit-learn's interface: ``KernelPCA``, ``KernelPCANovelty`` and ``Nystroem`` with scikit-learn's parameters and
attributes. ``KernelEstimator`` and ``KernelTransformer`` are for authors of estimators on other methods."""

from .base import KernelEstimator, KernelTransformer  # first: the absence of scikit-learn is told in words
from .decomposition import KernelPCA
from .kernel_approximation import Nystroem
from .novelty import KernelPCANovelty

__all__ = ["KernelEstimator", "KernelPCA", "KernelPCANovelty", "KernelTransformer", "Nystroem"]
