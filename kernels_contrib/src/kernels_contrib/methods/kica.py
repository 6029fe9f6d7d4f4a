"""Kernel independent component analysis (Bach & Jordan 2002, JMLR 3, 1-48).

Sources are independent where every function of one is uncorrelated with every function of the others. Over the unit
ball of a kernel's function space the largest such correlation is a canonical correlation of the feature vectors, so
that a contrast needs nothing but their covariances: with C_ij = cov(phi(y_i), phi(y_j)), kappa the regularisation,
e = kappa / 2, T_i = C_ii^(1/2) (C_ii + e)^(-1) and

    R_ii = I,    R_ij = T_i C_ij T_j,

``kcca`` is -1/2 log of R's smallest eigenvalue and ``kgv`` -1/2 log det R (equations 13 to 16 of the paper, whose
N x N matrix R_kappa has the same spectrum, further ones aside). The y_i are one-dimensional, and there the Gaussian
has a map phi of ten to thirty features that misses less of the kernel than the regularisation hides. One map serves
all components and all rotations, so the contrast is one smooth function of the unmixing matrix W:

    y = z W',   C = (1/N) sum_n (phi_n - m)(phi_n - m)',   dJ = <G, dC> = 2/N sum_n <G (phi_n - m), phi'(y_n) dy_n>.

With O the off-diagonal blocks of C and P_i = T_i^2 = p(C_ii), p(x) = x / (x + e)^2, R has the eigenvalues of I + P O,
which is a smooth function of C where T is not (the square root of eigenvalues near zero). p's divided difference is
(e^2 - ab) / ((a + e)^2 (b + e)^2), free of cancellation, and this gives G without N x N or differences in W.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg

import fastkpca
from fastkpca.base import parallel
from fastkpca.base.checks import check_count, check_rng
from fastkpca.base.rounding import EPS
from fastkpca.kernels import Gaussian, Kernel
from fastkpca.rows.columns import check_columns
from fastkpca.rows.convert import as_rows
from fastkpca.rows.values import check_finite

from . import stored
from .base import FittedMethod
from .options import regularization_strength

__all__ = ["KICAModel", "kica", "kica_contrast", "kica_project"]

CONTRASTS = ("kgv", "kcca")
REFERENCE = 4096  # points that the common map is made from: as many as fastkpca plans without a look
SEARCH_ROWS = 2000  # rows that decide where a descent starts
DESCENT_ROWS = 5000  # rows of a first descent, where there are several times as many
ANGLES = 18  # of a plane, over the quarter turn after which two components only change places
SWEEPS = 4
SAME = 2e-3  # relative difference of contrasts that are the same minimum
TILE_ENTRIES = 1 << 20
MOST_FEATURES = 4000  # of all components: ten dense matrices of this order take 1.3 GB
KEEP_ENTRIES = 1 << 23  # features kept from the value to its gradient; more are formed again
LEAST_REGULARIZATION, LARGEST_REGULARIZATION = 1e-8, 1e8
TURN = 0.05  # radians, for second differences
DIFFERENCE = 1e-4  # of the length scale, for phi': an error of about 1e-8 of it


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KICAModel(FittedMethod):
    """What ``kica`` returns: sources = (X - mean) @ unmixing.T and X = mean + sources @ mixing.T (c < d: up to the
    principal components that were left out).

    Attributes
    ----------
    unmixing : ndarray (c, d)
    mixing : ndarray (d, c)
        Pseudo-inverse of ``unmixing``. Sources come by the share of X's variance that they carry, largest first, with
        the sign that makes the largest entry of their column positive.
    mean : ndarray (d,)
    sources : ndarray (N, c)
        Mean zero, variance one.
    contrast : float
        At the solution; zero where the sources are independent as far as the kernel and the regularisation can see.
    kernel : fastkpca.kernels.Kernel
        Of one source.
    info : dict
        ``contrast``: its name; ``regularization``, ``tol``; ``n_features`` of the common map and the ``residual`` that
        it leaves, trace over trace; ``iterations``, ``evaluations``, ``gradient`` (largest entry at the end),
        ``converged``; ``starts``: the contrast that each of several starts led to, on the rows that decided.
    """

    made_by = "kica()"

    unmixing: np.ndarray = field(metadata=stored.array("cd"))
    mixing: np.ndarray = field(metadata=stored.array("dc"))
    mean: np.ndarray = field(metadata=stored.array("d"))
    sources: np.ndarray = field(metadata=stored.not_stored("c"))
    contrast: float = field(metadata=stored.number())
    kernel: Kernel = field(metadata=stored.object_of(Kernel))
    info: dict[str, Any] = field(metadata=stored.info())

    def project(self, X: Any) -> np.ndarray:
        """As ``kica_project``."""
        return kica_project(self, X)

    def facts(self) -> list[str]:
        c, d = self.unmixing.shape
        return [f"{self.kernel!r}, {c} components of {d} columns, contrast {self.contrast:.4g}"]


def kica(
    X: Any,
    kernel: Any = "gaussian",
    c: int | None = None,
    contrast: str = "kgv",
    *,
    regularization: float | None = None,
    tol: float | None = None,
    n_starts: int | None = None,
    max_iter: int = 100,
    rng: Any = 0,
    n_threads: int | None = None,
    **kernel_parameters: Any,
) -> KICAModel:
    """Independent components by kernel canonical correlations, without an N x N matrix.

    Parameters
    ----------
    X : array_like (N, d)
        Mixtures: X = mean + sources @ mixing.T with independent sources of which at most one is Gaussian.
    kernel : str or fastkpca.kernels.Kernel
        Positive semidefinite and smooth; of one source with unit variance. The Gaussian's ``sigma`` is 1 for N up to
        1000 and 1/2 beyond, as in the paper, unless given.
    c : int, optional
        Number of components; where it is smaller than d, of the first c principal components. Default: d.
    contrast : str
        "kgv", the kernel generalised variance (all canonical correlations), or "kcca" (the largest one).
    regularization : float, optional
        kappa. Default: 2e-2 for N up to 1000 and 2e-3 beyond.
    tol : float, optional
        Residual trace over trace of the feature map. Default: 1e-2 kappa.
    n_starts : int, optional
        Most starts: the first is found by turning pairs of whitened components, each further one likewise after a
        random rotation, until the two best lead to the same contrast. Default: 8, or 1 for two components, where the
        search sees the whole circle.
    max_iter : int
        Of each descent.
    rng : int, Generator, SeedSequence or None
    n_threads : int, optional
        Default: all processors. The result is the same with any number.
    **kernel_parameters
        As ``sigma``.

    Returns
    -------
    KICAModel

    Raises
    ------
    ValueError
        X has NaN, infinity, a constant column, too few rows, or a rank below c.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sources = rng.uniform(-1, 1, (400, 2))
    >>> X = sources @ [[1.0, 0.4], [-0.5, 0.8]]
    >>> model = kica(X, contrast="kgv")
    >>> np.abs(np.corrcoef(model.sources.T, sources.T)[:2, 2:]).max(axis=1).round(1).tolist()
    [1.0, 1.0]
    >>> kica_project(model, X[:3]).shape
    (3, 2)
    """
    contrast = _contrast_name(contrast)
    X = _matrix(X)
    n, d = X.shape
    c = d if c is None else check_count(c, "c")
    n_starts = (8 if c > 2 else 1) if n_starts is None else check_count(n_starts, "n_starts")
    max_iter = check_count(max_iter, "max_iter")
    coarse = _parameters(kernel, kernel_parameters, SEARCH_ROWS // 2, regularization, tol)
    kernel, kappa, tol = _parameters(kernel, kernel_parameters, n, regularization, tol)
    threads = parallel.threads_for(kernel, n_threads)
    generator = check_rng(rng)
    with parallel.blas_threads():
        return _fit(X, c, contrast, coarse, (kernel, kappa, tol), n_starts, max_iter, generator, threads)


def _fit(
    X: np.ndarray, c: int, contrast: str, coarse: tuple, fine: tuple, n_starts: int, max_iter: int,
    generator: np.random.Generator, threads: int,
) -> KICAModel:  # fmt: skip
    """Whiten, search, descend; ``coarse`` and ``fine`` are (kernel, kappa, tol) for few rows and for all."""
    kernel, kappa, tol = fine
    n = len(X)
    mean, whitening, coloring = _whitening(X, c)
    Z = (X - mean) @ whitening.T
    if c == 1:
        info = {"contrast": contrast, "regularization": kappa, "tol": tol, "converged": True}
        return _model(X, mean, whitening, coloring, 0.0, kernel, info)

    few = Z if n <= SEARCH_ROWS else Z[np.sort(generator.choice(n, SEARCH_ROWS, replace=False))]
    # with the parameters for few rows, where none are given: they see as far, in a third of the features
    rough, kappa_rough, tol_rough = coarse
    search = _Contrast(few, _common_map(few, rough, tol_rough, generator), contrast, kappa_rough, threads)
    rough = search.map.kernel  # what it left to the data is settled
    if search.map.n_features == 1:
        raise ValueError(
            f"{rough!r} on components of unit variance is one function up to tol={tol_rough:g}, which cannot tell "
            "dependence from correlation; give a shorter length scale, a nonlinear kernel, or a smaller tol"
        )
    kernel = kernel if isinstance(kernel, Gaussian) else rough
    starts = []
    for i in range(n_starts):
        W = _turn_pairs(search, np.eye(c) if i == 0 else _rotation(generator, c))
        value = math.nan
        if n_starts > 1 or (contrast == "kcca" and c > 2):
            # tails are longest where the sources are: a map of these components, so that starts can be compared
            points = _reference(few @ W.T, generator)
            own = _Contrast(few, _line_map(points, rough, 0.5 * tol_rough), contrast, kappa_rough, threads)
            if contrast == "kcca" and c > 2:  # its corners hold a descent from far away; kgv has none
                W, _, _ = _descend(own.named("kgv"), W, max_iter)
            W, value, _ = _descend(own, W, max_iter)
        starts.append((value, W))
        best = sorted(value for value, _ in starts)
        if i and best[1] - best[0] <= SAME * best[0]:
            break
    _, W = min(starts, key=lambda x: x[0])

    curvature = _Curvature()
    part = Z if n <= DESCENT_ROWS else Z[np.sort(generator.choice(n, DESCENT_ROWS, replace=False))]
    target = _Contrast(part, _line_map(_reference(part @ W.T, generator), kernel, tol), contrast, kappa, threads)
    curvature.look(target, W)
    if n > 3 * DESCENT_ROWS:
        W, _, _ = _descend(target, W, max_iter, curvature)
    reference = _reference(Z @ W.T, generator)
    iterations = evaluations = 0
    for attempt in range(4):
        # the components turn a little after this, and the rows are more than the points: half of tol
        target = _Contrast(Z, _line_map(reference, kernel, 0.5 * tol), contrast, kappa, threads)
        W, value, done = _descend(target, W, max_iter, curvature)
        iterations += done["iterations"]
        evaluations += done["evaluations"]
        residual, worst = target.residual(W)
        if residual <= tol:
            break
        # the rows that this map serves worst join the points that the next one is made from; in the end all rows do
        reference = np.concatenate([worst, reference[len(worst) :]]) if attempt < 2 else (Z @ W.T).ravel()
    info = {
        "contrast": contrast,
        "regularization": kappa,
        "tol": tol,
        "n_features": target.map.n_features,
        "residual": residual,
        "iterations": iterations,
        "evaluations": evaluations,
        "gradient": done["gradient"],
        "converged": done["converged"],
        "starts": [value for value, _ in starts if n_starts > 1],
    }
    return _model(X, mean, W @ whitening, coloring @ W.T, value, kernel, info)


def kica_project(model: KICAModel, X: Any) -> np.ndarray:
    """Sources of new rows.

    Parameters
    ----------
    model : KICAModel
    X : array_like (m, d)
        New rows, with the columns of the training rows.

    Returns
    -------
    ndarray (m, c)
    """
    model = KICAModel.of(model)
    return (_matrix(X, len(model.mean)) - model.mean) @ model.unmixing.T


def kica_contrast(
    Y: Any,
    kernel: Any = "gaussian",
    contrast: str = "kgv",
    *,
    regularization: float | None = None,
    tol: float | None = None,
    n_threads: int | None = None,
    **kernel_parameters: Any,
) -> float:
    """How far the columns of Y are from independent: the contrast that ``kica`` minimises, of Y as it is.

    Parameters
    ----------
    Y : array_like (N, c)
        Columns of about unit variance, for the default length scale.
    kernel : str or fastkpca.kernels.Kernel
        As for ``kica``, like the following.
    contrast : {"kgv", "kcca"}
    regularization : float, optional
    tol : float, optional
    n_threads : int, optional
    **kernel_parameters

    Returns
    -------
    float
        Zero where the kernel sees no dependence.
    """
    contrast = _contrast_name(contrast)
    Y = _matrix(Y)
    kernel, kappa, tol = _parameters(kernel, kernel_parameters, len(Y), regularization, tol)
    threads = parallel.threads_for(kernel, n_threads)
    if Y.shape[1] == 1:
        return 0.0
    with parallel.blas_threads():
        return _Contrast(Y, _line_map(Y.ravel(), kernel, tol), contrast, kappa, threads).value(np.eye(Y.shape[1]))[0]


# ---- input


def _contrast_name(contrast: object) -> str:
    if contrast not in CONTRASTS:
        raise ValueError(f"contrast is {contrast!r}; give 'kgv' or 'kcca'")
    return str(contrast)


def _positive(value: object, name: str) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or not 0.0 < float(value) < math.inf:
        raise ValueError(f"{name} is {value!r}; give a positive, finite number")
    return float(value)


def _matrix(X: Any, n_features: int | None = None) -> np.ndarray:
    """X as float64; its columns are those of a model, if ``n_features`` is theirs."""
    rows = as_rows(X, purpose="kica")
    if n_features is not None:
        check_columns(n_features, rows.n_features)
    check_finite(rows, purpose="kica")
    return rows.shifted(np.zeros(rows.n_features)).all()


def _parameters(
    kernel: Any, kernel_parameters: dict, n: int, regularization: float | None, tol: float | None
) -> tuple[Any, float, float]:
    """The kernel, kappa and tol; the paper's for n rows where they are not given."""
    kernel = fastkpca.get_kernel(kernel, **kernel_parameters)
    if isinstance(kernel, Gaussian) and kernel.sigma is None:
        kernel = Gaussian(sigma=1.0 if n <= 1000 else 0.5)
    if not kernel.positive_semidefinite:
        raise ValueError(f"{kernel!r} is not positive semidefinite, so it has no canonical correlations")
    kappa = (2e-2 if n <= 1000 else 2e-3) if regularization is None else regularization_strength(regularization)
    if kappa > LARGEST_REGULARIZATION:
        raise ValueError(
            f"regularization is {kappa:g}; give at most {LARGEST_REGULARIZATION:g}, beyond which no dependence is left "
            "to see (the paper's values are 2e-2 and 2e-3)"
        )
    if kappa < LEAST_REGULARIZATION:
        raise ValueError(
            f"regularization is {kappa:g}; give at least {LEAST_REGULARIZATION:g}, below which canonical correlations "
            "come within rounding of one (the paper's values are 2e-2 and 2e-3)"
        )
    tol = 1e-2 * min(kappa, 1.0) if tol is None else _positive(tol, "tol")
    if tol >= 1.0:
        raise ValueError(f"tol is {tol:g}; give a share of the kernel's trace, well below regularization={kappa:g}")
    return kernel, kappa, tol


def _whitening(X: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean (d,), the matrix (c, d) that takes rows minus the mean to uncorrelated ones of unit variance, and its
    pseudo-inverse (d, c)."""
    n, d = X.shape
    if n <= c:
        raise ValueError(f"X has {n} rows, too few for {c} components; give more rows (hundreds, for a useful answer)")
    size = np.abs(X).max(axis=0)
    size[size == 0.0] = 1.0
    unit = np.ldexp(1.0, np.frexp(size)[1] - 1)  # sums of the largest numbers would overflow; this rounds nothing
    mean = (X / unit).mean(axis=0) * unit
    scale = (X / size).std(axis=0) * size  # squares of the largest numbers would overflow
    flat = np.flatnonzero(scale <= 8 * EPS * size)
    if len(flat):
        raise ValueError(f"column {flat[0]} of X is constant: it holds no source; drop it before kica")
    if c > d:
        raise ValueError(f"c={c} components of {d} columns; give c of at most {d}")
    standard = (X - mean) / scale
    values, vectors = np.linalg.eigh(standard.T @ standard / n)
    # of columns with unit variance, so that their units don't matter; below this there is only rounding
    rank = int(np.sum(values > d * 1e-13))
    if c > rank:
        raise ValueError(
            f"X has rank {rank} (after its mean is subtracted), c is {c}; columns repeat each other: give c={rank}, or "
            "drop those"
        )
    if c < d:  # the largest variances in the units of X, as usual
        unit = scale.max()
        values, vectors = np.linalg.eigh((standard.T @ standard / n) * np.outer(scale / unit, scale / unit))
        scale = np.full(d, unit)
    values, vectors = values[: -c - 1 : -1], vectors[:, : -c - 1 : -1]
    return mean, (vectors / np.sqrt(values)).T / scale, vectors * np.sqrt(values) * scale[:, None]


def _model(
    X: np.ndarray, mean: np.ndarray, unmixing: np.ndarray, mixing: np.ndarray, value: float, kernel: Any, info: dict
) -> KICAModel:
    # the share of the variance of X, each column in its own unit: sources have unit variance
    columns = mixing / np.abs(mixing).max(axis=1, keepdims=True)
    columns /= np.linalg.norm(columns, axis=1, keepdims=True)
    order = np.argsort(-np.sum(columns**2, axis=0), kind="stable")
    mixing = mixing[:, order]
    sign = np.sign(mixing[np.argmax(np.abs(mixing), axis=0), np.arange(len(order))])
    unmixing = unmixing[order] * sign[:, None]
    return KICAModel(
        unmixing=unmixing,
        mixing=mixing * sign,
        mean=mean,
        sources=(X - mean) @ unmixing.T,
        contrast=value,
        kernel=kernel,
        info=info,
    )


# ---- one feature map for all components and rotations


class _LineMap:
    """phi and phi' of numbers; feature-major."""

    def __init__(self, operator: Any, step: float):
        self._map, self._shift, self._step = operator.map, float(operator.shift[0]), step
        self.kernel, self.n_features = operator.kernel, self._map.n_features

    def _rows(self, y: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(y - self._shift).reshape(-1, 1)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """phi, (D, *y.shape)."""
        return np.ascontiguousarray(self._map.features(self._rows(y)).T).reshape(-1, *y.shape)

    def derivative(self, y: np.ndarray) -> np.ndarray:
        """phi', (D, *y.shape), by central differences: of a function on a line, whatever the map."""
        up = self(y + self._step)
        up -= self(y - self._step)
        up /= 2.0 * self._step
        return up

    def residual(self, y: np.ndarray) -> np.ndarray:
        """k(y, y) - |phi(y)|^2, and k(y, y)."""
        rows = self._rows(y)
        Phi = self._map.features(rows)
        left = self._map.residual(rows, Phi)
        return np.stack([left, left + np.einsum("ij,ij->i", Phi, Phi)]).reshape(2, *y.shape)


def _line_map(points: np.ndarray, kernel: Any, tol: float) -> _LineMap:
    operator = fastkpca.features(points.reshape(-1, 1), kernel, tol=tol, n_threads=1)
    scale = getattr(operator.kernel, "sigma", None)
    return _LineMap(operator, DIFFERENCE * (scale if isinstance(scale, float) else 1.0))


def _common_map(Z: np.ndarray, kernel: Any, tol: float, generator: np.random.Generator) -> _LineMap:
    """For any rotation: made from the whitened components as they are, and after random rotations."""
    c = Z.shape[1]
    turned = [Z] + [Z @ _rotation(generator, c).T for _ in range(3)]
    return _line_map(_reference(np.concatenate(turned), generator), kernel, tol)


def _reference(Y: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """At most REFERENCE of these numbers."""
    y = Y.ravel()
    return y if y.size <= REFERENCE else y[np.sort(generator.choice(y.size, REFERENCE, replace=False))]


def _rotation(generator: np.random.Generator, c: int) -> np.ndarray:
    Q, R = np.linalg.qr(generator.standard_normal((c, c)))
    return Q * np.sign(np.diag(R))


# ---- the contrast and its gradient


class _Contrast:
    """J(W) for y = Z W', and dJ/dW. Sums go over tiles in order: they are the same with any number of threads."""

    def __init__(self, Z: np.ndarray, line_map: _LineMap, name: str, kappa: float, n_threads: int = 1):
        self.Z, self.map, self.name, self.kappa, self.n_threads = Z, line_map, name, kappa, n_threads
        self.n, self.c = Z.shape
        width = self.c * line_map.n_features
        if width > MOST_FEATURES:
            raise ValueError(
                f"{self.c} components of {line_map.n_features} features each are {width}, too many for dense matrices "
                f"of that order (at most {MOST_FEATURES}); lower c, or raise tol or the kernel's length scale"
            )
        self._tile = 1 << max(6, (TILE_ENTRIES // max(1, width)).bit_length() - 1)
        self._keep = self.n * width <= KEEP_ENTRIES

    def named(self, name: str) -> _Contrast:
        """The other contrast of the same rows."""
        return _Contrast(self.Z, self.map, name, self.kappa, self.n_threads)

    def _tiles(self, W: np.ndarray, task: Callable[[np.ndarray, np.ndarray, int], Any]) -> Iterator[Any]:
        """task(rows of Z, their components (c, n), tile) of each tile, in order."""

        def run(i: int) -> Any:
            Z = self.Z[i * self._tile : (i + 1) * self._tile]
            return task(Z, np.ascontiguousarray(W @ Z.T), i)

        return parallel.run(run, -(-self.n // self._tile), n_threads=self.n_threads)

    def value(self, W: np.ndarray) -> tuple[float, tuple]:
        """J, and what its gradient needs."""
        D, c = self.map.n_features, self.c

        def moments(_: Any, Y: np.ndarray, i: int) -> tuple:
            Phi = self.map(Y).reshape(D * c, -1)  # row a c + i: feature a of component i
            own = Phi.mean(axis=1)
            Phi -= own[:, None]
            return Phi.shape[1], own, Phi @ Phi.T, Phi if self._keep else None

        kept = []
        count, mean, second = 0, np.zeros(D * c), np.zeros((D * c, D * c))
        for n, own, part, Phi in self._tiles(W, moments):
            # each tile about its own mean (Chan, Golub & LeVeque 1983), so that nothing cancels
            count += n
            step = own - mean
            second += part
            if count > n:
                second += np.outer(step, step * ((count - n) * n / count))
            mean += step * (n / count)
            if self._keep:
                kept.append((own, Phi))
        C = (second / self.n).reshape(D, c, D, c).transpose(1, 0, 3, 2)
        value, G = _value_and_slope(C, self.kappa, self.name)
        return value, (G, mean, kept)

    def gradient(self, W: np.ndarray, state: tuple) -> np.ndarray:
        """dJ/dW, (c, c)."""
        D, c = self.map.n_features, self.c
        slope, mean, kept = state
        G = np.ascontiguousarray(slope().transpose(1, 0, 3, 2)).reshape(D * c, D * c)

        def part(Z: np.ndarray, Y: np.ndarray, i: int) -> np.ndarray:
            if kept:
                own, Phi = kept[i]
                weights = G @ Phi
                weights += (G @ (own - mean))[:, None]
            else:
                weights = G @ (self.map(Y).reshape(D * c, -1) - mean[:, None])
            weights *= self.map.derivative(Y).reshape(D * c, -1)
            return weights.reshape(D, c, -1).sum(axis=0) @ Z

        return sum(self._tiles(W, part), np.zeros((c, c))) * (2.0 / self.n)

    def residual(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Residual trace over trace at W, and the numbers that contribute most to it."""

        def part(_: Any, Y: np.ndarray, i: int) -> tuple:
            left, whole = self.map.residual(Y)
            order = np.argsort(-left.ravel(), kind="stable")[: REFERENCE // 32]
            return float(left.sum()), float(whole.sum()), np.stack([left.ravel()[order], Y.ravel()[order]])

        left = trace = 0.0
        worst = np.zeros((2, 0))
        for tile_left, tile_trace, tile_worst in self._tiles(W, part):
            left += tile_left
            trace += tile_trace
            worst = np.concatenate([worst, tile_worst], axis=1)
            worst = worst[:, np.argsort(-worst[0], kind="stable")[: REFERENCE // 32]]
        return left / trace, worst[1]

    def planes(self, y: np.ndarray, angles: np.ndarray) -> np.ndarray:
        """The generalised variance of two components y (2, N), turned by each angle."""
        most = max(1, TILE_ENTRIES // (2 * self.map.n_features * y.shape[1]))
        parts = parallel.run(
            lambda i: self._planes(y, angles[i * most : (i + 1) * most]),
            -(-len(angles) // most),
            n_threads=self.n_threads,
        )
        return np.concatenate(list(parts))

    def _planes(self, y: np.ndarray, angles: np.ndarray) -> np.ndarray:
        D, k = self.map.n_features, len(angles)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        turned = np.stack([cos * y[0] + sin * y[1], cos * y[1] - sin * y[0]], axis=1)  # (k, 2, N)
        Phi = np.stack([self.map(pair) for pair in turned])  # (k, D, 2, N)
        Phi -= Phi.mean(axis=3, keepdims=True)
        Phi = Phi.transpose(0, 2, 1, 3).reshape(k, 2 * D, -1)
        C = (Phi @ Phi.transpose(0, 2, 1)) / Phi.shape[2]
        # det(I - P_1 C_12 P_2 C_21), P = (C + e)^-1 C (C + e)^-1
        first, second, across = C[:, :D, :D], C[:, D:, D:], C[:, :D, D:]
        ridge = 0.5 * self.kappa * np.eye(D)
        inverse = np.linalg.inv(first + ridge)
        left = inverse @ first @ inverse @ across
        inverse = np.linalg.inv(second + ridge)
        right = inverse @ second @ inverse @ across.transpose(0, 2, 1)
        return -0.5 * np.linalg.slogdet(np.eye(D) - left @ right)[1]


def _value_and_slope(C: np.ndarray, kappa: float, name: str) -> tuple[float, Any]:
    """The contrast of covariances C (c, D, c, D), and a function that returns G = dJ/dC in the same shape."""
    c, D = C.shape[:2]
    own = np.arange(c)
    e = 0.5 * kappa
    values, vectors = np.linalg.eigh(C[own, :, own, :])
    values = np.maximum(values, 0.0)
    # all in the blocks' own eigenvectors: a rotation, which no contrast sees
    B = np.matmul(vectors.transpose(0, 2, 1)[:, None], np.matmul(C.transpose(0, 2, 1, 3), vectors[None]))  # c, c, D, D
    B[own, own] = 0.0
    O = np.ascontiguousarray(B.transpose(0, 2, 1, 3)).reshape(c * D, c * D)
    t = (np.sqrt(values) / (values + e)).ravel()
    R = O * t
    R *= t[:, None]
    R.flat[:: c * D + 1] += 1.0
    if name == "kgv":
        factor, failed = scipy.linalg.lapack.dpotrf(R, lower=True)
        diagonal = np.diagonal(factor)
        least = -1.0 if failed else float(diagonal.min()) ** 2
    else:
        smallest, vector = scipy.linalg.eigh(R, subset_by_index=[0, 0], check_finite=False)
        least = float(smallest[0])
    if least < 1e-12:
        raise ValueError(
            f"regularization={kappa:g} is too small for these values of the kernel: canonical correlations come within "
            "rounding of one; raise it, or scale the kernel to k(y, y) = 1"
        )
    value = -float(np.log(diagonal).sum()) if name == "kgv" else -0.5 * math.log(least)

    def slope() -> np.ndarray:
        if name == "kgv":
            # Q = T R^-1 T; G_ij = -Q_ij / 2, and (O Q O)_ii / 2 for P_i
            Q = scipy.linalg.cho_solve((factor, True), np.diag(t), check_finite=False) * t[:, None]
            across = -0.5 * Q
            inner = 0.5 * np.matmul((O @ Q).reshape(c, D, c * D), O.reshape(c * D, c, D).transpose(1, 0, 2))
        else:
            # q = T v: d(least) = q' dO q + (O q)' dP (O q) / (least - 1)
            q = t * vector[:, 0]
            across = (-0.5 / least) * np.outer(q, q)
            r = (O @ q).reshape(c, D)
            inner = (0.5 / (least * max(1.0 - least, 1e-300))) * (r[:, :, None] * r[:, None, :])
        G = across.reshape(c, D, c, D).transpose(0, 2, 1, 3).copy()
        a, b = values[:, :, None], values[:, None, :]
        G[own, own] = inner * ((e * e - a * b) / ((a + e) * (b + e)) ** 2)
        G = np.matmul(vectors[:, None], np.matmul(G, vectors.transpose(0, 2, 1)[None]))
        return G.transpose(0, 2, 1, 3)

    return value, slope


# ---- rotations


def _turn_pairs(search: _Contrast, W: np.ndarray) -> np.ndarray:
    """Sweeps over pairs of components, each turned to the best of some angles: a global search, plane by plane."""
    angles = np.arange(ANGLES) * (0.5 * np.pi / ANGLES)
    c = search.c
    W = W.copy()
    for _ in range(SWEEPS if c > 2 else 1):
        turned = False
        for i in range(c):
            for j in range(i + 1, c):
                pair = [i, j]
                found = search.planes(W[pair] @ search.Z.T, angles)
                best = int(np.argmin(found))
                if best == 0 or not found[best] < found[0]:
                    continue
                turned = turned or 1 < best < ANGLES - 1
                cos, sin = np.cos(angles[best]), np.sin(angles[best])
                W[pair] = np.array([[cos, sin], [-sin, cos]]) @ W[pair]
        if not turned:
            break
    return W


class _Curvature:
    """An estimate of the inverse Hessian in the entries of A above the diagonal (BFGS); outlives a descent, because
    the next one is on more rows of the same mixture."""

    def __init__(self) -> None:
        self.inverse: np.ndarray | None = None

    def look(self, target: _Contrast, W: np.ndarray) -> None:
        """From second differences pair by pair: where components are independent the Hessian has no other entries."""
        if target.name != "kgv":
            return  # no Hessian at its corners
        found = []
        for pair in zip(*np.triu_indices(target.c, 1)):
            below, here, above = target.planes(W[list(pair)] @ target.Z.T, np.array([-TURN, 0.0, TURN]))
            found.append((below + above - 2.0 * here) / TURN**2)
        bend = np.array(found)
        if bend.max() > 0.0:
            self.inverse = np.diag(1.0 / np.maximum(bend, 0.1 * bend.max()))

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Downhill; without a past there is no scale, and the longest turn is a twentieth of a right angle."""
        if self.inverse is None:
            return -gradient * (0.08 / max(float(np.abs(gradient).max()), 1e-300))
        return -(self.inverse @ gradient)

    def learn(self, s: np.ndarray, y: np.ndarray) -> None:
        product = float(s @ y)
        if not product > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return
        if self.inverse is None:
            self.inverse = np.eye(len(s)) * (product / float(y @ y))
        image = self.inverse @ y
        self.inverse += np.outer(s, s) * ((1.0 + float(y @ image) / product) / product)
        self.inverse -= (np.outer(image, s) + np.outer(s, image)) / product


def _descend(
    target: _Contrast, W: np.ndarray, max_iter: int, curvature: _Curvature | None = None
) -> tuple[np.ndarray, float, dict]:
    """Quasi-Newton descent along geodesics W <- exp(A) W of the rotations, A skew-symmetric.

    A's entries above the diagonal are the coordinates, about the current W each time; changes of the gradient are
    carried along as they are. The line search asks for decrease and for a flatter slope and brackets by halving
    (Lewis & Overton 2013): what makes BFGS work on ``kcca`` too, which has corners where several pairs of components
    are equally correlated.
    """
    c = target.c
    upper = np.triu_indices(c, 1)
    fine = 3e-3 / math.sqrt(target.n)  # radians: far below the statistical error
    curvature = _Curvature() if curvature is None else curvature
    value, state = target.value(W)
    evaluations, iterations, converged = 1, 0, False

    def slope() -> np.ndarray:
        relative = target.gradient(W, state) @ W.T
        return (relative - relative.T)[upper]

    gradient = slope()
    small = 0
    while iterations < max_iter:
        known = curvature.inverse is not None
        direction = curvature.direction(gradient)
        descent = float(direction @ gradient)
        if not descent < 0.0:
            if not gradient.any() or not known:
                converged = True
                break
            curvature.inverse = None
            continue
        longest = float(np.abs(direction).max())
        if known and longest < fine:
            converged = True
            break
        start, value_before, before = W, value, gradient
        step, low, high, moved = min(1.0, 0.4 / longest), 0.0, math.inf, False
        for _ in range(15):
            A = np.zeros((c, c))
            A[upper] = step * direction
            trial = scipy.linalg.expm(A - A.T) @ start
            found, found_state = target.value(trial)
            evaluations += 1
            if found > value_before + 1e-4 * step * descent:
                high = step
                # the minimum of the parabola through what is known, within the bracket
                share = -0.5 * step * descent / max(found - value_before - step * descent, 1e-300)
                step = low + (high - low) * (min(0.5, max(0.1, share)) if low == 0.0 else 0.5)
                continue
            W, value, state, moved, low = trial, found, found_state, True, step
            gradient = slope()
            if float(gradient @ direction) >= 0.9 * descent or step * longest > 0.3:
                break
            step = 2.0 * low if math.isinf(high) else 0.5 * (low + high)
        if not moved:
            converged = True  # not even a tiny step: at the resolution of the values, or at a corner
            break
        iterations += 1
        curvature.learn(low * direction, gradient - before)
        small = small + 1 if value_before - value <= 1e-7 * value_before else 0
        if small == 3:
            converged = True
            break
    u, _, v = np.linalg.svd(W)  # rounding of many products
    info = {
        "iterations": iterations,
        "evaluations": evaluations,
        "gradient": float(np.abs(gradient).max()),
        "converged": converged,
    }
    return u @ v, value, info
