"""Real data, c = 10, one thread, standardised columns, sigma by the median heuristic and twice that, tol 1e-3 and 1e-6.

Each line is a fresh process: route, features, passes over the kernel values, seconds, peak memory, width of the widest
interval over the largest eigenvalue.

    python benchmarks/speed/real_data.py [set ...] [--tol 1e-3 ...] [--seconds 600]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings

import common
import numpy as np

import fastkpca as fk

SETS = ("digits", "usps", "protein", "kin40k", "keggdirected", "tamielectric", "lidar")


def load(name: str) -> np.ndarray:
    if name == "digits":
        from sklearn.datasets import load_digits

        X = load_digits().data
    elif name in ("usps", "lidar"):
        with np.load(common.DATA / f"{name}.npz", allow_pickle=False) as file:
            X = file["X"] if "X" in file.files else file[file.files[0]]
    else:
        with np.load(common.DATA / f"uci_{name}.npz", allow_pickle=False) as file:
            X = file["X"]
    X = np.asarray(X, dtype=np.float64)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def one(name: str, factor: float, tol: float) -> None:
    X = load(name)
    sigma = factor * fk.gram(X[:: max(1, len(X) // 4000)], "gaussian").kernel.sigma
    started = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fk.kpca(X, "gaussian", 10, sigma=sigma, tol=tol, n_threads=1)
    seconds = time.process_time() - started
    width = float(np.max(model.eigenvalue_bounds[:, 1] - model.eigenvalue_bounds[:, 0]) / model.eigenvalues[0])
    info = model.info
    said = f", warned: {caught[0].message}"[:60] if caught else ""
    made = f"{info['n_features']} features" if info["method"] == "features" else f"{info['passes']} passes"
    print(
        f"| {name} | {len(X)} x {X.shape[1]} | {factor:g} | {tol:.0e} | {seconds:.2f} | {common.peak_memory():.0f} "
        f"| {info['method']}, {made} | {width:.0e}, {model.bound_kind}{said} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*", default=[])
    parser.add_argument("--tol", type=float, nargs="*", default=[1e-3, 1e-6])
    parser.add_argument("--factor", type=float, nargs="*", default=[1.0, 2.0])
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--one", nargs=3, metavar=("SET", "FACTOR", "TOL"))
    options = parser.parse_args()
    if options.one:
        one(options.one[0], float(options.one[1]), float(options.one[2]))
        return
    common.header("real data, Gaussian, c = 10; sigma is so many times the median heuristic's")
    print("| set | rows | sigma | tol | seconds | MB | route | interval |\n|---|---|---|---|---|---|---|---|")
    for name in options.sets or SETS:
        for tol in options.tol:
            for factor in options.factor:
                try:
                    done = subprocess.run(
                        [sys.executable, __file__, "--one", name, str(factor), str(tol)],
                        capture_output=True,
                        text=True,
                        check=False,
                        timeout=options.seconds,
                    )
                    print(done.stdout.strip() or f"# {name} failed: {done.stderr.strip().splitlines()[-1]}")
                except subprocess.TimeoutExpired:
                    print(f"| {name} | | {factor:g} | {tol:.0e} | above {options.seconds:.0f} | | | |")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
