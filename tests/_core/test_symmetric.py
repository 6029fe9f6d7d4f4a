"""Passes over a symmetric matrix: sums against exact ones, and the same bits as numpy's where both round alike."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fastkpca._core import symmetric


def matrix(n, scale=1.0):
    K = np.random.default_rng(n).standard_normal((n, n)) * scale
    return K + K.T


@pytest.mark.parametrize("n", [1, 2, 7, 8, 15, 16, 17, 50, 200])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_sums_of_rows_and_of_squares(n, scale):
    K = matrix(n, scale)
    sums, squares = symmetric.row_sums(K)
    for i in (0, n // 2, n - 1):
        exact = float(sum(Fraction(x) for x in K[i]))
        assert abs(sums[i] - exact) <= n * 2.0**-53 * np.abs(K[i]).sum()
    exact = sum(Fraction(x) ** 2 for x in K.ravel())
    assert abs(Fraction(squares) / exact - 1) <= 2 * n * 2.0**-53


@pytest.mark.parametrize("n", [1, 7, 8, 9, 50, 201])
@pytest.mark.parametrize("scale", [2.0**-400, 1.0, 2.0**400])
def test_centred_copy_has_the_bits_of_numpy(n, scale):
    K = matrix(n, 1.0 / scale)
    h = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    expected = (K * scale).astype(np.float32) - h - h[:, None]
    assert np.array_equal(symmetric.centre_single(K, scale, h), expected)


def test_nothing_and_wrong_shapes():
    empty = np.zeros((0, 0))
    assert symmetric.row_sums(empty)[1] == 0.0
    assert symmetric.centre_single(empty, 1.0, np.zeros(0, np.float32)).shape == (0, 0)
    with pytest.raises(ValueError, match="2 rows and 3 columns"):
        symmetric.row_sums(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="3 numbers for a matrix of 2 rows"):
        symmetric.centre_single(np.zeros((2, 2)), 1.0, np.zeros(3, np.float32))
