"""Checks of what a kernel offers: feature maps with their residuals and moments, and products with their bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..base.protocol import FeatureMap, Moments, Offer, Summary, Summation
from ..base.rounding import EPS, UNIT
from ..kernels import contract
from ..kernels.contract import feature_rounding
from .cases import (
    NOT_OFFERED,
    TOLERANCES,
    Case,
    Fault,
    agree,
    hold,
    map_offers,
    need,
    on_cases,
    on_maps_of,
    summarized,
)

ROUNDING_ERROR = min(TOLERANCES)
"""Error of a product of few terms, over the largest kernel value, that still counts as rounding."""


@on_cases
def check_feature_map_offers(case: Case) -> str | None:
    """``feature_maps`` answers for any positive ``tol`` and any ``max_features``, with maps of no more features."""
    offered: list[Offer] = []
    for tol in (UNIT, *TOLERANCES):
        for most in (1, 3000):
            try:
                offered += (offers := list(map_offers(case, tol, most)))
            except Exception as error:
                raise Fault(f"at tol={tol:.3g}, max_features={most}: {type(error).__name__}: {error}") from error
            for offer in offers:
                held, D = offer.cost.moment_flops is None, offer.cost.n_features
                need(
                    not held or D <= most,
                    f"{offer.name!r} has {D} features, and max_features is {most} (at tol={tol:.3g}); do not offer it",
                )
    return None if offered else NOT_OFFERED


@on_maps_of(*TOLERANCES)
def check_feature_map_residual(case: Case, phi: FeatureMap, tol: float) -> None:
    """K - Phi Phi' is semidefinite up to ``defect``, and its diagonal at most ``residual``, at rows seen and unseen.

    The residual's sum over the rows keeps the tolerance that was asked for, within a factor of two and rounding.
    """
    S = case.map_rows
    K = case.kernel.block(S, S)
    Phi, residual = phi.features(S), phi.residual(S)
    need(Phi.shape == (len(S), phi.n_features), f"features have shape {Phi.shape}")
    need(np.shape(residual) == (len(S),), f"residual has shape {np.shape(residual)}")
    need(np.isfinite(Phi).all() and np.isfinite(residual).all(), "features or residual are not finite")
    need((residual >= 0).all(), f"residual is {residual.min():.3g}; it is never negative")
    agree(phi.residual(S, Phi), residual, 1e-12 * float(np.trace(K)), "residual with and without Phi")
    fault = contract.map_stays_below(phi, Phi, residual, K, case.error())
    need(fault is None, f"{fault} (at tol={tol:g})")


@on_maps_of(*TOLERANCES)
def check_feature_map_outside(case: Case, phi: FeatureMap, tol: float) -> str | None:
    """``outside_error`` holds for rows up to 100 times farther out; what ``widened`` returns for them is true there.

    A map with ``anywhere = True`` is widened to any rows: ``residual`` and ``defect`` hold for them too.
    """
    far = case.farther_out
    if far is None:
        return NOT_OFFERED
    _outside_error_covers_the_rest(phi, far, tol)
    try:
        wide = phi.widened(case.kernel, far.data, case.data.radius)
    except ValueError:
        return None  # it holds for rows like those of the fit, and says so
    Phi = wide.features(far.X)
    fault = contract.map_stays_below(wide, Phi, wide.residual(far.X, Phi), far.K, far.error())
    at = f"rows up to {far.data.radius:.3g} from the origin, which anywhere or widened says it holds for; tol={tol:g}"
    need(fault is None, f"{fault} ({at})")
    return None


def _outside_error_covers_the_rest(phi: FeatureMap, far: Case, tol: float) -> None:
    """|k(x, y) - phi(x).phi(y)| <= sqrt(r(x) r(y)) + defect + outside_error(x), with the residual r.

    The rows x lie outside the region of the fit, the rows y are of the fit. The square root is Cauchy-Schwarz for the
    semidefinite residual of the map.
    """
    outside, inside = np.split(far.X, 2)
    K = far.K[: len(outside), len(outside) :]
    Phi_x, Phi_y = phi.features(outside), phi.features(inside)
    residuals = phi.residual(outside, Phi_x), phi.residual(inside, Phi_y)
    r_x, r_y = (np.maximum(residual, 0.0) + phi.defect for residual in residuals)
    sizes = np.outer(np.linalg.norm(Phi_x, axis=1), np.linalg.norm(Phi_y, axis=1))
    stated = np.asarray(phi.outside_error(outside), dtype=np.float64)
    explained = np.sqrt(np.outer(r_x, r_y)) + phi.defect + feature_rounding(phi) * sizes + far.error()
    off = np.abs(K - Phi_x @ Phi_y.T)
    gap = off - explained - stated[:, None]
    i, j = np.unravel_index(int(gap.argmax()), gap.shape)
    need(
        gap[i, j] <= 0.0,
        f"outside_error is {stated[i]:.3g} where k(x, y) - phi(x).phi(y) is {off[i, j]:.3g}, of which residual and "
        f"defect explain {explained[i, j]:.3g}; |x| is {np.linalg.norm(outside[i]):.3g}, and y is a row of the fit; it "
        f"bounds the rest for every row outside of the region of the fit (at tol={tol:g})",
    )


@on_maps_of(*TOLERANCES)
def check_feature_map_products(case: Case, phi: FeatureMap, tol: float) -> None:
    """``accumulate`` and ``apply`` are Phi' U and Phi C; features of a tile do not depend on its other rows.

    Products may be with features that err by the defect, as those of transforms do: by f where 2 |f| |phi| is the
    defect of an entry of K. Of m rows, |F|_2 is then at most sqrt(m) defect / (2 |phi|).
    """
    S, rng = case.map_rows, np.random.default_rng(6)
    Phi = phi.features(S)
    before, longest = Phi.copy(), float(np.linalg.norm(Phi, axis=1).max(initial=0.0))
    defect = phi.defect * np.sqrt(len(S)) / (2 * longest or np.inf)
    allowed = 16 * feature_rounding(phi) * float(np.linalg.norm(Phi)) + defect
    for columns in (1, 4):
        U, C = rng.standard_normal((len(S), columns)), rng.standard_normal((phi.n_features, columns))
        agree(phi.apply(S, C), Phi @ C, allowed * (float(np.linalg.norm(C)) + 1), "apply and Phi C")
        agree(phi.accumulate(S, U), Phi.T @ U, allowed * (float(np.linalg.norm(U)) + 1), "accumulate and Phi' U")
    error = 4 * feature_rounding(phi) * float(np.linalg.norm(Phi))
    agree(phi.features(S[5:20].copy()), Phi[5:20], error, "features of part of the rows")
    Phi[...] = np.pi
    need(np.array_equal(phi.features(S), before), "overwriting what features returned changes later features")


@on_maps_of(1e-1, 1e-2, 1e-8)
def check_moments(case: Case, phi: FeatureMap, tol: float) -> None:
    """Moments from tiles, merged in another order, and with weights, are those of the features."""
    S = case.map_rows
    for weights in (None, np.random.default_rng(7).uniform(0.2, 2.0, len(S))):
        whole, left, right = phi.new_moments(), phi.new_moments(), phi.new_moments()
        whole.update(S, weights)
        cut = len(S) // 3
        left.update(S[:cut], None if weights is None else weights[:cut])
        for start in range(cut, len(S), 17):
            tile = slice(start, start + 17)
            right.update(S[tile], None if weights is None else weights[tile])
        given = np.ones(len(S)) if weights is None else weights
        _moments_are_of_features(whole, phi, S, given, "moments")
        _moments_are_of_features(left.merge(right), phi, S, given, "moments merged from tiles")


def _moments_are_of_features(moments: Moments, phi: FeatureMap, S: np.ndarray, weights: np.ndarray, how: str) -> None:
    Phi, count, residual = phi.features(S), weights.sum(), float(weights @ phi.residual(S))
    rounding = 64 * feature_rounding(phi)
    mean = weights @ Phi / count
    second = ((Phi - mean) * weights[:, None]).T @ (Phi - mean)
    size = float((weights[:, None] * Phi**2).sum())
    error = rounding * size + count * phi.defect
    agree(moments.count, count, 1e-12 * count, f"count of {how}")
    agree(moments.mean, mean, rounding * float(np.abs(Phi).max(initial=0.0)) + phi.defect, f"mean of {how}")
    agree(moments.trace, np.trace(second), error, f"trace of {how}")
    agree(moments.residual_trace, residual, 1e-10 * abs(residual) + 64 * EPS * size, f"residual_trace of {how}")
    dense = moments.dense()
    if dense is not None:
        agree(dense, second, error, f"second moment of {how}")
    C = np.random.default_rng(8).standard_normal((phi.n_features, 2))
    agree(moments.matmat(C), second @ C, error * (float(np.linalg.norm(C)) + 1e-300), f"matmat of {how}")


@on_maps_of(*TOLERANCES)
def check_feature_map_state(case: Case, phi: FeatureMap, tol: float) -> None:
    """``state`` is JSON and arrays, and ``feature_map_from_state`` makes the same map of it."""
    header, arrays = phi.state()
    header = json.loads(json.dumps(header))
    for name, array in arrays.items():
        need(isinstance(array, np.ndarray), f"state holds {name!r} as {type(array).__name__}; an array is due")
    restored = case.kernel.feature_map_from_state(header, {name: np.array(array) for name, array in arrays.items()})
    need(restored.n_features == phi.n_features, "the map from its state has another number of features")
    S, both = case.map_rows, "of the map and of that from its state"
    size = float(np.abs(phi.features(S)).max(initial=0.0))
    agree(restored.features(S), phi.features(S), 4 * EPS * size, f"features {both}")
    agree(restored.residual(S), phi.residual(S), 1e-12 * size**2, f"residual {both}")
    need(
        (restored.defect, restored.rounding) == (phi.defect, phi.rounding),
        "defect or rounding is not that of the map whose state it was made from",
    )


def _summations(case: Case) -> Iterator[tuple[Summation, np.ndarray, Summary, float | None]]:
    """(summation, the matrix that it multiplies with, the rows of its columns, tol), square and rectangular."""
    few = np.ascontiguousarray(case.X[::2][:37])
    few_rows, few_data = summarized(few)
    for tol in (None, 1e-2, 1e-5, 1e-9, 1e-12):
        for rows_y, data_y, Y in ((None, case.data, case.X), (few_rows, few_data, few)):
            for offer in case.kernel.summations(case.data, data_y, tol):
                need(isinstance(offer, Offer), f"summations offers {offer!r}; an Offer is due")
                product = offer.build(case.rows, rows_y)
                need(isinstance(product, Summation), f"{offer.name!r} builds {product!r}; a Summation is due")
                need(
                    tuple(product.shape) == (len(case.X), len(Y)),
                    f"{offer.name!r} has shape {product.shape} for {len(case.X)} and {len(Y)} rows",
                )
                yield product, case.kernel.block(case.X, Y), data_y, tol


@on_cases
def check_summation_bound(case: Case) -> str | None:
    """Products keep the ``error_bound`` that they state, in each entry, and state no more than was asked for."""
    result: str | None = NOT_OFFERED
    for S, K, data_y, tol in _summations(case):
        result = None
        if tol is None:
            limit = _exact_product_error(case, data_y)
            asked = f"; without a tol at most {limit:.2g} is due: the rounding of an exact product"
        else:
            limit, asked = tol, f", at most {tol:g} was asked for"
        need(0 <= S.error_bound <= limit, f"error_bound is {S.error_bound:.3g}{asked}")
        _keeps_its_bound(S.matmat, S, case, K, "matmat")
    return result


def _exact_product_error(case: Case, data_y: Summary) -> float:
    """The largest ``error_bound`` that a product may state where no ``tol`` was given: its error is rounding alone.

    (1e-10 + 8 n u) times the largest kernel value, where n is the number of terms in a sum, and twice the kernel's
    ``entry_error``.
    """
    kernel, sides = case.kernel, (case.data, data_y)
    errors = [kernel.entry_error(data, np.dtype(np.float64)) or 0.0 for data in sides]
    values = [kernel.value_bound(data) for data in sides]
    size = max(case.largest if value is None else value for value in values)
    return (ROUNDING_ERROR + 4 * max(data.n_samples for data in sides) * EPS) * size + 2 * max(errors)


def _keeps_its_bound(product: Any, S: Summation, case: Case, K: np.ndarray, name: str) -> None:
    m = K.shape[1]
    rng = np.random.default_rng(9)
    U = np.column_stack([np.ones(m), rng.standard_normal((m, 2)), np.eye(m)[:, m // 2], np.zeros(m)])
    U[:, 2] *= 10.0 ** rng.integers(-6, 7, m)
    kept = U.copy()
    values = np.asarray(product(U))
    need(np.array_equal(U, kept), f"{name} changes its input")
    need(values.shape == (len(K), U.shape[1]), f"{name} returns shape {values.shape} for {U.shape}")
    need(np.isfinite(values).all(), f"{name} is not finite")
    fault = contract.product_keeps_bound(values, K, U, S.error_bound + case.error())
    hold(fault, f"{name} of {type(S).__name__}")
    one = np.asarray(product(np.ascontiguousarray(U[:, 1:2])))
    allowed = 2 * S.error_bound * np.abs(U[:, 1]).sum() + 2 * (m + 30) * EPS * (np.abs(K) @ np.abs(U[:, 1:2]))
    need((np.abs(one - values[:, 1:2]) <= allowed).all(), f"{name} of one column is not that of the same among several")


@on_cases
def check_summation_adjoint(case: Case) -> str | None:
    """``rmatmat`` keeps the bound for K' U; where ``symmetric``, it is ``matmat``."""
    result: str | None = NOT_OFFERED
    for S, K, *_ in _summations(case):
        result = None
        _keeps_its_bound(S.rmatmat, S, case, np.ascontiguousarray(K.T), "rmatmat")
        if not S.symmetric:
            continue
        need(S.shape[0] == S.shape[1], "a rectangular summation says that it is symmetric")
        n = len(K)
        U, V = np.random.default_rng(10).standard_normal((2, n, 2))
        forth, back = float(np.vdot(V, S.matmat(U))), float(np.vdot(S.matmat(V), U))
        size = float(np.abs(V).sum() * np.abs(U).sum()) * max(case.largest, EPS)
        need(
            abs(forth - back) <= 64 * n * EPS * size,
            f"it says that it is symmetric, and v'Su = {forth:.17g}, u'Sv = {back:.17g}",
        )
    return result
