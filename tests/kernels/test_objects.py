"""Lists of objects with a function on two lists of them, against the same matrix as a precomputed one."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import ModelFileError
from fastkpca.kernels import stored


def pairs(word):
    return Counter(word[i : i + 2] for i in range(len(word) - 1))


def spectrum(A, B):
    a, b = [pairs(x) for x in A], [pairs(x) for x in B]
    return np.array([[sum(n * y[key] for key, n in x.items()) for y in b] for x in a], dtype=float)


def words(n=100):
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list("acgt"), size=rng.integers(5, 20))) for _ in range(n)]


@pytest.mark.parametrize("method", ["dense", "krylov", "auto"])
@pytest.mark.parametrize("center", [True, False])
def test_strings_are_what_their_matrix_is(method, center):
    every = words()
    K = spectrum(every, every)
    options = {"method": method, "center": center}
    model = fk.kpca(every[:80], spectrum, 3, positive_semidefinite=True, **options)
    there = fk.kpca(K[:80, :80], "precomputed", 3, semidefinite=True, **options)
    np.testing.assert_allclose(model.eigenvalues, there.eigenvalues, rtol=1e-9)
    new = fk.kpca_project(model, every[80:])
    np.testing.assert_allclose(new, fk.kpca_project(there, K[80:, :80]), atol=1e-7)
    np.testing.assert_allclose(fk.kpca_project(model, every[:80]), model.score, atol=1e-9)
    spe = fk.kpca_spe(there, K[80:, :80], diagonal=np.diag(K)[80:])
    np.testing.assert_allclose(fk.kpca_spe(model, every[80:]), spe, atol=1e-6)
    assert fk.kpca_limits(model, every[80:], t2="chi2").n_calibration == 20


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


def test_weights_count_objects():
    every, w = words(60), np.random.default_rng(1).integers(0, 3, 60)
    weighted = fk.kpca(every, spectrum, 3, sample_weight=w)
    repeated = fk.kpca([x for x, n in zip(every, w) for _ in range(n)], spectrum, 3)
    np.testing.assert_allclose(weighted.eigenvalues, repeated.eigenvalues, rtol=1e-10)


def test_files_and_pickles_hold_the_objects(tmp_path, monkeypatch):
    every = words(50)
    model = fk.kpca(every[:40], spectrum, 2, positive_semidefinite=True)
    with pytest.raises(ValueError, match="cannot be written down by name; make it known with"):
        fk.save(model, tmp_path / "m.kpca")
    with fk.register_kernel("spectrum", spectrum):
        fk.save(model, tmp_path / "m.kpca")
        others = [fk.load(tmp_path / "m.kpca"), pickle.loads(pickle.dumps(model))]
        monkeypatch.setattr(stored, "MOST_TEXT", 100)
        with pytest.raises(ValueError, match="take .* MB, and a model file holds"):
            fk.save(model, tmp_path / "n.kpca")
    for other in others:
        assert other.kernel.positive_semidefinite
        assert np.array_equal(fk.kpca_project(other, every[40:]), fk.kpca_project(model, every[40:]))
    with pytest.raises(ModelFileError, match="'spectrum' is not known here"):
        fk.load(tmp_path / "m.kpca")


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    sets = [frozenset([i, i % 3, i % 5]) for i in range(30)]
    model = fk.kpca(sets, Shared(), 2)
    with fk.register_kernel("shared", Shared), pytest.raises(ValueError, match="object 0 .* a frozenset, is none that"):
        fk.save(model, tmp_path / "m.kpca")


def test_a_file_with_too_few_objects_is_refused():
    every = words(30)
    with fk.register_kernel("spectrum", spectrum):
        header, arrays = fk.kpca(every, spectrum, 2).state()
        header["kernel"]["objects"] = '["a", "b"]'
        with pytest.raises(ModelFileError):
            fk.KPCAModel.from_state(header, arrays)
        header["kernel"]["objects"] = "["
        with pytest.raises(ModelFileError):
            fk.KPCAModel.from_state(header, arrays)


def test_rows_of_numbers_are_no_objects():
    X = np.random.default_rng(0).standard_normal((30, 3))
    for rows in (X, X.tolist(), [tuple(x) for x in X.tolist()], list(X)):
        model = fk.kpca(rows, lambda A, B: A @ B.T, 2)
        assert model.n_features == 3


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m, X: fk.kpca(X, lambda A, B: 1.0, 2), ValueError, "called with two lists of them, of n and m"),
        (lambda m, X: fk.kpca(X, lambda A, B: A @ B, 2), TypeError, "unsupported operand"),
        (lambda m, X: fk.kpca(X, "gaussian", 2), TypeError, "for objects give as the kernel a function of two lists"),
        (lambda m, X: fk.kpca(X, spectrum, 2, standardize=True), ValueError, "scales columns of numbers"),
        (lambda m, X: fk.kpca_project(m, np.eye(3)), TypeError, "the model was made of a list of objects"),
        (lambda m, X: fk.kpca_project(m, []), TypeError, "the model was made of a list of objects"),
        (lambda m, X: fk.kpca_importance(m, X), ValueError, "has no columns whose importance"),
        (lambda m, X: fk.kpca_denoise(m, X), ValueError, "or a list of objects, holds no rows"),
        (lambda m, X: fk.kpca_limits(m), ValueError, "limits need objects"),
        (lambda m, X: fk.features(X, spectrum, positive_semidefinite=True), ValueError, "is on numbers of rows"),
    ],
)
def test_bad_input(call, error, text):
    every = words(30)
    with pytest.raises(error, match=text):
        call(fk.kpca(every, spectrum, 2), every)
