"""Fourier features of a translation-invariant kernel on a periodic box, d <= 3, and their Toeplitz second moment.

With k_per(s) = sum_n k(s + n L) = sum_m w_m exp(2 pi i m.s / L), w_m >= 0 (Poisson's summation formula), and the modes
|m_c| <= M_c kept,

    k = Phi Phi'  +  (modes left out: semidefinite, diagonal tau)  -  (images: at most ``defect`` an entry).

The features of a pair +-m are sqrt(2 w_m) cos and sin; D is the number of modes. Their uncentred second moment is
S T S with S = diag(sqrt w) and T the Toeplitz matrix of t_j = sum_i exp(-2 pi i j.x_i / L), |j_c| <= 2 M_c: one
non-uniform FFT of ones holds the whole data set, and a product with it is two ordinary FFTs, whatever N is (the
equispaced Fourier representation of P. Greengard, M. Rachh and A. Barnett, 2022).

A *new* row can lie anywhere. Within ``margin`` of the box of the data the nearest image of a data point is still
``margin`` away, since L is the box's side plus twice the margin; farther out k itself is that small, and phi(x) counts
as 0 there. So k(x, x_i) is right to ``beyond`` for every x. Pairs of such rows are not: moments take rows of the box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import ceil, erfc, exp, expm1, inf, log, pi, prod, sqrt
from typing import Any

import numpy as np

from ..base.protocol import Cost, FeatureMap, Kernel, Offer, Summary
from ..base.rounding import UNIT
from ..base.stored import Record
from . import compressed, transforms
from .monomial import same_columns
from .toeplitz import DENSE, DENSE_LINE, ToeplitzMoments, lines_of, product_rounding

__all__ = [
    "BoxModes",
    "FourierMap",
    "fourier_offers",
    "gaussian_box_modes",
    "gaussian_fourier_map",
    "gaussian_images",
]

LARGEST = 1 << 21
"""Most modes: the doubled grid then has 2^d times as many complex numbers, the transform's own 2^d times those."""
FFT_FLOPS, DIRECTION_FLOPS = 5.0, 350.0
"""Of a product with a column: for each number of its transform and logarithm of their count; and for each direction
that stands for many modes."""
LEAST_TILE, LARGEST_TILE = 1 << 14, 1 << 20
COLUMNS = 10
"""Of scores: their transforms share what is to be done for a row."""
BEYOND = 1e-4
"""Error of a kernel value between a row of the box and one outside of it. Twice the margin that this takes lies between
two rows of the box and their images, whose error is then far below any tolerance."""
SHARE = 0.1
"""Of the tolerance, for the modes left out, and as much for the error of the transforms: few more of both, and room for
a first eigenvalue that a few rows of a flat spectrum overrate."""
KRYLOV_COLUMNS, LITTLE = 100, 0.05
"""Of an iteration, whose products' errors add up, about; and the share of the tolerance that such errors may take
without a closer look at them."""


class FourierMap(FeatureMap):
    """sqrt(2 w_m) cos(2 pi m.(x - centre) / L) and sin, over half of the modes of a centred box.

    Parameters
    ----------
    box : ndarray (2, d)
        Smallest and largest coordinates of the rows for which ``defect`` holds.
    margin : ndarray (d,)
        How far outside the box a new row still counts; the period is the box's side plus twice this, by axis.
    weights : ndarray (2 M_1 + 1, ..., 2 M_d + 1)
        w_m, symmetric under m -> -m, non-negative.
    tail : float
        Upper bound on the sum of the weights left out.
    images : float
        Bound on sum_(n != 0) k(s + n L) for differences s of rows in the box, and on what else the entries err by.
    beyond : float
        The same for differences of a row in the box and any other row.
    eps : float
        Relative accuracy to ask of the transforms.
    """

    kind = "fourier"

    def __init__(
        self,
        box: np.ndarray,
        margin: np.ndarray,
        weights: np.ndarray,
        *,
        tail: float,
        images: float,
        beyond: float,
        eps: float,
    ):
        self.box = np.array(box, dtype=np.float64)
        self.margin = np.array(margin, dtype=np.float64)
        self.weights = np.ascontiguousarray(weights, dtype=np.float64)
        self.tail, self.images, self.beyond, self.eps = float(tail), float(images), float(beyond), float(eps)
        self.transform_eps = self.eps
        self.half = tuple(n // 2 for n in self.weights.shape)
        self.n_features = self.weights.size
        self.centre = self.box.mean(axis=0)
        self.period = (self.box[1] - self.box[0]) + 2.0 * self.margin
        # the phase of the box's own rim, with room for its rounding: what lies so little outside does no harm
        self._inside = pi * (self.box[1] - self.box[0]) / self.period * (1.0 + 1e-12) + 1e-14
        self._half_root = np.sqrt(self.weights[self.half[0] :])
        total = float(self.weights.sum())
        axes = range(self.weights.ndim)
        self._lines = [self.weights.sum(axis=tuple(e for e in axes if e != c)) for c in axes]
        # the moment's own: |S E S|_F^2 = sum_j |e_j|^2 (w * w)_j for the errors e of t, and (w * w)_j add up to
        # (sum w)^2, so S T S errs by sum w times the weighted root mean square of e, and with its mean three times that
        doubled = tuple(2 * m for m in self.half)
        rim = max(float(line[0] / line.max()) for line, _ in lines_of(self.weights, self.half))
        self.transform_error = 3.01 * total * transforms.error_bound(doubled, self.eps, _safety(rim, self.eps))
        self.defect = self.images + self.transform_error
        self._kept_nodes: dict[int, transforms.Nodes] = {}
        self.rounding = (4.0 * pi * sum(self.half) + 64.0) * UNIT
        # half of the work of a tile in the transform's grid, which costs as much whatever the rows
        grid = prod(2 * (4 * m + 1) for m in self.half)
        self.tile_rows = 1 << (min(max(grid // 2, LEAST_TILE), LARGEST_TILE).bit_length() - 1)

    def _moment_nodes(self, n: int) -> transforms.Nodes:
        """For sums of all products of two waves over about n rows of the box; kept for other tiles."""
        size = transforms.about(max(n, LEAST_TILE // 2))
        if size not in self._kept_nodes:
            doubled, lines = tuple(2 * m for m in self.half), [np.convolve(line, line) for line in self._lines]
            modes = transforms.mean_modes(lines)
            nodes = transforms.nodes_inside(doubled, self.eps, self._inside, modes=modes, n=size)
            self._kept_nodes.setdefault(size, nodes)
        return self._kept_nodes[size]

    def _points(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Phases (d, n) in [-pi, pi], and which rows count (None: all of them)."""
        P = np.array(np.asarray(X).T, dtype=np.float64, order="C")
        near = None
        if P.shape[1]:
            low, high = self.box[0] - self.margin, self.box[1] + self.margin
            if (P.min(axis=1) < low).any() or (P.max(axis=1) > high).any():
                near = ((P >= low[:, None]) & (P <= high[:, None])).all(axis=0)
                P[:, ~near] = self.centre[:, None]
        P -= self.centre[:, None]
        P *= (2.0 * pi / self.period)[:, None]
        return np.clip(P, -pi, pi, out=P), near

    # A real vector u of D numbers stands for the Hermitian one c with c_j = (u_j + i u_(-j)) / sqrt 2 for modes j
    # after the middle one in lexicographic order, and c_0 = u_0: an isometry.

    def _pack(self, U: np.ndarray) -> np.ndarray:
        """(D, k) -> Hermitian half spectra (k, M_1 + 1, ...)."""
        middle, rest = self.n_features // 2, self.weights[0].size // 2
        c = np.empty((U.shape[1], middle + 1 + rest), dtype=np.complex128)
        c[:, rest] = U[middle]
        c.real[:, rest + 1 :] = sqrt(0.5) * U[middle + 1 :].T
        c.imag[:, rest + 1 :] = sqrt(0.5) * U[:middle][::-1].T
        c[:, :rest] = np.conj(c[:, 2 * rest : rest : -1])
        return c.reshape((len(c), *self._half_root.shape))

    def _unpack(self, c: np.ndarray) -> np.ndarray:
        """The inverse of ``_pack``: (D, k), column-major."""
        middle, rest = self.n_features // 2, self.weights[0].size // 2
        c = c.reshape(len(c), -1)
        U = np.empty((len(c), self.n_features))
        U[:, middle] = c[:, rest].real
        U[:, middle + 1 :] = sqrt(2.0) * c.real[:, rest + 1 :]
        U[:, :middle] = sqrt(2.0) * c.imag[:, :rest:-1]
        return U.T

    def features(self, X: np.ndarray) -> np.ndarray:
        P, near = self._points(X)
        phases = np.zeros((P.shape[1], 1))
        for c, m in enumerate(self.half):
            step = P[c, :, None] * np.arange(-m, m + 1.0)
            phases = (phases[:, :, None] + step[:, None, :]).reshape(P.shape[1], -1)
        middle = self.n_features // 2
        Phi = np.sqrt(2.0 * self.weights.ravel()) * np.hstack([np.sin(phases[:, :middle]), np.cos(phases[:, middle:])])
        Phi[:, middle] *= sqrt(0.5)
        if near is not None:
            Phi[~near] = 0.0
        return Phi.astype(np.asarray(X).dtype, copy=False)

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        residual = np.full(len(X), self.tail)
        near = self._points(X)[1]
        if near is not None:
            residual[~near] = self.tail + float(self.weights.sum()) * (1.0 + 1e-12)
        return residual

    def accumulate(self, X: np.ndarray, U: np.ndarray) -> np.ndarray:
        P, near = self._points(X)
        if near is not None:
            U = np.where(near[:, None], U, 0.0)
        return self._unpack(transforms.type1(P, U, self.half, self.eps, self._lines) * self._half_root)

    def apply(self, X: np.ndarray, C: np.ndarray) -> np.ndarray:
        return self.applied(C)(X)

    def applied(self, C: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        C = np.asarray(C, dtype=np.float64)
        sizes = np.linalg.norm(C, axis=0) * sqrt(self.weights.sum())
        spectra = self._pack(C) * self._half_root
        modes = transforms.modes_of(spectra, self.half, sizes)

        known: dict[int, transforms.Nodes] = {}  # goes to other processes with the function, as a cache would not

        def values(X: np.ndarray) -> np.ndarray:
            P, near = self._points(X)
            # rows of the box share the waves at nodes
            inside = P.size > 0 and bool((np.abs(P) <= self._inside[:, None]).all())
            n = transforms.about(len(X))
            if inside and n not in known:
                known[n] = transforms.nodes_inside(self.half, self.eps, self._inside, len(spectra), modes, n)
            nodes = known[n] if inside else None
            values = transforms.type2(P, spectra, self.half, self.eps, modes, nodes)
            if near is not None:
                values[~near] = 0.0
            return values

        return values

    def gradients(self, C: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        # the derivative of a wave is the wave times i times its frequency: a transform for each axis
        spectra = self._pack(np.asarray(C, dtype=np.float64)) * self._half_root
        first = np.arange(self.half[0] + 1.0)
        modes = [first, *(np.arange(-m, m + 1.0) for m in self.half[1:])]
        frequencies = np.meshgrid(*modes, indexing="ij")
        along = [2j * pi / side * spectra * mode for side, mode in zip(self.period, frequencies)]

        def gradients(X: np.ndarray, steps: np.ndarray) -> np.ndarray:
            P, near = self._points(X)
            values = np.stack([transforms.type2(P, spectrum, self.half, self.eps) for spectrum in along], axis=2)
            if near is not None:
                values[~near] = 0.0
            return values

        return gradients

    def outside_error(self, X: np.ndarray) -> np.ndarray:
        """The images of the rows of the box, as seen from outside of it."""
        return self.beyond * ((X < self.box[0]) | (X > self.box[1])).any(axis=1)

    def widened(self, kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        low, high = self.box
        slack = 1e-12 * (high - low)
        outside = (data.box[0] < low - slack) | (data.box[1] > high + slack)
        if outside.any():  # beyond the box come its images
            axis = int(np.argmax(outside))
            raise ValueError(
                f"rows lie outside the box of the rows that the fourier features were made for (coordinate {axis}, "
                f"after the shift: {data.box[0, axis]:.6g} to {data.box[1, axis]:.6g}, the box has {low[axis]:.6g} to "
                f"{high[axis]:.6g}), and inside it alone are they right; make the first model from rows that span the "
                "range (two at its corners, of a small sample_weight, will do), or with features='pivots'"
            )
        return self

    def formula(self) -> dict[str, Any]:
        grids = np.meshgrid(*(np.arange(-m, m + 1.0) for m in self.half), indexing="ij")
        return {
            "kind": "waves",
            "modes": np.stack([grid.ravel() for grid in grids], axis=1),
            "weights": self.weights.ravel()[None, :],
            "centre": self.centre[None, :],
            "period": self.period[None, :],
            "low": (self.box[0] - self.margin)[None, :],
            "high": (self.box[1] + self.margin)[None, :],
        }

    @classmethod
    def stored_size(cls, record: Record, n_columns: int) -> int:
        same_columns(record, record.array("box", (2, None)).shape[1], n_columns)
        return int(record.array("weights", (None,) * n_columns).size)

    def is_of_gaussian(self, sigma: float) -> bool:
        # no number of it is sigma itself, but its weights add up to k(0) = 1 but for tail and images
        left = abs(float(self.weights.sum()) + self.tail - 1.0)
        return left <= 2.0 * self.images + self.tail + 1e-9

    def new_moments(self) -> ToeplitzMoments:
        return ToeplitzMoments(self)

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        header = {"map": self.kind, "tail": self.tail, "images": self.images, "beyond": self.beyond, "eps": self.eps}
        return header, {"box": self.box, "margin": self.margin, "weights": self.weights}

    @classmethod
    def from_state(cls, header: dict, arrays: dict[str, np.ndarray]) -> FourierMap:
        record = Record(header, arrays, "the Fourier feature map")
        record.keys(("map", "tail", "images", "beyond", "eps"))
        record.names(("box", "margin", "weights"))
        box = record.array("box", (2, None))
        d = box.shape[1]
        margin, weights = record.array("margin", (d,), least=0.0), record.array("weights", (None,) * d, least=0.0)
        if not (1 <= d <= 3 and (box[1] >= box[0]).all()):
            raise record.refuse(f"its box has {d} sides, or one of negative length")
        if any(n % 2 == 0 for n in weights.shape) or not (weights == np.flip(weights)).all():
            raise record.refuse(f"its weights of shape {weights.shape} are not symmetric about a middle one")
        with np.errstate(over="ignore"):
            period = box[1] - box[0] + 2.0 * margin
            if not ((period > 1e-300).all() and np.isfinite(period).all() and np.isfinite(weights.sum())):
                raise record.refuse("its period is zero or infinite, or its weights overflow")
        return cls(
            box,
            margin,
            weights,
            **{name: record.number(name, least=0.0) for name in ("tail", "images", "beyond")},
            eps=record.number("eps", above=0.0, most=1.0),
        )


def gaussian_modes(period: float, sigma: float, tail: float) -> tuple[np.ndarray, float]:
    """Weights w_m, |m| <= M, of the periodic Gaussian and a bound on the sum of the others, at most ``tail``.

    w_m = sqrt(2 pi) sigma / L exp(-2 (pi sigma m / L)^2); beyond M they fall faster than the geometric series of the
    first ratio.
    """
    a, scale = _mode_weights(period, sigma)
    last, left = _last_mode(period, sigma, tail)
    m = np.arange(-last, last + 1.0)
    return scale * np.exp(-a * m * m), left


def _mode_weights(period: float, sigma: float) -> tuple[float, float]:
    """(a, scale) of w_m = scale exp(-a m^2)."""
    return 2.0 * (pi * sigma / period) ** 2, sqrt(2.0 * pi) * sigma / period


def _last_mode(period: float, sigma: float, tail: float) -> tuple[int, float]:
    """The smallest M whose modes leave out at most ``tail``, and the weight that they leave out."""
    a, scale = _mode_weights(period, sigma)

    def beyond(m: int) -> float:
        return 2.0 * scale * exp(-a * (m + 1.0) ** 2) / -expm1(-a * (2 * m + 3.0)) * (1.0 + 1e-12)

    last = max(0, ceil(sqrt(max(0.0, log(4.0 / tail)) / a)))
    least = max(0, last // 2)
    while beyond(last) > tail:
        last += 1 + last // 8
    while last > least and beyond(last - 1) <= tail:
        last -= 1
    return last, beyond(last)


@dataclass(frozen=True)
class BoxModes:
    """Weights of the Gaussian's modes on a periodic box, and the weight of the modes left out.

    Attributes
    ----------
    axes : list of ndarray
        Weights by axis; a mode of the box weighs their product.
    total : float
        Their sum over the box.
    tail : float
        Bound on the sum of the weights left out.
    exponent : float
        The largest -log of a weight, which a weight's rounding grows with.
    """

    axes: list[np.ndarray]
    total: float
    tail: float
    exponent: float

    @property
    def half(self) -> tuple[int, ...]:
        """M by axis."""
        return tuple(len(weights) // 2 for weights in self.axes)

    def weights(self) -> np.ndarray:
        """One for each mode of the box."""
        return reduce(np.multiply.outer, self.axes)


def gaussian_box_modes(periods: np.ndarray, sigma: float, tail: float) -> BoxModes:
    """The modes of a box with these periods, at most ``tail`` left out along each axis."""
    axes = [gaussian_modes(period, sigma, tail) for period in periods]
    sums = [float(weights.sum()) for weights, _ in axes]
    left = 0.0
    for c, (_, left_c) in enumerate(axes):
        left += left_c * prod(sums[e] + axes[e][1] for e in range(len(axes)) if e != c)
    exponent = max(log(1.0 / max(float(weights.min()), 1e-300)) for weights, _ in axes)
    return BoxModes([weights for weights, _ in axes], prod(sums), left, exponent)


def gaussian_images(reach: float, period: float, sigma: float) -> float:
    """Bound on sum_(n != 0) g(s + n L) for |s| <= reach < L, one coordinate."""
    gap = max(period - reach, 0.0)
    first = exp(-0.5 * (gap / sigma) ** 2) * (1.0 + 8.0 * UNIT * (period / sigma) ** 2)
    # the n-th of either side lies at least (n - 1) L farther; their sum is an integral at most
    rest = exp(-0.5 * ((gap + period) / sigma) ** 2) + sqrt(pi / 2) * sigma / period * erfc(
        (gap + period) / sigma / sqrt(2)
    )
    return 2.0 * (first + rest) * (1.0 + 1e-12)


def _margin(d: int) -> float:
    """In units of sigma: where g, its images and those of the other axes have fallen to ``BEYOND``."""
    return sqrt(2.0 * log(4.0 * d / BEYOND))


def _safety(rim: float, eps: float) -> float | None:
    """Of the errors of t where (w * w)_j weighs them: the weights that meet at the rim of t are ``rim`` of the largest,
    squared."""
    return transforms.WEIGHTED_SAFETY if rim**2 <= eps else None


def _eps_for(rim: float, tol: float, d: int) -> float:
    """The accuracy to ask of the transforms, so that they take ``SHARE`` of tol."""
    share = SHARE / 3.01 * tol
    eps = transforms.eps_for(share, d, transforms.WEIGHTED_SAFETY)
    return eps if _safety(rim, eps) else transforms.eps_for(share, d)


def gaussian_fourier_map(box: np.ndarray, sigma: float, tol: float) -> FourierMap:
    """The map of exp(-|x-y|^2 / (2 sigma^2)) for rows in ``box`` (2, d), residual trace over trace at most ``tol``."""
    box = np.asarray(box, dtype=np.float64)
    sides = box[1] - box[0]
    d = len(sides)
    margin = np.full(d, _margin(d) * sigma)
    periods = sides + 2.0 * margin
    modes = gaussian_box_modes(periods, sigma, SHARE * tol / d)
    images = prod(1.0 + gaussian_images(r, p, sigma) for r, p in zip(sides, periods)) - 1.0
    images = max(images, 0.0) + 4.0 * d * UNIT  # the product above rounds where its second terms are small
    # weights: rounding of the exponent, at most a m^2 <= log(1 / tail), of exp, and of their product
    images += d * (6.0 * modes.exponent + 16.0) * UNIT * modes.total
    # outside by more than the margin: k itself, against 0; inside it the images, a margin away
    outside = prod(1.0 + gaussian_images(r + m, p, sigma) for r, m, p in zip(sides, margin, periods)) - 1.0
    return FourierMap(
        box,
        margin,
        modes.weights(),
        tail=(modes.tail + 8.0 * UNIT) * (1.0 + 1e-12),
        images=images,
        beyond=max(outside, exp(-0.5 * (margin.min() / sigma) ** 2)) + images,
        eps=_eps_for(max(float(weights[0] / weights.max()) for weights in modes.axes), tol, d),
    )


def _sizes(data: Summary, sigma: float, tol: float) -> tuple[tuple[int, ...], float] | None:
    """M by axis of ``gaussian_fourier_map``, and the weight at the rim over the largest; None where M would be far too
    large."""
    sides = data.box[1] - data.box[0]
    d = data.n_features
    periods = (sides + 2.0 * _margin(d) * sigma).tolist()
    if not prod(period / sigma for period in periods) < 16 * LARGEST:
        return None
    half = tuple(_last_mode(period, sigma, SHARE * tol / d)[0] for period in periods)
    return half, max(exp(-_mode_weights(period, sigma)[0] * m**2) for period, m in zip(periods, half))


def _expected_rounding(data: Summary, half: tuple[int, ...], periods: np.ndarray, sigma: float, enough: float) -> float:
    """About the error of an eigenvalue by that of products, over the number of rows; of ``enough`` or less a bound.

    The symbol's mean square is the square of the number of rows times the cells of its grid and the share of all pairs
    of rows that have a cell in common.
    """
    cells = [4 * m + 1 for m in half]
    heaviest = prod(_mode_weights(period, sigma)[1] for period in periods)

    def rounding(pairs: float) -> float:
        mean = sqrt(max(prod(cells) * pairs, 1.0))
        error = product_rounding(prod(cells) * 2.0 ** len(cells), inf, mean, heaviest, 1.0, 1.0)
        return 3.0 * sqrt(KRYLOV_COLUMNS) * error

    most = rounding(1.0)
    if most <= enough:
        return most
    places = ((data.sample - data.box[0]) * (np.array(cells) / periods)).astype(np.intp)
    counts = np.unique(np.ravel_multi_index(tuple(places.T), cells, mode="clip"), return_counts=True)[1].astype(float)
    others = max(len(places) - 1, 1)
    return rounding(float(counts @ (counts - 1.0)) / (len(places) * others))


def _expected_product(half: tuple[int, ...], reaches: list[float]) -> tuple[float, float]:
    """Flops of a product of the second moment with a column, and its order: of fewer directions, where these do."""
    d, D, grid = len(half), prod(2 * m + 1 for m in half), float(prod(4 * m + 1 for m in half))
    if D >= compressed.LEAST.get(d, inf):
        directions = compressed.expected_directions(reaches)
        if directions <= (1.0 if d < 3 else 0.6) * compressed.MOST[d]:
            size = directions if d < 3 else 2.0 * directions  # as measured
            return DIRECTION_FLOPS * directions, size
    return FFT_FLOPS * grid * log(grid + 2.0), float(D)


def fourier_offers(data: Summary, sigma: float, tol: float) -> list[Offer]:
    """The offer of the Gaussian's Fourier map for rows with this summary; none beyond d = 3 or too many modes."""
    d = data.n_features
    if d > 3 or not 0.0 < tol < 1.0:
        return []
    sizes = _sizes(data, sigma, tol)
    if sizes is None:
        return []
    half, rim = sizes
    D = prod(2 * m + 1 for m in half)
    eps = _eps_for(rim, tol, d)
    rounding = 3.01 * transforms.error_bound(tuple(2 * m for m in half), eps, _safety(rim, eps))
    if D > LARGEST or rounding > tol:
        return []
    grid = float(prod(4 * m + 1 for m in half))
    sides = data.box[1] - data.box[0]
    periods = sides + 2.0 * _margin(d) * sigma
    rounding += _expected_rounding(data, half, periods, sigma, LITTLE * tol)
    doubled, n = tuple(2 * m for m in half), max(1, data.n_samples)
    reach = (pi * sides / periods).tolist()
    rates = 2.0 * (pi * sigma / periods) ** 2
    # the weights of pairs of modes, by their sum, are a Gaussian twice as wide
    of_moment = doubled, eps, reach, n, 1, transforms.gaussian_mean_modes(rates / 2.0, doubled)
    of_columns = half, eps, reach, n, COLUMNS, transforms.gaussian_mean_modes(rates, half)
    row, column = transforms.cost(*of_moment) / n, transforms.cost(*of_columns) / (n * COLUMNS)
    # two threads may make them at the same time
    waves = 2.0 * max(transforms.held_bytes(*of_moment), transforms.held_bytes(*of_columns))
    product, size = _expected_product(half, [m * r for m, r in zip(half, reach)])
    # a longer basis only where there is room; on a line LAPACK may take the matrix, its copies and its vectors
    basis = 7.0 * D if d == 1 and DENSE < D <= DENSE_LINE else min(160.0, D)
    cost = Cost(
        n_features=D,
        row_flops=column,
        setup_flops=FFT_FLOPS * grid * log(grid + 2.0),
        memory=16.0 * grid * (2.0**d + 4.0) * 2.0 + 8.0 * D * basis + waves,
        residual=tol,
        moment_flops=row,
        product_flops=product,
        moment_size=size,
        rounding=rounding,
    )
    box = data.box
    return [Offer("fourier", cost, lambda sample: gaussian_fourier_map(box, sigma, tol))]
