"""The solver and its certificates alone: random matrices on which every interval must hold the eigenvalue."""

from types import SimpleNamespace

import numpy as np
from attack_cases import check_angles, check_eigenvalues, clustered_matrix, gram_long, problem, spectrum
from dense_products import DenseProduct, centered, entries_of
from reference import center

from fastkpca.products.implicit import KernelMatrix
from fastkpca.solve.block_krylov import block_krylov
from fastkpca.solve.certificate import dense_certificate
from fastkpca.solve.costs import basis_bytes, default_block_size, least_columns
from fastkpca.solve.task import SolverBudget, SolverTarget


def checks(result, exact):
    """What must hold of a result of the solver: ``attack_cases`` has it for models."""
    certificate = result.certificate
    model = SimpleNamespace(
        n_components=len(result.values),
        eigenvalues=result.values,
        eigenvalue_bounds=certificate.eigenvalue_bounds,
        angle_bounds=certificate.angle_bounds,
        clusters=certificate.clusters,
        coeff=result.vectors,
        dtype=np.float64,
    )
    yield from check_eigenvalues(model, exact)
    if certificate.bound_kind == "guaranteed":
        yield from check_angles(model, exact)


def every_route(rng, asked):
    """The attack: one random matrix over all routes."""
    given = problem(rng, asked.largest)
    K = gram_long(given.kernel, given.X, given.parameters)[0].astype(np.float64)
    n, semidefinite, tol, name = len(K), given.kernel != "tanh", given.tol, given.name
    c = int(rng.integers(1, min(40, n - 1) + 1))
    A, exact, trace = centered(K), spectrum(K), float(np.trace(K))
    if exact.is_constant or n < 50:  # of few rows kpca asks LAPACK
        return
    values = np.linalg.eigvalsh(center(K))[::-1]
    dense = dense_certificate(values, c, n=n, norm=float(np.linalg.norm(K)))
    low, high = dense.eigenvalue_bounds.T
    outside = np.maximum(low - exact.values[:c], exact.values[:c] - high).max()
    yield "dense", name, [("eigenvalues", exact.excess(outside - exact.error))]
    start = None
    if rng.random() < 0.3:  # near the leading eigenvectors
        start = np.linalg.eigh(A)[1][:, ::-1][:, : c + 5] + 10.0 ** rng.uniform(-8, 0) * rng.standard_normal((n, 1))
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
    yield "krylov", name, checks(result, exact)


def cluster(rng, asked):
    """The attack on a matrix with a cluster at the top, by an unkind block size: no silent miss."""
    K = clustered_matrix(rng)
    exact = spectrum(K)
    c = int(rng.integers(1, 12))
    tol = 10 ** rng.uniform(-9, -4)
    block_size = int(rng.choice([1, 2, 3, 5, 20]))
    single = DenseProduct(K, np.float32) if rng.random() < 0.5 else None
    passes = int(rng.integers(5, 41))
    entries = entries_of(K)
    matrix = KernelMatrix(DenseProduct(K), single, float(np.trace(K)), positive_semidefinite=True, entries=entries)
    target = SolverTarget(c, tol, failure=1e-6)
    result = block_krylov(matrix, target, SolverBudget(passes), block_size=block_size, rng=rng)
    true = exact.values[: len(result.values)]
    right = len(true) == c and bool(np.max(np.abs(result.values - true)) <= 1e-3)
    missed = ("a silent miss", float(not right and not result.message))
    yield "cluster", f"c={c} tol={tol:.1e}", [missed, *checks(result, exact)]
