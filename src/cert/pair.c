/* pair.c - two models on every input near the given ones: how far they may be apart there.
 *
 * Claim. For every input whose rows are each within the radius of the given rows, and every output
 * entry, |f - g| <= apart; and so on, as include/pare/cert.h says (docs/ball.md). It is for every
 * kind of attention and norm, with rounding.
 *
 * pair.h says what is known at every place. It begins with r = the radius and v = z = 0, as both
 * models are given the same input, and each step keeps it true. As long as the models do the same
 * (`one`) there is one stream only. At the end, with the outputs F, G at the doubles,
 *     |f - g|_o <= |F - G|_o + |w_o| v     and     <= |w_o| z.
 * Nothing is lost but in the steps' own inequalities, and all of these grow with the distances they
 * are given: so the bound grows with the radius, and at radius 0 only rounding is left of r and v.
 *
 * Cost: a few forward passes of both models; softmax rows on a box (vertex_softmax.c) are that
 * times the number of heads. */
#include "model/model_facts.h"
#include "model/shared_rows.h"
#include "pair.h"
#include <string.h>

/* ---- the streams ---------------------------------------------------------------------------- */

pare_status pair_new(pair *y, const pair_ctx *c, const pair *like, size_t rows, size_t cols,
                     pare_err *err)
{
    *y = (pair){.one = like->one};
    for (size_t p = 0; p < 2; p++) {
        const bool own = p < pair_paths(y);
        y->h[p] = own ? pare_mat_new(c->a, rows, cols) : y->h[0];
        y->r[p] = own ? pare_alloc(c->a, rows, sizeof *y->r[p]) : y->r[0];
        y->off[p] = own ? pare_alloc(c->a, rows, sizeof *y->off[p]) : y->off[0];
        if ((!y->h[p].v && rows > 0) || !y->r[p] || !y->off[p]) return pare_no_memory(err);
    }
    y->v = pare_alloc(c->a, rows, sizeof *y->v);
    y->z = pare_alloc(c->a, rows, sizeof *y->z);
    return y->v && y->z ? PARE_OK : pare_no_memory(err);
}

flow pair_flow(const pair_ctx *c, const pare_mat *h)
{
    /* Only read: enclose.h has one type for what is read and what is written. */
    double *const zeros = (double *)(uintptr_t)c->zeros;
    return (flow){.x = *h, .lo = {.rows = h->rows}, .r = {zeros, zeros}};
}

void pair_take(pair *y, size_t p, const flow *f)
{
    for (size_t i = 0; i < f->x.rows; i++) {
        const dist off = dist_of(f->r[0][i]);
        memcpy(pare_row_mut(&y->h[p], i), pare_row(&f->x, i), f->x.cols * sizeof(double));
        y->r[p][i] = dist_add(y->r[p][i], off);
        y->off[p][i] = up_add(y->off[p][i], f->r[0][i]);
        if (!y->one) y->v[i] = dist_add(y->v[i], off);
    }
}

dist row_apart(const pare_mat *a, const pare_mat *b, size_t i)
{
    const double *const x = pare_row(a, i), *const y = pare_row(b, i);
    double most = 0;
    for (size_t k = 0; k < a->cols; k++)
        if (x[k] != y[k]) most = up_max(most, up(fabs(x[k] - y[k])));
    if (most == 0) return dist_of(0);
    return dist_tidy((dist){enclose_distance_up(x, y, a->cols), most}, a->cols);
}

void pair_settle(pair *x)
{
    const size_t d = x->h[0].cols;
    for (size_t i = 0; i < x->h[0].rows; i++) {
        dist *const f = &x->r[0][i], *const g = &x->r[1][i], *const v = &x->v[i],
                    *const z = &x->z[i];
        *f = dist_tidy(*f, d);
        if (x->one) {
            *v = *z = dist_of(0);
            continue;
        }
        const dist apart = row_apart(&x->h[0], &x->h[1], i);
        *v = dist_min(*v, dist_min(dist_add(*f, *g), dist_add(*z, apart)));
        *v = dist_tidy(*v, d);
        *z = dist_tidy(dist_min(*z, dist_add(apart, *v)), d);
        *g = dist_tidy(dist_min(*g, dist_add(*f, *v)), d);
        *f = dist_min(*f, dist_add(*g, *v));
    }
}

/* ---- sublayers ------------------------------------------------------------------------------ */

pare_status pair_dense(pair *y, const pair_ctx *c, const pair *x, const pare_weight *w,
                       const pare_weight *b, const op *o, const dense_norms *n, pare_err *err)
{
    pare_status st = pair_new(y, c, x, x->h[0].rows, w->rows, err);
    for (size_t p = 0; st == PARE_OK && p < pair_paths(x); p++) {
        const flow from = pair_flow(c, &x->h[p]);
        flow to;
        st = enclose_dense(&to, &c->c[p], &from, w, b, n, err);
        if (st != PARE_OK) return st;
        for (size_t i = 0; i < x->h[0].rows; i++) y->r[p][i] = op_move(o, x->r[p][i]);
        for (size_t i = 0; p == 0 && i < x->h[0].rows; i++) {
            y->v[i] = op_move(o, x->v[i]);
            y->z[i] = op_move(o, x->z[i]);
        }
        pair_take(y, p, &to);
    }
    if (st == PARE_OK) pair_settle(y);
    return st;
}

pare_status pair_skip(pair *y, const pair_ctx *c, const pair *x, const pare_skip *s, const op *o,
                      const dense_norms *n, pare_err *err)
{
    const size_t rows = x->h[0].rows;
    if (s->kind == PARE_SKIP_NONE) return PARE_OK;
    for (size_t i = 0; i < rows; i++) {
        for (size_t p = 0; p < pair_paths(y); p++)
            y->r[p][i] = dist_add(y->r[p][i], op_move(o, x->r[p][i]));
        y->v[i] = dist_add(y->v[i], op_move(o, x->v[i]));
        y->z[i] = dist_add(y->z[i], op_move(o, x->z[i]));
    }
    for (size_t p = 0; p < pair_paths(y); p++) {
        const pare_mat h = x->h[p]; /* where only y has split, x's h[1] is its h[0] */
        const flow from = pair_flow(c, &h);
        flow to;
        pare_status st = enclose_flow_new(&to, &c->c[p], rows, y->h[p].cols, err);
        if (st != PARE_OK) return st;
        memcpy(to.x.v, y->h[p].v, rows * y->h[p].cols * sizeof(double));
        st = enclose_skip(&to, &c->c[p], &from, s, n, err);
        if (st != PARE_OK) return st;
        pair_take(y, p, &to);
    }
    pair_settle(y);
    return PARE_OK;
}

static pare_status attention_sublayer(pair *y, const pair_ctx *c, const pair *x, size_t b,
                                      pare_err *err)
{
    const pare_attn *const at = &c->c[0].m->blocks[b].attn;
    const attn_norms *const n = &c->c[0].norms->attn[b];
    pair z = {0}, sum = {0};
    const pare_attn *const reader = attn_reads(at) ? at : &c->c[1].m->blocks[b].attn;
    pare_status st = pair_norm(&z, c, x, &reader->in_norm, err);
    if (st == PARE_OK) st = pair_attn(&sum, c, &z, b, err);
    if (st == PARE_OK) st = pair_skip(&sum, c, x, &at->skip, &c->ops->attn[b].skip, &n->skip, err);
    return st == PARE_OK ? pair_norm(y, c, &sum, &at->out_norm, err) : st;
}

static pare_status ffn_sublayer(pair *y, const pair_ctx *c, const pair *x, size_t b, pare_err *err)
{
    const pare_ffn *const f = &c->c[0].m->blocks[b].ffn;
    const ffn_norms *const n = &c->c[0].norms->ffn[b];
    pair z = {0}, sum = {0};
    pare_status st = pair_norm(&z, c, x, &f->in_norm, err);
    if (st == PARE_OK) st = pair_ffn(&sum, c, &z, b, err);
    if (st == PARE_OK) st = pair_skip(&sum, c, x, &f->skip, &c->ops->ffn[b].skip, &n->skip, err);
    return st == PARE_OK ? pair_norm(y, c, &sum, &f->out_norm, err) : st;
}

/* ---- stem and top --------------------------------------------------------------------------- */

/* The rows, which may be anywhere in the ball, and the positions. */
static pare_status positions(pair *x, const pair_ctx *c, pare_err *err)
{
    const pare_position_kind kind = c->c[0].m->embedding.pos.kind;
    if (kind != PARE_POS_LEARNED && kind != PARE_POS_SINUSOIDAL) return PARE_OK;
    const size_t rows = x->h[0].rows, cols = x->h[0].cols;
    flow to;
    pare_status st = enclose_flow_new(&to, &c->c[0], rows, cols, err);
    if (st != PARE_OK) return st;
    memcpy(to.x.v, x->h[0].v, rows * cols * sizeof(double));
    st = enclose_positions(&to, &c->c[0], err);
    if (st == PARE_OK) pair_take(x, 0, &to);
    return st;
}

static pare_status stem(pair *y, const pair_ctx *c, const pare_input *in, dist radius,
                        pare_err *err)
{
    const pare_embedding *const s = &c->c[0].m->embedding;
    const pair start = {.one = true};
    pair x, mapped;
    flow rows;
    pare_status st = enclose_flow_new(&rows, &c->c[0], in->tokens, s->width, err);
    if (st == PARE_OK) st = pair_new(&x, c, &start, in->tokens, s->width, err);
    if (st != PARE_OK) return st;
    enclose_input(&rows, s, in);
    for (size_t i = 0; i < in->tokens; i++) x.r[0][i] = radius;
    pair_take(&x, 0, &rows);
    if (!s->pos.after_map) st = positions(&x, c, err);
    if (st == PARE_OK && pare_has(&s->map.w)) {
        st = pair_dense(&mapped, c, &x, &s->map.w, &s->map.b, &c->ops->map, &c->c[0].norms->map,
                        err);
        x = mapped;
    }
    if (st == PARE_OK && s->pos.after_map) st = positions(&x, c, err);
    return st == PARE_OK ? pair_norm(y, c, &x, &s->norm, err) : st;
}

/* How far the maximum over n rows moves, entry by entry, when row i moves by at most a[i]. */
static dist max_move(const dist *a, size_t n, size_t d)
{
    double squares = 0;
    dist most = dist_of(0);
    for (size_t i = 0; i < n; i++) {
        squares = up_fma(a[i].two, a[i].two, squares);
        most = dist_max(most, a[i]);
    }
    return dist_tidy((dist){n == 1 ? most.two : up_sqrt(squares), most.max}, d);
}

/* Of a maximum nothing is known of the variation v but what r and z say (pair_settle): f's may be
 * in another row than g's. */
static void max_distances(pair *y, const pair *x)
{
    const size_t n = x->h[0].rows, d = x->h[0].cols;
    for (size_t p = 0; p < pair_paths(x); p++) y->r[p][0] = max_move(x->r[p], n, d);
    y->v[0] = dist_of(INFINITY);
    y->z[0] = max_move(x->z, n, d);
}

static pare_status pooled(pair *y, const pair_ctx *c, const pair *x, pare_err *err)
{
    const pare_pool kind = c->c[0].m->head.pool;
    const size_t n = x->h[0].rows, many = kind == PARE_POOL_MEAN ? n : 1;
    const size_t first = kind == PARE_POOL_LAST ? n - 1 : 0;
    const double share = up_div(1, (double)many);
    pare_status st = pair_new(y, c, x, 1, x->h[0].cols, err);
    if (st != PARE_OK) return st;
    if (kind == PARE_POOL_MAX) max_distances(y, x);
    for (size_t i = first; kind != PARE_POOL_MAX && i < first + many; i++) {
        for (size_t p = 0; p < pair_paths(x); p++)
            y->r[p][0] = dist_add(y->r[p][0], dist_mul(share, x->r[p][i]));
        y->v[0] = dist_add(y->v[0], dist_mul(share, x->v[i]));
        y->z[0] = dist_add(y->z[0], dist_mul(share, x->z[i]));
    }
    for (size_t p = 0; st == PARE_OK && p < pair_paths(x); p++) {
        const flow from = pair_flow(c, &x->h[p]);
        flow to;
        st = enclose_pooled(&to, &c->c[p], &from, err);
        if (st == PARE_OK) pair_take(y, p, &to);
    }
    if (st == PARE_OK) pair_settle(y);
    return st;
}

/* Outputs of length 1: the last map like any other, then an rms norm (pare_head_unit_norm). */
static pare_status normalized(pair *y, const pair_ctx *c, const pair *x, pare_err *err)
{
    const pare_model *const m = c->c[0].m;
    const pare_weight *const w = pare_head_weight(m);
    const pare_norm unit = pare_head_unit_norm(m);
    pair mapped = *x;
    pare_status st = PARE_OK;
    if (pare_has(w))
        st = pair_dense(&mapped, c, x, w, &m->head.out.b, &c->ops->out, &c->c[0].norms->out, err);
    return st == PARE_OK ? pair_norm(y, c, &mapped, &unit, err) : st;
}

static pare_status last_rows(pare_ball *out, const pair_ctx *c, const pair *x, pare_err *err)
{
    pair unit;
    if (!c->c[0].m->head.normalize) return pair_outputs(out, c, x, err);
    const pare_status st = normalized(&unit, c, x, err);
    return st == PARE_OK ? pair_outputs(out, c, &unit, err) : st;
}

static pare_status top(pare_ball *out, const pair_ctx *c, const pair *x, pare_err *err)
{
    const pare_output_head *const t = &c->c[0].m->head;
    pair y, h, hidden;
    pare_status st = pair_norm(&y, c, x, &t->norm, err);
    h = y;
    if (st == PARE_OK && t->pool != PARE_POOL_NONE) st = pooled(&h, c, &y, err);
    if (st != PARE_OK) return st;
    if (!pare_has(&t->dense.w)) {
        st = pair_act(&h, c, t->act, NULL, NULL, err);
        return st == PARE_OK ? last_rows(out, c, &h, err) : st;
    }
    st = pair_dense(&hidden, c, &h, &t->dense.w, &t->dense.b, &c->ops->dense, &c->c[0].norms->dense,
                    err);
    if (st == PARE_OK) st = pair_act(&hidden, c, t->act, &h, &c->ops->dense_units, err);
    return st == PARE_OK ? last_rows(out, c, &hidden, err) : st;
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* y over x: two arenas take turns, so that what a sublayer leaves behind is given back. */
typedef pare_status sublayer(pair *y, const pair_ctx *c, const pair *x, size_t b, pare_err *err);

typedef struct runner {
    pair_ctx c;
    pare_arena *a[2]; /* streams live in one of them */
    pare_mark empty[2];
    size_t at;
    pair x;
} runner;

static void use_arena(runner *r, size_t which)
{
    r->at = which;
    pare_arena_reset(r->a[which], r->empty[which]);
    r->c.a = r->c.c[0].a = r->c.c[1].a = r->a[which];
}

static pare_status step(runner *r, sublayer *run, size_t b, pare_err *err)
{
    pair y;
    use_arena(r, 1 - r->at);
    const pare_status st = run(&y, &r->c, &r->x, b, err);
    if (st == PARE_OK) r->x = y;
    return st;
}

static pare_status sequence(pare_ball *out, runner *r, const pare_input *in, dist radius,
                            pare_err *err)
{
    const pare_model *const m = r->c.c[0].m;
    r->c.c[0].tokens = r->c.c[1].tokens = in->tokens;
    use_arena(r, 0);
    pare_status st = stem(&r->x, &r->c, in, radius, err);
    for (size_t b = 0; st == PARE_OK && b < m->nblocks; b++) {
        if (m->blocks[b].attn.kind != PARE_ATTN_NONE) st = step(r, attention_sublayer, b, err);
        if (st == PARE_OK && m->blocks[b].ffn.kind != PARE_FFN_NONE)
            st = step(r, ffn_sublayer, b, err);
    }
    return st == PARE_OK ? top(out, &r->c, &r->x, err) : st;
}

static dist first_radius(const pare_model *m, double radius, pare_ball_norm norm)
{
    dist r = dist_of(radius);
    if (norm == PARE_BALL_MAX) r.two = up_mul(up_sqrt((double)m->embedding.width), radius);
    return dist_tidy(r, m->embedding.width);
}

static pare_status one_input(pare_ball *out, runner *r, pare_arena *a, const pare_input *in,
                             dist radius, pare_err *err)
{
    const pare_model *const m = r->c.c[0].m;
    pare_graph graph;
    pare_status st = pare_input_check(m, in, err);
    if (st == PARE_OK && m->pattern.kind == PARE_GRAPH) {
        st = pare_graph_complete(&graph, a, in->graph, &m->pattern, err);
        r->c.c[0].graph = r->c.c[1].graph = &graph;
    }
    double *const zeros = pare_alloc(a, in->tokens + 1, sizeof *zeros);
    if (st == PARE_OK && !zeros) st = pare_no_memory(err);
    r->c.zeros = zeros;
    for (size_t s = 0; st == PARE_OK && s < in->batch; s++) {
        pare_input part = *in;
        part.batch = 1;
        if (in->ids) part.ids = in->ids + s * in->tokens;
        if (in->x) part.x = in->x + s * in->tokens * in->width;
        if (in->tokens > 0) st = sequence(out, r, &part, radius, err);
    }
    return st;
}

static pare_status whole_set(pare_ball *out, runner *r, pare_arena *a, const pare_inputs *set,
                             dist radius, pare_err *err)
{
    pare_model_norms *norms[2];
    pair_ops *ops;
    const pare_model *const f = r->c.c[0].m, *const g = r->c.c[1].m;
    pare_status st = pare_model_norms_new(&norms[0], a, f, r->c.exec, err);
    if (st == PARE_OK) st = pare_model_norms_new(&norms[1], a, g, r->c.exec, err);
    if (st == PARE_OK) st = pair_ops_new(&ops, a, f, g, norms[0], err);
    if (st != PARE_OK) return st;
    r->c.ops = ops;
    r->c.c[0].norms = norms[0];
    r->c.c[1].norms = norms[1];
    for (size_t i = 0; st == PARE_OK && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(a);
        st = one_input(out, r, a, &set->in[i], radius, err);
        pare_arena_reset(a, mark);
        if (!st) st = pare_progress(r->c.exec, "prove the ball", i + 1, set->n, err);
    }
    return st;
}

static pare_ball nothing(const char *why)
{
    const pare_ub inf = pare_ub_inf();
    return (pare_ball){.apart = inf, .rows2 = inf, .difference = inf, .moves = inf, .refused = why};
}

static pare_status prove_ball(pare_ball *out, const pare_model *f, const pare_model *g,
                              const pare_inputs *set, pare_neighborhood near, const pare_exec *exec,
                              pare_err *err)
{
    *out = nothing("the radius is not a number that is at least 0");
    if (!(near.radius >= 0)) return PARE_OK;
    const char *const why = pair_refuses(f, g);
    if (why) {
        *out = nothing(why);
        return PARE_OK;
    }
    pare_ball all = {.difference = pare_model_outputs(f) == 2 ? pare_ub_exact(0) : pare_ub_inf()};
    pare_arena *const a = pare_arena_new();
    runner r = {.c = {.exec = exec}, .a = {pare_arena_new(), pare_arena_new()}};
    pare_status st = a && r.a[0] && r.a[1] ? PARE_OK : pare_no_memory(err);
    if (st == PARE_OK) {
        r.c.c[0] = (enclose_ctx){.m = f, .exec = exec};
        r.c.c[1] = (enclose_ctx){.m = g, .exec = exec};
        for (size_t i = 0; i < 2; i++) r.empty[i] = pare_arena_mark(r.a[i]);
        st = whole_set(&all, &r, a, set, first_radius(f, near.radius, near.norm), err);
    }
    for (size_t i = 0; i < 2; i++) pare_arena_free(r.a[i]);
    pare_arena_free(a);
    *out = st == PARE_OK ? all : nothing("");
    return st;
}

/* Both last maps are gone through row by row, so that each needs a row for each output. */
pare_status pare_prove_ball(pare_ball *out, const pare_model *f, const pare_model *g,
                            const pare_inputs *set, pare_neighborhood near, const pare_exec *exec,
                            pare_err *err)
{
    pare_model *owned[2] = {NULL, NULL};
    *out = nothing("");
    pare_status st = pare_model_whole(&f, &owned[0], err);
    if (!st) st = pare_model_whole(&g, &owned[1], err);
    if (!st) st = prove_ball(out, f, g, set, near, exec, err);
    for (size_t i = 0; i < 2; i++) pare_model_free(owned[i]);
    return st;
}
