"""The story of kernel PCA: validate, resolve, plan, solve, certify, return."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, overload

import numpy as np

from ..base import parallel, room
from ..base.checks import (
    check_c,
    check_choice,
    check_count,
    check_flag,
    check_memory_limit,
    check_name,
    check_rng,
    check_tol,
)
from ..base.protocol import Kernel, Offer
from ..errors import NoRouteError
from ..kernels import given_kernel, guarded, naming
from ..model.plan import Candidate, Plan
from ..model.projectors import FeatureProjector, SampleProjector
from ..model.result import KPCAModel
from ..model.rows import new_rows
from ..rows.columns import check_columns, check_names, column_names
from ..rows.convert import as_rows, check_enough
from ..rows.sinks import Sink
from ..rows.sources import Source
from ..rows.summary import summarize
from ..rows.values import check_finite, check_out, check_weights
from ..rows.view import Rows
from . import footprint
from .merge import map_for_rows, map_of
from .planning import DEFAULT_MEMORY, make_plan, plan_for_map
from .routes import Problem, Solution, model_of, solve

__all__ = ["kpca", "kpca_project", "plan"]


def kpca(
    X: Any,
    kernel: Any = None,
    c: int | float | None = None,
    *,
    tol: float = 1e-6,
    method: str = "auto",
    features: str = "auto",
    products: str = "auto",
    max_passes: int = 20,
    memory_limit: int | str | None = None,
    n_threads: int | None = None,
    rng: Any = 0,
    sample_weight: Any = None,
    like: KPCAModel | None = None,
    keep_moments: bool = False,
    return_scores: bool = True,
    out: Any = None,
    progress: bool | Callable[[str, int, int], None] = False,
    **kernel_parameters: Any,
) -> KPCAModel:
    """Kernel principal component analysis.

    Parameters
    ----------
    X : array_like (N, d)
        Rows are observations: array, memory map, data frame or sparse matrix; a source that is not in memory (an HDF5
        or zarr dataset, Parquet, a Dask collection, or blocks of rows: an iterable that starts anew each time, or a
        function that returns a new iterator); or the Gram matrix (N, N) for ``kernel="precomputed"``. Never modified,
        and never loaded whole unless the plan says so.
    kernel : str, Kernel, object with ``block``, or callable, optional
        A name (``fastkpca.list_kernels()``), or a kernel; a callable takes two tiles of rows and returns the matrix
        between them. Default: "gaussian", or the kernel of the model that is given as ``like``.
    c : int, float or None
        Number of components; a fraction 0 < c < 1 keeps as many as explain that part of the variance; None keeps all.
    tol : float
        Width of an eigenvalue's interval, relative to the largest eigenvalue, to aim at.
    method : {"auto", "dense", "features", "krylov"}
        "auto" takes what the plan predicts to be the fastest.
    features : str
        "auto", or the name of a feature map to force: "monomial", "ranked", "pivots", or a kernel's own. A name implies
        ``method="features"``.
    products : str
        The product that the krylov route uses: "auto", "exact", or the name of one that the kernel offers ("grid",
        "clusters", "fourier", "expansion"), whose error is then part of the certificate. A name implies
        ``method="krylov"``.
    max_passes : int
        Most passes over the exact kernel values.
    memory_limit : int or str, optional
        Bytes, or "500MB", beside the rows themselves; 2 GiB by default. The plan takes no route that needs more.
    n_threads : int, optional
        Default: all processors. Results do not depend on it. LAPACK, in the dense route, runs with BLAS's own threads
        all the same (``OPENBLAS_NUM_THREADS``, threadpoolctl).
    rng : int, Generator, SeedSequence or None
        Randomness; 0 by default: same input, same output.
    sample_weight : array_like (N,), optional
        Non-negative; a whole number is that many copies of the row. N in the variances becomes the sum of the weights,
        and ``coeff`` of a row the sum of its copies' (``score == Kc @ coeff``, with weighted centring). A row of
        weight zero takes no part, but has its scores.
    like : KPCAModel, optional
        Take this model's kernel, shift and feature map (and, where c is None, number of components): for shards of one
        set of rows. A kernel or a parameter that is given beside it and differs is an error. Implies
        ``method="features"``.
    keep_moments : bool
        Keep the moments of the features, D x D numbers for D features, in the model: ``kpca_merge`` and
        ``kpca_update`` add them up. Implies ``method="features"``.
    return_scores : bool
        False: the model alone; its ``score`` then raises ScoresNotKeptError.
    out : ndarray, h5py.Dataset or zarr.Array (N, c), or callable, optional
        Where to write the scores as they are made, memory maps included. The type is that of the rows, float32 or
        float64. A function ``out(shape, dtype)`` makes the place once the number of components is known; an array that
        is made before gets zeros for components that turn out to carry no variance. Datasets are not kept in the model.
    progress : bool or callable
        True writes to stderr; a callable gets (stage, done, total).
    **kernel_parameters
        For example ``sigma=0.5`` or ``degree=3, offset=1.0``.

    Returns
    -------
    KPCAModel
        Unpacks as ``coeff, score, latent, tsquared, explained``.
        Of a Dask collection the scores, and what follows from them, are lazy Dask arrays.

    Raises
    ------
    ValueError, TypeError
        For input; the text says what was found, what is needed, and how to get there.
    NotConvergedError
        Not even a finite interval was reached within ``max_passes``; its ``partial`` is the model so far.

    Warns
    -----
    CertificateWarning
        An interval is wider than ``tol`` asks for.
    ComponentsWarning
        Fewer components than asked for carry variance.

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
    method = _method(method, features, products, like, keep_moments)
    return_scores = check_flag(return_scores, "return_scores")
    with parallel.reporter(progress) as report, parallel.blas_threads():
        problem = _prepare(
            X,
            kernel,
            c,
            tol,
            max_passes,
            method,
            memory_limit,
            n_threads,
            rng,
            report,
            sample_weight,
            like,
            kernel_parameters,
        )
        _check_place(problem, out)
        with naming(problem.kernel):
            kept = return_scores and out is None and not problem.rows.distributed
            chosen = _choose(problem, method, features, products, kept)
            room = (problem.memory_limit or DEFAULT_MEMORY) - chosen.chosen.memory
            threads = footprint.threads_within(problem.n_threads, room, problem.data, _features_added_up(chosen.chosen))
            problem = replace(problem, keeps_scores=kept, n_threads=threads)
            solution = solve(problem, chosen)
            score = _scores(problem, solution, out) if return_scores or out is not None else None
    info = solution.info | {"tol": problem.tol, "seconds": time.perf_counter() - started}
    return model_of(problem, replace(solution, info=info), chosen, score, keep_moments=keep_moments)


@overload
def kpca_project(
    model: KPCAModel,
    X: Any,
    *,
    out: np.ndarray | None = None,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> np.ndarray: ...
@overload
def kpca_project(
    model: KPCAModel,
    X: Any,
    *,
    out: Any,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Any: ...
def kpca_project(
    model: KPCAModel,
    X: Any,
    *,
    out: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Any:
    """Project new rows onto the components of a model.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d)
        New rows, with the columns of the training rows; for a precomputed kernel the (m, N) matrix between new and
        training rows.
    out : ndarray, h5py.Dataset or zarr.Array (m, c), or callable, optional
        Where to write them, or a function ``out(shape, dtype)`` that makes the place; needed for rows that are not
        in memory where the scores would take more than 2 GiB.
    n_threads : int, optional
        Default: all processors.
    progress : bool or callable

    Returns
    -------
    ndarray (m, c), or ``out``
        ``coeff' (k(X_train, x) - column means)`` for each new row x: only the column means of K are needed for
        centring, since 1'coeff = 0. Of a Dask collection a lazy Dask array, chunked as the rows, unless ``out`` is
        given; what is wrong with a row is then said when its block is computed.

    Raises
    ------
    ValueError, TypeError
        The rows have other columns than the training rows, are not finite, or ``out`` does not fit.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> model = fk.kpca(X, "gaussian", 2, sigma=2.0)
    >>> fk.kpca_project(model, X[:10]).shape
    (10, 2)
    """
    kernel, rows, dtype = new_rows(model, X, finite=False)
    if not rows.distributed:  # there it is looked at block by block, with the scores
        check_finite(rows)
    shape = (rows.n_samples, model.n_components)
    result = check_out(out, shape, dtype, rows)
    if rows.distributed:
        scores = _lazy_scores(rows, model.projector, kernel, model.shift, model.n_components, dtype)
        if result is None:
            return scores
        rows.source.store(scores, result)
        return result
    if result is None:
        size = shape[0] * shape[1] * dtype.itemsize
        if isinstance(rows.source, Source) and size > DEFAULT_MEMORY:
            raise ValueError(
                f"the scores of {shape[0]} rows take {size / 1e9:.3g} GB; give out=, a memory map or a dataset of "
                f"shape {shape} and type {dtype}"
            )
        result = np.empty(shape, dtype=dtype)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        model.projector.project(kernel, rows, result, parallel.threads_for(kernel, n_threads), report)
    _check_scores(result, model.kernel)
    return result


def _check_scores(scores: Any, kernel: Kernel, first: int = 0) -> None:
    for start in range(0, scores.shape[0], 8192):
        part = scores[start : start + 8192]
        if not np.isfinite(part).all():
            row = first + start + int(np.argwhere(~np.isfinite(part))[0, 0])
            raise ValueError(
                f"the scores of row {row} of X are not finite: the values of {kernel!r} overflow {part.dtype} so far "
                "from the training rows; scale X as the training rows were, or leave that row out"
            )


def _lazy_scores(
    rows: Rows,
    projector: FeatureProjector | SampleProjector,
    kernel: Kernel,
    shift: np.ndarray,
    n_components: int,
    dtype: np.dtype,
) -> Any:
    """The scores as a Dask array, chunked as the rows."""

    def task(block: np.ndarray, first: int) -> np.ndarray:
        rows, scores = Rows(block), np.empty((len(block), n_components), dtype=dtype)
        check_finite(rows, first=first)
        projector.project(kernel, rows.shifted(shift), scores, 1)
        _check_scores(scores, kernel, first)
        return scores

    return rows.source.lazily(task, n_components, dtype, alone=not kernel.thread_safe)


def plan(
    X: Any,
    kernel: Any = None,
    c: int | float | None = None,
    *,
    tol: float = 1e-6,
    method: str = "auto",
    features: str = "auto",
    products: str = "auto",
    memory_limit: int | str | None = None,
    n_threads: int | None = None,
    rng: Any = 0,
    sample_weight: Any = None,
    like: KPCAModel | None = None,
    keep_moments: bool = False,
    return_scores: bool = True,
    **kernel_parameters: Any,
) -> Plan:
    """What ``kpca`` would run, what it costs, and why, before it runs.

    Parameters
    ----------
    X : array_like (N, d)
        As in ``kpca``, like everything that follows.
    kernel : str, Kernel, object with ``block``, or callable, optional
    c : int, float or None
    tol : float
    method : {"auto", "dense", "features", "krylov"}
    features : str
    products : str
    memory_limit : int or str, optional
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    sample_weight : array_like (N,), optional
    like : KPCAModel, optional
    keep_moments : bool
    return_scores : bool
    **kernel_parameters

    Returns
    -------
    Plan
        Shows itself as the table of candidates.

    Raises
    ------
    ValueError, TypeError
        For input, and where no route fits: the text then gives each candidate's obstacle.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((1000, 5))
    >>> fk.plan(X, "polynomial", 3, degree=2).method
    'features'
    """
    method = _method(method, features, products, like, keep_moments)
    problem = _prepare(
        X, kernel, c, tol, 20, method, memory_limit, n_threads, rng, None, sample_weight, like, kernel_parameters
    )
    return _choose(problem, method, features, products, return_scores)


def _prepare(
    X: Any,
    kernel: Any,
    c: int | float | None,
    tol: float,
    max_passes: int,
    method: str,
    memory_limit: int | str | None,
    n_threads: int | None,
    rng: Any,
    report: parallel.Progress | None,
    sample_weight: Any,
    like: KPCAModel | None,
    kernel_parameters: dict[str, Any],
) -> Problem:
    """Validate the input, look at the rows once, and resolve the kernel's parameters."""
    generator = check_rng(rng)
    own = _kernel_of(kernel, kernel_parameters, like)
    chosen, X = own.bind(X)
    threads = parallel.threads_for(chosen, n_threads)
    rows = as_rows(X, at_least=2)
    c = check_c(c, rows.n_samples) if rows.counted else c
    if sample_weight is not None:
        rows = rows.weighted(check_weights(sample_weight, rows.n_samples))
    shift_by = None
    if like is not None:
        check_columns(like.n_features, rows.n_features)
        check_names(like.feature_names, X)
        shift_by, c = like.shift, like.n_components if c is None else c
    limit, capped = room.memory_within(check_memory_limit(memory_limit), DEFAULT_MEMORY, threads)
    _check_look(rows, limit, capped)
    rows, data = summarize(
        rows,
        shift=chosen.translation is not None,
        rng=generator,
        n_threads=threads,
        shift_by=shift_by,
        any_size=chosen.scales_rows,
    )
    check_enough(rows.n_samples)
    c = check_c(c, rows.n_samples)
    return Problem(
        rows=rows,
        kernel=chosen.resolve(data),
        data=data,
        c=c,
        tol=check_tol(tol),
        max_passes=check_count(max_passes, "max_passes"),
        memory_limit=limit,
        capped=capped,
        n_threads=threads,
        rng=generator,
        dtype=np.dtype(np.float32 if rows.dtype == np.float32 else np.float64),
        n_columns=rows.n_features,
        forced=method != "auto",
        feature_names=column_names(X) or (None if like is None else like.feature_names),
        like=like,
        report=report,
        weight_sum=None if rows.weights is None else float(np.sum(rows.weights, dtype=np.float64)),
    )


def _check_look(rows: Rows, limit: int | None, capped: bool) -> None:
    """Refuse what even a look at the rows passes, before it."""
    if not rows.counted or rows.distributed:
        return
    limit = DEFAULT_MEMORY if limit is None else limit
    needed = footprint.looking_bytes(rows.n_samples, rows)
    if needed > limit:
        text = (
            f"no route fits: a look at {rows.n_samples} rows of {rows.n_features} columns needs {needed / 1e6:.3g} MB, "
            f"the limit is {limit / 1e6:.3g} MB"
        )
        if capped:
            raise MemoryError(f"{text}; {room.describe_limit()}")
        raise ValueError(f"{text}; raise memory_limit")


def _method(method: str, features: str, products: str, like: Any, keep_moments: bool) -> str:
    """The route to take: the name of a feature map, or of a product, forces its own."""
    check_flag(keep_moments, "keep_moments")
    if like is not None:
        map_of(like)
        if features != "auto":
            raise ValueError(f"features={features!r} and like=: the model given as like has its feature map; drop one")
    check_choice(method, "method", ("auto", "dense", "features", "krylov"))
    check_name(features, "features", "'auto', or the name of a feature map, as in 'pivots'")
    check_name(products, "products", "'auto', 'exact', or the name of a product, as in 'grid'")
    if features != "auto" and products != "auto":
        raise ValueError(
            f"features={features!r} forces method='features' and products={products!r} method='krylov'; drop one"
        )
    asked = (
        (f"features={features!r}", features != "auto", "features"),
        (f"products={products!r}", products != "auto", "krylov"),
        ("like=", like is not None, "features"),
        ("keep_moments=True", keep_moments, "features"),
    )
    for text, given, forced in asked:
        if given and method not in ("auto", forced):
            raise ValueError(f"{text} forces method={forced!r}, and method={method!r} was asked for; drop one")
        method = forced if given else method
    return method


def _kernel_of(kernel: Any, parameters: dict[str, Any], like: KPCAModel | None) -> Kernel:
    """The kernel that was asked for, or that of ``like``, where what is asked for beside it does not contradict it."""
    if like is None:
        return given_kernel("gaussian" if kernel is None else kernel, parameters, kpca)
    own = guarded(like.kernel)
    if kernel is None and not parameters:
        return own
    asked = given_kernel(type(own.unguarded()) if kernel is None else kernel, parameters, kpca)
    held = own.get_parameters()
    same = type(asked.unguarded()) is type(own.unguarded())
    if not same or any(held[name] != value for name, value in asked.get_parameters().items() if value is not None):
        raise ValueError(f"like= brings its kernel, {own!r}, and {asked!r} was asked for; drop one")
    return own


def _choose(problem: Problem, method: str, features: str, products: str, keep_scores: bool) -> Plan:
    try:
        return _planned(problem, method, features, products, keep_scores)
    except NoRouteError as error:
        if not problem.capped:
            raise
        raise MemoryError(f"{error}; {room.describe_limit()}") from None


def _planned(problem: Problem, method: str, features: str, products: str, keep_scores: bool) -> Plan:
    if problem.like is not None:
        return plan_for_map(
            map_for_rows(problem.like, problem.kernel, problem.data),
            problem.like.plan.name,
            problem.data,
            problem.rows,
            problem.c,
            memory_limit=problem.memory_limit,
            keep_scores=keep_scores,
        )
    return make_plan(
        problem.kernel,
        problem.data,
        problem.rows,
        problem.c,
        tol=problem.tol,
        method=method,
        features=features,
        products=products,
        memory_limit=problem.memory_limit,
        keep_scores=keep_scores,
    )


def _features_added_up(chosen: Candidate) -> int:
    """Order of the second moments that tasks hold."""
    offer = chosen.offer
    dense = chosen.method == "krylov" or (isinstance(offer, Offer) and offer.cost.moment_flops is None)
    return chosen.n_features if dense else 0


def _check_place(problem: Problem, out: Any) -> None:
    """Before the work: ``out`` fits the scores."""
    if out is None or callable(out):
        return
    if not isinstance(problem.c, int):
        raise ValueError(
            f"the number of components, and so the shape of out, is not known beforehand with c={problem.c!r}; give "
            "out as a function of (shape, dtype) that makes the array, or c as a whole number"
        )
    check_out(out, (problem.data.n_samples, problem.c), problem.dtype, problem.rows)


def _scores(problem: Problem, solution: Solution, out: Any) -> np.ndarray | None:
    """The scores, or None where they went to a dataset."""
    shape = (problem.data.n_samples, len(solution.eigenvalues))
    result = check_out(out, shape, problem.dtype, problem.rows) if callable(out) else out
    if isinstance(result, np.ndarray) and result.shape != shape:
        result[:, shape[1] :] = 0.0  # components without variance
        result = result[:, : shape[1]]
    if problem.rows.distributed:
        source, score = problem.rows.source, solution.score
        if score is not None:
            lazy = source.wrap(score.astype(problem.dtype, copy=False))
        else:
            args = solution.projector, problem.kernel, problem.data.shift, shape[1], problem.dtype
            lazy = _lazy_scores(problem.rows, *args)
        if result is None:
            return lazy
        source.store(lazy, result)
        return result if isinstance(result, np.ndarray) else None
    if result is None:
        result = np.empty(shape, dtype=problem.dtype)
    if solution.score is not None:
        sink = Sink(result)
        sink.write(solution.score)
        sink.close()
    else:
        solution.projector.project(problem.kernel, problem.rows, result, problem.n_threads, problem.report)
    return result if isinstance(result, np.ndarray) else None
