"""Exact products against longdouble sums, between compiled and block routes, and at several numbers of threads."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_sets import each_instruction_set

import fastkpca as fk
from fastkpca._core import tiles
from fastkpca.errors import PluginError
from fastkpca.kernels import Kernel
from fastkpca.products.exact import ExactSummation, kept_bytes
from fastkpca.rows.view import Rows


class PlainGaussian(Kernel):
    """Only ``block``, written without the compiled tiles."""

    parameters = {"sigma": 1.0}

    def block(self, X, Y):
        assert not X.flags.writeable
        assert X.flags.c_contiguous
        d2 = sum((X[:, None, f] - Y[None, :, f]) ** 2 for f in range(X.shape[1]))
        return np.exp(d2 * X.dtype.type(-0.5 / self.sigma**2))


class CompiledGaussian(PlainGaussian):
    def compiled_tile(self):
        return "gaussian", {"sigma": self.sigma}

    def block(self, X, Y):
        raise AssertionError("the compiled walk does not call block")


class CompiledPolynomial(Kernel):
    parameters = {"scale": 1.0, "offset": 1.0, "degree": 3}

    def compiled_tile(self):
        return "polynomial", self.get_parameters()


class CompiledTanh(Kernel):
    parameters = {"scale": 1.0, "offset": 0.0}

    def compiled_tile(self):
        return "tanh", self.get_parameters()


class CompiledLinear(Kernel):
    def compiled_tile(self):
        return "linear", {}


isa = each_instruction_set(tiles)


def exact_gram(kernel, X, Y):
    X, Y = X.astype(np.longdouble), Y.astype(np.longdouble)
    if isinstance(kernel, PlainGaussian):
        d2 = sum((X[:, None, f] - Y[None, :, f]) ** 2 for f in range(X.shape[1]))
        return np.exp(-d2 / (2 * np.longdouble(kernel.sigma) ** 2))
    G = X @ Y.T
    if isinstance(kernel, CompiledPolynomial):
        return (kernel.scale * G + kernel.offset) ** kernel.degree
    if isinstance(kernel, CompiledTanh):
        return np.tanh(kernel.scale * G + kernel.offset)
    return G


KERNELS = [
    PlainGaussian(sigma=1.5),
    CompiledGaussian(sigma=1.5),
    CompiledPolynomial(scale=0.2),
    CompiledTanh(scale=0.2, offset=-0.3),
    CompiledLinear(),
]
ids = [type(kernel).__name__ for kernel in KERNELS]


def relative(found, exact):
    return float(np.abs(found - exact).max() / np.abs(exact).max())


@pytest.mark.parametrize("kernel", KERNELS, ids=ids)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 2), (193, 3), (600, 5), (1100, 40)])
def test_square_against_longdouble(kernel, n, d):
    rng = np.random.default_rng(n)
    X, U = rng.normal(size=(n, d)), rng.normal(size=(n, 13))
    exact = exact_gram(kernel, X, X) @ U
    S = ExactSummation(kernel, Rows(X))
    assert S.shape == (n, n)
    assert S.symmetric
    assert S.error_bound == 0.0
    for k in (1, 3, 13):
        V = S.matmat(U[:, :k])
        assert V.shape == (n, k)
        assert V.dtype == np.float64
        assert relative(V, exact[:, :k]) < 2e-14
        np.testing.assert_array_equal(V, S.rmatmat(U[:, :k]))


@pytest.mark.parametrize("kernel", KERNELS, ids=ids)
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (1, 300, 3), (700, 33, 3), (530, 610, 35)])
def test_rectangular_and_adjoint(kernel, n, m, d):
    rng = np.random.default_rng(n + m)
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    U, W = rng.normal(size=(m, 5)), rng.normal(size=(n, 5))
    K = exact_gram(kernel, X, Y)
    S = ExactSummation(kernel, Rows(X), Rows(Y))
    assert S.shape == (n, m)
    assert not S.symmetric
    V, Z = S.matmat(U), S.rmatmat(W)
    assert relative(V, K @ U) < 2e-14
    assert relative(Z, K.T @ W) < 2e-14
    np.testing.assert_allclose(np.sum(W * V), np.sum(U * Z), rtol=1e-11, atol=1e-11 * np.abs(W * V).sum())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS, ids=ids)
def test_same_bits_at_any_number_of_threads(kernel, dtype):
    rng = np.random.default_rng(6)
    X, U = rng.normal(size=(2100, 3)), rng.normal(size=(2100, 3))
    r = rng.normal(size=2100)
    results = []
    for n_threads in (1, 2, 5):
        S = ExactSummation(kernel, Rows(X), n_threads=n_threads, dtype=dtype)
        T = ExactSummation(kernel, Rows(X), Rows(X[:900]), n_threads=n_threads, dtype=dtype)
        norm = S.pass_with_norm(U, r, 0.1)
        results.append(
            [S.matmat(U), T.matmat(U[:900]), T.rmatmat(U), norm.product, norm.row_sums]
            + [np.array([norm.centred_square, norm.square])]
        )
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kernel", KERNELS, ids=ids)
@pytest.mark.parametrize("d", [3, 40])
def test_float32_tiles(kernel, d):
    rng = np.random.default_rng(7)
    X, U = rng.normal(size=(1100, d)) / np.sqrt(d), rng.normal(size=(1100, 6))
    V = ExactSummation(kernel, Rows(X), dtype=np.float32).matmat(U)
    assert V.dtype == np.float64
    K = exact_gram(kernel, X, X)
    error = np.abs(V - K @ U).max() / (np.abs(K) @ np.abs(U)).max()
    assert 1e-10 < error < 2e-6  # float32 was used, and used well


@pytest.mark.parametrize("d", [2, 45])
def test_far_clusters(d):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(900, d)) / np.sqrt(d)
    X[rng.permutation(900)[:400]] += 1e6
    U = rng.normal(size=(900, 3))
    kernel = CompiledGaussian(sigma=1.0)
    assert relative(ExactSummation(kernel, Rows(X)).matmat(U), exact_gram(kernel, X, X) @ U) < 1e-12
    single = ExactSummation(kernel, Rows(X), dtype=np.float32).matmat(U)
    assert relative(single, exact_gram(kernel, X, X) @ U) < 1e-5


@pytest.mark.parametrize("kernel", KERNELS, ids=ids)
@pytest.mark.parametrize("n", [1, 150, 1200])
def test_pass_with_norm(kernel, n):
    rng = np.random.default_rng(n)
    X, V = rng.normal(size=(n, 3)), rng.normal(size=(n, 4))
    K = exact_gram(kernel, X, X)
    r = K.mean(axis=1).astype(float)
    g = float(r.mean())
    found = ExactSummation(kernel, Rows(X)).pass_with_norm(V, r, g)
    assert relative(found.product, K @ V) < 2e-14
    assert relative(found.row_sums, K.sum(axis=1)) < 2e-14
    exact = ((K - r[:, None] - r + g) ** 2).sum()
    assert abs(found.centred_square - exact) < 1e-13 * (exact + (K**2).sum() * 1e-10)
    assert abs(found.square - (K**2).sum()) < 1e-13 * (K**2).sum()
    # any means give an upper bound of the centred norm
    means = K.mean(axis=1)
    centred = ((K - means[:, None] - means + means.mean()) ** 2).sum()
    worse = ExactSummation(kernel, Rows(X)).pass_with_norm(V, r + 0.1 * rng.normal(size=n), g).centred_square
    assert worse >= centred * (1 - 1e-12)


def test_shift_of_the_rows_is_taken_off_before_anything_is_rounded():
    rng = np.random.default_rng(9)
    X = rng.integers(0, 64, size=(300, 3)) / 8.0
    U = rng.normal(size=(300, 2))
    moved = X + 2.0**30
    kernel = CompiledGaussian(sigma=2.0)
    for dtype in (np.float64, np.float32):
        here = ExactSummation(kernel, Rows(X), dtype=dtype).matmat(U)
        there = ExactSummation(kernel, Rows(moved, np.full(3, 2.0**30)), dtype=dtype).matmat(U)
        np.testing.assert_array_equal(here, there)


def test_input_is_not_touched():
    rng = np.random.default_rng(10)
    X, U = rng.normal(size=(700, 3)), rng.normal(size=(3, 700)).T
    before = X.copy(), U.copy()
    for writeable in (True, False):
        X.flags.writeable = U.flags.writeable = writeable
        for kernel in KERNELS:
            ExactSummation(kernel, Rows(X)).matmat(U)
        np.testing.assert_array_equal(X, before[0])
        np.testing.assert_array_equal(U, before[1])
        assert X.flags.writeable == U.flags.writeable == writeable


def test_no_columns():
    X = np.ones((30, 2))
    for kernel in KERNELS:
        assert ExactSummation(kernel, Rows(X)).matmat(np.ones((30, 0))).shape == (30, 0)


def test_kernel_that_is_not_thread_safe_runs_in_the_calling_thread():
    import threading

    seen = set()

    class Fragile(PlainGaussian):
        thread_safe = False

        def block(self, X, Y):
            seen.add(threading.get_ident())
            return super().block(X, Y)

    X = np.random.default_rng(0).normal(size=(1500, 2))
    ExactSummation(Fragile(), Rows(X), n_threads=3).matmat(np.ones((1500, 1)))
    assert seen == {threading.get_ident()}


def test_progress_counts_every_task():
    calls = []
    X = np.ones((1100, 2))
    S = ExactSummation(CompiledLinear(), Rows(X), progress=lambda *call: calls.append(call))
    S.matmat(np.ones((1100, 1)))
    total = calls[0][2]
    assert [call[1] for call in calls] == list(range(1, total + 1))
    assert total == 6  # three bands


def test_wrong_shape_from_a_plugin():
    class Wrong(Kernel):
        def block(self, X, Y):
            return np.ones((len(Y), len(X)))

    rows = Rows(np.ones((5, 2)))
    with pytest.raises(PluginError, match=r"Wrong.block returned shape \(3, 5\) for tiles of 5 and 3 rows"):
        ExactSummation(Wrong(), rows, Rows(np.ones((3, 2)))).matmat(np.ones((3, 1)))

    class Complex(Kernel):
        def block(self, X, Y):
            return np.ones((len(X), len(Y))) * 1j

    with pytest.raises(PluginError, match="complex128"):
        ExactSummation(Complex(), rows).matmat(np.ones((5, 1)))


def test_values_that_are_not_finite():
    class Holed(Kernel):
        def block(self, X, Y):
            K = X @ Y.T
            K[-1, 0] = np.nan
            return K

    rows = Rows(np.ones((5, 2)))
    with pytest.raises(ValueError, match=r"Holed\(\) is not finite \(first at row 4\)"):
        ExactSummation(Holed(), rows).matmat(np.ones((5, 1)))
    big = Rows(np.full((5, 2), 1e200))
    with pytest.raises(ValueError, match="CompiledPolynomial"):
        ExactSummation(CompiledPolynomial(), big).matmat(np.ones((5, 1)))
    with pytest.raises(ValueError, match="overflow float32"):
        ExactSummation(CompiledPolynomial(), Rows(np.full((5, 2), 1e10)), dtype=np.float32).matmat(np.ones((5, 1)))
    with pytest.raises(ValueError, match="U contains NaN"):
        ExactSummation(CompiledLinear(), rows).matmat(np.full((5, 1), np.nan))


def test_bad_arguments():
    rows = Rows(np.ones((5, 2)))
    kernel = CompiledLinear()
    with pytest.raises(ValueError, match=r"U has shape \(4, 1\); \(5, k\) is needed"):
        ExactSummation(kernel, rows).matmat(np.ones((4, 1)))
    with pytest.raises(ValueError, match="dtype is int64"):
        ExactSummation(kernel, rows, dtype=np.int64)
    with pytest.raises(ValueError, match="rows of 2 and of 3"):
        ExactSummation(kernel, rows, Rows(np.ones((5, 3))))
    with pytest.raises(ValueError, match="square case"):
        ExactSummation(kernel, rows, rows).pass_with_norm(np.ones((5, 1)), np.ones(5), 0.0)
    with pytest.raises(ValueError, match="row_means has shape"):
        ExactSummation(kernel, rows).pass_with_norm(np.ones((5, 1)), np.ones(4), 0.0)


def cauchy(X, Y):
    squares = np.sum(X**2, axis=1)[:, None] + np.sum(Y**2, axis=1) - 2 * X @ Y.T
    return 1 / (1 + np.maximum(squares, 0))


class Cauchy(Kernel):
    """Without compiled tiles."""

    def block(self, X, Y):
        return cauchy(X, Y)


KEPT = {
    "cauchy": Cauchy(),
    "gaussian": fk.get_kernel("gaussian", sigma=0.8),
    "polynomial": fk.get_kernel("polynomial", degree=3, offset=1.0),
    "tanh": fk.get_kernel("tanh", scale=0.1, offset=0.2),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize(("n", "d"), [(1, 3), (191, 3), (700, 5), (1301, 40)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_that_are_kept_are_multiplied_as_those_that_are_not(name, n, d, dtype):
    rng = np.random.default_rng(3)
    X, U = rng.random((n, d)), rng.standard_normal((n, 5))
    K = KEPT[name].block(X, X)
    kept = ExactSummation(KEPT[name], Rows(X), dtype=dtype, keeps=True)
    first, again = kept.matmat(U), kept.matmat(U)
    assert np.array_equal(first, again)
    assert np.array_equal(first, ExactSummation(KEPT[name], Rows(X), dtype=dtype, keeps=True, n_threads=2).matmat(U))
    scale = np.abs(K) @ np.abs(U)
    tolerance = (20 + n) * np.finfo(dtype).eps
    assert (np.abs(first - K @ U) <= tolerance * scale).all()
    one = kept.matmat(U[:, :1])
    assert (np.abs(one - K @ U[:, :1]) <= tolerance * scale[:, :1]).all()
    means = K.mean(axis=1)
    passed = kept.pass_with_norm(U, means, means.mean())
    centred = K - means - means[:, None] + means.mean()
    np.testing.assert_allclose(passed.square, np.vdot(K, K), rtol=1e-4 if dtype == np.float32 else 1e-12)
    atol = 1e-12 * np.vdot(K, K) * (1e5 if dtype == np.float32 else 1.0)
    np.testing.assert_allclose(passed.centred_square, np.vdot(centred, centred), rtol=1e-4, atol=atol)
    assert kept._kept.nbytes == kept_bytes(KEPT[name], n, d, np.dtype(dtype).itemsize)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [30, 301, 700])
def test_any_number_of_columns(isa, n, dtype):
    X, U = np.random.default_rng(n).random((n, 3)), np.random.default_rng(5).standard_normal((n, 19))
    kernel = KEPT["gaussian"]
    K = kernel.block(X, X)
    for k in range(1, 20):
        found = ExactSummation(kernel, Rows(X), dtype=dtype).matmat(U[:, :k])
        np.testing.assert_allclose(found, K @ U[:, :k], rtol=0, atol=n * (1e-14 if dtype == np.float64 else 1e-5))


SEARCHED = KEPT | {
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


def test_a_search_computes_each_value_once_where_memory_allows():
    """The values are the first thing that is given up, and the result is the same to the interval's width."""
    values = []

    class Counting(Cauchy):
        positive_semidefinite = True
        translation = "kernel"

        def block(self, X, Y):
            values.append(len(X) * len(Y))
            return cauchy(X, Y)

    X, counts, models = np.random.default_rng(1).standard_normal((3500, 6)), [], []
    for limit in ("2GB", "45MB"):
        values.clear()
        models.append(fk.kpca(X, Counting(), 4, method="krylov", products="exact", memory_limit=limit, n_threads=1))
        counts.append(sum(values))
    kept, without = models
    assert kept.plan.chosen.memory > without.plan.chosen.memory
    assert kept.info["search_passes"] > 1 and without.info["search_passes"] > 1
    assert kept.info["matrix_passes"] == kept.info["search_passes"] - 1 and "matrix_passes" not in without.info
    assert counts[1] > counts[0]
    for a, b in ((kept, without), (without, kept)):
        assert (a.eigenvalue_bounds[:, 0] <= b.eigenvalue_bounds[:, 1]).all()
    np.testing.assert_allclose(kept.eigenvalues, without.eigenvalues, rtol=2e-6)


def test_room_for_tiles_that_is_too_small_or_of_another_type_is_refused():
    X, U = np.zeros((300, 2)), np.zeros((300, 1))
    entries = tiles.kept_entries(300, 300, True)
    for room in (np.empty(entries - 1), np.empty(entries, dtype=np.float32)):
        with pytest.raises(ValueError, match="no room for the tiles of 300 by 300 rows"):
            tiles.product("gaussian", {"sigma": 1.0}, X, None, U, None, kept=room)
