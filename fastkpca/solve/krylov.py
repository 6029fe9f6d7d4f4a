"""Block Krylov with full Rayleigh-Ritz on the centred Gram matrix A = H K H, until the certificate is narrow enough.

The cost is in the passes over the n^2 kernel values, and hardly in the columns of a product. So there are few passes
with several columns each, and the whole Krylov space is kept (full reorthogonalisation, twice, in float64; once in a
search, while `basis.LOOSE` allows it).

1. *Search* (``search``): passes in float32, where a product is offered in it. Only the subspace is taken from them.
   Of a small matrix that is held: passes in float64 without a certificate (``ExactRun.approach``), whose images stay.
2. *Exact passes* (``exact_passes``): in float64, first on the best Ritz vectors of the search together with the next
   Krylov block (so that the pass both confirms the vectors and extends the space), then block by block. Images
   W = A Q are kept, so that residuals are computed directly, and after every pass the widths of the intervals
   (``certificate.ritz_certificate``) decide whether to stop.
3. *A bound from entries* (``rest``), where the vectors have converged and only the bound mu on the rest of the spectrum
   is too large: from a factorisation of the matrix beyond them, which is certain, or from a sample of its rows; if that
   costs less than
4. *exploration*: a new random block in the complement. Either it finds an eigenvalue that was missed (one that is
   repeated more often than the block is wide), or its Krylov space shows, with a stated probability, that none was.
5. *Flat spectra* (``flat``), where neither trace nor norm gives a small bound: the run begins again from a random
   block, and the bounds follow from that.
"""

from __future__ import annotations

import numpy as np

from ..base.parallel import Progress
from .basis import Basis
from .centred import CentredProducts
from .costs import Expenses, column_limit, default_block_size, widest_block
from .exact_passes import ExactRun, KrylovResult
from .flat import FlatRun
from .narrow import narrow_start
from .outlook import Outlook
from .search import Found, search
from .task import KernelMatrix, SolverBudget, SolverTarget

__all__ = ["block_krylov", "without_search"]

DEFAULT_BUDGET = SolverBudget()
FEW_ROWS = 768
"""Up to which a certificate costs more than a pass over values that are held, and float32 saves nothing."""


def block_krylov(
    matrix: KernelMatrix,
    target: SolverTarget,
    budget: SolverBudget = DEFAULT_BUDGET,
    *,
    start: np.ndarray | None = None,
    block_size: int | None = None,
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
    rng : numpy.random.Generator or int
    progress : callable, optional
        progress("krylov", passes, most passes) after each pass.

    Returns
    -------
    KrylovResult
        With a message where the intervals are wider than asked for.

    Raises
    ------
    TooDearError
        The run has cost as much as the budget, or the passes that are certain to come would; or it has ended without
        reaching ``tol``, and the other method costs at most a few times as much as this run has.
    ValueError
        c outside 1..n - 1, less than one pass, a memory limit below what one step needs, a fraction without a trace.
    """
    _check(matrix, target, budget)
    n, c = matrix.n, target.c
    block = min(block_size or default_block_size(n, c), n - 1)
    # blocks grow until a fraction is in sight
    widest = block if target.fraction is None else widest_block(n, c, block, budget.memory)
    products = CentredProducts(matrix, Expenses(budget, progress))
    outlook = Outlook(products, target, column_limit(n, c, widest, budget.memory), block, widest)
    rng = np.random.default_rng(rng)
    history: list[tuple[int, float]] = []
    starts_flat = start is None and outlook.starts_flat()
    found = Found(np.empty((n, 0)) if starts_flat else _first_block(start, outlook, rng), np.empty(0))
    searches = matrix.search_product is not None and budget.passes > 1 and not starts_flat
    if searches and not _start_suffices(found.vectors, matrix, target.tol):
        found = search(outlook, found.vectors, rng, history)
    X, theta = found.vectors, found.theta
    want_norm = found.guards is not None or _norm_wanted_at_once(outlook, theta)
    run = ExactRun(outlook, rng, want_norm=want_norm, guards=found.guards)
    short = without_search(n, positive_semidefinite=matrix.positive_semidefinite) and target.fraction is None
    if short and X.shape[1] and not len(theta) and matrix.features is None:
        X = run.approach(X, history)
    ended = run.run(X) if X.shape[1] else None
    if ended is None:  # the spectrum is flat
        narrow = narrow_start(outlook, rng)
        if narrow is not None:
            run = ExactRun(outlook, rng, want_norm=False, narrow=narrow, before=run)
            ended = run.run(narrow.vectors)
    if ended is None:
        run = FlatRun(outlook, rng, before=run)
        ended = run.run_from_random_block()
    return run.result(ended, history)


def without_search(n: int, *, positive_semidefinite: bool) -> bool:
    """Whether so many rows, whose kernel values are held, are searched in float64."""
    return n <= FEW_ROWS and positive_semidefinite


def _check(matrix: KernelMatrix, target: SolverTarget, budget: SolverBudget) -> None:
    n, c = matrix.n, target.c
    if not 1 <= c <= n - 1:
        raise ValueError(f"c is {c}; a centred Gram matrix of order {n} has 1 to {n - 1} components (dense has all)")
    if budget.passes < 1:
        raise ValueError(f"max_passes is {budget.passes}; at least one pass over the kernel values is needed")
    if target.fraction is not None and (matrix.trace is None or not matrix.positive_semidefinite):
        raise ValueError("a fraction of the variance needs the trace of K and a positive semidefinite kernel")


def _first_block(start: np.ndarray | None, outlook: Outlook, rng: np.random.Generator) -> np.ndarray:
    n = outlook.products.n
    given = np.empty((n, 0)) if start is None else np.asarray(start, dtype=np.float64)
    fill = max(outlook.block - given.shape[1], 0)
    X = np.hstack([given, rng.standard_normal((n, fill))])[:, : outlook.columns]
    return Basis(n, rng, centred=True).orthonormal(X)


def _start_suffices(X: np.ndarray, matrix: KernelMatrix, tol: float) -> bool:
    """Whether one float64 pass on the map's vectors is enough: Ritz values err by the square of its residual."""
    features = matrix.features
    if features is None:
        return False
    if features.residual_trace**2 > tol * float(np.trace(features.moment)) ** 2:
        return False  # for any vectors: this saves a pass over the rows
    W = features.project(X)
    largest = float(np.max(np.einsum("ij,ij->i", W, W)))
    return features.residual_trace**2 <= tol * largest**2


def _norm_wanted_at_once(outlook: Outlook, theta: np.ndarray) -> bool:
    matrix = outlook.products.matrix
    return not matrix.positive_semidefinite or matrix.trace is None or outlook.norm_would_help(theta)
