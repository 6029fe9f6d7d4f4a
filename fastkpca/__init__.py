"""Fast kernel principal component analysis, with certified eigenvalues.

The layers, from the top down. Each package imports only packages of lower layers, and within a package the imports have
no cycles (tests/project/test_layers.py holds the imports, and this map, to the tree)::

    __main__   python -m fastkpca
    cli        the command line; its demo
    sklearn    scikit-learn's interface
    plot       pictures of models and plans
    fit        from rows to a model: check, plan, run routes until the intervals meet tol; gram() and features()
    state      model files for what other methods return
    model      the fitted model: project, save, pre-images, novelty, export
    methods    what the authors of methods build on: rows, arguments, systems, files
    testing    checks for the authors of kernels
    kernels    kernels, their registry, and the guard around those from outside
    solve      eigenvalues and linear systems, with bounds on their errors
    products   products with kernel matrices that are never formed
    maps       feature maps: K = Phi Phi' + (positive semidefinite)
    rows       rows of a user's data from arrays, files and other sources: checked, read tile by tile
    base       the protocol, threads, files, names that other distributions bring
    _core      compiled loops: arrays in, arrays out
    errors     errors and warnings

``maps`` and ``products`` both approximate K, and are two packages. A map makes features of single rows and is stored in
a model; a product multiplies all rows and ends with the run. Only ``fit`` weighs one against the other.

Words and symbols of all packages; docs/theory.md has the statements and proofs.

- K is the n x n kernel matrix k(x_i, x_j), H = I - 1 1'/n, and A = Kc = H K H the centred one. Its eigenvalues are
  lambda_1 >= lambda_2 >= ..., and c of them are wanted. With weights of the rows, H and K are the weighted ones.
- A feature map phi with D features has K = Phi Phi' + E. E, its residual, is positive semidefinite up to a ``defect``;
  ``fit`` writes R. The D x D matrix Phi' H Phi is the (second) moment.
- A pass is one evaluation of all kernel values, or one reading of all rows. A product (a ``Summation``, offered by
  ``Kernel.summations``) multiplies K by columns.
- The routes of a fit are "dense" (LAPACK), "features" (a pass for the moment) and "krylov" (block Krylov by products).
  An offer is a feature map or a product of a kernel with its predicted cost; a plan compares the routes' candidates.
- Ritz vectors V have the values theta and the residual R = A V - V diag(theta). P = I - V V' projects onto their
  complement, and mu is an upper bound on lambda_max(P A P). A proof is a method that computes such a mu.
- A search is the float32 phase of a solver; the ``truncated`` matrix B is K without its small values (sparse).
- u is the unit roundoff; |.| of a matrix is the spectral norm, |.|_F Frobenius's.
"""

import os as _os
import signal as _signal
import sys as _sys

if _sys.argv[:1] == ["-m"] or _os.path.basename("".join(_sys.argv[:1])) == "fastkpca":
    # the command: Ctrl-C while modules are imported ends it as it does later (numpy makes an ImportError of it)
    def _interrupted(*_: object) -> None:
        _os.write(2, b"fastkpca: error: interrupted\n")
        _os._exit(130)

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _interrupted)

try:
    from ._core import moments as _moments  # noqa: F401
except ImportError as _error:
    if not (_error.name or "").startswith("fastkpca._core"):
        raise
    raise ImportError(
        f"fastkpca is not built in {__path__[0]}: its compiled modules are missing. This is the source tree; install "
        "the package with `pip install .` from the folder of pyproject.toml; where it is installed, start Python with "
        "`python -P`, or in another folder (tests: plain `pytest`, not `python -m pytest`, which puts the source tree "
        "first). To work on the sources, "
        "`pip install --no-build-isolation -e .` makes the tree itself importable."
    ) from _error

from importlib import import_module as _import_module
from importlib import metadata as _metadata
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .base.methods import get_method, list_methods
from .fit.baseline import kpca_baseline
from .fit.certify import certify
from .fit.gram import features, gram
from .fit.kpca import kpca, plan
from .fit.merge import kpca_merge
from .fit.pca import pca
from .fit.population import kpca_population
from .fit.select import kpca_select
from .fit.stream import kpca_subtract, kpca_update
from .kernels import get_kernel, list_kernels, on_columns, register_kernel
from .model.matlab import export_mat
from .model.monitoring.contributions import kpca_contributions
from .model.monitoring.fill import kpca_fill
from .model.monitoring.health import kpca_health
from .model.monitoring.monitor import kpca_monitor
from .model.monitoring.novelty import kpca_limits, kpca_spe, kpca_t2
from .model.preimages.preimage import kpca_denoise, kpca_preimage
from .model.project import kpca_project
from .model.result import KPCAModel, load, save
from .model.statistics.importance import kpca_importance
from .model.statistics.uncertainty import kpca_uncertainty

if not _TYPE_CHECKING:

    def __getattr__(name: str):
        """Submodules are imported when they are first asked for; other libraries' names say what they are here."""
        if name in ("methods", "plot", "sklearn", "state", "testing"):
            return _import_module(f"fastkpca.{name}")
        text = f"fastkpca has no attribute {name!r}"
        if name in ("KernelPCA", "Nystroem"):
            text += f"; scikit-learn's class is fastkpca.sklearn.{name}"
        elif name.lower() in ("kpca", "pca"):
            text += f"; the function is fastkpca.{name.lower()}"
        raise AttributeError(text, name=name, obj=_sys.modules[__name__])  # Python then says what may be meant


__version__ = _metadata.version("fastkpca")

__all__ = [
    "KPCAModel",
    "__version__",
    "certify",
    "export_mat",
    "features",
    "get_kernel",
    "get_method",
    "gram",
    "kpca",
    "kpca_baseline",
    "kpca_contributions",
    "kpca_denoise",
    "kpca_fill",
    "kpca_health",
    "kpca_importance",
    "kpca_limits",
    "kpca_merge",
    "kpca_monitor",
    "kpca_population",
    "kpca_preimage",
    "kpca_project",
    "kpca_select",
    "kpca_spe",
    "kpca_subtract",
    "kpca_t2",
    "kpca_uncertainty",
    "kpca_update",
    "list_kernels",
    "list_methods",
    "load",
    "on_columns",
    "pca",
    "plan",
    "register_kernel",
    "save",
]
