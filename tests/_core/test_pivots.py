"""Triangular solves of features: their backward error is within what the certificate of pivots allows for."""

import numpy as np
import pytest
import scipy.linalg

from fastkpca._core import pivots

U = 2.0**-53


def graded_factor(rng, D):
    """Of a matrix whose eigenvalues fall by up to sixteen decades, in an order that may not be that of its columns."""
    decades = rng.uniform(0, 16)
    Q = np.linalg.qr(rng.standard_normal((D, D)))[0] if rng.integers(2) else np.eye(D)
    A = (Q * 10.0 ** (-decades * rng.permutation(D) / D)) @ Q.T
    A.flat[:: D + 1] += 40 * D * U * A.trace()
    return np.ascontiguousarray(np.linalg.cholesky(A)) * 10.0 ** rng.uniform(-20, 20)


@pytest.mark.parametrize("by_blas", [False, True])
def test_backward_error_of_solve_is_bounded(attack, by_blas):
    sizes = [1, 2, 3, 4, 5, 7, 31, 32, 33, 36, 63, 64, 65, 97, 130, 200]
    b = pivots.FACTOR_BLOCK
    for case in range(attack.count(800, least=48)):
        rng = attack.rng("triangular solve", case)
        D, n = sizes[case % len(sizes)], int(rng.choice([1, 5, 8, 31, 32, 33, 64, 65, 137]))
        L = graded_factor(rng, D)
        given = rng.standard_normal((D, n)) * 10.0 ** rng.uniform(-10, 10, n)
        if rng.integers(2):
            given = L @ given  # features of one size, as a semidefinite kernel has them
        X = given.copy()
        pivots.solve(L, X, by_blas)
        long = X.astype(np.longdouble)
        off = np.sqrt(((L.astype(np.longdouble) @ long - given) ** 2).sum(axis=0))
        columns = (L**2).sum(axis=0)
        roots = np.sqrt([columns[k:].sum() for k in range(0, D, b)])
        allowed = 1.01 * U * ((b + 3) * roots[0] + roots[1:].sum()) * np.sqrt((long**2).sum(axis=0))
        assert (off <= allowed).all(), (case, D, n)
        reference = scipy.linalg.solve_triangular(L, given, lower=True)
        size = np.abs(L) @ np.abs(X)
        assert (np.abs(L @ (X - reference)) <= 4 * D * U * size).all()


def test_solve_gives_a_point_the_same_bits_in_any_tile():
    rng = np.random.default_rng(0)
    L = graded_factor(rng, 101)
    given = rng.standard_normal((101, 333))
    X = given.copy()
    pivots.solve(L, X, False)
    for start, stop in ((0, 333), (0, 1), (7, 20), (64, 128), (65, 333), (3, 300)):
        part = given[:, start:stop].copy()
        pivots.solve(L, part, False)
        assert (part == X[:, start:stop]).all()


def test_solve_keeps_points_apart():
    L = graded_factor(np.random.default_rng(1), 40)
    X = np.ones((40, 70))
    X[3, 5], X[0, 66] = np.nan, np.inf
    pivots.solve(L, X, False)
    assert np.isfinite(np.delete(X, [5, 66], axis=1)).all()


def test_solve_of_nothing():
    pivots.solve(np.zeros((0, 0)), np.zeros((0, 5)), False)
    pivots.solve(np.eye(3), np.zeros((3, 0)), False)
