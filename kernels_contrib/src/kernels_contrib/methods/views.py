"""Two views of the same rows through feature maps: what HSIC and kernel CCA share.

Both measure A' B, A and B (N, D) the centred features of the views: its squared Frobenius norm, or, with each view
whitened, its largest singular value. Permuting the rows of one view permutes the rows of B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import fastkpca as fk
from fastkpca.base import parallel
from fastkpca.methods import as_rows, check_rng

from ..limits import HELD
from .options import FitOptions
from .permutation import need_rows
from .products import Products, need_semidefinite, products_for


def two_views(X: Any, Y: Any, kernel_y: Any, options: FitOptions, purpose: str) -> list[Products]:
    """The views X and Y, with as many rows, through the smallest maps that miss no more than ``tol`` of the trace."""
    n, m = (len(as_rows(view, name=name, purpose=purpose)) for name, view in (("X", X), ("Y", Y)))
    if n != m:
        raise ValueError(f"X has {n} rows, Y has {m}; {purpose} needs two views of the same rows, in the same order")
    need_rows(n, purpose)
    kernels = (options.kernel, options.kernel if kernel_y is None else kernel_y)
    return [_view(*named, options, purpose) for named in zip(("X", "Y"), (X, Y), kernels)]


def _view(name: str, X: Any, given: Any, options: FitOptions, purpose: str) -> Products:
    kernel = fk.get_kernel(given, **options.parameters)
    if kernel.by_number:
        raise ValueError(f"{purpose} takes rows, not the matrix of a kernel: {name} is given as {kernel!r}")
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
        raise ValueError(f"{purpose}, view {name}: {error}".replace(", or use gram()", "")) from error


def _measured(measure: Callable[[np.ndarray], Any], orders: list[np.ndarray], i: int) -> Any:
    return measure(orders[i])


def over_permutations(
    measure: Callable[[np.ndarray], Any], n: int, permutations: int, rng: Any, n_threads: int | None, n_bytes: int
) -> tuple[np.ndarray, ...]:
    """(measures (1 + m, ...) of the rows' order as it is and permuted, whether a permutation (m,) changes nothing).

    A measure takes ``n_bytes``; as many run at once as threads are there and memory is for them, each alone.
    """
    generator, order = check_rng(rng), np.arange(n)
    threads = max(1, min(parallel.resolve_threads(n_threads), HELD // max(n_bytes, 1)))
    values, same = [measure(order)], []
    for start in range(0, permutations, 4 * threads):
        orders = [generator.permutation(n) for _ in range(min(4 * threads, permutations - start))]
        values += parallel.run(partial(_measured, measure, orders), len(orders), n_threads=threads)
        same += [np.array_equal(permuted, order) for permuted in orders]
    return np.array(values), np.array(same, dtype=bool)
