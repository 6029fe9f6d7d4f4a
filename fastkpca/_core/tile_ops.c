/* One instruction set's table of tile loops: the vector types and the few operations that differ, then the loops
   themselves (tile_ops_template.h) for double and for float.

   FK_ISA is baseline, avx2 or avx512. Vectors are GCC's and clang's vector extensions, so the baseline is SSE2 on
   x86-64 and NEON on aarch64. Multiply-adds are written out: contraction by the compiler could round the same entry
   differently in two copies of a loop, and K would no longer be symmetric bit for bit. */
#include "tile_ops.h"

#include "compiler.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include <immintrin.h>
#define FK_BYTES 64
#define FK_ROWS 3
#define FK_COLUMNS 8
#define FK_ROWS_LEFT 1
#define FK_MOST_ROWS FK_ROWS
#define FK_ROWS_OF(C) FK_ROWS
#define FK_WIDTH(left) ((left) >= 8 ? 8 : (left) >= 4 ? 4 : (left) >= 2 ? 2 : 1)
/* the tile is not cut */
#define FK_STRIPE ((ptrdiff_t)1 << 40)
#define FK_HEIGHT FK_STRIPE
#define FK_STRIP FK_STRIPE
#define FK_AHEAD 0
#else
#ifdef __AVX2__
#include <immintrin.h>
#define FK_BYTES 32
#else
#define FK_BYTES 16
#endif
#define FK_ROWS 3
#define FK_COLUMNS 4
#define FK_ROWS_LEFT 2
/* with fewer columns more rows, so that as many sums do not wait for each other */
#define FK_MOST_ROWS 6
#define FK_ROWS_OF(C) ((C) == 4 ? 3 : (C) == 3 ? 4 : 6)
/* the fewest blocks, all of nearly equal width: in a narrow one many sums would wait for each other */
#define FK_BLOCKS(left) (((left) + 3) / 4)
#define FK_WIDTH(left) (((left) + FK_BLOCKS(left) - 1) / FK_BLOCKS(left))
/* rows of a stripe, a multiple of all of these; of a stripe across, whose strips are one block wide */
#define FK_STRIPE 24
#define FK_AHEAD 1
#define FK_HEIGHT 96
#define FK_STRIP (FK_ROWS * LANES)
#endif

/* ---- double ---- */

FK_VECTOR(double, FK_BYTES, vec_d);
FK_VECTOR_IN_MEMORY(double, FK_BYTES, mem_d);
FK_VECTOR(uint64_t, FK_BYTES, bits_d); /* unsigned: sums of bits may wrap around, in lanes that are then masked */
#define LANES_d (FK_BYTES / 8)

#if FK_BYTES == 64
#define FMA_d(a, b, c) ((vec_d)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif FK_BYTES == 32
#define FMA_d(a, b, c) ((vec_d)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#else
#define FMA_d(a, b, c) ((a) * (b) + (c))
#endif

FK_INLINE vec_d all_d(double x) { return x - (vec_d){0}; }

/* 1.5 * 2^52 added and taken away rounds to an integer, and leaves that integer in the low bits. The natural
   logarithm of 2 is split in two so that k times the first part is exact. e^r = 1 + r + r^2 q(r) on
   |r| <= log(2)/2, q of degree 9 from Chebyshev nodes: error 1.3e-17. */
#define MAGIC_d 0x1.8p52
#define LOG2E_d 0x1.71547652b82fep+0
#define LN2_HIGH_d 0x1.62e42feep-1
#define LN2_LOW_d 0x1.a39ef35793c76p-33
#define EXPONENT_SHIFT_d 52
#define LEAST_EXPONENT_d -1022.0
#define TANH_ONE_d 20.0

FK_INLINE vec_d exp_tail_d(vec_d r)
{
    /* r^2 q(r), by Estrin's scheme: short chains */
    vec_d r2 = r * r, r4 = r2 * r2;
    vec_d a = FMA_d(r, all_d(0.1666666666666666746), all_d(0.5));
    vec_d b = FMA_d(r, all_d(0.0083333333333300381973), all_d(0.041666666666623820532));
    vec_d c = FMA_d(r, all_d(0.00019841269863171556026), all_d(0.0013888888917367080562));
    vec_d d = FMA_d(r, all_d(2.7557268276905696187e-6), all_d(0.000024801521057868205199));
    vec_d e = FMA_d(r, all_d(2.5100472505694996003e-8), all_d(2.7620201591031548792e-7));
    a = FMA_d(r2, b, a);
    c = FMA_d(r2, d, c);
    c = FMA_d(r4, e, c);
    a = FMA_d(r4, c, a);
    return r2 * a;
}

/* ---- float ---- */

FK_VECTOR(float, FK_BYTES, vec_s);
FK_VECTOR_IN_MEMORY(float, FK_BYTES, mem_s);
FK_VECTOR(uint32_t, FK_BYTES, bits_s);
#define LANES_s (FK_BYTES / 4)

#if FK_BYTES == 64
#define FMA_s(a, b, c) ((vec_s)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#elif FK_BYTES == 32
#define FMA_s(a, b, c) ((vec_s)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#else
#define FMA_s(a, b, c) ((a) * (b) + (c))
#endif

FK_INLINE vec_s all_s(float x) { return x - (vec_s){0}; }

#define MAGIC_s 0x1.8p23f
#define LOG2E_s 0x1.715476p+0f
#define LN2_HIGH_s 0x1.62e4p-1f
#define LN2_LOW_s 1.4286068203094173e-06f
#define EXPONENT_SHIFT_s 23
#define LEAST_EXPONENT_s -126.0f
#define TANH_ONE_s 10.0f

FK_INLINE vec_s exp_tail_s(vec_s r)
{
    vec_s r2 = r * r;
    vec_s a = FMA_s(r, all_s(0.16666576666119928305f), all_s(0.5f));
    vec_s b = FMA_s(r, all_s(0.0083632328836826182041f), all_s(0.041666554212984150314f));
    b = FMA_s(r2, all_s(0.0013926250831497611718f), b);
    return r2 * FMA_s(r2, b, a);
}

/* ---- sums of the entries of C vectors, added to C doubles; the order is fixed ---- */

#if FK_BYTES == 64
FK_INLINE double sum_d(vec_d v) { return _mm512_reduce_add_pd((__m512d)v); }
FK_INLINE float sum_s(vec_s v) { return _mm512_reduce_add_ps((__m512)v); }
#else
#define FK_DEFINE_SUM(T, S)                                                                                           \
    FK_INLINE T sum_##S(vec_##S v)                                                                                    \
    {                                                                                                                 \
        T part[LANES_##S];                                                                                            \
        memcpy(part, &v, sizeof part);                                                                                \
        for (int width = LANES_##S / 2; width > 0; width /= 2)                                                        \
            for (int l = 0; l < width; l++)                                                                           \
                part[l] += part[l + width];                                                                           \
        return part[0];                                                                                               \
    }
FK_DEFINE_SUM(double, d)
FK_DEFINE_SUM(float, s)
#endif

#define FK_DEFINE_SUMS(S)                                                                                             \
    FK_INLINE void sums_##S(const int C, const vec_##S *v, double *out)                                               \
    {                                                                                                                 \
        for (int c = 0; c < C; c++)                                                                                   \
            out[c] += sum_##S(v[c]);                                                                                  \
    }
FK_DEFINE_SUMS(d)
FK_DEFINE_SUMS(s)

/* ---- exp(c x) for c x <= 0: 0 below the normal numbers, NaN for NaN, exactly 1 for 0 ----

   With AVX-512 2^(k/16) comes from a table of sixteen in two registers, so that a polynomial of degree 6 (float: 3)
   is enough; elsewhere the whole of [-log(2)/2, log(2)/2] is left to one of degree 11 (float: 6). */

#if FK_BYTES == 64
typedef struct {
    vec_d high, low;
} scale_d; /* c log2(e) */
typedef struct {
    vec_s high, low;
} scale_s;

FK_INLINE scale_d exp_scale_d(double c)
{
    double high = c * LOG2E_d;
    return (scale_d){all_d(high), all_d(fma(c, LOG2E_d, -high) + c * 0x1.777d0ffda0d24p-56)};
}

FK_INLINE scale_s exp_scale_s(double c)
{
    double scaled = c * LOG2E_d;
    float high = (float)scaled;
    return (scale_s){all_s(high), all_s((float)(scaled - high))};
}

FK_INLINE vec_d exp_d(vec_d x, scale_d c)
{
    const __m512d first = _mm512_setr_pd(1.0, 1.0442737824274138403, 1.0905077326652576592, 1.1387886347566916537,
                                         1.1892071150027210667, 1.2418578120734840486, 1.2968395546510096659,
                                         1.3542555469368927283);
    const __m512d second = _mm512_setr_pd(1.4142135623730950488, 1.4768261459394993114, 1.5422108254079408236,
                                          1.6104903319492543082, 1.6817928305074290861, 1.7562521603732994831,
                                          1.8340080864093424635, 1.9152065613971472939);
    const vec_d magic = all_d(0x1.8p48); /* rounds to sixteenths */
    vec_d t = FMA_d(x, c.high, magic);
    vec_d k = t - magic;
    vec_d r = FMA_d(x, c.low, (vec_d)_mm512_fmsub_pd((__m512d)x, (__m512d)c.high, (__m512d)k));
    vec_d r2 = r * r;
    vec_d p = FMA_d(r, all_d(0.2402265069591007508), all_d(0.69314718055994575333));
    vec_d q = FMA_d(r, all_d(0.0096181291069195378674), all_d(0.055504108656639298913));
    vec_d s = FMA_d(r, all_d(0.00015403723980749256422), all_d(0.001333378157678426869));
    __m512d table = _mm512_permutex2var_pd(first, (__m512i)t, second);
    q = FMA_d(r2, s, q);
    p = FMA_d(r2, q, p);
    p = FMA_d(p, r * (vec_d)table, (vec_d)table);
    __mmask8 normal = _mm512_cmp_pd_mask((__m512d)k, (__m512d)all_d(LEAST_EXPONENT_d), _CMP_NLT_UQ);
    return (vec_d)_mm512_maskz_scalef_pd(normal, (__m512d)p, (__m512d)k);
}

FK_INLINE vec_s exp_s(vec_s x, scale_s c)
{
    const __m512 table = _mm512_setr_ps(
        1.0f, 1.0442737824274138403f, 1.0905077326652576592f, 1.1387886347566916537f, 1.1892071150027210667f,
        1.2418578120734840486f, 1.2968395546510096659f, 1.3542555469368927283f, 1.4142135623730950488f,
        1.4768261459394993114f, 1.5422108254079408236f, 1.6104903319492543082f, 1.6817928305074290861f,
        1.7562521603732994831f, 1.8340080864093424635f, 1.9152065613971472939f);
    const vec_s magic = all_s(0x1.8p19f);
    vec_s t = FMA_s(x, c.high, magic);
    vec_s k = t - magic;
    vec_s r = FMA_s(x, c.low, (vec_s)_mm512_fmsub_ps((__m512)x, (__m512)c.high, (__m512)k));
    vec_s p = FMA_s(r, all_s(0.05550508525196962683f), all_s(0.24023355156988720906f));
    __m512 power = _mm512_permutexvar_ps((__m512i)t, table);
    p = FMA_s(p, r, all_s(0.69314718055994530942f));
    p = FMA_s(p, r * (vec_s)power, (vec_s)power);
    __mmask16 normal = _mm512_cmp_ps_mask((__m512)k, (__m512)all_s(LEAST_EXPONENT_s), _CMP_NLT_UQ);
    return (vec_s)_mm512_maskz_scalef_ps(normal, (__m512)p, (__m512)k);
}
#else
#define FK_DEFINE_EXP(T, S)                                                                                           \
    typedef struct {                                                                                                  \
        vec_##S c;                                                                                                    \
    } scale_##S;                                                                                                      \
    FK_INLINE scale_##S exp_scale_##S(double c) { return (scale_##S){all_##S((T)c)}; }                                \
    FK_INLINE vec_##S exp_##S(vec_##S x, scale_##S c)                                                                 \
    {                                                                                                                 \
        vec_##S a = x * c.c;                                                                                          \
        vec_##S t = FMA_##S(a, all_##S(LOG2E_##S), all_##S(MAGIC_##S));                                               \
        vec_##S k = t - all_##S(MAGIC_##S);                                                                           \
        vec_##S r = FMA_##S(k, all_##S(-LN2_LOW_##S), FMA_##S(k, all_##S(-LN2_HIGH_##S), a));                         \
        vec_##S p = all_##S(1) + (r + exp_tail_##S(r));                                                               \
        bits_##S scaled = (bits_##S)p + ((bits_##S)t << EXPONENT_SHIFT_##S);                                          \
        return (vec_##S)(scaled & ~(bits_##S)(k < all_##S(LEAST_EXPONENT_##S)));                                      \
    }
FK_DEFINE_EXP(double, d)
FK_DEFINE_EXP(float, s)
#endif

/* ---- tanh a = -m / (2 + m), m = e^(-2|a|) - 1 = (2^k - 1) + 2^k (e^r - 1): no cancellation at small a ---- */

#define FK_DEFINE_TANH(T, S)                                                                                          \
    FK_INLINE vec_##S tanh_##S(vec_##S a)                                                                             \
    {                                                                                                                 \
        const bits_##S sign_bit = (bits_##S)all_##S((T)-0.0);                                                         \
        bits_##S sign = (bits_##S)a & sign_bit;                                                                       \
        vec_##S b = (vec_##S)((bits_##S)a & ~sign_bit);                                                               \
        bits_##S big = (bits_##S)(b > all_##S(TANH_ONE_##S));                                                         \
        b = (vec_##S)(((bits_##S)b & ~big) | ((bits_##S)all_##S(TANH_ONE_##S) & big));                                \
        b = b * all_##S(-2);                                                                                          \
        vec_##S t = FMA_##S(b, all_##S(LOG2E_##S), all_##S(MAGIC_##S));                                               \
        vec_##S k = t - all_##S(MAGIC_##S);                                                                           \
        vec_##S r = FMA_##S(k, all_##S(-LN2_LOW_##S), FMA_##S(k, all_##S(-LN2_HIGH_##S), b));                         \
        vec_##S p = r + exp_tail_##S(r);                                                                              \
        vec_##S s = (vec_##S)((bits_##S)all_##S(1) + ((bits_##S)t << EXPONENT_SHIFT_##S));                            \
        vec_##S m = FMA_##S(s, p, s - all_##S(1));                                                                    \
        return (vec_##S)((bits_##S)(-m / (all_##S(2) + m)) | sign);                                                   \
    }
FK_DEFINE_TANH(double, d)
FK_DEFINE_TANH(float, s)

#define T double
#define S d
#define LANES LANES_d
#include "tile_ops_template.h"
#undef T
#undef S
#undef LANES
#define T float
#define S s
#define LANES LANES_s
#include "tile_ops_template.h"
#undef T
#undef S
#undef LANES

FK_VECTOR(float, FK_BYTES / 2, vec_half);
FK_VECTOR_IN_MEMORY(float, FK_BYTES / 2, mem_half);

/* of tiles of either type, in double */
#define FK_DEFINE_SQUARES(T, S, MEM)                                                                                  \
    static void rounded_##S(ptrdiff_t n, const T *K, double shift, float *out)                                        \
    {                                                                                                                 \
        for (ptrdiff_t i = 0; i < n; i++)                                                                             \
            out[i] = (float)(K[i] - shift);                                                                           \
    }                                                                                                                 \
    static void squares_##S(ptrdiff_t ni, ptrdiff_t nj, const T *K, ptrdiff_t ldk, const double *ri, const double *rj, \
                            double g, double *sums)                                                                   \
    {                                                                                                                 \
        for (ptrdiff_t i = 0; i < ni; i++) {                                                                          \
            const T *row = K + i * ldk;                                                                               \
            const vec_d shift = all_d(g - ri[i]);                                                                     \
            vec_d centred[2] = {{0}, {0}}, plain[2] = {{0}, {0}};                                                     \
            double c1 = 0, c2 = 0;                                                                                    \
            ptrdiff_t j = 0;                                                                                          \
            for (; j + 2 * LANES_d <= nj; j += 2 * LANES_d)                                                           \
                for (int h = 0; h < 2; h++) {                                                                         \
                    vec_d v = __builtin_convertvector(*(const MEM *)(row + j + h * LANES_d), vec_d);                  \
                    vec_d w = v - (*(const mem_d *)(rj + j + h * LANES_d) - shift);                                   \
                    centred[h] += w * w;                                                                              \
                    plain[h] += v * v;                                                                                \
                }                                                                                                     \
            for (; j < nj; j++) {                                                                                     \
                double v = row[j], w = v - (rj[j] - (g - ri[i]));                                                     \
                c1 += w * w;                                                                                          \
                c2 += v * v;                                                                                          \
            }                                                                                                         \
            sums[0] += c1 + sum_d(centred[0] + centred[1]);                                                           \
            sums[1] += c2 + sum_d(plain[0] + plain[1]);                                                               \
        }                                                                                                             \
    }
FK_DEFINE_SQUARES(double, d, mem_d)
FK_DEFINE_SQUARES(float, s, mem_half)

#define FK_TABLE(S)                                                                                                   \
    {gauss_direct_##S, dot_direct_##S, gauss_map_##S,           power_map_##S,                                        \
     tanh_map_##S,     multiply_##S,   multiply_transposed_##S, squares_##S, rounded_##S}

const fk_ops FK_CAT(fk_ops, FK_ISA) = {FK_TEXT(FK_ISA), FK_TABLE(d), FK_TABLE(s)};
