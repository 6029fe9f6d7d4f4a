"""Intervals of second order: proved inequalities, dense references, planted worst cases, and a share of the attack."""

import numpy as np
import pytest
import second_order_cases as cases

from fastkpca.solve import second_order as so
from fastkpca.solve.certificate import Bound


def outside(bounds, true):
    return cases.missed(bounds, true, float(true[0]))


def problem_of(rng, n=120, D=12, q=4, c=3, k=8, scale=0.01, center=True):
    """A map with eigenvalues 1, 1/2, 1/3, ... and |R| about ``scale``."""
    V = np.linalg.qr(rng.standard_normal((n, D)) - 0.0)[0]
    if center:
        V = np.linalg.qr(V - V.mean(axis=0))[0]
    B = rng.standard_normal((n, q))
    return cases.Problem(V / np.sqrt(np.arange(1.0, D + 1)), B * np.sqrt(scale) / np.linalg.norm(B, 2), c, k, center)


def test_the_worst_remainder_reaches_the_upper_end():
    """B = nu times a projector is what A, nu and theta leave open: no smaller end is right."""
    n, a, nu, theta = 40, 0.3, 1.0, np.array([5.0, 1.0])
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((n, 3)))[0]
    b = np.sqrt(a) * Q[:, 0] + np.sqrt(1 - a) * Q[:, 1]  # the second direction has the map's next eigenvalue
    problem = cases.Problem(Q[:, :2] * np.sqrt(theta), np.sqrt(nu) * b[:, None], 1, 1, center=False)
    found, _, _ = cases.known(problem)
    np.testing.assert_allclose(found.certificate.eigenvalue_bounds[0, 1], problem.true[0], rtol=1e-8)


def test_inclusion():
    weights = np.array([100.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    np.testing.assert_allclose(so.inclusion(weights, 3), [1, 0.5, 0.5, 0.5, 0.5, 0])
    np.testing.assert_allclose(so.inclusion(weights, 1), weights / weights.sum(), rtol=1e-12)
    for count in (5, 6, 10**6):
        assert (so.inclusion(weights, count) == [1, 1, 1, 1, 1, 0]).all()
    assert (so.inclusion(np.zeros(3), 2) == 0).all()
    rare = so.inclusion(np.array([1.0, 1.0, 1e-300]), 1)
    assert 0 < rare[2] <= 2e-8  # never so rare that no random number means it


@pytest.mark.parametrize("count", [197, 200])
def test_errors_of_rows_are_counted(attack, count):
    """Rows of float32, or of a map that errs: with their error the intervals hold, without it they need not."""
    rng = attack.rng("row errors")
    problem = problem_of(rng, n=200)
    leading, V = problem.leading()
    r = np.einsum("ij,ij->i", problem.B, problem.B)
    plan = so.sampling(leading, 3, V, r, count, 1e-6)
    index = plan.draw(rng)
    wrong = np.outer(np.linalg.norm(V[index], axis=1), np.eye(8)[0]) * 1e-3 * np.sign(V[index, :1])
    rows, error = problem.R[index] @ V + wrong, np.linalg.norm(wrong, axis=1)
    silent = so.sampled_certificate(leading, 3, plan, index, V[index], rows)
    told = so.sampled_certificate(leading, 3, plan, index, V[index], rows, error)
    assert outside(silent.certificate.eigenvalue_bounds, problem.true)
    assert not outside(told.certificate.eigenvalue_bounds, problem.true)


def test_probabilities_add_up(attack):
    problem = problem_of(attack.rng("failures"))
    leading, V = problem.leading(form="sampled", failure=1e-3)
    assert leading.norm == Bound(leading.norm.mu, "sampled", 1e-3)
    plan = so.sampling(leading, 3, V, (problem.B**2).sum(axis=1), 115, 1e-4)
    index = plan.draw(attack.rng("failures", 1))
    found = so.sampled_certificate(leading, 3, plan, index, V[index], problem.R[index] @ V)
    assert found.certificate.width < leading.first.first(3).width
    assert found.certificate.failure_probability == pytest.approx(1.1e-3)
    assert so.known_certificate(leading, 3, V.T @ problem.R @ V).certificate.failure_probability == 1e-3
    assert so.outside_leading(leading).failure_probability == 1e-3
