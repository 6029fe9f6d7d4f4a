"""Kernel ridge regression, (K + alpha I) A = Y: by Cholesky where the matrix fits, by conjugate gradients beyond."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ..base import parallel
from ..base.protocol import Kernel
from ..base.rounding import EPS
from ..errors import NotConvergedError, warn_caller
from ..products.exact import ExactSummation
from ..products.matrix import gram_matrix
from ..rows.view import Rows
from .conjugate_gradients import solve_to_residual

RELATIVE_RESIDUAL = 1e-10
"""Norm of the residual at which the iterations end, over the norm of each column, where rounding allows so little."""

INDEFINITE = "K + alpha I is not positive definite; give a larger alpha"


def solve_ridge(
    kernel: Kernel, Z: np.ndarray, Y: np.ndarray, alpha: float, memory_limit: int, n_threads: int = 1
) -> np.ndarray:
    """A with (K + alpha I) A = Y, K the kernel matrix of the rows of Z.

    Parameters
    ----------
    kernel : Kernel
        Resolved; positive semidefinite, or ``alpha`` makes K + alpha I positive definite.
    Z : ndarray (N, c)
    Y : ndarray (N, d)
    alpha : float
        Not negative.
    memory_limit : int
        Bytes; where the matrix needs more, it is never formed.

    Returns
    -------
    ndarray (N, d), of the type of Z

    Raises
    ------
    numpy.linalg.LinAlgError
        K + alpha I is not positive definite.
    NotConvergedError
        The iterations did not reach their residual.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        K + alpha I is singular to rounding.
    """
    rows, threads = Rows(Z), parallel.threads_for(kernel, n_threads)
    Y = np.asarray(Y, dtype=np.float64)
    if 8 * len(Z) ** 2 <= memory_limit:
        K = gram_matrix(kernel, rows, n_threads=threads)
        K.flat[:: len(Z) + 1] += alpha
        solution = _by_cholesky(K, Y)
    else:
        solution = _iterate(ExactSummation(kernel, rows, n_threads=threads), Z, Y, alpha)
    return solution.astype(Z.dtype, copy=False)


def _by_cholesky(K: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """K^-1 Y; K is overwritten. A K that is singular to rounding is a warning, as from ``scipy.linalg.solve``."""
    average = float((np.diagonal(K) / len(K)).sum())  # bounds the norm of a semidefinite K over n; n K may overflow
    try:
        factor = scipy.linalg.cho_factor(K.T, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(INDEFINITE) from None
    reciprocal, _ = scipy.linalg.lapack.dpocon(factor[0], average, uplo="L")
    reciprocal /= len(K)
    if not reciprocal >= EPS:  # NaN where the estimate itself overflows
        warn_caller(
            f"K + alpha I is singular to rounding (the reciprocal of its condition number is {reciprocal:.1g}), and "
            "what is learned from it may be far off; give a larger alpha",
            scipy.linalg.LinAlgWarning,
        )
    return scipy.linalg.cho_solve(factor, Y, check_finite=False)


def _iterate(product: ExactSummation, Z: np.ndarray, Y: np.ndarray, alpha: float, most_steps: int = 1000) -> np.ndarray:
    norms = np.linalg.norm(Y, axis=0)
    reached = solve_to_residual(
        lambda P: product.matmat(np.ascontiguousarray(P)) + alpha * P,
        Y,
        goal=RELATIVE_RESIDUAL * norms,
        most_steps=most_steps,
    )
    if not reached.definite:
        raise np.linalg.LinAlgError(INDEFINITE)
    # a residual that rounding leaves to any method, the factorisation among them: the trace bounds the norm of K
    trace = float(product.kernel.diagonal(Z).sum()) + len(Z) * alpha
    rounding = EPS * trace * np.linalg.norm(reached.solution, axis=0)
    if (reached.residuals <= np.maximum(RELATIVE_RESIDUAL * norms, rounding)).all():
        return reached.solution
    left = float((reached.residuals / np.maximum(norms, 1e-150)).max())
    raise NotConvergedError(
        f"the regression of {len(Y)} rows did not converge within {most_steps} products (residual {left:.1e} of the "
        "rows); a larger alpha helps, or a larger memory_limit, within which the matrix is factored"
    )
