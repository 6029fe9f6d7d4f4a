"""Advice of pictures: (a call that fails, words of its message, the call after that)."""

from __future__ import annotations

import numpy as np
from advice import SPARE, Case, X, Y, fitted

import fastkpca as fk
from fastkpca import plot

TWO = fk.kpca(X[:, :2], "polynomial", 2, method="features")
"""A model that does not hold its rows, of two columns."""


def of_map():
    return fk.kpca(X, "polynomial", 2, method="features")


def limits():
    return fk.kpca_limits(fitted(), SPARE, confidence=0.9)


def t2(n=5):
    return fk.kpca_t2(fitted(), X[:n])


def spe(n=5):
    return fk.kpca_spe(fitted(), X[:n])


def budgeted():
    return fitted(max_features=40)


def uncertainty(model=None):
    return fk.kpca_uncertainty(model or fitted(), X, n_bootstrap=100)


def scores(**options):
    return plot.scores(fitted(3), **options)


NEW = np.zeros((3, 3))
WORDS = np.array(["a", "b"])[Y]
SPAN = ((-1.0, 1.0), (-1.0, 1.0))
CASES: dict[str, Case] = {
    "no component": (
        lambda: plot.contours(fitted(), X, component=[]),
        "give one or more",
        lambda: plot.contours(fitted(), X, component=[0]),
    ),
    "limits the wrong way": (
        lambda: plot.contours(fitted(), X, limits=((1, -1), (0, 1))),
        "give ((low, high), (low, high))",
        lambda: plot.contours(fitted(), X, limits=SPAN),
    ),
    "no rows to span": (
        lambda: plot.contours(of_map()),
        "give X, or limits and at",
        lambda: [plot.contours(of_map(), X), plot.contours(of_map(), limits=SPAN, at=np.zeros(4))],
    ),
    "no values of other inputs": (
        lambda: plot.contours(of_map(), limits=SPAN),
        "give X, or the values of the other inputs (at)",
        lambda: [plot.contours(of_map(), X, limits=SPAN), plot.contours(of_map(), limits=SPAN, at=np.zeros(4))],
    ),
    "no axes": (
        lambda: plot.scree(fitted(), ax=3),
        "as figure.subplots() makes them",
        lambda: plot.scree(fitted(), ax=plot.scree(fitted()).figure.subplots()),
    ),
    "no colours": (
        lambda: plot.scores(fitted(), X[:, 0], cmap="x"),
        "give a name that matplotlib.colormaps lists, or a Colormap",
        lambda: [plot.scores(fitted(), X[:, 0], cmap=x) for x in ("viridis", colormap("viridis"))],
    ),
    "no directions": (
        lambda: plot.biplot(fitted(), fk.kpca_importance(fitted(), X, method="permutation", rng=0)),
        "give kpca_importance(model, X, method='gradient')",
        lambda: plot.biplot(fitted(), fk.kpca_importance(fitted(), X, method="gradient")),
    ),
    "importance of another model": (
        lambda: plot.biplot(fitted(), fk.kpca_importance(fitted(3), X)),
        "give kpca_importance of this model",
        lambda: plot.biplot(fitted(), fk.kpca_importance(fitted(), X)),
    ),
    "statistics of other rows in a chart": (
        lambda: plot.monitor(limits(), t2(5), spe=spe(4)),
        "give both of the same rows",
        lambda: plot.monitor(limits(), t2(5), spe=spe(5)),
    ),
    "names of other rows": (
        lambda: plot.influence(limits(), t2(), spe(), names=["a"]),
        "give one for each",
        lambda: plot.influence(limits(), t2(), spe(), names=list("abcde")),
    ),
    "no contributions": (
        lambda: plot.contributions(3),
        "give what kpca_contributions(model, X) returned",
        lambda: plot.contributions(fk.kpca_contributions(fitted(), X[:3])),
    ),
    "no rows in a chart": (
        lambda: plot.monitor(limits(), []),
        "give one value for each row",
        lambda: plot.monitor(limits(), t2()),
    ),
    "names of other times": (
        lambda: plot.monitor(limits(), t2(), x=["a"]),
        "give one number, time or name for each of 5 rows",
        lambda: [plot.monitor(limits(), t2(), x=x) for x in (range(5), list("abcde"), np.arange(5).astype("M8[s]"))],
    ),
    "a time is missing": (
        lambda: plot.monitor(limits(), t2(), x=["a", None, "c", "d", "e"]),
        "give one for each of 5 rows",
        lambda: plot.monitor(limits(), t2(), x=list("abcde")),
    ),
    "tol of zero in a picture": (
        lambda: plot.accuracy([fitted()], tol=[0.0]),
        "give one positive number for each of the 1 models",
        lambda: plot.accuracy([fitted()], tol=[1e-6]),
    ),
    "models without tol": (
        lambda: plot.accuracy([budgeted()]),
        "give tol=, one a model",
        lambda: plot.accuracy([budgeted()], tol=[1e-6]),
    ),
    "a reference that is short": (
        lambda: plot.accuracy([fitted()], reference=[1.0]),
        "give the 2 largest eigenvalues, descending",
        lambda: plot.accuracy([fitted()], reference=fitted().eigenvalues + 1e-9),
    ),
    "no plan": (
        lambda: plot.candidates(3),
        "give what fastkpca.plan() or kpca() returned",
        lambda: [plot.candidates(fk.plan(X, "gaussian", 2, sigma=2.0)), plot.candidates(fitted())],
    ),
    "four components": (
        lambda: scores(components=(0, 1, 2, 0)),
        "of them, as in (0, 1)",
        lambda: scores(components=(0, 1)),
    ),
    "density and labels": (
        lambda: scores(labels=Y, density=True),
        "leave out labels=, or density=",
        lambda: [scores(labels=Y), scores(density=True)],
    ),
    "ellipses of numbers": (
        lambda: scores(labels=X[:, 0], ellipses=0.9),
        "give labels= that are words or few whole numbers",
        lambda: [scores(labels=Y, ellipses=0.9), scores(labels=WORDS, ellipses=0.9)],
    ),
    "labels of new rows alone": (
        lambda: scores(new=NEW, new_labels=[1, 2, 3]),
        "give both or neither",
        lambda: [scores(new=NEW, labels=Y, new_labels=[0, 1, 0]), scores(new=NEW)],
    ),
    "labels of no rows": (
        lambda: scores(labels=Y, new_labels=[1]),
        "give both or neither",
        lambda: [scores(labels=Y, new=NEW, new_labels=[0, 1, 0]), scores(labels=Y)],
    ),
    "labels of two kinds": (
        lambda: scores(labels=Y, new=NEW, new_labels=["a", "b", "a"]),
        "give both of one kind",
        lambda: scores(labels=Y, new=NEW, new_labels=[0, 1, 0]),
    ),
    "a label that is missing": (
        lambda: scores(labels=[None, *WORDS[1:]]),
        "give each row a label, or leave these rows out",
        lambda: [scores(labels=WORDS), plot.scores(fitted().score[1:], labels=WORDS[1:])],
    ),
    "two colours": (
        lambda: scores(labels=Y, color="red"),
        "leave out one of the two",
        lambda: [scores(labels=Y), scores(color="red")],
    ),
    "new rows over the row number": (
        lambda: scores(components=[0], new=NEW),
        "leave out new=",
        lambda: scores(components=[0]),
    ),
    "no uncertainty": (
        lambda: plot.scree(fitted(), uncertainty=3),
        "give what kpca_uncertainty returned",
        lambda: plot.scree(fitted(), uncertainty=uncertainty()),
    ),
    "uncertainty of another model": (
        lambda: plot.scree(fitted(), uncertainty=uncertainty(of_map())),
        "give kpca_uncertainty of this one",
        lambda: plot.scree(fitted(), uncertainty=uncertainty(fitted())),
    ),
}


def colormap(name):
    import matplotlib

    return matplotlib.colormaps[name]
