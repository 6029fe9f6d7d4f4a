"""Novelty of rows: squared prediction error, Hotelling's T^2, and control limits for both.

A row's image in feature space has two parts: its part in the kept components, whose size T^2 measures in units of each
component's variance, and its residual, whose squared length is the SPE (or Q). The two detect different faults. The
package's docstring has the formulas.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np
from scipy import special

from ...base import parallel
from ...base.checks import Randomness, check_choice, check_flag, check_numbers, check_share
from ...base.progress import Progress
from ...base.rounding import EPS
from ...errors import LimitsWarning, warn_caller
from ...rows.summary import sample_index
from ...rows.view import Rows
from ..limits import N_QUANTILES, Limits, OrderStatistic
from ..projector import NewRows, RunOptions, SquaredErrors, finite, scores_of
from ..result import KPCAModel, check_model, of_spe
from ..rows import new_rows, training_rows
from .health import Facts

NEAR_CEILING = 0.5
"""Share of the SPE of a row far from all others, from which on a limit is too near it."""


def kpca_t2(model: KPCAModel, X: Any, *, n_threads: int | None = None, progress: bool | Progress = False) -> np.ndarray:
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
    model = check_model(model)
    given = new_rows(model, X, purpose="kpca_t2")
    # what overflows is refused at the end
    quiet = np.errstate(over="ignore", invalid="ignore")
    with parallel.reporter(progress) as report, parallel.blas_threads(), quiet:
        z = scores_of(model.projector, given.kernel, given.rows, parallel.threads_for(given.kernel, n_threads), report)
    return finite(t_squared(model, z), "T^2", given.dtype)


@overload
def kpca_spe(
    model: KPCAModel, X: Any, *, diagonal: Any = None, bounds: Literal[False] = False, **options: Unpack[RunOptions]
) -> np.ndarray: ...
@overload
def kpca_spe(
    model: KPCAModel, X: Any, *, diagonal: Any = None, bounds: Literal[True], **options: Unpack[RunOptions]
) -> tuple[np.ndarray, np.ndarray]: ...
def kpca_spe(
    model: KPCAModel,
    X: Any,
    *,
    diagonal: Any = None,
    bounds: bool = False,
    n_threads: int | None = None,
    progress: bool | Progress = False,
) -> Any:
    r"""Squared prediction error: the squared distance of a row's image from the subspace of the components.

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
        The squared distance from the span of the components: k~(x, x) - z' (W'W)^(-1) z, with k~ the kernel centred in
        feature space, z the scores and W the components. Where these are orthonormal, as of all models but those with
        intervals of second order (``info["residual_rows"]``), it is k~(x, x) - |z|^2. Never negative, but for kernels
        that are not positive semidefinite, where it is not a squared distance.
    interval : ndarray (m, 2), float64
        With ``bounds=True``: an interval that holds the SPE in the kernel's own feature space, rounding included. It is
        about the subspace that the model's components span; ``angle_bounds`` say how near that is to the true one. For
        a kernel without ``entry_error`` it is about the values that the kernel returns. Both ends are infinite where
        the interval of a component is as wide as its eigenvalue.

    Raises
    ------
    ValueError, TypeError
        As ``kpca_project``; or SPE of a row is beyond the largest number.

    Notes
    -----
    A model that holds its training rows knows

    .. math:: \tilde k(x, x) = k(x, x) - \frac2N \sum_i k(x, x_i) + \frac1{N^2} \sum_{ij} k(x_i, x_j);

    with ``sample_weight`` these means are weighted.

    A model on a feature map phi has |phi(x) - mean - W (W'W)^(-1) z|^2, formed without cancellation. The residual of
    the map at x, e = k(x, x) - |phi(x)|^2, is at right angles to all components: the sum of both is returned. Of the
    residual of the training rows only the (weighted) mean size e' is known (``model.mean_residual``). The squared
    length of their mean is at most e', and by the triangle inequality the true value has a number between (sqrt(e) -
    sqrt(e'))^2 and (sqrt(e) + sqrt(e'))^2 in place of e.

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
    model = check_model(model)
    given = new_rows(model, X, purpose="kpca_spe")
    errors = squared_errors(model, given, diagonal, n_threads, progress, bounds)
    spe = finite(errors.spe, "SPE", given.dtype)
    return (spe, errors.interval) if bounds else spe


def kpca_limits(
    model: KPCAModel,
    X: Any = None,
    *,
    confidence: float = 0.99,
    t2: str = "auto",
    spe: str = "auto",
    joint: bool = False,
    diagonal: Any = None,
    n_threads: int | None = None,
    progress: bool | Progress = False,
) -> Limits:
    """Control limits for ``kpca_t2`` and ``kpca_spe``.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d), optional
        Rows from normal operation that the model was not made of: its training rows lie nearer to its components than
        new rows do, so that limits made of them are too narrow. By default those of the limits that the model keeps
        (``model.with_limits``); of a model that keeps none and holds its training rows, at most 4096 of these.
    confidence : float
        Between 0 and 1: share of normal rows below each limit. The limits never fall as it rises.
    t2 : {"auto", "empirical", "F", "chi2"}
        "auto": "empirical", and where the rows are too few for that the largest value, with a warning. "empirical":
        the order statistic of the rows X; at least confidence / (1 - confidence) rows (99 for 0.99).
        "F": c (N^2 - 1) / (N (N - c)) F(c, N - c), for a new row of normally distributed scores whose means and
        variances are estimated from N rows. For a model that is not centred, whose means are zero, it is
        c N / (N - c + 1) F(c, N - c + 1). "chi2": chi^2(c), its limit for large N.
    spe : {"auto", "empirical", "box"}
        "auto", "empirical": as for ``t2``. "box": g chi^2(h) with the mean g h and the variance 2 g^2 h of their SPE.
    joint : bool
        Whether ``confidence`` is the share of normal rows below both limits, instead of below each. "empirical" then
        needs 2 / (1 - confidence) - 1 rows (199 for 0.99).
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
        Rows are needed and the model holds none; too few of them for t2="empirical" or spe="empirical".

    Warns
    -----
    LimitsWarning
        The rows are too few for "auto", or the model was made of them.

    Notes
    -----
    The scores of kernel PCA need not be normally distributed, least of all for a small sigma: new normal rows exceed
    "F" never, or several times as often as stated (``benchmarks/reproduce/limits.py``); "empirical" assumes nothing. It
    is the order statistic number ceil((m + 1) confidence) of the m rows: a new row of the same distribution, used for
    neither model nor limit, exceeds it with probability at most 1 - confidence for any distribution (Vovk,
    Gammerman & Shafer 2005). That is over all draws of the m rows. With those at hand it is a number around that, with
    the standard deviation of about ((1 - confidence) / m)^(1/2).

    Joint limits share the rate if both are empirical. Take the m rows and the new one together. The rank of a row in
    T^2 is the number of these m + 1 with a T^2 at least as large, and likewise in SPE. Let a(k) be the number of rows
    whose rank is k or less in T^2 or in SPE. The largest k with a(k) <= (m + 1) (1 - confidence) is a symmetric
    function of the m + 1 rows. So the new row has a rank of k or less with probability at most 1 - confidence. It has
    such a rank in T^2 where fewer than k of the m rows have a T^2 as large. Then a(k) counts the row itself, the rows
    of rank k - 1 or less in T^2 among the m, and those of rank k or less in SPE. So the limit of T^2 is the k-th
    largest of the m, for the largest k for which this count is small enough. The limit of SPE is the same with the two
    exchanged. No limit is above the one of half of the rate for each statistic, ceil((m + 1) (1 + confidence) / 2),
    which other joint limits have.

    F: Tracy, Young & Mason, Multivariate control charts for individual observations, Journal of Quality Technology
    1992. Box: Box, Some theorems on quadratic forms, Annals of Mathematical Statistics 1954; Nomikos & MacGregor,
    Multivariate SPC charts for monitoring batch processes, Technometrics 1995. The limit of Jackson & Mudholkar needs
    the eigenvalues that were not computed, and is therefore not offered.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> rng = np.random.default_rng(0)
    >>> model = fk.kpca(rng.standard_normal((500, 3)), "gaussian", 10, sigma=2.0)
    >>> limits = fk.kpca_limits(model, rng.standard_normal((300, 3)), confidence=0.95)
    >>> X = [[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]]
    >>> limits.exceeded(t2=fk.kpca_t2(model, X), spe=fk.kpca_spe(model, X)).tolist()
    [False, True]
    """
    model = check_model(model)
    check_choice(t2, "t2", ("auto", "empirical", "F", "chi2"))
    check_choice(spe, "spe", ("auto", "empirical", "box"))
    joint = check_flag(joint, "joint")
    confidence = check_share(confidence, "confidence")
    kept = model.limits if X is None else None
    if kept is None or kept.calibration is None:
        values, of_training, quantiles, runs = _calibrated(model, X, diagonal, n_threads, progress)
    else:
        values, of_training, quantiles, runs = kept.calibration, kept.of_training, kept.quantiles, kept.runs
    squares, errors, weights = values.T
    order = OrderStatistic(weights, confidence, joint)
    ranks = order.rank, order.rank
    if joint and {t2, spe} <= {"auto", "empirical"}:
        ranks = order.joint_ranks(squares, errors)
    if t2 in ("auto", "empirical"):
        t2_limit, t2 = order.limit(squares, t2, ranks[0])
    elif t2 == "F":
        t2_limit = _f_limit(model, order.each)
    else:
        t2_limit = _chi_squared_quantile(order.each, model.n_components)
    if spe in ("auto", "empirical"):
        spe_limit, spe = order.limit(errors, spe, ranks[1])
    else:
        spe_limit = _box(errors, order.weights, order.each)
    if of_training:
        warn_caller(
            f"these limits are made of rows that the model was made of. It fits them better than new rows, of which "
            f"more than {100 * (1 - confidence):.3g} % may lie beyond; give kpca_limits(model, X) rows that it has "
            "not seen",
            LimitsWarning,
        )
    if "largest" in (t2, spe):
        order.warn()
    return Limits(t2_limit, spe_limit, confidence, t2, spe, len(errors), joint, of_training, values, quantiles, runs)


# ----------------------------------------------------------------------------------------------------------------------


def t_squared(model: KPCAModel, z: np.ndarray) -> np.ndarray:
    """T^2 (m,) of the scores z (m, c)."""
    with np.errstate(over="ignore", invalid="ignore"):  # refused by ``finite``
        return np.asarray(np.sum((z / np.sqrt(model.latent)) ** 2, axis=1))


def squared_errors(
    model: KPCAModel, given: NewRows, diagonal: Any, n_threads: int | None, progress: Any, bounds: bool = False
) -> SquaredErrors:
    """Scores and SPE of these rows; ValueError where an SPE is not finite. With ``bounds`` the scores are those of the
    components outside SPE, and without it the interval has no width."""
    values = _diagonal(given, diagonal)
    b = model.n_components if model.spe_components is None else model.spe_components
    if bounds:
        model = of_spe(model)
    threads = parallel.threads_for(given.kernel, n_threads)
    quiet = np.errstate(over="ignore", invalid="ignore")  # what overflows is refused below
    with parallel.reporter(progress) as report, parallel.blas_threads(), quiet:
        errors = model.projector.squared_errors(model, given, values, threads, report, bounds)
        if not bounds and b < model.n_components:  # the same number, without another pass over the rows
            beyond = np.sum(errors.scores[:, b:] ** 2, axis=1)
            errors = errors._replace(spe=errors.spe + beyond, interval=errors.interval + beyond[:, None])
    finite(errors.spe, "SPE")
    return errors


def _calibrated(
    model: KPCAModel, X: Any, diagonal: Any, n_threads: int | None, progress: Any
) -> tuple[np.ndarray, bool, np.ndarray | None, np.ndarray | None]:
    """(T^2, SPE and weight (m, 3) of calibration rows; whether the model was made of them; quantiles of columns, and
    their longest runs)."""
    given = _training(model) if X is None else new_rows(model, X, purpose="kpca_limits")
    scores, errors, _ = squared_errors(model, given, diagonal, n_threads, progress)
    weights = given.rows.tile_weights(0, len(errors))
    weights = np.ones(len(errors)) if weights is None else weights
    values = np.column_stack([finite(t_squared(model, scores), "T^2"), errors, weights])
    quantiles = runs = None
    if model.kernel.takes_points:
        runs = Facts(given.rows).run.astype(np.float64)
        few = given.rows.take(_some(given.rows))
        quantiles = model.in_units_of_rows(np.quantile(few, np.linspace(0.0, 1.0, N_QUANTILES), axis=0))
    return values, X is None or _holds(model, given.rows), quantiles, runs


def _some(rows: Rows) -> np.ndarray:
    """Numbers of all rows, or of the most that limits are made of; weights have no influence."""
    return sample_index(rows.weighted(None), 0.0, Randomness(0))


def _training(model: KPCAModel) -> NewRows:
    """Rows that the model was made of, where it holds them."""
    given = training_rows(model, "kpca_limits", "rows from normal operation, best rows that the model was not made of")
    if model.kernel.by_number:
        if model.kernel.knows_diagonal:
            raise ValueError("limits need objects: give kpca_limits(model, X) some from normal operation")
        raise ValueError(
            "this model does not hold the precomputed matrix that it was made of; give kpca_limits(model, K_new, "
            "diagonal=...) the (m, N) matrix between rows from normal operation and the training rows"
        )
    rows, few = given.rows, _some(given.rows)
    weights = None if rows.weights is None else rows.weights[few]
    return given._replace(rows=Rows(rows.source[few], weights=weights))


def _diagonal(given: NewRows, diagonal: Any) -> np.ndarray | None:
    """k(x, x) as the caller gives it; None: to be asked of the kernel."""
    if diagonal is None:
        if not given.kernel.knows_diagonal:
            raise ValueError(
                "SPE needs k(x, x) of each new row, and a precomputed matrix between new and training rows does not "
                "hold it; give diagonal=, one value for each row"
            )
        return None
    m = given.rows.n_samples
    return check_numbers(diagonal, "diagonal", f"k(x, x) of each of the {m} rows", (m,))


def _chi_squared_quantile(probability: float, freedom: float) -> float:
    """Quantiles of scipy.stats, which takes longer to import than all of this package."""
    return 2.0 * float(special.gammaincinv(freedom / 2.0, probability))


def _f_limit(model: KPCAModel, confidence: float) -> float:
    """Limit of T^2 for a new row, where mean and variances are estimates."""
    n, c = model.count, model.n_components
    freedom = n - model.center - c + 1.0
    limit = np.inf
    if n > c:
        with np.errstate(over="ignore"):
            limit = c * (n - model.center) / freedom * float(special.fdtri(c, freedom, confidence))
            limit *= 1.0 + model.center / n  # the mean is estimated too
    if not np.isfinite(limit):
        counted = f"{model.n_samples} rows" if model.weight_sum is None else f"the sum of the weights is {n:.6g}"
        raise ValueError(
            f"t2='F' needs more rows than components ({counted}, {c} components); give t2='chi2', fit fewer "
            "components, or scale the weights so that they count rows"
        )
    return float(limit)


def _holds(model: KPCAModel, rows: Rows) -> bool:
    """True if the model was made of all of these rows, and holds them."""
    landmarks = model.projector.landmarks
    if landmarks is None or not model.projector.grows_with_n or model.kernel.by_number:
        return False
    held = np.ascontiguousarray(landmarks)
    if not (held == rows.tile(0, 1).astype(held.dtype)).all(axis=1).any():
        return False
    given = np.ascontiguousarray(rows.all(), dtype=held.dtype)
    as_one = np.dtype((np.void, held.itemsize * held.shape[1]))  # each row a value
    return bool(np.isin((given + 0.0).view(as_one), (held + 0.0).view(as_one)).all())


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
        return scale * max(mean, 0.0)  # all are equal: what differs from them is beyond the limit
    return scale * variance / (2.0 * mean) * _chi_squared_quantile(confidence, 2.0 * mean**2 / variance)


def share_of_ceiling(model: KPCAModel, limit: float) -> float:
    """Ratio of ``limit`` to the SPE of a row far from all others under the Gaussian kernel, the largest SPE
    possible: its image has length 1, and is at right angles to mean and components. 0 for other kernels.
    """
    if model.kernel.fixed_point_width() is None:
        return 0.0
    projector = of_spe(model).projector
    along, square = projector.of_the_mean()
    return limit / (1.0 + square - float(along @ projector.mean_in_span))
