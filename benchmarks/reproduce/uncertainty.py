"""Do the intervals of kpca_uncertainty cover? Populations whose eigenvalues are known exactly, drawn again and again.

Linear kernels: eigenvalues of a covariance that is given. Polynomial kernels: those of the covariance of the monomials,
from the moments of the columns. Printed for each population and N: the percentage of draws in which the 95 % interval
holds the population's value, for each component that is separated, of the eigenvalue, of the explained and of the
cumulative share; and how often the angle to the population's space is within its bound.

    python benchmarks/reproduce/uncertainty.py [--draws 1000] [--only NAME] [--boundary]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from math import comb, factorial, prod
from typing import NamedTuple

import numpy as np
from setting import header

import fastkpca as fk

Draw = Callable[[np.random.Generator, int], np.ndarray]


class Population(NamedTuple):
    """Rows, the kernel, the eigenvalues of its covariance operator, and their axes among ``features(X)``."""

    draw: Draw
    kernel: fk.kernels.Kernel
    values: np.ndarray
    axes: np.ndarray
    features: Callable[[np.ndarray], np.ndarray]
    k: int
    """Components that are asked about; the model has two more."""


def linear(variances: list[float], k: int, draw: Draw) -> Population:
    """Independent columns of variance one, scaled."""
    spread = np.sqrt(variances)
    kernel = fk.get_kernel("linear")
    values = np.array(variances)
    return Population(lambda rng, n: draw(rng, n) * spread, kernel, values, np.eye(len(spread)), lambda X: X, k)


def polynomial(degree: int, scales: list[float], moment: Callable[[int], float], draw: Draw, k: int) -> Population:
    """(x.y + 1)^degree of independent columns with these moments, scaled."""
    d = len(scales)
    alpha = [a for a in product(range(degree + 1), repeat=d) if sum(a) <= degree]
    weight = np.sqrt([comb(degree, sum(a)) * factorial(sum(a)) / prod(factorial(i) for i in a) for a in alpha])

    def mean(a: tuple[int, ...]) -> float:
        return prod(moment(i) * s**i for i, s in zip(a, scales))

    first = np.array([mean(a) for a in alpha])
    second = np.array([[mean(tuple(i + j for i, j in zip(a, b))) for b in alpha] for a in alpha])
    values, axes = np.linalg.eigh((second - np.outer(first, first)) * np.outer(weight, weight))
    powers = np.array(alpha)

    def features(X: np.ndarray) -> np.ndarray:
        return (X[:, None, :] ** powers).prod(axis=2) * weight

    kernel = fk.get_kernel("polynomial", degree=degree)
    return Population(lambda rng, n: draw(rng, n) * scales, kernel, values[::-1], axes[:, ::-1], features, k)


def normal(d: int) -> Draw:
    return lambda rng, n: rng.standard_normal((n, d))


def uniform(d: int) -> Draw:
    return lambda rng, n: rng.uniform(-1, 1, (n, d))


def of_uniform(p: int) -> float:
    return 0.0 if p % 2 else 1.0 / (p + 1)


def of_normal(p: int) -> float:
    return 0.0 if p % 2 else float(prod(range(1, p, 2)))


def unit(d: int) -> Draw:
    return lambda rng, n: rng.uniform(-np.sqrt(3), np.sqrt(3), (n, d))


COVERED = {
    "linear, normal": linear([8, 4, 2, 1, 0.5, 0.25], 4, normal(6)),
    "linear, uniform": linear([8, 4, 2, 1, 0.5, 0.25], 4, unit(6)),
    "linear, 3 factors and 47 of noise": linear([20, 10, 5] + [1] * 47, 3, normal(50)),
    "polynomial 2, uniform": polynomial(2, [1.0, 0.6, 0.35], of_uniform, uniform(3), 3),
    "polynomial 3, uniform": polynomial(3, [1.0, 0.6], of_uniform, uniform(2), 3),
    "polynomial 2, uniform, wide": polynomial(2, [2.0, 1.2, 0.7], of_uniform, uniform(3), 3),
}
BOUNDARY = {
    "ties": linear([4, 4, 1, 0.5], 3, normal(4)),
    "nearly ties": linear([4, 3.6, 1, 0.5], 3, normal(4)),
    "exponential": linear([8, 4, 2, 1], 3, lambda rng, n: rng.exponential(size=(n, 4)) - 1),
    "t, 5 degrees": linear([8, 4, 2, 1], 3, lambda rng, n: rng.standard_t(5, (n, 4)) * np.sqrt(0.6)),
    "t, 3 degrees": linear([8, 4, 2, 1], 3, lambda rng, n: rng.standard_t(3, (n, 4)) / np.sqrt(3)),
    "polynomial 2, normal": polynomial(2, [1.0, 0.6, 0.35], of_normal, normal(3), 3),
    "polynomial 3, normal": polynomial(3, [1.0, 0.6], of_normal, normal(2), 3),
}


def turned(population: Population, model: fk.KPCAModel, X: np.ndarray, j: int) -> float:
    """The angle between the first j components of the model and of the population."""
    Phi = population.features(X)
    Phi = Phi - Phi.mean(axis=0)
    W = np.linalg.lstsq(Phi, model.score[:, :j], rcond=1e-10)[0]
    Q = np.linalg.qr(W)[0]
    return float(np.arcsin(min(1.0, np.linalg.norm(population.axes[:, j:].T @ Q, 2))))


def run(population: Population, n: int, draws: int, n_bootstrap: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(percent of the draws in which the truth is inside: (4, k), of the draws in which a component is separated)."""
    k, total = population.k, population.values.sum()
    truth = np.stack([population.values[:k], 100 * population.values[:k] / total])
    truth = np.vstack([truth, np.cumsum(truth[1])])
    inside, separated = np.zeros((4, k)), np.zeros(k)
    for i in range(draws):
        rng = np.random.default_rng((seed, n, i))
        X = population.draw(rng, n)
        c = min(k + 2, len(population.values))
        model = fk.kpca(X, population.kernel, c, n_threads=1)
        sure = fk.kpca_uncertainty(model, X, n_bootstrap=n_bootstrap, n_permutations=0, rng=i, n_threads=1)
        intervals = (sure.latent_interval, sure.explained_interval, sure.cumulative_interval)
        for row, interval in enumerate(intervals):
            inside[row] += (interval[:k, 0] <= truth[row]) & (truth[row] <= interval[:k, 1])
        inside[3] += [turned(population, model, X, j + 1) <= sure.angles[j] for j in range(k)]
        separated += sure.separated[:k]
    return 100 * inside / draws, 100 * separated / draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--bootstrap", type=int, default=499)
    parser.add_argument("--rows", type=int, nargs="*", default=[200, 1000])
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--boundary", action="store_true", help="where theory says that they need not cover")
    args = parser.parse_args()
    header("reproduce: coverage of the intervals of kpca_uncertainty")
    print(f"{args.draws} draws: one standard error is {100 * np.sqrt(0.05 * 0.95 / args.draws):.1f} %")
    words = "".join(word.ljust(21) for word in ("eigenvalue", "explained", "cumulative", "angle"))
    print(f"{'population':36s} {'N':>5s}  {words}separated")
    for name, population in (BOUNDARY if args.boundary else COVERED).items():
        if args.only not in name:
            continue
        for n in args.rows:
            inside, separated = run(population, n, args.draws, args.bootstrap, args.seed)
            cells = [" ".join(f"{x:4.1f}" for x in row).ljust(20) for row in inside]
            print(f"{name:36s} {n:5d}  {' '.join(cells)} {' '.join(f'{x:.0f}' for x in separated)}", flush=True)


if __name__ == "__main__":
    main()
