"""Intervals from vectors that others have computed: one pass over the kernel values, and what is orthogonal to them.

A is the centred kernel matrix, V (n x r) an orthonormal basis of the span of the given vectors, P = I - V V'. The pass
brings A V: Ritz values, residuals, and the Frobenius norm of A. `certificate.ritz_certificate`, through which every
interval of products goes, then needs one more number: mu >= lambda_1(P A P). Nothing is assumed of the vectors. If they
are wrong, mu is large and so are the intervals.

**Trace and norm.** mu <= tr A - tr V'AV for a semidefinite A, and mu^2 <= |A|_F^2 - |V'AV|_F^2 - 2 |R|_F^2 for any
symmetric A (``complement``). Both count all of the complement as if it were one eigenvalue.

**A feature map, known before the pass.** A = Phi Phi' + E with Phi (n x D) centred, E semidefinite, tr E known. With
F = P Phi the complement is P A P = F F' + P E P, and its eigenvalues lie above those of F F', f_1 >= f_2 >= ... (Weyl):

    mu <= (tr A - tr V'AV) - (f_2 + f_3 + ...) <= f_1 + tr E,
    mu^2 <= (|A|_F^2 - |V'AV|_F^2 - 2 |R|_F^2) - (f_2^2 + f_3^2 + ...).

Both take off what the map has seen of all other eigenvalues of the complement. In the second one the squares fall
fast: a map of some hundred pivots often leaves a mu next to f_1, where its trace says nothing. No vector need agree
with the map. Where f_1 + tr E is small enough, which is known before the pass, the norm is not computed.

**Eigenvectors that were missed.** Where f_1 is larger than the least of the given vectors' own, leading vectors of F F'
are multiplied in the same pass. Their Ritz values are lower bounds: they show eigenvalues that V has missed.

**Number of eigenvalues above t.** lambda_(m+j)(A) <= lambda_j(P A P) for the m columns that were multiplied. Let s and
q bound the trace and the Frobenius norm of P A P. Then at most m + min(s / t, (q / t)^2) eigenvalues lie above t. Where
mu <= t, the number of upper bounds above t is an upper bound, too. The number of lower bounds above t is a lower bound.

**Rounding.** Phi as computed errs by at most e in Frobenius norm, and so does each singular value of F. F'F comes as
Phi'Phi - (V'Phi)'(V'Phi). Its norm and its trace err by g, a rounding of tr Phi'Phi, and so do its eigenvalues and
their sum. An entry of K that is not Phi Phi' + E counts at both ends (``defect``).

**Sampled rows in place of the pass.** Let G = H Phi Phi' H and nu >= |E|: tr E, or a bound from rows that are drawn
when V and the map are fixed (``sampled``). Then G <= A <= G + nu I on the complement of ones, so that

    lambda_i(G) <= lambda_i(A) <= lambda_i(G) + nu,    V'GV <= V'AV <= V'GV + nu I,

and |P A V| <= |P G V| + nu: each Ritz vector of A has a residual of at most that. Where x is orthogonal to the columns
of H Phi, x'Ax is at most nu |x|^2. The intervals do not depend on V, and no product with K is computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ..base import tall
from ..base.rounding import UNIT, rounding_factor
from ..products.implicit import KernelMatrix
from .basis import Basis
from .certificate import (
    NO_BOUND,
    NOTHING_KNOWN,
    Bound,
    Certificate,
    FeatureSums,
    MatrixInfo,
    RitzBlock,
    cluster_labels,
    feature_certificate,
    ritz_certificate,
)
from .complement import MU_FRACTION, deterministic_bound, frobenius_bound, trace_bound
from .operators import CentredProducts
from .random_start import separated

DEPENDENT_NORM = 1e-10
"""Norm of a column beyond the others, over its own, below which it counts as a combination of these."""
MAX_MISSED_COLUMNS = 4
"""Leading vectors of a map beyond the given ones that are multiplied at most: they cost a quarter of a pass."""


@dataclass(frozen=True)
class MapColumns:
    """Features of all rows in the solver's coordinates: K = Phi Phi' + E + (part with small entries), E semidefinite.

    Attributes
    ----------
    features : ndarray (n, D)
        Phi, not centred.
    residual_trace : float
        Upper bound on tr E, to plan by.
    rounding : float
        Bound on the Frobenius norm of the error of Phi.
    defect : float
        Bound on the norm of the part that is not semidefinite.
    """

    features: np.ndarray
    residual_trace: float
    rounding: float
    defect: float


@dataclass(frozen=True)
class GivenResult:
    """Intervals for given vectors from a pass over the kernel values.

    Attributes
    ----------
    certificate : Certificate
        Certificate of m eigenvalues, m columns being multiplied.
    block : RitzBlock
        Inner products of these columns.
    own : RitzBlock
        Inner products of the given vectors alone.
    matrix : MatrixInfo
    beyond : float
        Bound mu on the eigenvalues of the complement; minus infinity where it has none.
    left_out : float
        How much larger than that of ``own`` a Ritz value of A may be. 0 after a pass.
    """

    certificate: Certificate
    block: RitzBlock
    own: RitzBlock
    matrix: MatrixInfo
    beyond: float
    left_out: float = 0.0

    @property
    def left(self) -> tuple[float, float]:
        """Bounds on the trace (of a semidefinite matrix) and the Frobenius norm of the complement."""
        return trace_bound(self.block, self.matrix).mu, frobenius_bound(self.block, self.matrix).mu

    def tightened(self, known: Certificate) -> GivenResult:
        """With the intervals of ``known``, from elsewhere: each bounds what lies behind a gap of the Ritz values."""
        c, found = len(self.own.theta), self.certificate
        bounds, others = found.eigenvalue_bounds.copy(), known.eigenvalue_bounds
        block, outside = separated(others[:, 1], self.block, c, known.failure_probability)
        more = ritz_certificate(block, len(block.theta), self.matrix, outside).eigenvalue_bounds
        for other in (more, others[: len(bounds)]):
            at = slice(len(other))
            bounds[at, 0] = np.maximum(bounds[at, 0], other[:, 0])
            bounds[at, 1] = np.maximum(np.minimum(bounds[at, 1], other[:, 1]), bounds[at, 0])
        bounds[:, 1] = np.minimum.accumulate(bounds[:, 1])  # no eigenvalue is above those before it
        beyond = min(self.beyond, outside.mu, *others[len(bounds) : len(bounds) + 1, 1])
        failing = found.failure_probability + known.failure_probability
        return replace(
            self, certificate=replace(found, eigenvalue_bounds=bounds, failure_probability=failing), beyond=beyond
        )


def independent(V: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """An orthonormal basis of the span of the centred columns of V, (n, r): r is their numerical rank."""
    sizes = np.abs(V).max(axis=0, initial=0.0)
    V = V[:, sizes > 0.0] / sizes[sizes > 0.0]
    V = tall.without_means(V / tall.norms(V), n_threads)
    left = tall.norms(V)
    kept = left > 16.0 * rounding_factor(len(V)) * UNIT  # else a column of equal entries, and rounding
    if not kept.any():
        return np.empty((len(V), 0), order="F")
    Q, R, _ = scipy.linalg.qr(V[:, kept] / left[kept], mode="economic", pivoting=True, check_finite=False)
    return np.asfortranarray(Q[:, np.abs(R.diagonal()) > DEPENDENT_NORM])


def certify_vectors(matrix: KernelMatrix, V: np.ndarray, known: MapColumns | None = None) -> GivenResult:
    """Intervals for the largest eigenvalues of H K H from given vectors, by one pass.

    Parameters
    ----------
    matrix : KernelMatrix
    V : ndarray (n, r)
        Orthonormal columns (`independent`), orthogonal to ones.
    known : MapColumns, optional
        Columns of a feature map, for a semidefinite matrix.
    """
    A, X, beyond = CentredProducts(matrix), V, None
    A.measures = bool(matrix.product.gives_norm)
    if known is not None:
        beyond = Beyond(known, V, matrix.n_threads)
        missed = beyond.missed()
        if missed.shape[1]:
            some = np.random.default_rng(0)  # for columns that vanish; any will do
            X = np.hstack([V, tall.orthonormal(missed, V, some, centred=True, n_threads=matrix.n_threads)])
        A.measures = A.measures and not beyond.is_enough
        # about the row means of K: what remains of the entries about them is small, and so is the rounding of its norm
        mean = known.features.mean(axis=0)
        A.row_means, A.grand_mean = known.features @ mean, float(mean @ mean)
    basis = Basis(A.n, np.random.default_rng(0), centred=True, n_threads=matrix.n_threads)
    X = basis.orthonormal(X)
    basis.append(X, A.multiply(X))
    m, error = basis.size, A.error(basis.size)
    block, info = basis.ritz_block(basis.ritz(), error, A.size), A.info(m)
    bound = deterministic_bound(block, info)
    if beyond is not None and block.errors is not None:
        bound = min(bound, beyond.bound(basis.Q[:, V.shape[1] :], block, info), key=lambda bound: bound.mu)
    return GivenResult(
        certificate=ritz_certificate(block, m, info, bound),
        block=block,
        own=basis.leading_block(V.shape[1], error, A.size),
        matrix=info,
        beyond=bound.mu if basis.free_columns else -np.inf,
    )


def certify_by_map(known: MapColumns, V: np.ndarray, residual: Bound, n_threads: int = 1) -> GivenResult:
    """Intervals for the largest eigenvalues of H K H, and what a feature map says of given vectors, without a pass.

    Parameters
    ----------
    known : MapColumns
    V : ndarray (n, r)
        Orthonormal columns (`independent`), orthogonal to ones.
    residual : Bound
        On the largest eigenvalue of E.
    n_threads : int
    """
    (n, r), D = V.shape, known.features.shape[1]
    size = float(np.linalg.norm(known.features))
    features, error = tall.without_means(known.features, n_threads), known.rounding + 4.0 * UNIT * size
    gram = tall.inner(features, features, n_threads)
    trace, whole = float(gram.trace()), size**2 + known.residual_trace
    sums = FeatureSums(
        n=n,
        trace=trace,
        residual_trace=known.residual_trace,
        kernel_trace=whole,
        entry_defect=known.defect,
        rounding=error / float(np.sqrt(whole)),
        weight_sum=1.0,  # the defect is a norm
        residual=residual,
    )
    basis = Basis(n, np.random.default_rng(0), centred=True, n_threads=n_threads)
    X = basis.orthonormal(V)
    basis.append(X, tall.times(features, tall.inner(features, X, n_threads), n_threads))
    of_product = (rounding_factor(n) + rounding_factor(D) + 4.0) * UNIT * trace
    left_out = residual.mu + 2.0 * float(np.sqrt(trace)) * error + error**2 + known.defect
    own = basis.leading_block(r, float(np.sqrt(r)) * of_product, trace)
    largest = float(np.sqrt(max(np.linalg.eigvalsh(own.residual_gram)[-1], 0.0))) * (1.0 + 1e-8) + left_out
    own = replace(own, residual_gram=largest**2 * np.eye(r), least_squares=np.zeros(r))
    return GivenResult(
        certificate=feature_certificate(np.linalg.eigvalsh(gram)[::-1], min(max(D, r), n - 1), sums),
        block=own,
        own=own,
        matrix=NOTHING_KNOWN,
        beyond=left_out,
        left_out=left_out,
    )


class Beyond:
    """Part of a feature map in the complement of given vectors.

    Parameters
    ----------
    known : MapColumns
    V : ndarray (n, r)
        The given vectors, orthonormal.
    n_threads : int

    Attributes
    ----------
    is_enough : bool
        The map's trace alone bounds what is beyond the vectors well below the r largest eigenvalues.
    """

    def __init__(self, known: MapColumns, V: np.ndarray, n_threads: int = 1):
        self.known, self.V, self.n_threads, self.is_enough = known, V, n_threads, False
        self._features = tall.without_means(known.features, n_threads)
        self._along = tall.inner(V, self._features, n_threads)
        gram = tall.inner(self._features, self._features, n_threads)
        self._trace = float(gram.trace())
        self._gram = gram - self._along.T @ self._along
        """F'F: F itself is not formed, since a pass over the features costs as much as a column of K V."""

    def missed(self) -> np.ndarray:
        """Leading vectors of F F' whose eigenvalues are above the least one of the r given vectors."""
        own = np.linalg.eigvalsh(self._along @ self._along.T)
        values, axes = (x[..., ::-1] for x in np.linalg.eigh(self._gram))
        wanted = float(np.sort(np.append(own, values))[-len(own)])
        count = int(np.count_nonzero(values[:MAX_MISSED_COLUMNS] > own[0]))
        beyond = max(float(np.append(values, 0.0)[count]), 0.0) + self.known.residual_trace
        self.is_enough = beyond < MU_FRACTION * wanted
        axes = axes[:, :count]
        return self._features @ axes - self.V @ (self._along @ axes)

    def bound(self, more: np.ndarray, block: RitzBlock, info: MatrixInfo) -> Bound:
        """mu beyond the given vectors and ``more`` columns; ``block`` is that of all these."""
        known, errors = self.known, block.errors
        assert errors is not None
        along = tall.inner(more, self._features, self.n_threads)
        gram = self._gram - along.T @ along
        values = np.linalg.eigvalsh(gram)[::-1]
        (n, D), m = self._features.shape, len(block.theta)
        # (features are rounded before their means are subtracted)
        error = known.rounding + 4.0 * UNIT * float(np.linalg.norm(known.features))
        of_gram = (16.0 * rounding_factor(n) * np.sqrt(m) + 8.0 * np.sqrt(D)) * UNIT + 2.0 * errors.orthogonality_error
        rounding = of_gram * self._trace
        low = np.maximum(np.sqrt(np.maximum(values - rounding, 0.0)) - error, 0.0) ** 2
        others = np.maximum(low[1:] - known.defect, 0.0)
        # the sum of all but the first, with one rounding for all
        whole = max(float(np.sqrt(max(float(gram.trace()) - rounding, 0.0))) - error, 0.0) ** 2
        first = (float(np.sqrt(max(float(values[0]), 0.0) + rounding)) + error) ** 2
        of_others = max(float(others.sum()), whole - first - D * known.defect)
        trace, norm = trace_bound(block, info).mu, frobenius_bound(block, info).mu
        bounds = [NO_BOUND]
        if trace < np.inf:
            bounds.append(Bound(max(trace - of_others, 0.0) + 16.0 * UNIT * trace, "trace"))
        if norm < np.inf:
            square = max(norm**2 - float(others @ others), 0.0) + 16.0 * UNIT * norm**2
            bounds.append(Bound(float(np.sqrt(square)), "frobenius"))
        return min(bounds, key=lambda bound: bound.mu)


def vector_angles(own: RitzBlock, bounds: np.ndarray, left_out: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Angles between the Ritz vectors of the given vectors and invariant subspaces, and the clusters these belong to.

    A Ritz vector belongs to the cluster of eigenvalues from whose neighbours its Ritz value is the furthest away: where
    the vectors lack the largest eigenvector, the first one belongs to the second eigenvalue. Davis and Kahan, as
    `certificate.angle_bounds`: the sine is at most |R_I|_2 / gap.

    Parameters
    ----------
    own : RitzBlock
        Inner products of r vectors.
    bounds : ndarray (m, 2)
        Intervals of the m largest eigenvalues; nothing is known of further ones.
    left_out : float
        As that of `GivenResult`.

    Returns
    -------
    ndarray (r,), ndarray (r,)
        Radians, pi/2 where no gap is known; label of the cluster, -1 where none is.
    """
    labels = cluster_labels(bounds)
    r, theta, errors = len(own.theta), own.theta, own.errors
    angles, belongs = np.full(r, np.pi / 2), np.full(r, -1)
    if errors is None:
        return angles, belongs
    error = errors.compression + errors.residual
    count = int(labels[-1]) + 1
    first = np.searchsorted(labels, np.arange(count + 1))
    above = np.append(np.inf, np.minimum.accumulate(bounds[:, 0])[first[1:count] - 1])
    below = np.append(bounds[first[1:count], 1], np.inf)  # nothing is known beyond the last one
    gaps = np.minimum(above[None, :] - theta[:, None] - left_out, theta[:, None] - below[None, :]) - error
    nearest = np.argmax(gaps, axis=1)
    for label in np.unique(nearest):
        group = np.flatnonzero((nearest == label) & (gaps.max(axis=1) > 0.0))
        if not len(group):
            continue
        belongs[group], gap = label, gaps[group, label].min()
        largest = np.linalg.eigvalsh(own.residual_gram[np.ix_(group, group)])[-1]
        rho = np.sqrt(max(float(largest), 0.0)) * (1.0 + 1e-8) + error
        angles[group] = np.arcsin(rho / gap) if rho < gap else np.pi / 2
    return angles, belongs
