"""Measure the rates that the plan's predictions rest on (fastkpca/products/rates.py); one thread.

Prints each rate as it stands for this processor's instruction set beside what this machine does. The rates ship with
the package: predictions are meant to rank routes, which they do as long as the ratios between rates are about right;
where all of them are off by the same factor, nothing is wrong.
The best of many runs counts: other work on the machine only makes them longer.

    python benchmarks/speed/calibrate.py [--instructions baseline]

With ``--instructions`` the compiled loops are those of another set, and OPENBLAS_CORETYPE=Nehalem or Haswell, in the
environment, gives the same for OpenBLAS.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import common
import numpy as np
from scipy.linalg import lapack

from fastkpca._core import multiindex, tiles
from fastkpca.base.lapack import largest_eigenpairs
from fastkpca.base.protocol import Kernel, Moments
from fastkpca.kernels import get_kernel
from fastkpca.maps.monomial import PolynomialMap
from fastkpca.maps.monomial_moments import product_flops
from fastkpca.products import rates, truncated
from fastkpca.products.exact import ExactSummation
from fastkpca.rows.view import Rows

NARROW, WIDE = 3, 30


def seconds(task: Callable[[], object], repeats: int = 5) -> float:
    task()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        task()
        times.append(time.process_time() - started)
    return min(times)


def leading_pairs(symmetric: np.ndarray) -> None:
    largest_eigenpairs(symmetric.copy(), 10)


def of_blas(rng: np.random.Generator) -> dict[str, float]:
    A, B = rng.random((2000, 1000)), rng.random((1000, 50))
    measured = {"multiplications": 2.0 * 2000 * 1000 * 50 / seconds(lambda: A @ B, 20)}
    for name, n in (("cached_eigen", 800), ("eigen", 3000)):
        symmetric = rng.random((n, n))
        symmetric = symmetric + symmetric.T
        beside = rates.RATE.row * n + rates.RATE.entry * n**2 + rates.vector_seconds(n, 10)
        pairs = seconds(partial(leading_pairs, symmetric), 3 if n < 1000 else 1)
        measured[name] = 4 / 3 * float(n) ** 3 / (pairs - beside)
    dominant = (symmetric + 1e4 * np.eye(n)).astype(np.float32)
    measured["factorisations"] = n**3 / 3.0 / seconds(lambda: lapack.spotrf(dominant), 2)
    return measured


def of_tiles(rng: np.random.Generator) -> dict[str, float]:
    """From products with few and many columns, of few and many coordinates."""
    n = 4000
    once = {}
    for d, columns in ((NARROW, 1), (WIDE, 1), (NARROW, 40)):
        product = ExactSummation(get_kernel("gaussian", sigma=1.0), Rows(rng.random((n, d))))
        u = rng.random((n, columns))
        once[d, columns] = seconds(partial(product.matmat, u)) / n**2
    coordinate = 2.0 * (once[WIDE, 1] - once[NARROW, 1]) / (WIDE - NARROW)  # one value serves two entries
    column = (once[NARROW, 40] - once[NARROW, 1]) / 39
    value = 2.0 * (once[NARROW, 1] - column) - NARROW * coordinate
    return {"entries": 1.0 / value, "distances": 2.0 / coordinate, "products": 2.0 / column}


def of_values(kernel: Kernel, rng: np.random.Generator) -> dict[str, float]:
    X = rng.random((256, NARROW))
    return {"blocks": 256.0**2 / seconds(lambda: kernel.block(X, X), 50)}


def of_features(rng: np.random.Generator) -> dict[str, float]:
    phi = PolynomialMap(10, 3, 1.0, 1.0)
    tile = rng.random((2048, 10))
    form = seconds(lambda: phi.features(tile), 20)
    measured = {"features": 2048 * 2.0 * phi.n_features / form}
    measured["squares"] = 2048 * phi.n_features**2 / (seconds(lambda: Moments(phi).update(tile), 20) - form)
    quick, sums = phi.quick_moments(), product_flops(10, 3, True)
    assert quick is not None and sums is not None
    measured["sums of products"] = 2048 * sums / seconds(lambda: quick.update(tile), 20)
    narrow = PolynomialMap(10, 1)
    measured["rows"] = 8192 * 10 / seconds(lambda: Moments(narrow).update(np.ones((8192, 10))), 20)
    return measured


def of_near_values(rng: np.random.Generator) -> dict[str, float]:
    """Seconds, from matrices with many and with few values in a row."""
    X, U = rng.random((20000, NARROW)), rng.random((20000, truncated.COLUMNS))
    many, few = (truncated.truncated_summation(X, 1.0, reach) for reach in (0.2, 0.05))
    making = seconds(lambda: truncated.truncated_summation(X, 1.0, 0.2)) / many.count
    products = [seconds(partial(A.matmat, U)) for A in (many, few)]
    value = (products[0] - products[1]) / (many.count - few.count)
    row = (products[1] - few.count * value) / len(X)
    return {"sparse_value": value, "sparse_row": row, "new_sparse_value": making}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instructions", choices=list(rates.RATES))
    asked = parser.parse_args().instructions
    for loops in (multiindex, tiles):
        loops.use_instruction_set(asked)
    name = multiindex.INSTRUCTION_SET
    common.header(f"rates of the plan, {name}")
    rng = np.random.default_rng(0)
    measured = of_blas(rng) | of_tiles(rng) | of_values(get_kernel("matern", nu=1.5, length_scale=1.0), rng)
    measured |= of_features(rng) | of_near_values(rng)
    ships = rates.RATES[name]._asdict()
    print(f"{'rate':18s}{'ships':>10s}{'here':>10s}{'ratio':>8s}")
    for rate, value in measured.items():
        shipped = ships["products" if rate == "sums of products" else rate]
        print(f"{rate:18s}{shipped:10.2g}{value:10.2g}{value / shipped:8.2f}")


if __name__ == "__main__":
    main()
