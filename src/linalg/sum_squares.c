/* sum_squares.c - a sum of squares in eight chains: one alone waits for its own additions. */
#include "bounds.h"

double pare_squares(const double *v, size_t n)
{
    double part[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t l = 0; l < 8; l++) part[l] += v[i + l] * v[i + l];
    for (size_t l = 0; i < n; i++, l++) part[l] += v[i] * v[i];
    return ((part[0] + part[1]) + (part[2] + part[3])) +
           ((part[4] + part[5]) + (part[6] + part[7]));
}
