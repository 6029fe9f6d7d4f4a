"""Random weighted models attacked: SPE intervals hold long double's value.

Pickled and restored models give the same intervals, and limits are finite numbers.
"""

from __future__ import annotations

import numpy as np
import pytest
import weight_cases as cases


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no longer than float64")
def test_random_weighted_models(attack):
    answered, count = 0, attack.count(2000, least=30)
    for case in range(count):
        answered += cases.attacked(attack.rng("weighted models", case))
    assert answered > 0.6 * count
