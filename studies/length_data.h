/* length_data.h - heads of chosen data for `repro length`, in both types, and what is exact.
 */
#ifndef PARE_STUDIES_LENGTH_DATA_H
#define PARE_STUDIES_LENGTH_DATA_H
#include <pare/length.h>

enum { LENGTH_D = 16 }; /* of queries, keys and values */

typedef struct length_data {
    size_t n;
    double *q, *k, *v, *y, *exact;
    float *qf, *kf, *vf, *yf;
    pare_arena *a; /* free it in any case */
} length_data;

/* benign: logits of variance 1; peaky: of deviation 8; wide: rows shifted by up to 45 either way.
 */
enum { LENGTH_BENIGN, LENGTH_PEAKY, LENGTH_WIDE, LENGTH_REGIMES };
extern const char *const length_regimes[LENGTH_REGIMES];

/* Values around `mean`, queries times `scale`. False: memory is out. */
bool length_data_new(length_data *d, size_t n, int regime, double mean, double scale,
                     uint64_t seed);
/* In f64 with long double sums: the yardstick. */
void length_data_exact(length_data *d, const pare_pattern *p);
/* Largest |y - exact|_2 / |exact|_2 of a row. */
double length_data_error(const length_data *d, pare_dtype t);
/* Attention through calls of at most m tokens. */
PARE_MUST_USE pare_status length_data_attend(length_data *d, const pare_pattern *p, uint32_t m,
                                             pare_dtype t, const pare_length_opts *o,
                                             pare_length_stats *s, const pare_exec *exec,
                                             pare_err *err);
#endif
