/* One instruction set's table of the products with even and odd columns. FK_ISA is baseline, avx2 or avx512; vectors are
   GCC's and clang's vector extensions and run over lines: inner numbers, or lines gathered where these are few.

   For a row x and its mirror image, E and O are the sums over even and odd columns at x: values are E + O at x and
   E - O at the image. Transposed, even columns meet the sum of the two rows and odd ones their difference. Either way
   half of the multiplications. */
#include "parity_ops.h"

#include "compiler.h"

/* Sums of FK_ROWS rows by FK_MOST vectors stay in registers, of which AVX-512 has 32, the others 16; FK_PAIRS rows have
   two sums each, of which the first may wait in memory where registers are few. */
#if defined(__AVX512F__)
#define FK_WIDE 8
#define FK_PAIRS 3
#define FK_ROWS 6
#define FK_MOST 4
#define FK_AHEAD 0
#else
#if defined(__AVX2__)
#define FK_WIDE 4
#else
#define FK_WIDE 2
#endif
#define FK_PAIRS 4
#define FK_ROWS 4
#define FK_MOST 3
#define FK_AHEAD 1
#endif
/* Numbers in the first level of cache: rows that lie farther apart are copied side by side before they are met often. */
#define FK_NEAR 4096
/* FK_AHEAD: such rows are asked for ahead of time. Measured with AVX2 alone: a tenth of the time of weighed products. */

FK_VECTOR(double, 8 * FK_WIDE, wide);
FK_VECTOR_IN_MEMORY(double, 8 * FK_WIDE, wide_mem);
#define LOAD(p) ((wide) * (const wide_mem *)(p))
#define STORE(p, v) (*(wide_mem *)(p) = (wide_mem)(v))

/* sum[r] = sum over k of A[r * row_step + k * step] times row k of B, vectors of which begin at the places ``at`` */
FK_INLINE void tile(int rows, int vectors, ptrdiff_t length, const double *A, ptrdiff_t row_step, ptrdiff_t step,
                    const double *B, ptrdiff_t stride, const ptrdiff_t *at, wide sum[][FK_MOST])
{
    FK_UNROLL for (int r = 0; r < rows; r++)
        FK_UNROLL for (int v = 0; v < vectors; v++)
            sum[r][v] = (wide){0};
    for (ptrdiff_t k = 0; k < length; k++) {
        wide x[FK_MOST];
        FK_UNROLL for (int v = 0; v < vectors; v++)
            x[v] = LOAD(B + k * stride + at[v]);
        FK_UNROLL for (int r = 0; r < rows; r++)
            FK_UNROLL for (int v = 0; v < vectors; v++)
                sum[r][v] += x[v] * A[r * row_step + k * step];
    }
}

FK_INLINE void side_by_side(int vectors, ptrdiff_t *at)
{
    FK_UNROLL for (int v = 0; v < vectors; v++)
        at[v] = v * FK_WIDE;
}

static ptrdiff_t image_of(const fk_parity *m, ptrdiff_t i) { return m->fixed || i ? m->n - m->fixed - i : 0; }

FK_INLINE void expand_rows(int pairs, int vectors, const fk_parity *m, ptrdiff_t i, const double *in, ptrdiff_t row,
                           const ptrdiff_t *from, double *out, ptrdiff_t out_row, const ptrdiff_t *at)
{
    wide even[FK_PAIRS][FK_MOST], odd[FK_PAIRS][FK_MOST];
    tile(pairs, vectors, m->n_even, m->even + i * m->n_even, m->n_even, 1, in, row, from, even);
    tile(pairs, vectors, m->n_odd, m->odd + i * m->n_odd, m->n_odd, 1, in + m->n_even * row, row, from, odd);
    FK_UNROLL for (int p = 0; p < pairs; p++) {
        double *here = out + (i + p) * out_row, *there = out + image_of(m, i + p) * out_row;
        FK_UNROLL for (int v = 0; v < vectors; v++) {
            STORE(there + at[v], even[p][v] - odd[p][v]);
            STORE(here + at[v], even[p][v] + odd[p][v]);
        }
    }
}

FK_INLINE void fold_rows(int rows, int vectors, ptrdiff_t half, ptrdiff_t columns, const double *A, const double *B,
                         const ptrdiff_t *at, double *out, ptrdiff_t out_row)
{
    ptrdiff_t dense[FK_MOST];
    wide sum[FK_ROWS][FK_MOST];
    side_by_side(vectors, dense);
    tile(rows, vectors, half, A, 1, columns, B, vectors * FK_WIDE, dense, sum);
    FK_UNROLL for (int r = 0; r < rows; r++)
        FK_UNROLL for (int v = 0; v < vectors; v++)
            STORE(out + r * out_row + at[v], sum[r][v]);
}

FK_INLINE void expand_lanes(int vectors, const fk_parity *m, const double *in, ptrdiff_t row, const ptrdiff_t *from,
                            double *out, ptrdiff_t out_row, const ptrdiff_t *at, double *work)
{
    const ptrdiff_t width = vectors * FK_WIDE, columns = m->n_even + m->n_odd;
    ptrdiff_t i = 0, dense[FK_MOST];
    if (row > width && row * columns > FK_NEAR) {
        for (ptrdiff_t k = 0; k < columns; k++)
            FK_UNROLL for (int v = 0; v < vectors; v++)
                STORE(work + k * width + v * FK_WIDE, LOAD(in + k * row + from[v]));
        side_by_side(vectors, dense);
        in = work, row = width, from = dense;
    }
    for (; i + FK_PAIRS <= m->half; i += FK_PAIRS)
        expand_rows(FK_PAIRS, vectors, m, i, in, row, from, out, out_row, at);
    for (; i + 2 <= m->half; i += 2)
        expand_rows(2, vectors, m, i, in, row, from, out, out_row, at);
    if (i < m->half)
        expand_rows(1, vectors, m, i, in, row, from, out, out_row, at);
}

FK_INLINE void fold_columns(int vectors, ptrdiff_t half, ptrdiff_t columns, const double *A, const double *B,
                            const ptrdiff_t *at, double *out, ptrdiff_t out_row)
{
    ptrdiff_t j = 0;
    for (; j + FK_ROWS <= columns; j += FK_ROWS)
        fold_rows(FK_ROWS, vectors, half, columns, A + j, B, at, out + j * out_row, out_row);
    for (; j + 2 <= columns; j += 2)
        fold_rows(2, vectors, half, columns, A + j, B, at, out + j * out_row, out_row);
    if (j < columns)
        fold_rows(1, vectors, half, columns, A + j, B, at, out + j * out_row, out_row);
}

/* ``weights``, where there are any, multiply the rows of ``in``; theirs are ``weights_row`` apart, vectors at ``at``. */
FK_INLINE void fold_lanes(int vectors, const fk_parity *m, const double *in, ptrdiff_t row, const ptrdiff_t *from,
                          const double *weights, ptrdiff_t weights_row, const ptrdiff_t *at, double *out,
                          ptrdiff_t out_row, double *work)
{
    const ptrdiff_t width = vectors * FK_WIDE;
    double *sums = work, *differences = work + m->half * width;
    for (ptrdiff_t i = 0; i < m->half; i++) {
        const ptrdiff_t image = image_of(m, i);
        FK_UNROLL for (int v = 0; v < vectors; v++) {
            wide x = LOAD(in + i * row + from[v]), y = LOAD(in + image * row + from[v]);
            if (weights) {
                x *= LOAD(weights + i * weights_row + at[v]);
                y *= LOAD(weights + image * weights_row + at[v]);
            }
            STORE(sums + i * width + v * FK_WIDE, image == i ? x : x + y);
            STORE(differences + i * width + v * FK_WIDE, x - y);
        }
    }
    fold_columns(vectors, m->half, m->n_even, m->even, sums, at, out, out_row);
    fold_columns(vectors, m->half, m->n_odd, m->odd, differences, at, out + m->n_even * out_row, out_row);
}

/* A' diag(weights) A times the lines: what A times them is stays in the first level of cache. */
FK_INLINE void weigh_lanes(int vectors, const fk_parity *m, const double *in, ptrdiff_t row, const ptrdiff_t *at,
                           const double *weights, double *out, double *work)
{
    const ptrdiff_t width = vectors * FK_WIDE;
    double *values = work, *rest = work + m->n * width;
    ptrdiff_t dense[FK_MOST];
    side_by_side(vectors, dense);
    expand_lanes(vectors, m, in, row, at, values, width, dense, rest);
    fold_lanes(vectors, m, values, width, dense, weights, row, at, out, row, rest);
}

enum { EXPAND, FOLD, WEIGH };

static void lanes(int what, int vectors, const fk_parity *m, const double *in, ptrdiff_t row, const ptrdiff_t *at,
                  const double *weights, double *out, ptrdiff_t out_row, double *work)
{
#define FK_CASE(v)                                                                                                    \
    case v:                                                                                                           \
        if (what == WEIGH)                                                                                            \
            weigh_lanes(v, m, in, row, at, weights, out, work);                                                       \
        else if (what == FOLD)                                                                                        \
            fold_lanes(v, m, in, row, at, NULL, 0, at, out, out_row, work);                                           \
        else                                                                                                          \
            expand_lanes(v, m, in, row, at, out, out_row, at, work);                                                  \
        break
    switch (vectors) {
        FK_CASE(1);
        FK_CASE(2);
        FK_CASE(3);
#if FK_MOST == 4
        FK_CASE(4);
#endif
    }
}

static ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

/* So many rows of a few vectors each are needed soon. Of rows far apart the processor foresees none: each lies on another
   page. */
static void soon(ptrdiff_t rows, ptrdiff_t width, const double *from, ptrdiff_t row)
{
    if (!FK_AHEAD || row * rows <= FK_NEAR)
        return;
    for (ptrdiff_t i = 0; i < rows; i++) {
        FK_PREFETCH(from + i * row);
        FK_PREFETCH(from + i * row + width - 1);
    }
}

/* Inner axes of a vector or more: vectors lie in the arrays themselves, the last one over numbers of the one before. */
static void along_inner(int what, const fk_parity *m, ptrdiff_t inner, const double *in, ptrdiff_t row,
                        const double *weights, double *out, ptrdiff_t out_row, double *work)
{
    const ptrdiff_t vectors = (inner + FK_WIDE - 1) / FK_WIDE, parts = (vectors + FK_MOST - 1) / FK_MOST;
    const ptrdiff_t n_in = what == FOLD ? m->n : m->n_even + m->n_odd;
    ptrdiff_t first = 0;
    for (ptrdiff_t part = 0; part < parts; part++) {
        const ptrdiff_t here = (vectors - first) / (parts - part), next = (first + here) * FK_WIDE;
        ptrdiff_t at[FK_MOST];
        for (ptrdiff_t v = 0; v < here; v++)
            at[v] = smaller((first + v) * FK_WIDE, inner - FK_WIDE);
        if (weights)
            soon(m->n, here * FK_WIDE, weights + first * FK_WIDE, inner);
        if (part + 1 < parts)
            soon(n_in, here * FK_WIDE, in + next, row);
        lanes(what, (int)here, m, in, row, at, weights, out, out_row, work);
        first += here;
    }
}

/* Shorter ones: lines are gathered side by side. */
static void along_gathered(int what, const fk_parity *m, ptrdiff_t batch, ptrdiff_t inner, fk_lines in, fk_lines out,
                           double *work)
{
    const ptrdiff_t columns = m->n_even + m->n_odd;
    const ptrdiff_t n_in = what == FOLD ? m->n : columns, n_out = what == FOLD ? columns : m->n;
    double *source = work, *target = source + n_in * FK_PARITY_LANES, *rest = target + n_out * FK_PARITY_LANES;
    ptrdiff_t at[FK_MOST];
    side_by_side(FK_MOST, at);
    for (ptrdiff_t first = 0; first < batch * inner; first += FK_MOST * FK_WIDE) {
        const ptrdiff_t count = smaller(FK_MOST * FK_WIDE, batch * inner - first);
        const ptrdiff_t vectors = (count + FK_WIDE - 1) / FK_WIDE, width = vectors * FK_WIDE;
        for (ptrdiff_t l = 0; l < width; l++) {
            const ptrdiff_t line = first + (l < count ? l : 0);
            const double *from = in.values + line / inner * in.batch + line % inner;
            for (ptrdiff_t i = 0; i < n_in; i++)
                source[i * width + l] = from[i * in.row];
        }
        lanes(what, (int)vectors, m, source, width, at, NULL, target, width, rest);
        for (ptrdiff_t l = 0; l < count; l++) {
            const ptrdiff_t line = first + l;
            double *to = out.values + line / inner * out.batch + line % inner;
            for (ptrdiff_t i = 0; i < n_out; i++)
                to[i * out.row] = target[i * width + l];
        }
    }
}

static void along(int what, const fk_parity *m, ptrdiff_t batch, ptrdiff_t inner, fk_lines in, fk_lines out,
                  double *work)
{
    if (inner < FK_WIDE) {
        along_gathered(what, m, batch, inner, in, out, work);
        return;
    }
    for (ptrdiff_t b = 0; b < batch; b++)
        along_inner(what, m, inner, in.values + b * in.batch, in.row, NULL, out.values + b * out.batch, out.row, work);
}

static void expand(const fk_parity *m, ptrdiff_t batch, ptrdiff_t inner, fk_lines in, fk_lines out, double *work)
{
    along(EXPAND, m, batch, inner, in, out, work);
}

static void fold(const fk_parity *m, ptrdiff_t batch, ptrdiff_t inner, fk_lines in, fk_lines out, double *work)
{
    along(FOLD, m, batch, inner, in, out, work);
}

static void weigh(const fk_parity *m, ptrdiff_t inner, const double *in, const double *weights, double *out,
                  double *work)
{
    along_inner(WEIGH, m, inner, in, inner, weights, out, inner, work);
}

const fk_parity_ops FK_CAT(fk_parity_ops, FK_ISA) = {FK_TEXT(FK_ISA), FK_WIDE, expand, fold, weigh};
