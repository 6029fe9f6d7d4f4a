"""How the cost of each route grows with rows N, columns d, components c and features D: exponents, in one figure.

    python benchmarks/speed/growth.py [--figure docs/growth_routes.svg] [--repeats 3]

Processor seconds of one thread, medians, scores included. One number grows while the others stay; the exponent is the
slope of a straight line through the logarithms.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import common
import numpy as np

import fastkpca as fk

MONOMIALS = {"kernel": "polynomial", "degree": 2, "features": "monomial"}
PIVOTS = {"kernel": "gaussian", "sigma": 2.0, "features": "pivots", "tol": 1e-3}
FOURIER = {"kernel": "gaussian", "sigma": 0.1, "features": "fourier"}
EXACT = {"kernel": "gaussian", "sigma": 1.0, "products": "exact"}
GRID = {"kernel": "gaussian", "sigma": 0.3, "products": "grid"}
DENSE = {"kernel": "gaussian", "sigma": 1.0, "method": "dense"}

Point = tuple[int, int, int, dict[str, Any]]
"""N, d, c, and the arguments of kpca."""


def over_rows(options: dict[str, Any], d: int, counts: list[int]) -> list[tuple[float, Point]]:
    return [(n, (n, d, 10, options)) for n in counts]


def over_columns(options: dict[str, Any], n: int, columns: list[int]) -> list[tuple[float, Point]]:
    """Widths grow with the distances, so that the spectrum stays about as steep."""
    scaled = [options | ({"sigma": float(np.sqrt(d)) / 2} if "sigma" in options else {}) for d in columns]
    return [(d, (n, d, 10, x)) for d, x in zip(columns, scaled, strict=True)]


def over_components(options: dict[str, Any], n: int, d: int, counts: list[int]) -> list[tuple[float, Point]]:
    return [(c, (n, d, c, options)) for c in counts]


def over_features(n: int, counts: list[int]) -> list[tuple[float, Point]]:
    options = {"kernel": "gaussian", "sigma": 0.5, "features": "pivots"}
    return [(D, (n, 8, 10, options | {"max_features": D})) for D in counts]


GROWTH: dict[str, dict[str, list[tuple[float, Point]]]] = {
    "rows N": {
        "monomials, d=10": over_rows(MONOMIALS, 10, [10_000, 40_000, 160_000]),
        "pivots, d=8": over_rows(PIVOTS, 8, [10_000, 40_000, 160_000]),
        "fourier, d=2": over_rows(FOURIER, 2, [10_000, 40_000, 160_000]),
        "krylov grid, d=3": over_rows(GRID, 3, [10_000, 20_000, 40_000]),
        "krylov exact, d=8": over_rows(EXACT, 8, [3000, 6000, 12_000]),
        "dense, d=8": over_rows(DENSE, 8, [750, 1500, 3000]),
    },
    "columns d": {
        "monomials, degree 2": over_columns(MONOMIALS, 20_000, [5, 10, 20]),
        "krylov exact": over_columns(EXACT, 5000, [8, 32, 128]),
        "dense": over_columns(DENSE, 1500, [8, 32, 128]),
    },
    "components c": {
        "monomials, D=66": over_components(MONOMIALS, 100_000, 10, [5, 15, 45]),
        "fourier, d=2": over_components(FOURIER, 50_000, 2, [5, 15, 45]),
        "krylov exact, d=8": over_components(EXACT, 5000, 8, [5, 15, 45]),
        "dense, d=8": over_components(DENSE, 1500, 8, [5, 15, 45]),
    },
    "features D": {"pivots, N=20000": over_features(20_000, [125, 250, 500, 1000])},
}


def seconds(point: Point, repeats: int) -> float:
    n, d, c, options = point
    X = np.random.default_rng(0).random((n, d))
    task = {"kpca": lambda: fk.kpca(X, c=c, n_threads=1, **options)}
    return common.alternate(task, repeats=repeats, clock=time.process_time)["kpca"]


def draw(curves: dict[str, dict[str, tuple[list[float], list[float]]]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
    for ax, (name, routes) in zip(axes.flat, curves.items(), strict=True):
        for label, (values, times) in routes.items():
            ax.loglog(values, times, marker="o", label=label)
        ticks = sorted({x for values, _ in routes.values() for x in values}) if name != "rows N" else [1e3, 1e4, 1e5]
        ax.set_xticks(ticks, [f"{x:g}" for x in ticks])
        ax.minorticks_off()
        ax.set(xlabel=name, ylabel="seconds", yscale="log")
        low, high = ax.get_ylim()
        ax.set_ylim(low, high * (high / low) ** 0.35)  # room for the legend
        ax.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    figure.savefig(path, metadata={"Date": None} if path.endswith("svg") else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    common.header("growth of each route, processor seconds")
    warnings.simplefilter("ignore")
    print("| route | what grows | seconds | exponent |\n|---|---|---|---|")
    curves: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for what, routes in GROWTH.items():
        for label, points in routes.items():
            values, times = [x for x, _ in points], [seconds(point, options.repeats) for _, point in points]
            exponent = np.polyfit(np.log(values), np.log(times), 1)[0]
            curves.setdefault(what, {})[label] = (values, times)
            text = ", ".join(f"{x:g}: {s:.3g}" for x, s in zip(values, times, strict=True))
            print(f"| {label} | {what} | {text} | {exponent:.2f} |", flush=True)
    if options.figure:
        draw(curves, options.figure)


if __name__ == "__main__":
    main()
