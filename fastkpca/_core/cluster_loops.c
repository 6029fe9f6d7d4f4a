#include "cluster_loops.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__) && defined(__GLIBC__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

CLONES void fk_monomial(ptrdiff_t n, const double *restrict a, const double *restrict b, double w, double *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = a[i] * (b[i] * w);
}

CLONES void fk_weigh(ptrdiff_t n, const double *restrict a, const double *restrict b, ptrdiff_t stride,
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

CLONES void fk_add_products(ptrdiff_t n, const double *restrict a, const double *restrict b, double *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] += a[i] * b[i];
}
