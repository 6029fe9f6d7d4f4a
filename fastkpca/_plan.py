"""Costs, and the choice among what the kernel offers, explained in words. Runs nothing but a look at the sample.

Predictions are counts (flops, kernel values, bytes) over the rates below, which ``benchmarks/calibrate.py`` measures.
They ignore the number of threads and the free memory, so the same input takes the same route everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .protocol import Kernel, Offer, Summary

__all__ = ["Candidate", "Plan", "leading_share", "make_plan"]

# One thread, operations per second; measured by benchmarks/calibrate.py.
GEMM_RATE = 45e9
SYRK_RATE = 30e9
EIGEN_RATE = 12e9  # LAPACK's symmetric eigensolver, counted as 4/3 n^3
ENTRY_RATE = 0.8e9  # values of a kernel a second, without the distances
FEATURE_RATE = 1.2e9  # monomials a second
ROW_RATE = 0.5e9  # numbers of X a second, for each look at them

DEFAULT_MEMORY = 2 << 30
MAX_FEATURES = 8192


@dataclass(frozen=True)
class Candidate:
    """One way to do it, and what it is predicted to cost; ``obstacle`` says why it is out of the question."""

    method: str
    name: str
    seconds: float
    memory: float
    n_features: int = 0
    obstacle: str = ""
    offer: Offer | None = field(default=None, repr=False, compare=False)

    @property
    def label(self) -> str:
        return f"{self.method} ({self.name})"


@dataclass(frozen=True)
class Plan:
    """What will run, and why; ``print(plan)`` shows every candidate.

    Attributes
    ----------
    method : str
        "dense", "features" or "krylov".
    name : str
        The feature map or the product that the method uses.
    reason : str
    candidates : tuple of Candidate
    """

    method: str
    name: str
    reason: str
    candidates: tuple[Candidate, ...]

    @property
    def chosen(self) -> Candidate:
        return next(x for x in self.candidates if x.method == self.method and x.name == self.name)

    def __str__(self) -> str:
        lines = [f"{self.method} ({self.name}): {self.reason}", ""]
        lines.append(f"  {'candidate':<24}{'features':>10}{'seconds':>12}{'memory':>12}")
        for x in self.candidates:
            mark = "*" if x is self.chosen else " "
            if x.obstacle:
                lines.append(f"{mark} {x.label:<24}{x.obstacle}")
            else:
                features = str(x.n_features) if x.n_features else "-"
                lines.append(f"{mark} {x.label:<24}{features:>10}{x.seconds:>12.3g}{_size(x.memory):>12}")
        return "\n".join(lines)

    def state(self) -> dict:
        keys = ("method", "name", "seconds", "memory", "n_features", "obstacle")
        return {
            "method": self.method,
            "name": self.name,
            "reason": self.reason,
            "candidates": [{key: getattr(x, key) for key in keys} for x in self.candidates],
        }

    @classmethod
    def from_state(cls, state: dict) -> Plan:
        candidates = tuple(Candidate(**x) for x in state["candidates"])
        return cls(state["method"], state["name"], state["reason"], candidates)


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


def leading_share(kernel: Kernel, data: Summary, rows: int = 256) -> float:
    """Estimate of lambda_1 / tr K from a few rows of the sample: what turns ``tol`` into a residual trace."""
    X = data.sample[np.linspace(0, len(data.sample) - 1, min(rows, len(data.sample))).astype(np.intp)]
    K = np.array(kernel.block(X, X), dtype=np.float64)
    trace = float(np.trace(K))
    if trace <= 0:
        return 0.0
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    # |Kc|_F^2 / tr Kc <= lambda_1 <= |Kc|_F: the lower end errs on the side of more features
    centered = float(np.trace(K))
    return float(np.sum(K * K)) / centered / trace if centered > 1e-14 * trace else 0.0


def make_plan(
    kernel: Kernel,
    data: Summary,
    c: int | float | None,
    *,
    tol: float,
    method: str = "auto",
    features: str = "auto",
    memory_limit: int | None = None,
) -> Plan:
    """Choose among dense, features and krylov.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    data : Summary
    c : int, float or None
    tol : float
        Width of an eigenvalue's interval over the largest eigenvalue.
    method, features : str
        "auto", or the name to force.
    memory_limit : int, optional
        Bytes.
    """
    n, d = data.n_samples, data.n_features
    limit = DEFAULT_MEMORY if memory_limit is None else memory_limit
    k = min(c if isinstance(c, (int, np.integer)) else 50, n)
    out = 8.0 * n * k
    candidates: list[Candidate] = []

    entries = float(n) * n * (1 / ENTRY_RATE + 2 * d / GEMM_RATE)
    seconds = entries + (4 / 3 if c is not None else 9) * float(n) ** 3 / EIGEN_RATE
    memory = 8.0 * n * n * (1.1 if isinstance(c, (int, np.integer)) else 3.1) + out
    obstacle = f"needs {_size(memory)}, limit {_size(limit)}" if memory > limit else ""
    candidates.append(Candidate("dense", "LAPACK", seconds, memory, obstacle=obstacle))

    if kernel.positive_semidefinite and method in ("auto", "features"):
        candidates += _feature_candidates(kernel, data, k, tol, limit, forced=method == "features", name=features)

    if method in ("auto", "krylov"):
        passes, block = 5, k + 10
        seconds = passes * float(n) * n / 2 * (1 / ENTRY_RATE + 2 * d / GEMM_RATE + 4 * block / GEMM_RATE)
        memory = 8.0 * n * block * (passes + 3)
        obstacle = ""
        if c is None:
            obstacle = "all components need the dense route or an exact feature map"
        elif memory > limit:
            obstacle = f"needs {_size(memory)}, limit {_size(limit)}"
        candidates.append(Candidate("krylov", "exact", seconds, memory, obstacle=obstacle))

    return _choose(candidates, method, features, n, c, limit)


def _feature_candidates(
    kernel: Kernel, data: Summary, k: int, tol: float, limit: float, *, forced: bool, name: str
) -> list[Candidate]:
    n, d = data.n_samples, data.n_features
    largest = int(min(MAX_FEATURES, np.sqrt(limit / 8 / 4)))
    share = leading_share(kernel, data)
    offers: list[Offer] = []
    wanted = tol
    while not offers and wanted < 10:
        offers = [x for x in kernel.feature_maps(data, min(wanted * share, 1.0), largest) if name in ("auto", x.name)]
        if not forced:
            break
        wanted *= 10  # asked for by name: the best that fits, and the interval says how good that is
    if not offers:
        text = f"no feature map reaches tol={tol:g} within {largest} features"
        return [Candidate("features", name if name != "auto" else "none", 0.0, 0.0, obstacle=text)]
    found = []
    for offer in offers:
        D = offer.cost.n_features
        rows = float(n) * (2 * offer.cost.row_flops / FEATURE_RATE / 2 + (D * D + 2.0 * D * k) / SYRK_RATE + 4 * d / ROW_RATE)
        seconds = rows + offer.cost.setup_flops / GEMM_RATE + 4 / 3 * float(D) ** 3 / EIGEN_RATE + 1e-4
        memory = 8.0 * D * D * 6 + 8.0 * n * k
        obstacle = f"needs {_size(memory)}, limit {_size(limit)}" if memory > limit else ""
        found.append(Candidate("features", offer.name, seconds, memory, D, obstacle, offer))
    return found


def _choose(candidates: list[Candidate], method: str, features: str, n: int, c: object, limit: float) -> Plan:
    named = [x for x in candidates if method in ("auto", x.method)]
    possible = [x for x in named if not x.obstacle]
    if not possible:
        reasons = "; ".join(f"{x.label}: {x.obstacle}" for x in named) or "this kernel offers no feature map"
        what = "no route fits" if method == "auto" else f"method={method!r} is not possible here"
        raise ValueError(
            f"{what} for {n} rows and c={c!r} ({reasons}); raise memory_limit or tol, ask for fewer components, or use method='auto'"
        )
    best = min(possible, key=lambda x: x.seconds)
    if method != "auto":
        reason = "asked for"
    elif len(possible) == 1:
        reason = "the only route that fits"
    else:
        others = min((x for x in possible if x is not best), key=lambda x: x.seconds)
        reason = f"predicted {best.seconds:.2g} s, against {others.seconds:.2g} s for {others.label}"
    return Plan(best.method, best.name, reason, tuple(candidates))
