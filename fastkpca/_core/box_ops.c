/* One instruction set's table of the loops over a box's nodes (box_ops_template.h), for 4, 8 and 16 padded nodes
   along the last axis. FK_ISA is baseline, avx2 or avx512; vectors are GCC's and clang's vector extensions. */
#include "box_ops.h"

#include "compiler.h"

#if defined(__AVX512F__)
#define FK_WIDE 8
#define FK_NARROW 4
#define FK_HELD(vectors) (vectors)
#elif defined(__AVX2__)
#define FK_WIDE 4
#define FK_NARROW 4
#else
#define FK_WIDE 2
#define FK_NARROW 2
#endif
/* Number of vectors whose sums at a group's points stay in registers together; AVX-512 has 32 registers, others 16. */
#ifndef FK_HELD
#define FK_HELD(vectors) ((vectors) == 1 ? 1 : 2)
#endif

FK_VECTOR(double, 8 * FK_WIDE, wide);
FK_VECTOR_IN_MEMORY(double, 8 * FK_WIDE, wide_mem);
FK_VECTOR(double, 8 * FK_NARROW, narrow);
FK_VECTOR_IN_MEMORY(double, 8 * FK_NARROW, narrow_mem);

/* Lagrange values of the group's points at the nodes of one axis, by products from both ends and no division:
   value (q, FK_GROUP), vectors run over the points. */
FK_INLINE void values_across(ptrdiff_t q, const double *z, const double *weight, const double *s, double *value)
{
    for (int h = 0; h < FK_GROUP; h += FK_NARROW) {
        const narrow x = *(const narrow_mem *)(s + h);
        narrow product = x - x + 1.0;
        for (ptrdiff_t k = 0; k < q; k++) {
            *(narrow_mem *)(value + k * FK_GROUP + h) = (narrow_mem)(product * weight[k]);
            product *= x - z[k];
        }
        product = x - z[q - 1];
        for (ptrdiff_t k = q - 2; k >= 0; k--) {
            const narrow before = *(const narrow_mem *)(value + k * FK_GROUP + h);
            *(narrow_mem *)(value + k * FK_GROUP + h) = (narrow_mem)(before * product);
            product *= x - z[k];
        }
    }
}

/* Products of the Lagrange values of all axes but the last: work (outer, FK_GROUP). */
FK_INLINE void outer_values(const fk_box *box, const double s[FK_MOST_AXES][FK_GROUP], double *work)
{
    double value[FK_MOST_NODES * FK_GROUP];
    const ptrdiff_t d = box->d;
    ptrdiff_t length = 1;
    if (d == 1) {
        for (int p = 0; p < FK_GROUP; p++)
            work[p] = 1.0;
        return;
    }
    values_across(box->q[d - 2], box->nodes[d - 2], box->weights[d - 2], s[d - 2], work);
    length = box->q[d - 2];
    for (ptrdiff_t c = d - 3; c >= 0; c--) {
        const ptrdiff_t q = box->q[c];
        values_across(q, box->nodes[c], box->weights[c], s[c], value);
        for (ptrdiff_t i = q - 1; i >= 0; i--) /* downwards: the first copy is the source of the others */
            for (int h = 0; h < FK_GROUP; h += FK_NARROW) {
                const narrow factor = *(const narrow_mem *)(value + i * FK_GROUP + h);
                for (ptrdiff_t t = 0; t < length; t++) {
                    const narrow source = *(const narrow_mem *)(work + t * FK_GROUP + h);
                    *(narrow_mem *)(work + (i * length + t) * FK_GROUP + h) = (narrow_mem)(factor * source);
                }
            }
        length *= q;
    }
}

/* The group's coordinates, the last point repeated where fewer than FK_GROUP are left. */
FK_INLINE void coordinates(const fk_box *box, ptrdiff_t n, const double *position, ptrdiff_t stride,
                           double s[FK_MOST_AXES][FK_GROUP])
{
    for (ptrdiff_t c = 0; c < box->d; c++)
        for (ptrdiff_t p = 0; p < FK_GROUP; p++)
            s[c][p] = position[c * stride + (p < n ? p : n - 1)];
}

#define FK_PADDED 4
#define FK_VECTORS (4 / FK_NARROW)
#define FK_LANES FK_NARROW
#define VEC narrow
#define MEM narrow_mem
#include "box_ops_template.h"
#define FK_PADDED 8
#define FK_VECTORS (8 / FK_WIDE)
#define FK_LANES FK_WIDE
#define VEC wide
#define MEM wide_mem
#include "box_ops_template.h"
#define FK_PADDED 16
#define FK_VECTORS (16 / FK_WIDE)
#define FK_LANES FK_WIDE
#define VEC wide
#define MEM wide_mem
#include "box_ops_template.h"

const fk_box_ops FK_CAT(fk_box_ops, FK_ISA) = {
    FK_TEXT(FK_ISA),
    {spread_4, spread_8, spread_16},
    {interpolate_4, interpolate_8, interpolate_16},
};
