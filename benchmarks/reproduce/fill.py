"""Missing values in new rows, filled by the model (``kpca_fill``): how often do normal rows raise an alarm then?

    python benchmarks/reproduce/fill.py [--splits 20]

Normal rows of real data are cut into rows of the model, of the limits (95 % by both together), and new ones, of which a
share of the values is taken away at random. ``alarms`` by SPE and by T^2 are shares of the new rows, with the
values that were there (complete), filled by the model, and by the median of the column; ``error`` is the root mean
square of what was filled less what was there, in standard deviations of the column. ``seconds`` are of the processor.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from monitor import bundled, shifted
from setting import header, table

import fastkpca as fk

SETS = {
    "breast cancer, benign": lambda: bundled("breast_cancer", 1)[0],
    "uci protein": lambda: shifted("uci_protein.npz")[0],
    "uci kin40k": lambda: shifted("uci_kin40k.npz")[0],
    "uci keggdirected": lambda: shifted("uci_keggdirected.npz")[0],
}
SHARES, WIDTH = (0.1, 0.3), 4


def measured(X: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Alarms by SPE and T^2 of (complete, filled, medians), errors of the latter two, and seconds."""
    rng = np.random.default_rng(seed)
    X = X[rng.permutation(len(X))[:1500]]
    normal, held, new = np.split(X, [len(X) // 2, 3 * len(X) // 4])
    kernel = fk.kpca(normal, "gaussian", 10, standardize=True).kernel
    model = fk.kpca(normal, "gaussian", 10, sigma=WIDTH * kernel.sigma, standardize=True)
    model = model.with_limits(fk.kpca_limits(model, held, confidence=0.95, joint=True))
    gaps = rng.random(new.shape) < share
    gaps[gaps.all(axis=1)] = False
    started = time.process_time()
    filled = fk.kpca_fill(model, np.where(gaps, np.nan, new), n_threads=1)
    seconds = time.process_time() - started
    medians = np.where(gaps, np.median(held, axis=0), new)
    alarms = []
    for rows in (new, filled, medians):
        alarms += [
            (fk.kpca_spe(model, rows) > model.limits.spe).mean(),
            (fk.kpca_t2(model, rows) > model.limits.t2).mean(),
        ]
    spread = np.where(normal.std(axis=0) > 0, normal.std(axis=0), 1.0)
    errors = [np.sqrt(np.mean(((rows - new) / spread)[gaps] ** 2)) for rows in (filled, medians)]
    return np.array([*alarms, *errors, seconds])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    header("reproduce: missing values filled by the model")
    lines = []
    for name, rows in SETS.items():
        X = rows()
        for share in SHARES:
            found = np.mean([measured(X, share, seed) for seed in range(options.splits)], axis=0)
            percents = [f"{100 * x:.1f}" for x in found[:6]]
            lines.append([name, f"{100 * share:g}", *percents, f"{found[6]:.2f}", f"{found[7]:.2f}", f"{found[8]:.2g}"])
    states = [f"{state}: {by} (%)" for state in ("complete", "filled", "median") for by in ("SPE", "T2")]
    table(["rows", "missing (%)", *states, "error filled", "of median", "seconds"], lines)


if __name__ == "__main__":
    main()
