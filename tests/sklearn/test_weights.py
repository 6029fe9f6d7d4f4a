"""``sample_weight`` of ``fit``: whole weights are repeated rows, and scikit-learn's routing hands them on."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")

import sklearn
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from fastkpca.errors import CertificateWarning, LimitsWarning
from fastkpca.sklearn import KernelPCA, KernelPCANovelty, Nystroem

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


def test_partial_fit_takes_weights():
    one, other = KernelPCA(2, kernel="poly", degree=2), KernelPCA(2, kernel="poly", degree=2)
    for part in (slice(0, 40), slice(40, 80)):
        one.partial_fit(X[part], sample_weight=COUNTS[part])
        other.partial_fit(np.repeat(X[part], COUNTS[part], axis=0))
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        (np.ones(3), "sample_weight"),
        (-np.ones(80), "negative|weight"),
        (np.full(80, np.nan), "NaN"),
        (0 * COUNTS, "weight|sample"),
    ],
)
@pytest.mark.parametrize("estimator", [KernelPCA(2), Nystroem(), KernelPCANovelty(2)], ids=lambda x: type(x).__name__)
def test_wrong_weights_are_refused(estimator, weights, text):
    with pytest.raises(ValueError, match=text):
        estimator.fit(X, sample_weight=weights)


# KernelPCANovelty ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contamination", ["auto", 0.03, 0.2])
@pytest.mark.parametrize("statistic", ["spe", "t2", "both"])
def test_novelty_of_whole_weights_is_that_of_repeated_rows(statistic, contamination):
    novelty = KernelPCANovelty(3, gamma=0.1, statistic=statistic, contamination=contamination)
    other = clone(novelty).fit(REPEATED)
    one = novelty.fit(X, sample_weight=COUNTS)
    assert one.offset_ == pytest.approx(other.offset_, rel=1e-5)
    np.testing.assert_allclose(one.decision_function(NEW), other.decision_function(NEW), atol=1e-5)
    np.testing.assert_array_equal(one.fit_predict(X, sample_weight=COUNTS), one.predict(X))


def test_novelty_of_counts_keeps_its_rate():
    """Rows are values on a grid, and how often each was seen: 5 % of new ones are flagged at most, as was promised."""
    flagged = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows, new = (np.round(rng.standard_normal((n, 2)) * 1.5) for n in (400, 4000))
        values, counts = np.unique(rows, axis=0, return_counts=True)
        assert len(values) < 100
        novelty = KernelPCANovelty(5, gamma=0.2).fit(values, sample_weight=counts)
        flagged.append(np.mean(novelty.predict(new) == -1))
    assert np.mean(flagged) < 0.05 + 3 * np.std(flagged) / np.sqrt(12)
    assert np.mean(flagged) > 0.005


def test_novelty_of_huge_and_of_small_weights():
    huge = KernelPCANovelty(3, gamma=0.1).fit(X, sample_weight=1e9 * np.maximum(COUNTS, 1))
    assert huge.offset_ == pytest.approx(
        KernelPCANovelty(3, gamma=0.1).fit(X, sample_weight=1e4 * np.maximum(COUNTS, 1)).offset_, rel=0.1
    )
    with pytest.warns(LimitsWarning, match="need at least 19 rows, and there are 8"):
        KernelPCANovelty(3, gamma=0.1).fit(X, sample_weight=np.full(80, 0.2))


# Nystroem -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("landmarks", [[2, 5, 9, 30], NEW])
def test_features_of_given_landmarks_and_their_bounds(landmarks):
    rows = np.asarray(landmarks) if np.ndim(landmarks) == 2 else X[landmarks]
    one = Nystroem(gamma=0.1, landmarks=landmarks).fit(X, sample_weight=COUNTS)
    other = Nystroem(gamma=0.1, landmarks=rows).fit(REPEATED)
    np.testing.assert_allclose(one.transform(NEW), other.transform(NEW), atol=1e-9)
    assert one.residual_trace_ == pytest.approx(other.residual_trace_, rel=1e-9)
    Z = other.transform(REPEATED)
    largest = np.linalg.eigvalsh(rbf_kernel(REPEATED, gamma=0.1) - Z @ Z.T)[-1]
    assert largest <= one.residual_norm_ <= one.residual_trace_
    np.testing.assert_allclose(one.fit_transform(X, sample_weight=COUNTS), one.transform(X), atol=1e-12)
    with pytest.warns(CertificateWarning):  # so few landmarks: a pass, and no less
        a, b = one.kpca(X, 3, sample_weight=COUNTS, tol=1e-3), other.kpca(REPEATED, 3, tol=1e-3)
    np.testing.assert_allclose(a.eigenvalues, b.eigenvalues, rtol=1e-6)


@pytest.mark.parametrize("selection", ["uniform", "random_pivoting"])
def test_landmarks_are_drawn_as_among_repeated_rows(selection):
    """How often each row is the first landmark, or any of three; and rows of weight zero never are."""
    rows, counts = X[:6], np.array([1, 4, 0, 2, 1, 8])
    repeated = np.repeat(np.arange(6), counts)
    options = {"gamma": 0.1, "n_components": 3, "selection": selection}
    first, any_of = np.zeros((2, 6)), np.zeros((2, 6))
    for seed in range(250):
        nystroem = Nystroem(random_state=seed, **options)
        weighted = nystroem.fit(rows, sample_weight=counts).component_indices_
        other = repeated[nystroem.fit(rows[repeated]).component_indices_]
        for i, found in enumerate((weighted, other)):
            first[i, found[0]] += 1
            any_of[i, found] += 1
    assert first[0, 2] == any_of[0, 2] == 0
    deviation = np.sqrt(first.sum(axis=0) + 1)
    assert (np.abs(first[0] - first[1]) < 5 * deviation).all()
    if selection == "random_pivoting":  # a row that is a landmark leaves nothing of its copies
        assert (np.abs(any_of[0] - any_of[1]) < 5 * np.sqrt(any_of.sum(axis=0) + 1)).all()


def test_more_components_than_rows_that_count():
    with pytest.warns(UserWarning, match="n_components=100 > n_samples="):
        nystroem = Nystroem(gamma=0.1).fit(X, sample_weight=COUNTS)
    assert set(nystroem.component_indices_) == set(np.flatnonzero(COUNTS))


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        (KernelPCA(2, kernel="rbf", gamma=0.1), "eigenvalues_"),
        (Nystroem(gamma=0.1, n_components=9), "component_indices_"),
        (KernelPCANovelty(3, gamma=0.1), "offset_"),
    ],
)
def test_routing_hands_weights_to_the_step(step, answer):
    with sklearn.config_context(enable_metadata_routing=True):
        step = clone(step).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(), step).fit(X, sample_weight=COUNTS)
    direct = clone(step).fit(X, sample_weight=COUNTS)
    np.testing.assert_array_equal(getattr(pipeline[-1], answer), getattr(direct, answer))
