"""Conjugate gradients for several right sides at once (M. R. Hestenes and E. Stiefel, J. Res. NBS 49, 1952).

Each column has its own step lengths, so the result of a column does not depend on the others; one product a step
serves all of them.

The residual that a step updates drifts away from that of the solution, and goes on falling where rounding holds the
latter. Who needs no more than a better start or direction takes ``conjugate_gradients``; who relies on the residual
takes ``solve_to_residual``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_logger = logging.getLogger("fastkpca")

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Iterated:
    """The result of the iterations.

    Attributes
    ----------
    solution : ndarray (n, k)
        Each column where its residual was smallest.
    residuals : ndarray (k,)
        Norms of these residuals: from the recurrence, or those of the solution (``solve_to_residual``).
    steps : int
    definite : bool
        False: a direction of zero or negative curvature was met, where the iterations of that column ended.
    """

    solution: np.ndarray
    residuals: np.ndarray
    steps: int
    definite: bool


def column_products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """a_j . b_j for the columns of two matrices."""
    return np.einsum("ij,ij->j", A, B)


def conjugate_gradients(
    operator: Map,
    B: np.ndarray,
    *,
    goal: np.ndarray,
    most_steps: int,
    precondition: Map = lambda R: R,
    inner: Callable[[np.ndarray, np.ndarray], np.ndarray] = column_products,
) -> Iterated:
    """X with A X = B, A symmetric positive definite.

    Parameters
    ----------
    operator : callable
        V (n, k) -> A V.
    B : ndarray (n, k)
    goal : ndarray (k,)
        Norm of the residual at which a column is done.
    most_steps : int
    precondition : callable
        R (n, k) -> about A^-1 R.
    inner : callable
        The inner products (k,) of corresponding columns, in which A is symmetric.
    """
    X, R = np.zeros_like(B), B.copy()
    Z = precondition(R)
    D = Z.copy()
    rho = inner(R, Z)
    best, smallest = X.copy(), np.sqrt(np.maximum(inner(R, R), 0.0))
    active = smallest > goal
    steps = 0
    definite = True
    while active.any() and steps < most_steps:
        image = operator(D)
        curvature = inner(D, image)
        definite = definite and bool((curvature[active] > 0).all())
        active &= curvature > 0
        length = np.divide(rho, curvature, out=np.zeros_like(rho), where=active)
        X += length * D
        R -= length * image
        Z = precondition(R)
        before, rho = rho, inner(R, Z)
        D = Z + np.divide(rho, before, out=np.zeros_like(rho), where=active & (before > 0)) * D
        steps += 1
        residuals = np.sqrt(np.maximum(inner(R, R), 0.0))
        better = residuals < smallest
        best[:, better], smallest[better] = X[:, better], residuals[better]
        active &= smallest > goal
    return Iterated(best, smallest, steps, definite)


def solve_to_residual(
    operator: Map, B: np.ndarray, *, goal: np.ndarray, most_steps: int, finish: Map = lambda X: X, **options: Any
) -> Iterated:
    """X with A X = B whose ``residuals`` are B - A X, computed anew: ``conjugate_gradients`` begins again with what is
    left of them until they are at the goal, or a round no longer halves any that is not.

    Parameters
    ----------
    operator, B, goal, most_steps
        As for ``conjugate_gradients``, like ``options``.
    finish : callable
        X (n, k) -> X without what only rounding can have put there.
    """
    X, R = np.zeros_like(B), B
    smallest, steps, definite, falls = np.linalg.norm(B, axis=0), 0, True, True
    while falls and definite and steps < most_steps and (smallest > goal).any():
        part = conjugate_gradients(operator, R, goal=goal, most_steps=most_steps - steps, **options)
        steps, definite = steps + part.steps, part.definite
        trial = finish(X + part.solution)
        residual = B - operator(trial)
        residuals = np.linalg.norm(residual, axis=0)
        falls = bool((residuals < 0.5 * smallest)[smallest > goal].any())
        better = residuals < smallest
        X, R = np.where(better, trial, X), np.where(better, residual, R)
        smallest = np.where(better, residuals, smallest)
    _logger.info("conjugate gradients: %d steps for %d right sides", steps, B.shape[1])
    return Iterated(X, smallest, steps, definite)
