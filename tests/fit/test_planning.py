"""The planner: spectrum in, choice out; predicted work against counted work; and for each rule a case that needs it."""

from unittest import mock

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.base.protocol import Kernel
from fastkpca.fit import planning, probe


class Inner(Kernel):
    """Scalar products, as a kernel of which nothing more is known: no maps, no compiled tiles."""

    positive_semidefinite = True
    parameters = {}

    def block(self, X, Y):
        return X @ Y.T


def rows_of(spectrum, n, seed=0):
    """(n, d) rows whose centred Gram matrix has exactly these eigenvalues, in units of n."""
    Q = np.random.default_rng(seed).standard_normal((n, len(spectrum)))
    Q = np.linalg.qr(Q - Q.mean(axis=0))[0]
    return Q * np.sqrt(n * np.asarray(spectrum))


GEOMETRIC, ALGEBRAIC = 0.5 ** np.arange(40.0), (1.0 + np.arange(400.0)) ** -1.5
FLAT = 1.0 + 1e-3 * np.arange(400.0)[::-1]
ISOLATED = np.append(np.full(5, 100.0) * 0.8 ** np.arange(5), np.full(395, 1.0))


@pytest.mark.parametrize(
    ("spectrum", "n", "c", "tol", "expected"),
    [
        (GEOMETRIC, 6000, 3, 1e-4, "features"),  # 14 pivots leave less than tol
        (GEOMETRIC, 300, None, 1e-6, "dense"),  # LAPACK on a small matrix takes less than what a probe would save
        (ALGEBRAIC, 6000, 3, 1e-6, "krylov"),  # gaps of the first eigenvalues, and a residual that falls slowly
        (FLAT, 1200, 30, 1e-6, "dense"),  # no gap, no decay
        (ISOLATED, 6000, 5, 1e-6, "krylov"),  # a gap behind the wanted ones
        (ALGEBRAIC, 6000, 3, 3e-1, "features"),  # a loose tolerance takes few pivots
    ],
)
def test_a_spectrum_decides_the_method(spectrum, n, c, tol, expected):
    X = rows_of(spectrum, n)
    chosen = fk.plan(X, Inner(), c, tol=tol, standardize=False).chosen
    assert chosen.method == expected
    model = fk.kpca(X, Inner(), c, tol=tol, standardize=False)
    assert model.plan.chosen.label == chosen.label  # and none is abandoned
    exact = np.sort(spectrum)[::-1][: model.n_components] * n
    slack = 1e-9 * exact[0]  # of the rows' rounding
    assert (model.eigenvalue_bounds[:, 0] - slack <= exact).all()
    assert (exact <= model.eigenvalue_bounds[:, 1] + slack).all()


@pytest.mark.parametrize(("power", "n", "c"), [(1.0, 3000, 5), (1.5, 3000, 20), (2.0, 4000, 10), (3.0, 3000, 5)])
def test_predicted_passes_are_about_those_that_are_counted(power, n, c):
    X = rows_of((1.0 + np.arange(400.0)) ** -power, n)
    search = next(
        x for x in fk.plan(X, Inner(), c, method="krylov", standardize=False).chosen.steps if "search" in x.name
    )
    counted = fk.kpca(X, Inner(), c, method="krylov", standardize=False).info["passes"]
    predicted = int(search.name.split()[0]) + 1
    assert predicted / 2.0 <= counted <= 2.0 * predicted


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("d", "sigma", "tol"), [(2, 1.0, 1e-6), (3, 2.0, 1e-6), (5, 5.0, 1e-5)])
def test_predicted_pivots_are_about_those_that_are_counted(d, sigma, tol, seed):
    X = np.random.default_rng(seed).standard_normal((8000, d))
    asked = {"sigma": sigma, "tol": tol, "features": "pivots"}
    predicted = fk.plan(X, "gaussian", 3, **asked).chosen.n_features
    counted = fk.kpca(X, "gaussian", 3, **asked).info["n_features"]
    assert predicted / 2.0 <= counted <= 2.0 * predicted


def test_steps_add_up_and_what_ran_is_what_was_planned():
    X = np.random.default_rng(0).random((3000, 4))
    for options in ({"method": "dense"}, {"method": "krylov"}, {"features": "pivots"}, {"features": "monomial"}, {}):
        plan = fk.plan(X, "gaussian", 3, sigma=1.0, **options)
        for candidate in plan.candidates:
            if not candidate.obstacle:
                assert sum(x.seconds for x in candidate.steps) == pytest.approx(candidate.seconds, rel=1e-12)
        model = fk.kpca(X, "gaussian", 3, sigma=1.0, **options)
        assert model.plan.ran and all(x.seconds >= 0.0 for x in model.plan.ran)
        assert all(x.name in str(model.plan) for x in model.plan.ran)
        assert "will run: " in str(plan) and "ran: " in str(model.plan).splitlines()[-1]
        assert fk.KPCAModel.from_state(*model.state()).plan == model.plan


def test_costs_that_are_lower_bounds_are_marked():
    X = np.random.default_rng(0).standard_normal((10_000, 8))
    plan = fk.plan(X, "gaussian", 2, sigma=2.0)
    assert not plan.chosen.is_lower_bound and any(x.is_lower_bound for x in plan.candidates)
    for x in plan.candidates:
        line = next(line for line in str(plan).splitlines() if line[2:].startswith(x.label))
        assert (">=" in line) == (x.is_lower_bound and not x.obstacle)


# rules: the choice, and another one without the rule -----------------------------------------------------------------


def wide():
    """Few rows already leave little of the others: the number of pivots needs no further probe."""
    return np.random.default_rng(0).standard_t(3, (10_000, 2)), {"c": 50, "sigma": 5.0, "tol": 1e-2}


def repeated():
    """Rows of which fifty each are the same have few pivots, and a small probe has not met them all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 20))[rng.integers(0, 400, 20_000)]
    return X, {"c": 5, "sigma": 1.0, "tol": 0.03, "guaranteed": True}


def few_columns():
    """The same in eight columns, where products look cheaper until a larger probe has met all rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 8))[rng.integers(0, 400, 20_000)]
    return X, {"c": 5, "sigma": 1.0, "tol": 0.03, "guaranteed": True}


def smooth():
    """Without a probe nothing is known of pivots, and the smallest known map is chosen."""
    return np.random.default_rng(0).random((20_000, 8)), {"c": 5, "sigma": 2.0, "tol": 1e-4}


@pytest.mark.parametrize(
    ("make", "owner", "name", "off"),
    [
        (wide, probe.SpectrumProbe, "residual_of_rows", np.inf),
        (repeated, planning, "DUPLICATES_FRACTION", 0.0),
        (few_columns, planning, "COST_FACTOR", 1.0),
        (smooth, planning, "PROBE_FRACTION", 0.0),
    ],
)
def test_each_rule_decides_a_case(make, owner, name, off):
    X, options = make()
    chosen = fk.plan(X, "gaussian", **options).chosen
    with mock.patch.object(owner, name, off):
        assert fk.plan(X, "gaussian", **options).chosen != chosen
