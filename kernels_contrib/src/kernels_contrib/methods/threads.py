"""Equal bits at any number of threads of BLAS, whose own threads add up in another order than one of them does."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from fastkpca.base import parallel

P = ParamSpec("P")
T = TypeVar("T")


def one_blas_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function with BLAS limited to one thread: loops over tiles have ``n_threads``."""

    @wraps(function)
    def limited(*args: P.args, **options: P.kwargs) -> T:
        with parallel.blas_threads():
            return function(*args, **options)

    return limited
