"""What a solver is given: a target, a budget, a matrix, and a coarse version of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..base.protocol import Summation
from ..products.exact import KeptSums
from ..products.weighted import Entries


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


@dataclass(frozen=True)
class NearMatrix:
    """A coarse version B of a kernel matrix K, with which products take little time.

    Attributes
    ----------
    product : Summation
    size : float
        Bound on |B|.
    distance : callable
        Returns a bound on |K - B|, once a product with K has been made.
    seconds : float
        Predicted, for a product with a few columns.
    """

    product: Summation
    size: float
    distance: Callable[[], float]
    seconds: float


@dataclass(frozen=True)
class KernelMatrix:
    """A symmetric kernel matrix K: products with it, and bounds.

    Attributes
    ----------
    product : Summation
        In float64. One that ``gives_norm`` allows the Frobenius bound, which an indefinite kernel needs.
    search_product : Summation, optional
        In float32.
    trace : float, optional
        tr K.
    positive_semidefinite : bool
        Allows the trace bound.
    entry_error : float
        Bound on |computed K_ij - K_ij| in float64 (``Kernel.entry_error``; 0: the matrix is what was computed).
    entries : Entries, optional
        Allows bounds from the entries of the matrix beyond the basis.
    n_threads : int
        Of the products with the basis; the matrix's own know theirs.
    near : NearMatrix, optional
        To search with, and to bound the rest by, where few values are not near zero; K is semidefinite then.
    sums : KeptSums, optional
        Of the values by which ``search_product`` multiplies, where these are K's, and kept.
    """

    product: Summation
    search_product: Summation | None = None
    trace: float | None = None
    positive_semidefinite: bool = False
    entry_error: float = 0.0
    entries: Entries | None = None
    n_threads: int = 1
    near: NearMatrix | None = None
    sums: KeptSums | None = None

    @property
    def n(self) -> int:
        return self.product.shape[0]
