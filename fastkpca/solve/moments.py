"""Components from moments: eigenvectors of the centred second moment of the features.

With C = Phi' H Phi = W diag(lambda) W', the centred Gram matrix H Phi Phi' H has the same non-zero eigenvalues, and the
scores of all rows are H Phi W: nothing of size N x N is ever needed.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.lapack import largest_eigenpairs
from ..base.process_memory import DEFAULT_MEMORY
from ..base.protocol import Moments, OperatorMoments
from ..maps.toeplitz import MAX_DENSE_MODES, Compressed
from .basis import Basis, Space
from .certificate import Eigenpairs, cluster_labels, dense_certificate
from .certifier import Certifier, Proof, Proofs
from .costs import MOST_COLUMNS, NARROW_COLUMNS, Expenses
from .eigen import grow
from .operators import MomentOperator
from .proofs import Exploration, Sums
from .task import SolverBudget, SolverTarget

_logger = logging.getLogger("fastkpca")

MAX_FORMED_ORDER = 6000
"""Order of a second moment that is formed, for LAPACK to find all of its eigenvalues."""


def kernel_trace(moments: Moments) -> float:
    """tr K of the rows that were added up, not centred."""
    return moments.trace + moments.count * float(moments.mean @ moments.mean) + moments.residual_trace


def entry_defect(moments: Moments) -> float:
    """Defect of an entry of K, for all rows and not only those that the map was made from: its norm over n."""
    return moments.map.defect_norm(moments.count, kernel_trace(moments)) / moments.count


def leading_axes(
    moments: Moments,
    c: int | float | None,
    *,
    tol: float,
    rank: int,
    memory_limit: float | None = None,
    seconds: float = np.inf,
    product_seconds: float = 0.0,
    failure: float = 0.0,
    more: int = 0,
    rng: np.random.Generator | int = 0,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray, Eigenpairs | None]:
    """Eigenvalues, axes, and for moments held as an operator the `Eigenpairs` with their certificate; else None.

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
    seconds, product_seconds : float
        Predicted seconds that the eigenpairs of moments held as an operator may cost, and of a product with one column.
    failure : float
        Probability with which any of the bounds that rest on random numbers may fail; 0.0: there are to be none.
    more : int
        Pairs beyond those asked for and the next, of a moment that is not held as an operator.
    rng : numpy.random.Generator or int
        Random numbers for the first block, where moments are held as an operator.
    n_threads : int
        Threads of moments held as an operator; results do not depend on it.

    Raises
    ------
    BudgetExceededError
        The eigenpairs would cost more than ``seconds``.
    """
    count, fraction = (None, c) if isinstance(c, float) else (c, None)
    C = moments.dense()
    if C is not None:
        return (*_lapack(C, None if count is None else count + 1 + more), None)
    D = moments.map.n_features
    operator = moments.operator()
    assert operator is not None
    if moments.trace <= 0.0:  # by errors of the features: an iteration would find nothing but these
        return np.zeros(1), np.zeros((D, 1)), None
    if fraction is None and rank < D:
        count = max(1, rank if count is None else min(count, rank))
    if fraction is None and (count is None or 4 * count > D):
        if D > MAX_FORMED_ORDER:
            raise ValueError(
                f"{'all' if count is None else count} components of {D} features held as an operator can't be computed "
                "one by one; ask for fewer, or take method='krylov' or 'dense'"
            )
        # forming it adds rounding errors of a few units of its norm to LAPACK's; one more gives the gap behind the last
        return *_lapack(operator.form(), None if count is None else count + 1), None
    # up to two searches follow one another
    target = SolverTarget(10 if count is None else count, tol, fraction if count is None else None, 0.5 * failure)
    limits: dict[str, Any] = {
        "memory_limit": memory_limit,
        "seconds": seconds,
        "product_seconds": product_seconds,
        "rng": rng,
    }
    pairs = _compressed_pairs(operator, target, rank, n_threads, **limits) if fraction is None else None
    if pairs is None:
        A = MomentOperator(
            lambda X: operator.matmat(X, n_threads),
            D,
            moments.trace,
            operator.norm,
            operator.product_error,
            operator.indefinite,
            moments.residual_trace,
            n_threads,
        )
        pairs = leading_pairs(A, target, rank, **limits)
    if pairs.certificate.failure_probability:  # any of them may have been the one that failed
        pairs = replace(pairs, certificate=replace(pairs.certificate, failure_probability=failure))
    return pairs.values, pairs.vectors, pairs


def _compressed_pairs(
    moments: OperatorMoments,
    target: SolverTarget,
    rank: int,
    n_threads: int,
    *,
    product_seconds: float,
    **limits: Any,
) -> Eigenpairs | None:
    """Leading pairs of the moment compressed to few directions; None where these are too many or too inaccurate, or the
    other directions have too much of the trace."""
    small, norm = moments.compressed(n_threads), moments.norm
    if small is None or target.c >= small.size or not small.left_out + 2.0 * small.error <= target.tol * norm:
        return None  # (what is above tol times the norm is above that of the largest eigenvalue)
    if small.size <= MAX_DENSE_MODES:
        pairs = _pairs_of_formed(small, target.c + 1)
    elif 4 * target.c > small.size:
        return None
    else:
        operator = MomentOperator(
            small.product,
            small.size,
            moments.trace,  # of all directions: no smaller than that of some, of the semidefinite matrix nearby
            norm + small.error,
            small.product_error,
            moments.indefinite + small.error,
            n_threads=n_threads,
        )
        half = replace(target, tol=0.5 * target.tol)
        pairs = leading_pairs(operator, half, rank, **limits)
    bounds = pairs.certificate.eigenvalue_bounds + np.array([-small.error, small.error + small.left_out])
    if not np.ptp(bounds[: target.c], axis=1).max() <= target.tol * pairs.values[0]:
        return None
    # |C21|^2 <= |C11| |C22| for a semidefinite C
    residual = pairs.residual + float(np.sqrt(bounds[0, 1] * small.left_out)) + small.error + moments.indefinite
    certificate = replace(pairs.certificate, eigenvalue_bounds=bounds, clusters=cluster_labels(bounds))
    return replace(pairs, vectors=small.lift(pairs.vectors), certificate=certificate, residual=residual)


def _pairs_of_formed(small: Compressed, count: int) -> Eigenpairs:
    """LAPACK's, of a moment in few directions; |error of the matrix|_F <= sqrt(size) ``product_error``."""
    C = small.product(np.eye(small.size))
    C = (C + C.T) / 2
    each, norm = small.product_error / float(np.sqrt(small.size)), float(np.linalg.norm(C))
    values, vectors = _lapack(C, count + 1)  # overwrites C
    found = dense_certificate(values, count, n=small.size, norm=norm, entry_error=each)
    return Eigenpairs(values[:count], vectors[:, :count], found, residual=found.rounding)


def leading_pairs(
    A: MomentOperator,
    target: SolverTarget,
    rank: int | None = None,
    *,
    memory_limit: float | None = None,
    seconds: float = np.inf,
    product_seconds: float = 0.0,
    rng: np.random.Generator | int = 0,
) -> Eigenpairs:
    """The largest eigenvalues of a second moment held as an operator, intervals at most tol * theta_1 wide.

    One pair more than asked for gives the gap behind the last.

    Parameters
    ----------
    A : MomentOperator
    target : SolverTarget
    rank : int, optional
        Bound on the rank of the moment. A space of two blocks more has all of it, and what further columns add is
        rounding.
    memory_limit : float, optional
        Bytes.
    seconds, product_seconds : float
        As `leading_axes` has them.
    rng : numpy.random.Generator or int
    """
    rng, n = np.random.default_rng(rng), A.n
    memory = DEFAULT_MEMORY if memory_limit is None else memory_limit
    block = narrow_block(n)
    columns = min(n, max(min(MOST_COLUMNS, int(0.5 * memory / (8.0 * n))), target.c + 4 * block))
    columns = columns if rank is None else min(columns, rank + 2 * block)
    space = Space(Basis(n, rng, reserve=columns, n_threads=A.n_threads), block, block, columns)
    budget = SolverBudget(max(columns // block, 1), None, block * product_seconds, seconds)
    expenses = Expenses(budget, None, has_pace=False)
    X = rng.standard_normal((n, block))
    proofs: list[Proof] = [Sums()]
    if target.probabilistic:
        proofs.append(Exploration(target.failure, n, expenses.budget.passes))
    monitor = Certifier(A, space, target, expenses, Proofs(proofs))
    grow(A, X, space, monitor, expenses)
    _logger.info("    eigenpairs by %d products with the second moment", expenses.passes)
    kept = min(monitor.c + 1, space.basis.size)
    Y = monitor.ritz.Y[:, :kept]
    square = abs(float(np.trace(monitor.block.residual_gram[: monitor.c, : monitor.c])))  # rounding may take it below 0
    return Eigenpairs(
        monitor.ritz.theta[:kept].copy(),
        np.ascontiguousarray(space.basis.vectors(Y)),
        monitor.certificate_of(kept),
        residual=float(np.sqrt(square) + np.sqrt(monitor.c) * monitor.block.product_error),
    )


def narrow_block(n: int) -> int:
    """Columns of a block of an operator of order n: a product is cheap compared to the algebra on it."""
    return min(NARROW_COLUMNS, n)


def _lapack(C: np.ndarray, count: int | None) -> tuple[np.ndarray, np.ndarray]:
    eigenvalues, axes = largest_eigenpairs(C, count)
    return eigenvalues.copy(), np.ascontiguousarray(axes)
