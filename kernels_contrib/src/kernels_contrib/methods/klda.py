"""Kernel Fisher discriminant analysis for two and many classes, and its form on kernel components (Fisherfaces).

Mika et al., Fisher discriminant analysis with kernels, 1999; Mueller et al., An introduction to kernel-based learning
algorithms, 2001, section IV-C; Yang, Face recognition using kernel methods, 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import fastkpca as fk
from fastkpca.base.checks import check_count
from fastkpca.base.rounding import EPS
from fastkpca.kernels import Kernel

from .discriminant import check_penalty, feature_directions, separating, solve_contrasts
from .functions import ComponentFunction, KernelFunction, rows_of
from .labels import class_codes
from .options import regularization_strength
from .products import Products, class_moments, products_for

__all__ = ["KLDAModel", "kernel_fisherfaces", "klda", "klda_predict", "klda_project"]


@dataclass(frozen=True, eq=False, repr=False)
class KLDAModel:
    """Discriminant directions.

    Attributes
    ----------
    classes : ndarray (C,)
        The distinct labels.
    counts : ndarray (C,)
        Rows of each.
    class_means : ndarray (C, c)
        Of the training rows' coordinates; the mean of all rows is zero.
    within : ndarray (c, c)
        Their pooled covariance within classes, without the penalty (divided by N - C).
    quotients : ndarray (c,)
        Between-class over (penalised) within-class scatter of each direction, descending.
    kernel : Kernel
        With every parameter resolved.
    regularization : float
        mu.
    penalty : str
    function : KernelFunction
        What projects new rows.
    n_samples : int
    info : dict
        Method, number of features or products and iterations, residuals.
    """

    classes: np.ndarray
    counts: np.ndarray
    class_means: np.ndarray
    within: np.ndarray
    quotients: np.ndarray
    kernel: Kernel
    regularization: float
    penalty: str
    function: KernelFunction
    n_samples: int
    info: dict[str, Any]

    @property
    def n_components(self) -> int:
        return len(self.quotients)

    def project(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As ``klda_project``."""
        return klda_project(self, X, n_threads=n_threads)

    def predict(self, X: Any, *, prior: Any = None, n_threads: int | None = None) -> np.ndarray:
        """As ``klda_predict``."""
        return klda_predict(self, X, prior=prior, n_threads=n_threads)

    def __repr__(self) -> str:
        return (
            f"<KLDAModel: {self.kernel!r}, {len(self.classes)} classes, {self.n_components} directions, "
            f"n_samples={self.n_samples}, regularization={self.regularization:g} ({self.penalty}), "
            f"method={self.info['method']!r}>"
        )


def klda(
    X: Any,
    y: Any,
    kernel: Any = "gaussian",
    c: int | None = None,
    *,
    regularization: float | None = None,
    penalty: str = "coefficients",
    tol: float = 1e-6,
    method: str = "auto",
    max_features: int | None = None,
    max_iterations: int = 1000,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> KLDAModel:
    """Kernel Fisher discriminant analysis, two or many classes.

    Parameters
    ----------
    X : array_like (N, d)
        Rows; or the Gram matrix (N, N) for ``kernel="precomputed"``.
    y : array_like (N,)
        Labels of any type, at least two rows of each.
    kernel : str, Kernel, object with ``block``, or callable
    c : int, optional
        Number of directions, at most (number of classes) - 1; None: as many.
    regularization : float, optional
        mu, added to N as ``penalty`` says. Default: 1e-3 in the units of the kernel, mean(k(x, x))^2 for
        "coefficients" and mean(k(x, x)) for "norm".
    penalty : {"coefficients", "norm"}
        N + mu I, or N + mu K.
    tol : float
        Through features: the part of the trace of K that they may miss. Through products: relative residual of the
        linear solves.
    method : {"auto", "features", "gram"}
        "auto" takes D x D scatter matrices where a feature map is small enough, else products with K.
    max_features : int, optional
        Most features; 2048 by default.
    max_iterations : int
        Most steps of conjugate gradients.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    **kernel_parameters

    Returns
    -------
    KLDAModel
        Directions with unit penalised within-class variance; of two classes the second lies on the positive side.

    Warns
    -----
    AccuracyWarning
        The iterations stopped short of ``tol``.
    """
    X = rows_of(X)
    classes, codes = class_codes(y, X.shape[0], least=2, purpose="klda")
    counts = np.bincount(codes)
    c = _check_c(c, len(classes))
    max_iterations = check_count(max_iterations, "max_iterations")
    for draft in (True, False):
        products = products_for(
            X,
            kernel,
            kernel_parameters,
            method=method,
            tol=tol,
            max_features=max_features,
            n_threads=n_threads,
            rng=rng,
            draft=draft,
        )
        mu = check_penalty(regularization, penalty, products.mean_diagonal(), products.kernel.positive_semidefinite)
        fit = _from_gram if products.features is None else _from_features
        function, class_means, within, quotients, info = fit(
            products, codes, counts, mu, penalty, c, tol=tol, max_iterations=max_iterations
        )
        if info.get("residual_trace", 0.0) <= tol * len(codes) * products.mean_diagonal():
            break
    return KLDAModel(
        classes,
        counts,
        class_means,
        within,
        quotients,
        products.kernel.unbound(),
        mu,
        penalty,
        function,
        len(codes),
        products.info | info,
    )


def _check_c(c: Any, n_classes: int) -> int:
    if c is None:
        return n_classes - 1
    if isinstance(c, (bool, np.bool_)) or not isinstance(c, (int, np.integer)):
        raise TypeError(f"c is {c!r}; give a whole number of directions, or None for all")
    if not 1 <= c < n_classes:
        raise ValueError(f"c is {c}; {n_classes} classes have 1 to {n_classes - 1} discriminant directions")
    return int(c)


def _signs(class_means: np.ndarray) -> np.ndarray:
    """The second of two classes, or the class farthest out, lies on the positive side."""
    if len(class_means) == 2:
        return np.where(class_means[1] < class_means[0], -1.0, 1.0)
    size = np.abs(class_means)
    first = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    return np.where(class_means[first, np.arange(class_means.shape[1])] < 0, -1.0, 1.0)


def _from_features(
    products: Products, codes: np.ndarray, counts: np.ndarray, mu: float, penalty: str, c: int, **_: Any
) -> tuple:
    """D x D matrices from the moments of each class."""
    n, n_classes = len(codes), len(counts)
    within, means, residual = None, [], 0.0
    for mean, scatter, missed in class_moments(products, [np.flatnonzero(codes == k) for k in range(n_classes)]):
        within = scatter if within is None else within + scatter
        means.append(mean)
        residual += missed
    assert within is not None
    class_means = np.array(means)
    mean = counts @ class_means / n
    contrasts = ((class_means - mean) * np.sqrt(counts)[:, None]).T
    second = None
    if penalty == "coefficients":
        second = within + contrasts @ contrasts.T + n * np.outer(mean, mean)
    found = feature_directions(within, contrasts, second, mu, c)
    kept = separating(found.quotients, products, mu, penalty)
    scale = np.sqrt(n - n_classes)
    weights = found.columns[:, :kept] * scale
    weights = weights * _signs((class_means - mean) @ weights)
    pooled = weights.T @ within @ weights / (n - n_classes)
    function = products.feature_function(weights, mean @ weights)
    return function, (class_means - mean) @ weights, pooled, found.quotients[:kept], {"residual_trace": residual}


def _from_gram(
    products: Products,
    codes: np.ndarray,
    counts: np.ndarray,
    mu: float,
    penalty: str,
    c: int,
    *,
    tol: float,
    max_iterations: int,
) -> tuple:
    """Solves on products with K, for a block of one contrast a class."""
    n, n_classes = len(codes), len(counts)

    def class_sums(V: np.ndarray) -> np.ndarray:
        order = np.argsort(codes, kind="stable")
        return np.add.reduceat(V[order], np.concatenate([[0], np.cumsum(counts)[:-1]]), axis=0)

    def project(V: np.ndarray) -> np.ndarray:
        return V - (class_sums(V) / counts[:, None])[codes]

    contrasts = -np.sqrt(counts) / n * np.ones((n, 1))
    contrasts[np.arange(n), codes] += 1.0 / np.sqrt(counts[codes])
    solve, info = solve_contrasts(products, project, mu, penalty, tol=tol, max_iterations=max_iterations)
    found = solve(contrasts)
    small = contrasts.T @ products.matmat(found)
    quotients, turn = np.linalg.eigh((small + small.T) / 2)
    quotients, turn = quotients[::-1][:c], turn[:, ::-1][:, :c]
    kept = separating(quotients, products, mu, penalty, info["residual"])
    quotients, turn = quotients[:kept], turn[:, :kept]
    coefficients = found @ (turn * (np.sqrt(n - n_classes) / np.sqrt(quotients)))
    score = products.matmat(coefficients)
    mean = score.mean(axis=0)
    class_means = class_sums(score - mean) / counts[:, None]
    signs = _signs(class_means)
    coefficients, score, mean, class_means = coefficients * signs, score * signs, mean * signs, class_means * signs
    centred = project(score)
    within = centred.T @ centred / (n - n_classes)
    return products.function(coefficients, mean), class_means, within, quotients, info


def klda_project(model: KLDAModel, X: Any, *, n_threads: int | None = None) -> np.ndarray:
    """Coordinates of new rows along the discriminant directions.

    Parameters
    ----------
    model : KLDAModel
    X : array_like (m, d)
        New rows; for a precomputed kernel the (m, N) matrix between new and training rows.
    n_threads : int, optional
        Default: all processors.

    Returns
    -------
    ndarray (m, c)
    """
    if not isinstance(model, KLDAModel):
        raise TypeError(f"model is a {type(model).__name__}; give what klda() returned")
    return model.function(X, n_threads)


def klda_predict(model: KLDAModel, X: Any, *, prior: Any = None, n_threads: int | None = None) -> np.ndarray:
    """Labels of new rows: the class whose mean is nearest, in units of the covariance within, its prior allowed for.

    Parameters
    ----------
    model : KLDAModel
    X : array_like (m, d)
    prior : array_like (C,), optional
        Probability of each class before a row is seen; default: its share of the training rows.
    n_threads : int, optional
        Default: all processors.

    Returns
    -------
    ndarray (m,)
        Of the type of the labels.
    """
    coordinates = klda_project(model, X, n_threads=n_threads)
    prior = model.counts / model.counts.sum() if prior is None else np.asarray(prior, dtype=np.float64)
    if prior.shape != model.counts.shape or not (np.isfinite(prior).all() and (prior > 0).all()):
        raise ValueError(f"prior is {prior!r}; give {len(model.counts)} positive numbers, one for each class")
    prior = prior / prior.max()  # a sum of large ones would overflow
    # a direction along which nothing varies within classes counts by its penalised variance, which is one
    inverse = np.linalg.inv(model.within + 1e-10 * np.eye(model.n_components))
    weights = inverse @ model.class_means.T
    offset = np.log(prior / prior.sum()) - 0.5 * np.einsum("ij,ji->i", model.class_means, weights)
    return model.classes[np.argmax(coordinates @ weights + offset, axis=1)]


def kernel_fisherfaces(
    X: Any,
    y: Any,
    kernel: Any = "polynomial",
    c: int | None = None,
    *,
    components: int | None = None,
    regularization: float = 0.0,
    tol: float = 1e-6,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> KLDAModel:
    """Fisher's discriminant on kernel principal components: Yang's kernel Fisherfaces.

    Parameters
    ----------
    X : array_like (N, d)
    y : array_like (N,)
        Labels of any type, at least two rows of each.
    kernel : str, Kernel, object with ``block``, or callable
    c : int, optional
        Number of directions, at most (number of classes) - 1; None: as many.
    components : int, optional
        Kernel components to keep first; default N - C, the most for which the scatter within classes has full rank.
    regularization : float
        Added to the scatter within, relative to the mean variance of a component; 0 for Yang's form.
    tol : float
        Of ``kpca``.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    **kernel_parameters

    Returns
    -------
    KLDAModel
        For ``klda_project`` and ``klda_predict``; ``penalty`` is "components".
    """
    X = rows_of(X)
    n = X.shape[0]
    classes, codes = class_codes(y, n, least=2, purpose="kernel_fisherfaces")
    counts = np.bincount(codes)
    c = _check_c(c, len(classes))
    regularization = regularization_strength(regularization, zero=True)
    asked = n - len(classes) if components is None else components
    model = fk.kpca(X, kernel, asked, tol=tol, n_threads=n_threads, rng=rng, **kernel_parameters)
    score = np.asarray(model.score, dtype=np.float64)
    means = np.array([score[codes == k].mean(axis=0) for k in range(len(classes))])
    centred = score - means[codes]
    # in units of each component's own spread, or the smallest would be lost beside the largest
    unit = np.sqrt(model.latent)
    within = (centred / unit).T @ (centred / unit)
    contrasts = (means / unit * np.sqrt(counts)[:, None]).T
    penalty = regularization * float(np.mean(model.latent)) * (n - len(classes)) / unit**2
    values, vectors = np.linalg.eigh(within + np.diag(penalty))
    kept = values > len(values) * EPS * values[-1]
    change = vectors[:, kept] / np.sqrt(values[kept])
    left, size, _ = np.linalg.svd(change.T @ contrasts, full_matrices=False)
    weights = (change @ left[:, :c]) / unit[:, None] * np.sqrt(n - len(classes))
    weights = weights * _signs(means @ weights)
    pooled = weights.T @ (centred.T @ (centred @ weights)) / (n - len(classes))
    return KLDAModel(
        classes,
        counts,
        means @ weights,
        pooled,
        size[:c] ** 2,
        model.kernel,
        float(regularization),
        "components",
        ComponentFunction(model, weights, np.zeros(weights.shape[1])),
        n,
        {"method": "components", "components": model.n_components, "kpca": model.plan.method},
    )
