"""``sample_weight`` of ``KernelPCA.fit``: whole weights are repeated rows, and scikit-learn's routing hands them on."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.4")

import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import fastkpca as fk
from fastkpca.sklearn import KernelPCA

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 4))
COUNTS = RNG.integers(0, 4, 80)
REPEATED = np.repeat(X, COUNTS, axis=0)
NEW = RNG.standard_normal((7, 4))


@pytest.mark.parametrize(
    "options",
    [{}, {"method": "features"}, {"n_components": None}, {"n_components": 0.8}, {"kernel": "poly"}],
    ids=str,
)
def test_whole_weights_are_repeated_rows(options):
    options = {"n_components": 3, "kernel": "rbf", "gamma": 0.1} | options
    one, other = KernelPCA(**options).fit(X, sample_weight=COUNTS), KernelPCA(**options).fit(REPEATED)
    c = min(len(one.eigenvalues_), len(other.eigenvalues_))  # beside zeros that rounding leaves
    np.testing.assert_allclose(one.eigenvalues_[:c], other.eigenvalues_[:c], atol=1e-8 * other.eigenvalues_[0])
    np.testing.assert_allclose(one.explained_variance_ratio_[:3], other.explained_variance_ratio_[:3], rtol=1e-7)
    a, b = (np.abs(pca.transform(NEW)[:, :3]) for pca in (one, other))
    np.testing.assert_allclose(a, b, atol=1e-6)
    assert one.fit_transform(X, sample_weight=COUNTS).shape[0] == len(X)  # also rows of weight zero have scores
    vectors = one.eigenvectors_[:, :3]
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-7)


def test_of_a_precomputed_matrix_and_of_one_that_is_not_symmetric():
    K = rbf_kernel(X, X, gamma=0.1) + RNG.standard_normal((80, 1))  # offsets of rows, which centring takes away
    one = KernelPCA(2, kernel="precomputed").fit(K, sample_weight=COUNTS)
    which = np.repeat(np.arange(80), COUNTS)
    other = KernelPCA(2, kernel="precomputed").fit(K[which][:, which])
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    new = rbf_kernel(NEW, X, gamma=0.1)
    np.testing.assert_allclose(np.abs(one.transform(new)), np.abs(other.transform(new[:, which])), atol=1e-8)


def test_partial_fit_takes_weights():
    one, other = KernelPCA(2, kernel="poly", degree=2), KernelPCA(2, kernel="poly", degree=2)
    for part in (slice(0, 40), slice(40, 80)):
        one.partial_fit(X[part], sample_weight=COUNTS[part])
        other.partial_fit(np.repeat(X[part], COUNTS[part], axis=0))
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-9)


def test_routing_hands_weights_to_the_step():
    y = X[:, 0] > 0
    with sklearn.config_context(enable_metadata_routing=True):
        pca = KernelPCA(2, kernel="rbf", gamma=0.1).set_fit_request(sample_weight=True)
        learner = LogisticRegression().set_fit_request(sample_weight=False).set_score_request(sample_weight=True)
        pipeline = make_pipeline(pca, learner).fit(X, y, sample_weight=COUNTS)
        direct = KernelPCA(2, kernel="rbf", gamma=0.1).fit(X, sample_weight=COUNTS)
        np.testing.assert_array_equal(pipeline[0].eigenvalues_, direct.eigenvalues_)
        search = GridSearchCV(make_pipeline(pca, learner), {"kernelpca__gamma": [0.05, 0.1]}, cv=2)
        search.fit(X, y, sample_weight=COUNTS)
        assert fk.kpca_t2(search.best_estimator_[0], NEW).shape == (7,)


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        (np.ones(3), "sample_weight"),
        (-np.ones(80), "negative|weight"),
        (np.full(80, np.nan), "NaN"),
        (0 * COUNTS, "weight|sample"),
    ],
)
def test_wrong_weights_are_refused(weights, text):
    with pytest.raises(ValueError, match=text):
        KernelPCA(2).fit(X, sample_weight=weights)
