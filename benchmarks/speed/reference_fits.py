"""Reference fits in two versions: do the new intervals contain the other version's eigenvalues, and how wide are they?

    python benchmarks/speed/reference_fits.py --against PYTHON [--seed 7] [--fits 24]

``PYTHON``: the interpreter of an environment in which another version is installed. Problems are those of
``problems.py`` with at most 5000 rows. Printed for each: whether the intervals of one version contain the eigenvalues
of the other (or meet its intervals), and the ratio of the widest ones, of which those below a thousandth of tol count
as that wide.
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


def compare(problem: problems.Problem, new: dict, old: dict) -> tuple[str, bool, float]:
    """(text, whether the new intervals contain the old eigenvalues, new width over old)."""
    if "error" in new or "error" in old:
        return f"{new.get('error', 'fits')} | {old.get('error', 'fits')}", "error" in new and "error" in old, 1.0
    count = min(len(new["values"]), len(old["values"]))
    values, bounds = np.array(old["values"])[:count], np.array(new["bounds"])[:count]
    others = np.array(old["bounds"])[:count]
    # an old eigenvalue may itself be off by its interval
    meets = bool((bounds[:, 0] <= others[:, 1]).all() and (others[:, 0] <= bounds[:, 1]).all())
    contains = bool((bounds[:, 0] <= values).all() and (values <= bounds[:, 1]).all())
    first, tol = values[0], problem.options["tol"]
    widths = [max(float(np.ptp(x, axis=1).max() / first), 1e-3 * tol) for x in (bounds, others)]
    text = (
        f"{new['ran']}, {old['ran']}: {'contains' if contains else 'meets' if meets else 'MISSES'} {count} of the other"
    )
    text += f", widest {widths[0]:.1e} and {widths[1]:.1e}, {new['kind']}"
    return text, contains, widths[0] / widths[1]


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
    held, ratios = 0, []
    for i in range(options.fits):
        problem = problems.problem(options.seed, i, 5000)
        text, contains, ratio = compare(problem, new(options.seed, i), old(options.seed, i))
        held += contains
        ratios.append(ratio)
        print(f"{i:>3} {problem} {text}, ratio {ratio:.2g}", flush=True)
    print(f"{held} of {options.fits} contain all; widths: median {np.median(ratios):.2g}, widest {max(ratios):.2g}")


if __name__ == "__main__":
    main()
