"""``failure_probability``: one number from the call to every bound that rests on random numbers."""

import intervals
import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import CertificateWarning
from fastkpca.fit.target import Target

pytestmark = pytest.mark.filterwarnings("ignore::fastkpca.errors.CertificateWarning")
X = np.random.default_rng(0).standard_normal((1500, 6))
SQUARE = np.random.default_rng(1).random((1500, 2))
CALLS = {
    "samples of rows": (X, {"c": 4, "max_features": 60}),
    "samples of rows, with a tolerance": (X, {"c": 3, "tol": 3e-2, "features": "pivots"}),
    "moments": (SQUARE, {"c": 5, "sigma": 0.03, "features": "fourier"}),
}


def fitted(route, **options):
    rows, given = CALLS[route]
    return fk.kpca(rows, "gaussian", **given, **options, return_scores=False)


@pytest.mark.parametrize("route", CALLS)
def test_every_route_fails_as_rarely_as_it_was_asked_to(route, tmp_path):
    for asked in (0.05, 1e-9):
        model = fitted(route, failure_probability=asked)
        assert model.bound_kind == "probabilistic"
        assert 0.01 * asked < model.failure_probability <= asked == model.info["failure_probability"]
        fk.save(model, tmp_path / "model.kpca", overwrite=True)
        again = fk.load(tmp_path / "model.kpca")
        assert (again.failure_probability, again.info) == (model.failure_probability, model.info)
    model = fitted(route)
    assert 1e-8 < model.failure_probability <= 1e-6 == model.info["failure_probability"]


def test_bounds_that_may_fail_more_often_are_narrower():
    widths = [np.ptp(fitted("samples of rows", failure_probability=p).eigenvalue_bounds[0]) for p in (0.5, 1e-3, 1e-90)]
    assert widths[0] < widths[1] < widths[2]


@pytest.mark.parametrize("wrong", [0, 0.0, -0.1, 0.51, 1, 1e-101, np.nan, np.inf, True, "often", [0.1]])
def test_other_probabilities_are_refused(wrong):
    model = fk.kpca(X, "gaussian", 2, max_features=20, keep_moments=True)
    for call in (
        lambda **given: fk.kpca(X, "gaussian", 2, **given),
        lambda **given: fk.plan(X, "gaussian", 2, **given),
        lambda **given: fk.kpca_merge(model, model, **given),
        lambda **given: fk.kpca_update(model, X[:5], **given),
    ):
        with pytest.raises((TypeError, ValueError), match=r"failure_probability .* 1e-100 to 0\.5"):
            call(failure_probability=wrong)


def test_certain_bounds_and_a_probability_contradict_each_other():
    for call in (fk.kpca, fk.plan):
        with pytest.raises(ValueError, match=r"guaranteed=True .* failure_probability is 0\.01; drop one"):
            call(X, "gaussian", 2, guaranteed=True, failure_probability=0.01)
    assert fk.kpca(X, "gaussian", 2, tol=1e-2, guaranteed=True).info["failure_probability"] == 0.0


def test_models_that_add_up_add_their_probabilities(tmp_path):
    often = {"failure_probability": 0.5}
    first = fitted("samples of rows", keep_moments=True, **often)
    second = fk.kpca(X[:700] + 0.1, like=first, tol=0.1, keep_moments=True, failure_probability=0.1)
    merged = fk.kpca_merge(first, second)
    updated = fk.kpca_update(first, X[:700] + 0.1, failure_probability=0.1)
    many = fk.kpca_merge(merged, merged, merged, merged, merged)
    assert 0.25 <= first.failure_probability <= 0.5  # rows of second order, if there are any, have a share of their own
    assert 0.05 <= second.failure_probability <= 0.1
    assert merged.failure_probability == updated.failure_probability == pytest.approx(0.3)
    assert many.failure_probability == 1.0  # and no more, or the file would be refused
    fk.save(many, tmp_path / "many.kpca")
    assert fk.load(tmp_path / "many.kpca").failure_probability == 1.0


def test_estimators_take_it():
    pytest.importorskip("sklearn")
    from fastkpca.sklearn import KernelPCA, Nystroem

    given = {"kernel": "rbf", "gamma": 0.1, "failure_probability": 0.02}
    found = KernelPCA(2, max_features=30, **given).fit(X)
    assert 0.01 <= found.failure_probability_ <= 0.02 and found.model_.info["failure_probability"] == 0.02
    shards = KernelPCA(2, max_features=30, **given).partial_fit(X[:800]).partial_fit(X[800:])
    assert shards.failure_probability_ == pytest.approx(0.02)
    often, seldom = (Nystroem(gamma=0.1, n_components=30, failure_probability=p).fit(X) for p in (0.02, None))
    assert (often.failure_probability_, seldom.failure_probability_) == (0.02, 1e-6)
    assert often.residual_norm_ < seldom.residual_norm_
    for estimator in (KernelPCA, Nystroem):
        with pytest.raises(ValueError, match="failure_probability"):
            estimator(failure_probability=0.6).fit(X)


def test_certain_bounds_of_a_moment_whose_sums_prove_nothing():
    """9000 features, of which memory allows 200 columns: only random ones could prove what is beyond these."""
    rows, asked = np.random.default_rng(1).random((700, 2)), {"sigma": 0.02, "tol": 1e-3, "guaranteed": True}
    with pytest.warns(CertificateWarning):
        model = fk.kpca(rows, "gaussian", 2, **asked, features="fourier", memory_limit="48MB")
    exact = fk.kpca(rows, "gaussian", 2, sigma=0.02, method="dense").eigenvalues
    intervals.hold(model, exact)
    assert model.bound_kind == "guaranteed"


def test_another_seed_draws_other_random_columns():
    first, again, other = (fitted("moments", rng=seed).eigenvalue_bounds for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_shares_of_the_probability_add_up_to_no_more():
    target = Target(c=1, tol=1e-3, failure_probability=1e-6)
    shares = [target.failure_of("samples"), target.failure_of("rows"), target.failure_of("moments")]
    assert sum(shares) + target.failure_of("products") <= 1e-6 * (1.0 + 1e-12)
