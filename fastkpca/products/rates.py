"""What one thread does in a second: the rates that predictions rest on, measured by ``benchmarks/speed/calibrate.py``.

Predictions are counts (flops, kernel values, bytes) over these. They ignore the number of threads and the free memory,
so the same input takes the same route on every processor that knows the same vectors.
"""

from __future__ import annotations

from typing import NamedTuple

from .._core import multiindex
from .._core.tiles import DIRECT
from ..base.protocol import Kernel


class LoopRates(NamedTuple):
    """What the compiled loops of one instruction set do in a second.

    Attributes
    ----------
    entries : float
        Kernel values, beside the distances.
    distances : float
        Flops of distances and scalar products; in many coordinates BLAS is taken where it is faster.
    products : float
        Flops of a product with a tile's kernel values, and of sums of products of two features.
    squares : float
        n D^2 of second moments, by these loops or by BLAS, whichever is taken.
    """

    entries: float
    distances: float
    products: float
    squares: float


LOOP_RATES = {
    "baseline": LoopRates(0.35e9, 25e9, 21e9, 40e9),
    "avx2": LoopRates(1.1e9, 57e9, 52e9, 40e9),
    "avx512": LoopRates(2.2e9, 95e9, 76e9, 57e9),
}
"""By the name of the instruction set that this processor runs."""
ENTRY_RATE, DISTANCE_RATE, PRODUCT_RATE, SYRK_RATE = LOOP_RATES[multiindex.INSTRUCTION_SET]

GEMM_RATE = 45e9  # flops
EIGEN_RATE = 25e9  # flops of LAPACK's symmetric eigensolver on a matrix beyond the cache, counted as 4/3 n^3
CACHED_EIGEN_RATE = 45e9  # the same, of a matrix of CACHED_ORDER rows at most
CACHED_ORDER = 2500
EIGEN_STEPS = (1e-6, 1.2e-8)  # seconds beside: for each row, and for each entry
EIGENVECTOR_STEPS = (3e-8, 2.2e-10)  # seconds of an eigenvector: for each row, and for each entry of the matrix
ALL_EIGENVECTORS = 4.0  # times the seconds for each entry and the flops, for all of them
BLOCK_RATE = 1.5e8  # kernel values from Kernel.block, in Python
FEATURE_RATE = 5e9  # flops to form features; the flops that offers count in
ROW_RATE = 0.5e9  # numbers of X, for each look at them
OVERHEAD = 1e-3


def entry_rate(d: int) -> float:
    """Kernel values a second of compiled tiles, float64; distances included."""
    return 1.0 / (1.0 / ENTRY_RATE + 2.0 * d / (DISTANCE_RATE if d <= DIRECT else max(DISTANCE_RATE, GEMM_RATE)))


def eigen_seconds(n: float, count: float | None = None) -> float:
    """Of LAPACK's largest ``count`` eigenpairs of a symmetric matrix; None: of all of them."""
    rate = CACHED_EIGEN_RATE if n <= CACHED_ORDER else EIGEN_RATE
    values = EIGEN_STEPS[1] * n**2 + 4.0 / 3.0 * float(n) ** 3 / rate
    if count is None:
        return EIGEN_STEPS[0] * n + ALL_EIGENVECTORS * values
    return EIGEN_STEPS[0] * n + values + vector_seconds(n, min(count, n))


def vector_seconds(n: float, count: float) -> float:
    """Of the eigenvectors alone."""
    return count * (EIGENVECTOR_STEPS[0] * n + EIGENVECTOR_STEPS[1] * n**2)


def is_compiled(kernel: Kernel) -> bool:
    """Whether its exact products run in compiled tiles."""
    return kernel.compiled_tile() is not None


def pass_seconds(kernel: Kernel, n: float, m: float, d: int, columns: int, *, square: bool) -> float:
    """A product with the exact kernel values; in the square case each serves two of them."""
    pairs = n * m / 2 if square else n * m
    rate = PRODUCT_RATE if is_compiled(kernel) else GEMM_RATE
    return pairs * value_seconds(kernel, d) + 2.0 * n * m * columns / rate


def value_seconds(kernel: Kernel, d: int) -> float:
    """Of one kernel value in a tile."""
    return 1.0 / (entry_rate(d) if is_compiled(kernel) else 1.0 / (1.0 / BLOCK_RATE + 2.0 * d / GEMM_RATE))
