"""Models for MATLAB and GNU Octave: one .mat file with everything that ``docs/fastkpca_project.m`` projects by."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ..base import parallel
from ..base.atomic import atomic
from ..kernels import kernel_state
from .preimages.preimage import linear_preimages
from .result import SPECTRUM, KPCAModel, check_model

MAX_ARRAY_BYTES = np.iinfo(np.int32).max
"""Bytes that an array may take in the format (v5, the newest that scipy writes)."""
_one_at_a_time = threading.Lock()
"""scipy keeps the length of the variable that it writes in one place for all threads, which then write each other's."""


def export_mat(model: KPCAModel, path: Any, *, overwrite: bool = False) -> None:
    """Write a model to a .mat file for MATLAB or GNU Octave.

    Variables as MATLAB's ``pca`` calls them, rows being observations there too: ``coeff`` (N, c), ``score`` (N, c),
    ``latent`` (c, 1), ``tsquared`` (N, 1), ``explained`` (c, 1); also ``eigenvalues``, ``eigenvalue_bounds``,
    ``bound_kind``, ``failure_probability``, ``angle_bounds``, ``clusters``, ``total_variance``, ``n_samples``,
    ``shift`` (1, d), ``kernel`` (a struct: its name and parameters) and ``projector`` (a struct), by which
    ``fastkpca_project.m`` of the documentation projects new rows. For the linear kernel also ``loadings`` (d, c), which
    are ``coeff`` of MATLAB's ``pca``, and ``mu`` (1, d): scores are ``(Xnew - mu) * loadings``. Of a model that keeps
    limits also ``limits`` (a struct: ``t2``, ``spe``, ``confidence``, ``joint`` and how they were made). Everything is
    double.

    Parameters
    ----------
    model : KPCAModel
        Without scores (``return_scores=False``), ``score`` and ``tsquared`` are left out; so is ``coeff`` where it is
        computed from them.
    path : str or Path
        The file is written completely or not at all.
    overwrite : bool
        False: an existing file is left alone and FileExistsError raised.

    Raises
    ------
    ValueError
        The kernel has no name, is of objects, on some columns or with a width for each. Its feature map is from another
        distribution; or an array is too large for the format.

    See Also
    --------
    save : for Python.
    """
    model = check_model(model)
    from scipy.io import savemat  # here, because it takes milliseconds to import

    values: dict[str, Any] = {
        **{name: getattr(model, name) for name in (*SPECTRUM, "latent", "explained")},
        "bound_kind": model.bound_kind,
        "failure_probability": model.failure_probability,
        "clusters": model.clusters + 1.0,
        "total_variance": model.total_variance,
        "n_samples": float(model.n_samples),
        "shift": model.shift[None, :],
        "kernel": _kernel(kernel_state(model.kernel)),
        "projector": model.projector.formula(),
    }
    if model.limits is not None:
        values["limits"] = model.limits.state()[0]
    if model.spe_components is not None:
        values["spe_components"] = model.spe_components
    if model.scale is not None:
        values["scale"] = model.scale[None, :]
    if model.kernel.is_linear:
        values |= _loadings(model)
    if model._score is not None:
        values |= {"score": model.score, "tsquared": model.tsquared}
    if model._score is not None or model.projector.coeff is not None:
        values["coeff"] = model.coeff
    values = _doubles(values, "")
    try:
        with atomic(path, overwrite=overwrite) as file, parallel.without_fork(), _one_at_a_time:
            savemat(file, values, format="5", long_field_names=True, do_compression=True, oned_as="column")
    except FileExistsError as error:
        raise FileExistsError(f"{error}; export_mat(..., overwrite=True) replaces it") from None


def _loadings(model: KPCAModel) -> dict[str, np.ndarray]:
    """``loadings`` (d, c) and ``mu`` (1, d) of a linear kernel, in the units of X."""
    rows = linear_preimages(model, np.vstack([np.zeros(model.n_components), np.eye(model.n_components)]))
    axes = (rows[1:] - rows[0]).T
    if model.scale is not None:  # once for the score's own units, once for those of X
        axes = axes / model.scale[:, None] ** 2
    return {"loadings": axes, "mu": rows[:1]}


def _doubles(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: _doubles(item, f"{path}.{key}" if path else key) for key, item in value.items()}
    if isinstance(value, list):  # a cell array
        cells = np.empty(len(value), dtype=object)
        cells[:] = [_doubles(item, f"{path}{{{i + 1}}}") for i, item in enumerate(value)]
        return cells
    if isinstance(value, np.ndarray):
        if 8 * value.size > MAX_ARRAY_BYTES:
            raise ValueError(
                f"{path} takes {8 * value.size:.3g} bytes, more than the 2 GB that a .mat file of version 5 holds; a "
                "model by features (method='features'), without scores (return_scores=False), is smaller"
            )
        return value.astype(np.float64)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _kernel(state: dict) -> dict:
    for word in ("sum", "product"):
        if word in state:
            return {"name": word, "parts": [_kernel(part) for part in state[word]]}
    if "factor" in state:
        return {"name": "scaled", "factor": state["factor"], "parts": [_kernel(state["kernel"])]}
    if "columns" in state:
        raise ValueError(
            "a .mat file has no place for a kernel on some columns, or with a width for each: select the columns, or "
            "divide them by the widths, before the fit, as in kpca(X[:, columns] / widths, 'gaussian', sigma=1)"
        )
    if "objects" in state:
        raise ValueError("a .mat file has no place for a kernel of objects, which MATLAB could not compute; use save")
    parameters = {key: value for key, value in state["parameters"].items() if value is not None}
    return {"name": state["name"], "parameters": parameters or {"none": 0.0}}
