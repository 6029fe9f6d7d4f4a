"""Kernel Fisher discriminant analysis for two and many classes, and its form on kernel components (Fisherfaces).

Each direction w = sum_j a_j phi(x_j) in feature space maximises w' S_b w / (w' S_w w + penalty). The scatter matrices
are sums over rows, S_b = sum_k n_k (m_k - m) (m_k - m)' between and S_w within the classes. ``methods.discriminant``
solves this with features or products with K. Prediction is linear discriminant analysis on the coordinates w'phi(x),
with a common covariance within classes.

Mika et al., Fisher discriminant analysis with kernels, 1999; Mueller et al., An introduction to kernel-based learning
algorithms, 2001, section IV-C; Yang, Face recognition using kernel methods, 2001.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import softmax

import fastkpca as fk
from fastkpca.base.rounding import EPS
from fastkpca.methods import check_count, check_numbers

from .methods import stored
from .methods.base import project
from .methods.discriminant import DirectionsModel, Groups, fit_directions, signs
from .methods.functions import ComponentFunction
from .methods.labels import class_codes
from .methods.options import FitOptions, regularization_strength
from .methods.products import training_rows
from .methods.threads import one_blas_thread

__all__ = ["KLDAModel", "kernel_fisherfaces", "klda", "klda_predict", "klda_probability", "klda_project"]

klda_project = project


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KLDAModel(DirectionsModel):
    """Discriminant directions.

    Attributes
    ----------
    classes : ndarray (C,)
        The distinct labels.
    counts : ndarray (C,)
        Number of training rows of each class.
    class_means : ndarray (C, c)
        Mean coordinates of the training rows of each class; the mean of all rows is zero.
    within : ndarray (c, c)
        Pooled covariance of the coordinates within classes, without the penalty (divided by N - C).
    quotients : ndarray (c,)
        Between-class over (penalised) within-class scatter of each direction, descending.
    kernel : Kernel
        With every parameter resolved.
    regularization : float
        Factor mu of the penalty.
    penalty : str
        "coefficients" (mu |a|^2), "norm" (mu |w|^2) or, of ``kernel_fisherfaces``, "components".
    function : KernelFunction
        Projector of new rows: x -> w'phi(x) for each direction.
    n_samples : int
    info : dict
        Method, number of features or products and iterations, residuals.
    """

    made_by = "klda()"

    classes: np.ndarray = field(metadata=stored.labels())
    counts: np.ndarray = field(metadata=stored.array("C", kind="iu", least=1))
    class_means: np.ndarray = field(metadata=stored.array("Ck"))
    within: np.ndarray = field(metadata=stored.array("kk"))

    def predict(self, X: Any, *, prior: Any = None, n_threads: int | None = None) -> np.ndarray:
        """As ``klda_predict``."""
        return klda_predict(self, X, prior=prior, n_threads=n_threads)

    def probability(self, X: Any, *, prior: Any = None, n_threads: int | None = None) -> np.ndarray:
        """As ``klda_probability``."""
        return klda_probability(self, X, prior=prior, n_threads=n_threads)

    def facts(self) -> list[str]:
        return [
            f"{self.kernel!r}, {len(self.classes)} classes, {self.n_components} directions",
            f"n_samples={self.n_samples}, regularization={self.regularization:g} ({self.penalty})",
            f"method={self.info['method']!r}",
        ]


@one_blas_thread
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
        Number of directions, at most (number of classes) - 1, which is the default.
    regularization : float, optional
        Factor mu of the penalty. Default: 1e-3 in the units of the kernel, mean(k(x, x))^2 for
        "coefficients" and mean(k(x, x)) for "norm" (of the linear kernel: of the rows about their mean).
    penalty : {"coefficients", "norm"}
        mu |a|^2 or mu |w|^2 = mu a'Ka. The denominator is then a'(K P K + mu I) a or a'(K P K + mu K) a. P subtracts
        from each row the mean of its class; K P K is the matrix N of Mika et al.
    tol : float
        Through features: the part of the trace of the centred K that they may miss. Through products: relative residual
        of the linear solves.
    method : {"auto", "features", "gram"}
        "auto" takes D x D scatter matrices where a feature map is small enough, else products with K.
    max_features : int, optional
        Largest number of features; 2048 by default.
    max_iterations : int
        Largest number of steps of conjugate gradients.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    **kernel_parameters

    Returns
    -------
    KLDAModel
        Directions with unit penalised within-class variance; of two classes the second lies on the positive side.

    Raises
    ------
    NotConvergedError
        The iterations found nothing (``fastkpca.errors``).

    Warns
    -----
    AccuracyWarning
        The iterations stopped short of ``tol``.
    """
    X = training_rows(X, "klda")
    classes, codes = class_codes(y, X.shape[0], least=2, purpose="klda")
    c = _check_c(c, len(classes))
    options = FitOptions(kernel, kernel_parameters, method, tol, max_features, n_threads, rng)
    groups = Groups(codes, len(classes), np.full(len(codes), 1.0 / len(codes)))
    fields, means, within = fit_directions(X, options, regularization, penalty, max_iterations, groups, c)
    return KLDAModel(classes=classes, counts=np.bincount(codes), class_means=means, within=within, **fields)


def _check_c(c: Any, n_classes: int) -> int:
    if c is None:
        return n_classes - 1
    c = check_count(c, "c")
    if c >= n_classes:
        raise ValueError(f"c is {c}; {n_classes} classes have 1 to {n_classes - 1} discriminant directions")
    return c


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
        Labels, of their own type.
    """
    model = KLDAModel.of(model)
    return model.classes[np.argmax(_log_shares(model, X, prior, n_threads), axis=1)]


def klda_probability(model: KLDAModel, X: Any, *, prior: Any = None, n_threads: int | None = None) -> np.ndarray:
    """Probability of each class for new rows, if the classes are normally distributed along the directions.

    All classes are taken to have the covariance within classes of the training rows, which lie nearer to their class
    means than new rows do: with a small ``regularization`` the probabilities are too close to 0 and 1.

    Parameters
    ----------
    model : KLDAModel
    X : array_like (m, d)
    prior : array_like (C,), optional
        As for ``klda_predict``.
    n_threads : int, optional
        Default: all processors.

    Returns
    -------
    ndarray (m, C)
        One column a class, in the order of ``model.classes``.
    """
    model = KLDAModel.of(model)
    return np.asarray(softmax(_log_shares(model, X, prior, n_threads), axis=1))


@one_blas_thread
def _log_shares(model: KLDAModel, X: Any, prior: Any, n_threads: int | None) -> np.ndarray:
    """Logarithm of the probability of each class, but for a constant in each row.

    With the coordinates z of a row, the means m_k, the priors p_k and the covariance W within classes it is
    log p_k + m_k' W^-1 z - m_k' W^-1 m_k / 2.
    """
    coordinates = model.project(X, n_threads=n_threads)
    need = f"{len(model.counts)} positive numbers, one for each class"
    prior = check_numbers(model.counts if prior is None else prior, "prior", need, model.counts.shape)
    if not (prior > 0).all():
        raise ValueError(f"prior is {prior!r}; give {need}")
    prior = prior / prior.max()  # a sum of large ones would overflow
    # W may be singular; 1e-10 is relative to the penalised variance of each direction, which is one
    inverse = np.linalg.inv(model.within + 1e-10 * np.eye(model.n_components))
    weights = inverse @ model.class_means.T
    offset = np.log(prior / prior.sum()) - 0.5 * np.einsum("ij,ji->i", model.class_means, weights)
    return np.asarray(coordinates @ weights + offset)


@one_blas_thread
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
        Added to the pooled covariance within, scatter / (N - C), as a fraction of the mean variance of a component; 0
        for Yang's form.
    tol : float
        ``tol`` of ``kpca``.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    **kernel_parameters

    Returns
    -------
    KLDAModel
        For ``klda_project`` and ``klda_predict``; ``penalty`` is "components".
    """
    X = training_rows(X, "kernel_fisherfaces")
    n = X.shape[0]
    classes, codes = class_codes(y, n, least=2, purpose="kernel_fisherfaces")
    counts = np.bincount(codes)
    c = _check_c(c, len(classes))
    regularization = regularization_strength(regularization, zero=True)
    n_components = n - len(classes) if components is None else components
    model = fk.kpca(X, kernel, n_components, tol=tol, n_threads=n_threads, rng=rng, **kernel_parameters)
    score = np.asarray(model.score, dtype=np.float64)
    means = np.array([score[codes == k].mean(axis=0) for k in range(len(classes))])
    centred = score - means[codes]
    # in units of each component's own spread, or rounding of the largest would hide the smallest
    unit = np.sqrt(model.latent)
    within = (centred / unit).T @ (centred / unit)
    contrasts = (means / unit * np.sqrt(counts)[:, None]).T
    with np.errstate(over="ignore"):  # refused
        penalty = regularization * float(np.mean(model.latent)) * (n - len(classes)) / unit**2
    if not np.isfinite(penalty).all():
        raise ValueError(f"regularization is {regularization:g}, which leads beyond float64; give a smaller one")
    values, vectors = np.linalg.eigh(within + np.diag(penalty))
    kept = values > len(values) * EPS * values[-1]
    change = vectors[:, kept] / np.sqrt(values[kept])
    left, size, _ = np.linalg.svd(change.T @ contrasts, full_matrices=False)
    weights = (change @ left[:, :c]) / unit[:, None] * np.sqrt(n - len(classes))
    weights = weights * signs(means @ weights)
    pooled = weights.T @ (centred.T @ (centred @ weights)) / (n - len(classes))
    function = ComponentFunction(components=model, weights=weights, constant=np.zeros(weights.shape[1]))
    return KLDAModel(
        classes=classes,
        counts=counts,
        class_means=means @ weights,
        within=pooled,
        quotients=size[:c] ** 2,
        kernel=model.kernel,
        regularization=regularization,
        penalty="components",
        function=function,
        n_samples=n,
        info=function.info,
    )
