"""From moments to components: eigenvectors of the centred second moment of the features.

With C = Phi' H Phi = W diag(lambda) W', the centred Gram matrix H Phi Phi' H has the same non-zero eigenvalues, and the
scores of all rows are H Phi W: nothing of size N x N is ever needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..base.lapack import largest_eigenpairs
from ..base.protocol import Moments, OperatorMoments
from ..base.rounding import UNIT
from .basis import Basis
from .certificate import cluster_labels
from .lanczos import FORMED, LeadingPairs, SymmetricOperator, leading_pairs
from .nested import nested_pairs, pairs_above
from .task import SolverTarget

__all__ = ["entry_defect", "kernel_trace", "leading_axes", "principal_axes"]

TWO_LEVELS = 3000
"""Directions of a moment from which on a search with coarse products comes first."""
COARSE = 1e-4
"""Error of these products over the norm, at most; and not much more than the root of tol, since eigenvalues err by its
square."""
BESIDE = 2
"""Eigenvalues beyond the wanted ones, among which that search looks for a gap."""


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
    failure: float = 0.0,
    rng: np.random.Generator | int = 0,
    n_threads: int = 1,
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
    failure : float
        Probability with which any of the bounds that rest on random numbers may fail; 0.0: there are to be none.
    rng : numpy.random.Generator or int
    n_threads : int
        Of moments held as an operator; results do not depend on it.
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
    # up to four searches follow one another
    target = SolverTarget(10 if count is None else count, tol, fraction if count is None else None, failure / 4.0)
    options = dict[str, Any](memory_limit=memory_limit, rng=np.random.default_rng(rng), n_threads=n_threads)
    pairs = _compressed_pairs(operator, target, options) if fraction is None else None
    if pairs is None and fraction is None and failure:
        pairs = nested_pairs(operator, target, options["rng"])
    if pairs is None:
        symmetric = SymmetricOperator(
            operator.matmat, D, moments.trace, operator.norm, operator.product_error, operator.indefinite, operator.form
        )
        total = moments.trace + moments.residual_trace
        pairs = leading_pairs(symmetric, target, total=total, **options)
    if pairs.certificate.failure_probability:  # any of them may have been the one that failed
        pairs = replace(pairs, certificate=replace(pairs.certificate, failure_probability=failure))
    return pairs.values, pairs.vectors, pairs


def _compressed_pairs(moments: OperatorMoments, target: SolverTarget, options: dict[str, Any]) -> LeadingPairs | None:
    """Those of the moment in few directions; None where it has too many, or too much lies in the others, or they are
    too inaccurate."""
    small = moments.compressed()
    if small is None or 4 * target.c > small.size:
        return None
    A = small.matrix
    norm = moments.norm if A is None else float(np.linalg.norm(A))
    two_levels = A is None and small.size >= TWO_LEVELS
    most = norm * (min(COARSE, 0.2 * float(np.sqrt(target.tol))) if two_levels else 0.05 * target.tol)
    n_threads = options["n_threads"]
    product = small.product(most, n_threads)
    unknown = small.left_out + (0.0 if two_levels else 2.0 * product.error)
    if not unknown <= target.tol * norm:  # nor of the largest eigenvalue, which is no larger
        return None
    narrower = replace(target, tol=(0.5 if A is None else 0.25) * target.tol)
    pairs = None
    if two_levels:
        wider = replace(target, c=target.c + BESIDE, tol=0.25 * target.tol)
        nearby = leading_pairs(_operator_of(small, product, moments, norm), wider, **options)
        coarse, product = product, small.product(0.1 * target.tol * nearby.values[0], n_threads)
        pairs = _from_nearby(nearby, coarse, product, narrower, norm, n_threads)
    if pairs is None:
        pairs = leading_pairs(_operator_of(small, product, moments, norm), narrower, **options)
    found, error = pairs.certificate, product.error
    bounds = found.eigenvalue_bounds + np.array([-error, small.left_out + error])
    if not np.ptp(bounds[: target.c], axis=1).max() <= target.tol * pairs.values[0]:
        return None
    # |C21|^2 <= |C11| |C22| for a semidefinite C
    residual = pairs.residual + float(np.sqrt(bounds[0, 1] * small.left_out)) + moments.indefinite + error
    certificate = replace(
        found, eigenvalue_bounds=bounds, clusters=cluster_labels(bounds), rounding=found.rounding + error
    )
    return replace(pairs, vectors=small.lift(pairs.vectors), certificate=certificate, residual=residual)


def _operator_of(small: Any, product: Any, moments: OperatorMoments, norm: float) -> SymmetricOperator:
    return SymmetricOperator(
        product.matmat,
        small.size,
        moments.trace,  # of all directions: no smaller than that of some, of the semidefinite matrix nearby
        float(np.sqrt(norm**2 + product.growth)) * (1.0 + 1e-12),
        product.product_error,
        product.error + moments.indefinite,
        product.form,
        dear=product.form is None,
    )


def _from_nearby(
    found: LeadingPairs, coarse: Any, product: Any, target: SolverTarget, norm: float, n_threads: int
) -> LeadingPairs | None:
    """From those of a matrix nearby, by a product or two with its vectors; None where that is not accurate enough.

    The number of eigenvalues of the one matrix above a bound is known from the other: where its spectrum has a gap.
    """
    theta, ends, c = found.values, found.certificate.eigenvalue_bounds, target.c
    if len(ends) <= c + BESIDE:
        return None
    gaps = theta[c - 1 : c + BESIDE] - theta[c : c + BESIDE + 1]
    p = c + int(np.argmax(gaps / (1.0 + 0.1 * np.arange(len(gaps)))))
    basis = Basis(len(found.vectors), np.random.default_rng(0), keeps_images=True, n_threads=n_threads)
    beta = float(ends[p, 1]) + coarse.error + product.error
    # a rotation of the images, once for each round, is a product of at most 2 (p + 1) terms
    error = float(np.sqrt(2.0 * (p + 1))) * product.product_error + 64.0 * (p + 1) * UNIT * norm
    columns, X = found.columns, found.vectors[:, : p + 1]
    for steps in (1, 2):
        X = basis.orthonormal(X)
        basis.append(X, product.matmat(X))
        columns += X.shape[1]
        basis.restart(*basis.ritz(p + 1))
        pairs = pairs_above(basis, p, target, beta, found.certificate.failure_probability, error)
        if pairs is not None:
            return replace(pairs, steps=found.steps + steps, columns=columns)
        X = basis.residuals(*basis.ritz())
    return None


def _one_more(count: int | None) -> int | None:
    """One more than asked for: it gives the gap behind the last."""
    return None if count is None else count + 1


def _lapack(C: np.ndarray, count: int | None) -> tuple[np.ndarray, np.ndarray]:
    eigenvalues, axes = largest_eigenpairs(C, count)
    return eigenvalues.copy(), np.ascontiguousarray(axes)
