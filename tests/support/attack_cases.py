"""Random problems for the public functions, exact references for them, and the promises that the results must keep.

A check yields (promise, excess), as ``tally`` has it.

Reference: kernel entries and centring in longdouble (u = 2^-64), eigenvalues by LAPACK of the result rounded to
float64, in units of the largest entry. Its own error is at most ``Reference.error``: n times the longdouble error of an
entry, u |Kc|_F for the rounding to float64, and 20 u |Kc|_2 for LAPACK; tests/attacks/test_attacks.py measures it
against mpmath.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.linalg
from data import rows
from exact_kernels import LONG, LONG_UNIT, exact_matrix
from quiet import quiet
from reference import with_eigenvalues

import fastkpca as fk
from fastkpca.errors import CertificateWarning, ComponentsWarning
from fastkpca.kernels import Kernel

UNIT = 2.0**-53
ROWS = ("uniform", "clustered", "low-dimensional", "outliers", "duplicates", "constant", "offset", "far clusters")
KERNELS = ("gaussian", "gaussian", "gaussian", "polynomial", "polynomial", "linear", "tanh", "laplacian")
MAPS = ("monomial", "pivots", "fourier")


class Laplacian(Kernel):
    """exp(-|x - y|_1 / scale) with nothing but ``block``: its certificate is of the values that block returns."""

    api_version = 1
    positive_semidefinite = True
    parameters = {"scale": 1.0}

    def block(self, X, Y):
        distance = np.zeros((len(X), len(Y)), dtype=X.dtype)
        for x, y in zip(X.T, Y.T, strict=True):
            distance += np.abs(x[:, None] - y[None, :])
        return np.exp(-distance / self.scale)


@dataclass
class Problem:
    """Input of one kpca call, and its exact answer."""

    X: np.ndarray
    kernel: object
    parameters: dict
    c: int | float
    tol: float
    name: str
    reference: Reference = field(repr=False, default=None)


@dataclass
class Reference:
    """Spectrum of the exact centred Gram matrix; numbers in longdouble."""

    values: np.ndarray
    vectors: np.ndarray
    trace: np.longdouble
    trace_error: np.longdouble
    size: np.longdouble  # |Kc|_2
    norm_K: np.longdouble  # |K|_F
    largest: np.longdouble  # max |K_ij|
    error: np.longdouble  # of values

    @property
    def is_constant(self):
        """Whether nothing but rounding is left of K."""
        return not self.size > 1e-13 * self.norm_K

    def has_answer(self, c):
        """Whether some variance is there to explain: of an indefinite kernel, all eigenvalues may be negative."""
        is_there = self.trace - self.trace_error if isinstance(c, float) else self.values.max() - self.error
        return bool(is_there > 0)

    def excess(self, off):
        """How far beyond what the reference may err by, over the size of Kc."""
        return float(off / (max(self.size, self.error) or 1))


def _median(X):
    some = X[:: max(1, len(X) // 200)]
    distance = np.sqrt(((some[:, None] - some[None]) ** 2).sum(-1))[np.triu_indices(len(some), 1)]
    if not distance.any():
        return 1.0
    return float(np.median(distance)) or float(np.median(distance[distance > 0]))


def problem(rng, largest=1500):
    """A random problem with its reference."""
    u = rng.random()
    most = largest if u > 0.97 else min(largest, 300)
    n = int(rng.integers(2, 12)) if u < 0.06 else int(np.exp(rng.uniform(np.log(min(50, most // 2)), np.log(most))))
    v = rng.random()  # distances are formed in another way beyond 32 coordinates
    d = int(rng.integers(33, 41)) if v < 0.15 else int(rng.integers(1, 33)) if v < 0.4 else int(rng.integers(1, 9))
    data, name = str(rng.choice(ROWS)), str(rng.choice(KERNELS))
    X = rows(rng, data, n, d)
    if rng.random() < 0.15:
        X = X.astype(np.float32)
    wide = X.astype(np.float64)
    square = float((wide**2).sum(axis=1).max()) or 1.0
    kernel, p = name, {}
    if name == "gaussian":
        unit = _median(wide)
        if data == "far clusters" and rng.random() < 0.7:
            unit = float(np.sqrt(2.0 * d))  # the distance inside a cluster
        p = {"sigma": unit * float(10.0 ** (rng.uniform(-1, 3) if rng.random() < 0.7 else rng.uniform(-0.5, 0.5)))}
    elif name == "polynomial":
        p = {
            "degree": int(rng.integers(1, 6)),
            "offset": float(rng.choice([0.0, 1.0, 1e4])),
            "scale": 10.0 ** rng.uniform(-2, 1) / square,
        }
    elif name == "tanh":
        p = {"scale": 10.0 ** rng.uniform(-1, 1.5) / square, "offset": float(rng.uniform(-2, 2))}
    elif name == "laplacian":
        kernel = Laplacian(scale=_median(wide) * 10.0 ** rng.uniform(-1, 3))
    u = rng.random()
    c: int | float = int(rng.integers(1, min(40, max(n - 1, 1)) + 1))
    if u < 0.2:
        c = float(rng.uniform(0.05, 0.999))
    elif u < 0.25 and n <= 150:
        c = max(1, n - int(rng.integers(0, 3)))
    elif u < 0.3 and n <= 150:
        c = max(1, int(n * rng.uniform(0.5, 1)))
    tol = 10.0 ** rng.uniform(-10, -2)
    text = f"{kernel if name == 'laplacian' else name} {p} {data} n={n} d={d} {X.dtype} c={c:.4g} tol={tol:.1e}"
    return Problem(X, kernel, p, c, tol, text, reference(kernel, X, p))


def gram_long(kernel, X, p, Y=None):
    """(exact kernel matrix in longdouble, bound on the error of its entries)."""
    Z = X if Y is None else Y
    if isinstance(kernel, Laplacian):
        return kernel.block(X.astype(np.float64), Z.astype(np.float64)).astype(np.longdouble), 0.0
    A, B = X.astype(np.longdouble), Z.astype(np.longdouble)
    if kernel == "linear":  # the same after centring
        A, B = A - A.mean(axis=0), B - A.mean(axis=0)
    K, relative = exact_matrix(kernel, p, A, B)
    return K, float(relative * np.abs(K).max())


def reference(kernel, X, p):
    return spectrum(*gram_long(kernel, X, p))


def spectrum(K, entry_error=0.0, w=None, center=True):
    """Reference for W^(1/2) (I - 1 w'/s) K (I - w 1'/s) W^(1/2) of a longdouble K, s the sum of the weights."""
    w = np.ones(len(K), dtype=LONG) if w is None else w.astype(LONG)
    K, w = K[np.ix_(w > 0, w > 0)].astype(LONG), w[w > 0]
    total, root = w.sum(), np.sqrt(w)
    means = K @ w / total * center
    Kc = root[:, None] * (K - means - means[:, None] + w @ means / total) * root
    largest, unit = np.abs(K).max(), np.abs(Kc).max() or LONG(1)
    narrow = np.asarray((Kc + Kc.T) / (2 * unit), dtype=np.float64)
    values, vectors = scipy.linalg.eigh(narrow, driver="evd")  # "evr" errs five times more
    size, trace = unit * np.abs(values).max(), np.trace(Kc)
    whole = total * (entry_error + 8 * LONG_UNIT * largest)
    weighed = (root[:, None] * K * root) / (largest or 1)
    return Reference(
        values=values[::-1] * unit,
        vectors=vectors[:, ::-1],
        trace=trace,
        trace_error=whole + UNIT * abs(trace),
        size=size,
        norm_K=largest * np.sqrt((weighed**2).sum()),
        largest=largest,
        error=whole + UNIT * (unit * np.linalg.norm(narrow) + 20 * size),
    )


def routes(given):
    """(label, keywords) of every way to force."""
    found = [("dense", {"method": "dense"}), ("krylov", {"method": "krylov"}), ("auto", {})]
    if given.kernel != "tanh":
        # about a thousand features at most: what grows beyond says the same, and an eigensolver of 8000 takes a minute
        found += [
            (f"features {name}", {"method": "features", "features": name, "memory_limit": "64MB"})
            for name in MAPS
            if name != "fourier" or given.X.shape[1] <= 3
        ]
    return found


def check_eigenvalues(model, exact):
    """How far, over the size of Kc, a true eigenvalue lies outside its interval."""
    low, high = model.eigenvalue_bounds.astype(LONG).T
    true = np.zeros(max(len(low), len(exact.values)), dtype=LONG)
    true[: len(exact.values)] = exact.values
    outside = np.maximum(low - true[: len(low)], true[: len(low)] - high).max()
    yield "eigenvalues", exact.excess(outside - exact.error)
    outside = np.maximum(low - model.eigenvalues, model.eigenvalues - high).max()
    yield "estimates", exact.excess(outside - exact.error)


def check_trace(model, exact, count=None):
    """``count``: the sum of the weights."""
    by = (model.n_samples if count is None else count) - model.center
    low, high = (LONG(x) * by for x in model.total_variance_bounds)
    outside = max(low - exact.trace, exact.trace - high)
    yield "trace", exact.excess(outside - exact.trace_error - 4 * UNIT * abs(exact.trace))


def check_angles(model, exact):
    """The sine of the angle between the returned vectors of a cluster and the true subspace, beyond its bound."""
    c = model.n_components
    coeff = np.asarray(model.coeff, dtype=np.float64)
    Q = coeff / np.linalg.norm(coeff, axis=0)
    single = 4e-7 * np.sqrt(c) if model.dtype == np.float32 else 0.0
    values = exact.values
    for label in np.unique(model.clusters):
        mine = np.flatnonzero(model.clusters == label)
        bound = float(np.sin(model.angle_bounds[mine[0]]))
        if bound >= 1.0:
            continue
        first, last = mine[0], mine[-1]
        if last == c - 1:  # the cluster may go on beyond the components returned
            last = len(values) - 1
            while last > mine[-1] and values[mine[-1]] - values[last] > 4 * _width(model, mine):
                last -= 1
        true = exact.vectors[:, first : last + 1]
        sine = np.linalg.norm(Q[:, mine] - true @ (true.T @ Q[:, mine]), 2)
        above = values[first - 1] - values[first] if first else np.inf
        below = values[last] - values[last + 1] if last + 1 < len(values) else np.inf
        if not min(above, below) > 0:
            continue
        # the reference's vectors, and orthonormality of the columns that are compared
        own = 2 * exact.error / min(above, below) + 200 * UNIT * np.sqrt(len(Q)) + single
        yield "angles", float(sine - bound - own) if own < 0.1 else -1.0


def _width(model, mine):
    low, high = model.eigenvalue_bounds[mine].T
    return float((high - low).max())


def exact_count(given):
    """(fewest, most) components that carry the fraction, within the reference's error."""
    exact = given.reference
    share = np.cumsum(exact.values)
    slack = len(share) * exact.error + exact.trace_error
    fewest = int(np.argmax(share + slack >= given.c * exact.trace)) + 1
    surely = np.flatnonzero(share - slack >= given.c * exact.trace)
    return fewest, int(surely[0]) + 1 if len(surely) else len(share)


def check_count(given, model, caught):
    """As many components as asked for: never fewer unsaid; and for a fraction the exact number where nothing is said.

    A width of tol leaves room for one more than needed, where the sum is within c tol lambda_1 of the fraction.
    """
    k = model.n_components
    texts = "\n".join(str(w.message) for w in caught)
    said = any(w.category is ComponentsWarning for w in caught)
    warned = any(w.category is CertificateWarning for w in caught)
    width = float(np.ptp(model.eigenvalue_bounds, axis=1).max() / model.eigenvalues[0])
    yield "tol", -1.0 if warned else width / given.tol - 1.01
    if isinstance(given.c, int):
        yield "count", float(k != given.c and not said)
        if said and k < len(given.reference.values):
            # "the other eigenvalues are ... (at most 1.2e-3)", rounded to two digits
            exact = given.reference
            most = float(re.search(r"\(at most ([0-9.e+-]+)\)", texts).group(1))
            rounding = 1e-12 * exact.norm_K + exact.error
            yield "what was left out", (float(exact.values[k]) - 1.06 * most - rounding) / exact.size
        return
    fewest, most = exact_count(given)
    yield "too few for the fraction", float(k < fewest and not said)
    if not caught:
        exact = given.reference
        share = np.cumsum(exact.values)[:k]
        room = 2 * k * given.tol * exact.size
        more = k > most and share[most - 1] - given.c * exact.trace > room
        yield "too many for the fraction", float(more)


def check_projection(given, model, folder):
    """Scores are the projections of the training rows, coefficients sum to zero, a file changes no bit."""
    exact = given.reference
    n = model.n_samples
    score = np.asarray(model.score, dtype=np.float64)
    single = 4e-6 if model.dtype == np.float32 else 0.0
    projected = fk.kpca_project(model, given.X, n_threads=1)
    far = np.abs(projected - score) * np.sqrt(model.eigenvalues)
    yield "projection", float(far.max() / exact.norm_K) - 1e-12 - single
    coeff = np.asarray(model.coeff, dtype=np.float64)
    allowed = 64 * UNIT * (n * np.sqrt(exact.largest) / model.eigenvalues + np.abs(coeff).sum(axis=0))
    allowed += single * np.abs(coeff).sum(axis=0)
    yield "coefficients sum to zero", float(np.max(np.abs(coeff.sum(axis=0)) - allowed))
    if isinstance(given.kernel, str):
        path = Path(folder) / "model.kpca"
        fk.save(model, path, overwrite=True, scores=True)
        again = fk.load(path)
        same = np.array_equal(fk.kpca_project(again, given.X, n_threads=1), projected)
        same &= all(
            np.array_equal(getattr(again, what), getattr(model, what))
            for what in ("eigenvalues", "eigenvalue_bounds", "angle_bounds", "clusters", "score", "coeff")
        )
        yield "the same bits from a file", float(not same)


def every_route(rng, asked):
    """The attack on ``kpca``: one problem through every route."""
    given = problem(rng, asked.largest)
    exact, projected = given.reference, int(rng.integers(0, 12))
    for i, (label, keywords) in enumerate([] if exact.is_constant else routes(given)):
        yield label, given.name, None
        options = {"tol": given.tol, "n_threads": 1} | keywords | given.parameters
        try:
            model, caught = quiet(fk.kpca, given.X, given.kernel, given.c, **options)
        except ValueError as error:
            # only what a route cannot do may be refused, and "auto" and "dense" can do everything that has an answer
            assert label not in ("auto", "dense") or not exact.has_answer(given.c), error
            yield label, given.name, f"{type(error).__name__}: {error}"
            continue
        found = [*check_eigenvalues(model, exact), *check_trace(model, exact), *check_angles(model, exact)]
        found += check_count(given, model, caught)
        if i == projected:
            found += check_projection(given, model, asked.folder)
        yield label, given.name, found


# Clusters at the top -------------------------------------------------------------------------------------------


def clustered_matrix(rng, most=400):
    """A semidefinite matrix whose largest eigenvalues are repeated, exactly or nearly."""
    n = int(rng.integers(20, most + 1))
    multiplicity = int(rng.integers(2, 9))
    tail = 0.9 * np.exp(-rng.uniform(0.01, 0.5) * np.arange(n - 1 - multiplicity))
    values = np.concatenate([np.ones(multiplicity), tail])
    if rng.random() < 0.3:  # a second one
        k = int(rng.integers(2, 5))
        values[multiplicity : multiplicity + k] = values[multiplicity]
    if rng.random() < 0.5:  # nearly repeated
        values[:multiplicity] -= 10.0 ** rng.uniform(-15, -5) * rng.random(multiplicity)
    return with_eigenvalues(rng, values, centred=True) + rng.uniform(0, 2) / n


def cluster(rng, asked, method):
    """The attack on multiplicities: each is right, or there is a warning."""
    K = clustered_matrix(rng, asked.largest)
    exact = spectrum(K)
    c, tol = int(rng.integers(1, 12)), 10.0 ** rng.uniform(-9, -3)
    yield method, f"n={len(K)} c={c} tol={tol:.1e}", None
    model, caught = quiet(fk.kpca, K, "precomputed", c, method=method, tol=tol, n_threads=1)
    true = exact.values[: model.n_components]
    right = model.n_components == c and bool(np.max(np.abs(model.eigenvalues - true)) <= tol * exact.size + exact.error)
    warned = any(issubclass(w.category, CertificateWarning) for w in caught)
    yield method, "", [*check_eigenvalues(model, exact), ("a silent miss", float(not right and not warned))]


# Features --------------------------------------------------------------------------------------------------------


def feature_matrix(rng, asked):
    """The attack on ``features``: residual traces bound what is left out, which is semidefinite."""
    given = problem(rng, 300)
    if given.kernel == "tanh":
        return
    name = str(rng.choice(["auto", *MAPS]))
    yield name, given.name, None
    try:
        F = fk.features(
            given.X, given.kernel, tol=given.tol, features=name, max_features=2000, n_threads=1, **given.parameters
        )
    except ValueError as error:
        assert "tol" in str(error)
        yield name, given.name, str(error)
        return
    Phi = F @ np.eye(F.shape[1])
    X = given.X.astype(np.longdouble)
    if given.kernel == "linear":  # features of the rows as they are, uncentred
        K = X @ X.T
        entry = LONG_UNIT * (X.shape[1] + 4) * float(np.abs(K).max())
    else:
        K, entry = gram_long(given.kernel, given.X, given.parameters)
    n, trace = len(K), float(np.trace(K))
    left = float(np.trace(K) - np.sum(Phi.astype(np.longdouble) ** 2))
    # products with a Fourier map are made by transforms, of an accuracy of their own
    rounding = 2 * (F.map.rounding + getattr(F.map, "transform_error", 0.0)) * trace + n * entry
    E = np.asarray(K - Phi.astype(np.longdouble) @ Phi.T.astype(np.longdouble), dtype=np.float64)
    lowest = float(np.linalg.eigvalsh((E + E.T) / 2)[0])
    allowed = F.map.defect_norm(n, trace) + rounding + 4 * UNIT * np.linalg.norm(E)
    yield (
        type(F.map).__name__,
        given.name,
        [
            ("residual trace is a bound", (left - F.residual_trace - rounding) / trace),
            ("residual trace within tol", F.residual_trace / trace / given.tol - 1.0),
            ("semidefinite up to defect", (-lowest - allowed) / trace),
        ],
    )
