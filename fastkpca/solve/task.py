"""Target and budget of a solver; its matrix is a ``products.implicit.KernelMatrix``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SolverTarget:
    """Number of eigenvalues, or fraction of the trace, and width of their intervals.

    Attributes
    ----------
    c : int
        Number of eigenvalues; with ``fraction`` the initial one.
    tol : float
        Largest width of an interval over the largest eigenvalue.
    fraction : float, optional
        Fraction of the trace that the eigenvalues have to sum up to, in place of a fixed c.
    failure : float
        Joint failure probability of all bounds from random numbers; 0.0: no such bounds.
    """

    c: int
    tol: float = 1e-6
    fraction: float | None = None
    failure: float = 0.0

    @property
    def probabilistic(self) -> bool:
        return self.failure > 0.0

    def count(self, values: np.ndarray, trace: float | None) -> int | None:
        """Number of these values that are wanted; None where they do not sum up to the fraction."""
        if self.fraction is None:
            return self.c
        if trace is None:
            return None
        reached = np.flatnonzero(np.cumsum(np.maximum(values, 0.0)) >= self.fraction * trace)
        return int(reached[0]) + 1 if len(reached) else None


@dataclass(frozen=True)
class SolverBudget:
    """Limits on passes, memory and predicted seconds of a run.

    Attributes
    ----------
    passes : int
        Passes over the kernel values, float32 and float64 together.
    memory : float, optional
        Bytes for the basis and its images; the space is restarted when they are full.
    pass_seconds : float
        Predicted seconds of one float64 pass.
    seconds : float
        Predicted seconds of another method. The costs of a run are counted, not measured, so the same input always
        stops at the same pass.
    alternative : str
        Name of that method, for the message of a run that does not meet tol.
    """

    passes: int = 20
    memory: float | None = None
    pass_seconds: float = 0.0
    seconds: float = np.inf
    alternative: str = ""
