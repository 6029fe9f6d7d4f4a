"""Checks of single arguments: each returns its argument in the one form that the library uses, or raises an error that
says what was found and what to give."""

from __future__ import annotations

import math
import numbers
import operator
import re
import reprlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np

from .caching import cached_property
from .spelling import with_suggestion


def _whole(value: Any) -> int | None:
    """An int from anything that is a whole number and not a truth value, else None."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        pass
    number = as_float(value)
    return int(number) if number is not None and number.is_integer() else None


def is_number(value: object) -> TypeGuard[float]:
    """True if this is one real number: no truth value, text or array."""
    # float and int are real: named first, they are found fast
    return isinstance(value, (float, int, numbers.Real)) and not isinstance(value, (bool, np.bool_))


def as_float(value: object) -> float | None:
    """float64 of one real number, infinite beyond its range; None for what ``is_number`` refuses."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not is_number(value):
        return None
    try:
        return float(value)
    except OverflowError:  # a whole number, or a fraction of two, of hundreds of digits
        return math.inf if value > 0 else -math.inf


def _real(value: Any, name: str, need: str) -> float:
    number = as_float(value)
    if number is None:
        shown = repr(value)  # a whole array, perhaps
        shown = shown if len(shown) <= 60 else f"of type {type(value).__name__}"
        raise TypeError(f"{name} is {shown}; give {need}")
    if math.isnan(number):
        raise ValueError(f"{name} is nan; give {need}")
    return number


def check_c(c: Any, n_samples: int) -> int | float | None:
    """Number of components: an int in 1..n_samples, a fraction of the variance in (0, 1), or None for all.

    Raises
    ------
    TypeError, ValueError
        Anything else; 1.0 is refused because it may mean one component or all of the variance.
    """
    if c is None:
        return None
    need = "a whole number of components (c=5), a fraction of the variance between 0 and 1 (c=0.95), or None for all"
    if isinstance(c, (bool, np.bool_)):
        raise TypeError(f"c is {c!r}, a truth value; give {need}")
    try:
        whole: int | None = operator.index(c)
    except TypeError:
        value = _real(c, "c", need)
        if value == 1.0:
            raise ValueError(
                "c is 1.0, which may mean one component or 100 % of the variance; "
                "give c=1 for one component, c=None for all"
            ) from None
        if 0.0 < value < 1.0:
            return value
        whole = _whole(value)
    if whole is None:
        raise ValueError(f"c is {c!r}; give {need}")
    if whole < 1:
        raise ValueError(f"c is {c!r}; give {need}, at least one component")
    if whole > n_samples:
        raise ValueError(
            f"c is {whole}, but X has {n_samples} rows, which give at most {n_samples - 1} components "
            f"({n_samples} with center=False); give c of at most {n_samples - 1}, or None for all"
        )
    return whole


def check_count(value: Any, name: str, least: int = 1, most: int = sys.maxsize) -> int:
    """A whole number from ``least`` to ``most``: by default what an array can count."""
    need = f"a whole number, {least} or more"
    whole = _whole(value)
    if whole is None:
        raise TypeError(f"{name} is {value!r}; give {need}")
    if whole < least:
        raise ValueError(f"{name} is {whole}; give {need}")
    if whole > most:
        raise ValueError(f"{name} is {reprlib.repr(whole)}; give {need}, and {most} at most")
    return whole


MAX_DRAWS = 1_000_000
"""Permutations, resamples or random starts of one call: each is a computation of its own, and more take days."""


def check_draws(value: Any, name: str, least: int = 1) -> int:
    """Number of permutations, resamples or random starts, ``MAX_DRAWS`` at most."""
    return check_count(value, name, least, MAX_DRAWS)


def check_max_features(value: Any, name: str, c: int | float | None, n_samples: int) -> int | None:
    """Largest number of features, checked against the numbers of components and rows; None stays None."""
    if value is None:
        return None
    most = check_count(value, name)
    if isinstance(c, int) and most < c:
        raise ValueError(f"{name} is {most}, which gives at most {most} components, and c={c}; raise it")
    if most > n_samples:
        raise ValueError(
            f"{name} is {most}, and X has {n_samples} rows, which as many features describe completely; give at most "
            "that many, or leave it out"
        )
    return most


def check_numbers(values: Any, name: str, need: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """Finite real numbers in a float64 array of that shape, None for any length; ``need`` says what to give."""
    try:
        array = np.asarray(values)
    except Exception as error:  # ragged; or an object that has __array__ but refuses
        raise ValueError(f"{name} cannot be made an array ({error}); give {need}") from error
    if np.ma.is_masked(values):
        mask = np.ma.getmaskarray(values)
        raise ValueError(f"{name} has {np.count_nonzero(mask)} masked entries ({_first(mask)}); give {need}")
    if array.dtype.kind not in "fiub":
        found = f"of type {type(values).__name__}" if array.ndim == 0 else f"an array of the type {array.dtype}"
        raise TypeError(f"{name} is {found}; give {need}")
    if array.ndim != len(shape) or any(due not in (None, n) for n, due in zip(array.shape, shape)):
        raise ValueError(f"{name} has shape {array.shape}; give {need}")
    with np.errstate(over="ignore"):  # of a long double: refused below
        array = array.astype(np.float64, copy=not array.flags.aligned)
    if not (finite := np.isfinite(array)).all():
        raise ValueError(f"{name} contains NaN or infinity ({_first(~finite)}); give {need}")
    return array


def _first(where: np.ndarray) -> str:
    return "first at " + ", ".join(f"{word} {i}" for word, i in zip(("row", "column"), np.argwhere(where)[0]))


def check_list(values: Any, name: str, need: str) -> list:
    """The entries of a list or of anything like one, but not the letters of a text."""
    if isinstance(values, (str, bytes, memoryview)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is {reprlib.repr(values)}; give {need}")
    return list(values)


def check_share(value: Any, name: str, need: str = "a number between 0 and 1, as in 0.95") -> float:
    """A number between 0 and 1; ``need`` says what to give."""
    share = _real(value, name, need)
    if not 0.0 < share < 1.0:
        raise ValueError(f"{name} is {value!r}; give {need}")
    return share


def check_tol(tol: Any, name: str = "tol") -> float:
    """A relative accuracy, 1e-100 <= tol < 1: products and quotients of smaller ones leave the range of float64."""
    need = "a number between 0 and 1, as in 1e-6: the width of the eigenvalue intervals relative to the largest"
    value = check_share(tol, name, need)
    if value < 1e-100:
        raise ValueError(f"{name} is {tol!r}; give 1e-100 or more: float64 reaches nothing below about 1e-15")
    return value


def check_failure_probability(value: Any, *, guaranteed: bool = False) -> float:
    """Probability with which bounds may fail, 1e-100 to 0.5: 1e-6 in place of None; 0.0 where none may."""
    name = "failure_probability"
    if guaranteed:
        if value is not None:
            raise ValueError(f"guaranteed=True allows no bound that may fail, and {name} is {value!r}; drop one")
        return 0.0
    if value is None:
        return 1e-6
    need = "a number from 1e-100 to 0.5, as in 1e-6: how rarely a bound that rests on random numbers may fail"
    probability = _real(value, name, need)
    if not 1e-100 <= probability <= 0.5:
        hint = "; bounds that never fail are guaranteed=True" if probability == 0.0 else ""
        raise ValueError(f"{name} is {value!r}; give {need}{hint}")
    return probability


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


def check_memory_limit(limit: Any) -> int | None:
    """Bytes from a number of bytes or a text like "500MB" (10^6) or "2GiB" (2^30); None stays None, the plan's own."""
    need = 'bytes as a whole number, or a text like "500MB" or "2GiB"'
    if limit is None:
        return None
    if isinstance(limit, str):
        match = _SIZE.fullmatch(limit)
        if not match:
            raise ValueError(f"memory_limit is {limit!r}; give {need}")
        size = int(min(float(match[1]) * _UNITS[(match[2] or "").lower()], sys.maxsize))
    else:
        whole = _whole(limit)
        if whole is None:
            raise TypeError(f"memory_limit is {limit!r}; give {need}")
        size = min(whole, sys.maxsize)
    if size < 1:
        raise ValueError(f"memory_limit is {limit!r}; give {need}, more than nothing")
    return size


def check_rng(rng: Any) -> np.random.Generator:
    """A Generator as SPEC 7 has it: from None (fresh entropy), an int, a SeedSequence or bit generator, or itself."""
    need = "an int, a numpy.random.Generator or SeedSequence, or None for a different result every time"
    generators: Any = (np.random.Generator, np.random.SeedSequence, np.random.BitGenerator)
    seeds: Any = (int, numbers.Integral, np.ndarray, Sequence)  # int is one: the first is found fast
    refused = (bool, np.bool_, str, bytes)
    if rng is not None and (isinstance(rng, refused) or not isinstance(rng, seeds + generators)):
        hint = "; numpy.random.default_rng(seed) replaces RandomState" * isinstance(rng, np.random.RandomState)
        raise TypeError(f"rng is {rng!r}; give {need}{hint}")
    try:
        return np.random.default_rng(rng)
    except (ValueError, TypeError) as error:
        raise type(error)(f"rng is {rng!r} ({error}); give {need}") from error


class Randomness:
    """The Generator of a call's ``rng``, checked now; made of a seed when it is first asked for: few rows need none."""

    def __init__(self, rng: Any):
        self._rng = rng if type(rng) is int and rng >= 0 else check_rng(rng)

    @cached_property
    def generator(self) -> np.random.Generator:
        return check_rng(self._rng)


def check_name(value: object, argument: str, needed: str) -> None:
    """Raise TypeError for a name that is no string; ``needed`` says what to give."""
    if not isinstance(value, str):
        raise TypeError(f"{argument} is {value!r}; give {needed}")


def check_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """One of a few words."""
    if isinstance(value, str) and value in choices:
        return value
    text = f"{name} is {value!r}; give one of {', '.join(map(repr, choices))}"
    if not isinstance(value, str):
        raise TypeError(text)
    raise ValueError(with_suggestion(text, value, choices))


def check_flag(value: Any, name: str, need: str = "True or False") -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}; give {need}")
    return bool(value)
