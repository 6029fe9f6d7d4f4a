"""Random products of ``gram`` against long double, over the whole range of rows: |K u - exact| <= error_bound sum |u|.

A case draws rows, a kernel (one, scaled, a sum or a product; those of kernels_contrib too), a tolerance and a named
product. It is answered where the product is made and its values are within float64; what is refused is refused by a
ValueError, or by a note on the kernel's own error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from exact_kernels import LONG, exact_values

import fastkpca as fk

NAMES = ("auto", "exact", "expansion", "grid", "clusters", "pivots", "sum", "tiles")


def basic(rng: np.random.Generator, size: float) -> fk.kernels.Kernel:
    """A kernel for rows of about this size."""
    length = size * 10 ** rng.uniform(-1.5, 1.5)
    name = rng.choice(["gaussian", "polynomial", "indefinite", "tanh", "linear", "laplacian", "matern", "rational"])
    if name == "gaussian":
        return fk.get_kernel("gaussian", sigma=length)
    if name == "laplacian":
        return fk.get_kernel("laplacian", length_scale=length)
    if name == "matern":
        return fk.get_kernel("matern", nu=1.5, length_scale=length)
    if name == "rational":
        return fk.get_kernel("rational_quadratic", alpha=10 ** rng.uniform(-1, 1), length_scale=length)
    scale = 10 ** rng.uniform(-2, 1) / size**2
    if name in ("polynomial", "indefinite"):
        degree, offset = int(rng.integers(1, 6)), 10 ** rng.uniform(-2, 1) * (1 if name == "polynomial" else -1)
        return fk.get_kernel("polynomial", degree=degree, scale=scale, offset=offset)
    return fk.get_kernel("tanh", scale=scale, offset=rng.uniform(-2, 2)) if name == "tanh" else fk.get_kernel("linear")


def kernel(rng: np.random.Generator, size: float) -> fk.kernels.Kernel:
    """A kernel, or two of them combined."""
    one = basic(rng, size)
    how = rng.choice(["one", "one", "sum", "product", "scaled"])
    if how == "scaled":
        return 10 ** rng.uniform(-3, 3) * one
    if how == "one":
        return one
    return one + basic(rng, size) if how == "sum" else one * basic(rng, size)


def rows(rng: np.random.Generator, size: float) -> tuple[np.ndarray, np.ndarray | None]:
    """(targets, sources); None: the same rows. Equal rows, rows far from the origin, a few tiny ones among others."""
    d, n, m = int(rng.integers(1, 7)), int(rng.integers(2, 150)), int(rng.integers(1, 120))
    A = size * rng.standard_normal((n, d))
    B = size * 10 ** rng.uniform(-1, 1) * rng.standard_normal((m, d))
    layout = rng.random()
    if layout < 0.15:
        A[:] = A[0]
    elif layout < 0.3:
        A += 1e3 * size
    elif layout < 0.5:
        tiny = rng.random(n) < 0.5
        A[tiny] *= 10 ** -rng.uniform(1, 200)
    return A, None if rng.random() < 0.5 else B


@dataclass(frozen=True)
class Answer:
    """``worst``: largest error over what ``error_bound`` allows, of K and of K'."""

    products: str
    worst: float


def attacked(rng: np.random.Generator) -> Answer | None:
    """One case; None where it is refused. Raises whatever is no refusal."""
    size = 10 ** rng.uniform(-140, 140) if rng.random() < 0.6 else 1.0
    A, B = rows(rng, size)
    with np.errstate(all="ignore"):
        try:
            chosen = kernel(rng, size)
            tol = None if rng.random() < 0.3 else 10 ** rng.uniform(-12, -2)
            K = made(chosen, A, B, tol, str(rng.choice(NAMES)))
            others = A if B is None else B
            pairs = [(K, U := columns(rng, len(others))), (K.T, V := columns(rng, len(A)))]
            images = [product @ W for product, W in pairs]
        except ValueError:
            return None
        values, _ = exact_values(chosen, A, others)
        assert tol is None or K.error_bound <= tol, (K, tol)
        worst = 0.0
        for image, truth, W in zip(images, (values @ U.astype(LONG), values.T @ V.astype(LONG)), (U, V)):
            error = float((np.abs(image - truth) / np.abs(W).sum(axis=0)).max())
            worst = max(worst, error / K.error_bound if K.error_bound else (np.inf if error else 0.0))
    return Answer(K.products, worst)


def made(chosen: fk.kernels.Kernel, A: np.ndarray, B: np.ndarray | None, tol: float | None, name: str):
    """The product of this name, or the one that is chosen where there is none of this name."""
    try:
        return fk.gram(A, chosen, B, tol=tol, products=name)
    except ValueError as error:
        if "offers no products" not in str(error):
            raise
        return fk.gram(A, chosen, B, tol=tol)


def columns(rng: np.random.Generator, n: int) -> np.ndarray:
    """Single sources, ones, signs and random numbers."""
    return np.column_stack([np.eye(n)[:, :4], np.full(n, 0.1), rng.choice([-1.0, 1.0], n), rng.standard_normal(n)])
