"""Rates of one thread, on which predictions rest, measured by ``benchmarks/speed/calibrate.py``.

Predictions are counts (flops, kernel values, bytes) over these. They ignore the number of threads and the free memory,
so the same input takes the same route on every processor that knows the same vectors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._core import multiindex
from .._core.tiles import DIRECT
from ..base.protocol import Cost, Kernel


class Rates(NamedTuple):
    """Rates of one thread on processors with the same vector instructions.

    Attributes
    ----------
    entries : float
        Kernel values of compiled tiles, without the distances.
    distances : float
        Flops of distances and scalar products by differences along a tile; in many coordinates they are BLAS's.
    products : float
        Flops of a product with a tile's kernel values, and of sums of products of two features.
    squares : float
        n D^2 of second moments, by compiled loops or by BLAS, whichever is taken.
    multiplications : float
        Flops of BLAS, a tall matrix times a narrow one.
    cached_eigen, eigen : float
        Flops of LAPACK's symmetric eigensolver, counted as 4/3 n^3; the former where the cache holds the matrix.
    cached_order : int
        Rows of a matrix up to which it does.
    factorisations : float
        Flops of a Cholesky factorisation in float32.
    features : float
        Flops to form features; the flops that offers count in.
    rows : float
        Entries of X, for each time they are read.
    blocks : float
        Kernel values from Kernel.block, in Python.
    solves : float
        n D^2 of triangular solves, by compiled loops or by BLAS, whichever is taken.

    And what takes as long whatever the vectors: seconds, but for ``reads``, ``choosing``, ``all_vectors`` and
    ``leaf_value``.

    row, entry : float
        Of LAPACK's eigenvalues beside its flops, for each row and for each entry of the matrix.
    vector_row, vector_entry : float
        The same of each eigenvector.
    all_vectors : float
        Times the seconds for each entry and the flops, for all eigenvectors.
    proposal, choosing : float
        Of each pivot that is chosen; and times what the features of the candidates take.
    fit, a_pass, look : float
        Of a fit, of a pass of block Krylov or a look at its Ritz pairs, and of a look at a few rows with the prices
        that follow: calls, and small matrices.
    reads : float
        Bytes of memory in a second.
    sparse_value, sparse_row : float
        For each value and for each row of a truncated matrix, in a product with eight columns.
    new_sparse_value : float
        For each value, until the truncated matrix is put together.
    leaf_value : float
        Times the seconds of a kernel value in larger tiles: those of one between leaves of clusters.
    leaf : float
        For each leaf of clusters, in a product.
    sorted_row, leaf_pair : float
        For each row, and for each near pair of leaves, before the first product by clusters.
    """

    entries: float
    distances: float
    products: float
    squares: float
    multiplications: float
    cached_eigen: float
    eigen: float
    cached_order: int
    factorisations: float
    features: float
    rows: float
    blocks: float
    solves: float
    row: float = 1e-6
    entry: float = 1.2e-8
    vector_row: float = 3e-8
    vector_entry: float = 2.2e-10
    all_vectors: float = 4.0
    proposal: float = 1e-5
    choosing: float = 2.0
    fit: float = 8e-4
    a_pass: float = 6e-4
    look: float = 3e-4
    reads: float = 1e10
    sparse_value: float = 1.3e-9
    sparse_row: float = 1e-7
    new_sparse_value: float = 5e-8
    leaf_value: float = 1.1
    leaf: float = 2e-5
    sorted_row: float = 2e-7
    leaf_pair: float = 4e-7


_INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
_MEASURED: dict[str, tuple[float, ...]] = {  # in their order
    "entries": (3.5e8, 1.3e9, 2.4e9),
    "distances": (18e9, 47e9, 50e9),
    "products": (19e9, 50e9, 58e9),
    "squares": (21e9, 53e9, 57e9),
    "multiplications": (22e9, 53e9, 45e9),
    "cached_eigen": (17e9, 45e9, 45e9),
    "eigen": (14e9, 25e9, 25e9),
    "cached_order": (1500, 1500, 2500),
    "factorisations": (34e9, 80e9, 80e9),
    "features": (4.4e9, 5e9, 5e9),
    "rows": (5e8, 5e8, 5e8),
    "blocks": (2.7e8, 3.4e8, 1.5e8),
    "solves": (44e9, 50e9, 50e9),
}
RATES = {
    name: Rates(**dict(zip(_MEASURED, rates)))  # type: ignore[arg-type]
    for name, rates in zip(_INSTRUCTION_SETS, zip(*_MEASURED.values()))
}
"""By the name of the instruction set that this processor runs.

The first two are in the proportions of a processor that has no more than AVX2, where BLAS has no more either, at the
pace of the third: what takes seconds whatever the vectors, as calls do, takes as many there.
"""
RATE = RATES[multiindex.INSTRUCTION_SET]


ROW_ENTRIES = 8
"""Overhead of reading a row, in entries; it dominates where rows have few columns."""


def takes_blas(d: int) -> bool:
    """True if tiles of rows with d columns form distances by BLAS: reading values is then faster than making them."""
    return d > DIRECT


def entry_rate(d: int) -> float:
    """Kernel values a second of compiled tiles, float64; distances included."""
    distances = max(RATE.distances, RATE.multiplications) if takes_blas(d) else RATE.distances
    return 1.0 / (1.0 / RATE.entries + 2.0 * d / distances)


def eigen_seconds(n: float, count: float | None = None) -> float:
    """Predicted seconds of LAPACK's largest ``count`` eigenpairs of a symmetric matrix; None: of all."""
    rate = RATE.cached_eigen if n <= RATE.cached_order else RATE.eigen
    values = RATE.entry * n**2 + 4.0 / 3.0 * float(n) ** 3 / rate
    if count is None:
        return RATE.row * n + RATE.all_vectors * values
    return RATE.row * n + values + vector_seconds(n, min(count, n))


def vector_seconds(n: float, count: float) -> float:
    """Predicted seconds of the eigenvectors alone."""
    return count * (RATE.vector_row * n + RATE.vector_entry * n**2)


def is_compiled(kernel: Kernel) -> bool:
    """True if its exact products run in compiled tiles."""
    return kernel.compiled_tile() is not None


def pass_seconds(kernel: Kernel, n: float, m: float, d: int, columns: int, *, square: bool) -> float:
    """A product with the exact kernel values; in the square case each serves two of them."""
    pairs = n * m / 2 if square else n * m
    rate = RATE.products if is_compiled(kernel) else RATE.multiplications
    return pairs * value_seconds(kernel, d) + 2.0 * n * m * columns / rate


def value_seconds(kernel: Kernel, d: int) -> float:
    """Predicted seconds of one kernel value in a tile."""
    return 1.0 / (entry_rate(d) if is_compiled(kernel) else 1.0 / (1.0 / RATE.blocks + 2.0 * d / RATE.multiplications))


def moment_seconds(cost: Cost, *, quick: bool = False) -> float:
    """Predicted seconds of one row's part of the second moment of a map; ``quick``: from fewer sums, where it can."""
    if cost.moment_flops is not None:
        return cost.moment_flops / RATE.features
    full = float(cost.n_features) ** 2 / RATE.squares
    products = cost.quick_flops / RATE.products if quick and cost.quick_flops is not None else full
    return cost.row_flops / RATE.features + products


def evaluation_columns(kernel: Kernel, d: int) -> int:
    """Columns whose product with symmetric kernel values takes as long as evaluating these."""
    rate = RATE.products if is_compiled(kernel) else RATE.multiplications
    return int(0.25 * rate * value_seconds(kernel, d))


def reading_seconds(n: float, d: int) -> float:
    """Predicted seconds of checking, copying and summarising n rows, before anything is run."""
    return 3.0 * n * (d + ROW_ENTRIES) / RATE.rows


def pivots_cost(rank: float, kernel_flops: float, residual: float, *, candidates: int) -> Cost:
    """Cost of a map of ``rank`` pivots, chosen among ``candidates``; ``kernel_flops``: of one kernel value."""
    if not rank < 2**31 - 1:  # where a curve hardly falls it may be 1e200, whose cube overflows
        return Cost(2**31 - 1, row_flops=np.inf, setup_flops=np.inf, memory=np.inf, residual=residual)
    row = rank * (kernel_flops + RATE.features / RATE.solves * rank)
    setup = RATE.choosing * candidates * row + RATE.features * RATE.proposal * rank
    return Cost(int(rank), row_flops=row, setup_flops=setup, residual=residual)
