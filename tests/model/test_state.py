"""fastkpca.state: what other methods write comes back as it was, or the error says what is wrong."""

import math

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.base import files
from fastkpca.errors import ModelFileError
from fastkpca.kernels import Gaussian, Kernel
from fastkpca.state import load_state, save_state

X = np.random.default_rng(0).standard_normal((60, 2))
NEW = np.random.default_rng(1).standard_normal((7, 2))
KERNELS = {
    "gaussian": Gaussian(sigma=1.0),
    "polynomial": fk.get_kernel("polynomial", degree=3),
    "sum": Gaussian(sigma=1.0) + 0.5 * fk.get_kernel("linear"),
    "product": Gaussian(sigma=3.0) * fk.get_kernel("polynomial"),
    "laplacian": fk.get_kernel("laplacian", length_scale=2.0),
}


def test_plain_values_and_arrays_come_back(tmp_path):
    values = {
        "none": None,
        "whole": 7,
        "float": 0.1,
        "nan": math.nan,
        "text": "ä",
        "truth": True,
        "list": [1, [2.5, "x"]],
        "info": {"method": "gram", "inner": {"w": np.arange(3.0), "deep": 1}},
        "empty": np.empty((0, 4)),
        "matrix": np.asfortranarray(X),
        "codes": np.arange(5, dtype=np.int8),
    }
    save_state(tmp_path / "s", "me:Model", values)
    kind, found = load_state(tmp_path / "s")
    assert kind == "me:Model" and list(found) == list(values)
    assert math.isnan(found.pop("nan"))
    np.testing.assert_array_equal(found["info"]["inner"].pop("w"), np.arange(3.0))
    assert found["info"] == {"method": "gram", "inner": {"deep": 1}}
    for name in ("empty", "matrix", "codes"):
        np.testing.assert_array_equal(found[name], values[name])
        assert found[name].dtype == values[name].dtype and found[name].shape == values[name].shape
    for name in ("none", "whole", "float", "text", "truth", "list"):
        assert found[name] == values[name] and type(found[name]) is type(values[name])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kind", ["auto", "pivots"])
def test_kernels_maps_and_models_come_back(name, kind, tmp_path):
    operator = fk.features(X, KERNELS[name], tol=1e-3, features=kind)
    model = fk.kpca(X, operator.kernel, 3)
    one = {"map": operator.map, "shift": operator.shift}
    values = {"kernel": operator.kernel, **one, "parts": {"model": model, **one}}
    save_state(tmp_path / "s", "k", values)
    if name == "laplacian":
        with pytest.raises(ModelFileError, match="plugins"):
            load_state(tmp_path / "s")
    found = load_state(tmp_path / "s", plugins=["fastkpca-kernels-contrib"])[1]
    assert list(found) == list(values) and list(found["parts"]) == list(values["parts"])
    assert found["kernel"] == KERNELS[name]
    tile = np.ascontiguousarray(NEW - operator.shift)
    for again in (found["map"], found["parts"]["map"]):
        np.testing.assert_array_equal(again.features(tile), operator.map.features(tile))
        np.testing.assert_array_equal(again.residual(tile), operator.map.residual(tile))
    again = found["parts"]["model"]
    np.testing.assert_array_equal(fk.kpca_project(again, NEW), fk.kpca_project(model, NEW))


def test_a_map_needs_its_kernel_and_its_shift(tmp_path):
    operator = fk.features(X, "gaussian", sigma=1.0)
    one = {"map": operator.map, "shift": operator.shift}
    for values in (
        one,
        {"kernel": "gaussian", **one},
        {"kernel": operator.kernel, "map": operator.map},
        {"kernel": operator.kernel, "shift": operator.shift, "inside": {"map": operator.map}},
    ):
        with pytest.raises(ValueError, match="map is a feature map; add its kernel as 'kernel' in values, and its"):
            save_state(tmp_path / "s", "k", values)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("kind", ["auto", "pivots"])
def test_a_small_file_makes_no_large_map(kind, tmp_path):
    operator = fk.features(X, "polynomial", degree=2, offset=1.0, features=kind)
    save_state(
        tmp_path / "s", "k", {"kernel": operator.kernel, "map": operator.map, "shift": operator.shift, "w": np.ones(2)}
    )
    header, arrays = files.read(tmp_path / "s")

    def altered(name, array=None, **changes):
        described = header["values"] | {
            "map": header["values"]["map"] | {"map": header["values"]["map"]["map"] | changes}
        }
        files.write(tmp_path / name, {"kind": "k", "values": described}, arrays | (array or {}))
        with pytest.raises(ModelFileError, match="map"):
            load_state(tmp_path / name)

    altered("length", {"map.length": np.zeros(operator.shape[1] + 1, dtype=np.int8)})
    altered("floats", {"map.length": np.zeros(operator.shape[1])})
    altered("shift", {"shift": np.zeros(3)})
    altered("flat", {"shift": np.zeros((2, 1))})
    altered("other", map="nothing")
    if kind == "auto":
        altered("degree", degree=60)
        altered("columns", d=100000)


def test_what_cannot_be_written(tmp_path):
    class Own(Kernel):
        positive_semidefinite = True

    for values, error, text in (
        ({"x": object()}, TypeError, "'x'"),
        ({"x": np.array([None])}, TypeError, "object"),
        ({"kernel": Own()}, ValueError, "register_kernel"),
        ({"a": {"b": np.ones(2)}, "a.b": np.ones(3)}, ValueError, "two arrays would be called 'a.b'"),
    ):
        with pytest.raises(error, match=text):
            save_state(tmp_path / "s", "k", values)
    with pytest.raises(TypeError, match="kind is 3"):
        save_state(tmp_path / "s", 3, {})
    assert not list(tmp_path.iterdir())
    save_state(tmp_path / "s", "k", {"x": 1})
    with pytest.raises(FileExistsError):
        save_state(tmp_path / "s", "k", {"x": 2})
    save_state(tmp_path / "s", "k", {"x": 2}, overwrite=True)
    assert load_state(tmp_path / "s") == ("k", {"x": 2})


def test_files_of_another_kind_and_broken_ones(tmp_path):
    fk.save(fk.kpca(X, c=2), tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"fastkpca\.load reads models of kpca"):
        load_state(tmp_path / "model")
    save_state(tmp_path / "s", "k", {"x": np.ones(3)})
    with pytest.raises(ModelFileError):
        fk.load(tmp_path / "s")
    broken = bytearray((tmp_path / "s").read_bytes())
    broken[-40] ^= 1
    (tmp_path / "altered").write_bytes(broken)
    with pytest.raises(ModelFileError, match="altered"):
        load_state(tmp_path / "altered")
    for i, described in enumerate(
        (
            [],
            {"x": 3},
            {"x": "plain"},
            {"x": {}},
            {"x": {"array": "missing"}},
            {"x": {"array": []}},
            {"x": {"values": []}},
            {"x": {"map": {}, "arrays": []}},
            {"x": {"model": {}, "arrays": []}},
            {"kernel": []},
            {"kernel": {"kernel": {}}},
            {"kernel": {"kernel": []}},
        )
    ):
        files.write(tmp_path / f"broken{i}", {"kind": "k", "values": described}, {})
        with pytest.raises(ModelFileError):
            load_state(tmp_path / f"broken{i}")
    unknown = {"kernel": {"kernel": {"name": "nowhere:such", "parameters": {}}}}
    files.write(tmp_path / "unknown", {"kind": "k", "values": unknown}, {})
    with pytest.raises(ModelFileError, match="nowhere:such"):
        load_state(tmp_path / "unknown", plugins=True)
