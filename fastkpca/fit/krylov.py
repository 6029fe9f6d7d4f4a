"""The krylov route: products with the Gram matrix, which is never formed, and a certificate after each pass."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

import numpy as np

from ..base.protocol import Kernel
from ..base.rounding import EPS
from ..model.plan import Candidate
from ..products.exact import ExactSummation
from ..products.implicit import KernelMatrix, Products, kernel_matrix
from ..products.near import free_bytes
from ..products.rates import is_compiled, pass_seconds
from ..products.weighted import Entries
from ..solve.block_krylov import KrylovResult, block_krylov
from ..solve.costs import default_block_size
from ..solve.task import SolverBudget, SolverTarget
from .look import PROBE_FRACTION
from .problem import Problem
from .product_choice import InStrips
from .solution import PositiveWeightRows, Solution, negative_end, number_kept, signs_of

MATRIX_PASSES = 5
"""Passes over a matrix in memory that are allowed for one over the kernel values."""


STARTING = 4
"""Rows for each column of a first block (``random_set.py``: 8 take as long for few components, and .8 of the time for
50)."""


def most_passes(problem: Problem, *, in_memory: bool) -> int:
    """Passes that a run may take."""
    return (MATRIX_PASSES if in_memory else 1) * problem.budget.max_passes


def solve_by_krylov(
    problem: Problem, present: PositiveWeightRows, way: Candidate, failure: float, most_seconds: float, alternative: str
) -> Solution:
    """Block Krylov; TooDearError once it has cost more than ``most_seconds``.

    ``failure``: probability with which any of its random bounds may fail. ``alternative``: what reaches more, for the
    message of a run that misses tol.
    """
    rows, target, budget, kernel = present.rows, problem.target, problem.budget, problem.kernel
    n, wanted = rows.n_samples, target.n_components or min(10, problem.rank)
    matrix_in_memory = way.offer.cost.memory > 0 and way.name == "exact"
    passes = most_passes(problem, in_memory=matrix_in_memory)
    held = matrix_in_memory and is_compiled(kernel)
    block = default_block_size(n, wanted, held=held)
    products, near = _products(problem, way, present, block), way.room.near
    if near is not None:
        products = products.with_near(near, rows, budget.n_threads)
    matrix, entries = kernel_matrix(
        kernel, rows, products, problem.largest_value, problem.entry_error, budget.n_threads, center=target.center
    )
    start = None
    if near is None and (way.name == "exact" or way.room.proved):
        count, follows = _starting_rows(kernel, n, block)
        start = entries.first_block(count, block, problem.rng, follows=follows)
    fraction = None if target.n_components else target.c
    reached = block_krylov(
        matrix,
        SolverTarget(wanted, target.tol, fraction, failure),
        SolverBudget(passes, way.room.basis, way.room.pass_seconds, most_seconds, alternative),
        start=start,
        block_size=block,
        rng=problem.rng,
        progress=budget.report,
    )
    if budget.report is not None and reached.passes < passes:  # fewer passes than allowed were enough
        budget.report("krylov", passes, passes)
    info = _info(way, reached, float(matrix.product.error_bound), matrix_in_memory)
    info |= negative_end(reached.negative_end, kernel)
    return _solution(problem, present, matrix, entries, reached, info)


def _starting_rows(kernel: Kernel, n: int, block: int) -> tuple[int, bool]:
    """How many there are for a first block, and whether a product with F K_PP^-1 F' follows.

    F is then evaluated three times, for a few hundredths of a pass, and K_PP is no larger than the block.
    """
    few, many = min(STARTING * block, n), min(int(PROBE_FRACTION * n / 6.0), isqrt(n * block))
    follows = kernel.positive_semidefinite and many > few
    return many if follows else few, follows


def start_seconds(problem: Problem, block: int) -> float:
    """Predicted seconds of a first block from a few rows."""
    n, d = problem.data.n_samples, problem.data.n_features
    count, follows = _starting_rows(problem.kernel, n, block)
    return (3.0 if follows else 1.0) * pass_seconds(problem.kernel, n, count, d, block, square=False)


def _info(way: Candidate, reached: KrylovResult, product_error: float, matrix_in_memory: bool) -> dict:
    info: dict = {"method": "krylov", "products": way.name, "passes": reached.passes}
    info["search_passes"] = reached.search_passes
    if matrix_in_memory:  # the values were computed once
        info |= {"passes": 1, "matrix_passes": reached.passes}
    elif way.room.values and reached.search_passes > 1:  # those of the search were computed in its first pass
        info |= {"matrix_passes": reached.search_passes - 1}
    info |= {"factorisations": reached.factorisations} if reached.factorisations else {}
    info |= {"product_error": product_error} if product_error else {}
    return info | {"widths": widths(reached.history), "search_widths": widths(reached.search_history)}


def _solution(
    problem: Problem,
    present: PositiveWeightRows,
    matrix: KernelMatrix,
    entries: Entries,
    reached: KrylovResult,
    info: dict,
) -> Solution:
    """The components that are kept, for the rows as given."""
    n, trace, coordinates = len(present.rows), matrix.trace, entries.coordinates
    assert trace is not None
    total = trace - n * reached.grand_mean
    size = max(abs(trace), float(np.abs(reached.values).max()), -reached.negative_end)
    # the values of the diagonal err, and the mean of all entries by no more than an entry does
    slack = 4 * EPS * n * size + n * (2 * matrix.entry_error + float(matrix.product.error_bound))
    above = reached.certificate.eigenvalue_bounds[:, 1] - reached.values
    floor = 8 * EPS * size  # Rayleigh-Ritz rounds a zero by a few units of the largest eigenvalue
    if not problem.kernel.positive_semidefinite:
        # beside large negative eigenvalues, zeros are computed as rounding errors of their size
        # (without the entry errors that the kernel states, which may be far larger)
        floor = max(floor, min(reached.certificate.rounding, 64 * EPS * np.sqrt(len(reached.vectors)) * size))
    n_kept, fewer = number_kept(reached.values, floor, total, problem.target, problem.kernel, len(present.every), above)
    eigenvalues = reached.values[:n_kept].copy()
    # from the images, not vectors times Ritz values: so score = Kc @ coeff to rounding, as for new rows
    score = coordinates.images(reached.images[:, :n_kept]) / np.sqrt(eigenvalues)
    signs = signs_of(score[present.places(problem.data.sample_index)])
    score *= signs
    coeff = coordinates.coefficients(reached.vectors[:, :n_kept]) * (signs / np.sqrt(eigenvalues))
    means = coordinates.means(reached.row_means)
    return Solution(
        eigenvalues,
        reached.certificate.first(n_kept),
        (total - slack, total + slack),
        present.projector(coeff, means, center=problem.target.center),
        info,
        # the root of a small weight would divide rounding: such rows are projected as new ones are
        score if problem.rows.weights is None else None,
        fewer,
        f"after {reached.passes} pass{'es' * (reached.passes != 1)} ",
        reached.message,
        seconds=reached.seconds,
    )


def _products(problem: Problem, way: Candidate, present: PositiveWeightRows, block: int) -> Products:
    kernel, rows, threads = problem.kernel, present.rows, problem.budget.n_threads
    if way.name != "exact":
        near, columns = way.room.near, block
        if near is not None:  # the vectors that it is to find, all at once: values are evaluated for each strip
            columns += int(free_bytes(near) / way.offer.cost.column_memory)
        return Products(InStrips(way.offer.summation(rows, None, threads), columns))
    if not way.offer.cost.memory:
        # exact products of rows that are distributed are made where these are
        everywhere = problem.rows if problem.rows.distributed and present.index is None else rows
        search = None
        if _fits_float32(problem):
            keeps = way.room.values > 0.0
            search = ExactSummation(kernel, everywhere, n_threads=threads, dtype=np.float32, keeps=keeps)
        return Products(ExactSummation(kernel, everywhere, n_threads=threads), search)
    if present.index is None and 16 * rows.n_features <= rows.n_samples:
        rows.hold()  # shifted once for the products and the model, in an eighth of the memory of values, or less
    product = ExactSummation(kernel, rows, n_threads=threads, keeps=True)
    searches = way.room.values and _values_fit_float32(problem)
    return Products(product, product.in_float32() if searches else None, values=product)


def _fits_float32(problem: Problem) -> bool:
    """True if rows and values are well within the range of float32, with a margin for products and sums."""
    # distances are formed in units of the kernel's own
    rows = problem.kernel.translation == "kernel" or 1e-15 < problem.data.radius < 1e15
    if not (rows and _values_fit_float32(problem)):
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # a parameter may be beyond float32
        X = problem.some_rows(64).astype(np.float32)
        return bool(np.isfinite(X).all() and np.isfinite(problem.kernel.block(X, X)).all())


def _values_fit_float32(problem: Problem) -> bool:
    return 1e-25 < problem.largest_value < 1e30


def widths(pairs: Sequence[tuple[int, float]]) -> list[list[float]]:
    """[pass, width] as JSON has them, of the passes after which a width was known."""
    return [[int(passes), float(width)] for passes, width in pairs if np.isfinite(width)]
