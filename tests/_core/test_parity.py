"""Products with even and odd columns against the whole matrix in long double, on every instruction set."""

import pickle

import numpy as np
import pytest
from instruction_sets import each_instruction_set

from fastkpca._core import parity
from fastkpca._core.parity import ParityMatrix
from fastkpca.base.rounding import UNIT

isa = each_instruction_set(parity)


def a_matrix(rng, n, n_even, n_odd, periodic):
    """It, and all of its rows."""
    half = n // 2 + 1 if periodic else (n + 1) // 2
    images = np.array([(n - i) % n if periodic else n - 1 - i for i in range(half)])
    even, odd = rng.standard_normal((half, n_even)), rng.standard_normal((half, n_odd))
    odd[images == np.arange(half)] = 0.0
    whole = np.empty((n, n_even + n_odd))
    whole[images] = np.hstack([even, -odd])
    whole[:half] = np.hstack([even, odd])
    return ParityMatrix(even, odd, n, periodic), whole


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("inner", [1, 2, 7, 8, 9, 33, 60, 100, 400])
def test_products_along_an_axis(isa, inner, periodic):
    rng = np.random.default_rng(inner)
    for n, n_even, n_odd, batch in [(1, 1, 0, 3), (2, 1, 1, 50), (9, 4, 3, 5), (24, 7, 9, 2), (31, 13, 12, 37)]:
        matrix, whole = a_matrix(rng, n, n_even, n_odd, periodic)
        assert matrix.shape == whole.shape
        for product, A in ((matrix.expand, whole), (matrix.fold, whole.T)):
            values = rng.standard_normal((batch, A.shape[1], inner))
            exact = np.einsum("ij,bjp->bip", A.astype(np.longdouble), values.astype(np.longdouble))
            size = np.einsum("ij,bjp->bip", np.abs(A), np.abs(values))
            computed = product(values, 1)
            assert computed.shape == exact.shape
            assert (np.abs(computed - exact) <= (n + n_even + n_odd + 4) * UNIT * size).all()
            out = np.full_like(computed, np.nan)
            assert product(values, 1, out) is out
            assert np.array_equal(out, computed)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("inner", [1, 3, 8, 9, 33, 60, 400])
def test_values_weighed_between_two_products(isa, inner, periodic):
    rng = np.random.default_rng(inner)
    for n, n_even, n_odd in [(1, 1, 0), (2, 1, 1), (9, 4, 3), (24, 7, 9), (31, 13, 12), (5, 30, 30)]:
        matrix, whole = a_matrix(rng, n, n_even, n_odd, periodic)
        values, weights = rng.standard_normal((n_even + n_odd, inner)), rng.standard_normal((n, inner))
        A = whole.astype(np.longdouble)
        exact = A.T @ (weights * (A @ values))
        size = np.abs(A.T) @ (np.abs(weights) * (np.abs(A) @ np.abs(values)))
        computed = matrix.weigh(values, weights)
        assert (np.abs(computed - exact) <= (2 * n + n_even + n_odd + 8) * UNIT * size).all()
        assert np.array_equal(matrix.weigh(values, weights), computed)
    with pytest.raises(ValueError, match="rows of weights"):
        matrix.weigh(values, weights[1:])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis_and_parts_of_arrays(isa, axis):
    rng = np.random.default_rng(axis)
    matrix, whole = a_matrix(rng, 20, 6, 5, False)
    shape = [19, 17, 23]
    shape[axis] = 11
    values = rng.standard_normal(shape)
    expected = np.moveaxis(np.tensordot(whole, values, axes=(1, axis)), 0, axis)
    assert np.allclose(matrix.expand(values, axis), expected, rtol=0, atol=1e-13)
    part = values[..., 3:10]  # with gaps
    if axis < 2:
        assert np.allclose(matrix.expand(part, axis), expected[..., 3:10], rtol=0, atol=1e-13)


def test_bits_do_not_depend_on_the_lines_beside(isa):
    rng = np.random.default_rng(5)
    matrix, _ = a_matrix(rng, 40, 12, 12, True)
    values = rng.standard_normal((6, 24, 50))
    whole = matrix.expand(values, 1)
    assert np.array_equal(whole[2:5], matrix.expand(values[2:5], 1))
    folded = matrix.fold(whole, 1)
    assert np.array_equal(folded[2:5], matrix.fold(whole[2:5], 1))


def test_nothing_to_multiply():
    rng = np.random.default_rng(6)
    matrix, _ = a_matrix(rng, 10, 3, 2, False)
    assert matrix.expand(np.empty((0, 5, 4)), 1).shape == (0, 10, 4)
    assert matrix.fold(np.empty((3, 10, 0)), 1).shape == (3, 5, 0)
    none, _ = a_matrix(rng, 10, 0, 0, False)
    assert np.array_equal(none.expand(np.empty((2, 0, 4)), 1), np.zeros((2, 10, 4)))


def test_wrong_numbers_of_rows():
    with pytest.raises(ValueError, match="5 are needed"):
        ParityMatrix(np.ones((4, 2)), np.ones((4, 2)), 10)
    with pytest.raises(ValueError, match="6 are needed"):
        ParityMatrix(np.ones((5, 2)), np.ones((5, 2)), 10, periodic=True)


@pytest.mark.parametrize("periodic", [False, True])
def test_a_copy_by_pickle_multiplies_alike(periodic):
    rng = np.random.default_rng(3)
    A, _ = a_matrix(rng, 24, 7, 5, periodic)
    values = rng.standard_normal((2, 12, 3))
    assert np.array_equal(pickle.loads(pickle.dumps(A)).expand(values, 1), A.expand(values, 1))
