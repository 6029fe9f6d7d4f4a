"""Does ``fastkpca monitor`` alarm as seldom as it was asked to? Normal rows of real data that neither model nor limits
have seen, by the command line from file to file, over random splits; and other rows, which it should find.

    python benchmarks/reproduce/monitor.py [--splits 20]

Of each set the normal rows are shuffled and cut: the first part is the file that ``fastkpca fit --limits`` reads (it
holds a third of it back for the limits), the rest is monitored. ``alarms`` is the share of that rest beyond a
limit, its mean over the splits with the standard error; at most ``asked`` is promised, on average over splits.
``found`` is the share of the other rows beyond a limit: malignant tumours; another cultivar; other digits; rows of
which one column was moved by four standard deviations.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np
from setting import data, header, table

from fastkpca.cli import main as fastkpca


def bundled(name: str, normal: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows of the class that is called normal, the others) of a set that comes with scikit-learn."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return X[y == normal], X[y != normal]


def zeros() -> tuple[np.ndarray, np.ndarray]:
    """(handwritten zeros, some of the other digits)."""
    with data("usps.npz") as file:
        X, y = np.vstack([file["X"], file["X_test"]]), np.concatenate([file["y"], file["y_test"]])
    return X[y == 0], X[y != 0][:1000]


def shifted(name: str) -> tuple[np.ndarray, np.ndarray]:
    """(rows, copies of some with one column moved by four standard deviations)."""
    rng = np.random.default_rng(1)
    with data(name) as file:
        X = np.asarray(file["X"], dtype=np.float64)
    X = X[rng.permutation(len(X))[:6000]]
    other = X[:300].copy()
    column = rng.integers(0, X.shape[1], len(other))
    other[np.arange(len(other)), column] += 4.0 * X.std(axis=0)[column]
    return X, other


SETS = {  # rows, rows in the file of the fit, shares asked for: those that a third of the file can prove
    "wine, second cultivar": (lambda: bundled("wine", 1), 60, (0.9,)),
    "breast cancer, benign": (lambda: bundled("breast_cancer", 1), 300, (0.95,)),
    "usps, zeros": (zeros, 900, (0.95, 0.99)),
    "uci protein": (lambda: shifted("uci_protein.npz"), 1500, (0.95, 0.99)),
    "uci kin40k": (lambda: shifted("uci_kin40k.npz"), 1500, (0.95, 0.99)),
    "uci tamielectric": (lambda: shifted("uci_tamielectric.npz"), 1500, (0.95, 0.99)),
}


def run(*arguments: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        code = fastkpca([*arguments, "--quiet", "--force"])
    if code not in (0, 3, 5):
        raise SystemExit(f"fastkpca {' '.join(arguments)} ended with {code}")


def share(folder: Path, X: np.ndarray, confidence: float) -> float:
    """Share of the rows that ``fastkpca monitor`` finds beyond a limit."""
    np.save(folder / "new.npy", X)
    options = ["--limits", str(confidence), "-o", str(folder / "rows.csv"), "--alarms", "0"]
    run("monitor", str(folder / "m.kpca"), str(folder / "new.npy"), *options)
    beyond = np.loadtxt(folder / "rows.csv", delimiter=",", skiprows=1, ndmin=2)[:, 3:]
    return float(beyond.any(axis=1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    header("reproduce: alarms of fastkpca monitor")
    lines = []
    for name, (rows, n, confidences) in SETS.items():
        normal, other = rows()
        found = np.empty((options.splits, len(confidences), 2))
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for split in range(options.splits):
                X = normal[np.random.default_rng(split).permutation(len(normal))]
                np.save(folder / "normal.npy", X[:n])
                fit = ["fit", str(folder / "normal.npy"), "-o", str(folder / "m.kpca"), "--seed", str(split)]
                run(*fit, "--limits", str(confidences[0]))
                for j, confidence in enumerate(confidences):
                    found[split, j] = [share(folder, part, confidence) for part in (X[n : n + 1000], other)]
        means, errors = 100 * found.mean(axis=0), 100 * found.std(axis=0, ddof=1) / np.sqrt(options.splits)
        for confidence, mean, error in zip(confidences, means, errors):
            rate, asked = f"{mean[0]:.2f} +- {error[0]:.2f}", f"{100 * (1 - confidence):g}"
            lines.append([name, n - n // 3, n // 3, asked, rate, f"{mean[1]:.0f}"])
    table(["rows", "fitted", "held back", "asked (%)", "alarms (%)", "found (%)"], lines)


if __name__ == "__main__":
    main()
