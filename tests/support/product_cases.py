"""Random products of ``gram`` against long double: |K u - exact| <= error_bound sum |u| for every target and every u,
of K and of K'.

Rows of all sizes and layouts (from equal ones to clusters far apart, points that an expansion converges on most
slowly), kernels (one, scaled, a sum or a product; those of kernels_contrib too), tolerances and named products. For u =
single sources (the farthest, those next to others, random ones) the error of every target is looked at, which is the
guarantee's worst case, column by column; for u of ones, signs and random numbers that of the targets where these erred
most, and of random ones.
"""

from __future__ import annotations

import re

import numpy as np
from data import ROWS
from exact_kernels import LONG, exact_values
from range_cases import part, range_case

import fastkpca as fk

NAMES = ("expansion", "grid", "clusters", "sum", "tiles")


def kernel(rng: np.random.Generator, size: float) -> fk.kernels.Kernel:
    """A kernel for rows of about this size, or two of them combined; often the Gaussian, which has most products."""
    if rng.random() < 0.5:
        return fk.get_kernel("gaussian", sigma=size * 10 ** rng.uniform(-1.5, 1.5))
    one, how = part(rng, LONG(size), small=False), rng.choice(["one", "one", "sum", "product", "scaled"])
    if how == "scaled":
        return 10 ** rng.uniform(-3, 3) * one
    if how == "one":
        return one
    other = part(rng, LONG(size), small=False)
    return one + other if how == "sum" else one * other


def _directions(rng, n, d):
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1)[:, None]


OF_SIZE_ONE = ("normal", "all equal", "uniform", "clustered", "collinear", "duplicates", "outliers", "low-dimensional")
LAYOUTS = {kind: ROWS[kind] for kind in OF_SIZE_ONE} | {
    "far from zero": lambda rng, n, d: rng.standard_normal((n, d)) + rng.choice([1.0, 1e3, 1e4]),
    "some tiny": lambda rng, n, d: (
        rng.standard_normal((n, d)) * np.where(rng.random((n, 1)) < 0.5, 10 ** -rng.uniform(1, 200), 1.0)
    ),
    "nearly collinear": lambda rng, n, d: rng.random((n, 1)) * np.ones(d) + 1e-9 * rng.standard_normal((n, d)),
    "rim": _directions,
    "parallel": lambda rng, n, d: np.repeat(_directions(rng, 1, d), n, axis=0),
    "opposite": lambda rng, n, d: _directions(rng, 1, d) * rng.choice([-1.0, 1.0], (n, 1)),
    "ball": lambda rng, n, d: _directions(rng, n, d) * rng.random((n, 1)) ** (1 / d),
    "lattice": lambda rng, n, d: np.round(8 * rng.random((n, d))) / 8,  # on the borders of boxes
    "flat axes": lambda rng, n, d: np.where(rng.random(d) < 0.6, 1.5, rng.random((n, d))),
}
"""(rng, n, d) -> rows of about size one."""


def rows(rng: np.random.Generator, most: int) -> tuple[np.ndarray, np.ndarray | None, str]:
    """(targets, sources, layout); sources None: the same rows."""
    n, m = (int(np.exp(rng.uniform(np.log(2), np.log(most)))) for _ in range(2))
    d = int(rng.integers(1, 9 if rng.random() < 0.3 else 4))
    layout = str(rng.choice([*LAYOUTS, "inside", "away"]))
    if layout == "inside":  # targets deep inside tight clusters of sources
        centres = rng.random((10, d))
        targets, sources = (
            centres[rng.integers(0, 10, k)] + width * rng.uniform(-1, 1, (k, d)) for k, width in ((n, 0.002), (m, 0.02))
        )
        return targets, sources, layout
    if layout == "away":
        X = rng.random((n, d))
        return np.where(rng.random((n, 1)) < 0.5, X + 1.5, 40 * X - 20), rng.random((m, d)), layout
    A = LAYOUTS[layout](rng, n, d)
    B = 10 ** rng.uniform(-1, 1) * LAYOUTS[str(rng.choice(["normal", layout]))](rng, m, d)
    return A, None if rng.random() < 0.5 else B, layout


def worst_error(rng, K, chosen, targets, sources) -> float:
    """Largest error of K over sum |u|."""
    far = np.argsort(-np.abs(sources - sources.mean(axis=0)).max(axis=1))[:8]
    near = np.argsort(np.abs(sources - sources[len(sources) // 2]).max(axis=1))[:8]
    some = np.unique(np.concatenate([far, near, rng.integers(0, len(sources), 24)]))
    m = len(sources)
    U = np.column_stack([np.eye(m)[:, some], np.full(m, 0.1), rng.choice([-1.0, 1.0], m), rng.standard_normal(m)])
    sizes = 2.0 ** rng.integers(-26, 27, U.shape[1])  # of sources in one call
    V = (K @ (U * sizes)) / sizes
    if not np.isfinite(V).all():
        return np.inf
    single = np.abs(V[:, : len(some)] - exact_values(chosen, targets, sources[some])[0])
    at = np.unique(np.concatenate([np.argsort(-single.max(axis=1))[:24], rng.integers(0, len(targets), 24)]))
    dense = np.abs(V[at] - exact_values(chosen, targets[at], sources)[0] @ U.astype(LONG)) / np.abs(U).sum(axis=0)
    return max(float(single.max()), float(dense.max()))


def product(rng, asked):
    """The attack: one product, by its name or as it is chosen."""
    size, tol = 10 ** rng.uniform(-140, 140) if rng.random() < 0.6 else 1.0, 10 ** rng.uniform(-13, -1)
    A, B, layout = rows(rng, asked.largest)
    A, B = size * A, None if B is None else size * B
    if size == 1.0 and rng.random() < 0.2:
        A, B = A.astype(np.float32), None if B is None else B.astype(np.float32)
    with np.errstate(all="ignore"):
        try:
            chosen = kernel(rng, size)
        except ValueError as error:
            yield "parameters", layout, str(error)
            return
        if rng.random() < 0.25 and (case := range_case(rng)) is not None:
            A, B, chosen, layout = case.X, None, case.kernel, "all decades"
        tol, name = None if rng.random() < 0.2 else tol, "auto" if rng.random() < 0.2 else "by name"
        text = f"{chosen!r} {layout} {A.shape} {'' if B is None else B.shape} size={size:.2g} tol={tol} {name}"
        yield name, text, None
        sources, K = A if B is None else B, None
        try:
            K = made(rng, chosen, A, B, tol, name)
            off = [worst_error(rng, K, chosen, A, sources), worst_error(rng, K.T, chosen, sources, A)]
        except ValueError as error:
            reachable = re.search(r"is below ([\d.e-]+), what products of \d+ terms keep", str(error))
            assert not reachable or tol <= float(reachable[1]), "refused above rounding"
            assert K is None or re.search("finite|overflow|range of float64", str(error)), error
            yield name, text, str(error)
            return
        u = rng.standard_normal((len(sources), 2))
        again = fk.gram(A, chosen, B, tol=tol, products=K.products, n_threads=int(rng.integers(2, 6)))
        found = [("the same bits at any number of threads", float(not np.array_equal(K @ u, again @ u)))]
        found += [("tol", float(tol is not None and K.error_bound > tol))]
        for what, error in zip(("K @ u", "K.T @ u"), off):
            found.append((what, error / K.error_bound - 1.0 if K.error_bound else error))
        if isinstance(chosen, fk.kernels.Gaussian):  # the adjoint is the adjoint, to rounding
            u, v = rng.choice([-1.0, 1.0], len(sources)), rng.standard_normal(len(A))
            apart = abs(v @ (K @ u) - (K.T @ v) @ u)
            found.append(("adjoint", float(apart / np.abs(v).sum() / len(u)) - 3e-14))
        yield K.products, text, found


def made(rng, chosen, A, B, tol, name):
    """The product that is chosen, or the first by its name, in any order, that is offered on these rows."""
    for one in rng.permutation(NAMES) if name == "by name" else ():
        try:
            return fk.gram(A, chosen, B, tol=tol, products=str(one))
        except ValueError as error:
            if "offers no products" not in str(error):
                raise
    return fk.gram(A, chosen, B, tol=tol)
