"""What the estimators share: kernels by scikit-learn's names, rows as scikit-learn checks them, threads, tags."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import signature
from typing import Any, ClassVar

import numpy as np

try:
    import sklearn as _sklearn  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "sklearn":
        raise
    raise ImportError(
        "fastkpca.sklearn needs scikit-learn 1.4 or newer, which is not installed: pip install 'fastkpca[sklearn]', or "
        "pip install scikit-learn. fastkpca.kpca does the same without it"
    ) from _error

import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints
from sklearn.utils.validation import _check_sample_weight

from ..base import parallel
from ..base.checks import as_float
from ..errors import UnknownKernelError
from ..kernels import Kernel
from ..rows.convert import as_csr
from ..rows.foreign import columns_of_words
from .kernels import defaults_taken, is_sklearn_kernel, kernel_for, what_is_ignored

__all__ = ["KernelEstimator", "KernelTransformer", "checked_weights"]

DEFAULTS = {"gamma": None, "degree": 3, "coef0": 1}
"""A parameter with this value may not have been given by anybody: a kernel that does not have it is no error."""


def checked_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """One weight for each row, as scikit-learn checks them; None where none are given."""
    return None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)


class KernelEstimator(BaseEstimator):
    """An estimator with the parameters of a kernel, ``random_state`` and ``n_jobs``."""

    _parameter_names: ClassVar[tuple[str, ...]]
    _defaults: ClassVar[dict[str, Any]]

    def __init__(
        self,
        kernel: Any,
        gamma: Any,
        degree: float | None,
        coef0: float | None,
        kernel_params: dict[str, Any] | None,
        random_state: Any,
        n_jobs: int | None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """As scikit-learn's, which takes the signature apart anew for each fit."""
        if "_parameter_names" not in vars(cls):
            cls._parameter_names = tuple(super()._get_param_names())
        return list(cls._parameter_names)

    def _validate_params(self) -> None:
        """As scikit-learn's, of the parameters that are not the defaults, which need no check."""
        cls = type(self)
        if "_defaults" not in vars(cls):
            cls._defaults = {name: x.default for name, x in signature(cls.__init__).parameters.items()}
        given = {name: x for name, x in self.get_params(deep=False).items() if x is not cls._defaults[name]}
        validate_parameter_constraints(self._parameter_constraints, given, caller_name=cls.__name__)
        for name, x in given.items():
            number = None if isinstance(x, float) else as_float(x)
            if number is not None and math.isinf(number):  # a whole number of hundreds of digits
                raise InvalidParameterError(
                    f"The {name!r} parameter of {cls.__name__} is a number beyond float64's 1.8e308; give a smaller one"
                )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._precomputed
        return tags

    def _more_tags(self) -> dict[str, Any]:  # before scikit-learn 1.6
        return {"pairwise": self._precomputed}

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _names(self) -> tuple[str, ...] | None:
        """Names of the columns of ``fit``; None where it had none, and for a matrix, whose columns are rows."""
        names = vars(self).get("feature_names_in_")
        return None if names is None or self._precomputed else tuple(map(str, names))

    def _validated(self, X: Any, *, reset: bool) -> Any:
        X = as_csr(X) if sp.issparse(X) and X.ndim == 2 else X  # scikit-learn converts it unseen
        try:
            try:
                from sklearn.utils.validation import validate_data
            except ImportError:  # before scikit-learn 1.6
                return self._validate_data(X, accept_sparse="csr", reset=reset)
            return validate_data(self, X, accept_sparse="csr", reset=reset)
        except ValueError as error:  # of words scikit-learn tells the first one, and not its column
            if "could not convert" not in str(error) or not hasattr(X, "dtypes"):
                raise
            raise ValueError(f"{error}: X {columns_of_words(X)}") from error

    def _kernel_of(
        self,
        X: Any,
        values: Mapping[str, Any],
        asked: Mapping[str, Any],
        keywords: dict[str, Any],
        defaults: Mapping[str, Any] | None = None,
    ) -> Kernel:
        """The kernel of ``gamma``, ``degree`` and ``coef0`` in ``values``; ``asked`` are those that the user set, and
        ``keywords`` other parameters. ``defaults`` are values that the user may have set."""
        try:
            refusal = what_is_ignored(self.kernel, asked, keywords)
            if refusal:
                raise InvalidParameterError(refusal)
            if not is_sklearn_kernel(self.kernel):
                keywords = defaults_taken(self.kernel, defaults or {}, [*keywords, *asked]) | keywords | dict(asked)
            kernel = kernel_for(
                self.kernel,
                gamma=values["gamma"],
                degree=values["degree"],
                coef0=values["coef0"],
                keywords=keywords,
                container=type(X) if sp.issparse(X) else None,
                thread_safe=self.n_jobs is not None,
            )
            return kernel if self._names is None else kernel.numbered(self._names)
        except UnknownKernelError as error:
            raise InvalidParameterError(
                f"The 'kernel' parameter of {type(self).__name__} must be a name of scikit-learn's or of fastkpca's "
                f"kernels, a function of two rows, or a kernel. Got {self.kernel!r} instead: {error}"
            ) from error

    def _kernel_of_estimator(self, X: Any, given: Mapping[str, Any], gamma: float | None, kernel_params: Any) -> Kernel:
        """The kernel of parameters whose defaults are ``DEFAULTS``; ``gamma`` is the value in place of None, itself
        None for the median distance (of "rbf")."""
        asked = {name: value for name, value in given.items() if value != DEFAULTS[name]}
        defaults = {name: value for name, value in given.items() if name not in asked and value is not None}
        return self._kernel_of(X, dict(given, gamma=gamma), asked, dict(kernel_params or {}), defaults)

    def _seed(self) -> int:
        """None is a fixed seed: the same input gives the same output."""
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _n_threads(self) -> int:
        """``n_jobs``; by default as many as the process may use."""
        asked = effective_n_jobs(self.n_jobs)
        if self.n_jobs is not None or asked > 1:
            return int(asked)
        return parallel.resolve_threads(None)


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Such an estimator that transforms rows."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _more_tags(self) -> dict[str, Any]:  # before scikit-learn 1.6
        return {"preserves_dtype": [np.float64, np.float32], "pairwise": self._precomputed}
