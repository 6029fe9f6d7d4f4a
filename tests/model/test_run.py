"""The alarm of a whole run: p-values by brute force, uniform and independent; a martingale; how often and how soon."""

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.model.monitoring.run import BET_EXPONENTS, BLOCK_ROWS, RUN_RATE, p_values, run_evidence


@pytest.mark.parametrize("m", [0, 1, 7, BLOCK_ROWS, BLOCK_ROWS + 3])
def test_p_values_are_ranks_among_normal_and_earlier_rows(m):
    rng = np.random.default_rng(m)
    normal, new = rng.integers(0, 40, 60).astype(float), rng.integers(0, 40, m).astype(float)  # many are equal
    theta = np.random.default_rng(0).random(m)
    found = p_values(normal, new)
    for i in range(0, m, 1 if m < 20 else 37):
        every = np.concatenate([normal, new[: i + 1]])
        assert found[i] == pytest.approx(((every > new[i]).sum() + theta[i] * (every == new[i]).sum()) / len(every))
    assert found.shape == (m,)


def test_p_values_are_uniform_and_independent_though_the_normal_rows_are_few():
    draws = np.random.default_rng(0).standard_normal((4000, 32))
    p = np.array([p_values(x[:2], x[2:], seed=i) for i, x in enumerate(draws)])
    assert abs(p.mean() - 0.5) < 0.005 and abs(p.var() - 1 / 12) < 0.002
    together = np.corrcoef(p.T) - np.eye(30)
    assert np.abs(together).max() < 5 / np.sqrt(4000)
    # by the two fixed rows alone all rows of a run are far, or none: correlated by a third
    fixed = np.array([[(x[:2] > y).mean() for y in x[2:]] for x in draws[:500]])
    assert np.corrcoef(fixed.T)[0, 1:].mean() > 0.2


def test_the_evidence_is_that_of_bets_from_every_row_on():
    rng = np.random.default_rng(1)
    normal, new = rng.standard_normal((50, 1)), rng.standard_normal((30, 1)) + 0.5
    p = p_values(normal[:, 0], new[:, 0])
    left = 1.0 / (1.0 + np.log1p(np.arange(31.0)))
    for n in (1, 2, 17, 30):
        placed = sum(
            (left[k] - left[k + 1]) * np.mean([np.prod(e * p[k:n] ** (e - 1.0)) for e in BET_EXPONENTS])
            for k in range(n)
        )
        assert run_evidence(normal, new)[n - 1] == pytest.approx(placed + left[n], rel=1e-10)
    # the mean of every bet is 1, and nothing more than 1 is placed
    grid = (np.arange(200_000) + 0.5) / 200_000
    for e in BET_EXPONENTS[1:]:
        assert np.mean(e * grid ** (e - 1.0)) == pytest.approx(1.0, abs=0.03)


def test_runs_of_normal_rows_seldom_raise_it_and_changes_soon_do():
    rng = np.random.default_rng(0)
    raised = 0
    for _ in range(400):
        rows = np.exp(rng.standard_normal((400, 2)) @ [[1.0, 0.5], [0.0, 1.0]])
        raised += run_evidence(rows[:100], rows[100:]).max() >= 1 / RUN_RATE
    assert raised <= 4 + 3 * np.sqrt(4)
    for before in (0, 3000):
        rows = rng.standard_normal((1000 + before + 60, 2))
        rows[1000 + before :, 1] += 3.0
        evidence = run_evidence(rows[:1000], rows[1000:])
        assert (evidence[:before] < 100).all() and np.argmax(evidence >= 100) <= before + 15
    assert np.isfinite(run_evidence(rows[:1000], np.full((3000, 2), 99.0))).all()


def test_a_drift_below_every_limit_is_an_alarm_of_the_run():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 2)) @ rng.standard_normal((2, 6)) + 0.3 * rng.standard_normal((3000, 6))
    model, calm, drifting = fk.kpca_baseline(X[:2000]), X[2000:], X[2000:].copy()
    drifting[300:, 1] += 0.6 * np.linspace(0, 1, 700)
    found = fk.kpca_monitor(model, calm)
    assert found.run_alarm is None and "whole run         no alarm" in found.summary()
    found = fk.kpca_monitor(model, drifting)
    assert 300 < found.run_alarm < 900 and f"alarm at row {found.run_alarm};" in found.summary()
    assert "fewer than 1 % of runs" in found.summary()
    own = model.with_limits(fk.kpca_limits(model, X[:2000], joint=True)) if model.projector.grows_with_n else None
    assert own is None or fk.kpca_monitor(own, calm).run_evidence is None
    plain = fk.kpca(X[:300], "gaussian", 3)
    with pytest.warns(fk.errors.LimitsWarning):
        plain = plain.with_limits(fk.kpca_limits(plain, joint=True))
    assert fk.kpca_monitor(plain, calm).run_evidence is None  # limits of the rows of the fit
