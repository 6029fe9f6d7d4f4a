"""Kernel partial least squares: components of the rows that vary together with the targets.

Rosipal and Trejo, JMLR 2, 2001. Let Y be the targets (the argument ``t``; t below is a component), and P the projector
onto the orthogonal complement of the components found so far. The next component is t = P K P Y q, q the leading
eigenvector of Y' P K P Y: for it the weight vector Phi' P Y q of NIPALS is longest. So each component takes one product
of K with P Y. As t_j = P K u_j with u_j = P Y q, K U = T R with R triangular, and new rows are projected by the
coefficients U R^-1 of kernel values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from fastkpca.base.rounding import EPS
from fastkpca.methods import check_count

from .errors import warn_fewer
from .methods import stored
from .methods.base import KernelMethod, Projection, Regressor
from .methods.functions import KernelFunction, function
from .methods.options import FitOptions
from .methods.permutation import need_rows
from .methods.products import Products, regression_on
from .methods.threads import one_blas_thread

__all__ = ["PLSModel", "kernel_pls"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PLSModel(Projection, Regressor, KernelMethod):
    """Kernel partial least squares.

    Attributes
    ----------
    kernel : Kernel
        With every parameter resolved.
    function : KernelFunction
        The components at new rows, c numbers a row.
    score : ndarray (N, c)
        Components of the training rows: uncorrelated, each of (weighted) mean 0 and mean square 1.
    weights : ndarray (c, k)
        Weights of the components, for the targets.
    intercept : ndarray (k,)
    explained : ndarray (c, k)
        R^2 of each target on the training rows, with 1, 2, ..., c components.
    single : bool
        The targets were given as one vector.
    n_samples : int
    info : dict
    """

    made_by = "kernel_pls()"

    function: KernelFunction = field(metadata=function("c"))
    score: np.ndarray = field(metadata=stored.not_stored("c"))
    weights: np.ndarray = field(metadata=stored.array("ck"))
    intercept: np.ndarray = field(metadata=stored.array("k"))
    explained: np.ndarray = field(metadata=stored.array("ck"))
    n_samples: int = field(metadata=stored.count())

    @property
    def n_components(self) -> int:
        return len(self.weights)

    def predict(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """The targets at new rows; as for kernel ridge regression."""
        return self.as_given(self.project(X, n_threads=n_threads) @ self.weights + self.intercept)

    def facts(self) -> list[str]:
        shares = ", ".join(f"{x:.4g}" for x in self.explained[-1])
        return [f"{self.kernel!r}, {self.n_components} components, R^2 {shares}, n_samples={self.n_samples}"]


@one_blas_thread
def kernel_pls(
    X: Any,
    t: Any,
    kernel: Any = "gaussian",
    c: int = 2,
    *,
    sample_weight: Any = None,
    method: str = "auto",
    tol: float = 1e-10,
    max_features: int | None = None,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> PLSModel:
    """Least squares on components that vary together with the targets.

    Parameters
    ----------
    X : array_like (N, d)
        Rows; or the Gram matrix (N, N) for ``kernel="precomputed"``.
    t : array_like (N,) or (N, k)
        Numbers to be explained; not scaled.
    kernel : str, Kernel, object with ``block``, or callable
        Positive semidefinite.
    c : int
        Number of components.
    sample_weight : array_like (N,), optional
        Weight 2 counts as two equal rows.
    method : {"auto", "features", "gram"}
        Through a feature map where a small one misses no more than ``tol``, or products with K.
    tol : float
        The part of the trace of the centred K that features may miss.
    max_features : int, optional
        2048 by default, and for "auto" no more than an eighth of the rows.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    **kernel_parameters

    Returns
    -------
    PLSModel
        ``predict``, ``project``, ``explained``.

    Raises
    ------
    ValueError, TypeError
        Fewer than 4 rows; targets that are constant or no numbers; the kernel is not positive semidefinite.

    Warns
    -----
    ComponentsWarning
        Fewer components than asked for vary with the targets (``fastkpca.errors``).

    Examples
    --------
    >>> import numpy as np
    >>> from kernels_contrib.pls import kernel_pls
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 2))
    >>> kernel_pls(X, np.sin(X[:, 0]), c=8, sigma=1.0).explained[-1].round(1)
    array([1.])
    """
    c = check_count(c, "c")
    options = FitOptions(kernel, kernel_parameters, method, tol, max_features, n_threads, rng, center=True)
    products, targets, weights = regression_on(X, t, sample_weight, options, "kernel_pls")
    need_rows(len(targets), "kernel_pls")
    share = weights / weights.sum()
    root, intercept = np.sqrt(share)[:, None], share @ targets
    # squares of the largest numbers, and of kernel values, would overflow; powers of two round nothing
    unit, unit_of_kernel = (_power_of_two(x) for x in (np.abs(targets).max(), products.mean_diagonal()))
    centred = root * ((targets - intercept) / unit)
    total = np.sum(centred**2, axis=0)
    if not (total > (len(targets) * EPS * np.abs(intercept / unit)) ** 2).any():
        raise ValueError("t is constant: there is nothing to explain; check t")
    U, R, T = _components(products, share, root, centred, c, unit_of_kernel)
    coefficients = root * scipy.linalg.solve_triangular(R, U.T, trans="T").T / unit_of_kernel
    loads = T.T @ centred
    return PLSModel(
        kernel=products.kernel.unbound(),
        function=products.function_of(coefficients, share @ products.matmat(coefficients)),
        score=np.divide(T, root, out=np.zeros_like(T), where=root > 0),
        weights=loads * unit,
        intercept=intercept,
        explained=np.cumsum(loads**2, axis=0) / np.where(total > 0, total, 1.0),
        single=np.ndim(t) == 1,
        n_samples=len(targets),
        info=products.info,
    )


def _power_of_two(size: float) -> float:
    """The unit that brings numbers of this size near 1."""
    return float(np.ldexp(1.0, np.frexp(size)[1] - 1)) if size else 1.0


def _components(
    products: Products, share: np.ndarray, root: np.ndarray, targets: np.ndarray, c: int, unit: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U (N, c), R (c, c) and T (N, c) with K U = unit T R, K centred, rows weighted by ``root``; T orthonormal."""
    product = products.held_product()
    left, T, U, R = targets.copy(), np.empty((len(targets), 0)), [], np.zeros((c, c))
    first = products.mean_diagonal() / unit * float(np.sum(targets**2))  # rounding of K leaves a share of this
    for j in range(c):
        left -= T @ (T.T @ left)  # again, or rounding would bring the old components back
        image = product(root * left) / unit
        image = root * (image - share @ image)
        size, turn = np.linalg.eigh(left.T @ image)
        u, t = left @ turn[:, -1], image @ turn[:, -1]
        along = T.T @ t
        t = t - T @ along
        more = T.T @ t
        t, along = t - T @ more, along + more
        length = float(np.linalg.norm(t))
        first = first if j else max(first, float(size[-1]))
        if not size[-1] > 64 * EPS * first or not length > 0.0:
            if not j:
                raise ValueError(
                    f"no component varies with the targets in the space of {products.kernel!r}; check X and t"
                )
            warn_fewer("components", c, j, "no other varies with the targets")
            break
        T = np.column_stack([T, t / length])
        U.append(u)
        R[:j, j], R[j, j] = along, length
        left = left - T[:, -1:] @ (T[:, -1:].T @ left)
    return np.column_stack(U), R[: len(U), : len(U)], T
