"""Model files for what the methods return, through ``fastkpca.state``: JSON and raw arrays under one checksum."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from fastkpca.errors import ModelFileError
from fastkpca.methods import check_list
from fastkpca.state import load_state, save_state

from .cca import CCAModel
from .clustering import KMeansModel
from .components import RegressionModel
from .diffusion import DiffusionModel, SpectralModel
from .kbda import KBDAModel
from .kica import KICAModel
from .klda import KLDAModel
from .logistic import LogisticModel
from .methods.base import FittedMethod
from .methods.permutation import PermutationTest
from .perceptron import PerceptronModel
from .pls import PLSModel
from .ridge import RidgeModel

__all__ = ["load", "save"]

MODELS: dict[str, type[FittedMethod]] = {
    cls.__name__: cls
    for cls in (
        *(KLDAModel, KBDAModel, KICAModel, PerceptronModel, LogisticModel, RegressionModel, KMeansModel),
        *(SpectralModel, DiffusionModel, CCAModel, PLSModel, PermutationTest, RidgeModel),
    )
}
KIND = "kernels_contrib:"
DISTRIBUTION = "fastkpca-kernels-contrib"


def save(model: Any, path: Any, *, overwrite: bool = False) -> None:
    """Write what a function of this package returned to a file.

    Values of the training rows (``gamma``, ``alpha``, ``sources``, ``labels``) are left out where prediction does not
    need them.

    Parameters
    ----------
    model : object
        What a method of this package returned: ``klda``, ``kernel_logistic``, ``kernel_kmeans``, ...
    path : str or Path
    overwrite : bool
        False: an existing file is left alone.

    Raises
    ------
    FileExistsError
        ``overwrite`` is False and the file is there.
    TypeError
        Not a model of this package, or its labels are neither numbers nor strings nor truth values.
    ValueError
        The kernel has no registered name under which ``load`` could find it.
    """
    if type(model) not in MODELS.values():
        raise TypeError(f"model is a {type(model).__name__}; give what klda(), kernel_logistic(), ... returned")
    save_state(path, KIND + type(model).__name__, model.state(), overwrite=overwrite)


def load(path: Any, *, plugins: bool | str | Collection[str] = ()) -> Any:
    """Read a model that ``save`` wrote.

    Parameters
    ----------
    path : str or Path
    plugins : bool, str or collection of str
        Kernels of which other distributions than this one may be imported, as for ``fastkpca.load``.

    Returns
    -------
    object
        The object, of the type that was saved.

    Raises
    ------
    ModelFileError
        The file is truncated, altered, of an unknown version, or none of these models; or its kernel is not allowed.
    """
    if not isinstance(plugins, (bool, np.bool_)):
        need = "True, False, or a list of distributions"
        plugins = [DISTRIBUTION, *([plugins] if isinstance(plugins, str) else check_list(plugins, "plugins", need))]
    # the kernels of this package are always allowed
    kind, values = load_state(path, plugins=plugins or [DISTRIBUTION])
    cls = MODELS.get(kind.removeprefix(KIND)) if kind.startswith(KIND) else None
    if cls is None:
        raise ModelFileError(f"{path} holds a {kind!r}, not a model of kernels_contrib")
    try:
        return cls.from_state(values, f"a {cls.__name__}", {})
    except ModelFileError as error:
        raise ModelFileError(f"{path} is not a whole model of kernels_contrib: {error}") from error
