"""What the methods of kernels_contrib refuse: in words, and nothing in silence."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from kernels_contrib.cca import kernel_cca
from kernels_contrib.clustering import kernel_kmeans
from kernels_contrib.components import kernel_pc_logistic, kernel_pcr
from kernels_contrib.diffusion import diffusion_map, spectral_clustering
from kernels_contrib.errors import AccuracyWarning
from kernels_contrib.hsic import hsic_test
from kernels_contrib.kbda import kbda
from kernels_contrib.kica import kica, kica_contrast
from kernels_contrib.klda import kernel_fisherfaces, klda, klda_predict
from kernels_contrib.logistic import kernel_logistic
from kernels_contrib.mmd import mmd_test
from kernels_contrib.perceptron import kernel_perceptron
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge

import fastkpca as fk
from fastkpca.errors import ComponentsWarning

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (40, 2))
Y = np.repeat([0, 1], 20)
FITS = {
    "klda": klda,
    "kbda": lambda X, y, *args, **options: kbda(X, np.asarray(y) == 1, *args, **options),
    "logistic": kernel_logistic,
    "perceptron": kernel_perceptron,
    "fisherfaces": partial(kernel_fisherfaces, components=5),
    "pc_logistic": kernel_pc_logistic,
    "pcr": kernel_pcr,
    "kica": lambda X, y, *args, **options: kica(X, *args, **options),
    "contrast": lambda X, y, *args, **options: kica_contrast(X, *args, **options),
}
CLUSTERINGS = {
    "kmeans": lambda X, y, **options: kernel_kmeans(X, **options),
    "spectral": lambda X, y, **options: spectral_clustering(X, k=2, **options),
    "diffusion": lambda X, y, **options: diffusion_map(X, **options),
}
REGRESSIONS = {"pls": kernel_pls, "ridge": kernel_ridge}
EVERY = FITS | CLUSTERINGS | REGRESSIONS
EVERY |= {
    "mmd": lambda rows, y, **options: mmd_test(rows, X + 1.0, **options),
    "mmd, second": lambda rows, y, **options: mmd_test(X + 1.0, rows, **options),
    "hsic": lambda rows, y, **options: hsic_test(rows, X**2, **options),
    "cca": lambda rows, y, **options: kernel_cca(rows, X**2, **options),
    "cca, second": lambda rows, y, **options: kernel_cca(X**2, rows, **options),
}
THROUGH_PRODUCTS = ("klda", "kbda", "logistic", "perceptron")
MASKED = np.ma.masked_array(X, np.zeros(X.shape, dtype=bool))
MASKED[3, 1] = np.ma.masked


@pytest.mark.parametrize("name", EVERY)
def test_rows_that_are_none(name):
    fit = EVERY[name]
    for shape in ((0, 2), (0, 0), (0,), (3, 0)):
        with pytest.raises(ValueError):
            fit(np.zeros(shape), Y[: shape[0]])
    for wrong, text in ((np.nan, "NaN"), (np.inf, "infinity")):
        spoiled = np.where(np.arange(80).reshape(40, 2) == 7, wrong, X)
        with pytest.raises(ValueError, match=rf"contains {text} .first at row 3, column 1\)"):
            fit(spoiled, Y)
    with pytest.raises(ValueError, match="masked"):
        fit(MASKED, Y)
    if name in ("logistic", *CLUSTERINGS, *REGRESSIONS, "cca"):
        with pytest.raises(ValueError, match="sample_weight"):
            fit(X, Y, sample_weight=-np.ones(40))
    model = fit(X, Y)
    for call in ("project", "predict", "probability", "decision"):
        if hasattr(model, call):
            with pytest.raises(ValueError, match="masked"):
                getattr(model, call)(MASKED)
            with pytest.raises(ValueError, match="X has 1 column, the model was fitted on 2"):
                getattr(model, call)(X[:, :1])


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("kernel", ["cosine", "gaussian", "linear"])
def test_rows_of_zeros(name, kernel):
    """A kernel that is zero, or one, everywhere: a clear error, or finite values."""
    try:
        model = FITS[name](np.zeros((40, 2)), Y, kernel)
    except ValueError as error:
        assert not isinstance(error, np.linalg.LinAlgError)
        return
    for call in ("project", "probability", "decision"):
        if hasattr(model, call):
            assert np.isfinite(getattr(model, call)(X)).all()


@pytest.mark.parametrize("method", ["features", "gram", None])
@pytest.mark.parametrize("name", FITS)
def test_a_kernel_that_is_zero(name, method):
    kernel = fk.get_kernel(lambda A, B: np.zeros((len(A), len(B))), positive_semidefinite=True)
    options = {"method": method} if method and name in THROUGH_PRODUCTS else {}
    if name not in ("logistic", "perceptron"):
        with pytest.raises(ValueError, match=r"no direction separates|no component of|is zero on these components"):
            FITS[name](X, Y, kernel, **options)
        return
    model = FITS[name](X, Y, kernel, **options)
    assert (model.function(X) == 0.0).all()  # for logistic regression: as many rows of each class


@pytest.mark.parametrize("method", ["features", "gram"])
@pytest.mark.parametrize("scale", [0.0, 1e-40, 1.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_newtons_method_ends_by_itself(method, scale, classes):
    kernel = fk.get_kernel(lambda A, B: scale * np.exp(-abs(A[:, :1] - B[:, 0])), positive_semidefinite=True)
    y = np.arange(40) % classes
    model = kernel_logistic(X, y, kernel, method=method, max_iterations=2**63 - 1)  # without a warning
    assert model.info["gradient"] <= 1e-8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        again = kernel_logistic(X, y, kernel, method=method, max_iterations=2**63 - 1, tol=1e-300)
    np.testing.assert_allclose(again.probability(X), model.probability(X), atol=1e-8)


@pytest.mark.parametrize("name", ["klda", "logistic", "perceptron", "fisherfaces", "pc_logistic"])
def test_labels_and_parameters_that_will_not_do(name):
    fit, nan = FITS[name], np.append(Y[:-1].astype(float), np.nan)
    for y, options, error, text in (
        (np.zeros(40), {}, ValueError, "one class only"),
        (Y[:-1], {}, ValueError, "y has 39 labels, X has 40 rows"),
        (nan, {}, ValueError, "y contains nan .first at row 39"),
        (Y, {"kernel": "gaussian", "sigmaa": 1.0}, TypeError, "no parameter 'sigmaa'"),
    ):
        with pytest.raises(error, match=text):
            fit(X, y, **options)


def test_masked_targets():
    for fit, y in ((kernel_pcr, Y), (kernel_pls, Y), (kernel_ridge, Y), (kbda, Y == 1)):
        with pytest.raises(ValueError, match="masked"):
            fit(X, np.ma.masked_array(y, Y == 1))


@pytest.mark.parametrize("name", THROUGH_PRODUCTS)
@pytest.mark.parametrize("method", ["features", "gram"])
def test_numbers_out_of_range(name, method):
    fit = FITS[name]
    for tol in (0, -1.0, 1.5, np.nan):
        with pytest.raises(ValueError, match=r"tol is .*; give a number between 0 and 1"):
            fit(X, Y, tol=tol, method=method)
    with pytest.raises(TypeError, match="tol is"):
        fit(X, Y, tol="x", method=method)
    with pytest.raises(ValueError, match="max_features is 0"):
        fit(X, Y, max_features=0, method=method)
    with pytest.raises(TypeError, match="max_features is True"):
        fit(X, Y, max_features=True, method=method)
    if name != "perceptron":
        with pytest.raises(ValueError, match="max_iterations is 0"):
            fit(X, Y, max_iterations=0, method=method)


@pytest.mark.parametrize("name", ["klda", "kbda", "logistic", "perceptron", "pcr"])
def test_threads_of_a_prediction(name):
    model = FITS[name](X, Y)
    call = model.project if name in ("klda", "kbda") else model.predict
    for wrong, error in ((0, ValueError), (-1, ValueError), ("x", TypeError), (1.5, TypeError)):
        with pytest.raises(error, match="n_threads is"):
            call(X, n_threads=wrong)


def test_large_numbers_that_mean_something():
    model = klda(X, Y)
    np.testing.assert_array_equal(klda_predict(model, X, prior=[1e308, 1e308]), klda_predict(model, X, prior=[1, 1]))
    small, large = kernel_pcr(X, X[:, 0], c=2), kernel_pcr(X, X[:, 0] * 2.0**1023, c=2)
    np.testing.assert_array_equal(large.explained_variance, small.explained_variance)
    np.testing.assert_array_equal(large.weights, small.weights * 2.0**1023)


@pytest.mark.parametrize("method", ["features", "gram"])
@pytest.mark.parametrize("penalty", ["coefficients", "norm"])
def test_directions_that_separate_nothing(method, penalty):
    for fit, targets in ((klda, Y), (kbda, Y == 1)):
        with pytest.raises(ValueError, match="no direction separates"):
            fit(np.ones((40, 2)), targets, "linear", method=method, penalty=penalty)
    # two of three classes are the same rows twice
    three = np.concatenate([X, X[20:]])
    with pytest.warns(ComponentsWarning, match="2 directions asked for, 1 returned"):
        model = klda(three, np.repeat([0, 1, 2], 20), "linear", method=method, penalty=penalty)
    assert model.n_components == 1 and np.abs(model.project(three)).max() < 20


@pytest.mark.filterwarnings("error")
def test_values_beyond_the_largest_number():
    for fit in (klda, kernel_perceptron):
        for method in ("features", "gram"):
            model = fit(X, Y, "polynomial", method=method)
            with pytest.raises(ValueError, match="overflow|range of float64"):
                model.predict(X * 1e130)
    with pytest.raises(ValueError, match="at most 1e"):
        kica(X, regularization=1e300)
    small, large = kica(X), kica(X * 2.0**990)
    np.testing.assert_allclose(large.unmixing * 2.0**990, small.unmixing, rtol=1e-10)


@pytest.mark.filterwarnings("error")
def test_columns_of_kica_that_float64_hardly_holds():
    for scale in (1e308, 1e-310):
        with pytest.raises(ValueError, match="column 1 of X holds numbers of about .*scale it to between 3.7"):
            kica(X * [1.0, scale])
    model = kica(X * [1e-290, 1e290], c=1)  # the first column is nothing beside the second
    assert np.isfinite(model.sources).all() and np.isfinite(model.mixing).all()
    with pytest.raises(ValueError, match="row 2 of X overflow"):
        kica(X * 1e-200).project(np.where(np.arange(40)[:, None] == 2, 1e150, X * 1e-200))


@pytest.mark.filterwarnings("ignore::fastkpca.errors.ComponentsWarning")
@pytest.mark.parametrize(
    "name",
    ["kbda", "kernel_fisherfaces", "kernel_logistic", "kernel_pc_logistic", "kernel_pcr", "kernel_perceptron", "klda"],
)
def test_objects_are_told_the_way_by_their_matrix(name):
    def common(A, B):
        return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])

    words = ["".join(np.random.default_rng(i).choice(list("abcdefgh"), 5)) for i in range(40)]
    y = np.array(["a" in word for word in words])
    method = fk.get_method(name)
    with pytest.raises(TypeError, match=f"{name} takes rows of numbers: .*K = kernel.block.*'precomputed'"):
        method(words, y, fk.get_kernel(common, positive_semidefinite=True))
    assert "precomputed" in str(method(common(words, words), y, "precomputed", semidefinite=True)).lower()
