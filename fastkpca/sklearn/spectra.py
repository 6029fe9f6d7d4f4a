"""Steps around ``kpca`` that scikit-learn's conventions need: symmetric parts, signs, zero eigenvalues."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.utils.validation import _check_psd_eigenvalues

from ..base import parallel
from ..base.protocol import Kernel
from ..base.rounding import unit_roundoff
from ..kernels import guarded
from ..kernels.precomputed import dense
from ..model.result import KPCAModel, leading
from ..model.rows import float_type
from ..products.matrix import gram_matrix
from ..products.vectors import centre
from ..rows.view import Rows


def symmetric_part(K: Any, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The symmetric part of a precomputed matrix, and its own column means where they differ from that part's.

    Row offsets and column offsets are taken away by centring: K = S + 1 a' + b 1' gives the components of S, and so
    does its symmetric part. But new rows, which come with their own b, are centred by the column means of K itself.
    """
    K = dense(K)
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Kernel matrix must be a square matrix. Input is a {K.shape[0]}x{K.shape[1]} matrix; with "
            "kernel='precomputed' fit takes the kernel matrix of the training rows in place of X"
        )
    if K.dtype.kind != "f":  # differences of truth values, or of whole numbers without signs, are none
        K = K.astype(np.float64)
    size = float(np.abs(K).max(initial=0.0))
    eps = 2.0 * unit_roundoff(float_type(K.dtype))
    if all(np.abs(K[i : i + 512] - K[:, i : i + 512].T).max() <= eps * size for i in range(0, len(K), 512)):
        return K, None
    K = K.astype(np.float64)
    means = np.average(K, axis=0, weights=weights)
    for i in range(0, len(K), 512):
        symmetric = (K[i : i + 512, i:] + K[i:, i : i + 512].T) / 2
        K[i : i + 512, i:], K[i:, i : i + 512] = symmetric, symmetric.T
    return K, means


def n_positive(model: KPCAModel, X: Any) -> int:
    """Number of eigenvalues that scikit-learn takes for more than zero: above 1e-12 of the largest."""
    checked = _check_psd_eigenvalues(model.eigenvalues.astype(float_type(X.dtype)), enable_warnings=False)
    return int(np.count_nonzero(checked))


def centred_spectrum(kernel: Kernel, X: Any, n_threads: int) -> np.ndarray:
    """All eigenvalues of the centred kernel matrix, ascending."""
    kernel, X = guarded(kernel).bind(X)
    K = gram_matrix(kernel, Rows(X), n_threads=parallel.threads_for(kernel, n_threads))
    centre(K)
    spectrum: np.ndarray = scipy.linalg.eigvalsh(K, overwrite_a=True)
    return spectrum


def with_sklearn_signs(model: KPCAModel, keep: int, column_means: np.ndarray | None) -> KPCAModel:
    """The first components, with scikit-learn's signs.

    ``column_means`` replace those of the kernel matrix where new rows are centred by others.
    """
    score = model.score[:, :keep]
    largest = np.abs(score).argmax(axis=0)
    signs = np.where(score[largest, np.arange(keep)] < 0, -1.0, 1.0).astype(score.dtype)
    reduced = leading(model, signs)
    projector: Any = reduced.projector
    if column_means is None:
        return reduced
    return replace(reduced, projector=replace(projector, column_means=column_means))


def rest_bound(model: KPCAModel) -> float:
    """Upper bound on the eigenvalues beyond those of the model."""
    bounds = model.eigenvalue_bounds
    if not model.kernel.positive_semidefinite:
        return float(bounds[-1, 1])
    left = model.total_variance_bounds[1] * (model.count - 1) - float(np.maximum(bounds[:, 0], 0.0).sum())
    return float(min(bounds[-1, 1], max(left, 0.0)))


def padded(scores: np.ndarray, columns: int) -> np.ndarray:
    """Components without variance: every score is zero."""
    if scores.shape[1] == columns:
        return scores
    return np.hstack([scores, np.zeros((len(scores), columns - scores.shape[1]), dtype=scores.dtype)])


def completed(vectors: np.ndarray, columns: int) -> np.ndarray:
    """The orthonormal columns, with arbitrary further ones, as those of zero eigenvalues are."""
    n, c = vectors.shape
    if c == columns:
        return vectors
    more = np.random.default_rng(0).standard_normal((n, columns - c))
    Q, _ = np.linalg.qr(np.hstack([vectors, more]))
    return np.hstack([vectors, Q[:, c:].astype(vectors.dtype)])
