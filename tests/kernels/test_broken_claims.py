"""Kernels from outside that contradict what they claim: refused by name, or every interval holds all the same."""

import broken_claims
import intervals
import numpy as np
import pytest
from good_kernels import Good, GoodMap

import fastkpca as fk
from fastkpca.errors import KernelContractError


def test_no_claim_moves_an_interval(attack):
    cases = broken_claims.CASES
    chosen = attack.rng("broken claims").permutation(len(cases))[: attack.count(len(cases), 60)]
    refused = 0
    for name, route in (cases[i] for i in chosen):
        try:
            model, true = broken_claims.fit(broken_claims.KERNELS[name], route)
        except KernelContractError as error:
            assert "Broken" in str(error), (name, route)
            refused += 1
        else:
            try:
                intervals.hold(model, true, slack=1e-9 * np.abs(true).max())
            except AssertionError as error:
                raise AssertionError(f"{name} by {route}: {error}") from error
    assert 0 < refused < len(chosen)


REFUSED = {
    "diagonal: half, Plain": r"Broken\.diagonal on shape .* contradicts block: k\(x, x\) = 0\.5, and block returns 1",
    "diagonal: of large tiles, Own": r"Broken\.diagonal on shape \(256, 3\) contradicts block",
    "diagonal: of one row, Own": r"Broken\.diagonal .* contradicts block: k\(x, x\) = 0\.01",
    "indefinite: of rare rows": r"Broken\.block declares itself positive semidefinite, but its values are not",
    "inherited: higher": r"Broken\.block .* differs by .* from the values of compiled_tile",
    "value bound": r"Broken\.value_bound is 0\.1, and block returns the value 1, which is beyond it",
    "map: no residual": r"Broken.* residual is 0 where k\(x, x\) - \|phi\(x\)\|\^2 is",
    "map: too large": r"the map exceeds the kernel",
    "product: scaled": r"Product\.matmat on shape .* is off by .* from the product with the values of block",
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_claim_is_named(name):
    route = {"map": "own map", "product": "own product"}.get(name.partition(":")[0], "pivots, tight")
    with pytest.raises(KernelContractError, match=REFUSED[name]):
        broken_claims.fit(broken_claims.KERNELS[name], route)


def test_a_diagonal_that_contradicts_only_new_rows():
    class Late(broken_claims.Plain):
        def diagonal(self, X):
            return np.where(X[:, 0] > 50.0, 0.2, 1.0)

    model = fk.kpca(broken_claims.X, Late(sigma=1.5), 2)
    with pytest.raises(KernelContractError, match=r"Late\.diagonal on shape .* contradicts block"):
        fk.kpca_spe(model, broken_claims.X + 100.0)


def test_a_map_is_held_at_every_tile():
    class Short(GoodMap):
        def residual(self, X, Phi=None):
            return GoodMap.residual(self, X, Phi) * (1.0 if len(X) < 100 else 0.2)

    class Kernel(Good):
        map_class = Short

    with pytest.raises(KernelContractError, match="residual is .* it is no upper bound"):
        fk.features(broken_claims.X, Kernel(sigma=1.5), features="good", tol=0.5).moments()


PARTS = {
    "sum": lambda k: k + 0.5 * fk.get_kernel("rbf", gamma=1.0),
    "product": lambda k: k * fk.get_kernel("rbf", gamma=0.1),
    "scaled": lambda k: 2.0 * k,
    "columns": lambda k: fk.on_columns(k, [0, 1, 2]),
}


@pytest.mark.parametrize("combined", PARTS)
@pytest.mark.parametrize("name", ["diagonal: nearly, Plain", "indefinite: of rare rows", "value bound"])
def test_a_part_that_contradicts_its_claims(combined, name):
    kernel = PARTS[combined](broken_claims.KERNELS[name](sigma=1.5))
    with pytest.raises(KernelContractError, match="Broken"):
        fk.kpca(broken_claims.X, kernel, 3, features="pivots", tol=1e-6)
