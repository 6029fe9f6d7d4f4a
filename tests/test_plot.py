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
    colours, at = legend(ax), drawn(ax)
    assert list(colours) == sorted(set(labels)) and len(set(colours.values())) == classes
    for position, label in zip(points[:, :2].tolist(), labels):
        assert at[tuple(position)] == pytest.approx(colours[label])


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


def test_without_matplotlib(points, monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **options):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot.scores(points)


def test_importing_imports_no_matplotlib():
    code = "import sys, fastkpca.plot, fastkpca.cli; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
