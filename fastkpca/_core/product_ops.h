/* Products of two features summed over points, of features with coefficients, and triangular solves; one table per
   instruction set.

   product_ops.c is compiled once for each instruction set the compiler knows (FK_ISA names it), and fk_product_ops_select()
   hands out the best table this processor can run. BLAS reaches a third of the speed for a dozen features: it copies
   both sides first. */
#ifndef FK_PRODUCT_OPS_H
#define FK_PRODUCT_OPS_H
#include <stddef.h>
#include <stdint.h>

#define FK_POINTS 8   /* the number of points that are summed over is a multiple of it */
#define FK_LENGTH 512 /* points whose products are summed before they are added to the others */
#define FK_TOGETHER 32 /* points that have coefficients applied at once: features are readable up to a multiple */
#define FK_FACTOR_BLOCK 32 /* features whose products are summed before they are subtracted from what is left */
#define FK_SPARSE 8   /* columns of a product with a sparse matrix */
#define FK_STRIP 64   /* points that are solved for at once: their features stay in the second level of cache */

typedef struct {
    const char *name;
    ptrdiff_t few; /* coefficients up to which apply is faster than BLAS */
    ptrdiff_t few_squares; /* features up to which add_square is faster than BLAS */
    int beats_blas; /* whether solve is */
    /* sums (rows, columns) += the scalar products of features left[i] and right[j]; feature f at values + f * stride,
       n points long */
    void (*add)(ptrdiff_t n, const double *values, ptrdiff_t stride, ptrdiff_t rows, const ptrdiff_t *left,
                ptrdiff_t columns, const ptrdiff_t *right, double *sums);
    /* the lower triangle of sums (features, features) += the same of each two features */
    void (*add_square)(ptrdiff_t n, const double *values, ptrdiff_t stride, ptrdiff_t features, double *sums);
    /* out = values - their mean, and again less the mean of that; means: both */
    void (*centre)(ptrdiff_t n, const double *values, double *out, double *means);
    /* out (n, k) = sum over the features f of the value of feature f times row f of A (features, k) */
    void (*apply)(ptrdiff_t n, const double *values, ptrdiff_t stride, ptrdiff_t features, ptrdiff_t k,
                  const double *A, double *out);
    /* out = a * (b * weight), n entries */
    void (*multiply)(ptrdiff_t n, const double *a, const double *b, double weight, double *out);
    /* tile (features, n) becomes L^-1 tile, L (features, features) lower triangular, by substitution; right-looking in
       blocks of FK_FACTOR_BLOCK. strip: features times FK_STRIP numbers. */
    void (*solve)(ptrdiff_t n, ptrdiff_t features, const double *L, double *tile, double *strip);
    /* rows first to end of A B, into these of out: A in compressed rows, B and out with FK_SPARSE columns */
    void (*sparse)(const ptrdiff_t *starts, const int32_t *columns, const float *values, const double *B,
                   ptrdiff_t first, ptrdiff_t end, double *out);
} fk_product_ops;

#define FK_TABLE fk_product_ops
#include "select_ops.h"

#endif
