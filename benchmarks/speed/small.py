"""Small problems: kpca and the estimator beside scikit-learn's KernelPCA, on 50 to 1500 rows of ten or 4000 columns.

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

SIZES = ((50, 10), (200, 10), (500, 10), (1000, 10), (1500, 10), (200, 4000), (500, 4000))


def kernels(d: int) -> dict[str, tuple[dict, dict]]:
    """What kpca is given, and what scikit-learn; widths grow with the distances of rows."""
    gamma = 5.0 / d
    return {
        "gaussian": ({"sigma": (2.0 * gamma) ** -0.5}, {"kernel": "rbf", "gamma": gamma}),
        "polynomial": ({"degree": 3}, {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0}),
    }


def main() -> None:
    common.header("small problems, c = 10")
    print("| N | d | kernel | kpca, ms | our estimator, ms | scikit-learn, ms | kpca / it | estimator / it |")
    print("|---|---|---|---|---|---|---|---|")
    for n, d in SIZES:
        X = np.random.default_rng(0).random((n, d))
        for name, (ours, theirs) in kernels(d).items():
            seconds = common.alternate(
                {
                    "kpca": lambda X=X, name=name, ours=ours: fk.kpca(X, name, 10, n_threads=1, **ours),
                    "estimator": lambda X=X, theirs=theirs: fastkpca.sklearn.KernelPCA(10, n_jobs=1, **theirs).fit(X),
                    "scikit-learn": lambda X=X, theirs=theirs: KernelPCA(10, **theirs).fit(X),
                },
                repeats=101 if n < 300 else 21,
                clock=time.process_time,
            )
            mine, estimator, peer = (1e3 * seconds[x] for x in ("kpca", "estimator", "scikit-learn"))
            print(
                f"| {n} | {d} | {name} | {mine:.2f} | {estimator:.2f} | {peer:.2f} | {mine / peer:.2f} "
                f"| {estimator / peer:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
