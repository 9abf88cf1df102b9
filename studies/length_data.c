/* length_data.c - data of `repro length` and attention over it. */
#include "length_data.h"
#include <math.h>

const char *const length_regimes[LENGTH_REGIMES] = {"benign", "peaky", "wide"};

bool length_data_new(length_data *d, size_t n, int regime, double mean, double scale, uint64_t seed)
{
    *d = (length_data){.n = n, .a = pare_arena_new()};
    if (!d->a) return false;
    double **const wide[] = {&d->q, &d->k, &d->v, &d->y, &d->exact};
    float **const narrow[] = {&d->qf, &d->kf, &d->vf, &d->yf};
    for (size_t i = 0; i < 5; i++)
        if (!(*wide[i] = pare_alloc(d->a, n * LENGTH_D, sizeof **wide[i]))) return false;
    for (size_t i = 0; i < 4; i++)
        if (!(*narrow[i] = pare_alloc(d->a, n * LENGTH_D, sizeof **narrow[i]))) return false;
    pare_rng r = pare_rng_at(seed, 17);
    for (size_t i = 0; i < n * LENGTH_D; i++) {
        const double size = scale * (regime == LENGTH_PEAKY ? 8 : 1) / sqrt((double)LENGTH_D);
        double q = size * pare_rng_normal(&r), k = pare_rng_normal(&r);
        if (regime == LENGTH_WIDE && i % LENGTH_D == 0)
            q = 90.0 * (double)(i / LENGTH_D) / (double)n - 45, k = 1;
        d->q[i] = (double)(d->qf[i] = (float)q);
        d->k[i] = (double)(d->kf[i] = (float)k);
        d->v[i] = (double)(d->vf[i] = (float)(mean + pare_rng_normal(&r)));
    }
    return true;
}

void length_data_exact(length_data *d, const pare_pattern *p)
{
    for (size_t i = 0; i < d->n; i++) {
        const pare_keys keys = pare_visible(p, NULL, d->n, i);
        long double row_max = -INFINITY, sum = 0, y[LENGTH_D] = {0};
        for (size_t x = 0; x < keys.count; x++) {
            long double s = 0;
            for (size_t e = 0; e < LENGTH_D; e++)
                s += (long double)d->q[i * LENGTH_D + e] *
                     (long double)d->k[pare_key(&keys, x) * LENGTH_D + e];
            const long double rescale = s > row_max ? expl(row_max - s) : 1,
                              w = s > row_max ? 1 : expl(s - row_max);
            if (s > row_max) row_max = s;
            sum = sum * rescale + w;
            for (size_t e = 0; e < LENGTH_D; e++)
                y[e] = y[e] * rescale + w * (long double)d->v[pare_key(&keys, x) * LENGTH_D + e];
        }
        for (size_t e = 0; e < LENGTH_D; e++) d->exact[i * LENGTH_D + e] = (double)(y[e] / sum);
    }
}

double length_data_error(const length_data *d, pare_dtype t)
{
    double most = 0;
    for (size_t i = 0; i < d->n; i++) {
        double off = 0, size = 0;
        for (size_t e = 0; e < LENGTH_D; e++) {
            const double y =
                t == PARE_F32 ? (double)d->yf[i * LENGTH_D + e] : d->y[i * LENGTH_D + e];
            off += (y - d->exact[i * LENGTH_D + e]) * (y - d->exact[i * LENGTH_D + e]);
            size += d->exact[i * LENGTH_D + e] * d->exact[i * LENGTH_D + e];
        }
        if (!(sqrt(off / size) <= most)) most = sqrt(off / size);
    }
    return most;
}

static pare_length_job job_of(length_data *d, pare_dtype t)
{
    const bool f = t == PARE_F32;
    return (pare_length_job){.n = d->n,
                             .dk = LENGTH_D,
                             .dv = LENGTH_D,
                             .q = f ? (void *)d->qf : d->q,
                             .k = f ? (void *)d->kf : d->k,
                             .v = f ? (void *)d->vf : d->v,
                             .ldq = LENGTH_D,
                             .ldk = LENGTH_D,
                             .ldv = LENGTH_D,
                             .scale = 1,
                             .y = f ? (void *)d->yf : d->y,
                             .ldy = LENGTH_D};
}

pare_status length_data_attend(length_data *d, const pare_pattern *p, uint32_t m, pare_dtype t,
                               const pare_length_opts *o, pare_length_stats *s,
                               const pare_exec *exec, pare_err *err)
{
    pare_oracle orc;
    const pare_length_job one = job_of(d, t);
    pare_status st = pare_oracle_cpu(&orc, t, m, exec, err);
    if (st) return st;
    st = pare_length_attend(&orc, o, &(pare_length_layer){.jobs = &one, .count = 1, .pattern = p},
                            s, exec, err);
    pare_oracle_free(&orc);
    return st;
}
