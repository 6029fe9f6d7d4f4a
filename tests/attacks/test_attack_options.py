"""A fraction of attack_options.py: what may be asked for beside a kernel keeps what it promises, or is refused."""

from __future__ import annotations

import attack_options as attacked
import pytest


@pytest.mark.parametrize("name", attacked.FAMILIES)
def test_random_options(name, attack, tmp_path):
    answered, count = 0, attack.count(1000, least=10)
    for case in range(count):
        outcome, described, text = attacked.run(name, attack.rng(name, case), tmp_path)
        assert outcome != "broken", f"{described}: {text}"
        answered += outcome == "answered"
    assert answered > 0.1 * count
