/* enclose.c - the proof kernel: the model run once by a code path of its own, with radii.
 *
 * Claim. For every row i of the output and every entry o,
 *     |exact_io - mid_io| <= rad_i      and      |f32 engine_io - exact_io| <= rad32_i,
 * exact being the real-number function of the stored weights. Midpoints are in f64 (rad_i then
 * also covers the f64 reference pass: it assumes no order of operations), or wide: mid + lo in
 * double-double, for deep models whose layers stretch a distance of 2^-53 beyond all use.
 *
 * This is the file an auditor begins with. It reads straight down: stem, blocks, top; each piece
 * (dense, norm, attention, ffn) carries its own inequality at the head of its own file, and
 * enclose.h says what a radius means and what is assumed of the engines. Nothing here calls the
 * forward pass, whose results these radii judge. */
#include "model/model_facts.h"
#include "model/shared_rows.h"
#include "linalg/bounds.h"
#include "enclose.h"
#include <string.h>

/* ---- stem ----------------------------------------------------------------------------------- */

/* Embedding rows and given vectors are exact in f64; a narrower engine rounds them once. */
void enclose_input(flow *x, const pare_embedding *s, const pare_input *in)
{
    const size_t d = s->width;
    const bool f64 = !s->ids || s->table.dtype == PARE_F64;
    for (size_t i = 0; i < x->x.rows; i++) {
        double *const to = pare_row_mut(&x->x, i);
        if (s->ids)
            for (size_t k = 0; k < d; k++)
                to[k] = pare_weight_at(&s->table, pare_token_row(s, in->ids[i]) * d + k);
        else
            memcpy(to, in->x + i * d, d * sizeof *to);
        const double norm = enclose_norm_up(to, d);
        for (size_t e = 0; e < ENGINES; e++) {
            const engine *const g = enclose_engine(x->wide, e);
            const double under = up_mul(g->tiny, up_sqrt((double)d));
            x->r[e][i] = in_range(g, norm, g->narrows && f64 ? up_fma(g->u, norm, under) : 0);
        }
    }
}

/* sin and cos of pos base^(-j'/d), j' = j without its last bit, base > 1. The exponent is rounded
 * (which counts ln(base) times in the power), the power is within 8 u, the quotient within u: the
 * angle is off by (ln(base) + 10) u pos, its sine by that and 8 u, with the u of angles; then u of
 * the engine. In double-double ln(base) counts four times (wide_wave). */
static double wave_radius(const engine *g, double base, size_t pos, size_t d)
{
    const double ln = up_mul(g->wide ? 4 : 1, pare_log_up(base));
    const double turns = up_mul((double)pos, up_add(ln, 10));
    const double each = up_fma(g->angle, up_add(turns, 9), g->u);
    return up_mul(up_sqrt((double)d), up_add(each, g->tiny));
}

/* Row i of the positions; those of a later sequence are those of the first. */
static void position_row(flow *t, const pare_positions *p, size_t tokens, size_t i)
{
    const size_t d = t->x.cols, pos = i % tokens;
    double *const to = pare_row_mut(&t->x, i);
    if (i >= tokens) {
        enclose_copy_row(t, i, t, pos);
        return;
    }
    for (size_t k = 0; k < d; k++) {
        if (p->kind == PARE_POS_LEARNED)
            to[k] = pare_weight_at(&p->table, pos * d + k);
        else if (t->wide)
            flow_put(t, i, k, wide_wave(p->base, pos, k, d));
        else
            to[k] = wide_wave(p->base, pos, k, d).hi;
    }
}

pare_status enclose_positions(flow *x, const enclose_ctx *c, pare_err *err)
{
    const pare_positions *const p = &c->m->embedding.pos;
    const size_t d = x->x.cols;
    const bool table = p->kind == PARE_POS_LEARNED;
    flow t;
    if (!table && p->kind != PARE_POS_SINUSOIDAL) return PARE_OK;
    const pare_status st = enclose_flow_new(&t, c, x->x.rows, d, err);
    if (st != PARE_OK) return st;
    for (size_t i = 0; i < x->x.rows; i++) {
        const size_t pos = i % c->tokens;
        position_row(&t, p, c->tokens, i);
        const double norm = flow_norm(&t, i);
        for (size_t e = 0; e < ENGINES; e++) {
            const engine *const g = enclose_engine(c->wide, e);
            const bool rounds = g->narrows && p->table.dtype == PARE_F64;
            const double under = up_mul(g->tiny, up_sqrt((double)d));
            const double own = rounds ? up_fma(g->u, norm, under) : 0;
            t.r[e][i] = in_range(g, norm, table ? own : wave_radius(g, p->base, pos, d));
        }
    }
    enclose_sum(x, &t);
    return PARE_OK;
}

static pare_status stem_rows(flow *y, const enclose_ctx *c, const pare_input *in, pare_err *err)
{
    const pare_embedding *const s = &c->m->embedding;
    flow x;
    pare_status st = enclose_flow_new(&x, c, in->batch * in->tokens, s->width, err);
    if (st != PARE_OK) return st;
    enclose_input(&x, s, in);
    if (!s->pos.after_map) st = enclose_positions(&x, c, err);
    *y = x;
    if (st == PARE_OK && pare_has(&s->map.w))
        st = enclose_dense(y, c, &x, &s->map.w, &s->map.b, &c->norms->map, err);
    if (st == PARE_OK && s->pos.after_map) st = enclose_positions(y, c, err);
    return st == PARE_OK ? enclose_norm(y, c, &s->norm, err) : st;
}

/* ---- blocks --------------------------------------------------------------------------------- */

void enclose_copy_row(flow *y, size_t i, const flow *x, size_t j)
{
    const size_t bytes = x->x.cols * sizeof *x->x.v;
    memcpy(pare_row_mut(&y->x, i), pare_row(&x->x, j), bytes);
    if (x->wide) memcpy(pare_row_mut(&y->lo, i), pare_row(&x->lo, j), bytes);
}

/* x over y, which has room for it. */
static void put(flow *y, const flow *x)
{
    const size_t rows = x->x.rows, cols = x->x.cols;
    y->x = pare_mat_of(y->x.v, rows, cols);
    memcpy(y->x.v, x->x.v, rows * cols * sizeof *y->x.v);
    if (x->wide) {
        y->lo = pare_mat_of(y->lo.v, rows, cols);
        memcpy(y->lo.v, x->lo.v, rows * cols * sizeof *y->lo.v);
    }
    for (size_t e = 0; e < ENGINES; e++) memcpy(y->r[e], x->r[e], rows * sizeof *y->r[e]);
}

static pare_status copy(flow *y, const enclose_ctx *c, const flow *x, pare_err *err)
{
    const pare_status st = enclose_flow_new(y, c, x->x.rows, x->x.cols, err);
    if (st == PARE_OK) put(y, x);
    return st;
}

/* x' = out_norm( skip(x) + branch( in_norm(x) ) ) */
static pare_status attention_sublayer(flow *y, const enclose_ctx *c, const flow *x, size_t b,
                                      pare_err *err)
{
    const pare_attn *const at = &c->m->blocks[b].attn;
    const attn_norms *const n = &c->norms->attn[b];
    flow z;
    pare_status st = copy(&z, c, x, err);
    if (st == PARE_OK) st = enclose_norm(&z, c, &at->in_norm, err);
    if (st == PARE_OK) st = enclose_attn(y, c, &z, at, n, err);
    if (st == PARE_OK) st = enclose_skip(y, c, x, &at->skip, &n->skip, err);
    return st == PARE_OK ? enclose_norm(y, c, &at->out_norm, err) : st;
}

static pare_status ffn_sublayer(flow *y, const enclose_ctx *c, const flow *x, size_t b,
                                pare_err *err)
{
    const pare_ffn *const f = &c->m->blocks[b].ffn;
    const ffn_norms *const n = &c->norms->ffn[b];
    flow z;
    pare_status st = copy(&z, c, x, err);
    if (st == PARE_OK) st = enclose_norm(&z, c, &f->in_norm, err);
    if (st == PARE_OK) st = enclose_ffn(y, c, &z, f, n, err);
    if (st == PARE_OK) st = enclose_skip(y, c, x, &f->skip, &n->skip, err);
    return st == PARE_OK ? enclose_norm(y, c, &f->out_norm, err) : st;
}

/* Runs a sublayer in scratch and copies what is left of it over x, which has room for it. */
typedef pare_status sublayer(flow *y, const enclose_ctx *c, const flow *x, size_t b, pare_err *err);

static pare_status step(flow *x, const enclose_ctx *c, sublayer *run, size_t b, pare_err *err)
{
    const pare_mark mark = pare_arena_mark(c->a);
    flow y;
    pare_status st = pare_stopped(c->exec, err);
    if (st == PARE_OK) st = run(&y, c, x, b, err);
    if (st == PARE_OK) put(x, &y);
    pare_arena_reset(c->a, mark);
    return st;
}

static pare_status blocks(flow *x, const enclose_ctx *c, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t b = 0; st == PARE_OK && b < c->m->nblocks; b++) {
        if (c->m->blocks[b].attn.kind != PARE_ATTN_NONE)
            st = step(x, c, attention_sublayer, b, err);
        if (st == PARE_OK && c->m->blocks[b].ffn.kind != PARE_FFN_NONE)
            st = step(x, c, ffn_sublayer, b, err);
        if (st == PARE_OK) st = pare_progress(c->exec, "prove", b + 1, c->m->nblocks, err);
    }
    return st;
}

static size_t widest_stream(const pare_model *m)
{
    size_t w = 0;
    for (size_t b = 0; b <= m->nblocks; b++) {
        if (pare_model_width(m, b) > w) w = pare_model_width(m, b);
        if (b < m->nblocks && m->blocks[b].attn.kind != PARE_ATTN_NONE &&
            m->blocks[b].attn.dout > w)
            w = m->blocks[b].attn.dout;
    }
    return w;
}

/* ---- top ------------------------------------------------------------------------------------ */

/* Entry by entry the largest over the tokens of sequence s: nothing is rounded. A maximum moves by
 * no more than what it is taken of: for each entry k,
 *     |max_i X_ik - max_i M_ik| <= max_i |X_ik - M_ik|,
 * so the row moves by at most the root of the sum of the r_i^2, and by sqrt(d) max_i r_i. */
static void max_pooled(flow *y, size_t s, const flow *x, size_t tokens)
{
    const size_t d = x->x.cols, first = s * tokens;
    enclose_copy_row(y, s, x, first);
    for (size_t i = first + 1; i < first + tokens; i++) {
        for (size_t k = 0; k < d; k++) {
            const double hi = pare_row(&x->x, i)[k], most = pare_row(&y->x, s)[k];
            if (!x->wide) {
                if (!(hi <= most)) pare_row_mut(&y->x, s)[k] = hi;
                continue;
            }
            const dd at = flow_at(x, i, k);
            if (hi > most || (hi == most && at.lo > flow_at(y, s, k).lo)) flow_put(y, s, k, at);
        }
    }
    for (size_t e = 0; e < ENGINES; e++) {
        double squares = 0, most = 0;
        for (size_t i = first; i < first + tokens; i++) {
            squares = up_fma(x->r[e][i], x->r[e][i], squares);
            most = up_max(most, x->r[e][i]);
        }
        /* One token: its own radius, without a root. */
        const double all = tokens == 1 ? most : up_sqrt(squares);
        y->r[e][s] = up_min(all, up_mul(up_sqrt((double)d), most));
    }
}

/* One row per sequence: its first, its last, the largest, or the mean of all (a convex
 * combination). */
pare_status enclose_pooled(flow *y, const enclose_ctx *c, const flow *x, pare_err *err)
{
    const size_t t = c->tokens, rows = x->x.rows / t, d = x->x.cols;
    const pare_status st = enclose_flow_new(y, c, rows, d, err);
    if (st != PARE_OK) return st;
    const pare_pool kind = c->m->head.pool;
    const bool mean = kind == PARE_POOL_MEAN;
    const size_t n = mean ? t : 1, skipped = kind == PARE_POOL_LAST ? t - 1 : 0;
    for (size_t s = 0; s < rows; s++) {
        double *const to = pare_row_mut(&y->x, s), r[ENGINES] = {0}, size[ENGINES] = {0};
        const size_t first = s * t + skipped;
        if (kind == PARE_POOL_MAX) {
            max_pooled(y, s, x, t);
            continue;
        }
        for (size_t i = first; i < first + n; i++) {
            const double *const from = pare_row(&x->x, i);
            const double norm = flow_norm(x, i);
            if (c->wide)
                wide_sum_row(to, pare_row_mut(&y->lo, s), from, pare_row(&x->lo, i), d);
            else
                for (size_t k = 0; k < d; k++) to[k] += from[k];
            for (size_t e = 0; e < ENGINES; e++) {
                r[e] = up_add(r[e], x->r[e][i]);
                size[e] = up_add(size[e], reach(norm, flow_radii(x, i), e));
            }
        }
        if (mean && c->wide)
            wide_div_row(to, pare_row_mut(&y->lo, s), (double)n, d);
        else
            for (size_t k = 0; mean && k < d; k++) to[k] /= (double)n;
        for (size_t e = 0; e < ENGINES; e++) {
            const engine *const g = enclose_engine(c->wide, e);
            const double local = up_mul(roundings(g, n, 2, 1 + n / 4), up_div(size[e], (double)n));
            const double under = up_mul(g->tiny, up_mul((double)n + 2, up_sqrt((double)d)));
            const double all = up_add(up_div(r[e], (double)n), up_add(local, under));
            y->r[e][s] = mean ? in_range(g, size[e], all) : r[e];
        }
    }
    return PARE_OK;
}

/* The last map of y = x W^T + b. Where tokens share a row of a tied head, each row is multiplied once
 * and b is added afterwards: the terms of a sum in another order. */
static pare_status output_map(flow *y, const enclose_ctx *c, const flow *x, pare_err *err)
{
    const pare_weight *const w = pare_head_weight(c->m), *const b = &c->m->head.out.b, none = {0};
    const uint32_t *const map = pare_output_map(c->m);
    flow stored;
    if (!map) return enclose_product(&y->x, &y->lo, x, w, b, c->exec, err);
    pare_status st = enclose_flow_new(&stored, c, x->x.rows, w->rows, err);
    if (!st) st = enclose_product(&stored.x, &stored.lo, x, w, &none, c->exec, err);
    for (size_t i = 0; !st && i < x->x.rows; i++)
        for (size_t o = 0; o < y->x.cols; o++) {
            const double bias = pare_has(b) ? pare_weight_at(b, o) : 0;
            if (c->wide)
                flow_put(y, i, o, dd_add_d(flow_at(&stored, i, map[o]), bias));
            else
                pare_row_mut(&y->x, i)[o] = pare_row(&stored.x, i)[map[o]] + bias;
        }
    return st;
}

/* The last map: entry o moves by |w_o|_2 |x - x'| at most, which is what a row's radius bounds.
 * Where outputs are normalized, the radius of the whole row is needed before that: the map is then
 * one like any other, and y / |y| an rms norm (enclose_norm.c). No entry moves by more than its
 * row. */
static pare_status outputs(pare_enclosure *out, const enclose_ctx *c, const flow *hidden,
                           pare_err *err)
{
    const pare_weight *const w = pare_head_weight(c->m);
    const dense_norms *const n = &c->norms->out;
    const bool mapped = pare_has(w) && !c->m->head.normalize;
    flow last = *hidden;
    const flow *const x = &last;
    if (c->m->head.normalize) {
        const pare_norm unit = pare_head_unit_norm(c->m);
        pare_status st = PARE_OK;
        if (pare_has(w)) st = enclose_dense(&last, c, hidden, w, &c->m->head.out.b, n, err);
        if (st == PARE_OK) st = enclose_norm(&last, c, &unit, err);
        if (st != PARE_OK) return st;
    }
    flow y = {.x = pare_mat_of(out->mid, out->rows, out->cols), .wide = c->wide};
    y.lo = pare_mat_of(out->lo, out->rows, out->cols);
    PARE_ASSERT(x->x.rows == out->rows && (mapped ? pare_model_outputs(c->m) : x->x.cols) == out->cols);
    if (mapped) {
        const pare_status st = output_map(&y, c, x, err);
        if (st != PARE_OK) return st;
    } else {
        for (size_t i = 0; i < out->rows; i++) enclose_copy_row(&y, i, x, i);
    }
    for (size_t i = 0; i < out->rows; i++) {
        const radii r = flow_radii(x, i);
        const double norm = flow_norm(x, i);
        double entry[ENGINES];
        for (size_t e = 0; e < ENGINES; e++) {
            const engine *const g = enclose_engine(c->wide, e);
            entry[e] = mapped ? enclose_entry_radius(g, n, reach(norm, r, e), r.r[e]) : r.r[e];
        }
        out->rad[i] = entry[0];
        out->rad32[i] = entry[1];
    }
    return PARE_OK;
}

static pare_status top(pare_enclosure *out, const enclose_ctx *c, flow *x, pare_err *err)
{
    const pare_output_head *const t = &c->m->head;
    flow h = *x, d;
    pare_status st = enclose_norm(x, c, &t->norm, err);
    if (st == PARE_OK && t->pool != PARE_POOL_NONE) st = enclose_pooled(&h, c, x, err);
    if (st == PARE_OK && pare_has(&t->dense.w)) {
        st = enclose_dense(&d, c, &h, &t->dense.w, &t->dense.b, &c->norms->dense, err);
        if (st == PARE_OK) h = d;
    }
    if (st != PARE_OK) return st;
    enclose_act(&h, t->act, c->exec);
    return outputs(out, c, &h, err);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static pare_status run(pare_enclosure *out, enclose_ctx *c, const pare_input *in, pare_err *err)
{
    flow x, first;
    const size_t rows = in->batch * in->tokens;
    pare_status st = PARE_OK;
    if (c->m->pattern.kind == PARE_GRAPH) {
        pare_graph *const graph = pare_alloc(c->a, 1, sizeof *graph);
        if (!graph) return pare_no_memory(err);
        st = pare_graph_complete(graph, c->a, in->graph, &c->m->pattern, err);
        c->graph = graph;
    }
    if (st == PARE_OK) st = enclose_flow_new(&x, c, rows, widest_stream(c->m), err);
    if (st == PARE_OK) st = stem_rows(&first, c, in, err);
    if (st != PARE_OK) return st;
    put(&x, &first);
    st = blocks(&x, c, err);
    return st == PARE_OK ? top(out, c, &x, err) : st;
}

static pare_status enclose(pare_enclosure *out, pare_arena *a, enclose_ctx c, const pare_input *in,
                           pare_err *err)
{
    *out = (pare_enclosure){0};
    pare_status st = pare_input_check(c.m, in, err);
    if (st != PARE_OK) return st;
    const size_t rows = pare_output_rows(c.m, in), cols = pare_model_outputs(c.m);
    out->mid = pare_mat_new(a, rows, cols).v;
    out->rad = pare_alloc(a, rows, sizeof *out->rad);
    out->rad32 = pare_alloc(a, rows, sizeof *out->rad32);
    out->lo = c.wide ? pare_mat_new(a, rows, cols).v : NULL;
    c.tokens = in->tokens;
    c.a = pare_arena_new();
    if (!out->mid || !out->rad || !out->rad32 || (c.wide && !out->lo) || !c.a) {
        pare_arena_free(c.a);
        return pare_no_memory(err);
    }
    out->rows = rows;
    out->cols = cols;
    st = run(out, &c, in, err);
    pare_arena_free(c.a);
    return st;
}

pare_status pare_enclose(pare_enclosure *out, pare_arena *a, const pare_model *m,
                         const pare_model_norms *norms, const pare_input *in, const pare_exec *exec,
                         pare_err *err)
{
    return enclose(out, a, (enclose_ctx){.m = m, .norms = norms, .exec = exec}, in, err);
}

pare_status pare_enclose_dd(pare_enclosure *out, pare_arena *a, const pare_model *m,
                            const pare_model_norms *norms, const pare_input *in,
                            const pare_exec *exec, pare_err *err)
{
    const enclose_ctx c = {.m = m, .norms = norms, .wide = true, .exec = exec};
    return enclose(out, a, c, in, err);
}
