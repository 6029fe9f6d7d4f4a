"""Do the intervals of kpca_population hold at every number of rows? Populations of light and heavy tails.

Gaussian kernel of a width that is fixed beforehand, rows in three columns: normal, Student's t with three degrees of
freedom, lognormal, and five clusters of which one has 2 % of the rows. The truth is a fit of a million rows. Of N rows
half are fitted, and the other half given to ``kpca_population``; the spectrum is that of all N. Printed for each law, N
and k: how many of the draws miss the sum of the k largest variances (at most 5 % may), and the median width of the
interval over the truth; and of the first 300 draws, for k = 1 the same of the bootstrap (``kpca_uncertainty`` of all N
rows), and misses of the explained variance of new rows and of the mean SPE, whose truths are means over 20,000 rows.

    python benchmarks/reproduce/population.py [--draws 2000] [--sizes 50 500 5000] [--only LAW]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from setting import header

import fastkpca as fk

SIGMA, KS = 1.5, (1, 5, 20)
SCALES = np.array([1.5, 1.0, 0.5])
MORE = 300
"""Draws of which the bootstrap, and the statistics of new rows, are computed as well."""


def clusters(rng: np.random.Generator, n: int) -> np.ndarray:
    centres = np.array([[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4], [5, 5, 5]])
    label = rng.choice(5, n, p=[0.4, 0.3, 0.18, 0.1, 0.02])
    return centres[label] + 0.5 * rng.standard_normal((n, 3))


LAWS = {
    "normal": lambda rng, n: rng.standard_normal((n, 3)) * SCALES,
    "t3": lambda rng, n: rng.standard_t(3, (n, 3)) * SCALES,
    "lognormal": lambda rng, n: rng.lognormal(0.0, 1.0, (n, 3)) * SCALES,
    "clusters": clusters,
}


def truth(law: str) -> tuple[np.ndarray, float]:
    """(Sums of the k largest variances of a million rows, for each k; the total variance)."""
    X = LAWS[law](np.random.default_rng(999), 1_000_000)
    # intervals of about 1e-4: the sampling error of a million rows is ten times as large
    model = fk.kpca(X, "gaussian", max(KS), sigma=SIGMA, tol=1e-3, return_scores=False)
    return np.cumsum(model.latent), model.total_variance


def one(law: str, n: int, seed: int, fresh: np.ndarray) -> dict[str, np.ndarray]:
    X = LAWS[law](np.random.default_rng([n, seed]), n)
    half = n // 2
    c = min(max(KS), half - 1)
    chosen = [min(k, c) - 1 for k in KS]
    model = fk.kpca(X[:half], "gaussian", c, sigma=SIGMA, tol=1e-4, return_scores=False)
    whole = fk.kpca(X, "gaussian", max(KS), sigma=SIGMA, tol=1e-4)
    found = fk.kpca_population(model, X[half:], spectrum=whole, rng=seed)
    result = {"sum": found.leading_variance[chosen]}
    if seed >= MORE:
        return result
    boot = fk.kpca_uncertainty(whole, X, n_bootstrap=200, n_permutations=0, n_components=1, rng=seed)
    return result | {
        "explained": found.explained_variance[chosen],
        "explained_truth": np.cumsum(fk.kpca_project(model, fresh).var(axis=0))[chosen],
        "spe": found.mean_spe,
        "spe_truth": fk.kpca_spe(model, fresh).mean(),
        "bootstrap": boot.latent_interval[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 500, 5000])
    parser.add_argument("--only", choices=sorted(LAWS))
    options = parser.parse_args()
    header("population.py")
    warnings.simplefilter("ignore")
    print("law            N   k   missed  width  bootstrap  width  explained    SPE")
    for law in [options.only] if options.only else LAWS:
        sums, _ = truth(law)
        fresh = LAWS[law](np.random.default_rng(998), 20_000)
        for n in options.sizes:
            found = [one(law, n, seed, fresh) for seed in range(options.draws)]
            of = {name: np.array([x[name] for x in found if name in x]) for name in found[0]}
            for i, k in enumerate(KS):
                exact = sums[min(k, n // 2 - 1) - 1]
                low, high = of["sum"][:, i].T
                missed = np.mean((exact < low) | (high < exact))
                line = f"{law:10} {n:5} {k:3}  {missed:7.2%} {np.median(high - low) / exact:6.2f}"
                b = of["bootstrap"].T
                line += (
                    f"  {np.mean((exact < b[0]) | (b[1] < exact)):9.2%} {np.median(b[1] - b[0]) / exact:6.2f}"
                    if k == 1
                    else " " * 18
                )
                low, high = of["explained"][:, i].T
                slack = 3e-3  # of means over 20,000 rows
                outside = (of["explained_truth"][:, i] < low - slack) | (of["explained_truth"][:, i] > high + slack)
                line += f"  {outside.mean():9.2%}"
                if k == KS[-1]:
                    low, high = of["spe"].T
                    line += f" {np.mean((of['spe_truth'] < low - slack) | (of['spe_truth'] > high + slack)):6.2%}"
                print(line, flush=True)


if __name__ == "__main__":
    main()
