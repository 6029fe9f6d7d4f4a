/* Profiles of radial kernels over arrays of distances, distances over tiles, and sums over near pairs. */
#ifndef KC_RADIAL_H
#define KC_RADIAL_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

/* Coefficients of one piece of the table of a general order: a polynomial of degree 13. */
#define KC_TERMS 14
/* And of one piece of the smooth part that near pairs leave to the grid: degree 5 in the squared distance. */
#define KC_WIDE_TERMS 6

enum { KC_EXP = 0, KC_THREE_HALVES = 1, KC_FIVE_HALVES = 2, KC_TABLE = 3, KC_POWER = 4 };

/* k as a function of t = c r; c = c_high + c_low + c_rest, the first two exact halves of a double. */
typedef struct {
    int kind;
    double c, c_high, c_low, c_rest;
    double order;               /* alpha of (1 + t^2)^-alpha (KC_POWER) */
    double largest;             /* t beyond it is 0 */
    const double *table;        /* KC_TERMS numbers a piece, 2^(52 - shift) pieces an octave, from `lowest` on */
    int64_t first, pieces;      /* (bits of lowest) >> shift, and how many pieces there are */
    int shift;
    double lowest;              /* below it: 1 */
} kc_profile;

/* sum_i w_i exp(-r^2 / (2 s_i)) for r^2 up to `reach`, piecewise. */
typedef struct {
    Py_ssize_t pieces;
    double per_unit;            /* pieces / reach */
    const double *table;        /* NULL: zero */
} kc_wide;

void kc_profile_array(const kc_profile *p, Py_ssize_t n, double *r);
void kc_distances(int squares, int city_block, Py_ssize_t n, Py_ssize_t m, Py_ssize_t d, const double *X,
                  const double *Yt, double *out);
void kc_mend_products(int same, int squares, Py_ssize_t n, Py_ssize_t m, Py_ssize_t d, const double *X,
                      const double *Y, const double *xx, const double *yy, double *out);

typedef struct {
    Py_ssize_t d, k;
    const double *targets;      /* (n, d) */
    const double *sources;      /* (d, m), in the order of cells */
    Py_ssize_t m;
    const int64_t *start;       /* first source of each cell, and m */
    int64_t cells[3];           /* 1 for the axes that fewer than three dimensions lack, which come first */
    double low[3], per_cell[3];
    int64_t reach;              /* in cells */
    double cut;                 /* squared distance */
    const kc_profile *profile;
    kc_wide wide;
    const double *U;            /* (m, k), in the order of cells */
} kc_near;

int kc_near_sum(const kc_near *p, Py_ssize_t begin, Py_ssize_t end, double *V);

#endif
