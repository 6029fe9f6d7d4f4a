"""What becomes of a call under RLIMIT_AS, from next to nothing to ample: a right result, or MemoryError, always.

    python tests/attacks/rlimit.py             # every route, 1 and 2 threads, 24 limits each
    python tests/attacks/rlimit.py --limits 5

Each run is a fork of a process that has imported the library and made the rows; it sets the limit to what it has plus
some, and calls ``kpca``. A result is right where its intervals overlap with those of a call without a limit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import command

ROUTES = {
    "dense": ("gaussian", 1500, 5, {"method": "dense", "sigma": 3.0, "c": 5}),
    "dense, all": ("gaussian", 1000, 5, {"method": "dense", "sigma": 3.0, "c": None}),
    "krylov": ("gaussian", 6000, 5, {"method": "krylov", "products": "exact", "sigma": 3.0, "c": 5, "tol": 1e-2}),
    "grid": ("gaussian", 10000, 2, {"products": "grid", "sigma": 0.1, "c": 5, "tol": 1e-2}),
    "clusters": ("gaussian", 10000, 3, {"products": "clusters", "sigma": 0.2, "c": 5, "tol": 1e-2}),
    "monomial": ("polynomial", 50000, 10, {"features": "monomial", "degree": 3, "c": 5}),
    "pivots": ("gaussian", 20000, 5, {"features": "pivots", "sigma": 5.0, "c": 5, "tol": 1e-3}),
    "fourier": ("gaussian", 50000, 2, {"features": "fourier", "sigma": 0.5, "c": 5, "tol": 1e-4}),
    "auto": ("gaussian", 5000, 4, {"sigma": 2.0, "c": 5, "tol": 1e-3}),
    "projecting": ("gaussian", 6000, 5, {"method": "krylov", "products": "exact", "sigma": 3.0, "c": 5, "tol": 1e-2}),
}
SERVER = """
import json, os, resource, signal, sys, tempfile, time, warnings
import numpy as np
import fastkpca as fk
warnings.simplefilter("ignore")
route, (kernel, n, d, options), rooms, seconds = json.loads(sys.argv[1])
c = options.pop("c")
X = np.random.default_rng(0).standard_normal((n, d))
fk.kpca(np.eye(9), "linear", 2)
model = fk.kpca(X, kernel, c, n_threads=2, **options) if route == "projecting" else None

def child(room, threads):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    if room is not None:
        resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        if model is None:
            own = fk.kpca(X, kernel, c, n_threads=threads, **options)
            found = {"bounds": own.eigenvalue_bounds.tolist(), "score": bool(np.isfinite(own.score).all())}
        else:
            found = {"same": bool(np.allclose(fk.kpca_project(model, X, n_threads=threads), model.score, atol=1e-6))}
        found["what"] = "result"
    except (MemoryError, ValueError) as error:
        found = {"what": type(error).__name__, "text": str(error)}
    resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)
    return found

for room, threads in rooms:
    with tempfile.TemporaryFile("w+") as out:
        pid = os.fork()
        if pid == 0:
            code = 9
            try:
                json.dump(child(room, threads), out)
                out.flush()
                code = 0
            finally:
                os._exit(code)
        end = time.monotonic() + seconds
        done = 0
        while not done and time.monotonic() < end:
            done, status = os.waitpid(pid, os.WNOHANG)
            time.sleep(0.002)
        if not done:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            found = {"what": "hung"}
        elif status:
            found = {"what": f"died ({os.waitstatus_to_exitcode(status)})"}
        else:
            out.seek(0)
            found = json.load(out)
    print(json.dumps(found), flush=True)
"""
TIMEOUT = 120.0


def runs(route: str, rooms: list[tuple[int | None, int]], share: float = 1.0) -> list[dict]:
    """What became of a call with so much room beyond what the process has, and so many threads: each in a fork."""
    kernel, n, d, options = ROUTES[route]
    argument = json.dumps([route, (kernel, int(share * n), d, options), rooms, TIMEOUT])
    threads = os.environ | {"OPENBLAS_NUM_THREADS": "2"}  # each has its buffers and stack
    command = [sys.executable, "-P", "-c", SERVER, argument]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=threads)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def right(found: dict, truth: dict) -> bool:
    """Do the intervals of the two calls overlap, all of them?"""
    if "same" in found:
        return bool(found["same"])
    a, b = np.array(found["bounds"]), np.array(truth["bounds"])
    k = min(len(a), len(b))
    return bool(found["score"] and len(a) == len(b) and (a[:k, 0] <= b[:k, 1]).all() and (b[:k, 0] <= a[:k, 1]).all())


def main() -> None:
    options = command.options(__doc__, limits=24, only="")
    # from a megabyte to a gigabyte beyond what the process has; half of them where most calls begin to work
    half = options.limits // 2
    rooms = [int(1e6 * 1000 ** (i / max(1, half - 1))) for i in range(half)]
    rooms += [int(1e6 * (150 + 350 * i / max(1, half - 1))) for i in range(half)]
    total: Counter = Counter()
    for route in (x for x in ROUTES if options.only in x):
        truth, *found = runs(route, [(None, 2)] + [(room, threads) for threads in (1, 2) for room in rooms])
        counts: Counter = Counter()
        for number, one in enumerate(found):
            what = one["what"]
            if what == "result" and not right(one, truth):
                what = "wrong"
            counts[what] += 1
            if what not in ("result", "MemoryError"):
                room, threads = rooms[number % len(rooms)] / 1e6, 1 + number // len(rooms)
                print(f"  {route}, {threads} threads, {room:.1f} MB: {what} {one.get('text', '')}", flush=True)
        total += counts
        print(f"{route:<12} {dict(counts)}", flush=True)
    print(f"{sum(total.values())} runs: {dict(total)}")


if __name__ == "__main__":
    main()
