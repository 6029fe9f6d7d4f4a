"""What certify says of scikit-learn's eigensolvers: widths, angles, eigenvalues missed; its cost in products.

For each solver of KernelPCA, and for vectors that were spoiled on purpose: the widest interval over the largest
eigenvalue, the largest angle, how many eigenvalues above the last Ritz value were missed (at least, at most), and
whether the intervals hold the eigenvalues of a dense eigensolver. Then, for several numbers of rows, processor seconds
of certify over those of one product of the kernel matrix with the same vectors, the widest interval beside that of
kpca with tol=1e-6, and seconds and width from a thousand sampled rows.

    python benchmarks/reproduce/certify.py [--rows 1500] [--sizes 5000 10000 20000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import eigsh
from setting import header
from sklearn.decomposition import KernelPCA

import fastkpca as fk

GAMMA, K = 0.05, 5


def centred_values(X: np.ndarray) -> np.ndarray:
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    kernel = np.exp(-GAMMA * squares)
    kernel -= kernel.mean(axis=0)
    kernel -= kernel.mean(axis=1)[:, None]
    return np.asarray(scipy.linalg.eigvalsh(kernel)[::-1])


def vectors(X: np.ndarray) -> dict[str, Any]:
    """What is certified, by name."""

    def fitted(solver: str, **options: Any) -> KernelPCA:
        return KernelPCA(K, kernel="rbf", gamma=GAMMA, eigen_solver=solver, random_state=0, **options).fit(X)

    exact, rng = fitted("dense").eigenvectors_, np.random.default_rng(1)
    return {
        "arpack": fitted("arpack"),
        "randomized": fitted("randomized"),
        "randomized, one iteration": fitted("randomized", iterated_power=1),
        "randomized, no iteration": fitted("randomized", iterated_power=0),
        "float32": exact.astype(np.float32),
        "noise of 1e-3": exact + 1e-3 * rng.standard_normal(exact.shape) / np.sqrt(len(X)),
        "the largest is missing": exact[:, 1:],
        "random": rng.standard_normal(exact.shape),
    }


def processor_seconds(call: Callable[[], Any], times: int = 3) -> float:
    seconds = []
    for _ in range(times):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--sizes", type=int, nargs="*", default=[5000, 10000, 20000])
    asked = parser.parse_args()
    header(__file__)
    X = np.random.default_rng(0).standard_normal((asked.rows, 5))
    true = centred_values(X)
    print(f"{asked.rows} rows of 5 columns, gamma {GAMMA}, {K} vectors\n")
    print(f"{'vectors':<26} {'width':>8} {'angle':>8} {'missed':>8}   holds")
    for name, V in vectors(X).items():
        found = fk.certify(X, "rbf", V, gamma=GAMMA)
        low, high = found.eigenvalue_bounds.T
        holds = bool(((low <= true[: len(low)]) & (true[: len(low)] <= high)).all())
        missed = "{} to {}".format(*found.missed_above(found.ritz_values[-1] * (1 - 1e-9)))
        print(f"{name:<26} {found.width:8.1e} {found.angle_bounds.max():8.1e} {missed:>8}   {'yes' if holds else 'NO'}")
    print(
        f"\n{'rows':>6} {'product':>8} {'certify':>8} {'ratio':>6} {'width':>8} {'kpca':>8} {'sampled':>8} {'width':>8}"
    )
    for what, decay, sigma in (("columns of falling scale", 0.7, 2.0), ("columns of one scale", 1.0, 4.0)):
        print(f"{what}:")
        for n in asked.sizes:
            print_costs(n, decay, sigma)


def print_costs(n: int, decay: float, sigma: float) -> None:
    """One line: processor seconds of a product and of certify, and widths, for vectors of ARPACK.

    Column j of the rows is scaled by decay^j. Of columns of one scale the second to the eleventh eigenvalue are nearly
    equal, and five vectors end among them.
    """
    X = np.random.default_rng(0).standard_normal((n, 10)) * decay ** np.arange(10)
    kernel = fk.gram(X, "gaussian", sigma=sigma, n_threads=1)
    V = eigsh(kernel.centered(), K, v0=np.random.default_rng(1).standard_normal(n))[1]
    product = processor_seconds(lambda: kernel @ V)

    def certified(rows: int | None) -> Any:
        return fk.certify(X, "gaussian", V, sigma=sigma, rows=rows, n_threads=1)

    certify, sampled = (processor_seconds(partial(certified, rows)) for rows in (None, 1000))
    width, wider = (certified(rows).width for rows in (None, 1000))
    model = fk.kpca(X, "gaussian", K, return_scores=False, sigma=sigma, n_threads=1)
    of_model = float(np.ptp(model.eigenvalue_bounds, axis=1).max() / model.eigenvalues[0])
    print(
        f"{n:6d} {product:8.3f} {certify:8.3f} {certify / product:6.2f} {width:8.1e} {of_model:8.1e} "
        f"{sampled:8.3f} {wider:8.1e}"
    )


if __name__ == "__main__":
    main()
