"""Block Krylov with full Rayleigh-Ritz on the centred Gram matrix A = H K H, until the certificate is narrow enough.

What costs is a pass over the n^2 kernel values, not a column of the product. So: few passes, several columns each,
and the whole Krylov space kept (full reorthogonalisation, twice, in float64).

1. *Search*: passes in float32, where a product is offered in it. Only the subspace is taken from them.
2. *Exact passes* in float64: first on the best Ritz vectors of the search together with the next Krylov block (so
   that the pass advances the space as well as confirming it), then block by block. Images W = A Q are kept, so the
   residuals are computed and not inferred, and after every pass the certificate (``certificate.ritz_certificate``)
   says whether to stop.
3. *Exploration*, where the vectors have converged and only the bound mu on the rest of the spectrum is in the way:
   a fresh random block on the complement. Either it finds what was missed (an eigenvalue more often repeated than
   the block is wide), or its Krylov space proves, with a stated probability, that there is nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ..base.parallel import Progress
from ..base.rounding import UNIT, UNIT32, rounding_factor
from ..errors import CertificateWarning, rounded_up, warn_caller
from ..products.exact import band_rows, with_ones
from ..products.rates import EIGEN_RATE, GEMM_RATE
from .beyond import FeatureInfo, deterministic_bound, exploration_bound, feature_bound
from .certificate import (
    NO_BOUND,
    Bound,
    Certificate,
    MatrixInfo,
    RitzBlock,
    product_error,
    ritz_certificate,
    upper_ends,
)

__all__ = [
    "KrylovResult",
    "TooDearError",
    "basis_bytes",
    "block_krylov",
    "default_block_size",
    "least_columns",
    "ritz_seconds",
]

_STRIP = 32  # columns of what is made in passing, of the rows' length
_WIDEST = 128  # columns of a block
_EXPLORING = 4  # passes that an exploration takes at least
_SHORT = 4.0  # what another way may cost, over what was spent, where that has ended short of the tolerance


@dataclass(frozen=True)
class KrylovResult:
    """What ``block_krylov`` found.

    Attributes
    ----------
    theta : ndarray (c,)
        Ritz values, descending.
    vectors : ndarray (n, c)
        Ritz vectors, orthonormal, each orthogonal to the vector of ones.
    images : ndarray (n, c)
        Kc times the vectors, as the exact passes computed it.
    certificate : Certificate
    converged : bool
        Every interval is at most tol * theta_1 wide (and the fraction is reached, where one was asked for).
    passes, search_passes : int
        Over the exact kernel values, all of them; and how many of these were in float32.
    block_size : int
    negative_end : float
        Most negative Ritz value, 0 if none is: how indefinite the matrix is at least.
    history : tuple of (passes, width / theta_1)
        After each float64 pass.
    search_history : tuple of (passes, width / theta_1)
        What the search expected after its float32 passes: estimates, no bounds.
    row_means : ndarray (n,)
        Of K.
    grand_mean : float
    trace : float or None
        tr Kc, where tr K was given.
    norm : float or None
        |Kc|_F, where a pass computed it.
    message : str
        What was reached and what would help, where not converged; else empty.
    """

    theta: np.ndarray
    vectors: np.ndarray
    images: np.ndarray
    certificate: Certificate
    converged: bool
    passes: int
    search_passes: int
    block_size: int
    negative_end: float
    history: tuple[tuple[int, float], ...]
    search_history: tuple[tuple[int, float], ...]
    row_means: np.ndarray
    grand_mean: float
    trace: float | None
    norm: float | None
    message: str


def default_block_size(n: int, c: int, evaluation_columns: float = 18.0) -> int:
    """c and some guard columns, which speed up convergence of the last wanted vectors.

    ``evaluation_columns``: what evaluating the kernel values costs, in columns of the product. Guards are worth having
    until they cost about as much as the evaluation: on digits, c = 10, blocks of 20, 28 and 40 err by 8e-6, 4e-7 and
    3e-8 of lambda_1 after four passes.
    """
    guards = min(max(4.0, evaluation_columns), max(8.0, 2.0 * c))
    return max(1, min(n - 1, c + round(guards)))


class TooDearError(Exception):
    """The run was left because another way is the better one by now; ``passes`` says after how many."""

    def __init__(self, passes: int):
        super().__init__(passes)
        self.passes = passes


def ritz_seconds(n: int, columns: float) -> float:
    """Predicted seconds of Rayleigh-Ritz and the certificate on so many columns."""
    return 8.0 * n * columns**2 / GEMM_RATE + 40.0 * columns**3 / EIGEN_RATE


def block_krylov(
    product: Any,
    n: int,
    c: int,
    *,
    fraction: float | None = None,
    start: np.ndarray | None = None,
    block_size: int | None = None,
    tol: float = 1e-6,
    max_passes: int = 20,
    search_product: Any = None,
    trace: float | None = None,
    positive_semidefinite: bool = False,
    entry_error: float = 0.0,
    features_info: FeatureInfo | None = None,
    probabilistic: bool = True,
    memory_limit: float | None = None,
    rng: np.random.Generator | int = 0,
    progress: Progress | None = None,
    warn: bool = True,
    otherwise: str = "",
    pass_seconds: float = 0.0,
    budget: float = np.inf,
) -> KrylovResult:
    """The c algebraically largest eigenvalues of H K H, with certified intervals at most tol * lambda_1 wide.

    Parameters
    ----------
    product : object
        ``matmat(U)`` -> K U in float64. Where it has ``pass_with_norm(V, row_means, grand_mean)`` ->
        (K V, K 1, sum_ij (K_ij - r_i - r_j + g)^2), the Frobenius form of the certificate is available too; an
        indefinite kernel needs it. ``error_bound`` is respected where there is one.
    n, c : int
        Order of K; eigenvalues wanted, at most n - 1 (the vector of ones is always in the null space). With
        ``fraction`` c is where to begin.
    fraction : float, optional
        Instead of a fixed c: as many components as carry this fraction of tr Kc, proved by the lower ends.
        Needs ``trace`` and a positive semidefinite kernel.
    start : ndarray (n, k), optional
        First block, such as a feature map's eigenvectors, best first; filled up with random columns to the block
        size. Random where not given.
    block_size : int, optional
        Columns of a pass (`default_block_size`).
    tol : float
        Wanted width over the largest eigenvalue.
    max_passes : int
        Over the kernel values, float32 and float64 together.
    search_product : object, optional
        ``matmat`` in float32, for the search.
    trace : float, optional
        tr K.
    positive_semidefinite : bool
        Allows the trace form of the certificate.
    entry_error : float
        Bound on |computed K_ij - K_ij| in float64 (``Kernel.entry_error``; 0: the matrix is what was computed).
    features_info : FeatureInfo, optional
        For the feature form of the certificate.
    probabilistic : bool
        Fall back on randomly started Lanczos where no deterministic bound gets below the last eigenvalue.
    memory_limit : float, optional
        Bytes for the basis and its images; the space is restarted when they are full.
    rng : numpy.random.Generator or int
    progress : callable, optional
        progress("krylov", passes, max_passes) after each pass.
    warn : bool
        False leaves it to the caller to pass ``KrylovResult.message`` on.
    otherwise : str
        For the message: another way that would reach ``tol``, where the caller knows one.
    pass_seconds : float
        Predicted, for one float64 pass.
    budget : float
        Predicted seconds that another way would take. What this run has cost is counted, not measured, so the same
        input is always left at the same place.

    Returns
    -------
    KrylovResult

    Warns
    -----
    CertificateWarning
        Where the intervals are wider than asked for.

    Raises
    ------
    TooDearError
        The run has cost the budget, or what is certainly still to come is more than that; or it has ended short of
        ``tol``, and the other way costs no more than a few times as much as this one has.
    ValueError
        c outside 1..n - 1, max_passes < 1, a memory limit below what one step needs, a fraction without a trace.
    """
    if not 1 <= c <= n - 1:
        raise ValueError(f"c is {c}; a centred Gram matrix of order {n} has 1 to {n - 1} components (dense has all)")
    if max_passes < 1:
        raise ValueError(f"max_passes is {max_passes}; at least one pass over the kernel values is needed")
    if fraction is not None and (trace is None or not positive_semidefinite):
        raise ValueError("a fraction of the variance needs the trace of K and a positive semidefinite kernel")
    block = min(block_size or default_block_size(n, c), n - 1)
    widest = block
    if fraction is not None:  # blocks grow until the fraction is in sight
        widest = max(block, min(_WIDEST, n - 1))
        while memory_limit is not None and basis_bytes(n, least_columns(n, c, widest), widest) > memory_limit:
            widest = max(block, widest // 2)
            if widest == block:
                break
    solver = _Solver(
        product=product,
        search_product=search_product,
        n=n,
        c=c,
        fraction=fraction,
        block=block,
        widest=widest,
        tol=tol,
        max_passes=max_passes,
        trace_K=trace,
        semidefinite=positive_semidefinite,
        entry_error=entry_error,
        info=features_info,
        probabilistic=probabilistic,
        columns=_column_limit(memory_limit, n, c, widest),
        rng=np.random.default_rng(rng),
        progress=progress,
        pass_seconds=pass_seconds,
        budget=budget,
        otherwise=otherwise,
    )
    result = solver.run(start)
    if result.message and warn:
        warn_caller(result.message, CertificateWarning)
    return result


def basis_bytes(n: int, columns: int, block: int) -> float:
    """Memory of a run whose space has so many columns.

    n x columns: the basis, its images and the residuals; in the first pass over as many, what is multiplied and its
    product. A few blocks more are under way, the tasks' bands of a product, and a dozen matrices of inner products.
    """
    return _a_column(n) * columns + 32.0 * n * block + 96.0 * columns**2


def _a_column(n: int) -> float:
    return 24.0 * n + 80.0 * min(n, band_rows(n, 1))


def least_columns(n: int, c: int, block: int) -> int:
    """Columns without which there is no run: what a restart keeps, and two blocks."""
    return min(c + 2 * block, n - 1)


def _column_limit(memory_limit: float | None, n: int, c: int, block: int) -> int:
    """Columns of the basis that memory allows."""
    if memory_limit is None:
        # beyond this a restart costs less than Rayleigh-Ritz on the whole space
        return min(n - 1, max(640, c + 16 * block))
    least = least_columns(n, c, block)
    if basis_bytes(n, least, block) > memory_limit:
        raise ValueError(
            f"memory_limit of {memory_limit:.3g} bytes is too small for a basis; c = {c} in blocks of {block} needs "
            f"{least} columns, which are {basis_bytes(n, least, block):.3g} bytes"
        )
    room = memory_limit - 32.0 * n * block
    # 96 m^2 + a m = room
    a = _a_column(n)
    columns = int(2.0 * room / (a + np.sqrt(a * a + 384.0 * room)))
    return max(least, min(columns, n - 1))


def _orthonormal(
    X: np.ndarray, Q: np.ndarray, rng: np.random.Generator, noise: float, projected: bool = False
) -> np.ndarray:
    """Orthonormal columns, orthogonal to ones and to Q, that span X and, where X is deficient, random directions.

    ``noise``: norm below which a column of X (after projection) is rounding and is replaced. Deficiency means that
    the space has become invariant; random directions are then the only way to what it misses (repeated eigenvalues).
    ``projected``: X is orthogonal to ones and Q already, up to rounding.
    """
    n, b = X.shape
    b = min(b, n - 1 - Q.shape[1])
    if not projected:
        X = _project(X, Q)
    norms = np.sqrt(np.einsum("ij,ij->j", X, X))
    kept = norms > noise
    if projected or not kept.all():  # X is the caller's, or too wide
        X = X[:, kept]
    X /= norms[kept]
    if X.shape[1] == b:
        # well-conditioned blocks, the rule: Cholesky QR, twice with a projection between ("twice is enough", Kahan)
        once = _cholesky_qr(X)
        if once is not None:
            X = once
            twice = _cholesky_qr(_project(once, Q, owned=True))
            if twice is not None:
                return twice
    if X.shape[1]:
        X, r, _ = scipy.linalg.qr(X, mode="economic", pivoting=True, check_finite=False)
        X = X[:, np.abs(np.diag(r)) > 1e-10][:, :b]
    if X.shape[1] < b:
        X = np.hstack([X, rng.standard_normal((n, b - X.shape[1])) / np.sqrt(n)])
    for _ in range(3):
        X = scipy.linalg.qr(_project(X, Q), mode="economic", check_finite=False)[0]
    return np.asfortranarray(X)


def _project(X: np.ndarray, Q: np.ndarray, *, owned: bool = False) -> np.ndarray:
    """X without its part along ones and Q; in place where it is ``owned``."""
    X = X if owned else np.array(X, order="F")
    X -= X.mean(axis=0)
    if Q.shape[1]:
        W = Q.T @ X
        for j in range(0, X.shape[1], _STRIP):
            X[:, j : j + _STRIP] -= _times(Q, W[:, j : j + _STRIP])
    return X


def _times(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B, column-major where A is: a copy less where that is what is wanted."""
    return (B.T @ A.T).T


def _cholesky_qr(X: np.ndarray) -> np.ndarray | None:
    """Orthonormal basis of well-conditioned columns, BLAS 3 only; None where they are not."""
    try:
        R = scipy.linalg.cholesky(X.T @ X, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    diagonal = np.diag(R)
    if diagonal.min() < 1e-5 * diagonal.max():
        return None
    return np.asfortranarray((scipy.linalg.solve_triangular(R, np.eye(len(R)), check_finite=False).T @ X.T).T)


def _grow(T: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """T bordered by new columns (m + b, b) and their transpose; the new corner is symmetrised."""
    m, b = len(T), columns.shape[1]
    out = np.empty((m + b, m + b))
    out[:m, :m] = T
    out[:, m:] = columns
    out[m:, :m] = columns[:m].T
    out[m:, m:] = (columns[m:] + columns[m:].T) / 2
    return out


def _by_size(theta: np.ndarray, c: int) -> np.ndarray:
    """Order of Ritz values: the c largest, then the others by absolute value."""
    return np.concatenate([np.arange(c), c + np.argsort(-np.abs(theta[c:]), kind="stable")])


def _eigh_descending(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = scipy.linalg.eigh(T, check_finite=False)
    return values[::-1], vectors[:, ::-1]


@dataclass
class _Solver:
    """State of one run; ``run`` is the story."""

    product: Any
    search_product: Any
    n: int
    c: int
    fraction: float | None
    block: int
    widest: int
    tol: float
    max_passes: int
    trace_K: float | None
    semidefinite: bool
    entry_error: float
    info: FeatureInfo | None
    probabilistic: bool
    columns: int
    rng: np.random.Generator
    progress: Progress | None
    pass_seconds: float
    budget: float
    otherwise: str

    def __post_init__(self) -> None:
        self.passes = 0
        self.spent = 0.0
        self.search_passes = 0
        self.row_means = np.empty(0)  # empty until a pass has brought the row sums
        self.row_means_exact = False
        self.grand_mean = 0.0
        self.norm: float | None = None  # |Kc|_F
        self.norm_square_error = 0.0  # bound on the rounding of its square
        self.norm_cancelled = False  # the row means were too far off: worth another pass
        self.norm_guess: float | None = None  # the same from float32, for planning only
        self.norm_K = np.inf  # bound on |K|_F
        self.frozen: int | None = None  # columns before the exploration began
        self.starts = self.steps = 0  # of the exploration: random columns, passes since
        self.patience = 2
        self.history: list[tuple[int, float]] = []
        self.search_history: list[tuple[int, float]] = []
        self.Q = np.empty((self.n, 0), order="F")
        self.T = np.empty((0, 0))
        self.features_seen: tuple[int, np.ndarray] | None = None

    # ------------------------------------------------------------------ passes over the kernel values

    def _counted(self, share: float = 1.0) -> None:
        self.passes += 1
        self.spent += share * self.pass_seconds
        if self.progress is not None:
            self.progress("krylov", self.passes, self.max_passes)

    def _search_pass(self, X: np.ndarray, want_norm: bool) -> np.ndarray:
        """H K X in float32; row sums ride along as one more column of the first pass, the norm with a later one."""
        first = len(self.row_means) == 0
        U = (with_ones(X) if first else X).astype(np.float32, order="C")
        if want_norm and not first and self.search_product.gives_norm:
            Y, _, squares, *_ = self.search_product.pass_with_norm(U, self.row_means, self.grand_mean)
            self.norm_guess = float(np.sqrt(max(float(squares), 0.0)))
        else:
            Y = self.search_product.matmat(U)
        del U
        Y = np.asarray(Y, dtype=np.float64)
        self._counted(0.5)
        self.search_passes += 1
        if first:
            self._set_means(Y[:, -1], exact=False)
            Y = Y[:, :-1]
        Y -= Y.mean(axis=0)
        return np.asfortranarray(Y)

    def _exact_pass(self, X: np.ndarray, want_norm: bool) -> np.ndarray:
        """H K X in float64, with row sums (first time) and the Frobenius norm (where asked for) of the same tiles."""
        if want_norm and len(self.row_means) and self.product.gives_norm:
            Y, sums, squares, *_ = self.product.pass_with_norm(X, self.row_means, self.grand_mean)
            self._set_norm(np.asarray(sums, dtype=np.float64).ravel(), float(squares))
        elif not self.row_means_exact:
            Y = self.product.matmat(with_ones(X))
            self._set_means(Y[:, -1], exact=True)
            Y = Y[:, :-1]
        else:
            Y = self.product.matmat(X)
        self._counted()
        Y -= Y.mean(axis=0)
        return np.asfortranarray(Y)

    def _set_means(self, sums: np.ndarray, exact: bool) -> None:
        self.row_means = sums / self.n
        self.grand_mean = float(self.row_means.mean())
        self.row_means_exact = exact

    def _set_norm(self, sums: np.ndarray, squares: float) -> None:
        """|Kc|_F from sum (K_ij - r_i - r_j + g)^2, whatever r the pass knew: the rest of the centring is exact.

        M = K - r 1' - 1 r' + g 11' has HMH = Kc, and |M|^2 = |HMH|^2 + 2 n |a - mean a|^2 + n |mean a 1|^2 with
        a = M 1 / n, so nothing cancels unless r was far off: r from float32 is, where K is nearly constant.

        Rounding of the square, with |K| for |K|_F: the entries of M err by a matrix of norm at most e = 8 u |K|, so
        |M|^2 by 2 |M| e + e^2; a row of K sums to rounding_factor(n) u sqrt(n) |K_i|, so a errs by at most
        f = (rounding_factor(n) + 8) u |K| / sqrt(n), and what is taken off by 2 n (2 |a| f + f^2).
        """
        n = self.n
        a = sums / n - self.row_means - self.row_means.mean() + self.grand_mean
        off = 2 * n * float(np.sum((a - a.mean()) ** 2)) + (n * float(a.mean())) ** 2
        means_were_exact = self.row_means_exact
        self._set_means(sums, exact=True)
        r, g = self.row_means, self.grand_mean
        spread = 2 * n * float(np.sum((r - g) ** 2))
        square = max(squares - off, 0.0)
        # 1 + 1e-8: the rounding of this sum of squares, and of ``square`` over |K|^2
        self.norm_K = float(np.sqrt(square + spread + (n * g) ** 2)) * (1 + 1e-8)
        entry = 8 * UNIT * self.norm_K
        mean = (rounding_factor(n) + 8.0) * UNIT * self.norm_K / np.sqrt(n)
        size = float(np.linalg.norm(a))
        self.norm = float(np.sqrt(square))
        self.norm_square_error = (
            rounding_factor(n) * UNIT * squares
            + (2 * np.sqrt(squares) + entry) * entry
            + 2 * n * (2 * size + mean) * mean
        )
        self.norm_cancelled = not means_were_exact and self.norm_square_error > 1e-3 * square

    def _check_budget(self, steps: int = 1) -> None:
        """Leave where the run with its next pass costs more than the other way, or ``steps`` passes alone do."""
        m, b = self.Q.shape[1], self.block
        ahead = [self.pass_seconds + ritz_seconds(self.n, min(m + i * b, self.columns)) for i in range(1, steps + 1)]
        if self.spent + ahead[0] > self.budget or sum(ahead) > self.budget:
            raise TooDearError(self.passes)

    # ------------------------------------------------------------------ what is known of the matrix

    def _size_K(self) -> float:
        """Bound on |K|_F: measured, or the trace of a semidefinite matrix; infinite where neither is known."""
        candidates = [self.norm_K]
        if self.semidefinite and self.trace_K is not None:
            candidates.append(self.trace_K)
        return min(candidates)

    def _size_K_estimate(self, theta: np.ndarray) -> float:
        """For when no bound on |K|_F is known: its mean and the eigenvalues found."""
        return abs(self.n * self.grand_mean) + float(np.linalg.norm(theta))

    def _trace(self) -> tuple[float, float] | None:
        """tr Kc = tr K - 1'K1 / n and a bound on its rounding."""
        if self.trace_K is None or not len(self.row_means):
            return None
        value = self.trace_K - self.n * self.grand_mean
        error = product_error(self.n, 1, self._size_K(), self.entry_error, self._error_bound())
        if not np.isfinite(error):
            return None
        error += rounding_factor(self.n) * UNIT * abs(self.trace_K)
        return value, error

    def _error_bound(self) -> float:
        return float(self.product.error_bound)

    def _norm_bound(self) -> float | None:
        """Upper bound on |Kc|_F from the computed one: its rounding, and that of the entries."""
        if self.norm is None:
            return None
        return float(np.sqrt(self.norm**2 + self.norm_square_error)) + self.n * self.entry_error

    def _wanted(self, lower: np.ndarray) -> int | None:
        """Number of components to return; with a fraction the smallest whose lower ends reach it, None if none does."""
        if self.fraction is None:
            return self.c
        trace = self._trace()
        if trace is None:
            return None
        reached = np.flatnonzero(np.cumsum(np.maximum(lower, 0.0)) >= self.fraction * (trace[0] + trace[1]))
        return int(reached[0]) + 1 if len(reached) else None

    def _mu_guesses(self, theta: np.ndarray, with_norm: bool = True) -> np.ndarray:
        """The mu to expect when the first 1, 2, ... of these Ritz values are kept: for planning, not for proof."""
        guess = np.full(len(theta), np.inf)
        if self.semidefinite and self.trace_K is not None and len(self.row_means):
            guess = np.minimum(guess, self.trace_K - self.n * self.grand_mean - np.cumsum(theta))
        norm = self.norm if self.norm is not None else self.norm_guess
        if norm is not None and with_norm:
            guess = np.minimum(guess, np.sqrt(np.maximum(norm**2 - np.cumsum(theta**2), 0.0)))
        if self.info is not None:
            guess = np.minimum(guess, self.info.residual_trace + np.append(theta[1:], theta[-1]))
        return np.maximum(guess, 0.0)

    def _mu_guess(self, theta: np.ndarray, m: int) -> float:
        return float(self._mu_guesses(theta)[m - 1])

    def _mu_falls(self, theta: np.ndarray, c: int, keeping: bool = False) -> bool:
        """Is mu not below the last wanted eigenvalue, but likely to get there with another few blocks?

        Each new column takes at most about the smallest converged guard value out of the trace or the norm.
        """
        m = len(theta)
        now = self._columns_to_keep(theta)[1] if keeping else self._mu_guess(theta, m)
        if now <= 0.9 * theta[c - 1]:
            return False
        guard = max(float(theta[min(m, self.block) - 1]), 0.0)
        hoped = np.concatenate([theta, np.full(2 * self.block, guard)])
        return self._mu_guess(hoped, len(hoped)) <= 0.9 * theta[c - 1]

    # ------------------------------------------------------------------ the story

    def run(self, start: np.ndarray | None) -> KrylovResult:
        none = np.empty((self.n, 0))
        given = np.empty((self.n, 0)) if start is None else np.asarray(start, dtype=np.float64)
        fill = max(self.block - given.shape[1], 0)
        X = np.hstack([given, self.rng.standard_normal((self.n, fill))])[:, : self.columns]
        X = _orthonormal(X, none, self.rng, noise=0.0)
        if self.search_product is not None and self.max_passes > 1 and not self._start_suffices(X):
            X = self._search(X)
        return self._exact(X)

    def _start_suffices(self, X: np.ndarray) -> bool:
        """Will one float64 pass on the feature map's vectors do? Ritz values err by its square."""
        if self.info is None:
            return False
        if self.info.residual_trace**2 > self.tol * float(np.trace(self.info.moment)) ** 2:
            return False  # whatever the vectors are: a pass over the rows saved
        W = self.info.project(X)
        largest = float(np.max(np.einsum("ij,ij->i", W, W)))
        return self.info.residual_trace**2 <= self.tol * largest**2

    def _search(self, X: np.ndarray) -> np.ndarray:
        """float32 passes until one float64 pass is expected to finish; returns the columns for that pass."""
        widths: list[float] = []
        extra = 0
        want_norm = False
        while True:
            self._check_budget()
            W = self._search_pass(X, want_norm)
            self.Q = np.hstack([self.Q, X]) if self.Q.shape[1] else X
            m = self.Q.shape[1]
            self.spent += 6.0 * self.n * m * X.shape[1] / GEMM_RATE + 6.0 * float(m) ** 3 / EIGEN_RATE
            columns = self.Q.T @ W
            self.T = _grow(self.T, columns)
            theta, Y = _eigh_descending(self.T)
            # rounding of float32 tiles: relative to |K|, whatever of it centring removes
            noise = 8 * UNIT32 * max(self._size_K_estimate(theta), float(theta[0]))
            room = self.n - 1 - self.Q.shape[1]
            if room == 0 or noise > 1e-2 * theta[0]:
                return _times(self.Q, Y[:, self._columns_to_keep(theta)[0]])
            # without it the columns of the exact pass can't be planned, where the other forms of mu don't reach
            known = self._columns_to_keep(theta)[1] <= 0.8 * theta[min(self.c, len(theta)) - 1]
            want_norm = self.norm_guess is None and not known
            last = W.copy(order="F")
            for j in range(0, W.shape[1], _STRIP):
                last[:, j : j + _STRIP] -= _times(self.Q, columns[:, j : j + _STRIP])
            X = _orthonormal(last, self.Q, self.rng, noise=0.0, projected=True)
            coupling = np.zeros((X.shape[1], len(theta)))
            coupling[:, -W.shape[1] :] = X.T @ W
            del last, W
            c = self._wanted(theta)
            wanted = c if c is not None and c <= len(theta) else None
            if wanted is not None:
                # the gap that the vectors see; whether mu can be proved that low is the exact pass's affair
                mu = max(float(theta[min(self.block, len(theta)) - 1]), 0.0) if len(theta) > wanted else 0.0
                mu = min(mu, 0.999 * float(theta[wanted - 1]))
                ends = upper_ends(self.T, coupling, max(mu, 0.0))[:wanted]
                widths.append(float(np.max(ends - theta[:wanted])) / float(theta[0]))
                self.search_history.append((self.passes, widths[-1]))
                target = max(0.3 * self.tol, 100 * (noise / theta[0]) ** 2)
                # what the exact pass gains: as much as the last one did, or what subspace iteration would
                rate = widths[-1] / widths[-2] if len(widths) > 1 else (mu / float(theta[wanted - 1])) ** 2
                if widths[-1] * min(rate, 1.0) <= target:
                    # more columns may bring mu down as well: two float32 passes are worth trying, not more
                    extra += 1
                    if extra > 2 or not self._mu_falls(theta, wanted, keeping=True):
                        break
            if self.passes >= self.max_passes - 1:
                break
            if self.Q.shape[1] + 2 * X.shape[1] > self.columns:
                some = max(min(len(theta), self.columns // 2), min(self.c, len(theta)))
                self.Q, self.T = _times(self.Q, Y[:, :some]), np.diag(theta[:some])
            if wanted is None:
                X = self._widen(X)
        keep = self._columns_to_keep(theta)[0]
        # of the next block, the directions that the wanted Ritz vectors' residuals have
        lead = scipy.linalg.svd(coupling @ Y[:, : wanted or self.c], full_matrices=False, check_finite=False)[0]
        found = np.empty((self.n, len(keep) + lead.shape[1]), order="F")
        found[:, len(keep) :] = X @ lead
        del X
        for j in range(0, len(keep), _STRIP):
            found[:, j : min(j + _STRIP, len(keep))] = _times(self.Q, Y[:, keep[j : j + _STRIP]])
        return found

    def _widen(self, X: np.ndarray) -> np.ndarray:
        """While a fraction of the variance is not in sight: twice the block, filled with random columns."""
        extra = min(X.shape[1], self.widest - X.shape[1], self.columns - self.Q.shape[1] - 2 * X.shape[1])
        if self.fraction is None or extra <= 0:
            return X
        more = self.rng.standard_normal((self.n, extra))
        return np.hstack([X, _orthonormal(more, np.hstack([self.Q, X]), self.rng, noise=0.0)])

    def _columns_to_keep(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Indices of the Ritz vectors to take into the exact pass, and the mu to expect of them.

        More of them make mu smaller, and the pass dearer. First come the wanted ones, then the largest in size (the
        negative ones of an indefinite matrix count in |A|_F).
        """
        c = min(self._wanted(theta) or self.c, len(theta))
        least = min(c + 2, len(theta))
        order = _by_size(theta, least)
        most = max(min(len(theta), max(8 * c, c + 60), self.columns - self.block), least)
        guesses = self._mu_guesses(theta[order])[least - 1 : most]
        enough = np.flatnonzero(guesses <= 0.8 * theta[c - 1])
        if len(enough):
            return order[: least + enough[0]], float(guesses[enough[0]])
        mu = float(guesses[-1])
        # out of reach; the exploration still has the easier task the more is known, but without it width is wasted
        if not self.probabilistic and mu > 1.1 * theta[c - 1]:
            most = max(min(self.block, most), least)
        return order[:most], mu

    def _exact(self, X: np.ndarray) -> KrylovResult:
        """float64 passes, a certificate after each, until it is narrow enough."""
        n = self.n
        self.Q = np.empty((n, 0), order="F")
        X = _orthonormal(X, self.Q, self.rng, noise=0.0) if X.shape[1] else X
        self.W = np.empty((n, 0), order="F")
        self.gram = np.empty((0, 0))
        self.compression = np.empty((0, 0))
        want_norm = not self.semidefinite or self.trace_K is None or self._norm_would_help()
        while True:
            self._check_budget()
            self._append(X, self._exact_pass(X, want_norm and (self.norm is None or self.norm_cancelled)))
            del X
            theta, Y, residual = self._ritz()
            if self.frozen is not None:
                self.steps += 1
                if self.steps >= 2 and self._explored_end() > 0.9 * theta[min(self.c, len(theta)) - 1]:
                    # something large had been missed: it is in the space now, look again beyond it
                    self.frozen = None
            certificate, c, mu_limited = self._certify(theta, Y, residual.T @ residual)
            relative = certificate.width / theta[0] if theta[0] > 0 else np.inf
            self.history.append((self.passes, float(relative)))
            done = self._done(certificate, theta, c)
            if self.fraction is not None:
                self.block = max(self.block, min(default_block_size(n, c), self.widest))
            room = n - 1 - self.Q.shape[1]
            if room == 0 and not done and self._norm_missing() and self.passes < self.max_passes:
                # the space is all there is, but without a bound on |K| and |Kc| no rounding is known
                self._exact_pass(self.Q[:, :1], True)
                certificate, c, _ = self._certify(theta, Y, residual.T @ residual)
                self.history.append((self.passes, float(certificate.width / theta[0]) if theta[0] > 0 else np.inf))
                done = self._done(certificate, theta, c)
            if done or self.passes >= self.max_passes or room == 0 or self._at_rounding(certificate, theta):
                break
            if mu_limited and self.frozen is None and self.patience > 0 and self._mu_falls(theta, c):
                # the ordinary next block lowers mu faster than a random one
                self.patience -= 1
                mu_limited = False
            if mu_limited and not self._exploration_pays(theta, c):
                break
            want_norm = not self.semidefinite or certificate.outside.mu > 0.3 * max(theta[c - 1], 0.0)
            if self.frozen is not None and self._full():
                break  # memory ends the exploration
            b = self.block
            # of the wanted and the guard vectors, those that are furthest from converged
            candidates = residual[:, : max(b, c + default_block_size(self.n, 1))]
            largest = np.argsort(-np.einsum("ij,ij->j", candidates, candidates), kind="stable")[:b]
            furthest = np.array(candidates[:, largest], order="F")
            del candidates, residual  # what follows needs their room
            X = self._next_block(theta, Y, furthest, mu_limited, c)
        if not done and 2 * certificate.rounding <= 0.4 * self.tol * theta[0] and self.budget <= _SHORT * self.spent:
            raise TooDearError(self.passes)
        vectors = _times(self.Q, Y[:, :c])
        return self._result(theta, vectors, residual[:, :c] + vectors * theta[:c], certificate, c, done)

    def _at_rounding(self, certificate: Certificate, theta: np.ndarray) -> bool:
        """Is what is left of the width mostly rounding, and that more than tol? Then further passes only add to it."""
        if self.fraction is not None and self._wanted(theta - certificate.rounding) is None:
            return False  # more components are still to come
        rounding = 2 * certificate.rounding
        grew = len(self.history) >= 3 and self.history[-1][1] > self.history[-2][1] > self.history[-3][1]
        return rounding > 0.1 * self.tol * theta[0] and (certificate.width < 2 * rounding or grew)

    def _norm_missing(self) -> bool:
        return (self.norm is None or self.norm_cancelled) and self.product.gives_norm

    def _norm_would_help(self) -> bool:
        if not len(self.T):
            return False
        theta = _eigh_descending(self.T)[0]
        c = min(self._wanted(theta) or self.c, len(theta))
        order = self._columns_to_keep(theta)[0]
        without = float(self._mu_guesses(theta[order], with_norm=False)[-1])
        # what a feature map promises of mu it also proves; the trace's promise needs every column to converge
        return without > (0.3 if self.info is None else 0.8) * theta[c - 1]

    def _append(self, X: np.ndarray, W: np.ndarray) -> None:
        """Q, W and the Gram matrices Q'Q (not symmetrised away from what it is) and Q'W grow by a block."""
        self.Q = np.hstack([self.Q, X]) if self.Q.shape[1] else X
        old = self.W
        self.W = np.hstack([old, W]) if old.shape[1] else W
        m = old.shape[1]
        self.gram = _grow(self.gram, self.Q.T @ X)
        compression = np.empty((self.Q.shape[1], self.Q.shape[1]))
        compression[:m, :m] = self.compression
        compression[:, m:] = self.Q.T @ W
        compression[m:, :m] = X.T @ old
        self.compression = compression

    def _ritz(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ritz values, coordinates Y of the Ritz vectors Q Y, and their residuals A Q Y - Q Y diag(theta)."""
        self.spent += ritz_seconds(self.n, self.Q.shape[1])
        theta, Y = _eigh_descending((self.compression + self.compression.T) / 2)
        residual = _times(self.W, Y)
        for j in range(0, len(theta), _STRIP):
            part = slice(j, j + _STRIP)
            residual[:, part] -= _times(self.Q, Y[:, part]) * theta[part]
        return theta, Y, residual

    def _certify(self, theta: np.ndarray, Y: np.ndarray, residual_gram: np.ndarray) -> tuple[Certificate, int, bool]:
        """The best certificate that there is, the number of components, and whether only mu is in the way."""
        n, m = self.n, len(theta)
        size = self._size_K()
        eta = product_error(n, m, size, self.entry_error, self._error_bound())
        ritz = RitzBlock(Y.T @ self.compression @ Y, Y.T @ self.gram @ Y, residual_gram, n, eta)
        matrix = MatrixInfo(self._trace() if self.semidefinite else None, self._norm_bound())
        lower = theta - eta
        c = min(self._wanted(lower) or m, m) if self.fraction is not None else min(self.c, m)
        others = [] if self.info is None else [self._mu_features(theta, eta)]
        certificate = ritz_certificate(ritz, c, matrix, deterministic_bound(ritz, matrix, others))
        if self._done(certificate, theta, c):
            return certificate, c, False
        # would a mu as low as the Ritz values let hope for do? Then it is mu that is in the way, not the vectors
        hope = max(float(theta[min(m - 1, c + (m - c) // 2)]), 0.0) if m > c else 0.0
        hope = min(hope, 0.9 * max(float(theta[c - 1]), 0.0))
        hoped = ritz_certificate(ritz, c, matrix, Bound(hope, "hope"))
        mu_limited = self._done(hoped, theta, c) and certificate.outside.mu > 0.9 * theta[c - 1]
        if self.frozen is not None and self.steps > 0:
            probable = self._probabilistic_mu(eta)
            other = ritz_certificate(ritz, c, matrix, probable)
            if other.width < certificate.width and other.width < 0.5 * certificate.width:
                certificate = other
        return certificate, c, mu_limited

    def _mu_features(self, theta: np.ndarray, eta: float) -> Bound:
        assert self.info is not None
        seen, W = self.features_seen or (0, np.empty((0, len(self.info.moment))))
        W = np.vstack([W, self.info.project(self.Q[:, seen:])])
        self.features_seen = (self.Q.shape[1], W)
        trace = self._trace()
        gap = trace[0] - float(theta.sum()) if trace is not None else None
        gap_error = (trace[1] if trace is not None else 0.0) + 2 * len(theta) * eta
        defect = float(np.linalg.norm(self.gram - np.eye(len(theta)))) + len(theta) * rounding_factor(self.n) * UNIT
        return feature_bound(self.info, W, self.n, gap, defect, gap_error)

    def _probabilistic_mu(self, eta: float) -> Bound:
        """Of the complement of the frozen columns, from the Krylov space of the random block (Rayleigh-Ritz on it)."""
        frozen = self.frozen or 0
        largest = max(self._explored_end(), 0.0)
        if self.semidefinite:
            lowest = -eta
        else:
            norm = self._norm_bound()
            if norm is None:
                return NO_BOUND
            inside = float(np.linalg.norm(self.compression[:frozen, :frozen]))
            lowest = -float(np.sqrt(max(norm**2 - inside**2, 0.0))) - eta
        return exploration_bound(
            largest + eta,
            order=self.n - frozen,
            steps=self.steps,
            starts=self.starts,
            lowest=lowest,
            stops=self.max_passes,
        )

    def _explored_end(self) -> float:
        explored = self.compression[self.frozen :, self.frozen :]
        return float(np.linalg.eigvalsh((explored + explored.T) / 2)[-1])

    def _exploration_pays(self, theta: np.ndarray, c: int) -> bool:
        return self.probabilistic and c <= len(theta) and theta[c - 1] > 0

    def _done(self, certificate: Certificate, theta: np.ndarray, c: int) -> bool:
        if self.fraction is not None and self._wanted(theta - certificate.rounding) is None:
            return False
        if self.fraction is None and c < self.c:
            return False
        return bool(theta[0] > 0 and certificate.width <= self.tol * theta[0])

    def _full(self) -> bool:
        return self.Q.shape[1] + self.block > self.columns

    def _next_block(
        self, theta: np.ndarray, Y: np.ndarray, furthest: np.ndarray, mu_limited: bool, c: int
    ) -> np.ndarray:
        """Columns of the next pass; ``furthest``: the residuals to follow."""
        b = self.block
        noise = 4 * rounding_factor(self.n) * UNIT * max(self._size_K_estimate(theta), float(np.max(np.abs(theta))))
        if self.frozen is not None:
            # the Krylov space of the deflated matrix: the last block's image, made orthogonal to all before
            return _orthonormal(self.W[:, -self.starts :], self.Q, self.rng, noise)
        ahead = 8 if mu_limited else 2  # blocks that the space must still hold: an exploration can't be restarted
        if self._full() or (mu_limited and self.Q.shape[1] + ahead * b > self.columns):
            keep = max(min(len(theta), self.columns - ahead * b), min(c + 2, len(theta)))
            self._restart(Y[:, _by_size(theta, min(c + 2, len(theta)))[:keep]])
        if mu_limited:
            self._check_budget(_EXPLORING)
            self.frozen, self.steps, self.starts = self.Q.shape[1], 0, min(b, self.n - 1 - self.Q.shape[1])
            return _orthonormal(self.rng.standard_normal((self.n, b)), self.Q, self.rng, noise=0.0)
        X = np.hstack([furthest, np.zeros((self.n, b - furthest.shape[1]))])
        X = _orthonormal(X, self.Q, self.rng, noise)
        return self._widen(X) if self._wanted(theta) is None else X

    def _restart(self, Y: np.ndarray) -> None:
        """Thick restart: only the leading Ritz vectors, their images and their Gram matrices stay."""
        self.Q = _times(self.Q, Y)
        self.W = _times(self.W, Y)
        self.gram, self.compression = Y.T @ self.gram @ Y, Y.T @ self.compression @ Y
        self.features_seen = None

    def _result(
        self, theta: np.ndarray, vectors: np.ndarray, images: np.ndarray, certificate: Certificate, c: int, done: bool
    ) -> KrylovResult:
        trace = self._trace()
        return KrylovResult(
            theta=theta[:c].copy(),
            vectors=vectors,
            images=images,
            certificate=certificate,
            converged=done,
            passes=self.passes,
            search_passes=self.search_passes,
            block_size=self.block,
            negative_end=min(float(theta[-1]), 0.0),
            history=tuple(self.history),
            search_history=tuple(self.search_history),
            row_means=self.row_means,
            grand_mean=self.grand_mean,
            trace=None if trace is None else trace[0],
            norm=self.norm,
            message="" if done else self._message(certificate, theta, c),
        )

    def _message(self, certificate: Certificate, theta: np.ndarray, c: int) -> str:
        width = certificate.width / theta[0] if theta[0] > 0 else np.inf
        passes = f"after {self.passes} pass{'es' * (self.passes != 1)}"
        text = f"{passes} the widest of {c} intervals is {rounded_up(width)} of the largest eigenvalue"
        if theta[0] > 0 and self._rounding_alone(len(theta)) > 0.8 * self.tol * theta[0]:
            floor = min(self._rounding_alone(len(theta)) / theta[0], width)  # other bounds may be below that
            return (
                f"{text}, tol is {self.tol:g}; rounding in float64 alone is {floor:.2g}: the kernel matrix is nearly "
                "constant or its entries are large; a smaller sigma or a larger tol helps"
            )
        short = c < self.c or (self.fraction is not None and self._wanted(theta) is None)
        if c < self.c:
            text += f", and the space holds no more than {c} of the {self.c} components"
        elif short:
            text += f", and the {c} components found don't carry the fraction {self.fraction}"
        else:
            text += f", tol is {self.tol:g}"
        ways = ["more passes (max_passes) help"] if short or self._still_falls() else []
        if theta[0] > 0 and 2 * certificate.rounding > 0.8 * self.tol * theta[0]:
            ways = ["the products are approximate, and their own error is more than tol allows: products='exact' helps"]
        ways += [self.otherwise] if self.otherwise else []
        return f"{text}; {', or '.join(ways or ['more passes (max_passes), a larger tol or fewer components help'])}"

    def _rounding_alone(self, columns: int) -> float:
        """What rounding leaves of an interval's width, whatever the error of the products."""
        return 2 * product_error(self.n, columns, self._size_K(), self.entry_error, 0.0)

    def _still_falls(self) -> bool:
        """Did the last exact passes narrow the intervals? After few of them: is anything known of the eigenvalues?"""
        widths = [width for _, width in self.history]
        return widths[-1] < (1.0 if len(widths) < 4 else 0.7 * widths[-4])
