"""Where block Krylov starts: leading vectors of a map of a few pivots, a pass or two ahead of a random block."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ..base.lapack import largest_eigenpairs
from ..maps.choosing import pivot_map
from ..maps.passes import feature_moments
from ..maps.uncentred import about
from ..products.exact import ExactSummation
from ..products.rates import RATE, pivots_cost, value_seconds
from ..products.weighted import Coordinates
from ..rows.view import Rows
from . import footprint
from .problem import Problem

__all__ = ["first_block"]

WORTH = 1.0
"""Of a pass in float64, what a start may cost: it saves one in float32, and columns of the last one
(``benchmarks/speed/loose.py usps --tol 1e-6``: 1.11 to 1.00 s)."""


def first_block(
    problem: Problem, rows: Rows, coordinates: Coordinates, block: int, pass_seconds: float, memory: float
) -> np.ndarray | None:
    """So many columns, or fewer, in the solver's coordinates; None where a random block takes less time.

    Of a semidefinite kernel. ``pass_seconds``: of a pass over the pairs of rows; ``memory``: bytes that may be used.
    """
    kernel, data, n, threads = problem.kernel, problem.data, rows.n_samples, problem.budget.n_threads
    count = min(block + int(sqrt(n)), len(data.sample) // 2)
    value = value_seconds(kernel, data.n_features)
    cost = pivots_cost(count, RATE.features * value, 1.0, candidates=len(data.sample))
    seconds = (cost.setup_flops + n * cost.row_flops) / RATE.features
    seconds += n * count * (count / RATE.squares + value + 2.0 * block / RATE.multiplications)
    if not kernel.positive_semidefinite or rows.distributed or seconds > WORTH * pass_seconds:
        return None
    if footprint.map_bytes(data, problem.rows, count, block, pivots=True) > memory:
        return None
    pivots = pivot_map(
        kernel,
        data.sample,
        tol=1e-12,
        max_features=count,
        rng=np.random.default_rng(0),
        n_samples=n,
        entry_error=kernel.entry_error(data, np.dtype(np.float64)),
        n_threads=threads,
    )
    if pivots.n_features == 0:
        return None
    moments = about(feature_moments(pivots, rows, n_threads=threads), center=coordinates.center)
    C = moments.dense()
    assert C is not None  # of pivots
    eigenvalues, axes = largest_eigenpairs(C, min(block, pivots.n_features))
    axes = axes[:, eigenvalues > 1e-12 * eigenvalues[0]]
    # Phi W = K_XP (L^-T W): one small solve instead of one a row. It loses cond(L) u, which a start can afford
    product = ExactSummation(kernel, rows, Rows(pivots.pivots), n_threads=threads)
    start = coordinates.block(product.matmat(pivots.landmark_weights(axes)))
    start -= start.mean(axis=0)
    norms = np.linalg.norm(start, axis=0)
    return np.asarray(start[:, norms > 0.0] / norms[norms > 0.0])
