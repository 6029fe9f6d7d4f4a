"""Cholesky in float32 by steps: against its own error bound, LAPACK, and matrices that are just not definite."""

import numpy as np
import pytest
from instruction_sets import each_instruction_set

from fastkpca._core import tiles
from fastkpca.base.rounding import UNIT32, factorisation_error
from fastkpca.products.factorisation import is_positive_definite, room_for_triangle

isa = each_instruction_set(tiles)


def matrix(n, rng, lowest=1.0):
    A = rng.standard_normal((n, 40)).astype(np.float32)
    A = A @ A.T
    A.flat[:: n + 1] += lowest
    return A


@pytest.mark.parametrize("n", [1, 7, 500, 1024, 1100, 1152, 1407])
def test_factor_is_as_near_as_the_bound_says(isa, n):
    A = matrix(n, np.random.default_rng(n))
    S = room_for_triangle(n)
    S[...] = A
    S[np.triu_indices(n, 1)] = np.nan  # never read
    assert is_positive_definite(S)
    L = np.tril(S).astype(np.float64)
    error = np.linalg.norm(L @ L.T - A, 2) if n < 600 else np.linalg.norm(L @ L.T - A)
    assert error <= factorisation_error(n, UNIT32) * A.diagonal().max()


@pytest.mark.parametrize("n", [1, 500, 1300])
@pytest.mark.parametrize("order", ["C", "F"])
def test_either_order_is_factored_in_place(isa, n, order):
    A = matrix(n, np.random.default_rng(n))
    S = A.copy(order=order if n < 1024 or not tiles.panel_rows() else "C")
    assert is_positive_definite(S)
    np.testing.assert_allclose(np.tril(S), np.linalg.cholesky(A.astype(np.float64)), rtol=0, atol=1e-2)


@pytest.mark.parametrize("place", [0, 127, 128, 700, 1299])
def test_a_matrix_that_is_not_definite_is_found_out(isa, place):
    n = 1300
    A = matrix(n, np.random.default_rng(place))
    S = A.copy()
    S[place, place] = 0.0  # beside entries that are not zero
    assert not is_positive_definite(S)
    for wrong in (np.nan, np.inf, -np.inf):
        S = A.copy()
        S[place, place] = wrong
        assert not is_positive_definite(S)
        S = A.copy()
        S[place, max(place - 1, 0)] = wrong
        assert not is_positive_definite(S)


def test_smallest_eigenvalue_decides():
    """To the error of the bound: a shift above it is refused, one below it is not."""
    n = 1200
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.linspace(1.0, 3.0, n)
    A = (Q * values) @ Q.T
    margin = factorisation_error(n, UNIT32) * 3.0 + 2.0 * UNIT32 * np.linalg.norm(A)
    assert is_positive_definite((A - (1.0 - margin) * np.eye(n)).astype(np.float32))
    assert not is_positive_definite((A - (1.0 + margin) * np.eye(n)).astype(np.float32))


def test_threads_change_no_bit():
    A = matrix(1700, np.random.default_rng(1))
    one, two = A.copy(), A.copy()
    assert is_positive_definite(one, 1) and is_positive_definite(two, 2)
    np.testing.assert_array_equal(np.tril(one), np.tril(two))


def test_products_that_leave_the_matrix_are_refused():
    panel = tiles.panel_rows()
    if not panel:
        pytest.skip("BLAS is as fast")
    S = np.zeros((100, 100), dtype=np.float32)
    for start, stop, first, turned in (
        (0, 101, 10, np.zeros((1, 10, panel))),
        (5, 5, 10, np.zeros((1, 10, panel))),
        (0, 10, 90, np.zeros((1, 90, panel))),
        (0, 10, 10, np.zeros((1, 11, panel))),
        (0, 10, 10, np.zeros((1, 10, panel - 1))),
    ):
        with pytest.raises(ValueError, match="rows|panels"):
            tiles.subtract_products(S, start, stop, first, turned.astype(np.float32))
