"""What an expert writes by hand for one problem: numpy, scipy and finufft, without error bounds.

Each function takes rows and a ``Setting`` and returns the largest eigenvalues of the centred kernel matrix, and the
scores of the rows. BLAS does what BLAS can do, symmetric matrices are computed once, and the exponential is taken in
place. Where the author has to choose when to stop, the choice is the usual one: the Ritz values no longer change, or
the trace that is left is small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log, pi, sqrt

import numpy as np
import scipy.fft
import scipy.linalg
from scipy.linalg import blas
from scipy.sparse.linalg import LinearOperator, eigsh


@dataclass(frozen=True)
class Setting:
    """One kernel PCA: exp(-|x - y|^2 / (2 sigma^2)), or (x.y + 1)^degree where ``degree`` is set."""

    c: int
    tol: float
    sigma: float = 0.0
    degree: int = 0


Result = tuple[np.ndarray, np.ndarray]


# Explicit feature maps: all monomials up to a degree, each from one of lower degree.


def _steps(d: int, degree: int) -> list[tuple[int, int, int, int]]:
    """(degree, parent, coordinate, its exponent) of every monomial but the constant one."""
    steps, level, next_number = [], [(0, 0, [0] * d)], 1
    for k in range(1, degree + 1):
        children = []
        for parent, first, powers in level:
            for j in range(first, d):
                raised = powers.copy()
                raised[j] += 1
                steps.append((k, parent, j, raised[j]))
                children.append((next_number, j, raised))
                next_number += 1
        level = children
    return steps


def _features_kpca(Z: np.ndarray, first: Callable, steps: list, factors: list[float], c: int) -> Result:
    """The second moment by dsyrk on tiles of the monomials; their weights join afterwards. Kept up to a gigabyte."""
    n, D, tile = Z.shape[1], len(steps) + 1, 2048
    weights = np.ones(D)
    for i, ((_, parent, _, _), factor) in enumerate(zip(steps, factors, strict=True), 1):
        weights[i] = weights[parent] * factor
    keep, kept = n * D * 8 < 1e9, []

    def monomials(i: int, out: np.ndarray) -> np.ndarray:
        part = Z[:, i : i + tile]
        out = out[:, : part.shape[1]]
        out[0] = first(part)
        for row, (_, parent, j, _) in enumerate(steps, 1):
            np.multiply(out[parent], part[j], out=out[row])
        return out

    S, total, work = np.zeros((D, D), order="F"), np.zeros(D), np.empty((D, min(n, tile)))
    for i in range(0, n, tile):
        out = monomials(i, np.empty((D, min(n - i, tile))) if keep else work)
        S = blas.dsyrk(1.0, out.T if out.flags.c_contiguous else out.copy().T, beta=1.0, c=S, trans=1, overwrite_c=1)
        total += out.sum(axis=1)
        if keep:
            kept.append(out)
    mean = total / n
    S -= n * np.outer(mean, mean)
    S *= weights[:, None] * weights
    values, V = scipy.linalg.eigh(
        S, lower=False, subset_by_index=[max(0, D - c), D - 1], check_finite=False, overwrite_a=True
    )
    V = np.ascontiguousarray(V[:, ::-1]) * weights[:, None]
    scores = np.empty((n, V.shape[1]))
    for number, i in enumerate(range(0, n, tile)):
        out = kept[number] if keep else monomials(i, work)
        np.matmul(out.T, V, out=scores[i : i + tile])
    scores -= mean @ V
    return values[::-1], scores


def explicit_polynomial(X: np.ndarray, setting: Setting) -> Result:
    p = setting.degree
    steps = _steps(X.shape[1], p)
    # sqrt(binom(p, k) k! / alpha!) from degree to degree
    factors = [sqrt((p - k + 1) / exponent) for k, _, _, exponent in steps]
    return _features_kpca(np.ascontiguousarray(X.T), lambda part: 1.0, steps, factors, setting.c)


def taylor_gaussian(X: np.ndarray, setting: Setting) -> Result:
    """The Gaussian's monomials up to the order from which on they are below tol at the farthest row."""
    Z = np.ascontiguousarray((X - (X.max(axis=0) + X.min(axis=0)) / 2).T / setting.sigma)
    squares = np.einsum("ij,ij->j", Z, Z)[:: max(1, len(X) // 500)]
    left, order = np.exp(-squares), 0
    while left.mean() > setting.tol / 2:
        order += 1
        left *= squares / order
        if order > 60:
            raise ValueError("the rows lie too far apart for one expansion")
    steps = _steps(len(Z), order)
    factors = [sqrt(1.0 / exponent) for _, _, _, exponent in steps]
    return _features_kpca(Z, lambda part: np.exp(-0.5 * np.einsum("ij,ij->j", part, part)), steps, factors, setting.c)


# Non-uniform FFT: Fourier features on a periodic box; their second moment is Toeplitz.


def nufft_toeplitz(X: np.ndarray, setting: Setting) -> Result:
    """The doubled grid of modes by one type 1 transform, products by FFT, scores by type 2. Hartley's basis is real."""
    import finufft

    n, d = X.shape
    type1 = (finufft.nufft1d1, finufft.nufft2d1, finufft.nufft3d1)[d - 1]
    type2 = (finufft.nufft1d2, finufft.nufft2d2, finufft.nufft3d2)[d - 1]
    eps, s = setting.tol / 10, setting.sigma
    low, high = X.min(axis=0), X.max(axis=0)
    reach = sqrt(2 * log(4 / setting.tol))  # from where on the kernel, and its spectrum, are left out
    period = (high - low) + s * reach
    half = [ceil(x * reach / (2 * pi * s)) for x in period]
    points = [np.ascontiguousarray((X[:, j] - (low[j] + high[j]) / 2) * (2 * pi / period[j])) for j in range(d)]
    doubled = tuple(4 * m + 1 for m in half)
    t = type1(*points, np.ones(n, dtype=complex), doubled, eps=eps, isign=-1, nthreads=1).reshape(doubled)
    root = np.ones(())
    for m, x in zip(half, period, strict=True):
        w = np.exp(-2 * (pi * s / x * np.arange(-m, m + 1)) ** 2) * sqrt(2 * pi) * s / x
        root = np.multiply.outer(root, np.sqrt(w))
    shape, size = root.shape, root.size
    if size <= 1500:  # formed: cas(m x) cas(n x) sums to Re t_(m-n) - Im t_(m+n)
        modes = np.stack(np.unravel_index(np.arange(size), shape)) - np.array(half)[:, None]
        flat = np.ravel_multi_index(modes + 2 * np.array(half)[:, None], doubled)
        steps = np.ravel_multi_index(np.array(half) * 2, doubled)
        offset = flat - steps
        A = t.real.ravel()[steps + offset[:, None] - offset] - t.imag.ravel()[steps + offset[:, None] + offset]
        g = root.ravel()
        A *= g[:, None]
        A *= g
        mean = t[tuple(slice(m, 3 * m + 1) for m in half)].real - t[tuple(slice(m, 3 * m + 1) for m in half)].imag
        mean = mean.ravel() * g
        A -= np.outer(mean, mean / n)
        values, V = scipy.linalg.eigh(A, subset_by_index=[size - setting.c, size - 1], overwrite_a=True)
    else:
        product, mean = _toeplitz_product(t, root, half, n)
        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        values, V = eigsh(operator, setting.c, tol=setting.tol / 10, v0=np.random.default_rng(0).random(size))
        values, V = values[np.argsort(values)], V[:, np.argsort(values)]
    values, V = values[::-1], V[:, ::-1]
    spectra = (V.T.reshape(-1, *shape)) * root
    spectra = _hartley_to_fourier(spectra)
    pairs = spectra[0::2].astype(complex)
    pairs[: len(spectra) // 2] += 1j * spectra[1::2]
    z = type2(*points, pairs, eps=eps, isign=1, nthreads=1).reshape(len(pairs), n)
    scores = np.empty((n, len(values)))
    scores[:, 0::2], scores[:, 1::2] = z.real.T, z.imag.T[:, : len(values) // 2]
    scores -= (mean @ V) / n
    return values, scores


def _flipped(A: np.ndarray) -> np.ndarray:
    return A[(slice(None), *[slice(None, None, -1)] * (A.ndim - 1))]


def _hartley_to_fourier(h: np.ndarray) -> np.ndarray:
    """sum_m h_m cas(m x) as sum_m f_m exp(i m x)."""
    return 0.5 * (h + _flipped(h)) - 0.5j * (h - _flipped(h))


def _toeplitz_product(t: np.ndarray, root: np.ndarray, half: list[int], n: int) -> tuple[Callable, np.ndarray]:
    """u -> (S T S - mean mean' / n) u by real FFTs, in Hartley's basis."""
    d = t.ndim
    grid = [scipy.fft.next_fast_len(4 * m + 1, real=True) for m in half]
    rolled = np.zeros(grid, dtype=complex)
    rolled[np.ix_(*[np.arange(-2 * m, 2 * m + 1) % g for m, g in zip(half, grid, strict=True)])] = t
    symbol = scipy.fft.irfftn(rolled[..., : grid[-1] // 2 + 1], s=grid)
    index = np.ix_(
        *[np.arange(-m, m + 1) % g for m, g in zip(half[:-1], grid[:-1], strict=True)], np.arange(half[-1] + 1)
    )
    centre = tuple(slice(m, 3 * m + 1) for m in half)
    mean = ((t.real - t.imag)[centre] * root).ravel()
    padded = np.zeros((*grid[:-1], grid[-1] // 2 + 1), dtype=complex)
    middle = half[-1]

    def product(u: np.ndarray) -> np.ndarray:
        u = u.ravel()
        f = _hartley_to_fourier((u.reshape(root.shape) * root)[None])[0]
        padded[index] = f[..., middle:]
        values = scipy.fft.irfftn(padded, s=grid)
        values *= symbol
        upper = scipy.fft.rfftn(values)[index] * values.size
        out = np.empty(root.shape)
        out[..., middle:] = upper.real - upper.imag
        lower = upper[(*[slice(None, None, -1)] * (d - 1), slice(None, 0, -1))]
        out[..., :middle] = lower.real + lower.imag
        out *= root
        return out.ravel() - mean * (mean @ u / n)

    return product, mean


# Randomly pivoted Cholesky, a block of pivots at a time (Epperly, Tropp, Webber 2024).


def pivoted_cholesky(X: np.ndarray, setting: Setting, share: float = 1.0, block: int = 32) -> Result:
    """Until the trace left is below ``share`` tol times the largest eigenvalue, which the features so far tell."""
    n = len(X)
    rng = np.random.default_rng(0)
    left = np.full(n, 1.0) if not setting.degree else (np.einsum("ij,ij->i", X, X) + 1) ** setting.degree
    F, k, lambda_1 = np.empty((64, n)), 0, 0.0
    while lambda_1 == 0.0 or left.sum() > share * setting.tol * lambda_1:
        pivots = np.unique(rng.choice(n, block, p=left / left.sum()))
        G = kernel_block(X[pivots], X, setting)
        if k:
            G -= F[:k, pivots].T @ F[:k]
        H = G[:, pivots]
        L = np.linalg.cholesky(H + 1e-13 * np.trace(H) * np.eye(len(H)))
        G = blas.dtrsm(1.0, L, G.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
        if k + len(G) > len(F):
            F = np.concatenate([F, np.empty_like(F)])
        F[k : k + len(G)] = G
        k += len(G)
        left -= np.einsum("ij,ij->j", G, G)
        np.maximum(left, 0, out=left)
        if lambda_1 == 0.0:  # from below, which is near enough
            A = F[:k] - F[:k].mean(axis=1)[:, None]
            lambda_1 = float(np.linalg.eigvalsh(A @ A.T)[-1])
    F = F[:k]
    mean = F.mean(axis=1)
    S = blas.dsyrk(1.0, F.T, trans=1) - n * np.outer(mean, mean)
    values, V = scipy.linalg.eigh(S, lower=False, subset_by_index=[max(0, k - setting.c), k - 1], overwrite_a=True)
    V = np.ascontiguousarray(V[:, ::-1])
    return values[::-1], F.T @ V - mean @ V


# Products with kernel values: on tiles, or with the stored matrix.


def _exponent_factors(X: np.ndarray, setting: Setting, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """A, B with A B' the exponent of the Gaussian (or the base of the polynomial): one GEMM has it all."""
    if setting.degree:
        one = np.ones((len(X), 1))
        A = np.hstack([X, one])
        return A.astype(dtype), A.astype(dtype)
    Y = (X - X.mean(axis=0)) / setting.sigma
    norms, one = -0.5 * np.einsum("ij,ij->i", Y, Y)[:, None], np.ones((len(X), 1))
    return np.hstack([Y, norms, one]).astype(dtype), np.hstack([Y, one, norms]).astype(dtype)


def _finish(T: np.ndarray, setting: Setting) -> np.ndarray:
    if not setting.degree:
        return np.exp(T, out=T)
    base = T.copy() if setting.degree > 2 else None
    np.multiply(T, T, out=T)
    for _ in range(setting.degree - 2):
        T *= base
    return T


def kernel_block(X: np.ndarray, Y: np.ndarray, setting: Setting) -> np.ndarray:
    if setting.degree:
        T = X @ Y.T
        T += 1
        return _finish(T, setting)
    s, centre = setting.sigma, Y[0]
    A, B = (X - centre) / s, (Y - centre) / s
    T = A @ B.T
    T -= 0.5 * np.einsum("ij,ij->i", A, A)[:, None]
    T -= 0.5 * np.einsum("ij,ij->i", B, B)
    return np.exp(T, out=T)


def tiled_product(X: np.ndarray, setting: Setting, dtype: type, tile: int = 512) -> Callable[[np.ndarray], np.ndarray]:
    """K @ U, each value computed once for both of its places."""
    A, B = _exponent_factors(X, setting, dtype)
    n = len(X)

    def product(U: np.ndarray) -> np.ndarray:
        U = np.ascontiguousarray(U, dtype=dtype)
        out = np.zeros_like(U)
        work = np.empty((tile, 8 * tile), dtype=dtype)
        for i in range(0, n, tile):
            rows = slice(i, min(n, i + tile))
            for j in range(i, n, 8 * tile):
                columns = slice(j, min(n, j + 8 * tile))
                T = work[: rows.stop - i, : columns.stop - j]
                _finish(np.matmul(A[rows], B[columns].T, out=T), setting)
                out[rows] += T @ U[columns]
                beyond = max(0, rows.stop - j)  # the square on the diagonal is whole by itself
                out[j + beyond : columns.stop] += T[:, beyond:].T @ U[rows]
        return out

    return product


def stored_matrix(X: np.ndarray, setting: Setting, dtype: type, tile: int = 512) -> np.ndarray:
    A, B = _exponent_factors(X, setting, dtype)
    n = len(X)
    K = np.empty((n, n), dtype=dtype)
    for i in range(0, n, tile):
        rows = slice(i, min(n, i + tile))
        T = np.matmul(A[rows], B[i:].T, out=K[rows, i:])
        _finish(T, setting)
        K[rows.stop :, rows] = T[:, rows.stop - i :].T
    return K


def stored_product(X: np.ndarray, setting: Setting, dtype: type) -> Callable[[np.ndarray], np.ndarray]:
    K = stored_matrix(X, setting, dtype)
    return lambda U: K @ np.asarray(U, dtype=dtype)


def block_krylov(X: np.ndarray, setting: Setting, product: Callable, most: int = 12) -> Result:
    """Random start, Rayleigh-Ritz on all blocks, until the Ritz values stand still."""
    c, still = setting.c, max(setting.tol / 10, 1e-7)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((len(X), 2 * c)))[0]
    V, W, before = np.empty((len(X), 0)), np.empty((len(X), 0)), np.zeros(c)
    for _ in range(most):
        Q -= Q.mean(axis=0)
        image = product(Q).astype(np.float64)
        image -= image.mean(axis=0)
        V, W = np.hstack([V, Q]), np.hstack([W, image])
        T = V.T @ W
        values, Y = np.linalg.eigh((T + T.T) / 2)
        values, Y = values[::-1][:c], Y[:, ::-1][:, :c]
        if np.abs(values - before).max() <= still * values[0]:
            break
        before = values
        Q = image - V @ (V.T @ image)
        Q = np.linalg.qr(Q - V @ (V.T @ Q))[0]
    return values, (V @ Y) * np.sqrt(np.maximum(values, 0))


def krylov_single(X: np.ndarray, setting: Setting) -> Result:
    return block_krylov(X, setting, tiled_product(X, setting, np.float32))


def krylov_mixed(X: np.ndarray, setting: Setting) -> Result:
    """The search in float32, then one pass in float64 on its Ritz vectors."""
    _, scores = krylov_single(X, setting)
    return rayleigh_ritz(X, setting, scores, tiled_product(X, setting, np.float64))


def rayleigh_ritz(X: np.ndarray, setting: Setting, scores: np.ndarray, product: Callable) -> Result:
    V = np.linalg.qr(scores - scores.mean(axis=0))[0]
    T = V.T @ product(V)
    values, Y = np.linalg.eigh((T + T.T) / 2)
    values, Y = values[::-1], Y[:, ::-1]
    return values, (V @ Y) * np.sqrt(np.maximum(values, 0))


def krylov_stored_single(X: np.ndarray, setting: Setting) -> Result:
    return block_krylov(X, setting, stored_product(X, setting, np.float32))


def krylov_stored_mixed(X: np.ndarray, setting: Setting) -> Result:
    _, scores = krylov_stored_single(X, setting)
    return rayleigh_ritz(X, setting, scores, tiled_product(X, setting, np.float64))


def _eigsh(X: np.ndarray, setting: Setting, dtype: type) -> Result:
    """ARPACK on the stored matrix, centred beside it."""
    K, n = stored_matrix(X, setting, dtype), len(X)

    def centred(u: np.ndarray) -> np.ndarray:
        u = u.ravel()
        v = K @ (u - u.mean())
        return v - v.mean()

    v0 = np.random.default_rng(0).standard_normal(n).astype(dtype)
    tol = max(setting.tol / 10, float(np.finfo(dtype).eps))
    values, V = eigsh(LinearOperator((n, n), matvec=centred, dtype=dtype), setting.c, v0=v0, tol=tol)
    order = np.argsort(values)[::-1]
    values, V = values[order].astype(np.float64), V[:, order]
    return values, V * np.sqrt(np.maximum(values, 0))


def arpack_double(X: np.ndarray, setting: Setting) -> Result:
    return _eigsh(X, setting, np.float64)


def arpack_single(X: np.ndarray, setting: Setting) -> Result:
    return _eigsh(X, setting, np.float32)


def lapack(X: np.ndarray, setting: Setting) -> Result:
    """The whole matrix, and its c largest eigenvalues by LAPACK."""
    K, n = stored_matrix(X, setting, np.float64), len(X)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    values, V = scipy.linalg.eigh(K, subset_by_index=[n - setting.c, n - 1], overwrite_a=True, check_finite=False)
    return values[::-1], V[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0))


# What others have written.


def _sklearn_kernel(setting: Setting) -> dict:
    if setting.degree:
        return {"kernel": "poly", "gamma": 1.0, "coef0": 1.0, "degree": setting.degree}
    return {"kernel": "rbf", "gamma": 0.5 / setting.sigma**2}


def sklearn_kpca(solver: str, dtype: type = np.float64) -> Callable[[np.ndarray, Setting], Result]:
    def run(X: np.ndarray, setting: Setting) -> Result:
        from sklearn.decomposition import KernelPCA

        model = KernelPCA(setting.c, eigen_solver=solver, random_state=0, copy_X=False, **_sklearn_kernel(setting))
        scores = model.fit_transform(X.astype(dtype, copy=False))
        return model.eigenvalues_, scores

    return run


def nystroem(rank: int) -> Callable[[np.ndarray, Setting], Result]:
    def run(X: np.ndarray, setting: Setting) -> Result:
        from sklearn.decomposition import PCA
        from sklearn.kernel_approximation import Nystroem

        Z = Nystroem(n_components=rank, random_state=0, **_sklearn_kernel(setting)).fit_transform(X)
        pca = PCA(setting.c, random_state=0)
        scores = pca.fit_transform(Z)
        return pca.explained_variance_ * (len(X) - 1), scores

    return run


def eigsh_on_our_product(X: np.ndarray, setting: Setting) -> Result:
    """ARPACK on this package's own approximate product: what somebody does who knows `gram` and not `kpca`."""
    import fastkpca as fk

    K = fk.gram(X, "gaussian", sigma=setting.sigma, tol=setting.tol / 10)

    def centred(u: np.ndarray) -> np.ndarray:
        u = u.ravel()
        v = K @ (u - u.mean())
        return v - v.mean()

    v0 = np.random.default_rng(0).standard_normal(len(X))
    values, V = eigsh(LinearOperator(K.shape, matvec=centred, dtype=np.float64), setting.c, v0=v0, tol=setting.tol)
    values, V = values[np.argsort(values)[::-1]], V[:, np.argsort(values)[::-1]]
    return values, V * np.sqrt(np.maximum(values, 0))
