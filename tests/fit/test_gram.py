"""gram and features as scipy LinearOperators: against kernel matrices made without the package."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from scipy.sparse import diags, identity
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg
from sklearn.datasets import load_wine

import fastkpca as fk

KERNELS = [
    ("linear", {}),
    ("polynomial", {"degree": 3, "scale": 0.1, "offset": 0.5}),
    ("gaussian", {"sigma": 2.0}),
    ("tanh", {"scale": 0.05, "offset": 0.1}),
]


@pytest.fixture
def X():
    return reference.standardise(load_wine().data)[:, :6]


@pytest.mark.parametrize("kernel, p", KERNELS)
@pytest.mark.parametrize("products", ["exact", "auto"])
def test_square(X, kernel, p, products):
    rng = np.random.default_rng(0)
    K = reference.gram(kernel, X, **p)
    ours = fk.gram(X, kernel, products=products, **p)
    assert isinstance(ours, LinearOperator)
    assert ours.shape == K.shape
    assert ours.dtype == np.float64
    assert 0 < ours.error_bound < 1e-13 * np.abs(K).max() * (1 if kernel != "tanh" else 10)
    U = rng.standard_normal((len(X), 3))
    assert (np.abs(ours @ U - K @ U) <= 2 * ours.error_bound * np.abs(U).sum(axis=0)).all()
    size = np.abs(K).sum(axis=1).max()
    for left, right in (
        (ours @ U, K @ U),
        (ours @ U[:, 0], K @ U[:, 0]),
        (ours.T @ U, K @ U),
        (ours.H @ U, K @ U),
        (ours.rmatvec(U[:, 1]), K @ U[:, 1]),
        (ours.centered() @ U, reference.center(K) @ U),
        (ours.centered().T @ U, reference.center(K) @ U),
        (ours.diagonal(), np.diag(K)),
        (ours.column_means(), K.mean(axis=0)),
        (2 * ours @ U, 2 * K @ U),
    ):
        np.testing.assert_allclose(left, right, atol=1e-12 * size)
    assert ours.trace() == pytest.approx(np.trace(K), rel=1e-12)
    assert ours.centered().trace() == pytest.approx(np.trace(reference.center(K)), rel=1e-10)


@pytest.mark.parametrize("kernel, p", KERNELS)
@pytest.mark.parametrize("products", ["exact", "auto"])
def test_rectangular(X, kernel, p, products):
    A, B = X[:70], X[50:]
    K = reference.gram(kernel, A, B, **p)
    ours = fk.gram(A, kernel, B, products=products, **p)
    rng = np.random.default_rng(1)
    U, V = rng.standard_normal((len(B), 2)), rng.standard_normal((len(A), 4))
    size = np.abs(K).sum()
    np.testing.assert_allclose(ours @ U, K @ U, atol=1e-13 * size)
    np.testing.assert_allclose(ours.T @ V, K.T @ V, atol=1e-13 * size)
    np.testing.assert_allclose(ours.column_means(), K.mean(axis=0), atol=1e-13 * size)
    # the adjoint is the adjoint
    assert np.vdot(V[:, 0], ours @ U[:, 0]) == pytest.approx(np.vdot(ours.H @ V[:, 0], U[:, 0]), rel=1e-10)
    with pytest.raises(ValueError, match="one set of rows with itself"):
        ours.centered()
    with pytest.raises(ValueError, match="Y has 3 columns"):
        fk.gram(A, kernel, B[:, :3], **p)


def test_expansion_that_cannot_reach_tol_says_so():
    X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    with pytest.raises(ValueError, match="offers no products named 'expansion'"):
        fk.gram(X, "gaussian", sigma=0.001, tol=1e-6, products="expansion")
    # and on its own it takes exact tiles
    K = fk.gram(X, "gaussian", sigma=0.001, tol=1e-6)
    assert K.products == "exact" and 0 < K.error_bound < 1e-11


def test_rows_of_the_matrix_and_all_of_it(X):
    K = reference.gram("gaussian", X, sigma=2.0)
    square, wide = fk.gram(X, "gaussian", sigma=2.0, tol=1e-2), fk.gram(X[:50], "gaussian", X, sigma=2.0)
    for rows in (3, -1, ..., [], np.int64(2), slice(5, 60, 7), [4, 1, 1], np.arange(178) % 5 == 0):
        np.testing.assert_allclose(square[rows], K[rows], rtol=1e-12)
    for whole, expected in ((square, K), (wide, K[:50]), (wide.T, K[:50].T)):
        dense = np.asarray(whole)
        np.testing.assert_allclose(dense, expected, rtol=1e-12)
        assert dense.dtype == np.float64 and np.array(whole, dtype=np.float32).dtype == np.float32
    H = np.eye(178) - 1 / 178
    np.testing.assert_allclose(np.asarray(square.centered()), H @ K @ H, atol=1e-13)
    F = fk.features(X, "polynomial", degree=2)
    np.testing.assert_allclose(np.asarray(F) @ np.asarray(F.T), (1.0 + X @ X.T) ** 2, atol=1e-10)
    for wrong in (178, [0, 178], 10**19, "a", 1.5, (0, 1), [[0]], [True]):
        with pytest.raises(IndexError, match=r"K\[rows\]"):
            square[wrong]


def test_a_matrix_that_is_too_large_to_be_formed_is_refused():
    K = fk.gram(np.random.default_rng(0).standard_normal((20_000, 1)), "gaussian", sigma=1.0)
    for form in (np.asarray, lambda K: K[:], lambda K: np.asarray(K.T)):
        with pytest.raises(ValueError, match=r"takes 3.2 GB, and the limit is 2.15 GB; take products"):
            form(K)
    assert K[7].shape == (20_000,)
    with pytest.raises(ValueError, match="copy=False"):
        K.__array__(copy=False)


def test_sums_with_matrices_but_not_with_numbers(X):
    K, D, eye = fk.gram(X, "gaussian", sigma=2.0), reference.gram("gaussian", X, sigma=2.0), np.eye(178)
    for shift in (0.1 * identity(178), 0.1 * eye, aslinearoperator(0.1 * identity(178)), diags(np.full(178, 0.1))):
        sums = (K + shift, D + 0.1 * eye), (shift + K, D + 0.1 * eye), (K - shift, D - 0.1 * eye)
        for found, expected in (*sums, (shift - K, 0.1 * eye - D)):
            np.testing.assert_allclose(found @ eye, expected, rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(found.T @ eye, expected.T, rtol=1e-12, atol=1e-15)
    for wrong in (0.1, "a", None, np.float64(0.1)):
        for add in (lambda K, x: K + x, lambda K, x: x + K, lambda K, x: K - x, lambda K, x: x - K):
            for operator in (K, K + identity(178), 2.0 * K, K.centered(), K.T):
                with pytest.raises(TypeError, match=r"not added.* give K [+] mu [*] scipy.sparse.identity"):
                    add(operator, wrong)
    for wrong in (np.ones(178), np.ones((178, 1)), identity(5), K[:5]):
        for add in (lambda K, x: K + x, lambda K, x: x - K):
            with pytest.raises(ValueError, match=r"same shape, as in K [+] scipy.sparse.diags\(v\)"):
                add(K, wrong)
    with pytest.raises(TypeError, match="real numbers and one of complex128"):
        K + 1j * identity(178)


def test_sums_and_multiples_are_operators_like_their_parts(X):
    """They take matrices and give entries again, methods take them, and scipy's solvers too."""
    wide = fk.gram(X[:50], "gaussian", X, sigma=2.0)
    K, D = fk.gram(X, "gaussian", sigma=2.0, tol=1e-3), reference.gram("gaussian", X, sigma=2.0)
    shifted = (2.0 * K + K.centered() / 4.0 - np.float32(0.5) * K.T) * 2 + 0.1 * identity(178)
    H = np.eye(178) - 1 / 178
    expected = 3.0 * D + H @ D @ H / 2.0 + 0.1 * np.eye(178)
    np.testing.assert_allclose(np.asarray(shifted), expected, rtol=1e-11)  # entries without the error of products
    np.testing.assert_allclose(np.asarray((-wide - 2.0 * D[:50]).T), -3.0 * D[:50].T, rtol=1e-12)
    ridge = fk.gram(X, "gaussian", sigma=2.0) + 0.1 * identity(178)
    t = X[:, 0]
    solution, failed = cg(ridge, t, rtol=1e-12)
    assert not failed
    np.testing.assert_allclose(solution, np.linalg.solve(D + 0.1 * np.eye(178), t), rtol=1e-7, atol=1e-9)
    model = fk.kpca(ridge, "precomputed", 3)
    values = np.linalg.eigvalsh(H @ (D + 0.1 * np.eye(178)) @ H)
    np.testing.assert_allclose(model.eigenvalues, values[:-4:-1], rtol=1e-12)


def test_factors_of_operators_are_finite_real_numbers(X):
    K = fk.gram(X, "gaussian", sigma=2.0)
    for wrong in (np.nan, np.inf, 1j, True, "2", 10**400):
        for scale in (lambda K, x: K * x, lambda K, x: x * K, lambda K, x: K / x):
            with pytest.raises(TypeError, match="finite real numbers, found"):
                scale(K, wrong)
    with pytest.raises(ValueError, match="divided by 0"):
        K / 0
    for scaled in (1e308 * K + 1e308 * K, K / 5e-324):
        with pytest.raises(ValueError, match="range of float64"):
            scaled @ np.ones(178)
    with pytest.raises(TypeError, match=r"give U.toarray\(\)"):
        K @ identity(178)


@pytest.mark.parametrize("kernel, p", KERNELS[:2])
def test_exact_features_and_their_moments(X, kernel, p):
    F = fk.features(X, kernel, features="monomial", **p)
    Phi = F @ np.eye(F.shape[1])
    K = reference.gram(kernel, X, **p)
    np.testing.assert_allclose(Phi @ Phi.T, K, atol=1e-12 * np.abs(K).max())
    moments = F.moments()
    centered = Phi - Phi.mean(axis=0)
    np.testing.assert_allclose(moments.dense(), centered.T @ centered, atol=1e-12 * np.abs(K).max() * len(X))
    assert F.residual_trace <= 1e-12 * np.trace(K)
    weights = np.random.default_rng(2).random(len(X))
    weighted = F.moments(weights)
    assert weighted.count == pytest.approx(weights.sum())
    np.testing.assert_allclose(weighted.mean, weights @ Phi / weights.sum(), atol=1e-12 * np.abs(Phi).max())
    with pytest.raises(ValueError, match="weights contains -0.2"):
        F.moments(-weights)


@pytest.mark.parametrize(("kernel", "p"), [("gaussian", {"sigma": 3.0}), ("polynomial", {"degree": 2})])
def test_the_map_of_features_on_other_rows(kernel, p):
    rng = np.random.default_rng(0)
    X, other = 5.0 + rng.standard_normal((300, 2)), 5.0 + rng.standard_normal((20, 2))
    F = fk.features(X, kernel, tol=1e-10, **p)
    exact = fk.gram(other, kernel, X, **p) @ np.eye(300)
    approximate = F.map.features(np.ascontiguousarray(other - F.shift)) @ F.map.features(X - F.shift).T
    np.testing.assert_allclose(approximate, exact, atol=1e-3 * np.abs(exact).max())


def test_features_that_do_not_exist():
    X = np.random.default_rng(0).standard_normal((200, 30))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        fk.features(X, "tanh")
    with pytest.raises(ValueError, match="at most 10 features"):
        fk.features(X, "gaussian", tol=1e-6, max_features=10)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        fk.features(X, "polynomial", offset=-1.0)
    with pytest.raises(ValueError, match="no feature map 'fast'.* there is 'fourier'"):
        fk.features(X[:, :2], "gaussian", sigma=2.0, features="fast")
    with pytest.raises(ValueError, match="max_features is -2; give a whole number"):
        fk.features(X, "linear", max_features=-2)


def test_features_of_one_coordinate_are_as_few_as_they_may_be():
    """Methods on projections ask for them hundreds of times, and get them without a look at the rows."""
    rng = np.random.default_rng(5)
    for X in (rng.uniform(-2, 2, (1000, 1)), rng.standard_t(3, (1000, 1)), np.r_[rng.normal(size=(999, 1)), [[80.0]]]):
        K = np.exp(-((X - X.T) ** 2) / (2 * 0.7**2))
        held = np.cumsum(np.linalg.eigvalsh(K)[::-1])
        for tol in (1e-2, 1e-6):
            F = fk.features(X, "gaussian", sigma=0.7, tol=tol)
            residual = np.trace(K) - np.linalg.norm(F @ np.eye(F.shape[1])) ** 2
            assert residual <= F.residual_trace * (1 + 1e-9) <= tol * len(X)
            rank = int(np.sum(held < (1 - tol) * len(X))) + 1
            assert F.shape[1] <= 2 * rank + 2


def complete(seen):
    """Each stage counts up from 1 to its total."""
    for stage in {stage for stage, _, _ in seen}:
        steps = [(done, total) for name, done, total in seen if name == stage]
        totals = [total for _, total in steps]
        assert steps and len(set(totals)) == 1
        assert [done for done, _ in steps] == list(range(1, totals[0] + 1)) * (len(steps) // totals[0])
    return {stage for stage, _, _ in seen}


def test_products_with_the_kernel_matrix_report_their_progress():
    X = np.random.default_rng(0).standard_normal((1500, 3))
    seen: list = []
    K = fk.gram(X, "gaussian", sigma=1.0, progress=lambda *step: seen.append(step))
    quiet = fk.gram(X, "gaussian", sigma=1.0)
    U = np.ones((1500, 2))
    assert not seen  # nothing has been multiplied yet
    for product in (lambda A: A @ U, lambda A: A.T @ U, lambda A: A.centered() @ U, lambda A: A.column_means()):
        seen.clear()
        np.testing.assert_array_equal(product(K), product(quiet))
        assert complete(seen) == {"exact kernel product"} and len(seen) > 1
    fast = fk.gram(X, "gaussian", sigma=1.0, tol=1e-4, products="grid", progress=lambda *step: seen.append(step))
    seen.clear()
    assert (fast @ U).shape == U.shape
    assert seen == [("kernel product", 1, 1)]


def test_passes_with_features_report_their_progress(capsys):
    X = np.random.default_rng(0).standard_normal((3000, 3))
    seen: list = []
    F = fk.features(X, "gaussian", sigma=2.0, tol=1e-4, progress=lambda *step: seen.append(step))
    assert complete(seen) == {"residual"}  # of all rows, to know that the map will do
    for work, stages in ((lambda: F.moments(), {"moments"}), (lambda: F.T @ np.ones(3000), {"features"})):
        seen.clear()
        work()
        assert complete(seen) == stages
    fk.features(X, "gaussian", sigma=2.0, tol=1e-4, progress=True)
    assert "residual" in capsys.readouterr().err


def test_tol_needs_a_kernel_that_bounds_its_values():
    A = np.random.default_rng(3).standard_normal((120, 5))
    for name, options in (("polynomial", {"degree": 5, "offset": -1.0}), ("tanh", {"offset": -1.0})):
        K = fk.gram(A, name, **options)
        assert fk.gram(A, name, tol=2 * K.error_bound, **options).error_bound <= 2 * K.error_bound
        with pytest.raises(ValueError, match="is below"):  # what exact products do not keep for certain
            fk.gram(A, name, tol=0.1 * K.error_bound, **options)
    X = np.random.default_rng(0).standard_normal((40, 3))
    k = fk.get_kernel(lambda A, B: A @ B.T - 1.0)
    assert fk.gram(X, k).error_bound == np.inf
    with pytest.raises(ValueError, match="no finite bound on its values"):
        fk.gram(X, k, tol=1e-6)


def test_bounds_of_equal_rows_and_equal_summands():
    """Equal terms round alike: their errors add up, and the square root of so many would not bound them."""
    X = np.full((3000, 2), 0.3)
    for kernel, p in (("gaussian", {"sigma": 1.0}), ("polynomial", {"degree": 3}), ("linear", {})):
        for tol in (None, 1e-9):
            K = fk.gram(X, kernel, tol=tol, **p)
            value = {"gaussian": 1, "linear": np.longdouble(0.3) ** 2 * 2}.get(kernel)
            value = (np.longdouble(0.3) ** 2 * 2 + 1) ** 3 if value is None else value
            u = np.full(3000, 0.1)
            assert np.abs(K @ u - value * np.longdouble(0.1) * 3000).max() <= K.error_bound * 300


def test_expansions_take_no_rows_whose_features_overflow():
    rng = np.random.default_rng(0)
    A, B = 1e-20 * rng.standard_normal((50, 3)), 1e20 * rng.standard_normal((60, 3))
    K, U = fk.gram(A, "polynomial", B, degree=20), rng.standard_normal((60, 2))
    assert K.products == "exact"
    exact = (A.astype(np.longdouble) @ B.T.astype(np.longdouble) + 1.0) ** 20
    error = np.abs(K @ U - exact @ U.astype(np.longdouble))
    assert (error <= K.error_bound * np.abs(U).sum(axis=0)).all() and K.error_bound < np.inf
    with pytest.raises(ValueError, match="no products named 'expansion'"):
        fk.gram(A, "polynomial", B, degree=20, products="expansion")


@pytest.mark.parametrize("products", ["exact", "expansion", "grid", "clusters"])
def test_products_that_overflow_say_so(products):
    n, sigma = (4000, 0.01) if products == "clusters" else (300, 0.3)
    X = np.random.default_rng(0).random((n, 2))
    U = np.full((n, 1), 1.7e308)
    K = fk.gram(X, "gaussian", sigma=sigma, tol=1e-4, products=products)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="is not finite"):
        K @ U
    F = fk.features(X[:300], "gaussian", sigma=0.3)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="is not finite"):
        F.T @ U[:300]


def test_vectors_that_are_no_numbers_are_refused(X):
    K = fk.gram(X, "gaussian", sigma=2.0)
    F = fk.features(X, "polynomial", degree=2)
    n = len(X)
    masked = np.ma.masked_array(np.ones(n), mask=np.arange(n) == 3)
    others = (np.array(["1"] * n), np.arange(n).astype("m8[s]"), np.arange(n).astype("M8[s]"), np.array([None] * n))
    rectangular = fk.gram(X, "gaussian", X[:7], sigma=2.0)
    for operator in (K, K.T, K.centered(), F.T, rectangular.T):
        with pytest.raises(TypeError, match="real vectors"):
            operator @ np.ones(n, dtype=complex)
        for multiply in (operator.__matmul__, operator.matvec, lambda u, o=operator: o.matmat(u[:, None])):
            with pytest.raises(TypeError, match="masked array"):
                multiply(masked)
            for u in others:
                with pytest.raises(TypeError, match="real numbers; found an array of"):
                    multiply(u)
        operator @ np.arange(n)
        operator @ np.ones(n, dtype=bool)


def test_no_second_rows_beside_a_precomputed_matrix(X):
    with pytest.raises(ValueError, match="gram takes no Y with"):
        fk.gram(X @ X.T, "precomputed", np.array([[0.7], [2.2]]))


def test_rows_of_zeros():
    X = np.zeros((50, 3))
    assert not (fk.gram(X, "cosine") @ np.ones(50)).any()
    assert not (fk.gram(X, "cosine", tol=1e-6) @ np.ones(50)).any()
    with pytest.raises(ValueError, match="is zero: there are no features"):
        fk.features(X, "cosine")


def test_whole_numbers_of_a_matrix_that_float64_does_not_hold_count_as_rounded():
    K = np.diag(np.array([2**60 + 1, 2**60 + 3, 5], dtype=np.int64))
    ours = fk.gram(K, "precomputed")
    error = np.abs((ours @ np.eye(3)).astype(np.longdouble) - K.astype(np.longdouble))
    assert 0 < error.max() <= ours.error_bound


def test_landmarks_with_a_tolerance_reach_it_or_say_what_they_reach():
    X = np.random.default_rng(0).standard_normal((80, 2))
    every = fk.features(X, "gaussian", landmarks=np.arange(80), tol=1e-6, sigma=1.0)
    assert every.residual_trace <= 1e-6 * 80
    for center in (False, True):
        few = fk.features(X, "gaussian", landmarks=np.arange(20), center=center, sigma=1.0)  # whatever comes of it
        Phi = few @ np.eye(few.shape[1])
        reached = few.residual_trace / (np.sum((Phi - Phi.mean(axis=0)) ** 2) if center else 80.0)
        assert fk.features(X, "gaussian", landmarks=np.arange(20), tol=1.01 * reached, center=center, sigma=1.0)
        with pytest.raises(ValueError, match=r"reach a residual of .* tol=.*; give more landmarks, or leave out tol"):
            fk.features(X, "gaussian", landmarks=np.arange(20), tol=0.99 * reached, center=center, sigma=1.0)
