/* The vector loops of clusters.pyx, compiled for several instruction sets where the compiler and the C library can choose
   among them when the program is loaded. No loop contracts or reorders, so all give the same bits. */
#ifndef FK_CLUSTER_LOOPS_H
#define FK_CLUSTER_LOOPS_H
#include <stddef.h>

/* out_i = a_i (b_i w) */
void fk_monomial(ptrdiff_t n, const double *a, const double *b, double w, double *out);
/* out_i = a_i b_i, b of the given stride */
void fk_weigh(ptrdiff_t n, const double *a, const double *b, ptrdiff_t stride, double *out);
/* out_i += a_i b_i */
void fk_add_products(ptrdiff_t n, const double *a, const double *b, double *out);

#endif
