"""Pre-images, rows for given scores: for denoising, and to show what a component means.

Scores z stand for the point P = mean + sum_j z_j w_j of feature space. In general P is not the image of any row; a
pre-image is a row whose image is near P. The method depends on the kernel and on what the model holds:

- "linear": the kernel is linear, and P is a row;
- "fixed-point", "gradient": |phi(x) - P|^2 is minimised over x (``search``, ``descent``), P being an expansion in the
  training rows, or in pivots, or a vector of features;
- "ridge": rows are learned from scores by kernel ridge regression (``ridge``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import parallel
from ...base.checks import as_float, check_choice, check_count, check_tol
from ...base.progress import Progress
from ...base.protocol import Kernel
from ...errors import PreimageWarning, warn_caller
from ...kernels import guarded
from ...rows.convert import as_rows, run_query
from ...rows.foreign import frame_of, like_given
from ...rows.values import check_finite
from ...rows.view import Rows
from ..projector import finite, scores_of
from ..result import KPCAModel, check_model
from ..rows import counted, float_type, known_rows, new_rows
from ..shared_map import feature_projector
from .ridge import fit_ridge
from .search import Known, Search

METHODS = ("auto", "linear", "fixed-point", "gradient", "ridge")


def kpca_preimage(
    model: KPCAModel,
    Z: Any,
    *,
    method: str = "auto",
    train: Any = None,
    start: Any = None,
    alpha: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 500,
    n_threads: int | None = None,
    progress: bool | Progress = False,
) -> Any:
    r"""Rows whose images in feature space are near the points that scores stand for.

    ``kpca_preimage(model, kpca_project(model, X))`` removes from the rows X what the components do not describe: noise.

    Parameters
    ----------
    model : KPCAModel
    Z : array_like (m, c)
        Scores, as ``kpca_project`` returns them.
    method : {"auto", "linear", "fixed-point", "gradient", "ridge"}
        "linear" is exact and for the linear kernel. "fixed-point" is for the Gaussian kernel: the iteration of Mika et
        al., safeguarded. "gradient" minimises the distance in feature space for any kernel that is smooth. "ridge"
        learns rows from scores by kernel ridge regression on known rows, and works for any kernel, also a precomputed
        one. "auto" takes "linear" and "fixed-point" for their kernels, else "ridge" where rows are known, else
        "gradient".
    train : array_like (n, d), optional
        Known rows to learn from and to start from, best the training rows. A model that holds its training rows needs
        none, and learns from those with their weights; each row given here counts once. For a precomputed kernel: rows
        that describe the N training rows, in their order.
    start : array_like (m, d), optional
        Where "fixed-point" and "gradient" start; for denoising, the noisy rows. By default the known row with the
        nearest scores, or the nearest pivot of a model that has pivots; without either, the mean of the training rows
        (Gaussian kernel).
    alpha : float, optional
        Regularisation of "ridge": sum |x - f(z)|^2 + alpha |f|^2, the sum being over the known rows, each times its
        weight. By default what predicts rows best that are left out, each with its weight and its copies.
    tol : float
        "fixed-point" and "gradient" end when a step is at most tol times the length over which the kernel changes
        (sigma).
    max_iter : int
        Largest number of steps.
    n_threads : int, optional
        Default: all processors. Results do not depend on it.
    progress : bool or callable

    Returns
    -------
    ndarray (m, d), or data frame
        float32 where both scores and model are float32, else float64. Always finite. Of a frame of scores, where the
        model knows names of columns, a frame with these and the index of the scores.

    Raises
    ------
    ValueError
        The method does not suit the kernel, or needs rows that the model does not hold; the text says which.

    Warns
    -----
    PreimageWarning
        Some searches did not converge; their rows are the best that were reached.

    Notes
    -----
    What is minimised is, with f(x) = <phi(x), P>,

    .. math:: \|\phi(x) - P\|^2 = k(x, x) - 2 f(x) + \|P\|^2.

    For the Gaussian kernel the minimum is a fixed point of

    .. math:: x \leftarrow x + \sigma^2 \, \frac{\nabla f(x)}{f(x)}
              = \frac{\sum_i w_i k(x, x_i) \, x_i}{\sum_i w_i k(x, x_i)}.

    The right side is that of Mika et al., for P = sum_i w_i phi(x_i); the left one needs no such expansion. Where P is
    the image of one row, the first step leads there from any start. The minimum may be a local one.

    Mika, Schoelkopf, Smola, Mueller, Scholz & Raetsch, Kernel PCA and de-noising in feature spaces, NIPS 1998;
    Schoelkopf et al., Input space versus feature space in kernel-based methods, IEEE Trans. Neural Networks 1999;
    Bakir, Weston & Schoelkopf, Learning to find pre-images, NIPS 2003.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> t = np.random.default_rng(0).uniform(0, np.pi, 400)
    >>> X = np.column_stack([np.cos(t), np.sin(t)])
    >>> model = fk.kpca(X, "gaussian", 6, sigma=0.5)
    >>> off = [[0.0, 1.2]]
    >>> x = fk.kpca_preimage(model, fk.kpca_project(model, off), start=off)
    >>> bool(abs(np.linalg.norm(x) - 1) < 0.05)
    True
    """
    check_choice(method, "method", METHODS)
    max_iter, tol = check_count(max_iter, "max_iter"), check_tol(tol)
    if alpha is not None and not 0.0 < (as_float(alpha) or 0.0) < np.inf:
        raise ValueError(f"alpha is {alpha!r}; a positive number is needed, or None for cross-validation")
    model = check_model(model)
    scores, dtype = _checked_scores(model, Z)
    kernel = guarded(model.kernel)
    threads = parallel.threads_for(kernel, n_threads)
    if start is not None and method in ("linear", "ridge"):
        raise ValueError(f"start= is for searches, and method={method!r} makes none; drop one")
    method = _method(method, model, train is not None, start is not None)
    if alpha is not None and method != "ridge":
        raise ValueError(
            f"alpha= is the regularisation of 'ridge', and {method!r} is taken here; drop it, or give method='ridge'"
        )
    with parallel.reporter(progress) as report, parallel.blas_threads():
        known = None if method == "linear" else _known_rows(model, kernel, train, threads)
        if method == "linear":
            result = linear_preimages(model, scores)
        elif method == "ridge":
            assert known is not None
            regression = fit_ridge(known.scores, known.rows, alpha=alpha, n_threads=threads, progress=report)
            result = regression.predict(scores, threads, report)
            if not kernel.by_number:  # else these are rows of a matrix, or objects
                result = model.in_units_of_rows(result)
        else:
            search = Search(model, kernel, known, _start(model, start, scores), tol, max_iter)
            result, warning = search.run(scores, threads, report)
            if warning:
                warn_caller(f"pre-images: {warning}", PreimageWarning)
    if not np.isfinite(result).all():
        row = int(np.argmin(np.isfinite(result).all(axis=1)))
        raise ValueError(
            f"the pre-image of row {row} of Z is not finite: its scores, or the rows that it is learned from, are too "
            "large; give scores like those of the training rows, and smaller rows"
        )
    return frame_of(result.astype(dtype, copy=False), Z, model.feature_names)


def kpca_denoise(
    model: KPCAModel,
    X: Any,
    *,
    method: str = "auto",
    train: Any = None,
    alpha: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 500,
    n_threads: int | None = None,
    progress: bool | Progress = False,
) -> Any:
    """Rows without noise: projected on the components of a model, and taken back to rows.

    Parameters
    ----------
    model : KPCAModel
        Best made of rows without noise.
    X : array_like (m, d)
        Noisy rows.
    method : {"auto", "linear", "fixed-point", "gradient", "ridge"}
        As for ``kpca_preimage``, like the following.
    train : array_like (n, d), optional
    alpha : float, optional
    tol : float
    max_iter : int
    n_threads : int, optional
    progress : bool or callable

    Returns
    -------
    ndarray (m, d), or data frame
        A frame of pandas or polars, or an array of xarray's, comes back as one, with its names and its index.

    Warns
    -----
    PreimageWarning
        As for ``kpca_preimage``.

    Notes
    -----
    For kernels that are not translation-invariant this is ``kpca_preimage(model, kpca_project(model, X), start=X)``.

    Under a translation-invariant kernel, noise n makes the scores of a row small. For the Gaussian, every k(x + n, x_i)
    is about k(x, x_i) times exp(-|n|^2 / (2 sigma^2)), because n is nearly at right angles to every x_i - x where there
    are many columns. This common factor says nothing about x. But the mean does not shrink with it, and so the
    projection is drawn towards the middle of all rows. Therefore the image is projected on the linear span of mean and
    components instead of the affine one, as in kernel PCA without centring (and as Mika et al. seem to have done).
    The projection is then scaled so that its share of the mean is one, and that point is taken back to a row.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0, 2 * np.pi, 400)
    >>> X = np.column_stack([np.cos(t), np.sin(t)])
    >>> model = fk.kpca(X, "gaussian", 12, sigma=0.6)
    >>> noisy = X + 0.1 * rng.standard_normal(X.shape)
    >>> clean = fk.kpca_denoise(model, noisy)
    >>> bool(np.abs(np.linalg.norm(clean, axis=1) - 1).mean() < 0.02)
    True
    """
    check_choice(method, "method", METHODS)
    model, X = check_model(model), run_query(X)
    kernel = guarded(model.kernel)
    if kernel.by_number:
        raise ValueError(
            "a precomputed matrix, or a list of objects, holds no rows to remove noise from; kpca_preimage(model, Z, "
            "train=...) learns rows from scores"
        )
    given = new_rows(model, X, purpose="kpca_denoise")
    threads = parallel.threads_for(kernel, n_threads)
    quiet = np.errstate(over="ignore", invalid="ignore")  # what overflows is refused
    with parallel.blas_threads(), quiet:
        Z = finite(_scores_in_span(model, kernel, given.rows, threads), "the projection")
    options: dict[str, Any] = {"method": method, "train": train, "alpha": alpha, "tol": tol, "max_iter": max_iter}
    start = None if method in ("linear", "ridge") else X
    rows = kpca_preimage(model, Z, start=start, n_threads=n_threads, progress=progress, **options)
    return like_given(rows.astype(given.dtype, copy=False), X)


# ----------------------------------------------------------------------------------------------------------------------


def _checked_scores(model: KPCAModel, Z: Any) -> tuple[np.ndarray, np.dtype]:
    rows = as_rows(Z, name="Z", purpose="kpca_preimage")
    check_finite(rows, name="Z", purpose="kpca_preimage")
    if rows.n_features != model.n_components:
        raise ValueError(
            f"Z has {rows.n_features} columns, and the model has {model.n_components} components; give scores, as "
            "kpca_project(model, X) returns them"
        )
    return rows.all(), float_type(rows.dtype, model.dtype)


def _method(method: str, model: KPCAModel, train_given: bool, start_given: bool) -> str:
    """The method to use, or an error that says why it cannot be the one asked for."""
    kernel = model.kernel
    precomputed = kernel.by_number
    fixed_point = kernel.fixed_point_width() is not None
    held = model.projector.grows_with_n and not precomputed
    if method == "auto":
        if kernel.is_linear:
            method = "linear"
        elif fixed_point:
            method = "fixed-point"
        elif held or precomputed or train_given:
            method = "ridge"
        else:
            method = "gradient"
    if method == "linear" and not kernel.is_linear:
        raise ValueError(f"method='linear' is for the linear kernel; {kernel!r} needs 'ridge' or 'gradient'")
    if method == "fixed-point" and not fixed_point:
        raise ValueError(f"method='fixed-point' is for the Gaussian kernel; {kernel!r} needs 'ridge' or 'gradient'")
    if method == "gradient" and precomputed:
        raise ValueError(
            "a precomputed kernel knows no rows to move; method='ridge' learns from rows given with train="
        )
    if method == "ridge" and not held and not train_given:
        raise ValueError(
            "method='ridge' learns from rows, and this model holds none"
            + (
                " (its kernel is on a matrix or on objects); give train=, one row for each of the training rows, in "
                "their order"
                if precomputed
                else " (it is a feature map); give train=, the training rows or others like them"
            )
        )
    may_start = model.projector.landmarks is not None or fixed_point or train_given or start_given
    if method == "gradient" and not may_start:
        raise ValueError(
            f"{kernel!r} needs rows to start from or to learn from, and this model holds none (it is a feature map); "
            "give train=, the training rows or others like them (or start=, one row for each row of Z)"
        )
    return method


def _known_rows(model: KPCAModel, kernel: Kernel, train: Any, n_threads: int) -> Known | None:
    """Rows to start or to learn from, with their scores: those given, or held by the model, or its pivots."""
    if train is not None and kernel.by_number:
        rows = as_rows(train, name="train", purpose="kpca_preimage")
        check_finite(rows, name="train", purpose="kpca_preimage")
        if rows.n_samples != model.n_samples:
            raise ValueError(
                f"train has {rows.n_samples} rows, and the model was made of {model.n_samples}; for a "
                "precomputed kernel it describes the training rows, one by one"
            )
        return _training(model, rows)
    if train is None and model.projector.grows_with_n:
        return _training(model, Rows(model.projector.landmarks))
    held = known_rows(model, train, "kpca_preimage")
    return None if held is None else Known(held, scores_of(model.projector, kernel, held, n_threads))


def _training(model: KPCAModel, rows: Rows) -> Known:
    """The training rows with their scores, without a pass over the kernel: score = coeff eigenvalues / weight."""
    rows, present = counted(model, rows)
    coeff = model.projector.coeff
    values = model.score if coeff is None else coeff
    scores = np.asarray(values if present is None else values[present], dtype=np.float64)
    if coeff is not None:
        scores = scores * model.eigenvalues
        if rows.weights is not None:
            scores = scores / rows.weights[:, None]
    return Known(rows, scores)


def _scores_in_span(model: KPCAModel, kernel: Kernel, rows: Rows, n_threads: int) -> np.ndarray:
    """Scores of rows projected on the linear span of mean and components, scaled so that the mean has weight one.

    With b = W' mean and a = (W'W)^(-1) b, the part of the mean at right angles to the components has the squared length
    |mean|^2 - a.b. The image phi(x) has t times that part, t = (<phi(x), mean> - (z + b).a) / (|mean|^2 - a.b). The
    projection is t mean + W (W'W)^(-1) (z + (1 - t) b), and divided by t it is that of the scores
    z / t + (1 / t - 1) b.
    """
    if kernel.translation != "kernel":
        return scores_of(model.projector, kernel, rows, n_threads)
    products = model.projector.products(kernel, rows, n_threads)
    b, square = model.projector.of_the_mean()
    inside, along = products[:, :-1], products[:, -1]  # W' phi(x) and <phi(x), mean>
    a = model.projector.mean_in_span
    outside = square - float(a @ b)
    if not outside > 1e-10 * square:
        return inside - b
    # not divided by a share that may be rounding alone, or the residual of a map
    least = max(10.0 * np.sqrt(model.mean_residual), 1e-12)
    share = np.maximum((along - inside @ a) / outside, least)[:, None]
    return (inside - b) / share + (1.0 / share - 1.0) * b


def _start(model: KPCAModel, start: Any, Z: np.ndarray) -> Rows | None:
    if start is None:
        return None
    rows = new_rows(model, start, name="start", purpose="kpca_preimage").rows
    if rows.n_samples != len(Z):
        raise ValueError(f"start has {rows.n_samples} rows and Z has {len(Z)}; one for each is needed")
    return rows


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused where all pre-images are known
def linear_preimages(model: KPCAModel, Z: np.ndarray) -> np.ndarray:
    """P itself: the kernel is linear, so feature space is input space."""
    projector = model.projector
    if projector.landmarks is not None:
        sums = projector.expansion().T @ np.asarray(projector.landmarks, dtype=np.float64)
        return model.in_units_of_rows(sums[-1] + Z @ sums[:-1])
    features = feature_projector(model)
    P = features.mean + Z @ features.duals.T
    M = features.map.features(np.eye(model.n_features))  # phi(x) = x M
    return model.in_units_of_rows(np.linalg.lstsq(M.T, P.T, rcond=None)[0].T)
