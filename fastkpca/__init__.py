"""Fast kernel principal component analysis, with certified eigenvalues.

A newcomer's map (each layer imports only what stands below it; tests/test_layers.py holds the imports to it)::

    6  __init__, cli, plot, demo           faces: wording and shapes for one kind of user each
       testing                             checks for the authors of kernels
       datafiles                           tables from csv, npy, npz and mat files, for the command line
    5  _kpca                               the story: validate, resolve, plan, solve, certify, return
       _routes                             its middle: dense, features, krylov, one function each
       _pca                                the linear case
       _gram, model                        gram() and features(); what kpca returns, its projectors, save and load
       state                               the same files for what other methods return
       _mat                                models for MATLAB and Octave
       preimage, monitor                   from scores back to rows (_descent, _ridge); SPE, T^2 and control limits
    4  _plan, moments, krylov, certificate what runs and what it costs; one pass; eigenvalues; intervals
    3  operators, kernels/                 Gram and feature matrices as LinearOperators; kernels and their registry
    2  features/, summation/               feature maps; products
    1  protocol, rows                      what a kernel is; where rows come from
       plugins, methods                    names that other distributions bring; methods by name
       execute, validate, files, errors    threads and fixed sums; checks of input; model files; errors and warnings
       _room                               what RLIMIT_AS leaves for them
       stored                              values from a model file, checked one by one
    0  _core/*.pyx                         compiled loops: arrays in, arrays out
"""

try:
    from .base import room as _room

    _room.check_import()  # before numpy
    from ._core import moments as _moments  # noqa: F401
except ImportError as _error:
    if not (_error.name or "").startswith("fastkpca._core"):
        raise
    raise ImportError(
        f"fastkpca is not built in {__path__[0]}: its compiled modules are missing. This is the source tree; install "
        "the package with `pip install .` from the folder of pyproject.toml, then start Python in another folder "
        "(tests: plain `pytest`, not `python -m pytest`, which puts the source tree first). To work on the sources, "
        "`pip install --no-build-isolation -e .` makes the tree itself importable."
    ) from _error

from importlib import metadata as _metadata

from .base.methods import get_method, list_methods
from .fit.gram import features, gram
from .fit.kpca import kpca, kpca_project, plan
from .fit.merge import kpca_merge, kpca_update
from .fit.pca import pca
from .kernels import get_kernel, list_kernels, register_kernel
from .model.matlab import export_mat
from .model.novelty import kpca_limits, kpca_spe, kpca_t2
from .model.preimage import kpca_denoise, kpca_preimage
from .model.result import KPCAModel, load, save

__version__ = _metadata.version("fastkpca")

__all__ = [
    "KPCAModel",
    "__version__",
    "export_mat",
    "features",
    "get_kernel",
    "get_method",
    "gram",
    "kpca",
    "kpca_denoise",
    "kpca_limits",
    "kpca_merge",
    "kpca_preimage",
    "kpca_project",
    "kpca_spe",
    "kpca_t2",
    "kpca_update",
    "list_kernels",
    "list_methods",
    "load",
    "pca",
    "plan",
    "register_kernel",
    "save",
]
