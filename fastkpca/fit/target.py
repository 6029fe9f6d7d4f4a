"""Accuracy asked of the components: number, tolerance, failure probability, and kinds of bounds allowed."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.caching import cached_property

SAMPLED_BOUND_TOL = 1e-4
"""Tolerance from which on a sample of rows can bound the residual of a map tightly enough."""

FAILURE_SHARES = {"samples": 0.5, "rows": 0.05, "moments": 0.2, "products": 0.25}
"""Fractions of the failure probability of a run that may take a feature map and products.

"samples": bounds on the residual of a map from sampled rows. "rows": rows of the residual drawn for intervals of second
order. "moments": the eigensolver of a second moment. "products": products with K before or after a map; products
without a map have the whole probability.
"""
assert abs(sum(FAILURE_SHARES.values()) - 1.0) < 1e-12


@dataclass(frozen=True)
class Target:
    """Components and accuracy that are asked for.

    Attributes
    ----------
    c : int, float or None
        Number of components, a fraction of the variance, or all.
    tol : float
        Width of an eigenvalue's interval over the largest eigenvalue.
    method, features, products : str
        "auto", or the name that was asked for.
    given_map : bool
        The feature map is that of another model or of given landmarks, and is not improved on.
    max_features : int or None
        Largest number of features of the map.
    tol_is_required : bool
        The intervals have to be as narrow as ``tol`` says. If not, any interval width is accepted.
    failure_probability : float
        With which any of the random bounds of a run may fail, all together; 0.0: only bounds that hold for certain will
        do.
    center : bool
        The eigenvalues are those of the centred Gram matrix; False: of the Gram matrix itself.
    """

    c: int | float | None
    tol: float
    method: str = "auto"
    features: str = "auto"
    products: str = "auto"
    given_map: bool = False
    max_features: int | None = None
    tol_is_required: bool = True
    failure_probability: float = 0.0
    center: bool = True

    @cached_property
    def n_components(self) -> int | None:
        """The number that was asked for; None where the eigenvalues decide it."""
        return self.c if isinstance(self.c, int) else None

    @property
    def given_landmarks(self) -> bool:
        """True if the features are those of landmarks that the user chose: there will be no more."""
        return self.given_map and self.max_features is not None

    @property
    def is_loose(self) -> bool:
        """True if a tighter bound on a map's residual than its trace may save time."""
        return self.tol >= SAMPLED_BOUND_TOL or not self.tol_is_required

    @property
    def may_use_sampled_bound(self) -> bool:
        """True if a bound from a sample of rows may take the place of the trace of a map's residual."""
        return self.is_loose and self.failure_probability > 0.0

    def failure_of(self, part: str) -> float:
        """Probability with which the random bounds of a part of the run may fail, all together (`FAILURE_SHARES`)."""
        return FAILURE_SHARES[part] * self.failure_probability

    def failure_of_route(self, method: str, *, others: bool) -> float:
        """Probability with which the random bounds of a route may fail; ``others``: a feature map may run too."""
        if method == "dense":
            return 0.0
        if method == "features":
            sampled = self.failure_of("samples") + self.failure_of("rows") if self.may_use_sampled_bound else 0.0
            return sampled + self.failure_of("moments")
        return self.failure_of("products") if others else self.failure_probability

    @property
    def forced(self) -> bool:
        """True if the user chose the route."""
        return self.method != "auto"

    @property
    def free(self) -> bool:
        """True if the route and all its parts are left to the plan."""
        return self.method == self.features == self.products == "auto"
