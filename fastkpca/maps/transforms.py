"""Sums of exponentials at scattered points, both ways: the transforms behind Fourier features.

    type 1:  t_m  = sum_i u_i exp(-i m.p_i)          for all |m_c| <= M_c
    type 2:  f_i  = sum_m c_m exp(+i m.p_i)          c Hermitian, so f is real

for points p in [-pi, pi]^d, d = 1, 2, 3. A spectrum is Hermitian (c_-m is conj c_m), so only the half with m_1 >= 0 is
kept, shape (columns, M_1 + 1, 2 M_2 + 1, ...), its plane m_1 = 0 whole.

The cheapest of these is taken; ``error_bound`` holds for all of them.

- Boxes: points are spread onto Chebyshev nodes of a grid of boxes (``_core.boxes``) that covers them, and exponentials
  are needed at nodes only, axis by axis: as cosines and sines of distances from the grid's middle. Their interpolation
  errs by at most 2 (M r / 2)^q / q! for q nodes in a box of side 2 r (Lagrange's remainder).
  The less of the period the points fill, the fewer nodes that takes.
- finufft (A. H. Barnett, J. Magland, L. af Klinteberg, SIAM J. Sci. Comput. 41, 2019; the extra ``fastkpca[nufft]``).
- Sums of exponentials by GEMM, exact: for few points, and without finufft.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from math import factorial, gamma, inf, isqrt, log10, pi, prod, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.special is loaded where it is used first

from .._core.boxes import MOST_NODES, Grid, Points
from ..base import parallel
from ..base.caching import cached_property
from ..base.rounding import UNIT

__all__ = [
    "SMALLEST_EPS",
    "WEIGHTED_SAFETY",
    "Nodes",
    "about",
    "along",
    "cost",
    "eps_for",
    "error_bound",
    "finufft_cost",
    "gaussian_mean_modes",
    "has_finufft",
    "mean_modes",
    "modes_of",
    "nodes_inside",
    "type1",
    "type2",
]

Lines = Sequence[np.ndarray]

SMALLEST_EPS, LARGEST_EPS = 1e-14, 1e-3
FINE = 1e-9
"""Below this eps finufft takes a grid of twice the modes; from there on it may take one of 1.25 times as many where the
points are dense, and then errs by several times more. Which of the two is its own choice, so the worse one counts."""
SAFETY_FINE, SAFETY_COARSE = 10.0, 36.0
"""Largest |error| over sum |u| (type 1) or sum |c| (type 2) of finufft, as a multiple of the eps asked for, for each
axis (its kernel is a product over axes). Measured against exponentials themselves, beside the rounding of phases, with
either grid forced, all modes of single sources, M from 1 to 2000, finufft 2.2 and 2.5: at most 7.3, 9.8 and 12.5 for
d = 1, 2, 3 and a grid of twice the modes, 23.4, 30.6 and 33.8 for the other."""
WEIGHTED_SAFETY = 3.0
"""The same where the weights of a Gaussian meet the modes, whose errors lie at the rim, whatever d: at most 2.2 was
measured on either grid, for M from 1 to 2000 and eps from 1e-14 to 1e-3, at equal coordinates too, where errors add.
Of the root mean square, with weights that fall to eps at the rim or lower: at most 2.47 (d = 3, M = 2)."""
MANY = 1 << 17
"""Points times columns of a call that takes long enough to be worth a thread of its own; points that boxes are made for
which many tiles share."""
CHUNK = 1 << 21  # numbers in the widest array of the GEMM way
CACHED = 1 << 18  # numbers that a core's cache holds, about


def error_bound(half: tuple[int, ...], eps: float, safety: float | None = None) -> float:
    """Bound on |error of t_m| / sum |u| and |error of f_i| / sum |c|; beside the rounding of the sums themselves.

    With ``safety=WEIGHTED_SAFETY`` on the mean of the modes' errors, weighted by a Gaussian that falls to eps at M, and
    on the root mean square. Our own boxes keep it for any weights (``lines`` of ``type1``).

    4 pi u M_c a coordinate is the rounding of the phases m p, |p| <= pi known to a few u.
    """
    eps = _clip(eps)
    if safety is None:
        safety = len(half) * (SAFETY_FINE if eps < FINE else SAFETY_COARSE)
    return safety * eps + (4.0 * np.pi * sum(half) + 64.0) * UNIT


def eps_for(error: float, d: int, safety: float | None = None) -> float:
    """The largest eps at which transforms err by at most ``error``, beside rounding, or the smallest there is.

    ``safety`` as in ``error_bound``.
    """
    if safety is not None:
        return _clip(error / safety)
    eps = error / (SAFETY_COARSE * d)
    return _clip(eps if eps >= FINE else min(error / (SAFETY_FINE * d), 0.99 * FINE))


def _clip(eps: float) -> float:
    return float(min(max(eps, SMALLEST_EPS), LARGEST_EPS))


def has_finufft() -> bool:
    try:
        import finufft  # noqa: F401
    except ImportError:
        return False
    return True


def type1(
    P: np.ndarray,
    U: np.ndarray | None,
    half: tuple[int, ...],
    eps: float,
    lines: Lines | None = None,
    nodes: Nodes | None = None,
) -> np.ndarray:
    """Half spectra of the columns of U (n, k) at the points P (d, n); U None: one column of ones.

    With ``nodes`` (from ``nodes_inside``) all points lie inside, and what one of them adds does not depend on the
    others, but for rounding: spectra of parts add up to that of the whole.

    With ``lines`` (the sums of the weights w_m >= 0 of the modes, by axis), only the weighted errors of the modes are
    as ``error_bound`` says with ``WEIGHTED_SAFETY``.
    """
    modes = None if lines is None else mean_modes(lines)
    k = 1 if U is None else U.shape[1]
    nodes = nodes or _nodes_for(P, half, eps, k, modes)
    if nodes.boxes is not None and P.shape[1]:
        return _boxes_type1(P, np.ones((P.shape[1], 1)) if U is None else U, nodes)
    if _by_finufft(half, eps, P.shape[1], k):
        return _finufft_type1(P, U, half, eps)
    return _direct_type1(P, np.ones((P.shape[1], 1)) if U is None else U, half)


def type2(
    P: np.ndarray,
    spectra: np.ndarray,
    half: tuple[int, ...],
    eps: float,
    modes: np.ndarray | None = None,
    nodes: Nodes | None = None,
) -> np.ndarray:
    """Values (n, k) at the points P (d, n) of k Hermitian half spectra.

    With ``modes`` (from ``modes_of``) the spectra are w_m^(1/2) c_m for the weights w of a Gaussian, and the error of a
    column is at most that of ``error_bound`` with ``WEIGHTED_SAFETY`` times its size. With ``nodes``
    all points lie inside.
    """
    n, k = P.shape[1], len(spectra)
    nodes = nodes or _nodes_for(P, half, eps, k, modes)
    if nodes.boxes is not None and n:
        return _boxes_type2(P, spectra, nodes)
    return _finufft_type2(P, spectra, half, eps) if _by_finufft(half, eps, n, k) else _direct_type2(P, spectra, half)


def _by_finufft(half: tuple[int, ...], eps: float, n: int, k: int) -> bool:
    """Whether that is there, and faster than sums of exponentials."""
    return n > 0 and has_finufft() and _finufft_cost(half, eps, n, k) < _direct_cost(half, n, k)


def _run(transform: Callable[..., np.ndarray], work: int, *arrays: Any, **options: Any) -> np.ndarray:
    """One of finufft's on one thread, in a thread of its own where its ``work`` takes long.

    The pool outside runs several tiles, and finufft's own threads add up in an order that varies.
    """

    def call() -> np.ndarray:
        with parallel.without_fork():  # finufft locks what all its plans share
            return transform(*arrays, nthreads=1, **options)

    return parallel.interruptible(call) if work > MANY else call()


def _transforms(d: int) -> tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]:
    """finufft's types 1 and 2 in d dimensions."""
    import finufft

    type1s, type2s = (
        (finufft.nufft1d1, finufft.nufft2d1, finufft.nufft3d1),
        (finufft.nufft1d2, finufft.nufft2d2, finufft.nufft3d2),
    )
    return type1s[d - 1], type2s[d - 1]


def _paired(U: np.ndarray) -> np.ndarray:
    """Columns of U (n, k) as the parts of ceil(k / 2) complex rows."""
    strengths = np.zeros((-(-U.shape[1] // 2), len(U)), dtype=np.complex128)
    strengths.real = U[:, 0::2].T
    strengths.imag[: U.shape[1] // 2] = U[:, 1::2].T
    return strengths


def _unpaired(values: np.ndarray, k: int) -> np.ndarray:
    """The inverse of ``_paired``: (n, k)."""
    U = np.empty((values.shape[1], k))
    U[:, 0::2] = values.real.T
    U[:, 1::2] = values.imag[: k // 2].T
    return U


def _flip(spectrum: np.ndarray) -> np.ndarray:
    """m -> -m on all axes but the first."""
    return spectrum[(slice(None), *[slice(None, None, -1)] * (spectrum.ndim - 1))]


def _finufft_type1(P: np.ndarray, U: np.ndarray | None, half: tuple[int, ...], eps: float) -> np.ndarray:
    d, n = P.shape
    k = 1 if U is None else U.shape[1]
    # two real columns share a complex transform
    strengths = np.ones((1, n), dtype=np.complex128) if U is None else _paired(U)
    modes = tuple(2 * m + 1 for m in half)
    spectra = _run(_transforms(d)[0], strengths.size, *P, strengths, modes, eps=_clip(eps), isign=-1)
    spectra = spectra.reshape((len(strengths), *modes))
    upper = spectra[:, half[0] :]
    if U is None:
        return upper
    lower = np.conj(_flip(spectra)[:, half[0] :])
    result = np.empty((k, *upper.shape[1:]), dtype=np.complex128)
    result[0::2] = 0.5 * (upper + lower)
    pairs = slice(0, k // 2)
    result[1::2] = -0.5j * (upper[pairs] - lower[pairs])
    return result


def _finufft_type2(P: np.ndarray, spectra: np.ndarray, half: tuple[int, ...], eps: float) -> np.ndarray:
    d, n = P.shape
    k = len(spectra)
    both = np.zeros((-(-k // 2), *[2 * m + 1 for m in half]), dtype=np.complex128)
    for real_part, factor in ((True, 1.0), (False, 1.0j)):
        part = spectra[0::2] if real_part else spectra[1::2]
        both[: len(part), half[0] :] += factor * part
        both[: len(part), : half[0]] += factor * np.conj(_flip(part)[:, :-1])
    values = _run(_transforms(d)[1], n * len(both), *P, both, eps=_clip(eps), isign=1).reshape(len(both), n)
    return _unpaired(values, k)


def _exponentials(p: np.ndarray, lowest: int, highest: int) -> np.ndarray:
    """exp(i m p) for lowest <= m <= highest: (n, modes)."""
    angle = np.outer(p, np.arange(max(-lowest, highest) + 1.0))
    upper = np.empty(angle.shape, dtype=np.complex128)
    np.cos(angle, out=upper.real)
    np.sin(angle, out=upper.imag)
    return np.hstack([np.conj(upper[:, :0:-1]), upper]) if lowest else upper


def _waves(p: np.ndarray, m: int) -> np.ndarray:
    """cos(0 p) to cos(m p), then sin(p) to sin(m p): (n, 2 m + 1)."""
    step = 1 + isqrt(m)  # one product each, of a multiple of step and of a smaller number
    waves = np.empty((len(p), 2 * m + 1))
    for some in np.array_split(np.arange(len(p)), 1 + 8 * len(p) * m // CHUNK):
        small, large = _exponentials(p[some], 0, step - 1), _exponentials(step * p[some], 0, m // step)
        products = (large[:, :, None] * small[:, None, :]).reshape(len(some), -1)
        waves[some, : m + 1], waves[some, m + 1 :] = products.real[:, : m + 1], products.imag[:, 1 : m + 1]
    return waves


def along(A: np.ndarray, values: np.ndarray, axis: int, out: np.ndarray | None = None) -> np.ndarray:
    """A times each line of ``values`` along an axis, written to ``out`` (without gaps) where there is one."""
    before, after = values.shape[:axis], values.shape[axis + 1 :]
    out = np.empty((*before, len(A), *after)) if out is None else out
    if prod(after) == 1:  # one product for all lines
        np.matmul(values.reshape(-1, A.shape[1]), A.T, out=out.reshape(-1, len(A)))
    else:
        np.matmul(A, values.reshape(prod(before), A.shape[1], -1), out=out.reshape(prod(before), len(A), -1))
    return out


def _parts(P: np.ndarray, half: tuple[int, ...]) -> Iterator[tuple[slice, np.ndarray]]:
    """exp(i m.p) for the modes of a half spectrum, (points, modes), of some points after the other."""
    n = P.shape[1]
    step = max(1, CHUNK // ((half[0] + 1) * prod(2 * m + 1 for m in half[1:])))
    for start in range(0, n, step):
        part = slice(start, min(n, start + step))
        waves = _exponentials(P[0, part], 0, half[0])
        for p, m in zip(P[1:, part], half[1:]):
            waves = (waves[:, :, None] * _exponentials(p, -m, m)[:, None, :]).reshape(len(p), -1)
        yield part, waves


def _direct_type1(P: np.ndarray, U: np.ndarray, half: tuple[int, ...]) -> np.ndarray:
    shape = (half[0] + 1, *[2 * m + 1 for m in half[1:]])
    result = np.zeros((prod(shape), U.shape[1]), dtype=np.complex128)
    for part, waves in _parts(P, half):
        result += waves.T @ U[part]
    return np.conj(result.T).reshape((U.shape[1], *shape))


def _with_negative_modes(spectra: np.ndarray) -> np.ndarray:
    """Coefficients of a half spectrum of which the real part is taken: m_1 > 0 stands for -m too."""
    doubled = 2.0 * spectra
    doubled[:, 0] = spectra[:, 0]
    return doubled


def _direct_type2(P: np.ndarray, spectra: np.ndarray, half: tuple[int, ...]) -> np.ndarray:
    flat = _with_negative_modes(spectra).reshape(len(spectra), -1).T
    result = np.empty((P.shape[1], len(spectra)))
    for part, waves in _parts(P, half):
        result[part] = (waves @ flat).real
    return result


# Which way. In flops of which 5e9 take a second; GEMM does eight times as many.


class _Boxes(NamedTuple):
    """A grid of boxes with Chebyshev nodes for points whose phases fill an interval along each axis."""

    order: int
    """Nodes of a box along an axis."""
    counts: tuple[int, ...]
    """Boxes by axis."""
    cost: float


class _Orders(NamedTuple):
    """Numbers of nodes of a box along an axis, of which the cheapest is taken, and what follows from each."""

    q: np.ndarray
    padded: np.ndarray
    """As many as the loops work on."""
    factorial: np.ndarray
    lebesgue: np.ndarray
    """Lebesgue's constant, at most."""
    gaussian_mean: np.ndarray
    """(mean of m^(2 q))^(1 / (2 q)) where m weighs exp(-m^2)."""

    @classmethod
    def up_to(cls, most: int) -> _Orders:
        q = np.arange(4.0, most + 1.0, 2.0)
        padded = 2.0 ** np.ceil(np.log2(q))
        factorials = np.array([float(factorial(int(order))) for order in q])
        means = np.array([(gamma(order + 0.5) / sqrt(pi)) ** (0.5 / order) for order in q])
        return cls(q, padded, factorials, 2.0 / pi * np.log(q) + 1.0, means)


ORDERS = _Orders.up_to(MOST_NODES)


def _direct_cost(half: tuple[int, ...], n: int, k: int) -> float:
    return n * k * 4.0 * prod(2 * m + 1 for m in half) / 8.0 + n * 60.0 * sum(half)


def finufft_cost(half: tuple[int, ...], eps: float) -> tuple[float, float]:
    """(once, for a point) of finufft, for a pair of real columns."""
    d, width = len(half), 1.0 - log10(_clip(eps))
    return 100.0 * prod(4 * m + 2 for m in half), 150.0 + (2.0 if d == 3 else 1.1) * width**d + 20.0 * width


def _finufft_cost(half: tuple[int, ...], eps: float, n: int, k: int) -> float:
    once, row = finufft_cost(half, eps)
    return -(-k // 2) * (once + n * row)


def _boxes_cost(half: tuple[int, ...], counts: np.ndarray, n: int, k: int) -> np.ndarray:
    """For each of the ``ORDERS``, with its counts (d, orders)."""
    d, nodes = len(half), counts * ORDERS.q
    waves = [2 * m + 1 for m in half]
    # one axis after the other from waves to nodes, or back
    products: np.ndarray = sum(2.0 * prod(waves[: c + 1]) * prod(nodes[c:]) for c in range(d))
    entries = ORDERS.q ** (d - 1)
    column = 0.05 * products + 5.0 * prod(nodes) + 18.0 * prod(waves) + n * (0.1 * entries * ORDERS.padded + 11.0)
    return 1e6 + 10.0 * (np.array(waves) @ nodes) + k * column + n * (entries + 36.0 * d)


def _boxes(
    half: tuple[int, ...], eps: float, reach: Sequence[float], n: int, k: int, modes: np.ndarray | None = None
) -> _Boxes | None:
    """The cheapest boxes for points that fill ``reach`` to both sides of a middle; None where rounding would be in the
    way.

    Interpolation axis by axis multiplies errors by Lebesgue constants, at most (2 / pi) log q + 1 each. Of the bound
    8 d eps the remainder takes seven eighths, the rounding of Lagrange values, some 30 q u Lebesgue^d, the rest.
    Where M^q may be a mean of m^q (``modes``: its q-th root for each axis and each of the ``ORDERS``) the remainder
    takes a quarter. Where weights meet the modes that is the root mean square; for given spectra it is less.
    """
    if eps < 4e-13:
        return None
    d = len(half)
    share = 3.5 if modes is None else 0.125 * WEIGHTED_SAFETY / d
    largest = 2.0 * (share * _clip(eps) * ORDERS.factorial / ORDERS.lebesgue ** (d - 1)) ** (1.0 / ORDERS.q)  # M r
    modes = np.array(half, dtype=float)[:, None] if modes is None else modes
    counts = np.maximum(1.0, np.ceil(np.array(reach)[:, None] * modes / largest))
    costs = _boxes_cost(half, counts, n, k)
    best = int(costs.argmin())
    return _Boxes(int(ORDERS.q[best]), tuple(map(int, counts[:, best])), float(costs[best]))


def mean_modes(lines: Lines) -> np.ndarray:
    """(sum_m w_m |m|^(2 q) / sum_m w_m)^(1 / (2 q)) by axis, for modes -M to M and each q of the ``ORDERS``."""
    means = [_powers(line, len(line) // 2, 4) / line.sum() for line in lines]
    return np.stack([len(line) // 2 * mean ** (0.5 / ORDERS.q) for line, mean in zip(lines, means)])


def modes_of(spectra: np.ndarray, half: tuple[int, ...], sizes: np.ndarray) -> np.ndarray:
    """The largest (sum_m |s_m| |m|^q / size)^(1 / q) of the half spectra s, by axis and for each q of the ``ORDERS``.

    The q-th derivatives of a spectrum's values are at most such a sum. Of s_m = w_m^(1/2) c_m and sizes
    |c|_2 (sum w)^(1/2), the root mean squares of ``mean_modes`` are no less, by Cauchy's inequality.
    """
    terms = np.abs(_with_negative_modes(spectra))
    result = np.empty((len(half), len(ORDERS.q)))
    for c, m in enumerate(half):
        lines = terms.sum(axis=tuple(e + 1 for e in range(len(half)) if e != c))
        if c == 0:
            lines = np.hstack([np.zeros((len(lines), m)), lines])
        sums = _powers(lines, m, 2) / np.maximum(sizes, 1e-300)[:, None]
        result[c] = m * sums.max(axis=0, initial=0.0) ** (1.0 / ORDERS.q)
    return result


def _powers(lines: np.ndarray, largest: int, power: int) -> np.ndarray:
    """sum_m w_m (|m| / M)^(power q / 2) for modes -M to M and each q of the ``ORDERS``, which are 4, 6, 8, ..."""
    base = (np.arange(-largest, largest + 1.0) / max(largest, 1)) ** power
    return np.asarray(lines @ np.cumprod(np.tile(base, (len(ORDERS.q) + 1, 1)), axis=0)[1:].T)


def gaussian_mean_modes(rates: np.ndarray, half: tuple[int, ...]) -> np.ndarray:
    """The same (axes, orders) for w_m = exp(-rate m^2), nearly: of an integral over |m| <= M."""
    reached = scipy.special.gammainc(ORDERS.q + 0.5, (rates * np.square(half))[:, None])
    return ORDERS.gaussian_mean * reached ** (0.5 / ORDERS.q) / np.sqrt(rates)[:, None]


def _cheapest(
    half: tuple[int, ...], eps: float, reach: Sequence[float], n: int, k: int, modes: np.ndarray | None
) -> tuple[float, _Boxes | None]:
    """The cost of the cheapest way for n points and k real columns, and its boxes; None for the other way."""
    other = min(_finufft_cost(half, eps, n, k) if has_finufft() else inf, _direct_cost(half, n, k))
    boxes = _boxes(half, eps, reach, n, k, modes)
    return (other, None) if boxes is None or other <= boxes.cost else (boxes.cost, boxes)


def cost(
    half: tuple[int, ...], eps: float, reach: Sequence[float], n: int, k: int, modes: np.ndarray | None = None
) -> float:
    """Of either transform for n points, whose phases fill ``reach`` to both sides of a middle, and k real columns.

    ``modes``: the mean modes of weights that meet the modes.
    """
    return _cheapest(half, eps, reach, n, k, modes)[0]


def held_bytes(
    half: tuple[int, ...], eps: float, reach: Sequence[float], n: int, k: int, modes: np.ndarray | None = None
) -> float:
    """Of the exponentials at the nodes, with arguments as for ``cost``."""
    boxes = _cheapest(half, eps, reach, n, k, modes)[1]
    return 0.0 if boxes is None else 8.0 * sum(boxes.order * c * (2.0 * m + 1.0) for c, m in zip(boxes.counts, half))


class Nodes:
    """Boxes over the ``ends`` (2, d) of an interval by axis, and exponentials of the modes |m_c| <= M_c at their nodes.

    ``boxes`` is None where another way is cheaper.
    """

    def __init__(self, half: tuple[int, ...], boxes: _Boxes | None, ends: np.ndarray):
        self.half, self.boxes, self.ends = half, boxes, ends

    @property
    def sides(self) -> np.ndarray:
        assert self.boxes is not None
        return np.asarray((self.ends[1] - self.ends[0]) / self.boxes.counts)

    @property
    def middle(self) -> np.ndarray:
        return np.asarray(0.5 * (self.ends[0] + self.ends[1]))

    @cached_property
    def waves(self) -> list[np.ndarray]:
        """cos(m x) for 0 <= m <= M, then sin(m x) for 1 <= m <= M, by axis, at the nodes' places x from the middle."""
        assert self.boxes is not None
        order, counts = self.boxes.order, self.boxes.counts
        grid = Grid(self.ends[0] - self.middle, self.sides, counts, (order,) * len(self.half))
        return [_waves(grid.nodes(c), m) for c, m in enumerate(self.half)]


def about(n: int) -> int:
    """The number of points, n or somewhat more, for which nodes are made that tiles of n points share."""
    return min(1 << (n - 1).bit_length(), MANY)


def nodes_inside(
    half: tuple[int, ...], eps: float, inside: np.ndarray, k: int = 1, modes: np.ndarray | None = None, n: int = MANY
) -> Nodes:
    """For k columns at any n points within these distances (d,) of 0; ``modes`` as in ``cost``."""
    return _cheapest_nodes(half, eps, -inside, inside, n, k, modes)


def _nodes_for(P: np.ndarray, half: tuple[int, ...], eps: float, k: int, modes: np.ndarray | None) -> Nodes:
    """For k columns at the points P."""
    if P.shape[1] == 0:
        return Nodes(half, None, np.zeros((2, len(half))))
    return _cheapest_nodes(half, eps, P.min(axis=1), P.max(axis=1), P.shape[1], k, modes)


def _cheapest_nodes(
    half: tuple[int, ...], eps: float, low: np.ndarray, high: np.ndarray, n: int, k: int, modes: np.ndarray | None
) -> Nodes:
    slack = 1e-9 + 1e-12 * (high - low)
    ends = np.stack([low - slack, high + slack])
    return Nodes(half, _cheapest(half, eps, list(0.5 * (ends[1] - ends[0])), n, k, modes)[1], ends)


def _sorted(P: np.ndarray, nodes: Nodes) -> tuple[Grid, Points]:
    """The grid of the nodes, and the points sorted by its boxes."""
    assert nodes.boxes is not None
    grid = Grid(nodes.ends[0], nodes.sides, nodes.boxes.counts, (nodes.boxes.order,) * len(nodes.half))
    return grid, grid.sort(np.ascontiguousarray(P.T))


def _layers(grid: Grid, points: Points, k: int) -> Iterator[tuple[int, slice, int, int]]:
    """(first box, its nodes and those of the next ones, their first point, the point after their last) for stretches of
    the first axis on which k columns of nodal values stay in the cache."""
    order, boxes = grid.orders[0], prod(grid.counts[1:])
    step = max(1, CACHED // (k * order * prod(grid.shape[1:])))
    for begin in range(0, grid.counts[0], step):
        end = min(begin + step, grid.counts[0])
        first, last = points.start[np.searchsorted(points.box, [begin * boxes, end * boxes])]
        if first < last:
            yield begin, slice(begin * order, end * order), int(first), int(last)


def _boxes_type1(P: np.ndarray, U: np.ndarray, nodes: Nodes) -> np.ndarray:
    half, k, waves = nodes.half, U.shape[1], nodes.waves
    d, (grid, points) = len(half), _sorted(P, nodes)
    total = np.zeros((k, grid.shape[0], *[2 * m + 1 for m in half[1:]]))
    for begin, place, first, last in _layers(grid, points, 1):
        shape = (place.stop - place.start, *grid.shape[1:])
        for j in range(k):
            nodal = np.zeros(prod(shape))
            grid.spread(points, np.ascontiguousarray(U[:, j : j + 1]), nodal, first, last, begin)
            part = nodal.reshape(shape)
            for c in range(1, d):
                part = along(waves[c].T, part, c)
            total[j, place] = part
    return _moved(_from_waves(along(waves[0].T, total, 1), half), half, -nodes.middle)


def _moved(spectra: np.ndarray, half: tuple[int, ...], steps: np.ndarray) -> np.ndarray:
    """Half spectra times exp(i m.steps)."""
    if not steps.any():
        return spectra
    first = np.exp(1j * steps[0] * np.arange(half[0] + 1.0))
    others = [np.exp(1j * step * np.arange(-m, m + 1.0)) for step, m in zip(steps[1:], half[1:])]
    return np.asarray(spectra * reduce(np.multiply.outer, others, first))


def _from_waves(sums: np.ndarray, half: tuple[int, ...]) -> np.ndarray:
    """Half spectra of sums (k, 2 M_1 + 1, ...) with products of ``_waves``: exp(-i m x) = cos(m x) - i sin(m x)."""
    cosines, sines = _parted(sums, 1, half[0])
    spectra = np.zeros(cosines.shape, dtype=np.complex128)
    spectra.real = cosines
    np.negative(sines, out=spectra.imag[:, 1:])
    for axis, m in enumerate(half[1:], 2):
        cosines, sines = _parted(spectra, axis, m)
        first, others = _parted(cosines, axis, 0)
        spectra = np.empty_like(spectra)
        lower, rest = _parted(spectra, axis, m - 1)
        middle, upper = _parted(rest, axis, 0)
        middle[...] = first
        # real and imaginary parts apart: products with i would be passes over arrays of their own
        lower = np.flip(lower, axis=axis)
        np.subtract(others.real, sines.imag, out=lower.real)
        np.add(others.imag, sines.real, out=lower.imag)
        np.add(others.real, sines.imag, out=upper.real)
        np.subtract(others.imag, sines.real, out=upper.imag)
    return spectra


def _to_waves(spectra: np.ndarray, half: tuple[int, ...]) -> np.ndarray:
    """The factors (k, 2 M_1 + 1, ...) of products of ``_waves`` whose sum is the real part of the half spectra's."""
    waves = np.empty((len(spectra), 2 * half[0] + 1, *spectra.shape[2:]))
    # a few planes of the first axis at a time: two arrays of complex numbers stay in the cache
    step = max(1, CACHED // max(1, 4 * spectra[:, 0].size))
    for begin in range(0, half[0] + 1, step):
        end, first = min(begin + step, half[0] + 1), max(begin, 1)
        part = spectra[:, begin:end]
        for axis, m in enumerate(half[1:], 2):
            part = _to_waves_along(part, axis, m)
        waves[:, begin:end] = part.real
        np.negative(part.imag[:, first - begin :], out=waves[:, half[0] + first : half[0] + end])
    return waves


def _to_waves_along(spectra: np.ndarray, axis: int, m: int) -> np.ndarray:
    lower, rest = _parted(spectra, axis, m - 1)
    first, upper = _parted(rest, axis, 0)
    lower = np.flip(lower, axis=axis)
    waves = np.empty_like(spectra)
    cosines, sines = _parted(waves, axis, m)
    constant, others = _parted(cosines, axis, 0)
    constant[...] = first
    np.add(upper, lower, out=others)
    np.subtract(lower.imag, upper.imag, out=sines.real)
    np.subtract(upper.real, lower.real, out=sines.imag)
    return waves


def _parted(values: np.ndarray, axis: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """The entries 0 to m along an axis, and those after."""
    before = (slice(None),) * axis
    return values[(*before, slice(0, m + 1))], values[(*before, slice(m + 1, None))]


def _boxes_type2(P: np.ndarray, spectra: np.ndarray, nodes: Nodes) -> np.ndarray:
    grid, points = _sorted(P, nodes)
    result = np.empty((P.shape[1], len(spectra)))
    # factors of the waves along all axes but the first, at its nodes
    doubled = _with_negative_modes(_moved(spectra, nodes.half, nodes.middle))
    factors = along(nodes.waves[0], _to_waves(doubled, nodes.half), 1)
    # columns share the Lagrange values of a point
    together = max(1, 2 * CHUNK // (grid.orders[0] * prod(grid.shape[1:])))
    for start in range(0, len(factors), together):
        columns = slice(start, start + together)
        values = np.empty((len(result), len(factors[columns])))
        for begin, place, first, last in _layers(grid, points, values.shape[1]):
            grid.interpolate(points, _nodal_values(factors[columns, place], nodes), values, first, last, begin)
        result[:, columns] = values
    return result


def _nodal_values(factors: np.ndarray, nodes: Nodes) -> np.ndarray:
    """Values, flat, from the factors of the waves at some nodes of the first axis."""
    waves = nodes.waves
    nodal = np.empty((*factors.shape[:2], *(values.shape[0] for values in waves[1:])))
    for part, values in zip(factors, nodal, strict=True):
        for c in range(len(waves) - 1, 1, -1):
            part = along(waves[c], part, c)
        if len(waves) > 1:
            along(waves[1], part, 1, values)
        else:
            values[...] = part
    return nodal.ravel()
