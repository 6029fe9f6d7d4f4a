"""What the plan predicts against what a run takes, at tolerances from 0.1 to 1e-6; with --forced also the other routes.

    python benchmarks/speed/loose_plan.py [--cases 60] [--seed 0] [--seconds 20] [--forced]

Cases are drawn at random: rows (real sets, uniform, normal, heavy tails; d = 2 to 64), their number (1e3 to 1e6), the
width of the kernel, tol. One predicted to take longer than --seconds is drawn again. Processor seconds of one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import common
import numpy as np
import real_data

import fastkpca as fk

SETS = ("kin40k", "protein", "usps", "keggdirected", "uniform", "normal", "heavy tails")


def draw(rng: np.random.Generator) -> tuple[str, np.ndarray, dict[str, Any]]:
    name, n = str(rng.choice(SETS)), int(10 ** rng.uniform(3, 6))
    if name in real_data.SETS:
        X = real_data.load(name)
        X = X[rng.permutation(len(X))[:n]]
    else:
        n, d = min(n, 300_000), int(rng.choice([2, 3, 5, 8, 16, 32, 64]))
        X = {
            "uniform": lambda: rng.random((n, d)),
            "normal": lambda: rng.standard_normal((n, d)),
            "heavy tails": lambda: rng.standard_t(3, (n, d)),
        }[name]()
    few = X[:400]
    median = float(np.median(np.linalg.norm(few[:200, None] - few[None, 200:], axis=2))) or 1.0
    sigma = float(rng.choice([0.5, 0.7, 1.0, 2.0])) * median / np.sqrt(2.0)
    return (
        name,
        X,
        {"sigma": sigma, "c": int(rng.choice([2, 5, 10])), "tol": float(rng.choice([0.1, 0.01, 0.001, 1e-6]))},
    )


def seconds_of(X: np.ndarray, options: dict[str, Any]) -> tuple[float, Any]:
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fk.kpca(X, "gaussian", n_threads=1, **options)
    return time.process_time() - started, model


def forced(X: np.ndarray, options: dict[str, Any], limit: float) -> float:
    """Seconds of the best route that reaches tol, of those that are predicted to take no more than ``limit``."""
    best = np.inf
    for method in ("dense", "features", "krylov"):
        try:
            if fk.plan(X, "gaussian", method=method, **options).chosen.seconds > limit:
                continue
        except ValueError:
            continue
        seconds, model = seconds_of(X, options | {"method": method})
        low, high = model.eigenvalue_bounds.T
        if (high - low).max() <= options["tol"] * model.eigenvalues[0]:
            best = min(best, seconds)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--forced", action="store_true")
    given = parser.parse_args()
    common.header("predicted and measured processor seconds")
    ratios, losses, case = [], [], 0
    while len(ratios) < given.cases:
        case += 1
        rng = np.random.default_rng([given.seed, case])
        name, X, options = draw(rng)
        chosen = fk.plan(X, "gaussian", **options).chosen
        if chosen.seconds > given.seconds:
            continue
        seconds, model = seconds_of(X, options)
        low, high = model.eigenvalue_bounds.T
        width = (high - low).max() / model.eigenvalues[0]
        ratios.append(seconds / chosen.seconds)
        line = (
            f"{case:4} {name:13} {len(X):7} x {X.shape[1]:3} tol {options['tol']:.0e} {chosen.label:22} "
            f"{chosen.n_features:5} predicted {chosen.seconds:7.3f} measured {seconds:7.3f} ratio {ratios[-1]:5.2f} "
            f"width {width:.1e} {model.info['method']} {model.info.get('n_features', '')} {model.bound_kind}"
        )
        if given.forced:
            losses.append(seconds / min(seconds, forced(X, options, 3.0 * given.seconds)))
            line += f" against the best {losses[-1]:.2f}"
        print(line, flush=True)
    ratios = np.array(ratios)
    within = np.mean((ratios <= 2.0) & (ratios >= 0.5))
    print(f"within a factor of 2: {100 * within:.0f} % of {len(ratios)}")
    print(f"ratios {np.quantile(ratios, [0, 0.1, 0.5, 0.9, 1])}")
    if losses:
        print(
            f"against the best forced route: worst {max(losses):.2f}, above 1.5: {np.mean(np.array(losses) > 1.5):.2f}"
        )


if __name__ == "__main__":
    main()
