"""A symmetric matrix: sums against exact ones, the same bits as numpy's where both round alike, eigenvalues."""

from __future__ import annotations

import sys
import threading
import time
from fractions import Fraction

import numpy as np
import pytest

from fastkpca._core import symmetric
from fastkpca._core.symmetric import eigenvalues


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


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [1, 2, 50, 4096])
def test_signs_make_the_largest_number_of_each_column_positive(n, order):
    V = np.asarray(np.random.default_rng(n).standard_normal((n, 7)), order=order)
    V[:, 3] = 0.0
    V[(n - 1) // 2, 4], V[-1, 4] = -9.0, 9.0 * (1.0 + 1e-9)  # a tie up to rounding: the first of the two counts
    V[0, 5] = np.nan
    signs = symmetric.signs(V)
    assert set(signs) <= {-1.0, 1.0} and signs[3] == 1.0
    assert signs[4] == (1.0 if n == 1 else -1.0)
    for j in (0, 1, 2, 6):
        assert (V[:, j] * signs[j]).max() == np.abs(V[:, j]).max()
    assert np.array_equal(symmetric.signs(V[:, ::-1]), signs[::-1])
    assert symmetric.signs(V[:, :0]).shape == (0,)


def test_nothing_and_wrong_shapes():
    empty = np.zeros((0, 0))
    assert symmetric.row_sums(empty)[1] == 0.0
    assert symmetric.centre_single(empty, 1.0, np.zeros(0, np.float32)).shape == (0, 0)
    with pytest.raises(ValueError, match="2 rows and 3 columns"):
        symmetric.row_sums(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="3 numbers for a matrix of 2 rows"):
        symmetric.centre_single(np.zeros((2, 2)), 1.0, np.zeros(3, np.float32))


@pytest.mark.parametrize("n", [0, 1, 2, 5, 65, 300])
@pytest.mark.parametrize("order", "CF")
def test_all_eigenvalues_are_those_of_numpy(n, order):
    A = np.random.default_rng(n).standard_normal((n, n))
    A = np.array(A + A.T, order=order)
    before = A.copy()
    values = eigenvalues(A)
    np.testing.assert_array_equal(A, before)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A), atol=1e-14 * n * np.abs(A).max(initial=0.0))


def test_other_threads_run_while_eigenvalues_are_computed():
    A = np.random.default_rng(0).standard_normal((400, 400))
    count, stop, interval = [0], threading.Event(), sys.getswitchinterval()

    def work():
        while not stop.is_set():
            count[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=work)
    sys.setswitchinterval(1000.0)  # no thread gives way but where it may run without the interpreter
    try:
        thread.start()
        seen = []
        while len(seen) < 100 and not any(seen):  # on a busy machine the other thread may sleep
            before = count[0]
            eigenvalues(A)
            seen.append(count[0] - before)
        assert any(seen)
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        thread.join()
