"""Options of the methods, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from fastkpca.methods import as_float, check_choice, check_count, check_share, check_weights

from ..limits import MAX_SCALED_DISTANCE

METHODS = ("auto", "features", "gram")


@dataclass(frozen=True)
class FitOptions:
    """Options for the work with the kernel matrix K.

    Attributes
    ----------
    kernel : str, Kernel, object with ``block``, or callable
    parameters : dict
        Parameters of the kernel.
    method : {"auto", "features", "gram"}
        Through a feature map, through products with K, or a map where one is small enough.
    tol : float
        The part of the trace of K that a map may miss.
    max_features : int, optional
        Most features of a map.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    center : bool
        The method uses the centred matrix alone: ``tol`` is relative to the trace of that one, and rows are shifted
        where that leaves it as it is (``fastkpca.features``).
    """

    kernel: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    method: str = "auto"
    tol: float = 1e-6
    max_features: int | None = None
    n_threads: int | None = None
    rng: Any = 0
    center: bool = False

    def __post_init__(self) -> None:
        check_choice(self.method, "method", METHODS)
        accuracy(self.tol, "tol")
        if self.max_features is not None:
            check_count(self.max_features, "max_features")
            if self.method == "gram":
                raise ValueError(
                    f"max_features={self.max_features} is of method='features', and method='gram' was asked for; "
                    "drop one"
                )


def row_weights(sample_weight: Any, n_samples: int, *, fit: bool = True) -> np.ndarray:
    """Weights of the rows (N,), checked; ones where there are none."""
    weights = check_weights(sample_weight, n_samples, fit=fit)
    return np.ones(n_samples) if weights is None else np.ascontiguousarray(weights)


def regularization_strength(value: object, reason: str = "", *, zero: bool = False) -> float:
    """A method's ``regularization``: positive, or zero where ``zero``; ``reason`` says what it is needed for."""
    wanted = ("zero or " if zero else "") + f"a positive, finite number{reason}"
    number = as_float(value)
    if number is None:
        raise TypeError(f"regularization is {value!r}; give {wanted}")
    if not 0.0 < number < np.inf and not (zero and number == 0.0):
        raise ValueError(f"regularization is {value!r}; give {wanted}")
    return number


MAX_LOGIT_SCALE = float(np.sqrt(MAX_SCALED_DISTANCE))
"""Kernel values and penalty of a logistic regression: their products stay within float64."""
MAX_SCALE = 1e140
"""Kernel values and penalty of a linear system: their squares stay within float64."""


def check_scale(purpose: str, mean_diagonal: float, strength: float = 0.0, largest: float = MAX_SCALE) -> None:
    """Raise ValueError where the penalty or kernel values are so large or small that their products leave float64."""
    for name, value in (("regularization is", strength), ("k(x, x) is about", abs(mean_diagonal))):
        if value and not 1.0 / largest <= value <= largest:
            raise ValueError(
                f"{name} {value:.2g}; {purpose} needs {1.0 / largest:g} to {largest:g}: scale the kernel, or the rows, "
                "and regularization alike"
            )


accuracy = partial(check_share, need="a number between 0 and 1, as in 1e-6")
"""A relative accuracy of a method."""
