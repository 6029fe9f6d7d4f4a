"""Spectral clustering and diffusion maps: the random walk between rows, with intervals around its eigenvalues.

Rows have similarities K_ij >= 0 and weights a_i. With q = K a (densities) and r = K (a q^-alpha), the walk goes from
row i to row j with probability K_ij a_j q_j^-alpha / r_i (Coifman, Lafon 2006; alpha = 0: Shi, Malik 2000). It has the
eigenvalues of the symmetric

    N = sqrt(w) sqrt(w)' o K,    w = a q^-alpha / r    (alpha = 0: D^-1/2 K D^-1/2, with the degrees D),

which is the uncentred kernel matrix of rows with weights w: what kpca gives intervals for. Its first eigenvector is the
root of the volumes a q^-alpha r, with the eigenvalue 1. Computed sums q and r err by factors within 1 +- e. So N = S N'
S for the computed N' and a diagonal S, and each eigenvalue moves by a factor in the range of S^2 (Ostrowski).

With volumes as weights, a normalised cut is k - tr(Q N) for the Q of ``partition`` (Dhillon, Guan, Kulis 2004). So the
proofs there hold word by word for A = N without its first eigenvector. No clustering has a normalised cut below the sum
of 1 - lambda_i, i = 2 to k.

With u_i the eigenvectors of N, the functions psi_i = u_i sqrt(V) / sqrt(volume) (V: all volumes) are the walk's, and
psi_1 = 1. Of a new row, psi_i(x) = sum_j k(x, x_j) a_j q_j^-alpha psi_ij / (lambda_i r(x)), where the sum is
sqrt(lambda_i V) times the score of kpca, and r(x) = sum_i sqrt(lambda_i) (u_i . sqrt(volume)) score_i(x), to which only
eigenvalues of 1 contribute.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

import fastkpca as fk
from fastkpca.base import parallel
from fastkpca.base.rounding import UNIT, rounding_factor
from fastkpca.errors import ComponentsWarning
from fastkpca.methods import (
    Randomness,
    Rows,
    as_float,
    as_rows,
    check_choice,
    check_columns_of,
    check_count,
    check_finite,
)

from .clustering import Grouping, group_count
from .errors import warn_fewer
from .methods import stored
from .methods.base import KernelMethod, Projection
from .methods.functions import ComponentFunction, function
from .methods.options import row_weights
from .methods.partition import certificate, frame, means, nearest, partition
from .methods.products import entry_error, quick_gram, training_rows
from .methods.threads import one_blas_thread

__all__ = ["DiffusionModel", "SpectralModel", "diffusion_map", "neighbor_graph", "spectral_clustering"]

AFFINITIES = ("kernel", "nearest_neighbors")
N_NEIGHBORS = 10
"""Neighbours of a row in its graph: scikit-learn's default."""
MAX_GROUPS = 10
"""Groups, at most, where their number is searched."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WalkModel(KernelMethod):
    """The random walk in the results of both methods, with its attributes."""

    eigenvalues: np.ndarray = field(metadata=stored.array("e"))
    eigenvalue_bounds: np.ndarray = field(metadata=stored.array("e2"))
    function: ComponentFunction = field(metadata=function("f"))
    least_sum: float = field(metadata=stored.number())

    @property
    def gaps(self) -> np.ndarray:
        """Intervals around the gaps between successive eigenvalues, one less than these."""
        low, high = self.eigenvalue_bounds.T
        return np.column_stack([np.maximum(low[:-1] - high[1:], 0.0), high[:-1] - low[1:]])

    def coordinates_of(self, X: Any, n_threads: int | None) -> np.ndarray:
        """Coordinates of new rows: all values of the function over its last one, the sum r(x)."""
        values = self.function(X, n_threads)
        if not (values[:, -1] > self.least_sum).all():
            row = int(np.argmin(values[:, -1]))
            raise ValueError(
                f"row {row} of X is similar to none of the training rows, as far as "
                f"{self.function.components.n_components} components tell; leave it out, or take a wider kernel or "
                "more components"
            )
        return values[:, :-1] / values[:, -1:]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DiffusionModel(WalkModel, Projection):
    """A diffusion map.

    Attributes
    ----------
    eigenvalues : ndarray (c + 1,)
        Eigenvalues of the random walk, the first of which is 1.
    eigenvalue_bounds : ndarray (c + 1, 2)
        An interval around each.
    kernel : Kernel
    alpha : float
    time : float
    coordinates : ndarray (N, c)
        Coordinates of the training rows; empty in a model from a file.
    """

    alpha: float = field(metadata=stored.number(least=0.0))
    time: float = field(metadata=stored.number(least=0.0))
    coordinates: np.ndarray = field(metadata=stored.not_stored("f", less=1))

    def project(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As the function ``project``."""
        return self.coordinates_of(X, n_threads)

    def facts(self) -> list[str]:
        values = ", ".join(f"{x:.4g}" for x in self.eigenvalues[:5])
        return [f"{self.kernel!r}, alpha={self.alpha:g}, time={self.time:g}", f"eigenvalues {values}, ..."]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SpectralModel(WalkModel, Grouping):
    """A spectral clustering; the cost is the normalised cut, and shares of rows are by volume (weight times degree).

    Attributes
    ----------
    eigenvalues : ndarray (m,)
        Eigenvalues of the random walk, the first of which is 1; m is at least k + 1 where N > k.
    eigenvalue_bounds : ndarray (m, 2)
        An interval around each.
    kernel : Kernel
    centres : ndarray (k, k)
        Centres of the groups, in the coordinates psi_1 to psi_k.
    """

    centres: np.ndarray = field(metadata=stored.array("kg"))

    @property
    def counted(self) -> str:
        """The total of which ``differing`` is a fraction."""
        return "rows by volume"

    @property
    def cut(self) -> float:
        """The normalised cut, the middle of its interval."""
        return float(self.cost_bounds.mean())

    @one_blas_thread
    def predict(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As the function ``assign``."""
        return nearest(self.coordinates_of(X, n_threads), self.centres)[0]

    def facts(self) -> list[str]:
        chosen = self.info.get("number")
        return [f"{self.kernel!r}, {self.n_groups} groups" + (f" ({chosen})" if chosen else ""), self.verdict]


@dataclass(frozen=True)
class _Walk:
    """The random walk between the rows.

    Attributes
    ----------
    gram : GramOperator
    model : KPCAModel
        Model of the rows with weights ``weights`` times ``scale``, not centred.
    weights, start, sums, volumes : ndarray (N,)
        w, a q^-alpha, r, and a q^-alpha r.
    bounds : ndarray (m, 2)
    psi : ndarray (N, m)
        Eigenfunctions at the rows; the first is constant.
    turn : ndarray (m, m)
        Rotation of the computed eigenvectors that makes the first constant: those whose intervals contain 1 span one
        space.
    relative : float
        Relative error e of the weights.
    """

    gram: Any
    model: Any
    weights: np.ndarray
    start: np.ndarray
    sums: np.ndarray
    volumes: np.ndarray
    eigenvalues: np.ndarray
    bounds: np.ndarray
    psi: np.ndarray
    turn: np.ndarray
    relative: float

    def fields(self, columns: slice, factors: np.ndarray | float) -> dict[str, Any]:
        """Function for coordinates (these columns of psi, times factors) and r(x); and the lower limit of r(x)."""
        roots, total = np.sqrt(self.eigenvalues), self.volumes.sum()
        of_sum = roots * (self.turn @ (self.volumes @ self.psi)) / np.sqrt(total)
        error = np.abs(np.asarray(self.model.score, dtype=np.float64) @ of_sum - self.sums).max()
        of_psi = (np.sqrt(total) / roots)[:, None] * self.turn
        weights = np.column_stack([of_psi[:, columns] * factors, of_sum])
        return {
            "eigenvalues": self.eigenvalues,
            "eigenvalue_bounds": self.bounds,
            "kernel": self.gram.kernel.unbound(),
            "function": ComponentFunction(components=self.model, weights=weights, constant=np.zeros(weights.shape[1])),
            "least_sum": float(10.0 * error),
        }

    @property
    def info(self) -> dict[str, Any]:
        method, failure = self.model.plan.method, self.model.failure_probability
        return {"method": method, "products": self.gram.products, "failure_probability": failure}

    def product(self, U: np.ndarray) -> np.ndarray:
        """N without its first eigenvector, times U."""
        first, roots = np.sqrt(self.volumes / self.volumes.sum()), np.sqrt(self.weights)[:, None]
        return np.asarray(roots * (self.gram @ (roots * U)) - np.outer(first, first @ U))

    @property
    def product_error(self) -> float:
        """Error bounds for a unit column: of the product |sqrt(w)|_1 |sqrt(w)|_2 at most, of the weights 3 e |N|."""
        return entry_error(self.gram) * float(self.weights.sum()) + 3.0 * self.relative + 8.0 * UNIT


def _similarities(X: Any, kernel: Any, n_threads: int | None, rng: Any, parameters: dict[str, Any]) -> Any:
    """Products with K; refused where values are negative."""
    gram = quick_gram(X, kernel, n_threads=n_threads, rng=rng, **parameters)
    n = gram.shape[0]
    rows = np.unique(np.linspace(0, n - 1, parallel.tile_rows(n)).astype(np.intp))
    least = float(gram[rows].min())
    if least < -1e-12 * float(np.abs(gram.diagonal()).max()):
        raise ValueError(
            f"{gram.kernel!r} has negative values on these rows (down to {least:.3g}), which are no similarities; take "
            "a kernel without, such as the Gaussian, or kernel_kmeans"
        )
    return gram


def _sums(gram: Any, start: np.ndarray) -> tuple[np.ndarray, float]:
    """(K start, its relative error), which must be positive."""
    sums = gram @ start
    error = entry_error(gram) * float(start.sum())
    if not sums.min() > 2.0 * error:
        raise ValueError(
            f"the similarities of row {int(np.argmin(sums))} sum to {sums.min():.3g} under {gram.kernel!r}, within the "
            "rounding of zero; leave this row out, or take another kernel"
        )
    return sums, error / float(sums.min() - error) + 4.0 * UNIT


def _walk(X: Any, gram: Any, c: int, alpha: float, sample_weight: Any, options: dict[str, Any]) -> _Walk:
    n = gram.shape[0]
    a = row_weights(sample_weight, n)
    start, relative = a, 0.0
    if alpha > 0.0:
        densities, relative = _sums(gram, a)
        start = a * (densities / densities.max()) ** -alpha
    sums, error = _sums(gram, start)
    relative = 2.0 * alpha * relative + error
    weights = start / sums
    scale = n / weights.sum()  # kpca wants weights that sum to more than one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComponentsWarning)
        model = fk.kpca(X, gram.kernel.unbound(), min(c, n), center=False, sample_weight=scale * weights, **options)
    bounds = model.eigenvalue_bounds / scale
    bounds = bounds + np.abs(bounds) * 2.0 * relative * np.array([-1.0, 1.0])
    if not bounds[0, 0] <= 1.0 <= bounds[0, 1]:
        raise ValueError(
            f"the first eigenvalue of the random walk is {bounds[0, 0]:.6g} to {bounds[0, 1]:.6g} instead of 1: some "
            f"values of {gram.kernel!r} are negative on these rows; take a kernel without, such as the Gaussian"
        )
    bounds = np.minimum(bounds, 1.0)  # the eigenvalues of a random walk
    eigenvalues = np.clip(model.eigenvalues / scale, bounds[:, 0], bounds[:, 1])
    volumes = start * sums
    score = np.asarray(model.score, dtype=np.float64)
    psi = score / np.sqrt(eigenvalues) * (np.sqrt(volumes.sum()) / sums)[:, None]
    turn = _turn(volumes @ psi / volumes.sum(), int(np.sum(bounds[:, 1] >= bounds[0, 0])))
    return _Walk(gram, model, weights, start, sums, volumes, eigenvalues, bounds, psi @ turn, turn, relative)


def _turn(constant: np.ndarray, m: int) -> np.ndarray:
    """A reflection among the first m axes that takes the constant function, of these coordinates, to the first."""
    axis = np.zeros(len(constant))
    axis[:m] = constant[:m] / max(float(np.linalg.norm(constant[:m])), 1e-300)
    axis[0] -= 1.0
    square = float(axis @ axis)
    return np.eye(len(axis)) - (2.0 / square * np.outer(axis, axis) if square > 1e-20 else 0.0)


def neighbor_graph(X: Any, n_neighbors: int = N_NEIGHBORS, train: Any = None) -> sp.csr_array:
    """Nearest neighbours of rows, by Euclidean distance: ones where j is a neighbour of row i.

    Parameters
    ----------
    X : array_like (m, d)
    n_neighbors : int
        Number of neighbours of each row, among those of ``train``.
    train : array_like (N, d), optional
        Default: X, and each row is its own first neighbour, as in scikit-learn's graph of spectral clustering.

    Returns
    -------
    csr_array (m, N)
        What ``assign`` takes for new rows X after ``spectral_clustering(train, affinity="nearest_neighbors")``. Of the
        training rows A, that clusters the similarities (A + A') / 2.
    """
    rows = as_rows(X, name="X", purpose="neighbor_graph")
    known = rows if train is None else as_rows(train, name="train", purpose="neighbor_graph")
    check_columns_of(known, rows, name="train")
    points, others = _points(rows, "X"), _points(known, "train")
    n_neighbors = check_count(n_neighbors, "n_neighbors")
    if n_neighbors > len(others):
        raise ValueError(f"n_neighbors is {n_neighbors}; there are {len(others)} rows to choose from")
    index = cKDTree(others).query(points, k=np.arange(1, n_neighbors + 1))[1]
    starts = np.arange(0, index.size + 1, n_neighbors)
    return sp.csr_array((np.ones(index.size), index.ravel(), starts), shape=(len(points), len(others)))


def _points(rows: Rows, name: str) -> np.ndarray:
    check_finite(rows, name=name, purpose="neighbor_graph")
    return np.asarray(rows.shifted(np.zeros(rows.n_features)).all(), dtype=np.float64)


@one_blas_thread
def spectral_clustering(
    X: Any,
    kernel: Any = "gaussian",
    k: int | None = None,
    *,
    affinity: str = "kernel",
    n_neighbors: int | None = None,
    max_groups: int | None = None,
    tol: float | None = None,
    method: str = "auto",
    max_features: int | None = None,
    sample_weight: Any = None,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> SpectralModel:
    """Spectral clustering (Shi, Malik 2000), with a certificate about every other clustering.

    k-means on coordinates 1 to k of the random walk between the rows, weighted by volume (weight times degree).
    Eigenvalues have intervals. No clustering into k groups has a normalised cut below the sum of 1 - lambda_i, i = 2 to
    k, of which lower ends are known.

    Parameters
    ----------
    X : array_like (N, d)
        At least 4 rows; the matrix of similarities (N, N) for ``kernel="precomputed"``.
    kernel : str, Kernel, object with ``block``, or callable
        Without negative values. A matrix of similarities may be indefinite, as that of a graph is.
    k : int, optional
        Number of groups, from 1 to N - 1. Default: the number from 2 to ``max_groups`` after which the gap between
        eigenvalues is the largest; ``info["number"]`` says whether the intervals prove that it is.
    affinity : {"kernel", "nearest_neighbors"}
        "nearest_neighbors": similarities are those of scikit-learn's graph, 1 between two rows that are among each
        other's ``n_neighbors`` nearest, 1/2 where one is (``neighbor_graph``); there is no kernel. The model is then
        that of a precomputed matrix.
    n_neighbors : int, optional
        Of "nearest_neighbors", 10 by default; a row itself is the first.
    max_groups : int, optional
        10 by default; refused where k is given.
    tol : float, optional
        Width of the intervals around eigenvalues. By default 1e-6; without a target where ``max_features`` is given.
    method : {"auto", "dense", "features", "krylov"}
        As for ``fastkpca.kpca``, like the next.
    max_features : int, optional
    sample_weight : array_like (N,), optional
        Non-negative; a whole number counts the row that many times.
    n_threads : int, optional
        Default: all processors.
    rng : int, Generator, SeedSequence or None
    **kernel_parameters

    Returns
    -------
    SpectralModel
        ``labels``, ``eigenvalues``, ``eigenvalue_bounds``, ``gaps``, ``cut``, ``least_cost``, ``differing``,
        ``verdict``; ``predict`` for new rows.

    Raises
    ------
    ValueError
        The kernel has negative values; a row is similar to none.

    Examples
    --------
    >>> import numpy as np
    >>> from kernels_contrib.diffusion import spectral_clustering
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 0.2, (100, 2)) for m in (0, 1, 3)])
    >>> model = spectral_clustering(X, "gaussian", sigma=0.3)
    >>> np.bincount(model.labels).tolist(), model.info["number"]
    ([100, 100, 100], 'proved to have the largest gap')
    """
    check_choice(affinity, "affinity", AFFINITIES)
    if affinity == "nearest_neighbors":
        if kernel_parameters or not (isinstance(kernel, str) and kernel == "gaussian"):
            raise ValueError("affinity='nearest_neighbors' takes no kernel; leave out the kernel and its parameters")
        A = neighbor_graph(X, N_NEIGHBORS if n_neighbors is None else n_neighbors)
        X, kernel = (A + A.T) / 2, "precomputed"
    elif n_neighbors is not None:
        raise ValueError(f"n_neighbors={n_neighbors} is of affinity='nearest_neighbors'; give that too, or drop it")
    X = training_rows(X, "spectral_clustering")
    n = X.shape[0]
    if k is None:
        count = check_count(MAX_GROUPS if max_groups is None else max_groups, "max_groups")
        most = group_count(min(count, n - 1), n)
    elif max_groups is None:
        most = group_count(k, n)
    else:
        raise ValueError(f"max_groups={max_groups} bounds a number of groups that is searched; drop it, or k={k}")
    options = {"tol": tol, "method": method, "max_features": max_features, "n_threads": n_threads, "rng": rng}
    gram = _similarities(X, kernel, n_threads, rng, kernel_parameters)
    wanted = most + 2  # beyond that of the last group one for its gap, and one that bounds all others
    walk = _walk(X, gram, wanted, 0.0, sample_weight, options)
    bounds = np.vstack([walk.bounds, np.tile([-1.0, walk.bounds[-1, 1]], (wanted - len(walk.bounds), 1))])
    info = walk.info
    if k is None:
        k, info["number"] = _number_of_groups(bounds, most)
    if len(walk.bounds) < k:
        raise ValueError(
            f"the rows have only {len(walk.bounds)} different places under {gram.kernel!r}; take a smaller k"
        )
    return _model(walk, bounds, k, rng, info)


def _model(walk: _Walk, bounds: np.ndarray, k: int, rng: Any, info: dict[str, Any]) -> SpectralModel:
    """k-means on the walk's functions, and the certificate; ``bounds`` are those of at least k + 1 eigenvalues."""
    points = walk.psi[:, :k]
    labels = partition(points, walk.volumes, k, Randomness(rng).generator)
    volumes = np.bincount(labels, walk.volumes, minlength=k)
    ends = _cut(walk, labels, volumes)
    found = certificate(
        float(k - 1 - bounds[1:k, 1].sum()),
        ends,
        bounds[k - 1 : k + 1],
        (labels, walk.volumes, volumes),
        frame(walk.psi[:, 1 : k + 1], walk.volumes, walk.product, bounds[1:, 1], walk.product_error),
        k - 1 - ends[1],
    )
    return SpectralModel(
        **walk.fields(slice(0, k), 1.0),
        **found,
        centres=means(points, labels, walk.volumes, k),
        info=info,
    )


def _number_of_groups(bounds: np.ndarray, most: int) -> tuple[int, str]:
    """(k, whether it is proved that the gap after eigenvalue k is the largest for 2 to ``most`` groups)."""
    low, high = (bounds[1:most, 0] - bounds[2 : most + 1, 1]), (bounds[1:most, 1] - bounds[2 : most + 1, 0])
    best = int(np.argmax(low + high))
    proved = low[best] > np.delete(high, best).max(initial=-np.inf)
    return best + 2, ("proved" if proved else "not proved") + " to have the largest gap"


def _cut(walk: _Walk, labels: np.ndarray, volumes: np.ndarray) -> tuple[float, float]:
    """Ends of the normalised cut: k less the similarities within the groups over their volumes."""
    k = len(volumes)
    E = np.zeros((len(labels), k))
    E[np.arange(len(labels)), labels] = walk.start
    within = np.einsum("ij,ij->j", E, walk.gram @ E)
    error = entry_error(walk.gram) * float((E.sum(axis=0) ** 2 / volumes).sum())
    error += k * (walk.relative + 2.0 * rounding_factor(len(labels)) * UNIT)
    cut = k - float((within / volumes).sum())
    return max(cut - error, 0.0), max(cut, 0.0) + error


def _check_number(name: str, value: Any, most: float) -> None:
    number = as_float(value)
    if number is None or not 0.0 <= number <= most or np.isinf(number):
        raise ValueError(f"{name} is {value!r}; give a number from 0" + (" to 1" if most == 1.0 else ""))


@one_blas_thread
def diffusion_map(
    X: Any,
    kernel: Any = "gaussian",
    c: int = 2,
    *,
    time: float = 1.0,
    alpha: float = 1.0,
    tol: float | None = None,
    method: str = "auto",
    max_features: int | None = None,
    sample_weight: Any = None,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> DiffusionModel:
    """Diffusion map (Coifman, Lafon 2006): coordinates in which distances are those of a random walk between the rows.

    Coordinate i is lambda_(i+1)^time psi_(i+1), for the eigenvalues and eigenfunctions of the walk; the constant psi_1
    is left out, and each psi_i has the mean square 1 by volume.

    Parameters
    ----------
    X : array_like (N, d)
        At least 4 rows; the matrix of similarities (N, N) for ``kernel="precomputed"``.
    kernel : str, Kernel, object with ``block``, or callable
        Without negative values.
    c : int
        Number of coordinates, at most N - 1. Where fewer eigenvalues are not zero there are fewer, and a warning.
    time : float
        Time of the walk, in steps; 0 leaves the eigenfunctions as they are.
    alpha : float
        From 0 to 1: how much of the density of the rows is divided out. 1: all, so that coordinates are about the shape
        that the rows lie on; 0: nothing, as in ``spectral_clustering``.
    tol : float, optional
        As for ``spectral_clustering``, like the following.
    method : {"auto", "dense", "features", "krylov"}
    max_features : int, optional
    sample_weight : array_like (N,), optional
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    **kernel_parameters

    Returns
    -------
    DiffusionModel
        ``coordinates``, ``eigenvalues``, ``eigenvalue_bounds``, ``gaps``; ``project`` for new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from kernels_contrib.diffusion import diffusion_map
    >>> t = np.linspace(0, 1, 200)
    >>> model = diffusion_map(np.column_stack([np.cos(5 * t), np.sin(5 * t)]), "gaussian", 1, sigma=0.2)
    >>> bool(abs(np.corrcoef(model.coordinates[:, 0], np.cos(np.pi * t))[0, 1]) > 0.99)
    True
    """
    X = training_rows(X, "diffusion_map")
    n, c = X.shape[0], check_count(c, "c")
    if n < 4 or c >= n:
        raise ValueError(f"X has {n} rows, c is {c}; a diffusion map needs at least 4 rows, and c below their number")
    _check_number("time", time, np.inf)
    _check_number("alpha", alpha, 1.0)
    options = {"tol": tol, "method": method, "max_features": max_features, "n_threads": n_threads, "rng": rng}
    gram = _similarities(X, kernel, n_threads, rng, kernel_parameters)
    walk = _walk(X, gram, c + 1, float(alpha), sample_weight, options)
    factors = walk.eigenvalues[1:] ** float(time)
    if len(factors) < c:
        reason = "the other eigenvalues of the random walk are zero within the accuracy reached"
        warn_fewer("coordinates", c, len(factors), reason)
    return DiffusionModel(
        **walk.fields(slice(1, None), factors),
        alpha=float(alpha),
        time=float(time),
        coordinates=walk.psi[:, 1:] * factors,
        info=walk.info,
    )
