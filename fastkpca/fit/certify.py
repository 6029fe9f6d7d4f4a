"""``certify()``: intervals for eigenvalues from vectors that another program has found."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import parallel
from ..base.checks import as_float, check_count, check_numbers
from ..base.protocol import FeatureMap, Kernel
from ..errors import (
    CertificateWarning,
    ComponentsWarning,
    NotConvergedError,
    NoVarianceError,
    rounded_up,
    silenced,
    warn_caller,
)
from ..kernels import get_kernel, naming
from ..maps.draws import DRAWS_PER_PASS, drawn_among
from ..maps.passes import pass_tile_rows
from ..model.result import KPCAModel
from ..products.exact import ExactSummation
from ..products.implicit import Products, kernel_matrix
from ..products.rates import RATE, pass_seconds, value_seconds
from ..products.weighted import Coordinates
from ..rows.columns import check_same_columns
from ..rows.view import Rows
from ..solve.certificate import Bound, Certificate, cluster_labels
from ..solve.given import (
    GivenResult,
    MapColumns,
    certify_by_map,
    certify_vectors,
    independent,
    vector_angles,
)
from ..solve.sampled import residual_bound
from .gram import best_within
from .kpca import kpca
from .problem import Options, Problem, check_range, kernel_of_both, prepare
from .solution import PositiveWeightRows

_logger = logging.getLogger("fastkpca")

MAX_FEATURES = 1024
"""Features of the map that bounds what is orthogonal to the vectors."""
MAP_FRACTION = 0.1
"""Predicted seconds of that map, over those of the pass."""
MIN_MAP_SECONDS = 1e-3
MAP_RESIDUAL = 1e-12
"""Residual trace of the map over the trace of K at which the map stops adding features."""


@dataclass(frozen=True, eq=False, repr=False)
class VectorCertificate:
    """Intervals for the k largest eigenvalues of the Gram matrix, and how far given vectors agree with them.

    Attributes
    ----------
    eigenvalue_bounds : ndarray (k, 2), float64
        An interval around each of the k largest eigenvalues of the centred Gram matrix, k the rank of the vectors;
        descending, on the scale of ``KPCAModel.eigenvalues``. With ``center=False`` they are those of the Gram matrix.
        They count multiplicity: no eigenvalue above an upper bound has been missed, for any vectors.
    clusters : ndarray (k,), int
        Eigenvalues with one label cannot be told apart within their intervals.
    ritz_values : ndarray (k,)
        Rayleigh quotients: eigenvalues of the Gram matrix on the span of the vectors, descending.
    residuals : ndarray (k,)
        Norm of A v - theta v of each Ritz vector v of norm 1.
    ritz_error : float
        0 after a pass. From sampled rows, Ritz values are lower bounds, too low by ``ritz_error`` at most, and
        residuals are upper bounds.
    angle_bounds : ndarray (k,)
        Bound on the angle (radians) between each Ritz vector and the invariant subspace of a cluster of eigenvalues;
        pi / 2 where nothing is known.
    vector_clusters : ndarray (k,), int
        Label of that cluster; -1 where nothing is known, or where it is none of the k eigenvalues.
    bound_kind : str
        "guaranteed" or "probabilistic".
    failure_probability : float
        Bound on the probability, over random numbers drawn after the vectors were given, that an interval does not
        hold; 0.0 where ``bound_kind`` is "guaranteed".
    beyond : float
        Upper bound on the eigenvalues of the Gram matrix on the orthogonal complement of all vectors multiplied.
    fitted : bool
        True if the pass with the vectors did not reach ``tol``, and a fit of the rows supplied further bounds.
    sampled : bool
        True if the bounds are from a feature map and sampled rows, without a pass.
    n_vectors : int
        Columns that were given.
    kernel : Kernel
        With every parameter resolved.
    n_samples : int
    center : bool
    """

    eigenvalue_bounds: np.ndarray
    clusters: np.ndarray
    ritz_values: np.ndarray
    residuals: np.ndarray
    ritz_error: float
    angle_bounds: np.ndarray
    vector_clusters: np.ndarray
    bound_kind: str
    failure_probability: float
    beyond: float
    fitted: bool
    sampled: bool
    n_vectors: int
    kernel: Kernel
    n_samples: int
    center: bool
    _bounds: np.ndarray
    """Intervals of as many eigenvalues as columns were multiplied."""
    _left: tuple[float, float]
    """Bounds on trace and Frobenius norm of the complement."""

    @property
    def rank(self) -> int:
        """Number of independent columns among the vectors, after centring."""
        return len(self.ritz_values)

    @property
    def width(self) -> float:
        """Width of the widest interval, over the largest eigenvalue; infinite where that may be zero."""
        low, high = self.eigenvalue_bounds.T
        return float(np.max(high - low) / low[0]) if low[0] > 0.0 else np.inf

    def count_above(self, value: float) -> tuple[int, int]:
        """Number of eigenvalues of the Gram matrix above a value: at least, at most.

        Parameters
        ----------
        value : float

        Returns
        -------
        tuple of int
            As certain as the intervals.
        """
        t = as_float(value)
        if t is None or not np.isfinite(t):
            raise ValueError(f"value is {value!r}; give a number: eigenvalues above it are counted")
        (low, high), every = self._bounds.T, self.n_samples
        least = int(np.count_nonzero(low > t))
        if t < 0.0:
            return least, every
        trace, norm = self._left
        most = float(every)
        if self.beyond <= t:
            most = float(np.count_nonzero(high > t))
        elif t > 0.0:
            most = len(high) + np.floor(min(trace / t, (norm / t) ** 2, float(every)))
        return least, max(least, int(min(most, every)))

    def missed_above(self, value: float) -> tuple[int, int]:
        """Number of eigenvalues above a value that the vectors have missed: at least, at most.

        It is the number of eigenvalues above it (``count_above``) less the number of Ritz values above it.

        Parameters
        ----------
        value : float

        Returns
        -------
        tuple of int
        """
        least, most = self.count_above(value)
        found = int(np.count_nonzero(self.ritz_values > value))
        perhaps = int(np.count_nonzero(self.ritz_values + self.ritz_error > value))
        return max(least - perhaps, 0), max(most - found, 0)

    def __repr__(self) -> str:
        failing = f" (failure probability {self.failure_probability:.2g})" if self.failure_probability else ""
        how = "" if self.center else ", not centred"
        return (
            f"<VectorCertificate: {self.kernel!r}{how}, {self.n_vectors} vectors of rank {self.rank}, "
            f"n_samples={self.n_samples}, {self.bound_kind}{failing} intervals within {rounded_up(self.width)} of the "
            f"largest eigenvalue>"
        )

    def __str__(self) -> str:
        """A table of intervals and vectors."""
        failing = f", failure probability {self.failure_probability:.2g}" if self.failure_probability else ""
        how = (
            "a feature map and sampled rows"
            if self.sampled
            else f"one pass over the kernel values{' and a fit' * self.fitted}"
        )
        lines = [
            f"{self.n_vectors} vectors of rank {self.rank}, {self.n_samples} rows, {self.kernel!r}, "
            f"{'centred' if self.center else 'not centred'}",
            f"{self.bound_kind} intervals{failing}, from {how}",
            f"{'':>4} {'eigenvalue at least':>22} {'at most':>22} {'Ritz value':>22} {'angle at most':>14}",
        ]
        for i, (low, high) in enumerate(self.eigenvalue_bounds):
            own = f"{self.ritz_values[i]:>22.15g} {self.angle_bounds[i]:>14.3g}"
            lines.append(f"{i + 1:>4} {low:>22.15g} {high:>22.15g} {own}")
        value = self._level()
        least, most = self.missed_above(value)
        text = str(least) if least == most else f"at least {least} and at most {most}"
        lines.append(f"eigenvalues above {value:.6g} that the vectors have missed: {text}")
        return "\n".join(lines)

    def _level(self) -> float:
        """Just below the last Ritz value, beyond its rounding: missed eigenvalues above it are those that matter."""
        last = float(self.ritz_values[-1])
        return last - 1e-9 * abs(last)


def certify(
    X: Any,
    kernel: Any = None,
    V: Any = None,
    *,
    center: bool | None = None,
    sample_weight: Any = None,
    guaranteed: bool = False,
    failure_probability: float | None = None,
    tol: float | None = None,
    rows: int | None = None,
    memory_limit: int | str | None = None,
    n_threads: int | None = None,
    rng: Any = 0,
    progress: bool | Callable[[str, int, int], None] = False,
    **kernel_parameters: Any,
) -> VectorCertificate:
    r"""Intervals for the largest eigenvalues of the centred Gram matrix, from vectors that another program has found.

    Nothing is assumed of the vectors. Good ones give narrow intervals, wrong ones wide intervals, and both contain the
    eigenvalues. One pass over the kernel values is enough where eigenvalues fall.

    Parameters
    ----------
    X : array_like (N, d)
        Rows, as for ``kpca``; or the Gram matrix (N, N) for ``kernel="precomputed"``.
    kernel : str, Kernel, object with ``block``, or callable, optional
        As for ``kpca``. Default: that of a fitted object given as ``V``, else "gaussian".
    V : array_like (N, k), KPCAModel, or fitted KernelPCA
        Columns near the leading eigenvectors: of any length, in any order, dependent or wrong, but finite. From
        ARPACK, single precision, or a loop of your own. A fitted KernelPCA of scikit-learn brings its kernel and its
        ``eigenvectors_``, a ``KPCAModel`` its kernel and its scores. One entry for each row: a row of weight w counts
        as w equal rows, each with this entry.
    center : bool, optional
        False: of the Gram matrix as it is. Default: True, or as the fitted object.
    sample_weight : array_like (N,), optional
        As for ``kpca``; the entries of rows of weight zero are not read.
    guaranteed : bool
        Only intervals that hold for certain.
    failure_probability : float, optional
        With which intervals that rest on random numbers may fail: 1e-6 by default. They are drawn after ``V`` is
        given, and only where ``tol`` asks for more than one pass shows.
    tol : float, optional
        Largest width of an interval, relative to the largest eigenvalue. Where one pass does not reach it, a fit
        (``kpca`` with this ``tol``) follows, whose intervals bound what is orthogonal to the vectors. Default: one
        pass, of any width.
    rows : int, optional
        Rows to draw in place of the pass, at most 4096. Kernel values of the pivots of a feature map with all rows, and
        of the rows drawn with each other, are all that is computed: a tenth of a pass. The intervals are wider. Where
        they are wider than ``tol``, and for a kernel without feature maps, the pass follows.
    memory_limit : int or str, optional
        Bytes, or "500MB", in addition to the rows and the vectors; 2 GiB by default.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    progress : bool or callable
    **kernel_parameters
        Parameters of the kernel by name.

    Returns
    -------
    VectorCertificate
        Intervals, Ritz values, residuals and angles; ``missed_above(t)`` counts the eigenvalues above t that the
        vectors have missed. ``print`` shows a table.

    Raises
    ------
    ValueError, TypeError
        For wrong input: vectors that are not finite, or of another number of rows.

    Warns
    -----
    CertificateWarning
        An interval is wider than ``tol`` asks for.

    Notes
    -----
    With A the centred Gram matrix, V an orthonormal basis of the columns, T = V'AV, R = AV - VT, P = I - VV' and
    :math:`\mu \ge \lambda_1(PAP)`,

    .. math:: \lambda_i(T) \le \lambda_i(A) \le
       \lambda_i \begin{pmatrix} T & R' \\ R & \mu I \end{pmatrix}.

    One product A V, in float64, brings T, R and the Frobenius norm of A. The bound :math:`\mu` is the least of what
    trace, norm and a feature map of a few hundred pivots leave for the complement. Where p Ritz values lie above the
    upper bound :math:`\beta` of eigenvalue p + 1 that a fit has found, it is
    :math:`\beta + |R_p|^2 / (\theta_p - \beta)`.

    With ``rows`` the product is that of a feature map, :math:`G = H \Phi \Phi' H`. The interval of eigenvalue i is
    :math:`[\lambda_i(G), \lambda_i(G) + \nu]`, where :math:`\nu` bounds the largest eigenvalue of
    :math:`K - \Phi \Phi'` with a probability, from the rows drawn.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from scipy.sparse.linalg import eigsh
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> K = fk.gram(X, "gaussian", sigma=2.0)
    >>> values, V = eigsh(K.centered(), 4)
    >>> found = fk.certify(X, "gaussian", V, sigma=2.0)
    >>> bool(found.width < 1e-9), found.missed_above(0.9 * values.min())
    (True, (0, 0))
    >>> fk.certify(X, "gaussian", V[:, :3], sigma=2.0).missed_above(0.9 * values.max())  # without the largest
    (1, 1)
    """
    draws = 0 if rows is None else check_count(rows, "rows", most=DRAWS_PER_PASS)
    given = _given(V)
    if given.kernel is not None:
        kernel, kernel_parameters = kernel_of_both(given.kernel, kernel, kernel_parameters, certify, "V"), {}
    center = given.center if center is None else center
    sample_weight = given.weights if sample_weight is None else sample_weight
    ask = Options.of(certify, locals() | _NOT_ASKED | {"c": 1, "standardize": given.standardize})
    with parallel.reporter(progress) as report, parallel.blas_threads():
        problem = prepare(X, ask, report)
        check_range(problem)
        if draws and guaranteed:
            raise ValueError(
                "rows are drawn at random, and guaranteed=True allows no random bound; leave one of them out"
            )
        if given.model is not None:
            check_same_columns(problem.rows, given.model.n_features, given.model.feature_names)
        with naming(problem.kernel):
            reached = _reached(problem, given.vectors, draws, tol)
    found = _result(problem, reached, given.vectors.shape[1])
    if tol is None or found.width <= problem.target.tol:
        return found
    spent = problem.target.failure_of("samples") if draws else 0.0
    if draws:
        failure_probability = problem.target.failure_probability - spent
    c = min(len(found.clusters) + 1, problem.rank)
    options = {"center": center, "sample_weight": sample_weight, "standardize": given.standardize, "tol": tol}
    options |= {"guaranteed": guaranteed, "failure_probability": failure_probability}
    options |= {"memory_limit": memory_limit, "n_threads": n_threads, "rng": rng, "progress": progress}
    known = _fitted(X, problem.kernel.unbound(), c, options)
    if known is not None:
        found = _result(problem, reached.tightened(known.or_failing(spent)), given.vectors.shape[1], fitted=True)
    if not found.width <= problem.target.tol:
        warn_caller(_text(found, problem.target.tol, reached.certificate.rounding), CertificateWarning)
    return found


def _fitted(X: Any, kernel: Kernel, c: int, options: dict[str, Any]) -> Certificate | None:
    """The intervals of a fit of these rows; None where it reaches none."""
    with silenced(CertificateWarning, ComponentsWarning):
        try:
            model = kpca(X, kernel, c, return_scores=False, **options)
        except (NotConvergedError, NoVarianceError):
            return None
    bounds, angles = model.eigenvalue_bounds, model.angle_bounds
    return Certificate(bounds, angles, model.clusters, None, 0.0, model.failure_probability)


_NOT_ASKED: dict[str, Any] = {
    "method": "auto",
    "features": "auto",
    "products": "auto",
    "like": None,
    "keep_moments": False,
    "return_scores": False,
}
"""Arguments of ``kpca`` that have no meaning here."""
_NEED = "the vectors as columns of finite real numbers, shape (N, k), one entry for each row of X"


@dataclass(frozen=True)
class _Given:
    """Vectors, and what a fitted object that they are from says of its fit.

    Attributes
    ----------
    vectors : ndarray (N, k)
    kernel : Kernel or None
    center, standardize : bool
    weights : ndarray (N,) or None
    model : KPCAModel or None
    """

    vectors: np.ndarray
    kernel: Kernel | None = None
    center: bool = True
    standardize: bool = False
    weights: Any = None
    model: KPCAModel | None = None


def _given(V: Any) -> _Given:
    if V is None:
        raise TypeError(f"certify needs V: give {_NEED}, or a fitted KernelPCA")
    V = getattr(V, "model_", V)  # of an estimator of fastkpca's
    if isinstance(V, KPCAModel):
        return _Given(V.score, V.kernel, V.center, V.scale is not None, V.sample_weight, V)
    if isinstance(V, type) or hasattr(V, "get_params"):
        if not hasattr(V, "eigenvectors_"):
            raise TypeError(f"V is {V!r}, which has no eigenvectors_; fit it before, or give {_NEED}")
        return _Given(_vectors(V.eigenvectors_), _kernel_of_estimator(V))
    return _Given(_vectors(V))


def _vectors(V: Any) -> np.ndarray:
    one = np.ndim(V) == 1 and not np.ma.isMaskedArray(V)
    array = check_numbers(np.reshape(V, (-1, 1)) if one else V, "V", _NEED, (None, None))
    if not array.shape[1]:
        raise ValueError(f"V has no columns; give {_NEED}")
    return array


def _kernel_of_estimator(estimator: Any) -> Kernel:
    """The kernel of a fitted KernelPCA of scikit-learn."""
    name = estimator.kernel
    if not isinstance(name, str):
        raise TypeError(
            f"V was fitted with kernel={name!r}, a function of two rows; give V.eigenvectors_ as V, and a kernel: a "
            "name, or a function of two tiles of rows"
        )
    cls = type(get_kernel(name))
    known = {*cls.parameters, *cls.aliases}
    own = {"gamma": getattr(estimator, "gamma_", None), "degree": estimator.degree, "coef0": estimator.coef0}
    return get_kernel(name, **{key: value for key, value in own.items() if key in known})


def _reached(problem: Problem, V: np.ndarray, draws: int, tol: float | None) -> GivenResult:
    """Intervals from sampled rows, where there are ``draws`` and these meet ``tol``; else from a pass."""
    target, budget, kernel, n = problem.target, problem.budget, problem.kernel, problem.rows.n_samples
    if len(V) != n:
        hint = "; give V.T, vectors are columns" if V.shape[1] == n else f"; give {_NEED}"
        raise ValueError(f"V has {len(V)} rows, and X has {n}{hint}")
    present = PositiveWeightRows.of(problem.rows)
    rows, given = present.rows, V.shape[1]
    V = V if present.index is None else V[present.index]
    everywhere = problem.rows if problem.rows.distributed and present.index is None else rows
    product = ExactSummation(kernel, everywhere, n_threads=budget.n_threads, progress=budget.report)
    sizes = problem.largest_value, problem.entry_error
    matrix, entries = kernel_matrix(kernel, rows, Products(product), *sizes, budget.n_threads, center=target.center)
    columns = independent(entries.coordinates.block(V), n_threads=budget.n_threads)
    if not columns.shape[1]:
        what = "constant, which centring makes zero" if target.center else "zero"
        raise ValueError(f"all columns of V are {what}; give {_NEED}")
    known, feature_map = None, _feature_map(problem, rows, given)
    if feature_map is not None:
        known, residual = _map_columns(feature_map, rows, entries.coordinates, budget.n_threads)
        if draws:
            bound = _sampled(problem, feature_map, rows, residual, draws)
            reached = certify_by_map(known, columns, bound, budget.n_threads)
            if tol is None or _result(problem, reached, given).width <= target.tol:
                return reached
    _logger.info("certify: a pass with %d vectors", columns.shape[1])
    return certify_vectors(matrix, columns, known)


def _text(found: VectorCertificate, tol: float, rounding: float) -> str:
    help = "vectors nearer to eigenvectors, fewer of them, or a larger tol would help"
    if 2.0 * rounding > 0.8 * tol * found.eigenvalue_bounds[0, 1]:
        help = "that is rounding in float64; a larger tol helps"
    return (
        f"the widest of {len(found.clusters)} intervals is {rounded_up(found.width)} of the largest eigenvalue, tol is "
        f"{tol:g}; {help}"
    )


def _feature_map(problem: Problem, rows: Rows, columns: int) -> FeatureMap | None:
    """A map whose features of all rows take at most `MAP_FRACTION` of a pass; None for a kernel without maps."""
    kernel, budget, n = problem.kernel, problem.budget, len(rows)
    if kernel.without_maps or not kernel.positive_semidefinite:
        return None
    value = value_seconds(kernel, rows.n_features)
    seconds = pass_seconds(kernel, n, n, rows.n_features, columns, square=True)
    m = min(MAX_FEATURES, n, int(budget.memory / (48.0 * n)))
    limit = max(MAP_FRACTION * seconds, MIN_MAP_SECONDS)
    while m and _map_seconds(n, m, columns, value) > limit:
        m = int(0.8 * m)
    if m <= columns:
        return None
    offer = best_within(kernel, problem.data, rows, MAP_RESIDUAL, m, "auto", budget.n_threads)
    feature_map = offer.build(problem.data.sample)
    return feature_map if feature_map.n_features else None


def _map_columns(
    feature_map: FeatureMap, rows: Rows, coordinates: Coordinates, n_threads: int
) -> tuple[MapColumns, np.ndarray]:
    """Features of all rows, and the rows' residuals, times their weights."""
    n, D = len(rows), feature_map.n_features
    step = pass_tile_rows(feature_map, n)
    features, residual = np.empty((n, D)), np.empty(n)

    def task(i: int) -> None:
        tile = slice(i * step, min(n, (i + 1) * step))
        X = rows.tile(tile.start, tile.stop)
        features[tile] = feature_map.features(X)
        residual[tile] = feature_map.residual(X, features[tile])

    parallel.each(task, -(-n // step), n_threads=n_threads)
    weights = np.ones(n) if rows.weights is None else np.asarray(rows.weights, dtype=np.float64)
    size = float(np.einsum("ij,ij,i->", features, features, weights)) + float(residual @ weights)
    _logger.info("certify: a map of %d features for the complement of the vectors", D)
    known = MapColumns(
        coordinates.block(features),
        float(residual @ weights) * (1.0 + 1e-10),
        feature_map.rounding * float(np.sqrt(size)),
        feature_map.defect_norm(float(weights.sum()), size),
    )
    return known, (residual + feature_map.defect) * weights


def _sampled(problem: Problem, feature_map: FeatureMap, rows: Rows, residual: np.ndarray, count: int) -> Bound:
    """Bound on the largest eigenvalue of what the map leaves, from ``count`` rows drawn now: vectors and map are fixed.

    Its failure probability is the share of samples; the remainder is that of a fit that follows.
    """
    seed = int(problem.rng.integers(2**63))
    draws = drawn_among([residual], [np.arange(len(rows))], 0, count, seed)
    assert draws is not None
    _logger.info("certify: %d sampled rows", count)
    return residual_bound(
        feature_map,
        problem.kernel,
        rows,
        draws.total * (1.0 + 1e-10),
        draws,
        count=count,
        entry_error=problem.entry_error,
        failure=problem.target.failure_of("samples"),
    )


def _map_seconds(n: int, m: int, columns: int, value: float) -> float:
    """Predicted seconds to choose m pivots, to compute their features of n rows, and to project these off the
    columns."""
    a_row = m * value + m * m * (1.0 / RATE.solves + 2.0 / RATE.squares) + 16.0 * m * columns / RATE.multiplications
    return n * a_row + RATE.choosing * min(n, 4096) * m * (value + m / RATE.solves) + RATE.proposal * m


def _result(problem: Problem, reached: GivenResult, given: int, *, fitted: bool = False) -> VectorCertificate:
    certificate, own, center = reached.certificate, reached.own, problem.target.center
    bounds, k = certificate.eigenvalue_bounds, len(own.theta)
    known = np.vstack([bounds, [-np.inf, reached.beyond]])
    angles, belongs = vector_angles(own, known, reached.left_out)
    if center:  # the vector of ones has the eigenvalue zero
        bounds = np.column_stack([bounds[:, 0], np.maximum(bounds[:, 1], 0.0)])
    labels = cluster_labels(known)
    return VectorCertificate(
        eigenvalue_bounds=bounds[:k],
        clusters=labels[:k],
        ritz_values=own.theta.copy(),
        residuals=np.sqrt(np.maximum(own.residual_gram.diagonal(), 0.0)),
        ritz_error=reached.left_out,
        angle_bounds=angles,
        vector_clusters=np.where(belongs > labels[k - 1], -1, belongs),
        bound_kind=certificate.bound_kind,
        failure_probability=certificate.failure_probability,
        beyond=max(reached.beyond, 0.0) if center else reached.beyond,
        fitted=fitted,
        sampled=reached.left_out > 0.0,
        n_vectors=given,
        kernel=problem.kernel.unbound(),
        n_samples=problem.rows.n_samples,
        center=center,
        _bounds=bounds,
        _left=reached.left,
    )
