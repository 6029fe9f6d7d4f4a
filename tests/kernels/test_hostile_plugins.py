"""Broken, lying and careless plugins, through the public door: each is named and chained to its cause."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import textwrap
import threading
from dataclasses import dataclass

import fake_plugins
import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import (
    KernelContractError,
    PluginError,
    UnknownKernelError,
    UnknownMethodError,
)
from fastkpca.kernels import Kernel, guarded, kernel_state
from fastkpca.testing import ConformanceError, check_kernel, check_thread_safety

KERNELS = "fastkpca.kernels"
X = np.random.default_rng(7).standard_normal((400, 3))

GOOD = """
    class Good(Kernel):
        api_version = 1
        positive_semidefinite = True
        translation = "kernel"
        def block(self, X, Y):
            return np.exp(-cdist(X, Y, "sqeuclidean") / 2).astype(X.dtype)
        def entry_error(self, data, dtype):
            return 40 * float(np.finfo(dtype).eps) * (1 + data.radius)
"""
MAP = """
    class Map(FeatureMap):
        def __init__(self, sample):
            self.points = np.array(sample[:20])
            K = np.exp(-cdist(self.points, self.points, "sqeuclidean") / 2)
            self.factor = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))
            self.n_features = len(K)
        def features(self, X):
            return np.linalg.solve(self.factor, np.exp(-cdist(self.points, X, "sqeuclidean") / 2)).T
        def residual(self, X, Phi=None):
            Phi = self.features(X) if Phi is None else Phi
            return np.maximum(1 - (Phi**2).sum(axis=1), 0) + 1e-9
    class Own(Good):
        api_version = 1
        def feature_maps(self, data, tol, max_features):
            return (Offer("own", Cost(20, 1.0, 1.0, 1.0, tol), Map),)
"""
PRODUCT = """
    class Product(Summation):
        error_bound = 1e-9
        def __init__(self, X, Y=None):
            self.X, self.Y = X.all(), (X if Y is None else Y).all()
            self.symmetric = Y is None
            self.shape = len(self.X), len(self.Y)
        def matmat(self, U):
            return np.exp(-cdist(self.X, self.Y, "sqeuclidean") / 2) @ U
        def rmatmat(self, U):
            return np.exp(-cdist(self.Y, self.X, "sqeuclidean") / 2) @ U
    class Fast(Good):
        api_version = 1
        def summations(self, data_x, data_y, tol):
            return (Offer("own", Cost(0, 1.0, 1.0, 1.0, 1e-9), Product),)
"""


@dataclass(frozen=True)
class Case:
    """What a plugin's module holds, and what has to be said about it (``words`` are regular expressions)."""

    source: str
    error: type[Exception]
    words: tuple[str, ...]
    cause: type[BaseException] | None = None
    use: str = "kpca"


def kernel(body: str, base: str = "Good", before: str = GOOD) -> str:
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return before + f"\n    class Bad({base}):\n        api_version = 1\n{inner}\n"


def lies(body: str, *words: str, use: str = "kpca") -> Case:
    """A kernel that breaks its contract, which is Good but for this part."""
    return Case(kernel(body), KernelContractError, words, use=use)


def fails(body: str, cause: type[BaseException], *words: str, use: str = "kpca") -> Case:
    """A kernel whose own code raises."""
    return Case(kernel(body), PluginError, words, cause, use)


def part(base: str, body: str, *words: str) -> Case:
    """A kernel that is right, with a map or a product that is not."""
    owner, method, features, use = {
        "Map": ("Own", "feature_maps(self, data, tol, max_features)", 20, "features"),
        "Product": ("Fast", "summations(self, data_x, data_y, tol)", 0, "gram"),
    }[base]
    defined = f"\n    class Wrong({base}):\n" + textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    offer = f"def {method}:\n    return [Offer('own', Cost({features}, 1.0, 1.0, 1.0, tol), Wrong)]"
    return Case(kernel(offer, owner, GOOD + MAP + PRODUCT + defined), KernelContractError, words, use=use)


BLOCK = r"Bad\.block on shapes \(\d+, 3\) and \(\d+, 3\)"
DIAGONAL = r"Bad\.diagonal on shape \(\d+, 3\)"
ON_ROWS = r"on shape \(\d+, 3\)"
VALUES = 'np.exp(-cdist(X, Y, "sqeuclidean") / 2)'
RETURNS = "def block(self, X, Y): return "
CASES = {
    "import error": Case("import nothing_of_that_name", PluginError, ("cannot be imported",), ModuleNotFoundError),
    "missing attribute": Case("Other = 3", PluginError, ("AttributeError", "Bad"), AttributeError),
    "old api_version": Case(
        "class Bad(Kernel):\n    api_version = 0\n    block = print",
        PluginError,
        ("api_version 0", "upgrade the plugin"),
    ),
    "constructor raises": fails("def check(self): 1 / 0", ZeroDivisionError, "Bad\\(\\) raised"),
    "wrong signature": fails("def block(self, X): return X", TypeError, BLOCK, "TypeError"),
    "a kernel of two points": lies(
        "def block(self, x, y): return float(np.exp(-np.sum(x * y)))", BLOCK, "float64 values|returned shape"
    ),
    "wrong shape": lies(
        RETURNS + "np.ones((len(X), len(Y) + 1))", BLOCK, r"returned shape \(\d+, \d+\)", r"shape \(\d+, \d+\) is due"
    ),
    "transposed": lies(RETURNS + "super().block(Y, X)", "Bad.block on shapes", "returned shape"),
    "object values": lies(RETURNS + "super().block(X, Y).astype(object)", BLOCK, "returned object values"),
    "complex values": lies(RETURNS + "super().block(X, Y) + 0j", BLOCK, "returned complex128 values"),
    "whole numbers": lies(RETURNS + "(9 * super().block(X, Y)).astype(int)", BLOCK, "returned int64 values"),
    "float32 for float64": lies(
        RETURNS + "super().block(X, Y).astype(np.float32)", BLOCK, "returned float32 values", "float64, are due"
    ),
    "None": lies("def block(self, X, Y): pass", BLOCK, "returned object values"),
    "NaN": lies(
        RETURNS + "super().block(X, Y) * np.nan", BLOCK, r"returned nan \(first at row 0, column 0 of the tile\)"
    ),
    "NaN for one row": lies(
        f"""
        translation = None
        def block(self, X, Y):
            with np.errstate(invalid="ignore", divide="ignore"):
                return {VALUES} * (X[:, :1] - 2.75) / (X[:, :1] - 2.75)
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
    "asymmetric between tiles": lies(
        RETURNS + "super().block(X, Y) * (1.0 if len(X) == len(Y) else 1.01)",
        "Bad.block on shapes",
        "differ by",
        "a value depends on its two rows alone",
    ),
    "depends on the tile": lies(
        RETURNS + "np.exp(-cdist(X, Y, 'sqeuclidean') / (1 + len(X)))", "Bad.block on shapes", "differ by"
    ),
    "not semidefinite": lies(
        RETURNS + "-cdist(X, Y)\ntranslation = 'kernel'",
        BLOCK,
        "eigenvalue -",
        "positive_semidefinite = True, and is not",
    ),
    "wrong diagonal": lies(
        "def diagonal(self, X): return np.full(len(X), 1.001)", DIAGONAL, "k\\(x, x\\) = 1.00", "block says 1"
    ),
    "wrong shape of the diagonal": lies(
        "def diagonal(self, X): return np.ones((len(X), 1))", DIAGONAL, r"returned shape \(\d+, 1\)"
    ),
    "wrong translation": lies(
        RETURNS + "(1 + X @ Y.T) ** 2\ndef entry_error(self, data, dtype): return None",
        BLOCK,
        "translation = 'kernel', and that does not hold",
    ),
    "impossible translation": lies("translation = 'yes'", "translation is 'yes'"),
    "wrong compiled tile": lies(
        "def compiled_tile(self): return 'gaussian', {'sigma': 1.1}", r"Bad\.compiled_tile", "differs from block"
    ),
    "unknown compiled tile": fails(
        "def compiled_tile(self): return 'cosine', {}", Exception, r"Bad\.compiled_tile", "raised"
    ),
    "writes into its input": fails(
        "def block(self, X, Y):\n    X -= 1\n    return super().block(X, Y)", ValueError, BLOCK, "read-only"
    ),
    "raises halfway": fails(
        """
        calls = []
        def block(self, X, Y):
            self.calls.append(1)
            if len(self.calls) > 5:
                raise RuntimeError("the licence has expired")
            return super().block(X, Y)
        """,
        RuntimeError,
        BLOCK,
        "RuntimeError: the licence has expired",
    ),
    "exits": fails("def block(self, X, Y): raise SystemExit(3)", SystemExit, BLOCK, "SystemExit"),
    "resolve raises": fails("def resolve(self, data): return data.nothing", AttributeError, r"Bad\.resolve raised"),
    "resolve forgets to return": lies(
        "def resolve(self, data): pass", r"Bad\.resolve returned None", "a kernel is due"
    ),
    "offers nonsense": lies(
        "def feature_maps(self, data, tol, max_features): return [('own', 3)]",
        r"Bad\.feature_maps returned \('own', 3\)",
        "sequence of Offer",
        use="features",
    ),
    "offers raise halfway": fails(
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
    "map cannot be built": fails(
        "def feature_maps(self, *a): return [Offer('own', Cost(5), lambda sample: 1 / 0)]",
        ZeroDivisionError,
        r"Bad\.feature_maps\(\)\['own'\]\.build",
        "ZeroDivisionError",
        use="features",
    ),
    "map exceeds the kernel": part(
        "Map",
        "def features(self, X): return 1.001 * super().features(X)",
        r"Wrong\.features " + ON_ROWS,
        "the residual is negative: the map exceeds the kernel",
    ),
    "negative residual": part(
        "Map",
        "def residual(self, X, Phi=None): return -np.ones(len(X))",
        rf"Wrong\.residual {ON_ROWS} returned -1",
        "never negative",
    ),
    "residual too small": part(
        "Map",
        "def residual(self, X, Phi=None): return np.full(len(X), 1e-12)",
        rf"Wrong\.residual {ON_ROWS} is 1e-12 where",
        "upper bound",
    ),
    "products of a map differ": part(
        "Map",
        "def apply(self, X, C): return self.features(X) @ C + 1e-3",
        rf"Wrong\.apply {ON_ROWS} differs from the product with features",
    ),
    "products of a map differ by more than its defect": part(
        "Map",
        "defect = 1e-6\ndef apply(self, X, C): return self.features(X) @ C + 2e-5",
        rf"Wrong\.apply {ON_ROWS} differs from the product with features",
    ),
    "product breaks its bound": part(
        "Product",
        "def matmat(self, U): return super().matmat(U) + 1e-6 * np.abs(U).sum(axis=0)",
        r"Wrong\.matmat on shape \(400, 2\) is off by 0\.0\d+ in row \d+",
        "error_bound",
    ),
    "product of the wrong shape": part(
        "Product",
        "def matmat(self, U): return super().matmat(U)[:-1]",
        r"Wrong\.matmat on shape \(400, 2\) returned shape \(399, 2\)",
    ),
    "bound above tol": part("Product", "error_bound = 0.1", "has error_bound 0.1", "at most 1e-06 was asked for"),
    "product of NaN": part(
        "Product",
        "def matmat(self, U): return super().matmat(U) * np.nan",
        r"Wrong\.matmat",
        r"not finite \(first at row 0\)",
    ),
    "not thread-safe, returns its workspace": lies(
        f"""
        space = np.empty((4096, 4096))
        def block(self, X, Y):
            out = self.space[: len(X), : len(Y)]
            out[...] = {VALUES}
            return out
        """,
        "Bad.block on shapes",
        "the same memory in two calls",
        "new array",
    ),
    "not thread-safe, fails when it notices": fails(
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
    if how == "features":
        return fk.features(X, name, tol=0.5, features="own")
    if how == "gram":
        return fk.gram(X, name, tol=1e-6, products="own") @ X[:, :2]
    if how == "threads":
        return fk.gram(np.tile(X, (8, 1)), name, n_threads=4) @ np.ones((3200, 1))
    if how == "far row":
        far = np.tile(X, (4, 1))
        far[777] = 2.75
        return fk.gram(far, name) @ np.ones((1600, 1))
    return fk.kpca(X, name, 3)


@pytest.mark.parametrize("case", CASES)
def test_it_is_named_and_breaks_nobody(plugins, case):
    about = CASES[case]
    plugins("hostile-kernels", {"bad": "hostile_module:Bad"}, {"hostile_module": about.source}, "3.1")
    plugins("zeta", {"good": "zeta_module:Good"}, {"zeta_module": GOOD})
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
    assert {"bad", "good"} <= set(fk.list_kernels().names)
    assert fk.kpca(X[:60], "good", 2).n_components == 2
    assert fk.gram(X, "good", tol=1e-6).shape == (400, 400)


def test_what_they_are_made_of_is_fine(plugins):
    """The cases above differ from these in one thing each."""
    source = GOOD + MAP + PRODUCT
    plugins("fine", {"own": "fine_module:Own", "fast": "fine_module:Fast"}, {"fine_module": source})
    phi = fk.features(X, "own", tol=0.5, features="own")
    assert phi.shape == (400, 20) and 0 < phi.residual_trace < 200
    assert type(phi.map.points) is np.ndarray
    exact = fk.gram(X, "own") @ X
    np.testing.assert_allclose(fk.gram(X, "fast", tol=1e-6, products="own") @ X, exact, rtol=1e-12)
    model = fk.kpca(X, "own", 3, tol=0.9, features="own")
    assert model.info["n_features"] == 20
    low, high = model.eigenvalue_bounds.T  # what so few features leave out is known from rows of it
    true = fk.kpca(X, "own", 3, method="dense").eigenvalues
    assert (low <= true * (1 + 1e-12)).all() and (true <= high * (1 + 1e-12)).all()
    assert type(model.kernel).__name__ == "Own" and type(model.kernel).__module__ == "fine_module"
    fk.kpca_project(model, X[:5])


def test_a_defect_that_shows_when_projecting(plugins):
    source = kernel("limit = [4000]\ndef block(self, X, Y): return super().block(X, Y)[: self.limit[0]]")
    plugins("hostile-kernels", {"bad": "hostile_module:Bad"}, {"hostile_module": source})
    model = fk.kpca(X, "bad", 3, method="dense")
    sys.modules["hostile_module"].Bad.limit[0] = 3
    with pytest.raises(KernelContractError, match=r"'bad' of distribution hostile-kernels.*returned shape \(3, \d+\)"):
        fk.kpca_project(model, X[:5])


def test_declared_not_thread_safe_is_called_from_one_thread(plugins):
    source = kernel("""
        thread_safe = False
        inside = []
        def block(self, X, Y):
            self.inside.append(1)
            assert len(self.inside) == 1, "entered twice"
            time.sleep(0.0005)
            K = super().block(X, Y)
            self.inside.pop()
            return K
    """)
    plugins("careful", {"careful": "careful_module:Bad"}, {"careful_module": source})
    large = np.tile(X, (3, 1))
    expected = fk.gram(large, "gaussian", sigma=1.0) @ large
    np.testing.assert_allclose(fk.gram(large, "careful", n_threads=4) @ large, expected, rtol=1e-10, atol=1e-10)
    for method in ("dense", "features", "krylov"):
        assert fk.kpca(large, "careful", 2, tol=1e-2, method=method, n_threads=4).n_components == 2


def test_not_thread_safe_and_silent_is_for_the_conformance_kit(plugins):
    source = kernel(f"""
        space = np.empty((4096, 4096))
        def block(self, X, Y):
            out = self.space[: len(X), : len(Y)]
            out[...] = {VALUES}
            time.sleep(0.001)
            return out.copy()
    """)
    plugins("careless", {"careless": "careless_module:Bad"}, {"careless_module": source})
    with pytest.raises(ConformanceError, match="thread"):
        check_thread_safety(fk.get_kernel("careless"))


# Listing ----------------------------------------------------------------------------------------------------------


def test_listing_with_load(plugins):
    for number, about in enumerate(CASES.values()):
        module = f"hostile_{number}"
        plugins(f"hostile-{number}", {f"bad{number}": f"{module}:Bad"}, {module: about.source})
    plugins(
        "zeta", {"own": "zeta_module:Own", "fast": "zeta_module:Fast"}, {"zeta_module": GOOD + MAP + PRODUCT}, "2.5"
    )
    with fk.register_kernel("mine", lambda X, Y: X @ Y.T):
        rows = {row.name: row for row in fk.list_kernels(load=True)}
    states = {case: rows[f"bad{number}"].state for number, case in enumerate(CASES)}
    at_load = {"import error", "missing attribute", "old api_version", "constructor raises"}
    assert {case for case, state in states.items() if state == "failed"} == at_load
    assert "No module named 'nothing_of_that_name'" in rows["bad0"].error and "hostile-0 1.0" in rows["bad0"].error
    assert rows["own"].state == "loaded" and rows["own"].error == ""
    assert rows["own"].capabilities == (
        "positive semidefinite",
        "translation=kernel",
        "thread-safe",
        "feature maps",
        "entry error",
    )
    assert "summations" in rows["fast"].capabilities
    assert "compiled tiles" in rows["gaussian"].capabilities
    assert rows["polynomial"].parameters == {"degree": 3, "scale": 1.0, "offset": 1.0}
    assert "thread-safe" not in rows["mine"].capabilities or rows["mine"].state == "loaded"
    text = repr(fk.list_kernels(load=True))
    assert "failed" in text and "degree=3, scale=1.0, offset=1.0" in text
    assert all(row.state == "not loaded" and row.parameters is None for row in fk.list_kernels())


POISON = """
    raise RuntimeError("imported")
"""


@pytest.mark.parametrize("command", ["import", "list", "methods", "cli"])
def test_nothing_is_imported_before_it_is_asked_for(tmp_path, command):
    for group in (KERNELS, "fastkpca.methods"):
        kind = group.rpartition(".")[2]
        fake_plugins.write(tmp_path, f"poison-{kind}", {"poison": f"poison_{kind}:Bad"}, {}, group=group)
        (tmp_path / f"poison_{kind}.py").write_text(textwrap.dedent(POISON))
    code = {
        "import": "import fastkpca, fastkpca.kernels, fastkpca.testing",
        "list": "import fastkpca; assert 'poison' in repr(fastkpca.list_kernels())",
        "methods": "import fastkpca; assert 'poison' in fastkpca.list_methods().names",
        "cli": "from fastkpca.cli import main; main(['kernels'])",
    }[command]
    first = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    code = f"{first}; {code}; assert not [m for m in sys.modules if 'poison' in m]"
    subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True)
    code = f"{first}; from fastkpca.cli import main; main(['kernels', '--load'])"
    if command == "cli":
        done = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True)
        line = next(line for line in done.stdout.splitlines() if line.startswith("poison"))
        assert "failed" in line and "RuntimeError: imported" in line
        assert "gaussian" in done.stdout


# Methods ----------------------------------------------------------------------------------------------------------


def test_methods(plugins):
    source = """
    def kmda(X, labels, kernel="gaussian"):
        '''Discriminants in feature space.'''
        return X.shape
    number = 3
    """
    group = "fastkpca.methods"
    entries = {"kmda": "acme_methods:kmda", "number": "acme_methods:number", "gone": "acme_methods:gone"}
    plugins("acme", entries, {"acme_methods": source}, "1.2", group=group)
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
    assert loaded["kmda"].capabilities == ("Discriminants in feature space.",)
    plugins("zeta", {"kmda": "zeta_methods:kmda"}, {"zeta_methods": source}, group=group)
    with pytest.raises(PluginError, match=r"the method name 'kmda' is claimed by 2 distributions"):
        fk.get_method("kmda")


# What the looks cost ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [400, 1000, 3000])
def test_the_looks_read_at_most_one_percent(plugins, n):
    source = kernel("""
        values = []
        lock = threading.Lock()
        def block(self, X, Y):
            with self.lock:
                self.values.append(len(X) * len(Y))
            return super().block(X, Y)
    """)
    plugins("counting", {"counting": "counting_module:Bad"}, {"counting_module": source})
    rows = np.random.default_rng(n).standard_normal((n, 3))
    fk.gram(rows, "counting")
    count = sys.modules["counting_module"].Bad.values
    looked = sum(count)
    assert 0 < looked <= 0.01 * n * n
    fk.kpca(rows, "counting", 3)
    assert sum(count) - looked > 10 * looked


def test_a_session_kernel_keeps_the_type_of_its_own_errors():
    def broken(X, Y):
        raise KeyError("nothing")

    with pytest.raises(KeyError, match="nothing") as caught:
        fk.kpca(X, broken, 2)
    assert "broken" in "".join(caught.value.__notes__)
    with pytest.raises(KernelContractError, match=r"kernel .*<lambda> .*is not symmetric"):
        fk.kpca(X, lambda X, Y: np.exp(X[:, :1] - 2 * Y[:, :1].T), 2)
    assert threading.active_count() < 50


@pytest.mark.parametrize("method", ["check", "value_bound", "block", "resolve", "entry_error", "unbound"])
def test_every_error_of_an_unregistered_kernel_names_it(method):
    class Mine(Kernel):
        positive_semidefinite = True

        def block(self, X, Y):
            return np.exp(-((X[:, None] - Y) ** 2).sum(axis=2))

    def fails(*_):
        raise ZeroDivisionError("nothing")

    setattr(Mine, method, fails)
    with pytest.raises(ZeroDivisionError, match="nothing") as caught:
        fk.kpca(X, Mine if method == "check" else Mine() * fk.get_kernel("gaussian", sigma=1.0), 2)
    assert "Mine" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("name", ["diagonal", "positive_semidefinite", "translation", "thread_safe"])
def test_every_error_of_an_object_names_it(name):
    class Mine:
        def block(self, X, Y):
            return X @ Y.T

    def fails(_):
        raise ZeroDivisionError("nothing")

    setattr(Mine, name, property(fails))
    with pytest.raises(ZeroDivisionError, match="nothing") as caught:
        fk.kpca(X, Mine(), 2)
    assert f"Mine.{name}" in "".join(caught.value.__notes__)


# The guard itself ---------------------------------------------------------------------------------------------------


def test_the_guard_is_not_seen(plugins, tmp_path):
    plugins("fine", {"own": "fine_module:Own"}, {"fine_module": GOOD + MAP})
    kernel = fk.get_kernel("own")
    guard = guarded(kernel)
    assert guarded(guard) is guard and guarded(fk.get_kernel("gaussian")) == fk.get_kernel("gaussian")
    assert (repr(guard), hash(guard)) == (repr(kernel), hash(kernel))
    assert guard == kernel and guard == guarded(fk.get_kernel("own"))
    assert guard.get_parameters() == kernel.get_parameters()
    again = pickle.loads(pickle.dumps(guard))
    assert again == guard and type(again) is type(guard)
    assert guard.compiled_tile() is None
    operator = fk.gram(X, "own")
    assert operator.kernel == kernel and kernel_state(operator.kernel) == kernel_state(kernel)
    assert type(fk.gram(X, operator.kernel).kernel) is type(guard)
    one = fk.gram(X[:1], "own") @ np.ones((1, 1))
    np.testing.assert_allclose(one, [[1.0]], rtol=1e-15)
    np.testing.assert_allclose(fk.gram(X[:3], "own", X[:1]) @ np.ones((1, 1)), kernel.block(X[:3], X[:1]), rtol=1e-12)
    for method, features in (("dense", "auto"), ("krylov", "auto"), ("features", "pivots")):
        model = fk.kpca(X, kernel, 2, tol=1e-2, method=method, features=features)
        assert model.kernel == kernel and type(model.kernel) is type(kernel)
        fk.save(model, tmp_path / f"{method}.kpca")
        np.testing.assert_array_equal(
            fk.kpca_project(fk.load(tmp_path / f"{method}.kpca", plugins=True), X[:5]), fk.kpca_project(model, X[:5])
        )
    with pytest.raises(AttributeError, match="nothing"):
        guard.nothing  # noqa: B018


def test_a_product_that_breaks_its_bound_inside_kpca(plugins):
    plugins("hostile", {"bad": "hostile_module:Bad"}, {"hostile_module": CASES["product breaks its bound"].source})
    with pytest.raises(KernelContractError, match=r"'bad' of distribution hostile 1\.0: Wrong\.matmat .* is off by"):
        fk.kpca(X, "bad", 3, tol=1e-3, products="own")


@pytest.mark.parametrize("method", ["dense", "krylov", "features"])
def test_nan_for_a_single_pair_is_named(plugins, method):
    source = kernel("""
        translation = None
        def block(self, X, Y):
            K = super().block(X, Y)
            K[cdist(X, Y) > 15] = np.nan
            return K
    """)
    plugins("hostile", {"bad": "hostile_module:Bad"}, {"hostile_module": source})
    rows = np.concatenate([X, X])
    rows[300], rows[700] = 5.0, -5.0
    with pytest.raises(ValueError, match=r"nan|not finite|NaN") as caught:
        fk.kpca(rows, "bad", 2, tol=1e-2, method=method)
    told = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert "kernel 'bad' of distribution hostile 1.0" in told


def test_all_plugins_can_be_left_out(plugins, monkeypatch):
    plugins("hostile", {"bad": "hostile_module:Bad"}, {"hostile_module": "raise RuntimeError"})
    monkeypatch.setenv("FASTKPCA_DISABLE_PLUGINS", "1")
    assert "bad" not in fk.list_kernels(load=True).names and len(fk.list_methods()) == 0
    with pytest.raises(UnknownMethodError, match="methods of other distributions are left out"):
        fk.get_method("klda")


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
    class Combined(Kernel):
        parameters = {"parts": ()}
        __module__ = "fastkpca.kernels.combined"

        def block(self, X, Y):
            return sum(part.block(X, Y) for part in self.parts)

        def resolve(self, data):
            return self.over_parts(lambda part: part.resolve(data))

        def over_parts(self, function):
            return Combined(parts=tuple(map(function, self.parts)))

    wrong = fk.get_kernel(lambda X, Y: -np.exp(X @ Y.T), positive_semidefinite=True)
    with pytest.raises(KernelContractError, match="<lambda>.* is not"):
        fk.gram(X, Combined(parts=(fk.get_kernel("linear"), wrong)))
    right = fk.get_kernel(lambda X, Y: np.exp(0.1 * X @ Y.T), positive_semidefinite=True)
    assert fk.gram(X, Combined(parts=(fk.get_kernel("linear"), right))).shape == (400, 400)


def test_large_finite_values_are_looked_at_without_a_warning():
    K = fk.gram(np.array([[1e90, 0.0], [0.0, 1e90]]), lambda X, Y: X @ Y.T)
    np.testing.assert_allclose(K @ np.ones(2), [1e180, 1e180], rtol=1e-15)


class Minimum(Kernel):
    """sum_k min(x_k, y_k), with a product whose bound counts roundings of values up to the largest."""

    positive_semidefinite = True
    unit = 2.0**-53

    def block(self, X, Y):
        return np.minimum(X[:, None], Y[None]).sum(axis=2)

    def value_bound(self, data):
        return float(data.box[1].sum())

    def entry_error(self, data, dtype):
        return (data.n_features + 1) * self.value_bound(data) * float(np.finfo(dtype).eps)

    def summations(self, data_x, data_y, tol):
        bound = self.factor * (3 * data_y.n_samples + data_y.n_features) * self.unit * self.value_bound(data_x)
        if tol is not None and bound > tol:
            return []
        return [fk.kernels.Offer("own", fk.kernels.Cost(), lambda X, Y=None: MinimumProduct(X, Y, bound))]

    factor = 1.0


class MinimumProduct(fk.kernels.Summation):
    def __init__(self, X, Y, bound):
        Y = X if Y is None else Y
        self.K, self.error_bound = Minimum().block(X.all(), Y.all()), bound
        self.shape, self.symmetric = self.K.shape, False

    def matmat(self, U):
        return self.K @ U

    def rmatmat(self, U):
        return self.K.T @ U


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1000.0, 1e9])
def test_an_exact_product_may_round_as_its_values_are_large(scale):
    rows = scale * np.random.default_rng(0).integers(0, 1000, (300, 4)) / 1000.0
    K = fk.gram(rows, Minimum(), products="own")
    exact = Minimum().block(rows, rows).sum(axis=1)
    assert (np.abs(K @ np.ones(300) - exact) <= 300 * K.error_bound).all()
    check_kernel(Minimum(), rows[:90], skip=["check_declarations", "check_pickling"])


@pytest.mark.parametrize("scale", [1e-6, 1000.0])
def test_an_approximate_product_is_not_exact(scale):
    class Approximate(Minimum):
        factor = 1e5

    rows = scale * np.random.default_rng(0).random((300, 4))
    with pytest.raises(KernelContractError, match="without a tol at most .* is due"):
        fk.gram(rows, Approximate(), products="own")
