"""Rows on disk: seconds for each million of them, peak memory and certified width, as N grows beyond memory.

    python benchmarks/speed/beyond_memory.py [--folder DIR] [--largest 1e8] [--threads 1 2] [--check] [--sklearn]

Writes a float32 memory map of N x 4 rows, uniform in the unit cube (1.6 GB for N = 1e8), fits polynomial degree 3 and
Gaussian sigma 1 with c = 10 and no scores, each in a process of its own, and deletes the file. Memory is the peak
resident set beyond that of the interpreter with fastkpca imported. Times are processor seconds of the process, so
that other work on the machine counts little; the growth exponent is from the smallest N to the largest. The file has
just been written, so what of it fits into the page cache is there; --cold asks the system to drop it before each run.
With --check the intervals must contain what was found otherwise: for the polynomial the eigenvalues of the moments of
the monomials up to degree 6, summed in long double by numpy alone; for the Gaussian the intervals of a finer map (tol
1e-10, 1e-6 for more than 1e7 rows). With --sklearn the largest N is sought at which scikit-learn's KernelPCA (arpack)
ends within two minutes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import common  # (limits threads before numpy is imported)
import numpy as np

KERNELS = {
    "polynomial, degree 3": ("polynomial", {"degree": 3, "offset": 1.0}),
    "Gaussian, sigma 1": ("gaussian", {"sigma": 1.0}),
}
COLUMNS = 4


def write(path: Path, n: int) -> None:
    """A file of n rows, a million at a time, from a generator whose seed is the number of the million."""
    with open(path, "wb") as file:
        for start in range(0, n, 1_000_000):
            rng = np.random.default_rng(start)
            file.write(rng.random((min(1_000_000, n - start), COLUMNS), dtype=np.float32).tobytes())


def fit(path: str, n: int, which: str, threads: int, tol: float) -> dict:
    import warnings

    import fastkpca as fk

    warnings.simplefilter("ignore")
    name, parameters = KERNELS[which]
    fk.kpca(np.random.default_rng(0).standard_normal((64, COLUMNS)), name, 2, **parameters)  # everything is imported
    before = common.peak_memory()
    X = np.memmap(path, dtype=np.float32, mode="r", shape=(n, COLUMNS))
    started, used = time.perf_counter(), time.process_time()
    model = fk.kpca(X, name, 10, tol=tol, method="features", return_scores=False, n_threads=threads, **parameters)
    found = {
        "seconds": time.process_time() - used,
        "wall": time.perf_counter() - started,
        "memory": common.peak_memory() - before,
        "width": float(np.ptp(model.eigenvalue_bounds, axis=1).max() / model.eigenvalues[0]),
        "kind": model.bound_kind,
        "features": model.info["n_features"],
        "map": model.plan.name,
        "bounds": model.eigenvalue_bounds.tolist(),
    }
    return found


def polynomial_reference(path: str, n: int) -> np.ndarray:
    """The 10 largest eigenvalues for (x.y + 1)^3, from sums of monomials in long double: nothing of fastkpca."""
    X = np.memmap(path, dtype=np.float32, mode="r", shape=(n, COLUMNS))
    low = [a for a in itertools.product(range(4), repeat=COLUMNS) if sum(a) <= 3]
    pairs = {}
    for a, b in itertools.combinations_with_replacement(range(len(low)), 2):
        pairs.setdefault(tuple(i + j for i, j in zip(low[a], low[b])), (a, b))
    sums = np.zeros(len(pairs), dtype=np.longdouble)
    for start in range(0, n, 4096):
        x = np.array(X[start : start + 4096].T, dtype=np.longdouble)
        powers = np.stack([np.ones_like(x), x, x * x, x * x * x])
        tile = np.stack([np.prod([powers[k, i] for i, k in enumerate(a) if k] or [powers[0, 0]], axis=0) for a in low])
        sums += [tile[a] @ tile[b] for a, b in pairs.values()]
    moment = dict(zip(pairs, sums))
    # (x.y + 1)^3 = sum of 3! / (alpha! (3 - |alpha|)!) x^alpha y^alpha
    f = math.factorial
    root = [np.sqrt(np.longdouble(6) / (math.prod(map(f, a)) * f(3 - sum(a)))) for a in low]
    C = [
        [
            root[a]
            * root[b]
            * (moment[tuple(i + j for i, j in zip(low[a], low[b]))] - moment[low[a]] * moment[low[b]] / n)
            for b in range(len(low))
        ]
        for a in range(len(low))
    ]
    return np.linalg.eigvalsh(np.array(C, dtype=np.float64))[::-1][:10]


def fit_sklearn(n: int, which: str) -> dict:
    from sklearn.decomposition import KernelPCA

    X = np.random.default_rng(0).random((n, COLUMNS))
    kernel = {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0}
    if which.startswith("Gaussian"):
        kernel = {"kernel": "rbf", "gamma": 0.5}
    before, used = common.peak_memory(), time.process_time()
    KernelPCA(10, eigen_solver="arpack", **kernel).fit(X)
    return {"seconds": time.process_time() - used, "memory": common.peak_memory() - before}


def apart(*arguments: str) -> dict | None:
    """A run in a process of its own; None where it takes more than fifty minutes or dies."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--one", *arguments], capture_output=True, text=True, check=True, timeout=3000
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        print(f"# {error} {getattr(error, 'stderr', '') or ''}"[-400:])
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def drop(path: Path) -> None:
    """Out of the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def check(path: Path, n: int, which: str, bounds: np.ndarray) -> None:
    """Whether the intervals contain what was found in another way."""
    if which.startswith("polynomial"):
        values = apart("reference", str(path), str(n))
        low = high = np.array(values)
        how, slack = "moments in long double", 1e-14 * high[0]
    else:
        tol = 1e-10 if n <= 10**7 else 1e-6
        finer = apart("fit", str(path), str(n), which, "1", str(tol))
        assert finer is not None
        low, high = np.array(finer["bounds"]).T
        how, slack = f"{finer['features']} features, tol = {tol:g}, width {finer['width']:.1e}", 0.0
    inside = (bounds[:, 0] <= low + slack) & (high <= bounds[:, 1] + slack)
    place = ((low + high) / 2 - bounds[:, 0]) / np.ptp(bounds, axis=1)
    print(
        f"# {inside.sum()} of {len(bounds)} intervals contain those of another way ({how}); it lies at "
        f"{place.min():.2f} to {place.max():.2f} of their widths",
        flush=True,
    )
    if not inside.all():
        raise SystemExit("an interval does not hold")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--largest", type=float, default=1e8)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--sklearn", action="store_true")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        task, *rest = options.one
        if task == "sklearn":
            print(json.dumps(fit_sklearn(int(rest[0]), rest[1])))
        elif task == "reference":
            print(json.dumps(polynomial_reference(rest[0], int(rest[1])).tolist()))
        else:
            print(json.dumps(fit(rest[0], int(rest[1]), rest[2], int(rest[3]), float(rest[4]))))
        return
    sizes = [n for n in (10**6, 10**7, 10**8) if n <= options.largest]
    need = 4 * COLUMNS * sizes[-1]
    free = shutil.disk_usage(options.folder).free
    if free < 1.5 * need:
        raise SystemExit(f"{need / 1e9:.2g} GB are needed in {options.folder}, {free / 1e9:.2g} GB are free")
    path = Path(options.folder) / "beyond_memory.bin"
    cache = "cold page cache" if options.cold else "warm page cache"
    common.header(f"c = 10, tol = {options.tol:g}, {COLUMNS} columns of float32, no scores, {cache}", "threads as said")
    print("| kernel | threads | N | features | seconds for each 1e6 rows | wall s | MB above | width |")
    print("|---|---|---|---|---|---|---|---|")
    spent: dict[tuple[str, int], list[tuple[int, float]]] = {}
    try:
        for n in sizes:
            write(path, n)
            for which, threads in itertools.product(KERNELS, options.threads):
                if options.cold:
                    drop(path)
                found = apart("fit", str(path), str(n), which, str(threads), str(options.tol))
                if found is None:
                    continue
                spent.setdefault((which, threads), []).append((n, found["seconds"]))
                print(
                    f"| {which} | {threads} | {n:.0e} | {found['features']} | {found['seconds'] / n * 1e6:.3f} "
                    f"| {found['wall']:.1f} | {found['memory']:.0f} | {found['width']:.0e}, {found['kind']} |",
                    flush=True,
                )
                if options.check and threads == options.threads[0]:
                    check(path, n, which, np.array(found["bounds"]))
    finally:
        path.unlink(missing_ok=True)
    for (which, threads), runs in spent.items():
        if len(runs) > 1:
            (a, s), (b, t) = runs[0], runs[-1]
            power = np.log(t / s) / np.log(b / a)
            print(f"# {which}, {threads} thread(s): seconds grow as N^{power:.3f} from {a:.0e} to {b:.0e}")
    if options.sklearn:
        for which in KERNELS:
            for n in (5000, 10000, 20000, 40000):
                found = apart("sklearn", str(n), which)
                if found is None:
                    break
                print(
                    f"# scikit-learn, {which}: N = {n}, {found['seconds']:.1f} s, {found['memory']:.0f} MB", flush=True
                )
                if found["seconds"] > 120:
                    break


if __name__ == "__main__":
    main()
