/* attn_stats.c - pare_depth_attention_stats: statistics of every attention head on data. The
 * streams of the f64 reference are held input by input, never all at once; every head of every
 * sequence is measured by itself, and the results are added in one order (attn_stats_bounds.c), so
 * that the figures do not depend on the number of threads. */
#include "linalg/matrix.h"
#include "attn_stats.h"
#include "replace_layers.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Comparing all pairs of rows costs n^3: so many in all for each head, first inputs first. */
#define MOST_PAIRS 2e8

typedef struct stats_job {
    pare_work work;
    const pare_model *m;
    pare_attention_stats *out;
    layer_stats *layer;
    head_totals *head;
} stats_job;

/* Lists layers and heads in the caller's arena, and the sums over them in scratch memory. */
static void open_job(stats_job *j, pare_arena *a)
{
    pare_attention_stats *const out = j->out;
    out->nlayers = list_softmax_layers(NULL, j->m);
    softmax_layer *const list = pare_work_alloc(&j->work, out->nlayers, sizeof *list);
    if (j->work.st) return;
    list_softmax_layers(list, j->m);
    for (size_t l = 0; l < out->nlayers; l++) out->nheads += list[l].attn->nheads;
    out->layers = pare_alloc(a, out->nlayers + 1, sizeof *out->layers);
    out->heads = pare_alloc(a, out->nheads + 1, sizeof *out->heads);
    if (!out->layers || !out->heads) j->work.st = pare_no_memory(j->work.err);
    j->layer = pare_work_alloc(&j->work, out->nlayers, sizeof *j->layer);
    j->head = pare_work_alloc(&j->work, out->nheads, sizeof *j->head);
    for (size_t l = 0, h = 0; !j->work.st && l < out->nlayers; l++) {
        const pare_attn *const at = list[l].attn;
        out->layers[l] = (pare_layer_stats){.block = list[l].block,
                                            .skip = at->skip.kind != PARE_SKIP_NONE,
                                            .first = h,
                                            .nheads = at->nheads};
        for (size_t i = 0; i < at->nheads; i++) {
            j->head[h].all = (head_stats){.theta = NAN, .rho = NAN, .tau = NAN};
            out->heads[h++] = (pare_head_stats){.block = list[l].block, .head = i};
        }
        j->layer[l].mean = pare_work_alloc(&j->work, at->din, sizeof(double));
    }
}

/* ---- every layer on one input ---------------------------------------------------------------- */

typedef struct layer_input {
    stats_job *j;
    pare_work *work; /* of this input */
    size_t l;        /* in the list of layers */
    const pare_attn *attn;
    const pare_graph *graph;
    pare_input in;
    pare_mat x, z; /* the stream before the attention, and behind its norm */
} layer_input;

static void each_layer(stats_job *j, const pare_input *in, void (*fn)(layer_input *))
{
    pare_work scratch = scratch_open(&j->work);
    const residual_streams streams = residual_streams_of(&scratch, j->m, in);
    pare_graph whole = {0};
    const bool graph = j->m->pattern.kind == PARE_GRAPH;
    if (!scratch.st && graph)
        scratch.st =
            pare_graph_complete(&whole, scratch.arena, in->graph, &j->m->pattern, scratch.err);
    for (size_t l = 0; !scratch.st && l < j->out->nlayers; l++) {
        const pare_mark mark = pare_arena_mark(scratch.arena);
        const size_t b = j->out->layers[l].block;
        const pare_attn *const attn = &j->m->blocks[b].attn;
        const pare_model norm = submodel_norm(j->m, &attn->in_norm, attn->din);
        layer_input s = {.j = j, .work = &scratch, .l = l, .attn = attn, .in = *in};
        s.graph = graph ? &whole : NULL;
        s.x = streams.at[b];
        s.z = submodel_run(&scratch, &norm, in, &s.x);
        if (!scratch.st) fn(&s);
        pare_arena_reset(scratch.arena, mark);
    }
    scratch_close(&scratch, &j->work);
}

/* ---- constant queries ------------------------------------------------------------------------ */

static void add_mean(layer_input *s)
{
    layer_stats *const to = &s->j->layer[s->l];
    for (size_t i = 0; i < s->z.rows; i++)
        for (size_t c = 0; c < s->z.cols; c++) to->mean[c] += pare_row(&s->z, i)[c];
    to->fitted += s->z.rows;
}

/* The direction in which a constq head with the mean query scores: sum of its |entries|. */
static void fit_direction(pare_work *w, pare_head_stats *x, const pare_attn *a, const double *mean)
{
    const pare_head *const h = &a->heads[x->head];
    double *const v = calloc(a->din, sizeof *v);
    if (!v) pare_work_keep(w, pare_no_memory(w->err));
    for (size_t e = 0; v && e < h->dk; e++) {
        double q = pare_has(&a->bq) ? pare_weight_at(&a->bq, h->q + e) : 0;
        for (size_t c = 0; c < a->din; c++)
            q += pare_weight_at(&a->wq, (h->q + e) * a->din + c) * mean[c];
        for (size_t c = 0; c < a->din; c++)
            v[c] += h->scale * q * pare_weight_at(&a->wk, (h->k + e) * a->din + c);
    }
    x->direction = 0;
    for (size_t c = 0; v && c < a->din; c++) x->direction += fabs(v[c]);
    free(v);
}

static void fit_constant_queries(stats_job *j, const pare_inputs *fit)
{
    pare_work *const w = &j->work;
    for (size_t i = 0; !w->st && i < fit->n; i++) {
        each_layer(j, &fit->in[i], add_mean);
        if (!w->st) w->st = pare_progress(w->exec, "fit constant queries", i + 1, fit->n, w->err);
    }
    for (size_t l = 0; !w->st && l < j->out->nlayers; l++) {
        const pare_layer_stats *const at = &j->out->layers[l];
        const pare_attn *const attn = &j->m->blocks[at->block].attn;
        for (size_t c = 0; j->layer[l].fitted && c < attn->din; c++)
            j->layer[l].mean[c] /= (double)j->layer[l].fitted;
        for (size_t h = 0; !w->st && h < at->nheads; h++)
            fit_direction(w, &j->out->heads[at->first + h], attn, j->layer[l].mean);
    }
}

/* ---- one layer, one input -------------------------------------------------------------------- */

static void measure_stream(layer_input *s)
{
    pare_layer_stats *const at = &s->j->out->layers[s->l];
    layer_stats *const to = &s->j->layer[s->l];
    pare_work *const w = s->work;
    pare_block block;
    const pare_model branch = submodel_branch(&block, s->j->m, s->attn);
    const pare_mat f = submodel_run(w, &branch, &s->in, &s->x);
    if (w->st) return;
    at->x = fmax(at->x, pare_mat_max_abs(&s->x));
    at->z = fmax(at->z, pare_mat_max_abs(&s->z));
    at->f = fmax(at->f, pare_mat_max_abs(&f));
    for (size_t k = 0; !w->st && k < s->in.batch; k++) {
        const size_t n = s->in.tokens;
        const pare_mat xs = pare_mat_part(&s->x, k * n, 0, n, s->x.cols);
        const pare_mat fs = pare_mat_part(&f, k * n, 0, n, f.cols);
        double one_inf;
        w->st = residual_norm_1inf(&one_inf, &xs, w->err);
        const double whole = pare_mat_fro_est(&xs);
        to->sequences++;
        to->res_x1 += one_inf;
        to->res_x += widest_column_range(&xs, NULL) / 2;
        to->res_f += widest_column_range(&fs, NULL) / 2;
        to->share += whole > 0 ? pare_mat_fro_est(&fs) / whole : 0;
        to->varied += varying_share(&fs);
    }
}

/* Queries, keys and values of all heads: of the rows, of the rows' midranges, of the fitted mean,
 * of each sequence's mean. */
typedef struct projections {
    pare_mat q, k, v;
    pare_mat qmid, kmid; /* a row for each sequence */
    pare_mat qfit;       /* one row */
    pare_mat qmean;      /* a row for each sequence */
    head_stats *stats;   /* sequences x heads */
    pare_err *err;
    const layer_input *s;
} projections;

static pare_mat project(pare_work *w, const pare_mat *x, const pare_weight *weight,
                        const pare_weight *bias)
{
    if (w->st) return (pare_mat){0};
    pare_mat y = work_matrix(w, x->rows, weight->rows);
    if (!w->st) w->st = pare_dense_f64(&y, x, weight, bias, w->exec, w->err);
    return y;
}

static projections project_all(const layer_input *s)
{
    const pare_attn *const a = s->attn;
    pare_work *const w = s->work;
    const size_t n = s->in.tokens, units = s->in.batch * a->nheads;
    pare_mat mid = work_matrix(w, s->in.batch, a->din), mean = work_matrix(w, s->in.batch, a->din);
    const pare_mat fit = pare_mat_of(s->j->layer[s->l].mean, 1, a->din);
    projections p = {.s = s,
                     .stats = pare_work_alloc(w, units, sizeof *p.stats),
                     .err = pare_work_alloc(w, units, sizeof *p.err)};
    for (size_t k = 0; !w->st && k < s->in.batch; k++)
        for (size_t c = 0; c < s->z.cols; c++) {
            double low = INFINITY, high = -INFINITY, sum = 0;
            for (size_t i = 0; i < n; i++) {
                const double v = pare_row(&s->z, k * n + i)[c];
                low = fmin(low, v);
                high = fmax(high, v);
                sum += v;
            }
            pare_row_mut(&mid, k)[c] = low / 2 + high / 2;
            pare_row_mut(&mean, k)[c] = sum / (double)n;
        }
    p.q = project(w, &s->z, &a->wq, &a->bq);
    p.k = project(w, &s->z, &a->wk, &a->bk);
    p.v = project(w, &s->z, &a->wv, &a->bv);
    p.qmid = project(w, &mid, &a->wq, &a->bq);
    p.kmid = project(w, &mid, &a->wk, &a->bk);
    p.qfit = project(w, &fit, &a->wq, &a->bq);
    p.qmean = project(w, &mean, &a->wq, &a->bq);
    return p;
}

/* ---- heads ----------------------------------------------------------------------------------- */

static pare_mat copy_part(pare_work *w, const pare_mat *m, size_t row, size_t rows, size_t col,
                          size_t cols)
{
    pare_mat out = work_matrix(w, rows, cols);
    for (size_t i = 0; !w->st && i < rows; i++)
        memcpy(pare_row_mut(&out, i), pare_row(m, row + i) + col, cols * sizeof(double));
    return out;
}

/* Scores of one query for all rows: it has no position, and keys are not rotated for it. */
static double *scores_of_query(pare_work *w, const double *query, const pare_mat *keys,
                               const pare_head *h)
{
    double *const out = pare_work_alloc(w, w->st ? 0 : keys->rows, sizeof *out);
    for (size_t j = 0; out && j < keys->rows; j++)
        for (size_t e = 0; e < h->dk; e++)
            out[j] += h->scale * query[h->q + e] * pare_row(keys, j)[e];
    return out;
}

static double cube(size_t n)
{
    return (double)n * (double)n * (double)n;
}

static void measure_head(void *ctx, size_t unit)
{
    const projections *const p = ctx;
    const layer_input *const s = p->s;
    const size_t sequence = unit / s->attn->nheads, head = unit % s->attn->nheads;
    const size_t n = s->in.tokens, at = sequence * n;
    const pare_head *const h = &s->attn->heads[head];
    const head_totals *const seen = &s->j->head[s->j->out->layers[s->l].first + head];
    const double spent = seen->pairs + (double)sequence * cube(n);
    pare_work w = {.arena = pare_arena_new(), .err = &p->err[unit]};
    if (!w.arena) w.st = pare_no_memory(w.err);
    head_inputs v = {.m = s->j->m,
                     .a = s->attn,
                     .h = h,
                     .graph = s->graph,
                     .q = copy_part(&w, &p->q, at, n, h->q, h->dk),
                     .k = copy_part(&w, &p->k, at, n, h->k, h->dk),
                     .v = copy_part(&w, &p->v, at, n, h->v, h->dv),
                     .pairs = !s->graph && n <= PARE_STATS_PAIRS && spent < MOST_PAIRS};
    v.constq = scores_of_query(&w, pare_row(&p->qfit, 0), &v.k, h);
    if (s->j->m->pattern.kind == PARE_FULL)
        v.meanq = scores_of_query(&w, pare_row(&p->qmean, sequence), &v.k, h);
    if (!w.st && h->planes > 0) {
        rotate_rows(&v.q, s->attn, h, s->j->m->embedding.pos.interleaved);
        rotate_rows(&v.k, s->attn, h, s->j->m->embedding.pos.interleaved);
    } else if (n <= PARE_STATS_LONG) {
        v.qmid = pare_row(&p->qmid, sequence) + h->q;
        v.kmid = pare_row(&p->kmid, sequence) + h->k;
    }
    if (!w.st) w.st = head_stats_of(&p->stats[unit], &v, w.err);
    p->err[unit].code = w.st;
    pare_arena_free(w.arena);
}

static void measure_layer(layer_input *s)
{
    measure_stream(s);
    const size_t units = s->in.batch * s->attn->nheads, n = s->in.tokens;
    projections p = project_all(s);
    if (s->work->st) return;
    pare_parallel(s->work->exec, units, measure_head, &p);
    for (size_t u = 0; u < units; u++) {
        if (p.err[u].code) {
            pare_work_fail(s->work, p.err[u].code, "%s", p.err[u].msg);
            return;
        }
        const size_t at = s->j->out->layers[s->l].first + u % s->attn->nheads;
        const pare_mat zs = pare_mat_part(&s->z, u / s->attn->nheads * n, 0, n, s->z.cols);
        const double in = widest_column_range(&zs, NULL) / 2;
        head_totals *const to = &s->j->head[at];
        head_totals_add(to, &p.stats[u]);
        to->pairs += cube(n);
        if (in > 0) to->all.res_out = fmax(to->all.res_out, p.stats[u].res_out / in);
    }
}

pare_status pare_depth_attention_stats(pare_attention_stats *out, pare_arena *a,
                                       const pare_model *m, const pare_input_split *data,
                                       const pare_exec *exec, pare_err *err)
{
    const pare_inputs *const fit = data->fit, *const heldout = data->heldout;
    stats_job j = {
        .work = {.arena = pare_arena_new(), .exec = exec, .err = err}, .m = m, .out = out};
    pare_work *const w = &j.work;
    *out = (pare_attention_stats){.fitted = fit->n, .inputs = heldout->n};
    if (!w->arena) return pare_no_memory(err);
    open_job(&j, a);
    if (!w->st) w->st = attn_stats_weights(out, m, exec, err);
    fit_constant_queries(&j, fit);
    for (size_t i = 0; !w->st && i < heldout->n; i++) {
        each_layer(&j, &heldout->in[i], measure_layer);
        out->tokens += heldout->in[i].batch * heldout->in[i].tokens;
        if (heldout->in[i].tokens > out->longest) out->longest = heldout->in[i].tokens;
        if (!w->st) w->st = pare_progress(w->exec, "attention statistics", i + 1, heldout->n, err);
    }
    if (!w->st) attn_stats_finish(out, m, j.layer, j.head);
    pare_arena_free(w->arena);
    return w->st;
}
