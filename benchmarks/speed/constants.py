"""How flat the optimum of each number set by hand is: fits that change with it, and their time.

    python benchmarks/speed/constants.py [solve/costs.SPARE ...] [--times .5 2] [--cases 60] [--seed 0] [--seconds .3]

Each number of ``solve``, ``maps`` and ``products`` (or those named) is multiplied by each of ``--times``; problems are
those of ``random_set.py`` that this version's plan predicts to take at most ``--seconds``, with some of narrow kernels.
Printed, for each factor: fits whose eigenvalues, intervals or passes differ, and of these processor seconds over those
with the number as it is: median and largest. A number that changes no fit binds nothing here.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import inspect
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import problems

import fastkpca as fk

ROOT = Path(fk.__file__).parent
FOLDERS = ("solve", "maps", "products")


def numbers(path: Path) -> dict[str, Any]:
    """Numbers that a module sets: name, and the line in which."""
    found = {}
    for line in ast.parse(path.read_text()).body:
        target = line.targets[0] if isinstance(line, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id.isupper() and isinstance(line.value, (ast.Constant, ast.BinOp)):
            found[target.id] = line
    return found


def modules_with(name: str, home: ModuleType) -> list[ModuleType]:
    """The module that sets a number, and those that import it from there."""
    value = getattr(home, name)
    others = [m for key, m in sys.modules.items() if key.startswith("fastkpca.") and vars(m).get(name) is value]
    return [home, *(m for m in others if m is not home and f"\n{name} =" not in inspect.getsource(m))]


@contextmanager
def changed(name: str, home: ModuleType, value: Any) -> Iterator[None]:
    before, users = getattr(home, name), modules_with(name, home)
    for module in users:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module in users:
            setattr(module, name, before)


def fit(problem: problems.Problem) -> tuple[str, float]:
    """Digest of the result, and processor seconds: the shorter of two."""
    times = []
    for _ in range(2):
        started = time.process_time()
        try:
            model = fk.kpca(problem.X, n_threads=1, **problem.options)
            digest = hashlib.sha256(model.eigenvalues.tobytes() + model.eigenvalue_bounds.tobytes())
            digest.update(repr(sorted((k, v) for k, v in model.info.items() if isinstance(v, (int, str)))).encode())
            found = digest.hexdigest()
        except (ValueError, RuntimeError) as error:
            found = repr(error)
        times.append(time.process_time() - started)
    return found, min(times)


def narrow(seed: int) -> Iterator[problems.Problem]:
    """Gaussian kernels of a few hundredths of the columns' range, for truncated matrices, filters and transforms."""
    for i in range(12):
        rng = np.random.default_rng([seed, i, 1])
        d, c = 1 + i % 3, (2, 10, 30)[i // 4]
        yield problems.gaussian("cube", rng.random((3000, d)), 0.0, c, 10.0 ** -rng.integers(2, 7), sigma=0.02 * d)


def drawn(options: argparse.Namespace) -> list[problems.Problem]:
    found, i = list(narrow(options.seed)), 0
    while len(found) < options.cases:
        problem = problems.problem(options.seed, i, 20_000)
        i += 1
        try:
            if fk.plan(problem.X, n_threads=1, **problem.options).chosen.seconds <= options.seconds:
                found.append(problem)
        except ValueError:
            continue
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--times", type=float, nargs="+", default=[0.5, 2.0])
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    every = drawn(options)
    before = [fit(problem) for problem in every]
    print(f"{len(every)} fits, {sum(seconds for _, seconds in before):.1f} s", flush=True)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.py")):
            for name, line in numbers(path).items():
                label = f"{folder}/{path.stem}.{name}"
                if options.names and label not in options.names:
                    continue
                home = import_module(f"fastkpca.{folder}.{path.stem}")
                row = [f"{label:34}{ast.unparse(line.value):>14}"]
                for factor in options.times:
                    value = getattr(home, name)
                    with changed(name, home, type(value)(value * factor)):
                        after = [fit(problem) for problem in every]
                    ratios = [b[1] / a[1] for a, b in zip(before, after) if a[0] != b[0]]
                    cell = f"{np.median(ratios):.2f} {max(ratios):.2f}" if ratios else ""
                    row.append(f"x {factor:g}: {len(ratios):3} differ {cell:>10}")
                print("   ".join(row), flush=True)


if __name__ == "__main__":
    main()
