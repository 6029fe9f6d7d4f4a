/* Sums of the numbers that vectors of AVX2 hold, several vectors at a time: by itself each would take as many steps. */
#ifndef FK_LANE_SUMS_H
#define FK_LANE_SUMS_H
#include "compiler.h"

#ifdef __AVX2__
#include <immintrin.h>

/* (the sum of a's numbers, of b's, c's and d's) */
FK_INLINE __m256d fk_four_sums(__m256d a, __m256d b, __m256d c, __m256d d)
{
    const __m256d ab = _mm256_hadd_pd(a, b), cd = _mm256_hadd_pd(c, d);
    return _mm256_permute2f128_pd(ab, cd, 0x21) + _mm256_blend_pd(ab, cd, 0xc);
}
#endif

#endif
