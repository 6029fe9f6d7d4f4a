"""The Laplacian kernel on L1 distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy  # scipy.spatial is loaded where it is used first

from fastkpca.base.rounding import UNIT, unit_roundoff
from fastkpca.kernels import KernelParameterError, Offer, Summary
from fastkpca.kernels.parameters import positive_number

from .kernels._radial import Profile, distances
from .kernels.line import line_offers
from .kernels.parameters import OfDistance, evenly

__all__ = ["Laplacian"]


class Laplacian(OfDistance):
    """Laplacian kernel k(x, y) = exp(-|x - y|_1 / length_scale).

    A product of exponentials over the coordinates, so positive semidefinite in any dimension.

    Parameters
    ----------
    length_scale : float, optional
        Positive, in the units of X. ``gamma`` = 1 / length_scale is another spelling. Default: the median L1
        distance of at most 1000 rows; where more than half of the pairs coincide, of those that do not.

    Raises
    ------
    KernelParameterError
        ``length_scale`` is not positive and finite, or no default exists because all rows are equal.
    """

    api_version = 1
    known_as = "laplacian"
    translation = "kernel"
    nonnegative = True
    parameters = {"length_scale": None}
    aliases = {"gamma": ("length_scale", lambda gamma: 1.0 / positive_number("laplacian", "gamma", gamma))}

    def default_length(self, data: Summary) -> float:
        """The median distance."""
        distances = scipy.spatial.distance.pdist(evenly(data.sample), "cityblock")
        if not distances.any():
            raise KernelParameterError(
                "laplacian: all rows of X are equal, so there is no median distance; check X, or give length_scale"
            )
        return float(np.median(distances) or np.median(distances[distances > 0.0]))

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        values = distances(X, Y, city_block=True)  # float64 for tiles of any type
        Profile(1.0 / self._length).apply(values)
        return values.astype(X.dtype, copy=False)

    def gradient_sums(
        self, X: np.ndarray, Y: np.ndarray, K: np.ndarray, steps: np.ndarray
    ) -> Callable[[np.ndarray | None, np.ndarray], np.ndarray]:
        # by a column: K sign(y - x) / length_scale; where two rows have the same value, the mean of both sides, zero
        values = K / self._length

        def sums(R: np.ndarray | None, A: np.ndarray) -> np.ndarray:
            W = values if R is None else values * R
            columns = [(W * np.sign(Y[:, i] - X[:, i, None])) @ A for i in range(X.shape[1])]
            return np.stack(columns, axis=2)

        return sums

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Sequence[Offer]:
        # in more dimensions a product of such kernels, one for each coordinate, whose sums do not come apart
        return line_offers(0, 1.0 / self._length, data_x, data_y, tol)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float:
        # A sum of d rounded differences, and a product with 1 / length_scale, give t a relative error of at most
        # (d + 2) u, and t exp(-t) <= 1/e bounds the effect; two ulp for exp itself, one rounding to the tile type.
        # The rows come with a shift subtracted, which rounds each coordinate: a row moves by at most u |x|_1 <=
        # u sqrt(d) radius, and |d/dt exp(-t)| <= 1. For clusters far apart this is the larger part.
        u = UNIT
        moved = 2 * u * math.sqrt(data.n_features) * data.radius / self._length
        return min(1.0, 1.01 * (data.n_features + 2) * u / math.e + 4 * u + 2.0 * unit_roundoff(dtype) + moved)
