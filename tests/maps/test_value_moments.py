"""Moments of pivots' features from those of kernel values: no farther from the exact ones than they say."""

from __future__ import annotations

import numpy as np
import pytest
from data import map_of_pivots

import fastkpca as fk
from fastkpca.maps import passes
from fastkpca.maps.draws import drawn_by_bounds
from fastkpca.maps.passes import moments_and_draws, value_moments
from fastkpca.maps.pivots import PivotMap
from fastkpca.rows.view import Rows

LONG = np.longdouble


def exact_features(phi, X):
    """The exact solution of L phi = k(P, x), (n, D), in longdouble."""
    L, values = phi.factor.astype(LONG), phi.values(X).astype(LONG)
    for j in range(len(L)):
        values[j] = (values[j] - L[j, :j] @ values[:j]) / L[j, j]
    return values.T


def test_they_err_by_no_more_than_they_say(attack):
    known, worst = 0, 0.0
    for case in range(attack.count(600, least=60)):
        phi, X = map_of_pivots(attack.rng("values", case), 900, kernels=("gaussian", "laplacian", "polynomial"))
        first, other = phi.value_moments(bounds=True), phi.value_moments(bounds=True)
        cut = len(X) // 3
        bounds = [x.update(part) for x, part in ((first, X[:cut]), (other, X[cut:])) if len(part)]
        found = first.merge(other).finished()
        Phi = exact_features(phi, X)
        mean = Phi.mean(axis=0)
        exact = (Phi - mean).T @ (Phi - mean)
        diagonal = phi.kernel.diagonal(X).astype(LONG)
        residual = diagonal - (Phi**2).sum(axis=1)
        of_all = phi.row_bounds(X)
        assert (np.concatenate(bounds) >= residual).all()
        assert (of_all >= residual).all()
        assert of_all.sum() <= found.bounds_trace
        assert found.residual_trace >= float(residual.sum())
        off = np.linalg.norm((found.dense() - exact).astype(np.float64), 2)
        assert off <= found.error
        assert abs(found.trace - float(np.trace(exact))) <= found.error
        n, zero = len(X), found.dense() + len(X) * np.outer(found.mean, found.mean)
        assert np.linalg.norm((zero - Phi.T @ Phi).astype(np.float64), 2) <= found.error
        assert found.count == n
        if found.error <= 1e-6 * float(diagonal.sum()):
            known += 1
            excess = found.residual_trace - float(residual.sum())
            assert (
                excess <= 4.0 * found.error + 4.0 * phi.defect_norm(n, float(diagonal.sum())) + 1e-11 * diagonal.sum()
            )
            worst = max(worst, off / max(found.error, 1e-300))
    assert known and worst > 1e-6  # not by so much less that the bound says nothing


def test_of_rows_without_weights():
    phi = PivotMap(fk.get_kernel("gaussian", sigma=1.0), np.eye(3))
    with pytest.raises(NotImplementedError, match="without weights"):
        phi.value_moments(bounds=False).update(np.eye(3), np.ones(3))
    assert PivotMap(phi.kernel, np.zeros((0, 3))).value_moments(bounds=True) is None
    assert phi.value_moments(bounds=False).update(np.eye(3)) is None


def test_their_draws_follow_the_residual():
    X = np.random.default_rng(0).standard_normal((40_000, 3))
    chosen = PivotMap(fk.get_kernel("gaussian", sigma=1.0), X[:20])
    residual, bounds = chosen.row_bounds(X), chosen.row_bounds(X, chosen.features(X)[:, :5])
    draws = drawn_by_bounds(bounds, lambda index: residual[index], residual.sum(), 200_000, 10**7, 3)
    assert draws.total == residual.sum() and len(draws.index) == 200_000
    np.testing.assert_array_equal(draws.residual, residual[draws.index])
    # in groups of rows, by their number, by their residual, and by how far the bound is above it
    for key in (np.arange(len(X)), residual, bounds / residual):
        groups = np.argsort(np.argsort(key)) // 4000
        expected = np.bincount(groups, residual) / residual.sum() * len(draws.index)
        found = np.bincount(groups[draws.index], minlength=len(expected))
        assert (np.abs(found - expected) <= 5 * np.sqrt(expected) + 5).all()
    ratio = bounds.sum() / residual.sum()
    few = int(200_000 * ratio)
    assert drawn_by_bounds(bounds, lambda index: residual[index], residual.sum(), 200_000, few, 3) is None
    assert drawn_by_bounds(0 * bounds, lambda index: residual[index], 0.0, 10, 10**7, 3) is None


def test_the_pass_is_the_same_at_any_number_of_threads_and_as_that_of_features():
    X = np.random.default_rng(1).standard_normal((60_000, 3))
    chosen = PivotMap(fk.get_kernel("laplacian", length_scale=0.5), X[:300])
    (one, some), (two, same) = (
        value_moments(chosen, Rows(X), np.random.default_rng(3), n_draws=4000, n_threads=t) for t in (1, 2)
    )
    assert np.array_equal(some.index, same.index) and some.total == same.total
    assert np.array_equal(one.dense(), two.dense()) and one.residual_trace == two.residual_trace
    solved, draws = moments_and_draws(chosen, Rows(X), np.random.default_rng(3))
    assert np.linalg.norm(one.dense() - solved.dense(), 2) <= one.error + 1e-13 * len(X)
    assert one.residual_trace == pytest.approx(solved.residual_trace, rel=1e-5)
    assert some.total == pytest.approx(draws.total, rel=1e-3)
    assert value_moments(chosen, Rows(X), np.random.default_rng(3), n_draws=0)[1] is None


@pytest.mark.parametrize("size", [1e-130, 1e130])
def test_the_error_goes_with_the_kernels_size(size):
    """L^-1 C goes with its power 3/2: squares of that leave the range of float64."""
    X = np.random.default_rng(0).standard_normal((500, 2))
    shares = []
    for factor in (1.0, size):
        moments = PivotMap(factor * fk.get_kernel("gaussian", sigma=2.0), X[:40]).value_moments(bounds=True)
        moments.update(X)
        found = moments.finished()
        shares.append(found.error / found.trace)
    assert shares[1] == pytest.approx(shares[0], rel=0.05)


def test_a_row_drawn_twice_has_its_least_residual():
    """It may be computed twice, with other rounding errors: by the larger one the sample would say too little of it."""
    rng, bounds, calls = np.random.default_rng(0), np.ones(1000), []

    def residual(index):
        calls.append(0.5 * (1.0 - 1e-3 * rng.random(len(index))))
        given[index] = np.minimum(given[index], calls[-1])
        return calls[-1]

    given = np.full(1000, np.inf)
    draws = drawn_by_bounds(bounds, residual, 900.0, 4000, 10**6, 0)
    assert len(calls) > 1
    assert len(draws.index) == 4000
    for row in np.unique(draws.index):
        own = draws.residual[draws.index == row]
        assert (own == own[0]).all()
    assert (draws.residual >= given[draws.index]).all()


def test_rows_that_are_proposed_are_held_a_few_at_a_time(monkeypatch):
    X = np.random.default_rng(1).standard_normal((20_000, 3))
    chosen = PivotMap(fk.get_kernel("gaussian", sigma=1.0), X[:50])
    monkeypatch.setattr(passes, "ENTRIES_AT_ONCE", 1 << 15, raising=False)
    taken, take = [], Rows.take
    monkeypatch.setattr(Rows, "take", lambda self, index: (taken.append(len(index)), take(self, index))[1])
    _, some = value_moments(chosen, Rows(X), np.random.default_rng(3), n_draws=4000)
    assert max(taken) <= 512
    np.testing.assert_allclose(some.residual, chosen.row_bounds(X[some.index]), rtol=1e-9)
