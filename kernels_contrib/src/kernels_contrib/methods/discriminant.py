"""Directions with a large scatter of one kind and a small one of another: the algebra that KLDA and KBDA share.

Both maximise w' S_b w / (w' S_w w + penalty). Let w = sum_j a_j phi(x_j). P is the projector that subtracts from each
row the mean of its class, or of the group that is to stay together. The columns of E are the contrasts between the
means that are to be spread. Then

    S_w = Phi' P Phi,    S_b = Phi' E E' Phi,    P E = 0,

so that K P K and (K E)(K E)' are the matrices N and M of Mika et al. (1999) and Mueller et al. (2001, equation 29).
Two penalties are known: mu |a|^2 ("coefficients": K P K + mu I, theirs) and mu |w|^2 = mu a'Ka ("norm":
K P K + mu K). With features both are D x D problems. The shortest a with Phi'a = w has |a|^2 = w' (Phi'Phi)^(-1) w. In
the coordinates w = T z with T T' = Phi'Phi this is |z|^2, so nothing is inverted. Without features each is solved for
the few columns of E by conjugate gradients on products with K:

    coefficients:  (K P K + mu I) a = K E
    norm:          a = (E - z) / mu,  (P K P + mu I) z = P K E

Then the quotient is maximised over the span of the columns of a, by the eigenvectors of the symmetric matrix E' K a.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

import fastkpca as fk
from fastkpca.base.rounding import EPS, UNIT, rounding_factor
from fastkpca.errors import NotConvergedError
from fastkpca.methods import Rows, check_choice, check_count, solve_to_residual

from ..errors import warn_fewer, warn_stopped
from ..limits import HELD_BYTES
from . import stored
from .base import KernelMethod, Projection
from .functions import KernelFunction, function
from .options import MAX_SCALE, FitOptions, check_scale, regularization_strength
from .products import Products, class_moments, entry_error, for_lengths, products_for, small_features

Projector = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Penalised:
    """The problem of the directions: K, the penalty mu on "coefficients" or on their "norm", and the tolerance."""

    products: Products
    mu: float
    penalty: str
    tol: float
    max_iterations: int

    @property
    def noise(self) -> float:
        """Squared length of a contrast Phi'E u, |u| = 1, that rounding may leave of one that is zero.

        Features err by ``map.rounding`` of their length and by the part of K - Phi Phi' that is not semidefinite. The
        means of groups err by the rounding of their sums, and a product with K by N times the error of its entries.
        """
        products, n = self.products, self.products.n_samples
        if products.features is None:
            return n * entry_error(products.gram)
        features, trace = products.features, products.features.trace()
        moved = 2.0 * (features.map.rounding + rounding_factor(n) * UNIT)
        return float(moved**2 * trace + features.map.defect_norm(n, trace))

    def separating(self, squares: np.ndarray, noise: float, asked: int) -> int:
        """Number of contrasts with these squared lengths, descending, that are longer than rounding; at most ``asked``.

        Raises ValueError for none, and warns where fewer are than were asked for.
        """
        kept = min(int(np.sum(squares > noise)), asked)
        if not kept:
            raise ValueError(
                f"no direction separates the rows: their means coincide in the space of {self.products.kernel!r}, up "
                f"to a distance of {np.sqrt(noise):.2g} that is within rounding; check X and the labels, or take "
                "another kernel"
            )
        _warn_fewer(kept, asked)
        return kept

    def solver(self, project: Projector) -> tuple[Projector, dict[str, Any]]:
        """(Function E -> a for the columns of a contrast, info with steps and residual), with products only.

        A coarse feature map, where there is one, is the preconditioner: it is exact on the span of the features.
        """
        products, mu, on_norm = self.products, self.mu, self.penalty == "norm"
        check_scale("method='gram'", products.mean_diagonal())
        precondition = preconditioner(products, project, mu, on_norm)
        info: dict[str, Any] = {"iterations": 0, "residual": 0.0}

        def operator(V: np.ndarray) -> np.ndarray:
            if on_norm:
                return project(products.matmat(project(V))) + mu * V
            return products.matmat(project(products.matmat(V))) + mu * V

        def solve(E: np.ndarray) -> np.ndarray:
            target = products.matmat(E)
            size = np.linalg.norm(target, axis=0)
            if on_norm:
                target = project(target)
                # E - z cancels: what counts is the residual of (P K + mu I) a = E, which is 1 / mu times this one
                size = mu * np.linalg.norm(E, axis=0)
            size = np.where(size > 0.0, size, 1.0)
            reached = solve_to_residual(
                operator,
                target,
                goal=self.tol * size,
                most_steps=self.max_iterations,
                # the part of z outside of P's range is rounding, which 1 / mu would magnify
                finish=project if on_norm else lambda V: V,
                precondition=precondition,
            )
            residual = float((reached.residuals / size).max())
            if not residual < 1.0:  # that of a = 0
                raise NotConvergedError(
                    f"conjugate gradients found no direction within {reached.steps} steps (relative residual "
                    f"{residual:.2g}); a larger regularization than {mu:.2g} converges sooner, max_iterations allows "
                    "more steps"
                )
            info["iterations"] += reached.steps
            info["residual"] = max(info["residual"], residual)
            return (E - reached.solution) / mu if on_norm else reached.solution

        return solve, info


def _product_directions(
    problem: Penalised, project: Projector, contrast: Projector, transposed: Projector, size: int, c: int
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """(coefficients (N, k), quotients (k,), info of the iterations) of the best k <= c directions, by products.

    They are eigenvectors and eigenvalues of the symmetric matrix E'K a(E) of order ``size``, by Lanczos on solves
    unless it is small. ``contrast`` is U -> E U, ``transposed`` V -> E'V. A contrast has the squared length u'E'K E u.
    For an indefinite K it is |K E u|^2 instead, and rounding moves the matrix of these by 2 |K E| times as much.
    """
    solve, info = problem.solver(project)
    few = size <= max(2 * c + 1, 20)  # the number of vectors that eigsh would keep
    matmat, indefinite = problem.products.matmat, not problem.products.kernel.positive_semidefinite

    def leading(product: Projector) -> tuple[np.ndarray, np.ndarray]:
        start = np.random.default_rng(0).standard_normal(size)
        operator = LinearOperator((size, size), matvec=product, matmat=product, dtype=np.float64)
        return _descending(*eigsh(operator, c, which="LA", v0=start, tol=problem.tol))

    def lengths(U: np.ndarray) -> np.ndarray:
        V = matmat(contrast(U.reshape(size, -1)))
        return transposed(matmat(V) if indefinite else V)

    squares, axes = _eigenvectors(lengths(np.eye(size))) if few else leading(lengths)
    noise = problem.noise * (2.0 * np.sqrt(max(squares[0], 0.0)) if indefinite else 1.0)
    c = problem.separating(squares, noise, c)
    if few:  # contrasts of rounding alone are left out, or they would compete with the others
        axes = axes[:, squares > noise]
        solutions = solve(contrast(axes))
        values, vectors = _eigenvectors(axes.T @ transposed(matmat(solutions)))
    else:
        values, vectors = leading(lambda U: transposed(matmat(solve(contrast(U.reshape(size, -1))))))
    # solves that end at a residual leave its square of the largest quotient, the eigensolver its rounding
    kept = int(np.sum(values[:c] > (64 * EPS + info["residual"] ** 2) * values[0]))
    _warn_fewer(kept, c)
    vectors = vectors[:, :kept] / np.sqrt(values[:kept])
    return solutions @ vectors if few else solve(contrast(vectors)), values[:kept], info


def _warn_fewer(kept: int, asked: int) -> None:
    if kept < asked:
        warn_fewer("directions", asked, kept, "the others separate nothing but rounding")


def _eigenvectors(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, descending, and eigenvectors of a matrix that is symmetric but for rounding."""
    return _descending(*np.linalg.eigh((matrix + matrix.T) / 2))


def _descending(values: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]


@dataclass(frozen=True)
class Groups:
    """Groups of rows: S_w is the scatter of the first ``held`` groups about their means, S_b that of what is spread.

    Attributes
    ----------
    codes : ndarray (N,), int
        Group of each row.
    held : int
        Number of groups in S_w. If it is all of them, S_b is the scatter of their means (KLDA). If it is 1, S_b is that
        of the single rows of the other groups (KBDA).
    origin : ndarray (N,)
        Weights of the rows, one in sum: coordinates are measured from this weighted mean.
    """

    codes: np.ndarray
    held: int
    origin: np.ndarray

    @property
    def degrees(self) -> int:
        """Degrees of freedom of S_w: its rows minus the number of its groups."""
        return int(np.sum(self.codes < self.held)) - self.held


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DirectionsModel(KernelMethod, Projection):
    """Common attributes of the results of KLDA and KBDA."""

    quotients: np.ndarray = field(metadata=stored.array("k"))
    regularization: float = field(metadata=stored.number(least=0.0))
    penalty: str = field(metadata=stored.text("coefficients", "norm", "components"))
    function: KernelFunction = field(metadata=function("k"))
    n_samples: int = field(metadata=stored.count())

    @property
    def n_components(self) -> int:
        return len(self.quotients)


Directions: TypeAlias = tuple[dict[str, Any], np.ndarray, np.ndarray]
"""(Fields of a ``DirectionsModel``, and of the training rows' coordinates the means of the groups and the covariance
within the groups of S_w)."""


def fit_directions(
    X: Rows, options: FitOptions, regularization: Any, penalty: str, max_iterations: Any, groups: Groups, c: int
) -> Directions:
    """The best directions, by features or by products."""
    max_iterations = check_count(max_iterations, "max_iterations")
    check_choice(penalty, "penalty", ("coefficients", "norm"))
    if penalty == "norm":
        options = for_lengths(options, X.shape[0], "penalty='norm'")
    products = _products(X, options, penalty)
    mu = _check_penalty(regularization, penalty, products)
    problem = Penalised(products, mu, penalty, options.tol, max_iterations)
    fields, means, within = (_by_products if products.features is None else _by_features)(problem, groups, c)
    info = fields["info"]
    if info.get("residual", 0.0) > options.tol:
        warn_stopped(info["iterations"], info["residual"], options.tol)
    fields |= {"kernel": products.kernel.unbound(), "regularization": mu, "penalty": penalty}
    return fields | {"n_samples": len(groups.codes), "info": products.info | info}, means, within


def _products(X: Rows, options: FitOptions, penalty: str) -> Products:
    """Products with K, or with the centred matrix for a penalty on the norm, which depends on no more.

    The penalty on coefficients depends on K itself: where a shift would change K, rows are not shifted. The tolerance
    of a map is relative to the centred trace in both cases.
    """
    kernel = fk.get_kernel(options.kernel, **options.parameters)
    if penalty == "norm" or kernel.translation != "centered":
        return products_for(X, replace(options, center=True))
    some = X.source[np.linspace(0, X.shape[0] - 1, min(X.shape[0], 256)).astype(np.intp)]
    K = fk.gram(Rows(some, named=X.named), kernel)[:]
    share = 1.0 - K.sum() / len(K) / max(float(np.trace(K)), np.finfo(float).tiny)
    return products_for(X, replace(options, tol=options.tol * min(max(share, EPS), 1.0)))


def signs(means: np.ndarray) -> np.ndarray:
    """Signs with which the second of two groups, or else the group farthest out, lies on the positive side."""
    if len(means) == 2:
        return np.where(means[1] < means[0], -1.0, 1.0)
    size = np.abs(means)
    first = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    return np.where(means[first, np.arange(means.shape[1])] < 0, -1.0, 1.0)


def _by_features(problem: Penalised, groups: Groups, c: int) -> Directions:
    """D x D matrices from the moments of each group."""
    counts, missed = np.bincount(groups.codes), 0.0
    found, parts = [], [np.zeros(()), np.zeros(())]  # the scatter of what is held together, and of what is spread
    members = [np.flatnonzero(groups.codes == k) for k in range(len(counts))]
    for k, (group_mean, scatter, group_missed) in enumerate(class_moments(problem.products, members)):
        parts[k >= groups.held] = parts[k >= groups.held] + scatter
        found.append(group_mean)
        missed += group_missed
    means, within = np.array(found), parts[0]
    origin = np.bincount(groups.codes, groups.origin) @ means
    steps = means - origin
    contrasts = (steps * np.sqrt(counts)[:, None]).T
    spread = contrasts @ contrasts.T + parts[1]
    if groups.held < len(counts):
        values, vectors = _eigenvectors(spread)
        values = np.where(values > len(values) * EPS * values.max(initial=0.0), values, 0.0)
    else:
        vectors, lengths, _ = scipy.linalg.svd(contrasts, full_matrices=False)
        values = lengths**2
    c, kept = problem.separating(values, problem.noise, c), values > problem.noise
    contrasts = vectors[:, kept] * np.sqrt(values[kept])
    second = None
    if problem.penalty == "coefficients":  # about the origin, moved to zero
        aside = np.outer(counts @ means, origin)
        second = within + spread + aside + aside.T - counts.sum() * np.outer(origin, origin)
    columns, quotients = _feature_directions(within, contrasts, second, problem.mu, c)
    weights = columns * np.sqrt(groups.degrees)
    weights = weights * signs(steps @ weights)
    function = problem.products.feature_function(weights, origin @ weights)
    fields = {"function": function, "quotients": quotients, "info": {"residual_trace": missed}}
    return fields, steps @ weights, weights.T @ within @ weights / groups.degrees


def _by_products(problem: Penalised, groups: Groups, c: int) -> Directions:
    """Solves on products with K, for a block of one contrast for each group, or row, that is spread."""
    codes, origin, products = groups.codes, groups.origin, problem.products
    n, counts, held = len(codes), np.bincount(codes), codes < groups.held
    members = sp.csr_array((np.ones(n), (np.arange(n), codes)))
    apart = members.multiply(1.0 / np.sqrt(counts)) if held.all() else sp.eye_array(n, format="csc")[:, ~held]
    apart = sp.csr_array(apart)

    def group_means(V: np.ndarray) -> np.ndarray:
        return np.asarray(members.T @ V) / counts[:, None]

    def project(V: np.ndarray) -> np.ndarray:
        return held[:, None] * (V - group_means(V)[codes])

    def contrast(U: np.ndarray) -> np.ndarray:
        V = apart @ U
        return V - np.outer(origin, V.sum(axis=0))

    def transposed(V: np.ndarray) -> np.ndarray:
        return apart.T @ (V - origin @ V)

    coefficients, quotients, info = _product_directions(problem, project, contrast, transposed, apart.shape[1], c)
    coefficients *= np.sqrt(groups.degrees)
    score = products.matmat(coefficients)
    means = group_means(score - origin @ score)
    sign = signs(means)
    coefficients, score = coefficients * sign, score * sign
    centred = project(score)
    within = centred.T @ centred / groups.degrees
    function = products.function(coefficients, origin @ score)
    return {"function": function, "quotients": quotients, "info": info}, means * sign, within


def _check_penalty(regularization: Any, penalty: str, products: Products) -> float:
    """mu: as given, or 1e-3 in the units of what it is added to."""
    if penalty == "norm" and not products.kernel.positive_semidefinite:
        raise ValueError("penalty='norm' needs a positive semidefinite kernel; take penalty='coefficients'")
    if regularization is None:
        scale = abs(products.mean_diagonal()) or 1.0
        if penalty == "coefficients" and not 1.0 / MAX_SCALE < scale < MAX_SCALE:
            raise ValueError(
                f"k(x, x) is about {scale:.2g}, and its square, which the default regularization needs, is out of the "
                "range of float64; scale the rows down, or change the kernel's parameters"
            )
        return 1e-3 * (scale**2 if penalty == "coefficients" else scale)
    return regularization_strength(
        regularization, ": without one the directions are not determined, since there are as many coefficients as rows"
    )


def _feature_directions(
    within: np.ndarray, contrasts: np.ndarray, second: np.ndarray | None, mu: float, c: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best ``c`` directions from D x D matrices: columns w (D, c) with unit w' S_w w + penalty, and the quotient
    that each reaches.

    Parameters
    ----------
    within : ndarray (D, D)
        S_w.
    contrasts : ndarray (D, m)
        Phi'E: S_b = contrasts contrasts'; m may exceed D.
    second : ndarray (D, D) or None
        Phi'Phi, about zero, for the penalty on coefficients; None for the one on the norm.
    mu : float
    c : int
    """
    change = None
    if second is not None:
        change = _root(second)
        within, contrasts = change.T @ within @ change, change.T @ contrasts
    penalised = within + mu * np.eye(len(within))
    try:
        factor = scipy.linalg.cholesky(penalised, lower=True)
    except scipy.linalg.LinAlgError:
        raise ValueError(
            f"the scatter to be held together is singular to rounding with regularization={mu:.2g} (its largest "
            f"eigenvalue is {np.linalg.norm(within, 2):.2g}); give a larger one"
        ) from None
    spread = scipy.linalg.solve_triangular(factor, contrasts, lower=True)
    left, size, _ = scipy.linalg.svd(spread, full_matrices=False)
    columns = scipy.linalg.solve_triangular(factor, left[:, :c], lower=True, trans="T")
    return columns if change is None else change @ columns, size[:c] ** 2


def _root(second: np.ndarray) -> np.ndarray:
    """T with T T' = Phi'Phi to rounding: a Cholesky factor, where a shift of the size of rounding makes one possible,
    at a tenth of what eigenvectors cost."""
    size = len(second)
    shifted = np.array(second, order="F")
    shifted.flat[:: size + 1] += 2 * EPS * np.trace(second)
    try:
        return scipy.linalg.cholesky(shifted, lower=True, overwrite_a=True)
    except scipy.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(second)
        kept = values > EPS * size * values[-1]
        return vectors[:, kept] * np.sqrt(values[kept])


def preconditioner(products: Products, project: Projector, mu: float, on_norm: bool) -> Projector:
    """The inverse on the span of a coarse map's features, the smallest that it saw plus mu beyond (Frangella, Tropp,
    Udell 2023); nothing where there is no such map."""
    n = products.n_samples
    if not products.kernel.positive_semidefinite:
        return lambda R: R
    max_features = max(1, int(min(1000, n // 4, HELD_BYTES // (8 * n))))
    coarse = None
    options: dict[str, Any] = {"max_features": max_features, "n_threads": products.n_threads}
    options["center"] = products.shift is not None
    for residual in (1e-3, 1e-2, 1e-1, 0.5):
        try:
            coarse = small_features(products.X, products.kernel, tol=residual, **options)
            break
        except ValueError:
            continue
    if coarse is None:
        return lambda R: R
    Phi = coarse @ np.eye(coarse.shape[1])
    centred = project(Phi)
    basis = centred if on_norm else Phi
    values, vectors = scipy.linalg.eigh(basis.T @ basis)
    kept = values > 1e-12 * values.max(initial=0.0)
    if not kept.any():
        return lambda R: R
    root = np.sqrt(values[kept])
    Q = basis @ (vectors[:, kept] / root)
    if on_norm:
        theta = values[kept]
    else:
        scaled = vectors[:, kept] * root
        theta, turn = scipy.linalg.eigh(scaled.T @ (centred.T @ centred) @ scaled)
        Q = Q @ turn
    theta = np.maximum(theta, 0.0)
    beyond = 1.0 / (theta.min() + mu)
    weights = (1.0 / (theta + mu) - beyond)[:, None]
    return lambda R: beyond * R + Q @ (weights * (Q.T @ R))
