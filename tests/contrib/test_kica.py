"""Kernel ICA: its contrast against the N x N definition, its gradient against differences, and what it recovers."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_contrib.kica import contrast as module
from kernels_contrib.kica import kica, kica_contrast, kica_project
from peak import traced

import fastkpca as fk
from fastkpca.base import parallel


@pytest.fixture(autouse=True)
def one_blas_thread():
    """The references' small matrices: threads of BLAS only wait for each other there. kica does this itself."""
    with parallel.blas_threads():
        yield


def dense_contrast(Y, sigma, kappa, name):
    """Equations 13 to 16 of the paper, with N x N matrices: R_ij = r(K_i) r(K_j), r(K) = (K + N kappa / 2 I)^-1 K."""
    n, c = Y.shape
    H = np.eye(n) - 1 / n
    r = []
    for y in Y.T:
        K = H @ np.exp(-((y[:, None] - y) ** 2) / (2 * sigma**2)) @ H
        r.append(np.linalg.solve(K + n * kappa / 2 * np.eye(n), K))
    R = np.eye(n * c)
    for i in range(c):
        for j in range(c):
            if i != j:
                R[i * n : (i + 1) * n, j * n : (j + 1) * n] = r[i] @ r[j]
    values = np.linalg.eigvalsh((R + R.T) / 2)
    return -0.5 * np.log(values).sum() if name == "kgv" else -0.5 * np.log(values[0])


def amari(unmixing, A):
    P = np.abs(unmixing @ A)
    m = len(P)
    rows, columns = P.sum(axis=1) / P.max(axis=1) - 1, P.sum(axis=0) / P.max(axis=0) - 1
    return 100 * (rows.sum() + columns.sum()) / (2 * m * (m - 1))


def sources(n, m, seed=0):
    rng = np.random.default_rng(seed)
    draws = [
        lambda: rng.uniform(-1, 1, n),
        lambda: rng.exponential(size=n),
        lambda: rng.laplace(size=n),
        lambda: rng.choice([-1.0, 1.0], n) + 0.4 * rng.standard_normal(n),
    ]
    return np.column_stack([draws[i % 4]() for i in range(m)]), rng.standard_normal((m, m)) + 2 * np.eye(m)


@pytest.mark.parametrize("name", ["kgv", "kcca"])
@pytest.mark.parametrize("kappa", [2e-2, 2e-3])
@pytest.mark.parametrize("tails", [2.0, 30.0])
def test_contrast_is_the_dense_definition(name, kappa, tails):
    rng = np.random.default_rng(1)
    Y = rng.standard_t(tails, (130, 3)) @ np.array([[1.0, 0.3, 0.0], [0.0, 1.0, 0.2], [0.0, 0.0, 1.0]])
    Y = Y / Y.std(axis=0) + [0.0, 5.0, -3.0]  # means don't matter
    for sigma in (0.5, 1.0):
        exact = dense_contrast(Y, sigma, kappa, name)
        given = {"contrast": name, "sigma": sigma, "regularization": kappa}
        assert kica_contrast(Y, tol=1e-10, **given) == pytest.approx(exact, rel=1e-6)
        assert kica_contrast(Y, **given) == pytest.approx(exact, rel=3e-3)
        if name == "kgv":  # a map leaves out something positive semidefinite, so correlations only fall
            assert kica_contrast(Y, **given) <= exact


@pytest.mark.parametrize("name", ["kgv", "kcca"])
@pytest.mark.parametrize("small_tiles", [False, True])
def test_gradient_against_differences(name, small_tiles):
    rng = np.random.default_rng(2)
    Z = rng.laplace(size=(300, 3))
    setting = module.Setting(name, fk.get_kernel("gaussian", sigma=1.0), 2e-2, 1e-7)
    target = setting.contrast(Z, np.linspace(-15, 15, 2000))
    if small_tiles:  # more than one tile, features formed again
        target._tile, target._keep = 64, False
    W = rng.standard_normal((3, 3)) / 2
    value, state = target.value(W)
    slope = target.gradient(W, state)
    found = np.zeros((3, 3))
    h = 1e-4
    for i in range(3):
        for j in range(3):
            E = np.zeros((3, 3))
            E[i, j] = h
            found[i, j] = (target.value(W + E)[0] - target.value(W - E)[0]) / (2 * h)
    np.testing.assert_allclose(slope, found, atol=1e-6 * np.abs(found).max())
    assert value == pytest.approx(kica_contrast(Z @ W.T, contrast=name, sigma=1.0, regularization=2e-2, tol=1e-8), 1e-5)


@pytest.mark.parametrize("held", [1 << 30, 1 << 23])
def test_the_number_of_threads_changes_nothing(held, monkeypatch):
    monkeypatch.setattr(module, "HELD_BYTES", held)
    S, A = sources(5000, 3)  # several tiles
    X = S @ A.T
    one, three = kica(X, n_threads=1, n_starts=1), kica(X, n_threads=3, n_starts=1)
    np.testing.assert_array_equal(one.unmixing, three.unmixing)
    assert one.contrast == three.contrast and one.info == three.info
    assert kica_contrast(X, n_threads=1) == kica_contrast(X, n_threads=3)
    monkeypatch.undo()  # other tiles: the same up to rounding
    np.testing.assert_allclose(kica(X, n_starts=1).unmixing, one.unmixing, atol=1e-6 * np.abs(one.unmixing).max())
    for wrong in (0, True, 1.5):
        with pytest.raises((TypeError, ValueError), match="n_threads is"):
            kica(X, n_threads=wrong)


@pytest.mark.parametrize("name", ["kgv", "kcca"])
@pytest.mark.parametrize("m", [2, 4])
def test_recovers_mixtures(name, m):
    """A mean over mixtures, against the error that guessing makes (about 30 to 40)."""
    errors = []
    for seed in range(4):
        S, A = sources(1000, m, seed)
        model = kica(S @ A.T + 7.0, contrast=name)
        errors.append(amari(model.unmixing, A))
        assert model.info["converged"]
        assert model.info["residual"] <= model.info["tol"]
        if m == 2:  # at least as good a minimum as the sources themselves
            assert model.contrast <= kica_contrast(S / S.std(axis=0), contrast=name) * 1.001 + 2e-4
    assert np.mean(errors) < (3.0 if name == "kgv" or m == 2 else 8.0)


def test_recovers_what_fastica_cannot():
    """Density q of the paper: next to no kurtosis."""
    rng = np.random.default_rng(3)
    draw = rng.choice(4, (1000, 2), p=np.array([2, 6, 4, 1]) / 13)
    S = rng.normal(np.array([-1.0, -0.2, 0.3, 1.0])[draw], np.array([0.2, 0.3, 0.2, 0.2])[draw])
    A = np.array([[1.0, 0.6], [0.2, 1.0]])
    assert amari(kica(S @ A.T).unmixing, A) < 6.0


def test_the_contrast_reported_is_that_of_the_sources():
    S, A = sources(150, 3)
    for name in ("kgv", "kcca"):
        model = kica(S @ A.T, contrast=name, tol=1e-6)
        assert model.contrast == pytest.approx(dense_contrast(model.sources, 1.0, 2e-2, name), rel=1e-4)
    # and kcca goes on from where kgv ends
    start = kica(S @ A.T, contrast="kgv").sources
    assert model.contrast <= kica_contrast(start, contrast="kcca", tol=1e-6) * 1.0001


def test_does_not_depend_on_units_order_or_mixing():
    S, A = sources(800, 3)
    X = S @ A.T
    model = kica(X)
    rng = np.random.default_rng(4)
    reference = model.sources
    B = rng.standard_normal((3, 3)) + 2 * np.eye(3)
    for other in (X * [1e-3, 1.0, 1e9] + [1.0, 1e6, -1e9], X[:, [2, 0, 1]], -X, X @ B.T):
        found = kica(other).sources
        correlation = np.abs(reference.T @ found) / len(X)
        np.testing.assert_allclose(np.sort(correlation, axis=0), [[0] * 3, [0] * 3, [1] * 3], atol=2e-3)
    shuffled = kica(X[::-1]).sources[::-1]
    np.testing.assert_allclose(np.abs(reference.T @ shuffled) / len(X), np.eye(3), atol=2e-3)


def test_the_result_fits_together():
    S, A = sources(500, 3)
    X = S @ A.T + [1.0, -2.0, 300.0]
    kept = X.copy()
    model = kica(X, n_starts=2)
    np.testing.assert_array_equal(X, kept)
    assert model.unmixing.shape == (3, 3) and model.sources.shape == (500, 3)
    np.testing.assert_allclose(model.sources.T @ model.sources / 500, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(model.sources @ model.mixing.T + model.mean, X, atol=1e-9)
    np.testing.assert_allclose(kica_project(model, X), model.sources, atol=1e-10)
    again = kica(X, n_starts=2)
    np.testing.assert_array_equal(again.unmixing, model.unmixing)
    assert len(model.info["starts"]) == 2 and min(model.info["starts"]) == pytest.approx(model.contrast, rel=1e-3)
    # largest share of the variance first, largest entry of each column positive
    share = np.sum((model.mixing / X.std(axis=0)[:, None]) ** 2, axis=0)
    assert (np.diff(share) <= 1e-12).all()
    assert (model.mixing[np.argmax(np.abs(model.mixing), axis=0), range(3)] > 0).all()


def test_fewer_components_than_columns():
    S, A = sources(1000, 2)
    mixing = np.vstack([A, [[1.0, -1.0], [0.5, 2.0]]])
    X = S @ mixing.T + 1e-3 * np.random.default_rng(5).standard_normal((1000, 4))
    model = kica(X, c=2)
    assert model.unmixing.shape == (2, 4) and model.mixing.shape == (4, 2)
    assert amari(model.unmixing @ mixing, np.eye(2)) < 4.0
    np.testing.assert_allclose(model.sources @ model.mixing.T + model.mean, X, atol=0.02)
    one = kica(X, c=1)
    assert one.sources.shape == (1000, 1) and one.contrast == 0.0


@pytest.mark.parametrize("name", ["kgv", "kcca"])
def test_many_rows(name):
    """Descents on parts first; a tile of features at a time, never N x N (20000 rows: 3.2 GB)."""
    S, A = sources(20000, 3)
    X = S @ A.T
    models: list = []
    assert traced(lambda: models.append(kica(X, contrast=name))) < 250e6
    (model,) = models
    assert amari(model.unmixing, A) < 1.5
    assert model.info["residual"] <= model.info["tol"]
    assert model.info["regularization"] == 2e-3 and model.kernel == fk.get_kernel("gaussian", sigma=0.5)


def test_heavy_tails_and_few_rows():
    rng = np.random.default_rng(6)
    S = rng.standard_cauchy((3000, 2))
    A = np.array([[1.0, 0.5], [-0.3, 1.0]])
    model = kica(S @ A.T)
    assert model.info["residual"] <= model.info["tol"]
    assert amari(model.unmixing, A) < 3.0
    assert np.isfinite(kica(rng.standard_normal((4, 3))).unmixing).all()
    assert np.isfinite(kica(rng.standard_normal((50, 2)) * 1e200).unmixing).all()
    assert np.isfinite(kica(rng.choice([0.0, 1.0], (200, 3))).unmixing).all()


def test_other_kernels_and_spellings():
    S, A = sources(500, 2)
    X = S @ A.T
    by_name = kica(X, sigma=0.8)
    by_object = kica(X, fk.get_kernel("gaussian", gamma=1 / (2 * 0.8**2)))
    np.testing.assert_allclose(by_name.unmixing, by_object.unmixing, atol=1e-6)
    assert kica(X).kernel == kica(X, "rbf").kernel == fk.get_kernel("gaussian", sigma=1.0)
    assert amari(kica(X, "polynomial", degree=4, scale=0.2, offset=1.0).unmixing, A) < 12.0


def test_starts_go_on_until_two_agree():
    """Eight components of which the first start takes the wrong ones together."""
    rng = np.random.default_rng(18)
    S = np.column_stack(
        [np.sign(rng.standard_normal(600)) + w * rng.standard_normal(600) for w in np.linspace(0.3, 1, 7)]
    )
    X = S @ (rng.standard_normal((7, 7)) + 2 * np.eye(7)).T
    one, more = kica(X, n_starts=1), kica(X)
    assert one.info["starts"] == [] and 2 <= len(more.info["starts"]) <= 8
    assert more.contrast <= one.contrast * (1 + 2e-3)
    best = sorted(more.info["starts"])
    assert best[1] <= best[0] * (1 + 2e-3) or len(best) == 8


def test_columns_twice_and_sums_of_columns_where_they_can_be_taken():
    S, A = sources(200, 3)
    X = S @ A.T
    kica(np.column_stack([X, X[:, 0] + X[:, 1]]), c=3)
    for name in ("kgv", "kcca"):
        assert np.isfinite(kica_contrast(X[:, [0, 0]], contrast=name, regularization=1e-8))
