/* The vector loops that exact tiles are made of, one table per instruction set.

   tile_ops.c is compiled once for each instruction set the compiler knows (FK_ISA names it), and fk_ops_select() hands out
   the best table this processor can run. A tile is row-major, its row length a multiple of FK_PAD entries; the
   columns beyond the last real one repeat it, so that they are finite whenever the real ones are. */
#ifndef FK_TILE_OPS_H
#define FK_TILE_OPS_H
#include <stddef.h>

#define FK_PAD 16 /* the widest vector of any instruction set: 16 floats */

#define FK_DECLARE_OPS(T, S)                                                                                          \
    typedef struct {                                                                                                  \
        /* K = exp(c |x_i - y_j|^2) by differences, c <= 0; Yt is feature-major */                                   \
        void (*gauss_direct)(ptrdiff_t ni, ptrdiff_t nj, ptrdiff_t d, const T *X, ptrdiff_t ldx, const T *Yt,         \
                             ptrdiff_t ldy, double c, T *K, ptrdiff_t ldk);                                           \
        /* K = x_i . y_j */                                                                                           \
        void (*dot_direct)(ptrdiff_t ni, ptrdiff_t nj, ptrdiff_t d, const T *X, ptrdiff_t ldx, const T *Yt,           \
                           ptrdiff_t ldy, T *K, ptrdiff_t ldk);                                                       \
        /* K = exp(min(0, K + a_i + b_j)), in place */                                                                \
        void (*gauss_map)(ptrdiff_t ni, ptrdiff_t nj, const T *a, const T *b, T *K, ptrdiff_t ldk);                   \
        /* K = (scale K + offset)^degree, degree >= 1, in place */                                                    \
        void (*power_map)(ptrdiff_t ni, ptrdiff_t nj, double scale, double offset, int degree, T *K, ptrdiff_t ldk);  \
        /* K = tanh(scale K + offset), in place */                                                                    \
        void (*tanh_map)(ptrdiff_t ni, ptrdiff_t nj, double scale, double offset, T *K, ptrdiff_t ldk);               \
        /* V (ni, k) += K U, where Ut is U' (k, >= nj), zero beyond the last real row of U */                         \
        void (*multiply)(ptrdiff_t ni, ptrdiff_t nj, ptrdiff_t k, const T *K, ptrdiff_t ldk, const T *Ut,             \
                         ptrdiff_t ldu, double *V, ptrdiff_t ldv);                                                    \
        /* Vt (k, nj) += (K' U)', U (ni, k) */                                                                        \
        void (*multiply_transposed)(ptrdiff_t ni, ptrdiff_t nj, ptrdiff_t k, const T *K, ptrdiff_t ldk, const T *U,   \
                                    ptrdiff_t ldu, double *Vt, ptrdiff_t ldv);                                        \
        /* sums[0] += sum (K_ij - r_i - r_j + g)^2, sums[1] += sum K_ij^2; any nj */                                  \
        void (*squares)(ptrdiff_t ni, ptrdiff_t nj, const T *K, ptrdiff_t ldk, const double *ri, const double *rj,    \
                        double g, double *sums);                                                                      \
        /* out = K - shift, n entries */                                                                              \
        void (*rounded)(ptrdiff_t n, const T *K, double shift, float *out);                                           \
    } fk_ops_##S

FK_DECLARE_OPS(double, d);
FK_DECLARE_OPS(float, s);

typedef struct {
    const char *name;
    fk_ops_d d;
    fk_ops_s s;
} fk_ops;

#define FK_TABLE fk_ops
#include "select_ops.h"

#endif
