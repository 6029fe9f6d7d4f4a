"""Random shards and weights, exact references for their union, and the promises that merged models must keep.

References as in ``attack_cases``: kernel values,
weights and centring in longdouble, LAPACK's eigenvalues of the result; of few rows all in mpmath's numbers.
"""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass, field
from pathlib import Path

import attack_cases as cases
import mpmath
import numpy as np
from data import rows, weights_of
from exact_kernels import LONG, Multiple, exact_values
from quiet import silent

import fastkpca as fk


@dataclass
class Union:
    """Rows in shards, their weights (None: ones), and the exact spectrum of all of them."""

    shards: list
    weights: list
    kernel: object
    features: str
    c: int
    tol: float
    name: str
    exact: object = field(repr=False, default=None)


# Exact kernel values ---------------------------------------------------------------------------------------------


def exact_spectrum(kernel, X, w):
    """The reference of a few rows by mpmath, where extended precision is not enough: weights of very unequal size."""
    with mpmath.workdps(60):
        present = w > 0
        K, _ = exact_values(kernel, X[present], centred=True, arithmetic=Multiple)
        w = Multiple.numbers(w[present])
        total = w.sum()
        means = K @ w / total
        root = Multiple.sqrt(w)
        A = root[:, None] * (K - means - means[:, None] + w @ means / total) * root
        values = mpmath.eigsy(mpmath.matrix(((A + A.T) / 2).tolist()), eigvals_only=True)
        values = np.array(sorted((float(x) for x in values), reverse=True))
        values = values.astype(LONG)
        size, trace = np.abs(values).max(), LONG(float(np.trace(A)))
        norm = LONG(float(mpmath.sqrt(((root[:, None] * K * root) ** 2).sum())))
    return cases.Reference(
        values=values,
        vectors=None,
        trace=trace,
        trace_error=2 * cases.UNIT * abs(trace),
        size=size,
        norm_K=norm,
        largest=LONG(float(abs(K).max())),
        error=2 * cases.UNIT * size,
    )


def reference(kernel, X, w):
    """By mpmath for so few rows that it takes less than a second."""
    if len(X) <= 24:
        return exact_spectrum(kernel, X, w)
    K, error = exact_values(kernel, X, centred=True)
    return cases.spectrum(K, float(error), w)


# Problems ----------------------------------------------------------------------------------------------------------


def _three(rng, g):
    a, b = (fk.get_kernel("gaussian", sigma=g.sigma * float(10 ** rng.uniform(0.3, 1))) for _ in range(2))
    return g * a * b


KINDS = {
    "polynomial": (lambda rng, g, p: p, "monomial"),
    "linear": (lambda rng, g, p: fk.get_kernel("linear"), "auto"),
    "gaussian monomial": (lambda rng, g, p: g, "monomial"),
    "gaussian pivots": (lambda rng, g, p: g, "pivots"),
    "gaussian fourier": (lambda rng, g, p: g, "fourier"),
    "gaussian auto": (lambda rng, g, p: g, "auto"),
    "polynomial pivots": (lambda rng, g, p: p, "pivots"),
    "gaussian + polynomial": (lambda rng, g, p: g + p, "auto"),
    "gaussian + linear": (lambda rng, g, p: g + fk.get_kernel("linear"), "auto"),
    "gaussian * polynomial": (lambda rng, g, p: g * p, "product", "product", "pivots"),
    "gaussian * gaussian * gaussian": (lambda rng, g, p: _three(rng, g), "product", "product", "pivots"),
    "scaled": (lambda rng, g, p: float(10.0 ** rng.uniform(-6, 6)) * g, "monomial", "pivots"),
    "scaled sum": (lambda rng, g, p: 0.3 * (g + p) + 2.0 * g, "auto"),
    "matern pivots": (lambda rng, g, p: fk.get_kernel("matern", nu=1.5, length_scale=g.sigma), "pivots"),
    "rational pivots": (lambda rng, g, p: fk.get_kernel("rational_quadratic", length_scale=g.sigma), "pivots"),
    "cosine": (lambda rng, g, p: fk.get_kernel("cosine"), "unit rows"),
    "cosine + gaussian": (lambda rng, g, p: fk.get_kernel("cosine") + g, "auto"),
}
"""Kernels, of a Gaussian and a polynomial for the rows, and the feature maps of which one is drawn."""


def kernel_of(rng, kind, unit, square, d):
    """(kernel, name of the feature map)."""
    sigma = unit * float(10.0 ** rng.uniform(-0.2, 1.2))
    gaussian = fk.get_kernel("gaussian", sigma=sigma)
    polynomial = fk.get_kernel(
        "polynomial",
        degree=int(rng.integers(1, 4)),
        offset=float(rng.choice([0.0, 1.0, 50.0])),
        scale=10.0 ** rng.uniform(-1, 1) / square,
    )
    make, *maps = KINDS[kind]
    features = str(rng.choice(maps))
    return make(rng, gaussian, polynomial), "monomial" if features == "fourier" and d > 3 else features


def cut(rng, n):
    """Ends of shards: equal, very unequal, or of one row each here and there; the first has two rows at least."""
    k = int(rng.integers(2, min(9, n - 1) + 1)) if n > 3 else 2
    if rng.random() < 0.5:
        inner = np.sort(rng.choice(np.arange(2, n), size=min(k - 1, n - 2), replace=False))
    else:  # nearly all rows in one shard
        first = int(rng.choice([2, n - k + 1])) if n - k + 1 > 2 else 2
        inner = np.arange(first, min(n, first + k - 1))
    return [0, *inner.tolist(), n]


def union(rng, largest=1500, *, weighted=None):
    """Random shards with the exact spectrum of their union."""
    most = largest if rng.random() > 0.98 else min(largest, 250)
    n = int(np.exp(rng.uniform(np.log(4), np.log(most))))
    d = int(rng.integers(1, 7))
    data = str(rng.choice([*cases.ROWS]))
    X = rows(rng, data, n, d)
    unit = cases._median(X)
    order = str(rng.choice(["as they come", "sorted", "drifting", "far shard"]))
    ends = cut(rng, n)
    if order == "sorted":
        X = X[np.argsort(X[:, 0])]
    elif order == "drifting":
        X = X + np.arange(n)[:, None] / n * unit * 10.0 ** rng.uniform(-1, 1.5)
    elif order == "far shard":
        i = int(rng.integers(1, len(ends) - 1))
        X[ends[i] : ends[i + 1]] += unit * 10.0 ** rng.uniform(0, 4) * rng.standard_normal(d)
    kind = str(rng.choice(list(KINDS)))
    shards = [X[a:b] for a, b in itertools.pairwise(ends)]
    shards = [part.astype(np.float32) if rng.random() < 0.15 else part for part in shards]
    if kind == "gaussian fourier" and rng.random() < 0.8 and n > 8:  # its box has to hold all rows
        first = shards[0].astype(np.float64)
        shards[0] = np.vstack([first, X.min(axis=0), X.max(axis=0)])
        shards[1:] = [np.clip(part.astype(np.float64), X.min(axis=0), X.max(axis=0)) for part in shards[1:]]
    wide = np.vstack([part.astype(np.float64) for part in shards])
    square = float((shards[0].astype(np.float64) ** 2).sum(axis=1).max()) or 1.0
    kernel, features = kernel_of(rng, kind, unit, square, d)
    weights, text = [None] * len(shards), ""
    if weighted or (weighted is None and rng.random() < 0.4):
        for i, part in enumerate(shards):
            if rng.random() < 0.8:
                weights[i], word = weights_of(rng, len(part))
                text += f" {word}"
    c = min(int(rng.integers(1, 16)), n)
    tol = 10.0 ** rng.uniform(-12, -2)
    w = np.concatenate([np.ones(len(p)) if v is None else np.asarray(v, float) for p, v in zip(shards, weights)])
    sizes = [len(part) for part in shards]
    name = f"{kernel} {features} {data} {order} {sizes} d={d} c={c} tol={tol:.1e}{text}"
    return Union(shards, weights, kernel, features, c, tol, name, reference(kernel, wide, w))


# Ways to one model ------------------------------------------------------------------------------------------------


def merged(rng, given, folder=None):
    """A model of the union, made in a random way; a ValueError is for the caller."""

    def stored(model):
        way = rng.random()
        if way < 0.15 and folder is not None:
            path = Path(folder) / "model.kpca"
            fk.save(model, path, overwrite=True)
            return fk.load(path, plugins=True)
        return pickle.loads(pickle.dumps(model)) if way < 0.25 else model

    shards, weights = given.shards, given.weights
    model = first = stored(
        fk.kpca(
            shards[0],
            given.kernel,
            min(given.c, len(shards[0])),
            tol=given.tol,
            features=given.features,
            keep_moments=True,
            return_scores=False,
            sample_weight=weights[0],
            memory_limit="64MB",
        )
    )
    waiting = []

    def updated(model, X, w):
        c = min(given.c, model.n_samples + len(X))
        return stored(fk.kpca_update(model, X, sample_weight=w, c=c, tol=given.tol))

    for X, w in zip(shards[1:], weights[1:]):
        heavy = float(len(X) if w is None else np.sum(w, dtype=np.float64)) > 1
        enough = len(X) > 1 and (w is None or np.count_nonzero(w) > 1) and heavy
        if rng.random() < 0.4 or not enough:
            model = updated(model, X, w)
            continue
        try:
            other = fk.kpca(X, like=first, keep_moments=True, sample_weight=w, tol=given.tol, c=min(given.c, len(X)))
        except ValueError as error:
            if "carries variance" not in str(error):
                raise
            model = updated(model, X, w)
            continue
        waiting.append(stored(other))
    waiting.append(model)
    while len(waiting) > 1:
        several = int(rng.integers(2, len(waiting) + 1))
        chosen = [waiting.pop(int(rng.integers(len(waiting)))) for _ in range(several)]
        c = min(given.c, sum(one.n_samples for one in chosen))
        waiting.append(stored(fk.kpca_merge(*chosen, c=c, tol=given.tol)))
    return waiting[0]


def tried(given, label, way, *args):
    """(kind, text, found) of a model that is made in some way: a ValueError is a refusal, every other surprise
    propagates.
    """
    yield label, given.name, None
    try:
        model = silent(way, *args)
    except ValueError as error:
        yield label, given.name, f"{type(error).__name__}: {error}"
    else:
        yield label, given.name, checks(given, model)


def checks(given, model):
    """What must hold of a model of the union, however it was made."""
    exact = given.exact
    weighted = any(w is not None for w in given.weights)
    yield from cases.check_eigenvalues(model, exact)
    total = sum(
        len(x) if w is None else float(np.sum(w, dtype=np.float64)) for x, w in zip(given.shards, given.weights)
    )
    yield from cases.check_trace(model, exact, total)
    yield "rows", float(model.n_samples != sum(map(len, given.shards)))
    found = model.weight_sum if model.weight_sum is not None else float(model.n_samples)
    yield "sum of weights", abs(found - total) / total - 1e-12
    yield "weighted or not", float((model.weight_sum is not None) != weighted)


def unions(rng, asked):
    """The attack on models that add up."""
    given = union(rng, asked.largest)
    if not given.exact.is_constant:
        yield from tried(given, f"{type(given.kernel).__name__} {given.features}", merged, rng, given, asked.folder)
