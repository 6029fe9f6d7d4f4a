"""Control limits of T^2 and SPE: what they are, what they were made from, and their place in a model file."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from ..base.rounding import EPS
from ..base.stored import Record
from ..errors import LimitsWarning, warn_caller

QUANTILES = 17
"""Values of a column that contributions try first, from its smallest to its largest."""


@dataclass(frozen=True)
class Limits:
    """Control limits of T^2 and SPE.

    Attributes
    ----------
    t2, spe : float
        A row is beyond the limit where its value is larger.
    confidence : float
        Asked for: new rows like the calibration rows stay below each limit, or below both where ``joint``, with this
        probability at least; where a method is "largest", with the smaller one that a `LimitsWarning` told.
    t2_method, spe_method : {"empirical", "largest", "F", "chi2", "box"}
        "largest": the calibration rows were too few to prove the confidence, and the limit is the largest value.
    n_calibration : int
        Number of rows that the limits were made from.
    joint : bool
        The confidence is that of both limits together.
    of_training : bool
        The calibration rows were those that the model was made of: new rows exceed such limits more often.
    calibration : ndarray (m, 3) or None
        T^2, SPE and weight of the calibration rows, from which ``kpca_limits(model)`` makes limits of another
        confidence where the model keeps these.
    quantiles : ndarray (17, d) or None
        Quantiles of each column of (at most 4096 of) the calibration rows, from the smallest value to the largest: the
        range in which ``kpca_contributions`` moves it. None where rows are not coordinates.
    runs : ndarray (d,) or None
        Rows of the longest run of equal values of each column in the calibration rows, in their order.
    """

    t2: float
    spe: float
    confidence: float
    t2_method: str
    spe_method: str
    n_calibration: int
    joint: bool = False
    of_training: bool = False
    calibration: np.ndarray | None = field(default=None, compare=False, repr=False)
    quantiles: np.ndarray | None = field(default=None, compare=False, repr=False)
    runs: np.ndarray | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        both = "both" if self.joint else "each"
        share = f"{100 * self.confidence:g} %"
        means = f"{share} of normal rows are below {both}"
        if "largest" in (self.t2_method, self.spe_method):
            means = f"meant for {share}, which takes more rows"
        of_whom = " that the model was made of" if self.of_training else ""
        return (
            f"T2 {self.t2:.4g} ({self.t2_method}), SPE {self.spe:.4g} ({self.spe_method}) of {self.n_calibration} rows"
            f"{of_whom}: {means}"
        )

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(header, arrays) for the model file."""
        parts = {x.name: vars(self)[x.name] for x in fields(self)}
        arrays = {name: parts.pop(name) for name in ("calibration", "quantiles", "runs")}
        return parts, {name: array for name, array in arrays.items() if array is not None}

    def exceeded(self, *, t2: Any = None, spe: Any = None) -> np.ndarray:
        """True for rows beyond a limit, shape (m,): of either statistic where both are given.

        New rows like the calibration rows are flagged with probability at most 1 - confidence by one statistic. By both
        it is at most 2 (1 - confidence), or 1 - confidence where the limits are ``joint``. Raises ValueError where
        the shapes of the two differ, or a value is NaN.
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


def read_limits(record: Record, d: int) -> Limits | None:
    """The limits in a model file, each value checked; None where the model has none."""
    if "limits" not in record.header:
        return None
    found = Record(record.get("limits"), record.arrays_under("limits."), "the limits")
    m = found.whole("n_calibration", least=1, most=1 << 62)
    limits = Limits(
        t2=found.number("t2"),
        spe=found.number("spe"),
        confidence=found.number("confidence", above=0.0, most=1.0),
        t2_method=found.text("t2_method", ("empirical", "largest", "F", "chi2")),
        spe_method=found.text("spe_method", ("empirical", "largest", "box")),
        n_calibration=m,
        joint=found.flag("joint"),
        of_training=found.flag("of_training"),
        calibration=found.array_or_none("calibration", (m, 3)),
        quantiles=found.array_or_none("quantiles", (QUANTILES, d)),
        runs=found.array_or_none("runs", (d,), least=0.0),
    )
    found.refuse_the_rest()
    if limits.calibration is not None and not limits.calibration[:, 2].min() >= 0:
        raise found.refuse("a weight of its calibration rows is negative")
    return limits


class OrderStatistic:
    """Order statistics of rows with weights: which one keeps the rate of false alarms.

    Attributes
    ----------
    each, rate : float
        Confidence of each limit by itself, and its rate of false alarms: half of that of both.
    place : float
        How many of the rows lie at or below the limit.
    """

    def __init__(self, weights: np.ndarray, confidence: float, joint: bool = False):
        self.weights, self.confidence, self.joint = weights, confidence, joint
        self.count = float(weights.sum())
        self.rate = (1.0 - confidence) / (2.0 if joint else 1.0)
        self.each = min(1.0 - self.rate, 1.0 - EPS) if joint else confidence
        self.place = (self.count + 1.0) * self.each - 1e-9

    def joint_places(self, t2: np.ndarray, spe: np.ndarray) -> tuple[float, float]:
        """``place`` of each statistic where both limits share the rate (see the notes of ``kpca_limits``)."""
        of_t2, of_spe = self._from_top(t2), self._from_top(spe)
        return self._shared(of_t2 + 1.0, of_spe), self._shared(of_t2, of_spe + 1.0)

    def _shared(self, one: np.ndarray, other: np.ndarray) -> float:
        ranks = np.minimum(one, other)
        order = np.argsort(ranks, kind="stable")
        too_many = 1.0 + np.cumsum(self.weights[order]) > (self.count + 1.0) * (1.0 - self.confidence) + 1e-9
        k = float(ranks[order[int(np.argmax(too_many))]]) - 1e-9 if too_many.any() else self.count
        return min(self.place, self.count - k + 1.0)

    def _from_top(self, values: np.ndarray) -> np.ndarray:
        """Weight of the rows at or above each of the values."""
        order = np.argsort(-values, kind="stable")
        above = np.cumsum(self.weights[order])
        return np.asarray(above[np.searchsorted(-values[order], -values, side="right") - 1])

    @property
    def few(self) -> str:
        """Text about too few rows."""
        need = int(np.ceil(1.0 / self.rate - 1.0 - 1e-9))
        both = " for both together" if self.joint else ""
        return f"limits at confidence {self.confidence:g}{both} need at least {need} rows, and there are {self.count:g}"

    @property
    def most(self) -> float:
        """Largest confidence that the rows prove, of both limits where ``joint``."""
        return max(1.0 - (2.0 if self.joint else 1.0) / (self.count + 1.0), 0.0)

    def limit(self, values: np.ndarray, method: str, place: float | None = None) -> tuple[float, str]:
        """(the limit, how it was found): the largest value where the rows are too few, or an error where the method is
        "empirical"."""
        place = self.place if place is None else place
        order = np.argsort(values, kind="stable")
        below = np.cumsum(self.weights[order])
        if place <= below[-1]:
            return float(values[order[int(np.searchsorted(below, place))]]), "empirical"
        if method == "empirical":
            raise ValueError(f"'empirical' {self.few}; give more rows, a lower confidence, or another limit")
        return float(values[order[-1]]), "largest"

    def warn(self) -> None:
        """Say that the largest values were taken."""
        warn_caller(
            f"{self.few}: they prove limits for {100 * self.most:.4g} % at most, and the largest values were taken; "
            "give more rows or a lower confidence",
            LimitsWarning,
        )
