"""The second moment of Fourier features in the few directions that a box of rows has.

Modes belong to the whole period, and rows fill only a box of it. Along an axis with features phi(x), 2 M + 1 of them,
the functions v.phi(x) of an orthonormal basis v_a (right singular vectors of phi on the box's interval, Slepian's
functions for these weights) fall to nothing there one after the other, and so do their products over the axes: some
hundreds of ten thousand. With Q these products' directions, C the centred second moment and C11 = Q' C Q,

    lambda_i(C11) <= lambda_i(C) <= lambda_i(C11) + tr C22,      tr C22 <= N tau

(Cauchy's interlacing; Aronszajn's inequality, as C is semidefinite), tau the sum, over the products left out, of the
largest values of their squares on the box. Products of two of the functions are trigonometric polynomials of degree
2 M, so C11 follows from the t_j that the moment has: no row is looked at again. On a grid of more than 4 M points an
axis the moment's symbol is a weight, which integrates those polynomials exactly, and
C11 = F' diag(symbol) F - mean mean' / N: that is multiplied with, and never formed. F, the functions'
values on the grid, is a product over the axes: one matrix product each way for each axis. These take a fraction of the
time of FFTs.

The largest values: on an interval of half-length r a trigonometric polynomial g of degree M differs from a polynomial
of degree q - 1 by at most e = 2 (M r / 2)^q / q! max |g| (Bernstein's inequality, and Lagrange's remainder), and such a
polynomial is nowhere larger than 1 / cos(pi / 8) times its largest value at 4 q Chebyshev nodes (Ehlich, Zeller 1964).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, lgamma, log, log2, pi, prod, sqrt
from typing import NamedTuple

import numpy as np

from ..base import parallel
from ..base.caching import cached_property
from ..base.rounding import UNIT, rounding_factor
from .transforms import along

__all__ = [
    "LEAST",
    "MOST",
    "Compressed",
    "GridProduct",
    "compressed_moment",
    "expected_directions",
]

LEAST = {2: 600, 3: 2500}
"""Features from which on fewer directions are looked for, by the number of axes: of one axis FFTs are as fast."""
MOST = {2: 3000, 3: 60_000}
"""Directions that are kept, at most."""


@dataclass(frozen=True)
class Compressed:
    """A centred second moment in some of its directions.

    Attributes
    ----------
    size : int
        Directions.
    product : callable
        From how many threads may work (by default one), to a `GridProduct`.
    lift : callable
        (size, c) in these directions -> (D, c) among all features.
    left_out : float
        Bound on the trace of the moment in all other directions.
    """

    size: int
    product: Callable[..., GridProduct]
    lift: Callable[[np.ndarray], np.ndarray]
    left_out: float


def expected_directions(reaches: list[float]) -> float:
    """About how many there are for axes with these M times the half-length of the box, at tolerances near 1e-6."""
    # of all products those in a corner of the box of numbers; of two axes the corner holds more of it
    return (0.3 if len(reaches) == 3 else 0.84) * prod(_expected_functions(reach) for reach in reaches)


def _expected_functions(reach: float) -> float:
    return 2.0 / pi * reach + 7.0


class _Axis(NamedTuple):
    """Functions along an axis, the largest on the box's interval first.

    Attributes
    ----------
    modes : ndarray (2 M + 1, r), complex
        v_a, orthonormal, Hermitian: the functions are real.
    root : ndarray (2 M + 1,)
        What a mode is multiplied by: the functions are sum_m v_m root_m exp(i m x).
    largest : ndarray (r,)
        Bounds on their absolute values on the interval.
    """

    modes: np.ndarray
    root: np.ndarray
    largest: np.ndarray


def compressed_moment(
    sums: np.ndarray,
    count: float,
    lines: list[np.ndarray],
    inside: np.ndarray,
    tau: float,
    unpack: Callable[[np.ndarray], np.ndarray],
    symbol: Callable[[], np.ndarray],
) -> Compressed | None:
    """The moment in as few directions as leave at most ``tau`` a row; None where these are too many.

    Parameters
    ----------
    sums : ndarray (2 M_1 + 1, 4 M_2 + 1, ...), complex
        t_j for 0 <= j_1 <= 2 M_1, |j_c| <= 2 M_c.
    count : float
        Rows, or the sum of their weights.
    lines : list of ndarray (2 M_c + 1,)
        Weights by axis: a mode weighs their product.
    inside : ndarray (d,)
        Half-lengths of the box, in phases.
    tau : float
    unpack : callable
        Half spectra (c, M_1 + 1, ...) of unit features -> (D, c), real.
    symbol : callable
        Returns sum_j t_j exp(i j x) on a grid of more than 4 M_c points by axis.
    """
    most_directions = MOST[len(lines)]
    if expected_directions([len(line) // 2 * float(r) for line, r in zip(lines, inside)]) > 2.0 * most_directions:
        return None
    axes = [_functions(line, float(r)) for line, r in zip(lines, inside, strict=True)]
    chosen, left_out = _chosen([axis.largest for axis in axes], tau, most_directions)
    if chosen is None:
        return None
    directions = _Directions(sums, count, axes, chosen)
    left_out *= count * (1.0 + 1e-9)
    lift = directions.lift(unpack)
    return Compressed(len(chosen), lambda n_threads=1: GridProduct(directions, symbol(), n_threads), lift, left_out)


class _Directions:
    """Products of the axes' functions, and the moment's sums."""

    def __init__(self, sums: np.ndarray, count: float, axes: list[_Axis], chosen: np.ndarray):
        self.conjugate, self.count = np.conj(sums), max(count, 1e-300)
        self.half = [len(axis.root) // 2 for axis in axes]
        numbers = np.unravel_index(chosen, tuple(len(axis.largest) for axis in axes))
        self.sizes = tuple(int(number.max()) + 1 for number in numbers)
        odd = [np.any(axis.modes[:, :size].imag, axis=0) for axis, size in zip(axes, self.sizes)]
        self.n_even = [int(np.count_nonzero(~flags)) for flags in odd]
        sequences = [np.argsort(flags, kind="stable") for flags in odd]
        self.waves = [axis.modes[:, sequence] for axis, sequence in zip(axes, sequences)]
        """Modes of each axis's functions, even ones first."""
        self.scaled = [wave * axis.root[:, None] for wave, axis in zip(self.waves, axes)]
        self.numbers = tuple(np.argsort(sequence)[number] for sequence, number in zip(sequences, numbers))
        self.places = np.ravel_multi_index(self.numbers, self.sizes)
        """Of the products kept, among all of ``sizes``."""

    @cached_property
    def total(self) -> np.ndarray:
        """The sum of the features of all rows."""
        middle = (slice(0, self.half[0] + 1), *(slice(m, 3 * m + 1) for m in self.half[1:]))
        return _summed(np.ascontiguousarray(self.conjugate[middle]), self.scaled)[self.numbers]

    def lift(self, unpack: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        modes = [np.hstack([wave[:, :even].real, wave[:, even:].imag]) for wave, even in zip(self.waves, self.n_even)]

        def lift(V: np.ndarray) -> np.ndarray:
            # v_a is real for an even function, imaginary for an odd one. Of products, those that are real are even in
            # all axes together, the imaginary ones odd: they are summed as if all were real, and then parted
            n_odd = sum((number >= even).astype(np.intp) for number, even in zip(self.numbers, self.n_even))
            parts = np.zeros((V.shape[1], *self.sizes))
            parts.reshape(len(parts), -1)[:, self.places] = V.T * np.array([0.5, 0.5, -0.5, -0.5])[n_odd]
            for axis in range(len(self.sizes), 0, -1):
                parts = along(modes[axis - 1], parts, axis)
            images = parts.reshape(len(parts), -1)[:, ::-1].reshape(parts.shape)
            parts, images = parts[:, self.half[0] :], images[:, self.half[0] :]
            spectra = np.empty(parts.shape, dtype=np.complex128)
            np.add(parts, images, out=spectra.real)
            np.subtract(parts, images, out=spectra.imag)
            return unpack(spectra)

        return lift


class GridProduct:
    """Products with the moment by the functions' values on the grid of a symbol, axis by axis."""

    def __init__(self, directions: _Directions, symbol: np.ndarray, n_threads: int):
        self.directions, self.symbol, self.n_threads = directions, symbol, n_threads
        self.values = [
            _values_on_axis(wave, even, n) for wave, even, n in zip(directions.scaled, directions.n_even, symbol.shape)
        ]

    @property
    def error(self) -> float:
        """Bound on |computed C11 u - C11 u| / |u|.

        Values of unit vectors are at most (F F')_gg^(1/2), g a point of the grid, and so are those that |F| gives for
        their absolute values. An error of a share e in these, before or after they are multiplied with the symbol s,
        is one of at most e sum_g |s_g| (F F')_gg in the product, and an error of s one of sum_g |error_g| (F F')_gg.
        """
        symbol, total = self.symbol, self.directions.total
        largest, share = 1.0, 16.0
        for wave, F in zip(self.directions.scaled, self.values):
            largest *= float(np.einsum("ij,ij->i", F, F).max()) * len(F)
            terms = float(np.linalg.norm(np.abs(wave).sum(axis=0)) / np.linalg.norm(wave))  # errors of F itself
            share += sum(map(rounding_factor, F.shape)) + 2.0 * rounding_factor(len(wave)) * terms
        share *= float(np.abs(symbol).mean())
        share += (4.0 * log2(symbol.size) + 32.0) * float(np.linalg.norm(symbol)) / sqrt(symbol.size)
        return UNIT * (share * largest + 64.0 * float(total @ total) / self.directions.count)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        out, total = np.empty((U.shape[1], len(U))), self.directions.total
        along_mean = total @ U / self.directions.count
        parts = parallel.columns(len(out), len(out) * self._multiplications)

        def task(i: int) -> None:
            part = parts[i]
            self._on_columns(U[:, part].T, out[part])
            for image, share in zip(out[part], along_mean[part]):
                image -= total * share

        parallel.each(task, len(parts), n_threads=self.n_threads)
        return out.T

    @property
    def _multiplications(self) -> float:
        """About those for one column."""
        sizes, shape = self.directions.sizes, self.symbol.shape
        return sum(float(prod(sizes[: axis + 1])) * prod(shape[axis:]) for axis in range(len(sizes)))

    def _on_columns(self, rows: np.ndarray, out: np.ndarray) -> None:
        """What the moment that is not centred makes of each of these ``rows``."""
        directions, sizes, symbol, shape = self.directions, self.directions.sizes, self.symbol, self.symbol.shape
        # numbers of functions along the first axes, of points along the last ones
        parts = [np.empty((*sizes[:axis], *shape[axis:])) for axis in range(1, len(sizes) + 1)]
        coefficients, weights = np.zeros(sizes), symbol.reshape(shape[0], -1)
        for u, image in zip(rows, out):
            coefficients.reshape(-1)[directions.places] = u
            values = coefficients
            for axis in range(len(sizes) - 1, 0, -1):
                values = along(self.values[axis], values, axis, parts[axis - 1])
            points = self.values[0] @ values.reshape(sizes[0], -1)
            points *= weights
            np.matmul(self.values[0].T, points, out=parts[0].reshape(sizes[0], -1))
            values = parts[0]
            for axis in range(1, len(sizes)):
                values = along(self.values[axis].T, values, axis, parts[axis])
            image[:] = values.reshape(-1)[directions.places]

    def matrix(self) -> np.ndarray:
        """Of all products, a column each."""
        return self.matmat(np.eye(len(self.directions.places)))


def _values_on_axis(wave: np.ndarray, n_even: int, n: int) -> np.ndarray:
    """Values (n, r) of functions with these modes, even ones first, on n points from 0 on, over the root of n."""
    m = len(wave) // 2
    phases = np.outer(np.arange(n), np.arange(m + 1)) % n * (2.0 * pi / n)
    upper = wave[m:] * (2.0 / sqrt(n))
    upper[0] *= 0.5
    return np.hstack([np.cos(phases) @ upper.real[:, :n_even], -np.sin(phases) @ upper.imag[:, n_even:]])


def _chosen(largest: list[np.ndarray], tau: float, most: int) -> tuple[np.ndarray | None, float]:
    """Numbers of the products to keep, and a bound on the sum of the squares of the others."""
    squares = np.ones(1)
    for values in largest:
        squares = np.multiply.outer(squares, values**2)
    squares = squares.ravel()
    order = np.argsort(squares)
    sums = np.cumsum(squares[order])
    left = int(np.searchsorted(sums, tau, side="right"))
    if not 0 < len(squares) - left <= most:
        return None, 0.0
    return np.sort(order[left:]), float(sums[left - 1]) * (1.0 + 1e-9) if left else 0.0


def _functions(line: np.ndarray, r: float) -> _Axis:
    """All functions of an axis: even ones of cosines, odd ones of sines."""
    m = len(line) // 2
    root, order = np.sqrt(line), 8
    # largest of |g| anywhere is sum_m |v_m| root_m <= (sum_m w_m)^(1/2)
    reach = log(max(m * r / 2.0, 1e-300))
    while log(2.0) + order * reach - lgamma(order + 1.0) > log(UNIT):
        order += 2
    left = UNIT * sqrt(float(line.sum()))
    nodes = r * np.sin(np.pi / 2 * (2 * np.arange(2 * order) + 1) / (4 * order))  # those above 0 of 4 q: parity
    angle = np.outer(nodes, np.arange(1.0, m + 1.0))
    scale = sqrt(2.0) * root[m + 1 :]
    even = np.hstack([np.full((len(nodes), 1), root[m]), scale * np.cos(angle)])
    modes = np.zeros((2 * m + 1, 2 * m + 1), dtype=np.complex128)
    largest = np.zeros(2 * m + 1)
    V = _right_vectors(even)
    modes[m:, : m + 1] = sqrt(0.5) * V
    modes[m, : m + 1] = V[0]
    modes[:m, : m + 1] = modes[:m:-1, : m + 1]
    largest[: m + 1] = np.abs(even @ V).max(axis=0)
    if m:
        odd = scale * np.sin(angle)
        V = _right_vectors(odd)
        modes[m + 1 :, m + 1 :] = -1j * sqrt(0.5) * V
        modes[:m, m + 1 :] = np.conj(modes[:m:-1, m + 1 :])
        largest[m + 1 :] = np.abs(odd @ V).max(axis=0)
    largest = (largest + left + 1e-14 * sqrt(float(line.sum()))) / cos(pi / 8) + left
    order_of = np.argsort(-largest, kind="stable")
    return _Axis(modes[:, order_of], root, largest[order_of])


def _right_vectors(A: np.ndarray) -> np.ndarray:
    """All of them, as columns; of the left ones, where rows are many, no more than there are columns are computed."""
    return np.linalg.svd(A, full_matrices=len(A) < A.shape[1])[2].T


def _summed(sums: np.ndarray, modes: list[np.ndarray]) -> np.ndarray:
    """sum_j p1_j1 p2_j2 ... sums_j for real functions with these modes, ``sums`` with 0 <= j_1 only."""
    part = sums
    for axis in range(sums.ndim - 1, 0, -1):
        part = np.moveaxis(np.tensordot(modes[axis], part, axes=(0, axis)), 0, axis)
    upper = 2.0 * modes[0][len(modes[0]) // 2 :]
    upper[0] *= 0.5
    part = part.reshape(len(part), -1)
    table = upper.real.T @ part.real - upper.imag.T @ part.imag
    return table.reshape(-1, *(wave.shape[1] for wave in modes[1:]))
