"""Products by clusters: what the attack on products (tests/attacks/attack.py) is too small for, and the offer."""

from __future__ import annotations

import numpy as np
import pytest
from data import look, rows
from reference import long_gaussian

from fastkpca.products import clusters
from fastkpca.products.clusters import ClusterSummation, cluster_offer
from fastkpca.products.rates import RATE, entry_rate
from fastkpca.rows.view import Rows


def entries(summation):
    return summation.matmat(np.eye(summation.shape[1]))


def worst(summation, X, Y, sigma):
    return float(np.abs(entries(summation) - long_gaussian(X, Y, sigma)).max())


def test_equal_bits_at_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = np.concatenate([rows(rng, "collinear", 1500, 3), rng.random((1500, 3))])
    U = rng.standard_normal((3000, 3))
    for other, V in ((None, U), (Rows(np.concatenate([X[:1000] + 1e-3, rng.random((1000, 3))])), U[:2000])):
        products = []
        for threads in (1, 2, 5):
            summation = ClusterSummation(Rows(X), other, sigma=0.03, tol=1e-6, n_threads=threads)
            products.append((summation.matmat(V), summation.rmatmat(U)))
        for one, two in products[1:]:
            assert np.array_equal(one, products[0][0]) and np.array_equal(two, products[0][1])


def test_large_leaves_and_many_partners_in_pieces(monkeypatch):
    rng = np.random.default_rng(2)
    X = np.repeat(rng.random((3, 2)), 1500, axis=0)
    U = rng.standard_normal((4500, 2))
    for strip in (1 << 16, 300):
        monkeypatch.setattr(clusters, "STRIP", strip)
        for sigma in (0.01, 0.1, 10.0):
            summation = ClusterSummation(Rows(X), sigma=sigma, tol=1e-9)
            exact = long_gaussian(X[::45], X, sigma) @ U
            assert np.abs(summation.matmat(U)[::45] - exact).max() <= 1e-9 * np.abs(U).sum()
    X = rng.random((600, 3))
    assert worst(ClusterSummation(Rows(X), sigma=0.05, tol=1e-4, leaf=200), X, X, 0.05) <= 1e-4
    monkeypatch.setattr(clusters, "MOST_LEAVES", 4)
    assert len(ClusterSummation(Rows(X), sigma=0.05, tol=1e-4)._x.start) <= 8


def test_wrong_vectors_are_refused():
    summation = ClusterSummation(Rows(np.random.default_rng(0).random((100, 3))), sigma=1.0, tol=1e-6)
    with pytest.raises(ValueError, match=r"\(100, k\) is needed"):
        summation.matmat(np.ones((99, 1)))
    with pytest.raises(ValueError, match="NaN"):
        summation.matmat(np.full((100, 1), np.nan))


@pytest.mark.parametrize("tol", [0.9, 1e-2, 1e-6, 1e-11])
def test_pairs_are_left_out_from_where_the_kernel_is_tol(tol):
    apart = 0.3 * np.sqrt(-2.0 * np.log(tol))
    for distance, is_near in ((apart * (1.0 - 1e-9), True), (apart * (1.0 + 1e-9), False)):
        found = entries(ClusterSummation(Rows(np.zeros((9, 1))), Rows(np.full((9, 1), distance)), sigma=0.3, tol=tol))
        assert (found > 0.0).all() if is_near else not found.any()


@pytest.mark.parametrize("kind", ["uniform", "clustered"])
@pytest.mark.parametrize(("n", "d", "sigma"), [(20000, 3, 0.02), (20000, 5, 0.02), (60000, 4, 0.03)])
def test_the_offer_counts_what_the_product_does(kind, n, d, sigma):
    view, data = look(rows(np.random.default_rng(0), kind, n, d))
    offer = cluster_offer(data, data, sigma, 1e-6)
    assert offer is not None and offer.name == "clusters" and offer.cost.residual == 1e-6
    assert offer.cost.row_flops * n < 0.6 * RATE.features * n**2 / 2 / entry_rate(d)
    summation = offer.build(view)
    values = sum((own.stop - own.start) * summation._y.size[leaves].sum() for own, leaves, _ in summation._tasks)
    # neighbouring leaves together compute more values than they need, and take as long
    assert 0.5 < offer.cost.column_flops / (RATE.features * 4.0 * values / n / RATE.products) < 1.4
    other = look(np.random.default_rng(1).random((3000, d)))[1]
    assert cluster_offer(other, data, sigma, 1e-6) is not None


def test_no_offer_where_every_pair_is_near():
    data = look(np.random.default_rng(0).random((20000, 8)))[1]
    assert cluster_offer(data, data, 0.3, 1e-6) is None  # by a few distances
    assert cluster_offer(data, data, 0.1, 1e-6) is None  # by the leaves: no box of so many coordinates is small
    assert cluster_offer(data, data, 0.01, 1.0) is None
