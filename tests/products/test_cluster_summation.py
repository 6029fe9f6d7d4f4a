"""Products by clusters: every entry within tol of the kernel, over data and bandwidths chosen to break it."""

from __future__ import annotations

import numpy as np
import pytest
from data import look
from places import DATA
from reference import long_gaussian
from scipy.special import gammainc

from fastkpca._core import clusters as core
from fastkpca._core import multiindex
from fastkpca.products import clusters
from fastkpca.products.clusters import ClusterSummation, cluster_offer, reachable
from fastkpca.products.rates import RATE
from fastkpca.rows.view import Rows


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
    if kind == "near a plane":
        basis = np.linalg.qr(rng.standard_normal((d, min(d, 2))))[0]
        return rng.random((n, min(d, 2))) @ basis.T + 1e-5 * rng.standard_normal((n, d))
    if kind == "duplicates":
        return rng.random((max(1, n // 20), d))[rng.integers(max(1, n // 20), size=n)]
    X = rng.random((n, d))
    far = rng.integers(n, size=3)
    X[far] += 1e6 * rng.standard_normal((3, d))
    return X


KINDS = ["uniform", "clustered", "collinear", "near a plane", "duplicates", "outliers"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8, 20, 40])
def test_every_entry_within_tol(kind, d):
    for seed, sigma in enumerate([0.02, 0.1, 0.3, 1.0, 3.0]):
        rng = np.random.default_rng([seed, d, KINDS.index(kind)])
        X = rows_of(kind, 150, d, rng)
        K = long_gaussian(X, X, sigma)
        for tol in (1e-2, 1e-5, 1e-8, 1e-11):
            if tol < reachable(d):
                continue
            summation = ClusterSummation(Rows(X), sigma=sigma, tol=tol, leaf=8)
            assert summation.error_bound <= tol
            # each entry carries the rounding of an exact one besides, of the reference's displaced rows
            found = entries(summation)
            assert np.abs(found - K).max() <= summation.error_bound + 2 * reachable(d)
            assert np.abs(found - found.T).max() <= 1e-12
            assert summation.symmetric


def force_expansions(monkeypatch):
    """Exact values as dear as anything: whatever the bounds allow is expanded."""
    cheap = clusters.costs

    def costs(d):
        price = cheap(d)
        price[0] *= 1e4
        return price

    monkeypatch.setattr(clusters, "costs", costs)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_every_entry_within_tol_where_all_is_expanded(d, monkeypatch):
    force_expansions(monkeypatch)
    sharpest, expanded = {}, 0
    for seed in range(3):
        rng = np.random.default_rng([seed, d])
        for kind in KINDS:
            X = rows_of(kind, 120, d, rng)
            sigma = float(np.exp(rng.uniform(np.log(0.05), np.log(2.0))))
            for tol in (1e-2, 1e-4, 1e-7, 1e-10, 1e-12):
                leaf = int(rng.choice([4, 32, 120]))
                summation = ClusterSummation(Rows(X), sigma=sigma, tol=tol, leaf=leaf)
                expanded += int((summation.pairs[:, 2] > 0).sum())
                error = worst(summation, X, X, sigma)
                assert error <= summation.error_bound + 2 * reachable(d)
                assert summation.error_bound <= tol
                sharpest[tol] = max(sharpest.get(tol, 0.0), error / tol)
    assert expanded > 100
    # the bound is no looser than its purpose: somewhere a tenth of tol is reached
    assert min(sharpest[tol] for tol in (1e-2, 1e-4)) > 0.1


def parallel_clusters(a, b, D, d, n, rng):
    """Two clusters of radii a and b at distance D with rows at their rims, along and against the line between them."""
    axis = np.zeros(d)
    axis[0] = 1.0
    steps = np.linspace(-1.0, 1.0, n)[:, None]
    side = rng.standard_normal((n, d))
    side /= np.linalg.norm(side, axis=1)[:, None]
    X = np.concatenate([b * steps * axis, b * side])
    Y = np.concatenate([a * steps * axis, a * side]) + D * axis
    return X, Y


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_of_a_pair_of_clusters(seed):
    """Truncation by hand, in longdouble, over the worst rows by construction."""
    rng = np.random.default_rng(seed)
    for _ in range(150):
        a, b = np.exp(rng.uniform(np.log(0.05), np.log(3.0), 2))
        D = float(rng.choice([0.0, rng.uniform(0, a + b), rng.uniform(0, 6)]))
        d = int(rng.integers(1, 4))
        X, Y = parallel_clusters(a, b, D, d, 21, rng)
        X, Y = X.astype(np.longdouble), Y.astype(np.longdouble)
        centre = np.zeros(d, np.longdouble)
        centre[0] = D
        product = X @ (Y - centre).T
        K = long_gaussian(X, Y, 1.0)
        delta = float(np.sqrt(((X[:, None] - Y[None]) ** 2).sum(-1)).min())
        delta = max(0.0, min(delta, D - a - b))
        p = int(np.ceil(a * b)) + int(rng.integers(0, 8))
        p = max(p, 1)
        term, total = np.ones_like(product), np.zeros_like(product)
        for m in range(p):
            total = total + term
            term = term * product / (m + 1)
        error = float(np.abs(K - K * np.exp(-product) * total).max())
        bound = core.expansion_error(p, a, b, D, delta)
        assert error <= bound * (1 + 1e-9) + 1e-17 * np.exp(2 * a * b)
        if D == 0.0:
            assert bound <= gammainc(p, a * b) * (1 + 1e-6) or a != b


def test_targets_inside_a_large_cluster(monkeypatch):
    """The design's example: r = 3, a = .5 errs by .35 at p = 1, where the form for targets outside says .03."""
    force_expansions(monkeypatch)
    for tol in (0.3, 1e-2, 1e-6):
        for targets in (np.array([[0.5], [0.0], [-0.5]]), np.array([[3.0], [-3.0]]), np.array([[9.0], [30.0]])):
            sources = np.linspace(-3.0, 3.0, 41)[:, None]
            for leaf in (1, 4, 64):
                summation = ClusterSummation(Rows(targets), Rows(sources), sigma=1.0, tol=tol, leaf=leaf)
                assert worst(summation, targets, sources, 1.0) <= tol


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_rectangular_and_its_adjoint(d, monkeypatch):
    for forced in (False, True):
        if forced:
            force_expansions(monkeypatch)
        rng = np.random.default_rng(d)
        sources = rows_of("clustered", 400, d, rng)
        targets = np.concatenate(
            [sources[:50] + 1e-3, rng.random((90, d)), rng.random((20, d)) * 50, sources[:1] + 1e6]
        )
        for sigma in (0.05, 0.5, 3.0):
            for tol in (1e-2, 1e-7):
                summation = ClusterSummation(Rows(targets), Rows(sources), sigma=sigma, tol=tol, leaf=16)
                assert summation.shape == (161, 400)
                assert not summation.symmetric
                K = entries(summation)
                assert np.abs(K - long_gaussian(targets, sources, sigma)).max() <= tol
                transposed = summation.rmatmat(np.eye(161))
                assert np.abs(K - transposed.T).max() <= 1e-12


def test_the_sum_is_within_tol_of_absolute_weights():
    rng = np.random.default_rng(3)
    X = rng.random((4000, 3))
    K = long_gaussian(X[::16], X, 0.3)
    for tol in (1e-2, 1e-5, 1e-10):
        summation = ClusterSummation(Rows(X), sigma=0.3, tol=tol)
        for U in (rng.standard_normal((4000, 3)), rng.random((4000, 2)), np.ones((4000, 1))):
            error = np.abs(summation.matmat(U)[::16] - K @ U) / np.abs(U).sum(axis=0)
            assert error.max() <= tol


def test_linear_and_equal_bits_at_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = np.concatenate([rows_of("collinear", 1500, 3, rng), rng.random((1500, 3))])
    Y = np.concatenate([X[:1000] + 1e-3, rng.random((1000, 3))])
    U = rng.standard_normal((3000, 3))
    for other in (None, Rows(Y)):
        products = []
        for threads in (1, 2, 5):
            summation = ClusterSummation(Rows(X), other, sigma=0.1, tol=1e-6, n_threads=threads)
            V = U if other is None else U[:2000]
            products.append((summation.matmat(V), summation.rmatmat(U)))
        assert (summation.pairs[:, 2] > 0).any() and (summation.pairs[:, 2] == 0).any()
        for one, two in products[1:]:
            assert np.array_equal(one, products[0][0])
            assert np.array_equal(two, products[0][1])
        V = U if other is None else U[:2000]
        single = np.column_stack([summation.matmat(V[:, c : c + 1])[:, 0] for c in range(3)])
        assert np.abs(single - products[0][0]).max() <= 1e-12 * np.abs(V).sum()
        combined = summation.matmat(V @ np.array([[1.0], [2.0], [-0.5]]))
        assert np.abs(combined - products[0][0] @ np.array([[1.0], [2.0], [-0.5]])).max() <= 1e-12 * np.abs(V).sum()


def test_batches_of_coefficients_give_the_same_product(monkeypatch):
    rng = np.random.default_rng(1)
    X, U = rng.random((3000, 2)), rng.standard_normal((3000, 2))
    summation = ClusterSummation(Rows(X), sigma=0.2, tol=1e-8, leaf=32)
    whole = summation.matmat(U)
    monkeypatch.setattr(clusters, "COEFFICIENTS", 500)
    assert len(list(clusters._batches(summation._forward.target, summation._forward.terms * 2))) > 3
    assert np.abs(summation.matmat(U) - whole).max() <= 1e-12 * np.abs(U).sum()


def test_large_clusters_in_strips(monkeypatch):
    """More rows than a strip, more partners than a block, and exact nodes cut into pieces."""
    rng = np.random.default_rng(2)
    X = np.repeat(rng.random((3, 2)), 1500, axis=0)
    U = rng.standard_normal((4500, 2))
    for sigma in (0.01, 0.1, 10.0):
        summation = ClusterSummation(Rows(X), sigma=sigma, tol=1e-9)
        assert np.abs(summation.matmat(U)[::45] - long_gaussian(X[::45], X, sigma) @ U).max() <= 1e-9 * np.abs(U).sum()
    monkeypatch.setattr(clusters, "STRIP", 100)
    monkeypatch.setattr(clusters, "LEAST_TASK", 1 << 12)
    X = rng.random((600, 3))
    summation = ClusterSummation(Rows(X), sigma=0.05, tol=1e-4, leaf=200)
    assert (summation.pairs[:, 2] == 0).any()
    assert worst(summation, X, X, 0.05) <= 1e-4


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n):
    X = np.arange(n, dtype=float)[:, None] * np.ones(4)
    summation = ClusterSummation(Rows(X), sigma=1.0, tol=1e-6)
    assert worst(summation, X, X, 1.0) <= 1e-6
    summation = ClusterSummation(Rows(X), Rows(X[:1]), sigma=1.0, tol=1e-6)
    assert worst(summation, X, X[:1], 1.0) <= 1e-6
    assert summation.matmat(np.zeros((1, 0))).shape == (n, 0)


def test_equal_rows_are_one_term_each():
    X = np.full((5000, 3), 0.1)
    summation = ClusterSummation(Rows(X), sigma=0.5, tol=1e-9)
    assert np.array_equal(summation.pairs, [[0, 0, 1]])
    assert np.abs(summation.matmat(np.ones((5000, 1))) - 5000).max() <= 1e-9 * 5000


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_extreme_units(scale):
    X = np.random.default_rng(0).random((200, 2)) * scale
    for sigma in (1e-3, 1.0, 1e3):
        summation = ClusterSummation(Rows(X), sigma=sigma, tol=1e-6, leaf=16)
        with np.errstate(over="ignore"):
            assert worst(summation, X, X, sigma) <= 1e-6


def test_rows_are_not_modified_and_shifted_rows_are_taken():
    X = np.random.default_rng(0).random((300, 3)) + 1e6
    before = X.copy()
    shifted = Rows(X, X.mean(axis=0))
    summation = ClusterSummation(shifted, sigma=0.2, tol=1e-6)
    summation.matmat(np.ones((300, 1)))
    assert np.array_equal(X, before)
    assert worst(summation, shifted.all(), shifted.all(), 0.2) <= 1e-6


def test_the_tree():
    rng = np.random.default_rng(5)
    for kind in KINDS:
        X = rows_of(kind, 2000, 3, rng)
        rows, order, start, stop, left, centre, low, high, radius = core.bisect(X, 50)
        assert np.array_equal(rows, X[order])
        assert np.array_equal(np.sort(order), np.arange(2000))
        for i in range(len(start)):
            part = rows[start[i] : stop[i]]
            assert (part >= low[i]).all() and (part <= high[i]).all()
            far = np.sqrt(((part.astype(np.longdouble) - centre[i]) ** 2).sum(axis=1)).max()
            assert far <= radius[i]
            if left[i] >= 0:
                parts = left[i], left[i] + 1
                assert start[parts[0]] == start[i] and stop[parts[0]] == start[parts[1]] and stop[parts[1]] == stop[i]
            else:
                assert stop[i] - start[i] <= 50 or (part == part[0]).all()


def test_expansions_against_the_series():
    rng = np.random.default_rng(8)
    for d, q in ((1, 1), (3, 3), (4, 2)):
        axes = None if q == d else np.linalg.qr(rng.standard_normal((d, q)))[0]
        parent, coordinate, exponent, start = multiindex.table(q, 5)
        expansions = core.Expansions(d, axes, 0.7, parent, coordinate, exponent)
        rows, centre, partners = rng.random((301, d)), rng.random(d), rng.random((150, d))
        terms = np.sort(np.array([start[k] for k in rng.integers(1, 7, 150)]))[::-1].astype(np.intp)
        U, weight = rng.standard_normal((301, 2)), rng.random(150)
        offset = np.cumsum(terms * 2) - terms * 2
        G = np.full(int((terms * 2).sum()), np.nan)
        expansions.accumulate(rows, centre, partners, np.ascontiguousarray(terms), weight, U, G, offset)
        T = (rows - centre) / 0.7 if axes is None else (rows - centre) / 0.7 @ axes
        phi = np.ones((len(parent), 301))
        for j in range(1, len(parent)):
            phi[j] = phi[parent[j]] * T[:, coordinate[j]] / np.sqrt(exponent[j])
        K = np.asarray(long_gaussian(rows, partners, 0.7), dtype=float)
        V = np.zeros((301, 2))
        for e in range(150):
            expected = weight[e] * phi[: terms[e]] @ (K[:, e : e + 1] * U)
            found = G[offset[e] : offset[e] + 2 * terms[e]].reshape(2, terms[e]).T
            assert np.allclose(found, expected, rtol=1e-11, atol=1e-11)
            V += K[:, e : e + 1] * (phi[: terms[e]].T @ expected)
        assert np.allclose(
            expansions.evaluate(rows, centre, partners, np.ascontiguousarray(terms), G, offset, 2), V, rtol=1e-11
        )


def test_refusals_say_what_is_reachable():
    rows = Rows(np.random.default_rng(0).random((100, 3)))
    with pytest.raises(ValueError, match=r"tol is 1e-17; .* reach"):
        ClusterSummation(rows, sigma=1.0, tol=1e-17)
    with pytest.raises(MemoryError, match="memory_limit is 0 MB"):
        ClusterSummation(rows, sigma=1.0, tol=1e-6, memory_limit=1e5)
    summation = ClusterSummation(rows, sigma=1.0, tol=1e-6)
    with pytest.raises(ValueError, match=r"\(100, k\) is needed"):
        summation.matmat(np.ones((99, 1)))
    with pytest.raises(ValueError, match="NaN"):
        summation.matmat(np.full((100, 1), np.nan))
    ClusterSummation(rows, sigma=1.0, tol=reachable(3))


def test_a_plan_that_is_too_long_takes_larger_clusters(monkeypatch):
    X = np.random.default_rng(0).random((6000, 3))
    tree = core.Tree(*core.bisect(X, 8)[2:])
    price, terms = clusters.costs(3), clusters._terms(3)
    assert core.treatments(tree, tree, 0.05, 1e-6, terms, price, most=100)[0] is None
    full = core.treatments(tree, tree, 0.05, 1e-6, terms, price)[0]
    assert len(full) > 100
    unlimited = core.treatments
    monkeypatch.setattr(core, "treatments", lambda *args, **options: unlimited(*args, **{**options, "most": 100}))
    summation = ClusterSummation(Rows(X), sigma=0.05, tol=1e-6, leaf=8)
    assert 0 < len(summation.pairs) <= 100
    U = np.ones((6000, 1))
    assert np.abs(summation.matmat(U)[::60] - long_gaussian(X[::60], X, 0.05) @ U).max() <= 1e-6 * 6000


def test_offer():
    rng = np.random.default_rng(0)
    rows, data = look(rows_of("clustered", 20000, 5, rng))
    offer = cluster_offer(data, data, 0.3, 1e-6)
    assert offer is not None and offer.name == "clusters"
    exact = clusters.costs(5)[0] * RATE.features * 20000.0**2 / 2
    assert offer.cost.setup_flops + offer.cost.row_flops * 20000 < 0.5 * exact
    assert offer.cost.column_flops <= offer.cost.row_flops
    summation = offer.build(rows)
    assert isinstance(summation, ClusterSummation)
    assert summation.error_bound <= 1e-6
    # the prediction is of this plan, within a small factor: what it would count from all rows
    plan, side = summation.pairs, summation._x
    price, terms = clusters.costs(5), clusters._terms(5)
    counted = clusters._seconds(plan, side, side, terms, price, 1.0, 1.0)[0]
    assert 0.2 < offer.cost.row_flops * 20000 / RATE.features / counted < 5
    assert cluster_offer(data, data, 0.3, 1e-17) is None
    assert cluster_offer(data, data, 0.3, 1e-6, memory_limit=1e6) is None
    other = look(rng.random((3000, 5)))[1]
    assert cluster_offer(other, data, 0.3, 1e-6) is not None


def test_no_offer_where_every_pair_is_exact():
    data = look(np.random.default_rng(0).random((20000, 8)))[1]
    assert cluster_offer(data, data, 0.3, 1e-6) is None


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
