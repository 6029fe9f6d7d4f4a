"""The choice among products with the kernel matrix: exact tiles, and what the kernel offers.

Predicted seconds, set-up included, decide. What an offer is built on may be a sample, so a build that finds on all
rows that it can't keep its word falls back on exact tiles: slower, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..base import parallel
from ..base.protocol import Cost, Kernel, Offer, Summary, Summation
from ..base.rounding import EPS, UNIT
from ..base.spelling import did_you_mean
from ..errors import rounded_up
from ..products.exact import ExactSummation, sum_terms
from ..products.rates import RATE, pass_seconds
from ..rows.view import Rows

WORTH_ASKING = 3e-3
"""Seconds of a product, or of a map, below which the kernel is not asked what else it offers: that takes up to a few
milliseconds (for 20,000 rows of one column the fit takes 1.3 times as long without)."""


@dataclass(frozen=True)
class ProductCandidate(Offer):
    """An offer of a product with the kernel matrix, and its predicted costs on one thread.

    Attributes
    ----------
    setup, once : float
        Seconds, before the first product and for each.
    """

    setup: float
    once: float

    def memory(self, columns: int) -> float:
        """Bytes in addition to the rows and the result, for products with ``columns`` columns; see ``InStrips``."""
        return self.cost.memory + columns * self.cost.column_memory

    def seconds(self, times: float = 1.0) -> float:
        return self.setup + times * self.once

    def summation(self, X: Rows, Y: Rows | None, n_threads: int) -> Summation:
        made: Summation = self.build(X, Y)
        made.n_threads = n_threads
        return made


class InStrips(Summation):
    """A product that multiplies few columns at a time, because each of them needs memory."""

    def __init__(self, inner: Summation, columns: int):
        self.inner, self.columns = inner, columns
        self.shape, self.symmetric, self.error_bound = inner.shape, inner.symmetric, inner.error_bound

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._strips(self.inner.matmat, U, self.shape[0])

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._strips(self.inner.rmatmat, U, self.shape[1])

    def _strips(self, multiply: Callable[[np.ndarray], np.ndarray], U: np.ndarray, n: int) -> np.ndarray:
        if U.shape[1] <= self.columns:
            return multiply(U)
        product = np.empty((n, U.shape[1]))
        for j in range(0, U.shape[1], self.columns):
            part = slice(j, j + self.columns)
            product[:, part] = multiply(np.ascontiguousarray(U[:, part]))
        return product


def both_sides(data_x: Summary, data_y: Summary) -> Summary:
    """One summary for a kernel's bounds on its values and their errors over the pairs of two sets of rows."""
    if data_y is data_x:
        return data_x
    near, far = sorted((data_x, data_y), key=lambda data: float(data.radius))
    return replace(far, other_radius=near.radius)


def exact_error(kernel: Kernel, rows_x: Rows, rows_y: Rows | None, both: Summary, n_threads: int = 1) -> float:
    """Bound on |error of an entry of an exact product or its adjoint| / sum_j |u_j|, in float64.

    It includes the rounding of kernel values and of sums; for a kernel that does not state the former, the error is
    that of a product with the values that ``block`` returns. Infinite where no bound on the values is known.
    """
    error = kernel.entry_error(both, np.dtype(np.float64)) or 0.0
    size = kernel.value_bound(both)
    sides = [rows_x] if rows_y is None else [rows_x, rows_y]
    if size is None and kernel.positive_semidefinite:  # |k(x, y)| <= max k(x, x)
        size = max(_largest_diagonal(kernel, rows, n_threads) for rows in sides)
    if size is None:
        return np.inf
    terms = max(sum_terms(rows.n_samples, rows.n_features) for rows in sides)
    return float(1.01 * (error + terms * UNIT * (size + error)) + np.finfo(np.float64).tiny)


def products_for(
    kernel: Kernel,
    data_x: Summary,
    data_y: Summary,
    tol: float | None,
    *,
    square: bool,
    columns: int = 1,
    name: str = "auto",
    least: float | None = None,
    every: bool = False,
    reason: str = "",
) -> list[ProductCandidate]:
    """All products that keep ``tol`` (None: exact ones), or those of one name.

    Once one costs next to nothing, others are not planned, but with ``every``.
    ``least`` is the error of an exact product, which is part of the error of an approximate one too; None: the kernel's
    ``entry_error``. ``reason``: why they have to keep ``tol``, for the text of an error.

    Raises
    ------
    ValueError
        There is none of this name; the text lists those that there are.
    """
    exact = _exact_way(kernel, data_x, data_y, columns, square=square)
    if name == "exact":
        return [exact]
    ways = [exact]
    if least is None:
        least = kernel.entry_error(both_sides(data_x, data_y), np.dtype(np.float64)) or 0.0
    # for the approximation: with the entries' rounding it may not come to more than tol, not even by a rounding
    rest = None if tol is None else (tol - least) * (1.0 - 2.0 * EPS)
    if (rest is None or rest > 0.0) and (tol is None or name != "auto" or every or exact.once > WORTH_ASKING):
        for offer in kernel.summations(data_x, data_y, rest):
            ways.append(_way(offer, data_x, data_y, columns))
            # those that follow take milliseconds to plan
            if offer.name == name or (name == "auto" and not every and ways[-1].once <= WORTH_ASKING):
                break
    if name == "auto":
        return ways
    named = [x for x in ways if x.name == name]
    if not named:
        at = "without a tol" if tol is None else f"within {rounded_up(tol)}, which is needed here{reason}"
        others = sorted({x.name for x in ways})
        raise ValueError(
            f"{kernel!r} offers no products named {name!r} on these rows {at}; it offers "
            f"{', '.join(map(repr, others))}. " + (did_you_mean(name, others) or "Take products='auto'")
        )
    return named


def best_product(ways: list[ProductCandidate], times: float = 1.0) -> ProductCandidate:
    return min(ways, key=lambda x: x.seconds(times))


def _exact_way(kernel: Kernel, data_x: Summary, data_y: Summary, columns: int, *, square: bool) -> ProductCandidate:
    n, m, d = data_x.n_samples, data_y.n_samples, data_x.n_features
    once = pass_seconds(kernel, n, m, d, columns, square=square)
    return ProductCandidate("exact", Cost(), lambda X, Y=None: ExactSummation(kernel, X, Y), RATE.fit / 10, once)


def _way(offer: Offer, data_x: Summary, data_y: Summary, columns: int) -> ProductCandidate:
    """A kernel's offer, with its predicted seconds for ``columns`` columns."""
    cost, n = offer.cost, data_x.n_samples
    further = cost.row_flops if cost.column_flops is None else cost.column_flops
    once = n * (cost.row_flops + (columns - 1) * further) / RATE.features
    held = replace(cost, column_memory=cost.column_memory + 32.0 * max(n, data_y.n_samples))
    return ProductCandidate(offer.name, held, offer.build, cost.setup_flops / RATE.features, once)


def _largest_diagonal(kernel: Kernel, rows: Rows, n_threads: int) -> float:
    """Over all rows: a sample misses a far one, where a kernel that grows is largest."""
    n, step = rows.n_samples, parallel.tile_rows(rows.n_features)
    return parallel.tree_reduce(
        lambda i: float(kernel.diagonal(rows.tile(i * step, min(n, (i + 1) * step))).max()),
        -(-n // step),
        max,
        n_threads=n_threads if kernel.thread_safe else 1,
    )
