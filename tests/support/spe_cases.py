"""Random cases of kpca_spe(bounds=True): the interval must hold the SPE that long double finds, on every route.

Each case is a kernel, parameters, 20 to 60 rows, weights or none, and a route. The reference evaluates kernel and
features of every row in long double, about the span of the model's own components:

- of a model that holds rows, the span of sum_i coeff_i (phi(x_i) - mean); the Gram matrix of the components is solved
  with, since stored coefficients need not make them orthonormal;
- of a feature map, the span of its axes, W' (phi(x) - mean) with phi as the map defines it.

A value lies outside where it does so by more than the reference can err by (REFERENCE of the sizes that cancel).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import factorial
from typing import Any

import numpy as np
from data import rows, weights_of
from exact_kernels import LONG, exact_matrix

import fastkpca as fk
from fastkpca.maps.fourier import FourierMap
from fastkpca.maps.monomial import PolynomialMap, TaylorMap, exponents
from fastkpca.maps.pivots import PivotMap
from fastkpca.model.sample_projector import SampleProjector

Values = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""k(X, Y) in long double."""
KINDS = ("normal", "normal", "clustered", "duplicates", "outliers", "uniform")
REFERENCE = 64.0 * float(np.finfo(LONG).eps)


def solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A^-1 B in long double, by elimination with pivots."""
    A, B = A.copy(), B.copy()
    n = len(A)
    for i in range(n):
        p = i + int(np.argmax(np.abs(A[i:, i])))
        A[[i, p]], B[[i, p]] = A[[p, i]], B[[p, i]]
        for j in range(i + 1, n):
            factor = A[j, i] / A[i, i]
            A[j] -= factor * A[i]
            B[j] -= factor * B[i]
    for i in range(n - 1, -1, -1):
        B[i] = (B[i] - A[i, i + 1 :] @ B[i + 1 :]) / A[i, i]
    return B


def long_features(feature_map: Any, values: Values, X: np.ndarray) -> np.ndarray:
    """phi of shifted rows, as the map defines it."""
    if isinstance(feature_map, TaylorMap):
        own = (X - feature_map._center.astype(LONG)) / LONG(feature_map.sigma)
        alpha = exponents(feature_map.d, max(feature_map.order - 1, 0))
        return _damped(own, alpha)
    if isinstance(feature_map, PolynomialMap):
        p, offset = feature_map.degree, LONG(feature_map.offset)
        alpha = exponents(feature_map.d, p)
        k = alpha.sum(axis=1)
        if not feature_map.offset:
            alpha, k = alpha[k == p], k[k == p]
        square = np.array([LONG(factorial(p)) / LONG(factorial(p - int(i))) for i in k])  # binom(p, k) k!
        square = square * offset ** (p - k) if feature_map.offset else square
        return np.sqrt(square) * _powers(X * np.sqrt(LONG(feature_map.scale)), alpha)
    if isinstance(feature_map, PivotMap):
        L = feature_map.factor.astype(LONG)
        B = values(feature_map.pivots, X)
        for i in range(len(L)):
            B[i] = (B[i] - L[i, :i] @ B[:i]) / L[i, i]
        return B.T
    assert isinstance(feature_map, FourierMap)
    pi = LONG("3.14159265358979323846264338327950288")
    P, near = (X - feature_map.centre.astype(LONG)) * (2 * pi / feature_map.period.astype(LONG)), None
    low, high = feature_map.box[0] - feature_map.margin, feature_map.box[1] + feature_map.margin
    near = ((low <= X) & (high >= X)).all(axis=1)
    Phi = np.ones((len(P), 1), dtype=LONG)
    for c, line in enumerate(feature_map.lines):
        phases = P[:, c, None] * np.arange(float(len(line)))
        roots = np.sqrt(2 * line.astype(LONG))
        waves = np.hstack([roots * np.cos(phases), roots[1:] * np.sin(phases[:, 1:])])
        waves[:, 0] *= np.sqrt(LONG(0.5))
        Phi = (Phi[:, :, None] * waves[:, None, :]).reshape(len(P), -1)
    Phi[~near] = 0
    return Phi


def _damped(X: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """exp(-|x|^2 / 2) prod_i x_i^alpha_i / sqrt(alpha_i!), which is zero where the exponential underflows."""
    damping = np.exp(-(X**2).sum(axis=1) / 2)
    return damping[:, None] * _powers(np.where(damping[:, None] > 0, X, 0), alpha)


def _powers(X: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """prod_i x_i^alpha_i / sqrt(alpha_i!), (n, D)."""
    found = np.ones((len(X), len(alpha)), dtype=LONG)
    for i in range(X.shape[1]):
        most = int(alpha[:, i].max(initial=0))
        table = np.ones((len(X), most + 1), dtype=LONG)
        for k in range(1, most + 1):
            table[:, k] = table[:, k - 1] * X[:, i] / np.sqrt(LONG(k))
        found *= table[:, alpha[:, i]]
    return found


def exact_spe(
    model: fk.KPCAModel, values: Values, X: np.ndarray, new: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """SPE of new rows about the model's own components, and what this reference can err by; ``weights``: of X."""
    shares = np.ones(len(X), dtype=LONG) if weights is None else np.asarray(weights).astype(LONG)
    shares /= shares.sum()
    K, k = values(X, X), values(new, X)
    own = np.array([values(y[None], y[None])[0, 0] for y in new])
    means = K @ shares * model.center
    centred = own - 2 * k @ shares * model.center + means @ shares
    size = np.abs(own) + 2 * np.abs(k).max(axis=1) + np.abs(K).max()
    if isinstance(model.projector, SampleProjector):
        coeff = model.projector.coeff.astype(LONG)
        coeff -= np.outer(shares, coeff.sum(axis=0)) * model.center
        z, G = (k - means) @ coeff, coeff.T @ K @ coeff
        inside = (z * solve(G, z.T.copy()).T).sum(axis=1)
        weight = np.abs(coeff).sum(axis=0)
        # z errs by the weights, and G, close to one, by the weights' products
        size = size + (2 * np.abs(z) @ weight + (np.abs(z) @ weight) ** 2) * size.max()
    else:
        Phi, own_new = (
            long_features(model.projector.map, values, np.asarray(A, dtype=LONG) - model.shift.astype(LONG))
            for A in (X, new)
        )
        axes = model.projector.axes.astype(LONG)
        mean = shares @ Phi
        z = (own_new - mean) @ axes
        inside = (z * solve(axes.T @ axes, z.T.copy()).T).sum(axis=1)
        if isinstance(model.projector.map, PolynomialMap):  # nothing is left out: no cancellation of squares
            left = own_new - mean - solve(axes.T @ axes, z.T.copy()).T @ axes.T
            square = (left**2).sum(axis=1)
            off = REFERENCE * (np.sqrt((own_new**2).sum(axis=1)) + np.sqrt((Phi**2).sum(axis=1).max()))
            return square, 2 * np.sqrt(square) * off + off**2
        if isinstance(model.projector.map, PivotMap):  # the triangular solve amplifies the entries' own rounding
            size = size / np.sqrt(np.maximum(model.projector.map.nu / np.maximum(float(size.max()), 1e-300), 1e-18))
    return centred - inside, REFERENCE * len(X) * size


def check_interval(exact: np.ndarray, error: np.ndarray, interval: np.ndarray) -> Iterator[tuple[str, float]]:
    low, high = interval.astype(LONG).T
    yield "rows inside", float((np.maximum(low - exact, exact - high) > error).sum())
    yield "ends in order", float(np.isnan(interval).any() or (interval[:, 0] > interval[:, 1]).any())


def case(rng: np.random.Generator) -> tuple[str, dict[str, Any], dict[str, Any], np.ndarray, np.ndarray, int]:
    """(kernel, parameters, options of the route, training rows, new rows, components)."""
    names = ["gaussian", "gaussian", "gaussian", "gaussian", "laplacian", "linear", "polynomial", "polynomial", "tanh"]
    name = str(rng.choice(names))
    d = int(rng.integers(1, 5))
    N = int(rng.integers(20, 61))
    moves = name in ("gaussian", "laplacian", "linear")
    kind = str(rng.choice([*KINDS, "far clusters" if moves else "clustered"]))
    X = rows(rng, kind, N, d) * np.linspace(1.0, rng.choice([1.0, 0.3, 0.01]), d)
    offset = float(rng.choice([0.0, 0.0, 1.0, 100.0] + [1e8] * moves))
    far = 1e6 if moves else 100.0
    new = np.vstack(
        [
            rng.standard_normal((8, d)),
            X[:6],
            4.0 * rng.standard_normal((4, d)),
            X[:2] + 1e-9 * rng.standard_normal((2, d)),
            far * rng.standard_normal((2, d)),
            X.mean(axis=0, keepdims=True),
        ]
    )
    if rng.random() < 0.4:
        new = new[: -3 if rng.random() < 0.5 else 8]  # without far rows, and without any that were seen
    edge = X.max(axis=0)
    X, new = X + offset, new + offset
    if rng.random() < 0.25:
        X, new = X.astype(np.float32), new.astype(np.float32)
    parameters: dict[str, Any] = {}
    routes: list[dict[str, Any]] = [{"method": "dense"}, {"method": "krylov"}]
    if name in ("gaussian", "laplacian"):
        width = float(rng.choice([0.05, 0.5, 1.0, 2.0, 5.0, 50.0, 1e4]))
        parameters = {"sigma" if name == "gaussian" else "length_scale": width}
        routes += [{"features": "pivots"}] * 2
        if name == "gaussian":
            routes += [{"features": "monomial"}] * 2
            routes += [{"features": "fourier"}] * (2 * (d <= 3))
            routes += [{"products": str(rng.choice(["grid", "clusters", "expansion"]))}] * 2
    elif name == "linear":
        routes += [{"features": "monomial"}, {"features": "pivots"}]
    elif name == "polynomial":
        parameters = {
            "degree": int(rng.integers(1, 6)),
            "offset": float(rng.choice([0.0, 1.0, 10.0, 1e4])),
            "scale": float(rng.choice([1.0, 0.01])),
        }
        routes += [{"features": "monomial"}, {"features": "pivots"}] * 2
    else:
        parameters = {"scale": float(rng.choice([1.0, 0.1])), "offset": float(rng.choice([0.0, -1.0, 1.0]))}
    options = dict(routes[int(rng.integers(len(routes)))])
    # where a periodic map's images begin to be seen, and where the mean's own rounding is all that there is
    reach = parameters.get("sigma", 1.0) * rng.uniform(3.0, 6.0, (3, 1)) * np.eye(d)[0]
    near = 10.0 ** -rng.uniform(2, 12, (3, 1)) * rng.standard_normal((3, d))
    at = np.asarray(X, dtype=np.float64).mean(axis=0) + near
    new = np.vstack([new, edge + offset + reach, at]).astype(new.dtype)
    if name in ("linear", "polynomial") and offset == 0.0 and rng.random() < 0.3:
        scale = new.dtype.type(10.0 ** rng.integers(-3, 6 if name == "linear" else 3))
        X, new = X * scale, new * scale
    options["tol"] = float(10.0 ** rng.integers(-12, -1))
    c = int(rng.choice([1, 2, 3, 5, 8, 12]))
    return name, parameters, options, X, new, c


def spe(rng, asked, *, weighted=False):
    """The attack on the intervals of the SPE."""
    name, parameters, options, X, new, c = case(rng)
    weights, kind = weights_of(rng, len(X)) if weighted else (None, "none")
    route = str(options.get("features") or options.get("products") or options["method"])
    text = f"{name} {parameters} {options} N={len(X)} d={X.shape[1]} c={c} {X.dtype} weights: {kind}"
    yield route, text, None
    try:
        model = fk.kpca(X, name, c, n_threads=1, sample_weight=weights, **options, **parameters)
        _, interval = fk.kpca_spe(model, new, bounds=True, n_threads=1)
    except (ValueError, fk.errors.NotConvergedError, MemoryError) as error:
        yield route, text, str(error)
        return
    seen, old, others = model, X, new
    if name == "linear":  # SPE does not depend on where zero is, but the size of what cancels does
        old, others = (np.asarray(A, dtype=LONG) - model.shift.astype(LONG) for A in (X, new))
        seen = replace(model, shift=np.zeros_like(model.shift))
    exact = exact_spe(seen, lambda A, B: exact_matrix(name, parameters, A, B)[0], old, others, weights)
    found = [*check_interval(*exact, interval)]
    if weighted:
        for what, again in (
            ("pickled", pickle.loads(pickle.dumps(model))),
            ("from its state", fk.KPCAModel.from_state(*model.state(), plugins=True)),
        ):
            same = np.array_equal(fk.kpca_spe(again, new, bounds=True, n_threads=1)[1], interval)
            found.append((what, float(not same)))
        limits = fk.kpca_limits(model, new, t2="chi2", spe="box", n_threads=1)
        found.append(("limits are finite", float(not np.isfinite([limits.t2, limits.spe]).all())))
    yield route, text, found
