/* auc_interval.c - between which numbers the area under the ROC curve lies when every score is
 * known up to a radius.
 *
 * auc = ( #{s_p > s_n} + #{s_p = s_n} / 2 ) / (P N) over pairs of a positive p and a negative n.
 * With lo <= s <= hi for every score, a pair certainly counts 1 when lo_p > hi_n, and certainly
 * counts 0 when hi_p < lo_n; all others count between 0 and 1. Pairs are counted by two sorted
 * lists. */
#include "base/support.h"
#include "outputs.h"
#include "linalg/bounds.h"
#include <math.h>

/* Pairs (i, j) with a_i < b_j, or <= where `ties`; both lists are sorted. */
static double count_below(const double *a, size_t na, const double *b, size_t nb, bool ties)
{
    double pairs = 0; /* below 2^53: exact */
    size_t i = 0;
    for (size_t j = 0; j < nb; j++) {
        while (i < na && (a[i] < b[j] || (ties && a[i] == b[j]))) i++;
        pairs += (double)i;
    }
    return pairs;
}

/* Ends of the scores of one class, each list sorted. */
typedef struct ends {
    size_t n;
    double *lo, *hi;
} ends;

/* y_1 - y_0, each entry within rad: rounded once, and outwards. */
static bool add_row(ends *to, const pare_enclosure *e, size_t i)
{
    const double s = e->mid[2 * i + 1] - e->mid[2 * i];
    const double r = pare_ub_mul(pare_ub_exact(2), pare_ub_exact(e->rad[i])).v;
    to->lo[to->n] = nextafter(nextafter(s, -INFINITY) - r, -INFINITY);
    to->hi[to->n] = nextafter(nextafter(s, INFINITY) + r, INFINITY);
    const bool known = to->lo[to->n] <= to->hi[to->n]; /* false for a nan */
    to->n++;
    return known;
}

/* Room for the rows of both classes; false when memory is out. */
static bool ends_new(ends class[2], pare_arena *a, size_t rows)
{
    for (size_t c = 0; c < 2; c++) {
        class[c].lo = pare_alloc(a, rows ? rows : 1, sizeof(double));
        class[c].hi = pare_alloc(a, rows ? rows : 1, sizeof(double));
        if (!class[c].lo || !class[c].hi) return false;
    }
    return true;
}

pare_status pare_auc_interval(pare_auc_bound *out, pare_arena *scratch, const pare_enclosure *e,
                              const int64_t *target, pare_err *err)
{
    ends class[2] = {{0}, {0}};
    bool known = true;
    *out = (pare_auc_bound){1, 0};
    if (e->cols != 2 || e->rows > (1u << 26)) return PARE_OK;
    if (!ends_new(class, scratch, e->rows)) return pare_no_memory(err);
    for (size_t i = 0; i < e->rows; i++)
        if (target[i] == 0 || target[i] == 1) known &= add_row(&class[target[i]], e, i);
    if (class[0].n == 0 || class[1].n == 0) return PARE_OK;
    *out = (pare_auc_bound){0, 1};
    if (!known) return PARE_OK;
    for (size_t c = 0; c < 2; c++) {
        pare_sort_doubles(class[c].lo, class[c].n);
        pare_sort_doubles(class[c].hi, class[c].n);
    }
    const double all = (double)class[0].n * (double)class[1].n;
    const double sure = count_below(class[0].hi, class[0].n, class[1].lo, class[1].n, false);
    const double may = count_below(class[0].lo, class[0].n, class[1].hi, class[1].n, true);
    *out = (pare_auc_bound){sure == 0 ? 0 : nextafter(sure / all, 0),
                            may == all ? 1 : nextafter(may / all, 2)};
    return PARE_OK;
}
