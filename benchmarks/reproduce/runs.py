"""How often does the alarm of a whole run ring without cause, and how soon with one? Beside CUSUM and EWMA.

    python benchmarks/reproduce/runs.py [--runs 10000] [--rows 1000] [--delays 100]

The first table has the percentage of runs of normal rows that raise each alarm at least once. ``run`` is
``Monitored.run_alarm``: at most 1 % for a run of any length. CUSUM (k = 0.5) and EWMA (lambda = 0.2) get normal scores
of the ranks of T2 and of SPE among the rows of the limits, a chart for each, and the limit that 1 % of other runs of
the same length exceed: they know how long a run will be, and that it is simulated; in a longer one they ring more.
The limits of T2 and SPE for each row are beyond in 1 % of all rows.

The second table has the median number of rows from a change to the alarm (and the largest), over runs of a plant with
two latent factors and eight columns (``plants.py``), where one column shifts by so many standard deviations of its own,
or drifts by so many in 100 rows, after 100 or 1000 normal rows.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from plants import plant
from scipy import special
from setting import header, table

import fastkpca as fk
from fastkpca.model.monitoring.run import RUN_RATE, run_evidence

NORMAL = 1000
CHANGES = {"shift of 0.5": (0.5, 0.0), "shift of 1": (1.0, 0.0), "shift of 2": (2.0, 0.0), "drift of 1": (0.0, 0.01),
           "drift of 4": (0.0, 0.04)}  # fmt: skip


def charts(normal: np.ndarray, new: np.ndarray) -> dict[str, np.ndarray]:
    """The largest of the charts of T2 and SPE after each row, of both kinds."""
    scores = []
    for a, b in zip(normal.T, new.T):
        rank = np.searchsorted(np.sort(a), b) + 0.5
        scores.append(special.ndtri(rank / (len(a) + 1.0)))
    z = np.stack(scores, axis=1)
    cusum, ewma, now, mean = np.empty(len(z)), np.empty(len(z)), np.zeros(2), np.zeros(2)
    for i, x in enumerate(z):
        now = np.maximum(now + x - 0.5, 0.0)
        mean = 0.8 * mean + 0.2 * x
        cusum[i], ewma[i] = now.max(), mean.max()
    return {"CUSUM": cusum, "EWMA": ewma}


def statistics(n: int, rng: np.random.Generator) -> np.ndarray:
    """T2 and SPE that have something to do with each other, with long tails: (n, 2)."""
    z = rng.standard_normal((n, 2))
    return np.exp(np.stack([z[:, 0], 0.5 * z[:, 0] + z[:, 1]], axis=1))


def false_alarms(runs: int, rows: int) -> dict[str, float]:
    """The limits of the charts; prints how many runs raise each alarm."""
    limits: dict[str, float] = {}
    largest: dict[str, list[float]] = {"CUSUM": [], "EWMA": []}
    rng = np.random.default_rng(1)
    for _ in range(max(runs // 10, 200)):
        for name, values in charts(statistics(NORMAL, rng), statistics(rows, rng)).items():
            largest[name].append(values.max())
    limits = {name: float(np.quantile(values, 0.99)) for name, values in largest.items()}
    raised, lines, rng = 0, [], np.random.default_rng(0)
    for _ in range(runs):
        raised += run_evidence(statistics(NORMAL, rng), statistics(rows, rng)).max() >= 1 / RUN_RATE
    lines.append([f"{rows} rows", runs, f"{100 * raised / runs:.2f}", "1 (set)", "1 (set)"])
    long, some = {"run": 0, "CUSUM": 0, "EWMA": 0}, max(runs // 100, 20)
    for _ in range(some):
        normal, new = statistics(NORMAL, rng), statistics(10 * rows, rng)
        long["run"] += run_evidence(normal, new).max() >= 1 / RUN_RATE
        for name, values in charts(normal, new).items():
            long[name] += values.max() > limits[name]
    lines.append([f"{10 * rows} rows", some, *(f"{100 * x / some:.2f}" for x in long.values())])
    table(["runs of normal rows that raise it (%)", "runs", "run", "CUSUM", "EWMA"], lines)
    return limits


def delays(count: int, limits: dict[str, float]) -> None:
    lines = []
    for before in (100, 1000):
        for what, (shift, drift) in CHANGES.items():
            found: dict[str, list[int]] = {"run": [], "CUSUM": [], "EWMA": []}
            for seed in range(count):
                case = plant(seed, n=3 * NORMAL)
                model = replace(fk.kpca(case.normal[NORMAL:], "linear", 8, standardize=True), spe_components=2)
                rows = case.other[: before + 1000].copy()
                column, spread = seed % 8, case.normal[:, seed % 8].std()
                rows[before:, column] += spread * (shift + drift * np.arange(len(rows) - before))
                normal, new = (
                    np.column_stack([fk.kpca_t2(model, X), fk.kpca_spe(model, X)]) for X in (case.normal[:NORMAL], rows)
                )
                values = charts(normal, new)
                values |= {"run": run_evidence(normal, new)}
                for name, of_rows in values.items():
                    late = np.flatnonzero(of_rows[before:] >= (1 / RUN_RATE if name == "run" else limits[name]))
                    found[name].append(int(late[0]) + 1 if len(late) else len(rows))
            cells = [f"{np.median(x):.0f} ({max(x)})" for x in found.values()]
            lines.append([f"{what}, after {before} rows", *cells])
    table(["rows from the change to the alarm: median (largest)", *found], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--delays", type=int, default=100)
    options = parser.parse_args()
    header("reproduce: alarms of whole runs")
    delays(options.delays, false_alarms(options.runs, options.rows))


if __name__ == "__main__":
    main()
