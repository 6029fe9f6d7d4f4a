"""The sampled bound: the share that it stands on is where the divergence meets the failure."""

from __future__ import annotations

import numpy as np
import pytest

from fastkpca.solve.sampled import ScaledSample, sampled_bound, upper_share


@pytest.mark.parametrize("draws", [1, 30, 3000, 10**5, 10**8, 10**12])
@pytest.mark.parametrize("failure", [1e-12, 1e-6, 0.5, 0.999])
def test_upper_share_is_above_the_root_in_fifty_digits(draws, failure, attack):
    mpmath = pytest.importorskip("mpmath")
    rng = attack.rng(f"share {failure}", draws)
    ends = 10.0 ** -rng.uniform(0, 15, 8)
    x = np.concatenate([[0.0, 1e-300, 1e-16, 1 - 1e-16], rng.random(8), ends, 1.0 - ends])
    with mpmath.workdps(50):
        allowed = mpmath.log(1 / mpmath.mpf(failure)) / draws
        for p, q in zip(map(mpmath.mpf, x), map(mpmath.mpf, upper_share(x, draws, failure))):
            assert p <= q <= 1
            for at, sign in ((q, 1), (q * (1 - 1e-7), -1)):  # it is rounded up, and by no more than that
                if p < at < 1 and draws > 1 and p < 1 - 1e-6:
                    divergence = (p * mpmath.log(p / at) if p else 0) + (1 - p) * mpmath.log((1 - p) / (1 - at))
                    assert sign * (divergence - allowed) >= -(sign < 0) * 1e-6 * allowed


def test_no_better_than_the_trace_is_the_trace_for_certain():
    bound = sampled_bound(3.0, ScaledSample(np.ones((1, 1)), 1, 0.0), 1e-6)
    assert (bound.mu, bound.failure_probability) == (3.0, 0.0)
    bound = sampled_bound(3.0, ScaledSample(np.eye(100), 100, 0.0), 1e-6)
    assert 0.0 < bound.mu < 3.0 and bound.failure_probability == 1e-6
