"""The polynomial kernel (scale x.y + offset)^degree, with its exact monomial feature map."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from ..base.protocol import LEAST, Cost, FeatureMap, Offer, Summary, Summation
from ..errors import KernelParameterError
from ..maps.monomial import PolynomialMap, polynomial_size
from ..maps.monomial_moments import MAX_DEGREE, product_flops
from ..maps.stored import map_of_kernel
from ..products.expansion import ExpansionSummation, expansion_rounding
from ..rows.view import Rows
from .kernel import CompiledKernel, Kernel
from .parameters import finite_number, positive_number, whole_number

LEAST_START = LEAST * LEAST
"""Least offset ** (degree / 2), the feature of degree 0, from which all others are made by multiplication: below it
digits are lost, and then features that matter."""


class Polynomial(CompiledKernel):
    r"""Polynomial kernel (scale x.y + offset)^degree.

    .. math:: k(x, y) = (\mathrm{scale}\; x \cdot y + \mathrm{offset})^{\mathrm{degree}}

    Parameters
    ----------
    degree : int, default 3
        At least 1.
    scale : float, default 1
        Positive; ``gamma`` is another spelling.
    offset : float, default 1
        ``coef0`` is another spelling. The kernel is positive semidefinite only for offset >= 0.
    """

    api_version = 1
    tile = "polynomial"
    stored_maps = (PolynomialMap,)
    translation = None
    parameters = {"degree": 3, "scale": 1.0, "offset": 1.0}
    aliases = {"gamma": ("scale", lambda gamma: gamma), "coef0": ("offset", lambda coef0: coef0)}

    degree: int
    scale: float
    offset: float

    def check(self) -> None:
        values = {
            "degree": whole_number(self, "degree", self.degree, least=1, most=MAX_DEGREE),
            "scale": positive_number(self, "scale", self.scale),
            "offset": finite_number(self, "offset", self.offset),
        }
        self.__dict__.update(values)

    @property
    def positive_semidefinite(self) -> bool:
        return self.offset >= 0

    @property
    def _has_map(self) -> bool:
        return self.offset == 0.0 or self.offset ** (self.degree / 2) >= LEAST_START

    def largest(self, inner: float) -> float:
        """Largest |k| where |x.y| <= inner; infinite beyond the range of float64."""
        with np.errstate(over="ignore"):
            return float(np.float64(self.scale * np.float64(inner) + abs(self.offset)) ** self.degree)

    def resolve(self, data: Summary) -> Kernel:
        # squares of entries, times N^2, must stay finite for norms and moments
        with np.errstate(over="ignore"):
            log_largest = self.degree * np.log10(self.scale * np.float64(data.radius) ** 2 + abs(self.offset) + 1e-300)
        if not 2 * (log_largest + np.log10(data.n_samples + 1)) < 307:
            raise KernelParameterError(
                f"polynomial kernel overflows: (scale * |x|^2 + offset)^degree with scale={self.scale:g}, "
                f"|x| up to {data.radius:.3g} and degree={self.degree} is about 1e{log_largest:.0f}; "
                "standardise the columns of X, or give a smaller scale (about 1 / largest |x|^2)"
            )
        return self

    def gradient_weights(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray) -> np.ndarray:
        return self.degree * self.scale * (self.scale * (X @ Y.T) + self.offset) ** (self.degree - 1)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # named where the values are used
            return (self.scale * np.einsum("ij,ij->i", X, X) + self.offset) ** self.degree

    def entry_error(self, data: Summary, dtype: np.dtype) -> float:
        d, info, largest = data.n_features, np.finfo(dtype), self.largest(data.largest_inner)
        base = self.scale * data.largest_inner + abs(self.offset)
        # products of coordinates below the smallest number are lost, and so may powers be (from the left, this does not
        # overflow in between)
        lost = float(info.tiny)
        lost += lost * (1.0 + self.scale * d) * self.degree * (largest / base if base else 1.0)
        return (d + self.degree + 4) * self.degree * float(info.eps) * largest + lost

    def value_bound(self, data: Summary) -> float:
        return self.largest(data.largest_inner) * (1 + 1e-12)

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        d, degree, scale, offset = data.n_features, self.degree, self.scale, self.offset
        if offset < 0 or not self._has_map:
            return ()
        D = polynomial_size(d, degree, offset)
        if D > max_features:
            return ()
        quick = product_flops(d, degree, bool(offset))
        cost = Cost(D, row_flops=2.0 * D, setup_flops=50.0 * D, memory=100.0 * D, quick_flops=quick)
        return (Offer("monomial", cost, lambda sample: PolynomialMap(d, degree, scale, offset)),)

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Sequence[Offer]:
        d, degree, scale, offset = data_x.n_features, self.degree, self.scale, self.offset
        if offset < 0 or not self._has_map or polynomial_size(d, degree, offset) > 1 << 16:
            return ()

        # |phi(x)|^2 = k(x, x): the features of either side, and what they add up to, stay within the range
        sizes = [self.largest(data.largest_inner) for data in (data_x, data_y)]
        if not max(sizes) < 1e300:
            return ()
        D = polynomial_size(d, degree, offset)
        terms = max(data_x.n_samples, data_y.n_samples)
        bound = expansion_rounding(PolynomialMap.rounding_for(degree), terms, D) * sqrt(sizes[0]) * sqrt(sizes[1])
        if tol is not None and not bound <= tol:
            return ()

        def build(X: Rows, Y: Rows | None = None) -> Summation:
            return ExpansionSummation(PolynomialMap(d, degree, scale, offset), X, Y, error_bound=bound)

        n_y = data_y.n_samples / max(1, data_x.n_samples)
        cost = Cost(D, row_flops=3.0 * D * (1 + n_y), setup_flops=50.0 * D, memory=8.0 * D, residual=bound)
        return (Offer("expansion", cost, build),)

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        def has_parameters(made: PolynomialMap) -> bool:
            return (made.degree, made.scale, made.offset) == (self.degree, self.scale, self.offset)

        return map_of_kernel(self, header, arrays, has_parameters)
