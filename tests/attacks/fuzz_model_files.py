"""Attack on the model file: truncated, altered and re-signed files of every kind of model.

    python tests/attacks/fuzz_model_files.py [--mutants 120000] [--seed 0] [--only NAME]

Each mutant without a new checksum must be refused. Each one with a new checksum (so that only what the file says can be
wrong) must be refused, or give a model that is finite and projects rows; never another exception, a plugin that was
imported, memory far beyond the size of the file, or a load that takes long. Exits with 1 if one does otherwise.

"out of range": loaded, and says by a ValueError that the kernel's values overflow on the rows it is then given.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import resource
import struct
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import command

import fastkpca as fk
from fastkpca.errors import ModelFileError
from fastkpca.kernels import kernel_state

PREFIX = struct.Struct("<8sIIQ")
ALIGN = 64
CONTRIB = "fastkpca-kernels-contrib"
MOST_MEMORY = 24 << 20
"""Bytes beyond the size of the file that a load may take: a block that is hashed, a map's tables, one projected row."""
MOST_SECONDS = 20.0
ROOM = 512 << 20
"""Bytes of address space beside what is taken when the attack begins: an allocation out of proportion fails, and shows.
Every eighth load is traced more closely, which takes several times as long."""

HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 64, 65, 2**31 - 1, 2**31, 2**53, 2**62, 2**63, 2**64, -(2**63), 10**30, 10**400,
    0.0, -0.0, 0.5, 1.5, -1.5, 1e-300, 5e-324, 1e300, 1.7e308, -1e300, math.nan, math.inf, -math.inf,
    "", "x", "dense", "gaussian", "linear", "pivots",
    "precomputed", "polynomial", "taylor", "fourier", "sum", "tensor", "scaled", "float64", "float32", "O",
    "matern", "fastkpca:gaussian", CONTRIB + ":matern", "os:system", "../../x", "\u0000", "x" * 100_000,
    [], [[]], [1.0], [1, 2],
    {"map": "polynomial", "d": 3, "degree": 64, "scale": 1.0, "offset": 1.0},
    {"map": "taylor", "d": 3, "sigma": 8.0, "order": 400}, {"map": "taylor", "d": 3, "sigma": 8.0, "order": 0},
    {"map": "unknown", "n_features": 2**40},
    [0.0, 1.0], ["x"], {}, {"x": 1}, {"name": "gaussian", "parameters": {"sigma": 1.0}},
    {"factor": 2.0, "kernel": {"name": "linear", "parameters": {}}}, {"map": "pivots"}, {"sum": []},
]  # fmt: skip


# Files, taken apart and put together ------------------------------------------------------------------------------


def sign(whole: bytes) -> bytes:
    return whole + hashlib.sha256(whole).digest()


def take_apart(whole: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """(JSON content, arrays): an independent reader."""
    _, _, length, _ = PREFIX.unpack(whole[: PREFIX.size])
    content = json.loads(whole[PREFIX.size : PREFIX.size + length])
    end, arrays = PREFIX.size + length, {}
    for name, dtype, shape in content["arrays"]:
        end += -end % ALIGN
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(whole, dtype, count, end).reshape(shape)
        end += arrays[name].nbytes
    return content, arrays


def json_of(content: Any) -> bytes:
    """The one form that is read."""
    return json.dumps(content, separators=(",", ":")).encode()


def frame(text: bytes, body: bytes = b"", *, version: int = 1, header_length: int | None = None) -> bytes:
    """A file with a correct frame and checksum around any header and body: an independent writer."""
    text += b" " * (-(PREFIX.size + len(text)) % ALIGN)
    length = len(text) if header_length is None else header_length
    size = PREFIX.size + len(text) + len(body) + 32
    return sign(PREFIX.pack(b"FASTKPCA", version, length, size) + text + body)


def put_together(header: Any, arrays: dict[str, np.ndarray]) -> bytes:
    body, entries = b"", []
    for name, array in arrays.items():
        body += bytes(-len(body) % ALIGN)
        body += np.ascontiguousarray(array).tobytes()
        entries.append([name, array.dtype.str, list(array.shape)])
    return frame(json_of({"header": header, "arrays": entries}), body)


# Models ---------------------------------------------------------------------------------------------------------------


def models() -> dict[str, tuple[Any, np.ndarray]]:
    """Name -> (model, rows to project): each projector, feature map and kernel."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    X[:45] += 2.0
    wide, flat = np.ascontiguousarray(X[:, :2]), np.ascontiguousarray(X[:, :1])
    rough = fk.get_kernel("gaussian", sigma=1.0)
    K = rough.block(X, X)
    mixed = fk.get_kernel("linear") + 0.5 * fk.get_kernel("polynomial", degree=2)
    product = fk.get_kernel("polynomial", degree=2) * fk.get_kernel("linear")
    three = product * (rough + fk.get_kernel("linear"))
    plain: dict[str, tuple] = {
        "gaussian dense": (X, "gaussian", 3, {"sigma": 1.0, "method": "dense"}),
        "gaussian krylov": (X, "gaussian", 3, {"sigma": 1.0, "method": "krylov"}),
        "gaussian float32": (X.astype(np.float32), "gaussian", 3, {"sigma": 1.0, "method": "dense", "tol": 1e-3}),
        "taylor": (X, "gaussian", 3, {"sigma": 8.0, "features": "monomial", "tol": 1e-3}),
        "pivots": (X, "gaussian", 3, {"sigma": 3.0, "features": "pivots", "tol": 1e-2}),
        "fourier 1": (flat, "gaussian", 3, {"sigma": 0.5, "features": "fourier", "tol": 1e-3}),
        "fourier 2": (wide, "gaussian", 3, {"sigma": 1.5, "features": "fourier", "tol": 1e-2}),
        "linear": (X, "linear", 2, {"method": "features"}),
        "polynomial": (X, "polynomial", 3, {"degree": 3, "method": "features"}),
        "polynomial dense": (X, "polynomial", 3, {"degree": 3, "method": "dense"}),
        "tanh": (X, "tanh", 2, {"scale": 0.1, "offset": 0.2, "method": "dense"}),
        "precomputed": (K, "precomputed", 3, {"method": "dense"}),
        "sum map": (X, mixed, 3, {"method": "features"}),
        "scaled map": (X, 2.0 * fk.get_kernel("polynomial", degree=2), 3, {"method": "features"}),
        "tensor map": (X, product, 3, {"method": "features"}),
        "combined dense": (X, three, 3, {"method": "dense"}),
        "pivots of a sum": (X, rough + 0.5 * rough, 3, {"features": "pivots", "tol": 1e-1}),
    }
    for entry in fk.list_kernels():
        if entry.distribution == CONTRIB:
            plain[f"contrib {entry.name}"] = (X, entry.qualified, 2, {"method": "dense"})
    plain["contrib cosine map"] = (X, f"{CONTRIB}:cosine", 2, {"method": "features"})
    plain["contrib in a sum"] = (X, fk.get_kernel(f"{CONTRIB}:cosine") + fk.get_kernel("linear"), 2, {})
    plain["contrib pivots"] = (X, f"{CONTRIB}:matern", 2, {"features": "pivots", "tol": 1e-1})
    found = {}
    for name, (rows, kernel, c, options) in plain.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = fk.kpca(rows, kernel, c, **options)
            except (ValueError, TypeError) as error:  # a kernel for other rows: histograms and the like
                try:
                    model = fk.kpca(np.abs(rows), kernel, c, **options)
                except (ValueError, TypeError):
                    print(f"left out: {name}: {error}")
                    continue
        found[name] = model, np.abs(rows[:5]) if name.startswith("contrib") else rows[:5]
    return found


# Mutants --------------------------------------------------------------------------------------------------------------


def raw_mutant(whole: bytes, rng: np.random.Generator) -> bytes:
    """Truncated, flipped, spliced, grown: the checksum stays as it was."""
    data = bytearray(whole)
    match int(rng.integers(7)):
        case 0:  # each class of length: prefix, header, arrays, checksum, and powers of two
            ends = [int(rng.integers(25)), int(rng.integers(len(data))), len(data) - int(rng.integers(1, 40))]
            ends.append(min(len(data) - 1, 1 << int(rng.integers(20))))
            del data[ends[int(rng.integers(len(ends)))] :]
        case 1 | 2:
            for _ in range(int(rng.integers(1, 5))):
                data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        case 3:
            at, other, n = (int(x) for x in rng.integers(0, len(data), 3))
            data[at : at + n % 256] = data[other : other + n % 256]
        case 4:
            at = int(rng.integers(len(data)))
            data[at:at] = rng.bytes(int(rng.integers(1, 100)))
        case 5:
            at = int(rng.integers(len(data)))
            del data[at : at + int(rng.integers(1, 100))]
        case 6:
            at = int(rng.integers(24))
            data[at : at + 4] = struct.pack("<I", int(rng.integers(1 << 32)))
    return bytes(data)


def places(value: Any, path: tuple = ()) -> list[tuple]:
    found = [path] if path else []
    if len(path) > 60:
        return found
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, list):
        for i in range(len(value)):
            found += places(value[i], (*path, i))
    return found


def json_mutant(content: dict, rng: np.random.Generator) -> dict:
    content = copy.deepcopy(content)
    for _ in range(1 if rng.random() < 0.7 else 2):
        known = places(content)
        if not known:
            break
        path = known[int(rng.integers(len(known)))]
        holder = content
        for key in path[:-1]:
            holder = holder[key]
        value = copy.deepcopy(HOSTILE[int(rng.integers(len(HOSTILE)))])
        match int(rng.integers(10)):
            case 0 if isinstance(holder, dict):
                del holder[path[-1]]
            case 1 if isinstance(holder, dict):
                holder["more"] = value
            case 2 if isinstance(holder, list):
                holder.append(holder[path[-1]])
            case 3:
                for _ in range(int(rng.choice([5, 50, 90, 101, 200, 300]))):
                    value = [value] if rng.random() < 0.5 else {"sum": [value, value][: int(rng.integers(1, 2))]}
                holder[path[-1]] = value
            case 4 if isinstance(holder[path[-1]], (int, float)) and not isinstance(holder[path[-1]], bool):
                times = [2, -1, 10, 1.0000001, 0.5][int(rng.integers(5))]
                with suppress(OverflowError):  # of a whole number of hundreds of digits, put there before
                    holder[path[-1]] = holder[path[-1]] * times
            case _:
                holder[path[-1]] = value
    return content


def bombed(header: dict, arrays: dict, rng: np.random.Generator) -> tuple[dict, dict]:
    """The model's kernel and map in a sum or a product with others, whose maps are large, empty or of unknown size: a
    small file that describes a large map. The kernels agree with the maps, so that nothing else is wrong with it."""
    header, own, d = copy.deepcopy(header), header.get("map"), len(arrays.get("shift", [0.0]))
    taylor = kernel_state(fk.get_kernel("gaussian", sigma=8.0))
    degree, order = int(rng.integers(2, 65)), int(rng.integers(2, 400))
    polynomial = kernel_state(fk.get_kernel("polynomial", degree=degree, scale=1.0, offset=1.0))
    known = [
        (polynomial, {"map": "polynomial", "d": d, "degree": degree, "scale": 1.0, "offset": 1.0}),
        (taylor, {"map": "taylor", "d": d, "sigma": 8.0, "order": order}),
        (taylor, {"map": "taylor", "d": d, "sigma": 8.0, "order": 0}),
        (polynomial, {"map": "unknown", "n_features": 2**40}),
    ]
    parts = [(header["kernel"], own)] if isinstance(own, dict) and rng.random() < 0.7 else []
    parts += [copy.deepcopy(known[int(i)]) for i in rng.integers(0, len(known), 2 - len(parts))]
    places_ = rng.permutation(2)
    kernels, maps = zip(*(parts[int(i)] for i in places_))
    place = str(int(np.argmin(places_)))
    word, tensor = ("product", {"bounds": [1.0, 1.0]}) if rng.random() < 0.5 else ("sum", {})
    header["kernel"] = {word: list(kernels)}
    header["map"] = {"map": "tensor" if tensor else "sum", "parts": list(maps)} | tensor
    renamed = {f"map.{place}.{name[4:]}" if name.startswith("map.") else name: x for name, x in arrays.items()}
    if rng.random() < 0.3:
        header["kernel"] = {"factor": 2.0, "kernel": header["kernel"]}
        header["map"] = {"map": "scaled", "factor": 2.0, "parts": [header["map"]]}
        renamed = {f"map.0.{name[4:]}" if name.startswith("map.") else name: x for name, x in renamed.items()}
    return header, renamed


def array_mutant(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    arrays = dict(arrays)
    names = list(arrays)
    name = names[int(rng.integers(len(names)))]
    array = np.array(arrays[name])
    match int(rng.integers(10)):
        case 0:
            arrays[name] = array.astype(["<f4", "<i8", "<c16", "?", "<f2", "<u1"][int(rng.integers(6))])
        case 1:
            arrays[name] = array.reshape(-1)
        case 2:
            arrays[name] = array[: len(array) - 1] if array.ndim else array
        case 3:
            arrays[name] = np.concatenate([array, array]) if array.ndim else array
        case 4:
            other = names[int(rng.integers(len(names)))]
            arrays[name], arrays[other] = arrays[other], array
        case 5:
            arrays[name] = np.zeros((0, *array.shape[1:])) if array.ndim else array
        case 6:
            del arrays[name]
        case 7:
            arrays[name] = array.T
        case _:
            if array.size and array.dtype.kind in "fi":
                flat = array.reshape(-1)
                worst = [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, -1.0, 1e-320, 1e30]
                if array.dtype.kind == "i":
                    worst = [-1, 2**31 - 1, 0, 7, 1000]
                for _ in range(int(rng.choice([1, 1, 3, array.size]))):
                    with np.errstate(all="ignore"):
                        flat[int(rng.integers(array.size))] = worst[int(rng.integers(len(worst)))]
                arrays[name] = array
    return arrays


def signed_mutant(content: dict, arrays: dict, whole: bytes, others: list, rng: np.random.Generator) -> bytes:
    length = PREFIX.unpack(whole[: PREFIX.size])[2]
    body = whole[PREFIX.size + length : -32]
    match int(rng.integers(12)):
        case 10 | 11 if "map" in content["header"]:
            return put_together(*bombed(content["header"], arrays, rng))
        case 0:  # the text itself: two of a key, literals that are no JSON, words out of place
            text = bytearray(whole[PREFIX.size : PREFIX.size + length].rstrip())
            words = b'0 -1 9 1e9 1e999 [ ] { } " , : null true NaN Infinity "name":1, "header":{},'.split()
            for _ in range(int(rng.integers(1, 4))):
                at = int(rng.integers(len(text)))
                text[at : at + int(rng.integers(0, 4))] = words[int(rng.integers(len(words)))]
            return frame(bytes(text), body)
        case 1:  # bytes of the arrays
            data = bytearray(body)
            for _ in range(int(rng.integers(1, 9))):
                data[int(rng.integers(len(data)))] = int(rng.integers(256))
            return frame(whole[PREFIX.size : PREFIX.size + length], bytes(data))
        case 2:  # header of one model, arrays of another
            other_content, other_arrays = others[int(rng.integers(len(others)))]
            if rng.random() < 0.5:
                return put_together(content["header"], other_arrays)
            mixed = dict(content["header"])
            key = list(mixed)[int(rng.integers(len(mixed)))]
            mixed[key] = other_content["header"].get(key, mixed[key])
            return put_together(mixed, arrays)
        case 3 | 4 | 5:
            return put_together(content["header"], array_mutant(arrays, rng))
        case 6:  # the whole tree with the table of arrays
            mutant = json_mutant(content, rng)
            return frame(json_of(mutant), body)
        case _:
            return put_together(json_mutant({"header": content["header"]}, rng).get("header"), arrays)


# Verdicts -------------------------------------------------------------------------------------------------------------


def well_formed(model: Any, rows: np.ndarray) -> str:
    for array in (model.eigenvalues, model.angle_bounds, model.latent, model.shift):
        assert np.isfinite(array).all()
    assert not np.isnan(model.eigenvalue_bounds).any()
    assert (model.eigenvalue_bounds[:, 0] <= model.eigenvalue_bounds[:, 1]).all()
    repr(model), str(model.plan), model.explained
    try:
        scores = fk.kpca_project(model, rows, n_threads=1)
    except ValueError as error:
        text = str(error)
        if "overflow" in text or "finite" in text:
            return "out of range"
        if "columns" in text or "precomputed matrix" in text:  # another number of columns, told
            return "loaded"
        raise
    assert np.isfinite(scores).all(), "scores are not finite"
    return "loaded"


def all_types(kernel: Any) -> list:
    parts = [*getattr(kernel, "parts", ()), *([kernel.kernel] if hasattr(kernel, "factor") else [])]
    return [type(kernel), *(all_types(part) for part in parts)]


def judge(path: Path, data: bytes, rows: np.ndarray, allowed: Any, unsigned: bool, traced: bool) -> str:
    path.write_bytes(data)
    if traced:
        tracemalloc.start()
    modules = set(sys.modules)
    started = time.process_time()
    try:
        model = fk.load(path, plugins=allowed)
    except ModelFileError:
        verdict = "refused"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:120]}"
    else:
        verdict = "loaded"
    finally:
        peak = tracemalloc.get_traced_memory()[1] if traced else 0
        tracemalloc.stop()
    imported = [x for x in set(sys.modules) - modules if x.split(".")[0] not in ("fastkpca", "numpy", "scipy")]
    if imported:
        return f"imported {imported}"
    if verdict == "loaded" and not allowed and "kernels_contrib" in str(all_types(model.kernel)):
        return "a plugin that was not allowed"
    if peak > len(data) * 3 + MOST_MEMORY:
        return f"memory: {peak} bytes for a file of {len(data)}"
    if time.process_time() - started > MOST_SECONDS:
        return "took too long"
    if verdict == "loaded":
        if unsigned:
            return "accepted although altered"
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return well_formed(model, rows)
        except BaseException as error:
            return f"after loading: {type(error).__name__}: {str(error)[:120]}"
    return verdict


def main() -> int:
    options = command.options(__doc__, mutants=120_000, seed=0, only="")
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(options.seed)
    total: Counter = Counter()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.kpca"
        made = {}
        for name, (model, rows) in models().items():
            fk.save(model, path, overwrite=True, scores=bool(len(made) % 2))
            made[name] = path.read_bytes(), rows
            again = fk.load(path, plugins=CONTRIB)
            assert "precomputed" in name or np.array_equal(fk.kpca_project(again, rows), fk.kpca_project(model, rows))
        apart = {name: take_apart(whole) for name, (whole, _) in made.items()}
        names = [name for name in made if options.only in name]
        each = -(-options.mutants // len(names))
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
        for name in names:
            (whole, rows), counts = made[name], Counter()
            for number in range(each):
                unsigned = number % 2 == 0
                data = (
                    raw_mutant(whole, rng) if unsigned else signed_mutant(*apart[name], whole, [*apart.values()], rng)
                )
                if data == whole:
                    continue
                allowed = CONTRIB if name.startswith("contrib") else False
                verdict = judge(path, data, rows, allowed, unsigned, number % 16 < 2)
                if verdict not in ("refused", "loaded", "out of range"):
                    failures += 1
                    print(f"    {name}: {verdict}")
                    verdict = "other"
                counts[verdict] += 1
            total += counts
            print(f"{name:<28}{len(whole):>8} bytes: {dict(counts)}", flush=True)
        print(f"all: {sum(total.values())} mutants, {dict(total)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
