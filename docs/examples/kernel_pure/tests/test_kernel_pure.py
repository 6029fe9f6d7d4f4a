import numpy as np

import fastkpca as fk
from fastkpca.testing import check_kernel


def test_it_is_what_it_says():
    check_kernel("cauchy")
    check_kernel(fk.get_kernel("cauchy", scale=0.3))


def test_kpca_finds_it_by_name():
    X = np.random.default_rng(0).standard_normal((500, 3))
    model = fk.kpca(X, "cauchy", 3, scale=2.0)
    K = 1 / (1 + ((X[:, None] - X[None]) ** 2).sum(axis=2) / 2.0**2)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    true = np.linalg.eigvalsh(K)[:-4:-1]
    low, high = model.eigenvalue_bounds.T
    assert (low * (1 - 1e-9) <= true).all() and (true <= high * (1 + 1e-9)).all()
