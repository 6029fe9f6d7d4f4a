"""Turns the ``kernel=`` argument of a public function into a guarded kernel; helps with names of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from ..base.spelling import did_you_mean
from .guard import guarded
from .kernel import Kernel
from .registry import get_kernel

OTHER_NAMES = {
    "n_components": "c",
    "NumComponents": "c",
    "n_jobs": "n_threads",
    "random_state": "rng",
    "eigen_solver": "method",
    "max_iter": "max_passes",
    "tolerance": "tol",
    "KernelFunction": "kernel",
    "KernelScale": "sqrt(2) * sigma (Gaussian), 1 / sqrt(scale) (polynomial)",
    "PolynomialOrder": "degree ('polynomial')",
    "kernel_params": "sigma=, degree= and so on, each by itself,",
    "th": "tol",
    "Standardize": "standardize",
    "standardise": "standardize",
    "Centered": "center",
    "Weights": "sample_weight",
    "nystrom": "landmarks",
    "kpar": "sigma=, degree= and so on, each by itself,",
}
"""Names of our arguments and of kernel parameters in scikit-learn, MATLAB and R."""


def given_kernel(kernel: Any, parameters: dict[str, Any], function: Callable[..., Any]) -> Kernel:
    """The kernel that a function of ours was given, guarded.

    An unknown parameter of the kernel may be meant for the function: then the error says so.
    """
    try:
        return guarded(get_kernel(kernel, **parameters))
    except TypeError as error:
        arguments = [x.name for x in signature(function).parameters.values() if x.kind is not x.VAR_KEYWORD]
        others = {name: ours for name, ours in OTHER_NAMES.items() if ours in arguments or not ours.isidentifier()}
        hints = []
        for name in parameters:
            similar = did_you_mean(name, [*arguments, *others], limit=1)
            if name in others:
                hints.append(f"{name} is called {others[name]} here")
            elif similar and f"no parameter {name!r}" in str(error):
                meant = similar.split("'")[1]
                renamed = f" (called {others[meant]} here)" if meant in others else ""
                hints.append(f"or, of {function.__name__} itself, {similar.rstrip('?')}{renamed}?")
        if not hints:
            raise
        raise TypeError(f"{error} ({'; '.join(hints)})") from error
