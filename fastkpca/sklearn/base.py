"""What the estimators share: kernels by scikit-learn's names, rows as scikit-learn checks them, threads, tags."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
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
from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, validate_parameter_constraints
from sklearn.utils.validation import _check_sample_weight

from ..base import parallel
from ..base.checks import as_float
from ..errors import UnknownKernelError
from ..kernels import Kernel
from ..rows.convert import as_csr, as_rows
from ..rows.foreign import Named, columns_of_words
from ..rows.view import Rows
from .kernels import defaults_taken, is_sklearn_kernel, kernel_for, what_is_ignored


@dataclass(eq=False, repr=False, kw_only=True)
class KernelEstimator(BaseEstimator):
    """An estimator with the parameters of a kernel, ``random_state`` and ``n_jobs``."""

    kernel: Any = "rbf"
    gamma: Any = None
    degree: float | None = 3
    coef0: float | None = 1
    kernel_params: dict[str, Any] | None = None
    random_state: Any = None
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, callable, HasMethods("block")],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
    }

    @classmethod
    @lru_cache  # scikit-learn takes the signature apart anew for each fit
    def _get_param_names(cls) -> list[str]:
        names: list[str] = super()._get_param_names()
        return names

    def _validate_params(self) -> None:
        """As scikit-learn's, of the parameters that are not the defaults, which need no check."""
        cls = type(self)
        given = {name: x for name, x in self.get_params(deep=False).items() if x is not getattr(cls, name, cls)}
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

    def _named(self, X: Any) -> Any:
        """Validated rows of ``fit`` with the names of their columns, for a method whose result keeps these."""
        return X if self._names is None else Rows(as_rows(X).source, named=Named(self._names))

    def _kernel_of_estimator(
        self, X: Any, given: Mapping[str, Any], gamma: float | None, kernel_params: Mapping[str, Any] | None
    ) -> Kernel:
        """The kernel of ``gamma``, ``degree`` and ``coef0`` as they are ``given``, and of other parameters.

        ``gamma`` is the value in place of the default; None, for "rbf" alone: the median distance is the width. An
        estimator cannot tell a value that was given from its own default: a kernel of fastkpca's by name takes both.
        """
        asked = {name: value for name, value in given.items() if value != getattr(type(self), name)}
        unasked = {name: x for name, x in given.items() if name not in asked and x is not None}
        keywords = dict(kernel_params or {})
        try:
            refusal = what_is_ignored(self.kernel, asked, keywords)
            if refusal:
                raise InvalidParameterError(refusal)
            if not is_sklearn_kernel(self.kernel):
                keywords = defaults_taken(self.kernel, unasked, [*keywords, *asked]) | keywords | asked
            kernel = kernel_for(
                self.kernel,
                **{"gamma": gamma, "degree": KernelEstimator.degree, "coef0": KernelEstimator.coef0} | asked,
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

    @staticmethod
    def _weights(X: Any, sample_weight: Any) -> np.ndarray | None:
        """One for each row, as scikit-learn checks them; None where none are given."""
        return None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)

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
