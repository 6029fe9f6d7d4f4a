"""From residuals and traces to intervals around eigenvalues: pure functions, no kernel, no data.

Notation: A is the centred Gram matrix (n x n, symmetric), V has m nearly orthonormal columns, T = sym(V' A V),
R = A V - V T, P = I - V V', and mu bounds the largest eigenvalue of P A P from above. In the basis (V, complement)

    A = [ T  R' ]        and  mu I - D  is positive semidefinite, so that  A <= [ T   R'  ]
        [ R  D  ]                                                               [ R  mu I ]

in the order of symmetric matrices. The eigenvalues of the right side bound those of A from above (Weyl), those of T
from below (Cauchy's interlacing). With R = Q L only a matrix of order 2 m is left: its eigenvalues above mu are the
roots tau of lambda_i(T + L'L / (tau - mu)) = tau, which is the inertia (Schur complement) form; one eigenvalue
problem replaces the bisection.

"Guaranteed" includes rounding: the bounds on computed products are those of probabilistic rounding analysis
(N. J. Higham and T. Mary, SIAM J. Sci. Comput. 41, 2019), five standard deviations, never the worst case n u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ..base.rounding import UNIT, rounding_factor

__all__ = [
    "Certificate",
    "FeatureInfo",
    "angle_bounds",
    "cluster_labels",
    "dense_certificate",
    "feature_certificate",
    "feature_trace",
    "intersect",
    "lanczos_failure_epsilon",
    "largest_eigenvalue_bound",
    "mu_features",
    "mu_frobenius",
    "mu_lanczos",
    "mu_trace",
    "product_error",
    "ritz_certificate",
    "upper_ends",
]

_NOTHING = 1e150  # an error of this size says nothing, and its square would overflow
_YOUNG = 1e-3  # (R + F)'(R + F) <= (1 + a) R'R + (1 + 1/a) F'F: costs a thousandth of the width, not 2 |R| |F|


@dataclass(frozen=True)
class Certificate:
    """Intervals that contain the eigenvalues, and what they rest on.

    Attributes
    ----------
    eigenvalue_bounds : ndarray (c, 2)
        Lower and upper end for lambda_1 >= ... >= lambda_c, on the scale of the centred Gram matrix. They count
        multiplicity: no eigenvalue above an upper end has been missed.
    bound_kind : {"guaranteed", "probabilistic"}
    angle_bounds : ndarray (c,)
        Radians; every vector in the span of the returned eigenvectors of a cluster lies within this angle of the
        invariant subspace that belongs to the cluster. pi/2 where nothing is known.
    clusters : ndarray (c,), int
        Equal labels for eigenvalues that the intervals can't tell apart.
    mu : float
        Bound used for the largest eigenvalue of the part of the matrix outside the subspace; nan where not used.
    mu_form : str
        Which bound ``mu`` is: "trace", "frobenius", "features", "lanczos", or "none".
    rounding : float
        How much of each end is rounding.
    failure_probability : float
        Of a probabilistic bound; 0 for a guaranteed one.
    """

    eigenvalue_bounds: np.ndarray
    bound_kind: str
    angle_bounds: np.ndarray
    clusters: np.ndarray
    mu: float
    mu_form: str
    rounding: float
    failure_probability: float = 0.0

    @property
    def width(self) -> float:
        """Widest interval."""
        return float(np.max(self.eigenvalue_bounds[:, 1] - self.eigenvalue_bounds[:, 0]))


@dataclass(frozen=True)
class FeatureInfo:
    """What a feature map knows of the matrix: K = Phi Phi' + E + (entries at most defect), E semidefinite.

    Attributes
    ----------
    moment : ndarray (D, D)
        C = Phi' H Phi, the centred second moment.
    project : callable
        V (n, m) -> V' H Phi, shape (m, D).
    residual_trace : float
        tr E or an upper bound, rounding included.
    defect : float
    """

    moment: np.ndarray
    project: Callable[[np.ndarray], np.ndarray]
    residual_trace: float
    defect: float = 0.0


def product_error(n: int, columns: int, norm: float, entry_error: float = 0.0, error_bound: float = 0.0) -> float:
    """eta >= |computed(Kc V) - Kc V|_F for V with ``columns`` orthonormal columns.

    Parameters
    ----------
    n, columns : int
    norm : float
        Bound on the Frobenius norm of K itself (not of Kc: cancellation in centring is what this is about).
    entry_error : float
        Bound on |computed K_ij - K_ij|; it perturbs K by a matrix of norm at most n * entry_error.
    error_bound : float
        ``Summation.error_bound``: |error of an entry| <= error_bound * sum_j |u_j|, so at most n * error_bound a
        unit column.

    Notes
    -----
    Each column errs by at most rounding_factor(n) u | |K| |v| |_2 <= rounding_factor(n) u |K|_F.
    """
    return float(np.sqrt(columns) * (rounding_factor(n) * UNIT * norm + n * (error_bound + entry_error)))


def mu_trace(trace: float, ritz_sum: float, error: float = 0.0) -> float:
    """Largest eigenvalue of P A P for positive semidefinite A: at most its trace, tr A - tr V'AV.

    ``error`` is a bound on the rounding of the difference. Never for an indefinite matrix.
    """
    return max(trace - ritz_sum, 0.0) + error


def mu_frobenius(norm: float, ritz_norm: float, residual_norm: float, slack: float) -> float:
    """Largest |eigenvalue| of P A P for symmetric A: |P A P|_F^2 = |A|_F^2 - |T|_F^2 - 2 |R|_F^2.

    ``norm`` is an upper bound on |A|_F, ``ritz_norm`` and ``residual_norm`` are lower bounds on |T|_F and |R|_F, and
    ``slack`` bounds the rounding of the difference (a few u |A|_F^2), which cancels twice.
    """
    if not norm < _NOTHING:
        return np.inf
    return float(np.sqrt(max(norm**2 - ritz_norm**2 - 2.0 * residual_norm**2, 0.0) + slack))


def largest_eigenvalue_bound(S: np.ndarray) -> float:
    """A proved upper bound, within a few percent, on the largest eigenvalue of a symmetric matrix; at least 0.

    For large matrices a Lanczos estimate is proved by a Cholesky factorisation of t I - S (success proves
    S <= t I up to its backward error (n + 1) u t: Higham, Accuracy and Stability, theorem 10.3), which costs a
    tenth of all eigenvalues.
    """
    n = len(S)
    if n == 0:
        return 0.0
    with np.errstate(over="ignore"):
        scale = float(np.linalg.norm(S))
    if not np.isfinite(scale):
        return np.inf
    rounding = 4.0 * (n + 8) * UNIT * scale
    if n <= 128:
        return max(float(np.linalg.eigvalsh(S)[-1]), 0.0) + rounding
    # a few steps of block power iteration are an estimate only; the factorisation is the proof
    X = np.random.default_rng(0).standard_normal((n, 8))
    for _ in range(4):
        X = np.linalg.qr(S @ X)[0]
    t = 1.02 * max(float(np.linalg.eigvalsh(X.T @ S @ X)[-1]), 0.0) + 8 * rounding
    while t < scale:
        try:
            scipy.linalg.cholesky(t * np.eye(n) - S, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            t *= 1.1
        else:
            return t + rounding + (n + 1) * UNIT * t
    return scale * (1 + n * UNIT)


def mu_features(
    info: FeatureInfo, W: np.ndarray, n: int, trace_gap: float | None, defect: float = 0.0, gap_error: float = 0.0
) -> float:
    """Largest eigenvalue of P A P for A = H (Phi Phi' + E) H: lambda_max(C - W'W) + min(tr E, what the traces leave).

    Parameters
    ----------
    info : FeatureInfo
    W : ndarray (m, D)
        V' H Phi.
    n : int
    trace_gap : float or None
        tr A - tr V'AV, where known; then tr(P E P) = trace_gap - tr(C - W'W) may be smaller than tr E.
    defect : float
        |V'V - I|_2: W of the orthonormalised V has W'W / (1 + defect) <= W_o'W_o.
    gap_error : float
        Rounding of ``trace_gap``.

    Notes
    -----
    P H Phi Phi' H P and Phi' H P H Phi = C - W'W share their non-zero eigenvalues; the largest eigenvalue of a sum is
    at most the sum of the largest ones (Weyl).
    """
    S = info.moment - (W.T @ W) / (1.0 + defect)
    S = (S + S.T) / 2
    trace = float(np.trace(info.moment))
    rounding = 2.0 * (rounding_factor(n) + len(S)) * UNIT * trace
    missed = info.residual_trace
    if trace_gap is not None:
        # the defect may make E indefinite by n * defect, in each of n directions
        slack = rounding + gap_error + defect * trace + n * n * info.defect
        missed = min(missed, max(trace_gap - float(np.trace(S)), 0.0) + slack)
    return largest_eigenvalue_bound(S) + missed + rounding + n * info.defect


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


def mu_lanczos(theta: float, eps: float, lambda_min: float) -> float:
    """Probabilistic mu from theta, the largest Ritz value of randomly started Lanczos on P A P >= lambda_min.

    Solves lambda - theta <= eps (lambda - lambda_min) for lambda; infinite where eps >= 1.
    """
    if eps >= 1.0:
        return np.inf
    return (theta - eps * min(lambda_min, 0.0)) / (1.0 - eps)


def upper_ends(T: np.ndarray, L: np.ndarray, mu: float) -> np.ndarray:
    """Upper ends for the m largest eigenvalues of any symmetric A with compression T, residual R'R = L'L, PAP <= mu.

    Parameters
    ----------
    T : ndarray (m, m)
    L : ndarray (r, m)
        Any factor of (an upper bound of) R'R.
    mu : float

    Returns
    -------
    ndarray (m,)
        Descending; max(mu, eigenvalue i of [[T, L'], [L, mu I]]): the module's notes. Includes the rounding of this
        small eigenvalue problem.
    """
    m, r = len(T), len(L)
    if not np.isfinite(mu):
        return np.full(m, np.inf)
    big = np.empty((m + r, m + r))
    big[:m, :m] = T
    big[m:, :m] = L
    big[:m, m:] = L.T
    big[m:, m:] = mu * np.eye(r)
    values = scipy.linalg.eigvalsh(big, check_finite=False)[::-1][:m]
    scale = max(abs(values[0]), float(np.abs(T).sum(axis=0).max()), mu)
    return np.maximum(values, mu) + 8.0 * (np.sqrt(m + r) + 4.0) * UNIT * scale


def _residual_factor(gram: np.ndarray, n: int, error: float) -> np.ndarray:
    """L with L'L >= (R + F)'(R + F) for |F|_2 <= error, from the computed R'R.

    Entry (i, j) of the computed R'R errs by at most rounding_factor(n) u |R_i| |R_j|, a relative error of the matrix
    scaled to unit diagonal: small residuals keep their accuracy beside large ones.
    """
    m = len(gram)
    gram = (gram + gram.T) / 2
    scale = np.maximum(np.sqrt(np.maximum(np.diag(gram), 0.0)), 1e-140)
    scaled = gram / np.outer(scale, scale)
    if np.abs(scaled).max() > 1.001:  # not a Gram matrix of these columns to that accuracy: the error is of the largest
        scale = np.full(m, max(float(np.sqrt(np.abs(gram).max())), 1e-140))
        scaled = gram / scale[0] ** 2
    values, vectors = scipy.linalg.eigh(scaled, check_finite=False)
    values = np.maximum(values, 0.0) + m * (rounding_factor(n) + 16.0) * UNIT
    L = np.sqrt((1.0 + _YOUNG) * values)[:, None] * (vectors.T * scale)
    if error == 0.0:
        return L
    # L'L + (1 + 1/a) error^2 I, factored again into m rows
    stacked = np.vstack([L, np.sqrt(1.0 + 1.0 / _YOUNG) * error * np.eye(m)])
    return np.asarray(np.linalg.qr(stacked, mode="r"))


def cluster_labels(bounds: np.ndarray) -> np.ndarray:
    """Labels 0, 1, ...: neighbours whose intervals overlap share one. ``bounds`` (m, 2), descending."""
    new = bounds[1:, 1] < bounds[:-1, 0]
    return np.concatenate([[0], np.cumsum(new)]).astype(np.intp)


def angle_bounds(theta: np.ndarray, residual_gram: np.ndarray, bounds: np.ndarray, c: int, error: float) -> np.ndarray:
    """Angles (radians) between the c first Ritz vectors, cluster by cluster, and the true invariant subspaces.

    Davis and Kahan's sin theta theorem (SIAM J. Numer. Anal. 7, 1970): sin <= |R_I|_2 / gap, where R_I are the
    residuals of the returned vectors of a cluster and the gap is from their Ritz values to every eigenvalue outside
    the cluster, which the intervals of the neighbours bound.

    Parameters
    ----------
    theta : ndarray (m,)
        Descending.
    residual_gram : ndarray (m, m)
        R'R in Ritz coordinates.
    bounds : ndarray (m, 2)
        Of all m, so that the neighbour beyond c is known too.
    error : float
        Rounding in theta and in the residuals.
    """
    m = len(theta)
    labels = cluster_labels(bounds)
    angles = np.empty(c)
    for label in np.unique(labels[:c]):
        members = np.flatnonzero(labels == label)
        mine = members[members < c]
        first, last = members[0], members[-1]
        above = bounds[:first, 0].min() - theta[mine[0]] if first > 0 else np.inf
        # beyond the last known upper end nothing is known to separate the cluster from the rest
        below = theta[mine[-1]] - bounds[last + 1, 1] if last + 1 < m else 0.0
        gap = min(above, below) - error
        block = residual_gram[np.ix_(mine, mine)]
        if gap == np.inf:
            angles[mine] = 0.0
        elif gap > 0 and np.isfinite(block).all():
            rho = np.sqrt(max(float(np.linalg.eigvalsh(block)[-1]), 0.0)) * (1 + 1e-8) + error
            angles[mine] = np.arcsin(min(rho / gap, 1.0))
        else:  # not even a number is known (NaN, too)
            angles[mine] = np.pi / 2
    return angles


def ritz_certificate(
    compression: np.ndarray,
    gram: np.ndarray,
    residual_gram: np.ndarray,
    c: int,
    *,
    n: int,
    product_error: float,
    mu: dict[str, float] | None = None,
    trace: tuple[float, float] | None = None,
    norm: float | None = None,
    mu_probabilistic: float | None = None,
    failure_probability: float = 0.0,
) -> Certificate:
    """Intervals for the c largest eigenvalues from m >= c columns V, their images Y = fl(A V), and bounds on mu.

    Parameters
    ----------
    compression : ndarray (m, m)
        V'Y as computed; its symmetric part must be diagonal up to rounding, descending (Ritz coordinates).
    gram : ndarray (m, m)
        V'V as computed.
    residual_gram : ndarray (m, m)
        R'R for R = Y - V diag(theta), computed from the columns of R in just these coordinates: a rotated R'R, or
        a difference of Gram matrices, loses small residuals beside large ones.
    c, n : int
    product_error : float
        eta >= |Y - A V|_F (`product_error`): rounding, kernel entries, approximate summation.
    mu : dict, optional
        More upper bounds for the largest eigenvalue of P A P by name ("features").
    trace : (float, float), optional
        tr A and a bound on its error: allows the trace form. Only for positive semidefinite A.
    norm : float, optional
        Upper bound on |A|_F: allows the Frobenius form.
    mu_probabilistic : float, optional
        A bound that fails with ``failure_probability``. Then no deterministic bound is used and the certificate says
        "probabilistic".

    Notes
    -----
    Let S = V'V = I + O(delta), V_o = V S^(-1/2). From Y = A V + F, |F| <= eta, follows
    A V = V T + R - F, so V_o' A V_o = S^(1/2) T S^(-1/2) + S^(-1/2) V'(R - F) S^(-1/2), within
    s = 3 delta |T| + (|V'R| + (1 + delta) eta) / (1 - delta) of T for delta <= 1/4; and the residual of V_o is
    (I - V_o V_o')(R - F) S^(-1/2), because (I - V_o V_o') V = 0. Delta therefore does not meet |A| there.
    """
    m = len(compression)
    theta = np.diag(compression).copy()
    inner = np.sqrt(m) * rounding_factor(n) * UNIT  # |error|_2 of an m x m matrix of inner products of unit columns
    delta = float(np.linalg.norm(gram - np.eye(m), 2)) + inner
    known = np.isfinite(residual_gram).all() and np.isfinite(compression).all() and np.isfinite(product_error)
    if not (delta <= 0.25 and known):
        return _nothing_known(c, trace)
    size = float(np.max(np.abs(theta)))
    # V'R from Gram matrices: V'Y - V'V T, rounding of the two added
    cross = float(np.linalg.norm(compression - gram * theta, 2)) + 2 * inner * size
    s = 3.0 * delta * size + (cross + (1.0 + delta) * product_error) / (1.0 - delta)
    root = 1.0 / np.sqrt(1.0 - delta)
    rho_f = float(np.sqrt(max(np.trace(residual_gram), 0.0)))
    # the last term: R itself is a difference, rounded
    error = product_error * root + rho_f * (root - 1.0) + 4.0 * np.sqrt(m) * rounding_factor(m) * UNIT * size

    forms = dict(mu or {})
    if mu_probabilistic is not None:
        forms = {"lanczos": mu_probabilistic}
    else:
        if trace is not None:
            # |tr X| <= sqrt(m) |X|_F
            sum_error = m * cross + np.sqrt(m) * product_error * (1 + delta) / (1 - delta) + 8 * m * UNIT * size
            forms["trace"] = mu_trace(trace[0], float(theta.sum()), trace[1] + sum_error)
        if norm is not None:
            ritz_norm = max(float(np.linalg.norm(theta)) - np.sqrt(m) * s, 0.0)
            lost = cross + np.sqrt(m) * error
            residual_norm = max(rho_f / np.sqrt(1 + delta) - lost, 0.0)
            forms["frobenius"] = mu_frobenius(norm, ritz_norm, residual_norm, 16.0 * UNIT * norm * norm)
    form = min(forms, key=forms.__getitem__) if forms else "none"
    mu_value = forms.get(form, np.inf)

    L = _residual_factor(residual_gram, n, error)
    hi = upper_ends(np.diag(theta), L, mu_value) + s
    lo = theta - s
    order = np.arange(1, m + 1)
    if trace is not None:
        # (lower ends are not clamped at 0: computed kernel values are semidefinite up to their rounding only)
        hi = np.minimum(hi, (trace[0] + trace[1]) / order)
    if norm is not None:
        hi = np.minimum(hi, norm / np.sqrt(order))
    hi = np.maximum(hi, lo)
    bounds = np.column_stack([lo, hi])
    return Certificate(
        eigenvalue_bounds=bounds[:c],
        bound_kind="guaranteed" if mu_probabilistic is None else "probabilistic",
        angle_bounds=angle_bounds(theta, residual_gram, bounds, c, s + error),
        clusters=cluster_labels(bounds)[:c],
        mu=mu_value,
        mu_form=form,
        rounding=s,
        failure_probability=failure_probability if mu_probabilistic is not None else 0.0,
    )


def _nothing_known(c: int, trace: tuple[float, float] | None) -> Certificate:
    """Columns too far from orthonormal, or products of unknown error: the ends that the trace alone allows."""
    bounds = np.tile([-np.inf, np.inf], (c, 1))
    if trace is not None:
        bounds[:, 0] = -trace[1]
        bounds[:, 1] = (trace[0] + trace[1]) / np.arange(1, c + 1)
    labels = np.zeros(c, dtype=np.intp)
    return Certificate(bounds, "guaranteed", np.full(c, np.pi / 2), labels, np.inf, "none", 0.0)


def feature_certificate(
    values: np.ndarray,
    c: int,
    *,
    n: int,
    count: float | None = None,
    residual_trace: float,
    defect: float = 0.0,
    trace: float,
    kernel_trace: float,
    rounding: float = 64 * UNIT,
    solved: Certificate | None = None,
    solved_residual: float = 0.0,
) -> Certificate:
    """Intervals from a feature map alone: lambda_i(Phi) <= lambda_i <= lambda_i(Phi) + tr E, each +- n defect.

    Parameters
    ----------
    values : ndarray (at least min(c + 1, D),)
        Eigenvalues of the centred second moment Phi' H Phi, descending, as LAPACK computed them; where there are
        fewer than c the others are zero. The one after c bounds the angle of the last cluster.
    n : int
        Number of rows: terms of the sums that round.
    count : float, optional
        Sum of their weights, where they have any: what an entry's error counts with.
    residual_trace : float
        Upper bound on tr E, its own rounding included.
    trace : float
        tr(Phi' H Phi): scale of the rounding of accumulation and eigensolver.
    kernel_trace : float
        tr K, not centred.
    rounding : float
        ``FeatureMap.rounding``: relative rounding of phi(x).
    solved : Certificate, optional
        Of ``values``, where these are not LAPACK's but Ritz values of a moment held as an operator (at least c
        intervals; the moment's own accumulation is then n terms of size at most 1, not a sum of squares).
    solved_residual : float
        |C V - V diag(values)|_2 of the vectors that go with them.

    Notes
    -----
    Weyl: 0 <= H E H <= tr E. A matrix with entries at most ``defect`` has norm at most n * defect. The angle follows
    from Davis and Kahan with residual |H E H + defect part|.

    Rounding of the features perturbs H Phi by a matrix of Frobenius norm at most r = rounding sqrt(tr K), so each
    singular value by r (Weyl) and each eigenvalue by 2 sqrt(lambda) r + r^2: a bound of rounding tr K would be useless
    where K is nearly constant, since tr K is then 1 / rounding' times the largest centred eigenvalue.
    """
    values = np.asarray(values, dtype=np.float64)
    count = float(n) if count is None else count
    if not residual_trace + count * defect + kernel_trace < _NOTHING:
        return _nothing_known(c, None)
    D = len(values)
    m = max(c + 1, D) if solved is None else D
    theta = np.zeros(m)
    theta[:D] = np.maximum(values, 0.0)
    if solved is None:
        solver = (rounding_factor(n) + 8.0 * np.sqrt(max(D, 1)) + 8.0) * UNIT * max(trace, theta[0])
        low, high = theta - solver, theta + solver
    else:
        solver = 3.0 * (rounding_factor(n) + 8.0) * UNIT * kernel_trace
        low, high = solved.eigenvalue_bounds[:m, 0] - solver, solved.eigenvalue_bounds[:m, 1] + solver
    shift = rounding * np.sqrt(max(kernel_trace, 0.0))
    lo = np.maximum(np.sqrt(np.maximum(low, 0.0)) - shift, 0.0) ** 2 - count * defect
    # K is semidefinite, but its values as computed are that only up to their rounding; the ends hold for both
    lo = np.where(lo <= 0.0, lo - (16.0 + np.sqrt(max(D, 1))) * UNIT * kernel_trace, lo)
    hi = (np.sqrt(high) + shift) ** 2 + residual_trace + count * defect
    bounds = np.column_stack([lo, hi])
    side = float(max(theta[0] - lo[0], hi[0] - theta[0] - residual_trace))
    # of v = Phi y / sqrt(theta) the residual is Phi (C y - theta y) / sqrt(theta), besides what the map leaves out
    own = solved_residual * float(np.sqrt(hi[0] / max(theta[min(c, m) - 1], 1e-300))) if solved_residual else 0.0
    gram = np.eye(m) * (residual_trace + side + own) ** 2
    angles = angle_bounds(theta, gram, bounds, c, side)
    proof = Certificate(bounds[:c], "guaranteed", angles, cluster_labels(bounds)[:c], np.nan, "features", side)
    if solved is None or solved.bound_kind == "guaranteed":
        return proof
    return replace(proof, bound_kind=solved.bound_kind, failure_probability=solved.failure_probability)


def feature_trace(
    trace: float,
    *,
    n: int,
    count: float | None = None,
    residual_trace: float,
    defect: float = 0.0,
    kernel_trace: float,
    rounding: float = 64 * UNIT,
) -> tuple[float, float]:
    """Interval of tr(H K H) from a feature map alone: [T, T + tr E] for T = tr(Phi' H Phi), and rounding.

    Parameters as in `feature_certificate`. sqrt(T) is the Frobenius norm of H Phi, so rounding of the features moves
    it by at most r = rounding sqrt(tr K); the sum of squares adds (rounding_factor(n) + 8) u T; what is not
    semidefinite has a trace of at most n * defect in size. The residual's part lies between 0 and tr E: its own
    rounding is in ``residual_trace``.
    """
    count = float(n) if count is None else count
    # a trace below zero says how far it is off
    own = (rounding_factor(n) + 8.0) * UNIT * abs(trace) + 2.0 * max(-trace, 0.0)
    shift = rounding * np.sqrt(max(kernel_trace, 0.0))
    low = max(float(np.sqrt(max(trace - own, 0.0))) - shift, 0.0) ** 2 - count * defect
    high = (float(np.sqrt(max(trace + own, 0.0))) + shift) ** 2 + residual_trace + count * defect
    return float(low), float(high)


def dense_certificate(values: np.ndarray, c: int, *, n: int, norm: float, entry_error: float = 0.0) -> Certificate:
    """Intervals around LAPACK's eigenvalues of a computed centred Gram matrix.

    Parameters
    ----------
    values : ndarray (n,) or (m,), m > c
        Descending, as computed.
    n : int
    norm : float
        Bound on |K|_F (of K, not of Kc: the entries of Kc are differences of those of K and keep their rounding).
    entry_error : float
        Bound on |computed K_ij - K_ij|.

    Notes
    -----
    Backward error of centring, 6 u |K|_F beside the means' rounding, and of tridiagonal reduction and QL iteration,
    p(n) u |Kc|_2 with p(n) in practice below sqrt(n) (Higham and Mary 2019; LAPACK Users' Guide, section 4.7.1,
    takes p = 1 to 10); 4 sqrt(n) + 16 is taken here, times the norm of K.
    """
    values = np.asarray(values, dtype=np.float64)
    error = (4.0 * np.sqrt(n) + 16.0) * UNIT * norm + n * entry_error
    if not error < _NOTHING:
        return _nothing_known(c, None)
    bounds = np.column_stack([values - error, values + error])
    m = len(values)
    gram = np.eye(m) * error**2
    if m == n:
        # nothing lies below the last one: its neighbour is at minus infinity
        bounds = np.vstack([bounds, [-np.inf, -np.inf]])
        values, gram = np.append(values, -np.inf), np.pad(gram, ((0, 1), (0, 1)))
    return Certificate(
        eigenvalue_bounds=bounds[:c],
        bound_kind="guaranteed",
        angle_bounds=angle_bounds(values, gram, bounds, c, error),
        clusters=cluster_labels(bounds)[:c],
        mu=np.nan,
        mu_form="none",
        rounding=error,
    )


def intersect(first: Certificate, second: Certificate) -> Certificate:
    """The first certificate with both ends tightened by the second one (both hold, so their intersection does).

    Angles and clusters stay those of the first: they belong to its vectors.
    """
    lo = np.maximum(first.eigenvalue_bounds[:, 0], second.eigenvalue_bounds[:, 0])
    hi = np.minimum(first.eigenvalue_bounds[:, 1], second.eigenvalue_bounds[:, 1])
    kind = "guaranteed" if first.bound_kind == second.bound_kind == "guaranteed" else "probabilistic"
    return replace(
        first,
        eigenvalue_bounds=np.column_stack([lo, hi]),
        bound_kind=kind,
        failure_probability=first.failure_probability + second.failure_probability,
    )
