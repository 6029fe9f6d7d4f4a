"""Kernels by name: a literal table of the built-in ones, the entry-point group for others, and a session's own.

``fastkpca.base.plugins`` reads, finds and loads names. This module adds the table of kernels, the requirements on a
class, objects and functions in the place of a name, and the origin of a kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import protocol
from ..base.checks import check_flag
from ..base.plugins import DISTRIBUTION, NAME, Entry, Group, Table
from ..base.protocol import API_VERSION
from ..errors import KernelParameterError, PluginError, UnknownKernelError
from .adapters import CallableKernel, ObjectKernel
from .columns import listed_columns
from .kernel import ColumnKernel, Kernel
from .objects import noted

GROUP = "fastkpca.kernels"
_SESSION = "(this session)"

KernelEntry = Entry
KernelTable = Table

# The same names stand as entry points in pyproject.toml, for independent readers; a test holds the two equal.
BUILTINS: Mapping[str, KernelEntry] = {
    name: KernelEntry(name, f"fastkpca.kernels.{value}", DISTRIBUTION, summary=summary, aliases=aliases)
    for name, value, aliases, summary in (
        ("linear", "linear:Linear", (), "x.y"),
        ("polynomial", "polynomial:Polynomial", ("poly",), "(scale x.y + offset)^degree"),
        ("gaussian", "gaussian:Gaussian", ("rbf",), "exp(-|x - y|^2 / (2 sigma^2))"),
        ("tanh", "tanh:Tanh", ("sigmoid",), "tanh(scale x.y + offset); not positive semidefinite"),
        ("precomputed", "precomputed:Precomputed", (), "a Gram matrix in place of X"),
    )
}


def _check_plugin(cls: Any, who: str, value: str) -> None:
    if not (isinstance(cls, type) and issubclass(cls, Kernel)):
        raise PluginError(f"{who}: {value!r} is {cls!r}; an entry point names a subclass of fastkpca.kernels.Kernel")
    # An inherited number would always match: only a literal in the class itself says what it was written for.
    version = cls.__dict__.get("api_version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise PluginError(
            f"{who}: {cls.__name__} has api_version {version!r} in its own body; "
            f"its authors write the literal for which it was made, as in `api_version = {API_VERSION}`"
        )
    if version != API_VERSION:
        older = "the plugin" if version < API_VERSION else "fastkpca"
        raise PluginError(
            f"{who}: {cls.__name__} was written for api_version {version}, this fastkpca supports {API_VERSION}; "
            f"upgrade {older}"
        )
    if cls.block is Kernel.block:
        raise PluginError(f"{who}: {cls.__name__} does not define block(X, Y), the one required method")


_ELSEWHERE = {
    "quadratic": "'polynomial' with degree=2",
    "cubic": "'polynomial' with degree=3",
    "quartic": "'polynomial' with degree=4",
    "radial": "'rbf'",
    "squared_exponential": "'gaussian' with the length scale as sigma",
    "gauss": "'gaussian'",
    "normal": "'gaussian'",
    "dot": "'linear'",
    "vanilladot": "'linear'",
    "rbfdot": "'rbf' with its sigma as gamma",
    "polydot": "'polynomial'",
    "tanhdot": "'tanh'",
    "laplacedot": "'matern' with nu=0.5 and length_scale=1/sigma, of kernels_contrib,",
    "mlp": "'tanh'",
    "neural": "'tanh'",
}
"""Names of kernels in MATLAB (and its toolboxes), R and scikit-learn that are no misspellings of ours."""


def _inspect(entry: KernelEntry) -> dict[str, Any]:
    kernel = make(entry, {})
    doc = "" if entry.distribution == DISTRIBUTION else (vars(type(kernel)).get("__doc__") or "").strip()
    return {
        "summary": doc.partition("\n")[0] if doc and entry.target is None else entry.summary,
        "parameters": kernel.get_parameters(),
        "capabilities": _capabilities(kernel),
    }


KERNELS = Group(GROUP, "kernel", BUILTINS, UnknownKernelError, _check_plugin, _inspect, _ELSEWHERE)


def make(entry: KernelEntry, parameters: dict[str, Any]) -> Kernel:
    """The kernel of an entry, with these parameters."""
    if entry.target is not None:
        return _from_object(entry.target, parameters)
    cls = KERNELS.load(entry)
    if entry.distribution == DISTRIBUTION:
        return cls(**parameters)
    call = f"{cls.__name__}({', '.join(parameters)})"
    try:
        return cls(**parameters)
    except (TypeError, ValueError) as error:  # about the parameters: the user's to mend
        error.add_note(f"raised by {KERNELS.who(entry)}, {call}")
        raise
    except Exception as error:
        raise PluginError(f"{KERNELS.who(entry)}: {call} raised {type(error).__name__}: {error}") from error


def _adapter(thing: Any) -> type[CallableKernel | ObjectKernel] | None:
    """The class that makes a kernel of the object; None where that is a kernel, or a class of such."""
    cls = thing if isinstance(thing, type) else type(thing)
    if issubclass(cls, Kernel) and cls.block is Kernel.block:
        raise TypeError(f"{cls.__name__} defines no block(X, Y), and so is no kernel; a kernel has to define it")
    if callable(getattr(thing, "block", None)):
        return None if isinstance(thing, (Kernel, type)) else ObjectKernel
    if callable(thing) and not isinstance(thing, type):
        return CallableKernel
    text = (
        f"kernel is of type {type(thing).__name__}; give a name (fastkpca.list_kernels() lists them), a Kernel, "
        "an object with block(X, Y), or a function f(X, Y) that returns the (n, m) values for two tiles of rows; "
        "it comes before the number of components, as in kpca(X, 'gaussian', 5)"
    )
    if hasattr(thing, "__array__"):
        text += '; a Gram matrix goes in place of X, with the kernel "precomputed"'
    raise TypeError(text)


def _from_object(thing: Any, parameters: dict[str, Any]) -> Kernel:
    adapter = _adapter(thing)
    if adapter is not None:
        return adapter.declared(thing, parameters)
    if isinstance(thing, type):
        with noted(
            f"raised by the constructor of the kernel class {thing.__qualname__}; what is declared of a kernel "
            "(positive_semidefinite and so on) is an attribute of the class, or stands beside an object of it"
        ):
            made = thing(**parameters)
        return made if isinstance(made, Kernel) else ObjectKernel(object=made)
    if parameters:
        advice = f"give them to {type(thing).__name__}(...), or pass the class or the name instead of the object"
        if thing.map_parts():
            advice = "give them to the kernels that it is made of"
        raise TypeError(
            f"kernel parameters ({', '.join(parameters)}) were given beside {thing!r}, which already has its own; "
            + advice
        )
    return thing


# Public functions -----------------------------------------------------------------------------------------------

SESSION: dict[str, KernelEntry] = {}
"""Kernels registered in this session, by name."""


def get_kernel(kernel: str | Kernel | type | Callable[..., Any] | Any, **parameters: Any) -> Kernel:
    """The kernel that a name or an object means.

    Parameters
    ----------
    kernel : str, Kernel, class, object or callable
        A name ("gaussian", an alias, or "distribution:name"); a ``Kernel`` class or object; any object with
        ``block(X, Y)``; or a function f(X, Y) on tiles X (n, d) and Y (m, d) that returns the (n, m) kernel values.
    **parameters
        Parameters of the kernel. For a function or an object without a Kernel class these are declarations:
        ``positive_semidefinite=True``, ``translation="kernel"``, ``thread_safe=False``.

    Returns
    -------
    Kernel

    Raises
    ------
    UnknownKernelError
        No kernel of that name; near matches are named.
    PluginError
        A kernel from outside cannot be imported, was written for another version of the protocol, or its name is
        claimed by two distributions.
    KernelParameterError
        A parameter is out of range.
    TypeError
        Not a kernel, an unknown parameter, or parameters together with a kernel object.

    Examples
    --------
    >>> get_kernel("gaussian", sigma=0.5)
    Gaussian(sigma=0.5)
    >>> get_kernel("rbf", gamma=0.5)
    Gaussian(sigma=1.0)
    >>> get_kernel(lambda X, Y: X @ Y.T, positive_semidefinite=True).positive_semidefinite
    True
    """
    if not isinstance(kernel, str):
        return _from_object(kernel, parameters)
    return make(KERNELS.lookup(kernel, SESSION), parameters)


def on_columns(kernel: Any, columns: Any, **parameters: Any) -> Kernel:
    """A kernel that sees some columns of the rows only.

    Kernels on groups of columns add up and multiply like any others: ``on_columns("gaussian", first) + 0.5 *
    on_columns("linear", second)``. Groups may overlap, and columns in no group count in nothing.

    Parameters
    ----------
    kernel : str, Kernel, object with ``block``, or callable
    columns : int, str, or sequence of these, or array of bool (d,)
        Numbers of columns, from zero; or their names, where the rows are a data frame, an Arrow table or a file with
        names. Each at most once.
    **parameters
        Of the kernel. What is left out is found on these columns (the median heuristic).

    Returns
    -------
    ColumnKernel

    Raises
    ------
    TypeError, KernelParameterError
        There are no columns, or one comes twice; numbers and names are mixed. Names that the rows do not have, and
        numbers beyond them, are found when the kernel is used.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> kernel = fk.on_columns("gaussian", [0, 1, 2]) + 0.5 * fk.on_columns("linear", [3, 4])
    >>> fk.kpca(X, kernel, 2).score.shape
    (200, 2)
    """
    made = ColumnKernel(kernel=get_kernel(kernel, **parameters), columns=listed_columns(columns))
    mask = np.asarray(columns, dtype=object)
    if mask.ndim == 1 and np.asarray(mask[0]).dtype.kind == "b":
        made.__dict__["mask_length"] = len(mask)
    return made


def register_kernel(name: str, kernel: Any, overwrite: bool = False) -> ExitStack:
    """Make a kernel known by name for this session, or for a ``with`` block.

    Parameters
    ----------
    name : str
        Letters, digits, '_', '.', '-'. The names of fastkpca's own kernels are reserved.
    kernel : Kernel class or object, object with ``block``, or callable on tiles
        As for ``get_kernel``.
    overwrite : bool, default False
        Take the name over where it is in use, in this session or by another distribution.

    Returns
    -------
    context manager
        Ignore it to keep the registration; ``with register_kernel(...):`` takes it back, and restores what the name
        meant before.

    Raises
    ------
    ValueError
        The name is reserved, in use, or not a name.
    TypeError
        ``kernel`` is not something that ``get_kernel`` takes.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot name a kernel; use letters, digits, '_', '.', '-', starting with a letter")
    check_flag(overwrite, "overwrite")
    if name in KERNELS.reserved:
        raise ValueError(f"the kernel name {name!r} is reserved for fastkpca's own kernel; choose another name")
    _adapter(kernel)
    doc = (getattr(kernel, "__doc__", None) or "").strip().partition("\n")[0]
    entry = KernelEntry(name, repr(kernel), _SESSION, summary=doc, target=kernel)
    before = {name: SESSION[name]} if name in SESSION else {}
    holders = [e.distribution for e in KERNELS.plugins() if e.name == name] + ["this session"] * len(before)
    if holders and not overwrite:
        raise ValueError(
            f"the kernel name {name!r} is in use by {', '.join(holders)}; choose another name, or pass overwrite=True"
        )
    SESSION[name] = entry

    def take_back() -> None:
        if SESSION.get(name) is entry:  # else overwritten since: not ours to take back
            del SESSION[name]
            SESSION.update(before)

    registration = ExitStack()
    registration.callback(take_back)
    return registration


def list_kernels(load: bool = False) -> KernelTable:
    """Every kernel that ``get_kernel`` finds by name.

    Parameters
    ----------
    load : bool, default False
        False: no kernel is imported; the first line of its docstring is read from its source. True: each is imported,
        and the table also shows its parameters and what it offers, or, where that fails, why; a broken plugin leaves
        the others as they are.

    Returns
    -------
    KernelTable
        A sequence of entries with ``name``, ``aliases``, ``distribution``, ``version`` and ``summary``, and with
        ``load=True`` also ``state`` ("loaded" or "failed"), ``error``, ``parameters`` (name -> default) and
        ``capabilities``; prints as a table.

    Warns
    -----
    PluginWarning
        A distribution claims a reserved name, or its entry points are damaged; these are left out.
    """
    return KERNELS.listing(load, list(SESSION.values()))


def _capabilities(kernel: Kernel) -> tuple[str, ...]:
    cls = type(kernel)
    capabilities = {
        "positive semidefinite": bool(kernel.positive_semidefinite),
        f"translation={kernel.translation}": kernel.translation is not None,
        "thread-safe" if kernel.thread_safe else "not thread-safe": True,
        "feature maps": cls.feature_maps is not Kernel.feature_maps,
        "summations": cls.summations is not Kernel.summations,
        "compiled tiles": cls.compiled_tile is not Kernel.compiled_tile,
        "entry error": cls.entry_error is not Kernel.entry_error,
    }
    return tuple(name for name, offered in capabilities.items() if offered)


def installed_entries(cls: type) -> list[KernelEntry]:
    """Entries of other distributions for a class: under its own module, or under one that re-exports it."""

    def names(entry: KernelEntry) -> bool:
        module, _, attribute = entry.value.partition(":")
        return vars(sys.modules.get(module, object)).get(attribute) is cls

    return [entry for entry in KERNELS.plugins() if names(entry)]


# Origin of a kernel -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Origin:
    """Owner of a kernel: ``who`` for the text of an error; ``installed``: by an entry point of a distribution.

    Errors raised in a call into the kernel name the owner.
    """

    who: str
    installed: bool

    def call(self, owner: Any, method: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """function(*arguments, **options), which is ``method`` of ``owner``."""
        try:
            return function(*arguments, **options)
        except (KernelParameterError, PluginError, MemoryError):
            raise  # the user's to mend, named already, or nobody's fault
        except (Exception, SystemExit) as error:
            text = self.text(owner, method, arguments)
            if not self.installed:  # the user's own code: the type stays what it was
                if not isinstance(owner, (CallableKernel, ObjectKernel)):
                    error.add_note(f"raised by {text}")
                raise
            raise PluginError(
                f"{text} raised {type(error).__name__}: {error}; report this to its authors (where it fails only with "
                "several threads, n_threads=1 helps, and the kernel must say thread_safe = False)"
            ) from error

    def text(self, owner: Any, method: str, arguments: Sequence[Any]) -> str:
        shapes = [str(x.shape) for x in arguments if isinstance(x, np.ndarray)]
        where = f" on shape{'s' * (len(shapes) > 1)} {' and '.join(shapes)}" if shapes else ""
        return f"{self.who}: {type(owner).__name__}.{method}{where}"


def origin(kernel: protocol.Kernel) -> Origin | None:
    """Origin of a kernel, by its class; None for fastkpca's own."""
    cls = type(kernel)
    if isinstance(kernel, (CallableKernel, ObjectKernel)):
        thing = kernel.wrapped
        cls = thing if callable(thing) and hasattr(thing, "__qualname__") else type(thing)
    elif cls.__module__.partition(".")[0] == DISTRIBUTION:
        return None
    label = f"{cls.__module__}.{getattr(cls, '__qualname__', cls)}"
    for entry in list(SESSION.values()):
        if entry.target is kernel or entry.target is cls or entry.target is getattr(kernel, "wrapped", kernel):
            return Origin(f"kernel {entry.name!r} registered in this session ({label})", False)
    entries = installed_entries(cls)
    if entries:
        return Origin(KERNELS.who(entries[0]), True)
    return Origin(f"kernel {label} (of no installed distribution)", False)
