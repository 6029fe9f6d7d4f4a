"""The routes from a prepared problem to components: dense, features, krylov. One function each, one result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg

from ..base import parallel
from ..base.protocol import LARGEST, LEAST, FeatureMap, Kernel, Moments, Offer, Summary, Summation
from ..base.rounding import EPS, rounding_factor
from ..errors import CertificateWarning, ComponentsWarning, NotConvergedError, NoVarianceError, rounded_up, warn_caller
from ..kernels.precomputed import Precomputed
from ..maps.passes import accumulate, feature_moments
from ..maps.pivots import pivot_map
from ..model.plan import Plan
from ..model.projectors import FeatureProjector, SampleProjector
from ..model.result import KPCAModel
from ..products.exact import ExactSummation
from ..products.matrix import MatrixSummation, gram_matrix
from ..products.operators import GramOperator
from ..products.weighted import WeightedExactSummation, WeightedSummation
from ..rows.view import Rows
from ..solve import certificate
from ..solve.beyond import FeatureInfo
from ..solve.certificate import Certificate
from ..solve.costs import TooDearError, default_block_size
from ..solve.krylov import block_krylov
from ..solve.lanczos import LeadingPairs
from ..solve.moments import largest_eigenpairs, leading_axes, principal_axes
from ..solve.target import Budget, KernelMatrix, Target
from .planning import DEFAULT_MEMORY, dense_candidate, krylov_room, most_pivots
from .product_choice import InStrips, Product

__all__ = ["Problem", "Solution", "components", "model_of", "solve"]

ROUNDED = 1e-11
"""Width of an interval over the largest eigenvalue below which exact products promise no narrower ones: rounding."""
SOLVER_SHARE = 0.25
"""Of tol, for the eigensolver of a moment held as an operator; the rest is for what the map leaves out."""


@dataclass(frozen=True)
class Problem:
    """A validated, resolved kernel PCA problem."""

    rows: Rows
    kernel: Kernel
    data: Summary
    c: int | float | None
    tol: float
    max_passes: int
    memory_limit: int | None
    n_threads: int
    rng: np.random.Generator
    dtype: np.dtype
    n_columns: int
    forced: bool
    report: parallel.Progress | None = None
    weight_sum: float | None = None
    feature_names: tuple[str, ...] | None = None
    capped: bool = False  # the memory limit is what RLIMIT_AS leaves
    keeps_scores: bool = True  # in memory
    like: KPCAModel | None = None  # its feature map is taken, and not improved on

    @property
    def count(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(self.data.n_samples) if self.weight_sum is None else self.weight_sum


@dataclass(frozen=True)
class Solution:
    """Components with their certificate; ``total`` is the interval of tr(Kc).

    ``score`` holds the scores where the route has them anyway (float64), else they are a pass of the projector;
    ``message`` says what the certificate falls short of, and what would help.
    """

    eigenvalues: np.ndarray
    certificate: Certificate
    total: tuple[float, float]
    projector: FeatureProjector | SampleProjector
    info: dict[str, Any]
    score: np.ndarray | None = field(default=None, repr=False)
    message: str = ""
    moments: Moments | None = field(default=None, repr=False)


def solve(problem: Problem, plan: Plan) -> Solution:
    """Run the route that the plan chose."""
    _check_range(problem)
    route = {"dense": _dense, "features": _features, "krylov": _exactly}[plan.method]
    return route(problem, plan)


def _exactly(problem: Problem, plan: Plan) -> Solution:
    """Block Krylov, or LAPACK where that is, or turns out to be, the cheaper of the two.

    How many passes there will be is hard to predict where the spectrum is flat. Left when it has cost what LAPACK would
    cost, a run is never much dearer than twice the better way.
    """
    other = plan.dense
    if other is None or problem.forced:
        return _krylov(problem, plan)
    assert plan.krylov is not None
    if other.seconds < plan.krylov.seconds:
        return _dense(problem, plan)
    try:
        found = _krylov(problem, plan, other.seconds)
    except TooDearError as error:
        found = _dense(problem, plan)
        return replace(found, info=found.info | {"krylov_tried": error.passes})
    return found


def _dense(problem: Problem, plan: Plan) -> Solution:
    """The centred Gram matrix, whole, and LAPACK; the reference for every other route.

    With weights D = diag(w) it is D^(1/2) (I - 1 w'/W) K (I - w 1'/W) D^(1/2): the matrix of the rows repeated w_i
    times has the same eigenvalues, and its eigenvectors repeat those of this one, divided by w_i^(1/2).
    """
    problem = replace(problem, rows=problem.rows.loaded())
    rows, present = problem.rows.present()
    n, kernel, weights = rows.n_samples, problem.kernel, rows.weights
    K = gram_matrix(kernel, rows, n_threads=problem.n_threads, progress=problem.report)
    largest = float(max(K.max(), -K.min()))
    root = np.ones(n) if weights is None else np.sqrt(np.asarray(weights, dtype=np.float64))
    count = float(root @ root)
    norm, means = _weighted_norm(K, root), K.mean(axis=0) if weights is None else root**2 @ K / count
    grand = means.mean() if weights is None else root**2 @ means / count
    step = parallel.tile_rows(n, least=1)
    for start in range(0, n, step):  # in place: no second N x N
        part = K[start : start + step]
        part -= means
        part -= means[start : start + step, None]
        part += grand
        if weights is not None:
            part *= root[start : start + step, None]
            part *= root
    total = float(np.trace(K))
    # one more than asked for: it says how far the last cluster is from the rest
    asked = problem.c + 1 if isinstance(problem.c, int) else n
    eigenvalues, vectors = largest_eigenpairs(K, asked)
    del K, part  # overwritten; scores and coefficients need the room
    lowest = float(eigenvalues[-1]) if asked >= n else None
    entry_error = (kernel.entry_error(problem.data, np.dtype(np.float64)) or 0.0) * count
    kept = _kept(eigenvalues, 2 * EPS * count * largest, total, problem, entry_error)
    proof = certificate.dense_certificate(eigenvalues, kept, n=n, norm=norm, entry_error=entry_error / n)
    eigenvalues, vectors = eigenvalues[:kept].copy(), vectors[:, :kept]
    if weights is not None:
        vectors = vectors / root[:, None]
    sample = problem.data.sample_index if present is None else np.searchsorted(present, problem.data.sample_index)
    score = vectors * (_signs(vectors[sample]) * np.sqrt(eigenvalues))
    slack = 4 * EPS * count * largest + entry_error
    info = {"method": "dense", "passes": 1} | _negative(lowest, problem)
    coeff = score / eigenvalues
    if weights is not None:
        coeff *= (root**2)[:, None]
    # projecting relies on 1'coeff = 0, which LAPACK keeps to u lambda_1 / lambda_i only
    coeff -= coeff.mean(axis=0) if weights is None else np.outer(root**2 / count, coeff.sum(axis=0))
    if present is not None:  # rows of no weight are projected as new ones are
        coeff, means = _scattered(coeff, present, problem), _scattered(means, present, problem)
    projector = _sample_projector(problem, coeff, means)
    message = _rounding_message(proof, eigenvalues, problem)
    kept_score = score if present is None else None
    return Solution(eigenvalues, proof, (total - slack, total + slack), projector, info, kept_score, message)


def _weighted_norm(K: np.ndarray, root: np.ndarray) -> float:
    """|D^(1/2) K D^(1/2)|_F for D^(1/2) = diag(root)."""
    if np.all(root == 1.0):
        return float(np.linalg.norm(K))
    step = parallel.tile_rows(len(K), least=1)
    parts = (np.linalg.norm(K[i : i + step] * root[i : i + step, None] * root) for i in range(0, len(K), step))
    return float(np.sqrt(sum(float(x) ** 2 for x in parts)))


def _scattered(values: np.ndarray, present: np.ndarray, problem: Problem) -> np.ndarray:
    """These for the rows that are present, zero for the others."""
    whole = np.zeros((problem.data.n_samples, *values.shape[1:]))
    whole[present] = values
    return whole


def _features(problem: Problem, plan: Plan) -> Solution:
    """One pass over the rows for the moments of the features; scores are a second pass."""
    offer = plan.chosen.offer
    assert isinstance(offer, Offer)
    with parallel.blas_threads():
        feature_map = offer.build(problem.data.sample)
        moments, eigenvalues, axes, solved = _leading(feature_map, problem)
        rounds = 0
        free = problem.like is None
        most = most_pivots(problem.data, problem.rows, problem.c, problem.memory_limit, problem.keeps_scores)
        while free and _misses(moments, eigenvalues, problem) and rounds < 3:
            # a sample can miss a small far cluster; all rows know where the residual lies
            if not problem.forced and plan.krylov_is_cheaper(problem.data.n_samples, 3 * feature_map.n_features // 2):
                break
            more = feature_map.refined(
                problem.rows,
                tol=0.5 * problem.tol * _top(eigenvalues) / _trace_of(moments),
                max_features=min(most, 2 * feature_map.n_features + 100),
                rng=problem.rng,
                n_threads=problem.n_threads,
            )
            if more is feature_map:
                break
            feature_map, rounds = more, rounds + 1
            del moments, axes  # of the map before: the next takes their room
            moments, eigenvalues, axes, solved = _leading(feature_map, problem)
    if _misses(moments, eigenvalues, problem) and not problem.forced and problem.c is not None and plan.krylov:
        found = _exactly(problem, plan)
        return replace(found, info=found.info | {"features_tried": plan.name})
    return components(problem, feature_map, moments, eigenvalues, axes, solved)


def components(
    problem: Problem,
    feature_map: FeatureMap,
    moments: Moments,
    eigenvalues: np.ndarray,
    axes: np.ndarray,
    solved: LeadingPairs | None,
    reference: np.ndarray | None = None,
) -> Solution:
    """Components and their certificate from the moments of all rows; nothing is read.

    ``reference`` (D, k): axes that give the signs where there is no sample.
    """
    most = _rank(problem)  # what a map's defect adds beyond is not of theirs
    eigenvalues, axes = eigenvalues[:most], axes[:, :most]
    floor = feature_map.rounding**2 * _trace_of(moments) + 4 * EPS * len(eigenvalues) * _top(eigenvalues)
    sums = certificate.FeatureSums(
        n=problem.data.n_samples,
        trace=moments.trace,
        residual_trace=moments.residual_trace,
        kernel_trace=_trace_of(moments),
        defect=_defect(feature_map, moments),
        rounding=feature_map.rounding,
        weight_sum=moments.count,
    )
    unseen = moments.residual_trace + sums.defect_norm
    kept = _kept(eigenvalues, floor, moments.trace + moments.residual_trace, problem, unseen)
    proof = certificate.feature_certificate(
        eigenvalues,
        kept,
        sums,
        solved=None if solved is None else solved.certificate,
        solved_residual=0.0 if solved is None else solved.residual,
    )
    total = certificate.feature_trace(sums)
    eigenvalues, axes = eigenvalues[:kept].copy(), np.ascontiguousarray(axes[:, :kept])
    constant = moments.mean @ axes
    if reference is None:
        axes = axes * _signs(feature_map.apply(problem.data.sample, axes) - constant)
    else:  # as the component of the reference that it resembles most
        axes = axes * _signs(reference.T @ axes)
    info = {
        "method": "features",
        "passes": 0,
        "n_features": feature_map.n_features,
        "residual_trace": moments.residual_trace,
        "radius": problem.data.radius,
    }
    projector = FeatureProjector(feature_map, np.ascontiguousarray(axes), moments.mean)
    message = _feature_message(proof, eigenvalues, feature_map, problem)
    return Solution(eigenvalues, proof, total, projector, info, message=message, moments=moments)


def model_of(problem: Problem, solution: Solution, plan: Plan, score: Any, *, keep_moments: bool) -> KPCAModel:
    """The result as the user gets it; a certificate that falls short is a warning, none at all an error."""
    low, high = (x / (problem.count - 1) for x in solution.total)
    model = KPCAModel(
        eigenvalues=solution.eigenvalues,
        eigenvalue_bounds=solution.certificate.eigenvalue_bounds,
        bound_kind=solution.certificate.bound_kind,
        failure_probability=solution.certificate.failure_probability,
        angle_bounds=solution.certificate.angle_bounds,
        clusters=solution.certificate.clusters,
        total_variance=high,
        total_variance_bounds=(low, high),
        kernel=problem.kernel.unbound(),
        plan=plan,
        info=solution.info,
        n_samples=problem.data.n_samples,
        n_features=problem.n_columns,
        shift=problem.data.shift,
        dtype=problem.dtype,
        projector=solution.projector,
        _score=score,
        sample_weight=_kept_weights(problem, solution, score),
        weight_sum=problem.weight_sum,
        feature_names=problem.feature_names,
        _moments=solution.moments if keep_moments else None,
    )
    if not np.isfinite(model.eigenvalue_bounds).all():
        raise NotConvergedError(f"no interval was reached: {solution.message}", partial=model)
    if solution.message:
        warn_caller(solution.message, CertificateWarning)
    return model


def _kept_weights(problem: Problem, solution: Solution, score: Any) -> np.ndarray | None:
    """Weights of the rows that the model holds, or holds the scores of; not the user's array, which may change."""
    if isinstance(solution.projector, SampleProjector):
        return solution.projector.weights
    weights = None if score is None else problem.rows.weights
    return None if weights is None else np.array(weights, dtype=np.float64)


def _leading(feature_map: FeatureMap, problem: Problem) -> tuple[Moments, np.ndarray, np.ndarray, LeadingPairs | None]:
    moments = feature_moments(feature_map, problem.rows, n_threads=problem.n_threads, progress=problem.report)
    if moments.trace <= moments.indefinite and _all_equal(problem):  # all that could be found is the map's errors
        return moments, np.zeros(1), np.zeros((feature_map.n_features, 1)), None
    limit = problem.memory_limit
    found = leading_axes(moments, problem.c, tol=SOLVER_SHARE * problem.tol, rank=_rank(problem), memory_limit=limit)
    return moments, *found


def _all_equal(problem: Problem) -> bool:
    """Whether the kernel's values tell the two ends of the rows' box apart by no more than their rounding.

    Asked only of maps whose features err by more than rounding. Their kernels fall with the distance along each axis,
    so no two rows differ by more than these ends.
    """
    K = problem.kernel.block(problem.data.box, problem.data.box)
    return bool(K[0, 0] - 2.0 * K[0, 1] + K[1, 1] <= 8 * EPS * K[0, 0])


def _rank(problem: Problem) -> int:
    """Directions that n centred rows have at most: n - 1."""
    weights = problem.rows.weights
    return int(problem.data.n_samples if weights is None else np.count_nonzero(weights)) - 1


def _trace_of(moments: Moments) -> float:
    """tr K."""
    return moments.trace + moments.count * float(moments.mean @ moments.mean) + moments.residual_trace


def _defect(feature_map: FeatureMap, moments: Moments) -> float:
    """Defect of an entry, for all rows and not only the pivots: its norm over n."""
    return feature_map.defect_norm(moments.count, _trace_of(moments)) / moments.count


def _misses(moments: Moments, eigenvalues: np.ndarray, problem: Problem) -> bool:
    return moments.residual_trace > problem.tol * _top(eigenvalues)


def _top(eigenvalues: np.ndarray) -> float:
    """The largest, or zero: rows that are all equal leave none."""
    return max(float(eigenvalues[0]), 0.0) if len(eigenvalues) else 0.0


def _krylov(problem: Problem, plan: Plan, budget: float = np.inf) -> Solution:
    """Block Krylov on exact products, with a certificate after each pass; TooDearError beyond the budget."""
    given = problem.rows
    problem = replace(problem, rows=problem.rows.loaded())
    rows, present = problem.rows.present()
    n, kernel = rows.n_samples, problem.kernel
    # exact products of rows that are distributed are made where these are
    everywhere = given if given.distributed and present is None else rows
    asked = problem.c
    product: Summation
    search: Summation | None = None
    way = plan.krylov
    assert way is not None
    assert isinstance(way.offer, Product)
    exact = way.name == "exact"
    k = asked if isinstance(asked, int) else min(50, n)
    basis, columns = krylov_room(problem.data, given, way, k, problem.memory_limit)
    if not exact:
        product = InStrips(way.offer.build(rows, None, problem.n_threads), columns)
    elif way.offer.memory:
        K = gram_matrix(kernel, rows, n_threads=problem.n_threads, progress=problem.report)
        product = MatrixSummation(K, n_threads=problem.n_threads)
    else:
        product = ExactSummation(kernel, everywhere, n_threads=problem.n_threads)
        if _fits_float32(problem):
            search = ExactSummation(kernel, everywhere, n_threads=problem.n_threads, dtype=np.float32)
    diagonal = GramOperator(kernel, product, rows, None).diagonal()
    weights = None if rows.weights is None else np.asarray(rows.weights, dtype=np.float64)
    count = float(n) if weights is None else float(weights.sum())
    trace = float(diagonal.sum() if weights is None else diagonal @ weights)
    # entries err by e, and the weighted matrix by sum w times that in norm
    entry_error = (kernel.entry_error(problem.data, np.dtype(np.float64)) or 0.0) * (count / n)
    weighted: WeightedSummation | None = None
    if weights is not None:
        size = count * max(_largest(problem), float(np.abs(diagonal).max()))
        extra = 4.0 * rounding_factor(n) * EPS * (trace if kernel.positive_semidefinite else size) / n
        if exact:
            weighted = WeightedExactSummation(product, weights, extra, kernel, rows, problem.n_threads)
        else:
            weighted = WeightedSummation(product, weights, extra)
        product, search = weighted, None if search is None else WeightedSummation(search, weights)
    with parallel.blas_threads():
        start, known = None, None
        if kernel.positive_semidefinite:
            start, known = _krylov_start(problem, rows, way.n_features, weighted)
        found = block_krylov(
            KernelMatrix(product, search, trace, kernel.positive_semidefinite, entry_error, known),
            Target(asked, problem.tol) if isinstance(asked, int) else Target(min(10, n - 1), problem.tol, asked),
            Budget(problem.max_passes, basis, way.offer.once, budget, _lapack_instead(problem)),
            start=start,
            rng=problem.rng,
            progress=problem.report,
        )
    total = trace - n * found.grand_mean
    size = max(abs(trace), float(np.abs(found.theta).max()), -found.negative_end)
    above = found.certificate.eigenvalue_bounds[:, 1] - found.theta
    floor = 2 * EPS * size
    if not kernel.positive_semidefinite:  # beside large negative ones, zeros come out as what rounding left of them
        # (without errors of entries that the kernel states, which may be far above all of them)
        floor = max(floor, min(found.certificate.rounding, 64 * EPS * np.sqrt(n) * size))
    kept = _kept(found.theta, floor, total, problem, above)
    eigenvalues = found.theta[:kept].copy()
    images, vectors, means = found.images[:, :kept], found.vectors[:, :kept], found.row_means
    if weighted is not None:
        images, vectors = weighted.reflect(images) / weighted.root[:, None], weighted.reflect(vectors)
        vectors *= weighted.root[:, None]
        means = weighted.row_means(means)
    # score = Kc @ coeff to rounding, as for new rows: the image, not the vector times its Ritz value
    score = images / np.sqrt(eigenvalues)
    sample = problem.data.sample_index if present is None else np.searchsorted(present, problem.data.sample_index)
    signs = _signs(score[sample])
    score *= signs
    coeff = vectors * (signs / np.sqrt(eigenvalues))
    # the mean of all entries errs by no more than an entry does
    slack = 4 * EPS * n * size + n * (entry_error + product.error_bound)
    info = {"method": "krylov", "products": way.name, "passes": found.passes, "search_passes": found.search_passes}
    info |= {"product_error": float(product.error_bound)} if product.error_bound else {}
    info |= {"widths": _history(found.history), "search_widths": _history(found.search_history)}
    info |= _negative(found.negative_end, problem)
    if present is not None:  # rows of no weight are projected as new ones are
        coeff, means = _scattered(coeff, present, problem), _scattered(means, present, problem)
    projector = _sample_projector(problem, coeff, means)
    proof = _first(found.certificate, kept)
    kept_score = score if present is None else None
    return Solution(eigenvalues, proof, (total - slack, total + slack), projector, info, kept_score, found.message)


def _lapack_instead(problem: Problem) -> str:
    """Where a flat spectrum keeps block Krylov from a narrow interval, LAPACK finds one all the same."""
    way = dense_candidate(problem.data, problem.rows, problem.c, problem.memory_limit or DEFAULT_MEMORY)
    room = f" and memory_limit='{np.ceil(way.memory / 1e6):.0f}MB'" if way.obstacle else ""
    return f"method='dense'{room} (LAPACK, some {way.seconds:.2g} seconds) reaches what rounding allows"


def _history(pairs: Sequence[tuple[int, float]]) -> list[list[float]]:
    """[pass, width] as JSON has them, of the passes after which a width was known."""
    return [[passes, width] for passes, width in pairs if np.isfinite(width)]


def _fits_float32(problem: Problem) -> bool:
    """Whether rows and values are well within float32: products and sums need room on either side."""
    # distances are formed in units of the kernel's own
    rows = problem.kernel.translation == "kernel" or 1e-15 < problem.data.radius < 1e15
    if not (rows and 1e-25 < _largest(problem) < 1e30):
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # a parameter may be beyond float32
        X = _few_rows(problem, 64).astype(np.float32)
        return bool(np.isfinite(problem.kernel.block(X, X)).all())


def _few_rows(problem: Problem, most: int) -> np.ndarray:
    sample = problem.data.sample
    return sample[np.linspace(0, len(sample) - 1, min(most, len(sample))).astype(np.intp)]


def _largest(problem: Problem) -> float:
    """Largest |k| among a few rows of the sample, and on its diagonal (for semidefinite kernels the largest of all)."""
    sample, X = problem.data.sample, _few_rows(problem, 256)
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is named where it is met
        block, diagonal = problem.kernel.block(X, X), problem.kernel.diagonal(sample)
    return max(float(np.abs(block).max()), float(np.abs(diagonal).max()))


def _check_range(problem: Problem) -> None:
    """Norms and bounds need squares of kernel values and of their errors, N^2 of them."""
    largest = _largest(problem)
    error = problem.kernel.entry_error(problem.data, np.dtype(np.float64)) or 0.0
    if not problem.count * error <= LARGEST:
        raise ValueError(
            f"the values of {problem.kernel!r} on these rows are rounded by up to {error:.2g}, so nothing is known of "
            "its eigenvalues; scale X or the kernel's parameters so that its values are nearer to 1"
        )
    if problem.dtype == np.float32 and largest > 0.0 and not 1e-60 < largest < 1e60:
        raise ValueError(
            f"{problem.kernel!r} has values of size {largest:.2g} on these rows, and X is float32: scores and "
            "coefficients would leave the range of float32; give X as float64, or scale it"
        )
    if LARGEST < largest < np.inf or 0.0 < largest < LEAST:
        raise ValueError(
            f"{problem.kernel!r} has values of size {largest:.2g} on these rows, whose squares leave the range of "
            "float64; scale X or the kernel's parameters (or the matrix) so that they are nearer to 1"
        )


def _rounding_message(proof: Certificate, eigenvalues: np.ndarray, problem: Problem) -> str:
    width = proof.width / eigenvalues[0]
    if width <= problem.tol:
        return ""
    return (
        f"the widest of {len(eigenvalues)} intervals is {rounded_up(width)} of the largest eigenvalue, tol is "
        f"{problem.tol:g}: that is rounding in float64; a larger tol helps, or a kernel matrix that is less nearly "
        "constant (a smaller sigma)"
    )


def _feature_message(proof: Certificate, eigenvalues: np.ndarray, feature_map: FeatureMap, problem: Problem) -> str:
    width = proof.width / eigenvalues[0]
    if width <= problem.tol:
        return ""
    if problem.like is None:
        own = 2 * proof.rounding > 0.8 * problem.tol * eigenvalues[0]  # the map's, however many features it has
        help = "method='auto' goes on with exact products where moments need not be kept"
        if own and width < ROUNDED:
            help = "that is rounding in float64; a larger tol helps"
        elif not own:
            help += ", a larger memory_limit allows more features"
    else:
        help = "the map was made for other rows: make the first model with a smaller tol, of rows that span all of them"
    return (
        f"{feature_map.n_features} features leave the widest of {len(eigenvalues)} intervals at {rounded_up(width)} of "
        f"the largest eigenvalue, tol is {problem.tol:g}; {help}"
    )


def _krylov_start(
    problem: Problem, rows: Rows, n_pivots: int, weighted: WeightedSummation | None
) -> tuple[np.ndarray | None, FeatureInfo | None]:
    """Leading vectors of a few pivots' feature map, and what that map knows of the rest of the spectrum.

    Nothing where there is no pivot to take: too few rows, or a kernel whose values are all zero.
    """
    n = rows.n_samples
    k = problem.c if isinstance(problem.c, int) else 10
    pivots = pivot_map(
        problem.kernel,
        problem.data.sample,
        tol=1e-12,
        max_features=n_pivots,
        rng=np.random.default_rng(0),
        n_samples=n,
        entry_error=problem.kernel.entry_error(problem.data, np.dtype(np.float64)),
    )
    if pivots.n_features == 0:
        return None, None
    moments = feature_moments(pivots, rows, n_threads=problem.n_threads)
    eigenvalues, axes = principal_axes(moments, min(default_block_size(n, k), pivots.n_features))
    axes = axes[:, eigenvalues > 1e-12 * eigenvalues[0]]
    # Phi W = K_XP (L^-T W): one small solve instead of one a row. It loses cond(L) u, which a start can afford
    small = scipy.linalg.solve_triangular(pivots.factor, axes, lower=True, trans="T", check_finite=False)
    start = ExactSummation(problem.kernel, rows, Rows(pivots.pivots), n_threads=problem.n_threads).matmat(small)
    if weighted is not None:
        start = weighted.reflect(weighted.root[:, None] * start)
    start -= start.mean(axis=0)
    start /= np.linalg.norm(start, axis=0)

    def project(V: np.ndarray) -> np.ndarray:
        V = V - V.mean(axis=0)
        if weighted is not None:
            V = weighted.root[:, None] * weighted.reflect(V)
        return accumulate(pivots, rows, V, problem.n_threads).T

    second = moments.dense()
    assert second is not None  # a pivot map's moments are
    defect = _defect(pivots, moments) * (moments.count / n)
    return start, FeatureInfo(second, project, moments.residual_trace, defect)


def _first(proof: Certificate, kept: int) -> Certificate:
    return replace(
        proof,
        eigenvalue_bounds=proof.eigenvalue_bounds[:kept],
        angle_bounds=proof.angle_bounds[:kept],
        clusters=proof.clusters[:kept],
    )


def _negative(lowest: float | None, problem: Problem) -> dict[str, float]:
    """How far below zero the spectrum was seen to reach: for kernels that are not positive semidefinite."""
    if lowest is None or problem.kernel.positive_semidefinite:
        return {}
    return {"most_negative_eigenvalue": min(float(lowest), 0.0)}


def _kept(
    eigenvalues: np.ndarray, floor: float, total: float, problem: Problem, above: float | np.ndarray = 0.0
) -> int:
    """How many components to keep; eigenvalues at most ``floor`` are zero to rounding, or negative.

    ``above``: how far above these (or above zero, beyond the last) the true ones may lie, for the text of the warning.
    """
    positive = int(np.sum(eigenvalues > floor))
    if positive == 0:
        own_matrix = isinstance(problem.kernel, Precomputed)
        hint = "; distances D are no kernel matrix, -0.5 * D ** 2 is one" if own_matrix else ""
        why = "the centred Gram matrix is zero to rounding (or negative); check that the rows of X differ, and the "
        why += f"kernel's parameters{hint}"
        if problem.like is not None and float(np.max(above)) > 10 * floor:
            why = "next to nothing of them is left in the feature map, which was made for the rows of another model; "
            why += "make the first model from rows that span the range"
        raise NoVarianceError(
            f"no component of {problem.kernel!r} carries variance on these {problem.data.n_samples} rows: {why}",
            2 * floor + max(float(np.max(eigenvalues, initial=0.0)), 0.0) + float(np.max(above)),
        )
    asked = problem.c
    if asked is None:
        return positive
    if isinstance(asked, int):
        if positive < asked:
            above = np.broadcast_to(above, eigenvalues.shape)
            others = np.maximum(eigenvalues, 0.0)[positive:] + above[positive:]
            most = max(floor, float(others.max()) if len(others) else float(above.max()))
            why = "zero to rounding" if most <= 10 * floor else "zero within the accuracy reached"
            if not problem.kernel.positive_semidefinite:
                why += ", or negative"
            warn_caller(
                f"{asked} components asked for, {positive} returned: the other eigenvalues are {why} "
                f"(at most {rounded_up(most)}), and a component without variance has no direction",
                ComponentsWarning,
            )
        return min(asked, positive)
    if not total > 0:
        raise ValueError(
            f"c={asked}: there is no fraction of the variance to explain, the trace of the centred Gram matrix of "
            f"{problem.kernel!r} is {total:.3g}: negative eigenvalues outweigh the others; give a number of components"
        )
    share = np.cumsum(eigenvalues[:positive]) / total
    enough = np.flatnonzero(share >= asked * (1 - 1e-12))
    if len(enough) == 0:
        warn_caller(
            f"c={asked}: the {positive} components found explain {100 * share[-1]:.6g} % for certain, less than asked "
            "for; method='dense' keeps more, or with method='krylov' more passes (max_passes), with method='features' "
            "a smaller tol",
            ComponentsWarning,
        )
        return positive
    return int(enough[0]) + 1


def _signs(sample: np.ndarray) -> np.ndarray:
    """Signs that make the largest |score| of the sample positive; near-ties go to the first row on every route."""
    size = np.abs(sample)
    first = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    return np.where(sample[first, np.arange(sample.shape[1])] < 0, -1.0, 1.0)


def _sample_projector(problem: Problem, coeff: np.ndarray, means: np.ndarray) -> SampleProjector:
    X = problem.rows.all()
    if np.shares_memory(X, problem.rows.source) if isinstance(problem.rows.source, np.ndarray) else False:
        X = X.copy()  # the model must not follow later changes of the user's array
    weights = None if problem.rows.weights is None else np.array(problem.rows.weights, dtype=np.float64)
    return SampleProjector(X, np.ascontiguousarray(coeff, dtype=problem.dtype), means, weights)
