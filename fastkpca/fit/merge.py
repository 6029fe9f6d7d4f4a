"""Models that add up: made on shards or over time with one feature map, merged from their moments.

The centred second moment of the features of two sets of rows is the sum of theirs, and a term of rank one for the
distance of the means. Counts, traces and residuals of the map add as well. So a merged model is the one that a
single pass over all the rows would have made with that map, to rounding, and so is its certificate. Where the bound on
the residual comes from samples, the bounds of the parts add up, and so do their failure probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..base import parallel
from ..base.checks import check_c, check_failure_probability, check_tol
from ..base.protocol import Moments
from ..base.room import DEFAULT_MEMORY
from ..base.rounding import EPS, rounding_factor
from ..kernels import guarded
from ..maps.draws import Reservoir
from ..maps.passes import check_moments
from ..model.plan import Plan
from ..model.result import KPCAModel
from ..model.shared_map import check_mergeable, feature_projector, widest_map
from ..solve.certificate import Bound, largest_eigenvalue
from .components import components, largest_of, leading_of
from .target import Target

Added = tuple[tuple[int, float], ...]
"""``KPCAModel._added``."""


def kpca_merge(
    first: KPCAModel,
    *others: KPCAModel,
    c: int | None = None,
    tol: float = 1e-6,
    failure_probability: float | None = None,
) -> KPCAModel:
    """The model of all the rows of several models that share a feature map.

    Parameters
    ----------
    first, *others : KPCAModel
        Made with ``keep_moments=True``, all but one of them with ``like=`` that one.
    c : int, optional
        Number of components; by default that of the model with the most.
    tol : float
        Width of an eigenvalue's interval, relative to the largest, beyond which there is a warning.
    failure_probability : float, optional
        With which bounds that this call rests on random numbers may fail: 1e-6 by default. It adds to the
        probabilities with which the bounds of the models fail.

    Returns
    -------
    KPCAModel
        Keeps its moments, so it can be merged further. It has no scores: ``kpca_project`` makes them.

    Raises
    ------
    ValueError
        A model has no moments, or they are of different feature maps.

    Notes
    -----
    Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> first = fk.kpca(X[:600], "polynomial", 3, degree=2, keep_moments=True)
    >>> second = fk.kpca(X[600:], like=first, keep_moments=True)
    >>> fk.kpca_merge(first, second).n_samples
    1000
    """
    models = check_mergeable([first, *others])
    weighted = any(model.weight_sum is not None for model in models)
    moments = merged_moments(models)
    return solved(
        models,
        moments,
        n_samples=sum(model.n_samples for model in models),
        weight_sum=moments.count if weighted else None,
        left_out=sum_of_bounds([left_out_of(model) for model in models]),
        added=added_in(models),
        reservoir=reservoir_of(models),
        c=max(model.n_components for model in models) if c is None else c,
        tol=tol,
        failure=check_failure_probability(failure_probability),
        batches=sum(int(model.info.get("batches", 0)) for model in models),
    )


def merged_moments(models: Sequence[KPCAModel]) -> Moments:
    """The moments of the rows of all; features that were added to a map later are zero for the rows before."""
    widest = max((feature_projector(model).map for model in models), key=lambda x: x.n_features)
    total = widest.new_moments()
    for model in models:
        assert model._moments is not None
        grown = model._moments.map.n_features < widest.n_features
        total = total.merge(model._moments.widened(widest) if grown else model._moments)
    return total


def reservoir_of(models: Sequence[KPCAModel]) -> Reservoir | None:
    kept = models[0]._reservoir
    for model in models[1:]:
        kept = None if kept is None else kept.join(model._reservoir)
    return kept


def added_in(models: Sequence[KPCAModel]) -> Added:
    """The features that are not known of all rows of the models, and bounds on what the rows lack.

    A block of one model may be several blocks of another: each part of what a row lacks is no larger than all of it.
    """
    sizes = [feature_projector(model).map.n_features for model in models]
    blocks = {first: 0.0 for model in models for first, _ in model._added} | {x: 0.0 for x in sizes if x < max(sizes)}
    for model, size in zip(models, sizes):
        # a map that ends before a block leaves all of it out
        own = (*model._added, (size, left_out_of(model).mu))
        for first in blocks:
            blocks[first] += next((bound for start, bound in reversed(own) if start <= first), 0.0)
    return tuple(sorted(blocks.items()))


def cross_error(moments: Moments, added: Added, n_rows: int) -> float:
    r"""Bound on the error of the eigenvalues by features that were added after some of ``n_rows`` rows had been read.

    Let F hold the features of all rows, zero where they were added later, Delta what should be there, and E the
    residual of the map, semidefinite. K = F F' + (F Delta' + Delta F') + (Delta Delta' + E). The last part is what the
    maps of their time left out of the rows. The second is a sum over the blocks of features that were added at one
    time: no row both has a block, Psi, and lacks it, Delta. So its norm is at most

    .. math:: \sum_{blocks} \sqrt{\lambda_{max}(\Psi' \Psi) \lambda_{max}(\Delta' \Delta)}.
    """
    if not added:
        return 0.0
    scatter, total = moments.dense(), 0.0
    assert scatter is not None
    ends = [first for first, _ in added[1:]] + [len(scatter)]
    for (first, lacking), end in zip(added, ends):
        mean = moments.mean[first:end]
        block = scatter[first:end, first:end] + moments.count * np.outer(mean, mean)
        error = moments.error + rounding_factor(n_rows + 1) * EPS * float(np.trace(block))
        total += float(np.sqrt((largest_eigenvalue(block) + error) * lacking))
    return total * (1.0 + 1e-9)


def left_out_of(model: KPCAModel) -> Bound:
    """Bound on the largest eigenvalue of the map's residual on a model's rows."""
    assert model._moments is not None
    trace = model._moments.residual_trace
    if model._left_out is None or (model._left_out[0] >= trace and not model._added):
        return Bound(trace, "trace")
    mu, failure = model._left_out
    return Bound(min(mu, trace), "sampled" if failure else "trace", failure)


def sum_of_bounds(bounds: Sequence[Bound], failing: float = 0.0) -> Bound:
    """For the rows of all: with R_i = B_i B_i' what is left out of the rows of part i, and B that of all rows,
    lambda_max(B B') = lambda_max(sum B_i' B_i) <= sum lambda_max(R_i). Any of the bounds may fail, and with the
    probability ``failing`` another."""
    failure = min(sum(bound.failure_probability for bound in bounds) + failing, 1.0)
    return Bound(sum(bound.mu for bound in bounds), "sampled" if failure else "trace", failure)


def solved(
    models: list[KPCAModel],
    moments: Moments,
    *,
    left_out: Bound,
    added: Added = (),
    reservoir: Reservoir | None = None,
    n_samples: int,
    weight_sum: float | None,
    c: int | None,
    tol: float,
    failure: float,
    **more: Any,
) -> KPCAModel:
    """The model of merged moments; ``more`` goes into its info."""
    first = models[0]
    target = Target(
        check_c(c, n_samples),
        check_tol(tol),
        "features",
        given_map=True,
        failure_probability=failure,
        center=first.center,
    )
    kernel, rank = guarded(first.kernel), n_samples - first.center
    moments.map = widest_map(models)
    check_moments(moments)
    with parallel.blas_threads():
        leading = leading_of(moments, target, rank, DEFAULT_MEMORY)
    certain = moments.residual_trace <= target.tol * largest_of(leading[0])
    reference = feature_projector(first).axes
    reference = np.pad(reference, [(0, moments.map.n_features - len(reference)), (0, 0)])
    error = cross_error(moments, added, n_samples)
    solution = components(
        moments,
        leading,
        target,
        kernel,
        n_samples=n_samples,
        rank=rank,
        left_out=None if certain else left_out,
        cross_error=error,
        reference=reference,
    )
    if added:  # the cross error rests on bounds that may fail, even if the trace is certain
        failure = max(solution.certificate.failure_probability, left_out.failure_probability)
        certificate = replace(solution.certificate, failure_probability=failure)
        solution = replace(solution, certificate=certificate, left_out=left_out)
        more |= {"grown": len(added), "cross_error": error}
    reason = f"merged from the moments of {len(models)} models"
    plan = Plan(first.plan.method, first.plan.name, reason, first.plan.candidates)
    radius = max(float(model.info.get("radius", 0.0)) for model in models)
    info = solution.info | {"radius": radius, "merged": len(models), "tol": target.tol} | more
    return replace(solution, info=info, added=added, reservoir=reservoir).model(
        plan,
        kernel,
        float(n_samples) if weight_sum is None else weight_sum,
        target=target,
        keep_moments=True,
        n_samples=n_samples,
        n_features=first.n_features,
        shift=first.shift,
        scale=first.scale,
        dtype=np.result_type(*(model.dtype for model in models)),
        weight_sum=weight_sum,
        feature_names=next((model.feature_names for model in models if model.feature_names), None),
    )
