/* tape_mean_f32.c - means over windows and graphs in f32: sixteen columns at a time over the keys of
 * a row. */
#include "simd_lanes.h"

LANES_INLINE void mean_rows(const mean_job *w, const span *s)
{
    const size_t n = w->t->tokens, d = w->x->d;
    for (size_t i = s->first; i < s->end; i++) {
        const size_t first = i / n * n;
        const pare_keys k = mean_keys(w, i - first);
        float *const y = rows_at(w->y, i, 0);
        for (size_t j = 0; j < d; j += LANES) {
            const size_t m = lanes_count(j, d);
            lanes sum = {0}, v;
            for (size_t e = 0; e < k.count; e++) {
                const size_t at = pare_key(&k, e);
                const float by = (float)mean_weight(w, &k, at);
                lanes_load(&v, rows_at(w->x, first + at, 0), j, m, 0);
                sum += v * by;
            }
            lanes_store(y, &sum, j, m);
        }
    }
}

LANES_DISPATCH(mean_f32, mean_rows)
