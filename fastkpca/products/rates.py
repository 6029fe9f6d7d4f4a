"""What one thread does in a second: the rates that predictions rest on, measured by ``benchmarks/speed/calibrate.py``.

Predictions are counts (flops, kernel values, bytes) over these. They ignore the number of threads and the free memory,
so the same input takes the same route everywhere.
"""

from __future__ import annotations

from ..base.protocol import Kernel

GEMM_RATE = 45e9  # flops
SYRK_RATE = 40e9  # flops, counting n D^2 for D x D from n rows
EIGEN_RATE = 25e9  # flops of LAPACK's symmetric eigensolver on a matrix beyond the cache, counted as 4/3 n^3
CACHED_EIGEN_RATE = 40e9  # the same, of a matrix of CACHED_ORDER rows at most
CACHED_ORDER = 2500
EIGEN_STEP, EIGENVECTOR_STEP = 3e-6, 3e-7  # seconds for each row beside, and for each row of an eigenvector
ALL_EIGENVECTORS = 5.5  # times the flops, for all of them
ENTRY_RATE = 1.0e9  # kernel values of compiled tiles, beside the distances
BLOCK_RATE = 1.5e8  # kernel values from Kernel.block, in Python
FEATURE_RATE = 5e9  # flops to form features; the flops that offers count in
ROW_RATE = 0.5e9  # numbers of X, for each look at them
KERNEL_FLOPS = 20.0  # of a kernel value in a tile, in these flops
OVERHEAD = 1e-3


def entry_rate(d: int) -> float:
    """Kernel values a second of compiled tiles, float64; distances included."""
    return 1.0 / (1.0 / ENTRY_RATE + 2.0 * d / GEMM_RATE)


def eigen_seconds(n: float, count: float | None = None) -> float:
    """Of LAPACK's largest ``count`` eigenpairs of a symmetric matrix; None: of all of them."""
    flops = 4.0 / 3.0 * float(n) ** 3
    rate = CACHED_EIGEN_RATE if n <= CACHED_ORDER else EIGEN_RATE
    if count is None:
        return n * EIGEN_STEP + ALL_EIGENVECTORS * flops / rate
    return n * (EIGEN_STEP + EIGENVECTOR_STEP * min(count, n)) + flops / rate


def is_compiled(kernel: Kernel) -> bool:
    """Whether its exact products run in compiled tiles."""
    return kernel.compiled_tile() is not None


def pass_seconds(kernel: Kernel, n: float, m: float, d: int, columns: int, *, square: bool) -> float:
    """A product with the exact kernel values; in the square case each serves two of them."""
    pairs = n * m / 2 if square else n * m
    return pairs * value_seconds(kernel, d) + 2.0 * n * m * columns / GEMM_RATE


def value_seconds(kernel: Kernel, d: int) -> float:
    """Of one kernel value in a tile."""
    return 1.0 / (entry_rate(d) if is_compiled(kernel) else 1.0 / (1.0 / BLOCK_RATE + 2.0 * d / GEMM_RATE))
