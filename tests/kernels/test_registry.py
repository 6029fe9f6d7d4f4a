"""The registry: names, claims of other distributions without installing them, a session's names, foreign objects."""

import contextlib
import importlib
import json
import sys
import tomllib
from functools import partial
from importlib import metadata

import entrypoints
import fake_plugins
import numpy as np
import pytest
from fake_plugins import SCALED
from places import ROOT

import fastkpca as fk
from fastkpca import kernels, list_methods
from fastkpca.errors import PluginError, PluginWarning, UnknownKernelError
from fastkpca.kernels import Kernel, get_kernel, kernel_state, list_kernels, register_kernel, registry
from fastkpca.kernels.registry import BUILTINS, GROUP, KERNELS, KernelEntry

RNG = np.random.default_rng(5)
X, Y = RNG.standard_normal((7, 3)), RNG.standard_normal((4, 3))


def test_an_entry_point_may_name_a_kernel_on_objects(plugins):
    source = """
        class Letters(Kernel):
            api_version = 1
            positive_semidefinite = True
            takes_objects = True
            parameters = {"scale": 1.0}
            def block(self, A, B):
                return np.array([[self.scale * len(set(a) & set(b)) for b in B] for a in A])
        class Broken(Letters):
            api_version = 1
            def block(self, A, B):
                return np.ones(3)
    """
    entries = {"letters": "acme_kernels:Letters", "broken": "acme_kernels:Broken"}
    plugins("acme-kernels", entries, {"acme_kernels": source})
    every = ["kernel", "colonel", "kern", "corn", "corner", "journal"]
    assert fk.kpca(every, "letters", 2, scale=2.0).n_components == 2
    with pytest.raises(TypeError, match="is a kernel on objects: X must be a list"):  # the user's to mend
        fk.kpca(np.eye(4), "letters", 2)
    with pytest.raises(PluginError, match=r"acme-kernels.*Broken.block returned an array of shape \(3,\) where"):
        fk.kpca(every, "broken", 2)


def test_an_entry_point_may_name_a_module_that_passes_a_class_on(plugins):
    sources = {"acme_deep": SCALED, "acme_public": "from acme_deep import Product"}
    plugins("acme-kernels", {"product": "acme_public:Product"}, sources)
    kernel = importlib.import_module("acme_public").Product(scale=2.0)  # not by its name
    assert kernel_state(kernel) == {"name": "acme-kernels:product", "parameters": {"scale": 2.0}, "version": "1.0"}
    assert registry.origin(kernel).installed


# The built-in table ---------------------------------------------------------------------------------------------


def test_table_equals_the_declared_entry_points():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    assert {name: entry.value for name, entry in BUILTINS.items()} == declared


def test_an_independent_reader_sees_the_same_names():
    ours = {(e.name, e.value) for e in metadata.entry_points(group=GROUP)}
    theirs = {(e.name, f"{e.module_name}:{e.object_name}") for e in entrypoints.get_group_all(GROUP)}
    assert theirs == ours
    assert {entry.name for entry in list_kernels()} == {name for name, _ in theirs}


@pytest.mark.parametrize("name", [*BUILTINS, "rbf", "poly", "sigmoid", "fastkpca:gaussian", "fastkpca:rbf"])
def test_built_in_names(name):
    kernel = get_kernel(name)
    assert isinstance(kernel, Kernel)
    aliases = {"rbf": "gaussian", "poly": "polynomial", "sigmoid": "tanh"}
    bare = name.removeprefix("fastkpca:")
    assert kernel_state(kernel) == {"name": aliases.get(bare, bare), "parameters": kernel.get_parameters()}
    assert getattr(kernels, type(kernel).__name__) is type(kernel)


# Distributions that claim names ---------------------------------------------------------------------------------


@pytest.fixture
def two(plugins):
    """Distributions that both claim the name "wide"."""
    plugins("Zeta.Kernels", {"wide": "zeta_wide:Product"}, {"zeta_wide": SCALED}, "2.1", summary="Zeta's kernels")
    plugins("acme", dict.fromkeys(("wide", "wave"), "acme_wide:Product"), {"acme_wide": SCALED})


def test_two_distributions_with_one_name(two, tmp_path):
    known = [(e.distribution, e.version, e.summary) for e in list_kernels() if e.name.endswith("wide")]
    assert known == [("acme", "1.0", ""), ("Zeta.Kernels", "2.1", "Zeta's kernels")]
    both = r"acme 1.0 \(acme_wide:Product\), Zeta.Kernels 2.1 \(zeta_wide:Product\)"
    with pytest.raises(PluginError, match=rf"'wide' is claimed by 2 distributions: {both}") as e:
        get_kernel("wide")
    assert "'acme:wide' or 'Zeta.Kernels:wide'" in str(e.value)
    for spelling in ("Zeta.Kernels", "zeta-kernels", "ZETA_KERNELS"):  # PEP 503
        assert type(get_kernel(f"{spelling}:wide")).__module__ == "zeta_wide"
    assert type(get_kernel("acme:wide")) is type(get_kernel("wave"))
    (tmp_path / "acme-1.0.dist-info" / "METADATA").write_bytes(b"\xff")
    KERNELS.scanned.clear()
    assert next(e.distribution for e in list_kernels() if e.name == "wave") == "acme"
    assert type(get_kernel("acme:wave")).__module__ == "acme_wide"


@pytest.mark.parametrize(
    "name, near",
    [("gausian", "gaussian"), ("Gaussian", "gaussian"), ("RBF", "rbf"), ("wawe", "wave"), ("polinomial", "polynomial")]
    + [("acme:wid", "acme:wide"), ("acne:wave", "acme:wave"), ("fastkpca:gausian", "gaussian")],
)
def test_unknown_names_get_near_matches(two, name, near):
    with pytest.raises(UnknownKernelError, match=r"fastkpca\.list_kernels\(\) lists every name") as caught:
        get_kernel(name)
    assert repr(name) in str(caught.value) and repr(near) in str(caught.value)


def test_one_distribution_with_one_name_twice():
    twice = (KernelEntry("wave", "a:W", "acme", "1.0"), KernelEntry("wave", "a:V", "acme", "1.0"))
    for name in ("wave", "acme:wave"):
        with pytest.raises(PluginError, match=r"'wave' is claimed by 1 .* \(a:W\), acme 1.0 \(a:V\); its authors"):
            KERNELS.find(name, twice, {})


# Plugins on sys.path --------------------------------------------------------------------------------------------


def test_a_plugin_installed_after_the_first_look(plugins):
    with pytest.raises(UnknownKernelError):
        get_kernel("product")
    before = dict(registry.KERNELS.scanned)
    plugins("acme", {"product": "acme_product:Product"}, {"acme_product": SCALED})
    registry.KERNELS.scanned.update(before)  # what an already running process remembers
    assert get_kernel("product").scale == 1.0


def test_reserved_claim_warns_and_is_ignored(plugins):
    plugins("acme", {"rbf": "acme_product:Product", "product": "acme_product:Product"}, {"acme_product": SCALED})
    with pytest.warns(PluginWarning, match=r"acme 1\.0 claims the kernel name 'rbf'"):
        table = list_kernels()
    assert [e.name for e in table if e.distribution == "acme"] == ["product"]
    assert type(get_kernel("rbf")).__module__ == "fastkpca.kernels.gaussian"
    with pytest.raises(UnknownKernelError, match="'rbf' is reserved"), pytest.warns(PluginWarning, match="ignored"):
        get_kernel("acme:rbf")


DAMAGE = {
    "bytes in another group": (b"[x]\n\xff = a:b\n", None),
    "a line in another group": (b"[x]\nbroken\n", None),
    "bytes": (b"[fastkpca.kernels]\n\xff = a:b\n", r"junk 1\.0 is damaged: .* in \[fastkpca\.kernels\]"),
    "a line": (b"[fastkpca.kernels]\nbroken\nalso = junk_module:Product\n", r"junk 1\.0 is damaged: 'broken'"),
    "no name": (b"[fastkpca.kernels]\n = a:b\n", r"junk 1\.0 is damaged"),
    "zeros": (bytes(500), None),
    "no section": (b"a = b:c\n", None),
}


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("about", [b"Metadata-Version: 2.1\nName: junk\nVersion: 1.0\n", b"\xff\xfe", None])
def test_a_damaged_distribution_takes_nothing_from_others(plugins, tmp_path, how, about):
    plugins("acme", {"product": "acme_product:Product"}, {"acme_product": SCALED})
    raw, warned = DAMAGE[how]
    junk = tmp_path / "junk-1.0.dist-info"
    junk.mkdir()
    (junk / "entry_points.txt").write_bytes(raw)
    if about is not None:
        (junk / "METADATA").write_bytes(about)
    (tmp_path / "junk_module.py").write_text((tmp_path / "acme_product.py").read_text())
    assert get_kernel("product").scale == 1.0
    with contextlib.nullcontext() if warned is None else pytest.warns(PluginWarning, match=warned) as caught:
        names = list_kernels().names
    assert warned is None or len(caught) == 1
    assert {"product", "matern"} <= set(names)
    if b"also" in raw:
        assert get_kernel("also").scale == get_kernel("junk:also").scale == 1.0


def test_a_folder_in_place_of_a_file_and_two_distributions_of_one_name(plugins, tmp_path, monkeypatch):
    plugins("acme", {"product": "acme_product:Product"}, {"acme_product": SCALED})
    (tmp_path / "junk-1.0.dist-info" / "entry_points.txt").mkdir(parents=True)
    other = tmp_path / "later"
    other.mkdir()
    fake_plugins.write(other, "acme", {"product": "nowhere:Product"}, {}, group=GROUP, version="0.9")
    monkeypatch.setattr(sys, "path", [*sys.path, str(other)])
    with pytest.warns(PluginWarning, match=r"junk 1\.0 cannot be read \(IsADirectoryError") as caught:
        assert "product" in list_kernels().names
    assert len(caught) == 1
    assert type(get_kernel("acme:product")).__module__ == "acme_product"


def test_each_listed_name_says_what_it_is_without_an_import(plugins):
    text = """
    class Own(Scaled):
        '''Own of it.

        More.
        '''
        api_version = 1
        class Inner(Scaled):
            "Inner one."
            api_version = 1
    class Silent(Scaled):
        api_version = 1
    """
    values = {"own": ":Own", "inner": ":Own.Inner", "silent": ":Silent", "gone": ":Gone", "none": "_no:Own"}
    values = {name: f"acme_said{value}" for name, value in values.items()}
    passed_on = "from acme_said import Own as Other"
    sources = {"acme_said": text, "acme_pass": passed_on, "acme_wrong": "def f(:"}
    entries = values | {"other": "acme_pass:Other", "wrong": "acme_wrong:X"}
    plugins("acme", entries, sources, summary="All of acme")
    table = list_kernels()
    said = {entry.name: entry.summary for entry in table if entry.distribution == "acme"}
    own = {"own": "Own of it.", "inner": "Inner one.", "other": "Own of it."}
    assert said == dict.fromkeys(entries, "All of acme") | own
    assert not {"acme_said", "acme_pass", "acme_wrong"} & set(sys.modules)
    for entries in (table, list_methods()):
        contrib = [entry.summary for entry in entries if entry.distribution == "fastkpca-kernels-contrib"]
        assert len(contrib) == len(set(contrib)) > 7 and all(contrib)


# The table ------------------------------------------------------------------------------------------------------


def test_table_prints():
    table = list_kernels()
    lines = repr(table).splitlines()
    assert str(table) == repr(table)
    assert lines[0].split() == ["name", "aliases", "distribution", "version", "summary"]
    assert len(lines) == len(table) + 2
    gaussian = next(line for line in lines if line.startswith("gaussian"))
    assert gaussian.split()[:4] == ["gaussian", "rbf", "fastkpca", metadata.version("fastkpca")]
    assert [e.name for e in table[:2]] == [e.name for e in list(table)[:2]]


# A session's own names ------------------------------------------------------------------------------------------


def linear_tiles(X, Y):
    """Inner products."""
    return X @ Y.T


class Squared(Kernel):
    positive_semidefinite = True
    parameters = {"scale": 1.0}

    def block(self, X, Y):
        return self.scale * (X @ Y.T) ** 2


def test_registering_for_a_block():
    with register_kernel("mine", linear_tiles):
        np.testing.assert_array_equal(get_kernel("mine").block(X, Y), X @ Y.T)
        row = next(e for e in list_kernels() if e.name == "mine")
        assert (row.distribution, row.summary) == ("(this session)", "Inner products.")
        with pytest.raises(ValueError, match="'mine' is in use by this session.*overwrite=True"):
            register_kernel("mine", Squared)
        with register_kernel("mine", Squared, overwrite=True):
            assert get_kernel("mine", scale=3.0) == Squared(scale=3.0)
            assert kernel_state(Squared(scale=3.0)) == {"name": "mine", "parameters": {"scale": 3.0}}
        assert isinstance(get_kernel("mine"), kernels.CallableKernel)
    with pytest.raises(UnknownKernelError):
        get_kernel("mine")
    with pytest.raises(ValueError, match=r"Squared\(scale=1\.0\) cannot be written down by name; .*register_kernel"):
        kernel_state(Squared())


@pytest.mark.parametrize("thing", [linear_tiles, Squared, Squared(scale=2.0)])
def test_what_a_session_registered_can_be_written_down(thing):
    with register_kernel("mine", thing):
        kernel = get_kernel("mine")
        state = kernel_state(kernel)
        assert state["name"] == "mine"
        assert get_kernel("mine", **json.loads(json.dumps(state["parameters"]))) == kernel
    with pytest.raises(ValueError, match="cannot be written down by name"):
        kernel_state(kernel)


def test_a_name_taken_over_is_not_taken_back():
    with register_kernel("mine", linear_tiles):
        later = register_kernel("mine", Squared, overwrite=True)
    try:
        assert isinstance(get_kernel("mine"), Squared)
    finally:
        with later:
            pass
    assert isinstance(get_kernel("mine"), kernels.CallableKernel)  # what the name meant before `later`
    with register_kernel("mine", Squared, overwrite=True):
        pass
    registry.SESSION.clear()


def test_what_cannot_be_registered():
    for name in (*BUILTINS, "rbf", "poly", "sigmoid"):
        with pytest.raises(ValueError, match="reserved"):
            register_kernel(name, Squared, overwrite=True)
    for name in ("", "two words", "acme:mine", 3):
        with pytest.raises(ValueError, match="cannot name a kernel"):
            register_kernel(name, Squared)
    for thing in ("gaussian", 3, None, np.eye(2), int):
        with pytest.raises(TypeError, match="kernel is of type"):
            register_kernel("mine", thing)


def test_names_of_plugins_are_not_clobbered(plugins):
    plugins("acme", {"product": "acme_product:Product"}, {"acme_product": SCALED})
    with pytest.raises(ValueError, match="'product' is in use by acme"):
        register_kernel("product", Squared)
    with register_kernel("product", Squared, overwrite=True):
        assert isinstance(get_kernel("product"), Squared)
        assert type(get_kernel("acme:product")).__module__ == "acme_product"
        assert [name for name in list_kernels().names if "product" in name] == ["acme:product", "product"]
    assert type(get_kernel("product")).__module__ == "acme_product"


# Objects and functions ------------------------------------------------------------------------------------------


class Duck:
    """Not a Kernel, but has block and diagonal."""

    positive_semidefinite = True
    translation = "kernel"

    def __init__(self, width=1.0):
        self.width = width

    def block(self, X, Y):
        return np.exp(-((X[:, None, :] - Y[None, :, :]) ** 2).sum(-1) / self.width)

    def diagonal(self, X):
        return np.ones(len(X))


class Quack:
    def __init__(self):
        pass

    def block(self, X, Y):
        return X @ Y.T


def test_any_object_with_block():
    kernel = get_kernel(Duck(2.0))
    assert (kernel.positive_semidefinite, kernel.translation, kernel.thread_safe) == (True, "kernel", True)
    np.testing.assert_array_equal(kernel.block(X, Y), Duck(2.0).block(X, Y))
    np.testing.assert_array_equal(kernel.diagonal(X), np.ones(len(X)))
    assert get_kernel(Duck, width=2.0).object.width == 2.0
    plain = get_kernel(Quack(), positive_semidefinite=True)
    assert (plain.positive_semidefinite, plain.translation) == (True, None)
    np.testing.assert_allclose(plain.diagonal(X), (X * X).sum(1), rtol=1e-15)
    assert get_kernel(Quack()).positive_semidefinite is False
    with pytest.raises(TypeError, match="unexpected keyword argument 'positive_semidefinite'") as caught:
        get_kernel(Quack, positive_semidefinite=True)
    assert "stands beside an object of it" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_on_tiles(dtype):
    kernel = get_kernel(linear_tiles, positive_semidefinite=True, thread_safe=False)
    assert (kernel.positive_semidefinite, kernel.translation, kernel.thread_safe) == (True, None, False)
    values = kernel.block(X.astype(dtype), Y.astype(dtype))
    assert values.dtype == dtype
    np.testing.assert_array_equal(values, X.astype(dtype) @ Y.astype(dtype).T)
    np.testing.assert_allclose(kernel.diagonal(X), (X * X).sum(1), rtol=1e-15)


def test_results_of_functions_are_own_arrays():
    kept = np.ones((len(X), len(Y)))
    for function in (
        lambda X, Y: kept[:, :],
        lambda X, Y: np.broadcast_to(1.0, (len(X), len(Y))),
        lambda X, Y: np.ones((len(X), len(Y)), order="F"),
        lambda X, Y: [[1] * len(Y)] * len(X),
    ):
        values = get_kernel(function).block(X, Y)
        assert values.flags.writeable and values.flags.c_contiguous
        assert values.dtype == np.float64
        values += 1.0
    assert (kept == 1.0).all()


FAILED = r"<lambda> failed on shapes \(7, 3\) and \(4, 3\): (?=.*tiles, not with pairs of rows).*"


@pytest.mark.parametrize(
    "function, error, text",
    [
        (lambda X, Y: 1.0, ValueError, "returned one number where shape .7, 4. is needed: .*tiles, not with pairs"),
        (lambda X, Y: Y @ X.T, ValueError, r"returned an array of shape \(4, 7\) where shape \(7, 4\)"),
        (lambda X, Y: (X @ Y.T).ravel(), ValueError, r"returned an array of shape \(28,\)"),
        (lambda X, Y: X @ Y.T + 1j, TypeError, "returned complex128 values; a kernel returns real numbers"),
        (lambda X, Y: (X @ Y.T).astype(object), TypeError, "returned object values"),
        (lambda X, Y: None, TypeError, "returned object values"),
        (lambda x, y: float(np.exp(-np.sum((x - y) ** 2))), ValueError, f"^the kernel function .*{FAILED}broadcast"),
        (lambda x, y: x @ y, ValueError, f"^the kernel function .*{FAILED}matmul"),
    ],
)
def test_wrong_results_of_functions(function, error, text):
    kernel = get_kernel(function)
    with pytest.raises(error, match=text) as caught:
        kernel.block(X, Y)
    assert "<lambda>" in str(caught.value)


def test_parameters_beside_a_function():
    with pytest.raises(TypeError, match=r"functools\.partial\(f, gamma=\.\.\.\)"):
        get_kernel(linear_tiles, gamma=1.0)
    with pytest.raises(ValueError, match="translation is 'yes'"):
        get_kernel(linear_tiles, translation="yes")
    bound = partial(lambda X, Y, gamma: gamma * (X @ Y.T), gamma=2.0)
    np.testing.assert_array_equal(get_kernel(bound).block(X, Y), 2.0 * (X @ Y.T))


@pytest.mark.parametrize("thing", [None, 3, 1.5, ["gaussian"], {"kernel": "gaussian"}])
def test_not_a_kernel(thing):
    with pytest.raises(TypeError, match=f"kernel is of type {type(thing).__name__}; give a name"):
        get_kernel(thing)


def test_parameters_without_a_name_are_refused_with_the_line_to_write():
    with pytest.raises(TypeError, match=r"parameters are given by name, as in Gaussian\(sigma=0\.5\)"):
        kernels.Gaussian(0.5)
    with pytest.raises(TypeError, match="Linear: it has no parameters"):
        kernels.Linear(2)
