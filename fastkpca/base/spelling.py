"""Names that are close to an unknown one: for the text of an error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], limit: int = 3, cutoff: float = 0.6) -> str:
    """ "did you mean 'gaussian'?" where a known name is close to this one, else ""; letters' case does not matter."""
    by_lower = {spelling.lower(): spelling for spelling in known}
    similar = difflib.get_close_matches(name.lower(), by_lower, n=limit, cutoff=cutoff)
    return f"did you mean {' or '.join(repr(by_lower[x]) for x in similar)}?" if similar else ""


def with_suggestion(text: str, name: str, known: Iterable[str]) -> str:
    """The text of an error, and behind it what may have been meant."""
    similar = did_you_mean(name, known)
    return f"{text} ({similar})" if similar else text
