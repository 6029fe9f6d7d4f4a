"""Random problems over all decades of float64, for ``kpca`` and ``gram``: a true interval, or a refusal in words.

Used by tests/fit/test_ranges.py (a fraction) and tests/attacks/attack_kpca.py (full scale). Rows, lengths, scales,
offsets and factors go from 1e-300 to 1e300. An answer is compared with longdouble arithmetic, whose exponents reach
1e4932, so that nothing of a case that is answered can under- or overflow in the reference. Allowed besides an answer is
a ValueError that is not about the contract of a kernel of ours; a raw OverflowError, LinAlgError or RuntimeWarning,
NaN, or an interval that does not hold, is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from attack_cases import MAPS, UNIT, quiet
from exact_kernels import LONG_UNIT, exact_values
from reference import center

import fastkpca as fk
from fastkpca.base.checks import Randomness
from fastkpca.errors import (
    KernelParameterError,
    NotConvergedError,
    NoVarianceError,
    PluginError,
)
from fastkpca.rows.summary import summarize
from fastkpca.rows.view import Rows

Long = np.longdouble
OURS = ("gaussian", "linear", "polynomial", "polynomial", "tanh")
CONTRIB = ("laplacian", "matern", "matern", "rational_quadratic", "cosine")
ORDERS = (0.5, 1.5, 2.5, 0.1, 0.3, 0.7, 1.0, 4.0, 49.0, np.inf)


@dataclass
class RangeCase:
    """Input of one call, and the kernel matrix in longdouble with the error of its entries."""

    X: np.ndarray
    kernel: object
    c: int
    tol: float
    matrix: np.ndarray
    entry_error: np.longdouble
    name: str


# Random cases ---------------------------------------------------------------------------------------------------


def _decades(rng, low=-300, high=300):
    return 10.0 ** rng.uniform(low, high)


def _near(rng, value, decades=3.0):
    """A positive float64 about ``value`` (longdouble), or any at all."""
    if rng.random() < 0.15:
        return _decades(rng)
    return float(np.clip(value * Long(10) ** Long(rng.uniform(-decades, decades)), Long(1e-307), Long(1e307)))


def _part(rng, size, small, names):
    """A built-in or contrib kernel for rows of this size."""
    name = str(rng.choice(names))
    p = {}
    if name == "gaussian":
        p = {"sigma": _near(rng, size)}
    elif name == "laplacian":
        p = {"length_scale": _near(rng, size)}
    elif name == "matern":
        nu = float(rng.choice(ORDERS)) if small else float(rng.choice([0.5, 1.5, 2.5, np.inf]))
        p = {"nu": nu, "length_scale": _near(rng, size)}
    elif name == "rational_quadratic":
        p = {"alpha": 10.0 ** rng.uniform(-4, 7), "length_scale": _near(rng, size)}
    elif name in ("polynomial", "tanh"):
        scale = _near(rng, 1 / size**2)
        offset = _near(rng, Long(scale) * size**2, 20.0) if rng.random() < 0.7 else 0.0
        p = {"scale": scale, "offset": offset}
        if name == "polynomial":
            p["degree"] = int(rng.integers(1, 7) if rng.random() < 0.8 else rng.integers(7, 21))
            if rng.random() < 0.3:  # offset ** (degree / 2) about the smallest number
                p["offset"] = 10.0 ** (rng.uniform(-330, -290) * 2 / p["degree"])
        elif rng.random() < 0.5:
            p = {"scale": -p["scale"] if rng.random() < 0.3 else p["scale"], "offset": float(rng.uniform(-2, 2))}
    return fk.get_kernel(name, **p)


def _combined(rng, size, small, names, X):
    """(kernel, longdouble matrix, error of its entries) of one kernel or a combination."""
    kernel = _part(rng, size, small, names)
    for _ in range(2 if rng.random() < 0.3 else 0):
        u = rng.random()
        if u < 0.35:
            largest = np.abs(exact_values(kernel, X)[0]).max()
            kernel = _near(rng, 1 / max(largest, Long("1e-4000")), 30.0) * kernel
        else:
            other = _part(rng, size, small, names)
            kernel = kernel + other if u < 0.7 else kernel * other
    K, error = exact_values(kernel, X)
    return kernel, K, error + 2 * LONG_UNIT * np.abs(K).max()


def _rows(rng, n, d):
    u = rng.random()
    X = rng.standard_normal((n, d))
    if u < 0.15:
        X += 10.0 ** rng.uniform(1, 6)
    elif u < 0.3:  # columns of very different sizes
        X *= 10.0 ** rng.uniform(-80, 0, d)
    elif u < 0.4:  # and rows
        X *= 10.0 ** rng.uniform(-150, 0, (n, 1))
    with np.errstate(over="ignore"):
        X = X / np.abs(X).max() * (_decades(rng, -142, 142) if rng.random() < 0.8 else _decades(rng, -307, 307))
    if rng.random() < 0.1:
        X = (X / np.abs(X).max() * 10.0 ** rng.uniform(-44, 38)).astype(np.float32)
    return X if np.abs(X).max() > 0 else np.ones((n, d))


def range_case(rng, contrib=True):
    """A random problem, with its matrix in longdouble; None where the parameters are refused in words."""
    small = rng.random() < 0.5  # general orders of Bessel functions are slow in many digits
    n = int(rng.integers(2, 9)) if small else int(rng.integers(2, 61))
    d = int(rng.choice([1, 2, 3, 5, 9, 20, 40]))
    X = _rows(rng, n, d)
    wide = X.astype(Long)
    try:
        kernel, K, error = _combined(rng, np.abs(wide).max(), small, OURS + CONTRIB if contrib else OURS, wide)
    except KernelParameterError:
        return None
    if not (np.isfinite(K).all() and K.any()):  # beyond longdouble
        return None
    c, tol = int(rng.integers(1, min(6, n))), 10.0 ** rng.uniform(-12, -2)
    name = f"{kernel!r} {X.dtype} n={n} d={d} |X|={np.abs(X).max():.3g} c={c} tol={tol:.1e}"
    return RangeCase(X, kernel, c, tol, K, error, name)


def range_routes(case):
    """(label, keywords) of every way to force."""
    found = [("dense", {"method": "dense"}), ("krylov", {"method": "krylov"}), ("auto", {})]
    if case.kernel.positive_semidefinite:
        names = [*MAPS, "unit rows"] if "cosine" in case.name.lower() else MAPS
        found += [(f"features {x}", {"features": x, "memory_limit": "64MB"}) for x in names]
    return found


# Checks ---------------------------------------------------------------------------------------------------------


class Spectrum:
    """Eigenvalues of the centred longdouble matrix: LAPACK's of it in units of its largest entry."""

    def __init__(self, case):
        K = case.matrix
        centred = center(K)
        self.unit = np.abs(centred).max() or Long(1)
        narrow = np.asarray((centred + centred.T) / (2 * self.unit), dtype=np.float64)
        values = scipy.linalg.eigvalsh(narrow)[::-1]
        self.values = values.astype(Long) * self.unit
        self.trace = np.trace(centred)
        n = len(K)
        entry = case.entry_error + 4 * LONG_UNIT * np.abs(K).max()
        size = np.abs(values).max()
        self.error = n * entry + UNIT * (np.linalg.norm(narrow) + 20 * size) * self.unit
        self.trace_error = n * entry + UNIT * np.abs(self.trace)
        # by how much the reference may be off where it matters not
        self.size = max(np.abs(self.values).max(), self.error)


def call(function, *arguments, **keywords):
    """(result, None), or (None, the refusal); what is neither is raised."""
    try:
        return quiet(function, *arguments, **keywords)[0], None
    except PluginError as error:
        raise AssertionError(f"a kernel of ours is blamed: {error}") from error
    except (ValueError, NotConvergedError) as error:
        if isinstance(error, np.linalg.LinAlgError):
            raise
        return None, error


def check_components(case, exact, model):
    """(promise, excess) of one model."""
    names = ("eigenvalues", "eigenvalue_bounds", "angle_bounds", "latent", "total_variance_bounds")
    for what in (*names, *(["explained"] if case.kernel.positive_semidefinite else [])):
        yield f"{what} are finite", float(not np.isfinite(getattr(model, what)).all())
    yield "scores are finite", float(not np.isfinite(model.score).all())
    low, high = model.eigenvalue_bounds.astype(Long).T
    true = exact.values[: len(low)]
    outside = np.max(np.maximum(low - true, true - high))
    yield "eigenvalues", float((outside - exact.error) / exact.size)
    n = len(case.X)
    low, high = (Long(x) * (n - 1) for x in model.total_variance_bounds)
    outside = max(low - exact.trace, exact.trace - high)
    yield "trace", float((outside - exact.trace_error - 4 * UNIT * abs(exact.trace)) / exact.size)


def check_refusal(exact, error):
    """What a refusal says must hold too."""
    if isinstance(error, NoVarianceError):
        most = Long(error.bound) * (1 + 1e-9) + Long(1e-290)  # below that there are no numbers to speak of
        yield "no variance", float((exact.values[0] - exact.error - most) / exact.size)
    else:
        yield "no NaN in the text", float("nan" in str(error).lower().split())


def run_components(case):
    """(label, refusal or "", [(promise, excess)]) for every route."""
    exact = Spectrum(case)
    for label, keywords in range_routes(case):
        try:
            model, error = call(fk.kpca, case.X, case.kernel, case.c, tol=case.tol, n_threads=1, **keywords)
        except Exception as fault:
            yield label, "", [(f"{type(fault).__name__}: {fault}"[:150], np.inf)]
            continue
        if error is not None:
            yield label, f"{type(error).__name__}: {error}", list(check_refusal(exact, error))
        else:
            yield label, "", list(check_components(case, exact, model))


def run_gram(case, rng):
    """(label, refusal or "", [(promise, excess)]) for an exact product and one with ``tol``."""
    n = len(case.X)
    U = rng.standard_normal((n, 2))
    U[:, 1] = 0.0
    U[int(rng.integers(n)), 1] = 1.0
    exact = case.matrix @ U.astype(Long)
    largest = np.abs(case.matrix).max()
    weight = np.abs(U).sum(axis=0)
    for tol in (None, float(np.clip(case.tol * max(largest, Long(1e-300)), Long(1e-15), Long(0.5)))):
        label = "gram exact" if tol is None else "gram tol"
        try:
            K, error = call(fk.gram, case.X, case.kernel, tol=tol, n_threads=1)
            product, error = (None, error) if error is not None else call(K.__matmul__, U)
        except Exception as fault:
            yield label, "", [(f"{type(fault).__name__}: {fault}"[:150], np.inf)]
            continue
        if error is not None:
            yield label, f"{type(error).__name__}: {error}", []
            continue
        rng_rows = np.random.default_rng(0)
        _, data = summarize(
            Rows(case.X), shift=K.kernel.translation == "kernel", randomness=Randomness(rng_rows), any_size=True
        )
        stated = K.kernel.entry_error(data, np.dtype(np.float64))
        if stated is None:
            continue
        allowed = (Long(K.error_bound) + Long(stated)) * weight + (n + 8) * UNIT * (
            np.abs(case.matrix) @ np.abs(U)
        ).max(axis=0)
        allowed = allowed + case.entry_error * weight
        off = np.abs(product.astype(Long) - exact)
        size = max(largest, Long("1e-320")) * weight.max()
        yield (
            label,
            "",
            [
                ("product is finite", float(not np.isfinite(product).all())),
                ("product", float(np.max(off - allowed) / size)),
            ],
        )
