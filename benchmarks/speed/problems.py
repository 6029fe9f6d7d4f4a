"""Problems drawn at random, which nobody has tuned anything on: rows, kernel, components and tolerance.

    problem(seed, i)

is the same on every machine that has the same real sets (``FASTKPCA_DATA``; without them only drawn rows and those of
scikit-learn are taken). ``NAMED`` are problems on which a plan went wrong once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import common
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits

from fastkpca.kernels import Kernel, get_kernel

SIZES = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 200_000)
COLUMNS = (1, 2, 3, 5, 8, 13, 26, 64, 200, 784)
REAL = ("kin40k", "protein", "tamielectric", "keggdirected", "usps", "waveform", "digits", "elevators")
MOST_NUMBERS = 2e7
"""In the rows of a problem."""


@dataclass(frozen=True)
class Problem:
    rows: str
    kernel: str
    X: np.ndarray
    options: dict[str, Any]

    def __str__(self) -> str:
        n, d = self.X.shape
        return f"{self.rows:<13}{n:>7} x{d:>4} {self.kernel:<26}{self.options['c']:>3} {self.options['tol']:.0e}"


def problem(
    seed: int, i: int, largest: int = SIZES[-1], smallest: int = 0, only: str = "", columns: tuple[int, ...] = COLUMNS
) -> Problem:
    """The i-th problem of a set; ``only`` "real" or "drawn" rows, ``columns`` of the latter."""
    rng = np.random.default_rng([seed, i])
    kinds = {"real": [*real_sets()], "drawn": [*DRAWN]}
    kind = str(rng.choice(kinds[only] if only else [*DRAWN, *real_sets()]))
    n = int(rng.choice([size for size in SIZES if smallest <= size <= largest]))
    X = DRAWN[kind](rng, n, int(rng.choice(columns))) if kind in DRAWN else some_rows(rng, real_sets()[kind], n)
    kernel, label = draw_kernel(rng, X)
    if rng.random() < 0.1:
        X, label = X.astype(np.float32), f"{label}, float32"
    c, tol = int(rng.choice([2, 10, 50])), float(rng.choice([1e-2, 1e-3, 1e-4, 1e-6, 1e-9]))
    return Problem(kind, label, X, {"kernel": kernel, "c": min(c, len(X) - 2), "tol": tol})


# rows --------------------------------------------------------------------------------------------------------


def fitting(n: int, d: int) -> int:
    return int(min(n, MOST_NUMBERS // d))


def cube(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.random((fitting(n, d), d))


def normal(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.standard_normal((fitting(n, d), d))


def student(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.standard_t(3, (fitting(n, d), d))


def lognormal(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.lognormal(0, 1, (fitting(n, d), d))


def correlated(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Standard deviations along random directions fall as 1 / i."""
    factors = np.linalg.qr(rng.standard_normal((d, d)))[0] / np.arange(1, d + 1)[:, None]
    return rng.standard_normal((fitting(n, d), d)) @ factors


def one_hot(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Three columns of categories, as zeros and ones, the rest numbers."""
    n = fitting(n, d + 30)
    categories = [np.eye(10)[np.minimum(rng.geometric(0.3, n) - 1, 9)] for _ in range(3)]
    return np.hstack([rng.standard_normal((n, d)), *categories])


def clusters(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Ten normal clusters of unequal weight."""
    n, weights = fitting(n, d), rng.dirichlet(np.full(10, 1.0))
    return rng.random((10, d))[rng.choice(10, n, p=weights)] * 10.0 + rng.standard_normal((n, d))


DRAWN = {
    "cube": cube,
    "normal": normal,
    "student t3": student,
    "lognormal": lognormal,
    "correlated": correlated,
    "one-hot": one_hot,
    "clusters": clusters,
}


@cache
def real_sets() -> dict[str, np.ndarray]:
    found = {"digits": load_digits().data}
    for name in REAL:
        for path in (common.DATA / x for x in (f"uci_{name}.npz", f"{name}.npz", f"ida/{name}.npz")):
            if path.exists():
                file = np.load(path)
                found[name] = next(np.asarray(file[x], float) for x in file.files if file[x].ndim == 2)
                break
    return found


def some_rows(rng: np.random.Generator, X: np.ndarray, n: int) -> np.ndarray:
    """Standardised; without columns that are constant."""
    X = X[rng.permutation(len(X))[: min(n, len(X))]]
    X = X[:, X.std(axis=0) > 1e-9 * np.abs(X).max(axis=0)]
    return (X - X.mean(axis=0)) / X.std(axis=0)


# named -------------------------------------------------------------------------------------------------------


def gaussian(
    rows: str, X: np.ndarray, part: float, c: int = 10, tol: float = 1e-6, sigma: float | None = None
) -> Problem:
    """``part``: of the median distance; or ``sigma`` itself."""
    kernel = get_kernel("gaussian", sigma=part * median_distance(X) if sigma is None else sigma)
    return Problem(
        rows,
        f"gaussian {part:g}" if sigma is None else f"gaussian, sigma {sigma:g}",
        X,
        {"kernel": kernel, "c": c, "tol": tol},
    )


def tanh(rows: str, X: np.ndarray, tol: float) -> Problem:
    scale = 1.0 / float(np.mean(np.sum(X**2, axis=1)))
    return Problem(rows, "tanh", X, {"kernel": get_kernel("tanh", scale=scale, offset=-0.5), "c": 10, "tol": tol})


def from_seed(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


NAMED = {
    "heavy tails in the plane": lambda: [
        gaussian("lognormal", from_seed(3000).lognormal(0, 1, (50_000, 2)), 1, sigma=1.7278),
        gaussian("lognormal", from_seed(2012).lognormal(0, 1, (200_000, 2)), 1, sigma=1.832),
        gaussian("student t3", from_seed(3201).standard_t(3, (20_000, 2)), 1, sigma=1.5652),
    ],
    "many columns": lambda: [
        gaussian(kind, DRAWN[kind](from_seed(n), n, 784), 1, tol=tol)
        for kind in ("normal", "correlated")
        for n, tol in ((200, 1e-6), (1000, 1e-2), (2000, 1e-4), (5000, 1e-6))
    ],
    "one-hot columns": lambda: [
        gaussian("one-hot", one_hot(from_seed(n), n, d), part, tol=tol)
        for n, d, part, tol in ((1000, 3, 1, 1e-4), (5000, 2, 0.5, 1e-6), (20_000, 3, 1, 1e-3), (10_000, 8, 1, 1e-6))
    ],
    "tanh": lambda: [
        tanh(kind, DRAWN[kind](from_seed(n), n, d), tol)
        for kind, n, d, tol in (("normal", 2000, 8, 1e-6), ("cube", 5000, 5, 1e-4), ("student t3", 10_000, 13, 1e-6))
    ],
    "looser and looser": lambda: [
        gaussian(kind, DRAWN[kind](from_seed(n), n, d), 1, tol=tol)
        for kind, n, d in (("correlated", 4137, 26), ("normal", 4137, 26), ("normal", 8192, 32))
        for tol in (1e-9, 1e-6, 1e-4, 1e-2)
    ],
    "narrow clusters": lambda: [
        gaussian("clusters", clusters(from_seed(d), 20_000, d), part, tol=1e-4)
        for d, part in ((2, 0.02), (4, 0.05), (8, 0.1))
    ],
}
"""By what they have in common."""


def named() -> Iterator[Problem]:
    for make in NAMED.values():
        yield from make()


# kernels -----------------------------------------------------------------------------------------------------


def median_distance(X: np.ndarray) -> float:
    distances = pdist(X[:300])
    return float(np.median(distances[distances > 0])) if distances.any() else 1.0


def draw_kernel(rng: np.random.Generator, X: np.ndarray) -> tuple[Kernel, str]:
    """A kernel, and what it is called; widths are parts of the median distance, and 1 half of the time."""
    size = float(np.mean(np.sum(X**2, axis=1)))
    factor = float(rng.choice([0.1, 0.2, 0.5, 1.0, 1.0, 1.0, 2.0]))
    width, degree = factor * median_distance(X), int(rng.choice([2, 3, 4, 5, 6]))
    gaussian = get_kernel("gaussian", sigma=width)
    polynomial = get_kernel("polynomial", degree=degree, scale=1.0 / size, offset=1.0)
    made = {
        "gaussian": gaussian,
        "polynomial": polynomial,
        "linear": get_kernel("linear"),
        "tanh": get_kernel("tanh", scale=1.0 / size, offset=-0.5),
        "laplacian": get_kernel("laplacian", length_scale=width),
        "matern": get_kernel("matern", nu=float(rng.choice([0.5, 1.5, 2.5])), length_scale=width),
        "rational_quadratic": get_kernel("rational_quadratic", length_scale=width),
        "cosine": get_kernel("cosine"),
        "gaussian + linear": gaussian + (0.1 / size) * get_kernel("linear"),
        "gaussian x polynomial": gaussian * polynomial,
        "gaussian, widths": get_kernel("gaussian", sigma=width * np.exp(rng.uniform(-0.7, 0.7, X.shape[1]))),
    }
    weights = np.where(np.array(list(made)) == "gaussian", 8.0, 1.0)
    kind = str(rng.choice(list(made), p=weights / weights.sum()))
    detail = f" {degree}" if kind == "polynomial" else f" {factor:g}" if width_matters(kind) else ""
    return made[kind], kind + detail


def width_matters(kind: str) -> bool:
    return kind.startswith(("gaussian", "laplacian", "matern", "rational"))
