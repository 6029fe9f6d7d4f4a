"""The rational quadratic kernel."""

from .kernels.rational_quadratic import RationalQuadratic

__all__ = ["RationalQuadratic"]
