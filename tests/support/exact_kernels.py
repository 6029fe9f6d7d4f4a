"""Kernel matrices in more digits than float64, by formulas that share no code with the package."""

import mpmath
import numpy as np

LONG = np.longdouble
LONG_UNIT = float(np.finfo(LONG).eps) / 2


class Long:
    """Numbers of 64 bits."""

    unit = LONG_UNIT
    exp, sqrt, tanh, log1p = np.exp, np.sqrt, np.tanh, np.log1p

    @staticmethod
    def numbers(X):
        return np.asarray(X).astype(LONG)


class Multiple:
    """mpmath's numbers, of as many digits as it is told."""

    unit = 0.0
    exp, sqrt, tanh, log1p = (np.frompyfunc(f, 1, 1) for f in (mpmath.exp, mpmath.sqrt, mpmath.tanh, mpmath.log1p))

    @staticmethod
    def numbers(X):
        X = np.asarray(X)  # of objects where they are such numbers already, which may not be rounded
        return np.frompyfunc(mpmath.mpf, 1, 1)(X if X.dtype == object else X.astype(np.float64))


def exact_matrix(name, p, X, Y=None, arithmetic=Long):
    """(k(x_i, y_j) of a kernel by its name, error of an entry over the largest); of differences where it is one."""

    def number(x):
        return arithmetic.numbers([x])[0]

    A = arithmetic.numbers(X)
    B = A if Y is None else arithmetic.numbers(Y)
    d, unit = A.shape[1], arithmetic.unit
    widths = arithmetic.numbers(np.broadcast_to(p.get("sigma", p.get("length_scale", 1.0)), d))
    differences = ((x[:, None] - y[None, :]) / w for x, y, w in zip(A.T, B.T, widths, strict=True))
    if name == "laplacian":
        return arithmetic.exp(-sum(map(abs, differences))), unit * (d + 8)
    if name == "gaussian":
        return arithmetic.exp(-sum(x * x for x in differences) / 2), unit * (d + 8)
    if name == "matern":
        r = arithmetic.sqrt(sum(x * x for x in differences))
        return _matern(p["nu"], r, arithmetic), 64 * unit * (d + 8)
    if name == "rational_quadratic":
        alpha = number(p["alpha"])
        z = sum(x * x for x in differences) / (2 * alpha)
        return arithmetic.exp(-alpha * arithmetic.log1p(z)), unit * (d + 16)
    inner = A @ B.T
    if name == "cosine":
        a, b = (arithmetic.sqrt((Z * Z).sum(axis=1)) for Z in (A, B))
        outer = a[:, None] * b[None, :]
        return np.where(outer > 0, inner / np.where(outer > 0, outer, number(1.0)), 0 * inner), unit * (4 * d + 16)
    if name == "linear":
        return inner, unit * (d + 6)
    argument = number(p.get("scale", 1.0)) * inner + number(p.get("offset", 1.0 if name == "polynomial" else 0.0))
    if name == "polynomial":
        with np.errstate(over="ignore"):
            return argument ** p["degree"], unit * (d + p["degree"] + 4) * p["degree"]
    size = abs(number(p["scale"])) * abs(inner).max() + abs(number(p["offset"]))
    return arithmetic.tanh(argument), unit * ((d + 4) * min(size, number(1e4)) + 8)


def exact_values(kernel, X, Y=None, centred=False, arithmetic=Long):
    """(k(x_i, y_j), bound on their errors) of a kernel object, a sum, a product, a multiple of such, or one on columns.

    ``centred``: only what is left after centring counts, of the rows with themselves.
    """
    name, p, unit = type(kernel).__name__, kernel.get_parameters(), arithmetic.unit

    def largest(K):
        return abs(K).max()

    if name == "ScaledKernel":
        K, error = exact_values(kernel.kernel, X, Y, centred, arithmetic)
        return arithmetic.numbers([kernel.factor])[0] * K, kernel.factor * error
    if name == "ColumnKernel":  # columns by number, or by names that end with it; a width for each
        some = [int(x[1:]) if isinstance(x, str) else x for x in kernel.columns] or slice(None)
        widths = arithmetic.numbers(kernel.widths or 1.0)
        origin = (
            arithmetic.numbers(X)[:1] if kernel.translation == "kernel" else 0
        )  # differences come before they are divided
        X, Y = (None if Z is None else (arithmetic.numbers(Z) - origin)[:, some] / widths for Z in (X, Y))
        return exact_values(kernel.kernel, X, Y, centred, arithmetic)
    if name in ("SumKernel", "ProductKernel"):
        parts = [exact_values(x, X, Y, centred and name == "SumKernel", arithmetic) for x in kernel.parts]
        K, error = parts[0]
        for more, other in parts[1:]:
            if name == "SumKernel":
                K, error = K + more, error + other
            else:
                K, error = K * more, error * largest(more) + other * largest(K) + error * other
        return K, error + unit * largest(K)
    A = arithmetic.numbers(X)
    if name == "Linear" and centred:
        A = A - A.sum(axis=0) / len(A)
    named = {"RationalQuadratic": "rational_quadratic"}.get(name, name.lower())
    K, relative = exact_matrix(named, p, A, Y, arithmetic)
    return K, relative * largest(K)


def _matern(nu, r, arithmetic):
    if np.isinf(nu):
        return arithmetic.exp(-(r**2) / 2)
    t = arithmetic.sqrt(2 * arithmetic.numbers([nu])[0]) * r
    closed = {0.5: 1 + 0 * t, 1.5: 1 + t, 2.5: 1 + t + t * t / 3}.get(nu)
    if closed is not None:
        return closed * arithmetic.exp(-t)
    values = np.ones_like(t)
    with mpmath.workdps(40):
        for i, j in zip(*np.nonzero(t > 0), strict=True):
            if t[i, j] > 11000:
                values[i, j] = 0
                continue
            mantissa, exponent = np.frexp(t[i, j])
            high = float(mantissa)
            at = (mpmath.mpf(high) + mpmath.mpf(float(mantissa - LONG(high)))) * mpmath.mpf(2) ** int(exponent)
            k = 2 * (at / 2) ** mpmath.mpf(nu) * mpmath.besselk(nu, at) / mpmath.gamma(nu)
            values[i, j] = LONG(mpmath.nstr(k, 25))
    return values
