"""Search for a subspace in float32, until one float64 pass on it is expected to finish.

mu: upper bound on the eigenvalues outside the basis (`certificate.Bound`); here only guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from ..base import parallel
from ..base.rounding import UNIT, UNIT32, rounding_factor
from ..products.vectors import aligned_columns
from .basis import LOOSE, STRIP, Basis, inner, times
from .beyond import Guards
from .costs import saved_seconds, search_seconds
from .outlook import LARGER_SHARES, SHARE, Outlook, next_is_last

__all__ = ["Found", "search"]

GOAL = 0.6
"""Width over tol that the exact pass is expected to reach."""
GAP_GOAL = 0.8
"""The same where a factorisation proves it, of the vectors that the exact pass takes alone."""
GUARDED_SHARE = 0.99
"""Of the last wanted eigenvalue: the mu that the search's own Ritz values have to prove."""
LOOK = 2
"""Passes after which a spectrum may look flat."""
LOST = 1e-9
"""Of a block's norm, at most, that is taken for rounding where the next one is formed."""


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes
    ----------
    vectors : ndarray (n, k)
        Columns for the exact pass; none where the spectrum is flat: then float32 is of no use.
    theta : ndarray
        All Ritz values.
    guards : Guards, optional
        Beyond the ``vectors``: with them these suffice.
    """

    vectors: np.ndarray
    theta: np.ndarray
    guards: Guards | None = None


def search(outlook: Outlook, X: np.ndarray, rng: np.random.Generator, history: list[tuple[int, float]]) -> Found:
    """float32 passes until one float64 pass is expected to finish.

    ``history`` gains (passes, expected width over theta_1) after each pass.
    """
    products, target = outlook.products, outlook.target
    expenses = products.expenses
    basis = Basis(products.n, rng, centred=True, reserve=outlook.columns, n_threads=products.matrix.n_threads)
    stop = _Stop(outlook, history)
    want_norm = False
    while True:
        outlook.check_budget(basis.size)
        image = products.product_in_float32(X, want_norm)
        border = basis.append(X, image)
        expenses.seconds += search_seconds(products.n, basis.size, X.shape[1])
        X, (theta, Y) = parallel.side_by_side(
            partial(_next_block, basis, image, border), basis.ritz, n_threads=basis.n_threads
        )
        # rounding of float32 tiles: relative to |K|, whatever of it centring removes
        noise = 8 * UNIT32 * max(products.search_size(theta), float(theta[0]))
        keep, mu = outlook.columns_to_keep(theta)
        if expenses.passes == LOOK and outlook.looks_flat(theta):
            outlook.by_factorisation = outlook.awaits_factorisation(theta)
            if not outlook.by_factorisation:
                return Found(np.empty((products.n, 0)), theta)
        if basis.room == 0 or not noise < 1e-2 * theta[0]:  # or all values are equal: both are 0
            return Found(basis.vectors(Y[:, keep]), theta)
        # the columns of the exact pass are planned by the norm where the other estimates of mu are too large
        low = mu <= 0.8 * theta[min(target.c, len(theta)) - 1] and not outlook.may_guard
        want_norm = products.estimated_norm is None and not low
        coupling = np.zeros((X.shape[1], len(theta)))
        coupling[:, -image.shape[1] :] = inner(X, image, basis.n_threads)
        del image
        c = outlook.count(theta)
        wanted = c if c is not None and c <= len(theta) else None
        if wanted is not None and stop(theta, coupling @ Y, wanted, noise):
            if stop.guarded:
                return _guarded(basis, theta, Y, coupling, stop.guarded, products.search_columns)
            keep = np.arange(stop.behind) if stop.behind else outlook.columns_to_keep(theta)[0]
            break
        if expenses.passes >= expenses.budget.passes - 1:
            break
        if basis.size + 2 * X.shape[1] > outlook.columns:
            some = max(min(len(theta), outlook.columns // 2), min(target.c, len(theta)))
            basis.restart(theta[:some], Y[:, :some])
        if wanted is None:
            X = outlook.widened(X, basis)
    further = coupling[:, :0] if stop.converged or stop.behind else coupling @ Y[:, : wanted or target.c]
    return Found(_with_next_block(basis, Y, keep, X, further), theta)


def _next_block(basis: Basis, image: np.ndarray, border: np.ndarray) -> np.ndarray:
    if basis.room == 0:
        return image[:, :0]
    return basis.orthonormal(basis.outside(image, border), projected=True, image=image)


def _guarded(
    basis: Basis, theta: np.ndarray, Y: np.ndarray, coupling: np.ndarray, columns: int, multiplied: int
) -> Found:
    residuals = coupling @ Y[:, columns:]
    squares = np.einsum("ij,ij->j", residuals, residuals)
    orthogonality = float(np.linalg.norm(basis.gram - np.eye(basis.size)))
    orthogonality += np.sqrt(basis.size) * (rounding_factor(basis.n) + rounding_factor(basis.size)) * UNIT
    guards = Guards(theta[columns:], squares, multiplied, 2.0 * orthogonality + LOST + LOOSE)
    return Found(basis.vectors(Y[:, :columns]), theta, guards)


class _Stop:
    """Whether one float64 pass is expected to finish."""

    def __init__(self, outlook: Outlook, history: list[tuple[int, float]]):
        self.outlook, self.history = outlook, history
        self.extra = 0
        self.converged = False
        """By far: the exact pass need not narrow anything."""
        self.guarded = 0
        """Vectors for an exact pass that the other Ritz values prove to be enough; 0: not proved."""
        self.behind = 0
        """Vectors behind which a factorisation is to prove that nothing else lies, and one more."""
        self.rate = 1.0
        """By which the exact pass is expected to narrow."""

    def share(self, theta: np.ndarray, residuals: np.ndarray, c: int) -> float:
        """The largest mu, over the last wanted eigenvalue, that still leaves the intervals far narrower than tol."""
        goal = 0.1 * self.outlook.target.tol * float(theta[0])
        for share in LARGER_SHARES if theta[c - 1] > 0.0 and not self.outlook.by_factorisation else ():
            if _width(theta, residuals, share * float(theta[c - 1]), c) * self.rate <= goal:
                return share
        return SHARE

    def _guards_suffice(self, theta: np.ndarray, residuals: np.ndarray, squares: np.ndarray, c: int) -> bool | None:
        """Whether Ritz values of the search will prove what the exact pass needs; None where one more pass costs more
        than the columns that they save."""
        outlook, columns = self.outlook, min(c + 2, len(theta))
        if theta[c - 1] <= outlook.products.search_error < np.inf:
            return None  # what its products err by, the search can never exclude
        proved = outlook.guarded_mu(theta, squares, columns)
        if proved < GUARDED_SHARE * theta[c - 1]:
            if _width(theta, residuals, proved, c) <= GOAL * outlook.target.tol * theta[0]:
                self.guarded = columns
                return True
        elif outlook.products.estimated_norm is not None:
            return None
        saved = len(outlook.columns_to_keep(theta)[0]) + outlook.block - columns
        return False if saved_seconds(outlook.products.n, saved, outlook.block) > 0.0 else None

    def __call__(self, theta: np.ndarray, residuals: np.ndarray, c: int, noise: float) -> bool:
        """``residuals`` (b, m): of all Ritz vectors, in coordinates of the next block."""
        outlook = self.outlook
        mu = max(float(theta[min(outlook.block, len(theta)) - 1]), 0.0) if len(theta) > c else 0.0
        mu = min(mu, 0.999 * float(theta[c - 1]))
        squares = np.einsum("ij,ij->j", residuals, residuals)
        if outlook.by_factorisation:
            gap = outlook.gap_behind(theta, squares, c)
            width = gap.width
        else:
            # mu as the Ritz values suggest; the exact pass decides whether that can be proved
            width = _width(theta, residuals, mu, c)
        width /= float(theta[0])
        self.history.append((outlook.products.expenses.passes, width))
        rounding = 100 * (noise / theta[0]) ** 2
        goal = max(GOAL * outlook.target.tol, rounding)
        self.converged = max(width, rounding) <= 0.01 * outlook.target.tol
        if outlook.by_factorisation:  # after a restart from these vectors, exact passes narrow but slowly
            narrow = width <= GAP_GOAL * outlook.target.tol
            self.behind = min(gap.columns + 1, len(theta)) if narrow else 0
            return narrow or width <= goal
        if rounding <= GOAL * outlook.target.tol and outlook.may_guard:
            guarded = self._guards_suffice(theta, residuals, squares, c)
            if guarded is not None:
                return guarded
        enough, self.rate = next_is_last(self.history, (mu / float(theta[c - 1])) ** 2, goal)
        if not enough:
            return False
        outlook.share = self.share(theta, residuals, c)
        # more columns may lower mu as well: try two more float32 passes at most
        self.extra += 1
        mu, error = outlook.columns_to_keep(theta)[1], outlook.search_theta_error(theta)
        return self.extra > 2 or not outlook.mu_falls(theta, c, mu, max(0.9, outlook.share), error)


def _width(theta: np.ndarray, residuals: np.ndarray, mu: float, c: int) -> float:
    """By how much, about, the c upper ends that follow from a bound ``mu`` are above the Ritz values at most.

    As `upper_ends`, with the Ritz values below mu / 2 as a part of what is outside: for eigenvalues near theta_c their
    Schur complement adds sum L_j L_j' / (theta_c - theta_j) to mu I.
    """
    k = max(c, int(np.count_nonzero(theta > 0.5 * mu))) if mu > 0.0 else len(theta)
    low = residuals[:, k:]
    outside = (low / (theta[c - 1] - theta[k:])) @ low.T
    outside.flat[:: len(outside) + 1] += mu
    whole = np.zeros((k + len(low), k + len(low)))
    whole.flat[: k * (len(whole) + 1) : len(whole) + 1] = theta[:k]
    whole[k:, :k] = residuals[:, :k]  # LAPACK reads one triangle
    whole[k:, k:] = outside
    values, _, failed = lapack.dsyevd(whole, compute_v=0, lower=1)
    ends = np.maximum(values[::-1][:c], mu)
    return np.inf if failed else max(float(np.max(ends - theta[:c])), UNIT * float(ends[0]))


def _with_next_block(basis: Basis, Y: np.ndarray, keep: np.ndarray, X: np.ndarray, coupling: np.ndarray) -> np.ndarray:
    """The Ritz vectors to keep, and those directions of the next block along which the wanted residuals lie."""
    lead = scipy.linalg.svd(coupling, full_matrices=False, check_finite=False)[0] if coupling.size else coupling
    columns = aligned_columns(basis.n, len(keep) + lead.shape[1])
    columns[:, len(keep) :] = times(X, lead, basis.n_threads)
    for j in range(0, len(keep), STRIP):
        columns[:, j : min(j + STRIP, len(keep))] = times(basis.Q, Y[:, keep[j : j + STRIP]], basis.n_threads)
    return columns
