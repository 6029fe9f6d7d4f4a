"""Bounds on means of bounded numbers: against distributions that are made to break them, and the exact binomial."""

import numpy as np
import pytest
from scipy import stats

from fastkpca.base.confidence import ratio_bounds
from fastkpca.solve.sampled import upper_share


def bounds(x, delta, mean=0.5, variance=0.25):
    x = np.atleast_2d(x)
    one = np.ones_like(x)
    return ratio_bounds(x, x, one, one, delta, mean, variance)


LAWS = {
    "two points": lambda rng, shape: (rng.random(shape) < 0.5).astype(float),
    "rarely one": lambda rng, shape: (rng.random(shape) < 0.02).astype(float),
    "rarely zero": lambda rng, shape: (rng.random(shape) < 0.98).astype(float),
    "narrow": lambda rng, shape: 0.3 + 0.02 * rng.random(shape),
    "skewed": lambda rng, shape: rng.beta(0.05, 1.0, shape),
}
MEANS = {"two points": 0.5, "rarely one": 0.02, "rarely zero": 0.98, "narrow": 0.31, "skewed": 0.05 / 1.05}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [10, 300])
def test_each_bound_fails_no_more_often_than_stated(law, n, attack):
    rng, delta, draws = attack.rng(f"confidence {law} {n}"), 0.1, attack.count(20_000)
    # first stakes that are as wrong as can be, too
    priors = [(0.5, 0.25), (0.99, 1e-4), (0.01, 1e-4)]
    low, high = np.array([bounds(LAWS[law](rng, n), delta, *priors[i % 3]) for i in range(draws)]).T
    allowed = stats.binom.ppf(1 - 1e-6, draws, delta) / draws
    assert np.mean(low > MEANS[law]) <= allowed
    assert np.mean(high < MEANS[law]) <= allowed


def test_orders_of_the_same_terms_are_no_more_evidence():
    rng, n = np.random.default_rng(0), 200
    x = (rng.random(n) < 0.5).astype(float)
    one, many = bounds(x, 0.025), bounds(np.stack([rng.permutation(x) for _ in range(16)]), 0.025)
    # as sixteen times as many terms would give: a quarter of the width
    assert 0.8 < (many[1] - many[0]) / (one[1] - one[0]) < 1.2


def test_narrow_numbers_have_narrow_bounds():
    """As the variance allows, and not the range: a tenth of what Hoeffding's bound allows."""
    x = 0.3 + 0.01 * np.random.default_rng(1).random(2000)
    low, high = bounds(x, 0.025)
    assert low < 0.305 < high and high - low < 0.1 * 2 * np.sqrt(np.log(1 / 0.025) / (2 * 2000))


def test_ratio_is_that_of_the_means_and_not_the_mean_of_ratios():
    rng = np.random.default_rng(2)
    b = np.where(rng.random((1, 5000)) < 0.5, 1.0, 0.01)
    a = np.where(b == 1.0, 0.2, 0.01)
    low, high = ratio_bounds(a, a, b, b, 0.025, 0.5, 0.25)
    assert low < 0.21 / 1.01 < high < 0.3  # the mean of a / b is 0.6


@pytest.mark.parametrize("n", [1, 5, 50, 2000])
@pytest.mark.parametrize("mean", [0.001, 0.1, 0.5, 0.99])
def test_upper_share_fails_no_more_often_than_stated(n, mean):
    """Exactly: the probability of the counts whose bound lies below the mean."""
    for delta in (0.3, 0.025, 1e-6):
        counts = np.arange(n + 1)
        chance = stats.binom.pmf(counts, n, mean)
        below = np.array([upper_share(k / n, n, delta) < mean for k in counts])
        assert chance[below].sum() <= delta * (1 + 1e-9)
