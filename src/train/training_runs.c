/* Many runs at once. A job is one run under one setting; job j is done by rank j mod size, there by
 * any thread. What a job gives depends on nothing but its number, and everything that is chosen
 * afterwards is chosen from all results in the order of their numbers: so neither threads nor ranks
 * show. */
#include "params.h"
#include <math.h>
#include <pare/runs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct report { /* of one job, as it travels between ranks */
    pare_train_result result;
    pare_err err; /* code PARE_OK where the run came to a mark */
    bool more_is_better;
} report;

typedef struct office {
    const pare_run_source *source;
    const pare_exec *exec;
    const pare_ranks *ranks;
    size_t runs, jobs;
    report *of, *all;  /* jobs; ranks x jobs */
    pare_model **best; /* per setting: of the best run here */
    size_t *best_job;
    uint64_t *done; /* per job: thousandths */
    pthread_mutex_t lock;
    atomic_bool stop; /* a run failed: begin no other */
    bool wanted;      /* the model */
} office;

/* ---- one job ----------------------------------------------------------------------------------
 */

typedef struct desk { /* what a run's callbacks need */
    office *in;
    size_t job;
    void (*log)(void *self, const pare_train_log *line);
    void (*poly)(void *self, size_t block, const pare_poly_use *use);
    void *log_self;
} desk;

static void log_line(void *self, const pare_train_log *line)
{
    const desk *const d = self;
    pthread_mutex_lock(&d->in->lock);
    d->log(d->log_self, line);
    pthread_mutex_unlock(&d->in->lock);
}

static void log_poly(void *self, size_t block, const pare_poly_use *use)
{
    const desk *const d = self;
    pthread_mutex_lock(&d->in->lock);
    d->poly(d->log_self, block, use);
    pthread_mutex_unlock(&d->in->lock);
}

/* The progress of all jobs of this rank together. */
static void add_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
    const desk *const d = self;
    const office *const in = d->in;
    uint64_t sum = 0, all = 0;
    pthread_mutex_lock(&d->in->lock);
    in->done[d->job] = total ? 1000 * done / total : 1000;
    for (size_t j = pare_ranks_rank(in->ranks); j < in->jobs; j += pare_ranks_size(in->ranks)) {
        sum += in->done[j];
        all += 1000;
    }
    pthread_mutex_unlock(&d->in->lock);
    const pare_status st = pare_progress(in->exec, what, sum, all, NULL);
    (void)st; /* the run looks at the flag itself */
}

/* Whether job a is to be preferred to job b: one that came to its end to one that diverged, then by
 * its mark, then by its number. */
static bool before(const office *in, size_t a, size_t b)
{
    const report *const x = &in->of[a], *const y = &in->of[b];
    if (x->result.diverged != y->result.diverged) return y->result.diverged;
    if (x->result.val == y->result.val) return a < b;
    return x->more_is_better ? x->result.val > y->result.val : x->result.val < y->result.val;
}

/* Only the best model of a setting is kept. */
static void hand_in(office *in, size_t job, pare_model *m)
{
    const size_t s = job / in->runs;
    pthread_mutex_lock(&in->lock);
    if (in->wanted && (!in->best[s] || before(in, job, in->best_job[s]))) {
        pare_model *const old = in->best[s];
        in->best[s] = m;
        in->best_job[s] = job;
        m = old;
    }
    pthread_mutex_unlock(&in->lock);
    pare_model_free(m);
}

static void do_job(office *in, size_t job, int threads)
{
    report *const r = &in->of[job];
    desk d = {.in = in, .job = job};
    pare_run_parts parts = {0};
    pare_model *m = NULL;
    if (atomic_load(&in->stop)) return;
    pare_status st =
        in->source->open(in->source->self, &parts, job % in->runs, job / in->runs, &r->err);
    if (!st) {
        const pare_exec exec = {.threads = threads,
                                .progress = add_progress,
                                .self = &d,
                                .stop = in->exec ? in->exec->stop : NULL};
        d.log = parts.opts.log, d.poly = parts.opts.poly, d.log_self = parts.opts.log_self;
        if (d.log) parts.opts.log = log_line;
        if (d.poly) parts.opts.poly = log_poly;
        parts.opts.log_self = &d;
        r->more_is_better = parts.lesson->more_is_better;
        st = pare_train(&m, &r->result, parts.start, parts.lesson, &parts.opts, &exec, &r->err);
        if (in->source->close) in->source->close(in->source->self, &parts);
    }
    r->err.code = st;
    if (st && st != PARE_ERR_NUMERIC) atomic_store(&in->stop, true);
    if (!st) hand_in(in, job, m);
}

/* ---- all jobs of this rank --------------------------------------------------------------------
 */

static size_t own_job(const office *in, size_t i)
{
    return i * pare_ranks_size(in->ranks) + pare_ranks_rank(in->ranks);
}

static void one_thread(void *ctx, size_t i)
{
    do_job(ctx, own_job(ctx, i), 1);
}

static void do_all(office *in)
{
    const size_t size = pare_ranks_size(in->ranks), rank = pare_ranks_rank(in->ranks);
    const size_t mine = rank < in->jobs ? (in->jobs - rank + size - 1) / size : 0;
    const int threads = in->exec ? in->exec->threads : 1;
    if (mine >= (size_t)threads)
        pare_parallel(in->exec, mine, one_thread, in);
    else
        for (size_t i = 0; i < mine; i++) do_job(in, own_job(in, i), threads);
}

/* Every rank has every report afterwards. */
static pare_status share_reports(office *in, pare_err *err)
{
    const size_t size = pare_ranks_size(in->ranks), bytes = in->jobs * sizeof *in->of;
    const pare_status st = pare_ranks_gather(in->ranks, in->all, in->of, bytes, err);
    for (size_t j = 0; !st && j < in->jobs; j++) in->of[j] = in->all[(j % size) * in->jobs + j];
    return st;
}

/* ---- what came of it --------------------------------------------------------------------------
 */

static pare_spread spread(const report *r, size_t n, bool test)
{
    pare_spread s = {.mean = NAN, .std = NAN};
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++)
        if (!r[i].err.code) {
            sum += test ? r[i].result.test : r[i].result.val;
            s.n++;
        }
    if (s.n == 0) return s;
    s.mean = sum / (double)s.n;
    for (size_t i = 0; i < n; i++)
        if (!r[i].err.code) {
            const double d = (test ? r[i].result.test : r[i].result.val) - s.mean;
            square += d * d;
        }
    s.std = s.n > 1 ? sqrt(square / (double)(s.n - 1)) : 0;
    return s;
}

/* Whether all runs of setting s came to their end. */
static bool whole(const pare_runs_result *r, size_t s)
{
    bool all = true;
    for (size_t i = 0; i < r->runs; i++) all = all && !r->each[s * r->runs + i].diverged;
    return all;
}

/* Whether setting a is better than setting b. */
static bool setting_before(const pare_runs_result *r, size_t a, size_t b, bool more_is_better)
{
    const pare_spread *const x = &r->val[a], *const y = &r->val[b];
    if (x->n == 0 || y->n == 0) return x->n > 0;
    if (whole(r, a) != whole(r, b)) return whole(r, a);
    return more_is_better ? x->mean > y->mean : x->mean < y->mean;
}

static pare_status sum_up(pare_runs_result *r, const office *in, pare_err *err)
{
    size_t marked = in->jobs;
    for (size_t j = 0; j < in->jobs; j++) {
        const report *const x = &in->of[j];
        if (x->err.code && x->err.code != PARE_ERR_NUMERIC)
            return in->jobs == 1
                       ? pare_fail(err, x->err.code, "%s", x->err.msg)
                       : pare_fail(err, x->err.code, "run %zu: %s", j % in->runs, x->err.msg);
        r->each[j] = x->result;
        r->each[j].diverged = x->result.diverged || x->err.code;
        if (!x->err.code && marked == in->jobs) marked = j;
    }
    if (marked == in->jobs) return pare_fail(err, PARE_ERR_NUMERIC, "%s", in->of[0].err.msg);
    for (size_t s = 0; s < r->settings; s++) {
        r->val[s] = spread(in->of + s * in->runs, in->runs, false);
        r->test[s] = spread(in->of + s * in->runs, in->runs, true);
    }
    for (size_t s = 1; s < r->settings; s++)
        if (setting_before(r, s, r->setting, in->of[marked].more_is_better)) r->setting = s;
    const size_t first = r->setting * in->runs;
    size_t best = first;
    for (size_t j = first; j < first + in->runs; j++)
        if (!in->of[j].err.code && (in->of[best].err.code || before(in, j, best))) best = j;
    r->best = best - first;
    return PARE_OK;
}

/* ---- the model of the best run, on every rank ---------------------------------------------------
 */

/* Parameters of its shape: the ones that are wanted where the run was done, else those it began
 * with. */
static pare_status vessel(pare_params **out, const office *in, const pare_runs_result *r, bool here,
                          pare_err *err)
{
    if (here) return pare_params_new(out, in->best[r->setting], PARE_F32, err);
    pare_run_parts parts = {0};
    pare_status st = in->source->open(in->source->self, &parts, r->best, r->setting, err);
    if (st) return st;
    st = pare_params_new(out, parts.start, PARE_F32, err);
    if (in->source->close) in->source->close(in->source->self, &parts);
    return st;
}

static pare_status send_model(pare_model **out, office *in, const pare_runs_result *r,
                              pare_err *err)
{
    const size_t job = r->setting * in->runs + r->best, size = pare_ranks_size(in->ranks);
    const size_t owner = job % size;
    const bool here = owner == pare_ranks_rank(in->ranks);
    if (size == 1) {
        *out = in->best[r->setting];
        in->best[r->setting] = NULL;
        return PARE_OK;
    }
    pare_params *p = NULL;
    pare_status st = pare_ranks_agree(in->ranks, vessel(&p, in, r, here, err), err);
    if (!st) st = pare_ranks_bcast(in->ranks, p->values, p->count * sizeof(float), owner, err);
    if (!st) st = pare_ranks_bcast(in->ranks, p->stats, p->nstats * sizeof(float), owner, err);
    if (!st) st = model_deep_copy(out, p->model, err);
    pare_params_free(p);
    return st;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static pare_status result_new(pare_runs_result **out, size_t runs, size_t settings, size_t jobs,
                              pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    pare_runs_result *const r = a ? pare_alloc(a, 1, sizeof *r) : NULL;
    *out = NULL;
    if (r) {
        *r = (pare_runs_result){.runs = runs, .settings = settings, .arena = a};
        r->each = pare_alloc(a, jobs, sizeof *r->each);
        r->val = pare_alloc(a, settings, sizeof *r->val);
        r->test = pare_alloc(a, settings, sizeof *r->test);
    }
    if (!r || !r->each || !r->val || !r->test) {
        pare_arena_free(a);
        return pare_no_memory(err);
    }
    *out = r;
    return PARE_OK;
}

/* All memory that ranks wait for one another with is taken before any work: nobody may leave
 * between two of their meetings. */
static pare_status office_open(office *in, pare_arena *a, size_t settings, pare_err *err)
{
    in->of = pare_alloc(a, in->jobs, sizeof *in->of);
    in->all = pare_alloc(a, in->jobs, pare_ranks_size(in->ranks) * sizeof *in->all);
    in->best = pare_alloc(a, settings, sizeof *in->best);
    in->best_job = pare_alloc(a, settings, sizeof *in->best_job);
    in->done = pare_alloc(a, in->jobs, sizeof *in->done);
    return in->of && in->all && in->best && in->best_job && in->done ? PARE_OK
                                                                     : pare_no_memory(err);
}

static pare_status work(pare_model **out, pare_runs_result **result, office *in, size_t settings,
                        pare_arena *a, pare_err *err)
{
    pare_status st = a ? office_open(in, a, settings, err) : pare_no_memory(err);
    if (!st) st = result_new(result, in->runs, settings, in->jobs, err);
    st = pare_ranks_agree(in->ranks, st, err);
    if (st) return st;
    do_all(in);
    st = share_reports(in, err);
    if (!st) st = sum_up(*result, in, err);
    if (!st && out) st = send_model(out, in, *result, err);
    for (size_t s = 0; s < settings; s++) pare_model_free(in->best[s]);
    return st;
}

pare_status pare_runs(pare_model **out, pare_runs_result **result, const pare_run_source *source,
                      size_t runs, size_t settings, const pare_exec *exec, const pare_ranks *ranks,
                      pare_err *err)
{
    PARE_ASSERT(runs >= 1 && settings >= 1);
    office in = {.source = source, .exec = exec, .ranks = ranks, .runs = runs, .wanted = out};
    if (out) *out = NULL;
    *result = NULL;
    if (!pare_mul(&in.jobs, runs, settings)) return pare_no_memory(err);
    pare_arena *const a = pare_arena_new();
    pthread_mutex_init(&in.lock, NULL);
    const pare_status st = work(out, result, &in, settings, a, err);
    pthread_mutex_destroy(&in.lock);
    pare_arena_free(a);
    if (st) {
        pare_runs_free(*result);
        *result = NULL;
    }
    return st;
}

void pare_runs_free(pare_runs_result *r)
{
    if (r) pare_arena_free(r->arena); /* r itself lives there */
}

pare_status pare_grid(pare_setting **out, pare_arena *a, const double *lr, size_t nlr,
                      const uint64_t *epochs, size_t nepochs, pare_err *err)
{
    size_t n;
    *out = pare_mul(&n, nlr, nepochs) ? pare_alloc(a, n ? n : 1, sizeof **out) : NULL;
    if (!*out) return pare_no_memory(err);
    for (size_t i = 0; i < nlr; i++)
        for (size_t e = 0; e < nepochs; e++)
            (*out)[i * nepochs + e] = (pare_setting){lr[i], epochs[e]};
    return PARE_OK;
}
