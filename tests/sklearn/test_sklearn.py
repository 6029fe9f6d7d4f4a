"""fastkpca.sklearn.KernelPCA: scikit-learn's numbers, and what is ours."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from child import child
from reference import center, with_eigenvalues
from scipy.linalg import LinAlgWarning

pytest.importorskip("sklearn")

from sklearn import decomposition
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

import fastkpca as fk
from fastkpca.errors import CertificateWarning, KernelParameterError
from fastkpca.kernels import CallableKernel, Kernel, get_kernel
from fastkpca.sklearn import KernelPCA, KernelPCANovelty, Nystroem
from fastkpca.solve.ridge import solve_ridge

Theirs = decomposition.KernelPCA
IRIS = load_iris().data
DIGITS = load_digits().data / 16.0


# Their numbers --------------------------------------------------------------------------------------------------

REAL = {"iris": IRIS, "digits": DIGITS[:700]}
PARAMETERS = {
    "linear": {},
    "poly": {"degree": 2, "coef0": 0.5},
    "rbf": {"gamma": 0.05},
    "sigmoid": {"gamma": 0.01},
    "cosine": {},
}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("kernel", PARAMETERS)
def test_same_numbers_and_signs(kernel, name):
    X, given = REAL[name], {"n_components": 4, "kernel": kernel, **PARAMETERS[kernel]}
    new = 0.9 * X[::5] + 0.01
    inverse = kernel != "sigmoid"  # its matrix is not positive definite: both refuse
    theirs = Theirs(fit_inverse_transform=inverse, **given).fit(X)
    ours = KernelPCA(fit_inverse_transform=inverse, **given).fit(X)
    scale = np.abs(theirs.transform(X)).max()
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=0, atol=1e-10 * theirs.eigenvalues_[0])
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), rtol=0, atol=1e-6 * scale)
    np.testing.assert_allclose(ours.eigenvectors_, theirs.eigenvectors_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours.fit_transform(X), ours.transform(X), rtol=0, atol=1e-9 * scale)
    if inverse:
        Z = theirs.transform(new)
        expected = theirs.inverse_transform(Z)
        np.testing.assert_allclose(ours.inverse_transform(Z), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
        assert ours.dual_coef_.shape == X.shape
        np.testing.assert_array_equal(ours.X_transformed_fit_, ours.fit_transform(X))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    "kernel", ["linear", "rbf", "cosine", "laplacian", "chi2", "additive_chi2", "poly", "polynomial"]
)
def test_names_of_pairwise_kernels_for_sparse_and_read_only_rows(kernel, container):
    """Some of these take no read-only rows, nor sparse ones."""
    given = {} if kernel in ("linear", "cosine", "additive_chi2") else {"gamma": 0.3}  # others have none
    X = IRIS.copy()
    X.flags.writeable = False
    ours = KernelPCA(n_components=3, kernel=kernel, **given).fit(container(X))
    K = pairwise_kernels(IRIS, metric=kernel, filter_params=True, gamma=0.3, degree=3, coef0=1)
    theirs = Theirs(n_components=3, kernel="precomputed").fit(K)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    scale = np.abs(ours.transform(container(X))).max()
    np.testing.assert_allclose(ours.transform(container(X)), theirs.transform(K), rtol=0, atol=1e-7 * max(scale, 1))
    if container is not np.asarray:
        with pytest.raises(NotImplementedError, match="sparse"):
            KernelPCA(3, kernel=kernel, fit_inverse_transform=True).fit(container(X))


@pytest.mark.parametrize("given", [{"gamma": 0.0}, {"kernel": "poly", "degree": 2.5}, {"kernel": "poly", "degree": 0}])
def test_parameters_that_only_they_accept(given):
    given = {"kernel": "rbf", "n_components": 2, **given}
    np.testing.assert_allclose(
        KernelPCA(**given).fit_transform(IRIS), Theirs(**given).fit_transform(IRIS), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("n_components", [None, 10, 200])
@pytest.mark.parametrize("remove_zero_eig", [False, True])
def test_components_without_variance(n_components, remove_zero_eig):
    """More components than the four columns of iris carry."""
    given = {"n_components": n_components, "remove_zero_eig": remove_zero_eig}
    theirs, ours = Theirs(**given).fit(IRIS), KernelPCA(**given).fit(IRIS)
    assert ours.eigenvalues_.shape == theirs.eigenvalues_.shape
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=0, atol=1e-9 * ours.eigenvalues_[0])
    V = ours.eigenvectors_
    assert V.shape == theirs.eigenvectors_.shape
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-10)
    np.testing.assert_allclose(center(IRIS @ IRIS.T) @ V, V * ours.eigenvalues_, atol=1e-9 * ours.eigenvalues_[0])
    assert np.all(ours.fit_transform(IRIS)[:, 4:] == 0) and np.all(ours.transform(IRIS)[:, 4:] == 0)
    assert np.isclose(ours.explained_variance_ratio_.sum(), 1)
    low, high = ours.eigenvalue_bounds_.T
    assert np.all(low <= ours.eigenvalues_) and np.all(ours.eigenvalues_ <= high)


@pytest.mark.parametrize("X", [np.ones((6, 3)), np.ones((1, 3))])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "sigmoid", lambda x, y: float(x @ y)])
def test_no_variance_at_all(X, kernel):
    ours = KernelPCA(n_components=2, kernel=kernel)
    theirs = Theirs(n_components=2, kernel=kernel, eigen_solver="dense")
    assert ours.fit_transform(X).shape == theirs.fit_transform(X).shape
    assert not ours.transform(X).any() and not ours.eigenvalues_.any() and ours.model_ is None
    assert KernelPCA(kernel=kernel).fit_transform(X).shape == (len(X), 0)
    assert pickle.loads(pickle.dumps(KernelPCA(n_components=2).fit(X))).transform(X).shape == ours.transform(X).shape


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("fitted", [np.float32, np.float64])
@pytest.mark.parametrize("new", [np.float32, np.float64])
def test_types_of_new_rows(kernel, fitted, new):
    X = DIGITS[:40]
    found, expected = (
        cls(3, kernel=kernel).fit(X.astype(fitted)).transform(X.astype(new)).dtype for cls in (KernelPCA, Theirs)
    )
    assert found == expected
    ours = KernelPCA(3, kernel=kernel).fit(X.astype(fitted))
    assert ours.fit_transform(X.astype(fitted)).dtype == ours.eigenvectors_.dtype == fitted
    assert ours.eigenvalues_.dtype == np.float64


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("given", [{"kernel": "poly", "gamma": 1e-6}, {"kernel": "cosine"}])
def test_equal_rows_and_as_many_components_as_rows(container, given):
    """No other way is open where a feature map leaves more than nothing of no variance."""
    X = container(np.full((60, 3), 1e-4) + 0.1)
    ours = KernelPCA(100, **given).fit(X)
    assert ours.eigenvalues_.shape == (60,) and ours.eigenvalues_.max() < 1e-10
    assert np.abs(ours.transform(X)).max() < 1e-5


# Precomputed, sparse, callables ---------------------------------------------------------------------------------


def test_precomputed_equals_the_kernel():
    K = rbf_kernel(IRIS, gamma=0.1)
    before = K.copy()
    given = KernelPCA(3, kernel="precomputed", copy_X=False).fit(K)
    np.testing.assert_array_equal(K, before)
    direct = KernelPCA(3, kernel="rbf", gamma=0.1).fit(IRIS)
    np.testing.assert_allclose(given.transform(K[:9]), direct.transform(IRIS[:9]), atol=1e-9)
    np.testing.assert_allclose(KernelPCA(3, kernel="precomputed").fit(sp.csr_array(K)).eigenvalues_, given.eigenvalues_)
    with pytest.raises(ValueError, match="must be a square matrix"):
        KernelPCA(kernel="precomputed").fit(K[:9])


def test_precomputed_with_row_and_column_offsets():
    """Centring takes them away, at new rows too; a matrix that is not symmetric is not refused."""
    rng = np.random.default_rng(3)
    S = IRIS @ IRIS.T
    a, b = rng.standard_normal((2, 150))
    K = S + a[None, :] + b[:, None]
    ours, theirs = (cls(3, kernel="precomputed").fit(K.copy()) for cls in (KernelPCA, Theirs))
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(ours.fit_transform(K), ours.transform(K), atol=1e-8)
    new = S[:7] + a[None, :] + 5.0
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), atol=1e-7)
    np.testing.assert_allclose(ours.transform(new), ours.transform(K[:7]), atol=1e-7)


@pytest.mark.parametrize("solver", ["auto", "dense", "arpack", "randomized"])
def test_significant_negative_eigenvalues(solver):
    values = np.concatenate([[10.0, 4.0, 2.0], np.zeros(33), [-0.5, -3.0, -7.0]])
    K = with_eigenvalues(np.random.default_rng(0), values, centred=True)
    for c in (1, 2, 3, 30, 38, None):
        outcomes = []
        for cls in (Theirs, KernelPCA):
            try:
                found = cls(c, kernel="precomputed", eigen_solver="dense" if cls is Theirs else solver).fit(K)
                outcomes.append(found.eigenvalues_)
            except ValueError as error:
                outcomes.append(str(error).split("(")[0])
        if solver == "randomized" and c in (2, 3, 30):  # -7 is among the largest in size
            assert "significant negative" in outcomes[1]
        elif isinstance(outcomes[0], str):
            assert outcomes[0] == outcomes[1]
        else:
            np.testing.assert_allclose(outcomes[1], outcomes[0], atol=1e-9)
    with pytest.raises(ValueError, match="negative"):
        KernelPCA(2, kernel="precomputed", eigen_solver=solver).fit(-np.eye(40))
    # in float32 theirs allows for 5e-3 of the largest
    few = with_eigenvalues(np.random.default_rng(0), np.r_[1.0, 0.5, -0.002, np.zeros(36)], centred=True)
    for cls in (KernelPCA, Theirs) if solver == "randomized" else ():
        given = {"n_components": 5, "kernel": "precomputed", "eigen_solver": solver, "random_state": 0}
        with pytest.raises(ValueError, match="significant negative"):
            cls(**given).fit(few)
        assert cls(**given).fit(few.astype(np.float32)).eigenvalues_.shape == (5,)


def histogram(x, y, power=1.0):
    assert x.ndim == y.ndim == 1
    return float(np.minimum(x, y).sum() ** power)


def test_callable_of_two_rows():
    X = DIGITS[:90]
    for keywords in (None, {"power": 0.5}):
        given = {"n_components": 3, "kernel": histogram, "kernel_params": keywords}
        ours, theirs = KernelPCA(**given).fit(X), Theirs(**given).fit(X)
        np.testing.assert_allclose(ours.transform(X[:9]), theirs.transform(X[:9]), atol=1e-8)
        np.testing.assert_array_equal(KernelPCA(n_jobs=2, **given).fit(X).transform(X[:9]), ours.transform(X[:9]))
    with pytest.raises(ValueError, match=r"the kernel function .*broken returned nan"):

        def broken(x, y):
            return np.nan

        KernelPCA(2, kernel=broken).fit(X[:9])


def test_callable_gets_sparse_rows_as_from_them():
    kinds = set()

    def kernel(x, y):
        kinds.add(type(x))
        return float((x @ y.T).toarray()[0, 0])

    X = sp.csr_array(DIGITS[:30])
    ours, theirs = KernelPCA(2, kernel=kernel).fit(X), Theirs(2, kernel=kernel).fit(X)
    assert len(kinds) == 1
    np.testing.assert_allclose(ours.transform(X[:4]), theirs.transform(X[:4]), atol=1e-9)


# What is ours ---------------------------------------------------------------------------------------------------


def test_kernels_of_fastkpca():
    by_name = KernelPCA(3, kernel="gaussian", kernel_params={"sigma": 2.0}).fit(IRIS)
    rbf = KernelPCA(3, kernel="rbf", gamma=1 / 8).fit(IRIS)
    np.testing.assert_array_equal(by_name.transform(IRIS), rbf.transform(IRIS))
    np.testing.assert_array_equal(
        KernelPCA(3, kernel="gaussian", gamma=1 / 8).fit_transform(IRIS), rbf.fit_transform(IRIS)
    )
    summed = get_kernel("gaussian", sigma=2.0) + get_kernel("linear")
    for kernel in (summed, CallableKernel(function=lambda X, Y: X @ Y.T)):
        assert isinstance(kernel, Kernel)
        assert KernelPCA(2, kernel=kernel, fit_inverse_transform=True).fit(IRIS).inverse_transform(
            np.zeros((3, 2))
        ).shape == (3, 4)
    heuristic = KernelPCA(2, kernel="gaussian", fit_inverse_transform=True).fit(IRIS)
    assert heuristic.model_.kernel.sigma > 0 and np.isfinite(heuristic.inverse_transform(np.zeros((1, 2)))).all()


def test_a_fraction_of_the_variance():
    ours = KernelPCA(0.9, kernel="rbf", gamma=0.05).fit(DIGITS[:200])
    assert ours.explained_variance_ratio_.sum() >= 0.9 > ours.explained_variance_ratio_[:-1].sum()


def test_solver_names_and_methods():
    X = DIGITS[:700]
    reference = KernelPCA(3, kernel="rbf", eigen_solver="dense").fit(X)
    assert reference.model_.plan.method == "dense"
    for given in ({"eigen_solver": "arpack"}, {"eigen_solver": "randomized", "random_state": 5}, {"method": "krylov"}):
        found = KernelPCA(3, kernel="rbf", iterated_power=1, **given).fit(X)
        assert found.model_.plan.method == "krylov" or "method" not in given
        np.testing.assert_allclose(found.transform(X), reference.transform(X), atol=1e-6)
    with pytest.raises(ValueError, match="give one"):
        KernelPCA(2, method="dense", eigen_solver="arpack").fit(X)


def test_tol_says_what_is_reached_and_zero_is_silent():
    X = DIGITS[:2100]  # LAPACK is no way out at this size
    with pytest.warns(CertificateWarning, match="tol=0 asks for the best"):
        KernelPCA(2, kernel="rbf", gamma=1.0, max_iter=1, memory_limit="40MB").fit(np.vstack([X, 0.99 * X])[:2100])
    with pytest.warns(CertificateWarning):
        KernelPCA(2, kernel="rbf", gamma=0.05, tol=1e-15).fit(X[:300])
    KernelPCA(2, kernel="rbf", gamma=0.05).fit(X[:300])
    KernelPCA(2, kernel="rbf", gamma=0.05, tol=5.0).fit(X[:300])


def test_many_rows_without_the_matrix(tmp_path):
    """60,000 rows, of which the matrix would take 29 GB; a memory map stays one."""
    path = tmp_path / "X.npy"
    rng = np.random.default_rng(0)
    np.save(path, rng.standard_normal((60_000, 3)) * [3.0, 1.0, 0.3])
    X = np.load(path, mmap_mode="r")
    ours = KernelPCA(3, kernel="poly", degree=2, gamma=0.1).fit(X)
    assert np.shares_memory(ours.X_fit_, X)
    subset = X[:: 60_000 // 50]
    np.testing.assert_allclose(ours.transform(subset), ours.fit_transform(X)[:: 60_000 // 50], atol=1e-9)
    few = KernelPCA(3, kernel="poly", degree=2, gamma=0.1).fit(X[:3000])
    theirs = Theirs(3, kernel="poly", degree=2, gamma=0.1).fit(X[:3000])
    np.testing.assert_allclose(few.transform(subset), theirs.transform(subset), atol=1e-6)


def test_ridge_by_iterations_equals_cholesky():
    Z = KernelPCA(6, kernel="rbf", gamma=0.1).fit_transform(DIGITS[:400])
    kernel = get_kernel("gaussian", gamma=1.0)
    direct = solve_ridge(kernel, Z, DIGITS[:400], 1e-2, 1 << 30)
    np.testing.assert_allclose(solve_ridge(kernel, Z, DIGITS[:400], 1e-2, 1000), direct, atol=1e-7)
    K = rbf_kernel(Z, gamma=1.0) + 1e-2 * np.eye(400)
    np.testing.assert_allclose(K @ direct, DIGITS[:400], atol=1e-9)
    with pytest.raises(np.linalg.LinAlgError, match="larger alpha"):
        solve_ridge(kernel, Z, DIGITS[:400], -50.0, 1000)


def test_a_regression_that_is_singular_to_rounding_is_a_warning_in_words():
    X = 10 * np.random.default_rng(0).standard_normal((12, 5))
    with pytest.warns(LinAlgWarning, match="singular to rounding .* give a larger alpha") as raised:
        KernelPCA(2, kernel="poly", fit_inverse_transform=True).fit(X)
    assert raised[0].filename == __file__
    model = KernelPCA(2, kernel="rbf", fit_inverse_transform=True, alpha=1.7e308).fit(X)  # no false warning
    assert np.isfinite(model.inverse_transform(model.transform(X))).all()


# Beside the other estimators ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"kernel": "laplacian"},
        {"kernel": histogram},
        {"kernel": "rbf", "method": "features", "tol": 1e-3},
        {"kernel": get_kernel("gaussian", sigma=1.0) + get_kernel("linear")},
    ],
)
def test_pickles_and_clones_give_the_same_bits(given):
    X = IRIS[:80]
    ours = KernelPCA(n_components=3, **given).fit(X)
    again = pickle.loads(pickle.dumps(ours))
    for name in ("eigenvectors_", "eigenvalue_bounds_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(ours, name))
    assert repr(again.model_) == repr(ours.model_) and str(again.model_.plan) == str(ours.model_.plan)
    for other in (again, clone(ours).fit(X)):
        np.testing.assert_array_equal(other.transform(X), ours.transform(X))


@pytest.mark.parametrize("container", [np.asarray, np.float32, sp.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_a_pickle_holds_the_rows_once(container, kernel):
    X = container(np.random.default_rng(0).uniform(size=(200, 150)) + 0.1)
    ours = KernelPCA(2, kernel=kernel, method="dense").fit(X)
    packed = pickle.dumps(ours)
    size = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes
    assert len(packed) < size + 50_000  # the rows in float64 are 240,000
    for again in (pickle.loads(packed), copy.deepcopy(ours), copy.copy(ours)):
        np.testing.assert_array_equal(again.model_.projector.landmarks, ours.model_.projector.landmarks)
        np.testing.assert_array_equal(again.transform(X), ours.transform(X))
        assert len(pickle.dumps(again)) < size + 50_000


def test_pickles_of_rows_that_changed_and_of_a_matrix():
    X = IRIS.copy()
    ours = KernelPCA(2, kernel="rbf", method="dense").fit(X)
    expected = ours.transform(IRIS)
    ours.X_fit_[0] += 1.0  # its rows are no longer those of the model, which stays as it is
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)).transform(IRIS), expected)
    assert pickle.loads(pickle.dumps(KernelPCA(2))).n_components == 2
    matrix = KernelPCA(2, kernel="precomputed").fit(X @ X.T)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(matrix)).transform(X @ X.T), matrix.transform(X @ X.T))


NO_PARAMETERS = [("n_components", 0), ("n_components", 1.5), ("gamma", -1), ("tol", -1), ("eigen_solver", "x")]
NO_PARAMETERS += [("alpha", "a"), ("kernel", "unknown"), ("kernel", 3), ("random_state", "x"), ("method", "lapack")]
NO_PARAMETERS += [("tol", 10**400)]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"kernel": "rbf", "kernel_params": {"sigma": 2.0}}, r"'sigma'.*gamma; give gamma=1 / \(2 \* sigma\*\*2\)"),
        ({"kernel": "rbf", "kernel_params": {"gamma": 2.0}}, "give gamma= of the estimator"),
        ({"kernel": "polynomial", "kernel_params": {"offset": 2.0}}, "takes coef0, degree, gamma; give coef0="),
        ({"kernel": "linear", "kernel_params": {"sigma": 2.0}}, "the kernel 'linear' takes no parameters$"),
        ({"kernel": "cosine", "gamma": 2.0}, "gamma=2.0 was given, and would be ignored: the kernel 'cosine' takes no"),
        ({"kernel": "rbf", "degree": 2}, "degree=2 .* 'rbf' takes gamma$"),
        ({"kernel": "linear", "coef0": 0.0}, "coef0=0.0 was given"),
        ({"kernel": "gaussian", "coef0": 0.0}, "'gaussian' takes gamma, .*sigma, in kernel_params"),
        ({"kernel": "gaussian", "gamma": 1.0, "kernel_params": {"gamma": 2.0}}, "were both given; drop one"),
        ({"kernel": "plain", "gamma": 3.0}, "gamma=3.0 .* 'plain' takes width, in kernel_params"),
        ({"kernel": histogram, "gamma": 3.0}, "a function of two rows has its parameters in kernel_params"),
        ({"kernel": get_kernel("gaussian"), "gamma": 3.0}, "a kernel object, or a class, has its own"),
        ({"kernel": "precomputed", "gamma": 3.0}, "gamma=3.0 was given"),
        *(({name: value}, f"The '{name}' parameter of KernelPCA") for name, value in NO_PARAMETERS),
        ({"alpha": 10**400, "fit_inverse_transform": True}, "The 'alpha' parameter of KernelPCA"),
    ],
)
def test_what_would_be_ignored_and_what_is_no_parameter_are_errors(given, text):
    from sklearn.utils._param_validation import InvalidParameterError

    class Plain(Kernel):
        parameters = {"width": 1.0}

        def block(self, X, Y):
            return self.width * X @ Y.T

    X = rbf_kernel(IRIS) if given.get("kernel") == "precomputed" else IRIS
    with fk.register_kernel("plain", Plain), pytest.raises(InvalidParameterError, match=text):
        KernelPCA(**{"n_components": 2} | given).fit(X)


def test_defaults_are_never_asked_for():
    for kernel in ("linear", "rbf", "cosine", "gaussian", histogram, get_kernel("gaussian")):
        KernelPCA(2, kernel=kernel, gamma=None, degree=3, coef0=1).fit(IRIS[:40])
    one = KernelPCA(2, kernel="tanh", gamma=0.01, coef0=0.5).fit(IRIS)
    two = KernelPCA(2, kernel="sigmoid", gamma=0.01, coef0=0.5).fit(IRIS)
    np.testing.assert_allclose(one.eigenvalues_, two.eigenvalues_, rtol=1e-9)
    for coef0 in (0.0, 1, 2.0):  # a search may have the estimator's default among its values
        assert KernelPCA(1, kernel="tanh", gamma=0.5, coef0=coef0).fit(0.1 * IRIS).model_.kernel.offset == coef0
    for name in ("offset", "coef0"):
        assert KernelPCA(1, kernel="tanh", kernel_params={name: 0.25}).fit(0.1 * IRIS).model_.kernel.offset == 0.25


@pytest.mark.filterwarnings("ignore:the widest interval:fastkpca.errors.CertificateWarning")
def test_names_of_columns_reach_the_model_and_the_kernel():
    pytest.importorskip("pandas")
    frame = load_iris(as_frame=True).data
    names = tuple(frame.columns)
    ours = KernelPCA(2, kernel="rbf").fit(frame)
    assert ours.model_.feature_names == fk.kpca_importance(ours, frame).names == names
    assert KernelPCA(2, kernel="rbf").fit(frame.to_numpy()).model_.feature_names is None
    grown = KernelPCA(2, kernel="rbf").partial_fit(frame[:75]).partial_fit(frame[75:])
    assert grown.model_.feature_names == names
    inner = fk.on_columns("gaussian", names[1], sigma=0.5)
    kernel = 0.5 * fk.on_columns("gaussian", names[2:], sigma=1.0) + fk.on_columns(inner, names[:2])
    numbers = 0.5 * fk.on_columns("gaussian", [2, 3], sigma=1.0) + fk.on_columns("gaussian", [1], sigma=0.5)
    rows = frame.to_numpy()
    by_name, by_number = KernelPCA(2, kernel=kernel).fit(frame), KernelPCA(2, kernel=numbers).fit(rows)
    np.testing.assert_allclose(by_name.transform(frame), by_number.transform(rows), rtol=0, atol=1e-12)
    clone(by_name).partial_fit(frame)
    novelty = KernelPCANovelty(2, kernel=kernel).fit(frame)
    np.testing.assert_array_equal(
        novelty.score_samples(frame), KernelPCANovelty(2, kernel=numbers).fit(rows).score_samples(rows)
    )
    assert novelty.model_.feature_names == names
    np.testing.assert_allclose(
        Nystroem(kernel, n_components=9).fit_transform(frame), Nystroem(numbers, n_components=9).fit_transform(rows)
    )
    with pytest.raises(KernelParameterError, match="no column 'petal lengh .cm.' .did you mean"):
        KernelPCA(2, kernel=fk.on_columns("gaussian", "petal lengh (cm)")).fit(frame)
    with pytest.raises(KernelParameterError, match="give a data frame"):
        KernelPCA(2, kernel=kernel).fit(rows)


def test_what_is_not_fitted_says_so():
    for call in (lambda e: e.transform(IRIS), lambda e: e.inverse_transform(IRIS)):
        with pytest.raises(NotFittedError):
            call(KernelPCA(fit_inverse_transform=True))
    with pytest.raises(NotFittedError, match="fit_inverse_transform=True"):
        KernelPCA().fit(IRIS).inverse_transform(IRIS)
    assert not hasattr(KernelPCA().fit(IRIS), "inverse_transform")
    assert hasattr(KernelPCA(fit_inverse_transform=True), "inverse_transform")
    assert not hasattr(KernelPCA(), "eigenvectors_")


def test_the_import_without_scikit_learn_says_how_to_install():
    code = """
        import sys
        sys.modules["sklearn"] = None  # as if it were not installed
        import fastkpca
        try:
            import fastkpca.sklearn
        except ImportError as error:
            print(error)
    """
    assert "pip install 'fastkpca[sklearn]'" in " ".join(child(code))


def test_all_components_of_many_rows_are_refused_with_a_way_out():
    X = np.random.default_rng(0).standard_normal((2500, 4))
    with pytest.raises(ValueError, match="n_components=None asks for every component of 2500 rows.*memory_limit"):
        KernelPCA(kernel="laplacian", gamma=5.0, memory_limit="40MB").fit(X)


def test_a_fit_that_failed_leaves_no_fitted_estimator():
    X = np.random.default_rng(0).standard_normal((600, 5))
    estimator = KernelPCA(3, kernel="rbf", memory_limit=1)
    with pytest.raises(ValueError, match="memory_limit"):
        estimator.fit(X)
    assert estimator.n_features_in_ == 5
    with pytest.raises(NotFittedError):
        estimator.transform(X)


def test_functions_of_models_take_a_fitted_estimator(tmp_path):
    X = np.random.default_rng(0).standard_normal((50, 3))
    estimator = KernelPCA(2, kernel="rbf").fit(X)
    calls = [
        lambda e: fk.kpca_project(e, X),
        lambda e: fk.kpca_denoise(e, X),
        lambda e: fk.kpca_preimage(e, X[:, :2]),
        lambda e: fk.kpca_spe(e, X),
        lambda e: fk.save(e, tmp_path / "m.kpca", overwrite=True),
        lambda e: fk.export_mat(e, tmp_path / "m.mat", overwrite=True),
    ]
    for call in calls:
        np.testing.assert_array_equal(call(estimator), call(estimator.model_))
        with pytest.raises(TypeError, match="type KernelPCA; give .* or a fitted estimator"):
            call(KernelPCA(2))
        with pytest.raises(TypeError, match=r"type ndarray; give what kpca\(\)"):
            call(X)


def test_max_features_is_a_budget():
    X = np.random.default_rng(0).standard_normal((1500, 6))
    few = KernelPCA(3, kernel="rbf", max_features=50).fit(X)
    assert few.model_.info["n_features"] == 50 and few.transform(X).shape == (1500, 3)
    with pytest.raises(ValueError, match="give one of them"):
        KernelPCA(3, kernel="rbf", max_features=50, eigen_solver="arpack").fit(X)
    with pytest.raises(ValueError, match="max_features is 2, which gives at most 2 components"):
        KernelPCA(3, kernel="rbf", max_features=2).fit(X)
