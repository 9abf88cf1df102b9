/* length_cert.c - the certificate of a length run (docs/theory/length.md "Plans"): the attention of
 * every head of a model, over one input, through a plan; on some rows of each, what norms say
 * beforehand, what the rounding bound says of these very numbers, and how far the run was from long
 * double. */
#include "base/support.h"
#include "model/inputs.h"
#include "length_cert.h"
#include "numbers.h"
#include "rounding.h"
#include <math.h>
#include "attend_plan.h"
#include "backend.h"
#include <stdlib.h>
#include <string.h>

/* Row i by long double: its largest entry so far, and the difference from what the oracle gave. */
static pare_status row_error(double *out, double *largest, const certifier *c,
                             const pare_length_job *j, size_t i, pare_err *err)
{
    const pare_dtype t = c->plan->caps.dtype;
    const pare_keys keys = pare_visible(&c->plan->pattern, c->plan->graph, j->n, i);
    long double *const s = calloc(keys.count + 1, sizeof *s), largest_score = -INFINITY, sum = 0;
    if (!s) return pare_no_memory(err);
    for (size_t x = 0; x < keys.count; x++) {
        for (size_t e = 0; e < j->dk; e++)
            s[x] += (long double)num_at(t, j->q, i * j->ldq + e) *
                    (long double)num_at(t, j->k, pare_key(&keys, x) * j->ldk + e);
        s[x] *= (long double)j->scale;
        if (s[x] > largest_score) largest_score = s[x];
    }
    for (size_t x = 0; x < keys.count; x++) sum += s[x] = expl(s[x] - largest_score);
    *out = 0;
    for (size_t e = 0; e < j->dv; e++) {
        long double y = 0;
        for (size_t x = 0; x < keys.count; x++)
            y += s[x] * (long double)num_at(t, j->v, pare_key(&keys, x) * j->ldv + e);
        const double want = keys.count ? (double)(y / sum) : 0;
        const double off = fabs(num_at(t, j->y, i * j->ldy + e) - want);
        if (!(off <= *out)) *out = off;
        *largest = fmax(*largest, fabs(want));
    }
    free(s);
    return PARE_OK;
}

static pare_status keep_bound(certifier *c, double bound, pare_err *err)
{
    if (c->count == c->capacity) {
        const size_t capacity = 2 * c->capacity + 256;
        double *const all = realloc(c->all, capacity * sizeof *all);
        if (!all) return pare_no_memory(err);
        c->all = all;
        c->capacity = capacity;
    }
    c->all[c->count++] = bound;
    return PARE_OK;
}

pare_status certifier_judge(certifier *c, const pare_length_job *j, pare_err *err)
{
    pare_length_cert *const o = c->out;
    const size_t rows = c->rows && c->rows < j->n ? c->rows : j->n;
    double bound = 0, apriori = 0, off = 0;
    pare_status st = PARE_OK;
    for (size_t x = 0; x < rows && !st; x++) {
        const size_t i = x * j->n / rows;
        st = rounding_row(&bound, &apriori, c->plan, j, i, c->call_rows, err);
        if (!st) st = row_error(&off, &o->largest, c, j, i, err);
        if (!st) st = keep_bound(c, bound, err);
        if (st) break;
        if (!(off <= bound && bound <= apriori)) o->sound = false;
        o->apriori = fmax(o->apriori, apriori);
        o->proven = fmax(o->proven, bound);
        o->measured = fmax(o->measured, isnan(off) ? INFINITY : off);
        o->rows++;
    }
    return st;
}

static void add_stats(pare_length_cert *o, const pare_length_stats *s)
{
    o->calls += s->calls;
    o->rounds += s->rounds;
    o->bad_rows += s->bad_rows;
    o->fallback_calls += s->fallback_calls;
    o->lmax = fmax(o->lmax, s->lmax);
}

static pare_status one_layer(void *self, size_t block, pare_dtype t, const pare_attend_job *jobs,
                             size_t count, const pare_pattern *p, const pare_graph *g,
                             pare_err *err)
{
    certifier *const c = self;
    pare_length_stats stats;
    pare_length_job *const own = calloc(count, sizeof *own);
    (void)block, (void)p, (void)g, (void)t;
    if (!own) return pare_no_memory(err);
    for (size_t i = 0; i < count; i++) own[i] = pare_length_job_of(&jobs[i]);
    pare_status st = pare_length_plan_attend(c->plan, c->orc, own, count, &stats, c->exec, err);
    if (!st) add_stats(c->out, &stats);
    for (size_t i = 0; i < count && !st; i++) st = certifier_judge(c, &own[i], err);
    free(own);
    return st;
}

void certifier_end(certifier *c)
{
    if (c->count) {
        pare_sort_doubles(c->all, c->count);
        c->out->proven_median = c->all[c->count / 2];
    }
    free(c->all);
    c->all = NULL;
}

/* The bounds are about the numbers the plan says of its engine. */
static pare_status check_engine(const pare_length_plan *plan, const pare_oracle *orc, pare_err *err)
{
    pare_oracle_caps have;
    orc->ops->caps(orc->self, &have);
    if (have.exp_err <= plan->caps.exp_err && have.exp_flush >= plan->caps.exp_flush &&
        have.w_min >= plan->caps.w_min)
        return PARE_OK;
    return pare_fail(err, PARE_ERR_VERIFY,
                     "length: the engine computes less well than the plan says: its exp_err is %g, "
                     "exp_flush %g, w_min %g",
                     have.exp_err, have.exp_flush, have.w_min);
}

pare_status pare_length_certify(pare_length_cert *out, const pare_length_pass *pass,
                                const pare_length_plan *plan, size_t rows, const pare_exec *exec,
                                pare_err *err)
{
    const pare_oracle *const orc = pass->oracle;
    const pare_model *const m = pass->model;
    const pare_input *const in = pass->in;
    certifier c = {.plan = plan, .orc = orc, .rows = rows, .exec = exec, .out = out};
    *out = (pare_length_cert){.sound = true};
    if (plan->opts.mode > PARE_LENGTH_STRICT)
        return pare_fail(err, PARE_ERR_INPUT, "length: mode %s has no certificate",
                         pare_length_mode_name(plan->opts.mode));
    const pare_status fits = check_engine(plan, orc, err);
    if (fits) return fits;
    const size_t count = pare_output_rows(m, in) * pare_model_outputs(m);
    void *const y = malloc((count + 1) * pare_dtype_size(plan->caps.dtype));
    if (!y) return pare_no_memory(err);
    const pare_attender by = {.fn = one_layer, .self = &c};
    const pare_status st = pare_forward_by(y, plan->caps.dtype, m, in, &by, NULL, exec, err);
    certifier_end(&c);
    free(y);
    return st;
}
