"""A component as a function: its contours over the plane of two inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from ..base.checks import check_count, check_flag, check_list, check_numbers
from ..base.process_memory import DEFAULT_MEMORY
from ..model.project import kpca_project
from ..model.result import check_model
from ..model.rows import new_rows
from ..rows.foreign import named_columns
from ._figure import MAX_MARKS, colour_map, component_label, require_matplotlib, several_axes, short
from ._scores import check_components, check_labels, check_number_of, draw_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _Options(TypedDict, total=False):
    """The options of ``contours`` that are the same for one component and for several."""

    inputs: Sequence[int | str]
    at: Any
    labels: Any
    limits: Any
    levels: int
    resolution: int
    points: bool
    cmap: Any


@overload
def contours(model: Any, X: Any = None, ax: Any = None, *, component: int = 0, **options: Unpack[_Options]) -> Axes: ...
@overload
def contours(
    model: Any, X: Any = None, ax: Any = None, *, component: Sequence[int], **options: Unpack[_Options]
) -> np.ndarray: ...
def contours(
    model: Any,
    X: Any = None,
    ax: Any = None,
    *,
    component: int | Sequence[int] = 0,
    inputs: Sequence[int | str] = (0, 1),
    at: Any = None,
    labels: Any = None,
    limits: Any = None,
    levels: int = 12,
    resolution: int = 100,
    points: bool = True,
    cmap: Any = "RdBu_r",
) -> Axes | np.ndarray:
    """Contours of components over the plane of two inputs: where lines are dense, a component changes fast.

    Lines are dashed where the component is negative; the bold one is where it is zero.

    Parameters
    ----------
    model : KPCAModel
        Not of a precomputed kernel, which has no inputs.
    X : array_like (n, d), optional
        Rows to draw; they also give the limits and the values of the other inputs. By default the training rows, where
        the model holds them.
    ax : Axes or array of Axes, optional
        Where to draw: one for each component. By default a new figure.
    component : int or sequence of int
        Columns of the scores, from 0.
    inputs : two int or str
        Columns of the rows, from 0, or their names where X, or the rows of the fit, is a data frame.
    at : array_like (d,), optional
        Values of the other inputs; their mean over X by default.
    labels : array_like (n,), optional
        Colours the rows, as in ``scores``; the only colour bar here is that of the component.
    limits : ((low, high), (low, high)), optional
        Ranges of the two inputs; by default those of X, and a tenth more on each side.
    levels : int
        Approximate number of contour lines, 256 at most.
    resolution : int
        Points of the grid in each direction: limited by 2 GiB for the grid and its scores.
    points : bool
        False: the rows are not drawn. Of more than 2000 rows a seeded sample is drawn.
    cmap : str or Colormap
        A diverging one: zero is its middle.

    Returns
    -------
    matplotlib.axes.Axes, or ndarray of them
        One for one component, an array for a sequence.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError
        The model is of a precomputed matrix or of one column; it holds no rows and none are given. There are no such
        inputs or components; the number of axes is not that of the components; or the grid is too fine.
    TypeError
        An argument is of another type.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> X = np.random.default_rng(0).standard_normal((60, 2))
    >>> model = fk.kpca(X, "gaussian", 4, sigma=1.0)
    >>> plot.contours(model, X, component=[0, 1, 2, 3]).shape
    (4,)
    """
    model = check_model(model)
    several = isinstance(component, Iterable) and not isinstance(component, str)
    chosen = check_components(component if several else [component], model.n_components)
    check_flag(points, "points")
    if not chosen:
        raise ValueError("component is empty; give one or more")
    if model.kernel.by_number:
        raise ValueError("a model of a precomputed matrix has no inputs to draw contours over")
    rows = _rows(model, X)
    named = named_columns(X)
    names = named.names if named else model.feature_names or ()
    first, second = _inputs(inputs, names, model.n_features)
    labels = check_labels(labels, 0 if rows is None else len(rows))
    spans = _limits(limits, rows, (first, second))
    grid, x, y = _grid(model, rows, at, (first, second), spans, resolution)
    levels = check_count(levels, "levels", most=256)  # the number of colours of a colour map
    require_matplotlib()
    cmap = colour_map(cmap)
    values = kpca_project(model, grid)[:, chosen]

    columns = {1: 1, 2: 2, 4: 2}.get(len(chosen), 3)
    axes = several_axes(ax, len(chosen), "components", columns, (6.2, 5) if len(chosen) == 1 else (3.6, 3.1))
    classes: list[Any] = []
    for one, i, column in zip(axes, chosen, values.T):
        _draw(one, x, y, column.reshape(len(y), len(x)), levels, cmap)
        if points and rows is not None:
            seen = (
                slice(None) if len(rows) <= MAX_MARKS else np.random.default_rng(0).permutation(len(rows))[:MAX_MARKS]
            )
            props: dict[str, Any] = {"color": "black", "s": 5} if labels is None else {"edgecolors": "black", "s": 10}
            of_seen = None if labels is None else labels[seen]
            classes = draw_points(one, rows[seen][:, [first, second]], of_seen, bar=False, **props)
        one.set_xlim(spans[0])
        one.set_ylim(spans[1])
        one.set_xlabel(_label(names, first))
        one.set_ylabel(_label(names, second))
        one.set_title(component_label(i, model.explained), fontsize="medium")
    if classes and ax is None:
        axes[0].figure.legend(handles=classes, loc="outside upper center", ncols=min(len(classes), 6), frameon=False)
    elif classes:
        axes[-1].legend(handles=classes, fontsize="small")
    return axes if several else axes[0]


def _rows(model: Any, X: Any) -> np.ndarray | None:
    if X is not None:
        return model.in_units_of_rows(new_rows(model, X, purpose="plot.contours").rows.all())
    if model.projector.grows_with_n:
        return model.in_units_of_rows(model.projector.landmarks)
    return None


def _inputs(inputs: Sequence[int | str], names: Sequence[str], d: int) -> tuple[int, int]:
    if d < 2:
        raise ValueError("contours need two inputs, the rows of this model have one column")
    listed = check_list(inputs, "inputs", "two columns of the rows, as in (0, 1)")
    if len(listed) != 2:
        raise ValueError(f"inputs is {inputs!r}; two columns of the rows, as in (0, 1), are needed")
    first, second = (_column(name, names, d) for name in listed)
    if first == second:
        raise ValueError(f"inputs is {inputs!r}; two different columns are needed")
    return first, second


def _column(name: int | str, names: Sequence[str], d: int) -> int:
    if isinstance(name, str):
        if name not in names:
            raise ValueError(f"there is no input {name!r}; the columns of X are {list(names) or 'not named'}")
        return names.index(name)
    return check_number_of(name, d, f"input {name!r}: the rows have {d} columns")


def _limits(limits: Any, rows: np.ndarray | None, inputs: tuple[int, int]) -> np.ndarray:
    if limits is not None:
        need = "((low, high), (low, high)) of the two inputs"
        spans = check_numbers(limits, "limits", need, (2, 2))
        if not (spans[:, 0] < spans[:, 1]).all():
            raise ValueError(f"limits are {limits!r}; give {need}")
        return spans
    if rows is None:
        raise ValueError("this model does not hold its training rows; give X, or limits and at")
    spans = np.array([[rows[:, i].min(), rows[:, i].max()] for i in inputs], dtype=float)
    width = spans[:, 1] - spans[:, 0]
    margin = np.where(width > 0, 0.1 * width, 0.5)
    return spans + np.outer(margin, [-1, 1])


def _grid(
    model: Any, rows: np.ndarray | None, at: Any, inputs: tuple[int, int], spans: np.ndarray, resolution: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    d = model.n_features
    if at is not None:
        fixed = check_numbers(at, "at", f"a value for each of the {d} inputs", (d,))
    elif rows is not None:
        fixed = rows.mean(axis=0, dtype=np.float64)
    elif d == 2:
        fixed = np.zeros(2)
    else:
        raise ValueError("this model does not hold its training rows; give X, or the values of the other inputs (at)")
    row = 8 * (d + model.n_components)
    resolution = check_count(resolution, "resolution", 2, most=int((DEFAULT_MEMORY / row) ** 0.5))
    x, y = (np.linspace(low, high, resolution) for low, high in spans)
    grid = np.tile(fixed, (resolution * resolution, 1))
    grid[:, inputs[0]] = np.tile(x, resolution)
    grid[:, inputs[1]] = np.repeat(y, resolution)
    return grid, x, y


def _draw(ax: Any, x: np.ndarray, y: np.ndarray, values: np.ndarray, levels: int, cmap: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    largest = float(np.abs(values).max()) or 1.0
    # whole steps on either side of zero, where the component changes sign
    steps = MaxNLocator(levels, symmetric=True).tick_values(-largest, largest)
    filled = ax.contourf(x, y, values, levels=steps, cmap=cmap, vmin=steps[0], vmax=steps[-1], alpha=0.6)
    lines = ["dashed" if step < 0 else "solid" for step in steps]  # the sign shows in a grey print too
    ax.contour(x, y, values, levels=steps, colors="0.35", linewidths=0.6, linestyles=lines)
    if values.min() < 0 < values.max():
        ax.contour(x, y, values, levels=[0.0], colors="black", linewidths=1.4)
    bar = ax.figure.colorbar(filled, ax=ax, pad=0.02)
    bar.outline.set_visible(False)


def _label(names: Sequence[str], i: int) -> str:
    return short(names[i]) if names else f"input {i}"
