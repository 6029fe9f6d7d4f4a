"""Calls of kpca with few features: intervals of first order, or of second, from rows of what the map leaves out or a
pass.
"""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from unittest import mock

import numpy as np
from attack_cases import check_angles
from loose_cases import outside, probable

import fastkpca as fk
from fastkpca.fit import feature_route, growth


@dataclass(frozen=True)
class Call:
    """Arguments of kpca, and ``how``.

    "rows", "pass", "certain" (a pass with ``guaranteed=True``) or "any": whatever these cost; "plain": as it is
    planned.
    """

    X: np.ndarray
    c: int
    options: dict
    weights: np.ndarray | None = None
    how: str = "any"
    center: bool = True
    kernel: str = "gaussian"
    count: int = field(default=0)


def _size(rng):
    return int(np.exp(rng.uniform(np.log(60), np.log(250))))


def _call(rng, X, sigma=None, m=None, **more):
    d = X.shape[1]
    sigma = float(np.exp(rng.uniform(-0.7, 1.0)) * np.sqrt(d)) if sigma is None else sigma
    m = int(rng.integers(4, max(6, len(X) // 4))) if m is None else m
    c = int(rng.integers(1, max(2, min(6, m - 1))))
    options = {"sigma": sigma, "max_features": min(m, len(X) - 1)}
    return Call(
        X,
        c,
        options,
        how=str(rng.choice(["rows", "rows", "pass", "certain", "any", *["plain"] * 4])),
        count=int(rng.integers(8, len(X))),
        **more,
    )


def normal(rng):
    return _call(rng, rng.standard_normal((_size(rng), int(rng.integers(2, 8)))))


def tiny_far_cluster(rng):
    """A few rows far off, which the landmarks may miss."""
    X = rng.standard_normal((_size(rng), 3))
    X[: int(rng.integers(2, 6))] = 20.0 + 0.3 * rng.standard_normal(3)
    return _call(rng, X, sigma=float(rng.uniform(0.8, 3.0)))


def ties(rng):
    """Clusters of the same shape far apart: eigenvalues that are equal, across those wanted and those of the map."""
    k, each = int(rng.integers(3, 8)), int(rng.integers(10, 30))
    one = rng.standard_normal((each, 2))
    X = np.concatenate([one + 50.0 * np.eye(8)[i, :2] + np.array([0.0, 90.0 * i]) for i in range(k)])
    return _call(rng, X, sigma=float(rng.uniform(0.5, 2.0)), m=int(rng.integers(k, 4 * k)))


def weighted(rng):
    X = rng.standard_normal((_size(rng), 3))
    weights = 10.0 ** (rng.choice([3.0, 6.0]) * rng.uniform(-1, 1, len(X))) * (rng.random(len(X)) > 0.1)
    weights[:20] = 1.0
    return _call(rng, X, m=int(rng.integers(4, 16)), weights=weights)


def about_zero(rng):
    return _call(rng, rng.random((_size(rng), 3)), sigma=float(rng.uniform(0.1, 1.0)), center=False)


def single(rng):
    """Rows in float32, far from zero."""
    X = (rng.standard_normal((_size(rng), 4)) + 100.0).astype(np.float32)
    return _call(rng, X)


def quadratic(rng):
    X = rng.standard_normal((_size(rng), 8)) * 10.0 ** rng.uniform(-0.5, 0.5, 8)
    X[0] *= float(rng.choice([1.0, 5.0]))
    given = _call(rng, X, m=int(rng.integers(5, 25)))
    options = {"degree": 2, "offset": 1.0, "landmarks": np.arange(given.options["max_features"])}
    return Call(X, given.c, options, how=given.how, kernel="polynomial", count=given.count)


def one_cluster(rng):
    """Landmarks from one cluster only: all of the others is left out."""
    X = rng.standard_normal((_size(rng), 3))
    others = int(rng.integers(1, 12))
    X[:others] = rng.uniform(3.0, 20.0) + rng.uniform(0.0, 1.0) * X[:others]
    landmarks = others + rng.permutation(len(X) - others)[: int(rng.integers(4, 20))]
    return _landmarks(rng, X, landmarks, sigma=float(rng.uniform(0.8, 4.0)))


def repeated(rng):
    """The same landmark twice, by its number, or as an equal row, or as a row that is none of X."""
    X = rng.standard_normal((_size(rng), 3))
    X[rng.integers(0, len(X), 10)] = X[0]
    landmarks = np.tile(rng.permutation(len(X))[: int(rng.integers(4, 16))], 2)
    landmarks[-1] = 0
    if rng.random() < 0.5:
        landmarks = X[landmarks] + rng.choice([0.0, 1e-9, 0.3])
    return _landmarks(rng, X, landmarks)


def any_number(rng):
    """From one landmark to all rows, which leave out nothing."""
    X = rng.standard_normal((_size(rng), 4))
    count = int(rng.choice([1, 2, 5, 10, len(X) // 4, len(X)]))
    return _landmarks(rng, X, rng.permutation(len(X))[:count])


def one_row_far_off(rng):
    X = rng.standard_normal((_size(rng), int(rng.integers(1, 6))))
    X[-1] *= float(rng.choice([3.0, 30.0]))
    given = _landmarks(rng, X, rng.choice(len(X) - 1, int(rng.integers(2, 12)), replace=False))
    options = {"degree": 2, "offset": 0.3, "landmarks": given.options["landmarks"]}
    return replace(given, kernel="polynomial", options=options, c=1)


def samples_after_a_pilot(rng):
    """A tolerance that needs many draws: a bound from a few, and others, whose number those tell."""
    X = rng.standard_normal((_size(rng) // 3, int(rng.integers(1, 6))))
    X = 10.0 * np.vstack([X, X, X])
    X = np.vstack([X + rng.standard_normal(X.shape), X[:1] + 0.01 * rng.standard_normal((len(X) // 2, X.shape[1]))])
    given = _call(rng, X, sigma=float(np.exp(rng.uniform(-2.0, -1.0))))
    return replace(given, options=given.options | {"tol": 10.0 ** rng.uniform(-1.6, -1.1)})


def _landmarks(rng, X, landmarks, **more):
    given = _call(rng, X, **more)
    count = len(np.unique(X[landmarks] if landmarks.ndim == 1 else landmarks, axis=0))
    options = {"sigma": given.options["sigma"], "landmarks": landmarks}
    weights = rng.integers(0, 4, len(X)) + (np.arange(len(X)) < 20.0) if rng.random() < 0.3 else None
    return Call(X, min(given.c, count), options, weights, given.how, bool(rng.random() < 0.7), count=given.count)


FAMILIES = (
    normal, tiny_far_cluster, ties, weighted, about_zero, single, quadratic, one_cluster, repeated, any_number,
    one_row_far_off, samples_after_a_pilot,
)  # fmt: skip


def fitted(given, seed, failure, **more):
    """The model, made in the way that the call names whatever that costs."""
    counts = np.unique(np.linspace(4, max(given.count, 5), 4).astype(np.intp))
    patches = {
        "plain": [],
        "pass": [(feature_route, "BUDGET_SHARE", 1e12), (growth, "COUNTS", np.array([10**9]))],
        "rows": [(growth.RefinementCosts, "whole", lambda self, k: 1e18)],
    }.get(given.how, [])
    if given.how in ("rows", "certain", "any"):
        patches = [*patches, (feature_route, "BUDGET_SHARE", 1e12), (growth, "COUNTS", counts)]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(mock.patch.object(*patch))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        kind = {"guaranteed": True} if given.how == "certain" else {"failure_probability": failure}
        options = given.options | kind | {"center": given.center} | more
        return fk.kpca(given.X, given.kernel, given.c, rng=seed, sample_weight=given.weights, **options)


def reference(given, model):
    """(eigenvalues, eigenvectors) of LAPACK, of the matrix of weighted rows."""
    K, root = _matrix(given, model)
    if given.center:
        center = np.eye(len(K)) - np.outer(root, root) / (root @ root)
        K = center @ K @ center
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    return values[::-1], vectors[:, ::-1]


def _matrix(given, model):
    """(that of weighted rows, the roots of the weights)."""
    X = np.asarray(given.X, dtype=np.float64) - model.shift
    root = np.sqrt(np.ones(len(X)) if given.weights is None else given.weights)
    return root[:, None] * model.kernel.block(X, X) * root, root


def calls(rng, asked, family):
    """The attack: what the map leaves out, intervals and angles."""
    given = family(rng)
    yield family.__name__, f"{given.how} {given.options} {given.X.shape}", None
    model = fitted(given, int(rng.integers(1 << 30)), asked.failure)
    assert model.bound_kind == "guaranteed" or given.how != "certain"
    true, vectors = reference(given, model)
    error = 1e-11 * np.abs(true).sum()
    exact = SimpleNamespace(values=true, vectors=vectors, error=error)
    root = np.ones((len(given.X), 1)) if given.weights is None else np.sqrt(given.weights)[:, None]
    scored = SimpleNamespace(
        coeff=np.asarray(model.score, dtype=np.float64) * root,
        **{x: getattr(model, x) for x in ("n_components", "dtype", "clusters", "angle_bounds", "eigenvalue_bounds")},
    )
    wrong = outside(model, true, error) or any(excess > 1e-7 for _, excess in check_angles(scored, exact))
    if "residual_norm" in model.info:
        (K, root), X = _matrix(given, model), np.asarray(given.X, dtype=np.float64) - model.shift
        Phi = root[:, None] * model.projector.map.features(X)
        left = np.linalg.eigvalsh(K - Phi @ Phi.T)[-1] - model.info["residual_norm"]
        wrong |= left > (1e-5 if given.X.dtype == np.float32 else 1e-11) * np.trace(K)
    order = "second" if "residual_rows" in model.info else "first"
    yield f"{family.__name__}, {order} order", "", probable(model, wrong)
