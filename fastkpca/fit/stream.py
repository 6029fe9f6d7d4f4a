"""Models of rows that keep coming: more rows, more features for them, less weight for old ones.

A model keeps the moments of its features, and an update adds those of a batch:

1. Moments of the batch with the model's map (``moments_and_draws``).
2. If the map's residual on the batch is large enough to widen intervals, pivots of the batch are added behind those
   that are there (``second_round``), and the batch is read again. The rows before are not: their new features count
   as zero, and the certificate allows for that (``merge.cross_error``); a reservoir of them says how much that is.
3. The moments of the rows before are multiplied by ``forget``, and those of the batch are added.
4. Eigenvalues, axes and intervals of the sum (``merge.solved``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..base import parallel
from ..base.checks import Randomness, as_float, check_count, check_failure_probability, check_tol
from ..base.protocol import FeatureMap, Kernel, Moments, Summary
from ..base.rounding import EPS, rounding_factor
from ..errors import DriftWarning, warn_caller
from ..maps.choosing import second_round
from ..maps.draws import Draws, Reservoir
from ..maps.passes import moments_and_draws
from ..maps.pivots import PivotMap
from ..model.result import KPCAModel
from ..model.rows import float_type, new_rows
from ..model.shared_map import check_mergeable, feature_projector, map_for_rows
from ..rows.summary import summarize_for
from ..rows.view import Rows
from ..solve.certificate import Bound, largest_eigenvalue
from ..solve.moments import kernel_trace
from ..solve.sampled import draws_worth, residual_bound, upper_share
from .feature_route import ROUNDS
from .merge import Added, left_out_of, merged_moments, solved, sum_of_bounds

GROW_AT = 2.0
"""Mean residual of all rows over that of the first ones, from which on pivots are added: intervals of first order then
stay within twice what they were."""
GROW_ROUNDS = 4
"""Rounds in which rows are drawn in proportion to their residual, and pivots added from them."""
MAX_GROWN_FEATURES = 2048
"""Largest number of features with ``grow=True``: a second moment of 32 MiB, whose eigenvalues take about a second."""
SAMPLED_FRACTION = 0.2
"""Bound from a sample over the residual trace, about. The decision to add pivots must not depend on the rows drawn."""
DRIFT_AT, DRIFT_ROWS = 0.5, 30
"""Explained share of a batch over that of the first rows, below which a warning says so; and rows that tell."""


def kpca_update(
    model: KPCAModel,
    X: Any,
    *,
    sample_weight: Any = None,
    c: int | None = None,
    tol: float | None = None,
    grow: bool | int = True,
    forget: float = 1.0,
    failure_probability: float | None = None,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> KPCAModel:
    """The model with more rows, from one pass over these: the time does not depend on the number of rows before.

    Parameters
    ----------
    model : KPCAModel
        Made with ``keep_moments=True``; it is not changed.
    X : array_like (m, d)
        More rows, one at least; anything that ``kpca`` takes.
    sample_weight : array_like (m,), optional
        Their weights.
    c : int, optional
        Number of components; by default that of the model.
    tol : float, optional
        Width of an eigenvalue's interval, relative to the largest, beyond which there is a warning, and up to which
        features are added. Default: that of the model.
    grow : bool or int
        Whether pivots may be added to the map for rows that it does not describe, or the largest number of features in
        all, no smaller than it is; True: 2048. Rows are then read a second time. Maps of other kinds do not grow.
    forget : float
        Factor for the weights of all rows before, above 0: 1 keeps them, 0.9 halves their weight in seven batches. The
        eigenvalues are then those of the weighted rows.
    failure_probability : float, optional
        With which any bound of this and all later updates may fail that rests on random numbers: 1e-6 by default. The
        j-th update takes the fraction 1 / (j (j + 1)) of it. It adds to the probability of the first model's bounds.
    n_threads : int, optional
        As in ``kpca``, like ``progress``.
    progress : bool or callable

    Returns
    -------
    KPCAModel
        It keeps control limits as they are: make new ones of later normal rows now and then (``kpca_limits``).
        ``info`` says how many updates (``batches``) and additions of features (``grown``) there were, and how much
        these widen every interval (``cross_error``).

    Raises
    ------
    ValueError
        The model has no moments; or the rows lie where the bounds of its feature map don't reach.

    Warns
    -----
    DriftWarning
        Once: the components explain less than half as much of the batch as of the first rows.

    Notes
    -----
    Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983, for the sums. Features that are added
    are zero for the rows before. That moves no eigenvalue by more than their residual, plus the root of the product of
    two largest eigenvalues: of the added features' moment, and of what the rows before lack of it. The latter is
    bounded by the residual, and closer by rows drawn in proportion to it, of which a model keeps 2048.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> rng = np.random.default_rng(0)
    >>> model = fk.kpca(rng.standard_normal((500, 2)), "gaussian", 3, sigma=1.0, features="pivots", keep_moments=True)
    >>> moved = fk.kpca_update(model, rng.standard_normal((400, 2)) + 8.0, c=8, tol=0.1)
    >>> moved.n_samples, moved.info["grown"]
    (900, 1)
    """
    (model,) = check_mergeable([model])
    assert model._moments is not None
    failure, tol, forget = check_failure_probability(failure_probability), _tol(model, tol), _checked_forget(forget)
    most = MAX_GROWN_FEATURES if grow is True else 0 if grow is False else check_count(grow, "grow")
    own = feature_projector(model).map
    if not isinstance(grow, bool) and isinstance(own, PivotMap) and most < (size := own.n_features):
        raise ValueError(
            f"grow is {grow}, and the model has {size} features; give {size} or more, or False to add none"
        )
    kernel, rows, _ = new_rows(model, X, purpose="kpca_update", sample_weight=sample_weight, finite=False)
    threads = parallel.threads_for(kernel, n_threads)
    batches = int(model.info.get("batches", 0)) + 1
    share = failure / (batches * (batches + 1.0))
    with parallel.reporter(progress) as report, parallel.blas_threads():
        randomness = Randomness(batches)
        rows, data = summarize_for(
            kernel,
            rows,
            centred=model.center,
            randomness=randomness,
            n_threads=threads,
            shift_by=model.shift,
            scale=False if model.scale is None else model.scale,
        )
        feature_map = map_for_rows(model, kernel, data)
        options: dict[str, Any] = {"n_threads": threads, "progress": report}
        moments, draws = moments_and_draws(feature_map, rows, randomness.generator, **options)
        found = (moments, draws)
        grown = _grown(model, feature_map, rows, found, most, tol, forget, randomness.generator, **options)
        if grown is not None:  # these draws decided on the map: bounds take new ones
            feature_map, share = grown, 0.5 * share  # the other half is for what the rows before lack
            moments, draws = moments_and_draws(feature_map, rows, randomness.generator, **options)
        sampled = model._left_out is not None and model._left_out[1] > 0.0
        bound = _bound_of_batch(feature_map, kernel, rows, data, (moments, draws), share if sampled else 0.0)
    reservoir = Reservoir.of(draws, rows)
    old = replace(model, _moments=_copy(model._moments).scale(forget) if forget != 1.0 else model._moments)
    before = left_out_of(model)
    before = replace(before, mu=before.mu * forget)
    added, failing = _added(model, before, feature_map, forget, share)
    batch = replace(
        model,
        projector=replace(feature_projector(model), map=feature_map),
        dtype=float_type(rows.dtype),
        info=model.info | {"radius": max(data.radius, float(model.info.get("radius", 0.0)))},
        _moments=moments,
    )
    total = merged_moments([old, batch])
    weighted = rows.weights is not None or model.weight_sum is not None or forget != 1.0
    first_share = float(model.info.get("first_explained", model.explained.sum() / 100.0))
    updated = solved(
        [model, batch],
        total,
        n_samples=model.n_samples + rows.n_samples,
        weight_sum=total.count if weighted else None,
        left_out=sum_of_bounds([before, bound], failing),
        added=added,
        reservoir=None if model._reservoir is None else model._reservoir.scaled(forget).join(reservoir),
        c=model.n_components if c is None else c,
        tol=tol,
        failure=failure,
        batches=batches,
        first_explained=first_share,
        first_residual=_first_residual(model),
        drifted=bool(model.info.get("drifted", False)),
    )
    kept: dict[str, Any] = {"limits": model.limits, "spe_components": model.spe_components}
    if model.spe_components is not None:
        kept["spe_components"] = min(model.spe_components, updated.n_components)
    told = {name: model.info[name] for name in ("chosen", "lags", "filled", "reading") if name in model.info}
    return _watched(replace(updated, **kept, info=updated.info | told), moments, first_share)


def kpca_subtract(
    model: KPCAModel,
    part: KPCAModel,
    *,
    c: int | None = None,
    tol: float = 1e-6,
    failure_probability: float | None = None,
) -> KPCAModel:
    """The model without the rows of a part: a window that moves over batches, or rows that must be forgotten.

    Parameters
    ----------
    model : KPCAModel
        Model of all rows, with moments (``keep_moments=True``); it is not changed.
    part : KPCAModel
        Model of some of these rows, with their weights: made with ``like=`` the same first model. Only a part that has
        more variance than the model is noticed not to be one.
    c : int, optional
    tol : float
    failure_probability : float, optional
        As in ``kpca_merge``.

    Returns
    -------
    KPCAModel

    Raises
    ------
    ValueError
        A model has no moments, or they are of different feature maps, or features were added to one; or the part has
        as many rows as the model.

    Notes
    -----
    What cancels is bounded, and widens the intervals: about 1e-13 of the larger of both traces.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((900, 3))
    >>> first = fk.kpca(X[:300], "polynomial", 3, degree=2, keep_moments=True)
    >>> second, third = (fk.kpca(rows, like=first, keep_moments=True) for rows in (X[300:600], X[600:]))
    >>> window = fk.kpca_subtract(fk.kpca_merge(first, second, third), first)
    >>> window.n_samples
    600
    """
    model, part = check_mergeable([model, part])
    failure = check_failure_probability(failure_probability)
    if part.n_samples >= model.n_samples or not part.count < model.count * (1.0 - 1e-9):
        raise ValueError(
            f"part counts {part.count:.6g} rows, and the model {model.count:.6g}; give a model of some of its rows"
        )
    if model._added or feature_projector(part).map.n_features != feature_projector(model).map.n_features:
        raise ValueError(
            "features were added to one of the models, and which of them the rows of part have in the other is not "
            "known; merge the parts that stay (kpca_merge), or update with grow=False"
        )
    assert model._moments is not None and part._moments is not None
    moments, own = model._moments.without(part._moments, model.n_samples), feature_projector(part).map
    if isinstance(own, PivotMap):  # of its upper bounds on residuals, which the same rows of the model may lack
        moments.residual_trace += part.count * (own.entry_error + own.defect)
    least = moments.trace + moments.error
    if not (least >= 0.0 and moments.residual_trace >= 0.0):
        raise ValueError("the variance of part is larger than the model's: its rows are not among the model's")
    left_out = left_out_of(model)
    left_out = replace(left_out, mu=min(left_out.mu, moments.residual_trace))
    # the reservoir may have drawn rows that are taken away: it goes with them
    weighted = model.weight_sum is not None or part.weight_sum is not None
    return solved(
        [model],
        moments,
        n_samples=model.n_samples - part.n_samples,
        weight_sum=moments.count if weighted else None,
        left_out=left_out,
        c=model.n_components if c is None else c,
        tol=tol,
        failure=failure,
        **{
            name: model.info[name]
            for name in ("batches", "first_explained", "first_residual", "drifted")
            if name in model.info
        },
    )


def _tol(model: KPCAModel, given: float | None) -> float:
    """As given, or that of the model."""
    return check_tol(float(model.info.get("tol") or 1e-6) if given is None else given)


def _checked_forget(forget: Any) -> float:
    value = as_float(forget)
    if value is None or not 0.0 < value <= 1.0:
        raise ValueError(f"forget is {forget!r}; give a factor above 0 and at most 1, as in 0.9")
    return value


def _copy(moments: Moments) -> Moments:
    return moments.map.new_moments().merge(moments)


def _grown(
    model: KPCAModel,
    feature_map: FeatureMap,
    rows: Rows,
    found: tuple[Moments, Draws | None],
    most: int,
    tol: float,
    forget: float,
    rng: np.random.Generator,
    **options: Any,
) -> FeatureMap | None:
    """The map, with pivots added where its residual on these rows is too large; None where it is not.

    By sums over all rows alone: the random rows of the model's bounds must have no part in it.
    """
    moments, draws = found
    assert model._moments is not None
    if not isinstance(feature_map, PivotMap) or draws is None or feature_map.n_features >= most:
        return None
    kept, n = model._moments, model._moments.count * forget + moments.count
    left, allowed = kept.residual_trace * forget + moments.residual_trace, GROW_AT * _first_residual(model)
    if left > allowed * n:
        # or half of what tol allows, of which a bound from a sample is a fraction
        scatter = kept.dense()
        assert scatter is not None
        fraction = SAMPLED_FRACTION if model._left_out is not None and model._left_out[1] > 0.0 else 1.0
        allowed = max(allowed, 0.5 * tol * largest_eigenvalue(scatter) / (kept.count * fraction))
    if left <= allowed * n:
        return None
    trace, grown = kernel_trace(moments), feature_map
    wanted = allowed / GROW_AT * moments.count / trace
    seen: tuple[float, Draws] | None = (trace, draws)
    for _ in range(GROW_ROUNDS):
        before = grown
        try:
            grown, _ = second_round(
                before, rows, tol=wanted, max_features=most, rng=rng, seen=seen, nested=True, **options
            )
        except ValueError:  # nothing but rounding is left of the rows drawn
            return before
        if grown is before or (grown.reached and seen is None):
            break
        seen = None
    return grown


def _first_residual(model: KPCAModel) -> float:
    """Mean over the rows of the first model of what its map left out."""
    return float(model.info.get("first_residual", model.mean_residual))


def _bound_of_batch(
    feature_map: FeatureMap,
    kernel: Kernel,
    rows: Rows,
    data: Summary,
    found: tuple[Moments, Draws | None],
    failure: float,
) -> Bound:
    """Bound on the largest eigenvalue of the map's residual on the batch; by a sample if ``failure`` is positive."""
    moments, draws = found
    trace = Bound(moments.residual_trace, "trace")
    if not failure or draws is None or not moments.residual_trace > 0.0:
        return trace
    count = draws_worth(rows.n_samples, feature_map.n_features)
    error = kernel.entry_error(data, np.dtype(np.float64)) or 0.0
    bound = residual_bound(feature_map, kernel, rows, trace.mu, draws, count=count, entry_error=error, failure=failure)
    return min(trace, bound, key=lambda bound: bound.mu)


def _added(model: KPCAModel, before: Bound, feature_map: Any, forget: float, failure: float) -> tuple[Added, float]:
    """(the blocks of features that are not known of all rows, after a batch with this map; the failure probability of
    a bound that this takes from the reservoir).

    Rows are drawn in proportion to their residual r. Let u be the features that a row lacks over r^(1/2), so that
    |u| <= 1. Then ``solve.sampled`` bounds the largest eigenvalue of the missing features' moment as it does that of a
    residual.
    """
    old, first = tuple((x, bound * forget) for x, bound in model._added), feature_projector(model).map.n_features
    if feature_map.n_features == first:
        return old, 0.0
    kept = model._reservoir
    if kept is None or not failure:
        return (*old, (first, before.mu)), 0.0
    missing, s = kept.features(feature_map, first), len(kept.rows)
    moment = missing.T @ missing
    # of a row's features, over the root of its residual; they were computed twice, with errors of |R| / nu'^(1/2)
    diagonal = feature_map.kernel.diagonal(kept.rows)
    defects = np.array([feature_map.defect_norm(1.0, x) for x in diagonal])
    error = feature_map.rounding * np.sqrt(diagonal) + 2.0 * np.sqrt(defects)
    error = np.divide(error, np.sqrt(kept.residual), out=np.zeros(s), where=kept.residual > 0.0)
    slack = rounding_factor(s) * EPS * float(np.trace(moment)) + float(np.sum(error * (2.0 + error)))
    share = (largest_eigenvalue(moment) + slack) / s
    # the rows of the first model were drawn for its last map, after at most ROUNDS others, and one bit of its bound #
    # decides on growth: a union bound over all of these
    each = 0.5 * failure / (ROUNDS + 1)
    bound = kept.draws.total * forget * (1.0 + 1e-9) * float(upper_share(share, s, each))
    return (*old, (first, min(bound, before.mu))), failure


def _watched(model: KPCAModel, batch: Moments, first_share: float) -> KPCAModel:
    """The model, with a warning, once, where it explains much less of its last batch than it did of the first rows."""
    axes = feature_projector(model).axes
    step = batch.mean - feature_projector(model).mean
    products = batch.matmat(axes)
    along = float(np.einsum("ij,ij->", axes, products)) + batch.count * float(np.sum((step @ axes) ** 2))
    total = batch.trace + batch.count * float(step @ step) + batch.residual_trace
    share = along / total if total > 0.0 else 1.0
    info = model.info | {"batch_explained": share}
    if share < DRIFT_AT * first_share and batch.count >= DRIFT_ROWS and not info["drifted"]:
        info["drifted"] = True
        warn_caller(
            f"{model.n_components} components explain {share:.0%} of the variance of the last batch, and "
            f"{first_share:.0%} of the first rows: the process has moved. More components (c=) describe both; "
            "forget=0.9 lets the model follow the rows that come; this is said once",
            DriftWarning,
        )
    return replace(model, info=info)
