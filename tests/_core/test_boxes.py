"""Spread and interpolate on a grid of Chebyshev boxes, against the interpolation matrix written out."""

from itertools import pairwise

import numpy as np
import pytest
from instruction_sets import each_instruction_set
from reference import lagrange

from fastkpca._core import boxes
from fastkpca.products.grid import interpolate, spread

isa = each_instruction_set(boxes)


def matrix(grid, X):
    """L, in longdouble, from the definition."""
    L = np.ones((len(X), 1), dtype=np.longdouble)
    for c in range(X.shape[1]):
        t = (X[:, c].astype(np.longdouble) - grid.low[c]) / grid.side[c]
        box = np.clip(np.floor(t), 0, grid.counts[c] - 1).astype(int)
        s, z = 2 * (t - box) - 1, boxes.chebyshev_nodes(grid.orders[c]).astype(np.longdouble)
        axis = np.zeros((len(X), grid.shape[c]), dtype=np.longdouble)
        axis[np.arange(len(X))[:, None], box[:, None] * len(z) + np.arange(len(z))] = lagrange(s, z)
        L = (L[:, :, None] * axis[:, None, :]).reshape(len(X), -1)
    return L


CASES = [
    ((3,), (1,)), ((2,), (4,)), ((1,), (5,)), ((5,), (16,)),
    ((2, 3), (4, 7)), ((4, 1), (16, 9)), ((1, 1), (1, 13)), ((3, 2), (12, 2)),
    ((2, 1, 3), (5, 4, 6)), ((1, 2, 2), (3, 8, 12)), ((2, 1, 1, 2), (3, 2, 4, 5)), ((1, 2, 1, 1, 2), (2, 3, 1, 4, 3)),
]  # fmt: skip


@pytest.mark.parametrize("counts, orders", CASES)
def test_against_the_matrix(isa, counts, orders):
    rng, d = np.random.default_rng(0), len(counts)
    low, side = rng.standard_normal(d), 0.1 + rng.random(d)
    grid = boxes.Grid(low, side, counts, orders)
    unit = rng.random((61, d))
    unit[10:30] = unit[10]
    unit[30:34] = np.array([[0.0], [1.0], [0.5], [1 / 3]])  # corners, and borders of boxes
    X = low + unit * side * counts
    for c in range(d):
        X[34:38, c] = rng.choice(grid.nodes(c), 4)  # on nodes
    L, points = matrix(grid, X), grid.sort(X)
    U, A = rng.standard_normal((61, 3)), rng.standard_normal((3, *grid.shape))
    magnitude = float(np.abs(L).sum(axis=1).max())
    forth, back = spread(grid, points, U), interpolate(grid, points, A)
    # a border belongs to both of its boxes: compare what the two together say, in exact arithmetic the same polynomial
    # on points strictly inside, and sums over the nodes (partition of unity) everywhere
    inside = np.ones(61, dtype=bool)
    for c in range(d):
        t = (X[:, c] - low[c]) / side[c]
        inside &= np.abs(t - np.round(t)) > 1e-9
    np.testing.assert_allclose(back[inside], (L @ A.reshape(3, -1).T)[inside].astype(float), atol=3e-14 * magnitude)
    np.testing.assert_allclose(interpolate(grid, points, np.ones((1, *grid.shape))), 1.0, atol=3e-14 * magnitude)
    U[~inside] = 0.0
    expected = (L.T @ U).T.reshape(3, *grid.shape).astype(float)
    np.testing.assert_allclose(spread(grid, points, U), expected, atol=1e-13 * magnitude)
    total = spread(grid, points, np.ones((61, 1)))
    assert total.sum() == pytest.approx(61, abs=1e-10 * magnitude)
    assert forth.shape == A.shape


@pytest.mark.parametrize("d", [1, 2, 3])
def test_runs_of_points_add_up(isa, d):
    rng = np.random.default_rng(1)
    X, U = rng.random((200, d)), rng.standard_normal((200, 2))
    grid = boxes.Grid(np.zeros(d), np.full(d, 0.5), [2] * d, [5] * d)
    points = grid.sort(X)
    whole, values = spread(grid, points, U), interpolate(grid, points, rng.standard_normal((2, *grid.shape)))
    for cuts in ([0, 200], [0, 1, 1, 70, 71, 130, 200], list(range(0, 201, 8))):
        flat, edges = np.zeros(whole.size), []
        for a, b in pairwise(cuts):
            edges += grid.spread(points, U, flat, a, b)
        grid.add(edges, flat)
        np.testing.assert_allclose(flat, whole.ravel(), atol=1e-13)
    assert np.isfinite(values).all()


def test_sort():
    rng = np.random.default_rng(2)
    X = rng.random((500, 2))
    grid = boxes.Grid([0, 0], [0.25, 0.1], [4, 10], [3, 3])
    points = grid.sort(X)
    number = (np.floor(X[:, 0] * 4) * 10 + np.floor(X[:, 1] * 10)).astype(int)
    np.testing.assert_array_equal(points.order, np.argsort(number, kind="stable"))
    np.testing.assert_array_equal(points.box, np.unique(number))
    np.testing.assert_array_equal(np.diff(points.start), np.bincount(number)[points.box])
    assert points.reach <= 1.0
    assert grid.sort(X * 1.5).reach > 1.5


@pytest.mark.parametrize("order", range(1, 17))
def test_nodes(order):
    z = boxes.chebyshev_nodes(order)
    exact = np.cos(np.pi * (2 * np.arange(order, dtype=np.longdouble)[::-1] + 1) / (2 * order))
    np.testing.assert_allclose(z, exact.astype(float), atol=1e-15)
    np.testing.assert_array_equal(z, -z[::-1])


def test_bad_grids_and_arrays():
    grid, one = boxes.Grid([0.0], [1.0], [2], [3]), np.ones((7, 1))
    points = grid.sort(np.linspace(0, 2, 7)[:, None])
    for call, text in (
        (lambda: boxes.Grid([0], [1], [0], [3]), "counts"),
        (lambda: boxes.Grid([0], [1], [1], [17]), "counts|axes"),
        (lambda: boxes.Grid([0], [0], [1], [3]), "side"),
        (lambda: boxes.Grid([0, 0], [1], [1], [3]), "counts|side|axes"),
        (lambda: boxes.Grid([0], [np.inf], [1], [3]), "side"),
        (lambda: grid.spread(points, one, np.zeros(5), 0, 7), "nodal array"),
        (lambda: grid.spread(points, one[1:], np.zeros(6), 0, 6), "rows of U"),
        (lambda: grid.interpolate(points, np.zeros(6), one, 0, 8), "points 0 to 8"),
        (lambda: grid.sort(np.ones((3, 2))), "rows of 2"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_a_nodal_array_may_hold_some_boxes_of_the_first_axis(isa):
    rng = np.random.default_rng(7)
    grid = boxes.Grid(np.zeros(3), [0.25, 0.5, 0.5], [4, 2, 2], [5, 3, 6])
    X, U, A = rng.random((300, 3)), rng.standard_normal((300, 2)), rng.standard_normal((2, *grid.shape))
    points = grid.sort(X)
    sums, values = spread(grid, points, U), interpolate(grid, points, A)
    first, last = points.start[np.searchsorted(points.box, [1 * 4, 3 * 4])]
    part = np.zeros(sums[:, 5:15].size)
    assert grid.spread(points, U, part, first, last, 1) == []
    assert np.array_equal(part, sums[:, 5:15].ravel())
    back = np.full_like(values, np.nan)
    grid.interpolate(points, np.ascontiguousarray(A[:, 5:15]).ravel(), back, first, last, 1)
    assert np.array_equal(back[points.order[first:last]], values[points.order[first:last]])
    assert np.isnan(back).any(axis=1).sum() == len(X) - (last - first)
    for begin, end in ((0, len(X)), (first, last + 1), (first - 1, last)):
        with pytest.raises(ValueError, match="does not hold the boxes"):
            grid.interpolate(points, part, back, begin, end, 1)
