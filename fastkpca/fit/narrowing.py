"""Narrower intervals for a feature map, and better components, from some rows of what it leaves out.

A pass with the map tells its leading vectors V and the diagonal r of R = K - Phi Phi'. Rows of R V, drawn at random,
estimate V'RV, by which the eigenvalues move (``solve.second_order``, where the bounds are proved).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..base.protocol import Moments
from ..base.rounding import UNIT, rounding_factor
from ..maps.passes import apply
from ..maps.uncentred import about
from ..products.exact import ExactSummation
from ..rows.view import Rows
from ..solve import second_order
from ..solve.certificate import FeatureSums, RitzBlock, product_error
from ..solve.moments import entry_defect, kernel_trace
from ..solve.second_order import Leading, SecondOrder
from .problem import Problem

__all__ = ["MORE_VECTORS", "Narrowed", "Vectors", "narrowed", "passed", "takes_rows", "vectors_bytes", "vectors_of"]

MORE_VECTORS = 20
"""Of a map, beyond those that are wanted: what lies beyond them bounds the others (``benchmarks/speed/loose.py``)."""


@dataclass(frozen=True)
class Vectors:
    """The leading vectors of a map over all rows, and what it leaves out of each.

    Attributes
    ----------
    axes : ndarray (D, k)
        (phi(x) - mean)'axes are the entries of the vectors, but for the root of the row's weight.
    vectors : ndarray (n, k)
    gram : ndarray (k, k)
        V'V.
    residual : ndarray (n,)
        r, times the rows' weights.
    """

    axes: np.ndarray
    vectors: np.ndarray
    gram: np.ndarray
    residual: np.ndarray

    def first(self, k: int) -> Vectors:
        """The first k of them."""
        return replace(self, axes=self.axes[:, :k], vectors=self.vectors[:, :k], gram=self.gram[:k, :k])


@dataclass(frozen=True)
class Narrowed:
    """Eigenvalues and intervals of second order.

    Attributes
    ----------
    found : SecondOrder
    axes : ndarray (D, c)
        (phi(x) - mean)'axes are the scores.
    scores : ndarray (n, c)
        Of all rows, times the roots of their weights.
    rows : int
        Drawn.
    """

    found: SecondOrder
    axes: np.ndarray
    scores: np.ndarray
    rows: int

    @property
    def width(self) -> float:
        """Of the widest interval."""
        return self.found.certificate.width

    def failing(self, probability: float) -> Narrowed:
        """As one of several attempts, which have this probability of failure together."""
        before = self.found.certificate
        failure = probability + (0.0 if before.outside is None else before.outside.failure_probability)
        return replace(self, found=replace(self.found, certificate=replace(before, failure_probability=failure)))


def takes_rows(problem: Problem, memory: float = np.inf) -> bool:
    """Whether rows of what a map leaves out may be looked at: they are read at random, and vectors are held."""
    rows, c = problem.rows, problem.target.n_components
    if not problem.target.may_use_sampled_bound or c is None or rows.distributed or rows.sequential:
        return False
    return vectors_bytes(rows.n_samples, c + MORE_VECTORS) <= min(memory, problem.budget.memory)


def vectors_bytes(n: int, k: int) -> float:
    """Of `Vectors`, and of what they are made from."""
    return 8.0 * n * (2.0 * k + 4.0)


def vectors_of(
    moments: Moments,
    values: np.ndarray,
    axes: np.ndarray,
    residual: np.ndarray,
    c: int,
    problem: Problem,
    kept: np.ndarray | None = None,
) -> Vectors:
    """In a pass over the rows, or from the features (D, n) that were ``kept``.

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
    kept : ndarray (D, n), optional
    """
    rows, budget, D = problem.rows, problem.budget, moments.map.n_features
    k = min(len(values) - (len(values) < D), int(np.count_nonzero(values > np.sqrt(UNIT) * values[0])))
    axes = axes[:, :k] / np.sqrt(values[:k])
    if kept is None and c <= (quick := moments.map.quick_columns(axes)) < k:
        axes = axes[:, :quick]
    axes = np.ascontiguousarray(axes)
    constant = about(moments, center=problem.target.center).mean @ axes
    if kept is None:
        V = apply(moments.map, rows, axes, budget.n_threads, constant=constant, progress=budget.report, stage="scores")
    else:
        V = kept.T @ axes - constant
    root = _roots(rows)
    if root is not None:
        V *= root[:, None]
    return Vectors(axes, V, V.T @ V, residual)


def narrowed(
    known: Vectors,
    values: np.ndarray,
    c: int,
    count: int,
    failure: float,
    moments: Moments,
    sums: FeatureSums,
    problem: Problem,
) -> Narrowed:
    """The c first eigenvalues, from about ``count`` rows, which are drawn now.

    ``values`` are those of the moments that the vectors come from; ``sums`` has the bound on what the map leaves out.
    """
    V, D = known.vectors, moments.map.n_features
    leading = second_order.leading_of_map(values, c, known.gram, sums, n_features=D)
    plan = second_order.sampling(leading, c, V, known.residual, count, failure)
    index = plan.draw(problem.rng)
    rows, errors = _rows_of_rest(known, leading, index, moments, problem)
    found = second_order.sampled_certificate(leading, c, plan, index, V[index], rows, errors)
    turn = found.rotation[:, :c] * np.sqrt(np.maximum(found.eigenvalues[:c], 0.0))
    return Narrowed(found, known.axes @ turn, V @ turn, len(index))


def passed(
    known: Vectors, values: np.ndarray, c: int, moments: Moments, sums: FeatureSums, problem: Problem
) -> Narrowed:
    """The c first eigenvalues, from a pass over all kernel values: the Ritz pairs of the map's vectors."""
    rows, n, root = problem.rows, problem.rows.n_samples, _roots(problem.rows)
    leading = second_order.leading_of_map(values, c, known.gram, sums, n_features=moments.map.n_features)
    factor = np.linalg.inv(np.linalg.cholesky(known.gram)).T
    axes, V = known.axes @ factor, known.vectors @ factor
    product = ExactSummation(
        problem.kernel, rows.weighted(None), n_threads=problem.budget.n_threads, progress=problem.budget.report
    )
    image = product.matmat(V if root is None else V * root[:, None])
    ones = np.ones(n) if root is None else root
    if root is not None:
        image *= root[:, None]
    if problem.target.center:
        ones = ones / np.linalg.norm(ones)
        image -= np.multiply.outer(ones, ones @ image)
    compression = V.T @ image
    theta, turn = (x[..., ::-1] for x in np.linalg.eigh((compression + compression.T) / 2.0))
    axes, V, image = axes @ turn, V @ turn, image @ turn
    compression = V.T @ image
    image -= V * compression.diagonal()
    error = product_error(n, V.shape[1], sums.kernel_trace, problem.entry_error * problem.count / n, passes=1)
    ritz = RitzBlock(compression, V.T @ V, image.T @ image, n, 4.0 * error)
    certificate = second_order.pass_certificate(leading, ritz, c)
    scale = np.sqrt(np.maximum(theta[:c], 0.0))
    found = SecondOrder(np.clip(theta[:c], *certificate.eigenvalue_bounds.T), turn[:, :c], certificate, gained=True)
    return Narrowed(found, axes[:, :c] * scale, V[:, :c] * scale, n)


def _roots(rows: Rows) -> np.ndarray | None:
    """Of the weights."""
    return None if rows.weights is None else np.sqrt(np.asarray(rows.weights, dtype=np.float64))


def _rows_of_rest(
    known: Vectors, leading: Leading, index: np.ndarray, moments: Moments, problem: Problem
) -> tuple[np.ndarray, np.ndarray]:
    """These rows of R V, (s, k), and bounds on the norms of their errors.

    Phi'V is Q Theta^(1/2) for exact V, within what `Leading.error` counts: the error of the second moment's
    eigenvectors over the root of the last eigenvalue, and the rounding of V times the root of tr K.
    """
    rows, kernel, threads = problem.rows, problem.kernel, problem.budget.n_threads
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
