"""Eigenvalues with their intervals, and how much of the variance the components explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.checks import check_count, check_flag
from ..model.result import KPCAModel, check_model, widest_interval
from ..model.statistics.uncertainty import Uncertainty
from ._figure import AMBER, BLUE, GREY, ORANGE, axes_or_new, key_above, plain_numbers, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def scree(
    model: KPCAModel,
    ax: Axes | None = None,
    *,
    n_components: int | None = None,
    cumulative: bool = False,
    uncertainty: Uncertainty | None = None,
) -> Axes:
    """Eigenvalues with the intervals that they lie in, and on demand the cumulative percentage of the variance.

    The eigenvalues are on a logarithmic scale; bars reach from the lower to the upper end of each interval (from the
    foot of the picture where the lower end is not positive).

    Parameters
    ----------
    model : KPCAModel
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    n_components : int, optional
        Number of leading components; all by default.
    cumulative : bool
        Whether a second axis, on the right, shows the cumulative percentage, with a band where the total variance is
        known only within bounds.
    uncertainty : Uncertainty, optional
        From ``kpca_uncertainty``: broad bars then show confidence intervals for the eigenvalues of the population, next
        to the numerical intervals of those of these rows. A dashed line shows the eigenvalues of permuted columns. Bars
        of components that do not exceed that are paler. Bars are cut off where they reach ten times below the smallest
        or above the largest eigenvalue.

    Returns
    -------
    matplotlib.axes.Axes
        That of the eigenvalues.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError, TypeError
        n_components is not a whole number between 1 and the model's; the uncertainty is of another model, or none; or
        ``ax`` are no axes.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> plot.scree(fk.kpca(X, "gaussian", 10, sigma=2.0)).get_yscale()
    'log'
    """
    model = check_model(model)
    c = model.n_components if n_components is None else check_count(n_components, "n_components", least=0)
    if not 1 <= c <= model.n_components:
        raise ValueError(f"n_components is {n_components}; the model has 1 to {model.n_components}")
    check_flag(cumulative, "cumulative")
    if not isinstance(uncertainty, Uncertainty | None):
        raise TypeError(f"uncertainty is of type {type(uncertainty).__name__}; give what kpca_uncertainty returned")
    drawn = axes_or_new(ax)
    number = np.arange(1, c + 1)
    drawn.set_yscale("log")
    handles = [_numerical(drawn, model, number)]
    drawn.set_xlim(0.4, c + 0.6)
    whole_numbers(drawn)
    drawn.set_xlabel("component")
    drawn.set_ylabel("eigenvalue of the centred Gram matrix" if model.center else "eigenvalue of the Gram matrix")
    drawn.spines["top"].set_visible(False)
    if uncertainty is not None:
        handles += _population(drawn, model, uncertainty, c)
    if cumulative and np.isfinite(model.explained).all():
        handles.append(_cumulative(drawn, model, number))
    else:
        drawn.spines["right"].set_visible(False)
    key_above(drawn, handles)
    return drawn


def _numerical(ax: Any, model: KPCAModel, number: np.ndarray) -> Any:
    """The eigenvalues with the intervals of the model."""
    c = len(number)
    values, bounds = model.eigenvalues[:c], model.eigenvalue_bounds[:c]
    # a bar down to here means on this scale that there is no lower bound
    foot = float(values.min()) / 10
    low = np.maximum(bounds[:, 0], foot)
    size = float(np.clip(300 / c, 2, 6))
    interval = ax.errorbar(
        number,
        values,
        # lists: with an array of one number matplotlib 3.8 and 3.9 call what numpy warns of
        yerr=[np.maximum(values - low, 0).tolist(), np.maximum(bounds[:, 1] - values, 0).tolist()],
        fmt="o",
        color=BLUE,
        markersize=size,
        markeredgewidth=0,
        ecolor="black",
        elinewidth=float(np.clip(60 / c, 0.6, 1.2)),
        capsize=float(np.clip(90 / c, 0, 4)),
        capthick=0.9,  # without it markeredgewidth=0 removes the caps
        label=f"eigenvalue, {model.bounds_text} interval ≤ {widest_interval(model, c):.1g} of the largest",
    )
    plain_numbers(ax.yaxis)
    return interval


def _population(ax: Any, model: KPCAModel, uncertainty: Uncertainty, c: int) -> list[Any]:
    """Intervals of the population's eigenvalues, and what permuted columns reach."""
    from matplotlib.colors import to_rgba

    k = min(c, len(uncertainty.latent))
    if not np.allclose(uncertainty.latent[:k], model.latent[:k], rtol=0, atol=1e-2 * model.latent[0]):
        raise ValueError("the uncertainty is of another model; give kpca_uncertainty of this one")
    number = np.arange(1, k + 1)
    # a bar that ends here means that it reaches further, maybe without any end
    reach = model.eigenvalues[c - 1] / 10, model.eigenvalues[0] * 10
    low, high = np.clip(uncertainty.latent_interval[:k] * (model.count - model.center), *reach).T
    real = k if uncertainty.n_significant is None else uncertainty.n_significant
    dark, pale = to_rgba(AMBER, 0.55), to_rgba(AMBER, 0.2)
    look: dict[str, Any] = {"linewidth": 9 if k <= 20 else 4, "zorder": 1}
    label = f"{100 * uncertainty.level:g} % interval for the population"
    handles = [ax.vlines(number, low, high, colors=[dark if i <= real else pale for i in number], label=label, **look)]
    if real < k:
        label = "the same, of components that do not exceed permuted columns"
        handles.append(ax.vlines([], [], [], colors=pale, label=label, **look))
    top, bottom = float(high.max()), float(low.min())
    if uncertainty.permuted is not None:
        chance = uncertainty.permuted[:k] / 100 * model.total_variance * (model.count - model.center)
        label = f"reached by permuted columns in {100 * (1 - uncertainty.level):.3g} %"
        handles += ax.plot(number[: len(chance)], chance, linestyle="--", color=GREY, linewidth=1.2, label=label)
        top, bottom = max(top, float(chance.max())), min(bottom, float(chance.min()))
    # not around what matplotlib 3.8 takes for the limits of such lines on a logarithmic axis
    bounds = model.eigenvalue_bounds[:c]
    bottom, top = min(bottom, max(float(bounds.min()), reach[0])), max(top, float(bounds.max()))
    ax.set_ylim(bottom / 1.15, 1.15 * top)
    return handles


def _cumulative(ax: Any, model: KPCAModel, number: np.ndarray) -> Any:
    """The percentage on a second axis; its band covers all values within the intervals of eigenvalues and trace."""
    c = len(number)
    low_total, high_total = (x * (model.count - model.center) for x in model.total_variance_bounds)
    explained = np.cumsum(model.explained[:c])
    other = ax.twinx()
    low = 100 * np.cumsum(np.maximum(model.eigenvalue_bounds[:c, 0], 0)) / high_total
    if low_total > 0:
        high = 100 * np.cumsum(model.eigenvalue_bounds[:c, 1]) / low_total
        if explained[-1] <= 100:
            high = np.minimum(high, 100)  # without negative eigenvalues no more can be explained
    else:
        high = np.full(c, 100.0)
    other.fill_between(number, low, high, color=ORANGE, alpha=0.25, linewidth=0)
    marker = {"marker": "s", "markersize": 4} if c <= 30 else {}
    (line,) = other.plot(number, explained, color=ORANGE, label=f"cumulative share of {model.explained_of}", **marker)
    other.set_ylim(0, max(100.0, 1.05 * float(np.max(explained))) * 1.02)
    other.set_ylabel("cumulative share of the variance (%)", color=ORANGE)
    other.tick_params(axis="y", colors=ORANGE)
    other.spines["top"].set_visible(False)
    # points and intervals in front of the line
    ax.set_zorder(other.get_zorder() + 1)
    ax.patch.set_visible(False)
    return line
