"""Kernels in model files: the description of a kernel, and the kernel made from it, imported only where allowed."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import numpy as np

from ..base import protocol
from ..base.checks import check_list, check_name
from ..base.files import MOST_HEADER
from ..base.plugins import DISTRIBUTION, Entry, normalized
from ..base.stored import Record, refusing
from ..errors import PluginError, PluginWarning, UnknownKernelError, warn_caller
from .adapters import CallableKernel, ObjectKernel
from .kernel import ColumnKernel, Kernel, ProductKernel, ScaledKernel, SumKernel
from .registry import BUILTINS, GROUP, KERNELS, SESSION, installed_entries, make


def kernel_state(kernel: protocol.Kernel) -> dict[str, Any]:
    """Description of a kernel in a model file; ``kernel_from_state`` makes the kernel again.

    Kernels of other distributions have their qualified name, which no other installation can make ambiguous.
    Sums, scalings and products are described by their parts.

    Returns
    -------
    dict
        {"name", "parameters"}, with the "version" of another distribution; or {"sum": [states]}, {"product": [states]},
        {"factor", "kernel": state}; or {"columns", "widths", "kernel": state}; or {"objects": JSON, "kernel": state}.

    Raises
    ------
    ValueError
        No name leads to this kernel: it has to be registered, or come from an installed distribution.
    """
    kernel = kernel.unguarded()
    if (listed := kernel.listed()) is not None:
        return {"objects": _objects_as_text(listed[1]), "kernel": kernel_state(listed[0])}
    if isinstance(kernel, ScaledKernel):
        return {"factor": kernel.factor, "kernel": kernel_state(kernel.kernel)}
    if isinstance(kernel, ColumnKernel):
        lists = {"columns": list(kernel.columns), "widths": list(kernel.widths)}
        return lists | {"kernel": kernel_state(kernel.kernel)}
    if isinstance(kernel, (SumKernel, ProductKernel)):
        return {kernel.word: [kernel_state(part) for part in kernel.parts]}
    cls = type(kernel)
    path = f"{cls.__module__}:{cls.__qualname__}"
    for entry in (*BUILTINS.values(), *SESSION.values()):
        if entry.target is cls or entry.value == path:
            return {"name": entry.name, "parameters": kernel.get_parameters()}
        if entry.target is kernel:
            return {"name": entry.name, "parameters": {}}
        if isinstance(kernel, (CallableKernel, ObjectKernel)) and entry.target is kernel.wrapped:
            return {"name": entry.name, "parameters": kernel.declarations()}
    known = installed_entries(cls)
    if not known:
        raise ValueError(
            f"{kernel!r} cannot be written down by name; make it known with fastkpca.register_kernel(name, ...) here "
            f"and wherever the file is read, or install it as an entry point in the group {GROUP!r}"
        )
    return {"name": known[0].qualified, "parameters": kernel.get_parameters(), "version": known[0].version}


def _objects_as_text(objects: list) -> str:
    """The objects as JSON; ValueError for the first that would not come back as it is."""
    for i, thing in enumerate(objects):
        try:
            is_plain = json.loads(json.dumps(thing)) == thing
        except (TypeError, ValueError, RecursionError):
            is_plain = False
        if not is_plain:
            raise ValueError(
                f"object {i} that the model was made of, a {type(thing).__name__}, is none that a model file can hold: "
                "these are strings, numbers, and lists and dicts of them; keep the model by pickle, or describe the "
                "objects so"
            )
    text = json.dumps(objects)
    if len(json.dumps(text)) > MOST_HEADER:
        raise ValueError(
            f"the objects that the model was made of take {len(text) / 1e6:.3g} MB, and a model file holds "
            f"{MOST_HEADER / 1e6:.3g} MB of such; keep the model by pickle"
        )
    return text


def kernel_from_state(state: Any, *, plugins: bool | str | Collection[str] = False) -> Kernel:
    """The kernel that ``kernel_state`` described, as read from a file.

    Parameters
    ----------
    state : dict
    plugins : bool, str or collection of str, default False
        Whose kernels may be imported: False: fastkpca's own and those registered in this session; True: any that is
        installed; or the distributions, as in ``["fastkpca-kernels-contrib"]`` or ``["distribution:kernel"]``.

    Raises
    ------
    ModelFileError
        It describes no kernel, one that is not allowed, or one that is not known here.
    PluginError
        A kernel that was allowed cannot be imported.

    Warns
    -----
    PluginWarning
        Another version of the kernel's distribution is installed than the one that wrote the file.
    """
    return _restored(state, _allowed(plugins))


def _allowed(plugins: bool | str | Collection[str]) -> bool | frozenset[str]:
    """``plugins`` of ``load``, checked: True or False, or a set of distributions and qualified names, normalised."""
    if isinstance(plugins, (bool, np.bool_)):
        return bool(plugins)
    need = "True, False, or the distributions whose kernels may be imported, as in ['fastkpca-kernels-contrib']"
    names = [plugins] if isinstance(plugins, str) else check_list(plugins, "plugins", need)
    for name in names:
        check_name(name, "plugins", need)
    return frozenset(map(_normal_name, names))


def _normal_name(name: str) -> str:
    distribution, colon, kernel = name.partition(":")
    return normalized(distribution) + colon + kernel


def _restored(state: Any, allowed: bool | frozenset[str]) -> Kernel:
    record = Record(state, {}, "the kernel")
    for cls in (SumKernel, ProductKernel):
        if cls.word in record.header:
            record.keys((cls.word,))
            parts = tuple(_restored(part, allowed) for part in record.list(cls.word))
            with refusing("the kernel"):
                return cls(parts=parts)
    if "kernel" in record.header:
        kernel = _restored(record.get("kernel"), allowed)
        with refusing("the kernel"):
            return _made_of_one(record, kernel)
    record.keys(("name", "parameters"), ("version",))
    name, version = record.text("name"), record.text("version") if "version" in record.header else ""
    parameters = dict(Record(record.get("parameters"), {}, "the kernel's parameters").header)
    entry = _allowed_entry(record, name, version, allowed)
    if entry.target is None:
        KERNELS.load(entry)  # a distribution that is broken is not the file's fault
    with refusing(f"the kernel {name!r}"):
        kernel = make(entry, parameters)
        if type(kernel) is ColumnKernel:
            raise record.refuse("widths of columns belong beside 'columns', and in its parameters give a number")
        if entry.target is None and set(parameters) != set(kernel.get_parameters()):
            raise record.refuse(f"{name!r} takes the parameters {', '.join(kernel.get_parameters()) or 'none'}")
    return kernel


def _made_of_one(record: Record, kernel: Kernel) -> Kernel:
    if "factor" in record.header:
        record.keys(("factor", "kernel"))
        return ScaledKernel(factor=record.number("factor", above=0.0), kernel=kernel)
    if "objects" in record.header:
        record.keys(("objects", "kernel"))
        objects = Record({"all": json.loads(record.text("objects"))}, {})
        return kernel.bind(objects.list("all"))[0]
    record.keys(("columns", "widths", "kernel"))
    columns, widths = tuple(record.list("columns")), tuple(record.list("widths"))
    if not (all(type(x) is int for x in columns) and all(type(x) is float for x in widths)):
        raise record.refuse("its columns and widths are not lists of numbers")
    return ColumnKernel(kernel=kernel, columns=columns, widths=widths)


def _allowed_entry(record: Record, name: str, version: str, allowed: bool | frozenset[str]) -> Entry:
    shown = repr(name[:100])
    try:
        entry = KERNELS.lookup(name, SESSION)
    except UnknownKernelError as error:
        distribution, colon, _ = name.rpartition(":")
        release = f"{distribution} {version}".rstrip()
        how = f"install {release[:100]}" if colon else "register it first: fastkpca.register_kernel(name, ...)"
        raise record.refuse(f"{shown} is not known here; {how} ({str(error)[:300]})") from error
    except PluginError as error:
        raise record.refuse(f"{shown}: {str(error)[:300]}") from error
    if entry.target is not None or entry.distribution == DISTRIBUTION:
        return entry
    names = {normalized(entry.distribution), _normal_name(entry.qualified)}
    if allowed is not True and not (isinstance(allowed, frozenset) and allowed & names):
        wrote = f"written with {entry.distribution} {version}, " if version and version != entry.version else ""
        raise record.refuse(
            f"it is {entry.name!r} of the distribution {entry.release} ({wrote}not part of fastkpca): to load it means "
            f"to import and run that distribution's code; plugins=[{entry.qualified!r}] allows this one, "
            f"plugins=[{entry.distribution!r}] all of that distribution, plugins=True any that is installed"
        )
    if version and version != entry.version:
        warn_caller(
            f"the file was written with {entry.distribution} {version[:60]}, and {entry.version} is installed: its "
            f"kernel {entry.name!r} may have changed meanwhile; install {version[:60]}, or fit anew",
            PluginWarning,
        )
    return entry
