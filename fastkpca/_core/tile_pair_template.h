/* The walk of tile_pair.c for one type: T the scalar, S its letter, OPS its table of loops. No include guard:
   included once for each type, the second time with FK_SINGLE. */
#define NAME(x) FK_CAT(x, S)

/* Arrays of one walk, apart from the caller's. */
typedef struct {
    const fk_ops *ops;
    const fk_kernel *kernel;
    FK_CAT(fk_gemm, S) gemm;
    FK_CAT(fk_syrk, S) syrk;
    const fk_pair *pair;
    int whole;          /* all inner products are made at once, in the block (of one set of rows: above the diagonal) */
    int direct;         /* coordinates along the tile instead of GEMM */
    int differ;         /* differences in double: float coordinates would lose too much */
    ptrdiff_t tile_m;   /* columns of a tile at most */
    ptrdiff_t ldk;      /* from one row of a tile to the next */
    double *centre;     /* (d,), of the whole pair, then of a tile */
    const T *X, *Y;     /* (n, d) and (m padded, d) for products; Y is (d, m padded) for direct */
    T *room_x, *room_y; /* for them; one and the same for products of one set of rows */
    ptrdiff_t ldy;
    double *x2, *y2;    /* squared norms after centring */
    T *a, *b;           /* their part of the exponent, for one tile */
    T *tile_x, *tile_y; /* recentred for one tile */
    double *tile_x2, *tile_y2;
    double *tile_t;     /* (d, columns) raw and transposed, for differences */
    T *K;
    T *kept;            /* where the next tile is kept */
    double *K_double; /* float only: the tile by differences in double */
    T *Ux, *Uyt;
    double *Vyt;
} NAME(walk);

static void NAME(row_squares)(ptrdiff_t n, ptrdiff_t d, const T *Z, double *squares)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const T *z = Z + i * d;
        double sums[8] = {0}; /* that do not wait for each other */
        ptrdiff_t f = 0;
        for (; f + 8 <= d; f += 8)
            for (int h = 0; h < 8; h++)
                sums[h] += (double)z[f + h] * z[f + h];
        for (; f < d; f++)
            sums[0] += (double)z[f] * z[f];
        squares[i] = (sums[0] + sums[1] + (sums[2] + sums[3])) + (sums[4] + sums[5] + (sums[6] + sums[7]));
    }
}

/* Rows minus the centre in T, and their squared norms (of the rounded rows, so that distances are of these). */
static void NAME(centre_rows)(ptrdiff_t n, ptrdiff_t d, const double *X, const double *centre, T *Z, double *norms)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *x = X + i * d;
        T *z = Z + i * d;
        if (centre)
            for (ptrdiff_t g = 0; g < d; g++)
                z[g] = (T)(x[g] - centre[g]);
        else
            for (ptrdiff_t g = 0; g < d; g++)
                z[g] = (T)x[g];
        NAME(row_squares)(1, d, z, norms + i);
    }
}

static void NAME(repeat_last)(ptrdiff_t m, ptrdiff_t d, T *Y)
{
    for (ptrdiff_t j = m; j < padded(m); j++)
        memcpy(Y + j * d, Y + (m - 1) * d, d * sizeof(T));
}

/* All inner products, in the block: row-major (n, m) is column-major (m, n). */
static void NAME(whole_products)(const NAME(walk) *w)
{
    int m = (int)w->pair->m, n = (int)w->pair->n, d = (int)w->pair->d;
    T one = 1, zero = 0;
    if (w->pair->same)
        w->syrk("L", "T", &n, &d, &one, (T *)w->X, &d, &zero, w->pair->block, &n);
    else
        w->gemm("T", "N", &m, &n, &d, &one, (T *)w->Y, &d, (T *)w->X, &d, &zero, w->pair->block, &m);
}

/* alpha times inner products that are known: ``square``, above the diagonal alone. */
static void NAME(take_products)(const NAME(walk) *w, ptrdiff_t ni, ptrdiff_t nj, T alpha, const T *known, int square)
{
    const ptrdiff_t m = w->pair->m;
    for (ptrdiff_t i = 0; i < ni; i++) {
        T *row = w->K + i * w->ldk;
        for (ptrdiff_t j = square ? i : 0; j < nj; j++)
            row[j] = alpha * known[i * m + j];
        for (ptrdiff_t j = 0; square && j < i; j++)
            row[j] = alpha * known[j * m + i];
        for (ptrdiff_t j = nj; j < padded(nj); j++)
            row[j] = row[nj - 1];
    }
}

/* The tile at (i0, j0) of those that are known, or NULL. */
static const T *NAME(known_products)(const NAME(walk) *w, ptrdiff_t i0, ptrdiff_t j0)
{
    return w->whole ? (const T *)w->pair->block + i0 * w->pair->m + j0 : NULL;
}

static void NAME(products)(const NAME(walk) *w, ptrdiff_t ni, ptrdiff_t nj, T alpha, const T *X, const T *Y)
{
    /* row-major (ni, nj) is column-major (nj, ni) */
    int m = (int)padded(nj), n = (int)ni, d = (int)w->pair->d, ldk = (int)w->ldk;
    int ld = d > 0 ? d : 1;
    T zero = 0;
    w->gemm("T", "N", &m, &n, &d, &alpha, (T *)Y, &ld, (T *)X, &ld, &zero, w->K, &ldk);
}

/* ``known``: the inner products, or NULL. */
static void NAME(exponents)(const NAME(walk) *w, ptrdiff_t ni, ptrdiff_t nj, double c, const T *known, int square,
                            const T *X, const T *Y, const double *x2, const double *y2)
{
    const fk_ops *ops = w->ops;
    for (ptrdiff_t i = 0; i < ni; i++)
        w->a[i] = (T)(c * x2[i]);
    for (ptrdiff_t j = 0; j < padded(nj); j++)
        w->b[j] = (T)(c * y2[smaller(j, nj - 1)]);
    if (known != NULL)
        NAME(take_products)(w, ni, nj, (T)(-2 * c), known, square);
    else
        NAME(products)(w, ni, nj, (T)(-2 * c), X, Y);
    OPS.gauss_map(ni, padded(nj), w->a, w->b, w->K, w->ldk);
}

static void NAME(gaussian_differences)(const NAME(walk) *w, double c, ptrdiff_t i0, ptrdiff_t ni, ptrdiff_t j0,
                                       ptrdiff_t nj)
{
    const fk_pair *p = w->pair;
    transpose_d(nj, p->d, p->Y + j0 * p->d, NULL, w->tile_t, w->tile_m);
#ifdef FK_SINGLE
    double *K = w->K_double;
#else
    double *K = w->K;
#endif
    w->ops->d.gauss_direct(ni, padded(nj), p->d, p->X + i0 * p->d, p->d, w->tile_t, w->tile_m, c, K, w->ldk);
#ifdef FK_SINGLE
    for (ptrdiff_t i = 0; i < ni; i++)
        for (ptrdiff_t j = 0; j < padded(nj); j++)
            w->K[i * w->ldk + j] = (float)K[i * w->ldk + j];
#endif
}

static void NAME(gaussian)(const NAME(walk) *w, ptrdiff_t i0, ptrdiff_t ni, ptrdiff_t j0, ptrdiff_t nj)
{
    const fk_pair *p = w->pair;
    const fk_ops *ops = w->ops;
    const double sigma = w->kernel->sigma;
    const double c = -0.5 / (sigma * sigma);
    const double most = FK_CAT(FK_EXPONENT_ERROR, S) / FK_CAT(FK_ROUNDOFF, S) / -c;
    if (w->direct && !w->differ) {
        OPS.gauss_direct(ni, padded(nj), p->d, w->X + i0 * p->d, p->d, w->Y + j0, w->ldy, c, w->K, w->ldk);
        return;
    }
    if (w->differ) {
        NAME(gaussian_differences)(w, c, i0, ni, j0, nj);
        return;
    }
    if (largest(ni, w->x2 + i0) + largest(nj, w->y2 + j0) <= most) {
        NAME(exponents)(w, ni, nj, c, NAME(known_products)(w, i0, j0), p->same && i0 == j0, w->X + i0 * p->d,
                        w->Y + j0 * p->d, w->x2 + i0, w->y2 + j0);
    } else {
        const double *X = p->X + i0 * p->d, *Y = p->Y + j0 * p->d;
        joint_mean(ni, X, nj, Y, p->d, w->centre);
        NAME(centre_rows)(ni, p->d, X, w->centre, w->tile_x, w->tile_x2);
        NAME(centre_rows)(nj, p->d, Y, w->centre, w->tile_y, w->tile_y2);
        NAME(repeat_last)(nj, p->d, w->tile_y);
        /* written so that NaN takes the differences */
        if (!(largest(ni, w->tile_x2) + largest(nj, w->tile_y2) <= most)) {
            NAME(gaussian_differences)(w, c, i0, ni, j0, nj);
            return;
        }
        NAME(exponents)(w, ni, nj, c, NULL, 0, w->tile_x, w->tile_y, w->tile_x2, w->tile_y2);
    }
    if (p->same && i0 == j0) /* rounding would leave 1 - u */
        for (ptrdiff_t i = 0; i < smaller(ni, nj); i++)
            w->K[i * w->ldk + i] = 1;
}

/* One tile of K into w->K; the columns beyond nj repeat the last. */
static void NAME(evaluate)(const NAME(walk) *w, ptrdiff_t i0, ptrdiff_t ni, ptrdiff_t j0, ptrdiff_t nj)
{
    const fk_pair *p = w->pair;
    const fk_ops *ops = w->ops;
    const fk_kernel *kernel = w->kernel;
    const ptrdiff_t columns = padded(nj);
    if (kernel->kind == FK_GAUSSIAN) {
        NAME(gaussian)(w, i0, ni, j0, nj);
    } else {
        if (w->direct)
            OPS.dot_direct(ni, columns, p->d, w->X + i0 * p->d, p->d, w->Y + j0, w->ldy, w->K, w->ldk);
        else if (w->whole)
            NAME(take_products)(w, ni, nj, 1, NAME(known_products)(w, i0, j0), p->same && i0 == j0);
        else
            NAME(products)(w, ni, nj, 1, w->X + i0 * p->d, w->Y + j0 * p->d);
        if (kernel->kind == FK_POLYNOMIAL)
            OPS.power_map(ni, columns, kernel->scale, kernel->offset, kernel->degree, w->K, w->ldk);
        else if (kernel->kind == FK_TANH)
            OPS.tanh_map(ni, columns, kernel->scale, kernel->offset, w->K, w->ldk);
    }
    if (!w->direct && p->same && i0 == j0 && ni == nj) /* BLAS may add up (i, j) and (j, i) differently */
        for (ptrdiff_t i = 0; i < ni; i++)
            for (ptrdiff_t j = 0; j < i; j++)
                w->K[j * w->ldk + i] = w->K[i * w->ldk + j];
}

static void NAME(serve)(NAME(walk) *w, ptrdiff_t i0, ptrdiff_t ni, ptrdiff_t j0, ptrdiff_t nj)
{
    const fk_pair *p = w->pair;
    const fk_ops *ops = w->ops;
    if (p->kept != NULL) { /* evaluated where it stays, and multiplied while it is in cache all the same */
        w->ldk = kept_stride(nj);
        w->K = w->kept;
        w->kept += ni * w->ldk;
    }
    const int same = p->same, mirror = same && i0 != j0;
    const int want_x = p->Vx != NULL, want_y = same ? mirror && want_x : p->Vy != NULL;
    const ptrdiff_t k = p->k, ldk = w->ldk, columns = padded(nj);
    if (!p->known)
        NAME(evaluate)(w, i0, ni, j0, nj);
    if (p->rounded != NULL)
        OPS.rounded(ni * ldk, w->K, p->shift, p->rounded + (w->K - (T *)p->kept));
    if (p->block != NULL) {
        T *out = p->block;
        for (ptrdiff_t i = 0; i < ni; i++)
            memcpy(out + (i0 + i) * p->m + j0, w->K + i * ldk, nj * sizeof(T));
        if (mirror)
            for (ptrdiff_t j = 0; j < nj; j++)
                for (ptrdiff_t i = 0; i < ni; i++)
                    out[(j0 + j) * p->m + i0 + i] = w->K[i * ldk + j];
    }
    if (want_x)
        OPS.multiply(ni, columns, k, w->K, ldk, w->Uyt + j0, w->ldy, p->Vx + i0 * k, k);
    if (want_y)
        OPS.multiply_transposed(ni, columns, k, w->K, ldk, w->Ux + i0 * k, k, w->Vyt + j0, w->ldy);
    if (p->rx != NULL) {
        double sums[2] = {0, 0};
        OPS.squares(ni, nj, w->K, ldk, p->rx + i0, p->ry + j0, p->g, sums);
        p->sums[0] += mirror ? 2 * sums[0] : sums[0];
        p->sums[1] += mirror ? 2 * sums[1] : sums[1];
    }
}

/* Arrays from one allocation, each on its own cache line. */
static void *NAME(cut)(char **arena, ptrdiff_t count, size_t size)
{
    void *start = *arena;
    *arena += ((size_t)count * size + 63) / 64 * 64;
    return start;
}

static size_t NAME(lay_out)(NAME(walk) *w, ptrdiff_t tile_n, char *base)
{
    const fk_pair *p = w->pair;
    const ptrdiff_t d = p->d, m = w->ldy, gauss = w->kernel->kind == FK_GAUSSIAN;
    const ptrdiff_t gemm = gauss && !w->direct;
    char *arena = base;
    w->centre = NAME(cut)(&arena, d, sizeof(double));
    /* of one set of rows, with the padding of the second */
    const int shared = p->same && !w->direct;
    w->room_x = NAME(cut)(&arena, (p->same ? m : p->n) * d, sizeof(T));
    w->room_y = shared ? w->room_x : NAME(cut)(&arena, m * d, sizeof(T));
    w->x2 = NAME(cut)(&arena, p->n, sizeof(double));
    w->y2 = NAME(cut)(&arena, m, sizeof(double));
    w->a = NAME(cut)(&arena, tile_n, sizeof(T));
    w->b = NAME(cut)(&arena, w->tile_m, sizeof(T));
    w->tile_x = NAME(cut)(&arena, gemm * tile_n * d, sizeof(T));
    w->tile_y = NAME(cut)(&arena, gemm * w->tile_m * d, sizeof(T));
    w->tile_x2 = NAME(cut)(&arena, tile_n, sizeof(double));
    w->tile_y2 = NAME(cut)(&arena, w->tile_m, sizeof(double));
    w->tile_t = NAME(cut)(&arena, gauss * w->tile_m * d, sizeof(double));
    w->K = NAME(cut)(&arena, tile_n * w->ldk, sizeof(T));
#ifdef FK_SINGLE
    w->K_double = NAME(cut)(&arena, gauss * tile_n * w->ldk, sizeof(double));
#else
    w->K_double = NULL;
#endif
    w->Ux = NAME(cut)(&arena, p->n * p->k, sizeof(T));
    w->Uyt = NAME(cut)(&arena, m * p->k, sizeof(T));
    w->Vyt = NAME(cut)(&arena, m * p->k, sizeof(double));
    return (size_t)(arena - base);
}

#ifndef FK_SINGLE
/* True if the rows are used in place, without a copy about their mean: for inner products, and for the Gaussian if the
   first two terms of the exponent lose no more accuracy than they may on any pair of rows. */
static int NAME(take_rows)(NAME(walk) *w)
{
    const fk_pair *p = w->pair;
    const double sigma = w->kernel->sigma;
    w->X = p->X;
    w->Y = p->Y;
    if (w->kernel->kind != FK_GAUSSIAN)
        return 1;
    NAME(row_squares)(p->n, p->d, p->X, w->x2);
    if (p->same)
        memcpy(w->y2, w->x2, p->n * sizeof(double));
    else
        NAME(row_squares)(p->m, p->d, p->Y, w->y2);
    return largest(p->n, w->x2) + largest(p->m, w->y2) <=
           2 * sigma * sigma * FK_CAT(FK_EXPONENT_ERROR, S) / FK_CAT(FK_ROUNDOFF, S);
}
#endif

static void NAME(prepare_rows)(NAME(walk) *w)
{
    const fk_pair *p = w->pair;
    const int gauss = w->kernel->kind == FK_GAUSSIAN;
    const double *centre = NULL;
    w->differ = 0;
#ifndef FK_SINGLE
    if (w->whole && NAME(take_rows)(w))
        return;
#endif
    w->X = w->room_x;
    w->Y = w->room_y;
    /* differences of float64 rows are exact as they are; GEMM, and float, need the origin amid the rows */
    if (gauss && (!w->direct || sizeof(T) == sizeof(float))) {
        joint_mean(p->n, p->X, p->same ? 0 : p->m, p->Y, p->d, w->centre);
        centre = w->centre;
    }
    NAME(centre_rows)(p->n, p->d, p->X, centre, w->room_x, w->x2);
    if (w->direct) {
        NAME(centre_rows)(p->m, p->d, p->Y, centre, w->room_y, w->y2); /* for the norms */
        FK_CAT(transpose, S)(p->m, p->d, p->Y, centre, w->room_y, w->ldy);
    } else {
        if (w->room_x == w->room_y)
            memcpy(w->y2, w->x2, p->n * sizeof(double));
        else
            NAME(centre_rows)(p->m, p->d, p->Y, centre, w->room_y, w->y2);
        NAME(repeat_last)(p->m, p->d, w->room_y);
    }
#ifdef FK_SINGLE
    if (gauss && !(w->kernel->sigma > 1e-15 && w->kernel->sigma < 1e15)) {
        w->differ = 1; /* squares would leave the range of float */
    } else if (gauss && w->direct) {
        const double radius = FK_FLOAT_RADIUS * w->kernel->sigma;
        const double most = fmax(largest(p->n, w->x2), largest(p->m, w->y2));
        w->differ = !(most <= radius * radius);
    }
#endif
}

static void NAME(prepare_columns)(NAME(walk) *w)
{
    const fk_pair *p = w->pair;
    const ptrdiff_t k = p->k;
    if (p->Ux != NULL)
        for (ptrdiff_t i = 0; i < p->n * k; i++)
            w->Ux[i] = (T)p->Ux[i];
    if (p->Uy != NULL)
        for (ptrdiff_t c = 0; c < k; c++) {
            for (ptrdiff_t j = 0; j < p->m; j++)
                w->Uyt[c * w->ldy + j] = (T)p->Uy[j * k + c];
            for (ptrdiff_t j = p->m; j < w->ldy; j++)
                w->Uyt[c * w->ldy + j] = 0;
        }
    memset(w->Vyt, 0, w->ldy * k * sizeof(double));
}

int FK_CAT(fk_walk, S)(const fk_ops *ops, const fk_kernel *kernel, FK_CAT(fk_gemm, S) gemm,
                         FK_CAT(fk_syrk, S) syrk, const fk_pair *pair)
{
    NAME(walk) w = {.ops = ops, .kernel = kernel, .gemm = gemm, .syrk = syrk, .pair = pair, .kept = pair->kept};
    const ptrdiff_t n = pair->n, m = pair->m, k = pair->k;
    const int same = pair->same;
    if (n == 0 || m == 0)
        return 0;
    w.direct = pair->d <= FK_DIRECT;
    w.whole = pair->d >= FK_WHOLE && pair->block != NULL;
    const int strip = w.direct && k == 1 && pair->block == NULL && pair->kept == NULL;
    const ptrdiff_t tile_n = strip ? FK_STRIP_ROWS : FK_TILE_ROWS;
    w.tile_m = (ptrdiff_t)((strip ? FK_STRIP_BYTES : FK_TILE_BYTES) / sizeof(T));
    if (pair->kept != NULL)
        w.tile_m = FK_KEPT_COLUMNS;
    /* rows a power of two apart would share a few lines of the first-level cache. Columns of U are FK_TILE_BYTES long
       in a tile and used eight at a time: an offset of half a page and two lines spreads them over the cache */
    w.ldk = w.tile_m + FK_PAD;
    w.ldy = padded(m);
    while (w.ldy * sizeof(T) % 4096 != 2048 + 128)
        w.ldy += FK_PAD;
    const size_t bytes = NAME(lay_out)(&w, tile_n, (char *)64);
    char *memory = malloc(bytes + 64);
    if (memory == NULL)
        return -1;
    NAME(lay_out)(&w, tile_n, memory + (64 - (size_t)memory % 64));
    if (!pair->known)
        NAME(prepare_rows)(&w);
    if (w.whole)
        NAME(whole_products)(&w);
    if (k > 0)
        NAME(prepare_columns)(&w);
    for (ptrdiff_t i0 = 0; i0 < n; i0 += tile_n) {
        const ptrdiff_t ni = smaller(tile_n, n - i0);
        if (same)
            NAME(serve)(&w, i0, ni, i0, ni);
        for (ptrdiff_t j0 = same ? i0 + tile_n : 0; j0 < m; j0 += w.tile_m)
            NAME(serve)(&w, i0, ni, j0, smaller(w.tile_m, m - j0));
    }
    double *V = same ? pair->Vx : pair->Vy;
    if (k > 0 && V != NULL)
        for (ptrdiff_t c = 0; c < k; c++)
            for (ptrdiff_t j = 0; j < m; j++)
                V[j * k + c] += w.Vyt[c * w.ldy + j];
    free(memory);
    return 0;
}

#undef NAME
