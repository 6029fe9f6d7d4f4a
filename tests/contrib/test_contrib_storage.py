"""Files of kernels_contrib's models: what comes back predicts the same, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_contrib.components import kernel_pc_logistic, kernel_pcr
from kernels_contrib.kbda import kbda
from kernels_contrib.kica import kica, kica_project
from kernels_contrib.klda import kernel_fisherfaces, klda
from kernels_contrib.logistic import kernel_logistic
from kernels_contrib.perceptron import kernel_perceptron
from kernels_contrib.storage import load, save

import fastkpca as fk
from fastkpca.errors import ModelFileError
from fastkpca.kernels import Gaussian
from fastkpca.state import save_state
from kernels_contrib import storage

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3))
Y = np.array(["a", "bb", "c"])[np.arange(80) % 3]
FITS = {
    "klda features": lambda: klda(X, Y, sigma=2.0),
    "klda monomial": lambda: klda(X, Y == "a", "polynomial"),
    "klda gram": lambda: klda(X, np.arange(80) % 3, "laplacian", method="gram", length_scale=3.0),
    "klda sum": lambda: klda(X, Y, Gaussian(sigma=2.0) + 0.1 * fk.get_kernel("linear")),
    "kica": lambda: kica(X),
    "fisherfaces": lambda: kernel_fisherfaces(X, Y, "gaussian", components=20),
    "kbda": lambda: kbda(X, Y == "a", c=3),
    "perceptron": lambda: kernel_perceptron(X, Y, max_epochs=3),
    "perceptron gram": lambda: kernel_perceptron(X, Y, max_epochs=3, method="gram"),
    "logistic": lambda: kernel_logistic(X, Y),
    "logistic precomputed": lambda: kernel_logistic(X @ X.T, Y, "precomputed"),
    "components": lambda: kernel_pc_logistic(X, Y, c=4),
    "regression": lambda: kernel_pcr(X, X[:, 0] ** 2, c=4),
}


@pytest.mark.parametrize("name", FITS)
def test_there_and_back(name, tmp_path):
    model = FITS[name]()
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    new = RNG.standard_normal((9, 80 if "precomputed" in name else 3))
    for call in ("project", "predict", "probability", "decision"):
        if hasattr(model, call):
            np.testing.assert_array_equal(getattr(again, call)(new), getattr(model, call)(new))
    if name == "kica":
        np.testing.assert_array_equal(kica_project(again, new), kica_project(model, new))
    assert type(again) is type(model)
    if hasattr(model, "info"):
        assert again.info == model.info and again.kernel == model.kernel


def test_errors(tmp_path):
    save(klda(X, Y), tmp_path / "m")
    with pytest.raises(FileExistsError):
        save(klda(X, Y), tmp_path / "m")
    with pytest.raises(TypeError, match="what klda"):
        save(fk.kpca(X, c=2), tmp_path / "k")
    fk.save(fk.kpca(X, c=2), tmp_path / "k")
    with pytest.raises(ModelFileError, match=r"fastkpca\.load reads models of kpca"):
        load(tmp_path / "k")
    with pytest.raises(ModelFileError):
        fk.load(tmp_path / "m")
    save_state(tmp_path / "other", "mine:Model", {"x": 1})
    with pytest.raises(ModelFileError, match="'mine:Model', not a model of kernels_contrib"):
        load(tmp_path / "other")
    save_state(tmp_path / "part", "kernels_contrib:KLDAModel", {"function": {"class": "FeatureFunction", "fields": {}}})
    with pytest.raises(ModelFileError, match="not a whole model"):
        load(tmp_path / "part")
    labels = np.empty(80, dtype=object)
    labels[:] = [(k % 2, 0) for k in range(80)]
    with pytest.raises(TypeError, match="labels are of type object"):
        save(klda(X, labels), tmp_path / "o")
    with pytest.raises(ValueError, match="name"):
        save(klda(X, Y, lambda A, B: A @ B.T), tmp_path / "l")


def _values(kind, monkeypatch, tmp_path):
    """What ``save`` hands to ``save_state`` for a model, and its kind."""
    found = {}
    monkeypatch.setattr(storage, "save_state", lambda path, kind, values, overwrite: found.update(kind=kind, **values))
    save(FITS[kind](), tmp_path / "m")
    return found.pop("kind"), found


def _set(values, place, value):
    for key in place[:-1]:
        values = values[key]
    if value is None:
        del values[place[-1]]
    else:
        values[place[-1]] = value(values[place[-1]])


WRONG = {
    "no function": ("regression", ["function"], None),
    "no function of a perceptron": ("perceptron", ["function"], None),
    "function of another class": ("klda features", ["function", "class"], lambda x: "SampleFunction"),
    "function is a number": ("klda features", ["function"], lambda x: 3),
    "no fields": ("klda features", ["function", "fields"], lambda x: 3),
    "no constant": ("klda features", ["function", "fields", "constant"], None),
    "weights of too few features": ("klda features", ["function", "fields", "weights"], lambda x: x[1:]),
    "constants too many": ("klda gram", ["function", "fields", "constant"], lambda x: np.zeros(5)),
    "rows too few": ("perceptron gram", ["function", "fields", "X"], lambda x: x[1:]),
    "rows of words": ("klda gram", ["function", "fields", "X"], lambda x: "rows"),
    "coefficients without columns": ("klda gram", ["function", "fields", "coefficients"], lambda x: x[:, :0]),
    "coefficients of NaN": ("klda gram", ["function", "fields", "coefficients"], lambda x: x * np.nan),
    "values beyond the largest number": (
        "klda gram",
        ["function", "fields", "coefficients"],
        lambda x: np.full_like(x, 1e308),
    ),
    "no kernel": ("klda gram", ["kernel"], None),
    "kernel is a number": ("klda gram", ["kernel"], lambda x: 3),
    "classes too few": ("logistic", ["classes"], lambda x: x[:2]),
    "a class twice": ("klda features", ["classes"], lambda x: ["a", "a", "c"]),
    "classes of lists": ("klda features", ["classes"], lambda x: [["a"], ["b"], ["c"]]),
    "counts too few": ("klda features", ["counts"], lambda x: x[:2]),
    "counts of fractions": ("klda features", ["counts"], lambda x: x / 2),
    "spread within of another size": ("klda features", ["within"], lambda x: x[:1]),
    "quotients too many": ("kbda", ["quotients"], lambda x: np.append(x, 1.0)),
    "penalty": ("kbda", ["penalty"], lambda x: "none"),
    "number of rows": ("kbda", ["n_samples"], lambda x: "many"),
    "regularization": ("logistic", ["regularization"], lambda x: -1.0),
    "log-likelihood": ("logistic", ["log_likelihood"], lambda x: np.nan),
    "mixing of another size": ("kica", ["mixing"], lambda x: x[:, :2]),
    "mean of another size": ("kica", ["mean"], lambda x: x[:2]),
    "info": ("klda features", ["info"], lambda x: 3),
    "no method": ("klda features", ["info", "method"], None),
    "mistakes": ("perceptron", ["mistakes"], lambda x: ["x"]),
    "no mistakes": ("perceptron", ["mistakes"], lambda x: []),
    "single": ("regression", ["single"], lambda x: 3),
    "weights of the regression": ("regression", ["weights"], lambda x: x.T),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_a_file_says_is_checked(what, tmp_path, monkeypatch):
    name, place, value = WRONG[what]
    with monkeypatch.context() as patch:
        kind, values = _values(name, patch, tmp_path)
    _set(values, place, value)
    save_state(tmp_path / "wrong", kind, values)
    with pytest.raises(ModelFileError, match="not a whole model") as caught:
        load(tmp_path / "wrong")
    assert str(tmp_path / "wrong") in str(caught.value)


def test_surplus_values_are_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        kind, values = _values("kbda", patch, tmp_path)
    save_state(tmp_path / "wrong", kind, values | {"more": 1})
    with pytest.raises(ModelFileError, match="no place for 'more'"):
        load(tmp_path / "wrong")
