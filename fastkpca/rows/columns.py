"""Columns of new rows beside those that a model was fitted on: how many, and how they are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .foreign import column_names


def check_columns(n_features: int, n_columns: int, name: str = "X", others: str = "the model was fitted on") -> None:
    """Raise ValueError unless new rows have as many columns as those of the ``others``."""
    if n_columns != n_features:
        hint = f"; {name} may be transposed" if n_columns == 1 else ""
        raise ValueError(
            f"{name} has {n_columns} column{'s' * (n_columns != 1)}, {others} {n_features}; "
            f"give the same columns in the same order{hint}"
        )


def check_names(expected: tuple[str, ...] | None, X: Any, name: str = "X") -> None:
    """Raise ValueError where the columns of new rows are named otherwise than those that the model was fitted on.

    Rows without names, and a model of such, are taken as they come.
    """
    names = column_names(X)
    if expected is None or names is None or names == expected:
        return
    order = f"take {name}[list(model.feature_names)]"
    if sorted(names) == sorted(expected):
        first = next(i for i, (a, b) in enumerate(zip(names, expected)) if a != b)
        raise ValueError(
            f"{name} has the columns that the model was fitted on in another order (first at column {first}: "
            f"{names[first]!r}, fitted on {expected[first]!r}); {order}"
        )
    missing = [x for x in expected if x not in names]
    others = [x for x in names if x not in expected]
    text = [f"lacks {listed(map(repr, missing))}"] * bool(missing)
    text += [f"has {listed(map(repr, others))} besides"] * bool(others)
    way = f"give all {len(expected)}" if missing else order
    raise ValueError(
        f"{name} {' and '.join(text) or 'repeats columns'}: the model was fitted on other columns; {way}, or rows "
        "without names where these are the same columns"
    )


def column_labels(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """The names of all columns; "column 0" and so on where there are none."""
    return tuple(names) if names else tuple(f"column {i}" for i in range(count))


def listed(items: Iterable[str], limit: int = 5, separator: str = ", ") -> str:
    """The first of these texts, and how many more there are."""
    texts = list(items)
    return separator.join(texts[:limit]) + (f" and {len(texts) - limit} more" if len(texts) > limit else "")
