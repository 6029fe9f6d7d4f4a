"""``gram()`` and ``features()``: the kernel matrix and the feature matrix as SciPy LinearOperators."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel
from ..base.checks import Randomness, as_float, check_count, check_flag, check_name, check_tol
from ..base.protocol import Kernel, Offer, Summary
from ..base.rounding import UNIT
from ..errors import rounded_up
from ..kernels import given_kernel
from ..maps.choosing import refined
from ..maps.pivots import PivotMap
from ..products.operators import FeatureOperator, GramOperator
from ..products.vectors import centre
from ..rows.columns import check_columns_of
from ..rows.convert import as_rows, bind_rows, different, landmark_rows
from ..rows.summary import spread_rows, summarize_for
from ..rows.values import check_finite
from ..rows.view import Rows
from .offers import MAX_FEATURES, of_at_most, offers_of_maps, offers_within, small_offers
from .probe import FIRST_WITH_PIVOTS, probed
from .problem import entry_error_of
from .product_choice import best_product, both_sides, exact_error, products_for

_logger = logging.getLogger("fastkpca")

SHARE_ROWS = 256
"""Rows from which the centred part of the trace is estimated before a map is chosen; all rows check the map."""
CONSTANT_SHARE = 512 * UNIT
"""Part of the trace after centring that rounding of kernel values and features leaves of equal rows."""


def gram(
    X: Any,
    kernel: Any = "gaussian",
    Y: Any = None,
    *,
    tol: float | None = None,
    products: str = "auto",
    center: bool = False,
    n_threads: int | None = None,
    rng: Any = 0,
    progress: bool | Callable[[str, int, int], None] = False,
    **kernel_parameters: Any,
) -> GramOperator:
    """The kernel matrix K_ij = k(x_i, y_j) as a scipy LinearOperator that never forms it.

    Parameters
    ----------
    X : array_like (N, d)
        Targets, and sources where ``Y`` is None.
    kernel : str, Kernel, object with ``block``, or callable
    Y : array_like (M, d), optional
        Sources.
    tol : float, optional
        |error of (K @ U)_ik| <= tol * sum_j |U_jk|, rounding included; None: exact products. It is absolute, in the
        unit of the kernel's values.
    products : str
        "auto", "exact", or the name of a summation to force.
    center : bool
        Only the centred matrix H K H is wanted. Rows are first shifted by their mean (``shift``) where that leaves
        H K H as it is: entries of the linear kernel are then those of the shifted rows, and keep their digits.
    n_threads : int, optional
        Default: all processors. Results do not depend on it.
    rng : int, Generator, SeedSequence or None
    progress : bool or callable
        For each product with the operator: True writes to stderr, a callable gets (stage, done, total). Exact products
        report their tiles, the fast ones only their end.
    **kernel_parameters

    Returns
    -------
    GramOperator
        Shape (N, M); ``K @ U``, ``K.T``, ``centered()``, ``diagonal()``, ``trace()``, ``column_means()``,
        ``error_bound``.

    Raises
    ------
    ValueError, TypeError
        For wrong input; for a tolerance below what float64 can guarantee, or with a kernel that does not bound its
        values. For a product that the kernel does not offer; for ``Y`` together with a precomputed matrix. Products
        raise where their result is not finite.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> K = fk.gram(X, "gaussian", sigma=1.0, tol=1e-6)
    >>> (K @ np.ones((1000, 2))).shape, K.error_bound <= 1e-6
    ((1000, 2), True)
    """
    check_name(products, "products", "'auto', 'exact', or the name of a product, as in 'grid'")
    if tol is not None:
        tol = _absolute(tol)
    center = check_flag(center, "center")
    inputs = _inputs(gram, X, kernel, kernel_parameters, n_threads, rng, center=center)
    chosen, rows_x, data_x, threads = inputs.kernel, inputs.rows, inputs.data, inputs.n_threads
    rows_y, data_y = None, data_x
    if Y is not None:
        if not inputs.points:
            raise ValueError(
                f"gram takes no Y with {chosen!r}: X is the kernel matrix itself, not rows; multiply a part of it with "
                "numpy, as in K[:, columns] @ U"
            )
        rows_y = as_rows(Y, name="Y")
        check_columns_of(rows_y, rows_x, name="Y")
        check_finite(rows_y, name="Y")
        rows_y, data_y = summarize_for(
            chosen, rows_y, centred=center, randomness=inputs.randomness, n_threads=threads, shift_by=data_x.shift
        )
    least = exact_error(chosen, rows_x, rows_y, both_sides(data_x, data_y), threads)
    if tol is not None and tol < least:
        raise ValueError(_unreachable(chosen, tol, least, data_y.n_samples))
    product = best_product(products_for(chosen, data_x, data_y, tol, square=Y is None, name=products, least=least))
    summation = product.summation(rows_x, rows_y, threads)
    _logger.info("gram: %s products, %d x %d", product.name, *summation.shape)
    return GramOperator(
        chosen, summation, rows_x, rows_y, threads, name=product.name, rounding=least, progress=progress
    )


def _absolute(tol: Any) -> float:
    """An error of entries, in the unit of the kernel's values, which may be of any size."""
    number = as_float(tol)
    if number is None:
        raise TypeError(f"tol is {tol!r}; give a positive number: the error of an entry, in the unit of the kernel")
    if not 0.0 < number < np.inf:
        raise ValueError(f"tol is {tol!r}; give a positive number: the error of an entry, in the unit of the kernel")
    return number


def _unreachable(kernel: Kernel, tol: float, least: float, terms: int) -> str:
    if np.isinf(least):
        return (
            f"{kernel!r} has no finite bound on its values on these rows (Kernel.value_bound), so that no tol can be "
            "promised; leave tol out for products that are exact up to rounding, or scale the rows down"
        )
    return (
        f"tol={tol:g} is below {rounded_up(least)}, what products of {terms} terms keep for certain in float64 on "
        "these rows; raise tol, or leave it out for products that are exact up to rounding"
    )


def features(
    X: Any,
    kernel: Any = "gaussian",
    *,
    tol: float | None = None,
    max_features: int | None = None,
    landmarks: Any = None,
    features: str = "auto",
    center: bool = False,
    n_threads: int | None = None,
    rng: Any = 0,
    progress: bool | Callable[[str, int, int], None] = False,
    **kernel_parameters: Any,
) -> FeatureOperator:
    """The feature matrix Phi (N, D) as a scipy LinearOperator, with K = Phi Phi' up to ``residual_trace``.

    Parameters
    ----------
    X : array_like (N, d)
    kernel : str, Kernel, object with ``block``, or callable
        Positive semidefinite.
    tol : float, optional
        Largest residual trace over trace of K. By default 1e-6; unlimited where ``max_features`` or ``landmarks`` is
        given.
    max_features : int, optional
        Largest number of features; 8192 by default. Without ``tol`` fewer are taken only where their residual trace is
        at most 1e-6 of the trace of K.
    landmarks : array_like, optional
        Numbers of rows, (m,), or rows, (m, d): the map of Nystroem's method with these. The same row twice counts once.
    features : str
        "auto", or the name of a feature map to force.
    center : bool
        Only centred features are wanted: ``tol`` is relative to the trace of the centred matrix, and rows are shifted
        by their mean where that leaves this matrix as it is, as for ``gram``.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    progress : bool or callable
        Progress of each pass over the rows, those in here and those that the operator is asked for later.
    **kernel_parameters

    Returns
    -------
    FeatureOperator
        ``Phi @ C``, ``Phi.T @ U``, ``map``, ``shift``, ``moments(weights)``,
        ``residual_trace``, ``centered_trace()``.

    Raises
    ------
    ValueError
        No feature map reaches a ``tol`` that was given within ``max_features``, or with these ``landmarks``, over all
        rows and not only the sample that it was chosen on.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> F = fk.features(X, "polynomial", degree=2)
    >>> F.shape, F.residual_trace
    ((1000, 10), 0.0)
    """
    check_name(features, "features", "'auto', or the name of a feature map, as in 'pivots'")
    budgeted = tol is None and (max_features is not None or landmarks is not None)
    tol = check_tol(1e-6 if tol is None else tol)
    center = check_flag(center, "center")
    inputs = _inputs(_FEATURES, X, kernel, kernel_parameters, n_threads, rng, center=center)
    chosen, rows, data, threads = inputs.kernel, inputs.rows, inputs.data, inputs.n_threads
    limit = MAX_FEATURES if max_features is None else check_count(max_features, "max_features")
    if chosen.without_maps:
        raise ValueError(f"{chosen!r} {chosen.without_maps}, so no feature map exists; use gram()")
    trace: Callable[[FeatureOperator], float] = _trace_after_centring if center else FeatureOperator.trace
    if landmarks is not None:
        if max_features is not None or features not in ("auto", "pivots"):
            raise ValueError("landmarks= are the features, and max_features= or features= asks for others; drop one")
        pivots = different(landmark_rows(landmarks, chosen, rows))
        feature_map = PivotMap(chosen, pivots, entry_error=entry_error_of(chosen, data))
        operator = FeatureOperator(chosen, feature_map, rows, threads, progress=progress)
        if not budgeted and operator.residual_trace > tol * trace(operator):
            left = operator.residual_trace / max(trace(operator), 5e-324)
            raise ValueError(
                f"these landmarks reach a residual of {rounded_up(left)}, and are asked for tol={tol:g}; give more "
                "landmarks, or leave out tol"
            )
        return operator
    share = _centred_share(chosen, data.sample) if center else 1.0
    if budgeted:
        offer = best_within(chosen, data, rows, share * tol, limit, features, threads)
        return FeatureOperator(chosen, offer.build(data.sample), rows, threads, progress=progress)
    reached, asked = np.inf, f"tol={tol:g}"
    if center:
        asked = f"tol={tol:g} of the centred trace (about {share:.2g} of tr K)"
    for offer in _offers(chosen, data, rows, share * tol, limit, features, threads, asked):
        operator = FeatureOperator(chosen, offer.build(data.sample), rows, threads, progress=progress)
        if center and not operator.residual_trace:
            return operator  # exact, even where the centred trace is 0
        target = tol * trace(operator)
        for _ in range(3):
            if operator.residual_trace <= target:
                break
            # a sample can miss a small far cluster; all rows know where the residual lies
            goal = 0.5 * share * tol
            more = refined(operator.map, rows, tol=goal, max_features=limit, rng=inputs.rng, n_threads=threads)
            if more is operator.map:
                break
            operator = FeatureOperator(chosen, more, rows, threads, progress=progress)
            target = tol * trace(operator)
        if operator.residual_trace <= target:
            return operator
        if target > 0:
            reached = min(reached, tol * operator.residual_trace / target)
        elif not center:  # else rows may be equal, and those of an exact map are zero
            break
    if np.isinf(reached):
        raise ValueError(f"the kernel matrix of {chosen!r} on these rows is zero: there are no features to find")
    raise ValueError(
        f"{chosen!r} reaches a residual of {rounded_up(reached)} on these rows within {limit} features, and is asked "
        f"for {asked}; raise tol or max_features, or use gram()"
    )


_FEATURES = features  # the function, whose own parameter of this name hides it


def _centred_share(kernel: Kernel, sample: np.ndarray) -> float:
    """Estimate of tr H K H over tr K, from some rows; 1 where they do not vary beyond rounding."""
    some = spread_rows(sample, SHARE_ROWS)
    K = kernel.block(some, some)
    trace = float(np.trace(K))
    centre(K)
    found = np.trace(K) / trace if trace > 0.0 else 1.0
    return float(min(found, 1.0)) if found > CONSTANT_SHARE else 1.0


def _trace_after_centring(operator: FeatureOperator) -> float:
    """Trace of the centred features; tr K where they do not vary beyond its rounding."""
    centred, trace = operator.centered_trace(), operator.trace()
    return centred if centred > CONSTANT_SHARE * trace else trace


class _Inputs(NamedTuple):
    """The kernel with all its parameters, and the rows as it takes them."""

    kernel: Kernel
    rows: Rows
    data: Summary
    randomness: Randomness
    n_threads: int
    points: bool
    """True if the rows are those of X, and not numbers of rows of a matrix."""

    @property
    def rng(self) -> np.random.Generator:
        return self.randomness.generator


def _inputs(
    function: Callable[..., Any],
    X: Any,
    kernel: Any,
    parameters: dict[str, Any],
    n_threads: int | None,
    rng: Any,
    *,
    center: bool,
) -> _Inputs:
    chosen, rows = bind_rows(given_kernel(kernel, parameters, function), X)
    threads, randomness = parallel.threads_for(chosen, n_threads), Randomness(rng)
    seen, data = summarize_for(chosen, as_rows(rows), centred=center, randomness=randomness, n_threads=threads)
    resolved = chosen.resolve(replace(data, feature_names=seen.names))
    return _Inputs(resolved, seen, data, randomness, threads, points=rows is X)


def _offers(
    kernel: Kernel, data: Summary, rows: Rows, tol: float, max_features: int, name: str, n_threads: int, asked: str
) -> Iterator[Offer]:
    """The feature maps that are predicted to reach tol: first those that need no probe, then the smallest first.

    ``asked`` is the tolerance in the words of an error.
    """
    if name == "auto":
        yield from small_offers(kernel, data, rows, tol, max_features)
    # (the first probe chooses too few pivots to tell whether a tolerance needs more than max_features)
    probe = probed(kernel, data, FIRST_WITH_PIVOTS + 1, tol, spectrum=False)
    offers = of_at_most(offers_of_maps(kernel, data, rows, probe, tol, max_features, name), max_features)
    n = data.n_samples
    if not offers and n <= max_features and name in ("auto", "pivots"):
        # the prediction from a few rows may be wrong; with all rows as pivots nothing is left out
        offers = offers_within(kernel, data, rows, tol, n, "pivots", n_threads)
    if not offers and name != "auto":
        every = offers_of_maps(kernel, data, rows, probe, tol, max_features, "auto")
        others = {x.name for x in of_at_most(every, max_features)} - {name}
        raise ValueError(
            f"{kernel!r} has no feature map {name!r} of at most {max_features} features for {asked} on these rows; "
            + (f"there is {' or '.join(map(repr, sorted(others)))}" if others else "raise tol or max_features")
        )
    if not offers:
        raise ValueError(
            f"{kernel!r} reaches {asked} on these rows with no feature map of at most {max_features} features; "
            "raise tol or max_features, or use gram()"
        )
    yield from sorted(offers, key=lambda x: x.cost.n_features)


def best_within(
    kernel: Kernel, data: Summary, rows: Rows, tol: float, max_features: int, name: str, n_threads: int
) -> Offer:
    """A map of at most ``max_features`` features: one that reaches ``tol``, or else the one that comes closest."""
    if name in ("auto", "pivots"):
        return min(
            offers_within(kernel, data, rows, tol, max_features, name, n_threads), key=lambda x: x.cost.n_features
        )
    while True:
        offers = of_at_most([x for x in kernel.feature_maps(data, tol, max_features) if x.name == name], max_features)
        if offers:
            return offers[0]
        if tol >= 1.0:
            raise ValueError(f"{kernel!r} has no feature map {name!r} of at most {max_features} features")
        tol = min(10.0 * tol, 1.0)
