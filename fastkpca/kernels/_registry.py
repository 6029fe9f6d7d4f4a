"""Kernels by name: a literal table of the built-in ones, the entry-point group for the rest, and a session's own.

Nothing is imported until a kernel is asked for by name, and a built-in name is found without looking at what is
installed. The functions over entry points are pure, so plugins are tested without installing them::

    read_plugins(entry points) -> entries, problems      what the installed distributions claim
    find(name, plugins, session) -> entry                which claim a name means; raises, never guesses
    load(entry) -> class                                 the import, and what a plugin has to fulfil
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import Any

from ..errors import PluginError, PluginWarning, UnknownKernelError
from ..protocol import API_VERSION, Kernel
from ._adapters import CallableKernel, ObjectKernel
from .combined import ProductKernel, ScaledKernel, SumKernel

__all__ = [
    "KernelEntry",
    "KernelTable",
    "get_kernel",
    "kernel_from_state",
    "kernel_state",
    "list_kernels",
    "register_kernel",
]

GROUP = "fastkpca.kernels"
OWN = "fastkpca"
DISABLE = "FASTKPCA_DISABLE_PLUGINS"
_SESSION = "(this session)"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")


@dataclass(frozen=True)
class KernelEntry:
    """One name in the registry, and what is known about it without importing it.

    Attributes
    ----------
    name : str
    value : str
        "module:attribute", as in the entry point.
    distribution, version, summary : str
        Of the distribution that brings it; for fastkpca's own kernels the summary is the kernel's.
    aliases : tuple of str
        Other names that mean the same kernel.
    """

    name: str
    value: str
    distribution: str
    version: str = ""
    summary: str = ""
    aliases: tuple[str, ...] = ()
    target: Any = field(default=None, repr=False, compare=False)
    """What ``register_kernel`` was given; None where the kernel is found by ``value``."""

    @property
    def qualified(self) -> str:
        return f"{self.distribution}:{self.name}"


# The same names stand as entry points in pyproject.toml, for independent readers; a test holds the two equal.
BUILTINS: Mapping[str, KernelEntry] = {
    name: KernelEntry(name, f"fastkpca.kernels.{value}", OWN, summary=summary, aliases=aliases)
    for name, value, aliases, summary in (
        ("linear", "linear:Linear", (), "x.y"),
        ("polynomial", "polynomial:Polynomial", ("poly",), "(scale x.y + offset)^degree"),
        ("gaussian", "gaussian:Gaussian", ("rbf",), "exp(-|x - y|^2 / (2 sigma^2))"),
        ("tanh", "tanh:Tanh", ("sigmoid",), "tanh(scale x.y + offset); not positive semidefinite"),
        ("precomputed", "precomputed:Precomputed", (), "a Gram matrix in place of X"),
    )
}
_RESERVED: Mapping[str, KernelEntry] = {
    name: entry for entry in BUILTINS.values() for name in (entry.name, *entry.aliases)
}


# What is installed ----------------------------------------------------------------------------------------------


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()  # PEP 503


def _describe(point: metadata.EntryPoint) -> tuple[str, str, str]:
    """Name, version and summary of the distribution behind an entry point, whatever state its metadata is in."""
    try:
        about = point.dist.metadata  # type: ignore[union-attr]
        return about["Name"] or "unknown", about["Version"] or "", about["Summary"] or ""
    except Exception:  # a broken METADATA of somebody else's must not break this listing
        return "unknown", "", ""


def read_plugins(points: Iterable[metadata.EntryPoint]) -> tuple[tuple[KernelEntry, ...], tuple[str, ...]]:
    """(entries, problems) of the kernels that distributions other than fastkpca claim, in the order of their names.

    The order of entry points depends on ``sys.path``; here it is by name and distribution. Claims on a built-in
    name, and names that could not be asked for, are left out and described in ``problems``.
    """
    entries, problems = [], []
    for point in points:
        distribution, version, summary = _describe(point)
        if _normal(distribution) == OWN:
            continue  # the literal table speaks for these
        if point.name in _RESERVED:
            problems.append(
                f"distribution {distribution} {version} claims the kernel name {point.name!r}, which is reserved for "
                f"fastkpca's own kernel {_RESERVED[point.name].name!r}; the claim is ignored"
            )
        elif not _NAME.fullmatch(point.name):
            problems.append(
                f"distribution {distribution} {version} registers a kernel under the name {point.name!r}, which is "
                "not a name (letters, digits, '_', '.', '-'); it is ignored"
            )
        else:
            entries.append(KernelEntry(point.name, point.value, distribution, version, summary))
    unique = sorted(set(entries), key=lambda e: (e.name, _normal(e.distribution), e.version, e.value))
    return tuple(unique), tuple(sorted(set(problems)))


def _plugins_disabled() -> bool:
    return os.environ.get(DISABLE, "").strip().lower() not in ("", "0", "false", "no")


# Scanning every distribution takes milliseconds, so it is done once per search path.
_scanned: dict[tuple[str, ...], tuple[tuple[KernelEntry, ...], tuple[str, ...]]] = {}


def _plugins(*, fresh: bool = False) -> tuple[tuple[KernelEntry, ...], tuple[str, ...]]:
    if _plugins_disabled():
        return (), ()
    path = tuple(sys.path)
    if fresh or path not in _scanned:
        _scanned.clear()
        _scanned[path] = read_plugins(metadata.entry_points(group=GROUP))
    return _scanned[path]


def _warn(problems: Sequence[str]) -> None:
    for problem in problems:
        warnings.warn(problem, PluginWarning, stacklevel=3)


# Which entry a name means ---------------------------------------------------------------------------------------


def find(name: str, plugins: Sequence[KernelEntry], session: Mapping[str, KernelEntry]) -> KernelEntry:
    """The entry that ``name`` ("name" or "distribution:name") means; raises where there is none or more than one."""
    distribution, colon, bare = name.rpartition(":")
    if not colon:
        if name in session:
            return session[name]
        if name in _RESERVED:
            return _RESERVED[name]
        claims = [entry for entry in plugins if entry.name == name]
    elif _normal(distribution) == OWN:
        claims = [_RESERVED[bare]] if bare in _RESERVED else []
    else:
        claims = [e for e in plugins if e.name == bare and _normal(e.distribution) == _normal(distribution)]
    if len(claims) == 1:
        return claims[0]
    if not claims:
        raise UnknownKernelError(_unknown(name, plugins, session))
    holders = sorted({entry.distribution for entry in claims})
    if len(holders) == 1:
        raise PluginError(
            f"distribution {holders[0]} registers the kernel name {claims[0].name!r} more than once "
            f"({', '.join(entry.value for entry in claims)}); its authors have to choose one"
        )
    found = ", ".join(f"{entry.distribution} {entry.version}".strip() for entry in claims)
    ways = " or ".join(repr(entry.qualified) for entry in claims)
    raise PluginError(
        f"the kernel name {claims[0].name!r} is claimed by {len(holders)} distributions ({found}); ask for {ways}, "
        "or uninstall one of them"
    )


def _unknown(name: str, plugins: Sequence[KernelEntry], session: Mapping[str, KernelEntry]) -> str:
    spellings = [*_RESERVED, *session, *(e.name for e in plugins), *(e.qualified for e in plugins)]
    by_lower = {spelling.lower(): spelling for spelling in spellings}
    bare = name.rpartition(":")[2]
    near: dict[str, None] = {}
    for attempt in (name.lower(), bare.lower()):
        near.update((by_lower[m], None) for m in difflib.get_close_matches(attempt, by_lower, n=3))
    text = f"no kernel is named {name!r}; "
    if near:
        text += f"did you mean {' or '.join(repr(m) for m in near)}? "
    text += "fastkpca.list_kernels() lists every name"
    if ":" in name and bare in _RESERVED:
        text += f" ({bare!r} is reserved for fastkpca's own kernel: another distribution's claim on it is ignored)"
    if _plugins_disabled():
        text += f" (kernels of other distributions are left out while {DISABLE} is set)"
    return text


# From entry to kernel -------------------------------------------------------------------------------------------

_loaded: dict[KernelEntry, type[Kernel]] = {}


def load(entry: KernelEntry) -> type[Kernel]:
    """Import the class that an entry names, and refuse a plugin that is not one of this protocol's version."""
    if entry in _loaded:
        return _loaded[entry]
    point = metadata.EntryPoint(entry.name, entry.value, GROUP)
    if entry.distribution == OWN:
        cls = point.load()
    else:
        who = f"kernel {entry.name!r} of distribution {entry.distribution} {entry.version}".rstrip()
        try:
            cls = point.load()
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"{who} cannot be imported from {entry.value!r}: {type(error).__name__}: {error}; "
                "reinstall it, or report this to its authors"
            ) from error
        _check_plugin(cls, who, entry.value)
    _loaded[entry] = cls
    return cls


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
            f"{who}: {cls.__name__} was written for api_version {version}, this fastkpca speaks {API_VERSION}; "
            f"upgrade {older}"
        )
    if cls.block is Kernel.block:
        raise PluginError(f"{who}: {cls.__name__} does not define block(X, Y), the one required method")


def _make(entry: KernelEntry, parameters: dict[str, Any]) -> Kernel:
    if entry.target is not None:
        return _from_object(entry.target, parameters)
    cls = load(entry)
    try:
        return cls(**parameters)
    except (TypeError, ValueError):
        raise  # about the parameters: the user's to mend
    except Exception as error:
        if entry.distribution == OWN:
            raise
        raise PluginError(
            f"kernel {entry.name!r} of distribution {entry.distribution} {entry.version}: "
            f"{cls.__name__}({', '.join(parameters)}) raised {type(error).__name__}: {error}"
        ) from error


def _kind(thing: Any) -> str:
    """What sort of kernel an object is: "kernel", "class", "object" (with block) or "callable"; TypeError if none."""
    if isinstance(thing, Kernel):
        return "kernel"
    has_block = callable(getattr(thing, "block", None))
    if isinstance(thing, type):
        if has_block:
            return "class"
    elif has_block:
        return "object"
    elif callable(thing):
        return "callable"
    text = (
        f"kernel is of type {type(thing).__name__}; give a name (fastkpca.list_kernels() lists them), a Kernel, "
        "an object with block(X, Y), or a function f(X, Y) that returns the (n, m) values for two tiles of rows"
    )
    if hasattr(thing, "__array__"):
        text += '; a Gram matrix goes in place of X, with the kernel "precomputed"'
    raise TypeError(text)


def _from_object(thing: Any, parameters: dict[str, Any]) -> Kernel:
    kind = _kind(thing)
    if kind == "kernel":
        if parameters:
            raise TypeError(
                f"kernel parameters ({', '.join(parameters)}) were given beside {thing!r}, which already has its own; "
                f"give them to {type(thing).__name__}(...), or pass the class or the name instead of the object"
            )
        return thing
    if kind == "class":
        made = thing(**parameters)
        return made if isinstance(made, Kernel) else ObjectKernel(object=made)
    if kind == "object":
        return _declare(ObjectKernel, thing, parameters)
    return _declare(CallableKernel, thing, parameters)


def _declare(adapter: type[CallableKernel | ObjectKernel], thing: Any, parameters: dict[str, Any]) -> Kernel:
    declarations = [name for name in adapter.parameters if name != adapter.slot]
    unknown = [name for name in parameters if name not in declarations]
    if unknown:
        raise TypeError(
            f"{thing!r} takes no kernel parameters here (given: {', '.join(unknown)}): bind them first, as in "
            f"functools.partial(f, {unknown[0]}=...); what may be declared beside it is {', '.join(declarations)}"
        )
    return adapter(**{adapter.slot: thing}, **parameters)


# What the user calls --------------------------------------------------------------------------------------------

_session: dict[str, KernelEntry] = {}
_session_lock = threading.RLock()


def get_kernel(kernel: str | Kernel | type | Callable[..., Any] | Any, **parameters: Any) -> Kernel:
    """The kernel that a name or an object means.

    Parameters
    ----------
    kernel : str, Kernel, class, object or callable
        A name ("gaussian", an alias, or "distribution:name"); a ``Kernel`` class or object; any object with
        ``block(X, Y)``; or a function f(X, Y) on tiles X (n, d) and Y (m, d) that returns the (n, m) kernel values.
    **parameters
        Of the kernel. For a function or an object without a Kernel class these are declarations:
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
        Not a kernel, an unknown parameter, or parameters beside a kernel object.

    Examples
    --------
    >>> get_kernel("gaussian", sigma=0.5)
    Gaussian(sigma=0.5)
    >>> get_kernel(lambda X, Y: X @ Y.T, positive_semidefinite=True).block(np.eye(2), np.eye(2)).trace()
    2.0
    """
    if not isinstance(kernel, str):
        return _from_object(kernel, parameters)
    with _session_lock:
        session = dict(_session)
    if kernel in session or kernel in _RESERVED:
        return _make(find(kernel, (), session), parameters)
    try:
        entry = find(kernel, _plugins()[0], session)
    except UnknownKernelError:
        # perhaps installed since the last scan
        plugins, problems = _plugins(fresh=True)
        _warn(problems)
        entry = find(kernel, plugins, session)
    return _make(entry, parameters)


def kernel_state(kernel: Kernel) -> dict[str, Any]:
    """What a model file says about its kernel; ``kernel_from_state`` makes it again.

    Kernels of other distributions go by their qualified name, which stays unambiguous whatever else is installed.
    Sums, scalings and products are described by their parts.

    Returns
    -------
    dict
        {"name", "parameters"}, or {"sum": [states]}, {"product": [states]}, {"factor", "kernel": state}.

    Raises
    ------
    ValueError
        No name leads to this kernel: it has to be registered, or come from an installed distribution.
    """
    if isinstance(kernel, ScaledKernel):
        return {"factor": kernel.factor, "kernel": kernel_state(kernel.kernel)}
    if isinstance(kernel, (SumKernel, ProductKernel)):
        return {kernel.word: [kernel_state(part) for part in kernel.parts]}
    cls = type(kernel)
    path = f"{cls.__module__}:{cls.__qualname__}"
    for entry in BUILTINS.values():
        if entry.value == path:
            return {"name": entry.name, "parameters": kernel.get_parameters()}
    with _session_lock:
        session = list(_session.values())
    for entry in session:
        if entry.target is cls:
            return {"name": entry.name, "parameters": kernel.get_parameters()}
        if entry.target is kernel:
            return {"name": entry.name, "parameters": {}}
        if isinstance(kernel, (CallableKernel, ObjectKernel)) and entry.target is kernel.wrapped:
            return {"name": entry.name, "parameters": kernel.declarations()}
    known = [entry for entry, loaded in _loaded.items() if loaded is cls]
    known += [entry for entry in _plugins()[0] if entry.value == path]
    if not known:
        raise ValueError(
            f"{kernel!r} cannot be written down by name; make it known with fastkpca.register_kernel(name, ...) here "
            f"and wherever the file is read, or install it as an entry point in the group {GROUP!r}"
        )
    return {"name": known[0].qualified, "parameters": kernel.get_parameters()}


def kernel_from_state(state: Mapping[str, Any]) -> Kernel:
    """The kernel that ``kernel_state`` described."""
    if "factor" in state:
        return ScaledKernel(factor=state["factor"], kernel=kernel_from_state(state["kernel"]))
    for cls in (SumKernel, ProductKernel):
        if cls.word in state:
            return cls(parts=tuple(kernel_from_state(part) for part in state[cls.word]))
    return get_kernel(state["name"], **state["parameters"])


class _Registration:
    """What ``register_kernel`` returns: as a context manager it takes the name back on leaving."""

    def __init__(self, entry: KernelEntry, before: KernelEntry | None):
        self._entry, self._before = entry, before

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        name = self._entry.name
        with _session_lock:
            if _session.get(name) is not self._entry:
                return  # overwritten since: not ours to take back
            if self._before is None:
                del _session[name]
            else:
                _session[name] = self._before


def register_kernel(name: str, kernel: Any, overwrite: bool = False) -> _Registration:
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
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot name a kernel; use letters, digits, '_', '.', '-', starting with a letter")
    if name in _RESERVED:
        raise ValueError(f"the kernel name {name!r} is reserved for fastkpca's own kernel; choose another name")
    _kind(kernel)
    doc = (getattr(kernel, "__doc__", None) or "").strip().partition("\n")[0]
    entry = KernelEntry(name, repr(kernel), _SESSION, summary=doc, target=kernel)
    with _session_lock:
        before = _session.get(name)
        if not overwrite:
            holders = [e.distribution for e in _plugins()[0] if e.name == name]
            if before is not None:
                holders.append("this session")
            if holders:
                raise ValueError(
                    f"the kernel name {name!r} is in use by {', '.join(holders)}; "
                    "choose another name, or pass overwrite=True"
                )
        _session[name] = entry
    return _Registration(entry, before)


class KernelTable(Sequence[KernelEntry]):
    """The rows of ``list_kernels``: a sequence of entries that prints as a table."""

    def __init__(self, entries: Iterable[KernelEntry]):
        self._entries = tuple(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: Any) -> Any:
        return self._entries[index]

    def __iter__(self) -> Iterator[KernelEntry]:
        return iter(self._entries)

    @property
    def names(self) -> list[str]:
        """How each row is asked for: the bare name, or "distribution:name" where two distributions share it."""
        bare = [entry.name for entry in self._entries]
        return [e.qualified if bare.count(e.name) > 1 and e.target is None else e.name for e in self._entries]

    def __repr__(self) -> str:
        heads = ("name", "aliases", "distribution", "version", "summary")
        rows = [
            (name, ", ".join(e.aliases), e.distribution, e.version, e.summary)
            for name, e in zip(self.names, self._entries)
        ]
        widths = [max(map(len, column)) for column in zip(heads, *rows)]
        lines = [heads, tuple("-" * width for width in widths), *rows]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def list_kernels() -> KernelTable:
    """Every kernel that ``get_kernel`` finds by name, without importing any of them.

    Returns
    -------
    KernelTable
        A sequence of entries with ``name``, ``aliases``, ``distribution``, ``version`` and ``summary``; prints as a
        table.

    Warns
    -----
    PluginWarning
        A distribution claims a reserved or impossible name; it is left out.
    """
    plugins, problems = _plugins(fresh=True)
    _warn(problems)
    with _session_lock:
        session = list(_session.values())
    version = metadata.version(OWN)
    own = [replace(entry, version=version) for entry in BUILTINS.values()]
    return KernelTable([*own, *plugins, *session])
