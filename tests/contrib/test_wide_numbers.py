"""Methods on whole numbers that float64 would round: only differences count, and these are exact."""

import numpy as np
import pytest
from kernels_contrib.kbda import kbda
from kernels_contrib.klda import klda
from kernels_contrib.logistic import kernel_logistic
from kernels_contrib.perceptron import kernel_perceptron
from kernels_contrib.storage import load, save

RNG = np.random.default_rng(0)
FAR = 2**60 + 1
SHIFTED = RNG.integers(-40, 40, (90, 3))
CODES = np.where(SHIFTED[:, 0] > 10, 0, np.where(SHIFTED[:, 1] > 0, 1, 2))
NEW = RNG.integers(-40, 40, (20, 3))
FITS = {
    "klda": lambda X, **o: klda(X, CODES, sigma=20.0, regularization=0.1, **o),
    "kbda": lambda X, **o: kbda(X, CODES == 1, sigma=20.0, regularization=0.1, **o),
    "logistic": lambda X, **o: kernel_logistic(X, CODES, sigma=20.0, **o),
    "perceptron": lambda X, **o: kernel_perceptron(X, CODES, sigma=20.0, max_epochs=5, **(o | {"tol": 1e-9})),
}


@pytest.mark.parametrize("method", ["features", "gram"])
@pytest.mark.parametrize("name", FITS)
def test_rows_near_two_to_the_sixty_are_those_near_zero(name, method, tmp_path):
    near = FITS[name](SHIFTED.astype(float), method=method)
    far = FITS[name]((SHIFTED + FAR).astype(np.int64), method=method)
    expected, found = near.function(NEW.astype(float)), far.function(NEW + FAR)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    save(far, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").function(NEW + FAR), found)
    with pytest.raises(ValueError, match="X has no rows"):
        far.function(NEW[:0])


def test_a_kernel_that_depends_on_where_zero_lies_refuses_new_rows_that_would_be_rounded():
    model = klda(SHIFTED, CODES, "polynomial", degree=2)
    assert model.info["method"] == "features"
    with pytest.raises(ValueError, match="which float64 would round"):
        model.project(NEW + FAR)


def test_long_doubles_keep_their_digits():
    offset = np.longdouble(2.0**54)
    far = SHIFTED.astype(np.longdouble) / 64 + offset
    if (far - offset != SHIFTED / 64).any():
        pytest.skip("long doubles of this machine hold no more than float64")
    for method in ("features", "gram"):
        near = klda(SHIFTED / 64, CODES, sigma=0.4, regularization=0.1, method=method).project(NEW / 64)
        found = klda(far, CODES, sigma=0.4, regularization=0.1, method=method)
        np.testing.assert_allclose(found.project(NEW.astype(np.longdouble) / 64 + offset), near, atol=1e-5)
