"""What methods and kernels of kernels_contrib refuse, each for a reason of its own, in words."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_contrib.anova import Anova
from kernels_contrib.cca import kernel_cca
from kernels_contrib.clustering import assign, kernel_kmeans
from kernels_contrib.components import kernel_pc_logistic, kernel_pcr
from kernels_contrib.diffusion import diffusion_map, spectral_clustering
from kernels_contrib.histograms import ChiSquared
from kernels_contrib.hsic import hsic_test
from kernels_contrib.kbda import kbda
from kernels_contrib.kica import kica, kica_contrast, kica_project
from kernels_contrib.klda import klda, klda_project
from kernels_contrib.logistic import kernel_logistic
from kernels_contrib.mmd import mmd_test
from kernels_contrib.perceptron import kernel_perceptron, perceptron_predict
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge
from kernels_contrib.strings import Spectrum

import fastkpca as fk
from fastkpca.errors import KernelParameterError, UnknownKernelError

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
    *((lambda f=f: f(X @ X.T, X, "precomputed"), ValueError, "not the matrix") for f in (hsic_test, kernel_cca)),
    *((lambda f=f: f(X, X, "tanh"), ValueError, "[tT]anh") for f in (mmd_test, hsic_test, kernel_cca)),
]
TARGETS = [
    *((lambda f=f: f(X, T, "tanh"), ValueError, "[tT]anh") for f in (kernel_pls, kernel_ridge)),
    *((lambda f=f: f(X, WORDS), ValueError, "give real numbers.*for each class") for f in (kernel_pls, kernel_ridge)),
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
    (lambda: kernel_perceptron(X, Y, averaged="x"), TypeError, "averaged is 'x'; give True or False"),
    (lambda: kernel_perceptron(X, Y, shuffle="x"), TypeError, "shuffle is 'x'; give True or False"),
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
    (lambda: kernel_kmeans(X @ X.T, "precomputed", 2), ValueError, "is not positive semidefinite.*semidefinite=True"),
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
