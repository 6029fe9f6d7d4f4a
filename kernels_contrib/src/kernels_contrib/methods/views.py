"""Two views of the same rows through feature maps: what HSIC and kernel CCA share.

Both measure A' B, A and B (N, D) the centred features of the views: its squared Frobenius norm, or, with each view
whitened, its largest singular value. Permuting the rows of one view permutes the rows of B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import fastkpca as fk
from fastkpca.kernels import Kernel
from fastkpca.methods import Rows, as_rows, check_rng

from .functions import FeatureFunction
from .options import FitOptions
from .permutation import need_rows
from .products import need_semidefinite, products_for

__all__ = ["View", "info_of", "over_permutations", "two_views"]


@dataclass(frozen=True, eq=False)
class View:
    """One view: its rows as its feature map takes them, K = Phi Phi' + E with tr E at most ``missed``."""

    rows: Rows
    features: Any
    missed: float

    @property
    def kernel(self) -> Kernel:
        return self.features.kernel.unbound()

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    def tiles(self, step: int) -> Iterator[np.ndarray]:
        """Features of the rows, ``step`` rows at a time."""
        for _, tile in self.rows.tiles(step):
            yield self.features.map.features(tile)

    def function(self, weights: np.ndarray, mean: np.ndarray) -> FeatureFunction:
        """weights' (phi(x) - mean)."""
        return FeatureFunction(
            map=self.features.map, shift=self.features.shift, weights=weights, constant=mean @ weights
        )


def two_views(X: Any, Y: Any, kernel_y: Any, options: FitOptions, purpose: str) -> list[View]:
    """The views X and Y, with as many rows, through the smallest maps that miss no more than ``tol`` of the trace."""
    n, m = (len(as_rows(view, name=name, purpose=purpose)) for name, view in (("X", X), ("Y", Y)))
    if n != m:
        raise ValueError(f"X has {n} rows, Y has {m}; {purpose} needs two views of the same rows, in the same order")
    need_rows(n, purpose)
    kernels = (options.kernel, options.kernel if kernel_y is None else kernel_y)
    return [_view(*named, options, purpose) for named in zip(("X", "Y"), (X, Y), kernels)]


def _view(name: str, X: Any, given: Any, options: FitOptions, purpose: str) -> View:
    kernel = fk.get_kernel(given, **options.parameters)
    if kernel.by_number:
        raise ValueError(f"{purpose} takes rows, not the matrix of a kernel: {name} is given as {kernel!r}")
    need_semidefinite(kernel, purpose)
    try:
        features = products_for(X, replace(options, kernel=kernel, parameters={}, method="features")).features
        if features.map.defect:  # entries that may be off in either sense
            features = fk.features(X, kernel, tol=options.tol, max_features=options.max_features, features="pivots")
    except ValueError as error:
        raise ValueError(f"{purpose}, view {name}: {error}".replace(", or use gram()", "")) from error
    return View(as_rows(X).shifted(features.shift), features, features.residual_trace)


def info_of(x: View, y: View) -> dict[str, Any]:
    """For the ``info`` of a result."""
    return {
        "method": "features",
        "n_features": [x.n_features, y.n_features],
        "residual_traces": [x.missed, y.missed],
    }


def over_permutations(
    measure: Callable[[np.ndarray], float], A: np.ndarray, B: np.ndarray, permutations: int, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """(measure of A' B[p] for the identity and random permutations p of the rows, the permutations (1 + m, N))."""
    generator = check_rng(rng)
    orders = [np.arange(len(A)), *(generator.permutation(len(A)) for _ in range(permutations))]
    return np.array([measure(A.T @ B[order]) for order in orders]), np.array(orders)
