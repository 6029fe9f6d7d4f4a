"""Measure the rates that the plan's predictions rest on (fastkpca/products/rates.py); one thread, a few seconds.

Prints each constant as it stands beside what this machine does. The constants ship with the package: predictions are
meant to rank routes, which they do as long as the ratios between rates are about right.

    python benchmarks/speed/calibrate.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import common
import numpy as np
import scipy.linalg
from scipy.linalg import blas

from fastkpca.base.protocol import Moments
from fastkpca.kernels import get_kernel
from fastkpca.maps.monomial import PolynomialMap
from fastkpca.products import rates
from fastkpca.products.exact import ExactSummation
from fastkpca.rows.view import Rows


def seconds(task: Callable[[], object], repeats: int = 5) -> float:
    task()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        task()
        times.append(time.perf_counter() - started)
    return sorted(times)[repeats // 2]


def main() -> None:
    common.header("rates of the plan, one thread")
    rng = np.random.default_rng(0)
    measured = {}
    A, B = rng.random((2000, 1000)), rng.random((1000, 50))
    measured["GEMM_RATE"] = 2.0 * 2000 * 1000 * 50 / seconds(lambda: A @ B)
    tall = np.asfortranarray(rng.random((20_000, 300)))
    measured["SYRK_RATE"] = 20_000 * 300.0**2 / seconds(lambda: blas.dsyrk(1.0, tall, trans=1))
    symmetric = rng.random((1000, 1000))
    symmetric = symmetric + symmetric.T
    measured["CACHED_EIGEN_RATE"] = (
        4 / 3 * 1000.0**3 / seconds(lambda: scipy.linalg.eigh(symmetric, subset_by_index=[990, 999], driver="evr"), 3)
    )
    X = rng.random((6000, 3))
    product = ExactSummation(get_kernel("gaussian", sigma=1.0), Rows(X))
    u = rng.random((6000, 1))
    measured["ENTRY_RATE"] = 6000.0**2 / 2 / seconds(lambda: product.matmat(u))
    phi = PolynomialMap(10, 3, 1.0, 1.0)
    tile = rng.random((2048, 10))
    measured["FEATURE_RATE"] = 2048 * 2.0 * phi.n_features / seconds(lambda: phi.features(tile), 20)
    narrow = PolynomialMap(10, 1)
    measured["ROW_RATE"] = 8192 * 10 / seconds(lambda: Moments(narrow).update(np.ones((8192, 10))), 20)
    print(f"{'constant':14s}{'ships':>10s}{'here':>10s}{'ratio':>8s}")
    for name, value in measured.items():
        ships = getattr(rates, name)
        print(f"{name:14s}{ships:10.2g}{value:10.2g}{value / ships:8.2f}")


if __name__ == "__main__":
    main()
