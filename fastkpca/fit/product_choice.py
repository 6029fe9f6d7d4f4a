"""The choice among products with the kernel matrix: exact tiles, what the kernel offers, a pivots' feature map.

Predicted seconds, set-up included, decide. What an offer is built on may be a sample, so a build that finds on all
rows that it can't keep its word falls back on exact tiles: slower, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..base import parallel
from ..base.protocol import Kernel, Summary, Summation
from ..base.rounding import UNIT
from ..errors import did_you_mean
from ..maps.passes import tile_rows
from ..maps.pivots import PivotMap, pivot_map, probe_rank, second_round
from ..products.exact import ExactSummation, sum_terms
from ..products.expansion import ExpansionSummation
from ..products.rates import FEATURE_RATE, GEMM_RATE, OVERHEAD, SYRK_RATE, entry_rate, is_compiled, pass_seconds
from ..rows.view import Rows

__all__ = ["LEAST_COLUMNS", "InStrips", "Product", "best_product", "both_sides", "exact_error", "products_for"]

LEAST_COLUMNS = 8
"""Columns that a product may be asked to multiply at once, whatever the memory."""
WORTH_PROBING = 0.03
"""Seconds; where exact tiles, or an offer, take less, no look is taken at how many pivots there would be."""
WORTH_OFFERS = 3e-3
WORTH_OTHERS = 1e-2
"""The same for asking the kernel, and for asking it further once it has offered something."""


@dataclass(frozen=True)
class Product:
    """One way to multiply by the kernel matrix, and what it is predicted to cost on one thread.

    Attributes
    ----------
    name : str
    setup, once : float
        Seconds, before the first product and for each.
    memory : float
        Bytes beside the rows and the product.
    error : float
        Bound on an entry's error; 0 for exact values.
    column_memory : float
        Bytes for each column that is multiplied at once; see ``InStrips``.
    build : callable
        build(rows_x, rows_y or None, n_threads) -> Summation
    """

    name: str
    setup: float
    once: float
    memory: float
    error: float
    build: Callable[[Rows, Rows | None, int], Summation] = field(repr=False, compare=False)

    column_memory: float = 0.0

    @property
    def least_memory(self) -> float:
        """With as few columns at once as it may get."""
        return self.memory + LEAST_COLUMNS * self.column_memory

    def seconds(self, times: float = 1.0) -> float:
        return self.setup + times * self.once


class InStrips(Summation):
    """A product that is given few columns at a time, for what it takes for each of them."""

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
    """One summary for what a kernel says of its values and their errors on the pairs of two sets of rows."""
    if data_y is data_x:
        return data_x
    near, far = sorted((data_x, data_y), key=lambda data: float(data.radius))
    return replace(far, other_radius=near.radius)


def exact_error(kernel: Kernel, rows_x: Rows, rows_y: Rows | None, both: Summary, n_threads: int = 1) -> float:
    """Bound on |error of an entry of an exact product, either way| / sum_j |u_j|, in float64.

    It has the rounding of kernel values and of sums; of a kernel that does not state the former, the error is that of a
    product with the values that ``block`` returns. Infinite where nothing bounds the values.
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
) -> list[Product]:
    """Every product there is for ``tol`` (None: exact ones), or those of one name; all of them work.

    ``least`` is what an exact product errs by, of which an approximation has to leave room; None: the kernel's
    ``entry_error``.

    Raises
    ------
    ValueError
        There is none of this name; the text says which there are.
    """
    n, m, d = data_x.n_samples, data_y.n_samples, data_x.n_features
    exact = Product(
        "exact", OVERHEAD / 10, pass_seconds(kernel, n, m, d, columns, square=square), 0.0, 0.0, _exact(kernel)
    )
    if name == "exact":
        return [exact]
    found = [exact]
    if least is None:
        least = kernel.entry_error(both_sides(data_x, data_y), np.dtype(np.float64)) or 0.0
    rest = tol if tol is None else tol - least  # for the approximation
    if (rest is None or rest > 0.0) and (tol is None or name != "auto" or exact.once > WORTH_OFFERS):
        for offer in kernel.summations(data_x, data_y, rest):
            cost = offer.cost
            further = cost.row_flops if cost.column_flops is None else cost.column_flops
            once = n * (cost.row_flops + (columns - 1) * further) / FEATURE_RATE
            build = _offered(offer.build)
            each = cost.column_memory + 32.0 * max(n, m)
            setup = cost.setup_flops / FEATURE_RATE
            found.append(Product(offer.name, setup, once, cost.memory, cost.residual, build, each))
    least = min(x.seconds() for x in found)
    if name == "pivots" or (name == "auto" and least > WORTH_PROBING):
        found += _pivot_product(kernel, data_x, data_y, rest, columns, np.inf if name == "pivots" else least)
    if name == "auto":
        return found
    named = [x for x in found if x.name == name]
    if not named:
        at = "without a tol" if tol is None else f"at tol={tol:g}"
        others = sorted({x.name for x in found})
        raise ValueError(
            f"{kernel!r} offers no products named {name!r} on these rows {at}; it offers "
            f"{', '.join(map(repr, others))}. " + (did_you_mean(name, others) or "Take products='auto'")
        )
    return named


def best_product(found: list[Product], times: float = 1.0) -> Product:
    return min(found, key=lambda x: x.seconds(times))


def _exact(kernel: Kernel) -> Callable[[Rows, Rows | None, int], Summation]:
    return lambda X, Y, n_threads: ExactSummation(kernel, X, Y, n_threads=n_threads)


def _offered(build: Callable[..., Summation]) -> Callable[[Rows, Rows | None, int], Summation]:
    def made(X: Rows, Y: Rows | None, n_threads: int) -> Summation:
        summation = build(X, Y)
        summation.n_threads = n_threads
        return summation

    return made


def _pivot_product(
    kernel: Kernel, data_x: Summary, data_y: Summary, tol: float | None, columns: int, limit: float
) -> list[Product]:
    """Through pivots: |E_ij| <= sqrt(E_ii E_jj), E being semidefinite, so the largest residual bounds every entry."""
    if tol is None or tol <= 0.0 or not kernel.positive_semidefinite:
        return []
    both = data_x.n_samples + (0 if data_y is data_x else data_y.n_samples)
    # so many that forming them alone takes as long as the best that was offered
    most = min(8192.0, np.sqrt(limit * SYRK_RATE / (5.0 * both)))
    probe = probe_rank(
        kernel, data_x, tol / 20, np.random.default_rng(0), max_probe=int(min(128, most)), sample_rows=512
    )
    size = float(kernel.diagonal(data_x.sample).mean())
    # the largest residual, by the mean one; of values whose squares underflow residuals say nothing
    rank = probe.rank(min(1.0, tol / size / 20)) if size > 1e-140 else np.inf
    if not rank < most:
        return []
    value = 1.0 / entry_rate(data_x.n_features) if is_compiled(kernel) else 1e-8
    form = both * rank * (value + rank / (0.6 * SYRK_RATE))
    # chosen on a sample, checked on every row, then formed once for each side of the product
    setup = form + 4096 * rank * (rank / SYRK_RATE + value) + OVERHEAD
    once = form + 4.0 * both * rank * columns / GEMM_RATE
    if setup + once > limit:
        return []
    entry_error = kernel.entry_error(data_x, np.dtype(np.float64))

    def build(X: Rows, Y: Rows | None, n_threads: int) -> Summation:
        sample = data_x.sample if Y is None else np.concatenate([data_x.sample, data_y.sample])
        generator = np.random.default_rng(0)
        allowed = int(min(8192, 3 * rank + 100))
        found = pivot_map(
            kernel,
            sample,
            tol=tol / size / 20,
            max_features=allowed,
            rng=generator,
            n_samples=both,
            entry_error=entry_error,
        )
        sides = [X] if Y is None else [X, Y]
        top = max(_largest_diagonal(kernel, rows, n_threads) for rows in sides)
        for _ in range(4):
            worst = [_largest_residual(found, rows, n_threads) for rows in sides]
            # entry (i, j): its semidefinite part, what is negative, and the rounding of the two features
            bound = float(np.sqrt(worst[0] * worst[-1])) + 2 * found.defect_norm(1, top)
            bound += 4 * found.rounding * top
            if bound <= tol:
                return ExpansionSummation(found, X, Y, error_bound=bound, n_threads=n_threads)
            rows = sides[int(np.argmax(worst))]
            more, _ = second_round(
                found, rows, tol=1e-3 * tol / size, max_features=allowed, rng=generator, n_threads=n_threads
            )
            if more is found or more.n_features >= allowed:
                break
            found = more
        return ExactSummation(kernel, X, Y, n_threads=n_threads)

    memory = 8.0 * (2.0 * 4096 * (rank + 200) + 3 * rank**2)
    return [Product("pivots", setup, once, memory, tol, build, 8.0 * both)]


def _largest_diagonal(kernel: Kernel, rows: Rows, n_threads: int) -> float:
    """Over all rows: a sample misses a far one, where a kernel that grows is largest."""
    n, step = rows.n_samples, parallel.tile_rows(rows.n_features)
    return parallel.tree_reduce(
        lambda i: float(kernel.diagonal(rows.tile(i * step, min(n, (i + 1) * step))).max()),
        -(-n // step),
        max,
        n_threads=n_threads if kernel.thread_safe else 1,
    )


def _largest_residual(feature_map: PivotMap, rows: Rows, n_threads: int) -> float:
    n, step = rows.n_samples, tile_rows(feature_map)
    threads = n_threads if feature_map.kernel.thread_safe else 1
    return parallel.tree_reduce(
        lambda i: float(feature_map.residual(rows.tile(i * step, min(n, (i + 1) * step))).max()),
        -(-n // step),
        max,
        n_threads=threads,
    )
