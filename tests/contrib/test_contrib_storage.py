"""Files of kernels_contrib's models: what comes back predicts the same, bit for bit."""

import contrib_fits as fits
import numpy as np
import pytest
from contrib_fits import FITS, X, Y
from kernels_contrib.klda import klda
from kernels_contrib.storage import load, save

import fastkpca as fk
from fastkpca.errors import ModelFileError
from fastkpca.state import save_state
from kernels_contrib import storage


@pytest.mark.parametrize("name", FITS)
def test_there_and_back(name, tmp_path):
    model = FITS[name]()
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again) is type(model) and vars(again).get("info") == vars(model).get("info")
    assert vars(again).get("kernel") == vars(model).get("kernel")
    assert repr(again) == repr(model) or "perceptron" in name  # which counts the coefficients of its rows
    assert fits.contents(fits.answers(name, again)) == fits.contents(fits.answers(name, model))
    for of_rows in ("labels", "coordinates", "sources"):
        assert len(getattr(again, of_rows, "")) == 0


@pytest.mark.parametrize("name", FITS)
def test_the_same_bits_at_any_number_of_threads(name):
    one, three = (FITS[name](n_threads=k) for k in (1, 3))
    assert fits.contents(fits.answers(name, one)) == fits.contents(fits.answers(name, three))
    assert fits.contents(vars(one).get("labels")) == fits.contents(vars(three).get("labels"))


def test_every_model_has_a_fit():
    assert {type(fit()).__name__ for fit in FITS.values()} == set(storage.MODELS)


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
    "no kernels": ("mmd", ["kernels"], lambda x: {}),
    "kernels are numbers": ("mmd", ["kernels"], lambda x: [1]),
    "permutations of too many kernels": ("mmd", ["null"], lambda x: np.zeros((2, 5))),
    "interval of three ends": ("mmd", ["p_interval"], lambda x: np.zeros(3)),
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
