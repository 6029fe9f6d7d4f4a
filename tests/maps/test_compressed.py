"""The moment of Fourier features in few directions: what it keeps is exact, what it leaves out is bounded."""

import itertools

import intervals
import numpy as np
import pytest
import reference

import fastkpca as fk
from fastkpca.maps import compressed, toeplitz, transforms
from fastkpca.maps.fourier import gaussian_fourier_map
from fastkpca.solve.moments import leading_axes

SIZES = [(3, 0.9, 1e-7), (3, 0.6, 1e-3), (3, 1.2, 1e-3)]


@pytest.fixture(autouse=True)
def _for_few_features_too(monkeypatch):
    monkeypatch.setattr(toeplitz, "MAX_DENSE_MODES", 0)


def rows_of(rng, d, n=200):
    """In a box of unequal sides: random ones, many equal ones, its corners."""
    sides = rng.uniform(0.3, 1.0, d)
    X = rng.random((n, d)) * sides
    X[: n // 4] = X[0]
    X[n // 4 : n // 2, 0] = sides[0]
    return np.vstack([X, list(itertools.product(*([0.0, side] for side in sides)))])


@pytest.mark.parametrize(("d", "sigma", "tol"), SIZES)
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_moment_in_orthonormal_directions_and_what_is_left_out_is_bounded(d, sigma, tol, weighted):
    rng = np.random.default_rng(d)
    X = rows_of(rng, d)
    w = rng.random(len(X)) if weighted else np.ones(len(X))
    feature_map = gaussian_fourier_map(np.stack([X.min(axis=0), X.max(axis=0)]), sigma, tol)
    moments = feature_map.new_moments()
    moments.update(X, w if weighted else None)
    small = moments.compressed(1)
    matrix = small.product(np.eye(small.size))
    k, D = small.size, feature_map.n_features
    assert k < D
    Q = small.lift(np.eye(k))
    assert np.abs(Q.T @ Q - np.eye(k)).max() <= 1e-13
    C = moments.form()
    rounding = small.product_error * np.sqrt(k) + moments.product_error * np.sqrt(D)
    assert np.linalg.norm(Q.T @ C @ Q - matrix) <= small.error + rounding
    assert small.error <= 0.5 * moments.count * feature_map.transform_error
    assert small.product_error <= 1e-10 * np.linalg.norm(matrix, 2)
    Phi = feature_map.features(X) * np.sqrt(w)[:, None]
    rest = Phi - (Phi @ Q) @ Q.T
    assert np.sum(rest**2) <= small.left_out * (1 + 1e-9)
    assert small.left_out <= 1.001 * moments.count * feature_map.tail
    # of single rows, wherever they are most
    assert (np.einsum("ij,ij->i", rest, rest) <= small.left_out / moments.count * (1 + 1e-9)).all()


@pytest.mark.parametrize(("d", "sigma", "tol"), SIZES)
def test_the_norm_and_the_distance_to_semidefinite(d, sigma, tol):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rows_of(rng, d, int(rng.integers(20, 400)))
        feature_map = gaussian_fourier_map(np.stack([X.min(axis=0), X.max(axis=0)]), sigma, tol)
        moments = feature_map.new_moments()
        moments.update(X[::2])
        assert moments.norm > 0.0  # of fewer rows: what it kept is forgotten
        moments.update(X[1::2], rng.random(len(X[1::2])))
        norm, indefinite = moments.norm, moments.indefinite
        exact = np.linalg.norm(moments.form())
        assert (1.0 - 1e-14) * exact <= norm <= (1.0 + 1e-6) * exact
        assert 0.0 <= indefinite - moments.count * feature_map.transform_error <= 1e-3 * indefinite


def moments_of(X, sigma, tol):
    moments = gaussian_fourier_map(np.stack([X.min(axis=0), X.max(axis=0)]), sigma, tol).new_moments()
    moments.update(X)
    return moments


@pytest.mark.parametrize("tol", [1e-3, 1e-7, 1e-10])
@pytest.mark.parametrize("kind", ["smooth", "heavy", "two", "line", "equal"])
def test_nodes_have_the_moment_of_rows_within_their_error_and_no_large_weights(kind, tol):
    rng = np.random.default_rng(3)
    X = {
        "smooth": rng.random((400, 3)),
        "heavy": rng.standard_t(2, (400, 2)).clip(-5, 5),
        "two": rng.integers(0, 2, (400, 3)) * 1.0,
        "line": rng.random((400, 3)) * [1.0, 0.0, 1e-3],
        "equal": np.ones((400, 2)),
    }[kind]
    moments = moments_of(X, 0.8 if X.shape[1] < 3 else 2.0, tol)
    whole, count = moments.map, moments.count
    for share in (1.0, 0.3, 0.03):  # the last one below what the sums themselves err by
        most = share * count * whole.transform_error
        nodes, weights, bound = compressed.quadrature(
            moments._exact_count(), count, moments._roots_of_pairs, whole._inside, most
        )
        Phi = np.ones((1, 1))
        for x, m, root in zip(nodes, whole.half, whole.roots):
            Phi = np.einsum("ia,jb->ijab", Phi, transforms.waves_at(x, m) * root).reshape(len(Phi) * len(x), -1)
        U = rng.standard_normal((whole.n_features, 5))
        U /= np.linalg.norm(U, axis=0)
        exact = moments._uncentred(U, 1, moments._axes, moments.symbol)
        error = np.linalg.norm(Phi.T @ (weights.reshape(-1, 1) * (Phi @ U)) - exact, axis=0).max()
        assert error <= bound + moments.product_error
        assert np.abs(weights).sum() <= 20.0 * count
        assert bound <= 3.0 * max(most, 0.1 * count * whole.transform_error)


@pytest.mark.parametrize("m", [0, 1, 2, 9, 40])
@pytest.mark.parametrize("r", [1e-9, 0.01, 0.5, 2.0, np.pi])
def test_no_function_is_larger_than_its_bound(m, r):
    line = np.exp(-18.0 * (np.arange(m + 1) / max(m, 1)) ** 2)
    root = np.sqrt(np.concatenate([line[:1], 2.0 * line[1:], 2.0 * line[1:]]))
    basis, largest = compressed._functions(root, r)
    x = np.unique(np.concatenate([np.linspace(-r, r, 20001), r * np.cos(np.linspace(0, np.pi, 2001))]))
    values = (transforms.waves_at(x, m) * root) @ basis
    assert (np.abs(values).max(axis=0) <= largest).all()
    assert np.abs(basis.T @ basis - np.eye(2 * m + 1)).max() <= 1e-13
    assert (np.diff(largest) <= 0).all()


def clusters(rng):
    return rng.random((10, 3))[rng.integers(0, 10, 1200)] + 0.05 * rng.standard_normal((1200, 3))


@pytest.mark.parametrize(
    ("rows", "sigma", "tol", "c"),
    [
        (lambda rng: rng.random((1500, 3)), 0.3, 1e-8, 10),
        (clusters, 0.2, 1e-7, 10),
    ],
    ids=["even", "clusters"],
)
def test_a_moment_is_multiplied_with_in_few_directions_and_what_proves_its_pairs_never_fails(
    rows, sigma, tol, c, monkeypatch
):
    """On a grid, where FFTs of all features did it. With a flat spectrum the traces prove nothing: a Cholesky does."""
    X = rows(np.random.default_rng(5))
    moments = moments_of(X, sigma, tol)
    assert moments.compressed(1).size < 0.6 * moments.map.n_features
    monkeypatch.setattr(type(moments), "matmat", lambda *_: pytest.fail("all features were multiplied with"))
    pairs = leading_axes(moments, c, tol=1e-6, rank=len(X) - 1, failure=1e-6)[2]
    assert pairs.certificate.bound_kind == "guaranteed"
    exact = reference.eigh(reference.gram("gaussian", X, sigma=sigma))[0][:c]
    intervals.hold(pairs.certificate, exact, moments.residual_trace + moments.indefinite)
    assert np.ptp(pairs.certificate.eigenvalue_bounds[:c], axis=1).max() <= 1e-6 * exact[0]


@pytest.mark.parametrize(("sigma", "tol"), [(0.5, 1e-6), (1.0, 1e-4), (0.8, 1e-8)])
def test_intervals_of_models_hold_and_are_guaranteed(sigma, tol):
    X = rows_of(np.random.default_rng(7), 3, 500)
    values = reference.eigh(reference.gram("gaussian", X, sigma=sigma))[0]
    model = fk.kpca(X, "gaussian", 8, sigma=sigma, tol=tol, features="fourier")
    assert model.info["n_features"] >= 1000 and model.bound_kind == "guaranteed"
    intervals.hold(model, values, 1e-13 * len(X), tol=tol)
    coeff, score = np.asarray(model.coeff), np.asarray(model.score)
    centred = reference.center(reference.gram("gaussian", X, sigma=sigma))
    assert np.abs(centred @ coeff - score).max() <= 10 * np.sqrt(tol) * np.abs(score).max()


def test_a_moment_of_many_directions_in_space_is_multiplied_with_and_not_formed():
    X = (np.random.default_rng(0).random((2000, 3)) - 0.5) * np.sqrt(12.0)
    model = fk.kpca(X, "gaussian", 10, sigma=0.9, tol=1e-8, features="fourier")
    assert model.bound_kind == "guaranteed" and 0 < intervals.width(model) <= 1e-8


def test_a_tol_below_the_rounding_of_the_compressed_moment_is_met_in_another_way():
    X = np.random.default_rng(0).random((3000, 3))
    for tol in (1e-9, 1e-10):
        model = fk.kpca(X, "gaussian", 5, sigma=0.3, tol=tol)  # a warning is an error here
        assert intervals.width(model) <= tol
