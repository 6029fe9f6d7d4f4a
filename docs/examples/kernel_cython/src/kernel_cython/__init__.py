import numpy as np

from fastkpca.kernels import Cost, Kernel, KernelParameterError, Offer, Summation

from . import _minima

UNIT = 2.0**-53  # the unit roundoff of float64


def _refuse_negative(*arrays):
    least = min((array.min() for array in arrays if array.size), default=0.0)
    if least < 0:
        raise KernelParameterError(f"sum_of_minima: rows have values down to {least:.3g}; histograms are not negative")


class SumOfMinima(Kernel):
    """Histogram intersection kernel sum_k min(x_k, y_k), for x >= 0."""

    api_version = 1
    positive_semidefinite = True

    def resolve(self, data):
        _refuse_negative(data.box[0])
        return self

    def block(self, X, Y):
        _refuse_negative(X, Y)
        out = np.empty((len(X), len(Y)))
        _minima.values(np.ascontiguousarray(X, np.float64), np.ascontiguousarray(Y, np.float64), out)
        return out.astype(X.dtype, copy=False)

    def diagonal(self, X):
        return X.sum(axis=1, dtype=np.float64)

    def value_bound(self, data):
        return 1.01 * float(data.box[1].sum())

    def entry_error(self, data, dtype):
        # d - 1 additions and the rounding to the tiles' type, each at most u times the largest value
        unit = float(np.finfo(dtype).eps) / 2
        return (data.n_features * UNIT + unit) * self.value_bound(data)

    def summations(self, data_x, data_y, tol):
        """O(N d log N) in place of O(N^2 d)."""
        _refuse_negative(data_x.box[0], data_y.box[0])  # this product calls no block
        n, d = data_y.n_samples, data_y.n_features
        # of a coordinate: n + 1 roundings of the sum below, 2 n of that above, all of sizes up to x_i sum_j |u_j|
        rounding = (3 * n + d + 4) * UNIT * max(self.value_bound(data_x), self.value_bound(data_y))
        if tol is not None and rounding > tol:
            return ()
        sorting = 30.0 * d * np.log2(n + 2)  # flops a row
        cost = Cost(row_flops=20.0 * d, setup_flops=(data_x.n_samples + n) * sorting, residual=rounding)
        return (Offer("sorted", cost, lambda X, Y=None: SortedProduct(X, Y, rounding)),)


class SortedProduct(Summation):
    """K U by one walk through the sorted values of each coordinate."""

    def __init__(self, rows_x, rows_y, error_bound):
        self.symmetric = rows_y is None
        self.shape = (len(rows_x), len(rows_x if rows_y is None else rows_y))
        self.error_bound = error_bound
        self._x = self._sorted(rows_x)
        self._y = self._x if rows_y is None else self._sorted(rows_y)

    @staticmethod
    def _sorted(rows):
        columns = np.ascontiguousarray(rows.all().T)
        return columns, np.argsort(columns, axis=1, kind="stable")

    def matmat(self, U):
        return self._multiply(self._x, self._y, U)

    def rmatmat(self, U):
        return self._multiply(self._y, self._x, U)

    def _multiply(self, x, y, U):
        U = np.ascontiguousarray(U, dtype=np.float64)
        out = np.zeros((x[0].shape[1], U.shape[1]))
        for values_x, by_x, values_y, by_y in zip(*x, *y):
            _minima.add_product(values_x, values_y, by_x, by_y, U, out)
        return out
