"""Products by clusters: every entry within tol of the kernel, over data and bandwidths chosen to break it."""

from __future__ import annotations

import numpy as np
import pytest
from data import look
from places import DATA
from reference import long_gaussian

from fastkpca.products import clusters
from fastkpca.products.clusters import ClusterSummation, cluster_offer
from fastkpca.products.rates import RATE, entry_rate
from fastkpca.rows.view import Rows

ROUNDING = 1e-13  # of an exact tile's values, and of the reference's displaced rows


def entries(summation):
    return summation.matmat(np.eye(summation.shape[1]))


def worst(summation, X, Y, sigma):
    return float(np.abs(entries(summation) - long_gaussian(X, Y, sigma)).max())


def rows_of(kind, n, d, rng):
    if kind == "uniform":
        return rng.random((n, d))
    if kind == "clustered":
        return rng.random((7, d))[rng.integers(7, size=n)] + 0.01 * rng.standard_normal((n, d))
    if kind == "collinear":
        direction = rng.standard_normal(d)
        return rng.random((n, 1)) * direction / np.linalg.norm(direction)
    if kind == "duplicates":
        return rng.random((max(1, n // 20), d))[rng.integers(max(1, n // 20), size=n)]
    X = rng.random((n, d))
    far = rng.integers(n, size=3)
    X[far] += 1e6 * rng.standard_normal((3, d))
    return X


KINDS = ["uniform", "clustered", "collinear", "duplicates", "outliers"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 40])
def test_every_entry_within_tol(kind, d):
    skipped = 0
    for seed, sigma in enumerate([0.02, 0.1, 0.3, 1.0, 3.0]):
        rng = np.random.default_rng([seed, d, KINDS.index(kind)])
        X = rows_of(kind, 150, d, rng)
        K = long_gaussian(X, X, sigma)
        for tol in (0.9, 1e-2, 1e-5, 1e-11):
            summation = ClusterSummation(Rows(X), sigma=sigma, tol=tol, leaf=8)
            assert summation.error_bound in (0.0, tol) and summation.symmetric
            skipped += summation.error_bound > 0
            found = entries(summation)
            assert np.abs(found - K).max() <= summation.error_bound + ROUNDING
            assert np.abs(found - found.T).max() <= 1e-12
            # what is skipped is below tol, and nothing that is above it
            assert (found[K > tol] > 0).all()
    assert skipped


@pytest.mark.parametrize("leaf", [1, 5, 16])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_rectangular_and_its_adjoint(d, leaf):
    rng = np.random.default_rng(d)
    sources = rows_of("clustered", 400, d, rng)
    targets = np.concatenate([sources[:50] + 1e-3, rng.random((90, d)), rng.random((20, d)) * 50, sources[:1] + 1e6])
    for sigma in (0.05, 0.5, 3.0):
        for tol in (1e-2, 1e-7):
            summation = ClusterSummation(Rows(targets), Rows(sources), sigma=sigma, tol=tol, leaf=leaf)
            assert summation.shape == (161, 400) and not summation.symmetric
            K = entries(summation)
            assert np.abs(K - long_gaussian(targets, sources, sigma)).max() <= tol
            assert np.abs(K - summation.rmatmat(np.eye(161)).T).max() <= 1e-12


def test_the_pairs_of_boxes_that_are_near_are_all_found():
    """Against all pairs of rows: none within reach is in a pair of leaves that was left out."""
    rng = np.random.default_rng(4)
    for kind in KINDS:
        for leaf in (3, 30):
            x = clusters._Leaves(rows_of(kind, 700, 3, rng), leaf)
            y = clusters._Leaves(rng.random((300, 3)), leaf)
            for other in (x, y):
                assert np.array_equal(np.sort(other.order), np.arange(len(other.rows)))
                leaf_x, leaf_y = (np.repeat(np.arange(len(z.size)), z.size) for z in (x, other))
                near = np.sqrt(((x.rows[:, None] - other.rows) ** 2).sum(-1)) <= 0.2
                listed = other.near(x.low, x.high, 0.2, slice(None))
                assert listed[leaf_x[:, None], leaf_y][near].all()
                assert not listed.all() or kind == "outliers"


def test_equal_bits_at_any_number_of_threads_and_linear():
    rng = np.random.default_rng(0)
    X = np.concatenate([rows_of("collinear", 1500, 3, rng), rng.random((1500, 3))])
    U = rng.standard_normal((3000, 3))
    for other, V in ((None, U), (Rows(np.concatenate([X[:1000] + 1e-3, rng.random((1000, 3))])), U[:2000])):
        products = []
        for threads in (1, 2, 5):
            summation = ClusterSummation(Rows(X), other, sigma=0.03, tol=1e-6, n_threads=threads)
            products.append((summation.matmat(V), summation.rmatmat(U)))
        for one, two in products[1:]:
            assert np.array_equal(one, products[0][0]) and np.array_equal(two, products[0][1])
        mixed = summation.matmat(V @ np.array([[1.0], [2.0], [-0.5]]))
        assert np.abs(mixed - products[0][0] @ np.array([[1.0], [2.0], [-0.5]])).max() <= 1e-12 * np.abs(V).sum()


def test_large_leaves_and_many_partners_in_pieces(monkeypatch):
    rng = np.random.default_rng(2)
    X = np.repeat(rng.random((3, 2)), 1500, axis=0)
    U = rng.standard_normal((4500, 2))
    for work in (1 << 32, 40_000):
        monkeypatch.setattr(clusters, "MOST_WORK", work)
        for sigma in (0.01, 0.1, 10.0):
            summation = ClusterSummation(Rows(X), sigma=sigma, tol=1e-9)
            exact = long_gaussian(X[::45], X, sigma) @ U
            assert np.abs(summation.matmat(U)[::45] - exact).max() <= 1e-9 * np.abs(U).sum()
    X = rng.random((600, 3))
    assert worst(ClusterSummation(Rows(X), sigma=0.05, tol=1e-4, leaf=200), X, X, 0.05) <= 1e-4
    monkeypatch.setattr(clusters, "MOST_LEAVES", 4)
    assert len(ClusterSummation(Rows(X), sigma=0.05, tol=1e-4)._x.start) <= 8


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n):
    X = np.arange(n, dtype=float)[:, None] * np.ones(4)
    summation = ClusterSummation(Rows(X), sigma=1.0, tol=1e-6)
    assert worst(summation, X, X, 1.0) <= 1e-6
    assert worst(ClusterSummation(Rows(X), Rows(X[:1]), sigma=1.0, tol=1e-6), X, X[:1], 1.0) <= 1e-6
    assert summation.matmat(np.zeros((n, 0))).shape == (n, 0)
    far = ClusterSummation(Rows(X), Rows(X + 1e3), sigma=1.0, tol=1e-6)
    assert not entries(far).any() and far.error_bound == 1e-6


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_extreme_units_and_shifted_rows(scale):
    X = np.random.default_rng(0).random((200, 2)) * scale
    for sigma in (0.1 * scale, scale, 1e3 * scale):
        summation = ClusterSummation(Rows(X), sigma=sigma, tol=1e-6, leaf=16)
        assert worst(summation, X, X, sigma) <= 1e-6
    X = np.random.default_rng(0).random((300, 3)) + 1e6
    before, shifted = X.copy(), Rows(X, X.mean(axis=0))
    assert worst(ClusterSummation(shifted, sigma=0.2, tol=1e-6), shifted.all(), shifted.all(), 0.2) <= 1e-6
    assert np.array_equal(X, before)


def test_wrong_vectors_are_refused():
    summation = ClusterSummation(Rows(np.random.default_rng(0).random((100, 3))), sigma=1.0, tol=1e-6)
    with pytest.raises(ValueError, match=r"\(100, k\) is needed"):
        summation.matmat(np.ones((99, 1)))
    with pytest.raises(ValueError, match="NaN"):
        summation.matmat(np.full((100, 1), np.nan))


@pytest.mark.parametrize("kind", ["uniform", "clustered"])
@pytest.mark.parametrize(("n", "d", "sigma"), [(20000, 3, 0.02), (20000, 5, 0.02), (60000, 4, 0.03)])
def test_the_offer_counts_what_the_product_does(kind, n, d, sigma):
    rows, data = look(rows_of(kind, n, d, np.random.default_rng(0)))
    offer = cluster_offer(data, data, sigma, 1e-6)
    assert offer is not None and offer.name == "clusters" and offer.cost.residual == 1e-6
    assert offer.cost.row_flops * n < 0.6 * RATE.features * n**2 / 2 / entry_rate(d)
    summation = offer.build(rows)
    values = sum((rows.stop - rows.start) * summation._y.size[leaves].sum() for rows, leaves, _ in summation._tasks)
    # neighbouring leaves together compute more values than they need, and take as long
    assert 0.5 < offer.cost.column_flops / (RATE.features * 4.0 * values / n / RATE.products) < 1.4
    other = look(np.random.default_rng(1).random((3000, d)))[1]
    assert cluster_offer(other, data, sigma, 1e-6) is not None


def test_no_offer_where_every_pair_is_near():
    data = look(np.random.default_rng(0).random((20000, 8)))[1]
    assert cluster_offer(data, data, 0.3, 1e-6) is None  # by a few distances
    assert cluster_offer(data, data, 0.1, 1e-6) is None  # by the leaves: no box of so many coordinates is small
    assert cluster_offer(data, data, 0.01, 1.0) is None


@pytest.mark.parametrize(
    ("file", "sigmas"),
    [("lidar.npz", (0.01, 0.1, 1.0)), ("uci_kin40k.npz", (0.3, 2.0, 10.0)), ("uci_protein.npz", (0.1, 1.0, 5.0))],
)
def test_real_data(file, sigmas):
    path = DATA / file
    if not path.exists():
        pytest.skip(f"{path} is not there; set FASTKPCA_DATA")
    with np.load(path) as arrays:
        X = np.asarray(arrays[arrays.files[0]], dtype=np.float64)
    rng = np.random.default_rng(0)
    X = X[np.sort(rng.choice(len(X), 8000, replace=False))]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    U = np.column_stack([rng.standard_normal(8000), np.ones(8000), np.eye(1, 8000, 17)[0]])
    far = np.argsort(np.square(X).sum(axis=1))[-20:]
    targets = np.concatenate([far, rng.choice(8000, 80, replace=False)])
    for sigma in sigmas:
        K = long_gaussian(X[targets], X, sigma)
        for tol in (1e-2, 1e-6, 1e-11):
            found = ClusterSummation(Rows(X), sigma=sigma, tol=tol).matmat(U)[targets]
            assert (np.abs(found - K @ U).max(axis=0) <= tol * np.abs(U).sum(axis=0)).all()
