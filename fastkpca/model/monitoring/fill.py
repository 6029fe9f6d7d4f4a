"""Values in place of missing ones: those at which a row fits the model best."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import parallel
from ...base.progress import Progress
from ...rows.convert import as_rows, run_query
from ...rows.foreign import like_given
from ..result import KPCAModel, check_model
from ..rows import new_rows
from .contributions import Statistic, least_along, statistic_of, tried_values

N_SWEEPS = 4
"""Through the missing values of a row that misses several: more take less than 1 % off SPE (rows of
benchmarks/reproduce/fill.py, of which 30 % of the values are missing)."""


def kpca_fill(
    model: KPCAModel, X: Any, *, train: Any = None, n_threads: int | None = None, progress: bool | Progress = False
) -> Any:
    """Rows whose missing values (NaN) are filled by a model: with those at which the row fits it best.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d)
        As for ``kpca_project``, with NaN where a value is missing; each row has one value at least.
    train : array_like (n, d), optional
        Rows of normal operation: values are searched within the range of each column in them. By default the
        calibration rows of the limits that the model keeps (``model.with_limits``), or else the training rows or pivots
        that it holds.
    n_threads : int, optional
        Default: all processors. Results do not depend on it.
    progress : bool or callable

    Returns
    -------
    ndarray (m, d), or data frame
        X, with a number for each NaN; all others are as they were. A frame of pandas or polars, or an array of
        xarray's, comes back as one, with its names and its index.

    Raises
    ------
    ValueError, TypeError
        The kernel has no columns (a precomputed matrix, a list of objects). A row has no value at all, or an infinite
        one; the model holds neither limits nor rows and ``train`` is not given; or as ``kpca_spe``.

    Notes
    -----
    The missing values of a row are those that make its SPE (``kpca_spe``) least, found one after the other, again and
    again: for linear PCA, projection to the model plane (Nelson, Taylor & MacGregor, Missing data methods in PCA and
    PLS: score calculations with incomplete observations, Chemometrics and Intelligent Laboratory Systems 1996). The
    search starts from the nearest of the rows or pivots that the model holds, by the columns that are known, or else
    from medians.

    So an alarm by SPE holds for all values that the missing ones may have had (within the range of normal rows, and as
    far as the search found the least). SPE alarms no more often than for complete rows. T^2 and scores are those of the
    filled row: they hold if it was like this. The mean of a column in place of its missing values would raise false
    alarms wherever columns go together. A row that misses nearly all of its values fits any model.

    It costs 43 SPE for each missing value, and for those of rows that miss several four times as many.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> t = np.random.default_rng(0).uniform(-1, 1, (300, 1))
    >>> X = np.hstack([t, t**2, -t, 2 * t])
    >>> model = fk.kpca(X, "gaussian", 5, sigma=2.0)
    >>> fk.kpca_fill(model, [[0.8, np.nan, -0.8, np.nan]], train=X).round(2).tolist()
    [[0.8, 0.64, -0.8, 1.6]]
    """
    model, X = check_model(model), run_query(X)
    tried = tried_values(model, train, "kpca_fill")
    given = new_rows(model, X, purpose="kpca_fill", missing=True)
    rows = given.rows.tile(0, given.rows.n_samples)
    missing = np.isnan(rows)
    _check(rows, missing)
    of_rows = statistic_of(model, given.kernel, "spe", parallel.threads_for(given.kernel, n_threads))
    some = np.flatnonzero(missing.any(axis=1))
    rows, missing = rows[some], missing[some]
    middle = tried[len(tried) // 2]
    filled = np.where(missing, _nearest(model.projector.landmarks, rows, missing, middle), rows)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        _fill(of_rows, filled, missing, tried, report)
    result = np.array(as_rows(X, missing=True).all(), dtype=given.dtype)
    result[some] = np.where(missing, model.in_units_of_rows(filled), result[some])
    return like_given(result, X)


def _check(rows: np.ndarray, missing: np.ndarray) -> None:
    """ValueError names a row that is infinite somewhere, or has no value."""
    infinite, empty = np.isinf(rows).any(axis=1), missing.all(axis=1)
    if infinite.any():
        raise ValueError(
            f"X contains infinity (first at row {int(np.argmax(infinite))}); kpca_fill fills NaN: write that where a "
            "value is missing, or leave the row out"
        )
    if empty.any():
        raise ValueError(
            f"row {int(np.argmax(empty))} of X has no value at all, so there is nothing to fill it by; leave it out"
        )


def _nearest(landmarks: Any, rows: np.ndarray, missing: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """For each row that landmark (n, d) which is nearest in the columns that are known; without any, the middle of each
    column."""
    if landmarks is None:
        return np.broadcast_to(middle, rows.shape)
    points = np.asarray(landmarks, dtype=np.float64) - middle
    known = np.where(missing, 0.0, rows - middle)
    step, nearest = parallel.tile_rows(len(points), least=1), []
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        # |x - p|^2 over the known columns, but for |x|^2
        nearest.append(((~missing[part]).astype(float) @ (points**2).T - 2.0 * known[part] @ points.T).argmin(axis=1))
    return points[np.concatenate(nearest or [np.zeros(0, dtype=int)])] + middle


def _fill(of_rows: Statistic, filled: np.ndarray, missing: np.ndarray, tried: np.ndarray, report: Any) -> None:
    """Give the missing values of ``filled`` those of the least statistic, in place."""
    counts = missing.sum(axis=1)
    columns = np.argsort(~missing, axis=1, kind="stable")  # of each row, those that it misses come first
    total, done = int(np.where(counts > 1, N_SWEEPS * counts, counts).sum()), 0
    for sweep in range(N_SWEEPS):
        for k in range(int(counts.max(initial=0))):
            some = np.flatnonzero((counts > k) & ((counts > 1) | (sweep == 0)))
            if not len(some):
                break
            column = columns[some, k]
            filled[some, column] = least_along(of_rows, filled[some], np.arange(len(some)), column, tried)[2]
            done += len(some)
            if report is not None:
                report("missing values", done, total)
