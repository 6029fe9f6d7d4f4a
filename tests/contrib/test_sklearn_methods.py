"""kernels_contrib.sklearn: scikit-learn's checks; the numbers are those of the functions, and of others."""

import pickle
from functools import partial
from operator import methodcaller

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import multivariate_normal

pytest.importorskip("sklearn")

from kernels_contrib.cca import kernel_cca
from kernels_contrib.clustering import kernel_kmeans
from kernels_contrib.diffusion import spectral_clustering
from kernels_contrib.klda import klda, klda_probability
from kernels_contrib.logistic import kernel_logistic
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge
from kernels_contrib.sklearn import (
    KLDA,
    KernelCCA,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPLSRegression,
    KernelRidge,
    SpectralClustering,
)
from sklearn import config_context
from sklearn.base import clone
from sklearn.cross_decomposition import CCA, PLSRegression
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_linnerud, load_wine
from sklearn.kernel_ridge import KernelRidge as Theirs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

X, Y = load_iris(return_X_y=True)
NAMES = load_iris().target_names[Y]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning", "ignore::fastkpca.errors.ComponentsWarning")
@parametrize_with_checks(
    [
        KLDA(),
        KLDA(1, kernel="gaussian", penalty="norm"),
        KernelLogisticRegression(gamma=0.1, tol=1e-10),  # a width that does not depend on how often a row is there
        KernelLogisticRegression(C=10.0, kernel="poly", method="gram"),
        KernelRidge(gamma=0.1, tol=1e-12),
        KernelPLSRegression(gamma=0.1, tol=1e-12),
        KernelCCA(kernel="linear"),
    ]
)
def test_their_checks_of_estimators(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([KernelKMeans(3), KernelKMeans(2, kernel="poly", max_features=5), SpectralClustering(3)])
def test_their_checks_of_clusterers(estimator, check):
    if "sample_weight_equivalence" in check.func.__name__ or "weights_invariance" in check.func.__name__:
        pytest.skip("starts are drawn from other rows, as with scikit-learn's KMeans, which is excused too")
    check(estimator)


@pytest.mark.parametrize("cls", [KLDA, KernelLogisticRegression])
def test_the_default_width_suits_columns_of_any_scale(cls):
    # pixels from 0 to 16: with gamma = 1 / 64 no two rows are alike
    digits = load_digits()
    A, B, a, b = digits.data[:900], digits.data[900:], digits.target[:900], digits.target[900:]
    ours = cls().fit(A, a)
    assert ours.score(B, b) > 0.93
    assert ours.model_.kernel.sigma == klda(A, a, "gaussian").kernel.sigma
    A, a = A[:300], a[:300]
    scaled = cls(gamma="scale").fit(A, a)
    np.testing.assert_allclose(scaled.model_.kernel.sigma, np.sqrt(64 * A.var() / 2))
    sparse = cls(gamma="scale").fit(csr_matrix(A), a)
    np.testing.assert_allclose(sparse.model_.kernel.sigma, scaled.model_.kernel.sigma, rtol=1e-12)
    small = cls(gamma="scale").fit(csr_matrix(A.astype(np.int8)), a)  # 16 * 16 is no number of eight bits
    np.testing.assert_allclose(small.model_.kernel.sigma, scaled.model_.kernel.sigma, rtol=1e-12)
    assert cls(kernel="poly", degree=2).fit(A, a).model_.kernel.scale == 1 / 64
    with pytest.raises(ValueError, match="gamma"):
        cls(gamma="auto").fit(A, a)


def test_probabilities_are_those_of_normal_classes_with_their_pooled_covariance():
    # the linear kernel and next to no penalty: linear discriminant analysis
    ours = KLDA(kernel="linear", regularization=1e-9, penalty="norm").fit(X, Y)
    means = np.array([X[k == Y].mean(axis=0) for k in range(3)])
    centred = X - means[Y]
    normal = [multivariate_normal(mean, centred.T @ centred / (len(X) - 3)).pdf(X) for mean in means]
    np.testing.assert_allclose(ours.predict_proba(X), (normal / np.sum(normal, axis=0)).T, atol=1e-6)
    P = ours.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (ours.classes_[P.argmax(axis=1)] == ours.predict(X)).all()
    model = ours.model_
    flat = model.probability(X, prior=[1, 1, 1])
    np.testing.assert_allclose(flat, model.probability(X))  # the classes have equal numbers of rows
    assert (model.probability(X, prior=[1, 1, 1e6])[:, 2] >= flat[:, 2]).all()
    with pytest.raises(ValueError, match="prior"):
        model.probability(X, prior=[1, 1])
    with pytest.raises(TypeError, match="klda"):
        klda_probability(ours, X)


def test_the_linear_kernel_gives_their_logistic_regression():
    ours = KernelLogisticRegression(C=3.0, kernel="linear", tol=1e-8).fit(X[50:], Y[50:])
    theirs = LogisticRegression(C=3.0, tol=1e-10, max_iter=10_000).fit(X[50:], Y[50:])
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("estimator", [KLDA, KernelLogisticRegression])
def test_what_would_be_ignored_is_an_error(estimator):
    for parameters in (
        {"kernel": "rbf", "kernel_params": {"sigma": 1.0}},
        {"kernel": "rbf", "degree": 4},
        {"kernel": "matern", "kernel_params": {"sigma": 1.0}},
        {"kernel": "rational_quadratic", "gamma": 2.0},
    ):
        with pytest.raises((ValueError, TypeError), match="ignored|no parameter"):
            estimator(**parameters).fit(X, Y)
    with pytest.raises(ValueError, match="one class only"):
        estimator().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="y is None"):
        estimator().fit(X, None)


@pytest.mark.parametrize(
    "estimator",
    [
        KernelLogisticRegression(gamma=0.5),
        KernelRidge(0.1, gamma=0.5),
        KernelPLSRegression(2, gamma=0.5),
        KernelCCA(gamma=0.5),
        KernelKMeans(3, gamma=0.5, random_state=0),
        SpectralClustering(3, gamma=0.5),
    ],
    ids=lambda x: type(x).__name__,
)
def test_routing_hands_weights_to_every_step_that_takes_them(estimator):
    weights = np.random.default_rng(1).integers(1, 5, len(X)).astype(float)
    method = {KernelCCA: "transform", KernelLogisticRegression: "predict_proba"}.get(type(estimator), "predict")
    with config_context(enable_metadata_routing=True):
        of_weights = clone(estimator).set_fit_request(sample_weight=True)
        asking = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), of_weights)
        routed = clone(asking).fit(X, Y, sample_weight=weights)
        name = type(estimator).__name__.lower()
        search = GridSearchCV(asking, {f"{name}__gamma": [0.1, 0.5]}, cv=2, scoring=lambda *given: given[0][-1].gamma)
        search.fit(X, Y, sample_weight=weights)  # which takes the larger gamma
    Z = StandardScaler().fit_transform(X)
    says, says_of_standardized = methodcaller(method, X), methodcaller(method, Z)
    direct = says_of_standardized(clone(estimator).fit(Z, Y, sample_weight=weights))
    np.testing.assert_array_equal(says(routed), direct)
    np.testing.assert_array_equal(says(search.best_estimator_), direct)
    if not isinstance(estimator, KernelKMeans | SpectralClustering):  # whose groups may be the same
        assert not np.array_equal(says_of_standardized(clone(estimator).fit(Z, Y)), direct)


@pytest.mark.parametrize("cls", [KernelKMeans, SpectralClustering])
def test_groups_of_a_matrix_of_similarities(cls):
    K = rbf_kernel(X, gamma=0.5)
    by_rows, by_matrix = cls(2, gamma=0.5).fit(X), cls(2, kernel="precomputed").fit(K)
    np.testing.assert_array_equal(by_rows.labels_, by_matrix.labels_)
    np.testing.assert_array_equal(by_matrix.predict(K[:7]), by_rows.predict(X[:7]))
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = cls(2, gamma=0.5).fit(X, sample_weight=weights).model_
    repeated = cls(2, gamma=0.5).fit(np.repeat(X, weights, axis=0)).model_
    np.testing.assert_allclose(np.sort(weighted.sizes), np.sort(repeated.sizes), rtol=1e-6)


@pytest.mark.parametrize("estimator", [KernelLogisticRegression(C=10**400), KLDA(regularization=10**400)])
def test_numbers_beyond_float64_are_refused_in_words(estimator):
    with pytest.raises(ValueError, match="The '(C|regularization)' parameter of .* is a number beyond float64's"):
        estimator.fit(X, Y)


# Estimators of numbers ---------------------------------------------------------------------------------------------

ROWS, NUMBERS = load_diabetes(return_X_y=True)
BODY, SPORT = (StandardScaler().fit_transform(part) for part in load_linnerud(return_X_y=True))


@pytest.mark.parametrize("method", ["gram", "features"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_kernel_ridge_is_theirs(kernel, method):
    targets, weights = np.column_stack([NUMBERS, NUMBERS**2]), np.random.default_rng(0).random(len(NUMBERS))
    gamma = None if kernel == "linear" else 3.0
    ours = KernelRidge(0.1, kernel=kernel, gamma=gamma, method=method, tol=1e-10).fit(
        ROWS[:300], targets[:300], weights[:300]
    )
    theirs = Theirs(0.1, kernel=kernel, gamma=gamma).fit(ROWS[:300], targets[:300], weights[:300])
    np.testing.assert_allclose(ours.predict(ROWS[300:]), theirs.predict(ROWS[300:]), rtol=1e-6)
    assert (ours.model_.error(ROWS[300:]) < 1e-2 * abs(targets).max(axis=0)).all()


def test_the_linear_kernel_gives_their_partial_least_squares():
    ours = KernelPLSRegression(3, kernel="linear").fit(BODY, SPORT)
    theirs = PLSRegression(3, scale=False, tol=1e-12).fit(BODY, SPORT)
    np.testing.assert_allclose(ours.predict(BODY), theirs.predict(BODY), atol=1e-6)
    scores = theirs.transform(BODY)
    overlap = abs(np.sum(ours.transform(BODY) * scores, axis=0)) / np.linalg.norm(scores, axis=0) / np.sqrt(len(BODY))
    np.testing.assert_allclose(overlap, 1.0, atol=1e-6)
    assert ours.get_feature_names_out().tolist() == [f"kernelplsregression{k}" for k in range(3)]


def test_the_linear_kernels_give_their_canonical_correlations():
    ours = KernelCCA(2, kernel="linear", kernel_y="linear", regularization=1e-9).fit(BODY, SPORT)
    a, b = CCA(2, tol=1e-12, max_iter=10000).fit(BODY, SPORT).transform(BODY, SPORT)
    np.testing.assert_allclose(
        ours.model_.correlations, [np.corrcoef(a[:, k], b[:, k])[0, 1] for k in (0, 1)], atol=1e-6
    )
    np.testing.assert_allclose(abs(np.corrcoef(ours.transform(BODY)[:, 0], a[:, 0])[0, 1]), 1.0, atol=1e-6)


WINE = load_wine(return_X_y=True)


@pytest.mark.filterwarnings("ignore::fastkpca.errors.ComponentsWarning")
@pytest.mark.parametrize(
    ("estimator", "data", "best", "least", "by_matrix", "call"),
    [
        *((e, WINE, 0.05, 0.95, (X, Y, 0.05), "predict_proba") for e in (KLDA(), KernelLogisticRegression())),
        *(
            (e, (ROWS, NUMBERS), 1e-2, 0.4, (ROWS, NUMBERS, 3.0), "predict")
            for e in (KernelRidge(), KernelPLSRegression(4))
        ),
    ],
    ids=lambda x: type(x).__name__,
)
def test_searches_pipelines_copies_and_precomputed_matrices(estimator, data, best, least, by_matrix, call):
    name, other = f"{type(estimator).__name__.lower()}__gamma", 1e-6 if best == 0.05 else 10.0
    pipeline = make_pipeline(StandardScaler(), estimator)
    search = GridSearchCV(pipeline, {name: [other, best]}, cv=3, error_score="raise").fit(*data)
    assert search.best_params_ == {name: best} and search.best_score_ > least
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(data[0]), search.predict(data[0]))
    A, b, gamma = by_matrix
    rows = getattr(clone(estimator).set_params(gamma=gamma).fit(A, b), call)(A[::7])
    matrix = clone(estimator).set_params(kernel="precomputed").fit(rbf_kernel(A, gamma=gamma), b)
    np.testing.assert_allclose(getattr(matrix, call)(rbf_kernel(A[::7], A, gamma=gamma)), rows, rtol=1e-4, atol=1e-3)


KLDA_LIKE = {"gamma": 0.1, "regularization": 0.5, "penalty": "norm"}
GROUPS = KernelKMeans(3, gamma=0.5, random_state=0)
PREDICT, PROJECT, SURE = ("predict", "predict"), ("transform", "project"), ("predict_proba", "probability")


@pytest.mark.parametrize(
    ("estimator", "function", "rows", "y", "calls"),
    [
        (KLDA(**KLDA_LIKE), partial(klda, kernel="gaussian", **KLDA_LIKE), X, NAMES, (PREDICT, PROJECT, SURE)),
        *(
            (
                KernelLogisticRegression(C=2.0, gamma=0.1),
                partial(kernel_logistic, kernel="gaussian", gamma=0.1, regularization=0.5),
                X[part],
                NAMES[part],
                (PREDICT, SURE),
            )
            for part in (slice(None), slice(50, None))
        ),
        (KernelRidge(0.5, gamma=3.0), partial(kernel_ridge, gamma=3.0, regularization=0.5), ROWS, NUMBERS, [PREDICT]),
        (KernelPLSRegression(4), partial(kernel_pls, kernel="gaussian", c=4), ROWS, NUMBERS, [PREDICT, PROJECT]),
        (KernelCCA(2), lambda A, b: kernel_cca(A, b[:, None], "gaussian", 2).x, ROWS, NUMBERS, [PROJECT]),
        (GROUPS, lambda A, _: kernel_kmeans(A, "gaussian", 3, sigma=1.0, rng=GROUPS._seed()), X, None, [PREDICT]),
        (SpectralClustering(None, gamma=0.5), lambda A, _: spectral_clustering(A, sigma=1.0), X, None, [PREDICT]),
    ],
)
def test_they_are_the_functions(estimator, function, rows, y, calls):
    ours, model = clone(estimator).fit(rows, y), function(rows, y)
    for here, there in calls:
        found, expected = getattr(ours, here)(rows), getattr(model, there)(rows)
        if found.dtype.kind in "iU":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-4 if hasattr(ours, "n_iter_") else 1e-9)
    if hasattr(ours, "labels_"):
        np.testing.assert_array_equal(ours.labels_, model.labels)
        assert ours.model_.verdict == model.verdict
    if hasattr(ours, "classes_"):
        assert ours.classes_.tolist() == sorted(set(y)) and getattr(ours, "n_iter_", 1) >= 1


@pytest.mark.parametrize(
    "cls",
    [KLDA, KernelLogisticRegression, KernelRidge, KernelPLSRegression, KernelCCA, KernelKMeans, SpectralClustering],
)
def test_verbose_prints_lines_of_the_fit(capsys, cls):
    quiet = cls(verbose=0).fit(X, Y)
    assert capsys.readouterr().out == ""
    told = cls(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines and all(line.startswith("[fastkpca] ") for line in lines)
    call = "predict" if hasattr(quiet, "predict") else "transform"
    np.testing.assert_array_equal(getattr(quiet, call)(X), getattr(told, call)(X))
    assert capsys.readouterr().out == ""


def test_what_is_refused():
    for estimator in (KernelRidge(), KernelPLSRegression(), KernelCCA()):
        with pytest.raises(ValueError, match="y is None"):
            estimator.fit(ROWS, None)
        with pytest.raises(ValueError):
            estimator.fit(ROWS, np.where(NUMBERS > 100, "up", "down"))
        with pytest.raises(ValueError, match="anh|igmoid"):
            type(estimator)(kernel="sigmoid").fit(ROWS, NUMBERS)
    with pytest.raises(ValueError, match="alpha"):
        KernelRidge(0.0).fit(ROWS, NUMBERS)
