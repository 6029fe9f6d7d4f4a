"""The dense route: the centred Gram matrix, whole, and LAPACK; the reference for every other route."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base import parallel
from ..base.lapack import largest_eigenpairs
from ..base.rounding import EPS, UNIT, rounding_factor
from ..errors import rounded_up
from ..products.matrix import gram_matrix
from ..solve.certificate import Certificate, dense_certificate
from .problem import Problem
from .solution import Solution, negative_end, number_kept, sample_projector, scattered, signs_of
from .target import Target

__all__ = ["solve_dense"]


def solve_dense(problem: Problem) -> Solution:
    """All eigenvalues that are asked for, by LAPACK.

    With weights D = diag(w) the matrix is D^(1/2) (I - 1 w'/W) K (I - w 1'/W) D^(1/2): that of the rows repeated w_i
    times has the same eigenvalues, and its eigenvectors repeat those of this one, divided by w_i^(1/2).
    """
    problem = replace(problem, rows=problem.rows.loaded())
    rows, present = problem.rows.present()
    n, kernel, wanted = rows.n_samples, problem.kernel, problem.target.n_components
    K = gram_matrix(kernel, rows, n_threads=problem.budget.n_threads, progress=problem.budget.report)
    root = np.ones(n) if rows.weights is None else np.sqrt(np.asarray(rows.weights, dtype=np.float64))
    count = float(root @ root)
    size, norm = count * float(max(K.max(), -K.min())), _weighted_norm(K, root)
    means = _centre(K, root, weighted=rows.weights is not None) if problem.target.center else _scale(K, root)
    total = float(np.trace(K))
    # one more than asked for: it gives the gap behind the last cluster
    asked = n if wanted is None else wanted + 1
    eigenvalues, vectors = largest_eigenpairs(K, asked, problem.budget.n_threads)
    del K  # overwritten; scores and coefficients need the memory
    lowest = float(eigenvalues[-1]) if asked >= n else None
    error = problem.entry_error * count
    n_kept = number_kept(eigenvalues, 2 * EPS * size, total, problem.target, kernel, problem.data.n_samples, error)
    certificate = dense_certificate(eigenvalues, n_kept, n=n, norm=norm, entry_error=error / n)
    eigenvalues, vectors = eigenvalues[:n_kept].copy(), vectors[:, :n_kept]
    if rows.weights is not None:
        vectors = vectors / root[:, None]
    sample = problem.data.sample_index
    shown = vectors[sample if present is None else np.searchsorted(present, sample)]
    score = vectors * (signs_of(shown) * np.sqrt(eigenvalues))
    coeff = score / eigenvalues
    if rows.weights is not None:
        coeff *= (root**2)[:, None]
    if problem.target.center:  # projections need 1'coeff = 0, which holds only to u lambda_1 / lambda_i after LAPACK
        coeff -= coeff.mean(axis=0) if rows.weights is None else np.outer(root**2 / count, coeff.sum(axis=0))
    # rows of no weight are projected as new ones are
    coeff, means = (scattered(x, present, problem.data.n_samples) for x in (coeff, means))
    # the trace is that of K less means of n values, two for each row and the mean of all: each is off by its rounding
    slack = (3.0 * rounding_factor(n) + 8.0) * UNIT * size + error
    return Solution(
        eigenvalues,
        certificate,
        (total - slack, total + slack),
        sample_projector(problem, coeff, means),
        {"method": "dense", "passes": 1} | negative_end(lowest, kernel),
        score if present is None else None,
        _message(certificate, eigenvalues, problem.target),
    )


def _centre(K: np.ndarray, root: np.ndarray, *, weighted: bool) -> np.ndarray:
    """Centre K and scale it by the roots of the weights, in place, without a second N x N matrix. Returns the means of
    K's columns before that."""
    n, count = len(K), float(root @ root)
    means = root**2 @ K / count if weighted else K.mean(axis=0)
    grand = root**2 @ means / count if weighted else means.mean()
    step = parallel.tile_rows(n, least=1)
    for start in range(0, n, step):
        part = K[start : start + step]
        part -= means
        part -= means[start : start + step, None]
        part += grand
        if weighted:
            part *= root[start : start + step, None]
            part *= root
    return means


def _scale(K: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Without centring: K scaled by the roots of the weights, in place. Returns zeros in the place of the means."""
    if not np.all(root == 1.0):
        K *= root
        K *= root[:, None]
    return np.zeros(len(K))


def _weighted_norm(K: np.ndarray, root: np.ndarray) -> float:
    """|D^(1/2) K D^(1/2)|_F for D^(1/2) = diag(root)."""
    if np.all(root == 1.0):
        return float(np.linalg.norm(K))
    step = parallel.tile_rows(len(K), least=1)
    parts = (np.linalg.norm(K[i : i + step] * root[i : i + step, None] * root) for i in range(0, len(K), step))
    return float(np.sqrt(sum(float(x) ** 2 for x in parts)))


def _message(certificate: Certificate, eigenvalues: np.ndarray, target: Target) -> str:
    width = certificate.width / eigenvalues[0]
    if width <= target.tol:
        return ""
    return (
        f"the widest of {len(eigenvalues)} intervals is {rounded_up(width)} of the largest eigenvalue, tol is "
        f"{target.tol:g}: that is rounding in float64; a larger tol helps, or a kernel matrix that is less nearly "
        "constant (a smaller sigma)"
    )
