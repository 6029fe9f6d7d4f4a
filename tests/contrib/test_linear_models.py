"""Kernel perceptron, logistic regression, and regression on components: scikit-learn, and rules row by row.

scikit-learn's linear models see the kernel through an exact factor F of its matrix, F F' = K.
"""

import warnings

import numpy as np
import pytest
import scipy.linalg
from kernels_contrib.components import kernel_pc_logistic, kernel_pcr, pcr_predict
from kernels_contrib.errors import AccuracyWarning
from kernels_contrib.logistic import kernel_logistic, logistic_predict, logistic_probability
from kernels_contrib.perceptron import kernel_perceptron, perceptron_decision
from reference import gram
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

SIGMA = 1.1


def sample(n=160, d=3, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % classes
    centres = 1.3 * rng.standard_normal((classes, d))
    return centres[codes] + rng.standard_normal((n, d)), codes


def gaussian(X, Y):
    return gram("gaussian", X, Y, sigma=SIGMA)


def factors(X, new):
    """(F, features of the new rows): F F' = K."""
    values, vectors = scipy.linalg.eigh(gaussian(X, X))
    kept = values > 1e-13 * values[-1]
    change = vectors[:, kept] / np.sqrt(values[kept])
    return gaussian(X, X) @ change, gaussian(new, X) @ change


def row_by_row(K, codes, classes, epochs, *, joint=False):
    """Algorithm 3 of the lecture, one row at a time: (last coefficients, mean over the steps, mistakes by epoch)."""
    n, k = len(K), 1 if classes == 2 else classes
    sides = np.where(codes[:, None] == np.arange(k), 1, -1) if k > 1 else np.where(codes == 1, 1, -1)[:, None]
    alpha, total, mistakes = np.zeros((n, k)), np.zeros((n, k)), []
    steps = 0
    for _ in range(epochs):
        count = 0
        for i in range(n):
            f = K[i] @ alpha
            if joint:
                other = np.where(np.arange(k) == codes[i], -np.inf, f)
                if f[codes[i]] <= other.max():
                    alpha[i, codes[i]] += 1
                    alpha[i, int(np.argmax(other))] -= 1
                    count += 1
            else:
                wrong = f * sides[i] <= 0
                alpha[i] += np.where(wrong, sides[i], 0)
                count += bool(wrong.any())
            total += alpha
            steps += 1
        mistakes.append(count)
        if count == 0:
            break
    return alpha, total / steps, tuple(mistakes)


@pytest.mark.parametrize("method", ["features", "gram"])
@pytest.mark.parametrize(("classes", "rule"), [(2, "ovr"), (3, "ovr"), (3, "joint")])
@pytest.mark.parametrize("n", [60, 700])
def test_perceptron_is_the_row_by_row_rule(method, classes, rule, n):
    X, codes = sample(n, classes=classes)
    epochs = 4 if n == 60 else 2
    alpha, mean, mistakes = row_by_row(gaussian(X, X), codes, classes, epochs, joint=rule == "joint")
    options = {"sigma": SIGMA, "max_epochs": epochs, "method": method, "multiclass": rule, "tol": 1e-9}
    model = kernel_perceptron(X, codes, **options)
    np.testing.assert_array_equal(model.alpha, alpha)
    assert model.mistakes == mistakes
    averaged = kernel_perceptron(X, codes, averaged=True, **options)
    np.testing.assert_allclose(averaged.alpha, mean, atol=1e-12)
    new = sample(50, classes=classes, seed=1)[0]
    expected = gaussian(new, X) @ mean
    np.testing.assert_allclose(perceptron_decision(averaged, new).reshape(50, -1), expected, atol=1e-4 * n)


def test_perceptron_converges_on_separable_classes_and_says_so():
    X, codes = sample(120)
    X += 10.0 * (2 * codes - 1)[:, None]
    model = kernel_perceptron(X, codes, "linear")
    assert model.converged and model.mistakes[-1] == 0
    assert (model.predict(X) == codes).all()
    hard = kernel_perceptron(*sample(120), "linear", max_epochs=3)
    assert not hard.converged and len(hard.mistakes) == 3
    shuffled = kernel_perceptron(X, codes, "linear", shuffle=True, rng=1)
    assert shuffled.converged


def test_perceptron_of_a_precomputed_matrix():
    X, codes = sample(80)
    K = gaussian(X, X)
    a = kernel_perceptron(K, codes, "precomputed", max_epochs=3)
    b = kernel_perceptron(X, codes, sigma=SIGMA, max_epochs=3, method="gram")
    np.testing.assert_array_equal(a.alpha, b.alpha)
    assert (a.predict(K[:9]) == b.predict(X[:9])).all()


@pytest.mark.parametrize("method", ["features", "gram"])
@pytest.mark.parametrize(("strength", "weighted"), [(0.01, False), (1.0, False), (100.0, False), (0.5, True)])
@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_is_scikit_learns_on_an_exact_factor(method, strength, weighted, classes):
    X, codes = sample(classes=classes)
    y = np.array(["a", "b", "c"])[codes]
    new = sample(100, classes=classes, seed=5)[0]
    weights = (
        np.random.default_rng(3).uniform(0.0, 4.0, len(X)) * (np.arange(len(X)) % 7 > 0) if weighted else X[:, 0] ** 0
    )
    F, G = factors(X, new)
    reference = LogisticRegression(C=1 / strength, solver="newton-cg", tol=1e-10, max_iter=10000).fit(F, y, weights)
    options = {"sigma": SIGMA, "regularization": strength, "method": method, "features_tol": 1e-10}
    model = kernel_logistic(X, y, sample_weight=weights if weighted else None, **options)
    found, expected = logistic_probability(model, new), reference.predict_proba(G)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    sure = np.sort(expected, axis=1)[:, -1] - np.sort(expected, axis=1)[:, -2] > 1e-5
    assert (logistic_predict(model, new)[sure] == reference.predict(G)[sure]).all() and sure.mean() > 0.9
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    likelihood = np.log(reference.predict_proba(F)[np.arange(len(X)), codes]) @ weights
    assert model.log_likelihood == pytest.approx(likelihood, abs=1e-3)
    # equation 4.14's coefficients, whichever way they were found
    assert model.gamma is not None
    logits = gaussian(new, X) @ model.gamma + model.intercept
    np.testing.assert_allclose(logits, model.function(new), atol=1e-4)
    if weighted:
        assert abs(kernel_logistic(X, y, **options).probability(new) - found).max() > 0.01
        with pytest.raises(ValueError, match="every row of the class 'b' has the weight zero"):
            kernel_logistic(X, y, sample_weight=1.0 * (codes != 1), **options)


def test_logistic_keeps_extremes_finite():
    X, codes = sample(100)
    X[codes == 1] += 200.0
    model = kernel_logistic(X, codes, "linear", regularization=1e-6)
    p = model.probability(np.vstack([X, 1e6 * X]))
    assert np.isfinite(p).all() and (p >= 0).all()
    with pytest.warns(AccuracyWarning, match="Newton"):
        kernel_logistic(*sample(100), sigma=0.3, regularization=1e-6, max_iterations=1)


@pytest.mark.parametrize("strength", [1.0, 1e15, 1e30])
def test_a_tolerance_beyond_rounding_is_not_met_by_steps_without_end(strength):
    """All classes may move alike and change nothing: rounding there has no curvature to be divided by."""
    X = np.random.default_rng(0).standard_normal((3, 2))
    for method in ("features", "gram"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            model = kernel_logistic(
                X, [0, 1, 2], "rational_quadratic", method=method, regularization=strength, tol=1e-20
            )
        np.testing.assert_allclose(model.intercept.sum(), 0.0, atol=1e-12)


@pytest.mark.parametrize(("scale", "strength"), [(1e99, 1.0), (1.0, 1e51), (1.0, 1e-51), (1e-60, 1.0)])
def test_penalties_and_kernel_values_whose_products_leave_float64_are_refused(scale, strength):
    X, codes = sample(20)
    with pytest.raises(ValueError, match="logistic regression needs 1e-50 to 1e.50"):
        kernel_logistic(X * scale, codes, "linear", regularization=strength)
    if scale == 1.0:
        with pytest.raises(ValueError, match="regularization is"):
            kernel_pc_logistic(X, codes, "linear", 2, regularization=strength)


def test_component_regression_is_scikit_learns():
    X = sample(150)[0]
    t = np.stack([np.sin(X[:, 0]), X[:, 1] ** 2], axis=1)
    steps = make_pipeline(
        KernelPCA(12, kernel="rbf", gamma=1 / (2 * SIGMA**2), eigen_solver="dense"), LinearRegression()
    )
    model = kernel_pcr(X, t, "gaussian", 12, sigma=SIGMA)
    new = sample(40, seed=2)[0]
    np.testing.assert_allclose(pcr_predict(model, new), steps.fit(X, t).predict(new), atol=1e-6)
    np.testing.assert_allclose(model.explained_variance.mean(), steps.score(X, t), atol=1e-8)
    assert kernel_pcr(X, t[:, 0], c=12, sigma=SIGMA).predict(new).shape == (40,)


@pytest.mark.parametrize("classes", [2, 3])
def test_component_logistic_is_scikit_learns(classes):
    X, codes = sample(300, classes=classes)
    new = sample(40, classes=classes, seed=2)[0]
    projection = KernelPCA(6, kernel="rbf", gamma=1 / (2 * SIGMA**2), eigen_solver="dense").fit(X)
    F, G = projection.transform(X), projection.transform(new)
    reference = LogisticRegression(C=1e12, solver="newton-cg", tol=1e-10, max_iter=10000).fit(F, codes)
    model = kernel_pc_logistic(X, codes, "gaussian", 6, sigma=SIGMA, logistic_tol=1e-9)
    np.testing.assert_allclose(model.probability(new), reference.predict_proba(G), atol=1e-5)


def test_a_fraction_of_the_variance_and_separable_classes():
    X, codes = sample(100)
    model = kernel_pc_logistic(X, codes, sigma=SIGMA)
    assert "components" in model.info and model.info["method"] == "components"
    X[codes == 1] += 50.0
    with pytest.warns(AccuracyWarning):
        kernel_pc_logistic(X, codes, c=3, sigma=30.0, max_iterations=20, logistic_tol=1e-12)
    assert (kernel_pc_logistic(X, codes, c=3, sigma=30.0, regularization=0.1).predict(X) == codes).all()
