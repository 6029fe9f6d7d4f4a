"""Passes that block Krylov is expected to take, from the spectrum that a probe of a few rows has estimated."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..solve.complement import MU_FRACTION, lanczos_steps
from ..solve.costs import MOST_COLUMNS
from ..solve.filtered import GAP_FRACTION
from ..solve.proofs import COLUMNS_PER_VECTOR, EXPLORING_PASSES
from .probe import SpectrumProbe

LAST = 1.5
"""Passes in float64; those before are in float32, twice as fast."""


class Expected(NamedTuple):
    """Predicted work of a run of block Krylov.

    Attributes
    ----------
    search : float
        Passes until the vectors have converged.
    columns : float
        Columns of the basis at the end.
    proved : bool
        Trace or norm prove that nothing was missed.
    exploring : float
        Passes of an exploration that proves it otherwise.
    """

    search: float
    columns: float
    proved: bool = True
    exploring: float = EXPLORING_PASSES


@lru_cache(maxsize=8)  # candidates differ in what a pass costs
def expected_runs(
    probe: SpectrumProbe, k: int, block: int, passes: int, tol: float, failure: float, *, trace: bool, norm: bool
) -> list[Expected]:
    """Runs with blocks of ``block`` columns, of at most ``passes`` passes, to k eigenvalues within ``tol``.

    A bound below lambda_k on the complement of the vectors comes from its ``trace``, or its ``norm``, which exact
    products compute, after some more passes. Or it comes from an exploration, once the vectors have converged.
    """
    if not (probe.level and probe.spectrum[0][0] > 0.0):
        return [Expected(1.0, (1.0 + LAST) * block)]  # nothing is known
    n = probe.n_samples
    most = min(n - 1, max(MOST_COLUMNS, k + 16 * block))
    shares, *behind = probe.leading(most)
    first = float(shares[0])
    last = max(float(shares[min(k, most) - 1]), tol * first)  # of smaller ones a bound as wide as that will do
    # mu beyond the first columns, 1, 2, ...: sums from the smallest do not cancel
    by_trace, squares = (np.append(np.cumsum(x[:0:-1])[::-1], 0.0) + y for x, y in zip((shares, shares**2), behind))
    by_trace = by_trace if trace else np.full(most, np.inf)
    mu = np.minimum(by_trace, np.sqrt(squares + probe.negative**2)) if norm else by_trace
    low = np.flatnonzero(mu <= MU_FRACTION * last)
    converging = _converging(probe, last, block, passes, tol)
    if shares[min(int(converging * block), most) - 1] > (1.0 - GAP_FRACTION) * last:
        converging = float(passes)  # without a gap nothing proves that the vectors are those of the largest
    # beyond the first columns, and as many further blocks as it takes to find eigenvalues near lambda_k
    after = shares[min(max(block, k), most - 1) :: block]
    steps = [2.0 * i + lanczos_steps(n, block, failure, 1.0 - x / (MU_FRACTION * last)) for i, x in enumerate(after)]
    exploring = max(min(steps), EXPLORING_PASSES)
    runs = [(converging, False)]
    if len(low):
        runs.append((max(converging, COLUMNS_PER_VECTOR * max(low[0] + 1, k) / block), True))
    return [Expected(min(x, float(passes)), min(x * block, most), proved, exploring) for x, proved in runs]


def _converging(probe: SpectrumProbe, last: float, block: int, passes: int, tol: float) -> float:
    """Passes, at most ``passes``, after which the error of lambda_k, ``last``, is tol lambda_1.

    A block of b columns gains a factor exp(2 acosh(1 + 2 (lambda_k - lambda_(b+1)) / (lambda_(b+1) - lambda_n))) a pass
    (Chebyshev), of which a quarter counts. A random one begins with n / b times what it has of each vector. The longer
    the run, the more eigenvalues beyond the block it finds as well: two passes for each further block of them.
    """
    more = np.arange(passes // 2 + 1)  # further blocks
    shares, *_ = probe.leading(min((len(more) + 1) * block, probe.n_samples - 1))
    wanted = max(math.log(4.0 * probe.n_samples / block * last / (float(shares[0]) * tol)), 1.0)
    after = shares[np.minimum((more + 1) * block, len(shares) - 1)]
    fall = np.maximum(last - after, 1e-12 * last) / np.maximum(after - probe.least, 1e-3 * last)
    return float(np.min(1.0 + 2.0 * more + wanted / np.maximum(2.0 * np.arccosh(1.0 + 2.0 * fall), 1e-6)))
