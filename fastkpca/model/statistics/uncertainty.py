"""The bootstrap: confidence intervals for the population that the rows were drawn from.

The intervals of a model are *numerical*: they contain the eigenvalues of the matrix of these very rows. The intervals
here are statistical: confidence intervals for the eigenvalues that infinitely many rows would give.

Resampling rows changes the moments of the scores alone, and these are small: c x c numbers a group of rows. No kernel
value is computed again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

from ...base import parallel
from ...base.checks import check_count, check_draws, check_rng, is_number
from ...base.lapack import QUICK_ORDER
from ...base.progress import Progress
from ...base.protocol import Kernel
from ...products.vectors import centre
from ..projector import NewRows
from ..result import KPCAModel, check_model
from ..rows import rows_of
from .bootstrap import MAX_GROUPS, Sample, Statistics, resampled, score_pass

MIN_ROWS = 20
"""Rows, below which a bootstrap says nothing."""
ROWS_A_COMPONENT = 4
"""Rows for each component, at least."""
MIXED_SINE_SQUARED = 0.05
"""Expected squared sine of the angle by which sampling turns a component, from which on it is not separated."""
MOST_COPIES = 64
"""Copies of a row that a weight may stand for, on average."""


@dataclass(frozen=True, eq=False, repr=False)
class Uncertainty:
    """Bootstrap confidence intervals for the eigenvalues and components of the population.

    Attributes
    ----------
    latent : ndarray (k,)
        Variances of the components, as the rows have them.
    latent_interval : ndarray (k, 2)
        Confidence intervals for those of the population. Ends are infinite where one or two rows have all the variance.
    explained, cumulative : ndarray (k,)
        Percent of the total variance, of each component and of all up to it.
    explained_interval, cumulative_interval : ndarray (k, 2)
    angles : ndarray (k,)
        With the given confidence the largest angle (radians) between the space of the first j components and that of
        the population's is at most this. nan where the variance outside the model's components may hold one as large
        as the j-th.
    separated : ndarray (k,) of bool
        Whether a component can be told from the others of the model. Where not, its interval may miss.
    level : float
        Confidence of each interval by itself.
    n_bootstrap : int
    n_significant : int or None
        Leading components whose share of the variance is larger than with columns permuted; None: not tested.
    p_values : ndarray (k,) or None
        p-values of the permutation test, at least 1 / (n_permutations + 1).
    permuted : ndarray (k,) or None
        Percent of the variance that a component exceeds, where columns are permuted, with probability 1 - level.
    n_samples : int
    """

    latent: np.ndarray
    latent_interval: np.ndarray
    explained: np.ndarray
    explained_interval: np.ndarray
    cumulative: np.ndarray
    cumulative_interval: np.ndarray
    angles: np.ndarray
    separated: np.ndarray
    level: float
    n_bootstrap: int
    n_significant: int | None = None
    p_values: np.ndarray | None = None
    permuted: np.ndarray | None = None
    n_samples: int = 0

    def __repr__(self) -> str:
        low, high = self.explained_interval[0]
        real = "" if self.n_significant is None else f"; {self.n_significant} exceed permuted columns"
        outside = "" if low <= self.explained[0] <= high else " (few rows overrate the first components)"
        return (
            f"<Uncertainty: {len(self.latent)} components, {self.n_samples} rows; the first explains "
            f"{self.explained[0]:.3g} % of these rows' variance, and of the population's {low:.3g} to {high:.3g} % "
            f"with confidence {self.level:g}{outside}{real}>"
        )


def kpca_uncertainty(
    model: KPCAModel,
    X: Any = None,
    *,
    level: float = 0.95,
    n_bootstrap: int = 1000,
    n_permutations: int = 49,
    n_components: int | None = None,
    sample_weight: Any = None,
    rng: Any = 0,
    n_threads: int | None = None,
    progress: bool | Progress = False,
) -> Uncertainty:
    """Confidence intervals for a population's eigenvalues, explained variance and components; how many are real.

    Parameters
    ----------
    model : KPCAModel
        Model with a positive semidefinite kernel. Fit a few more components than you ask about: what is outside them is
        known in sum only.
    X : array_like (N, d), optional
        The training rows, as for ``kpca_project``. By default those that the model holds.
    level : float
        Confidence of each interval, between 0.5 and 1.
    n_bootstrap : int
        Resamples, from 100 to a million.
    n_permutations : int
        Number of permutations of the columns, a million at most, for the number of components; 0: no test.
    n_components : int, optional
        Number of leading components; by default at most 20.
    sample_weight : array_like (N,), optional
        Weights of the training rows, where the model does not hold their weights. A row of weight w counts w times.
    rng : int, Generator, SeedSequence or None
    n_threads : int, optional
    progress : bool or callable

    Returns
    -------
    Uncertainty

    Raises
    ------
    ValueError, TypeError
        The kernel is not positive semidefinite, or of a matrix; the rows are not those of the fit, or too few; or as
        ``kpca_project``.

    Notes
    -----
    Rows are drawn with replacement, and the moments of their scores over the model's components are decomposed again.
    Of more than 1024 rows, 1024 random groups are drawn instead, which have the same variance up to a few percent.
    Intervals are studentised (bootstrap-t), of the logarithm of an eigenvalue and the log-odds of a share, with the
    standard error by the influence function z^2 - lambda in every resample. This corrects for skewness and for the
    upward bias of large eigenvalues. For normal scores the bias of lambda_j is the sum over k unequal j of
    lambda_j lambda_k / (lambda_j - lambda_k) / N. Its terms with k outside the components are subtracted.

    The test for the number of components permutes each column on its own, which leaves the columns as they are and
    takes away what they have in common. A component counts while its share of the variance, and that of each before it,
    is among the largest of the same component's after permutation (Horn's parallel analysis). It uses at most 500 rows.

    Efron & Tibshirani, An introduction to the bootstrap, 1993, chapters 12 and 14. Beran & Srivastava, Bootstrap tests
    and confidence regions for functions of a covariance matrix, Annals of Statistics 1985. Hall & Hosseini-Nasab, On
    properties of functional principal components analysis, JRSS B 2006, for the expansions. Buja & Eyuboglu, Remarks on
    parallel analysis, Multivariate Behavioral Research 1992.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((500, 3)) * [3.0, 1.0, 0.5]
    >>> sure = fk.kpca_uncertainty(fk.kpca(X, "linear", 3), X, n_permutations=0)
    >>> bool(sure.latent_interval[0, 0] < 9.0 < sure.latent_interval[0, 1])
    True
    """
    model = check_model(model)
    k = _checked_components(model, level, n_components)
    n_bootstrap = check_draws(n_bootstrap, "n_bootstrap", least=100)
    n_permutations = check_draws(n_permutations, "n_permutations", least=0)
    generator = check_rng(rng)
    given = _given_rows(model, X, sample_weight)
    threads = parallel.threads_for(given.kernel, n_threads)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        over = score_pass(model, given, k, int(generator.integers(2**63)))
        sample = Sample(given.rows.reduce(over, n_threads=threads, progress=report), model.center)
        _check_same(model, sample)
        drawn = resampled(sample, n_bootstrap, int(generator.integers(2**63)), threads, report)
        result = _intervals(sample, drawn, float(level))
        if n_permutations and given.rows.n_features > 1:
            tested = _tested(given, model.center, k, float(level), n_permutations, generator, threads, report)
            result = replace(result, **tested)
    return replace(result, n_samples=given.rows.n_samples)


def check_level(level: Any) -> float:
    """The confidence of an interval; ValueError where it is none."""
    if not (is_number(level) and 0.5 <= level < 1):
        raise ValueError(f"level is {level!r}; a number from 0.5 to below 1 is needed, as in 0.95")
    return float(level)


def _checked_components(model: KPCAModel, level: Any, n_components: Any) -> int:
    """Number of components of the result."""
    kernel = model.kernel
    if not kernel.takes_points:
        raise ValueError(f"{kernel!r} has no rows of coordinates to draw; fit with a kernel on the rows themselves")
    if not kernel.positive_semidefinite:
        raise ValueError(
            f"{kernel!r} is not positive semidefinite: its components have no variance in a population; take a kernel "
            "that is"
        )
    check_level(level)
    most = min(model.n_components, max(1, int(model.count / ROWS_A_COMPONENT)))
    k = min(most, 20) if n_components is None else check_count(n_components, "n_components")
    if k > model.n_components:
        raise ValueError(f"n_components is {k}; the model has {model.n_components}")
    if k > most:
        raise ValueError(f"n_components is {k}; {model.count:.6g} rows tell of {most} at most")
    return k


def _given_rows(model: KPCAModel, X: Any, sample_weight: Any) -> NewRows:
    if X is not None and sample_weight is None:
        sample_weight = model.sample_weight
        if sample_weight is None and model.weight_sum is not None:
            raise ValueError(
                "this model was made of weighted rows and does not hold their weights; give sample_weight="
            )
    given = rows_of(model, X, purpose="kpca_uncertainty", sample_weight=sample_weight)
    rows = given.rows
    if rows.n_samples < MIN_ROWS:
        raise ValueError(f"{rows.n_samples} rows are too few for a bootstrap; give at least {MIN_ROWS}")
    if rows.weights is not None and np.ceil(rows.weights).sum() > MOST_COPIES * max(rows.n_samples, MAX_GROUPS):
        raise ValueError(
            "the weights stand for too many copies of the rows; a weight counts a row so many times here: scale the "
            "weights so that their sum is the number of observations"
        )
    return given


def _check_same(model: KPCAModel, sample: Sample) -> None:
    """ValueError where these cannot be the rows that the model was made of."""
    n, variances = sample.n, sample.latent
    if abs(n - model.count) > 1e-6 * model.count:
        raise ValueError(
            f"X counts {n:.6g} rows, and the model was made of {model.count:.6g}; give the rows that it was fitted on"
        )
    k = len(variances)
    width = (model.eigenvalue_bounds[:k, 1] - model.eigenvalue_bounds[:k, 0]) / (n - sample.center)
    off = np.abs(variances - model.latent[:k]) > width + 1e-3 * model.latent[0]
    if off.any():
        j = int(np.argmax(off))
        raise ValueError(
            f"component {j + 1} has the variance {variances[j]:.4g} in these rows and {model.latent[j]:.4g} in the "
            "model; give the rows that it was fitted on (rows of another sample cannot tell how sure this one is)"
        )


def _intervals(sample: Sample, drawn: Statistics, level: float) -> Uncertainty:
    """Bootstrap-t: estimate - standard error * quantiles of (resample - estimate) / (its own standard error)."""
    estimate = sample.statistics(np.ones((1, len(sample.sums.weight))))
    miss, k = 0.5 * (1.0 - level), drawn.axes.shape[-1]
    t = (drawn.parameters - estimate.parameters) / drawn.errors
    # order statistics of t and the t of the truth, which is one more of them
    low, high = np.quantile(t, [1.0 - miss, miss], axis=0, method="weibull")
    n = sample.n
    # the degrees of freedom that mean and axes took from the influences, as for other sandwich estimates
    errors = estimate.errors[0] * np.sqrt(n / (n - k - 1.0))
    centre = estimate.parameters[0] - sample.outside_bias()
    ends = np.stack([centre - low * errors, centre - high * errors], axis=-1)
    shares, intervals = _percent(estimate.parameters[0, 1:]), _percent(ends[1:])
    angles, mixed = _angles(drawn, sample, level)
    with np.errstate(over="ignore"):  # an end is infinite where nothing bounds it: one row has all the variance
        variances = np.exp(ends[0])
    return Uncertainty(
        latent=sample.latent,
        latent_interval=variances * (n / (n - sample.center)),
        explained=shares[0],
        explained_interval=intervals[0],
        cumulative=shares[1],
        cumulative_interval=intervals[1],
        angles=angles,
        separated=mixed < MIXED_SINE_SQUARED,
        level=level,
        n_bootstrap=len(drawn.axes),
    )


def _percent(log_odds: np.ndarray) -> np.ndarray:
    return 100.0 * scipy.special.expit(log_odds)


def _angles(drawn: Statistics, sample: Sample, level: float) -> tuple[np.ndarray, np.ndarray]:
    """(quantiles of the angle between the leading spaces of a resample and the sample, expected squared sine of the
    angle by which sampling turns each component)."""
    k = drawn.axes.shape[-1]
    turned = sample.axes.T @ drawn.axes
    outside = sample.outside_turn()
    within = np.zeros(k)
    for j in range(1, k):
        sines = np.linalg.norm(turned[:, j:, :j], 2, axis=(1, 2))
        within[j - 1] = np.quantile(sines, level, method="weibull") ** 2
    squared = within + np.cumsum(outside)
    angles = np.where(np.isfinite(squared), np.arcsin(np.sqrt(np.minimum(squared, 1.0))), np.nan)
    return angles, (1.0 - np.diagonal(turned, axis1=1, axis2=2) ** 2).mean(axis=0) + outside


def _tested(
    given: NewRows,
    center: bool,
    k: int,
    level: float,
    n_permutations: int,
    rng: np.random.Generator,
    n_threads: int,
    progress: Any,
) -> dict[str, Any]:
    """Shares of the variance of the leading components of some rows, and of these with their columns permuted."""
    rows = given.rows
    counts = 1 if rows.weights is None else np.ceil(rows.weights).astype(np.intp)
    copies = np.repeat(np.arange(rows.n_samples), counts)
    # each permutation is a dense eigenproblem
    numbers = np.sort(rng.choice(copies, min(len(copies), QUICK_ORDER), replace=False))
    X = rows.take(numbers)
    k = min(k, len(X) - 1)
    seeds = rng.integers(2**63, size=n_permutations)

    def task(i: int) -> np.ndarray:
        if i == 0:
            return _leading_shares(given.kernel, X, k, center)
        of_task = np.random.default_rng(seeds[i - 1])
        mixed = np.column_stack([of_task.permutation(column) for column in X.T])
        return _leading_shares(given.kernel, mixed, k, center)

    run = parallel.run(task, len(seeds) + 1, n_threads=n_threads, progress=progress, stage="permutations")
    observed, *permuted = run
    larger = (np.array(permuted) >= observed).sum(axis=0)
    p_values = (1.0 + larger) / (len(seeds) + 1.0)
    real = p_values <= 1.0 - level + 1e-12
    return {
        "n_significant": int(np.argmin(real)) if not real.all() else len(real),
        "p_values": p_values,
        "permuted": 100.0 * np.quantile(permuted, level, axis=0, method="higher"),
    }


def _leading_shares(kernel: Kernel, X: np.ndarray, k: int, center: bool) -> np.ndarray:
    K = np.array(kernel.block(X, X), dtype=np.float64)
    if center:
        centre(K)
    trace = float(np.trace(K))
    if not trace > 0.0:
        return np.zeros(k)
    # all of them: asked for a few of many equal ones (wide rows, small sigma), LAPACK may fail
    values = scipy.linalg.eigvalsh(0.5 * (K + K.T), overwrite_a=True, check_finite=False)
    return values[: -k - 1 : -1] / trace
