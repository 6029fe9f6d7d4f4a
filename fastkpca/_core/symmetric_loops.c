#include "symmetric_loops.h"

#include "compiler.h"

#define FK_LANES 8

FK_VECTOR(double, 8 * FK_LANES, wide);
FK_VECTOR_IN_MEMORY(double, 8 * FK_LANES, wide_mem);
FK_VECTOR(float, 4 * FK_LANES, single);
FK_VECTOR_IN_MEMORY(float, 4 * FK_LANES, single_mem);

FK_CLONES double fk_row_sums(ptrdiff_t n, const double *restrict K, double *restrict sums)
{
    double squares = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *row = K + i * n;
        wide sum = {0}, more = {0}, square = {0}, more_squares = {0};
        ptrdiff_t j = 0;
        for (; j + 2 * FK_LANES <= n; j += 2 * FK_LANES) {
            const wide a = *(const wide_mem *)(row + j), b = *(const wide_mem *)(row + j + FK_LANES);
            sum += a;
            more += b;
            square += a * a;
            more_squares += b * b;
        }
        sum += more;
        square += more_squares;
        double total = 0.0, of_squares = 0.0;
        for (; j < n; j++) {
            total += row[j];
            of_squares += row[j] * row[j];
        }
        for (int l = 0; l < FK_LANES; l++) {
            total += sum[l];
            of_squares += square[l];
        }
        sums[i] = total;
        squares += of_squares;
    }
    return squares;
}

FK_CLONES void fk_centre_single(ptrdiff_t n, const double *restrict K, double scale, const float *restrict h,
                                float *restrict B)
{
    const ptrdiff_t whole = n - n % FK_LANES;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *row = K + i * n;
        float *out = B + i * n;
        for (ptrdiff_t j = 0; j < whole; j += FK_LANES) {
            const wide scaled = *(const wide_mem *)(row + j) * scale;
            const single value = __builtin_convertvector(scaled, single);
            *(single_mem *)(out + j) = (single_mem)(value - *(const single_mem *)(h + j) - h[i]);
        }
        for (ptrdiff_t j = whole; j < n; j++)
            out[j] = (float)(scale * row[j]) - h[j] - h[i];
    }
}
