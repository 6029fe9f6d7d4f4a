"""One small fit on each route, for valgrind: every compiled module is called."""

import numpy as np

import fastkpca as fk

X = np.random.default_rng(0).random((200, 2))
for kernel, options in [
    ("gaussian", {"sigma": 0.5}),
    ("polynomial", {"degree": 2}),
    ("gaussian", {"sigma": 0.3, "method": "krylov"}),
    ("matern", {"nu": 1.5, "length_scale": 0.3, "method": "krylov"}),
]:
    model = fk.kpca(X, kernel, 3, **options)
    print(kernel, model.plan.method, model.eigenvalues)
for products in ("grid", "expansion"):
    print(products, (fk.gram(X, "gaussian", sigma=0.3, tol=1e-6, products=products) @ np.ones(200))[:2])
