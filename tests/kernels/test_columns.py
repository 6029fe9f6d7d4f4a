"""Kernels on groups of columns, and with a width for each column, against LAPACK on the explicit matrix."""

import pickle

import intervals
import numpy as np
import pytest
from quiet import silent
from reference import eigh, long_gaussian
from scipy.spatial.distance import cdist

import fastkpca as fk
from fastkpca.errors import KernelParameterError, ScalesWarning
from fastkpca.kernels import ColumnKernel, Gaussian, Kernel
from fastkpca.testing import check_kernel

WIDTHS = np.array([0.7, 2.0, 1.5])
ROUTES = {
    "dense": {"method": "dense"},
    "krylov": {"method": "krylov"},
    "pivots": {"features": "pivots"},
    "monomial": {"features": "monomial", "tol": 0.1},
    "fourier": {"features": "fourier"},
    "grid": {"products": "grid"},
    "tiles": {"products": "tiles"},
}


def sample(n=400, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) * 0.8 + [100.0, 0.0, -3.0, 1.0][:d]


def gaussian(X, widths):
    X = X.astype(np.longdouble) / np.asarray(widths, dtype=np.longdouble)
    return long_gaussian(X, X, 1.0)


@pytest.mark.parametrize("route", ROUTES)
def test_a_width_for_each_column_on_every_route(route):
    X, c = sample(), 3
    model = silent(fk.kpca, X, "gaussian", c, sigma=WIDTHS, **ROUTES[route])
    assert route in (model.plan.name, model.plan.method)
    exact = eigh(gaussian(X, WIDTHS))[0]
    intervals.hold(model, exact, 1e-13 * exact[0])
    again = pickle.loads(pickle.dumps(model))
    assert again.kernel == model.kernel
    assert np.array_equal(fk.kpca_spe(again, X[:50]), fk.kpca_spe(model, X[:50]))


@pytest.mark.parametrize("route", ["dense", "pivots", "sum", "products"])
def test_groups_of_columns_add_up(tmp_path, route):
    pd = pytest.importorskip("pandas")
    X = sample(d=4)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    kernel = fk.on_columns("gaussian", ["a", "c"]) + 0.5 * fk.on_columns("linear", ["d", "b", "c"])
    options = {
        "dense": {"method": "dense"},
        "pivots": {"features": "pivots"},
        "sum": {"features": "sum"},
        "products": {"products": "sum"},
    }[route]
    model = fk.kpca(frame, kernel, 3, **options)
    sigma = model.kernel.parts[0].kernel.sigma
    assert sigma == fk.kpca(X[:, [0, 2]], "gaussian", 1).kernel.sigma
    centred = X - X.mean(axis=0)
    K = gaussian(X[:, [0, 2]], [sigma, sigma]) + 0.5 * centred[:, 1:] @ centred[:, 1:].T
    exact = eigh(K)[0]
    intervals.hold(model, exact, 1e-13 * exact[2])
    fk.save(model, tmp_path / "m.kpca")
    loaded = fk.load(tmp_path / "m.kpca")
    assert loaded.kernel == model.kernel
    assert np.array_equal(fk.kpca_project(loaded, frame), fk.kpca_project(model, frame))
    with pytest.raises(ValueError, match="in another order"):
        fk.kpca_project(loaded, frame[["b", "a", "c", "d"]])


def test_products_of_groups_and_columns_of_no_group():
    X = sample(d=4)
    kernel = fk.on_columns("gaussian", [0], sigma=1.0) * fk.on_columns("gaussian", [2], sigma=2.0)
    model = fk.kpca(X, kernel, 3)
    np.testing.assert_allclose(model.eigenvalues, eigh(gaussian(X[:, [0, 2]], [1, 2]))[0][:3], rtol=1e-6)
    other = X[:9] + [0.0, 5.0, 0.0, -7.0]
    np.testing.assert_allclose(fk.kpca_project(model, other), model.score[:9], atol=1e-10)
    importance = fk.kpca_importance(model, X).importance
    assert (importance[:, [1, 3]] == 0.0).all() and (importance[:, [0, 2]] > 0.0).all()


def test_they_keep_the_contract():
    X = sample(80, 4)
    # (the check looks for the repr of the parameter "kernel", where the widths stand in its place)
    check_kernel(fk.get_kernel("gaussian", sigma=[0.5, 1.0, 2.0, 3.0]), X, skip=["check_pickling"])
    check_kernel(fk.on_columns("gaussian", [2, 0], sigma=1.0), X)
    check_kernel(fk.on_columns("polynomial", [1, 2], degree=2), X)


def test_spellings():
    assert fk.get_kernel("gaussian", sigma=[1, 2]) == Gaussian(sigma=np.array([1.0, 2.0]))
    assert fk.get_kernel("rbf", gamma=[0.5, 0.125]) == Gaussian(sigma=[1.0, 2.0])
    assert repr(Gaussian(sigma=[1, 2])) == "Gaussian(sigma=[1.0, 2.0])"
    assert Gaussian(sigma=[1, 2]).widths == fk.get_kernel(Plain, length=[1.0, 2.0]).widths == (1.0, 2.0)
    assert repr(fk.on_columns("linear", "height")) == "on_columns(Linear(), ['height'])"
    assert repr(fk.on_columns("linear", [True, False, True])) == "on_columns(Linear(), [0, 2])"
    assert repr(fk.on_columns("linear", range(100))) == "on_columns(Linear(), [0, 1, 2, 3, 4, 5, ...] (100 of them))"
    assert isinstance(fk.on_columns("linear", 2), ColumnKernel)


def test_columns_of_any_unit_are_no_reason_to_warn():
    X = sample() * [1e-4, 1.0, 1e4]
    fk.kpca(X, "gaussian", 2, sigma=WIDTHS * [1e-4, 1.0, 1e4])  # a warning is an error
    fk.kpca(X, fk.on_columns("gaussian", [0]) + fk.on_columns("gaussian", [1, 2]), 2)
    with pytest.warns(ScalesWarning):
        fk.kpca(X, fk.on_columns("gaussian", [0]) + fk.get_kernel("linear"), 2)


class Plain(Kernel):
    api_version = 1
    translation = "kernel"
    parameters = {"length": 1.0}
    aliases = {"gamma": ("length", lambda gamma: (2 * gamma) ** -0.5)}
    width_parameter = "length"

    def block(self, X, Y):
        return np.exp(-cdist(X, Y) / self.length)


def on(*columns):
    def call():
        frame = pytest.importorskip("pandas").DataFrame(sample(50), columns=["a", "height", "c"])
        fk.kpca(frame, fk.on_columns("gaussian", *columns), 2)

    return call


def fit(**parameters):
    return lambda: fk.kpca(sample(50), **parameters)


def plain(**parameters):
    return lambda: fk.get_kernel(Plain, **parameters)


WRONG, NAMED = KernelParameterError, {f"column {i}": 1.0 for i in range(30)}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (on([]), WRONG, "which is no column; give either whole numbers"),
        (on([0, 0]), WRONG, "columns has 0 twice; give each column once"),
        (on(["a", "a"]), WRONG, "columns has 'a' twice"),
        (on([0, "a"]), TypeError, r"is \[0, 'a'\]; give either whole numbers of columns, as in .*, or names, as in"),
        *((on(x), TypeError, "give either whole numbers of columns") for x in ([1.5], [[0, 1], [2]], {0, 1})),
        (on([-1]), WRONG, "numbers of columns begin with 0"),
        (on(["a", "hight"]), WRONG, r"X has no column 'hight' \(did you mean 'height'\?\)"),
        (on([7]), WRONG, "there is no column 7, X has columns 0 to 2"),
        (on([True, False]), WRONG, "columns is a mask of 2 columns, and X has 3; give a"),
        (fit(kernel=fk.on_columns("gaussian", "a")), WRONG, "is taken by name, and the columns of X have none"),
        (
            lambda: fk.on_columns("gaussian", "a", sigma=1.0).block(sample(), sample()),
            WRONG,
            "these are known only with rows that have names",
        ),
        # the first few are enough
        (fit(sigma=NAMED), WRONG, "^(?!.*column 9).*give a number, or a list of one for each column"),
        (fit(sigma=[1.0, 2.0]), WRONG, "has 2 widths, and X has 3 columns; give one for each"),
        (fit(sigma=[1.0, -2.0, 1.0]), WRONG, r"sigma is -2.0; give a positive number \(number 1 of sigma\)"),
        (fit(sigma=[]), WRONG, "sigma is empty"),
        (fit(sigma=[1.0, 2.0, 3.0], gamma=1.0), TypeError, "two spellings of one parameter"),
        (lambda: fk.on_columns("precomputed", [0]), WRONG, "cannot be combined with"),
        (
            lambda: ColumnKernel(kernel=Gaussian(sigma=1.0), columns=[0, 1], widths=[1.0, 2.0, 3.0]),
            WRONG,
            "there are 2 columns and 3 widths",
        ),
        (plain(length=-1.0), WRONG, "Plain: length is -1.0; give a positive number, or one for each column"),
        *((plain(length=x), WRONG, f"Plain: length is {x!r}; give") for x in (0, "0.5;1", True, np.inf)),
        (plain(length=[0.5, -1.0]), WRONG, r"Plain: length is -1.0; .* \(number 1 of length\)"),
        (plain(gamma=np.inf), WRONG, r"Plain: length is 0.0 \(from gamma\); give"),
    ],
)
def test_columns_and_widths_that_are_none(call, error, text):
    with pytest.raises(error, match=text):
        call()
