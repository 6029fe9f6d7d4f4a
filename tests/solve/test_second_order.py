"""Intervals of second order: proved inequalities, dense references, planted worst cases, and a share of the attack."""

from __future__ import annotations

import numpy as np
import pytest
import second_order_cases as cases

from fastkpca.solve import second_order as so
from fastkpca.solve.certificate import Bound, FeatureSums, feature_certificate


def outside(bounds, true):
    return cases.missed(bounds, true, float(true[0]))


def problem_of(rng, n=120, D=12, q=4, c=3, k=8, scale=0.01, center=True):
    """A map with eigenvalues 1, 1/2, 1/3, ... and |R| about ``scale``."""
    V = np.linalg.qr(rng.standard_normal((n, D)) - 0.0)[0]
    if center:
        V = np.linalg.qr(V - V.mean(axis=0))[0]
    B = rng.standard_normal((n, q))
    return cases.Problem(V / np.sqrt(np.arange(1.0, D + 1)), B * np.sqrt(scale) / np.linalg.norm(B, 2), c, k, center)


@pytest.mark.parametrize("center", [True, False])
def test_the_order_of_the_intervals(attack, center):
    """First order |R|; A alone |R| |A| / gap; a pass less than that. Its Ritz values are within their own interval."""
    problem = problem_of(attack.rng("order"), q=40, center=center)
    true = problem.true
    passed, leading, _ = cases.passed(problem, single=False)
    known = cases.known(problem)[0]
    first = leading.first.first(3)
    single = cases.passed(problem, single=True)[0]
    assert passed.width < 0.7 * known.certificate.width < 0.05 * first.width
    assert passed.width < single.width < 1e-3
    for found in (first, passed, known.certificate, single):
        assert not outside(found.eigenvalue_bounds, true)
    assert known.gained and abs(known.eigenvalues - true[:3]).max() < 0.1 * abs(leading.theta[:3] - true[:3]).max()


def test_the_worst_remainder_reaches_the_upper_end():
    """B = nu times a projector is what A, nu and theta leave open: no smaller end is right."""
    n, a, nu, theta = 40, 0.3, 1.0, np.array([5.0, 1.0])
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((n, 3)))[0]
    b = np.sqrt(a) * Q[:, 0] + np.sqrt(1 - a) * Q[:, 1]  # the second direction has the map's next eigenvalue
    problem = cases.Problem(Q[:, :2] * np.sqrt(theta), np.sqrt(nu) * b[:, None], 1, 1, center=False)
    found, _, _ = cases.known(problem)
    np.testing.assert_allclose(found.certificate.eigenvalue_bounds[0, 1], problem.true[0], rtol=1e-8)


def test_all_rows_are_the_pass_and_more_rows_are_never_much_worse(attack):
    rng = attack.rng("rows")
    problem = problem_of(rng, n=400)
    known, leading, V = cases.known(problem)
    known, widths = known.certificate.width, []
    for count in (20, 100, 200, 320, 400):
        r = np.einsum("ij,ij->i", problem.B, problem.B)
        plan = so.sampling(leading, 3, V, r, count, 1e-2)
        index = plan.draw(rng)
        assert abs(len(index) - count) <= 5 * np.sqrt(count) and plan.probabilities.sum() <= count + 1e-6
        found = so.sampled_certificate(leading, 3, plan, index, V[index], problem.R[index] @ V)
        widths.append(found.certificate.width)
        assert found.certificate.failure_probability == (1e-2 if found.gained else 0.0)
    np.testing.assert_allclose(widths[-1], known, rtol=1e-6)
    assert (np.diff(widths) <= 0.1 * widths[0]).all() and widths[-1] < 0.05 * widths[0]


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


def test_where_nothing_is_gained_the_first_order_stays(attack):
    """mu above the eigenvalues that are asked for, or a few rows: theta and theta + |R|, and the map's own vectors."""
    rng = attack.rng("nothing gained")
    problem = problem_of(rng, n=100)
    leading, V = problem.leading(slack=1e3)
    first = leading.first.first(3)
    r = np.einsum("ij,ij->i", problem.B, problem.B)
    plan = so.sampling(leading, 3, V, r, 3, 1e-6)
    index = plan.draw(rng)
    found = so.sampled_certificate(leading, 3, plan, index, V[index], problem.R[index] @ V)
    assert not found.gained
    np.testing.assert_array_equal(found.certificate.eigenvalue_bounds, first.eigenvalue_bounds)
    np.testing.assert_array_equal(found.rotation, np.eye(8)[:, :3])
    # all rows: the lower ends gain although mu is above everything
    whole = cases.known(problem, slack=1e3)[0].certificate.eigenvalue_bounds
    assert (whole[:, 0] > first.eigenvalue_bounds[:, 0]).all()
    assert (whole[:, 1] <= first.eigenvalue_bounds[:, 1]).all()


def test_two_rows_and_rows_that_leave_nothing_out(attack):
    rng = attack.rng("two rows")
    problem = cases.Problem(np.array([[1.0], [-1.0]]), np.array([[0.3], [0.1]]), 1, 1)
    for count in (1, 2):
        found = cases.sampled(rng, problem, 1e-2, count)[0]
        assert not outside(found.certificate.eigenvalue_bounds, problem.true)
    problem = problem_of(rng, n=80)
    problem.B[10:] = 0.0  # r_i = 0: never drawn, and nothing is missed
    leading, V = problem.leading()
    plan = so.sampling(leading, 3, V, (problem.B**2).sum(axis=1), 10, 1e-6)
    assert (plan.draw(rng) == np.arange(10)).all()
    found = cases.sampled(rng, problem, 1e-6, 10)[0]
    assert not outside(found.certificate.eigenvalue_bounds, problem.true)


def test_rounding_of_the_maps_vectors_is_counted(attack):
    """The smallest of the map's eigenvalues is 1e-7 of the largest: its vector is far from exact."""
    rng = attack.rng("wide spectrum")
    V = cases._vectors(rng, 150, 6)
    problem = cases.Problem(V * 10.0 ** -np.arange(0, 4.1, 0.7), 1e-6 * rng.standard_normal((150, 4)), 5, 6)
    turned = cases.Problem(problem.Phi @ np.linalg.qr(rng.standard_normal((6, 6)))[0], problem.B, 5, 5)
    for found in (cases.known(turned)[0].certificate, cases.passed(turned, False)[0]):
        assert not cases.missed(found.eigenvalue_bounds, turned.true, 1.0)
    assert 1e-15 < turned.leading()[0].error < 1e-8


def test_probabilities_add_up(attack):
    problem = problem_of(attack.rng("failures"))
    leading, V = problem.leading(form="sampled", failure=1e-3)
    assert leading.norm == Bound(leading.norm.mu, "sampled", 1e-3)
    plan = so.sampling(leading, 3, V, (problem.B**2).sum(axis=1), 115, 1e-4)
    index = plan.draw(attack.rng("failures", 1))
    found = so.sampled_certificate(leading, 3, plan, index, V[index], problem.R[index] @ V)
    assert found.gained and found.certificate.failure_probability == pytest.approx(1.1e-3)
    assert so.known_certificate(leading, 3, V.T @ problem.R @ V).certificate.failure_probability == 1e-3
    assert so.outside_leading(leading).failure_probability == 1e-3


def test_first_order_intervals_of_more_eigenvalues_than_the_map_has_do_not_overflow():
    found = feature_certificate(np.array([1e10]), 2, FeatureSums(10, 1e10, 1.0, 1e10))
    assert np.isfinite(found.eigenvalue_bounds).all()
