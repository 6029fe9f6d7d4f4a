"""A fraction of attack_sources.py: the same bits from any source, or an error that says what is wrong."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("h5py")
pytest.importorskip("zarr")
pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

import source_cases as cases


def test_random_sources_and_what_happens_to_them(attack, tmp_path):
    found = Counter()
    for number in range(attack.count(3000, least=60)):
        outcome, _ = cases.case(attack.rng("sources", number), tmp_path, 4000 if attack.fraction >= 0.5 else 600)
        found[outcome] += 1
    assert found["right"] > 5 and found["found"] > 0
