"""Conjugate gradients for several right sides at once (M. R. Hestenes and E. Stiefel, J. Res. NBS 49, 1952).

Each column has its own step lengths, so the result of a column does not depend on the others; one product a step
serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Iterated", "conjugate_gradients"]

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Iterated:
    """The result of the iterations.

    Attributes
    ----------
    solution : ndarray (n, k)
        Each column where its residual was smallest.
    residuals : ndarray (k,)
        Norms of these residuals, from the recurrence.
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
    patience: int | None = None,
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
    patience : int, optional
        End after more than so many steps in a row in which no residual fell by a tenth: rounding prevents more.
    """
    X, R = np.zeros_like(B), B.copy()
    Z = precondition(R)
    D = Z.copy()
    rho = inner(R, Z)
    best, smallest = X.copy(), np.sqrt(np.maximum(inner(R, R), 0.0))
    active = smallest > goal
    idle = steps = 0
    definite = True
    while active.any() and steps < most_steps and (patience is None or idle <= patience):
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
        idle = 0 if (residuals < 0.9 * smallest).any() else idle + 1
        better = residuals < smallest
        best[:, better], smallest[better] = X[:, better], residuals[better]
        active &= smallest > goal
    return Iterated(best, smallest, steps, definite)
