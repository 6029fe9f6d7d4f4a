"""Pictures of importance and of uncertainty: what is drawn is what was computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fastkpca as fk
from fastkpca import plot

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from fastkpca.plot._figure import BLUE, GREY, ORANGE


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((200, 4)) * [3.0, 2.0, 1.0, 0.2]


@pytest.fixture(scope="module")
def model(X):
    return fk.kpca(X, "polynomial", 4, degree=2, scale=0.1)


@pytest.fixture(scope="module")
def which(model, X):
    return fk.kpca_importance(model, X)


def test_bars_are_the_shares_from_the_largest_down(which):
    ax = plot.importance(which, component=1)
    bars = sorted(ax.patches, key=lambda bar: bar.get_y())
    np.testing.assert_allclose([bar.get_width() for bar in bars], 100 * np.sort(which.share[1])[::-1])
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [which.names[i] for i in which.ranking(1)]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first on top
    colours = {1: BLUE, -1: ORANGE, 0: to_hex("0.78")}
    assert [to_hex(bar.get_facecolor()) for bar in bars] == [colours[s] for s in which.sign[1][which.ranking(1)]]
    hatches = {1: None, -1: "//", 0: None}  # a grey print has no colours, and no direction is light
    assert [bar.get_hatch() for bar in bars] == [hatches[s] for s in which.sign[1][which.ranking(1)]]
    assert len(plot.importance(which, n_columns=2).patches) == 2


def test_a_model_and_its_rows_will_do_as_well(model, which, X):
    ax = Figure().subplots()
    assert plot.importance(model, X, ax=ax, component=1) is ax
    widths = [bar.get_width() for bar in plot.importance(which, component=1).patches]
    assert [bar.get_width() for bar in ax.patches] == widths
    arrows = [text.xy for text in plot.biplot(model, which).texts]
    np.testing.assert_array_equal([text.xy for text in plot.biplot(model, X).texts], arrows)
    holds_rows = fk.kpca(X, "gaussian", 2, method="dense")
    assert len(plot.importance(holds_rows).patches) == len(plot.biplot(holds_rows).texts) == 4
    assert plot.biplot(model, X, Figure().subfigures(1, 2)[0].subplots()).texts


def test_a_permutation_has_standard_errors_and_no_direction(model, X):
    permuted = fk.kpca_importance(model, X, method="permutation")
    ax = plot.importance(permuted)
    assert {to_hex(bar.get_facecolor()) for bar in ax.patches} == {GREY}
    assert {bar.get_hatch() for bar in ax.patches} == {None}
    assert ax.get_legend() is None and len(ax.containers) == 2


def test_arrows_point_where_the_scores_go(model, which):
    ax = plot.biplot(model, which, components=(1, 0), n_arrows=4)
    (arrows,) = (x for x in ax.collections if type(x).__name__ == "Quiver")
    tips = np.column_stack([arrows.U, arrows.V])
    means = dict(zip(which.names, (which.mean_gradients[[1, 0]] * which.spread).T))
    factors = []
    for tip, name in zip(tips, ax.texts, strict=True):
        np.testing.assert_array_equal(name.xy, tip)
        expected = means[name.get_text()]
        np.testing.assert_allclose(tip / np.linalg.norm(tip), expected / np.linalg.norm(expected))
        factors.append(np.linalg.norm(tip) / np.linalg.norm(expected))
    np.testing.assert_allclose(factors, factors[0])
    assert (np.abs(tips) <= np.abs(model.score[:, [1, 0]]).max(axis=0) * (1 + 1e-9)).all()
    assert len(tips) == 4 and ax.get_xlabel().startswith("PC2")


def test_neither_the_key_nor_the_names_of_arrows_hide_anything():
    load_breast_cancer = pytest.importorskip("sklearn.datasets").load_breast_cancer

    frame = load_breast_cancer(as_frame=True).data
    model = fk.kpca(frame, "gaussian", 2, standardize=True)
    which = fk.kpca_importance(model, frame)
    ax = plot.importance(which)  # all bars are nearly as long
    ax.figure.draw_without_rendering()
    assert not any(ax.get_legend().get_window_extent().overlaps(bar.get_window_extent()) for bar in ax.patches)
    ax = plot.biplot(model, which, n_arrows=10)  # several arrows have nearly one direction
    ax.figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in ax.texts]
    assert len(boxes) == 10
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_scree_draws_both_kinds_of_intervals(model, X):
    sure = fk.kpca_uncertainty(model, X, n_bootstrap=100, n_permutations=19)
    ax = plot.scree(model, uncertainty=sure, n_components=3)
    broad = next(x for x in ax.collections if "population" in str(x.get_label()))
    ends = np.array([segment[:, 1] for segment in broad.get_segments()])
    np.testing.assert_allclose(ends, sure.latent_interval[:3] * 199)
    chance = next(line for line in ax.lines if "permuted columns in 5 %" in line.get_label())
    np.testing.assert_allclose(chance.get_ydata(), sure.permuted[:3] / 100 * model.total_variance * 199)
    low, high = ax.get_ylim()
    assert low < ends.min() and ends.max() < high
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sum("guaranteed" in text for text in texts) == 1 and sum("95 % interval" in text for text in texts) == 1
    ax.figure.draw_without_rendering()


def test_bars_of_components_that_do_not_exceed_chance_are_paler(model, X):
    sure = replace(fk.kpca_uncertainty(model, X, n_bootstrap=100, n_permutations=19), n_significant=3)
    ax = plot.scree(model, uncertainty=sure)
    broad = next(x for x in ax.collections if "interval for the population" in str(x.get_label()))
    strength = broad.get_colors()[:, 3]
    assert len(strength) == 4 and (strength[3] < 0.5 * strength[:3]).all()
    assert "the same, of components that do not exceed" in ax.get_legend().get_texts()[2].get_text()
    every = plot.scree(model, uncertainty=replace(sure, n_significant=None, permuted=None))
    assert len(every.get_legend().get_texts()) == len(ax.get_legend().get_texts()) - 2


def test_bars_without_an_end_are_cut_off(model, X):
    sure = fk.kpca_uncertainty(model, X, n_bootstrap=100, n_permutations=0)
    ends = sure.latent_interval.copy()
    ends[0, 1], ends[2, 0] = np.inf, 0.0
    ax = plot.scree(model, uncertainty=replace(sure, latent_interval=ends))
    low, high = ax.get_ylim()
    assert 0.0 < model.eigenvalues[-1] / 20 < low and high < 20 * model.eigenvalues[0]
    ax.figure.draw_without_rendering()


def test_a_model_that_is_not_centred(X):
    model = fk.kpca(X + 1.0, "linear", 3, center=False)
    ax = plot.scree(
        model, uncertainty=fk.kpca_uncertainty(model, X + 1.0, n_bootstrap=100, n_permutations=5), cumulative=True
    )
    assert ax.get_ylabel() == "eigenvalue of the Gram matrix"
    share = next(line for line in ax.figure.axes[1].lines if "cumulative" in line.get_label()).get_ydata()
    band = ax.figure.axes[1].collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() <= share.min() and share.max() <= band.max() * (1 + 1e-9)


def test_long_names_in_a_biplot_stay_within_the_axes():
    rng = np.random.default_rng(0)
    names = [f"rather long name {i}" for i in range(4)]
    X = pd.DataFrame(rng.standard_normal((80, 4)) * [5.0, 4.0, 1.0, 1.0], columns=names)
    model = fk.kpca(X, "linear", 2)
    groups = np.array(["a group with a long name", "another"])[np.arange(80) % 2]
    for labels in (None, groups):  # the key beside the axes takes some of their width
        ax = plot.biplot(model, X, labels=labels)
        ax.figure.draw_without_rendering()
        inside = ax.get_window_extent()
        boxes = [Text.get_window_extent(text) for text in ax.texts]
        assert len(boxes) == 4
        assert all(box.x0 > inside.x0 - 1 and box.x1 < inside.x1 + 1 for box in boxes)


def test_axes_with_logarithms_of_another_picture_get_the_scales_they_need(model, which, X):
    def given():
        ax = Figure().subplots()
        ax.set(xscale="log", yscale="log")
        return ax

    far, limits = np.ones(60), fk.kpca_limits(model, X, confidence=0.9)
    pictures = [
        plot.importance(which, ax=given()), plot.biplot(model, which, given()), plot.scores(X, ax=given()),
        plot.contributions(fk.kpca_contributions(model, X[:2], train=X), ax=given()),
        plot.influence(limits, far, far, given()),
        *plot.contours(model, ax=[given()], component=[0], X=X),
    ]  # fmt: skip
    for ax in pictures:
        ax.figure.draw_without_rendering()
        assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    assert (plot.scree(model, given()).get_xscale(), plot.scree(model, given()).get_yscale()) == ("linear", "log")
