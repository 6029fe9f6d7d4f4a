"""Lists of objects with a function on two lists of them, against the same matrix as a precomputed one."""

import pickle
from collections import Counter

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import ModelFileError, NoVarianceError
from fastkpca.kernels import Kernel, stored
from fastkpca.testing import check_kernel, check_pickling, check_symmetry


def pairs(word):
    return Counter(word[i : i + 2] for i in range(len(word) - 1))


def shared_pairs(A, B):
    a, b = [pairs(x) for x in A], [pairs(x) for x in B]
    return np.array([[sum(n * y[key] for key, n in x.items()) for y in b] for x in a], dtype=float)


def words(n=100):
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list("acgt"), size=rng.integers(5, 20))) for _ in range(n)]


@pytest.mark.parametrize("method", ["dense", "krylov", "auto"])
@pytest.mark.parametrize("center", [True, False])
def test_strings_are_what_their_matrix_is(method, center):
    every = words()
    K = shared_pairs(every, every)
    options = {"method": method, "center": center}
    model = fk.kpca(every[:80], shared_pairs, 3, positive_semidefinite=True, **options)
    there = fk.kpca(K[:80, :80], "precomputed", 3, semidefinite=True, **options)
    np.testing.assert_allclose(model.eigenvalues, there.eigenvalues, rtol=1e-9)
    new = fk.kpca_project(model, every[80:])
    np.testing.assert_allclose(new, fk.kpca_project(there, K[80:, :80]), atol=1e-7)
    np.testing.assert_allclose(fk.kpca_project(model, every[:80]), model.score, atol=1e-9)
    spe = fk.kpca_spe(there, K[80:, :80], diagonal=np.diag(K)[80:])
    np.testing.assert_allclose(fk.kpca_spe(model, every[80:]), spe, atol=1e-6)
    assert fk.kpca_limits(model, every[80:], t2="chi2", spe="box").n_calibration == 20


class Shared:
    positive_semidefinite = True

    def block(self, A, B):
        return np.array([[float(len(a & b)) for b in B] for a in A])


def test_sets_and_an_object_with_block():
    rng = np.random.default_rng(0)
    sets = [frozenset(rng.choice(20, 5).tolist()) for _ in range(60)]
    model = fk.kpca(sets, Shared(), 3)
    indicators = np.array([[float(i in x) for i in range(20)] for x in sets])
    np.testing.assert_allclose(model.eigenvalues, fk.kpca(indicators, "linear", 3).eigenvalues, rtol=1e-9)
    back = fk.kpca_preimage(model, model.score, train=indicators)
    assert back.shape == (60, 20)
    product = fk.gram(sets, Shared()) @ np.eye(60, 4)
    np.testing.assert_allclose(product, (indicators @ indicators.T)[:, :4], atol=1e-12)


def test_files_and_pickles_hold_the_objects(tmp_path, monkeypatch):
    every = words(50)
    model = fk.kpca(every[:40], shared_pairs, 2, positive_semidefinite=True)
    with pytest.raises(ValueError, match="cannot be written down by name; make it known with"):
        fk.save(model, tmp_path / "m.kpca")
    with fk.register_kernel("pairs", shared_pairs):
        fk.save(model, tmp_path / "m.kpca")
        others = [fk.load(tmp_path / "m.kpca"), pickle.loads(pickle.dumps(model))]
        with monkeypatch.context() as patch, pytest.raises(ValueError, match="take .* MB, and a model file holds"):
            patch.setattr(stored, "MOST_HEADER", 100)
            fk.save(model, tmp_path / "n.kpca")
    for other in others:
        assert other.kernel.positive_semidefinite
        assert np.array_equal(fk.kpca_project(other, every[40:]), fk.kpca_project(model, every[40:]))
    with pytest.raises(ModelFileError, match="'pairs' is not known here"):
        fk.load(tmp_path / "m.kpca")
    sets = fk.kpca([frozenset([i, i % 3, i % 5]) for i in range(30)], Shared(), 2)
    with fk.register_kernel("shared", Shared), pytest.raises(ValueError, match="object 0 .* a frozenset, is none that"):
        fk.save(sets, tmp_path / "s.kpca")
    with fk.register_kernel("pairs", shared_pairs):
        header, arrays = model.state()
        for objects in ('["a", "b"]', "["):  # too few of them, and none at all
            header["kernel"]["objects"] = objects
            with pytest.raises(ModelFileError):
                fk.KPCAModel.from_state(header, arrays)


def test_rows_of_numbers_are_no_objects():
    X = np.random.default_rng(0).standard_normal((30, 3))
    for rows in (X, X.tolist(), [tuple(x) for x in X.tolist()], list(X)):
        model = fk.kpca(rows, lambda A, B: A @ B.T, 2)
        assert model.n_features == 3


class Pieces(Kernel):
    """Substrings of length p that two strings share, counted."""

    api_version = 1
    positive_semidefinite = True
    takes_objects = True
    parameters = {"p": 2}

    def block(self, A, B):
        a, b = (
            [Counter(word[i : i + self.p] for i in range(len(word) - self.p + 1)) for word in side] for side in (A, B)
        )
        return np.array([[sum(n * y[key] for key, n in x.items()) for y in b] for x in a])


def test_a_kernel_class_on_objects(tmp_path):
    every = words(90)
    expected = fk.kpca(every[:80], shared_pairs, 3, positive_semidefinite=True)
    model = fk.kpca(every[:80], Pieces, 3, p=2)
    np.testing.assert_allclose(model.eigenvalues, expected.eigenvalues, rtol=1e-12)
    np.testing.assert_allclose(fk.gram(every, Pieces()) @ np.eye(90, 3), shared_pairs(every, every)[:, :3])
    with fk.register_kernel("pieces", Pieces):
        named = fk.kpca(every[:80], "pieces", 3, p=3)
        fk.save(named, tmp_path / "m.kpca")
        loaded = fk.load(tmp_path / "m.kpca")
        assert "Pieces(p=3)" in repr(loaded.kernel)
    for other in (loaded, pickle.loads(pickle.dumps(named))):
        np.testing.assert_array_equal(fk.kpca_project(other, every[80:]), fk.kpca_project(named, every[80:]))
    report = check_kernel(Pieces(p=3), every[:50])
    assert report["check_symmetry"] == report["check_positive_semidefinite"] == report["check_pickling"] == "passed"


def test_a_model_s_kernel_is_fitted_anew_on_other_objects():
    every = words(60)
    for kernel in (Pieces(p=3), fk.get_kernel(shared_pairs, positive_semidefinite=True)):
        again = fk.kpca(every[30:], fk.kpca(every[:30], kernel, 2).kernel, 2)
        np.testing.assert_array_equal(again.eigenvalues, fk.kpca(every[30:], kernel, 2).eigenvalues)


@pytest.mark.parametrize("one", [Pieces(p=3), fk.get_kernel(shared_pairs, positive_semidefinite=True)])
def test_sums_and_products_on_objects(one, tmp_path):
    every, other = words(60), Pieces(p=2)
    K = np.asarray(one.on_lists(every, every), float), shared_pairs(every, every)
    for kernel, matrix in ((0.5 * one + other, 0.5 * K[0] + K[1]), (one * other, K[0] * K[1]), (2.0 * one, 2.0 * K[0])):
        for part in (slice(50), slice(60)):
            there = fk.kpca(matrix[part, part], "precomputed", 3, semidefinite=True)
            np.testing.assert_allclose(fk.kpca(every[part], kernel, 3).eigenvalues, there.eigenvalues, rtol=1e-9)
        model = fk.kpca(every[:50], kernel, 3)
        there = fk.kpca(matrix[:50, :50], "precomputed", 3, semidefinite=True)
        new = np.abs(fk.kpca_project(there, matrix[50:, :50]))
        np.testing.assert_allclose(np.abs(fk.kpca_project(model, every[50:])), new, atol=1e-7)
        with fk.register_kernel("pairs", shared_pairs), fk.register_kernel("pieces", Pieces):
            fk.save(model, tmp_path / "m.kpca", overwrite=True)
            loaded = fk.load(tmp_path / "m.kpca")
        np.testing.assert_array_equal(fk.kpca_project(loaded, every[50:]), fk.kpca_project(model, every[50:]))
        with pytest.raises(ValueError, match="or a list of objects, holds no rows"):
            fk.kpca_denoise(model, every)
        assert check_symmetry(kernel, every) == check_pickling(kernel, every) == "passed"


def test_a_series_of_strings_is_a_list():
    pandas = pytest.importorskip("pandas")
    every = words(30)
    expected = fk.kpca(every, Pieces(), 2).eigenvalues
    for kernel in (Pieces(), fk.get_kernel(shared_pairs, positive_semidefinite=True)):
        model = fk.kpca(pandas.Series(every, index=range(5, 35)), kernel, 2)
        np.testing.assert_allclose(model.eigenvalues, expected, rtol=1e-12)
        assert fk.kpca_project(model, pandas.Series(every[:3])).shape == (3, 2)
    with pytest.raises(ValueError, match=r"X has shape \(30,\); kpca needs two dimensions"):
        fk.kpca(pandas.Series(np.arange(30.0)), "gaussian", 2)
    for missing in (pandas.NA, pandas.NaT, np.float32("nan")):
        with pytest.raises(TypeError, match=r"X\[30\] is .*; leave out what is missing"):
            fk.kpca(pandas.Series([*every, missing], dtype=object), shared_pairs, 2)


WORDS = words(60)
MODEL = fk.kpca(WORDS, shared_pairs, 2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fk.kpca(WORDS, lambda A, B: 1.0, 2), ValueError, "called with two lists of them, of n and m"),
        (lambda: fk.kpca(WORDS, lambda A, B: A @ B, 2), TypeError, "unsupported operand"),
        (lambda: fk.kpca(WORDS, "gaussian", 2), TypeError, "for objects give as the kernel a function of two lists"),
        (lambda: fk.kpca(WORDS, "gaussian", 2), TypeError, "or a Kernel with takes_objects = True"),
        (lambda: fk.kpca(WORDS, shared_pairs, 2, standardize=True), ValueError, "scales columns of numbers"),
        (lambda: fk.kpca_project(MODEL, np.eye(3)), TypeError, "the model was made of a list of objects"),
        (lambda: fk.kpca_project(MODEL, []), TypeError, "the model was made of a list of objects"),
        (lambda: fk.kpca_project(MODEL, ["ab", None]), TypeError, r"X\[1\] is None"),
        (lambda: fk.kpca_importance(MODEL, WORDS), ValueError, "has no columns whose importance"),
        (lambda: fk.kpca_denoise(MODEL, WORDS), ValueError, "or a list of objects, holds no rows"),
        (lambda: fk.kpca_limits(MODEL), ValueError, "limits need objects"),
        (lambda: fk.features(WORDS, shared_pairs, positive_semidefinite=True), ValueError, "does not take rows"),
        (lambda: fk.kpca(np.eye(5), Pieces(), 2), TypeError, "on objects: X must be a list .* found ndarray"),
        (lambda: fk.kpca([], Pieces(), 2), TypeError, "X must be a list of one or more of them"),
        (lambda: fk.kpca(WORDS, Pieces() + fk.get_kernel("linear"), 2), TypeError, "on objects and kernels on rows"),
        (lambda: fk.kpca_select(WORDS, Pieces(), 2), TypeError, "kpca_select takes rows of numbers alone: fit each"),
        (lambda: fk.kpca([*WORDS, None], Pieces(), 2), TypeError, r"X\[60\] is None; leave out what is missing"),
        (lambda: fk.kpca([*WORDS, ...], shared_pairs, 2), TypeError, r"X\[60\] is Ellipsis; leave out what is missing"),
        (lambda: fk.on_columns(Pieces(), [0]), ValueError, "objects, which have no columns"),
        (lambda: fk.kpca(WORDS, fk.on_columns(shared_pairs, [0]), 2), TypeError, "this kernel needs rows of numbers"),
        (lambda: check_kernel("gaussian", WORDS), TypeError, "X holds objects of type str; this kernel needs rows"),
        (lambda: check_kernel(Pieces, WORDS[:8]), ValueError, "X has 8 rows; check_kernel needs at least 50"),
        (lambda: check_kernel(Shared(), WORDS[:8]), ValueError, "X has 8 rows; check_kernel needs at least 50"),
        (lambda: check_kernel(Pieces), ValueError, "give as X a list of 50 to 200 objects .*, as in check_kernel"),
        (lambda: check_kernel("linear", np.full((60, 2), np.nan)), ValueError, "^X contains NaN .* check_kernel$"),
    ],
)
def test_what_is_said_of_kernels_on_objects(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("kernel", [Pieces(p=50), fk.get_kernel(lambda A, B: np.zeros((len(A), len(B))))])
def test_objects_without_variance_are_no_distances(kernel):
    with pytest.raises(NoVarianceError, match=r"(?m)and the kernel's parameters$"):
        fk.kpca(words(40), kernel, 2)
