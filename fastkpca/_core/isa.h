/* Which instruction sets this processor runs, for the tables of loops that were compiled once for each. */
#ifndef FK_ISA_H
#define FK_ISA_H

#ifdef FK_HAVE_AVX512
static inline int fk_runs_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
           && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#endif
#ifdef FK_HAVE_AVX2
static inline int fk_runs_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

#endif
