"""New rows under the control limits of a model: T^2, SPE, alarms, and the columns behind each alarm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...base.caching import cached_property
from ...base.checks import check_flag, is_number
from ...base.progress import Progress
from ...rows.columns import check_same_columns
from ...rows.convert import as_rows, run_query
from ...rows.foreign import named_columns
from ...rows.lags import lagged, starts_of
from ...rows.times import row_labels
from ..limits import Limits
from ..notebook import Reported
from ..projector import finite
from ..result import KPCAModel, check_model
from ..rows import new_rows
from .contributions import Contributions, foremost, kpca_contributions
from .fill import kpca_fill
from .health import Finding, kpca_health, warn_of
from .novelty import kpca_limits, squared_errors, t_squared
from .run import RUN_RATE, run_evidence

OF_FILLED = "SPE is the least that values there could give, T2 that of the filled row"


@dataclass(frozen=True, eq=False, repr=False)
class Monitored(Reported):
    """New rows under the control limits of a model.

    Attributes
    ----------
    model : KPCAModel
        The model, with the limits that were used.
    t2, spe : ndarray (m,)
        Statistics of each row; NaN where a model of lagged rows needs more rows before it.
    labels : ndarray (m,)
        What the rows are called: times, names, or their numbers.
    label_name : str
        What ``labels`` are, as in "time".
    filled : ndarray (m,) or None
        Number of missing values that the model filled, of each row; None where it was not asked to fill.
    health : tuple of Finding
        What is wrong with columns, or with the times of the rows: dead and stuck sensors, clocks, gaps.
    """

    model: KPCAModel
    t2: np.ndarray
    spe: np.ndarray
    labels: np.ndarray
    label_name: str
    filled: np.ndarray | None
    health: tuple[Finding, ...]
    _X: Any = field(repr=False)

    @property
    def limits(self) -> Limits:
        """The control limits."""
        assert self.model.limits is not None
        return self.model.limits

    @property
    def beyond(self) -> np.ndarray:
        """True where T^2 (column 0) or SPE (column 1) is beyond its limit, shape (m, 2)."""
        return np.column_stack([self.t2, self.spe]) > [self.limits.t2, self.limits.spe]

    @property
    def alarms(self) -> np.ndarray:
        """Numbers of the rows beyond a limit, from 0."""
        return np.flatnonzero(self.beyond.any(axis=1))

    @cached_property
    def run_evidence(self) -> np.ndarray | None:
        """Evidence after each row that the whole run is unlike the normal rows, shape (m,); 100 and more is an alarm.

        If the rows of the limits and these are exchangeable, fewer than 1 % of runs ever reach 100, at any length
        (`fastkpca.model.run`). None where the limits keep no rows that the model had not seen, and for models of lagged
        rows, which hold each other.
        """
        kept = self.limits.calibration
        if kept is None or self.limits.of_training or self.model.lags:
            return None
        return run_evidence(kept[kept[:, 2] > 0, :2], np.column_stack([self.t2, self.spe]))

    @property
    def run_alarm(self) -> int | None:
        """Number of the first row whose ``run_evidence`` is an alarm, from 0; None: there is none."""
        raised = np.zeros(0) if self.run_evidence is None else np.flatnonzero(self.run_evidence >= 1.0 / RUN_RATE)
        return int(raised[0]) if len(raised) else None

    def of_values(self) -> Monitored:
        """The rows that have a T^2 and an SPE, without ``filled``: all, but for a model of lagged rows."""
        known = np.flatnonzero(np.isfinite(self.t2))
        if len(known) == len(self.t2):
            return self
        some = {name: vars(self)[name][known] for name in ("t2", "spe", "labels")}
        return replace(self, **some, filled=None, _X=as_rows(self._X, missing=True).all()[known])

    def contributions(self, rows: Any = None, *, progress: bool | Progress = False) -> Contributions:
        """Contributions of the columns to the SPE of each row that is beyond its limit, to the T^2 of the others.

        ``rows``: their numbers; all alarms by default. ``statistic`` of the result is "spe or t2" where rows of both
        kinds are among them. It costs 43 SPE for each row and column.
        """
        index = self.alarms if rows is None else np.asarray(rows, dtype=np.intp).reshape(-1)
        source = as_rows(self._X)
        X = source.shifted(np.zeros(source.n_features)).take(index)
        by_spe = self.spe[index] > self.limits.spe
        kinds = [("spe", np.flatnonzero(by_spe)), ("t2", np.flatnonzero(~by_spe))]
        parts = [
            kpca_contributions(self.model, X[chosen], statistic=statistic, progress=progress)
            for statistic, chosen in kinds
            if len(chosen)
        ]
        if not parts:
            none = np.zeros((0, self.model.n_features))
            return Contributions(none, none, none, "spe", np.zeros(0), self.model.feature_names)
        order = np.argsort(np.concatenate([chosen for _, chosen in kinds]))
        arrays: dict[str, Any] = {
            name: np.concatenate([vars(part)[name] for part in parts])[order]
            for name in ("contributions", "values", "of_rows")
        }
        arrays["given"] = X  # not shifted and back
        return replace(parts[0], statistic=" or ".join(part.statistic for part in parts), **arrays)

    def summary(self, n_alarms: int = 20, *, progress: bool | Progress = False) -> str:
        """Limits, how many rows are beyond one, and the first ``n_alarms`` of these with the columns behind them."""
        n, alarms = len(self.t2), self.alarms
        lines = [f"{'limits':<18}{self.limits}", f"{'rows':<18}{n}"]
        lines.append(f"{'alarms':<18}{len(alarms)} ({len(alarms) / n:.2%})")
        if self.run_evidence is not None:
            raised, most = self.run_alarm, float(self.run_evidence.max(initial=0.0))
            where = f"no alarm (evidence {most:.2g} of {1 / RUN_RATE:g})"
            if raised is not None:
                where = f"alarm at {self.label_name} {self.labels[raised : raised + 1].tolist()[0]}"
            less = f"fewer than {100 * RUN_RATE:g} % of runs of normal rows, of any length, raise it"
            lines.append(f"{'whole run':<18}{where}; {less}")
        first = alarms[:n_alarms]
        if len(first):
            marked = np.zeros(n, dtype=bool) if self.filled is None else self.filled > 0
            names = [f"{label}{'*' * bool(marked[i])}" for i, label in zip(first, self.labels[first].tolist())]
            width = max(len(self.label_name), *map(len, names))
            head = f"{self.label_name:>{width}}  {'T2':>10}  {'SPE':>10}  {'beyond':<6}  "
            lines += ["", head + "columns: how much of the statistic each alone takes off (its value -> the best one)"]
            found = self.contributions(first, progress=progress)
            for row, (i, text) in enumerate(zip(first, names)):
                values = f"{self.t2[i]:>10.4g}  {self.spe[i]:>10.4g}  {self.beyond_what(i):<6}"
                columns = ", ".join(columns_behind(found, row)) or "no column alone takes anything off"
                lines.append(f"{text:>{width}}  {values}  {columns}")
            if marked[first].any():
                lines.append(f"* with missing values, which the model filled: {OF_FILLED}")
        if len(alarms) > len(first):
            more = len(alarms) - len(first)
            lines.append(f"and {more} more; --alarms {len(alarms)} shows them, -o FILE.csv writes all")
        return "\n".join(lines)

    def beyond_what(self, row: int) -> str:
        """ "T2", "SPE", "T2+SPE" or "": which limits the row is beyond."""
        return "+".join(name for name, is_beyond in zip(("T2", "SPE"), self.beyond[row]) if is_beyond)

    def __repr__(self) -> str:
        return f"<Monitored: {len(self.alarms)} of {len(self.t2)} rows beyond the limits ({self.limits})>"


def columns_behind(found: Contributions, row: int) -> list[str]:
    """The first columns behind a row, each with the fraction that it takes off, its value and the best one."""
    share = found.fractions[row]
    return [
        f"{found.names[j]} {share[j]:.0%} ({found.given[row, j]:.4g} -> {found.values[row, j]:.4g})"
        for j in foremost(found, row)
        if round(100 * share[j])
    ]


def kpca_monitor(
    model: KPCAModel,
    X: Any,
    *,
    limits: Limits | float | None = None,
    labels: Any = None,
    label_name: str = "row",
    fill_missing: bool = False,
    diagonal: Any = None,
    health: Sequence[Finding] | None = None,
    n_threads: int | None = None,
    progress: bool | Progress = False,
) -> Monitored:
    """New rows under the control limits of a model: which are beyond them, and which columns are behind that.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d)
        As for ``kpca_project``.
    limits : Limits or float, optional
        Limits from ``kpca_limits``; or the fraction of normal rows below both limits, which are then made of what the
        model keeps. By default the limits that the model keeps (``model.with_limits``).
    labels : array_like (m,), optional
        What the rows are called: times, numbers or names. By default the index of a data frame that has another than
        0, 1, ..., or else the numbers of the rows, from 0.
    label_name : str
        What ``labels`` are, as in "time".
    fill_missing : bool
        Whether the model fills missing values (NaN), as by ``kpca_fill``. Otherwise they are an error.
    diagonal : array_like (m,), optional
        As for ``kpca_spe``.
    health : sequence of Finding, optional
        What ``kpca_health`` found in these rows, where that was asked already; by default it is asked here.
    n_threads : int, optional
    progress : bool or callable

    Returns
    -------
    Monitored

    Raises
    ------
    ValueError, TypeError
        The model keeps no limits and none are given; the numbers of labels and rows differ; or as ``kpca_spe`` and
        ``kpca_fill``.

    Warns
    -----
    HealthWarning
        Columns, or the times of the rows, say more about a sensor or a file than about the process.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> t = np.random.default_rng(0).uniform(-1, 1, (700, 1))
    >>> X = np.hstack([t, t**2, -t, 2 * t]) + 0.02 * np.random.default_rng(1).standard_normal((700, 4))
    >>> model = fk.kpca(X[:400], "gaussian", 5, sigma=4.0)
    >>> model = model.with_limits(fk.kpca_limits(model, X[400:], joint=True))
    >>> found = fk.kpca_monitor(model, [[0.5, 0.25, -0.5, 1.0], [0.5, 0.25, 0.9, 1.0]])
    >>> found.alarms.tolist(), found.contributions().largest.tolist()
    ([1], [2])
    """
    model, X = _with_limits(check_model(model), limits), run_query(X)
    label_name, labels = index_of(X, label_name) if labels is None else (label_name, labels)
    if health is None:
        health = kpca_health(X, model=model, labels=labels, label_name=label_name) if model.kernel.takes_points else ()
        warn_of(health)
    missing, filled = check_flag(fill_missing, "fill_missing"), None
    whole, known = _with_lags(model, X, labels, missing)
    X = whole if known is None else whole[known]
    if missing:
        filled = np.isnan(as_rows(X, missing=True).all()).sum(axis=1)
        if filled.any():
            X = kpca_fill(model, X, n_threads=n_threads, progress=progress)
    given = new_rows(model, X, purpose="kpca_monitor")
    errors = squared_errors(model, given, diagonal, n_threads, progress)
    t2 = finite(t_squared(model, errors.scores), "T^2", given.dtype)
    spe = finite(errors.spe, "SPE", given.dtype)
    if known is not None:
        t2, spe, filled = (_among_all(values, known) for values in (t2, spe, filled))
        X = whole if filled is None else _among_all(as_rows(X).all(), known)
    labels = np.arange(len(t2)) if labels is None else row_labels(labels, len(t2))
    if labels.dtype.kind == "M":  # finer ones become whole numbers in a list
        labels = labels.astype("datetime64[us]")
    return Monitored(model, t2, spe, labels, label_name, filled, tuple(health), X)


def _with_lags(model: KPCAModel, X: Any, labels: Any, missing: bool) -> tuple[Any, np.ndarray | None]:
    """(rows with those before them as further columns, where the model has such rows and X has not; which rows have as
    many before them, None: all)."""
    if not model.lags or not model.kernel.takes_points:
        return X, None
    rows = as_rows(X, missing=missing)
    if rows.n_features * (model.lags + 1) != model.n_features:
        return X, None
    check_same_columns(rows, rows.n_features, model.feature_names and model.feature_names[: rows.n_features])
    labels = None if labels is None else row_labels(labels, rows.n_samples)
    lags, known = lagged(rows.all(), model.lags, starts_of(labels, rows.n_samples))
    if not known.any():
        raise ValueError(
            f"the model needs {model.lags} rows before each one, and no row of X has them; give more rows in a row"
        )
    return lags, known


def _among_all(values: Any, known: np.ndarray) -> Any:
    """The values of the known rows, and NaN for the others."""
    if values is None:
        return None
    every = np.full((len(known), *values.shape[1:]), np.nan)
    every[known] = values
    return every


def _with_limits(model: KPCAModel, limits: Any) -> KPCAModel:
    """The model with the limits that are meant."""
    if is_number(limits):
        if model.limits is None or model.limits.calibration is None:
            raise ValueError(
                f"limits is {limits}, and the model keeps nothing to make limits of; give what kpca_limits(model, X, "
                "joint=True) returns for rows of normal operation"
            )
        limits = kpca_limits(model, confidence=float(limits), joint=True)
    if limits is not None:
        return model.with_limits(limits)
    if model.limits is None:
        raise ValueError(
            "the model keeps no limits; give limits=kpca_limits(model, X, joint=True) of rows of normal operation, or "
            "a model that keeps them (model.with_limits)"
        )
    return model


def index_of(X: Any, name: str) -> tuple[str, np.ndarray | None]:
    """(what they are, what the rows are called) by the index of a data frame that is not just 0, 1, ...; else None."""
    index: Any = getattr(X, "index", None)
    if named_columns(X) is None or not hasattr(index, "to_numpy") or type(index).__name__ == "RangeIndex":
        return name, None
    return str(index.name or name), index.to_numpy()
