"""Advice on rows and of the command line: (a call that fails, words of its message, the call after that)."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import dask.array
import dask.dataframe
import numpy as np
import numpy.lib.recfunctions
import pandas as pd
import pyarrow
import scipy.sparse
import xarray
from advice import FOLDER, GAPS, SPARE, Case, X, fitted, without_warnings

import fastkpca as fk
from fastkpca import cli

FRAME = pd.DataFrame(X, columns=list("abcd"))
WIDE = X * [1.0, 1e5, 1.0, 1.0]
WHOLE = (X * 10).round().astype(np.int64)
HUGE = WHOLE.astype(object) * 10**400
LONG = X.astype(np.longdouble) * np.longdouble(10) ** 400 if np.finfo(np.longdouble).max > 1e308 else X
ROUNDED = WHOLE.astype(object) + 2**60 * (np.arange(4) == 2).astype(object)
WORD = X.astype(object)
WORD[3, 2] = "a"
DAMAGED = scipy.sparse.csr_array(X)
DAMAGED.indices[0] = 99
TINY = np.column_stack([X, X[:, 0] * 1e-200])


class mat_struct:
    """As scipy reads a struct of MATLAB."""

    _fieldnames = ["X"]
    X = X


def fit(rows: Any, **options: Any) -> Any:
    return fk.kpca(rows, "gaussian", 2, **{"sigma": 2.0} | options)


def project(out: Any) -> Any:
    return fk.kpca_project(fitted(), X, out=out)


def place(n: int = 60, **options: Any) -> np.ndarray:
    return np.empty((n, 2), **options)


def read_only() -> np.ndarray:
    out = place()
    out.flags.writeable = False
    return out


def blocks(*frames: Any) -> Any:
    return fit(lambda: iter(frames))


def command(*arguments: Any) -> None:
    """The command line; its error is raised, without its name."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = without_warnings(lambda: cli.main([str(x) for x in arguments]))
        except SystemExit as left:
            code = left.code
    if code not in (0, 3):  # 3: alarms
        words = said.getvalue().strip().splitlines()[-1].partition("error: ")[2]
        raise ValueError(re.sub(r"^argument [^:]*: | \(see '.*'\)$", "", words))


def written(name: str, rows: np.ndarray = X) -> Any:
    times = pd.date_range("2026-03-01", periods=len(rows), freq="h")
    pd.DataFrame(rows, times, [f"x{i}" for i in range(rows.shape[1])]).to_csv(FOLDER / name, index_label="time")
    return FOLDER / name


CSV = written("rows.csv")
OTHER = written("other.csv", SPARE)
FIELDS = np.array([tuple(row) for row in X], dtype=[(name, float) for name in "abcd"])
EMPTY = np.where(np.arange(4) == 3, np.nan, X)
PLAIN = FOLDER / "plain.npy"
np.save(PLAIN, X)
MISSING = FOLDER / "missing.npy"
np.save(MISSING, GAPS)


def array(name: str, *rows: Any, **arrays: Any) -> Any:
    (np.savez if arrays else np.save)(FOLDER / name, *rows, **arrays)
    return FOLDER / name


def text(name: str, content: bytes) -> Any:
    (FOLDER / name).write_bytes(content)
    return FOLDER / name


def model(name: str, *more: Any, names: Any = ("--id", "time")) -> Any:
    command("fit", CSV, "--kernel", "gaussian", "-c", 2, *names, "-o", FOLDER / name, "--force", *more)
    return FOLDER / name


def monitor(*more: Any, of: Any = (), names: Any = ("--id", "time")) -> None:
    command("monitor", model("monitored.kpca", *of, names=names), OTHER, "--force", *more)


def demo(folder: Any, *more: Any) -> None:
    command("demo", "--output", folder, *more)


def full_folder() -> Any:
    folder = FOLDER / "full"
    folder.mkdir(exist_ok=True)
    (folder / "other.txt").write_text("x")
    return folder


CASES: dict[str, Case] = {
    # what is given as rows
    "rows of other columns": (
        lambda: fk.kpca_project(fitted(), X[:, :3]),
        "give the same columns in the same order",
        lambda: fk.kpca_project(fitted(), X),
    ),
    "columns of different ranges": (
        lambda: fk.kpca(WIDE, "gaussian", 2),
        "standardize=True scales all columns alike (standardize=False leaves them",
        lambda: [fk.kpca(WIDE, "gaussian", 2, standardize=x) for x in (True, False)],
    ),
    "a number beyond float64": (lambda: fit(HUGE), "rescale it", lambda: fit(HUGE // 10**400)),
    "a long double beyond float64": (lambda: fit(LONG), "rescale it", lambda: fit(LONG / np.longdouble(10) ** 400)),
    "whole numbers that round": (
        lambda: fk.kpca(ROUNDED, "linear", 2, standardize=False),
        "subtract an offset from its column first, or make",
        lambda: [fk.kpca(x, "linear", 2, standardize=False) for x in (WHOLE.astype(object), ROUNDED.astype(np.int64))],
    ),
    "a word among numbers": (lambda: fit(WORD), "convert, drop or impute these", lambda: fit(np.delete(WORD, 3, 0))),
    "a damaged sparse matrix": (
        lambda: fit(DAMAGED),
        "scipy.sparse.csr_array((values, (rows, columns)), shape)",
        lambda: fit(scipy.sparse.csr_array((X.ravel(), np.indices(X.shape).reshape(2, -1)), X.shape)),
    ),
    "blocks of other columns": (
        lambda: blocks(FRAME[:30], FRAME[30:][list("dcba")]),
        "give each block the same columns in the same order",
        lambda: blocks(FRAME[:30], FRAME[30:]),
    ),
    "a copy that is too large": (
        lambda: fit(np.asfortranarray(np.tile(X, (900, 1)).astype(object)), memory_limit="1MB"),
        "raise memory_limit",
        lambda: fit(np.tile(X, (900, 1)), tol=1e-2),
    ),
    "a Dask series": (
        lambda: fit(dask.dataframe.from_pandas(FRAME, npartitions=2)["a"]),
        "give a frame, X.to_frame()",
        lambda: fit(dask.dataframe.from_pandas(FRAME, npartitions=2)["a"].to_frame(), features="pivots", tol=1e-3),
    ),
    "a delayed object": (
        lambda: fit(dask.delayed(np.array)(X)),
        "dask.array.from_delayed makes an array of delayed blocks",
        lambda: fit(dask.array.from_delayed(dask.delayed(np.array)(X), X.shape, float), features="pivots", tol=1e-3),
    ),
    "a Dataset": (
        lambda: fit(dataset()),
        "a variable of it, or X.to_dataarray('column').transpose(..., 'column')",
        lambda: fit(dataset().to_dataarray("column").transpose(..., "column")),
    ),
    "a struct": (lambda: fit(mat_struct()), "give one of its fields, as X.X", lambda: fit(mat_struct().X)),
    "a reader of Arrow": (
        lambda: fit(arrow().to_reader()),
        "give a Table, a ParquetFile or a Dataset",
        lambda: fit(arrow()),
    ),
    "a column of tiny range": (
        lambda: fit(TINY, standardize=True),
        "multiply it by a power of ten, or leave it out",
        lambda: [fit(TINY * 10.0 ** (200 * (np.arange(5) == 4)), standardize=True), fit(X, standardize=True)],
    ),
    "a negative weight": (
        lambda: fitted(sample_weight=-np.ones(60)),
        "give 60 numbers, zero or positive, one for each row",
        lambda: fitted(sample_weight=np.arange(60.0)),
    ),
    "out of another shape": (lambda: project(place(9)), "give", lambda: project(place())),
    "out that repeats itself": (
        lambda: project(np.lib.stride_tricks.as_strided(place(), (60, 2), (0, 8))),
        "give",
        lambda: project(place()),
    ),
    "out that is read-only": (lambda: project(read_only()), "give", lambda: project(place())),
    "out that is X": (
        lambda: fk.kpca_project(fk.kpca(X[:, :2], "linear", 2), OWN, out=OWN),
        "give",
        lambda: fk.kpca_project(fk.kpca(X[:, :2], "linear", 2), OWN, out=place()),
    ),
    # the command line
    "one component, or all": (
        lambda: command("fit", CSV, "-c", "1.0"),
        "write 1 or all",
        lambda: [command("fit", CSV, "-c", c, "--id", "time") for c in ("1", "all")],
    ),
    "a demo in a file": (
        lambda: demo(CSV),
        "choose another folder with --output",
        lambda: demo(FOLDER / "demo", "--quiet"),
    ),
    "a demo among files": (
        lambda: demo(full_folder()),
        "choose another with --output, or add the demo's files to it with --force",
        lambda: [demo(FOLDER / "another"), demo(full_folder(), "--force")],
    ),
    "a model on standard output": (
        lambda: command("fit", CSV, "-o", "-"),
        "give -o NAME.kpca",
        lambda: model("a.kpca"),
    ),
    "limits without a model": (
        lambda: command("fit", CSV, "--id", "time", "--limits", 0.9),
        "give -o NAME.kpca, too",
        lambda: model("b.kpca", "--limits", 0.9),
    ),
    "limits of two rows": (
        lambda: command("fit", written("two.csv", X[:2]), "--id", "time", "--limits", 0.9, "-o", FOLDER / "e.kpca"),
        "give more rows",
        lambda: model("c.kpca", "--limits", 0.9),
    ),
    "missing values in a file": (
        lambda: command("fit", MISSING, "-c", 2),
        "(--drop-missing drops those with NaN, --fill-missing lets the model fill them), or leave the columns out with",
        lambda: [
            command("fit", MISSING, "-c", 2, *more)
            for more in (["--drop-missing"], ["--fill-missing"], ["--skip-columns", "3"])
        ],
    ),
    "two on standard output": (
        lambda: monitor("--json", "-o", "-", of=["--limits", 0.9]),
        "give -o a file",
        lambda: monitor("--json", "-o", FOLDER / "d.csv", of=["--limits", 0.9]),
    ),
    "since when": (
        lambda: monitor("--since", "2026-03-02T06:00", of=["--limits", 0.9, "--skip-columns", "time"], names=()),
        "give --id COLUMN",
        lambda: monitor("--since", "2026-03-02T06:00", "--id", "time", of=["--limits", 0.9]),
    ),
    "two tables": (
        lambda: command("fit", array("two.npz", A=X, B=X)),
        "choose one with --var: ",
        lambda: command("fit", array("two.npz", A=X, B=X), "--var", "A"),
    ),
    "a folder of nothing": (lambda: command("fit", FOLDER), "give a file", lambda: command("fit", PLAIN)),
    "a variable of one array": (
        lambda: command("fit", PLAIN, "--var", "A"),
        "leave out --var A",
        lambda: command("fit", PLAIN),
    ),
    "fields": (
        lambda: command("fit", array("fields.npy", FIELDS)),
        "numpy.lib.recfunctions.structured_to_unstructured(X)",
        lambda: command("fit", array("fields.npy", numpy.lib.recfunctions.structured_to_unstructured(FIELDS))),
    ),
    "a column without values in a file": (
        lambda: command("fit", array("empty.npy", EMPTY), "--drop-missing"),
        "take others (--columns)",
        lambda: command("fit", array("empty.npy", EMPTY), "--drop-missing", "--columns", "1-3"),
    ),
    "one column twice": (
        lambda: command("fit", CSV, "--id", "time", "--label-column", "time"),
        "give --label-column alone",
        lambda: command("fit", CSV, "--label-column", "time"),
    ),
    "no names": (
        lambda: command("fit", PLAIN, "--columns", "a,b"),
        "give numbers (1 to 4), not 'a'",
        lambda: command("fit", PLAIN, "--columns", "1,2"),
    ),
    "a name twice": (
        lambda: command("fit", text("twice.csv", b"a,b,a\n1,2,3\n4,5,7\n8,8,1\n2,2,2\n"), "--columns", "a,b"),
        "give the number instead",
        lambda: command("fit", FOLDER / "twice.csv", "--columns", "1,2"),
    ),
    "decimal commas": (
        lambda: command("fit", text("commas.csv", b"a,b,c\n1,2,3\n4,5,7\n8,8,1\n2,2,2\n"), "--decimal", ","),
        "leave out --decimal , where commas separate columns",
        lambda: command("fit", FOLDER / "commas.csv"),
    ),
    "scores beside names": (
        lambda: model("f.kpca", "--scores", FOLDER / "f.npy"),
        "write .csv",
        lambda: model("f.kpca", "--scores", FOLDER / "f.csv"),
    ),
    "a file without limits": (
        lambda: monitor(),
        "fit it with --limits 0.99, which holds rows back for them, or give --normal FILE",
        lambda: [monitor(of=["--limits", 0.9]), monitor("--normal", OTHER, "--limits", 0.9)],
    ),
}
OWN = X[:, :2].copy()


def dataset() -> Any:
    return xarray.Dataset({name: ("row", X[:, j]) for j, name in enumerate("abcd")})


def arrow() -> Any:
    return pyarrow.table({name: X[:, j] for j, name in enumerate("abcd")})
