"""Reading of times from a column of words or dates, and the gaps between them."""

from __future__ import annotations

import re
from datetime import UTC, date
from typing import Any

import numpy as np

_CLOCK = r"(?:[ T]+(?P<clock>\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,6})?)?) ?(?P<zone>Z|[+-]\d\d:?\d\d)?)?"
_ISO = re.compile(r"(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)" + _CLOCK)
_GERMAN = re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4}),?" + _CLOCK)
REGULAR_FRACTION = 0.8
"""Fraction of the steps up to the usual one from which on times are regular."""
LONG_STEPS = 1.5, 10.0
"""Length of a gap over the usual step: of regular times, of others."""


def row_labels(labels: Any, n: int) -> np.ndarray:
    """Labels of n rows as an array (n,)."""
    try:
        array = np.asarray(labels)
    except ValueError:  # lists of several lengths
        array = np.asarray(labels, dtype=object)
    if array.shape != (n,):
        raise ValueError(f"labels have shape {array.shape}; give one for each of the {n} rows")
    return array


def as_times(values: np.ndarray) -> np.ndarray | None:
    """These as datetime64 where all are times or words such as 2026-03-01 06:00 or 01.03.2026 06:00, those with a zone
    in UTC; else None."""
    listed = [] if values.dtype.kind in "biufc" else values.tolist()
    if values.dtype.kind == "M" or not listed:
        return values if values.dtype.kind == "M" else None
    if all(isinstance(x, date) for x in listed):
        plain = [x.astimezone(UTC).replace(tzinfo=None) if getattr(x, "tzinfo", None) else x for x in listed]
        return np.array(plain, dtype="datetime64[us]")
    for form in (_ISO, _GERMAN):
        if isinstance(listed[0], str) and form.fullmatch(listed[0].strip()):
            return _parsed(listed, form)
    return None


def _parsed(texts: list[Any], form: re.Pattern[str]) -> np.ndarray | None:
    """The times that texts of one form state; None where one has another form, or is no time, as 2026-02-30."""
    found, zones = [], np.zeros(len(texts), dtype="timedelta64[m]")
    for i, text in enumerate(texts):
        match = form.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            return None
        day = f"{match['year']}-{match['month'].zfill(2)}-{match['day'].zfill(2)}"
        hour, colon, rest = (match["clock"] or "0:00").replace(",", ".").partition(":")
        found.append(f"{day}T{hour.zfill(2)}{colon}{rest}")
        zone = (match["zone"] or "Z").replace(":", "")
        if zone != "Z":
            minutes = 60 * int(zone[1:3]) + int(zone[3:])
            zones[i] = np.timedelta64(minutes if zone[0] == "+" else -minutes, "m")
    try:
        return np.array(found, dtype="datetime64[us]") - zones
    except ValueError:
        return None


def gaps(times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.timedelta64]:
    """(numbers of the rows that come after a gap, how long each is, the usual step): steps from the latest time so far
    that are much longer than the usual one, the median of those that rise."""
    steps = times[1:] - np.maximum.accumulate(times)[:-1]
    rising = steps[steps > np.timedelta64(0)]
    if len(rising) < 3:
        return np.zeros(0, dtype=np.intp), steps[:0], np.timedelta64(0, "us")
    usual = np.sort(rising)[len(rising) // 2]
    is_regular = np.mean(rising <= 1.01 * usual) >= REGULAR_FRACTION
    after = np.flatnonzero(steps > LONG_STEPS[not is_regular] * usual)
    return after + 1, steps[after], usual
