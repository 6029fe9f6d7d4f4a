"""Broken, lying and careless plugins, through the public door: each is named and chained to its cause."""

from __future__ import annotations

import pickle
import re
import sys
import textwrap
import threading
from dataclasses import dataclass

import fake_plugins
import intervals
import numpy as np
import pytest
from child import child
from fake_plugins import SCALED, source
from good_kernels import Good

import fastkpca as fk
from fastkpca.errors import KernelContractError, PluginError, UnknownKernelError, UnknownMethodError
from fastkpca.kernels import Kernel, guarded, kernel_state

KERNELS = "fastkpca.kernels"
X = np.random.default_rng(7).standard_normal((400, 3))


@dataclass(frozen=True)
class Case:
    """What a plugin's module holds, and what has to be said about it (``words`` are regular expressions)."""

    source: str
    words: tuple[str, ...]
    cause: type[BaseException] | None = None
    use: str = "kpca"
    error: type[Exception] = PluginError


def broken(text: str, *words: str, cause: type[BaseException] | None = None) -> Case:
    """A module from which no kernel can be made."""
    return Case(textwrap.dedent(text), words, cause, "get")


def lies(body: str, *words: str, use: str = "kpca") -> Case:
    """A kernel that breaks its contract, which is good but for this part."""
    return Case(source("Bad", body), words, None, use, KernelContractError)


def raises(body: str, cause: type[BaseException], *words: str, use: str = "kpca") -> Case:
    """A kernel whose own code raises."""
    return Case(source("Bad", body), words, cause, use)


def part(base: str, body: str, *words: str) -> Case:
    """A kernel that is right, with a map or a product that is not."""
    slot, use = {"GoodMap": ("map_class", "features"), "GoodProduct": ("product_class", "gram")}[base]
    both = source("Wrong", body, base) + "\n\n" + source("Bad", f"{slot} = Wrong", "WithOffers")
    return Case(both, words, None, use, KernelContractError)


BLOCK = r"Bad\.block on shapes \(\d+, 3\) and \(\d+, 3\)"
VERSION = "in its own body.*as in `api_version = 1`"
RETURNS = "def block(self, X, Y): return "
CASES = {
    "import error": broken("import nothing_of_that_name", "ModuleNotFoundError.*_name", cause=ModuleNotFoundError),
    "exit": broken("raise SystemExit(3)", "SystemExit: 3", cause=SystemExit),
    "syntax error": broken("def f(:", "SyntaxError", cause=SyntaxError),
    "missing attribute": broken("class Other: pass", "AttributeError.*Bad", cause=AttributeError),
    "not a class": broken("Bad = 3", "is 3; an entry point names a subclass"),
    "not a Kernel": broken("class Bad:\n    api_version = 1", "names a subclass of fastkpca.kernels.Kernel"),
    "no api_version": broken("class Bad(Kernel):\n    block = print", "api_version None " + VERSION),
    "inherited api_version": broken("class Bad(Scaled):\n    block = print", "api_version None " + VERSION),
    "api_version True": broken("class Bad(Kernel):\n    api_version = True", "api_version True " + VERSION),
    "newer api_version": broken(
        "class Bad(Kernel):\n    api_version = 2",
        "written for api_version 2, this .* supports 1; upgrade fastkpca",
    ),
    "older api_version": broken("class Bad(Kernel):\n    api_version = 0", "api_version 0, .*upgrade the plugin"),
    "no block": broken("class Bad(Kernel):\n    api_version = 1", r"does not define block\(X, Y\)"),
    "constructor raises": broken(
        source("Bad", "def check(self): 1 / 0"), r"Bad\(sigma\) raised ZeroDivisionError", cause=ZeroDivisionError
    ),
    "wrong signature": raises("def block(self, X): return X", TypeError, BLOCK, "TypeError"),
    "a kernel of two points": lies(
        "def block(self, x, y): return float(np.exp(-np.sum(x * y)))", BLOCK, "float64 values|returned shape"
    ),
    "wrong shape": lies(
        RETURNS + "np.ones((len(X), len(Y) + 1))", BLOCK, r"returned shape \(\d+, \d+\)", r"shape \(\d+, \d+\) is due"
    ),
    "transposed": lies(
        RETURNS + "super().block(Y, X)", r"Bad\.block on shapes .* returned shape \(50, 400\)", use="rectangle"
    ),
    "object values": lies(RETURNS + "super().block(X, Y).astype(object)", BLOCK, "returned object values"),
    "whole numbers": lies(RETURNS + "(9 * super().block(X, Y)).astype(int)", BLOCK, "returned int64 values"),
    "float32 for float64": lies(
        RETURNS + "super().block(X, Y).astype(np.float32)", BLOCK, "returned float32 values", "float64, are due"
    ),
    "NaN": lies(RETURNS + "super().block(X, Y) * np.nan", BLOCK, r"returned nan \(first at row 0, column 0\)"),
    "NaN for one row": lies(
        """
        translation = None
        def block(self, X, Y):
            with np.errstate(invalid="ignore", divide="ignore"):
                return super().block(X, Y) * (X[:, :1] - 2.75) / (X[:, :1] - 2.75)
        """,
        "Bad.block on shapes",
        "returned nan",
        use="far row",
    ),
    "infinity": lies(RETURNS + "super().block(X, Y) + np.inf", BLOCK, "returned inf"),
    "asymmetric": lies(
        RETURNS + "super().block(X, Y) * (1 + 0.01 * np.tanh(X[:, :1]))",
        BLOCK,
        "is not symmetric: k\\(x, y\\) = ",
        "kernels are symmetric",
    ),
    "not semidefinite": lies(
        RETURNS + "-cdist(X, Y)\ntranslation = 'kernel'",
        BLOCK,
        "eigenvalue -",
        "positive_semidefinite = True, and is not",
    ),
    "wrong shape of the diagonal": lies(
        "def diagonal(self, X): return np.ones((len(X), 1))", r"Bad\.diagonal .* returned shape \(\d+, 1\)"
    ),
    "wrong translation": lies(
        RETURNS + "(1 + X @ Y.T) ** 2\ndef entry_error(self, data, dtype): return None",
        BLOCK,
        "translation = 'kernel', and that does not hold",
    ),
    "a number for a flag": lies("thread_safe = 1", "thread_safe is 1; it must be one of"),
    "NaN inside a tile": lies(
        "def block(self, X, Y):\n    K = super().block(X, Y)\n    K[2:3, 4:5] = np.nan\n    return K",
        BLOCK,
        r"is not symmetric: k\(x, y\) = nan, .*\(rows 2 and 4\)",
    ),
    "impossible translation": lies("translation = 'yes'", "translation is 'yes'"),
    "writes into its input": raises(
        "def block(self, X, Y):\n    X -= 1\n    return super().block(X, Y)", ValueError, BLOCK, "read-only"
    ),
    "raises halfway": raises(
        """
        calls = []
        def block(self, X, Y):
            self.calls.append(1)
            if len(self.calls) > 2:
                raise RuntimeError("the licence has expired")
            return super().block(X, Y)
        """,
        RuntimeError,
        BLOCK,
        "RuntimeError: the licence has expired",
    ),
    "exits": raises("def block(self, X, Y): raise SystemExit(3)", SystemExit, BLOCK, "SystemExit"),
    "resolve raises": raises("def resolve(self, data): return data.nothing", AttributeError, r"Bad\.resolve raised"),
    "resolve forgets to return": lies(
        "def resolve(self, data): pass", r"Bad\.resolve returned None", "a kernel is due"
    ),
    "offers nonsense": lies(
        "def feature_maps(self, data, tol, max_features): return [('own', 3)]",
        r"Bad\.feature_maps returned \('own', 3\)",
        "sequence of Offer",
        use="features",
    ),
    "offers nothing": lies(
        "def feature_maps(self, data, tol, max_features): pass",
        r"Bad\.feature_maps returned None",
        "sequence of Offer",
        use="features",
    ),
    "offers raise halfway": raises(
        """
        def feature_maps(self, data, tol, max_features):
            yield Offer("own", Cost(5), print)
            yield len(5)
        """,
        TypeError,
        r"Bad\.feature_maps",
        "TypeError: object of type 'int' has no len",
        use="features",
    ),
    "map cannot be built": raises(
        "def feature_maps(self, *a): return [Offer('good', Cost(5), lambda sample: 1 / 0)]",
        ZeroDivisionError,
        r"Bad\.feature_maps\(\)\['good'\]\.build",
        "ZeroDivisionError",
        use="features",
    ),
    "negative residual": part(
        "GoodMap",
        "def residual(self, X, Phi=None): return -np.ones(len(X))",
        r"Wrong\.residual on shape \(\d+, 3\) returned -1.* never negative",
    ),
    "features of the wrong shape": part(
        "GoodMap", "def features(self, X): return super().features(X).T", r"returned shape \(30,.* is due"
    ),
    "product of the wrong shape": part(
        "GoodProduct",
        "def matmat(self, U): return super().matmat(U)[:-1]",
        r"Wrong\.matmat on shape \(400, 2\) returned shape \(399, 2\)",
    ),
    "bound above tol": part("GoodProduct", "error_bound = 0.1", "has error_bound 0.1", "at most 1e-06 was asked for"),
    "product of NaN": part(
        "GoodProduct",
        "def matmat(self, U): return super().matmat(U) * np.nan",
        r"Wrong\.matmat .* returned nan \(first at row 0, column 0\)",
    ),
    "product with one NaN": part(
        "GoodProduct",
        "def matmat(self, U):\n    P = super().matmat(U)\n    P[395, 1] = np.nan\n    return P",
        r"Wrong\.matmat .* returned nan \(first at row 395, column 1\)",
    ),
    "not thread-safe, fails when it notices": raises(
        """
        busy = threading.Lock()
        def block(self, X, Y):
            if not self.busy.acquire(blocking=False):
                raise RuntimeError("entered twice")
            try:
                time.sleep(0.002)
                return super().block(X, Y)
            finally:
                self.busy.release()
        """,
        RuntimeError,
        BLOCK,
        "entered twice",
        "thread_safe = False",
        use="threads",
    ),
}


def use(how: str, name: str):
    """The public door that meets the defect."""
    far = np.tile(X, (4, 1))
    far[777] = 2.75
    return {
        "get": lambda: fk.get_kernel(name, sigma=1.0),
        "kpca": lambda: fk.kpca(X, name, 3, sigma=1.0),
        "features": lambda: fk.features(X, name, tol=0.5, features="good"),
        "gram": lambda: fk.gram(X, name, tol=1e-6, products="good") @ X[:, :2],
        "rectangle": lambda: fk.gram(X, name, X[:50]) @ np.ones((50, 1)),
        "threads": lambda: fk.gram(np.tile(X, (8, 1)), name, n_threads=4) @ np.ones((3200, 1)),
        "far row": lambda: fk.gram(far, name) @ np.ones((1600, 1)),
    }[how]()


@pytest.mark.parametrize("case", CASES)
def test_it_is_named_and_breaks_nobody(plugins, case):
    about = CASES[case]
    plugins("hostile-kernels", {"bad": "hostile_module:Bad"}, {"hostile_module": about.source}, "3.1")
    plugins("zeta", {"fine": "zeta_module:Product"}, {"zeta_module": SCALED})
    with pytest.raises(about.error) as caught:
        use(about.use, "bad")
    text = str(caught.value)
    assert "kernel 'bad' of distribution hostile-kernels 3.1" in text
    for words in about.words:
        assert re.search(words, text), (words, text)
    if about.cause is None:
        assert caught.value.__cause__ is None
    else:
        assert isinstance(caught.value.__cause__, about.cause)
    assert {"bad", "fine"} <= set(fk.list_kernels().names)
    assert fk.kpca(X[:60], "fine", 2).n_components == 2


def test_what_they_are_made_of_is_fine(plugins):
    """The cases above differ from this in one thing each."""
    plugins("fine", {"own": "fine_module:Own"}, {"fine_module": source("Own", base="WithOffers")})
    phi = fk.features(X, "own", tol=0.5, features="good")
    assert phi.shape == (400, 30) and 0 < phi.residual_trace < 200
    exact = fk.gram(X, "own") @ X
    np.testing.assert_allclose(fk.gram(X, "own", tol=1e-6, products="good") @ X, exact, rtol=1e-12)
    model = fk.kpca(X, "own", 3, tol=0.9, features="good")
    assert model.info["n_features"] == 30
    intervals.meet(
        model, fk.kpca(X, "own", 3, method="dense")
    )  # what so few features leave out is known from rows of it
    assert type(model.kernel).__name__ == "Own" and type(model.kernel).__module__ == "fine_module"
    fk.kpca_project(model, X[:5])


def test_a_defect_that_shows_when_projecting(plugins):
    bad = source("Bad", "limit = [4000]\ndef block(self, X, Y): return super().block(X, Y)[: self.limit[0]]")
    plugins("hostile-kernels", {"bad": "hostile_module:Bad"}, {"hostile_module": bad})
    model = fk.kpca(X, "bad", 3, method="dense")
    sys.modules["hostile_module"].Bad.limit[0] = 3
    with pytest.raises(KernelContractError, match=r"'bad' of distribution hostile-kernels.*returned shape \(3, \d+\)"):
        fk.kpca_project(model, X[:5])


def test_declared_not_thread_safe_is_called_from_one_thread(plugins):
    careful = source(
        "Careful",
        """
        thread_safe = False
        inside = []
        def block(self, X, Y):
            self.inside.append(1)
            assert len(self.inside) == 1, "entered twice"
            time.sleep(0.0005)
            K = super().block(X, Y)
            self.inside.pop()
            return K
        """,
    )
    plugins("careful", {"careful": "careful_module:Careful"}, {"careful_module": careful})
    large = np.tile(X, (3, 1))
    expected = fk.gram(large, "gaussian", sigma=1.0) @ large
    product = fk.gram(large, "careful", sigma=1.0, n_threads=4) @ large
    np.testing.assert_allclose(product, expected, rtol=1e-10, atol=1e-10)
    for method in ("dense", "features", "krylov"):
        model = fk.kpca(large, "careful", 2, tol=1e-2, method=method, n_threads=4)
        assert fk.kpca_project(model, large, n_threads=4).shape == (1200, 2)
    assert fk.features(large, "careful", tol=0.1, n_threads=4).moments().count == 1200


# Listing ----------------------------------------------------------------------------------------------------------


def test_listing_with_load(plugins):
    for number, about in enumerate(CASES.values()):
        module = f"hostile_{number}"
        plugins(f"hostile-{number}", {f"bad{number}": f"{module}:Bad"}, {module: about.source})
    own = source("Own", '__doc__ = "Of Zeta.\\n\\nAnd more."', "WithOffers") + "\n\n" + source("Silent", base="Own")
    entries = {"own": "zeta_module:Own", "silent": "zeta_module:Silent"}
    plugins("zeta", entries, {"zeta_module": own}, "2.5", summary="Kernels of Zeta")
    rows = {row.name: row for row in fk.list_kernels(load=True)}
    assert (rows["own"].summary, rows["silent"].summary) == ("Of Zeta.", "Kernels of Zeta")
    failed = {case for number, case in enumerate(CASES) if rows[f"bad{number}"].state == "failed"}
    assert failed == {case for case, about in CASES.items() if about.use == "get"}
    assert "No module named 'nothing_of_that_name'" in rows["bad0"].error and "hostile-0 1.0" in rows["bad0"].error
    assert rows["own"].state == "loaded" and rows["own"].error == ""
    offered = "positive semidefinite", "translation=kernel", "thread-safe", "feature maps", "summations", "entry error"
    assert rows["own"].capabilities == offered
    assert "compiled tiles" in rows["gaussian"].capabilities
    assert rows["polynomial"].parameters == {"degree": 3, "scale": 1.0, "offset": 1.0}
    text = repr(fk.list_kernels(load=True))
    assert "failed" in text and "degree=3, scale=1.0, offset=1.0" in text
    unloaded = {row.name: row for row in fk.list_kernels()}
    assert all(row.state == "not loaded" and row.parameters is None for row in unloaded.values())
    assert unloaded["own"].summary == "Kernels of Zeta"


def test_nothing_is_imported_before_it_is_asked_for(tmp_path):
    for group in (KERNELS, "fastkpca.methods"):
        module = f"poison_{group.rpartition('.')[2]}"
        fake_plugins.write(tmp_path, module, {"poison": f"{module}:Bad"}, {}, group=group)
        (tmp_path / f"{module}.py").write_text('raise RuntimeError("imported")')
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import fastkpca, fastkpca.kernels, fastkpca.testing
from fastkpca.cli import main
assert "poison" in repr(fastkpca.list_kernels()) and "poison" in fastkpca.list_methods().names
main(["kernels"])
assert not [m for m in sys.modules if "poison" in m]
main(["kernels", "--load"])
"""
    words = " ".join(child(code))
    assert "failed" in words and "RuntimeError: imported" in words and "gaussian" in words


# Methods ----------------------------------------------------------------------------------------------------------


def test_methods(plugins):
    text = """
    def kmda(X, labels, kernel="gaussian"):
        '''Discriminants in feature space.'''
        return X.shape
    number = 3
    """
    group = "fastkpca.methods"
    entries = {"kmda": "acme_methods:kmda", "number": "acme_methods:number", "gone": "acme_methods:gone"}
    plugins("acme", entries, {"acme_methods": text}, "1.2", group=group)
    rows = {row.name: row for row in fk.list_methods()}
    assert set(rows) >= set(entries) and "acme_methods" not in sys.modules
    assert fk.get_method("kmda")(X, None) == (400, 3) == fk.get_method("acme:kmda")(X, None)
    with pytest.raises(UnknownMethodError, match=r"no method is named 'kmdA'; did you mean 'kmda'.*list_methods\(\)"):
        fk.get_method("kmdA")
    with pytest.raises(UnknownMethodError, match="no method is named 'gaussian'"):
        fk.get_method("gaussian")
    with pytest.raises(UnknownKernelError):
        fk.get_kernel("kmda")
    with pytest.raises(PluginError, match=r"method 'number' of distribution acme 1\.2: .* is 3; .* to call"):
        fk.get_method("number")
    with pytest.raises(PluginError, match=r"method 'gone' of distribution acme 1\.2 cannot be imported") as caught:
        fk.get_method("gone")
    assert isinstance(caught.value.__cause__, AttributeError)
    with pytest.raises(TypeError, match="give the name of a method"):
        fk.get_method(fk.kpca)
    loaded = {row.name: row for row in fk.list_methods(load=True)}
    assert [loaded[name].state for name in entries] == ["loaded", "failed", "failed"]
    assert loaded["kmda"].summary == rows["kmda"].summary == "Discriminants in feature space."
    plugins("zeta", {"kmda": "zeta_methods:kmda"}, {"zeta_methods": text}, group=group)
    with pytest.raises(PluginError, match=r"the method name 'kmda' is claimed by 2 distributions"):
        fk.get_method("kmda")


def test_a_session_kernel_keeps_the_type_of_its_own_errors():
    def broken(X, Y):
        raise KeyError("nothing")

    with pytest.raises(KeyError, match="nothing") as caught:
        fk.kpca(X, broken, 2)
    assert "broken" in "".join(caught.value.__notes__)
    with pytest.raises(KernelContractError, match=r"kernel .*<lambda> .*is not symmetric"):
        fk.kpca(X, lambda X, Y: np.exp(X[:, :1] - 2 * Y[:, :1].T), 2)
    assert threading.active_count() < 50


def fails(*_):
    raise ZeroDivisionError("nothing")


@pytest.mark.parametrize("name", ["check", "value_bound", "block", "resolve", "entry_error", "unbound"])
def test_every_error_of_an_unregistered_kernel_names_it(name):
    class Mine(Kernel):
        positive_semidefinite = True

        def block(self, X, Y):
            return np.exp(-((X[:, None] - Y) ** 2).sum(axis=2))

    setattr(Mine, name, fails)
    with pytest.raises(ZeroDivisionError, match="nothing") as caught:
        fk.kpca(X, Mine if name == "check" else Mine() * fk.get_kernel("gaussian", sigma=1.0), 2)
    assert "Mine" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("name", ["diagonal", "positive_semidefinite", "translation", "thread_safe"])
def test_every_error_of_an_object_names_it(name):
    mine = type("Mine", (), {"block": lambda self, X, Y: X @ Y.T, name: property(fails)})
    with pytest.raises(ZeroDivisionError, match="nothing") as caught:
        fk.kpca(X, mine(), 2)
    assert f"Mine.{name}" in "".join(caught.value.__notes__)


# The guard itself ---------------------------------------------------------------------------------------------------


def test_the_guard_is_not_seen(plugins, tmp_path):
    plugins("fine", {"own": "fine_module:Own"}, {"fine_module": source("Own", base="WithOffers")})
    kernel = fk.get_kernel("own", sigma=1.5)
    guard = guarded(kernel)
    assert guarded(guard) is guard and guarded(fk.get_kernel("gaussian")) == fk.get_kernel("gaussian")
    assert (repr(guard), hash(guard)) == (repr(kernel), hash(kernel))
    assert guard == kernel and guard == guarded(fk.get_kernel("own", sigma=1.5))
    assert guard.get_parameters() == kernel.get_parameters()
    again = pickle.loads(pickle.dumps(guard))
    assert again == guard and type(again) is type(guard)
    operator = fk.gram(X, kernel)
    assert operator.kernel == kernel and kernel_state(operator.kernel) == kernel_state(kernel)
    one = fk.gram(X[:1], kernel) @ np.ones((1, 1))
    np.testing.assert_allclose(one, [[1.0]], rtol=1e-15)
    for method, features in (("dense", "auto"), ("krylov", "auto"), ("features", "pivots")):
        model = fk.kpca(X, kernel, 2, tol=1e-2, method=method, features=features)
        assert model.kernel == kernel and type(model.kernel) is type(kernel)
        fk.save(model, tmp_path / f"{method}.kpca")
        np.testing.assert_array_equal(
            fk.kpca_project(fk.load(tmp_path / f"{method}.kpca", plugins=True), X[:5]), fk.kpca_project(model, X[:5])
        )
    with pytest.raises(AttributeError, match="nothing"):
        guard.nothing  # noqa: B018


@pytest.mark.parametrize("method", ["dense", "krylov", "features"])
def test_nan_for_a_single_pair_is_named(plugins, method):
    body = """
        translation = None
        def block(self, X, Y):
            K = super().block(X, Y)
            K[cdist(X, Y) > 15] = np.nan
            return K
    """
    plugins("hostile", {"bad": "hostile_module:Bad"}, {"hostile_module": source("Bad", body)})
    rows = np.concatenate([X, X])
    rows[300], rows[700] = 5.0, -5.0
    with pytest.raises(ValueError, match=r"nan|not finite|NaN") as caught:
        fk.kpca(rows, "bad", 2, tol=1e-2, method=method)
    told = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert "kernel 'bad' of distribution hostile 1.0" in told


def test_the_guard_stands_in_for_every_part_of_a_kernel():
    """A method that the protocol gains is the kernel's own behind a guard, never the base class's default."""

    class Large(Kernel):
        positive_semidefinite = True
        parameters = {"scale": 2.0}
        aliases = {"gamma": ("scale", float)}

        def block(self, X, Y):
            return self.scale * (X @ Y.T)

    guard = guarded(Large())
    public = [name for name in vars(Kernel) if not name.startswith("_")]
    assert not [name for name in public if name not in vars(type(guard))]
    assert (guard.parameters, guard.scale, guard.api_version) == ({"scale": 2.0}, 2.0, None)
    assert guard.aliases == Large.aliases


def test_each_part_of_a_combined_kernel_is_guarded():
    wrong = fk.get_kernel(lambda X, Y: -np.exp(X @ Y.T), positive_semidefinite=True)
    with pytest.raises(KernelContractError, match="<lambda>.* is not"):
        fk.gram(X, fk.get_kernel("linear") + wrong)
    right = fk.get_kernel(lambda X, Y: np.exp(0.1 * X @ Y.T), positive_semidefinite=True)
    assert fk.gram(X, fk.get_kernel("linear") + right).shape == (400, 400)


def test_tiles_of_no_rows_are_checked_too():
    feature_map = fk.features(X, Good(sigma=1.5), features="good", tol=0.5).map
    none = X[:0]
    assert feature_map.residual(none, feature_map.features(none)).shape == (0,)
    assert guarded(Good(sigma=1.5)).block(none, X).shape == (0, len(X))


def test_large_finite_values_are_looked_at_without_a_warning():
    K = fk.gram(np.array([[1e90, 0.0], [0.0, 1e90]]), lambda X, Y: X @ Y.T)
    np.testing.assert_allclose(K @ np.ones(2), [1e180, 1e180], rtol=1e-15)


def test_a_function_may_have_a_number_called_block():
    def function(X, Y):
        return X @ Y.T

    function.block = 64  # its block size
    np.testing.assert_allclose(fk.kpca(X, function, 2).eigenvalues, fk.kpca(X, "linear", 2).eigenvalues)
