"""What users declare of a kernel, held against its values on some rows: at run time by ``guard``, and for authors by
``fastkpca.testing``. Each answers with the fault, or None."""

from __future__ import annotations

import numpy as np

from ..base.protocol import Kernel
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


def compiled_values(kernel: Kernel, X: np.ndarray, columns: int) -> np.ndarray:
    """The values of the rows X with the first few of them, from the compiled tile that the kernel names."""
    return ExactSummation(kernel, Rows(X)).matmat(np.eye(len(X), columns))


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
