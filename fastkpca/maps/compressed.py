"""The second moment of Fourier features in the few directions that a box of rows has.

Modes belong to the whole period, and rows fill only a box of it. Along an axis with features phi(x), 2 M + 1 of them,
the functions v.phi(x) of an orthonormal basis v_a (right singular vectors of phi on the box's interval, Slepian's
functions for these weights) fall to nothing there one after the other, and so do their products over the axes: some
hundreds of ten thousand. With Q these products' directions, C the centred second moment and C11 = Q' C Q,

    lambda_i(C11) <= lambda_i(C) <= lambda_i(C11) + tr C22,      tr C22 <= N tau

(Cauchy's interlacing; Aronszajn's inequality, as C is semidefinite), tau the sum, over the products left out, of the
largest values of their squares on the box. Products of two of the functions are trigonometric polynomials of degree
2 M, so entries of C11 are sums over the t_j that the moment has: no row is looked at again.

The largest values: on an interval of half-length r a trigonometric polynomial g of degree M differs from a polynomial
of degree q - 1 by at most e = 2 (M r / 2)^q / q! max |g| (Bernstein's inequality, and Lagrange's remainder), and such a
polynomial is nowhere larger than 1 / cos(pi / 8) times its largest value at 4 q Chebyshev nodes (Ehlich, Zeller 1964).
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, lgamma, log, pi, prod, sqrt
from typing import NamedTuple

import numpy as np

from ..base.rounding import UNIT

__all__ = ["LEAST", "MOST", "Compressed", "compressed_moment", "expected_directions"]

LEAST = 2500
"""Features from which on fewer directions are looked for: an iteration on fewer features costs as little."""
MOST = 1600
"""Directions that are kept, at most."""
MOST_PAIRS = 1 << 23
"""Numbers in the table of products of two functions by axis."""
REMAINDER = 1e-14


class Compressed(NamedTuple):
    """A centred second moment in some of its directions.

    Attributes
    ----------
    matrix : ndarray (k, k)
    lift : callable
        (k, c) in these directions -> (D, c) among all features.
    left_out : float
        Bound on the trace of the moment in all other directions.
    error : float
        Bound on the norm of the matrix's rounding.
    """

    matrix: np.ndarray
    lift: Callable[[np.ndarray], np.ndarray]
    left_out: float
    error: float


def expected_directions(reaches: list[float]) -> float:
    """About how many there are for axes with these M times the half-length of the box, at tolerances near 1e-6."""
    return 0.3 * prod(2.0 / pi * reach + 7.0 for reach in reaches)


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
) -> Compressed | None:
    """The moment in as few directions as leave at most ``tau`` a row; None where these are many.

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
    """
    if expected_directions([len(line) // 2 * float(r) for line, r in zip(lines, inside)]) > 2.0 * MOST:
        return None
    axes = [_functions(line, float(r)) for line, r in zip(lines, inside, strict=True)]
    chosen, left_out = _chosen([axis.largest for axis in axes], tau)
    if chosen is None:
        return None
    numbers: tuple[np.ndarray, ...] = np.unravel_index(chosen, tuple(len(axis.largest) for axis in axes))
    waves = [axis.modes[:, : number.max() + 1] for axis, number in zip(axes, numbers)]
    scaled = [wave * axis.root[:, None] for wave, axis in zip(waves, axes)]
    sizes = [wave.shape[1] for wave in waves]
    pairs = [np.tril_indices(size) for size in sizes]
    if prod(len(first) for first, _ in pairs) > MOST_PAIRS:
        return None
    conjugate = np.conj(sums)
    table = _summed(conjugate, [_products(wave, *pair) for wave, pair in zip(scaled, pairs)])
    flat = np.zeros((len(chosen), len(chosen)), dtype=np.intp)
    for number, size, (first, second) in zip(numbers, sizes, pairs):
        place = np.empty((size, size), dtype=np.intp)
        place[first, second] = place[second, first] = np.arange(len(first))
        flat *= len(first)
        flat += place[number[:, None], number]
    matrix = table.ravel()[flat]
    half = [len(line) // 2 for line in lines]
    middle = (slice(0, half[0] + 1), *(slice(m, 3 * m + 1) for m in half[1:]))
    mean = _summed(np.ascontiguousarray(conjugate[middle]), scaled)[numbers]
    matrix -= np.outer(mean, mean / max(count, 1e-300))

    def lift(V: np.ndarray) -> np.ndarray:
        spectra = np.zeros((V.shape[1], *sizes), dtype=np.complex128)
        spectra.reshape(len(spectra), -1)[:, np.ravel_multi_index(numbers, tuple(sizes))] = V.T
        for c in range(len(sizes) - 1, -1, -1):
            wave = waves[c][half[0] :] if c == 0 else waves[c]
            spectra = np.moveaxis(np.tensordot(wave, spectra, axes=(1, c + 1)), 0, c + 1)
        return unpack(np.ascontiguousarray(spectra))

    # sum_j |p_j| <= w for the coefficients p of a product of two functions, so an entry errs by as many units of the
    # count as its sums have terms
    terms = sum(4 * m + 1 for m in half) + 64.0
    error = len(chosen) * 8.0 * terms * UNIT * count
    return Compressed(matrix, lift, count * left_out * (1.0 + 1e-9), error)


def _chosen(largest: list[np.ndarray], tau: float) -> tuple[np.ndarray | None, float]:
    """Numbers of the products to keep, and a bound on the sum of the squares of the others."""
    squares = np.ones(1)
    for values in largest:
        squares = np.multiply.outer(squares, values**2)
    squares = squares.ravel()
    order = np.argsort(squares)
    sums = np.cumsum(squares[order])
    left = int(np.searchsorted(sums, tau, side="right"))
    if not 0 < len(squares) - left <= MOST:
        return None, 0.0
    return np.sort(order[left:]), float(sums[left - 1]) * (1.0 + 1e-9) if left else 0.0


def _functions(line: np.ndarray, r: float) -> _Axis:
    """All functions of an axis: even ones of cosines, odd ones of sines."""
    m = len(line) // 2
    root, order = np.sqrt(line), 8
    # largest of |g| anywhere is sum_m |v_m| root_m <= (sum_m w_m)^(1/2)
    reach = log(max(m * r / 2.0, 1e-300))
    while log(2.0) + order * reach - lgamma(order + 1.0) > log(REMAINDER):
        order += 2
    left = REMAINDER * sqrt(float(line.sum()))
    nodes = r * np.sin(np.pi / 2 * (2 * np.arange(2 * order) + 1) / (4 * order))  # those above 0 of 4 q: parity
    angle = np.outer(nodes, np.arange(1.0, m + 1.0))
    scale = sqrt(2.0) * root[m + 1 :]
    even = np.hstack([np.full((len(nodes), 1), root[m]), scale * np.cos(angle)])
    modes = np.zeros((2 * m + 1, 2 * m + 1), dtype=np.complex128)
    largest = np.zeros(2 * m + 1)
    V = np.linalg.svd(even)[2].T
    modes[m:, : m + 1] = sqrt(0.5) * V
    modes[m, : m + 1] = V[0]
    modes[:m, : m + 1] = modes[:m:-1, : m + 1]
    largest[: m + 1] = np.abs(even @ V).max(axis=0)
    if m:
        odd = scale * np.sin(angle)
        V = np.linalg.svd(odd)[2].T
        modes[m + 1 :, m + 1 :] = -1j * sqrt(0.5) * V
        modes[:m, m + 1 :] = np.conj(modes[:m:-1, m + 1 :])
        largest[m + 1 :] = np.abs(odd @ V).max(axis=0)
    largest = (largest + left + 1e-14 * sqrt(float(line.sum()))) / cos(pi / 8) + left
    order_of = np.argsort(-largest, kind="stable")
    return _Axis(modes[:, order_of], root, largest[order_of])


def _products(waves: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Modes -2 M to 2 M of the products of two functions: (4 M + 1, pairs)."""
    m = len(waves) // 2
    size = 4 * m + 1
    padded = np.zeros((size, waves.shape[1]), dtype=np.complex128)
    padded[m : 3 * m + 1] = waves
    values = np.fft.irfft(np.fft.ifftshift(padded, axes=0)[: 2 * m + 1], size, axis=0, norm="forward")
    upper = np.fft.rfft(values[:, first] * values[:, second], axis=0, norm="forward")
    return np.concatenate([np.conj(upper[:0:-1]), upper])


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
