/* pare_depth_xray: the streams of the f64 reference are kept input by input, never all at once;
 * every head of every sequence is looked at by itself, and what was seen is put together in one
 * order (attn_stats_bounds.c), so that the figures do not depend on the number of threads. */
#include "replace_layers.h"
#include "attn_stats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Comparing all pairs of rows costs n^3: of so many in all for each head, first inputs first. */
#define MOST_PAIRS 2e8

typedef struct stats_job {
    const pare_model *m;
    pare_xray *out;
    layer_stats *layer;
    head_totals *head;
    const pare_exec *exec;
    pare_err *err;
} stats_job;

/* ---- which blocks ---------------------------------------------------------------------------- */

static pare_status list_layers(stats_job *j, pare_arena *a, pare_arena *scratch)
{
    pare_xray *const out = j->out;
    out->nlayers = list_softmax_layers(NULL, j->m);
    layer *const list = pare_alloc(scratch, out->nlayers + 1, sizeof *list);
    if (!list) return pare_no_memory(j->err);
    list_softmax_layers(list, j->m);
    for (size_t l = 0; l < out->nlayers; l++) out->nheads += list[l].a->nheads;
    out->layers = pare_alloc(a, out->nlayers + 1, sizeof *out->layers);
    out->heads = pare_alloc(a, out->nheads + 1, sizeof *out->heads);
    if (!out->layers || !out->heads) return pare_no_memory(j->err);
    for (size_t l = 0, h = 0; l < out->nlayers; l++) {
        const pare_attn *const at = list[l].a;
        out->layers[l] = (pare_xray_layer){.block = list[l].block,
                                           .skip = at->skip.kind != PARE_SKIP_NONE,
                                           .first = h,
                                           .nheads = at->nheads};
        for (size_t i = 0; i < at->nheads; i++)
            out->heads[h++] = (pare_xray_head){.block = list[l].block, .head = i};
    }
    return PARE_OK;
}

static pare_status open_sums(stats_job *j, pare_arena *a)
{
    j->layer = pare_alloc(a, j->out->nlayers + 1, sizeof *j->layer);
    j->head = pare_alloc(a, j->out->nheads + 1, sizeof *j->head);
    if (!j->layer || !j->head) return pare_no_memory(j->err);
    for (size_t l = 0; l < j->out->nlayers; l++) {
        const size_t din = j->m->blocks[j->out->layers[l].block].attn.din;
        j->layer[l].mean = pare_alloc(a, din, sizeof(double));
        if (!j->layer[l].mean) return pare_no_memory(j->err);
    }
    return PARE_OK;
}

/* ---- one input -------------------------------------------------------------------- */

/* One block's part of it. */
typedef struct scene {
    stats_job *j;
    size_t l; /* of the list of layers */
    const pare_attn *attn;
    const pare_graph *graph;
    pare_arena *a;
    pare_input in;
    pare_mat x, z; /* the stream before the attention, and behind its norm */
} scene;

static pare_status enter(scene *s, stats_job *j, const residual_streams *heard, size_t l,
                         const pare_input *from, const pare_graph *graph, pare_arena *a)
{
    const size_t b = j->out->layers[l].block;
    const pare_attn *const attn = &j->m->blocks[b].attn;
    const pare_model norm = submodel_norm(j->m, &attn->in_norm, attn->din);
    *s = (scene){
        .j = j, .l = l, .attn = attn, .graph = graph, .a = a, .in = *from, .x = heard->at[b]};
    return submodel_run(&s->z, a, &norm, from, &s->x, j->exec, j->err);
}

/* fn for every layer on one input. */
static pare_status each_layer(stats_job *j, const pare_input *in, pare_status (*fn)(scene *))
{
    pare_arena *const a = pare_arena_new();
    residual_streams heard;
    pare_graph whole = {0};
    const bool graph = j->m->pattern.kind == PARE_GRAPH;
    pare_status st =
        a ? residual_streams_of(&heard, a, j->m, in, j->exec, j->err) : pare_no_memory(j->err);
    if (!st && graph) st = pare_graph_complete(&whole, a, in->graph, &j->m->pattern, j->err);
    for (size_t l = 0; !st && l < j->out->nlayers; l++) {
        scene s;
        const pare_mark mark = pare_arena_mark(a);
        st = enter(&s, j, &heard, l, in, graph ? &whole : NULL, a);
        if (!st) st = fn(&s);
        pare_arena_reset(a, mark);
    }
    pare_arena_free(a);
    return st;
}

/* ---- fitting --------------------------------------------------------------------------------- */

static pare_status add_mean(scene *s)
{
    layer_stats *const to = &s->j->layer[s->l];
    for (size_t i = 0; i < s->z.rows; i++)
        for (size_t c = 0; c < s->z.cols; c++) to->mean[c] += pare_row(&s->z, i)[c];
    to->fitted += s->z.rows;
    return PARE_OK;
}

/* The direction in which a constq head with the mean query scores: sum of its |entries|. */
static pare_status fit_direction(pare_xray_head *x, const pare_attn *a, const double *mean,
                                 pare_err *err)
{
    const pare_head *const h = &a->heads[x->head];
    double *const v = calloc(a->din, sizeof *v);
    if (!v) return pare_no_memory(err);
    for (size_t e = 0; e < h->dk; e++) {
        double q = pare_has(&a->bq) ? pare_weight_at(&a->bq, h->q + e) : 0;
        for (size_t c = 0; c < a->din; c++)
            q += pare_weight_at(&a->wq, (h->q + e) * a->din + c) * mean[c];
        for (size_t c = 0; c < a->din; c++)
            v[c] += h->scale * q * pare_weight_at(&a->wk, (h->k + e) * a->din + c);
    }
    x->direction = 0;
    for (size_t c = 0; c < a->din; c++) x->direction += fabs(v[c]);
    free(v);
    return PARE_OK;
}

static pare_status fit_all(stats_job *j, const pare_inputs *fit)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < fit->n; i++) {
        st = each_layer(j, &fit->in[i], add_mean);
        if (!st) st = pare_progress(j->exec, "fit constant queries", i + 1, fit->n, j->err);
    }
    for (size_t l = 0; !st && l < j->out->nlayers; l++) {
        const pare_xray_layer *const at = &j->out->layers[l];
        const pare_attn *const attn = &j->m->blocks[at->block].attn;
        for (size_t c = 0; j->layer[l].fitted && c < attn->din; c++)
            j->layer[l].mean[c] /= (double)j->layer[l].fitted;
        for (size_t h = 0; !st && h < at->nheads; h++)
            st = fit_direction(&j->out->heads[at->first + h], attn, j->layer[l].mean, j->err);
    }
    return st;
}

/* ---- one layer, one input -------------------------------------------------------------------- */

static pare_status look_at_stream(scene *s)
{
    pare_xray_layer *const at = &s->j->out->layers[s->l];
    layer_stats *const to = &s->j->layer[s->l];
    pare_block block;
    pare_mat f;
    const pare_model branch = submodel_branch(&block, s->j->m, s->attn);
    pare_status st = submodel_run(&f, s->a, &branch, &s->in, &s->x, s->j->exec, s->j->err);
    if (st) return st;
    at->x = fmax(at->x, largest_abs(&s->x));
    at->z = fmax(at->z, largest_abs(&s->z));
    at->f = fmax(at->f, largest_abs(&f));
    for (size_t k = 0; !st && k < s->in.batch; k++) {
        const size_t n = s->in.tokens;
        const pare_mat xs = pare_mat_part(&s->x, k * n, 0, n, s->x.cols);
        const pare_mat fs = pare_mat_part(&f, k * n, 0, n, f.cols);
        double one_inf;
        st = residual_norm_1inf(&one_inf, &xs, s->j->err);
        const double whole = frobenius_of(&xs);
        to->sequences++;
        to->res_x1 += one_inf;
        to->res_x += widest_column_range(&xs, NULL) / 2;
        to->res_f += widest_column_range(&fs, NULL) / 2;
        to->share += whole > 0 ? frobenius_of(&fs) / whole : 0;
        to->varied += varying_share(&fs);
    }
    return st;
}

/* Queries, keys and values of all heads: of the rows, of the rows' midranges, of the fitted mean,
 * of each sequence's mean. */
typedef struct projected {
    pare_mat q, k, v;
    pare_mat qmid, kmid; /* a row for each sequence */
    pare_mat qfit;       /* one row */
    pare_mat qmean;      /* a row for each sequence */
    head_stats *sums;    /* sequences x heads */
    pare_err *err;
    const scene *s;
} projected;

static pare_status project(pare_mat *y, const scene *s, const pare_mat *x, const pare_weight *w,
                           const pare_weight *b)
{
    *y = pare_mat_new(s->a, x->rows, w->rows);
    if (!y->v) return pare_no_memory(s->j->err);
    return pare_dense_f64(y, x, w, b, s->j->exec, s->j->err);
}

/* Midranges and means of the columns, sequence by sequence. */
static void middles(pare_mat *mid, pare_mat *mean, const scene *s)
{
    const size_t n = s->in.tokens;
    for (size_t k = 0; k < s->in.batch; k++)
        for (size_t c = 0; c < s->z.cols; c++) {
            double low = INFINITY, high = -INFINITY, sum = 0;
            for (size_t i = 0; i < n; i++) {
                const double v = pare_row(&s->z, k * n + i)[c];
                low = fmin(low, v);
                high = fmax(high, v);
                sum += v;
            }
            pare_row_mut(mid, k)[c] = low / 2 + high / 2;
            pare_row_mut(mean, k)[c] = sum / (double)n;
        }
}

static pare_status project_all(projected *p, const scene *s)
{
    const pare_attn *const a = s->attn;
    pare_mat mid = pare_mat_new(s->a, s->in.batch, a->din);
    pare_mat mean = pare_mat_new(s->a, s->in.batch, a->din);
    const pare_mat fit = pare_mat_of(s->j->layer[s->l].mean, 1, a->din);
    p->s = s;
    p->sums = pare_alloc(s->a, s->in.batch * a->nheads + 1, sizeof *p->sums);
    p->err = pare_alloc(s->a, s->in.batch * a->nheads + 1, sizeof *p->err);
    if (!mid.v || !mean.v || !p->sums || !p->err) return pare_no_memory(s->j->err);
    middles(&mid, &mean, s);
    pare_status st = project(&p->q, s, &s->z, &a->wq, &a->bq);
    if (!st) st = project(&p->k, s, &s->z, &a->wk, &a->bk);
    if (!st) st = project(&p->v, s, &s->z, &a->wv, &a->bv);
    if (!st) st = project(&p->qmid, s, &mid, &a->wq, &a->bq);
    if (!st) st = project(&p->kmid, s, &mid, &a->wk, &a->bk);
    if (!st) st = project(&p->qfit, s, &fit, &a->wq, &a->bq);
    return st ? st : project(&p->qmean, s, &mean, &a->wq, &a->bq);
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* The columns of one head, of one sequence; turned where positions are. */
static pare_mat own(pare_arena *a, const pare_mat *m, size_t row, size_t rows, size_t col,
                    size_t cols)
{
    pare_mat out = pare_mat_new(a, rows, cols);
    for (size_t i = 0; out.v && i < rows; i++)
        memcpy(pare_row_mut(&out, i), pare_row(m, row + i) + col, cols * sizeof(double));
    return out;
}

/* Scores of one query for all rows: it stands at no position, and keys are not turned for it. */
static double *same_query(pare_arena *a, const double *query, const pare_mat *keys,
                          const pare_head *h)
{
    double *const out = pare_alloc(a, keys->rows, sizeof *out);
    for (size_t j = 0; out && j < keys->rows; j++)
        for (size_t e = 0; e < h->dk; e++)
            out[j] += h->scale * query[h->q + e] * pare_row(keys, j)[e];
    return out;
}

static pare_status view_of(head_inputs *v, const projected *p, size_t sequence, const pare_head *h,
                           pare_arena *a, pare_err *err)
{
    const scene *const s = p->s;
    const size_t n = s->in.tokens, at = sequence * n;
    const bool turns = h->planes > 0, full = s->j->m->pattern.kind == PARE_FULL;
    *v = (head_inputs){.m = s->j->m, .a = s->attn, .h = h, .graph = s->graph};
    v->q = own(a, &p->q, at, n, h->q, h->dk);
    v->k = own(a, &p->k, at, n, h->k, h->dk);
    v->v = own(a, &p->v, at, n, h->v, h->dv);
    if (!v->q.v || !v->k.v || !v->v.v) return pare_no_memory(err);
    v->constq = same_query(a, pare_row(&p->qfit, 0), &v->k, h);
    if (full) v->meanq = same_query(a, pare_row(&p->qmean, sequence), &v->k, h);
    if (!v->constq || (full && !v->meanq)) return pare_no_memory(err);
    if (turns) {
        const bool interleaved = s->j->m->stem.pos.interleaved;
        rotate_rows(&v->q, s->attn, h, interleaved);
        rotate_rows(&v->k, s->attn, h, interleaved);
    } else if (n <= PARE_XRAY_LONG) {
        v->qmid = pare_row(&p->qmid, sequence) + h->q;
        v->kmid = pare_row(&p->kmid, sequence) + h->k;
    }
    return PARE_OK;
}

static double cube(size_t n)
{
    return (double)n * (double)n * (double)n;
}

static void one_head(void *ctx, size_t unit)
{
    const projected *const p = ctx;
    const scene *const s = p->s;
    const size_t sequence = unit / s->attn->nheads, head = unit % s->attn->nheads;
    const head_totals *const seen = &s->j->head[s->j->out->layers[s->l].first + head];
    pare_arena *const a = pare_arena_new();
    pare_err *const err = &p->err[unit];
    head_inputs v;
    err->code = a ? view_of(&v, p, sequence, &s->attn->heads[head], a, err) : pare_no_memory(err);
    if (!err->code) {
        const double spent = seen->pairs + (double)sequence * cube(s->in.tokens);
        v.pairs = !s->graph && s->in.tokens <= PARE_XRAY_PAIRS && spent < MOST_PAIRS;
        err->code = head_stats_of(&p->sums[unit], &v, err);
    }
    pare_arena_free(a);
}

static pare_status look_at_heads(scene *s)
{
    projected p = {0};
    const size_t units = s->in.batch * s->attn->nheads, n = s->in.tokens;
    pare_status st = project_all(&p, s);
    if (st) return st;
    pare_parallel(s->j->exec, units, one_head, &p);
    for (size_t u = 0; u < units; u++) {
        if (p.err[u].code) return pare_fail(s->j->err, p.err[u].code, "%s", p.err[u].msg);
        const size_t at = s->j->out->layers[s->l].first + u % s->attn->nheads;
        const pare_mat zs = pare_mat_part(&s->z, u / s->attn->nheads * n, 0, n, s->z.cols);
        const double in = widest_column_range(&zs, NULL) / 2;
        head_totals *const to = &s->j->head[at];
        head_totals_add(to, &p.sums[u]);
        to->pairs += cube(n);
        if (in > 0) to->all.res_out = fmax(to->all.res_out, p.sums[u].res_out / in);
    }
    return PARE_OK;
}

static pare_status look_at_layer(scene *s)
{
    const pare_status st = look_at_stream(s);
    return st ? st : look_at_heads(s);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static pare_status look_all(stats_job *j, const pare_inputs *look)
{
    pare_status st = PARE_OK;
    for (size_t h = 0; h < j->out->nheads; h++)
        j->head[h].all = (head_stats){.theta = NAN, .rho = NAN, .tau = NAN};
    for (size_t i = 0; !st && i < look->n; i++) {
        st = each_layer(j, &look->in[i], look_at_layer);
        j->out->tokens += look->in[i].batch * look->in[i].tokens;
        if (look->in[i].tokens > j->out->longest) j->out->longest = look->in[i].tokens;
        if (!st) st = pare_progress(j->exec, "X-ray heads", i + 1, look->n, j->err);
    }
    if (!st) attn_stats_finish(j->out, j->m, j->layer, j->head);
    return st;
}

pare_status pare_depth_xray(pare_xray *out, pare_arena *a, const pare_model *m,
                            const pare_inputs *fit, const pare_inputs *look, const pare_exec *exec,
                            pare_err *err)
{
    stats_job j = {.m = m, .out = out, .exec = exec, .err = err};
    pare_arena *const scratch = pare_arena_new();
    *out = (pare_xray){.fitted = fit->n, .inputs = look->n};
    pare_status st = scratch ? list_layers(&j, a, scratch) : pare_no_memory(err);
    if (!st) st = attn_stats_weights(out, m, exec, err);
    if (!st) st = open_sums(&j, scratch);
    if (!st) st = fit_all(&j, fit);
    if (!st) st = look_all(&j, look);
    pare_arena_free(scratch);
    return st;
}
