"""kpca_baseline: the choice finds faults that it was never told about; lags; missing values in the rows of the fit."""

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.fit import baseline


def plant(seed, n=1500, factors=2, d=8, bend=0.0):
    """(normal rows, others of these) of latent factors, in units of their own."""
    rng = np.random.default_rng(seed)
    loadings, curves = rng.standard_normal((2, factors, d))
    noise, units = rng.uniform(0.15, 0.5, d), 10.0 ** rng.uniform(-2, 3, d)

    def rows(m):
        latent = rng.standard_normal((m, factors))
        return units * (latent @ loadings + bend * latent**2 @ curves + noise * rng.standard_normal((m, d)) + 7.0)

    return rows(n), rows(2000)


def found(model, rows):
    return float(fk.kpca_monitor(model, rows, health=()).beyond.any(axis=1).mean())


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_what_a_gaussian_of_the_median_does_not(seed):
    normal, other = plant(seed)
    model = fk.kpca_baseline(normal)
    assert model.scale is not None and model.limits.joint and "at 1 % false alarms" in model.info["chosen"]
    assert found(model, other) < 0.025
    order = np.random.default_rng(0).permutation(len(normal))
    before = fk.kpca(normal[order[500:]], "gaussian", 5, standardize=True)
    before = before.with_limits(fk.kpca_limits(before, normal[order[:500]], joint=True))
    ours, theirs = [], []
    for column in range(8):
        wrong = other.copy()
        wrong[:, column] = np.roll(wrong[:, column], 1)  # no relation to the other columns any more
        ours.append(found(model, wrong))
        theirs.append(found(before, wrong))
    assert np.mean(ours) > 0.15 and np.mean(ours) > 4 * np.mean(theirs)


@pytest.mark.parametrize("factors", [2, 3, 4])
def test_the_number_of_shared_factors_is_counted(factors):
    drawn = [plant(seed, 700, factors)[0] for seed in range(10)]  # some have a factor that hardly shows
    assert sum(baseline._shared(X, np.random.default_rng(0)) == factors for X in drawn) >= 9
    X = drawn[0]
    alone = np.random.default_rng(0).standard_normal((700, 5))
    assert baseline._shared(alone, np.random.default_rng(0)) == 1
    twice = np.hstack([X, X[:, :1] + X[:, 1:2], np.ones((700, 1))])  # a sum of others, and a constant
    assert baseline._shared(twice, np.random.default_rng(0)) >= factors


def test_linear_rows_get_the_linear_kernel_and_curved_ones_more_components():
    linear, curved = (fk.kpca_baseline(plant(1, bend=bend)[0]) for bend in (0.0, 0.6))
    assert linear.kernel.is_linear and linear.spe_components == 2 and linear.n_components == 8
    assert not curved.kernel.is_linear or curved.spe_components > 2
    ring = np.random.default_rng(0).uniform(0, 2 * np.pi, 900)
    ring = np.column_stack([np.cos(ring), np.sin(ring)]) + 0.05 * np.random.default_rng(1).standard_normal((900, 2))
    model = fk.kpca_baseline(ring)
    assert not model.kernel.is_linear and found(model, [[0.0, 0.0], [0.2, -0.1]]) == 1.0


def test_what_is_given_is_not_chosen():
    X = plant(0)[0]
    given = fk.kpca_baseline(X, "gaussian", 4, sigma=3.0, standardize=False)
    assert (given.kernel.sigma, given.n_components, given.spe_components, given.scale) == (3.0, 4, None, None)
    assert fk.kpca_baseline(X, c=3).n_components == 3
    assert fk.kpca_baseline(X, "polynomial", degree=2).kernel.degree == 2
    assert not fk.kpca_baseline(X, "gaussian").kernel.is_linear
    assert fk.kpca_baseline(X, c=0.8).spe_components is None
    with pytest.raises(ValueError, match="confidence is 2"):
        fk.kpca_baseline(X, confidence=2)
    again, other = fk.kpca_baseline(X), fk.kpca_baseline(X, rng=1)
    assert again.limits == fk.kpca_baseline(X).limits != other.limits


@pytest.mark.filterwarnings("ignore::fastkpca.errors.LimitsWarning")
def test_few_rows_and_rows_that_are_alike():
    few = fk.kpca_baseline(plant(0, 20)[0], confidence=0.8)
    assert "too few" in few.info["chosen"] and few.n_components == 3
    alike = np.ones((600, 3))
    with pytest.raises(ValueError, match="carries variance"):
        fk.kpca_baseline(alike)
    alike[:5] = np.random.default_rng(0).standard_normal((5, 3))
    assert "too few that differ" in fk.kpca_baseline(alike, confidence=0.9).info["chosen"]
    fk.kpca_baseline(plant(0, 60)[0], confidence=0.9)


def test_spe_of_fewer_components_than_t2(tmp_path):
    normal, other = plant(2)
    model = fk.kpca_baseline(normal)
    b = model.spe_components
    assert 0 < b < model.n_components
    Z = fk.kpca_project(model, other)
    centred = np.sum(((other - model.shift) / model.scale) ** 2, axis=1)
    expected = centred - np.sum(Z[:, :b] ** 2, axis=1)
    spe, interval = fk.kpca_spe(model, other, bounds=True)
    np.testing.assert_allclose(spe, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fk.kpca_spe(model, other), spe, rtol=1e-9, atol=1e-12)
    assert (interval[:, 0] <= expected * (1 + 1e-9)).all() and (expected <= interval[:, 1] * (1 + 1e-9)).all()
    np.testing.assert_allclose(fk.kpca_t2(model, other), np.sum(Z**2 / model.latent, axis=1), rtol=1e-9)
    fk.save(model, tmp_path / "m.kpca")
    again = fk.load(tmp_path / "m.kpca")
    assert (again.spe_components, again.info["chosen"]) == (b, model.info["chosen"])
    np.testing.assert_array_equal(fk.kpca_spe(again, other), fk.kpca_spe(model, other))
    which = fk.kpca_contributions(model, other[:3])
    np.testing.assert_allclose(which.of_rows, spe[:3], rtol=1e-9)
    assert fk.kpca(normal, "linear", 2, standardize=True).spe_components is None


# Lags ---------------------------------------------------------------------------------------------------------------


def oscillating(n, rng, turned=False):
    x = np.zeros((n, 2))
    for i in range(1, n):
        x[i] = [[0.95, 0.2], [-0.2, 0.95]] @ x[i - 1] + 0.1 * rng.standard_normal(2)
    return x[::-1] if turned else x  # backwards in time each row is as before


def test_lags_show_what_the_order_of_rows_alone_tells():
    normal, same = oscillating(3000, np.random.default_rng(0)), oscillating(500, np.random.default_rng(1))
    backwards = oscillating(500, np.random.default_rng(2), turned=True)
    plain, lagged = fk.kpca_baseline(normal), fk.kpca_baseline(normal, lags=2)
    assert lagged.n_features == 6 and lagged.lags == 2 and plain.lags == 0
    assert found(plain, backwards) < 0.1 and found(lagged, backwards) > 0.25 and found(lagged, same) < 0.05
    monitored = fk.kpca_monitor(lagged, same)
    assert np.isnan(monitored.t2).tolist() == [True, True] + [False] * 498
    long = np.hstack([same[2:], same[1:-1], same[:-2]])  # each row, the one before, the one before that
    np.testing.assert_allclose(monitored.spe[2:], fk.kpca_spe(lagged, long), rtol=1e-9)
    assert monitored.run_evidence is None  # rows that hold each other are not exchangeable
    with pytest.raises(ValueError, match="needs 2 rows before each one"):
        fk.kpca_monitor(lagged, same[:2], health=())
    for many in (500, 10**9):
        with pytest.raises(ValueError, match=f"lags is {many}; give a whole number, 0 or more, and 499 at most"):
            fk.kpca_baseline(same, lags=many)


def test_lags_of_a_model_file_are_a_number(tmp_path):
    model = fk.kpca_baseline(oscillating(300, np.random.default_rng(0)), lags=1, confidence=0.9)
    for lags in ("2", -1, 1.5):
        model.info["lags"] = lags
        fk.save(model, tmp_path / "m.kpca", overwrite=True)
        with pytest.raises(fk.errors.ModelFileError, match="lags is"):
            fk.load(tmp_path / "m.kpca")


def test_gaps_cut_lags_and_names_tell_them():
    pd = pytest.importorskip("pandas")
    index = pd.date_range("2026-01-01", periods=400, freq="h")
    frame = pd.DataFrame(oscillating(400, np.random.default_rng(0)), columns=["a", "b"], index=index)
    holed = frame.drop(frame.index[100:110])
    model = fk.kpca_baseline(holed, lags=1, confidence=0.95)
    assert model.feature_names == ("a", "b", "a[-1]", "b[-1]")
    assert model.n_samples + model.limits.n_calibration == 390 - 2
    monitored = fk.kpca_monitor(model, holed.iloc[90:110], health=())
    assert np.flatnonzero(np.isnan(monitored.t2)).tolist() == [0, 10]
    assert monitored.contributions([1]).names == ("a", "b", "a[-1]", "b[-1]")
    with pytest.raises(ValueError, match="'c'"):
        fk.kpca_monitor(model, holed.rename(columns={"b": "c"}), health=())


# Missing values -----------------------------------------------------------------------------------------------------


def test_missing_values_of_the_rows_of_the_fit_are_filled():
    normal, other = plant(3)
    holed, rng = normal.copy(), np.random.default_rng(0)
    gaps = rng.random(holed.shape) < 0.05
    holed[gaps] = np.nan
    model = fk.kpca_baseline(holed, fill_missing=True)
    whole = ~gaps.any(axis=1)
    assert model.limits.n_calibration == whole.sum() // 3 and model.n_samples == 1500 - whole.sum() // 3
    held_rows = model.n_samples - (whole.sum() - whole.sum() // 3)
    assert f"{gaps.sum()} missing values in {held_rows} of {model.n_samples} rows" in model.info["filled"]
    assert found(model, other) < 0.03
    with pytest.raises(ValueError, match="NaN"):
        fk.kpca_baseline(holed)


def test_filled_rows_agree_with_their_model():
    """For the linear kernel: each filled value is the one that the components of the filled rows give it."""
    from fastkpca.fit.missing import fit_and_fill

    X, rng = plant(4, 300)[0], np.random.default_rng(0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    holed = X.copy()
    holed[rng.permutation(300)[:60], rng.integers(0, 8, 60)] = np.nan
    seen = []

    def fit(rows):
        seen.append(rows.copy())
        return fk.kpca(rows, "linear", 2)

    text = fit_and_fill(holed, fit).info["filled"]
    filled = seen[-1]
    missing = np.isnan(holed)
    assert (filled[~missing] == holed[~missing]).all() and "60 missing values in 60 of 300 rows" in text
    mean = filled.mean(axis=0)
    axes = np.linalg.svd(filled - mean, full_matrices=False)[2][:2]
    residual = np.eye(8) - axes.T @ axes
    for i, j in np.argwhere(missing):
        x = filled[i] - mean
        best = x[j] - (residual @ x)[j] / residual[j, j]
        best = np.clip(best, filled[:, j].min() - mean[j], filled[:, j].max() - mean[j])
        assert abs(best - x[j]) < 0.03
    assert np.abs(filled - X)[missing].mean() < 0.7 * np.abs(np.nanmedian(holed, axis=0) - X)[missing].mean()
    with pytest.raises(ValueError, match="all 8 components of the linear kernel fit any value"):
        fit_and_fill(holed, lambda rows: fk.kpca(rows, "linear", 8))
    holed[:, 2] = np.nan
    with pytest.raises(ValueError, match="column 2 has no value"):
        fit_and_fill(holed, lambda rows: fk.kpca(rows, "linear", 2))
