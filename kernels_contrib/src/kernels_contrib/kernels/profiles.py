"""The Matérn kernel as a function of distance: closed forms, and tables for every other order.

With t = sqrt(2 nu) r / length_scale and M(t) = 2^(1-nu) / Gamma(nu) t^nu K_nu(t) (Abramowitz & Stegun 9.6.24),

    M(t) = 1 / Gamma(nu) int_0^inf v^(nu-1) exp(-v - t^2 / (4 v)) dv.

About the saddle point v = A, where w = sqrt(nu^2 + t^2), A = (w + nu) / 2, B = (w - nu) / 2, with v = A exp(x):

    M(t) = exp(-E) G(t),   E = w - nu - nu log(A / nu),
    G(t) = I(A, B) / I(nu, 0),   I(A, B) = int exp(-A (e^x - 1 - x) - B (e^-x - 1 + x)) dx.

Nothing cancels in I, and the trapezoidal rule converges like exp(-pi^2 / step) for it; so G is known to a few roundings
for every nu and t. What is tabulated is G (nu > 50) or G exp(t - E) = e^t M (nu <= 50), on 4 or 32 pieces an octave
(that many because e^(t - E) grows like e^t up to t ~ nu), where it is a polynomial of degree 13 to rounding.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from scipy.special import gamma

from ._radial import SERIES, TERMS, Profile

__all__ = ["GAUSSIAN_FROM", "LEAST_ORDER", "matern_profile", "scale_of", "square_root_scale"]

LEAST_ORDER = 0.05
"""Below it k rises from 0 to 1 within distances whose squares underflow."""
LARGE = 50.0
"""Order nu from which on exp(t) k(t) would overflow, and the ratio to the Gaussian is tabulated instead."""
GAUSSIAN_FROM = 1e15
"""From here on k differs from the Gaussian by less than rounding: M = exp(-q^2 / 2) (1 + O(1 / nu))."""
QUADRATURE = 321
"""Points of the trapezoidal rule for K_nu: more change no digit of float64."""


def _interpolation() -> tuple[np.ndarray, np.ndarray]:
    """From values at the Chebyshev nodes to Chebyshev coefficients, and from those to coefficients of powers.

    Two steps: the product of the two matrices has entries of 1e4, and would cost four digits.
    """
    chebyshev = np.polynomial.chebyshev
    to_powers = np.zeros((TERMS, TERMS))
    for degree, row in enumerate(np.eye(TERMS)):
        power = chebyshev.cheb2poly(row[: degree + 1])
        to_powers[degree, : len(power)] = power
    j = np.arange(TERMS)
    from_values = 2.0 / TERMS * np.cos(np.outer((j + 0.5) * np.pi / TERMS, j))
    from_values[:, 0] /= 2.0
    return from_values, to_powers


_TO_CHEBYSHEV, _TO_POWERS = _interpolation()


def scale_of(value: Decimal) -> tuple[float, float]:
    """A number as an unevaluated sum of two doubles."""
    high = float(value)
    return high, float(value - Decimal(high))


def square_root_scale(twice_order: float, length_scale: float) -> tuple[float, float]:
    """sqrt(twice_order) / length_scale, to 32 digits."""
    with localcontext() as context:
        context.prec = 50
        return scale_of(Decimal(twice_order).sqrt() / Decimal(length_scale))


def _integral(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """I(A, B) by the trapezoidal rule between the points where the integrand has fallen to e^-42.

    For x > 0, e^x - 1 - x is at least x^2 / 2 and at least e^x / 4 from x = 1.7 on; for x < 0 it is at least
    x^2 / (2 - x); the other half mirrors this.
    """

    def up(a: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.minimum(np.sqrt(84.0 / a), np.maximum(1.7, np.log(168.0 / a)))

    def down(a: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            c = 42.0 / a
            return c / 2.0 + np.sqrt(c * c / 4.0 + 2.0 * c)

    right = np.fmin(up(A), down(B))
    left = -np.fmin(down(A), up(B))
    step = (right - left) / (QUADRATURE - 1)
    total = np.zeros_like(step)
    for i in range(QUADRATURE):
        x = left + i * step
        small = np.abs(x) < 0.05
        # e^x - 1 - x without the cancellation of its first terms
        series = x * x * (0.5 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040 + x / 40320))))))
        mirror = x * x * (0.5 - x * (1 / 6 - x * (1 / 24 - x * (1 / 120 - x * (1 / 720 - x * (1 / 5040 - x / 40320))))))
        with np.errstate(over="ignore"):
            plus = np.where(small, series, np.expm1(x) - x)
            minus = np.where(small, mirror, np.expm1(-x) + x)
            total += np.exp(-A * plus - np.where(B > 0.0, B * minus, 0.0))
    return total * step


def _smooth_part(nu: float, t: np.ndarray) -> np.ndarray:
    """e^t M (nu at most LARGE), or G."""
    w = np.sqrt(nu * nu + t * t)
    B = 0.5 * t * t / (w + nu)
    if nu > LARGE:
        return _integral(nu + B, B) / _integral(np.array([nu]), np.array([0.0]))
    G = _integral(nu + B, B) / (gamma(nu) * math.exp(nu) * nu**-nu)
    # M = exp(-E) G with E = h - nu log1p(h / (2 nu)), h = t^2 / (w + nu); for large t, t and E agree to many digits
    return G * np.exp(nu * (1.0 - nu / (w + t)) + nu * np.log1p(B / nu))


@lru_cache(maxsize=32)
def _table(nu: float) -> dict:
    """Everything of a profile that hangs on the order alone."""
    pieces = 4 if nu <= 4.0 or nu > LARGE else 32
    if nu <= LARGE:
        # 1 - M < 2^-55 below 2^-40 for nu >= 3/4 (below 2^-28 for nu > 4): the first correction is a power
        # (t / 2)^(2 nu) or t^2 / (4 nu - 4), times less than 5
        first = -4 if nu < 0.75 else -40 if nu <= 4.0 else -28
        last = 11
        largest = 1390.0  # k < e^-1000 there, and exp(-t / 2) is still a normal number
    else:
        first = math.floor(math.log2(nu * 1e-9))
        # E = h - nu log1p(h / (2 nu)) >= h / 2 = 760 and, for nu > 50, at most 1380
        h = 1520.0
        largest = math.sqrt(h * (h + 2.0 * nu))
        last = math.ceil(math.log2(largest)) + 1
    nodes = np.cos((np.arange(TERMS) + 0.5) * np.pi / TERMS)
    centers = 1.0 + (np.arange(pieces) + 0.5) / pieces
    starts = 2.0 ** np.arange(first, last)
    t = starts[:, None, None] * (centers[:, None] + 0.5 / pieces * nodes)
    values = _smooth_part(nu, t.ravel()).reshape(-1, TERMS)
    table = values @ _TO_CHEBYSHEV @ _TO_POWERS
    series = None
    if nu < 0.75:
        j = np.arange(SERIES)
        factorial = np.array([math.factorial(i) for i in range(SERIES)], dtype=float)
        even = gamma(1.0 - nu) / (factorial * gamma(j + 1.0 - nu))
        odd = gamma(1.0 - nu) / (factorial * gamma(j + 1.0 + nu))
        series = (even, odd)
    return {
        "order": nu,
        "largest": largest,
        "table": table,
        "lowest": 2.0**first,
        "pieces_an_octave": pieces,
        "series": series,
    }


def matern_profile(nu: float, length_scale: float) -> Profile:
    """k at a distance, for finite nu below GAUSSIAN_FROM."""
    scale = square_root_scale(2.0 * nu, length_scale)
    closed = {0.5: "exp", 1.5: "three halves", 2.5: "five halves"}.get(nu)
    if closed:
        return Profile(closed, scale)
    return Profile("table" if nu <= LARGE else "large", scale, **_table(nu))
