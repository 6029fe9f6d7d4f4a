"""What methods and kernels of kernels_contrib refuse, each for a reason of its own, in words."""

import warnings
from functools import partial

import numpy as np
import pytest
from kernels_contrib.anova import Anova
from kernels_contrib.cca import kernel_cca
from kernels_contrib.clustering import assign, kernel_kmeans
from kernels_contrib.components import kernel_pc_logistic, kernel_pcr
from kernels_contrib.diffusion import diffusion_map, spectral_clustering
from kernels_contrib.errors import AccuracyWarning
from kernels_contrib.histograms import ChiSquared
from kernels_contrib.hsic import hsic_test
from kernels_contrib.kbda import kbda
from kernels_contrib.kica import kica, kica_contrast, kica_project
from kernels_contrib.klda import kernel_fisherfaces, klda, klda_predict, klda_project
from kernels_contrib.logistic import kernel_logistic
from kernels_contrib.mmd import mmd_test
from kernels_contrib.perceptron import kernel_perceptron, perceptron_predict
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge
from kernels_contrib.sklearn import SpectralClustering
from kernels_contrib.strings import Spectrum

import fastkpca as fk
from fastkpca.errors import ComponentsWarning, KernelParameterError, UnknownKernelError

RNG = np.random.default_rng(3)
X, T = RNG.standard_normal((60, 3)), RNG.standard_normal(60)
Y, SIX = np.arange(60) % 2, RNG.standard_normal((6, 2))
S = RNG.uniform(-1, 1, (200, 3)) @ RNG.standard_normal((3, 3))
SUM, TWICE, NAN = np.column_stack([S, S[:, 0] + S[:, 1]]), S[:, [0, 0]], np.full((2, 3), np.nan)
FEW, WORDS, HISTOGRAMS = np.repeat(SIX[:3], 20, axis=0), np.where(T > 0, "up", "down"), np.abs(X)
ALONE = [1.0] * 59 + [0.0]
KICA = [
    (lambda: kica(S * [1.0, 0.0, 1.0]), ValueError, "column 1 of X is constant"),
    (lambda: kica(S, c=4), ValueError, "c=4 components of 3 columns"),
    (lambda: kica(SUM), ValueError, "rank 3 .*c is 4.*give c=3"),
    (lambda: kica(S[:3]), ValueError, "3 rows, too few for 3 components"),
    (lambda: kica(S, contrast="hsic"), ValueError, "contrast is 'hsic'; give one of 'kgv', 'kcca'"),
    (lambda: kica(S, c=0), ValueError, "c is 0; give a whole number, 1 or more"),
    (lambda: kica(S, n_starts=True), TypeError, "n_starts is True"),
    (lambda: kica(S, regularization=-1), ValueError, "regularization is -1"),
    (lambda: kica(S, regularization=1e-9), ValueError, "regularization is 1e-09; give at least 1e-08"),
    (lambda: kica(S[:, 0]), ValueError, "shape .200,."),
    (lambda: kica(S * 1j), TypeError, "X is complex"),
    (lambda: kica(S, "tanh"), ValueError, "not positive semidefinite"),
    (lambda: kica(S, tol=2.0), ValueError, "tol is 2.0; give a share of the kernel's trace"),
    (lambda: kica(S, sigma=1e3), ValueError, "cannot tell dependence from correlation"),
    (lambda: kica(S, kernel="linear"), ValueError, "cannot tell dependence from correlation"),
    (lambda: kica(S, "gausian"), UnknownKernelError, "did you mean 'gaussian'"),
    (lambda: kica(S, rng="x"), TypeError, "rng is 'x'"),
    (lambda: kica_project(None, S), TypeError, r"give what .* kica\(\) or diffusion_map\(\) returned"),
    *(
        (
            lambda x=x: kica_contrast(TWICE, "polynomial", x, degree=6, scale=1e4, offset=1.0, regularization=1e-8),
            ValueError,
            "regularization=1e-08 is too small for these values of the kernel",
        )
        for x in ("kgv", "kcca")
    ),
]
TESTS = [
    *((lambda x=x: mmd_test(X, X, permutations=x), (ValueError, TypeError), "permutations") for x in (0, -1, 2.5, "x")),
    (lambda: mmd_test(X, X, unbiased=1), TypeError, "unbiased"),
    (lambda: mmd_test(X, X, []), ValueError, "empty list"),
    (lambda: mmd_test(X, X, method="fast"), ValueError, "method"),
    (lambda: mmd_test(X, X, sample_weight=np.ones(120)), TypeError, "give a pair"),
    (lambda: mmd_test(X, X, sample_weight=(T**0, ALONE)), ValueError, "sample_weight is zero at row 119 of X with Y"),
    (lambda: mmd_test(X, X, sample_weight=(T**0, ALONE[1:])), ValueError, "sample_weight of Y has shape"),
    (lambda: mmd_test(X, X[:, :2]), ValueError, "columns"),
    (lambda: hsic_test(X, X**2, unbiased=True, sample_weight=T**0), ValueError, "equal weights"),
    (lambda: kernel_cca(X, X**2, permutations=9, sample_weight=T**0), ValueError, "not exchangeable"),
    (lambda: kernel_cca(X, X[:, :1], "linear", 2), ValueError, "at most"),
    (
        lambda: hsic_test(X, X**2, sigma=0.1, max_features=5),
        ValueError,
        "view X.*at most 5 features; raise tol or max_features$",
    ),
    (lambda: kernel_cca(X, np.ones((60, 1)), sigma=1.0), ValueError, "does not vary"),
    (lambda: mmd_test(X[:1], X[:1]), ValueError, "at least"),
    *((lambda f=f: f(X[:3], X[:3]), ValueError, "at least") for f in (hsic_test, kernel_cca)),
    *((lambda f=f: f(X, X[:-1]), ValueError, "X has 60 rows, Y has 59") for f in (hsic_test, kernel_cca)),
    *(
        (lambda f=f: f(X @ X.T, X, "precomputed"), ValueError, "view Y: .* must be square")
        for f in (hsic_test, kernel_cca)
    ),
    *((lambda f=f: f(X, X, "tanh"), ValueError, "[tT]anh") for f in (mmd_test, hsic_test, kernel_cca)),
]
TARGETS = [
    *((lambda f=f: f(X, T, "tanh"), ValueError, "[tT]anh") for f in (kernel_pls, kernel_ridge)),
    *((lambda f=f: f(X, WORDS), TypeError, "give real numbers.*for each class") for f in (kernel_pls, kernel_ridge)),
    *((lambda f=f: f(X, T[:-1]), ValueError, "shape") for f in (kernel_pls, kernel_ridge)),
    *((lambda f=f: f(X, [*T[1:], np.nan]), ValueError, "NaN") for f in (kernel_pls, kernel_ridge, kernel_pcr)),
    (lambda: kernel_pls(X, np.full(60, 3.7)), ValueError, "t is constant"),
    (lambda: kernel_pls(X[:3], T[:3], sigma=1.0), ValueError, "at least 4"),
    (lambda: kernel_pls(np.zeros((6, 2)), T[:6], "linear", method="gram"), ValueError, "no component varies"),
    (lambda: kernel_ridge(X, T, regularization=0.0), ValueError, "regularization"),
    (lambda: kernel_ridge(X @ X.T, T, "precomputed").error(X @ X.T), ValueError, r"needs k\(x, x\)"),
    (lambda: kernel_pcr(X, np.zeros((60, 0))), ValueError, r"t has shape \(60, 0\)"),
]
CLASSES = [
    *(
        (lambda x=x: kernel_logistic(X, Y, regularization=x), ValueError, "regulariz")
        for x in (0.0, -1.0, np.inf, np.nan)
    ),
    (lambda: kernel_logistic(X, Y, regularization="a"), TypeError, "regularization"),
    (lambda: kernel_logistic(X, Y, "tanh"), ValueError, "positive semidefinite"),
    (lambda: kernel_logistic(X, Y, features_tol=2), ValueError, "features_tol is 2"),
    (lambda: kernel_pc_logistic(X, Y, logistic_tol=0), ValueError, "logistic_tol is 0"),
    (lambda: kernel_pc_logistic(X, Y, max_iterations="x"), TypeError, "max_iterations is 'x'"),
    (lambda: kernel_pc_logistic(X, Y, regularization=True), TypeError, "regularization is True"),
    (lambda: kernel_perceptron(X, Y, max_epochs=0), ValueError, "max_epochs"),
    (lambda: kernel_perceptron(X, Y, multiclass="ova"), ValueError, "one of 'ovr', 'joint'"),
    (lambda: kernel_perceptron(X, Y, rng="x"), TypeError, "rng is 'x'"),
    (lambda: perceptron_predict(None, X), TypeError, "kernel_perceptron"),
    (lambda: klda(SIX[:4], ["a", "a", "a", "b"]), ValueError, "class 'b' has one row .row 3.*at least 2"),
    (lambda: klda(SIX[:4], [0.1, 0.2, 0.3, 0.4]), ValueError, "measured values rather than labels"),
    (lambda: klda(SIX[:4], [0, 1, None, 1]), ValueError, "y contains None .first at row 2"),
    (lambda: klda(SIX[:4], np.zeros((4, 2))), ValueError, "y has shape"),
    (lambda: klda(X, Y, c=2), ValueError, "1 to 1 discriminant"),
    (lambda: klda(X, Y, regularization=0.0), ValueError, "positive, finite"),
    (lambda: klda(X, Y, penalty="ridge"), ValueError, "coefficients"),
    (lambda: klda(X, Y, method="dense"), ValueError, "one of 'auto', 'features', 'gram'"),
    (lambda: klda(X, Y, "tanh", penalty="norm"), ValueError, "semidefinite"),
    (lambda: klda((X + Y[:, None]) * 1e90, Y, "linear"), ValueError, r"k\(x, x\) is about .*e\+1.*scale the rows down"),
    (lambda: klda_project(klda(X, Y, sigma=1.0), NAN), ValueError, "X contains NaN"),
    (lambda: klda_project(3, X), TypeError, "what klda"),
    (lambda: kbda(SIX, [0], c=1), ValueError, "marks 1 row; kbda needs at least two"),
    (lambda: kbda(SIX, [True] * 6, c=1), ValueError, "marks every row"),
    (lambda: kbda(SIX, [1, 0, 1, 0, 0, 0], c=1), ValueError, "positive == 1"),
    (lambda: kbda(SIX, [0, 9], c=1), ValueError, "names row 9"),
    (lambda: kbda(SIX, [True, True], c=1), ValueError, "2 truth values, X has 6 rows"),
    (lambda: kbda(SIX, [0, 1], c=5), ValueError, "4 other rows have 1 to 4 directions"),
    (lambda: kbda(SIX, ["a"] * 6), TypeError, "truth value for each row"),
]
CLUSTERINGS = (kernel_kmeans, spectral_clustering)
GROUPS = [
    *((lambda f=f, k=k: f(X, "gaussian", k), ValueError, r"k is \d+") for f in CLUSTERINGS for k in (0, 60, 1000)),
    *((lambda f=f: f(FEW, "gaussian", 4, sigma=1.0), ValueError, "only 3 different") for f in CLUSTERINGS),
    *(
        (lambda m=m: kernel_kmeans(FEW, "gaussian", 4, sigma=1.0, method=m), ValueError, "only 3 different images")
        for m in ("features", "gram")
    ),
    *(
        (lambda f=f: f(X[:3], "gaussian", 2), ValueError, "n_samples=3 rows; clustering needs at least 4")
        for f in CLUSTERINGS
    ),
    *((lambda f=f: f(X * 0, "gaussian", 2, sigma=1.0), ValueError, "differ") for f in CLUSTERINGS),
    (lambda: diffusion_map(X[:3], "gaussian", 2), ValueError, "needs at least 4 rows"),
    (
        lambda: kernel_kmeans(X, "tanh", 2, scale=0.1, offset=0.0),
        ValueError,
        "Tanh.* is not positive semidefinite, and kernel_kmeans",
    ),
    (
        lambda: kernel_kmeans(-X @ X.T, "precomputed", 2),
        ValueError,
        "is not positive semidefinite: it has an eigenvalue",
    ),
    *(
        (lambda f=f: f(X - X.mean(axis=0), "linear", 2), ValueError, "Linear.* negative values")
        for f in (spectral_clustering, diffusion_map)
    ),
    *((lambda f=f: f(X, Y), TypeError, "kernel is of type ndarray") for f in (*CLUSTERINGS, diffusion_map)),
    *((lambda f=f: f(X, "gaussian", Y), TypeError, "k is|c is") for f in (*CLUSTERINGS, diffusion_map)),
    (
        lambda: diffusion_map(X, "gaussian", 2, sigma=1.0).project([X[0], [1e3, 1e3, 1e3]]),
        ValueError,
        "row 1 of X is similar to none",
    ),
    *((lambda x=x: diffusion_map(X, "gaussian", 2, alpha=x), ValueError, "alpha is") for x in (1.5, -0.1, np.nan)),
    *((lambda x=x: diffusion_map(X, "gaussian", 2, time=x), ValueError, "time is") for x in (-1.0, "x")),
    (lambda: assign(diffusion_map(X, "gaussian", 2), X), TypeError, "give what"),
]
KERNELS = [
    *(
        (lambda x=x: fk.kpca(X, x, 2), KernelParameterError, "histograms are n")
        for x in ("chi_squared", "intersection")
    ),
    *(
        (lambda x=x: fk.kpca_project(fk.kpca(HISTOGRAMS, x, 2), -HISTOGRAMS), KernelParameterError, "are not negative")
        for x in ("chi_squared", "intersection")
    ),
    (lambda: fk.kpca(np.ones((10, 3)), "chi_squared", 2), KernelParameterError, "all rows of X are equal"),
    (lambda: fk.kpca(X, "anova", 2, degree=5), KernelParameterError, "rows have 3 columns"),
    (lambda: Anova(sigma=-1), KernelParameterError, "sigma is -1"),
    (lambda: ChiSquared(gamma=0), KernelParameterError, "gamma is 0"),
    (lambda: Spectrum(length=0), ValueError, "length"),
    (lambda: Spectrum(length="x"), TypeError, "length"),
    (lambda: Spectrum(normalized=2), TypeError, "normalized"),
    (
        lambda: fk.kpca([b"abc", b"abd", b"bcd"], "spectrum", 1),
        KernelParameterError,
        "takes strings; found an object of",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), [*KICA, *TESTS, *TARGETS, *CLASSES, *GROUPS, *KERNELS])
def test_what_makes_no_sense_is_refused_in_words(call, error, text):
    with pytest.raises(error, match=text):
        call()


# Rows and targets that will not do -----------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).uniform(-1, 1, (40, 2))
HALVES = np.repeat([0, 1], 20)
FITS = {
    "klda": klda,
    "kbda": lambda ROWS, y, *args, **options: kbda(ROWS, np.asarray(y) == 1, *args, **options),
    "logistic": kernel_logistic,
    "perceptron": kernel_perceptron,
    "fisherfaces": partial(kernel_fisherfaces, components=5),
    "pc_logistic": kernel_pc_logistic,
    "pcr": kernel_pcr,
    "kica": lambda ROWS, y, *args, **options: kica(ROWS, *args, **options),
    "contrast": lambda ROWS, y, *args, **options: kica_contrast(ROWS, *args, **options),
}
CLUSTERING_FITS = {
    "kmeans": lambda ROWS, y, **options: kernel_kmeans(ROWS, **options),
    "spectral": lambda ROWS, y, **options: spectral_clustering(ROWS, k=2, **options),
    "diffusion": lambda ROWS, y, **options: diffusion_map(ROWS, **options),
}
REGRESSIONS = {"pls": kernel_pls, "ridge": kernel_ridge}
EVERY = FITS | CLUSTERING_FITS | REGRESSIONS
EVERY |= {
    "mmd": lambda rows, y, **options: mmd_test(rows, ROWS + 1.0, **options),
    "mmd, second": lambda rows, y, **options: mmd_test(ROWS + 1.0, rows, **options),
    "hsic": lambda rows, y, **options: hsic_test(rows, ROWS**2, **options),
    "cca": lambda rows, y, **options: kernel_cca(rows, ROWS**2, **options),
    "cca, second": lambda rows, y, **options: kernel_cca(ROWS**2, rows, **options),
}
THROUGH_PRODUCTS = ("klda", "kbda", "logistic", "perceptron")
MASKED = np.ma.masked_array(ROWS, np.zeros(ROWS.shape, dtype=bool))
MASKED[3, 1] = np.ma.masked


@pytest.mark.parametrize("name", EVERY)
def test_rows_that_are_none(name):
    fit = EVERY[name]
    for shape in ((0, 2), (0, 0), (0,), (3, 0)):
        with pytest.raises(ValueError):
            fit(np.zeros(shape), HALVES[: shape[0]])
    for wrong, text in ((np.nan, "NaN"), (np.inf, "infinity")):
        spoiled = np.where(np.arange(80).reshape(40, 2) == 7, wrong, ROWS)
        with pytest.raises(ValueError, match=rf"contains {text} .first at row 3, column 1\)"):
            fit(spoiled, HALVES)
    with pytest.raises(ValueError, match="masked"):
        fit(MASKED, HALVES)
    if name in ("logistic", *CLUSTERING_FITS, *REGRESSIONS, "cca"):
        with pytest.raises(ValueError, match="sample_weight"):
            fit(ROWS, HALVES, sample_weight=-np.ones(40))
    model = fit(ROWS, HALVES)
    for call in ("project", "predict", "probability", "decision"):
        if hasattr(model, call):
            with pytest.raises(ValueError, match="masked"):
                getattr(model, call)(MASKED)
            with pytest.raises(ValueError, match="X has 1 column, the model was fitted on 2"):
                getattr(model, call)(ROWS[:, :1])


@pytest.mark.parametrize("method", ["features", "gram", None])
@pytest.mark.parametrize("name", FITS)
def test_a_kernel_that_is_zero(name, method):
    kernel = fk.get_kernel(lambda A, B: np.zeros((len(A), len(B))), positive_semidefinite=True)
    options = {"method": method} if method and name in THROUGH_PRODUCTS else {}
    if name not in ("logistic", "perceptron"):
        with pytest.raises(ValueError, match=r"no direction separates|no component of|is zero on these components"):
            FITS[name](ROWS, HALVES, kernel, **options)
        return
    model = FITS[name](ROWS, HALVES, kernel, **options)
    assert (model.function(ROWS) == 0.0).all()  # for logistic regression: as many rows of each class


@pytest.mark.parametrize("method", ["features", "gram"])
@pytest.mark.parametrize("scale", [0.0, 1e-40, 1.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_newtons_method_ends_by_itself(method, scale, classes):
    kernel = fk.get_kernel(lambda A, B: scale * np.exp(-abs(A[:, :1] - B[:, 0])), positive_semidefinite=True)
    y = np.arange(40) % classes
    model = kernel_logistic(ROWS, y, kernel, method=method, max_iterations=2**63 - 1)  # without a warning
    assert model.info["gradient"] <= 1e-8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        again = kernel_logistic(ROWS, y, kernel, method=method, max_iterations=2**63 - 1, tol=1e-300)
    np.testing.assert_allclose(again.probability(ROWS), model.probability(ROWS), atol=1e-8)


@pytest.mark.parametrize("name", ["klda", "logistic", "perceptron", "fisherfaces", "pc_logistic"])
def test_labels_and_parameters_that_will_not_do(name):
    fit, nan = FITS[name], np.append(HALVES[:-1].astype(float), np.nan)
    for y, options, error, text in (
        (np.zeros(40), {}, ValueError, "one class only"),
        (HALVES[:-1], {}, ValueError, "y has 39 labels, X has 40 rows"),
        (nan, {}, ValueError, "y contains nan .first at row 39"),
        (HALVES, {"kernel": "gaussian", "sigmaa": 1.0}, TypeError, "no parameter 'sigmaa'"),
    ):
        with pytest.raises(error, match=text):
            fit(ROWS, y, **options)


def test_masked_targets():
    for fit, y in ((kernel_pcr, HALVES), (kernel_pls, HALVES), (kernel_ridge, HALVES), (kbda, HALVES == 1)):
        with pytest.raises(ValueError, match="masked"):
            fit(ROWS, np.ma.masked_array(y, HALVES == 1))


@pytest.mark.parametrize("name", ["klda", "kbda", "logistic", "perceptron", "pcr", "kica"])
def test_threads_of_a_prediction(name):
    model = FITS[name](ROWS, HALVES)
    call = model.project if name in ("klda", "kbda", "kica") else model.predict
    for wrong, error in ((0, ValueError), (-1, ValueError), ("x", TypeError), (1.5, TypeError)):
        with pytest.raises(error, match="n_threads is"):
            call(ROWS, n_threads=wrong)


def test_large_numbers_that_mean_something():
    model = klda(ROWS, HALVES)
    np.testing.assert_array_equal(
        klda_predict(model, ROWS, prior=[1e308, 1e308]), klda_predict(model, ROWS, prior=[1, 1])
    )
    small, large = kernel_pcr(ROWS, ROWS[:, 0], c=2), kernel_pcr(ROWS, ROWS[:, 0] * 2.0**1023, c=2)
    np.testing.assert_array_equal(large.explained_variance, small.explained_variance)
    np.testing.assert_array_equal(large.weights, small.weights * 2.0**1023)


def test_fewer_coordinates_of_a_diffusion_map_are_not_silent():
    rows = np.random.default_rng(0).standard_normal((100, 2))
    with pytest.warns(ComponentsWarning, match="60 coordinates asked for"):
        assert diffusion_map(rows, "gaussian", 60, sigma=30.0).coordinates.shape[1] < 60


@pytest.mark.parametrize("method", ["features", "gram"])
@pytest.mark.parametrize("penalty", ["coefficients", "norm"])
def test_directions_that_separate_nothing(method, penalty):
    for fit, targets in ((klda, HALVES), (kbda, HALVES == 1)):
        with pytest.raises(ValueError, match="no direction separates"):
            fit(np.ones((40, 2)), targets, "linear", method=method, penalty=penalty)
    # two of three classes are the same rows twice
    three = np.concatenate([ROWS, ROWS[20:]])
    with pytest.warns(ComponentsWarning, match="2 directions asked for, 1 returned"):
        model = klda(three, np.repeat([0, 1, 2], 20), "linear", method=method, penalty=penalty)
    assert model.n_components == 1 and np.abs(model.project(three)).max() < 20


@pytest.mark.filterwarnings("error")
def test_values_beyond_the_largest_number():
    for fit in (klda, kernel_perceptron):
        for method in ("features", "gram"):
            model = fit(ROWS, HALVES, "polynomial", method=method)
            with pytest.raises(ValueError, match="overflow|range of float64"):
                model.predict(ROWS * 1e130)
    with pytest.raises(ValueError, match="at most 1e"):
        kica(ROWS, regularization=1e300)
    small, large = kica(ROWS), kica(ROWS * 2.0**990)
    np.testing.assert_allclose(large.unmixing * 2.0**990, small.unmixing, rtol=1e-10)


def test_features_of_products_with_the_matrix():
    with pytest.raises(ValueError, match="max_features=9 is of method='features', and method='gram' .*drop one"):
        klda(ROWS, HALVES, "gaussian", sigma=1.0, method="gram", max_features=9)
    with pytest.raises(ValueError, match="method='gram' was asked for; drop one"):
        kernel_ridge(ROWS, ROWS[:, 0], "gaussian", sigma=1.0, method="gram", max_features=9)


@pytest.mark.parametrize("method", ["gram", "auto"])
def test_features_of_a_two_sample_test_by_products(method):
    with pytest.raises(ValueError, match="max_features=9 is of features.*; drop it, or give method='features'$"):
        mmd_test(ROWS, ROWS, sigma=1.0, permutations=9, method=method, max_features=9)
    assert mmd_test(ROWS, ROWS, sigma=1.0, permutations=9, method="features", max_features=9).info["n_features"] <= 9
    assert mmd_test(ROWS, ROWS, sigma=1.0, permutations=9, method=method).info["method"] == "gram"
    K = fk.gram(np.vstack([ROWS, ROWS]), "gaussian", sigma=1.0)[:]
    parts = K[: len(ROWS)], K[len(ROWS) :]
    with pytest.raises(ValueError, match="max_features=9 is of features.*; drop it$"):
        mmd_test(*parts, "precomputed", permutations=9, max_features=9)
    assert mmd_test(*parts, "precomputed", permutations=9).info["method"] == "gram"


def test_neighbours_where_similarities_are_those_of_a_kernel():
    with pytest.raises(ValueError, match="n_neighbors=5 is of affinity='nearest_neighbors'; give that too, or drop it"):
        spectral_clustering(ROWS, sigma=1.0, k=2, n_neighbors=5)
    with pytest.raises(ValueError, match="n_neighbors=5 is of affinity='nearest_neighbors'"):
        SpectralClustering(2, gamma=0.5, n_neighbors=5).fit(ROWS)
    assert spectral_clustering(ROWS, sigma=1.0, k=2).n_groups == 2
    assert spectral_clustering(ROWS, k=2, affinity="nearest_neighbors", n_neighbors=5).kernel.by_number


def test_a_bound_on_the_number_of_groups_where_it_is_given():
    with pytest.raises(ValueError, match="max_groups=5 bounds a number of groups that is searched; drop it, or k=2"):
        spectral_clustering(ROWS, sigma=1.0, k=2, max_groups=5)
    assert spectral_clustering(ROWS, sigma=1.0, k=2).n_groups == 2
    assert spectral_clustering(ROWS, sigma=1.0, max_groups=5).n_groups <= 5
    with pytest.raises(ValueError, match="max_groups"):
        spectral_clustering(ROWS, sigma=1.0, max_groups=0)


def test_a_penalty_that_takes_variances_beyond_float64():
    with pytest.raises(ValueError, match="regularization is 1.7e.308, .* give a smaller one"):
        kernel_fisherfaces(ROWS, HALVES, "gaussian", sigma=1.0, regularization=1.7e308)


@pytest.mark.filterwarnings("error")
def test_columns_of_kica_that_float64_hardly_holds():
    for scale in (1e308, 1e-310):
        with pytest.raises(ValueError, match="column 1 of X holds numbers of about .*scale it to between 3.7"):
            kica(ROWS * [1.0, scale])
    model = kica(ROWS * [1e-290, 1e290], c=1)  # the first column is nothing beside the second
    assert np.isfinite(model.sources).all() and np.isfinite(model.mixing).all()
    with pytest.raises(ValueError, match="row 2 of X overflow"):
        kica(ROWS * 1e-200).project(np.where(np.arange(40)[:, None] == 2, 1e150, ROWS * 1e-200))


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
