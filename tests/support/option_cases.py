"""What may be asked for beside a kernel: center=, standardize=, widths and groups of columns, matrices, objects.

Random problems through the public door, by family: "fit" (routes, weights, sources, files), "shards" (like=, merge,
update), "matrix" (semidefinite=True), "objects" (lists of strings) and "importance" (against differences of the
scores). References are kernel values in long double
by formulas of this file, LAPACK's eigenvalues of the dense matrix, and differences of projections. A refusal in words
is an answer; any other exception, and any warning of NumPy's, is not.
"""

from __future__ import annotations

import re
import warnings
from functools import partial
from pathlib import Path
from typing import Any
from unittest import TestCase

import numpy as np
import scipy.sparse as sp
from attack_cases import check_eigenvalues, check_trace, spectrum
from data import ROWS, weights_of
from exact_kernels import LONG, LONG_UNIT, exact_values
from reference import with_eigenvalues
from spe_cases import check_interval, exact_spe

import fastkpca as fk
from fastkpca.errors import NotConvergedError

EPS = float(np.finfo(np.float64).eps)
REFUSALS = (ValueError, TypeError, NotConvergedError, MemoryError)


# Kernels and their values in long double -------------------------------------------------------------------------


def _width(rng, d, vector):
    if not vector:
        return float(10.0 ** rng.uniform(-1, 1.5))
    return (10.0 ** rng.uniform(-1, rng.choice([0.5, 3.0]), d)).tolist()


def simple(rng, d, *, semidefinite):
    """A kernel by name on d columns, often with a width for each of them."""
    names = ["gaussian", "gaussian", "gaussian", "linear", "polynomial", "laplacian", "rational_quadratic", "cosine"]
    name = str(rng.choice(names if semidefinite else [*names, "tanh", "tanh", "negative"]))
    width, scale = _width(rng, d, vector=rng.random() < 0.4), float(rng.choice([1.0, 0.1, 0.01]))
    p = {
        "gaussian": {"sigma": width},
        "laplacian": {"length_scale": width},
        "rational_quadratic": {"length_scale": width, "alpha": 1.0},
        "polynomial": {"degree": int(rng.integers(1, 5)), "scale": scale, "offset": float(rng.choice([0.0, 1.0, 3.0]))},
        # an odd power of the product less one: its largest values may be below zero
        "negative": {"degree": 3, "scale": scale, "offset": -1.0},
        "tanh": {"scale": scale, "offset": float(rng.choice([0.0, 1.0, -1.0]))},
    }.get(name, {})
    return fk.get_kernel("polynomial" if name == "negative" else name, **p)


def spec(rng, names, depth=0, *, semidefinite=False):
    """A kernel of ``simple``, on columns by number or name, a sum, a product or a multiple of such."""
    d, kind = len(names), rng.random()
    if kind < 0.45 or depth > 1:
        return simple(rng, d, semidefinite=semidefinite)
    if kind < 0.75:
        chosen = rng.permutation(d)[: rng.integers(1, d + 1)]
        part = spec(rng, [names[j] for j in chosen], depth + 1, semidefinite=semidefinite)
        if any(isinstance(x, str) for x in _columns(part)):
            return simple(rng, d, semidefinite=semidefinite)  # names are of all columns, numbers of those of a group
        by_name = rng.random() < 0.3 and names[0]
        return fk.on_columns(part, [names[j] for j in chosen] if by_name else chosen.tolist())
    a, b = (spec(rng, names, depth + 1, semidefinite=semidefinite) for _ in range(2))
    return a + float(rng.choice([0.5, 1e-6, 3.0])) * b if rng.random() < 0.5 else a * b


def value(kernel, X, Y):
    return exact_values(kernel, X, Y)[0]


def _columns(kernel):
    found = list(getattr(kernel, "columns", ()))
    for part in getattr(kernel, "parts", ()):
        found += _columns(part)
    return found


# Rows, where they come from, and weights -------------------------------------------------------------------------


KINDS = ("normal", "normal", "clustered", "duplicates", "outliers", "uneven scales", "wide scales", "constant")


def rows(rng, n, d, *, far=True):
    kind, offset = str(rng.choice(KINDS)), float(rng.choice([0.0, 0.0, 1.0, 50.0] + [1e4, 1e8] * far))
    return ROWS[kind](rng, n, d) + offset, f"{kind} + {offset:g}"


def weights(rng, n):
    if rng.random() < 0.5:
        return None, "none"
    w, kind = weights_of(rng, n)
    return w.astype(float), kind


def source(rng, X, names, folder):
    """(the rows as the user may have them, what that is)."""
    kind = str(rng.choice(["array", "array", "fortran", "memmap", "blocks", "csr", "dask", "frame"]))
    if kind == "frame" or names[0]:
        import pandas

        return pandas.DataFrame(X, columns=[x or f"c{j}" for j, x in enumerate(names)]), "frame"
    if kind == "fortran":
        return np.asfortranarray(X), kind
    if kind == "memmap":
        path = Path(folder) / f"rows{rng.integers(1 << 60)}.npy"
        np.save(path, X)
        return np.load(path, mmap_mode="r"), kind
    if kind == "blocks":
        step = int(rng.integers(2, max(len(X), 2) + 1))
        return (lambda: iter([X[i : i + step] for i in range(0, len(X), step)])), kind
    if kind == "csr":
        return sp.csr_matrix(X), kind
    if kind == "dask":
        import dask.array as da

        return da.from_array(X, chunks=(int(rng.integers(7, 40)), X.shape[1])), kind
    return X, "array"


# What must hold ----------------------------------------------------------------------------------------------------


def framed(model, X):
    """Rows as the model's kernel sees them, exactly; where it shifts nothing that is the rows as they are."""
    X = np.asarray(X).astype(LONG)
    return X if model.scale is None else (X - model.shift.astype(LONG)) / model.scale.astype(LONG)


def fitted(data, kernel, c, options, **others):
    """The model by the route that is asked for; by the plan's own where the kernel has no such."""
    try:
        return fk.kpca(data, kernel, c, **options, **others)
    except ValueError as error:
        if not re.search("has no map of|offers no products|not possible|have no|so it has none", str(error)):
            raise
        return fk.kpca(data, kernel, c, **others)


def kept(checks):
    for what, excess in checks:
        assert excess <= 0, f"{what} by {excess:.3g}"


def check_intervals(model, kernel, X, w):
    """Every interval holds its eigenvalue, and that of the trace the trace."""
    Z = framed(model, X)
    if model.center and model.scale is None and getattr(model.kernel, "translation", None) is not None:
        # only the centred matrix counts, and what cancels in it is smaller where zero lies among the rows
        Z = Z - Z.mean(axis=0)
    K = value(kernel, Z, Z)
    exact = spectrum(K, 128 * LONG_UNIT * np.abs(K).max(), w, model.center)
    kept([*check_eigenvalues(model, exact), *check_trace(model, exact, float(w.sum()))])


def check_scale(model, X, w, standardize):
    if not standardize:
        assert model.scale is None, "a scale, and nobody asked for one"
        return
    Z, w = np.asarray(X).astype(LONG), w.astype(LONG)
    present = w > 0
    Z, w = Z[present], w[present]
    largest = np.abs(Z).max(axis=0)
    Z = Z - Z[0]
    mean = w @ Z / w.sum()
    spread = np.sqrt(w @ (Z - mean) ** 2 / max(w.sum() - 1, LONG(1e-300)))
    moving = spread > (1e-12 if np.asarray(X).dtype.kind == "f" else 1e-19) * largest
    off = np.abs(model.scale[moving] / spread[moving] - 1)
    assert (off < 1e-9).all(), f"scale off by {float(off.max()):.3g} relative: {model.scale} {spread}"


def check_scores(model, X, new, kernel, w, folder, given_new):
    """Projections of the training rows are the scores; of a model with coefficients those of new rows are exact."""
    score = np.asarray(model.score, dtype=np.float64)
    projected = np.asarray(fk.kpca_project(model, X), dtype=np.float64)
    size = np.abs(score).max(initial=0.0)
    loose = 2e-4 if np.asarray(X).dtype == np.float32 else 1e-6
    present = w > 0
    if size > 0:
        Z = framed(model, X)
        largest = float(np.sqrt(np.abs(np.diagonal(value(kernel, Z, Z))).max()))
        off = np.abs(projected - score)[present].max(axis=0, initial=0.0)
        # what is summed for a component is larger than its scores by far, where its eigenvalue is small
        sizes = np.abs(np.asarray(model.coeff, dtype=np.float64))[present].sum(axis=0) * largest**2
        rounding = 16 * float(np.finfo(model.score.dtype).eps)
        room = np.maximum(loose, model.info["tol"] or 0.01) * max(size, largest) + rounding * sizes
        # others are noise, and their vectors
        known = np.ptp(model.eigenvalue_bounds, axis=1) < 1e-3 * model.eigenvalues
        assert (off <= room)[known].all(), f"training rows project {off.max():.3g} from their scores ({size:.3g})"
    path = Path(folder) / "model.kpca"
    fk.save(model, path, overwrite=True)
    again = fk.load(path, plugins=True)
    before = np.asarray(fk.kpca_project(model, given_new))
    assert np.isfinite(before).all(), "a projection is not finite"
    after = np.asarray(fk.kpca_project(again, given_new))
    assert np.array_equal(before, after), "a loaded model projects otherwise"
    assert again.center == model.center and repr(again.kernel) == repr(model.kernel), "a loaded model says otherwise"
    if model.projector.grows_with_n:
        coeff = np.asarray(model.coeff, dtype=np.float64).astype(LONG)
        Z, N = framed(model, X), framed(model, new)
        shares = w.astype(LONG) / w.astype(LONG).sum()
        K, k = value(kernel, Z, Z), value(kernel, N, Z)
        if model.center:
            coeff = coeff - np.outer(shares, coeff.sum(axis=0))
        exact = (k - K @ shares * model.center) @ coeff
        room = np.abs(coeff).sum(axis=0) * float(max(np.abs(K).max(), np.abs(k).max()))
        off = np.abs(before - exact) / np.maximum(room, 1e-300)
        most = 1e-5 if before.dtype == np.float32 else 1e-9 if not model.info.get("product_error") else 1e-3
        most = max(most, 100 * EPS * float(np.abs(new).max()))  # widths divide rows before they are subtracted
        assert (off <= most).all(), f"projection off by {float(off.max()):.3g} of what is summed"


def check_spe(model, X, new, kernel, w, given_new):
    """The interval of the SPE holds the exact one, for models with coefficients."""
    try:
        spe, interval = fk.kpca_spe(model, given_new, bounds=True)
    except ValueError:
        return
    kept(check_interval(spe, 1e-6 * np.abs(spe) + 1e-300, interval))
    if model.projector.grows_with_n and np.asarray(X).dtype != np.float32:
        rows, others = framed(model, X), framed(model, new)
        kept(check_interval(*exact_spe(model, partial(value, kernel), rows, others, w), interval))


def told(given, center, standardize, options):
    return f"{given!r} center={center} standardize={standardize} {options}"


# Families ----------------------------------------------------------------------------------------------------------

ROUTES: list[dict[str, Any]] = [
    {},
    {"method": "dense"},
    {"method": "krylov"},
    {"method": "features"},
    {"features": "pivots"},
    {"features": "monomial"},
    {"features": "fourier"},
    {"products": "grid"},
    {"products": "expansion"},
    {"products": "clusters"},
    {"max_features": 12},
    {"landmarks": list(range(0, 24, 2))},
]


LARGEST = 90
"""Rows of a case of "fit" and "operators" at most."""


def fit(rng, folder):
    n, d = int(rng.integers(24, LARGEST)), int(rng.integers(1, 5))
    X, kind = rows(rng, n, d)
    names = [f"v{j}" for j in range(d)] if rng.random() < 0.3 else [""] * d
    given = spec(rng, names)
    standardize = bool(rng.random() < 0.5)
    center = bool(rng.random() < 0.4)
    w, weighted = weights(rng, n)
    if rng.random() < 0.2:
        X = X.astype(np.float32)
    elif rng.random() < 0.1:
        X = np.rint(X * 8).astype(np.int64) + (1 << 60) * (standardize or rng.random() < 0.3)
    options = dict(ROUTES[int(rng.integers(len(ROUTES)))])
    options["tol"] = float(10.0 ** rng.integers(-10, -1))
    if "max_features" in options or "landmarks" in options:
        options.pop("tol")
    c = int(rng.choice([1, 2, 3, 6]))
    new = np.vstack([X[:4], X[rng.integers(0, n, 4)] + rng.integers(0, 2, (4, d)).astype(X.dtype)])
    data, where = source(rng, X, names, folder)
    yield f"{told(given, center, standardize, options)} c={c} {where} {X.dtype} N={n} d={d} {kind} weights={weighted}"
    model = fitted(data, given, c, options, center=center, standardize=standardize, sample_weight=w, n_threads=1)
    yield "answered"
    w = np.ones(n) if w is None else w
    check_scale(model, X, w, standardize)
    check_intervals(model, given, X, w)
    given_new = new
    if where == "frame":
        import pandas

        given_new = pandas.DataFrame(new, columns=list(data.columns))
        if d > 1:
            with TestCase().assertRaisesRegex(ValueError, "in another order"):
                fk.kpca_project(model, given_new[list(data.columns)[::-1]])
    plain = data if where == "frame" else X
    check_scores(model, plain, new, given, w, folder, given_new)
    check_spe(model, X, new, given, w, given_new)


def shards(rng, folder):
    n, d = int(rng.integers(40, 120)), int(rng.integers(1, 4))
    X, kind = rows(rng, n, d)
    given = spec(rng, [""] * d, semidefinite=True)
    standardize, center = bool(rng.random() < 0.5), bool(rng.random() < 0.4)
    w, weighted = weights(rng, n)
    options = dict([{}, {"features": "pivots"}, {"features": "monomial"}, {"max_features": 6}][int(rng.integers(4))])
    c = int(rng.choice([1, 2, 3]))
    cut = np.sort(rng.choice(np.arange(6, n - 6), 2, replace=False))
    yield f"{told(given, center, standardize, options)} c={c} N={n} d={d} {kind} weights={weighted} cut={cut}"
    parts = [slice(0, cut[0]), slice(cut[0], cut[1]), slice(cut[1], n)]
    if w is not None:
        for part in parts:
            w[part][:3] = np.maximum(w[part][:3], 1.0)
    first, *others = parts

    def of(part, X=X):
        data, _ = source(rng, X[part], [""] * d, folder)
        if "DataFrame" in type(data).__name__:
            data = X[part]
        return data, None if w is None else w[part]

    data, v = of(first)
    model = fk.kpca(
        data, given, c, center=center, standardize=standardize, sample_weight=v, keep_moments=True, **options
    )
    path = Path(folder) / "first.kpca"
    fk.save(model, path, overwrite=True)
    model = fk.load(path, plugins=True)
    data, v = of(others[0])
    if rng.random() < 0.5:
        second = fk.kpca(data, like=model, c=c, sample_weight=v, keep_moments=True)
        union = fk.kpca_merge(model, second)
    else:
        union = fk.kpca_update(model, data, sample_weight=v)
    data, v = of(others[1])
    union = fk.kpca_update(union, data, sample_weight=v)
    yield "answered"
    assert union.center == center and (union.scale is not None) == standardize
    if standardize:
        assert np.array_equal(union.scale, model.scale) and np.array_equal(union.shift, model.shift)
    check_intervals(union, given, X, np.ones(n) if w is None else w)
    fk.save(union, path, overwrite=True)
    assert np.array_equal(fk.kpca_project(fk.load(path, plugins=True), X), fk.kpca_project(union, X))


def matrix(rng, folder):
    n = int(rng.integers(5, 120))
    r = int(rng.integers(1, n + 1))
    F = rng.standard_normal((n, r)) * 10.0 ** -rng.uniform(0, rng.choice([0.1, 3, 12]), r)
    K = F @ F.T
    if rng.random() < 0.3:
        K = with_eigenvalues(rng, 10.0 ** -rng.uniform(0, 18, n))
    dent = float(rng.choice([0.0, 0.0, 1e-4, 1e-6, 1e-10, 1e-12, 1e-13, 1e-14, 1e-15]))
    v = rng.standard_normal(n) / np.sqrt(n)
    if rng.random() < 0.3:
        v = np.zeros(n)
        v[int(rng.integers(n))] = 1.0
    if rng.random() < 0.3:  # every direction that is left is below zero
        K = K - dent * np.abs(K).max() * np.eye(n)
    K = K - dent * np.abs(K).max() * np.outer(v, v)
    K = (K + K.T) / 2
    noise = float(rng.choice([0.0, 0.0, 1e-16, 1e-15, 1e-14]))
    K = K * (1 + noise * rng.standard_normal((n, n)))
    K *= 10.0 ** rng.integers(-6, 7)
    if rng.random() < 0.2:
        K = K.astype(np.float32)
    center, w = bool(rng.random() < 0.5), weights(rng, n)[0]
    c = int(rng.integers(1, min(n - 1, 6)))
    options = dict([{}, {"method": "dense"}, {"method": "krylov"}][int(rng.integers(3))])
    options["tol"] = float(10.0 ** rng.integers(-12, -1))
    shape = f"N={n} rank={r} dent={dent:g} noise={noise:g} {K.dtype}"
    yield f"{shape} c={c} center={center} {options} weighted={w is not None}"
    model = fk.kpca(K, "precomputed", c, semidefinite=True, center=center, sample_weight=w, **options)
    yield "answered"
    w = np.ones(n) if w is None else w
    exact = (K.astype(LONG) + K.T.astype(LONG)) / 2
    kept(check_eigenvalues(model, spectrum(exact, w=w, center=center)))
    off = np.abs(np.asarray(fk.kpca_project(model, K)) - model.score)[w > 0]
    assert off.max(initial=0) <= (1e-3 if K.dtype == np.float32 else 1e-6) * np.sqrt(np.abs(K).max()), "projections"
    path = Path(folder) / "matrix.kpca"
    fk.save(model, path, overwrite=True)
    again = fk.load(path, plugins=True)
    assert np.array_equal(fk.kpca_project(again, K), fk.kpca_project(model, K)), "a loaded model"
    assert again.kernel.positive_semidefinite and (fk.kpca_spe(again, K, diagonal=np.diagonal(K).copy()) >= 0.0).all()


def letters(A, B):
    """Common letters of words, with multiplicity as a product of counts: a semidefinite matrix."""
    a, b = (np.array([[x.count(y) for y in "abcdef"] for x in words], dtype=float).reshape(-1, 6) for words in (A, B))
    return a @ b.T


def one_nan(A, B):
    K = letters(A, B)
    K[0, -1] = np.nan
    return K


def one_sided(A, B):
    return letters(A, B) + 0.5 * np.array([[len(x) > len(y) for y in B] for x in A], dtype=float)


def flat(A, B):
    return letters(A, B).ravel()


def objects(rng, folder):
    n = int(rng.integers(0, 40)) if rng.random() < 0.9 else int(rng.integers(0, 3))
    words = ["".join(rng.choice(list("abcdef"), rng.integers(0, 9))) for _ in range(n)]
    function = [letters, letters, letters, one_nan, one_sided, flat][int(rng.integers(6))]
    declared = bool(rng.random() < 0.5)
    center, w = bool(rng.random() < 0.5), None if rng.random() < 0.5 else rng.integers(0, 3, n).astype(float)
    options = dict(
        [{}, {"method": "dense"}, {"method": "krylov"}, {"features": "pivots"}, {"max_features": 4}][
            int(rng.integers(5))
        ]
    )
    c = int(rng.integers(1, 5))
    yield f"{function.__name__} declared={declared} N={n} c={c} center={center} {options} weighted={w is not None}"
    model = fk.kpca(words, function, c, positive_semidefinite=declared, center=center, sample_weight=w, **options)
    yield "answered"
    if function is not letters:
        # a small sample of the values is looked at for symmetry: nothing is promised of functions that are no kernels
        assert function is one_sided, "values that are no numbers were taken"
        return
    w = np.ones(n) if w is None else w
    exact = spectrum(letters(words, words), w=w, center=center)
    kept(check_eigenvalues(model, exact))
    new = ["abc", "", "f" * 9]
    before = fk.kpca_project(model, new)
    assert np.isfinite(before).all()
    off = np.abs(fk.kpca_project(model, words) - model.score)[w > 0]
    assert off.max(initial=0) <= 1e-6 * (1 + np.sqrt(exact.size)), f"projections off by {off.max()}"
    for empty in ([], [1.0], [["a"]], np.ones((2, 3))):
        try:
            fk.kpca_project(model, empty)
        except (TypeError, ValueError) as error:
            assert len(str(error)) > 20
    path = Path(folder) / "objects.kpca"
    try:
        fk.save(model, path, overwrite=True)
    except (ValueError, TypeError) as error:
        assert len(str(error)) > 20
        return
    assert np.array_equal(fk.kpca_project(fk.load(path, kernel=model.kernel), new), before), "a loaded model"


def differences(model, X, steps):
    """Derivatives of the scores, (n, c, d), by differences of order four of what kpca_project returns."""

    def moved(column, by):
        Y = X.copy()
        Y[:, column] += by
        return np.asarray(fk.kpca_project(model, Y), dtype=float)

    slopes = [
        (8 * (moved(p, step) - moved(p, -step)) - (moved(p, 2 * step) - moved(p, -2 * step))) / (12 * step)
        for p, step in enumerate(np.broadcast_to(steps, X.shape[1]))
    ]
    return np.stack(slopes, axis=2)


def importance(rng, folder):
    """Squared and mean gradients, and shares of the signs, against differences of kpca_project."""
    n, d = int(rng.integers(24, 60)), int(rng.integers(1, 5))
    X, kind = rows(rng, n, d, far=False)
    given = spec(rng, [""] * d)
    standardize, center = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    w, weighted = weights(rng, n)
    options = dict(ROUTES[int(rng.integers(len(ROUTES)))])
    c = int(rng.choice([1, 2, 3]))
    yield f"{told(given, center, standardize, options)} c={c} N={n} d={d} {kind} weights={weighted}"
    model = fitted(X, given, c, options, center=center, standardize=standardize, sample_weight=w)
    looked = X[:: max(1, n // 12)]
    v = None if rng.random() < 0.5 else rng.random(len(looked)) + 0.1
    found = fk.kpca_importance(model, looked, sample_weight=v)
    moved = fk.kpca_importance(model, looked, sample_weight=v, method="permutation")
    yield "answered"
    v = np.ones(len(looked)) if v is None else v
    share = v / v.sum()
    spread = np.sqrt(np.maximum(share @ (looked - share @ looked) ** 2, 0.0))
    assert np.allclose(found.spread, spread, rtol=1e-9, atol=1e-9 * np.abs(looked).max()), "spread"
    assert (found.importance >= 0).all() and (moved.importance >= 0).all()
    unit = np.ones(d) if model.scale is None else model.scale
    own = looked.std(axis=0)
    steps = np.minimum(np.where(own > 0, own, unit), unit)  # widths of kernels are about 1
    G, other = (differences(model, looked, h * steps) for h in (1e-5, 2e-5))
    rough = np.abs(G - other)
    if re.search("Laplacian|Cosine", repr(given)):
        return  # no derivative where two rows have the same value, or at zero
    score = np.abs(np.asarray(model.score)).max(initial=0.0)
    largest = float(np.sqrt(np.abs(model.kernel.diagonal(np.asarray(framed(model, X), dtype=float))).max()))
    noise = 1e3 * EPS * max(score, largest) / 1e-5 * (1 + np.abs(looked).max(axis=0) / steps) / steps
    for exact, there, name in (
        (found.squared_gradients, G**2, "squared gradients"),
        (found.mean_gradients, G, "mean gradients"),
    ):
        mean = np.tensordot(share, there, 1)
        top = np.abs(G).max(axis=0)
        rounding = np.tensordot(share, rough, 1) * 20 + noise
        room = 1e-6 * np.abs(there).max(axis=0) + rounding * (2 * top + rounding if "sq" in name else 1)
        off = np.abs(exact - mean)
        assert (off <= room).all(), (
            f"{name} off by {(off / np.maximum(np.abs(there).max(axis=0), 1e-300)).max():.3g} relative"
        )


FAMILIES = (fit, shards, matrix, objects, importance)


def attacked(rng, asked, family):
    """A family as an attack: a refusal is one in words of this package's, and before an answer."""
    described, answered = "", False
    warnings.simplefilter("error", RuntimeWarning)
    warnings.simplefilter("error", DeprecationWarning)
    try:
        for text in family(rng, asked.folder):
            described, answered = (described, True) if text == "answered" else (text, answered)
            yield family.__name__, described, None
    except REFUSALS as error:
        if answered or not _in_words(error):
            raise
        yield family.__name__, described, str(error)
    else:
        yield family.__name__, described, []


def _in_words(error):
    """Whether the package itself refused: NumPy's and LAPACK's own errors are none in words."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    place = trace.tb_frame.f_code.co_filename
    return ("fastkpca/" in place or "kernels_contrib/" in place) and not isinstance(error, np.linalg.LinAlgError)
