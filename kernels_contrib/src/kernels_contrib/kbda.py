"""Kernel biased discriminant analysis: one class is close to its mean, all other rows are far from it.

A direction w maximises w' S_b w / (w' S_w w + penalty): S_w is the scatter of the class about its mean, S_b that of all
other rows about the same mean (``methods.discriminant``).

Zhou & Huang, Small sample learning during multimedia retrieval using BiasMap, 2001.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fastkpca.methods import check_count

from .methods import stored
from .methods.base import project
from .methods.discriminant import DirectionsModel, Groups, fit_directions
from .methods.labels import subset
from .methods.options import FitOptions
from .methods.products import training_rows
from .methods.threads import one_blas_thread

__all__ = ["KBDAModel", "kbda", "kbda_project"]

kbda_project = project


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KBDAModel(DirectionsModel):
    """Biased discriminant directions.

    Attributes
    ----------
    quotients : ndarray (c,)
        Scatter of the other rows about the positive mean, over the (penalised) scatter of the positive ones.
    kernel : Kernel
    regularization : float
        mu.
    penalty : str
    function : KernelFunction
        Projector of new rows.
    n_samples, n_positive : int
    info : dict
    """

    made_by = "kbda()"

    n_positive: int = field(metadata=stored.count())

    def facts(self) -> list[str]:
        return [
            f"{self.kernel!r}, {self.n_positive} of {self.n_samples} rows positive, {self.n_components} directions",
            f"regularization={self.regularization:g} ({self.penalty}), method={self.info['method']!r}",
        ]


@one_blas_thread
def kbda(
    X: Any,
    positive: Any,
    kernel: Any = "gaussian",
    c: int = 2,
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
) -> KBDAModel:
    """Kernel biased discriminant analysis.

    Maximises the scatter of the other rows about the mean of the positive ones, over the scatter of the positive ones
    about it: the others need not be alike.

    Parameters
    ----------
    X : array_like (N, d)
    positive : array_like
        A truth value for each row, or the numbers of the positive rows; at least two.
    kernel : str, Kernel, object with ``block``, or callable
    c : int
        Number of directions, at most the number of other rows.
    regularization : float, optional
        As in ``klda``, like the following.
    penalty : {"coefficients", "norm"}
    tol : float
    method : {"auto", "features", "gram"}
    max_features : int, optional
    max_iterations : int
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    **kernel_parameters

    Returns
    -------
    KBDAModel
        Directions with unit (penalised) variance of the positive rows; the distance from the origin, their mean, ranks
        new rows.
    """
    X = training_rows(X, "kbda")
    n = X.shape[0]
    positive_rows = subset(positive, n, purpose="kbda")
    c = check_count(c, "c")
    n_others = n - int(positive_rows.sum())
    if c > n_others:
        raise ValueError(f"c is {c}; {n_others} other rows have 1 to {n_others} directions")
    options = FitOptions(kernel, kernel_parameters, method, tol, max_features, n_threads, rng)
    groups = Groups((~positive_rows).astype(np.intp), 1, positive_rows / (n - n_others))
    fields, _, _ = fit_directions(X, options, regularization, penalty, max_iterations, groups, c)
    return KBDAModel(n_positive=n - n_others, **fields)
