"""The solver and its certificates alone: random matrices on which every interval must contain the reference eigenvalue.

The reference is LAPACK's eigenvalues of the centred matrix, which is centred in extended precision and then scaled by
nothing: its own error is about 4 u |Kc|_2 (measured against mpmath in tests/solve/test_certificate.py), u = 1.1e-16. An
interval is counted as missed where the reference lies outside by more than REFERENCE = 16 u |Kc|_2.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from attack_cases import clustered_matrix
from data import rows
from dense_products import DenseProduct, centered, entries_of, median_distance
from reference import center, gram

from fastkpca.solve.block_krylov import block_krylov
from fastkpca.solve.certificate import FeatureSums, dense_certificate, feature_certificate
from fastkpca.solve.costs import basis_bytes, default_block_size, least_columns
from fastkpca.solve.task import KernelMatrix, SolverBudget, SolverTarget

REFERENCE = 16 * 1.1e-16


def kernel_matrix(rng, kind, X):
    """(K, positive semidefinite)."""
    scale = median_distance(X) or 1.0
    if kind == "gaussian":
        return gram("gaussian", X, sigma=scale * 10 ** rng.uniform(-1, 3)), True
    if kind == "laplacian":
        d1 = np.zeros((len(X), len(X)))
        for x in X.T:
            d1 += np.abs(x[:, None] - x[None, :])
        return np.exp(-d1 / (scale * 10 ** rng.uniform(-1, 3))), True
    G = X @ X.T
    G = (G + G.T) / 2 / np.abs(G).max()
    if kind == "polynomial":
        return (G * 10 ** rng.uniform(-2, 1) + rng.choice([0.0, 1.0, 100.0])) ** int(rng.integers(1, 6)), True
    return np.tanh(G * 10 ** rng.uniform(-1, 1.5) + rng.uniform(-2, 2)), False


ROWS = ["uniform", "clustered", "low-dimensional", "outliers", "duplicates", "constant"]
KERNELS = ["gaussian", "gaussian", "polynomial", "tanh", "laplacian"]


def features_of(K, columns):
    """Pivoted Cholesky of K: (Phi, residual trace with its rounding, defect).

    The defect is the backward error of Cholesky factorisation, (r + 1) u K_max in each entry (Higham, Accuracy and
    Stability, theorem 10.3): the K of this script is what float64 holds, not an exact kernel.
    """
    n = len(K)
    residual = np.diag(K).copy()
    L = np.zeros((n, 0))
    for _ in range(columns):
        p = int(np.argmax(residual))
        if residual[p] <= 1e-10 * K.diagonal().max():
            break
        L = np.hstack([L, ((K[:, p] - L @ L[p]) / np.sqrt(residual[p]))[:, None]])
        residual = np.maximum(np.diag(K) - np.sum(L**2, axis=1), 0.0)
    r = L.shape[1]
    missed = float(residual.sum()) + (n + r) * 1.1e-16 * float(np.trace(K)) * 4
    return L, missed, (r + 4) * 1.1e-16 * float(K.diagonal().max())


def problem(rng, largest=1500):
    n = int(np.exp(rng.uniform(np.log(50), np.log(largest))))
    kind = str(rng.choice(KERNELS))
    data = str(rng.choice(ROWS))
    X = rows(rng, data, n, int(rng.integers(1, 21)))
    K, semidefinite = kernel_matrix(rng, kind, X)
    c = int(rng.integers(1, min(40, n - 1) + 1))
    return K, semidefinite, c, 10 ** rng.uniform(-10, -2), f"{kind} {data} n={n} c={c}"


def contained(certificate, reference, size, own=REFERENCE):
    """(promise, how far the reference lies outside of its interval, in units of ``size``, beyond its own error)."""
    low, high = certificate.eigenvalue_bounds.T
    true = reference[: len(low)]
    return "eigenvalues", float(np.max(np.maximum(low - true, true - high))) / size - own


def every_route(rng, asked):
    """The attack: one random matrix over all routes."""
    K, semidefinite, c, tol, name = problem(rng, asked.largest)
    n = len(K)
    A = centered(K)
    reference = np.linalg.eigvalsh(A)[::-1]
    size = float(np.max(np.abs(reference)))
    trace = float(np.trace(K))
    if not size > 1e-13 * np.linalg.norm(K):
        return  # constant kernel matrix: nothing but rounding is left
    dense = dense_certificate(np.linalg.eigvalsh(center(K))[::-1], c, n=n, norm=float(np.linalg.norm(K)))
    yield "dense", name, [contained(dense, reference, size)]
    start = None
    if semidefinite and rng.random() < 0.5:
        Phi, missed, defect = features_of(K, int(rng.integers(1, 100)))
        H = Phi - Phi.mean(axis=0)
        C = H.T @ H
        values, vectors = np.linalg.eigh(C)
        values, vectors = values[::-1], vectors[:, ::-1]
        route = feature_certificate(
            values,
            c,
            FeatureSums(n, trace=float(np.trace(C)), residual_trace=missed, kernel_trace=trace, entry_defect=defect),
        )
        yield "features", name, [contained(route, reference, size)]
        start = H @ vectors[:, : c + 5]
    mode = int(rng.integers(4))
    if mode == 1:  # starved: orthogonal to the leading eigenvectors
        leading = np.linalg.eigh(A)[1][:, -min(c, 3) :]
        start = rng.standard_normal((n, c + 5))
        start -= leading @ (leading.T @ start)
    block = default_block_size(n, c)
    known_trace = trace if rng.random() < 0.9 else None
    block_size = int(rng.integers(1, c + 2)) if mode == 2 else None
    passes = int(rng.integers(1, 20))
    single = DenseProduct(K, np.float32) if rng.random() < 0.5 else None
    memory = 1.2 * basis_bytes(n, least_columns(n, c, block), block) if mode == 3 else None
    result = block_krylov(
        KernelMatrix(DenseProduct(K), single, known_trace, semidefinite, entries=entries_of(K)),
        SolverTarget(c, tol, failure=1e-6),
        SolverBudget(passes, memory),
        start=start,
        block_size=block_size,
        rng=rng,
    )
    found = [contained(result.certificate, reference, size)]
    if result.certificate.bound_kind == "guaranteed":
        found.append(("angles", _angle_excess(A, result) - 1e-10))
    yield "krylov", name, found


def _angle_excess(A, result):
    """Largest sine of an angle beyond its bound, over the clusters whose true members are known."""
    certificate = result.certificate
    values, vectors = np.linalg.eigh(A)
    values, vectors = values[::-1], vectors[:, ::-1]
    worst = -1.0
    for label in np.unique(certificate.clusters):
        mine = np.flatnonzero(certificate.clusters == label)
        bound = np.sin(certificate.angle_bounds[mine[0]])
        if bound >= 1.0 or mine[-1] == len(result.theta) - 1:
            continue  # nothing claimed, or the cluster may have members beyond the last one returned
        true = vectors[:, mine]
        sine = np.linalg.norm(result.vectors[:, mine] - true @ (true.T @ result.vectors[:, mine]), 2)
        gap = min(
            values[mine[0] - 1] - values[mine[0]] if mine[0] else np.inf,
            values[mine[-1]] - values[mine[-1] + 1],
        )
        rounding = len(A) * 1e-16 * np.abs(values).max() / max(gap, 1e-300)  # of the reference vectors
        worst = max(worst, float(sine - bound - rounding))
    return worst


def cluster(rng, asked):
    """The attack on a matrix with a cluster at the top, by an unkind block size: no silent miss."""
    K = clustered_matrix(rng)
    values = scipy.linalg.eigvalsh(center(K))
    c = int(rng.integers(1, 12))
    tol = 10 ** rng.uniform(-9, -4)
    block_size = int(rng.choice([1, 2, 3, 5, 20]))
    single = DenseProduct(K, np.float32) if rng.random() < 0.5 else None
    passes = int(rng.integers(5, 41))
    entries = entries_of(K)
    matrix = KernelMatrix(DenseProduct(K), single, float(np.trace(K)), positive_semidefinite=True, entries=entries)
    target = SolverTarget(c, tol, failure=1e-6)
    result = block_krylov(matrix, target, SolverBudget(passes), block_size=block_size, rng=rng)
    true = np.sort(values)[::-1][: len(result.theta)]
    right = len(true) == c and bool(np.max(np.abs(result.theta - true)) <= 1e-3)
    missed = ("a silent miss", float(not right and not result.message))
    yield "cluster", f"c={c} tol={tol:.1e}", [missed, contained(result.certificate, true, 1.0, own=1e-13)]
