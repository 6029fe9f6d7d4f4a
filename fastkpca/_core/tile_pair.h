/* Two sets of rows, cut into tiles that stay in cache: the kernel matrix itself, or products with it and sums over it
   while each tile is hot. Plain C without policy: the caller owns every array, and BLAS comes in by pointer. */
#ifndef FK_TILE_PAIR_H
#define FK_TILE_PAIR_H
#include "tile_ops.h"

/* Distances and products of at most this many coordinates are formed by differences along the tile, others by GEMM;
   measured by benchmarks/speed/exact_product.py --crossing. */
#ifndef FK_DIRECT
#define FK_DIRECT 32
#endif

/* A block of rows with at least this many coordinates is one product of BLAS's, and each of its tiles a part of that: the
   rows of a tile alone would not stay in cache. */
#ifndef FK_WHOLE
#define FK_WHOLE 2048
#endif

/* The GEMM form |x|^2 + |y|^2 - 2 x.y of the exponent is off by its first two terms times the unit roundoff, times the
   rounding of a sum of d terms (Gaussian.entry_error). Where the first two factors alone would pass these bounds the
   tile is recentred, then differences are taken. */
#define FK_EXPONENT_ERROR_d 1e-13
#define FK_EXPONENT_ERROR_s 1e-5

enum { FK_LINEAR, FK_POLYNOMIAL, FK_GAUSSIAN, FK_TANH };

typedef struct {
    int kind;
    int degree;
    double scale, offset; /* polynomial, tanh */
    double sigma;         /* Gaussian */
} fk_kernel;

typedef void (*fk_gemm_d)(char *, char *, int *, int *, int *, double *, double *, int *, double *, int *, double *,
                          double *, int *);
typedef void (*fk_gemm_s)(char *, char *, int *, int *, int *, float *, float *, int *, float *, int *, float *,
                          float *, int *);
typedef void (*fk_syrk_d)(char *, char *, int *, int *, double *, double *, int *, double *, double *, int *);
typedef void (*fk_syrk_s)(char *, char *, int *, int *, float *, float *, int *, float *, float *, int *);

typedef struct {
    ptrdiff_t n, m, d;
    const double *X, *Y; /* (n, d) and (m, d), row-major */
    int same;            /* Y is X: walk over the pairs of tiles I <= J */
    void *block;         /* K (n, m) in the type computed in, or NULL */
    ptrdiff_t k;
    const double *Ux, *Uy; /* (n, k) and (m, k) */
    double *Vx, *Vy;       /* Vx += K Uy and Vy += K' Ux; either may be NULL; where same, only Vx is used */
    const double *rx, *ry; /* approximate row means of the whole matrix, or NULL: sums is then not touched */
    double g;              /* approximate grand mean */
    double *sums;          /* sums[0] += sum (K_ij - r_i - r_j + g)^2, sums[1] += sum K_ij^2; double only */
    void *kept;            /* the tiles one after another, fk_kept_entries of them in the type computed in, or NULL */
    int known;             /* they are there from an earlier walk, and the kernel is not evaluated */
    float *rounded;        /* where they go, less shift, in float32, or NULL */
    double shift;
} fk_pair;

/* Entries of all tiles of a walk, with their padding. */
ptrdiff_t fk_kept_entries(ptrdiff_t n, ptrdiff_t m, int same);
/* K (n, m), row-major, from the tiles that a walk in double has kept. */
void fk_kept_block(ptrdiff_t n, ptrdiff_t m, int same, const double *kept, double *K);

/* 0, or -1 where scratch memory could not be had. Tiles are computed and multiplied in the type of the name; products
   are accumulated over tiles in double. */
int fk_walk_d(const fk_ops *ops, const fk_kernel *kernel, fk_gemm_d gemm, fk_syrk_d syrk, const fk_pair *pair);
int fk_walk_s(const fk_ops *ops, const fk_kernel *kernel, fk_gemm_s gemm, fk_syrk_s syrk, const fk_pair *pair);

#endif
