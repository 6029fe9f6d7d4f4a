"""Values of a search that are kept in float32: the products, what they save, and what they count as."""

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.kernels import Kernel
from fastkpca.products.matrix import KeptTiles, kept_bytes
from fastkpca.rows.view import Rows


class Cauchy(Kernel):
    """Without compiled tiles; counts the values that are asked for."""

    api_version = 1
    positive_semidefinite = True
    translation = "kernel"
    values = 0

    def block(self, X, Y):
        type(self).values += len(X) * len(Y)
        squares = np.sum(X**2, axis=1)[:, None] + np.sum(Y**2, axis=1) - 2 * X @ Y.T
        return 1 / (1 + np.maximum(squares, 0))

    def diagonal(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize("given", [False, True])
def test_products_are_those_with_the_matrix_in_float32(given):
    rng = np.random.default_rng(0)
    X, U = rng.standard_normal((1300, 5)), rng.standard_normal((1300, 7))
    kernel = fk.get_kernel("gaussian", sigma=1.0)
    K = kernel.block(X, X)
    kept = KeptTiles(kernel, Rows(X), K if given else None)
    single = K.astype(np.float32) @ U.astype(np.float32)
    first, again = kept.matmat(U), kept.matmat(U)
    np.testing.assert_allclose(first, single, atol=1e-4)
    assert np.array_equal(first, again) and first.dtype == np.float64
    assert np.array_equal(first, KeptTiles(kernel, Rows(X), K if given else None, n_threads=2).matmat(U))
    means = K.mean(axis=1)
    passed = kept.pass_with_norm(U, means, means.mean())
    np.testing.assert_allclose(passed.product, first, atol=1e-4)
    np.testing.assert_allclose(passed.row_sums, K.sum(axis=1), rtol=1e-5)
    centred = K - means - means[:, None] + means.mean()
    np.testing.assert_allclose([passed.centred_square, passed.square], [(centred**2).sum(), (K**2).sum()], rtol=1e-4)
    held = sum(tile.nbytes for tile in kept._kept)
    assert held <= kept_bytes(len(X))


@pytest.mark.parametrize("size", [1e-12, 1e19, 1e27])
def test_norms_whose_squares_leave_the_range_of_float32(size):
    X = np.random.default_rng(0).standard_normal((700, 5))
    kernel = size * fk.get_kernel("gaussian", sigma=1.0)
    K = kernel.block(X, X)
    means = K.mean(axis=1)
    passed = KeptTiles(kernel, Rows(X)).pass_with_norm(K[:, :1] / size, means, means.mean())
    centred = K - means - means[:, None] + means.mean()
    np.testing.assert_allclose([passed.centred_square, passed.square], [(centred**2).sum(), (K**2).sum()], rtol=1e-4)
    for limit in ("2GB", "9MB"):
        model = fk.kpca(X, size * Cauchy(), 2, method="krylov", tol=1e-8, memory_limit=limit)
        plain = fk.kpca(X, Cauchy(), 2, method="dense")
        np.testing.assert_allclose(model.eigenvalues, size * plain.eigenvalues, rtol=1e-7)


def test_a_search_computes_each_value_once_where_memory_allows():
    """The values are the first thing that is given up, and the result is the same to the interval's width."""
    X = np.random.default_rng(1).standard_normal((3500, 6))
    counts, models = [], []
    for limit in ("2GB", "40MB"):
        Cauchy.values = 0
        options = {"method": "krylov", "products": "exact", "memory_limit": limit, "n_threads": 1}
        models.append(fk.kpca(X, Cauchy(), 4, **options))
        counts.append(Cauchy.values)
    kept, without = models
    assert kept.plan.chosen.memory - without.plan.chosen.memory == kept_bytes(len(X))
    searched = kept.info["search_passes"]
    assert searched > 1 and without.info["search_passes"] > 1
    assert kept.info["matrix_passes"] == searched - 1 and "matrix_passes" not in without.info
    assert counts[1] > counts[0]
    for a, b in ((kept, without), (without, kept)):
        assert (a.eigenvalue_bounds[:, 0] <= b.eigenvalue_bounds[:, 1]).all()
    np.testing.assert_allclose(kept.eigenvalues, without.eigenvalues, rtol=2e-6)


def test_the_same_bits_with_two_threads():
    X = np.random.default_rng(2).standard_normal((2600, 140))
    options = {"sigma": 9.0, "method": "krylov", "products": "exact", "return_scores": False}
    one, two = (fk.kpca(X, "gaussian", 5, n_threads=threads, **options) for threads in (1, 2))
    assert one.info["search_passes"] > 0
    assert np.array_equal(one.eigenvalues, two.eigenvalues)
    assert np.array_equal(one.eigenvalue_bounds, two.eigenvalue_bounds)
