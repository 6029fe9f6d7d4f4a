"""Exact tiles against direct sums in longdouble, on every instruction set that this processor has."""

from functools import cache

import numpy as np
import pytest
from instruction_sets import available, each_instruction_set
from reference import long_gaussian

from fastkpca._core import tiles

isa = each_instruction_set(tiles)


def gaussian_block(X, Y, sigma):
    return tiles.block("gaussian", {"sigma": sigma}, X, Y)


def polynomial_block(X, Y, scale, offset, degree):
    return tiles.block("polynomial", {"scale": scale, "offset": offset, "degree": degree}, X, Y)


def tanh_block(X, Y, scale, offset):
    return tiles.block("tanh", {"scale": scale, "offset": offset}, X, Y)


def linear_block(X, Y):
    return tiles.block("linear", {}, X, Y)


def dots(X, Y):
    return X.astype(np.longdouble) @ Y.astype(np.longdouble).T


def in_ulp(found, exact):
    return np.abs(found - exact) / np.spacing(np.abs(exact).astype(found.dtype))


def test_best_instruction_set_is_chosen_at_import():
    assert available(tiles)[-1] == tiles.INSTRUCTION_SET
    with pytest.raises(ValueError, match="no loops for instruction set 'pentium'"):
        tiles.use_instruction_set("pentium")


def exp(halves, dtype):
    """(x, exp(x) by a tile) for x = -2 v^2, which no rounding meets: of the squares of few bits."""
    bits = 24 if dtype == np.float64 else 10
    mantissa, exponent = np.frexp(halves)
    v = np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits).astype(dtype)[:, None]
    return -2.0 * v[:, 0].astype(np.longdouble) ** 2, np.diag(gaussian_block(v, -v, 1.0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exp_to_a_unit_in_the_last_place(isa, dtype):
    least = 745.0 if dtype == np.float64 else 87.3
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, found = exp(np.sqrt(0.5 * np.concatenate([rng.uniform(0, least, 400), rng.uniform(0, 1, 400)])), dtype)
        exact = np.exp(x)
        normal = exact >= np.finfo(dtype).tiny
        assert found.dtype == dtype and (found <= 1).all()
        assert in_ulp(found, exact)[normal].max() < 1.2
        assert np.abs(found - exact)[~normal].max(initial=0) < np.finfo(dtype).tiny


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exp_at_the_ends(isa, dtype):
    X = np.array([[0.0], [-0.0], [1e6], [np.finfo(dtype).tiny]], dtype=dtype)
    np.testing.assert_array_equal(gaussian_block(X, X[:1] * 0, 1.0)[:, 0], np.array([1, 1, 0, 1], dtype=dtype))
    assert np.isnan(gaussian_block(np.full((1, 1), np.nan, dtype=dtype), X, 1.0)).all()


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 31, 32, 33, 64, 255, 256, 257, 300, 513])
def test_blocks_against_longdouble(isa, d):
    rng = np.random.default_rng(d)
    X, Y = rng.normal(size=(67, d)), rng.normal(size=(291, d))
    sigma = np.sqrt(d)
    assert np.abs(gaussian_block(X, Y, sigma) - long_gaussian(X, Y, sigma)).max() < 3e-15
    G = dots(X, Y)
    size = dots(np.abs(X), np.abs(Y)).max()
    assert np.abs(linear_block(X, Y) - G).max() < d * 2.3e-16 * size
    for degree in (1, 2, 3, 4, 7):
        exact = (G / d + 1) ** degree
        error = np.abs(polynomial_block(X, Y, 1 / d, 1.0, degree) - exact).max()
        assert error < degree * (d + 4) * 1.2e-16 * (size / d + 1) ** degree
    error = np.abs(tanh_block(X, Y, 1 / d, 0.1) - np.tanh(G / d + np.longdouble(0.1)))
    assert error.max() < (d + 8) * 1.2e-16 * (size / d + 1)


def test_tanh_to_a_few_ulp_down_to_tiny_arguments(isa):
    x = np.concatenate([10.0 ** np.linspace(-300, 1.2, 4000), np.linspace(0, 25, 4000), [710.0, 1e300]])
    x = np.concatenate([x, -x])[:, None]
    one = np.ones((1, 1))
    found = tanh_block(x, one, 1.0, 0.0)
    exact = np.tanh(x.astype(np.longdouble))
    nonzero = x != 0
    assert in_ulp(found[nonzero], exact[nonzero]).max() < 4
    assert (found[~nonzero] == 0).all()
    assert np.abs(found).max() == 1
    x = x[np.abs(x[:, 0]) < 1e30].astype(np.float32)
    single = tanh_block(x, one.astype(np.float32), 1.0, 0.0)
    exact = np.tanh(x.astype(float))
    normal = np.abs(exact) > 1e-37
    assert in_ulp(single[normal], exact[normal]).max() < 4


@cache
def far_clusters(d, gap):
    """Rows in float64 and float32, and the kernel values of each: in longdouble once for all instruction sets."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(150, d)) / np.sqrt(d)
    X[::2] += gap
    X = X[rng.permutation(150)] if d % 2 else X[np.argsort(X[:, 0])]
    # the rows of float32 are what they are: rounded to float32 first
    single = X.astype(np.float32)
    return X, long_gaussian(X, X, 1.0), single, long_gaussian(single, single, 1.0)


@pytest.mark.parametrize("d", [1, 3, 32, 33, 120, 2049])
@pytest.mark.parametrize("gap", [1e3, 1e6, 1e8])
def test_far_clusters(isa, d, gap):
    """Two clusters ``gap`` sigma apart: the GEMM form alone would lose gap^2 roundoffs."""
    X, exact, single, exact_of_single = far_clusters(d, gap)
    assert np.abs(gaussian_block(X, X, 1.0) - exact).max() < 1e-12
    assert np.abs(gaussian_block(single, single, 1.0) - exact_of_single).max() < 3e-5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 2, 5, 32, 33, 70, 2048])
@pytest.mark.parametrize("n", [1, 5, 191, 192, 193, 700])
def test_block_of_a_set_with_itself_is_symmetric_bit_for_bit(isa, n, d, dtype):
    X = np.random.default_rng(n).normal(size=(n, d)).astype(dtype)
    for Y in (X, X.copy()):
        K = gaussian_block(X, Y, 1.7)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_array_equal(np.diag(K), 1)
        for K in (
            linear_block(X, Y),
            polynomial_block(X, Y, 0.3, 1.0, 3),
            tanh_block(X, Y, 0.3, 0.1),
        ):
            np.testing.assert_array_equal(K, K.T)


@cache
def wide_rows(n, d, offset):
    """Rows, which of them are compared with all, and these kernel values and inner products in longdouble."""
    X, few = np.random.default_rng(n).normal(size=(n, d)) + offset, slice(None, None, max(1, n // 40))
    return X, few, long_gaussian(X[few], X, np.sqrt(d)), dots(X[few], X)


@pytest.mark.parametrize("offset", [0.0, 30.0, 1e4, 1e8])
@pytest.mark.parametrize(("n", "d"), [(3, 2048), (200, 300), (350, 2050)])
def test_wide_rows_with_themselves_against_longdouble(isa, n, d, offset):
    """All inner products at once: of the rows as they are, about their mean, or by differences."""
    X, few, exact, G = wide_rows(n, d, offset)
    assert np.abs(gaussian_block(X, X, np.sqrt(d))[few] - exact).max() < 1e-13
    scale = 1.0 / float(np.abs(G).max())
    error = np.abs(polynomial_block(X, X, scale, 1.0, 2)[few] - (G * scale + 1) ** 2)
    assert error.max() < 2 * (d + 4) * 1.2e-16 * 4.0


@pytest.mark.parametrize("m", [5, 24, 37, 200])
@pytest.mark.parametrize(
    "kind, parameters", [("polynomial", {"scale": 1.0, "offset": 1.0, "degree": 3}), ("gaussian", {"sigma": 9.0})]
)
def test_columns_of_the_padding_never_come_from_what_memory_held_before(isa, kind, parameters, m):
    rng = np.random.default_rng(m)
    X, Y, U = rng.standard_normal((25, 66)), rng.standard_normal((m, 66)), rng.standard_normal((m, 3))
    tiles.product(kind, parameters, X, np.full((m + 16, 66), np.nan), None, np.ones((m + 16, 3)))
    found = tiles.product(kind, parameters, X, Y, None, U)[0]
    K = (dots(X, Y) + 1) ** 3 if kind == "polynomial" else long_gaussian(X, Y, 9.0)
    assert np.abs(found - K @ U).max() <= 1e-12 * np.abs(K).max() * m


def test_infinitely_far_and_extreme_sigma(isa):
    X = np.array([[0.0], [1.0], [1e200]])
    np.testing.assert_array_equal(gaussian_block(X, X, 1e-3), np.eye(3))
    Y = np.array([[0.0], [1.0], [3.0]])
    for scale in (1e-30, 1e30):
        Z = (Y * scale).astype(np.float32)
        np.testing.assert_allclose(gaussian_block(Z, Z, scale), long_gaussian(Y, Y, 1.0).astype(float), rtol=1e-5)
    for scale in (1e-139, 1e139):
        K = gaussian_block(Y * scale, Y * scale, scale)
        np.testing.assert_allclose(K, long_gaussian(Y, Y, 1.0).astype(float), rtol=1e-14)


def test_inputs_may_be_read_only_strided_or_empty(isa):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 6))
    X.flags.writeable = False
    exact = long_gaussian(X[::-2, ::2], X[::3, 1::2], 1.0)
    assert np.abs(gaussian_block(X[::-2, ::2], X[::3, 1::2], 1.0) - exact).max() < 1e-15
    assert gaussian_block(X[:0], X, 1.0).shape == (0, 40)
    with pytest.raises(ValueError, match="rows of 6 and of 5"):
        gaussian_block(X, X[:, :5], 1.0)


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("gaussian", {"sigma": 0.0}, "sigma is 0.0"),
        ("gaussian", {"sigma": float("nan")}, "sigma is nan"),
        ("gaussian", {"sigma": 1e-200}, "rescale the data"),
        ("polynomial", {"scale": 1.0, "offset": 0.0, "degree": 0}, "degree is 0"),
        ("matern", {}, "no compiled tile is called 'matern'"),
    ],
)
def test_bad_parameters(kind, parameters, message):
    X = np.ones((2, 2))
    with pytest.raises(ValueError, match=message):
        tiles.block(kind, parameters, X, X)
