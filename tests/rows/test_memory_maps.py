"""Views of memory maps: read from their file whatever their strides, and an error where the file is cut short."""

import numpy as np
import pytest
import scipy.sparse as sp
from child import child

import fastkpca as fk
from fastkpca.errors import DataChangedError
from fastkpca.rows.convert import as_rows
from fastkpca.rows.sources import FileSource

VIEWS = """
    import mmap, os, pathlib
    import numpy as np, scipy.sparse as sp
    import fastkpca as fk
    from fastkpca.rows import sources

    sources.page_rows = lambda _: 256
    N = 9000
    def wide(mode="r", order="C"):
        return np.memmap(path, np.float64, mode, shape=(N, 6), order=order)
    def frame():
        import pandas
        return pandas.DataFrame(wide(), copy=False)
    def buffer():
        with path.open("rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)).reshape(N, 6)
    def blocks():
        X = wide()[::-1]
        return lambda: (X[i : i + 999] for i in range(0, N, 999))
    def matrix(kind):
        values, columns = np.memmap(path, np.float64, "r", shape=N), np.arange(N, dtype=np.int32) % 6
        if kind == "csr":
            return sp.csr_array((values, columns, np.arange(N + 1, dtype=np.int32)), (N, 6))
        return sp.coo_array((values, (np.arange(N, dtype=np.int32), columns)), (N, 6))
    fields = np.dtype([("key", "i1"), ("x", "f4", (3,)), ("y", "f8")])
    VIEWS = {
        "whole": lambda: wide(),
        "reversed": lambda: wide()[::-1],
        "columns": lambda: wide()[:, ::2],
        "reversed columns": lambda: wide()[:, ::-1],
        "both": lambda: wide()[7::3][::-1][:, ::-2],
        "far rows": lambda: wide()[::1000],
        "array": lambda: np.asarray(wide())[5:],
        "Fortran": lambda: wide(order="F"),
        "Fortran, reversed": lambda: wide(order="F")[::-3, ::-1],
        "transposed": lambda: np.memmap(path, np.float64, "r", shape=(6, N)).T,
        "transposed, wide": lambda: wide().T[:, ::5],
        "reshaped": lambda: np.memmap(path, np.float64, "r", shape=6 * N).reshape(-1, 6),
        "field": lambda: np.memmap(path, fields, "r", shape=N)["x"],
        "other bytes": lambda: np.memmap(path, ">f8", "r", shape=(N, 6))[::-2],
        "private": lambda: wide("c"),
        "masked": lambda: np.ma.MaskedArray(wide()),
        "matrix": lambda: wide().view(np.matrix),
        "buffer": buffer,
        "list": lambda: [wide()[:999], wide()[:998:-1]],
        "blocks": blocks,
        "frame": frame,
        "csr": lambda: matrix("csr"),
        "coo": lambda: matrix("coo"),
    }
    def fresh(name=""):
        numbers = np.random.default_rng(0).standard_normal((N, 6))
        if name == "field":
            whole = np.zeros(2 * N, fields)
            whole["x"][:N] = numbers[:, :3]
            numbers = whole
        numbers.astype(">f8" if name == "other bytes" else numbers.dtype).tofile(path)
    def fit(X, **options):
        with np.errstate(all="ignore"):
            return fk.kpca(X, "polynomial", 2, degree=2, return_scores=False, n_threads=1, **options)
    def outcome(call):
        try:
            call()
        except fk.errors.DataChangedError:
            return "cut"
        except Exception as error:
            return type(error).__name__ + ":" + str(error).replace(" ", "_")
        return "model"
"""
NAMES = [line.split('"')[1] for line in VIEWS.splitlines() if line.startswith('        "')]


def outcomes(folder, code):
    return dict(word.split("=", 1) for word in child(f"""
        path = pathlib.Path({str(folder / "rows.bin")!r})
        for name, view in VIEWS.items():
            fresh(name)
            X, calls = view(), []
            {code}
            print(name.replace(" ", "_"), found, sep="=")
    """, beginning=VIEWS))  # fmt: skip


def test_every_view_of_a_file_cut_short_before_is_an_error(tmp_path):
    found = outcomes(tmp_path, "os.truncate(path, 4096); found = outcome(lambda: fit(X))")
    assert found == dict.fromkeys((name.replace(" ", "_") for name in NAMES), "cut")


def test_every_view_of_a_file_cut_short_meanwhile_is_an_error(tmp_path):
    """Not where few rows, or blocks, are kept; nor of a sparse matrix, whose arrays are read where they lie."""
    code = "found = outcome(lambda: fit(X, progress=lambda *_: calls or calls.append(os.truncate(path, 4096))))"
    found = outcomes(tmp_path, f"{code} if name not in ('csr', 'coo') else 'cut'")
    kept = {"both", "far_rows", "Fortran,_reversed", "transposed,_wide", "other_bytes", "list", "blocks"}
    assert {name: what for name, what in found.items() if what != "cut"} == dict.fromkeys(kept, "model")


def test_weights_and_a_place_for_scores_in_a_file_cut_short(tmp_path):
    found = child(f"""
        path = pathlib.Path({str(tmp_path / "rows.bin")!r})
        X = np.random.default_rng(0).standard_normal((N, 6))
        for name in ("sample_weight", "out"):
            fresh()
            part = wide("r+")[:, 0] if name == "sample_weight" else wide("r+")[::-1, :2]
            os.truncate(path, 4096)
            print(outcome(lambda: fk.kpca(X, "linear", 2, **{{name: part}})))
    """, beginning=VIEWS)  # fmt: skip
    assert found == ["cut", "cut"]


@pytest.mark.parametrize("number", range(60))
def test_numbers_of_a_random_view(tmp_path, number):
    rng = np.random.default_rng(number)
    n, d = int(rng.integers(1, 5000)), int(rng.choice([1, 2, 7, 60, 900]))
    dtype = np.dtype(str(rng.choice(["f8", "f4", "f2", ">f8", "i8", "u1", "?", "g"])))
    whole = rng.integers(0, 2 if dtype.kind == "b" else 100, (n, d)).astype(dtype)
    order, offset = str(rng.choice(["C", "F"])), int(rng.integers(0, 9000))
    with open(tmp_path / "x.bin", "wb") as file:
        file.write(b"x" * offset + whole.tobytes(order))
    mapped = np.memmap(tmp_path / "x.bin", dtype, str(rng.choice(["r", "c", "r+"])), offset, (n, d), order)
    steps = [int(rng.choice([1, 1, 2, 17, 1000])) * int(rng.choice([-1, 1])) for _ in range(2)]
    cut = tuple(slice(int(rng.integers(0, 3)) if step > 0 and n > 5 else None, None, step) for step in steps)
    view, same = mapped[cut], whole[cut]
    if rng.random() < 0.3:
        view, same = view.T, same.T
    if 0 in same.shape:
        return
    rows = as_rows(view)
    assert isinstance(rows.source, FileSource)
    np.testing.assert_array_equal(rows.all(), same)
    some = rng.integers(0, len(same), 9)
    np.testing.assert_array_equal(rows.take(some), same[some])


def test_a_masked_map_is_refused_for_its_mask_and_bits_do_not_depend_on_the_view(tmp_path):
    X = np.random.default_rng(0).standard_normal((3000, 4))
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    mask = np.zeros(X.shape, bool)
    mask[5, 2] = True
    with pytest.raises(ValueError, match="1 masked entries .first at row 5, column 2"):
        fk.kpca(np.ma.MaskedArray(mapped, mask), "linear", 2)
    for view, same in ((mapped[::-1], X[::-1]), (mapped[::2, ::-1], X[::2, ::-1]), (mapped.T, X.T)):
        one, other = (fk.kpca(rows, "gaussian", 2, sigma=3.0) for rows in (view, np.array(same)))
        assert (one.eigenvalues == other.eigenvalues).all() and (one.score == other.score).all()


def test_a_map_that_is_read_itself_says_when_its_file_became_shorter(tmp_path):
    """Where its file is of another name by now."""
    X = np.random.default_rng(0).standard_normal((40_000, 4))
    X.tofile(tmp_path / "x.bin")
    mapped = np.memmap(tmp_path / "x.bin", np.float64, "r", shape=X.shape)
    (tmp_path / "x.bin").rename(tmp_path / "y.bin")
    rows = as_rows(mapped)
    np.testing.assert_array_equal(rows.tile(0, 10), X[:10])
    with open(tmp_path / "y.bin", "r+b") as file:
        file.truncate(4096)
    with pytest.raises(DataChangedError, match="has 4096 bytes now; 1280000 are needed for 40000 x 4 numbers of type"):
        rows.tile(30_000, 30_010)


def test_parts_of_a_sparse_matrix_are_named(tmp_path):
    X = sp.random_array((500, 40), density=0.5, rng=np.random.default_rng(0), format="csr")
    X.data.tofile(tmp_path / "x.bin")
    data = np.memmap(tmp_path / "x.bin", np.float64, "r", shape=X.nnz)
    again = sp.csr_array((data, X.indices, X.indptr), X.shape)
    assert (as_rows(again).all() == X.toarray()).all()
    with open(tmp_path / "x.bin", "r+b") as file:
        file.truncate(4096)
    with pytest.raises(DataChangedError, match=r"X.data is a memory map of .*x.bin, which has 4096 bytes now; 80000"):
        as_rows(again)


def test_kpca_select_takes_views_of_maps(tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 3))
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    one, other = (fk.kpca_select(rows, "gaussian", [1, 2], folds=2) for rows in (mapped[::-1], X[::-1].copy()))
    assert all((one.columns[x] == other.columns[x]).all() for x in other.columns)
