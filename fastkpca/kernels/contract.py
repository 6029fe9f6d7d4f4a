"""Checks of a kernel's declared properties against its values on some rows: at run time by ``guard``, and for authors
by ``fastkpca.testing``. Each returns the fault, or None."""

from __future__ import annotations

import numpy as np

from ..base.protocol import FeatureMap, Kernel
from ..base.rounding import EPS
from ..products.exact import ExactSummation
from ..rows.view import Rows


def block_is_symmetric(K: np.ndarray, error: float) -> str | None:
    """k(x, y) = k(y, x) in the tile K of rows with themselves; a value errs by at most ``error``."""
    gap = np.abs(K - K.T)
    i, j = np.unravel_index(int(gap.argmax()), gap.shape)
    if gap[i, j] <= 2 * error:
        return None
    return (
        f"is not symmetric: k(x, y) = {K[i, j]:.17g}, k(y, x) = {K[j, i]:.17g} (rows {i} and {j}); kernels are "
        "symmetric, to rounding or to their entry_error: k(x, y) and k(y, x) are one number"
    )


def block_is_semidefinite(K: np.ndarray, noise: float) -> str | None:
    """No eigenvalue of K is below -noise."""
    lowest = negative_eigenvalue(K, noise)
    if lowest == 0.0:
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
    off = float(np.abs(here - away).max(initial=0.0))
    if off <= allowed:
        return None
    return (
        f"differs by {off:.3g} before and after a shift of both tiles, by {shift:.3g} in each column; the kernel says "
        f"translation = {translation!r}, and that does not hold"
    )


def diagonal_is_of_block(values: np.ndarray, from_block: np.ndarray, allowed: float) -> str | None:
    """k(x, x) of some rows as ``diagonal`` and as ``block`` return it."""
    off = np.abs(values - from_block)
    i = int(off.argmax())
    if off[i] <= allowed:
        return None
    return (
        f"contradicts block: k(x, x) = {values[i]:.17g}, and block returns {from_block[i]:.17g} for the same row, "
        f"which differs by {off[i]:.3g} (allowed: {allowed:.2g}); remove diagonal, or make it return what block does"
    )


def feature_rounding(feature_map: FeatureMap) -> float:
    """Relative error of phi.phi by rounding."""
    return 2.1 * feature_map.rounding + 2 * EPS * max(1, feature_map.n_features)


def map_stays_below(feature_map: FeatureMap, Phi: np.ndarray, residual: np.ndarray, K: np.ndarray, error: float) -> str:
    """K - Phi Phi' is semidefinite up to the defect, and its diagonal at most the residual; what is wrong, or ""."""
    n, squares = len(K), np.einsum("ij,ij->i", Phi, Phi)
    relative = feature_rounding(feature_map)
    noise = n * error + relative * float(squares.sum()) + feature_map.defect_norm(n, float(np.trace(K)))
    lowest = negative_eigenvalue(K - Phi @ Phi.T, noise)
    if lowest != 0.0:
        return (
            f"features makes K - Phi Phi' have the eigenvalue {lowest:.3g} on {n} rows (allowed: {-noise:.2g}); the "
            "residual is negative: the map exceeds the kernel"
        )
    left = K.diagonal() - squares
    gap = left - residual - relative * squares - error - feature_map.defect
    i = int(gap.argmax())
    if gap[i] <= 0.0:
        return ""
    return (
        f"residual is {residual[i]:.6g} where k(x, x) - |phi(x)|^2 is {left[i]:.6g} (row {i}); it is no upper bound, "
        "and must be one"
    )


def tile_is_of_block(kernel: Kernel, X: np.ndarray, K: np.ndarray, allowed: float) -> str | None:
    """The compiled tile that the kernel names returns the values K of ``block`` on the rows X."""
    few = K[:, : min(len(K), 8)]
    compiled = ExactSummation(kernel, Rows(X)).matmat(np.eye(*few.shape))
    off = float(np.abs(compiled - few).max(initial=0.0))
    if off <= allowed:
        return None
    return (
        f"differs by {off:.3g} from the values of compiled_tile (allowed: {allowed:.2g}), which take its place in "
        "products; where block is overridden, compiled_tile returns None"
    )


def bound_holds(K: np.ndarray, bound: float | None, error: float) -> str | None:
    """No value of K is beyond ``value_bound``."""
    largest = float(np.abs(K).max(initial=0.0))
    if bound is None or largest <= bound * (1 + 1e-9) + error:
        return None
    return f"is {bound:.6g}, and block returns the value {largest:.6g}, which is beyond it"


def product_keeps_bound(product: np.ndarray, K: np.ndarray, U: np.ndarray, allowed: float) -> str | None:
    """Some rows of a product with U, against those of K U by the values K of ``block``; allowed: times sum |u_j|."""
    sizes = (len(U) + 8) * EPS * (np.abs(K) @ np.abs(U))
    off = np.abs(product - K @ U)
    gap = off - sizes - allowed * np.abs(U).sum(axis=0)
    i, k = np.unravel_index(int(gap.argmax()), gap.shape)
    if gap[i, k] <= 0.0:
        return None
    return (
        f"is off by {off[i, k]:.3g} from the product with the values of block, in column {k}; its error_bound allows "
        f"{off[i, k] - gap[i, k]:.3g}"
    )


def negative_eigenvalue(A: np.ndarray, noise: float) -> float:
    """The lowest eigenvalue of a symmetric matrix where that is below -noise, else 0."""
    A = (A + A.T) / 2
    shifted = A.copy()
    shifted.flat[:: len(A) + 1] += noise
    try:  # a tenth of the time of the eigenvalues
        np.linalg.cholesky(shifted)
        return 0.0
    except np.linalg.LinAlgError:
        lowest = float(np.linalg.eigvalsh(A)[0])
        return lowest if lowest < -noise else 0.0
