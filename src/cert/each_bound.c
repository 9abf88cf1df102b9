/* each_bound.c - what is proven of each input and each output row by itself, in the user's terms: how
 * far the output of an embedding turns (cosine_bound.c), which nearest neighbors stay
 * (neighbor_bound.c), how far the distribution over tokens or classes moves (kl_bound.c). It comes from
 * the enclosures of output_difference.c; no input is enclosed again for it. */
#include "base/support.h"
#include "conformal.h"
#include "enclose.h"
#include "linalg/bounds.h"
#include "model/model_facts.h"
#include <string.h>

const size_t pare_neighbor_counts[PARE_NEIGHBORS] = {1, 10};

#define NEIGHBOR_WORK 2e9 /* multiplications of all pairs of rows, about two seconds */

static bool ends_mapped(const pare_model *m)
{
    return pare_has(pare_head_weight(m)) && !m->head.normalize;
}

/* What makes the radius of a row euclidean: behind the last map it is that of an entry (enclose.c). */
static double euclidean_factor(const pare_model *m)
{
    return ends_mapped(m) ? up_sqrt((double)pare_model_outputs(m)) : 1;
}

static bool gives_logits(const pare_model *m)
{
    return m->embedding.ids && ends_mapped(m) && pare_model_outputs(m) >= 2;
}

static double *filled(pare_work *w, size_t n, double value)
{
    double *const v = pare_work_alloc(w, n, sizeof *v);
    for (size_t i = 0; v && i < n; i++) v[i] = value;
    return v;
}

/* Counts the rows of every input and says where they begin. */
static size_t find_rows(size_t *first, const pare_model *m, const pare_inputs *set)
{
    size_t rows = 0, input = 0;
    for (size_t i = 0; i < set->n; i++)
        for (size_t b = 0; b < set->in[i].batch; b++) {
            first[input++] = rows;
            rows += pare_output_rows(m, &set->in[i]) / set->in[i].batch;
        }
    first[input] = rows;
    return rows;
}

pare_status pare_each_bound_new(pare_each_bound **out, pare_arena *a, const pare_model *f,
                                const pare_model *g, const pare_inputs *set, pare_err *err)
{
    pare_work w = {a, NULL, err, PARE_OK};
    pare_each_bound *const e = pare_work_alloc(&w, 1, sizeof *e);
    size_t *const first = pare_work_alloc(&w, pare_draw_count(set) + 1, sizeof *first);
    *out = e;
    if (w.st) return w.st;
    *e = (pare_each_bound){.inputs = pare_draw_count(set), .first = first};
    e->rows = find_rows(first, f, set);
    e->euclidean[0] = euclidean_factor(f);
    e->euclidean[1] = euclidean_factor(g);
    e->apart = filled(&w, e->inputs, 0);
    if (pare_model_embeds(f) && g->head.pool != PARE_POOL_NONE)
        e->distance = filled(&w, e->rows, 2);
    if (gives_logits(f) && gives_logits(g)) e->kl = filled(&w, e->rows, INFINITY);
    const double n = (double)e->rows, pairs = n * n * (double)pare_model_outputs(f);
    for (size_t k = 0; k < PARE_NEIGHBORS; k++) {
        if (!e->distance || e->rows <= 2 * pare_neighbor_counts[k] || pairs > NEIGHBOR_WORK)
            continue;
        e->stay[k] = pare_work_alloc(&w, e->rows, sizeof **e->stay);
        if (e->stay[k]) memset(e->stay[k], 0, e->rows * sizeof **e->stay);
    }
    return w.st;
}

pare_status pare_unit_rows_new(pare_unit_rows *out, pare_arena *a, const pare_each_bound *each,
                               size_t cols, pare_err *err)
{
    pare_work w = {a, NULL, err, PARE_OK};
    *out = (pare_unit_rows){.cols = cols};
    if (!each->distance) return PARE_OK;
    out->rows = each->rows;
    out->unit = pare_mat_new(a, each->rows, cols).v;
    if (!out->unit) return pare_no_memory(err);
    out->error = filled(&w, each->rows, INFINITY);
    return w.st;
}

/* ---- one group of rows ------------------------------------------------------------------------- */

typedef struct row_job {
    pare_each_bound *each;
    pare_unit_rows *units;
    size_t first;
    pare_enclosure f, g;
} row_job;

static void one_row(void *ctx, size_t i)
{
    const row_job *const j = ctx;
    const size_t n = j->f.cols, at = j->first + i;
    const double *const f = j->f.mid + i * n, *const g = j->g.mid + i * n;
    pare_each_bound *const e = j->each;
    if (e->distance) {
        pare_unit_rows *const u = &j->units[0], *const v = &j->units[1];
        u->error[at] = pare_unit_row(u->unit + at * n, f, n, up_mul(e->euclidean[0], j->f.rad[i]));
        v->error[at] = pare_unit_row(v->unit + at * n, g, n, up_mul(e->euclidean[1], j->g.rad[i]));
        e->distance[at] =
            pare_cosine_distance(u->unit + at * n, u->error[at], v->unit + at * n, v->error[at], n)
                .v;
    }
    if (e->kl) e->kl[at] = pare_kl_bound(f, j->f.rad[i], g, j->g.rad[i], n).v;
}

/* Low parts count as radius: entry by entry, and the length of them all where that is asked for. */
static pare_status flatten(pare_enclosure *out, pare_arena *a, const pare_enclosure *e,
                           bool euclidean, pare_err *err)
{
    const pare_status st = pare_enclosure_flatten(out, a, e, err);
    for (size_t i = 0; st == PARE_OK && e->lo && euclidean && i < e->rows; i++)
        out->rad[i] = up_add(e->rad[i], enclose_norm_up(e->lo + i * e->cols, e->cols));
    return st;
}

pare_status pare_each_bound_rows(pare_each_bound *each, pare_unit_rows units[2], size_t first,
                                 const pare_enclosure *f, const pare_enclosure *g,
                                 const pare_exec *exec, pare_err *err)
{
    row_job j = {.each = each, .units = units, .first = first};
    if (!each->distance && !each->kl) return PARE_OK;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = flatten(&j.f, a, f, each->distance, err);
    if (st == PARE_OK) st = flatten(&j.g, a, g, each->distance, err);
    if (st == PARE_OK) enclose_rows(exec, f->rows, one_row, &j);
    pare_arena_free(a);
    return st;
}

pare_status pare_each_bound_finish(pare_each_bound *each, const pare_unit_rows units[2],
                                   pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t k = 0; st == PARE_OK && k < PARE_NEIGHBORS; k++)
        if (each->stay[k])
            st = pare_neighbors_stay(each->stay[k], &units[0], &units[1], pare_neighbor_counts[k],
                                     err);
    return st;
}

static void take_smaller(double *a, const double *b, size_t n)
{
    for (size_t i = 0; a && i < n; i++) a[i] = up_min(a[i], b[i]);
}

void pare_each_bound_merge(pare_each_bound *each, const pare_each_bound *other)
{
    take_smaller(each->apart, other->apart, each->inputs);
    take_smaller(each->distance, other->distance, each->rows);
    take_smaller(each->kl, other->kl, each->rows);
    for (size_t k = 0; k < PARE_NEIGHBORS; k++)
        for (size_t i = 0; each->stay[k] && i < each->rows; i++)
            each->stay[k][i] = each->stay[k][i] || other->stay[k][i];
}

/* ---- claims ------------------------------------------------------------------------------------ */

/* The largest of n figures, then the largest but for a twentieth and but for half of them. */
static void add_cosines(cert_builder *b, const double *distance, size_t n)
{
    double *const sorted = pare_work_alloc(&b->work, n, sizeof *sorted);
    if (!sorted) return;
    memcpy(sorted, distance, n * sizeof *sorted);
    pare_sort_doubles(sorted, n);
    const size_t left_out[] = {0, n / 20, n / 2};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (i == 0 || left_out[i] > left_out[i - 1])
            add_statement(b, (pare_claim){.kind = PARE_COSINE_DISTANCE,
                                          .p = {(double)n, (double)left_out[i]},
                                          .value = sorted[n - 1 - left_out[i]]});
}

static void add_neighbors(cert_builder *b, const bool *stay, size_t n, size_t nearest)
{
    size_t open = 0;
    for (size_t i = 0; i < n; i++) open += !stay[i];
    add_statement(b, (pare_claim){.kind = PARE_NEIGHBORS_CHANGED,
                                  .p = {(double)nearest},
                                  .value = open ? fmin(1, up((double)open / (double)n)) : 0});
}

static void add_kl(cert_builder *b, const double *kl, size_t n)
{
    double most = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        most = up_max(most, kl[i]);
        sum = up_add(sum, kl[i]);
    }
    add_statement(b, (pare_claim){.kind = PARE_KL_MOST, .value = most});
    add_statement(b, (pare_claim){.kind = PARE_KL_MEAN, .value = up_div(sum, (double)n)});
}

pare_status pare_cert_take_each(pare_cert *c, pare_arena *a, const pare_each_bound *each,
                                pare_err *err)
{
    cert_builder b = {.work = {.arena = a, .err = err}, .cert = c};
    if (!each || each->rows == 0) return PARE_OK;
    if (each->distance) add_cosines(&b, each->distance, each->rows);
    for (size_t k = 0; k < PARE_NEIGHBORS; k++)
        if (each->stay[k]) add_neighbors(&b, each->stay[k], each->rows, pare_neighbor_counts[k]);
    if (each->kl) add_kl(&b, each->kl, each->rows);
    return b.work.st;
}
