"""Arguments of the wrong kind: each is refused by a documented class, in words that name it."""

from __future__ import annotations

import importlib
import re
import warnings
from pathlib import Path

import fuzz_calls
import numpy as np
import pytest
import scipy.sparse as sp
from kernels_contrib.perceptron import kernel_perceptron
from numpy.lib.stride_tricks import as_strided
from scipy.sparse.linalg import aslinearoperator

import fastkpca as fk
from fastkpca import errors, testing
from fastkpca.errors import KernelParameterError, UnknownKernelError
from kernels_contrib import klda, storage

RNG = np.random.default_rng(7)
X = RNG.standard_normal((40, 3))
Y = np.arange(40) % 3
MODEL = fk.kpca(X, "gaussian", 2, sigma=1.5)


HUGE = 10**400


# Every argument of a kind ------------------------------------------------------------------------------------------

BY_SCIKIT_LEARN = {"copy_X", "fit_inverse_transform", "remove_zero_eig"}  # checked by it, in its words
NUMBERS = {"tol", "gamma", "sigma", "degree", "offset", "length_scale", "max_passes", "n_bootstrap"}
NUMBERS |= {"alpha", "regularization", "factor", "max_iter", "n_permutations", "confidence", "level", "folds", "time"}


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """Right calls of every public function."""
    return fuzz_calls.RightCalls(tmp_path_factory.mktemp("calls"))


@pytest.mark.parametrize(
    ("names", "wrong", "text"),
    [
        (fuzz_calls.FLAGS - BY_SCIKIT_LEARN, ("no", 1, np.array([True, False])), "{name} is {wrong}; give True"),
        (NUMBERS, (HUGE,), "{name}.*(is|Got) (10000|inf|a number beyond float64|of type int; give one positive)"),
        ({"tol"}, (-1.0, np.nan, "x"), "tol.*(is|Got|has shape) "),
        ({"max_features", "max_iterations"}, (0, True), "{name}"),
        ({"method"}, (sp.csr_matrix(np.eye(2)), "none"), "{name} is |'{name}' parameter"),
        ({"ax"}, (3,), "ax is of type int; give axes of matplotlib|and 1 axes; one for each is needed"),
    ],
)
def test_it_is_refused_by_its_name_wherever_it_is_given(right, names, wrong, text):
    asked = [
        (call, name, x) for call, (_, given) in right.calls.items() for name in names & given.keys() for x in wrong
    ]
    assert len(asked) > 10
    for call, name, x in asked:
        with pytest.raises((TypeError, ValueError), match=text.format(name=name, wrong=re.escape(repr(x)))):
            right.call(call, {name: x}, drawn=False)()


# True or False -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("truth", ["no", 0, 1, None, np.array([True])])
def test_no_file_is_overwritten_by_what_is_no_truth_value(right, tmp_path, truth):
    writers = {call: given["path"] for call, (_, given) in right.calls.items() if {"path", "overwrite"} <= given.keys()}
    assert len(writers) > 4
    for call, place in writers.items():
        path = tmp_path / f"{call}{Path(place).suffix}"
        path.write_bytes(b"mine")
        with pytest.raises(TypeError, match=r"overwrite is .*; give True or False"):
            right.call(call, {"path": path, "overwrite": truth}, drawn=False)()
        assert path.read_bytes() == b"mine"


def test_numpys_truth_values_are_truth_values(tmp_path):
    fk.save(MODEL, tmp_path / "m.kpca", scores=np.True_)
    with pytest.raises(FileExistsError, match=r"exists already.*save\(..., overwrite=True\) replaces it"):
        fk.save(MODEL, tmp_path / "m.kpca", overwrite=np.False_)
    fk.save(MODEL, tmp_path / "m.kpca", overwrite=np.True_)
    assert fk.load(tmp_path / "m.kpca", plugins=np.False_).n_components == 2
    discriminant = klda.klda(X, Y, "gaussian", sigma=1.5)
    storage.save(discriminant, tmp_path / "k")
    for plugins in (np.False_, np.True_, False, (), "mine"):
        assert storage.load(tmp_path / "k", plugins=plugins).kernel == discriminant.kernel
    with pytest.raises(TypeError, match="plugins is 3; give True, False"):
        storage.load(tmp_path / "k", plugins=3)


# Numbers -----------------------------------------------------------------------------------------------------------


def test_a_memory_limit_beyond_all_memory_is_none():
    for limit in (HUGE, "9" * 400):
        assert fk.kpca(X, "gaussian", 2, sigma=1.5, memory_limit=limit).n_components == 2


# Rows, models and places -------------------------------------------------------------------------------------------


def test_a_memoryview_is_rows():
    for given in (memoryview(X), memoryview(np.asfortranarray(X))):
        np.testing.assert_array_equal(fk.kpca(given, "gaussian", 2, sigma=1.5).score, MODEL.score)


def read_only():
    out = np.zeros((40, 2))
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        (lambda: sp.lil_matrix((40, 2)), TypeError, "give a writeable array"),
        (lambda: np.ma.zeros((40, 2)), TypeError, "give a writeable array"),
        (lambda: as_strided(np.zeros((40, 2)), (40, 2), (0, 8)), ValueError, "give a writeable array"),
        (lambda: as_strided(np.zeros(41), (40, 2), (8, 8)), ValueError, "give a writeable array"),
        (list, TypeError, "out is of type list"),
        (lambda: np.zeros((40, 3), "f4"), ValueError, r"\(40, 3\) and type float32; give .*\(40, 2\) and type float64"),
        (read_only, ValueError, "out is read-only"),
    ],
)
def test_scores_have_each_a_place_of_their_own(out, error, text):
    for write in (lambda place: fk.kpca_project(MODEL, X, out=place), lambda place: fk.kpca(X, c=2, out=place)):
        with pytest.raises(error, match=text):
            write(out())


@pytest.mark.parametrize("out", [np.zeros((2, 40)).T, np.zeros((40, 4))[:, ::2], np.zeros((40, 4))[::-1, 1:3]])
def test_views_that_do_not_overlap_are_places(out):
    assert fk.kpca_project(MODEL, X, out=out) is out
    np.testing.assert_array_equal(out, fk.kpca_project(MODEL, X))


def test_every_class_of_errors_is_listed():
    own = {x.__name__ for x in vars(errors).values() if isinstance(x, type) and issubclass(x, Exception)}
    assert own == {name for name in errors.__all__ if name != "warn_caller"}


# Plots and checks --------------------------------------------------------------------------------------------------


def fit(kernel="gaussian", c=2, rows=X, **options):
    return lambda: fk.kpca(rows, kernel, c, **options)


def spe(diagonal):
    K = X @ X.T
    return lambda: fk.kpca_spe(fk.kpca(K, "precomputed", 2), K[:3], diagonal=diagonal)


def prior(given):
    return lambda: klda.klda_predict(klda.klda(X, Y, "gaussian", sigma=1.5), X, prior=given)


DIAGONAL = r"diagonal .*give k\(x, x\) of each of the 3 rows"
PRIOR = "prior .*give 3 positive numbers, one for each class"
OPERATOR = r"of type \w*LinearOperator; give an array"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        # parameters of kernels
        *((fit(sigma=x), KernelParameterError, "sigma") for x in (0.0, -1.0, np.nan, np.inf, "wide", True)),
        *((fit("polynomial", degree=x), KernelParameterError, "degree") for x in (0, 2.5)),
        (fit("rbf", gamma=-1.0), KernelParameterError, "gamma"),
        (fit("polynomial", degree=2, offset=np.nan), KernelParameterError, "offset"),
        (fit("tanh", scale=np.nan), KernelParameterError, "scale"),
        (fit(sigma=[1, [2]]), KernelParameterError, r"sigma is \[1, \[2\]\]; give a number, or a list"),
        (fit(sigma=np.ma.masked_array(np.ones(3), [1, 0, 0])), KernelParameterError, "sigma has masked entries"),
        (fit(degree=3), TypeError, "Gaussian has no parameter 'degree'; it takes: sigma, gamma"),
        (fit(rows=np.ones((20, 3))), KernelParameterError, "all rows of X are equal"),
        # names that are misspelled, or those of other libraries
        (fit("gausian"), UnknownKernelError, "did you mean 'gaussian'"),
        (fit("RBF"), UnknownKernelError, "did you mean 'rbf'"),
        (fit("sigm"), UnknownKernelError, "did you mean 'sigmoid'"),
        (fit("cubic"), UnknownKernelError, "it is 'polynomial' with degree=3 here"),
        (fit("rbfdot"), UnknownKernelError, "it is 'rbf' with its sigma as gamma here"),
        (fit("fastkpca:gausian"), UnknownKernelError, "did you mean 'gaussian'"),
        (fit(NumComponents=3), TypeError, "no parameter 'NumComponents'.*NumComponents is called c.* here"),
        (fit(n_jobs=3), TypeError, "no parameter 'n_jobs'.*n_jobs is called n_threads.* here"),
        (fit(random_state=3), TypeError, "no parameter 'random_state'.*random_state is called rng.* here"),
        (fit(KernelScale=3), TypeError, r"no parameter 'KernelScale'.*KernelScale is called sqrt\(2\) \* sigma.* here"),
        (lambda: fk.plan(X, sgima=3), TypeError, "'sgima'; did you mean 'sigma'[?] it takes: sigma, gamma$"),
        (fit("polynomial", degre=3), TypeError, "no parameter 'degre'; did you mean 'degree'"),
        (fit(Sigma=3.0), TypeError, "did you mean 'sigma'"),
        (fit(max_pases=3), TypeError, "or, of kpca itself, did you mean 'max_passes'"),
        (fit(n_component=2), TypeError, r"of kpca itself.*'n_components' \(called c here\)"),
        (fit(n_components=2), TypeError, "no parameter 'n_components'.*n_components is called c here"),
        (lambda: fk.gram(X, "gaussian", tolerance=1e-3), TypeError, "tolerance is called tol here"),
        (lambda: fk.gram(X, "gaussian", n_thread=2), TypeError, "of gram itself.*'n_threads'"),
        (lambda: fk.features(X, "gaussian", max_feature=2), TypeError, "of features itself.*'max_features'"),
        (fit(lambda A, B: A @ B.T, positive_semidefinit=True), TypeError, "did you mean 'positive_semidefinite'"),
        (fit(method="krilov"), ValueError, "did you mean 'krylov'"),
        (fit(features="pivot"), ValueError, "no map of this name .*did you mean 'pivots'"),
        (fit(products="exct"), ValueError, "did you mean 'exact'"),
        # values of other arguments
        (fit(c=np.arange(40)), TypeError, "c is of type ndarray; give a whole number"),
        (fit(tol=0.0), ValueError, "tol is 0.0"),
        (fit(memory_limit="much"), ValueError, "memory_limit is 'much'"),
        (fit(n_threads=0), ValueError, "n_threads is 0"),
        (lambda: fk.features(X, "linear", max_features=HUGE), ValueError, "max_features is 10000"),
        (fit(rng=1.5), TypeError, "rng is 1.5"),
        (fit(rows=aslinearoperator(X @ X.T)), TypeError, OPERATOR),
        (fit("precomputed", rows=aslinearoperator(X @ X.T)), TypeError, OPERATOR),
        (
            lambda: fk.features(X, "gaussian", features=sp.csr_array(X)),
            TypeError,
            "features is .*; give 'auto', or the na",
        ),
        (lambda: fk.kpca_select(X, memoryview(X), [1]), TypeError, "kernel is of type memoryview; give a name"),
        (
            lambda: kernel_perceptron(X, Y, "linear", method=sp.csr_array(X)),
            TypeError,
            "method is .*; give one of 'auto'",
        ),
        (spe(np.ones(3) * 1j), TypeError, DIAGONAL),
        (spe(["1", "2", "3"]), TypeError, DIAGONAL),
        (spe(np.ma.masked_array(np.ones(3), [True, False, False])), ValueError, DIAGONAL),
        *((spe(x), ValueError, DIAGONAL) for x in ([1.0, np.nan, 1.0], np.ones(2), [1, [2], 3])),
        *((prior(x), (ValueError, TypeError), PRIOR) for x in ("uniform", [1, 2], [1, 1, 1j], [0, 1, 1], [HUGE, 1, 1])),
        (lambda: fk.save(MODEL, "a\0b"), ValueError, "zero byte"),
        *(
            (lambda n=n: fk.kpca_project(MODEL, np.ones((3, n))), ValueError, f"X has {n} .* on 3; give .*{hint}")
            for n, hint in ((1, "; X may be transposed"), (2, "order$"), (4, "order$"))
        ),
        # a power beyond float64
        *(
            (fit("polynomial", degree=8, rows=X * 1e60, method=x), ValueError, "^(?!.*(nan|NaN)).*olynomial.*scale")
            for x in ("dense", "features", "krylov")
        ),
        # checks of kernels
        (lambda: testing.check_kernel("linear", skip=None), TypeError, "skip is None; give a list of names of checks"),
        (lambda: testing.check_kernel("linear", skip="check_dtype"), TypeError, "skip is 'check_dtype'; give a list"),
        (lambda: testing.parametrize_with_kernel_checks("linear"), TypeError, "kernels is 'linear'; give a list"),
        (lambda: testing.check_symmetry("linear", X * 1j), testing.ConformanceError, "X is complex"),
    ],
)
def test_what_is_wrong_is_refused_in_words(call, error, text):
    with pytest.raises(error, match=f"(?s){text}"):
        call()


# Numbers at the ends of their range --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        # the corner of a box of columns, squared
        lambda: fk.kpca(X * 1e200, fk.on_columns("cosine", [0, 1]), 2, method="dense").eigenvalues,
        # a product of kernels of which one overflows
        lambda: fk.kpca_project(
            fk.kpca(X, fk.get_kernel("cosine") * fk.get_kernel("polynomial", degree=3) + fk.get_kernel("linear"), 2),
            X * 1e130,
        ),
        lambda: fk.kpca_denoise(fk.kpca(X * 1e150, "cosine", 2), X[:5] * 1e150, max_iter=5),
        lambda: fk.kpca_select(X * 1e200, fk.on_columns("cosine", [0, 1]), [1], folds=2).columns["preimage"],
    ],
)
def test_ends_of_the_range_give_finite_numbers_or_words(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", errors.PreimageWarning)
        try:
            answer = call()
        except ValueError as error:
            assert "finite" in str(error) or "range" in str(error)
        else:
            assert np.isfinite(np.asarray(answer)).all()


def test_what_registered_names_mean_goes_before_what_others_call_them():
    registry = importlib.import_module("fastkpca.kernels.registry")
    own = {spelling for entry in registry.BUILTINS.values() for spelling in (entry.name, *entry.aliases)}
    assert not own & set(registry._ELSEWHERE)
    with fk.register_kernel("cubic", lambda A, B: (A @ B.T) ** 3):
        assert fk.get_kernel("cubic") is not None
