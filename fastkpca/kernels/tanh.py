"""The tanh ("sigmoid") kernel: not positive semidefinite in general."""

from __future__ import annotations

import numpy as np

from ..base.protocol import Summary
from .kernel import CompiledKernel
from .parameters import finite_number


class Tanh(CompiledKernel):
    r"""Hyperbolic tangent kernel tanh(scale x.y + offset); not positive semidefinite in general.

    .. math:: k(x, y) = \tanh(\mathrm{scale}\; x \cdot y + \mathrm{offset})

    Parameters
    ----------
    scale : float, default 1
        ``gamma`` is another spelling.
    offset : float, default 0
        ``coef0`` is another spelling.
    """

    api_version = 1
    tile = "tanh"
    translation = None
    parameters = {"scale": 1.0, "offset": 0.0}
    aliases = {"gamma": ("scale", lambda gamma: gamma), "coef0": ("offset", lambda coef0: coef0)}

    scale: float
    offset: float

    def check(self) -> None:
        self.__dict__.update(
            scale=finite_number(self, "scale", self.scale), offset=finite_number(self, "offset", self.offset)
        )

    def gradient_weights(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray) -> np.ndarray:
        return self.scale * (1.0 - K * K)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # tanh(inf) is 1
            return np.tanh(self.scale * np.einsum("ij,ij->i", X, X) + self.offset)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float:
        # the argument's rounding passes with slope at most 1; tanh itself is good to a few ulp of at most 1
        argument = abs(self.scale) * data.largest_inner + abs(self.offset)
        # (and products below the smallest number, which are lost)
        info, d = np.finfo(dtype), data.n_features
        error = float(info.eps) * ((d + 4) * argument + 8) + float(info.tiny) * (abs(self.scale) * d + 2)
        return min(error, 2.0)  # where the argument says nothing, values still lie between -1 and 1

    def value_bound(self, data: Summary) -> float:
        return 1.0
