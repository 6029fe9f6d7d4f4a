"""Names of other libraries are answered with ours; estimators stand for their models; a model shows itself."""

import copy
import pickle
import subprocess
import sys
from xml.dom import minidom

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import ScoresNotKeptError
from fastkpca.model.plan import readable_seconds
from fastkpca.model.result import OTHER_NAMES

X = np.random.default_rng(0).standard_normal((80, 3))


@pytest.fixture(scope="module")
def model():
    return fk.kpca(X, "gaussian", 12, sigma=2.0)


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("transform", "kpca_project(model, X)"),
        ("scores", "model.score"),
        ("X_transformed_", "model.score"),
        ("explained_variance_ratio_", "model.explained / 100"),
        ("eigenvectors_", "model.coeff"),
        ("loadings", "(X - X.mean(axis=0)).T @ model.coeff, shape (d, c)"),
        ("T2", "fastkpca.kpca_t2(model, X)"),
        ("SPE", "fastkpca.kpca_spe(model, X)"),
        ("eigenvalues_", "did you mean 'eigenvalues'"),
        ("projetor", "did you mean 'projector'"),
        ("method", "model.plan.method"),
        ("sigma", "model.kernel.sigma"),
        ("tol", "model.info"),
        ("columns", "model.feature_names"),
    ],
)
def test_names_of_other_libraries(model, name, here):
    with pytest.raises(AttributeError, match="has no attribute") as caught:
        getattr(model, name)
    assert here in str(caught.value)


def test_every_answer_is_a_name_that_exists(model):
    for text in OTHER_NAMES.values():
        root, *path = text.split("(")[0].split(" ")[0].split(".")
        place = {"fastkpca": fk, "model": model}[root]
        for name in path:
            place = getattr(place, name)


def test_what_is_missing_stays_missing(model):
    assert not hasattr(model, "transform") and not hasattr(model, "__array__")
    bare = fk.kpca(X, "gaussian", 2, return_scores=False)
    with pytest.raises(ScoresNotKeptError, match="return_scores=True"):
        bare.score  # noqa: B018
    for again in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.eigenvalues, model.eigenvalues)


def test_names_of_the_package():
    with pytest.raises(AttributeError, match=r"class is fastkpca\.sklearn\.KernelPCA"):
        fk.KernelPCA  # noqa: B018
    for name in ("KPCA", "Kpca", "PCA"):
        with pytest.raises(AttributeError, match=rf"the function is fastkpca\.{name.lower()}$"):
            getattr(fk, name)
    code = (
        "import sys, fastkpca as fk; assert 'fastkpca.plot' not in sys.modules; fk.plot.scores, fk.state, fk.testing\n"
    )
    code += "fk.kpca_projet"  # submodules need no import of their own
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.stderr.rstrip().endswith("fastkpca has no attribute 'kpca_projet'. Did you mean: 'kpca_project'?")
    with pytest.raises(ImportError):
        from fastkpca import nothing  # noqa: F401


def test_parameters_of_other_libraries():
    for call, text in [
        (lambda: fk.kpca(X, features=5), "the number of components is c"),
        (lambda: fk.kpca(X, 5), r"before the number of components, as in kpca\(X, 'gaussian', 5\)"),
        (lambda: fk.kpca(X, "gaussian", th=1e-4), "th is called tol here"),
        (lambda: fk.kpca(X, Standardize=True), "Standardize is called standardize here"),
        (lambda: fk.kpca(X, standardise=True), "standardise is called standardize here"),
    ]:
        with pytest.raises(TypeError, match=text):
            call()


def test_a_model_shows_itself_in_a_notebook(model):
    shown = model._repr_html_()
    assert shown.startswith("<table>") and "Gaussian(sigma=2.0)" in shown and "and 2 more" in shown
    assert shown.count("<tr>") == 7 + 1 + 10 + 1 and f"{model.eigenvalues[0]:.6g}" in shown
    assert len(minidom.parseString(shown).getElementsByTagName("tr")) == 19


def test_importance_shows_itself_as_a_table():
    X = np.random.default_rng(0).standard_normal((100, 20)) * np.linspace(1.0, 2.0, 20)
    which = fk.kpca_importance(fk.kpca(X, "linear", 8), X)
    shown = repr(which).splitlines()
    assert shown[0] == "Importance by gradient: 8 components, 20 columns, 100 rows"
    assert shown[1].split() == ["share", "(%)", *(f"PC{j}" for j in range(1, 9))]
    names = [line[:11].strip() for line in shown[2:14]]
    assert names == [which.names[i] for i in which.ranking()[:12]]
    top = which.ranking()[0]
    assert shown[2].split()[2:4] == [f"{100 * which.share[0, top]:.1f}", "+" if which.sign[0, top] > 0 else "-"]
    assert shown[14] == "and 8 more columns" and shown[15].startswith("+ and -:")
    table = minidom.parseString(which._repr_html_())
    assert len(table.getElementsByTagName("tr")) == 3 + 1 + 12 + 1
    assert table.getElementsByTagName("tr")[4].firstChild.firstChild.data == names[0]
    few = fk.kpca_importance(fk.kpca(X[:, :3], "linear", 1), X[:, :3], method="permutation")
    assert len(repr(few).splitlines()) == 5 and "more" not in few._repr_html_()


@pytest.mark.parametrize(
    ("seconds", "digits", "text"),
    [(2720.4, 3, "2,720"), (599.2, 3, "599"), (600.0, 2, "600"), (0.0123, 3, "0.0123"), (1e12, 3, "1e+12")],
)
def test_long_times_are_read_without_powers_of_ten(seconds, digits, text):
    assert readable_seconds(seconds, digits) == text
