"""Projection of rows onto the components of a model, and the scores of the rows that it was made from."""

from __future__ import annotations

from typing import Any, Unpack, overload

import numpy as np

from ..base import parallel
from ..base.process_memory import DEFAULT_MEMORY
from ..base.progress import Progress
from ..base.protocol import Kernel
from ..rows.sinks import Sink
from ..rows.values import check_finite, check_out
from ..rows.view import Rows
from .projector import RunOptions, finite
from .reading import Projector
from .result import KPCAModel, check_model
from .rows import new_rows


@overload
def kpca_project(
    model: KPCAModel, X: Any, *, out: np.ndarray | None = None, **options: Unpack[RunOptions]
) -> np.ndarray: ...
@overload
def kpca_project(model: KPCAModel, X: Any, *, out: Any, **options: Unpack[RunOptions]) -> Any: ...
def kpca_project(
    model: KPCAModel, X: Any, *, out: Any = None, n_threads: int | None = None, progress: bool | Progress = False
) -> Any:
    """Project new rows onto the components of a model.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d)
        New rows, with the columns of the training rows; for a precomputed kernel the (m, N) matrix between new and
        training rows.
    out : ndarray, h5py.Dataset or zarr.Array (m, c), or callable, optional
        Where to write the scores, or a function ``out(shape, dtype)`` that makes such a place. Needed for rows that are
        not in memory where the scores would take more than 2 GiB.
    n_threads : int, optional
        Default: all processors.
    progress : bool or callable

    Returns
    -------
    ndarray (m, c), or ``out``
        ``coeff' (k(X_train, x) - column means)`` for each new row x: only the column means of K are needed for
        centring, since 1'coeff = 0. For a Dask collection it is a lazy Dask array, chunked as the rows, unless ``out``
        is given; an error in a row is then raised when its block is computed.

    Raises
    ------
    ValueError, TypeError
        The rows have other columns than the training rows, are not finite, or ``out`` does not fit.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> model = fk.kpca(X, "gaussian", 2, sigma=2.0)
    >>> fk.kpca_project(model, X[:10]).shape
    (10, 2)
    """
    model = check_model(model)
    kernel, rows, dtype = new_rows(model, X, finite=False)
    if not rows.distributed:  # those are checked block by block, with the scores
        check_finite(rows)
    shape = (rows.n_samples, model.n_components)
    result = check_out(out, shape, dtype, rows)
    size = shape[0] * shape[1] * dtype.itemsize
    if result is None and not (rows.in_memory or rows.distributed) and size > DEFAULT_MEMORY:
        raise ValueError(
            f"the scores of {shape[0]} rows take {size / 1e9:.3g} GB; give out=, a memory map or a dataset of "
            f"shape {shape} and type {dtype}"
        )
    with parallel.reporter(progress) as report, parallel.blas_threads():
        threads = parallel.threads_for(kernel, n_threads)
        scores = write_scores(rows, kernel, model.projector, None, result, dtype, threads, report)
    if not rows.distributed:
        _check_scores(scores, model.kernel)
    return scores


def _check_scores(scores: Any, kernel: Kernel, first: int = 0) -> None:
    step = parallel.tile_rows(scores.shape[1])
    for start in range(0, scores.shape[0], step):
        finite(scores[start : start + step], f"the projection by {kernel!r}", scores.dtype, first + start)


def _lazy_scores(rows: Rows, projector: Projector, kernel: Kernel, dtype: np.dtype) -> Any:
    """The scores as a Dask array, chunked as the rows."""
    frame = rows.frame  # the task goes to the workers, and the rows do not

    def task(block: np.ndarray, first: int) -> np.ndarray:
        scores = np.empty((len(block), projector.n_components), dtype=dtype)
        check_finite(Rows(block), first=first)
        projector.project(kernel, Rows(block, **frame), scores, 1)
        _check_scores(scores, kernel, first)
        return scores

    return rows.source.lazily(task, projector.n_components, dtype, alone=not kernel.thread_safe)


def write_scores(
    rows: Rows,
    kernel: Kernel,
    projector: Projector,
    score: np.ndarray | None,
    result: Any,
    dtype: np.dtype,
    n_threads: int,
    report: parallel.Progress | None,
) -> Any:
    """The scores of rows, in ``result`` where it is given.

    ``score`` (N, c) are the scores where they are known; else the projector computes them in one pass. Those
    of distributed rows are lazy where no place for them is given.
    """
    if rows.distributed:
        if score is None:
            lazy = _lazy_scores(rows, projector, kernel, dtype)
        else:
            lazy = rows.source.wrap(score.astype(dtype, copy=False))
        if result is None:
            return lazy
        rows.source.store(lazy, result)
    elif score is None:
        result = np.empty((rows.n_samples, projector.n_components), dtype) if result is None else result
        projector.project(kernel, rows, result, n_threads, report)
    elif result is None:
        result = np.ascontiguousarray(score, dtype=dtype)
    else:
        sink = Sink(result)
        sink.write(score)
        sink.close()
    return result
