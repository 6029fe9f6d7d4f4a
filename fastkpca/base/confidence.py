"""Confidence bounds on means of bounded numbers, valid for every sample size and every distribution."""

from __future__ import annotations

import numpy as np

MAX_STAKE = 0.75
"""Fraction of the wealth at stake in one bet, at most (Waudby-Smith and Ramdas 2024, section 4.2)."""
PRIOR_COUNT = 4.0
"""Number of terms that the prior mean and variance count for, in the estimates that bets are made by."""
HALVINGS = 24
"""Halvings of the interval in which a bound is searched: to 1e-7, far below any width."""


def ratio_bounds(
    low: np.ndarray,
    high: np.ndarray,
    below: np.ndarray,
    above: np.ndarray,
    delta: float,
    mean: float,
    variance: float,
) -> tuple[float, float]:
    r"""Bounds on E[a] / E[b] of 0 <= a <= b <= 1, each of which fails with probability ``delta`` at most.

    A gambler who stakes lambda_t, chosen before a_t and b_t are seen, has the wealth

    .. math:: K_n(r) = \prod_t (1 + \lambda_t (a_t - r b_t)), \quad 0 \le \lambda_t \le 0.75 / r,

    a martingale where E[a] = r E[b], and a supermartingale where the ratio is smaller: K_n(r) >= 1 / delta with
    probability delta at most (Markov). It decreases with r, so the largest r that it refutes is the lower bound. The
    upper bound is that of b - a, whose ratio is 1 - r. The average of the wealths over orders of the same terms has the
    same expectation. Stakes are those for a fixed number of terms, sqrt(2 log(1 / delta) / (n v)) with v the variance
    so far. See Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, JRSS B 2024, section
    4.

    Parameters
    ----------
    low, high : ndarray (o, n)
        Bounds on a, in o orders, each of independent terms.
    below, above : ndarray (o, n)
        Bounds on b.
    delta : float
    mean, variance : float
        Mean and variance of a - mean * b, as far as they are known from other rows: they set the first stakes, not the
        confidence.
    """
    return (
        _lower(low, above, delta, mean, variance),
        1.0 - _lower(below - high, above, delta, 1.0 - mean, variance),
    )


def _lower(a: np.ndarray, b: np.ndarray, delta: float, mean: float, variance: float) -> float:
    """The largest r in [0, 1] that the average wealth refutes; 0 where it refutes none."""
    n = a.shape[1]
    count = PRIOR_COUNT + np.arange(n)
    # estimates before each term is seen
    ratio = (PRIOR_COUNT * mean + _before(a)) / (PRIOR_COUNT + _before(b))
    spread = (PRIOR_COUNT * variance + _before((a - ratio * b) ** 2)) / count
    stakes = np.sqrt(2.0 * np.log(1.0 / delta) / (n * np.maximum(spread, np.finfo(np.float64).tiny)))

    def refuted(r: float) -> bool:
        bets = np.log1p(np.minimum(stakes, MAX_STAKE / r) * (a - r * b)).sum(axis=1)
        return float(np.logaddexp.reduce(bets)) - np.log(len(bets)) >= -np.log(delta)

    refuted_end, end = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (refuted_end + end)
        refuted_end, end = (middle, end) if refuted(middle) else (refuted_end, middle)
    return refuted_end


def _before(terms: np.ndarray) -> np.ndarray:
    """Sums of the terms before each one."""
    sums = np.zeros_like(terms)
    np.cumsum(terms[:, :-1], axis=1, out=sums[:, 1:])
    return sums
