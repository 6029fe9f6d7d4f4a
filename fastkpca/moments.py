"""One pass over the rows: the moments of their features, and components from them.

N D^2 flops (BLAS 3), D^2 memory, and nothing that grows with N.
"""

from __future__ import annotations

import numpy as np

from . import execute
from .protocol import FeatureMap, Moments
from .rows import Rows

__all__ = ["feature_moments"]


def feature_moments(
    feature_map: FeatureMap,
    rows: Rows,
    *,
    weights: np.ndarray | None = None,
    n_threads: int = 1,
    progress: execute.Progress | None = None,
) -> Moments:
    """Moments of all rows, reduced along a fixed tree (equal bits at any number of threads).

    Parameters
    ----------
    feature_map : FeatureMap
    rows : Rows
    weights : ndarray (N,), optional
        Non-negative.

    Returns
    -------
    Moments
    """
    n, D = rows.n_samples, feature_map.n_features
    step = execute.tile_rows(D)
    n_tiles = -(-n // step)
    # every task holds an accumulator of D^2 numbers, and log2(tasks) more wait in the tree: few tasks where D is large
    most_tasks = 64 if D <= 1024 else 4
    tiles_a_task = -(-n_tiles // most_tasks)
    span = step * tiles_a_task

    def task(i: int) -> Moments:
        moments = feature_map.new_moments()
        for start in range(i * span, min(n, (i + 1) * span), step):
            stop = min(n, start + step)
            moments.update(rows.tile(start, stop), None if weights is None else weights[start:stop])
        return moments

    return execute.tree_reduce(
        task, -(-n // span), lambda a, b: a.merge(b), n_threads=n_threads, progress=progress, stage="moments"
    )
