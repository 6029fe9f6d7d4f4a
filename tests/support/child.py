"""Code in a process of its own: what a fork, an import or the end of the interpreter does, and hangs, stay there."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def child(code: str, *, beginning: str = "", without: str = "no such", **environment: str) -> list[str]:
    """The words that it prints; ``without``: variables of the environment whose names end so are not handed on."""
    given = {name: value for name, value in os.environ.items() if not name.endswith(without)} | environment
    whole = textwrap.dedent(beginning) + textwrap.dedent(code)
    command = [sys.executable, "-P", "-W", "ignore", "-c", whole]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=given, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
