"""What the routes share: the signs of components."""

import numpy as np
import pytest

from fastkpca.fit.solution import signs_of


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [1, 2, 50, 4096])
def test_signs_make_the_largest_number_of_each_column_positive(n, order):
    V = np.asarray(np.random.default_rng(n).standard_normal((n, 7)), order=order)
    V[:, 3] = 0.0
    V[(n - 1) // 2, 4], V[-1, 4] = -9.0, 9.0 * (1.0 + 1e-9)  # a tie up to rounding: the first of the two counts
    V[0, 5] = np.nan
    signs = signs_of(V)
    assert set(signs) <= {-1.0, 1.0} and signs[3] == 1.0
    assert signs[4] == (1.0 if n == 1 else -1.0)
    for j in (0, 1, 2, 6):
        assert (V[:, j] * signs[j]).max() == np.abs(V[:, j]).max()
    assert np.array_equal(signs_of(V[:, ::-1]), signs[::-1])
    assert signs_of(V[:, :0]).shape == (0,)
