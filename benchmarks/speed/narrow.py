"""Narrow kernels, whose spectra are flat: seconds against LAPACK's, and of looser tolerances against stricter ones.

    python benchmarks/speed/narrow.py [--cases 40] [--seed 0] [--largest 4000]

Rows are uniform, normal, or in groups, in two to ten columns; sigma is .3 to 4 times the mean distance to the nearest
row. Times are processor seconds of one thread. Printed for each problem: the seconds at each tolerance, the first
letter of the route (with a star where another was abandoned), and the seconds of ``method="dense"``. Then quantiles of
seconds over those of the best of LAPACK and stricter tolerances, and over those of stricter tolerances alone.
It measures what ``PATIENCE`` of ``solve/costs.py`` does, of which one value was tried.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import common
import numpy as np
from scipy.spatial import cKDTree

import fastkpca as fk

TOLERANCES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)


def drawn(seed: int, largest: int) -> tuple[np.ndarray, int, float]:
    """Rows, components, and sigma."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1500, largest + 1)), int(rng.integers(2, 11))
    kind = rng.integers(3)
    X = rng.random((n, d)) if kind == 0 else rng.standard_normal((n, d))
    if kind == 2:
        X = 0.2 * X + 3.0 * rng.standard_normal((20, d))[rng.integers(0, 20, n)]
    nearest = float(cKDTree(X).query(X, 2)[0][:, 1].mean())
    return X, int(rng.integers(1, 21)), nearest * float(np.exp(rng.uniform(np.log(0.3), np.log(4.0))))


def timed(X: np.ndarray, c: int, sigma: float, **options: Any) -> tuple[float, fk.KPCAModel]:
    started = time.process_time()
    model = fk.kpca(X, "gaussian", c, sigma=sigma, n_threads=1, **options)
    return time.process_time() - started, model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=4000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    common.header(f"narrow kernels, seeds {options.seed} to {options.seed + options.cases - 1}, tol {TOLERANCES}")
    timed(np.random.default_rng(0).random((500, 3)), 2, 0.3)
    of_best, of_stricter = [], []
    for seed in range(options.seed, options.seed + options.cases):
        X, c, sigma = drawn(seed, options.largest)
        dense = timed(X, c, sigma, method="dense")[0]
        seconds, routes = [], []
        for tol in TOLERANCES:
            spent, model = timed(X, c, sigma, tol=tol)
            of_best.append(spent / min([dense, *seconds]))
            of_stricter += [spent / min(seconds)] if seconds else []
            seconds.append(spent)
            routes.append(model.plan.method[0] + "*" * any("tried" in x for x in model.info))
        times = " ".join(f"{x:6.2f}{route:2}" for x, route in zip(seconds, routes))
        problem = f"{seed:4} {len(X)} x {X.shape[1]:<2} c {c:<2} sigma {sigma:7.3g}"
        print(f"{problem}: {times}, dense {dense:.2f}", flush=True)
    for name, ratios in (("best of LAPACK and stricter", of_best), ("stricter", of_stricter)):
        low, high, most = np.quantile(ratios, [0.5, 0.95, 1.0])
        print(f"seconds over those of the {name}: median {low:.2f}, 95 % {high:.2f}, worst {most:.2f}")


if __name__ == "__main__":
    main()
