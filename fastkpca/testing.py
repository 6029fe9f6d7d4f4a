"""Checks for the authors of kernels: one named check for each property that the core relies on.

All of them in two lines of a test suite:

    from fastkpca.testing import check_kernel
    def test_my_kernel():
        check_kernel(MyKernel(width=2.0))

or one test for each check:

    from fastkpca.testing import parametrize_with_kernel_checks
    @parametrize_with_kernel_checks([MyKernel(), MyKernel(width=2.0)])
    def test_my_kernels(kernel, check):
        check(kernel)

A check takes anything that ``get_kernel`` takes, and rows to try it on (by default 90 rows each in one, two and three
dimensions). It returns "passed", or "not offered" where the kernel does not offer what is checked, and raises
ConformanceError where the check fails. Values may differ by ``Kernel.entry_error``; where that is None, by half the
digits of the type. A sample can only prove a claim wrong: that a kernel is semidefinite or thread safe, and that the
bound of a summation holds, remains for the author to prove.
"""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import update_wrapper, wraps
from typing import Any

import numpy as np

from .base.caching import cached_property
from .base.checks import Randomness, check_choice, check_list
from .base.near import did_you_mean
from .base.protocol import API_VERSION, FeatureMap, Kernel, Moments, Offer, Summary, Summation
from .base.rounding import EPS, unit_roundoff
from .errors import KernelParameterError
from .kernels import CallableKernel, ObjectKernel, contract, get_kernel
from .kernels.guard import LEAST_TOL
from .rows.convert import as_rows
from .rows.summary import summarize
from .rows.values import check_finite as refuse_not_finite
from .rows.view import Rows

__all__ = [
    "CHECKS",
    "ConformanceError",
    "check_block_invariance",
    "check_compiled_tile",
    "check_declarations",
    "check_diagonal",
    "check_dtype",
    "check_entry_error",
    "check_feature_map_offers",
    "check_feature_map_outside",
    "check_feature_map_products",
    "check_feature_map_residual",
    "check_feature_map_state",
    "check_finite",
    "check_gradient_weights",
    "check_kernel",
    "check_moments",
    "check_output",
    "check_parameters",
    "check_pickling",
    "check_positive_semidefinite",
    "check_read_only_input",
    "check_strides",
    "check_summation_adjoint",
    "check_summation_bound",
    "check_symmetry",
    "check_thread_safety",
    "check_translation",
    "parametrize_with_kernel_checks",
]

PASSED, NOT_OFFERED = "passed", "not offered"
TOLERANCES = 1e-1, 1e-3, 1e-6, 1e-10
LEAST_ROWS = 50
OUTSIDE = 60
"""Rows outside the region of the fit."""


class ConformanceError(AssertionError):
    """A kernel does not keep its contract; ``failures`` holds (name of the check, what is wrong)."""

    def __init__(self, message: str, failures: Sequence[tuple[str, str]] = ()):
        super().__init__(message)
        self.failures = tuple(failures)


class _Fault(Exception):
    """What is wrong; the wrapper adds the names of kernel and check."""


Check = Callable[..., str]
CHECKS: list[Check] = []
"""All checks, in the order in which ``check_kernel`` runs them."""


def _check(function: Callable[[Kernel, Any], str | None]) -> Check:
    """A check of a function that raises _Fault, and returns NOT_OFFERED where there is nothing to look at."""

    def check(kernel: Any, X: Any = None) -> str:
        made = get_kernel(kernel)
        try:
            return function(made, X) or PASSED
        except _Fault as fault:
            text, cause = str(fault), None
        except Exception as error:
            text, cause = f"{type(error).__name__}: {error}", error
        name = function.__name__
        raise ConformanceError(f"{made!r} fails {name}: {text}", [(name, text)]) from cause

    update_wrapper(check, function)
    vars(check).pop("__wrapped__")  # its arguments are not those of the check
    CHECKS.append(check)
    return check


def _check_cases(function: Callable[[_Case], str | None]) -> Check:
    """The same for a function of one case: each set of rows is looked at."""

    @wraps(function)
    def on_all(kernel: Kernel, X: Any) -> str | None:
        results = [function(case) for case in _cases(kernel, X)]
        return NOT_OFFERED if all(result == NOT_OFFERED for result in results) else None

    return _check(on_all)


def _check_maps(*tolerances: float) -> Callable[[Callable[[_Case, FeatureMap, float], str | None]], Check]:
    """The same for a function of a case and a feature map made for it at one of the tolerances."""

    def decorate(function: Callable[[_Case, FeatureMap, float], str | None]) -> Check:
        @wraps(function)
        def on_maps(case: _Case) -> str | None:
            result: str | None = NOT_OFFERED
            for tol in tolerances:
                for feature_map in _maps(case, tol):
                    if function(case, feature_map, tol) != NOT_OFFERED:
                        result = None
            return result

        return _check_cases(on_maps)

    return decorate


def check_kernel(kernel: Any, X: Any = None, *, skip: Iterable[str] = ()) -> dict[str, str]:
    """Run every check, and list all that failed in one error.

    Parameters
    ----------
    kernel : Kernel, class, name, object with ``block`` or function on tiles
    X : array_like (N, d), or list of N objects, optional
        50 to 200 rows in the kernel's domain (some kernels need positive numbers, a Gram matrix, or a list of objects).
        Default: 90 normal rows each in one, two and three dimensions.
    skip : names of checks, optional

    Returns
    -------
    dict
        Name of the check -> "passed" or "not offered".

    Raises
    ------
    ConformanceError
        An AssertionError that lists every check that failed, and why.
    TypeError, ValueError
        X is not what the kernel takes, or has fewer than 50 rows.

    Examples
    --------
    >>> report = check_kernel("gaussian")
    >>> report["check_symmetry"]
    'passed'
    """
    skip = check_list(skip, "skip", "a list of names of checks, as in ['check_dtype']")
    for name in skip:
        check_choice(name, "an entry of skip", [check.__name__ for check in CHECKS])
    made = get_kernel(kernel)
    _check_rows(made, X)
    report: dict[str, str] = {}
    failures: list[tuple[str, str]] = []
    causes: list[BaseException | None] = []
    for check in CHECKS:
        if check.__name__ in skip:
            continue
        try:
            report[check.__name__] = check(made, X)
        except ConformanceError as error:
            failures += error.failures
            causes.append(error.__cause__)
    if failures:
        refused = [isinstance(cause, KernelParameterError) for cause in causes]
        listed, note = failures, ""
        if X is None and sum(refused) > len(failures) / 2:
            note = f"\n  {_DEFAULT_ROWS_REFUSED}: {causes[refused.index(True)]}"
            listed = [failure for failure, is_refusal in zip(failures, refused) if not is_refusal]
        # first, because a tile of the wrong shape or with NaN makes other checks fail too
        listed = sorted(listed, key=lambda failure: failure[0] not in ("check_output", "check_finite"))
        lines = "".join(f"\n  {name}: {text}" for name, text in listed)
        raise ConformanceError(
            f"{made!r} fails {len(failures)} of {len(failures) + len(report)} checks:{note}{lines}", failures
        ) from next(filter(None, causes), None)
    return report


_DEFAULT_ROWS_REFUSED = (
    "the kernel refuses the rows that the checks take by default (normal, so negative ones too); pass rows of its "
    "domain, as in check_kernel(kernel, X). It said"
)


def parametrize_with_kernel_checks(kernels: Iterable[Any], X: Any = None) -> Any:
    """A pytest decorator: the test gets ``kernel`` and ``check``, once for each pair, and calls ``check(kernel)``.

    Parameters
    ----------
    kernels : sequence
        Of what ``get_kernel`` takes.
    X : array_like (N, d), optional
        As for ``check_kernel``.

    Returns
    -------
    decorator

    Examples
    --------
    >>> @parametrize_with_kernel_checks(["gaussian", "tanh"])
    ... def test_kernels(kernel, check):
    ...     check(kernel)
    """
    import pytest

    def with_rows(check: Check) -> Check:
        if X is None:
            return check
        return wraps(check)(lambda kernel: check(kernel, X))

    pairs = [
        pytest.param(kernel, with_rows(check), id=f"{get_kernel(kernel)!r}-{check.__name__}")
        for kernel in check_list(kernels, "kernels", "a list of kernels")
        for check in CHECKS
    ]
    return pytest.mark.parametrize("kernel, check", pairs)


# What the checks look at --------------------------------------------------------------------------------------------


@dataclass
class _Case:
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
    def farther_out(self) -> _Case | None:
        """``OUTSIDE`` rows at 1.1 to 100 times the radius, then some of the rows; None: the kernel refuses them."""
        lengths = np.linalg.norm(self.X, axis=1)
        directions = self.X[lengths > 0] / lengths[lengths > 0, None]
        if not self.kernel.takes_points or not len(directions):
            return None
        factors = np.geomspace(1.1, 100.0, OUTSIDE)[:, None] * self.data.radius
        outside = factors * directions[np.arange(OUTSIDE) % len(directions)]
        rows, data = _summarized(np.concatenate([outside, self.X[:40]]))
        far = _Case(self.kernel, rows, data, self.made_up)
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


def _summarized(X: np.ndarray, shift: bool = False) -> tuple[Rows, Summary]:
    return summarize(Rows(X), shift=shift, randomness=Randomness(0))


def _case(kernel: Kernel, X: Any, made_up: bool = False) -> _Case:
    kernel, X = kernel.bind(X)
    rows, data = _summarized(as_rows(X, purpose="check_kernel").all(), shift=kernel.translation is not None)
    return _Case(kernel.resolve(data), rows, data, made_up)


def _cases(kernel: Kernel, X: Any) -> Iterator[_Case]:
    if X is not None:
        yield _case(kernel, X)
        return
    _check_rows(kernel, None)
    rng = np.random.default_rng(20)
    for d in (1, 2, 3):
        yield _case(kernel, rng.standard_normal((90, d)), made_up=True)


def _check_rows(kernel: Kernel, X: Any) -> None:
    """Raise TypeError or ValueError, once and not in every check, where the rows are not what the kernel takes."""
    if X is not None:
        rows = as_rows(kernel.bind(X)[1], purpose="check_kernel", at_least=LEAST_ROWS)
        refuse_not_finite(rows, name="X", purpose="check_kernel")
    elif not kernel.takes_points:
        raise ValueError(f"the input of {kernel!r} is not rows of coordinates; give X, as in check_kernel(kernel, X)")


def _of_author(kernel: Kernel) -> Kernel:
    """The kernel without the list of objects that it was bound to."""
    listed = kernel.listed()
    return kernel if listed is None else listed[0]


def _need(condition: Any, text: str) -> None:
    if not condition:
        raise _Fault(text)


def _agree(values: Any, expected: Any, error: float, text: str) -> None:
    values, expected = np.asarray(values), np.asarray(expected)
    _need(values.shape == expected.shape, f"{text}: shape {values.shape}, where {expected.shape} is due")
    finite = np.isfinite(values).all() and np.isfinite(expected).all() and not np.isnan(error)  # NaN: elsewhere in X
    _need(finite, f"{text}: not finite")
    off = float(np.abs(values.astype(np.float64) - expected).max(initial=0.0))
    _need(off <= error, f"{text}: they differ by {off:.3g}, allowed is {error:.3g}")


def _hold(finding: contract.Finding, where: str = "") -> None:
    """The claim of the contract holds."""
    _need(not finding.broken, finding.text + where)


# What the kernel declares -------------------------------------------------------------------------------------------


@_check
def check_declarations(kernel: Kernel, X: Any) -> None:
    """``api_version``, ``positive_semidefinite``, ``translation`` and so on are what the core can read."""
    cls = type(kernel)
    if cls.__module__.partition(".")[0] != "fastkpca":
        version = cls.__dict__.get("api_version")
        _need(
            version == API_VERSION and type(version) is int,
            f"api_version is {version!r} in the class's own body; write `api_version = {API_VERSION}`",
        )
    for name, value in (
        ("positive_semidefinite", kernel.positive_semidefinite),
        ("thread_safe", kernel.thread_safe),
        ("takes_objects", kernel.takes_objects),
    ):
        _need(isinstance(value, (bool, np.bool_)), f"{name} is {value!r}; it must be True or False")
    _need(
        kernel.translation in (None, "kernel", "centered"),
        f'translation is {kernel.translation!r}; it must be "kernel", "centered" or None',
    )
    declarations = [name for name, value in vars(Kernel).items() if not (name.startswith("_") or callable(value))]
    author = type(kernel.wrapped) if isinstance(kernel, ObjectKernel) else cls
    for base in author.__mro__:
        if base.__module__.partition(".")[0] == "fastkpca":
            break
        for name, value in vars(base).items():
            near = (
                ""
                if name in declarations or callable(value)
                else did_you_mean(name, declarations, limit=1, cutoff=0.85)
            )
            _need(not near, f"{base.__name__}.{name} is read by nobody; {near}")


@_check
def check_parameters(kernel: Kernel, X: Any) -> str | None:
    """Unknown parameters and two spellings are refused, ``resolve`` fills in what is None, and settles."""
    cls: Any = type(kernel)
    if isinstance(kernel, (CallableKernel, ObjectKernel)):
        return NOT_OFFERED
    values = kernel.get_parameters()
    arguments = inspect.signature(cls).parameters.values()
    named = {p.name for p in arguments if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    hidden = sorted(named - set(values) - set(cls.aliases))
    _need(
        not hidden,
        f"{cls.__name__} takes {', '.join(hidden)}, which the class attribute parameters does not list: kernels "
        "that differ in nothing else count as equal",
    )
    _need(cls(**values) == kernel, f"{cls.__name__}(**get_parameters()) is {cls(**values)!r}")
    resolved: dict[str, Any] = {}
    for case in _cases(kernel, X):
        resolved = _of_author(case.kernel).get_parameters()
        _need(set(resolved) == set(values), f"resolve changes the parameters: {sorted(resolved)}")
        missing = [name for name, value in resolved.items() if value is None]
        _need(not missing, f"resolve leaves {', '.join(missing)} at None")
        for name, value in values.items():
            if isinstance(value, (bool, int, float, str)):  # a kernel, or several, have parameters of their own
                _need(resolved[name] == value, f"resolve changes {name}, which was given")
        _need(case.kernel.resolve(case.data) == case.kernel, "resolve of a resolved kernel changes it")
    given = {name: value for name, value in values.items() if value is not None}
    _refused(cls, given | {"no_such_parameter": 1}, "an unknown parameter is accepted")
    for other, (name, _) in cls.aliases.items():
        value = resolved[name]
        _refused(cls, {name: value, other: value}, f"{name!r} and {other!r} are accepted together")
    return None


def _refused(cls: Any, parameters: dict[str, Any], text: str) -> None:
    try:
        cls(**parameters)
    except TypeError:
        return
    raise _Fault(f"{text}; TypeError is due")


@_check_cases
def check_pickling(case: _Case) -> None:
    """Pickles and copies are equal kernels with equal hash and values; repr shows the parameters."""
    kernel = case.kernel
    expected = kernel.block(case.X[:9], case.X[:5])
    for how, make in (
        ("pickle", lambda k: pickle.loads(pickle.dumps(k))),
        ("copy", copy.copy),
        ("deepcopy", copy.deepcopy),
    ):
        other = make(kernel)
        _need(other == kernel and kernel == other, f"its {how} is not equal to it")
        _need(hash(other) == hash(kernel), f"its {how} has another hash")
        _need(repr(other) == repr(kernel), f"its {how} shows itself as {other!r}")
        np.testing.assert_array_equal(other.block(case.X[:9], case.X[:5]), expected, f"values of its {how}")
    for name, value in _of_author(kernel).get_parameters().items():
        parts = value if isinstance(value, tuple) else (value,)
        shown = f"{name}=" in repr(kernel) or all(repr(part) in repr(kernel) for part in parts)
        _need(shown, f"its repr {kernel!r} does not show {name}")
    _need(kernel != object(), "it is equal to an object of another class")


# Values of a tile ---------------------------------------------------------------------------------------------------


@_check_cases
def check_output(case: _Case) -> None:
    """``block`` returns a new array of shape (n, m) on each call, which the caller may overwrite."""
    block, S = case.kernel.block, case.X
    for n, m in ((1, 1), (1, 7), (7, 1), (5, 9), (20, 20)):
        first, second = block(S[:n], S[:m]), block(S[:n], S[:m])
        _need(isinstance(first, np.ndarray), f"block returns a {type(first).__name__}; an array is due")
        _need(first.shape == (n, m), f"block returns shape {first.shape} for tiles of {n} and {m} rows")
        _need(first.flags.writeable, "block returns a read-only array")
        _need(not np.shares_memory(first, second), "block returns the same memory in two calls")
        _need(not np.shares_memory(first, S), "block returns a view of its input")
        kept = second.copy()
        first[...] = np.pi
        again = block(S[:n], S[:m])  # NaN is for check_finite and others
        _need(np.array_equal(again, kept, equal_nan=True), "overwriting what block returned changes later values")
        diagonal = case.kernel.diagonal(S[:n])
        _need(np.shape(diagonal) == (n,), f"diagonal returns shape {np.shape(diagonal)} for {n} rows")


@_check_cases
def check_symmetry(case: _Case) -> None:
    """k(x, y) = k(y, x), within a tile and between two."""
    block, S = case.kernel.block, case.X
    _hold(contract.block_is_symmetric(case.K, case.error()))
    h = len(S) // 3
    _agree(block(S[:h], S[h:]), block(S[h:], S[:h]).T, 2 * case.error(), "k(x, y) and k(y, x) in two tiles")


@_check_cases
def check_diagonal(case: _Case) -> None:
    """``diagonal`` is that of ``block``, and not negative where the kernel says that it is semidefinite."""
    diagonal = np.asarray(case.kernel.diagonal(case.X))
    _hold(contract.diagonal_is_that_of_block(diagonal, case.K, case.error()))
    if case.kernel.positive_semidefinite:
        _need((diagonal >= 0).all(), f"k(x, x) = {diagonal.min():.3g} for a positive semidefinite kernel")


@_check_cases
def check_block_invariance(case: _Case) -> None:
    """A value depends on its two rows alone: not on the tile's size, its other rows, or their order."""
    block, S, error = case.kernel.block, case.X, 2 * case.error()
    for step in (1, 7, 32):
        for i in range(0, len(S), 5 * step):
            tile = block(S[i : i + step], S[i // 2 :])
            _agree(tile, case.K[i : i + step, i // 2 :], error, f"values from tiles of {step} rows and of {len(S)}")
    order = np.random.default_rng(0).permutation(len(S))
    moved = np.ascontiguousarray(S[order])
    _agree(block(moved, S), case.K[order], error, "values of the same rows in another order")


@_check_cases
def check_dtype(case: _Case) -> None:
    """float64 tiles give float64 values, float32 tiles float32 values, and the two agree."""
    single = case.X.astype(np.float32)
    double = single.astype(np.float64)
    expected, values = case.kernel.block(double, double), case.kernel.block(single, single)
    _need(expected.dtype == np.float64, f"float64 tiles give {expected.dtype} values")
    _need(values.dtype == np.float32, f"float32 tiles give {values.dtype} values")
    error = case.error(np.float32) + case.error()
    _agree(values, expected, error, "values from float32 and from float64 tiles")
    for tile in (single, double):
        diagonal = np.asarray(case.kernel.diagonal(tile))
        _need(diagonal.dtype.kind == "f", f"diagonal returns {diagonal.dtype}")
    _agree(case.kernel.diagonal(single), np.diagonal(expected), error, "diagonal of float32 rows")


@_check_cases
def check_strides(case: _Case) -> None:
    """Rows in column order, every second row, rows backwards, part of the columns: the same values as their copies."""
    kernel, S, error = case.kernel, case.X, 2 * case.error()
    wide = np.full((len(S), 2 * S.shape[1] + 1), 1e3)
    wide[:, 1::2] = S
    for how, tile in (
        ("in column order", np.asfortranarray(S)),
        ("every second", S[::2]),
        ("backwards", S[::-1]),
        ("of a wider array", wide[:, 1::2]),
    ):
        plain = np.ascontiguousarray(tile)
        expected = kernel.block(plain, plain[:7])
        _agree(kernel.block(tile, tile[:7]), expected, error, f"values of rows {how} and of their copy")
        _agree(kernel.diagonal(tile), kernel.diagonal(plain), error, f"diagonal of rows {how} and of their copy")


@_check_cases
def check_read_only_input(case: _Case) -> None:
    """Read-only tiles work, and no call changes its input."""
    for dtype in (np.float64, np.float32):
        locked, free = case.X.astype(dtype), case.X.astype(dtype)
        locked.flags.writeable = False
        before = free.copy()
        for tile in (free, locked):
            case.kernel.block(tile[:40], tile)
            case.kernel.block(tile, tile)
            case.kernel.diagonal(tile)
            _need(np.array_equal(tile, before), "a call changes its input")


@_check
def check_finite(kernel: Kernel, X: Any) -> str | None:
    """Equal rows, tiny and huge ones: finite values, or a ValueError (a KernelParameterError) that says why not."""
    if not kernel.takes_points or X is not None:
        return NOT_OFFERED  # these rows may not be in the kernel's domain
    rng = np.random.default_rng(4)
    normal = rng.standard_normal((30, 3))
    sets = {
        "rows in pairs": np.repeat(normal, 2, axis=0),
        "equal rows": np.ones((20, 2)),
        "zeros": np.concatenate([np.zeros((5, 3)), normal]),
        "rows of size 1e-150": 1e-150 * normal,
        "rows of size 1e-8": 1e-8 * normal,
        "rows of size 1e8": 1e8 * normal,
        "rows of size 1e60": 1e60 * normal,
        "one row far away": np.concatenate([normal, [[1e9, -1e9, 1e9]]]),
        "60 columns": rng.standard_normal((30, 60)),
    }
    for what, rows in sets.items():
        try:
            case = _case(kernel, rows)
            with np.errstate(all="ignore"):
                K, diagonal = case.K, case.kernel.diagonal(case.X)
        except ValueError:
            continue  # refused with an error
        _need(np.isfinite(K).all(), f"{what}: block is not finite")
        _need(np.isfinite(diagonal).all(), f"{what}: diagonal is not finite")
        if case.kernel.positive_semidefinite and case.kernel.entry_error(case.data, np.dtype(float)) is not None:
            root = np.sqrt(np.maximum(np.diagonal(K), 0.0))
            slack = case.error() + 1e-12 * case.largest
            _need((np.abs(K) <= np.outer(root, root) + slack).all(), f"{what}: |k(x, y)|^2 > k(x, x) k(y, y)")
    return None


# Properties that it claims ------------------------------------------------------------------------------------------


@_check_cases
def check_positive_semidefinite(case: _Case) -> str | None:
    """No eigenvalue below rounding on rows at several scales, in clusters, and on a line, where the kernel says so."""
    if not case.kernel.positive_semidefinite:
        return NOT_OFFERED
    sets = [case.X]
    if case.made_up:
        rng = np.random.default_rng(3)
        near = np.repeat(case.X[:12], 6, axis=0)
        sets += [0.1 * case.X, 4.0 * case.X, near + 0.01 * rng.standard_normal(near.shape)]
        sets += [np.linspace(-2, 2, 60)[:, None] * np.ones(case.X.shape[1])]
    for S in sets:
        S = np.ascontiguousarray(S)
        K = case.kernel.block(S, S)
        size = float(np.abs(K).max(initial=0.0))
        stated = case.kernel.entry_error(_summarized(S)[1], np.dtype(np.float64))
        error = 1e-8 * size if stated is None else stated
        _need(np.isfinite(K).all(), f"its values on {len(S)} rows are not finite")
        _hold(contract.block_is_semidefinite(K, len(S) * (error + 8 * EPS * size)))
    return None


@_check_cases
def check_translation(case: _Case) -> str | None:
    """k(x + s, y + s) = k(x, y), or that of centred values, where ``translation`` says so."""
    block, translation = case.kernel.block, case.kernel.translation
    if translation is None:
        return NOT_OFFERED
    S = np.round(case.X * 2.0**20) / 2.0**20  # so that adding the shift below is exact
    here = block(S, S)
    for shift in (1.0, -3.0, 64.0):
        moved = S + shift * (1 + np.arange(S.shape[1]))
        there = block(moved, moved)
        error = 2 * case.error() + 2 * case.error(data=_summarized(moved)[1]) + 64 * EPS * float(np.abs(there).max())
        error *= 4.0 if translation == "centered" else 1.0
        _hold(contract.shift_changes_nothing(here, there, translation, shift, error))
    return None


@_check_cases
def check_entry_error(case: _Case) -> str | None:
    """float32 values are within ``entry_error`` of float64 ones; the bound is finite, and float64's is the smaller.

    Without ``X``, rows in clusters far apart are tried as well.
    """
    result = _entry_error(case.kernel, case.X)
    if case.made_up:
        rng = np.random.default_rng(5)
        far = case.X + 1e3 * rng.standard_normal((3, case.X.shape[1]))[rng.integers(3, size=len(case.X))]
        rows, _ = _summarized(far, shift=case.kernel.translation is not None)
        result = _entry_error(case.kernel, rows.all())
    return result


def _entry_error(kernel: Kernel, X: np.ndarray) -> str | None:
    block, single = kernel.block, X.astype(np.float32)
    S = single.astype(np.float64)
    data = _summarized(S)[1]
    bounds: list[Any] = [kernel.entry_error(data, np.dtype(t)) for t in (np.float32, np.float64)]
    if bounds[1] is None:
        return NOT_OFFERED
    for bound in bounds:
        _need(bound is not None and 0 <= bound < np.inf, f"entry_error is {bound!r}; a finite bound is due")
    _need(bounds[1] <= bounds[0], "entry_error is larger for float64 than for float32")
    K = block(S, S)
    backwards = block(S[::-1].copy(), S[::-1].copy())[::-1, ::-1]  # the same values evaluated in another order
    for what, values, allowed in (
        ("float32 values are", block(single, single) - K, bounds[0] + bounds[1]),
        ("float64 values in another order are", K - backwards, 2 * bounds[1]),
        ("diagonal is", np.diagonal(K) - kernel.diagonal(S), 2 * bounds[1]),
    ):
        off = np.abs(values).max()
        _need(off <= allowed, f"{what} off by {off:.3g}, where entry_error says {allowed:.3g}")
    return None


@_check_cases
def check_thread_safety(case: _Case) -> str | None:
    """The same bits from eight threads at once as from one, where ``thread_safe`` is not False."""
    kernel, S = case.kernel, case.X
    if not kernel.thread_safe:
        return NOT_OFFERED
    tiles = [np.ascontiguousarray(np.roll(S, i, axis=0)[: len(S) - 3 * i]) for i in range(8)]
    calls = [kernel.diagonal, lambda tile: kernel.block(tile, tiles[len(tile) % 8])]
    for feature_map in _maps(case, 1e-3):
        calls += [feature_map.features, feature_map.residual]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for call in calls:
            _same_from_eight_threads(call, tiles)
    finally:
        sys.setswitchinterval(interval)
    return None


def _same_from_eight_threads(call: Callable[[np.ndarray], Any], tiles: Sequence[np.ndarray]) -> None:
    expected = [np.array(call(tile)) for tile in tiles]
    start = threading.Barrier(8)

    def work(tile: np.ndarray) -> list[np.ndarray]:
        start.wait()
        return [np.asarray(call(tile)) for _ in range(10)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, tiles))
    for one, several in zip(expected, results):
        _need(
            all(np.array_equal(one, other, equal_nan=True) for other in several),
            "values from eight threads at once are not those from one thread; let each call have its own work arrays, "
            "or declare thread_safe = False",
        )


@_check_cases
def check_compiled_tile(case: _Case) -> str | None:
    """Where ``compiled_tile`` names one of the core's tiles, that is the kernel of ``block``."""
    error = case.error() + len(case.X) * EPS * case.largest
    finding = contract.compiled_tile_is_block(case.kernel, case.X, case.K, error)
    if finding is None:
        return NOT_OFFERED
    _hold(finding)
    return None


@_check_cases
def check_gradient_weights(case: _Case) -> str | None:
    """``gradient_weights`` give the gradient of ``block`` by its first argument, as central differences see it."""
    few = np.ascontiguousarray(case.X[:24])
    block, K = case.kernel.block, case.kernel.block(few, few)
    weights = case.kernel.gradient_weights(few, few, K) if case.kernel.takes_points else None
    if weights is None:
        return NOT_OFFERED
    _need(np.shape(weights) == K.shape, f"gradient_weights has shape {np.shape(weights)} for {K.shape} values")
    length = max(case.data.radius, 1e-300)
    step = 1e-5 * length
    for j in range(few.shape[1]):
        up, down = few.copy(), few.copy()
        up[:, j] += step
        down[:, j] -= step
        difference = (block(up, few) - block(down, few)) / (up - down)[:, j, None]
        towards = few[None, :, j] - few[:, None, j] if case.kernel.translation == "kernel" else few[None, :, j]
        error = 1e-4 * max(float(np.abs(difference).max()), case.largest / length) + 4.0 * case.error() / step
        _agree(weights * towards, difference, error, "gradient_weights and differences of block")
    return None


# Feature maps -------------------------------------------------------------------------------------------------------


def _map_offers(case: _Case, tol: float, max_features: int) -> Iterator[Offer]:
    for offer in case.kernel.feature_maps(case.data, tol, max_features):
        _need(isinstance(offer, Offer), f"feature_maps offers {offer!r}; an Offer is due")
        yield offer


def _maps(case: _Case, tol: float) -> Iterator[FeatureMap]:
    for offer in _map_offers(case, tol, 3000):
        feature_map = offer.build(case.data.sample)
        _need(isinstance(feature_map, FeatureMap), f"{offer.name!r} builds {feature_map!r}; a FeatureMap is due")
        if feature_map.n_features <= 3000:
            yield feature_map
        else:  # max_features is about second moments that are held whole; such a map is checked where it is smaller
            _need(
                type(feature_map.new_moments()) is not Moments, f"{offer.name!r} builds more features than max_features"
            )


@_check_cases
def check_feature_map_offers(case: _Case) -> str | None:
    """``feature_maps`` answers for any positive ``tol`` and any ``max_features``, with maps of no more features."""
    offered: list[Offer] = []
    for tol in (LEAST_TOL, *TOLERANCES):
        for most in (1, 3000):
            try:
                offered += (offers := list(_map_offers(case, tol, most)))
            except Exception as error:
                raise _Fault(f"at tol={tol:.3g}, max_features={most}: {type(error).__name__}: {error}") from error
            for offer in offers:
                held, D = offer.cost.moment_flops is None, offer.cost.n_features
                _need(
                    not held or D <= most,
                    f"{offer.name!r} has {D} features, and max_features is {most} (at tol={tol:.3g}); do not offer it",
                )
    return None if offered else NOT_OFFERED


@_check_maps(*TOLERANCES)
def check_feature_map_residual(case: _Case, phi: FeatureMap, tol: float) -> None:
    """K - Phi Phi' is semidefinite up to ``defect``, and its diagonal at most ``residual``, at rows seen and unseen.

    The residual's sum over the rows keeps the tolerance that was asked for, within a factor of two and rounding.
    """
    S = case.map_rows
    K = case.kernel.block(S, S)
    Phi, residual = phi.features(S), phi.residual(S)
    _need(Phi.shape == (len(S), phi.n_features), f"features have shape {Phi.shape}")
    _need(np.shape(residual) == (len(S),), f"residual has shape {np.shape(residual)}")
    _need(np.isfinite(Phi).all() and np.isfinite(residual).all(), "features or residual are not finite")
    _need((residual >= 0).all(), f"residual is {residual.min():.3g}; it is never negative")
    _agree(phi.residual(S, Phi), residual, 1e-12 * float(np.trace(K)), "residual with and without Phi")
    at = f" (at tol={tol:g})"
    _hold(contract.features_stay_below_kernel(phi, Phi, K, case.error()), at)
    _hold(contract.residual_is_an_upper_bound(phi, Phi, residual, K.diagonal(), case.error()), at)


@_check_maps(*TOLERANCES)
def check_feature_map_outside(case: _Case, phi: FeatureMap, tol: float) -> str | None:
    """``outside_error`` holds for rows up to 100 times farther out; what ``widened`` returns for them is true there.

    A map with ``anywhere = True`` is widened to any rows: ``residual`` and ``defect`` hold for them too.
    """
    far, n = case.farther_out, OUTSIDE
    if far is None:
        return NOT_OFFERED
    at = f" (at tol={tol:g})"
    K, error = far.K, far.error()
    _hold(contract.outside_error_covers_the_rest(phi, far.X[:n], far.X[n:], K[:n, n:], error), at)
    try:
        wide = phi.widened(case.kernel, far.data, case.data.radius)
    except ValueError:
        return None  # it holds for rows like those of the fit, and says so
    at = (
        f" (rows up to {far.data.radius:.3g} from the origin, which anywhere or widened says it holds for; tol={tol:g})"
    )
    Phi = wide.features(far.X)
    _hold(contract.features_stay_below_kernel(wide, Phi, K, error), at)
    residual = wide.residual(far.X, Phi)
    _hold(contract.residual_is_an_upper_bound(wide, Phi, residual, K.diagonal(), error), at)
    return None


@_check_maps(*TOLERANCES)
def check_feature_map_products(case: _Case, phi: FeatureMap, tol: float) -> None:
    """``accumulate`` and ``apply`` are Phi' U and Phi C; features of a tile do not depend on its other rows."""
    S, rng = case.map_rows, np.random.default_rng(6)
    Phi = phi.features(S)
    before = Phi.copy()
    for columns in (1, 4):
        U, C = rng.standard_normal((len(S), columns)), rng.standard_normal((phi.n_features, columns))
        for finding in contract.map_products_are_of_features(phi, S, Phi, U, C):
            _hold(finding)
    error = 4 * contract.map_rounding(phi) * float(np.linalg.norm(Phi))
    _agree(phi.features(S[5:20].copy()), Phi[5:20], error, "features of part of the rows")
    Phi[...] = np.pi
    _need(np.array_equal(phi.features(S), before), "overwriting what features returned changes later features")


@_check_maps(1e-1, 1e-2, 1e-8)
def check_moments(case: _Case, phi: FeatureMap, tol: float) -> None:
    """Moments from tiles, merged in another order, and with weights, are those of the features."""
    S = case.map_rows
    for weights in (None, np.random.default_rng(7).uniform(0.2, 2.0, len(S))):
        whole, left, right = phi.new_moments(), phi.new_moments(), phi.new_moments()
        whole.update(S, weights)
        cut = len(S) // 3
        left.update(S[:cut], None if weights is None else weights[:cut])
        for start in range(cut, len(S), 17):
            tile = slice(start, start + 17)
            right.update(S[tile], None if weights is None else weights[tile])
        given = np.ones(len(S)) if weights is None else weights
        _moments_are_of_features(whole, phi, S, given, "moments")
        _moments_are_of_features(left.merge(right), phi, S, given, "moments merged from tiles")


def _moments_are_of_features(moments: Moments, phi: FeatureMap, S: np.ndarray, weights: np.ndarray, how: str) -> None:
    Phi, count, residual = phi.features(S), weights.sum(), float(weights @ phi.residual(S))
    rounding = 64 * contract.map_rounding(phi)
    mean = weights @ Phi / count
    second = ((Phi - mean) * weights[:, None]).T @ (Phi - mean)
    size = float((weights[:, None] * Phi**2).sum())
    error = rounding * size + count * phi.defect
    _agree(moments.count, count, 1e-12 * count, f"count of {how}")
    _agree(moments.mean, mean, rounding * float(np.abs(Phi).max(initial=0.0)) + phi.defect, f"mean of {how}")
    _agree(moments.trace, np.trace(second), error, f"trace of {how}")
    _agree(moments.residual_trace, residual, 1e-10 * abs(residual) + 64 * EPS * size, f"residual_trace of {how}")
    dense = moments.dense()
    if dense is not None:
        _agree(dense, second, error, f"second moment of {how}")
    C = np.random.default_rng(8).standard_normal((phi.n_features, 2))
    _agree(moments.matmat(C), second @ C, error * (float(np.linalg.norm(C)) + 1e-300), f"matmat of {how}")


@_check_maps(*TOLERANCES)
def check_feature_map_state(case: _Case, phi: FeatureMap, tol: float) -> None:
    """``state`` is JSON and arrays, and ``feature_map_from_state`` makes the same map of it."""
    header, arrays = phi.state()
    header = json.loads(json.dumps(header))
    for name, array in arrays.items():
        _need(isinstance(array, np.ndarray), f"state holds {name!r} as {type(array).__name__}; an array is due")
    restored = case.kernel.feature_map_from_state(header, {name: np.array(array) for name, array in arrays.items()})
    _need(restored.n_features == phi.n_features, "the map from its state has another number of features")
    S, both = case.map_rows, "of the map and of that from its state"
    size = float(np.abs(phi.features(S)).max(initial=0.0))
    _agree(restored.features(S), phi.features(S), 4 * EPS * size, f"features {both}")
    _agree(restored.residual(S), phi.residual(S), 1e-12 * size**2, f"residual {both}")
    _need(
        (restored.defect, restored.rounding) == (phi.defect, phi.rounding),
        "defect or rounding is not that of the map whose state it was made from",
    )


# Summations ---------------------------------------------------------------------------------------------------------


def _summations(case: _Case) -> Iterator[tuple[Summation, np.ndarray, Summary, float | None]]:
    """(summation, the matrix that it multiplies with, the rows of its columns, tol), square and rectangular."""
    few = np.ascontiguousarray(case.X[::2][:37])
    few_rows, few_data = _summarized(few)
    for tol in (None, 1e-2, 1e-5, 1e-9, 1e-12):
        for rows_y, data_y, Y in ((None, case.data, case.X), (few_rows, few_data, few)):
            for offer in case.kernel.summations(case.data, data_y, tol):
                _need(isinstance(offer, Offer), f"summations offers {offer!r}; an Offer is due")
                product = offer.build(case.rows, rows_y)
                _need(isinstance(product, Summation), f"{offer.name!r} builds {product!r}; a Summation is due")
                _need(
                    tuple(product.shape) == (len(case.X), len(Y)),
                    f"{offer.name!r} has shape {product.shape} for {len(case.X)} and {len(Y)} rows",
                )
                yield product, case.kernel.block(case.X, Y), data_y, tol


@_check_cases
def check_summation_bound(case: _Case) -> str | None:
    """Products keep the ``error_bound`` that they state, in each entry, and state no more than was asked for."""
    result: str | None = NOT_OFFERED
    for S, K, data_y, tol in _summations(case):
        result = None
        if tol is None:
            limit = contract.exact_product_error(case.kernel, (case.data, data_y), case.largest)
            asked = f"; without a tol at most {limit:.2g} is due: the rounding of an exact product"
        else:
            limit, asked = tol, f", at most {tol:g} was asked for"
        _need(0 <= S.error_bound <= limit, f"error_bound is {S.error_bound:.3g}{asked}")
        _keeps_its_bound(S.matmat, S, case, K, "matmat")
    return result


def _keeps_its_bound(product: Any, S: Summation, case: _Case, K: np.ndarray, name: str) -> None:
    m = K.shape[1]
    rng = np.random.default_rng(9)
    U = np.column_stack([np.ones(m), rng.standard_normal((m, 2)), np.eye(m)[:, m // 2], np.zeros(m)])
    U[:, 2] *= 10.0 ** rng.integers(-6, 7, m)
    kept = U.copy()
    values = np.asarray(product(U))
    _need(np.array_equal(U, kept), f"{name} changes its input")
    _need(values.shape == (len(K), U.shape[1]), f"{name} returns shape {values.shape} for {U.shape}")
    _need(np.isfinite(values).all(), f"{name} is not finite")
    finding = contract.product_keeps_its_bound(
        values, K @ U, np.abs(K) @ np.abs(U), U, bound=S.error_bound, error=case.error()
    )
    _need(not finding.broken, f"{name} of {type(S).__name__} {finding.observed}; {finding.needed}")
    one = np.asarray(product(np.ascontiguousarray(U[:, 1:2])))
    same = 2 * S.error_bound * np.abs(U[:, 1]).sum() + 2 * (m + 30) * EPS * (np.abs(K) @ np.abs(U[:, 1:2]))
    _need((np.abs(one - values[:, 1:2]) <= same).all(), f"{name} of one column is not that of the same among several")


@_check_cases
def check_summation_adjoint(case: _Case) -> str | None:
    """``rmatmat`` keeps the bound for K' U; where ``symmetric``, it is ``matmat``."""
    result: str | None = NOT_OFFERED
    for S, K, *_ in _summations(case):
        result = None
        _keeps_its_bound(S.rmatmat, S, case, np.ascontiguousarray(K.T), "rmatmat")
        if not S.symmetric:
            continue
        _need(S.shape[0] == S.shape[1], "a rectangular summation says that it is symmetric")
        n = len(K)
        U, V = np.random.default_rng(10).standard_normal((2, n, 2))
        forth, back = float(np.vdot(V, S.matmat(U))), float(np.vdot(S.matmat(V), U))
        size = float(np.abs(V).sum() * np.abs(U).sum()) * max(case.largest, EPS)
        _need(
            abs(forth - back) <= 64 * n * EPS * size,
            f"it says that it is symmetric, and v'Su = {forth:.17g}, u'Sv = {back:.17g}",
        )
    return result
