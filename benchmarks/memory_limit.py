"""Is memory_limit kept? Peak memory of each route beside what the plan predicted and what it was allowed.

    python benchmarks/memory_limit.py

Each run is a process of its own; memory is its peak resident set beyond that of the interpreter, the library warmed up
and the rows. The limit is the least one that the plan accepts for the route (its own prediction), so that a route that
takes more than predicted is seen: the last column should not pass 1.1.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

CASES = [
    # route, kernel, N, d, parameters of kpca
    ("dense", "gaussian", 2000, 10, {"method": "dense", "sigma": 3.0, "c": 10}),
    ("dense", "gaussian", 6000, 10, {"method": "dense", "sigma": 3.0, "c": 10}),
    ("dense, all", "gaussian", 3000, 10, {"method": "dense", "sigma": 3.0, "c": None}),
    ("krylov", "gaussian", 20000, 10, {"method": "krylov", "sigma": 3.0, "c": 10, "tol": 1e-3}),
    ("krylov", "gaussian", 20000, 100, {"method": "krylov", "sigma": 10.0, "c": 5, "tol": 1e-2}),
    ("monomial", "polynomial", 200000, 10, {"features": "monomial", "degree": 3, "c": 10}),
    ("monomial", "polynomial", 20000, 18, {"features": "monomial", "degree": 3, "c": 10}),
    ("monomial", "polynomial", 20000, 60, {"features": "monomial", "degree": 2, "c": 10}),
    ("ranked", "gaussian", 20000, 5, {"features": "ranked", "sigma": 3.0, "c": 10, "tol": 1e-5}),
    ("pivots", "gaussian", 20000, 10, {"features": "pivots", "sigma": 6.0, "c": 10, "tol": 1e-2}),
    ("fourier", "gaussian", 200000, 2, {"features": "fourier", "sigma": 0.3, "c": 10, "tol": 1e-5}),
    ("fourier", "gaussian", 200000, 3, {"features": "fourier", "sigma": 0.6, "c": 10, "tol": 1e-2}),
    ("no scores", "polynomial", 2000000, 4, {"features": "monomial", "degree": 2, "c": 10, "return_scores": False}),
]


def peak() -> float:
    """Largest resident set so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(number: int) -> dict:
    import warnings

    import fastkpca as fk

    warnings.simplefilter("ignore")
    _, kernel, n, d, options = CASES[number]
    options = dict(options)
    c = options.pop("c")
    X = np.random.default_rng(0).standard_normal((n, d))
    fk.kpca(X[:200], kernel, 3, n_threads=2, **{k: v for k, v in options.items() if k != "return_scores"})
    plan = fk.plan(X, kernel, c, memory_limit="100GB", **options)
    before = peak()
    limit = int(plan.chosen.memory * 1.001) + 1
    try:
        model = fk.kpca(X, kernel, c, memory_limit=limit, n_threads=2, **options)
    except ValueError as error:
        return {"error": str(error)[:160], "predicted": plan.chosen.memory / 1e6}
    return {
        "predicted": plan.chosen.memory / 1e6,
        "used": (peak() - before) * 1.048576,
        "features": model.info.get("n_features", 0),
        "plan": str(plan.chosen.label),
    }


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(one(int(sys.argv[1]))))
        return
    print(f"{'route':<12}{'N':>9}{'d':>5}{'D':>7}{'limit MB':>10}{'used MB':>10}{'used/limit':>12}")
    for number, (route, _, n, d, _) in enumerate(CASES):
        done = subprocess.run([sys.executable, __file__, str(number)], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{route:<12}{n:>9}{d:>5} failed: {done.stderr.strip().splitlines()[-1][:150]}", flush=True)
            continue
        found = json.loads(done.stdout.strip().splitlines()[-1])
        if "error" in found:
            print(f"{route:<12}{n:>9}{d:>5} {found['predicted']:.0f} MB: {found['error']}", flush=True)
            continue
        share = found["used"] / found["predicted"]
        print(
            f"{route:<12}{n:>9}{d:>5}{found['features']:>7}{found['predicted']:>10.0f}{found['used']:>10.0f}{share:>12.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
