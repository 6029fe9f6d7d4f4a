/* Sums of products of two features for one type: T the values', LANES of which a vector holds, S its letter. Sums are
   of this type within a tile of FK_LENGTH points, over runs of RUN points that are then added up, and of double over the
   tiles. No include guard: included once for each type. */
#define NAME(x) FK_CAT(x, S)

FK_VECTOR(T, sizeof(double) * FK_WIDE, NAME(wide));
FK_VECTOR_IN_MEMORY(T, sizeof(double) * FK_WIDE, NAME(wide_mem));
FK_VECTOR_IN_MEMORY(T, sizeof(double) * FK_WIDE / 2, NAME(half));

FK_INLINE void NAME(run)(int rows, int columns, ptrdiff_t start, ptrdiff_t end, const T *const *left,
                         const T *const *right, NAME(wide) sum[][FK_COLUMNS])
{
    for (ptrdiff_t i = start; i < end; i += LANES) {
        NAME(wide) y[FK_COLUMNS];
        FK_UNROLL for (int q = 0; q < columns; q++)
            y[q] = *(const NAME(wide_mem) *)(right[q] + i);
        FK_UNROLL for (int p = 0; p < rows; p++) {
            const NAME(wide) x = *(const NAME(wide_mem) *)(left[p] + i);
            FK_UNROLL for (int q = 0; q < columns; q++)
                sum[p][q] += x * y[q];
        }
    }
}

FK_INLINE void NAME(block)(int rows, int columns, ptrdiff_t n, const T *const *left, const T *const *right,
                           double *sums, ptrdiff_t stride)
{
    NAME(wide) sum[FK_ROWS][FK_COLUMNS] = {0};
    NAME(run)(rows, columns, 0, smaller(RUN, n), left, right, sum);
    for (ptrdiff_t start = RUN; start < n; start += RUN) {
        NAME(wide) more[FK_ROWS][FK_COLUMNS] = {0};
        NAME(run)(rows, columns, start, smaller(start + RUN, n), left, right, more);
        FK_UNROLL for (int p = 0; p < rows; p++)
            FK_UNROLL for (int q = 0; q < columns; q++)
                sum[p][q] += more[p][q];
    }
#if FK_WIDE == 8
    if (columns == 4) {
        FK_UNROLL for (int p = 0; p < rows; p++)
            NAME(add_four)((const void *)sum[p], sums + p * stride);
        return;
    }
#endif
    FK_UNROLL for (int p = 0; p < rows; p++)
        FK_UNROLL for (int q = 0; q < columns; q++) {
            T lanes[LANES];
            *(NAME(wide_mem) *)lanes = (NAME(wide_mem))sum[p][q];
            *(NAME(half) *)lanes = ((const NAME(half) *)lanes)[0] + ((const NAME(half) *)lanes)[1];
            FK_UNROLL for (int width = LANES / 4; width; width /= 2)
                FK_UNROLL for (int l = 0; l < width; l++)
                    lanes[l] += lanes[l + width];
            sums[p * stride + q] += lanes[0];
        }
}

#define FK_CASE(p, q)                                                                                                 \
    case (p) * 8 + (q):                                                                                               \
        NAME(block)(p, q, n, a, b, sums, stride);                                                                     \
        break
#define FK_CASES(p) FK_CASE(p, 1); FK_CASE(p, 2); FK_CASE(p, 3)

static void NAME(add_block)(ptrdiff_t p, ptrdiff_t q, ptrdiff_t n, const T *const *a, const T *const *b,
                            double *sums, ptrdiff_t stride)
{
    switch (p * 8 + q) {
        FK_CASES(1);
        FK_CASES(2);
        FK_CASES(3);
        FK_CASES(4);
#if FK_COLUMNS == 4
        FK_CASES(5);
        FK_CASES(6);
        FK_CASE(1, 4);
        FK_CASE(2, 4);
        FK_CASE(3, 4);
        FK_CASE(4, 4);
        FK_CASE(5, 4);
        FK_CASE(6, 4);
#endif
    }
}

static void NAME(add_square)(ptrdiff_t n, const T *values, ptrdiff_t stride, ptrdiff_t features, double *sums)
{
    for (ptrdiff_t start = 0; start < n; start += FK_LENGTH)
        for (ptrdiff_t panel = 0; panel < features; panel += FK_PANEL)
            for (ptrdiff_t i = panel; i < features; i += FK_ROWS) {
                const T *a[FK_ROWS], *b[FK_COLUMNS];
                const ptrdiff_t p = smaller(FK_ROWS, features - i), end = smaller(panel + FK_PANEL, i + p);
                for (ptrdiff_t r = 0; r < p; r++)
                    a[r] = values + (i + r) * stride + start;
                for (ptrdiff_t j = panel; j < end; j += FK_COLUMNS) {
                    const ptrdiff_t q = smaller(FK_COLUMNS, end - j);
                    for (ptrdiff_t c = 0; c < q; c++)
                        b[c] = values + (j + c) * stride + start;
                    const ptrdiff_t length = smaller(FK_LENGTH, n - start);
                    if (j + q <= i + 1) {
                        NAME(add_block)(p, q, length, a, b, sums + i * features + j, features);
                        continue;
                    }
                    double corner[FK_ROWS * FK_COLUMNS] = {0}; /* on the diagonal */
                    NAME(add_block)(p, q, length, a, b, corner, FK_COLUMNS);
                    for (ptrdiff_t r = 0; r < p; r++)
                        for (ptrdiff_t c = 0; c < q && j + c <= i + r; c++)
                            sums[(i + r) * features + j + c] += corner[r * FK_COLUMNS + c];
                }
            }
}

#undef FK_CASE
#undef FK_CASES
#undef NAME
#undef LANES
#undef RUN
#undef T
#undef S
