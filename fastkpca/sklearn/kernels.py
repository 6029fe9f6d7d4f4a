"""scikit-learn's kernels as kernels of ours: strings, functions of two rows, matrices.

Kernels by a name that fastkpca has too are fastkpca's, with their feature maps and fast products; the others are
evaluated by ``sklearn.metrics.pairwise``, tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from ..kernels import Kernel, get_kernel

SEMIDEFINITE = frozenset({"linear", "rbf", "laplacian", "cosine", "chi2"})
TRANSLATION = {"linear": "centered", "rbf": "kernel", "laplacian": "kernel"}
"""As ``Kernel.translation``: the mean of the rows is subtracted first, which keeps the digits of rows far from zero."""


def is_sklearn_kernel(kernel: Any) -> bool:
    """True if it is one of the kernels of ``pairwise_kernels``: a string of scikit-learn, or a function of two rows."""
    if isinstance(kernel, str):
        return kernel in PAIRWISE_KERNEL_FUNCTIONS
    return callable(kernel) and not isinstance(kernel, Kernel) and not callable(getattr(kernel, "block", None))


EQUIVALENTS = {
    "sigma": "gamma=1 / (2 * sigma**2), or kernel='gaussian' with kernel_params={'sigma': ...}",
    "scale": "gamma=",
    "offset": "coef0=",
}
"""Names of fastkpca's parameters -> what to give for scikit-learn's kernels."""


def what_is_ignored(kernel: Any, asked: Mapping[str, Any], keywords: Mapping[str, Any]) -> str:
    """The text of an error where a given parameter would have no effect on this kernel; else "".

    Parameters
    ----------
    kernel : str, callable, Kernel, or object with ``block``
    asked : mapping
        Those of ``gamma``, ``degree`` and ``coef0`` that differ from their default.
    keywords : mapping
        ``kernel_params``.
    """
    for name, value in keywords.items():
        if name in asked and not is_sklearn_kernel(kernel):
            return f"{name}={asked[name]!r} and kernel_params={{{name!r}: {value!r}}} were both given; drop one"
    if isinstance(kernel, str) and is_sklearn_kernel(kernel):
        known = KERNEL_PARAMS[kernel]
        for name in keywords:
            instead = f"{name}= of the estimator" if name in known else EQUIVALENTS.get(name, "")
            instead = f"; give {instead}" if instead.partition("=")[0] in known else ""
            return f"kernel_params has {name!r}, which would be ignored: {_takes(kernel, known)}{instead}"
        takes = _takes(kernel, known)
    elif isinstance(kernel, str):
        cls = type(get_kernel(kernel)) if asked else Kernel
        known = {*cls.parameters, *cls.aliases}
        takes = f"{_takes(kernel, known)}, in kernel_params"
    else:
        known, takes = (), "a kernel object, or a class, has its own"
        if is_sklearn_kernel(kernel):
            takes = "a function of two rows has its parameters in kernel_params"
    for name, value in asked.items():
        if name not in known:
            return f"{name}={value!r} was given, and would be ignored: {takes}"
    return ""


def defaults_taken(kernel: Any, defaults: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """Default values of an estimator that are parameters of the fastkpca kernel of that name, not ``given``.

    An estimator cannot tell a value that was given from its own default. Both are handed on, or a search over
    ``coef0=[0, 1]`` would fit the kernel's own default in place of the 1.
    """
    if not isinstance(kernel, str):
        return {}
    cls = type(get_kernel(kernel))

    def parameter(name: str) -> str:
        return cls.aliases[name][0] if name in cls.aliases else name

    parameters = {parameter(name) for name in given}
    known = {*cls.parameters, *cls.aliases}
    return {name: value for name, value in defaults.items() if name in known and parameter(name) not in parameters}


def _takes(kernel: str, known: Collection[str]) -> str:
    return f"the kernel {kernel!r} takes {', '.join(sorted(known)) or 'no parameters'}"


def kernel_for(
    kernel: Any,
    *,
    gamma: float | None,
    degree: float,
    coef0: float,
    keywords: Mapping[str, Any] | None,
    container: type | None,
    thread_safe: bool,
) -> Kernel:
    """The kernel that an estimator's parameters name.

    Parameters
    ----------
    kernel : str, callable, Kernel, or object with ``block``
        ``gamma``, ``degree`` and ``coef0`` belong to scikit-learn's strings, ``keywords`` to all others.
    gamma : float or None
        None, for "rbf" alone: the median distance is the width.
    container : type, optional
        Type of sparse rows: the function gets each row as scikit-learn passes it, as a matrix of one row.
    thread_safe : bool
        Whether a function of two rows may be called from several threads.
    """
    keywords = dict(keywords or {})
    if not is_sklearn_kernel(kernel):
        return get_kernel(kernel, **keywords)
    if not isinstance(kernel, str):
        return RowsKernel(function=kernel, keywords=keywords, container=container, thread_safe=thread_safe)
    kernel = {"polynomial": "poly"}.get(kernel, kernel)
    # what scikit-learn accepts and the kernels here do not: a width of zero, odd degrees
    whole = 1 <= degree <= 64 and float(degree).is_integer()
    if kernel == "linear":
        return get_kernel("linear")
    if gamma is None:
        return get_kernel("gaussian")
    if kernel == "rbf" and gamma > 0:
        return get_kernel("gaussian", gamma=gamma)
    if kernel == "poly" and gamma > 0 and whole:
        return get_kernel("polynomial", degree=int(degree), scale=gamma, offset=coef0)
    if kernel == "sigmoid":
        return get_kernel("tanh", scale=gamma, offset=coef0)
    return PairwiseKernel(metric=kernel, gamma=gamma, degree=degree, coef0=coef0)


class PairwiseKernel(Kernel):
    """A kernel that ``sklearn.metrics.pairwise.pairwise_kernels`` knows by name."""

    api_version = 1
    parameters = {"metric": None, "gamma": None, "degree": 3, "coef0": 1}

    metric: str
    gamma: float | None
    degree: float
    coef0: float

    @property
    def positive_semidefinite(self) -> bool:
        if self.metric == "poly":
            return self.coef0 >= 0 and float(self.degree).is_integer()
        return self.metric in SEMIDEFINITE

    @property
    def translation(self) -> str | None:
        return TRANSLATION.get(self.metric)

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        given = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        if "chi2" in self.metric:  # its compiled code takes only arrays that can be written to
            X, Y = (np.require(A, requirements="W") for A in (X, Y))
        with config_context(assume_finite=True):  # all rows were checked before
            K = pairwise_kernels(X, Y, metric=self.metric, filter_params=True, **given)
        return _finite(np.ascontiguousarray(K, dtype=X.dtype), repr(self))


class RowsKernel(Kernel):
    """A function of two rows that returns one number, as scikit-learn calls it: ``function(x, y, **keywords)``.

    As in scikit-learn, it is taken to be symmetric.
    """

    api_version = 1
    parameters = {"function": None, "keywords": None, "container": None, "thread_safe": False}

    function: Callable[..., float]
    keywords: dict[str, Any] | None
    container: type | None

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        keywords = self.keywords or {}
        rows, columns = self._rows(X), self._rows(Y)
        K = np.empty((len(X), len(Y)))
        symmetric = X.shape == Y.shape and X.ctypes.data == Y.ctypes.data
        for i, x in enumerate(rows):
            for j in range(i if symmetric else 0, len(Y)):
                K[i, j] = self.function(x, columns[j], **keywords)
        if symmetric:
            K = np.triu(K) + np.triu(K, 1).T
        return _finite(K.astype(X.dtype, copy=False), repr(self))

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.array([self.function(x, x, **(self.keywords or {})) for x in self._rows(X)], dtype=np.float64)

    @property
    def name(self) -> str:
        return getattr(self.function, "__qualname__", None) or type(self.function).__name__

    def __repr__(self) -> str:
        return f"the kernel function {self.name}"  # this class is not what the user gave

    def _rows(self, X: np.ndarray) -> list[Any]:
        return list(X) if self.container is None else [self.container(x[None]) for x in X]


def _finite(K: np.ndarray, label: str) -> np.ndarray:
    if not np.isfinite(K).all():
        value = K[~np.isfinite(K)][0]
        raise ValueError(
            f"{label} returned {value} for a pair of rows; kernel values must be finite: rescale X or change the "
            "kernel's parameters (scikit-learn: Input contains NaN or infinity)"
        )
    return K
