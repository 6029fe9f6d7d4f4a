"""The basis that every iteration grows: orthonormal whatever it is given, and Rayleigh-Ritz as dense LAPACK has it."""

import tracemalloc

import numpy as np
import pytest

from fastkpca.base import parallel
from fastkpca.solve import basis as basis_module
from fastkpca.solve.basis import LOOSE, Basis, without_means


def matrix(n, seed):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A + A.T


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("kind", ["random", "repeated", "zero", "nearly dependent", "inside"])
def test_columns_are_orthonormal_and_span_what_was_given(kind, centred):
    rng = np.random.default_rng(1)
    n = 80
    basis = Basis(n, rng, centred=centred)
    X = basis.orthonormal(rng.standard_normal((n, 5)))
    basis.append(X, X)
    X = rng.standard_normal((n, 4))
    if kind == "repeated":
        X[:, 2] = X[:, 0]
    elif kind == "zero":
        X[:, 1] = 0.0
    elif kind == "nearly dependent":
        X[:, 3] = X[:, 0] + 1e-7 * X[:, 3]
    elif kind == "inside":
        X[:, 0] = basis.Q @ np.ones(5)
    given = X.copy()
    found = basis.orthonormal(X, noise=1e-12)
    np.testing.assert_array_equal(X, given)
    Q = np.hstack([basis.Q, found])
    assert found.shape == (n, 4) and np.abs(Q.T @ Q - np.eye(9)).max() < 1e-14
    whole = np.hstack([Q, np.ones((n, 1)) / np.sqrt(n)]) if centred else Q
    assert np.abs(whole.T @ whole - np.eye(whole.shape[1])).max() < 1e-14
    assert np.abs(given - whole @ (whole.T @ given)).max() < 1e-13


def test_no_more_columns_than_the_space_has():
    rng = np.random.default_rng(2)
    for centred, most in ((False, 7), (True, 6)):
        basis = Basis(7, rng, centred=centred)
        X = basis.orthonormal(rng.standard_normal((7, 12)))
        basis.append(X, X)
        assert X.shape == (7, most) and basis.room == 0


@pytest.mark.parametrize("reserve", [0, 10, 40])
@pytest.mark.parametrize("keeps_images", [False, True])
def test_rayleigh_ritz_restart_and_truncation(keeps_images, reserve):
    rng = np.random.default_rng(3)
    n = 60
    A = matrix(n, 4)
    basis = Basis(n, rng, keeps_images=keeps_images, reserve=reserve)
    for b in (4, 3, 7):
        X = basis.orthonormal(rng.standard_normal((n, b)))
        border = basis.append(X, A @ X)
        outside = basis.outside(A @ X, border)
        assert np.abs(basis.Q.T @ outside).max() < 1e-13
    Q = basis.Q.copy()
    np.testing.assert_allclose(basis.gram, Q.T @ Q, atol=1e-15)
    np.testing.assert_allclose(basis.compression, Q.T @ A @ Q, atol=1e-13)
    theta, Y = basis.ritz()
    np.testing.assert_allclose(theta, np.linalg.eigvalsh(Q.T @ A @ Q)[::-1], atol=1e-13)
    if keeps_images:
        np.testing.assert_allclose(basis.residuals(theta, Y), A @ Q @ Y - Q @ Y * theta, atol=1e-13)
    basis.restart(theta[:5], Y[:, :5])
    np.testing.assert_allclose(basis.Q, Q @ Y[:, :5], atol=1e-14)
    np.testing.assert_allclose(basis.compression, np.diag(theta[:5]), atol=1e-13)
    X = basis.orthonormal(rng.standard_normal((n, 6)))
    basis.append(X, A @ X)
    assert basis.largest_beyond(5) == pytest.approx(np.linalg.eigvalsh(X.T @ A @ X)[-1])
    np.testing.assert_allclose(basis.gram, np.eye(11), atol=1e-14)
    basis.truncate(5)
    X = basis.orthonormal(rng.standard_normal((n, 2)))
    basis.append(X, A @ X)
    np.testing.assert_allclose(basis.gram, np.eye(7), atol=1e-14)
    np.testing.assert_allclose(basis.compression, basis.Q.T @ A @ basis.Q, atol=1e-13)
    if keeps_images:
        np.testing.assert_allclose(basis.images, A @ basis.Q, atol=1e-13)


def test_rows_of_many_columns_are_centred_and_stored_in_pieces_that_threads_share(monkeypatch):
    pieces, run = [], parallel.run
    monkeypatch.setattr(parallel, "run", lambda task, n, **k: pieces.append(n) or run(task, n, **k))
    X = np.random.default_rng(0).random((20_000, 48)) + 100.0
    for given in (X, X.astype(np.float32)):
        one, two = (without_means(given, k) for k in (1, 2))
        np.testing.assert_array_equal(one, two)
        assert one.flags.f_contiguous and one.dtype == np.float64
        np.testing.assert_allclose(one, given - given.mean(axis=0, dtype=np.longdouble), rtol=0, atol=1e-12)
    assert pieces == [4] * 8
    pieces.clear()
    bases = [Basis(len(X), np.random.default_rng(0), keeps_images=True, n_threads=k) for k in (1, 2)]
    for basis in bases:
        for columns in (slice(0, 24), slice(24, 48)):
            basis.append(X[:, columns], 2.0 * X[:, columns])
        np.testing.assert_array_equal(basis.Q, X)
        np.testing.assert_array_equal(basis.images, 2.0 * X)
    assert min(pieces) >= 2 and len(pieces) == 2 * 5  # of three products, and of two stores that grow
    np.testing.assert_array_equal(bases[0].compression, bases[1].compression)


@pytest.mark.parametrize("power", [0.5, 2.0, 6.0, 30.0])
@pytest.mark.parametrize("block", [1, 3, 12])
def test_one_round_keeps_a_krylov_basis_orthonormal(monkeypatch, power, block):
    """To what is promised, however fast the eigenvalues fall; and it takes one round where they fall slowly."""
    rng = np.random.default_rng(5)
    n = 300
    U = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = (U * np.linspace(1.0, 0.0, n) ** power) @ U.T
    basis, rounds = Basis(n, rng, reserve=n), []
    known = basis_module._cholesky_qr
    monkeypatch.setattr(basis_module, "_cholesky_qr", lambda *args: rounds.append(1) or known(*args))
    X = basis.orthonormal(rng.standard_normal((n, block)))
    rounds.clear()
    for step in range(12):
        image = A @ X
        X = basis.orthonormal(basis.outside(image, basis.append(X, image)), projected=True, image=image)
        assert np.abs(basis.gram - np.eye(basis.size)).max() <= LOOSE
        assert np.abs(basis.Q.T @ X).max() <= LOOSE and np.abs(X.T @ X - np.eye(X.shape[1])).max() <= LOOSE
        if step == 3 and power < 1.0:
            assert len(rounds) == 4


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("mean", [0.0, 1.0, 1e9])
@pytest.mark.parametrize("scale", [1e-160, 1e-150, 1e-100, 1.0, 1e100])
def test_a_block_is_orthonormal_to_rounding_after_one_round_too(monkeypatch, centred, mean, scale):
    """A block of independent columns takes one round where the projection leaves most of it; nothing is lost."""
    rng, n, b = np.random.default_rng(7), 4000, 6
    rounds, known = [], basis_module._cholesky_qr
    monkeypatch.setattr(basis_module, "_cholesky_qr", lambda *args: rounds.append(1) or known(*args))
    basis = Basis(n, rng, centred=centred)
    for block in range(4):
        given = rng.standard_normal((n, b)) + mean
        if block == 2:
            given += 1e6 * basis.Q[:, :b]
        X = basis.orthonormal(given * scale)
        everything = np.hstack([basis.Q, X, np.full((n, int(centred)), 1 / np.sqrt(n))])
        assert np.abs(everything.T @ everything - np.eye(everything.shape[1])).max() < 4e-15
        if scale >= 1e-100 and mean == 0.0:
            assert len(rounds) == 1 + (block == 2)
        rounds.clear()
        basis.append(X, X)


def test_memory_of_a_block():
    """The first one is the store itself, and a projected one is overwritten: one more array, not three."""
    rng, n, b = np.random.default_rng(6), 40_000, 10
    basis = Basis(n, rng, reserve=100)
    X = basis.orthonormal(rng.standard_normal((n, b)))
    image = rng.standard_normal((n, b))
    border = basis.append(X, image)
    assert np.shares_memory(basis.Q, X)
    X = basis.outside(image, border)
    tracemalloc.start()
    try:
        basis.orthonormal(X, projected=True, image=image)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * X.nbytes
    finally:
        tracemalloc.stop()
