"""Contributions of the columns to a row's SPE or T^2: they show which columns make the row unusual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...base import parallel
from ...base.checks import check_choice
from ...base.differences import DIFFERENCE_STEP
from ...base.progress import Progress
from ...base.protocol import Kernel
from ...base.rounding import EPS
from ...rows.columns import column_labels, listed
from ...rows.view import Rows
from ..limits import N_QUANTILES
from ..projector import NewRows, finite, scores_of
from ..result import KPCAModel, check_model
from ..rows import known_rows, new_rows
from .novelty import squared_errors, t_squared

Statistic: TypeAlias = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """Part of a row's SPE or T^2 that each of its columns is responsible for.

    Attributes
    ----------
    contributions : ndarray (m, d)
        By how much the statistic falls where this column alone takes the best value within its range. At least zero.
    values : ndarray (m, d)
        That value, in the units of X: for a single faulty column, an estimate of what it should have been.
    given : ndarray (m, d)
        The values of the rows as they are.
    statistic : str
        "spe" or "t2"; of ``Monitored.contributions`` "spe or t2" where rows of both kinds are among them.
    of_rows : ndarray (m,)
        The statistic of the rows as they are.
    feature_names : tuple of str or None
        Names of the columns, as the model has them.
    """

    contributions: np.ndarray
    values: np.ndarray
    given: np.ndarray
    statistic: str
    of_rows: np.ndarray
    feature_names: tuple[str, ...] | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns; "column 0" and so on where there are none."""
        return column_labels(self.feature_names, self.contributions.shape[1])

    @property
    def fractions(self) -> np.ndarray:
        """The contributions over the statistic of their row, shape (m, d)."""
        return self.contributions / np.maximum(np.abs(self.of_rows), np.finfo(float).tiny)[:, None]

    @property
    def largest(self) -> np.ndarray:
        """Number of the column that contributes most, for each row: shape (m,); -1 where none alone takes anything off,
        as where the row is far out in several columns."""
        some = self.contributions.max(axis=1) > np.sqrt(EPS) * np.abs(self.of_rows)  # what is less may be rounding
        return np.where(some, np.argmax(self.contributions, axis=1), -1)

    def ranking(self, row: int = 0) -> np.ndarray:
        """Numbers of the columns, the one that contributes most to this row first, shape (d,)."""
        return np.argsort(-self.contributions[row], kind="stable")

    def __repr__(self) -> str:
        m, d = self.contributions.shape
        lines = [f"Contributions to {self.statistic}: {m} row{'s' * (m != 1)}, {d} column{'s' * (d != 1)}"]
        for row in range(min(m, 10)):
            parts = listed(f"{self.names[i]} {self.contributions[row, i]:.3g}" for i in foremost(self, row))
            share = f"of which {parts}" if self.largest[row] >= 0 else "and no column alone takes anything off"
            lines.append(f"row {row}: {self.statistic} {self.of_rows[row]:.3g}, {share}")
        return "\n".join(lines + [f"and {m - 10} more rows"] * (m > 10))


def foremost(found: Contributions, row: int) -> np.ndarray:
    """The first three columns of a row's ``ranking``, or fewer: those that one line of text names."""
    return found.ranking(row)[:3]


def kpca_contributions(
    model: KPCAModel,
    X: Any,
    *,
    statistic: str = "spe",
    train: Any = None,
    n_threads: int | None = None,
    progress: bool | Progress = False,
) -> Contributions:
    """Reconstruction-based contributions of the columns to SPE or T^2: they show which columns make rows unusual.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d)
        As for ``kpca_project``: one row or more, best those that ``kpca_limits`` flags.
    statistic : {"spe", "t2"}
    train : array_like (n, d), optional
        Rows of normal operation: each column is moved within its range in them. By default the calibration rows of
        the limits that the model keeps (``model.with_limits``), or else the training rows or pivots that it holds.
    n_threads : int, optional
        Default: all processors. Results do not depend on it.
    progress : bool or callable

    Returns
    -------
    Contributions

    Raises
    ------
    ValueError, TypeError
        The kernel has no columns (a precomputed matrix, a list of objects); the model holds neither limits nor rows
        and ``train`` is not given; or as ``kpca_spe``.

    Notes
    -----
    The contribution of column p to the SPE of a row x is what a change of this column alone takes off it::

        c_p = SPE(x) - min_t SPE(x with t in place of x_p),

    the same for T^2: the reconstruction-based contribution of Alcala & Qin, Reconstruction-based contribution for
    process monitoring with kernel principal component analysis, Industrial & Engineering Chemistry Research 2010. They
    find t by the zero of the derivative. Here the minimum is searched by values, within the range of the column: at 17
    quantiles of ``train``, then by a golden section between the neighbours of the best one. Far from all training rows,
    where a Gaussian kernel and its derivative vanish, this still finds it, and it needs no derivative of the kernel.
    For a linear kernel the result is (u' M x)^2 / (u' M u), if the best value lies within the range. Here u is the unit
    vector of the column, x is measured from the mean, and M = I - P P' for SPE, P diag(1 / latent) P' for T^2.

    Columns that go together with a faulty one have a part of its contribution, and several faulty ones share it. T^2
    blames the right column for linear and polynomial kernels. With a kernel that vanishes at a distance T^2 is small
    far from all training rows, so that there "spe" is to be trusted. For a kernel that is not positive semidefinite
    SPE is no distance, and may mislead.
    It costs 43 SPE for each row and column.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> t = np.random.default_rng(0).uniform(-1, 1, (300, 1))
    >>> X = np.hstack([t, t**2, -t, 2 * t])
    >>> model = fk.kpca(X, "gaussian", 5, sigma=2.0)
    >>> which = fk.kpca_contributions(model, [[0.5, 0.25, 0.9, 1.0]], train=X)
    >>> which.largest.tolist(), bool(abs(which.values[0, 2] + 0.5) < 0.1)
    ([2], True)
    """
    check_choice(statistic, "statistic", ("spe", "t2"))
    model = check_model(model)
    tried = tried_values(model, train, "kpca_contributions")
    given = new_rows(model, X, purpose="kpca_contributions")
    of_rows = statistic_of(model, given.kernel, statistic, parallel.threads_for(given.kernel, n_threads))
    step, n = parallel.tile_rows(model.n_features**2, least=1), given.rows.n_samples
    parts = []
    with parallel.reporter(progress) as report, parallel.blas_threads():
        for start, rows in given.rows.tiles(step):
            which, columns = np.indices(rows.shape).reshape(2, -1)
            before, *least = least_along(of_rows, rows, which, columns, tried)
            parts.append((before, *(x.reshape(rows.shape) for x in least), rows))
            if report is not None:
                report("contributions", start + len(rows), n)
    before, lowest, values, rows = map(np.concatenate, zip(*parts))
    values, rows = model.in_units_of_rows(values), model.in_units_of_rows(rows)
    return Contributions(before[:, None] - lowest, values, rows, statistic, before, model.feature_names)


def tried_values(model: KPCAModel, train: Any, purpose: str) -> np.ndarray:
    """Quantiles of the columns of rows of normal operation, (17, d), in the model's coordinates."""
    if not model.kernel.takes_points:
        raise ValueError(
            f"{purpose} moves values of columns, and {model.kernel!r} has none: what it is given are not rows of "
            "coordinates; fit with a kernel on the rows themselves"
        )
    if train is None and model.limits is not None:
        train = model.limits.quantiles  # whose quantiles are they themselves
    rows = known_rows(model, train, purpose)
    if rows is None:
        raise ValueError(
            f"{purpose} needs the range of each column, and this model is a feature map, which holds no rows; give "
            "train=, the rows that it was fitted on, or limits (model.with_limits), which hold the ranges"
        )
    return np.quantile(rows.tile(0, len(rows)), np.linspace(0.0, 1.0, N_QUANTILES), axis=0)


def statistic_of(model: KPCAModel, kernel: Kernel, statistic: str, n_threads: int) -> Statistic:
    """The function from rows in the model's coordinates (n, d) to their SPE or T^2 (n,)."""
    if statistic == "t2":
        return lambda X: finite(t_squared(model, scores_of(model.projector, kernel, Rows(X), n_threads)), "T^2")
    float64 = np.dtype(np.float64)
    return lambda X: squared_errors(model, NewRows(kernel, Rows(X), float64), None, n_threads, False).spe


def least_along(
    of_rows: Statistic, rows: np.ndarray, which: np.ndarray, columns: np.ndarray, tried: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Search the least statistic of rows of which one column moves.

    Parameters
    ----------
    of_rows : function
        From rows in the model's coordinates (n, d) to their statistic (n,).
    rows : ndarray (n, d)
    which, columns : ndarray (e,)
        Each search is of this row, along this column.
    tried : ndarray (q, d)
        Rising values of each column; the search is from the first to the last of them.

    Returns
    -------
    before : ndarray (n,)
        The statistic of the rows as they are.
    least, values : ndarray (e,)
        What was found, at most that of the row as it is, and where.
    """
    step, e = parallel.tile_rows(rows.shape[1], least=1), np.arange(len(which))

    def at(values: np.ndarray) -> np.ndarray:
        parts = []
        for start in range(0, len(which), step):
            some = slice(start, start + step)
            moved = rows[which[some]]
            moved[np.arange(len(moved)), columns[some]] = values[some]
            parts.append(of_rows(moved))
        return np.concatenate(parts)

    before, tried = of_rows(rows), tried[:, columns]
    first = np.stack([at(values) for values in tried])
    best = first.argmin(axis=0)
    low, high = tried[np.maximum(best - 1, 0), e], tried[np.minimum(best + 1, len(tried) - 1), e]
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    left, right = high - golden * (high - low), low + golden * (high - low)
    of_left, of_right = at(left), at(right)
    # until the value is as near, over the distance between two quantiles, as numbers tell the least of a function
    for _ in range(int(np.ceil(np.log(DIFFERENCE_STEP) / np.log(golden)))):
        falls = of_left <= of_right
        low, high = np.where(falls, low, left), np.where(falls, right, high)
        new = np.where(falls, high - golden * (high - low), low + golden * (high - low))
        of_new = at(new)
        left, right = np.where(falls, new, right), np.where(falls, left, new)
        of_left, of_right = np.where(falls, of_new, of_right), np.where(falls, of_left, of_new)
    values = np.stack([rows[which, columns], tried[best, e], left, right])
    of_values = np.stack([before[which], first.min(axis=0), of_left, of_right])
    lowest = of_values.argmin(axis=0)
    return before, of_values[lowest, e], values[lowest, e]
