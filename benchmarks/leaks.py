"""Bytes that a call leaves behind: every public function on every kind of model, by the resident set.

    python benchmarks/leaks.py                    # the table; about ten minutes
    python benchmarks/leaks.py --calls 100000     # at most so many calls of each, however long they take
    python benchmarks/leaks.py --only project     # the rows of the table whose name holds this

Each kind of model is a process of its own. Some calls fill what is kept on purpose; then come as many calls as the time
for a row allows. Bytes a call are the growth of the resident set after ``malloc_trim``. Growth by some pages of 4096
bytes over many calls is nothing; what leaks grows in the second half of the calls as in the first.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import fastkpca as fk

MAX_CALLS = 100_000
ROW_SECONDS = 1.2
WARM_UP_SECONDS = 0.4
NOISE_BYTES = 1 << 18
"""Growth of the resident set that calls may show which keep nothing: arenas of Python and malloc fill up."""

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
Y = X[:5] + 0.1
K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
one = {"n_threads": 1}
MODELS: dict[str, Callable[[], Any]] = {
    "linear": lambda: fk.kpca(X, "linear", 2, keep_moments=True, **one),
    "polynomial": lambda: fk.kpca(X, "polynomial", 2, degree=2, features="monomial", keep_moments=True, **one),
    "taylor": lambda: fk.kpca(X, "gaussian", 2, sigma=3.0, tol=1e-6, features="monomial", keep_moments=True, **one),
    "single": lambda: fk.kpca(X.astype(np.float32), "polynomial", 2, degree=2, features="monomial", **one),
    "fourier": lambda: fk.kpca(X, "gaussian", 2, sigma=2.0, tol=1e-3, features="fourier", keep_moments=True, **one),
    "pivots": lambda: fk.kpca(X, "gaussian", 2, sigma=2.0, tol=1e-3, features="pivots", keep_moments=True, **one),
    "dense": lambda: fk.kpca(X, "gaussian", 2, sigma=1.0, method="dense", **one),
    "krylov": lambda: fk.kpca(X, "gaussian", 2, sigma=1.0, method="krylov", **one),
    "weighted": lambda: fk.kpca(X, "gaussian", 2, sigma=1.0, sample_weight=np.arange(60) % 3, **one),
    "tanh": lambda: fk.kpca(X, "tanh", 2, **one),
    "precomputed": lambda: fk.kpca(K, "precomputed", 2, **one),
    "sum": lambda: fk.kpca(X, fk.get_kernel("gaussian", sigma=2.0) + fk.get_kernel("linear"), 2, **one),
    "columns": lambda: fk.kpca(X, fk.on_columns("gaussian", [0, 2], sigma=1.0), 2, **one),
    "standardized": lambda: fk.kpca(X, "gaussian", 2, sigma=1.0, standardize=True, **one),
    "function": lambda: fk.kpca(X, lambda A, B: A @ B.T, 2, **one),
}


def of_model(name: str, make: Callable[[], Any], folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The calls on one kind of model."""
    model = make()
    new = K[:5] if name == "precomputed" else Y
    rows = K if name == "precomputed" else X
    holed = Y.copy()
    holed[1, 1] = np.nan
    path = folder / "model.kpca"
    yield "fit", make
    yield "project", lambda: fk.kpca_project(model, new, **one)
    yield "spe", lambda: fk.kpca_spe(model, new, **one)
    yield "spe, bounds", lambda: fk.kpca_spe(model, new, bounds=True, **one)
    yield "t2", lambda: fk.kpca_t2(model, new, **one)
    yield "limits", lambda: fk.kpca_limits(model, rows, confidence=0.9, **one)
    yield "contributions", lambda: fk.kpca_contributions(model, new, train=rows, **one)
    yield "contributions, t2", lambda: fk.kpca_contributions(model, new, train=rows, statistic="t2", **one)
    yield "fill", lambda: fk.kpca_fill(model, holed, train=X, **one)
    yield "preimage", lambda: fk.kpca_preimage(model, model.score[:3], train=X, **one)
    yield "denoise", lambda: fk.kpca_denoise(model, new, train=X, **one)
    yield "importance", lambda: fk.kpca_importance(model, rows, **one)
    yield "uncertainty", lambda: fk.kpca_uncertainty(model, rows, n_bootstrap=100, **one)
    yield "update", lambda: fk.kpca_update(model, new, **one)
    yield "merge", lambda: fk.kpca_merge(model, model)
    yield "like", lambda: fk.kpca(rows, like=model, **one)
    yield "save", lambda: fk.save(model, path, overwrite=True)
    yield "load", lambda: fk.load(path)
    yield "export_mat", lambda: fk.export_mat(model, folder / "model.mat", overwrite=True)
    yield "text", lambda: (repr(model), str(model), model._repr_html_())


def of_rows(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The calls without a model."""
    np.save(folder / "rows.npy", X)
    G = {product: fk.gram(X, "gaussian", sigma=1.0, products=product) for product in ("exact", "auto")}
    P, F, U = fk.gram(X, "polynomial", degree=2), fk.features(X, "gaussian", sigma=2.0, tol=1e-3), np.ones((60, 2))
    import scipy.sparse as sp

    sources = {
        "map": lambda: np.load(folder / "rows.npy", mmap_mode="r"),
        "map, reversed": lambda: np.load(folder / "rows.npy", mmap_mode="r")[::-1, ::-1],
        "private map": lambda: np.load(folder / "rows.npy", mmap_mode="c"),
        "blocks": lambda: lambda: iter([X[:20], X[20:]]),
        "csr": lambda: sp.csr_array(X),
        "csc": lambda: sp.csc_array(X),
        "lists": X.tolist,
        "objects": lambda: X.astype(object),
        "integers": lambda: (10 * X).astype(np.int64),
    }
    for name, source in sources.items():
        yield f"fit, {name}", lambda source=source: fk.pca(source(), 2, **one)
    for name, matrix in G.items():
        yield f"gram @ U, {name}", lambda matrix=matrix: matrix @ U
    yield "gram @ U, polynomial", lambda: P @ U
    yield "gram, centred", lambda: G["exact"].centered() @ U
    yield "gram.diagonal", lambda: G["exact"].diagonal()
    yield "gram", lambda: fk.gram(X, "gaussian", sigma=1.0)
    yield "gram(X, Y)", lambda: fk.gram(X, "gaussian", Y, sigma=1.0) @ np.ones(5)
    yield "features", lambda: fk.features(X, "gaussian", sigma=2.0, tol=1e-3)
    yield "features.T @ U", lambda: F.T @ U
    yield "features @ A", lambda: F @ np.ones(F.shape[1])
    yield "features.moments", lambda: F.moments()
    yield "plan", lambda: fk.plan(X, "gaussian", 2, sigma=1.0)
    yield "select", lambda: fk.kpca_select(X, "gaussian", [1, 2], folds=2)
    yield "get_kernel", lambda: fk.get_kernel("gaussian", sigma=2.0).block(X, Y)
    yield "on_columns", lambda: fk.on_columns("gaussian", [0, 1], sigma=1.0)
    yield "list_kernels", lambda: str(fk.list_kernels())
    yield "list_methods", lambda: list(fk.list_methods())
    yield "get_method", lambda: fk.get_method(next(iter(fk.list_methods())).name)
    yield "refused", lambda: refused(lambda: fk.kpca(X, "gaussian", 2, sigma=-1.0))
    yield "refused, NaN", lambda: refused(lambda: fk.pca(np.where(X > 1.0, np.nan, X), 2))


def refused(call: Callable[[], Any]) -> None:
    try:
        call()
    except ValueError:
        return
    raise AssertionError("this is refused")


def calls(folder: Path) -> Iterator[tuple[str, Callable[[], Iterator[tuple[str, Callable[[], Any]]]]]]:
    """(name, the calls) of each kind of model, and of none."""
    for name, make in MODELS.items():
        yield name, lambda name=name, make=make: of_model(name, make, folder)
    yield "none", lambda: of_rows(folder)


def resident() -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def measured(call: Callable[[], Any], most: int, seconds: float) -> tuple[int, int, int, float]:
    """(calls, growth in the first and in the second half, seconds)."""
    end, warm = time.perf_counter() + WARM_UP_SECONDS, 0
    while warm < 3 or (time.perf_counter() < end and warm < most // 4):
        call()
        warm += 1
    start = time.perf_counter()
    call()
    each = max(time.perf_counter() - start, 1e-7)
    half = max(2, min(most, int(seconds / each)) // 2)
    sizes = [resident()]
    start = time.perf_counter()
    for _ in range(2):
        for _ in range(half):
            call()
        sizes.append(resident())
    return 2 * half, sizes[1] - sizes[0], sizes[2] - sizes[1], time.perf_counter() - start


def table(kind: str, only: str, most: int, seconds: float) -> int:
    """Print the rows of one kind of model; how many of them leak."""
    warnings.simplefilter("ignore")
    leaks = 0
    with tempfile.TemporaryDirectory() as folder:
        made = dict(calls(Path(folder)))[kind]()
        for name, call in made:
            if only and only not in name:
                continue
            try:
                call()
            except (ValueError, TypeError, OSError) as error:
                text = " ".join(str(error).split())
                print(f"{kind:13} {name:22} {'refused':>8}  {text[:90]}", flush=True)
                continue
            count, first, second, took = measured(call, most, seconds)
            leaky = min(first, second) > NOISE_BYTES and second / count > 1.0
            leaks += leaky
            print(
                f"{kind:13} {name:22} {count:8} calls {1e6 * took / count:10.1f} us each "
                f"{(first + second) / count:9.2f} bytes a call, {2 * second / count:9.2f} in the second half"
                f"{'  LEAK' if leaky else ''}",
                flush=True,
            )
    return leaks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="calls whose name holds this")
    parser.add_argument("--kind", default="", help="this kind of model alone, in this process")
    parser.add_argument("--calls", type=int, default=0, help=f"of each; default: those of {ROW_SECONDS} s")
    given = parser.parse_args()
    most, seconds = given.calls or MAX_CALLS, 1e9 if given.calls else ROW_SECONDS
    if given.kind:
        return min(table(given.kind, given.only, most, seconds), 100)
    print(f"fastkpca {fk.__version__}, Python {sys.version.split()[0]}, numpy {np.__version__}")
    again = [sys.executable, __file__, "--only", given.only, "--calls", str(given.calls), "--kind"]
    leaks = sum(subprocess.run([*again, kind], check=False).returncode for kind, _ in calls(Path(".")))
    print(f"{leaks} leaks")
    return int(leaks > 0)


if __name__ == "__main__":
    sys.exit(main())
