"""A run whose cost was guessed ends when it has cost as much as what would follow, and another takes its place."""

import logging
import re
import warnings

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import CertificateWarning
from fastkpca.fit import planning
from fastkpca.products.truncated import truncation_radius
from fastkpca.solve.costs import BudgetExceededError, Expenses
from fastkpca.solve.moments import leading_pairs
from fastkpca.solve.operators import MomentOperator
from fastkpca.solve.task import SolverBudget, SolverTarget


def passes_before_stop(forecasts, budget=100.0, each=5.0):
    """Passes of ``each`` seconds, after which the given seconds are expected; None where the run is never abandoned."""
    expenses = Expenses(SolverBudget(passes=100, pass_seconds=each, seconds=budget), None)
    for later in forecasts:
        expenses.count_pass(search=False)
        try:
            expenses.check_forecast(later)
        except BudgetExceededError as error:
            assert (error.passes, error.seconds) == (expenses.passes, expenses.seconds)
            return error.passes
    return None


@pytest.mark.parametrize(
    ("forecasts", "passes"),
    [
        ([60, 55, 50, 45, 40, 35, 30, 25, 20], None),  # as expected
        ([40, 38, 36, 33, 30, 27, 24, 21], None),  # half as fast as expected
        ([20] * 20, 6),  # always a few passes more: a quarter of the budget
        ([10, 20, 30, 40, 50, 60], 6),
        ([90, 96], 2),  # more than the budget at once
        ([20, 20, 20, 20, 10, 20, 20], 6),
    ],
)
def test_a_forecast_that_does_not_fall_ends_a_run(forecasts, passes):
    assert passes_before_stop(forecasts) == passes


def test_nothing_is_abandoned_without_another_method():
    assert passes_before_stop([20] * 50, budget=np.inf) is None


def test_eigenpairs_of_an_operator_end_at_their_budget():
    values = np.linspace(1.0, 0.9, 3000)
    norm = 1.001 * float(np.linalg.norm(values))
    operator = MomentOperator(lambda U: values[:, None] * U, 3000, float(values.sum()), norm, 1e-13)
    with pytest.raises(BudgetExceededError) as caught:
        leading_pairs(operator, SolverTarget(5, 1e-6, failure=1e-6), seconds=1.0, product_seconds=0.1)
    assert caught.value.seconds <= 1.0 and caught.value.passes <= 1


@pytest.mark.parametrize("d", [2, 3, 8])
def test_what_a_truncated_kernel_leaves_out_is_a_part_of_a_loose_tolerance(d):
    """The share of a row's sum beyond the reach, by integration of the chi distribution's density."""
    reaches = [truncation_radius(1.0, d, tol) for tol in (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-6)]
    r = np.linspace(0.0, 40.0, 400_001)
    density = r ** (d - 1) * np.exp(-0.5 * r * r)
    for reach, tol in zip(reaches, (0.3, 0.1, 0.03, 0.01)):
        beyond = density[r > reach].sum() / density.sum()
        assert beyond <= max(0.25 * tol, 0.0033)
    assert (np.diff(reaches) >= 0.0).all()


@pytest.mark.parametrize("seed", [10, 11])
def test_a_loose_tolerance_takes_no_more_passes_of_a_narrow_kernel(seed):
    X = np.random.default_rng(seed).random((2500, 3))
    infos = [fk.kpca(X, "gaussian", 4, sigma=0.06, tol=tol).info for tol in (1e-1, 1e-2, 1e-3)]
    assert all(x["method"] == "krylov" and x["passes"] <= 3 for x in infos)


def test_a_fraction_that_the_memory_cannot_hold_ends_when_the_space_is_full():
    X = np.random.default_rng(0).standard_normal((800, 6))
    options = {"kernel": "gaussian", "c": 0.99, "sigma": 1.0, "method": "krylov", "memory_limit": "25MB"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fk.kpca(X, **options)
    assert model.info["passes"] <= 8 and model.n_components < 600
    assert any(x.category is CertificateWarning and "memory_limit=" in str(x.message) for x in caught)


def test_rows_of_which_many_are_the_same_have_as_many_pivots():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 8))[rng.integers(0, 400, 20_000)]
    model = fk.kpca(X, "gaussian", 5, sigma=1.0, tol=0.03, guaranteed=True)
    assert model.plan.name == "pivots" and model.info["n_features"] <= 400


def test_long_work_is_told_what_a_given_number_of_features_takes(monkeypatch):
    """The advice is followed literally: the seconds are that plan's, the width is about what the text says."""
    X = np.random.default_rng(1).random((6000, 10))
    options = {"c": 5, "tol": 1e-6}
    monkeypatch.setattr(planning, "SLOW_SECONDS", 1e-3)
    monkeypatch.setattr(planning, "EASIER_FRACTION", 1.0)
    said = re.search(
        r"about ([0-9.]+) s with max_features=300, where the widest interval is expected to be about (\S+) times",
        fk.plan(X, "gaussian", **options).advice,
    )
    seconds, width = (float(x) for x in said.groups())
    followed = fk.kpca(X, "gaussian", 5, max_features=300)
    assert followed.plan.chosen.seconds == pytest.approx(seconds, rel=0.1)
    found = float(np.ptp(followed.eigenvalue_bounds, axis=1).max() / followed.eigenvalues[0])
    assert 0.2 * width <= found * 2.0 and found <= 2.0 * width


def test_each_route_has_a_line_of_the_log(caplog):
    X = np.random.default_rng(0).standard_normal((2100, 8))
    with caplog.at_level(logging.INFO, "fastkpca"):
        model = fk.kpca(X, "gaussian", 5, sigma=0.0635)
    assert model.plan.method == "dense" and "krylov_tried" in model.info
    lines = [record.getMessage() for record in caplog.records]
    routes = [x for x in lines if not x.startswith(" ")]
    assert [x.split()[0] for x in routes] == ["krylov", "krylov", "dense"] and "abandoned" in routes[1]
    steps = [x for x in lines if x.startswith("  ") and not x.startswith("    ")]  # those of the solver are below
    assert [x.strip() for x in steps] == list(map(str, model.plan.ran))  # a line for each step
    assert "ran: kernel matrix" in str(model.plan) and "will run: " in str(fk.plan(X, "gaussian", 5, sigma=0.0635))


@pytest.mark.parametrize(("d", "sigma", "tol"), [(8, 1.9, 1e-9), (8, 1.9, 1e-4), (31, 3.0, 1e-4)])
def test_a_run_whose_vectors_have_converged_is_not_abandoned(d, sigma, tol):
    """Only the bound on the complement is missing, a pass away at each check: that is no flat spectrum."""
    X = np.random.default_rng(0).standard_normal((1000, d))
    model = fk.kpca(X, "gaussian", 10, sigma=sigma, tol=tol)
    assert model.info["method"] == "krylov" and "krylov_tried" not in model.info
    assert np.ptp(model.eigenvalue_bounds, axis=1).max() <= tol * model.eigenvalues[0]
