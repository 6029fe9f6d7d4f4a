"""Monomial feature maps of total degree: exact for (scale x.y + offset)^p, truncated for the Gaussian.

Both are an ``Expansion`` of the compiled core, which computes each monomial from one of lower degree; the weight of a
monomial is part of that factor. In Raykar & Ankur 2003, sections 7 and 8, ``accumulate`` is A_k and C_m, and ``apply``
the sums over them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import comb, factorial, sqrt
from typing import Any

import numpy as np
import scipy.special

from .._core import multiindex, truncation
from .._core.arrays import contiguous
from ..base.protocol import FeatureMap, Kernel, Moments, Summary, refuse_farther
from ..base.rounding import UNIT
from ..base.stored import Record
from .monomial_moments import MAX_DEGREE, MonomialMoments, product_sums

FARTHEST = 37.0
"""Largest distance from the centre of an expansion, in units of sigma, at which exp(-R^2 / 2) is a normal number."""


def polynomial_size(d: int, degree: int, offset: float) -> int:
    """Number of features of (x.y + offset)^degree: C(d + p, p), or C(d + p - 1, p) without an offset."""
    return comb(d + degree, degree) if offset else comb(d + degree - 1, degree)


def taylor_size(d: int, order: int) -> int:
    """Number of features of the Gaussian cut after the terms m < order: C(d + order - 1, d)."""
    return comb(d + order - 1, d) if order > 0 else 0


def same_columns(record: Record, d: int, n_columns: int) -> int:
    """d, the number of columns that a stored map is for: ModelFileError where the model has another."""
    if d != n_columns:
        raise record.refuse(f"it is for rows of {d} columns, the model's have {n_columns}")
    return d


@lru_cache(maxsize=16)
def _table(d: int, degree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    parent, coordinate, exponent, start = multiindex.table(d, degree)
    for array in (parent, coordinate, exponent, start):
        array.flags.writeable = False
    return parent, coordinate, exponent, start


def exponents(d: int, degree: int) -> np.ndarray:
    """All multi-indices of total degree at most ``degree``, (D, d), in the order of the features."""
    parent, coordinate, _, _ = _table(d, degree)
    alpha = np.zeros((len(parent), d), dtype=np.intp)
    for i in range(1, len(parent)):
        alpha[i] = alpha[parent[i]]
        alpha[i, coordinate[i]] += 1
    return alpha


def monomials(
    centre: np.ndarray, rotation: np.ndarray, alpha: np.ndarray, weights: np.ndarray, *, gaussian: bool
) -> dict[str, Any]:
    """The formula of weighted monomials of z = rotation' (x - centre), times exp(-|z|^2 / 2) where ``gaussian``."""
    return {
        "kind": "monomials",
        "centre": centre[None, :],
        "rotation": rotation,
        "exponents": np.asarray(alpha, dtype=np.float64),
        "weights": weights[None, :],
        "gaussian": float(gaussian),
    }


class _ExpansionMap(FeatureMap):
    """The base of both maps: an Expansion applied to tiles measured in its own unit, from its own centre."""

    chunked = True
    _expansion: multiindex.Expansion
    _unit: float
    _center: np.ndarray | None = None

    def _products(self) -> multiindex.ProductSums | None:
        raise NotImplementedError

    def quick_moments(self) -> Moments | None:
        products = self._products()
        return None if products is None else MonomialMoments(self, self._scaled, self._expansion, products)

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        if self._center is not None:
            X = X - self._center.astype(X.dtype, copy=False)
        if self._unit != 1.0:
            X = X * X.dtype.type(self._unit)
        return contiguous(X)

    def __reduce__(self) -> tuple:
        return type(self).from_state, self.state()

    @classmethod
    def from_state(cls, header: dict, arrays: dict[str, np.ndarray]) -> _ExpansionMap:
        """The map that ``state`` described."""
        raise NotImplementedError

    def features(self, X: np.ndarray) -> np.ndarray:
        return self._expansion.features(self._scaled(X)).T

    def accumulate(self, X: np.ndarray, U: np.ndarray) -> np.ndarray:
        return self._expansion.accumulate(self._scaled(X), contiguous(U, X.dtype))

    def apply(self, X: np.ndarray, C: np.ndarray) -> np.ndarray:
        return self._expansion.evaluate(self._scaled(X), contiguous(C, X.dtype))


class PolynomialMap(_ExpansionMap):
    """phi of (scale x.y + offset)^degree = sum_k binom(p, k) offset^(p-k) scale^k comp(x^k).comp(y^k): exact.

    Parameters
    ----------
    d : int
        Number of coordinates.
    degree : int
    scale, offset : float
        scale > 0; offset >= 0, else the kernel is not positive semidefinite. Without an offset only |alpha| = degree
        is kept.
    """

    kind = "polynomial"
    anywhere = True

    def __init__(self, d: int, degree: int, scale: float = 1.0, offset: float = 0.0):
        self.d, self.degree, self.scale, self.offset = d, degree, scale, offset
        parent, coordinate, exponent, start = _table(d, degree)
        k = np.repeat(np.arange(degree + 1), np.diff(start)).astype(np.float64)
        factor = np.ones(len(parent))
        factor[1:] = np.sqrt(k[1:] / exponent[1:])  # comp of a child over (comp of its parent times the coordinate)
        skip = 0
        if offset:
            # s_k = sqrt(binom(p, k) offset^(p-k)) as ratios: s_k / s_(k-1) = sqrt((p-k+1) / (k offset))
            factor[0] = offset ** (degree / 2)
            factor[1:] *= np.sqrt((degree - k[1:] + 1) / (k[1:] * offset))
        else:
            skip = int(start[degree])
        self._unit = float(np.sqrt(scale))
        self._expansion = multiindex.Expansion(d, parent, coordinate, factor, skip)
        self.n_features = self._expansion.n_features
        self.rounding = self.rounding_for(degree)

    def _products(self) -> multiindex.ProductSums | None:
        return product_sums(self.d, self.degree, bool(self.offset), True)

    @staticmethod
    def rounding_for(degree: int) -> float:
        """Relative rounding of an entry of phi: each of p steps rounds twice, and its factor three times."""
        return (6 * degree + 4) * UNIT

    def gradients(self, C: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        # d/dx_i of a monomial is one of a degree less: coefficients (D', k, d) of the map of that degree
        lower = PolynomialMap(self.d, self.degree - 1, self.scale, self.offset)
        alpha, beta = self._exponents(), lower._exponents()
        ratio = np.sqrt(scipy.special.gamma(alpha + 1.0).prod(axis=1))
        scaled = (self._by_degree()[alpha.sum(axis=1)] / ratio)[:, None] * C
        ratio = np.sqrt(scipy.special.gamma(beta + 1.0).prod(axis=1)) / lower._by_degree()[beta.sum(axis=1)]
        number = {index.tobytes(): i for i, index in enumerate(beta)}
        coefficients = np.zeros((len(beta), C.shape[1], self.d))
        for i, column in np.argwhere(alpha > 0):
            index = alpha[i].copy()
            index[column] -= 1
            below = number[index.tobytes()]
            coefficients[below, :, column] = self._unit * alpha[i, column] * ratio[below] * scaled[i]
        flat = coefficients.reshape(len(beta), -1)
        return lambda X, steps: lower.apply(X, flat).reshape(len(X), C.shape[1], self.d)

    def _exponents(self) -> np.ndarray:
        """Exponents of the features, (D, d)."""
        alpha = exponents(self.d, self.degree)
        return alpha if self.offset else alpha[alpha.sum(axis=1) == self.degree]

    def _by_degree(self) -> np.ndarray:
        """Weight of a monomial of degree k times sqrt(alpha!): sqrt(binom(p, k) offset^(p - k) k!)."""
        p = self.degree
        return np.array([sqrt(comb(p, k) * factorial(k)) * self.offset ** ((p - k) / 2) for k in range(p + 1)])

    def formula(self) -> dict[str, Any]:
        alpha = self._exponents()
        rotation = sqrt(self.scale) * np.eye(self.d)
        # the reader divides by sqrt(alpha!)
        return monomials(np.zeros(self.d), rotation, alpha, self._by_degree()[alpha.sum(axis=1)], gaussian=False)

    @classmethod
    def stored_size(cls, record: Record, n_columns: int) -> int:
        degree = record.whole("degree", least=1, most=MAX_DEGREE)
        d = same_columns(record, record.whole("d", least=1, most=1 << 31), n_columns)
        return polynomial_size(d, degree, record.number("offset", least=0.0))

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        return {"map": self.kind, "d": self.d, "degree": self.degree, "scale": self.scale, "offset": self.offset}, {}

    @classmethod
    def from_state(cls, header: dict, arrays: dict[str, np.ndarray]) -> PolynomialMap:
        record = Record(header, arrays, "the polynomial feature map")
        record.keys(("map", "d", "degree", "scale", "offset"))
        record.names(())
        return cls(
            record.whole("d", least=1, most=1 << 31),
            record.whole("degree", least=1, most=MAX_DEGREE),
            record.number("scale", above=0.0),
            record.number("offset", least=0.0),
        )


def _reach(order: float) -> float:
    """Value of |x|^2 beyond which the terms below this order are negligible: Q(order, |x|^2) is below rounding."""
    return order + 12.0 * sqrt(order) + 100.0


MOST_ORDER = int(_reach(FARTHEST * FARTHEST))
"""Largest order of a map: above it the residual is below rounding."""


@lru_cache(maxsize=64)
def _largest_argument(order: int) -> float:
    """Bound on |x|^2 Q(order, |x|^2)^(1/2)."""
    squares = np.linspace(0.0, _reach(order), 512)
    return 1.02 * float((squares * np.sqrt(scipy.special.gammaincc(max(order, 1), squares))).max()) + 1.0


class TaylorMap(_ExpansionMap):
    """phi of exp(-|x-y|^2 / (2 sigma^2)) expanded about a centre, terms of degree m < order.

    Its residual is positive semidefinite with diagonal P(order, |x - center|^2 / sigma^2), the regularised lower
    incomplete gamma function (docs/theory.md).

    Parameters
    ----------
    d : int
        Number of coordinates.
    sigma : float
    order : int
        p; C(d + p - 1, d) features.
    center : ndarray (d,)
    """

    kind = "taylor"

    def __init__(self, d: int, sigma: float, order: int, center: np.ndarray):
        self.d, self.sigma, self.order = d, sigma, order
        parent, coordinate, exponent, _ = _table(d, max(order - 1, 0))
        factor = np.ones(len(parent))
        factor[1:] = 1.0 / np.sqrt(exponent[1:])
        self._unit = 1.0 / sigma
        self._center = np.array(center, dtype=np.float64)
        self._expansion = multiindex.Expansion(
            d, parent, coordinate, factor, 0 if order > 0 else len(parent), gaussian=True
        )
        self.n_features = self._expansion.n_features
        # as for the polynomial, relative to sqrt(k(x, x)) = 1 and for rows anywhere: exp(-|x|^2 / 2) adds the rounding
        # of its argument, (d + 6) / 2 |x|^2, where |phi(x)|^2 = Q(order, |x|^2) is left; shift and centre move a row by
        # u times its distances from both, by which phi moves at most that far
        displaced = 2.0 * (np.sqrt(_reach(order)) + float(np.linalg.norm(self._center)) / sigma)
        self.rounding = (6 * order + 2 * d + 8 + 0.5 * (d + 6) * _largest_argument(order) + displaced) * UNIT

    def _products(self) -> multiindex.ProductSums | None:
        return product_sums(self.d, self.order - 1, True, False) if self.order > 1 else None

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        scaled = self._scaled(np.asarray(X, dtype=np.float64))
        squares = np.einsum("ij,ij->i", scaled, scaled)
        return truncation.residual(squares * (1 + 4 * (self.d + 4) * UNIT), self.order)

    def is_of_gaussian(self, sigma: float) -> bool:
        return self.sigma == sigma

    def reaches(self, radius: float) -> bool:
        """True if its bounds hold for rows up to so far from the origin of the tiles.

        exp(-|x|^2 / 2) underflows at |x| = 38: there next to nothing has to be left of the features.
        """
        assert self._center is not None
        farthest = (radius + float(np.linalg.norm(self._center))) / self.sigma
        return farthest <= FARTHEST or float(scipy.special.gammaincc(max(self.order, 1), FARTHEST**2)) < 1e-40

    def widened(self, kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        if not self.reaches(data.radius):
            refuse_farther(data, radius)
        return self

    def formula(self) -> dict[str, Any]:
        assert self._center is not None
        alpha = exponents(self.d, self.order - 1) if self.order > 0 else np.zeros((0, self.d))
        return monomials(self._center, np.eye(self.d) / self.sigma, alpha, np.ones(len(alpha)), gaussian=True)

    @classmethod
    def stored_size(cls, record: Record, n_columns: int) -> int:
        d = same_columns(record, record.whole("d", least=1, most=1 << 31), n_columns)
        return taylor_size(d, record.whole("order", least=0, most=MOST_ORDER))

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        assert self._center is not None
        return {"map": self.kind, "d": self.d, "sigma": self.sigma, "order": self.order}, {"center": self._center}

    @classmethod
    def from_state(cls, header: dict, arrays: dict[str, np.ndarray]) -> TaylorMap:
        record = Record(header, arrays, "the Taylor feature map")
        record.keys(("map", "d", "sigma", "order"))
        record.names(("center",))
        d = record.whole("d", least=1, most=1 << 31)
        order = record.whole("order", least=0, most=MOST_ORDER)
        return cls(d, record.number("sigma", above=0.0), order, record.array("center", (d,)))
