"""Bisection for the largest eigenvalues of a tridiagonal matrix, against counts in 60 digits."""

from __future__ import annotations

import numpy as np
import pytest

from fastkpca._core.tridiagonal import largest_eigenvalues

mpmath = pytest.importorskip("mpmath")

MATRICES = {
    "random": lambda rng, n: (rng.standard_normal(n), rng.standard_normal(n - 1)),
    "diagonal": lambda rng, n: (rng.standard_normal(n), np.zeros(n - 1)),
    "all equal": lambda rng, n: (np.ones(n), np.zeros(n - 1)),
    "pivots of zero": lambda rng, n: (np.zeros(n), np.ones(n - 1)),
    "Wilkinson": lambda rng, n: (np.abs(np.arange(n) - n // 2) * 1.0, np.ones(n - 1)),
    "hardly coupled": lambda rng, n: (rng.integers(0, 3, n) * 1.0, 10.0 ** rng.uniform(-300, -10, n - 1)),
    "graded": lambda rng, n: (10.0 ** -np.arange(0, 1.5 * n, 1.5), 10.0 ** -np.arange(1, 1.5 * (n - 1) + 1, 1.5)),
    "negative": lambda rng, n: (-1.0 - rng.random(n), 0.1 * rng.random(n - 1)),
}


def count_below(d, e, x):
    """Eigenvalues below x, from the signs of pivots in 60 digits."""
    pivot, count = mpmath.mpf(1), 0
    for i, entry in enumerate(d):
        pivot = entry - x - (mpmath.mpf(e[i - 1]) ** 2 / pivot if i else 0)
        pivot = pivot or mpmath.mpf(10) ** -50
        count += pivot < 0
    return count


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("n", [2, 3, 14, 25])
def test_eigenvalues_lie_where_exact_counts_say(name, n, attack):
    rng = attack.rng(name, n)
    d, e = (np.ascontiguousarray(x, dtype=float) for x in MATRICES[name](rng, n))
    scale = max(np.abs(d).max(), np.abs(e).max())
    d, e = d / scale, e / scale
    slack = 3e-15 * (1.0 + 0.1 * n)
    for c in {1, 2, n // 2 + 1, min(n, 13), n}:
        values = largest_eigenvalues(d, e, c)
        assert (np.diff(values) >= -slack).all()
        for number, value in zip(range(n - c, n), values):  # so many lie below it
            with mpmath.workdps(60):
                below, above = (count_below(d, e, mpmath.mpf(value) + s * slack) for s in (-1, 1))
            assert below <= number < above


@pytest.mark.parametrize("n", [100, 700])
@pytest.mark.parametrize("c", [1, 11, 12, 13, 40])
def test_eigenvalues_are_those_of_lapack(n, c):
    rng = np.random.default_rng(n + c)
    d, e = rng.random(n), 0.5 * rng.random(n - 1)
    exact = np.linalg.eigvalsh(np.diag(d) + np.diag(e, 1) + np.diag(e, -1))[-c:]
    assert np.abs(largest_eigenvalues(d, e, c) - exact).max() <= 2e-14
