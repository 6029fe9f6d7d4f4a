"""The search for the rotation of least contrast: pair by pair over the whole circle, then descent along geodesics."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from .contrast import Contrast

ANGLES = 18
"""Of a plane, over the quarter turn after which two components only change places."""


def random_rotation(generator: np.random.Generator, c: int) -> np.ndarray:
    Q, R = np.linalg.qr(generator.standard_normal((c, c)))
    return Q * np.sign(np.diag(R))


def turn_pairs(target: Contrast, W: np.ndarray) -> np.ndarray:
    """Sweeps over pairs of components, each turned to the best of some angles: a global search, plane by plane."""
    angles = np.arange(ANGLES) * (0.5 * np.pi / ANGLES)
    c = target.c
    W = W.copy()
    for _ in range(c - 1):  # one sweep over all pairs is enough for two components
        turned = False
        for i in range(c):
            for j in range(i + 1, c):
                pair = [i, j]
                values = target.planes(W[pair] @ target.Z.T, angles)
                best = int(np.argmin(values))
                if best == 0 or not values[best] < values[0]:
                    continue
                turned = turned or 1 < best < ANGLES - 1
                cos, sin = np.cos(angles[best]), np.sin(angles[best])
                W[pair] = np.array([[cos, sin], [-sin, cos]]) @ W[pair]
        if not turned:
            break
    return W


class Curvature:
    """An estimate of the inverse Hessian in the entries of A above the diagonal (BFGS); outlives a descent, because
    the next one is on more rows of the same mixture."""

    def __init__(self) -> None:
        self.inverse: np.ndarray | None = None

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Downhill; without a past there is no scale, and the longest turn is a twentieth of a right angle."""
        if self.inverse is None:
            return -gradient * (0.08 / max(float(np.abs(gradient).max()), 1e-300))
        return -(self.inverse @ gradient)

    def learn(self, s: np.ndarray, y: np.ndarray) -> None:
        product = float(s @ y)
        if not product > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return
        if self.inverse is None:
            self.inverse = np.eye(len(s)) * (product / float(y @ y))
        image = self.inverse @ y
        self.inverse += np.outer(s, s) * ((1.0 + float(y @ image) / product) / product)
        self.inverse -= (np.outer(image, s) + np.outer(s, image)) / product


class _Point(NamedTuple):
    """A rotation, the contrast there, and its slopes along the entries of A above the diagonal."""

    W: np.ndarray
    value: float
    slope: np.ndarray


def _point(target: Contrast, W: np.ndarray, value: float, state: tuple) -> _Point:
    relative = target.gradient(W, state) @ W.T
    return _Point(W, value, (relative - relative.T)[np.triu_indices(target.c, 1)])


def descend(
    target: Contrast, W: np.ndarray, max_iter: int, curvature: Curvature | None = None
) -> tuple[np.ndarray, float, dict[str, Any]]:
    """Quasi-Newton descent along geodesics W <- exp(A) W of the rotations, A skew-symmetric.

    A's entries above the diagonal are the coordinates, about the current W each time; changes of the gradient are
    carried along as they are.
    """
    fine = 3e-3 / math.sqrt(target.n)  # radians: far below the statistical error
    curvature = Curvature() if curvature is None else curvature
    here = _point(target, W, *target.value(W))
    evaluations, iterations, small_gains, converged = 1, 0, 0, False
    while iterations < max_iter and not converged:
        known = curvature.inverse is not None
        direction = curvature.direction(here.slope)
        downhill = float(direction @ here.slope) < 0.0
        if not downhill and known and here.slope.any():
            curvature.inverse = None
            continue
        if not downhill or (known and float(np.abs(direction).max()) < fine):
            converged = True
            break
        step, there, tried = _line_search(target, here, direction)
        evaluations += tried
        if there is None:
            converged = True  # not even a tiny step: at the resolution of the values, or at a corner
            break
        iterations += 1
        curvature.learn(step * direction, there.slope - here.slope)
        small_gains = small_gains + 1 if here.value - there.value <= 1e-7 * here.value else 0
        converged = small_gains == 3
        here = there
    u, _, v = np.linalg.svd(here.W)  # rounding of many products
    info = {
        "iterations": iterations,
        "evaluations": evaluations,
        "gradient": float(np.abs(here.slope).max()),
        "converged": converged,
    }
    return u @ v, here.value, info


def _line_search(target: Contrast, here: _Point, direction: np.ndarray) -> tuple[float, _Point | None, int]:
    """(step, the point there or None, evaluations): asks for decrease and for a flatter slope, brackets by halving
    (Lewis & Overton 2013).

    That makes BFGS work on ``kcca`` too, which has corners where several pairs of components are equally correlated.
    """
    descent, longest = float(direction @ here.slope), float(np.abs(direction).max())
    step, low, high, there, tried = min(1.0, 0.4 / longest), 0.0, math.inf, None, 0
    for _ in range(15):
        tried += 1
        A = np.zeros((target.c, target.c))
        A[np.triu_indices(target.c, 1)] = step * direction
        W = scipy.linalg.expm(A - A.T) @ here.W
        value, state = target.value(W)
        if value > here.value + 1e-4 * step * descent:
            high = step
            # the minimum of the parabola through what is known, within the bracket
            share = -0.5 * step * descent / max(value - here.value - step * descent, 1e-300)
            step = low + (high - low) * (min(0.5, max(0.1, share)) if low == 0.0 else 0.5)
            continue
        there, low = _point(target, W, value, state), step
        if float(there.slope @ direction) >= 0.9 * descent or step * longest > 0.3:
            break
        step = 2.0 * low if math.isinf(high) else 0.5 * (low + high)
    return low, there, tried
