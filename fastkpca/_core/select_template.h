/* Which table of loops this processor runs: TABLE is its type and the stem of its names, SELECT the function. No include
   guard: included once for each kind of loops. */
#include "compiler.h"

#include <string.h>

static int runs(const TABLE *table)
{
#ifdef FK_HAVE_AVX512
    if (table == &FK_CAT(TABLE, avx512))
        return fk_runs_avx512();
#endif
#ifdef FK_HAVE_AVX2
    if (table == &FK_CAT(TABLE, avx2))
        return fk_runs_avx2();
#endif
    return table == &FK_CAT(TABLE, baseline);
}

const TABLE *SELECT(const char *name)
{
    static const TABLE *const tables[] = {
#ifdef FK_HAVE_AVX512
        &FK_CAT(TABLE, avx512),
#endif
#ifdef FK_HAVE_AVX2
        &FK_CAT(TABLE, avx2),
#endif
        &FK_CAT(TABLE, baseline),
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if ((*name == 0 || strcmp(name, tables[i]->name) == 0) && runs(tables[i]))
            return tables[i];
    return NULL;
}
