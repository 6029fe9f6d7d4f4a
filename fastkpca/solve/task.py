"""What a solver is given: a target and a budget, beside a matrix (``products.implicit``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SolverTarget:
    """Which eigenvalues, and how narrow their intervals.

    Attributes
    ----------
    c : int
        Number of eigenvalues; with ``fraction`` where to begin.
    tol : float
        Wanted width over the largest eigenvalue.
    fraction : float, optional
        Instead of a fixed c: as many eigenvalues as sum up to this fraction of the trace.
    failure : float
        Probability with which any of the bounds that rest on random numbers may fail, all together; 0.0: there are to
        be none.
    """

    c: int
    tol: float = 1e-6
    fraction: float | None = None
    failure: float = 0.0

    @property
    def probabilistic(self) -> bool:
        return self.failure > 0.0

    def count(self, values: np.ndarray, trace: float | None) -> int | None:
        """How many of these values are wanted; None where they do not sum up to the fraction."""
        if self.fraction is None:
            return self.c
        if trace is None:
            return None
        reached = np.flatnonzero(np.cumsum(np.maximum(values, 0.0)) >= self.fraction * trace)
        return int(reached[0]) + 1 if len(reached) else None


@dataclass(frozen=True)
class SolverBudget:
    """What a run may cost.

    Attributes
    ----------
    passes : int
        Over the kernel values, float32 and float64 together.
    memory : float, optional
        Bytes for the basis and its images; the space is restarted when they are full.
    pass_seconds : float
        Predicted, for one float64 pass.
    seconds : float
        Predicted seconds of another method. The costs of a run are counted, not measured, so the same input always
        stops at the same pass.
    alternative : str
        That method, for the message of a run that has not reached its tolerance.
    """

    passes: int = 20
    memory: float | None = None
    pass_seconds: float = 0.0
    seconds: float = np.inf
    alternative: str = ""
