"""The second moment of Fourier features in the few directions that a box of rows has.

Modes belong to the whole period, and rows fill only a box of it. Take an axis with the 2 M + 1 features phi(x), and the
right singular vectors v_a of phi on the box's interval. The functions v_a.phi(x) are Slepian's functions for these
weights: their norms on the interval fall fast with a, and so do those of their products over the axes. A few hundred of
ten thousand such products are kept. With Q these products' directions, C the centred second moment and C11 = Q' C Q,

    lambda_i(C11) <= lambda_i(C) <= lambda_i(C11) + tr C22,      tr C22 <= N tau

(Cauchy's interlacing; Aronszajn's inequality, as C is semidefinite), tau the sum, over the products left out, of the
largest values of their squares on the box.

The largest values: on an interval of half-length r a trigonometric polynomial g of degree M differs from a polynomial
of degree q - 1 by at most e = 2 (M r / 2)^q / q! max |g| (Bernstein's inequality, and Lagrange's remainder), and such a
polynomial is nowhere larger than 1 / cos(pi / 8) times its largest value at 4 q Chebyshev nodes (Ehlich, Zeller 1964).

C11 is that of weighted nodes in the box. A product of two functions is a combination of waves with m <= 2 M, so it
needs the sums over all rows of these alone. With P the waves' roots (w * w)^(1/2), w the weights, times themselves at
some places of an axis, a few columns of P span the others nearly (QR with pivoting): nodes whose weights give the same
sums, the fewer the smoother the rows lie. By how much these sums miss is known afterwards, and is the error of C11.

It is for three axes: 16 problems take 1.5 times as long without it (median; benchmarks/speed/special_cases.py). On one
or two axes products of all features are as fast, or faster (.85).
"""

from __future__ import annotations

from functools import reduce
from math import cos, lgamma, log, pi, prod, sqrt

import numpy as np
import scipy  # scipy.linalg is loaded where it is used first

from ..base.rounding import UNIT, rounding_factor
from .transforms import along, waves_at


class Directions:
    """Products of functions of the axes.

    Parameters
    ----------
    bases : list of ndarray (2 M_c + 1, r_c)
        Orthonormal combinations of an axis's features.
    places : ndarray (k,)
        Numbers of the products that are kept.
    left_out : float
        Bound on the sum of the squares of the others, for a row of the box.
    """

    def __init__(self, bases: list[np.ndarray], places: np.ndarray, left_out: float):
        self.bases, self.places, self.left_out = bases, places, left_out
        self.sizes = tuple(basis.shape[1] for basis in bases)

    def lift(self, V: np.ndarray) -> np.ndarray:
        """(k, c) in these directions -> (D, c) among all features."""
        parts = np.zeros((V.shape[1], prod(self.sizes)))
        parts[:, self.places] = V.T
        parts = parts.reshape(-1, *self.sizes)
        for axis, basis in enumerate(self.bases, 1):
            parts = along(basis, parts, axis)
        return parts.reshape(len(parts), -1).T

    def lowered(self, v: np.ndarray) -> np.ndarray:
        """Q' v for a vector of all features."""
        part = v.reshape(1, *(len(basis) for basis in self.bases))
        for axis, basis in enumerate(self.bases, 1):
            part = along(basis.T, part, axis)
        return np.asarray(part.ravel()[self.places])


def expected_functions(reach: float) -> float:
    """Approximate number of directions of an axis, with this M times the half-length of the box, at tolerances near
    1e-6.
    """
    return 2.0 / pi * reach + 7.0


def directions(roots: list[np.ndarray], inside: np.ndarray, tau: float) -> Directions | None:
    """The fewest directions with a residual of at most ``tau`` a row; None where all are needed.

    Parameters
    ----------
    roots : list of ndarray (2 M_c + 1,)
        Factors of the waves of an axis.
    inside : ndarray (d,)
        Half-lengths of the box, in phases.
    tau : float
    """
    if prod(expected_functions(len(root) // 2 * float(r)) for root, r in zip(roots, inside)) > prod(map(len, roots)):
        return None
    axes = [_functions(root, float(r)) for root, r in zip(roots, inside, strict=True)]
    squares = reduce(np.multiply.outer, [largest**2 for _, largest in axes])
    order = np.argsort(squares, axis=None)
    sums = np.cumsum(squares.ravel()[order])
    left = int(np.searchsorted(sums, tau, side="right"))
    if left in (0, len(order)):
        return None
    numbers = np.unravel_index(np.sort(order[left:]), squares.shape)
    sizes = tuple(int(number.max()) + 1 for number in numbers)
    bases = [basis[:, :size] for (basis, _), size in zip(axes, sizes)]
    return Directions(bases, np.ravel_multi_index(numbers, sizes), float(sums[left - 1]) * (1.0 + 1e-9))


def _functions(root: np.ndarray, r: float) -> tuple[np.ndarray, np.ndarray]:
    """All functions of an axis, orthonormal (2 M + 1, 2 M + 1), and bounds on their absolute values, falling."""
    m, order = len(root) // 2, 8
    largest_anywhere = float(np.linalg.norm(root[: m + 1]))  # of a unit vector: (sum_m w_m)^(1/2)
    reach = log(max(m * r / 2.0, 1e-300))
    while log(2.0) + order * reach - lgamma(order + 1.0) > log(UNIT):
        order += 2
    nodes = r * np.cos(pi * (2.0 * np.arange(4 * order) + 1.0) / (8.0 * order))
    values = waves_at(nodes, m) * root
    basis = np.linalg.svd(values, full_matrices=len(values) < len(root))[2].T
    left = UNIT * largest_anywhere
    largest = (np.abs(values @ basis).max(axis=0) + left + 1e-14 * largest_anywhere) / cos(pi / 8.0) + left
    falling = np.argsort(-largest, kind="stable")
    return basis[:, falling], largest[falling]


def quadrature(
    sums: np.ndarray, count: float, roots: list[np.ndarray], inside: np.ndarray, most: float
) -> tuple[list[np.ndarray], np.ndarray, float]:
    """Few nodes in the box at which the waves have the ``sums`` that they have over rows.

    Parameters
    ----------
    sums : ndarray (4 M_1 + 1, ...)
        Sums over the rows of all waves with m <= 2 M by axis.
    count : float
        Rows, or the sum of their weights.
    roots : list of ndarray (4 M_c + 1,)
        Roots of what they weigh in the square of a moment's norm.
    inside : ndarray (d,)
        Half-lengths of the box, in phases.
    most : float
        Error to aim at.

    Returns
    -------
    nodes : list of ndarray
        By axis.
    weights : ndarray (n_1, n_2, ...)
        Weights of the nodes, in place of rows.
    error : float
        Bound on the Frobenius norm of what the second moment differs by.
    """
    weighted = sums * reduce(np.multiply.outer, roots)
    part, nodes, values, triangles = weighted, [], [], []
    for axis, (root, r) in enumerate(zip(roots, inside)):
        m = len(root) // 2
        many = len(root) + int(4.0 * m * r / pi)  # more than any rows need
        places = r * np.cos(pi * (np.arange(many) + 0.5) / many)
        at_places = waves_at(places, m) * root
        Q, R, order = scipy.linalg.qr(at_places.T, mode="economic", pivoting=True)
        part = along(Q.T, part, axis)
        squares = np.sum(part**2, axis=tuple(c for c in range(len(roots)) if c != axis))
        left = np.sqrt(np.cumsum(squares[::-1])[::-1])
        diagonal = np.abs(np.diagonal(R))
        n = max(1, int(np.count_nonzero((left > most / sqrt(len(roots))) & (diagonal * count > most))))
        part = np.take(part, range(n), axis)
        nodes.append(places[order[:n]])
        values.append(at_places[order[:n]])
        triangles.append(R[:n, :n])
    # those of rows are no larger, but for the errors of their sums, which small pivots would make large weights of
    part[count * reduce(np.multiply.outer, [np.abs(np.diagonal(R)) for R in triangles]) <= most] = 0.0
    for axis, R in enumerate(triangles):
        solved = scipy.linalg.solve_triangular(R, np.moveaxis(part, axis, 0).reshape(len(R), -1))
        part = np.moveaxis(solved.reshape(len(R), *np.delete(part.shape, axis)), 0, axis)
    weights = np.ascontiguousarray(part)
    for axis, waves in enumerate(values):
        part = along(waves.T, part, axis)
    # of the phases m x, x a node: that of a wave with m is at most 4 pi m
    rounding = 64.0
    for waves, root in zip(values, roots):
        m = len(root) // 2
        modes = np.concatenate([np.arange(m + 1.0), np.arange(1.0, m + 1.0)])
        rounding += rounding_factor(len(waves)) + 4.0 * pi * float(np.linalg.norm(modes * root) / np.linalg.norm(root))
    size = float(np.abs(weights).sum()) * prod(float(np.linalg.norm(root)) for root in roots)
    return nodes, weights, float(np.linalg.norm(weighted - part)) + UNIT * rounding * size
