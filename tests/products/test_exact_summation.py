"""Exact products against longdouble sums, between compiled and block routes, and at several numbers of threads."""

import threading

import intervals
import numpy as np
import pytest
from exact_kernels import exact_matrix
from good_kernels import Cauchy
from instruction_sets import each_instruction_set

import fastkpca as fk
from fastkpca._core import tiles
from fastkpca.errors import PluginError
from fastkpca.kernels import Kernel, guarded
from fastkpca.products.exact import ExactSummation, kept_bytes
from fastkpca.products.weighted import coordinates_for
from fastkpca.rows.view import Rows


class Compiled(Kernel):
    parameters = {"sigma": 1.5}

    def compiled_tile(self):
        return "gaussian", {"sigma": self.sigma}

    def block(self, X, Y):
        raise AssertionError("the compiled walk does not call block")


POLYNOMIAL = {"scale": 0.2, "offset": 1.0, "degree": 3}
CASES = {
    "cauchy": (Cauchy(), "rational_quadratic", {"alpha": 1.0, "length_scale": 0.5**0.5}),
    "gaussian": (Compiled(), "gaussian", {"sigma": 1.5}),
    "polynomial": (fk.get_kernel("polynomial", **POLYNOMIAL), "polynomial", POLYNOMIAL),
    "tanh": (fk.get_kernel("tanh", scale=0.2, offset=-0.3), "tanh", {"scale": 0.2, "offset": -0.3}),
    "linear": (fk.get_kernel("linear"), "linear", {}),
}
"""Kernels, and what ``exact_matrix`` calls them."""
isa = each_instruction_set(tiles)


def case(name, X, Y=None):
    """(kernel, its values in longdouble)."""
    kernel, exact_name, p = CASES[name]
    return kernel, exact_matrix(exact_name, p, X, Y)[0]


def relative(found, exact):
    return float(np.abs(found - exact).max() / np.abs(exact).max())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 2), (193, 3), (700, 3), (530, 40)])
def test_square_against_longdouble(name, n, d, keeps):
    rng = np.random.default_rng(n)
    X, U = rng.normal(size=(n, d)), rng.normal(size=(n, 13))
    kernel, K = case(name, X)
    S = ExactSummation(kernel, Rows(X), keeps=keeps)
    assert S.shape == (n, n) and S.symmetric and S.error_bound == 0.0
    for k in (13, 1, 3):
        V = S.matmat(U[:, :k])
        assert V.shape == (n, k) and V.dtype == np.float64
        assert relative(V, K @ U[:, :k]) < 2e-14
        np.testing.assert_array_equal(V, S.rmatmat(U[:, :k]))
    r = K.mean(axis=1).astype(float)
    g = float(r.mean())
    found = S.pass_with_norm(U, r, g)
    assert relative(found.product, K @ U) < 2e-14
    assert relative(found.row_sums, K.sum(axis=1)) < 2e-14
    exact = ((K - r[:, None] - r + g) ** 2).sum()
    assert abs(found.centred_square - exact) < 1e-13 * (exact + (K**2).sum() * 1e-10)
    assert abs(found.square - (K**2).sum()) < 1e-13 * (K**2).sum()
    # any means give an upper bound of the centred norm
    means = K.mean(axis=1)
    centred = ((K - means[:, None] - means + means.mean()) ** 2).sum()
    assert S.pass_with_norm(U, r + 0.1 * rng.normal(size=n), g).centred_square >= centred * (1 - 1e-12)
    if keeps:
        assert S._kept.nbytes == kept_bytes(kernel, n, d, 8)


@pytest.mark.parametrize("n_threads", [1, 4])
def test_the_norm_of_weighted_rows_is_added_up_from_all_tiles(n_threads):
    rng = np.random.default_rng(8)
    rows = Rows(rng.standard_normal((1300, 2)), weights=rng.uniform(0.1, 3.0, 1300))
    S = ExactSummation(Cauchy(), rows)
    K = coordinates_for(Cauchy(), rows, np.ones(1300), 1.0, n_threads).product(S)
    dense, r, g = K.matmat(np.eye(1300)), rng.standard_normal(1300), 0.7
    found = K.pass_with_norm(np.ones((1300, 2)), r, g)
    np.testing.assert_allclose(found.centred_square, ((dense - r - r[:, None] + g) ** 2).sum(), rtol=1e-10)
    np.testing.assert_allclose(found.square, (dense**2).sum(), rtol=1e-10)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("d", [3, 40])
def test_float32_tiles(name, keeps, d):
    rng = np.random.default_rng(7)
    X, U = rng.normal(size=(530, d)) / np.sqrt(d), rng.normal(size=(530, 6))
    kernel, K = case(name, X)
    S = ExactSummation(kernel, Rows(X), dtype=np.float32, keeps=keeps)
    V = S.matmat(U)
    assert V.dtype == np.float64
    error = np.abs(V - K @ U).max() / (np.abs(K) @ np.abs(U)).max()
    assert 1e-10 < error < 2e-6  # float32 was used, and used well
    np.testing.assert_allclose(S.pass_with_norm(U, K.mean(axis=1).astype(float), 0.0).square, (K**2).sum(), rtol=1e-4)


def test_shift_of_the_rows_is_taken_off_before_anything_is_rounded():
    rng = np.random.default_rng(9)
    X, U = rng.integers(0, 64, size=(300, 3)) / 8.0, rng.normal(size=(300, 2))
    for dtype in (np.float64, np.float32):
        here = ExactSummation(Compiled(), Rows(X), dtype=dtype).matmat(U)
        there = ExactSummation(Compiled(), Rows(X + 2.0**30, np.full(3, 2.0**30)), dtype=dtype).matmat(U)
        np.testing.assert_array_equal(here, there)


def test_input_is_not_touched_and_there_may_be_no_columns():
    rng = np.random.default_rng(10)
    X, U = rng.normal(size=(700, 3)), rng.normal(size=(3, 700)).T
    before = X.copy(), U.copy()
    for writeable in (True, False):
        X.flags.writeable = U.flags.writeable = writeable
        for kernel, *_ in CASES.values():
            ExactSummation(kernel, Rows(X)).matmat(U)
            assert ExactSummation(kernel, Rows(X)).matmat(U[:, :0]).shape == (700, 0)
        np.testing.assert_array_equal(X, before[0])
        np.testing.assert_array_equal(U, before[1])
        assert X.flags.writeable == U.flags.writeable == writeable


def test_kernel_that_is_not_thread_safe_runs_in_the_calling_thread_on_rows_it_cannot_change():
    seen = set()

    class Fragile(Cauchy):
        thread_safe = False

        def block(self, X, Y):
            assert not X.flags.writeable and X.flags.c_contiguous
            seen.add(threading.get_ident())
            return super().block(X, Y)

    X = np.random.default_rng(0).normal(size=(1500, 2))
    ExactSummation(Fragile(), Rows(X), n_threads=3).matmat(np.ones((1500, 1)))
    assert seen == {threading.get_ident()}


def one_nan(self, X, Y):
    K = X @ Y.T
    K[-1, 0] = np.nan
    return K


def broken(block):
    return type("Broken", (Kernel,), {"block": block})()


def test_wrong_values_are_refused():
    few, rows, big = Rows(np.ones((3, 2))), Rows(np.ones((5, 2))), Rows(np.full((5, 2), 1e200))
    polynomial, transposed = CASES["polynomial"][0], broken(lambda _, X, Y: np.ones((len(Y), len(X))))
    imaginary = broken(lambda _, X, Y: np.ones((len(X), len(Y))) * 1j)
    words = r"Broken.block on shapes \(5, 2\) and \(3, 2\) returned shape \(3, 5\); shape \(5, 3\) is due"
    for kernel, X, Y, options, error, text in (
        (guarded(transposed), rows, few, {}, PluginError, words),
        (guarded(imaginary), rows, None, {}, PluginError, "complex128"),
        (broken(one_nan), rows, None, {}, ValueError, r"Broken\(\) is not finite \(first at row 4\)"),
        (polynomial, big, None, {}, ValueError, "Polynomial"),
        (polynomial, Rows(np.full((5, 2), 1e15)), None, {"dtype": np.float32}, ValueError, "overflow float32"),
    ):
        with pytest.raises(error, match=text):
            ExactSummation(kernel, X, Y, **options).matmat(np.ones((len(X if Y is None else Y), 1)))


def test_bad_arguments():
    rows, kernel = Rows(np.ones((5, 2))), fk.get_kernel("linear")
    S, one = ExactSummation(kernel, rows), np.ones((5, 1))
    for call, text in (
        (lambda: S.matmat(np.ones((4, 1))), r"U has shape \(4, 1\); \(5, k\) is needed"),
        (lambda: S.matmat(one * np.nan), "U contains NaN"),
        (lambda: ExactSummation(kernel, rows, dtype=np.int64), "dtype is int64"),
        (lambda: ExactSummation(kernel, rows, Rows(np.ones((5, 3)))), "rows of 2 and of 3"),
        (lambda: ExactSummation(kernel, rows, rows).pass_with_norm(one, np.ones(5), 0.0), "square case"),
        (lambda: S.pass_with_norm(one, np.ones(4), 0.0), "row_means has shape"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [30, 301, 700])
def test_any_number_of_columns(isa, n, dtype):
    X, U = np.random.default_rng(n).random((n, 3)), np.random.default_rng(5).standard_normal((n, 19))
    kernel, K = case("gaussian", X)
    for k in range(1, 20):
        found = ExactSummation(kernel, Rows(X), dtype=dtype).matmat(U[:, :k])
        np.testing.assert_allclose(
            found, (K @ U[:, :k]).astype(float), rtol=0, atol=n * (1e-14 if dtype == np.float64 else 1e-5)
        )


SEARCHED = {
    "cauchy": Cauchy(),
    "gaussian": fk.get_kernel("gaussian", sigma=0.8),
    "tanh": fk.get_kernel("tanh", scale=0.1, offset=0.2),
    "large": fk.get_kernel("polynomial", degree=3, scale=1e6, offset=1.0),
    "small": fk.get_kernel("polynomial", degree=2, scale=1e-9, offset=1e-10),
}


@pytest.mark.parametrize(("name", "n"), [(name, n) for name in SEARCHED for n in (1, 191, 1301)] + [("cauchy", 4200)])
def test_values_that_are_kept_serve_a_search_in_float32(name, n):
    rng = np.random.default_rng(7)
    X = rng.random((n, 40)) * (1.0 + 9.0 * (rng.random((n, 1)) < 0.01))
    kernel = SEARCHED[name]
    exact = ExactSummation(kernel, Rows(X), keeps=True)
    search = exact.in_float32()
    K, size = kernel.block(X, X), 0.0
    X[:] = np.nan  # nothing is evaluated from here on
    for number, (I, J) in enumerate(exact.bands):
        values = exact.kept_block(number)
        assert np.abs(values - K[I, J]).max() <= 4e-14 * np.abs(K).max()
        assert I != J or np.abs(values - values.T).max() <= 4e-14 * np.abs(K).max()
        values[:] = np.nan  # a new array
        size += (I.stop - I.start) * (J.stop - J.start)
    assert size >= n * (n + 1) / 2
    U = np.eye(n)[:, ::40]
    assert np.abs(exact.matmat(U) - K[:, ::40]).max() <= 4e-14 * np.abs(K).max()
    sums, error = search.sums, search.matmat(U) - K[:, ::40]
    np.testing.assert_allclose(sums.row_sums, K.sum(axis=1), rtol=1e-12)
    assert sums.square == pytest.approx(np.sum((K - sums.shift) ** 2), rel=1e-6)
    assert (np.linalg.norm(error - error.mean(axis=0), axis=0) <= sums.unit_error + 4e-14 * np.abs(K).max()).all()
    # about their mean, values and vectors are rounded once each, and a sum in float32 is of no more terms than a tile
    few = 5e-5 * np.linalg.norm((K - K.mean())[:, ::40], axis=0) + 1e-6 * abs(K.mean())
    assert (np.linalg.norm(error, axis=0) <= few).all()


@pytest.mark.parametrize("size", [1e-12, 1e19, 1e27])
def test_eigenvalues_where_squares_leave_the_range_of_float32(size):
    X = np.random.default_rng(0).standard_normal((700, 5))
    plain = fk.kpca(X, Cauchy(), 2, method="dense")
    for limit in ("2GB", "9MB"):
        model = fk.kpca(X, size * Cauchy(), 2, method="krylov", tol=1e-8, memory_limit=limit)
        np.testing.assert_allclose(model.eigenvalues, size * plain.eigenvalues, rtol=1e-7)


def test_a_search_keeps_the_values_where_memory_allows():
    """The values are the first thing that is given up, and the result is the same to the interval's width."""
    X, asked = np.random.default_rng(1).standard_normal((3500, 6)), {"method": "krylov", "products": "exact"}
    kept, without = (fk.kpca(X, Cauchy(), 4, memory_limit=limit, **asked) for limit in ("2GB", "45MB"))
    assert kept.plan.chosen.memory > without.plan.chosen.memory
    assert kept.info["search_passes"] > 1 and without.info["search_passes"] > 1
    assert kept.info["matrix_passes"] == kept.info["search_passes"] - 1 and "matrix_passes" not in without.info
    intervals.meet(kept, without)
    np.testing.assert_allclose(kept.eigenvalues, without.eigenvalues, rtol=2e-6)


def test_room_for_tiles_that_is_too_small_or_of_another_type_is_refused():
    X, U = np.zeros((300, 2)), np.zeros((300, 1))
    entries = tiles.kept_entries(300, 300, True)
    for room in (np.empty(entries - 1), np.empty(entries, dtype=np.float32)):
        with pytest.raises(ValueError, match="no room for the tiles of 300 by 300 rows"):
            tiles.product("gaussian", {"sigma": 1.0}, X, None, U, None, kept=room)
