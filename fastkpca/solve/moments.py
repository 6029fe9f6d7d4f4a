"""From moments to components: eigenvectors of the centred second moment of the features.

With C = Phi' H Phi = W diag(lambda) W', the centred Gram matrix H Phi Phi' H has the same non-zero eigenvalues, and the
scores of all rows are H Phi W: nothing of size N x N is ever needed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base.lapack import largest_eigenpairs
from ..base.protocol import Moments, OperatorMoments
from .certificate import cluster_labels
from .lanczos import FORMED, LeadingPairs, SymmetricOperator, leading_pairs
from .nested import nested_pairs
from .task import SolverTarget

__all__ = ["entry_defect", "kernel_trace", "leading_axes", "principal_axes"]


def kernel_trace(moments: Moments) -> float:
    """tr K of the rows that were added up, not centred."""
    return moments.trace + moments.count * float(moments.mean @ moments.mean) + moments.residual_trace


def entry_defect(moments: Moments) -> float:
    """Defect of an entry of K, for all rows and not only those that the map was made from: its norm over n."""
    return moments.map.defect_norm(moments.count, kernel_trace(moments)) / moments.count


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
    return _lapack(C, c)


def leading_axes(
    moments: Moments,
    c: int | float | None,
    *,
    tol: float,
    rank: int,
    memory_limit: float | None = None,
    probabilistic: bool = True,
) -> tuple[np.ndarray, np.ndarray, LeadingPairs | None]:
    """Eigenvalues, axes, and for moments held as an operator the `LeadingPairs` with their certificate; else None.

    Parameters
    ----------
    moments : Moments
        One without ``dense()`` has ``operator()``.
    c : int, float or None
        As asked of kpca: a number, a fraction of the trace (residual included), or all.
    tol : float
        Width of an eigenvalue's interval over the largest, where it is not LAPACK's.
    rank : int
        Largest rank that the rows allow, n - 1 for n rows: no more components are computed of an operator.
    memory_limit : float, optional
        Bytes.
    probabilistic : bool
        Whether bounds that may fail will do.
    """
    count, fraction = (None, c) if isinstance(c, float) else (c, None)
    C = moments.dense()
    if C is not None:
        return (*_lapack(C, _one_more(count)), None)
    D = moments.map.n_features
    operator = moments.operator()
    assert operator is not None
    if moments.trace <= 0.0:  # by errors of the features: an iteration would find nothing but these
        return np.zeros(1), np.zeros((D, 1)), None
    if fraction is None and rank < D:
        count = max(1, rank if count is None else min(count, rank))
    if fraction is None and (count is None or 4 * count > D):
        if D > 2 * FORMED:
            raise ValueError(
                f"{'all' if count is None else count} components of {D} features held as an operator can't be computed "
                "one by one; ask for fewer, or take method='krylov' or 'dense'"
            )
        # forming it adds rounding errors of a few units of its norm to LAPACK's
        return (*_lapack(operator.form(), _one_more(count)), None)
    target = SolverTarget(10 if count is None else count, tol, fraction if count is None else None, probabilistic)
    pairs = _compressed_pairs(operator, target, memory_limit) if fraction is None else None
    if pairs is None and fraction is None and probabilistic:
        pairs = nested_pairs(operator, target)
    if pairs is None:
        symmetric = SymmetricOperator(
            operator.matmat, D, moments.trace, operator.norm, operator.product_error, operator.indefinite, operator.form
        )
        total = moments.trace + moments.residual_trace
        pairs = leading_pairs(symmetric, target, total=total, memory_limit=memory_limit)
    return pairs.values, pairs.vectors, pairs


def _compressed_pairs(
    moments: OperatorMoments, target: SolverTarget, memory_limit: float | None
) -> LeadingPairs | None:
    """Those of the moment in few directions; None where it has too many, or too much lies in the others, or they are
    too inaccurate."""
    small = moments.compressed()
    if small is None or 4 * target.c > small.size:
        return None
    A = small.matrix
    norm = moments.norm if A is None else float(np.linalg.norm(A))
    unknown = small.left_out + 2.0 * small.error
    if not unknown <= target.tol * norm:  # nor of the largest eigenvalue, which is no larger
        return None
    operator = SymmetricOperator(
        small.matmat,
        small.size,
        moments.trace,  # of all directions: no smaller than that of some, of the semidefinite matrix nearby
        norm * (1.0 + 1e-12),
        small.product_error,
        small.error + moments.indefinite,
        None if A is None else A.copy,
        dear=A is None,
    )
    narrower = replace(target, tol=(0.5 if A is None else 0.25) * target.tol)
    pairs = leading_pairs(operator, narrower, memory_limit=memory_limit)
    found = pairs.certificate
    bounds = found.eigenvalue_bounds + np.array([-small.error, small.left_out + small.error])
    if not np.ptp(bounds[: target.c], axis=1).max() <= target.tol * pairs.values[0]:
        return None
    # |C21|^2 <= |C11| |C22| for a semidefinite C
    residual = pairs.residual + float(np.sqrt(bounds[0, 1] * small.left_out)) + moments.indefinite + small.error
    certificate = replace(
        found, eigenvalue_bounds=bounds, clusters=cluster_labels(bounds), rounding=found.rounding + small.error
    )
    return replace(pairs, vectors=small.lift(pairs.vectors), certificate=certificate, residual=residual)


def _one_more(count: int | None) -> int | None:
    """One more than asked for: it gives the gap behind the last."""
    return None if count is None else count + 1


def _lapack(C: np.ndarray, count: int | None) -> tuple[np.ndarray, np.ndarray]:
    eigenvalues, axes = largest_eigenpairs(C, count)
    return eigenvalues.copy(), np.ascontiguousarray(axes)
