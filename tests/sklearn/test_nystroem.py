"""fastkpca.sklearn.Nystroem: scikit-learn's numbers, and its bounds attacked."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from reference import center

pytest.importorskip("sklearn")

from sklearn import kernel_approximation
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

import fastkpca as fk
from fastkpca.kernels import Kernel
from fastkpca.sklearn import Nystroem

Theirs = kernel_approximation.Nystroem
IRIS = load_iris().data
DIGITS = load_digits().data / 16.0


# The numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"gamma": 0.2},
        {"kernel": "poly", "degree": 2, "coef0": 0.5},
        {"kernel": "poly", "degree": 2.5},
        {"kernel": "laplacian"},
        {"kernel": "chi2"},
        {"kernel": "sigmoid", "gamma": 1e-3},
        {"kernel": "rbf", "kernel_params": {"gamma": 0.3}},
        {"kernel": lambda x, y: float(np.minimum(x, y).sum())},
    ],
)
@pytest.mark.parametrize("new", [IRIS, IRIS[:7] + 0.1])
def test_uniform_landmarks_give_their_numbers(given, new):
    theirs = Theirs(n_components=12, random_state=3, **given).fit(IRIS)
    ours = Nystroem(n_components=12, random_state=3, selection="uniform", **given).fit(IRIS)
    same = Nystroem(**theirs.get_params(), landmarks=theirs.component_indices_).fit(IRIS)
    K_theirs = theirs.transform(new) @ theirs.transform(new).T
    for model in (ours, same):
        np.testing.assert_array_equal(model.component_indices_, theirs.component_indices_)
        np.testing.assert_array_equal(model.components_, theirs.components_)
        K = model.transform(new) @ model.transform(new).T
        np.testing.assert_allclose(K, K_theirs, atol=1e-6 * np.abs(K_theirs).max())
    rows = Nystroem(**given, landmarks=theirs.components_).fit(IRIS)
    assert rows.component_indices_ is None and rows.n_features_in_ == 4
    np.testing.assert_allclose(rows.transform(IRIS[:9]), same.transform(IRIS[:9]), atol=1e-9)
    metric = given.get("kernel", "rbf")
    values = {k: v for k, v in given.items() if k not in ("kernel", "kernel_params")} | given.get("kernel_params", {})
    K = pairwise_kernels(new, ours.components_, metric=metric, filter_params=True, **values)
    np.testing.assert_allclose(K @ ours.normalization_.T, ours.transform(new), atol=1e-6)


def test_a_random_state_that_is_handed_on_gives_their_landmarks():
    ours, theirs = (
        cls(n_components=9, random_state=np.random.RandomState(4), **given).fit(IRIS).component_indices_
        for cls, given in ((Nystroem, {"selection": "uniform"}), (Theirs, {}))
    )
    np.testing.assert_array_equal(ours, theirs)


def residual(model, X, K):
    Z = model.transform(X)
    return np.linalg.eigvalsh(K - Z @ Z.T)


CASES = {
    "digits": (DIGITS[:700], 0.02),
    "iris": (IRIS, 0.5),
    "far rows": (np.vstack([np.random.default_rng(0).standard_normal((500, 3)), 100.0 + np.zeros((3, 3))]), 0.2),
    "narrow": (np.random.default_rng(1).standard_normal((400, 4)), 20.0),
    "twice": (np.tile(np.random.default_rng(2).standard_normal((60, 5)), (4, 1)), 0.1),
    "equal": (np.ones((50, 2)), 1.0),
}


@pytest.mark.parametrize("selection", ["random_pivoting", "uniform"])
@pytest.mark.parametrize("number", [1, 20, 50])
@pytest.mark.parametrize("case", CASES)
def test_features_reproduce_the_matrix_up_to_the_residual(case, number, selection):
    X, gamma = CASES[case]
    K = rbf_kernel(X, gamma=gamma)
    model = Nystroem(gamma=gamma, n_components=number, random_state=1, selection=selection).fit(X)
    values, slack = residual(model, X, K), 1e-9 * len(X)
    assert values[0] >= -slack  # nothing is taken away that K does not have
    assert model.residual_trace_ == pytest.approx(values.sum(), rel=1e-6, abs=slack)
    assert model.residual_trace_ >= values.sum() - 1e-12 * len(X)
    assert values[-1] - slack <= model.residual_norm_ <= model.residual_trace_
    assert model.failure_probability_ in (0.0, 1e-6)
    assert (model.failure_probability_ == 0.0) == (model.residual_norm_ == model.residual_trace_)
    assert len(set(model.component_indices_)) == number
    np.testing.assert_array_equal(model.components_, X[model.component_indices_])


def test_random_pivots_leave_less_than_uniform_rows_where_a_few_rows_are_far():
    X = CASES["far rows"][0]
    pivots, uniform = (
        Nystroem(gamma=0.02, n_components=40, random_state=0, selection=s).fit(X).residual_trace_
        for s in ("random_pivoting", "uniform")
    )
    assert pivots < 0.5 * uniform


def test_many_rows_and_the_same_as_kpca_features():
    X = np.random.default_rng(0).standard_normal((9000, 5))
    model = Nystroem(gamma=0.05, n_components=64, random_state=2).fit(X)
    F = fk.features(X, "gaussian", gamma=0.05, landmarks=model.component_indices_)
    assert model.residual_trace_ == pytest.approx(F.residual_trace, rel=1e-9)
    Z, Phi = model.transform(X[:50]), F @ np.eye(64)
    np.testing.assert_allclose(Z @ Z.T, Phi[:50] @ Phi[:50].T, atol=1e-9)


@pytest.mark.parametrize("X", [np.zeros((40, 2)), np.vstack([np.zeros((30, 2)), 1e-120 * np.ones((9, 2))])])
def test_a_kernel_matrix_that_is_zero(X):
    model = Nystroem("linear", n_components=5).fit(X)
    assert np.abs(model.transform(X)).max() < 1e-100
    assert model.residual_norm_ == model.residual_trace_ < 1e-100


# Landmarks of one's own, and intervals of second order ------------------------------------------------------------


def test_landmarks_for_a_data_frame():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(IRIS, columns=list("abcd"))
    for landmarks in (IRIS[::20], X[::20], np.arange(0, 150, 20), X[::20].values.tolist()):
        model = Nystroem(gamma=0.3, landmarks=landmarks).fit(X)
        np.testing.assert_array_equal(model.components_, IRIS[::20])
        assert model.kpca(X, 2, tol=1e-2).n_components == 2


def test_landmarks_that_come_twice_are_features_twice():
    landmarks = [5, 9, 5, 70, 9]
    model = Nystroem(gamma=0.3, landmarks=landmarks).fit(IRIS)
    once = Nystroem(gamma=0.3, landmarks=[5, 9, 70]).fit(IRIS)
    Z, few = model.transform(IRIS), once.transform(IRIS)
    assert Z.shape == (150, 5) and model.normalization_.shape == (5, 5)
    np.testing.assert_allclose(Z @ Z.T, few @ few.T, atol=1e-9)
    np.testing.assert_allclose(rbf_kernel(IRIS, IRIS[landmarks], 0.3) @ model.normalization_.T, Z, atol=1e-6)
    np.testing.assert_allclose(model.kpca(IRIS, 2).eigenvalues, once.kpca(IRIS, 2).eigenvalues, rtol=1e-7)


def test_what_kpca_takes_from_the_object_and_what_is_given():
    X = DIGITS[:900]
    nystroem = Nystroem(gamma=0.02, n_components=80, random_state=4, failure_probability=1e-3).fit(X)
    model = nystroem.kpca(X, 5, tol=2e-2)
    assert model.failure_probability <= 1e-3 and model.bound_kind == "probabilistic"
    assert nystroem.kpca(X, 5, tol=2e-2, failure_probability=1e-5).failure_probability <= 1e-5
    certain = nystroem.kpca(X[:300], 3, guaranteed=True, failure_probability=None)
    assert (certain.bound_kind, certain.failure_probability) == ("guaranteed", 0.0)
    again = nystroem.kpca(X, 5, tol=2e-2)
    np.testing.assert_array_equal(again.eigenvalue_bounds, model.eigenvalue_bounds)
    assert (nystroem.kpca(X, 5, tol=2e-2, rng=77).eigenvalue_bounds != model.eigenvalue_bounds).any()
    direct = fk.kpca(X, "gaussian", 5, gamma=0.02, landmarks=nystroem.component_indices_, tol=2e-2)
    np.testing.assert_allclose(model.eigenvalues, direct.eigenvalues, rtol=2e-2)
    held_out = DIGITS[900:]
    other, exact = nystroem.kpca(held_out, 3), np.linalg.eigvalsh(center(rbf_kernel(held_out, gamma=0.02)))[:-4:-1]
    assert (other.eigenvalue_bounds[:, 0] <= exact).all() and (exact <= other.eigenvalue_bounds[:, 1]).all()


def test_a_smaller_tol_gives_no_wider_interval_of_landmarks_that_do_not_reach_it():
    """These leave out too much for 1e-3; as rows, or a pass, are all that can be done for them, that is done."""
    nystroem = Nystroem(gamma=0.02, n_components=40, selection="uniform").fit(DIGITS)
    widths = []
    for tol in (1e-1, 1e-3, 1e-4):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", fk.errors.CertificateWarning)
            model = nystroem.kpca(DIGITS, 5, tol=tol)
        widths.append(np.ptp(model.eigenvalue_bounds, axis=1).max() / model.eigenvalues[0])
        assert bool(seen) == (widths[-1] > tol)
    assert widths[0] >= widths[1] >= 1e-3 and widths[1] >= widths[2]
    assert 20.0 * widths[1] < nystroem.residual_norm_ / model.eigenvalues[0]


def test_intervals_for_sparse_rows_and_kernels_of_ours():
    X = DIGITS[:250]
    dense, sparse = (Nystroem(gamma=0.02, landmarks=np.arange(0, 250, 5)).fit(rows) for rows in (X, sp.csr_matrix(X)))
    a, b = dense.kpca(X, 3, tol=1e-2), sparse.kpca(sp.csr_matrix(X), 3, tol=1e-2)
    np.testing.assert_allclose(a.eigenvalues, b.eigenvalues, rtol=1e-9)
    rows = Nystroem(gamma=0.02, landmarks=sp.csr_matrix(X[::5])).fit(sp.csr_matrix(X))
    np.testing.assert_allclose(rows.transform(sp.csr_matrix(X)), sparse.transform(sp.csr_matrix(X)), atol=1e-9)
    model = Nystroem(Minimum(), landmarks=[3, 60, 110]).fit(np.abs(IRIS)).kpca(np.abs(IRIS), 2)
    exact = np.linalg.eigvalsh(center(np.minimum(np.abs(IRIS)[:, None], np.abs(IRIS)).sum(axis=2)))[::-1][:2]
    assert (model.eigenvalue_bounds[:, 0] <= exact).all() and (exact <= model.eigenvalue_bounds[:, 1]).all()


# Kinds of rows and kernels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "sigmoid", "linear", "cosine"])
def test_sparse_rows(kernel):
    X = DIGITS[:200].astype(np.float64)
    dense, sparse = (Nystroem(kernel, n_components=15, random_state=0) for _ in range(2))
    Z, W = dense.fit(X).transform(X), sparse.fit(sp.csr_matrix(X)).transform(sp.csr_matrix(X))
    assert sp.issparse(sparse.components_)
    np.testing.assert_allclose(W @ W.T, Z @ Z.T, atol=1e-7)


@pytest.mark.parametrize("number", [30, 150])
def test_precomputed_equals_the_kernel(number):
    given = {"n_components": number, "random_state": 0, "selection": "uniform"}
    K = rbf_kernel(IRIS, gamma=0.5)
    Z = Nystroem(gamma=0.5, **given).fit_transform(IRIS)
    model = Nystroem("precomputed", **given).fit(K)
    np.testing.assert_allclose(model.transform(K) @ model.transform(K).T, Z @ Z.T, atol=1e-6)
    np.testing.assert_allclose(model.transform(K[:5]), model.transform(K)[:5])
    assert np.isnan(model.residual_norm_)
    with pytest.raises(ValueError, match="landmarks must be whole numbers of rows of X"):
        Nystroem("precomputed", landmarks=np.eye(5)).fit(np.eye(5))


def test_kernels_of_fastkpca():
    model = Nystroem("matern", kernel_params={"nu": 1.5, "length_scale": 2.0}, n_components=40).fit(IRIS)
    values = residual(model, IRIS, fk.gram(IRIS, "matern", nu=1.5, length_scale=2.0) @ np.eye(150))
    assert values[-1] <= model.residual_norm_
    assert Nystroem("gaussian", n_components=10).fit(IRIS).residual_trace_ > 0  # sigma by the median heuristic


class Minimum(Kernel):
    positive_semidefinite = True

    def block(self, X, Y):
        return np.minimum(X[:, None], Y).sum(axis=2)


def test_a_function_has_no_bound_and_a_kernel_that_declares_itself_semidefinite_has():
    X = np.abs(IRIS)

    def minimum(x, y):
        return float(np.minimum(x, y).sum())

    function = Nystroem(minimum, n_components=20).fit(X)
    for model in (function, Nystroem("additive_chi2", n_components=20).fit(X)):
        assert np.isnan([model.residual_trace_, model.residual_norm_, model.failure_probability_]).all()
    declared = Nystroem(Minimum(), n_components=20, selection="uniform").fit(X)
    np.testing.assert_array_equal(declared.component_indices_, function.component_indices_)
    np.testing.assert_allclose(declared.transform(X), function.transform(X), atol=1e-6)
    values = residual(declared, X, np.minimum(X[:, None], X).sum(axis=2))
    assert values[-1] <= declared.residual_norm_ and values[0] >= -1e-9


# What is refused, and the interface -----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["sigmoid", "precomputed", lambda x, y: float(x @ y)])
def test_pivots_and_intervals_of_a_kernel_that_may_be_indefinite_are_refused(kernel):
    with pytest.raises(ValueError, match="needs a positive semidefinite kernel.*take selection='uniform'"):
        Nystroem(kernel, n_components=3, selection="random_pivoting").fit(np.eye(5))
    nystroem = Nystroem(kernel, n_components=3).fit(np.eye(5))
    with pytest.raises(ValueError, match="does not declare itself positive semidefinite, so its eigenvalues may lie"):
        nystroem.kpca(np.eye(5), 2)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"kernel": "linear", "gamma": 2.0}, "gamma=2.0 was given, and would be ignored"),
        ({"kernel": "rbf", "kernel_params": {"sigma": 2.0}}, "gamma=1 / "),
        ({"kernel": "no such kernel"}, "must be a name"),
        ({"n_components": 0}, "n_components"),
        ({"selection": "best"}, "selection"),
        ({"kernel": lambda x, y: 1.0, "degree": 2}, "Don't pass gamma, coef0 or degree to Nystroem"),
        ({"landmarks": [3, 150]}, "landmarks has row number 150, and X has rows 0 to 149"),
        ({"landmarks": [0.5]}, "landmarks must be whole numbers of rows"),
        ({"landmarks": []}, "landmarks must be whole numbers of rows"),
        ({"landmarks": np.ones((3, 2))}, "landmarks has 2 columns"),
        ({"landmarks": np.full((3, 4), np.nan)}, "landmarks contains NaN"),
        ({"landmarks": "all"}, "'landmarks' parameter"),
    ],
)
def test_errors_say_what_to_give(given, text):
    with pytest.raises(ValueError, match=text):
        Nystroem(**given).fit(IRIS)


def test_more_components_than_rows_are_a_warning_and_all_rows():
    with pytest.warns(UserWarning, match="n_components=100 > n_samples=30") as seen:
        model = Nystroem(gamma=0.5).fit(IRIS[:30])
    assert seen[0].filename == __file__
    assert sorted(model.component_indices_) == list(range(30))
    assert model.residual_norm_ < 1e-10


def test_none_is_a_fixed_seed_and_a_random_state_moves_on():
    one, two = (Nystroem(gamma=0.1, n_components=5).fit(IRIS).component_indices_ for _ in range(2))
    np.testing.assert_array_equal(one, two)
    state = np.random.RandomState(0)
    one, two = (Nystroem(gamma=0.1, n_components=5, random_state=state).fit(IRIS).component_indices_ for _ in range(2))
    assert list(one) != list(two)
