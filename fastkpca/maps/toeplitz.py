"""The second moment of Fourier features: S T S with the matrix T of sums of products of two waves.

T, the second moment of the waves, depends only on the sums t_b over the rows of all waves with m <= 2 M. For along an
axis the product of two waves with m and m' is a sum of waves with m + m' and |m - m'|. On a grid of more than 4 M
points an axis the symbol, their trigonometric polynomial sum_j exp(i j x) sum_i exp(-i j x_i), is a weight that
integrates such products exactly: T = F' diag(symbol) F, with F the waves on the grid over the root of its size. F is a
product over the axes: to multiply with it is a matrix product for each axis, or a fast Fourier transform where an axis
has many waves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import log2, prod, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.fft is loaded where it is used first

from ..base import parallel
from ..base.caching import cached_property
from ..base.protocol import BLAS_FLOPS, Moments, OperatorMoments
from ..base.rounding import UNIT, rounding_factor
from . import transforms
from .compressed import Directions, directions, quadrature
from .passes import SMALL_MOMENT

DENSE = 256
"""Modes up to which the second moment is formed: LAPACK then computes its eigenvectors faster."""
FLAT = 8e-3
"""The same of rows of one column where the spectrum is flat: m eigenvalues share the trace. Lanczos's method then takes
time as m^2, LAPACK as D^3, for D modes: the latter is the faster from m = FLAT D^1.5 on.
Nine narrow Gaussians take 2.1 times as long without it (median; benchmarks/speed/special_cases.py)."""
DIRECTIONS_SHARE = 0.3
"""Fraction of the truncated modes' weight that the dropped directions may have, and fraction of the transforms' error
that quadrature nodes in place of the rows may add. Below 1, since tolerances rest on an estimate."""
FFT_FLOPS = 3.5
"""Flops of a transform: for each number and logarithm of their count."""


class Compressed(NamedTuple):
    """A centred second moment in some of its directions."""

    size: int
    product: Callable[[np.ndarray], np.ndarray]
    """Its product with columns (size, k)."""
    product_error: float
    error: float
    """Bound on the Frobenius norm of what it differs by from that of all directions."""
    lift: Callable[[np.ndarray], np.ndarray]
    """(size, c) in these directions -> (D, c) among all features."""
    left_out: float
    """Bound on the trace of the moment in all other directions."""


class ToeplitzMoments(OperatorMoments):
    """Second moment of Fourier features, held as the sums t_b: memory and products don't depend on N.

    ``product_error`` is about rounding alone: the error of t itself is in the map's ``defect``.
    """

    def __init__(self, feature_map: Any):
        self.map: Any = feature_map
        self.count = 0.0
        self.residual_trace = 0.0
        self._sums = np.zeros(tuple(4 * m + 1 for m in feature_map.half))
        self._forget()

    def _forget(self) -> None:
        """Drop the results computed from the sums, which change."""
        for name in ("symbol", "total", "norm", "product_error"):
            self.__dict__.pop(name, None)

    def update(self, X: np.ndarray, weights: np.ndarray | None = None) -> None:
        P, _ = self.map._points(X)
        if P.size and (np.abs(P) > self.map._inside[:, None]).any():
            raise ValueError(
                "rows lie outside the box for which this Fourier map was made, where its features are right only "
                "against rows inside; make a map for all the rows"
            )
        U = np.ones((len(X), 1)) if weights is None else np.asarray(weights, dtype=np.float64)[:, None]
        self._sums += transforms.type1(P, U, self.map.nodes_of_pairs(P))[0]
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
        return {"count": self.count, "residual_trace": self.residual_trace}, {"sums": self._sums.copy()}

    def restore(self, header: dict, arrays: dict[str, np.ndarray]) -> ToeplitzMoments:
        self.count, self.residual_trace = float(header["count"]), float(header["residual_trace"])
        sums = np.array(arrays["sums"], dtype=np.float64)
        if sums.shape != self._sums.shape:
            raise ValueError(f"sums of shape {sums.shape}; {self._sums.shape} are needed")
        self._sums = sums
        self._forget()
        return self

    @cached_property
    def symbol(self) -> np.ndarray:
        """Symbol on the grid of ``map.grid``."""
        values = self._exact_count()
        for axis, n in enumerate(self.map.grid):
            cosines, sines = np.split(values, [values.shape[axis] // 2 + 1], axis=axis)
            values = _from_waves(cosines, sines, n, axis)
        return values

    @cached_property
    def total(self) -> np.ndarray:
        """Phi'1."""
        few = [np.concatenate([np.arange(m + 1), np.arange(2 * m + 1, 3 * m + 1)]) for m in self.map.half]
        return np.asarray((self._exact_count()[np.ix_(*few)] * self.map.root).ravel())

    def _exact_count(self) -> np.ndarray:
        """t with t_0 as it is known: the trace of the computed operator is then the one below."""
        self._sums[(0,) * self._sums.ndim] = self.count
        return self._sums

    @property
    def mean(self) -> np.ndarray:
        return self.total / max(self.count, 1e-300)

    @property
    def trace(self) -> float:
        b = float(self.total @ self.total)
        return self.count * self.map.total - b / max(self.count, 1e-300)

    @cached_property
    def product_error(self) -> float:
        symbol, total, whole = self.symbol, self.total, self.map
        mean, root = float(np.abs(symbol).mean()), float(np.linalg.norm(symbol)) / sqrt(symbol.size)
        square = float(total @ total) / max(self.count, 1e-300)
        heaviest = prod(float(line.max()) for line in whole.lines)
        return product_rounding(whole.half, mean * whole.total, root, heaviest, square)

    @property
    def indefinite(self) -> float:
        """Bound on the negative eigenvalues of the computed operator: the transform's error, and rounding."""
        return self.count * self.map.transform_error + self.product_error

    @cached_property
    def norm(self) -> float:
        """Upper bound on the Frobenius norm of the centred moment.

        Let t_j = sum_i exp(-i j x_i), w the weights of the modes and b the sum of the features. With A = S T S,
        |A|_F^2 = sum_j |t_j|^2 (w * w)_j and |A - b b'/N|^2 = |A|^2 - 2 b'A b / N + |b|^4 / N^2.
        """
        total, n = self.total, max(self.count, 1e-300)
        square = float(np.sum((self._exact_count() * reduce(np.multiply.outer, self._roots_of_pairs)) ** 2))
        b, product = (
            float(total @ total),
            float(total @ self._uncentred(total[:, None], 1, self._axes, self.symbol)[:, 0]),
        )
        rounding = 1e-13 * (square + (b / n) ** 2) + 4.0 * b / n * self.product_error
        return sqrt(max(square - 2.0 * product / n + (b / n) ** 2, 0.0) + rounding)

    @property
    def _roots_of_pairs(self) -> list[np.ndarray]:
        """Square roots of the weights (w * w)_j, for the sums of the cosines and of the sines: |t_j|^2 + |t_-j|^2 is
        twice the sum of the squares of these two."""
        return [np.sqrt(np.concatenate([line, line[1:]])) for line in self.map.weights_of_pairs]

    def _waves(self) -> list[np.ndarray]:
        """Values of an axis's features on the grid, (points, waves), over the root of its size."""
        made = []
        for m, n, root in zip(self.map.half, self.map.grid, self.map.roots):
            phases = np.arange(n)[:, None] * np.arange(m + 1) % n * (2.0 * np.pi / n)
            made.append(np.hstack([np.cos(phases), np.sin(phases[:, 1:])]) * (root / sqrt(n)))
        return made

    @cached_property
    def _axes(self) -> list[np.ndarray | None]:
        """The same; None where there are many."""
        many = [by_fft < by_product for by_product, by_fft in map(line_flops, self.map.waves, self.map.grid)]
        return [None] * len(many) if all(many) else [None if x else waves for x, waves in zip(many, self._waves())]

    def compressed(self, n_threads: int) -> Compressed | None:
        """The centred second moment in few directions; None where too many are needed."""
        whole = self.map
        if len(whole.half) < 3 or whole.n_features <= DENSE:
            return None
        few = directions(whole.roots, whole._inside, DIRECTIONS_SHARE * whole.tail)
        if few is None:
            return None
        most = DIRECTIONS_SHARE * self.count * whole.transform_error
        nodes, weights, error = quadrature(self._exact_count(), self.count, self._roots_of_pairs, whole._inside, most)
        axes = [
            (transforms.waves_at(x, m) * root) @ basis
            for x, m, root, basis in zip(nodes, whole.half, whole.roots, few.bases)
        ]
        total = few.lowered(self.total)

        def product(U: np.ndarray) -> np.ndarray:
            return self._uncentred(U, n_threads, axes, weights, few) - np.outer(
                total, total @ U / max(self.count, 1e-300)
            )

        # the functions' values at the nodes are rounded, too
        square, size = float(total @ total) / max(self.count, 1e-300), float(np.abs(weights).sum()) * whole.total
        rounding = 2.0 * product_rounding(whole.half, size, 0.0, 0.0, square)
        return Compressed(len(few.places), product, rounding, error, few.lift, self.count * few.left_out)

    def _uncentred(
        self,
        C: np.ndarray,
        n_threads: int,
        axes: Sequence[np.ndarray | None],
        weights: np.ndarray,
        few: Directions | None = None,
    ) -> np.ndarray:
        """S T S times each column, of all features or in a ``few`` directions; ``axes``: their values at the points
        that have these ``weights``."""
        d, result = len(self.map.waves), np.zeros((C.shape[1], len(C)))
        sizes = self.map.waves if few is None else few.sizes
        parts = parallel.columns(len(result), len(result) * product_flops(sizes, weights.shape))
        step = parallel.tile_rows(weights.size, least=1)

        def task(i: int) -> None:
            for start in range(parts[i].start, parts[i].stop, step):
                some = slice(start, min(start + step, parts[i].stop))
                values = C.T[some]
                if few is not None:
                    values = np.zeros((len(values), prod(sizes)))
                    values[:, few.places] = C.T[some]
                values = values.reshape(-1, *sizes)
                for axis in range(d, 0, -1):
                    values = self._to_grid(values, axis, axes[axis - 1])
                values *= weights
                for axis in range(1, d + 1):
                    values = self._from_grid(values, axis, axes[axis - 1])
                images = values.reshape(len(values), -1)
                result[some] = images if few is None else images[:, few.places]

        parallel.each(task, len(parts), n_threads=n_threads)
        return result.T

    def _to_grid(self, values: np.ndarray, axis: int, waves: np.ndarray | None) -> np.ndarray:
        m, n = self.map.half[axis - 1], self.map.grid[axis - 1]
        if waves is not None:
            return transforms.along(waves, values, axis)
        cosines, sines = np.split(0.5 * values * self._root_along(axis), [m + 1], axis=axis)
        cosines[(slice(None),) * axis + (0,)] *= 2.0
        return _from_waves(cosines, sines, n, axis)

    def _from_grid(self, values: np.ndarray, axis: int, waves: np.ndarray | None) -> np.ndarray:
        m = self.map.half[axis - 1]
        if waves is not None:
            return transforms.along(waves.T, values, axis)
        first, rest, _ = np.split(scipy.fft.rfft(values, axis=axis), [1, m + 1], axis=axis)
        return np.concatenate([first.real, rest.real, -rest.imag], axis=axis) * self._root_along(axis)

    def _root_along(self, axis: int) -> np.ndarray:
        """Factors of the waves along an axis, shaped to multiply along it."""
        root = self.map.roots[axis - 1] / sqrt(self.map.grid[axis - 1])
        return np.asarray(root.reshape(-1, *[1] * (len(self.map.grid) - axis)))

    def matmat(self, C: np.ndarray, n_threads: int = 1) -> np.ndarray:
        total = self.total
        return self._uncentred(C, n_threads, self._axes, self.symbol) - np.outer(
            total, total @ C / max(self.count, 1e-300)
        )

    def dense(self) -> np.ndarray | None:
        """The centred second moment where it is small, or a flat one on a line; None else."""
        D = self.map.n_features
        if D <= DENSE:
            return self.form()
        if len(self.map.half) > 1 or D > SMALL_MOMENT:
            return None
        return self.form() if self.trace**2 >= FLAT * D**1.5 * self.norm**2 else None


def line_flops(waves: float, points: float) -> tuple[float, float]:
    """Flops of a line along an axis: by a product with the values of its waves, and by a fast Fourier transform."""
    return 2.0 * BLAS_FLOPS * waves * points, FFT_FLOPS * points * log2(points)


def product_flops(waves: Sequence[float], grid: Sequence[float]) -> float:
    """Flops of a product of the second moment with a column, with these numbers of functions and points by axis."""
    flops = 0.0
    for c in range(len(grid)):
        flops += 2.0 * prod(waves[:c]) * prod(grid[c + 1 :]) * min(line_flops(waves[c], grid[c]))
    return flops + 4.0 * prod(grid)


def product_rounding(half: tuple[int, ...], mean: float, root: float, heaviest: float, square: float) -> float:
    """Bound on the rounding of a product with a unit column.

    ``mean`` is that of the symbol's absolute values times the sum of the weights w, ``root`` its root mean square,
    ``heaviest`` the largest weight, ``square`` that of the mean's norm times the count.

    On the grid unit vectors have values of at most (F F')_gg^(1/2), g a point, and so have those that |F| gives for
    their absolute values; N (F F')_gg is sum w for N points. An error of a share e in these, before or after they are
    multiplied with the symbol s, is one of at most e sum_g |s_g| (F F')_gg = e ``mean``. The symbol comes from FFTs,
    which err by 4 log2(size) u in the 2-norm (Higham, Accuracy and Stability, 24.1), at one point as at another (the
    model of ``rounding_factor``): in the product that is multiplied by |F|^2, the largest weight.
    """
    share = 16.0 + sum(rounding_factor(4 * m + 1) + 3.0 * rounding_factor(2 * m + 1) for m in half)
    logarithm = sum(log2(4 * m + 1) for m in half)
    return UNIT * (share * mean + (4.0 * logarithm + 32.0) * root * heaviest + 64.0 * square)


def _from_waves(cosines: np.ndarray, sines: np.ndarray, n: int, axis: int) -> np.ndarray:
    """c_0 + 2 sum_m (c_m cos(m x) + s_m sin(m x)) at n points x from 0 on."""
    spectrum = cosines.astype(np.complex128)
    spectrum.imag[(slice(None),) * axis + (slice(1, None),)] = -sines
    return scipy.fft.irfft(spectrum, n, axis=axis, norm="forward")
