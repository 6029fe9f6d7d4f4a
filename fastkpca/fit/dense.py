"""The dense route: the centred Gram matrix, whole, and LAPACK; the reference for every other route.

``estimate`` predicts its cost, and ``run`` computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import numpy as np

from ..base import parallel
from ..base.lapack import QUICK_ORDER, largest_eigenpairs, takes_all
from ..base.rounding import EPS, UNIT, rounding_factor
from ..model.plan import Candidate, Step, total_seconds
from ..products.blocks import TILE_ROWS
from ..products.matrix import check_values, gram_matrix
from ..products.rates import RATE, eigen_seconds, reading_seconds, value_seconds
from ..products.vectors import row_sums
from ..solve.certificate import Certificate, dense_certificate
from ..solve.small import may_be_enough, pairs_of_small, seconds_of_small
from . import footprint
from .problem import Problem
from .solution import PositiveWeightRows, RunLimits, Solution, negative_end, number_kept, signs_of


def estimate(problem: Problem) -> Candidate:
    """The candidate, with its predicted steps and memory."""
    wanted, n = problem.target.n_components, problem.data.n_samples
    few = wanted if wanted is not None and not takes_all(n, wanted) else None
    d = problem.data.n_features
    matrix = n * n * (0.5 * value_seconds(problem.kernel, d) + 1.0 / RATE.rows) + reading_seconds(n, d) + RATE.fit
    seconds, solver = eigen_seconds(n, few), "LAPACK"
    if takes_products(problem) and (small := seconds_of_small(n, wanted or n)) < seconds:
        seconds, solver = small, "products with it"
    steps = Step("kernel matrix", matrix), Step(f"{wanted or 'all'} eigenpairs by {solver}", seconds)
    memory = _memory(problem)
    obstacle = footprint.too_much(memory, problem.budget.memory)
    return Candidate("dense", "LAPACK", total_seconds(steps), memory, obstacle=obstacle, steps=steps)


def _memory(problem: Problem) -> float:
    """Bytes of the matrix and LAPACK's vectors, of all or of those asked for; then of scores and coefficients with
    these."""
    data, rows, wanted = problem.data, problem.rows, problem.target.n_components
    n, d = float(data.n_samples), data.n_features
    few = wanted is not None and not takes_all(data.n_samples, wanted + 1)
    kept = n if wanted is None else min(float(wanted), n)
    vectors = kept + 1 if few else n
    blocks = footprint.THREADS * 8.0 * min(n, TILE_ROWS) * 2.5 * d
    # divide and conquer takes two matrices more, of up to QUICK_ORDER rows
    solving = 8.0 * n * (n + vectors + (150.0 if few else 40.0 + min(n, QUICK_ORDER)))
    scoring = 8.0 * n * (vectors + 3.0 * kept)
    # malloc keeps what the tiles took
    route = max(8.0 * n * n, solving, scoring) + footprint.copies_of_rows(data) + blocks
    return footprint.with_rows(data, rows, route + footprint.tiles_and_buffers(n, n))


def run(problem: Problem, candidate: Candidate, limits: RunLimits) -> Solution:
    """All eigenvalues that are asked for, from the whole matrix; it is never abandoned, so ``limits`` is unused."""
    solution = solve_dense(problem, PositiveWeightRows.of(problem.rows))
    problem.record(*candidate.steps)
    return solution


@dataclass(frozen=True)
class _Pairs:
    """Eigenvalues that are kept and their vectors, and what else follows from the matrix.

    ``means`` are those of K's columns, ``total`` the trace of the centred matrix, ``size`` the most that its rounding
    is in proportion to. ``images`` are the centred matrix times the vectors; None: eigenvalues times these, to
    rounding.
    """

    eigenvalues: np.ndarray
    vectors: np.ndarray
    certificate: Certificate
    means: np.ndarray
    total: float
    size: float
    info: dict[str, Any]
    images: np.ndarray | None = None
    fewer: str = ""


def solve_dense(problem: Problem, present: PositiveWeightRows) -> Solution:
    """All eigenvalues that are asked for, from the whole matrix.

    With weights D = diag(w) the matrix is D^(1/2) (I - 1 w'/W) K (I - w 1'/W) D^(1/2): that of the rows repeated w_i
    times has the same eigenvalues, and its eigenvectors repeat those of this one, divided by w_i^(1/2).
    """
    rows = present.rows
    root = None if rows.weights is None else np.sqrt(np.asarray(rows.weights, dtype=np.float64))
    options: dict[str, Any] = {"n_threads": problem.budget.n_threads, "progress": problem.budget.report}
    K = gram_matrix(problem.kernel, rows, checked=root is not None, **options)
    count = float(len(K) if root is None else root @ root)
    means, norm = _means_and_norm(K, root)
    if not isfinite(norm):
        check_values(K, problem.kernel)
    pairs = _by_products(problem, K, means, norm) or _by_lapack(problem, K, root, count, means, norm)
    del K  # overwritten; scores and coefficients need the memory
    eigenvalues, vectors = pairs.eigenvalues, pairs.vectors
    if root is not None:
        vectors = vectors / root[:, None]
    # unnamed: of few rows the sample is all, and this copy of the vectors is freed at once
    signs = signs_of(vectors.take(present.places(problem.data.sample_index), axis=0))
    score = vectors * (signs * np.sqrt(eigenvalues))
    coeff = score / eigenvalues
    if pairs.images is not None:  # so score = Kc @ coeff to rounding, as for new rows
        score = pairs.images * (signs / np.sqrt(eigenvalues))
    if root is not None:
        coeff *= (root**2)[:, None]
    if problem.target.center:  # projections need 1'coeff = 0, which holds only to u lambda_1 / lambda_i after LAPACK
        sums = np.ones(len(coeff)) @ coeff  # of few columns, faster than sum
        coeff -= sums / count if root is None else np.outer(root**2 / count, sums)
    # the trace is that of K less means of n values, two for each row and the mean of all: each is off by its rounding,
    # and both parts by the errors of the values
    slack = (3.0 * rounding_factor(len(pairs.means)) + 8.0) * UNIT * pairs.size + 2.0 * problem.value_error * count
    return Solution(
        eigenvalues,
        pairs.certificate,
        (pairs.total - slack, pairs.total + slack),
        present.projector(coeff, pairs.means, center=problem.target.center),
        {"method": "dense", "passes": 1} | pairs.info,
        # the root of a small weight would divide the rounding of a vector: such rows are projected as new ones are
        score if root is None else None,
        pairs.fewer,
        help="that is rounding in float64; a larger tol helps, or a kernel matrix that is less nearly constant (a "
        "smaller sigma)",
    )


def takes_products(problem: Problem) -> bool:
    """True if products with the matrix may do, before LAPACK is asked; not where it was asked for by name."""
    target = problem.target
    if target.forced or target.n_components is None or problem.rows.weights is not None:
        return False
    return problem.kernel.positive_semidefinite and may_be_enough(problem.data.n_samples, target.n_components)


def _by_products(problem: Problem, K: np.ndarray, means: np.ndarray, norm: float) -> _Pairs | None:
    """By products with the matrix, where these reach ``tol``; None where that is left to LAPACK.

    ``means`` and ``norm``, |K|_F, are K's."""
    target, n = problem.target, len(K)
    if not takes_products(problem):
        return None
    assert target.n_components is not None
    centre = means if target.center else None
    found = pairs_of_small(K, centre, target.n_components, target.tol, problem.entry_error, norm)
    if found is None:
        return None
    diagonal = K.diagonal()  # has the largest values of a semidefinite kernel
    total, size = float(diagonal.sum()), n * float(diagonal.max())
    means = means if target.center else np.zeros(n)
    total -= float(means.sum())
    return _Pairs(found.values, found.vectors, found.certificate, means, total, size, found.info, found.images)


def _by_lapack(
    problem: Problem, K: np.ndarray, root: np.ndarray | None, count: float, means: np.ndarray, norm: float
) -> _Pairs:
    """By LAPACK, which overwrites K; ``root``: of the weights, if any, whose sum is ``count``; the other two as from
    ``_means_and_norm``."""
    target, n = problem.target, len(K)
    size = count * float(max(K.max(), -K.min()))
    if target.center:
        _centre(K, means, float(means.sum() if root is None else root**2 @ means) / count)
    else:
        means = np.zeros(n)
    if root is not None:
        K *= root
        K *= root[:, None]
    total, error = float(K.trace()), problem.value_error * count
    # one more than asked for: it gives the gap behind the last cluster
    asked = n if target.n_components is None else target.n_components + 1
    values, vectors = largest_eigenpairs(K, asked)
    n_kept, fewer = number_kept(values, 2 * EPS * size, total, target, problem.kernel, problem.data.n_samples, error)
    certificate = dense_certificate(values, n_kept, n=n, norm=norm, entry_error=error / n)
    info = negative_end(float(values[-1]) if asked >= n else None, problem.kernel)
    return _Pairs(values[:n_kept].copy(), vectors[:, :n_kept], certificate, means, total, size, info, fewer=fewer)


def _centre(K: np.ndarray, means: np.ndarray, grand: float) -> None:
    """Centre K, in place, without a second N x N matrix; ``grand`` is the mean of its ``means``."""
    step = parallel.tile_rows(len(K), least=1)
    for start in range(0, len(K), step):
        part = K[start : start + step]
        part -= means
        part -= means[start : start + step, None] - grand


def _means_and_norm(K: np.ndarray, root: np.ndarray | None) -> tuple[np.ndarray, float]:
    """The means of K's columns, and |D^(1/2) K D^(1/2)|_F, for D^(1/2) = diag(root), roots of the weights, if any."""
    if root is None:
        sums, squares = row_sums(K)
        return sums / len(K), sqrt(squares)
    step = parallel.tile_rows(len(K), least=1)
    parts = (np.linalg.norm(K[i : i + step] * root[i : i + step, None] * root) for i in range(0, len(K), step))
    return root**2 @ K / float(root @ root), sqrt(sum(float(x) ** 2 for x in parts))
