"""Flat spectra, where sums of eigenvalues prove nothing: time, interval and true error, beside ARPACK's time.

    python benchmarks/speed/flat.py [names ...]

One process a measurement, one thread, processor seconds. "clusters" and "spacing" have kernels of a width below the
spacing of the rows, "wide rows" a polynomial kernel of 784 columns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings

import numpy as np
import scipy.sparse.linalg
from sklearn.decomposition import KernelPCA

import fastkpca as fk

CASES = {
    "clusters": (lambda: np.random.default_rng(11).standard_normal((30_000, 3)), "gaussian", {"sigma": 0.05}, 5, 1e-4),
    "spacing": (lambda: np.random.default_rng(0).random((10_000, 3)), "gaussian", {"sigma": 0.05}, 10, 1e-6),
    "wide rows": (lambda: np.random.default_rng(0).random((5000, 784)), "polynomial", {"degree": 2}, 10, 1e-6),
}


def ours(name: str) -> dict:
    make, kernel, parameters, c, tol = CASES[name]
    X = make()
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fk.kpca(X, kernel, c, tol=tol, n_threads=1, **parameters)
    seconds = time.process_time() - begin
    widths = np.diff(model.eigenvalue_bounds, axis=1)
    return {
        "seconds": seconds,
        "width": float(widths.max() / model.eigenvalues[0]),
        "kind": model.bound_kind,
        "passes": model.info.get("matrix_passes", model.info.get("passes")),
        "warned": len(caught) > 0,
        "eigenvalues": model.eigenvalues.tolist(),
    }


def arpack(name: str) -> dict:
    """scikit-learn's ``KernelPCA`` where its matrix fits, else ``eigsh`` on this library's own products."""
    make, kernel, parameters, c, _ = CASES[name]
    X = make()
    begin = time.process_time()
    if len(X) <= 10_000:
        options = {"gaussian": {"kernel": "rbf", "gamma": 1 / (2 * parameters.get("sigma", 1.0) ** 2)}}
        options["polynomial"] = {"kernel": "poly", "gamma": 1.0, "coef0": 1.0, "degree": parameters.get("degree")}
        values = KernelPCA(c, eigen_solver="arpack", **options[kernel]).fit(X).eigenvalues_
    else:
        operator = fk.gram(X, kernel, tol=1e-10, n_threads=1, **parameters).centered()
        values = scipy.sparse.linalg.eigsh(operator, c, which="LA")[0]
    return {"seconds": time.process_time() - begin, "eigenvalues": np.sort(values)[::-1].tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CASES)}")
    parser.add_argument("--one", nargs=2, metavar=("WHO", "NAME"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        who, name = chosen.one
        print(json.dumps({"ours": ours, "arpack": arpack}[who](name)))
        return
    print("| case | fastkpca, s | interval / lambda_1 | kind | passes | off by | ARPACK, s |")
    print("|---|---|---|---|---|---|---|")
    for name in chosen.names or CASES:
        mine, theirs = (
            json.loads(subprocess.check_output([sys.executable, __file__, "--one", who, name], text=True))
            for who in ("ours", "arpack")
        )
        off = np.abs(np.subtract(mine["eigenvalues"], theirs["eigenvalues"])).max() / theirs["eigenvalues"][0]
        print(
            f"| {name} | {mine['seconds']:.2f} | {mine['width']:.1e}{' (warned)' if mine['warned'] else ''} "
            f"| {mine['kind']} | {mine['passes']} | {off:.0e} | {theirs['seconds']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
