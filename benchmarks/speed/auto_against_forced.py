"""What method="auto" takes, against the best of all routes forced: flat and steep spectra, few and many rows.

    python benchmarks/speed/auto_against_forced.py [--cases 200] [--seed 0] [--largest 50000] [--seconds 3] [--named]

Cases are drawn at random: set, rows, kernel and its width, components (1 to 50) and tol (1e-2 to 1e-9). Every candidate
of the plan is forced (LAPACK, Krylov with each product, each feature map), but for those that the plan predicts to take
more than ten times as long as "auto" took; one that does take so long is stopped. Times are processor seconds of one
thread; a route counts only where its intervals are as narrow as asked for. Cases for which "auto" is predicted to take
more than ``--seconds`` are not drawn. ``--named``: the problems of ``problems.NAMED`` instead, on which a plan went
wrong once.
Printed: each case, then the quantiles of the ratio. Below a case whose ratio is above ``--worse``: the seconds of each
route, as predicted and as measured.
"""

from __future__ import annotations

import argparse
import signal
import time
import warnings
from collections.abc import Iterator
from typing import Any

import common
import numpy as np
import problems
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits

import fastkpca as fk
from fastkpca.kernels import Kernel, get_kernel


def sets() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    found = {
        "digits": load_digits().data,
        "cube, d=2": rng.random((50_000, 2)),
        "cube, d=3": rng.random((50_000, 3)),
        "cube, d=5": rng.random((50_000, 5)),
        "normal, d=8": rng.standard_normal((50_000, 8)),
        "normal, d=20": rng.standard_normal((50_000, 20)),
        "clusters, d=4": clusters(rng, 50_000, 4),
    }
    for name in ("uci_kin40k", "uci_protein", "uci_tamielectric", "uci_keggdirected", "usps", "ida/waveform"):
        path = common.DATA / f"{name}.npz"
        if path.exists():
            file = np.load(path)
            found[name.split("_")[-1].split("/")[-1]] = next(
                np.asarray(file[x], float) for x in file.files if file[x].ndim == 2
            )
    return found


def clusters(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Ten normal clusters of unequal weight."""
    weights = rng.dirichlet(np.full(10, 1.0))
    return rng.random((10, d))[rng.choice(10, n, p=weights)] * 10.0 + rng.standard_normal((n, d))


def draw(rng: np.random.Generator, X: np.ndarray, largest: int) -> tuple[np.ndarray, dict[str, Any], str]:
    n = min(int(rng.choice([100, 300, 500, 1000, 2000, 3000, 5000, 10_000, 20_000, 50_000])), largest, len(X))
    X = X[rng.permutation(len(X))[:n]]
    X = X[:, X.std(axis=0) > 1e-9 * np.abs(X).max(axis=0)]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel, label = draw_kernel(rng, X)
    if rng.random() < 0.2:
        X, label = X.astype(np.float32), f"{label}, float32"
    options = {
        "kernel": kernel,
        "c": int(rng.choice([1, 5, 10, 20, 50])),
        "tol": float(rng.choice([1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-9])),
    }
    return X, options, label


def draw_kernel(rng: np.random.Generator, X: np.ndarray) -> tuple[Kernel, str]:
    """A kernel, and what it is called; half of them Gaussian."""
    distances, size = pdist(X[:300]), float(np.mean(np.sum(X**2, axis=1)))
    median = float(np.median(distances[distances > 0])) if distances.any() else 1.0
    factor = float(rng.choice([0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 2.0]))
    gaussian = get_kernel("gaussian", sigma=factor * median)
    degree = int(rng.choice([2, 3, 4, 5, 6]))
    polynomial = get_kernel("polynomial", degree=degree, scale=1.0 / size, offset=1.0)
    width = f"{factor} medians"
    kinds = {
        "gaussian": (gaussian, f"gaussian, {width}"),
        "polynomial": (polynomial, f"polynomial, degree {degree}"),
        "tanh": (get_kernel("tanh", scale=1.0 / size, offset=-0.5), "tanh"),
        "laplacian": (get_kernel("laplacian", length_scale=factor * median), f"laplacian, {width}"),
        "matern": (get_kernel("matern", nu=1.5, length_scale=factor * median), f"matern, {width}"),
        "cosine": (get_kernel("cosine"), "cosine"),
        "sum": (gaussian + 0.1 * get_kernel("linear"), f"gaussian + linear, {width}"),
        "product": (gaussian * polynomial, f"gaussian x degree {degree}, {width}"),
    }
    kind = rng.choice(list(kinds), p=[0.5, 0.14, 0.05, 0.08, 0.08, 0.05, 0.05, 0.05])
    return kinds[str(kind)]


def timed(X: np.ndarray, options: dict[str, Any]) -> tuple[float, fk.KPCAModel]:
    times: list[float] = []
    while len(times) < (3 if sum(times) < 1.0 else 2):  # the first also takes its memory from the system
        started = time.process_time()
        model = fk.kpca(X, n_threads=1, **options)
        times.append(time.process_time() - started)
    return min(times), model


class TooLong(Exception):
    """A forced route is slower than ``auto`` by far."""


def stop(*_: object) -> None:
    raise TooLong


def forced(X: np.ndarray, asked: dict[str, Any], plan: Any, limit: float) -> dict[str, float]:
    """Seconds of each route that reaches tol."""
    seconds = {}
    for way in plan.candidates:
        if way.seconds > limit or way.obstacle:
            continue
        option = {"dense": {}, "krylov": {"products": way.name}, "features": {"features": way.name}}[way.method]
        signal.setitimer(signal.ITIMER_REAL, 3 * limit + 1.0)
        try:
            taken, model = timed(X, asked | {"method": way.method} | option)
        except (fk.errors.NoRouteError, MemoryError, TooLong):
            continue
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        if np.ptp(model.eigenvalue_bounds, axis=1).max() <= asked["tol"] * model.eigenvalues[0]:
            seconds[way.label] = taken
    return seconds


Case = tuple[str, np.ndarray, dict[str, Any], str]
"""Set, rows, options, what the kernel is called."""


def named() -> Iterator[Case]:
    for problem in problems.named():
        yield problem.rows, problem.X, problem.options, f"{problem.kernel}, d={problem.X.shape[1]}"


def drawn(options: argparse.Namespace) -> Iterator[Case]:
    rng, data = np.random.default_rng(options.seed), sets()
    while True:
        name = str(rng.choice(list(data)))
        X, asked, label = draw(rng, data[name], options.largest)
        if fk.plan(X, n_threads=1, **asked).chosen.seconds <= options.seconds:
            yield name, X, asked, label


def show_routes(plan: Any, measured: dict[str, float]) -> None:
    """As predicted, and as measured where that was done."""
    for way in plan.candidates:
        text = f"{way.label}: predicted {way.seconds:.3g} s"
        if way.label in measured:
            text += f", measured {measured[way.label]:.3g} s, of which that is {way.seconds / measured[way.label]:.2f}"
        print(" " * 31 + text + (f" ({way.obstacle})" if way.obstacle else ""), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--worse", type=float, default=1.5)
    parser.add_argument("--named", action="store_true")
    options = parser.parse_args()
    common.header("auto against the best of all routes forced, processor seconds")
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, stop)
    ratios: list[float] = []
    print(f"{'set':<14}{'N':>6}{'c':>4}{'tol':>7}  {'kernel':<32}{'auto':>8}{'best':>8}{'ratio':>7}  ran, best")
    for name, X, asked, label in named() if options.named else drawn(options):
        plan = fk.plan(X, n_threads=1, **asked)
        taken, model = timed(X, asked)
        others = forced(X, asked, plan, 10 * taken)
        if not others:  # none that reaches tol
            continue
        best = min(others, key=lambda way: others[way])
        ratios.append(taken / others[best])
        info = model.info
        tried = f" after {info['krylov_tried']} passes" if "krylov_tried" in info else ""
        print(
            f"{name:<14}{len(X):>6}{asked['c']:>4}{asked['tol']:>7.0e}  {label:<32}{taken:>8.3f}{others[best]:>8.3f}"
            f"{ratios[-1]:>7.2f}  {model.plan.chosen.label}{tried}, {best}",
            flush=True,
        )
        if ratios[-1] > options.worse:
            show_routes(plan, others)
        if len(ratios) == options.cases:
            break
    print(
        f"ratio: median {np.median(ratios):.2f}, 95 % {np.quantile(ratios, 0.95):.2f}, worst {max(ratios):.2f}; "
        f"{sum(x > 2 for x in ratios)} of {len(ratios)} above 2"
    )


if __name__ == "__main__":
    main()
