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
from ..base.protocol import Kernel
from ..kernels import guarded
from ..kernels.precomputed import Precomputed
from ..maps.passes import apply, tile_rows
from ..products.exact import ExactSummation
from ..rows import validate
from ..rows.view import Rows, summarize
from ..solve.certificate import rounding_factor
from .result import FeatureProjector, KPCAModel, SampleProjector, check_model

__all__ = ["Limits", "kpca_limits", "kpca_spe", "kpca_t2"]

EPS = float(np.finfo(np.float64).eps)
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
    """
    given = _given(model, X)
    z = np.empty((given.rows.n_samples, model.n_components))
    with parallel.reporter(progress) as report:
        model.projector.project(given.kernel, given.rows, z, parallel.threads_for(given.kernel, n_threads), report)
    return _t2(model, z).astype(given.dtype, copy=False)


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

    Notes
    -----
    A model that holds its training rows knows k~(x, x) = k(x, x) - 2 mean_i k(x, x_i) + mean_ij k(x_i, x_j).

    A model on a feature map phi has |phi(x) - mean - W z|^2, formed without cancellation, and what the map leaves out
    of x, e = k(x, x) - |phi(x)|^2, which is at right angles to all components: their sum is returned. Of what the map
    leaves out of the training rows only the mean e' is known (``info["residual_trace"]`` / N); it is the squared
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
    given = _given(model, X)
    bounds = validate.check_flag(bounds, "bounds")
    threads = parallel.threads_for(given.kernel, n_threads)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        found = _statistics(model, given, _diagonal(given, diagonal), threads, report, bounds)
    spe = found.spe.astype(given.dtype, copy=False)
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
    validate.check_choice(t2, "t2", ("F", "chi2", "empirical"))
    validate.check_choice(spe, "spe", ("box", "empirical"))
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float, np.number)) or not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence!r}; a number between 0 and 1 is needed, as in 0.99")
    confidence = float(confidence)
    given = _training(model) if X is None else _given(model, X)
    threads = parallel.threads_for(given.kernel, n_threads)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        found = _statistics(model, given, _diagonal(given, diagonal), threads, report)
    n, c = model.n_samples, model.n_components
    if t2 == "empirical":
        t2_limit = _order_statistic(found.t2, confidence, "t2")
    elif t2 == "F" and n > c:
        t2_limit = c * (n * n - 1.0) / (n * (n - c)) * float(stats.f.ppf(confidence, c, n - c))
    else:
        t2_limit = float(stats.chi2.ppf(confidence, c))
    spe_limit = _order_statistic(found.spe, confidence, "spe") if spe == "empirical" else _box(found.spe, confidence)
    return Limits(t2_limit, spe_limit, confidence, t2, spe, len(found.spe))


# ----------------------------------------------------------------------------------------------------------------------


class _Given(NamedTuple):
    kernel: Kernel
    rows: Rows
    dtype: np.dtype
    has_diagonal: bool


class _Found(NamedTuple):
    t2: np.ndarray
    spe: np.ndarray
    interval: np.ndarray


def _given(model: KPCAModel, X: Any) -> _Given:
    """New rows, as ``kpca_project`` takes them."""
    check_model(model)
    own = guarded(model.kernel)
    kernel, X = own.bind(X, range(model.n_samples))
    rows = validate.as_rows(X)
    validate.check_finite(rows)
    if kernel is own:
        validate.check_columns(model.n_features, rows.n_features)
        validate.check_names(model.feature_names, X)
    dtype = np.dtype(np.float32 if rows.dtype == np.float32 and model.dtype == np.float32 else np.float64)
    return _Given(kernel, rows.shifted(model.shift), dtype, not isinstance(kernel, Precomputed))


def _training(model: KPCAModel) -> _Given:
    """Rows that the model was made of, where it holds them."""
    if not isinstance(model.projector, SampleProjector):
        raise ValueError(
            "this model is a feature map and holds no training rows, and limits are made of rows; give "
            "kpca_limits(model, X) rows from normal operation, best such that the model has not seen"
        )
    if isinstance(model.kernel, Precomputed):
        raise ValueError(
            "this model was made of a precomputed matrix, which it does not hold; give kpca_limits(model, K_new, "
            "diagonal=...) the (m, N) matrix between rows from normal operation and the training rows"
        )
    X = model.projector.X
    if len(X) > CALIBRATION_ROWS:
        X = X[np.sort(np.random.default_rng(0).choice(len(X), CALIBRATION_ROWS, replace=False))]
    return _Given(guarded(model.kernel), Rows(X), np.dtype(np.float64), True)


def _diagonal(given: _Given, diagonal: Any) -> np.ndarray | None:
    """k(x, x) as the caller gives it; None: to be asked of the kernel."""
    if diagonal is None:
        if not given.has_diagonal:
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
    return np.sum((z / np.sqrt(model.latent)) ** 2, axis=1)


def _statistics(
    model: KPCAModel,
    given: _Given,
    diagonal: np.ndarray | None,
    n_threads: int,
    progress: parallel.Progress | None,
    bounds: bool = False,
) -> _Found:
    if isinstance(model.projector, FeatureProjector):
        found = _by_features(model, model.projector, given, diagonal, n_threads, progress)
    else:
        found = _by_rows(model, model.projector, given, diagonal, n_threads, progress, bounds)
    if not np.isfinite(found.spe).all():
        row = int(np.argmin(np.isfinite(found.spe)))
        raise ValueError(f"SPE is not finite (first at row {row}): kernel values overflow there; scale the data down")
    return found


def _by_features(
    model: KPCAModel,
    projector: FeatureProjector,
    given: _Given,
    diagonal: np.ndarray | None,
    n_threads: int,
    progress: parallel.Progress | None,
) -> _Found:
    feature_map, axes, mean = projector.map, projector.axes, projector.mean
    rows, n, D = given.rows, given.rows.n_samples, feature_map.n_features
    z = np.empty((n, axes.shape[1]))
    within, outside, surely, size = np.empty((4, n))
    away, box, beyond = np.zeros(n), getattr(feature_map, "box", None), getattr(feature_map, "beyond", 0.0)
    length = float(np.sqrt(mean @ mean))
    # the mean errs by rounding of the features that it is the mean of, which may be much larger than it is
    features = float(np.sqrt(length**2 + max(model.total_variance_bounds[1], 0.0)))
    delta = feature_map.rounding + rounding_factor(max(D, model.n_samples)) * EPS
    # a map with a transform of its own has too many features to form them: cancellation, and no lower end for e
    transform = feature_map.tile_rows is not None
    step = tile_rows(feature_map) if transform else parallel.tile_rows(D)
    if transform:
        apply(feature_map, rows, axes, n_threads, constant=mean @ axes, out=z, progress=progress, stage="scores")
        along = apply(feature_map, rows, mean[:, None], n_threads)[:, 0]

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
        if box is not None:  # images of the rows, as seen from outside of their box
            away[part] = beyond * ((X < box[0]) | (X > box[1])).any(axis=1)

    for _ in parallel.run(task, -(-n // step), n_threads=n_threads, progress=progress, stage="spe"):
        pass
    if transform:
        slack = (4.0 * delta + 8.0 * getattr(feature_map, "eps", 0.0)) * size**2
    else:  # |r|^2 of an r that is off by this much
        slack = 4.0 * np.sqrt(within) * (delta * size) + 4.0 * (delta * size) ** 2
    slack += 4.0 * feature_map.defect + 2.0 * away
    train = np.sqrt(max(float(model.info.get("residual_trace", 0.0)), 0.0) / model.n_samples)
    high = within + (np.sqrt(outside) + train) ** 2 + slack
    low = np.maximum(within + np.maximum(np.sqrt(surely) - train, 0.0) ** 2 - slack, 0.0)
    return _Found(_t2(model, z), within + outside, np.stack([low, high], axis=1))


def _by_rows(
    model: KPCAModel,
    projector: SampleProjector,
    given: _Given,
    diagonal: np.ndarray | None,
    n_threads: int,
    progress: parallel.Progress | None,
    bounds: bool,
) -> _Found:
    kernel, rows, n = given.kernel, given.rows, given.rows.n_samples
    train = Rows(projector.X)
    N, c = projector.coeff.shape
    coeff = np.asarray(projector.coeff, dtype=np.float64)
    coeff = coeff - coeff.mean(axis=0)  # zero already in exact numbers, but not in those of float32
    columns = np.hstack([coeff, np.full((N, 1), 1.0 / N)])
    means = np.asarray(projector.column_means, dtype=np.float64)
    constant, grand = means @ columns[:, :c], float(means.mean())
    z, centred, diagonals = np.empty((n, c)), np.empty(n), np.empty(n)
    step = parallel.tile_rows(64)
    for start in range(0, n, step):
        part = slice(start, min(n, start + step))
        X = rows.tile(part.start, part.stop)
        product = ExactSummation(kernel, Rows(X), train, n_threads=n_threads).matmat(columns)
        z[part] = product[:, :c] - constant
        diagonals[part] = kernel.diagonal(X) if diagonal is None else diagonal[part]
        centred[part] = diagonals[part] - 2.0 * product[:, c] + grand
        if progress is not None:
            progress("spe", part.stop, n)
    inside = np.einsum("ij,ij->i", z, z)
    spe = centred - inside
    if kernel.positive_semidefinite:
        spe = np.maximum(spe, 0.0)
    interval = np.stack([spe, spe], axis=1)
    if bounds:
        whole, within = _rounding_of_rows(model, given, columns, z, diagonals, means)
        interval = np.stack([spe - whole - within, spe + whole + within], axis=1)
        if kernel.positive_semidefinite:  # no larger than without any component, and no smaller than nothing
            interval[:, 1] = np.minimum(interval[:, 1], np.maximum(centred, 0.0) + whole)
            interval = np.maximum(interval, 0.0)
    return _Found(_t2(model, z), spe, interval)


def _rounding_of_rows(
    model: KPCAModel, given: _Given, columns: np.ndarray, z: np.ndarray, diagonals: np.ndarray, means: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What rounding, and the components' own error, can do to k~(x, x) and to |z|^2 by the training rows: (m,) each."""
    N, coeff = len(columns), columns[:, :-1]
    assert isinstance(model.projector, SampleProjector)
    error = 0.0
    if given.has_diagonal:
        _, data = summarize(given.rows, shift=False, rng=np.random.default_rng(0))
        _, train = summarize(Rows(model.projector.X), shift=False, rng=np.random.default_rng(0))
        larger = max((data, train), key=lambda x: x.radius)
        error = given.kernel.entry_error(larger, np.dtype(np.float64)) or 0.0
        largest = np.sqrt(np.abs(diagonals) * float(np.abs(given.kernel.diagonal(model.projector.X)).max()))
    else:
        largest = np.abs(diagonals) + float(np.abs(means).max())
    largest = np.maximum(largest, float(np.abs(means).max()))
    # an entry's error, in a mean and in a score; column means by an approximate product err by what that does
    entry = error + EPS * rounding_factor(N) * largest + float(model.info.get("product_error", 0.0))
    weights = np.abs(coeff).sum(axis=0)
    whole = 4.0 * entry + 4.0 * EPS * np.abs(diagonals)
    part = 2.0 * entry * (np.abs(z) @ weights) + entry**2 * float(weights @ weights)
    # components are orthonormal as far as V' Kc V is diagonal, which the lower ends of the intervals allow for,
    off = float(np.max(model.eigenvalues - model.eigenvalue_bounds[:, 0], initial=0.0)) / float(model.eigenvalues[-1])
    if model.projector.coeff.dtype == np.float32:
        # and as far as coefficients A + E are those that were found: (A + E)' Kc (A + E) - I, |Kc A|^2 <= top
        square = float(np.einsum("ij,ij->", coeff, coeff)) * (0.51 * float(np.finfo(np.float32).eps)) ** 2
        norm = top = float(model.eigenvalue_bounds[0, 1])
        if not given.kernel.positive_semidefinite:
            norm = N * float(largest.max())
            top = norm**2 / float(model.eigenvalues[-1])
        off += 2.0 * np.sqrt(top * (1.0 + off) * square) + norm * square
    inside = np.einsum("ij,ij->i", z, z)
    return whole, part + inside * (off / (1.0 - off) if off < 1.0 else np.inf)


def _order_statistic(values: np.ndarray, confidence: float, name: str) -> float:
    """The value that a new one of the same distribution exceeds with probability at most 1 - confidence."""
    m = len(values)
    place = int(np.ceil((m + 1) * confidence - 1e-9))
    if place > m:
        need = int(np.ceil(confidence / (1.0 - confidence) - 1e-9))
        raise ValueError(
            f"{name}='empirical' at confidence {confidence:g} needs at least {need} rows, and there are {m}; give more "
            "rows, a lower confidence, or another limit"
        )
    return float(np.sort(values)[place - 1])


def _box(values: np.ndarray, confidence: float) -> float:
    """g chi^2(h) of the same mean and variance."""
    if len(values) < 2:
        raise ValueError("spe='box' needs the SPE of at least two rows; give more rows")
    mean, variance = float(values.mean()), float(values.var(ddof=1))
    if not mean > 0.0 or variance <= (EPS * mean) ** 2:
        return max(mean, 0.0)  # all alike: what differs from them is beyond
    return variance / (2.0 * mean) * float(stats.chi2.ppf(confidence, 2.0 * mean**2 / variance))
