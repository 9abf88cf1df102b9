/* ticket_circle.c - the paper's task, angular velocity: targets, data, tickets and errors
 * (study_ticket.h).
 *
 * The trained target follows the paper's recipe in small: one head, d_K = d_V = 8, AdamW with lr .1
 * and decay .01, sequences of 4 to 16 tokens, 250 steps of 256. The output depends on six numbers
 * (what the token asks for, what a value is worth, the token as a key), whose gradient is taken by
 * differences and carried to the weights by the chain rule. It hardly learns the task: what matters
 * is that its entries are not chosen by hand. The trained token is not used: all targets are asked
 * by (.6, .8), of length 1, so that they can be compared. */
#include <pare/ticket.h>
#include "study_ticket.h"
#include <math.h>
#include <string.h>

enum { DK = 8, STEPS = 250, BATCH = 256, DONORS = 10 };

/* ---- data ------------------------------------------------------------------------------------ */

static double circle_start(double *speed, uint64_t seed, size_t number)
{
    pare_rng r = pare_rng_at(seed, 0x51c0 + number);
    *speed = (2 * pare_rng_uniform(&r) - 1) * M_PI;
    return pare_rng_uniform(&r) * M_PI;
}

void circle_sequence(double *x, const double token[2], size_t tokens, uint64_t seed, size_t number)
{
    double w;
    const double start = circle_start(&w, seed, number);
    x[0] = token[0], x[1] = token[1];
    for (size_t t = 1; t <= tokens; t++) {
        x[2 * t] = cos(w * (double)t + start);
        x[2 * t + 1] = sin(w * (double)t + start);
    }
}

/* sum of softmax(u . x_t) x_t */
static void gathered(double y[2], const double u[2], const double *x, size_t n)
{
    double top = -INFINITY, sum = 0;
    for (size_t t = 0; t < n; t++) top = fmax(top, u[0] * x[2 * t] + u[1] * x[2 * t + 1]);
    y[0] = y[1] = 0;
    for (size_t t = 0; t < n; t++) {
        const double p = exp(u[0] * x[2 * t] + u[1] * x[2 * t + 1] - top);
        sum += p, y[0] += p * x[2 * t], y[1] += p * x[2 * t + 1];
    }
    y[0] /= sum, y[1] /= sum;
}

static void answer(double *out, const circle_target *f, const double *x, size_t n)
{
    const double u[2] = {f->token[0] * f->g[0] + f->token[1] * f->g[2],
                         f->token[0] * f->g[1] + f->token[1] * f->g[3]};
    double y[2];
    gathered(y, u, x, n);
    for (size_t c = 0; c < f->d2; c++) out[c] = y[0] * f->v[c] + y[1] * f->v[f->d2 + c];
}

pare_status circle_error(double *out, const circle_target *f, const circle_target *g, size_t tokens,
                         size_t count, uint64_t seed, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    double *const x = a ? pare_alloc(a, 2 * (tokens + 1), sizeof *x) : NULL, sum = 0;
    for (size_t i = 0; x && i < count; i++) {
        double y[2] = {0, 0}, z[2] = {0, 0};
        circle_sequence(x, f->token, tokens, seed, i);
        answer(y, f, x, tokens + 1);
        answer(z, g, x, tokens + 1);
        sum += hypot(y[0] - z[0], y[1] - z[1]);
    }
    *out = sum / (double)count;
    pare_arena_free(a);
    return x ? PARE_OK : pare_no_memory(err);
}

/* ---- training -------------------------------------------------------------------------------- */

typedef struct circle_weights {
    double q[2 * DK], k[2 * DK], v[2 * DK], o[DK], r[2];
} circle_weights;
enum { WEIGHTS = sizeof(circle_weights) / sizeof(double) };

/* u (2), v (2), r (2): all that the output at the token depends on. */
static void parts_of(double p[6], const circle_weights *w)
{
    memset(p, 0, 6 * sizeof *p);
    for (size_t c = 0; c < DK; c++) {
        const double q = w->r[0] * w->q[c] + w->r[1] * w->q[DK + c];
        for (size_t i = 0; i < 2; i++) {
            p[i] += q * w->k[i * DK + c] / sqrt(DK);
            p[2 + i] += w->v[i * DK + c] * w->o[c];
        }
    }
    p[4] = w->r[0], p[5] = w->r[1];
}

static double mean_square(const double p[6], size_t tokens, uint64_t seed)
{
    double sum = 0;
    for (size_t i = 0; i < BATCH; i++) {
        double x[2 * 17], y[2], w;
        (void)circle_start(&w, seed, i);
        circle_sequence(x, p + 4, tokens, seed, i);
        gathered(y, p, x, tokens + 1);
        const double e = y[0] * p[2] + y[1] * p[3] - w;
        sum += e * e / BATCH;
    }
    return sum;
}

static void gradients(circle_weights *d, const circle_weights *w, const double s[6])
{
    memset(d, 0, sizeof *d);
    d->r[0] = s[4], d->r[1] = s[5];
    for (size_t c = 0; c < DK; c++) {
        const double q = w->r[0] * w->q[c] + w->r[1] * w->q[DK + c];
        const double dq = (s[0] * w->k[c] + s[1] * w->k[DK + c]) / sqrt(DK);
        for (size_t i = 0; i < 2; i++) {
            d->k[i * DK + c] = s[i] * q / sqrt(DK);
            d->q[i * DK + c] = w->r[i] * dq;
            d->r[i] += w->q[i * DK + c] * dq;
            d->v[i * DK + c] = s[2 + i] * w->o[c];
            d->o[c] += s[2 + i] * w->v[i * DK + c];
        }
    }
}

static void train_step(circle_weights *w, double *m, double *v, size_t step, uint64_t seed)
{
    double p[6], s[6];
    circle_weights d;
    double *const at = w->q, *const slope = d.q; /* all doubles, side by side */
    parts_of(p, w);
    for (size_t i = 0; i < 6; i++) {
        double high[6], low[6];
        const size_t tokens = 4 + step % 13;
        memcpy(high, p, sizeof p), memcpy(low, p, sizeof p);
        high[i] += 1e-5, low[i] -= 1e-5;
        s[i] =
            (mean_square(high, tokens, seed + step) - mean_square(low, tokens, seed + step)) / 2e-5;
    }
    gradients(&d, w, s);
    for (size_t i = 0; i < WEIGHTS; i++) {
        m[i] = .9 * m[i] + .1 * slope[i];
        v[i] = .999 * v[i] + .001 * slope[i] * slope[i];
        const double mh = m[i] / (1 - pow(.9, (double)step + 1)),
                     vh = v[i] / (1 - pow(.999, (double)step + 1));
        at[i] -= .1 * (mh / (sqrt(vh) + 1e-8) + .01 * at[i]);
    }
}

static void random_weights(circle_weights *w, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 0x71c);
    double *const at = w->q;
    for (size_t i = 0; i < WEIGHTS; i++) at[i] = 2 * pare_rng_uniform(&r) - 1;
    for (size_t i = 0; i < 4 * DK; i++) at[i] *= pow(DK, .25); /* queries and keys */
}

static void merge(circle_target *t, const circle_weights *w)
{
    memset(t->g, 0, sizeof t->g), memset(t->v, 0, sizeof t->v);
    t->d2 = 1;
    for (size_t c = 0; c < DK; c++)
        for (size_t i = 0; i < 2; i++) {
            for (size_t j = 0; j < 2; j++)
                t->g[2 * i + j] += w->q[i * DK + c] * w->k[j * DK + c] / sqrt(DK);
            t->v[i] += w->v[i * DK + c] * w->o[c];
        }
}

void circle_target_of(circle_target *out, size_t which, uint64_t seed)
{
    static const char *const names[] = {"trained", "|VO| = 2", "random"};
    circle_weights w;
    double m[WEIGHTS] = {0}, v[WEIGHTS] = {0};
    random_weights(&w, seed + 3 * which);
    for (size_t s = 0; which == 0 && s < STEPS; s++) train_step(&w, m, v, s, seed + 17);
    *out = (circle_target){.name = names[which], .token = {.6, .8}, .d2 = 1};
    merge(out, &w);
    if (which == 1) *out = (circle_target){names[1], {.6, .8}, {.6, -.4, .3, .5}, {2, .8}, 1};
}

/* ---- tickets --------------------------------------------------------------------------------- */

/* What a product of two weights is worth in the paper's three sources, for QK and for VO. */
static void source_scales(double *qk, double *vo, circle_way way, double n, double d2)
{
    *qk = *vo = 1;
    if (way == WAY_MINUS) *qk = 1 / n;
    if (way == WAY_XAVIER) {
        *qk = 6 / (2 + n) / sqrt(n);
        *vo = sqrt(6 / (2 + n)) * sqrt(6 / (n + d2));
    }
}

static pare_status fitted(double *out, const double *w, size_t cols, double scale,
                          const pare_fit_opts *o, const pare_exec *exec, pare_err *err)
{
    double t[4], y[4];
    const pare_mat from = pare_mat_of(t, 2, cols);
    pare_mat to = pare_mat_of(y, 2, cols);
    for (size_t i = 0; i < 2 * cols; i++) t[i] = w[i] / scale;
    /* what is 2^11 times out of reach is out of reach */
    for (size_t i = 0; i < 2 * cols; i++) t[i] = fmax(-2000, fmin(2000, t[i]));
    const pare_status st = pare_ticket_fit(&to, &from, o, exec, err);
    for (size_t i = 0; !st && i < 2 * cols; i++) out[i] = y[i] * scale;
    return st;
}

pare_status circle_ticket(circle_target *out, const circle_target *f, size_t n, circle_way way,
                          uint64_t seed, const pare_exec *exec, pare_err *err)
{
    double qk, vo;
    pare_fit_opts o = {.seed = seed, .left = 1, .right = 2, .hidden = n, .scale = 1};
    source_scales(&qk, &vo, way, (double)n, (double)f->d2);
    *out = *f;
    o.best = way == WAY_OURS;
    o.donors = DONORS;
    pare_status st = fitted(out->g, f->g, 2, qk, &o, exec, err);
    o.left = 3, o.right = 4, o.best = false;
    o.side = way >= WAY_ORIENTATION ? PARE_FIT_SMALLER : PARE_FIT_ROWS;
    if (!st) st = fitted(out->v, f->v, f->d2, vo, &o, exec, err);
    return st;
}

/* ---- fits ------------------------------------------------------------------------------------ */

static double misfit(const double *n, const double *y, size_t count, decay *d)
{
    double xy = 0, xx = 0, sum = 0;
    for (size_t i = 0; i < count; i++) {
        const double e = exp(-d->delta * n[i]);
        xy += e * y[i], xx += e * e;
    }
    d->gamma = xy / xx;
    for (size_t i = 0; i < count; i++) {
        const double e = y[i] - d->gamma * exp(-d->delta * n[i]);
        sum += e * e;
    }
    return sum;
}

decay decay_of(const double *n, const double *y, size_t count)
{
    decay best = {NAN, NAN};
    double least = INFINITY;
    for (int i = 1; i <= 5000; i++) {
        decay d = {0, i * 2e-4};
        const double e = misfit(n, y, count, &d);
        if (e < least) least = e, best = d;
    }
    return best;
}

double log_rate(const double *n, const double *y, size_t count)
{
    double mx = 0, my = 0, xx = 0, xy = 0, m = 0;
    for (size_t i = 0; i < count; i++)
        if (y[i] > 0) mx += n[i], my += log(y[i]), m++;
    mx /= m, my /= m;
    for (size_t i = 0; i < count; i++)
        if (y[i] > 0) xx += (n[i] - mx) * (n[i] - mx), xy += (n[i] - mx) * (log(y[i]) - my);
    return -xy / xx;
}

double median_of(double *v, size_t n)
{
    for (size_t i = 1; i < n; i++) /* few */
        for (size_t k = i; k > 0 && v[k] < v[k - 1]; k--) {
            const double t = v[k];
            v[k] = v[k - 1], v[k - 1] = t;
        }
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}
