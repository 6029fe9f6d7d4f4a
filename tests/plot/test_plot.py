"""Plots: what is drawn is the data, coloured by the labels; nothing needs a display."""

from __future__ import annotations

import builtins
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import fastkpca as fk
from fastkpca import plot

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from matplotlib.figure import Figure

MANY = np.random.default_rng(0).standard_normal((30_000, 2))


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
    colours = {name: handle.get_facecolor() for handle, name in zip(handles, names)}
    return {name: tuple(faces[0][:3]) for name, faces in colours.items() if len(faces)}


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


def test_one_component_and_few_or_many_labels(points):
    ax = plot.scores(points[:, :1])
    assert set(drawn(ax)) == {(float(i + 1), float(y)) for i, y in enumerate(points[:, 0])}
    assert ax.get_xlabel() == "row" and ax.get_ylabel() == "PC1"
    assert list(legend(plot.scores(points, np.arange(60) % 4 * 1.0))) == ["0", "1", "2", "3"]
    assert list(legend(plot.scores(points, np.arange(60) % 2 == 0))) == ["0", "1"]
    for labels in ([f"{i:03}" for i in range(60)], np.arange(60).astype("m8[s]")):
        assert list(legend(plot.scores(points, labels))) == ["60 labels, coloured in their order"]


@pytest.mark.parametrize("classes", [3, 10, 15, 26])
def test_words_get_a_legend_with_the_colours_of_their_points(points, classes):
    labels = np.array([f"class {chr(97 + i % classes)}" for i in range(len(points))])
    ax = plot.scores(points, labels)
    colours, at, marks = legend(ax), drawn(ax), shapes(ax)
    handles, names = ax.get_legend_handles_labels()
    marker = {name: handle.get_paths()[0].vertices.tobytes() for handle, name in zip(handles, names)}
    assert list(colours) == sorted(set(labels)) and len({(colours[name], marker[name]) for name in names}) == classes
    if classes <= 10:  # a grey print tells them apart by their markers
        assert len(set(marker.values())) == classes and len(set(colours.values())) == classes
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
    ax = Figure().add_subplot()
    assert plot.scores(points, ax=ax) is ax
    for suffix in ("png", "pdf"):
        plot.save(ax, tmp_path / f"x.{suffix}")
        assert (tmp_path / f"x.{suffix}").stat().st_size > 1000
    content = (tmp_path / "x.pdf").read_bytes()  # letters stay letters
    assert b"/FontFile2" in content and b"/Type3" not in content
    (tmp_path / "x.png").write_bytes(b"another's")
    with pytest.raises(FileExistsError, match=r"plot.save\(..., overwrite=True\) replaces it"):
        plot.save(ax, tmp_path / "x.png")
    with pytest.raises(ValueError, match="xyz' ends in no format that matplotlib writes"):
        plot.save(ax, tmp_path / "y.xyz")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.pdf", "x.png"]


@pytest.mark.parametrize("suffix", ["png", "svg", "svgz", "pdf", "ps", "eps"])
def test_a_picture_replaces_one_of_ours_and_none_of_others(points, tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    ax, other = plot.scores(points), Figure()
    for _ in range(2):  # as a script that runs again
        plot.save(ax, path)
    before = path.read_bytes()
    other.savefig(path)
    assert path.read_bytes() != before
    with pytest.raises(FileExistsError):
        plot.save(ax, path)
    plot.save(ax, path, overwrite=True)
    (tmp_path / "empty.svgz").write_bytes(b"")
    with pytest.raises(FileExistsError):
        plot.save(ax, tmp_path / "empty.svgz")


def test_what_is_not_drawn_need_not_be_finite(points):
    points[5, 1] = np.nan
    assert plot.scores(points, components=(0, 2))


def test_other_components_and_three_of_them(points):
    ax = plot.scores(points, components=(2, 0))
    assert set(drawn(ax)) == set(map(tuple, points[:, [2, 0]].tolist()))
    assert ax.get_xlabel() == "PC3" and ax.get_ylabel() == "PC1"
    ax = plot.scores(points, np.arange(60) % 3, components=(0, 1, 2))
    assert ax.name == "3d" and ax.get_zlabel() == "PC3" and list(legend(ax)) == ["0", "1", "2"]
    clouds = [np.column_stack(one._offsets3d) for one in ax.collections if len(one._offsets3d[0])]
    assert {tuple(p) for p in np.concatenate(clouds).tolist()} == set(map(tuple, points.tolist()))
    given = Figure().add_subplot(projection="3d")
    assert plot.scores(points, ax=given, components=(0, 1, 2)) is given


def test_many_points_are_one_picture_in_a_vector_file(tmp_path):
    plot.save(plot.scores(MANY, density=False), tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size < 1_000_000 and b"<image" in (tmp_path / "x.svg").read_bytes()


def test_very_many_rows_are_counted_in_cells_and_new_ones_drawn_over_them():
    new = MANY[:7] + 9.0
    ax = plot.scores(MANY, new=new, gridsize=50)
    cells, over = ax.collections[:2]
    assert int(cells.get_array().sum()) == 30_000 and cells.get_array().min() == 1
    assert over.get_offsets().tolist() == new.tolist() and "new rows" in ax.get_legend_handles_labels()[1]
    for points in (plot.scores(MANY, density=False), plot.scores(MANY, alpha=0.1)):
        assert len(points.collections[0].get_offsets()) == 30_000
    assert len(plot.scores(MANY[:50], density=True).collections[0].get_offsets()) < 51


def test_new_rows_are_hollow_and_in_the_colours_of_their_classes(points):
    new = points[:7] + 0.1
    ax = plot.scores(points, np.arange(60) % 3, new=new, new_labels=np.arange(7) % 2 + 1)
    colours = legend(ax)
    hollow = [c for c in ax.collections if len(c.get_offsets()) and not len(c.get_facecolors())]
    assert {tuple(p) for c in hollow for p in c.get_offsets().tolist()} == set(map(tuple, new[:, :2].tolist()))
    edges = {tuple(e[:3]) for c in hollow for e in c.get_edgecolors()}
    assert edges == {colours["1"], colours["2"]} and "new rows" in ax.get_legend_handles_labels()[1]
    without = plot.scores(points, new=new)
    assert [len(c.get_offsets()) for c in without.collections[:2]] == [60, 7] and legend(without) == {}


def test_a_style_with_an_entry_for_each_point_stays_with_its_point(points):
    sizes = np.arange(1.0, 61.0)
    for labels in (points[:, 2], np.arange(60) % 3, None):
        ax = plot.scores(points, labels, s=sizes)
        drawn = {
            tuple(p): s
            for c in ax.collections
            if len(c.get_offsets())
            for p, s in zip(c.get_offsets().tolist(), c.get_sizes())
        }
        assert drawn == {tuple(p): s for p, s in zip(points[:, :2].tolist(), sizes)}


def test_numbers_as_objects_are_numbers_and_durations_stand_in_their_order(points):
    """As words 10 would stand before 2; a column of a data frame that may miss values holds objects."""
    pd = pytest.importorskip("pandas")
    counts = pd.Series(np.arange(60) % 12, dtype="Int64")
    for labels in (counts, counts.astype(object), [int(x) for x in counts]):
        assert plot.scores(points, labels).get_legend_handles_labels()[1] == [str(i) for i in range(12)]
    many = plot.scores(points, pd.Series(np.arange(60), dtype="Int64").astype(object))
    assert [ax.get_label() for ax in many.figure.axes] == ["", "<colorbar>"]
    names = plot.scores(points, np.arange(60).astype("m8[s]") % np.timedelta64(12, "s")).get_legend_handles_labels()[1]
    assert names == [f"{i} seconds" for i in range(12)]


def test_style_is_passed_on(points):
    ax = plot.scores(points, s=3.0, alpha=0.5, color="red")
    assert ax.collections[0].get_sizes() == [3.0] and ax.collections[0].get_alpha() == 0.5
    assert drawn(ax)[tuple(points[0, :2].tolist())] == (1.0, 0.0, 0.0)
    ax = plot.scores(points, points[:, 2], cmap="magma")
    assert ax.collections[0].get_cmap().name == "magma"
    colours = legend(plot.scores(points, np.arange(60) % 3, cmap="tab10"))
    assert colours["1"] == pytest.approx((1.0, 0.498, 0.0549), abs=1e-3)  # its second colour


def test_estimators_are_drawn_as_their_models():
    pytest.importorskip("sklearn")
    from fastkpca.sklearn import KernelPCA

    X = MANY[:80]
    estimator = KernelPCA(4, kernel="rbf", gamma=0.5).fit(X)
    assert plot.scores(estimator).get_xlabel() == plot.scores(estimator.model_).get_xlabel()
    assert len(plot.biplot(estimator, fk.kpca_importance(estimator, X)).texts) == 2
    sure = fk.kpca_uncertainty(estimator, X, n_bootstrap=100, n_permutations=0)
    assert plot.scree(estimator, uncertainty=sure).get_yscale() == "log"
    assert plot.contours(estimator, X, component=[0, 1, 2, 3]).shape == (4,)
    assert plot.candidates(estimator).get_xlabel() == "predicted seconds"


def test_without_matplotlib(points, monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **options):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot.scores(points)


def test_pyplot_is_left_alone(monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    m = fk.kpca(MANY[:80], "gaussian", 4, sigma=1.0, method="krylov")
    plot.scores(m, np.arange(80) % 3), plot.scree(m), plot.contours(m, component=[0, 1]), plot.convergence(m)
    plot.accuracy([m]), plot.candidates(m)
    assert "matplotlib.pyplot" not in sys.modules


def test_an_ellipse_holds_its_share_of_a_normal_class():
    rng = np.random.default_rng(0)
    mix = np.array([[2.0, 0.5], [1.0, 1.0]])
    points = np.vstack([rng.standard_normal((4000, 2)) @ mix + 10, rng.standard_normal((4000, 2))])
    labels = np.repeat(["a", "b"], 4000)
    ax = plot.scores(points, labels, ellipses=0.9)
    for value, ellipse in zip(("a", "b"), ax.patches):
        rows = points[labels == value]
        share = ellipse.get_path().contains_points(ellipse.get_patch_transform().inverted().transform(rows)).mean()
        assert abs(share - 0.9) < 0.02  # four standard deviations of 4000 rows


def test_classes_stand_in_the_order_that_people_count_in(points):
    labels = np.array(["lot 10", "lot 2", "lot 02", "b", "Lot 1"])[np.arange(len(points)) % 5]
    ax = plot.scores(points, labels)
    colours, at = legend(ax), drawn(ax)
    assert list(colours) == ["Lot 1", "b", "lot 02", "lot 2", "lot 10"]
    for position, label in zip(points[:, :2].tolist(), labels):  # of its own class, whatever the order
        assert at[tuple(position)] == pytest.approx(colours[label])
    ax = plot.scores(points, labels, new=points[:3], new_labels=["lot 30", "lot 2", "b"], ellipses=0.9)
    assert list(legend(ax))[-2:] == ["lot 10", "lot 30"]
    edges = [patch.get_edgecolor()[:3] for patch in ax.patches]
    assert edges == [pytest.approx(colour) for name, colour in legend(ax).items() if name != "lot 30"]


@pytest.mark.parametrize(
    "names",
    [
        ["-10 K", "-5 K", "2 K", "10 K"],
        ["0.25", "0.5", "x"],
        ["1", "9" * 30],
        ["2x", "10x", "a2", "a10b1", "a10b2"],
    ],
)
def test_numbers_in_names_are_numbers(names):
    ax = plot.scores(np.random.default_rng(0).standard_normal((len(names), 2)), names[::-1])
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == names


def test_more_classes_than_colours_are_told_by_their_marks(points):
    for n, expected in ((10, "lot"), (15, "lot\n(10 colours: see the marks)")):
        ax = plot.scores(points, [f"lot {i % n}" for i in range(60)], label_name="lot")
        assert ax.figure.legends[0].get_title().get_text() == expected


def test_times_and_words_that_are_times():
    points = MANY[:40]
    days = np.arange("2026-03-01", "2026-04-10", dtype="datetime64[D]")
    for given in (days.astype(str), days.astype(object), list(days.astype("M8[ns]"))):
        ax = plot.scores(points, given, label_name="day")
        ax.figure.draw_without_rendering()
        (bar,) = [x for x in ax.figure.axes if x is not ax]
        assert bar.get_ylabel() == "day" and "Apr" in [text.get_text() for text in bar.get_yticklabels()]
    ax = plot.scores(points, [f"2026-03-0{1 + i % 3} 06:00" for i in range(40)])
    names = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert names == ["2026-03-01 06:00", "2026-03-02 06:00", "2026-03-03 06:00"]
    ax = plot.scores(points, ["2026-02-30", "2026-03-01"] * 20)  # no such day: words
    assert len(ax.figure.legends[0].get_texts()) == 2
