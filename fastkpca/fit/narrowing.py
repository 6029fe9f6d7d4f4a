"""Narrower intervals for a feature map, and better components, from some rows of its residual.

A pass with the map computes its leading vectors V and bounds r on the diagonal of the residual R = K - Phi Phi'.
Randomly drawn rows of R V estimate V'RV, by which the eigenvalues move (``solve.second_order`` has the proofs).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..base.protocol import Moments
from ..base.rounding import UNIT, rounding_factor
from ..maps.passes import apply
from ..maps.uncentred import second_moment
from ..products.exact import ExactSummation
from ..products.implicit import Products, kernel_matrix
from ..rows.view import Rows
from ..solve import second_order
from ..solve.block_krylov import block_krylov
from ..solve.certificate import Certificate, Eigenpairs, FeatureSums, RitzBlock
from ..solve.moments import entry_defect, kernel_trace
from ..solve.second_order import Leading, OfMap
from ..solve.task import SolverBudget, SolverTarget
from .problem import Problem

MORE_VECTORS = 20
"""Vectors of the map in addition to those wanted: theta of the next one is part of the bound on the complement of all
(``benchmarks/speed/loose.py``)."""


@dataclass(frozen=True)
class Vectors:
    """Leading vectors of a map over all rows, and the residual of each row.

    Attributes
    ----------
    moments : Moments
    values : ndarray (k + 1,)
        Its eigenvalues; k of them where it has no more.
    axes : ndarray (D, k)
        (phi(x) - mean)'axes are the entries of the vectors, but for the root of the row's weight.
    vectors : ndarray (n, k)
    gram : ndarray (k, k)
        V'V.
    residual : ndarray (n,)
        r, times the rows' weights.
    """

    moments: Moments
    values: np.ndarray
    axes: np.ndarray
    vectors: np.ndarray
    gram: np.ndarray
    residual: np.ndarray

    def leading(self, c: int, sums: FeatureSums, unit: float = UNIT) -> Leading:
        """Leading pairs for ``solve.second_order``; ``sums`` has the bound on the residual, ``unit`` is the vectors'
        rounding."""
        return second_order.leading_of_map(self.values, c, self.gram, sums, unit, self.moments.map.n_features)


@dataclass(frozen=True)
class Narrowed:
    """Eigenvalues and intervals of second order.

    Attributes
    ----------
    found : Eigenpairs
        Vectors in the coordinates of those of the map.
    axes : ndarray (D, c)
        (phi(x) - mean)'axes are the scores.
    scores : ndarray (n, c)
        Scores of all rows, times the roots of their weights.
    rows : int
        Number of rows drawn, or n.
    block : RitzBlock or None
        Inner products of a pass over all rows, from which another bound on the residual gives other intervals.
    """

    found: Eigenpairs
    axes: np.ndarray
    scores: np.ndarray
    rows: int
    block: RitzBlock | None = None

    @property
    def width(self) -> float:
        """Width of the widest interval."""
        return self.found.certificate.width


def takes_pass(problem: Problem, memory: float = np.inf) -> bool:
    """True if rows of a map's residual may be computed, some or all: the vectors fit into memory, rows are read at
    random."""
    rows, target, c = problem.rows, problem.target, problem.target.n_components
    if not target.is_loose or c is None or rows.distributed or rows.sequential:
        return False
    return vectors_bytes(rows.n_samples, c + MORE_VECTORS) <= min(memory, problem.budget.memory)


def vectors_bytes(n: int, k: int) -> float:
    """Bytes of `Vectors` with k columns, and of the arrays that they are made from."""
    return 8.0 * n * (2.0 * k + 4.0)


def vectors_of(
    moments: Moments,
    values: np.ndarray,
    axes: np.ndarray,
    residual: np.ndarray,
    c: int,
    problem: Problem,
) -> Vectors:
    """In a pass over the rows.

    Parameters
    ----------
    moments : Moments
        Of all rows.
    values, axes : ndarray (k + 1,), (D, k + 1)
        Its eigenvalues and axes; k of them where it has no more.
    residual : ndarray (n,)
        Times the rows' weights.
    c : int
        Vectors that are wanted; of further ones those that cost little.
    problem : Problem
    """
    rows, budget, D = problem.rows, problem.budget, moments.map.n_features
    k = min(len(values) - (len(values) < D), int(np.count_nonzero(values > np.sqrt(UNIT) * values[0])))
    axes = axes[:, :k] / np.sqrt(values[:k])
    if c <= (quick := moments.map.quick_columns(axes)) < k:
        axes = axes[:, :quick]
    axes = np.ascontiguousarray(axes)
    constant = second_moment(moments, center=problem.target.center).mean @ axes
    V = apply(moments.map, rows, axes, budget.n_threads, constant=constant, progress=budget.report, stage="scores")
    root = _roots(rows)
    if root is not None:
        V *= root[:, None]
    return Vectors(moments, values, axes, V, V.T @ V, residual)


def narrowed(known: Vectors, c: int, count: int, failure: float, sums: FeatureSums, problem: Problem) -> Narrowed:
    """The c first eigenvalues, from about ``count`` rows, which are drawn now.

    ``failure``: of this attempt, one of several that fail with ``failure_of("rows")`` together.
    """
    V, leading = known.vectors, known.leading(c, sums)
    plan = second_order.sampling(leading, c, V, known.residual, count, failure)
    index = plan.draw(problem.rng)
    rows, errors = _rows_of_rest(known, leading, index, problem)
    found = second_order.sampled_certificate(leading, c, plan, index, V[index], rows, errors)
    turn = found.vectors[:, :c] * np.sqrt(np.maximum(found.values[:c], 0.0))
    failing = leading.norm.failure_probability + problem.target.failure_of("rows")
    found = replace(found, certificate=replace(found.certificate, failure_probability=failing))
    return Narrowed(found, known.axes @ turn, V @ turn, len(index))


def refined_by_pass(known: Vectors, c: int, sums: FeatureSums, problem: Problem, pass_seconds: float = 0.0) -> Narrowed:
    """The c first eigenvalues, from a pass over all kernel values: by the eigensolver, which starts with the map's
    vectors and has a bound on their complement.

    If only guaranteed bounds are wanted, a factorisation may follow that takes at most a few times ``pass_seconds``.
    """
    rows, present = problem.rows.present()
    target, budget, V = problem.target, problem.budget, known.vectors
    product = ExactSummation(problem.kernel, rows, n_threads=budget.n_threads, progress=budget.report)
    sizes = problem.largest_value, problem.entry_error
    matrix, entries = kernel_matrix(
        problem.kernel, rows, Products(product), *sizes, budget.n_threads, center=target.center
    )
    V, root = V if present is None else V[present], _roots(rows)
    start = entries.coordinates.block(V if root is None else V / root[:, None])
    reached = block_krylov(
        matrix if target.failure_probability == 0.0 else replace(matrix, entries=None),
        SolverTarget(c, target.tol),
        SolverBudget(passes=1, pass_seconds=pass_seconds),
        start=start,
        block_size=start.shape[1],
        # of vectors whose weights are taken off, and put on again in the solver's coordinates
        proofs=[OfMap(known.leading(c, sums, 8.0 * UNIT))],
    )
    turn = np.linalg.solve(known.gram, start.T @ reached.vectors)
    found = Eigenpairs(_within(reached.values, reached.certificate), turn, reached.certificate)
    turn = turn * np.sqrt(np.maximum(reached.values, 0.0))
    return Narrowed(found, known.axes @ turn, known.vectors @ turn, len(known.vectors), reached.block)


def bounded_again(before: Narrowed, known: Vectors, sums: FeatureSums) -> Narrowed:
    """Intervals of an earlier pass with another bound on the residual of the map."""
    assert before.block is not None
    c = len(before.found.values)
    certificate = second_order.certificate_of_pass(known.leading(c, sums, 8.0 * UNIT), before.block, c)
    found = replace(before.found, values=_within(before.block.theta[:c], certificate), certificate=certificate)
    return replace(before, found=found)


def _within(theta: np.ndarray, certificate: Certificate) -> np.ndarray:
    return np.clip(theta, *certificate.eigenvalue_bounds.T)


def _roots(rows: Rows) -> np.ndarray | None:
    """Square roots of the weights; None without weights."""
    return None if rows.weights is None else np.sqrt(np.asarray(rows.weights, dtype=np.float64))


def _rows_of_rest(
    known: Vectors, leading: Leading, index: np.ndarray, problem: Problem
) -> tuple[np.ndarray, np.ndarray]:
    """These rows of R V, (s, k), and bounds on the norms of their errors.

    Phi'V is Q Theta^(1/2) for exact V, within what `Leading.error` counts: the error of the second moment's
    eigenvectors over the root of the last eigenvalue, and the rounding of V times the root of tr K.
    """
    rows, kernel, threads, moments = problem.rows, problem.kernel, problem.budget.n_threads, known.moments
    n, root = rows.n_samples, _roots(rows)
    X = rows.take(index)
    V = known.vectors if root is None else known.vectors * root[:, None]
    products = ExactSummation(kernel, Rows(X), rows.weighted(None), n_threads=threads).matmat(V)
    features = moments.map.features(X)
    products -= features @ (known.axes * leading.theta)
    diagonal = np.asarray(kernel.diagonal(X), dtype=np.float64)
    trace = kernel_trace(moments)
    weight = n if problem.weight_sum is None else problem.weight_sum
    roundings = (rounding_factor(n) + rounding_factor(moments.map.n_features) + 16.0) * UNIT
    errors = np.sqrt(diagonal * trace) * (roundings + moments.map.rounding) * np.sqrt(len(leading.theta))
    errors += np.sqrt(diagonal) * leading.product_error
    errors += (problem.entry_error + entry_defect(moments)) * np.sqrt(weight)
    if root is None:
        return products, errors
    return products * root[index, None], errors * root[index]
