"""Writing a file so that it appears complete, or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .checks import check_flag

if sys.platform == "win32":
    fcntl = None
    _NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_BINARY
else:
    import fcntl

    _NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL

__all__ = ["atomic", "check_target"]


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
    """A new file beside ``target``, locked as long as it is open: so ``_sweep`` knows that it is in use."""
    # not tempfile: its files are private to the user, these get the permissions of any new file, or from the first
    # byte on no more than those of the file that they replace
    mode = 0o666
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(target.stat().st_mode) | stat.S_IWUSR  # which ``_sweep`` asks for
    while True:
        path = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
        handle = os.open(path, _NEW_FILE, mode)
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks: nothing is swept there
                fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink or fcntl is None:
            return path, handle
        os.close(handle)  # another process swept it before it was locked


def _sweep(target: Path) -> None:
    """Remove the temporary files of writers of ``target`` that were killed: the locks on these ended with them."""
    if fcntl is None:
        return
    name = re.compile(re.escape(f".{target.name[:100]}.") + r"[0-9a-f]{16}\.tmp")
    for path in [x.path for x in os.scandir(target.parent) if name.fullmatch(x.name)]:
        with contextlib.suppress(OSError):  # in use, gone already, or not ours
            handle = os.open(path, os.O_WRONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
            finally:
                os.close(handle)


@contextlib.contextmanager
def atomic(path: str | os.PathLike, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A binary file that appears under ``path`` complete, or not at all.

    Written to a temporary file in the same folder, synchronised to disk, then put in place; after any failure,
    Ctrl-C included, the temporary file is removed and what stood under ``path`` is untouched. What a process that
    was killed left behind is removed when the same file is written again. Raises as ``check_target`` does, also where
    another process makes the file meanwhile.
    """
    target = check_target(path, overwrite)
    _sweep(target)
    temporary, handle = _temporary(target)
    held = None if fcntl is None else os.dup(handle)  # the lock lasts until the file is in place
    try:
        with os.fdopen(handle, "wb") as file:
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
    finally:
        if held is not None:
            os.close(held)
