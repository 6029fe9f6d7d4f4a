"""Random products attacked: the error bound that they state holds, in both directions, over 280 decades of rows."""

from __future__ import annotations

import numpy as np
import product_cases as cases
import pytest

pytest.importorskip("kernels_contrib")


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no longer than float64")
def test_random_products_keep_their_bounds(attack):
    answers = []
    for case in range(attack.count(5000, least=60)):
        answer = cases.attacked(attack.rng("products", case))
        if answer is not None:
            assert answer.worst <= 1.0, (case, answer)
            answers.append(answer.products)
    assert len(answers) > 20 and len(set(answers)) > 1
