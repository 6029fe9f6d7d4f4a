"""Reference fits in two versions: do the new intervals contain the exact eigenvalues, and how wide are they?

    python benchmarks/speed/reference_fits.py --against PYTHON [--seed 7] [--fits 24]

``PYTHON``: the interpreter of an environment in which another version is installed. Problems are those of
``problems.py`` with at most 5000 rows, so that LAPACK finds the exact eigenvalues, to ``rounding``, from the whole
matrix. Printed for each: how many of these the new intervals contain; whether they contain the other version's
eigenvalues (or meet its intervals); and the ratio of the widest ones, of which those below a thousandth of tol count as
that wide. A computed eigenvalue may lie outside of a narrower interval that contains the exact one: where the other
version's do, the largest errors of these, and of the new ones in their places, are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from typing import Any

import common
import numpy as np
import problems
from scipy.linalg import eigh

import fastkpca as fk


def run(seed: int, i: int) -> dict[str, Any]:
    """Eigenvalues and intervals of this process's version."""
    problem = problems.problem(seed, i, 5000)
    try:
        model = fk.kpca(problem.X, n_threads=1, **problem.options)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:120]}"}
    return {
        "values": model.eigenvalues.tolist(),
        "bounds": model.eigenvalue_bounds.tolist(),
        "ran": model.plan.chosen.label,
        "kind": model.bound_kind,
    }


def serve() -> None:
    """Answer one line for each that comes: seed, number."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(run(*json.loads(line))), flush=True)


def exact(problem: problems.Problem, count: int) -> tuple[np.ndarray, float]:
    """(the largest eigenvalues of the centred matrix, about how much LAPACK rounds them)."""
    X = np.asarray(problem.X, dtype=np.float64)
    K = np.asarray(problem.options["kernel"].block(X, X))
    size, n = float(np.linalg.norm(K)), len(K)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    values = eigh((K + K.T) / 2.0, eigvals_only=True, subset_by_index=(n - count, n - 1), overwrite_a=True)
    return values[::-1], float(np.sqrt(n) * np.finfo(float).eps * size)


def compare(problem: problems.Problem, new: dict, old: dict) -> tuple[str, bool, bool, float]:
    """(text, whether the new intervals contain the exact and the old eigenvalues, new width over old)."""
    if "error" in new or "error" in old:
        same = "error" in new and "error" in old
        return f"{new.get('error', 'fits')} | {old.get('error', 'fits')}", same, same, 1.0
    count = min(len(new["values"]), len(old["values"]))
    values, found = (np.array(x["values"])[:count] for x in (old, new))
    bounds, others = (np.array(x["bounds"])[:count] for x in (new, old))
    truth, rounding = exact(problem, count)
    true = (bounds[:, 0] - rounding <= truth) & (truth <= bounds[:, 1] + rounding)
    # an old eigenvalue may itself be off by its interval
    meets = bool((bounds[:, 0] <= others[:, 1]).all() and (others[:, 0] <= bounds[:, 1]).all())
    inside = (bounds[:, 0] <= values) & (values <= bounds[:, 1])
    first, tol = values[0], problem.options["tol"]
    widths = [max(float(np.ptp(x, axis=1).max() / first), 1e-3 * tol) for x in (bounds, others)]
    text = f"{new['ran']}, {old['ran']}: {true.sum()} of {count} exact ones inside (to {rounding / first:.0e}), "
    text += f"{'contains' if inside.all() else 'meets' if meets else 'MISSES'} {count} of the other"
    if not inside.all():
        off = [np.abs(x - truth)[~inside].max() / first for x in (values, found)]
        text += f" ({np.count_nonzero(~inside)} outside: off by {off[0]:.1e} at most, new ones by {off[1]:.1e})"
    text += f", widest {widths[0]:.1e} and {widths[1]:.1e}, {new['kind']}"
    return text, bool(true.all()), bool(inside.all()), widths[0] / widths[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="PYTHON")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--fits", type=int, default=24)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    common.header("Reference fits")
    new, old = (common.Worker(python, __file__) for python in (sys.executable, options.against))
    exact_held, held, ratios = 0, 0, []
    for i in range(options.fits):
        problem = problems.problem(options.seed, i, 5000)
        text, true, contains, ratio = compare(problem, new(options.seed, i), old(options.seed, i))
        exact_held += true
        held += contains
        ratios.append(ratio)
        print(f"{i:>3} {problem} {text}, ratio {ratio:.2g}", flush=True)
    print(
        f"of {options.fits}: {exact_held} contain all exact eigenvalues, {held} all of the other version; "
        f"widths: median {np.median(ratios):.2g}, widest {max(ratios):.2g}"
    )


if __name__ == "__main__":
    main()
