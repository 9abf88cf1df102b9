/* engine_distance.c - how far outputs that an engine has computed are from the exact function.
 *
 * The enclosure of the exact function on the input is mid +- rad, row by row, so
 *
 *     |y - exact| <= |y - mid| + rad,
 *
 * whatever made y: proven after the fact, also of an engine that rounds as it likes. */
#include "enclose.h"
#include "outputs.h"
#include <math.h>

/* With midpoints in double-double where those in double leave too much open. */
static pare_status enclose(pare_enclosure *out, pare_arena *a, const pare_model *m,
                           const pare_model_norms *norms, const pare_input *in, bool wide,
                           const pare_exec *exec, pare_err *err)
{
    pare_enclosure e;
    const pare_status st = wide ? pare_enclose_dd(&e, a, m, norms, in, exec, err)
                                : pare_enclose(&e, a, m, norms, in, exec, err);
    return st ? st : pare_enclosure_flatten(out, a, &e, err);
}

pare_status pare_engine_distance(double *out, const pare_model *m, const pare_input *in,
                                 const float *y, const pare_exec *exec, pare_err *err)
{
    *out = INFINITY;
    pare_arena *const a = pare_arena_new();
    pare_model_norms *norms;
    pare_status st = a ? pare_model_norms_new(&norms, a, m, exec, err) : pare_no_memory(err);
    for (int wide = 0; st == PARE_OK && wide < 2; wide++) {
        pare_enclosure e;
        double seen = 0, most = 0;
        st = enclose(&e, a, m, norms, in, wide, exec, err);
        for (size_t i = 0; st == PARE_OK && i < e.rows * e.cols; i++) {
            const double off = up(fabs((double)y[i] - e.mid[i]));
            seen = up_max(seen, off);
            most = up_max(most, up_add(off, e.rad[i / e.cols]));
        }
        if (st == PARE_OK && most < *out) *out = most;
        if (most <= 1.1 * seen) break;
    }
    pare_arena_free(a);
    return st;
}
