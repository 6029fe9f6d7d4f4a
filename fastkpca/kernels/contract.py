"""The promises of a kernel, each once: pure functions of the values that a kernel, a map or a product returned.

A claim is checked on a few rows and answers with a ``Finding``. At run time each kernel from outside is checked on a
sample (``sampling``); ``fastkpca.testing`` checks all claims for authors, on many tiles. Both say what error a value
may have. ``Finding.excess`` says how far the values are beyond what is allowed: where it is positive, the claim is
false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.protocol import FeatureMap, Kernel, Summary
from ..base.rounding import EPS
from ..products.exact import ExactSummation
from ..rows.view import Rows

__all__ = [
    "Finding",
    "block_is_semidefinite",
    "block_is_symmetric",
    "compiled_tile_is_block",
    "diagonal_is_that_of_block",
    "exact_product_error",
    "features_stay_below_kernel",
    "map_products_are_of_features",
    "map_rounding",
    "outside_error_covers_the_rest",
    "product_keeps_its_bound",
    "residual_is_an_upper_bound",
    "shift_changes_nothing",
    "value_of_two_rows_alone",
]

EXACT = 1e-10
"""Error of a product of few terms, over the largest kernel value, that still counts as rounding."""


@dataclass(frozen=True)
class Finding:
    """What one check of a claim observed.

    Attributes
    ----------
    method : str
        What the claim is about.
    excess : float
        How far the observed values are beyond what is allowed; the claim holds where it is not positive. NaN counts as
        beyond.
    observed, needed : str
        For the error: "block *is not symmetric ...*; *kernels are symmetric ...*".
    """

    method: str
    excess: float
    observed: str
    needed: str

    @property
    def broken(self) -> bool:
        return not self.excess <= 0.0

    @property
    def text(self) -> str:
        return f"{self.method} {self.observed}; {self.needed}"


def block_is_symmetric(K: np.ndarray, error: float) -> Finding:
    """k(x, y) = k(y, x) in the tile K of rows with themselves; a value errs by at most ``error``."""
    gap = np.abs(K - K.T)
    i, j = np.unravel_index(int(gap.argmax()), gap.shape)
    observed = f"is not symmetric: k(x, y) = {K[i, j]:.17g}, k(y, x) = {K[j, i]:.17g} (rows {i} and {j})"
    needed = "kernels are symmetric, to rounding or to their entry_error: k(x, y) and k(y, x) are one number"
    return Finding("block", float(gap[i, j]) - 2 * error, observed, needed)


def value_of_two_rows_alone(part: np.ndarray, whole: np.ndarray, error: float) -> Finding:
    """The values of one tile are those of the same rows within another."""
    off = float(np.abs(part - whole).max(initial=0.0))
    observed = f"returns values that differ by {off:.3g} from those of the same rows in one tile"
    return Finding("block", off - 2 * error, observed, "a value depends on its two rows alone, in either order")


def diagonal_is_that_of_block(diagonal: np.ndarray, K: np.ndarray, error: float) -> Finding:
    off = np.abs(diagonal - K.diagonal())
    row = int(off.argmax())
    observed = (
        f"says k(x, x) = {diagonal[row]:.17g} where block says {K[row, row]:.17g} (row {row}; they differ by "
        f"{off[row]:.3g})"
    )
    return Finding("diagonal", float(off[row]) - 2 * error, observed, "the two must agree")


def block_is_semidefinite(K: np.ndarray, noise: float) -> Finding:
    """No eigenvalue of K is below -noise."""
    lowest = _negative_eigenvalue(K, noise)
    largest = float(np.abs(K).max(initial=0.0))
    observed = (
        f"has on {len(K)} rows values with the eigenvalue {lowest:.3g}, allowed is {-noise:.2g} (the largest value is "
        f"{largest:.3g})"
    )
    return Finding("block", -lowest, observed, "the kernel says positive_semidefinite = True, and is not")


def shift_changes_nothing(
    here: np.ndarray, away: np.ndarray, translation: str, shift: float, allowed: float
) -> Finding:
    """k(x + s, y + s) = k(x, y), or that of centred values; ``here`` and ``away`` are before and after the shift."""
    if translation == "centered":
        here, away = ((x - x.mean(axis=0)) - (x - x.mean(axis=0)).mean(axis=1)[:, None] for x in (here, away))
    off = float(np.abs(here - away).max(initial=0.0))
    observed = f"differs by {off:.3g} before and after a shift of both tiles, by {shift:.3g} in each column"
    needed = f"the kernel says translation = {translation!r}, and that does not hold"
    return Finding("block", off - allowed, observed, needed)


def compiled_tile_is_block(kernel: Kernel, rows: np.ndarray, K: np.ndarray, error: float) -> Finding | None:
    """The compiled tile that the kernel names has the values K of ``block`` on these rows; None: it names none."""
    compiled = kernel.compiled_tile()
    if compiled is None:
        return None
    columns = min(8, len(rows))
    product = ExactSummation(kernel, Rows(rows)).matmat(np.eye(len(rows), columns))
    off = float(np.abs(product - K[:, :columns]).max(initial=0.0))
    observed = f"{compiled!r} differs from block by {off:.3g}"
    return Finding("compiled_tile", off - 2 * error, observed, "compiled tiles and block must agree")


# Feature maps -------------------------------------------------------------------------------------------------------


def map_rounding(feature_map: FeatureMap) -> float:
    """Relative error of phi.phi by rounding."""
    return 2.1 * feature_map.rounding + 2 * EPS * max(1, feature_map.n_features)


def features_stay_below_kernel(feature_map: FeatureMap, Phi: np.ndarray, K: np.ndarray, error: float) -> Finding:
    """K - Phi Phi' is semidefinite up to the defect, on rows whose kernel values are K."""
    n, size = len(K), float(np.einsum("ij,ij->", Phi, Phi))
    noise = n * error + map_rounding(feature_map) * size + feature_map.defect_norm(n, float(np.trace(K)))
    lowest = _negative_eigenvalue(K - Phi @ Phi.T, noise)
    observed = f"makes K - Phi Phi' have the eigenvalue {lowest:.3g} on {n} rows (allowed: {-noise:.2g})"
    return Finding("features", -lowest, observed, "the residual is negative: the map exceeds the kernel")


def residual_is_an_upper_bound(
    feature_map: FeatureMap, Phi: np.ndarray, residual: np.ndarray, diagonal: np.ndarray, error: float
) -> Finding:
    """``residual`` is at least k(x, x) - |phi(x)|^2, but for rounding and the defect."""
    squares = np.einsum("ij,ij->i", Phi, Phi)
    left = diagonal - squares
    gap = left - residual - map_rounding(feature_map) * squares - error - feature_map.defect
    i = int(gap.argmax())
    observed = f"is {residual[i]:.6g} where k(x, x) - |phi(x)|^2 is {left[i]:.6g} (row {i})"
    return Finding("residual", float(gap[i]), observed, "it is no upper bound, and must be one")


def outside_error_covers_the_rest(
    feature_map: FeatureMap, outside: np.ndarray, inside: np.ndarray, K: np.ndarray, error: float
) -> Finding:
    """|k(x, y) - phi(x).phi(y)| <= sqrt(r(x) r(y)) + defect + outside_error(x), with the residual r.

    The rows x lie outside the region of the fit, the rows y are of the fit; K are their kernel values, off by at most
    ``error``. The square root is Cauchy-Schwarz for the semidefinite part of what the map leaves out.
    """
    Phi_x, Phi_y = feature_map.features(outside), feature_map.features(inside)
    residuals = feature_map.residual(outside, Phi_x), feature_map.residual(inside, Phi_y)
    r_x, r_y = (np.maximum(residual, 0.0) + feature_map.defect for residual in residuals)
    sizes = np.outer(np.linalg.norm(Phi_x, axis=1), np.linalg.norm(Phi_y, axis=1))
    stated = np.asarray(feature_map.outside_error(outside), dtype=np.float64)
    rest = np.sqrt(np.outer(r_x, r_y)) + feature_map.defect + map_rounding(feature_map) * sizes + error
    off = np.abs(K - Phi_x @ Phi_y.T)
    gap = off - rest - stated[:, None]
    i, j = np.unravel_index(int(gap.argmax()), gap.shape)
    observed = (
        f"is {stated[i]:.3g} where k(x, y) - phi(x).phi(y) is {off[i, j]:.3g}, of which residual and defect explain "
        f"{rest[i, j]:.3g}; |x| is {np.linalg.norm(outside[i]):.3g}, and y is a row of the fit"
    )
    needed = "it bounds the rest for every row outside of the region of the fit"
    return Finding("outside_error", float(gap[i, j]), observed, needed)


def map_products_are_of_features(
    feature_map: FeatureMap, S: np.ndarray, Phi: np.ndarray, U: np.ndarray, C: np.ndarray
) -> list[Finding]:
    """``accumulate`` is Phi' U, and ``apply`` is Phi C.

    Products may be with features that err by the defect, as those of transforms do: by f where 2 |f| |phi| is the
    defect of an entry of K. Of m rows, |F|_2 is then at most sqrt(m) defect / (2 |phi|).
    """
    squares = np.einsum("ij,ij->i", Phi, Phi)
    rounding = 16 * map_rounding(feature_map) * float(np.sqrt(squares.sum()))
    defect = feature_map.defect * np.sqrt(len(S)) / (2 * float(np.sqrt(squares.max(initial=0.0))) or np.inf)
    findings = []
    for method, product, expected, factor, text in (
        ("apply", feature_map.apply(S, C), Phi @ C, C, "apply and Phi C"),
        ("accumulate", feature_map.accumulate(S, U), Phi.T @ U, U, "accumulate and Phi' U"),
    ):
        off = float(np.abs(product - expected).max(initial=0.0))
        allowed = (rounding + defect) * (float(np.linalg.norm(factor)) + 1)
        observed = f"differs from the product with features by {off:.3g}"
        findings.append(Finding(method, off - allowed, observed, f"{text} must agree to rounding ({allowed:.2g})"))
    return findings


# Products -----------------------------------------------------------------------------------------------------------


def exact_product_error(kernel: Kernel, sides: Sequence[Summary], largest: float) -> float:
    """The largest ``error_bound`` that a product may state where no ``tol`` was given: its error is rounding alone.

    (1e-10 + 8 n u) times the largest kernel value, where n is the number of terms in a sum, and twice the kernel's
    ``entry_error``. ``largest`` is taken for the largest value where the kernel has no ``value_bound``.
    """
    terms = max(data.n_samples for data in sides)
    errors = [kernel.entry_error(data, np.dtype(np.float64)) or 0.0 for data in sides]
    values = [kernel.value_bound(data) for data in sides]
    size = max(largest if value is None else value for value in values)
    return (EXACT + 4 * terms * EPS) * size + 2 * max(errors)


def product_keeps_its_bound(
    product: np.ndarray,
    exact: np.ndarray,
    sizes: np.ndarray,
    U: np.ndarray,
    *,
    bound: float,
    error: float,
    first_row: int = 0,
) -> Finding:
    """Some rows of a product with U (m, k) keep the bound that the product states.

    ``exact`` are these rows of K U, the first of them being number ``first_row``; ``sizes`` those of |K| |U|; ``bound``
    is the product's ``error_bound``, and ``error`` that of a kernel value.
    """
    allowed = (bound + error) * np.abs(U).sum(axis=0) + (len(U) + 8) * EPS * sizes
    off = np.abs(product - exact)
    i, k = np.unravel_index(int((off - allowed).argmax()), off.shape)
    observed = (
        f"is off by {off[i, k]:.3g} in row {first_row + i}, column {k}, beyond its error_bound {bound:.3g}, which "
        f"allows {allowed[i, k]:.3g}"
    )
    return Finding("matmat", float((off - allowed)[i, k]), observed, "a product keeps the error_bound that it states")


def _negative_eigenvalue(A: np.ndarray, noise: float) -> float:
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
