"""Is memory_limit kept? Peak memory of every route beside its limit, and beside the plan's prediction.

    python tests/attacks/memory_limit.py                # the table of docs/scale.md
    python tests/attacks/memory_limit.py --only krylov  # the cases whose name holds this
    python tests/attacks/memory_limit.py --factors 1 4  # limits, in units of the least one that the plan accepts

Each run is a process of its own. Memory is its peak resident set (VmHWM, reset before the call) beyond what was
resident then: interpreter, libraries warmed up by a call on 200 rows, and the rows. The limit is the plan's own
prediction times a factor:

    1        the least limit that the plan accepts for this route
    2, 8     room into which a route may grow (a longer basis, more pivots)
    0.5, 0.1 less than it needs: the plan refuses, or finds another route within the limit

used / limit should never pass 1.1. used / predicted far below one would mean that the plan refuses what would fit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import command
from peak import peak

ITERABLE, MEMMAP, CSR, SINGLE, WEIGHTS, CLUSTERS, MATRIX, FAR = (
    "blocks", "memmap", "CSR", "float32", "weights", "clusters", "matrix", "far cluster",
)  # fmt: skip
CASES = [
    # name, kernel, N, d, what the rows are, parameters of kpca
    ("small, dense", "gaussian", 700, 40, "", {"method": "dense", "sigma": 3.0, "c": 20}),
    ("small, krylov", "gaussian", 700, 40, "", {"products": "exact", "sigma": 3.0, "c": 20}),
    ("small, pivots", "gaussian", 1000, 4, "", {"features": "pivots", "sigma": 2.0, "c": 3, "tol": 1e-3}),
    ("dense, c=1", "gaussian", 3000, 10, "", {"method": "dense", "sigma": 3.0, "c": 1}),
    ("dense", "gaussian", 2000, 10, "", {"method": "dense", "sigma": 3.0, "c": 10}),
    ("dense", "gaussian", 6000, 10, "", {"method": "dense", "sigma": 3.0, "c": 10}),
    ("dense, half", "gaussian", 3000, 10, "", {"method": "dense", "sigma": 3.0, "c": 1500}),
    ("dense, all", "gaussian", 3000, 10, "", {"method": "dense", "sigma": 3.0, "c": None}),
    ("dense, long rows", "gaussian", 2000, 5000, "", {"method": "dense", "sigma": 80.0, "c": 10}),
    ("dense", "gaussian", 3000, 10, WEIGHTS, {"method": "dense", "sigma": 3.0, "c": 10}),
    ("dense", "gaussian", 3000, 10, SINGLE, {"method": "dense", "sigma": 3.0, "c": 10}),
    ("dense", "precomputed", 3000, 10, MATRIX, {"method": "dense", "c": 10}),
    ("krylov", "gaussian", 20000, 10, "", {"products": "exact", "sigma": 3.0, "c": 10, "tol": 1e-3}),
    ("krylov", "gaussian", 8000, 10, "", {"products": "exact", "sigma": 3.0, "c": 50, "tol": 1e-2}),
    ("krylov, long rows", "gaussian", 5000, 2000, "", {"products": "exact", "sigma": 50.0, "c": 5, "tol": 1e-2}),
    ("krylov, fraction", "gaussian", 8000, 6, "", {"method": "krylov", "products": "exact", "sigma": 2.0, "c": 0.6}),
    ("krylov", "gaussian", 12000, 10, WEIGHTS, {"products": "exact", "sigma": 3.0, "c": 10, "tol": 1e-3}),
    ("krylov", "gaussian", 12000, 10, SINGLE, {"products": "exact", "sigma": 3.0, "c": 10, "tol": 1e-3}),
    ("krylov", "gaussian", 12000, 10, ITERABLE, {"products": "exact", "sigma": 3.0, "c": 10, "tol": 1e-3}),
    ("krylov", "gaussian", 8000, 40, CSR, {"products": "exact", "sigma": 3.0, "c": 10, "tol": 1e-3}),
    ("krylov", "precomputed", 4000, 10, MATRIX, {"products": "exact", "c": 10, "tol": 1e-3}),
    ("krylov", "gaussian", 30000, 2, "", {"products": "grid", "sigma": 0.05, "c": 10, "tol": 1e-3}),
    ("krylov", "gaussian", 60000, 3, CLUSTERS, {"products": "grid", "sigma": 0.3, "c": 10, "tol": 1e-3}),
    ("krylov", "gaussian", 20000, 5, CLUSTERS, {"products": "clusters", "sigma": 0.5, "c": 5, "tol": 1e-2}),
    ("krylov", "gaussian", 20000, 3, "", {"products": "clusters", "sigma": 0.2, "c": 5, "tol": 1e-2}),
    ("monomial", "polynomial", 200000, 10, "", {"features": "monomial", "degree": 3, "c": 10}),
    ("monomial", "polynomial", 200000, 10, MEMMAP, {"features": "monomial", "degree": 3, "c": 10}),
    ("monomial", "polynomial", 200000, 10, ITERABLE, {"features": "monomial", "degree": 3, "c": 10}),
    ("monomial", "polynomial", 40000, 18, "", {"features": "monomial", "degree": 3, "c": 10}),
    ("monomial", "polynomial", 20000, 60, "", {"features": "monomial", "degree": 2, "c": 10}),
    ("monomial, all", "polynomial", 20000, 16, "", {"features": "monomial", "degree": 3, "c": None}),
    ("monomial, moments", "polynomial", 20000, 16, "", {"degree": 3, "c": 10, "keep_moments": True}),
    ("monomial, no scores", "polynomial", 1000000, 4, "", {"degree": 2, "c": 10, "return_scores": False}),
    ("monomial, no scores", "polynomial", 1000000, 4, MEMMAP, {"degree": 2, "c": 10, "return_scores": False}),
    ("linear", "linear", 20000, 1500, "", {"features": "monomial", "c": 10}),
    ("pivots", "gaussian", 20000, 10, "", {"features": "pivots", "sigma": 6.0, "c": 10, "tol": 1e-2}),
    ("pivots", "gaussian", 50000, 5, FAR, {"features": "pivots", "sigma": 3.0, "c": 10, "tol": 1e-4}),
    ("pivots", "gaussian", 20000, 10, SINGLE, {"features": "pivots", "sigma": 6.0, "c": 10, "tol": 1e-2}),
    ("pivots", "gaussian", 20000, 10, WEIGHTS, {"features": "pivots", "sigma": 6.0, "c": 10, "tol": 1e-2}),
    ("pivots, long rows", "gaussian", 5000, 2000, "", {"features": "pivots", "sigma": 400.0, "c": 10, "tol": 1e-2}),
    ("fourier", "gaussian", 200000, 2, "", {"features": "fourier", "sigma": 0.3, "c": 10, "tol": 1e-5}),
    ("fourier", "gaussian", 200000, 3, "", {"features": "fourier", "sigma": 0.6, "c": 10, "tol": 1e-2}),
    ("fourier", "gaussian", 100000, 3, "", {"features": "fourier", "sigma": 0.3, "c": 10, "tol": 1e-2}),
    ("fourier, c=100", "gaussian", 100000, 2, "", {"features": "fourier", "sigma": 0.1, "c": 100, "tol": 1e-3}),
    ("fourier", "gaussian", 200000, 2, MEMMAP, {"features": "fourier", "sigma": 0.3, "c": 10, "tol": 1e-5}),
    ("auto", "gaussian", 5000, 4, "", {"sigma": 2.0, "c": 5, "tol": 1e-3}),
    ("auto", "gaussian", 3000, 300, "", {"c": 10, "tol": 1e-3}),
    ("auto, hard pivots", "gaussian", 20000, 10, FAR, {"sigma": 3.0, "c": 10, "tol": 1e-2}),
]  # fmt: skip


def given(kernel: str, n: int, d: int, what: str, folder: str) -> tuple:
    """(rows, further parameters)."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    if what == CLUSTERS:
        X = 0.3 * X + rng.standard_normal((20, d))[rng.integers(20, size=n)] * 10
    if what == FAR:
        X[: n // 100] = X[: n // 100] * 3 + 40.0
    if what == SINGLE:
        X = X.astype(np.float32)
    if what == WEIGHTS:
        return X, {"sample_weight": rng.integers(1, 4, n)}
    if what == CSR:
        import scipy.sparse as sp

        return sp.random_array((n, d), density=0.2, rng=rng, format="csr"), {}
    if what == MATRIX:
        K = np.empty((n, n))
        for i in range(0, n, 500):
            squares = (X[i : i + 500] ** 2).sum(1)[:, None] + (X**2).sum(1) - 2 * X[i : i + 500] @ X.T
            K[i : i + 500] = np.exp(-squares / 18)
        return (K + K.T) / 2, {}
    if what == MEMMAP:
        path = os.path.join(folder, "X.npy")
        np.save(path, X)
        return np.load(path, mmap_mode="r"), {}
    if what == ITERABLE:
        return (lambda: (X[i : i + 3000] for i in range(0, n, 3000))), {}
    return X, {}


def small(X, options: dict) -> tuple:
    """200 of the rows, for warming up."""
    if callable(X):
        X = next(iter(X()))
    few = {k: v[:200] if k == "sample_weight" else v for k, v in options.items() if k != "return_scores"}
    if X.shape[0] == X.shape[1]:
        return X[:200, :200], few
    return X[:200], few


def one(number: int, factor: float, n_threads: int) -> dict:
    import ctypes
    import gc
    import warnings

    import fastkpca as fk

    warnings.simplefilter("ignore")
    _, kernel, n, d, what, options = CASES[number]
    options = dict(options)
    c = options.pop("c")
    with tempfile.TemporaryDirectory() as folder:
        X, more = given(kernel, n, d, what, folder)
        options |= more
        few, same = small(X, options)
        try:
            fk.kpca(few, kernel, 3, n_threads=n_threads, **same)
        except ValueError:  # no such product, or map, for so few rows
            same = {k: v for k, v in same.items() if k not in ("products", "features")}
            fk.kpca(few, kernel, 3, n_threads=n_threads, **same)

        def planned(limit) -> float:
            return fk.plan(X, kernel, c, memory_limit=limit, **options).chosen.memory

        predicted = planned("1000GB")
        limit = int(predicted * factor * 1.0001) + 1
        result = {"predicted": predicted / 1e6, "limit": limit / 1e6}
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)

        def attempt() -> fk.KPCAModel | str:
            try:
                return fk.kpca(X, kernel, c, memory_limit=limit, n_threads=n_threads, **options)
            except ValueError as error:
                return str(error)[:300]

        used, found = peak(attempt)
        result["used"] = used / 1e6
        if isinstance(found, str):
            return result | {"error": found}
        chosen = found.plan.chosen
        return result | {"features": found.info.get("n_features", 0), "plan": chosen.label, "own": chosen.memory / 1e6}


def ask(number: int, factor: float, n_threads: int, timeout: float = 600.0) -> dict:
    again = [sys.executable, __file__, "--one", str(number), str(factor), str(n_threads)]
    try:
        done = subprocess.run(again, capture_output=True, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {timeout:.0f} s"}
    if done.returncode:
        return {"failed": f"{done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1][:150]}"}
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    options = command.options(__doc__, one=[], only="", factors=[1.0, 2.0, 8.0, 0.5, 0.1], threads=[1, 2])
    if options.one:
        number, factor, n_threads = options.one
        print(json.dumps(one(int(number), float(factor), int(n_threads))))
        return
    head = f"{'route':<20}{'rows':<12}{'N':>8}{'d':>6}{'threads':>8}{'x':>5}{'limit MB':>10}{'used MB':>9}"
    print(f"{head}{'used/limit':>11}{'/predicted':>11}  took")
    worst, refused, runs = 0.0, 0, 0
    for number, (name, _, n, d, what, _) in enumerate(CASES):
        if options.only not in f"{name} {what}":
            continue
        for factor in options.factors:
            for n_threads in options.threads:
                found = ask(number, factor, n_threads)
                runs += 1
                line = f"{name:<20}{what:<12}{n:>8}{d:>6}{n_threads:>8}{factor:>5g}"
                if "failed" in found:
                    print(f"{line}  FAILED {found['failed']}", flush=True)
                    continue
                share = found["used"] / found["limit"]
                worst = max(worst, share)
                line += f"{found['limit']:>10.2f}{found['used']:>9.1f}{share:>11.2f}"
                if "error" in found:
                    refused += 1
                    why = f": {found['error']}" if factor >= 1 else ""
                    print(f"{line}{'':>11}  refused{why}", flush=True)
                else:
                    print(
                        f"{line}{found['used'] / found['own']:>11.2f}  {found['plan']} {found['features'] or ''}",
                        flush=True,
                    )
    print(f"{runs} runs, {refused} refused beforehand; the largest used / limit is {worst:.2f}")


if __name__ == "__main__":
    main()
