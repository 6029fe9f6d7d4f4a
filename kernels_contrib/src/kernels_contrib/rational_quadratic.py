"""The rational quadratic kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from fastkpca.base.rounding import UNIT, unit_roundoff
from fastkpca.kernels import Offer, Summary
from fastkpca.kernels.parameters import positive_number

from .kernels._radial import DIRECT, distances
from .kernels.mixture import gamma_mixture
from .kernels.parameters import OfDistance
from .kernels.split import split_offers
from .limits import FARTHEST

__all__ = ["RationalQuadratic"]


class RationalQuadratic(OfDistance):
    """Rational quadratic kernel k(x, y) = (1 + |x - y|^2 / (2 alpha length_scale^2))^-alpha.

    A mixture of Gaussians over a gamma density of 1 / sigma^2, so positive semidefinite in any dimension; alpha to
    infinity gives the Gaussian with sigma = length_scale. The names are scikit-learn's.

    Parameters
    ----------
    alpha : float, default 1.0
        From 1e-100 to 1e100.
    length_scale : float, optional
        Positive, in the units of X. Default: as the Gaussian's sigma, the median distance of the rows
        divided by sqrt(2).

    Raises
    ------
    KernelParameterError
        ``alpha`` or ``length_scale`` is not positive and finite.
    """

    api_version = 1
    known_as = "rational_quadratic"
    translation = "kernel"
    nonnegative = True
    parameters = {"alpha": 1.0, "length_scale": None}

    alpha: float

    def check(self) -> None:
        self.__dict__["alpha"] = positive_number(
            "rational_quadratic", "alpha", self.alpha, least=1.0 / FARTHEST, most=FARTHEST
        )
        super().check()

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        # in units of 2^exponent, about the length: squared distances are 0 only where k is 1
        mantissa, exponent = math.frexp(self._length)
        factor = 0.5 / self.alpha / mantissa / mantissa
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            values = _squares(X, Y, exponent)  # numpy's vector loops for log1p and exp from here on
            values *= factor
            # beyond float64, or NaN, the difference of two rows that are
            far = None if values.max(initial=0.0) < np.inf else ~(values < np.inf)
            np.log1p(values, out=values)
            if far is not None:
                values[far] = self._logs_of_far(X, Y, far, exponent, math.log(factor))
            values *= -self.alpha
            np.exp(values, out=values)
        return values.astype(X.dtype, copy=False)

    @staticmethod
    def _logs_of_far(X: np.ndarray, Y: np.ndarray, far: np.ndarray, exponent: int, log_factor: float) -> np.ndarray:
        """log(1 + z) of the entries ``far``, from squares in a unit in which they are finite: z is too large for the 1
        to count, or 0 where both rows are the same."""
        largest = max(float(np.abs(rows).max()) for rows in (X, Y))
        unit = math.frexp(largest)[1] - np.finfo(np.float64).maxexp // 2 + X.shape[1].bit_length()
        squares = _squares(X, Y, unit)[far]
        apart = squares > 0.0
        squares[apart] = np.log(squares[apart]) + (log_factor + 2.0 * math.log(2.0) * (unit - exponent))
        return squares

    def gradient_weights(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray) -> np.ndarray | None:
        if self.alpha < 1e-3:  # the power would lose the digits of K: differences take its place
            return None
        return K ** (1.0 + 1.0 / self.alpha) / self._length / self._length

    def entry_error(self, data: Summary, dtype: np.dtype) -> float:
        """Bound on |computed - k|, k of the rows as they were given; u is the roundoff.

        Let z = r^2 / (2 alpha length_scale^2). A relative error of z is multiplied by at most alpha z
        (1 + z)^(-alpha - 1) <= 1 in k. One of alpha log1p(z) is multiplied by at most alpha log(1 + z) k <= 1 / e.
        Distances as in ``Matern``; slopes at most exp(-1/2) / sigma on average, E[1 / sigma] <= 1 / length_scale, and a
        row moves by u times the radius.
        """
        u, d = UNIT, data.n_features
        relative = (128.0 * (d + 8) if d > DIRECT else d + 4.0) * u
        moved = 0.61 * 2.0 * u * data.radius / self._length
        return min(1.0, relative + 16.0 * u + 2.0 * unit_roundoff(dtype) + moved)

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Iterable[Offer]:
        alpha, length_scale = self.alpha, self._length
        farthest = max(data_x.radius, data_y.radius) / length_scale
        if not 1e-3 <= alpha <= 1e6 or farthest > FARTHEST:
            return ()
        return split_offers(
            lambda r: np.exp(-alpha * np.log1p(np.square(r / length_scale) / (2.0 * alpha))),
            lambda error: gamma_mixture(alpha, alpha * length_scale**2, inverse=True, tol=error),
            data_x,
            data_y,
            tol,
        )


def _squares(X: np.ndarray, Y: np.ndarray, exponent: int) -> np.ndarray:
    """Squared distances in units of 2^exponent, which is exact."""
    A = np.ldexp(np.asarray(X, dtype=np.float64), -exponent)
    B = A if Y is X else np.ldexp(np.asarray(Y, dtype=np.float64), -exponent)
    return distances(A, B, squares=True)
