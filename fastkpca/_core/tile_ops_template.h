/* The loops of tile_ops.c for one type: T the scalar, S its letter, LANES the entries of a vector. No include guard:
   included once for each type. */
#define VEC FK_CAT(vec, S)
#define MEM FK_CAT(mem, S)
#define FMA FK_CAT(FMA, S)
#define ALL FK_CAT(all, S)
#define NAME(x) FK_CAT(x, S)
#define LOAD(p) ((VEC) * (const MEM *)(p))
#define STORE(p, v) (*(MEM *)(p) = (MEM)(v))

/* ---- distances and scalar products along the tile: R rows by W vectors of columns in registers ---- */

/* exp(c |x - y|^2) where GAUSS, x.y where not: a constant, so that only one of the two is compiled */
FK_INLINE void NAME(patch)(const int GAUSS, const int R, const int W, const ptrdiff_t d, const T *X, ptrdiff_t ldx,
                           const T *Yt, ptrdiff_t ldy, NAME(scale) c, T *K, ptrdiff_t ldk)
{
    VEC acc[4][2];
    FK_UNROLL
    for (int i = 0; i < R; i++)
        FK_UNROLL
        for (int w = 0; w < W; w++)
            acc[i][w] = (VEC){0};
    for (ptrdiff_t f = 0; f < d; f++) {
        VEC y[2];
        FK_UNROLL
        for (int w = 0; w < W; w++)
            y[w] = LOAD(Yt + f * ldy + w * LANES);
        FK_UNROLL
        for (int i = 0; i < R; i++) {
            const VEC x = ALL(X[i * ldx + f]);
            FK_UNROLL
            for (int w = 0; w < W; w++) {
                const VEC t = x - y[w];
                acc[i][w] = GAUSS ? FMA(t, t, acc[i][w]) : FMA(x, y[w], acc[i][w]);
            }
        }
    }
    FK_UNROLL
    for (int i = 0; i < R; i++)
        FK_UNROLL
        for (int w = 0; w < W; w++)
            STORE(K + i * ldk + w * LANES, GAUSS ? NAME(exp)(acc[i][w], c) : acc[i][w]);
}

#define ROWS_OF_PATCHES(GAUSS, R)                                                                                     \
    {                                                                                                                 \
        ptrdiff_t j = 0;                                                                                              \
        for (; j + 2 * LANES <= nj; j += 2 * LANES)                                                                   \
            NAME(patch)(GAUSS, R, 2, d, X + i * ldx, ldx, Yt + j, ldy, c, K + i * ldk + j, ldk);                      \
        for (; j < nj; j += LANES)                                                                                    \
            NAME(patch)(GAUSS, R, 1, d, X + i * ldx, ldx, Yt + j, ldy, c, K + i * ldk + j, ldk);                      \
    }
#define PATCHES(GAUSS)                                                                                                \
    {                                                                                                                 \
        ptrdiff_t i = 0;                                                                                              \
        for (; i + 4 <= ni; i += 4)                                                                                   \
            ROWS_OF_PATCHES(GAUSS, 4)                                                                                 \
        for (; i < ni; i++)                                                                                           \
            ROWS_OF_PATCHES(GAUSS, 1)                                                                                 \
    }

static void NAME(gauss_direct)(ptrdiff_t ni, ptrdiff_t nj, ptrdiff_t d, const T *X, ptrdiff_t ldx, const T *Yt,
                               ptrdiff_t ldy, double coefficient, T *K, ptrdiff_t ldk)
{
    const NAME(scale) c = NAME(exp_scale)(coefficient);
    PATCHES(1)
}

static void NAME(dot_direct)(ptrdiff_t ni, ptrdiff_t nj, ptrdiff_t d, const T *X, ptrdiff_t ldx, const T *Yt,
                             ptrdiff_t ldy, T *K, ptrdiff_t ldk)
{
    const NAME(scale) c = NAME(exp_scale)(0.0);
    PATCHES(0)
}

#undef PATCHES
#undef ROWS_OF_PATCHES

/* ---- maps in place ---- */

static void NAME(gauss_map)(ptrdiff_t ni, ptrdiff_t nj, const T *a, const T *b, T *K, ptrdiff_t ldk)
{
    const NAME(scale) one = NAME(exp_scale)(1.0);
    for (ptrdiff_t i = 0; i < ni; i++) {
        const VEC ai = ALL(a[i]);
        T *row = K + i * ldk;
        for (ptrdiff_t j = 0; j < nj; j += LANES) {
            VEC t = LOAD(row + j) + (ai + LOAD(b + j));
            /* rounding may push a distance of zero below it; NaN compares false and stays */
            t = (VEC)((FK_CAT(bits, S))t & ~(FK_CAT(bits, S))(t > (VEC){0}));
            STORE(row + j, NAME(exp)(t, one));
        }
    }
}

FK_INLINE VEC NAME(power)(VEC base, int degree)
{
    VEC result = ALL(1);
    for (;;) {
        if (degree & 1)
            result *= base;
        degree >>= 1;
        if (degree == 0)
            return result;
        base *= base;
    }
}

static void NAME(power_map)(ptrdiff_t ni, ptrdiff_t nj, double scale, double offset, int degree, T *K, ptrdiff_t ldk)
{
    const VEC s = ALL((T)scale), o = ALL((T)offset);
#define EACH(EXPRESSION)                                                                                              \
    for (ptrdiff_t i = 0; i < ni; i++)                                                                                \
        for (ptrdiff_t j = 0; j < nj; j += LANES) {                                                                   \
            const VEC b = FMA(s, LOAD(K + i * ldk + j), o);                                                           \
            STORE(K + i * ldk + j, EXPRESSION);                                                                       \
        }
    switch (degree) {
    case 1: EACH(b); break;
    case 2: EACH(b * b); break;
    case 3: EACH(b * (b * b)); break;
    default: EACH(NAME(power)(b, degree));
    }
#undef EACH
}

static void NAME(tanh_map)(ptrdiff_t ni, ptrdiff_t nj, double scale, double offset, T *K, ptrdiff_t ldk)
{
    const VEC s = ALL((T)scale), o = ALL((T)offset);
    for (ptrdiff_t i = 0; i < ni; i++)
        for (ptrdiff_t j = 0; j < nj; j += LANES)
            STORE(K + i * ldk + j, NAME(tanh)(FMA(s, LOAD(K + i * ldk + j), o)));
}

/* ---- products with the tile: register blocks of R rows (or vectors of columns of K) by C columns of U ---- */

FK_INLINE void NAME(rows_block)(const int R, const int C, ptrdiff_t nj, const T *K, ptrdiff_t ldk, const T *Ut,
                                ptrdiff_t ldu, double *V, ptrdiff_t ldv)
{
    VEC acc[FK_MOST_ROWS][FK_COLUMNS];
    FK_UNROLL
    for (int i = 0; i < R; i++)
        FK_UNROLL
        for (int c = 0; c < C; c++)
            acc[i][c] = (VEC){0};
    for (ptrdiff_t j = 0; j < nj; j += LANES) {
        VEC held[FK_MOST_ROWS]; /* of rows or columns, which are fewer: with one of the other they fit into registers */
        if (R <= C) {
            FK_UNROLL
            for (int i = 0; i < R; i++)
                held[i] = LOAD(K + i * ldk + j);
            FK_UNROLL
            for (int c = 0; c < C; c++) {
                const VEC u = LOAD(Ut + c * ldu + j);
                FK_UNROLL
                for (int i = 0; i < R; i++)
                    acc[i][c] = FMA(held[i], u, acc[i][c]);
            }
        } else {
            FK_UNROLL
            for (int c = 0; c < C; c++)
                held[c] = LOAD(Ut + c * ldu + j);
            FK_UNROLL
            for (int i = 0; i < R; i++) {
                const VEC row = LOAD(K + i * ldk + j);
                FK_UNROLL
                for (int c = 0; c < C; c++)
                    acc[i][c] = FMA(row, held[c], acc[i][c]);
            }
        }
    }
    FK_UNROLL
    for (int i = 0; i < R; i++)
        NAME(sums)(C, acc[i], V + i * ldv);
}

FK_INLINE void NAME(columns_block)(const int R, const int C, ptrdiff_t ni, const T *K, ptrdiff_t ldk, const T *U,
                                   ptrdiff_t ldu, double *Vt, ptrdiff_t ldv)
{
    VEC acc[FK_COLUMNS][FK_ROWS];
    FK_UNROLL
    for (int c = 0; c < C; c++)
        FK_UNROLL
        for (int j = 0; j < R; j++)
            acc[c][j] = (VEC){0};
    for (ptrdiff_t i = 0; i < ni; i++) {
        VEC row[FK_ROWS];
        FK_UNROLL
        for (int j = 0; j < R; j++)
            row[j] = LOAD(K + i * ldk + j * LANES);
        FK_UNROLL
        for (int c = 0; c < C; c++) {
            const VEC u = ALL(U[i * ldu + c]);
            FK_UNROLL
            for (int j = 0; j < R; j++)
                acc[c][j] = FMA(row[j], u, acc[c][j]);
        }
    }
    FK_UNROLL
    for (int c = 0; c < C; c++)
        FK_UNROLL
        for (int j = 0; j < R; j++) {
            T part[LANES];
            memcpy(part, &acc[c][j], sizeof part);
            for (int l = 0; l < LANES; l++)
                Vt[c * ldv + j * LANES + l] += part[l];
        }
}

/* walk over the columns of U, block by block */
#define COLUMN_BLOCKS(CALL)                                                                                           \
    for (ptrdiff_t c = 0, width; c < k; c += width) {                                                                 \
        width = FK_WIDTH(k - c);                                                                                      \
        if (width == FK_COLUMNS) {                                                                                    \
            CALL(FK_COLUMNS)                                                                                          \
        } else if (FK_COLUMNS > 4 && width == 4) {                                                                    \
            CALL(4)                                                                                                   \
        } else if (FK_COLUMNS == 4 && width == 3) {                                                                   \
            CALL(3)                                                                                                   \
        } else if (width == 2) {                                                                                      \
            CALL(2)                                                                                                   \
        } else {                                                                                                      \
            CALL(1)                                                                                                   \
        }                                                                                                             \
    }

/* A stripe of rows meets all columns of U before the next one does, which is fetched meanwhile: each block brings its
   share of it. */
static void NAME(multiply)(ptrdiff_t ni, ptrdiff_t nj, ptrdiff_t k, const T *K, ptrdiff_t ldk, const T *Ut,
                           ptrdiff_t ldu, double *V, ptrdiff_t ldv)
{
#define BLOCKS_OF_ROWS(R, C)                                                                                          \
    for (; i + (R) <= end; i += (R)) {                                                                                \
        for (const char *share = ahead; FK_AHEAD && ahead < share + (R) * (C) * length / k; ahead += 64)              \
            FK_PREFETCH(ahead);                                                                                       \
        NAME(rows_block)(R, C, nj, K + i * ldk, ldk, Ut + c * ldu, ldu, V + i * ldv + c, ldv);                        \
    }
#define ROWS(C)                                                                                                       \
    ptrdiff_t i = start;                                                                                              \
    BLOCKS_OF_ROWS(FK_ROWS_OF(C), C)                                                                                  \
    BLOCKS_OF_ROWS(1, C)
    const ptrdiff_t length = ldk <= nj + FK_PAD ? ldk * sizeof(T) : 0; /* rows that lie one after another */
    for (ptrdiff_t start = 0; start < ni; start += FK_STRIPE) {
        const ptrdiff_t end = ni - start < FK_STRIPE ? ni : start + FK_STRIPE;
        const char *ahead = (const char *)(K + end * ldk);
        COLUMN_BLOCKS(ROWS)
    }
#undef ROWS
#undef BLOCKS_OF_ROWS
}

/* The same across: what a strip of columns has in a stripe of rows stays in the first level of cache meanwhile. */
static void NAME(multiply_transposed)(ptrdiff_t ni, ptrdiff_t nj, ptrdiff_t k, const T *K, ptrdiff_t ldk, const T *U,
                                      ptrdiff_t ldu, double *Vt, ptrdiff_t ldv)
{
#define BLOCKS_OF_COLUMNS(R, C)                                                                                       \
    for (; j + (R) * LANES <= end; j += (R) * LANES)                                                                  \
        NAME(columns_block)(R, C, rows, K + i * ldk + j, ldk, U + i * ldu + c, ldu, Vt + c * ldv + j, ldv);
#define COLUMNS(C)                                                                                                    \
    ptrdiff_t j = start;                                                                                              \
    BLOCKS_OF_COLUMNS(FK_ROWS, C)                                                                                     \
    BLOCKS_OF_COLUMNS(FK_ROWS_LEFT, C)                                                                                \
    BLOCKS_OF_COLUMNS(1, C)
    for (ptrdiff_t i = 0; i < ni; i += FK_HEIGHT) {
        const ptrdiff_t rows = ni - i < FK_HEIGHT ? ni - i : FK_HEIGHT;
        for (ptrdiff_t start = 0; start < nj; start += FK_STRIP) {
            const ptrdiff_t end = nj - start < FK_STRIP ? nj : start + FK_STRIP;
            COLUMN_BLOCKS(COLUMNS)
        }
    }
#undef COLUMNS
#undef BLOCKS_OF_COLUMNS
}

#undef COLUMN_BLOCKS
#undef VEC
#undef MEM
#undef FMA
#undef ALL
#undef NAME
#undef LOAD
#undef STORE
