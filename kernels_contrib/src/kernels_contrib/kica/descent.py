"""The search for the rotation of least contrast: pair by pair over the whole circle, then descent along geodesics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

from .contrast import Contrast

ANGLES = 18
"""Angles of a plane, over the quarter turn after which two components only change places."""


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


def descend(
    target: Contrast, W: np.ndarray, max_iter: int, units: np.ndarray | None = None
) -> tuple[np.ndarray, float, np.ndarray, dict[str, Any]]:
    """BFGS over exp(A) W, A skew-symmetric: (the rotation, its contrast, the units for a descent nearby, what it took).

    A's entries above the diagonal are ``units`` times the coordinates y. A first step has a length of at most one. So
    ``units`` are a twentieth of a right angle for the first descent. For the next one, on more rows of the same
    mixture, they are the root of the inverse Hessian that the last descent found.
    """
    c, fine = target.c, 3e-3 / math.sqrt(target.n)  # radians: far below the statistical error
    upper, end = np.triu_indices(c, 1), np.zeros(c * (c - 1) // 2)
    # with units that are known, a slope in them is a step of Newton's
    least = 0.0 if units is None else fine / float(np.linalg.norm(units, 2))
    units = 0.08 * np.eye(len(end)) if units is None else units
    values: list[float] = []

    def turn(y: np.ndarray) -> np.ndarray:
        A = np.zeros((c, c))
        A[upper] = units @ y
        return A - A.T

    def cost(y: np.ndarray) -> tuple[float, np.ndarray]:
        A = turn(y)
        V = scipy.linalg.expm(A) @ W
        value, state = target.value(V)
        slope = scipy.linalg.expm_frechet(A.T, target.gradient(V, state) @ W.T, compute_expm=False)
        return value, units.T @ (slope - slope.T)[upper]

    def near(intermediate_result: Any) -> None:
        nonlocal end
        step, end = np.abs(units @ (intermediate_result.x - end)).max(), intermediate_result.x.copy()
        values.append(intermediate_result.fun)
        if step < fine or (len(values) > 3 and values[-4] - values[-1] <= 3e-7 * values[-1]):
            raise StopIteration

    options = {"maxiter": max_iter, "gtol": least, "ftol": 0.0}
    found = scipy.optimize.minimize(cost, end, jac=True, method="L-BFGS-B", callback=near, options=options)
    lengths, axes = np.linalg.eigh(found.hess_inv.todense())
    info = {
        "iterations": found.nit,
        "evaluations": found.nfev,
        "gradient": float(np.abs(np.linalg.solve(units.T, found.jac)).max()),
        "converged": found.nit < max_iter or found.status != 1,
    }
    learned = units @ (axes * np.sqrt(np.maximum(lengths, np.finfo(float).tiny)))
    return scipy.linalg.expm(turn(found.x)) @ W, float(found.fun), learned, info
