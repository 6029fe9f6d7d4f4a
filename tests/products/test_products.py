"""Products of the Gaussian where rounding is all that is left, and whole matrices: beside the attack on products."""

import re

import numpy as np
import pytest
from good_kernels import WithOffers
from quiet import silent
from reference import long_gaussian

import fastkpca as fk
from fastkpca.kernels import Kernel
from fastkpca.products.matrix import gram_matrix
from fastkpca.rows.view import Rows

LONG = np.longdouble


def test_long_sums_of_equal_terms():
    """Equal points with equal values: rounding of one long sum would go one way, term after term."""
    n, sigma, tol = 100000, 0.3, 2e-13
    X = np.repeat(np.random.default_rng(0).random((5, 1)), n // 5, axis=0)
    K = fk.gram(X, "gaussian", sigma=sigma, tol=tol, products="grid", n_threads=1)
    few = X[:: n // 5]
    for value in (0.1, 1 / 3, 0.7):
        V = (K @ np.full((n, 1), value))[:: n // 5, 0]
        error = np.abs(V - long_gaussian(few, few, sigma).sum(axis=1) * (n // 5) * LONG(value))
        assert float(error.max()) <= tol * n * value


def test_what_moving_the_rows_costs_comes_out_of_the_tolerance():
    """Clusters a million sigma apart: subtracting the mean moves rows by units of that distance."""
    for case in (1, 2, 3, 4, 5, 6, 86):
        rng = np.random.default_rng([case, 11])
        d, n, far = int(rng.integers(1, 4)), int(rng.integers(100, 400)), 10.0 ** rng.uniform(5, 10)
        X = far * rng.standard_normal((2, d))[rng.integers(0, 2, n)]
        X += rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 0.5)
        with pytest.raises(ValueError, match="keep for certain") as refused:
            fk.gram(X, "gaussian", sigma=1.0, tol=1e-15)
        least = float(re.search(r"is below ([0-9.e+-]+)", str(refused.value)).group(1))
        tol = min(least * rng.uniform(1.02, 4.0), 0.45)
        K = long_gaussian(X, X, 1.0)
        for name in ("auto", "clusters"):
            try:
                ours = fk.gram(X, "gaussian", sigma=1.0, tol=tol, products=name, n_threads=1)
            except ValueError as error:
                assert "offers no products" in str(error)
                continue
            assert float(np.abs(ours @ np.eye(n) - K).max()) <= tol, (case, name)


def test_the_total_variance_knows_of_the_products_error():
    """The trace of the centred matrix is found by a product, so its interval holds what that errs by."""
    X = np.random.default_rng(3).random((64, 2))
    K = long_gaussian(X, X, 0.6)
    exact_trace = float(np.trace(K) - K.mean() * len(X))
    model = fk.kpca(X, "gaussian", 5, sigma=0.6, tol=1e-2, products="grid", n_threads=1)
    low, high = (x * (len(X) - 1) for x in model.total_variance_bounds)
    assert low <= exact_trace <= high


@pytest.mark.parametrize("n", [2, 8, 40])
def test_never_more_components_than_centred_rows_have_directions(n):
    X = np.random.default_rng(n).random((n, 1))
    model = silent(fk.kpca, X, "gaussian", None, sigma=0.3, tol=1e-2, method="features", features="fourier")
    assert model.n_components < n
    assert np.abs(model.coeff.sum(axis=0)).max() <= 1e-12 * np.abs(model.coeff).sum(axis=0).max()


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200, 600])
def test_the_whole_matrix_is_symmetric_to_the_bit(n):
    """A kernel from outside may round its two halves differently: the lower one of each tile on the diagonal counts."""

    class Uneven(Kernel):
        positive_semidefinite = False

        def block(self, X, Y):
            return np.cos(np.outer(X[:, 0], Y[:, 0])) + 1e-16 * (X - Y.T)

    X = np.random.default_rng(n).standard_normal((n, 1))
    K, tile = gram_matrix(Uneven(), Rows(X)), Uneven().block(X, X)
    assert np.array_equal(K, K.T)
    if n <= 512:
        assert np.array_equal(np.tril(K), np.tril(tile))
    assert np.abs(K - tile).max() <= 1e-14


@pytest.mark.parametrize("n", [60, 300, 2000])
@pytest.mark.parametrize("method, named", [("auto", True), ("krylov", True), ("features", False), ("dense", False)])
def test_the_plan_lists_every_product_that_a_plugin_offers(n, method, named):
    """Also one that the plan of a fit has no need to price."""
    X = np.random.default_rng(0).standard_normal((n, 3))
    made = fk.plan(X, WithOffers(sigma=1.5), 2, method=method)
    assert ("krylov (good)" in [x.label for x in made.candidates]) == named
    assert made.chosen in made.candidates and len({x.label for x in made.candidates}) == len(made.candidates)
    assert "good" in str(made) or not named
