"""Small problems: kpca and the estimator beside scikit-learn's KernelPCA, on 50 to 1500 rows.

    python benchmarks/speed/small.py

Processor milliseconds, medians of calls that take turns in one process, one thread.
"""

from __future__ import annotations

import time

import common
import numpy as np
from sklearn.decomposition import KernelPCA

import fastkpca as fk
import fastkpca.sklearn

KERNELS = {
    "gaussian": ({"sigma": 1.0}, {"kernel": "rbf", "gamma": 0.5}),
    "polynomial": ({"degree": 3}, {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0}),
}


def main() -> None:
    common.header("small problems, d = 10, c = 10")
    print("| N | kernel | kpca | estimator | scikit-learn | kpca / it | estimator / it | route |")
    print("|---|---|---|---|---|---|---|---|")
    for n in (50, 200, 500, 1000, 1500):
        X = np.random.default_rng(0).random((n, 10))
        for name, (ours, theirs) in KERNELS.items():
            seconds = common.alternate(
                {
                    "kpca": lambda X=X, name=name, ours=ours: fk.kpca(X, name, 10, n_threads=1, **ours),
                    "estimator": lambda X=X, theirs=theirs: fastkpca.sklearn.KernelPCA(10, n_jobs=1, **theirs).fit(X),
                    "scikit-learn": lambda X=X, theirs=theirs: KernelPCA(10, **theirs).fit(X),
                },
                repeats=101 if n < 300 else 21,
                clock=time.process_time,
            )
            route = fk.kpca(X, name, 10, n_threads=1, **ours).info["method"]
            mine, estimator, peer = (1e3 * seconds[x] for x in ("kpca", "estimator", "scikit-learn"))
            print(
                f"| {n} | {name} | {mine:.2f} | {estimator:.2f} | {peer:.2f} | {mine / peer:.2f} "
                f"| {estimator / peer:.2f} | {route} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
