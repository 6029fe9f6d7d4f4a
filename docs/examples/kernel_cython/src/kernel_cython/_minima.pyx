# cython: language_level=3, initializedcheck=False
"""Values and products of sum_k min(x_k, y_k); everything runs without the GIL, so threads may share the work."""


def values(const double[:, ::1] X, const double[:, ::1] Y, double[:, ::1] out):
    cdef Py_ssize_t i, j, k
    cdef double total
    with nogil:
        for i in range(X.shape[0]):
            for j in range(Y.shape[0]):
                total = 0.0
                for k in range(X.shape[1]):
                    total += min(X[i, k], Y[j, k])
                out[i, j] = total


def add_product(
    const double[::1] x, const double[::1] y, const Py_ssize_t[::1] by_x, const Py_ssize_t[::1] by_y,
    const double[:, ::1] U, double[:, ::1] out,
):
    """out[i] += sum_j min(x_i, y_j) U[j] for one coordinate, in one walk upwards through the sorted x and y:
    sources below x_i count with y_j U[j], which is summed on the way, the others with x_i U[j]."""
    cdef Py_ssize_t i, j, column, next_y
    cdef double below, above
    with nogil:
        for column in range(U.shape[1]):
            below, above, next_y = 0.0, 0.0, 0
            for j in range(U.shape[0]):
                above += U[j, column]
            for i in range(by_x.shape[0]):
                while next_y < by_y.shape[0] and y[by_y[next_y]] <= x[by_x[i]]:
                    j = by_y[next_y]
                    below += y[j] * U[j, column]
                    above -= U[j, column]
                    next_y += 1
                out[by_x[i], column] += below + x[by_x[i]] * above
