#include "cluster_loops.h"

#include "compiler.h"

FK_CLONES void fk_monomial(ptrdiff_t n, const double *restrict a, const double *restrict b, double w,
                           double *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = a[i] * (b[i] * w);
}

FK_CLONES void fk_weigh(ptrdiff_t n, const double *restrict a, const double *restrict b, ptrdiff_t stride,
                        double *restrict out)
{
    if (stride == 1) {
        for (ptrdiff_t i = 0; i < n; i++)
            out[i] = a[i] * b[i];
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = a[i] * b[i * stride];
}

FK_CLONES void fk_add_products(ptrdiff_t n, const double *restrict a, const double *restrict b, double *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] += a[i] * b[i];
}

FK_CLONES ptrdiff_t fk_keep(ptrdiff_t n, const double *restrict a, double least, int32_t first, float *restrict values,
                            int32_t *restrict columns)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < n; i++) { /* written whether it stays or not: no branch to guess */
        values[count] = (float)a[i];
        columns[count] = first + (int32_t)i;
        count += a[i] > least;
    }
    return count;
}

FK_CLONES void fk_sparse_product(ptrdiff_t rows, const ptrdiff_t *restrict start, const float *restrict values,
                                 const int32_t *restrict columns, const double *restrict B, double *restrict out)
{
    FK_VECTOR_IN_MEMORY(double, 32, four_in_memory);
    FK_VECTOR(double, 32, four);
    for (ptrdiff_t i = 0; i < rows; i++) {
        four even = {0.0}, odd = {0.0};
        ptrdiff_t e = start[i];
        for (; e + 1 < start[i + 1]; e += 2) {
            even += (double)values[e] * *(const four_in_memory *)(B + 4 * (ptrdiff_t)columns[e]);
            odd += (double)values[e + 1] * *(const four_in_memory *)(B + 4 * (ptrdiff_t)columns[e + 1]);
        }
        if (e < start[i + 1])
            even += (double)values[e] * *(const four_in_memory *)(B + 4 * (ptrdiff_t)columns[e]);
        *(four_in_memory *)(out + 4 * i) = even + odd;
    }
}
