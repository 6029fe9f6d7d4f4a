"""Attack on models that grow: random trees of updates, merges and subtractions against LAPACK.

    python tests/attacks/grown_models.py [--trees 300] [--seed 0]

Each tree begins with a model of pivots. Random calls of ``kpca_update`` (any growth, any ``forget``), ``kpca`` with
``like=`` any model so far, ``kpca_merge`` of any of them, ``kpca_subtract``, and model files follow. After each call
the intervals are compared with LAPACK's eigenvalues of all rows, and intervals of SPE of new rows with sums over all
rows in long double. Rows are duplicates, far outliers, heavy tails, jumps of scale by 1e-6 to 1e6, sorted ones, or come
one by one; weights span six orders of magnitude.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import stream_cases

import fastkpca as fk

KINDS = ("normal", "duplicates", "outliers", "heavy tails", "scales", "sorted", "single rows", "clusters")
SLACK = 1e-12
"""Error of the reference over the largest eigenvalue."""


def rows_of(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_normal((n, d))
    if kind == "duplicates":
        X = X[rng.integers(max(1, n // 10), size=n)]
    elif kind == "outliers":
        X[rng.random(n) < 0.05] *= 10.0 ** rng.uniform(1, 6)
    elif kind == "heavy tails":
        X = rng.standard_t(1.2, (n, d))
    elif kind == "scales":
        X *= 10.0 ** rng.uniform(-6, 6)
    elif kind == "sorted":
        X = np.sort(X, axis=0) + 3.0 * rng.integers(0, 4)
    elif kind == "single rows":
        X = X[:1] * 10.0 ** rng.uniform(-1, 1)
    elif kind == "clusters":
        X = 0.1 * X + 6.0 * rng.integers(-1, 2, (1, d))
    return X


def new_tally() -> dict:
    return dict.fromkeys(("calls", "refused", "grown", "intervals", "missed", "spe", "spe missed"), 0)


class Grown:
    """A model with all that it was made of."""

    def __init__(self, model, X, w, *, certain):
        self.model, self.X, self.w, self.certain = model, X, w, certain


def spe(kernel, grown: Grown, new: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Distance of new rows from the mean of all rows beyond the components, from sums over all rows."""

    def k(A, B):
        return np.asarray(kernel.block(A - shift, B - shift), dtype=np.longdouble)

    P, w = grown.model.projector.landmarks + shift, grown.w.astype(np.longdouble) / grown.w.sum()
    A = grown.model.projector.expansion()[:, :-1].astype(np.longdouble)
    G = (A.T @ k(P, P) @ A).astype(np.float64)
    z = A.T @ (k(P, new) - (k(P, grown.X) @ w)[:, None])
    centred = np.asarray(kernel.diagonal(new - shift)) - 2.0 * k(new, grown.X) @ w + w @ k(grown.X, grown.X) @ w
    return (centred - np.sum(z * np.linalg.solve(G, z.astype(np.float64)), axis=0)).astype(np.float64)


def check(grown: Grown, kernel, fresh: np.ndarray, tally: dict) -> str:
    """ "" or what is wrong."""
    model = grown.model
    shift = np.asarray(model.shift)
    truth = stream_cases.exact(kernel, grown.X - shift, grown.w)[: model.n_components]
    low, high = model.eigenvalue_bounds.T
    slack = SLACK * truth[0]
    tally["intervals"] += len(truth)
    wrong = (truth < low - slack) | (truth > high + slack) | ~np.isfinite(low + high)
    text = ""
    if wrong.any():
        tally["missed"] += int(wrong.sum())
        i = int(np.argmax(wrong))
        text = f"eigenvalue {i}: {truth[i]:.6g} not in [{low[i]:.6g}, {high[i]:.6g}], largest {truth[0]:.6g}"
    if grown.certain and (model.failure_probability or model.bound_kind != "guaranteed"):
        text += f" guaranteed, but failure probability {model.failure_probability}"
    assert model.n_samples == len(grown.X) and abs(model.count / grown.w.sum() - 1.0) < 1e-9
    value, interval = fk.kpca_spe(model, fresh, bounds=True)
    exact = spe(kernel, grown, fresh, shift)
    size = np.asarray(kernel.diagonal(fresh - shift)) + truth[0] / grown.w.sum()
    slack = 1e-9 * size
    wrong = (exact < interval[:, 0] - slack) | (exact > interval[:, 1] + slack)
    tally["spe"] += len(fresh)
    if wrong.any():
        tally["spe missed"] += int(wrong.sum())
        i = int(np.argmax(wrong))
        text += f" SPE {exact[i]:.9g} not in {interval[i]} ({value[i]:.9g})"
    Z = fk.kpca_project(model, fresh)
    np.testing.assert_allclose(fk.kpca_t2(model, fresh), np.sum(Z**2 / model.latent, axis=1), rtol=1e-9)
    return text


def tree(rng: np.random.Generator, tally: dict) -> tuple[list[str], list[str]]:
    """(refusals, what is wrong) of one tree of calls."""
    d, tol = int(rng.integers(1, 4)), float(10.0 ** rng.uniform(-6, -1))
    name = str(rng.choice(["gaussian", "gaussian", "laplacian", "matern", "polynomial", "linear"]))
    options = {"gaussian": {"sigma": float(10 ** rng.uniform(-0.5, 1))}, "polynomial": {"degree": 2}}.get(name, {})
    certain = bool(rng.random() < 0.4)
    weighted, c = bool(rng.random() < 0.4), int(rng.integers(1, 5))
    bound = {"guaranteed": True} if certain else {"failure_probability": float(rng.choice([0.05, 1e-6]))}
    later = {} if certain else bound
    kinds = list(rng.choice(KINDS, 2))
    if name in ("polynomial", "linear"):
        kinds = [x for x in kinds if x not in ("heavy tails",)] or ["scales"]

    def batch(first=False):
        kind = "normal" if first else str(rng.choice(kinds))
        X = rows_of(kind, int(rng.integers(40, 150)) if first else int(rng.integers(1, 80)), d, rng)
        w = 10.0 ** rng.uniform(-3, 3, len(X)) if weighted else np.ones(len(X))
        return X, w

    def weights(w):
        return {"sample_weight": w} if weighted else {}

    def part_of(like, X, w):
        few = {"c": min(c, len(X) - 1), "return_scores": False}
        return fk.kpca(X, like=like, tol=tol, keep_moments=True, **few, **bound, **weights(w))

    said, broken = [], []
    steps = [f"{name} {options} {kinds} tol={tol:.1e} certain={certain} weighted={weighted} c={c}"]
    X, w = batch(first=True)
    first = fk.kpca(X, name, c, tol=tol, features="pivots", keep_moments=True, rng=int(rng.integers(99)),
                    **bound, **options, **weights(w))  # fmt: skip
    kernel, pool = first.kernel, [Grown(first, X, w, certain=certain)]
    for _ in range(int(rng.integers(3, 16))):
        one = pool[int(rng.integers(len(pool)))]
        call = str(rng.choice(["update", "update", "update", "like", "merge", "merge", "subtract", "file"]))
        tally["calls"] += 1
        try:
            if call == "update":
                X, w = batch()
                forget = float(rng.choice([1.0, 1.0, 0.99, 0.9, 0.5]))
                size = one.model.info["n_features"]
                grow = [True, True, size + int(rng.integers(1, 40)), False][int(rng.integers(4))]
                model = fk.kpca_update(one.model, X, tol=tol, grow=grow, forget=forget, **later, **weights(w))
                new = Grown(model, np.concatenate([one.X, X]), np.concatenate([one.w * forget, w]), certain=certain)
                steps.append(f"update {len(X)} rows forget={forget} grow={grow}: grown={model.info.get('grown', 0)}")
            elif call == "like":
                X, w = batch(first=bool(rng.random() < 0.5))
                if len(X) < 3:
                    continue
                model = part_of(one.model, X, w)
                new = Grown(model, X, w, certain=certain)
                steps.append(f"like: {len(X)} rows, {model.info['n_features']} features")
            elif call == "merge":
                others = [pool[i] for i in rng.permutation(len(pool))[: int(rng.integers(1, 4))]]
                model = fk.kpca_merge(*(x.model for x in others), c=c, tol=tol, **later)
                new = Grown(model, np.concatenate([x.X for x in others]), np.concatenate([x.w for x in others]),
                            certain=certain)  # fmt: skip
                steps.append(f"merge of {[x.model.info['n_features'] for x in others]}: {model._added}")
            elif call == "subtract":
                X, w = batch()
                if len(X) < 3:
                    continue
                part = part_of(one.model, X, w)
                both = fk.kpca_merge(one.model, part, c=c, tol=tol, **later)
                if rng.random() < 0.5:
                    model = fk.kpca_subtract(both, part, c=c, tol=tol, **later)
                    new = Grown(model, one.X, one.w, certain=certain)
                else:
                    model = fk.kpca_subtract(both, one.model, c=min(c, len(X) - 1), tol=tol, **later)
                    new = Grown(model, X, w, certain=certain)
                steps.append("subtract")
            else:
                model = type(one.model).from_state(*one.model.state(), plugins=True)
                new = Grown(model, one.X, one.w, certain=certain)
        except ValueError as error:
            tally["refused"] += 1
            said.append(f"{call}: {' '.join(str(error).split())[:110]}")
            continue
        if len(new.X) > 900:
            continue
        pool.append(new)
        fresh = np.concatenate([new.X[rng.integers(len(new.X), size=3)], batch()[0][:3]])
        wrong = check(new, kernel, fresh, tally)
        tally["grown"] += new.model.info.get("grown", 0) > 0
        if wrong:
            broken.append("\n    ".join([wrong, *steps]))
    return said, broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tally, refusals = new_tally(), Counter()
    for i in range(options.trees):
        said, broken = tree(np.random.default_rng([options.seed, i]), tally)
        refusals.update(re.sub(r"[0-9(].*", "", text)[:60] for text in said)
        for text in broken:
            print(f"tree {i}: {text}", flush=True)
    for text, count in refusals.most_common():
        print(count, text)
    print(", ".join(f"{name} {count}" for name, count in tally.items()))


if __name__ == "__main__":
    main()
