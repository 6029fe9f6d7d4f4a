"""Block Krylov on the centred Gram matrix A = H K H, until every interval is at most tol lambda_1 wide.

K is the n x n kernel matrix and H = I - 1 1'/n. The cost is in the passes over the n^2 kernel values, hardly in the
columns of a product. So there are few passes with several columns each, and the whole Krylov space is kept while memory
lasts.

1. `_space`: columns of a pass, and the limit on those of the basis.
2. `truncated_start`: Ritz vectors of a truncated kernel matrix, and filter bounds on the complement, where there is
   one.
3. `_first_block`: the start, or the vectors of 2, filled up with random columns.
4. `_search`: the float32 phase, where such products exist, until one float64 pass is expected to finish.
5. `Search.proved_ends`, `Search.columns`: its upper bounds; its Ritz vectors, corrected, and residuals as next block.
6. `_random_columns`: instead, for a flat spectrum, or without start, search and norm, a random block of that many
   columns, if K is semidefinite and a failure probability is allowed.
7. `_prepare_norm`: the first float64 pass computes |A|_F where the trace alone does not bound the complement.
8. `grow`: one float64 pass a step, A X by `CentredProducts.multiply`, appended by `Basis.append`.
9. `Certifier.ends_after_check`: Rayleigh-Ritz where a check is due, bound on the complement (`Proofs`), intervals.
10. `Certifier.next_block`: the next X, after a thick restart where the basis is full; back to 8.
11. `_result`: Ritz pairs, certificate, and a message where tol is not met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.parallel import Progress
from ..products.implicit import KernelMatrix
from .basis import Basis, Space
from .certificate import Eigenpairs, RitzBlock
from .certifier import Certifier, Proof, Proofs, relative_width
from .costs import Expenses, column_limit, default_block_size, widest_block
from .eigen import ConvergenceMonitor, Search, grow
from .operators import CentredProducts, InFloat32
from .proofs import EXPLORING_PASSES, Exploration, Factorisation, RandomStart, Searched, Sums
from .task import SolverBudget, SolverTarget
from .truncated import truncated_start

DEFAULT_BUDGET = SolverBudget()
GUARD_COLUMNS = 25
"""Random columns beyond c: the more, the smaller the constant of the bounds, and the further down a gap may lie."""


@dataclass(frozen=True, kw_only=True)
class KrylovResult(Eigenpairs):
    """Ritz pairs of ``block_krylov``, and the run that found them.

    Attributes
    ----------
    images : ndarray (n, c)
        A times the vectors, as the float64 passes computed it.
    block : RitzBlock
        Inner products of all Ritz vectors, and of their residuals.
    seconds : float
        Predicted seconds of all steps that were carried out.
    passes, search_passes : int
        Number of all passes over the exact kernel values, and of those in float32 among them.
    factorisations : int
        Number of Cholesky factorisations of P A P, for bounds on the complement.
    negative_end : float
        Most negative Ritz value, 0 if none is: how indefinite the matrix is at least.
    history : tuple of (passes, width / theta_1)
        At each convergence check of the float64 passes.
    search_history : tuple of (passes, width / theta_1)
        Estimated widths after the float32 passes; no bounds.
    row_means : ndarray (n,)
        Row means of K.
    grand_mean : float
        Mean of all entries of K.
    message : str
        Empty where every interval is at most tol * theta_1 wide (and the fraction is reached, where one was asked for);
        else what would help.
    """

    images: np.ndarray
    block: RitzBlock
    seconds: float
    passes: int
    search_passes: int
    factorisations: int
    negative_end: float
    history: tuple[tuple[int, float], ...]
    search_history: tuple[tuple[int, float], ...]
    row_means: np.ndarray
    grand_mean: float
    message: str


def block_krylov(
    matrix: KernelMatrix,
    target: SolverTarget,
    budget: SolverBudget = DEFAULT_BUDGET,
    *,
    start: np.ndarray | None = None,
    block_size: int | None = None,
    proofs: Sequence[Proof] = (),
    rng: np.random.Generator | int = 0,
    progress: Progress | None = None,
) -> KrylovResult:
    """The algebraically largest eigenvalues of H K H, with certified intervals at most tol * lambda_1 wide.

    Parameters
    ----------
    matrix : KernelMatrix
    target : SolverTarget
        At most n - 1 eigenvalues (the vector of ones is always in the null space). A fraction is proved by the lower
        ends; it needs the trace of a positive semidefinite kernel.
    budget : SolverBudget
    start : ndarray (n, k), optional
        First block, such as a feature map's eigenvectors, best first; filled up with random columns to the block
        size. Random where not given.
    block_size : int, optional
        Columns of a pass (`default_block_size`).
    proofs : sequence of Proof
        Further bounds on the complement, which hold for this matrix only, such as `second_order.OfMap`.
    rng : numpy.random.Generator or int
    progress : callable, optional
        progress("krylov", passes, most passes) after each pass.

    Returns
    -------
    KrylovResult
        With a message where the intervals are wider than asked for.

    Raises
    ------
    BudgetExceededError
        The run has cost as much as the budget, or the passes that are certain to come would.
    ValueError
        c outside 1..n - 1, less than one pass, a memory limit below what one step needs, a fraction without a trace.
    """
    _check(matrix, target, budget)
    A, expenses, rng = CentredProducts(matrix), Expenses(budget, progress, stage="krylov"), np.random.default_rng(rng)
    space = _space(matrix, target, budget, block_size, rng)
    proofs = [*proofs, Sums(), Factorisation()]
    known, searched, flat = np.empty(0), None, False
    share = 0.5 * target.failure  # for a random first block or the filters in its place, and again for explorations
    if matrix.truncated is not None and target.probabilistic and target.fraction is None:
        found = truncated_start(matrix, target, expenses, budget.pass_seconds / space.block, share, rng)
        flat = found is None  # no gap in the spectrum of the truncated matrix
        if found is not None:
            start, known, filters = found
            proofs += filters
    X = _first_block(start, space)
    if matrix.search_product is not None and budget.passes > 1:
        searched = _search(A, X, space, target, expenses)
        upper = searched.proved_ends()
        if np.isfinite(upper).any():
            proofs.append(Searched(upper))
        X = None if searched.flat else searched.columns(upper)
        history, known = searched.history, searched.ritz.theta
        del searched.space, searched.basis
    else:
        history = []
    prefers_random = flat or X is None or (start is None and searched is None and not matrix.product.gives_norm)
    space = _space(matrix, target, budget, block_size, rng)
    if target.probabilistic and matrix.positive_semidefinite and target.fraction is None and prefers_random:
        space.block = _random_columns(space, target, expenses.left)
        X = rng.standard_normal((A.n, space.block))
        X -= X.mean(axis=0)  # H X: the space belongs to H K H
        proofs.append(RandomStart(X, share))
    elif X is None:
        X = _first_block(start, space)
    if target.probabilistic:
        proofs.append(Exploration(share, A.n, budget.passes))
    _prepare_norm(A, searched)
    monitor = Certifier(A, space, target, expenses, Proofs(proofs), known)
    grow(A, X, space, monitor, expenses)
    return _result(monitor, history)


def _check(matrix: KernelMatrix, target: SolverTarget, budget: SolverBudget) -> None:
    n, c = matrix.n, target.c
    if not 1 <= c <= n - 1:
        raise ValueError(f"c is {c}; a centred Gram matrix of order {n} has 1 to {n - 1} components (dense has all)")
    if budget.passes < 1:
        raise ValueError(f"max_passes is {budget.passes}; at least one pass over the kernel values is needed")
    if target.fraction is not None and (matrix.trace is None or not matrix.positive_semidefinite):
        raise ValueError("a fraction of the variance needs the trace of K and a positive semidefinite kernel")


def _space(
    matrix: KernelMatrix, target: SolverTarget, budget: SolverBudget, block_size: int | None, rng: np.random.Generator
) -> Space:
    n, c = matrix.n, target.c
    block = min(block_size or default_block_size(n, c), n - 1)
    # blocks grow until a fraction is in sight
    widest = block if target.fraction is None else widest_block(n, c, block, budget.memory)
    columns = column_limit(n, c, widest, budget.memory)
    basis = Basis(n, rng, centred=True, reserve=columns, n_threads=matrix.n_threads)
    return Space(basis, block, widest, columns)


def _first_block(start: np.ndarray | None, space: Space) -> np.ndarray:
    n = space.basis.n
    given = np.empty((n, 0)) if start is None else np.asarray(start, dtype=np.float64)
    fill = max(space.block - given.shape[1], 0)
    return np.hstack([given, space.basis.rng.standard_normal((n, fill))])[:, : space.columns]


def _search(A: CentredProducts, X: np.ndarray, space: Space, target: SolverTarget, expenses: Expenses) -> Search:
    single = InFloat32(A)
    monitor = Search(single, space, target, expenses)
    # the alternative is a run from a random block: several times the passes of an exploration, in wider blocks
    wide = _random_columns(space, target, expenses.budget.passes)
    proof = Factorisation()
    passes = proof.passes_for(A, target.c, space, expenses.budget, wide)
    if not target.probabilistic:  # a factorisation is the only alternative to trace and norm
        monitor.most_extra = max(monitor.most_extra, passes)
    if passes <= 3 * EXPLORING_PASSES:
        monitor.factorising = proof.seconds(A, target.c + space.block, space, expenses.budget)
    grow(single, X, space, monitor, expenses)
    return monitor


def _random_columns(space: Space, target: SolverTarget, passes: int) -> int:
    """Columns of a random first block: c + GUARD_COLUMNS, or fewer so that all passes to come fit into the basis; at
    least
    ``space.block``."""
    c, columns = target.c, min(space.columns, space.basis.n - 1)
    block = max(min(c + GUARD_COLUMNS, columns // max(passes, 1)), space.block)
    return block if EXPLORING_PASSES * block <= columns else space.block  # fewer passes prove nothing


def _prepare_norm(A: CentredProducts, searched: ConvergenceMonitor | None) -> None:
    """Let the first float64 pass compute |A|_F: always where K is indefinite or its trace unknown; else only after a
    search that expects the trace not to bound the complement."""
    semidefinite = A.matrix.positive_semidefinite and A.matrix.trace is not None
    if searched is None or not semidefinite or A.norm_bound is not None:
        A.measures = not semidefinite
        return
    trace, theta = A.expected_sums()[0], searched.ritz.theta
    A.measures = trace is None or trace - float(theta.sum()) > 0.3 * theta[min(searched.c, len(theta)) - 1]


# the result --------------------------------------------------------------------------------------------------


def _result(monitor: Certifier, search_history: list[tuple[int, float]]) -> KrylovResult:
    A, theta, c = monitor.A, monitor.ritz.theta, monitor.c
    assert isinstance(A, CentredProducts)
    vectors, images = monitor.basis.pairs(monitor.ritz, c)
    return KrylovResult(
        values=theta[:c].copy(),
        vectors=vectors,
        images=images,
        certificate=monitor.certificate,
        block=monitor.block,
        seconds=monitor.expenses.seconds,
        passes=monitor.expenses.passes,
        search_passes=monitor.expenses.search_passes,
        factorisations=monitor.proofs.factorisations,
        negative_end=min(float(theta[-1]), 0.0),
        history=tuple(monitor.history),
        search_history=tuple(search_history),
        row_means=A.row_means,
        grand_mean=A.grand_mean,
        message="" if monitor.is_done else _message(monitor, A),
    )


def _message(monitor: Certifier, A: CentredProducts) -> str:
    theta, c, target, certificate = monitor.ritz.theta, monitor.c, monitor.target, monitor.certificate
    tol, positive = target.tol, bool(theta[0] > 0)
    alternative = monitor.expenses.budget.alternative
    rounding = A.rounding_alone(len(theta))
    if positive and rounding > 0.8 * tol * theta[0]:
        floor = min(rounding / theta[0], relative_width(certificate, theta))  # other bounds may be below that
        # where what is centred is a small part of K, which is rounded
        constant = A.size > 100 * theta[0]
        less = " or a kernel matrix that is less nearly constant (a smaller sigma)" if constant else ""
        ways = [f"a larger tol{less} helps", alternative]
        return f"rounding in float64 alone is {floor:.2g}; {', or '.join(filter(None, ways))}"
    short = monitor.is_short
    text = (
        f"the space holds no more than {c} of the {target.c} components; " if short and target.fraction is None else ""
    )
    ways = ["more passes (max_passes) help"] if short or _still_falls(monitor.history) else []
    if positive and 2 * certificate.rounding > 0.8 * tol * theta[0]:
        ways = ["that is rounding in float64; a larger tol helps"]
        if A.matrix.product.error_bound:
            ways = ["the products are approximate, and their own error is more than tol allows: products='exact' helps"]
    if alternative:
        ways.append(alternative)
    return f"{text}{', or '.join(ways or ['more passes (max_passes), a larger tol or fewer components help'])}"


def _still_falls(history: list[tuple[int, float]]) -> bool:
    """True if the last three checks have narrowed the intervals; after fewer than four, if the width is below
    theta_1."""
    widths = [width for _, width in history]
    return widths[-1] < (1.0 if len(widths) < 4 else 0.7 * widths[-4])
