"""Search for a subspace where products cost little: narrow blocks of Lanczos on the few values that are not near zero.

For narrow kernels, whose spectra fall slowly. A polynomial of degree 30 of four columns brings more than one of degree
4 of thirty, at the same number of columns; it takes more products, which is no matter where the few values are kept.

mu: upper bound on the eigenvalues outside the basis (`certificate.Bound`); here only guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.protocol import NearProduct
from .costs import near_seconds
from .filtered import filter_steps
from .lanczos import Lanczos, SymmetricOperator
from .outlook import Outlook

__all__ = ["COLUMNS", "DROPPED", "NarrowStart", "narrow_start"]

COLUMNS = 4
"""Of a block."""
DROPPED = 3e-3
"""The norm of what is left out, at most, over the mean of the diagonal."""
GUARDS = 40
"""Vectors beyond the wanted ones that the exact pass may take: the more, the further down the others begin."""
SETTLED = 0.01
"""Residual, over the last wanted eigenvalue, from which on a Ritz value tells where the others begin."""
LOOK = 1.12
"""Factor by which a basis grows between two looks at its Ritz values."""
PASSES, SIFTING_PASSES = 50.0, 6.0
"""Exact passes whose costs the search may reach; and finding the near values."""


@dataclass(frozen=True)
class NarrowStart:
    """Where exact passes begin.

    Attributes
    ----------
    vectors : ndarray (n, p)
        Approximate eigenvectors.
    product : NearProduct
    top : float
        About the largest eigenvalue beyond these.
    """

    vectors: np.ndarray
    product: NearProduct
    top: float


def narrow_start(outlook: Outlook, rng: np.random.Generator) -> NarrowStart | None:
    """From Lanczos on near values; None where there is no such product, or the space has no room for what it takes."""
    products, target = outlook.products, outlook.target
    matrix, n, expenses = products.matrix, products.n, products.expenses
    limit = min(outlook.columns, 8 * target.c + 200, (n - 1) // 4)
    possible = target.probabilistic and target.fraction is None and matrix.positive_semidefinite
    if not possible or matrix.trace is None or limit < target.c + 2 * COLUMNS:
        return None
    values = PASSES * expenses.budget.pass_seconds / near_seconds(1.0, limit / COLUMNS)
    memory = np.inf if expenses.budget.memory is None else expenses.budget.memory
    # the basis, and its half while it is copied to a larger store; the values twice while they are put together
    most = min(6.0 * values, 0.5 * (memory - 12.0 * n * limit))
    # finding a value costs as much as multiplying with it
    pairs = SIFTING_PASSES * expenses.budget.pass_seconds / near_seconds(1.0, 1.0)
    near = matrix.product.near(DROPPED * matrix.trace / (n * float(n)), most, pairs)
    if near is None:
        return None

    def multiply(U: np.ndarray) -> np.ndarray:
        V = near.matmat(U)
        V -= V.mean(axis=0)
        return V

    operator = SymmetricOperator(multiply, n, matrix.trace, near.norm * np.sqrt(n), near.rounding)
    lanczos = Lanczos(operator, limit, rng, centred=True, n_threads=matrix.n_threads)
    lanczos.start(COLUMNS)
    next_look = float(max(2 * target.c, 8 * COLUMNS))
    while lanczos.room >= COLUMNS:
        lanczos.step()
        if lanczos.size < next_look and lanczos.room >= COLUMNS:
            continue
        next_look = LOOK * lanczos.size
        theta, Y = lanczos.basis.ritz()
        p, top = _columns(outlook, theta, lanczos.residual_squares(Y), near.count, lanczos.steps)
        if p:
            expenses.count_near(lanczos.steps, near_seconds(near.count, lanczos.steps))
            return NarrowStart(lanczos.basis.vectors(Y[:, :p]), near, top)
    expenses.count_near(lanczos.steps, near_seconds(near.count, lanczos.steps))
    return None


def _columns(
    outlook: Outlook, theta: np.ndarray, squares: np.ndarray, count: int, most_steps: int
) -> tuple[int, float]:
    """How many vectors the exact pass takes, so that it and the bound on the others cost least, and where the others
    begin; (0, 0) where they have not converged, or the bound takes more steps."""
    target, expenses = outlook.target, outlook.products.expenses
    n, c = outlook.products.n, target.c
    p = np.arange(c, min(c + GUARDS, len(theta) - 1) + 1)
    if not len(p) or not theta[c - 1] > 0:
        return 0, 0.0
    last, room = float(theta[c - 1]), target.tol * float(theta[0])
    tops = theta[p] + np.sqrt(squares[p])
    gaps = 0.5 * (last - tops)  # the bound is to lie in the middle
    # what couples a vector beyond c with the rest must not lift its eigenvalue to that of the last wanted one
    lifted = squares[c : p[-1]] / np.maximum(last - theta[c : p[-1]] + room, 1e-300)
    highest = np.maximum.accumulate(np.append(0.0, lifted))
    narrow = (2.0 * float(squares[:c].sum()) <= 0.5 * room * gaps) & (highest <= 0.25 * gaps)
    possible = (gaps > 0.0) & narrow & (squares[p] <= (SETTLED * last) ** 2)
    best, cheapest = (0, 0.0), np.inf
    for k, top in zip(p[possible], tops[possible]):
        steps = filter_steps(n, COLUMNS, float(top), 0.5 * (last + float(top)), target.failure)
        seconds = expenses.budget.pass_seconds / outlook.block * k + near_seconds(count, steps)
        if steps <= most_steps and seconds < cheapest:
            best, cheapest = (int(k), float(top)), seconds
    return best
