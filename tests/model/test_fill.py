"""Missing values filled by a model: against closed forms, dense searches, and the values that were there."""

import numpy as np
import pytest

import fastkpca as fk


def rows(n, seed):
    """Rows near a curve in five columns of different units."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, (n, 1))
    X = np.hstack([t, t**2, -t, 2 * t + t**3, np.sin(2 * t)]) + 0.03 * rng.standard_normal((n, 5))
    return X * [1.0, 100.0, 1e-3, 1.0, 5.0] + [0.0, 0.0, 7.0, -3.0, 0.0]


def with_gaps(X, share, seed=7):
    gaps = np.random.default_rng(seed).random(X.shape) < share
    gaps[gaps.all(axis=1), 0] = False
    return np.where(gaps, np.nan, X), gaps


NORMAL, NEW = rows(500, 0), rows(80, 1)
KERNELS = [
    ("gaussian", {}),
    ("gaussian", {"method": "features", "features": "pivots", "sigma": 3.0}),
    ("polynomial", {"degree": 2, "offset": 1.0}),
    ("laplacian", {"length_scale": 4.0}),
]


def test_the_linear_kernel_projects_to_the_model_plane():
    model = fk.kpca(NORMAL, "linear", 2, standardize=True)
    holed, gaps = with_gaps(NEW, 0.25)
    filled = fk.kpca_fill(model, holed, train=NORMAL)
    centre, spread = NORMAL.mean(axis=0), NORMAL.std(axis=0, ddof=1)
    _, _, axes = np.linalg.svd((NORMAL - centre) / spread, full_matrices=False)
    plane, compared = axes[:2].T, 0
    low, high = NORMAL.min(axis=0), NORMAL.max(axis=0)
    slack = 0.25 * np.median(fk.kpca_spe(model, NEW))  # one value after the other: some sweeps end a little above
    for row, gap, found in zip(holed, gaps, filled):
        z = (row - centre) / spread
        t = np.linalg.lstsq(plane[~gap], z[~gap], rcond=None)[0]
        expected = centre + spread * (plane @ t)
        inside = (expected[gap] > low[gap]) & (expected[gap] < high[gap])
        if inside.all() and gap.sum() == 1:
            np.testing.assert_allclose(found[gap] / spread[gap], expected[gap] / spread[gap], atol=2e-4)
            compared += 1
        best = fk.kpca_spe(model, [np.where(gap, np.clip(expected, low, high), row)])[0]
        assert fk.kpca_spe(model, [found])[0] <= 1.05 * best + slack * (1.0 if gap.sum() > 1 else 1e-3)
    assert compared > 15


@pytest.mark.parametrize(("name", "options"), KERNELS)
def test_one_missing_value_is_that_of_a_dense_search(name, options):
    model = fk.kpca(NORMAL, name, 4, standardize=True, **options)
    for column in range(5):
        holed = NEW[:10].copy()
        holed[:, column] = np.nan
        filled = fk.kpca_fill(model, holed, train=NORMAL)
        spe = fk.kpca_spe(model, filled)
        known = np.delete(np.arange(5), column)
        np.testing.assert_array_equal(filled[:, known], NEW[:10, known])
        tried = np.linspace(NORMAL[:, column].min(), NORMAL[:, column].max(), 400)
        for i in range(10):
            dense = np.repeat(NEW[i : i + 1], 400, axis=0)
            dense[:, column] = tried
            of_dense = fk.kpca_spe(model, dense)
            assert spe[i] <= of_dense.min() + 0.02 * np.ptp(of_dense)


@pytest.mark.parametrize(("name", "options"), KERNELS)
def test_rows_with_gaps_raise_no_more_alarms_by_spe(name, options):
    model = fk.kpca(NORMAL, name, 4, standardize=True, **options)
    model = model.with_limits(fk.kpca_limits(model, rows(400, 3), confidence=0.9))
    new = rows(400, 4)
    holed, gaps = with_gaps(new, 0.3)
    filled = fk.kpca_fill(model, holed, n_threads=2)
    np.testing.assert_array_equal(filled[~gaps], new[~gaps])
    assert np.isfinite(filled).all()
    complete, of_filled = fk.kpca_spe(model, new), fk.kpca_spe(model, filled)
    # the true values are among those searched, but where several are missing the search may end elsewhere
    single = gaps.sum(axis=1) == 1
    assert (of_filled[single] <= complete[single] + 0.02 * model.limits.spe).all()
    assert (of_filled <= complete + 0.02 * model.limits.spe).mean() > 0.97
    limit = model.limits.spe
    assert (of_filled > limit).mean() <= (complete > limit).mean()
    medians = np.where(gaps, np.median(NORMAL, axis=0), new)
    assert (fk.kpca_spe(model, medians) > limit).mean() > 2 * (of_filled > limit).mean()
    # what is broken among the values that are known stays broken
    holed[:, 0] += 5.0
    broken = ~np.isnan(holed[:, [0, 2]]).any(axis=1)
    assert (fk.kpca_spe(model, fk.kpca_fill(model, holed))[broken] > limit).mean() > 0.9
    np.testing.assert_array_equal(filled, fk.kpca_fill(model, with_gaps(new, 0.3)[0], n_threads=1))


def test_frames_types_and_rows_without_gaps():
    pandas = pytest.importorskip("pandas")
    holed = with_gaps(NEW, 0.2)[0]
    names = list("abcde")
    model = fk.kpca(pandas.DataFrame(NORMAL, columns=names), "gaussian", 4, standardize=True)
    filled = fk.kpca_fill(model, holed)
    frame = pandas.DataFrame(holed, columns=names)
    np.testing.assert_array_equal(fk.kpca_fill(model, frame), filled)
    nullable = frame.convert_dtypes()
    nullable.loc[nullable["a"].isna(), "a"] = pandas.NA
    np.testing.assert_array_equal(fk.kpca_fill(model, nullable), filled)
    with pytest.raises(ValueError, match="a"):
        fk.kpca_fill(model, frame.rename(columns={"a": "other"}))
    with pytest.raises(ValueError, match=r"contains NaN .*missing by column"):  # elsewhere NaN is refused as before
        fk.kpca_project(model, frame)
    np.testing.assert_array_equal(fk.kpca_fill(model, NEW), NEW)
    np.testing.assert_array_equal(fk.kpca_fill(model, np.zeros((3, 5), dtype=int)), np.zeros((3, 5)))
    small = fk.kpca(NORMAL.astype(np.float32), "gaussian", 4, standardize=True)
    assert fk.kpca_fill(small, holed.astype(np.float32)).dtype == np.float32


def test_limits_hold_the_ranges_that_filling_needs():
    mapped = fk.kpca(NORMAL, "polynomial", 3, degree=2, features="monomial", standardize=True)
    limited = mapped.with_limits(fk.kpca_limits(mapped, rows(200, 5), confidence=0.9))
    assert np.isfinite(fk.kpca_fill(limited, with_gaps(NEW, 0.1)[0])).all()
