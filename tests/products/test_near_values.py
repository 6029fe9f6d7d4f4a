"""Products with the kernel values that are not near zero."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.spatial

import fastkpca as fk
from fastkpca.fit.product_choice import InStrips
from fastkpca.products import narrow
from fastkpca.products.clusters import ClusterSummation
from fastkpca.products.exact import ExactSummation
from fastkpca.products.narrow import near_summation
from fastkpca.rows.view import Rows


@pytest.fixture
def rng():
    return np.random.default_rng(18)


ROWS = {
    "uniform": lambda rng: rng.random((800, 3)),
    "clusters": lambda rng: rng.random((7, 3))[rng.integers(7, size=800)] + 0.01 * rng.standard_normal((800, 3)),
    "one coordinate": lambda rng: rng.random((800, 1)),
    "far away": lambda rng: 1e6 + rng.random((800, 2)),
    "duplicates": lambda rng: np.repeat(rng.random((80, 2)), 10, axis=0),
}


def gaussian(X, sigma):
    return np.exp(-scipy.spatial.distance.cdist(X, X, "sqeuclidean") / (2.0 * sigma**2))


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("drop", [1e-3, 1e-7])
def test_values_above_what_is_dropped_are_those_of_the_kernel(rng, kind, drop):
    X = ROWS[kind](rng)
    near, K = near_summation(X, 0.008, drop, np.inf, np.inf), gaussian(X, 0.008)
    kept = near.matmat(np.eye(800))
    assert np.abs(kept - K).max() <= near.error_bound <= drop + 1e-7
    assert (kept[K > 1.001 * drop] > 0.0).all() and (kept[K < 0.999 * drop] == 0.0).all()
    assert near.count == np.count_nonzero(kept)
    np.testing.assert_array_equal(kept, kept.T)
    assert np.linalg.eigvalsh(kept)[-1] <= near.norm <= 1.0001 * kept.sum(axis=1).max()


@pytest.mark.parametrize("k", [0, 1, 3, 4, 9])
def test_products_have_the_same_bits_at_any_number_of_threads(rng, k):
    X, U = rng.random((5000, 3)), rng.standard_normal((5000, k))
    near = near_summation(X, 0.03, 1e-6, np.inf, np.inf)
    kept = near.matmat(U)
    assert kept.shape == (5000, k)
    np.testing.assert_array_equal(near_summation(X, 0.03, 1e-6, np.inf, np.inf, n_threads=2).matmat(U), kept)
    if k:
        exact = np.exp(-scipy.spatial.distance.cdist(X[:50], X, "sqeuclidean") / (2.0 * 0.03**2)) @ U
        assert (np.abs(kept[:50] - exact) <= near.error_bound * np.abs(U).sum(axis=0) + 1e-12).all()


def test_it_is_refused_where_it_does_not_fit_or_little_is_near_zero(rng):
    X = rng.random((3000, 3))
    near = near_summation(X, 0.03, 1e-6, np.inf, np.inf)
    assert near_summation(X, 0.03, 1e-6, 6.0 * near.count, np.inf) is not None
    assert near_summation(X, 0.03, 1e-6, 6.0 * (near.count - 3000) - 1, np.inf) is None
    assert near_summation(X, 5.0, 1e-6, np.inf, 1e6) is None
    assert near_summation(rng.random((1000, 40)), 0.05, 1e-6, np.inf, np.inf) is None


def test_products_by_clusters_offer_it_for_one_set_of_rows(rng):
    X = rng.random((3000, 3))
    product = ClusterSummation(Rows(X), sigma=0.02, tol=1e-9)
    U = rng.standard_normal((3000, 2))
    near = InStrips(product, 8).near(1e-7, np.inf, np.inf)
    assert np.abs(near.matmat(U) - product.matmat(U)).max() <= 2e-7 * np.abs(U).sum(axis=0).max()
    assert ClusterSummation(Rows(X), Rows(X[:100]), sigma=0.02, tol=1e-9).near(1e-7, np.inf, np.inf) is None


def test_exact_products_offer_it_for_a_gaussian(rng):
    X = rng.random((3000, 3))
    rows, U = Rows(X), rng.standard_normal((3000, 2))
    near = ExactSummation(fk.get_kernel("gaussian", sigma=0.02), rows).near(1e-7, np.inf, np.inf)
    product = ExactSummation(fk.get_kernel("gaussian", sigma=0.02), rows)
    assert np.abs(near.matmat(U) - product.matmat(U)).max() <= 2e-7 * np.abs(U).sum(axis=0).max()
    assert ExactSummation(fk.get_kernel("polynomial", degree=2), rows).near(1e-7, np.inf, np.inf) is None
    assert ExactSummation(fk.get_kernel("gaussian", sigma=0.02), rows, Rows(X[:9])).near(1e-7, np.inf, np.inf) is None


def test_some_leaves_tell_that_there_are_too_many_values(rng, monkeypatch):
    X, looked, gather = rng.random((20000, 3)), [], narrow._clusters.gather
    near = near_summation(X, 0.03, 1e-6, np.inf, np.inf)
    monkeypatch.setattr(narrow._clusters, "gather", lambda *given: looked.append(1) or gather(*given))
    assert near_summation(X, 0.03, 1e-6, 3.0 * near.count, np.inf) is None
    assert len(looked) <= 20
