"""The conformance kit: every kernel that there is passes, and each check catches a kernel broken in just that way."""

from __future__ import annotations

import threading
import time
from collections import Counter

import numpy as np
import pytest
from child import child
from good_kernels import Good, GoodMap, GoodProduct, Plain
from kernel_rows import own_rows
from scipy.spatial.distance import cdist

import fastkpca as fk
from fastkpca import testing
from fastkpca.kernels import Cost, FeatureMap, Kernel, KernelParameterError, Moments, Offer, Summation
from fastkpca.testing import CHECKS, ConformanceError, check_declarations, check_kernel, parametrize_with_kernel_checks

RNG = np.random.default_rng(11)
ROWS = RNG.standard_normal((70, 3))
GRAM = ROWS @ ROWS.T

KERNELS = [
    "linear",
    fk.get_kernel("polynomial", degree=1, offset=0.0),
    fk.get_kernel("polynomial", degree=2, offset=0.5, scale=0.3),
    "polynomial",
    fk.get_kernel("polynomial", degree=3, offset=-1.0),
    "gaussian",
    fk.get_kernel("gaussian", sigma=0.3),
    fk.get_kernel("gaussian", gamma=0.02),
    "tanh",
    fk.get_kernel("tanh", scale=-0.5, offset=1.0),
]


@parametrize_with_kernel_checks(KERNELS)
def test_every_kernel_passes(kernel, check):
    """Those of kernels_contrib do in tests/contrib/test_contrib.py."""
    assert check(kernel) in ("passed", "not offered")


@pytest.mark.parametrize("scale", [1e-6, 1e9])
def test_an_exact_product_may_round_as_its_values_are_large(scale):
    rows = own_rows("intersection", scale * ROWS)
    assert testing.check_summation_bound("intersection", rows) == "passed"


@parametrize_with_kernel_checks(["precomputed"], GRAM)
def test_a_matrix_passes(kernel, check):
    assert check(kernel) in ("passed", "not offered")


def test_functions_and_objects_pass():
    report = check_kernel(fk.get_kernel(product_of_rows, positive_semidefinite=True))
    assert report["check_positive_semidefinite"] == "passed"
    assert report["check_parameters"] == report["check_feature_map_residual"] == "not offered"


def test_maps_of_combined_kernels_and_true_outside_errors_pass():
    G, L = fk.get_kernel("gaussian", sigma=2.0), fk.get_kernel("linear")
    for kernel in (0.25 * G, 3.0 * (L * G), 0.7 * (G + L)):
        assert testing.check_moments(kernel) == testing.check_feature_map_state(kernel) == "passed"
    narrow = fk.get_kernel("gaussian", sigma=0.3)  # Fourier features, which repeat
    for kernel in (3.0 * narrow, narrow + L, narrow * L):
        assert testing.check_feature_map_outside(kernel, ROWS[:, :1]) == "passed"
    assert testing.check_feature_map_outside(WithTold()) == "passed"


def product_of_rows(X, Y):
    return X @ Y.T


# A kernel that offers everything ------------------------------------------------------------------------------------


class GoodWithGradient(Good):
    """Apart from Good, whose broken kinds would otherwise break its gradient too."""

    def gradient_weights(self, X, Y, K):
        return K / self.sigma**2


@parametrize_with_kernel_checks([GoodWithGradient(), GoodWithGradient(sigma=0.7)])
def test_the_good_kernel_passes(kernel, check):
    assert check(kernel) == "passed"


# Kernels broken in just one way -------------------------------------------------------------------------------------

BROKEN = {}
"""Name of a kernel -> (the check that is there for it, what it says, others that cannot but fail too)."""
VALUES = {"check_compiled_tile", "check_feature_map_residual", "check_summation_bound", "check_summation_adjoint"}
VALUES |= {"check_feature_map_outside"}
"""Where values of block are wrong, what is built on the right ones no longer fits them."""


def breaks(check, text, others=()):
    """Decorator of a kernel that is broken, or of a map or a product that makes Good so."""

    def made(cls):
        slot = "map_class" if issubclass(cls, FeatureMap) else "product_class" if issubclass(cls, Summation) else None
        kernel = cls if slot is None else type("With" + cls.__name__, (Good,), {slot: cls, "__module__": __name__})
        globals()[kernel.__name__] = kernel  # so that it pickles
        BROKEN[kernel.__name__] = check, text, set(others)
        return cls

    return made


def broken(name, check, text, others=(), base=Good, /, **body):
    """The same of a class that differs from ``base`` in this alone."""
    breaks(check, text, others)(type(name, (base,), body | {"__module__": __name__}))


@breaks("check_declarations", "api_version is None")
class NoVersion(Good, version=None):
    """Does not say which protocol it was written for."""


broken("OddDeclaration", "check_declarations", "thread_safe is 'yes'", thread_safe="yes")
broken(
    "LeavesNone", "check_parameters", "resolve leaves other at None", parameters={"sigma": None, "other": None}
)  # fmt: skip


@breaks("check_parameters", "unknown parameter is accepted")
class TakesAnything(Good):
    def __init__(self, **parameters):
        super().__init__(**{k: v for k, v in parameters.items() if k in ("sigma", "width")})


@breaks("check_parameters", "takes power, which the class attribute parameters does not list")
class HidesAParameter(Good):
    def __init__(self, power=1.0, **parameters):
        super().__init__(**parameters)
        self.power = power


@breaks("check_parameters", "'sigma' and 'width' are accepted together")
class TwoSpellings(Good):
    def __init__(self, sigma=None, width=None, **others):
        super().__init__(sigma=sigma if sigma is not None else width, **others)


broken(
    "HoldsALock", "check_pickling", "cannot pickle", check=lambda self: self.__dict__.update(lock=threading.Lock())
)  # fmt: skip
broken(
    "NeverEqual", "check_pickling", "not equal", {"check_parameters"},
    __eq__=lambda self, other: self is other, __hash__=id,
)  # fmt: skip


@breaks("check_output", "same memory", {"check_symmetry", "check_block_invariance", "check_entry_error"})
class Workspace(Good):
    """Returns its own work array: a later call changes an earlier result."""

    thread_safe = False
    space = np.empty((300, 300))

    def block(self, X, Y):
        out = self.space[: len(X), : len(Y)].astype(X.dtype, copy=False)
        out[...] = super().block(X, Y)
        return out


@breaks("check_symmetry", "k\\(x, y\\) and k\\(y, x\\)", VALUES | {"check_translation"})
class Asymmetric(Good):
    positive_semidefinite = False

    def block(self, X, Y):
        K = super().block(X, Y).astype(np.float64)
        return (K * (1 + 1e-3 * np.tanh(X.sum(axis=1))[:, None] * (K < 1))).astype(X.dtype)


broken(
    "WrongDiagonal", "check_diagonal", "contradicts block: .* differs by 1e-06", {"check_entry_error", "check_dtype"},
    diagonal=lambda self, X: np.full(len(X), 1.0 + 1e-6),
)  # fmt: skip


@breaks("check_block_invariance", "tiles of 1 rows and of 90", VALUES | {"check_symmetry"})
class TileDependent(Good):
    """Scaled by the largest distance in the tile."""

    def block(self, X, Y):
        return np.exp(-cdist(X, Y, "sqeuclidean") / (2 * self.sigma**2) * (1 + 1e-6 * (len(X) > 60))).astype(X.dtype)


broken(
    "AlwaysDouble", "check_dtype", "float32 tiles give float64",
    block=lambda self, X, Y: Good.block(self, X.astype(np.float64), Y.astype(np.float64)).astype(np.float64),
)  # fmt: skip


@breaks("check_strides", "and of their copy: they differ")
class WantsContiguous(Good):
    """Reads its input's memory as if it were in row order."""

    def block(self, X, Y):
        def straight(A):
            if A.flags.c_contiguous:
                return A
            return np.lib.stride_tricks.as_strided(A, A.shape, (A.itemsize * A.shape[1] * 0, abs(A.strides[1])))

        return super().block(straight(X), straight(Y))


@breaks("check_read_only_input", "a call changes its input")
class Writes(Good):
    def diagonal(self, X):
        if X.flags.writeable:
            X[0, 0] = np.nextafter(X[0, 0], 9.0, dtype=X.dtype)
        return super().diagonal(X)


@breaks("check_read_only_input", "read-only")
class WantsWriteable(Good):
    def diagonal(self, X):
        X[...] = X
        return super().diagonal(X)


@breaks("check_finite", "block is not finite")
class NanWhereEqual(Good):
    """0 / 0 where all rows are zero."""

    def block(self, X, Y):
        with np.errstate(invalid="ignore", divide="ignore"):
            x = X / (X != 0).any(axis=1)[:, None]
        return super().block(np.ascontiguousarray(x, dtype=X.dtype), Y)


@breaks("check_finite", "equal rows: block is not finite")
class Overflows(Good):
    """A median heuristic that does not see rows that are all equal."""

    def resolve(self, data):
        return type(self)(sigma=float(np.sqrt(np.trace(data.covariance)))) if self.sigma is None else self

    def block(self, X, Y):
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.exp(-cdist(X, Y, "sqeuclidean") / (2 * np.float64(self.sigma) ** 2)).astype(X.dtype)


broken(
    "NotSemidefinite", "check_positive_semidefinite", "eigenvalue -", (), Plain,
    block=lambda self, X, Y: np.exp(-((cdist(X, Y) / self.sigma) ** 3)).astype(X.dtype),
)  # fmt: skip


@breaks("check_translation", "before and after a shift")
class NotInvariant(Plain):
    def block(self, X, Y):
        weight = [1 / (1 + np.einsum("ij,ij->i", A, A)) for A in (X.astype(float), Y.astype(float))]
        return (super().block(X, Y) * np.outer(*weight)).astype(X.dtype)

    def diagonal(self, X):
        return (1 / (1 + np.einsum("ij,ij->i", X, X))) ** 2


# values of float32 a thousand roundings off, and a bound that does not know
broken(
    "BoldError", "check_entry_error", "float32 values are off", {"check_dtype"},
    block=lambda self, X, Y: Good.block(self, X, Y) * X.dtype.type(1 + 2e-4 * (X.dtype == np.float32)),
)  # fmt: skip


@breaks("check_thread_safety", "eight threads")
class Careless(Good):
    """Writes its distances to one array for all threads."""

    space = np.empty((300, 300))

    def block(self, X, Y):
        squares = self.space[: len(X), : len(Y)]
        squares[...] = cdist(X, Y, "sqeuclidean")
        if threading.active_count() > 4:
            time.sleep(1e-4)
        return np.exp(squares / (-2 * self.sigma**2)).astype(X.dtype)


broken(
    "OtherTile", "check_compiled_tile", "from the values of compiled_tile",
    compiled_tile=lambda self: ("gaussian", {"sigma": 1.0001 * self.sigma}),
)  # fmt: skip
broken(
    "OtherGradient", "check_gradient_weights", "gradient_weights and differences",
    gradient_weights=lambda self, X, Y, K: 1.01 * K / self.sigma**2,
)  # fmt: skip


@breaks("check_feature_map_residual", "exceeds the kernel", {"check_feature_map_outside"})
class LargeMap(GoodMap):
    def features(self, X):
        return 1.0001 * super().features(X)

    def residual(self, X, Phi=None):
        return super().residual(X, self.features(X) / 1.0001)


broken(
    "SmallResidual", "check_feature_map_residual", "no upper bound", {"check_feature_map_outside"}, GoodMap,
    residual=lambda self, X, Phi=None: 0.9 * GoodMap.residual(self, X, Phi),
)  # fmt: skip
broken(
    "NegativeResidual", "check_feature_map_residual", "never negative", {"check_feature_map_outside"}, GoodMap,
    residual=lambda self, X, Phi=None: GoodMap.residual(self, X, Phi) - 1e-3,
)  # fmt: skip
broken(
    "OtherApply", "check_feature_map_products", "apply and Phi C", (), GoodMap,
    apply=lambda self, X, C: self.features(X) @ C * (1 + 1e-4),
)  # fmt: skip
broken(
    "OtherAccumulate", "check_feature_map_products", "accumulate and Phi' U", (), GoodMap,
    accumulate=lambda self, X, U: self.features(X[::-1]).T @ U,
)  # fmt: skip


class Unmerged(Moments):
    def merge(self, other):
        self.count += other.count
        self.residual_trace += other.residual_trace
        return self


class Unweighted(Moments):
    def update(self, X, weights=None):
        super().update(X)


broken("OtherMoments", "check_moments", "merged from tiles", (), GoodMap, new_moments=lambda self: Unmerged(self))
broken("IgnoresWeights", "check_moments", "count of moments", (), GoodMap, new_moments=lambda self: Unweighted(self))


@breaks("check_feature_map_state", "another number of features")
class Forgetful(GoodMap):
    def state(self):
        return {"map": "good", "sigma": self.sigma}, {"points": self.points[:-1]}


@breaks("check_feature_map_state", "another number of features")
class LooseOnly(Good):
    """Its map is offered for a loose tolerance alone, and cannot be read again."""

    map_class = Forgetful

    def feature_maps(self, data, tol, max_features):
        return super().feature_maps(data, tol, max_features) if tol >= 0.1 else []


@breaks("check_feature_map_offers", r"at tol=1\.11e-16, max_features=1: ZeroDivisionError")
class DividesByTol(Good):
    """Its author did not think of the smallest tolerance."""

    def feature_maps(self, data, tol, max_features):
        return [] if max_features < 30 / (tol - 2.0**-53) else super().feature_maps(data, tol, max_features)


@breaks("check_feature_map_offers", "'good' has 30 features, and max_features is 1")
class ManyFeatures(Good):
    def feature_maps(self, data, tol, max_features):
        return [Offer("good", Cost(30, residual=tol), lambda sample: self.map_class(sample[:30], self.sigma))]


broken(
    "Unwritable", "check_feature_map_state", "not JSON serializable", (), GoodMap,
    state=lambda self: ({"map": "good", "sigma": self.sigma, "points": self.points}, {}),
)  # fmt: skip


@breaks("check_summation_bound", "off by .* from the product with .*; its error_bound", {"check_summation_adjoint"})
class RoughProduct(GoodProduct):
    def matmat(self, U):
        return self.K @ U + (1e-11 * np.abs(U).sum(axis=0))

    def rmatmat(self, U):
        return self.matmat(U) if self.symmetric else self.K.T @ U


broken(
    "RoughBound", "check_summation_bound", "error_bound is 0.001; without a tol at most .* is due", (), GoodProduct,
    error_bound=1e-3,
)  # fmt: skip
broken(
    "OneColumn", "check_summation_bound", "is off by", {"check_summation_adjoint"}, GoodProduct,
    matmat=lambda self, U: np.repeat(self.K @ U[:, :1], U.shape[1], axis=1),
)  # fmt: skip
broken(
    "OtherAdjoint", "check_summation_adjoint", "rmatmat of .* is off", (), GoodProduct,
    rmatmat=lambda self, U: self.K.T @ U * (1 + 1e-9),
)  # fmt: skip


class FalselySymmetric(RoughProduct):
    """Within its bound, but not symmetric."""

    def matmat(self, U):
        error = 0.5 * self.error_bound * np.linspace(0, 1, len(self.K))[:, None] * U.sum(axis=0)
        return self.K @ U + (error if self.symmetric else 0.0)


@breaks("check_summation_adjoint", "says that it is symmetric")
class WithFalselySymmetric(Good):
    def summations(self, data_x, data_y, tol):
        def build(X, Y=None):
            made = FalselySymmetric(self.sigma, X, Y)
            made.error_bound = tol
            return made

        return [] if tol is None else [Offer("good", Cost(0), build)]


@breaks("check_feature_map_outside", "outside_error is .* where .* of the fit")
class Periodic(GoodMap):
    """Right among the rows of the fit; farther out features repeat, as those of a Fourier series do."""

    def __init__(self, points, sigma):
        super().__init__(points, sigma)
        self.low, self.high = points.min(axis=0) - 6 * sigma, points.max(axis=0) + 6 * sigma

    def _inside(self, X):
        return self.low + np.mod(X - self.low, self.high - self.low)

    def features(self, X):
        return super().features(self._inside(X))


@breaks("check_feature_map_outside", "exceeds the kernel .*which anywhere or widened")
class FalselyAnywhere(GoodMap):
    """Out there its features are those of another row, and its outside_error does not matter: it says anywhere."""

    anywhere = True

    def __init__(self, points, sigma):
        super().__init__(points, sigma)
        self.reach = 1.5 * np.abs(points).max()

    def features(self, X):
        return super().features(np.clip(X, -self.reach, self.reach))

    def outside_error(self, X):
        return np.where(np.abs(X).max(axis=1) > self.reach, 2.0, 0.0)


class Told(Periodic):
    """The same with an ``outside_error``, and true to it."""

    def outside_error(self, X):
        return np.where((self._inside(X) != X).any(axis=1), 2.0, 0.0)


class WithTold(Good):
    map_class = Told


@pytest.mark.parametrize("name", BROKEN)
def test_the_check_catches_what_it_is_there_for_and_nothing_else(name):
    check, text, others = BROKEN[name]
    kernel = globals()[name]()
    with pytest.raises(ConformanceError, match=text) as caught:
        getattr(testing, check)(kernel)
    assert check in str(caught.value) and name in str(caught.value)
    with pytest.raises(AssertionError, match=check) as caught:
        check_kernel(kernel)
    failed = {failure for failure, _ in caught.value.failures}
    assert check in failed
    assert failed <= {check} | others, caught.value


def test_every_check_has_its_broken_kernel():
    names = [check.__name__ for check in CHECKS]
    assert set(names) == {check for check, _, _ in BROKEN.values()}
    assert set(names) | {"CHECKS", "ConformanceError", "check_kernel", "parametrize_with_kernel_checks"} == set(
        testing.__all__
    )
    assert max(Counter(names).values()) == 1
    assert all(check.__doc__ for check in CHECKS)


def test_rows_that_a_kernel_refuses_are_named_once():
    class Positive(Good):
        api_version, translation = 1, None  # of rows that were shifted some are negative

        def block(self, X, Y):
            if min(X.min(), Y.min()) < 0:
                raise KernelParameterError(f"positive: rows have values down to {min(X.min(), Y.min()):.3g}")
            return super().block(X, Y)

    with pytest.raises(ConformanceError, match="refuses the rows that the checks take by default") as caught:
        check_kernel(Positive(sigma=1.0))
    text = str(caught.value)
    assert "check_kernel(kernel, X)" in text and text.count("positive: rows have values down to") == 1
    assert len(caught.value.failures) > len(CHECKS) / 2
    with pytest.raises(
        ConformanceError, match=r"(?s)positive: rows .*X, 50 to 200 rows that it takes, .*check\(kernel, X\)"
    ):
        testing.check_symmetry(Positive(sigma=1.0))
    with pytest.raises(ConformanceError, match="positive: rows have values down to [-.0-9]*$"):
        testing.check_symmetry(Positive(sigma=1.0), ROWS)
    of_its_own = check_kernel(Positive(sigma=1.0), np.abs(ROWS), skip=["check_pickling"])
    assert of_its_own["check_symmetry"] == "passed" and of_its_own["check_finite"] == "not offered"


@pytest.mark.parametrize("call", [check_kernel, testing.check_symmetry])
@pytest.mark.parametrize(
    ("kernel", "needed"), [("spectrum", "a list of 50 to 200 objects"), ("precomputed", "a matrix")]
)
def test_kernels_without_rows_of_coordinates_say_what_they_need(call, kernel, needed):
    with pytest.raises((ValueError, ConformanceError), match=f"give as X {needed}"):
        call(kernel)


# The two doors ------------------------------------------------------------------------------------------------------


def test_one_error_lists_all_that_failed():
    class Several(Good, version=None):
        def diagonal(self, X):
            return np.full(len(X), 2.0)

    with pytest.raises(ConformanceError, match=r"Several.* fails \d+ of 25 checks") as caught:
        check_kernel(Several())
    lines = str(caught.value).splitlines()
    assert len(lines) == 1 + len(caught.value.failures)
    assert any(line.startswith("  check_declarations: api_version is None") for line in lines)
    diagonal = "  check_diagonal: diagonal contradicts block: k(x, x) = 2, and block returns 1 "
    assert any(line.startswith(diagonal) for line in lines)
    with pytest.raises(ConformanceError) as caught:
        check_kernel(Several(), skip=["check_declarations"])
    assert "check_declarations" not in str(caught.value)
    with pytest.raises(ValueError, match="skip is 'check_smell'; give one of 'check_declarations'"):
        check_kernel(Several(), skip=["check_smell"])


def test_what_a_kernel_raises_is_the_cause():
    class Raises(Good):
        def block(self, X, Y):
            raise RuntimeError("the licence has expired")

    with pytest.raises(ConformanceError, match="RuntimeError: the licence has expired") as caught:
        testing.check_symmetry(Raises())
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_pytest_is_not_needed_for_the_import():
    code = "import sys, fastkpca.testing; assert 'pytest' not in sys.modules; fastkpca.testing.check_kernel('tanh')"
    child(code)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("positive_semidefinit", "positive_semidefinite"), ("tranlation", "translation"), ("thread_save", "thread_safe")],
)
def test_misspelled_declarations_are_noticed(name, meant):
    body = {"api_version": 1, "block": lambda self, X, Y: X @ Y.T, name: True, "scale": 1.0, "map": None}
    for kernel in (type("Misspelled", (Kernel,), body), type("Misspelled", (), body)()):
        with pytest.raises(ConformanceError, match=f"Misspelled.{name} is read by nobody; did you mean '{meant}'"):
            check_declarations(kernel)
    del body[name]
    assert check_declarations(type("Spelled", (Kernel,), body)) == "passed"
