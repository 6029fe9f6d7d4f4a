"""Kernel k-means with a proof of how much better any other clustering could be.

Dhillon, Guan, Kulis, Kernel k-means, spectral clustering and normalized cuts, 2004. Groups are found among the leading
components; then each row goes to the nearest mean in the whole space, until nothing changes. What is proved of other
clusterings stands in ``partition``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import fastkpca as fk
from fastkpca.base.rounding import UNIT, rounding_factor
from fastkpca.errors import CertificateWarning, ComponentsWarning
from fastkpca.methods import Randomness, check_count

from .methods import stored
from .methods.base import KernelMethod
from .methods.functions import KernelFunction, function
from .methods.options import FitOptions, row_weights
from .methods.partition import Product, certificate, filled, frame, indicators, partition
from .methods.permutation import LEAST_ROWS
from .methods.products import (
    DRAFT_ROWS,
    Products,
    entry_error,
    for_lengths,
    need_semidefinite,
    products_for,
    quick_gram,
    second_moment,
    some_features,
    training_rows,
)
from .methods.threads import one_blas_thread

__all__ = ["KMeansModel", "assign", "kernel_kmeans"]

COMPONENTS_PER_GROUP = 2
"""Leading components for each group, in which Lloyd's algorithm starts: k - 1 of them span the best subspace."""
MISSED_FRACTION = 1e-4
"""Share of the centred trace that a map may miss: certificates are about per cents of the cost."""


def group_count(k: Any, n_samples: int) -> int:
    """k, a number of groups of n rows."""
    k = check_count(k, "k")
    if n_samples < LEAST_ROWS:
        raise ValueError(f"X has n_samples={n_samples} rows; clustering needs at least {LEAST_ROWS}")
    if not k < n_samples:
        raise ValueError(f"k is {k}; {n_samples} rows have 1 to {n_samples - 1} groups")
    return k


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Grouping(KernelMethod):
    """A clustering, and what is proved of all others with as many groups.

    Attributes
    ----------
    cost_bounds : ndarray (2,)
        Interval around the cost of this clustering.
    least_cost : float
        No clustering into k groups costs less. Negative only of a matrix whose entries are rounded that much.
    differing : float
        Any clustering that costs no more differs from this one in at most this share of the rows (by weight, after the
        best matching of groups); 1.0 where nothing is known.
    gap : ndarray (2,)
        Interval around the gap between the eigenvalues that ``differing`` rests on.
    sizes : ndarray (k,)
        Weight of each group.
    labels : ndarray (N,)
        Group of each training row; empty in a model from a file.
    """

    made_by = "kernel_kmeans() or spectral_clustering()"

    cost_bounds: np.ndarray = field(metadata=stored.array("2"))
    least_cost: float = field(metadata=stored.number())
    differing: float = field(metadata=stored.number(least=0.0))
    gap: np.ndarray = field(metadata=stored.array("2"))
    sizes: np.ndarray = field(metadata=stored.array("k", least=0.0))
    labels: np.ndarray = field(metadata=stored.in_file(lambda record, name, known: np.empty(0, dtype=np.intp), None))

    @property
    def counted(self) -> str:
        """The total of which ``differing`` is a fraction."""
        return "rows"

    @property
    def n_groups(self) -> int:
        return len(self.sizes)

    @property
    def above_least(self) -> float:
        """Bound on the excess of the cost over that of the best clustering, relative to the latter; inf: nothing is
        known.
        """
        excess = max(float(self.cost_bounds[1]) - self.least_cost, 0.0)
        return excess / self.least_cost if self.least_cost > 0.0 else np.inf

    @property
    def verdict(self) -> str:
        """The certificate in words."""
        best = f"the best clustering into {self.n_groups} groups"
        if self.least_cost > 0.0:
            cost = f"its cost is at most {100 * self.above_least:.2g} % above that of {best}"
        else:
            cost = f"nothing is proved about the cost of {best}: the bound on it is not positive"
        if self.differing < 1.0:
            rows = f"any that costs no more differs in at most {100 * self.differing:.2g} % of the {self.counted}"
        elif self.gap[0] > 0.0:
            rows = "others that cost no more may look quite different: the groups overlap too much for a proof"
        else:
            rows = f"nothing is proved about others that cost no more: no gap follows the first {self.n_groups} groups"
        return f"{cost}; {rows}"

    def predict(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As the function ``assign``."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KMeansModel(Grouping):
    """A clustering by kernel k-means; the cost is the sum of squared distances to the means of the groups.

    Attributes
    ----------
    kernel : Kernel
    function : KernelFunction
        For each group j, <phi(x), m_j> - |m_j|^2 / 2, with means about that of all rows: the largest is the nearest.
    """

    function: KernelFunction = field(metadata=function("k"))

    @property
    def inertia(self) -> float:
        """The cost, the middle of its interval."""
        return float(self.cost_bounds.mean())

    def predict(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As the function ``assign``."""
        return np.argmax(self.function(X, n_threads), axis=1)

    def facts(self) -> list[str]:
        return [f"{self.kernel!r}, {self.n_groups} groups", self.verdict, f"method={self.info['method']!r}"]


def assign(model: Grouping, X: Any, *, n_threads: int | None = None) -> np.ndarray:
    """The groups of new rows.

    Parameters
    ----------
    model : KMeansModel or SpectralModel
    X : array_like (m, d)
        New rows, with the columns of the training rows; for a precomputed kernel the (m, N) matrix between new and
        training rows.
    n_threads : int, optional
        Default: all processors.

    Returns
    -------
    ndarray (m,), int
        Numbers from 0 to k - 1.
    """
    return Grouping.of(model).predict(X, n_threads=n_threads)


@one_blas_thread
def kernel_kmeans(
    X: Any,
    kernel: Any = "gaussian",
    k: int = 2,
    *,
    tol: float | None = None,
    method: str = "auto",
    max_features: int | None = None,
    max_iterations: int = 100,
    sample_weight: Any = None,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> KMeansModel:
    """Kernel k-means, and a certificate about every other clustering.

    Minimises sum_j sum_(i in C_j) w_i |phi(x_i) - mean of C_j|^2 (Dhillon, Guan, Kulis 2004), by k-means++ and Lloyd's
    algorithm among the leading components, then in the whole space. No clustering into k groups costs less than the
    trace of the centred kernel matrix minus its k - 1 largest eigenvalues (Zha, Ding, Gu, He, Simon 2001), of which
    upper ends are known.

    Parameters
    ----------
    X : array_like (N, d)
        At least 4 rows.
    kernel : str, Kernel, object with ``block``, or callable
        Positive semidefinite.
    k : int
        Number of groups, from 1 to N - 1.
    tol : float, optional
        The part of the trace of the centred K that a feature map may miss. By default 1e-4; without a target where
        ``max_features`` is given: the interval around the cost says how good that is.
    method : {"auto", "features", "gram"}
        Through a feature map, a pass over the rows in each iteration; through products with K; or a map where one is
        small enough.
    max_features : int, optional
    max_iterations : int
        Passes of Lloyd's algorithm in the whole space, at most.
    sample_weight : array_like (N,), optional
        Non-negative; a whole number counts the row that many times.
    n_threads : int, optional
        Default: all processors.
    rng : int, Generator, SeedSequence or None
        Random numbers for the starts, and for the map.
    **kernel_parameters

    Returns
    -------
    KMeansModel
        ``labels``, ``inertia``, ``cost_bounds``, ``least_cost``, ``differing``, ``verdict``; ``predict`` for new rows.

    Raises
    ------
    ValueError
        The kernel is not positive semidefinite; the rows have fewer than k different images.

    Examples
    --------
    >>> import numpy as np
    >>> from kernels_contrib.clustering import kernel_kmeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 0.1, (100, 2)) for m in (0, 1, 3)])
    >>> model = kernel_kmeans(X, "gaussian", 3, sigma=1.0)
    >>> np.bincount(model.labels).tolist(), model.differing < 0.01
    ([100, 100, 100], True)
    """
    X = training_rows(X, "kernel_kmeans")
    n = X.shape[0]
    k, max_iterations = group_count(k, n), check_count(max_iterations, "max_iterations")
    weights = row_weights(sample_weight, n)
    options = FitOptions(
        kernel, kernel_parameters, method, MISSED_FRACTION if tol is None else tol, max_features, n_threads, rng, True
    )
    options = for_lengths(options, n, "kernel_kmeans")
    products = _products(X, options, budget=tol is None and max_features is not None)
    need_semidefinite(products.kernel, "kernel_kmeans")
    Phi = None if products.features is None else products.held_features()
    space = _of_products(products, weights, k, options) if Phi is None else _of_features(products, Phi, weights, k)
    labels = partition(space.points, weights, k, Randomness(rng).generator)
    groups = _lloyd(products, Phi, weights, labels, space, max_iterations)
    low, high = (max(total - groups.between, space.least) for total in space.total)
    costs = (max(low - space.error, space.least), high + space.error)
    found = certificate(
        space.remainder,
        costs,
        space.eigenvalues[max(k - 2, 0) : k] + np.array([0.0, space.missed]),
        (groups.labels, weights, groups.sizes),
        frame(space.points, weights, _centred(products, Phi, weights), space.eigenvalues[:, 1], space.error),
        groups.between - space.error - space.missed,
        space.least,
    )
    function = products.function if products.features is None else products.feature_function
    return KMeansModel(
        **found,
        kernel=products.kernel.unbound(),
        function=function(groups.columns, groups.constant),
        info=products.info | space.info | {"iterations": groups.iterations},
    )


def _products(X: Any, options: FitOptions, *, budget: bool) -> Products:
    """K of the rows: fast products, or exact ones of few rows; else a map; with a ``budget`` one of any residual."""
    given = {"n_threads": options.n_threads, "rng": options.rng, "center": True, **options.parameters}
    if budget and options.method != "gram":
        features = some_features(X, options.kernel, max_features=options.max_features, **given)
        return Products(X, features.kernel, features=features, n_threads=options.n_threads)
    if options.method != "features":
        gram = quick_gram(X, options.kernel, **(given | {"center": not sp.issparse(X.source)}))
        if options.method == "gram" or gram.products != "exact" or X.shape[0] <= DRAFT_ROWS:
            return Products(X, gram.kernel, gram=gram, n_threads=options.n_threads)
    return products_for(X, options)


@dataclass(frozen=True)
class _Space:
    """The images of the rows about their mean, and bounds.

    Attributes
    ----------
    points : ndarray (N, q)
        Their leading components.
    total : tuple of float
        Ends of the cost of one group of all rows.
    remainder : float
        Lower end of the total less the k - 1 largest eigenvalues.
    eigenvalues : ndarray (at least k, and more than q, 2)
        Intervals around the leading ones.
    error : float
        Error of the computed cost between groups.
    missed : float
        Residual of a feature map: the cost in the map's space may be lower by this.
    least : float
        No cost is below: zero, but for a matrix whose rounding is negative.
    info : dict
    """

    points: np.ndarray
    total: tuple[float, float]
    remainder: float
    eigenvalues: np.ndarray
    error: float
    missed: float = 0.0
    least: float = 0.0
    info: dict[str, Any] = field(default_factory=dict)


def _of_features(products: Products, Phi: Any, weights: np.ndarray, k: int) -> _Space:
    """`_Space` from the second moment of a feature map.

    With Phi the rows' features, a cost is |(I - Q) Phi|_F^2 (Q of ``partition``) plus that of the residual of the map,
    which is semidefinite: between zero and its trace. Rounding moves Phi by at most r in the Frobenius norm. So it
    moves by at most r the square roots of a cost, of the trace, and of ``remainder``, the least of all |(I - Q)
    Phi|_F^2. Sums and the eigensolver round as in kpca; a part of K that is not semidefinite, of norm and trace at most
    b, moves a cost by (k + 1) b.
    """
    features, n = products.features, products.n_samples
    moments = features.moments(weights)
    D, trace, mean = features.shape[1], moments.trace, np.array(moments.mean)
    second = second_moment(moments)
    values, vectors = np.linalg.eigh((second + second.T) / 2)
    values, vectors = np.append(np.maximum(values[::-1], 0.0), np.zeros(COMPONENTS_PER_GROUP * k + 1)), vectors[:, ::-1]
    kernel_trace = trace + moments.count * float(mean @ mean) + moments.residual_trace
    rounds = rounding_factor(n) * UNIT
    r = (features.map.rounding + 2.0 * rounds) * np.sqrt(kernel_trace)
    error = 2.0 * np.sqrt(trace) * r + r**2 + (k + 1) * features.map.defect_norm(moments.count, kernel_trace)
    error += k * ((rounds + 8.0 * np.sqrt(D) * UNIT + 8.0 * UNIT) * trace + moments.error)
    axes = vectors[:, : COMPONENTS_PER_GROUP * k - 1]
    return _Space(
        points=Phi @ axes - mean @ axes,
        total=(trace, trace + moments.residual_trace),
        remainder=float(trace - values[: k - 1].sum() - error),
        eigenvalues=values[:, None] + error * np.array([-1.0, 1.0]),
        error=error,
        missed=moments.residual_trace + 2.0 * error,
    )


def _of_products(products: Products, weights: np.ndarray, k: int, options: FitOptions) -> _Space:
    """`_Space` from kernel PCA; the cost between groups by a product whose error is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComponentsWarning)
        if products.gram.kernel.below_zero:  # which the bounds on the cost have
            warnings.simplefilter("ignore", CertificateWarning)
        model = fk.kpca(
            products.X,
            products.kernel.unbound(),
            min(COMPONENTS_PER_GROUP * k, products.n_samples - 1),
            sample_weight=weights,
            n_threads=options.n_threads,
            rng=options.rng,
        )
    total = (model.count - 1.0) * np.array(model.total_variance_bounds)
    bounds = model.eigenvalue_bounds
    # components that were not found carry no variance but rounding; the trace says how much they may have at most
    below = products.gram.kernel.below_zero * float(weights.max())
    remainder = max(total[1] - bounds[:, 0].sum(), 0.0) + len(weights) * below
    bounds = np.vstack([bounds, np.tile([-below, remainder], (k, 1))])
    each = entry_error(products.gram)
    return _Space(
        points=np.asarray(model.score[:, : COMPONENTS_PER_GROUP * k - 1], dtype=np.float64),
        total=(float(total[0]), float(total[1])),
        remainder=float(total[0] - bounds[: k - 1, 1].sum()),
        eigenvalues=bounds,
        # |B_j' error| <= each |B_j|_1^2 <= 4 each, for each part by its weight
        error=4.0 * model.count * each + len(weights) * below,
        least=-len(weights) * below,
        info={"kpca": model.plan.method, "failure_probability": model.failure_probability},
    )


def _centred(products: Products, Phi: Any, weights: np.ndarray) -> Product:
    """Products with the centred, weighted kernel matrix."""
    roots, total = np.sqrt(weights)[:, None], weights.sum()

    def product(U: np.ndarray) -> np.ndarray:
        V = roots * U
        V = V - weights[:, None] * (V.sum(axis=0) / total)
        V = products.gram @ V if Phi is None else Phi @ (Phi.T @ V)
        return np.asarray(roots * (V - weights @ V / total))

    return product


@dataclass(frozen=True)
class _Groups:
    """A clustering: labels (N,), sizes (k,), the cost between groups, and the function that assigns rows."""

    labels: np.ndarray
    sizes: np.ndarray
    between: float
    columns: np.ndarray
    constant: np.ndarray
    iterations: int


def _lloyd(products: Products, Phi: Any, weights: np.ndarray, labels: np.ndarray, space: _Space, most: int) -> _Groups:
    """Lloyd's algorithm in the whole space from these labels, while a step gains more than the cost's error."""
    k, found = int(labels.max()) + 1, None
    lengths = np.einsum("ij,ij->i", space.points, space.points)
    for iteration in range(most):
        B, sizes = indicators(labels, weights, k)
        if Phi is None:
            G, columns = products.gram @ B, B
            squares = np.einsum("ij,ij->j", B, G)
        else:
            columns = Phi.T @ B
            G, squares = Phi @ columns, np.einsum("ij,ij->j", columns, columns)
        between, mean = float(sizes @ squares), weights @ G / weights.sum()
        if found is not None and not between > found.between:
            break
        gained = np.inf if found is None else between - found.between
        found = _Groups(labels, sizes, between, columns, mean + squares / 2.0, iteration + 1)
        if not gained > space.error or iteration == most - 1:
            break
        G = squares - 2.0 * (G - mean)
        after = np.argmin(G, axis=1)
        after = filled(after, lengths + G[np.arange(len(G)), after], weights, k)
        if np.array_equal(after, labels):
            break
        labels = after
    assert found is not None
    return found
