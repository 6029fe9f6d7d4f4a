"""Random, mostly wrong input through every public call: each answer is finite or a clear error of ours.

    python tests/attacks/fuzz_calls.py --calls 20000 --seed 0

A call is broken where it

- raises another class than ValueError, TypeError and those of ``fastkpca.errors`` (OSError for files, MemoryError for
  what asks for too much),
- raises from inside numpy, scipy or Python: the last frame of a clear error is ours,
- warns with another category than ours,
- returns something that is not finite where nothing says so,
- changes its input, or takes longer than ``--seconds``.

``tests/attacks/test_fuzz_calls.py`` runs a few hundred of the same calls.
"""

from __future__ import annotations

import argparse
import copy
import pickle
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning

import fastkpca as fk
from fastkpca import errors
from fastkpca.sklearn import KernelPCA
from fastkpca.state import load_state, save_state

CLEAR = (ValueError, TypeError, MemoryError, OSError, *(x for x in vars(errors).values() if isinstance(x, type)))
OURS = ("fastkpca", "kernels_contrib", "sklearn")  # scikit-learn checks parameters and rows of its estimators
WARNINGS = (LinAlgWarning, *(x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, Warning)))


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
        lambda: X.astype(complex) + 1j,
        lambda: (np.abs(X) * 1e3).astype(np.uint64) + np.uint64(2**63),
        lambda: X * 10.0 ** rng.integers(-320, 300),
        lambda: np.asfortranarray(X)[::-1],
        lambda: X.tolist(),
        lambda: [[1.0, 2.0], [3.0]],
        lambda: X[:0],
        lambda: X[:, :0],
        lambda: X[:1],
        lambda: X[0],
        lambda: X[None],
        lambda: X[0, 0],
        lambda: np.repeat(X[:1], 7, axis=0),
        lambda: np.zeros_like(X),
        lambda: np.where(rng.random(X.shape) < 0.1, np.nan, X),
        lambda: np.where(rng.random(X.shape) < 0.1, np.inf, X),
        lambda: np.ma.masked_array(X, rng.random(X.shape) < 0.2),
        lambda: X.astype(object),
        lambda: X.astype(str),
        lambda: np.array([["a", "b"], ["c", "d"]]),
        lambda: X.astype("datetime64[s]"),
        lambda: [Odd(), Odd()],
        lambda: Odd(),
        lambda: None,
        lambda: {"x": X},
        lambda: "rows.csv",
        lambda: 3,
        lambda: iter(X),
        lambda: (x for x in (X, X)),
        lambda: [X, X],
        lambda: X @ X.T,
    ]
    return X if rng.random() < 0.75 else pick(rng, makers)()


def pick(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def kernel(rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    """(kernel, its parameters), mostly right."""
    number = pick(rng, [1.0, 0.5, 2, -1.0, 0.0, np.nan, np.inf, 1e-200, 1e200, "1", None, [1.0], True, Odd()])
    right: list[tuple[Any, dict[str, Any]]] = [
        ("gaussian", {}),
        ("gaussian", {"sigma": 1.0}),
        ("polynomial", {"degree": 2}),
        ("polynomial", {"degree": 3, "offset": 1.0}),
        ("linear", {}),
        ("tanh", {"scale": 0.1}),
        ("rbf", {"gamma": 0.5}),
        ("laplacian", {}),
        ("matern", {"nu": 1.5, "length_scale": 1.0}),
        ("cosine", {}),
        (None, {}),
        (product_of_rows, {}),
    ]
    wrong: list[tuple[Any, dict[str, Any]]] = [
        ("gaussian", {"sigma": number}),
        ("polynomial", {"degree": number}),
        ("polynomial", {"offset": number}),
        ("tanh", {"scale": number}),
        ("matern", {"nu": number}),
        ("gausian", {}),
        ("gaussian", {"sgima": 1.0}),
        ("precomputed", {}),
        (bad_block, {}),
        (wrong_shape, {}),
        (Odd(), {}),
        (3, {}),
        ("", {}),
        (fk.kernels.Kernel, {}),
        (fk.kernels.Gaussian, {"sigma": 1.0}),
        (fk.kernels.Gaussian(sigma=1.0), {"sigma": 2.0}),
        (0.5 * fk.kernels.Gaussian(sigma=1.0) + fk.get_kernel("linear"), {}),
    ]
    return pick(rng, right) if rng.random() < 0.85 else pick(rng, wrong)


OPTIONS: dict[str, list[Any]] = {
    "tol": [1e-2, 1e-9, 0.0, -1.0, 1.0, 2.0, np.nan, np.inf, 5e-324, "1e-3", None, [1e-3], True],
    "method": ["auto", "dense", "features", "krylov", "lanczos", None, 3],
    "features": ["auto", "monomial", "pivots", "ranked", "fourier", "taylor", None, 3],
    "products": ["auto", "exact", "grid", "clusters", "expansion", "nothing", None],
    "max_passes": [1, 3, 0, -1, 2.5, "3", None, 10**9],
    "memory_limit": [None, "500MB", 10**9, 1, 0, -5, "much", 1.5e8, np.nan],
    "n_threads": [None, 1, 2, 0, -1, 1.5, "2"],
    "rng": [0, 1, None, np.random.default_rng(3), -1, "seed", 1.5],
    "keep_moments": [True, False, 3, None],
    "return_scores": [True, False, "no"],
    "progress": [False, True, None, 3, lambda *_: None],
}


def options(rng: np.random.Generator, *names: str) -> dict[str, Any]:
    chosen = {name: pick(rng, OPTIONS[name]) for name in names if rng.random() < 0.05}
    return chosen


def count(rng: np.random.Generator) -> Any:
    if rng.random() < 0.8:
        return int(rng.integers(1, 3))
    return pick(rng, [None, 0, -1, 0.5, 0.95, 1.0, 1.5, 3, np.nan, "3", True, 10**9, np.int64(2), 2.0, [2]])


def weights(rng: np.random.Generator, X: Any) -> dict[str, Any]:
    if rng.random() > 0.2:
        return {}
    n = len(X) if hasattr(X, "__len__") else 5
    makers: list[Callable[[], Any]] = [
        lambda: rng.random(n) + 0.1,
        lambda: rng.integers(0, 4, n),
        lambda: np.zeros(n),
        lambda: -np.ones(n),
        lambda: np.full(n, np.nan),
        lambda: np.ones(n + 1),
        lambda: 10.0 ** rng.integers(-300, 300, n),
        lambda: "uniform",
        lambda: np.ones((n, 1)),
        lambda: 1.0,
    ]
    return {"sample_weight": pick(rng, makers)()}


class Calls:
    """One method for each public call; each draws its input and answers with what came back."""

    def __init__(self, folder: Path):
        self.folder = folder
        rng = np.random.default_rng(0)
        X = rng.standard_normal((30, 3))
        self.models = [
            fk.kpca(X, "gaussian", 3, sigma=1.0),
            fk.kpca(X, "polynomial", 2, degree=2, method="features", keep_moments=True),
            fk.kpca(X, "gaussian", 2, sigma=2.0, features="pivots", tol=1e-3),
            fk.kpca(X, "linear", 2, method="krylov"),
            fk.kpca(X @ X.T, "precomputed", 2),
            fk.kpca(X, "gaussian", 2, sigma=1.0, sample_weight=rng.random(30) + 0.5),
        ]
        for i, model in enumerate(self.models[:2]):
            fk.save(model, folder / f"{i}.kpca", overwrite=True)

    def model(self, rng: np.random.Generator) -> Any:
        wrong = [None, 3, "model.kpca", fk.kpca, KernelPCA(2), KernelPCA, Odd(), {}]
        return pick(rng, self.models) if rng.random() < 0.85 else pick(rng, wrong)

    def new_rows(self, rng: np.random.Generator) -> Any:
        return rng.standard_normal((int(rng.integers(1, 6)), 3)) if rng.random() < 0.6 else rows(rng)

    def kpca(self, rng: np.random.Generator) -> Any:
        X, (k, parameters) = rows(rng), kernel(rng)
        return X, lambda: fk.kpca(X, k, count(rng), **options(rng, *OPTIONS), **weights(rng, X), **parameters)

    def kpca_like(self, rng: np.random.Generator) -> Any:
        X = self.new_rows(rng)
        return X, lambda: fk.kpca(X, c=count(rng), like=self.model(rng), **options(rng, "tol", "features", "method"))

    def plan(self, rng: np.random.Generator) -> Any:
        X, (k, parameters) = rows(rng), kernel(rng)
        names = [x for x in OPTIONS if x not in ("progress", "max_passes")]
        return X, lambda: str(fk.plan(X, k, count(rng), **options(rng, *names), **weights(rng, X), **parameters))

    def gram(self, rng: np.random.Generator) -> Any:
        X, (k, parameters) = rows(rng), kernel(rng)
        Y = rows(rng) if rng.random() < 0.3 else None
        tol = {"tol": pick(rng, OPTIONS["tol"])} if rng.random() < 0.4 else {}

        def call() -> Any:
            K = fk.gram(X, k, Y, **tol, **parameters)
            shapes = [K.shape[1], (K.shape[1], 2), K.shape[0] + 1, (K.shape[1], 0)]
            U = rng.standard_normal(pick(rng, shapes))
            return K @ (pick(rng, [U.astype(str), np.ma.masked_array(U), U * 1e300, None]) if rng.random() < 0.2 else U)

        return X, call

    def features(self, rng: np.random.Generator) -> Any:
        X, (k, parameters) = rows(rng), kernel(rng)
        more = options(rng, "tol", "features")

        def call() -> Any:
            F = fk.features(X, k, **more, **parameters)
            return F @ rng.standard_normal(F.shape[1]), F.residual_trace

        return X, call

    def pca(self, rng: np.random.Generator) -> Any:
        X = rows(rng)
        return X, lambda: fk.pca(X, count(rng), **options(rng, "tol", "n_threads"))

    def project(self, rng: np.random.Generator) -> Any:
        X, model = self.new_rows(rng), self.model(rng)
        out = {"out": pick(rng, [np.empty((3, 2)), np.empty(3), "x", X])} if rng.random() < 0.1 else {}
        return (None if out else X), lambda: fk.kpca_project(model, X, **out)

    def spe(self, rng: np.random.Generator) -> Any:
        X, model = self.new_rows(rng), self.model(rng)
        return X, lambda: fk.kpca_spe(model, X, **({"bounds": pick(rng, [True, 3])} if rng.random() < 0.4 else {}))

    def t2(self, rng: np.random.Generator) -> Any:
        X, model = self.new_rows(rng), self.model(rng)
        return X, lambda: fk.kpca_t2(model, X)

    def limits(self, rng: np.random.Generator) -> Any:
        X, model = self.new_rows(rng), self.model(rng)
        given = {"confidence": pick(rng, [0.95, 0.5, 0.0, 1.0, -1, np.nan, "a"])} if rng.random() < 0.5 else {}
        given |= {"joint": pick(rng, [True, 1])} if rng.random() < 0.3 else {}
        return X, lambda: fk.kpca_limits(model, X, **given)

    def importance(self, rng: np.random.Generator) -> Any:
        X, model = self.new_rows(rng), self.model(rng)
        how = {"method": pick(rng, ["gradient", "permutation", "x"])} if rng.random() < 0.5 else {}
        return X, lambda: fk.kpca_importance(model, X, **how)

    def uncertainty(self, rng: np.random.Generator) -> Any:
        X = rng.standard_normal((pick(rng, [10, 25, 60]), 3))
        X[:, 0] = pick(rng, [X[:, 0], np.zeros(len(X)), np.round(X[:, 1])])
        model = fk.kpca(X, pick(rng, ["linear", "gaussian", "laplacian", "tanh"]), pick(rng, [1, 2]))
        if rng.random() < 0.2:
            X = rows(rng)
        how = {"level": pick(rng, [0.9, 0.0, 95, "x"])} if rng.random() < 0.3 else {}
        return X, lambda: fk.kpca_uncertainty(model, X, n_bootstrap=100, n_permutations=3, **how)

    def preimage(self, rng: np.random.Generator) -> Any:
        Z = pick(rng, [rng.standard_normal((2, pick(rng, [1, 2, 3, 4]))), rows(rng)])
        model = self.model(rng)
        ways = ["auto", "ridge", "gradient", "fixed-point", "linear", "x"]
        how = {"method": pick(rng, ways)} if rng.random() < 0.5 else {}
        return Z, lambda: fk.kpca_preimage(model, Z, **how)

    def denoise(self, rng: np.random.Generator) -> Any:
        X, model = self.new_rows(rng), self.model(rng)
        return X, lambda: fk.kpca_denoise(model, X)

    def merge(self, rng: np.random.Generator) -> Any:
        models = [self.model(rng) for _ in range(int(rng.integers(1, 4)))]
        models = models if rng.random() < 0.5 else [self.models[1]] * 2
        return None, lambda: fk.kpca_merge(*models, **({"c": count(rng)} if rng.random() < 0.3 else {}))

    def update(self, rng: np.random.Generator) -> Any:
        X, model = self.new_rows(rng), self.model(rng)
        return X, lambda: fk.kpca_update(model, X, **weights(rng, X))

    def files(self, rng: np.random.Generator) -> Any:
        model = self.model(rng)
        missing = self.folder / "none" / "m.kpca"
        path = pick(rng, [self.folder / "m.kpca", missing, self.folder, "", 3, None, b"m.kpca", 1.5])

        def call() -> Any:
            fk.save(model, path, overwrite=pick(rng, [True, True, False, 3]))
            return fk.load(path)

        return None, call

    def load(self, rng: np.random.Generator) -> Any:
        data = bytearray((self.folder / f"{int(rng.integers(2))}.kpca").read_bytes())
        for _ in range(int(rng.integers(1, 4))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        path = self.folder / "broken.kpca"

        def call() -> Any:
            path.write_bytes(data[: int(rng.integers(len(data)))] if rng.random() < 0.3 else data)
            return fk.load(path if rng.random() < 0.8 else pick(rng, [3, None, "", self.folder, 1.5, [path]]))

        return None, call

    def export(self, rng: np.random.Generator) -> Any:
        model = self.model(rng)
        path = pick(rng, [self.folder / "m.mat", self.folder / "m.kpca", "", 3, None])
        return None, lambda: fk.export_mat(model, path, overwrite=True)

    def names(self, rng: np.random.Generator) -> Any:
        k, parameters = kernel(rng)
        calls: list[Callable[[], Any]] = [
            lambda: fk.get_kernel(k, **parameters),
            lambda: fk.get_method(pick(rng, ["klda", "kldaa", 3, None, ""])),
            lambda: len(fk.list_kernels()),
            lambda: len(fk.list_methods()),
            lambda: fk.register_kernel(pick(rng, ["", 3, None, "gaussian", "a b"]), k),
        ]
        return None, pick(rng, calls)

    def state(self, rng: np.random.Generator) -> Any:
        fields = pick(rng, [{"a": np.ones(3)}, {"a": Odd()}, {"a": np.array([Odd()])}, 3, None, {3: 1}, {"a": np.nan}])
        path = pick(rng, [self.folder / "s.kpca", 3, None])

        def call() -> Any:
            save_state(path, "method", fields, overwrite=True)
            load_state(path)

        return None, call

    def estimator(self, rng: np.random.Generator) -> Any:
        X = rows(rng)
        name = pick(rng, ["rbf", "poly", "linear", "sigmoid", "cosine", "laplacian", "gaussian", "nothing", 3, None])
        given = {"n_components": pick(rng, [None, 1, 2, 0, -1, 0.5, "2"]), "kernel": name}
        given |= {"gamma": pick(rng, [0.5, -1.0, np.nan, "a"])} if rng.random() < 0.2 else {}
        given |= {"fit_inverse_transform": True} if rng.random() < 0.2 else {}

        def call() -> Any:
            estimator = KernelPCA(**given).fit(X)
            return estimator.transform(X if rng.random() < 0.7 else rows(rng))

        return X, call

    def copies(self, rng: np.random.Generator) -> Any:
        model = pick(rng, self.models)
        return None, lambda: pick(rng, [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), repr])(model)


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


def verdict(make: Callable[[np.random.Generator], Any], rng: np.random.Generator, seconds: int) -> tuple[str, str]:
    """(what came of one call, the text of a broken one)."""
    X, call = make(rng)
    before = fingerprint(X)

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
            ours = any(f"/{name}/" in frame.filename for name in OURS)
            clear = isinstance(error, CLEAR) and str(error).strip()
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
    if fingerprint(X) != before:
        outcome, text = "broken", "the input was changed"
    return outcome, text


def run(calls: int, seed: int, seconds: int = 20, show: int = 20) -> tuple[Counter, list[str]]:
    """Outcomes by public call, and the texts of what broke."""
    outcomes: Counter = Counter()
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        public = Calls(Path(folder))
        names = [x for x in vars(Calls) if not x.startswith("_") and x not in ("model", "new_rows")]
        for i in range(calls):
            rng = np.random.default_rng([seed, i])
            name = names[i % len(names)]
            outcome, text = verdict(getattr(public, name), rng, seconds)
            outcomes[name, outcome] += 1
            if outcome == "broken":
                broken.append(f"{name}, seed {seed}, call {i}: {text}")
                if len(broken) <= show:
                    print(broken[-1], flush=True)
    return outcomes, broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--show", type=int, default=100)
    given = parser.parse_args()
    outcomes, broken = run(given.calls, given.seed, given.seconds, given.show)
    for name in dict.fromkeys(name for name, _ in outcomes):
        print(f"{name:<12}" + "".join(f"{x:>10} {outcomes[name, x]:>6}" for x in ("answered", "refused", "broken")))
    print(f"{sum(outcomes.values())} calls, {len(broken)} broken")


if __name__ == "__main__":
    main()
