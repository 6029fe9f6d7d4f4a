"""The form of a check, and its case: a kernel, and the rows that the core would call it with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import update_wrapper, wraps
from typing import Any

import numpy as np

from ..base.caching import cached_property
from ..base.checks import Randomness
from ..base.protocol import FeatureMap, Kernel, Moments, Offer, Summary
from ..base.rounding import EPS, unit_roundoff
from ..errors import KernelParameterError
from ..kernels import get_kernel
from ..rows.convert import as_rows
from ..rows.summary import summarize
from ..rows.values import check_finite
from ..rows.view import Rows

PASSED, NOT_OFFERED = "passed", "not offered"
TOLERANCES = 1e-1, 1e-3, 1e-6, 1e-10
"""Tolerances of the feature maps in the checks, as fractions of the trace."""
LEAST_ROWS = 50
"""Least number of rows of an author's own X."""

DEFAULT_ROWS_REFUSED = (
    "the kernel refuses the rows that the checks take by default (normal, so negative numbers too, in one, two and "
    "three columns); give X, 50 to 200 rows that it takes, as in check_kernel(kernel, X) or check(kernel, X)"
)


class ConformanceError(AssertionError):
    """A kernel does not keep its contract; ``failures`` holds (name of the check, what is wrong)."""

    def __init__(self, message: str, failures: Sequence[tuple[str, str]] = ()):
        super().__init__(message)
        self.failures = tuple(failures)


class Fault(Exception):
    """The fault in words; the wrapper adds the names of kernel and check."""


Check = Callable[..., str]
CHECKS: list[Check] = []
"""All checks, in the order in which ``check_kernel`` runs them."""


def named(function: Callable[[Kernel, Any], str | None]) -> Check:
    """A check of a function that raises Fault, and returns NOT_OFFERED where there is nothing to check."""

    def check(kernel: Any, X: Any = None) -> str:
        made = get_kernel(kernel)
        try:
            return function(made, X) or PASSED
        except Fault as fault:
            text, cause = str(fault), None
        except Exception as error:
            text, cause = f"{type(error).__name__}: {error}", error
        name = function.__name__
        note = f"\n  {DEFAULT_ROWS_REFUSED}" if X is None and isinstance(cause, KernelParameterError) else ""
        raise ConformanceError(f"{made!r} fails {name}: {text}{note}", [(name, text)]) from cause

    update_wrapper(check, function)
    vars(check).pop("__wrapped__")  # its arguments are not those of the check
    CHECKS.append(check)
    return check


def together(results: Iterable[str | None]) -> str | None:
    """The result of a check that was made of several things: not offered where it was of none."""
    return NOT_OFFERED if set(results) <= {NOT_OFFERED} else None


def on_cases(function: Callable[[Case], str | None]) -> Check:
    """The same for a function of one case: each set of rows is checked."""

    @wraps(function)
    def on_all(kernel: Kernel, X: Any) -> str | None:
        return together(function(case) for case in cases_of(kernel, X))

    return named(on_all)


def on_maps_of(*tolerances: float) -> Callable[[Callable[[Case, FeatureMap, float], str | None]], Check]:
    """The same for a function of a case and a feature map made for it at one of the tolerances."""

    def decorate(function: Callable[[Case, FeatureMap, float], str | None]) -> Check:
        @wraps(function)
        def on_maps(case: Case) -> str | None:
            return together(
                function(case, feature_map, tol) for tol in tolerances for feature_map in maps_of(case, tol)
            )

        return on_cases(on_maps)

    return decorate


@dataclass
class Case:
    """A resolved kernel and the rows that it is called with: shifted, as the core would."""

    kernel: Kernel
    rows: Rows
    data: Summary
    made_up: bool

    @cached_property
    def X(self) -> np.ndarray:
        return self.rows.all()

    @cached_property
    def K(self) -> np.ndarray:
        """``block`` of the rows with themselves; not to be written to."""
        return self.kernel.block(self.X, self.X)

    @property
    def largest(self) -> float:
        return float(np.abs(self.K).max(initial=0.0))

    @cached_property
    def map_rows(self) -> np.ndarray:
        """The rows, and points between them: a residual must hold everywhere, not only where the map was chosen."""
        if not self.kernel.takes_points:  # there may be nothing between them
            return self.X
        half = min(40, len(self.X) - 20)
        return np.ascontiguousarray(np.concatenate([self.X, (self.X[:half] + self.X[20 : 20 + half]) / 2]))

    @cached_property
    def farther_out(self) -> Case | None:
        """The same number of rows at 1.1 to 100 times the radius, then the rows themselves; None: the kernel refuses
        them.
        """
        lengths = np.linalg.norm(self.X, axis=1)
        directions = self.X[lengths > 0] / lengths[lengths > 0, None]
        if not self.kernel.takes_points or not len(directions):
            return None
        factors = np.geomspace(1.1, 100.0, len(self.X))[:, None] * self.data.radius
        outside = factors * np.resize(directions, self.X.shape)
        rows, data = summarized(np.concatenate([outside, self.X]))
        far = Case(self.kernel, rows, data, self.made_up)
        try:
            with np.errstate(all="ignore"):
                return far if np.isfinite(far.K).all() else None
        except ValueError:
            return None

    def error(self, dtype: Any = np.float64, data: Summary | None = None) -> float:
        """Bound on the error of a value: the kernel's own, or half the digits."""
        stated = self.kernel.entry_error(self.data if data is None else data, np.dtype(dtype))
        if stated is None:
            return float(np.sqrt(2.0 * unit_roundoff(dtype))) * self.largest
        return float(stated) + 8 * EPS * self.largest


def summarized(X: np.ndarray, shift: bool = False) -> tuple[Rows, Summary]:
    return summarize(Rows(X), shift=shift, randomness=Randomness(0))


def case_of(kernel: Kernel, X: Any, made_up: bool = False) -> Case:
    kernel, X = kernel.bind(X)
    rows, data = summarized(as_rows(X, purpose="check_kernel").all(), shift=kernel.translation is not None)
    return Case(kernel.resolve(data), rows, data, made_up)


def cases_of(kernel: Kernel, X: Any) -> Iterator[Case]:
    if X is not None:
        yield case_of(kernel, X)
        return
    check_rows(kernel, None)
    rng = np.random.default_rng(20)
    for d in (1, 2, 3):
        yield case_of(kernel, rng.standard_normal((90, d)), made_up=True)


def check_rows(kernel: Kernel, X: Any) -> None:
    """Raise TypeError or ValueError, once and not in every check, where the rows are not what the kernel takes."""
    if X is not None:
        rows = as_rows(kernel.bind(X)[1], purpose="check_kernel", at_least=LEAST_ROWS)
        check_finite(rows, name="X", purpose="check_kernel")
    elif not kernel.takes_points:
        needed = "a list of 50 to 200 objects that it takes" if kernel.takes_objects else "a matrix that it takes"
        raise ValueError(
            f"the input of {kernel!r} is not rows of coordinates; give as X {needed}, as in check_kernel(kernel, X)"
        )


def of_author(kernel: Kernel) -> Kernel:
    """The kernel without the list of objects that it was bound to."""
    listed = kernel.listed()
    return kernel if listed is None else listed[0]


def need(condition: Any, text: str) -> None:
    if not condition:
        raise Fault(text)


def agree(values: Any, expected: Any, error: float, text: str) -> None:
    values, expected = np.asarray(values), np.asarray(expected)
    need(values.shape == expected.shape, f"{text}: shape {values.shape}, where {expected.shape} is due")
    finite = np.isfinite(values).all() and np.isfinite(expected).all() and not np.isnan(error)  # NaN: elsewhere in X
    need(finite, f"{text}: not finite")
    off = float(np.abs(values.astype(np.float64) - expected).max(initial=0.0))
    need(off <= error, f"{text}: they differ by {off:.3g}, allowed is {error:.3g}")


def hold(fault: str | None, what: str = "block") -> None:
    """A declaration holds for the values of block."""
    need(fault is None, f"{what} {fault}")


def map_offers(case: Case, tol: float, max_features: int) -> Iterator[Offer]:
    for offer in case.kernel.feature_maps(case.data, tol, max_features):
        need(isinstance(offer, Offer), f"feature_maps offers {offer!r}; an Offer is due")
        yield offer


def maps_of(case: Case, tol: float) -> Iterator[FeatureMap]:
    for offer in map_offers(case, tol, 3000):
        feature_map = offer.build(case.data.sample)
        need(isinstance(feature_map, FeatureMap), f"{offer.name!r} builds {feature_map!r}; a FeatureMap is due")
        if feature_map.n_features <= 3000:
            yield feature_map
        else:  # max_features is about second moments that are held whole; such a map is checked where it is smaller
            need(
                type(feature_map.new_moments()) is not Moments, f"{offer.name!r} builds more features than max_features"
            )
