"""The kernel matrix of rows as a solver takes it: never formed, but multiplied by, with what else is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.protocol import Kernel, Offer, Summation
from ..rows.view import Rows
from .exact import ExactSummation, KeptSums
from .operators import GramOperator
from .truncated import TruncatedSummation, WithSums, distance_bound, norm_bound
from .weighted import Coordinates, Entries, coordinates_for


class Products(NamedTuple):
    """Products with the kernel matrix that a run uses.

    Attributes
    ----------
    double : Summation
        In float64.
    single : ExactSummation or None
        In float32, for the search, where the range of float32 allows it.
    values : ExactSummation or None
        ``double``, where it keeps the kernel values.
    truncated : TruncatedSummation or None
        The values that are not near zero; ``double`` is `WithSums` then.
    """

    double: Summation
    single: ExactSummation | None = None
    values: ExactSummation | None = None
    truncated: TruncatedSummation | None = None

    def with_truncated(self, offer: Offer, rows: Rows, n_threads: int) -> Products:
        """With the truncated matrix of an offer to search by."""
        weights = np.ones(rows.n_samples) if rows.weights is None else np.asarray(rows.weights, dtype=np.float64)
        truncated = offer.build(rows)
        truncated.n_threads = n_threads
        return Products(WithSums(self.double, weights), truncated=truncated)


@dataclass(frozen=True)
class TruncatedMatrix:
    """A truncated version B of a kernel matrix K, with which products take little time.

    Attributes
    ----------
    product : Summation
    size : float
        Bound on |B|.
    distance : callable
        Returns a bound on |K - B|, once a product with K has been made.
    seconds : float
        Predicted, for a product with a few columns.
    """

    product: Summation
    size: float
    distance: Callable[[], float]
    seconds: float


@dataclass(frozen=True)
class KernelMatrix:
    """A symmetric kernel matrix K: products with it, and bounds.

    Attributes
    ----------
    product : Summation
        In float64. One that ``gives_norm`` allows the Frobenius bound, which an indefinite kernel needs.
    search_product : Summation, optional
        In float32.
    trace : float, optional
        tr K.
    positive_semidefinite : bool
        Allows the trace bound.
    entry_error : float
        Bound on |computed K_ij - K_ij| in float64 (``Kernel.entry_error``; 0: the matrix is what was computed).
    entries : Entries, optional
        Allows bounds from the entries of the matrix beyond the basis.
    n_threads : int
        Threads of the products with the basis; the products with the matrix have their own number.
    truncated : TruncatedMatrix, optional
        Truncated matrix for the first phase and for bounds on the complement, where few values are not near zero; K is
        semidefinite then.
    sums : KeptSums, optional
        Sums of the values by which ``search_product`` multiplies, if these are values of K stored in memory.
    """

    product: Summation
    search_product: Summation | None = None
    trace: float | None = None
    positive_semidefinite: bool = False
    entry_error: float = 0.0
    entries: Entries | None = None
    n_threads: int = 1
    truncated: TruncatedMatrix | None = None
    sums: KeptSums | None = None

    @property
    def n(self) -> int:
        return self.product.shape[0]


def kernel_matrix(
    kernel: Kernel, rows: Rows, products: Products, largest: float, entry_error: float, n_threads: int, *, center: bool
) -> tuple[KernelMatrix, Entries]:
    """The matrix for the solver, and its entries.

    ``largest``: about the size of the largest entry of K; ``entry_error``: bound on |computed K_ij - K_ij|.
    """
    diagonal = GramOperator(kernel, products.double, rows, None).diagonal()
    coordinates = coordinates_for(kernel, rows, diagonal, largest, n_threads, center=center)
    entries = Entries(kernel, rows, coordinates, n_threads, products.values)
    single = products.single
    search = None if single is None else coordinates.search_product(single)
    matrix = KernelMatrix(
        product=coordinates.product(products.double),
        search_product=search,
        sums=None if single is None or search is not single else single.sums,
        trace=coordinates.trace(diagonal),
        positive_semidefinite=kernel.positive_semidefinite,
        # entries err by e, and the weighted matrix by sum w times that in norm
        entry_error=entry_error * (coordinates.count / rows.n_samples),
        entries=entries,
        n_threads=n_threads,
        truncated=_truncated_matrix(products, coordinates, entry_error),
    )
    return matrix, entries


def _truncated_matrix(products: Products, coordinates: Coordinates, entry_error: float) -> TruncatedMatrix | None:
    truncated, product = products.truncated, products.double
    if truncated is None:
        return None
    assert isinstance(product, WithSums)
    error = (product.error_bound + entry_error) * coordinates.count
    own = truncated.matmat(product.weights[:, None])[:, 0]
    return TruncatedMatrix(
        coordinates.search_product(truncated),
        norm_bound(own),
        lambda: distance_bound(own, product.sums, error),
        truncated.seconds,
    )
