"""Products on a line: kernels that are a polynomial times an exponential of the distance, in O(N log N).

Matérn kernels of half-integer order nu = p + 1/2 are exp(-t) sum_m c_m t^m with t = sqrt(2 nu) r / length_scale
(Rasmussen & Williams 2006, 4.16), and p = 0 is the Laplacian. After a sort, one sweep from each side gives every sum;
``_sorted`` says how, and why its errors do not grow with the number of points.
"""

from __future__ import annotations

import math

import numpy as np

from fastkpca.base import parallel
from fastkpca.base.rounding import UNIT
from fastkpca.kernels import Cost, Offer, Summary, Summation
from fastkpca.methods import Rows

from . import _sorted

WIDTH = 0.5
"""Of a window of points with one anchor, in length scales: exp(WIDTH) is what its terms may grow by."""


def half_integer_coefficients(p: int) -> np.ndarray:
    """c_m m! of nu = p + 1/2: c_m = p! / (2p)! (2p - m)! / (m! (p - m)!) 2^m, all positive, c_0 = 1."""
    f = math.factorial
    return np.array([f(p) / f(2 * p) * f(2 * p - m) / f(p - m) * 2.0**m for m in range(p + 1)])


def error_bound(p: int) -> float:
    """Bound on the rounding of an entry of the product over sum |u|.

    Write P(t) for the polynomial; P(t) exp(-t) <= 1, so P(t) <= exp(t). A source s after its anchor and a target tau
    after theirs, D apart, contribute terms of size at most u exp(s - tau - D) P(s + tau + D) <= u exp(2 s) <= e u,
    and where the anchors are D > 0 apart at most e^(1/2) times exp(1) k(D - 1). Forming and adding them costs
    (3 p + 12) roundings; exp(s), exp(-tau) and positions two each; sums within a window are made in doubled precision.
    Every move to another window costs (p + 6) more, of terms that have decayed: the j-th is at least (j - 1) / 2
    away, and sum_j k((j - 1) / 2 - 1) over t = j / 2 is at most 8 + 4 p (that sum is about 2 int k dt = 2 (1 + c_1 +
    2 c_2 + ...) <= 2 (1 + p)). The scale and the distances it multiplies: 2 u t |k'(t)| <= 1.5 u.
    """
    return math.exp(1.5) * ((3 * p + 24) + (p + 6) * (8 + 4 * p)) * UNIT


class LineSummation(Summation):
    """K U on a line by two sweeps over sorted points.

    Parameters
    ----------
    scale : float
        t = scale |x - y|.
    coefficients : ndarray (p + 1,)
        c_m m!, of k = exp(-t) sum_m c_m t^m.
    X, Y : Rows
        Targets and sources, of one coordinate; Y None: the same rows.
    """

    def __init__(self, scale: float, coefficients: np.ndarray, X: Rows, Y: Rows | None = None, *, n_threads: int = 1):
        self.symmetric = Y is None
        self.n_threads = n_threads
        self.shape = (len(X), len(X if Y is None else Y))
        self.error_bound = error_bound(len(coefficients) - 1)
        self._scale, self._C = scale, np.ascontiguousarray(coefficients)
        x = X.all()[:, 0]
        y = x if Y is None else Y.all()[:, 0]
        self._x_order = np.argsort(x, kind="stable")
        self._y_order = self._x_order if Y is None else np.argsort(y, kind="stable")
        xs = np.ascontiguousarray(x[self._x_order])
        ys = xs if Y is None else np.ascontiguousarray(y[self._y_order])
        width = WIDTH / scale
        if Y is None:
            self._anchors, number = _sorted.windows(xs, width)
            self._x = self._y = self._side(xs, number)
        else:
            merged = np.concatenate([xs, ys])
            order = np.argsort(merged, kind="stable")
            self._anchors, number = _sorted.windows(merged[order], width)
            windows = np.empty_like(number)
            windows[order] = number
            self._x = self._side(xs, windows[: len(xs)].copy())
            self._y = self._side(ys, windows[len(xs) :].copy())

    def _side(self, points: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, ...]:
        at = (points - self._anchors[window]) * self._scale
        grow = np.exp(at)
        return points, window, at, grow, 1.0 / grow

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, self._x, self._y, self._x_order, self._y_order)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, self._y, self._x, self._y_order, self._x_order)

    def _multiply(self, U: np.ndarray, targets: tuple, sources: tuple, out_order: np.ndarray, in_order: np.ndarray):
        V = np.empty((len(out_order), U.shape[1]))
        xs, x_window, x_at, x_grow, x_decay = targets
        ys, y_window, y_at, y_grow, y_decay = sources
        parts = parallel.columns(U.shape[1], parallel.A_NUMBER * float(U.size) * len(self._C))
        far = math.exp(WIDTH)

        def task(i: int) -> tuple[slice, np.ndarray]:
            part, backward = parts[i // 2], bool(i % 2)
            columns = np.ascontiguousarray(U[in_order, part])
            out = np.empty((len(xs), columns.shape[1]))
            if backward:  # measured from the end of the window
                forms = (WIDTH - x_at, x_grow / far), (WIDTH - y_at, y_decay * far)
            else:
                forms = (x_at, x_decay), (y_at, y_grow)
            x_side, y_side = (xs, *forms[0], x_window), (ys, *forms[1], y_window)
            _sorted.sweep(self._C, self._scale, self._anchors, *x_side, *y_side, backward, columns, out)
            return part, out

        before = V[:, :0]
        for i, (part, out) in enumerate(parallel.run(task, 2 * len(parts), n_threads=self.n_threads)):
            if i % 2:
                V[out_order, part] = before + out
            else:
                before = out
        return V


def line_offers(p: int, scale: float, data_x: Summary, data_y: Summary, tol: float | None) -> list[Offer]:
    """The sweep over sorted points, where rows are single numbers and the error asked for is above rounding."""
    if data_x.n_features != 1 or p >= _sorted.TERMS:
        return []
    bound = error_bound(p)
    if tol is not None and bound > tol:
        return []
    extent = max(float(data.box[1, 0] - data.box[0, 0]) for data in (data_x, data_y))
    if not 1e-290 < 1.0 / scale < 1e290 or not math.isfinite(extent * scale):
        return []
    C = half_integer_coefficients(p)

    def build(X: Rows, Y: Rows | None = None) -> Summation:
        return LineSummation(scale, C, X, Y)

    points = 1.0 + data_y.n_samples / data_x.n_samples
    cost = Cost(
        row_flops=points * (150.0 + 100.0 * p),
        column_flops=points * (40.0 + 40.0 * p),
        setup_flops=700.0 * (data_x.n_samples + data_y.n_samples),
        memory=100.0 * (data_x.n_samples + data_y.n_samples),
        residual=bound,
    )
    return [Offer("sorted", cost, build)]
