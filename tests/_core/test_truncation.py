"""The bounds of the truncated Gaussian expansion: never broken, attained; the order chosen from them is the least."""

import numpy as np
import pytest

from fastkpca._core import truncation

mpmath = pytest.importorskip("mpmath")


def exact_error(a, b, cosine, p):
    """|k - truncated| at |x| = a, |y| = b and the angle's cosine, in 800 digits (e^900 cancels in the tail)."""
    with mpmath.workdps(800):
        a, b = mpmath.mpf(float(a)), mpmath.mpf(float(b))
        t = a * b * mpmath.mpf(float(cosine))
        rest = mpmath.e**t - mpmath.fsum(t**m / mpmath.factorial(m) for m in range(p))
        return abs(mpmath.e ** (-(a * a + b * b) / 2) * rest)


def test_ball_bound_is_the_largest_error_and_is_attained(attack):
    rng = attack.rng("ball")
    for _ in range(attack.count(2_000)):
        p = int(rng.integers(1, 60))
        R = rng.uniform(0, rng.choice([0.5, 2.0, 6.0]))
        bound = truncation.ball_bound(R, p)
        a, b = R * rng.uniform(0, 1, 2)
        assert exact_error(a, b, rng.uniform(-1, 1), p) <= bound
        rim = exact_error(R, R, 1.0, p)
        assert rim <= bound
        assert rim >= 0.99 * bound or bound < 1e-290


def test_values_where_scipy_has_none():
    assert truncation.ball_bound(0.0, 0) == 1.0
    assert truncation.ball_bound(0.0, 1) == 0.0
    np.testing.assert_array_equal(truncation.residual(np.zeros(3), 0), np.ones(3))


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-12])
def test_order_for_trace_is_the_least_that_fits(tol, attack):
    for case in range(attack.count(200, least=10)):
        rng = attack.rng("order", case)
        squares = rng.exponential(rng.choice([0.01, 1.0, 30.0]), 50)
        order, left_out = truncation.order_for_trace(squares, tol, 400)
        assert truncation.residual(squares, order).mean() <= tol
        assert order == 0 or truncation.residual(squares, order - 1).mean() > tol
        assert left_out == pytest.approx(truncation.residual(squares, order).mean(), rel=1e-12)
        for least in {1, max(1, order - 9), max(1, order - 1), order, order + 1}:  # from where the search begins
            found, left_out = truncation.order_for_trace(squares, tol, 400, least)
            assert found == max(order, least)
            assert left_out == pytest.approx(truncation.residual(squares, found).mean(), rel=1e-12)


def test_residual_is_a_sharp_bound_by_series_and_beyond_it(attack):
    """Arguments about those from which on SciPy's function is taken, and so small that t^p / p! leaves the range."""
    for case in range(attack.count(60, least=12)):
        rng = attack.rng("residual", case)
        p = int(rng.choice([1, 2, 3, 8, 20, 60, 150, 400, 900, 1300, 1999, 2000, 2001]))
        near = [0.5 * p, np.nextafter(0.5 * p, np.inf), 600.0, 600.1, 1e-300, 0.0, 1369.0, 1e5]
        squares = np.array([*near, *rng.uniform(0.0, 0.6 * p, 20), *10.0 ** rng.uniform(-30.0, 0.0, 9)])
        values = truncation.residual(squares, p)
        for t, value in zip(squares, values):
            with mpmath.workdps(60):
                exact = mpmath.gammainc(p, 0, mpmath.mpf(float(t)), regularized=True) if t < 1e4 else mpmath.mpf(1)
            assert exact <= value <= min(1.0, max(float(exact) * (1 + 2e-11), 2.4e-308 * (t > 0)))
        order = rng.permutation(len(squares))  # a row's bound is its own
        np.testing.assert_array_equal(truncation.residual(squares[order], p), values[order])
        np.testing.assert_array_equal(truncation.residual(squares[:5], p), values[:5])


def test_order_says_when_none_fits():
    for least in (0, 1, 7, 50):
        order, left_out = truncation.order_for_trace(np.array([100.0]), 1e-6, 50, least)
        assert order == -1 and left_out == truncation.residual(np.array([100.0]), 50)[0]
    assert truncation.order_for_ball(10.0, 1e-6, 50) == -1
    assert truncation.order_for_ball(1.0, 1e-6, 50) > 0


@pytest.mark.parametrize("d", [1, 2, 5])
def test_small_ball_is_hardly_larger_than_the_smallest(d):
    rng = np.random.default_rng(d)
    rows = rng.standard_normal((60, d))
    rows *= rng.random((60, 1)) / np.linalg.norm(rows, axis=1)[:, None]
    rows[:2] = 0.0
    rows[0, 0], rows[1, 0] = 1.0, -1.0  # a diameter of the unit ball, which holds the others
    shift = np.arange(1.0, d + 1.0)
    centre = truncation.small_ball(rows + shift, 64)
    assert np.linalg.norm(rows + shift - centre, axis=1).max() <= 1.0 + 1.0 / 8.0  # 1 + 1 / sqrt(64) is proved
