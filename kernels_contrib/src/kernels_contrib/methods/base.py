"""The base of every fitted method: what a model is checked for, how it shows itself, and new rows through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from .stored import Stored

__all__ = ["FittedMethod"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedMethod(Stored):
    """What a method returns; its fields say what a file holds of it (``stored``)."""

    made_by: ClassVar[str]
    """The function that returns it, for the texts of errors."""

    @classmethod
    def of(cls, model: Any) -> Self:
        """The model, if it is one of these."""
        if not isinstance(model, cls):
            raise TypeError(f"model is a {type(model).__name__}; give what {cls.made_by} returned")
        return model

    def facts(self) -> list[str]:
        """What ``repr`` says."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self.facts())}>"
