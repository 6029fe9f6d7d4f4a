"""Do control limits keep their rate of false alarms? Normal rows that neither model nor limit has seen, drawn again and
again: the share of them beyond each limit, over 1 - confidence. 1 is right; 0 is a limit that sees nothing.

    python benchmarks/reproduce/limits.py [--draws 6] [--new 4000]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from setting import header, table

import fastkpca as fk

D = 12
MIXING = np.random.default_rng(8).standard_normal((D, D)) * 0.8 ** np.arange(D)[:, None]
DIRECTIONS = np.random.default_rng(9).standard_normal((3, D))


def surface(n: int, rng: np.random.Generator) -> np.ndarray:
    """Near a curved surface of three dimensions."""
    t = rng.uniform(-1, 1, (n, 3))
    curved = np.tanh(t @ DIRECTIONS) + 0.5 * (t @ DIRECTIONS[:, ::-1]) ** 2
    return np.asarray(curved + 0.05 * rng.standard_normal((n, D)))


def normal(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((n, D)) @ MIXING


def heavy_tails(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_t(5, (n, D)) @ MIXING


def ring(n: int, rng: np.random.Generator) -> np.ndarray:
    t = rng.uniform(0, 2 * np.pi, (n, 1)) * [1, 2, 3]
    return np.hstack([np.cos(t), np.sin(t)]) + 0.1 * rng.standard_normal((n, 6))


ROWS: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "surface": surface,
    "normal": normal,
    "heavy tails": heavy_tails,
    "ring": ring,
}
COMPONENTS = {"gaussian": (2, 8, 26), "linear": (2, 4)}
LIMITS = (("t2", "F"), ("t2", "chi2"), ("t2", "empirical"), ("spe", "box"), ("spe", "empirical"))


def false_alarms(rows: Callable, kernel: str, c: int, N: int, confidence: float, seed: int, n_new: int) -> list[float]:
    """For each limit the share of new rows beyond it, over 1 - confidence. N / 2 rows make the limits."""
    rng = np.random.default_rng(seed)
    model = fk.kpca(rows(N, rng), kernel, c, standardize=True)
    others, new = rows(N // 2, rng), rows(n_new, rng)
    values = {"t2": fk.kpca_t2(model, new), "spe": fk.kpca_spe(model, new)}
    shares = []
    for statistic, method in LIMITS:
        limits = fk.kpca_limits(model, others, confidence=confidence, **{statistic: method})
        shares.append(float((values[statistic] > getattr(limits, statistic)).mean()) / (1 - confidence))
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--new", type=int, default=4000)
    options = parser.parse_args()
    warnings.simplefilter("ignore", fk.errors.ComponentsWarning)
    header("reproduce: false alarms of control limits")
    lines = []
    for name, rows in ROWS.items():
        for kernel, numbers in COMPONENTS.items():
            for c in numbers:
                for N, confidence in ((400, 0.95), (2000, 0.99)):
                    draws = [
                        false_alarms(rows, kernel, c, N, confidence, seed, options.new) for seed in range(options.draws)
                    ]
                    lines.append([f"{name}, {kernel}, c={c}, {confidence:g}", *map(float, np.mean(draws, axis=0))])
    table(["false alarms / stated", *(" ".join(limit) for limit in LIMITS)], lines)
    spread = [[x[i] for x in lines] for i in range(1, len(LIMITS) + 1)]
    extremes = [["least", *map(min, spread)], ["most", *map(max, spread)]]
    table(["over all", *(" ".join(limit) for limit in LIMITS)], extremes)


if __name__ == "__main__":
    main()
