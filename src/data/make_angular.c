/* Angular velocity: a point turns on the unit circle, and what is asked is how fast.
 *   token t of row i = (cos, sin)(w_i t + phase_i),  t = 1 .. tokens;  value w_i
 * w uniform in [-pi, pi), the phase uniform in [0, pi). Row i is drawn from stream i of the seed,
 * so that a longer file begins with the shorter one. */
#include "base/array.h"
#include <pare/data.h>
#include <math.h>

static const double PI = 3.14159265358979323846;

static void draw_row(double *x, double *value, size_t tokens, pare_rng rng)
{
    const double w = (2 * pare_rng_uniform(&rng) - 1) * PI, phase = pare_rng_uniform(&rng) * PI;
    for (size_t t = 0; t < tokens; t++) {
        const double angle = w * (double)(t + 1) + phase;
        x[2 * t] = cos(angle);
        x[2 * t + 1] = sin(angle);
    }
    *value = w;
}

pare_status pare_make_angular(const char *path, size_t n, size_t tokens, uint64_t seed,
                              bool overwrite, pare_err *err)
{
    static const char *const names[2] = {"inputs", "values"};
    size_t count;
    if (n == 0 || tokens == 0 || !pare_mul(&count, n, tokens))
        return pare_fail(err, PARE_ERR_USAGE, "%zu rows of %zu tokens", n, tokens);
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    double *x = pare_alloc(a, count, 2 * sizeof *x), *values = pare_alloc(a, n, sizeof *values);
    pare_status st = x && values ? PARE_OK : pare_no_memory(err);
    if (st == PARE_OK) {
        for (size_t i = 0; i < n; i++)
            draw_row(x + 2 * tokens * i, values + i, tokens, pare_rng_at(seed, i));
        const pare_array arrays[2] = {{PARE_F64, 3, {n, tokens, 2}, x},
                                      {PARE_F64, 2, {n, 1}, values}};
        st = pare_npz_write(path, 2, names, arrays, true, overwrite, err);
    }
    pare_arena_free(a);
    return st;
}
