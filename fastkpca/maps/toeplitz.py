"""The second moment of Fourier features: S T S with the Toeplitz matrix T of t_j = sum_i exp(-2 pi i j.x_i / L)."""

from __future__ import annotations

from functools import reduce
from math import inf, log2, sqrt
from typing import Any

import numpy as np
import scipy  # scipy.fft is loaded where it is used first

from ..base.caching import cached_property
from ..base.protocol import Moments, OperatorMoments
from ..base.rounding import UNIT
from . import compressed, transforms

__all__ = ["DENSE", "DENSE_LINE", "ToeplitzMoments", "lines_of", "product_rounding"]

DENSE = 256
"""Modes up to which the second moment is formed: LAPACK is then the faster way to its eigenvectors."""
DENSE_LINE, FLAT = 1024, 8e-3
"""The same of rows of one column where the spectrum is flat: m eigenvalues share the trace. Lanczos's method then takes
time as m^2, LAPACK as D^3, for D modes: the latter is the faster from m = FLAT D^1.5 on."""
DIRECTIONS_SHARE = 0.3
"""Of what the modes left out weigh, for the directions left out: little, since tolerances rest on an estimate."""


class ToeplitzMoments(OperatorMoments):
    """Second moment of Fourier features, held as t_j for |j_c| <= 2 M_c: memory and products don't depend on N.

    ``product_error`` is about rounding alone: the error of t itself is in the map's ``defect``.
    """

    def __init__(self, feature_map: Any):
        self.map: Any = feature_map
        self.count = 0.0
        self.residual_trace = 0.0
        self._doubled = tuple(2 * m for m in feature_map.half)
        shape = (self._doubled[0] + 1, *[2 * m + 1 for m in self._doubled[1:]])
        self._sums = np.zeros(shape, dtype=np.complex128)
        self._forget()

    def _forget(self) -> None:
        """What follows from the sums: they change."""
        self._symbol: np.ndarray | None = None
        self._total: np.ndarray | None = None
        self._square_sum: float | None = None

    def update(self, X: np.ndarray, weights: np.ndarray | None = None) -> None:
        P, _ = self.map._points(X)
        if P.size and (np.abs(P) > self.map._inside[:, None]).any():
            raise ValueError(
                "rows lie outside the box for which this Fourier map was made, where its features are right only "
                "against rows inside; make a map for all the rows"
            )
        U = None if weights is None else np.asarray(weights, dtype=np.float64)[:, None]
        nodes = self.map._moment_nodes(len(X))
        self._sums += transforms.type1(P, U, self._doubled, self.map.eps, nodes=nodes)[0]
        count = float(len(X)) if weights is None else float(np.sum(weights))
        self.count += count
        self.residual_trace += count * self.map.tail * (1.0 + len(X) * UNIT)
        self._forget()

    def merge(self, other: Moments) -> Moments:
        assert isinstance(other, ToeplitzMoments)
        self._sums += other._sums
        self.count += other.count
        self.residual_trace += other.residual_trace
        self._forget()
        return self

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        header = {"count": self.count, "residual_trace": self.residual_trace}
        return header, {"real": self._sums.real.copy(), "imag": self._sums.imag.copy()}

    def restore(self, header: dict, arrays: dict[str, np.ndarray]) -> ToeplitzMoments:
        self.count, self.residual_trace = float(header["count"]), float(header["residual_trace"])
        sums = arrays["real"] + 1j * arrays["imag"]
        if sums.shape != self._sums.shape:
            raise ValueError(f"sums of shape {sums.shape}; {self._sums.shape} are needed")
        self._sums = sums
        self._forget()
        return self

    @property
    def symbol(self) -> np.ndarray:
        """sum_j t_j exp(i j x) on a grid of x: real, as t is Hermitian."""
        if self._symbol is None:
            shape = tuple(scipy.fft.next_fast_len(2 * m + 1, real=True) for m in self._doubled)
            self._symbol = _values(self._exact_count()[None], shape)[0]
        return self._symbol

    @property
    def total(self) -> np.ndarray:
        """Phi'1."""
        if self._total is None:
            centre = tuple(slice(m, 3 * m + 1) for m in self.map.half[1:])
            sums = self._exact_count()[(slice(0, self.map.half[0] + 1), *centre)] * self.map._half_root
            self._total = self.map._unpack(sums[None])[:, 0]
        return self._total

    def _exact_count(self) -> np.ndarray:
        """t with t_0 as it is known: the trace of the computed operator is then the one below."""
        self._sums[(0, *self._doubled[1:])] = self.count
        return self._sums

    @property
    def mean(self) -> np.ndarray:
        return self.total / max(self.count, 1e-300)

    @property
    def trace(self) -> float:
        b = float(self.total @ self.total)
        return self.count * float(self.map.weights.sum()) - b / max(self.count, 1e-300)

    @property
    def product_error(self) -> float:
        """Of two FFTs: each is off by at most 4 log2(size) u in the 2-norm (Higham, Accuracy and Stability, 24.1).

        With F unitary, w the weights and s the symbol, that is multiplied by at most |S F' diag(s)| |S|: by
        max |s| max w; and by (mean s^2 sum w max w)^(1/2), as the first factor's Frobenius norm is
        (mean s^2 sum w)^(1/2). The latter is less where the rows crowd, and the symbol peaks. The symbol itself comes
        from a third FFT, whose errors are as large at one point as at another (the model of ``rounding_factor``).
        """
        symbol, total, weights = self.symbol, self.total, self.map.weights
        largest = max(float(symbol.max()), -float(symbol.min()))
        mean = sqrt(2.0 * self._sum_of_squares())  # root mean square, or more
        square = float(total @ total) / max(self.count, 1e-300)
        return product_rounding(symbol.size, largest, mean, float(weights.max()), float(weights.sum()), square)

    @property
    def indefinite(self) -> float:
        """How far below zero an eigenvalue of the computed operator may lie: the transform's error, and rounding."""
        return self.count * self.map.transform_error + self.product_error

    def _sum_of_squares(self) -> float:
        """Of all |t_j| with j_1 >= 0."""
        if self._square_sum is None:
            sums = self._exact_count()
            self._square_sum = float(np.vdot(sums, sums).real)
        return self._square_sum

    @property
    def norm(self) -> float:
        """Upper bound on the Frobenius norm of the centred moment.

        |S T S|_F^2 = sum_j |t_j|^2 (w * w)_j, and |A - b b'/N|^2 = |A|^2 - 2 b'A b / N + |b|^4 / N^2.
        """
        total, n, symbol = self.total, max(self.count, 1e-300), self.symbol
        b, square = float(total @ total), self._norm_square()
        values = _values(self.map._pack(total[:, None]) * self.map._half_root, symbol.shape)[0]
        product = float(np.vdot(values * symbol, values)) / symbol.size  # total' S T S total
        rounding = 128.0 * log2(symbol.size) * UNIT * self._sum_of_squares() * float(np.sum(self.map.weights**2))
        rounding += 1e-13 * (square + (b / n) ** 2) + 4.0 * b / n * self.product_error
        centred = square - 2.0 * product / n + (b / n) ** 2
        return sqrt(max(centred, 0.0) + rounding)

    def _norm_square(self) -> float:
        """|S T S|_F^2."""
        shape = self.symbol.shape
        w = scipy.fft.rfftn(self.map.weights, shape)
        pairs = scipy.fft.fftshift(scipy.fft.irfftn(w * np.conj(w), shape))
        middle = [n // 2 for n in shape]
        around = tuple(slice(k - m, k + m + 1) for k, m in zip(middle, self._doubled))
        pairs = pairs[around][self._doubled[0] :]
        squares = self._sums.real**2 + self._sums.imag**2
        both = np.full((len(squares), *[1] * (squares.ndim - 1)), 2.0)
        both[0] = 1.0
        return float(np.sum(both * squares * pairs))

    def _uncentred(self, C: np.ndarray) -> np.ndarray:
        symbol = self.symbol
        columns = max(1, (1 << 22) // symbol.size)
        result = np.empty((C.shape[1], len(C)))
        for start in range(0, C.shape[1], columns):
            part = slice(start, start + columns)
            values = _values(self.map._pack(C[:, part]) * self.map._half_root, symbol.shape)
            values *= symbol
            spectra = _modes(values, self.map.half)
            result[part] = self.map._unpack(spectra * self.map._half_root).T
        return result.T

    def matmat(self, C: np.ndarray) -> np.ndarray:
        total = self.total
        return self._uncentred(C) - np.outer(total, total @ C / max(self.count, 1e-300))

    def compressed(self) -> compressed.Compressed | None:
        whole = self.map
        if whole.n_features < compressed.LEAST.get(len(whole.half), inf) or self._product_weights is None:
            return None
        tau = DIRECTIONS_SHARE * whole.tail
        lines, sums = self._product_weights, self._exact_count()
        return compressed.compressed_moment(
            sums, self.count, lines, whole._inside, tau, whole._unpack, lambda: self.symbol
        )

    @cached_property
    def _product_weights(self) -> list[np.ndarray] | None:
        """Weights by axis where a mode's weight is their product."""
        lines = [line for line, _ in lines_of(self.map.weights, self.map.half)]
        lines[1:] = [line / line[m] for line, m in zip(lines[1:], self.map.half[1:])]
        rest = np.abs(reduce(np.multiply.outer, lines) / self.map.weights - 1.0).max()
        return lines if rest <= 1e-12 else None

    def dense(self) -> np.ndarray | None:
        """The centred second moment where it is small, or a flat one on a line; None else."""
        D = self.map.n_features
        if D <= DENSE:
            return self.form()
        if len(self.map.half) > 1 or D > DENSE_LINE:
            return None
        return self.form() if self.trace**2 >= FLAT * D**1.5 * self.norm**2 else None


def product_rounding(points: float, largest: float, mean: float, heaviest: float, total: float, square: float) -> float:
    """As ``ToeplitzMoments.product_error`` explains, for a symbol of so many points, its largest absolute value and its
    root ``mean`` square; the heaviest weight and their sum; and the square of the mean's norm times the count."""
    logarithm, size = log2(points), min(largest * heaviest, mean * sqrt(total * heaviest))
    return UNIT * ((8.0 * logarithm + 32.0) * size + (4.0 * logarithm + 16.0) * mean * heaviest + 64.0 * square)


def lines_of(chosen: np.ndarray, half: tuple[int, ...]) -> list[tuple[np.ndarray, int]]:
    """The axes of a centred box, each with its middle."""
    return [
        (chosen[tuple(slice(None) if e == c else m for e, m in enumerate(half))], half[c]) for c in range(len(half))
    ]


def _values(spectra: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """sum_m c_m exp(2 pi i m p / n) on the grid ``shape``, real, for Hermitian half spectra (k, M_1 + 1, ...)."""
    part = spectra
    for axis in range(part.ndim - 1, 1, -1):  # axis by axis, so that lines of zeros are not transformed
        n, m = shape[axis - 1], part.shape[axis] // 2
        padded = np.zeros((*part.shape[:axis], n, *part.shape[axis + 1 :]), dtype=np.complex128)
        before = (slice(None),) * axis
        padded[(*before, slice(0, m + 1))] = part[(*before, slice(m, None))]
        padded[(*before, slice(n - m, n))] = part[(*before, slice(0, m))]
        part = scipy.fft.ifft(padded, axis=axis, norm="forward", overwrite_x=True)
    return scipy.fft.irfft(part, shape[0], axis=1, norm="forward")


def _modes(values: np.ndarray, half: tuple[int, ...]) -> np.ndarray:
    """The half spectrum |m_c| <= M_c of real values on a grid (k, n_1, ...): the inverse of ``_values``."""
    part = scipy.fft.rfft(values, axis=1, norm="forward")[:, : half[0] + 1]
    for axis in range(2, part.ndim):
        n, m = part.shape[axis], half[axis - 1]
        part = scipy.fft.fft(part, axis=axis, norm="forward")
        before = (slice(None),) * axis
        part = np.concatenate([part[(*before, slice(n - m, n))], part[(*before, slice(0, m + 1))]], axis=axis)
    return part
