"""Names of columns at every door that compares rows with others: one rule, which is that of ``kpca_project``."""

from __future__ import annotations

import re
import warnings

import contrib_fits
import doors
import numpy as np
import pytest
from doors import FRAME, VIEW, Door
from kernels_contrib.methods.base import FittedMethod

import fastkpca as fk
from kernels_contrib import storage

plt = pytest.importorskip("matplotlib.pyplot")
REFUSED, TAKEN = list(doors.refused(FRAME)), list(doors.taken(FRAME))


def answered(door: Door, rows) -> object:
    """What a call answers, as something that can be compared; pictures are closed, and not compared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = door.call(rows)
    plt.close("all")
    if door.name.startswith("fastkpca.plot"):
        return None
    whole = hasattr(answer, "matmat") or hasattr(answer, "to_numpy")  # an operator, or the frame that was filled
    return contrib_fits.contents(np.ascontiguousarray(answer) if whole else answer)


def outcome(door: Door, rows) -> str:
    """The error of a call, or of scikit-learn's a warning; "" where the rows are taken in silence."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            door.call(rows)
        except (ValueError, TypeError) as error:
            return str(error)
        finally:
            plt.close("all")
    return "; ".join(str(x.message) for x in raised if "feature names" in str(x.message))


@pytest.mark.parametrize("way", REFUSED)
def test_rows_of_other_columns_are_refused_at_every_door(way):
    taken = []
    for door in doors.doors():
        rows, text = doors.refused(door.frame)[way]
        said = outcome(door, rows)
        if not (said if door.of_scikit_learn else re.search(text, said)):
            taken.append(f"{door.name}: {said or 'taken in silence'}")
    assert not taken, "\n".join(taken)


@pytest.mark.parametrize("way", TAKEN)
def test_rows_without_names_or_in_other_containers_are_taken(way):
    wrong = []
    for door in doors.doors():
        rows = doors.taken(door.frame)[way]
        if door.of_scikit_learn and way in ("records", "xarray"):  # scikit-learn's own to refuse
            continue
        try:
            if answered(door, rows) != answered(door, door.frame):
                wrong.append(f"{door.name}: another answer")
        except (ValueError, TypeError) as error:
            wrong.append(f"{door.name}: {error!r}")
    assert not wrong, "\n".join(wrong)


def test_the_walk_finds_what_is_new(monkeypatch):
    def forgetful(model, X, strength):
        """Scores.

        Parameters
        ----------
        model : KPCAModel
        X : array_like (m, d)
        strength : float
        """
        return strength * fk.kpca_project(model, np.asarray(X))

    monkeypatch.setattr(doors, "functions", lambda: [("forgetful", forgetful)])
    with pytest.raises(AssertionError, match=r"cannot call forgetful .*'strength'.*add to GIVEN in tests"):
        list(doors.of_functions())
    monkeypatch.setitem(doors.GIVEN, "strength", 2.0)
    found = list(doors.of_functions())
    assert [door.name for door in found] == [f"forgetful(X=) of kpca{x}" for x in ("", " of other rows", " features")]
    assert outcome(found[0], doors.refused(FRAME)["another order"][0]) == ""  # taken in silence: the test above fails


def test_every_method_and_estimator_has_doors():
    names = {door.name for door in doors.doors()}
    for entry in fk.list_methods():
        tests_only = entry.name.endswith("_test")
        assert tests_only or any(name.startswith((f"{entry.name}:", f"{entry.name}.")) for name in names), entry.name
    for module in (doors.estimators, doors.contrib_estimators):
        for name in module.__all__:
            abstract = name in doors.ABSTRACT or not hasattr(getattr(module, name), "fit")
            assert abstract or any(door.startswith(f"{name}.") for door in names), name


# Where names are kept ----------------------------------------------------------------------------------------------

FITTED = [(name, result) for name, result in doors.results() if isinstance(result, FittedMethod)]


@pytest.mark.parametrize("name", [name for name, result in FITTED if type(result).__name__ in storage.MODELS])
def test_names_survive_the_file(name, tmp_path):
    model = dict(FITTED)[name]
    storage.save(model, tmp_path / "m")
    again = storage.load(tmp_path / "m")
    if name == "kernel_cca":
        assert (again.x.feature_names, again.y.feature_names) == (tuple(FRAME), tuple(VIEW))
        model, again = model.x, again.x
    if name.endswith("_test"):
        assert again.feature_names is None
        return
    assert again.feature_names == model.feature_names == tuple(FRAME)
    for _, method in doors.methods_of(again):
        if "X" in doors.takes_rows(method):
            with pytest.raises(ValueError, match="in another order"):
                method(FRAME[["load", "temp", "flow"]], **doors.arguments(method))


@pytest.mark.parametrize("entry", [entry.name for entry in fk.list_methods()])
def test_columns_by_name(entry):
    method = fk.get_method(entry)
    given = doors.of_rows(method, FRAME) | doors.arguments(method)
    kernels = {"kernel": fk.on_columns("gaussian", ["flow", "load"], sigma=1.0)}
    if entry == "kica":  # its kernel is of one source, which has no columns
        return
    if "kernel_y" in doors.inspect.signature(method).parameters:
        kernels["kernel_y"] = fk.on_columns("gaussian", ["blue"], sigma=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_name = method(**given | kernels)
        numbered = {k: fk.on_columns("gaussian", [1, 2] if k == "kernel" else [1], sigma=1.0) for k in kernels}
        arrays = {k: np.asarray(x) if isinstance(x, doors.pd.DataFrame) else x for k, x in given.items()}
        by_number = method(**arrays | numbered)
    assert said(by_name) == said(by_number)


def said(result, frame=FRAME) -> list:
    """What a result says of new rows; of a test, what it found."""
    if hasattr(result, "x"):
        return [said(result.x), said(result.y, VIEW)]
    if hasattr(result, "p_interval"):
        return contrib_fits.contents([result.p_interval, result.null])
    return [
        contrib_fits.contents(method(**{"X": frame.to_numpy(), **doors.arguments(method)}))
        for _, method in doors.methods_of(result)
        if "X" in doors.takes_rows(method)
    ]


def test_models_of_estimators_know_the_names():
    for name in doors.contrib_estimators.__all__:
        estimator = doors.fitted(getattr(doors.contrib_estimators, name))
        model = getattr(estimator.model_, "x", estimator.model_)
        assert model.feature_names == tuple(FRAME), name
    two = doors.contrib_estimators.KernelCCA().fit(FRAME, VIEW)
    assert two.model_.y.feature_names == tuple(VIEW)
    nystroem = doors.fitted(doors.estimators.Nystroem)
    assert nystroem.kpca(FRAME, 1).feature_names == tuple(FRAME)
    with pytest.raises(ValueError, match="landmarks has the columns of X in another order"):
        doors.estimators.Nystroem(landmarks=FRAME[["load", "temp", "flow"]][:9]).fit(FRAME)


def test_a_method_fitted_on_an_array_takes_frames_as_they_come():
    model = fk.get_method("klda")(FRAME.to_numpy(), doors.GIVEN["y"], "gaussian", sigma=1.0)
    swapped = FRAME[["load", "temp", "flow"]]
    np.testing.assert_array_equal(model.project(swapped), model.project(swapped.to_numpy()))
    assert model.feature_names is None


def test_advice_is_followed():
    model = fk.get_method("klda")(FRAME, doors.GIVEN["y"], "gaussian", sigma=1.0)
    K = np.asarray(fk.gram(FRAME, "gaussian", FRAME, sigma=1.0))
    for way in (way for way in REFUSED if way.endswith("another order")):
        rows = doors.refused(FRAME)[way][0]
        with pytest.raises(ValueError) as caught:
            model.project(rows)
        names = {"X": rows, "model": model, "pyarrow": pytest.importorskip("pyarrow")}
        taken = eval(str(caught.value).rpartition("; take ")[2], names)
        np.testing.assert_array_equal(model.project(taken), model.project(FRAME))
        for kind in ("records", "xarray", "pyarrow", "polars", "LazyFrame", "stream"):
            X = doors.taken(FRAME)[kind]
            with pytest.raises(ValueError) as caught:
                fk.gram(X, "gaussian", rows, sigma=1.0)
            names = {"X": X, "Y": rows, "pyarrow": pytest.importorskip("pyarrow")}
            taken = eval(str(caught.value).rpartition("; take ")[2], names)
            np.testing.assert_array_equal(np.asarray(fk.gram(X, "gaussian", taken, sigma=1.0)), K)
