"""Ranked multi-indices: tables against mpmath, the set against brute force, the certificate against LAPACK."""

from __future__ import annotations

import dataclasses
import itertools

import mpmath
import numpy as np
import pytest
import scipy.linalg
from data import look, unkind_rows
from reference import long_gaussian
from scipy.special import gammainc
from scipy.stats import poisson

import fastkpca as fk
from fastkpca._core import ranked as core
from fastkpca.base.protocol import Moments
from fastkpca.maps import ranked
from fastkpca.maps.ranked import RankedMap, ranked_map

U = 2.0**-53


def summary_of(X):
    rows, summary = look(X)
    return rows.all(), summary


@pytest.mark.parametrize("order", [0, 1, 7, 15, 16, 17, 100, 1000])
def test_tables_against_mpmath(order):
    mpmath.mp.dps = 40
    rng = np.random.default_rng(order)
    points = [0.0, 1e-300, -1e-8, 1.0, -3.0, 7.999, 8.0, -8.001, 12.5, -31.0, 40.0, 60.0, -200.0, 1e5, 1e200]
    x = np.array(points + list(rng.uniform(-15, 15, 10)))
    table = core.one_dimensional(x, order)
    assert table.shape == (order + 1, len(x))
    for i, value in enumerate(x):
        for k in {0, order // 3, order // 2, order - 1, order} - {-1}:
            t = mpmath.mpf(float(value))
            exact = mpmath.exp(-t * t / 2) * t**k / mpmath.sqrt(mpmath.factorial(k))
            # relative, plus what is negligible: the module's bound, with the peak of B exp(-B / 2) for the second
            assert abs(table[k, i] - exact) <= (12 + 3 * order) * U * abs(exact) + 4 * U


def test_tables_do_not_underflow_far_out():
    table = core.one_dimensional(np.array([45.0, -45.0]), 3000)
    np.testing.assert_allclose((table**2).sum(axis=0), 1.0, rtol=1e-11)
    np.testing.assert_allclose(table[1999] * np.array([1, -1]), np.sqrt(poisson.pmf(1999, 2025.0)), rtol=1e-11)


def test_set_is_the_heaviest_by_brute_force():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 3)) * [1.5, 0.8, 0.2] + rng.integers(0, 2, (60, 1)) * 1.5
    rows, summary = summary_of(X)
    feature_map = ranked_map(summary, 1.0, tol=1e-3, max_features=5000)
    z = (rows - feature_map.centre) @ feature_map.axes
    grid = np.array(list(itertools.product(range(30), repeat=3)))
    mass = np.mean([np.prod(poisson.pmf(grid, point**2), axis=1) for point in z], axis=0)
    order = np.argsort(-mass)
    needed = int(np.searchsorted(np.cumsum(mass[order]), 1 - 1e-3)) + 1
    assert feature_map.reached
    assert feature_map.n_features == needed
    assert {tuple(a) for a in feature_map.indices} == {tuple(a) for a in grid[order[:needed]]}
    assert feature_map.predicted == pytest.approx(1 - mass[order[:needed]].sum(), rel=1e-9)


def test_fewer_than_total_degree_on_anisotropic_data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2000, 6)) * 0.5 ** np.arange(6)
    rows, summary = summary_of(X)
    square = (rows**2).sum(axis=1)
    p = next(p for p in range(1, 200) if gammainc(p, square).mean() <= 1e-3)
    total_degree = len(list(itertools.combinations(range(p - 1 + 6), 6)))
    assert ranked_map(summary, 1.0, tol=1e-3, max_features=2000).n_features < total_degree / 20


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_against_the_definition(dtype):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 4)) * [2.0, 1.0, 0.5, 0.1]
    rows, summary = summary_of(X)
    feature_map = ranked_map(summary, 1.3, tol=1e-6, max_features=5000)
    tile = rows.astype(dtype)
    Phi = feature_map.features(tile)
    assert Phi.dtype == dtype
    assert Phi.flags.f_contiguous
    z = ((tile.astype(np.longdouble) - feature_map.centre) @ feature_map.axes.astype(np.longdouble)) / 1.3
    root_factorial = np.sqrt(np.concatenate([[1], np.cumprod(np.arange(1, 60, dtype=np.longdouble))]))
    exact = np.ones(Phi.shape, dtype=np.longdouble)
    for i in range(4):
        k = feature_map.indices[:, i]
        exact *= np.exp(-(z[:, i, None] ** 2) / 2) * z[:, i, None] ** k / root_factorial[k]
    assert np.abs(Phi - exact).max() <= 400 * U if dtype == np.float64 else 2e-6
    assert (np.diff(np.lexsort(feature_map.indices.T[::-1])) == 1).all()  # lexicographic order, none twice
    assert len(np.unique(feature_map.indices, axis=0)) == feature_map.n_features


def test_certificate_attacked(attack):
    for case in range(attack.count(1500, least=30)):
        rng = attack.rng("ranked", case)
        n, d = int(rng.integers(1, 200)), int(rng.integers(1, 6))
        rows, summary = summary_of(unkind_rows(rng, n, d))
        sigma = float(10.0 ** rng.uniform(-1.5, 3))
        tol = 10.0 ** rng.uniform(-12, -2)
        feature_map = ranked_map(summary, sigma, tol=tol, max_features=int(rng.integers(1, 1500)))
        K = long_gaussian(rows, rows, sigma)
        Phi = feature_map.features(rows)
        residual = feature_map.residual(rows, Phi)
        assert (residual >= 0).all()
        left = 1 - (Phi.astype(np.longdouble) ** 2).sum(axis=1)
        assert (residual >= left).all()
        # Phi as computed, in long double: nothing but the map's own claims is on trial
        E = K - Phi.astype(np.longdouble) @ Phi.T.astype(np.longdouble)
        lapack = 20 * n * U * n
        assert scipy.linalg.eigvalsh(E.astype(float))[0] >= -n * feature_map.defect - 4 * U * n
        true = scipy.linalg.eigvalsh(K.astype(float))[::-1]
        mine = scipy.linalg.eigvalsh(Phi @ Phi.T)[::-1]
        assert (mine <= true + n * feature_map.defect + lapack).all()
        assert (true <= mine + residual.sum() + n * feature_map.defect + lapack).all()
        assert residual.mean() <= left.mean() + 3 * feature_map.defect + (100 + 8 * d) * U
        assert feature_map.reached == (feature_map.predicted <= tol)
        assert feature_map.predicted == pytest.approx(residual.mean(), rel=1e-6, abs=1e-14)
        moments = Moments(feature_map)
        for part in np.array_split(rows, 3):
            moments.update(part)
        assert moments.residual_trace == pytest.approx(residual.sum(), rel=1e-6, abs=1e-12)


def test_rotation_and_centre_do_not_matter_to_the_bound():
    """Any centre and any axes give a certified map: the bound is not tuned to principal ones."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((80, 3))
    axes = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    grid = np.array(list(itertools.product(range(4), repeat=3)))[rng.random(64) < 0.6]
    feature_map = RankedMap(1.0, np.array([2.0, -1.0, 0.3]), axes, grid, 10.0)
    E = (long_gaussian(rows, rows, 1.0) - feature_map.features(rows) @ feature_map.features(rows).T).astype(float)
    assert scipy.linalg.eigvalsh(E)[0] >= -80 * feature_map.defect
    np.testing.assert_allclose(np.diag(E), feature_map.residual(rows), atol=1e-13)


def test_max_features_is_kept_and_said():
    X = np.random.default_rng(4).standard_normal((500, 8))
    _, summary = summary_of(X)
    feature_map = ranked_map(summary, 0.5, tol=1e-6, max_features=100)
    assert feature_map.n_features == 100
    assert not feature_map.reached
    assert feature_map.predicted > 0.1


def test_hopeless_sigma_ends_and_says_so():
    X = np.random.default_rng(5).standard_normal((300, 3))
    rows, summary = summary_of(X)
    feature_map = ranked_map(summary, 1e-9, tol=1e-3, max_features=100)
    assert not feature_map.reached
    assert feature_map.predicted == pytest.approx(1.0)
    assert np.isfinite(feature_map.features(rows)).all()
    wide = ranked_map(summary, 1e9, tol=1e-12, max_features=100)
    assert wide.reached
    assert wide.n_features <= 4


def test_sample_that_stands_for_more_adds_an_error():
    X = np.random.default_rng(6).standard_normal((3000, 3))
    _, summary = summary_of(X)
    alone = ranked_map(summary, 1.0, tol=1e-4, max_features=3000)
    careful = ranked_map(dataclasses.replace(summary, n_samples=10**6), 1.0, tol=1e-4, max_features=3000)
    assert alone.reached
    assert careful.reached
    assert careful.n_features > alone.n_features


def test_state_restores_the_map_bit_for_bit():
    X = np.random.default_rng(7).standard_normal((100, 3))
    rows, summary = summary_of(X)
    feature_map = ranked_map(summary, 1.0, tol=1e-4, max_features=1000)
    again = RankedMap.from_state(*feature_map.state())
    assert (again.features(rows) == feature_map.features(rows)).all()
    assert again.defect == feature_map.defect
    assert (again.reached, again.predicted) == (feature_map.reached, feature_map.predicted)


def test_max_work_bounds_the_search_and_is_honest():
    X = np.random.default_rng(8).random((1000, 40))
    rows, summary = summary_of(X)
    feature_map = ranked_map(summary, 2.0, tol=1e-3, max_features=3000, max_work=1e6)
    assert not feature_map.reached
    assert feature_map.predicted == pytest.approx(feature_map.residual(rows).mean(), rel=1e-9)
    assert feature_map.cost().n_features == feature_map.n_features


def test_one_row():
    rows, summary = summary_of(np.array([[3.0, -2.0]]))
    feature_map = ranked_map(summary, 1.0, tol=1e-10, max_features=10)
    assert feature_map.reached
    assert feature_map.n_features == 1
    assert feature_map.residual(rows)[0] < 1e-12


def test_the_choice_for_many_rows_does_not_hang_on_a_few():
    """Many rows: the search is made on the whole sample at once, and the offer is the map that it found."""
    sizes = []
    for seed in range(3):
        X = np.random.default_rng(seed).random((20000, 4))
        _, data = look(X)
        kernel = fk.get_kernel("gaussian", sigma=1.0)
        for n in (10**6, 10**8):
            data = dataclasses.replace(data, n_samples=n)
            offers = {x.name: x for x in kernel.feature_maps(data, 3e-5, 500)}
            built = offers["ranked"].build(data.sample)
            assert offers["ranked"].cost.n_features == built.n_features < offers["monomial"].cost.n_features
            assert built.reached
            sizes.append(built.n_features)
            # another sample: another search
            assert offers["ranked"].build(data.sample[::2]) is not built
    assert max(sizes) < 1.1 * min(sizes)


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("share", [1.0, 0.01, 1e-12, 100.0])
def test_a_search_that_begins_near_its_end_finds_the_same_set_sooner(monkeypatch, tol, share):
    _, data = look(np.random.default_rng(3).random((5000, 4)))
    few = dataclasses.replace(data, sample=data.sample[::16])
    thresholds = []
    above = ranked._Search._above
    monkeypatch.setattr(ranked._Search, "_above", lambda self, t, most: thresholds.append(t) or above(self, t, most))
    whole = ranked_map(data, 1.5, tol=tol, max_features=400)
    searches = len(thresholds)
    lightest = ranked_map(few, 1.5, tol=tol, max_features=400).lightest
    thresholds.clear()
    again = ranked_map(data, 1.5, tol=tol, max_features=400, lightest=share * lightest)
    assert whole.reached and again.reached
    np.testing.assert_array_equal(again.indices, whole.indices)
    if share == 1.0:
        assert len(thresholds) <= 2 < searches


def test_the_search_of_wide_rows_is_priced():
    """By the masses of each row, not by the features that are found: these are few in many columns."""
    X = np.random.default_rng(0).standard_normal((2000, 200)) * np.linspace(3.0, 0.01, 200)
    kernel = fk.kernels.get_kernel("gaussian", sigma=60.0)
    offers = {x.name: x for x in kernel.feature_maps(summary_of(X)[1], 0.05, 1000)}
    masses = 30.0 * X.size  # some 30 orders at least of each coordinate
    assert offers["ranked"].cost.n_features < 200
    assert offers["ranked"].cost.setup_flops > 10.0 * masses
