"""Pictures of eigenvalues, contours, accuracy, passes and plans: what is drawn is what the model holds."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import fastkpca as fk
from fastkpca import plot
from fastkpca.fit.krylov import widths
from fastkpca.model.limits import Limits
from fastkpca.model.plan import Candidate, Plan

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from matplotlib.figure import Figure


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((300, 3)) * [1.0, 0.7, 0.4] + [10.0, -5.0, 2.0]


@pytest.fixture(scope="module")
def model(X):
    return fk.kpca(X, "gaussian", 6, sigma=1.5, method="krylov")


def line(ax, label: str):
    (found,) = [x for x in ax.lines if x.get_label().startswith(label)]
    return found


def fits(ax) -> None:
    """The layout works, and nothing written is cut off."""
    ax.figure.draw_without_rendering()
    box, figure = ax.get_tightbbox(), ax.figure.bbox
    assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= figure.x1 + 1 and box.y1 <= figure.y1 + 1, (box, figure)


# Control charts -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def limits():
    return Limits(10.0, 0.5, 0.99, "F", "box", 100)


@pytest.mark.parametrize(("joint", "text"), [(False, "90 % limit (empirical)"), (True, "joint 90 % limit (empirical)")])
def test_monitor_shows_every_row_its_limit_and_the_violations(limits, X, model, joint, text):
    own = fk.kpca_limits(model, X + 0.01, confidence=0.9, joint=joint)
    t2, spe = fk.kpca_t2(model, X), fk.kpca_spe(model, X)
    axes = plot.monitor(own, t2, spe)
    assert axes.shape == (2,)
    for ax, values, limit in zip(axes, (t2, spe), (own.t2, own.spe)):
        curve, border, beyond = ax.lines
        np.testing.assert_array_equal(curve.get_ydata(), values)
        assert set(border.get_ydata()) == {limit}
        np.testing.assert_array_equal(beyond.get_xdata(), np.flatnonzero(values > limit))
        assert beyond.get_label() == f"{np.count_nonzero(values > limit)} of {len(values)} beyond the limit"
        assert ax.get_ylim()[0] < values.min() and ax.get_ylim()[1] > max(values.max(), limit)
        fits(ax)
    assert axes[1].get_xlabel() == "row" and axes[0].get_legend().get_texts()[1].get_text() == text


def test_monitor_of_one_statistic_on_axes_and_times_of_the_caller(limits):
    ax = Figure().subplots()
    days = np.arange("2024-01-01", "2024-01-06", dtype="datetime64[D]")
    (found,) = plot.monitor(limits, spe=[0.1, 0.2, 0.7, 0.3, 0.5], ax=ax, x=days, x_label="day")
    assert found is ax and ax.get_ylabel() == "SPE" and ax.get_xlabel() == "day"
    np.testing.assert_array_equal(ax.lines[2].get_xdata(), days[2:3])  # 0.5 is the limit itself: not beyond it
    fits(ax)


def test_names_and_times_of_rows_under_the_charts(limits):
    pandas = pytest.importorskip("pandas")
    values = np.linspace(0.1, 0.6, 3000)
    names = [f"batch {i}" for i in range(3000)]
    upper, lower = plot.monitor(limits, values, values, x=names, x_label="batch")
    lower.figure.draw_without_rendering()
    shown = [text for text in lower.get_xticklabels() if text.get_text()]
    assert 2 <= len(shown) <= 12 and all(text.get_text() == names[int(text.get_position()[0])] for text in shown)
    boxes = [text.get_window_extent() for text in shown]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    assert not any(text.get_visible() and text.get_text() for text in upper.get_xticklabels())
    berlin = pandas.date_range("2026-03-01 06:00", periods=3, freq="h", tz="Europe/Berlin")
    utc = np.array(["2026-03-01T05:00", "2026-03-01T06:00", "2026-03-01T07:00"], dtype="datetime64[us]")
    for times in (berlin, utc, utc.astype(str), [str(t).replace("T", " ") for t in utc], berlin.tz_convert(None)):
        _, lower = plot.monitor(limits, values[:3], values[:3], x=times)
        np.testing.assert_array_equal(lower.lines[0].get_xdata(), utc)


def test_influence_names_the_rows_furthest_beyond(limits):
    t2, spe = np.array([0.1, 0.2, 5e4, 0.3]), np.array([0.1, 0.9, 0.2, 0.3])
    ax = plot.influence(limits, t2, spe, names=["a", "b", "c", "d"], n_names=3)
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["c", "b"]  # "d" is below both
    below, beyond = (x.get_offsets() for x in ax.collections[:2])
    np.testing.assert_array_equal(below, np.column_stack([t2, spe])[[0, 3]])
    np.testing.assert_array_equal(beyond, np.column_stack([t2, spe])[[1, 2]])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    fits(ax)
    rng = np.random.default_rng(0)
    joint = replace(limits, joint=True, confidence=0.9995)
    many = plot.influence(joint, 2 * limits.t2 * rng.random(3000), limits.spe * rng.random(3000))
    fits(many)  # its key, too


def test_contributions_are_bars_of_one_row(X):
    model = fk.kpca(X, "linear", 2)
    which = fk.kpca_contributions(model, X[:2] + [0.0, 0.0, 3.0], train=X)
    ax = plot.contributions(which, row=1, n_columns=2)
    order = which.ranking(1)[:2]
    assert [text.get_text() for text in ax.get_yticklabels()] == [which.names[i] for i in order]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, 100 * which.contributions[1, order] / which.of_rows[1])
    given, best = which.given[1, order[0]], which.values[1, order[0]]
    assert f"{given:.4g}, best at {best:.4g}" in [text.get_text() for text in ax.texts]
    fits(ax)


@pytest.mark.parametrize(
    "values", [[3.0], [0.0] * 20, [1.0, 1e300, -1e300, 5.0], [1e-300] * 3, list(range(50_000)), [-1.0, -2.0]]
)
def test_monitor_of_hostile_values(limits, values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (ax,) = plot.monitor(limits, values)
        fits(ax)
    count = np.count_nonzero(np.asarray(values) > limits.t2)
    assert [x.get_label() for x in ax.lines[2:]] == ([f"{count} of {len(values)} beyond the limit"] if count else [])
    low, high = ax.get_ylim()
    for curve in ax.lines:  # nothing is drawn outside
        assert np.min(curve.get_ydata()) >= low and np.max(curve.get_ydata()) <= high


# Scree --------------------------------------------------------------------------------------------------------------


def intervals(ax) -> np.ndarray:
    (container,) = ax.containers
    return np.array([segment[:, 1] for segment in container[2][0].get_segments()])


def test_scree_shows_eigenvalues_intervals_and_percentages(model):
    ax = plot.scree(model, cumulative=True)
    (container,) = ax.containers
    np.testing.assert_array_equal(container[0].get_ydata(), model.eigenvalues)
    np.testing.assert_allclose(intervals(ax), model.eigenvalue_bounds, rtol=1e-14)
    (other,) = [x for x in ax.figure.axes if x is not ax]
    np.testing.assert_allclose(line(other, "cumulative").get_ydata(), np.cumsum(model.explained))
    band = other.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() <= model.explained[0] and band.max() >= model.explained.sum()
    assert other.get_ylim()[0] == 0 and other.get_ylim()[1] >= 100
    assert "guaranteed" in ax.get_legend().get_texts()[0].get_text()
    fits(ax)


def test_scree_of_a_lower_end_below_zero_reaches_the_foot(model):
    radius = model.eigenvalues[-1]
    bounds = np.column_stack([model.eigenvalues - radius, model.eigenvalues + radius])
    wide = replace(model, eigenvalue_bounds=bounds, bound_kind="probabilistic")
    ax = plot.scree(wide)
    drawn = intervals(ax)
    below = bounds[:, 0] <= model.eigenvalues[-1] / 10
    assert below.any() and not below.all()
    np.testing.assert_allclose(drawn[below, 0], model.eigenvalues[-1] / 10)
    np.testing.assert_allclose(drawn[~below], bounds[~below])
    np.testing.assert_allclose(drawn[:, 1], bounds[:, 1])
    assert "probabilistic" in ax.get_legend().get_texts()[0].get_text()


@pytest.mark.parametrize("c", [1, 200])
def test_scree_of_one_and_of_many(X, c):
    many = fk.kpca(X, "gaussian", c, sigma=0.3, method="dense")
    ax = plot.scree(many)
    assert len(ax.containers[0][0].get_ydata()) == c
    assert ax.get_xlim()[0] < 1 and ax.get_xlim()[1] > c
    assert all(tick == round(tick) for tick in ax.get_xticks())
    fits(ax)
    assert len(plot.scree(many, n_components=1).containers[0][0].get_ydata()) == 1
    assert len(ax.figure.axes) == 1


def test_scree_of_an_indefinite_kernel(X):
    ax = plot.scree(fk.kpca(X - X.mean(axis=0), "tanh", 5, scale=1.0, offset=-0.5, method="dense"), cumulative=True)
    other = ax.figure.axes[1]
    assert other.get_ylim()[1] > line(other, "cumulative").get_ydata().max() > 100  # negative ones weigh in the trace


# Contours -----------------------------------------------------------------------------------------------------------


def on_lines(contours, rng) -> list[tuple[float, np.ndarray]]:
    """(level, a point on its line) for some points of each line."""
    found = []
    for level, path in zip(contours.levels, contours.get_paths()):
        if len(path.vertices):
            found += [(level, point) for point in rng.choice(path.vertices, 5)]
    return found


def test_contours_are_those_of_the_projection(model, X):
    at = np.array([10.0, -5.0, 2.3])
    axes = plot.contours(model, X, component=[0, 2], inputs=(2, 0), at=at, resolution=150)
    assert axes.shape == (2,)
    rng = np.random.default_rng(1)
    for ax, component in zip(axes, (0, 2)):
        filled, lines, _ = (x for x in ax.collections if type(x).__name__ == "QuadContourSet")
        assert filled.filled and filled.levels.tolist() == lines.levels.tolist() and len(lines.levels) > 6
        assert ax.get_xlabel() == "input 2" and ax.get_ylabel() == "input 0"
        assert ax.get_title().startswith(f"PC{component + 1} (")
        checked = on_lines(lines, rng)
        assert len({level for level, _ in checked}) >= 5
        for level, (x, y) in checked:
            value = fk.kpca_project(model, [[y, at[1], x]])[0, component]
            assert abs(value - level) < 0.02 * np.ptp(filled.levels[:2])  # lines are straight within a cell
        rows = np.concatenate([c.get_offsets() for c in ax.collections if type(c).__name__ == "PathCollection"])
        assert {tuple(p) for p in np.asarray(rows).tolist()} == {tuple(p) for p in X[:, [2, 0]].tolist()}
        fits(ax)


def test_the_zero_line_and_the_scale_are_symmetric(model):
    ax = plot.contours(model)
    filled, _, zero = (x for x in ax.collections if type(x).__name__ == "QuadContourSet")
    np.testing.assert_allclose(filled.levels, -filled.levels[::-1], atol=1e-12)
    lines = ax.collections[1]
    negative = np.array([dashes is not None for _, dashes in lines.get_linestyle()])
    assert (negative == (lines.levels < 0)).all()  # dashed where the component is negative
    assert zero.levels.tolist() == [0.0]
    vertices = zero.get_paths()[0].vertices
    x, y = vertices[len(vertices) // 2]
    values = fk.kpca_project(model, [[x, y, model.projector.X[:, 2].mean() + model.shift[2]]])
    assert abs(values[0, 0]) < 0.01 * filled.levels[-1]


def test_contours_by_names_labels_limits_and_axes(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["height", "weight", "age"])
    features = fk.kpca(frame, "polynomial", 3, degree=2)  # holds no rows
    assert not features.projector.grows_with_n
    labels = np.array(["a", "b", "c"])[np.arange(300) % 3]
    ax = plot.contours(features, frame, inputs=("age", "weight"), labels=labels)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "weight")
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["a", "b", "c"]
    given = Figure().subplots(1, 2)
    axes = plot.contours(features, frame, given, component=(0, 1), labels=labels, limits=((0, 4), (-8, 0)))
    assert list(axes) == list(given) and axes[0].get_xlim() == (0, 4) and axes[1].get_ylim() == (-8, 0)
    without = plot.contours(features, limits=((0, 4), (-8, 0)), at=[10.0, -5.0, 2.0])
    assert (without.get_xlabel(), without.get_ylabel()) == ("height", "weight")  # the model knows their names
    assert not [c for c in without.collections if type(c).__name__ == "PathCollection"]


def test_of_many_rows_a_sample_is_drawn(model):
    rows = np.random.default_rng(3).standard_normal((50_000, 3))
    ax = plot.contours(model, rows, labels=np.arange(50_000) % 2)
    drawn = np.concatenate([c.get_offsets() for c in ax.collections if type(c).__name__ == "PathCollection"])
    assert len(drawn) == 2000
    assert {tuple(p) for p in drawn.round(9).tolist()} <= {tuple(p) for p in rows[:, :2].round(9).tolist()}


# Accuracy and convergence -------------------------------------------------------------------------------------------


def test_accuracy_draws_what_was_asked_guaranteed_and_achieved(X):
    asked = [1e-8, 1e-2, 1e-5]
    models = [fk.kpca(X, "gaussian", 4, sigma=1.5, tol=tol, method="krylov") for tol in asked]
    exact = fk.kpca(X, "gaussian", 8, sigma=1.5, method="dense").eigenvalues
    ax = plot.accuracy(models, exact)
    widths = {m.info["tol"]: np.ptp(m.eigenvalue_bounds, axis=1).max() / m.eigenvalues[0] for m in models}
    errors = {m.info["tol"]: np.abs(m.eigenvalues - exact[:4]).max() / exact[0] for m in models}
    for label, expected in (("guaranteed", widths), ("achieved", errors)):
        x, y = line(ax, label).get_data()
        assert list(x) == sorted(asked)
        np.testing.assert_allclose(y, np.maximum([expected[t] for t in sorted(asked)], np.finfo(float).eps / 2))
    x, y = line(ax, "asked for").get_data()
    np.testing.assert_array_equal(x, y)
    fits(ax)
    one = plot.accuracy(models[0])
    assert len(one.lines) == 3  # no line for what was not given
    fits(one)
    one.figure.draw_without_rendering()
    shown = [text.get_window_extent() for text in one.get_xticklabels(which="both") if text.get_text()]
    assert not any(a.overlaps(b) for a, b in pairwise(sorted(shown, key=lambda box: box.x0)))
    forged = plot.accuracy(models, tol=[1e-1, 1e-2, 1e-3])
    assert list(line(forged, "guaranteed").get_xdata()) == [1e-3, 1e-2, 1e-1]


def test_probable_intervals_are_hollow(X):
    models = [fk.kpca(X, "gaussian", 4, sigma=1.5, tol=tol) for tol in (1e-3, 1e-6)]
    object.__setattr__(models[0], "bound_kind", "probabilistic")
    ax = plot.accuracy(models)
    assert line(ax, "probable").get_markerfacecolor() == "white"
    assert list(line(ax, "probable").get_xdata()) == [1e-3] and list(line(ax, "guaranteed").get_xdata()) == [1e-6]


def test_the_passes_are_recorded_and_drawn(tmp_path):
    X = np.random.default_rng(0).standard_normal((1100, 3)) * [1.0, 0.7, 0.4] + [10.0, -5.0, 2.0]
    model = fk.kpca(X, "gaussian", 5, sigma=0.7, tol=1e-9, method="krylov")
    widths, expected = model.info["widths"], model.info["search_widths"]
    assert widths[-1][0] == model.info["matrix_passes"] and model.info["search_passes"] >= len(expected) >= 1
    assert widths[-1][1] == pytest.approx(np.ptp(model.eigenvalue_bounds, axis=1).max() / model.eigenvalues[0])
    assert [p for p, _ in expected + widths] == sorted({p for p, _ in expected + widths})
    ax = plot.convergence(model)
    np.testing.assert_array_equal(np.column_stack(line(ax, "widest").get_data()), widths)
    np.testing.assert_array_equal(np.column_stack(line(ax, "expected").get_data()), expected)
    assert line(ax, "asked for").get_ydata() == [1e-9, 1e-9]
    assert line(ax, "expected").get_markerfacecolor() == "white"
    fits(ax)
    fk.save(model, tmp_path / "m.kpca")  # what is recorded is kept in the file
    again = fk.load(tmp_path / "m.kpca")
    assert again.info == model.info and len(plot.convergence(again).lines) == len(ax.lines)


def test_passes_before_the_first_interval_are_left_out(model):
    info = model.info | {"widths": [[2, 1e-3], [3, 1e-7]], "search_widths": []}
    ax = plot.convergence(replace(model, info=info))
    np.testing.assert_array_equal(line(ax, "widest").get_xdata(), [2, 3])
    assert ax.get_xlim()[0] < 1
    assert widths([(1, np.inf), (2, 1e-3)]) == [[2, 1e-3]]


# Candidates ---------------------------------------------------------------------------------------------------------


def test_candidates_are_bars_with_the_chosen_one_marked(X):
    found = Plan(
        "krylov",
        "exact",
        "because",
        (
            Candidate("dense", "LAPACK", 30.0, 4e8, obstacle="needs 400 MB, the limit is 100 MB"),
            Candidate("krylov", "exact", 0.5, 2e6),
            Candidate("features", "pivots", 2.0, 9e6, 100),
            Candidate("features", "any", float("inf"), float("inf"), obstacle="no map reaches tol"),
        ),
    )
    for quantity, ends in (("seconds", [0.5, 2.0, 30.0]), ("memory", [2.0, 9.0, 400.0])):
        ax = plot.candidates(found, quantity=quantity)
        bars = list(ax.patches)
        np.testing.assert_allclose([bar.get_x() + bar.get_width() for bar in bars], ends)
        names = [tick.get_text() for tick in ax.get_yticklabels()]
        assert names == ["krylov (exact)", "features (pivots)", "dense (LAPACK)", "features (any)"]
        texts = [text.get_text().replace("\n", " ") for text in ax.texts]
        assert texts[0] == {"seconds": "0.5 s, chosen", "memory": "2 MB, chosen"}[quantity]
        assert texts[1] == {"seconds": "2 s", "memory": "9 MB"}[quantity]
        assert texts[2:] == ["needs 400 MB, the limit is 100 MB", "no map reaches tol"]
        assert [bar.get_hatch() for bar in bars] == [None, None, "////"]
        assert bars[0].get_facecolor() != bars[1].get_facecolor()
        fits(ax)


def test_candidates_of_real_plans_fit(X, model):
    for plan in (model, fk.plan(np.tile(X, (200, 1)), "polynomial", None, degree=3)):
        ax = plot.candidates(plan)
        given = type(ax.figure)().subplots()
        given.set_yscale("log")
        assert plot.candidates(plan, ax=given).get_yscale() == ax.get_yscale() == "linear"
        assert len(ax.get_yticks()) == len(getattr(plan, "plan", plan).candidates)
        fits(ax)


# Selection ----------------------------------------------------------------------------------------------------------


def test_selection_draws_every_candidate_with_its_error_and_marks_the_choice(X):
    choice = fk.kpca_select(X[:60], "gaussian", [1, 2], folds=2)
    ax = plot.selection(choice)
    assert ax.get_xlabel() == "sigma" and "pre-images" in ax.get_ylabel() and "smaller" in ax.get_ylabel()
    assert [x.get_text() for x in ax.get_legend().get_texts()] == ["c = 1", "c = 2", "best", "choice"]
    assert [container[0].get_marker() for container in ax.containers] == ["o", "^"]  # a grey print has no colours
    for c, container in zip((1, 2), ax.containers):
        rows = choice.columns["c"] == c
        curve, _, (bars,) = container
        np.testing.assert_allclose(curve.get_xdata(), choice.columns["sigma"][rows])
        np.testing.assert_allclose(curve.get_ydata(), choice.columns["preimage"][rows])
        low, high = np.array([bar[:, 1] for bar in bars.get_segments()]).T
        np.testing.assert_allclose((high - low) / 2, choice.columns["preimage_se"][rows])
    star = line(ax, "choice")
    assert star.get_xdata() == [choice.kernel.sigma] and star.get_ydata() == [
        choice.columns["preimage"].flat[choice.chosen_row]
    ]
    fits(ax)


def test_selection_of_other_measures_kernels_and_one_kernel(X):
    X = X[:40]
    grids = {"polynomial": {"degree": [2, 3]}, "gaussian": {"sigma": [1.0, 2.0]}, "linear": {}}
    choice = fk.kpca_select(X, grids, [1, 2], folds=2)
    ax = plot.selection(choice, measure="stability")
    assert "larger is better" in ax.get_ylabel() and ax.get_xlabel() == "sigma or degree"
    labels = {x.get_text() for x in ax.get_legend().get_texts()}
    lines = {f"{x}, c = {c}" for x in ("Gaussian", "Linear", "Polynomial") for c in (1, 2)}
    assert labels == lines | {f"choice: Linear, c = {choice.c}"}
    # at the right rim of the axes: the kernel has no place on the x axis
    star = line(ax, f"choice: Linear, c = {choice.c}")
    assert star.get_xdata() == [1.0] and star.get_transform() == ax.get_yaxis_transform()
    assert star.get_ydata() == [choice.columns["stability"][choice.chosen_row]]
    level = line(ax, "Linear, c = 2")
    assert level._unscaled_dash_pattern != line(ax, "Linear, c = 1")._unscaled_dash_pattern
    assert set(level.get_ydata()) == {choice.columns["stability"][-1]}
    fits(ax)
    # two parameters that vary, in one class among others: by the number of components
    grids = {"polynomial": {"degree": [2, 3], "offset": [0.5, 1]}, "linear": {}}
    ax = plot.selection(fk.kpca_select(X, grids, [1, 2], folds=2))
    assert ax.get_xlabel() == "number of components" and len(ax.containers) == 5
    # too many lines: the best of each class at each place
    grids = {"gaussian": {"sigma": [1.0, 2.0, 4.0]}, "laplacian": {"length_scale": [1.0, 2.0]}, "linear": {}}
    many = fk.kpca_select(X[:, [0, 1, 2, 0, 1, 2]], grids, [1, 2, 3, 4], folds=2)
    ax = plot.selection(many)
    labels = [x.get_text() for x in ax.get_legend().get_texts()]
    assert sorted(labels) == [
        "Gaussian, the best",
        "Laplacian, the best",
        "Linear, the best",
        f"best: Linear, c = {many.columns['c'][many.best_row]}",
        f"choice: Linear, c = {many.c}",
    ]
    gaussian = ax.containers[0][0].get_ydata()
    np.testing.assert_allclose(gaussian, np.nanmin(many.columns["preimage"][: 3 * 4].reshape(3, 4), axis=1))
    fits(ax)
    ax = plot.selection(fk.kpca_select(X, "linear", [1, 2, 3]))
    assert ax.get_xscale() == "linear" and "SPE" in ax.get_ylabel()
    assert len(plot.selection(fk.kpca_select(X, "linear", 2)).get_legend().get_texts()) == 3
