"""Kernel k-means, spectral clustering and diffusion maps: against dense references, and their certificates attacked."""

import warnings

import intervals
import numpy as np
import pytest
from clustering_cases import difference
from kernels_contrib.clustering import assign, kernel_kmeans
from kernels_contrib.diffusion import diffusion_map, neighbor_graph, spectral_clustering
from kernels_contrib.methods.partition import share_that_may_differ
from kernels_contrib.sklearn import SpectralClustering as OfNeighbours
from sklearn.cluster import KMeans, SpectralClustering

import fastkpca as fk

RNG = np.random.default_rng(0)
CENTRES = np.array([[0.0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 2]])
X = np.concatenate([0.3 * RNG.standard_normal((80, 3)) + centre for centre in CENTRES])
TRUE = np.repeat(np.arange(4), 80)
SIGMA = 1.0
K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * SIGMA**2))
WEIGHTS = RNG.uniform(0.5, 3.0, len(X))


def dense_cost(K, labels, weights):
    """Sum of squared distances to the means of the groups, pair by pair."""
    cost = 0.0
    for group in np.unique(labels):
        rows = np.flatnonzero(labels == group)
        w, block = weights[rows], K[np.ix_(rows, rows)]
        cost += w @ np.diag(block) - w @ block @ w / w.sum()
    return cost


@pytest.mark.parametrize("method", ["features", "gram"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_the_cost_is_that_of_the_dense_formula(method, weights):
    model = kernel_kmeans(X, "gaussian", 4, sigma=SIGMA, method=method, tol=1e-9, sample_weight=weights)
    w = np.ones(len(X)) if weights is None else weights
    exact = dense_cost(K, model.labels, w)
    assert model.cost_bounds[0] <= exact <= model.cost_bounds[1]
    np.testing.assert_allclose(model.inertia, exact, rtol=1e-6)
    np.testing.assert_allclose(model.sizes, np.bincount(model.labels, w), rtol=1e-12)
    H = np.eye(len(X)) - np.outer(np.ones(len(X)), w) / w.sum()
    values = np.linalg.eigvalsh(np.sqrt(w)[:, None] * (H @ K @ H.T) * np.sqrt(w))[::-1]
    least = values.sum() - values[:3].sum()
    assert least * (1 - 1e-5) <= model.least_cost <= least
    assert model.gap[0] <= values[2] - values[3] <= model.gap[1]
    assert difference(model.labels, TRUE[None], w, 4)[0] < 0.01
    assert model.differing < 0.1 and "any that costs no more differs in at most" in model.verdict


@pytest.mark.parametrize("method", ["features", "gram"])
def test_as_scikit_learn_on_exact_features(method):
    rows = RNG.standard_normal((150, 2)) @ [[1.0, 0.5], [0.0, 1.0]] + np.repeat([[0, 0], [3, 0], [0, 4]], 50, axis=0)
    squares = np.stack([rows[:, 0] ** 2, rows[:, 1] ** 2, np.sqrt(2) * rows[:, 0] * rows[:, 1]], axis=1)
    Phi = np.hstack([np.ones((150, 1)), np.sqrt(2) * rows, squares])
    model = kernel_kmeans(rows, "polynomial", 3, degree=2, offset=1.0, method=method)
    theirs = KMeans(3, n_init=20, random_state=0).fit(Phi)
    assert model.inertia <= theirs.inertia_ * (1 + 1e-3)  # another local minimum, if at all
    new = RNG.uniform(-2, 4, (40, 2))
    squares = np.stack([new[:, 0] ** 2, new[:, 1] ** 2, np.sqrt(2) * new[:, 0] * new[:, 1]], axis=1)
    features = np.hstack([np.ones((40, 1)), np.sqrt(2) * new, squares])
    means = np.stack([Phi[model.labels == j].mean(axis=0) for j in range(3)])
    nearest = np.argmin(((features[:, None] - means[None]) ** 2).sum(axis=2), axis=1)
    np.testing.assert_array_equal(assign(model, new), nearest)
    np.testing.assert_array_equal(model.predict(rows), model.labels)


def test_a_budget_of_features_says_what_it_misses():
    wide = RNG.standard_normal((600, 8))
    model = kernel_kmeans(wide, "gaussian", 3, max_features=40)
    full = np.asarray(fk.gram(wide, model.kernel))
    exact = dense_cost(full, model.labels, np.ones(600))
    assert model.info["n_features"] <= 40
    assert model.cost_bounds[0] <= exact <= model.cost_bounds[1]
    assert np.ptp(model.cost_bounds) > 0.01 * exact


def random_walk(K, weights, alpha):
    """(eigenvalues, functions psi, volumes) of the dense random walk."""
    start = weights * (K @ weights) ** -alpha
    sums = K @ start
    volumes = start * sums
    root = np.sqrt(start / sums)
    values, vectors = np.linalg.eigh(root[:, None] * K * root)
    return values[::-1], vectors[:, ::-1] * np.sqrt(volumes.sum() / volumes)[:, None], volumes


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("method", ["dense", "features", "krylov"])
def test_diffusion_maps_are_those_of_the_dense_walk(alpha, weights, method):
    train, new = np.arange(0, len(X), 2), np.arange(1, len(X), 16)
    w = np.ones(len(train)) if weights is None else weights[train]
    given = None if weights is None else w
    model = diffusion_map(
        X[train], "gaussian", 3, sigma=SIGMA, time=2.0, alpha=alpha, method=method, sample_weight=given, tol=1e-9
    )
    values, psi, volumes = random_walk(K[np.ix_(train, train)], w, alpha)
    intervals.hold(model, values, 1e-14)
    assert (model.gaps[:, 0] <= -np.diff(values[:4])).all() and (-np.diff(values[:4]) <= model.gaps[:, 1]).all()
    expected = psi[:, 1:4] * values[1:4] ** 2
    signs = np.sign(np.sum(model.coordinates * expected, axis=0))
    np.testing.assert_allclose(model.coordinates, expected * signs, atol=2e-5)
    np.testing.assert_allclose(volumes @ psi[:, 1] ** 2 / volumes.sum(), 1.0)
    # new rows: the walk's own equation, psi(x) = sum_j p(x, j) psi_j / lambda
    steps = K[np.ix_(new, train)] * (w * (K[np.ix_(train, train)] @ w) ** -alpha)
    steps /= steps.sum(axis=1, keepdims=True)
    at_new = (steps @ psi[:, 1:4]) * values[1:4] * signs
    np.testing.assert_allclose(model.project(X[new]), at_new, atol=2e-4)
    np.testing.assert_allclose(model.project(X[train]), model.coordinates, atol=2e-4)


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_groups_as_of_scikit_learn(sigma):
    model = spectral_clustering(X, "gaussian", 4, sigma=sigma)
    theirs = SpectralClustering(4, gamma=1 / (2 * sigma**2), random_state=0).fit(X)
    assert difference(model.labels, theirs.labels_[None], np.ones(len(X)), 4)[0] == 0.0
    np.testing.assert_array_equal(model.predict(X), model.labels)
    values = random_walk(np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * sigma**2)), np.ones(len(X)), 0.0)[0]
    np.testing.assert_allclose(model.eigenvalues, values[: len(model.eigenvalues)], atol=1e-6)
    assert (1 - values[1:4]).sum() * (1 - 1e-5) <= model.least_cost <= (1 - values[1:4]).sum() + 1e-14


def test_the_number_of_groups_is_proved():
    model = spectral_clustering(X, "gaussian", sigma=0.5)
    assert model.n_groups == 4 and model.info["number"] == "proved to have the largest gap"
    assert model.gaps[3, 0] > np.delete(model.gaps[1:10, 1], 2).max()
    coarse = spectral_clustering(X, "gaussian", sigma=0.5, max_features=12)
    if "not proved" in coarse.info["number"]:
        assert not coarse.gaps[coarse.n_groups - 1, 0] > np.delete(coarse.gaps[1:10, 1], coarse.n_groups - 2).max()
    assert np.ptp(coarse.eigenvalue_bounds, axis=1).max() > 1e-3


def test_an_equal_gap_is_not_proved_to_be_the_largest():
    # three pairs of equal groups: gaps after two and three groups cannot be told apart when all eigenvalues are 1
    blocks = np.kron(np.eye(6), np.ones((5, 5)))
    model = spectral_clustering(blocks, "precomputed", max_groups=4)
    assert model.info["number"] == "not proved to have the largest gap"


@pytest.mark.parametrize("n_neighbors", [5, 10, 60])
def test_the_graph_of_nearest_neighbours_is_that_of_scikit_learn(n_neighbors):
    theirs = SpectralClustering(4, affinity="nearest_neighbors", n_neighbors=n_neighbors, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the graph of few neighbours is not connected
        theirs.fit(X)
    A = neighbor_graph(X, n_neighbors)
    assert abs((A + A.T) / 2 - theirs.affinity_matrix_).max() == 0.0
    model = spectral_clustering(X, k=4, affinity="nearest_neighbors", n_neighbors=n_neighbors)
    assert difference(model.labels, TRUE[None], np.ones(len(X)), 4)[0] < 0.02
    assert difference(model.labels, theirs.labels_[None], np.ones(len(X)), 4)[0] == 0.0
    new = X[::5] + 0.01
    np.testing.assert_array_equal(model.predict(neighbor_graph(new, n_neighbors, X)), model.labels[::5])
    estimator = OfNeighbours(4, affinity="nearest_neighbors", n_neighbors=n_neighbors).fit(X)
    np.testing.assert_array_equal(estimator.labels_, model.labels)
    np.testing.assert_array_equal(estimator.predict(new), model.labels[::5])


def test_a_graph_of_neighbours_is_refused_in_words():
    with pytest.raises(ValueError, match="takes no kernel; leave out the kernel"):
        spectral_clustering(X, "gaussian", 4, affinity="nearest_neighbors", sigma=1.0)
    with pytest.raises(ValueError, match="takes no kernel; leave out gamma"):
        OfNeighbours(4, affinity="nearest_neighbors", gamma=1.0).fit(X)
    with pytest.raises(ValueError, match="n_neighbors is 321; there are 320 rows"):
        spectral_clustering(X, k=4, affinity="nearest_neighbors", n_neighbors=321)
    with pytest.raises(ValueError, match="NaN"):
        neighbor_graph(np.where(X > 2, np.nan, X))
    with pytest.raises(ValueError, match="train has 3 columns, X has 2"):
        neighbor_graph(X[:, :2], 3, X)


def test_the_share_that_may_differ():
    """The lemma on two clusterings, for random ones of rows with weights: eps as defined, t by all matchings."""
    rng, closest = np.random.default_rng(4), np.inf
    for _ in range(3000):
        k, n = int(rng.integers(2, 5)), int(rng.integers(6, 40))
        w = rng.random(n) ** rng.choice([0.1, 2.0])
        a = np.append(np.arange(k), rng.integers(k, size=n - k))
        moved = rng.random(n) < rng.choice([0.05, 0.1, 0.3])
        b = np.where(moved, rng.integers(k, size=n), a)
        if len(np.unique(b)) < k:
            continue
        m = np.zeros((k, k))
        np.add.at(m, (a, b), w)
        eps = k - float((m**2 / m.sum(axis=1, keepdims=True) / m.sum(axis=0)).sum())
        t = difference(a, b[None], w, k)[0]
        bound = share_that_may_differ(max(eps, 0.0), m.sum(axis=1).max() / w.sum())
        assert t <= bound + 1e-12
        closest = min(closest, bound / t if t > 0 else np.inf)
    assert closest < 1.3  # and not far above what happens
    assert share_that_may_differ(1.0, 0.5) == 1.0
    assert abs(share_that_may_differ(0.5 - 1e-12, 0.4) - share_that_may_differ(0.5, 0.4)) < 1e-5


def test_vacuous_certificates_say_so():
    noise = np.random.default_rng(5).standard_normal((300, 20))
    model = kernel_kmeans(noise, "gaussian", 5)
    assert (model.differing == 1.0 and "a proof" in model.verdict) or "nothing is proved about others" in model.verdict
    equal = np.repeat(RNG.standard_normal((4, 2)), 10, axis=0)
    exact = kernel_kmeans(equal, "gaussian", 4, sigma=0.2)
    assert exact.least_cost == 0.0 and exact.above_least == np.inf
    assert "nothing is proved about the cost" in exact.verdict or exact.cost_bounds[1] < 1e-9


@pytest.mark.parametrize("fit", [kernel_kmeans, spectral_clustering])
def test_rows_of_weight_zero_have_a_group_and_no_cost(fit):
    """Of other weights the attack tries every clustering."""
    counts = np.random.default_rng(6).integers(1, 4, len(X))
    weighted = fit(X, "gaussian", 4, sigma=SIGMA, sample_weight=counts)
    near = np.vstack([X, X[:1] + 0.1])
    zero = fit(near, "gaussian", 4, sigma=SIGMA, sample_weight=np.append(counts, 0))
    np.testing.assert_allclose(zero.cost_bounds, weighted.cost_bounds, rtol=2e-5)
    assert len(zero.labels) == len(X) + 1


@pytest.mark.parametrize("fit", [kernel_kmeans, spectral_clustering])
def test_one_group_is_all_rows(fit):
    model = fit(X, "gaussian", 1, sigma=SIGMA)
    assert not model.labels.any() and model.differing == 0.0
    assert 0 <= model.cost_bounds[1] - model.least_cost < 1e-5 * len(X)


def test_pieces_that_nothing_joins():
    """The eigenvalue 1 as often as there are pieces: any basis of its eigenvectors may come."""
    far = np.concatenate([X[TRUE == 0] + 100.0 * i for i in range(3)])
    pieces = np.repeat(np.arange(3), 80)
    model = spectral_clustering(far, "gaussian", sigma=SIGMA, max_groups=5)
    assert model.n_groups == 3 and difference(model.labels, pieces[None], np.ones(240), 3)[0] == 0.0
    assert model.differing < 1e-6 and model.cut < 1e-6
    np.testing.assert_array_equal(model.predict(far + 0.01), model.labels)
    walk = diffusion_map(far, "gaussian", 2, sigma=SIGMA)
    np.testing.assert_allclose(walk.project(far[::7]), walk.coordinates[::7], atol=1e-4)
    means = np.stack([walk.coordinates[pieces == i].mean(axis=0) for i in range(3)])
    assert np.abs(walk.coordinates - means[pieces]).max() < 1e-4
    spread = np.linalg.norm(means[:, None] - means[None], axis=2)
    np.testing.assert_allclose(spread[np.triu_indices(3, 1)], np.sqrt(6), rtol=1e-3)  # three equal volumes
