"""Second moments in one pass, features formed on the fly, against dsyrk on features that already lie in memory.

Polynomial kernel, N = 100000, d = 10, degree 3 (D = 286). Goal: at most 1.5 times dsyrk, extra memory below 100 MB.
Run: python benchmarks/speed/moment_pass.py
"""

from __future__ import annotations

import sys

import common
import numpy as np
from scipy.linalg import blas

from fastkpca.maps.monomial import PolynomialMap
from fastkpca.maps.passes import feature_moments
from fastkpca.rows.view import Rows

N, d, degree = 100_000, 10, 3


def main() -> None:
    X = np.random.default_rng(0).standard_normal((N, d))
    phi = PolynomialMap(d, degree, 1.0, 1.0)
    if "--memory" in sys.argv:
        before = common.peak_memory()
        feature_moments(phi, Rows(X))
        print(f"{common.peak_memory() - before:.1f}")
        return
    common.header(f"second moments, N={N}, d={d}, degree {degree}, D={phi.n_features}")
    Phi = np.ascontiguousarray(phi.features(X))
    seconds = common.alternate(
        {"one pass": lambda: feature_moments(phi, Rows(X)), "dsyrk": lambda: blas.dsyrk(1.0, Phi.T)}
    )
    # the reference for the values: two passes
    centered = Phi - Phi.mean(axis=0)
    exact = centered.T @ centered
    error = np.abs(feature_moments(phi, Rows(X)).dense() - exact).max() / np.abs(exact).max()
    for name, value in seconds.items():
        print(f"{name:10s} {value:.4f} s")
    extra = float(common.in_fresh_process(__file__, "--memory"))
    ratio = seconds["one pass"] / seconds["dsyrk"]
    print(f"ratio {ratio:.2f} (goal 1.5), extra memory {extra:.0f} MB (goal 100), relative error {error:.1e}")


if __name__ == "__main__":
    main()
