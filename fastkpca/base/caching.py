"""Properties that are computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class cached_property(Generic[T]):
    """Descriptor like ``functools.cached_property``, without a lock.

    ``functools.cached_property`` of Python 3.11 holds one lock for all instances of a class while it computes: threads
    wait for each other, and a child that is forked meanwhile waits for ever. Here two threads at most compute the same
    value.
    """

    def __init__(self, compute: Callable[[Any], T]):
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> T:
        if instance is None:  # of the class: for documentation, which asks no type checker
            return self  # type: ignore[return-value]
        # not a data descriptor: from now on Python finds the value in the instance first
        return instance.__dict__.setdefault(self.name, self.compute(instance))
