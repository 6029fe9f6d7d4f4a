"""The plan that a model carries: the candidates with their predicted steps and costs, which one ran, and why."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..base.caching import cached_property
from ..base.stored import Record

METHODS = ("dense", "features", "krylov")
_KEYS = ("method", "name", "seconds", "memory", "n_features", "obstacle")
"""Fields of a candidate that the model file holds."""


class Step(NamedTuple):
    """One step of a run, and its seconds on one thread: predicted, or counted when it has run (predicted rates times
    the work done; no clock)."""

    name: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.name} ({readable_seconds(self.seconds, 2)} s)"


def total_seconds(steps: Iterable[Step]) -> float:
    return sum(x.seconds for x in steps)


@dataclass(frozen=True)
class RunSettings:
    """Limits of the chosen route, and what its run takes from the estimate.

    Attributes
    ----------
    features : int
        Features that a map of pivots may have at most.
    basis : float
        Bytes for the basis of a krylov run.
    block : int
        Columns of its passes.
    pass_seconds : float
        Predicted for a product with a block of columns.
    rows : int
        Predicted number of sampled rows of the residual of a feature map.
    values : float
        Bytes for the kernel values of a search in float32, where these are cached after its first pass, or in addition
        to values that are cached in float64.
    truncated : Offer or None
        The truncated kernel matrix, where the float32 phase uses it.
    proved : bool
        Trace or norm are expected to prove that a krylov run has missed nothing.
    """

    features: int = 0
    basis: float = 0.0
    block: int = 0
    pass_seconds: float = 0.0
    rows: int = 0
    values: float = 0.0
    truncated: Any = field(default=None, repr=False, compare=False)
    proved: bool = False


@dataclass(frozen=True)
class Candidate:
    """One method to compute the model, and its predicted cost; ``obstacle`` says why it is not possible.

    Attributes
    ----------
    method, name : str
    seconds, memory : float
        Seconds on one thread, and bytes at the peak.
    n_features : int
    obstacle : str
    steps : tuple of Step
        What the run does, with its predicted seconds, in order.
    offer : Offer
        What the route builds and runs.
    settings : RunSettings
    misses : bool
        Rounding is expected to keep a feature map from ``tol``.
    is_lower_bound : bool
        ``seconds`` is the least there may be, as no probe has told what decides it.

    A model's file holds the first six.
    """

    method: str
    name: str
    seconds: float
    memory: float
    n_features: int = 0
    obstacle: str = ""
    steps: tuple[Step, ...] = field(default=(), repr=False, compare=False)
    offer: Any = field(default=None, repr=False, compare=False)
    settings: RunSettings = field(default=RunSettings(), repr=False, compare=False)
    misses: bool = field(default=False, repr=False, compare=False)
    is_lower_bound: bool = field(default=False, repr=False, compare=False)

    @property
    def label(self) -> str:
        return f"{self.method} ({self.name})"


@dataclass(frozen=True, repr=False)
class Plan:
    """The method that will run, and why; its repr is the table of all candidates.

    Attributes
    ----------
    method : str
        "dense", "features" or "krylov".
    name : str
        The feature map or the product that the method uses.
    reason : str
    candidates : tuple of Candidate
    ran : tuple of Step
        The steps that ran, in order, with their seconds as counted; those of a model that was just fitted.
    """

    method: str
    name: str
    reason: str
    candidates: tuple[Candidate, ...]
    otherwise: str = field(default="", repr=False, compare=False)  # advice where block Krylov does not converge
    advice: str = field(default="", repr=False, compare=False)  # which looser tol makes long work short
    ran: tuple[Step, ...] = field(default=(), repr=False, compare=False)  # the steps of a run

    @cached_property
    def chosen(self) -> Candidate:
        return next(x for x in self.candidates if x.method == self.method and x.name == self.name)

    @property
    def dense(self) -> Candidate | None:
        """LAPACK, where that is among the candidates and possible."""
        return next((x for x in self.candidates if x.method == "dense" and not x.obstacle), None)

    @property
    def others(self) -> list[Candidate]:
        """Candidates that are possible, and may follow the chosen one."""
        return [x for x in self.candidates if x is not self.chosen and not x.obstacle]

    def as_run(self, last: Candidate, ran: Iterable[Step]) -> Plan:
        """The plan of a model that was computed by the candidate ``last``, possibly after another was abandoned."""
        if last is self.chosen:
            return replace(self, ran=tuple(ran))
        reason = f"{self.chosen.label} was planned, and abandoned on the way"
        return replace(self, method=last.method, name=last.name, reason=reason, ran=tuple(ran))

    def __str__(self) -> str:
        lines = [f"{self.method} ({self.name}): {self.reason}", ""]
        lines.append(f"  {'candidate':<24}{'features':>10}{'seconds':>12}{'memory':>12}")
        for x in self.candidates:
            mark = "*" if x is self.chosen else " "
            if x.obstacle:
                lines.append(f"{mark} {x.label:<24}{x.obstacle}")
            else:
                features = str(x.n_features) if x.n_features else "-"
                seconds = f"{'>= ' if x.is_lower_bound else ''}{readable_seconds(x.seconds)}"
                costs = f"{seconds:>12}{readable_size(x.memory):>12}"
                lines.append(f"{mark} {x.label:<24}{features:>10}{costs}")
        steps, verb = (self.ran, "ran") if self.ran else (self.chosen.steps, "will run")
        lines += ["", f"  {verb}: {'; '.join(map(str, steps))}"] if steps else []
        lines += ["", self.advice] if self.advice else []
        return "\n".join(lines)

    __repr__ = __str__

    def state(self) -> dict:
        candidates = [{key: vars(x)[key] for key in _KEYS} for x in self.candidates]
        words = {"method": self.method, "name": self.name, "reason": self.reason}
        return words | {"candidates": candidates, "ran": [list(x) for x in self.ran]}

    @classmethod
    def from_state(cls, state: dict) -> Plan:
        record = Record(state, {}, "the plan")
        record.keys(("method", "name", "reason", "candidates", "ran"))
        candidates = tuple(_candidate(x) for x in record.list("candidates"))
        method, name = record.text("method", METHODS), record.text("name")
        if not any((x.method, x.name) == (method, name) for x in candidates):
            raise record.refuse("what was chosen is not among the candidates")
        ran = tuple(_step(x) for x in record.list("ran"))
        return cls(method, name, record.text("reason"), candidates, ran=ran)


def _step(state: Any) -> Step:
    if not (isinstance(state, list) and len(state) == 2):
        raise Record({"step": state}, {}, "the plan").refuse("a step that ran is not a name and its seconds")
    record = Record(dict(zip(("name", "seconds"), state)), {}, "a step of the plan")
    return Step(record.text("name"), record.number("seconds", least=0.0))


def _candidate(state: Any) -> Candidate:
    record = Record(state, {}, "a candidate of the plan")
    record.keys(_KEYS)
    # a candidate that is not possible may have no finite cost
    seconds, memory = (
        math.inf if record.get(key) == math.inf else record.number(key, least=0.0) for key in ("seconds", "memory")
    )
    n_features = record.whole("n_features", least=0, most=1 << 62)
    method, name, obstacle = record.text("method", METHODS), record.text("name"), record.text("obstacle")
    return Candidate(method, name, seconds, memory, n_features, obstacle)


def readable_seconds(number: float, digits: int = 3) -> str:
    """A number with ``digits`` significant digits; up to 1e9 without a power of ten."""
    return f"{number:,.0f}" if 10**digits <= number < 1e9 else f"{number:.{digits}g}"


def readable_size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"
