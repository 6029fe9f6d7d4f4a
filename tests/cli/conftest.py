"""The command line in this process."""

from __future__ import annotations

import pytest

from fastkpca import cli


@pytest.fixture
def run(capsys):
    """run(arguments) -> (exit code, stdout, stderr)."""

    def call(*arguments):
        capsys.readouterr()
        try:
            code = cli.main([str(a) for a in arguments])
        except SystemExit as left:
            code = left.code
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def fine(run):
    """fine(arguments) -> stdout, of a command that has nothing to say beside it."""

    def call(*arguments):
        code, out, err = run(*arguments)
        assert (code, err) == (0, "")
        return out

    return call


@pytest.fixture
def fails(run):
    """fails(arguments) -> stderr, of a command that gives up and prints nothing."""

    def call(*arguments):
        code, out, err = run(*arguments)
        assert (code, out) == (1, "")
        return err

    return call
