"""A loose tolerance against Nystroem(300) + PCA: processor seconds in one run, certified width, and true error.

    python benchmarks/speed/loose.py [set ...] [--c 10] [--features 300] [--tol 1e-2]

Each line is a fresh process, one thread; the rows and what is imported count for nobody. Both sides take the same sigma
(the median heuristic). The error is that of the eigenvalues over the largest one, against ``tol=1e-7``, which is only
computed for sets of up to 50000 rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings

import common
import numpy as np
import real_data

import fastkpca as fk

SETS = ("normal", "uniform", "kin40k", "protein", "usps", "digits")
REFERENCE_ROWS = 50_000


def rows_of(name: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if name == "normal":
        return rng.standard_normal((200_000, 8))
    return rng.random((1_000_000, 10)) if name == "uniform" else real_data.load(name)


def sigma_of(X: np.ndarray) -> float:
    from scipy.spatial.distance import pdist

    few = X[np.random.default_rng(0).choice(len(X), min(len(X), 1000), replace=False)]
    return float(np.median(pdist(few))) / np.sqrt(2.0)


def nystroem(X: np.ndarray, sigma: float, c: int, n_features: int) -> dict:
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem

    started = time.process_time()
    Z = Nystroem(gamma=0.5 / sigma**2, n_components=min(n_features, len(X)), random_state=0).fit_transform(X)
    pca = PCA(c, svd_solver="covariance_eigh").fit(Z)
    pca.transform(Z)
    seconds = time.process_time() - started
    return {"seconds": seconds, "values": list(pca.explained_variance_ * (len(X) - 1)), "memory": common.peak_memory()}


def ours(X: np.ndarray, sigma: float, c: int, **options: object) -> dict:
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fk.kpca(X, "gaussian", c, sigma=sigma, n_threads=1, **options)
    seconds = time.process_time() - started
    low, high = model.eigenvalue_bounds.T
    return {
        "seconds": seconds,
        "values": list(model.eigenvalues),
        "memory": common.peak_memory(),
        "width": float((high - low).max() / model.eigenvalues[0]),
        "kind": model.bound_kind,
        "route": f"{model.info['method']} {model.info.get('n_features', '')}",
        "predicted": model.plan.chosen.seconds,
    }


def one(name: str, task: str, c: int, n_features: int, tol: float) -> None:
    X = rows_of(name)
    sigma = sigma_of(X)
    if task == "nystroem":
        result = nystroem(X, sigma, c, n_features)
    elif task == "reference":
        result = ours(X, sigma, c, tol=1e-7) if len(X) <= REFERENCE_ROWS else {"values": None}
    else:
        result = ours(X, sigma, c, **({"tol": tol} if task == "tol" else {"max_features": min(n_features, len(X))}))
    print(json.dumps(result))


def measured(name: str, task: str, given: argparse.Namespace) -> dict:
    arguments = ("--one", task, "--c", str(given.c), "--features", str(given.features), "--tol", str(given.tol))
    return json.loads(common.in_fresh_process(__file__, name, *arguments).splitlines()[-1])


def table(given: argparse.Namespace) -> None:
    common.header(f"c = {given.c}; Nystroem({given.features}) + PCA, kpca(max_features), kpca(tol={given.tol:g})")
    print(f"{'set':10}{'task':>14}{'seconds':>9}{'ratio':>7}{'width':>9}{'error':>9}{'MB':>6}  how")
    for name in given.sets or SETS:
        true = measured(name, "reference", given)["values"]
        base = 0.0
        for task in ("nystroem", "max_features", "tol"):
            found = measured(name, task, given)
            base = base or found["seconds"]
            values = np.array(found["values"])
            error = "-" if true is None else f"{np.abs(values - np.array(true)[: len(values)]).max() / true[0]:.1e}"
            width = f"{found['width']:.1e}" if "width" in found else "-"
            how = f"{found['route']}, {found['kind']}, predicted {found['predicted']:.2g} s" if "route" in found else ""
            print(
                f"{name:10}{task:>14}{found['seconds']:>9.3f}{found['seconds'] / base:>7.2f}{width:>9}{error:>9}"
                f"{found['memory']:>6.0f}  {how}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help=", ".join(SETS))
    parser.add_argument("--c", type=int, default=10)
    parser.add_argument("--features", type=int, default=300)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.sets[0], given.one, given.c, given.features, given.tol)
    else:
        table(given)


if __name__ == "__main__":
    sys.exit(main())
