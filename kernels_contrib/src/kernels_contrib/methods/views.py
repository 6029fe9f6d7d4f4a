"""Two views of the same rows through feature maps: what HSIC and kernel CCA share.

Both measure A' B, A and B (N, D) the centred features of the views: its squared Frobenius norm, or, with each view
whitened, its largest singular value. Permuting the rows of one view permutes the rows of B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

import fastkpca as fk
from fastkpca.base import parallel
from fastkpca.base.rounding import UNIT, factorisation_error, rounding_factor
from fastkpca.methods import Rows, as_rows, check_rng

from ..limits import HELD_BYTES
from .functions import SampleFunction, of_matrix
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
        features = fk.features(
            X, kernel, tol=options.tol, max_features=options.max_features, features="pivots", center=True
        )
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
        return of_matrix(self.kernel, self.coefficients @ weights, constant + self.features.shift @ weights)


def _of_matrix(X: Any, options: FitOptions, purpose: str) -> MatrixView:
    """K + t I by Cholesky's factorisation with pivoting, where no eigenvalue of K, and of its rounding, lies below -t.

    It ends where the largest diagonal entry of the residual is so small that its trace is no more than ``tol`` of the
    trace after centring, or at 2 t. Phi Phi' is K + t I less the residual, up to the factorisation's rounding.
    """
    K = training_rows(X, purpose)
    options = for_lengths(options, K.shape[0], purpose)
    gram = fk.gram(K, options.kernel, n_threads=options.n_threads)
    A, n, trace = np.asarray(gram), gram.shape[0], gram.trace()
    rounding = factorisation_error(n, UNIT) * float(gram.diagonal().max())
    t = gram.error_bound + gram.kernel.below_zero + rounding
    centred = trace - float(A.sum()) / n
    A.flat[:: n + 1] += t
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(A, lower=1, tol=max(options.tol * centred / n, 2.0 * t))
    if rank > options.max_features:
        raise ValueError(
            f"the matrix has {rank} features at tol={options.tol:g}, max_features is {options.max_features}; raise one"
        )
    pivots, factor = pivots - 1, np.tril(factor)[:, :rank]
    Phi, coefficients = np.empty((n, rank)), np.zeros((n, rank))
    Phi[pivots] = factor
    coefficients[pivots[:rank]] = scipy.linalg.solve_triangular(factor[:rank], np.eye(rank), lower=True, trans="T")
    sums = (rounding_factor(n * rank) + rounding_factor(n)) * UNIT * trace
    return MatrixView(
        Rows(Phi),
        gram.kernel.unbound(),
        features=fk.features(Phi, "linear", features="monomial", center=True),
        n_threads=options.n_threads,
        coefficients=coefficients,
        trace_missed=max(trace + n * t - float(np.einsum("ij,ij->", Phi, Phi)), 0.0) + n * rounding + sums,
        trace_below=n * t,
    )


def over_permutations(
    measure: Callable[[np.ndarray], Any], n: int, permutations: int, rng: Any, n_threads: int | None, n_bytes: int
) -> tuple[np.ndarray, ...]:
    """(measures (1 + m, ...) of the rows' order as it is and permuted, whether a permutation (m,) changes nothing).

    A measure takes ``n_bytes``; as many run at once as threads are there and memory is for them, each alone.
    """
    generator, order = check_rng(rng), np.arange(n)
    threads = max(1, min(parallel.resolve_threads(n_threads), HELD_BYTES // max(n_bytes, 1)))

    def measured(orders: list[np.ndarray]) -> Iterator[Any]:
        return parallel.run(lambda i: measure(orders[i]), len(orders), n_threads=threads)

    values, identity = [measure(order)], []
    for start in range(0, permutations, 4 * threads):
        orders = [generator.permutation(n) for _ in range(min(4 * threads, permutations - start))]
        values += measured(orders)
        identity += [np.array_equal(permuted, order) for permuted in orders]
    return np.array(values), np.array(identity, dtype=bool)
