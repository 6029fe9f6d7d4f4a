"""Kernel PCA, step by step.

1. `prepare`: the arguments are checked, rows summarised in one pass, the kernel's parameters resolved (``problem``).
2. `make_plan`: the routes estimate their steps, seconds and bytes; probes of a few rows replace what is unknown
   (``planning``, ``probe``).
3. `solve`: the cheapest candidate runs; once it costs more than the next one might, or misses ``tol``, that one runs
   instead (``routes``): LAPACK (``dense``), a feature map and its refinements (``feature_route``), or products with the
   matrix (``krylov``).
4. Each route returns a `Solution`: eigenvalues, their certificate (``solve.certificate``), and a projector.
5. `_write_scores`, `_model`: scores of all rows, the model, and warnings where it falls short of what was asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..base import parallel
from ..kernels import naming
from ..model.plan import Plan
from ..model.project import write_scores
from ..model.result import KPCAModel
from ..rows.values import check_out
from .planning import advice_if_slow, make_plan, threads_within, warn_if_slow, with_every_offer
from .problem import Options, Problem, prepare
from .routes import solve
from .solution import Solution


def kpca(
    X: Any,
    kernel: Any = None,
    c: int | float | None = None,
    *,
    tol: float | None = None,
    standardize: bool | None = None,
    sample_weight: Any = None,
    guaranteed: bool = False,
    failure_probability: float | None = None,
    max_features: int | None = None,
    landmarks: Any = None,
    max_passes: int = 30,
    memory_limit: int | str | None = None,
    n_threads: int | None = None,
    method: str = "auto",
    features: str = "auto",
    products: str = "auto",
    rng: Any = 0,
    center: bool | None = None,
    like: KPCAModel | None = None,
    keep_moments: bool = False,
    return_scores: bool = True,
    out: Any = None,
    progress: bool | Callable[[str, int, int], None] = False,
    **kernel_parameters: Any,
) -> KPCAModel:
    """Kernel principal component analysis.

    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((1000, 5))
    >>> model = fk.kpca(X, "gaussian", 3, sigma=2.0)
    >>> model.score.shape, model.eigenvalue_bounds.shape
    ((1000, 3), (3, 2))

    Six arguments and the kernel's own parameters are enough for most fits. The others are for

    - how certain the intervals are: ``guaranteed``, ``failure_probability``;
    - what the fit may spend: ``max_features``, ``landmarks``, ``max_passes``, ``memory_limit``, ``n_threads``;
    - how it computes: ``method``, ``features``, ``products``, ``rng``;
    - other models: not centred (``center``), of one shard among others (``like``, ``keep_moments``);
    - what comes back, and where: ``return_scores``, ``out``, ``progress``.

    Parameters
    ----------
    X : array_like (N, d)
        Rows are observations: array, memory map, data frame or sparse matrix; a source that is not in memory (an HDF5
        or zarr dataset, Parquet, a Dask collection, or blocks of rows: an iterable that starts anew each time, or a
        function that returns a new iterator); or the Gram matrix (N, N) for ``kernel="precomputed"``. Never modified,
        and never loaded whole unless the plan says so.
    kernel : str, Kernel, object with ``block``, or callable, optional
        A name (``fastkpca.list_kernels()``), or a kernel; a callable takes two tiles of rows and returns the matrix
        between them. Default: "gaussian", or the kernel of the model that is given as ``like``. Its parameters follow
        by name, as in ``kpca(X, "gaussian", 5, sigma=0.5)``; without ``sigma`` a Gaussian takes its width from the
        rows.
    c : int, float or None
        Number of components; a fraction 0 < c < 1 keeps the fewest that explain that part of the variance; None keeps
        all.
    tol : float, optional
        Largest width of an eigenvalue's interval, relative to the largest eigenvalue. By default 1e-6; unlimited where
        ``max_features`` or ``landmarks`` is given.
    standardize : bool, optional
        True: each column minus its mean, over its standard deviation (with N - 1, weighted where rows have weights;
        constant columns are only shifted, to zero), for all kernels. The model keeps both, and does the same to new
        rows. False: not, and no warning where the ranges of columns differ by more than a thousand times. Default:
        not, but the warning; or as the model that is given as ``like``.
    sample_weight : array_like (N,), optional
        Non-negative; a whole number counts the row that many times. N in the variances becomes the sum of the weights,
        and ``coeff`` of a row the sum over its copies (``score == Kc @ coeff``, with weighted centring). A row of
        weight zero is left out of the model, but gets its scores.

    Returns
    -------
    KPCAModel
        Unpacks as ``coeff, score, latent, tsquared, explained``.
        For a Dask collection the scores, and arrays made from them, are lazy Dask arrays.

    Other Parameters
    ----------------
    guaranteed : bool
        Only intervals that rest on no random numbers; rounding is bounded by a statistical model (five standard
        deviations), which ``failure_probability`` does not count. Else they may rest on random numbers, where that is
        cheaper or nothing else reaches ``tol``: the model's ``bound_kind`` is then "probabilistic".
    failure_probability : float, optional
        Probability with which any of the fit's bounds from random numbers may fail, all together: 1e-6 by default, at
        most 0.5. A larger one makes such intervals narrower, or the fit faster. The part that was used is the model's
        ``failure_probability``.
    max_features : int, optional
        Largest number of features of a map, in one pass over the rows; with ``tol`` fewer, if these reach it. The
        intervals show the accuracy. Between the number of components and that of the rows; implies
        ``method="features"``.
    landmarks : array_like, optional
        Numbers of rows, (m,), or rows, (m, d): the feature map is then that of Nystroem's method with these; the same
        row twice counts once. With ``tol``, rows of the map's residual are sampled until it is reached, up to all.
        Implies ``features="pivots"``.
    max_passes : int
        Largest number of passes over the exact kernel values; five over values that are kept in memory count as one.
    memory_limit : int or str, optional
        Bytes, or "500MB", in addition to the rows themselves; 2 GiB by default. The plan takes no route that needs
        more.
    n_threads : int, optional
        Default: all processors, but no more than BLAS has threads (``OMP_NUM_THREADS``, threadpoolctl), and one in a
        worker of a pool of processes. Results do not depend on it. LAPACK, in the dense route, runs with BLAS's own
        threads all the same (``OPENBLAS_NUM_THREADS``, threadpoolctl).
    method : {"auto", "dense", "features", "krylov"}
        "auto" takes the method that the plan predicts to be the fastest.
    features : str
        "auto", or the name of a feature map to force: "monomial", "pivots", or a kernel's own. A name implies
        ``method="features"``.
    products : str
        The product that the krylov route uses: "auto", "exact", or the name of one that the kernel offers ("grid",
        "clusters", "expansion"), whose error is then part of the certificate. A name implies ``method="krylov"``.
    rng : int, Generator, SeedSequence or None
        Randomness; 0 by default: same input, same output.
    center : bool, optional
        False: kernel PCA about the origin of feature space, of the Gram matrix as it is; variances are then mean
        squares, eigenvalues / N. Default: True, or as the model that is given as ``like``.
    like : KPCAModel, optional
        Take this model's kernel, shift and feature map (and, where c is None, number of components): for shards of one
        set of rows. A kernel or a parameter that is given as well, and differs, is an error. Implies
        ``method="features"``.
    keep_moments : bool
        Keep the moments of the features, D x D numbers for D features, in the model: ``kpca_merge`` and
        ``kpca_update`` add them up. Implies ``method="features"``.
    return_scores : bool
        False: the model alone; its ``score`` then raises ScoresNotKeptError.
    out : ndarray, h5py.Dataset or zarr.Array (N, c), or callable, optional
        Array (memory maps included) into which the scores are written as they are made. Its type is that of the rows,
        float32 or float64. A function ``out(shape, dtype)`` makes the array once the number of components is known; an
        array that exists before gets zeros for components without variance. Datasets are not kept in the model.
    progress : bool or callable
        True writes to stderr; a callable gets (stage, done, total).
    **kernel_parameters
        Parameters of the kernel by name: ``sigma=0.5``, or ``degree=3, offset=1.0``.

    Raises
    ------
    ValueError, TypeError
        For wrong input; the text says what was found, what is needed, and how to get there.
    NotConvergedError
        Not even a finite interval was reached within ``max_passes``; its ``partial`` is the model so far.

    Warns
    -----
    CertificateWarning
        An interval is wider than ``tol`` asks for.
    ComponentsWarning
        Fewer components than asked for carry variance.
    ScalesWarning
        The ranges of columns differ by more than a thousand times, and ``standardize`` was not given.
    SlowRouteWarning
        More than ten seconds are predicted, and fewer components in place of all, a looser ``tol``, or
        ``max_features=300`` take less than a fifth of that. For the latter the text has the width to expect.

    Notes
    -----
    Raykar & Ankur, Fast Kernel Principal Component Analysis for the polynomial and Gaussian kernels, 2003.
    """
    ask, started = Options.of(kpca, locals()), time.perf_counter()
    with parallel.reporter(progress) as report, parallel.blas_threads():
        problem = prepare(X, ask, report, written=out is not None)
        _check_place(problem, out)
        with naming(problem.kernel):
            chosen = make_plan(problem)
            warn_if_slow(problem, chosen)
            threads = threads_within(problem, chosen)
            if threads != problem.budget.n_threads:
                problem = replace(problem, budget=replace(problem.budget, n_threads=threads))
            solution, last = solve(problem, chosen)
            score = _write_scores(problem, solution, out) if return_scores or out is not None else None
    tol = problem.target.tol if problem.target.tol_is_required else None
    failure = problem.target.failure_probability
    solution.info.update(tol=tol, failure_probability=failure, seconds=time.perf_counter() - started)
    return _model(problem, solution, chosen.as_run(last, problem.budget.ran), score, keep_moments=keep_moments)


def plan(
    X: Any,
    kernel: Any = None,
    c: int | float | None = None,
    *,
    tol: float | None = None,
    standardize: bool | None = None,
    sample_weight: Any = None,
    guaranteed: bool = False,
    failure_probability: float | None = None,
    max_features: int | None = None,
    landmarks: Any = None,
    memory_limit: int | str | None = None,
    n_threads: int | None = None,
    method: str = "auto",
    features: str = "auto",
    products: str = "auto",
    rng: Any = 0,
    center: bool | None = None,
    like: KPCAModel | None = None,
    keep_moments: bool = False,
    return_scores: bool = True,
    **kernel_parameters: Any,
) -> Plan:
    """Candidates of ``kpca``, their predicted costs, and the choice, before a run.

    Parameters
    ----------
    X : array_like (N, d)
        As in ``kpca``, like everything that follows.
    kernel : str, Kernel, object with ``block``, or callable, optional
    c : int, float or None
    tol : float, optional
    standardize : bool, optional
    sample_weight : array_like (N,), optional
    guaranteed : bool
    failure_probability : float, optional
    max_features : int, optional
    landmarks : array_like, optional
    memory_limit : int or str, optional
    n_threads : int, optional
    method : {"auto", "dense", "features", "krylov"}
    features : str
    products : str
    rng : int, Generator, SeedSequence or None
    center : bool, optional
    like : KPCAModel, optional
    keep_moments : bool
    return_scores : bool
    **kernel_parameters

    Returns
    -------
    Plan
        Prints as the table of candidates, and what fewer components in place of all, a looser ``tol``, or a given
        number of features would save where the work is long.

    Raises
    ------
    ValueError, TypeError
        For wrong input, and where no route fits: the text then gives each candidate's obstacle.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((1000, 5))
    >>> fk.plan(X, "polynomial", 3, degree=2).method
    'features'
    """
    ask = Options.of(plan, locals())
    with parallel.blas_threads():
        problem = prepare(X, ask)
        made = make_plan(problem)
        return replace(with_every_offer(problem, made), advice=advice_if_slow(problem, made))


def _check_place(problem: Problem, out: Any) -> None:
    """Refuse an ``out`` that does not fit the scores, before the work."""
    if out is None or callable(out):
        return
    c = problem.target.n_components
    if c is None:
        raise ValueError(
            f"the number of components, and so the shape of out, is not known beforehand with c={problem.target.c!r}; "
            "give out as a function of (shape, dtype) that makes the array, or c as a whole number"
        )
    check_out(out, (problem.data.n_samples, c), problem.dtype, problem.rows)


def _write_scores(problem: Problem, solution: Solution, out: Any) -> Any:
    """The scores, or None where they went to a dataset."""
    rows, budget = problem.rows, problem.budget
    shape = (problem.data.n_samples, len(solution.eigenvalues))
    result = check_out(out, shape, problem.dtype, rows) if callable(out) else out
    if isinstance(result, np.ndarray) and result.shape != shape:
        result[:, shape[1] :] = 0.0  # components without variance
        result = result[:, : shape[1]]
    projector, kernel = solution.projector, problem.kernel
    score = write_scores(
        rows, kernel, projector, solution.score, result, problem.dtype, budget.n_threads, budget.report
    )
    return score if result is None or isinstance(result, np.ndarray) else None


def _model(problem: Problem, solution: Solution, plan: Plan, score: Any, *, keep_moments: bool) -> KPCAModel:
    weights = solution.projector.weights
    if weights is None and score is not None and problem.rows.weights is not None:
        weights = np.array(problem.rows.weights, dtype=np.float64)  # not the user's array, which may change
    return solution.model(
        plan,
        problem.kernel,
        problem.count,
        target=problem.target,
        keep_moments=keep_moments,
        n_samples=problem.data.n_samples,
        n_features=problem.rows.n_features,
        shift=problem.data.shift,
        scale=problem.rows.scale,
        dtype=problem.dtype,
        sample_weight=weights,
        weight_sum=problem.weight_sum,
        feature_names=problem.feature_names,
        _score=score,
    )
