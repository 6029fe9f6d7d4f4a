"""The base of every fitted method: what a model is checked for, how it shows itself, and new rows through it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from fastkpca.kernels import Kernel

from . import stored
from .functions import KernelFunction
from .stored import Stored


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedMethod(Stored):
    """The result of a method; its fields describe its file (``stored``)."""

    made_by: ClassVar[str]
    """The functions that return it, for the texts of errors."""

    @classmethod
    def of(cls, model: Any) -> Self:
        """The model, if it is one of these."""
        if not isinstance(model, cls):
            raise TypeError(f"model is a {type(model).__name__}; give what {cls.made_by} returned")
        return model

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns of the training rows, where they had names; new rows must have the same ones."""
        function = vars(self).get("function")
        return vars(self).get("names") if function is None else function.feature_names

    def facts(self) -> list[str]:
        """Facts that ``repr`` lists."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self.facts())}>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KernelMethod(FittedMethod):
    """Such a result of one kernel, with every parameter resolved, and what the fit came to."""

    kernel: Kernel = field(metadata=stored.object_of(Kernel))
    info: dict[str, Any] = field(metadata=stored.info("method"))


class Projection(FittedMethod):
    """A model that gives coordinates of new rows."""

    made_by = "klda(), kbda(), kica() or diffusion_map()"
    function: KernelFunction

    def project(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As the function ``project``."""
        return self.function(X, n_threads)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Regressor(FittedMethod):
    """A model whose function gives numbers; ``single``: the targets were given as one vector."""

    function: KernelFunction = field(metadata={})
    single: bool = field(metadata=stored.flag())

    def predict(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """The targets at new rows.

        Parameters
        ----------
        X : array_like (m, d)
            New rows, with the columns of the training rows; for a precomputed kernel the (m, N) matrix between new and
            training rows.
        n_threads : int, optional
            Default: all processors.

        Returns
        -------
        ndarray (m,) or (m, k)
            As the targets were given.
        """
        return self.as_given(self.function(X, n_threads))

    def as_given(self, values: np.ndarray) -> np.ndarray:
        """One column as a vector, where the targets were one."""
        return values[:, 0] if self.single else values


class Classifier(FittedMethod):
    """A model whose function decides between classes: one column for two (positive: the second), else one each."""

    made_by = "kernel_perceptron() or kernel_logistic()"
    classes: np.ndarray
    function: KernelFunction

    def predict(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As the function ``predict``."""
        values = self.function(X, n_threads)
        if values.shape[1] == 1:
            return self.classes[(values[:, 0] > 0).astype(int)]
        return self.classes[np.argmax(values, axis=1)]


def project(model: Projection, X: Any, *, n_threads: int | None = None) -> np.ndarray:
    """Coordinates of new rows: along discriminant directions, independent components, or of a diffusion map.

    Coordinates of ``klda`` are measured from the mean of all training rows, those of ``kbda`` from the mean of the
    positive ones.

    Parameters
    ----------
    model : KLDAModel, KBDAModel, KICAModel or DiffusionModel
    X : array_like (m, d)
        New rows, with the columns of the training rows; for a precomputed kernel the (m, N) matrix between new and
        training rows.
    n_threads : int, optional
        Default: all processors.

    Returns
    -------
    ndarray (m, c)
    """
    return Projection.of(model).project(X, n_threads=n_threads)


def predict(model: Classifier, X: Any, *, n_threads: int | None = None) -> np.ndarray:
    """Labels of new rows: the class of the largest decision, or of the largest probability.

    Parameters
    ----------
    model : PerceptronModel or LogisticModel
    X : array_like (m, d)
        New rows, with the columns of the training rows; for a precomputed kernel the (m, N) matrix between new and
        training rows.
    n_threads : int, optional
        Default: all processors.

    Returns
    -------
    ndarray (m,)
        Of the type of the labels.
    """
    return Classifier.of(model).predict(X, n_threads=n_threads)
