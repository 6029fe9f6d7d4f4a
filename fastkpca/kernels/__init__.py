"""Kernels: found by name, and the classes that authors of kernels build on.

``from fastkpca.kernels import Kernel`` is all that most plugins need. Plugins may import everything in ``__all__`` here
(what they promise is written in ``fastkpca.base.protocol``), and from ``fastkpca.base.rounding`` (units for bounds),
``fastkpca.base.parallel`` (loops over tiles) and ``fastkpca.rows.view`` (``Rows``, which products are built on).

Here live the kernels, one file each, how they are found, and what stands between the core and those from outside.
Nothing here fits or solves, and of the rows it reads a sample.

==================  ==================================================================================
``registry``        names: the built-in table, the entry-point group ``fastkpca.kernels``, a session's own
``contract``        what users declare of a kernel, held against its values on some rows
``stored``          kernels in model files
``guard``           stands between the core and kernels, maps and products from outside
``given``           the kernel that a user gave, and names that other libraries use
``kernel``          ``Kernel``, and the kernels that its operators make, whose rules are in the next three
``combined``        sums, scalings and products of kernels
``columns``         kernels on groups of columns, and with a width for each column
``objects``         kernels on lists of objects
``adapters``        functions on tiles, and objects with ``block``, as kernels
``parameters``      checks of parameters that several kernels share
==================  ==================================================================================

and one file a kernel. Those are imported when a kernel is asked for, not before.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..base.protocol import Cost, FeatureMap, Moments, Offer, Summary, Summation
from ..errors import KernelParameterError
from .adapters import CallableKernel, ObjectKernel
from .given import given_kernel
from .guard import guarded, naming
from .kernel import ColumnKernel, Kernel, ProductKernel, ScaledKernel, SumKernel
from .registry import (
    BUILTINS,
    KernelEntry,
    KernelTable,
    get_kernel,
    list_kernels,
    on_columns,
    register_kernel,
)
from .stored import kernel_from_state, kernel_state

__all__ = [
    "CallableKernel",
    "ColumnKernel",
    "Cost",
    "FeatureMap",
    "Kernel",
    "KernelEntry",
    "KernelParameterError",
    "KernelTable",
    "Moments",
    "ObjectKernel",
    "Offer",
    "ProductKernel",
    "ScaledKernel",
    "SumKernel",
    "Summary",
    "Summation",
    "get_kernel",
    "given_kernel",
    "guarded",
    "kernel_from_state",
    "kernel_state",
    "list_kernels",
    "naming",
    "on_columns",
    "register_kernel",
]

_CLASSES = {name: module for module, name in (entry.value.split(":") for entry in BUILTINS.values())}


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(import_module(_CLASSES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_CLASSES])
