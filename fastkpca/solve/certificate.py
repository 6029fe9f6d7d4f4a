"""Intervals around eigenvalues from residuals and traces: pure functions, no kernel, no data.

1. `product_error`: eta >= |Y - A V|_F for the computed images Y of the Ritz vectors V.
2. `RitzBlock.errors`: bounds on the errors of orthogonality, Ritz values and residuals from eta and rounding.
3. `RitzBlock.residual_factor`: L with L'L >= R'R, rounding included.
4. `upper_ends`: upper bounds from theta, L and mu, by one eigenvalue problem of order 2 m (below).
5. `ritz_certificate`: the least of these, tr A / i and |A|_F / i^(1/2); lower bounds theta_i - s, s from step 2.
6. `cluster_labels`: clusters of eigenvalues whose intervals overlap.
7. `angle_bounds`: angles between Ritz vectors and invariant subspaces, cluster by cluster.

`feature_certificate` and `dense_certificate` replace steps 1 to 5 for a feature map alone and for LAPACK's eigenvalues.

Notation: A is the centred Gram matrix (n x n, symmetric), V has m nearly orthonormal columns, T = sym(V' A V),
R = A V - V T and P = I - V V'. D is P A P on the complement of V, and mu an upper bound on its largest eigenvalue. In
the basis (V, complement)

    A = [ T  R' ]        and  mu I - D  is positive semidefinite, so that  A <= [ T   R'  ]
        [ R  D  ]                                                               [ R  mu I ]

in the order of symmetric matrices. The eigenvalues of the right side bound those of A from above (Weyl), those of T
from below (Cauchy's interlacing). With R = Q L, the columns of Q orthonormal, [T, L'; L, mu I] of order 2 m has the
same eigenvalues, but for copies of mu. Those above mu are the roots tau of lambda_i(T + L'L / (tau - mu)) = tau, which
is the inertia (Schur complement) form. The bounds mu come from the proofs (``proofs``, ``small``, ``sampled``).

"Guaranteed" means without random numbers, and rounding is included, but not at its worst case n u: the bounds on
computed products are those of probabilistic rounding analysis, five standard deviations (N. J. Higham and T. Mary, SIAM
J. Sci. Comput. 41, 2019).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import asin, inf, isfinite, pi, sqrt

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from ..base.caching import cached_property
from ..base.rounding import UNIT, factorisation_error, rounding_factor

SAYS_NOTHING = float(np.sqrt(np.finfo(np.float64).max * UNIT))
"""A bound of this size is useless, and sums of its squares would overflow."""
YOUNG_PARAMETER = 1e-3
"""(R + F)'(R + F) <= (1 + a) R'R + (1 + 1/a) F'F, a at least: costs a thousandth, not 2 |R| |F|."""


@dataclass(frozen=True)
class Bound:
    """An upper bound on the largest eigenvalue of a matrix outside a subspace (of P A P), and how certain it is.

    Attributes
    ----------
    mu : float
        Upper bound on lambda_max(P A P).
    form : str
        "trace", "frobenius" or "gap" (``complement``), "lanczos" (`complement.exploration_bound`), "cholesky"
        (``deflated``, ``small``), "start" (``random_start``), "filter" (``filtered``), "sampled" (``sampled``), or
        "none". "hope": assumed, for planning only (`proofs.Filter`).
    failure_probability : float
        Probability that mu is no upper bound, over the random numbers drawn; 0 for a guaranteed bound.
    """

    mu: float
    form: str
    failure_probability: float = 0.0


NO_BOUND = Bound(np.inf, "none")


@dataclass(frozen=True)
class Certificate:
    """Intervals that contain the eigenvalues, and the bound from which they follow.

    Attributes
    ----------
    eigenvalue_bounds : ndarray (c, 2)
        Lower and upper end for lambda_1 >= ... >= lambda_c, on the scale of the centred Gram matrix. They count
        multiplicity: no eigenvalue above an upper end has been missed.
    angle_bounds : ndarray (c,)
        Radians; every vector in the span of the returned eigenvectors of a cluster lies within this angle of the
        invariant subspace that belongs to the cluster. pi/2 where nothing is known. The last cluster may contain more
        eigenvalues than were returned. Its angle is then to the larger subspace of all of them.
    clusters : ndarray (c,), int
        Equal labels for neighbours whose intervals overlap.
    outside : Bound or None
        Bound on the eigenvalues outside the subspace, where the intervals follow from one.
    rounding : float
        Part of the distance from a Ritz value to either end of its interval that accounts for rounding.
    failure_probability : float
        0: guaranteed.
    """

    eigenvalue_bounds: np.ndarray
    angle_bounds: np.ndarray
    clusters: np.ndarray
    outside: Bound | None
    rounding: float
    failure_probability: float = 0.0

    @property
    def bound_kind(self) -> str:
        """Either "guaranteed" or "probabilistic"."""
        return "guaranteed" if self.failure_probability == 0.0 else "probabilistic"

    def or_failing(self, probability: float) -> Certificate:
        """The certificate with ``probability`` added to its failure probability, if it has any: one of several that may
        fail."""
        if not self.failure_probability:
            return self
        return replace(self, failure_probability=self.failure_probability + probability)

    def first(self, count: int) -> Certificate:
        """The certificate of the first ``count`` eigenvalues."""
        return replace(
            self,
            eigenvalue_bounds=self.eigenvalue_bounds[:count],
            angle_bounds=self.angle_bounds[:count],
            clusters=self.clusters[:count],
        )

    def tightened(self, upper: np.ndarray) -> Certificate:
        """The certificate with its upper ends lowered to ``upper``, bounds on any number of leading eigenvalues."""
        bounds = self.eigenvalue_bounds.copy()
        c = min(len(bounds), len(upper))
        bounds[:c, 1] = np.maximum(np.minimum(bounds[:c, 1], upper[:c]), bounds[:c, 0])
        return replace(self, eigenvalue_bounds=bounds)

    @property
    def width(self) -> float:
        """Width of the widest interval."""
        lower, upper = self.eigenvalue_bounds.T
        return float((upper - lower).max())


@dataclass(frozen=True)
class Eigenpairs:
    """Approximate eigenpairs of a symmetric matrix, with the certificate of their eigenvalues.

    Attributes
    ----------
    values : ndarray (c,)
        Descending.
    vectors : ndarray (n, c)
    certificate : Certificate
        For at least these eigenvalues.
    images : ndarray (n, c) or None
        The matrix times the vectors as computed, where it was.
    residual : float
        Bound on |A V - V diag(values)|_2; infinite where it was not needed.
    info : dict
        Products and factorisations that were needed, as the model reports them.
    """

    values: np.ndarray
    vectors: np.ndarray
    certificate: Certificate
    images: np.ndarray | None = None
    residual: float = inf
    info: dict[str, int] = field(default_factory=dict)


def product_error(
    n: int, columns: int, norm: float, entry_error: float = 0.0, error_bound: float = 0.0, passes: int | None = None
) -> float:
    """eta >= |computed(Kc V) - Kc V|_F for V with ``columns`` orthonormal columns.

    Parameters
    ----------
    n, columns : int
    norm : float
        Bound on the Frobenius norm of K itself, not of Kc: rounding is relative to K, as centring cancels.
    entry_error : float
        Bound on |computed K_ij - K_ij|; it perturbs K by a matrix of Frobenius norm at most n * entry_error.
    error_bound : float
        ``Summation.error_bound``: |error of an entry| <= error_bound * sum_j |u_j|, so at most n * error_bound a
        unit column.
    passes : int, optional
        Number of passes of the products: in each the entries are computed once, for all of its columns. Default:
        ``columns``.

    Notes
    -----
    Each column errs by at most rounding_factor(n) u | |K| |v| |_2 <= rounding_factor(n) u |K|_F. Pass b
    multiplies the columns V_b of V = [V_1, V_2, ...], with errors E_b of the entries. As |V_b|_2 = 1,
    |[E_1 V_1, E_2 V_2, ...]|_F^2 <= sum |E_b|_F^2. That also holds for combinations V C of these columns, with any
    number of orthonormal columns in C.
    """
    each = rounding_factor(n) * UNIT * norm + n * error_bound
    return float(np.sqrt(columns) * each + np.sqrt(passes or columns) * n * entry_error)


@dataclass(frozen=True)
class RitzBlock:
    """m Ritz vectors V and their images Y = fl(A V), as inner products.

    Attributes
    ----------
    compression : ndarray (m, m)
        V'Y as computed; its symmetric part must be diagonal up to rounding, descending (Ritz coordinates).
    gram : ndarray (m, m)
        V'V as computed.
    residual_gram : ndarray (m, m)
        R'R for R = Y - V diag(theta), computed from the columns of R in just these coordinates: a rotated R'R, or
        a difference of Gram matrices, loses small residuals next to large ones. Where R is not known in full, a matrix
        that is at least R'R.
    n : int
        Order of A.
    product_error : float
        eta >= |Y - A V|_F (`product_error`): rounding, kernel entries, approximate summation.
    least_squares : ndarray (m,) or None
        Lower bounds on the squared norms of the columns of R; None: the diagonal of ``residual_gram``.
    """

    compression: np.ndarray
    gram: np.ndarray
    residual_gram: np.ndarray
    n: int
    product_error: float
    least_squares: np.ndarray | None = None

    @property
    def theta(self) -> np.ndarray:
        """Ritz values, descending."""
        return self.compression.diagonal()

    @property
    def least_residual(self) -> float:
        """Lower bound on |R|_F, up to the rounding of its entries."""
        squares = self.residual_gram.diagonal() if self.least_squares is None else self.least_squares
        return sqrt(max(float(squares.sum()), 0.0))

    @cached_property
    def errors(self) -> RitzErrors | None:
        """Errors by rounding; None where the columns are far from orthonormal, or the images' error is not known.

        Here T = diag(theta) and R = Y - V T, as computed, not the exact ones of the module's notes. Let S = V'V =
        I + O(delta), V_o = V S^(-1/2). The computed image is Y = A V + F with |F| <= eta, so that
        A V = V T + R - F. Then

            V_o' A V_o = S^(1/2) T S^(-1/2) + S^(-1/2) V'(R - F) S^(-1/2)

        differs from T by at most s = 3 delta |T| + (|V'R| + (1 + delta) eta) / (1 - delta), for delta <= 1/4. The
        residual of V_o is (I - V_o V_o')(R - F) S^(-1/2), because (I - V_o V_o') V = 0: no product delta |A| occurs.
        """
        m, theta, eta = len(self.compression), self.theta, self.product_error
        # |error|_2 of an m x m matrix of inner products of unit columns
        inner = sqrt(m) * rounding_factor(self.n) * UNIT
        delta = _norm(self.gram - np.eye(m), inner) + inner
        known = np.isfinite(self.residual_gram).all() and np.isfinite(self.compression).all() and isfinite(eta)
        if not (delta <= 0.25 and known):
            return None
        size = float(np.abs(theta).max())
        # V'R from Gram matrices: V'Y - V'V T, rounding of the two added
        cross = _norm(self.compression - self.gram * theta, inner * size) + 2 * inner * size
        root = 1.0 / sqrt(1.0 - delta)
        norm = sqrt(max(float(self.residual_gram.trace()), 0.0))
        products = (1.0 + delta) * eta / (1.0 - delta)
        return RitzErrors(
            orthogonality_error=delta,
            cross=cross,
            products=products,
            compression=3.0 * delta * size + cross / (1.0 - delta) + products,
            # the last term: R itself is a difference, rounded
            residual=eta * root + norm * (root - 1.0) + 4.0 * sqrt(m) * rounding_factor(m) * UNIT * size,
        )

    def leading(self, k: int) -> RitzBlock:
        """Block of the first k Ritz vectors."""
        compression, gram, residuals = (x[:k, :k] for x in (self.compression, self.gram, self.residual_gram))
        least = None if self.least_squares is None else self.least_squares[:k]
        return RitzBlock(compression, gram, residuals, self.n, self.product_error, least)

    @cached_property
    def residual_factor(self) -> np.ndarray:
        """L with L'L >= R'R, for the exact residual R of the orthonormalised columns."""
        assert self.errors is not None
        return _residual_factor(self.residual_gram, self.n, self.errors.residual)


@dataclass(frozen=True)
class RitzErrors:
    """Bounds on the differences between a `RitzBlock` and one of orthonormal columns and exact products.

    Attributes
    ----------
    orthogonality_error : float
        delta >= |V'V - I|_2.
    cross : float
        Bound on |V'R|_2.
    products : float
        Bound on |V_o'F|_F, the part of ``compression`` that is the error of the products.
    compression : float
        s >= |V_o' A V_o - diag(theta)|_2.
    residual : float
        Bound on the norm of the difference of the two residuals.
    """

    orthogonality_error: float
    cross: float
    products: float
    compression: float
    residual: float


@dataclass(frozen=True)
class MatrixInfo:
    """Bounds on the whole matrix A.

    Attributes
    ----------
    trace : (float, float), optional
        tr A and a bound on its error. Only of a positive semidefinite A.
    norm : float, optional
        Upper bound on |A|_F.
    """

    trace: tuple[float, float] | None = None
    norm: float | None = None


NOTHING_KNOWN = MatrixInfo()


@dataclass(frozen=True)
class FeatureSums:
    """Sums over all rows, from the moments of a feature map Phi.

    K = Phi Phi' + E + (a part with small entries); E is the residual of the map, positive semidefinite.

    Attributes
    ----------
    n : int
        Number of rows: terms of the sums that round.
    trace : float
        tr(Phi' H Phi): scale of the rounding of accumulation and eigensolver.
    residual_trace : float
        Upper bound on tr E, its own rounding included.
    kernel_trace : float
        tr K, not centred.
    entry_defect : float
        Bound on the entries of the part of K - Phi Phi' that is not positive semidefinite.
    rounding : float
        ``FeatureMap.rounding``: relative rounding of phi(x).
    weight_sum : float, optional
        Sum of the rows' weights, where they have any; it takes the place of n in n ``entry_defect``.
    residual : Bound, optional
        Bound on the largest eigenvalue of E, where one smaller than tr E is known.
    moment_error : float
        ``Moments.error``.
    """

    n: int
    trace: float
    residual_trace: float
    kernel_trace: float
    entry_defect: float = 0.0
    rounding: float = 64 * UNIT
    weight_sum: float | None = None
    residual: Bound | None = None
    moment_error: float = 0.0

    @property
    def left_out(self) -> Bound:
        """Bound on the largest eigenvalue of E."""
        trace = Bound(self.residual_trace, "trace")
        return trace if self.residual is None or self.residual.mu >= trace.mu else self.residual

    @property
    def defect_norm(self) -> float:
        """Norm of a matrix whose entries are at most ``entry_defect``."""
        return (float(self.n) if self.weight_sum is None else self.weight_sum) * self.entry_defect

    @property
    def rounded(self) -> float:
        """Bound on the Frobenius norm of the rounding error of H Phi."""
        return self.rounding * float(np.sqrt(max(self.kernel_trace, 0.0)))


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
    if not isfinite(mu):
        return np.full(m, np.inf)
    big = np.zeros((m + r, m + r))
    big[:m, :m] = T
    big[m:, :m] = L
    big[:m, m:] = L.T
    big.flat[m * (m + r + 1) :: m + r + 1] = mu
    values, _, failed = lapack.dsyevd(big, compute_v=0, overwrite_a=1)
    if failed:
        return np.full(m, np.inf)
    values = values[::-1][:m]
    scale = max(abs(values[0]), float(np.abs(T).sum(axis=0).max()), mu)
    return np.maximum(values, mu) + 8.0 * (sqrt(m + r) + 4.0) * UNIT * scale


def _norm(A: np.ndarray, little: float) -> float:
    """Upper bound on |A|_2: |A|_F, which costs nothing, where that is ``little``."""
    norm = float(np.linalg.norm(A))
    return norm if norm <= little else float(np.linalg.norm(A, 2))


def _residual_factor(gram: np.ndarray, n: int, error: float) -> np.ndarray:
    """L with L'L >= (R + F)'(R + F) for |F|_2 <= error, from the computed R'R.

    (R + F)'(R + F) <= (1 + a) (R'R + error^2 / a I). Entry (i, j) of the computed R'R errs by at most
    rounding_factor(n) u |R_i| |R_j|, a relative error of the matrix scaled to unit diagonal: small residuals keep their
    accuracy next to large ones.
    """
    m = len(gram)
    gram = (gram + gram.T) / 2
    # the a of the least trace, where the error is not far below the residuals
    norm = sqrt(max(float(gram.trace()), 1e-280))
    young = min(max(sqrt(m) * error / norm, YOUNG_PARAMETER), 1.0)
    added = error**2 / young
    gram.flat[:: m + 1] += added
    scale = np.maximum(np.sqrt(np.maximum(gram.diagonal(), 0.0)), 1e-140)
    scaled = gram / (scale[:, None] * scale)
    if np.abs(scaled).max() > 1.001:  # not a Gram matrix to that accuracy: count the error of the largest for all
        scale = np.full(m, max(float(np.sqrt(np.abs(gram).max())), 1e-140))
        scaled = gram / scale[0] ** 2
    rounding = m * (rounding_factor(n) + 16.0) * UNIT
    scaled.flat[:: m + 1] += rounding + factorisation_error(m, UNIT)
    factor, failed = lapack.dpotrf(scaled)
    if failed:
        values, vectors = scipy.linalg.eigh(scaled, check_finite=False)
        factor = np.sqrt(np.maximum(values, 0.0) + rounding)[:, None] * vectors.T
    return np.asarray(sqrt(1.0 + young) * factor * scale)


def cluster_labels(bounds: np.ndarray) -> np.ndarray:
    """Labels 0, 1, ...: neighbours whose intervals overlap share one. ``bounds`` (m, 2), descending."""
    return _ends(bounds).searchsorted(np.arange(len(bounds)))


def _ends(bounds: np.ndarray) -> np.ndarray:
    """Numbers of the intervals below which no neighbour overlaps."""
    return (bounds[1:, 1] < bounds[:-1, 0]).nonzero()[0]


def angle_bounds(theta: np.ndarray, residual_gram: np.ndarray, bounds: np.ndarray, c: int, error: float) -> np.ndarray:
    """Angles (radians) between the c first Ritz vectors, cluster by cluster, and the true invariant subspaces.

    Davis and Kahan's sin theta theorem (SIAM J. Numer. Anal. 7, 1970): sin <= |R_I|_2 / gap. R_I are the residuals of
    the returned vectors of a cluster. The gap is the distance from their Ritz values to the nearest eigenvalue outside
    the cluster; the intervals of the neighbours bound it from below.

    Parameters
    ----------
    theta : ndarray (m,)
        Descending.
    residual_gram : ndarray (m, m) or (m,)
        R'R in Ritz coordinates, or its diagonal where no more is known.
    bounds : ndarray (m, 2)
        Intervals of all m eigenvalues, so that the neighbour beyond c is known too.
    error : float
        Rounding in theta and in the residuals.
    """
    m = len(theta)
    values, upper = theta.tolist(), bounds[:, 1].tolist()
    lowest = np.minimum.accumulate(bounds[:, 0]).tolist()
    starts = [0, *(_ends(bounds) + 1).tolist()]
    diagonal = residual_gram.ndim == 1
    squares = (residual_gram if diagonal else residual_gram.diagonal()).tolist()
    angles: list[float] = []
    for first, after in zip(starts, [*starts[1:], m]):
        if first >= c:
            break
        end, angle = after if after < c else c, pi / 2
        # the ends that face the cluster: lower ends of the eigenvalues above it, the upper end of the next one below
        above = lowest[first - 1] - values[first] if first > 0 else inf
        # beyond the last interval no gap is known
        below = values[end - 1] - upper[after] if after < m else 0.0
        gap = min(above, below) - error
        if gap == inf:
            angle = 0.0
        elif gap > 0:  # not NaN
            largest = squares[first]
            if end - first > 1:
                here = slice(first, end)
                largest = max(squares[here]) if diagonal else largest_eigenvalue(residual_gram[here, here])
            rho = sqrt(max(largest, 0.0)) * (1 + 1e-8) + error
            angle = asin(rho / gap) if rho < gap else pi / 2
        angles += [angle] * (end - first)
    return np.array(angles)


def largest_eigenvalue(A: np.ndarray) -> float:
    """Largest eigenvalue of a symmetric matrix, by LAPACK; infinite where A is not finite."""
    return float(np.linalg.eigvalsh(A)[-1]) if np.isfinite(A).all() else inf


def ritz_certificate(
    ritz: RitzBlock, c: int, matrix: MatrixInfo = NOTHING_KNOWN, outside: Bound = NO_BOUND
) -> Certificate:
    """Intervals for the c largest eigenvalues, from m >= c columns V and a bound on the eigenvalues outside their span.

    Parameters
    ----------
    ritz : RitzBlock
    c : int
    matrix : MatrixInfo
        Its trace and its norm alone give upper ends too.
    outside : Bound
        Upper bound on the largest eigenvalue of P A P (``complement``).
    """
    errors = ritz.errors
    if errors is None:
        return _nothing_known(c, matrix.trace)
    theta, s, m = ritz.theta, errors.compression, len(ritz.theta)
    factor = ritz.residual_factor if isfinite(outside.mu) else np.empty((0, m))  # without a bound nothing follows
    hi = upper_ends(np.diag(theta), factor, outside.mu) + s
    lo = theta - s
    order = np.arange(1, len(theta) + 1)
    if matrix.trace is not None:
        # (lower ends are not clamped at 0: computed kernel values are semidefinite up to their rounding only)
        hi = np.minimum(hi, sum(matrix.trace) / order)
    if matrix.norm is not None:
        hi = np.minimum(hi, matrix.norm / np.sqrt(order))
    hi = np.maximum(hi, lo)
    bounds = np.column_stack([lo, hi])
    return Certificate(
        eigenvalue_bounds=bounds[:c],
        angle_bounds=angle_bounds(theta, ritz.residual_gram, bounds, c, s + errors.residual),
        clusters=cluster_labels(bounds)[:c],
        outside=outside,
        rounding=s,
        failure_probability=outside.failure_probability,
    )


def _nothing_known(c: int, trace: tuple[float, float] | None) -> Certificate:
    """Certificate from the trace alone, where the columns are far from orthonormal or the products' error is
    unknown."""
    bounds = np.tile([-np.inf, np.inf], (c, 1))
    if trace is not None:
        bounds[:, 0] = -trace[1]
        bounds[:, 1] = (trace[0] + trace[1]) / np.arange(1, c + 1)
    labels = np.zeros(c, dtype=np.intp)
    return Certificate(bounds, np.full(c, np.pi / 2), labels, NO_BOUND, 0.0)


def feature_certificate(
    values: np.ndarray, c: int, sums: FeatureSums, solved: Certificate | None = None, solved_residual: float = 0.0
) -> Certificate:
    """Intervals from a feature map alone: theta_i <= lambda_i <= theta_i + |E|, each +- n entry_defect.

    theta_i are the eigenvalues of C = Phi' H Phi, and E is the residual of the map (`FeatureSums`).

    Parameters
    ----------
    values : ndarray (at least min(c + 1, D),)
        Eigenvalues theta_i of the centred second moment C, descending, as LAPACK computed them; where there are
        fewer than c the others are zero. The one after c bounds the angle of the last cluster.
    c : int
    sums : FeatureSums
    solved : Certificate, optional
        Certificate of ``values``, where these are not LAPACK's but Ritz values of a moment held as an operator: at
        least c intervals. The moment's accumulation is then n terms of size at most 1, not a sum of squares.
    solved_residual : float
        |C Y - Y diag(values)|_2 of their eigenvectors Y.

    Notes
    -----
    Weyl: 0 <= H E H <= |E| I, and |E| <= tr E (`FeatureSums.left_out`). A matrix with entries at most ``entry_defect``
    has norm at most n * entry_defect. The angle follows from Davis and Kahan with residual |H E H + defect part|.

    Rounding of the features perturbs H Phi by a matrix of Frobenius norm at most r = rounding sqrt(tr K). So each
    singular value moves by at most r (Weyl), and each eigenvalue by 2 sqrt(lambda) r + r^2. The simpler bound rounding
    tr K would be useless where K is nearly constant: tr K is then many times the largest centred eigenvalue.
    """
    values = np.asarray(values, dtype=np.float64)
    if not sums.residual_trace + sums.defect_norm + sums.kernel_trace < SAYS_NOTHING:
        return _nothing_known(c, None)
    D, left_out = len(values), sums.left_out
    m = max(c + 1, D) if solved is None else D
    theta = np.zeros(m)
    theta[:D] = np.maximum(values, 0.0)
    low, high = _solver_ends(theta, D, sums, solved)
    lo = np.maximum(np.sqrt(np.maximum(low, 0.0)) - sums.rounded, 0.0) ** 2 - sums.defect_norm
    # K is semidefinite, but its values as computed are that only up to their rounding; the ends hold for both
    lo = np.where(lo <= 0.0, lo - (16.0 + np.sqrt(max(D, 1))) * UNIT * sums.kernel_trace, lo)
    hi = (np.sqrt(high) + sums.rounded) ** 2 + left_out.mu + sums.defect_norm
    bounds = np.column_stack([lo, hi])
    side = float(max(theta[0] - lo[0], hi[0] - theta[0] - left_out.mu))
    # the residual of v = Phi y / sqrt(theta) is Phi (C y - theta y) / sqrt(theta), plus at most the norm of E
    scaled_residual = 0.0
    if solved_residual:
        scaled_residual = solved_residual * float(np.sqrt(hi[0]) / np.sqrt(max(theta[min(c, m) - 1], 1e-300)))
    squares = np.full(m, (left_out.mu + side + scaled_residual) ** 2)
    failing = min(left_out.failure_probability + (0.0 if solved is None else solved.failure_probability), 1.0)
    return Certificate(
        eigenvalue_bounds=bounds[:c],
        angle_bounds=angle_bounds(theta, squares, bounds, c, side),
        clusters=cluster_labels(bounds)[:c],
        outside=None,
        rounding=side,
        failure_probability=failing,
    )


def _solver_ends(
    theta: np.ndarray, D: int, sums: FeatureSums, solved: Certificate | None
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the eigenvalues of Phi' H Phi around the D that were computed, and zeros."""
    if solved is None:
        error = (rounding_factor(sums.n) + 8.0 * np.sqrt(max(D, 1)) + 8.0) * UNIT * max(sums.trace, theta[0])
        error += sums.moment_error
        return theta - error, theta + error
    error = 3.0 * (rounding_factor(sums.n) + 8.0) * UNIT * sums.kernel_trace
    ends = solved.eigenvalue_bounds[: len(theta)]
    return ends[:, 0] - error, ends[:, 1] + error


def feature_trace(sums: FeatureSums) -> tuple[float, float]:
    """Interval of tr(H K H) from a feature map alone: [T, T + tr E] for T = tr(Phi' H Phi), and rounding.

    Let T = tr(Phi' H Phi). sqrt(T) is the Frobenius norm of H Phi, so rounding of the features moves it by at most
    r = rounding sqrt(tr K). The sum of squares adds (rounding_factor(n) + 8) u T and ``moment_error``. The part of
    K - Phi Phi' that is not semidefinite has a trace of at most n ``entry_defect`` in size. The trace of H E H is
    between 0 and ``residual_trace``, which includes its own rounding.
    """
    trace = sums.trace
    # a trace below zero is an error of at least its size
    error = (rounding_factor(sums.n) + 8.0) * UNIT * abs(trace) + 2.0 * max(-trace, 0.0) + sums.moment_error
    low = max(float(np.sqrt(max(trace - error, 0.0))) - sums.rounded, 0.0) ** 2 - sums.defect_norm
    high = (float(np.sqrt(max(trace + error, 0.0))) + sums.rounded) ** 2 + sums.residual_trace + sums.defect_norm
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
    The backward error of centring is 6 u |K|_F plus the means' rounding. That of tridiagonal reduction and its
    eigenvalues is p(n) u |Kc|_2. In practice p(n) is below sqrt(n) (Higham and Mary 2019; LAPACK Users' Guide, section
    4.7.1, takes p = 1 to 10). Here it is (4 sqrt(n) + 16) u times the norm of K.
    """
    values = np.asarray(values, dtype=np.float64)
    error = (4.0 * sqrt(n) + 16.0) * UNIT * norm + n * entry_error
    if not error < SAYS_NOTHING:
        return _nothing_known(c, None)
    bounds = np.column_stack([values - error, values + error])
    m = len(values)
    if m == n:
        # nothing lies below the last one: its neighbour is at minus infinity
        bounds, values = np.vstack([bounds, [-np.inf, -np.inf]]), np.append(values, -np.inf)
    return Certificate(
        eigenvalue_bounds=bounds[:c],
        angle_bounds=angle_bounds(values, np.full(len(values), error**2), bounds, c, error),
        clusters=cluster_labels(bounds)[:c],
        outside=None,
        rounding=error,
    )
