"""A CSV file from the command line: reading and fitting, beside what pandas and polars take to read it.

    python benchmarks/speed/csv_files.py [--rows 900000] [--repeats 3]

Writes a file of about 100 MB in the temporary folder, six columns of normal numbers with all their digits, and deletes
it. Each measurement is a process of its own on one thread, which first does the same with a small file, so that imports
do not count: processor seconds (median), and the most memory of the process. The last column says whether the numbers
that were read, or the eigenvalues of the fit, have the bits of those of the array that was written.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"

import common
import numpy as np

import fastkpca as fk

COLUMNS = 6
FIT = ("--kernel", "polynomial", "--degree", "2", "-c", "5", "--threads", "1", "--quiet")


def rows(n: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, COLUMNS))


def write(path: Path, n: int) -> None:
    with open(path, "w") as file:
        file.write(",".join("abcdef") + "\n")
        for row in rows(n).tolist():
            file.write(",".join(map(repr, row)) + "\n")


def read_pandas(path: str) -> np.ndarray:
    import pandas

    return pandas.read_csv(path).to_numpy()


def read_polars(path: str) -> np.ndarray:
    import polars

    return polars.read_csv(path).to_numpy()


def fit_array(path: str) -> np.ndarray:
    X = np.load(f"{path}.npy", mmap_mode="r")
    return fk.kpca(X, "polynomial", 5, degree=2, n_threads=1, return_scores=False).eigenvalues


def fit_file(path: str) -> np.ndarray:
    (command,) = metadata.entry_points(group="console_scripts", name="fastkpca")
    if command.load()(["fit", path, "--force", "-o", f"{path}.kpca", *FIT]):
        raise SystemExit("fastkpca fit failed")
    return fk.load(f"{path}.kpca").eigenvalues


READ: dict[str, Callable[[str], np.ndarray]] = {"pandas.read_csv": read_pandas, "polars.read_csv": read_polars}
FITTED: dict[str, Callable[[str], np.ndarray]] = {"fit of the array": fit_array, "fastkpca fit FILE": fit_file}
TASKS = READ | FITTED


def one(name: str, small: str, path: str) -> str:
    """Run one task in this process: its seconds, memory, and whether what it read is exact."""
    task = TASKS[name]
    task(small)
    started = time.process_time()
    found = task(path)
    seconds, memory = time.process_time() - started, common.peak_memory()
    expected = np.load(f"{path}.npy") if name in READ else fit_array(path)
    return f"{seconds} {memory} {'yes' if np.array_equal(found, expected) else 'no'}"


def compare(n: int, repeats: int, folder: Path) -> None:
    for path, count in ((folder / "small.csv", 50_000), (folder / "large.csv", n)):  # csv reads below 4 MB
        write(path, count)
        np.save(f"{path}.npy", rows(count))
    size = (folder / "large.csv").stat().st_size / 1e6
    common.header(f"CSV of {n} x {COLUMNS}, {size:.0f} MB")
    print("| what | processor seconds | most memory | equal bits |\n|---|---|---|---|")
    median: dict[str, float] = {}
    for name in TASKS:
        library = name.partition(".")[0]
        if "." in name and importlib.util.find_spec(library) is None:
            print(f"| {name} | not installed | | |")
            continue
        paths = [str(folder / x) for x in ("small.csv", "large.csv")]
        runs = [common.in_fresh_process(__file__, "--one", name, *paths).split() for _ in range(repeats)]
        median[name] = statistics.median(float(run[0]) for run in runs)
        memory = max(float(run[1]) for run in runs)
        print(f"| {name} | {median[name]:.2f} | {memory:.0f} MB | {''.join(runs[0][2:])} |", flush=True)
    if "pandas.read_csv" in median:
        most = 1.5 * median["pandas.read_csv"] + median["fit of the array"]
        print(
            f"\nfit of the file: {median['fastkpca fit FILE'] / most:.2f} of (1.5 pandas.read_csv + fit of the array)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=900_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=3, metavar=("TASK", "SMALL", "LARGE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(one(*options.one))
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(options.rows, options.repeats, Path(folder))


if __name__ == "__main__":
    main()
