"""Multi-threaded spreading to, and interpolation from, the nodes of a grid.

These are the products L' U and L A with an interpolation matrix L that is never formed.

Points are cut into runs by their number alone. Every node belongs to one box, so that a run writes its own boxes
directly; what the boxes shared by two runs got is added in the order of the runs. Products have the same bits at any
number of threads.
"""

from __future__ import annotations

import numpy as np

from .._core.boxes import Grid, Points
from ..base import parallel

__all__ = ["interpolate", "spread"]


def _run_length(n: int) -> int:
    """Points of a task: by their number alone, and so many tasks that threads end at about the same time."""
    return parallel.even_rows(n, max(2048, min(32768, -(-n // 16))))


def spread(
    grid: Grid, points: Points, U: np.ndarray, n_threads: int = 1, *, out: np.ndarray | None = None
) -> np.ndarray:
    """L' U as a nodal array of shape (k, *grid.shape).

    Parameters
    ----------
    grid : Grid
    points : Points
        From ``grid.sort(X)``.
    U : ndarray (n, k), C-contiguous float64
        Rows as those of X.
    out : ndarray (k * product of grid.shape,), optional
        Memory for the result: what a large array costs is the first touch of its pages.
    """
    n, k = U.shape
    if out is None:
        nodal = np.zeros((k, *grid.shape))
    else:
        nodal = out.reshape(k, *grid.shape)
        pieces = parallel.shares(out.size, parallel.A_NUMBER * out.size)
        parallel.each(lambda i: out[pieces[i]].fill(0.0), len(pieces), n_threads=n_threads)
    flat, run = nodal.reshape(-1), _run_length(n)

    def task(i: int) -> list:
        return grid.spread(points, U, flat, i * run, min(n, (i + 1) * run))

    for edges in parallel.run(task, -(-n // run), n_threads=n_threads):
        grid.add(edges, flat)
    return nodal


def interpolate(grid: Grid, points: Points, nodal: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """L A for a nodal array A of shape (k, *grid.shape), C-contiguous: shape (n, k)."""
    n, k = len(points), len(nodal)
    V = np.empty((n, k))
    flat, run = nodal.reshape(-1), _run_length(n)

    def task(i: int) -> None:
        grid.interpolate(points, flat, V, i * run, min(n, (i + 1) * run))

    parallel.each(task, -(-n // run), n_threads=n_threads)
    return V
