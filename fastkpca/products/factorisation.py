"""True if a large symmetric matrix is positive definite: LAPACK's Cholesky factorisation."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack


def is_positive_definite(S: np.ndarray) -> bool:
    """True if S = L L' succeeds; S (n, n), float32 or float64, of which the lower triangle is read; overwritten by L.

    The errors are those of sums of n terms at most (``rounding.factorisation_error``).
    """
    by_columns = S.flags.f_contiguous
    # row by row S is its transpose to LAPACK: the lower triangle is the upper one there
    potrf = lapack.spotrf if S.dtype == np.float32 else lapack.dpotrf
    factor, failed = potrf(S if by_columns else S.T, lower=by_columns, clean=0, overwrite_a=1)
    return failed == 0 and bool(np.isfinite(factor.diagonal()).all())
