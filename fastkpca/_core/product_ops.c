/* One instruction set's table of the sums of products. FK_ISA is baseline, avx2 or avx512; vectors are GCC's and clang's
   vector extensions. */
#include "product_ops.h"

#include "compiler.h"

#include <stdint.h>

/* Sums of FK_ROWS by FK_COLUMNS products stay in registers, of which AVX-512 has 32, the others 16. */
#if defined(__AVX512F__)
#define FK_WIDE 8
#define FK_ROWS 6
#define FK_COLUMNS 4
#elif defined(__AVX2__)
#define FK_WIDE 4
#define FK_ROWS 4
#define FK_COLUMNS 3
#else
#define FK_WIDE 2
#define FK_ROWS 4
#define FK_COLUMNS 3
#endif
/* Features that are solved for at once. */
#define FK_SOLVED 4
/* One sum for each point and coefficient; vectors run over the points. */
#if defined(__AVX512F__)
#define FK_VECTORS 4
#else
#define FK_VECTORS 2
#endif
#define FK_BEATS_BLAS (FK_WIDE >= 4)
#define FK_FEW_SQUARES (FK_WIDE == 8 ? PTRDIFF_MAX : FK_WIDE == 4 ? 48 : 0)
#if defined(__AVX2__)
#define FK_FEW 256
#else
#define FK_FEW 4
#endif

FK_VECTOR(double, 8 * FK_WIDE, wide);
FK_VECTOR_IN_MEMORY(double, 8 * FK_WIDE, wide_mem);

static ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

/* FK_PANEL features of FK_LENGTH points stay in the second level of cache, FK_ROWS of them in the first. */
#define FK_PANEL 64

FK_INLINE void block(int rows, int columns, ptrdiff_t n, const double *const *left, const double *const *right,
                     double *sums, ptrdiff_t stride)
{
    wide sum[FK_ROWS][FK_COLUMNS] = {0};
    for (ptrdiff_t i = 0; i < n; i += FK_WIDE) {
        wide y[FK_COLUMNS];
        FK_UNROLL for (int q = 0; q < columns; q++)
            y[q] = *(const wide_mem *)(right[q] + i);
        FK_UNROLL for (int p = 0; p < rows; p++) {
            const wide x = *(const wide_mem *)(left[p] + i);
            FK_UNROLL for (int q = 0; q < columns; q++)
                sum[p][q] += x * y[q];
        }
    }
    FK_UNROLL for (int p = 0; p < rows; p++)
        FK_UNROLL for (int q = 0; q < columns; q++) {
            double lanes[FK_WIDE];
            *(wide_mem *)lanes = (wide_mem)sum[p][q];
            FK_UNROLL for (int width = FK_WIDE / 2; width; width /= 2)
                FK_UNROLL for (int l = 0; l < width; l++)
                    lanes[l] += lanes[l + width];
            sums[p * stride + q] += lanes[0];
        }
}

#define FK_CASE(p, q)                                                                                                 \
    case (p) * 8 + (q):                                                                                               \
        block(p, q, n, a, b, sums, stride);                                                                           \
        break
#define FK_CASES(p) FK_CASE(p, 1); FK_CASE(p, 2); FK_CASE(p, 3)

static void add_block(ptrdiff_t p, ptrdiff_t q, ptrdiff_t n, const double *const *a, const double *const *b,
                      double *sums, ptrdiff_t stride)
{
    switch (p * 8 + q) {
        FK_CASES(1);
        FK_CASES(2);
        FK_CASES(3);
        FK_CASES(4);
#if FK_COLUMNS == 4
        FK_CASES(5);
        FK_CASES(6);
        FK_CASE(1, 4);
        FK_CASE(2, 4);
        FK_CASE(3, 4);
        FK_CASE(4, 4);
        FK_CASE(5, 4);
        FK_CASE(6, 4);
#endif
    }
}

static void add_square(ptrdiff_t n, const double *values, ptrdiff_t stride, ptrdiff_t features, double *sums)
{
    for (ptrdiff_t start = 0; start < n; start += FK_LENGTH)
        for (ptrdiff_t panel = 0; panel < features; panel += FK_PANEL)
            for (ptrdiff_t i = panel; i < features; i += FK_ROWS) {
                const double *a[FK_ROWS], *b[FK_COLUMNS];
                const ptrdiff_t p = smaller(FK_ROWS, features - i), end = smaller(panel + FK_PANEL, i + p);
                for (ptrdiff_t r = 0; r < p; r++)
                    a[r] = values + (i + r) * stride + start;
                for (ptrdiff_t j = panel; j < end; j += FK_COLUMNS) {
                    const ptrdiff_t q = smaller(FK_COLUMNS, end - j);
                    for (ptrdiff_t c = 0; c < q; c++)
                        b[c] = values + (j + c) * stride + start;
                    const ptrdiff_t length = smaller(FK_LENGTH, n - start);
                    if (j + q <= i + 1) {
                        add_block(p, q, length, a, b, sums + i * features + j, features);
                        continue;
                    }
                    double corner[FK_ROWS * FK_COLUMNS] = {0}; /* on the diagonal */
                    add_block(p, q, length, a, b, corner, FK_COLUMNS);
                    for (ptrdiff_t r = 0; r < p; r++)
                        for (ptrdiff_t c = 0; c < q && j + c <= i + r; c++)
                            sums[(i + r) * features + j + c] += corner[r * FK_COLUMNS + c];
                }
            }
}

static void add(ptrdiff_t n, const double *values, ptrdiff_t stride, ptrdiff_t rows, const ptrdiff_t *left,
                ptrdiff_t columns, const ptrdiff_t *right, double *sums)
{
    for (ptrdiff_t i = 0; i < rows; i += FK_ROWS) {
        const double *a[FK_ROWS], *b[FK_COLUMNS];
        const ptrdiff_t p = smaller(FK_ROWS, rows - i);
        for (ptrdiff_t r = 0; r < p; r++)
            a[r] = values + left[i + r] * stride;
        for (ptrdiff_t j = 0; j < columns; j += FK_COLUMNS) {
            const ptrdiff_t q = smaller(FK_COLUMNS, columns - j);
            for (ptrdiff_t c = 0; c < q; c++)
                b[c] = values + right[j + c] * stride;
            add_block(p, q, n, a, b, sums + i * columns + j, columns);
        }
    }
}

static double sum_of(ptrdiff_t n, const double *values)
{
    wide sum[4] = {0}; /* they hide the latency of an addition */
    ptrdiff_t i = 0;
    for (; i + 4 * FK_WIDE <= n; i += 4 * FK_WIDE)
        FK_UNROLL for (int p = 0; p < 4; p++)
            sum[p] += *(const wide_mem *)(values + i + p * FK_WIDE);
    double lanes[FK_WIDE], total = 0.0, rest = 0.0;
    *(wide_mem *)lanes = (wide_mem)((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; i < n; i++)
        rest += values[i];
    for (int l = 0; l < FK_WIDE; l++)
        total += lanes[l];
    return total + rest;
}

static void centre(ptrdiff_t n, const double *restrict values, double *restrict out, double *means)
{
    const double mean = sum_of(n, values) / n;
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = values[i] - mean;
    /* the sum rounds by n u |mean|, which would pass into every merge */
    const double rest = sum_of(n, out) / n;
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] -= rest;
    means[0] = mean;
    means[1] = rest;
}

FK_INLINE void combined(int columns, ptrdiff_t n, const double *values, ptrdiff_t stride, ptrdiff_t features,
                        ptrdiff_t k, const double *A, double *out)
{
    wide sum[5][FK_VECTORS] = {0};
    for (ptrdiff_t f = 0; f < features; f++) {
        wide x[FK_VECTORS];
        FK_UNROLL for (int p = 0; p < FK_VECTORS; p++)
            x[p] = *(const wide_mem *)(values + f * stride + p * FK_WIDE);
        FK_UNROLL for (int q = 0; q < columns; q++)
            FK_UNROLL for (int p = 0; p < FK_VECTORS; p++)
                sum[q][p] += x[p] * A[f * k + q];
    }
    double turned[5][FK_VECTORS * FK_WIDE];
    FK_UNROLL for (int q = 0; q < columns; q++)
        FK_UNROLL for (int p = 0; p < FK_VECTORS; p++)
            *(wide_mem *)(turned[q] + p * FK_WIDE) = (wide_mem)sum[q][p];
    for (ptrdiff_t i = 0; i < n; i++)
        FK_UNROLL for (int q = 0; q < columns; q++)
            out[i * k + q] = turned[q][i];
}

static void apply(ptrdiff_t n, const double *values, ptrdiff_t stride, ptrdiff_t features, ptrdiff_t k,
                  const double *A, double *out)
{
    const ptrdiff_t step = FK_VECTORS * FK_WIDE;
    for (ptrdiff_t i = 0; i < n; i += step) {
        const ptrdiff_t m = n - i < step ? n - i : step;
        for (ptrdiff_t j = 0; j < k; j += 5) {
#define FK_OF(columns) combined(columns, m, values + i, stride, features, k, A + j, out + i * k + j)
            switch (k - j) {
                case 1: FK_OF(1); break;
                case 2: FK_OF(2); break;
                case 3: FK_OF(3); break;
                case 4: FK_OF(4); break;
                default: FK_OF(5);
            }
        }
    }
}

static void multiply(ptrdiff_t n, const double *a, const double *b, double weight, double *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = a[i] * (b[i] * weight);
}

/* left (rows, vectors) -= L (rows, length) times values (length, vectors): one sum, then one difference */
FK_INLINE void subtract(int rows, int vectors, ptrdiff_t length, const double *L, ptrdiff_t features,
                        const double *values, double *left, ptrdiff_t stride)
{
    wide sum[FK_SOLVED][FK_VECTORS] = {0};
    for (ptrdiff_t f = 0; f < length; f++) {
        wide x[FK_VECTORS];
        FK_UNROLL for (int p = 0; p < vectors; p++)
            x[p] = *(const wide_mem *)(values + f * stride + p * FK_WIDE);
        FK_UNROLL for (int r = 0; r < rows; r++)
            FK_UNROLL for (int p = 0; p < vectors; p++)
                sum[r][p] += x[p] * L[r * features + f];
    }
    FK_UNROLL for (int r = 0; r < rows; r++)
        FK_UNROLL for (int p = 0; p < vectors; p++)
            *(wide_mem *)(left + r * stride + p * FK_WIDE) -= (wide_mem)sum[r][p];
}

/* left, a few rows of the strip without what the rows before give to them, becomes corner^-1 left */
FK_INLINE void substitute(int rows, const double *corner, ptrdiff_t features, double *left, ptrdiff_t stride)
{
    double reciprocal[FK_SOLVED];
    for (int r = 0; r < rows; r++)
        reciprocal[r] = 1.0 / corner[r * features + r];
    for (ptrdiff_t i = 0; i < stride; i += FK_WIDE) {
        wide x[FK_SOLVED];
        FK_UNROLL for (int r = 0; r < rows; r++) {
            x[r] = *(const wide_mem *)(left + r * stride + i);
            FK_UNROLL for (int q = 0; q < r; q++)
                x[r] -= x[q] * corner[r * features + q];
            x[r] *= reciprocal[r];
            *(wide_mem *)(left + r * stride + i) = (wide_mem)x[r];
        }
    }
}

/* From row j of the strip, and those after it, what the rows [k, end) before j give to them is subtracted; rows that are
   of this block themselves are solved then. */
FK_INLINE void advance(int rows, ptrdiff_t j, ptrdiff_t k, ptrdiff_t end, const double *L, ptrdiff_t features,
                       double *strip, ptrdiff_t stride)
{
    const ptrdiff_t length = smaller(j, end) - k;
    const double *row = L + j * features;
    double *left = strip + j * stride;
    ptrdiff_t i = length ? 0 : stride;
    for (; i + FK_VECTORS * FK_WIDE <= stride; i += FK_VECTORS * FK_WIDE)
        subtract(rows, FK_VECTORS, length, row + k, features, strip + k * stride + i, left + i, stride);
    for (; i < stride; i += FK_WIDE)
        subtract(rows, 1, length, row + k, features, strip + k * stride + i, left + i, stride);
    if (j < end)
        substitute(rows, row + j, features, left, stride);
}

static void solve(ptrdiff_t n, ptrdiff_t features, const double *L, double *tile, double *strip)
{
    for (ptrdiff_t start = 0; start < n; start += FK_STRIP) {
        const ptrdiff_t m = smaller(FK_STRIP, n - start), stride = (m + FK_WIDE - 1) / FK_WIDE * FK_WIDE;
        for (ptrdiff_t f = 0; f < features; f++)
            for (ptrdiff_t i = 0; i < stride; i++)
                strip[f * stride + i] = i < m ? tile[f * n + start + i] : 0.0;
        for (ptrdiff_t k = 0; k < features; k += FK_FACTOR_BLOCK) {
            const ptrdiff_t end = smaller(k + FK_FACTOR_BLOCK, features);
            ptrdiff_t j = k;
            for (; j + FK_SOLVED <= features; j += FK_SOLVED)
                advance(FK_SOLVED, j, k, end, L, features, strip, stride);
            for (; j < features; j++)
                advance(1, j, k, end, L, features, strip, stride);
        }
        for (ptrdiff_t f = 0; f < features; f++)
            for (ptrdiff_t i = 0; i < m; i++)
                tile[f * n + start + i] = strip[f * stride + i];
    }
}

/* Values of even and odd places are summed apart: a sum would wait for the one before it. */
static void sparse(const ptrdiff_t *starts, const int32_t *columns, const float *values, const double *B,
                   ptrdiff_t first, ptrdiff_t end, double *out)
{
    enum { VECTORS = FK_SPARSE / FK_WIDE };
    for (ptrdiff_t i = first; i < end; i++) {
        wide sum[2][VECTORS] = {0};
        for (ptrdiff_t e = starts[i]; e < starts[i + 1]; e += 2)
            FK_UNROLL for (int p = 0; p < 2; p++)
                if (e + p < starts[i + 1])
                    FK_UNROLL for (int v = 0; v < VECTORS; v++)
                        sum[p][v] += (double)values[e + p]
                                     * *(const wide_mem *)(B + FK_SPARSE * (ptrdiff_t)columns[e + p] + v * FK_WIDE);
        FK_UNROLL for (int v = 0; v < VECTORS; v++)
            *(wide_mem *)(out + FK_SPARSE * i + v * FK_WIDE) = (wide_mem)(sum[0][v] + sum[1][v]);
    }
}

const fk_product_ops FK_CAT(fk_product_ops, FK_ISA) = {
    FK_TEXT(FK_ISA), FK_FEW, FK_FEW_SQUARES, FK_BEATS_BLAS,
    add, add_square, centre, apply, multiply, solve, sparse,
};
