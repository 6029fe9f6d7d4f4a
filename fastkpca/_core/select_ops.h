/* Selection of a table of loops at run time. The header of each kind of loops includes this once, with FK_TABLE defined:
   the type of its tables and the stem of their names. No include guard. */
#include "compiler.h"

#include <string.h>

extern const FK_TABLE FK_CAT(FK_TABLE, baseline);
#ifdef FK_HAVE_AVX2
extern const FK_TABLE FK_CAT(FK_TABLE, avx2);
#endif
#ifdef FK_HAVE_AVX512
extern const FK_TABLE FK_CAT(FK_TABLE, avx512);
#endif

/* The table of this name, or the best one for an empty name; NULL where this processor or build has none. */
static inline const FK_TABLE *FK_CAT(FK_TABLE, select)(const char *name)
{
#ifdef FK_HAVE_AVX512
    if ((*name == 0 || strcmp(name, "avx512") == 0) && fk_runs_avx512())
        return &FK_CAT(FK_TABLE, avx512);
#endif
#ifdef FK_HAVE_AVX2
    if ((*name == 0 || strcmp(name, "avx2") == 0) && fk_runs_avx2())
        return &FK_CAT(FK_TABLE, avx2);
#endif
    return *name == 0 || strcmp(name, "baseline") == 0 ? &FK_CAT(FK_TABLE, baseline) : NULL;
}

#undef FK_TABLE
