"""Is a row like those the model was made of? Squared prediction error, Hotelling's T^2, and control limits for both.

A row's image in feature space has two parts: its part in the kept components, whose size T^2 measures in units of each
component's variance, and the rest, whose squared length is the SPE (also called Q). The two detect different faults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from scipy import special

from ..base import parallel
from ..base.checks import check_choice, check_flag, check_numbers, is_number
from ..base.rounding import EPS
from ..rows.view import Rows
from .projector import NewRows, SquaredErrors
from .result import KPCAModel, check_model
from .rows import new_rows, training_rows

__all__ = ["Limits", "finite", "kpca_limits", "kpca_spe", "kpca_t2", "squared_errors", "t_squared"]

EXCEEDING_ROWS = 10
"""Limits are empirical by default where so many of the given rows lie beyond them."""
CALIBRATION_ROWS = 4096
"""At most so many training rows are used for limits: each costs N kernel values."""


@dataclass(frozen=True)
class Limits:
    """Control limits of T^2 and SPE.

    Attributes
    ----------
    t2, spe : float
        A row is beyond the limit where its value is larger.
    confidence : float
        Of each limit by itself: rows like the calibration rows stay below it with about this probability.
    t2_method, spe_method : str
    n_calibration : int
        Number of rows that the limits were made from.
    """

    t2: float
    spe: float
    confidence: float
    t2_method: str
    spe_method: str
    n_calibration: int

    def exceeded(self, *, t2: Any = None, spe: Any = None) -> np.ndarray:
        """True for rows beyond a limit, shape (m,): of either statistic where both are given.

        Rows like the training rows are flagged with probability 1 - confidence by one statistic, and with at most
        2 (1 - confidence) by both. Raises ValueError where the shapes of the two differ, or a value is NaN.
        """
        if t2 is None and spe is None:
            raise TypeError("give t2=kpca_t2(model, X), spe=kpca_spe(model, X), or both")
        given = {name: np.asarray(x) for name, x in (("t2", t2), ("spe", spe)) if x is not None}
        if len({x.shape for x in given.values()}) > 1:
            shapes = " and ".join(f"{name} {x.shape}" for name, x in given.items())
            raise ValueError(f"the shapes differ: {shapes}; give both of the same rows")
        for name, x in given.items():
            if np.isnan(x).any():
                raise ValueError(f"{name} contains NaN, which is neither above nor below a limit; leave these rows out")
        limits = {"t2": self.t2, "spe": self.spe}
        return np.asarray(np.any([x > limits[name] for name, x in given.items()], axis=0))


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
    model = check_model(model)
    given = new_rows(model, X, purpose="kpca_t2")
    # what overflows is refused at the end
    quiet = np.errstate(over="ignore", invalid="ignore")
    with parallel.reporter(progress) as report, parallel.blas_threads(), quiet:
        z = model.projector.scores(given.kernel, given.rows, parallel.threads_for(given.kernel, n_threads), report)
    return finite(t_squared(model, z), "T^2", given.dtype)


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
        k~(x, x) - |z|^2, with k~ the kernel centred in feature space and z the scores. Never negative, but for kernels
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

    A model on a feature map phi has |phi(x) - mean - W z|^2, formed without cancellation, and what the map leaves out
    of x, e = k(x, x) - |phi(x)|^2, which is at right angles to all components: their sum is returned. Of what the map
    leaves out of the training rows only the (weighted) mean size e' is known (``model.mean_residual``). The squared
    length of their mean is at most e', and by the triangle inequality the true value has a number between
    (sqrt(e) - sqrt(e'))^2 and (sqrt(e) + sqrt(e'))^2 in place of e.

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
    diagonal: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Limits:
    """Control limits for ``kpca_t2`` and ``kpca_spe``.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d), optional
        Rows from normal operation, best rows that the model was not made of: its training rows lie nearer to its
        components than new rows do, so that limits made of them are too narrow. By default, for models that hold their
        training rows, at most 4096 of these.
    confidence : float
        Between 0 and 1: share of normal rows below each limit.
    t2 : {"auto", "F", "chi2", "empirical"}
        "auto": "empirical" from 10 / (1 - confidence) rows on (200 rows for 0.95, 1000 for 0.99), else "F".
        "F": c (N^2 - 1) / (N (N - c)) F(c, N - c), for a new row of normally distributed scores whose means and
        variances are estimated from N rows (of a model that is not centred, whose means are zero,
        c N / (N - c + 1) F(c, N - c + 1)); "chi2": chi^2(c), its limit for large N; "empirical": from the rows X.
    spe : {"auto", "box", "empirical"}
        "auto": "empirical" from as many rows on, else "box".
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
    The scores of kernel PCA need not be normally distributed, least of all for a small sigma: new normal rows exceed
    "F" never, or several times as often as stated (``benchmarks/reproduce/limits.py``); "empirical" assumes nothing. It
    is the order statistic number ceil((m + 1) confidence) of the m rows: a new row of the same distribution, used for
    neither model nor limit, exceeds it with probability at most 1 - confidence, whatever the distribution is (Vovk,
    Gammerman & Shafer 2005).

    F: Tracy, Young & Mason, Multivariate control charts for individual observations, Journal of Quality Technology
    1992. Box: Box, Some theorems on quadratic forms, Annals of Mathematical Statistics 1954; Nomikos & MacGregor,
    Multivariate SPC charts for monitoring batch processes, Technometrics 1995. The limit of Jackson & Mudholkar needs
    the eigenvalues that were not computed, and is therefore not offered.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> rng = np.random.default_rng(0)
    >>> model = fk.kpca(rng.standard_normal((500, 3)), "gaussian", 10, sigma=2.0)
    >>> limits = fk.kpca_limits(model, rng.standard_normal((300, 3)), confidence=0.95, t2="empirical")
    >>> X = [[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]]
    >>> limits.exceeded(t2=fk.kpca_t2(model, X), spe=fk.kpca_spe(model, X)).tolist()
    [False, True]
    """
    model = check_model(model)
    check_choice(t2, "t2", ("auto", "F", "chi2", "empirical"))
    check_choice(spe, "spe", ("auto", "box", "empirical"))
    if not (is_number(confidence) and 0 < confidence < 1):
        raise ValueError(f"confidence is {confidence!r}; a number between 0 and 1 is needed, as in 0.99")
    confidence = float(confidence)
    given = _training(model) if X is None else new_rows(model, X, purpose="kpca_limits")
    scores, errors, _ = squared_errors(model, given, diagonal, n_threads, progress)
    m = len(errors)
    weights = given.rows.tile_weights(0, m)
    weights = np.ones(m) if weights is None else weights
    enough = float(weights.sum()) * (1.0 - confidence) >= EXCEEDING_ROWS - 1e-9
    t2 = ("empirical" if enough else "F") if t2 == "auto" else t2
    spe = ("empirical" if enough else "box") if spe == "auto" else spe
    if t2 == "empirical":
        t2_limit = _order_statistic(finite(t_squared(model, scores), "T^2"), weights, confidence, "t2")
    elif t2 == "F":
        t2_limit = _f_limit(model, confidence)
    else:
        t2_limit = _chi_squared_quantile(confidence, model.n_components)
    if spe == "empirical":
        spe_limit = _order_statistic(errors, weights, confidence, "spe")
    else:
        spe_limit = _box(errors, weights, confidence)
    return Limits(t2_limit, spe_limit, confidence, t2, spe, m)


# ----------------------------------------------------------------------------------------------------------------------


def t_squared(model: KPCAModel, z: np.ndarray) -> np.ndarray:
    """T^2 (m,) of the scores z (m, c)."""
    with np.errstate(over="ignore", invalid="ignore"):  # refused by ``finite``
        return np.asarray(np.sum((z / np.sqrt(model.latent)) ** 2, axis=1))


def finite(values: np.ndarray, name: str, dtype: Any = np.float64) -> np.ndarray:
    """These in the type that is returned; ValueError names the first row where that is not a finite number."""
    with np.errstate(over="ignore"):
        result = values.astype(dtype, copy=False)
    if not np.isfinite(result).all():
        row = int(np.argwhere(~np.isfinite(result))[0, 0])
        raise ValueError(
            f"{name} is not finite in {result.dtype} (first at row {row}): kernel values are too large there; scale X "
            "as the training rows were, or leave that row out"
        )
    return result


def squared_errors(
    model: KPCAModel, given: NewRows, diagonal: Any, n_threads: int | None, progress: Any, bounds: bool = False
) -> SquaredErrors:
    """Scores and SPE of these rows; ValueError where an SPE is not finite."""
    values = _diagonal(given, diagonal)
    threads = parallel.threads_for(given.kernel, n_threads)
    quiet = np.errstate(over="ignore", invalid="ignore")  # what overflows is refused below
    with parallel.reporter(progress) as report, parallel.blas_threads(), quiet:
        errors = model.projector.squared_errors(model, given, values, threads, report, bounds)
    finite(errors.spe, "SPE")
    return errors


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
    rows = given.rows
    if len(rows) > CALIBRATION_ROWS:
        few = np.sort(np.random.default_rng(0).choice(len(rows), CALIBRATION_ROWS, replace=False))
        rows = Rows(rows.source[few], weights=None if rows.weights is None else rows.weights[few])
    return given._replace(rows=rows)


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
    """What scipy.stats gives, which takes longer to import than all of this package."""
    return 2.0 * float(special.gammaincinv(freedom / 2.0, probability))


def _f_limit(model: KPCAModel, confidence: float) -> float:
    """Limit of T^2 for a new row, where mean and variances are estimates."""
    n, c = model.count, model.n_components
    limit = np.inf
    if n > c:
        with np.errstate(over="ignore"):
            if model.center:
                limit = c * (n + 1.0) * (n - 1.0) / (n * (n - c)) * float(special.fdtri(c, n - c, confidence))
            else:
                limit = c * n / (n - c + 1.0) * float(special.fdtri(c, n - c + 1.0, confidence))
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
        return scale * max(mean, 0.0)  # all are equal: what differs from them is beyond the limit
    return scale * variance / (2.0 * mean) * _chi_squared_quantile(confidence, 2.0 * mean**2 / variance)
