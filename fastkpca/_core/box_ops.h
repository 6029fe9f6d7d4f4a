/* Tensor products of Lagrange values, spread onto and read off the nodes of one box; one table per instruction set.

   box_ops.c is compiled once for each instruction set the compiler knows (FK_ISA names it), and fk_box_ops_select() hands
   out the best table this processor can run. */
#ifndef FK_BOX_OPS_H
#define FK_BOX_OPS_H
#include <stddef.h>
#include <stdint.h>

#define FK_MOST_AXES 6   /* the number of nodes is the product of those of all axes */
#define FK_MOST_NODES 16 /* of one axis in one box */
#define FK_GROUP 4       /* points that share a walk over the nodes */

typedef struct {
    ptrdiff_t d;
    ptrdiff_t q[FK_MOST_AXES];
    const double *nodes[FK_MOST_AXES];   /* q of each axis, in [-1, 1] */
    const double *weights[FK_MOST_AXES]; /* 1 / prod_(j != k) (z_k - z_j) */
    ptrdiff_t outer;                     /* product of all q but the last */
    ptrdiff_t padded;                    /* the last q, rounded up to 4, 8 or 16 */
    const double *turned;                /* (q - 1, padded): row t holds z_((k + t + 1) mod q) of the last axis */
    const double *last;                  /* padded: weights of the last axis, zero beyond them */
} fk_box;

typedef struct {
    const char *name;
    /* block (k, outer, padded) += sum_p u_pj (l_1 x ... x l_d)(p); points in the box's own coordinates, axis c at
       position + c * stride. Row order[p] of U (., k) belongs to point p. work holds FK_GROUP * outer entries. For 4, 8
       and 16 padded entries */
    void (*spread[3])(const fk_box *box, ptrdiff_t n, const double *position, ptrdiff_t stride, const int64_t *order,
                      const double *U, ptrdiff_t k, double *work, double *block);
    /* V[order[p], j] = sum over the nodes of block_j times (l_1 x ... x l_d)(p) */
    void (*interpolate[3])(const fk_box *box, ptrdiff_t n, const double *position, ptrdiff_t stride,
                           const int64_t *order, double *V, ptrdiff_t k, double *work, const double *block);
} fk_box_ops;

#define FK_TABLE fk_box_ops
#include "select_ops.h"

#endif
