"""Names of columns: a model of a data frame knows them, keeps them in its file, and refuses frames of other columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fastkpca as fk
from fastkpca.methods import as_rows, check_same_columns

X = np.random.default_rng(0).standard_normal((80, 3))
FRAME = pd.DataFrame(X, columns=["height", "width", "age"])


@pytest.fixture(scope="module")
def model():
    return fk.kpca(FRAME, "polynomial", 2, degree=2, keep_moments=True)


def test_a_model_keeps_the_names_through_its_file(model, tmp_path):
    assert model.feature_names == ("height", "width", "age")
    fk.save(model, tmp_path / "m.kpca")
    assert fk.load(tmp_path / "m.kpca").feature_names == model.feature_names
    assert fk.kpca(X, "polynomial", 2, degree=2).feature_names is None
    assert fk.kpca(pd.DataFrame(X), "polynomial", 2, degree=2).feature_names is None  # 0, 1, 2 are no names
    K = pd.DataFrame(X @ X.T, columns=[f"row {i}" for i in range(80)])
    assert fk.kpca(K, "precomputed", 2).feature_names is None  # of a matrix they would be rows


def test_rows_without_names_and_models_without_are_taken_as_they_come(model):
    expected = fk.kpca_project(model, FRAME)
    np.testing.assert_array_equal(fk.kpca_project(model, X), expected)
    np.testing.assert_array_equal(fk.kpca_project(model, pd.DataFrame(X)), expected)
    bare = fk.kpca(X, "polynomial", 2, degree=2)
    np.testing.assert_array_equal(
        fk.kpca_project(bare, FRAME[["age", "width", "height"]]), fk.kpca_project(bare, X[:, [2, 1, 0]])
    )


@pytest.mark.parametrize(
    "frame, text",
    [
        (FRAME[["width", "height", "age"]], "another order .first at column 0: 'width', fitted on 'height'"),
        (FRAME.rename(columns={"age": "years"}), "lacks 'age' and has 'years' besides"),
        (FRAME.set_axis(["height", "width", "width"], axis=1), "lacks 'age'"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        fk.kpca_project,
        fk.kpca_t2,
        fk.kpca_spe,
        fk.kpca_update,
        lambda _, X: fk.kpca_denoise(fk.kpca(FRAME, "gaussian", 2, sigma=2.0), X),
        lambda model, X: fk.kpca(X, like=model, tol=1e-2),
    ],
)
def test_other_columns_are_named(model, call, frame, text):
    with pytest.raises(ValueError, match=text):
        call(model, frame)


def test_merged_and_updated_models_keep_them(model):
    assert fk.kpca_update(model, FRAME).feature_names == model.feature_names
    other = fk.kpca(X + 0.1, like=model, keep_moments=True, tol=1e-2)
    assert other.feature_names == model.feature_names  # what it is like
    assert fk.kpca_merge(other, model).feature_names == model.feature_names
    with pytest.raises(ValueError, match="columns of other names"):
        fk.kpca_merge(model, replace(model, feature_names=("width", "height", "age")))


def test_many_names_are_cut_short():
    names = tuple(f"x{i}" for i in range(40))
    with pytest.raises(ValueError, match="lacks 'x0', 'x1', 'x2', 'x3', 'x4' and 35 more and has 'y0'"):
        check_same_columns(as_rows(pd.DataFrame(np.zeros((1, 40)), columns=[f"y{i}" for i in range(40)])), 40, names)


def test_a_frame_without_a_column_and_one_with_words_name_all_of_them(model):
    frame = pd.DataFrame(X, columns=["height", "width", "age"])
    with pytest.raises(ValueError, match="lacks 'width': the model was fitted on other columns"):
        fk.kpca_project(model, frame[["height", "age"]])
    words = frame.assign(sex="f", city="x")
    both = r"has the columns 'sex' \(number 3\) of type \w+, 'city' \(number 4\) of type \w+; kpca needs numbers"
    with pytest.raises(TypeError, match=both):
        fk.kpca(words, "linear", 1)
    with pytest.raises(TypeError, match=both):
        fk.kpca(pytest.importorskip("pyarrow").Table.from_pandas(words), "linear", 1)
    estimator = pytest.importorskip("fastkpca.sklearn").KernelPCA(1)
    with pytest.raises(ValueError, match=f"could not convert string to float: .*: X {both}"):
        estimator.fit(words)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(library):
    make = {"polars": "DataFrame", "pyarrow": "table"}[library]
    frame = getattr(pytest.importorskip(library), make)({name: FRAME[name] for name in FRAME})
    assert as_rows(frame).names == tuple(FRAME)
