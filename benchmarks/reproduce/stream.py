"""Streams: do intervals hold after each batch, what does a batch cost, and does a model follow its process?

    python benchmarks/reproduce/stream.py attack [--streams 500]
    python benchmarks/reproduce/stream.py time
    python benchmarks/reproduce/stream.py regimes [--rows 1000000]

attack: random streams (stationary, shifts, drifts, new clusters, heavy tails, returns), three kernels, weights, files
in between; after each batch each interval is compared with LAPACK's eigenvalue of all rows so far (tests/support).
time: stationary rows; processor seconds of a batch with and without growth, and widths over those of a fit of all rows
with as many features. regimes: 200 batches of three regimes; the variance of new rows of the last regime that ten
components explain, over what a model of that regime alone explains, for models that keep, grow and forget, and for
scikit-learn's IncrementalPCA on as many features of Nystroem and RBFSampler.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from setting import header, peak_memory, table

import fastkpca as fk

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
SIGMA, C, BATCHES = 5.0, 10, 200


def attack(streams: int) -> None:
    import stream_cases

    found = [stream_cases.stream(np.random.default_rng([7, seed])) for seed in range(streams)]
    for one in found:
        if one["missed"]:
            print(one)
    total = {name: sum(one[name] for one in found) for name in ("batches", "intervals", "missed")}
    print(f"{streams} streams, {total['batches']} batches, {total['intervals']} intervals, {total['missed']} missed")
    grew = sum(one["grown"] > 0 for one in found)
    print(f"{grew} grew; {sum(one['certain'] for one in found)} have certain intervals")


def seconds_of(call) -> tuple[float, object]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def timing() -> None:
    lines = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        mixing = rng.standard_normal((4, 10))
        made = [rng.standard_normal((5000, 4)) @ mixing + 0.3 * rng.standard_normal((5000, 10)) for _ in range(21)]
        first = fk.kpca(made[0], "gaussian", C, sigma=SIGMA, tol=1e-2, features="pivots", keep_moments=True)
        models, spent = [first, first], np.zeros(2)
        for batch in made[1:]:
            for i, grow in enumerate((True, False)):
                seconds, models[i] = seconds_of(lambda: fk.kpca_update(models[i], batch, tol=1e-2, grow=grow))  # noqa: B023
                spent[i] += seconds
        D = models[0].info["n_features"]
        X = np.concatenate(made)
        fresh = fk.kpca(X, "gaussian", C, sigma=SIGMA, max_features=D, keep_moments=True, features="pivots")
        widths = [np.median(np.ptp(model.eigenvalue_bounds, axis=1)) for model in (models[0], fresh)]
        grown = models[0].info.get("grown", 0)
        lines.append([str(seed), str(D), str(grown), spent[0] / spent[1], widths[0] / widths[1]])
    table(["seed", "features", "grown", "time of growth over none", "width over a fit of all rows"], lines)


def regimes(rows: int) -> None:
    rng = np.random.default_rng(0)
    mixings = [rng.standard_normal((3, 10)) for _ in range(3)]
    centres = [4.0 * rng.standard_normal(10) for _ in range(3)]
    size = rows // BATCHES

    def draw(regime: int, n: int) -> np.ndarray:
        return centres[regime] + rng.standard_normal((n, 3)) @ mixings[regime] + 0.3 * rng.standard_normal((n, 10))

    fresh = draw(2, 20_000)
    alone = fk.kpca(draw(2, 20_000), "gaussian", C, sigma=SIGMA, tol=1e-2)

    def explained(scores: np.ndarray) -> float:
        return float(scores.var(axis=0).sum())

    best = explained(fk.kpca_project(alone, fresh))
    options = {"keeps the first map": {"grow": False}, "grows": {}, "grows and forgets (.9)": {"forget": 0.9}}
    first = draw(0, size)
    start = fk.kpca(first, "gaussian", C, sigma=SIGMA, tol=1e-2, features="pivots", keep_moments=True)
    models, spent = dict.fromkeys(options, start), dict.fromkeys(options, 0.0)

    from sklearn.decomposition import IncrementalPCA
    from sklearn.kernel_approximation import Nystroem, RBFSampler

    gamma = 1.0 / (2.0 * SIGMA**2)
    theirs = {}
    for i in range(1, BATCHES):
        batch = draw(min(3 * i // BATCHES, 2), size)
        for name, keywords in options.items():
            update = lambda: fk.kpca_update(models[name], batch, tol=1e-2, **keywords)  # noqa: B023, E731
            seconds, models[name] = seconds_of(update)
            spent[name] += seconds
    D = models["grows and forgets (.9)"].info["n_features"]
    rng = np.random.default_rng(0)
    mixings = [rng.standard_normal((3, 10)) for _ in range(3)]
    centres = [4.0 * rng.standard_normal(10) for _ in range(3)]
    for name, approximation in (
        ("Nystroem, IncrementalPCA", Nystroem(gamma=gamma, n_components=D, random_state=0)),
        ("RBFSampler, IncrementalPCA", RBFSampler(gamma=gamma, n_components=D, random_state=0)),
    ):
        approximation.fit(first)
        pca, spent[name] = IncrementalPCA(C), 0.0
        for i in range(BATCHES):
            batch = draw(min(3 * i // BATCHES, 2), size)
            seconds, _ = seconds_of(lambda: pca.partial_fit(approximation.transform(batch)))  # noqa: B023
            spent[name] += seconds
        theirs[name] = pca.transform(approximation.transform(fresh))
    lines = []
    for name, model in models.items():
        part = explained(fk.kpca_project(model, fresh)) / best
        low, high = model.eigenvalue_bounds.T
        lines.append([name, str(model.info["n_features"]), part, spent[name], f"{(high - low).max() / high[0]:.1e}"])
    for name, scores in theirs.items():
        lines.append([name, str(D), explained(scores) / best, spent[name], "unknown"])
    table(["model", "features", "explained of the last regime", "seconds", "widest interval"], lines)
    print(f"peak memory {peak_memory():.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["attack", "time", "regimes"])
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    header(f"reproduce: streams, {options.what}")
    warnings.simplefilter("ignore")
    {"attack": lambda: attack(options.streams), "time": timing, "regimes": lambda: regimes(options.rows)}[
        options.what
    ]()


if __name__ == "__main__":
    main()
