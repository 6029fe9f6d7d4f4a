"""What the hardware and the best libraries need for the one operation that a route cannot do without.

``stages(X, setting, model)`` names them for the route that fastkpca took, each as a function to be timed: symmetric
products (dsyrk), eigenproblems (LAPACK), exponentials (numpy), triangular solves, non-uniform FFTs (finufft). Nothing
else is in it: no plan, no checks, no bounds, no centring, no reading of the rows. The sum of their medians is the limit
of ``peers.py``'s table, which says "near values" where there are no stages.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from math import ceil, pi

import numpy as np
import scipy.linalg
from experts import Setting
from scipy.linalg import blas

import fastkpca as fk

TILE = 2048
"""Rows that are worked on at once: what has been computed is still in the cache when BLAS takes it."""


def second_moment(n: int, D: int) -> Callable[[], object]:
    """Phi' Phi of n rows and D features, half of it, tile by tile."""
    tile, S = np.random.default_rng(0).random((min(n, TILE), D)).T, np.zeros((D, D), order="F")

    def task() -> None:
        for i in range(0, n, TILE):
            blas.dsyrk(1.0, tile[:, : n - i], beta=1.0, c=S, overwrite_c=1)

    return task


def gemm(n: int, k: int, m: int) -> Callable[[], object]:
    """(n x k) times (k x m), tile by tile."""
    rng, rows = np.random.default_rng(0), min(n, TILE, max(64, (1 << 24) // max(k, m)))
    tile, B = rng.random((rows, k)), rng.random((k, m))
    out = np.empty((rows, m))

    def task() -> None:
        for i in range(0, n, rows):
            np.matmul(tile[: n - i], B, out=out[: n - i])

    return task


def inner_products(n: int, d: int) -> Callable[[], object]:
    """Half of X X' for n rows of d columns, a square block at a time."""
    block = np.random.default_rng(0).random((min(n, TILE), d))
    out, counts = np.empty((len(block), len(block))), [min(TILE, n - i) for i in range(0, n, TILE)]
    triangle = np.empty((len(block), len(block)), order="F")

    def task() -> None:
        for i, rows in enumerate(counts):
            blas.dsyrk(1.0, block[:rows].T, c=triangle[:rows, :rows], trans=1, overwrite_c=1)
            for columns in counts[i + 1 :]:
                np.matmul(block[:rows], block[:columns].T, out=out[:rows, :columns])

    return task


def largest_eigenpairs(n: int, c: int) -> Callable[[], object]:
    """LAPACK's c largest eigenpairs of a symmetric matrix of order n."""
    A = np.random.default_rng(0).standard_normal((n, 2 * n))
    A = np.asfortranarray(A @ A.T)
    return lambda: scipy.linalg.eigh(A, subset_by_index=[max(0, n - c), n - 1], check_finite=False)


def cholesky(n: int) -> Callable[[], object]:
    """LAPACK's factorisation in float32, in place: of a matrix that is made anew by its diagonal alone."""
    A = np.zeros((n, n), dtype=np.float32, order="F")

    def task() -> None:
        A.flat[:: n + 1] = 1.0
        scipy.linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)

    return task


def exponentials(count: int) -> Callable[[], object]:
    tile = -np.random.default_rng(0).random(max(1, min(count, 1 << 15)))
    out = np.empty_like(tile)

    def task() -> None:
        for i in range(0, count, len(tile)):
            np.exp(tile[: count - i], out=out[: min(len(tile), count - i)])

    return task


def triangular_solve(n: int, k: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    L, B = np.asfortranarray(np.tril(rng.random((k, k))) + k * np.eye(k)), np.asfortranarray(rng.random((k, TILE)))

    def task() -> None:
        for i in range(0, n, TILE):
            blas.dtrsm(1.0, L, B[:, : n - i], lower=1)

    return task


def transforms(X: np.ndarray, setting: Setting, columns: int, kinds: tuple[int, ...]) -> Callable[[], object]:
    """finufft's transforms of two real columns at a time, on the rows' own box and half a period beside it."""
    import finufft

    d, eps, reach = X.shape[1], setting.tol, np.sqrt(2 * np.log(1 / setting.tol))
    low, high = X.min(axis=0), X.max(axis=0)
    period = high - low + reach * setting.sigma
    shape = tuple(2 * ceil(x * reach / (2 * pi * setting.sigma)) + 1 for x in period)
    points = [np.ascontiguousarray((X[:, j] - low[j]) * (2 * pi / period[j]) - pi) for j in range(d)]
    many = max(1, columns // 2)
    forward = (finufft.nufft1d1, finufft.nufft2d1, finufft.nufft3d1)[d - 1]
    backward = (finufft.nufft1d2, finufft.nufft2d2, finufft.nufft3d2)[d - 1]
    values, modes = np.ones((many, len(X)), dtype=complex), np.ones((many, *shape), dtype=complex)

    def task() -> None:
        for kind in kinds:
            if kind == 1:
                forward(*points, values, shape, eps=eps, nthreads=1)
            else:
                backward(*points, modes, eps=eps, nthreads=1)

    return task


def multiplies_near_values(info: dict) -> bool:
    """Whether a run took more products with values that are kept than passes: those with near values come on top."""
    return info["method"] == "krylov" and info.get("matrix_passes", 0) > info["widths"][-1][0]


def stages(X: np.ndarray, setting: Setting, model: fk.KPCAModel) -> dict[str, Callable[[], object]]:
    """The operations of the route that ``model`` took; none for near values, whose number ``info`` does not say."""
    (n, d), c, info = X.shape, setting.c, model.info
    half = n * n // 2
    if info["method"] == "features":
        D = info["n_features"]
        state = model.projector.map_state()
        kind = state[0]["map"] if state else ""
        if kind == "fourier":
            return {
                "finufft, moments": transforms(X, setting, 2, (1,)),
                "finufft, scores": transforms(X, setting, c, (2,)),
            }
        linear = {"second moment (dsyrk)": second_moment(n, D), "eigh": largest_eigenpairs(D, c)}
        linear["scores"] = gemm(n, D, c)
        if kind == "pivots":
            return {
                "inner products": gemm(n, d, D),
                "exp": exponentials(n * D),
                "dtrsm": triangular_solve(n, D),
            } | linear
        return linear
    evaluated = {"inner products": inner_products(n, d), "exp": exponentials(0 if setting.degree else half)}
    if info["method"] == "dense" and "matrix_passes" not in info:  # else by powers of the matrix
        return evaluated | {"eigh": largest_eigenpairs(n, c)}
    if multiplies_near_values(info):
        return {}
    if info.get("products") == "grid" and d <= 3:
        return {f"finufft, {info['passes']} passes": transforms(X, setting, c, (1, 2) * info["passes"])}
    if info.get("factorisations"):  # what proves a flat spectrum's intervals
        evaluated["spotrf"] = cholesky(n)
    return evaluated | {"product": gemm(n, n, c)}


def measured(X: np.ndarray, setting: Setting, model: fk.KPCAModel) -> dict[str, float]:
    """Processor seconds of each stage: the median of five, or of fewer where they are long."""
    found = {}
    for name, task in stages(X, setting, model).items():
        task()
        times: list[float] = []
        while len(times) < 5 and sum(times) < 5:
            started = time.process_time()
            task()
            times.append(time.process_time() - started)
        found[name] = statistics.median(times)
    return found
