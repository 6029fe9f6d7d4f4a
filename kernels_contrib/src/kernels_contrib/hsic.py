"""The Hilbert-Schmidt independence criterion: are two views of the same rows independent?

Gretton and others, A kernel statistical test of independence, NIPS 20, 2008, with H = I - 11'/N:

    HSIC (biased)    = tr(K H L H) / N^2 = |Phi' H Psi|^2 / N^2          (Frobenius norm; K = Phi Phi', L = Psi Psi')
    HSIC (unbiased)  = (tr(K~ L~) + sum k sum l / ((N - 1) (N - 2)) - 2 k.l / (N - 2)) / (N (N - 3))

the latter of Song and others, Feature selection via dependence maximization, JMLR 13, 2012 (equation 5), where it is
written for matrices with zero diagonals. It does not change where a multiple of ones is added to any row and the same
column, so that it may be taken of H K H: k and l are the diagonals of H K H and H L H, whose rows sum to zero, and
tr(K~ L~) = tr(K H L H) - k.l.

Where the maps miss E of K and F of L, tr(H (Phi Phi' + E) H (Psi Psi' + F)) lies above |Phi' H Psi|^2 by at most
|H Phi|_2^2 tr F + |H Psi|_2^2 tr E + tr E tr F, whichever way the rows of a view are permuted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastkpca.base import parallel
from fastkpca.base.rounding import EPS
from fastkpca.methods import check_count, check_flag

from .limits import HELD
from .methods.options import FitOptions, row_weights
from .methods.permutation import PermutationTest, test_of
from .methods.views import over_permutations, two_views

__all__ = ["PermutationTest", "hsic_test"]


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
        Of X and of Y, positive semidefinite; ``kernel_y`` is ``kernel`` by default, with a width of its own.
    unbiased : bool
        Leave out the pairs of a row with itself.
    permutations : int
        Number of random permutations of the rows of Y.
    sample_weight : array_like (N,), optional
        Weights of the rows of X, which stay where they are when those of Y are permuted, so they must not depend on Y;
        for the biased statistic.
    tol : float
        The part of the trace that a view's feature map may miss.
    max_features : int
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
        Of the permutations.
    **kernel_parameters
        Of both kernels.

    Returns
    -------
    PermutationTest

    Raises
    ------
    ValueError, TypeError
        The views are empty, have different numbers of rows, or fewer than 4; a kernel is not positive semidefinite, or
        needs more than ``max_features`` features.

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
    permutations = check_count(permutations, "permutations")
    options = FitOptions(kernel, kernel_parameters, "features", tol, max_features, n_threads)
    x, y = two_views(X, Y, kernel_y, options, "hsic_test")
    A, B = np.asarray(x.features), np.asarray(y.features)
    n, missed_y = len(A), y.missed
    weights = row_weights(sample_weight, n)
    if sample_weight is not None and unbiased:
        raise ValueError("the unbiased HSIC is that of equal weights; leave out sample_weight, or take unbiased=False")
    share = weights / weights.sum()
    A = A - share @ A
    B = B - B.mean(axis=0)
    k, l = np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", B, B)
    A *= share[:, None]

    # a permutation picks the entries of one matrix (four numbers are read or written for each), or forms A' B
    if 16 * n * n <= HELD and A.shape[1] * B.shape[1] > 4 * parallel.A_NUMBER * n:
        K, L = A @ A.T, B @ B.T
    else:
        K = L = None

    def measure(order: np.ndarray) -> tuple[float, float]:
        if K is None:
            value = float(np.linalg.norm(A.T @ B[order]) ** 2)
        else:
            value = float(np.einsum("ij,ij->i", K, L[order][:, order]).sum())
        return value, float(k @ l[order])

    (values, crossed), same = (x.T for x in over_permutations(measure, n, permutations, rng))
    missed_x, below_x = x.missed * share.max() ** 2, x.below * share.max() ** 2
    of_x, of_y = (float(np.linalg.norm(C.T @ C, 2)) for C in (A, B))
    half = (of_x * missed_y + of_y * missed_x + missed_x * missed_y) / 2
    rounding = 4 * EPS * (n + A.shape[1] + B.shape[1]) * np.sum(share**2 * k) * l.sum()
    below = of_x * y.below + of_y * below_x + (below_x + missed_x) * (y.below + missed_y)
    values, error = values + half, half + rounding + below
    if unbiased:
        missed = x.missed + x.below, missed_y + y.below
        values, error = _unbiased(n**2 * values, n**2 * error, crossed, k, l, missed)
    return test_of(
        values[:, None],
        np.full((len(values), 1), error),
        same,
        name=f"HSIC, {'un' * unbiased}biased",
        kernels=(x.kernel.unbound(), y.kernel.unbound()),
        n_samples=n,
        info={"method": "features", "x": x.info, "y": y.info},
    )


def _unbiased(
    traces: np.ndarray, error: float, crossed: np.ndarray, k: np.ndarray, l: np.ndarray, missed: tuple[float, float]
) -> tuple[np.ndarray, float]:
    """HSIC from tr(K H L H) and its error, k.l of each order of the rows, and the traces that the maps miss."""
    n = len(k)
    pairs, whole = (n - 1) * (n - 2), n * (n - 3)
    values = (traces + k.sum() * l.sum() / pairs - (1 + 2 / (n - 2)) * crossed) / whole
    # each diagonal is known as the trace is, and no entry misses more than all of it
    loose = k.max() * missed[1] + l.max() * missed[0] + missed[0] * missed[1]
    sums = k.sum() * missed[1] + l.sum() * missed[0] + missed[0] * missed[1]
    return values, (error + 2 * loose + sums / pairs) / whole
