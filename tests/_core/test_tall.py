"""Products of arrays of many rows and few columns."""

import numpy as np
import pytest

from fastkpca._core import tiles
from fastkpca.products.vectors import aligned_columns

SETS = ["baseline", "avx2", "avx512"]


def _columns(rng, n, m, layout):
    A = aligned_columns(n, m) if layout == "aligned" else np.empty((n, m), order="F" if layout == "columns" else "C")
    A[...] = rng.standard_normal((n, m))
    return A


@pytest.mark.parametrize("instructions", SETS)
@pytest.mark.parametrize("n", [1, 511, 512, 1025, 2063, 4096])
@pytest.mark.parametrize(("m", "k"), [(1, 1), (3, 18), (40, 7), (9, 0), (0, 4)])
@pytest.mark.parametrize("layout", ["aligned", "columns", "rows"])
def test_products_are_those_of_numpy(n, m, k, layout, instructions):
    rng = np.random.default_rng(n + m)
    A, B, C = _columns(rng, n, m, layout), _columns(rng, n, k, "columns"), rng.standard_normal((m, k))
    X = _columns(rng, n, k, "columns")
    inner, added = A.T @ B, X + A @ C
    try:
        tiles.use_instruction_set(instructions)
    except ValueError:
        pytest.skip("not on this processor")
    try:
        found = tiles.tall_inner(A, B)
        tiles.add_tall_product(A, C.T.copy().T, X)
    finally:
        tiles.use_instruction_set()
    assert found.shape == (m, k)
    np.testing.assert_allclose(found, inner, rtol=0, atol=1e-13 * n)
    np.testing.assert_allclose(X, added, rtol=0, atol=1e-13 * (m + 1))


def test_a_panel_of_rows_alone_is_read_and_written():
    rng = np.random.default_rng(0)
    A, X, C = aligned_columns(2000, 5), aligned_columns(2000, 3), rng.standard_normal((5, 3))
    A[...], X[...] = np.nan, np.nan
    A[600:1303], X[600:1303] = rng.standard_normal((703, 5)), 0.0
    tiles.add_tall_product(A[600:1303], C, X[600:1303])
    np.testing.assert_allclose(X[600:1303], A[600:1303] @ C, atol=1e-13)
    assert np.isnan(X[:600]).all() and np.isnan(X[1303:]).all()
    assert np.isfinite(tiles.tall_inner(A[600:1303], X[600:1303])).all()


def test_other_lengths_are_refused():
    if not tiles.panel_rows():
        pytest.skip("numpy's products say so themselves")
    A, X = aligned_columns(600, 2), aligned_columns(700, 2)
    with pytest.raises(ValueError, match="columns of 600 and of 700 numbers"):
        tiles.tall_inner(A, X)
    with pytest.raises(ValueError, match="is not the shape of a product"):
        tiles.add_tall_product(A, np.eye(2), X)
