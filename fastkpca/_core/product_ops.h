/* Sums over points of the products of two features, for few features; one table per instruction set.

   product_ops.c is compiled once for each instruction set the compiler knows (FK_ISA names it), and fk_product_select()
   hands out the best table this processor can run. BLAS reaches a third of the speed for a dozen features: it copies
   both sides first. */
#ifndef FK_PRODUCT_OPS_H
#define FK_PRODUCT_OPS_H
#include <stddef.h>

#define FK_POINTS 8 /* the number of points is a multiple of it */

typedef struct {
    const char *name;
    /* sums (rows, columns) += the scalar products of features left[i] and right[j]; feature f at values + f * stride,
       n points long */
    void (*add)(ptrdiff_t n, const double *values, ptrdiff_t stride, ptrdiff_t rows, const ptrdiff_t *left,
                ptrdiff_t columns, const ptrdiff_t *right, double *sums);
} fk_product_ops;

extern const fk_product_ops fk_product_ops_baseline;
#ifdef FK_HAVE_AVX2
extern const fk_product_ops fk_product_ops_avx2;
#endif
#ifdef FK_HAVE_AVX512
extern const fk_product_ops fk_product_ops_avx512;
#endif

/* The table of this name, or the best one for name == NULL; NULL where this processor or build has none. */
const fk_product_ops *fk_product_select(const char *name);

#endif
