/* Dropout and sums of rows in f32: y = kept(x) + plus. */
#include "simd_lanes.h"

LANES_INLINE void drop_rows(const drop_job *w, const span *s, const drop_kept *k, bool adds)
{
    const size_t d = w->y->d;
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0), *const plus =
                                                        adds ? rows_at(w->plus, i, 0) : NULL;
        float *const y = rows_at(w->y, i, 0);
        for (size_t j = 0; j < d; j += LANES) {
            const size_t n = lanes_at(j, d);
            lanes v, p, keep;
            lanes_load(&v, x, j, n, 0);
            lanes_load(&p, plus, j, n, 0);
            lanes_kept(&keep, k, i * d + j, n);
            v = v * keep + p;
            lanes_store(y, &v, j, n);
        }
    }
}

/* What there is to do is known before the loops. */
LANES_INLINE void run(const drop_job *w, const span *s)
{
    if (!w->k->keep && w->plus)
        drop_rows(w, s, NULL, true);
    else if (!w->k->keep)
        drop_rows(w, s, NULL, false);
    else
        drop_rows(w, s, w->k, w->plus);
}

LANES_CHOICE(drop_f32, run)
