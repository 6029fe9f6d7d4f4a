"""A loose tolerance against Nystroem(300) + PCA: processor seconds in one run, certified width, and true error.

    python benchmarks/speed/loose.py [set ...] [--c 10] [--features 300] [--tol 1e-2]
    python benchmarks/speed/loose.py --disk 10000000 [--columns 8] [--folder /tmp]
    python benchmarks/speed/loose.py --transform [set ...]

Each line is a fresh process, one thread; the rows and what is imported count for nobody. Both sides take the same sigma
(the median heuristic). The error is that of the eigenvalues over the largest one, against ``tol=1e-7``, which is only
computed for sets of up to 50000 rows. There the smallest m is looked for with which Nystroem(m) + PCA is truly within
``tol``, and ``to m`` is the ratio to its time. With ``--disk`` so many normal rows, float32, lie in a file; no scores
are made. With ``--transform`` Nystroem's class against scikit-learn's: ``fit_transform``, then ``transform``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
import warnings

import common
import numpy as np
import real_data

import fastkpca as fk

TABLES = {"table6": (6000, 17), "table17": (17_000, 20), "table60": (60_000, 32)}
SETS = ("normal", "uniform", "kin40k", "protein", "keggdirected", "usps", "digits", "strokes", *TABLES)
REFERENCE_ROWS = 50_000
LANDMARKS = (25, 50, 75, 100, 150, 200, 250, 300, 400, 500, 700, 1000, 1500, 2000, 3000)
"""Of Nystroem: the smallest that does."""


def rows_of(name: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if name == "strokes":
        return strokes(60_000, rng)
    if name in TABLES:
        return columns(*TABLES[name], rng)
    if name == "normal":
        return rng.standard_normal((200_000, 8))
    return rng.random((1_000_000, 10)) if name == "uniform" else real_data.load(name)


def strokes(n: int, rng: np.random.Generator, side: int = 28) -> np.ndarray:
    """Images of a pen's strokes: curves of forty kinds, moved, turned and bent, whose spectrum is about as slow as that
    of handwritten digits."""
    y, x = np.mgrid[:side, :side].astype(float)
    kinds, t, out = rng.uniform(5, 23, (40, 6, 2)), np.linspace(0, 1, 40), np.empty((n, side * side))
    curve = np.stack([math.comb(5, i) * t**i * (1 - t) ** (5 - i) for i in range(6)], axis=1)
    for start in range(0, n, 500):
        b = min(500, n - start)
        points = kinds[rng.integers(0, 40, b)] + rng.normal(0, 2.5, (b, 6, 2)) - side / 2
        turn = rng.normal(0, 0.2, b)
        turned = np.stack([np.cos(turn), -np.sin(turn), np.sin(turn), np.cos(turn)], axis=1).reshape(b, 2, 2)
        points = np.einsum("bij,bpj->bpi", turned, points) * rng.normal(1.6, 0.16, (b, 1, 1))
        pen = np.einsum("tp,bpi->bti", curve, points + rng.normal(0, 1.1, (b, 1, 2))) + side / 2
        squares = ((pen[:, :, 0, None, None] - y) ** 2 + (pen[:, :, 1, None, None] - x) ** 2).min(axis=1)
        width = rng.uniform(0.7, 1.2, b)[:, None, None]
        out[start : start + b] = 255 * np.minimum(1.5 * np.exp(-squares / (2 * width**2)), 1).reshape(b, -1)
    return out


def columns(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Columns as they are measured: a few factors, some with heavy tails, noise, and some rounded; standardised."""
    factors = rng.standard_normal((n, max(3, d // 3)))
    half = factors.shape[1] // 2
    factors[:, :half] = np.abs(factors[:, :half]) ** 1.5 * np.sign(factors[:, :half])
    X = factors @ rng.standard_normal((factors.shape[1], d)) * rng.uniform(0.3, 1.5, d)
    X += rng.standard_normal((n, d)) * rng.uniform(0.2, 1.5, d)
    X[:, ::4] = np.round(X[:, ::4])
    return (X - X.mean(axis=0)) / X.std(axis=0)


def sigma_of(X: np.ndarray) -> float:
    from scipy.spatial.distance import pdist

    few = X[np.random.default_rng(0).choice(len(X), min(len(X), 1000), replace=False)]
    return float(np.median(pdist(few))) / np.sqrt(2.0)


def nystroem(X: np.ndarray, sigma: float, c: int, n_features: int) -> dict:
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem

    started = time.process_time()
    Z = Nystroem(gamma=0.5 / sigma**2, n_components=min(n_features, len(X)), random_state=0).fit_transform(X)
    pca = PCA(c, svd_solver="covariance_eigh").fit(Z)
    pca.transform(Z)
    seconds = time.process_time() - started
    return {"seconds": seconds, "values": list(pca.explained_variance_ * (len(X) - 1)), "memory": common.peak_memory()}


def ours(X: np.ndarray, sigma: float, c: int, **options: object) -> dict:
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fk.kpca(X, "gaussian", c, sigma=sigma, n_threads=1, **options)
    seconds = time.process_time() - started
    low, high = model.eigenvalue_bounds.T
    return {
        "seconds": seconds,
        "values": list(model.eigenvalues),
        "memory": common.peak_memory(),
        "width": float((high - low).max() / model.eigenvalues[0]),
        "kind": model.bound_kind,
        "route": f"{model.info['method']} {model.info.get('n_features', '')}",
        "predicted": model.plan.chosen.seconds,
    }


def transforms(name: str, n_features: int) -> None:
    """Seconds of both classes on one set: each fits on a few rows first, so that what is imported counts for nobody."""
    import sklearn.kernel_approximation as theirs

    import fastkpca.sklearn as own

    X = rows_of(name)
    sigma, count = sigma_of(X), min(n_features, len(X))
    line = f"{name:10}"
    for label in ("fit_transform", "transform"):
        seconds = {}
        for module in (theirs, own):
            nystroem = module.Nystroem(gamma=0.5 / sigma**2, n_components=count, random_state=0).fit(X[:2000])
            task = getattr(nystroem, label)
            task(X[:2000])
            started = time.process_time()
            task(X)
            seconds[module] = time.process_time() - started
        line += f"  {label} {seconds[theirs]:.3f} {seconds[own]:.3f} ratio {seconds[own] / seconds[theirs]:.2f}"
    print(line, flush=True)


def on_disk(path: str, n: int, d: int, given: argparse.Namespace, task: str) -> None:
    X = np.memmap(path, dtype=np.float32, mode="r", shape=(n, d))
    few = np.random.default_rng(0).standard_normal((100, d), dtype=np.float32)
    fk.kpca(few, "gaussian", 2, max_features=20)  # what is imported counts for nobody
    before = common.peak_memory()
    options = {"tol": given.tol} if task == "tol" else {"max_features": given.features}
    result = ours(X, np.sqrt(d), given.c, return_scores=False, **options)
    print(json.dumps(result | {"values": None, "before": before}))


def disk_table(given: argparse.Namespace) -> None:
    n, d = given.disk, given.columns
    common.header(f"c = {given.c}; {n} x {d} normal rows on disk, float32, sigma = sqrt(d), no scores")
    with tempfile.NamedTemporaryFile(dir=given.folder) as file:
        for start in range(0, n, 100_000):
            rng = np.random.default_rng(start)
            file.write(rng.standard_normal((min(100_000, n - start), d), dtype=np.float32).tobytes())
        file.flush()
        for task in ("max_features", "tol"):
            arguments = ("--one", task, "--disk", str(n), "--columns", str(d), "--file", file.name)
            tail = ("--c", str(given.c), "--features", str(given.features), "--tol", str(given.tol))
            found = json.loads(common.in_fresh_process(__file__, *arguments, *tail).splitlines()[-1])
            print(
                f"{task:14}{found['seconds']:>9.1f} s, width {found['width']:.1e}, {found['route']}, {found['kind']}, "
                f"{found['memory']:.0f} MB in all, {found['memory'] - found['before']:.0f} MB above what is imported",
                flush=True,
            )


def one(name: str, task: str, c: int, n_features: int, tol: float) -> None:
    X = rows_of(name)
    sigma = sigma_of(X)
    if task == "nystroem":
        result = nystroem(X, sigma, c, n_features)
    elif task == "reference":
        result = ours(X, sigma, c, tol=1e-7) if len(X) <= REFERENCE_ROWS else {"values": None}
    else:
        result = ours(X, sigma, c, **({"tol": tol} if task == "tol" else {"max_features": min(n_features, len(X))}))
    print(json.dumps(result))


def measured(name: str, task: str, given: argparse.Namespace, n_features: int | None = None) -> dict:
    arguments = ("--one", task, "--c", str(given.c), "--features", str(n_features or given.features))
    arguments += ("--tol", str(given.tol))
    return json.loads(common.in_fresh_process(__file__, name, *arguments).splitlines()[-1])


def error_of(found: dict, true: list[float] | None) -> float:
    if true is None:
        return float("nan")
    return float(np.abs(np.array(found["values"]) - np.array(true)[: len(found["values"])]).max() / true[0])


def smallest(name: str, true: list[float] | None, given: argparse.Namespace) -> tuple[int, dict | None]:
    """Landmarks with which Nystroem is within ``tol``, and what it takes; (0, None) where that is not known."""
    for m in LANDMARKS if true is not None else ():
        found = measured(name, "nystroem", given, m)
        if error_of(found, true) <= given.tol:
            return m, found
    return 0, None


def table(given: argparse.Namespace) -> None:
    common.header(f"c = {given.c}; Nystroem({given.features}) + PCA, kpca(max_features), kpca(tol={given.tol:g})")
    print(f"{'set':10}{'task':>14}{'seconds':>9}{'ratio':>7}{'to m':>7}{'width':>9}{'error':>9}{'MB':>6}  how")
    for name in given.sets or SETS:
        true = measured(name, "reference", given)["values"]
        m, least = smallest(name, true, given)
        tasks = {task: measured(name, task, given) for task in ("nystroem", "max_features", "tol")}
        tasks |= {} if least is None else {f"nystroem {m}": least}
        for task, found in tasks.items():
            ratio = found["seconds"] / tasks["nystroem"]["seconds"]
            to_least = "-" if least is None else f"{found['seconds'] / least['seconds']:.2f}"
            width = f"{found['width']:.1e}" if "width" in found else "-"
            how = f"{found['route']}, {found['kind']}, predicted {found['predicted']:.2g} s" if "route" in found else ""
            print(
                f"{name:10}{task:>14}{found['seconds']:>9.3f}{ratio:>7.2f}{to_least:>7}{width:>9}"
                f"{error_of(found, true):>9.1e}{found['memory']:>6.0f}  {how}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help=", ".join(SETS))
    parser.add_argument("--c", type=int, default=10)
    parser.add_argument("--features", type=int, default=300)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--disk", type=int)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--transform", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.file:
        on_disk(given.file, given.disk, given.columns, given, given.one)
    elif given.disk:
        disk_table(given)
    elif given.one == "transform":
        transforms(given.sets[0], given.features)
    elif given.transform:
        common.header(
            f"Nystroem({given.features}): seconds of scikit-learn's class, of this library's, and their ratio"
        )
        for name in given.sets or SETS:
            print(
                common.in_fresh_process(__file__, name, "--one", "transform", "--features", str(given.features)), end=""
            )
    elif given.one:
        one(given.sets[0], given.one, given.c, given.features, given.tol)
    else:
        table(given)


if __name__ == "__main__":
    sys.exit(main())
