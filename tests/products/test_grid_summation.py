"""Gaussian products on a grid: the bound against sums in longdouble, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
from data import look
from reference import long_gaussian

import fastkpca as fk
from fastkpca.products import grid_plan
from fastkpca.products.grid import GridSummation, grid_offer
from fastkpca.rows.view import Rows

RUN = 32768  # points of the longest task


def offered(X, sigma, tol, Y=None, **options):
    """(summation, targets, sources) as the offer builds it, rows as it saw them; (None, ., .) where there is none."""
    rows, data = look(X)
    rows_y, data_y = None, data
    if Y is not None:
        rows_y = Rows(Y, rows.shift)
        data_y = look(rows_y.all(), shift=False)[1]
    offer = grid_offer(data, data_y, sigma, tol, **options)
    made = None if offer is None else offer.build(rows, rows_y)
    return made, rows.all(), rows.all() if rows_y is None else rows_y.all()


def worst(summation, X, Y, sigma):
    """Largest |K^ - K|, from products with unit vectors."""
    return float(np.abs(summation.matmat(np.eye(len(Y))) - long_gaussian(X, Y, sigma)).max())


def shapes(d, n, rng):
    X = rng.random((n, d))
    yield "uniform", X
    yield "clusters", rng.random((8, d))[rng.integers(0, 8, n)] + 1e-2 * rng.standard_normal((n, d))
    yield "collinear", rng.random((n, 1)) * np.linspace(1, 2, d)
    yield "duplicates", X[rng.integers(0, 5, n)]
    far = X.copy()
    far[:3] += 1e4 * rng.standard_normal((3, d))
    yield "outliers", far
    flat = X.copy()
    flat[:, -1] = 0.3
    yield "flat", flat
    yield "lattice", np.floor(4 * X) / 4


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_guarantee_in_every_entry(d, tol):
    rng, n, seen = np.random.default_rng(d), 150, 0
    for name, X in shapes(d, n, rng):
        for sigma in (0.02, 0.1, 0.3, 1.0, 3.0):
            # few rows would go by exact tiles: force the grid where there is one that is not huge
            made, rows, _ = offered(X, sigma, tol)
            low, high = rows.min(axis=0), rows.max(axis=0)
            plan = grid_plan.plan_grid(low, high, sigma, 2.0 * n, tol, 3e5)
            for summation in (made, None if plan is None else GridSummation(sigma, plan, Rows(rows))):
                if summation is None or summation.plan.nodes > 3e5:
                    continue
                seen += 1
                assert summation.error_bound <= tol, name
                assert worst(summation, rows, rows, sigma) <= summation.error_bound + 1e-15, (name, sigma)
    assert seen >= 35


@pytest.mark.parametrize(
    "d, sigma, tol", [(4, 0.3, 1e-3), (4, 1.0, 1e-6), (5, 1.0, 1e-6), (5, 3.0, 1e-10), (6, 3.0, 1e-6)]
)
def test_the_guarantee_in_more_dimensions(d, sigma, tol):
    rng = np.random.default_rng(d)
    X = rng.random((60, d))
    plan = grid_plan.plan_grid(X.min(axis=0), X.max(axis=0), sigma, 1e5, tol, 1e6)
    assert plan is not None
    summation = GridSummation(sigma, plan, Rows(X))
    assert worst(summation, X, X, sigma) <= summation.error_bound <= tol


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
    from fastkpca._core.boxes import chebyshev_nodes

    z = chebyshev_nodes(order).astype(np.longdouble)
    s = np.cos(np.pi * np.linspace(0, 1, 16 * order + 1, dtype=np.longdouble))
    L = np.ones((len(s), order), dtype=np.longdouble)
    for k in range(order):
        for j in set(range(order)) - {k}:
            L[:, k] *= (s - z[j]) / (z[k] - z[j])

    def largest(function):
        error = np.longdouble(0)
        for apart in range(4):
            gap = side * (apart + (s[:, None] - s) / 2)
            nodes = side * (apart + (z[:, None] - z) / 2)
            error = max(error, np.abs(np.exp(-0.5 * gap**2) - L @ function(nodes) @ L.T).max())
        return float(error)

    bound = grid_plan.axis_error(side, order)
    error = largest(lambda t: np.exp(-0.5 * t**2))
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
    from fastkpca._core.boxes import chebyshev_nodes

    z, s = chebyshev_nodes(order), np.linspace(-1, 1, 4001)
    L = np.ones((len(s), order))
    for k in range(order):
        for j in set(range(order)) - {k}:
            L[:, k] *= (s - z[j]) / (z[k] - z[j])
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
def test_rectangular_products_and_the_adjoint(d):
    rng, sigma, tol = np.random.default_rng(4), 0.3, 1e-6
    Y = rng.random((300, d))
    X = np.concatenate([Y[:20] + 1e-3, rng.random((100, d)), rng.random((30, d)) + 3.0])
    low, high = np.minimum(X.min(0), Y.min(0)), np.maximum(X.max(0), Y.max(0))
    summation = GridSummation(sigma, grid_plan.plan_grid(low, high, sigma, 450.0, tol, 1e7), Rows(X), Rows(Y))
    assert not summation.symmetric
    assert summation.shape == (150, 300)
    assert worst(summation, X, Y, sigma) <= summation.error_bound <= tol
    U, V = rng.standard_normal((300, 3)), rng.standard_normal((150, 3))
    left, right = V.T @ summation.matmat(U), summation.rmatmat(V).T @ U
    scale = np.abs(V).sum(axis=0)[:, None] * np.abs(U).sum(axis=0)
    assert (np.abs(left - right) <= 1e-15 * scale).all()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_one_set_of_rows_is_symmetric_and_semidefinite(d):
    X = np.random.default_rng(5).random((200, d))
    plan = grid_plan.plan_grid(np.zeros(d), np.ones(d), 0.1, 1e4, 1e-2, 1e7)
    summation = GridSummation(0.1, plan, Rows(X))
    K = summation.matmat(np.eye(200))
    assert summation.symmetric
    assert np.abs(K - K.T).max() <= 1e-14
    assert np.linalg.eigvalsh((K + K.T) / 2).min() >= -1e-12


def test_linear_to_rounding():
    rng = np.random.default_rng(6)
    X = rng.random((400, 2))
    summation, _, _ = offered(X, 0.2, 1e-3)
    U, V = rng.standard_normal((400, 2)), rng.standard_normal((400, 2))
    together = summation.matmat(2.0 * U - 3.0 * V)
    apart = 2.0 * summation.matmat(U) - 3.0 * summation.matmat(V)
    assert np.abs(together - apart).max() <= 1e-14 * np.abs(2 * np.abs(U) + 3 * np.abs(V)).sum()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_same_bits_at_any_number_of_threads(d):
    rng = np.random.default_rng(7)
    X, U = rng.random((3 * RUN + 77, d)), rng.standard_normal((3 * RUN + 77, 2))
    for sigma in (0.1, 3.0):
        products = []
        for n_threads in (1, 2, 5):
            summation, _, _ = offered(X, sigma, 1e-6)
            summation.n_threads = n_threads
            products.append(summation.matmat(U))
        assert np.array_equal(products[0], products[1])
        assert np.array_equal(products[0], products[2])


def test_large_translations_run_in_tasks():
    rng = np.random.default_rng(8)
    X, U = rng.random((2000, 3)), rng.standard_normal((2000, 2))
    plan = grid_plan.plan_grid(np.zeros(3), np.ones(3), 0.05, 1e6, 1e-6, 1e8)
    summation = GridSummation(0.05, plan, Rows(X))
    one = summation.matmat(U)
    summation.n_threads = 3
    assert np.array_equal(one, summation.matmat(U))
    i = rng.integers(0, 2000, 50)
    error = np.abs(long_gaussian(X[i], X, 0.05) @ U - one[i]).max(axis=0)
    assert (error <= 1e-6 * np.abs(U).sum(axis=0)).all()


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


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_one_point_and_equal_points(d):
    for X in (np.full((1, d), 0.7), np.full((50, d), 1e8)):
        summation, rows, _ = offered(X, 0.5, 1e-9)
        assert worst(summation, rows, rows, 0.5) <= 1e-9
        plan = grid_plan.plan_grid(X[0], X[0], 0.5, 2.0, 1e-9, 1e6)
        assert plan.nodes == 1
        assert worst(GridSummation(0.5, plan, Rows(X)), X, X, 0.5) <= 1e-9


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
    summation = GridSummation(0.3, plan, Rows(X / 2))
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


def test_no_grid_for_rows_that_fill_little_of_their_box():
    X = np.random.default_rng(16).random((3000, 3)) + 20.0 * np.eye(3)[np.arange(3000) % 3]
    data = look(X)[1]
    assert grid_offer(data, data, 0.5, 1e-6) is None  # millions of nodes, nearly all of them empty
    assert fk.gram(X, "gaussian", sigma=0.5, tol=1e-6).error_bound <= 1e-6
