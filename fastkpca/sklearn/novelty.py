"""``KernelPCANovelty``: which rows are unlike the training rows, by their distance from the kernel components."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OutlierMixin, _fit_context
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..base.rounding import EPS
from ..errors import LimitsWarning, warn_caller
from ..fit.baseline import choose
from ..model.limits import OrderStatistic
from ..model.monitoring.novelty import kpca_spe, kpca_t2, share_of_ceiling
from ..model.result import KPCAModel
from ..rows.summary import SAMPLE_ROWS
from ..rows.values import check_weights
from .base import KernelEstimator
from .decomposition import KernelPCA

COLUMNS = ("n_features_in_", "feature_names_in_")
"""Attributes that scikit-learn's check of rows has set."""
FALSE_ALARMS = 0.05
"""Share of ordinary new rows that contamination="auto" takes for novel."""
LEFT_OUT = 0.2
"""Fraction of the held-out rows, or the number of rows that the limit needs."""


@dataclass(eq=False, repr=False, kw_only=True)
class KernelPCANovelty(OutlierMixin, KernelEstimator):
    """Novelty detection by kernel PCA: rows whose images lie far from the components are novel.

    Parameters
    ----------
    n_components : 'auto', int or float, default='auto'
        Number of components, or the part of the variance that they explain. 'auto': chosen with the kernel where that
        is 'auto', else 0.9.
    kernel : 'auto', str, callable, or kernel of fastkpca, default='auto'
        'auto': linear or Gaussian, whichever finds more faults that are simulated in the training rows, as in
        ``fastkpca.kpca_baseline``; 'rbf' where ``gamma`` is given. Else as for ``KernelPCA``, like the next four; not
        'precomputed'.
    gamma : float, default=None
    degree : float, default=3
    coef0 : float, default=1
    kernel_params : dict, default=None
    statistic : {'auto', 'spe', 't2', 'both'}, default='auto'
        'spe': squared distance from the components (Hoffmann 2007). 't2': Hotelling's T^2, the distance from the mean
        within them. 'both': the sum of both, each over its mean on the training rows. 'auto': 'both' where the number
        of components is chosen with the kernel, else 'spe'.
    contamination : 'auto' or float, default='auto'
        'auto': new ordinary rows lie beyond the limit with probability 5 % at most, for any distribution. The
        components are those of four fifths of the rows, drawn at random, and the limit is the order statistic of the
        others. At least 19 are left out, or half of the rows, where a `LimitsWarning` tells the larger probability. A
        number in (0, 0.5]: the components are those of all rows, and this share of them lies beyond the limit, as in
        scikit-learn's own detectors. They lie nearer to their own components than new rows do, so that more than this
        share of new rows is flagged. For another rate of false alarms set ``offset_`` after the fit, to minus a limit
        of ``fastkpca.kpca_limits`` on ordinary rows that ``fit`` has not seen.
    tol : float, default=1e-4
        As for ``KernelPCA``, like the following.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
    verbose : int, default=0

    Attributes
    ----------
    offset_ : float
        ``decision_function`` is ``score_samples - offset_``; novel rows have a negative one.
    pca_ : KernelPCA
    model_ : fastkpca.KPCAModel
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names of columns that are strings.

    See Also
    --------
    fastkpca.kpca_spe : The distance, with bounds.
    fastkpca.kpca_limits : Limits with a probability, for control charts.

    References
    ----------
    Hoffmann, Kernel PCA for novelty detection, Pattern Recognition 40 (2007).

    Examples
    --------
    >>> import numpy as np
    >>> from fastkpca.sklearn import KernelPCANovelty
    >>> t = np.random.default_rng(0).uniform(0, 2 * np.pi, 400)
    >>> ring = np.column_stack([np.cos(t), np.sin(t)])
    >>> KernelPCANovelty(gamma=2.0).fit(ring).predict([[0.0, 1.0], [0.0, 0.0]])
    array([ 1, -1])
    """

    n_components: int | float | str = field(default="auto", kw_only=False)
    kernel: Any = "auto"
    statistic: str = "auto"
    contamination: str | float = "auto"
    tol: float = 1e-4

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = KernelEstimator._parameter_constraints | {
        "n_components": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
        ],
        "statistic": [StrOptions({"auto", "spe", "t2", "both"})],
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCANovelty:
        """Learn what ordinary rows are like.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Ten rows at least.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative: a whole number counts the row that many times, and zero leaves it out; so it is in the
            components, in the share that ``contamination`` is of, and in the limit of "auto". Of a weight of 5 some
            copies are left out and some are not, as of a row that is there five times: the 5 % of "auto" hold where
            the copies are observations of their own, as counts are. Where a weight says how much one observation
            matters, its copies know each other, and more new rows are flagged. Give it as ``contamination`` a number,
            or set ``offset_`` by rows that ``fit`` has not seen.

        Returns
        -------
        self : KernelPCANovelty
        """
        if self._precomputed:
            raise ValueError("KernelPCANovelty needs k(x, x) of new rows, which a precomputed matrix does not hold")
        X = self._validated(X, reset=True)
        weights = check_weights(self._weights(X, sample_weight), X.shape[0])
        w = np.ones(X.shape[0]) if weights is None else weights
        if self.contamination == "auto":
            left_out = _left_out(w)
            kept = w - left_out > 1e-12 * w
            self._fit_components(X[kept], None if weights is None else (w - left_out)[kept])
            order = OrderStatistic(left_out[left_out > 0], 1.0 - FALSE_ALARMS)
            limit, how = order.limit(self._statistic(X[left_out > 0]), "auto")
            if how == "largest":
                order.warn()
            self.offset_ = -limit
        else:
            self._fit_components(X, weights)
            self.offset_ = _quantile(-self._statistic(X[w > 0]), w[w > 0], float(self.contamination))
        self._warn_of_ceiling()
        return self

    def _warn_of_ceiling(self) -> None:
        share = share_of_ceiling(self.model_, -self.offset_) if self._of == "spe" else 0.0
        if share > 1.0 - np.sqrt(EPS):  # below that rows are flagged as before, measured; from there on none can be
            warn_caller(
                f"with this kernel the statistic of any row is below a ceiling, and the limit is {share:.0%} of that: "
                "novel rows do not show. Scale the columns, as by StandardScaler, or give a gamma a tenth as large",
                LimitsWarning,
            )

    def score_samples(self, X: Any) -> np.ndarray:
        """Minus the statistic: the larger, the more ordinary.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            With the columns of the training rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            0 at most.
        """
        check_is_fitted(self, "offset_")
        return -self._statistic(self._validated(X, reset=False))

    def decision_function(self, X: Any) -> np.ndarray:
        """``score_samples`` less the limit: negative for novel rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            As for ``score_samples``.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for ordinary rows, -1 for novel ones.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            Rows to be told apart.

        Returns
        -------
        ndarray of int of shape (n_rows,)
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    @property
    def model_(self) -> KPCAModel:
        return self.pca_.model_

    @property
    def _chooses(self) -> bool:
        """True if the kernel is chosen by simulated faults."""
        return isinstance(self.kernel, str) and self.kernel == "auto" and self.gamma is None and not self.kernel_params

    @property
    def _of(self) -> str:
        """The statistic."""
        chosen = "both" if self._chooses and self.n_components == "auto" else "spe"
        return chosen if self.statistic == "auto" else self.statistic

    def _fit_components(self, X: Any, weights: np.ndarray | None) -> None:
        shared = ("kernel", "gamma", "degree", "coef0", "kernel_params", "tol", "random_state", "n_jobs", "verbose")
        given = {name: vars(self)[name] for name in shared}
        number: Any = None if self.n_components == "auto" else self.n_components
        choice = None
        if self._chooses:
            rate = FALSE_ALARMS if self.contamination == "auto" else float(self.contamination)
            choice = choose(X, None, number, 1.0 - rate, np.random.default_rng(self._seed()), False)
            number, given["kernel"] = choice.c, choice.kernel
        elif isinstance(self.kernel, str) and self.kernel == "auto":
            given["kernel"] = "rbf"
        pca = KernelPCA(0.9 if number is None else number, **given)
        pca.__dict__.update({name: vars(self)[name] for name in COLUMNS if name in vars(self)})
        pca._fit_validated(X, weights)
        if pca.model_ is None:
            raise ValueError(f"{X.shape[0]} sample(s) have no variance, so nothing says how far away is far; check X")
        if choice is not None:
            pca.model_ = choice.kept_by(pca.model_)
        self.pca_ = pca
        self.means_ = 1.0, 1.0
        if self._of == "both":
            t2, spe = (float(np.average(part, weights=weights)) for part in self._parts(X))
            self.means_ = t2, max(spe, np.finfo(np.float64).tiny)

    def _parts(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        threads = self._n_threads()
        return kpca_t2(self.model_, X, n_threads=threads), kpca_spe(self.model_, X, n_threads=threads)

    def _statistic(self, X: Any) -> np.ndarray:
        if self._of == "both":
            return np.asarray(sum(part / mean for part, mean in zip(self._parts(X), self.means_)))
        of = kpca_spe if self._of == "spe" else kpca_t2
        return np.asarray(of(self.model_, X, n_threads=self._n_threads()), dtype=np.float64)


def _left_out(weights: np.ndarray) -> np.ndarray:
    """Held-out weight of each row: of its copies, each of a weight of 1 at most where all together are no
    more than a sample has rows, or these are, those that a draw from all copies finds."""
    total = float(weights.sum())
    copies = np.ceil(weights * min(1.0, max(SAMPLE_ROWS, len(weights)) / total)).astype(np.intp)
    whose = np.repeat(np.arange(len(weights)), copies)
    n = len(whose)
    proving = int(np.ceil((1.0 / FALSE_ALARMS - 1.0) * n / total - 1e-9))
    count = min(max(round(LEFT_OUT * n), proving), n // 2)
    drawn = np.bincount(whose[np.random.default_rng(0).permutation(n)[:count]], minlength=len(weights))
    return np.asarray(weights * drawn / np.maximum(copies, 1))


def _quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """``np.quantile`` of values that are repeated as their weights say."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    place = share * max(below[-1] - 1.0, 0.0)
    first, part = np.floor(place), place % 1.0
    at = np.searchsorted(below, [first, first + 1.0], side="right")
    low, high = values[order[np.minimum(at, len(values) - 1)]]
    return float(low + part * (high - low))
