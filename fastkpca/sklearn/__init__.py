"""scikit-learn's interface: ``KernelPCA`` with scikit-learn's parameters and attributes. Wording and shapes only."""

from .decomposition import KernelPCA

__all__ = ["KernelPCA"]
