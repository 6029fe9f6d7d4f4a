"""Models of weighted rows: references in long double, and random cases; used by tests and the attack on weights."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def _script(name):
    path = Path(__file__).resolve().parents[1] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


spe = _script("attack_spe")
exact_spe = spe.exact_spe
