/* Vector loops are compiled for several instruction sets where the compiler can; products and sums are not contracted,
 * so that every one of them gives the same bits. */
#include "radial.h"

#include <math.h>
#include <string.h>

/* musl's loader cannot choose among clones; others do before ThreadSanitizer can be called */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define KC_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KC_CLONES
#endif
#if defined(__GNUC__)
#define KC_INLINE static inline __attribute__((always_inline))
#else
#define KC_INLINE static inline
#endif

KC_INLINE double from_bits(int64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

KC_INLINE int64_t to_bits(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* exp(x) for -700 <= x <= 700, within 1.5 units in the last place. What may underflow takes exp(x / 2) twice, the second
 * time as its last factor: a result that is subnormal is then rounded once. */
KC_INLINE double exp_of(double x)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer, kept in the low bits */
    double shifted = x * 1.4426950408889634074 + magic;
    double n = shifted - magic;
    double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = 1.0 + (r + r * r * p);
    int64_t whole = to_bits(shifted) - to_bits(magic);
    return p * from_bits((int64_t)((uint64_t)(whole + 1023) << 52));
}

KC_CLONES static void closed(const kc_profile *p, Py_ssize_t n, double *restrict r)
{
    const double c = p->c, largest = p->largest, linear = p->linear, square = p->square;
    for (Py_ssize_t i = 0; i < n; i++) {
        double t = r[i] * c;
        t = t < largest ? t : largest;
        double half = exp_of(-0.5 * t);
        r[i] = (1.0 + (linear * t + t * t * square)) * half * half;
    }
}

/* k without its exponential factor: a polynomial on each piece of an octave. */
KC_INLINE double tabulated(const kc_profile *p, double t)
{
    int64_t bits = to_bits(t), piece = (bits >> p->shift) - p->first;
    piece = piece < p->pieces ? piece : p->pieces - 1;
    /* the bits below the piece's own say where in it t lies: -1 <= x < 1, exactly */
    uint64_t below = ((uint64_t)bits << (52 - p->shift)) & 0x000FFFFFFFFFFFFF;
    double x = 2.0 * from_bits((int64_t)(below | 0x3FF0000000000000)) - 3.0;
    const double *a = p->table + KC_TERMS * piece;
    double even = a[KC_TERMS - 2], odd = a[KC_TERMS - 1], xx = x * x;
    for (int j = KC_TERMS - 4; j >= 0; j -= 2) {
        even = even * xx + a[j];
        odd = odd * xx + a[j + 1];
    }
    return even + x * odd;
}

static void general(const kc_profile *p, Py_ssize_t n, double *r)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        double t = r[i] * p->c;
        if (!(t < p->largest)) {
            r[i] = t >= p->largest ? 0.0 : t; /* NaN stays NaN */
            continue;
        }
        if (t < p->lowest) {
            r[i] = 1.0;
            continue;
        }
        double half = exp_of(-0.5 * t); /* exp(-t) may underflow where k does not: t^(nu - 1/2) is large */
        r[i] = tabulated(p, t) * half * half;
    }
}

void kc_profile_array(const kc_profile *p, Py_ssize_t n, double *r)
{
    if (p->table)
        general(p, n, r);
    else
        closed(p, n, r);
}

/* One row of distances to m sources, which are given coordinate by coordinate. */
KC_INLINE void one_row(int squares, int city_block, Py_ssize_t m, Py_ssize_t stride, Py_ssize_t d, const double *x,
                       const double *Yt, double *restrict out)
{
    if (d == 1 && !squares)
        city_block = 1; /* the same distance, without a root */
    for (Py_ssize_t j = 0; j < m; j++)
        out[j] = 0.0;
    for (Py_ssize_t a = 0; a < d; a++) {
        const double *restrict y = Yt + a * stride;
        const double xa = x[a];
        if (city_block)
            for (Py_ssize_t j = 0; j < m; j++)
                out[j] += fabs(xa - y[j]);
        else
            for (Py_ssize_t j = 0; j < m; j++) {
                double r = xa - y[j];
                out[j] += r * r;
            }
    }
    if (!squares && !city_block)
        for (Py_ssize_t j = 0; j < m; j++)
            out[j] = sqrt(out[j]);
}

KC_CLONES void kc_distances(int squares, int city_block, Py_ssize_t n, Py_ssize_t m, Py_ssize_t d, const double *X,
                            const double *Yt, double *out)
{
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t j = 0; j < m; j += 512)
            one_row(squares, city_block, m - j < 512 ? m - j : 512, m, d, X + i * d, Yt + j, out + i * m + j);
}

/* out holds x.y: make it |x - y|. Where that cancels, take differences: a close pair stays as exact as a far one. */
KC_CLONES void kc_mend_products(int same, int squares, Py_ssize_t n, Py_ssize_t m, Py_ssize_t d, const double *X,
                                const double *Y, const double *xx, const double *yy, double *out)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        double *restrict row = out + i * m;
        const double a = xx[i];
        Py_ssize_t close = 0;
        for (Py_ssize_t j = 0; j < m; j++) {
            double size = a + yy[j], s = size - 2.0 * row[j];
            close += s < size * 0.015625;
            row[j] = s;
        }
        if (close)
            for (Py_ssize_t j = 0; j < m; j++)
                if (row[j] < (a + yy[j]) * 0.015625) {
                    const double *restrict x = X + i * d, *restrict y = Y + j * d;
                    double s = 0.0;
                    for (Py_ssize_t c = 0; c < d; c++)
                        s += (x[c] - y[c]) * (x[c] - y[c]);
                    row[j] = s;
                }
        if (same)
            for (Py_ssize_t j = 0; j < i; j++)
                row[j] = out[j * m + i];
        if (!squares)
            for (Py_ssize_t j = same ? i : 0; j < m; j++)
                row[j] = sqrt(row[j]);
    }
}
