"""Against what a user would pick: seconds, error and memory of scikit-learn, numpy and fastkpca in one run.

One thread, c = 10. The error is that of the eigenvalues over the largest one, against a reference that is as exact as
the size allows (LAPACK, or block Krylov at tol 1e-10). Peers: KernelPCA (dense, arpack, randomized), Nystroem(500) and
(2000) + PCA, a blocked numpy product with eigsh, a blocked float32 numpy block Krylov, and pykeops with eigsh where it
is installed.

    python benchmarks/speed/peers.py [case ...] [--quick]

--quick leaves out what takes longer than a minute.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable

import common
import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import pdist

import fastkpca as fk

C = 10


def uniform(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).random((n, d))


def digits() -> np.ndarray:
    from sklearn.datasets import load_digits

    return load_digits().data


def median_sigma(X: np.ndarray) -> float:
    return float(np.median(pdist(X[:512])) / np.sqrt(2))


# name -> (rows, sigma or None for the median, the goal in words)
CASES: dict[str, tuple[Callable[[], np.ndarray], float | None, str]] = {
    "digits": (digits, None, "0.55 of arpack's time, certified"),
    "cube64": (lambda: uniform(5000, 64), None, "5 times faster than arpack at 1e-6, certified, no N^2 memory"),
    "small3": (lambda: uniform(2000, 3), 1.0, "0.36 of arpack's time"),
    "plane": (lambda: uniform(50_000, 2), 0.1, "faster than Nystroem(500), smaller error, certified"),
    "five": (lambda: uniform(20_000, 5), 0.5, "half the float32 block Krylov's time at 1e-6, certified"),
    "flat": (lambda: uniform(10_000, 3), 0.05, "ahead of arpack and float32 block Krylov; says what it knows"),
    "ten": (lambda: uniform(100_000, 10), 1.0, "0.4 of the float32 block Krylov's time at 1e-6, below 500 MB"),
}


def blocked_product(X: np.ndarray, sigma: float, dtype: type, block: int = 1000) -> Callable[[np.ndarray], np.ndarray]:
    """K @ U by GEMM distances and np.exp, block by block: the best of plain numpy."""
    Y = np.ascontiguousarray(X - X.mean(axis=0), dtype=dtype)
    norms = np.einsum("ij,ij->i", Y, Y)
    scale = dtype(-0.5 / sigma**2)

    def product(U: np.ndarray) -> np.ndarray:
        U = np.ascontiguousarray(U, dtype=dtype)
        out = np.empty((len(Y), U.shape[1]), dtype=dtype)
        for i in range(0, len(Y), block):
            T = Y[i : i + block] @ Y.T
            T *= -2
            T += norms[i : i + block, None]
            T += norms
            np.maximum(T, 0, out=T)
            T *= scale
            np.exp(T, out=T)
            out[i : i + block] = T @ U
        return out

    return product


def numpy_eigsh(X: np.ndarray, sigma: float) -> np.ndarray:
    product = blocked_product(X, sigma, np.float64)

    def centred(u: np.ndarray) -> np.ndarray:
        u = u.reshape(-1, 1)
        v = product(u - u.mean())
        return v - v.mean()

    operator = LinearOperator((len(X), len(X)), matvec=centred, dtype=np.float64)
    return np.sort(eigsh(operator, C, return_eigenvectors=False, v0=np.random.default_rng(0).standard_normal(len(X))))[
        ::-1
    ]


def numpy_krylov(X: np.ndarray, sigma: float, passes: int = 4, block: int = 20) -> np.ndarray:
    """Float32 block Krylov with Rayleigh-Ritz, thirty lines of numpy, no certificate."""
    product = blocked_product(X, sigma, np.float32)
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((len(X), block)))[0]
    basis, images = [], []
    for _ in range(passes):
        W = product(Q - Q.mean(axis=0)).astype(np.float64)
        W -= W.mean(axis=0)
        basis.append(Q)
        images.append(W)
        V = np.hstack(basis)
        Q = W - V @ (V.T @ W)
        Q = np.linalg.qr(Q - V @ (V.T @ Q))[0]
    V, W = np.hstack(basis), np.hstack(images)
    T = V.T @ W
    return np.linalg.eigvalsh((T + T.T) / 2)[::-1][:C]


def sklearn_kpca(solver: str) -> Callable[[np.ndarray, float], np.ndarray]:
    def run(X: np.ndarray, sigma: float) -> np.ndarray:
        from sklearn.decomposition import KernelPCA

        return KernelPCA(C, kernel="rbf", gamma=0.5 / sigma**2, eigen_solver=solver, random_state=0).fit(X).eigenvalues_

    return run


def nystroem(rank: int) -> Callable[[np.ndarray, float], np.ndarray]:
    def run(X: np.ndarray, sigma: float) -> np.ndarray:
        from sklearn.decomposition import PCA
        from sklearn.kernel_approximation import Nystroem

        Z = Nystroem(kernel="rbf", gamma=0.5 / sigma**2, n_components=rank, random_state=0).fit_transform(X)
        return PCA(C).fit(Z).explained_variance_ * (len(X) - 1)

    return run


def keops(X: np.ndarray, sigma: float) -> np.ndarray:
    from pykeops.numpy import LazyTensor

    Y = np.ascontiguousarray(X / sigma)
    left, right = LazyTensor(Y[:, None, :]), LazyTensor(Y[None, :, :])
    K = (-((left - right) ** 2).sum(-1) / 2).exp()

    def centred(u: np.ndarray) -> np.ndarray:
        u = u.reshape(-1, 1)
        v = K @ (u - u.mean())
        return v - v.mean()

    operator = LinearOperator((len(X), len(X)), matvec=centred, dtype=np.float64)
    return np.sort(eigsh(operator, C, return_eigenvectors=False))[::-1]


def ours(X: np.ndarray, sigma: float) -> np.ndarray:
    model = fk.kpca(X, "gaussian", C, sigma=sigma, tol=1e-6, n_threads=1)
    width = float(np.max(model.eigenvalue_bounds[:, 1] - model.eigenvalue_bounds[:, 0]) / model.eigenvalues[0])
    ours.word = f"{model.info['method']}, passes {model.info['passes']}, {model.bound_kind} width {width:.1e}"
    return model.eigenvalues


ours.word = ""

# method, most rows it is tried on (memory or hours beyond), most rows with --quick
PEERS: list[tuple[str, Callable[[np.ndarray, float], np.ndarray], int, int]] = [
    ("fastkpca", ours, 10**9, 10**9),
    ("KernelPCA dense", sklearn_kpca("dense"), 5000, 2000),
    ("KernelPCA arpack", sklearn_kpca("arpack"), 20_000, 10_000),
    ("KernelPCA randomized", sklearn_kpca("randomized"), 20_000, 10_000),
    ("Nystroem(500)+PCA", nystroem(500), 10**9, 50_000),
    ("Nystroem(2000)+PCA", nystroem(2000), 10**9, 20_000),
    ("numpy blocked+eigsh", numpy_eigsh, 20_000, 5000),
    ("numpy float32 Krylov", numpy_krylov, 10**9, 20_000),
]
if importlib.util.find_spec("pykeops") is not None:
    PEERS.append(("pykeops+eigsh", keops, 20_000, 5000))


def reference(X: np.ndarray, sigma: float) -> tuple[np.ndarray, str]:
    if len(X) <= 2500:
        squares = np.maximum(((X[:, None] - X[None]) ** 2).sum(axis=2), 0) if X.shape[1] < 10 else None
        if squares is None:
            from scipy.spatial.distance import cdist

            squares = cdist(X, X, "sqeuclidean")
        K = np.exp(-squares / (2 * sigma**2))
        K -= K.mean(axis=0)
        K -= K.mean(axis=1)[:, None]
        return np.linalg.eigvalsh(K)[::-1][:C], "LAPACK"
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fk.kpca(X, "gaussian", C, sigma=sigma, tol=1e-10, method="krylov", max_passes=40)
    width = float(np.max(model.eigenvalue_bounds[:, 1] - model.eigenvalue_bounds[:, 0]) / model.eigenvalues[0])
    return model.eigenvalues, f"block Krylov, {model.bound_kind} to {width:.0e}"


def one(case: str, peer: str) -> None:
    """Run one peer in this process and print seconds, memory, eigenvalues (for the parent)."""
    make, sigma, _ = CASES[case]
    X = make()
    sigma = sigma or median_sigma(X)
    run = next(x[1] for x in PEERS if x[0] == peer)
    import warnings

    warnings.simplefilter("ignore")
    if len(X) <= 20_000 or peer == "fastkpca":
        run(X[:500], sigma)  # warm up: lazy imports, BLAS
    repeats = 5 if len(X) <= 5000 else 3 if len(X) <= 20_000 else 1
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        values = run(X, sigma)
        seconds.append(time.perf_counter() - started)
    print(sorted(seconds)[len(seconds) // 2], common.peak_memory(), ours.word.replace(" ", "_") or "-")
    print(*[repr(float(v)) for v in values])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "PEER"))
    options = parser.parse_args()
    if options.one:
        one(*options.one)
        return
    common.header("kernel PCA against its peers, c = 10, Gaussian")
    for case in options.cases or CASES:
        make, sigma, goal = CASES[case]
        X = make()
        sigma = sigma or median_sigma(X)
        exact, word = reference(X, sigma)
        print(f"\n{case}: N={len(X)}, d={X.shape[1]}, sigma={sigma:.4g}; reference {word}; goal: {goal}")
        print(f"  {'method':24s}{'seconds':>10s}{'error':>10s}{'MB':>8s}")
        for name, _, most, quick in PEERS:
            if len(X) > (quick if options.quick else most):
                print(f"  {name:24s}  left out")
                continue
            done = subprocess.run(
                [sys.executable, __file__, "--one", case, name], capture_output=True, text=True, check=False
            )
            if done.returncode:
                print(f"  {name:24s}  failed: {done.stderr.strip().splitlines()[-1][:80]}")
                continue
            first, second = done.stdout.splitlines()[-2:]
            seconds, memory, said = first.split()
            error = np.abs(np.array([float(v) for v in second.split()]) - exact).max() / exact[0]
            print(f"  {name:24s}{float(seconds):10.4f}{error:10.1e}{float(memory):8.0f}  {said.replace('_', ' ')}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
