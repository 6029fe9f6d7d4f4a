/* Which table of tile loops this processor runs. */
#include "tile_ops.h"
#include "isa.h"

#include <string.h>

static int runs(const fk_ops *ops)
{
#ifdef FK_HAVE_AVX512
    if (ops == &fk_ops_avx512)
        return fk_runs_avx512();
#endif
#ifdef FK_HAVE_AVX2
    if (ops == &fk_ops_avx2)
        return fk_runs_avx2();
#endif
    return ops == &fk_ops_baseline;
}

const fk_ops *fk_select(const char *name)
{
    static const fk_ops *const tables[] = {
#ifdef FK_HAVE_AVX512
        &fk_ops_avx512,
#endif
#ifdef FK_HAVE_AVX2
        &fk_ops_avx2,
#endif
        &fk_ops_baseline,
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if ((name == NULL || strcmp(name, tables[i]->name) == 0) && runs(tables[i]))
            return tables[i];
    return NULL;
}
