"""Permutation tests whose statistics are known up to a stated error: the p-value, or an interval around it.

If b of m random permutations reach the observed statistic, (b + 1) / (m + 1) is a p-value of exact level. See Phipson
and Smyth, Statistical Applications in Genetics and Molecular Biology 9, 2010. A permuted statistic that lies within the
errors of the observed one may or may not reach it: b is then between two numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fastkpca.kernels import Kernel
from fastkpca.methods import Record

from . import stored
from .base import FittedMethod
from .stored import Known

LEAST_ROWS = 4
"""Rows without which a test, a correlation or a grouping says nothing: U-statistics of two matrices divide by N - 3."""


def _read_kernels(record: Record, name: str, known: Known) -> tuple[Kernel, ...]:
    kernels = tuple(record.get(name).values()) if isinstance(record.get(name), dict) else ()
    if not kernels or not all(isinstance(kernel, Kernel) for kernel in kernels):
        raise record.refuse(f"its {name} are none")
    return kernels


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PermutationTest(FittedMethod):
    """The result of a permutation test.

    Attributes
    ----------
    name : str
        Name of the statistic.
    statistic : ndarray (k,)
        Statistic of the rows as they are, for each kernel that was asked for (``hsic_test``: one).
    error : ndarray (k,)
        The exact statistic is at most so far away, rounding included.
    null : ndarray (m, k)
        Statistics of the permutations.
    null_error : ndarray (m, k)
    intervals : ndarray (k, 2)
        Intervals of the p-value of each kernel alone.
    p_interval : ndarray (2,)
        Interval of the p-value. With several kernels it is that of their largest statistic, each measured in standard
        deviations from its mean over the observed and the permuted ones.
    kernels : tuple of Kernel
        With every parameter resolved; ``hsic_test``: of X and of Y.
    n_samples : int
    info : dict
    """

    made_by = "mmd_test() or hsic_test()"

    name: str = field(metadata=stored.text("MMD^2, biased", "MMD^2, unbiased", "HSIC, biased", "HSIC, unbiased"))
    statistic: np.ndarray = field(metadata=stored.array("k"))
    error: np.ndarray = field(metadata=stored.array("k", least=0.0, infinite=True))
    null: np.ndarray = field(metadata=stored.array("mk"))
    null_error: np.ndarray = field(metadata=stored.array("mk", least=0.0, infinite=True))
    intervals: np.ndarray = field(metadata=stored.array("k2", least=0.0))
    p_interval: np.ndarray = field(metadata=stored.array("2", least=0.0))
    kernels: tuple[Kernel, ...] = field(
        metadata=stored.in_file(_read_kernels, lambda kernels: {str(k): kernel for k, kernel in enumerate(kernels)})
    )
    n_samples: int = field(metadata=stored.count())
    info: dict[str, Any] = field(metadata=stored.info("method"))

    @property
    def p_value(self) -> float:
        """The upper end of ``p_interval``: a test at any level with it is never too liberal."""
        return float(self.p_interval[1])

    @property
    def is_exact(self) -> bool:
        """True if ``p_value`` is that of the exact statistic: no permutation lies within the errors."""
        return bool(self.p_interval[0] == self.p_interval[1])

    def facts(self) -> list[str]:
        low, high = self.p_interval
        p = f"p = {high:.4g}" if low == high else f"p between {low:.4g} and {high:.4g}"
        values = ", ".join(f"{x:.6g} +- {e:.1g}" for x, e in zip(self.statistic, self.error))
        return [f"{self.name} = {values}", f"{p} of {len(self.null)} permutations", f"n_samples={self.n_samples}"]


def test_of(values: np.ndarray, errors: np.ndarray, same: np.ndarray, **fields: Any) -> PermutationTest:
    """The result from statistics (1 + m, k) of the rows as they are and of the permutations, and their errors.

    ``same`` (m,) says of a permutation that it changes nothing, so that it reaches the observed statistic however large
    the errors are.
    """
    each = np.array([interval_of(v, e, same) for v, e in zip(values.T, errors.T)])
    together = each[0]
    if values.shape[1] > 1:
        together = interval_of(*_largest(values, errors), same)
    return PermutationTest(
        statistic=values[0],
        error=errors[0],
        null=values[1:],
        null_error=errors[1:],
        intervals=each,
        p_interval=np.asarray(together),
        **fields,
    )


def interval_of(values: np.ndarray, errors: np.ndarray, same: np.ndarray) -> tuple[float, float]:
    """(b + 1) / (m + 1) for the least and the largest b that the errors allow."""
    least = np.sum((values[1:] - errors[1:] >= values[0] + errors[0]) | same)
    most = np.sum((values[1:] + errors[1:] >= values[0] - errors[0]) | same)
    return (1 + least) / len(values), (1 + most) / len(values)


def _largest(values: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest standardised statistic of each permutation, and its error.

    Mean and deviation are over all 1 + m of them, so the observed one is treated as every other and the level is exact.
    Neither moves by more than the root mean square of the errors.
    """
    mean, spread = values.mean(axis=0), values.std(axis=0)
    moved = np.sqrt(np.mean(errors**2, axis=0))
    z = np.divide(values - mean, spread, out=np.zeros_like(values), where=spread > 0)
    room = spread - moved
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.where(room > 0, (errors + moved + np.abs(z) * moved) / room, np.inf)
    return z.max(axis=1), off.max(axis=1)


def need_rows(n: int, purpose: str, what: str = "X") -> None:
    """Raise ValueError for fewer rows than a statement about them needs."""
    if n < LEAST_ROWS:
        raise ValueError(f"{what} has {n} row{'s' * (n != 1)}; {purpose} needs at least {LEAST_ROWS}")
