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
