"""The story of kernel PCA: validate, resolve, plan, solve, certify, return."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import execute, validate
from ._plan import Plan, make_plan
from ._routes import Problem, solve
from .errors import ComponentsWarning
from .kernels import get_kernel
from .model import KPCAModel
from .protocol import Kernel
from .rows import Rows, summarize

__all__ = ["kpca", "kpca_project", "plan"]


def kpca(
    X: Any,
    kernel: Any = "gaussian",
    c: int | float | None = None,
    *,
    tol: float = 1e-6,
    method: str = "auto",
    features: str = "auto",
    memory_limit: int | str | None = None,
    n_threads: int | None = None,
    rng: Any = 0,
    return_scores: bool = True,
    out: np.ndarray | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
    **kernel_parameters: Any,
) -> KPCAModel:
    """Kernel principal component analysis.

    Parameters
    ----------
    X : array_like (N, d)
        Rows are observations: array, memory map, data frame or sparse matrix; or the Gram matrix (N, N) for
        ``kernel="precomputed"``. Never modified; a memory map is never copied whole.
    kernel : str, Kernel, object with ``block``, or callable
        A name (``fastkpca.list_kernels()``), or a kernel; a callable takes two tiles of rows and returns the matrix
        between them.
    c : int, float or None
        Number of components; a fraction 0 < c < 1 keeps as many as explain that part of the variance; None keeps all.
    tol : float
        Width of an eigenvalue's interval, relative to the largest eigenvalue, to aim at.
    method : {"auto", "dense", "features", "krylov"}
        "auto" takes what the plan predicts to be the fastest.
    features : str
        "auto", or the name of a feature map to force.
    memory_limit : int or str, optional
        Bytes, or "500MB"; beside the rows themselves.
    n_threads : int, optional
        Default: all processors. Results do not depend on it.
    rng : int, Generator, SeedSequence or None
        Randomness; 0 by default: same input, same output.
    return_scores : bool
        False: the model alone; its ``score`` then raises ScoresNotKeptError.
    out : ndarray (N, c), optional
        Where to write the scores.
    progress : bool or callable
        True writes to stderr; a callable gets (stage, done, total).
    **kernel_parameters
        For example ``sigma=0.5`` or ``degree=3, offset=1.0``.

    Returns
    -------
    KPCAModel
        Unpacks as ``coeff, score, latent, tsquared, explained``.

    Raises
    ------
    ValueError, TypeError
        For input; the text says what was found, what is needed, and how to get there.

    Notes
    -----
    Raykar & Ankur, Fast Kernel Principal Component Analysis for the polynomial and Gaussian kernels, 2003.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((1000, 5))
    >>> model = fk.kpca(X, "polynomial", 3, degree=2)
    >>> model.score.shape
    (1000, 3)
    """
    started = time.perf_counter()
    problem = _prepare(X, kernel, c, tol, method, memory_limit, n_threads, rng, progress, kernel_parameters)
    chosen = _plan(problem, method, features)
    solution = solve(problem, chosen)
    score = _scores(problem, solution, return_scores, out)
    info = solution.info | {"seconds": time.perf_counter() - started}
    return KPCAModel(
        eigenvalues=solution.eigenvalues,
        eigenvalue_bounds=solution.certificate.eigenvalue_bounds,
        bound_kind=solution.certificate.bound_kind,
        angle_bounds=solution.certificate.angle_bounds,
        clusters=solution.certificate.clusters,
        total_variance=solution.total[1] / (problem.data.n_samples - 1),
        total_variance_bounds=tuple(x / (problem.data.n_samples - 1) for x in solution.total),
        kernel=getattr(problem.kernel, "unbound", lambda: problem.kernel)(),
        plan=chosen,
        info=info,
        n_samples=problem.data.n_samples,
        n_features=problem.n_columns,
        shift=problem.data.shift,
        dtype=problem.dtype,
        projector=solution.projector,
        _score=score,
    )


def kpca_project(
    model: KPCAModel,
    X: Any,
    *,
    out: np.ndarray | None = None,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> np.ndarray:
    """Project new rows onto the components of a model.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d)
        New rows, with the columns of the training rows; for a precomputed kernel the (m, N) matrix between new and
        training rows.
    out : ndarray (m, c), optional
        Where to write them.
    n_threads : int, optional
        Default: all processors.
    progress : bool or callable

    Returns
    -------
    ndarray (m, c)
        ``coeff' (k(X_train, x) - column means)`` for each new row x: only the column means of K are needed for
        centring, since 1'coeff = 0.
    """
    if not isinstance(model, KPCAModel):
        raise TypeError(f"model is a {type(model).__name__}; give what kpca() or load() returned")
    kernel, X = model.kernel.bind(X, range(model.n_samples))
    rows = validate.as_rows(X)
    validate.check_finite(rows)
    if kernel is model.kernel:
        validate.check_columns(model.n_features, rows.n_features)
    dtype = np.float32 if rows.dtype == np.float32 and model.dtype == np.float32 else np.float64
    result = _output(out, (rows.n_samples, model.n_components), dtype)
    with _progress(progress) as report:
        model.projector.project(kernel, rows.shifted(model.shift), result, execute.resolve_threads(n_threads), report)
    return result


def plan(
    X: Any,
    kernel: Any = "gaussian",
    c: int | float | None = None,
    *,
    tol: float = 1e-6,
    method: str = "auto",
    features: str = "auto",
    memory_limit: int | str | None = None,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> Plan:
    """What ``kpca`` would run, what it costs, and why, before it runs; parameters as in ``kpca``.

    Returns
    -------
    Plan
        ``print`` it for the table of candidates.
    """
    problem = _prepare(X, kernel, c, tol, method, memory_limit, n_threads, rng, False, kernel_parameters)
    return _plan(problem, method, features)
