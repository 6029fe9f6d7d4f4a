import numpy as np
import pytest

import fastkpca as fk
from fastkpca.kernels import KernelParameterError
from fastkpca.testing import check_kernel

RNG = np.random.default_rng(0)


def test_product_against_all_pairs():
    X, Y, U = RNG.random((300, 4)), RNG.random((200, 4)), RNG.standard_normal((200, 3))
    K = fk.gram(X, "sum_of_minima", Y, products="sorted")
    values = np.minimum(X[:, None], Y[None]).sum(axis=2)
    assert (np.abs(K @ U - values @ U) <= 2 * K.error_bound * np.abs(U).sum(axis=0)).all()
    assert np.allclose(K.T @ X, values.T @ X, rtol=1e-12)


def test_kpca_takes_the_product():
    X = RNG.random((6000, 4))
    model = fk.kpca(X, "sum_of_minima", 3, method="krylov", products="sorted")
    exact = fk.kpca(X, "sum_of_minima", 3, method="krylov", products="exact")
    assert model.info["products"] == "sorted"
    (low, high), (least, most) = model.eigenvalue_bounds.T, exact.eigenvalue_bounds.T
    assert (low <= most).all() and (least <= high).all()


def test_negative_rows_are_refused_wherever_they_come_in():
    X, negative = RNG.random((300, 4)), np.array([[0.5, 0.5, 0.5, -0.1]])
    model = fk.kpca(X, "sum_of_minima", 3)
    for call in (
        lambda: fk.kpca(np.concatenate([X, negative]), "sum_of_minima", 3),
        lambda: fk.kpca_project(model, negative),
        lambda: fk.gram(X, "sum_of_minima", negative, products="sorted"),
        lambda: fk.gram(X, "sum_of_minima", negative, products="exact") @ np.ones((1, 1)),
    ):
        with pytest.raises(KernelParameterError, match="histograms are not negative"):
            call()


def test_rows_may_be_large_counts():
    X = RNG.integers(0, 1000, (300, 4)).astype(float)
    values = np.minimum(X[:, None], X[None]).sum(axis=2)
    K = fk.gram(X, "sum_of_minima", products="sorted")
    assert (np.abs(K @ np.ones(300) - values.sum(axis=1)) <= 300 * K.error_bound).all()


def test_it_is_what_it_says():
    check_kernel("sum_of_minima", RNG.random((90, 3)))  # rows that the kernel is defined for
