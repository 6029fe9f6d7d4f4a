"""Products by clusters: what the attack on products (tests/attacks/attack.py) is too small for, and the offer."""

import numpy as np
import pytest
from data import look, rows
from reference import long_gaussian

from fastkpca.products import clusters
from fastkpca.products.clusters import ClusterSummation, cluster_offer
from fastkpca.rows.view import Rows


def entries(summation):
    return summation.matmat(np.eye(summation.shape[1]))


def worst(summation, X, Y, sigma):
    return float(np.abs(entries(summation) - long_gaussian(X, Y, sigma)).max())


def test_large_leaves_and_many_partners_in_pieces(monkeypatch):
    rng = np.random.default_rng(2)
    X = np.repeat(rng.random((3, 2)), 1500, axis=0)
    U = rng.standard_normal((4500, 2))
    for work in (1 << 32, 40_000):
        monkeypatch.setattr(clusters, "MAX_TASK_FLOPS", work)
        for sigma in (0.01, 0.1, 10.0):
            summation = ClusterSummation(Rows(X), sigma=sigma, tol=1e-9)
            exact = long_gaussian(X[::45], X, sigma) @ U
            assert np.abs(summation.matmat(U)[::45] - exact).max() <= 1e-9 * np.abs(U).sum()
    X = rng.random((600, 3))
    assert worst(ClusterSummation(Rows(X), sigma=0.05, tol=1e-4, leaf=200), X, X, 0.05) <= 1e-4
    monkeypatch.setattr(clusters, "MAX_LEAVES", 4)
    assert len(ClusterSummation(Rows(X), sigma=0.05, tol=1e-4)._x.start) <= 8


@pytest.mark.parametrize("tol", [0.9, 1e-2, 1e-6, 1e-11])
def test_pairs_are_left_out_from_where_the_kernel_is_tol(tol):
    apart = 0.3 * np.sqrt(-2.0 * np.log(tol))
    for distance, is_near in ((apart * (1.0 - 1e-9), True), (apart * (1.0 + 1e-9), False)):
        found = entries(ClusterSummation(Rows(np.zeros((9, 1))), Rows(np.full((9, 1), distance)), sigma=0.3, tol=tol))
        assert (found > 0.0).all() if is_near else not found.any()


def test_an_offer_where_few_are_near():
    view, data = look(rows(np.random.default_rng(0), "clustered", 20000, 3))
    other = look(np.random.default_rng(1).random((3000, 3)))[1]
    assert cluster_offer(data, data, 0.02, 1e-6).build(view).shape == (20000, 20000)
    assert cluster_offer(other, data, 0.02, 1e-6) is not None


def test_no_offer_where_every_pair_is_near():
    data = look(np.random.default_rng(0).random((20000, 8)))[1]
    assert cluster_offer(data, data, 0.3, 1e-6) is None  # by a few distances
    assert cluster_offer(data, data, 0.1, 1e-6) is None  # by the leaves: no box of so many coordinates is small
    assert cluster_offer(data, data, 0.01, 1.0) is None
