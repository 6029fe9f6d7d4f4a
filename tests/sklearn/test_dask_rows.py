"""Rows of a Dask collection: estimators say that ``fit`` loads them, and what is said of each row alone is lazy."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("dask.array")
pytest.importorskip("dask.dataframe")

import dask
import dask.array as da
import dask.dataframe as dd
import kernels_contrib.sklearn as contrib
import pandas as pd

import fastkpca.sklearn as own
from fastkpca.errors import LoadedWarning
from fastkpca.sklearn.base import ROW_BY_ROW

X = np.random.default_rng(0).standard_normal((120, 3))
FRAME = pd.DataFrame(X, columns=list("abc"))
LABELS, NUMBERS = (X[:, 0] > 0).astype(int), np.column_stack([X[:, 0] ** 2, X[:, 1]])
CLASSES = {
    name: getattr(module, name)
    for module in (own, contrib)
    for name in module.__all__
    if name not in ("KernelEstimator", "KernelTransformer")
}
OPTIONS = {"KernelPCA": {"kernel": "rbf"}, "Nystroem": {"n_components": 20}, "KernelKMeans": {"n_clusters": 2}}
OPTIONS |= {"SpectralClustering": {"n_clusters": 2}}


def fitted(name, rows):
    targets = LABELS if name in ("KLDA", "KernelLogisticRegression") else NUMBERS
    return CLASSES[name](**OPTIONS.get(name, {})).fit(rows, targets)


@pytest.mark.parametrize("container", ["array", "single", "frame"])
@pytest.mark.parametrize("name", CLASSES)
def test_what_is_said_of_each_row_is_lazy(name, container):
    rows = {"array": X, "single": X.astype(np.float32), "frame": FRAME}[container]
    lazy = dd.from_pandas(FRAME, npartitions=3) if container == "frame" else da.from_array(rows, chunks=(50, 2))
    estimator = fitted(name, rows)
    methods = [method for method in ROW_BY_ROW if hasattr(estimator, method)]
    assert methods
    for method in methods:
        here, there = getattr(estimator, method)(rows), getattr(estimator, method)(lazy)
        assert isinstance(there, da.Array)
        assert (there.shape, there.dtype) == (here.shape, here.dtype)
        np.testing.assert_allclose(there.compute(), here, rtol=1e-6, atol=1e-6)
    if container == "frame":
        with pytest.raises(ValueError, match="names should match"):
            getattr(estimator, methods[0])(lazy[["b", "a", "c"]])


@pytest.mark.parametrize("name", CLASSES)
def test_a_fit_says_that_it_loads_the_rows(name):
    with pytest.warns(LoadedWarning, match=f"{name} loads X, a Dask collection of 120 rows"):
        loaded = fitted(name, da.from_array(X, chunks=(50, -1)))
    method = next(method for method in ROW_BY_ROW if hasattr(loaded, method))
    np.testing.assert_array_equal(getattr(loaded, method)(X), getattr(fitted(name, X), method)(X))


def test_an_inverse_is_lazy():
    pca = own.KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(X)
    back = pca.inverse_transform(pca.transform(da.from_array(X, chunks=(50, -1))))
    assert isinstance(back, da.Array) and back.shape == X.shape
    np.testing.assert_allclose(back.compute(), pca.inverse_transform(pca.transform(X)), rtol=1e-9, atol=1e-12)


def test_blocks_go_to_processes_and_may_be_empty():
    pca = own.KernelPCA(2, kernel="rbf").fit(X)
    rows = da.from_array(X, chunks=((0, 70, 50), -1))
    with dask.config.set(scheduler="processes"):
        np.testing.assert_allclose(pca.transform(rows).compute(), pca.transform(X), rtol=1e-9, atol=1e-12)
    bad = X.copy()
    bad[100, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):  # when the block is computed
        pca.transform(da.from_array(bad, chunks=(50, -1))).compute(scheduler="synchronous")
