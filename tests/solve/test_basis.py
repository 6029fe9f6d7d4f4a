"""The basis that every iteration grows: orthonormal whatever it is given, and Rayleigh-Ritz as dense LAPACK has it."""

import numpy as np
import pytest
from peak import traced

from fastkpca.base.tall import without_means
from fastkpca.solve.basis import Basis


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
    basis.append(X, X.copy())
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


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e8])
def test_the_rounding_that_projections_leave_of_a_column_is_replaced(centred, scale):
    """Also where the rounding is of the same kind again: equal entries, or a combination of the columns before."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(12, 60))
        basis = Basis(n, rng, centred=centred)
        X = basis.orthonormal(rng.standard_normal((n, int(rng.integers(1, 5)))))
        basis.append(X, X.copy())
        inside = np.hstack([basis.Q, np.full((n, int(centred)), 1 / np.sqrt(n))])
        lost = inside @ rng.standard_normal((inside.shape[1], 2)) if seed % 2 else inside[:, [-1]]
        found = basis.orthonormal(np.hstack([rng.standard_normal((n, 1)), scale * lost]))
        everything = np.hstack([inside, found])
        assert np.abs(everything.T @ everything - np.eye(everything.shape[1])).max() < 1e-14


def test_no_more_columns_than_the_space_has():
    rng = np.random.default_rng(2)
    for centred, most in ((False, 7), (True, 6)):
        basis = Basis(7, rng, centred=centred)
        X = basis.orthonormal(rng.standard_normal((7, 12)))
        basis.append(X, X.copy())
        assert X.shape == (7, most) and basis.free_columns == 0


@pytest.mark.parametrize("reserve", [0, 10, 40])
@pytest.mark.parametrize("wide", [False, True])
def test_rayleigh_ritz_and_restart(wide, reserve):
    """A Krylov space, and one that begins with more columns than later blocks have: what is outside is known."""
    rng, n = np.random.default_rng(3), 60
    A = matrix(n, 4)
    basis = Basis(n, rng, reserve=reserve)
    X = basis.orthonormal(rng.standard_normal((n, 9 if wide else 4)))
    for _ in range(3):
        basis.append(X, A @ X)
        pairs = basis.ritz()
        X = basis.next_block(pairs, 4)
        assert basis.is_krylov == (not wide or basis.size == 9)
    Q = basis.Q.copy()
    np.testing.assert_allclose(basis.gram, np.eye(len(Q.T)), atol=1e-14)
    np.testing.assert_allclose(basis.compression, Q.T @ A @ Q, atol=1e-13)
    np.testing.assert_allclose(pairs.theta, np.linalg.eigvalsh(Q.T @ A @ Q)[::-1], atol=1e-13)
    residuals = A @ Q @ pairs.Y - Q @ pairs.Y * pairs.theta
    np.testing.assert_allclose(basis.residuals(pairs.Y), residuals, atol=1e-13)
    np.testing.assert_allclose(pairs.residual_gram, residuals.T @ residuals, atol=1e-13)
    keep = np.arange(5)
    basis.restart(pairs, keep)
    np.testing.assert_allclose(basis.Q, Q @ pairs.Y[:, :5], atol=1e-14)
    np.testing.assert_allclose(basis.residuals(np.eye(5)), residuals[:, :5], atol=1e-13)
    X = basis.orthonormal(rng.standard_normal((n, 6)))
    basis.append(X, A @ X)
    assert basis.largest_beyond(5) == pytest.approx(np.linalg.eigvalsh(X.T @ A @ X)[-1])
    np.testing.assert_allclose(basis.compression, basis.Q.T @ A @ basis.Q, atol=1e-13)
    pairs = basis.ritz()
    residuals = A @ basis.vectors(pairs.Y) - basis.vectors(pairs.Y) * pairs.theta
    np.testing.assert_allclose(pairs.residual_gram, residuals.T @ residuals, atol=1e-13)


def test_narrow_blocks_go_on_with_all_wanted_vectors_after_a_restart():
    """The leading vectors converge first: their residuals are rounding, in whose place a block has random columns."""
    rng, n, wanted = np.random.default_rng(4), 400, 30
    values = np.concatenate([np.linspace(20.0, 10.0, 8), np.linspace(2.0, 1.5, 32), np.linspace(1.0, 0.0, n - 40)])
    basis = Basis(n, rng)
    X = basis.orthonormal(rng.standard_normal((n, 4)))
    for _ in range(60):
        basis.append(X, values[:, None] * X)
        pairs = basis.ritz()
        if basis.size > 60:
            basis.restart(pairs, np.arange(44))
            pairs = basis.ritz()
        X = basis.next_block(pairs, 4, noise=1e-12, wanted=wanted)
    np.testing.assert_allclose(pairs.theta[:wanted], values[:wanted], atol=1e-10)


def test_rows_of_many_columns_are_centred_and_stored_with_the_same_bits_on_any_number_of_threads():
    X = np.random.default_rng(0).random((20_000, 48)) + 100.0
    for given in (X, X.astype(np.float32)):
        one, two = (without_means(given, k) for k in (1, 2))
        np.testing.assert_array_equal(one, two)
        assert one.flags.f_contiguous and one.dtype == np.float64
        np.testing.assert_allclose(one, given - given.mean(axis=0, dtype=np.longdouble), rtol=0, atol=1e-12)
    bases = [Basis(len(X), np.random.default_rng(0), n_threads=k) for k in (1, 2)]
    for basis in bases:
        for columns in (slice(0, 24), slice(24, 48)):
            basis.append(X[:, columns], 2.0 * X[:, columns])
        np.testing.assert_array_equal(basis.Q, X)
    np.testing.assert_array_equal(bases[0].compression, bases[1].compression)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("mean", [0.0, 1e9])
@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e100])
def test_a_block_is_orthonormal_to_rounding_whatever_the_projection_leaves_of_it(centred, mean, scale):
    rng, n, b = np.random.default_rng(7), 4000, 6
    basis = Basis(n, rng, centred=centred)
    for block in range(4):
        given = rng.standard_normal((n, b)) + mean
        if block == 2:
            given += 1e6 * basis.Q[:, :b]
        X = basis.orthonormal(given * scale)
        everything = np.hstack([basis.Q, X, np.full((n, int(centred)), 1 / np.sqrt(n))])
        assert np.abs(everything.T @ everything - np.eye(everything.shape[1])).max() < 4e-15
        basis.append(X, X.copy())


def test_memory_of_a_block():
    """The first one is the store itself, and its image becomes what is outside: one more array, not three."""
    rng, n, b = np.random.default_rng(6), 40_000, 10
    basis = Basis(n, rng, reserve=100)
    X = basis.orthonormal(rng.standard_normal((n, b)))
    assert traced(lambda: basis.append(X, np.asfortranarray(rng.standard_normal((n, b))))) < 3.5 * X.nbytes
    assert np.shares_memory(basis.Q, X)
