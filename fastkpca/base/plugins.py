"""Names that other distributions bring: one entry-point group, read lazily (kernels, methods).

Nothing is imported until a name is asked for, and a name of fastkpca's own is found without looking at what is
installed. Reading and finding are pure, so plugins are tested without installing them::

    group.read(points) -> entries, problems              what the installed distributions claim
    group.find(name, plugins, session) -> entry          which claim a name means; raises, never guesses
    group.load(entry) -> object                          the import, and what a plugin has to fulfil
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import metadata
from typing import Any

from ..errors import PluginError, PluginWarning, warn_caller
from . import described
from .checks import check_flag
from .spelling import did_you_mean

DISTRIBUTION = "fastkpca"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")


@dataclass(frozen=True)
class Entry:
    """One name in a registry, and what is known about it without importing it.

    Attributes
    ----------
    name : str
    value : str
        "module:attribute", as in the entry point.
    distribution, version, summary : str
        Those of the distribution that brings it; in a listing the summary is the first line of the docstring of the
        thing itself, where its source has one.
    aliases : tuple of str
        Other names that mean the same.
    state : str
        "not loaded"; after a listing with ``load=True`` "loaded" or "failed".
    error : str
        Text of the error.
    parameters : dict or None
        Name -> default, once loaded.
    capabilities : tuple of str
        What it offers, once loaded.
    """

    name: str
    value: str
    distribution: str
    version: str = ""
    summary: str = ""
    aliases: tuple[str, ...] = ()
    target: Any = field(default=None, repr=False, compare=False)
    """The object registered for this session; None where it is found by ``value``."""
    state: str = field(default="not loaded", repr=False, compare=False)
    error: str = field(default="", repr=False, compare=False)
    parameters: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    capabilities: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def qualified(self) -> str:
        return f"{self.distribution}:{self.name}"

    @property
    def release(self) -> str:
        """Distribution and version, for the text of an error."""
        return f"{self.distribution} {self.version}".rstrip()


def normalized(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()  # PEP 503


@dataclass
class Group:
    """An entry-point group: a literal table of fastkpca's own names, and what other distributions claim.

    Parameters
    ----------
    name : str
        Name of the entry-point group.
    kind : str
        What it holds, for the texts: "kernel", "method".
    table : mapping of str to Entry
        fastkpca's own, which are reserved with all their aliases.
    unknown : exception class
        Raised for a name that nobody brings.
    check : callable (thing, who, value)
        Raises PluginError for something that is not of this kind.
    inspect : callable (entry)
        Loads what an entry names, and returns the fields of the entry that a listing shows of it.
    elsewhere : mapping of str to str
        What other libraries call them, in small letters -> how it is asked for here, for the text of an error.
    """

    name: str
    kind: str
    table: Mapping[str, Entry]
    unknown: type[Exception]
    check: Callable[[Any, str, str], None]
    inspect: Callable[[Entry], dict[str, Any]]
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    scanned: dict[tuple[str, ...], tuple[Entry, ...]] = field(default_factory=dict)
    """Claims by search path: scanning every distribution takes milliseconds."""

    def __post_init__(self) -> None:
        self.reserved = {key: entry for entry in self.table.values() for key in (entry.name, *entry.aliases)}

    # Installed distributions

    def read(
        self, points: Iterable[tuple[metadata.Distribution, str, str]]
    ) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
        """(entries, problems) of what distributions other than fastkpca claim, in the order of their names.

        The order of entry points depends on ``sys.path``; here it is by name and distribution. Claims on a reserved
        name are left out and described in ``problems``.
        """
        entries, problems = [], []
        for owner, name, value in points:
            distribution, version, summary = described.name_version_summary(owner)
            if normalized(distribution) == DISTRIBUTION:
                continue  # the literal table speaks for these
            if name in self.reserved:
                problems.append(
                    f"distribution {distribution} {version} claims the {self.kind} name {name!r}, which is "
                    f"reserved for fastkpca's own {self.kind} {self.reserved[name].name!r}; the claim is ignored"
                )
            else:
                entries.append(Entry(name, value, distribution, version, summary))
        unique = sorted(set(entries), key=lambda e: (e.name, normalized(e.distribution), e.version, e.value))
        return tuple(unique), tuple(sorted(set(problems)))

    def plugins(self, *, fresh: bool = False) -> tuple[Entry, ...]:
        """The entries of what is installed; with ``fresh`` read anew, and with warnings of the problems."""
        path = tuple(sys.path)
        entries = None if fresh else self.scanned.get(path)
        if entries is None:
            points, damage = described.points(self.name)
            entries, problems = self.read(points)
            self.scanned = {path: entries}  # in one step: another thread may read it meanwhile
            for problem in (*problems, *damage) if fresh else ():
                warn_caller(problem, PluginWarning)
        return entries

    def listing(self, load: bool, session: Iterable[Entry] = ()) -> Table:
        """Every name; with ``load`` also what each is, or, where its import fails, why."""
        check_flag(load, "load")
        version = metadata.version(DISTRIBUTION)
        own = [replace(entry, version=version) for entry in self.table.values()]
        plugins = self.plugins(fresh=True)
        known = [replace(entry, summary=described.first_line(entry.value) or entry.summary) for entry in plugins]
        entries = [*own, *known, *session]
        return Table(map(self._inspected, entries) if load else entries)

    def _inspected(self, entry: Entry) -> Entry:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a listing is not the place for what an import has to say
                return replace(entry, state="loaded", **self.inspect(entry))
        except (Exception, SystemExit) as error:
            text = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
            return replace(entry, state="failed", error=text)

    # Which entry a name means

    def find(self, name: str, plugins: Sequence[Entry], session: Mapping[str, Entry]) -> Entry:
        """The entry that ``name`` ("name" or "distribution:name") means; raises where there is not just one."""
        if known := session.get(name) or self.reserved.get(name):
            return known
        distribution, colon, bare = name.rpartition(":")
        claims = [
            entry
            for entry in (*self.table.values(), *plugins)
            if bare in (entry.name, *entry.aliases)
            and (not colon or normalized(entry.distribution) == normalized(distribution))
        ]
        if not claims:
            raise self.unknown(self._unknown(name, plugins, session))
        if len(claims) == 1:
            return claims[0]
        releases = ", ".join(f"{entry.release} ({entry.value})" for entry in claims)
        ways = list(dict.fromkeys(repr(entry.qualified) for entry in claims))
        advice = f"ask for {' or '.join(ways)}, or uninstall one" if len(ways) > 1 else "its authors have to choose one"
        raise PluginError(
            f"the {self.kind} name {claims[0].name!r} is claimed by {len(ways)} distributions: {releases}; {advice}"
        )

    def lookup(self, name: str, session: Mapping[str, Entry]) -> Entry:
        """``find`` in the list of installed names, which is read again for what was installed since."""
        if name in session or name in self.reserved:
            return self.find(name, (), session)
        try:
            return self.find(name, self.plugins(), session)
        except self.unknown:
            return self.find(name, self.plugins(fresh=True), session)

    def _unknown(self, name: str, plugins: Sequence[Entry], session: Mapping[str, Entry]) -> str:
        spellings = [*self.reserved, *session, *(e.name for e in plugins), *(e.qualified for e in plugins)]
        bare = name.rpartition(":")[2]
        text = f"no {self.kind} is named {name!r}; "
        if bare.lower() in self.elsewhere:
            text += f"it is {self.elsewhere[bare.lower()]} here; "
        elif similar := did_you_mean(name, spellings) or did_you_mean(bare, spellings):
            text += f"{similar} "
        text += f"fastkpca.list_{self.kind}s() lists every name"
        if ":" in name and bare in self.reserved:
            text += f" ({bare!r} is reserved for fastkpca's own {self.kind}: another distribution's claim is ignored)"
        return text

    # From entry to object

    def load(self, entry: Entry) -> Any:
        """Import what an entry names, and refuse a plugin that is not what this group holds."""
        if entry.distribution == DISTRIBUTION:
            return _own(entry.value)
        who = self.who(entry)
        try:
            thing = metadata.EntryPoint(entry.name, entry.value, self.name).load()
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"{who} cannot be imported from {entry.value!r}: {type(error).__name__}: {error}; "
                "reinstall it, or report this to its authors"
            ) from error
        self.check(thing, who, entry.value)
        return thing

    def who(self, entry: Entry) -> str:
        return f"{self.kind} {entry.name!r} of distribution {entry.release}"


@lru_cache  # metadata takes the text apart anew each time: a fortieth of a fit of 50 rows
def _own(value: str) -> Any:
    """The object that an entry of this distribution names."""
    return metadata.EntryPoint("", value, "").load()


class Table(tuple[Entry, ...]):
    """The rows of a listing: a sequence of entries that prints as a table."""

    @property
    def names(self) -> list[str]:
        """Name by which each entry is found: the bare one, or "distribution:name" where two distributions share it."""
        bare = [entry.name for entry in self]
        return [e.qualified if bare.count(e.name) > 1 and e.target is None else e.name for e in self]

    def __repr__(self) -> str:
        heads = ["name", "aliases", "distribution", "version", "summary"]
        if any(e.state != "not loaded" for e in self):
            heads += ["state", "parameters", "capabilities"]
        lines = [heads]
        for name, e in zip(self.names, self):
            parameters = ", ".join(f"{k}={v!r}" for k, v in (e.parameters or {}).items())
            last = e.error or ", ".join(e.capabilities)
            cells = name, ", ".join(e.aliases), e.distribution, e.version, e.summary, e.state, parameters, last
            lines.append([" ".join(cell.split()) for cell in cells[: len(heads)]])
        widths = [max(map(len, column)) for column in zip(*lines)]
        # errors may be long: the last column is not what the rule's length hangs on
        widths[-1] = min(widths[-1], 60)
        lines.insert(1, ["-" * width for width in widths])
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
