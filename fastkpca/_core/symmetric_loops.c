#include "symmetric_loops.h"

#include "compiler.h"

#define FK_LANES 4 /* no wider: where a vector takes two registers, GCC keeps the sums in memory */
#define FK_SUMS 4

FK_VECTOR(double, 8 * FK_LANES, wide);
FK_VECTOR_IN_MEMORY(double, 8 * FK_LANES, wide_mem);
FK_VECTOR(float, 4 * FK_LANES, single);
FK_VECTOR_IN_MEMORY(float, 4 * FK_LANES, single_mem);

FK_CLONES double fk_row_sums(ptrdiff_t n, const double *restrict K, double *restrict sums)
{
    double squares = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *row = K + i * n;
        wide sum[FK_SUMS] = {0}, square[FK_SUMS] = {0};
        ptrdiff_t j = 0;
        for (; j + FK_SUMS * FK_LANES <= n; j += FK_SUMS * FK_LANES) {
            FK_UNROLL for (int p = 0; p < FK_SUMS; p++)
            {
                const wide a = *(const wide_mem *)(row + j + p * FK_LANES);
                sum[p] += a;
                square[p] += a * a;
            }
        }
        double total = 0.0, of_squares = 0.0;
        for (; j < n; j++) {
            total += row[j];
            of_squares += row[j] * row[j];
        }
        for (int p = 0; p < FK_SUMS / 2; p++) {
            const wide both = sum[p] + sum[p + FK_SUMS / 2], both_squares = square[p] + square[p + FK_SUMS / 2];
            for (int l = 0; l < FK_LANES; l++) {
                total += both[l];
                of_squares += both_squares[l];
            }
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
