"""The krylov route: products with the Gram matrix, which is never formed, and a certificate after each pass.

``estimate`` predicts the cost of a run for each product that serves ``tol``, and ``run`` computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt

import numpy as np

from ..base.protocol import Kernel, Offer
from ..base.rounding import EPS
from ..model.plan import Candidate, RunSettings, Step, total_seconds
from ..products.exact import ExactSummation, band_rows, kept_bytes
from ..products.implicit import KernelMatrix, Products, kernel_matrix
from ..products.rates import RATE, evaluation_columns, is_compiled, pass_seconds, reading_seconds, takes_blas
from ..products.truncated import PROBE_ROWS, free_bytes
from ..products.weighted import Entries
from ..solve.block_krylov import GUARD_COLUMNS, KrylovResult, block_krylov
from ..solve.costs import (
    MAX_BLOCK_COLUMNS,
    MOST_COLUMNS,
    basis_bytes,
    check_seconds,
    default_block_size,
    factorising_seconds,
    least_columns,
    rest_bytes,
    step_seconds,
    usual_columns,
)
from ..solve.task import SolverBudget, SolverTarget
from ..solve.truncated import truncated_seconds
from . import footprint
from .convergence import LAST, Expected, expected_runs
from .probe import SpectrumProbe, components_expected
from .problem import Problem
from .product_choice import InStrips, ProductCandidate, products_for
from .solution import PositiveWeightRows, RunLimits, Solution, negative_end, number_kept, signs_of

MATRIX_PASSES = 5
"""Passes over a matrix in memory that are allowed for one over the kernel values."""
START_ROWS_PER_COLUMN = 4
"""Rows for each column of a first block (``random_set.py``: 8 take as long for few components, and .8 of the time for
50)."""
SAMPLE_FRACTION = 0.05
"""Largest cost of a first block, or of a probe of the truncated matrix, as a fraction of a pass or of the run."""
UNPROVED = 1.25
"""Factor on the seconds of a run that trace and norm will not prove: another candidate may replace it."""
PRODUCT_SHARE = 2e-3
"""Fraction of tol for the error of approximate products: it enters twice, times the root of the columns."""
WIDER, BLOCK_ROWS = 1.5, 20
"""Least ratio to the default block at which wider ones are tried; rows for each of their columns."""
SMALL_ROWS = 2048
"""Rows up to which compiled kernel values are cached in float64, in any number of columns."""
SMALL_MATRIX_BYTES = 64 << 20
"""Bytes up to which K itself is cached, of a kernel without compiled tiles."""


# the estimate ------------------------------------------------------------------------------------------------


def estimate(problem: Problem, probe: SpectrumProbe, most_seconds: float, *, every: bool = False) -> list[Candidate]:
    """Block Krylov on exact products, and on each approximate one that is accurate enough for ``tol``.

    Approximate ones take time to plan. They are left out for small matrices of compiled kernels, and where even
    products that cost nothing would leave block Krylov slower than ``most_seconds``, the time of another route;
    ``every`` keeps them."""
    kernel, data, target = problem.kernel, problem.data, problem.target
    named = target.products not in ("auto", "exact")
    if named and not probe.level:
        return []  # the error that they may have follows from the largest eigenvalue
    n, k = data.n_samples, components_expected(problem)
    block = default_block_size(n, k)
    exact = _exact_products(problem, block)
    candidate = _exact_candidate(problem, probe, None)
    truncated = None
    if exact.seconds(LAST) < most_seconds:  # for anything in place of the search
        truncated = _truncated_offer(problem, probe, candidate.seconds)
    candidate = candidate if truncated is None else _exact_candidate(problem, probe, truncated)
    if not named and not every:
        free = replace(exact, name="free", setup=0.0, once=0.0)
        large = n > SMALL_ROWS or not is_compiled(kernel)
        worth = target.products == "auto" and probe.share(1) > 0.0 and large
        if not (worth and _candidate(problem, probe, free, truncated, block).seconds < most_seconds):
            return [candidate]
    # an error of at most e in each entry moves an eigenvalue by at most n e
    share = min(probe.share(1), probe.first)
    allowed = PRODUCT_SHARE * target.tol * share * probe.mean
    # computed kernel values err in exact products, too
    allowed = max(allowed, 2.0 * problem.entry_error)
    products = products_for(
        kernel,
        data,
        data,
        allowed if allowed > 0 else None,
        square=True,
        columns=k + GUARD_COLUMNS,  # they begin with a random block
        name=target.products,
        every=every,
        reason=f": an error of e in each kernel value moves an eigenvalue by up to N e, and this is "
        f"{PRODUCT_SHARE:g} of tol times the largest eigenvalue over N",
    )
    return [candidate if x.name == "exact" else _candidate(problem, probe, x, truncated, block) for x in products]


def _exact_products(problem: Problem, block: int) -> ProductCandidate:
    kernel, data = problem.kernel, problem.data
    return products_for(kernel, data, data, None, square=True, columns=block, name="exact")[0]


def _exact_candidate(problem: Problem, probe: SpectrumProbe, truncated: Offer | None) -> Candidate:
    """Block Krylov on exact products, in blocks of the width that is predicted to take least."""
    n, k = problem.data.n_samples, components_expected(problem)
    stored = _in_memory(problem, _exact_products(problem, default_block_size(n, k)), k)
    if stored is not None:
        block = default_block_size(n, k, held=is_compiled(problem.kernel))
        return _candidate(problem, probe, stored, truncated, block)
    candidates = [
        _candidate(problem, probe, _exact_products(problem, block), truncated, block)
        for block in _block_sizes(problem, k)
    ]
    return min(candidates, key=lambda x: (bool(x.obstacle), x.seconds))


def _block_sizes(problem: Problem, k: int) -> list[int]:
    """Block widths to try: up to the one whose product costs as much as evaluating the kernel values."""
    n, least = problem.data.n_samples, default_block_size(problem.data.n_samples, k)
    most = min(k + evaluation_columns(problem.kernel, problem.data.n_features), MAX_BLOCK_COLUMNS, n // BLOCK_ROWS)
    return [least, (least + most) // 2, most] if most > WIDER * least else [least]


def _truncated_offer(problem: Problem, probe: SpectrumProbe, seconds: float) -> Offer | None:
    """Products with the truncated matrix for the float32 phase, where block Krylov uses them and a probe of that matrix
    costs little compared with ``seconds``."""
    target, n = problem.target, problem.data.n_samples
    wanted = target.n_components is not None and target.failure_probability > 0.0 and probe.share(1) > 0.0
    if not wanted or n <= SMALL_ROWS or not problem.kernel.positive_semidefinite or problem.rows.distributed:
        return None
    if PROBE_ROWS * problem.data.sample.size / RATE.rows > SAMPLE_FRACTION * seconds:
        return None
    return problem.kernel.coarse(problem.data, target.tol)


def _candidate(
    problem: Problem, probe: SpectrumProbe, product: ProductCandidate, truncated: Offer | None, block: int
) -> Candidate:
    kernel, data, target, limit = problem.kernel, problem.data, problem.target, problem.budget.memory
    n, exact, compiled = data.n_samples, product.name == "exact", is_compiled(kernel)
    k = components_expected(problem)  # a run whose basis is full of too few components ends, and says so
    in_memory = _is_in_memory(product)
    held = in_memory and compiled
    memory = _memory(problem, k, block, product.memory(block))
    obstacle = _obstacle(problem, k) or footprint.too_much(memory, limit)
    values = _float32_values(problem, memory, held=in_memory) if exact else 0.0
    extra = 0.0 if in_memory else values
    values = values if memory + extra <= limit else 0.0
    # a pass in float32 takes half as long, and over values that it keeps the first one alone makes these
    single = 0.5 if exact and (held or not in_memory) else 1.0
    later = min(single * product.once, 2.0 * n * n * block / RATE.multiplications)

    def steps_of(expected: Expected) -> list[Step]:
        search = expected.search
        makes = 1.0 if values and not in_memory else search
        slower = 1.0 if expected.proved else UNPROVED
        start = (exact or expected.proved) and not problem.rows.distributed
        steps = [
            Step("preparation of products", product.setup + reading_seconds(n, data.n_features)),
            Step("first block from a few rows", _start_seconds(problem, block) if start else 0.0),
            Step(f"{search:.0f} passes of the search", single * makes * product.once + (search - makes) * later),
            Step("the last in float64", LAST * product.once),
            Step("Rayleigh-Ritz, bound on the complement", _algebra_seconds(problem, product, block, expected)),
            Step("calls", RATE.a_pass * (search + LAST + 1.0)),
        ]
        return [Step(x.name, slower * x.seconds) for x in steps]

    most, c = most_passes(problem, in_memory=in_memory), components_expected(problem, probe)
    semidefinite, failure = kernel.positive_semidefinite, target.failure_probability
    runs = expected_runs(probe, c, block, most, target.tol, failure, trace=semidefinite, norm=exact)
    expected = min(runs, key=lambda x: total_seconds(steps_of(x)))
    steps = steps_of(expected)
    memory += min(extra, values)
    searched = None
    if truncated is not None and not in_memory:
        by_truncated = [
            Step("preparation of products", product.setup + reading_seconds(n, data.n_features)),
            Step("search with the truncated matrix", truncated_seconds(truncated.cost, n, k)),
            Step("passes in float64", LAST * product.once),
        ]
        needed = memory - values + truncated.cost.memory
        if total_seconds(by_truncated) < total_seconds(steps) and needed <= limit:
            steps, memory, values, searched = by_truncated, needed, 0.0, truncated
    settings = RunSettings(
        basis=_basis_memory(problem, k, block, memory),
        block=block,
        pass_seconds=product.once,
        values=values,
        truncated=searched,
        proved=probe.level > 0 and expected.proved,
    )
    done = tuple(x for x in steps if x.seconds > 0.0)
    return Candidate("krylov", product.name, total_seconds(done), memory, 0, obstacle, done, product, settings)


def _obstacle(problem: Problem, k: int) -> str:
    """The reason why block Krylov cannot solve the problem at any memory, if any."""
    if problem.target.c is None:
        return "all components need the dense route or an exact feature map"
    if problem.target.n_components is None and not problem.kernel.positive_semidefinite:
        return "a fraction of the variance needs a positive semidefinite kernel, or the dense route"
    return f"finds at most {problem.rank} components" if k > problem.rank else ""


def _algebra_seconds(problem: Problem, product: ProductCandidate, block: int, expected: Expected) -> float:
    """Seconds of Rayleigh-Ritz in the search and after it, and of the bound on the complement.

    Where trace and norm do not bound the complement well enough, an exploration or a factorisation does.
    """
    n, steps, columns = problem.data.n_samples, max(expected.search, 1.0), expected.columns
    # the columns grow from one block to all
    seconds = steps * (step_seconds(n, 0.5 * columns, block) + 0.25 * check_seconds(columns, certified=False))
    kept = columns if expected.proved else min(2.0 * block, columns)  # the wanted vectors, and their residuals
    seconds += LAST * (step_seconds(n, kept, int(kept)) / 2.0 + check_seconds(kept))
    if expected.proved:
        return seconds
    passes, mean = expected.exploring, kept + 0.5 * expected.exploring * block
    exploring = passes * (product.once + step_seconds(n, mean, block) + check_seconds(min(mean, MOST_COLUMNS)))
    factorises = product.name == "exact" and rest_bytes(n, int(columns)) <= problem.budget.memory
    return seconds + (min(exploring, factorising_seconds(n, 2 * block, product.once)) if factorises else exploring)


def _is_in_memory(product: ProductCandidate) -> bool:
    """True for exact products with a stored K."""
    return product.name == "exact" and product.cost.memory > 0.0


def _memory(problem: Problem, k: int, block: int, product: float) -> float:
    """Bytes of a basis of as many columns as a run needs at least, and the product's own."""
    data, rows = problem.data, problem.rows
    n, d = data.n_samples, data.n_features
    columns = least_columns(n, k, block)
    weighted = 0.0 if rows.weights is None else 8.0 * n * (columns + 6.0)
    # the two bands of a task, what of them is packed or converted, and those of the task before, which malloc keeps
    bands = footprint.THREADS * 8.0 * min(n, band_rows(n, d)) * 5.0 * d
    result = 8.0 * n * 6.0 * k + footprint.copies_of_rows(data)
    route = max(basis_bytes(n, columns, block) + weighted, result) + bands
    return footprint.with_rows(data, rows, route + product + footprint.tiles_and_buffers(n, 128.0))


def _in_memory(problem: Problem, product: ProductCandidate, k: int) -> ProductCandidate | None:
    """Exact products with a stored K; None where that saves no time, or does not fit.

    A small K is stored for kernels without compiled tiles, whose values come from ``block``, in Python. With compiled
    tiles half of K is stored if the rows are few, or if they have many columns, which make a value expensive.
    """
    kernel, n = problem.kernel, problem.data.n_samples
    d, compiled = problem.data.n_features, is_compiled(kernel)
    columns = default_block_size(n, k, held=compiled)
    once = 2.0 * n * n * columns / RATE.multiplications
    saves = n <= SMALL_ROWS or takes_blas(d) if compiled else 8.0 * n * n <= SMALL_MATRIX_BYTES
    size = kept_bytes(kernel, n, d, 8 + 4) + 8.0 * n * d  # with those of a search; and all rows, shifted
    once += (kept_bytes(kernel, n, d, 8) if compiled else 8.0 * n * n) / RATE.reads
    cost = replace(product.cost, memory=product.cost.memory + size)
    stored = replace(product, cost=cost, setup=product.setup + product.once + size / RATE.reads, once=once)
    # stored only if a basis fits too that is large enough for a bound on the complement: without that no interval
    basis = basis_bytes(n, usual_columns(n, k, columns), columns)
    return (
        stored
        if saves and _memory(problem, k, columns, stored.memory(columns)) + basis <= problem.budget.memory
        else None
    )


def _float32_values(problem: Problem, memory: float, *, held: bool) -> float:
    """Bytes of the values of a search in float32, in addition to those of the run, where storing them saves time; else
    0.

    ``held``: True if the values are stored in float64, and these in addition.
    """
    n, d, compiled = problem.data.n_samples, problem.data.n_features, is_compiled(problem.kernel)
    # compiled tiles make a value of few columns of X again in less time than it takes to read
    saves = held or takes_blas(d) or not compiled
    size = kept_bytes(problem.kernel, n, d, 4) + (0.0 if held else 8.0 * n * d)
    here = held or not problem.rows.distributed  # other values of distributed rows are made where these are
    fits = held or memory + size <= problem.budget.memory
    return size if saves and here and fits else 0.0


def _basis_memory(problem: Problem, k: int, block: int, memory: float) -> float:
    """Bytes within the limit for the basis."""
    n = problem.data.n_samples
    least = basis_bytes(n, least_columns(n, k, block), block)
    spare = max(0.0, problem.budget.memory - memory)
    return least + spare / (2.0 if problem.rows.weights is not None else 1.0)


def most_passes(problem: Problem, *, in_memory: bool) -> int:
    """Passes that a run may take."""
    return (MATRIX_PASSES if in_memory else 1) * problem.budget.max_passes


def _starting_rows(kernel: Kernel, n: int, block: int) -> tuple[int, bool]:
    """Number of rows P for a first block, and whether a product with F K_PP^-1 F' follows, F = k(X, P).

    F is then evaluated three times, for a few hundredths of a pass, and K_PP is no larger than the block.
    """
    few, many = min(START_ROWS_PER_COLUMN * block, n), min(int(SAMPLE_FRACTION * n / 6.0), isqrt(n * block))
    follows = kernel.positive_semidefinite and many > few
    return many if follows else few, follows


def _start_seconds(problem: Problem, block: int) -> float:
    """Predicted seconds of a first block from a few rows."""
    n, d = problem.data.n_samples, problem.data.n_features
    count, follows = _starting_rows(problem.kernel, n, block)
    return (3.0 if follows else 1.0) * pass_seconds(problem.kernel, n, count, d, block, square=False)


# the run -----------------------------------------------------------------------------------------------------


def run(problem: Problem, candidate: Candidate, limits: RunLimits) -> Solution:
    """Block Krylov.

    Raises
    ------
    BudgetExceededError
        The run has cost more than the limits say.
    """
    present = PositiveWeightRows.of(problem.rows)
    rows, target, budget, kernel = present.rows, problem.target, problem.budget, problem.kernel
    n, wanted, settings = rows.n_samples, target.n_components or min(10, problem.rank), candidate.settings
    matrix_in_memory, block = _is_in_memory(candidate.offer), settings.block
    passes = most_passes(problem, in_memory=matrix_in_memory)
    products = _products(problem, candidate, present, block)
    if settings.truncated is not None:
        products = products.with_truncated(settings.truncated, rows, budget.n_threads)
    matrix, entries = kernel_matrix(
        kernel, rows, products, problem.largest_value, problem.entry_error, budget.n_threads, center=target.center
    )
    start = None
    if settings.truncated is None and (candidate.name == "exact" or settings.proved):
        count, follows = _starting_rows(kernel, n, block)
        start = entries.first_block(count, block, problem.rng, follows=follows)
    fraction = None if target.n_components else target.c
    reached = block_krylov(
        matrix,
        SolverTarget(wanted, target.tol, fraction, limits.failure),
        SolverBudget(passes, settings.basis, settings.pass_seconds, limits.seconds, limits.alternative),
        start=start,
        block_size=block,
        rng=problem.rng,
        progress=budget.report,
    )
    if budget.report is not None and reached.passes < passes:  # fewer passes than allowed were enough
        budget.report("krylov", passes, passes)
    float64_passes = reached.passes - reached.search_passes
    problem.record(Step(f"{reached.search_passes} passes of the search, {float64_passes} in float64", reached.seconds))
    info = _info(candidate, reached, float(matrix.product.error_bound), matrix_in_memory)
    info |= negative_end(reached.negative_end, kernel)
    return _solution(problem, present, matrix, entries, reached, info)


def _info(candidate: Candidate, reached: KrylovResult, product_error: float, matrix_in_memory: bool) -> dict:
    info: dict = {"method": "krylov", "products": candidate.name, "passes": reached.passes}
    info["search_passes"] = reached.search_passes
    if matrix_in_memory:  # the values were computed once
        info |= {"passes": 1, "matrix_passes": reached.passes}
    elif candidate.settings.values and reached.search_passes > 1:  # those of the search were computed in its first pass
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
        # with large negative eigenvalues, zero ones are computed as rounding errors relative to these (without the
        # entry errors that the kernel states, which may be far larger)
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


def _products(problem: Problem, candidate: Candidate, present: PositiveWeightRows, block: int) -> Products:
    kernel, rows, threads = problem.kernel, present.rows, problem.budget.n_threads
    if candidate.name != "exact":
        truncated, columns = candidate.settings.truncated, block
        if truncated is not None:  # the vectors that it is to find, all at once: values are evaluated for each strip
            columns += int(free_bytes(truncated) / candidate.offer.cost.column_memory)
        return Products(InStrips(candidate.offer.summation(rows, None, threads), columns))
    if not candidate.offer.cost.memory:
        # exact products of rows that are distributed are made where these are
        everywhere = problem.rows if problem.rows.distributed and present.index is None else rows
        search = None
        if _fits_float32(problem):
            keeps = candidate.settings.values > 0.0
            search = ExactSummation(kernel, everywhere, n_threads=threads, dtype=np.float32, keeps=keeps)
        return Products(ExactSummation(kernel, everywhere, n_threads=threads), search)
    if present.index is None and 16 * rows.n_features <= rows.n_samples:
        rows.hold()  # shifted once for the products and the model, in an eighth of the memory of values, or less
    product = ExactSummation(kernel, rows, n_threads=threads, keeps=True)
    searches = candidate.settings.values and _values_fit_float32(problem)
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
