"""Intervals for the population of the rows, with a confidence that holds for every number of rows.

With h(x, y) = |phi(x) - phi(y)|^2 / 2, C the covariance of phi, and P a projection that does not depend on the rows::

    trace(P C) = E |P (phi(x) - phi(y))|^2 / 2      independent rows x, y

With D^2 the largest |phi(x) - phi(y)|^2 that the process can give, and s_k the sum of the k largest eigenvalues of C:

1. Lower bound: s_k >= trace(P C), P onto the first k components of a model of *other* rows. This is the mean of numbers
   in [0, D^2 / 2] over disjoint pairs of new rows (``ratio_bounds``).
2. Upper bound: for P onto the first k eigenvectors of C, unknown but fixed, the average of |P (phi(x) - phi(y))|^2 / 2
   over all pairs of rows has the expectation s_k. It is at most S_k, the sum of the k largest eigenvalues of the
   sample covariance (``solve.sampled.upper_share``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import parallel
from ..base.checks import Randomness, check_count, check_rng, is_number
from ..base.confidence import ratio_bounds
from ..base.rounding import EPS
from ..model.projector import NewRows
from ..model.result import KPCAModel, check_model
from ..model.rows import new_rows
from ..model.statistics.uncertainty import check_level
from ..rows.summary import summarize
from ..solve.sampled import upper_share
from .kpca import kpca

MIN_ROWS = 20
"""New rows, below which the intervals would hold nearly all that the kernel allows."""
PAIRINGS = 16
"""Random pairings of the rows whose wealths are averaged, so that the ends depend less on the order of the rows."""
SPECTRUM_TOL = 1e-3
"""Width of the intervals around the eigenvalues of the new rows, small against the statistical error of 1e5 rows."""


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """Intervals for the population that the rows were drawn from, each with the confidence ``level`` by itself.

    Attributes
    ----------
    leading_variance : ndarray (k, 2)
        s_1, ..., s_k: sums of the 1, ..., k largest variances (eigenvalues of the covariance in feature space) of the
        population.
    explained_variance : ndarray (k, 2)
        Variance of new rows along the first 1, ..., k components of the model.
    explained : ndarray (k, 2)
        The same in percent of the total variance of new rows.
    total_variance : ndarray (2,)
    mean_spe : ndarray (2,)
        Mean squared prediction error of new rows, by all components of the model.
    level : float
    n_samples : int
        Number of new rows.
    n_spectrum : int
        Number of rows whose eigenvalues the upper bounds of ``leading_variance`` were computed from.
    """

    leading_variance: np.ndarray
    explained_variance: np.ndarray
    explained: np.ndarray
    total_variance: np.ndarray
    mean_spe: np.ndarray
    level: float
    n_samples: int
    n_spectrum: int

    def __repr__(self) -> str:
        k = len(self.explained)
        (low, high), (least, most) = self.explained[-1], self.leading_variance[-1]
        return (
            f"<Population: {k} components explain {low:.4g} to {high:.4g} % of the variance of new rows; the {k} "
            f"largest variances of the population sum to {least:.4g} to {most:.4g}; confidence {self.level:g} each, "
            f"from {self.n_samples} new rows>"
        )


def kpca_population(
    model: KPCAModel,
    X: Any,
    *,
    level: float = 0.95,
    n_components: int | None = None,
    spectrum: KPCAModel | None = None,
    squared_diameter: float | None = None,
    rng: Any = 0,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Population:
    r"""Intervals for the population's variances, and for what a model explains of new rows, at any number of rows.

    The rows need only be independent draws from one distribution, of any tails, and need not be many. The bootstrap of
    ``kpca_uncertainty`` is narrower, and tells of single eigenvalues; it holds for many rows of light tails.

    Parameters
    ----------
    model : KPCAModel
        A centred model. Any fit will do in which the rows X had no part.
    X : array_like (m, d)
        New rows: independent of the rows of the fit and of each other. Half of the rows, held back, will do.
    level : float
        Confidence of each interval, from 0.5 to below 1. Rounding and ``model.failure_probability`` are included.
    n_components : int, optional
        Number k of sums, by default one for each component of the model.
    spectrum : KPCAModel, optional
        A model of rows of the same population, whose kernel and width were fixed *before* these rows were seen: the
        model itself, or better one of all rows at hand, with as many components. The upper bounds of
        ``leading_variance`` come from its eigenvalues. Default: one of X (one more fit), which is always right.
    squared_diameter : float, optional
        Bound on |phi(x) - phi(y)|^2 = k(x, x) + k(y, y) - 2 k(x, y) over all rows that the process can give, known
        beforehand. Default: that of the kernel, where it has one (Gaussian 2).
    rng : int, Generator, SeedSequence or None
        Random numbers for the pairings.
    n_threads : int, optional
    progress : bool or callable

    Returns
    -------
    Population

    Raises
    ------
    ValueError, TypeError
        The kernel is unbounded and ``squared_diameter`` is not given; the model is not centred, or weighted; X are
        the training rows, or too few; or as ``kpca_project``.

    Notes
    -----
    With B = D^2 / 2, D^2 the squared diameter, and kl the relative entropy of two Bernoulli distributions:

    .. math:: s_k \le u_k, \quad \mathrm{kl}\left(\frac{S_k}{B}, \frac{u_k}{B}\right)
       = \frac{\log(1 / \delta)}{\lfloor N / 2 \rfloor}, \qquad \delta = \frac{1 - level}{2},

    as the mean of |P (phi(x) - phi(y))|^2 / 2 over all pairs of N rows, P fixed, is a U-statistic (Hoeffding,
    Probability inequalities for sums of bounded random variables, JASA 1963, section 5). It is at most S_k for every P
    of rank k. The bounds on means are test martingales inverted: if the mean is m, a nonnegative martingale that starts
    at 1 reaches 1 / delta with a probability of delta at most (Waudby-Smith and Ramdas, Estimating means of bounded
    random variables by betting, JRSS B 2024). The interval has the m whose martingale stays below 1 / delta. It is the
    average over 16 pairings of the rows, which is a martingale, too.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((2000, 3))
    >>> model = fk.kpca(X[:1000], "gaussian", 3, sigma=2.0)
    >>> found = fk.kpca_population(model, X[1000:])
    >>> low, high = found.explained[-1]
    >>> bool(50 < low < high < 80)
    True
    """
    model = check_model(model)
    c = model.n_components
    k = c if n_components is None else check_count(n_components, "n_components", most=c)
    level, delta = check_level(level), 0.5 * (1.0 - check_level(level))
    _check_kind(model)
    if spectrum is not None:
        spectrum = check_model(spectrum)
        _check_spectrum(model, spectrum)
    bound = _half_diameter(model, squared_diameter)
    generator = check_rng(rng)
    given = new_rows(model, X, purpose="kpca_population")
    m = given.rows.n_samples
    if m < MIN_ROWS:
        raise ValueError(f"X has {m} rows; give at least {MIN_ROWS} rows that the fit has not seen")
    threads = parallel.threads_for(given.kernel, n_threads)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        errors = model.projector.squared_errors(model, given, None, threads, report, True)
        _check_unseen(model, errors.scores)
        orders = [generator.permutation(m) for _ in range(PAIRINGS)]
        pairs = np.stack([order[: m // 2 * 2].reshape(-1, 2) for order in orders])
        along = _along_components(model, given, errors.scores, k, pairs)
        variance = _halved_distances(given, pairs, model)
    if variance[0].max() > bound:
        raise ValueError(
            f"two rows of X have the squared distance {2.0 * variance[0].max():.6g} in feature space, and "
            f"squared_diameter is {2.0 * bound:g}: give a bound on all rows that the process can give"
        )

    def interval(of: Any, scale: float, mean: float, spread: float, total: Any = None) -> np.ndarray:
        """Bounds on E[of] (or on E[of] / E[total]), both between zero and ``scale``."""
        low, high = (np.clip(x / scale, 0.0, 1.0) for x in of)
        one = np.ones_like(low)
        least, most = (one, one) if total is None else (np.clip(x / scale, 0.0, 1.0) for x in total)
        low, high = np.minimum(low, most), np.minimum(high, most)
        ends = ratio_bounds(low, high, np.maximum(least, high), most, delta, min(mean, 1.0), min(spread, 0.25))
        return np.array(ends) * (scale if total is None else 100.0)

    values = np.maximum(model.latent[:k], 0.0)
    whole = max(model.total_variance, float(np.sum(values)))
    explained, shares = np.empty((2, k, 2))
    for j in range(k):
        of, mean = [x[..., j] for x in along], float(values[: j + 1].sum())
        spread = 2.0 * float(values[: j + 1] @ values[: j + 1]) / bound**2  # of normal scores
        explained[j] = interval(of, bound, mean / bound, spread)
        shares[j] = interval(of, bound, mean / whole, spread, variance)
    rest = (whole - float(model.latent.sum())) / (2.0 * bound)
    spe = errors.interval.T[:, np.stack(orders)]
    if spectrum is None:
        spectrum = kpca(
            given.rows.all(),  # in the coordinates of the model, whose scale was fixed before these rows were seen
            given.kernel,
            min(k, m - 1),
            tol=SPECTRUM_TOL,
            standardize=False,
            return_scores=False,
            n_threads=n_threads,
        )
    upper = _upper_bounds(spectrum, k, bound, delta)
    total = interval(variance, bound, whole / bound, (whole / bound) ** 2)
    return Population(
        leading_variance=np.stack([explained[:, 0], np.maximum(upper, explained[:, 0])], axis=1),
        explained_variance=explained,
        explained=shares,
        total_variance=total,
        mean_spe=interval(spe, 2.0 * bound, rest, rest**2),
        level=level,
        n_samples=m,
        n_spectrum=spectrum.n_samples,
    )


def _check_kind(model: KPCAModel) -> None:
    kernel = model.kernel
    if not (kernel.takes_points and kernel.positive_semidefinite):
        raise ValueError(
            f"{kernel!r} is no positive semidefinite kernel on rows of coordinates, so there is no population of rows "
            "with a covariance in feature space; fit with a kernel that is, as 'gaussian'"
        )
    if not model.center:
        raise ValueError(
            "the model was made with center=False, and a covariance is about the mean; fit with center=True"
        )
    if model.weight_sum is not None:
        raise ValueError(
            "the model was made of weighted rows, which are no independent draws; fit without sample_weight"
        )


def _check_spectrum(model: KPCAModel, spectrum: KPCAModel) -> None:
    _check_kind(spectrum)
    if spectrum.kernel != model.kernel:
        raise ValueError(
            f"spectrum is of {spectrum.kernel!r}, and the model of {model.kernel!r}; fit both with one kernel"
        )
    if spectrum.scale is not None:
        raise ValueError(
            "spectrum was made with standardize=True: its scales come from its own rows, so they were not fixed before "
            "these were seen; leave spectrum out, or divide the columns by numbers that were fixed before"
        )


def _half_diameter(model: KPCAModel, given: float | None) -> float:
    """B = D^2 / 2, the largest |phi(x) - phi(y)|^2 / 2 of any two rows."""
    if given is not None:
        if not (is_number(given) and 0.0 < given < np.inf):
            raise ValueError(f"squared_diameter is {given!r}; give a positive number")
        return 0.5 * float(given)
    kernel = model.kernel
    if kernel.translation != "kernel":
        raise ValueError(
            f"{kernel!r} is unbounded, or fastkpca knows no bound for it, and without one no number of rows says "
            "anything about a mean; take a kernel of x - y, as 'gaussian', or give squared_diameter=, a bound on "
            "k(x, x) + k(y, y) - 2 k(x, y) over all rows that the process can give"
        )
    # k(x, x) + k(y, y) - 2 k(x, y) with |k(x, y)| <= k(0, 0)
    return float(kernel.diagonal(np.zeros((1, model.n_features)))[0]) * (1.0 if kernel.nonnegative else 2.0)


def _check_unseen(model: KPCAModel, scores: np.ndarray) -> None:
    """ValueError where the rows have the mean and the variances of the training rows."""
    if len(scores) != model.n_samples:
        return
    variances = np.einsum("ij,ij->j", scores, scores) / (len(scores) - 1)
    near = 1e-6 * model.latent[0] + np.diff(model.eigenvalue_bounds, axis=1)[:, 0] / (len(scores) - 1)
    if (np.abs(variances - model.latent) <= near).all():
        raise ValueError(
            "X are the rows that the model was made of; intervals for the population take rows that it has not seen: "
            "fit on one half of the rows, and give the other"
        )


def _along_components(
    model: KPCAModel, given: NewRows, scores: np.ndarray, k: int, pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on |P_j (phi(x) - phi(y))|^2 / 2 of pairs (o, n, 2), P_j onto the first j components: (o, n, k) each."""
    z, error, skewness = model.projector.orthonormal_scores(model, given, scores)
    x, y = pairs[..., 0], pairs[..., 1]
    lengths = np.sqrt(np.cumsum((z[x, :k] - z[y, :k]) ** 2, axis=-1))
    off = (error[x] + error[y])[..., None]
    low = np.maximum(lengths - off, 0.0) ** 2 / (1.0 + skewness[:k])
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(skewness[:k] < 1.0, (lengths + off) ** 2 / (1.0 - skewness[:k]), np.inf)
    return 0.5 * low, 0.5 * high


def _halved_distances(given: NewRows, pairs: np.ndarray, model: KPCAModel) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on |phi(x) - phi(y)|^2 / 2 of pairs of rows (o, n, 2), rounding included: (o, n) each."""
    kernel, X = given.kernel, given.rows.all()
    diagonal = kernel.diagonal(X)
    x, y = pairs.reshape(-1, 2).T
    products = np.empty(len(x))
    step = 64  # of a block only the diagonal is needed
    for i in range(0, len(x), step):
        tile = slice(i, i + step)
        products[tile] = np.diagonal(kernel.block(X[x[tile]], X[y[tile]]))
    _, data = summarize(
        given.rows,
        shift=True,
        shift_by=model.shift,
        scale=False if model.scale is None else model.scale,
        randomness=Randomness(0),
    )
    error = kernel.entry_error(data, np.dtype(np.float64)) or 0.0
    off = 2.0 * error + 4.0 * EPS * (diagonal[x] + diagonal[y])
    halves = 0.5 * (diagonal[x] + diagonal[y]) - products
    low, high = (np.maximum(halves + sign * off, 0.0).reshape(pairs.shape[:2]) for sign in (-1.0, 1.0))
    return low, high


def _upper_bounds(spectrum: KPCAModel, k: int, bound: float, delta: float) -> np.ndarray:
    """Upper bounds on s_1, ..., s_k, by the eigenvalue intervals of a sample."""
    failure, n = spectrum.failure_probability, spectrum.n_samples
    if failure >= delta:
        raise ValueError(
            f"the eigenvalue intervals of the spectrum fail with probability {failure:g}, which is more than "
            f"level={1.0 - 2.0 * delta:g} allows; give a level below {1.0 - 2.0 * failure:g}"
        )
    sums = np.cumsum(spectrum.eigenvalue_bounds[:k, 1]) / (n - 1)
    total = spectrum.total_variance_bounds[1]
    # components beyond those of the spectrum: their sum is at most the total
    sums = np.concatenate([np.minimum(sums, total), np.full(max(k - len(sums), 0), total)])
    return bound * upper_share(np.minimum(sums / bound, 1.0), n // 2, delta - failure)
