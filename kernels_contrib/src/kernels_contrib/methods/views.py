"""Two views of the same rows through feature maps: what HSIC and kernel CCA share.

Both measure A' B, A and B (N, D) the centred features of the views: its squared Frobenius norm, or, with each view
whitened, its largest singular value. Permuting the rows of one view permutes the rows of B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

import fastkpca as fk
from fastkpca.methods import Rows, as_rows, check_rng

from .functions import SampleFunction
from .options import FitOptions
from .permutation import need_rows
from .products import USE_PRODUCTS, Products, for_lengths, is_matrix, need_semidefinite, products_for, training_rows


def two_views(X: Any, Y: Any, kernel_y: Any, options: FitOptions, purpose: str) -> list[Products]:
    """The views X and Y, with as many rows, through the smallest maps that miss no more than ``tol`` of the trace."""
    views = [as_rows(view, name=name, purpose=purpose) for name, view in (("X", X), ("Y", Y))]
    n, m = map(len, views)
    if n != m:
        raise ValueError(f"X has {n} rows, Y has {m}; {purpose} needs two views of the same rows, in the same order")
    need_rows(n, purpose)
    kernels = (options.kernel, options.kernel if kernel_y is None else kernel_y)
    return [_view(*named, options, purpose) for named in zip(("X", "Y"), views, kernels)]


def _view(name: str, X: Any, given: Any, options: FitOptions, purpose: str) -> Products:
    if is_matrix(given):
        try:
            return _of_matrix(X, replace(options, kernel=given), purpose)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{purpose}, view {name}: {error}") from error
    kernel = fk.get_kernel(given, **options.parameters)
    need_semidefinite(kernel, purpose)
    try:
        view = products_for(X, replace(options, kernel=kernel, parameters={}, method="features"))
        if not view.features.map.defect:
            return view
        # entries that may be off in either sense
        features = fk.features(X, kernel, tol=options.tol, max_features=options.max_features, features="pivots")
        return replace(view, features=features)
    except ValueError as error:
        raise ValueError(f"{purpose}, view {name}: {error}".replace(f", or {USE_PRODUCTS}", "")) from error


@dataclass(frozen=True, eq=False)
class MatrixView(Products):
    """A view that is given as its kernel matrix K = Phi Phi': the rows X are Phi, with the linear kernel."""

    coefficients: Any = None
    """(N, D): phi(x) = coefficients' k(x), k(x) the values between x and the training rows."""
    trace_missed: float = 0.0
    trace_below: float = 0.0

    @property
    def missed(self) -> float:
        return self.trace_missed

    @property
    def below(self) -> float:
        return self.trace_below

    def feature_function(self, weights: np.ndarray, constant: np.ndarray) -> SampleFunction:
        """f(x) = weights' (phi(x) - shift) - constant."""
        of_rows = self.coefficients @ weights
        constant = constant + self.features.shift @ weights
        return SampleFunction(kernel=self.kernel, X=np.empty((0, 0)), coefficients=of_rows, constant=constant)


def _of_matrix(X: Any, options: FitOptions, purpose: str) -> MatrixView:
    """K + t I by Cholesky's factorisation with pivoting, where no eigenvalue of K lies below -t.

    It ends where the largest entry of what is left is so small that no more than ``tol`` of the trace is left, or 2 t.
    """
    K = training_rows(X, purpose)
    options = for_lengths(options, K.shape[0], purpose)
    gram = fk.gram(K, options.kernel, n_threads=options.n_threads)
    A, n, t, trace = np.asarray(gram), gram.shape[0], gram.error_bound + gram.kernel.below_zero, gram.trace()
    A.flat[:: n + 1] += t
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(A, lower=1, tol=max(options.tol * trace / n, 2.0 * t))
    if rank > options.max_features:
        raise ValueError(
            f"the matrix has {rank} features at tol={options.tol:g}, max_features is {options.max_features}; raise one"
        )
    pivots, factor = pivots - 1, np.tril(factor)[:, :rank]
    Phi, coefficients = np.empty((n, rank)), np.zeros((n, rank))
    Phi[pivots] = factor
    coefficients[pivots[:rank]] = scipy.linalg.solve_triangular(factor[:rank], np.eye(rank), lower=True, trans="T")
    return MatrixView(
        Rows(Phi),
        gram.kernel.unbound(),
        features=fk.features(Phi, "linear", features="monomial"),
        n_threads=options.n_threads,
        coefficients=coefficients,
        trace_missed=max(trace + n * t - float(np.einsum("ij,ij->", Phi, Phi)), 0.0),
        trace_below=n * t,
    )


def over_permutations(
    measure: Callable[[np.ndarray], Any], n: int, permutations: int, rng: Any
) -> tuple[np.ndarray, ...]:
    """(measures (1 + m, ...) of the rows' order as it is and permuted, whether a permutation (m,) changes nothing)."""
    generator, order = check_rng(rng), np.arange(n)
    values, same = [measure(order)], []
    for _ in range(permutations):
        permuted = generator.permutation(n)
        values.append(measure(permuted))
        same.append(np.array_equal(permuted, order))
    return np.array(values), np.array(same, dtype=bool)
