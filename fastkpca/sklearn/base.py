"""Common base of the estimators: kernels by scikit-learn's names, rows as scikit-learn checks them, threads, tags."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, wraps
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

try:
    from sklearn.utils.validation import validate_data
except ImportError as _error:  # not installed, or older
    if (_error.name or "").partition(".")[0] != "sklearn":
        raise
    raise ImportError(
        "fastkpca.sklearn needs scikit-learn 1.6 or newer, which is not installed: pip install 'fastkpca[sklearn]', or "
        "pip install scikit-learn. fastkpca.kpca does the same without it"
    ) from _error

import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, validate_parameter_constraints
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ..base import parallel
from ..base.checks import as_float
from ..base.progress import printed_lines
from ..errors import LoadedWarning, UnknownKernelError, warn_caller
from ..kernels import Kernel
from ..rows.convert import as_csr, as_rows, run_query
from ..rows.foreign import Named, columns_of_words, is_dask
from ..rows.view import Rows
from .kernels import defaults_taken, is_sklearn_kernel, kernel_for, what_is_ignored

ROW_BY_ROW = ("transform", "predict", "predict_proba", "decision_function", "score_samples")
"""Methods that say something of each row alone: of a Dask collection they return a lazy array."""


def by_blocks(values: Callable[[np.ndarray], np.ndarray], rows: Rows, one: np.ndarray, *, alone: bool) -> Any:
    """The values of each block of rows of a Dask collection: a lazy Dask array, chunked as these.

    ``one`` are those of one row: they tell how many columns there are, and their type.
    """
    shape = (one[0].size,) if one.ndim > 1 else (1,)

    def task(block: np.ndarray, _: int) -> np.ndarray:
        return values(block).reshape(-1, *shape) if len(block) else np.empty((0, *shape), one.dtype)

    lazy = rows.source.lazily(task, *shape, one.dtype, alone=alone)
    return lazy if one.ndim > 1 else lazy[:, 0]


def prints_lines(fit: Callable[..., Any]) -> Callable[..., Any]:
    """The method; where ``verbose`` is positive, the lines of its log are printed on stdout."""

    @wraps(fit)
    def told(self: Any, *args: Any, **options: Any) -> Any:
        with printed_lines() if self.verbose else nullcontext():
            return fit(self, *args, **options)

    return told


def _lazy_of_dask(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, block by block where the rows are a Dask collection."""

    @wraps(method)
    def of_rows(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **options)
        check_is_fitted(self)
        rows = as_rows(X, purpose=f"{type(self).__name__}.{method.__name__}")
        names = getattr(X, "columns", None)
        worker = copy(self)
        worker.n_jobs = 1  # a task has one thread
        if names is not None:
            import pandas as pd

        def values(block: np.ndarray) -> np.ndarray:
            given = block if names is None else pd.DataFrame(block, columns=list(names))
            return np.asarray(method(worker, given, *args, **options))

        row = self._row.toarray() if sp.issparse(self._row) else self._row
        kernel = getattr(self, "_kernel_", None) or getattr(getattr(self, "model_", None), "kernel", None)
        # one row is checked at once: whether it has the columns of the fit
        return by_blocks(values, rows, values(row.astype(rows.dtype)), alone=not getattr(kernel, "thread_safe", False))

    return of_rows


@dataclass(eq=False, repr=False, kw_only=True)
class KernelEstimator(BaseEstimator):
    """An estimator with the parameters of a kernel, ``random_state``, ``n_jobs`` and ``verbose``.

    Rows of a Dask collection are loaded by ``fit``, with a ``LoadedWarning``; what methods say of each row alone is a
    lazy Dask array (``ROW_BY_ROW``).
    """

    kernel: Any = "rbf"
    gamma: Any = None
    degree: float | None = 3
    coef0: float | None = 1
    kernel_params: dict[str, Any] | None = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, callable, HasMethods("block")],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    def __init_subclass__(cls, **options: Any) -> None:
        for name in ROW_BY_ROW:
            if name in vars(cls):
                setattr(cls, name, _lazy_of_dask(vars(cls)[name]))
        if "fit" in vars(cls):
            cls.fit = prints_lines(vars(cls)["fit"])
        super().__init_subclass__(**options)

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
        if is_dask(X):
            X = self._loaded(X)
        X = self._checked_by_sklearn(run_query(X), reset=reset)
        if reset:
            self._row = X[:1].copy()
        return X

    def _loaded(self, X: Any) -> Any:
        """The rows of a Dask collection in this process, with a word on it."""
        rows = X.compute()
        warn_caller(
            f"{type(self).__name__} loads X, a Dask collection of {len(rows)} rows, into this process; fastkpca.kpca "
            "works on the workers of Dask, and methods of a fitted estimator on rows give lazy arrays",
            LoadedWarning,
        )
        return rows

    def _checked_by_sklearn(self, X: Any, *, reset: bool) -> Any:
        try:
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
        """``n_jobs``; by default all processors of the process."""
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
