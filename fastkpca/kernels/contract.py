"""Checks of a kernel's declared properties against its values on some rows: at run time by ``guard``, and for authors
by ``fastkpca.testing``. Each returns the fault, or None."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import tiles
from ..base.protocol import FeatureMap
from ..base.rounding import EPS


def difference(values: Any, due: Any, allowed: Any, text: str) -> str | None:
    """``text`` about the entry that differs the most beyond what is allowed; None: none does, nor is NaN.

    The text has the fields ``value``, ``due``, ``off``, ``allowed``, and ``at``, the indices of the entry.
    """
    off = np.abs(values - due)
    gap = off - allowed
    if gap.max(initial=-np.inf) <= 0.0:
        return None
    at = np.unravel_index(int((off if np.isnan(gap).any() else gap).argmax()), gap.shape)
    values, due, allowed = np.broadcast_arrays(values, due, allowed)
    return text.format(value=values[at], due=due[at], off=off[at], allowed=allowed[at], at=at)


def block_is_symmetric(K: np.ndarray, error: float) -> str | None:
    """k(x, y) = k(y, x) in the tile K of rows with themselves; a value errs by at most ``error``."""
    text = (
        "is not symmetric: k(x, y) = {value:.17g}, k(y, x) = {due:.17g} (rows {at[0]} and {at[1]}); kernels are "
        "symmetric, to rounding or to their entry_error: k(x, y) and k(y, x) are one number"
    )
    return difference(K, K.T, 2 * error, text)


def block_is_semidefinite(K: np.ndarray, noise: float) -> str | None:
    """No eigenvalue of K is below -noise."""
    lowest = np.linalg.eigvalsh(K)[0]
    if lowest >= -noise:
        return None
    return (
        f"has on {len(K)} rows values with the eigenvalue {lowest:.3g}, allowed is {-noise:.2g} (the largest value is "
        f"{np.abs(K).max(initial=0.0):.3g}); the kernel says positive_semidefinite = True, and is not"
    )


def shift_changes_nothing(
    here: np.ndarray, away: np.ndarray, translation: str, shift: float, allowed: float
) -> str | None:
    """k(x + s, y + s) = k(x, y), or that of centred values; ``here`` and ``away`` are before and after the shift."""
    if translation == "centered":
        here, away = ((x - x.mean(axis=0)) - (x - x.mean(axis=0)).mean(axis=1)[:, None] for x in (here, away))
    text = (
        f"differs by {{off:.3g}} before and after a shift of both tiles, by {shift:.3g} in each column; the kernel "
        f"says translation = {translation!r}, and that does not hold"
    )
    return difference(here, away, allowed, text)


def diagonal_is_of_block(values: np.ndarray, from_block: np.ndarray, allowed: float) -> str | None:
    """k(x, x) of some rows as ``diagonal`` and as ``block`` return it."""
    text = (
        "contradicts block: k(x, x) = {value:.17g}, and block returns {due:.17g} for the same row, which differs by "
        "{off:.3g} (allowed: {allowed:.2g}); remove diagonal, or make it return what block does"
    )
    return difference(values, from_block, allowed, text)


def feature_rounding(feature_map: FeatureMap) -> float:
    """Relative error of phi.phi by rounding."""
    return 2.1 * feature_map.rounding + 2 * EPS * max(1, feature_map.n_features)


def map_stays_below(
    feature_map: FeatureMap, Phi: np.ndarray, residual: np.ndarray, K: np.ndarray, error: float
) -> str | None:
    """K - Phi Phi' is semidefinite up to the defect, and its diagonal at most the residual."""
    n, squares = len(K), np.einsum("ij,ij->i", Phi, Phi)
    relative = feature_rounding(feature_map)
    noise = n * error + relative * float(squares.sum()) + feature_map.defect_norm(n, float(np.trace(K)))
    lowest = np.linalg.eigvalsh(K - Phi @ Phi.T)[0]
    if not lowest >= -noise:
        return (
            f"features makes K - Phi Phi' have the eigenvalue {lowest:.3g} on {n} rows (allowed: {-noise:.2g}); the "
            "residual is negative: the map exceeds the kernel"
        )
    left = np.maximum(K.diagonal() - squares, residual)
    text = (
        "residual is {due:.6g} where k(x, x) - |phi(x)|^2 is {value:.6g} (row {at[0]}); it is no upper bound, and must "
        "be one"
    )
    return difference(left, residual, relative * squares + error + feature_map.defect, text)


def tile_is_of_block(compiled: tuple[str, dict], X: np.ndarray, K: np.ndarray, allowed: float) -> str | None:
    """The ``compiled_tile`` that the kernel names returns the values K of ``block`` on the rows X."""
    text = (
        "differs by {off:.3g} from the values of compiled_tile (allowed: {allowed:.2g}), which take its place in "
        "products; where block is overridden, compiled_tile returns None"
    )
    return difference(tiles.block(*compiled, X, X), K, allowed, text)


def bound_holds(K: np.ndarray, bound: float | None, error: float) -> str | None:
    """No value of K is beyond ``value_bound``."""
    if bound is None:
        return None
    text = f"is {bound:.6g}, and block returns the value {{value:.6g}}, which is beyond it"
    return difference(K, 0.0, bound * (1 + 1e-9) + error, text)


def product_keeps_bound(product: np.ndarray, K: np.ndarray, U: np.ndarray, allowed: float) -> str | None:
    """Some rows of a product with U, against those of K U by the values K of ``block``; allowed: times sum |u_j|."""
    sizes = (len(U) + 8) * EPS * (np.abs(K) @ np.abs(U))
    text = (
        "is off by {off:.3g} from the product with the values of block, in column {at[1]}; its error_bound allows "
        "{allowed:.3g}"
    )
    return difference(product, K @ U, sizes + allowed * np.abs(U).sum(axis=0), text)
