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
