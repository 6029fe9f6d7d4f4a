"""The model file: what is written comes back bit for bit, and nothing else is ever accepted."""

from __future__ import annotations

import math
import os
import pickle
import shutil
import struct
import subprocess
import sys
from functools import partial, reduce

import numpy as np
import pytest
from fake_plugins import SCALED
from fuzz_model_files import frame as pack
from fuzz_model_files import json_of
from peak import traced
from places import ROOT

import fastkpca as fk
from fastkpca.base import files
from fastkpca.base.atomic import atomic
from fastkpca.errors import ModelFileError, PluginError, PluginWarning
from fastkpca.kernels import registry

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]


def entry(name="a", dtype="<f8", shape=(2,)) -> list:
    return [name, dtype, list(shape)]


def table(*entries: object, header: object = None) -> bytes:
    return json_of({"header": {} if header is None else header, "arrays": list(entries)})


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.kpca"
    files.write(path, {"kernel": "gaussian", "sigma": 0.1}, {"a": np.arange(3.0), "b": np.eye(2, dtype=np.float32)})
    return path


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_back_bit_for_bit(tmp_path, dtype):
    """Of any shape, memory and byte order."""
    rng = np.random.default_rng(0)
    shapes = [(), (0,), (7,), (3, 5), (2, 0, 4), (2, 3, 4)]
    expected = {f"{x}": (rng.standard_normal(x) * 100).astype(dtype) for x in shapes}
    a = expected["(3, 5)"]
    given = expected | {"fortran": np.asfortranarray(a), "big": a.astype(a.dtype.newbyteorder(">"))}
    given |= {"reversed": a[::-1, ::-2], "transposed": a.T}
    expected |= {"fortran": a, "big": a, "reversed": a[::-1, ::-2], "transposed": a.T}
    files.write(str(tmp_path / "x"), {}, given)
    _, arrays = files.read(tmp_path / "x")
    for name, back in arrays.items():
        assert back.dtype == a.dtype and back.dtype.isnative and back.shape == expected[name].shape
        assert back.tobytes() == expected[name].tobytes() and back.flags.writeable and back.flags.c_contiguous


def test_header_comes_back_exactly(tmp_path, attack):
    rng = attack.rng("header floats")
    floats = rng.integers(0, 1 << 64, 2000, dtype=np.uint64).view(np.float64).tolist()
    floats += [0.0, -0.0, 5e-324, 1e308, 0.1, math.nan, math.inf, -math.inf]
    header = {
        "f": floats,
        "i": [0, -1, 2**70],
        "s": 'ä "\\\n\u2028\U0001f600',
        "n": None,
        "b": [True, False],
        "d": {"e": {}, "$float": "nan"},
    }
    files.write(tmp_path / "x", {**header, "t": (1, 2), "np": [np.float64(0.1), np.int32(3), np.bool_(True)]}, {})
    back, _ = files.read(tmp_path / "x")
    assert back.pop("t") == [1, 2]
    assert back.pop("np") == [0.1, 3, True]
    bits = [struct.pack("<d", x) for x in floats if not math.isnan(x)]
    assert [struct.pack("<d", x) for x in back["f"] if not math.isnan(x)] == bits
    assert [math.isnan(x) for x in back.pop("f")] == [math.isnan(x) for x in header.pop("f")]
    assert back == header
    assert isinstance(back["b"][0], bool)


@pytest.mark.parametrize(
    ("header", "arrays", "error", "match"),
    [
        ({"x": object()}, {}, TypeError, r"header\['x'\] is a object"),
        ({"x": [np.zeros(2)]}, {}, TypeError, r"header\['x'\]\[0\] is a ndarray"),
        ({1: 2}, {}, TypeError, "key 1"),
        (reduce(lambda inner, _: {"deep": inner}, range(5000), {}), {}, ValueError, "nested more than"),
        ({}, {"a": np.array(["x"])}, TypeError, "array 'a' has dtype <U1"),
        ({}, {"a": np.array([None])}, TypeError, "dtype object"),
        ({}, {"a": np.array(["2020"], dtype="M8[D]")}, TypeError, "datetime"),
        ({}, {"a": np.ma.masked_array([1.0], [True])}, TypeError, "masked"),
        ({}, {3: np.zeros(1)}, TypeError, "names are strings"),
        ({}, {"a": np.zeros(1, dtype=[("x", "f8")])}, TypeError, "array 'a'"),
    ],
)
def test_refuses_to_write_what_it_cannot_hold(tmp_path, header, arrays, error, match):
    with pytest.raises(error, match=match):
        files.write(tmp_path / "x", header, arrays)
    assert os.listdir(tmp_path) == []


def test_existing_file_is_kept_without_overwrite(small):
    before = small.read_bytes()
    with pytest.raises(FileExistsError, match="exists already"):
        files.write(small, {}, {})
    assert small.read_bytes() == before
    files.write(small, {"new": 1}, {}, overwrite=True)
    assert files.read(small)[0] == {"new": 1}
    assert os.listdir(small.parent) == ["small.kpca"]


def test_file_made_meanwhile_is_kept(tmp_path):
    path = tmp_path / "x"
    with pytest.raises(FileExistsError, match="meanwhile"), atomic(path) as file:
        file.write(b"ours")
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("last_step", [False, True])
def test_failure_leaves_nothing_behind(tmp_path, monkeypatch, error, existing, last_step):
    def broken(*_):
        raise error

    if existing:
        (tmp_path / "x").write_bytes(b"before")
    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(type(error)), atomic(tmp_path / "x", overwrite=True) as file:
        file.write(b"half")
        if not last_step:
            broken()
    assert os.listdir(tmp_path) == (["x"] if existing else [])
    assert not existing or (tmp_path / "x").read_bytes() == b"before"


def test_without_hard_links(tmp_path, monkeypatch):
    def unsupported(*_):
        raise PermissionError("hard links are not supported")

    monkeypatch.setattr(os, "link", unsupported)
    files.write(tmp_path / "x", {"a": 1}, {})
    assert files.read(tmp_path / "x")[0] == {"a": 1}
    assert os.listdir(tmp_path) == ["x"]


def test_targets(tmp_path, small):
    with pytest.raises(FileNotFoundError, match="folder of"):
        files.write(tmp_path / "no" / "x", {}, {})
    with pytest.raises(FileNotFoundError, match="folder of"):
        files.write(small / "x", {}, {})
    with pytest.raises(IsADirectoryError):
        files.write(tmp_path, {}, {}, overwrite=True)
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / "missing")
    if os.name == "posix":
        with pytest.raises(OSError, match="not a regular file"):
            files.write(os.devnull, {}, {}, overwrite=True)
        link = tmp_path / "link"
        link.symlink_to(small)
        files.write(link, {"through": 1}, {}, overwrite=True)
        assert link.is_symlink() and files.read(small)[0] == {"through": 1}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions(tmp_path):
    mask = os.umask(0o027)
    try:
        files.write(tmp_path / "new", {}, {})
    finally:
        os.umask(mask)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    (tmp_path / "new").chmod(0o604)
    files.write(tmp_path / "new", {}, {}, overwrite=True)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o604
    (tmp_path / "new").chmod(0o600)
    with atomic(tmp_path / "new", overwrite=True) as file:  # private, also while it is replaced
        file.write(b"another secret")
        file.flush()
        assert {x.stat().st_mode & 0o777 for x in tmp_path.iterdir()} == {0o600}
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


def test_truncation_at_every_length(small, tmp_path):
    whole = small.read_bytes()
    cut = tmp_path / "cut"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=r"truncated|is not a fastkpca model file"):
            files.read(cut)
    cut.write_bytes(whole + b"\0")
    with pytest.raises(ModelFileError, match="appended"):
        files.read(cut)


def test_a_flipped_bit_in_any_byte_is_noticed(small):
    whole = bytearray(small.read_bytes())
    for position in range(len(whole)):
        whole[position] ^= 1 << position % 8
        small.write_bytes(whole)
        with pytest.raises(ModelFileError):
            files.read(small)
        whole[position] ^= 1 << position % 8
    small.write_bytes(whole)
    assert files.read(small)[0]["kernel"] == "gaussian"


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04" * 30, b"\x80\x04pickle" * 30, b"fastkpca" * 30, b"1,2,3\n" * 30]
)
def test_other_files(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ModelFileError, match="not a fastkpca model file"):
        files.read(tmp_path / "x")


BODY = np.arange(2.0).tobytes()
CRAFTED = {
    "unknown version": (pack(table(), version=2), "version 2"),
    "huge header length": (pack(table(), header_length=(1 << 32) - 24), "impossible"),
    "not JSON": (pack(b"\xff\xfe"), "header is damaged"),
    "deep nesting": (pack(b"[" * 100_000), "header is damaged"),
    "deeper than is written": (
        pack(b'{"header":{"x":' + b"[" * 101 + b"]" * 101 + b'},"arrays":[]}'),
        "nested more than 100 deep",
    ),
    "endless integer": (pack(b'{"header":{"x":' + b"9" * 100_000 + b'},"arrays":[]}'), "header is damaged"),
    "key twice": (pack(b'{"header":{"x":1,"x":2},"arrays":[]}'), "not written as"),
    "a space too many": (pack(b'{"header":{}, "arrays":[]}'), "not written as"),
    "a third key": (pack(b'{"header":{},"arrays":[],"more":1}'), "not written as"),
    "an infinite number": (pack(b'{"header":{"x":1e999},"arrays":[]}'), "not written as"),
    "a number of another form": (pack(b'{"header":{"x":1.50},"arrays":[]}'), "not written as"),
    "header is a number": (pack(table(header=math.nan)), "not written as"),
    "table is an object": (pack(b'{"header":{},"arrays":{}}'), "not written as"),
    "list at the top": (pack(b"[]"), "not written as"),
    "no table": (pack(b'{"header":{}}'), "not written as"),
    "entry is no list": (pack(table(1)), "not name, type and shape"),
    "entry with a fourth field": (pack(table([*entry(), 1]), BODY), "not name, type and shape"),
    "name is no string": (pack(table(entry(name=1)), BODY), "not name, type and shape"),
    "duplicate names": (pack(table(entry(), entry()), BODY + bytes(48) + BODY), "two arrays have one name"),
    "object dtype": (pack(table(entry(dtype="|O")), BODY), r"\['a', '\|O', \[2\]\] are not name, type and shape"),
    "dtype is a list": (pack(table(entry(dtype=["<f8"])), BODY), "not name, type and shape"),
    "long double": (pack(table(entry(dtype="<f16", shape=[1])), BODY), "not name, type and shape"),
    "negative shape": (pack(table(entry(shape=[-2])), BODY), "not name, type and shape"),
    "float shape": (pack(table(entry(shape=[2.0])), BODY), "not name, type and shape"),
    "truth value as a shape": (pack(table(entry(shape=[2, True])), BODY), "not name, type and shape"),
    "shape is no list": (pack(table(["a", "<f8", 2]), BODY), "not name, type and shape"),
    "too many dimensions": (pack(table(entry(shape=[1] * 100 + [2])), BODY), "not name, type and shape"),
    "huge shape": (pack(table(entry(shape=[1 << 40])), BODY), "its arrays take 8796"),
    "overflowing shape": (pack(table(entry(shape=[1 << 32, 1 << 32])), BODY), "its arrays take 1475"),
    "overflowing empty shape": (pack(table(entry(shape=[0, 1 << 62, 1 << 62]))), "impossible shape"),
    "shape against size": (pack(table(entry(shape=[3])), BODY), "its arrays take 24 bytes, and there are 16 for them"),
    "array beyond the end": (pack(table(entry()), BODY[:8]), "its arrays take 16 bytes, and there are 8 for them"),
    "bytes of no array": (pack(table(entry()), BODY + b"x"), "for them"),
    "not booleans": (pack(table(entry(dtype="|b1", shape=[16])), b"\x02" * 16), "not booleans"),
}


@pytest.mark.parametrize("case", CRAFTED)
def test_crafted_files_with_a_right_checksum(tmp_path, case):
    content, match = CRAFTED[case]
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ModelFileError, match=match) as caught:
        files.read(tmp_path / "x")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600


def test_the_second_writer_agrees(tmp_path):
    """The cases above fail for what is wrong with them, not because ``pack`` is wrong."""
    (tmp_path / "x").write_bytes(pack(table(entry(), header={"k": 1.5}), BODY))
    header, arrays = files.read(tmp_path / "x")
    assert header == {"k": 1.5}
    np.testing.assert_array_equal(arrays["a"], [0.0, 1.0])


# What a file says, with a right checksum ---------------------------------------------------------------------------


def rewritten(path, change):
    """The file with its header and arrays changed, and a checksum that is right."""
    header, arrays = files.read(path)
    change(header, arrays)
    files.write(path, header, arrays, overwrite=True)
    return path


@pytest.fixture(scope="module")
def models():
    """Name -> (model, rows): each projector and each of fastkpca's own feature maps."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    limited = fk.kpca(X, "gaussian", 2, sigma=1.0)
    made = {
        "rows": fk.kpca(X, "gaussian", 2, sigma=1.0, method="dense"),
        "precomputed": fk.kpca(X @ X.T, "precomputed", 2, method="dense"),
        "weights": fk.kpca(X, "gaussian", 2, sigma=1.0, method="dense", sample_weight=np.arange(60.0) % 4),
        "limits": limited.with_limits(fk.kpca_limits(limited, X + 0.1, confidence=0.9)),
        "polynomial": fk.kpca(X, "polynomial", 2, degree=2, method="features"),
        "linear": fk.kpca(X, "linear", 2, method="features"),
        "taylor": fk.kpca(X, "gaussian", 2, sigma=8.0, features="monomial", tol=1e-3),
        "pivots": fk.kpca(X, "gaussian", 2, sigma=3.0, features="pivots", tol=1e-2),
        "fourier": fk.kpca(X, "gaussian", 2, sigma=1.5, features="fourier", tol=1e-2),
        "sum": fk.kpca(X, fk.get_kernel("linear") + 0.5 * fk.get_kernel("polynomial", degree=2), 2, method="features"),
        "product": fk.kpca(X, fk.get_kernel("linear") * fk.get_kernel("polynomial", degree=2), 2, method="features"),
    }
    return {name: (model, X @ X.T if name == "precomputed" else X) for name, model in made.items()}


def place(header, path):
    for key in path[:-1]:
        header = header[key]
    return header


EMPTY = {"map": "taylor", "d": 3, "sigma": 1.0, "order": 0}


def bomb(header, word, other):
    """A map of thousands of features among parts that would keep its size from being known."""
    d = header["map"]["parts"][0]["d"]
    huge = {"map": "polynomial", "d": d, "degree": 64, "scale": 1.0, "offset": 1.0}
    header["map"] = {"map": word, "parts": [huge, other]} | ({"bounds": [1.0, 1.0]} if word == "tensor" else {})


WRONG = {
    # what is wrong -> (model, change, what the error says)
    "no kernel": ("rows", lambda h, a: h.pop("kernel"), "kernel is missing"),
    "surplus key": ("rows", lambda h, a: h.update(more=1), "no place for 'more'"),
    "surplus array": ("rows", lambda h, a: a.update(more=np.zeros(2)), "no place for an array 'more'"),
    "sigma missing": ("rows", lambda h, a: h["kernel"]["parameters"].clear(), "takes the parameters sigma"),
    "sigma negative": ("rows", lambda h, a: h["kernel"]["parameters"].update(sigma=-1.0), "positive"),
    "sigma unresolved": ("rows", lambda h, a: h["kernel"]["parameters"].update(sigma=None), "cannot be restored"),
    "sigma a list": ("rows", lambda h, a: h["kernel"]["parameters"].update(sigma=[1.0]), "give a number"),
    "unknown kernel": ("rows", lambda h, a: h["kernel"].update(name="gausian"), "not known here.*did you mean"),
    "unknown distribution": (
        "rows",
        lambda h, a: h["kernel"].update(name="acme-kernels:gausian", version="1.5"),
        "install acme-kernels 1.5",
    ),
    "kernel a list": ("rows", lambda h, a: h.update(kernel=[]), "an object belongs there"),
    "a sum of one": ("rows", lambda h, a: h.update(kernel={"sum": [h["kernel"]]}), "at least two parts"),
    "factor zero": ("rows", lambda h, a: h.update(kernel={"factor": 0, "kernel": h["kernel"]}), "out of its range"),
    "deep kernel": ("rows", lambda h, a: h.update(kernel=deep(40, h["kernel"])), "at least two parts"),
    "eigenvalue nan": ("rows", lambda h, a: a["eigenvalues"].__setitem__(0, np.nan), "NaN"),
    "eigenvalues ascending": ("rows", lambda h, a: a.update(eigenvalues=a["eigenvalues"][::-1]), "descending"),
    "eigenvalue zero": ("rows", lambda h, a: a["eigenvalues"].__setitem__(1, 0.0), "not positive"),
    "no eigenvalues": ("rows", lambda h, a: a.update(eigenvalues=np.zeros(0)), "0 eigenvalues"),
    "ends swapped": ("rows", lambda h, a: a.update(eigenvalue_bounds=a["eigenvalue_bounds"][:, ::-1]), "wrong order"),
    "outside": ("rows", lambda h, a: a["eigenvalue_bounds"].__iadd__(100.0), "outside its interval"),
    "bounds of three": ("rows", lambda h, a: a.update(eigenvalue_bounds=np.zeros((3, 2))), "has shape"),
    "angle": ("rows", lambda h, a: a["angle_bounds"].__setitem__(0, 3.0), "right angle"),
    "clusters of floats": ("rows", lambda h, a: a.update(clusters=np.zeros(2)), "of type float64"),
    "clusters": ("rows", lambda h, a: a["clusters"].__setitem__(1, 1000), "numbered one after the other"),
    "bound kind": ("rows", lambda h, a: h.update(bound_kind="sure"), "one of guaranteed, probabilistic"),
    "total": ("rows", lambda h, a: h.update(total_variance=2 * h["total_variance"]), "wrong order"),
    "n_samples": ("rows", lambda h, a: h.update(n_samples=61), "the array X has shape"),
    "n_samples huge": ("rows", lambda h, a: h.update(n_samples=2**60), "has shape"),
    "n_samples a float": ("rows", lambda h, a: h.update(n_samples=60.0), "a whole number"),
    "n_features": ("rows", lambda h, a: h.update(n_features=3), "array X has shape"),
    "dtype": ("rows", lambda h, a: h.update(dtype="O"), "one of float32, float64"),
    "column means": ("rows", lambda h, a: a["column_means"].__setitem__(3, np.inf), "NaN or infinity"),
    "coefficients": ("rows", lambda h, a: a["coeff"].__imul__(1.1), "too large for its eigenvalues"),
    "rows of complex": ("rows", lambda h, a: a.update(X=a["X"] + 0j), "of type complex128"),
    "scores": ("rows", lambda h, a: a.update(score=np.zeros((59, 2))), "score has shape"),
    "info": ("rows", lambda h, a: h["info"].update(seconds="x"), "seconds is 'x'"),
    "info nested": ("rows", lambda h, a: h["info"].update(more=["x"]), "more is neither"),
    "plan": ("rows", lambda h, a: h.update(plan=None), "the plan is None"),
    "plan without choice": ("rows", lambda h, a: h["plan"].update(candidates=[]), "not among the candidates"),
    "candidate": ("rows", lambda h, a: h["plan"]["candidates"][0].update(seconds="x"), "seconds is 'x'"),
    "weights doubled": ("weights", lambda h, a: a["sample_weight"].__imul__(2.0), "weights"),
    "weights missing": ("weights", lambda h, a: a.pop("sample_weight"), "sample_weight is missing"),
    "weights of a model without": ("rows", lambda h, a: a.update(sample_weight=np.full(60, 2.0)), "weights"),
    "sure, with a probability": ("rows", lambda h, a: h.update(failure_probability=1e-6), "failure"),
    "probable for certain": ("rows", lambda h, a: h.update(bound_kind="probabilistic"), "failure"),
    "probability 1.5": ("rows", lambda h, a: h.update(bound_kind="probabilistic", failure_probability=1.5), "failure"),
    "no probability": ("rows", lambda h, a: h.update(failure_probability=None), "failure"),
    "names too few": ("rows", lambda h, a: h.update(feature_names=["a"]), "names"),
    "a name of a number": ("rows", lambda h, a: h.update(feature_names=["a", 3]), "names"),
    "names a string": ("rows", lambda h, a: h.update(feature_names="ab"), "names"),
    "a name a list": ("rows", lambda h, a: h.update(feature_names=[["a"], "b"]), "names"),
    "confidence": ("limits", lambda h, a: h["limits"].update(confidence=1.5), "the limits"),
    "limit a word": ("limits", lambda h, a: h["limits"].update(t2="a"), "the limits"),
    "joint a number": ("limits", lambda h, a: h["limits"].update(joint=1), "the limits"),
    "calibration": ("limits", lambda h, a: h["limits"].update(n_calibration=7), "the limits"),
    "method of limits": ("limits", lambda h, a: h["limits"].update(t2_method="x"), "the limits"),
    "row numbers": ("precomputed", lambda h, a: a["X"].__setitem__(2, 7.0), "not their numbers"),
    "degree huge": ("polynomial", lambda h, a: h["map"].update(degree=2**40), "degree is"),
    "d huge": ("polynomial", lambda h, a: h["map"].update(d=2**30), "rows of 1073741824 columns"),
    "features huge": ("polynomial", lambda h, a: h["map"].update(degree=64), "it has 2145 features, the model 6"),
    "another offset": ("polynomial", lambda h, a: h["map"].update(offset=2.0), "not one of Polynomial"),
    "offset negative": ("polynomial", lambda h, a: h["map"].update(offset=-1.0), "out of its range"),
    "another kernel": ("polynomial", lambda h, a: h["kernel"]["parameters"].update(degree=3), "not one of"),
    "another map": ("linear", lambda h, a: h["map"].update(map="taylor"), "map is 'taylor'; one of polynomial"),
    "no map": ("linear", lambda h, a: h["map"].clear(), "is missing"),
    "an unknown map": ("linear", lambda h, a: h["map"].update(map="x"), "map is 'x'"),
    "axes": ("linear", lambda h, a: a["axes"].__imul__(2.0), "not orthonormal"),
    "mean": ("linear", lambda h, a: a.update(mean=np.zeros(3)), "mean has shape"),
    "another sigma": ("taylor", lambda h, a: h["map"].update(sigma=7.0), "not one of Gaussian"),
    "order huge": ("taylor", lambda h, a: h["map"].update(order=1900), "the model"),
    "order beyond": ("taylor", lambda h, a: h["map"].update(order=10**9), "order is"),
    "centre": ("taylor", lambda h, a: a["map.center"].__setitem__(0, np.nan), "NaN"),
    "pivots moved": ("pivots", lambda h, a: a["map.pivots"].__setitem__(0, 9.0), "factor"),
    "factor": ("pivots", lambda h, a: a["map.factor"].__setitem__((0, 0), 0.0), "singular"),
    "factor above": ("pivots", lambda h, a: a["map.factor"].__setitem__((0, 1), 1.0), "triangular"),
    "sigma of pivots": ("pivots", lambda h, a: h["kernel"]["parameters"].update(sigma=2.5), "not that of"),
    "margin": ("pivots", lambda h, a: h["map"].update(margin=0.0), "singular"),
    "weights negative": ("fourier", lambda h, a: a["map.weights0"].__setitem__(0, -1.0), "below 0"),
    "weights of none": ("fourier", lambda h, a: a.update({"map.weights1": np.zeros(0)}), "features, the model"),
    "weights of another": ("fourier", lambda h, a: a["map.weights0"].__imul__(2.0), "not one of Gaussian"),
    "box": ("fourier", lambda h, a: a.update({"map.box": a["map.box"][::-1]}), "negative length"),
    "margin nan": ("fourier", lambda h, a: a["map.margin"].__setitem__(0, np.nan), "NaN"),
    "eps": ("fourier", lambda h, a: h["map"].update(eps=0.0), "out of its range"),
    "parts": ("sum", lambda h, a: h["map"]["parts"].pop(), "the model 8"),
    "parts swapped": ("sum", lambda h, a: h["map"]["parts"].reverse(), "map"),
    "array of no part": ("sum", lambda h, a: a.update({"map.9.x": np.zeros(1)}), "of none of them"),
    "bounds": ("product", lambda h, a: h["map"].update(bounds=[1.0]), "a list of 2"),
    "part huge beside unknown": ("sum", lambda h, a: bomb(h, "sum", {"map": "x"}), "features, the model 8"),
    "part huge, one empty": ("product", lambda h, a: bomb(h, "tensor", EMPTY), "part 0 of the feature map: it has"),
    "bounds nan": ("product", lambda h, a: h["map"].update(bounds=[1.0, math.nan]), "finite number"),
}  # fmt: skip


def deep(levels, kernel):
    for _ in range(levels):
        kernel = {"sum": [kernel]}
    return kernel


@pytest.mark.parametrize("what", WRONG)
def test_what_a_signed_file_says_is_checked(models, tmp_path, what):
    """Before anything large is made of it."""
    name, change, says = WRONG[what]
    fk.save(models[name][0], tmp_path / "m", scores=False)
    rewritten(tmp_path / "m", change)

    def load():
        with pytest.raises(ModelFileError, match=says) as caught:
            fk.load(tmp_path / "m")
        assert str(tmp_path / "m") in str(caught.value) and len(str(caught.value)) < 1000

    assert traced(load) < 20 << 20


def test_untouched_models_come_back(models, tmp_path):
    for name, (model, X) in models.items():
        fk.save(model, tmp_path / "m", scores=True, overwrite=True)
        rewritten(tmp_path / "m", lambda header, arrays: None)
        again = fk.load(tmp_path / "m")
        np.testing.assert_array_equal(fk.kpca_project(again, X), fk.kpca_project(model, X), err_msg=name)
        assert repr(again) == repr(model) and str(again.plan) == str(model.plan)
        np.testing.assert_array_equal(again.score, model.score)
        if name in ("rows", "weights", "limits", "fourier"):
            for copy in (again, pickle.loads(pickle.dumps(model))):
                assert copy.count == model.count and copy.limits == model.limits
                for of in (fk.kpca_t2, partial(fk.kpca_spe, bounds=True), fk.kpca_denoise):
                    np.testing.assert_equal(of(copy, X), of(model, X))


# Kernels of other distributions ------------------------------------------------------------------------------------


@pytest.fixture
def plugin(tmp_path, plugins):
    """A distribution acme-kernels 1.0 with the kernel "product" in the module acme_files, and a model file of it."""
    plugins("acme-kernels", {"product": "acme_files:Product"}, {"acme_files": SCALED})
    X = np.random.default_rng(0).standard_normal((30, 3))
    fk.save(fk.kpca(X, "product", 2, scale=2.0), tmp_path / "m")
    fk.save(fk.kpca(X, fk.get_kernel("product") + fk.get_kernel("linear"), 2), tmp_path / "sum")
    return tmp_path


def test_no_plugin_is_imported_unless_allowed(plugin):
    assert files.read(plugin / "m")[0]["kernel"] == {
        "name": "acme-kernels:product",
        "parameters": {"scale": 2.0},
        "version": "1.0",
    }
    for name in ("m", "sum"):
        for allowed in (False, [], ["other"], "other:product", ["acme-kernels:other"]):
            sys.modules.pop("acme_files", None)
            with pytest.raises(ModelFileError, match=r"'product' of the distribution acme-kernels 1.0 .*allows") as e:
                fk.load(plugin / name, plugins=allowed)
            assert "plugins=['acme-kernels:product']" in str(e.value)
            assert "acme_files" not in sys.modules
        for allowed in (True, "acme_kernels", ["ACME-Kernels:product"], {"acme-kernels"}):
            model = fk.load(plugin / name, plugins=allowed)
            assert np.isfinite(fk.kpca_project(model, np.ones((1, 3)))).all()
    with pytest.raises(TypeError, match="plugins is 1"):
        fk.load(plugin / "m", plugins=1)


@pytest.mark.parametrize(
    ("said", "allowed", "match"),
    [
        ({"name": "product"}, False, "allows"),  # a bare name needs permission too
        ({"version": "0.9"}, False, r"acme-kernels 1.0 \(written with acme-kernels 0.9"),
        ({"parameters": {"scal": 1.0}}, True, "no parameter 'scal'"),
    ],
)
def test_what_a_file_says_of_a_plugin(plugin, said, allowed, match):
    rewritten(plugin / "m", lambda h, a: h["kernel"].update(said))
    sys.modules.pop("acme_files", None)
    with pytest.raises(ModelFileError, match=match):
        fk.load(plugin / "m", plugins=allowed)
    assert ("acme_files" in sys.modules) == allowed
    if "name" in said:
        fk.load(plugin / "m", plugins=["acme-kernels"])
    elif "version" in said:
        with pytest.warns(PluginWarning, match=r"written with acme-kernels 0.9, and 1.0 is installed"):
            fk.load(plugin / "m", plugins=True)


def test_a_plugin_that_is_gone_is_named(plugin):
    shutil.rmtree(plugin / "acme_kernels-1.0.dist-info")
    registry.KERNELS.scanned.clear()
    with pytest.raises(ModelFileError, match="'acme-kernels:product' is not known here; install acme-kernels 1.0"):
        fk.load(plugin / "m", plugins=True)


def test_a_broken_plugin_is_not_the_file(plugin):
    (plugin / "acme_files.py").write_text("raise OSError('broken')")
    sys.modules.pop("acme_files", None)
    with pytest.raises(PluginError, match="cannot be imported"):
        fk.load(plugin / "m", plugins=True)


def test_kernels_of_this_session_need_no_permission(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 3))
    with fk.register_kernel("mine", lambda A, B: A @ B.T):
        fk.save(fk.kpca(X, "mine", 2), tmp_path / "m")
        fk.load(tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"'mine' is not known here; register it first"):
        fk.load(tmp_path / "m")


def test_fuzz():
    """A small run of tests/attacks/fuzz_model_files.py, which says how it is run in full."""
    script = ROOT / "tests" / "attacks" / "fuzz_model_files.py"
    run = subprocess.run([sys.executable, script, "--mutants", "1000"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_file_descriptor_is_no_path(small):
    with open(small, "rb") as file, pytest.raises(TypeError, match="give the name of a file"):
        files.read(file.fileno())
