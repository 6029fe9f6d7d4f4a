"""Properties that are computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """As ``functools.cached_property``, without a lock.

    That of Python 3.11 holds one lock for all instances of a class while it computes: threads wait for each other, and
    a child that is forked meanwhile waits for ever. Here two threads at most compute the same value.
    """

    def __init__(self, compute: Callable[[Any], T]):
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        # not a data descriptor: from now on Python finds the value before it looks here
        return instance.__dict__.setdefault(self.name, self.compute(instance))
