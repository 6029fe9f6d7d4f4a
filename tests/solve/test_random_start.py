"""Upper ends for all eigenvalues from the random block that a Krylov space began with."""

from __future__ import annotations

import intervals
import numpy as np
import pytest
from dense_products import DenseProduct
from reference import with_eigenvalues

from fastkpca.products.implicit import KernelMatrix
from fastkpca.solve.block_krylov import block_krylov
from fastkpca.solve.complement import exploration_bound, lanczos_failure_epsilon
from fastkpca.solve.random_start import GaussianStart
from fastkpca.solve.task import SolverBudget, SolverTarget

SPECTRA = {
    "flat": lambda rng, n: 1.0 - 0.3 * np.arange(n) / n,
    "one value": lambda rng, n: np.ones(n),
    "half zero": lambda rng, n: np.r_[np.ones(n // 2), np.zeros(n - n // 2)],
    "cluster at the top": lambda rng, n: np.r_[1.0 + 1e-9 * rng.random(7), 0.97 * rng.random(n - 7)],
    "pairs": lambda rng, n: np.repeat(np.sort(rng.random((n + 1) // 2))[::-1], 2)[:n],
    "geometric": lambda rng, n: 0.7 ** np.arange(n),
    "one alone": lambda rng, n: np.r_[1.0, np.full(n - 1, 0.9)],
    "steps": lambda rng, n: np.floor(6 * rng.random(n)) / 6,
}


def krylov_ritz_values(values: np.ndarray, block: np.ndarray, steps: int) -> list[np.ndarray]:
    """After 1, 2, ... steps, of a diagonal matrix: in its eigenbasis a Gaussian block is a Gaussian block."""
    n = len(values)
    Q = np.linalg.qr(block)[0]
    last, ritz = Q, []
    for _ in range(steps):
        ritz.append(np.linalg.eigvalsh(Q.T @ (values[:, None] * Q))[::-1])
        last = values[:, None] * last
        for _ in range(2):
            last = last - Q @ (Q.T @ last)
        if Q.shape[1] + last.shape[1] > n:
            break
        last = np.linalg.qr(last)[0]
        last = np.linalg.qr(last - Q @ (Q.T @ last))[0]
        Q = np.hstack([Q, last])
    return ritz


def missed(family: str, seed: int, failure: float, shrink: float = 1.0) -> bool:
    """Is any eigenvalue, after any number of steps, above its bound? All of them rest on one event."""
    rng = np.random.default_rng(seed)
    n, b = int(rng.integers(12, 90)), int(rng.integers(2, 8))
    values = np.sort(SPECTRA[family](rng, n))[::-1]
    block = rng.standard_normal((n, b))
    start = GaussianStart(block, failure)
    start._log_constant = start._log_constant + np.log(shrink)
    for k, theta in enumerate(krylov_ritz_values(values, block, 10), start=1):
        ends = start.eigenvalue_bounds(theta, k, 1e-12)
        if np.any(ends < values[: len(ends)] - 1e-12):
            return True
    return False


@pytest.mark.parametrize("family", SPECTRA)
def test_misses_are_rarer_than_stated(family):
    count = 40
    misses = sum(missed(family, seed, 0.05) for seed in range(count))
    # three standard deviations above one in twenty
    assert misses <= 0.05 * count + 3 * np.sqrt(0.05 * 0.95 * count)
    assert not any(missed(family, seed, 1e-6) for seed in range(10))


def test_the_attack_would_see_a_bound_that_is_too_small():
    assert max(np.mean([missed(x, seed, 0.05, shrink=0.01) for seed in range(30)]) for x in SPECTRA) > 0.3


def test_the_bounds_are_those_of_their_formulas():
    """Chen and Dongarra's tail, and both bounds with the Chebyshev polynomial written out."""
    block, failure, spare, degree = np.random.default_rng(0).standard_normal((50, 2)), 1e-3, np.array([2.0, 1.0]), 8
    start = GaussianStart(block, failure)
    C = np.exp(start._log_constant)
    tail = (np.e * np.sqrt(2.0) / spare * np.linalg.norm(block, 2) / C) ** spare / np.sqrt(2.0 * np.pi * spare)
    np.testing.assert_allclose(tail, failure / 2, rtol=1e-6)
    e = 1.0 - 1.0 / start.eigenvalue_bounds(np.ones(2), degree + 1, 0.0)[0]
    assert C[0] / np.cosh(degree * np.arccosh((1 + e) / (1 - e))) == pytest.approx(np.sqrt(e / (1 - e)), rel=1e-6)
    first, gamma = start.eigenvalue_bounds(np.array([1.0, 0.4]), degree + 1, 0.0)
    assert first - 1.0 == pytest.approx((C[0] / np.cosh(degree * np.arccosh(2.0 / gamma - 1.0))) ** 2, rel=1e-6)


def test_bounds_close_in():
    rng = np.random.default_rng(3)
    values = 1.0 - 0.4 * np.arange(400) / 400
    block = rng.standard_normal((400, 20))
    start = GaussianStart(block, 1e-6)
    ritz = krylov_ritz_values(values, block, 16)
    excess = [start.eigenvalue_bounds(theta, k, 0.0)[0] / values[0] - 1 for k, theta in enumerate(ritz, start=1)]
    assert excess[0] == np.inf and np.all(np.diff(excess[3:]) < 0) and excess[-1] < 0.08


def test_a_gap_brings_the_bounds_below_it_much_closer():
    rng = np.random.default_rng(4)
    values = np.r_[np.linspace(1.0, 0.95, 10), 0.8 - 0.3 * np.arange(590) / 590]
    block = rng.standard_normal((600, 25))
    start = GaussianStart(block, 1e-6)
    theta = krylov_ritz_values(values, block, 14)[-1]
    ends = start.eigenvalue_bounds(theta, 14, 0.0)
    assert np.all(ends[:10] < values[:10] + 5e-3) and ends[10] > 1.03 * values[10]


def test_an_exploration_fails_as_rarely_as_it_says():
    """Kuczynski and Wozniakowski's bound, by one random start, against the frequency of failure."""
    n, k, p, rng = 400, 6, 0.2, np.random.default_rng(0)
    asked = {"order": n, "starts": 1, "stops": 1, "failure": p}
    values = np.linspace(0, 1, n) ** 8
    largest = [krylov_ritz_values(values, rng.standard_normal((n, 1)), k)[-1][0] for _ in range(300)]
    assert np.mean([exploration_bound(x, steps=k, lowest=0.0, **asked).mu < 1.0 for x in largest]) <= p
    assert np.isinf(exploration_bound(1.0, steps=0, lowest=0.0, **asked).mu)
    # of five starts; and an indefinite matrix: the bound is relative to the whole spread
    eps = lanczos_failure_epsilon(n, k, 1, p)
    assert 1.648 * np.sqrt(n) * np.exp(-np.sqrt(eps) * (2 * k - 1)) <= p * (1.0 + 1e-9)  # as the theorem has it
    assert lanczos_failure_epsilon(n, k, 5, p) < eps
    indefinite = exploration_bound(1.0, steps=k, lowest=-2.0, **asked).mu
    assert indefinite == pytest.approx((1 + 2.0 * eps) / (1 - eps))


def test_nothing_is_said_of_one_step_or_of_zeros():
    start = GaussianStart(np.random.default_rng(0).standard_normal((30, 5)), 1e-6)
    assert np.all(start.eigenvalue_bounds(np.ones(5), 1, 0.0) == np.inf)
    assert np.all(start.eigenvalue_bounds(np.zeros(5), 4, 0.0) <= 1e-300)


def test_flat_spectrum_that_a_random_block_proves():
    """Trace and norm of the matrix prove nothing, and no entries are given that could be factorised."""
    values = np.r_[1.0, 0.9, 0.8, 0.7, 0.4 * (1.0 - 0.2 * np.arange(1495) / 1500)]
    K = with_eigenvalues(np.random.default_rng(0), values, centred=True)
    product = DenseProduct(K)
    product.gives_norm = False
    matrix = KernelMatrix(product, None, float(np.trace(K)), True)
    found = block_krylov(matrix, SolverTarget(4, 1e-4, failure=1e-6), SolverBudget(30), rng=0)
    intervals.hold(found.certificate, values, 1e-13, tol=1e-4)
    assert found.certificate.bound_kind == "probabilistic" and 0 < found.certificate.failure_probability <= 1e-6
