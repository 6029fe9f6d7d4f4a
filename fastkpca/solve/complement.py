"""Upper bounds on the eigenvalues outside of a basis; the smallest is used.

A is symmetric, V has m nearly orthonormal columns, P = I - V V', and each function here returns a `Bound`: mu at least
the largest eigenvalue of P A P, its method, and its failure probability. ``certificate.ritz_certificate`` makes
intervals of any of them; ``proofs`` predicts the cost of each.

``trace_bound``, ``frobenius_bound``   from the sum and the sum of squares of the eigenvalues of P A P
``gap_bound``                          from a count of the eigenvalues above beta
``exploration_bound``                  from randomly started Lanczos on P A P; may fail with a given probability
"""

from __future__ import annotations

import numpy as np

from ..base.rounding import UNIT, factorisation_error, unit_roundoff
from ..products.factorisation import is_positive_definite
from .basis import Basis
from .certificate import NO_BOUND, SAYS_NOTHING, Bound, MatrixInfo, RitzBlock

MU_FRACTION = 0.9
"""Largest bound on the complement that a proof aims at, over the last wanted eigenvalue. A quarter of it takes 1.5
times as long (median of the fits that change; ``benchmarks/speed/constants.py``)."""
GAP_FRACTION = 0.01
"""Least width of a gap, and the residual norm at which a Ritz value is taken as located, over the last wanted
eigenvalue. An eigenvalue in the gap has to be found, or proved absent."""


def deterministic_bound(ritz: RitzBlock, matrix: MatrixInfo) -> Bound:
    """The smaller of `trace_bound` and `frobenius_bound`."""
    return min(trace_bound(ritz, matrix), frobenius_bound(ritz, matrix), key=lambda bound: bound.mu)


def gap_behind(theta: np.ndarray, squares: np.ndarray, c: int) -> tuple[float, int, float]:
    """The gap with the narrowest predicted intervals; ``squares`` are the squared residual norms of all Ritz vectors.

    Returns
    -------
    width : float
        Predicted width of the intervals, once the bound is proved; infinite where there is no gap.
    columns : int
        Number of Ritz values above the gap.
    bound : float
        Bound inside the gap, for all others.
    """
    last = float(theta[c - 1])
    p = np.arange(min(c + 1, len(theta) - 1), len(theta))  # one more: a gap behind the last bounds its angle
    p = p[(theta[p] <= (1.0 - GAP_FRACTION) * last) & (p >= c)]
    if len(p) and last > 0.0:
        bounds = 0.5 * (last + np.maximum(theta[p], 0.0))
        # estimated distance of the largest eigenvalue of P A P above its Ritz value
        above = np.minimum(squares[p] / (GAP_FRACTION * last), np.sqrt(np.maximum(squares[p], 0.0)))
        widths = np.where(theta[p] + above < bounds, 2.0 * np.cumsum(squares)[p - 1] / (last - theta[p]), np.inf)
        best = int(np.argmin(widths))
        if widths[best] < np.inf:
            return float(widths[best]), int(p[best]), float(bounds[best])
    return np.inf, 0, np.inf


def failure_of_attempt(total: float, attempt: int) -> float:
    """Share of the failure probability ``total`` for attempt 0, 1, ...; the shares of all attempts sum to at most
    ``total``. An attempt follows because the ones before it proved too little, so any of them may be the one that
    fails."""
    return total * 0.5 ** (attempt + 1)


def trace_bound(ritz: RitzBlock, matrix: MatrixInfo) -> Bound:
    """Bound tr A - tr V'AV on the largest eigenvalue of P A P for positive semidefinite A, with all rounding.

    Invalid for an indefinite matrix.
    """
    errors = ritz.errors
    if matrix.trace is None or errors is None:
        return NO_BOUND
    m, theta = len(ritz.theta), ritz.theta
    # |tr X| <= sqrt(m) |X|_F
    error = m * errors.cross + np.sqrt(m) * errors.products + 8 * m * UNIT * float(np.max(np.abs(theta)))
    trace, of_trace = matrix.trace
    return Bound(max(trace - float(theta.sum()), 0.0) + of_trace + error, "trace")


def frobenius_bound(ritz: RitzBlock, matrix: MatrixInfo) -> Bound:
    """Bound on the largest |eigenvalue| of P A P for symmetric A, with all rounding: |P A P|_F^2 = |A|_F^2 - |T|_F^2 -
    2 |R|_F^2.

    The difference cancels twice: a few u |A|_F^2 are added to it.
    """
    errors, norm = ritz.errors, matrix.norm
    if norm is None or errors is None or not norm < SAYS_NOTHING:
        return NO_BOUND
    root = np.sqrt(len(ritz.theta))
    # lower bounds on |T|_F and |R|_F
    error = errors.products + root * (errors.compression - errors.products)
    ritz_norm = max(float(np.linalg.norm(ritz.theta)) - error, 0.0)
    lost = errors.cross + root * errors.residual
    residual_norm = max(ritz.least_residual / np.sqrt(1 + errors.orthogonality_error) - lost, 0.0)
    square = max(norm**2 - ritz_norm**2 - 2.0 * residual_norm**2, 0.0)
    return Bound(float(np.sqrt(square + 16.0 * UNIT * norm * norm)), "frobenius")


def is_below(S: np.ndarray, wanted: float, error: float = 0.0) -> bool:
    """True if no eigenvalue of -S is above ``wanted``, as a Cholesky factorisation of wanted I + S proves.

    The backward error of the factorisation (``factorisation_error``) is subtracted from ``wanted`` first.

    Parameters
    ----------
    S : ndarray (n, n), float32 or float64
        Only the lower triangle is read; overwritten. In float32 half the memory and time.
    wanted : float
    error : float
        Bound on the norm of the error of S.
    """
    largest = float(np.abs(S.diagonal()).max())
    less = wanted - factorisation_error(len(S), unit_roundoff(S.dtype)) * (wanted + largest) - error
    S.flat[:: len(S) + 1] += S.dtype.type(less)
    return less > 0.0 and is_positive_definite(S)


def largest_eigenvalue_bound(S: np.ndarray) -> float:
    """A proved upper bound, within a few percent, on the largest eigenvalue of a symmetric matrix; at least 0.

    For large matrices an estimate from a block Krylov space is proved by a Cholesky factorisation (`is_below`), which
    costs a tenth of all eigenvalues.
    """
    n = len(S)
    if n == 0:
        return 0.0
    u = unit_roundoff(S.dtype)
    with np.errstate(over="ignore"):
        scale = float(np.linalg.norm(S)) * (1.0 + n * (u - UNIT))
    if not np.isfinite(scale):
        return np.inf
    if n <= 128:
        return max(float(np.linalg.eigvalsh(S)[-1]), 0.0) + 4.0 * (n + 8) * u * scale
    # the estimate needs no proof: the factorisation is one
    t = 1.03 * max(_krylov_estimate(S), 0.0) + 9.0 * factorisation_error(n, u) * float(np.abs(S.diagonal()).max())
    while t < scale:
        if is_below(-S, t):
            return t
        t *= 1.04
    return scale * (1 + n * UNIT)


def _krylov_estimate(S: np.ndarray, columns: int = 8, steps: int = 6) -> float:
    """Estimate from below of the largest eigenvalue of a symmetric matrix: the Ritz value on a small block Krylov
    space."""
    basis = Basis(len(S), np.random.default_rng(0), reserve=columns * (steps + 1))
    X = basis.orthonormal(basis.rng.standard_normal((len(S), columns)))
    for _ in range(steps + 1):
        basis.append(X, (S @ X.astype(S.dtype)).astype(np.float64))
        X = basis.next_block(None, columns)
    return basis.largest_beyond(0)


def lanczos_failure_epsilon(n: int, steps: int, starts: int, probability: float) -> float:
    """eps with Pr[lambda_max - theta > eps (lambda_max - lambda_min)] <= probability; 1 where there is none below.

    J. Kuczynski and H. Wozniakowski, SIAM J. Matrix Anal. Appl. 13 (1992), theorem 4.2:
    1.648 sqrt(n) exp(-sqrt(eps) (2 k - 1)) after k steps from a uniformly distributed start; ``starts`` independent
    ones fail together with its power.
    """
    if steps < 1 or starts < 1:
        return 1.0
    root = (np.log(1.648 * np.sqrt(n)) + np.log(1.0 / probability) / starts) / (2 * steps - 1)
    return float(min(root * root, 1.0)) if root > 0 else 0.0


def lanczos_steps(n: int, starts: int, probability: float, eps: float) -> float:
    """Number of steps (not rounded) at which ``lanczos_failure_epsilon`` is eps; infinite unless eps and probability
    are above 0."""
    if not (eps > 0.0 and probability > 0.0):
        return np.inf
    root = np.log(1.648 * np.sqrt(n)) + np.log(1.0 / probability) / starts
    return float(0.5 + 0.5 * max(root, 0.0) / np.sqrt(eps))


def exploration_bound(
    largest: float,
    *,
    order: int,
    steps: int,
    starts: int,
    lowest: float,
    stops: int,
    failure: float,
) -> Bound:
    """Bound from randomly started Lanczos on P A P, after ``steps`` steps, where it may stop after any of ``stops``
    steps.

    Solves lambda - theta <= eps (lambda - lambda_min) for lambda; infinite where eps >= 1.

    Parameters
    ----------
    largest : float
        Largest Ritz value of the explored complement, its error added.
    order : int
        Dimension of the complement.
    steps, starts : int
        Block steps so far, and columns of the random block.
    lowest : float
        Lower bound on the eigenvalues of P A P.
    stops : int
        Stopping times that share the failure probability.
    """
    eps = lanczos_failure_epsilon(order, steps, starts, failure / stops)
    mu = (largest - eps * min(lowest, 0.0)) / (1.0 - eps) if eps < 1.0 else np.inf
    return Bound(mu, "lanczos", failure)


def gap_bound(beta: float, residual: float, last: float, failure: float) -> Bound:
    """Bound on P A P where at most p eigenvalues of A exceed beta, and the p Ritz values of V all do.

    Inertia of A - beta I and of its Schur complement: P A P <= beta + |R|^2 / (theta_p - beta).

    Parameters
    ----------
    beta : float
        Holds with probability 1 - ``failure``.
    residual : float
        Upper bound on |R|_2.
    last : float
        Lower bound on theta_p, above beta.
    """
    return Bound(beta + 1.001 * residual**2 / (last - beta), "gap", failure)
