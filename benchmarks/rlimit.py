"""What becomes of a call under RLIMIT_AS, from next to nothing to ample: a right result, or MemoryError, always.

    python benchmarks/rlimit.py             # every route, 1 and 2 threads, 40 limits each
    python benchmarks/rlimit.py --limits 5

Each run is a process of its own, which makes its rows, sets the limit to what it has plus some, and calls ``kpca``. A
result is right where its intervals hold the eigenvalues that a call without a limit finds. Also the command line, whose
import of numpy comes under the limit too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np

ROUTES = {
    "dense": ("gaussian", 1500, 5, {"method": "dense", "sigma": 3.0, "c": 5}),
    "dense, all": ("gaussian", 1000, 5, {"method": "dense", "sigma": 3.0, "c": None}),
    "krylov": ("gaussian", 6000, 5, {"method": "krylov", "products": "exact", "sigma": 3.0, "c": 5, "tol": 1e-2}),
    "grid": ("gaussian", 10000, 2, {"products": "grid", "sigma": 0.1, "c": 5, "tol": 1e-2}),
    "clusters": ("gaussian", 10000, 3, {"products": "clusters", "sigma": 0.2, "c": 5, "tol": 1e-2}),
    "monomial": ("polynomial", 50000, 10, {"features": "monomial", "degree": 3, "c": 5}),
    "ranked": ("gaussian", 20000, 3, {"features": "ranked", "sigma": 2.0, "c": 5, "tol": 1e-4}),
    "pivots": ("gaussian", 20000, 5, {"features": "pivots", "sigma": 5.0, "c": 5, "tol": 1e-3}),
    "fourier": ("gaussian", 50000, 2, {"features": "fourier", "sigma": 0.5, "c": 5, "tol": 1e-4}),
    "auto": ("gaussian", 5000, 4, {"sigma": 2.0, "c": 5, "tol": 1e-3}),
    "projecting": ("gaussian", 6000, 5, {"method": "krylov", "products": "exact", "sigma": 3.0, "c": 5, "tol": 1e-2}),
}
ONE = """
import json, resource, sys, warnings
import numpy as np
import fastkpca as fk
warnings.simplefilter("ignore")
route, (kernel, n, d, options), room, threads = json.loads(sys.argv[1])
c = options.pop("c")
X = np.random.default_rng(0).standard_normal((n, d))
model = fk.kpca(X, kernel, c, n_threads=threads, **options) if route == "projecting" else None
if room is not None:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room,) * 2)
try:
    if model is None:
        model = fk.kpca(X, kernel, c, n_threads=threads, **options)
        found = {"bounds": model.eigenvalue_bounds.tolist(), "score": bool(np.isfinite(model.score).all())}
    else:
        found = {"same": bool(np.allclose(fk.kpca_project(model, X, n_threads=threads), model.score, atol=1e-6))}
except MemoryError as error:
    found = {"error": "MemoryError", "text": str(error)}
except ValueError as error:
    found = {"error": "ValueError", "text": str(error)}
resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)
print(json.dumps(found))
"""
TIMEOUT = 120.0


def run(route: str, room: int | None, threads: int) -> tuple[str, dict]:
    """(what became of it, what it printed)."""
    argument = json.dumps([route, ROUTES[route], room, threads])
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", ONE, argument], capture_output=True, text=True, check=False, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return "hung", {}
    if done.returncode:
        return f"died ({done.returncode})", {"text": done.stderr[-500:]}
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return found.get("error", "result"), found


def right(found: dict, truth: dict) -> bool:
    """Do the intervals of the two calls overlap, all of them?"""
    if "same" in found:
        return bool(found["same"])
    a, b = np.array(found["bounds"]), np.array(truth["bounds"])
    k = min(len(a), len(b))
    return bool(found["score"] and len(a) == len(b) and (a[:k, 0] <= b[:k, 1]).all() and (b[:k, 0] <= a[:k, 1]).all())


def command_line(limit: int, folder: str) -> str:
    """What becomes of the command line under ``ulimit -v``; limit in bytes."""
    path = os.path.join(folder, "X.csv")
    if not os.path.exists(path):
        np.savetxt(path, np.random.default_rng(0).standard_normal((3000, 4)), delimiter=",")
    command = (
        f"ulimit -v {limit // 1024}; exec {sys.executable} -P -m fastkpca fit {path} --kernel gaussian -c 3 --quiet"
    )
    try:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return "hung"
    if done.returncode == 0:
        return "result"
    lines = done.stderr.strip().splitlines() or [""]
    clean = len(lines) == 1 and lines[0].startswith("fastkpca: error:") and 0 < done.returncode < 128
    return "clean refusal" if clean else f"died ({done.returncode}: {lines[-1][:150]})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", type=int, default=24)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    # from a megabyte to a gigabyte beyond what the process has
    rooms = [int(1e6 * 1000 ** (i / max(1, options.limits - 1))) for i in range(options.limits)]
    total: Counter = Counter()
    for route in (x for x in ROUTES if options.only in x):
        _, truth = run(route, None, 2)
        for threads in (1, 2):
            counts: Counter = Counter()
            with ThreadPoolExecutor(2) as pool:
                for room, (what, found) in zip(rooms, pool.map(lambda x: run(route, x, threads), rooms)):  # noqa: B023
                    if what == "result" and not right(found, truth):
                        what = "wrong"
                    counts[what] += 1
                    if what not in ("result", "MemoryError", "ValueError"):
                        print(f"  {route}, {threads} threads, {room / 1e6:.1f} MB: {what} {found}", flush=True)
                    elif what == "ValueError" and "limit" not in found["text"]:
                        print(f"  {route}, {threads} threads, {room / 1e6:.1f} MB: {found}", flush=True)
            total += counts
            print(f"{route:<12}{threads} threads: {dict(counts)}", flush=True)
    if not options.only:
        counts = Counter()
        with tempfile.TemporaryDirectory() as folder:
            command_line(4 << 30, folder)
            for i in range(options.limits):
                limit = int(30e6 * 50 ** (i / max(1, options.limits - 1)))
                what = command_line(limit, folder)
                counts[what] += 1
                if what not in ("result", "clean refusal"):
                    print(f"  command line, {limit / 1e6:.0f} MB: {what}", flush=True)
        print(f"command line: {dict(counts)}")
        total += counts
    print(f"{sum(total.values())} runs: {dict(total)}")


if __name__ == "__main__":
    main()
