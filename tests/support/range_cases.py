"""Random problems over all decades of float64, for ``kpca`` and ``gram``: a true interval, or a refusal in words.

Rows, lengths, scales, offsets and factors go from 1e-300 to 1e300. An answer is compared with longdouble arithmetic,
whose exponents reach 1e4932, so that nothing of a case that is answered can under- or overflow in the reference.
Allowed besides an answer is a ValueError that is not about the contract of a kernel of ours; a raw OverflowError,
LinAlgError or RuntimeWarning, NaN, or an interval that does not hold, is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from attack_cases import MAPS, check_eigenvalues, check_trace, spectrum
from exact_kernels import LONG, LONG_UNIT, exact_values
from quiet import silent

import fastkpca as fk
from fastkpca.errors import KernelParameterError, NotConvergedError, NoVarianceError, PluginError

NAMES = ("gaussian", "linear", "polynomial", "polynomial", "tanh")
NAMES += ("laplacian", "matern", "matern", "rational_quadratic", "cosine")
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
    return float(np.clip(value * LONG(10) ** LONG(rng.uniform(-decades, decades)), LONG(1e-307), LONG(1e307)))


def part(rng, size, small):
    """A built-in or contrib kernel for rows of this size."""
    name = str(rng.choice(NAMES))
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
        offset = _near(rng, LONG(scale) * size**2, 20.0) if rng.random() < 0.7 else 0.0
        p = {"scale": scale, "offset": offset}
        if name == "polynomial":
            p["offset"] *= float(rng.choice([1.0, 1.0, 1.0, -1.0]))
            p["degree"] = int(rng.integers(1, 7) if rng.random() < 0.8 else rng.integers(7, 21))
            if rng.random() < 0.3:  # offset ** (degree / 2) about the smallest number
                p["offset"] = 10.0 ** (rng.uniform(-330, -290) * 2 / p["degree"])
        elif rng.random() < 0.5:
            p = {"scale": -p["scale"] if rng.random() < 0.3 else p["scale"], "offset": float(rng.uniform(-2, 2))}
    return fk.get_kernel(name, **p)


def _combined(rng, size, small, X):
    """(kernel, longdouble matrix, error of its entries) of one kernel or a combination."""
    kernel = part(rng, size, small)
    for _ in range(2 if rng.random() < 0.3 else 0):
        u = rng.random()
        if u < 0.35:
            largest = np.abs(exact_values(kernel, X)[0]).max()
            kernel = _near(rng, 1 / max(largest, LONG("1e-4000")), 30.0) * kernel
        else:
            other = part(rng, size, small)
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


def range_case(rng):
    """A random problem, with its matrix in longdouble; None where the parameters are refused in words."""
    small = rng.random() < 0.5  # general orders of Bessel functions are slow in many digits
    n = int(rng.integers(2, 9)) if small else int(rng.integers(2, 61))
    d = int(rng.choice([1, 2, 3, 5, 9, 20, 40]))
    X = _rows(rng, n, d)
    wide = X.astype(LONG)
    try:
        kernel, K, error = _combined(rng, np.abs(wide).max(), small, wide)
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


def call(function, *arguments, **keywords):
    """(result, None), or (None, the refusal); what is neither is raised."""
    try:
        return silent(function, *arguments, **keywords), None
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
    yield from check_eigenvalues(model, exact)
    yield from check_trace(model, exact)


def check_refusal(exact, error):
    """What a refusal says must hold too."""
    if isinstance(error, NoVarianceError):
        most = LONG(error.bound) * (1 + 1e-9) + LONG(1e-290)  # below that there are no numbers to speak of
        assert exact.excess(exact.values[0] - exact.error - most) <= 0, "there is variance"
    assert "nan" not in str(error).lower().split()


def decades(rng, asked):
    """The attack: one case through every route."""
    case = range_case(rng)
    if case is None:
        yield "parameters", "", "refused or beyond longdouble when the kernel was made"
        return
    exact = spectrum(case.matrix, case.entry_error)
    for label, keywords in range_routes(case):
        yield label, case.name, None
        model, error = call(fk.kpca, case.X, case.kernel, case.c, tol=case.tol, n_threads=1, **keywords)
        if error is not None:
            check_refusal(exact, error)
            yield label, case.name, f"{type(error).__name__}: {error}"
        else:
            yield label, case.name, check_components(case, exact, model)
