"""Products on a line: kernels that are a polynomial times an exponential of the distance, in O(N log N).

Matérn kernels of half-integer order nu = p + 1/2 are exp(-t) sum_m c_m t^m with t = sqrt(2 nu) r / length_scale
(Rasmussen & Williams 2006, 4.16), and p = 0 is the Laplacian. Of sorted points, the sums over those before each follow
from p + 1 moments Z_m = sum_j u_j exp(-t_j) t_j^m / m!, which move on by a distance D as

    Z_m <- exp(-D) sum_l D^(m-l) / (m-l)! Z_l:

a triangular system of bands, with positive terms of at most one. Its transpose gives the sums over those after each.
Runs of about sqrt(N) points have a system each, and the moments at their ends one more: a term passes 2 sqrt(N) steps
instead of N, and rounding grows as little.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import scipy  # scipy.linalg is loaded where it is used first

from fastkpca.base import parallel
from fastkpca.base.rounding import UNIT
from fastkpca.kernels import Cost, Offer, Summary, Summation
from fastkpca.methods import Rows

# In the flops of a ``Cost``, on one thread, by benchmarks/speed/matern.py
PER_POINT, PER_MOMENT = 120.0, 200.0
PER_NEW_POINT, PER_NEW_MOMENT = 450.0, 200.0


def half_integer_coefficients(p: int) -> np.ndarray:
    """c_m m! of nu = p + 1/2: c_m = p! / (2p)! (2p - m)! / (m! (p - m)!) 2^m, all positive, c_0 = 1."""
    f = math.factorial
    return np.array([f(p) / f(2 * p) * f(2 * p - m) / f(p - m) * 2.0**m for m in range(p + 1)])


def error_bound(p: int, points: int) -> float:
    """Bound on the rounding of an entry of the product over sum |u|, for n targets and m sources.

    The contribution of a source is a sum of positive terms, at most k <= 1 in all, so that relative errors of the
    steps add up. A step has one of (3 p + 5) u: of exp and of the powers in its factors, of its products and sums. A
    term passes a run of points, at most all runs and one step more, and is added to those of at most two runs. The
    scale and the distances that it multiplies: 4 u t |k'(t)| <= 3 u. Sums with c_m, of both directions, and less u
    itself: p + 6.
    """
    runs = math.isqrt(points) + 2
    return ((2 * runs + 2) * (3 * p + 5) + 2 * runs + p + 9) * UNIT


def _terms(steps: np.ndarray, p: int) -> list[np.ndarray]:
    """exp(-t) t^m / m! for m up to p."""
    steps = np.minimum(steps, 1000.0)  # where all are zero
    terms = [np.exp(-steps)]
    for m in range(1, p + 1):
        terms.append(terms[-1] * steps / m)
    return terms


def _system(steps: np.ndarray, p: int) -> np.ndarray:
    """The bands below a diagonal of ones, of moments in the order of points: ``steps`` lead from each to the next."""
    bands = np.zeros((2 * p + 2, len(steps) * (p + 1)), order="F")
    for m, term in enumerate(_terms(steps, p)):
        for low in range(p + 1 - m):
            bands[p + 1 + m, low :: p + 1] = -term
    return bands


def _solved(bands: np.ndarray, moments: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Moments (k, ..., p + 1) of all points from those that each adds, for k columns."""
    solve, result = scipy.linalg.blas.dtbsv, moments.copy().reshape(len(moments), -1)
    for column in result:
        column[:] = solve(len(bands) - 1, bands, column, lower=1, diag=1, trans=transposed, overwrite_x=1)
    return result.reshape(moments.shape)


class LineSummation(Summation):
    """K U on a line by sums over sorted points, from both sides.

    Parameters
    ----------
    scale : float
        t = scale |x - y|.
    coefficients : ndarray (p + 1,)
        c_m m!, of k = exp(-t) sum_m c_m t^m.
    X, Y : Rows
        Targets and sources, of one coordinate; Y None: the same rows.
    """

    def __init__(self, scale: float, coefficients: np.ndarray, X: Rows, Y: Rows | None = None):
        self.symmetric = Y is None
        self.shape = (len(X), len(X if Y is None else Y))
        self._C, p = coefficients, len(coefficients) - 1
        points = np.concatenate([rows.all()[:, 0] for rows in (X, Y) if rows is not None])
        n, run = len(points), math.isqrt(len(points))
        self.error_bound = error_bound(p, n)
        order = np.argsort(points, kind="stable")
        ranks = np.empty_like(order)
        ranks[order] = np.arange(n)
        self._x, self._y = ranks[: len(X)], ranks if Y is None else ranks[len(X) :]
        # in runs of one length: the last is filled up with points that are neither target nor source
        x = points[np.append(order, np.full(-n % run, order[-1]))].reshape(-1, run)
        self._bands = _system(scale * np.diff(x, append=np.inf).ravel(), p)
        self._end_bands = _system(scale * np.diff(x[:, -1], append=np.inf), p)
        # from the end of a run to each point of the next
        onward = _terms(scale * (x[1:] - x[:-1, -1:]), p)
        self._onward = [(low, m, term) for m, term in enumerate(onward) for low in range(p + 1 - m)]
        self._shape = (*x.shape, p + 1)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, self._x, self._y)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, self._y, self._x)

    def _multiply(self, U: np.ndarray, targets: np.ndarray, sources: np.ndarray) -> np.ndarray:
        V = np.empty((len(targets), U.shape[1]))
        size = math.prod(self._shape)
        parts = parallel.columns(U.shape[1], parallel.FLOPS_PER_NUMBER * float(size) * U.shape[1])

        def task(i: int) -> None:
            columns = U[:, parts[i]].T
            u = np.zeros((len(columns), size // len(self._C)))
            u[:, sources] = columns
            V[:, parts[i]] = (self._before(u) + self._after(u) - u)[:, targets].T

        parallel.each(task, len(parts), n_threads=self.n_threads)
        return V

    def _before(self, u: np.ndarray) -> np.ndarray:
        """Sums over the sources at or before each point, itself among them; a row for each column of the product."""
        moments = np.zeros((len(u), *self._shape))
        moments[..., 0] = u.reshape(moments.shape[:-1])
        moments = _solved(self._bands, moments)
        of_ends = _solved(self._end_bands, moments[:, :, -1])[:, :-1, None]
        for low, m, term in self._onward:
            moments[:, 1:, :, low + m] += term * of_ends[..., low]
        return (moments @ self._C).reshape(u.shape)

    def _after(self, u: np.ndarray) -> np.ndarray:
        """Sums over the sources at or after it: each step of ``_before`` transposed, from the last to the first."""
        moments = np.multiply.outer(u, self._C).reshape(len(u), *self._shape)
        of_ends = np.zeros_like(moments[:, :, -1])
        for low, m, term in self._onward:
            of_ends[:, :-1, low] += np.einsum("ij,kij->ki", term, moments[:, 1:, :, low + m])
        moments[:, :, -1] += _solved(self._end_bands, of_ends, transposed=True)
        return _solved(self._bands, moments, transposed=True)[..., 0].reshape(u.shape)


def line_offers(p: int, scale: float, data_x: Summary, data_y: Summary, tol: float | None) -> list[Offer]:
    """Sums over sorted points, where rows are single numbers and the error asked for is above rounding."""
    points = data_x.n_samples + (0 if data_x is data_y else data_y.n_samples)
    bound = error_bound(p, points)
    extent = max(float(data.box[1, 0] - data.box[0, 0]) for data in (data_x, data_y))
    known = 1e-290 < 1.0 / scale < 1e290 and math.isfinite(extent * scale)
    if data_x.n_features != 1 or not known or (tol is not None and bound > tol):
        return []
    C = half_integer_coefficients(p)

    share = points / data_x.n_samples
    cost = Cost(
        row_flops=share * (PER_POINT + PER_MOMENT * p),  # of each column: its moments are read from memory
        setup_flops=(PER_NEW_POINT + PER_NEW_MOMENT * p) * points,
        memory=(16.0 * (p + 1) ** 2 + 40.0 * (p + 3)) * points,
        column_memory=(16.0 * (p + 1) + 24.0) * points,
        residual=bound,
    )
    return [Offer("sorted", cost, partial(LineSummation, scale, C))]
