"""``fastkpca demo``: one complete run on data that is at hand, with its results checked and written."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fastkpca as fk

from .. import plot
from .arguments import DEFAULT_COMPONENTS
from .tables import write as scorefiles

MODEL, SCORES, PLOT = "demo-model.kpca", "demo-scores.csv", "demo-scores.png"


def two_spheres(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points near two concentric spheres of radius 1 and 3, and which of the two each belongs to.

    X = (1 + 2 B) (cos(phi) sin(theta), sin(phi) sin(theta), cos(theta)) + e. B is a fair coin, phi is uniform on
    (0, 2 pi), theta on (0, pi), and e is normal with standard deviation 0.3. No plane separates the two, and so
    no linear component does.
    """
    outer = rng.integers(0, 2, n)
    phi, theta = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, np.pi, n)
    direction = np.stack([np.cos(phi) * np.sin(theta), np.sin(phi) * np.sin(theta), np.cos(theta)], axis=1)
    return (1 + 2 * outer)[:, None] * direction + rng.normal(0, 0.3, (n, 3)), outer


def _data(rng: np.random.Generator) -> tuple[str, np.ndarray, np.ndarray, dict[str, Any]]:
    """(what it is, rows, labels, further arguments of kpca)."""
    if importlib.util.find_spec("sklearn") is not None:
        from sklearn.datasets import load_digits

        X, labels = load_digits(return_X_y=True)
        order = rng.permutation(len(X))
        return "handwritten digits of 8 x 8 pixels (scikit-learn)", X[order], labels[order], {}
    X, labels = two_spheres(360, rng)
    what = "generated: two noisy concentric spheres, radii 1 and 3 (scikit-learn's digits are not installed)"
    # exp(-|x - y|^2), the kernel this example is known with; so few rows are LAPACK's home ground
    return what, X, labels, {"sigma": 2**-0.5, "method": "dense"}


def _prepare(folder: Path, force: bool) -> bool:
    """Make the folder; True where it holds results of an earlier demo, which will be overwritten."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{str(folder)!r} is a file; choose another folder with --output")
    folder.mkdir(parents=True, exist_ok=True)
    existing = set(os.listdir(folder))
    others = existing - {MODEL, SCORES, PLOT}
    if others and not force:
        advice = "choose another with --output, or add the demo's files to it with --force"
        raise FileExistsError(f"the folder {str(folder)!r} holds other files (such as {min(others)!r}); {advice}")
    return bool(existing - others)


def run(
    folder: str | os.PathLike, describe: Callable[[Any, float], str], *, force: bool = False, progress: Any = None
) -> None:
    """Fit, write, load, project and report.

    Parameters
    ----------
    folder : path
        Made where it is missing. Results of an earlier demo in it are overwritten, nothing else ever is.
    describe : callable
        Text about a model and the seconds that it took.
    force : bool
        Go on where the folder holds files that are not the demo's.
    progress : Bars, optional

    Raises
    ------
    FileExistsError
        The folder holds other files and ``force`` is false.
    """
    folder = Path(folder)
    if _prepare(folder, force):
        print(f"overwriting the results of an earlier demo in {folder}")
    what, X, labels, parameters = _data(np.random.default_rng(0))
    n_train = len(X) * 5 // 6
    train, held_out = X[:n_train], X[n_train:]
    print(f"{'data':<18}{what}")
    print(f"{'rows held out':<18}{len(held_out)} of {len(X)}")

    start = time.perf_counter()
    model = fk.kpca(train, "gaussian", DEFAULT_COMPONENTS, rng=0, progress=progress or False, **parameters)
    seconds = time.perf_counter() - start
    if progress is not None:
        progress.clear()
    print(describe(model, seconds))

    fk.save(model, folder / MODEL, overwrite=True)
    scorefiles.write_scores(folder / SCORES, model.score, True)
    written = [MODEL, SCORES]
    if importlib.util.find_spec("matplotlib") is not None:
        plot.save(plot.scores(model, labels[:n_train]), folder / PLOT, overwrite=True)
        written.append(PLOT)
    else:
        print("no plot: matplotlib is not installed")

    loaded = fk.load(folder / MODEL)
    scale = float(np.abs(model.score).max())
    projected = fk.kpca_project(loaded, held_out)
    saved = float(np.abs(projected - fk.kpca_project(model, held_out)).max()) / scale
    again = float(np.abs(fk.kpca_project(loaded, train) - model.score).max()) / scale
    print()
    print("the model, saved and loaded, relative to the largest score:")
    print(f"  held-out rows, against the model in memory: {saved:.1e}")
    print(f"  training rows projected, against their scores: {again:.1e}")
    share = np.mean(_nearest(projected, model.score, labels[:n_train]) == labels[n_train:])
    print(f"held-out rows with the label of the nearest training row in these {projected.shape[1]} scores: {share:.1%}")
    print(f"written to {folder}: {', '.join(written)}")


def _nearest(points: np.ndarray, among: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Label of the nearest row, for each point."""
    from scipy.spatial import cKDTree

    return labels[cKDTree(among).query(points)[1]]
