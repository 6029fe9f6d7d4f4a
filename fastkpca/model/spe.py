"""Squared prediction error and T^2 of rows, and how far rounding and the map can put the former off.

What the components leave out of a row is, through features, the rest of phi(x) and what the map itself leaves out;
through training rows it is k~(x, x) - |z|^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel
from ..base.protocol import FeatureMap
from ..base.rounding import EPS, UNIT32, rounding_factor
from ..maps.passes import tile_rows
from ..rows.summary import summarize
from ..rows.view import Rows
from .projectors import FeatureProjector, SampleProjector
from .result import KPCAModel
from .rows import NewRows

__all__ = ["Statistics", "finite", "statistics", "t2_of"]


class Statistics(NamedTuple):
    """T^2 and SPE of some rows, and intervals (m, 2) around their SPE."""

    t2: np.ndarray
    spe: np.ndarray
    interval: np.ndarray


def t2_of(model: KPCAModel, z: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):  # said by whoever returns them
        return np.asarray(np.sum((z / np.sqrt(model.latent)) ** 2, axis=1))


def finite(values: np.ndarray, name: str, dtype: Any = np.float64) -> np.ndarray:
    """These in the type that is returned; ValueError names the first row where that is not a finite number."""
    with np.errstate(over="ignore"):
        found = values.astype(dtype, copy=False)
    if not np.isfinite(found).all():
        row = int(np.argmin(np.isfinite(found)))
        raise ValueError(
            f"{name} is not finite in {found.dtype} (first at row {row}): kernel values are too large there; scale X "
            "as the training rows were, or leave that row out"
        )
    return found


def statistics(
    model: KPCAModel,
    given: NewRows,
    diagonal: np.ndarray | None,
    n_threads: int,
    progress: parallel.Progress | None,
    bounds: bool = False,
) -> Statistics:
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        if isinstance(model.projector, FeatureProjector):
            found = _by_features(model, model.projector, given, diagonal, n_threads, progress)
        else:
            found = _by_rows(model, model.projector, given, diagonal, n_threads, progress, bounds)
    finite(found.spe, "SPE")
    return found


@dataclass
class _Parts:
    """What the squared prediction error of rows through features is made of, (m,) each.

    Attributes
    ----------
    within : ndarray
        |r|^2 of what is left in the space of the features.
    outside, surely : ndarray
        Upper and lower bound on what the map leaves out of k(x, x).
    size : ndarray
        |phi(x)| and that of the training rows: what rounding is relative to.
    away : ndarray
        ``FeatureMap.outside_error``.
    """

    within: np.ndarray
    outside: np.ndarray
    surely: np.ndarray
    size: np.ndarray
    away: np.ndarray


def _by_features(
    model: KPCAModel,
    projector: FeatureProjector,
    given: NewRows,
    diagonal: np.ndarray | None,
    n_threads: int,
    progress: parallel.Progress | None,
) -> Statistics:
    feature_map, mean = projector.map, projector.mean
    n, D = given.rows.n_samples, feature_map.n_features
    length = float(np.sqrt(mean @ mean))
    # the mean errs by rounding of the features that it is the mean of, which may be much larger than it is
    features = float(np.sqrt(length**2 + max(model.total_variance_bounds[1], 0.0)))
    delta = feature_map.rounding + rounding_factor(max(D, model.n_samples)) * EPS
    parts = _Parts(*np.empty((5, n)))
    # a map with a transform of its own has too many features to form them: cancellation, and no lower end for e
    transform = feature_map.tile_rows is not None
    if transform:
        products = projector.products(given.kernel, given.rows, n_threads, progress)
        z, along = products[:, :-1] - projector.of_the_mean()[0], products[:, -1]
    else:
        z, along = np.empty((n, projector.axes.shape[1])), np.empty(0)
    step = tile_rows(feature_map) if transform else parallel.tile_rows(D)

    def task(i: int) -> None:
        part = slice(i * step, min(n, (i + 1) * step))
        X = given.rows.tile(part.start, part.stop)
        k = given.kernel.diagonal(X) if diagonal is None else diagonal[part]
        if transform:
            squares = _transformed(feature_map, X, k, z[part], along[part], length, parts, part)
        else:
            squares = _formed(projector, X, k, delta, z, parts, part)
        parts.size[part] = np.sqrt(squares) + features
        parts.away[part] = feature_map.outside_error(X)

    for _ in parallel.run(task, -(-n // step), n_threads=n_threads, progress=progress, stage="spe"):
        pass
    error = delta * parts.size
    if transform:
        slack = (4.0 * delta + 8.0 * feature_map.transform_eps) * parts.size**2
    else:  # |r|^2 of an r that is off by this much
        slack = 4.0 * np.sqrt(parts.within) * error + 4.0 * error**2
    slack += 4.0 * feature_map.defect + 2.0 * parts.away
    train = np.sqrt(model.mean_residual)
    high = parts.within + (np.sqrt(parts.outside) + train) ** 2 + slack
    low = np.maximum(parts.within + np.maximum(np.sqrt(parts.surely) - train, 0.0) ** 2 - slack, 0.0)
    return Statistics(t2_of(model, z), parts.within + parts.outside, np.stack([low, high], axis=1))


def _formed(
    projector: FeatureProjector,
    X: np.ndarray,
    k: np.ndarray,
    delta: float,
    z: np.ndarray,
    parts: _Parts,
    part: slice,
) -> np.ndarray:
    """Scores and parts of a tile whose features are formed; returns |phi(x)|^2."""
    Phi = projector.map.features(X)
    parts.outside[part] = projector.map.residual(X, Phi)
    squares = np.einsum("ij,ij->i", Phi, Phi)
    surely = k - squares * (1.0 + 2.0 * delta) - 8.0 * EPS * k
    parts.surely[part] = np.clip(surely, 0.0, parts.outside[part])
    Phi = Phi - projector.mean
    z[part] = Phi @ projector.axes
    Phi -= z[part] @ projector.axes.T
    parts.within[part] = np.einsum("ij,ij->i", Phi, Phi)
    return squares


def _transformed(
    feature_map: FeatureMap,
    X: np.ndarray,
    k: np.ndarray,
    z: np.ndarray,
    along: np.ndarray,
    length: float,
    parts: _Parts,
    part: slice,
) -> np.ndarray:
    """Parts of a tile, from its scores z and its products ``along`` the mean; returns |phi(x)|^2."""
    parts.outside[part] = np.minimum(feature_map.residual(X), k)
    squares = k - parts.outside[part]
    centred = squares - 2.0 * along + length**2
    parts.within[part] = np.maximum(centred - np.einsum("ij,ij->i", z, z), 0.0)
    parts.surely[part] = 0.0
    return squares


def _by_rows(
    model: KPCAModel,
    projector: SampleProjector,
    given: NewRows,
    diagonal: np.ndarray | None,
    n_threads: int,
    progress: parallel.Progress | None,
    bounds: bool,
) -> Statistics:
    kernel, n = given.kernel, given.rows.n_samples
    constant, grand = projector.of_the_mean()
    z, centred, diagonals = np.empty((n, len(constant))), np.empty(n), np.empty(n)
    for part, X, products in projector.tiles_of_products(kernel, given.rows, n_threads):
        z[part] = products[:, :-1] - constant
        diagonals[part] = kernel.diagonal(X) if diagonal is None else diagonal[part]
        centred[part] = diagonals[part] - 2.0 * products[:, -1] + grand
        if progress is not None:
            progress("spe", part.stop, n)
    inside = np.einsum("ij,ij->i", z, z)
    spe = centred - inside
    if kernel.positive_semidefinite:
        spe = np.maximum(spe, 0.0)
    interval = np.stack([spe, spe], axis=1)
    if bounds:
        whole, within = _rounding_of_rows(model, projector, given, z, diagonals)
        interval = np.stack([spe - whole - within, spe + whole + within], axis=1)
        if kernel.positive_semidefinite:  # no larger than without any component, and no smaller than nothing
            interval[:, 1] = np.minimum(interval[:, 1], np.maximum(centred, 0.0) + whole)
            interval = np.maximum(interval, 0.0)
    return Statistics(t2_of(model, z), spe, interval)


def _rounding_of_rows(
    model: KPCAModel, projector: SampleProjector, given: NewRows, z: np.ndarray, diagonals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What rounding, and the components' own error, can do to k~(x, x) and to |z|^2 by the training rows: (m,) each."""
    coeff, N = projector.expansion()[:, :-1], len(projector.X)
    # with weights, the eigenvectors are those of W^(1/2) Kc W^(1/2): coeff = W^(1/2) roots
    roots = coeff if projector.weights is None else _over_roots(coeff, projector.weights)
    entry, largest = _error_of_entries(model, projector, given, diagonals)
    # column means by an approximate product err by what that does; it is bounded for the weighted matrix as a whole
    product = float(model.info.get("product_error", 0.0)) * N / model.count
    reach = np.abs(coeff).sum(axis=0)
    reach_of_means = reach
    if projector.weights is not None:
        reach_of_means = np.sqrt(model.count * np.einsum("ij,ij->j", roots, roots))
    whole = 4.0 * (entry + product) + 4.0 * EPS * np.abs(diagonals)
    off_z = np.multiply.outer(entry, reach) + product * reach_of_means
    part = 2.0 * np.einsum("ij,ij->i", np.abs(z), off_z) + np.einsum("ij,ij->i", off_z, off_z)
    # components are orthonormal as far as V' Kc V is diagonal, which the lower ends of the intervals allow for,
    off = float(np.max(model.eigenvalues - model.eigenvalue_bounds[:, 0], initial=0.0)) / float(model.eigenvalues[-1])
    if projector.coeff.dtype == np.float32:
        # and as far as coefficients A + E are those that were found: (A + E)' Kc (A + E) - I, |Kc A|^2 <= top
        square = float(np.einsum("ij,ij->", roots, roots)) * (1.02 * UNIT32) ** 2
        norm = top = float(model.eigenvalue_bounds[0, 1])
        if not given.kernel.positive_semidefinite:
            norm = model.count * float(largest.max())
            top = norm**2 / float(model.eigenvalues[-1])
        off += 2.0 * np.sqrt(top * (1.0 + off) * square) + norm * square
    inside = np.einsum("ij,ij->i", z, z)
    return whole, part + inside * (off / (1.0 - off) if off < 1.0 else np.inf)


def _over_roots(coeff: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coefficients over the square roots of the weights; rows of weight zero have none."""
    return np.divide(coeff, np.sqrt(weights)[:, None], out=np.zeros_like(coeff), where=weights[:, None] > 0)


def _error_of_entries(
    model: KPCAModel, projector: SampleProjector, given: NewRows, diagonals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(how far a kernel value of each new row, alone or in a sum, can be off; the largest that there can be)."""
    error, largest = 0.0, np.abs(diagonals)
    of_means = float(np.abs(projector.column_means).max())
    if not given.kernel.by_number:
        _, data = summarize(given.rows.weighted(None), shift=True, shift_by=model.shift, rng=np.random.default_rng(0))
        _, train = summarize(Rows(projector.X), shift=False, rng=np.random.default_rng(0))
        larger = max((data, train), key=lambda x: x.radius)
        error = given.kernel.entry_error(larger, np.dtype(np.float64)) or 0.0
        largest = np.sqrt(largest * float(np.abs(given.kernel.diagonal(projector.X)).max()))
    else:
        largest = largest + of_means
    largest = np.maximum(largest, of_means)
    return error + EPS * rounding_factor(len(projector.X)) * largest, largest
