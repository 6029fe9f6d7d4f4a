/* Profiles of radial kernels over arrays of distances, and distances over tiles. */
#ifndef KC_RADIAL_H
#define KC_RADIAL_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

/* Coefficients of one piece of the table of a general order: a polynomial of degree 13. */
#define KC_TERMS 14

/* k as a function of t = c r. */
typedef struct {
    double c;
    double linear, square;      /* without a table k is (1 + linear t + square t^2) exp(-t) */
    double largest;             /* t beyond it is 0 */
    const double *table;        /* KC_TERMS numbers a piece, 2^(52 - shift) pieces an octave, from `lowest` on */
    int64_t first, pieces;      /* (bits of lowest) >> shift, and how many pieces there are */
    int shift;
    double lowest;              /* below it: 1 */
} kc_profile;

void kc_profile_array(const kc_profile *p, Py_ssize_t n, double *r);
void kc_distances(int squares, int city_block, Py_ssize_t n, Py_ssize_t m, Py_ssize_t d, const double *X,
                  const double *Yt, double *out);
void kc_mend_products(int same, int squares, Py_ssize_t n, Py_ssize_t m, Py_ssize_t d, const double *X,
                      const double *Y, const double *xx, const double *yy, double *out);

#endif
