"""Fourier features of a translation-invariant kernel on a periodic box, d <= 3, and their Toeplitz second moment.

With k_per(s) = sum_n k(s + n L) = sum_m w_m exp(2 pi i m.s / L), w_m >= 0 (Poisson's summation formula), and the modes
|m_c| <= M_c kept,

    k = Phi Phi'  +  (modes left out: semidefinite, diagonal tau)  -  (images: at most ``defect`` an entry).

A mode weighs a product over the axes. The features are the products of sqrt(2 w_m) cos(2 pi m x / L), sqrt(w_0), and
sqrt(2 w_m) sin(2 pi m x / L) over the axes; D is the number of modes. Their uncentred second moment is S T S with S the
diagonal matrix of the roots and T made of the sums of such products with up to 2 M waves an axis: one non-uniform
transform of ones holds the whole data set, and a product with the moment takes the same time at any N (the
equispaced Fourier representation of P. Greengard, M. Rachh and A. Barnett, 2022).

A *new* row can lie anywhere. The period L is the box's side plus twice ``margin``. So within ``margin`` of the box of
the data the nearest image of a data point is at least ``margin`` away. Farther out k itself is that small, and phi(x)
is set to 0. So k(x, x_i) is right to ``beyond`` for every x. Pairs of such rows are not: moments take rows of the box.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import ceil, erfc, exp, expm1, log, pi, prod, sqrt
from typing import Any, TypeVar

import numpy as np
import scipy  # scipy.fft is loaded where it is used first

from ..base.caching import cached_property
from ..base.parallel import tile_rows
from ..base.protocol import BLAS_FLOPS, Cost, FeatureMap, Kernel, Offer, Summary
from ..base.rounding import UNIT
from ..base.stored import Record
from . import compressed, transforms
from .monomial import same_columns
from .passes import SMALL_MOMENT
from .toeplitz import DENSE, FFT_FLOPS, ToeplitzMoments, product_flops, product_rounding

T = TypeVar("T")

MAX_MODES = 1 << 21
"""Most modes: the doubled grid then has 2^d times as many complex numbers, the transform's own 2^d times those."""
TILE_ROWS = 1 << 15
"""Rows of a tile: the fixed cost of a transform occurs once a tile."""
BLOCK_COLUMNS = 10
"""Columns of scores in a block: their transforms share the work for a row. About as many blocks span a Krylov space."""
IMAGE_ERROR = 1e-4
"""Error of a kernel value between a row of the box and one outside of it. Twice the margin that this takes lies between
two rows of the box and their images, whose error is then far below any tolerance."""
TOL_FRACTION = 0.1
"""Fraction of the tolerance for the truncated modes, and the same for the error of the transforms. It costs few more
modes, and allows for a first eigenvalue that a few rows of a flat spectrum overestimate."""


class FourierMap(FeatureMap):
    """Products over the axes of sqrt(2 w_m) cos(2 pi m (x - centre) / L) and sin, for the modes of a centred box.

    Parameters
    ----------
    box : ndarray (2, d)
        Smallest and largest coordinates of the rows for which ``defect`` holds.
    margin : ndarray (d,)
        How far outside the box a new row still counts; the period is the box's side plus twice this, by axis.
    lines : list of ndarray (M_c + 1,)
        w_m for 0 <= m <= M_c by axis, non-negative: a mode weighs their product, and as much as with -m for m.
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
    tile_rows = TILE_ROWS

    def __init__(
        self,
        box: np.ndarray,
        margin: np.ndarray,
        lines: Sequence[np.ndarray],
        *,
        tail: float,
        images: float,
        beyond: float,
        eps: float,
    ):
        self.box = np.array(box, dtype=np.float64)
        self.margin = np.array(margin, dtype=np.float64)
        self.lines = [np.array(line, dtype=np.float64) for line in lines]
        self.tail, self.images, self.beyond, self.eps = float(tail), float(images), float(beyond), float(eps)
        self.transform_eps = self.eps
        self.half = tuple(len(line) - 1 for line in self.lines)
        self.waves = tuple(2 * m + 1 for m in self.half)
        self.grid = tuple(scipy.fft.next_fast_len(4 * m + 1, real=True) for m in self.half)
        self.n_features = prod(self.waves)
        self.centre = self.box.mean(axis=0)
        self.period = (self.box[1] - self.box[0]) + 2.0 * self.margin
        # the phase of the box's own rim, with an allowance for its rounding: rows this little outside do no harm
        self._inside = pi * (self.box[1] - self.box[0]) / self.period * (1.0 + 1e-12) + 1e-14
        self._doubled = [np.concatenate([line[:1], 2.0 * line[1:]]) for line in self.lines]  # -m counts with m
        self.roots = [np.sqrt(np.concatenate([line, line[1:]])) for line in self._doubled]
        self.root = reduce(np.multiply.outer, self.roots)
        self.total = prod(float(line.sum()) for line in self._doubled)
        # the moment's own: with the errors e of t_j = sum_i exp(-i j.x_i) it errs by a matrix of the squared Frobenius
        # norm sum_j |e_j|^2 (w * w)_j, and (w * w)_j add up to (sum w)^2, so by sum w times the weighted root mean
        # square of e, and with its mean three times that and its square, e being a thirtieth at most
        self.transform_error = 3.04 * self.total * transforms.error_bound(tuple(2 * m for m in self.half), self.eps)
        self.defect = self.images + self.transform_error
        self.rounding = (4.0 * pi * sum(self.half) + 64.0) * UNIT

    def _kept(self, make: Callable[[np.ndarray, int], T]) -> Callable[[np.ndarray], T]:
        """From points P to what is made for an interval (2, d) that holds them and about as many points; kept for other
        tiles of rows of the box."""
        known: dict[int, T] = {}

        def made(P: np.ndarray) -> T:
            n = 1 << max(P.shape[1] - 1, 0).bit_length()
            if P.size and (np.abs(P) > self._inside[:, None]).any():
                return make(np.stack([P.min(axis=1), P.max(axis=1)]), n)
            if n not in known:
                known[n] = make(np.stack([-self._inside, self._inside]), n)
            return known[n]

        return made

    @cached_property
    def nodes_of_pairs(self) -> Callable[[np.ndarray], transforms.Nodes]:
        """Transforms for the sums of all products of two waves."""
        half, modes = tuple(2 * m for m in self.half), transforms.mean_modes(self.weights_of_pairs)
        return self._kept(lambda ends, n: transforms.Nodes(half, self.eps, ends, n, 1, modes))

    def _values(self, coefficients: np.ndarray, modes: np.ndarray) -> Callable[[np.ndarray], transforms.Type2]:
        def make(ends: np.ndarray, n: int) -> transforms.Type2:
            nodes = transforms.Nodes(self.half, self.eps, ends, n, len(coefficients), modes)
            return transforms.Type2(coefficients, nodes)

        return self._kept(make)

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

    @property
    def weights_of_pairs(self) -> list[np.ndarray]:
        """(w * w)_j for 0 <= j <= 2 M by axis, those of -j counted with j."""
        both = [np.convolve(x, x)[len(x) - 1 :] for x in (np.hstack([line[:0:-1], line]) for line in self.lines)]
        return [np.concatenate([line[:1], 2.0 * line[1:]]) for line in both]

    def features(self, X: np.ndarray) -> np.ndarray:
        P, near = self._points(X)
        Phi = np.ones((P.shape[1], 1))
        for p, m, root in zip(P, self.half, self.roots):
            waves = transforms.waves_at(p, m) * root
            Phi = (Phi[:, :, None] * waves[:, None, :]).reshape(len(waves), Phi.shape[1] * waves.shape[1])
        if near is not None:
            Phi[~near] = 0.0
        return Phi.astype(np.asarray(X).dtype, copy=False)

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        residual = np.full(len(X), self.tail)
        near = self._points(X)[1]
        if near is not None:
            residual[~near] = self.tail + self.total * (1.0 + 1e-12)
        return residual

    def accumulate(self, X: np.ndarray, U: np.ndarray) -> np.ndarray:
        P, near = self._points(X)
        if near is not None:
            U = np.where(near[:, None], U, 0.0)
        modes = transforms.mean_modes(self._doubled)
        nodes = self._kept(lambda ends, n: transforms.Nodes(self.half, self.eps, ends, n, U.shape[1], modes))(P)
        sums = transforms.type1(P, np.asarray(U, dtype=np.float64), nodes)
        return (sums * self.root).reshape(len(sums), -1).T

    def apply(self, X: np.ndarray, C: np.ndarray) -> np.ndarray:
        return self.applied(C)(X)

    def applied(self, C: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        C = np.asarray(C, dtype=np.float64)
        coefficients = self._coefficients(C)
        sizes = np.linalg.norm(C, axis=0) * sqrt(self.total)
        waves = self._values(coefficients, transforms.modes_of(coefficients, sizes))

        def values(X: np.ndarray) -> np.ndarray:
            if len(X) <= tile_rows(8 * self.n_features, least=1):  # for few rows a sum of waves is faster
                return self.features(X) @ C
            P, near = self._points(X)
            values = waves(P)(P)
            if near is not None:
                values[~near] = 0.0
            return values

        return values

    def _coefficients(self, C: np.ndarray) -> np.ndarray:
        """Coefficients of the waves, (k, 2 M_1 + 1, ...), for those of the features, (D, k)."""
        return np.asarray(C, dtype=np.float64).T.reshape(C.shape[1], *self.waves) * self.root

    def gradients(self, C: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        modes, along = transforms.mean_modes(self._doubled), []
        for axis, (side, m) in enumerate(zip(self.period, self.half)):
            # the derivative of sin(m x) is m cos(m x), that of cos(m x) -m sin(m x)
            cosines, sines = np.split(np.moveaxis(self._coefficients(C), axis + 1, -1), [m + 1], axis=-1)
            rates = 2.0 * pi / side * np.arange(m + 1.0)
            turned = np.concatenate([0.0 * cosines[..., :1], rates[1:] * sines, -rates[1:] * cosines[..., 1:]], axis=-1)
            along.append(self._values(np.moveaxis(turned, -1, axis + 1), modes))

        def gradients(X: np.ndarray, steps: np.ndarray) -> np.ndarray:
            P, near = self._points(X)
            values = np.stack([waves(P)(P) for waves in along], axis=2)
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
        modes = [np.concatenate([np.arange(m + 1.0), -np.arange(1.0, m + 1.0)]) for m in self.half]  # sines: -m
        return {
            "kind": "waves",
            "modes": np.stack([grid.ravel() for grid in np.meshgrid(*modes, indexing="ij")], axis=1),
            "weights": self.root.reshape(1, -1) ** 2,
            "centre": self.centre[None, :],
            "period": self.period[None, :],
            "low": (self.box[0] - self.margin)[None, :],
            "high": (self.box[1] + self.margin)[None, :],
        }

    @classmethod
    def stored_size(cls, record: Record, n_columns: int) -> int:
        same_columns(record, record.array("box", (2, None)).shape[1], n_columns)
        return prod(2 * len(record.array(name, (None,))) - 1 for name in _names_of_lines(n_columns))

    def is_of_gaussian(self, sigma: float) -> bool:
        # no number of it is sigma itself, but its weights add up to k(0) = 1 but for tail and images
        left = abs(self.total + self.tail - 1.0)
        return left <= 2.0 * self.images + self.tail + 1e-9

    def new_moments(self) -> ToeplitzMoments:
        return ToeplitzMoments(self)

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        header = {"map": self.kind, "tail": self.tail, "images": self.images, "beyond": self.beyond, "eps": self.eps}
        lines = dict(zip(_names_of_lines(len(self.lines)), self.lines))
        return header, {"box": self.box, "margin": self.margin} | lines

    def __reduce__(self) -> tuple:
        return type(self).from_state, self.state()

    @classmethod
    def from_state(cls, header: dict, arrays: dict[str, np.ndarray]) -> FourierMap:
        record = Record(header, arrays, "the Fourier feature map")
        record.keys(("map", "tail", "images", "beyond", "eps"))
        box = record.array("box", (2, None))
        d = box.shape[1]
        if not (1 <= d <= 3 and (box[1] >= box[0]).all()):
            raise record.refuse(f"its box has {d} sides, or one of negative length")
        record.names(("box", "margin", *_names_of_lines(d)))
        margin = record.array("margin", (d,), least=0.0)
        lines = [record.array(name, (None,), least=0.0) for name in _names_of_lines(d)]
        if not all(len(line) for line in lines):
            raise record.refuse("it has no modes along an axis")
        with np.errstate(over="ignore"):
            period = box[1] - box[0] + 2.0 * margin
            if not ((period > 1e-300).all() and np.isfinite(period).all() and np.isfinite(prod(map(np.sum, lines)))):
                raise record.refuse("its period is zero or infinite, or its weights overflow")
        return cls(
            box,
            margin,
            lines,
            **{name: record.number(name, least=0.0) for name in ("tail", "images", "beyond")},
            eps=record.number("eps", above=0.0, most=_eps_for(1.0)),
        )


def _names_of_lines(d: int) -> list[str]:
    return [f"weights{c}" for c in range(d)]


def _mode_weights(period: float, sigma: float) -> tuple[float, float]:
    """(a, scale) of w_m = scale exp(-a m^2)."""
    return 2.0 * (pi * sigma / period) ** 2, sqrt(2.0 * pi) * sigma / period


def _last_mode(period: float, sigma: float, tail: float) -> tuple[int, float]:
    """The smallest M whose truncated modes weigh at most ``tail``, and their weight."""
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
    """Distance in units of sigma at which g, its images and those of the other axes have fallen to ``IMAGE_ERROR``."""
    return sqrt(2.0 * log(4.0 * d / IMAGE_ERROR))


def _eps_for(tol: float) -> float:
    """The accuracy to ask of the transforms, so that they take ``TOL_FRACTION`` of tol."""
    return TOL_FRACTION / 3.04 * tol


def gaussian_fourier_map(box: np.ndarray, sigma: float, tol: float) -> FourierMap:
    """The map of exp(-|x-y|^2 / (2 sigma^2)) for rows in ``box`` (2, d), residual trace over trace at most ``tol``."""
    box = np.asarray(box, dtype=np.float64)
    sides = box[1] - box[0]
    d = len(sides)
    margin = np.full(d, _margin(d) * sigma)
    periods = sides + 2.0 * margin
    lines, left = [], []
    for period in periods:
        a, scale = _mode_weights(period, sigma)
        last, beyond = _last_mode(period, sigma, TOL_FRACTION * tol / d)
        lines.append(scale * np.exp(-a * np.arange(last + 1.0) ** 2))
        left.append(beyond)
    sums = [float(line[0] + 2.0 * line[1:].sum()) for line in lines]
    tail = sum(left[c] * prod(sums[e] + left[e] for e in range(d) if e != c) for c in range(d))
    images = prod(1.0 + gaussian_images(r, p, sigma) for r, p in zip(sides, periods)) - 1.0
    images = max(images, 0.0) + 4.0 * d * UNIT  # the product above rounds where its second terms are small
    # weights: rounding of the exponent, at most a m^2 <= log(1 / tail), of exp, and of their product
    exponent = max(log(1.0 / max(float(line[-1]), 1e-300)) for line in lines)
    images += d * (6.0 * exponent + 16.0) * UNIT * prod(sums)
    # outside by more than the margin: k itself, against 0; inside it the images, a margin away
    outside = prod(1.0 + gaussian_images(r + m, p, sigma) for r, m, p in zip(sides, margin, periods)) - 1.0
    return FourierMap(
        box,
        margin,
        lines,
        tail=(tail + 8.0 * UNIT) * (1.0 + 1e-12),
        images=images,
        beyond=max(outside, exp(-0.5 * (margin.min() / sigma) ** 2)) + images,
        eps=_eps_for(tol),
    )


def _half(data: Summary, sigma: float, tol: float) -> tuple[int, ...] | None:
    """M by axis of ``gaussian_fourier_map``; None where M would be far too large."""
    d = data.n_features
    periods = (data.box[1] - data.box[0] + 2.0 * _margin(d) * sigma).tolist()
    if not prod(period / sigma for period in periods) < 16 * MAX_MODES:
        return None
    return tuple(_last_mode(period, sigma, TOL_FRACTION * tol / d)[0] for period in periods)


def fourier_offers(data: Summary, sigma: float, tol: float) -> list[Offer]:
    """The offer of the Gaussian's Fourier map for rows with this summary; none beyond d = 3 or too many modes."""
    d = data.n_features
    if d > 3 or not 0.0 < tol < 1.0:
        return []
    half = _half(data, sigma, tol)
    if half is None:
        return []
    D = prod(2 * m + 1 for m in half)
    eps = _eps_for(tol)
    rounding = 3.04 * transforms.error_bound(tuple(2 * m for m in half), eps)
    if D > MAX_MODES or rounding > tol:
        return []
    grid = float(prod(4 * m + 1 for m in half))
    sides = data.box[1] - data.box[0]
    periods = sides + 2.0 * _margin(d) * sigma
    # of an iteration's products, whose errors add up by the root of their number. The symbol's root mean square is at
    # most that of equal rows
    heaviest = prod(_mode_weights(period, sigma)[1] for period in periods)
    rounding += 3.0 * BLOCK_COLUMNS * product_rounding(half, 1.0, sqrt(grid), heaviest, 1.0)
    doubled, n = tuple(2 * m for m in half), max(1, data.n_samples)
    tiles = ceil(n / TILE_ROWS)  # each with transforms of its own
    reach = (pi * sides / periods).tolist()
    rates = 2.0 * (pi * sigma / periods) ** 2
    # the weights of pairs of modes, by their sum, are a Gaussian twice as wide
    mean_modes = [transforms.gaussian_mean_modes(*x) for x in ((rates / 2.0, doubled), (rates, half))]
    of_moment = transforms.cheapest_boxes(doubled, eps, reach, ceil(n / tiles), 1, mean_modes[0])
    of_columns = transforms.cheapest_boxes(half, eps, reach, n, BLOCK_COLUMNS, mean_modes[1])
    # two threads may make them at the same time
    held = 2.0 * max(of_moment.held_bytes(doubled, 1), of_columns.held_bytes(half, BLOCK_COLUMNS))
    functions, points, size = [2.0 * m + 1.0 for m in half], [4.0 * m + 1.0 for m in half], float(D)
    setup = FFT_FLOPS * grid * log(grid + 2.0)
    if d > 2 and D > DENSE:
        # of the few directions: LAPACK's factorisations of an axis, and the nodes that take the place of rows
        setup += sum(10.0 * n**3 + 2.0 * BLAS_FLOPS * n * grid for n in points)
        functions = [min(x, compressed.expected_functions(m * r)) for x, m, r in zip(functions, half, reach)]
        points = [2.0 * x for x in functions]  # products of two functions have twice the waves
        size = min(size, prod(functions))
    # a longer basis only where memory allows; on a line LAPACK may take the matrix, its copies and its vectors
    basis = 7.0 * D if d == 1 and DENSE < D <= SMALL_MOMENT else min(160.0, D)
    cost = Cost(
        n_features=D,
        row_flops=of_columns.cost / (n * BLOCK_COLUMNS),
        setup_flops=setup,
        memory=16.0 * grid * (2.0**d + 4.0) * 2.0 + 8.0 * D * basis + held,
        residual=tol,
        moment_flops=tiles * of_moment.cost / n,
        product_flops=product_flops(functions, points),
        moment_size=size,
        rounding=rounding,
    )
    box = data.box
    return [Offer("fourier", cost, lambda sample: gaussian_fourier_map(box, sigma, tol))]
