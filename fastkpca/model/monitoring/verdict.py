"""Diagnosis of alarms: since when, which column, and with which probability by chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from .contributions import Contributions
from .monitor import Monitored

EXPLAINED_ROWS = 200
"""Alarms whose contributions are computed, spread over all of them."""


@dataclass(frozen=True)
class Verdict:
    """Diagnosis of the alarms of a run.

    Attributes
    ----------
    first, last : int
        The stretch of rows in which alarms are denser than by chance: its first and last alarm.
    expected : float
        Number of rows that would be beyond the limits if all were normal.
    chance : float
        Probability of at least this number of alarms among normal rows.
    index : ndarray (k,)
        Alarms that are explained, at most 200, spread over all.
    explained : Contributions
        Contributions of the columns to these alarms.
    fractions : ndarray (d,)
        Mean fraction of the statistic that each column alone takes off, over the explained alarms of the stretch.
    most : ndarray (d,)
        Number of these in which the column contributes most.
    """

    first: int
    last: int
    expected: float
    chance: float
    index: np.ndarray
    explained: Contributions
    fractions: np.ndarray
    most: np.ndarray

    @property
    def column(self) -> int:
        """The column behind the alarms."""
        return int(np.argmax(self.fractions))


def verdict_of(found: Monitored) -> Verdict | None:
    """Diagnosis of the alarms; None where there are none. It computes contributions of at most 200 alarms.

    The stretch is the likeliest one of a higher rate. It has the largest sum of log(p / r) for alarms and
    log((1 - p) / (1 - r)) for the others. Here r is the rate of normal rows, and p first 1/2, then the rate within that
    interval. The number of alarms among m rows that are exchangeable with the n of the limits is beta-binomial, with
    (n + 1) r and (n + 1) (1 - r).
    """
    alarms = found.alarms
    if not len(alarms):
        return None
    rate = (1.0 - found.limits.confidence) * (1.0 if found.limits.joint else 2.0)
    rate = min(max(rate, 1.0 / (found.limits.n_calibration + 1.0)), 0.49)
    is_alarm = np.zeros(len(found.t2), dtype=bool)
    is_alarm[alarms] = True
    share = 0.5
    for _ in range(2):  # the second time with the rate of the first stretch: one chance alarm ahead of it is left out
        sums = np.cumsum(np.where(is_alarm, np.log(share / rate), np.log((1.0 - share) / (1.0 - rate))))
        end = int(np.argmax(sums - np.minimum.accumulate(np.append(0.0, sums[:-1]))))
        begin = int(np.argmin(np.append(0.0, sums[:end])))
        share = float(np.clip(is_alarm[begin : end + 1].mean(), 2.0 * rate, 0.98))
    inside = alarms[(alarms >= begin) & (alarms <= end)]
    index = alarms[np.unique(np.linspace(0, len(alarms) - 1, EXPLAINED_ROWS).astype(np.intp))]
    which = found.contributions(index)
    some = np.isin(index, inside) if np.isin(index, inside).any() else np.ones(len(index), dtype=bool)
    largest = which.largest[some]
    most = np.bincount(largest[largest >= 0], minlength=found.model.n_features)
    chance = _chance(len(alarms), len(is_alarm), found.limits.n_calibration, rate)
    fractions, expected = which.fractions[some].mean(axis=0), rate * len(is_alarm)
    return Verdict(int(inside[0]), int(inside[-1]), expected, chance, index, which, fractions, most)


def _chance(k: int, m: int, n: int, rate: float) -> float:
    """P(at least k of m) of the beta-binomial law with (n + 1) rate and (n + 1) (1 - rate)."""
    a, b, j = (n + 1.0) * rate, (n + 1.0) * (1.0 - rate), np.arange(k, m + 1.0)
    logs = special.betaln(j + a, m - j + b) - special.betaln(a, b) - np.log(m + 1.0) - special.betaln(j + 1, m - j + 1)
    return float(min(np.exp(special.logsumexp(logs)), 1.0))
