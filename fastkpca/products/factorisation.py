"""Whether a large symmetric matrix is positive definite: LAPACK's Cholesky factorisation in float32."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

__all__ = ["is_positive_definite"]


def is_positive_definite(S: np.ndarray) -> bool:
    """Whether S = L L' succeeds; S (n, n) float32, of which the lower triangle is read, and overwritten by L.

    The errors are those of sums of n terms at most (``rounding.factorisation_error``).
    """
    by_columns = S.flags.f_contiguous
    # row by row S is its transpose to LAPACK: the lower triangle is the upper one there
    factor, failed = lapack.spotrf(S if by_columns else S.T, lower=by_columns, clean=0, overwrite_a=1)
    return failed == 0 and bool(np.isfinite(factor.diagonal()).all())
