/* Dropout and sums of rows in f32: y = kept(x) + plus. */
#include "simd_lanes.h"

LANES_INLINE void dropout_rows(const dropout_job *w, const span *s, const dropout_mask *k,
                               bool adds)
{
    const size_t d = w->y->d;
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0), *const plus =
                                                        adds ? rows_at(w->plus, i, 0) : NULL;
        float *const y = rows_at(w->y, i, 0);
        for (size_t j = 0; j < d; j += LANES) {
            const size_t n = lanes_count(j, d);
            lanes v, p, keep;
            lanes_load(&v, x, j, n, 0);
            lanes_load(&p, plus, j, n, 0);
            lanes_dropout(&keep, k, i * d + j, n);
            v = v * keep + p;
            lanes_store(y, &v, j, n);
        }
    }
}

/* What there is to do is known before the loops. */
LANES_INLINE void run(const dropout_job *w, const span *s)
{
    if (!w->k->keep && w->plus)
        dropout_rows(w, s, NULL, true);
    else if (!w->k->keep)
        dropout_rows(w, s, NULL, false);
    else
        dropout_rows(w, s, w->k, w->plus);
}

LANES_DISPATCH(dropout_f32, run)
