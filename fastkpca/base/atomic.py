"""Writing a file so that it appears complete, or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from .checks import check_flag


def check_target(path: str | os.PathLike, overwrite: bool) -> Path:
    """The file that ``path`` means (links followed), after making sure that it may be written.

    Raises
    ------
    FileExistsError
        It exists and ``overwrite`` is false.
    FileNotFoundError
        Its folder does not exist.
    OSError
        It is a folder, a device or a pipe: replacing one of those by a file would destroy it.
    TypeError
        ``path`` is neither text nor a path, or ``overwrite`` no truth value.
    ValueError
        ``path`` holds a zero byte.
    """
    check_flag(overwrite, "overwrite")
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"the path is {path!r}; give the name of a file as text or as a pathlib.Path")
    if "\0" in str(path):
        raise ValueError(f"the path is {path!r}, and no file's name holds a zero byte")
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise FileNotFoundError(f"the folder of {str(path)!r} does not exist; make it first") from None
        return target
    except NotADirectoryError:
        raise FileNotFoundError(f"the folder of {str(path)!r} does not exist; make it first") from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{str(path)!r} is a folder; give the name of a file")
    if not stat.S_ISREG(mode):
        raise OSError(f"{str(path)!r} is not a regular file and is not replaced by one")
    if not overwrite:
        raise FileExistsError(f"{str(path)!r} exists already and is not overwritten unless asked for")
    return target


def _temporary(target: Path) -> tuple[Path, int]:
    """A new file in the folder of ``target``."""
    # not tempfile: its files are private to the user, these get the permissions of any new file, or from the first
    # byte on no more than those of the file that they replace
    mode = 0o666
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(target.stat().st_mode)
    path = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)


def append(path: str | os.PathLike, head: bytes, lines: Sequence[bytes]) -> int:
    """Lines at the end of a file that begins with the line ``head``, which a new or empty one is given; returns how
    many. Those that the file holds already are left out.

    The file is replaced by a longer one, so that it never holds a part of the lines; processes that do this at the same
    time wait for each other (where there is ``fcntl``). Raises ValueError where the file begins with another line.
    """
    while True:
        target = check_target(path, overwrite=True)
        with open(target, "a+b") as file:
            with contextlib.suppress(ImportError):
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            if not (target.exists() and os.path.samestat(os.fstat(file.fileno()), target.stat())):
                continue  # another process has replaced it meanwhile
            file.seek(0)
            first = file.readline().rstrip(b"\r\n")
            if first not in (b"", head):
                found = first[:200].decode(errors="replace")
                raise ValueError(
                    f"{str(path)!r} begins with {found!r}: lines of {head.decode()!r} do not go below that"
                )
            file.seek(0)
            with atomic(target, overwrite=True) as longer:
                unknown, line = set(lines), b"\n"
                for line in file:
                    longer.write(line)
                    unknown.discard(line.rstrip(b"\r\n"))
                if not first:
                    longer.write(head + b"\n")
                elif not line.endswith(b"\n"):
                    longer.write(b"\n")
                new = [line for line in lines if line in unknown]
                longer.writelines(line + b"\n" for line in new)
            return len(new)


@contextlib.contextmanager
def naming_file(path: str | os.PathLike) -> Iterator[None]:
    """Errors of the disk with the name that the user gave: a full one names nothing, and temporary files are ours."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.strerror is None or isinstance(error, BrokenPipeError):
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error


@contextlib.contextmanager
def atomic(path: str | os.PathLike, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A binary file that appears under ``path`` complete, or not at all.

    Written to a temporary file in the same folder, synchronised to disk, then put in place; after any failure,
    Ctrl-C included, the temporary file is removed and what stood under ``path`` is untouched. A process that is killed
    leaves its temporary file, ``.NAME.(16 digits).tmp``. Raises as ``check_target`` does, also where another process
    makes the file meanwhile.
    """
    target = check_target(path, overwrite)
    with naming_file(path):
        temporary, handle = _temporary(target)
    try:
        with naming_file(path), os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not overwrite:
            try:
                os.link(temporary, target)  # fails where the target exists; replace would not
            except FileExistsError:
                raise FileExistsError(f"{str(path)!r} was made by someone else meanwhile; it is kept") from None
            except OSError:  # no hard links on this file system
                check_target(path, overwrite)
            else:
                os.unlink(temporary)
                return
        else:
            with contextlib.suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
