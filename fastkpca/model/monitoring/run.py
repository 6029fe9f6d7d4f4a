"""Test martingale over conformal p-values: evidence that a run of rows differs from the normal ones.

If the rows of the limits and the new ones are exchangeable, it ever exceeds 100 in fewer than 1 % of all runs.
"""

from __future__ import annotations

import numpy as np

RUN_RATE = 0.01
"""Largest fraction of runs of normal rows that raise an alarm."""
BET_EXPONENTS = np.array([0.1, 0.25, 0.5, 0.7, 0.85, 0.95])
"""Exponents e of the bets: a smaller one wins more by the smallest p-values, and loses more by all others."""
BLOCK_ROWS = 512
MOST_EVIDENCE = 1e250


def run_evidence(normal: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Evidence after each new row that the run differs from the normal rows; the alarm is raised at 1 / ``RUN_RATE``.

    Parameters
    ----------
    normal, new : ndarray (n, s), (m, s)
        The statistics of both.

    Returns
    -------
    ndarray (m,)

    Notes
    -----
    The p-value of a row is its rank, from the top, among the normal rows and all rows up to itself, over their number;
    equal ones share ranks at random. Such p-values are independent and uniform for exchangeable rows (Vovk, Gammerman
    & Shafer, Algorithmic learning in a random world, 2005). Those by a fixed set of normal rows are not independent:
    all new rows are compared with the same set.

    A bet multiplies its capital by e p^(e - 1), whose mean is 1 for a uniform p. The capital 1 is spread over six e and
    over the rows from which on the bets are placed: what is not yet placed after n rows is 1 / (1 + log(1 + n)). So a
    change after many rows is found nearly as soon as an early one. The sum is a martingale with mean 1, which ever
    reaches 1 / r with probability r at most (Ville 1939). Of s statistics the largest sum counts, over s.
    """
    p = np.column_stack([p_values(a, b, i) for i, (a, b) in enumerate(zip(normal.T, new.T))])
    m, s = p.shape
    factors = BET_EXPONENTS * np.maximum(p, np.finfo(float).tiny)[:, :, None] ** (BET_EXPONENTS - 1.0)
    left = 1.0 / (1.0 + np.log1p(np.arange(m + 1)))
    capital, evidence = np.zeros((s, len(BET_EXPONENTS))), np.empty(m)
    for i, placed in enumerate((left[:-1] - left[1:]) / len(BET_EXPONENTS)):
        capital = np.minimum((capital + placed) * factors[i], MOST_EVIDENCE)
        evidence[i] = capital.sum(axis=1).max()
    return (evidence + left[1:]) / s


def p_values(normal: np.ndarray, new: np.ndarray, seed: int = 0) -> np.ndarray:
    """The p-value of each new row among the normal rows and the new ones up to it; the seed is of equal ones."""
    theta, before, parts = np.random.default_rng(seed).random(len(new)), np.sort(normal), []
    for start in range(0, len(new), BLOCK_ROWS):
        block = new[start : start + BLOCK_ROWS]
        upto = np.tri(len(block), dtype=bool)
        larger = len(before) - np.searchsorted(before, block, side="right")
        equal = len(before) - np.searchsorted(before, block, side="left") - larger
        larger = larger + ((block > block[:, None]) & upto).sum(axis=1)
        equal = equal + ((block == block[:, None]) & upto).sum(axis=1)
        count = len(normal) + start + 1.0 + np.arange(len(block))
        parts.append((larger + theta[start : start + len(block)] * equal) / count)
        before = np.sort(np.concatenate([before, block]), kind="stable")
    return np.concatenate(parts or [np.zeros(0)])
