"""An upper bound on the largest eigenvalue of a symmetric matrix, from polynomials of it times random columns.

A is symmetric, n x n; Omega (n x b) has independent standard normal entries, drawn after A was fixed; t maps [low, top]
to [-1, 1]. The columns Z_k = T_k(t(A)) Omega come from the three-term recurrence: no basis, no eigenproblem. Let u be a
unit eigenvector of the largest eigenvalue, lambda, and tau = t(lambda). If tau > 1, then u' Z_k = T_k(tau) u' Omega, so

    T_k(tau) <= |Z_k| / |u' Omega|.

|u' Omega|^2 has the chi-squared distribution of b degrees of freedom, for every A: it is below q^2 with probability
``failure`` = P(b / 2, q^2 / 2), P the regularised incomplete gamma function. Else

    lambda <= max(top, t^-1(cosh(arccosh(|Z_k| / q) / k))).

The event is about Omega alone, so the best of all k may be taken. |Z_k| is about |Omega| as long as no eigenvalue is
outside of [low, top] by much; one that is only makes the bound larger.

Rounding. The recurrence errs by f_j in step j, and u' Z_k by sum_j U_(k-j)(tau) u' f_j, U the polynomials of the second
kind (Clenshaw 1955). Let tau = cosh(theta) >= 1. Then U_m(tau) <= (m + 1) e^(m theta) and T_k(tau) >= e^(k theta) / 2.
So the error is at most T_k(tau) times 2 sum_j (k - j + 1) e^(-j theta) |f_j|. This is taken off q, with the theta of
what is wanted: for a lambda above that it is no smaller than needed, and no result is below what is wanted.

With A = P B P for a projection P, and B within e of another matrix in norm, the bound plus e is one for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.special

from ..base.rounding import UNIT, rounding_factor
from ..base.tall import inner, without_means, without_span
from ..products.implicit import NearMatrix
from ..products.near import COLUMNS
from .basis import Basis, RitzPairs
from .beyond import NARROWEST
from .certificate import SAYS_NOTHING

__all__ = [
    "COLUMNS",
    "MAX_STEPS",
    "STEPS_FACTOR",
    "Aim",
    "cheapest_aim",
    "filter_steps",
    "filtered",
    "filtered_beyond",
]

STEPS_FACTOR, MAX_STEPS = 3.0, 3000
"""Steps of a filter over those that it is predicted to take; and at most."""


class Aim(NamedTuple):
    """Goal of a filter: a proof that beyond ``columns`` Ritz vectors, with eigenvalues up to about ``top``, none is
    above ``wanted``.

    ``steps``: predicted number.
    """

    columns: int
    top: float
    wanted: float
    steps: float


def cheapest_aim(
    theta: np.ndarray,
    squares: np.ndarray,
    c: int,
    width: float,
    *,
    n: int,
    distance: float,
    failure: float,
    column_price: float = 0.0,
) -> Aim | None:
    """The cheapest goal with a gap at or below the c-th Ritz value; None where there is no gap.

    Parameters
    ----------
    theta, squares : ndarray (m,)
        Ritz values, and the squares of their residuals.
    c : int
    width : float
        Width of the intervals to reach.
    n : int
    distance : float
        Number to add to the bound of a filter; no eigenvalue is below its negative.
    failure : float
    column_price : float
        Cost of a vector before the gap, in steps.
    """
    k = np.arange(c, len(theta))
    last = float(theta[c - 1])
    if not (len(k) and last > 0.0):
        return None
    tops = theta[k] + np.sqrt(squares[k])
    middle = 0.5 * (last + tops)
    above = last - middle - distance
    # no Ritz value beyond c may be raised to the last wanted eigenvalue by its coupling, |residual|^2 over the gap
    coupled = squares[c:] / np.maximum(last - theta[c:] + width, 1e-300)
    highest = np.append(0.0, np.maximum.accumulate(coupled))[: len(k)]
    narrow = (2.0 * float(squares[:c].sum()) <= width * above) & (highest <= 0.25 * above)
    possible = narrow & (above > 0.0) & (tops < last) & (squares[k] <= (NARROWEST * last) ** 2)
    aims = []
    for i in np.flatnonzero(possible).tolist():
        top, wanted = float(tops[i]), float(middle[i])
        steps = filter_steps(n, (-distance, top), wanted, failure)
        if STEPS_FACTOR * steps <= MAX_STEPS:
            aims.append(Aim(int(k[i]), top, wanted, steps))
    return min(aims, key=lambda aim: aim.steps + column_price * aim.columns, default=None)


def filtered_beyond(
    near: NearMatrix, basis: Basis, ritz: RitzPairs, aim: Aim, low: float, failure: float
) -> tuple[float, np.ndarray, int]:
    """`filtered` of P B P for P = (I - V V') H, V the first ``aim.columns`` Ritz vectors."""
    V, threads = basis.vectors(ritz.Y[:, : aim.columns]), basis.n_threads
    rounding = 4.0 * rounding_factor(len(V)) * UNIT
    inexact = 2.0 * float(np.linalg.norm(inner(V, V, threads) - np.eye(V.shape[1])))
    inexact += np.sqrt(V.shape[1] + 1.0) * rounding

    def project(Z: np.ndarray) -> np.ndarray:
        return without_span(without_means(Z, threads), V, threads)

    return filtered(
        lambda Z: project(near.product.matmat(Z)),
        project(basis.rng.standard_normal((len(V), COLUMNS))),
        (low, aim.top),
        wanted=aim.wanted,
        error=(rounding + 2.0 * inexact) * near.size,
        failure=failure,
        most_steps=int(STEPS_FACTOR * aim.steps) + 1,
    )


def filtered(
    multiply: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    interval: tuple[float, float],
    *,
    wanted: float,
    error: float,
    failure: float,
    most_steps: int,
) -> tuple[float, np.ndarray, int]:
    """Bound on A, as small as ``wanted`` where the steps bring it there.

    Parameters
    ----------
    multiply : callable
        Z (n, b) -> P B P Z for Z in the range of P.
    start : ndarray (n, b)
        P Omega.
    interval : (low, top)
        Where the other eigenvalues are, as far as they are known.
    wanted : float
        Above ``top``.
    error : float
        Bound on the error of a product in the Frobenius norm, for columns of norm 1 in that.
    failure : float
        Probability that the bound does not hold.
    most_steps : int

    Returns
    -------
    bound : float
        Upper bound on the largest eigenvalue.
    columns : ndarray (n, b)
        Omega after the last step, in which eigenvalues above ``top`` stand out.
    steps : int
    """
    low, top = interval
    half, middle = 0.5 * (top - low), 0.5 * (top + low)
    least = _least_component(start.shape[1], failure)
    each = 4.0 * (error / half + 8.0 * UNIT * (1.0 + abs(middle) / half))
    fading: float = np.exp(-np.arccosh(max((wanted - middle) / half, 1.0)))
    before, first = start, float(np.linalg.norm(start))
    total = lost = fading * first
    now = (multiply(before) - middle * before) / half
    best = np.inf
    for k in range(1, most_steps + 1):
        size = float(np.linalg.norm(now))
        room = least - 2.0 * each * lost
        if not (size < SAYS_NOTHING and room > 0.0):
            break
        largest = float(np.sqrt(np.linalg.eigvalsh(now.T @ now)[-1])) * (1.0 + 1e-8)
        tau = np.cosh(np.arccosh(max(largest / room, 1.0)) / k)
        best = min(best, max((middle + half * float(tau)) * (1.0 + 8.0 * UNIT), wanted))
        # |Z_k| <= T_k(tau) |Omega|: an eigenvalue above what is wanted ends the attempt
        grown = np.cosh(np.arccosh(max(0.99 * size / first, 1.0)) / k)
        if best <= wanted or middle + half * grown > wanted:
            break
        total += fading ** (k + 1) * size
        lost += total
        before, now = now, (2.0 / half) * (multiply(now) - middle * now) - before
    return float(best), now, k


def filter_steps(n: int, interval: tuple[float, float], wanted: float, failure: float) -> float:
    """Predicted steps until the bound is ``wanted``; infinite where that is not above ``top``."""
    low, top = interval
    if not wanted > top > low:
        return np.inf
    size = (np.sqrt(n) + np.sqrt(COLUMNS)) / _least_component(COLUMNS, failure)
    return float(np.arccosh(size) / np.arccosh((2.0 * wanted - top - low) / (top - low)))


def _least_component(columns: int, failure: float) -> float:
    """q: |u' Omega| is smaller with probability ``failure``."""
    return float(np.sqrt(2.0 * scipy.special.gammaincinv(0.5 * columns, failure))) * (1.0 - 1e-9)
