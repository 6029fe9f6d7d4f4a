"""Regularised kernel canonical correlation: functions of two views that agree best.

Hardoon, Szedmak and Shawe-Taylor, Neural Computation 16, 2004; Fukumizu, Bach and Gretton, JMLR 8, 2007 (equation 7):
the singular values of

    (Cxx + e I)^(-1/2) Cxy (Cyy + d I)^(-1/2)

with the covariances of the features, weighted as the rows are. In terms of the centred kernel matrices, their squares
are the eigenvalues of K (K + N e I)^(-1) L (L + N d I)^(-1). Both factors grow with K and L, and by no more than what
is missed of these over N e and N d: where maps miss E and F, each squared correlation lies above that of the maps by at
most tr E / (N e) + tr F / (N d). The singular values of a permuted view lie so, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from fastkpca.base.rounding import EPS, UNIT, rounding_factor
from fastkpca.kernels import Kernel
from fastkpca.methods import as_rows, check_count, check_draws

from .methods import stored
from .methods.base import FittedMethod, Projection
from .methods.functions import KernelFunction, function
from .methods.options import FitOptions, regularization_strength, row_weights
from .methods.permutation import interval_of
from .methods.products import DRAFT_ROWS, Products
from .methods.threads import one_blas_thread
from .methods.views import over_permutations, two_views

__all__ = ["CCAModel", "kernel_cca"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Side(Projection):
    """The functions of one view; ``project(X)`` gives them at new rows.

    Attributes
    ----------
    kernel : Kernel
    function : KernelFunction
        c numbers a row, of weighted mean zero on the training rows.
    penalty : float
        Number added to the diagonal of the features' covariance.
    """

    kernel: Kernel = field(metadata=stored.object_of(Kernel))
    function: KernelFunction = field(metadata=function("c"))
    penalty: float = field(metadata=stored.number(least=0.0))

    def facts(self) -> list[str]:
        return [f"{self.kernel!r}, penalty={self.penalty:.3g}"]


SIDE = stored.in_file(
    lambda record, name, known: Side.from_state(record.get(name), f"its {name}", {}), lambda value: value.state()
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CCAModel(FittedMethod):
    """Canonical functions of two views.

    Attributes
    ----------
    correlations : ndarray (c,)
        Regularised, descending: covariances of functions with unit variance plus penalty.
    correlation_bounds : ndarray (c, 2)
        Intervals around those of the kernels, for what the feature maps miss and for rounding.
    x, y : Side
        The functions of each view: ``model.x.project(X)``.
    null : ndarray (m,)
        First correlations of the permutations.
    p_interval : ndarray (2,)
        Interval of the p-value of the first correlation; (1, 1) without permutations.
    n_samples : int
    info : dict
    """

    made_by = "kernel_cca()"

    correlations: np.ndarray = field(metadata=stored.array("c", least=0.0))
    correlation_bounds: np.ndarray = field(metadata=stored.array("c2", least=0.0))
    x: Side = field(metadata=SIDE)
    y: Side = field(metadata=SIDE)
    null: np.ndarray = field(metadata=stored.vector(least=0.0))
    p_interval: np.ndarray = field(metadata=stored.array("2", least=0.0))
    n_samples: int = field(metadata=stored.count())
    info: dict[str, Any] = field(metadata=stored.info("method"))

    @property
    def p_value(self) -> float:
        """The upper end of ``p_interval``."""
        return float(self.p_interval[1])

    def facts(self) -> list[str]:
        shares = ", ".join(f"{x:.4g}" for x in self.correlations)
        p = [f"p = {self.p_value:.4g} of {len(self.null)} permutations"] if len(self.null) else []
        return [f"correlations {shares}", *p, f"{self.x.kernel!r}, {self.y.kernel!r}, n_samples={self.n_samples}"]


@one_blas_thread
def kernel_cca(
    X: Any,
    Y: Any,
    kernel: Any = "gaussian",
    c: int = 1,
    *,
    kernel_y: Any = None,
    regularization: float = 1e-2,
    permutations: int = 0,
    sample_weight: Any = None,
    tol: float = 1e-6,
    max_features: int = 2048,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> CCAModel:
    """Canonical correlations between functions of two views of the same rows.

    Parameters
    ----------
    X, Y : array_like (N, d), (N, e)
        Two views of the same rows; also on disk or Dask collections. A view whose kernel is "precomputed" is its Gram
        matrix (N, N), and new rows of it are the matrix (m, N) between them and these.
    kernel : str, Kernel, object with ``block``, or callable
        Kernel of X, positive semidefinite.
    c : int
        Number of pairs of functions.
    kernel_y : str, Kernel, object with ``block``, or callable, optional
        Kernel of Y; by default ``kernel``, with a width of its own.
    regularization : float
        Added to the covariance of the features of each view, in units of their total variance. Without it some
        functions of any two views agree perfectly.
    permutations : int
        Number of permutations of the rows of Y, a million at most, for the p-value of the first correlation; none by
        default.
    sample_weight : array_like (N,), optional
        Weight 2 counts as two equal rows; without permutations.
    tol : float
        The part of the trace after centring that a view's feature map may miss.
    max_features : int
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
        Random numbers for the permutations.
    **kernel_parameters
        Parameters of both kernels.

    Returns
    -------
    CCAModel
        ``correlations``, their bounds, ``x.project`` and ``y.project``.

    Raises
    ------
    ValueError, TypeError
        The views are empty, have different numbers of rows, fewer than 4, or do not vary; a kernel is not positive
        semidefinite, or needs more than ``max_features`` features.

    Examples
    --------
    >>> import numpy as np
    >>> from kernels_contrib.cca import kernel_cca
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 6.28, 400)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> kernel_cca(X, angle[:, None] + 0.1 * rng.standard_normal((400, 1))).correlations.round(1)
    array([1.])
    """
    c, permutations = check_count(c, "c"), check_draws(permutations, "permutations", least=0)
    strength = regularization_strength(regularization, ": without it some functions of any two views agree perfectly")
    options = FitOptions(kernel, kernel_parameters, "features", tol, max_features, n_threads, center=True)
    views = two_views(X, Y, kernel_y, options, "kernel_cca")
    n, sizes = views[0].n_samples, [view.features.shape[1] for view in views]
    weights = row_weights(sample_weight, n)
    if sample_weight is not None and permutations:
        raise ValueError("permutations of weighted rows are not exchangeable; leave out sample_weight or permutations")
    if c > min(sizes):
        raise ValueError(f"c is {c}; views of {sizes[0]} and {sizes[1]} features have at most {min(sizes)} pairs")
    share = weights / weights.sum()
    mean, second = _moments(views, share)
    x, y = (
        _whitened(view, mean[part], second[part, part], strength, name)
        for view, part, name in zip(views, (slice(0, sizes[0]), slice(sizes[0], None)), ("X", "Y"))
    )
    crossed = second[: sizes[0], sizes[0] :]
    left, found, right = scipy.linalg.svd(y.solve(x.solve(crossed).T).T)
    found = found[:c]
    sides = (x, y)
    missed = share.max() * sum(side.view.missed / side.penalty for side in sides)
    below = share.max() * sum(side.view.below / side.penalty for side in sides)
    error = sum(side.rounding for side in sides)
    null, p_interval = np.zeros(0), np.ones(2)
    if permutations:
        A, B = (side.solve((np.asarray(side.view.features) - side.mean).T).T for side in (x, y))
        values, same = over_permutations(
            lambda p: np.linalg.norm(A.T @ B[p], 2) / n, n, permutations, rng, n_threads, B.nbytes
        )
        half = np.full(len(values), missed / 2 + below + 3.0 * error)
        null, p_interval = values[1:], np.asarray(interval_of(values**2 + missed / 2, half, same))
    return CCAModel(
        correlations=found,
        correlation_bounds=np.column_stack(
            [
                np.maximum(np.sqrt(np.maximum(found**2 - below, 0.0)) - error, 0.0),
                np.minimum(np.sqrt(found**2 + missed + below) + error, 1.0),
            ]
        ),
        x=x.side(left[:, :c]),
        y=y.side(right[:c].T),
        null=null,
        p_interval=p_interval,
        n_samples=n,
        info={"method": "features", "x": x.view.info, "y": y.view.info},
    )


@dataclass(frozen=True, eq=False)
class _Whitened:
    """A view with the mean of its features, and Cholesky's factor of their penalised covariance.

    The factor's inverse is an inverse root but for a rotation, which changes no singular value.
    """

    view: Products
    mean: np.ndarray
    root: np.ndarray
    penalty: float
    variance: float

    @property
    def rounding(self) -> float:
        """Error bound of a singular value: features are moved by r in the mean square, and whitened ones by r over the
        root of the penalty, also through the covariance; sums and factors err by their rounding, over the penalty."""
        D, n = len(self.root), self.view.n_samples
        size = self.variance + float(self.mean @ self.mean)
        r = (self.view.features.map.rounding + rounding_factor(n) * UNIT) * np.sqrt(size)
        sums = (rounding_factor(n) + 4.0 * D + 8.0) * UNIT * (self.variance + self.penalty)
        return float(2.0 * r / np.sqrt(self.penalty) + 2.0 * sums / self.penalty)

    def solve(self, right: np.ndarray) -> np.ndarray:
        return scipy.linalg.solve_triangular(self.root, right, lower=True)

    def side(self, turn: np.ndarray) -> Side:
        weights = scipy.linalg.solve_triangular(self.root, turn, lower=True, trans="T")
        function_of_rows = self.view.feature_function(weights, self.mean @ weights)
        return Side(kernel=self.view.kernel.unbound(), function=function_of_rows, penalty=self.penalty)


def _whitened(view: Products, mean: np.ndarray, covariance: np.ndarray, strength: float, name: str) -> _Whitened:
    variance = float(np.trace(covariance))
    if not variance > len(covariance) * EPS * float(mean @ mean):
        raise ValueError(f"{name} does not vary in the space of its kernel; kernel_cca needs views that do")
    penalised = covariance + strength * variance * np.eye(len(covariance))
    return _Whitened(view, mean, scipy.linalg.cholesky(penalised, lower=True), strength * variance, variance)


def _moments(views: list[Products], share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (D,) and covariance (D, D) of the features of both views side by side, in one pass over the rows.

    Centred tile by tile and merged (Chan, Golub and LeVeque 1979): nothing cancels.
    """
    mean, second, total, first = np.zeros(()), np.zeros(()), 0.0, 0
    tiles = (as_rows(view.X).shifted(view.features.shift).tiles(DRAFT_ROWS) for view in views)
    for parts in zip(*tiles):
        Phi = np.hstack([view.features.map.features(tile) for view, (_, tile) in zip(views, parts)])
        weights = share[first : first + len(Phi)]
        first, here = first + len(Phi), float(weights.sum())
        if here > 0.0:
            centre = weights @ Phi / here
            Phi = (Phi - centre) * np.sqrt(weights)[:, None]
            away = centre - mean
            total += here
            second = second + Phi.T @ Phi + np.outer(away, away) * (here * (total - here) / total)
            mean = mean + away * (here / total)
    return mean, second
