"""Result of every route, and the steps that routes share: selection of components, signs, the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..base.protocol import Kernel, Moments
from ..errors import CertificateWarning, ComponentsWarning, NotConvergedError, NoVarianceError, rounded_up, warn_caller
from ..maps.draws import Reservoir
from ..model.plan import Plan
from ..model.reading import Projector
from ..model.result import SPECTRUM, KPCAModel
from ..model.sample_projector import SampleProjector
from ..rows.view import Rows
from ..solve.certificate import Bound, Certificate
from .target import Target


class RunLimits(NamedTuple):
    """Limits of the run of a candidate.

    Attributes
    ----------
    seconds : float
        Predicted seconds of the candidate that follows: a run that would cost more raises BudgetExceededError.
    failure : float
        Probability with which any of its random bounds may fail.
    alternative : str
        What reaches more, for the message of a run that misses tol.
    """

    seconds: float = np.inf
    failure: float = 0.0
    alternative: str = ""


@dataclass(frozen=True)
class Solution:
    """Components with their certificate; ``total`` is the interval of tr(Kc).

    ``score`` is kept where the route computes the scores anyway; else the projector makes them in a pass. ``fewer`` is
    the text of a warning where these are not all the components asked for. ``reached`` and ``help``: by what the
    intervals were found, and what narrows them, for the text where one is wider than tol. ``seconds`` is what the route
    has cost, as counted.
    """

    eigenvalues: np.ndarray
    certificate: Certificate
    total: tuple[float, float]
    projector: Projector
    info: dict[str, Any]
    score: np.ndarray | None = field(default=None, repr=False)
    fewer: str = ""
    reached: str = ""
    help: str = ""
    moments: Moments | None = field(default=None, repr=False)
    left_out: Bound | None = None
    """Bound on the largest eigenvalue of the feature map's residual."""
    added: tuple[tuple[int, float], ...] = ()
    """``KPCAModel._added``."""
    reservoir: Reservoir | None = field(default=None, repr=False)
    seconds: float = 0.0

    @property
    def width(self) -> float:
        """Width of the widest interval, over the largest eigenvalue."""
        return self.certificate.width / float(self.eigenvalues[0])

    def misses(self, target: Target) -> bool:
        """True if an interval is wider than tol."""
        return target.tol_is_required and not self.width <= target.tol

    def model(
        self, plan: Plan, kernel: Kernel, count: float, *, target: Target, keep_moments: bool, **about_rows: Any
    ) -> KPCAModel:
        """The model for the user, with a warning for fewer components than asked for, and where an interval is wider
        than tol; an error where none is finite.

        ``count`` is the number of rows or the sum of their weights, ``about_rows`` the model's other attributes.
        """
        low, high = (x / (count - target.center) for x in self.total)
        left_out = self.left_out
        model = KPCAModel(
            eigenvalues=self.eigenvalues,
            **{name: getattr(self.certificate, name) for name in SPECTRUM[1:]},
            bound_kind=self.certificate.bound_kind,
            failure_probability=self.certificate.failure_probability,
            total_variance=high,
            total_variance_bounds=(low, high),
            kernel=kernel.unbound(),
            plan=plan,
            info=self.info,
            projector=self.projector,
            center=target.center,
            _moments=self.moments if keep_moments else None,
            _left_out=(left_out.mu, left_out.failure_probability) if keep_moments and left_out else None,
            _added=self.added,
            _reservoir=self.reservoir if keep_moments else None,
            **about_rows,
        )
        text = (
            f"{self.reached}the widest of {len(self.eigenvalues)} intervals is {rounded_up(self.width)} of the largest "
            f"eigenvalue, tol is {target.tol:g}; {self.help}"
        )
        if not np.isfinite(model.eigenvalue_bounds).all():
            raise NotConvergedError(f"no interval was reached: {text}", partial=model)
        if self.fewer:
            warn_caller(self.fewer, ComponentsWarning)
        if self.misses(target):
            warn_caller(text, CertificateWarning)
        return model


def number_kept(
    eigenvalues: np.ndarray,
    floor: float,
    total: float,
    target: Target,
    kernel: Kernel,
    n_samples: int,
    above: float | np.ndarray = 0.0,
    most: int | None = None,
) -> tuple[int, str]:
    """Number of components to keep, and the text of a warning where more were asked for ("" else).

    Eigenvalues at most ``floor`` are zero to rounding, or negative.

    ``above``: bound on the excess of the true eigenvalues over these (over zero, for further ones), for the warning.
    ``most``: axes that are known, where these are fewer.
    """
    positive, c = int((eigenvalues[:most] > floor).sum()), target.c
    if positive == 0:
        largest = 2 * floor + max(float(np.max(eigenvalues, initial=0.0)), 0.0) + float(np.max(above))
        unseen = largest if kernel.positive_semidefinite and float(np.max(above)) > 10 * floor else 0.0
        raise NoVarianceError(_no_variance(kernel, n_samples, unseen), largest)
    if c is None:
        return positive, ""
    if (wanted := target.n_components) is not None:
        if positive >= wanted:
            return wanted, ""
        return positive, _fewer(eigenvalues, floor, wanted, positive, kernel, above)
    if not total > 0:
        raise ValueError(
            f"c={c}: there is no fraction of the variance to explain, the trace of the centred Gram matrix of "
            f"{kernel!r} is {total:.3g}: negative eigenvalues outweigh the others; give a number of components"
        )
    share = np.cumsum(eigenvalues[:positive]) / total
    enough = np.flatnonzero(share >= c * (1 - 1e-12))
    if len(enough):
        return int(enough[0]) + 1, ""
    return (
        positive,
        f"c={c}: the {positive} components found explain {100 * share[-1]:.6g} % for certain, less than asked for; "
        "method='dense' keeps more, or with method='krylov' more passes (max_passes), with method='features' a smaller "
        "tol",
    )


def _no_variance(kernel: Kernel, n_samples: int, unseen: float) -> str:
    """``unseen``: where more than rounding may be left out, the largest eigenvalue that there may be."""
    if unseen:
        why = (
            f"none was found, and eigenvalues of up to {rounded_up(unseen)} are left out; give a feature map more "
            "features (max_features, memory_limit), other landmarks, or as like= a model made from rows that span the "
            "range, or take another method"
        )
    else:
        of_matrix = kernel.by_number and kernel.unguarded().listed() is None
        hint = "; distances D are no kernel matrix, -0.5 * D ** 2 is one" if of_matrix else ""
        why = (
            "the centred Gram matrix is zero to rounding (or negative); check that the rows of X differ, and the "
            f"kernel's parameters{hint}"
        )
    return f"no component of {kernel!r} carries variance on these {n_samples} rows: {why}"


def _fewer(
    eigenvalues: np.ndarray, floor: float, c: int, positive: int, kernel: Kernel, above: float | np.ndarray
) -> str:
    above = np.broadcast_to(above, eigenvalues.shape)
    others = np.maximum(eigenvalues, 0.0)[positive:] + above[positive:]
    largest = max(floor, float(others.max()) if len(others) else float(above.max()))
    why = "zero to rounding" if largest <= 10 * floor else "zero within the accuracy reached"
    if not kernel.positive_semidefinite:
        why += ", or negative"
    return (
        f"{c} components asked for, {positive} returned: the other eigenvalues are {why} "
        f"(at most {rounded_up(largest)}), and a component without variance has no direction"
    )


def signs_of(scores: np.ndarray) -> np.ndarray:
    """(c,): those that make the largest |score| of a sample (n, c) positive; of near-ties, the first row counts.

    1 for a column of zeros, and for one that is not finite.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if not scores.size:
        return np.ones(scores.shape[1])
    sizes = np.abs(scores.T, order="C")  # numpy's maxima along contiguous rows are faster
    first = (sizes >= (1.0 - 1e-6) * sizes.max(axis=1)[:, None]).argmax(axis=1)
    return np.where(scores[first, np.arange(scores.shape[1])] < 0.0, -1.0, 1.0)


def negative_end(lowest: float | None, kernel: Kernel) -> dict[str, float]:
    """Entry of ``info``: the most negative eigenvalue computed, for kernels that are not positive semidefinite."""
    if lowest is None or kernel.positive_semidefinite:
        return {}
    return {"most_negative_eigenvalue": min(float(lowest), 0.0)}


@dataclass(frozen=True)
class PositiveWeightRows:
    """Rows for a route that takes them by their numbers: those of no weight are projected as new ones are.

    Attributes
    ----------
    every : Rows
        All of them, in memory.
    rows : Rows
        Those of positive weight.
    index : ndarray or None
        The numbers of these; None: no weight is zero.
    """

    every: Rows
    rows: Rows
    index: np.ndarray | None

    @classmethod
    def of(cls, rows: Rows) -> PositiveWeightRows:
        every = rows.loaded()
        return cls(every, *every.present())

    def places(self, sample: np.ndarray) -> np.ndarray:
        """Numbers of these rows among the rows of positive weight, which they all have."""
        return sample if self.index is None else np.searchsorted(self.index, sample)

    def projector(self, coeff: np.ndarray, means: np.ndarray, *, center: bool) -> SampleProjector:
        """From coefficients (rows, c) and means (rows,) of rows of positive weight: those of the others are zero."""
        X, w = self.every.all(), self.every.weights
        if self.every.shares_memory(X):
            X = X.copy()  # the model must not follow later changes of the user's array
        weights = None if w is None else np.array(w, dtype=np.float64)
        return SampleProjector(X, self._scattered(np.ascontiguousarray(coeff)), self._scattered(means), weights, center)

    def _scattered(self, values: np.ndarray) -> np.ndarray:
        if self.index is None:
            return values
        whole = np.zeros((len(self.every), *values.shape[1:]), dtype=values.dtype)
        whole[self.index] = values
        return whole
