"""Messages of the command line: errors and warnings of one line, progress, closed streams."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any, cast

from ..base.atomic import naming_file
from ..base.progress import Bars
from ..errors import HealthWarning

_OUTPUT = "standard output"
_drawn: list[Any] = []  # bars that a warning has to take away before it is printed


class Refused(Exception):
    """Error of the command line itself; the text is the whole message."""


class _ClosedStream(io.StringIO):
    """Stand-in for a standard stream that is closed."""

    buffer: Any

    def __init__(self, name: str):
        super().__init__()
        self._name = name

    def write(self, text: str) -> int:
        raise Refused(f"{self._name} is closed: what belongs there is lost; open it, if only as /dev/null")

    def read(self, size: int | None = -1) -> str:
        raise Refused(f"{self._name} is closed; give the name of a file")


def open_closed_streams() -> None:
    """Python leaves closed standard streams out; the next files that are opened would get their numbers, and what is
    printed would get lost, or into other files."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which gets the lowest number that is free
    if sys.stdin is None:
        sys.stdin = _ClosedStream("standard input")
        sys.stdin.buffer = sys.stdin
    if sys.stdout is None:
        sys.stdout = _ClosedStream(_OUTPUT)
    if sys.stderr is None:  # print would take standard output instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def discard_output() -> None:
    """Drop unwritten output, which would raise a second time while Python shuts down."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Output:
    """Standard output, whose errors name it."""

    def __init__(self, stream: Any):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with naming_file(_OUTPUT):
            return int(self._stream.write(text))

    def flush(self) -> None:
        with naming_file(_OUTPUT):
            self._stream.flush()


@contextlib.contextmanager
def standard_output() -> Iterator[None]:
    """Standard output that is flushed at the end; an error says why, if that fails."""
    stream: Any = sys.stdout
    with contextlib.suppress(AttributeError):  # a StringIO in its place encodes nothing
        # names of rows, columns and files, in any encoding of the terminal; a file's name may be no text
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    with contextlib.redirect_stdout(cast(Any, _Output(stream))):
        try:
            yield
        finally:
            sys.stdout.flush()


def described(error: Exception) -> str:
    text = in_words_of_the_command(" ".join(str(error).split()))
    if isinstance(error, OSError) and error.strerror:
        if error.filename is not None:
            name = os.fsdecode(error.filename)
            return f"{name if name == _OUTPUT else repr(name)}: {error.strerror}"
        return error.strerror
    if isinstance(error, FileExistsError) and "--force" not in text:
        return f"{text}; --force overwrites it"
    if isinstance(error, MemoryError):
        return f"out of memory{': ' + text if text else ''}; try fewer components, a larger --tol or --memory-limit"
    if isinstance(error, (Refused, ValueError, TypeError, OSError, RuntimeError, ImportError, AttributeError)) and text:
        return text
    return f"{type(error).__name__}: {text} (a fault of fastkpca: run again with --debug and report what it prints)"


def in_words_of_the_command(text: str) -> str:
    """The options of the command line in place of the arguments of ``load`` and ``kpca``."""
    text = re.sub(r"plugins=\['([^']*)'\]", r"--plugins \1", text).replace("plugins=True", "--plugins all")
    text = text.replace("fastkpca.list_kernels() lists", "'fastkpca kernels' lists")
    text = re.sub(r"\bmax_features=(\d+)", r"--max-features \1", text).replace("max_features", "--max-features")
    text = re.sub(r"\btol=([0-9][0-9.e+-]*)", r"--tol \1", text)
    text = text.replace("fastkpca.plan shows", "'fastkpca plan' shows")
    text = re.sub(r"\bn_threads is (.*), or None for all processors", r"--threads is \1", text)
    text = text.replace("give c of at most", "give -c of at most").replace("or None for all", "or -c all")
    return text.replace("standardize=True", "--standardize").replace("standardize=False", "--no-standardize")


def without_password(text: str) -> str:
    """A text without the names and passwords in addresses of databases."""
    return re.sub(r"(\w://)[^\s/@]*@", r"\1...@", text)


def say(kind: str, text: str) -> None:
    for bars in _drawn:
        bars.clear()
    with contextlib.suppress(OSError):  # nobody can be told
        print(f"fastkpca: {kind}: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def progress_bars(enabled: bool) -> Iterator[Any]:
    """A progress callable with ``clear``: a bar on stderr, drawn only on a terminal and only where a stage takes
    longer than a second."""
    bars = Bars(
        file=sys.stderr,
        disable=None if enabled else True,  # None: unless it is a terminal
        delay=1.0,
        ascii=".#",
        bar_format="[{bar:40}] {desc} {percentage:3.0f} %",
    )
    _drawn.append(bars)
    try:
        yield bars
    finally:
        bars.clear()
        _drawn.remove(bars)


@contextlib.contextmanager
def one_line_warnings() -> Iterator[list[str]]:
    """A line for each warning; yields the list of what the lines say that are about the health of the data."""
    health: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = in_words_of_the_command(" ".join(str(message).split()))
        if issubclass(category, HealthWarning):
            health.append(text)
        say("warning", text)

    with warnings.catch_warnings():
        for kind in (UserWarning, RuntimeWarning):
            warnings.simplefilter("always", kind)
        warnings.showwarning = show
        yield health
