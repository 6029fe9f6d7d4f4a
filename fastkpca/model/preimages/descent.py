"""The row whose image is nearest to a point P of feature space: |phi(x) - P|^2, its gradient, and its minimisation.

P is known only by its inner products f(x) = <phi(x), P>, so J(x) = k(x, x) - 2 f(x) is minimised. Functions work on a
block of points at once, each with its own P; which points form a block depends on shapes alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from ...base import parallel
from ...base.differences import DIFFERENCE, central_difference
from ...base.protocol import LARGEST, FeatureMap, Kernel
from ...base.rounding import EPS

MAX_STORED_WEIGHTS = 1 << 20
"""Weights of a block of points that are computed once (8 MB a thread); more are computed anew in each step."""


class _Values(NamedTuple):
    """J, f, grad J, the rounding noise of J, and the size below which f is only rounding, for a block of points."""

    objective: np.ndarray
    inner: np.ndarray
    gradient: np.ndarray
    noise: np.ndarray
    floor: np.ndarray

    def of(self, index: np.ndarray) -> _Values:
        return _Values(*(values[index] for values in self))

    def put(self, index: np.ndarray, other: _Values) -> None:
        for values, new in zip(self, other):
            values[index] = new


Target: TypeAlias = Callable[[np.ndarray, np.ndarray], _Values]
"""Values at points x (b, d), of the P with these numbers (b,)."""


def rows_target(
    kernel: Kernel, points: np.ndarray, left: np.ndarray, base: np.ndarray, Z: np.ndarray, length: float
) -> Target:
    """P_j = sum_i weights_ij phi(x_i), weights = base + left Z_j': of training rows, or of pivots.

    Parameters
    ----------
    kernel : Kernel
    points : ndarray (n, d)
    left : ndarray (n, c)
    base : ndarray (n,)
    Z : ndarray (b, c)
    length : float
        Over which the kernel changes; for differences.
    """

    every = Z @ left.T + base if len(Z) * len(points) <= MAX_STORED_WEIGHTS else None

    def values(x: np.ndarray, index: np.ndarray) -> _Values:
        b, d = x.shape
        f, noise, gradient = np.zeros(b), np.zeros(b), np.zeros((b, d))
        shifts = DIFFERENCE * np.maximum(length, EPS * np.abs(x).max(axis=1))
        steps = np.repeat(shifts[:, None], d, axis=1)
        step = parallel.tile_rows(b)
        for start in range(0, len(points), step):
            tile = slice(start, start + step)
            Y = np.ascontiguousarray(points[tile], dtype=np.float64)
            weights = Z[index] @ left[tile].T + base[tile] if every is None else every[index, tile]
            K = kernel.block(x, Y)
            f += np.einsum("ij,ij->i", weights, K)
            gradient += kernel.gradient_sums(x, Y, K, steps)(weights, np.ones((len(Y), 1)))[:, 0]
            noise += np.einsum("ij,ij->i", np.abs(weights, out=weights), np.abs(K))
        diagonal, diagonal_gradient = _diagonal(kernel, x, shifts)
        floor = 32.0 * EPS * noise
        noise = 8.0 * EPS * (np.abs(diagonal) + 2.0 * noise)
        return _Values(diagonal - 2.0 * f, f, diagonal_gradient - 2.0 * gradient, noise, floor)

    return values


def map_target(kernel: Kernel, feature_map: FeatureMap, B: np.ndarray, length: float) -> Target:
    """f(x) = phi(x).b_j for a feature map: differences for its gradient.

    Parameters
    ----------
    kernel : Kernel
    feature_map : FeatureMap
    B : ndarray (b, D)
    length : float
    """

    def values(x: np.ndarray, index: np.ndarray) -> _Values:
        b = B[index]
        Phi = feature_map.features(x)
        f = np.einsum("ij,ij->i", Phi, b)
        noise = np.einsum("ij,ij->i", np.abs(Phi), np.abs(b))
        shifts = DIFFERENCE * np.maximum(length, EPS * np.abs(x).max(axis=1))

        def inner(at: np.ndarray) -> np.ndarray:
            return np.einsum("ij,ij->i", feature_map.features(at), b)

        gradient = np.stack([central_difference(inner, x, j, shifts) for j in range(x.shape[1])], axis=1)
        diagonal, diagonal_gradient = _diagonal(kernel, x, shifts)
        noise = 2.0 * (8.0 * EPS + feature_map.rounding) * noise + 8.0 * EPS * np.abs(diagonal)
        # f does not contain the residual of the map
        floor = noise + np.sqrt(feature_map.residual(x, Phi) * np.einsum("ij,ij->i", b, b))
        return _Values(diagonal - 2.0 * f, f, diagonal_gradient - 2.0 * gradient, noise, floor)

    return values


def _diagonal(kernel: Kernel, x: np.ndarray, shifts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """k(x, x) and its gradient."""
    diagonal = np.asarray(kernel.diagonal(x), dtype=np.float64)
    if kernel.translation == "kernel":
        return diagonal, np.zeros_like(x)
    slopes = kernel.gradient_weights(x, x, kernel.block(x, x))
    if slopes is not None:  # a function of x.y: both arguments move
        return diagonal, 2.0 * np.diagonal(slopes)[:, None] * x
    return diagonal, np.stack([central_difference(kernel.diagonal, x, j, shifts) for j in range(x.shape[1])], axis=1)


@dataclass
class Descent:
    """End points of a block of descents; ``visible``: f is more than rounding there."""

    x: np.ndarray
    objective: np.ndarray
    visible: np.ndarray
    converged: np.ndarray

    def arrived(self, sigma: float | None) -> np.ndarray:
        """Converged, and for the Gaussian (of width sigma) nearer to P than infinity is."""
        return self.converged & self.visible if sigma is not None else self.converged

    def better(self, other: Descent, index: np.ndarray) -> None:
        """Take over rows of ``other`` (descents of rows ``index``) where they ended lower."""
        take = (other.objective < self.objective[index]) | (other.converged & ~self.converged[index])
        rows = index[take]
        self.x[rows], self.objective[rows] = other.x[take], other.objective[take]
        self.visible[rows], self.converged[rows] = other.visible[take], other.converged[take]


def descend(
    target: Target,
    start: np.ndarray,
    index: np.ndarray,
    *,
    sigma: float | None,
    length: float,
    tol: float,
    max_iter: int,
) -> Descent:
    """Minimise J from ``start`` (b, d) for the points ``index`` of a target.

    For the Gaussian kernel the step sigma^2 / (2 f) along the gradient *is* the fixed-point iteration
    x <- sum w_i k(x, x_i) x_i / sum w_i k(x, x_i) of Mika et al. (1998), for every expansion P. It is
    lengthened by Barzilai & Borwein's rule, at most eight times, and shortened where J would rise, which weights of
    both signs can cause. For other kernels Barzilai & Borwein's rule alone sets the step.
    """
    x = np.array(start, dtype=np.float64, order="C")
    b = len(x)
    now = target(x, index)
    steps = _plain_step(now, sigma, length)
    converged, active = np.zeros(b, dtype=bool), np.arange(b)
    rejected = np.zeros(b, dtype=np.intp)
    for _ in range(max_iter):
        if not len(active):
            break
        here, t = now.of(active), steps[active]
        move = -t[:, None] * here.gradient
        y = np.ascontiguousarray(x[active] + move)
        beyond = ~(np.abs(y).max(axis=1) <= LARGEST)
        y[beyond] = x[active][beyond]
        new = target(y, index[active])
        squares = np.einsum("ij,ij->i", here.gradient, here.gradient)
        finite = np.isfinite(new.objective) & np.isfinite(new.gradient).all(axis=1)
        good = finite & ~beyond & (new.objective <= here.objective - 1e-4 * t * squares + here.noise)
        moved = np.sqrt(np.einsum("ij,ij->i", move, move))
        # any further gain is smaller than rounding
        still = ~good & (t * squares <= 4.0 * here.noise) & np.isfinite(here.noise)
        accepted = active[good]
        x[accepted] = y[good]
        now.put(accepted, new.of(good))
        plain = _plain_step(new, sigma, length)
        change = np.abs(np.einsum("ij,ij->i", move, new.gradient - here.gradient))
        longer = np.where(change > 0.0, moved**2 / np.where(change > 0.0, change, 1.0), 2.0 * t)
        longer = np.clip(longer, 1e-3 * t, 1e3 * t)
        if sigma is not None:
            longer = np.where(new.inner > 0.0, np.clip(longer, plain, 8.0 * plain), plain)
        steps[active] = np.where(good, longer, 0.25 * t)
        rejected[active] = np.where(good, 0, rejected[active] + 1)
        # a short step means convergence only if no rejection shortened it
        scale = np.maximum(length, 0.0) if sigma is not None else np.maximum(length, np.abs(y).max(axis=1))
        short = good & (moved <= tol * scale) & (t >= 0.9 * _plain_step(here, sigma, length) if sigma else good)
        done = short | still | (rejected[active] > 40)
        converged[active] = short | still
        active = active[~done]
    return Descent(x, now.objective, now.inner > now.floor, converged)


def _plain_step(values: _Values, sigma: float | None, length: float) -> np.ndarray:
    """The step of the fixed-point iteration where f is positive; else one that moves by a tenth of the length."""
    size = np.sqrt(np.einsum("ij,ij->i", values.gradient, values.gradient))
    short = 0.1 * length / np.where(size > 0.0, size, 1.0)
    if sigma is None:
        return short
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        fixed = sigma**2 / (2.0 * values.inner)
    return np.where((values.inner > values.noise) & np.isfinite(fixed), fixed, short)
