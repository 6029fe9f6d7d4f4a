"""Sums of a symmetric matrix against exact ones, and Cholesky in float32 against its bound."""

from fractions import Fraction

import numpy as np
import pytest
from reference import with_eigenvalues

from fastkpca.base.rounding import UNIT32, factorisation_error
from fastkpca.products import vectors
from fastkpca.products.factorisation import is_positive_definite


def matrix(n, scale=1.0):
    K = np.random.default_rng(n).standard_normal((n, n)) * scale
    return K + K.T


@pytest.mark.parametrize("n", [1, 2, 7, 8, 15, 16, 17, 50, 200])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_sums_of_rows_and_of_squares(n, scale):
    K = matrix(n, scale)
    sums, squares = vectors.row_sums(K)
    for i in (0, n // 2, n - 1):
        exact = float(sum(Fraction(x) for x in K[i]))
        assert abs(sums[i] - exact) <= n * 2.0**-53 * np.abs(K[i]).sum()
    exact = sum(Fraction(x) ** 2 for x in K.ravel())
    assert abs(Fraction(squares) / exact - 1) <= 2 * n * 2.0**-53


# Cholesky -----------------------------------------------------------------------------------------------------------


def definite(n, rng, lowest=1.0):
    A = rng.standard_normal((n, 40)).astype(np.float32)
    A = A @ A.T
    A.flat[:: n + 1] += lowest
    return A


@pytest.mark.parametrize("n", [1, 7, 500, 1024, 1100, 1152, 1407])
@pytest.mark.parametrize("order", ["C", "F"])
def test_factor_is_as_near_as_the_bound_says(n, order):
    A = definite(n, np.random.default_rng(n))
    S = A.copy(order=order)
    S[np.triu_indices(n, 1)] = np.nan  # never read
    assert is_positive_definite(S)
    L = np.tril(S).astype(np.float64)
    error = np.linalg.norm(L @ L.T - A, 2) if n < 600 else np.linalg.norm(L @ L.T - A)
    assert error <= factorisation_error(n, UNIT32) * A.diagonal().max()


@pytest.mark.parametrize("place", [0, 127, 128, 700, 1299])
def test_a_matrix_that_is_not_definite_is_found_out(place):
    n = 1300
    A = definite(n, np.random.default_rng(place))
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
    A = with_eigenvalues(np.random.default_rng(3), np.linspace(1.0, 3.0, n))
    margin = factorisation_error(n, UNIT32) * 3.0 + 2.0 * UNIT32 * np.linalg.norm(A)
    assert is_positive_definite((A - (1.0 - margin) * np.eye(n)).astype(np.float32))
    assert not is_positive_definite((A - (1.0 + margin) * np.eye(n)).astype(np.float32))
