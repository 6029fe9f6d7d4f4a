"""Methods by name: what other distributions build on kernel products and feature maps (KLDA and the like).

A method is a plain callable in the entry-point group ``fastkpca.methods``. fastkpca has none of its own: kpca, gram and
features are what they build on. They are found as kernels are: lazily, with reserved names, "distribution:name" where
two distributions share one, and near matches in the error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import PluginError, UnknownMethodError
from .checks import check_name
from .plugins import Entry, Group, Table

GROUP = "fastkpca.methods"


def _check(thing: Any, who: str, value: str) -> None:
    if not callable(thing):
        raise PluginError(f"{who}: {value!r} is {thing!r}; an entry point names a function or class to call")


def _inspect(entry: Entry) -> dict[str, Any]:
    doc = (inspect.getdoc(_METHODS.load(entry)) or "").partition("\n")[0]
    return {"summary": doc or entry.summary}


_METHODS = Group(GROUP, "method", {}, UnknownMethodError, _check, _inspect)


def get_method(name: str) -> Callable[..., Any]:
    """The method of that name, a plain callable.

    Parameters
    ----------
    name : str
        As in ``list_methods()``, or "distribution:name".

    Returns
    -------
    callable
        Such as ``klda(X, y, kernel, c)``.

    Raises
    ------
    UnknownMethodError
        No method of that name; near matches are named.
    PluginError
        It cannot be imported, is not callable, or its name is claimed by two distributions.

    Examples
    --------
    >>> import fastkpca as fk
    >>> fk.get_method("klda").__name__
    'klda'
    """
    check_name(name, "name", "the name of a method (fastkpca.list_methods() lists them)")
    return _METHODS.load(_METHODS.lookup(name, {}))


def list_methods(load: bool = False) -> Table:
    """Every method that ``get_method`` finds by name.

    Parameters
    ----------
    load : bool, default False
        False: nothing is imported; the summary of each is the first line of its docstring, read from its source. True:
        each method is, and ``state`` and ``error`` say how that went.

    Returns
    -------
    Table
        A sequence of entries with ``name``, ``distribution``, ``version`` and ``summary``; prints as a table.
    """
    return _METHODS.listing(load)
