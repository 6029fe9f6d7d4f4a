#include "tile_pair.h"

#include "compiler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A tile is FK_TILE_ROWS by FK_TILE_BYTES of each row: below half of a 1 MB second-level cache; and eight columns of U
   of that length half of the first level. For a product with one column and no GEMM a strip that stays in the first
   level is better. Rows are a multiple of FK_PAD, so that every tile of the symmetric walk begins at one. */
#ifndef FK_TILE_ROWS
#define FK_TILE_ROWS 192
#define FK_TILE_BYTES 2048
#define FK_STRIP_ROWS 16
#define FK_STRIP_BYTES 2048
#endif

#define FK_ROUNDOFF_d 0x1p-53
#define FK_ROUNDOFF_s 0x1p-24
/* Centred coordinates in float are off by |x| 2^-24: beyond this many sigma differences are taken in double. */
#define FK_FLOAT_RADIUS 64.0

static ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static ptrdiff_t padded(ptrdiff_t n) { return (n + FK_PAD - 1) / FK_PAD * FK_PAD; }

/* Stride of a stored tile, from one row to the next. Its columns are those of double in either type, so that one type's
   tiles become the other's by rounding each number. */
static ptrdiff_t kept_stride(ptrdiff_t nj) { return padded(nj) + FK_PAD; }
#define FK_KEPT_COLUMNS ((ptrdiff_t)(FK_TILE_BYTES / sizeof(double)))

ptrdiff_t fk_kept_entries(ptrdiff_t n, ptrdiff_t m, int same)
{
    ptrdiff_t entries = 0;
    for (ptrdiff_t i0 = 0; i0 < n; i0 += FK_TILE_ROWS) {
        const ptrdiff_t ni = smaller(FK_TILE_ROWS, n - i0);
        if (same)
            entries += ni * kept_stride(ni);
        for (ptrdiff_t j0 = same ? i0 + FK_TILE_ROWS : 0; j0 < m; j0 += FK_KEPT_COLUMNS)
            entries += ni * kept_stride(smaller(FK_KEPT_COLUMNS, m - j0));
    }
    return entries;
}

static const double *copied_tile(ptrdiff_t ni, ptrdiff_t nj, const double *kept, double *K, ptrdiff_t ldk)
{
    for (ptrdiff_t i = 0; i < ni; i++)
        memcpy(K + i * ldk, kept + i * kept_stride(nj), nj * sizeof(double));
    return kept + ni * kept_stride(nj);
}

void fk_kept_block(ptrdiff_t n, ptrdiff_t m, int same, const double *kept, double *K)
{
    for (ptrdiff_t i0 = 0; i0 < n; i0 += FK_TILE_ROWS) {
        const ptrdiff_t ni = smaller(FK_TILE_ROWS, n - i0);
        if (same)
            kept = copied_tile(ni, ni, kept, K + i0 * m + i0, m);
        for (ptrdiff_t j0 = same ? i0 + FK_TILE_ROWS : 0; j0 < m; j0 += FK_KEPT_COLUMNS)
            kept = copied_tile(ni, smaller(FK_KEPT_COLUMNS, m - j0), kept, K + i0 * m + j0, m);
        for (ptrdiff_t i = i0 + ni; same && i < n; i++)
            for (ptrdiff_t j = i0; j < i0 + ni; j++)
                K[i * m + j] = K[j * m + i];
    }
}

static void column_sums(ptrdiff_t n, ptrdiff_t d, const double *X, double *sums)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t f = 0; f < d; f++)
            sums[f] += X[i * d + f];
}

/* The mean of two sets of rows: where both are centred for the GEMM form. */
static void joint_mean(ptrdiff_t n, const double *X, ptrdiff_t m, const double *Y, ptrdiff_t d, double *mean)
{
    memset(mean, 0, d * sizeof(double));
    column_sums(n, d, X, mean);
    column_sums(m, d, Y, mean);
    for (ptrdiff_t f = 0; f < d; f++)
        mean[f] /= (double)(n + m);
}

static double largest(ptrdiff_t n, const double *x)
{
    double most = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* Y' with its rows (columns of the result) repeated up to the padding. */
#define DEFINE_TRANSPOSE(T, S)                                                                                        \
    static void transpose_##S(ptrdiff_t m, ptrdiff_t d, const double *Y, const double *centre, T *Yt, ptrdiff_t ldy)  \
    {                                                                                                                 \
        for (ptrdiff_t f = 0; f < d; f++) {                                                                           \
            const double shift = centre ? centre[f] : 0.0;                                                            \
            for (ptrdiff_t j = 0; j < m; j++)                                                                         \
                Yt[f * ldy + j] = (T)(Y[j * d + f] - shift);                                                          \
            for (ptrdiff_t j = m; j < padded(m); j++)                                                                 \
                Yt[f * ldy + j] = Yt[f * ldy + m - 1];                                                                \
        }                                                                                                             \
    }
DEFINE_TRANSPOSE(double, d)
DEFINE_TRANSPOSE(float, s)

#define T double
#define S d
#define OPS ops->d
#include "tile_pair_template.h"
#undef T
#undef S
#undef OPS
#define T float
#define S s
#define OPS ops->s
#define FK_SINGLE
#include "tile_pair_template.h"
