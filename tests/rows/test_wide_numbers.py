"""Rows with more digits than float64 keeps: integers of 64 bits, long doubles, Python's own numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.rows.convert import as_rows
from fastkpca.rows.view import Rows

RNG = np.random.default_rng(0)
SMALL = RNG.integers(-50, 50, (300, 2))
FAR = SMALL + 2**60
REFERENCE = fk.kpca(SMALL.astype(float), "gaussian", 3, sigma=20.0, method="dense")
long_double = pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no longer than float64")

GIVEN = {
    "negative": lambda: SMALL - 2**62,
    "uint64": lambda: (SMALL + 50).astype(np.uint64) + np.uint64(2**63 + 1),
    "long double": lambda: np.longdouble(2**60) + SMALL,
    "list": lambda: FAR.tolist(),
    "blocks": lambda: [FAR[:70], FAR[70:]],
}


@pytest.mark.parametrize("method", ["dense", "features", "krylov"])
@pytest.mark.parametrize("given", [pytest.param(k, marks=long_double) if k == "long double" else k for k in GIVEN])
def test_rows_far_from_zero_are_those_near_zero(given, method):
    X = GIVEN[given]()
    model = fk.kpca(X, "gaussian", 3, sigma=20.0, method=method)
    low, high = model.eigenvalue_bounds.T
    exact = REFERENCE.eigenvalues
    assert (low <= exact * (1 + 1e-12)).all() and (exact * (1 - 1e-12) <= high).all()
    scores = fk.kpca_project(model, X)
    np.testing.assert_allclose(np.abs(scores), np.abs(REFERENCE.score), atol=1e-4)
    np.testing.assert_allclose(scores, model.score, atol=1e-9)


def test_dask_rows_and_products():
    da = pytest.importorskip("dask.array")
    model = fk.kpca(da.from_array(FAR, chunks=(70, 2)), "gaussian", 3, sigma=20.0)
    np.testing.assert_allclose(model.eigenvalues, REFERENCE.eigenvalues, rtol=1e-5)
    U = RNG.standard_normal((300, 2))
    near = fk.gram(SMALL.astype(float), "gaussian", SMALL[:40].astype(float), sigma=20.0) @ U[:40]
    np.testing.assert_allclose(fk.gram(FAR, "gaussian", FAR[:40], sigma=20.0) @ U[:40], near, rtol=1e-12)
    phi = fk.features(FAR, "gaussian", sigma=20.0)
    np.testing.assert_allclose(phi @ (phi.T @ U), fk.gram(FAR, "gaussian", sigma=20.0) @ U, atol=1e-3)


def test_shards_and_the_linear_kernel():
    first = fk.kpca(FAR[:150], "linear", 2, keep_moments=True)
    both = fk.kpca_update(first, FAR[150:])
    exact = fk.kpca(SMALL.astype(float), "linear", 2)
    np.testing.assert_allclose(both.eigenvalues, exact.eigenvalues, rtol=1e-12)
    np.testing.assert_allclose(fk.pca(FAR, 2).eigenvalues, exact.eigenvalues, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.longdouble])
def test_differences_are_rounded_once(dtype):
    """Against Python's exact numbers, over the whole range of each type."""
    for trial in range(300):
        rng = np.random.default_rng(trial)
        info = np.iinfo(np.int64 if dtype == np.longdouble else dtype)
        centre = int(rng.integers(info.min, info.max, dtype=info.dtype, endpoint=True))
        spread = 2 ** int(rng.integers(0, 65))
        some = [
            min(info.max, max(info.min, centre + int(rng.integers(-(2**62), 2**62)) * spread >> 62)) for _ in range(9)
        ]
        X = np.array(some, dtype=info.dtype).reshape(-1, 1).astype(dtype)
        if dtype == np.longdouble:
            X = X / np.longdouble(3)
        shift = np.array([float(X[0, 0])]) * rng.choice([1.0, 0.5, -1.0, 1.0 + 1e-10])
        found = Rows(X, shift).tile(0, 9).ravel()
        for x, y in zip(X.ravel(), found):
            numerator, denominator = x.as_integer_ratio() if dtype == np.longdouble else (int(x), 1)
            exact = Fraction(numerator, denominator) - Fraction(float(shift[0]))
            assert abs(Fraction(float(y)) - exact) <= abs(exact) * Fraction(1 + 2e-3) / 2**53


@pytest.mark.parametrize("kernel", ["polynomial", "tanh", "cosine"])
@pytest.mark.parametrize("X", [FAR, pytest.param(np.longdouble(1) / 3 + SMALL, marks=long_double)])
def test_kernels_that_allow_no_shift_refuse_what_float64_rounds(kernel, X):
    with pytest.raises(ValueError, match=r"which float64 would round.*X - X\[0\].*X.astype\(float\)"):
        fk.kpca(X, kernel, 2)
    fk.plan(X.astype(float), kernel, 2)
    model = fk.kpca(SMALL.astype(float), kernel, 2)
    for use in (fk.kpca_project, fk.kpca_spe, fk.kpca_t2):
        with pytest.raises(ValueError, match="which float64 would round"):
            use(model, X)
    fk.kpca(SMALL * 2**50, "linear", 2)  # beyond 2^53, and held exactly


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (2**60 + 1, "contains 1152921504606846977 .first at row 1, column 0"),
        (2**70 + 1, "which float64 would round"),
        (Decimal(2**60 + 1), "which float64 would round"),
        (Fraction(2**61 + 1, 2), "which float64 would round"),
    ],
)
def test_python_numbers_are_not_rounded_in_silence(value, match):
    with pytest.raises(ValueError, match=match):
        fk.kpca(np.array([[1, 0.5], [value, 2]], dtype=object), "gaussian", 1, sigma=1.0)
    with pytest.raises(ValueError, match=match):
        fk.kpca([[1, 0.5], [value, 2]], "gaussian", 1, sigma=1.0)
    assert as_rows([[2**60, 0.5]]).source.dtype == np.float64


def test_columns_of_frames_and_tables_are_not_rounded_in_silence():
    pd = pytest.importorskip("pandas")
    mixed = pd.DataFrame({"t": FAR[:, 0], "x": SMALL[:, 1] / 2})
    nullable = pd.DataFrame({"t": pd.array(FAR[:, 0], dtype="Int64")})
    match = r"beyond 2\^53 in the column 't' \(first at row 0\).*subtract an offset"
    for frame in (mixed, nullable):
        with pytest.raises(ValueError, match=match):
            fk.kpca(frame, "gaussian", 1, sigma=1.0)
    whole = fk.kpca(pd.DataFrame(FAR, columns=["a", "b"]), "gaussian", 3, sigma=20.0)
    np.testing.assert_allclose(whole.eigenvalues, REFERENCE.eigenvalues, rtol=1e-5)
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=match):
        fk.kpca(pa.table({"t": FAR[:, 0], "x": FAR[:, 1]}), "gaussian", 1, sigma=1.0)
    pl = pytest.importorskip("polars")
    cents = pl.Series([1, 2, 3], dtype=pl.Decimal(10, 2))
    with pytest.raises(ValueError, match=match):
        as_rows(pl.DataFrame({"t": FAR[:3, 0], "x": cents}))


def test_whole_numbers_with_nulls_in_parts_of_a_frame():
    pl = pytest.importorskip("polars")
    values = np.arange(40_000, dtype=np.int64)
    frame = pl.DataFrame({"a": values, "b": [None if i % 9999 == 9998 else i for i in range(40_000)]})
    rows = as_rows(frame, missing=True, memory=1000)  # a copy takes more: parts of it are read
    expected = np.column_stack([values, np.where(values % 9999 == 9998, np.nan, values)])
    assert rows.source is not None and not isinstance(rows.source, np.ndarray)
    np.testing.assert_array_equal(rows.all(), expected)
    with pytest.raises(ValueError, match=r"NaN \(first at row 9998, column 'b'\); missing by column: 'b' \(4\)"):
        as_rows(frame, memory=1000)
    far = frame.with_columns(pl.when(pl.col("a") == 1).then(2**60 + 1).otherwise(pl.col("a")).alias("a"))
    with pytest.raises(ValueError, match=r"beyond 2\^53 in the column 'a' \(first at row 1\)"):
        as_rows(far, missing=True, memory=1000).all()
