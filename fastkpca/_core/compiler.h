/* Requirements of the loops on a compiler in addition to C11. They are written with the vector types of GCC and clang,
   which MSVC's cl does not have: on Windows clang-cl and MinGW's gcc compile them (meson.build says so to cl). */
#ifndef FK_COMPILER_H
#define FK_COMPILER_H

#define FK_INLINE static inline __attribute__((always_inline))
#define FK_UNROLL _Pragma("GCC unroll 16")

/* The line of the cache at p will be needed soon; p may point anywhere. */
#define FK_PREFETCH(p) __builtin_prefetch(p)

/* NAME: a vector of BYTES bytes of type T; NAME_IN_MEMORY: the same where it lies among T's, aligned as T is */
#define FK_VECTOR(T, BYTES, NAME) typedef T NAME __attribute__((vector_size(BYTES)))
#define FK_VECTOR_IN_MEMORY(T, BYTES, NAME)                                                                           \
    typedef T NAME __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias))

/* Which instruction sets this processor runs, for the tables of loops that were compiled once for each. */
#ifdef FK_HAVE_AVX512
static inline int fk_runs_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
           && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#endif
#ifdef FK_HAVE_AVX2
static inline int fk_runs_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

/* Compiled once for each instruction set: FK_CAT(name, FK_ISA) */
#define FK_CAT_(a, b) a##_##b
#define FK_CAT(a, b) FK_CAT_(a, b)
#define FK_TEXT_(x) #x
#define FK_TEXT(x) FK_TEXT_(x)

#endif
