"""The health of data: columns and times that say more about a sensor or a file than about the process.

``_where`` finds it in columns, from facts that one pass over the rows collects; ``TEXTS`` says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.checks import check_flag
from ...errors import HealthWarning, warn_caller
from ...rows.columns import check_same_columns, column_labels, listed
from ...rows.convert import as_rows
from ...rows.times import as_times, gaps, row_labels
from ...rows.view import Rows
from ..limits import Limits
from ..result import check_model

MIN_RUN_ROWS = 10
"""Rows from which on equal values may be called stuck; half of that where no two normal rows in a row were equal."""
LONG_RUN_FACTOR = 4
"""Length of a stuck sensor's run of equal values, over the longest run in the normal rows."""
MIN_RISES = 20
"""Rises from which on a column that never falls is a clock or a counter: by chance one of 20! orders."""
MOSTLY_FRACTION = 0.5
MAX_RANGE_RATIO = 100.0
"""Largest ratio of the ranges of two columns where columns are not standardized. Pixels of digits have up
to 16, though their standard deviations differ 277 times; tables of several units have 1,000 and more."""


@dataclass(frozen=True)
class Finding:
    """Fault of columns, or of the times of the rows.

    Attributes
    ----------
    kind : str
        "dead", "missing", "constant", "stuck", "growing", "scales" or "times".
    columns : tuple of str
        Names of the columns.
    text : str
        One line that names them.
    """

    kind: str
    columns: tuple[str, ...]
    text: str


class Facts:
    """Statistics of each column from one pass over rows (n, d). NaN is no value.

    Attributes
    ----------
    n_values, low, high : ndarray (d,)
        Number of values; the least and the largest.
    run, run_end, run_value : ndarray (d,)
        Rows of the longest run of equal values, the number of its last row, and the value.
    rises, falls : ndarray (d,)
        Numbers of rows whose value is above, or below, that of the row before.
    """

    def __init__(self, rows: Rows):
        d = rows.n_features
        self.n, self.n_values = 0, np.zeros(d, dtype=np.intp)
        self.low, self.high = np.full(d, np.inf), np.full(d, -np.inf)
        self.run, self.run_end, self.run_value = np.zeros(d, np.intp), np.zeros(d, np.intp), np.full(d, np.nan)
        self.rises, self.falls = np.zeros(d, dtype=np.intp), np.zeros(d, dtype=np.intp)
        before, begin = np.full(d, np.nan), np.zeros(d, dtype=np.intp)
        for start, X in rows.tiles(rows.step):
            there, above = ~np.isnan(X), np.vstack([before, X[:-1]])
            self.n, self.n_values = start + len(X), self.n_values + there.sum(axis=0)
            self.low = np.minimum(self.low, X.min(axis=0, initial=np.inf, where=there))
            self.high = np.maximum(self.high, X.max(axis=0, initial=-np.inf, where=there))
            self.rises += (X > above).sum(axis=0)
            self.falls += (X < above).sum(axis=0)
            number = start + np.arange(len(X))[:, None]
            begins = np.maximum.accumulate(np.where(X != above, number, begin), axis=0)
            length = np.where(there, number - begins + 1, 0)
            end, columns = length.argmax(axis=0), np.arange(d)
            longer = length[end, columns] > self.run
            self.run[longer] = length[end, columns][longer]
            self.run_end[longer], self.run_value[longer] = start + end[longer], X[end, columns][longer]
            before, begin = X[-1], begins[-1]

    @property
    def ranges(self) -> np.ndarray:
        """The range of each column; zero where there is no value."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(self.n_values > 0, self.high - self.low, 0.0)


def _where(facts: Facts, limits: Limits | None, scaled: bool) -> dict[str, np.ndarray]:
    """Columns in which each kind is found; ``limits`` hold the statistics of the normal rows."""
    most, least = np.maximum(facts.rises, facts.falls), np.minimum(facts.rises, facts.falls)
    dead, growing = facts.n_values == 0, (most >= MIN_RISES) & (least == 0)
    constant = (facts.low == facts.high) & (facts.n_values > 1)
    if limits is None or limits.quantiles is None:
        others = facts.n_values - facts.run  # nearly all of which differ from the row before
        stuck = (facts.run >= 2 * MIN_RUN_ROWS) & (facts.rises + facts.falls > 0.9 * others) & (others >= MIN_RUN_ROWS)
    else:
        d = len(dead)  # of a model of lagged rows these are the first columns
        low, high = limits.quantiles[[0, -1], :d]
        runs = np.zeros(d) if limits.runs is None else limits.runs[:d]
        long = np.where(runs == 1, MIN_RUN_ROWS // 2, np.maximum(MIN_RUN_ROWS, LONG_RUN_FACTOR * runs))
        constant &= (facts.n_values >= long) & (low < high)
        stuck = (facts.run > long) & (runs > 0) & (low < high)
        growing &= (facts.low > high) | (facts.high < low)
    return {
        "dead": dead,
        "missing": ~dead & (facts.n_values < (1 - MOSTLY_FRACTION) * facts.n),
        "constant": constant,
        "stuck": stuck & ~constant,
        "growing": growing & ~constant,
        "scales": (facts.ranges > 0) & (MAX_RANGE_RATIO * facts.ranges < facts.ranges.max()) & (not scaled),
    }


TEXTS = {
    "dead": ("no value in any of the {n} rows", ""),
    "missing": ("more than half of the values of {n} rows missing", " ({missing:.1%})"),
    "constant": ("the same value in all of the {n} rows", " ({low:.6g})"),
    "stuck": ("stuck, the same value in many rows in a row", " ({value:.6g} in {run} rows, from row {first} on)"),
    "growing": ("values that only grow or only fall, as a clock or a counter and no sensor does, so that later rows "
                "are unlike all of these (leave such a column out; a time column names the rows)",
                " ({low:.10g} to {high:.10g})"),
    "scales": ("ranges less than a hundredth of that of {widest}, so that these columns hardly count (standardize=True "
               "scales all columns alike, standardize=False leaves them as they are, and says nothing)",
               " ({range:.3g} of {largest:.3g})"),
}  # fmt: skip
"""Text of each kind of finding in columns, and the addition to the name of each column."""


def kpca_health(
    X: Any, *, model: Any = None, standardize: bool = False, labels: Any = None, label_name: str = "time"
) -> tuple[Finding, ...]:
    """Findings about the health of data: columns and times that say more about a sensor or a file than the process.

    Parameters
    ----------
    X : array_like (m, d)
        Rows in their order, with NaN where a value is missing. Columns are called as in a data frame, or in the model.
    model : KPCAModel, optional
        With the limits that it keeps: the rows are new ones, and compared with the normal rows of the limits.
    standardize : bool
        Whether the model will divide the columns by their standard deviations.
    labels : array_like (m,), optional
        What the rows are called, whose order and gaps are checked where they are times.
    label_name : str
        What ``labels`` are.

    Returns
    -------
    tuple of Finding
        Columns without any value, with more than half of the values missing, with one value in all rows; stuck ones:
        runs of equal values that are long for these rows, or against the normal ones. Columns that never fall or
        never rise, which are clocks or counters (in new rows where they leave the range of the normal ones, too).
        Without a model and ``standardize`` those whose range is less than a hundredth of the widest; times that
        repeat, fall, or come after a gap.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> X[40:, 1] = 7.0
    >>> [(finding.kind, finding.columns) for finding in fk.kpca_health(X)]
    [('stuck', ('column 1',))]
    """
    standardize = check_flag(standardize, "standardize")
    rows = as_rows(X, missing=True)
    if model is not None:
        model = check_model(model)
        own = model.n_features  # columns of the rows, or of these before their lags
        own = own // (model.lags + 1) if rows.n_features * (model.lags + 1) == own else own
        check_same_columns(rows, own, model.feature_names and model.feature_names[:own])
    labels = None if labels is None else row_labels(labels, rows.n_samples)
    names = rows.names or (None if model is None else model.feature_names)
    limits, scaled = None if model is None else model.limits, standardize or model is not None
    return findings_of(Facts(rows), names, (label_name, labels), limits, scaled)


def findings_of(
    facts: Facts, names: Sequence[str] | None, named: tuple[str, Any], limits: Limits | None, scaled: bool
) -> tuple[Finding, ...]:
    """Findings from facts that were collected already; as ``kpca_health``.

    ``named``: what the rows are called, after the name of that. ``scaled``: ranges may differ.
    """
    d, (label_name, labels) = len(facts.run), named
    called, found = column_labels(names and names[:d], d), []
    widest = int(np.argmax(facts.ranges))
    for kind, where in _where(facts, limits, scaled).items():
        what, more = TEXTS[kind]
        columns = np.flatnonzero(where).tolist()
        texts = [_quoted(called[j]) + more.format(**_numbers(facts, j, labels)) for j in columns]
        if texts:
            text = f"{what.format(n=facts.n, widest=_quoted(called[widest]))}: {listed(texts, 8)}"
            found.append(Finding(kind, tuple(called[j] for j in columns), text))
    if labels is not None:
        found += check_times(np.asarray(labels), label_name)
    return tuple(found)


def _numbers(facts: Facts, j: int, labels: Any) -> dict[str, Any]:
    """Numbers that the texts about column j contain."""
    of_column = {"low": facts.low[j], "high": facts.high[j], "value": facts.run_value[j], "run": facts.run[j]}
    of_column |= {"missing": 1 - facts.n_values[j] / facts.n, "range": facts.ranges[j], "largest": facts.ranges.max()}
    return of_column | {"first": _called(labels, int(facts.run_end[j] - facts.run[j]) + 1)}


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"column \d+( \(.*\))?", name) else repr(name)


def check_times(labels: np.ndarray, name: str) -> list[Finding]:
    """Findings about times: some that repeat, some that fall, gaps."""
    times = as_times(labels)
    if times is None or len(times) < 2:
        return []
    steps = np.diff(times)
    after, lengths, usual = gaps(times)
    size = ""
    if len(after):
        longest = int(np.argmax(lengths))
        size = f", the longest of {readable_step(lengths[longest])} before {_called(labels, int(after[longest]))}"
    kinds = (
        (np.flatnonzero(steps == np.timedelta64(0)) + 1, "repeat in", "at", ""),
        (np.flatnonzero(steps < np.timedelta64(0)) + 1, "fall in", "at", ""),
        (after, "have gaps before", "before", f"{size}; the usual step is {readable_step(usual)}"),
    )
    return [
        Finding("times", (name,), f"times of {name!r} {what} {len(at)} of {len(times)} rows, first {where} "
                f"{_called(labels, int(at[0]))}{more}")
        for at, what, where, more in kinds
        if len(at)
    ]  # fmt: skip


def readable_step(step: Any) -> str:
    """A step between times, as in "90 s" or "2.5 days"."""
    seconds = step / np.timedelta64(1, "s")
    unit, size = next(((u, s) for u, s in (("days", 86400), ("h", 3600), ("min", 60)) if seconds >= 2 * s), ("s", 1))
    return f"{seconds / size:.4g} {unit}"


def _called(labels: Any, i: int) -> str:
    """The row in a text of one line."""
    return str(i) if labels is None else " ".join(str(np.asarray(labels)[i]).split())


def warn_of(findings: Sequence[Finding]) -> None:
    """A warning for each of the findings."""
    for finding in findings:
        warn_caller(finding.text, HealthWarning)
