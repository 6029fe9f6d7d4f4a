"""Spectral clustering and diffusion maps."""

from .methods.diffusion import DiffusionModel, SpectralModel, diffusion_map, spectral_clustering

__all__ = ["DiffusionModel", "SpectralModel", "diffusion_map", "spectral_clustering"]
