"""Kernel independent component analysis (Bach & Jordan 2002, JMLR 3, 1-48).

Sources are independent where every function of one is uncorrelated with every function of the others. Over the unit
ball of a kernel's function space the largest such correlation is a canonical correlation of the feature vectors, so
that a contrast needs nothing but their covariances: with C_ij = cov(phi(y_i), phi(y_j)), kappa the regularisation,
e = kappa / 2, T_i = C_ii^(1/2) (C_ii + e)^(-1) and

    R_ii = I,    R_ij = T_i C_ij T_j,

``kcca`` is -1/2 log of R's smallest eigenvalue and ``kgv`` -1/2 log det R (equations 13 to 16 of the paper, whose
N x N matrix R_kappa has the same spectrum, further ones aside). ``contrast`` computes them through a feature
map, ``descent`` finds the rotation of whitened rows under which they are least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import fastkpca
from fastkpca.base import parallel
from fastkpca.base.rounding import EPS
from fastkpca.kernels import Gaussian, Kernel
from fastkpca.methods import as_rows, check_choice, check_count, check_draws, check_finite, check_rng, check_share

from ..methods import stored
from ..methods.base import Projection, project
from ..methods.functions import new_rows, within_range
from ..methods.options import regularization_strength
from ..methods.products import DRAFT_ROWS, is_matrix, need_semidefinite
from ..methods.threads import one_blas_thread
from .contrast import START_ROWS, Setting, some_numbers
from .descent import descend, random_rotation, turn_pairs

__all__ = ["KICAModel", "kica", "kica_contrast", "kica_project"]

kica_project = project

MAX_INPUT = float(np.finfo(np.float64).max * np.sqrt(EPS))
"""Number in X, and its inverse the smallest that a column's largest may be: quotients of both are within float64."""
LEAST_REGULARIZATION = 1e-8
"""Least kappa: below it canonical correlations are all one to rounding; above its inverse they are all zero."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KICAModel(Projection):
    """The result of ``kica``: sources = (X - mean) @ unmixing.T and X = mean + sources @ mixing.T (c < d: up to the
    principal components that were left out).

    Attributes
    ----------
    unmixing : ndarray (c, d)
    mixing : ndarray (d, c)
        Pseudo-inverse of ``unmixing``. Sources come by the share of X's variance that they carry, largest first, with
        the sign that makes the largest entry of their column positive.
    mean : ndarray (d,)
    sources : ndarray (N, c)
        Mean zero, variance one.
    contrast : float
        At the solution; zero where the sources are independent as far as the kernel and the regularisation can see.
    kernel : fastkpca.kernels.Kernel
        Kernel of one source.
    info : dict
        ``contrast``: its name; ``regularization``, ``tol``; ``n_features`` of the common map and the ``residual`` that
        it leaves, trace over trace; ``iterations``, ``evaluations``, ``gradient`` (largest entry at the end),
        ``converged``; ``starts``: the contrast that each of several starts led to, on the rows that decided.
    """

    made_by = "kica()"

    unmixing: np.ndarray = field(metadata=stored.array("cd"))
    mixing: np.ndarray = field(metadata=stored.array("dc"))
    mean: np.ndarray = field(metadata=stored.array("d"))
    sources: np.ndarray = field(metadata=stored.not_stored("c"))
    contrast: float = field(metadata=stored.number())
    kernel: Kernel = field(metadata=stored.object_of(Kernel))
    info: dict[str, Any] = field(metadata=stored.info())
    names: tuple[str, ...] | None = field(metadata=stored.names("d"))

    @one_blas_thread
    def project(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As the function ``project``."""
        parallel.resolve_threads(n_threads)
        rows = new_rows(X, len(self.mean), self.names, "kica")
        return within_range(lambda: rows.shifted(self.mean).all() @ self.unmixing.T)

    def facts(self) -> list[str]:
        c, d = self.unmixing.shape
        return [f"{self.kernel!r}, {c} components of {d} columns, contrast {self.contrast:.4g}"]


def kica(
    X: Any,
    kernel: Any = "gaussian",
    c: int | None = None,
    contrast: str = "kgv",
    *,
    regularization: float | None = None,
    tol: float | None = None,
    n_starts: int | None = None,
    max_iter: int = 100,
    rng: Any = 0,
    n_threads: int | None = None,
    **kernel_parameters: Any,
) -> KICAModel:
    """Independent components by kernel canonical correlations, without an N x N matrix.

    Parameters
    ----------
    X : array_like (N, d)
        Mixtures: X = mean + sources @ mixing.T with independent sources of which at most one is Gaussian.
    kernel : str or fastkpca.kernels.Kernel
        Positive semidefinite and smooth; of one source with unit variance. The Gaussian's ``sigma`` is 1 for N up to
        1000 and 1/2 beyond, as in the paper, unless given.
    c : int, optional
        Number of components; where it is smaller than d, of the first c principal components. Default: d.
    contrast : str
        "kgv", the kernel generalised variance (all canonical correlations), or "kcca" (the largest one).
    regularization : float, optional
        kappa. Default: 2e-2 for N up to 1000 and 2e-3 beyond.
    tol : float, optional
        Residual trace over trace of the feature map. Default: 1e-2 kappa.
    n_starts : int, optional
        Most starts: the first is found by turning pairs of whitened components, each further one likewise after a
        random rotation, until the two best lead to the same contrast. Default: 8, or 1 for two components, where the
        search sees the whole circle.
    max_iter : int
        Largest number of steps of each descent.
    rng : int, Generator, SeedSequence or None
    n_threads : int, optional
        Default: all processors. The result is the same with any number.
    **kernel_parameters
        As ``sigma``.

    Returns
    -------
    KICAModel

    Raises
    ------
    ValueError
        X has NaN, infinity, a constant column, one whose largest number is not between 4e-301 and 2.6e300, too few
        rows, or a rank below c.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sources = rng.uniform(-1, 1, (400, 2))
    >>> X = sources @ [[1.0, 0.4], [-0.5, 0.8]]
    >>> model = kica(X, contrast="kgv")
    >>> np.abs(np.corrcoef(model.sources.T, sources.T)[:2, 2:]).max(axis=1).round(1).tolist()
    [1.0, 1.0]
    >>> kica_project(model, X[:3]).shape
    (3, 2)
    """
    check_choice(contrast, "contrast", ("kgv", "kcca"))
    rows = as_rows(X, purpose="kica")
    X = _matrix(rows)
    n, d = X.shape
    c = d if c is None else check_count(c, "c")
    n_starts = (8 if c > 2 else 1) if n_starts is None else check_draws(n_starts, "n_starts")
    max_iter = check_count(max_iter, "max_iter")
    given = fastkpca.get_kernel(kernel, **kernel_parameters)
    rough = _setting(contrast, given, START_ROWS // 2, regularization, tol, n_threads)
    fine = _setting(contrast, given, n, regularization, tol, n_threads)
    generator = check_rng(rng)
    with parallel.blas_threads():
        mean, whitening, coloring = _whitening(X, c)
        Z = (X - mean) @ whitening.T
        W, value = np.eye(1), 0.0
        info = {"contrast": contrast, "regularization": fine.kappa, "tol": fine.tol, "converged": True}
        if c > 1:
            W, kernel, values = _best_start(Z, rough, n_starts, max_iter, generator)
            # what the kernel left to the data is settled
            fine = replace(fine, kernel=kernel) if fine.kernel is rough.kernel else fine
            W, value, reached = _from_start(Z, W, fine, max_iter, generator)
            info |= reached | {"starts": values if n_starts > 1 else []}
    unmixing, mixing = _ordered(W @ whitening, coloring @ W.T)
    return KICAModel(
        unmixing=unmixing,
        mixing=mixing,
        mean=mean,
        sources=(X - mean) @ unmixing.T,
        contrast=value,
        kernel=fine.kernel,
        info=info,
        names=rows.names,
    )


def _best_start(
    Z: np.ndarray, rough: Setting, n_starts: int, max_iter: int, generator: np.random.Generator
) -> tuple[np.ndarray, Kernel, list[float]]:
    """The best of some starts on few rows, the kernel as it was resolved, and the contrasts that the starts led to.

    The parameters are those for few rows, where none are given: they see as far, in a third of the features.
    """
    n, c = Z.shape
    few = Z if n <= START_ROWS else Z[np.sort(generator.choice(n, START_ROWS, replace=False))]
    # one map for any rotation: made from the whitened components as they are, and after random rotations
    turned = [few] + [few @ random_rotation(generator, c).T for _ in range(3)]
    search = rough.contrast(few, some_numbers(np.concatenate(turned), generator))
    rough = replace(rough, kernel=search.map.kernel)
    if search.map.n_features == 1:
        raise ValueError(
            f"{rough.kernel!r} on components of unit variance is one function up to tol={rough.tol:g}, which cannot "
            "tell dependence from correlation; give a shorter length scale, a nonlinear kernel, or a smaller tol"
        )
    share = 0.5  # of tol: each start has a map of its own
    starts: list[tuple[float, np.ndarray]] = []
    for i in range(n_starts):
        W = turn_pairs(search, np.eye(c) if i == 0 else random_rotation(generator, c))
        value = math.nan
        if n_starts > 1:
            # tails are longest where the sources are: a map of these components, so that starts can be compared
            target = rough.contrast(few, some_numbers(few @ W.T, generator), share)
            W, value, *_ = descend(target, W, max_iter)
        starts.append((value, W))
        best = sorted(value for value, _ in starts)
        # the same minimum, within the error of maps with this residual over kappa
        if i and best[1] - best[0] <= share * rough.tol / rough.kappa * best[0]:
            break
    _, W = min(starts, key=lambda start: start[0])
    return W, rough.kernel, [value for value, _ in starts]


def _from_start(
    Z: np.ndarray, W: np.ndarray, setting: Setting, max_iter: int, generator: np.random.Generator
) -> tuple[np.ndarray, float, dict[str, Any]]:
    """Descent on all rows from a start, with a map that misses at most ``tol`` at the end."""
    n, units = len(Z), None
    if n > 3 * DRAFT_ROWS:
        part = Z[np.sort(generator.choice(n, DRAFT_ROWS, replace=False))]
        W, _, units, _ = descend(setting.contrast(part, some_numbers(part @ W.T, generator)), W, max_iter)
    iterations = evaluations = 0
    for attempt in range(3):
        numbers = (Z @ W.T).ravel() if attempt else some_numbers(Z @ W.T, generator)
        # the components turn a little after this, and the rows are more than some numbers: half of tol
        target = setting.contrast(Z, numbers, 0.5)
        W, value, units, reached = descend(target, W, max_iter, units)
        iterations += reached["iterations"]
        evaluations += reached["evaluations"]
        residual = target.residual(W)
        if residual <= setting.tol:
            break
    reached |= {"iterations": iterations, "evaluations": evaluations}
    return W, value, {"n_features": target.map.n_features, "residual": residual} | reached


def kica_contrast(
    Y: Any,
    kernel: Any = "gaussian",
    contrast: str = "kgv",
    *,
    regularization: float | None = None,
    tol: float | None = None,
    n_threads: int | None = None,
    **kernel_parameters: Any,
) -> float:
    """The contrast that ``kica`` minimises, of Y as it is: a measure of the dependence of its columns.

    Parameters
    ----------
    Y : array_like (N, c)
        Columns of about unit variance, for the default length scale.
    kernel : str or fastkpca.kernels.Kernel
        As for ``kica``, like the following.
    contrast : {"kgv", "kcca"}
    regularization : float, optional
    tol : float, optional
    n_threads : int, optional
    **kernel_parameters

    Returns
    -------
    float
        Zero where the kernel sees no dependence.
    """
    check_choice(contrast, "contrast", ("kgv", "kcca"))
    Y = _matrix(Y)
    given = fastkpca.get_kernel(kernel, **kernel_parameters)
    setting = _setting(contrast, given, len(Y), regularization, tol, n_threads)
    if Y.shape[1] == 1:
        return 0.0
    with parallel.blas_threads():
        return setting.contrast(Y, Y.ravel()).value(np.eye(Y.shape[1]))[0]


def _matrix(X: Any) -> np.ndarray:
    """X as float64, rounded to it where it has more digits."""
    rows = as_rows(X, purpose="kica")
    check_finite(rows, purpose="kica")
    return rows.shifted(np.zeros(rows.n_features)).all()


def _setting(
    name: str, kernel: Kernel, n: int, regularization: float | None, tol: float | None, n_threads: int | None
) -> Setting:
    """Kernel, kappa and tol; the paper's for n rows where they are not given."""
    if kernel == Gaussian():
        kernel = Gaussian(sigma=1.0 if n <= 1000 else 0.5)
    if is_matrix(kernel):
        raise ValueError(
            "kica compares single numbers of the rows by its kernel, so it takes no matrix; give it the rows"
        )
    need_semidefinite(kernel, "kica")
    kappa = (2e-2 if n <= 1000 else 2e-3) if regularization is None else regularization_strength(regularization)
    if not LEAST_REGULARIZATION <= kappa <= 1.0 / LEAST_REGULARIZATION:
        raise ValueError(
            f"regularization is {kappa:g}; give at least {LEAST_REGULARIZATION:g}, below which canonical correlations "
            f"come within rounding of one, and at most {1.0 / LEAST_REGULARIZATION:g}, beyond which no dependence is "
            "left to see (the paper's values are 2e-2 and 2e-3)"
        )
    if tol is None:
        tol = 1e-2 * min(kappa, 1.0)
    tol = check_share(tol, "tol", f"a share of the kernel's trace between 0 and 1, well below regularization={kappa:g}")
    return Setting(name, kernel, kappa, tol, parallel.threads_for(kernel, n_threads))


def _whitening(X: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean (d,), the matrix (c, d) that takes rows minus the mean to uncorrelated ones of unit variance, and its
    pseudo-inverse (d, c)."""
    n, d = X.shape
    if n <= c:
        raise ValueError(f"X has {n} rows, too few for {c} components; give more rows (hundreds, for a useful answer)")
    size = np.abs(X).max(axis=0)
    size[size == 0.0] = 1.0
    strange = np.flatnonzero(~((size > 1.0 / MAX_INPUT) & (size < MAX_INPUT)))
    if len(strange):
        raise ValueError(
            f"column {strange[0]} of X holds numbers of about {size[strange[0]]:.2g}, whose differences or quotients "
            f"leave the range of float64; scale it to between {1.0 / MAX_INPUT:g} and {MAX_INPUT:g} before kica"
        )
    unit = np.ldexp(1.0, np.frexp(size)[1] - 1)  # sums of the largest numbers would overflow; this rounds nothing
    mean = (X / unit).mean(axis=0) * unit
    scale = (X / size).std(axis=0) * size  # squares of the largest numbers would overflow
    flat = np.flatnonzero(scale <= 8 * EPS * size)
    if len(flat):
        raise ValueError(f"column {flat[0]} of X is constant: it holds no source; drop it before kica")
    if c > d:
        raise ValueError(f"c={c} components of {d} columns; give c of at most {d}")
    standard = (X - mean) / scale
    values, vectors = np.linalg.eigh(standard.T @ standard / n)
    # of columns with unit variance, so that their units don't matter; below this there is only rounding
    rank = int(np.sum(values > d * 1e-13))
    if c > rank:
        raise ValueError(
            f"X has rank {rank} (after its mean is subtracted), c is {c}; columns repeat each other: give c={rank}, or "
            "drop those"
        )
    if c < d:  # the largest variances in the units of X, as usual
        unit = scale.max()
        values, vectors = np.linalg.eigh((standard.T @ standard / n) * np.outer(scale / unit, scale / unit))
        scale = np.full(d, unit)
    values, vectors = values[: -c - 1 : -1], vectors[:, : -c - 1 : -1]
    return mean, (vectors / np.sqrt(values)).T / scale, vectors * np.sqrt(values) * scale[:, None]


def _ordered(unmixing: np.ndarray, mixing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The components by the share of the variance of X, each column in its own unit, with a positive largest entry."""
    # sources have unit variance
    largest = np.abs(mixing).max(axis=1, keepdims=True)
    columns = mixing / np.where(largest > 0.0, largest, 1.0)
    columns /= np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1.0)  # less than one is a row of zeros
    order = np.argsort(-np.sum(columns**2, axis=0), kind="stable")
    mixing = mixing[:, order]
    sign = np.sign(mixing[np.argmax(np.abs(mixing), axis=0), np.arange(len(order))])
    return unmixing[order] * sign[:, None], mixing * sign
