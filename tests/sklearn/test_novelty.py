"""KernelPCANovelty, and what KernelPCA learns by partial_fit: their limits, their numbers."""

import pickle
import warnings

import numpy as np
import pytest
from intervals import meet

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import fastkpca as fk
from fastkpca.errors import CertificateWarning, ComponentsWarning, DriftWarning, LimitsWarning
from fastkpca.sklearn import KernelPCA, KernelPCANovelty

X = np.random.default_rng(0).standard_normal((90, 4))


def ring(n, seed):
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(t), np.sin(t)]) + 0.05 * rng.standard_normal((n, 2))


@pytest.mark.filterwarnings("ignore:with this kernel the statistic:fastkpca.errors.LimitsWarning")
@pytest.mark.parametrize("statistic", ["spe", "t2", "both"])
@pytest.mark.parametrize("parameters", [{}, {"n_components": 3}, {"kernel": "linear"}], ids=str)
def test_auto_keeps_its_rate_for_heavy_tails(statistic, parameters):
    """Limits of fits to other rows, with other components, were exceeded by 0 to 57 % of new rows."""
    flagged = []
    for seed in range(8):
        X, new = np.exp(np.random.default_rng(seed).standard_normal((2, 1000, 12)))
        novelty = KernelPCANovelty(statistic=statistic, **parameters).fit(X[:200])
        flagged.append(np.mean(novelty.predict(new) == -1))
    assert abs(np.mean(flagged) - 0.05) < 4 * np.std(flagged) / np.sqrt(8)


def test_columns_of_other_sizes_leave_little_to_see():
    """Columns of a thousand times the range of others: far from all rows a Gaussian has one value, and so has SPE."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12)) * np.r_[1e3 * np.ones(6), np.ones(6)]
    with pytest.warns(LimitsWarning, match="below a ceiling, and the limit is [0-9]+% of that.*Scale the columns"):
        blind = KernelPCANovelty(5, kernel="rbf").fit(X)
    assert np.mean(blind.predict(50.0 * X) == -1) < 0.5
    assert np.mean(KernelPCANovelty().fit(X).predict(50.0 * X) == -1) > 0.9  # chosen by simulated faults: linear
    scaled = KernelPCANovelty(5, gamma=0.01).fit(X / X.std(axis=0))  # without a word
    assert np.mean(scaled.predict(50.0 * X / X.std(axis=0)) == -1) == 1.0


def test_auto_says_where_rows_are_too_few():
    X = ring(40, 0)
    assert KernelPCANovelty(2).fit(X[:38]).model_.n_samples == 19
    with pytest.warns(LimitsWarning, match="need at least 19 rows, and there are 15: they prove limits for 93.75 %"):
        novelty = KernelPCANovelty(2).fit(X[:30])
    assert novelty.model_.n_samples == 15


def test_contamination_and_limits_set_the_rate():
    X = ring(500, 0)
    novelty = KernelPCANovelty(15, gamma=2.0).fit(X)
    assert 0.02 < np.mean(novelty.predict(ring(4000, 100)) == -1) < 0.08
    assert novelty.predict([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]]).tolist() == [-1, -1, 1]
    limits = fk.kpca_limits(novelty, ring(400, 1), confidence=0.98, spe="empirical", t2="empirical")
    novelty.offset_ = -limits.spe  # another rate of alarms, by a limit on rows left out
    assert 0.005 < (novelty.predict(ring(4000, 2)) < 0).mean() < 0.04
    novelty = KernelPCANovelty(10, gamma=2.0, contamination=0.1)
    assert np.sum(novelty.fit_predict(X) == -1) == 50
    np.testing.assert_array_equal(novelty.decision_function(X), novelty.score_samples(X) - novelty.offset_)


def test_scores_are_those_of_the_model():
    X, X_new = ring(300, 0), ring(50, 1)
    novelty = KernelPCANovelty(8, gamma=2.0, contamination=0.1).fit(X)
    model = fk.kpca(X, "gaussian", 8, gamma=2.0, method="dense")
    np.testing.assert_allclose(novelty.score_samples(X_new), -fk.kpca_spe(model, X_new), rtol=1e-3)
    both = KernelPCANovelty(8, gamma=2.0, statistic="both", contamination=0.1).fit(X)
    expected = sum(f(model, X_new) / f(model, X).mean() for f in (fk.kpca_t2, fk.kpca_spe))
    np.testing.assert_allclose(both.score_samples(X_new), -expected, rtol=1e-2)
    pca = KernelPCA(8, kernel="rbf", gamma=2.0).fit(X)
    np.testing.assert_allclose(pca.score_samples(X_new), -fk.kpca_spe(model, X_new), rtol=1e-6, atol=1e-12)


def test_it_tells_what_it_cannot_do():
    with pytest.raises(ValueError, match="precomputed matrix does not hold"):
        KernelPCANovelty(kernel="precomputed").fit(np.eye(20))
    with pytest.raises(ValueError, match="no variance"):
        KernelPCANovelty(contamination=0.1).fit(np.ones((30, 2)))
    with pytest.raises(ValueError, match=r"1 sample\(s\) have no variance"):
        KernelPCANovelty().fit(np.eye(2))
    with pytest.raises(ValueError, match="'contamination' parameter"):
        KernelPCANovelty(contamination=0.7).fit(np.eye(20))
    fitted = KernelPCANovelty(3).fit(ring(50, 0))
    again = pickle.loads(pickle.dumps(fitted))
    assert set(again.predict(ring(50, 1))) <= {-1, 1} and again.model_ is again.pca_.model_
    wide = np.random.default_rng(0).standard_normal((100, 400))
    assert len(pickle.dumps(KernelPCANovelty(3).fit(wide))) < 1.3 * wide.nbytes


# partial_fit --------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::fastkpca.errors.DriftWarning")
@pytest.mark.parametrize("options", [{}, {"max_features": 60}, {"tol": 1e-6}])
def test_partial_fit_adds_features_or_says_that_its_map_does_not_span_the_rows(options):
    rng = np.random.default_rng(0)
    first, far = rng.standard_normal((500, 2)), rng.standard_normal((500, 2)) + 6.0
    pca = KernelPCA(3, kernel="rbf", gamma=0.5, **options).partial_fit(first)
    pca.partial_fit(rng.standard_normal((500, 2)) / 2)  # of the same range: no word
    width = np.ptp(pca.eigenvalue_bounds_, axis=1).max() / pca.eigenvalues_[0]
    if "max_features" in options:
        with pytest.warns(CertificateWarning, match="rows that span"):
            pca.partial_fit(far)
        assert np.ptp(pca.eigenvalue_bounds_, axis=1).max() > pca.eigenvalues_[0]
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)
            warnings.simplefilter("ignore", DriftWarning)
            pca.partial_fit(far)
        assert np.ptp(pca.eigenvalue_bounds_, axis=1).max() < max(100 * width, 1e-2) * pca.eigenvalues_[0]


def test_partial_fit_has_as_many_components_as_fit():
    pca = KernelPCA(4).partial_fit(X[:40, :2]).partial_fit(X[40:, :2])
    np.testing.assert_allclose(pca.eigenvalues_, KernelPCA(4).fit(X[:, :2]).eigenvalues_, rtol=1e-10, atol=1e-9)
    assert pca.transform(X[:, :2]).shape == (90, 4)


@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_a_fraction_that_is_not_reached_is_not_silent(fit):
    rows = np.random.default_rng(0).standard_normal((500, 2))
    with pytest.warns(ComponentsWarning, match="less than asked for"):
        pca = getattr(KernelPCA(0.99, kernel="rbf", gamma=5.0, max_features=20), fit)(rows)
    assert pca.explained_variance_ratio_.sum() < 0.9


@pytest.mark.filterwarnings("ignore:the widest interval:fastkpca.errors.CertificateWarning")
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "gaussian"])
def test_parts_give_the_components_of_all_rows(kernel):
    X = load_digits().data / 16.0
    X = X[np.random.default_rng(0).permutation(len(X))[:900], :20]
    gamma = None if kernel in ("linear", "gaussian") else 0.05
    params = {"sigma": 3.0} if kernel == "gaussian" else None
    pca = KernelPCA(4, kernel=kernel, gamma=gamma, kernel_params=params)
    whole = clone(pca).fit(X)
    for part in (X[:500], X[500:501], X[501:]):
        assert pca.partial_fit(part) is pca
    assert pca.n_samples_seen_ == 900 and pca.n_features_in_ == 20
    # the map is that of the first rows: what it leaves out of the others is in the intervals
    rtol = 2e-3 if kernel == "laplacian" else 1e-4
    np.testing.assert_allclose(pca.eigenvalues_, whole.eigenvalues_, rtol=rtol)
    np.testing.assert_allclose(pca.explained_variance_ratio_, whole.explained_variance_ratio_, rtol=rtol)
    meet(pca.model_, whole.model_)
    np.testing.assert_allclose(np.abs(pca.transform(X[:50])), np.abs(whole.transform(X[:50])), atol=5e-3)
    assert pca.get_feature_names_out().tolist() == [f"kernelpca{i}" for i in range(4)]


def test_partial_fit_starts_anew_after_fit_and_keeps_no_rows():
    X = ring(200, 0)
    pca = KernelPCA(3, kernel="rbf", gamma=1.0).fit(X)
    pca.partial_fit(X[:100])
    assert pca.n_samples_seen_ == 100 and not hasattr(pca, "X_fit_")
    with pytest.raises(AttributeError, match="partial_fit keeps none"):
        _ = pca.eigenvectors_
    pca.fit(X)
    assert not hasattr(pca, "n_samples_seen_") and pca.eigenvectors_.shape == (200, 3)


@pytest.mark.parametrize("ignored", [{"method": "dense"}, {"method": "krylov"}, {"eigen_solver": "arpack"}])
def test_partial_fit_refuses_ways_that_make_no_features(ignored):
    name, value = next(iter(ignored.items()))
    with pytest.raises(ValueError, match=f"works on features, and {name} is '{value}'; set {name}='auto', or use fit"):
        KernelPCA(2, **ignored).partial_fit(X)
    assert KernelPCA(2, method="features").partial_fit(X).n_samples_seen_ == 90


def test_partial_fit_takes_every_component_or_a_fraction_of_the_first_rows():
    assert KernelPCA().partial_fit(X[:40]).partial_fit(X[40:]).transform(X).shape == (90, 4)
    few = KernelPCA(0.5).partial_fit(X[:40]).partial_fit(X[40:])
    assert 1 <= len(few.eigenvalues_) < 4
    single = KernelPCA(2).partial_fit(X[:40].astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    again = pickle.loads(pickle.dumps(single)).partial_fit(X[40:])
    assert again.n_samples_seen_ == 90


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
def test_partial_fit_takes_rows_far_outside_those_of_the_first_call(gamma):
    """Fourier features, which a fit in one go takes here, are right in the box of their rows alone."""
    rng = np.random.default_rng(0)
    first, far = rng.uniform(size=(400, 2)), rng.uniform(-3, 8, (100, 2))
    of_fourier = fk.kpca(first, "gaussian", 3, gamma=gamma, features="fourier", keep_moments=True)
    with pytest.raises(ValueError, match="outside the box"):
        fk.kpca_update(of_fourier, far)
    grown = KernelPCA(3, kernel="rbf", gamma=gamma).partial_fit(first)
    with pytest.warns((CertificateWarning, DriftWarning)):
        grown.partial_fit(far)
    exact = KernelPCA(3, kernel="rbf", gamma=gamma, method="dense").fit(np.vstack([first, far])).eigenvalues_
    low, high = grown.model_.eigenvalue_bounds.T
    assert (low <= exact * (1 + 1e-12)).all() and (exact <= high * (1 + 1e-12)).all()


@pytest.mark.filterwarnings("ignore:the widest interval:fastkpca.errors.CertificateWarning")
@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine", "linear"])
def test_the_advice_on_an_inverse_after_partial_fit_works(kernel):
    pca = KernelPCA(2, kernel=kernel).partial_fit(X[:40]).partial_fit(X[40:])
    for changed in (False, True):
        pca.set_params(fit_inverse_transform=changed)
        assert not hasattr(pca, "inverse_transform")
        with pytest.raises(NotFittedError, match=r"kpca_preimage\(estimator, Z, train=rows\).*and call fit"):
            pca.inverse_transform(pca.transform(X))
    Z = pca.transform(X)
    assert fk.kpca_preimage(pca, Z, train=X).shape == X.shape
    fitted = pca.set_params(fit_inverse_transform=True).fit(X)
    assert fitted.inverse_transform(Z).shape == X.shape


def test_an_inverse_is_of_the_last_fit():
    other = 1.0 - X
    pca = KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(X)
    pca.set_params(fit_inverse_transform=False).fit(other).set_params(fit_inverse_transform=True)
    with pytest.raises(NotFittedError, match="set it and fit again"):  # not that of the rows before
        pca.inverse_transform(pca.transform(X))
    assert pca.fit(other).inverse_transform(pca.transform(X)).shape == X.shape
    assert hasattr(KernelPCA(2, fit_inverse_transform=True), "inverse_transform")


def test_partial_fit_refuses_in_words():
    X = ring(20, 0)
    for kernel in ("precomputed", "sigmoid", "tanh"):
        assert not hasattr(KernelPCA(2, kernel=kernel), "partial_fit")
    with pytest.raises(ValueError, match="fit_inverse_transform=False"):
        KernelPCA(2, fit_inverse_transform=True).partial_fit(X)
    with pytest.raises(ValueError, match=r"got 3 sample\(s\) for n_components=5"):
        KernelPCA(5, kernel="rbf").partial_fit(X[:3])
    with pytest.raises(ValueError, match="works on a feature map, and .* is not positive semidefinite, so .*; use fit"):
        KernelPCA(2, kernel=lambda x, y: x @ y).partial_fit(X)
    with pytest.raises(ValueError, match="carries variance"):
        KernelPCA(2).partial_fit(np.ones((20, 3)))
    with pytest.raises(ValueError, match="2 features"):
        KernelPCA(2).partial_fit(X).partial_fit(np.ones((4, 3)))
