"""The krylov route: products with the Gram matrix, which is never formed, and a certificate after each pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ..base.protocol import Kernel, Summation
from ..base.rounding import EPS
from ..model.plan import Candidate
from ..products.blocks import checked_block
from ..products.exact import ExactSummation
from ..products.near import NearSummation, WithSums, distance_bound, free_bytes, norm_bound
from ..products.operators import GramOperator
from ..products.rates import is_compiled, pass_seconds
from ..products.vectors import centre
from ..products.weighted import Coordinates, Entries, coordinates_for
from ..rows.view import Rows
from ..solve.block_krylov import KrylovResult, block_krylov
from ..solve.costs import default_block_size
from ..solve.task import KernelMatrix, NearMatrix, SolverBudget, SolverTarget
from .look import LOOKING
from .problem import Problem
from .product_choice import InStrips
from .solution import Solution, negative_end, number_kept, sample_projector, scattered, signs_of

MATRIX_PASSES = 5
"""Passes over a matrix in memory that are allowed for one over the kernel values."""


STARTING = 4
"""Rows for each column of a first block (``random_set.py``: 8 take as long for few components, and .8 of the time for
50)."""


class Products(NamedTuple):
    """What a run multiplies by.

    Attributes
    ----------
    double : Summation
        In float64.
    single : ExactSummation or None
        In float32, for the search, where the range of float32 allows it.
    values : ExactSummation or None
        ``double``, where it keeps the kernel values.
    near : NearSummation or None
        The values that are not near zero; ``double`` is `WithSums` then.
    """

    double: Summation
    single: ExactSummation | None = None
    values: ExactSummation | None = None
    near: NearSummation | None = None


def most_passes(problem: Problem, *, in_memory: bool) -> int:
    """Passes that a run may take."""
    return (MATRIX_PASSES if in_memory else 1) * problem.budget.max_passes


def solve_by_krylov(
    problem: Problem, way: Candidate, failure: float, most_seconds: float, alternative: str
) -> Solution:
    """Block Krylov; TooDearError once it has cost more than ``most_seconds``.

    ``failure``: probability with which any of its random bounds may fail. ``alternative``: what reaches more, for the
    message of a run that misses tol.
    """
    given, target, budget, kernel = problem.rows, problem.target, problem.budget, problem.kernel
    problem = replace(problem, rows=given.loaded())
    rows, present = problem.rows.present()
    n, wanted = rows.n_samples, target.n_components or min(10, problem.rank)
    # exact products of rows that are distributed are made where these are
    matrix_in_memory = way.offer.cost.memory > 0 and way.name == "exact"
    passes = most_passes(problem, in_memory=matrix_in_memory)
    held = matrix_in_memory and is_compiled(kernel)
    block = default_block_size(n, wanted, held=held)
    products = _products(problem, way, given if given.distributed and present is None else rows, rows, block)
    products = _with_near(problem, way, products, rows)
    exact = way.name == "exact" and products.near is None
    matrix, coordinates = kernel_matrix(problem, products, rows, exact=exact)
    starts = (exact or (products.near is None and way.room.proved)) and not rows.distributed
    start = _start(kernel, rows, coordinates, block, problem) if starts else None
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
    trace, product_error = matrix.trace, float(matrix.product.error_bound)
    assert trace is not None
    total = trace - n * reached.grand_mean
    size = max(abs(trace), float(np.abs(reached.theta).max()), -reached.negative_end)
    # the values of the diagonal err, and the mean of all entries by no more than an entry does
    slack = 4 * EPS * n * size + n * (2 * matrix.entry_error + product_error)
    info = _info(way, reached, product_error, matrix_in_memory)
    info |= negative_end(reached.negative_end, kernel)
    return _solution(problem, reached, coordinates, present, (total, size, slack), info)


def _start(kernel: Kernel, rows: Rows, coordinates: Coordinates, block: int, problem: Problem) -> np.ndarray | None:
    """A first block, in the solver's coordinates: near the leading vectors of a few rows, extended to all (Nystroem).

    It is some passes ahead of a random one, for a fraction of what a pass takes: a product of these rows' matrix with
    random columns is as good a start as its eigenvectors (``peers.py``). With their columns F of K, F K_PP^-1 F' is the
    nearer to K the more they are: where that is cheap, they are many, and a product with it follows. None of values
    that are not finite, which a product names.
    """
    count, follows = _starting_rows(kernel, rows.n_samples, block)
    some = Rows(rows.take(np.sort(problem.rng.choice(rows.n_samples, count, replace=False))))
    with np.errstate(over="ignore", invalid="ignore"):
        K = np.array(checked_block(kernel, some.all(), some.all()), dtype=np.float64)
        factor = K + len(K) * EPS * K.trace() * np.eye(len(K)) if follows else None
        centre(K)
    if not np.isfinite(K).all():
        return None
    columns = ExactSummation(kernel, rows, some, n_threads=problem.budget.n_threads)

    def block_of(V: np.ndarray) -> np.ndarray:
        start = coordinates.block(columns.matmat(V))
        return start - start.mean(axis=0)

    start = block_of(np.linalg.qr(K @ problem.rng.standard_normal((len(K), block)))[0])
    if factor is not None:
        factor, singular = lapack.dpotrf(factor)
        if not singular:
            V = columns.rmatmat(coordinates.coefficients(np.linalg.qr(start)[0]))
            start = block_of(lapack.dpotrs(factor, V)[0])
    norms = np.linalg.norm(start, axis=0)
    return start[:, norms > 0.0] / norms[norms > 0.0]


def _starting_rows(kernel: Kernel, n: int, block: int) -> tuple[int, bool]:
    """How many there are for a first block, and whether a product with F K_PP^-1 F' follows.

    F is then evaluated three times, for a few hundredths of a pass, and K_PP is no larger than the block.
    """
    few, many = min(STARTING * block, n), min(int(LOOKING * n / 6.0), isqrt(n * block))
    follows = kernel.positive_semidefinite and many > few
    return many if follows else few, follows


def start_seconds(problem: Problem, block: int) -> float:
    """Predicted seconds of a first block from a few rows."""
    n, d = problem.data.n_samples, problem.data.n_features
    count, follows = _starting_rows(problem.kernel, n, block)
    return (3.0 if follows else 1.0) * pass_seconds(problem.kernel, n, count, d, block, square=False)


def kernel_matrix(problem: Problem, products: Products, rows: Rows, *, exact: bool) -> tuple[KernelMatrix, Coordinates]:
    """What the solver works on, and its coordinates."""
    kernel, threads, values = problem.kernel, problem.budget.n_threads, products.values
    diagonal = GramOperator(kernel, products.double, rows, None).diagonal()
    largest = problem.largest_value
    coordinates = coordinates_for(kernel, rows, diagonal, largest, threads, center=problem.target.center)
    # entries err by e, and the weighted matrix by sum w times that in norm
    entry_error = problem.entry_error * (coordinates.count / rows.n_samples)
    single = products.single
    search = None if single is None else coordinates.search_product(single)
    matrix = KernelMatrix(
        product=coordinates.product(products.double, exact=exact),
        search_product=search,
        sums=None if single is None or search is not single else single.sums,
        trace=coordinates.trace(diagonal),
        positive_semidefinite=kernel.positive_semidefinite,
        entry_error=entry_error,
        entries=Entries(kernel, rows, diagonal, coordinates, threads, values),
        n_threads=threads,
        near=_near_matrix(problem, products, coordinates),
    )
    return matrix, coordinates


def _near_matrix(problem: Problem, products: Products, coordinates: Coordinates) -> NearMatrix | None:
    near, product = products.near, products.double
    if near is None:
        return None
    assert isinstance(product, WithSums)
    error = (product.error_bound + problem.entry_error) * coordinates.count
    own = near.matmat(product.weights[:, None])[:, 0]
    return NearMatrix(
        coordinates.search_product(near),
        norm_bound(own),
        lambda: distance_bound(own, product.sums, error),
        near.seconds,
    )


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
    reached: KrylovResult,
    coordinates: Coordinates,
    present: np.ndarray | None,
    trace: tuple[float, float, float],
    info: dict,
) -> Solution:
    """The components that are kept, for the rows as given; ``trace``: (trace, size, error) of the centred matrix."""
    total, size, slack = trace
    n_samples, n = problem.data.n_samples, len(reached.vectors)
    above = reached.certificate.eigenvalue_bounds[:, 1] - reached.theta
    floor = 8 * EPS * size  # Rayleigh-Ritz rounds a zero by a few units of the largest eigenvalue
    if not problem.kernel.positive_semidefinite:
        # beside large negative eigenvalues, zeros are computed as rounding errors of their size
        # (without the entry errors that the kernel states, which may be far larger)
        floor = max(floor, min(reached.certificate.rounding, 64 * EPS * np.sqrt(n) * size))
    n_kept = number_kept(reached.theta, floor, total, problem.target, problem.kernel, n_samples, above)
    eigenvalues = reached.theta[:n_kept].copy()
    # from the images, not vectors times Ritz values: so score = Kc @ coeff to rounding, as for new rows
    score = coordinates.images(reached.images[:, :n_kept]) / np.sqrt(eigenvalues)
    sample = problem.data.sample_index
    signs = signs_of(score[sample if present is None else np.searchsorted(present, sample)])
    score *= signs
    coeff = coordinates.coefficients(reached.vectors[:, :n_kept]) * (signs / np.sqrt(eigenvalues))
    means = coordinates.means(reached.row_means)
    # rows of no weight are projected as new ones are
    coeff, means = (scattered(x, present, n_samples) for x in (coeff, means))
    return Solution(
        eigenvalues,
        reached.certificate.first(n_kept),
        (total - slack, total + slack),
        sample_projector(problem, coeff, means),
        info,
        # the root of a small weight would divide rounding: such rows are projected as new ones are
        score if problem.rows.weights is None else None,
        reached.message,
        seconds=reached.seconds,
    )


def _products(problem: Problem, way: Candidate, everywhere: Rows, rows: Rows, block: int) -> Products:
    kernel, threads = problem.kernel, problem.budget.n_threads
    if way.name != "exact":
        near, columns = way.room.near, block
        if near is not None:  # the vectors that it is to find, all at once: values are evaluated for each strip
            columns += int(free_bytes(near) / way.offer.cost.column_memory)
        return Products(InStrips(way.offer.summation(rows, None, threads), columns))
    if not way.offer.cost.memory:
        search = None
        if _fits_float32(problem):
            keeps = way.room.values > 0.0
            search = ExactSummation(kernel, everywhere, n_threads=threads, dtype=np.float32, keeps=keeps)
        return Products(ExactSummation(kernel, everywhere, n_threads=threads), search)
    if rows is problem.rows and 16 * rows.n_features <= rows.n_samples:
        rows.hold()  # shifted once for the products and the model, in an eighth of the memory of values, or less
    product = ExactSummation(kernel, rows, n_threads=threads, keeps=True)
    searches = way.room.values and _values_fit_float32(problem)
    return Products(product, product.in_float32() if searches else None, values=product)


def _with_near(problem: Problem, way: Candidate, products: Products, rows: Rows) -> Products:
    """With a coarse matrix to search by, where the plan takes one."""
    offer = way.room.near
    if offer is None:
        return products
    weights = np.ones(rows.n_samples) if rows.weights is None else np.asarray(rows.weights, dtype=np.float64)
    near = offer.build(rows)
    near.n_threads = problem.budget.n_threads
    return Products(WithSums(products.double, weights), near=near)


def _fits_float32(problem: Problem) -> bool:
    """Whether rows and values are well within the range of float32, with a margin for products and sums."""
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
