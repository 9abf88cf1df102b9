/* merge_partials.h - attention over several ranges of keys from the results over each. */
#ifndef PARE_TEST_MERGE_PARTIALS_H
#define PARE_TEST_MERGE_PARTIALS_H
#include "attention/attend.h"

/* y (nq x dv) = attention over the union of `count` disjoint ranges of keys, from their partial
 * results; in f64 whatever the engine's type: y = sum_t e^(m_t - m) acc_t / sum_t e^(m_t - m) l_t
 * with m = max_t m_t, rounded once to f32. A row that saw nothing is 0. */
void pare_merge_partials(pare_mat32 *y, const pare_partial *parts, size_t count);
#endif
