/* share_rows.c - dead vocabulary: tokens whose embedding rows are nearly one vector get one row.
 *
 * Rows that training never moved are all near one vector. It is found as the mean of the hundredth of
 * all rows that are nearest to the row around which a hundredth of them lies closest; rows at a hundred
 * and more even places are tried. Then the distances of all rows from it, sorted, have a gap: where the
 * next one is GAP times as far, the rows before it are the dead ones. A limit may be given instead. The
 * shared row is the mean of the rows that it replaces. Sums run in index order: the same bits on every
 * machine with any number of threads. */
#include "base/support.h"
#include "base/work.h"
#include "model/shared_rows.h"
#include <pare/fold.h>
#include <math.h>
#include <string.h>

enum {
    TRIED = 256, /* rows that may be the middle of the group */
    ONE_IN = 100 /* rows: the least group that is found */
};
#define GAP 10.0

typedef struct sharer {
    pare_work work;
    const pare_embedding *s;
    size_t n, d; /* rows, their width */
    double *center;
    double *distance, *sorted; /* of each row from the center */
} sharer;

typedef struct distances_job {
    const sharer *k;
    const double *from;
    double *to;
} distances_job;

enum { BLOCK = 256 };

static void block_distances(void *ctx, size_t b)
{
    const distances_job *const j = ctx;
    const size_t d = j->k->d, end = pare_min_size(j->k->n, (b + 1) * BLOCK);
    for (size_t i = b * BLOCK; i < end; i++) {
        double sum = 0;
        for (size_t c = 0; c < d; c++) {
            const double x = pare_weight_at(&j->k->s->table, i * d + c) - j->from[c];
            sum += x * x;
        }
        j->to[i] = sqrt(sum);
    }
}

/* Of every row from `from`, as they are and sorted. */
static void measure(sharer *k, const double *from)
{
    distances_job j = {k, from, k->distance};
    if (k->work.st) return;
    k->work.st = pare_parallel_until(k->work.exec, (k->n + BLOCK - 1) / BLOCK, block_distances, &j,
                                     k->work.err);
    memcpy(k->sorted, k->distance, k->n * sizeof *k->sorted);
    pare_sort_doubles(k->sorted, k->n);
}

/* The center becomes the mean of the rows for which `takes` is set. */
static void take_mean(sharer *k, const bool *takes)
{
    size_t n = 0;
    memset(k->center, 0, k->d * sizeof *k->center);
    for (size_t i = 0; i < k->n; i++) {
        n += takes[i];
        for (size_t c = 0; takes[i] && c < k->d; c++)
            k->center[c] += pare_weight_at(&k->s->table, i * k->d + c);
    }
    for (size_t c = 0; c < k->d; c++) k->center[c] /= (double)n;
}

static void take_within(sharer *k, bool *takes, double limit)
{
    for (size_t i = 0; !k->work.st && i < k->n; i++) takes[i] = k->distance[i] <= limit;
    if (!k->work.st) take_mean(k, takes);
}

/* The row around which `group` rows lie closest. */
static void find_center(sharer *k, bool *takes, size_t group)
{
    const size_t step = (k->n + TRIED - 1) / TRIED;
    size_t best = 0;
    double least = INFINITY;
    for (size_t i = 0; !k->work.st && i < k->n; i += step) {
        for (size_t c = 0; c < k->d; c++)
            k->center[c] = pare_weight_at(&k->s->table, i * k->d + c);
        measure(k, k->center);
        if (!k->work.st && k->sorted[group - 1] < least) least = k->sorted[group - 1], best = i;
        if (!k->work.st)
            k->work.st = pare_progress(k->work.exec, "find the shared row", i + 1, k->n, k->work.err);
    }
    for (size_t c = 0; c < k->d; c++) k->center[c] = pare_weight_at(&k->s->table, best * k->d + c);
    measure(k, k->center);
    take_within(k, takes, least);
    measure(k, k->center);
}

/* Before the widest gap in proportion, behind `group` rows at least; NAN: no gap is wide enough. */
static double before_gap(const sharer *k, size_t group)
{
    double widest = 0, limit = NAN;
    for (size_t i = group; i < k->n; i++) {
        const double a = k->sorted[i - 1], b = k->sorted[i];
        const double ratio = a > 0 ? b / a : b > 0 ? INFINITY : 1;
        if (ratio > widest) widest = ratio, limit = a;
    }
    return widest >= GAP ? limit : NAN;
}

/* Tokens that occur in the data keep their rows, unless these are within `near`. */
static void keep_used(const sharer *k, bool *takes, const pare_inputs *data, double near,
                      pare_share_report *r)
{
    for (size_t i = 0; data && i < data->n; i++) {
        const pare_input *const in = &data->in[i];
        for (size_t t = 0; t < in->batch * in->tokens; t++) {
            const size_t id = (size_t)in->ids[t];
            if (!takes[id] || k->distance[id] <= near) continue; /* nan: no row is */
            takes[id] = false;
            r->kept++;
        }
    }
}

static void store_row(void *to, const sharer *k)
{
    for (size_t c = 0; c < k->d; c++) {
        if (k->s->table.dtype == PARE_F64)
            ((double *)to)[c] = k->center[c];
        else
            ((float *)to)[c] = (float)k->center[c];
    }
}

/* Which tokens share, and their row in `row`. */
static void choose(sharer *k, bool *takes, void *row, const pare_inputs *data, double distance,
                   pare_share_report *r)
{
    const size_t group = k->n / ONE_IN > 2 ? k->n / ONE_IN : 2;
    find_center(k, takes, group);
    double gap = k->work.st ? NAN : before_gap(k, group);
    if (!isnan(gap)) { /* once more, around the mean of all before the gap */
        take_within(k, takes, gap);
        measure(k, k->center);
        gap = k->work.st ? NAN : before_gap(k, group);
    }
    r->found = !(distance >= 0);
    r->limit = r->found ? gap : distance;
    if (k->work.st) return;
    if (isnan(r->limit)) {
        pare_work_fail(&k->work, PARE_ERR_PROMISE,
                       "no rows of the embedding are nearly the same: the distances of its %zu rows "
                       "from the closest group have no gap (a tenth: %.3g, half: %.3g); give a "
                       "distance, up to which rows are shared",
                       k->n, k->sorted[k->n / 10], k->sorted[k->n / 2]);
        return;
    }
    for (size_t i = 0; i < k->n; i++) takes[i] = k->distance[i] <= r->limit;
    keep_used(k, takes, data, gap, r);
    for (size_t i = 0; i < k->n; i++) r->shared += takes[i];
    if (r->shared < 2) {
        pare_work_fail(&k->work, PARE_ERR_PROMISE,
                       "%zu rows of the embedding are within %g of one another: nothing to share",
                       r->shared, r->limit);
        return;
    }
    take_mean(k, takes);
    store_row(row, k);
    measure(k, k->center);
    for (size_t i = 0; !k->work.st && i < k->n; i++)
        if (takes[i]) r->farthest = fmax(r->farthest, k->distance[i]);
}

static const char *obstacle(const pare_model *m)
{
    if (!m->embedding.ids) return "it takes vectors: there is no embedding";
    if (m->embedding.rows) return "tokens of it share a row already";
    if (m->embedding.vocab < 3) return "its vocabulary is too small";
    if (m->head.tied && m->head.normalize)
        return "its head is tied and normalizes, so that every output would change";
    return NULL;
}

pare_status pare_share_rows(pare_model **out, pare_share_report *report, const pare_model *in,
                            const pare_inputs *data, double distance, const pare_exec *exec,
                            pare_err *err)
{
    *out = NULL;
    *report = (pare_share_report){.rows = in->embedding.vocab};
    const char *const why = obstacle(in);
    if (why) return pare_fail(err, PARE_ERR_INPUT, "rows cannot be shared in this model: %s", why);
    const pare_embedding *const s = &in->embedding;
    sharer k = {.work = {pare_arena_new(), exec, err, PARE_OK}, .s = s, .n = s->vocab, .d = s->width};
    pare_model *m = NULL;
    if (!k.work.arena) return pare_no_memory(err);
    k.center = pare_work_alloc(&k.work, k.d, sizeof *k.center);
    k.distance = pare_work_alloc(&k.work, k.n, sizeof *k.distance);
    k.sorted = pare_work_alloc(&k.work, k.n, sizeof *k.sorted);
    bool *const takes = pare_work_alloc(&k.work, k.n, sizeof *takes);
    void *const row = pare_work_alloc(&k.work, k.d, sizeof(double));
    if (!k.work.st) choose(&k, takes, row, data, distance, report);
    if (!k.work.st) k.work.st = pare_model_clone(&m, in, err);
    if (!k.work.st) k.work.st = pare_model_share(m, takes, row, err);
    if (!k.work.st) k.work.st = pare_model_round(m, in, 0, err); /* the new row */
    if (!k.work.st) k.work.st = pare_model_check(m, err);
    if (k.work.st)
        pare_model_free(m);
    else
        *out = m;
    pare_arena_free(k.work.arena);
    return k.work.st;
}
