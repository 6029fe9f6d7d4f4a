"""Few kernel values that are not near zero: the coarse matrix, the filter, and intervals that rest on both."""

from types import SimpleNamespace

import intervals
import numpy as np
import pytest
import scipy.linalg
from attack_cases import spectrum
from loose_cases import NARROW
from reference import dense_top, long_gaussian, with_eigenvalues

import fastkpca as fk
from fastkpca.base.rounding import UNIT32
from fastkpca.fit import krylov
from fastkpca.products.truncated import distance_bound, norm_bound, truncated_summation, truncation_radius
from fastkpca.solve.filtered import COLUMNS, filter_steps, filtered
from fastkpca.solve.proofs import FilteredSearch

KINDS = ["uniform", "copies", "duplicates", "one dense spot", "lattice"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 3, 5])
def test_coarse_matrix_leaves_out_no_more_than_it_says(kind, d):
    rng = np.random.default_rng([d, KINDS.index(kind)])
    X = NARROW[kind](rng, 200, d)
    weights = rng.uniform(0.05, 3.0, len(X))
    left_out = 0
    for sigma, tol in [(0.03, 1e-3), (0.1, 1e-2), (0.1, 1e-8), (0.5, 1e-5)]:
        K, reach = long_gaussian(X, X, sigma), truncation_radius(sigma, d, tol)
        truncated = truncated_summation(X, sigma, reach)
        B = truncated.matmat(np.eye(len(X)))
        far = np.linalg.norm(X[:, None] - X, axis=2) > reach * (1.0 + 1e-9)
        assert not B[far].any() and np.array_equal(B, B.T)
        assert (K - B).min() >= -1e-13 and np.abs(K - B)[~far].max() <= 3.0 * UNIT32
        left_out += int(far.any())
        root = np.sqrt(weights)
        sums = (K @ weights).astype(float)
        own = truncated.matmat(weights[:, None])[:, 0]
        distance, norm = distance_bound(own, sums, 1e-13 * weights.sum()), norm_bound(own)
        assert np.linalg.norm(root[:, None] * (K - B).astype(float) * root, 2) <= distance
        assert np.linalg.norm(root[:, None] * B * root, 2) <= norm
        assert distance <= ((K - B) @ weights).max() + 1e-10 * weights.sum()
    assert left_out
    assert distance_bound(np.zeros(4), np.full(4, 1.9), 0.1) >= 2.0  # the norm of ones / 2, whose sums err


@pytest.mark.parametrize("largest", [0.8, 1.02, 1.2, 3.0, 1e4])
@pytest.mark.parametrize("repeated", [1, 20])
def test_filter_never_claims_less_than_there_is(largest, repeated):
    rng = np.random.default_rng([int(1e3 * largest), repeated])
    values = np.concatenate([np.full(repeated, largest), rng.uniform(-0.05, 0.8, 100)])
    A, interval = with_eigenvalues(rng, values), (-0.05, 0.8)
    for wanted in (0.85, 1.0, 1.1):
        steps = filter_steps(len(A), interval, wanted, 1e-6)
        bound, columns, _ = filtered(
            lambda U: A @ U,
            rng.standard_normal((len(A), COLUMNS)),
            interval,
            wanted=wanted,
            error=1e-13 * max(largest, 1.0),
            failure=1e-6,
            most_steps=int(2 * steps) + 1,
        )
        assert bound >= largest
        assert bound == wanted or largest > interval[1]
        if largest > wanted:  # what was missed stands out
            vector = columns[:, 0] / np.linalg.norm(columns[:, 0])
            assert vector @ A @ vector > 0.4


@pytest.mark.parametrize("interval", [(-0.3, 0.5), (0.0, 0.9), (-0.001, 2.0)])
def test_filter_holds_where_the_others_are_not_where_they_were_thought(interval):
    rng = np.random.default_rng(7)
    A = with_eigenvalues(rng, rng.uniform(-0.5, 1.0, 90))
    asked = {"wanted": 1.05 * interval[1], "error": 1e-13, "failure": 1e-6, "most_steps": 60}
    assert (
        filtered(lambda U: A @ U, rng.standard_normal((90, COLUMNS)), interval, **asked)[0] >= np.linalg.eigvalsh(A)[-1]
    )


@pytest.fixture
def searched(monkeypatch):
    """Small problems, searched on near values whatever the plan says."""
    monkeypatch.setattr(krylov, "SMALL_ROWS", 0)
    monkeypatch.setattr(krylov, "truncated_seconds", lambda *_: -1e6)
    monkeypatch.setattr(krylov, "_in_memory", lambda *_: None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("center", [True, False])
def test_no_interval_misses(kind, center, searched):
    for seed in range(3):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        X, sigma, c = NARROW[kind](rng, 150, 2), float(0.02 * 20 ** rng.random()), int(rng.integers(1, 12))
        weights = rng.uniform(0.05, 3.0, len(X)) if seed % 2 else None
        model = fk.kpca(X, "gaussian", c, sigma=sigma, tol=1e-5, method="krylov", sample_weight=weights, center=center)
        assert model.info["products"] in ("exact", "clusters", "grid")
        exact = spectrum(long_gaussian(X, X, sigma), w=weights, center=center).values
        intervals.hold(model, exact, 1e-12 * len(X), tol=1e-5)


def test_what_the_search_missed_is_found(searched):
    """Ten pairs of equal rows: as many eigenvalues of 2, more than a block of the search has columns."""
    X = np.concatenate([np.arange(10.0).repeat(2), 50.0 + np.arange(80.0)])[:, None]
    model = fk.kpca(X, "gaussian", 10, sigma=0.05, tol=1e-6, method="krylov", center=False)
    np.testing.assert_allclose(model.eigenvalues, 2.0, rtol=1e-9)
    assert intervals.width(model) <= 1e-6


def test_flat_spectra_take_one_exact_pass():
    n = 2500
    X = np.random.default_rng(0).random((n, 3))
    model = fk.kpca(X, "gaussian", 10, sigma=0.04, tol=1e-5, method="krylov")
    intervals.hold(model, dense_top(X / 0.04, 10), 1e-9)
    assert model.info["passes"] == 1 and model.bound_kind == "probabilistic"


@pytest.mark.parametrize("lost", [0.0, 1e-9, 1e-4, 1e-2, 0.2])
def test_filter_of_a_search_holds_beyond_a_space_that_has_lost_some_of_its_vectors(lost):
    """The worst loss: towards the eigenvectors just behind, by ``lost`` in sine."""
    n, p = 80, 6
    values = np.concatenate([np.linspace(9.0, 4.0, p), np.linspace(1.0, 0.0, n - p)])
    for seed in range(20):
        rng = np.random.default_rng([seed, int(1e9 * lost)])
        U = scipy.linalg.qr(rng.standard_normal((n, n)))[0]
        B, V = (U * values) @ U.T, U[:, :p]
        turned = V * np.sqrt(1.0 - lost**2) + lost * U[:, p : 2 * p][:, rng.permutation(p)]
        proof = FilteredSearch(SimpleNamespace(size=9.0), V, 1.0, 1e-6)
        proof.appended(SimpleNamespace(basis=SimpleNamespace(Q=turned, n_threads=1)))
        P = np.eye(n) - turned @ turned.T
        assert np.linalg.eigvalsh(P @ B @ P)[-1] - 1e-12 <= proof.bound <= 1.0 + 9.0 * (2 + 3 * lost) * 3 * lost + 1e-11
        proof.restarted()
        assert proof.certificate(None) is None


def test_search_for_many_components_goes_on_after_its_restarts():
    X = np.random.default_rng(10).random((2500, 3))
    model = fk.kpca(X, c=50, sigma=0.06, tol=1e-4, method="krylov")
    assert model.info["passes"] <= 3
