"""A kernel PCA problem, made from the arguments of a call: the target, the budget, the kernel, and the rows."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..base import parallel, process_memory
from ..base.caching import cached_property
from ..base.checks import (
    Randomness,
    check_c,
    check_choice,
    check_count,
    check_failure_probability,
    check_flag,
    check_max_features,
    check_memory_limit,
    check_name,
    check_tol,
)
from ..base.protocol import MAX_ABS_VALUE, MIN_ABS_VALUE, Kernel, Offer, Summary
from ..errors import NoRouteError
from ..kernels import given_kernel, guarded
from ..maps.pivots import PivotMap
from ..model.plan import Step
from ..model.result import KPCAModel
from ..model.shared_map import feature_projector, map_for_rows
from ..rows.columns import check_same_columns, warn_of_ranges
from ..rows.convert import as_rows, bind_rows, check_enough, different, landmark_rows
from ..rows.summary import spread_rows, summarize_for
from ..rows.values import check_weights
from ..rows.view import Rows
from . import footprint
from .target import Target

_logger = logging.getLogger("fastkpca")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Arguments of a call of ``kpca`` or ``plan``, without the rows, as the user gave them."""

    function: Any
    """Whose arguments they are, for the texts of errors."""
    kernel: Any
    kernel_parameters: dict[str, Any]
    c: int | float | None
    tol: float | None
    method: str
    features: str
    products: str
    memory_limit: int | str | None
    n_threads: int | None
    rng: Any
    sample_weight: Any
    like: KPCAModel | None
    keep_moments: bool
    return_scores: bool
    max_features: int | None = None
    landmarks: Any = None
    guaranteed: bool = False
    failure_probability: float | None = None
    max_passes: int = 30
    center: bool | None = None
    standardize: bool | None = None

    @classmethod
    def of(cls, function: Any, given: dict[str, Any]) -> Options:
        """From the arguments of ``function`` by name; X and all others without a field here are dropped."""
        names = cls.__dataclass_fields__
        return cls(function=function, **{name: x for name, x in given.items() if name in names})

    @property
    def budgeted(self) -> bool:
        """True if the number of features was given."""
        return self.max_features is not None or self.landmarks is not None


@dataclass(frozen=True)
class Budget:
    """The limits of a call.

    Attributes
    ----------
    memory : int
        Bytes in addition to the rows.
    n_threads : int
    max_passes : int
        Over the exact kernel values.
    capped : bool
        ``memory`` is the address space that RLIMIT_AS leaves, and less than the user allows.
    report : callable or None
        Called with the progress.
    ran : list of Step
        The steps that have run.
    """

    memory: int
    n_threads: int
    max_passes: int = 30
    capped: bool = False
    report: parallel.Progress | None = None
    ran: list[Step] = field(default_factory=list, compare=False)


@dataclass(frozen=True)
class Problem:
    """A checked kernel PCA problem; the kernel has all its parameters.

    Attributes
    ----------
    rows : Rows
    kernel : Kernel
    data : Summary
        Of the rows.
    target : Target
    budget : Budget
    randomness : Randomness
    keeps_scores : bool
        The scores are to be held in memory.
    keeps_moments : bool
        The model keeps the moments of the features.
    given_map : Offer or None
        The feature map of ``like``, or that of ``landmarks``.
    feature_names : tuple of str or None
    """

    rows: Rows
    kernel: Kernel
    data: Summary
    target: Target
    budget: Budget
    randomness: Randomness = field(repr=False)
    keeps_scores: bool
    keeps_moments: bool = False
    given_map: Offer | None = None
    feature_names: tuple[str, ...] | None = None

    def record(self, *steps: Step) -> None:
        """Note steps that have run, with their seconds as counted, for the log and the model's plan."""
        for step in steps:
            _logger.info("  %s", step)
        self.budget.ran.extend(steps)

    @property
    def rng(self) -> np.random.Generator:
        return self.randomness.generator

    @property
    def takes_quick_moments(self) -> bool:
        """True if moments from fewer sums may do, where the map has them."""
        return self.rows.weights is None and not self.keeps_moments and self.target.n_components is not None

    @property
    def dtype(self) -> np.dtype:
        """Type of scores and coefficients."""
        return np.dtype(np.float32 if self.rows.dtype == np.float32 else np.float64)

    @cached_property
    def weight_sum(self) -> float | None:
        weights = self.rows.weights
        return None if weights is None else float(np.sum(weights, dtype=np.float64))

    @property
    def count(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(self.data.n_samples) if self.weight_sum is None else self.weight_sum

    @cached_property
    def rank(self) -> int:
        """Largest rank of n rows: n - 1 where they are centred."""
        weights = self.rows.weights
        count = int(self.data.n_samples if weights is None else np.count_nonzero(weights))
        return count - self.target.center

    @cached_property
    def entry_error(self) -> float:
        """Bound on the distance of a float64 kernel value from that of an exactly semidefinite kernel:
        ``Kernel.entry_error`` (0 where none is stated) plus ``below_zero``."""
        return entry_error_of(self.kernel, self.data)

    @cached_property
    def value_error(self) -> float:
        """The same without ``below_zero``, for what does not need a semidefinite kernel."""
        return self.entry_error - self.kernel.below_zero

    def some_rows(self, count: int) -> np.ndarray:
        """At most ``count`` rows of the sample, spread over it."""
        return spread_rows(self.data.sample, count)

    @cached_property
    def largest_value(self) -> float:
        """Largest |k| on the diagonal of the sample, and among a few of its rows where the kernel may be indefinite.

        A semidefinite kernel has no larger value than those on its diagonal.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is named where it is met
            largest = float(np.abs(self.kernel.diagonal(self.data.sample)).max())
            if not self.kernel.positive_semidefinite:
                X = self.some_rows(256)
                largest = max(float(np.abs(self.kernel.block(X, X)).max()), largest)
        return largest


def prepare(X: Any, ask: Options, report: parallel.Progress | None = None, *, written: bool = False) -> Problem:
    """Check the arguments, convert and summarise the rows, and resolve the kernel's parameters.

    ``written`` scores go elsewhere, and take no memory here.
    """
    method = _method(ask)
    randomness = Randomness(ask.rng)
    kernel, X = bind_rows(_kernel(ask), X)
    threads = parallel.threads_for(kernel, ask.n_threads)
    memory, capped = process_memory.memory_within(check_memory_limit(ask.memory_limit), threads)
    try:
        rows = _rows(X, ask, memory)
        _check_look(rows, memory)
    except NoRouteError as error:
        if not capped:
            raise
        raise MemoryError(f"{error}; {process_memory.describe_limit()}") from None
    like = ask.like
    c = like.n_components if like is not None and ask.c is None else ask.c
    memory -= rows.copied
    center = _of_like(ask, "center", True, like is None or like.center)
    scale = _scale(ask, kernel)
    shift_by = None if like is None else like.shift
    rows, data = summarize_for(
        kernel, rows, centred=center, randomness=randomness, n_threads=threads, shift_by=shift_by, scale=scale
    )
    check_enough(rows.n_samples)
    names = rows.names or (None if like is None else like.feature_names)
    kernel = kernel.resolve(data if names is None else replace(data, feature_names=names))
    if ask.standardize is None and like is None:
        warn_of_ranges(kernel, data, names)
    _check_budgeted(ask, kernel)
    pivots = None if ask.landmarks is None else different(landmark_rows(ask.landmarks, kernel, rows))
    c = check_c(c, rows.n_samples)
    asked = (ask.max_features, "max_features") if pivots is None else (len(pivots), "the number of different landmarks")
    most = check_max_features(*asked, c, rows.n_samples)
    given_map = None if like is None else Offer.made(like.plan.name, map_for_rows(like, kernel, data))
    if pivots is not None:
        given_map = Offer.made("pivots", PivotMap(kernel, pivots, entry_error=entry_error_of(kernel, data)))
    passes = check_count(ask.max_passes, "max_passes")
    return Problem(
        rows=rows,
        kernel=kernel,
        data=data,
        target=Target(
            c,
            check_tol(1e-6 if ask.tol is None else ask.tol),
            method,
            ask.features,
            ask.products,
            given_map=given_map is not None,
            max_features=most,
            tol_is_required=ask.tol is not None or not ask.budgeted,
            failure_probability=check_failure_probability(ask.failure_probability, guaranteed=ask.guaranteed),
            center=center,
        ),
        budget=Budget(memory, threads, passes, capped, report),
        randomness=randomness,
        keeps_scores=bool(ask.return_scores) and not (written or rows.distributed),
        keeps_moments=ask.keep_moments,
        given_map=given_map,
        feature_names=names,
    )


def _check_budgeted(ask: Options, kernel: Kernel) -> None:
    """Refuse a number of features for a kernel that has no maps."""
    if ask.budgeted and kernel.without_maps:
        raise ValueError(
            f"max_features and landmarks ask for a feature map, and {kernel!r} {kernel.without_maps}, so it has "
            "none; leave them out"
        )


def _of_like(ask: Options, name: str, default: bool, of_like: bool) -> bool:
    """An option that ``like`` brings along where it is given: what it says otherwise is an error."""
    asked = {"center": ask.center, "standardize": ask.standardize}[name]
    if asked is None:
        return default if ask.like is None else of_like
    check_flag(asked, name)
    if ask.like is not None and bool(asked) != of_like:
        raise ValueError(f"{name}={asked} was asked for, and the model given as like was made with {name}={of_like}")
    return bool(asked)


def _scale(ask: Options, kernel: Kernel) -> bool | np.ndarray:
    """Scale of the columns: that of ``like``, True for their standard deviations, or False."""
    scale = None if ask.like is None else ask.like.scale
    if not _of_like(ask, "standardize", False, scale is not None):
        return False
    if not kernel.takes_points:
        raise ValueError(f"standardize=True scales columns of numbers, and {kernel!r} is not about these; leave it out")
    return True if scale is None else scale


def _rows(X: Any, ask: Options, room: float) -> Rows:
    """The rows with their weights, of as many columns as those of ``like``."""
    rows = as_rows(X, at_least=2, memory=room)
    if ask.like is not None:
        check_same_columns(rows, ask.like.n_features, ask.like.feature_names)
    if ask.sample_weight is not None:
        weights = check_weights(ask.sample_weight, rows.n_samples)
        copied = rows.copied + (0 if weights is ask.sample_weight else 8 * rows.n_samples)
        rows = rows.weighted(weights)
        rows.copied = copied
    if rows.counted:  # else when they were read
        check_c(ask.c, rows.n_samples)
    return rows


def _check_look(rows: Rows, limit: float) -> None:
    """Refuse rows whose summary alone would need more memory than the limit, before it is made."""
    if not rows.counted or rows.distributed:
        return
    needed = rows.copied + footprint.looking_bytes(rows)
    if needed > limit:
        raise NoRouteError(
            f"no route fits: a look at {rows.n_samples} rows of {rows.n_features} columns needs {needed / 1e6:.3g} MB, "
            f"the limit is {limit / 1e6:.3g} MB; raise memory_limit"
        )


def _method(ask: Options) -> str:
    """The method asked for; the name of a feature map or of a product implies one."""
    method, features, products = ask.method, ask.features, ask.products
    check_flag(ask.keep_moments, "keep_moments")
    check_flag(ask.return_scores, "return_scores")
    check_flag(ask.guaranteed, "guaranteed")
    if ask.landmarks is not None and (ask.max_features is not None or ask.like is not None):
        other = "like" if ask.max_features is None else "max_features"
        raise ValueError(f"landmarks= are the features, and {other}= asks for others; drop one")
    if ask.landmarks is not None and features not in ("auto", "pivots"):
        raise ValueError(f"landmarks= make a map of pivots, and features={features!r} was asked for; drop one")
    if ask.max_features is not None and ask.like is not None:
        raise ValueError("like= brings its feature map, and max_features= asks for another; drop one")
    if ask.like is not None:
        feature_projector(ask.like)
        if features != "auto":
            raise ValueError(f"features={features!r} and like=: the model given as like has its feature map; drop one")
    check_choice(method, "method", ("auto", "dense", "features", "krylov"))
    need = "'auto', or the name of a feature map, as in 'pivots'"
    check_name(features, "features", f"{need} (the number of components is c, that of features max_features)")
    check_name(products, "products", "'auto', 'exact', or the name of a product, as in 'grid'")
    if ask.budgeted and products != "auto":
        raise ValueError(
            f"products={products!r} needs no features, and max_features= or landmarks= was given; drop one"
        )
    if features != "auto" and products != "auto":
        raise ValueError(
            f"features={features!r} forces method='features' and products={products!r} method='krylov'; drop one"
        )
    asked = (
        (f"features={features!r}", features != "auto", "features"),
        (f"products={products!r}", products != "auto", "krylov"),
        ("like=", ask.like is not None, "features"),
        (f"max_features={ask.max_features!r}", ask.max_features is not None, "features"),
        ("landmarks=", ask.landmarks is not None, "features"),
        ("keep_moments=True", ask.keep_moments, "features"),
    )
    for text, given, forced in asked:
        if given and method not in ("auto", forced):
            raise ValueError(f"{text} forces method={forced!r}, and method={method!r} was asked for; drop one")
        method = forced if given else method
    return method


def entry_error_of(kernel: Kernel, data: Summary) -> float:
    """Bound on the error of a kernel value in float64, and on what is below zero; 0 where the kernel states none."""
    return (kernel.entry_error(data, np.dtype(np.float64)) or 0.0) + kernel.below_zero


def _kernel(ask: Options) -> Kernel:
    """The requested kernel, or that of ``like``, if the other arguments do not contradict it."""
    kernel, parameters = ask.kernel, ask.kernel_parameters
    if ask.like is None:
        return given_kernel("gaussian" if kernel is None else kernel, parameters, ask.function)
    return kernel_of_both(ask.like.kernel, kernel, parameters, ask.function, "like")


def kernel_of_both(held: Kernel, kernel: Any, parameters: dict[str, Any], function: Any, name: str) -> Kernel:
    """The kernel that the object given as ``name`` brings, if what was asked for does not contradict it."""
    held = guarded(held)
    if kernel is None and not parameters:
        return held
    asked = given_kernel(type(held.unguarded()) if kernel is None else kernel, parameters, function)
    values = held.get_parameters()
    same = type(asked.unguarded()) is type(held.unguarded())
    if not same or any(values[key] != value for key, value in asked.get_parameters().items() if value is not None):
        raise ValueError(f"{name}= brings its kernel, {held!r}, and {asked!r} was asked for; drop one")
    return held


def check_range(problem: Problem) -> None:
    """Refuse kernel values that leave the range of float64 when N^2 of them are squared and added, as norms are."""
    kernel, largest, error = problem.kernel, problem.largest_value, problem.entry_error
    if not problem.count * error <= MAX_ABS_VALUE:
        raise ValueError(
            f"the values of {kernel!r} on these rows are rounded by up to {error:.2g}, so nothing is known of "
            "its eigenvalues; scale X or the kernel's parameters so that its values are nearer to 1"
        )
    if problem.dtype == np.float32 and largest > 0.0 and not 1e-60 < largest < 1e60:
        raise ValueError(
            f"{kernel!r} has values of size {largest:.2g} on these rows, and X is float32: scores and "
            "coefficients would leave the range of float32; give X as float64, or scale it"
        )
    if MAX_ABS_VALUE < largest < np.inf or 0.0 < largest < MIN_ABS_VALUE:
        raise ValueError(
            f"{kernel!r} has values of size {largest:.2g} on these rows, whose squares leave the range of "
            "float64; scale X or the kernel's parameters (or the matrix) so that they are nearer to 1"
        )
