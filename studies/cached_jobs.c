/* cached_jobs.c - jobs that are done once. Dealt to the ranks by number, within a rank to the
 * threads: one each where there are enough, else all threads for one job after the other. A result
 * is written whole or not at all, so what is there is finished. */
#include "cached_jobs.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct job_cache {
    jobs *b;
    const pare_exec *exec;
    const size_t *todo; /* numbers of the jobs of this rank, dear ones first */
    size_t ntodo;
    pare_err *err; /* of each job */
    double *done;  /* of each job: how much of its cost */
    double total;
    int threads;     /* of one job */
    size_t workers;  /* jobs at a time, over all ranks */
    size_t finished; /* of those to do */
    tally *all;
    size_t left; /* of all ranks, as far as this one knows */
    double cost_left;
    pthread_mutex_t lock;
    atomic_bool stop;
} job_cache;

typedef struct ticket { /* what a job's progress needs */
    job_cache *d;
    size_t at;
} ticket;

/* ---- files ---------------------------------------------------------------------------------- */

pare_status jobs_name(jobs *b, pare_arena *a, pare_err *err)
{
    for (size_t i = 0; i < b->n; i++) {
        char hex[PARE_SHA256_HEX];
        job *const j = &b->job[i];
        const pare_status st = pare_sha256_of(hex, j->what, strlen(j->what), err);
        if (st) return st;
        j->file_prefix = pare_sprintf(a, "%s/%s-%.8s", b->folder, j->name, hex);
        if (!j->file_prefix) return pare_no_memory(err);
    }
    return PARE_OK;
}

static char *file_of(pare_arena *a, const job *j)
{
    return pare_sprintf(a, "%s.json", j->file_prefix);
}

/* A file that is damaged, or of a job that only shares the first digits of the hash, is not there.
 */
static pare_status look_up(job *j, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    const char *const path = a ? file_of(a, j) : NULL;
    const char *what = NULL;
    pare_err why = {0};
    if (!path) {
        pare_arena_free(a);
        return pare_no_memory(err);
    }
    pare_status st = pare_file_exists(path) ? pare_json_read(&j->result, path, &why) : PARE_OK;
    if (!st && j->result) st = pare_json_string(&what, j->result, "what", &why);
    if (st || (j->result && strcmp(what, j->what) != 0)) {
        cJSON_Delete(j->result);
        j->result = NULL;
    }
    pare_arena_free(a);
    return st == PARE_ERR_MEMORY ? pare_no_memory(err) : PARE_OK;
}

static pare_status write_result(const job *j, const cJSON *result, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    char *text = NULL;
    pare_out *out = NULL;
    const char *const path = a ? file_of(a, j) : NULL;
    pare_status st = path ? pare_json_print(&text, NULL, a, result, 2, err) : pare_no_memory(err);
    if (!st) st = pare_out_open(&out, path, true, err);
    if (!st) st = pare_out_printf(out, err, "%s\n", text);
    if (!st)
        st = pare_out_commit(out, err);
    else
        pare_out_abort(out);
    pare_arena_free(a);
    return st;
}

/* ---- one job -------------------------------------------------------------------------------- */

static void count(void *self, const char *what, uint64_t done, uint64_t total)
{
    const ticket *const t = self;
    job_cache *const d = t->d;
    (void)what;
    pthread_mutex_lock(&d->lock);
    const double part = total ? (double)done / (double)total : 1;
    double sum = 0;
    if (part * d->b->job[t->at].cost > d->done[t->at])
        d->done[t->at] = part * d->b->job[t->at].cost;
    for (size_t i = 0; i < d->ntodo; i++) sum += d->done[d->todo[i]];
    const pare_status st =
        pare_progress(d->exec, d->b->title, (uint64_t)(1e6 * sum / d->total), 1000000, NULL);
    (void)st; /* the job looks at the flag itself */
    pthread_mutex_unlock(&d->lock);
}

static char *duration(char buf[40], double seconds)
{
    const unsigned long s = (unsigned long)(seconds < 1e9 ? seconds + .5 : 1e9);
    if (s < 60)
        snprintf(buf, 40, "%lu s", s);
    else if (s < 3600)
        snprintf(buf, 40, "%lu min %lu s", s / 60, s % 60);
    else
        snprintf(buf, 40, "%lu h %lu min", s / 3600, s % 3600 / 60);
    return buf;
}

void tally_line(char *out, size_t capacity, const tally *t, size_t left, double cost_left,
                size_t workers)
{
    char took[40], rest[60] = "", untimed[60] = "";
    const size_t total = t->done + left + t->later;
    const double cost = cost_left + t->later_cost;
    if (t->done < total && t->cost > 0)
        duration(rest, cost * t->seconds / t->cost / (double)(workers ? workers : 1));
    if (t->untimed) snprintf(untimed, sizeof untimed, " without %zu of unknown time", t->untimed);
    snprintf(out, capacity, "%s%s%zu of %zu runs are kept, %s of work%s; the rest: %s%s",
             t->name ? t->name : "", t->name ? ": " : "", t->done, total,
             duration(took, t->seconds), untimed,
             *rest             ? "about "
             : t->done < total ? "not known yet"
                               : "none",
             rest);
}

/* Under the lock. */
static void report(job_cache *d)
{
    char line[200];
    tally_line(line, sizeof line, d->all, d->left, d->cost_left, d->workers);
    if (d->b->state) d->b->state(d->b->note_self, line);
}

static void count_kept(job_cache *d, const job *j, double seconds)
{
    d->all->done++;
    if (j->counted) return;
    if (!(seconds >= 0)) {
        d->all->untimed++;
        return;
    }
    d->all->seconds += seconds;
    d->all->cost += j->cost;
}

static void report_progress(job_cache *d, const job *j, double seconds)
{
    char line[200];
    pthread_mutex_lock(&d->lock);
    d->finished++;
    d->left--;
    d->cost_left -= j->cost;
    count_kept(d, j, seconds);
    report(d);
    snprintf(line, sizeof line, "%s is done (%zu of %zu)", j->name, d->finished, d->ntodo);
    if (d->b->note) d->b->note(d->b->note_self, line);
    pthread_mutex_unlock(&d->lock);
}

static void do_job(void *ctx, size_t i)
{
    job_cache *const d = ctx;
    const size_t at = d->todo[i];
    job *const j = &d->b->job[at];
    ticket t = {d, at};
    const pare_exec exec = {.threads = d->threads,
                            .progress = count,
                            .self = &t,
                            .stop = d->exec ? d->exec->stop : NULL};
    if (atomic_load(&d->stop) || pare_stopped(&exec, NULL)) return;
    const double start = pare_seconds();
    cJSON *const result = cJSON_CreateObject();
    pare_err *const err = &d->err[at];
    err->code =
        result && pare_json_add_string(result, "what", j->what) ? PARE_OK : pare_no_memory(err);
    if (!err->code) err->code = d->b->run(d->b->self, j, result, &exec, err);
    const double seconds = pare_seconds() - start;
    if (!err->code && !pare_json_add_number(result, "seconds", seconds))
        err->code = pare_no_memory(err);
    if (!err->code) err->code = write_result(j, result, err);
    cJSON_Delete(result);
    if (err->code) {
        atomic_store(&d->stop, true);
        return;
    }
    /* Never count() itself: locks are taken in one order. What is kept counts, also when told to
     * stop. */
    const pare_status stopped = pare_progress(&exec, "", 1, 1, NULL);
    (void)stopped;
    report_progress(d, j, seconds);
}

/* ---- all jobs ------------------------------------------------------------------------------- */

/* A list may name a job twice. */
static bool named_before(const jobs *b, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(b->job[k].file_prefix, b->job[i].file_prefix) == 0) return true;
    return false;
}

/* The time of a run that was found; nan: its file has none, or something else in its place. */
static double seconds_of(const job *j)
{
    double v = NAN;
    pare_err why;
    return pare_json_number_opt(&v, j->result, "seconds", &why) ? NAN : v;
}

/* Those of this rank that are not there; a dear one last would leave the other threads idle. */
static pare_status share_jobs(job_cache *d, pare_arena *a, const pare_ranks *ranks, pare_err *err)
{
    const jobs *const b = d->b;
    size_t *const todo = pare_alloc(a, b->n ? b->n : 1, sizeof *todo);
    pare_status st = todo ? PARE_OK : pare_no_memory(err);
    for (size_t i = 0; !st && i < b->n; i++) {
        if (!b->again) st = look_up(&b->job[i], err);
        b->job[i].found = b->job[i].result != NULL;
        if (st) return st;
        if (named_before(b, i)) continue;
        if (b->job[i].found) {
            count_kept(d, &b->job[i], seconds_of(&b->job[i]));
            continue;
        }
        d->left++;
        d->cost_left += b->job[i].cost;
        if (i % pare_ranks_size(ranks) != pare_ranks_rank(ranks)) continue;
        size_t k = d->ntodo++;
        for (; k > 0 && b->job[todo[k - 1]].cost < b->job[i].cost; k--) todo[k] = todo[k - 1];
        todo[k] = i;
        d->total += b->job[i].cost;
    }
    d->todo = todo;
    return st;
}

static pare_status work(job_cache *d, pare_arena *a, const pare_ranks *ranks, pare_err *err)
{
    const jobs *const b = d->b;
    const int threads = d->exec ? d->exec->threads : 1;
    const size_t n = b->n ? b->n : 1;
    pare_status st = share_jobs(d, a, ranks, err);
    d->err = pare_alloc(a, n, sizeof *d->err);
    d->done = pare_alloc(a, n, sizeof *d->done);
    if (!st && (!d->err || !d->done)) st = pare_no_memory(err);
    if (st) return st;
    d->threads = d->ntodo >= (size_t)threads ? 1 : threads;
    d->workers = pare_ranks_size(ranks) * (d->threads == 1 ? (size_t)threads : 1);
    if (d->ntodo > 0) report(d);
    if (d->threads == 1)
        pare_parallel(d->exec, d->ntodo, do_job, d);
    else
        for (size_t i = 0; i < d->ntodo; i++) do_job(d, i);
    for (size_t i = 0; i < b->n; i++)
        if (d->err[i].code)
            return pare_fail(err, d->err[i].code, "%s: %s", b->job[i].name, d->err[i].msg);
    return pare_stopped(d->exec, err);
}

static pare_status read_all(jobs *b, pare_err *err)
{
    for (size_t i = 0; i < b->n; i++) {
        const pare_status st = b->job[i].result ? PARE_OK : look_up(&b->job[i], err);
        if (st) return st;
        if (!b->job[i].result)
            return pare_fail(err, PARE_ERR_IO, "%s.json: it was written, and is not there",
                             b->job[i].file_prefix);
    }
    return PARE_OK;
}

pare_status jobs_run(jobs *b, pare_arena *a, const pare_exec *exec, const pare_ranks *ranks,
                     pare_err *err)
{
    tally own = {0};
    job_cache d = {.b = b, .exec = exec, .all = b->all ? b->all : &own};
    pare_arena *const scratch = pare_arena_new();
    pthread_mutex_init(&d.lock, NULL);
    pare_status st = scratch ? jobs_name(b, a, err) : pare_no_memory(err);
    /* Nobody begins before all have their names: from then on files are what ranks share. */
    st = pare_ranks_agree(ranks, st, err);
    if (!st) st = work(&d, scratch, ranks, err);
    st = pare_ranks_agree(ranks, st, err);
    if (!st) st = read_all(b, err);
    pthread_mutex_destroy(&d.lock);
    pare_arena_free(scratch);
    return st;
}

void jobs_close(jobs *b)
{
    for (size_t i = 0; i < b->n; i++) {
        cJSON_Delete(b->job[i].result);
        b->job[i].result = NULL;
    }
}
