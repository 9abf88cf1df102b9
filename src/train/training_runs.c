/* training_runs.c - many runs at once.
 *
 * A job is one run under one setting; job j is done by rank j mod size, there by any thread. The
 * result of a job depends on nothing but its number, and every choice afterwards is made from all
 * results in the order of their numbers: the outcome depends neither on threads nor on ranks. */
#include "base/work.h"
#include "params.h"
#include <math.h>
#include "base/support.h"
#include <pare/train.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct report { /* of one job, as it is sent between ranks */
    pare_train_result result;
    pare_err err; /* code PARE_OK where the run has a score */
    bool more_is_better;
} report;

typedef struct job_pool {
    const pare_run_source *source;
    const pare_exec *exec;
    const pare_ranks *ranks;
    size_t runs, settings, jobs;
    report *reports, *gathered; /* jobs; ranks x jobs */
    pare_model **best;          /* per setting: of the best run on this rank */
    size_t *best_job;
    uint64_t *done; /* per job: thousandths */
    pthread_mutex_t lock;
    atomic_bool stop; /* a run failed: begin no other */
    bool want_model;
} job_pool;

/* ---- one job ---------------------------------------------------------------------------------- */

typedef struct job_callbacks { /* of one run, called under the pool's lock */
    job_pool *pool;
    size_t job;
    void (*log)(void *self, const pare_train_log *line);
    void (*poly)(void *self, size_t block, const pare_poly_use *use);
    void *log_self;
} job_callbacks;

static void log_line(void *self, const pare_train_log *line)
{
    const job_callbacks *const d = self;
    pthread_mutex_lock(&d->pool->lock);
    d->log(d->log_self, line);
    pthread_mutex_unlock(&d->pool->lock);
}

static void log_poly(void *self, size_t block, const pare_poly_use *use)
{
    const job_callbacks *const d = self;
    pthread_mutex_lock(&d->pool->lock);
    d->poly(d->log_self, block, use);
    pthread_mutex_unlock(&d->pool->lock);
}

/* Reports the progress of all jobs of this rank together. */
static void add_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
    const job_callbacks *const d = self;
    const job_pool *const pool = d->pool;
    uint64_t sum = 0, all = 0;
    pthread_mutex_lock(&d->pool->lock);
    pool->done[d->job] = total ? 1000 * done / total : 1000;
    for (size_t j = pare_ranks_rank(pool->ranks); j < pool->jobs;
         j += pare_ranks_size(pool->ranks)) {
        sum += pool->done[j];
        all += 1000;
    }
    pthread_mutex_unlock(&d->pool->lock);
    const pare_status st = pare_progress(pool->exec, what, sum, all, NULL);
    (void)st; /* the run looks at the flag itself */
}

/* Whether job a is preferred to job b: one that did not diverge to one that did, then by validation
 * score, then by number. */
static bool better_job(const job_pool *pool, size_t a, size_t b)
{
    const report *const x = &pool->reports[a], *const y = &pool->reports[b];
    if (x->result.diverged != y->result.diverged) return y->result.diverged;
    if (x->result.val == y->result.val) return a < b;
    return x->more_is_better ? x->result.val > y->result.val : x->result.val < y->result.val;
}

static void run_job(job_pool *pool, size_t job, int threads)
{
    const size_t setting = job / pool->runs;
    report *const r = &pool->reports[job];
    job_callbacks d = {.pool = pool, .job = job};
    pare_run_parts parts = {0};
    pare_model *m = NULL;
    if (atomic_load(&pool->stop)) return;
    pare_status st =
        pool->source->open(pool->source->self, &parts, job % pool->runs, setting, &r->err);
    if (!st) {
        const pare_exec exec = {.threads = threads,
                                .progress = add_progress,
                                .self = &d,
                                .stop = pool->exec ? pool->exec->stop : NULL};
        d.log = parts.opts.log, d.poly = parts.opts.poly, d.log_self = parts.opts.log_self;
        if (d.log) parts.opts.log = log_line;
        if (d.poly) parts.opts.poly = log_poly;
        parts.opts.log_self = &d;
        r->more_is_better = parts.task->more_is_better;
        st = pare_train(&m, &r->result, parts.start, parts.task, &parts.opts, &exec, &r->err);
        if (pool->source->close) pool->source->close(pool->source->self, &parts);
    }
    r->err.code = st;
    if (st && st != PARE_ERR_NUMERIC) atomic_store(&pool->stop, true);
    if (st) return;
    /* Only the best model of a setting is kept. */
    pthread_mutex_lock(&pool->lock);
    pare_model *const old = pool->best[setting];
    if (pool->want_model && (!old || better_job(pool, job, pool->best_job[setting]))) {
        pool->best[setting] = m;
        pool->best_job[setting] = job;
        m = old;
    }
    pthread_mutex_unlock(&pool->lock);
    pare_model_free(m);
}

/* ---- all jobs of this rank -------------------------------------------------------------------- */

static size_t own_job(const job_pool *pool, size_t i)
{
    return i * pare_ranks_size(pool->ranks) + pare_ranks_rank(pool->ranks);
}

static void one_thread_job(void *ctx, size_t i)
{
    run_job(ctx, own_job(ctx, i), 1);
}

/* Every rank has every report afterwards. */
static pare_status run_all(job_pool *pool, pare_err *err)
{
    const size_t size = pare_ranks_size(pool->ranks), rank = pare_ranks_rank(pool->ranks);
    const size_t mine = rank < pool->jobs ? (pool->jobs - rank + size - 1) / size : 0;
    const int threads = pool->exec ? pool->exec->threads : 1;
    if (mine >= (size_t)threads)
        pare_parallel(pool->exec, mine, one_thread_job, pool);
    else
        for (size_t i = 0; i < mine; i++) run_job(pool, own_job(pool, i), threads);
    const size_t bytes = pool->jobs * sizeof *pool->reports;
    const pare_status st =
        pare_ranks_gather(pool->ranks, pool->gathered, pool->reports, bytes, err);
    for (size_t j = 0; !st && j < pool->jobs; j++)
        pool->reports[j] = pool->gathered[(j % size) * pool->jobs + j];
    return st;
}

/* ---- the best of them ------------------------------------------------------------------------- */

static pare_spread mean_and_std(const report *r, size_t n, bool test)
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

static bool none_diverged(const pare_runs_result *r, size_t setting)
{
    bool none = true;
    for (size_t i = 0; i < r->runs; i++) none = none && !r->each[setting * r->runs + i].diverged;
    return none;
}

static pare_status summarize(pare_runs_result *r, const job_pool *pool, pare_err *err)
{
    size_t scored = pool->jobs; /* the first that has a score */
    for (size_t j = 0; j < pool->jobs; j++) {
        const report *const x = &pool->reports[j];
        if (x->err.code && x->err.code != PARE_ERR_NUMERIC)
            return pool->jobs == 1
                       ? pare_fail(err, x->err.code, "%s", x->err.msg)
                       : pare_fail(err, x->err.code, "run %zu: %s", j % pool->runs, x->err.msg);
        r->each[j] = x->result;
        r->each[j].diverged = x->result.diverged || x->err.code;
        if (!x->err.code && scored == pool->jobs) scored = j;
    }
    if (scored == pool->jobs)
        return pare_fail(err, PARE_ERR_NUMERIC, "%s", pool->reports[0].err.msg);
    for (size_t s = 0; s < r->settings; s++) {
        r->val[s] = mean_and_std(pool->reports + s * pool->runs, pool->runs, false);
        r->test[s] = mean_and_std(pool->reports + s * pool->runs, pool->runs, true);
    }
    for (size_t s = 1; s < r->settings; s++) { /* better than the best so far? */
        const pare_spread *const x = &r->val[s], *const y = &r->val[r->setting];
        const bool stable = none_diverged(r, s), more = pool->reports[scored].more_is_better;
        bool better = more ? x->mean > y->mean : x->mean < y->mean;
        if (stable != none_diverged(r, r->setting)) better = stable;
        if (x->n == 0 || y->n == 0) better = x->n > 0;
        if (better) r->setting = s;
    }
    const size_t first = r->setting * pool->runs;
    size_t best = first;
    for (size_t j = first; j < first + pool->runs; j++)
        if (!pool->reports[j].err.code &&
            (pool->reports[best].err.code || better_job(pool, j, best)))
            best = j;
    r->best = best - first;
    return PARE_OK;
}

/* The model of the best run, on every rank. */
static pare_status broadcast_best(pare_model **out, job_pool *pool, const pare_runs_result *r,
                                  pare_err *err)
{
    const size_t job = r->setting * pool->runs + r->best, size = pare_ranks_size(pool->ranks);
    const size_t owner = job % size;
    const bool here = owner == pare_ranks_rank(pool->ranks);
    if (size == 1) {
        *out = pool->best[r->setting];
        pool->best[r->setting] = NULL;
        return PARE_OK;
    }
    /* Parameters of the best model's shape: its own on the rank of its run, elsewhere those it
     * started from. */
    pare_params *p = NULL;
    pare_run_parts parts = {0};
    pare_status st =
        here ? PARE_OK : pool->source->open(pool->source->self, &parts, r->best, r->setting, err);
    if (!st) {
        st = pare_params_new(&p, here ? pool->best[r->setting] : parts.start, PARE_F32, err);
        if (!here && pool->source->close) pool->source->close(pool->source->self, &parts);
    }
    st = pare_ranks_agree(pool->ranks, st, err);
    if (!st) st = pare_ranks_bcast(pool->ranks, p->values, p->count * sizeof(float), owner, err);
    if (!st) st = pare_ranks_bcast(pool->ranks, p->stats, p->nstats * sizeof(float), owner, err);
    if (!st) st = model_deep_copy(out, p->model, err);
    pare_params_free(p);
    return st;
}

/* ---- the whole -------------------------------------------------------------------------------- */

pare_status pare_runs(pare_model **out, pare_runs_result **result, const pare_run_source *source,
                      const pare_exec *exec, const pare_ranks *ranks, pare_err *err)
{
    const size_t runs = source->runs, settings = source->settings;
    PARE_ASSERT(runs >= 1 && settings >= 1);
    job_pool pool = {.source = source,
                     .exec = exec,
                     .ranks = ranks,
                     .runs = runs,
                     .settings = settings,
                     .want_model = out};
    if (out) *out = NULL;
    *result = NULL;
    if (!pare_mul(&pool.jobs, runs, settings)) return pare_no_memory(err);
    pare_work w = {.arena = pare_arena_new(), .err = err};
    pare_work results = {.arena = pare_arena_new(), .err = err};
    if (!w.arena || !results.arena) w.st = results.st = pare_no_memory(err);
    /* All memory that a rank could fail to get between two exchanges is taken before any work:
     * otherwise the others would wait for it. */
    pare_runs_result *const r = pare_work_alloc(&results, 1, sizeof *r);
    if (r) {
        *r = (pare_runs_result){.runs = runs, .settings = settings, .arena = results.arena};
        r->each = pare_work_alloc(&results, pool.jobs, sizeof *r->each);
        r->val = pare_work_alloc(&results, settings, sizeof *r->val);
        r->test = pare_work_alloc(&results, settings, sizeof *r->test);
    }
    pool.reports = pare_work_alloc(&w, pool.jobs, sizeof *pool.reports);
    pool.gathered = pare_work_alloc(&w, pool.jobs, pare_ranks_size(ranks) * sizeof *pool.gathered);
    pool.best = pare_work_alloc(&w, settings, sizeof *pool.best);
    pool.best_job = pare_work_alloc(&w, settings, sizeof *pool.best_job);
    pool.done = pare_work_alloc(&w, pool.jobs, sizeof *pool.done);
    pare_work_keep(&w, results.st);
    pthread_mutex_init(&pool.lock, NULL);
    pare_status st = pare_ranks_agree(ranks, w.st, err);
    if (!st) {
        st = run_all(&pool, err);
        if (!st) st = summarize(r, &pool, err);
        if (!st && out) st = broadcast_best(out, &pool, r, err);
        for (size_t s = 0; s < settings; s++) pare_model_free(pool.best[s]);
    }
    pthread_mutex_destroy(&pool.lock);
    pare_arena_free(w.arena);
    if (st)
        pare_arena_free(results.arena); /* r lives there */
    else
        *result = r;
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
