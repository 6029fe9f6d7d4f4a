"""Upper bounds on the eigenvalues that a basis has not found; the best of them is taken.

A is symmetric, V has m nearly orthonormal columns, P = I - V V', and each function here returns a `Bound`: mu at least
the largest eigenvalue of P A P, how it was found, and the probability with which it fails.
``certificate.ritz_certificate`` makes intervals of any of them, ``proofs`` says when each is worth its price.

``trace_bound``, ``frobenius_bound``   from the sum and the sum of squares of the eigenvalues that the basis leaves over
``formed_bound``                       from P A P itself, by a Cholesky factorisation
``gap_bound``                          from a count of the eigenvalues above beta
``exploration_bound``                  from randomly started Lanczos on P A P: with a probability
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import scipy.linalg

from ..base.rounding import UNIT, factorisation_error, unit_roundoff
from .certificate import NO_BOUND, SAYS_NOTHING, Bound, MatrixInfo, RitzBlock, RitzErrors

__all__ = [
    "best_bound",
    "deterministic_bound",
    "exploration_bound",
    "failure_of_attempt",
    "formed_bound",
    "frobenius_bound",
    "gap_bound",
    "lanczos_failure_epsilon",
    "lanczos_steps",
    "largest_eigenvalue_bound",
    "mu_frobenius",
    "mu_lanczos",
    "mu_trace",
    "trace_bound",
]


def best_bound(bounds: Iterable[Bound]) -> Bound:
    """The smallest of several bounds. One that may fail is chosen by what the others are: any may be the one that does,
    so their probabilities add up."""
    candidates = list(bounds)
    best = min(candidates, key=lambda bound: bound.mu, default=NO_BOUND)
    if best.failure_probability == 0.0:
        return best
    return replace(best, failure_probability=sum(bound.failure_probability for bound in candidates))


def deterministic_bound(ritz: RitzBlock, matrix: MatrixInfo, others: Iterable[Bound] = ()) -> Bound:
    """The best bound that trace and norm of the matrix give, and of ``others``."""
    return best_bound([*others, trace_bound(ritz, matrix), frobenius_bound(ritz, matrix)])


def failure_of_attempt(total: float, attempt: int) -> float:
    """Share of a probability for attempt 0, 1, ...: each is made because those before it proved too little, so any of
    them may be the one that fails. All of them together stay below ``total``."""
    return total * 0.5 ** (attempt + 1)


def mu_trace(trace: float, ritz_sum: float, error: float = 0.0) -> float:
    """Largest eigenvalue of P A P for positive semidefinite A: at most its trace, tr A - tr V'AV.

    ``error`` is a bound on the rounding of the difference. Never for an indefinite matrix.
    """
    return max(trace - ritz_sum, 0.0) + error


def trace_bound(ritz: RitzBlock, matrix: MatrixInfo) -> Bound:
    """`mu_trace` of a semidefinite matrix whose trace is known, with all rounding."""
    errors = ritz.errors
    if matrix.trace is None or errors is None:
        return NO_BOUND
    return Bound(_trace_left(ritz, errors, matrix.trace), "trace")


def _trace_left(ritz: RitzBlock, errors: RitzErrors, trace: tuple[float, float]) -> float:
    m, theta, delta = len(ritz.theta), ritz.theta, errors.orthogonality_error
    size = float(np.max(np.abs(theta)))
    # |tr X| <= sqrt(m) |X|_F
    products = np.sqrt(m) * ritz.product_error * (1 + delta) / (1 - delta)
    error = m * errors.cross + products + 8 * m * UNIT * size
    return mu_trace(trace[0], float(theta.sum()), trace[1] + error)


def mu_frobenius(norm: float, ritz_norm: float, residual_norm: float, slack: float) -> float:
    """Largest |eigenvalue| of P A P for symmetric A: |P A P|_F^2 = |A|_F^2 - |T|_F^2 - 2 |R|_F^2.

    ``norm`` is an upper bound on |A|_F, ``ritz_norm`` and ``residual_norm`` are lower bounds on |T|_F and |R|_F, and
    ``slack`` bounds the rounding of the difference (a few u |A|_F^2), which cancels twice.
    """
    if not norm < SAYS_NOTHING:
        return np.inf
    return float(np.sqrt(max(norm**2 - ritz_norm**2 - 2.0 * residual_norm**2, 0.0) + slack))


def frobenius_bound(ritz: RitzBlock, matrix: MatrixInfo) -> Bound:
    """`mu_frobenius` of a matrix with a bound on its norm, with all rounding."""
    errors, norm = ritz.errors, matrix.norm
    if norm is None or errors is None:
        return NO_BOUND
    ritz_norm, residual_norm = _least_norms(ritz, errors)
    return Bound(mu_frobenius(norm, ritz_norm, residual_norm, 16.0 * UNIT * norm * norm), "frobenius")


def _least_norms(ritz: RitzBlock, errors: RitzErrors) -> tuple[float, float]:
    """Lower bounds on |T|_F and |R|_F."""
    root = np.sqrt(len(ritz.theta))
    ritz_norm = max(float(np.linalg.norm(ritz.theta)) - root * errors.compression, 0.0)
    lost = errors.cross + root * errors.residual
    return ritz_norm, max(errors.residual_norm / np.sqrt(1 + errors.orthogonality_error) - lost, 0.0)


def largest_eigenvalue_bound(S: np.ndarray) -> float:
    """A proved upper bound, within a few percent, on the largest eigenvalue of a symmetric matrix; at least 0.

    For large matrices an estimate from a block Krylov space is proved by a Cholesky factorisation of t I - S (success
    proves S <= t I up to its backward error, ``factorisation_error``), which costs a tenth of all eigenvalues. The unit
    roundoff is that of the type of S: float32 takes half the memory and time.
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
    rounding = factorisation_error(n, u)
    # the estimate needs no proof: the factorisation is one
    t = 1.03 * max(_krylov_estimate(S), 0.0) + 8.0 * rounding * float(np.abs(S.diagonal()).max())
    while t < scale:
        A = -S
        A.flat[:: n + 1] += t
        try:
            # the transpose of a symmetric matrix is in LAPACK's order: no copy
            scipy.linalg.cholesky(A.T, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            t *= 1.04
        else:
            return t + rounding * (t + float(np.abs(S.diagonal()).max()))
    return scale * (1 + n * UNIT)


def _krylov_estimate(S: np.ndarray, columns: int = 8, steps: int = 6) -> float:
    """About the largest eigenvalue of a symmetric matrix, from below: its Ritz value on a small block Krylov space."""
    basis, images = (np.empty((len(S), columns * (steps + 1)), dtype=S.dtype, order="F") for _ in range(2))
    block = np.random.default_rng(0).standard_normal((len(S), columns)).astype(S.dtype)
    for j in range(0, basis.shape[1], columns):
        known, new = basis[:, :j], slice(j, j + columns)
        for _ in range(2):  # after the first, a block that had no other direction is known once more
            block -= known @ (known.T @ block)
            block = np.linalg.qr(block)[0]
        basis[:, new] = block
        images[:, new] = block = S @ block
    return float(np.linalg.eigvalsh(basis.T @ images)[-1])


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
    """Those with which ``lanczos_failure_epsilon`` is eps; infinite where eps or the probability is not above 0."""
    if not (eps > 0.0 and probability > 0.0):
        return np.inf
    root = np.log(1.648 * np.sqrt(n)) + np.log(1.0 / probability) / starts
    return float(0.5 + 0.5 * max(root, 0.0) / np.sqrt(eps))


def mu_lanczos(theta: float, eps: float, lambda_min: float) -> float:
    """Probabilistic mu from theta, the largest Ritz value of randomly started Lanczos on P A P >= lambda_min.

    Solves lambda - theta <= eps (lambda - lambda_min) for lambda; infinite where eps >= 1.
    """
    if eps >= 1.0:
        return np.inf
    return (theta - eps * min(lambda_min, 0.0)) / (1.0 - eps)


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
    """`mu_lanczos` after ``steps`` of at most ``stops`` steps, after each of which one may stop.

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
    return Bound(mu_lanczos(largest, eps, lowest), "lanczos", failure)


def formed_bound(C: np.ndarray, Q: np.ndarray, error: float, wanted: float) -> Bound:
    """Bound on P C P for a C that is held as a matrix; overwrites it.

    Parameters
    ----------
    C : ndarray (n, n)
    Q : ndarray (n, m)
        Orthonormal to rounding.
    error : float
        Bound on the norm of the rounding of P C P.
    wanted : float
        The Cholesky bound is generous by some percent; where it is above this, LAPACK's largest eigenvalue is taken.
    """
    W = C @ Q
    C -= Q @ W.T
    C -= W @ Q.T
    C += Q @ (Q.T @ W) @ Q.T
    C = (C + C.T) / 2
    mu = largest_eigenvalue_bound(C) + error
    if mu > wanted:
        n = len(C)
        largest = float(scipy.linalg.eigvalsh(C, subset_by_index=[n - 1, n - 1])[-1])
        mu = min(mu, largest + 4.0 * (n + 8) * UNIT * float(np.linalg.norm(C)) + error)
    return Bound(mu, "cholesky")


def gap_bound(beta: float, residual: float, last: float, failure: float) -> Bound:
    """P A P where at most p eigenvalues of A lie above beta, and so do the Ritz values of the p columns of V.

    By the inertia of A - beta I and its Schur complement P A P <= beta + |R|^2 / (theta_p - beta).

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
