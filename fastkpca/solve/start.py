"""Where block Krylov starts: columns of K, or leading vectors of a map of a few pivots, which bounds the rest too."""

from __future__ import annotations

import numpy as np

from ..base.protocol import Kernel, Summary
from ..maps.passes import accumulate, feature_moments
from ..maps.pivots import pivot_map
from ..maps.uncentred import about
from ..products.exact import ExactSummation
from ..products.weighted import Coordinates
from ..rows.view import Rows
from .beyond import FeatureInfo
from .costs import default_block_size
from .moments import entry_defect, principal_axes

__all__ = ["column_start", "pivot_start"]


def column_start(kernel: Kernel, rows: Rows, coordinates: Coordinates, columns: int, n_threads: int) -> np.ndarray:
    """So many columns of K, in the solver's coordinates: a first block that is a pass ahead of a random one.

    For kernel values that are kept, where a pass costs less than choosing pivots does.
    """
    chosen = np.random.default_rng(0).choice(rows.n_samples, columns, replace=False)
    some = ExactSummation(kernel, rows, Rows(rows.take(chosen)), n_threads=n_threads)
    start = coordinates.block(some.matmat(np.eye(columns)))
    return np.asarray(start - start.mean(axis=0))


def pivot_start(
    kernel: Kernel,
    rows: Rows,
    data: Summary,
    coordinates: Coordinates,
    wanted: int,
    n_pivots: int,
    n_threads: int,
) -> tuple[np.ndarray | None, FeatureInfo | None]:
    """A first block (n, k) for the ``wanted`` eigenvalues of a semidefinite kernel, and a bound on the others.

    Both in the solver's coordinates. Nothing where there is no pivot to take: too few rows, or a kernel whose values
    are all zero.
    """
    n = rows.n_samples
    pivots = pivot_map(
        kernel,
        data.sample,
        tol=1e-12,
        max_features=n_pivots,
        rng=np.random.default_rng(0),
        n_samples=n,
        entry_error=kernel.entry_error(data, np.dtype(np.float64)),
        n_threads=n_threads,
    )
    if pivots.n_features == 0:
        return None, None
    moments = about(feature_moments(pivots, rows, n_threads=n_threads), center=coordinates.center)
    eigenvalues, axes = principal_axes(moments, min(default_block_size(n, wanted), pivots.n_features))
    axes = axes[:, eigenvalues > 1e-12 * eigenvalues[0]]
    # Phi W = K_XP (L^-T W): one small solve instead of one a row. It loses cond(L) u, which a start can afford
    weights = pivots.landmark_weights(axes)
    start = ExactSummation(kernel, rows, Rows(pivots.pivots), n_threads=n_threads).matmat(weights)
    start = coordinates.block(start)
    start -= start.mean(axis=0)
    start /= np.linalg.norm(start, axis=0)

    def project(V: np.ndarray) -> np.ndarray:
        return accumulate(pivots, rows, coordinates.coefficients(V - V.mean(axis=0)), n_threads).T

    second = moments.dense()
    assert second is not None  # a pivot map's moments are
    return start, FeatureInfo(second, project, moments.residual_trace, entry_defect(moments) * (moments.count / n))
