"""Random, mostly wrong input through every public call: each answer is finite or a clear error of ours.

    python tests/attacks/fuzz_calls.py --calls 20000 --seed 0

A call is broken where it

- raises another class than ValueError, TypeError and those of ``fastkpca.errors`` (OSError for files, MemoryError for
  what asks for too much),
- raises from inside numpy, scipy or Python: the last frame of a clear error is ours,
- warns with another category than ours,
- returns something that is not finite where nothing says so,
- takes something else for True or False,
- changes its input, or takes longer than ``--seconds``.

Each call is a right one of any public function (those of tests/project/typed/every_call.py, and ``RightCalls``), some
of whose arguments are replaced by hostile ones. ``--sweep`` replaces each argument of each of these by each hostile
value instead, one at a time; ``--part 3/8`` does every eighth of them.

``tests/attacks/test_fuzz_calls.py`` runs a few hundred of the same calls.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "project" / "typed"))
import command
import kernels_contrib.sklearn as contrib_estimators
import numpy as np
import scipy.sparse as sp
from kernels_contrib.errors import AccuracyWarning
from scipy.linalg import LinAlgWarning
from scipy.sparse.linalg import aslinearoperator

import fastkpca as fk
from fastkpca import errors, plot, testing
from fastkpca.kernels import kernel_from_state, kernel_state, registry
from fastkpca.sklearn import KernelPCA, KernelPCANovelty, Nystroem
from fastkpca.state import load_state, save_state

CLEAR = (
    ValueError,
    TypeError,
    MemoryError,
    OSError,
    testing.ConformanceError,
    *(x for x in vars(errors).values() if isinstance(x, type)),
)
# of the others, one adds operators and multiplies them, and two check parameters and rows of estimators
OURS = ("fastkpca/", "kernels_contrib/", "linalg/_interface.py", "sklearn/", "joblib/")
WARNINGS = (
    LinAlgWarning,
    AccuracyWarning,
    *(x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, Warning)),
)


class TooLongError(Exception):
    """The call was still running at the end of its time."""


class Odd:
    """An object that is no number, no array and no kernel."""

    def __repr__(self) -> str:
        return "Odd()"


def bad_block(X: np.ndarray, Y: np.ndarray) -> Any:
    return np.full((len(X), len(Y)), np.nan)


def wrong_shape(X: np.ndarray, Y: np.ndarray) -> Any:
    return np.ones(len(X))


def product_of_rows(X: np.ndarray, Y: np.ndarray) -> Any:
    return X @ Y.T


def numbers(rng: np.random.Generator) -> np.ndarray:
    """Rows as a user would give them."""
    n, d = int(rng.integers(2, 40)), int(rng.integers(1, 6))
    return rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4)


def rows(rng: np.random.Generator) -> Any:
    """Rows, right in about three quarters of all cases."""
    X = numbers(rng)
    makers: list[Callable[[], Any]] = [
        lambda: X.astype(np.float32),
        lambda: np.round(X * 10).astype(np.int64),
        lambda: X > 0,
        lambda: X.astype(np.float16),
        lambda: X.astype(np.longdouble),
        lambda: (np.abs(X) * 1e3).astype(np.uint64) + np.uint64(2**63),
        lambda: X * 10.0 ** rng.integers(-320, 300),
        lambda: X * 10.0 ** rng.integers(-300, 150, X.shape[1]),
        lambda: X * 10.0 ** rng.integers(-300, 150, (len(X), 1)),
        lambda: X * rng.integers(0, 2, (len(X), 1)),
        lambda: X * rng.integers(0, 2, X.shape) * 5e-324,
        lambda: np.asfortranarray(X)[::-1],
        lambda: X.tolist(),
        lambda: [[1.0, 2.0], [3.0]],
        lambda: X[:, :0],
        lambda: X[:1],
        lambda: X[0],
        lambda: X[None],
        lambda: np.repeat(X[:1], 7, axis=0),
        lambda: np.where(rng.random(X.shape) < 0.1, np.nan, X),
        lambda: np.where(rng.random(X.shape) < 0.1, np.inf, X),
        lambda: np.ma.masked_array(X, rng.random(X.shape) < 0.2),
        lambda: X.astype(object),
        lambda: X.astype(str),
        lambda: iter(X),
        lambda: (x for x in (X, X)),
        lambda: [X, X],
        lambda: X @ X.T,
    ]
    return X if rng.random() < 0.75 else pick(rng, makers)()


def pick(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


FLAGS = {
    "overwrite", "scores", "load", "guaranteed", "keep_moments", "return_scores", "bounds", "cumulative", "points",
    "averaged", "shuffle", "fit_inverse_transform", "remove_zero_eig", "copy_X", "semidefinite", "progress", "center",
    "standardize", "density", "positive_semidefinite", "joint",
}  # fmt: skip
OR_NONE = {"center", "standardize", "density", "semidefinite", "positive_semidefinite"}


def is_flag(name: str, value: Any) -> bool:
    """Whether a truth value's argument takes this."""
    takes_more = (name in OR_NONE and value is None) or (name == "progress" and callable(value))
    return isinstance(value, bool | np.bool_) or takes_more


def fitted(cls: type, X: Any, y: Any, then: str, **parameters: Any) -> Any:
    """What a method of an estimator that is fitted answers."""
    return getattr(cls(**parameters).fit(X, y), then)(X)


def grown(X: Any, then: Any, **parameters: Any) -> Any:
    """Scores by an estimator that gets its rows in parts."""
    return KernelPCA(**parameters).partial_fit(X).partial_fit(then).transform(X)


def products(X: Any, U: Any, rows: Any, A: Any, **options: Any) -> Any:
    K = fk.gram(X, **options)
    return K @ U, K[rows], np.asarray(K), (K + A) @ U, (A - 2.0 * K).T @ U, K.centered() @ U, K.diagonal()


def passes(X: Any, weights: Any, **options: Any) -> Any:
    F = fk.features(X, **options)
    return F.moments(weights), np.asarray(F), F.residual_trace


def restored(kernel: Any, plugins: Any, **parameters: Any) -> Any:
    return kernel_from_state(kernel_state(fk.get_kernel(kernel, **parameters)), plugins=plugins)


def completed(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with what the function, or what it is about, takes for those that are not given."""
    about = {products: fk.gram, passes: fk.features}.get(function, given.get("cls", function))
    known = {name: x.default for name, x in inspect.signature(about).parameters.items() if x.default is not x.empty}
    return known | ({"n_threads": 1} if "n_threads" in known else {}) | given


def recorded(folder: Path) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Every call of the script that has all public ones, by name and number: (function, its arguments)."""
    script, found = importlib.import_module("every_call"), {}

    def recording(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        def call(*given: Any, **options: Any) -> Any:
            arguments = dict(signature.bind(*given, **options).arguments)
            answer = function(*given, **options)
            for kind, x in [(x.kind, x.name) for x in signature.parameters.values()]:
                if kind is inspect.Parameter.VAR_KEYWORD:
                    arguments |= arguments.pop(x, {})
                if kind is inspect.Parameter.VAR_POSITIONAL:
                    return answer
            found[f"{name} {len(found)}"] = function, arguments
            return answer

        return call

    own = [name for name, x in vars(script).items() if getattr(x, "__module__", "").startswith("kernels_contrib")]
    with contextlib.ExitStack() as stack:
        for module, names in ((fk, fk.__all__), (plot, plot.__all__), (script, own)):
            for name in names:
                if inspect.isfunction(getattr(module, name)):
                    one = recording(name, getattr(module, name))
                    stack.enter_context(mock.patch.object(module, name, one))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        script.main(folder)
    return found


class RightCalls:
    """Right calls of public functions, by name: (function, its arguments)."""

    def __init__(self, folder: Path):
        calls = recorded(folder)
        files = ("save", "report")
        self.plots = {name for name in calls if name.split()[0] in plot.__all__ and not name.startswith(files)}
        X = np.random.default_rng(1).standard_normal((40, 3))
        y, K, steps = np.arange(40) % 3, X @ X.T, {"y": None, "gamma": 0.5, "n_jobs": 1, "random_state": 0}
        model = fk.kpca(X, "gaussian", 3, sigma=1.5)
        summed = fk.kpca(X, "polynomial", 2, degree=2, method="features", keep_moments=True)
        limits, which = fk.kpca_limits(model, X + 0.01, confidence=0.9), fk.kpca_importance(model, X)
        choice = fk.kpca_select(X, "gaussian", [1, 2], folds=2)
        save_state(folder / "r.state", "a:b", {"kernel": model.kernel, "a": X})
        calls |= {
            "kpca(matrix)": (fk.kpca, {"X": K, "kernel": "precomputed", "c": 2, "semidefinite": False}),
            "kpca(matern)": (fk.kpca, {"X": X, "kernel": "matern", "c": 2, "nu": 1.5, "length_scale": 1.0}),
            "gram, used": (
                products,
                {"X": X, "U": np.ones((40, 2)), "rows": [1, 2], "A": 0.1 * np.eye(40), "tol": 1e-6, "sigma": 1.5},
            ),
            "gram(Y)": (fk.gram, {"X": X, "Y": X[:12] + 0.1, "tol": 1e-6, "sigma": 1.5}),
            "features, used": (
                passes,
                {"X": X, "weights": np.ones(40), "kernel": "polynomial", "degree": 2, "tol": 1e-6, "max_features": 50},
            ),
            "project(out)": (fk.kpca_project, {"model": model, "X": X[:12], "out": np.empty((12, 3))}),
            "spe(diagonal)": (
                fk.kpca_spe,
                {"model": fk.kpca(K, "precomputed", 2), "X": K[:3], "diagonal": K.diagonal()[:3], "bounds": True},
            ),
            "exceeded": (limits.exceeded, {"t2": np.ones(3), "spe": np.ones(3)}),
            "preimage(gradient)": (
                fk.kpca_preimage,
                {"model": model, "Z": model.score[:2], "method": "gradient", "start": X[:2], "max_iter": 20},
            ),
            "merge": (lambda first, second, **o: fk.kpca_merge(first, second, **o),
                      {"first": summed, "second": summed, "c": 2, "tol": 1e-6}),
            "save(over)": (fk.save, {"model": model, "path": folder / "s.kpca", "overwrite": True, "scores": True}),
            "state of": (model.state, {"scores": True}),
            "save_state": (
                save_state, {"path": folder / "s.state", "kind": "a:b", "values": {"a": X}, "overwrite": True},
            ),
            "load_state": (load_state, {"path": folder / "r.state"}),
            "kernel_state": (restored, {"kernel": "gaussian", "plugins": False, "sigma": 1.0}),
            "get_kernel(f)": (fk.get_kernel, {"kernel": product_of_rows, "positive_semidefinite": True}),
            "register": (fk.register_kernel, {"name": "mine", "kernel": product_of_rows, "overwrite": True}),
            "scaled": (fk.kernels.ScaledKernel, {"factor": 2.0, "kernel": model.kernel}),
            "check_kernel": (
                testing.check_kernel,
                {"kernel": "linear", "X": np.repeat(X, 2, axis=0)[:55],
                 "skip": [x.__name__ for x in testing.CHECKS[3:]]},
            ),
            "one check": (testing.check_symmetry, {"kernel": "gaussian", "X": np.repeat(X, 2, axis=0)[:55]}),
            "parametrize": (testing.parametrize_with_kernel_checks, {"kernels": ["linear"]}),
            "KernelPCA": (
                fitted,
                {"cls": KernelPCA, "X": X, "then": "transform", "n_components": 2, "fit_inverse_transform": True,
                 "kernel": "rbf", "tol": 1e-4, **steps},
            ),
            "partial_fit": (
                grown,
                {"X": X, "then": 9.0 * X, "n_components": 2, "max_features": None, "failure_probability": None,
                 "kernel": "rbf", "gamma": 0.5, "n_jobs": 1, "random_state": 0, "tol": 1e-4},
            ),
            "Nystroem": (fitted, {"cls": Nystroem, "X": X, "then": "transform", "n_components": 10, **steps}),
            "Novelty": (fitted, {"cls": KernelPCANovelty, "X": X, "then": "predict", **steps}),
            "KLDA": (
                fitted,
                {"cls": contrib_estimators.KLDA, "X": X, "then": "predict", "n_components": 2, "regularization": 0.1,
                 "tol": 1e-4, **steps, "y": y},
            ),
            "KernelLogistic": (
                fitted,
                {"cls": contrib_estimators.KernelLogisticRegression, "X": X, "then": "predict_proba", "max_iter": 20,
                 "tol": 1e-4, **steps, "y": y},
            ),
        }  # fmt: skip
        self.calls = {name: (function, completed(function, given)) for name, (function, given) in calls.items()}
        masked = np.ma.masked_array(np.ones(40), np.arange(40) == 2)
        self.hostile: list[Any] = [
            None, True, False, np.True_, "no", "", "auto", b"x", 0, -1, 1, 2, 2.5, 0.5, 10**400, -(10**400), np.nan,
            np.inf, -np.inf, 1e-320, 1e308, 1e-308, -0.0, 1j, Decimal("0.5"), Fraction(10**400, 3), np.float32(0.5),
            np.int8(2), np.array(2), np.array("a"), np.ones(3), np.ones((2, 2)), np.ones((2, 2, 2)), np.ones(40),
            np.ones(3) * 1j, masked, np.ma.masked_all((40, 3)), np.array([Odd()]), np.array([None, 1.0]),
            np.zeros((0, 3)), np.zeros((40, 0)), [], (), {}, set(), [[]], ["a", "b"], [1, [2]], [None], [0, 1],
            {"a": 1}, Odd(), Odd, print, memoryview(X), sp.csr_matrix(X), aslinearoperator(X), fk.gram(X), model,
            summed, KernelPCA(2), KernelPCA, model.kernel, fk.get_kernel("cosine"), fk.kernels.Gaussian, limits, which,
            choice, Path("x.npy"), np.datetime64("2024-01-01"), np.datetime64("NaT"), np.array(["2024"] * 40, "M8"),
            range(3), iter([1]), slice(2), int, ..., NotImplemented, np.dtype(float), np.random.default_rng(0),
            X * 1e-200, X * 1e-300, X * 1e-320, X * 1e150, X * 1e300, np.zeros((40, 3)), -X, X[:1], X.T, X.astype("f4"),
            np.lib.stride_tricks.as_strided(np.zeros((40, 3)), (12, 3), (0, 8)), np.full((12, 3), np.nan),
            np.asfortranarray(np.zeros((12, 3))), np.ma.zeros((12, 3)), sp.lil_matrix((12, 3)), plot.scree(model),
            10**19, 2**63, -(2**63), 1e19, "ß" * 100, "\x00", "a\nb", "../x", bad_block, wrong_shape, product_of_rows,
            "gausian", "precomputed", "tanh", 3.0 * model.kernel + fk.get_kernel("linear"), "1GB", 1.5e8, "dense",
        ]  # fmt: skip

    def make(self, rng: np.random.Generator) -> Made:
        """A call with one or two arguments replaced, or none."""
        name = pick(rng, list(self.calls))
        replaced = {}
        for argument in rng.permutation(self.arguments(name))[: pick(rng, [0, 1, 1, 1, 2])]:
            own = argument in ("X", "Z", "U", "Y", "train", "start") and rng.random() < 0.5
            replaced[argument] = rows(rng) if own else pick(rng, self.hostile)
        kept = {x: value for x, value in replaced.items() if x != "out"}
        return name, kept, self.call(name, replaced, drawn=name in self.plots and rng.random() < 0.2)

    def arguments(self, name: str) -> list[str]:
        return [x for x in self.calls[name][1] if x not in ("cls", "then")]

    def sweep(self) -> Iterator[Made]:
        """For each argument of each and each hostile value."""
        for name in self.calls:
            for argument in self.arguments(name):
                for value in self.hostile:
                    yield name, {}, self.call(name, {argument: value}, drawn=False)

    def call(self, name: str, replaced: dict[str, Any], *, drawn: bool) -> Callable[[], Any]:
        """A right call with some arguments replaced; ``drawn``: what it plotted is drawn, too."""
        function, right = self.calls[name]
        given = right | replaced
        wrong = [x for x, value in replaced.items() if x in FLAGS and not is_flag(x, value)]

        def call() -> Any:
            warnings.filterwarnings("ignore", "n_components=")  # scikit-learn's own words, of its Nystroem
            warnings.filterwarnings("ignore", "Glyph")  # matplotlib's, of a label
            try:
                answer = function(**given)
                if drawn:
                    axes = np.ravel(np.asarray(answer, dtype=object))[0]
                    axes.figure.draw_without_rendering()
            except Exception as error:
                error.add_note(f"{name}: " + ", ".join(f"{k}={v!r:.60}" for k, v in given.items() if v is not right[k]))
                raise
            assert not wrong, f"taken for truth values: {[(x, given[x]) for x in wrong]}"
            return answer

        return call


def arrays_of(answer: Any) -> list[np.ndarray]:
    """What has to be finite."""
    if isinstance(answer, fk.KPCAModel):
        held = [answer.eigenvalues, answer.eigenvalue_bounds, np.asarray(answer.total_variance_bounds)]
        return held + ([answer.coeff] if answer._score is not None else [])
    if isinstance(answer, np.ndarray | np.floating | float):
        return [np.asarray(answer)]
    if isinstance(answer, tuple | list):
        return [x for part in answer for x in arrays_of(part)]
    return []


def fingerprint(X: Any) -> bytes | None:
    """Of input that must stay as it is."""
    return X.tobytes() if isinstance(X, np.ndarray) and X.dtype != object and X.nbytes < 1 << 20 else None


def verdict(given: dict[str, Any], call: Callable[[], Any], seconds: int) -> tuple[str, str]:
    """(what came of one call, the text of a broken one); ``given``: input that it must leave alone."""
    before = [fingerprint(x) for x in given.values()]

    def strike(*_: Any) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, strike)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        signal.alarm(seconds)
        try:
            answer = call()
            outcome, text = "answered", ""
        except TooLongError:
            outcome, text = "broken", f"more than {seconds} s\n{traceback.format_exc(limit=-3)}"
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            ours = any(f"/{name}" in frame.filename for name in OURS)
            index = isinstance(error, IndexError) and "K[rows]" in str(error)
            of_sparse = isinstance(error, NotImplementedError) and "sparse" in str(error)  # scikit-learn's own words
            no_map = isinstance(error, AttributeError) and "no attribute 'partial_fit'" in str(error)  # and its own
            clear = index or of_sparse or no_map or (isinstance(error, CLEAR) and str(error).strip())
            ours |= any("raised by" in note for note in getattr(error, "__notes__", ()))  # a kernel of the caller
            outcome = "refused" if clear and ours else "broken"
            text = "" if outcome == "refused" else traceback.format_exc(limit=-3)
        finally:
            signal.alarm(0)
    if outcome == "answered":
        arrays = [a for a in arrays_of(answer) if a.dtype.kind == "f"]
        if not all(np.isfinite(a).all() for a in arrays):
            outcome, text = "broken", f"not finite: {answer!r:.300}"
    foreign = [w for w in raised if not issubclass(w.category, WARNINGS)]
    if foreign and outcome != "broken":
        outcome, text = "broken", f"{foreign[0].category.__name__}: {foreign[0].message} ({foreign[0].filename})"
    if [fingerprint(x) for x in given.values()] != before:
        outcome, text = "broken", "the input was changed"
    return outcome, text


Made = tuple[str, dict[str, Any], Callable[[], Any]]
"""A public call's name, the arguments that were replaced, and the call."""


def drawn_calls(folder: Path, calls: int, seed: int) -> Iterator[Made]:
    """Public calls with random arguments."""
    right = RightCalls(folder)
    for i in range(calls):
        yield right.make(np.random.default_rng([seed, i]))


def swept_calls(folder: Path, part: int, parts: int) -> Iterator[Made]:
    """Every one of ``parts`` calls of the sweep."""
    return islice(RightCalls(folder).sweep(), part % parts, None, parts)


def run(
    made: Callable[[Path], Iterator[Made]], seed: int = 0, seconds: int = 20, show: int = 20
) -> tuple[Counter, list[str]]:
    """Outcomes by public call, and the texts of what broke."""
    outcomes: Counter = Counter()
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # for "no" as the name of a file
        for i, (name, given, call) in enumerate(made(Path(folder))):
            outcome, text = verdict(given, call, seconds)
            outcomes[name, outcome] += 1
            if outcome == "broken":
                broken.append(f"{name}, seed {seed}, call {i}: {text}")
                if len(broken) <= show:
                    print(broken[-1], flush=True)
    registry.SESSION.clear()  # what calls of register_kernel left
    return outcomes, broken


def main() -> None:
    given = command.options(__doc__, calls=20000, seed=0, seconds=20, show=100, sweep=False, part="1/1")
    part, parts = map(int, given.part.split("/"))
    made: Callable[[Path], Iterator[Made]] = partial(drawn_calls, calls=given.calls, seed=given.seed)
    if given.sweep:
        made = partial(swept_calls, part=part, parts=parts)
    outcomes, broken = run(made, given.seed, given.seconds, given.show)
    for name in dict.fromkeys(name for name, _ in outcomes):
        print(f"{name:<20}" + "".join(f"{x:>10} {outcomes[name, x]:>6}" for x in ("answered", "refused", "broken")))
    print(f"{sum(outcomes.values())} calls, {len(broken)} broken")


if __name__ == "__main__":
    main()
