/* The vector loops of clusters.pyx, compiled for several instruction sets where the compiler and the C library can choose
   among them when the program is loaded. No loop contracts or reorders, so all give the same bits. */
#ifndef FK_CLUSTER_LOOPS_H
#define FK_CLUSTER_LOOPS_H
#include <stddef.h>
#include <stdint.h>

/* out_i = a_i (b_i w) */
void fk_monomial(ptrdiff_t n, const double *a, const double *b, double w, double *out);
/* out_i = a_i b_i, b of the given stride */
void fk_weigh(ptrdiff_t n, const double *a, const double *b, ptrdiff_t stride, double *out);
/* out_i += a_i b_i */
void fk_add_products(ptrdiff_t n, const double *a, const double *b, double *out);
/* Those of n values that are above ``least``, with their numbers from ``first`` on; returns how many. There is room for n. */
ptrdiff_t fk_keep(ptrdiff_t n, const double *a, double least, int32_t first, float *values, int32_t *columns);
/* out (rows x 4) = A B for a sparse A of the given rows (row i from start[i] to start[i + 1]) and B of rows of 4 */
void fk_sparse_product(ptrdiff_t rows, const ptrdiff_t *start, const float *values, const int32_t *columns,
                       const double *B, double *out);

#endif
