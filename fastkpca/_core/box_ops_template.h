/* The loops of box_ops.c for one padded number of nodes along the last axis: FK_PADDED entries in FK_VECTORS vectors
   VEC of FK_LANES. No include guard: included once for each. */
#define NAME(x) FK_CAT(x, FK_PADDED)
#define LOAD(p) ((VEC) * (const MEM *)(p))
#define STORE(p, v) (*(MEM *)(p) = (MEM)(v))

/* Lagrange values of one point at the nodes of the last axis, vectors run over the nodes: value k is the product over
   the q - 1 other nodes, met in cyclic order. */
FK_INLINE void NAME(values_along)(const fk_box *box, double s, VEC value[FK_VECTORS])
{
    const ptrdiff_t q = box->q[box->d - 1];
    FK_UNROLL
    for (int v = 0; v < FK_VECTORS; v++)
        value[v] = LOAD(box->last + v * FK_LANES);
    for (ptrdiff_t t = 0; t < q - 1; t++)
        FK_UNROLL
        for (int v = 0; v < FK_VECTORS; v++)
            value[v] *= s - LOAD(box->turned + t * FK_PADDED + v * FK_LANES);
}

static void NAME(spread)(const fk_box *box, ptrdiff_t n, const double *position, ptrdiff_t stride,
                         const int64_t *order, const double *U, ptrdiff_t k, double *work, double *block)
{
    const ptrdiff_t d = box->d, outer = box->outer;
    double s[FK_MOST_AXES][FK_GROUP];
    for (ptrdiff_t first = 0; first < n; first += FK_GROUP) {
        const ptrdiff_t left = n - first;
        VEC value[FK_GROUP][FK_VECTORS];
        coordinates(box, left, position + first, stride, s);
        outer_values(box, s, work);
        FK_UNROLL
        for (int p = 0; p < FK_GROUP; p++)
            NAME(values_along)(box, s[d - 1][p], value[p]);
        for (ptrdiff_t j = 0; j < k; j++) {
            VEC scaled[FK_GROUP][FK_VECTORS];
            double *entry = block + j * outer * FK_PADDED;
            FK_UNROLL
            for (int p = 0; p < FK_GROUP; p++) {
                const double u = p < left ? U[order[first + p] * k + j] : 0.0;
                FK_UNROLL
                for (int v = 0; v < FK_VECTORS; v++)
                    scaled[p][v] = value[p][v] * u;
            }
            for (ptrdiff_t m = 0; m < outer; m++) {
                const double *w = work + m * FK_GROUP;
                FK_UNROLL
                for (int v = 0; v < FK_VECTORS; v++) {
                    VEC sum = LOAD(entry + m * FK_PADDED + v * FK_LANES);
                    FK_UNROLL
                    for (int p = 0; p < FK_GROUP; p++)
                        sum += w[p] * scaled[p][v];
                    STORE(entry + m * FK_PADDED + v * FK_LANES, sum);
                }
            }
        }
    }
}

/* total[p] += the sums of ``columns`` columns over the outer nodes, of ``count`` vectors from ``begin`` on, times the
   values there. As many sums run side by side as hide the latency of an addition and stay in registers: the vectors of
   nodes are loaded first, then each point's factor once. */
FK_INLINE void NAME(sums_at)(const fk_box *box, const int columns, const int begin, const int count,
                             const VEC value[FK_GROUP][FK_VECTORS], const double *work, const double *block,
                             VEC total[2][FK_GROUP])
{
    const ptrdiff_t outer = box->outer;
    VEC sum[2][FK_GROUP][FK_VECTORS];
    FK_UNROLL
    for (int c = 0; c < columns; c++)
        FK_UNROLL
        for (int p = 0; p < FK_GROUP; p++)
            FK_UNROLL
            for (int v = 0; v < count; v++)
                sum[c][p][v] = (VEC){0};
    for (ptrdiff_t m = 0; m < outer; m++) {
        const double *w = work + m * FK_GROUP;
        FK_UNROLL
        for (int c = 0; c < columns; c++) {
            VEC nodal[FK_VECTORS];
            FK_UNROLL
            for (int v = 0; v < count; v++)
                nodal[v] = LOAD(block + (c * outer + m) * FK_PADDED + (begin + v) * FK_LANES);
            FK_UNROLL
            for (int p = 0; p < FK_GROUP; p++)
                FK_UNROLL
                for (int v = 0; v < count; v++)
                    sum[c][p][v] += w[p] * nodal[v];
        }
    }
    FK_UNROLL
    for (int c = 0; c < columns; c++)
        FK_UNROLL
        for (int p = 0; p < FK_GROUP; p++)
            FK_UNROLL
            for (int v = 0; v < count; v++)
                total[c][p] += sum[c][p][v] * value[p][begin + v];
}

FK_INLINE void NAME(lanes_added)(const VEC total[FK_GROUP], double out[FK_GROUP])
{
    FK_UNROLL
    for (int p = 0; p < FK_GROUP; p++) {
        out[p] = 0.0;
        FK_UNROLL
        for (int t = 0; t < FK_LANES; t++)
            out[p] += total[p][t];
    }
}

/* Values of ``columns`` columns from j on at the group's points. */
FK_INLINE void NAME(columns_at)(const fk_box *box, const int columns, ptrdiff_t left, const int64_t *order,
                                const VEC value[FK_GROUP][FK_VECTORS], const double *work, const double *block,
                                double *V, ptrdiff_t k)
{
    const int held = FK_HELD(FK_VECTORS);
    VEC total[2][FK_GROUP] = {0};
    FK_UNROLL
    for (int v = 0; v < FK_VECTORS; v += held)
        NAME(sums_at)(box, columns, v, held, value, work, block, total);
    FK_UNROLL
    for (int c = 0; c < columns; c++) {
        double out[FK_GROUP];
        NAME(lanes_added)(total[c], out);
        FK_UNROLL
        for (int p = 0; p < FK_GROUP; p++)
            if (p < left)
                V[order[p] * k + c] = out[p];
    }
}

static void NAME(interpolate)(const fk_box *box, ptrdiff_t n, const double *position, ptrdiff_t stride,
                              const int64_t *order, double *V, ptrdiff_t k, double *work, const double *block)
{
    const ptrdiff_t d = box->d, size = box->outer * FK_PADDED;
    double s[FK_MOST_AXES][FK_GROUP];
    for (ptrdiff_t first = 0; first < n; first += FK_GROUP) {
        const ptrdiff_t left = n - first;
        ptrdiff_t j = 0;
        VEC value[FK_GROUP][FK_VECTORS];
        coordinates(box, left, position + first, stride, s);
        outer_values(box, s, work);
        FK_UNROLL
        for (int p = 0; p < FK_GROUP; p++)
            NAME(values_along)(box, s[d - 1][p], value[p]);
        if (FK_VECTORS == 1)
            for (; j + 2 <= k; j += 2)
                NAME(columns_at)(box, 2, left, order + first, value, work, block + j * size, V + j, k);
        for (; j < k; j++)
            NAME(columns_at)(box, 1, left, order + first, value, work, block + j * size, V + j, k);
    }
}

#undef NAME
#undef LOAD
#undef STORE
#undef FK_PADDED
#undef FK_VECTORS
#undef FK_LANES
#undef VEC
#undef MEM
