"""The pictures of the README and of the site's first page, in the folder of this file: python docs/draw_pictures.py

``speed.png`` takes minutes, and the data set uci_protein.npz in ../shared/data or in the folder in FASTKPCA_DATA.
"""

import os
import sys

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy: times of one thread

import time
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA

import fastkpca as fk
from fastkpca.plot._figure import BLUE, GREY, MARKERS, ORANGE, light_grid

HERE = Path(__file__).parent
DATA = Path(os.environ.get("FASTKPCA_DATA", HERE.parents[1] / "shared" / "data"))
SIZES = 500, 1000, 2000, 5000, 10_000, 20_000, 45_730
DENSE = 10_000  # rows up to which scikit-learn's N x N matrices are waited for: 2.4 GB
BUDGETS = 50, 100, 150
X, digit = load_digits(return_X_y=True)


def save(figure, name: str) -> None:
    drawn = BytesIO()
    figure.savefig(drawn, dpi=110)
    # 256 colours are enough, and a fifth of the bytes
    Image.open(drawn).convert("RGB").quantize(256).save(HERE / name, optimize=True)


def digits() -> None:
    ax = fk.plot.scores(fk.kpca(X[:1500], "gaussian", 2), digit[:1500], label_name="digit")
    save(ax.figure, "digits.png")


def intervals() -> None:
    """Intervals of the first eigenvalues of the digits, under budgets of features, around those that LAPACK finds."""
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    ax = figure.subplots()
    true = fk.kpca(X, "gaussian", 6, method="dense").eigenvalues
    number = np.arange(1, 7)
    for k, (budget, colour) in enumerate(zip(BUDGETS, (GREY, ORANGE, BLUE))):
        low, high = fk.kpca(X, "gaussian", 6, max_features=budget).eigenvalue_bounds.T
        assert ((low <= true) & (true <= high)).all()
        ax.vlines(number + 0.18 * (k - 1), low, high, color=colour, linewidth=5, label=f"{budget} features")
    ax.hlines(true, number - 0.3, number + 0.3, color="black", linewidth=1.2, label="true eigenvalue (LAPACK)")
    ax.set(xlabel="component", ylabel="eigenvalue, digits (1797 x 64)", ylim=(0, None))
    light_grid(ax, "y")
    ax.legend(frameon=False)
    save(figure, "intervals.png")


def seconds(fit) -> float:
    """Processor seconds: the median of three runs, of one where they are long."""
    times: list[float] = []
    while len(times) < (3 if not times or times[0] < 10 else 1):
        start = time.process_time()
        fit()
        times.append(time.process_time() - start)
    return float(np.median(times))


def speed() -> None:
    """Ten components of the same rows by scikit-learn and by fastkpca."""
    with np.load(DATA / "uci_protein.npz") as file:
        rows = file["X"][np.random.default_rng(0).permutation(len(file["X"]))].astype(float)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    sigma = fk.kpca(rows[:1000], "gaussian", 2).kernel.sigma
    gamma = 1 / (2 * sigma**2)
    ways = {
        "scikit-learn, KernelPCA(eigen_solver='arpack')": lambda Z: KernelPCA(
            10, kernel="rbf", gamma=gamma, eigen_solver="arpack", random_state=0
        ).fit_transform(Z),
        "fastkpca, intervals within 1e-6 of the largest eigenvalue": lambda Z: fk.kpca(
            Z, "gaussian", 10, sigma=sigma, n_threads=1
        ),
        "fastkpca, tol=1e-2": lambda Z: fk.kpca(Z, "gaussian", 10, sigma=sigma, tol=1e-2, n_threads=1),
    }
    figure = Figure(figsize=(7, 4), layout="constrained")
    ax = figure.subplots()
    for (name, fit), colour, mark in zip(ways.items(), (GREY, BLUE, ORANGE), MARKERS):
        sizes = [n for n in SIZES if n <= DENSE or "fastkpca" in name]
        times = [seconds(lambda fit=fit, n=n: fit(rows[:n])) for n in sizes]
        print(name, dict(zip(sizes, np.round(times, 3).tolist())), flush=True)
        ax.plot(sizes, times, color=colour, marker=mark, label=name)
    ax.set(xscale="log", yscale="log", xlabel="rows of UCI protein (9 columns), Gaussian kernel, 10 components")
    ax.set_ylabel("processor seconds")
    light_grid(ax)
    ax.legend(frameon=False)
    save(figure, "speed.png")


if __name__ == "__main__":
    for draw in [globals()[name] for name in sys.argv[1:]] or [digits, intervals, speed]:
        draw()
