"""Matérn kernels of ``kernels_contrib``: their own products against exact tiles, and certified components of real data.

    nice -n 19 python benchmarks/speed/matern.py [line] [split] [kpca]

One thread. Ratios are of the same run. "error" is the largest error, over sum |u|, of a product with random signs (on a
line: of 512 entries of it) and of 16 columns of K, against exact tiles; "bound" is what the product says of itself.
"""

# ruff: noqa: B023 (every function that is made in a loop is called in the same turn)

from __future__ import annotations

import sys
import time
import warnings

from common import DATA, alternate, header  # isort: skip (limits BLAS to one thread before numpy loads it)

import numpy as np

import fastkpca
from fastkpca.errors import CertificateWarning
from fastkpca.kernels import get_kernel


def seconds(task):
    started = time.perf_counter()
    result = task()
    return time.perf_counter() - started, result


def line() -> None:
    header("products on a line: sorted sweeps against exact tiles; seconds (setup + one product of one column)")
    print(f"{'N':>8} {'nu':>4} {'setup':>8} {'product':>8} {'exact':>8} {'ratio':>7} {'error':>9} {'bound':>9}")
    rng = np.random.default_rng(0)
    for n in (20_000, 100_000, 1_000_000):
        X = rng.standard_normal((n, 1))
        u = rng.choice([-1.0, 1.0], (n, 1))
        for nu in (0.5, 1.5, 2.5):
            p = {"nu": nu, "length_scale": 0.3, "n_threads": 1}
            setup, K = seconds(lambda: fastkpca.gram(X, "matern", products="sorted", **p))
            some = np.sort(rng.choice(n, 512, replace=False))
            entries = get_kernel("matern", nu=nu, length_scale=0.3)
            exact_rows = sum(entries.block(X[some], X[i : i + 4096]) @ u[i : i + 4096] for i in range(0, n, 4096))
            error = np.abs((K @ u)[some] - exact_rows).max() / n
            if n <= 100_000:
                E = fastkpca.gram(X, "matern", products="exact", **p)
                if n <= 20_000:
                    times = alternate({"own": lambda: K @ u, "exact": lambda: E @ u}, 3)
                else:
                    times = {"own": seconds(lambda: K @ u)[0], "exact": seconds(lambda: E @ u)[0]}
                tail = f"{times['exact']:8.2f} {times['exact'] / times['own']:7.0f}"
            else:
                times = alternate({"own": lambda: K @ u}, 3)
                tail = f"{'-':>8} {'-':>7}"
            print(
                f"{n:8d} {nu:4} {setup:8.3f} {times['own']:8.3f} {tail} {error:9.1e} {K.error_bound:9.1e}", flush=True
            )


def split() -> None:
    header("products in two and three dimensions, N = 50000: near pairs and a grid against exact tiles; seconds")
    print(
        f"{'d':>2} {'nu':>4} {'length':>6} {'tol':>6} {'chosen':>7} {'setup':>7} {'product':>8} {'predicted':>9} "
        f"{'exact':>6} {'ratio':>6} {'error':>8} {'bound':>8}"
    )
    n = 50_000
    rng = np.random.default_rng(0)
    for d in (2, 3):
        X = rng.random((n, d))
        u = rng.choice([-1.0, 1.0], (n, 1))
        some = np.sort(rng.choice(n, 512, replace=False))
        for nu in (0.5, 1.5, 2.2, 2.5):
            for length_scale in (0.1, 0.5):
                p = {"nu": nu, "length_scale": length_scale, "n_threads": 1}
                E = fastkpca.gram(X, "matern", products="exact", **p)
                exact, product = seconds(lambda: E @ u)
                kernel = get_kernel("matern", nu=nu, length_scale=length_scale)
                columns = kernel.block(X, X[some[:16]])
                unit = np.zeros((n, 16))
                unit[some[:16], np.arange(16)] = 1.0
                for tol in (1e-3, 1e-6):
                    setup, K = seconds(lambda: fastkpca.gram(X, "matern", tol=tol, **p))
                    name = type(K._summation).__name__.removesuffix("Summation").lower()
                    own = alternate({"own": lambda: K @ u}, 3)["own"]
                    error = max(np.abs(K @ u - product).max() / n, np.abs(K @ unit - columns).max())
                    predicted = getattr(getattr(K._summation, "plan", None), "flops", float("nan")) / 5e9
                    print(
                        f"{d:2d} {nu:4} {length_scale:6} {tol:6.0e} {name:>7} {setup:7.3f} {own:8.3f} {predicted:9.3f} "
                        f"{exact:6.2f} {exact / own:6.0f} {error:8.1e} {K.error_bound:8.1e}",
                        flush=True,
                    )


def kpca() -> None:
    header("five components at tol 1e-3, 3000 rows of real data, against LAPACK; and of all rows")
    print(
        f"{'data':>10} {'nu':>4} {'rows':>7} {'route':>18} {'seconds':>8} {'widest':>8} {'inside':>7} {'farthest':>9}"
    )
    for name in ("uci_kin40k", "uci_protein", "lidar"):
        X = np.load(DATA / f"{name}.npz", allow_pickle=False)["X"].astype(np.float64)
        X -= X.mean(axis=0)
        X /= X.std(axis=0) if name != "lidar" else X.std()
        X = X[np.random.default_rng(0).permutation(len(X))]
        for nu in (1.5, 2.5):
            kernel = get_kernel("matern", nu=nu, length_scale=X.shape[1] ** 0.5)
            few = X[:3000]
            K = kernel.block(few, few)
            K += K.mean() - K.mean(axis=0) - K.mean(axis=1)[:, None]
            exact = np.linalg.eigvalsh(K)[::-1][:5]
            for method, rows in (("dense", few), ("krylov", few), ("auto", X[:50_000])):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CertificateWarning)
                    taken, model = seconds(lambda: fastkpca.kpca(rows, kernel, 5, tol=1e-3, method=method, n_threads=1))
                low, high = model.eigenvalue_bounds.T
                route = f"{model.info['method']} {model.info.get('products', '')}"
                inside, farthest = "-", "-"
                if rows is few:
                    rounding = 1e-13 * exact[0]
                    inside = bool(((low <= exact + rounding) & (exact <= high + rounding)).all())
                    farthest = f"{np.abs(model.eigenvalues - exact).max() / exact[0]:.1e}"
                print(
                    f"{name:>10} {nu:4} {len(rows):7d} {route:>18} {taken:8.2f} {(high - low).max() / high[0]:8.1e} "
                    f"{inside!s:>7} {farthest:>9}",
                    flush=True,
                )


if __name__ == "__main__":
    parts = {"line": line, "split": split, "kpca": kpca}
    for part in sys.argv[1:] or parts:
        parts[part]()
