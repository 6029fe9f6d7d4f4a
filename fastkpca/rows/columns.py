"""Columns of new rows beside those that a model was fitted on: how many, and how they are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .foreign import column_names

__all__ = ["check_columns", "check_names", "column_names"]


def check_columns(n_features: int, found: int, name: str = "X") -> None:
    """Raise ValueError unless new rows have as many columns as those that the model was fitted on."""
    if found != n_features:
        hint = f"; {name} may be transposed" if found == 1 else ""
        raise ValueError(
            f"{name} has {found} column{'s' * (found != 1)}, the model was fitted on {n_features}; "
            f"give the same columns in the same order{hint}"
        )


def check_names(expected: tuple[str, ...] | None, X: Any, name: str = "X") -> None:
    """Raise ValueError where the columns of new rows are named otherwise than those that the model was fitted on.

    Rows without names, and a model of such, are taken as they come.
    """
    found = column_names(X)
    if expected is None or found is None or found == expected:
        return
    order = f"take {name}[list(model.feature_names)]"
    if sorted(found) == sorted(expected):
        first = next(i for i, (a, b) in enumerate(zip(found, expected)) if a != b)
        raise ValueError(
            f"{name} has the columns that the model was fitted on in another order (first at column {first}: "
            f"{found[first]!r}, fitted on {expected[first]!r}); {order}"
        )
    missing = [x for x in expected if x not in found]
    others = [x for x in found if x not in expected]
    text = [f"lacks {_listed(missing)}"] * bool(missing) + [f"has {_listed(others)} besides"] * bool(others)
    raise ValueError(
        f"{name} {' and '.join(text) or 'repeats columns'}: the model was fitted on other columns; {order}, or rows "
        "without names where these are the same columns"
    )


def _listed(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
