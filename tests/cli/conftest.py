"""The command line in this process."""

from __future__ import annotations

import json
import subprocess

import pytest

from fastkpca import cli
from fastkpca.cli.tables import archives


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


@pytest.fixture
def in_this_process(monkeypatch):
    """The reader of .mat files without a process of its own, which takes a second to import scipy.io; tests of damaged
    files have that process."""

    real = subprocess.run

    def run(command, **options):
        if archives.readmat.__file__ not in command:  # h5py asks for the processor when it is imported
            return real(command, **options)
        arguments = command[command.index(archives.readmat.__file__) + 1 :]
        try:
            answer = archives.readmat.main(*arguments)
        except Exception as error:
            answer = {"error": str(error), "v73": False}
        return subprocess.CompletedProcess(command, 0, json.dumps(answer))

    monkeypatch.setattr(archives.subprocess, "run", run)
