"""The memory of each route, in bytes at its peak: predictions, on which ``memory_limit`` rests.

They count everything but the given rows, the interpreter and its libraries: the summary of the rows and its sample,
copies of rows, the results of a route, the scores and the model, tiles, and the buffers of BLAS.
``tests/attacks/memory_limit.py`` measures them. They are for two threads. Further threads run where the limit has
memory for them (``threads_within``), so that neither the plan nor a result depends on their number.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from ..base.lapack import takes_all
from ..base.protocol import Summary
from ..maps.choosing import SAMPLE_ROWS
from ..maps.passes import SMALL_MOMENT, task_rows_for
from ..model.plan import readable_size
from ..products.blocks import TILE_ROWS
from ..rows.summary import SAMPLE_ROWS as ROWS_OF_SAMPLE
from ..rows.view import Rows

THREADS = 2
THREAD_BYTES = 7e6
"""Bytes of one thread: its tiles, and the used part of BLAS's buffer."""


def threads_within(n_threads: int, room: float, data: Summary, D: int) -> int:
    """Number of threads, at most ``n_threads``, that ``room`` bytes in addition to the route's own allow.

    Each takes its tiles, the bands of a task of exact products, and two second moments of order D: one that it makes,
    and one that waits to be added. D = 0: none are formed.
    """
    each = THREAD_BYTES + 28.0 * TILE_ROWS * data.n_features + 16.0 * (1.2 * D) ** 2
    return max(1, min(n_threads, THREADS + max(0, int(room / each))))


def tiles_and_buffers(n: float, width: float) -> float:
    """Tiles and buffers of the threads; less for problems that fill none."""
    return THREADS * THREAD_BYTES * _filled(n, width) + 1e6


def _filled(n: float, width: float) -> float:
    """Fraction of a tile that n rows of ``width`` numbers fill."""
    return min(1.0, n * width / (1 << 18))


def looking_bytes(rows: Rows) -> float:
    """Peak bytes of the summary of the rows, before anything is planned."""
    n, d = rows.n_samples, rows.n_features
    tiles = THREADS * 3.0 * 8.0 * d * min(n, rows.step)
    sample = (8.0 + rows.dtype.itemsize) * float(d) * min(n, ROWS_OF_SAMPLE)
    return max(tiles, sample) + rows.page_bytes + 4e6 * _filled(n, 64.0)


def copies_of_rows(data: Summary, itemsize: float = 8.0) -> float:
    return float(data.n_samples) * data.n_features * itemsize


def _copy_bytes(data: Summary, rows: Rows) -> float:
    """Copies of rows in a route that needs them in any order: of a sequential source, of rows of positive weight."""
    copies = float(rows.sequential) + float(rows.weights is not None and not np.all(rows.weights))
    return copies * copies_of_rows(data, rows.dtype.itemsize)


def _accumulators(tasks: int, threads: int = THREADS) -> int:
    """Most partial results at once in ``parallel.tree_reduce``: those being computed, and those waiting in the tree."""
    return min(tasks, 2 * threads + 1 + max(0, tasks.bit_length() - 1))


def with_rows(data: Summary, rows: Rows, route: float) -> float:
    """Bytes of a route that takes rows in any order, with the sample and the copies of rows that it needs."""
    return max(looking_bytes(rows), 8.0 * data.sample.size + _copy_bytes(data, rows) + route)


def too_much(memory: float, limit: float) -> str:
    """Obstacle of a candidate that does not fit; empty where it does."""
    return f"needs {readable_size(memory)}, the limit is {readable_size(limit)}" if memory > limit else ""


def _moment_bytes(n: int, D: int, d: int, k: float, distributed: bool = False) -> float:
    """Bytes of the accumulators of D x D, then of the eigensolver and the moments.

    Maps of a few more features may need less, as there are fewer tasks. The estimate is made monotonic in D.
    """
    tasks = ((m, -(-n // task_rows_for(m, n, d, distributed=distributed))) for m in {min(D, SMALL_MOMENT), D})
    adding = max(m * m * _accumulators(count) for m, count in tasks)
    solving = 2.3 + (1.0 if takes_all(D, int(k) + 1) else 0.0)
    return 8.0 * max(adding, D * D * solving) + 8.0 * D * 3.0 * min(k + 1, D)


def _choice_bytes(D: float, rows: float, d: int) -> float:
    """Bytes to draw pivots among ``rows`` rows: their features, which grow by doubling, a few blocks, and a copy."""
    return 8.0 * rows * (2.0 * D + 3.0 * 128.0 + d)


def map_bytes(
    data: Summary,
    rows: Rows,
    D: int,
    k: float,
    *,
    map_memory: float = 0.0,
    dense: bool = True,
    pivots: bool = False,
    scores: float = 0.0,
) -> float:
    """One pass with D features, of which k components are kept, or all where k is more.

    ``map_memory`` bytes are those of the map itself, ``scores`` those of one component's scores where these are held.
    """
    n, d = data.n_samples, data.n_features
    route = (_moment_bytes(n, D, d, min(k, D), rows.distributed) if dense else 0.0) + map_memory
    small = tiles_and_buffers(n, max(D, d)) if dense else tiles_and_buffers(n, d + 16.0)
    if pivots:
        m = min(n, max(4 * D, SAMPLE_ROWS))
        taken = 8.0 * (m * d if m > len(data.sample) else 0)
        # factor and moments are held together; a second round holds the moments of the first, and both factors
        route = max(_choice_bytes(D, m, d) + taken, 8.0 * D * (2.0 * D + d), route + 8.0 * D * (D + 2.0 * d))
        drawn = min(n, SAMPLE_ROWS)
        route = max(route, _choice_bytes(1.5 * D, drawn, d) + 8.0 * drawn * d + 8.0 * 1.5 * D * D)
    # axes, and what they are made from: moments that are an operator have a basis, its images and residuals
    result = (scores + (24.0 if dense else 72.0) * D) * min(k, D)
    return max(looking_bytes(rows), 8.0 * data.sample.size + route + rows.page_bytes + result + small)


def largest_map(
    data: Summary, rows: Rows, k: float, limit: float, max_features: int, *, pivots: bool, scores: float
) -> int:
    """The most features for which a dense moment fits."""

    def needed(D: int) -> float:
        return map_bytes(data, rows, D, k, pivots=pivots, scores=scores)

    if needed(max_features) <= limit:  # mostly
        return max_features
    return bisect_right(range(1, max_features + 1), limit, key=needed)
