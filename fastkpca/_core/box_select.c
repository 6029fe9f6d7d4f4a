/* Which table of box loops this processor runs. */
#include "box_ops.h"
#include "isa.h"

#include <string.h>

static int runs(const fk_box_ops *ops)
{
#ifdef FK_HAVE_AVX512
    if (ops == &fk_box_ops_avx512)
        return fk_runs_avx512();
#endif
#ifdef FK_HAVE_AVX2
    if (ops == &fk_box_ops_avx2)
        return fk_runs_avx2();
#endif
    return ops == &fk_box_ops_baseline;
}

const fk_box_ops *fk_box_select(const char *name)
{
    static const fk_box_ops *const tables[] = {
#ifdef FK_HAVE_AVX512
        &fk_box_ops_avx512,
#endif
#ifdef FK_HAVE_AVX2
        &fk_box_ops_avx2,
#endif
        &fk_box_ops_baseline,
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if ((name == NULL || strcmp(name, tables[i]->name) == 0) && runs(tables[i]))
            return tables[i];
    return NULL;
}
