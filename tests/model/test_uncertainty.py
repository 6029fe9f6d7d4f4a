"""Intervals for a population: against known populations, a bootstrap of the rows by refitting, and in words."""

import numpy as np
import pytest

import fastkpca as fk

SPREAD = np.sqrt([8.0, 4.0, 2.0, 1.0, 0.5])


def rows(n=200, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 5)) * SPREAD


def close(a, b, share=1e-9):
    np.testing.assert_allclose(a, b, rtol=share, atol=share * np.nanmax(np.abs(b)))


def test_intervals_cover_the_populations_eigenvalues():
    # 100 draws of 4 components: 95 % less four standard errors, of draws that are independent
    inside, shares, separated = np.zeros(4), np.zeros(4), np.zeros(4)
    truth = SPREAD**2
    for seed in range(100):
        X = rows(200, seed)
        sure = fk.kpca_uncertainty(fk.kpca(X, "linear", 5), X, n_bootstrap=200, n_permutations=0, rng=seed)
        low, high = sure.latent_interval[:4].T
        inside += (low <= truth[:4]) & (truth[:4] <= high)
        low, high = sure.explained_interval[:4].T
        part = 100 * truth[:4] / truth.sum()
        shares += (low <= part) & (part <= high)
        separated += sure.separated[:4]
    assert (inside >= 86).all() and inside.sum() < 400
    assert (shares >= 86).all() and shares.sum() < 400
    assert (separated >= 90).all()


def test_moments_give_what_refitting_the_rows_gives():
    """The spread of eigenvalues over resamples, beside a bootstrap that fits each resample anew."""
    X = rows(300) + 1.0
    kernel = fk.get_kernel("gaussian", sigma=5.0)
    model = fk.kpca(X, kernel, 8, method="dense")
    sure = fk.kpca_uncertainty(model, X, n_permutations=0)
    rng, refitted = np.random.default_rng(1), []
    for _ in range(200):
        again = fk.kpca(X[rng.integers(300, size=300)], kernel, 4, method="dense")
        refitted.append(again.latent)
    spread = np.log(refitted).std(axis=0)
    half = np.log(sure.latent_interval[:4, 1] / sure.latent_interval[:4, 0]) / (2 * 1.96)
    np.testing.assert_allclose(half, spread, rtol=0.25)


def test_routes_agree():
    X = rows(300)
    results = [
        fk.kpca_uncertainty(fk.kpca(X, "linear", 4, method=method, tol=1e-9), X, n_bootstrap=200, n_permutations=9)
        for method in ("dense", "features", "krylov")
    ]
    for other in results[1:]:
        for name in ("latent_interval", "explained_interval", "cumulative_interval", "permuted"):
            close(getattr(other, name), getattr(results[0], name), 1e-6)
        close(other.angles, results[0].angles, 1e-4)


def test_groups_of_rows_have_the_variance_of_rows():
    X = rows(1000)
    single = fk.kpca_uncertainty(fk.kpca(X, "linear", 4), X, n_permutations=0)
    many = np.tile(X, (20, 1))  # the same distribution, 20 times as many: sqrt(20) times narrower
    grouped = fk.kpca_uncertainty(fk.kpca(many, "linear", 4), many, n_permutations=0)
    width = [np.log(x.latent_interval[:, 1] / x.latent_interval[:, 0]) for x in (single, grouped)]
    np.testing.assert_allclose(width[1] * np.sqrt(20), width[0], rtol=0.15)


@pytest.mark.parametrize("n", [400, 4000])
def test_a_weight_counts_a_row_so_many_times(n):
    X = rows(n)
    weights = np.random.default_rng(2).integers(0, 4, n)
    weighted = fk.kpca(X, "linear", 4, sample_weight=weights)
    copies = np.repeat(X, weights, axis=0)
    a = fk.kpca_uncertainty(weighted, X, sample_weight=weights, n_permutations=0)
    b = fk.kpca_uncertainty(fk.kpca(copies, "linear", 4), copies, n_permutations=0)
    close(a.latent, b.latent)
    if len(copies) <= 1024:
        close(a.latent_interval, b.latent_interval)
    width = [np.log(x.latent_interval[:, 1] / x.latent_interval[:, 0]) for x in (a, b)]
    np.testing.assert_allclose(width[0], width[1], rtol=0.15)


def test_the_number_of_components_by_permuted_columns():
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((400, 2)) @ rng.standard_normal((2, 10))
    X = factors + rng.standard_normal((400, 10))
    X /= X.std(axis=0)
    sure = fk.kpca_uncertainty(fk.kpca(X, "linear", 6), X, n_bootstrap=100)
    assert sure.n_significant == 2 and (sure.p_values[:2] == 1 / 50).all()
    assert (sure.permuted[:2] < sure.explained[:2]).all()
    noise = [
        fk.kpca_uncertainty(fk.kpca(Z, "gaussian", 3, sigma=4.0), Z, n_bootstrap=100, n_permutations=19, rng=i)
        for i, Z in enumerate(rng.standard_normal((40, 100, 6)))
    ]
    assert sum(x.n_significant > 0 for x in noise) <= 7  # at most 5 %, plus three standard errors
    alone = fk.kpca_uncertainty(fk.kpca(X[:, :1], "gaussian", 2, sigma=1.0), X[:, :1], n_bootstrap=100)
    assert alone.n_significant is None and alone.p_values is None


def test_angles_hold_and_ties_are_named():
    bound = within = 0
    for seed in range(30):
        X = rows(200, seed)
        model = fk.kpca(X, "linear", 5)
        sure = fk.kpca_uncertainty(model, X, n_bootstrap=200, n_permutations=0)
        W = model.projector.axes[:, :2]
        angle = np.arcsin(min(1.0, np.linalg.norm(W[2:], 2)))
        within += angle <= sure.angles[1]
        bound += sure.angles[1] <= 4 * angle
        assert sure.angles[-1] == 0.0  # nothing is outside of all five
    assert within >= 25 and bound >= 10
    X = np.random.default_rng(0).standard_normal((300, 4))
    tied = fk.kpca_uncertainty(fk.kpca(X, "linear", 2), X, n_bootstrap=200, n_permutations=0)
    assert not tied.separated.any() and np.isnan(tied.angles[1])


def test_models_that_are_not_centred_or_that_standardize():
    route, X = {"method": "features"}, rows(300) + [2.0, 0.0, 0.0, 0.0, 0.0]
    model = fk.kpca(X, "linear", 4, center=False, **route)
    sure = fk.kpca_uncertainty(model, X, n_bootstrap=300, n_permutations=5)
    close(sure.latent, model.latent, 1e-6)
    refitted = [
        fk.kpca(X[np.random.default_rng(i).integers(300, size=300)], "linear", 3, center=False, **route).latent
        for i in range(200)
    ]
    half = np.log(sure.latent_interval[:3, 1] / sure.latent_interval[:3, 0]) / (2 * 1.96)
    np.testing.assert_allclose(half, np.log(refitted).std(axis=0), rtol=0.3)
    scaled = fk.kpca(X, "linear", 4, standardize=True, **route)
    unit = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    by_hand = fk.kpca_uncertainty(fk.kpca(unit, "linear", 4, **route), unit, n_bootstrap=100, n_permutations=0)
    close(fk.kpca_uncertainty(scaled, X, n_bootstrap=100, n_permutations=0).explained, by_hand.explained, 1e-6)


def test_any_source_of_rows_and_threads_give_the_same():
    dask_array = pytest.importorskip("dask.array")
    X = rows(40000)
    model = fk.kpca(X, "polynomial", 3, degree=2)
    there = dask_array.from_array(X, chunks=(7000, 5))
    for method in ("gradient", "permutation"):
        which = [fk.kpca_importance(model, rows, method=method).importance for rows in (X, there)]
        np.testing.assert_array_equal(*which)
    asked = {"n_bootstrap": 100, "n_permutations": 3}
    here = fk.kpca_uncertainty(model, X, n_threads=2, **asked)
    there = fk.kpca_uncertainty(model, there, n_threads=1, **asked)
    np.testing.assert_array_equal(there.latent_interval, here.latent_interval)
    np.testing.assert_array_equal(there.p_values, here.p_values)
    assert "confidence 0.95" in repr(here)


def test_all_components_leave_no_share():
    X = rows(100)
    sure = fk.kpca_uncertainty(fk.kpca(X, "linear", 5), X, n_bootstrap=100, n_permutations=0)
    np.testing.assert_allclose(sure.cumulative[-1], 100.0)
    np.testing.assert_allclose(sure.cumulative_interval[-1], [100.0, 100.0])
    assert (np.diff(sure.latent_interval) > 0).all() and (sure.latent_interval > 0).all()


def test_few_rows_tell_of_few_components():
    X = rows(40)
    assert len(fk.kpca_uncertainty(fk.kpca(X, "gaussian", 12, sigma=3.0), X, n_bootstrap=100).latent) == 10


def test_rows_with_nothing_in_common_have_equal_eigenvalues():
    X = 1e3 * np.random.default_rng(0).standard_normal((30, 4))
    sure = fk.kpca_uncertainty(fk.kpca(X, "gaussian", 4, sigma=100.0), X, n_bootstrap=100, n_permutations=19)
    assert (sure.p_values > 0.05).all()


def test_resamples_without_the_one_row_that_varies():
    X = np.zeros((30, 1))
    X[7] = 1.0
    sure = fk.kpca_uncertainty(fk.kpca(X, "linear", 1), X, n_permutations=0)
    low, high = sure.latent_interval[0]
    assert 0.0 <= low < sure.latent[0] < high and not np.isnan(sure.explained_interval).any()


def test_the_first_line_tells_the_sample_from_the_population():
    X = np.random.default_rng(2).standard_normal((60, 40))  # few rows overrate the first component
    sure = fk.kpca_uncertainty(fk.pca(X, 5), X, n_bootstrap=200, n_permutations=0)
    low, high = sure.explained_interval[0]
    assert f"% of these rows' variance, and of the population's {low:.3g} to {high:.3g} %" in repr(sure)
    assert ("few rows overrate" in repr(sure)) == (not low <= sure.explained[0] <= high)
