"""Polynomial kernel PCA against scikit-learn's KernelPCA, and at a million rows against an explicit numpy feature map.

c: N = 10000, d = 10, degree 3, 10 components, against KernelPCA(eigen_solver="arpack"). Goal: 70 times faster at 1e-10.
d: N = 1e6, d = 10, degree 2: faster than the explicit map, below 500 MB with the input, growth at most linear.
Processor seconds on one thread, medians. Run: python benchmarks/speed/polynomial_kpca.py
"""

from __future__ import annotations

import sys
import time

import common
import numpy as np

import fastkpca as fk


def explicit_map(X: np.ndarray, degree: int) -> np.ndarray:
    """All monomials of (x.y + 1)^degree in thirty lines of numpy: what a user would write."""
    from itertools import combinations_with_replacement
    from math import factorial

    columns = []
    for k in range(degree + 1):
        for index in combinations_with_replacement(range(X.shape[1]), k):
            counts = np.bincount(index, minlength=X.shape[1]) if index else np.zeros(X.shape[1], dtype=int)
            multinomial = factorial(k) / np.prod([factorial(int(m)) for m in counts])
            binomial = factorial(degree) / (factorial(k) * factorial(degree - k))
            column = np.full(len(X), np.sqrt(multinomial * binomial))
            for i in index:
                column *= X[:, i]
            columns.append(column)
    return np.stack(columns, axis=1)


def explicit_kpca(X: np.ndarray, degree: int, c: int) -> tuple[np.ndarray, np.ndarray]:
    Phi = explicit_map(X, degree)
    Phi -= Phi.mean(axis=0)
    values, vectors = np.linalg.eigh(Phi.T @ Phi)
    return values[::-1][:c], Phi @ vectors[:, ::-1][:, :c]


def data(n: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, 10))


def small() -> None:
    from sklearn.decomposition import KernelPCA

    X = data(10_000)
    seconds = common.alternate(
        {
            "fastkpca": lambda: fk.kpca(X, "polynomial", 10, degree=3, n_threads=1),
            "explicit map": lambda: explicit_kpca(X, 3, 10),
        },
        clock=time.process_time,
    )
    theirs = KernelPCA(10, kernel="poly", degree=3, gamma=1.0, coef0=1.0, eigen_solver="arpack")
    times = []
    for _ in range(3):
        started = time.process_time()
        theirs.fit(X)
        times.append(time.process_time() - started)
    arpack = sorted(times)[1]
    ours = fk.kpca(X, "polynomial", 10, degree=3, n_threads=1)
    error = np.abs(ours.eigenvalues - theirs.eigenvalues_).max() / theirs.eigenvalues_[0]
    print(
        f"N=10000, degree 3: fastkpca {seconds['fastkpca']:.4f} s, explicit map {seconds['explicit map']:.4f} s, "
        f"KernelPCA arpack {arpack:.3f} s"
    )
    print(
        f"ratio to arpack {arpack / seconds['fastkpca']:.0f} (goal 70), to the explicit map "
        f"{seconds['explicit map'] / seconds['fastkpca']:.2f}; eigenvalues to {error:.1e} (goal 1e-10)"
    )


def large() -> None:
    X, tenth = data(1_000_000), data(100_000)
    seconds = common.alternate(
        {
            "fastkpca": lambda: fk.kpca(X, "polynomial", 10, degree=2, n_threads=1),
            "fastkpca, N=1e5": lambda: fk.kpca(tenth, "polynomial", 10, degree=2, n_threads=1),
            "explicit map": lambda: explicit_kpca(X, 2, 10),
        },
        clock=time.process_time,
    )
    ours = fk.kpca(X, "polynomial", 10, degree=2, n_threads=1).eigenvalues
    error = np.abs(ours - explicit_kpca(X, 2, 10)[0]).max() / ours[0]
    for name, value in seconds.items():
        print(f"N=1e6, degree 2: {name:16s} {value:.3f} s")
    growth = np.log10(seconds["fastkpca"] / seconds["fastkpca, N=1e5"])
    memory = float(common.in_fresh_process(__file__, "--memory"))
    print(
        f"ratio explicit map / fastkpca {seconds['explicit map'] / seconds['fastkpca']:.2f} (goal > 1), growth "
        f"{growth:.2f} (goal <= 1), whole process {memory:.0f} MB (goal 500), eigenvalues agree to {error:.1e}"
    )


def main() -> None:
    if "--memory" in sys.argv:
        fk.kpca(data(1_000_000), "polynomial", 10, degree=2, n_threads=1)
        print(f"{common.peak_memory():.1f}")
        return
    common.header("polynomial kernel PCA")
    small()
    large()


if __name__ == "__main__":
    main()
