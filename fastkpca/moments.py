"""From moments to components: eigenvectors of the centred second moment of the features.

With C = Phi' H Phi = W diag(lambda) W', the centred Gram matrix H Phi Phi' H has the same non-zero eigenvalues, and the
scores of all rows are H Phi W: nothing of size N x N is ever needed.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .protocol import Moments

__all__ = ["principal_axes"]


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
    D = len(C)
    if c is None or c >= D:
        eigenvalues, axes = scipy.linalg.eigh(C, overwrite_a=True, check_finite=False)
    else:
        eigenvalues, axes = scipy.linalg.eigh(
            C, subset_by_index=[D - c, D - 1], driver="evr", overwrite_a=True, check_finite=False
        )
    return eigenvalues[::-1].copy(), np.ascontiguousarray(axes[:, ::-1])
