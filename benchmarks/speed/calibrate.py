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

from fastkpca.base.lapack import largest_eigenpairs
from fastkpca.base.protocol import Moments
from fastkpca.kernels import get_kernel
from fastkpca.maps.monomial import PolynomialMap
from fastkpca.maps.monomial_moments import product_flops
from fastkpca.products import rates
from fastkpca.products.exact import ExactSummation
from fastkpca.rows.view import Rows


def seconds(task: Callable[[], object], repeats: int = 5) -> float:
    task()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        task()
        times.append(time.process_time() - started)
    return sorted(times)[repeats // 2]


def main() -> None:
    common.header("rates of the plan, one thread")
    rng = np.random.default_rng(0)
    measured = {}
    A, B = rng.random((2000, 1000)), rng.random((1000, 50))
    measured["GEMM_RATE"] = 2.0 * 2000 * 1000 * 50 / seconds(lambda: A @ B)
    symmetric = rng.random((1000, 1000))
    symmetric = symmetric + symmetric.T
    beside = rates.EIGEN_STEPS[0] * 1e3 + rates.EIGEN_STEPS[1] * 1e6 + rates.vector_seconds(1000, 10)
    pairs = seconds(lambda: largest_eigenpairs(symmetric.copy(), 10), 3)
    measured["CACHED_EIGEN_RATE"] = 4 / 3 * 1000.0**3 / (pairs - beside)
    X = rng.random((6000, 3))
    product = ExactSummation(get_kernel("gaussian", sigma=1.0), Rows(X))
    u = rng.random((6000, 1))
    values = seconds(lambda: product.matmat(u)) - 6000.0**2 * (3.0 / rates.DISTANCE_RATE + 2.0 / rates.PRODUCT_RATE)
    measured["ENTRY_RATE"] = 6000.0**2 / 2 / values
    phi = PolynomialMap(10, 3, 1.0, 1.0)
    tile = rng.random((2048, 10))
    form = seconds(lambda: phi.features(tile), 20)
    measured["FEATURE_RATE"] = 2048 * 2.0 * phi.n_features / form
    # of loops that are chosen by the instruction set
    measured["SYRK_RATE"] = 2048 * phi.n_features**2 / (seconds(lambda: Moments(phi).update(tile), 20) - form)
    quick, sums = phi.quick_moments(), product_flops(10, 3, True)
    assert quick is not None and sums is not None
    measured["PRODUCT_RATE"] = 2048 * sums / (seconds(lambda: quick.update(tile), 20) - form)
    narrow = PolynomialMap(10, 1)
    measured["ROW_RATE"] = 8192 * 10 / seconds(lambda: Moments(narrow).update(np.ones((8192, 10))), 20)
    print(f"{'constant':14s}{'ships':>10s}{'here':>10s}{'ratio':>8s}")
    for name, value in measured.items():
        ships = getattr(rates, name)
        print(f"{name:14s}{ships:10.2g}{value:10.2g}{value / ships:8.2f}")


if __name__ == "__main__":
    main()
