"""Narrow Gaussians: narrow blocks on the values that are not near zero, and a bound from polynomials of these."""

from __future__ import annotations

import narrow_cases as cases
import numpy as np
import pytest

import fastkpca as fk
from fastkpca.products.clusters import ClusterSummation
from fastkpca.solve import exact_passes


@pytest.mark.parametrize(("tol", "c"), [(1e-3, 10), (1e-6, 10), (1e-8, 25)])
def test_a_few_exact_passes_are_enough(tol, c):
    X = np.random.default_rng(4).standard_normal((5000, 3))
    model = fk.kpca(X, "gaussian", c, sigma=0.06, tol=tol, method="krylov", products="clusters")
    low, high = model.eigenvalue_bounds.T
    assert (high - low).max() <= tol * model.eigenvalues[0]
    assert model.info["passes"] <= 3 and model.info["matrix_passes"] <= 120
    assert model.bound_kind == "probabilistic" and 0 < model.failure_probability <= 1e-6


def test_exact_products_begin_from_it_where_the_spectrum_is_flat():
    X = np.random.default_rng(4).standard_normal((9000, 5))
    model = fk.kpca(X, "gaussian", 10, sigma=0.2, tol=1e-4, method="krylov", products="exact")
    assert np.ptp(model.eigenvalue_bounds, axis=1).max() <= 1e-4 * model.eigenvalues[0]
    assert model.info["passes"] <= 4 and model.info["matrix_passes"] <= 120


def test_results_have_the_same_bits_at_any_number_of_threads():
    X = np.random.default_rng(5).standard_normal((20000, 2))
    options = {"sigma": 0.01, "tol": 1e-4, "method": "krylov", "products": "clusters"}
    models = [fk.kpca(X, "gaussian", 5, n_threads=threads, **options) for threads in (1, 2)]
    assert models[0].info["passes"] <= 3
    np.testing.assert_array_equal(models[0].eigenvalue_bounds, models[1].eigenvalue_bounds)
    np.testing.assert_array_equal(models[0].coeff, models[1].coeff)


def test_an_eigenvalue_repeated_more_often_than_a_block_is_wide_is_found():
    """The search finds it four times; the polynomials show that more is there, and the run begins again."""
    rng = np.random.default_rng(6)
    case = {"X": cases.ROWS["copies"](rng, 900, 3), "sigma": 0.2, "tol": 1e-6, "c": 8}
    failed, model = cases.broken(case, 0)
    assert not failed and np.ptp(model.eigenvalues[:5]) <= 1e-6 * model.eigenvalues[0]
    assert np.ptp(model.eigenvalue_bounds, axis=1).max() <= 1e-6 * model.eigenvalues[0]


def test_attempts_of_runs_that_were_given_up_count(monkeypatch):
    """All attempts at a bound share one probability of failure."""
    begun, made = [], exact_passes.ExactRun.__init__

    def recorded(self, *given, **options):
        made(self, *given, **options)
        if self.narrow is None:
            self.explorations, self.samples = 1, 2
        else:
            begun.append((self.explorations, self.samples))

    monkeypatch.setattr(exact_passes.ExactRun, "__init__", recorded)
    X = np.random.default_rng(4).standard_normal((5000, 3))
    model = fk.kpca(X, "gaussian", 5, sigma=0.06, tol=1e-3, method="krylov", products="clusters")
    assert begun == [(1, 2)] and 0 < model.failure_probability <= 1e-6


def test_near_values_keep_within_the_memory_limit(monkeypatch):
    asked, near = [], ClusterSummation.near

    def recorded(product, drop, most, pairs):
        asked.append(most)
        return near(product, drop, most, pairs)

    monkeypatch.setattr(ClusterSummation, "near", recorded)
    X = np.random.default_rng(7).standard_normal((6000, 3))
    options = {"sigma": 0.04, "tol": 1e-2, "method": "krylov", "products": "clusters"}
    for limit in (50e6, 60e6):
        model = fk.kpca(X, "gaussian", 3, memory_limit=limit, **options)
        assert model.info["passes"] <= 3
    assert 0.0 < asked[0] < asked[1] < 30e6


def test_what_is_left_out_is_added_to_the_bound(monkeypatch):
    """The polynomials are of the near values alone."""
    bounds, certified = [], []
    filtered, certificate = exact_passes.filtered_bound, exact_passes.ritz_certificate

    def recorded_bound(*given, **options):
        bounds.append(filtered(*given, **options))
        return bounds[-1]

    def recorded_certificate(ritz, c, matrix, outside):
        certified.append(outside)
        return certificate(ritz, c, matrix, outside)

    monkeypatch.setattr(exact_passes, "filtered_bound", recorded_bound)
    monkeypatch.setattr(exact_passes, "ritz_certificate", recorded_certificate)
    X = np.random.default_rng(8).standard_normal((3000, 3))
    fk.kpca(X, "gaussian", 5, sigma=0.06, tol=1e-4, method="krylov", products="clusters")
    (taken,) = [bound for bound in certified if bound.form == "filter"]
    # at most 3e-3 times the diagonal, which is 1, and their rounding to float32
    assert bounds[0].mu + 2.9e-3 <= taken.mu <= bounds[0].mu + 3.3e-3
    assert bounds[0].failure_probability <= taken.failure_probability <= 1e-6
