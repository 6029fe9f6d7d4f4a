"""The command line, run in process and for real: right numbers, one-line errors, nothing overwritten."""

from __future__ import annotations

import errno
import gzip
import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import scipy.io
import tqdm.std
from reference import center, eigh, gram

import fastkpca as fk
from fastkpca import cli
from fastkpca.cli import arguments as parsing
from fastkpca.cli import console, demo
from fastkpca.cli.tables import read as tables

SIGMA = 1.5


def reference(X, c, new=None):
    """Eigenvalues, explained percentages and scores from LAPACK on the centred Gram matrix."""
    K = gram("gaussian", X, sigma=SIGMA)
    values, vectors = (part[..., :c] for part in eigh(K))
    k = K if new is None else gram("gaussian", new, X, sigma=SIGMA)
    return values, 100 * values / np.trace(center(K)), (k - K.mean(axis=1)) @ vectors / np.sqrt(values)


def same_up_to_sign(a, b):
    return a * np.sign((a * b).sum(axis=0)) == pytest.approx(b, abs=1e-9)


@pytest.fixture
def X():
    return np.random.default_rng(1).standard_normal((120, 4))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def table(here, X):
    with open("x.csv", "w") as file:
        file.write("a,b,c,d,kind\n")
        for i, row in enumerate(X.tolist()):
            file.write(",".join(map(repr, row)) + f",{'odd' if i % 2 else 'even'}\n")
    return "x.csv"


FIT = ("--kernel", "gaussian", "--sigma", SIGMA, "-c", 3, "--method", "dense")


def numbers_of(out):
    """The eigenvalue table of a summary: value, lower, upper, percent."""
    rows = [line.split() for line in out.splitlines() if line.endswith("%") and line.split()[0].isdigit()]
    return np.array([[float(x) for x in row[1:5]] for row in rows])


def test_fit_project_info(run, fine, here, table, X):
    code, out, err = run(
        "fit", table, *FIT, "--label-column", "kind", "-o", "m.kpca", "--scores", "s.csv", "--plot", "s.png",
        "--digits", 17,
    )  # fmt: skip
    assert (code, err) == (0, "")
    values, explained, scores = reference(X, 3)
    printed = numbers_of(out)
    assert printed[:, 0] == pytest.approx(values, rel=1e-8)
    assert np.all(printed[:, 1] <= values * (1 + 1e-11)) and np.all(values * (1 - 1e-11) <= printed[:, 2])
    assert printed[:, 3] == pytest.approx(explained, abs=1e-3)
    assert "Gaussian(sigma=1.5)" in out and "120" in out
    written = tables.read("s.csv")
    assert written.names == ["PC1", "PC2", "PC3"]
    assert same_up_to_sign(written.X, scores)
    assert (here / "s.png").read_bytes().startswith(b"\x89PNG")

    new = np.random.default_rng(2).standard_normal((7, 4))
    np.save("new.npy", new)
    code, out, err = run("project", "m.kpca", "new.npy", "--digits", 17)
    note = "fastkpca: note: new.npy does not name its columns: taken in their order for a, b, c, d\n"
    assert (code, err) == (0, note)
    shown = np.loadtxt(io.StringIO(out), delimiter=",", skiprows=1)
    assert out.startswith("PC1,PC2,PC3\n")
    assert same_up_to_sign(shown, reference(X, 3, new)[2])
    code, out, err = run("project", "m.kpca", "new.npy", "-o", "p.npy")
    assert (code, err) == (0, note) and "7 rows" in out
    np.testing.assert_array_equal(np.load("p.npy"), shown)

    out = fine("info", "m.kpca")
    np.testing.assert_array_equal(numbers_of(out), printed)
    assert sorted(os.listdir()) == ["m.kpca", "new.npy", "p.npy", "s.csv", "s.png", "x.csv"]


def test_a_model_for_matlab(fine, here, table, X):
    fine("fit", table, *FIT, "--label-column", "kind", "-o", "m.mat")
    assert same_up_to_sign(scipy.io.loadmat("m.mat")["score"], reference(X, 3)[2])


def test_an_array_of_several_in_a_file(fine, here, X):
    np.savez("x.npz", X=X, other=X[:5])
    out = fine("fit", "x.npz", *FIT, "--var", "X", "--scores", "s.npy")
    model = fk.kpca(X, "gaussian", 3, sigma=SIGMA, method="dense")
    assert numbers_of(out)[:, 0] == pytest.approx(model.eigenvalues, rel=1e-8)
    np.testing.assert_array_equal(np.load("s.npy"), model.score)


@pytest.mark.parametrize(("method", "tol"), [("dense", 1e-9), ("features", 1e-2), ("krylov", 1e-9)])
def test_methods_and_tol(fine, here, table, X, method, tol):
    more = ("--sigma", SIGMA, "-c", 3, "--method", method, "--tol", tol, "--threads", 1, "--memory-limit", "2G")
    out = fine("fit", table, "--skip-columns", "kind", *more)
    printed = numbers_of(out)
    values = reference(X, 3)[0]
    assert np.all(printed[:, 2] - printed[:, 1] <= tol * values[0])
    assert np.all(printed[:, 1] <= values * (1 + 1e-9)) and np.all(values * (1 - 1e-9) <= printed[:, 2])
    assert any(line.split() == ["method", method] for line in out.splitlines())


def test_kernel_parameters(fine, here, table, X):
    same = [
        ("--kernel", "polynomial", "--degree", 2, "--offset", 1.5, "--scale", 0.5),
        ("--kernel", "poly", "--degree", 2, "--coef0", 1.5, "--gamma", 0.5),
        ("--kernel", "polynomial", "--param", "degree=2", "--param", "offset=1.5", "--param", "scale=0.5"),
    ]
    values = eigh((0.5 * X @ X.T + 1.5) ** 2)[0][:4]
    for arguments in same:
        out = fine("fit", table, "--columns", "a,b,c,d", *arguments, "-c", 4)
        assert numbers_of(out)[:, 0] == pytest.approx(values, rel=1e-9)


def test_fraction_of_the_variance(run, here, table, X):
    code, out, _ = run("fit", table, "--columns", "1-4", "--sigma", SIGMA, "-c", "0.6")
    assert code == 0
    _, explained, _ = reference(X, len(X) - 1)
    expected = int(np.searchsorted(np.cumsum(explained), 60)) + 1
    assert len(numbers_of(out)) == expected


def test_kernels_and_version(fine):
    out = fine("kernels")
    assert "gaussian" in out and "polynomial" in out
    out = fine("--version")
    assert out.startswith("fastkpca ")


# ---- errors ----------------------------------------------------------------------------------------------------------


USAGE = [
    ((), "COMMAND"),
    (("magic",), "'magic'"),
    (("fti", "x.csv"), "did you mean 'fit'"),
    (("fit",), "FILE"),
    (("fit", "x.csv", "-c", "many"), "'many' is neither a number of components nor"),
    (("fit", "x.csv", "-c", "1.0"), "write 1 or all"),
    (("fit", "x.csv", "--sigma", "wide"), "'wide' is neither a number nor"),
    (("fit", "x.csv", "--sigma", "0.5,one"), "'0.5,one' is neither a number nor numbers with commas"),
    (("fit", "x.csv", "--sigma", "1,"), "is neither"),
    (("fit", "x.csv", "--memory-limit", "lots"), "'lots' is not an amount of memory"),
    (("fit", "x.csv", "--memory-limit", "-1G"), "memory"),
    (("fit", "x.csv", "--param", "degree"), "'degree' is not of the form name=value"),
    (("fit", "x.csv", "--columns", "a", "--skip-columns", "b"), "not allowed with"),
    (("fit", "x.csv", "--columns", "a,,b"), "is not a list of columns"),
    (("fit", "x.csv", "--sig", "1"), "--sig"),
    (("fit", "x.csv", "--sigm=2"), "did you mean '--sigma'"),
    (("fit", "x.csv", "--kernal", "gaussian"), "did you mean '--kernel'"),
    (("fit", "x.csv", "--length", "0.5"), "is given by --param length=0.5"),
    (("fit", "x.csv", "--length=0.5"), "is given by --param length=0.5"),
    (("fit", "x.csv", "--nonsense"), "? (see 'fastkpca fit --help')"),
    (("project", "m.kpca"), "FILE"),
    (("project", "m", "x.csv", "--colums", "a"), "did you mean '--columns'"),
]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("fit", "missing.csv"), "there is no file 'missing.csv'"),
        (
            ("fit", "x.csv"),
            "not numeric: column 5 ('kind'), for example 'even' (--id takes names of the rows, "
            "--label-column classes); leave out with --skip-columns kind",
        ),
        (("fit", "nowhere.csv", "--kernel", "gausian"), "did you mean 'gaussian'"),  # found before the file is read
        (("fit", "nowhere.csv", "--param", "sgima=2"), "did you mean 'sigma'"),
        (("fit", "x.csv", "--columns", "a,b", "--kernel", "zzz"), "'fastkpca kernels' lists every name"),
        (("fit", "x.csv", "--columns", "a,b", "--sigma", "-1"), "sigma"),
        (("fit", "x.csv", "--columns", "a,b", "--sigma", "1", "--gamma", "1"), "Gaussian: 'sigma' and 'gamma' are two"),
        (("fit", "x.csv", "--columns", "a,b", "--sigma", "1", "--param", "sigma=1"), "given twice"),
        (("fit", "x.csv", "--columns", "a,b", "-c", "1000"), "give -c of at most 119, or -c all"),
        (("fit", "x.csv", "--columns", "a,b", "--threads", "0"), "--threads is 0; give a positive whole number\n"),
        (("fit", "x.csv", "--columns", "a,b", "-o", "-"), "a model is written into a file"),
        (("fit", "x.csv", "--columns", "a,b", "--scores", "s.ods"), "which 's.ods' does not end with"),
        (("fit", "x.csv", "--columns", "a,b", "--plot", "s.xyz"), "which 's.xyz' does not end with"),
        (("fit", "x.csv", "--columns", "a,b", "--plot", ".png"), "which '.png' does not end with"),
        (("fit", "x.csv", "--columns", "a,b", "-o", "no/m.kpca"), "the folder of 'no/m.kpca' does not exist"),
        (("fit", "x.csv", "--columns", "a,b", "-o", "."), "is a folder"),
        (("fit", "x.csv", "--columns", "a,b", "-o", "x.csv", "--force"), "the same file as the input 'x.csv'"),
        (("fit", "x.csv", "--columns", "a,b", "--scores", "./s.csv", "-o", "s.csv"), "the same file as the output"),
        (("project", "x.csv", "x.csv"), "not a fastkpca model file"),
        (("info", "x.csv"), "not a fastkpca model file"),
        (("info", "missing.kpca"), "missing.kpca"),
        *USAGE,
    ],
)
def test_errors_are_one_line(run, here, table, arguments, match):
    code, out, err = run(*arguments)
    assert code == (2 if (arguments, match) in USAGE else 1) and out == ""
    assert err.startswith("fastkpca: error: ") and err.count("\n") == 1
    assert match in err
    assert os.listdir() == ["x.csv"]


def test_debug_raises(here):
    with pytest.raises(FileNotFoundError):
        cli.main(["fit", "missing.csv", "--debug"])


def test_nothing_is_overwritten_and_that_is_known_before_the_work(run, fails, here, table, monkeypatch):
    outputs = {"-o": "m.kpca", "--scores": "s.csv", "--plot": "s.png"}
    for name in outputs.values():
        with open(name, "w") as file:
            file.write("mine")

    def never(*_, **__):
        raise AssertionError("work was begun")

    with monkeypatch.context() as patch:
        patch.setattr(fk, "kpca", never)
        patch.setattr(tables, "read", never)
        for option, name in outputs.items():
            code, _, err = run("fit", table, *FIT, "--skip-columns", "kind", option, name)
            kept = f"'{name}' exists already and is not overwritten unless asked for"
            assert code == 1 and err == f"fastkpca: error: {kept}; --force overwrites it\n"
            with open(name) as file:
                assert file.read() == "mine"
    assert run("fit", table, *FIT, "--skip-columns", "kind", "-o", "m.kpca", "--force")[0] == 0
    assert run("info", "m.kpca")[0] == 0
    assert "--force" in fails("project", "m.kpca", table, "--skip-columns", "kind", "-o", "s.csv")
    assert run("project", "m.kpca", table, "--skip-columns", "kind", "-o", "s.csv", "--force")[0] == 0
    assert len(tables.read("s.csv").X) == 120


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "out of memory"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "No space left on device"),
        (ValueError("first line\n  second line"), 1, "first line second line"),
        (IndexError("list index"), 1, "IndexError: list index (a fault of fastkpca"),
        (BrokenPipeError(), 141, None),
    ],
)
def test_whatever_happens_is_one_line(run, here, table, monkeypatch, error, code, text):
    def broken(*_, **__):
        warnings.warn("wide intervals\nhere", fk.errors.CertificateWarning, stacklevel=2)
        raise error

    monkeypatch.setattr(fk, "kpca", broken)
    monkeypatch.setattr(os, "dup2", lambda *_: None)  # of a broken pipe; the stdout here is pytest's
    got, out, err = run("fit", table, "--skip-columns", "kind", "-o", "m.kpca")
    assert got == code and out == ""
    warning, err = err.split("\n", 1)
    assert warning == "fastkpca: warning: wide intervals here"
    assert err == "" if text is None else (err.startswith(f"fastkpca: error: {text}") and err.count("\n") == 1)
    assert os.listdir() == ["x.csv"]


# ---- progress --------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_drawn_after_a_second_and_taken_away(monkeypatch):
    now = [0.0]
    stream = Terminal()
    monkeypatch.setattr(tqdm.std, "time", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", stream)
    with console.progress_bars(True) as progress:
        progress("passes", 1, 10)
        now[0] = 0.9
        progress("passes", 2, 10)
        assert stream.getvalue() == ""
        now[0] = 1.5
        progress("passes", 5, 10)
        assert "passes  50 %" in stream.getvalue() and "####" in stream.getvalue()
        length = len(stream.getvalue())
        now[0] = 1.55
        progress("passes", 6, 10)
        assert len(stream.getvalue()) == length
        progress("passes", 10, 10)
        assert "passes 100 %" in stream.getvalue()
        assert "\n" not in stream.getvalue()
    assert stream.getvalue().split("\r")[-2].strip() == "" and stream.getvalue().endswith("\r")
    assert len({len(part) for part in stream.getvalue().split("\r") if part}) == 1
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # no terminal
    with console.progress_bars(True) as progress:
        for now[0] in (2.0, 9.0):
            progress("scores", int(now[0]), 10)
    assert sys.stderr.getvalue() == ""


def test_a_warning_takes_the_bar_away_first(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with console.progress_bars(True) as progress:
        progress("reading x", 0, 0)
        console.say("warning", "careful")
    assert stream.getvalue().endswith(" \rfastkpca: warning: careful\n")


# ---- demo ------------------------------------------------------------------------------------------------------------


def test_demo(run, fails, fine, here):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    out = fine("demo")
    assert "handwritten digits" in out and len(numbers_of(out)) == 5
    assert {demo.MODEL, demo.SCORES} <= set(os.listdir("demo-output"))
    assert tables.read("demo-output/demo-scores.csv").X.shape == (1497, 5)
    for line in out.splitlines():
        if line.startswith("  ") and "against" in line:
            assert float(line.split(":")[1]) < 1e-9
    mine = here / "demo-output" / "mine.txt"
    mine.write_text("mine")
    err = fails("demo")
    assert err.count("\n") == 1 and "mine.txt" in err
    out = fine("demo", "--force")
    assert out.startswith("overwriting the results of an earlier demo in demo-output\n")
    assert mine.read_text() == "mine"
    assert run("demo", "--output", mine)[0] == 1


def test_demo_without_extras(fine, here, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    out = fine("demo", "--output", "new/folder")
    assert "two noisy concentric spheres" in out and "no plot: matplotlib is not installed" in out
    assert sorted(os.listdir("new/folder")) == [demo.MODEL, demo.SCORES]


# ---- processes of their own ------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_reader_that_leaves(run, here, X):
    np.save("x.npy", np.tile(X, (300, 1)))
    np.save("small.npy", X)
    assert run("fit", "small.npy", *FIT, "-o", "m.kpca")[0] == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "fastkpca", "project", "m.kpca", "x.npy"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"PC1,PC2,PC3\n"
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 141


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_control_c(here):
    os.mkfifo("x.csv")
    # SIGINT may be ignored where the tests run in the background, and children inherit that
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from fastkpca.cli import main; sys.exit(main(['fit', 'x.csv', '-o', 'm.kpca']))"
    )
    command = [sys.executable, "-P", "-c", code]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with open("x.csv", "wb"):  # waits until the process has opened its end to read, and so waits for data
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "fastkpca: error: interrupted\n")
    assert os.listdir() == ["x.csv"]


def test_a_plugin_is_imported_only_when_allowed_and_fit_says_how(run, fails, here, X):
    pytest.importorskip("kernels_contrib")
    np.save("x.npy", X)
    for name in ("laplacian", "fastkpca-kernels-contrib:laplacian"):
        out = run("fit", "x.npy", "--kernel", name, "-c", 2, "-o", "m.kpca", "--force")[1]
        assert "fastkpca project m.kpca FILE --plugins fastkpca-kernels-contrib (" in out
    for options in (["--kernel", "laplacian"], ["-o", "n.kpca"]):
        assert "--plugins" not in run("fit", "x.npy", *options)[1]
    for command in (["info", "m.kpca"], ["project", "m.kpca", "x.npy"]):
        assert "--plugins fastkpca-kernels-contrib:laplacian allows" in fails(*command)
        for allowed in ("all", "fastkpca-kernels-contrib", "other,fastkpca-kernels-contrib:laplacian"):
            assert run(*command, "--plugins", allowed)[0] == 0


def named(path, X, names):
    np.savetxt(path, X, delimiter=",", header=",".join(names), comments="")


@pytest.fixture
def of_four(run, here, X):
    """A model whose columns are called a, b, c and d; returns the scores of its rows."""
    named("x.csv", X, "abcd")
    assert run("fit", "x.csv", *FIT, "-o", "m.kpca")[0] == 0
    return run("project", "m.kpca", "x.csv")[1]


def test_columns_are_taken_by_name_whatever_is_left_out(run, here, X, of_four):
    pytest.importorskip("pyarrow.parquet")
    names, more = [*"bacd", "extra"], np.column_stack([X[:, [1, 0, 2, 3]], np.arange(len(X))])
    named("swapped.csv", more, names)
    pytest.importorskip("pandas").DataFrame(more, columns=names).to_parquet("swapped.parquet")
    for path, *options in (
        ("swapped.csv", "--skip-columns", "extra"),
        ("swapped.csv", "--columns", "1-4"),
        ("swapped.csv", "--columns", "1-5"),
        ("swapped.csv", "--columns", "a,b,c,d"),
        ("swapped.csv", "--id", "extra", "--skip-columns", "extra"),
        ("swapped.parquet", "--skip-columns", "extra"),
    ):
        code, out, err = run("project", "m.kpca", path, *options)
        assert code == 0 and "another order than the model's: each is taken by its name" in err, options
        if "--id" in options:
            out = "\n".join(line.partition(",")[2] for line in out.splitlines()) + "\n"
        assert out == of_four, options


def test_columns_of_other_names_are_taken_only_where_columns_says_so(run, fails, here, X, of_four):
    named("renamed.csv", np.column_stack([X[:, [1, 0, 2, 3]], X]), [*"bac", "depth", *"efgh"])
    code, out, err = run("project", "m.kpca", "renamed.csv", "--columns", "1-4")
    assert (code, out) == (0, of_four) and "not in the file by name: 'depth' is taken for 'd'" in err
    for options in ([], ["--skip-columns", "e,f,g,h"], ["--columns", "1-5"]):
        err = fails("project", "m.kpca", "renamed.csv", *options)
        assert "lacks the column 'd' of the model" in err and "'depth'" in err, options
        assert "or fit again without" in err, options
    named("twice.csv", X, "aabc")
    assert "lacks the column 'd' of the model" in fails("project", "m.kpca", "twice.csv", "--columns", "1-4")
    named("fewer.csv", X[:, :3], "dac")
    assert "fewer.csv lacks the column 'b' of the model; --columns says" in fails("project", "m.kpca", "fewer.csv")
    assert "--skip-columns leaves out 'b', which the model needs" in fails(
        "project", "m.kpca", "x.csv", "--skip-columns", "b"
    )


def test_no_column_that_is_needed_is_proposed_to_be_skipped(fails, here, X, of_four):
    words = "a,b,c,d,e\n" + "1,2,x,4,y\n" * 3
    missing = "a,b,c,d,e\n" + "1,2,3,4,5\n" * 60 + "1,,3,4,\n"
    for content, fault in ((words, "column 3 ('c')"), (missing, "line 62, column 2 ('b')")):
        (here / "new.csv").write_text(content)
        err = fails("project", "m.kpca", "new.csv")
        assert fault in err and "column 5" not in err
        assert "--skip-columns" not in err and "--id" not in err and "the model needs" in err
        bare = content.partition("\n")[2]
        (here / "bare.csv").write_text(bare)
        err = fails("project", "m.kpca", "bare.csv")
        assert "--skip-columns" not in err
    (here / "bare.csv").write_text("1,2,3,4,y\n" * 3)
    assert "leave out with --skip-columns 5" in fails("project", "m.kpca", "bare.csv")
    (here / "all.csv").write_text("a,b\n" + "1,2\n" * 60 + ",2\n1,\n")
    err = fails("fit", "all.csv")
    assert "drop or fill in these rows first" in err and "--skip-columns" not in err
    Y = X.copy()
    Y[3, 1] = np.nan
    np.save("nan.npy", Y)
    err = fails("project", "m.kpca", "nan.npy")
    assert "column 2: 1 row" in err and "--skip-columns" not in err
    np.save("nan.npy", np.full((30, 2), np.nan))
    err = fails("fit", "nan.npy")
    assert "column 1: 30 rows" in err and "--skip-columns" not in err


def test_columns_without_names_are_taken_by_their_place_and_that_is_said(run, here, X, of_four):
    np.savetxt("bare.csv", X, delimiter=",")
    np.save("x.npy", X)
    for path in ("bare.csv", "x.npy"):
        code, out, err = run("project", "m.kpca", path)
        assert (code, out) == (0, of_four) and f"{path} does not name its columns: taken in their order for a, b" in err
    assert run("project", "m.kpca", "x.npy", "--quiet")[2] == ""
    assert run("fit", "x.npy", *FIT, "-o", "n.kpca")[0] == 0
    code, out, err = run("project", "n.kpca", "x.csv")
    assert (code, out) == (0, of_four) and "the model has no names of columns: those of x.csv are taken in their" in err
    assert run("project", "n.kpca", "x.npy")[2] == ""
    assert "needs columns     a, b, c, d\n" in run("info", "m.kpca")[1]
    out = run("info", "n.kpca")[1]
    assert "standardize       no\n" in out and "needs columns     4 without names, in the order of the fit" in out


# ---- standard input and output, identifiers, decimal commas, years ---------------------------------------------------


@pytest.fixture
def pipe(monkeypatch):
    """pipe(bytes): what standard input holds."""

    def fill(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return fill


def test_standard_input_and_output(run, fails, fine, here, table, X, pipe):
    content = (here / table).read_bytes()
    code, expected, _ = run("fit", table, *FIT, "--skip-columns", "kind", "-o", "m.kpca", "--scores", "s.csv")
    assert code == 0
    pipe(content)
    code, out, err = run("fit", "-", *FIT, "--skip-columns", "kind", "--scores", "-", "-o", "n.kpca")
    assert code == 0 and out == (here / "s.csv").read_text()
    assert np.array_equal(numbers_of(err), numbers_of(expected)) and "scores written" not in err
    for more in ([], ["-o", "-"], ["--scores", "-"]):
        pipe(content)
        out = fine("project", "m.kpca", "-", "--digits", 17, *more)
        assert same_up_to_sign(np.loadtxt(io.StringIO(out), delimiter=",", skiprows=1), reference(X, 3, X)[2])
    pipe(content.replace(b"odd", b"").replace(b"a,b", b"a,b\n,1", 1))
    err = fails("fit", "-", *FIT)
    assert err.startswith("fastkpca: error: standard input: ")


def test_files_that_are_read_in_parts_from_standard_input(fine, here, X, pipe):
    pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("pandas").DataFrame(X, columns=list("abcd")).to_parquet("x.parquet")
    pipe((here / "x.parquet").read_bytes())
    out = fine("fit", "-", *FIT)
    assert numbers_of(out)[:, 0] == pytest.approx(reference(X, 3)[0], rel=1e-8)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_a_pipe_is_read_as_a_file(run, here, X):
    """What ``<(command)`` of a shell is: it can be read only once, and files are read several times."""
    np.savetxt("x.csv", X, delimiter=",", header="a,b,c,d", comments="")
    _, expected, _ = run("fit", "x.csv", *FIT)
    os.mkfifo("pipe")
    content = (here / "x.csv").read_bytes()
    for data, code, text in ((content, 0, ""), (content + b"1,2,x,3\n", 1, "pipe: line 122, column 3 ('c'): 'x'")):
        writer = threading.Thread(target=(here / "pipe").write_bytes, args=(data,), daemon=True)
        writer.start()
        done, out, err = run("fit", "pipe", *FIT)
        writer.join()
        assert done == code and text in err
        assert code or np.array_equal(numbers_of(out), numbers_of(expected))


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="devices are POSIX")
def test_a_device_that_never_ends_is_refused(run, fails, monkeypatch):
    for words in (["fit", "/dev/zero"], ["project", "m.kpca", "/dev/zero"]):
        assert "/dev/zero is a device, which has no end; give a file or a pipe" in fails(*words)
    with open("/dev/zero") as endless:
        monkeypatch.setattr(sys, "stdin", endless)
        code, _, err = run("fit", "-")
    assert code == 1 and "standard input is a device, which has no end" in err


def test_input_without_an_end_leaves_room_on_the_disk(fails, here, monkeypatch):
    class Endless(io.RawIOBase):
        read_so_far = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            buffer[:] = (b"1.5,2.5\n" * (len(buffer) // 8 + 1))[: len(buffer)]
            self.read_so_far += len(buffer)
            return len(buffer)

    endless = Endless()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(endless)))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**8, 9 * 10**7, 10**7))
    assert "standard input has not ended after 5 MB, half of what" in fails("fit", "-", *FIT)
    assert endless.read_so_far < 10**7


def test_rows_with_missing_values_keep_their_place_in_the_scores(run, fails, here, X):
    spoiled = X.astype(str)
    spoiled[3, 1], spoiled[40, 0], spoiled[119, 3] = "", "NA", "?"
    kept = np.delete(np.arange(120), [3, 40, 119])
    for name, table in (("all.csv", spoiled), ("kept.csv", X[kept])):
        lines = [
            ",".join([f"r{i}", *row]) for i, row in zip(range(120) if name == "all.csv" else kept, table.astype(str))
        ]
        (here / name).write_text("\n".join(["who,a,b,c,d", *lines]) + "\n")
    assert "--drop-missing" in fails("fit", "all.csv", *FIT, "--id", "who")
    assert run("fit", "kept.csv", *FIT, "--id", "who", "-o", "m.kpca", "--scores", "kept-scores.csv")[0] == 0
    code, out, err = run(
        "fit", "all.csv", *FIT, "--id", "who", "--drop-missing", "--scores", "s.csv", "--plot", "s.png"
    )
    assert code == 0 and numbers_of(out).shape == (3, 4)
    assert err == "fastkpca: note: 3 of 120 rows have missing values and are left out: lines 5, 42, 121\n"
    expected = (here / "kept-scores.csv").read_text().splitlines()
    lines = (here / "s.csv").read_text().splitlines()
    assert [line for line in lines if not line.endswith(",,,")] == expected
    assert [lines[i] for i in (4, 41, 120)] == ["r3,,,", "r40,,,", "r119,,,"] and len(lines) == 121
    code, out, err = run("project", "m.kpca", "all.csv", "--drop-missing", "--id", "who")
    assert code == 0 and out.splitlines()[4] == "r3,,," and out.count("\n") == 121 and "3 of 120 rows" in err
    some = ("all.csv", "--drop-missing", "--skip-columns", "who")
    assert run("project", "m.kpca", *some, "--quiet", "-o", "s.npy") == (0, "", "")
    scores = np.load("s.npy")
    assert np.isnan(scores).all(axis=1).nonzero()[0].tolist() == [3, 40, 119]
    assert same_up_to_sign(scores[kept], reference(X[kept], 3)[2])
    assert run("plan", *some, *FIT)[0] == 0
    code, out, err = run("fit", *some, *FIT[:4], "-c", 1, "--scores", "-")
    assert code == 0 and out.splitlines()[4] == '""' and np.genfromtxt(io.StringIO(out), skip_header=1).shape == (120,)


def test_identifiers_in_any_script_are_carried_to_the_scores_as_utf_8(run, fails, fine, here, X):
    people = ["García", "Łukasz", "Ωμέγα", "李", "007", "row, 3"] * 20
    with open("x.csv", "w", encoding="utf-8") as file:
        file.write("a,b,c [°C],who,d [kΩ]\n")
        for name, row in zip(people, X.tolist()):
            file.write(",".join([*map(repr, row[:3]), f'"{name}"', repr(row[3])]) + "\n")
    fine("fit", "x.csv", *FIT, "--id", "who", "--scores", "s.csv.gz", "-o", "m.kpca", "--digits", 17)
    with gzip.open("s.csv.gz", "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert lines[1].startswith("García,") and lines[6].startswith('"row, 3",')
    written = tables.read("s.csv.gz", id_column="who")
    assert written.identifiers.tolist() == people and written.names == ["PC1", "PC2", "PC3"]
    assert same_up_to_sign(written.X, reference(X, 3)[2])
    ascii_only = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0"}
    ascii_only |= {"PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    program = [sys.executable, "-P", "-m", "fastkpca", "project", "m.kpca", "x.csv", "--id", "who"]
    done = subprocess.run(program, env=ascii_only, encoding="utf-8", capture_output=True)
    projected = done.stdout.splitlines()
    assert done.returncode == 0 and [x.rsplit(",", 3)[0] for x in projected] == [x.rsplit(",", 3)[0] for x in lines]
    assert "a, b, c [°C], d [kΩ]\n" in run("info", "m.kpca")[1]
    err = fails("fit", "x.csv", *FIT, "--id", "who", "--scores", "s.npy")
    assert "write .csv" in err and not os.path.exists("s.npy")


def test_decimal_commas_and_years(run, here, X):
    lines = ["1990;1991;1992;1993", *(";".join(map(repr, row)) for row in X.tolist())]
    (here / "x.csv").write_text("\n".join(lines).replace(".", ","))
    code, out, note = run("fit", "x.csv", *FIT, "--decimal", ",")
    assert code == 0 and "1990, 1991, 1992 and 1 more" in note
    assert numbers_of(out)[:, 0] == pytest.approx(reference(X, 3)[0], rel=1e-8)


def test_plan(fails, fine, table):
    out = fine("plan", table, "--label-column", "kind", "-c", 3)
    assert out.startswith("dense (LAPACK)")
    err = fails("plan", table, "--label-column", "kind", "-c", 500)
    assert err.count("\n") == 1


def test_a_budget_of_features(run, fails, fine, table, X):
    asked = (table, "--skip-columns", "kind", "--sigma", 1.5, "-c", 3, "--max-features", 20)
    out = fine("plan", *asked)
    assert out.startswith("features (")
    code, out, err = run("fit", *asked)
    assert (code, err) == (0, "")
    model = fk.kpca(X, "gaussian", 3, sigma=1.5, max_features=20, rng=3)
    other = numbers_of(fine("fit", *asked, "--seed", 3))
    found = np.column_stack([model.eigenvalues, model.eigenvalue_bounds])
    assert other[:, :3] == pytest.approx(found, rel=1e-9) and numbers_of(out)[:, :3] != pytest.approx(found, rel=1e-9)
    assert "--max-features" in fails("fit", *asked[:-1], 2)


def test_plan_tells_of_a_looser_tol_that_makes_the_work_short(fine, table, monkeypatch):
    from fastkpca.fit import planning

    monkeypatch.setattr(planning, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(planning, "EASIER_FRACTION", 10.0)
    last = fine("plan", table, "--label-column", "kind", "-c", 3, "--tol", 1e-9).splitlines()[-1]
    assert last.startswith("this will take about ") and " s with --tol 0.0001, where" in last


def test_the_default_number_of_components_is_one_that_a_short_file_has(run, fails, fine, here, X):
    np.savetxt("x.csv", X[:4], delimiter=",")
    for command in ("fit", "plan"):
        code, _, err = run(command, "x.csv")
        assert (code, err) == (0, "fastkpca: note: 3 components in place of 5: 4 rows have no more\n")
        assert run(command, "x.csv", "--quiet")[2] == ""
        code, _, err = run(command, "x.csv", "-c", 5)  # a number that was given
        assert code == 1 and "give -c of at most 3" in err
    out = fine("fit", "x.csv", "-c", "all")
    assert "components        3\n" in out
    np.save("x.npy", X)  # fewer than the default, of four columns, are no warning
    out = fine("fit", "x.npy", "--kernel", "linear")
    assert "components        4\n" in out
    code, out, err = run("fit", "x.npy", "--kernel", "linear", "-c", 5)
    assert code == 0 and err.startswith("fastkpca: warning: 5 components asked for, 4 returned")
    assert err.count("\n") == 1 and len(numbers_of(out)) == 4
    (here / "two.csv").write_text("1,2\n3,5\n")
    assert run("fit", "two.csv")[::2] == (0, "fastkpca: note: 1 component in place of 5: 2 rows have no more\n")
    (here / "one.csv").write_text("1,2\n")
    err = fails("fit", "one.csv")
    assert err.startswith("fastkpca: error: X has 1 row;") and err.count("\n") == 1


def test_columns_of_missing_values_by_name(run, fails, here, X):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow.parquet")
    X[5, 1] = X[7:9, 3] = np.nan
    pandas.DataFrame(X, columns=["a", "b", "c", "d"]).to_parquet("x.parquet")
    expected = "missing values (NaN) or infinities in column 2 ('b'): 1 row, column 4 ('d'): 2 rows;"
    for command in (["fit"], ["plan"]):
        err = fails(*command, "x.parquet")
        assert expected in err
    assert run("fit", "x.parquet", "--skip-columns", "b,d")[0] == 0


def test_every_command_has_examples_that_parse(run):
    import shlex

    for name, text in parsing.EXAMPLES.items():
        code, out, _ = run(*([name] if name else []), "--help")
        assert code == 0 and text.splitlines()[-1] in out
        for line in text.splitlines()[1:]:
            call = line.split("|")[-1].split("  fastkpca ")[-1].split("fastkpca ")[-1].split("      ")[0].split(">")[0]
            if "COMMAND" not in call:
                parsing.parser_of_all().parse_all(shlex.split(call))


def test_standardize(run, fine, here, X):
    X[:, 1] *= 1e4
    np.save("x.npy", X)
    new = X[:5] + 0.5
    np.save("new.npy", new)
    code, _, err = run("fit", "x.npy", "-c", 3)
    assert code == 0 and "--standardize scales all columns alike (--no-standardize leaves" in err
    assert run("fit", "x.npy", "-c", 3, "--no-standardize", "--quiet") == (0, "", "")
    out = fine("fit", "x.npy", "-c", 3, "--standardize", "-o", "m.kpca")
    assert "standardize       yes: each column minus its mean" in run("info", "m.kpca")[1]
    expected = fk.kpca(X, "gaussian", 3, standardize=True)
    assert numbers_of(out)[:, 0] == pytest.approx(expected.eigenvalues, rel=1e-11)
    code, out, _ = run("project", "m.kpca", "new.npy", "--digits", 17)
    shown = np.loadtxt(io.StringIO(out), delimiter=",", skiprows=1)
    np.testing.assert_array_equal(shown, fk.kpca_project(expected, new))


@pytest.mark.parametrize("kind", ["csv", "csv without names", "npy"])
def test_columns_in_warnings_are_numbered_and_named_as_in_the_file(run, fails, here, X, kind):
    X[:, 2] *= 1e6
    if kind == "npy":
        np.save("x.npy", np.c_[np.arange(len(X)), X])
    else:
        lines = [f"row{i}," + ",".join(map(repr, row)) for i, row in enumerate(X.tolist())]
        (here / "x.csv").write_text("\n".join(["name,a,b,c,d"] * (kind == "csv") + lines) + "\n")
    small = "column 2 ('a'), column 3 ('b'), column 5 ('d')" if kind == "csv" else "column 2, column 3, column 5"
    for command in ("fit", "plan"):
        code, _, err = run(command, f"x.{kind[:3]}", "--id", 1, "-c", 2)
        assert code == 0 and f"that of column 4{' (' * (kind == 'csv')}" in err and f"range of {small}, so" in err
    if kind == "csv":
        code, _, err = run("fit", "x.csv", "--id", "name", "--sigma", "1,2,3,4", "--standardize", "-c", 2)
        assert code == 0 and err == ""
    X[3, 3] = np.nan
    np.save("x.npy", X)
    assert "infinities in column 4: 1 row;" in fails("fit", "x.npy", "--skip-columns", 1)


def test_streams_that_are_closed(run, fails, here, table, capsys, monkeypatch):
    assert run("fit", table, *FIT, "--label-column", "kind", "-o", "m.kpca", "--quiet")[0] == 0
    for arguments in (("project", "m.kpca", table, "--skip-columns", "kind"), ("info", "m.kpca"), ("kernels",)):
        monkeypatch.setattr(sys, "stdout", None)
        assert cli.main(list(arguments)) == 1
        assert "error: standard output is closed" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", None)
    assert "error: standard input is closed" in fails("fit", "-")
    monkeypatch.setattr(sys, "stderr", None)
    code, out, _ = run("fit", "nothing.csv")  # else the error would stand among the scores
    sys.stderr.close()
    assert (code, out) == (1, "")


@pytest.mark.skipif(os.name == "nt", reason="no pipes with names")
def test_a_pipe_is_no_model(fails, here):
    os.mkfifo("m.kpca")
    assert "m.kpca is a pipe or a device" in fails("info", "m.kpca")


def test_widths_for_each_column(run, fails, here):
    X = np.random.default_rng(0).standard_normal((60, 3))
    np.save("x.npy", X)
    assert run("fit", "x.npy", "--sigma", "0.5,1,2", "-o", "m.kpca")[0] == 0
    model = fk.load("m.kpca")
    assert model.kernel.widths == (0.5, 1.0, 2.0)
    np.testing.assert_array_equal(model.eigenvalues, fk.kpca(X, "gaussian", 5, sigma=[0.5, 1, 2]).eigenvalues)
    assert run("fit", "x.npy", "--param", "sigma=0.5,1,2", "-o", "n.kpca")[0] == 0
    np.testing.assert_array_equal(fk.load("n.kpca").eigenvalues, model.eigenvalues)
    assert "has 2 widths, and X has 3 columns" in fails("fit", "x.npy", "--sigma", "1,2")
