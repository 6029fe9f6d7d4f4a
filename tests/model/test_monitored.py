"""``kpca_monitor``, against the calls that it puts together."""

from __future__ import annotations

import numpy as np
import pytest

import fastkpca as fk


def rows(n, seed):
    t = np.random.default_rng(seed).uniform(-1, 1, (n, 1))
    return np.hstack([t, t**2, -t]) + 0.05 * np.random.default_rng(seed + 1).standard_normal((n, 3))


NORMAL = rows(600, 0)
NEW = np.vstack([rows(40, 5), [[0.5, 0.25, 0.9], [0.1, 4.0, -0.1], [2.0, 4.0, -2.0]]])


@pytest.fixture(scope="module")
def model():
    fitted = fk.kpca(NORMAL[:400], "linear", 2)
    return fitted.with_limits(fk.kpca_limits(fitted, NORMAL[400:], confidence=0.98, joint=True))


def test_it_is_what_its_parts_are(model):
    found = fk.kpca_monitor(model, NEW)
    t2, spe = fk.kpca_t2(model, NEW), fk.kpca_spe(model, NEW)
    np.testing.assert_allclose(found.t2, t2, rtol=1e-12)
    np.testing.assert_allclose(found.spe, spe, rtol=1e-12)
    np.testing.assert_array_equal(found.beyond, np.column_stack([t2 > model.limits.t2, spe > model.limits.spe]))
    np.testing.assert_array_equal(found.alarms, np.flatnonzero(model.limits.exceeded(t2=t2, spe=spe)))
    assert f"{len(found.alarms)} of 43 rows" in repr(found) and found.labels.tolist() == list(range(43))


def test_contributions_are_to_the_spe_that_is_beyond_and_else_to_t2(model):
    found = fk.kpca_monitor(model, NEW)
    chosen = found.alarms[::-1]
    by_spe = found.beyond[chosen, 1]
    assert by_spe.any() and not by_spe.all()
    which = found.contributions(chosen)
    assert which.statistic == "spe or t2"
    for statistic, some in (("spe", by_spe), ("t2", ~by_spe)):
        alone = fk.kpca_contributions(model, NEW[chosen][some], statistic=statistic)
        np.testing.assert_allclose(which.contributions[some], alone.contributions, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(which.of_rows[some], alone.of_rows, rtol=1e-9)
    np.testing.assert_array_equal(which.given, NEW[chosen])
    assert found.contributions([]).contributions.shape == (0, 3)


def test_frames_limits_and_labels(model):
    pandas = pytest.importorskip("pandas")
    fitted = fk.kpca(pandas.DataFrame(NORMAL[:400], columns=["a", "b", "c"]), "linear", 2).with_limits(model.limits)
    times = pandas.date_range("2026-03-01", periods=len(NEW), freq="h", name="when")
    frame = pandas.DataFrame(NEW, columns=["a", "b", "c"], index=times)
    found = fk.kpca_monitor(fitted, frame, limits=0.9)
    assert found.label_name == "when" and found.labels[3] == np.datetime64("2026-03-01T03")
    assert found.limits == fk.kpca_limits(model, confidence=0.9, joint=True)
    assert "2026-03-02" in found.summary() and " b " in found.summary()
    with pytest.raises(ValueError, match="another order"):
        fk.kpca_monitor(fitted, frame[["b", "a", "c"]])
    with pytest.raises(ValueError, match="one for each of the 43 rows"):
        fk.kpca_monitor(model, NEW, labels=[1, 2])
    with pytest.raises(ValueError, match="keeps no limits"):
        fk.kpca_monitor(model.with_limits(None), NEW)
    with pytest.raises(ValueError, match="keeps nothing to make limits of"):
        fk.kpca_monitor(model.with_limits(None), NEW, limits=0.9)
    with pytest.raises(TypeError, match="what kpca_limits"):
        fk.kpca_monitor(model, NEW, limits="0.9")
    with pytest.raises(ValueError, match="NaN"):
        fk.kpca_monitor(model, np.where(NEW > 1, np.nan, NEW))


def test_filled_rows(model):
    X = NEW.copy()
    X[3, 1] = X[5, 0] = X[5, 1] = np.nan
    found = fk.kpca_monitor(model, X, fill_missing=True)
    assert found.filled[[3, 5]].tolist() == [1, 2] and found.filled.sum() == 3
    np.testing.assert_allclose(found.spe, fk.kpca_spe(model, fk.kpca_fill(model, X)), rtol=1e-9)
