"""Every public call once, for ``mypy --strict``: what a user's type checker sees (tests/project/test_types.py).

``assert_type`` holds what comes back: a function that returned Any would pass any use of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, assert_type

import numpy as np
import numpy.typing as npt
from kernels_contrib.cca import CCAModel, kernel_cca
from kernels_contrib.clustering import KMeansModel, assign, kernel_kmeans
from kernels_contrib.components import RegressionModel, kernel_pc_logistic, kernel_pcr, pcr_predict
from kernels_contrib.diffusion import DiffusionModel, SpectralModel, diffusion_map, neighbor_graph, spectral_clustering
from kernels_contrib.hsic import hsic_test
from kernels_contrib.kbda import KBDAModel, kbda, kbda_project
from kernels_contrib.kica import KICAModel, kica, kica_contrast, kica_project
from kernels_contrib.klda import KLDAModel, kernel_fisherfaces, klda, klda_predict, klda_probability, klda_project
from kernels_contrib.logistic import LogisticModel, kernel_logistic, logistic_predict, logistic_probability
from kernels_contrib.matern import Matern
from kernels_contrib.mmd import PermutationTest, mmd_test
from kernels_contrib.perceptron import PerceptronModel, kernel_perceptron, perceptron_decision, perceptron_predict
from kernels_contrib.pls import PLSModel, kernel_pls
from kernels_contrib.ridge import RidgeModel, kernel_ridge
from kernels_contrib.storage import load as load_method
from kernels_contrib.storage import save as save_method

import fastkpca as fk
from fastkpca import errors, plot
from fastkpca.fit.certify import VectorCertificate
from fastkpca.fit.population import Population
from fastkpca.kernels import Kernel, KernelTable, Offer, Summary
from fastkpca.model.limits import Limits
from fastkpca.model.monitoring.contributions import Contributions
from fastkpca.model.monitoring.health import Finding
from fastkpca.model.monitoring.monitor import Monitored
from fastkpca.model.selection import Selection
from fastkpca.model.statistics.importance import Importance
from fastkpca.model.statistics.uncertainty import Uncertainty
from fastkpca.testing import check_kernel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[Any]


class Cauchy(Kernel):
    """A kernel as its author writes it."""

    api_version = 1
    positive_semidefinite = True
    translation = "kernel"
    parameters: ClassVar[dict[str, Any]] = {"width": 1.0}

    def __init__(self, width: float = 1.0) -> None:
        self.width = width

    def block(self, X: Array, Y: Array) -> Array:
        squares = ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)
        return np.asarray(1.0 / (1.0 + squares / self.width**2))

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> list[Offer]:
        return []


def product_of_rows(X: Array, Y: Array) -> Array:
    return np.asarray(X @ Y.T)


def models(X: Array, folder: Path) -> None:
    model = fk.kpca(X, "gaussian", 3, sigma=1.5, tol=1e-6, center=False, standardize=True, progress=False)
    assert_type(model.center, bool)
    assert_type(
        fk.on_columns("gaussian", ["height", "width"], sigma=[1.0, 2.0]) + Matern(length_scale=[1.0, 2.0]), Kernel
    )
    assert_type(model, fk.KPCAModel)
    coeff, score, latent, tsquared, explained = model
    own = (model.eigenvalues, model.eigenvalue_bounds, model.angle_bounds, model.in_units_of_rows(X))
    for array in (coeff, score, latent, tsquared, explained, *own, fk.kpca_project(model, X[:5])):
        assert_type(array, Array)
    for text in (model.bound_kind, fk.plan(X, "polynomial", 0.9, degree=2).method):
        assert_type(text, str)
    for number in (model.n_components, model.n_samples):
        assert_type(number, int)
    assert_type(model.kernel, Kernel)
    assert_type(model.info, dict[str, Any])
    assert_type(fk.pca(X, 2), fk.KPCAModel)
    fk.save(model, folder / "model.kpca", scores=True)
    assert_type(fk.load(folder / "model.kpca"), fk.KPCAModel)
    try:
        fk.kpca(X, "gausian", 3)
    except errors.UnknownKernelError as error:
        assert_type(error, errors.UnknownKernelError)


def shards(X: Array) -> None:
    first = fk.kpca(X[:60], "polynomial", 2, degree=2, keep_moments=True, sample_weight=np.ones(60))
    second = fk.kpca(X[60:90], "polynomial", 2, degree=2, keep_moments=True, like=first)
    assert_type(fk.kpca_merge(first, second), fk.KPCAModel)
    assert_type(fk.kpca_update(first, X[90:]), fk.KPCAModel)
    assert_type(fk.kpca_subtract(fk.kpca_merge(first, second), second), fk.KPCAModel)
    assert_type(fk.kpca_population(fk.kpca(X[:60], "gaussian", 2, sigma=1.0), X[60:]), Population)


def products(X: Array) -> None:
    K = fk.gram(X, "gaussian", sigma=1.0, tol=1e-6, progress=lambda stage, done, total: None)
    K.centered() @ np.ones(len(X))
    F = fk.features(X, "gaussian", sigma=1.0, tol=1e-3, progress=False)
    F.T @ np.ones(len(X))
    for array in (K.diagonal(), K.column_means()):
        assert_type(array, Array)
    for number in (K.trace(), K.error_bound, F.residual_trace):
        assert_type(number, float)


def vectors_of_others(X: Array) -> None:
    found = fk.certify(X, "gaussian", np.ones((len(X), 1)) + X, sigma=1.0, tol=0.5, center=False)
    assert_type(found, VectorCertificate)
    assert_type(found.missed_above(0.1), tuple[int, int])
    assert_type(found.eigenvalue_bounds, Array)
    assert_type(fk.certify(X, "gaussian", X, sigma=1.0, rows=20).sampled, bool)


def kernels(X: Array) -> None:
    assert_type(fk.list_kernels(), KernelTable)
    assert_type(fk.get_kernel("gaussian", sigma=2.0), Kernel)
    assert_type(fk.get_method("klda"), Callable[..., Any])
    for entry in fk.list_methods():
        assert_type(entry.name, str)
    with fk.register_kernel("cauchy_of_types", Cauchy, overwrite=True):
        assert_type(fk.get_kernel("cauchy_of_types"), Kernel)
    assert_type(check_kernel(Cauchy(2.0)), dict[str, str])
    combined = 0.5 * Cauchy(1.0) + Matern(nu=1.5, length_scale=1.0)
    assert_type(fk.kpca(X, combined, 2), fk.KPCAModel)
    assert_type(fk.kpca(X, product_of_rows, 2), fk.KPCAModel)


def rows_again(X: Array, folder: Path) -> None:
    model = fk.kpca(X, "gaussian", 5, sigma=2.0)
    limits = fk.kpca_limits(model, X + 0.1, confidence=0.9, joint=True)
    assert_type(limits, Limits)
    spe, interval = fk.kpca_spe(model, X, bounds=True)
    guilty = fk.kpca_contributions(model, X, statistic="t2", train=X)
    assert_type(guilty, Contributions)
    found = fk.kpca_monitor(model.with_limits(limits), X[:40], labels=range(40), label_name="number")
    assert_type(found, Monitored)
    assert_type(found.contributions([0, 1]), Contributions)
    assert_type(fk.kpca_baseline(X, confidence=0.9, lags=1, fill_missing=True), fk.KPCAModel)
    assert_type((found.run_evidence, found.run_alarm), tuple[Array | None, int | None])
    assert_type(fk.kpca_health(X, model=found.model), tuple[Finding, ...])
    which = fk.kpca_importance(model, X, method="permutation", rng=1)
    assert_type(which, Importance)
    sure = fk.kpca_uncertainty(model, X, level=0.9, n_bootstrap=100)
    assert_type(sure, Uncertainty)
    told = (interval, fk.kpca_t2(model, X), fk.kpca_spe(model, X), limits.exceeded(spe=spe), guilty.largest)
    drawn = (guilty.ranking(1), which.share, which.ranking(1), sure.latent_interval)
    for array in (*told, *drawn):
        assert_type(array, Array)
    # rows of the given kind: an array, or a frame
    fk.kpca_preimage(model, model.score[:4], method="fixed-point"), fk.kpca_denoise(model, X[:4])
    fk.kpca_fill(model, X[:4], train=X, n_threads=1)
    choice = fk.kpca_select(X, {"gaussian": {"sigma": [1.0, 2.0]}}, [1, 2], folds=3)
    assert_type(choice, Selection)
    assert_type(choice.kernel, Kernel)
    assert_type(choice.c, int)
    assert_type(fk.kpca_select(X, "gaussian", y=X[:, 0] > 0), Selection)
    fk.export_mat(model, folder / "model.mat")


def pictures(model: fk.KPCAModel, X: Array, labels: Array, folder: Path) -> None:
    axes: Axes = plot.scores(model, labels, ellipses=0.9)
    plot.save(axes, folder / "scores.png")
    axes = plot.scree(model)
    which = fk.kpca_importance(model, X)
    axes = plot.importance(which, component=1)
    axes = plot.importance(model, X)
    axes = plot.biplot(model, which, labels=labels)
    axes = plot.biplot(model, X)
    axes = plot.scree(model, uncertainty=fk.kpca_uncertainty(model, X, n_bootstrap=100))
    axes = plot.selection(fk.kpca_select(X, "gaussian", 2, folds=3))
    axes = plot.contours(model, X, component=1)
    assert_type(plot.contours(model, X, component=[0, 1]), Array)
    axes = plot.accuracy([model])
    axes = plot.convergence(fk.kpca(X, "gaussian", 2, method="krylov"))
    axes = plot.candidates(model.plan)
    limits = fk.kpca_limits(model, X + 0.1, confidence=0.9)
    t2, spe = fk.kpca_t2(model, X), fk.kpca_spe(model, X)
    assert_type(plot.monitor(limits, t2, spe=spe, x_label="hour"), Array)
    axes = plot.influence(limits, t2, spe)
    axes = plot.accuracy(model)
    plot.report(model, folder / "model.html", title="rows")
    fk.kpca_monitor(model, X, limits=limits).report(folder / "rows.html", overwrite=True)
    axes = plot.contributions(fk.kpca_contributions(model, X), row=1)


def methods(X: Array, y: Array, folder: Path) -> None:
    discriminant = klda(X, y, "gaussian", sigma=1.0, regularization=0.1)
    for model in (discriminant, kernel_fisherfaces(X, y, "polynomial", degree=2, components=5)):
        assert_type(model, KLDAModel)
    biased = kbda(X, y == 1, "gaussian", 1, sigma=1.0, regularization=0.1)
    assert_type(biased, KBDAModel)
    sources = kica(X, c=2)
    assert_type(sources, KICAModel)
    assert_type(kica_contrast(X), float)
    perceptron = kernel_perceptron(X, y, "gaussian", sigma=1.0, max_epochs=20)
    assert_type(perceptron, PerceptronModel)
    logistic = kernel_logistic(X, y, "gaussian", sigma=1.0)
    for classifier in (logistic, kernel_pc_logistic(X, y, "gaussian", 3, sigma=1.0)):
        assert_type(classifier, LogisticModel)
    curve = kernel_pcr(X, X[:, 0], "gaussian", 3, sigma=1.0)
    assert_type(curve, RegressionModel)
    projected = (klda_project(discriminant, X), kbda_project(biased, X), kica_project(sources, X))
    classes = (klda_predict(discriminant, X), perceptron_predict(perceptron, X), logistic_predict(logistic, X))
    sure = (klda_probability(discriminant, X), logistic_probability(logistic, X))
    for array in (*projected, *classes, *sure, perceptron_decision(perceptron, X), pcr_predict(curve, X)):
        assert_type(array, Array)
    save_method(logistic, folder / "logistic.kpca")
    load_method(folder / "logistic.kpca")


def tests_and_regressions(X: Array) -> None:
    test = mmd_test(X[:60], X[60:], "gaussian", sigma=1.0, permutations=9)
    for other in (test, hsic_test(X[:, :1], X[:, 1:], sigma=1.0, permutations=9)):
        assert_type(other, PermutationTest)
    assert_type(test.p_value, float)
    agree = kernel_cca(X[:, :1], X[:, 1:], sigma=1.0)
    assert_type(agree, CCAModel)
    pls = kernel_pls(X, X[:, 0], sigma=1.0)
    assert_type(pls, PLSModel)
    ridge = kernel_ridge(X, X[:, 0], sigma=1.0)
    assert_type(ridge, RidgeModel)
    for array in (agree.x.project(X[:, :1]), pls.predict(X), ridge.error(X)):
        assert_type(array, Array)


def groups(X: Array) -> None:
    near = kernel_kmeans(X, "gaussian", 2, sigma=1.0)
    assert_type(near, KMeansModel)
    assert_type(near.least_cost, float)
    cut = spectral_clustering(X, "gaussian", 2, sigma=1.0)
    assert_type(cut, SpectralModel)
    neighbor_graph(X, 5).sum()
    walk = diffusion_map(X, "gaussian", 2, sigma=1.0)
    assert_type(walk, DiffusionModel)
    of_graph = spectral_clustering(X, k=2, affinity="nearest_neighbors")
    for array in (near.labels, assign(cut, X), walk.coordinates, assign(of_graph, neighbor_graph(X[:5], 10, X))):
        assert_type(array, Array)


def main(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    y = (X[:, 0] > 0).astype(int)
    models(X, folder)
    shards(X)
    products(X)
    vectors_of_others(X)
    kernels(X)
    rows_again(X, folder)
    pictures(fk.kpca(X, "gaussian", 2, sigma=1.5), X, y, folder)
    methods(X, y, folder)
    tests_and_regressions(X)
    groups(X)
