"""The Matérn kernel as a function of distance: closed forms, and tables for every other order.

With t = sqrt(2 nu) r / length_scale, k = M(t) = 2^(1-nu) / Gamma(nu) t^nu K_nu(t) (Abramowitz & Stegun 9.6). The table
holds e^t M, from scipy's e^t K_nu: on each piece of an octave it is a polynomial of degree 13 to rounding. There are 4
or 32 pieces an octave, because e^t M grows like e^t up to t ~ nu.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import gamma, kve

from ._radial import TERMS, Profile

LEAST_ORDER = 0.05
"""Below it k rises from 0 to 1 within distances whose squares underflow."""
LARGEST_ORDER = 50.0
"""Largest nu: above it exp(t) k(t) would overflow; k differs from the Gaussian, nu = infinity, by about 1 / nu
there.
"""
NODES = chebyshev.chebpts1(TERMS)


def _interpolation() -> tuple[np.ndarray, np.ndarray]:
    """Matrices from values at the Chebyshev nodes to Chebyshev coefficients, and from those to coefficients of powers.

    Two steps: the product of the two matrices has entries of 1e4, and would cost four digits.
    """
    to_powers = np.zeros((TERMS, TERMS))
    for degree, row in enumerate(np.eye(TERMS)):
        to_powers[degree, : degree + 1] = chebyshev.cheb2poly(row[: degree + 1])
    from_values = 2.0 / TERMS * chebyshev.chebvander(NODES, TERMS - 1)
    from_values[:, 0] /= 2.0
    return from_values, to_powers


_TO_CHEBYSHEV, _TO_POWERS = _interpolation()


def _smooth_part(nu: float, t: np.ndarray) -> np.ndarray:
    """e^t M."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = 2.0 ** (1.0 - nu) / gamma(nu) * t**nu * kve(nu, t)
        # K_nu overflows for large nu alone, near zero, where two terms of the power series are M to rounding
        near = np.exp(t) * (1.0 - t * t / (4.0 * nu - 4.0)) if nu > 1.0 else values
    return np.where(np.isfinite(values), values, near)


@lru_cache(maxsize=32)
def _table(nu: float) -> dict:
    """Everything of a profile that hangs on the order alone."""
    pieces = 4 if nu <= 4.0 else 32
    # 1 - M < 2^-55 below: the first correction is (t / 2)^(2 nu) or, for nu > 1, t^2 / (4 nu - 4), times less than 5
    first = math.floor(-28.0 / nu) if nu < 0.75 else -40 if nu <= 4.0 else -28
    last = 11
    centers = 1.0 + (np.arange(pieces) + 0.5) / pieces
    starts = 2.0 ** np.arange(first, last)
    t = starts[:, None, None] * (centers[:, None] + 0.5 / pieces * NODES)
    values = _smooth_part(nu, t.ravel()).reshape(-1, TERMS)
    table = values @ _TO_CHEBYSHEV @ _TO_POWERS
    return {
        "largest": 1390.0,  # k < e^-1000 there, and exp(-t / 2) is still a normal number
        "table": table,
        "lowest": 2.0**first,
        "pieces_an_octave": pieces,
    }


def matern_profile(nu: float, length_scale: float) -> Profile:
    """k at a distance, for nu from LEAST_ORDER to LARGEST_ORDER."""
    scale = math.sqrt(2.0 * nu) / length_scale
    closed = {0.5: (0.0, 0.0), 1.5: (1.0, 0.0), 2.5: (1.0, 1.0 / 3.0)}.get(nu)
    return Profile(scale, **_table(nu)) if closed is None else Profile(scale, *closed)
