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

from collections.abc import Iterable
from functools import wraps
from typing import Any

from ..base.checks import check_choice, check_list
from ..errors import KernelParameterError
from ..kernels import get_kernel
from .cases import CHECKS, DEFAULT_ROWS_REFUSED, Check, ConformanceError, check_rows
from .entries import (
    check_block_invariance,
    check_compiled_tile,
    check_declarations,
    check_diagonal,
    check_dtype,
    check_entry_error,
    check_finite,
    check_gradient_weights,
    check_output,
    check_parameters,
    check_pickling,
    check_positive_semidefinite,
    check_read_only_input,
    check_strides,
    check_symmetry,
    check_thread_safety,
    check_translation,
)
from .offers import (
    check_feature_map_offers,
    check_feature_map_outside,
    check_feature_map_products,
    check_feature_map_residual,
    check_feature_map_state,
    check_moments,
    check_summation_adjoint,
    check_summation_bound,
)

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


def check_kernel(kernel: Any, X: Any = None, *, skip: Iterable[str] = ()) -> dict[str, str]:
    """Run every check, and list all that failed in one error.

    Parameters
    ----------
    kernel : Kernel, class, name, object with ``block`` or function on tiles
    X : array_like (N, d), or list of N objects, optional
        50 to 200 rows, or objects, that the kernel takes: of numbers >= 0 for a kernel on histograms, a Gram matrix, a
        list of strings. Default: 90 normal rows each in one, two and three dimensions.
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
    check_rows(made, X)
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
            note = f"\n  {DEFAULT_ROWS_REFUSED}. It said: {causes[refused.index(True)]}"
            listed = [failure for failure, is_refusal in zip(failures, refused) if not is_refusal]
        # first, because a tile of the wrong shape or with NaN makes other checks fail too
        listed = sorted(listed, key=lambda failure: failure[0] not in ("check_output", "check_finite"))
        lines = "".join(f"\n  {name}: {text}" for name, text in listed)
        raise ConformanceError(
            f"{made!r} fails {len(failures)} of {len(failures) + len(report)} checks:{note}{lines}", failures
        ) from next(filter(None, causes), None)
    return report


def parametrize_with_kernel_checks(kernels: Iterable[Any], X: Any = None) -> Any:
    """A pytest decorator: the test gets ``kernel`` and ``check``, once for each pair, and calls ``check(kernel)``.

    Parameters
    ----------
    kernels : sequence
        Arguments of ``get_kernel``.
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
