"""From moments to components: eigenvectors of the centred second moment of the features.

With C = Phi' H Phi = W diag(lambda) W', the centred Gram matrix H Phi Phi' H has the same non-zero eigenvalues, and the
scores of all rows are H Phi W: nothing of size N x N is ever needed.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .protocol import Moments

__all__ = ["largest_eigenpairs", "principal_axes"]


def principal_axes(moments: Moments, c: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The c largest eigenvalues of the centred second moment, descending, and their vectors as columns.

    Parameters
    ----------
    moments : Moments
    c : int or None
        None: all of them.

    Returns
    -------
    eigenvalues : ndarray (c,)
    axes : ndarray (D, c)
    """
    C = moments.dense()
    if C is None:
        raise NotImplementedError("moments that are held as an operator need an iterative solver")
    eigenvalues, axes = largest_eigenpairs(C, c)
    return eigenvalues.copy(), np.ascontiguousarray(axes)


def largest_eigenpairs(A: np.ndarray, c: int | None) -> tuple[np.ndarray, np.ndarray]:
    """LAPACK's c largest eigenvalues of a symmetric matrix, descending, and their vectors as columns.

    Parameters
    ----------
    A : ndarray (n, n)
        Both triangles are read, and overwritten.
    c : int or None
        None: all of them.
    """
    n = len(A)
    if c is not None and c < n:
        diagonal = A.diagonal().copy()
        try:
            values, vectors = scipy.linalg.eigh(
                A, subset_by_index=[n - c, n - 1], driver="evr", overwrite_a=True, check_finite=False
            )
        except np.linalg.LinAlgError:
            values = np.empty(0)
        if len(values) == c:
            return values[::-1], vectors[:, ::-1]
        # asked for a few of many equal eigenvalues (a matrix near the identity), bisection returns fewer, or none;
        # the upper triangle is as it was
        A[np.diag_indices(n)] = diagonal
    values, vectors = scipy.linalg.eigh(A, lower=False, overwrite_a=True, check_finite=False)
    kept = slice(None, -(n if c is None else min(c, n)) - 1, -1)
    return values[kept], vectors[:, kept]
