"""A model of normal rows with control limits: kernel and components are those that find most simulated faults.

Faults are simulated in rows that the components were not made of: a column moves, or loses its relation to the others,
or all columns move along a direction. Nothing here sees a fault of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..base.checks import check_count, check_flag, check_rng, check_share
from ..errors import ComponentsWarning, LimitsWarning, ScalesWarning, silenced
from ..kernels import Kernel, get_kernel, given_kernel
from ..model.monitoring.health import Facts
from ..model.monitoring.monitor import index_of
from ..model.monitoring.novelty import kpca_limits, squared_errors
from ..model.result import KPCAModel
from ..model.rows import new_rows
from ..rows.convert import as_rows
from ..rows.lags import lag_names, lagged, starts_of
from ..rows.summary import SAMPLE_ROWS
from ..rows.values import check_finite, complete
from .kpca import kpca
from .missing import check_columns, fit_and_fill

HELD_BACK = 3
"""The limits are made of one row in 3, held back from the fit."""
NUMBERS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 45, 60)
"""Numbers of components that are tried, for T^2 and for SPE."""
WIDTHS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Widths of the Gaussian kernel, as multiples of the median distance."""
MOST_ROWS = 1000
"""Rows that the choice is made from at most."""
FEWEST_ROWS = 16
"""Rows that the choice needs at least: each half of them is to have components."""
FAULTS = 4000
RATES = np.array([1.0, 0.5, 2.0, 4.0])
"""Rates of false alarms over the required one; a mean over several rates varies less from draw to draw."""
SIZES = 0.5, 5.0
"""Smallest and largest simulated shift, in standard deviations of a column."""
AS_GOOD = 0.03
"""Difference in the fraction of faults found up to which the simpler model is taken."""
RIDGE = 1e-6
"""Ridge of a correlation matrix: it has an inverse even where a column is the sum of others."""


class Choice(NamedTuple):
    """Kernel and numbers of components that find most simulated faults.

    Attributes
    ----------
    kernel : Kernel
    c : int or float or None
        As for ``kpca``: what was given, or the number of components of T^2.
    spe_components : int or None
        Number of components beyond which SPE is measured; None: all of the model.
    text : str
        What was chosen, and how much it finds.
    """

    kernel: Kernel
    c: int | float | None
    spe_components: int | None
    text: str

    def kept_by(self, model: KPCAModel) -> KPCAModel:
        """The model of ``kpca`` with this kernel and c, which says what was chosen."""
        b = self.spe_components
        fewer = b is not None and b < model.n_components
        return replace(model, spe_components=b if fewer else None, info=model.info | {"chosen": self.text})


def kpca_baseline(
    X: Any,
    kernel: Any = None,
    c: int | float | None = None,
    *,
    confidence: float = 0.99,
    standardize: bool = True,
    lags: int = 0,
    fill_missing: bool = False,
    rng: Any = 0,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
    **kernel_parameters: Any,
) -> KPCAModel:
    """Model of normal rows with control limits, for ``kpca_monitor``; what is not given is chosen to find faults.

    Parameters
    ----------
    X : array_like (N, d)
        Rows of normal operation. A third of them, drawn at random, at most 4096, are held back for the limits.
    kernel : str, Kernel or callable, optional
        By default linear, or Gaussian with a width that is chosen, too.
    c : int or float, optional
        Number of components, or the fraction of the variance that they explain, of both T^2 and SPE. By default T^2 and
        SPE get numbers of their own: the model's ``spe_components`` may be smaller than its ``n_components``.
    confidence : float
        Fraction of normal rows below both limits.
    standardize : bool
        As for ``kpca``.
    lags : int
        Rows before each one whose columns are further columns of it, so that faults in the dynamics show. X is then in
        the order of time; where the times that index a data frame have gaps, and at its beginning, rows are left out.
        The last third of the rows is held back. ``kpca_monitor`` does the same to new rows.
    fill_missing : bool
        Whether X may have missing values (NaN): the model fills them (``kpca_fill``) and is made of the filled rows, in
        turns, until both agree, at most 20 times; ``info["filled"]`` tells how many. Rows without missing values alone
        are held back for the limits: those that were made to fit lie nearer to the model.
    rng : int, Generator, SeedSequence or None
        Random numbers for the rows that are held back, and for the simulated faults.
    n_threads : int, optional
    progress : bool or callable
    **kernel_parameters
        Parameters of the kernel by name.

    Returns
    -------
    KPCAModel
        With ``limits``; ``info["chosen"]`` says what was chosen, and how many simulated faults it finds.

    Raises
    ------
    ValueError, TypeError
        As ``kpca`` and ``kpca_limits``; or there are fewer than three rows.

    Notes
    -----
    The candidates are the linear kernel and Gaussians of 1, 2, 4, 8 and 16 times the median distance, each with several
    numbers of components for T^2 and for SPE. Each is fitted to a half of (at most 1000 of) the rows of the fit, and
    gets joint limits of the other half. In rows of that half faults are simulated: a column moves by 0.5 to 5 standard
    deviations, up or down; takes the value that it has in another row, so that it is stuck, or has nothing to do with
    the other columns. Or the row moves as far along a random direction. The criterion is the fraction of these faults
    beyond a limit, averaged over 0.5, 1, 2 and 4 times the rate of false alarms that is asked for.

    The candidates within one standard error of the best, or within 0.03, count as equal. Among these the linear kernel
    is preferred, with SPE beyond q components, the number of common factors. Divide each column by the standard
    deviation of its residual in a regression on the other columns (Guttman): q eigenvalues of the covariance matrix are
    larger than those of the same columns after each was permuted by itself (Horn). SPE is then the distance from what
    columns share, in which each column counts alike. T^2 of all components is the Mahalanobis distance, in which a
    column counts the more, the better the others tell it. Faults of a noisy column show in the first, those of a quiet
    one in the second.

    The rows that are held back have no part in the choice, so that the rate of false alarms is kept.

    Guttman, Some necessary conditions for common-factor analysis, Psychometrika 1954; Horn, A rationale and test for
    the number of factors in factor analysis, Psychometrika 1965.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((900, 2)) @ rng.standard_normal((2, 6)) + 0.1 * rng.standard_normal((900, 6))
    >>> model = fk.kpca_baseline(X)
    >>> model.info["chosen"].split(":")[0]
    'linear kernel, T2 of 6 components, SPE beyond 2'
    >>> wrong = X[:5].copy()
    >>> wrong[:, 3] += 2.0
    >>> fk.kpca_monitor(model, wrong).alarms.tolist()
    [0, 1, 2, 3, 4]
    """
    confidence = check_share(confidence, "confidence")
    if (isinstance(kernel, str) and kernel.rpartition(":")[2] == "precomputed") or getattr(kernel, "by_number", False):
        raise ValueError(
            "kpca_baseline simulates faults in the columns of rows, and a precomputed matrix has none; give it the rows"
        )
    missing = check_flag(fill_missing, "fill_missing")
    source = as_rows(X, missing=missing, at_least=3, purpose="kpca_baseline")
    if not missing:
        check_finite(source, purpose="kpca_baseline")
    lags = check_count(lags, "lags", least=0, most=source.n_samples - 1)
    rows, names = source.all(), source.names
    if lags:
        rows, known = lagged(rows, lags, starts_of(index_of(X, "row")[1], len(rows)))
        rows, names = rows[known], names and tuple(lag_names(names, lags))
    check_columns(np.isnan(rows))
    generator, whole = check_rng(rng), complete(as_rows(rows, missing=True))
    held = held_back(whole, generator, lags)
    if held.sum() < 1:
        raise ValueError(
            f"{whole.sum()} rows without missing values, and as many before them as lags= says, are too "
            "few to hold a third back for limits; give more rows"
        )
    given = None if kernel is None and not kernel_parameters else given_kernel(kernel, kernel_parameters, kpca_baseline)
    if given is not None and names is not None:
        given = given.numbered(names)
    return fit_with_limits(
        rows[~held],
        rows[held],
        given,
        c,
        confidence=confidence,
        runs=Facts(source).run,
        lags=lags,
        fill_missing=missing,
        rng=generator,
        names=names,
        standardize=check_flag(standardize, "standardize"),
        n_threads=n_threads,
        progress=progress,
    )


def fit_with_limits(
    X: Any,
    held: Any,
    kernel: Kernel | None,
    c: int | float | None,
    *,
    confidence: float,
    runs: np.ndarray,
    lags: int,
    fill_missing: bool,
    rng: np.random.Generator,
    names: Sequence[str] | None,
    return_scores: bool = True,
    out: Any = None,
    progress: Any = False,
    **options: Any,
) -> KPCAModel:
    """The model of ``kpca_baseline``, of rows X with limits of the rows ``held``; ``options`` are those of ``kpca``.

    ``runs``: longest runs of equal values among all rows in their order, of columns before ``lags``. Those held back
    are every third row or fewer.
    """
    whole = X
    if fill_missing:
        rows = as_rows(X, missing=True)
        known = complete(rows)
        whole = X if known.all() else rows.all()[known]
    choice = choose(whole, kernel, c, confidence, rng, options["standardize"])

    def fit(X: Any, *, return_scores: bool = False, **more: Any) -> KPCAModel:
        with silenced(*[ComponentsWarning] * (c is None)):  # nobody asked for more
            return choice.kept_by(kpca(X, choice.kernel, choice.c, return_scores=return_scores, **options, **more))

    last: dict[str, Any] = {"return_scores": return_scores, "out": out, "progress": progress}
    model = fit_and_fill(X, fit, **last) if fill_missing else fit(X, **last)
    if lags:
        model.info["lags"] = lags
    model = replace(model, feature_names=None if names is None else tuple(names))
    threads = options.get("n_threads")
    limits = kpca_limits(model, held, confidence=confidence, joint=True, n_threads=threads, progress=progress)
    return model.with_limits(limits if limits.runs is None else replace(limits, runs=np.tile(runs, lags + 1) * 1.0))


def held_back(whole: np.ndarray, rng: np.random.Generator, lags: int = 0) -> np.ndarray:
    """True for the rows that limits are made of: a third of the ``whole`` ones at random, at most 4096; the last ones
    where rows hold those before them, which else would be in the fit."""
    held, n = np.zeros(len(whole), dtype=bool), int(whole.sum())
    count = min(n // HELD_BACK, SAMPLE_ROWS)
    held[np.flatnonzero(whole)[np.arange(n)[n - count :] if lags else rng.permutation(n)[:count]]] = True
    return held


def choose(
    X: Any, kernel: Kernel | None, c: int | float | None, confidence: float, rng: np.random.Generator, standardize: bool
) -> Choice:
    """The candidate that finds most simulated faults; the simpler one of two that find as many."""
    rows = as_rows(X)
    n, d = rows.n_samples, rows.n_features
    few = rows.shifted(np.zeros(d)).take(np.sort(rng.choice(n, min(n, MOST_ROWS), replace=False)))
    few = few[rng.permutation(len(few))]
    varies = len(few) >= FEWEST_ROWS and len(np.unique(few, axis=0)) >= FEWEST_ROWS
    if not varies or not (kernel is None or kernel.takes_points):
        what = "too few that differ" if not varies else "not of coordinates"
        number = max(1, min(d, len(few) // 4)) if c is None else c
        kernel = get_kernel("linear") if kernel is None else kernel
        return Choice(kernel, number, None, f"{n} rows, {what}, to choose by simulated faults: {kernel!r}")
    candidates = _candidates(kernel, few, c, standardize)
    found: dict[tuple[int, int, int], list[np.ndarray]] = {}
    halvings = int(np.clip(np.ceil(MOST_ROWS / 2 / len(few)), 1, 5))
    for _ in range(halvings):
        half = rng.permutation(len(few)) % 2 == 0
        for train, test in ((few[half], few[~half]), (few[~half], few[half])):
            faults = simulated(test, FAULTS // (2 * halvings), rng)
            rates = np.clip(RATES * (1.0 - confidence), 1.0 / (len(test) + 1.0), 0.5)
            for j, candidate in enumerate(candidates):
                for numbers, p in _p_values(candidate, train, test, faults, c, standardize):
                    found.setdefault((j, *numbers), []).append(p[:, None] <= rates)
    parts = max(map(len, found.values()))
    keys = [key for key, values in found.items() if len(values) == parts]  # which every half has
    hits = np.array([np.concatenate(found[key]) for key in keys])
    score = hits.mean(axis=2)
    best = int(score.mean(axis=1).argmax())
    apart = score - score[best]
    near = -apart.mean(axis=1) <= np.maximum(AS_GOOD, apart.std(axis=1) / np.sqrt(apart.shape[1]))
    linear = np.array([candidates[j].is_linear for j, *_ in keys])
    shared = _shared(few, rng)
    simple = near & linear
    by_shared = simple & (np.array([b for *_, b in keys]) == shared)
    chosen = by_shared if by_shared.any() else simple if simple.any() else near
    best = int(np.where(chosen, score.mean(axis=1), -1.0).argmax())
    j, of_t2, of_spe = keys[best]
    rate = float(hits[best, :, 0].mean())
    kernel = candidates[j]
    how = f"T2 of {of_t2} components, SPE beyond {of_spe}" if of_spe < of_t2 else f"{of_t2} components"
    name = "linear kernel" if kernel.is_linear else f"{kernel!r}"
    text = f"{name}, {how}: finds {100 * rate:.0f} % of simulated faults at {100 * (1 - confidence):.3g} % false alarms"
    return Choice(kernel, of_t2 if c is None else c, of_spe if c is None else None, text)


def simulated(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Rows with a fault each: half have a column that moved, a quarter one that is as in another row, and a quarter
    have moved along a direction."""
    n, d = rows.shape
    faults, i = rows[rng.integers(0, n, count)], np.arange(count)
    column, kind, spread = i % d, rng.integers(0, 4, count), rows.std(axis=0)
    size = np.exp(rng.uniform(np.log(SIZES[0]), np.log(SIZES[1]), count)) * rng.choice([-1.0, 1.0], count)
    faults[i, column] += np.where(kind < 2, size * spread[column], 0.0)
    other, along = kind == 2, kind == 3
    faults[i[other], column[other]] = rows[rng.integers(0, n, other.sum()), column[other]]
    directions = rng.standard_normal((int(along.sum()), d))
    directions *= (size[along] / np.linalg.norm(directions, axis=1))[:, None]
    faults[along] += directions * spread
    return faults


def _candidates(kernel: Kernel | None, rows: np.ndarray, c: Any, standardize: bool) -> list[Kernel]:
    """The kernels to choose from: the one that is given, with several widths where it is Gaussian and has none."""
    # all linear components leave no SPE
    linear = [get_kernel("linear")] if kernel is None and (c is None or c < rows.shape[1]) else []
    kernel = get_kernel("gaussian") if kernel is None else kernel
    if kernel.unguarded() != get_kernel("gaussian").unguarded():
        return [kernel]
    sigma = _quiet(rows, kernel, 1, standardize).kernel.get_parameters()["sigma"]
    return [*linear, *(get_kernel("gaussian", sigma=w * sigma) for w in WIDTHS)]


def _quiet(rows: np.ndarray, kernel: Kernel, c: Any, standardize: bool) -> KPCAModel:
    with silenced(ComponentsWarning, LimitsWarning, ScalesWarning):
        return kpca(rows, kernel, c, standardize=standardize, return_scores=False)


def _p_values(
    kernel: Kernel, train: np.ndarray, test: np.ndarray, faults: np.ndarray, c: Any, standardize: bool
) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """((components of T^2, of SPE), the rate of false alarms from which on each fault is found)."""
    most = max(1, min(NUMBERS[-1], len(train) // 4, train.shape[1] if kernel.is_linear else len(train)))
    model = _quiet(train, kernel, most if c is None else c, standardize)
    of_test, of_faults = _statistics(model, test), _statistics(model, faults)
    last, n = model.n_components, len(test)
    whole = kernel.is_linear and last >= train.shape[1]  # which leaves no SPE
    numbers = [k for k in NUMBERS if k < last] + [last] if c is None else [last]
    ranks = [
        {k: (_from_top(a[:, k], a[:, k]), _from_top(a[:, k], b[:, k]) + 1) for k in numbers}
        for a, b in zip(of_test, of_faults)
    ]
    for of_t2 in numbers:
        for of_spe in numbers:
            if of_spe > of_t2 or (whole and of_spe == last and c is None and last > 1):
                continue
            own, other = (np.minimum(x, y) for x, y in zip(ranks[0][of_t2], ranks[1][of_spe]))
            below = np.searchsorted(np.sort(own), other, side="left")
            yield (of_t2, of_spe), (1.0 + below) / (n + 1.0)


def _statistics(model: KPCAModel, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(T^2, SPE) of rows for every number of components from 0, shape (m, c + 1) each."""
    errors = squared_errors(model, new_rows(model, X), None, None, False)
    squares = errors.scores**2
    none = np.zeros((len(X), 1))
    beyond = np.cumsum(np.hstack([none, squares[:, ::-1]]), axis=1)[:, ::-1]
    return np.cumsum(np.hstack([none, squares / model.latent]), axis=1), errors.spe[:, None] + beyond


def _from_top(values: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Number of the values that are at least as large, for each of ``of``."""
    return np.asarray(len(values) - np.searchsorted(np.sort(values), of, side="left"))


def _shared(rows: np.ndarray, rng: np.random.Generator) -> int:
    """Number of common factors of the columns by parallel analysis; 1 at least.

    Each column is divided by the standard deviation of its residual in a regression on the other columns. Counted are
    the eigenvalues of the covariance matrix above the largest one of the same columns, each permuted by itself.
    """
    rows = rows[:, rows.std(axis=0) > 0]

    def eigenvalues(X: np.ndarray) -> np.ndarray:
        R = np.atleast_2d(np.corrcoef(X.T)) + RIDGE * np.eye(X.shape[1])
        unit = np.sqrt(np.diagonal(np.linalg.inv(R)))
        return np.linalg.eigvalsh(R * unit * unit[:, None])

    alone = np.column_stack([rng.permutation(column) for column in rows.T])
    return max(1, int(np.sum(eigenvalues(rows) > eigenvalues(alone)[-1])))
