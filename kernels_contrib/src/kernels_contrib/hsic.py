"""The Hilbert-Schmidt independence criterion: are two views of the same rows independent?

Gretton and others, A kernel statistical test of independence, NIPS 20, 2008, with H = I - 11'/N:

    HSIC (biased)    = tr(K H L H) / N^2 = |Phi' H Psi|^2 / N^2          (Frobenius norm; K = Phi Phi', L = Psi Psi')
    HSIC (unbiased)  = (tr(K~ L~) + sum k sum l / ((N - 1) (N - 2)) - 2 k.l / (N - 2)) / (N (N - 3))

the latter of Song and others, Feature selection via dependence maximization, JMLR 13, 2012 (equation 5), where it is
written for matrices with zero diagonals. It does not change where a multiple of ones is added to any row and the same
column, so that it may be taken of H K H: k and l are the diagonals of H K H and H L H, whose rows sum to zero, and
tr(K~ L~) = tr(K H L H) - k.l.

With the residuals E of K and F of L, tr(H (Phi Phi' + E) H (Psi Psi' + F)) lies above |Phi' H Psi|^2. The difference is
at most |H Phi|_2^2 tr F + |H Psi|_2^2 tr E + tr E tr F, for every permutation of the rows of a view.

Rounding moves A = H Phi by a matrix of norm r_A, and B = H Psi by one of norm r_B: the features by ``map.rounding`` of
their lengths, before the mean is subtracted, and the mean by that of its sum. So |A'B| moves by at most

    r = r_A |B|_2 + r_B |A|_2 + r_A r_B + (rounding of the product),

and its square v by at most 2 sqrt(v) r + r^2.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from fastkpca.base import parallel
from fastkpca.base.rounding import UNIT, rounding_factor
from fastkpca.methods import check_draws, check_flag

from .limits import HELD_BYTES
from .methods.options import FitOptions, row_weights
from .methods.permutation import PermutationTest, test_of
from .methods.threads import one_blas_thread
from .methods.views import over_permutations, two_views

__all__ = ["PermutationTest", "hsic_test"]

Pair: TypeAlias = tuple[np.ndarray, np.ndarray]


@one_blas_thread
def hsic_test(
    X: Any,
    Y: Any,
    kernel: Any = "gaussian",
    kernel_y: Any = None,
    *,
    unbiased: bool = False,
    permutations: int = 199,
    sample_weight: Any = None,
    tol: float = 1e-8,
    max_features: int = 2048,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> PermutationTest:
    """Test whether two views of the same rows are independent, by the Hilbert-Schmidt independence criterion.

    Parameters
    ----------
    X, Y : array_like (N, d), (N, e)
        Two views of the same rows; also on disk or Dask collections, while the features of both fit into memory. A view
        whose kernel is "precomputed" is its Gram matrix (N, N).
    kernel, kernel_y : str, Kernel, object with ``block``, or callable
        Kernels of X and of Y, positive semidefinite; ``kernel_y`` is ``kernel`` by default, with a width of its own.
    unbiased : bool
        Omit the pairs of a row with itself.
    permutations : int
        Number of random permutations of the rows of Y, a million at most.
    sample_weight : array_like (N,), optional
        Weights of the rows of X, which stay where they are when those of Y are permuted, so they must not depend on Y;
        for the biased statistic.
    tol : float
        The part of the trace after centring that a view's feature map may miss.
    max_features : int
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
        Random numbers for the permutations.
    **kernel_parameters
        Parameters of both kernels.

    Returns
    -------
    PermutationTest

    Raises
    ------
    ValueError, TypeError
        The views are empty, have different numbers of rows, or fewer than 4. A kernel is not positive semidefinite, or
        needs more than ``max_features`` features. The statistic is out of the range of float64.

    Examples
    --------
    >>> import numpy as np
    >>> from kernels_contrib.hsic import hsic_test
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 1))
    >>> hsic_test(X, X**2 + 0.1 * rng.standard_normal((200, 1))).p_value  # no correlation, but no independence either
    0.005
    """
    unbiased = check_flag(unbiased, "unbiased")
    permutations = check_draws(permutations, "permutations")
    options = FitOptions(kernel, kernel_parameters, "features", tol, max_features, n_threads, center=True)
    x, y = two_views(X, Y, kernel_y, options, "hsic_test")
    A, B = np.asarray(x.features), np.asarray(y.features)
    n, missed_y = len(A), y.missed
    weights = row_weights(sample_weight, n)
    if sample_weight is not None and unbiased:
        raise ValueError("the unbiased HSIC is that of equal weights; leave out sample_weight, or take unbiased=False")
    share, uniform = weights / weights.sum(), np.full(n, 1.0 / n)
    displaced = _displacement(A, share, x.features.map.rounding), _displacement(B, uniform, y.features.map.rounding)
    A = A - share @ A
    B = B - B.mean(axis=0)
    k, l = np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", B, B)
    A *= share[:, None]
    sizes = float(np.sum(share**2 * k)), float(l.sum())
    if all(sizes) and not 280.0 > abs(np.log10(sizes[0]) + np.log10(sizes[1])):
        raise ValueError(
            f"the variance of X in the space of its kernel is {n * sizes[0]:.2g}, that of Y {sizes[1] / n:.2g}: their "
            "product, which HSIC is about, is out of the range of float64; multiply X or Y by a power of ten"
        )

    # a permutation picks the entries of one matrix (four numbers are read or written for each), or forms A' B
    if 16 * n * n <= HELD_BYTES and A.shape[1] * B.shape[1] > 4 * parallel.FLOPS_PER_NUMBER * n:
        K, L = A @ A.T, B @ B.T
        n_bytes = 24 * n * n
        terms = 2 * rounding_factor(max(A.shape[1], B.shape[1])) + rounding_factor(n * n)
        product = lambda order: np.einsum("ij,ij->i", K, L[order][:, order]).sum()  # noqa: E731
    else:
        n_bytes, terms = B.nbytes, 0.0
        product = lambda order: np.linalg.norm(A.T @ B[order]) ** 2  # noqa: E731

    def measure(order: np.ndarray) -> tuple[float, float]:
        return float(product(order)), float(k @ l[order])

    (values, crossed), identity = (x.T for x in over_permutations(measure, n, permutations, rng, n_threads, n_bytes))
    heaviest = share.max() ** 2
    missed_x, below_x = x.missed * heaviest, x.below * heaviest
    of_x, of_y = (float(np.linalg.norm(C.T @ C, 2)) for C in (A, B))
    half = (of_x * missed_y + of_y * missed_x + missed_x * missed_y) / 2
    below = of_x * y.below + of_y * below_x + (below_x + missed_x) * (y.below + missed_y) - missed_x * missed_y
    r_a, r_b = float(np.linalg.norm(share * displaced[0])), float(np.linalg.norm(displaced[1]))
    r = r_a * np.sqrt(of_y) + r_b * np.sqrt(of_x) + r_a * r_b
    r += (rounding_factor(n) + rounding_factor(A.shape[1] * B.shape[1])) * UNIT * np.sqrt(sizes[0] * sizes[1])
    error = half + below + 2.0 * np.sqrt(np.maximum(values, 0.0)) * r + r**2 + terms * UNIT * sizes[0] * sizes[1]
    values = values + half
    if unbiased:
        missed = x.missed + x.below, missed_y + y.below
        values, error = _unbiased(n**2 * values, n**2 * error, crossed, (k, l), missed, displaced)
    return test_of(
        values[:, None],
        error[:, None],
        identity,
        name=f"HSIC, {'un' * unbiased}biased",
        kernels=(x.kernel.unbound(), y.kernel.unbound()),
        n_samples=n,
        info={"method": "features", "x": x.info, "y": y.info},
    )


def _displacement(Phi: np.ndarray, share: np.ndarray, rounding: float) -> np.ndarray:
    """Bounds (N,) on the rounding of each row of features about their weighted mean."""
    lengths = np.linalg.norm(Phi, axis=1)
    return (rounding + 4.0 * UNIT) * lengths + rounding_factor(len(Phi)) * UNIT * np.sqrt(share @ lengths**2)


def _unbiased(
    traces: np.ndarray,
    error: np.ndarray,
    crossed: np.ndarray,
    diagonals: Pair,
    missed: tuple[float, float],
    displaced: Pair,
) -> Pair:
    """HSIC from tr(K H L H) and its error, k.l of each order of the rows, the traces that the maps miss, and how far
    rounding moves each row of features."""
    k, l = diagonals
    n = len(k)
    pairs, whole = (n - 1) * (n - 2), n * (n - 3)
    values = (traces + k.sum() * l.sum() / pairs - (1 + 2 / (n - 2)) * crossed) / whole
    # each diagonal is known as the trace is, and no entry misses more than all of it
    loose = k.max() * missed[1] + l.max() * missed[0] + missed[0] * missed[1]
    sums = k.sum() * missed[1] + l.sum() * missed[0] + missed[0] * missed[1]
    dk, dl = (_of_squares(*x, n) for x in ((k, displaced[0]), (l, displaced[1])))
    loose += dk.max() * l.sum() + dl.max() * k.sum() + n * dk.max() * dl.max()
    sums += dk.sum() * l.sum() + dl.sum() * k.sum() + dk.sum() * dl.sum()
    return values, (error + 2 * loose + sums / pairs + 4 * UNIT * np.abs(traces)) / whole


def _of_squares(k: np.ndarray, displaced: np.ndarray, n: int) -> np.ndarray:
    """Bound on the error of the squared lengths k of displaced rows, summed over n of them."""
    return 2.0 * np.sqrt(k) * displaced + displaced**2 + 2.0 * rounding_factor(n) * UNIT * k
