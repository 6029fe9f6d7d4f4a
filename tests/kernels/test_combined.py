"""Sums, scalings and products of kernels: values, declarations, certificates, feature maps, products, model files."""

import json
import pickle

import numpy as np
import pytest
import reference
from data import look
from exact_kernels import exact_values

import fastkpca as fk
from fastkpca import testing
from fastkpca.base.protocol import FeatureMap
from fastkpca.errors import KernelParameterError, PluginError
from fastkpca.kernels import (
    Kernel,
    ScaledKernel,
    SumKernel,
    get_kernel,
    guarded,
    kernel_from_state,
    kernel_state,
)
from fastkpca.maps.combined import ScaledMap, SumMap, TensorMap

G, L = get_kernel("gaussian", sigma=2.0), get_kernel("linear")
P = get_kernel("polynomial", degree=2, scale=0.5, offset=1.5)
LAPLACIAN = get_kernel("laplacian", length_scale=3.0)
TANH = get_kernel("tanh", scale=0.3)

RNG = np.random.default_rng(11)
X, Y = RNG.standard_normal((90, 3)), RNG.standard_normal((40, 3))


def summary(X, kernel=None):
    return look(X, kernel is not None and kernel.translation is not None)


COMBINED = {
    "scaled": 0.3 * G,
    "sum": 0.5 * G + L,
    "three": G + 2.5 * P + L,
    "product": G * P,
    "with a product": 0.7 * (G * L) + P,
    "product of a sum": (G + L) * LAPLACIAN,
    "product of three": G * L * P,
    "indefinite": 3 * TANH + G * TANH,
}


# Making them ----------------------------------------------------------------------------------------------------


def test_what_the_operators_make():
    assert 0.5 * G + L == SumKernel(parts=(ScaledKernel(factor=0.5, kernel=G), L))
    assert G * 2 == 2 * G == np.float64(2) * G == np.int64(2) * G == G * np.float32(2)
    assert 2 * (3 * G) == 6 * G
    assert (G + L) + P == G + (L + P) == sum([G, L, P])
    assert (G * L) * P == G * (L * P)
    assert G + L != L + G or hash(G + L) == hash(L + G)
    assert hash(0.5 * G + L) == hash(0.5 * G + L)
    assert 0.5 * G + L != 0.25 * G + L
    assert G + L != G * L


def test_they_print_as_they_are_written():
    assert repr(0.5 * G + L) == "0.5 * Gaussian(sigma=2.0) + Linear()"
    assert repr(2 * (G + L) * L) == "2.0 * (Gaussian(sigma=2.0) + Linear()) * Linear()"
    for kernel in COMBINED.values():
        names = {type(x).__name__: type(x) for x in (G, L, P, LAPLACIAN, TANH)}
        assert repr(eval(repr(kernel), names)) == repr(kernel)


@pytest.mark.parametrize("kernel", COMBINED.values(), ids=COMBINED)
def test_pickled_and_made_again(kernel):
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert type(kernel)(**kernel.get_parameters()) == kernel
    state = json.loads(json.dumps(kernel_state(kernel)))
    assert kernel_from_state(state, plugins=True) == kernel


PRECOMPUTED = get_kernel("precomputed")
NOT_COMBINED = [
    *((lambda x=x: x * G, KernelParameterError, "positive") for x in (0, -1, np.inf, np.nan, True)),
    (lambda: ScaledKernel(factor=-1, kernel=G), KernelParameterError, "positive"),
    (lambda: G + 1.0, TypeError, "a constant does not change the centred kernel matrix"),
    *((lambda x=x: G + x, TypeError, "operand|Concatenation") for x in (None, lambda X, Y: X @ Y.T, np.ones(3))),
    *((lambda x=x: x + G, TypeError, "operand|Concatenation") for x in (None, lambda X, Y: X @ Y.T, np.ones(3))),
    (lambda: G * None, TypeError, "unsupported operand"),
    (lambda: SumKernel(parts=(G, "linear")), TypeError, "is not a kernel"),
    (lambda: SumKernel(parts=(G,)), KernelParameterError, "at least two"),
    (lambda: PRECOMPUTED + G, KernelParameterError, "combine the matrices instead"),
    (lambda: 0.5 * PRECOMPUTED, KernelParameterError, "combine the matrices instead"),
    (lambda: fk.kpca(X, G + L, 2, sigma=1.0), TypeError, "already has its own"),
    (lambda: G - L, TypeError, "kernels are not subtracted: the difference need not be positive semidefinite"),
    (lambda: 1 - G, TypeError, "kernels are not subtracted"),
    (lambda: -G, TypeError, "kernels are not subtracted"),
    (lambda: G**2, TypeError, r"a kernel has no powers; multiply it, as in kernel \* kernel"),
    (lambda: G / 2, TypeError, r"kernels are not divided; multiply, as in 0\.5 \* kernel"),
    (lambda: G + "linear", TypeError, r"'linear' is not a kernel; .* kernel \+ fastkpca\.get_kernel\('linear'\)"),
    (lambda: "linear" + G, TypeError, "'linear' is not a kernel"),
    (lambda: G * "linear", TypeError, r"'linear' is not a kernel; .* kernel \* fastkpca\.get_kernel\('linear'\)"),
]


@pytest.mark.parametrize(("combine", "error", "text"), NOT_COMBINED)
def test_what_cannot_be_combined(combine, error, text):
    with pytest.raises(error, match=text):
        combine()


# What they declare ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", COMBINED.values(), ids=COMBINED)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_are_within_the_stated_error(kernel, dtype, attack):
    for case in range(attack.count(100, least=6)):
        rng = attack.rng(f"combined values {kernel!r}", case)
        scale, offset = 10.0 ** rng.uniform(-3, 1.5), 10.0 ** rng.uniform(-2, 2)
        A = (scale * rng.standard_normal((30, int(rng.integers(1, 12)))) + offset).astype(dtype)
        rows, data = summary(A)  # no shift: about the rows as they are
        A = rows.all().astype(dtype)
        error = kernel.entry_error(data, np.dtype(dtype))
        found = kernel.block(A, A[:9])
        assert found.dtype == dtype and found.shape == (30, 9) and found.flags.writeable
        assert np.abs(found - exact_values(kernel, A, A[:9])[0]).max() <= error
        wide = A.astype(np.float64)
        diagonal = kernel.diagonal(wide)
        assert np.abs(diagonal - exact_values(kernel, wide, wide)[0].diagonal()).max() <= kernel.entry_error(
            data, np.dtype(np.float64)
        )
        assert np.abs(exact_values(kernel, A, A)[0]).max() <= kernel.value_bound(data)


@pytest.mark.parametrize("part", [P, get_kernel("cosine"), get_kernel("matern", nu=0.1, length_scale=1.0)], ids=repr)
def test_combinations_keep_the_errors_of_their_parts(part):
    data, double = summary(X)[1], np.dtype(np.float64)
    for kernel, times in ((2.0 * part, 2.0), (part + L, 1.0), (part * G, 1.0)):
        assert kernel.entry_error(data, double) >= times * part.entry_error(data, double)
        assert kernel.value_bound(data) >= times * part.value_bound(data)


STATING = [(get_kernel("gaussian", sigma=2.0), d) for d in (2, 20, 33, 200)]
STATING += [(get_kernel("gaussian", sigma=[0.7, 2.0, 1.5]), 3), (get_kernel("laplacian", length_scale=2.0), 4)]
STATING += [(get_kernel("rational_quadratic", length_scale=2.0, alpha=0.7), 4)]
STATING += [(get_kernel("matern", nu=nu, length_scale=2.0), 4) for nu in (1.5, 2.2)]


@pytest.mark.parametrize("far", [1.0, 28.0, 1e3, 1e7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("kernel", "d"), STATING)
def test_values_of_tight_clusters_far_apart_are_within_the_stated_error(attack, kernel, dtype, d, far):
    """Subtracting the shift, before the kernel sees the rows, and distances by products, both cost digits."""
    rng = attack.rng(f"{kernel} far", d)
    X = far / np.sqrt(d) * rng.standard_normal((4, d))[rng.integers(4, size=16)] + rng.standard_normal((16, d))
    X[:5] = X[5:10] + 10.0 ** rng.uniform(-12, -3, (5, 1)) * rng.standard_normal((5, d))
    rows, data = look(X)
    Z = rows.all().astype(dtype)
    error = np.abs(kernel.block(Z, Z) - exact_values(kernel, X if dtype == np.float64 else Z)[0]).max()
    allowed = kernel.entry_error(data, np.dtype(dtype))
    assert error <= allowed and (dtype == np.float32 or allowed < 1e-6)


def test_unknown_errors_stay_unknown():
    data = summary(X)[1]
    unknown = get_kernel(lambda X, Y: X @ Y.T, positive_semidefinite=True)
    for kernel in (2 * unknown, unknown + G, G * unknown):
        assert kernel.entry_error(data, np.dtype(np.float64)) is None


def test_a_bound_of_parts_of_extreme_sizes_is_a_number():
    """scale d degree largest leaves float64, and what it is multiplied by is the smallest number."""
    X = 4e-127 * np.random.default_rng(0).standard_normal((20, 3))
    kernel = get_kernel("polynomial", degree=17, scale=6e256) * get_kernel("tanh", scale=1e254)
    assert 0.0 < fk.gram(X, kernel).error_bound < 1e-10 * np.abs(kernel.block(X, X)).max()


def test_semidefinite_and_thread_safe_only_if_all_parts_are():
    assert (0.5 * G).positive_semidefinite is True
    assert (G + L).positive_semidefinite and (G * L).positive_semidefinite
    assert not (G + TANH).positive_semidefinite
    assert not (G * TANH).positive_semidefinite
    assert not (2 * TANH).positive_semidefinite
    lone = get_kernel(lambda X, Y: X @ Y.T, thread_safe=False)
    assert (G + L).thread_safe and not any(k.thread_safe for k in (G + lone, lone * G, 2 * lone, 2 * (G + lone)))
    assert not (TANH * TANH).feature_maps(summary(X)[1], 0.1, 1000)
    assert not (TANH + G).feature_maps(summary(X)[1], 0.1, 1000)


@pytest.mark.parametrize(
    "kernel, expected",
    [
        (0.5 * G, "kernel"),
        (G + LAPLACIAN, "kernel"),
        (G * LAPLACIAN, "kernel"),
        (2 * L, "centered"),
        (L + L, "centered"),
        (G + L, "centered"),
        (G * LAPLACIAN + 3 * L, "centered"),
        (G + P, None),
        (L + P, None),
        (G * L, None),
        (L * L, None),
        (G * L + G, None),
    ],
    ids=repr,
)
def test_translation_is_what_a_shift_does(kernel, expected):
    assert kernel.translation == expected
    K = exact_values(kernel, X, X)[0]
    moved = exact_values(kernel, X + 0.7, X + 0.7)[0]
    plain = float(np.abs(moved - K).max())
    centred = float(np.abs(reference.center(moved) - reference.center(K)).max())
    assert (plain < 1e-12) == (expected == "kernel")
    assert (centred < 1e-12) == (expected is not None)


def test_parts_are_resolved():
    for made in (2 * get_kernel("gaussian"), get_kernel("gaussian") + L, L * get_kernel("gaussian")):
        model = fk.kpca(X, made, 2)
        assert "sigma=None" in repr(made) and "None" not in repr(model.kernel)
        data = summary(X, made)[1]
        assert made.resolve(data) == model.kernel
        assert made.resolve(data).resolve(data) == model.kernel
    data = summary(X)[1]
    resolved = 0.5 * G + G * L
    assert resolved.resolve(data) is resolved


def test_parts_are_checked_one_by_one():
    class Thin(Kernel):
        def block(self, X, Y):
            return np.ones((len(X), 1))  # would broadcast

    for kernel in (G + Thin(), Thin() * G, 2 * Thin()):
        with pytest.raises(PluginError, match=r"Thin.block on shapes .* returned shape \(90, 1\)"):
            guarded(kernel).block(X, Y)


def test_a_part_s_own_array_is_not_overwritten():
    kept = np.ones((90, 40))
    kept.flags.writeable = False

    class Keeper(Kernel):
        def block(self, X, Y):
            return kept

    np.testing.assert_allclose((3 * Keeper()).block(X, Y), 3.0)
    np.testing.assert_allclose((Keeper() + L).block(X, Y), 1 + X @ Y.T)
    assert (kept == 1).all()


# Feature maps ---------------------------------------------------------------------------------------------------


def only_map(kernel, data, tol, max_features=5000, name=None):
    offers = kernel.feature_maps(data, tol, max_features)
    return next((x for x in offers if name in (None, x.name)), None)


WIDE = get_kernel("gaussian", sigma=4.0)
OFFERING = {
    "scaled": 0.3 * G,
    "sum": 0.5 * G + L,
    "sum of three": G + get_kernel("gaussian", sigma=5.0) + 4 * P,
    "tensor": WIDE * L,
    "tensor of three": get_kernel("gaussian", sigma=6.0) * L * WIDE,
    "scaled product": 1e-3 * (L * P),
    "sum with a product": WIDE * (7 * L) + P,
}
PRODUCTS = OFFERING | {"with tiles": P + LAPLACIAN, "compiled": G + 2 * get_kernel("gaussian", sigma=0.1)}
PRODUCTS |= {"small": 1e-9 * WIDE}


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("name", PRODUCTS)
def test_maps_and_products_keep_what_they_promise(name, d):
    """On random rows, in long double, the attack on products holds them to it."""
    maps = (testing.check_feature_map_residual, testing.check_feature_map_products, testing.check_feature_map_state)
    for check in (*maps, testing.check_moments) if name in OFFERING else ():
        assert check(PRODUCTS[name], X[:, :d]) == "passed"
    for check in (testing.check_summation_bound, testing.check_summation_adjoint):
        assert check(PRODUCTS[name], X[:, :d]) in ("passed", "not offered")


@pytest.mark.parametrize("name", OFFERING)
def test_coefficients_are_applied_as_to_features(name):
    rows, data = summary(X, OFFERING[name])
    made, Z = only_map(OFFERING[name], data, 1e-3).build(data.sample), rows.all()
    C = np.linspace(-1.0, 2.0, 2 * made.n_features).reshape(-1, 2)
    expected = made.features(Z) @ C
    for found in (made.applied(C)(Z), made.apply(Z, C)):
        np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


def test_the_tolerance_goes_where_it_is_needed():
    """Exact parts leave their share: beside a large linear kernel the Gaussian needs few features."""
    data = summary(X, G + L)[1]
    alone = only_map(G, data, 1e-6, name="monomial").cost.n_features
    beside = only_map(G + 1e4 * L, data, 1e-6).cost.n_features - 3
    assert beside < alone
    assert only_map(G + 1e9 * L, data, 1e-6).cost.n_features <= 4


def test_maps_that_do_not_fit_are_not_offered():
    data = summary(X)[1]
    assert only_map(0.5 * P + L, data, 1e-6, 13).cost.n_features == 13
    assert not (0.5 * P + L).feature_maps(data, 1e-6, 12)
    assert not (0.5 * G + L).feature_maps(data, 1e-6, 20)
    D = only_map(L * P, data, 1e-6).cost.n_features
    assert D == 30
    assert (L * P).feature_maps(data, 1e-6, 30)
    assert not (L * P).feature_maps(data, 1e-6, 29)
    assert not (LAPLACIAN + G).feature_maps(data, 1e-6, 5000)  # no map of its own: pivots serve for the whole
    assert not (LAPLACIAN * G).feature_maps(data, 1e-6, 5000)


class WithDefect(FeatureMap):
    """The exact map of x.y, spoilt by entries of at most ``defect``, as an aliased Fourier map is."""

    rounding = 1e-15

    def __init__(self, defect):
        self.defect, self.n_features = defect, 3

    def features(self, X):
        return X.copy()


@pytest.mark.parametrize("defect", [0.0, 1e-3])
def test_defects_of_sums_and_products(defect):
    rng = np.random.default_rng(2)
    n = len(X)
    D = [defect * np.sign(rng.standard_normal((n, n))) for _ in range(2)]
    D = [np.triu(x) + np.triu(x, 1).T for x in D]
    E = [np.diag(rng.random(n)) for _ in range(2)]  # what the maps leave out besides
    K = [X @ X.T + e + d for e, d in zip(E, D)]
    parts = WithDefect(defect), WithDefect(defect)
    bounds = tuple(float(np.abs(k).max()) for k in K)
    for made, whole, left in (
        (SumMap(parts), K[0] + K[1], E[0] + E[1]),
        (TensorMap(*parts, bounds), K[0] * K[1], E[0] * (X @ X.T) + (X @ X.T) * E[1] + E[0] * E[1]),
        (ScaledMap(parts[0], 2.5), 2.5 * K[0], 2.5 * E[0]),
    ):
        Phi = made.features(X)
        rest = whole - Phi @ Phi.T - left
        assert np.abs(rest).max() <= made.defect * (1 + 1e-12) + 1e-13
        assert np.linalg.norm(rest, 2) <= made.defect_norm(n, float(np.trace(whole))) + 1e-12
        assert (made.defect > 0) == (defect > 0)


def test_products_without_anything_fast_are_exact_tiles():
    unknown = get_kernel(lambda X, Y: X @ Y.T)
    assert not (unknown + P).summations(summary(X)[1], summary(X)[1], None)  # how it rounds can't be told
    data = summary(X)[1]
    for kernel in (3 * TANH, TANH + G, TANH + P):  # of these a pass also gives the norm
        assert not kernel.summations(data, data, 1e-3)
    for kernel in (LAPLACIAN + G, 2 * LAPLACIAN, G * P):
        assert not kernel.summations(data, data, None)
        np.testing.assert_allclose(
            fk.gram(X, kernel) @ np.eye(90), exact_values(kernel, X, X)[0].astype(float), atol=1e-12
        )
