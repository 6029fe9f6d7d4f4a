"""The command line where its streams or its disk fail, as programs of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import fastkpca as fk

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files and signals of POSIX")
COMMANDS = {
    "version": ["--version"],
    "help": ["--help"],
    "help of fit": ["fit", "--help"],
    "fit": ["fit", "x.csv"],
    "plan": ["plan", "x.csv"],
    "project": ["project", "m.kpca", "x.csv"],
    "monitor": ["monitor", "m.kpca", "x.csv"],
    "info": ["info", "m.kpca"],
    "kernels": ["kernels"],
    "demo": ["demo"],
}
RAW = "raw\udcff"
"""A name that is no UTF-8."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    X = np.random.default_rng(0).standard_normal((60, 3))
    for name in ("x.csv", f"{RAW}.csv"):
        np.savetxt(folder / name, X, delimiter=",")
    model = fk.kpca(X, "gaussian", 2, sigma=2.0)
    fk.save(model.with_limits(fk.kpca_limits(model, X + 0.1, confidence=0.9)), folder / "m.kpca")
    return folder


def started(folder, arguments, redirection="", **options):
    """(exit code, stderr) of the command, whose tracebacks and codec's errors are faults."""
    command = ["bash", "-c", f'"$@" {redirection}', "x", sys.executable, "-P", "-m", "fastkpca", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, **options)
    text = done.stderr.decode(errors="backslashreplace")
    assert "Traceback" not in text and "codec" not in text and "ignored" not in text, text
    return done.returncode, text


@pytest.mark.slow
@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
@pytest.mark.parametrize("command", COMMANDS)
def test_standard_output_that_takes_nothing_is_an_error_that_names_it(folder, command, redirection):
    code, text = started(folder, COMMANDS[command], redirection)
    assert code == 1 and text.splitlines()[-1].startswith("fastkpca: error: standard output")


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
def test_the_version_that_cannot_be_printed_is_an_error(folder, redirection):
    code, text = started(folder, ["--version"], redirection)
    assert code == 1 and text.startswith("fastkpca: error: standard output") and text.count("\n") == 1


def test_nobody_to_tell_is_no_traceback(folder):
    assert started(folder, ["fit", "nothing.csv"], "2>/dev/full") == (1, "")
    assert started(folder, ["--nothing"], "2>/dev/full") == (2, "")


def test_interrupted_while_modules_are_imported(folder, tmp_path):
    (tmp_path / "numpy.py").write_text("import time; print('begun', flush=True); time.sleep(60)")
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import runpy, sys\n"
    code += "sys.argv = ['fastkpca', '--version']; from fastkpca.cli import main"
    command = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    while "begun" not in process.stdout.readline():
        assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=60)
    assert (process.returncode, text) == (130, "fastkpca: error: interrupted\n")


def test_names_that_are_no_text(folder):
    outputs = ["-o", f"{RAW}.kpca", "--scores", f"{RAW}-scores.csv", "--plot", f"{RAW}.png", "--limits", "0.9"]
    assert started(folder, ["fit", f"{RAW}.csv", "-c", "2", *outputs])[0] == 0
    assert (folder / f"{RAW}.kpca").is_file() and (folder / f"{RAW}.png").is_file()
    assert started(folder, ["project", f"{RAW}.kpca", f"{RAW}.csv", "-o", f"{RAW}-new.npy"])[0] == 0
    assert started(folder, ["monitor", f"{RAW}.kpca", f"{RAW}.csv", "-o", f"{RAW}-rows.csv"])[0] in (0, 3)
    assert started(folder, ["info", f"{RAW}.kpca"])[0] == 0
    code, text = started(folder, ["info", f"no-{RAW}.kpca"])
    assert code == 1 and "no-raw" in text


@pytest.mark.parametrize(
    "arguments, target",
    [
        (["fit", "x.csv", "-o"], "q.kpca"),
        (["fit", "x.csv", "-o"], "q.mat"),
        (["fit", "x.csv", "--scores"], "q.csv"),
        (["fit", "x.csv", "--scores"], "q.csv.gz"),
        (["fit", "x.csv", "--scores"], "q.npy"),
        (["fit", "x.csv", "--plot"], "q.png"),
        (["project", "m.kpca", "x.csv", "-o"], "q.npy"),
        (["monitor", "m.kpca", "x.csv", "-o"], "q.csv"),
    ],
)
def test_a_disk_that_is_full_is_an_error_with_the_name_and_leaves_no_file(folder, arguments, target):
    code, text = started(folder, [*arguments, target], preexec_fn=_small_files)
    assert code == 1 and f"error: '{target}': File too large" in text
    assert not (folder / target).exists()


def _small_files():
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
