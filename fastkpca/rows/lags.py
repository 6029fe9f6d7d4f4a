"""Rows with the rows before them as further columns, for faults in the order of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .times import as_times, gaps


def lagged(X: np.ndarray, lags: int, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows (n, (lags + 1) d): each, the one before it, ...; True for rows with all ``lags`` rows before them).

    ``starts`` (n,): True where a row does not follow the one above it.
    """
    n, number = len(X), np.arange(len(X))
    rows = np.full((n, lags + 1, X.shape[1]), np.nan)
    for k in range(min(lags + 1, n)):
        rows[k:, k] = X[: n - k]
    since = number - np.maximum.accumulate(np.where(starts, number, 0))
    return rows.reshape(n, -1), since >= lags


def starts_of(labels: np.ndarray | None, n: int) -> np.ndarray:
    """True for the first of n rows, and where times repeat, fall, or come after a gap."""
    starts = np.zeros(n, dtype=bool)
    starts[:1] = True
    times = None if labels is None else as_times(np.asarray(labels))
    if times is not None:
        starts[1:] |= np.diff(times) <= np.timedelta64(0)
        starts[gaps(times)[0]] = True
    return starts


def lag_names(names: Sequence[str], lags: int) -> list[str]:
    """Names of the columns of lagged rows, as in "temp" and "temp[-1]"."""
    return [*names, *(f"{name}[-{k}]" for k in range(1, lags + 1) for name in names)]
