"""A pass over all rows with a feature map: Phi' U, Phi C, and the moments of the features.

Tiles depend on shapes alone and sums follow a fixed tree: equal bits at any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel
from ..base.protocol import FeatureMap, Moments
from ..rows.sinks import Sink
from ..rows.view import Pass, Rows
from .draws import DRAWS, Draws, drawn_among

SMALL_MOMENT = 1024
"""Features up to which a second moment takes so little memory that there may be many, or copies of it."""
TASK_BYTES = 1 << 22
"""Bytes of the rows of a task on another machine."""
MIN_TASK_ROWS = 1 << 11
"""Rows of a task, at least, if there are enough of them."""


def map_tile_rows(feature_map: FeatureMap) -> int:
    """Rows of a tile for this map: its own ``tile_rows``, else the number that suits its features."""
    return feature_map.tile_rows or parallel.tile_rows(feature_map.n_features)


def pass_tile_rows(feature_map: FeatureMap, n: int) -> int:
    """Rows of a tile in a pass over n rows."""
    return parallel.even_rows(n, map_tile_rows(feature_map))


def product_tile_rows(feature_map: FeatureMap, n: int, columns: int) -> int:
    """Rows of a tile in a pass over n rows that forms no features, with ``columns`` columns of rows and results.

    Longer where the map is ``chunked``: what Python does for a tile takes as long as 100 rows of a small map, and it
    does that for one thread at a time.
    """
    step = pass_tile_rows(feature_map, n)
    if not feature_map.chunked:
        return step
    few = max(1, min(n // 16, parallel.tile_rows(columns)))
    return parallel.even_rows(n, max(step, 1 << (few.bit_length() - 1)))


def task_rows(feature_map: FeatureMap, n: int, n_columns: int, *, distributed: bool = False) -> int:
    """Rows of a task that accumulates moments: whole tiles, by shapes alone.

    Every task holds an accumulator, of D^2 numbers where it is dense, and log2(tasks) more wait in the tree: few tasks
    where D is large, but for rows that are ``distributed`` over many machines, which hold those of a task at a time.
    """
    step = pass_tile_rows(feature_map, n)
    return task_rows_for(feature_map.n_features, n, n_columns, step=step, distributed=distributed)


def task_rows_for(D: int, n: int, n_columns: int, *, step: int | None = None, distributed: bool = False) -> int:
    """The same by the number of features, for the plan."""
    step = step or parallel.even_rows(n, parallel.tile_rows(D))
    most_tasks = 4 if D > SMALL_MOMENT and not distributed else 64
    # to make an accumulator and to add it up costs as much as a few hundred rows
    rows = max(-(-n // most_tasks), min(MIN_TASK_ROWS, n // 4))
    if distributed:
        rows = min(rows, TASK_BYTES // (8 * n_columns))
    return step * max(1, rows // step)


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
    n, step = rows.n_samples, product_tile_rows(feature_map, rows.n_samples, rows.n_features + U.shape[1])
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


class Applied(NamedTuple):
    """A map with coefficients: a function from a tile to its values (n, n_columns)."""

    feature_map: FeatureMap
    values: Callable[[np.ndarray], np.ndarray]
    n_columns: int


def applied(feature_map: FeatureMap, C: np.ndarray) -> Applied:
    return Applied(feature_map, feature_map.applied(C), C.shape[1])


def apply(feature_map: FeatureMap, rows: Rows, C: np.ndarray, n_threads: int = 1, **options: Any) -> Any:
    """Phi C over all rows: ``evaluate`` with its options."""
    return evaluate(applied(feature_map, C), rows, n_threads, **options)


def evaluate(
    of_map: Applied,
    rows: Rows,
    n_threads: int = 1,
    *,
    constant: np.ndarray | None = None,
    out: Any = None,
    progress: parallel.Progress | None = None,
    stage: str = "",
) -> Any:
    """Phi C - constant over all rows: (N, k), into ``out`` (array or dataset of any float dtype) where given."""
    n, step = rows.n_samples, product_tile_rows(of_map.feature_map, rows.n_samples, rows.n_features + of_map.n_columns)
    result = np.empty((n, of_map.n_columns)) if out is None else out
    # chunks of a dataset are not to be written by two threads at once
    sink = None if isinstance(result, np.ndarray) else Sink(result)

    def task(i: int) -> np.ndarray | None:
        start, stop = i * step, min(n, (i + 1) * step)
        part = of_map.values(rows.tile(start, stop))
        if sink is not None:
            return part if constant is None else part - constant
        if constant is None:
            result[start:stop] = part
        else:
            np.subtract(part, constant, out=result[start:stop], casting="same_kind")
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
    quick: bool = False,
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
    quick : bool
        The map's ``quick_moments``, of rows without weights; it has them.

    Returns
    -------
    Moments

    Raises
    ------
    ValueError
        Features, or residuals, are not finite.
    """
    rows = rows if weights is None else rows.weighted(weights)
    return _moments(feature_map, rows, (0, 0), n_threads, progress, _kind(feature_map, quick))[0]


def moments_and_draws(
    feature_map: FeatureMap,
    rows: Rows,
    rng: np.random.Generator,
    *,
    n_draws: int = DRAWS,
    quick: bool = False,
    residuals: np.ndarray | None = None,
    n_threads: int = 1,
    progress: parallel.Progress | None = None,
) -> tuple[Moments, Draws | None]:
    """`feature_moments`, and rows drawn in proportion to their residual in the same pass.

    None where the moments do not process rows one by one. The map does not depend on what ``rng`` gives from here on.
    ``residuals`` (N,), zeros, takes those of all rows, times their weights, where they are known.
    """
    seed, new_moments = int(rng.integers(2**63)), _kind(feature_map, quick)
    return _moments(feature_map, rows, (n_draws, seed), n_threads, progress, new_moments, residuals)


def _moments(
    feature_map: FeatureMap,
    rows: Rows,
    draws: tuple[int, int],
    n_threads: int,
    progress: parallel.Progress | None,
    new_moments: Callable[[], Any],
    all_residuals: np.ndarray | None = None,
) -> tuple[Moments, Draws | None]:
    """``draws``: how many, and their seed."""
    (n_draws, seed), n = draws, rows.n_samples
    step = pass_tile_rows(feature_map, n)
    span = task_rows(feature_map, n, rows.n_features, distributed=rows.distributed)

    def task(rows: Rows, i: int) -> tuple[Moments, Draws | None]:
        moments = new_moments()
        residuals: list[np.ndarray | None] = []
        numbers = []
        for start in range(i * span, min(n, (i + 1) * span), step):
            parallel.checkpoint()
            stop = min(n, start + step)
            X, w, index = _present(rows, start, stop)
            if len(X):
                found = _updated(moments, X, w)
                residuals.append(found)
                numbers.append(index)
                if found is not None and all_residuals is not None:
                    all_residuals[index] = found
        return moments, drawn_among(residuals, numbers, i, n_draws, seed) if n_draws else None

    def combine(a: tuple[Moments, Draws | None], b: tuple[Moments, Draws | None]) -> tuple[Moments, Draws | None]:
        drawn = None if a[1] is None or b[1] is None else a[1].join(b[1], seed)
        return a[0].merge(b[0]), drawn

    over = Pass(
        "moments",
        task,
        span,
        combine,
        pack=lambda found: (found[0].state(), found[1]),
        unpack=lambda packed: (new_moments().restore(*packed[0]), packed[1]),
        alone=not feature_map.thread_safe,
    )
    moments, drawn = rows.reduce(over, n_threads=n_threads, progress=progress)
    check_moments(moments)
    return moments, drawn


def _present(rows: Rows, start: int, stop: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """(rows, weights, numbers) of those that count: one of no weight may lie anywhere, out of a map's reach too."""
    X, w, index = rows.tile(start, stop), rows.tile_weights(start, stop), np.arange(start, stop)
    if w is None or w.all():
        return X, w, index
    return X[w > 0], w[w > 0], index[w > 0]


def _kind(feature_map: FeatureMap, quick: bool) -> Callable[[], Any]:
    return feature_map.quick_moments if quick else feature_map.new_moments


def _updated(moments: Moments, X: np.ndarray, w: np.ndarray | None) -> np.ndarray | None:
    """Take up a tile: the weighted residuals of its rows, where the map knows them."""
    residual = moments.update(X, w)
    if residual is None:
        return None
    # of the semidefinite part: without what the defect may take off
    return (residual + moments.map.defect) * (1.0 if w is None else w)


def check_moments(moments: Moments) -> None:
    """Raise ValueError where the trace, centred or not, leaves the range of float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        trace = moments.trace + moments.count * float(moments.mean @ moments.mean) + moments.residual_trace
    if not np.isfinite(trace):
        raise ValueError(
            f"the features of {moments.map!r} are not finite on some of these rows, or their squares are not: values "
            "overflow or are NaN; scale the data down, or change the kernel's parameters"
        )
