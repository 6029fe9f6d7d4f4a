"""The result of ``kpca_select``: kernels and numbers of components with their measures, and the choice among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import Kernel

MEASURES = ("reconstruction", "stability", "preimage", "score")
LARGER_IS_BETTER = frozenset({"stability", "score"})


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """Kernels and numbers of components, their measures with standard errors, and the choice among them.

    Attributes
    ----------
    kernel : Kernel
        The chosen one, with every parameter.
    c : int
        The chosen number of components.
    criterion : str
        The measure that decided.
    columns : dict of str to ndarray
        One entry a row of the table: "kernel" (its number in ``candidates``), "c", the parameters that are numbers, and
        each measure with its standard error ("preimage", "preimage_se"). A measure is nan where a kernel gives fewer
        than c components.
    candidates : tuple of Kernel
    best_row, chosen_row : int
        Rows of the table: the best by the criterion; and the choice, the best with the smallest c that comes within a
        standard error of it.
    standardized : bool
        The choice is for standardised columns: give ``standardize=True`` to ``kpca`` too.
    """

    kernel: Kernel
    c: int
    criterion: str
    columns: dict[str, np.ndarray]
    candidates: tuple[Kernel, ...]
    best_row: int
    chosen_row: int
    standardized: bool = False

    @property
    def measures(self) -> list[str]:
        """Names of the measures that were taken."""
        return [name for name in MEASURES if name in self.columns]

    @property
    def parameters(self) -> list[str]:
        """Names of the kernels' parameters that are numbers."""
        return list(self.columns)[2 : list(self.columns).index(self.measures[0])]

    @property
    def edges(self) -> tuple[str, ...]:
        """The end of the grid that the choice lies at, as "largest sigma": a better value may lie outside the grid."""
        ends = []
        for name in [*self.parameters, "c"]:
            values = self.columns[name]
            chosen, grid = values[self.chosen_row], np.unique(values[np.isfinite(values)])
            if len(grid) < 3 or not np.isfinite(chosen):
                continue
            if chosen == grid[-1]:
                ends.append(f"largest {name}")
            elif chosen == grid[0] and name != "c":  # the rule selects few components
                ends.append(f"smallest {name}")
        return tuple(ends)

    @property
    def table(self) -> Any:
        """All rows: a pandas DataFrame where pandas is installed, else a NumPy record array with the same columns."""
        columns = self.columns | {
            "kernel": np.array([repr(self.candidates[i]) for i in self.columns["kernel"]]),
            "chosen": np.arange(len(self.columns["c"])) == self.chosen_row,
        }
        try:
            import pandas
        except ImportError:
            types = [(name, values.dtype) for name, values in columns.items()]
            return np.rec.fromarrays(list(columns.values()), dtype=np.dtype(types))
        return pandas.DataFrame(columns)

    def __repr__(self) -> str:
        def value(row: int) -> str:
            return f"{self.columns[self.criterion][row]:.4g} ± {self.columns[self.criterion + '_se'][row]:.2g}"

        best = self.candidates[self.columns["kernel"][self.best_row]]
        scaled = ", standardized columns" * self.standardized
        text = f"<Selection: {self.kernel!r}{scaled}, c={self.c}, {self.criterion} {value(self.chosen_row)}"
        if self.chosen_row != self.best_row:
            text += f"; the best is {best!r}, c={self.columns['c'][self.best_row]}, with {value(self.best_row)}"
        if self.edges:
            text += f"; it has the {' and the '.join(self.edges)} of the grid, and beyond may be a better one"
        return f"{text}; {len(self.columns['c'])} rows in .table>"
