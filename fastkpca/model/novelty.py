"""Is a row like those the model was made of? Squared prediction error, Hotelling's T^2, and control limits for both.

A row's image in feature space splits into its part in the kept components, whose size T^2 measures component by
component, and what they leave out, whose squared length is the SPE (also called Q). The two see different faults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from scipy import stats

from ..base import parallel
from ..base.checks import check_choice, check_flag
from ..base.rounding import EPS, UNIT32, rounding_factor
from ..kernels import guarded
from ..maps.passes import tile_rows
from ..rows.summary import summarize
from ..rows.view import Rows
from .projectors import FeatureProjector, SampleProjector
from .result import KPCAModel, check_model
from .rows import NewRows, new_rows

__all__ = ["Limits", "kpca_limits", "kpca_spe", "kpca_t2"]

CALIBRATION_ROWS = 4096
"""Rows that limits are made of where the training rows of a model are read: each costs N kernel values."""


@dataclass(frozen=True)
class Limits:
    """Control limits of T^2 and SPE.

    Attributes
    ----------
    t2, spe : float
        A row is beyond the limit where its value is larger.
    confidence : float
        Of each limit by itself: rows like those of the calibration stay below it with about this probability.
    t2_method, spe_method : str
    n_calibration : int
        Number of rows that the limits were made of; 0 where none was needed.
    """

    t2: float
    spe: float
    confidence: float
    t2_method: str
    spe_method: str
    n_calibration: int

    def exceeded(self, t2: Any = None, spe: Any = None) -> np.ndarray:
        """True for rows beyond a limit, shape (m,): of either statistic where both are given.

        Rows like the training rows are flagged with probability 1 - confidence by one statistic, and with at most
        2 (1 - confidence) by both.
        """
        if t2 is None and spe is None:
            raise TypeError("give t2=kpca_t2(model, X), spe=kpca_spe(model, X), or both")
        found = [np.asarray(values) > limit for values, limit in ((t2, self.t2), (spe, self.spe)) if values is not None]
        return np.asarray(found[0] if len(found) == 1 else np.logical_or(*found))


def kpca_t2(
    model: KPCAModel,
    X: Any,
    *,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> np.ndarray:
    """Hotelling's T^2 of rows over the components of a model: the sum of score^2 / variance.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d)
        As for ``kpca_project``.
    n_threads : int, optional
    progress : bool or callable

    Returns
    -------
    ndarray (m,)
        In units of standard deviations, squared. For the training rows, ``model.tsquared``.

    Raises
    ------
    ValueError, TypeError
        As ``kpca_project``; or T^2 of a row is beyond the largest number.
    """
    given = new_rows(model, X, purpose="kpca_t2")
    z = np.empty((given.rows.n_samples, model.n_components))
    # what overflows is refused at the end
    quiet = np.errstate(over="ignore", invalid="ignore")
    with parallel.reporter(progress) as report, parallel.blas_threads(), quiet:
        model.projector.project(given.kernel, given.rows, z, parallel.threads_for(given.kernel, n_threads), report)
    return _finite(_t2(model, z), "T^2", given.dtype)


@overload
def kpca_spe(
    model: KPCAModel,
    X: Any,
    *,
    diagonal: Any = None,
    bounds: Literal[False] = False,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> np.ndarray: ...
@overload
def kpca_spe(
    model: KPCAModel,
    X: Any,
    *,
    diagonal: Any = None,
    bounds: Literal[True],
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> tuple[np.ndarray, np.ndarray]: ...
def kpca_spe(
    model: KPCAModel,
    X: Any,
    *,
    diagonal: Any = None,
    bounds: bool = False,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Any:
    """Squared prediction error: the squared distance of a row's image from the subspace of the components.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d)
        As for ``kpca_project``.
    diagonal : array_like (m,), optional
        k(x, x) of each row: for a precomputed kernel, whose matrix does not hold it.
    bounds : bool
        Also return an interval around each value.
    n_threads : int, optional
    progress : bool or callable

    Returns
    -------
    spe : ndarray (m,)
        k~(x, x) - |z|^2, with k~ the kernel centred in feature space and z the scores. Never negative, but for kernels
        that are not positive semidefinite, where it is not a squared distance.
    interval : ndarray (m, 2), float64
        With ``bounds=True``: what SPE in the kernel's own feature space can be, about the subspace that the model's
        components span (``angle_bounds`` say how near that is to the true one), rounding included; for a kernel without
        ``entry_error``, of the values that it returns.

    Raises
    ------
    ValueError, TypeError
        As ``kpca_project``; or SPE of a row is beyond the largest number.

    Notes
    -----
    A model that holds its training rows knows k~(x, x) = k(x, x) - 2 mean_i k(x, x_i) + mean_ij k(x_i, x_j); with
    ``sample_weight`` these means are weighted.

    A model on a feature map phi has |phi(x) - mean - W z|^2, formed without cancellation, and what the map leaves out
    of x, e = k(x, x) - |phi(x)|^2, which is at right angles to all components: their sum is returned. Of what the map
    leaves out of the training rows only the (weighted) mean e' is known (``model.mean_residual``); it is the squared
    length of their mean at most, and by the triangle inequality the true value has (sqrt(e) -+ sqrt(e'))^2 in place of
    e.

    Jackson & Mudholkar, Control procedures for residuals associated with principal component analysis, Technometrics
    1979; Lee, Yoo, Choi, Vanrolleghem & Lee, Nonlinear process monitoring using kernel principal component analysis,
    Chemical Engineering Science 2004, for kernel PCA.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> model = fk.kpca(X, "gaussian", 10, sigma=2.0)
    >>> near, far = fk.kpca_spe(model, [[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]])
    >>> bool(near < far)
    True
    """
    bounds = check_flag(bounds, "bounds")
    given = new_rows(model, X, purpose="kpca_spe")
    threads = parallel.threads_for(given.kernel, n_threads)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        found = _statistics(model, given, _diagonal(given, diagonal), threads, report, bounds)
    spe = _finite(found.spe, "SPE", given.dtype)
    return (spe, found.interval) if bounds else spe


def kpca_limits(
    model: KPCAModel,
    X: Any = None,
    *,
    confidence: float = 0.99,
    t2: str = "F",
    spe: str = "box",
    diagonal: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Limits:
    """Control limits for ``kpca_t2`` and ``kpca_spe``.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d), optional
        Rows from normal operation. Best rows that the model has not seen: those that it was made of lie nearer to its
        components than new ones do, and their limits are then too narrow. By default, for models that hold their
        training rows, at most 4096 of these.
    confidence : float
        Between 0 and 1: share of normal rows below each limit.
    t2 : {"F", "chi2", "empirical"}
        "F": c (N^2 - 1) / (N (N - c)) F(c, N - c), for a new row of normally distributed scores whose variances are
        estimated from N rows; "chi2": chi^2(c), its limit for large N; "empirical": from the rows X.
    spe : {"box", "empirical"}
        "box": g chi^2(h) with the mean g h and the variance 2 g^2 h of the SPE of X; "empirical": from the rows X.
    diagonal : array_like (m,), optional
        As for ``kpca_spe``.
    n_threads : int, optional
    progress : bool or callable

    Returns
    -------
    Limits

    Raises
    ------
    ValueError
        Rows are needed and the model holds none; too few of them for an empirical limit at this confidence.

    Notes
    -----
    The scores of kernel PCA need not be normally distributed, least of all for a small sigma; then take "empirical". It
    is the order statistic number ceil((m + 1) confidence) of the m rows: a new row of the same distribution, of which
    neither model nor limit has seen anything, exceeds it with probability at most 1 - confidence, whatever the
    distribution is (Vovk, Gammerman & Shafer 2005).

    F: Tracy, Young & Mason, Multivariate control charts for individual observations, Journal of Quality Technology
    1992. Box: Box, Some theorems on quadratic forms, Annals of Mathematical Statistics 1954; Nomikos & MacGregor,
    Multivariate SPC charts for monitoring batch processes, Technometrics 1995. The limit of Jackson & Mudholkar needs
    the eigenvalues that were not computed, and is left out for that reason.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> rng = np.random.default_rng(0)
    >>> model = fk.kpca(rng.standard_normal((500, 3)), "gaussian", 10, sigma=2.0)
    >>> limits = fk.kpca_limits(model, rng.standard_normal((300, 3)), confidence=0.95, t2="empirical")
    >>> X = [[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]]
    >>> limits.exceeded(fk.kpca_t2(model, X), fk.kpca_spe(model, X)).tolist()
    [False, True]
    """
    check_model(model)
    check_choice(t2, "t2", ("F", "chi2", "empirical"))
    check_choice(spe, "spe", ("box", "empirical"))
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float, np.number)) or not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence!r}; a number between 0 and 1 is needed, as in 0.99")
    confidence = float(confidence)
    given = _training(model) if X is None else new_rows(model, X, purpose="kpca_limits")
    threads = parallel.threads_for(given.kernel, n_threads)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        found = _statistics(model, given, _diagonal(given, diagonal), threads, report)
    weights = given.rows.tile_weights(0, len(found.spe))
    weights = np.ones(len(found.spe)) if weights is None else weights
    if t2 == "empirical":
        t2_limit = _order_statistic(_finite(found.t2, "T^2"), weights, confidence, "t2")
    elif t2 == "F":
        t2_limit = _f_limit(model, confidence)
    else:
        t2_limit = float(stats.chi2.ppf(confidence, model.n_components))
    if spe == "empirical":
        spe_limit = _order_statistic(found.spe, weights, confidence, "spe")
    else:
        spe_limit = _box(found.spe, weights, confidence)
    return Limits(t2_limit, spe_limit, confidence, t2, spe, len(found.spe))


# ----------------------------------------------------------------------------------------------------------------------


class _Found(NamedTuple):
    t2: np.ndarray
    spe: np.ndarray
    interval: np.ndarray


def _training(model: KPCAModel) -> NewRows:
    """Rows that the model was made of, where it holds them."""
    if not isinstance(model.projector, SampleProjector):
        raise ValueError(
            "this model is a feature map and holds no training rows, and limits are made of rows; give "
            "kpca_limits(model, X) rows from normal operation, best such that the model has not seen"
        )
    if model.kernel.by_number:
        raise ValueError(
            "this model was made of a precomputed matrix, which it does not hold; give kpca_limits(model, K_new, "
            "diagonal=...) the (m, N) matrix between rows from normal operation and the training rows"
        )
    model.projector.shares()  # says so where the weights are not known
    rows, _ = Rows(model.projector.X, weights=model.projector.weights).present()
    if len(rows) > CALIBRATION_ROWS:
        few = np.sort(np.random.default_rng(0).choice(len(rows), CALIBRATION_ROWS, replace=False))
        rows = Rows(rows.source[few], weights=None if rows.weights is None else rows.weights[few])
    return NewRows(guarded(model.kernel), rows, np.dtype(np.float64))


def _diagonal(given: NewRows, diagonal: Any) -> np.ndarray | None:
    """k(x, x) as the caller gives it; None: to be asked of the kernel."""
    if diagonal is None:
        if given.kernel.by_number:
            raise ValueError(
                "SPE needs k(x, x) of each new row, and a precomputed matrix between new and training rows does not "
                "hold it; give diagonal=, one value for each row"
            )
        return None
    values = np.asarray(diagonal, dtype=np.float64)
    if values.shape != (given.rows.n_samples,):
        raise ValueError(f"diagonal has shape {values.shape}; one value for each of {given.rows.n_samples} rows")
    if not np.isfinite(values).all():
        raise ValueError(f"diagonal is not finite (first at row {int(np.argmin(np.isfinite(values)))})")
    return values


def _t2(model: KPCAModel, z: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):  # said by whoever returns them
        return np.asarray(np.sum((z / np.sqrt(model.latent)) ** 2, axis=1))


def _finite(values: np.ndarray, name: str, dtype: Any = np.float64) -> np.ndarray:
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


def _statistics(
    model: KPCAModel,
    given: NewRows,
    diagonal: np.ndarray | None,
    n_threads: int,
    progress: parallel.Progress | None,
    bounds: bool = False,
) -> _Found:
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        if isinstance(model.projector, FeatureProjector):
            found = _by_features(model, model.projector, given, diagonal, n_threads, progress)
        else:
            found = _by_rows(model, model.projector, given, diagonal, n_threads, progress, bounds)
    _finite(found.spe, "SPE")
    return found


def _by_features(
    model: KPCAModel,
    projector: FeatureProjector,
    given: NewRows,
    diagonal: np.ndarray | None,
    n_threads: int,
    progress: parallel.Progress | None,
) -> _Found:
    feature_map, axes, mean = projector.map, projector.axes, projector.mean
    rows, n, D = given.rows, given.rows.n_samples, feature_map.n_features
    z = np.empty((n, axes.shape[1]))
    within, outside, surely, size = np.empty((4, n))
    away = np.empty(n)
    length = float(np.sqrt(mean @ mean))
    # the mean errs by rounding of the features that it is the mean of, which may be much larger than it is
    features = float(np.sqrt(length**2 + max(model.total_variance_bounds[1], 0.0)))
    delta = feature_map.rounding + rounding_factor(max(D, model.n_samples)) * EPS
    # a map with a transform of its own has too many features to form them: cancellation, and no lower end for e
    transform = feature_map.tile_rows is not None
    step = tile_rows(feature_map) if transform else parallel.tile_rows(D)
    if transform:
        products = projector.products(given.kernel, rows, n_threads, progress)
        z, along = products[:, :-1] - projector.of_the_mean()[0], products[:, -1]

    def task(i: int) -> None:
        part = slice(i * step, min(n, (i + 1) * step))
        X = rows.tile(part.start, part.stop)
        k = given.kernel.diagonal(X) if diagonal is None else diagonal[part]
        if transform:
            outside[part] = np.minimum(feature_map.residual(X), k)
            squares = k - outside[part]
            centred = squares - 2.0 * along[part] + length**2
            within[part] = np.maximum(centred - np.einsum("ij,ij->i", z[part], z[part]), 0.0)
            surely[part] = 0.0
        else:
            Phi = feature_map.features(X)
            outside[part] = feature_map.residual(X, Phi)
            squares = np.einsum("ij,ij->i", Phi, Phi)
            surely[part] = np.clip(k - squares * (1.0 + 2.0 * delta) - 8.0 * EPS * k, 0.0, outside[part])
            Phi = Phi - mean
            z[part] = Phi @ axes
            Phi -= z[part] @ axes.T
            within[part] = np.einsum("ij,ij->i", Phi, Phi)
        size[part] = np.sqrt(squares) + features
        away[part] = feature_map.outside_error(X)

    for _ in parallel.run(task, -(-n // step), n_threads=n_threads, progress=progress, stage="spe"):
        pass
    if transform:
        slack = (4.0 * delta + 8.0 * feature_map.transform_eps) * size**2
    else:  # |r|^2 of an r that is off by this much
        slack = 4.0 * np.sqrt(within) * (delta * size) + 4.0 * (delta * size) ** 2
    slack += 4.0 * feature_map.defect + 2.0 * away
    train = np.sqrt(model.mean_residual)
    high = within + (np.sqrt(outside) + train) ** 2 + slack
    low = np.maximum(within + np.maximum(np.sqrt(surely) - train, 0.0) ** 2 - slack, 0.0)
    return _Found(_t2(model, z), within + outside, np.stack([low, high], axis=1))


def _by_rows(
    model: KPCAModel,
    projector: SampleProjector,
    given: NewRows,
    diagonal: np.ndarray | None,
    n_threads: int,
    progress: parallel.Progress | None,
    bounds: bool,
) -> _Found:
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
    return _Found(_t2(model, z), spe, interval)


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


def _f_limit(model: KPCAModel, confidence: float) -> float:
    """Of T^2 of a new row about mean and variances that are estimates."""
    n, c = model.count, model.n_components
    limit = np.inf
    if n > c:
        with np.errstate(over="ignore"):
            limit = c * (n + 1.0) * (n - 1.0) / (n * (n - c)) * float(stats.f.ppf(confidence, c, n - c))
    if not np.isfinite(limit):
        counted = f"{model.n_samples} rows" if model.weight_sum is None else f"the sum of the weights is {n:.6g}"
        raise ValueError(
            f"t2='F' needs more rows than components ({counted}, {c} components); give t2='chi2', fit fewer "
            "components, or scale the weights so that they count rows"
        )
    return float(limit)


def _order_statistic(values: np.ndarray, weights: np.ndarray, confidence: float, name: str) -> float:
    """The value that a new one of the same distribution exceeds with probability at most 1 - confidence."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])  # rows up to this value
    m = float(below[-1])
    place = (m + 1) * confidence - 1e-9
    if place > m:
        need = int(np.ceil(confidence / (1.0 - confidence) - 1e-9))
        raise ValueError(
            f"{name}='empirical' at confidence {confidence:g} needs at least {need} rows, and there are {m:g}; give "
            "more rows, a lower confidence, or another limit"
        )
    return float(values[order[int(np.searchsorted(below, place))]])


def _box(values: np.ndarray, weights: np.ndarray, confidence: float) -> float:
    """g chi^2(h) of the same mean and variance."""
    count = float(weights.sum())
    if not count > 1.0 or len(values) < 2:
        raise ValueError("spe='box' needs the SPE of at least two rows; give more rows")
    scale = float(np.abs(values).max())
    if not scale > 0.0:
        return 0.0
    values = values / scale  # squares of large values overflow
    mean = float(weights @ values) / count
    variance = float(weights @ (values - mean) ** 2) / (count - 1.0)
    if not mean > 0.0 or variance <= (EPS * mean) ** 2:
        return scale * max(mean, 0.0)  # all alike: what differs from them is beyond
    return scale * variance / (2.0 * mean) * float(stats.chi2.ppf(confidence, 2.0 * mean**2 / variance))
