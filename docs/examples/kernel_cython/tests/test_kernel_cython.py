import numpy as np

import fastkpca as fk
from fastkpca.testing import check_kernel

RNG = np.random.default_rng(0)


def test_product_against_all_pairs():
    X, Y, U = RNG.random((300, 4)), RNG.random((200, 4)), RNG.standard_normal((200, 3))
    K = fk.gram(X, "intersection", Y, products="sorted")
    values = np.minimum(X[:, None], Y[None]).sum(axis=2)
    assert (np.abs(K @ U - values @ U) <= 2 * K.error_bound * np.abs(U).sum(axis=0)).all()
    assert np.allclose(K.T @ X, values.T @ X, rtol=1e-12)


def test_kpca_takes_the_product():
    X = RNG.random((6000, 4))
    model = fk.kpca(X, "intersection", 3, method="krylov", products="sorted")
    exact = fk.kpca(X, "intersection", 3, method="krylov", products="exact")
    assert model.info["products"] == "sorted"
    (low, high), (least, most) = model.eigenvalue_bounds.T, exact.eigenvalue_bounds.T
    assert (low <= most).all() and (least <= high).all()


def test_it_is_what_it_says():
    check_kernel("intersection", RNG.random((90, 3)))  # rows that the kernel is defined for
