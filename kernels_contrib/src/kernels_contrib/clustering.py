"""Kernel k-means, and what is proved of every other clustering."""

from .methods.clustering import KMeansModel, assign, kernel_kmeans

__all__ = ["KMeansModel", "assign", "kernel_kmeans"]
