"""A pass over all rows with a feature map: Phi' U, Phi C, and the moments of the features.

Tiles depend on shapes alone and sums follow a fixed tree: equal bits at any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import parallel
from ..base.protocol import FeatureMap, Moments
from ..rows.sinks import Sink
from ..rows.view import Pass, Rows

__all__ = [
    "MANY_TASKS",
    "SMALL_MAP",
    "accumulate",
    "apply",
    "check_moments",
    "feature_moments",
    "task_rows",
    "task_rows_for",
    "tile_rows",
]

SMALL_MAP, MANY_TASKS = 256, 1024
TASK_ROWS, TASK_BYTES = 1 << 14, 1 << 22


def tile_rows(feature_map: FeatureMap) -> int:
    """Rows of a tile for this map."""
    return feature_map.tile_rows or parallel.tile_rows(feature_map.n_features)


def task_rows(feature_map: FeatureMap, n: int, n_columns: int, *, distributed: bool = False) -> int:
    """Rows of a task that accumulates moments: whole tiles, by shapes alone.

    Every task holds an accumulator, of D^2 numbers where it is dense, and log2(tasks) more wait in the tree: few tasks
    where D is large, but for rows that are ``distributed`` over many machines. Else few rows, so that tasks that run
    at once read rows that lie near each other.
    """
    return task_rows_for(feature_map.n_features, n, n_columns, step=tile_rows(feature_map), distributed=distributed)


def task_rows_for(D: int, n: int, n_columns: int, *, step: int | None = None, distributed: bool = False) -> int:
    """The same by the number of features, for the plan."""
    step = step or parallel.tile_rows(D)
    if D > SMALL_MAP and not distributed:
        most_tasks = 64 if D <= MANY_TASKS else 4
        return step * -(-n // (step * most_tasks))
    few = min(TASK_ROWS, TASK_BYTES // (8 * n_columns))
    return max(step, 1 << max(0, few.bit_length() - 1))


def accumulate(
    feature_map: FeatureMap,
    rows: Rows,
    U: np.ndarray,
    n_threads: int = 1,
    *,
    progress: parallel.Progress | None = None,
    stage: str = "",
) -> np.ndarray:
    """Phi' U over all rows: (D, k), float64."""
    n, step = rows.n_samples, tile_rows(feature_map)
    tiles_a_task = max(1, -(-n // (64 * step)))
    span = step * tiles_a_task

    def task(i: int) -> np.ndarray:
        total = np.zeros((feature_map.n_features, U.shape[1]))
        for start in range(i * span, min(n, (i + 1) * span), step):
            parallel.checkpoint()
            stop = min(n, start + step)
            total += feature_map.accumulate(rows.tile(start, stop), U[start:stop])
        return total

    return parallel.tree_reduce(task, -(-n // span), np.add, n_threads=n_threads, progress=progress, stage=stage)


def apply(
    feature_map: FeatureMap,
    rows: Rows,
    C: np.ndarray,
    n_threads: int = 1,
    *,
    constant: np.ndarray | None = None,
    out: Any = None,
    progress: parallel.Progress | None = None,
    stage: str = "",
) -> Any:
    """Phi C - constant over all rows: (N, k), into ``out`` (array or dataset of any float dtype) where given."""
    n, step = rows.n_samples, tile_rows(feature_map)
    result = np.empty((n, C.shape[1])) if out is None else out
    # chunks of a dataset are not to be written by two threads at once
    sink = None if isinstance(result, np.ndarray) else Sink(result)

    def task(i: int) -> np.ndarray | None:
        start, stop = i * step, min(n, (i + 1) * step)
        part = feature_map.apply(rows.tile(start, stop), C)
        part = part if constant is None else part - constant
        if sink is not None:
            return part
        result[start:stop] = part
        return None

    for part in parallel.run(task, -(-n // step), n_threads=n_threads, progress=progress, stage=stage):
        if sink is not None and part is not None:
            sink.write(part)
    if sink is not None:
        sink.close()
    return result


def feature_moments(
    feature_map: FeatureMap,
    rows: Rows,
    *,
    weights: np.ndarray | None = None,
    n_threads: int = 1,
    progress: parallel.Progress | None = None,
) -> Moments:
    """Moments of all rows, reduced along a fixed tree (equal bits at any number of threads).

    Parameters
    ----------
    feature_map : FeatureMap
    rows : Rows
    weights : ndarray (N,), optional
        Non-negative; by default those of the rows.

    Returns
    -------
    Moments

    Raises
    ------
    ValueError
        Features, or residuals, are not finite.
    """
    n = rows.n_samples
    step = tile_rows(feature_map)
    span = task_rows(feature_map, n, rows.n_features, distributed=rows.distributed)
    rows = rows if weights is None else rows.weighted(weights)

    def task(rows: Rows, i: int) -> Moments:
        moments = feature_map.new_moments()
        for start in range(i * span, min(n, (i + 1) * span), step):
            parallel.checkpoint()
            stop = min(n, start + step)
            X, w = rows.tile(start, stop), rows.tile_weights(start, stop)
            if w is not None and not w.all():  # a row of no weight may lie anywhere, out of the map's reach too
                X, w = X[w > 0], w[w > 0]
            if len(X):
                moments.update(X, w)
        return moments

    over = Pass(
        "moments",
        task,
        span,
        lambda a, b: a.merge(b),
        pack=lambda moments: moments.state(),
        unpack=lambda state: feature_map.new_moments().restore(*state),
        alone=not feature_map.thread_safe,
        size=8 * feature_map.n_features**2,
    )
    moments = rows.reduce(over, n_threads=n_threads, progress=progress)
    check_moments(moments)
    return moments


def check_moments(moments: Moments) -> None:
    """Raise ValueError where the trace, centred or not, leaves the range of float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        trace = moments.trace + moments.count * float(moments.mean @ moments.mean) + moments.residual_trace
    if not np.isfinite(trace):
        raise ValueError(
            f"the features of {moments.map!r} are not finite on some of these rows, or their squares are not: values "
            "overflow or are NaN; scale the data down, or change the kernel's parameters"
        )
