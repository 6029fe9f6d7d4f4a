"""Plots: what is drawn is the data, coloured by the labels; nothing needs a display."""

from __future__ import annotations

import builtins
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from fastkpca import plot

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.fixture
def points():
    return np.random.default_rng(0).standard_normal((60, 3))


def drawn(ax) -> dict[tuple, tuple]:
    """Position -> colour of every point on the axes."""
    found = {}
    for collection in ax.collections:
        offsets = np.asarray(collection.get_offsets())
        colours = np.broadcast_to(collection.get_facecolors(), (len(offsets), 4)) if len(offsets) else []
        found |= {tuple(p): tuple(c[:3]) for p, c in zip(offsets.tolist(), colours)}
    return found


def legend(ax) -> dict[str, tuple]:
    handles, names = ax.get_legend_handles_labels()
    return {name: tuple(handle.get_facecolor()[0][:3]) for handle, name in zip(handles, names)}


def shapes(ax) -> dict[tuple, bytes]:
    """Position -> marker of every point on the axes."""
    found = {}
    for collection in ax.collections:
        for position in np.asarray(collection.get_offsets()).tolist():
            found[tuple(position)] = collection.get_paths()[0].vertices.tobytes()
    return found


def test_points_and_percentages(points):
    model = SimpleNamespace(score=points, explained=np.array([61.234, 0.01234, 1]))
    ax = plot.scores(model)
    assert set(drawn(ax)) == set(map(tuple, points[:, :2].tolist()))
    assert ax.get_xlabel() == "PC1 (61.2 %)" and ax.get_ylabel() == "PC2 (0.012 %)"
    assert ax.get_legend() is None
    assert plot.scores(points).get_xlabel() == "PC1"


def test_one_component(points):
    ax = plot.scores(points[:, :1])
    assert set(drawn(ax)) == {(float(i + 1), float(y)) for i, y in enumerate(points[:, 0])}
    assert ax.get_xlabel() == "row" and ax.get_ylabel() == "PC1"


@pytest.mark.parametrize("classes", [3, 10, 15, 26])
def test_words_get_a_legend_with_the_colours_of_their_points(points, classes):
    labels = np.array([f"class {chr(97 + i % classes)}" for i in range(len(points))])
    ax = plot.scores(points, labels)
    colours, at, marks = legend(ax), drawn(ax), shapes(ax)
    handles, names = ax.get_legend_handles_labels()
    marker = {name: handle.get_paths()[0].vertices.tobytes() for handle, name in zip(handles, names)}
    assert list(colours) == sorted(set(labels)) and len({(colours[name], marker[name]) for name in names}) == classes
    if classes <= 10:
        assert len(set(marker.values())) == 1 and len(set(colours.values())) == classes
    for position, label in zip(points[:, :2].tolist(), labels):
        assert at[tuple(position)] == pytest.approx(colours[label]) and marks[tuple(position)] == marker[label]
    ax.figure.draw_without_rendering()
    box, figure = ax.figure.legends[0].get_window_extent(), ax.figure.bbox
    assert figure.x0 <= box.x0 and box.x1 <= figure.x1 and ax.get_window_extent().width > 300  # nothing is cut off


def test_long_names_are_shortened_and_fit(points):
    ax = plot.scores(points, np.array([f"a name of class {i % 26:02} that goes on and on and on" for i in range(60)]))
    ax.figure.draw_without_rendering()  # warnings are errors: a layout that collapses is one
    assert max(map(len, legend(ax))) <= 40
    box = ax.figure.legends[0].get_window_extent()
    assert box.x1 <= ax.figure.bbox.x1 and box.x0 >= ax.get_window_extent().x1


def test_few_whole_numbers_get_a_legend(points):
    ax = plot.scores(points, np.arange(60) % 4 * 1.0)
    assert list(legend(ax)) == ["0", "1", "2", "3"]
    assert list(legend(plot.scores(points, np.arange(60) % 2 == 0))) == ["0", "1"]


def test_other_numbers_get_a_colour_bar(points):
    from matplotlib import colormaps

    labels = points[:, 2]
    ax = plot.scores(points, labels)
    ax.figure.draw_without_rendering()
    assert ax.get_legend() is None and len(ax.figure.axes) == 2
    at = drawn(ax)
    expected = colormaps["viridis"]((labels - labels.min()) / np.ptp(labels))
    for position, colour in zip(points[:, :2].tolist(), expected):
        assert at[tuple(position)] == pytest.approx(tuple(colour[:3]))


def test_axes_of_the_caller_and_saving(points, tmp_path):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert plot.scores(points, ax=ax) is ax
    for suffix in ("png", "pdf", "svg"):
        plot.save(plot.scores(points, np.arange(60) % 3), tmp_path / f"x.{suffix}")
        assert (tmp_path / f"x.{suffix}").stat().st_size > 1000
    with pytest.raises(FileExistsError):
        plot.save(ax, tmp_path / "x.png")
    with pytest.raises(ValueError, match="xyz"):
        plot.save(ax, tmp_path / "y.xyz")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.pdf", "x.png", "x.svg"]


def test_many_labels_do_not_make_an_endless_legend():
    ax = plot.scores(
        np.random.default_rng(0).standard_normal((500, 2)), np.array([f"{i % 100:03}" for i in range(500)])
    )
    assert ax.get_legend() is None


def test_wrong_shapes(points):
    with pytest.raises(ValueError, match=r"labels have shape \(59,\); one for each of the 60"):
        plot.scores(points, np.zeros(59))
    with pytest.raises(ValueError, match=r"scores have shape \(60,\)"):
        plot.scores(points[:, 0])
    for components in ((), (0, 1, 2, 0), 0, "xy", (0, 0.5)):
        with pytest.raises(ValueError, match="one to three columns"):
            plot.scores(points, components=components)
    for components in ((0, 3), (-1, 0)):
        with pytest.raises(ValueError, match=r"no component (3|-1): the model has 3, counted from 0"):
            plot.scores(points, components=components)


@pytest.mark.parametrize("missing", [np.nan, np.inf, None])
def test_what_is_not_finite_is_refused(points, missing):
    for labels in ([1.0] * 60, ["a"] * 60):
        labels = np.array(labels, dtype=object if missing is None or labels[0] == "a" else float)
        labels[7] = missing
        if labels.dtype == object and missing == np.inf:
            continue  # a word like any other
        with pytest.raises(ValueError, match=r"labels are missing or not finite \(first at row 7\)"):
            plot.scores(points, labels)
    if missing is not None:
        points[5, 1] = missing
        with pytest.raises(ValueError, match="scores are not finite .first at row 5"):
            plot.scores(points)
        assert plot.scores(points, components=(0, 2))  # what is drawn is finite


def test_other_components_and_three_of_them(points):
    from matplotlib.figure import Figure

    ax = plot.scores(points, components=(2, 0))
    assert set(drawn(ax)) == set(map(tuple, points[:, [2, 0]].tolist()))
    assert ax.get_xlabel() == "PC3" and ax.get_ylabel() == "PC1"
    ax = plot.scores(points, np.arange(60) % 3, components=(0, 1, 2))
    assert ax.name == "3d" and ax.get_zlabel() == "PC3" and list(legend(ax)) == ["0", "1", "2"]
    cloud = np.column_stack(ax.collections[0]._offsets3d)
    assert {tuple(p) for p in cloud.tolist()} == set(map(tuple, points.tolist()))
    given = Figure().add_subplot(projection="3d")
    assert plot.scores(points, ax=given, components=(0, 1, 2)) is given
    with pytest.raises(ValueError, match="projection"):
        plot.scores(points, ax=Figure().add_subplot(), components=(0, 1, 2))
    with pytest.raises(ValueError, match="two-dimensional"):
        plot.scores(points, ax=given)


def test_many_points_are_one_picture_in_a_vector_file(tmp_path):
    plot.save(plot.scores(np.random.default_rng(0).standard_normal((100_000, 2))), tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size < 2_000_000 and b"<image" in (tmp_path / "x.svg").read_bytes()


def test_without_matplotlib(points, monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **options):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot.scores(points)


def test_pyplot_is_left_alone():
    code = """
import sys, numpy as np, fastkpca as fk
from fastkpca import plot
X = np.random.default_rng(0).standard_normal((80, 2))
m = fk.kpca(X, "gaussian", 4, sigma=1.0, method="krylov")
plot.scores(m, np.arange(80) % 3), plot.scree(m), plot.contours(m, component=[0, 1]), plot.convergence(m)
plot.accuracy([m]), plot.candidates(m)
assert 'matplotlib.pyplot' not in sys.modules
"""
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_importing_imports_no_matplotlib():
    code = "import sys, fastkpca.plot, fastkpca.cli; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
