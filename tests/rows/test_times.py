"""Times as they stand in files."""

from __future__ import annotations

import numpy as np
import pytest

from fastkpca.rows.times import as_times, gaps


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-03-01", "2026-03-01T00:00"),
        ("2026-03-01 06:05", "2026-03-01T06:05"),
        ("2026-03-01T06:05:07.25", "2026-03-01T06:05:07.25"),
        ("2026/03/01 6:05", "2026-03-01T06:05"),
        ("2026-03-01T06:05:07Z", "2026-03-01T06:05:07"),
        ("2026-03-01T06:05+02:00", "2026-03-01T04:05"),
        ("2026-03-01 00:05 -0130", "2026-03-01T01:35"),
        ("1.3.2026", "2026-03-01T00:00"),
        ("01.03.2026 06:05", "2026-03-01T06:05"),
        ("01.03.2026, 6:05:07,5", "2026-03-01T06:05:07.5"),
    ],
)
def test_forms(text, time):
    (found,) = as_times(np.array([text], dtype=object))
    assert found == np.datetime64(time, "us")
    assert as_times(np.array([text, "lot 7"], dtype=object)) is None


@pytest.mark.parametrize(
    "text", ["2026-02-30", "31.2.2026", "2026-13-01", "01.03.26", "25:00", "2026-03-01 25:00", "", "7"]
)
def test_what_is_no_time(text):
    assert as_times(np.array([text], dtype=object)) is None


def test_gaps_of_regular_and_of_irregular_times():
    times = np.datetime64("2026-03-01", "s") + 60 * np.delete(np.arange(100), [40, 41, 70])
    after, lengths, usual = gaps(times)
    assert after.tolist() == [40, 68] and (lengths / np.timedelta64(1, "s")).tolist() == [180, 120]
    assert usual == np.timedelta64(60, "s")
    assert not len(gaps(times[:3])[0]) and not len(gaps(times[::-1])[0])
