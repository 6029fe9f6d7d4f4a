/* Products along one axis with a matrix whose columns are even or odd in its rows; one table per instruction set.

   parity_ops.c is compiled once for each instruction set the compiler knows (FK_ISA names it), and fk_parity_select()
   hands out the best table this processor can run. */
#ifndef FK_PARITY_OPS_H
#define FK_PARITY_OPS_H
#include <stddef.h>

/* Row i of the n rows has its mirror image at row (n - fixed - i) mod n: ``fixed`` is 0 where row 0 is its own, else 1.
   Rows 0 to half - 1 and their images are all there are. */
typedef struct {
    ptrdiff_t n, fixed, half;
    ptrdiff_t n_even, n_odd;
    const double *even; /* (half, n_even): the first rows of the even columns */
    const double *odd;  /* (half, n_odd): of the odd ones */
} fk_parity;

/* Arrays (batch, length, inner), the last axis without gaps: number (b, i, j) at values + b * batch + i * row + j */
typedef struct {
    double *values;
    ptrdiff_t batch, row;
} fk_lines;

typedef struct {
    const char *name;
    ptrdiff_t wide; /* numbers in a vector */
    /* out (batch, n, inner) = matrix times in (batch, n_even + n_odd, inner); work: fk_parity_work() numbers */
    void (*expand)(const fk_parity *matrix, ptrdiff_t batch, ptrdiff_t inner, fk_lines in, fk_lines out, double *work);
    /* out (batch, n_even + n_odd, inner) = transposed matrix times in (batch, n, inner) */
    void (*fold)(const fk_parity *matrix, ptrdiff_t batch, ptrdiff_t inner, fk_lines in, fk_lines out, double *work);
    /* out (n_even + n_odd, inner) = transposed matrix times (weights (n, inner) * (matrix times in)), inner >= wide */
    void (*weigh)(const fk_parity *matrix, ptrdiff_t inner, const double *in, const double *weights, double *out,
                  double *work);
} fk_parity_ops;

#define FK_PARITY_LANES 32 /* lines that are worked on at once, at most */

static inline ptrdiff_t fk_parity_work(const fk_parity *matrix)
{
    return FK_PARITY_LANES * (2 * matrix->half + matrix->n + matrix->n_even + matrix->n_odd);
}

extern const fk_parity_ops fk_parity_ops_baseline;
#ifdef FK_HAVE_AVX2
extern const fk_parity_ops fk_parity_ops_avx2;
#endif
#ifdef FK_HAVE_AVX512
extern const fk_parity_ops fk_parity_ops_avx512;
#endif

/* The table of this name, or the best one for name == NULL; NULL where this processor or build has none. */
const fk_parity_ops *fk_parity_select(const char *name);

#endif
