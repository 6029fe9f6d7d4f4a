"""The Matérn kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from scipy.special import gammaln

from fastkpca.base.rounding import UNIT, unit_roundoff
from fastkpca.kernels import FeatureMap, Gaussian, Offer, Summary
from fastkpca.kernels.parameters import positive_number
from fastkpca.methods import as_float

from .kernels._radial import DIRECT, distances
from .kernels.line import line_offers
from .kernels.mixture import gamma_mixture
from .kernels.parameters import OfDistance
from .kernels.profiles import LARGEST_ORDER, LEAST_ORDER, matern_profile
from .kernels.split import split_offers
from .limits import FARTHEST

__all__ = ["Matern"]

SMALLEST = float(np.sqrt(np.finfo(np.float64).tiny))
"""Distance whose square is still a normal number."""


class Matern(OfDistance):
    """Matérn kernel k(x, y) = 2^(1-nu) / Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) |x - y| / length_scale.

    K_nu is the modified Bessel function of the second kind. k is exp(-t) for nu = 1/2, (1 + t) exp(-t) for nu = 3/2 and
    (1 + t + t^2 / 3) exp(-t) for nu = 5/2, each with its own t. For nu = inf it is the Gaussian with
    sigma = length_scale. Sample paths of a Gaussian process with this covariance have ceil(nu) - 1 derivatives.

    Values are within a few units in the last place of one for half-integer nu up to 5/2, and within 1e-13 for others.
    The relative error grows like t, as that of exp(-t) from a rounded t.

    Parameters
    ----------
    nu : float, default 1.5
        From 0.05 to 50, or infinity. ``alpha`` is another spelling.
    length_scale : float, optional
        Positive, in the units of X. ``gamma`` is another spelling. Default: as the Gaussian's sigma, the
        median distance of the rows divided by sqrt(2).

    Raises
    ------
    KernelParameterError
        ``nu`` or ``length_scale`` is out of range.

    Notes
    -----
    ``alpha`` and ``gamma`` are the letters of lecture notes that write

        k_(alpha, gamma)(x, x') = 2^(1-alpha) / Gamma(alpha) (sqrt(2 alpha) |x - x'| / gamma)^alpha
                                  K_alpha(sqrt(2 alpha) |x - x'| / gamma),

    so nu = alpha and length_scale = gamma exactly. (Not the gamma = 1 / (2 sigma^2) of the Gaussian kernel, nor the
    1 / length_scale of the Laplacian.) For alpha = 3/2 and 5/2 the exponentials are exp(-sqrt(3) |x - x'| / gamma) and
    exp(-sqrt(5) |x - x'| / gamma). Some texts print exp(-|x - x'| / gamma), or sqrt(3) in the latter, which does not
    follow from this definition.

    References
    ----------
    Rasmussen, Williams 2006, Gaussian Processes for Machine Learning, section 4.2.1. Abramowitz, Stegun 1964, 9.6.
    """

    api_version = 1
    known_as = "matern"
    parameters = {"nu": 1.5, "length_scale": None}
    aliases = {"alpha": ("nu", lambda alpha: alpha), "gamma": ("length_scale", lambda gamma: gamma)}

    nu: float
    nonnegative = True

    def check(self) -> None:
        if as_float(self.nu) != math.inf or isinstance(self.nu, int):
            checked = positive_number("matern", "nu", self.nu, least=LEAST_ORDER, most=LARGEST_ORDER)
            self.__dict__["nu"] = checked
        super().check()

    @property
    def translation(self) -> str | None:
        """Moves with the rows ("kernel"), but may not be shifted for nu < 1/2 (None).

        There k falls from 1 infinitely steeply, as 1 - c r^(2 nu): what subtracting a shift does to the last place of
        the rows would cost 6e-4 for nu = 0.1. Distances are taken by differences, which need no shift.
        """
        return "kernel" if self.nu >= 0.5 else None

    @property
    def _gaussian(self) -> Gaussian | None:
        """The limit of this kernel for infinite nu."""
        return Gaussian(sigma=self._length) if math.isinf(self.nu) else None

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        if self._gaussian is not None:
            return self._gaussian.block(X, Y)
        # in units of the length, by a power of two: exact, and the square of no distance that matters underflows
        mantissa, exponent = math.frexp(self._length)
        A = np.ldexp(np.asarray(X, dtype=np.float64), -exponent)
        values = distances(A, A if Y is X else np.ldexp(np.asarray(Y, dtype=np.float64), -exponent))
        matern_profile(self.nu, mantissa).apply(values)
        return values.astype(X.dtype, copy=False)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        """Bound on |computed - k|, k of the rows as they were given; u is the roundoff.

        As a mixture of Gaussians of widths s, |r k'(r)| <= sup (r^2 / s) exp(-r^2 / (2 s)) = 2 / e: that is what a
        relative error of the distance does. Differences have one of (d + 4) u / 2; products, mended where they are less
        than 1/64 of |x|^2 + |y|^2, one of 64 (d + 8) u. Rows come with a shift subtracted, which moves each by u times
        the radius: see ``_moved``. The values themselves: 1e-13 relative, and the rounding to the tile's type.
        """
        if self._gaussian is not None:
            return self._gaussian.entry_error(data, dtype)
        u, d = UNIT, data.n_features
        closed = self.nu in (0.5, 1.5, 2.5)
        relative = (64.0 * (d + 8) if d > DIRECT else 0.5 * (d + 4)) * u
        values = 8.0 * u if closed else 1e-13  # what the scale's rounding does to t is in these: 5 u were found
        return min(1.0, 0.74 * relative + values + 2.0 * unit_roundoff(dtype) + self._moved(2.0 * u * data.radius))

    def _moved(self, distance: float) -> float:
        """Bound on the change of k where a distance changes by at most ``distance``."""
        nu = self.nu
        t = math.sqrt(2.0 * nu) / self._length * distance
        if nu < 0.5:
            return 0.0  # no shift
        if nu == 0.5:
            return t
        slopes = []
        if nu < 1.0:
            # k'(t) = -2^(1-nu) / Gamma(nu) t^nu K_(1-nu)(t): t^(1-nu) K_(1-nu) is largest at 0, K_(1-nu) <= K_(1/2)
            rest = max(2.0**-nu * math.gamma(1.0 - nu), 0.47)
            slopes.append(2.0 ** (1.0 - nu) / math.gamma(nu) * rest)
        # the mixture's mean of exp(-1/2) / sqrt(s); s = v length_scale^2 / nu, v of density v^(nu-1) exp(-v)
        slopes.append(0.6066 / math.sqrt(2.0) * math.exp(gammaln(nu - 0.5) - gammaln(nu)))
        return min(slopes) * t

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Iterable[Offer]:
        return () if self._gaussian is None else self._gaussian.feature_maps(data, tol, max_features)

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        return Gaussian(sigma=self._length).feature_map_from_state(header, arrays)

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Iterator[Offer]:
        if self._gaussian is not None:
            yield from self._gaussian.summations(data_x, data_y, tol)
            return
        nu, length_scale = self.nu, self._length
        # these square distances in the units of X: small ones underflow, and large ones overflow
        if nu < 0.5 and (SMALLEST / length_scale) ** (2.0 * nu) > 2.0**-52:
            return
        if max(data_x.radius, data_y.radius) > FARTHEST * length_scale:
            return
        power = nu - 0.5
        if power == int(power):
            yield from line_offers(int(power), math.sqrt(2.0 * nu) / length_scale, data_x, data_y, tol)
        # takes milliseconds to plan: whoever has seen a cheap one stops before
        yield from split_offers(
            matern_profile(nu, length_scale),
            lambda error: gamma_mixture(nu, length_scale**2 / nu, inverse=False, tol=error),
            data_x,
            data_y,
            tol,
        )
