"""An upper bound on the largest eigenvalue of a symmetric matrix, from polynomials of it times random columns.

B is symmetric, n x n; Omega (n x b) has independent standard normal entries, drawn after B was fixed; t(x) = 2 x / top
- 1 for any top > 0. The columns Z_k = T_k(t(B)) Omega come from the three-term recurrence: no basis, no eigenproblem.
Let u be a unit eigenvector of the largest eigenvalue, lambda, and tau = t(lambda). If tau > 1, then
u' Z_k = T_k(tau) u' Omega, so

    T_k(tau) <= |Z_k| / |u' Omega|.

|u' Omega|^2 has the chi-squared distribution of b degrees of freedom, whatever B is: it is below q^2 with probability
``failure``, P(b / 2, q^2 / 2), P the regularised incomplete gamma function. Else

    lambda <= max(top, t^-1(cosh(arccosh(|Z_k| / q) / k))).

The event is about Omega alone, so the best of all k may be taken. |Z_k| is about |Omega| as long as no eigenvalue is
above ``top`` or far below 0; both only make the bound larger.

Rounding. The recurrence errs by f_j in step j, and u' Z_k by sum_j U_(k-j)(tau) u' f_j, U the polynomials of the
second kind (Clenshaw 1955). For tau >= 1 U_m(tau) <= (m + 1) e^(m theta) and T_k(tau) >= e^(k theta) / 2, tau =
cosh(theta), so this is at most T_k(tau) times 2 sum_j (k - j + 1) e^(-j theta) |f_j|. This is taken off q, with the
theta of what is wanted: for a lambda above that it is no smaller than needed, and no result is below what is wanted.

With B = P A P for a projection P and a matrix A that is within e of another in norm, the bound plus e is one for that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.special

from ..base.rounding import UNIT
from .certificate import Bound

__all__ = ["filter_steps", "filtered_bound"]

Multiply = Callable[[np.ndarray], np.ndarray]
HUGE = 1e100


def filtered_bound(
    multiply: Multiply,
    project: Multiply,
    block: np.ndarray,
    top: float,
    *,
    wanted: float,
    error: float,
    failure: float,
    most_steps: int,
) -> Bound:
    """Bound on P A P, as small as ``wanted`` where the steps bring it there.

    Parameters
    ----------
    multiply : callable
        U (n, b) -> A U.
    project : callable
        U -> P U.
    block : ndarray (n, b)
        Omega: standard normal entries.
    top : float
        Where the polynomial begins to grow: at, or little above, the largest eigenvalue as far as it is known.
    wanted : float
        Above ``top``.
    error : float
        Bound on |computed A U - A U|_F / |U|_F, and on |A| times that of P.
    failure : float
        Probability that the bound does not hold.
    most_steps : int
    """
    least = _least_component(block.shape[1], failure)
    each = 8.0 * (error / top + 8.0 * UNIT)
    before = project(block)
    fading = np.exp(-np.arccosh(max(2.0 * wanted / top - 1.0, 1.0)))
    start = float(np.linalg.norm(before))
    total = lost = fading * start
    now = project((2.0 / top) * multiply(before) - before)
    best = np.inf
    for k in range(1, most_steps + 1):
        size = float(np.linalg.norm(now))
        room = least - 2.0 * each * lost
        if not (size < HUGE and room > 0.0):
            break
        largest = float(np.sqrt(np.linalg.eigvalsh(now.T @ now)[-1])) * (1.0 + 1e-8)
        best = min(best, max(_eigenvalue(top, largest / room, k), wanted))
        # |Z_k| <= T_k(tau) |Omega|: an eigenvalue above what is wanted ends the attempt
        if best <= wanted or _eigenvalue(top, 0.99 * size / start, k) > wanted:
            break
        total += fading ** (k + 1) * size
        lost += total
        before, now = now, project((4.0 / top) * multiply(now) - 2.0 * now - before)
    return Bound(float(best), "filter", failure)


def filter_steps(n: int, columns: int, top: float, wanted: float, failure: float) -> float:
    """About how many steps bring the bound down to ``wanted``."""
    if not wanted > top > 0.0:
        return np.inf
    size = (np.sqrt(n) + np.sqrt(columns)) / _least_component(columns, failure)
    return float(np.arccosh(size) / np.arccosh(2.0 * wanted / top - 1.0))


def _least_component(columns: int, failure: float) -> float:
    """q: a component u' Omega is smaller with probability ``failure``."""
    return float(np.sqrt(2.0 * scipy.special.gammaincinv(0.5 * columns, failure))) * (1.0 - 1e-9)


def _eigenvalue(top: float, growth: float, k: int) -> float:
    """t^-1 of the tau >= 1 at which T_k is so large."""
    tau = np.cosh(np.arccosh(max(growth, 1.0)) / k)
    return float(0.5 * top * (1.0 + tau) * (1.0 + 8.0 * UNIT))
