"""Do control limits keep their rate of false alarms? Ordinary rows that neither model nor limit has seen, drawn again
and again.

    python benchmarks/reproduce/limits.py [--draws 6] [--samples 100] [--new 4000]

The first table has the share of them beyond the default limits, in percent, for samples of 50 to 2000 rows: of T^2, of
SPE, and of either where the limits are joint. At most 1 - confidence is asked for; N rows prove 1 / (N + 1) at best,
and 2 / (N + 1) for both. The line below has the largest share over that bound, and the largest excess in standard
errors, of 288 shares. The second table has what assumes normal scores: the share beyond each limit, over
1 - confidence. 1 is right; 0 is a limit that sees nothing.
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


def lognormal(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.standard_normal((n, D)))


def mixture(n: int, rng: np.random.Generator) -> np.ndarray:
    """Three rows in ten come from another place, with a third of the spread."""
    other = rng.random((n, 1)) < 0.3
    return np.where(other, 4.0 + normal(n, rng) / 3.0, normal(n, rng))


def ring(n: int, rng: np.random.Generator) -> np.ndarray:
    t = rng.uniform(0, 2 * np.pi, (n, 1)) * [1, 2, 3]
    return np.hstack([np.cos(t), np.sin(t)]) + 0.1 * rng.standard_normal((n, 6))


ROWS: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "surface": surface,
    "normal": normal,
    "heavy tails": heavy_tails,
    "ring": ring,
}
POPULATIONS = {"normal": normal, "heavy tails": heavy_tails, "lognormal": lognormal, "mixture": mixture}
SAMPLES = (50, 99, 200, 500, 1000, 2000)
CONFIDENCES = (0.9, 0.95, 0.99, 0.999)
COMPONENTS = {"gaussian": (2, 8, 26), "linear": (2, 4)}
LIMITS = (("t2", "F"), ("t2", "chi2"), ("spe", "box"))


def shares(rows: Callable, seed: int, n_new: int) -> np.ndarray:
    """Shares of new rows beyond limits made of the first N of 2000 rows: (samples, confidences, 3)."""
    rng = np.random.default_rng(seed)
    model = fk.kpca(rows(300, rng), "gaussian", 8, standardize=True)
    others, new = rows(max(SAMPLES), rng), rows(n_new, rng)
    t2, spe = fk.kpca_t2(model, new), fk.kpca_spe(model, new)
    found = np.empty((len(SAMPLES), len(CONFIDENCES), 3))
    for i, n in enumerate(SAMPLES):
        for j, confidence in enumerate(CONFIDENCES):
            each, both = (fk.kpca_limits(model, others[:n], confidence=confidence, joint=x) for x in (False, True))
            flagged = each.exceeded(t2=t2), each.exceeded(spe=spe), both.exceeded(t2=t2, spe=spe)
            found[i, j] = np.mean(flagged, axis=1)
    return found


def default_limits(n_samples: int, n_new: int) -> None:
    """The table of all populations, samples and confidences."""
    asked = [1.0 - confidence for confidence in CONFIDENCES]
    bound = [[[max(rate, k / (n + 1)) for k in (1, 1, 2)] for rate in asked] for n in SAMPLES]
    names = ("T2", "SPE", "joint")
    columns = [f"{name} {100 * rate:.3g} %" for rate in asked for name in names]
    lines, over, above = [], 0.0, -np.inf
    for name, rows in POPULATIONS.items():
        drawn = np.array([shares(rows, seed, n_new) for seed in range(n_samples)])
        mean, error = drawn.mean(axis=0), np.sqrt((drawn.var(axis=0, ddof=1) + np.divide(bound, n_new)) / n_samples)
        lines += [[f"{name}, {n}", *(float(100 * x) for x in part.ravel())] for n, part in zip(SAMPLES, mean)]
        over, above = max(over, float((mean / bound).max())), max(above, float(((mean - bound) / error).max()))
    table(["false alarms in percent", *columns], lines)
    table(["", "share", "excess"], [["most over the bound", over, above]])


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
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--new", type=int, default=4000)
    options = parser.parse_args()
    warnings.simplefilter("ignore", fk.errors.ComponentsWarning)
    warnings.simplefilter("ignore", fk.errors.LimitsWarning)
    header("reproduce: false alarms of control limits")
    default_limits(options.samples, options.new)
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
