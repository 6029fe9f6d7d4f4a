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
