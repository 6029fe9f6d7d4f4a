"""Sums of a symmetric matrix against exact ones; the signs of vectors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fastkpca.products import vectors


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


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [1, 2, 50, 4096])
def test_signs_make_the_largest_number_of_each_column_positive(n, order):
    V = np.asarray(np.random.default_rng(n).standard_normal((n, 7)), order=order)
    V[:, 3] = 0.0
    V[(n - 1) // 2, 4], V[-1, 4] = -9.0, 9.0 * (1.0 + 1e-9)  # a tie up to rounding: the first of the two counts
    V[0, 5] = np.nan
    signs = vectors.signs(V)
    assert set(signs) <= {-1.0, 1.0} and signs[3] == 1.0
    assert signs[4] == (1.0 if n == 1 else -1.0)
    for j in (0, 1, 2, 6):
        assert (V[:, j] * signs[j]).max() == np.abs(V[:, j]).max()
    assert np.array_equal(vectors.signs(V[:, ::-1]), signs[::-1])
    assert vectors.signs(V[:, :0]).shape == (0,)
