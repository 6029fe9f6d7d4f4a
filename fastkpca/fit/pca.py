"""The linear case: ordinary PCA is kernel PCA with x.y, and the plan is where primal and dual are weighed."""

from __future__ import annotations

from typing import Any

from ..model.result import KPCAModel
from .kpca import kpca


def pca(X: Any, c: int | float | None = None, **options: Any) -> KPCAModel:
    """Principal component analysis: ``kpca`` with the linear kernel, primal or dual, whichever is cheaper.

    The primal method is one pass over the rows for their d x d scatter matrix (``method="features"``). The dual one
    forms the N x N matrix of inner products (``method="dense"``), or multiplies by it where neither matrix is small
    (``method="krylov"``). Without ``method=`` the plan compares what each would cost.

    Parameters
    ----------
    X : array_like (N, d)
        Rows are observations. Columns are centred, never scaled.
    c : int, float or None
        Number of components; a fraction 0 < c < 1 keeps the fewest that explain that part of the variance. None keeps
        all that carry variance, at most min(N - 1, d).
    **options
        ``tol``, ``method``, ``memory_limit``, ``n_threads``, ``rng``, ``return_scores``, ``out``, ``progress``, ... as
        in ``kpca``.

    Returns
    -------
    KPCAModel
        As ``kpca`` returns it, intervals included: ``latent`` are the variances along the components, ``score`` the
        coordinates of the rows. ``coeff`` (N, c) are the dual coefficients, as for any kernel; the principal axes in
        the space of the columns, MATLAB's coeff, are ``(X - X.mean(axis=0)).T @ model.coeff``.

    Notes
    -----
    The eigenvalues of X'HX and of HXX'H are the same but for zeros, and an axis is a combination of the rows: Sherry
    Thomas, Enhancing PCA with kernels, equations 1 to 3.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((30, 2000))
    >>> model = fk.pca(X, 3)
    >>> model.plan.method, model.score.shape
    ('dense', (30, 3))
    """
    if "kernel" in options:
        raise TypeError("pca has no kernel: it is the linear one; use kpca(X, kernel, c)")
    return kpca(X, "linear", c, **options)
