"""Radial kernels as mixtures of Gaussians: k(r) = int exp(-r^2 / (2 s(v))) v^(a-1) exp(-v) / Gamma(a) dv.

s(v) = v length_scale^2 / nu and a = nu is the Matérn kernel, s(v) = alpha length_scale^2 / v and a = alpha the rational
quadratic. The trapezoidal rule in log v gives positive weights w_i = h v_i^a exp(-v_i) / Gamma(a). By Poisson's
summation formula its error is the sum of the integrand's Fourier transform at the multiples of 2 pi / h. Turning the
path of integration by an angle theta < pi / 2 multiplies that transform at omega by exp(-theta omega), and the
integrand by at most cos(theta)^-a (the Gaussian's factor stays below one): for every r

    |k(r) - sum_i w_i exp(-r^2 / (2 s_i))| <= 2 sum_(n >= 1) exp(-2 pi n theta / h) cos(theta)^-a,

and the terms left out at either end are bounded by geometric series.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class Mixture(NamedTuple):
    """sum_i weights_i exp(-r^2 / (2 widths_i)), widths (squared lengths) from large to small.

    Attributes
    ----------
    weights, widths : ndarray
    error : float
        Bound on |k - sum| at any distance, all that was left out included.
    """

    weights: np.ndarray
    widths: np.ndarray
    error: float


def _aliasing(a: float, h: float) -> float:
    theta = math.atan(2.0 * math.pi / (h * a))  # the best angle for the first term
    log_first = -2.0 * math.pi * theta / h - a * math.log(math.cos(theta))
    if log_first > -1.0:
        return math.inf
    return 2.0 * math.exp(log_first) / (1.0 - math.exp(-2.0 * math.pi * theta / h))


def gamma_mixture(a: float, width_of_one: float, *, inverse: bool, tol: float) -> Mixture:
    """The mixture with density v^(a-1) exp(-v) / Gamma(a), and widths ``width_of_one`` times v (inverse: over v)."""
    h = 4.0 / (1.0 + math.sqrt(a))
    while _aliasing(a, h) > 0.3 * tol:
        h *= 0.97
    log_gamma = math.lgamma(a)
    # below: sum of h v^a / Gamma(a) over the nodes left out is h v^a / Gamma(a) / (1 - exp(-h a))
    lowest = (math.log(0.3 * tol * -math.expm1(-h * a) / h) + log_gamma) / a
    # above: the ratio of neighbours is at most exp(h a - v (e^h - 1)), which is at most 1/2 where the search ends
    highest = math.log(a + 1.0)
    while True:
        v = math.exp(highest)
        small = 2.0 * h * math.exp(min(700.0, a * highest - v - log_gamma)) <= 0.3 * tol
        if small and h * a - v * math.expm1(h) <= -math.log(2.0):
            break
        highest += 0.05
    # (of a tol beyond the kernel's values, what may be left out below is more than there is)
    first, last = math.floor(min(lowest, highest) / h), math.ceil(highest / h)
    log_v = h * np.arange(first, last + 1)
    if np.abs(log_v).max() + abs(math.log(width_of_one)) > 700.0:  # widths beyond the range of float64
        return Mixture(np.empty(0), np.empty(0), math.inf)
    weights = h * np.exp(a * log_v - np.exp(log_v) - log_gamma)
    below = h * math.exp(a * (log_v[0] - h) - log_gamma) / -math.expm1(-h * a)
    above = 2.0 * h * math.exp(a * (log_v[-1] + h) - math.exp(log_v[-1] + h) - log_gamma)
    widths = width_of_one * np.exp(-log_v if inverse else log_v)
    order = np.argsort(-widths)
    # weights carry the rounding of their exponents
    rounding = 2.0**-50 * (10.0 + a * max(abs(lowest), abs(highest)) + abs(log_gamma))
    return Mixture(weights[order], widths[order], _aliasing(a, h) + below + above + rounding)
