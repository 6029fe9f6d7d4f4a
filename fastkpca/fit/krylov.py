"""The krylov route: products with the Gram matrix, which is never formed, and a certificate after each pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.linalg

from ..base import parallel
from ..base.protocol import Summation
from ..base.rounding import EPS, rounding_factor
from ..maps.passes import accumulate, feature_moments
from ..maps.pivots import pivot_map
from ..model.plan import Candidate, Plan
from ..products.exact import ExactSummation
from ..products.matrix import MatrixSummation, gram_matrix
from ..products.operators import GramOperator
from ..products.weighted import WeightedExactSummation, WeightedSummation
from ..rows.view import Rows
from ..solve.beyond import FeatureInfo
from ..solve.certificate import Certificate
from ..solve.costs import TooDearError, default_block_size
from ..solve.krylov import KrylovResult, block_krylov
from ..solve.moments import principal_axes
from ..solve.target import KernelMatrix, SolverBudget, SolverTarget
from .components import defect_of
from .dense import solve_dense
from .problem import Problem
from .product_choice import InStrips
from .solution import Solution, negative_end, number_kept, sample_projector, scattered, signs_of

__all__ = ["solve_by_products", "widths"]


def solve_by_products(problem: Problem, plan: Plan) -> Solution:
    """Block Krylov, or LAPACK where that is, or turns out to be, the cheaper of the two.

    How many passes there will be is hard to predict where the spectrum is flat. Left when it has cost what LAPACK would
    cost, a run is never much dearer than twice the better way.
    """
    lapack, way = plan.dense, plan.krylov
    assert way is not None
    if lapack is None or problem.target.forced:
        return _solve(problem, way, plan.otherwise)
    if lapack.seconds < way.seconds:
        return solve_dense(problem)
    try:
        return _solve(problem, way, plan.otherwise, lapack.seconds)
    except TooDearError as error:
        found = solve_dense(problem)
        return replace(found, info=found.info | {"krylov_tried": error.passes})


def _solve(problem: Problem, way: Candidate, otherwise: str, worth: float = np.inf) -> Solution:
    """Block Krylov; TooDearError once it has cost more seconds than it is worth."""
    given, target, budget, kernel = problem.rows, problem.target, problem.budget, problem.kernel
    problem = replace(problem, rows=given.loaded())
    rows, present = problem.rows.present()
    n, wanted = rows.n_samples, target.n_components
    # exact products of rows that are distributed are made where these are
    product, search = _products(problem, way, given if given.distributed and present is None else rows, rows)
    diagonal = GramOperator(kernel, product, rows, None).diagonal()
    coordinates = _Coordinates(n) if rows.weights is None else _WeightedCoordinates(problem, rows, diagonal)
    trace = coordinates.trace(diagonal)
    product = coordinates.product(product, exact=way.name == "exact")
    search = None if search is None else coordinates.search_product(search)
    # entries err by e, and the weighted matrix by sum w times that in norm
    entry_error = problem.entry_error * (coordinates.count / n)
    with parallel.blas_threads():
        start, known = None, None
        if kernel.positive_semidefinite:
            start, known = _start(problem, rows, way.n_features, coordinates)
        found = block_krylov(
            KernelMatrix(product, search, trace, kernel.positive_semidefinite, entry_error, known),
            SolverTarget(wanted or min(10, n - 1), target.tol, None if wanted else target.c),
            SolverBudget(budget.max_passes, way.room.basis, way.room.pass_seconds, worth, otherwise),
            start=start,
            rng=problem.rng,
            progress=budget.report,
        )
    total = trace - n * found.grand_mean
    size = max(abs(trace), float(np.abs(found.theta).max()), -found.negative_end)
    # the mean of all entries errs by no more than an entry does
    slack = 4 * EPS * n * size + n * (entry_error + product.error_bound)
    info = {"method": "krylov", "products": way.name, "passes": found.passes, "search_passes": found.search_passes}
    info |= {"product_error": float(product.error_bound)} if product.error_bound else {}
    info |= {"widths": widths(found.history), "search_widths": widths(found.search_history)}
    info |= negative_end(found.negative_end, kernel)
    return _solution(problem, found, coordinates, present, (total, size, slack), info)


def _solution(
    problem: Problem,
    found: KrylovResult,
    coordinates: _Coordinates,
    present: np.ndarray | None,
    trace: tuple[float, float, float],
    info: dict,
) -> Solution:
    """The components that are kept, for the rows as given; ``trace``: of the centred matrix, of its size, its error."""
    total, size, slack = trace
    n_samples, n = problem.data.n_samples, len(found.vectors)
    above = found.certificate.eigenvalue_bounds[:, 1] - found.theta
    floor = 2 * EPS * size
    if not problem.kernel.positive_semidefinite:
        # beside large negative ones, zeros come out as what rounding left of them
        # (without errors of entries that the kernel states, which may be far above all of them)
        floor = max(floor, min(found.certificate.rounding, 64 * EPS * np.sqrt(n) * size))
    kept = number_kept(found.theta, floor, total, problem.target, problem.kernel, n_samples, above)
    eigenvalues = found.theta[:kept].copy()
    # score = Kc @ coeff to rounding, as for new rows: the image, not the vector times its Ritz value
    score = coordinates.images(found.images[:, :kept]) / np.sqrt(eigenvalues)
    sample = problem.data.sample_index
    signs = signs_of(score[sample if present is None else np.searchsorted(present, sample)])
    score *= signs
    coeff = coordinates.coefficients(found.vectors[:, :kept]) * (signs / np.sqrt(eigenvalues))
    means = coordinates.means(found.row_means)
    # rows of no weight are projected as new ones are
    coeff, means = (scattered(x, present, n_samples) for x in (coeff, means))
    return Solution(
        eigenvalues,
        _first(found.certificate, kept),
        (total - slack, total + slack),
        sample_projector(problem.rows, coeff, means, problem.dtype),
        info,
        score if present is None else None,
        found.message,
    )


def _products(problem: Problem, way: Candidate, everywhere: Rows, rows: Rows) -> tuple[Summation, Summation | None]:
    """The product that proves, and one in float32 for the search, where the range of float32 allows it."""
    kernel, threads = problem.kernel, problem.budget.n_threads
    if way.name != "exact":
        return InStrips(way.offer.summation(rows, None, threads), way.room.columns), None
    if way.offer.cost.memory:
        K = gram_matrix(kernel, rows, n_threads=threads, progress=problem.budget.report)
        return MatrixSummation(K, n_threads=threads), None
    search = None
    if _fits_float32(problem):
        search = ExactSummation(kernel, everywhere, n_threads=threads, dtype=np.float32)
    return ExactSummation(kernel, everywhere, n_threads=threads), search


def _fits_float32(problem: Problem) -> bool:
    """Whether rows and values are well within float32: products and sums need room on either side."""
    # distances are formed in units of the kernel's own
    rows = problem.kernel.translation == "kernel" or 1e-15 < problem.data.radius < 1e15
    if not (rows and 1e-25 < problem.largest_value < 1e30):
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # a parameter may be beyond float32
        X = problem.some_rows(64).astype(np.float32)
        return bool(np.isfinite(problem.kernel.block(X, X)).all())


# Coordinates in which centring is the ordinary one ------------------------------------------------------------------


class _Coordinates:
    """Those of rows that count once each: their own."""

    def __init__(self, count: float):
        self.count = float(count)

    def trace(self, diagonal: np.ndarray) -> float:
        return float(diagonal.sum())

    def product(self, product: Summation, *, exact: bool) -> Summation:
        """The one that the solver multiplies with."""
        return product

    def search_product(self, search: Summation) -> Summation:
        return search

    def block(self, V: np.ndarray) -> np.ndarray:
        """Values at the rows, as the solver's columns."""
        return V

    def coefficients(self, vectors: np.ndarray) -> np.ndarray:
        """The solver's columns, as coefficients of the rows."""
        return vectors

    def images(self, images: np.ndarray) -> np.ndarray:
        """The solver's images, as values at the rows."""
        return images

    def means(self, row_means: np.ndarray) -> np.ndarray:
        """Of the columns of K."""
        return row_means


class _WeightedCoordinates(_Coordinates):
    """Those of weighted rows: see ``WeightedSummation``."""

    def __init__(self, problem: Problem, rows: Rows, diagonal: np.ndarray):
        self.weights = np.asarray(rows.weights, dtype=np.float64)
        super().__init__(self.weights.sum())
        self._kernel, self._rows, self._n_threads = problem.kernel, rows, problem.budget.n_threads
        size = self.count * max(problem.largest_value, float(np.abs(diagonal).max()))
        size = self.trace(diagonal) if problem.kernel.positive_semidefinite else size
        n = rows.n_samples
        self._rounding = 4.0 * rounding_factor(n) * EPS * size / n

    def trace(self, diagonal: np.ndarray) -> float:
        return float(diagonal @ self.weights)

    def product(self, product: Summation, *, exact: bool) -> Summation:
        self._weighted = (
            WeightedExactSummation(product, self.weights, self._rounding, self._kernel, self._rows, self._n_threads)
            if exact
            else WeightedSummation(product, self.weights, self._rounding)
        )
        return self._weighted

    def search_product(self, search: Summation) -> Summation:
        return WeightedSummation(search, self.weights)

    def block(self, V: np.ndarray) -> np.ndarray:
        return self._weighted.reflect(self._weighted.root[:, None] * V)

    def coefficients(self, vectors: np.ndarray) -> np.ndarray:
        return self._weighted.root[:, None] * self._weighted.reflect(vectors)

    def images(self, images: np.ndarray) -> np.ndarray:
        return self._weighted.reflect(images) / self._weighted.root[:, None]

    def means(self, row_means: np.ndarray) -> np.ndarray:
        return self._weighted.row_means(row_means)


def _start(
    problem: Problem, rows: Rows, n_pivots: int, coordinates: _Coordinates
) -> tuple[np.ndarray | None, FeatureInfo | None]:
    """Leading vectors of a few pivots' feature map, and what that map knows of the rest of the spectrum.

    Nothing where there is no pivot to take: too few rows, or a kernel whose values are all zero.
    """
    n, kernel, threads = rows.n_samples, problem.kernel, problem.budget.n_threads
    wanted = problem.target.n_components or 10
    pivots = pivot_map(
        kernel,
        problem.data.sample,
        tol=1e-12,
        max_features=n_pivots,
        rng=np.random.default_rng(0),
        n_samples=n,
        entry_error=kernel.entry_error(problem.data, np.dtype(np.float64)),
    )
    if pivots.n_features == 0:
        return None, None
    moments = feature_moments(pivots, rows, n_threads=threads)
    eigenvalues, axes = principal_axes(moments, min(default_block_size(n, wanted), pivots.n_features))
    axes = axes[:, eigenvalues > 1e-12 * eigenvalues[0]]
    # Phi W = K_XP (L^-T W): one small solve instead of one a row. It loses cond(L) u, which a start can afford
    small = scipy.linalg.solve_triangular(pivots.factor, axes, lower=True, trans="T", check_finite=False)
    start = ExactSummation(kernel, rows, Rows(pivots.pivots), n_threads=threads).matmat(small)
    start = coordinates.block(start)
    start -= start.mean(axis=0)
    start /= np.linalg.norm(start, axis=0)

    def project(V: np.ndarray) -> np.ndarray:
        return accumulate(pivots, rows, coordinates.coefficients(V - V.mean(axis=0)), threads).T

    second = moments.dense()
    assert second is not None  # a pivot map's moments are
    return start, FeatureInfo(second, project, moments.residual_trace, defect_of(moments) * (moments.count / n))


def widths(pairs: Sequence[tuple[int, float]]) -> list[list[float]]:
    """[pass, width] as JSON has them, of the passes after which a width was known."""
    return [[passes, width] for passes, width in pairs if np.isfinite(width)]


def _first(proof: Certificate, kept: int) -> Certificate:
    return replace(
        proof,
        eigenvalue_bounds=proof.eigenvalue_bounds[:kept],
        angle_bounds=proof.angle_bounds[:kept],
        clusters=proof.clusters[:kept],
    )
