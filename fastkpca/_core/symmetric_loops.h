/* Passes over a symmetric matrix (n, n) that is held whole. */
#ifndef FK_SYMMETRIC_LOOPS_H
#define FK_SYMMETRIC_LOOPS_H
#include <stddef.h>

/* The sums of the rows; returns the sum of all squares, each row's on its own first. */
double fk_row_sums(ptrdiff_t n, const double *K, double *sums);

/* B = scale K - h 1' - 1 h' in float32. */
void fk_centre_single(ptrdiff_t n, const double *K, double scale, const float *h, float *B);

#endif
