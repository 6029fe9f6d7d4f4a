"""Search for a subspace in float32, and estimates of what the float64 pass after it will reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..base.rounding import UNIT32
from .basis import STRIP, Basis, symmetric, times
from .centred import CentredProducts
from .certificate import upper_ends
from .costs import ritz_seconds, search_seconds
from .target import SolverTarget

__all__ = ["Outlook", "search"]

SHORTLY, SOON = 12, 320
"""Blocks, and columns, within which a bound has to come down, or the spectrum is called flat."""
LEAST_STEPS = 8
"""Passes without which a random block proves nothing."""
SPARE, LEAST_SPARE = 25, 8
"""Random columns beyond c: the more, the smaller the constant of the bounds, and the further down a gap may lie."""
MOST_COLUMNS = 1600
"""Of a space without restarts; beyond it Rayleigh-Ritz costs more than it brings."""


@dataclass
class Outlook:
    """Estimates for the next passes: for planning, never for proof.

    Attributes
    ----------
    products : CentredProducts
    target : SolverTarget
    columns : int
        Most columns of a basis.
    block, widest : int
        Columns of a pass now, and at most.
    """

    products: CentredProducts
    target: SolverTarget
    columns: int
    block: int
    widest: int

    def check_budget(self, size: int, passes: int = 1) -> None:
        """TooDearError where the next ``passes`` on a basis of this size make the run cost more than its budget."""
        sizes = [min(size + i * self.block, self.columns) for i in range(1, passes + 1)]
        self.products.expenses.check([ritz_seconds(self.products.n, columns) for columns in sizes])

    def count(self, lower: np.ndarray) -> int | None:
        """Number of components to return; with a fraction the smallest whose lower ends reach it, None if none does."""
        trace = self.products.trace
        return self.target.count(lower, None if trace is None else sum(trace))

    def mu(self, theta: np.ndarray, with_norm: bool = True) -> np.ndarray:
        """Estimates of mu when the first 1, 2, ... of these Ritz values are kept."""
        products, matrix = self.products, self.products.matrix
        mu = np.full(len(theta), np.inf)
        if matrix.positive_semidefinite and matrix.trace is not None and len(products.row_means):
            mu = np.minimum(mu, matrix.trace - products.n * products.grand_mean - np.cumsum(theta))
        norm = products.norm.centred if products.norm is not None else products.estimated_norm
        if norm is not None and with_norm:
            mu = np.minimum(mu, np.sqrt(np.maximum(norm**2 - np.cumsum(theta**2), 0.0)))
        if matrix.features is not None:
            mu = np.minimum(mu, matrix.features.residual_trace + np.append(theta[1:], theta[-1]))
        return np.maximum(mu, 0.0)

    def mu_falls(self, theta: np.ndarray, c: int, now: float) -> bool:
        """Whether mu is above the last wanted eigenvalue now, but likely to fall below it within a few blocks.

        Each new column lowers the remaining trace or norm by at most about the smallest converged guard value.
        """
        if now <= 0.9 * theta[c - 1]:
            return False
        guard = max(float(theta[min(len(theta), self.block) - 1]), 0.0)
        hoped = np.concatenate([theta, np.full(2 * self.block, guard)])
        return float(self.mu(hoped)[-1]) <= 0.9 * theta[c - 1]

    @property
    def random_block(self) -> int:
        """Columns of a random block to begin with: as wide as the passes to come leave room for; 0 where none fits."""
        expenses, c = self.products.expenses, self.target.c
        passes = expenses.budget.passes - expenses.passes
        possible = self.target.probabilistic and self.target.fraction is None and passes >= LEAST_STEPS
        if not possible or not self.products.matrix.positive_semidefinite:
            return 0
        columns = min(self.columns, MOST_COLUMNS, self.products.n - 1)
        block = max(min(c + SPARE, max(self.block, columns // passes)), c + LEAST_SPARE)
        return block if LEAST_STEPS * block <= columns else 0

    def starts_flat(self) -> bool:
        """Most of the trace lies beyond any feature map, and nothing else than the trace bounds what is left."""
        matrix = self.products.matrix
        return matrix.features is None and not matrix.product.gives_norm and self.random_block > 0

    def looks_flat(self, theta: np.ndarray) -> bool:
        """Will no bound from trace, norm or feature map ever get below the last wanted eigenvalue? After two passes."""
        c, more = self.target.c, max(SHORTLY * self.block, SOON)
        if not self.random_block or len(theta) + more > self.products.n or c > len(theta) or not theta[c - 1] > 0:
            return False
        guard = max(float(theta[min(len(theta), self.block) - 1]), 0.0)
        hoped = np.concatenate([theta, np.full(more, guard)])
        return float(self.mu(hoped)[-1]) > 0.9 * theta[c - 1]

    def columns_to_keep(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Indices of the Ritz vectors for the exact pass, and the mu that they are expected to give.

        With more of them mu is smaller, and the pass costs more. First come the wanted ones, then those with the
        largest absolute values (the negative ones of an indefinite matrix count in |A|_F).
        """
        c = min(self.count(theta) or self.target.c, len(theta))
        least = min(c + 2, len(theta))
        order = by_size(theta, least)
        limit = max(min(len(theta), max(8 * c, c + 60), self.columns - self.block), least)
        expected = self.mu(theta[order])[least - 1 : limit]
        enough = np.flatnonzero(expected <= 0.8 * theta[c - 1])
        if len(enough):
            return order[: least + enough[0]], float(expected[enough[0]])
        mu = float(expected[-1])
        # out of reach: more columns help an exploration, and are wasted where there will be none
        if not self.target.probabilistic and mu > 1.1 * theta[c - 1]:
            limit = max(min(self.block, limit), least)
        return order[:limit], mu

    def norm_would_help(self, theta: np.ndarray) -> bool:
        """Whether to compute the norm in the first exact pass, after a search that ended with these Ritz values."""
        if not len(theta):
            return False
        c = min(self.count(theta) or self.target.c, len(theta))
        order = self.columns_to_keep(theta)[0]
        without = float(self.mu(theta[order], with_norm=False)[-1])
        # the estimate from a feature map will hold; that from the trace needs every column to converge
        return without > (0.3 if self.products.matrix.features is None else 0.8) * theta[c - 1]

    def widened(self, X: np.ndarray, basis: Basis) -> np.ndarray:
        """While the eigenvalues do not reach the fraction asked for: twice the block, filled with random columns."""
        extra = min(X.shape[1], self.widest - X.shape[1], self.columns - basis.size - 2 * X.shape[1])
        if self.target.fraction is None or extra <= 0:
            return X
        more = basis.rng.standard_normal((basis.n, extra))
        return np.hstack([X, basis.orthonormal(more, beside=X)])


def by_size(theta: np.ndarray, c: int) -> np.ndarray:
    """Order of Ritz values: the c largest, then the others by absolute value."""
    return np.concatenate([np.arange(c), c + np.argsort(-np.abs(theta[c:]), kind="stable")])


def search(
    outlook: Outlook, X: np.ndarray, rng: np.random.Generator, history: list[tuple[int, float]]
) -> tuple[np.ndarray, np.ndarray]:
    """float32 passes until one float64 pass is expected to finish: the columns for that pass, and all Ritz values.

    No columns where the spectrum is flat: then float32 is of no use.

    ``history`` gains (passes, expected width over theta_1) after each pass.
    """
    products, target = outlook.products, outlook.target
    expenses, basis = products.expenses, Basis(products.n, rng, centred=True)
    stop = _Stop(outlook, history)
    want_norm = False
    while True:
        outlook.check_budget(basis.size)
        image = products.search(X, want_norm)
        border = basis.append(X, image)
        expenses.seconds += search_seconds(products.n, basis.size, X.shape[1])
        theta, Y = basis.ritz()
        # rounding of float32 tiles: relative to |K|, whatever of it centring removes
        noise = 8 * UNIT32 * max(products.estimated_size(theta), float(theta[0]))
        keep, mu = outlook.columns_to_keep(theta)
        if expenses.passes == 2 and outlook.looks_flat(theta):
            return np.empty((products.n, 0)), theta
        if basis.room == 0 or noise > 1e-2 * theta[0]:
            return basis.vectors(Y[:, keep]), theta
        # the columns of the exact pass are planned by the norm where the other estimates of mu are too large
        want_norm = products.estimated_norm is None and not mu <= 0.8 * theta[min(target.c, len(theta)) - 1]
        last = basis.outside(image, border)
        X = basis.orthonormal(last, projected=True)
        coupling = np.zeros((X.shape[1], len(theta)))
        coupling[:, -image.shape[1] :] = X.T @ image
        del last, image
        c = outlook.count(theta)
        wanted = c if c is not None and c <= len(theta) else None
        if wanted is not None and stop(symmetric(basis.compression), coupling, theta, wanted, noise):
            break
        if expenses.passes >= expenses.budget.passes - 1:
            break
        if basis.size + 2 * X.shape[1] > outlook.columns:
            some = max(min(len(theta), outlook.columns // 2), min(target.c, len(theta)))
            basis.restart(theta[:some], Y[:, :some])
        if wanted is None:
            X = outlook.widened(X, basis)
    return _with_next_block(basis, Y, keep, X, coupling @ Y[:, : wanted or target.c]), theta


class _Stop:
    """Whether one float64 pass is expected to finish."""

    def __init__(self, outlook: Outlook, history: list[tuple[int, float]]):
        self.outlook, self.history = outlook, history
        self.extra = 0

    def __call__(self, T: np.ndarray, coupling: np.ndarray, theta: np.ndarray, c: int, noise: float) -> bool:
        outlook, widths = self.outlook, [width for _, width in self.history]
        # mu as the Ritz values suggest; the exact pass decides whether that can be proved
        mu = max(float(theta[min(outlook.block, len(theta)) - 1]), 0.0) if len(theta) > c else 0.0
        mu = min(mu, 0.999 * float(theta[c - 1]))
        ends = upper_ends(T, coupling, max(mu, 0.0))[:c]
        widths.append(float(np.max(ends - theta[:c])) / float(theta[0]))
        self.history.append((outlook.products.expenses.passes, widths[-1]))
        goal = max(0.3 * outlook.target.tol, 100 * (noise / theta[0]) ** 2)
        # factor by which the exact pass narrows: that of the last pass, or of subspace iteration
        rate = widths[-1] / widths[-2] if len(widths) > 1 else (mu / float(theta[c - 1])) ** 2
        if widths[-1] * min(rate, 1.0) > goal:
            return False
        # more columns may lower mu as well: try two more float32 passes at most
        self.extra += 1
        return self.extra > 2 or not outlook.mu_falls(theta, c, outlook.columns_to_keep(theta)[1])


def _with_next_block(basis: Basis, Y: np.ndarray, keep: np.ndarray, X: np.ndarray, coupling: np.ndarray) -> np.ndarray:
    """The Ritz vectors to keep, and those directions of the next block along which the wanted residuals lie."""
    lead = scipy.linalg.svd(coupling, full_matrices=False, check_finite=False)[0]
    columns = np.empty((basis.n, len(keep) + lead.shape[1]), order="F")
    columns[:, len(keep) :] = X @ lead
    for j in range(0, len(keep), STRIP):
        columns[:, j : min(j + STRIP, len(keep))] = times(basis.Q, Y[:, keep[j : j + STRIP]])
    return columns
