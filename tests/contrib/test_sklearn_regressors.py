"""kernels_contrib.sklearn's estimators of numbers: scikit-learn's checks; the numbers are those of the functions."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from kernels_contrib.cca import kernel_cca
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge
from kernels_contrib.sklearn import KernelCCA, KernelPLSRegression, KernelRidge
from sklearn.cross_decomposition import CCA, PLSRegression
from sklearn.datasets import load_diabetes, load_linnerud
from sklearn.kernel_ridge import KernelRidge as Theirs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

X, Y = load_diabetes(return_X_y=True)
BODY, SPORT = (StandardScaler().fit_transform(part) for part in load_linnerud(return_X_y=True))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning", "ignore::fastkpca.errors.ComponentsWarning")
@parametrize_with_checks(
    [
        KernelRidge(gamma=0.1, tol=1e-12),  # a width that does not depend on how often a row is there
        KernelRidge(kernel="poly", method="gram"),
        KernelPLSRegression(gamma=0.1, tol=1e-12),
        KernelCCA(kernel="linear"),
    ]
)
def test_their_checks_of_estimators(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", ["gram", "features"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_kernel_ridge_is_theirs(kernel, method):
    targets, weights = np.column_stack([Y, Y**2]), np.random.default_rng(0).random(len(Y))
    gamma = None if kernel == "linear" else 3.0
    ours = KernelRidge(0.1, kernel=kernel, gamma=gamma, method=method, tol=1e-10).fit(
        X[:300], targets[:300], weights[:300]
    )
    theirs = Theirs(0.1, kernel=kernel, gamma=gamma).fit(X[:300], targets[:300], weights[:300])
    np.testing.assert_allclose(ours.predict(X[300:]), theirs.predict(X[300:]), rtol=1e-6)
    assert (ours.model_.error(X[300:]) < 1e-2 * abs(targets).max(axis=0)).all()


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


def test_they_are_the_functions():
    ridge = KernelRidge(0.5, gamma=3.0).fit(X, Y)
    np.testing.assert_array_equal(ridge.predict(X), kernel_ridge(X, Y, gamma=3.0, regularization=0.5).predict(X))
    pls = KernelPLSRegression(4).fit(X, Y)
    np.testing.assert_array_equal(pls.transform(X), kernel_pls(X, Y, "gaussian", 4).project(X))
    cca = KernelCCA(2).fit(X, Y)
    np.testing.assert_array_equal(cca.transform(X), kernel_cca(X, Y[:, None], "gaussian", 2).x.project(X))


@pytest.mark.filterwarnings("ignore::fastkpca.errors.ComponentsWarning")
@pytest.mark.parametrize("estimator", [KernelRidge(), KernelPLSRegression(4)], ids=["ridge", "pls"])
def test_searches_pipelines_copies_and_precomputed_matrices(estimator):
    name = type(estimator).__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), estimator), {f"{name}__gamma": [1e-2, 10.0]}, cv=3, error_score="raise"
    ).fit(X, Y)
    assert search.best_params_ == {f"{name}__gamma": 1e-2} and search.best_score_ > 0.4
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    by_rows = type(estimator)(gamma=3.0).fit(X, Y)
    by_matrix = type(estimator)(kernel="precomputed").fit(rbf_kernel(X, gamma=3.0), Y)
    np.testing.assert_allclose(by_matrix.predict(rbf_kernel(X[::7], X, gamma=3.0)), by_rows.predict(X[::7]), rtol=1e-4)


def test_what_is_refused():
    for estimator in (KernelRidge(), KernelPLSRegression(), KernelCCA()):
        with pytest.raises(ValueError, match="y is None"):
            estimator.fit(X, None)
        with pytest.raises(ValueError):
            estimator.fit(X, np.where(Y > 100, "up", "down"))
        with pytest.raises(ValueError, match="anh|igmoid"):
            type(estimator)(kernel="sigmoid").fit(X, Y)
    with pytest.raises(ValueError, match="alpha"):
        KernelRidge(0.0).fit(X, Y)
