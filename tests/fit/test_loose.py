"""A loose tolerance: what a feature map leaves out is bounded by a sample of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from reference import center

import fastkpca as fk
from fastkpca.kernels import get_kernel
from fastkpca.maps.draws import scaled_residuals
from fastkpca.maps.passes import moments_and_draws
from fastkpca.maps.pivots import PivotMap
from fastkpca.rows.view import Rows
from fastkpca.solve import sampled


def rows_of(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def eigenvalues_of(X, model, weights=None):
    K = model.kernel.block(X, X)
    if weights is None:
        return np.linalg.eigvalsh(center(K).astype(np.float64))[::-1]
    root = np.sqrt(weights)
    P = np.eye(len(X)) - np.outer(root, root) / weights.sum()
    return np.linalg.eigvalsh(P @ (root[:, None] * K * root) @ P)[::-1]


def contains(model, true, slack=1e-9):
    low, high = model.eigenvalue_bounds.T
    true = true[: len(low)]
    return bool((low <= true * (1 + slack)).all() and (true * (1 - slack) <= high).all())


def test_a_loose_tolerance_is_met_with_a_sample_and_no_warning():
    X = rows_of(3000, 6)
    model = fk.kpca(X, "gaussian", 4, tol=1e-2, features="pivots")
    low, high = model.eigenvalue_bounds.T
    assert (high - low).max() <= 1e-2 * model.eigenvalues[0]
    assert model.bound_kind == "probabilistic" and 0 < model.failure_probability <= 1e-6
    assert model.info["residual_norm"] < 0.2 * model.info["residual_trace"]
    assert contains(model, eigenvalues_of(X - model.shift, model))


def test_weights_count_in_the_sample():
    X, rng = rows_of(1500, 5), np.random.default_rng(1)
    weights = 10.0 ** rng.uniform(-6, 1, len(X)) * (rng.random(len(X)) > 0.1)
    model = fk.kpca(X, "gaussian", 3, sigma=2.0, tol=2e-2, features="pivots", sample_weight=weights)
    assert contains(model, eigenvalues_of(X - model.shift, model, weights))


@pytest.mark.parametrize("weighted", [False, True])
def test_draws_follow_the_residual(weighted):
    X = rows_of(40_000, 3)
    rows = Rows(X).weighted(np.random.default_rng(2).random(len(X)) if weighted else None)
    chosen = PivotMap(get_kernel("gaussian", sigma=1.0), X[:20])
    moments, draws = moments_and_draws(chosen, rows, np.random.default_rng(3), n_draws=200_000)
    residual = chosen.residual(X) * (rows.weights if weighted else 1.0)
    np.testing.assert_allclose(draws.total, residual.sum(), rtol=1e-12)
    np.testing.assert_allclose(draws.total, moments.residual_trace, rtol=1e-12)
    np.testing.assert_allclose(draws.residual, residual[draws.index], rtol=1e-9)
    # in groups of rows, by their number and by their residual
    for groups in (np.arange(len(X)) // 4000, np.argsort(np.argsort(residual)) // 4000):
        expected = np.bincount(groups, residual) / residual.sum() * len(draws.index)
        found = np.bincount(groups[draws.index], minlength=len(expected))
        assert (np.abs(found - expected) <= 5 * np.sqrt(expected) + 5).all()


def test_draws_are_the_same_at_any_number_of_threads():
    X = rows_of(60_000, 3)
    chosen = PivotMap(get_kernel("gaussian", sigma=1.0), X[:300])
    one, two = (moments_and_draws(chosen, Rows(X), np.random.default_rng(3), n_threads=t)[1] for t in (1, 2))
    assert np.array_equal(one.index, two.index) and one.total == two.total


@pytest.mark.parametrize("sigma, d", [(0.5, 3), (2.0, 3), (20.0, 3), (1.0, 10)])
def test_error_of_the_scaled_residuals_is_bounded(sigma, d):
    X = rows_of(700, d)
    kernel = get_kernel("gaussian", sigma=sigma)
    chosen = PivotMap(kernel, X[:60])
    residual, counts = chosen.residual(X), np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    found, error = scaled_residuals(kernel, chosen, X, residual, counts, 0.0)
    # the semidefinite matrix that the shift of the factor leaves, in extended precision
    L = chosen.factor.astype(np.longdouble)
    K = np.exp(-((X[:, None] - X).astype(np.longdouble) ** 2).sum(axis=2) / (2 * np.longdouble(sigma) ** 2))
    Phi = K[:60].copy()
    for i in range(60):
        Phi[i] = (Phi[i] - L[i, :i] @ Phi[:i]) / L[i, i]
    scale = np.sqrt(counts / residual)
    exact = (K - Phi.T @ Phi) * scale[:, None] * scale
    assert np.linalg.norm((found - exact).astype(np.float64), 2) <= error


def test_a_zero_residual_needs_no_sample():
    X = np.repeat(rows_of(12, 3), 50, axis=0)
    model = fk.kpca(X, "gaussian", 3, tol=1e-2, features="pivots")
    assert model.bound_kind == "guaranteed" and contains(model, eigenvalues_of(X - model.shift, model))


def test_a_failure_of_two_in_a_million_is_not_exceeded_by_many_tries(monkeypatch):
    seen = []
    bound = sampled.sampled_bound
    monkeypatch.setattr(sampled, "sampled_bound", lambda *args: seen.append(args[2]) or bound(*args))
    monkeypatch.setattr(fk.fit.features._Pass, "misses", lambda self, target: True)
    model = fk.kpca(rows_of(2000, 6), "gaussian", 3, tol=3e-2, features="pivots", memory_limit="200MB")
    assert len(seen) > 1 and sum(seen) <= sampled.FAILURE == model.failure_probability
