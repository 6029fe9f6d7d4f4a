"""The sampled bound breaks no more often than it says (attack_loose.py at full scale)."""

from __future__ import annotations

import loose_cases as cases
import numpy as np
import pytest
from loose_cases import CALLS, FAMILIES

from fastkpca.fit import offers
from fastkpca.solve.sampled import ScaledSample, sampled_bound, upper_share


@pytest.mark.parametrize("family", FAMILIES)
def test_the_bound_fails_no_more_often_than_it_says(attack, family):
    problems = attack.count(20000, least=1000)
    misses = sum(
        cases.bound_misses(rng, FAMILIES[family](rng), 0.05)[0]
        for rng in (attack.rng(f"loose {family}", case) for case in range(problems))
    )
    # five per cent, and what chance adds to it with so few problems
    assert misses <= 0.05 * problems + 4 * np.sqrt(0.05 * problems)


@pytest.mark.parametrize("family", CALLS)
@pytest.mark.parametrize("moved", [False, True])
def test_kpca_with_few_features_fails_no_more_often_than_it_says(attack, family, moved, monkeypatch):
    if moved:  # pivots to means of rows, also where the rows are few
        monkeypatch.setattr(offers, "MEANS_FROM", 0)
    found = [
        cases.call_misses(CALLS[family](attack.rng(f"loose {family}", case), 120), case, 0.05)
        for case in range(attack.count(4000, least=80))
    ]
    probabilistic = sum(may_fail for _, may_fail in found)
    assert probabilistic > len(found) / 10
    assert sum(missed for missed, _ in found) <= 0.05 * probabilistic + 4 * np.sqrt(0.05 * probabilistic)


@pytest.mark.parametrize("draws", [1, 10, 3000, 10**6])
def test_upper_share_is_where_the_divergence_meets_the_failure(draws):
    x = np.linspace(0, 1, 11)
    q = upper_share(x, draws, 1e-6)
    assert (q >= x).all() and (np.diff(q) >= 0).all() and q[-1] == 1.0
    for at, sign in ((q, 1), (q * (1 - 4e-9), -1)):  # it is rounded up, and by no more than that
        inside = (x > 0) & (at < 1) & (at > x)
        p, r = x[inside], at[inside]
        kl = p * np.log(p / r) + (1 - p) * np.log((1 - p) / (1 - r))
        assert (sign * (draws * kl - np.log(1e6)) >= -1e-6).all()
    np.testing.assert_allclose(q[0], 1 - 1e-6 ** (1 / draws), rtol=1e-6)


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
            if q < 1:
                divergence = (p * mpmath.log(p / q) if p else 0) + (1 - p) * mpmath.log((1 - p) / (1 - q))
                assert divergence >= allowed


def test_no_better_than_the_trace_is_the_trace_for_certain():
    bound = sampled_bound(3.0, ScaledSample(np.ones((1, 1)), 1, 0.0), 1e-6)
    assert (bound.mu, bound.failure_probability) == (3.0, 0.0)
    bound = sampled_bound(3.0, ScaledSample(np.eye(100), 100, 0.0), 1e-6)
    assert 0.0 < bound.mu < 3.0 and bound.failure_probability == 1e-6
