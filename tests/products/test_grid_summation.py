"""Gaussian products on a grid: its bound, which is tight, and what the attack on products is too small for."""

import numpy as np
import pytest
from data import look
from reference import lagrange, long_gaussian

from fastkpca._core.boxes import chebyshev_nodes
from fastkpca.products import grid_plan
from fastkpca.products.clusters import ClusterSummation
from fastkpca.products.grid import GridSummation, grid_offer
from fastkpca.rows.view import Rows

RUN = 32768  # points of the longest task


def worst(summation, X, Y, sigma):
    """Largest |K^ - K|, from products with unit vectors."""
    return float(np.abs(summation.matmat(np.eye(len(Y))) - long_gaussian(X, Y, sigma)).max())


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_worst_pairs(d, tol):
    """Points where |T_q| = 1: on the borders of boxes and at the extrema between the nodes. The bound is nearly met."""
    rng, ratios = np.random.default_rng(7), []
    for sigma in (0.1, 0.3, 1.0):
        plan = grid_plan.plan_grid(np.zeros(d), np.ones(d), sigma, 1e5, tol, 3e6)
        low, side = np.array(plan.low), np.array(plan.side)
        box, turn = rng.integers(0, plan.counts, (60, d)), rng.integers(0, np.array(plan.orders) + 1, (60, d))
        Z = low + side * (box + (1 + np.cos(np.pi * turn / plan.orders)) / 2)
        Z = np.clip(np.concatenate([Z, Z + side * rng.choice([-0.5, 0.0, 0.5], (60, d))]), 0.0, 1.0)
        error = worst(GridSummation(sigma, plan, Rows(Z)), Z, Z, sigma)
        assert error <= plan.error_bound <= tol
        ratios.append(tol / error)
    assert np.median(ratios) < 30  # tight: a bound this close costs little


@pytest.mark.parametrize("order", [2, 3, 5, 8, 12, 16])
@pytest.mark.parametrize("side", [0.05, 0.5, 1.0, 2.0, 4.0])
def test_the_error_of_one_axis(order, side):
    """Bound and truth for x in one box and y in another, in longdouble."""
    z = chebyshev_nodes(order).astype(np.longdouble)
    s = np.cos(np.pi * np.linspace(0, 1, 16 * order + 1, dtype=np.longdouble))
    L = lagrange(s, z)

    def gaussian(x, apart):
        return np.exp(-0.5 * (side * (apart + (x[:, None] - x) / 2)) ** 2)

    bound = grid_plan.axis_error(side, order)
    error = float(max(np.abs(gaussian(s, apart) - L @ gaussian(z, apart) @ L.T).max() for apart in range(4)))
    assert error <= bound + 1e-17
    if bound < 0.1:
        assert bound < 30 * error + 1e-17


@pytest.mark.parametrize("error", [1e-1, 1e-3, 1e-7, 1e-13])
def test_the_largest_sides(error):
    sides = grid_plan._sides(error)
    errors = [grid_plan.axis_error(b, int(q)) for q, b in zip(grid_plan._ORDERS, sides, strict=True)]
    assert max(errors) <= error
    assert all(e > 0.5 * error for e, b in zip(errors, sides, strict=True) if b < 5.9)


@pytest.mark.parametrize("order", range(1, 17))
def test_lebesgue_constant(order):
    L = lagrange(np.linspace(-1, 1, 4001), chebyshev_nodes(order))
    assert np.abs(L).sum(axis=1).max() ** 2 <= 8.0  # as what is left out beyond the reach rests on
    assert (L**2).sum(axis=1).max() <= 2.0 + 1e-9  # Fejer, which the bound on rounding rests on


@pytest.mark.parametrize("d, sigma", [(1, 5e-3), (1, 1.0), (2, 0.05), (2, 1.0), (3, 0.2), (4, 1.0)])
def test_rounding(d, sigma):
    """With far more nodes than float64 can use, what is left is rounding, and its bound holds."""
    rng = np.random.default_rng(3)
    X = rng.random((120, d))
    extent = np.full(d, 1 / sigma)
    floor = grid_plan.rounding(extent)
    plan = grid_plan.plan_grid(np.zeros(d), np.ones(d), sigma, 1e5, 4 * floor, 3e7)
    assert plan is not None
    assert worst(GridSummation(sigma, plan, Rows(X)), X, X, sigma) <= 4 * floor
    assert grid_plan.plan_grid(np.zeros(d), np.ones(d), sigma, 1e5, 0.9 * floor, 3e7) is None


@pytest.mark.parametrize("d", [1, 2, 3])
def test_one_set_of_rows_is_symmetric_and_semidefinite(d):
    X = np.random.default_rng(5).random((200, d))
    plan = grid_plan.plan_grid(np.zeros(d), np.ones(d), 0.1, 1e4, 1e-2, 1e7)
    summation = GridSummation(0.1, plan, Rows(X))
    K = summation.matmat(np.eye(200))
    assert summation.symmetric
    assert np.abs(K - K.T).max() <= 1e-14
    assert np.linalg.eigvalsh((K + K.T) / 2).min() >= -1e-12


def test_columns_in_blocks():
    rng = np.random.default_rng(9)
    X, U = rng.random((300, 2)), rng.standard_normal((300, 37))
    plan = grid_plan.plan_grid(np.zeros(2), np.ones(2), 0.3, 1e4, 1e-6, 1e7)
    whole = GridSummation(0.3, plan, Rows(X)).matmat(U)
    tight = GridSummation(0.3, plan, Rows(X), memory_limit=16.0 * 3 * plan.nodes).matmat(U)
    single = np.column_stack([GridSummation(0.3, plan, Rows(X)).matmat(U[:, [j]]) for j in range(37)])
    np.testing.assert_allclose(whole, single, rtol=0, atol=1e-13)
    np.testing.assert_allclose(tight, single, rtol=0, atol=1e-13)
    assert GridSummation(0.3, plan, Rows(X)).matmat(U[:, :0]).shape == (300, 0)


def test_no_blow_up_of_memory():
    X = np.random.default_rng(13).random((300, 5))
    _, data = look(X)
    assert grid_plan.plan_grid(*data.box, 0.02, 600.0, 1e-6, 1e6) is None
    assert grid_plan.plan_grid(np.zeros(1), np.full(1, 1e7), 1.0, 600.0, 1e-6, 1e6) is None
    plan = grid_plan.plan_grid(np.zeros(2), np.ones(2), 0.02, 1e6, 1e-6, 1e5)
    assert plan is None or plan.nodes <= 1e5
    offer = grid_offer(data, data, 0.02, 1e-6, memory_limit=1e6)
    assert offer is None or offer.cost.memory <= 2e6


def test_rows_outside_the_plan_and_bad_columns():
    X = np.random.default_rng(14).random((50, 2))
    plan = grid_plan.plan_grid(np.zeros(2), np.full(2, 0.5), 0.3, 100.0, 1e-6, 1e6)
    with pytest.raises(ValueError, match="outside the box"):
        GridSummation(0.3, plan, Rows(X))
    for summation in (GridSummation(0.3, plan, Rows(X / 2)), ClusterSummation(Rows(X), sigma=1.0, tol=1e-6)):
        with pytest.raises(ValueError, match="shape"):
            summation.matmat(np.ones((49, 1)))
        with pytest.raises(ValueError, match="NaN"):
            summation.matmat(np.full((50, 1), np.nan))


def test_what_is_not_offered():
    rng = np.random.default_rng(15)
    _, data = look(rng.random((100, 9)))
    assert grid_offer(data, data, 1.0, 1e-6) is None  # nine axes
    _, data = look(rng.random((100, 2)))
    assert grid_offer(data, data, 1.0, 1e-17) is None  # below rounding
