"""KLDA, Fisherfaces and KBDA of kernels_contrib against dense textbook solutions and scikit-learn."""

from functools import partial

import numpy as np
import pytest
import scipy.linalg
from kernels_contrib.errors import AccuracyWarning
from kernels_contrib.kbda import kbda, kbda_project
from kernels_contrib.klda import kernel_fisherfaces, klda, klda_predict, klda_project
from peak import traced
from reference import gram
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import fastkpca as fk

RNG = np.random.default_rng


def sample(n=90, d=4, classes=3, seed=0, offset=0.0):
    rng = RNG(seed)
    codes = np.arange(n) % classes
    centres = 1.2 * rng.standard_normal((classes, d))
    return centres[codes] + rng.standard_normal((n, d)) + offset, codes


def dense_klda(K, codes, mu, penalty):
    """(coefficients, quotients): M a = q (N + mu R) a, Mueller et al. 2001, equations 26 to 29, for many classes."""
    n, classes = len(K), int(codes.max()) + 1
    N, M = np.zeros((n, n)), np.zeros((n, n))
    for k in range(classes):
        block = K[:, codes == k]
        size = block.shape[1]
        N += block @ (np.eye(size) - np.full((size, size), 1 / size)) @ block.T
        step = block.mean(axis=1) - K.mean(axis=1)
        M += size * np.outer(step, step)
    return best(M, N, K, mu, penalty, classes - 1)


def best(M, N, K, mu, penalty, c):
    """The c best a with unit a'(N + mu R)a; on the range of K where R = K, of which only that counts."""
    if penalty == "norm":
        values, basis = np.linalg.eigh(K)
        basis = basis[:, values > 1e-13 * values[-1]] / np.sqrt(values[values > 1e-13 * values[-1]])
        values, vectors = scipy.linalg.eigh(basis.T @ M @ basis, basis.T @ N @ basis + mu * np.eye(basis.shape[1]))
        vectors = basis @ vectors
    else:
        values, vectors = scipy.linalg.eigh(M, N + mu * np.eye(len(K)))
    return vectors[:, ::-1][:, :c], values[::-1][:c]


def same_up_to_sign(A, B, tol):
    scale = np.abs(B).max(axis=0)
    flipped = np.minimum(np.abs(A - B).max(axis=0), np.abs(A + B).max(axis=0))
    assert (flipped <= tol * scale).all(), flipped / scale


def unit(A):
    """Columns of zero mean and unit spread: scikit-learn's solvers differ in both."""
    return (A - A.mean(axis=0)) / A.std(axis=0)


KERNELS = {"gaussian": {"sigma": 1.5}, "polynomial": {"degree": 2}}
"""And their parameters."""


@pytest.mark.parametrize("method", ["features", "gram"])
@pytest.mark.parametrize("penalty", ["coefficients", "norm"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("mu", [1e-3, 1.0])
def test_klda_is_the_dense_solution(method, penalty, kernel, classes, mu):
    X, codes = sample(classes=classes)
    new, k = sample(40, classes=classes, seed=1)[0], partial(gram, kernel, **KERNELS[kernel])
    alpha, quotients = dense_klda(k(X, X), codes, mu, penalty)
    model = klda(
        X, codes, kernel, regularization=mu, penalty=penalty, method=method,
        tol=1e-10 if kernel == "gaussian" else 1e-7,
        **KERNELS[kernel],
    )  # fmt: skip
    assert model.info["method"] == method
    np.testing.assert_allclose(model.quotients, quotients, rtol=1e-5)
    reference = (k(new, X) - k(X, X).mean(axis=0)) @ alpha * np.sqrt(len(X) - classes)
    same_up_to_sign(klda_project(model, new), reference, 1e-4)


def test_linear_kernel_is_fishers_discriminant():
    iris = load_iris()
    reference = LinearDiscriminantAnalysis(solver="eigen").fit(iris.data, iris.target)
    model = klda(iris.data, iris.target_names[iris.target], "linear", penalty="norm", regularization=1e-9)
    expected = reference.transform(iris.data)[:, :2]
    same_up_to_sign(unit(model.project(iris.data)), unit(expected), 1e-5)
    assert (model.predict(iris.data) == iris.target_names[reference.predict(iris.data)]).all()


@pytest.mark.parametrize("method", ["features", "gram"])
def test_moments_of_the_model_are_those_of_its_coordinates(method):
    X, codes = sample(classes=3)
    model = klda(X, codes, sigma=1.2, regularization=0.1, method=method)
    score = klda_project(model, X)
    np.testing.assert_allclose(score.mean(axis=0), 0, atol=1e-9)
    for k in range(3):
        np.testing.assert_allclose(score[codes == k].mean(axis=0), model.class_means[k], atol=1e-6)
    centred = score - model.class_means[codes]
    np.testing.assert_allclose(centred.T @ centred / (len(X) - 3), model.within, atol=1e-6)


def test_far_offset_and_float32_and_lists():
    X, codes = sample(classes=3)
    a = klda(X, codes, sigma=1.5, regularization=0.1).project(X)
    b = klda(X + 1e6, codes, sigma=1.5, regularization=0.1).project(X + 1e6)
    np.testing.assert_allclose(a, b, atol=1e-5)
    c = klda(X.astype(np.float32), codes, sigma=1.5, regularization=0.1).project(X.astype(np.float32))
    np.testing.assert_allclose(a, c, atol=1e-3)
    d = klda(X.tolist(), codes.tolist(), sigma=1.5, regularization=0.1).project(X.tolist())
    np.testing.assert_array_equal(a, d)


def test_labels_of_any_type():
    X, codes = sample(classes=3)
    expected = klda(X, codes, sigma=1.5).predict(X)
    for labels in (["a", "b", "c"], [1.5, -2.0, 7.25], [(1, 2), "x", 3], [b"0", b"1", b"2"]):
        values = np.empty(3, dtype=object)
        values[:] = labels
        y = values[codes] if len({type(x) for x in labels}) > 1 else np.array(labels)[codes]
        found = klda(X, y, sigma=1.5).predict(X)
        wanted = values[expected]
        assert [x == w for x, w in zip(found.tolist(), wanted.tolist())].count(False) == 0
    model = klda(X, codes == 1, sigma=1.5)
    assert model.predict(X).dtype == bool


def test_indefinite_kernel_and_precomputed():
    X, codes = sample(classes=3)
    K = np.tanh(0.1 * X @ X.T + 0.5)
    alpha, _ = dense_klda(K, codes, 1.0, "coefficients")
    model = klda(X, codes, "tanh", scale=0.1, offset=0.5, regularization=1.0, tol=1e-11)
    reference = (K - K.mean(axis=0)) @ alpha * np.sqrt(87)
    same_up_to_sign(model.project(X), reference, 1e-5)
    other = klda(K, codes, "precomputed", regularization=1.0, tol=1e-11)
    same_up_to_sign(other.project(K[:7]), reference[:7], 1e-5)


def test_routes_agree_on_digits_and_predict_well():
    digits = load_digits()
    X, y = digits.data[:500] / 16, digits.target[:500]
    features = klda(X, y, sigma=2.0, regularization=1e-2)
    gram = klda(X, y, sigma=2.0, regularization=1e-2, method="gram", tol=1e-9)
    np.testing.assert_allclose(features.quotients, gram.quotients, rtol=1e-2)
    new, truth = digits.data[500:] / 16, digits.target[500:]
    assert np.mean(features.predict(new) == truth) > 0.94
    assert np.mean(features.predict(new) == gram.predict(new)) > 0.995


def test_iterations_that_stop_short_say_so_once():
    X, codes = sample(100, classes=2)
    options = {"sigma": 3.0, "regularization": 1e-6, "penalty": "norm", "method": "gram", "tol": 1e-12}
    for fit, y in ((klda, codes), (kbda, codes == 0)):
        with pytest.warns(AccuracyWarning, match="relative residual") as raised:
            fit(X, y, **options)
        assert len(raised) == 1 and raised[0].filename == __file__


def test_a_small_penalty_on_the_norm_magnifies_no_rounding():
    """And what is reported is the residual of the solution, which rounding holds above the smallest ``tol``."""
    X, codes = sample(300)
    options = {"sigma": 3.0, "regularization": 1e-6, "penalty": "norm", "method": "gram"}
    values, vectors = np.linalg.eigh(gram("gaussian", X, sigma=3.0))
    F = vectors * np.sqrt(np.maximum(values, 0.0))
    means = np.array([F[codes == k].mean(axis=0) for k in range(3)])
    steps = (means - F.mean(axis=0)) * np.sqrt(100)
    centred = F - means[codes]
    quotients = scipy.linalg.eigvalsh(steps.T @ steps, centred.T @ centred + 1e-6 * np.eye(300))[:-3:-1]
    for tol, reached in ((1e-3, 1e-4), (1e-6, 1e-6)):
        np.testing.assert_allclose(klda(X, codes, tol=tol, **options).quotients, quotients, rtol=reached)
    with pytest.warns(AccuracyWarning, match="relative residual"):
        model = klda(X, codes, tol=1e-12, **options)
    np.testing.assert_allclose(model.quotients, quotients, rtol=1e-6)
    assert model.info["residual"] > 1e-9


def test_iterations_that_find_nothing_do_not_blame_the_rows():
    X, codes = sample(300)
    with pytest.raises(fk.errors.NotConvergedError, match="a larger regularization than 1e-09"):
        klda(X, codes, sigma=1.5, regularization=1e-9, penalty="norm", method="gram", max_iterations=50)


def test_fisherfaces_are_lda_of_kernel_components():
    X, codes = sample(60, 5, 4)
    model = kernel_fisherfaces(X, codes, "polynomial", degree=2, components=15)
    score = KernelPCA(15, kernel="poly", degree=2, gamma=1, coef0=1, eigen_solver="dense").fit_transform(X)
    reference = LinearDiscriminantAnalysis(solver="svd").fit(score, codes)
    same_up_to_sign(unit(klda_project(model, X)), unit(reference.transform(score)), 1e-6)
    assert (klda_predict(model, X) == reference.predict(score)).all()
    assert kernel_fisherfaces(X, codes, "gaussian", 2, sigma=3.0).project(X[:3]).shape == (3, 2)


def dense_kbda(K, positive, mu, penalty, c):
    mean = K[:, positive].mean(axis=1, keepdims=True)
    within = (K[:, positive] - mean) @ (K[:, positive] - mean).T
    spread = (K[:, ~positive] - mean) @ (K[:, ~positive] - mean).T
    return best(spread, within, K, mu, penalty, c)


@pytest.mark.parametrize("method", ["features", "gram"])
@pytest.mark.parametrize("penalty", ["coefficients", "norm"])
@pytest.mark.parametrize(("n", "kernel"), [(60, "gaussian"), (150, "gaussian"), (60, "polynomial")])
def test_kbda_is_the_dense_solution(method, penalty, n, kernel):
    X, codes = sample(n, classes=3)
    positive = codes == 1
    k, options = partial(gram, kernel, **KERNELS[kernel]), {"regularization": 0.1, "penalty": penalty, "method": method}
    alpha, quotients = dense_kbda(k(X, X), positive, 0.1, penalty, 3)
    model = kbda(X, positive, kernel, 3, tol=1e-10, **options, **KERNELS[kernel])
    np.testing.assert_allclose(model.quotients, quotients, rtol=1e-5)
    new = sample(20, classes=3, seed=1)[0]
    reference = (k(new, X) - k(X[positive], X).mean(axis=0)) @ alpha * np.sqrt(positive.sum() - 1)
    same_up_to_sign(kbda_project(model, new), reference, 1e-4)


def test_never_a_matrix_of_n_by_n():
    """16 MB are far below the 800 MB of K, on either route."""
    X, codes = sample(10_000, 3, 3)
    for method, kernel, parameters in (("features", "polynomial", {"degree": 2}), ("gram", "gaussian", {"sigma": 3.0})):
        options = {"method": method, "regularization": 1e3, "tol": 1e-2}
        assert traced(lambda k=kernel, o=options | parameters: klda(X, codes, k, **o)) < 300e6
