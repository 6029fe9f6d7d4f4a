"""Matérn and its relatives: values against many digits, and products of their own that keep their bounds."""

import math
import tracemalloc

import intervals
import mpmath
import numpy as np
import pytest
from data import look
from exact_kernels import exact_matrix

import fastkpca
from fastkpca.errors import KernelParameterError
from fastkpca.kernels import get_kernel

contrib_line = pytest.importorskip("kernels_contrib.kernels.line")
from kernels_contrib.kernels.mixture import gamma_mixture  # noqa: E402
from kernels_contrib.kernels.profiles import matern_profile  # noqa: E402

ORDERS = [0.1, 0.5, 1.0, 1.5, 2.2, 2.5, 7.3, 30.0]


def matern_of(nu, length_scale, r):
    nu = mpmath.mpf(nu)
    t = mpmath.sqrt(2 * nu) * mpmath.mpf(r) / mpmath.mpf(length_scale)
    return 2 ** (1 - nu) / mpmath.gamma(nu) * t**nu * mpmath.besselk(nu, t) if t else mpmath.mpf(1)


def summary(X, kernel=None):
    return look(X, kernel is None or kernel.translation == "kernel")[1]


@pytest.mark.parametrize("nu", [0.05, *ORDERS, 0.5 - 1e-16, 0.7499, 0.75, 1.0 + 1e-9, 1.5 + 3e-16, 2.0, 4.0, 4.1, 50.0])
def test_values_to_thirteen_digits(attack, nu):
    rng = attack.rng("matern values", int(nu * 100))
    length_scale = 1.0 if nu in ORDERS else 0.37
    n = attack.count(1000, least=20)
    r = [10 ** rng.uniform(-12, 3, n), 10 ** rng.uniform(-2, 1.5, n), rng.uniform(0, 800 / math.sqrt(2 * nu), n)]
    r = np.concatenate(r)
    # through the public door: rows on a line, so that distances are exact
    values = get_kernel("matern", nu=nu, length_scale=length_scale).block(np.zeros((1, 1)), r[:, None])[0]
    compared = 0
    with mpmath.workdps(40):
        for x, value in zip(r, values):
            exact = matern_of(nu, length_scale, float(x))
            allowed = (1e-13 + 4e-16 * math.sqrt(2 * nu) * x / length_scale) * exact  # of exp(-t), the rounding of t
            if exact < 3e-308:  # subnormal, or less than that: one unit of the least number away
                assert abs(value - float(exact)) <= 5e-324 + float(allowed)
                continue
            compared += 1
            assert abs(mpmath.mpf(float(value)) - exact) <= allowed, (nu, x)
    assert compared > n


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.5, 1.0, 1.5, 2.5, 6.0, 50.0, math.inf])
def test_both_ends(nu):
    kernel = get_kernel("matern", nu=nu, length_scale=0.5)
    r = np.array([0.0, 5e-324, 1e-300, 1e-200, 1e4, 1e8, 1e100, 1e300, 1.7e308])
    values = kernel.block(np.zeros((1, 1)), r[:, None])[0]
    assert values[0] == 1.0 and (values[1:4] > 0.99).all()
    assert (values[4:] == 0.0).all()
    if nu != math.inf:
        with np.errstate(over="ignore"):
            squares = kernel.block(np.zeros((1, 3)), np.outer(r, np.ones(3)))[0]
        assert np.isfinite(squares).all() and (squares[4:] == 0.0).all() and (squares[:4] > 0.99).all()


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="long double is double here")
@pytest.mark.parametrize("alpha", [1e-12, 1e-3, 0.7, 5.0, 1e6, 1e100])
@pytest.mark.parametrize("length", [1e-140, 1e-5, 3.7, 1e140])
@pytest.mark.parametrize("d", [1, 3, 17])
def test_rational_quadratic_of_rows_of_any_size(d, length, alpha):
    """New rows may lie anywhere: a tile holds rows near each other, and rows beyond the square root of float64."""
    sizes = np.concatenate([[0.0], length * 10.0 ** np.arange(-20, 26, 3), 10.0 ** np.arange(100, 309, 13)])
    X = np.random.default_rng(0).standard_normal((len(sizes), d))
    X = X / np.abs(X).max(axis=1, keepdims=True) * sizes[:, None]
    X = np.concatenate([X, X[-3:]])
    K = get_kernel("rational_quadratic", alpha=alpha, length_scale=length).block(X, X)
    wide = X.astype(np.longdouble)
    squares = (((wide[:, None] - wide) / np.longdouble(length)) ** 2).sum(axis=2)
    np.testing.assert_allclose(K, np.exp(-alpha * np.log1p(squares / 2 / np.longdouble(alpha))), rtol=0, atol=5e-16)


def test_of_infinite_order_it_is_the_gaussian():
    X = np.random.default_rng(0).random((200, 2))
    kernel, gaussian = get_kernel("matern", nu=math.inf, length_scale=0.7), get_kernel("gaussian", sigma=0.7)
    np.testing.assert_array_equal(kernel.block(X, X), gaussian.block(X, X))
    names, expected = ({x.name for x in k.feature_maps(summary(X), 1e-3, 1000)} for k in (kernel, gaussian))
    assert names == expected


def test_spellings_and_errors():
    assert get_kernel("matern") == get_kernel("matern", nu=1.5)
    assert get_kernel("matern", alpha=2.2, gamma=0.3) == get_kernel("matern", nu=2.2, length_scale=0.3)
    with pytest.raises(TypeError, match="two spellings of one parameter"):
        get_kernel("matern", nu=1.5, alpha=1.5)
    for name in ("nu", "length_scale"):
        for value in (0, -1.0, float("nan"), "1", True, 10**400, [1.0] if name == "nu" else [[1.0]]):
            with pytest.raises(KernelParameterError, match=f"matern: {name} is .*; give a (positive |finite )?number"):
                get_kernel("matern", **{name: value})
    with pytest.raises(KernelParameterError, match=r"matern: nu is 0\.01; give a number from 0\.05 to 50"):
        get_kernel("matern", nu=0.01)
    with pytest.raises(KernelParameterError, match="nu is 51.0; give a number from 0.05 to 50"):
        get_kernel("matern", nu=51.0)
    with pytest.raises(KernelParameterError, match="length_scale is inf; give a finite number"):
        get_kernel("matern", length_scale=math.inf)
    for name in ("alpha", "length_scale"):
        with pytest.raises(KernelParameterError, match=f"rational_quadratic: {name} is .*; give a finite number"):
            get_kernel("rational_quadratic", **{name: math.inf})


# products of their own


ROWS = {
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "within one length": lambda rng, n, d: 1e-3 * rng.random((n, d)),
    "clusters": lambda rng, n, d: rng.random((6, d))[rng.integers(6, size=n)] + 0.01 * rng.standard_normal((n, d)),
    "gaps": lambda rng, n, d: np.floor(6 * rng.random((n, d))) * 40 + rng.random((n, d)),
    "duplicates": lambda rng, n, d: rng.random((n // 20, d))[rng.integers(n // 20, size=n)],
    "flat": lambda rng, n, d: rng.random((n, d)) * np.r_[1.0, np.full(d - 1, 1e-6)],
    "far": lambda rng, n, d: rng.random((n, d)) + 1e5 * rng.integers(2, size=(n, 1)),
    "heavy tails": lambda rng, n, d: rng.standard_cauchy((n, d)),
    "one point": lambda rng, n, d: np.full((n, d), 0.3),
}


def half_integer(options, X, Y):
    """Values on a line in long double: exp(-t) times a polynomial."""
    p, f = int(options.get("nu", 0.5) - 0.5), math.factorial
    c = [np.longdouble(f(p) * f(2 * p - m) * 2**m) / np.longdouble(f(2 * p) * f(m) * f(p - m)) for m in range(p + 1)]
    t = np.abs(X.astype(np.longdouble) - Y[:, 0]) * np.sqrt(np.longdouble(2 * p + 1)) / options["length_scale"]
    return np.exp(-t) * np.polynomial.polynomial.polyval(t, c)


def error_over_bound(rng, name, X, Y, options):
    """Of both products, for single entries, for none and for signs; None where no such product is offered, or float64
    does not hold rows so far apart, in length scales, to tol."""
    try:
        K = fastkpca.gram(X, name, Y, **options)
    except ValueError as refused:
        assert "keep for certain in float64" in str(refused) or "offers no products" in str(refused)
        return None
    if options["products"] == "sorted":
        exact, bound = half_integer(options, X, X if Y is None else Y), K.error_bound
    else:
        exact = fastkpca.gram(X, name, Y, **options | {"products": "exact", "tol": None})
        bound = K.error_bound + exact.error_bound
    assert 0.0 < K.error_bound <= options.get("tol", np.inf)
    worst = 0.0
    for A, E, n in ((K, exact, K.shape[1]), (K.T, exact.T, K.shape[0])):
        U = np.zeros((n, 8))
        U[rng.choice(n, 6, replace=False), np.arange(6)] = 1.0
        U[:, 6] = rng.choice([-1.0, 1.0], n) / n
        worst = max(worst, float(np.abs(A @ U - E @ U).max()))
    return worst / bound


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize(("products", "d"), [("sorted", 1), ("split", 1), ("split", 2), ("split", 3)])
def test_they_keep_their_bound(attack, kind, products, d):
    built = []
    for case in range(attack.count(150, least=4)):
        rng = attack.rng(f"{products} {kind} {d}", case)
        X, Y = (ROWS[kind](rng, n, d) for n in ((240, 180) if products == "sorted" else (1200, 900)))
        options = {"products": products, "length_scale": 10 ** rng.uniform(-2, 1)}
        if products == "split":
            options["tol"] = 10 ** -rng.uniform(2, 11)
        if products == "split" and case % 4 == 3:
            name, options["alpha"] = "rational_quadratic", float(rng.choice([0.1, 0.5, 1, 3, 20]))
        elif products == "sorted" and case % 4 == 3:
            name = "laplacian"
        else:
            orders = [0.5, 1.5, 2.5, 3.5, 7.5, 20.5] if products == "sorted" else [*ORDERS, 50.0]
            name, options["nu"] = "matern", float(rng.choice(orders))
        built.append(error_over_bound(rng, name, X, Y if case % 2 else None, options))
    built = [ratio for ratio in built if ratio is not None]
    assert len(built) >= 2 or kind in ("heavy tails", "one point", "far", "gaps", "within one length")
    assert max(built, default=0.0) <= 1.0


@pytest.mark.parametrize("nu", [0.5, 2.5])
def test_errors_on_a_line_do_not_grow_with_the_points(nu):
    n = 200_000
    x = np.random.default_rng(5).random(n)
    u = np.ones((n, 1)) / n  # one sign: no rounding averages out in the sum itself
    for length_scale in (1e-2, 3.0):
        K = fastkpca.gram(x[:, None], "matern", nu=nu, length_scale=length_scale)
        some = np.array([0, 1, n // 2, n - 1])
        exact = exact_matrix("matern", {"nu": nu, "length_scale": length_scale}, x[some, None], x[:, None])[0] @ u
        assert np.abs((K @ u)[some] - exact).max() <= 2e-14


@pytest.mark.parametrize("p", [0, 3, 20])
def test_moments_on_a_line_take_the_memory_that_is_stated(p):
    X, U = np.random.default_rng(p).random((20_000, 1)), np.ones((20_000, 24))
    rows, data = look(X, True)
    [offer] = contrib_line.line_offers(p, 3.0, data, data, None)
    K = offer.build(rows)
    K.n_threads = 4
    tracemalloc.start()
    K.matmat(U)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= U.nbytes + 24 * offer.cost.column_memory


@pytest.mark.parametrize("a", [0.1, 0.5, 1.5, 2.2, 7.3, 30.0, 50.0])
@pytest.mark.parametrize("tol", [2e7, 1.0, 1e-3, 1e-6, 1e-10])
def test_mixtures_within_their_bound(a, tol):
    r = np.concatenate([[0.0], np.logspace(-9, 3, 4000)])
    mixture = gamma_mixture(a, 1.0 / a, inverse=False, tol=tol)
    assert (mixture.weights > 0).all() and mixture.error <= tol + 1e-12
    with np.errstate(under="ignore"):
        gaussians = np.exp(-(r[:, None] ** 2) / (2 * mixture.widths))
    assert np.abs(gaussians @ mixture.weights - matern_profile(a, 1.0)(r)).max() <= mixture.error
    mixture = gamma_mixture(a, a, inverse=True, tol=tol)
    with np.errstate(under="ignore"):
        gaussians = np.exp(-(r[:, None] ** 2) / (2 * mixture.widths))
    assert np.abs(gaussians @ mixture.weights - (1 + r**2 / (2 * a)) ** -a).max() <= mixture.error


def test_products_refuse_what_they_cannot_use():
    X = np.random.default_rng(0).random((3000, 2))
    U = np.ones(3000)
    U[7] = np.nan
    with pytest.raises(ValueError, match="U contains NaN or infinity .first in row 7"):
        fastkpca.gram(X, "matern", length_scale=0.3, tol=1e-4, products="split") @ U
    with pytest.raises(ValueError, match="U contains NaN or infinity .first in row 7"):
        fastkpca.gram(X[:, :1], "matern", length_scale=0.3, products="sorted") @ U
    assert not list(get_kernel("matern", length_scale=1.0).summations(summary(X), summary(X), None))
    assert not list(get_kernel("matern", length_scale=1.0).summations(summary(X), summary(X), 1e-17))
    wide = np.random.default_rng(0).random((3000, 4))
    assert not list(get_kernel("matern", length_scale=1.0).summations(summary(wide), summary(wide), 1e-3))


@pytest.mark.parametrize("d, tol, name", [(1, 1e-6, "sorted"), (2, 1e-4, "split"), (3, 1e-3, "split")])
def test_own_products_are_called_by_gram_and_by_kpca(d, tol, name):
    X = np.random.default_rng(d).random((12000, d))
    assert fastkpca.gram(X, "matern", nu=1.5, length_scale=0.5, tol=tol).products == name
    X, tol = X[:5000], max(tol, 1e-3)
    model = fastkpca.kpca(X, "matern", 3, nu=1.5, length_scale=0.5, tol=tol, products=name)
    assert model.info["products"] == name
    assert intervals.width(model) <= tol


@pytest.mark.filterwarnings("ignore::fastkpca.errors.CertificateWarning")
def test_passes_that_run_out_are_not_made_again_by_other_products():
    """Their intervals were twelve times as wide, and both runs may fail with the whole probability."""
    X = np.random.default_rng(1).standard_normal((3000, 1))
    model = fastkpca.kpca(X, "laplacian", 10, length_scale=0.01, tol=1e-4, max_passes=6, method="krylov")
    assert model.info["products"] == "sorted" and "krylov_tried" not in model.info
    assert model.failure_probability <= 1e-6 and intervals.width(model) < 1.0
