"""Each compiled loop in four threads, and four such calls at once, for ThreadSanitizer.

With the argument "planted": a race between two of them, which it has to find.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import fastkpca as fk
from fastkpca._core import tiles

THREADS = 4
rng = np.random.default_rng(0)
X, flat = rng.random((6000, 3)), rng.random((6000, 2))
ones = np.ones((6000, 2))


def fits(kernel, **options):
    return lambda: fk.kpca_project(fk.kpca(X, kernel, 3, n_threads=THREADS, **options), X, n_threads=THREADS)


def products(kernel, rows=flat, **options):
    return lambda: fk.gram(rows, kernel, n_threads=THREADS, **options) @ ones


calls = {
    "monomials": fits("polynomial", degree=3),
    "pivots": fits("gaussian", sigma=0.5, features="pivots", tol=1e-3),
    "fourier": fits("gaussian", sigma=0.3, features="fourier", tol=1e-4),
    "krylov": fits("gaussian", sigma=0.5, method="krylov", tol=1e-2),
    "krylov, float32": lambda: fk.kpca(X.astype(np.float32), "tanh", 2, method="krylov", tol=1e-2, n_threads=THREADS),
    "matern": fits("matern", nu=1.5, length_scale=0.5, tol=1e-2),
    "weights": fits("gaussian", sigma=0.5, tol=1e-2, sample_weight=np.linspace(1.0, 2.0, 6000)),
    "grid": products("gaussian", sigma=0.1, tol=1e-6, products="grid"),
    "expansion": products("gaussian", sigma=1.0, tol=1e-6, products="expansion"),
    "clusters": products("gaussian", sigma=0.02, tol=1e-6, products="clusters"),
    "exact": products("gaussian", sigma=0.1),
    "laplacian": products("laplacian", rows=flat[:, :1], length_scale=0.3, tol=1e-6),
    "intersection": products("intersection", rows=flat[:, :1], tol=1e-6),
}
if sys.argv[1:] == ["planted"]:
    rows, panels = tiles.panel_rows(), rng.random((4, 64, tiles.panel_rows()), dtype=np.float32)
    S = rng.random((4000, 64 + 4 * rows), dtype=np.float32)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: tiles.subtract_products(S, 0, 4000, 64, panels), range(40)))
    sys.exit()
for name, call in calls.items():
    print(name, flush=True)
    call()
print("four at once", flush=True)
with ThreadPoolExecutor(THREADS) as pool:
    list(pool.map(lambda call: call(), list(calls.values()) * 2))
