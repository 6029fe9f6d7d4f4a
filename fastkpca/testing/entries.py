"""Checks of what a kernel declares, and of its values: tile by tile, and what it claims of them."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..base.differences import central_difference
from ..base.protocol import API_VERSION, Kernel
from ..base.rounding import EPS
from ..base.spelling import did_you_mean
from ..kernels import CallableKernel, ObjectKernel, contract
from .cases import (
    NOT_OFFERED,
    Case,
    Fault,
    agree,
    case_of,
    cases_of,
    hold,
    maps_of,
    named,
    need,
    of_author,
    on_cases,
    summarized,
)


@named
def check_declarations(kernel: Kernel, X: Any) -> None:
    """``api_version``, ``positive_semidefinite``, ``translation`` and so on are what the core can read."""
    cls = type(kernel)
    if cls.__module__.partition(".")[0] != "fastkpca":
        version = cls.__dict__.get("api_version")
        need(
            version == API_VERSION and type(version) is int,
            f"api_version is {version!r} in the class's own body; write `api_version = {API_VERSION}`",
        )
    for name in ("positive_semidefinite", "thread_safe", "takes_objects"):
        value = getattr(kernel, name)
        need(isinstance(value, (bool, np.bool_)), f"{name} is {value!r}; it must be True or False")
    need(
        kernel.translation in (None, "kernel", "centered"),
        f'translation is {kernel.translation!r}; it must be "kernel", "centered" or None',
    )
    declarations = [name for name, value in vars(Kernel).items() if not (name.startswith("_") or callable(value))]
    author = type(kernel.wrapped) if isinstance(kernel, ObjectKernel) else cls
    for base in author.__mro__:
        if base.__module__.partition(".")[0] == "fastkpca":
            break
        for name, value in vars(base).items():
            if name not in declarations and not callable(value):
                near = did_you_mean(name, declarations, limit=1, cutoff=0.85)
                need(not near, f"{base.__name__}.{name} is read by nobody; {near}")


@named
def check_parameters(kernel: Kernel, X: Any) -> str | None:
    """Unknown parameters and two spellings are refused, ``resolve`` fills in what is None, and settles."""
    cls: Any = type(kernel)
    if isinstance(kernel, (CallableKernel, ObjectKernel)):
        return NOT_OFFERED
    values = kernel.get_parameters()
    arguments = inspect.signature(cls).parameters.values()
    named = {p.name for p in arguments if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    hidden = sorted(named - set(values) - set(cls.aliases))
    need(
        not hidden,
        f"{cls.__name__} takes {', '.join(hidden)}, which the class attribute parameters does not list: kernels "
        "that differ in nothing else count as equal",
    )
    need(cls(**values) == kernel, f"{cls.__name__}(**get_parameters()) is {cls(**values)!r}")
    resolved: dict[str, Any] = {}
    for case in cases_of(kernel, X):
        resolved = of_author(case.kernel).get_parameters()
        need(set(resolved) == set(values), f"resolve changes the parameters: {sorted(resolved)}")
        missing = [name for name, value in resolved.items() if value is None]
        need(not missing, f"resolve leaves {', '.join(missing)} at None")
        for name, value in values.items():
            if isinstance(value, (bool, int, float, str)):  # a kernel, or several, have parameters of their own
                need(resolved[name] == value, f"resolve changes {name}, which was given")
        need(case.kernel.resolve(case.data) == case.kernel, "resolve of a resolved kernel changes it")
    given = {name: value for name, value in values.items() if value is not None}
    _refused(cls, given | {"no_such_parameter": 1}, "an unknown parameter is accepted")
    for other, (name, _) in cls.aliases.items():
        value = resolved[name]
        _refused(cls, {name: value, other: value}, f"{name!r} and {other!r} are accepted together")
    return None


def _refused(cls: Any, parameters: dict[str, Any], text: str) -> None:
    try:
        cls(**parameters)
    except TypeError:
        return
    raise Fault(f"{text}; TypeError is due")


@on_cases
def check_pickling(case: Case) -> None:
    """Pickles and copies are equal kernels with equal hash and values; repr shows the parameters."""
    kernel = case.kernel
    expected = kernel.block(case.X[:9], case.X[:5])
    for how, make in (
        ("pickle", lambda k: pickle.loads(pickle.dumps(k))),
        ("copy", copy.copy),
        ("deepcopy", copy.deepcopy),
    ):
        other = make(kernel)
        need(other == kernel and kernel == other, f"its {how} is not equal to it")
        need(hash(other) == hash(kernel), f"its {how} has another hash")
        need(repr(other) == repr(kernel), f"its {how} shows itself as {other!r}")
        np.testing.assert_array_equal(other.block(case.X[:9], case.X[:5]), expected, f"values of its {how}")
    for name, value in of_author(kernel).get_parameters().items():
        parts = value if isinstance(value, tuple) else (value,)
        shown = f"{name}=" in repr(kernel) or all(repr(part) in repr(kernel) for part in parts)
        need(shown, f"its repr {kernel!r} does not show {name}")
    need(kernel != object(), "it is equal to an object of another class")


# Values of a tile ---------------------------------------------------------------------------------------------------


@on_cases
def check_output(case: Case) -> None:
    """``block`` returns a new array of shape (n, m) on each call, which the caller may overwrite."""
    block, S = case.kernel.block, case.X
    for n, m in ((1, 1), (1, 7), (7, 1), (5, 9), (20, 20)):
        first, second = block(S[:n], S[:m]), block(S[:n], S[:m])
        need(isinstance(first, np.ndarray), f"block returns a {type(first).__name__}; an array is due")
        need(first.shape == (n, m), f"block returns shape {first.shape} for tiles of {n} and {m} rows")
        need(first.flags.writeable, "block returns a read-only array")
        need(not np.shares_memory(first, second), "block returns the same memory in two calls")
        need(not np.shares_memory(first, S), "block returns a view of its input")
        kept = second.copy()
        first[...] = np.pi
        again = block(S[:n], S[:m])  # NaN is for check_finite and others
        need(np.array_equal(again, kept, equal_nan=True), "overwriting what block returned changes later values")
        diagonal = case.kernel.diagonal(S[:n])
        need(np.shape(diagonal) == (n,), f"diagonal returns shape {np.shape(diagonal)} for {n} rows")


@on_cases
def check_symmetry(case: Case) -> None:
    """k(x, y) = k(y, x), within a tile and between two."""
    block, S = case.kernel.block, case.X
    hold(contract.block_is_symmetric(case.K, case.error()))
    h = len(S) // 3
    agree(block(S[:h], S[h:]), block(S[h:], S[:h]).T, 2 * case.error(), "k(x, y) and k(y, x) in two tiles")


@on_cases
def check_diagonal(case: Case) -> None:
    """``diagonal`` is that of ``block``, and not negative where the kernel says that it is semidefinite."""
    diagonal, expected = np.asarray(case.kernel.diagonal(case.X)), case.K.diagonal()
    hold(contract.diagonal_is_of_block(diagonal, expected, 2 * case.error()), "diagonal")
    if case.kernel.positive_semidefinite:
        need((diagonal >= 0).all(), f"k(x, x) = {diagonal.min():.3g} for a positive semidefinite kernel")


@on_cases
def check_block_invariance(case: Case) -> None:
    """A value depends on its two rows alone: not on the tile's size, its other rows, or their order."""
    block, S, error = case.kernel.block, case.X, 2 * case.error()
    for step in (1, 7, 32):
        for i in range(0, len(S), 5 * step):
            tile = block(S[i : i + step], S[i // 2 :])
            agree(tile, case.K[i : i + step, i // 2 :], error, f"values from tiles of {step} rows and of {len(S)}")
    order = np.random.default_rng(0).permutation(len(S))
    moved = np.ascontiguousarray(S[order])
    agree(block(moved, S), case.K[order], error, "values of the same rows in another order")


@on_cases
def check_dtype(case: Case) -> None:
    """float64 tiles give float64 values, float32 tiles float32 values, and the two agree."""
    single = case.X.astype(np.float32)
    double = single.astype(np.float64)
    expected, values = case.kernel.block(double, double), case.kernel.block(single, single)
    need(expected.dtype == np.float64, f"float64 tiles give {expected.dtype} values")
    need(values.dtype == np.float32, f"float32 tiles give {values.dtype} values")
    error = case.error(np.float32) + case.error()
    agree(values, expected, error, "values from float32 and from float64 tiles")
    for tile in (single, double):
        diagonal = np.asarray(case.kernel.diagonal(tile))
        need(diagonal.dtype.kind == "f", f"diagonal returns {diagonal.dtype}")
    agree(case.kernel.diagonal(single), np.diagonal(expected), error, "diagonal of float32 rows")


@on_cases
def check_strides(case: Case) -> None:
    """Rows in column order, every second row, rows backwards, part of the columns: the same values as their copies."""
    kernel, S, error = case.kernel, case.X, 2 * case.error()
    wide = np.full((len(S), 2 * S.shape[1] + 1), 1e3)
    wide[:, 1::2] = S
    for how, tile in (
        ("in column order", np.asfortranarray(S)),
        ("every second", S[::2]),
        ("backwards", S[::-1]),
        ("of a wider array", wide[:, 1::2]),
    ):
        plain = np.ascontiguousarray(tile)
        expected = kernel.block(plain, plain[:7])
        agree(kernel.block(tile, tile[:7]), expected, error, f"values of rows {how} and of their copy")
        agree(kernel.diagonal(tile), kernel.diagonal(plain), error, f"diagonal of rows {how} and of their copy")


@on_cases
def check_read_only_input(case: Case) -> None:
    """Read-only tiles work, and no call changes its input."""
    for dtype in (np.float64, np.float32):
        locked, free = case.X.astype(dtype), case.X.astype(dtype)
        locked.flags.writeable = False
        before = free.copy()
        for tile in (free, locked):
            case.kernel.block(tile[:40], tile)
            case.kernel.block(tile, tile)
            case.kernel.diagonal(tile)
            need(np.array_equal(tile, before), "a call changes its input")


@named
def check_finite(kernel: Kernel, X: Any) -> str | None:
    """Equal rows, tiny and huge ones: finite values, or a ValueError (a KernelParameterError) that says why not."""
    if not kernel.takes_points or X is not None:
        return NOT_OFFERED  # these rows may not be in the kernel's domain
    rng = np.random.default_rng(4)
    normal = rng.standard_normal((30, 3))
    sets = {
        "rows in pairs": np.repeat(normal, 2, axis=0),
        "equal rows": np.ones((20, 2)),
        "zeros": np.concatenate([np.zeros((5, 3)), normal]),
        "rows of size 1e-150": 1e-150 * normal,
        "rows of size 1e-8": 1e-8 * normal,
        "rows of size 1e8": 1e8 * normal,
        "rows of size 1e60": 1e60 * normal,
        "one row far away": np.concatenate([normal, [[1e9, -1e9, 1e9]]]),
        "60 columns": rng.standard_normal((30, 60)),
    }
    for what, rows in sets.items():
        try:
            case = case_of(kernel, rows)
            with np.errstate(all="ignore"):
                K, diagonal = case.K, case.kernel.diagonal(case.X)
        except ValueError:
            continue  # refused with an error
        need(np.isfinite(K).all(), f"{what}: block is not finite")
        need(np.isfinite(diagonal).all(), f"{what}: diagonal is not finite")
        if case.kernel.positive_semidefinite and case.kernel.entry_error(case.data, np.dtype(float)) is not None:
            root = np.sqrt(np.maximum(np.diagonal(K), 0.0))
            slack = case.error() + 1e-12 * case.largest
            need((np.abs(K) <= np.outer(root, root) + slack).all(), f"{what}: |k(x, y)|^2 > k(x, x) k(y, y)")
    return None


# Properties that it claims ------------------------------------------------------------------------------------------


@on_cases
def check_positive_semidefinite(case: Case) -> str | None:
    """No eigenvalue below rounding on rows at several scales, in clusters, and on a line, where the kernel says so."""
    if not case.kernel.positive_semidefinite:
        return NOT_OFFERED
    sets = [case.X]
    if case.made_up:
        rng = np.random.default_rng(3)
        near = np.repeat(case.X[:12], 6, axis=0)
        sets += [0.1 * case.X, 4.0 * case.X, near + 0.01 * rng.standard_normal(near.shape)]
        sets += [np.linspace(-2, 2, 60)[:, None] * np.ones(case.X.shape[1])]
    for S in sets:
        S = np.ascontiguousarray(S)
        K = case.kernel.block(S, S)
        size = float(np.abs(K).max(initial=0.0))
        stated = case.kernel.entry_error(summarized(S)[1], np.dtype(np.float64))
        error = 1e-8 * size if stated is None else stated
        need(np.isfinite(K).all(), f"its values on {len(S)} rows are not finite")
        hold(contract.block_is_semidefinite(K, len(S) * (error + 8 * EPS * size)))
    return None


@on_cases
def check_translation(case: Case) -> str | None:
    """k(x + s, y + s) = k(x, y), or that of centred values, where ``translation`` says so."""
    block, translation = case.kernel.block, case.kernel.translation
    if translation is None:
        return NOT_OFFERED
    S = np.round(case.X * 2.0**20) / 2.0**20  # so that adding the shift below is exact
    here = block(S, S)
    for shift in (1.0, -3.0, 64.0):
        moved = S + shift * (1 + np.arange(S.shape[1]))
        there = block(moved, moved)
        error = 2 * case.error() + 2 * case.error(data=summarized(moved)[1]) + 64 * EPS * float(np.abs(there).max())
        error *= 4.0 if translation == "centered" else 1.0
        hold(contract.shift_changes_nothing(here, there, translation, shift, error))
    return None


@on_cases
def check_entry_error(case: Case) -> str | None:
    """float32 values are within ``entry_error`` of float64 ones; the bound is finite, and float64's is the smaller.

    Without ``X``, rows in clusters far apart are tried as well.
    """
    result = _entry_error(case.kernel, case.X)
    if case.made_up:
        rng = np.random.default_rng(5)
        far = case.X + 1e3 * rng.standard_normal((3, case.X.shape[1]))[rng.integers(3, size=len(case.X))]
        rows, _ = summarized(far, shift=case.kernel.translation is not None)
        result = _entry_error(case.kernel, rows.all())
    return result


def _entry_error(kernel: Kernel, X: np.ndarray) -> str | None:
    block, single = kernel.block, X.astype(np.float32)
    S = single.astype(np.float64)
    data = summarized(S)[1]
    bounds: list[Any] = [kernel.entry_error(data, np.dtype(t)) for t in (np.float32, np.float64)]
    if bounds[1] is None:
        return NOT_OFFERED
    for bound in bounds:
        need(bound is not None and 0 <= bound < np.inf, f"entry_error is {bound!r}; a finite bound is due")
    need(bounds[1] <= bounds[0], "entry_error is larger for float64 than for float32")
    K = block(S, S)
    backwards = block(S[::-1].copy(), S[::-1].copy())[::-1, ::-1]  # the same values evaluated in another order
    for what, values, allowed in (
        ("float32 values are", block(single, single) - K, bounds[0] + bounds[1]),
        ("float64 values in another order are", K - backwards, 2 * bounds[1]),
    ):
        off = np.abs(values).max()
        need(off <= allowed, f"{what} off by {off:.3g}, where entry_error says {allowed:.3g}")
    return None


@on_cases
def check_thread_safety(case: Case) -> str | None:
    """The same bits from eight threads at once as from one, where ``thread_safe`` is not False."""
    kernel, S = case.kernel, case.X
    if not kernel.thread_safe:
        return NOT_OFFERED
    tiles = [np.ascontiguousarray(np.roll(S, i, axis=0)[: len(S) - 3 * i]) for i in range(8)]
    calls = [kernel.diagonal, lambda tile: kernel.block(tile, tiles[len(tile) % 8])]
    for feature_map in maps_of(case, 1e-3):
        calls += [feature_map.features, feature_map.residual]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for call in calls:
            _same_from_eight_threads(call, tiles)
    finally:
        sys.setswitchinterval(interval)
    return None


def _same_from_eight_threads(call: Callable[[np.ndarray], Any], tiles: Sequence[np.ndarray]) -> None:
    expected = [np.array(call(tile)) for tile in tiles]
    start = threading.Barrier(8)

    def work(tile: np.ndarray) -> list[np.ndarray]:
        start.wait()
        return [np.asarray(call(tile)) for _ in range(10)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, tiles))
    need(
        all(np.array_equal(x, one, equal_nan=True) for one, several in zip(expected, results) for x in several),
        "values from eight threads at once are not those from one thread; let each call have its own work arrays, or "
        "declare thread_safe = False",
    )


@on_cases
def check_compiled_tile(case: Case) -> str | None:
    """A tile of the core that ``compiled_tile`` names has the kernel of ``block``."""
    compiled = case.kernel.compiled_tile()
    if compiled is None:
        return NOT_OFFERED
    error = case.error() + len(case.X) * EPS * case.largest
    hold(contract.tile_is_of_block(compiled, case.X, case.K, 2 * error))
    return None


@on_cases
def check_gradient_weights(case: Case) -> str | None:
    """``gradient_weights`` give the gradient of ``block`` by its first argument, as central differences see it."""
    few = np.ascontiguousarray(case.X[:24])
    block, K = case.kernel.block, case.kernel.block(few, few)
    weights = case.kernel.gradient_weights(few, few, K) if case.kernel.takes_points else None
    if weights is None:
        return NOT_OFFERED
    need(np.shape(weights) == K.shape, f"gradient_weights has shape {np.shape(weights)} for {K.shape} values")
    length = max(case.data.radius, 1e-300)
    step = 1e-5 * length
    for j in range(few.shape[1]):
        difference = central_difference(lambda at: block(at, few), few, j, np.full(len(few), step))
        towards = few[None, :, j] - few[:, None, j] if case.kernel.translation == "kernel" else few[None, :, j]
        error = 1e-4 * max(float(np.abs(difference).max()), case.largest / length) + 4.0 * case.error() / step
        agree(weights * towards, difference, error, "gradient_weights and differences of block")
    return None
