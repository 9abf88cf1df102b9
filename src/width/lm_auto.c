/* The best cut we know of models with norms, positions and ids: hidden units and value directions
 * go where that costs least, and the maps behind them make good what they can.
 *
 *   1. the metric of every place from slopes (lm_slopes.c);
 *   2. on the large model, for every sublayer the order in which inputs of its last map would go,
 *      and what each costs (repair.c, lm_values.c); the share that is asked for is spread over
 *      them (lm_share.c);
 *   3. layer by layer on the stream of the model that is already cut: the inputs go, and the last
 *      map is fitted again, towards what the large model had at that place. So errors of earlier
 *      layers are seen, and made good where they can be.
 *
 * The stream keeps its width, and queries and keys theirs: per parameter they cost more (the
 * sliced stream of stories260K about twice as much). With nothing to take away nothing is changed.
 *
 * Cost: two ways through the model in f64 and per sublayer F^3 for its F inputs. Only one place's
 * rows and one sublayer's moments are in memory. */
#include "lm_auto.h"
#include <math.h>
#include <string.h>

enum { CHUNK = 1024 }; /* rows of hidden units at a time */

#define METRIC_RIDGE 1e-3 /* of its largest eigenvalue: it was estimated from few slopes */

typedef struct pass {
    lm_job *j;
    work *w;
    const lm *m;
    const pare_mat *metric; /* of each place */
    part_cost *parts;       /* 2 blocks: values, hidden units */
    lm_rows large, small;   /* small: of the model as it is cut */
    bool changed;           /* they differ from here on */
} pass;

static pare_mat root_at(pass *p, size_t place)
{
    return w_root(p->w, &p->metric[place], METRIC_RIDGE).root;
}

/* ---- moments of a sublayer's last inputs ---------------------------------------------------- */

/* Rows [i, i + n) of m: a view. */
static pare_mat some_rows(const pare_mat *m, size_t i, size_t n)
{
    return pare_mat_part(m, i, 0, n, m->cols);
}

static size_t chunk(const pare_mat *m, size_t i)
{
    return m->rows - i < CHUNK ? m->rows - i : CHUNK;
}

static pare_mat units_of_rows(work *w, const lm_ffn *f, const pare_mat *x, size_t i)
{
    const pare_mat rows = some_rows(x, i, chunk(x, i)), u = lm_normed(w, &f->in, &rows);
    return w->st ? (pare_mat){0} : lm_hidden(w, f, &u);
}

/* missed: NULL, or what the outputs miss. */
static moments ffn_moments(work *w, const lm_ffn *f, const pare_mat *x, const pare_mat *missed)
{
    moments m = moments_new(w, f->w1.rows, f->dout);
    for (size_t i = 0; !w->st && i < x->rows; i += CHUNK) {
        const pare_mark mark = pare_arena_mark(w->a);
        const pare_mat units = units_of_rows(w, f, x, i);
        const pare_mat r = missed ? some_rows(missed, i, units.rows) : (pare_mat){0};
        if (!w->st) moments_add(w, &m, &units, missed ? &r : NULL);
        pare_arena_reset(w->a, mark);
    }
    return m;
}

static pare_mat all_wo(work *w, const lm_attn *a)
{
    size_t cols = 0, at = 0;
    for (size_t h = 0; h < a->nheads; h++) cols += a->heads[h].wo.cols;
    pare_mat m = w_mat(w, a->dout, cols);
    for (size_t h = 0; !w->st && h < a->nheads; at += a->heads[h].wo.cols, h++)
        for (size_t o = 0; o < a->dout; o++)
            memcpy(pare_row_mut(&m, o) + at, pare_row(&a->heads[h].wo, o),
                   a->heads[h].wo.cols * sizeof *m.v);
    return m;
}

static repair attn_fit(work *w, const lm_attn *a, const pare_mat *pooled, const pare_mat *missed)
{
    moments m = moments_new(w, pooled->cols, a->dout);
    if (!w->st) moments_add(w, &m, pooled, missed);
    const pare_mat wo = all_wo(w, a);
    return repair_of(w, &m, &wo, a->bo);
}

static repair ffn_fit(work *w, const lm_ffn *f, const pare_mat *x, const pare_mat *missed)
{
    const moments m = ffn_moments(w, f, x, missed);
    return repair_of(w, &m, &f->w2, f->b2);
}

/* ---- 2. what would it cost? ----------------------------------------------------------------- */

/* Numbers that one value direction takes with it: a row of Wv, and a column of Wo for each head. */
static size_t value_size(const lm_attn *a)
{
    const size_t heads = a->nheads / a->nkeys;
    return a->din + a->dout * heads;
}

static size_t unit_size(const lm_ffn *f)
{
    const bool b1 = !all_zero(f->b1, f->w1.rows);
    const bool b3 = f->gated && !all_zero(f->b3, f->w1.rows);
    return f->din * (f->gated ? 2 : 1) + f->dout + (b1 ? 1 : 0) + (b3 ? 1 : 0);
}

static part_cost part_new(work *w, size_t of, size_t least, size_t parameters)
{
    part_cost c = {.n = of > least ? of - least : 0, .of = of, .parameters = parameters};
    c.cost = w_vec(w, c.n);
    return c;
}

static void cost_of_values(pass *p, const lm_attn *a, part_cost *c, size_t place)
{
    work *const w = p->w;
    const pare_mat pooled = lm_pooled(w, p->m, a, &p->large), root = root_at(p, place);
    const repair r = attn_fit(w, a, &pooled, NULL);
    const values_turn t = w->st ? (values_turn){0} : values_turned(w, a, &r, &root);
    size_t *const order = w_alloc(w, c->n, sizeof *order);
    if (!w->st) repair_order(w, order, c->cost, &t.fit, &root, &t.b, c->of - c->n);
}

static void cost_of_units(pass *p, const lm_ffn *f, part_cost *c, size_t place)
{
    work *const w = p->w;
    const repair r = ffn_fit(w, f, &p->large.x, NULL);
    const pare_mat root = root_at(p, place);
    const bundles b = bundles_single(w, r.inputs);
    size_t *const order = w_alloc(w, c->n, sizeof *order);
    if (!w->st) repair_order(w, order, c->cost, &r, &root, &b, c->of - c->n);
}

static void costs(pass *p)
{
    work *const w = p->w;
    const pare_mark start = pare_arena_mark(w->a);
    (void)start;
    for (size_t b = 0; !w->st && b < p->m->m->nblocks; b++) {
        const lm_fact *const f = &p->j->facts[b];
        part_cost *const values = &p->parts[2 * b], *const units = &p->parts[2 * b + 1];
        *values = part_new(w, f->v, f->nkeys, 0);
        *units = part_new(w, f->units, 1, 0);
        const pare_mark mark = pare_arena_mark(w->a);
        const lm_attn a = lm_read_attn(w, p->m, b);
        if (!w->st && a.here) values->parameters = value_size(&a);
        if (!w->st && a.here) cost_of_values(p, &a, values, 2 * b + 1);
        lm_attend(w, p->m, &a, &p->large);
        pare_arena_reset(w->a, mark);
        const lm_ffn n = lm_read_ffn(w, p->m, b);
        if (!w->st && n.here) units->parameters = unit_size(&n);
        if (!w->st && n.here) cost_of_units(p, &n, units, 2 * b + 2);
        lm_feed(w, p->m, &n, &p->large);
        pare_arena_reset(w->a, mark);
        pare_progress(w->exec, "weigh", b + 1, p->m->m->nblocks);
    }
}

/* ---- 3. the cut ----------------------------------------------------------------------------- */

static void normed_in_place(work *w, const lm_norm *n, lm_rows *r)
{
    if (w->st || !n->here) return;
    const pare_mark mark = pare_arena_mark(w->a);
    const pare_mat y = lm_normed(w, n, &r->x);
    if (!w->st) memcpy(r->x.v, y.v, y.rows * y.cols * sizeof *y.v);
    pare_arena_reset(w->a, mark);
}

/* large - small */
static pare_mat missed_by(work *w, const lm_rows *large, const lm_rows *small)
{
    pare_mat r = w_copy(w, &large->x);
    for (size_t i = 0; !w->st && i < r.rows * r.cols; i++) r.v[i] -= small->x.v[i];
    return r;
}

/* small += [f, 1] (map - map0)^T where f are some rows' inputs. */
static void move_rows(work *w, pare_mat *rows, const pare_mat *f, const pare_mat *change)
{
    const pare_mat part = pare_mat_part(change, 0, 0, change->rows, f->cols);
    if (w->st) return;
    pare_gemm(rows, 1, f, false, &part, true, 1);
    for (size_t i = 0; i < rows->rows; i++)
        for (size_t o = 0; o < rows->cols; o++)
            pare_row_mut(rows, i)[o] += pare_row(change, o)[f->cols];
}

/* The map in all inputs, less what it was. */
static pare_mat change_of(work *w, const pare_mat *map, const size_t *kept, size_t n,
                          const pare_mat *map0, const double *bias0)
{
    pare_mat c = w_mat(w, map0->rows, map0->cols + 1);
    for (size_t o = 0; !w->st && o < c.rows; o++) {
        for (size_t i = 0; i < n; i++) pare_row_mut(&c, o)[kept[i]] = pare_row(map, o)[i];
        for (size_t i = 0; i < map0->cols; i++) pare_row_mut(&c, o)[i] -= pare_row(map0, o)[i];
        pare_row_mut(&c, o)[map0->cols] = pare_row(map, o)[n] - bias0[o];
    }
    return c;
}

/* Columns of bundles that stay, ascending. */
static size_t *columns_left(work *w, const bundles *b, size_t inputs, const bool *gone, size_t *n)
{
    bool *const out = w_alloc(w, inputs, sizeof *out);
    size_t *const kept = w_alloc(w, inputs, sizeof *kept);
    *n = 0;
    if (w->st) return kept;
    for (size_t k = 0; k < b->n; k++)
        for (size_t c = 0; gone[k] && c < b->all[k].count; c++)
            out[b->column[b->all[k].from + c]] = true;
    for (size_t i = 0; i < inputs; i++)
        if (!out[i]) kept[(*n)++] = i;
    return kept;
}

static bool *marked_gone(work *w, const repair *r, const pare_mat *root, const bundles *b,
                         size_t gone)
{
    bool *const mark = w_alloc(w, b->n, sizeof *mark);
    size_t *const order = w_alloc(w, gone, sizeof *order);
    double *const cost = w_vec(w, gone);
    if (!w->st) repair_order(w, order, cost, r, root, b, b->n - gone);
    for (size_t i = 0; !w->st && i < gone; i++) mark[order[i]] = true;
    return mark;
}

static lm_attn cut_attention(pass *p, const lm_attn *a, size_t place, size_t gone)
{
    work *const w = p->w;
    lm_attn whole = *a;
    if (!a->here) return *a;
    whole.out = (lm_norm){0};
    const pare_mat pooled = gone || p->changed ? lm_pooled(w, p->m, a, &p->small) : (pare_mat){0};
    lm_attend(w, p->m, &whole, &p->large);
    lm_attend(w, p->m, &whole, &p->small);
    lm_attn out = *a;
    if (!w->st && pooled.v) {
        size_t n;
        const pare_mat missed = missed_by(w, &p->large, &p->small), root = root_at(p, place);
        const repair r = attn_fit(w, a, &pooled, &missed);
        const values_turn t = w->st ? (values_turn){0} : values_turned(w, a, &r, &root);
        const bool *const marks = w->st ? NULL : marked_gone(w, &t.fit, &root, &t.b, gone);
        const size_t *const kept = columns_left(w, &t.b, r.inputs, marks, &n);
        const pare_mat map = repair_kept(w, &t.fit, kept, n);
        out = values_taken(w, a, &t, marks, &map);
        const pare_mat rows = w_take_rows(w, &t.t, kept, n), wo = all_wo(w, a);
        const pare_mat front = w->st ? map : pare_mat_part(&map, 0, 0, map.rows, n);
        const pare_mat raw = w_mul(w, &front, false, &rows, false);
        pare_mat change = w_mat(w, wo.rows, wo.cols + 1);
        for (size_t o = 0; !w->st && o < wo.rows; o++) {
            for (size_t i = 0; i < wo.cols; i++)
                pare_row_mut(&change, o)[i] = pare_row(&raw, o)[i] - pare_row(&wo, o)[i];
            pare_row_mut(&change, o)[wo.cols] = out.bo[o] - a->bo[o];
        }
        move_rows(w, &p->small.x, &pooled, &change);
        p->changed = true;
    }
    normed_in_place(w, &a->out, &p->large);
    normed_in_place(w, &a->out, &p->small);
    return out;
}

static lm_ffn cut_units(pass *p, const lm_ffn *f, size_t place, size_t gone)
{
    work *const w = p->w;
    lm_ffn whole = *f, out = *f;
    if (!f->here) return *f;
    whole.out = (lm_norm){0};
    const bool fit = gone || p->changed;
    const pare_mat before = fit ? w_copy(w, &p->small.x) : (pare_mat){0};
    lm_feed(w, p->m, &whole, &p->large);
    lm_feed(w, p->m, &whole, &p->small);
    if (!w->st && fit) {
        size_t n;
        const pare_mat missed = missed_by(w, &p->large, &p->small), root = root_at(p, place);
        const repair r = ffn_fit(w, f, &before, &missed);
        const bundles b = bundles_single(w, f->w1.rows);
        const bool *const marks = marked_gone(w, &r, &root, &b, gone);
        const size_t *const kept = columns_left(w, &b, r.inputs, marks, &n);
        const pare_mat map = repair_kept(w, &r, kept, n);
        const pare_mat change = change_of(w, &map, kept, n, &f->w2, f->b2);
        out = lm_take_units(w, f, kept, n);
        out.w2 = w->st ? map : pare_mat_part(&map, 0, 0, map.rows, n);
        out.w2 = w_copy(w, &out.w2);
        out.b2 = w_vec(w, f->dout);
        for (size_t o = 0; !w->st && o < f->dout; o++) out.b2[o] = pare_row(&map, o)[n];
        for (size_t i = 0; !w->st && i < before.rows; i += CHUNK) {
            const pare_mark mark = pare_arena_mark(w->a);
            const pare_mat units = units_of_rows(w, f, &before, i);
            pare_mat rows = some_rows(&p->small.x, i, chunk(&before, i));
            move_rows(w, &rows, &units, &change);
            pare_arena_reset(w->a, mark);
        }
        p->changed = true;
    }
    normed_in_place(w, &f->out, &p->large);
    normed_in_place(w, &f->out, &p->small);
    return out;
}

static void cut_all(pass *p)
{
    work *const w = p->w;
    p->large = lm_stem_rows(w, p->m, p->j->data, p->j->o->tokens);
    p->small = lm_stem_rows(w, p->m, p->j->data, p->j->o->tokens);
    for (size_t b = 0; !w->st && b < p->m->m->nblocks; b++) {
        const pare_mark mark = pare_arena_mark(w->a);
        const lm_block k = lm_read(w, p->m, b);
        lm_block small = k;
        if (!w->st) small.attn = cut_attention(p, &k.attn, 2 * b + 1, p->parts[2 * b].gone);
        if (!w->st) small.ffn = cut_units(p, &k.ffn, 2 * b + 2, p->parts[2 * b + 1].gone);
        lm_put(w, p->j->out, b, &small);
        pare_arena_reset(w->a, mark);
        pare_progress(w->exec, "cut", b + 1, p->m->m->nblocks);
    }
    lm_put_ends(w, p->j->out, NULL, NULL, NULL);
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* Biases that the repair adds where the model has none. */
static size_t new_biases(const lm *m, const lm_fact *f)
{
    size_t n = 0;
    for (size_t b = 0; b < m->m->nblocks; b++) {
        if (f[b].attn && !f[b].bo) n += m->width[2 * b + 1];
        if (f[b].ffn && !f[b].b2) n += m->width[2 * b + 2];
    }
    return n;
}

/* What is asked for, as numbers that go from each part. */
static void settle(pass *p)
{
    work *const w = p->w;
    const pare_width_opts *const o = p->j->o;
    const size_t parts = 2 * p->m->m->nblocks;
    for (size_t b = 0; b < p->m->m->nblocks; b++) {
        part_cost *const v = &p->parts[2 * b], *const u = &p->parts[2 * b + 1];
        const size_t dv = p->j->facts[b].nkeys * o->v_dim;
        if (o->v_dim && dv < v->of) v->gone = v->of - dv;
        if (o->ffn_dim && o->ffn_dim < u->of) u->gone = u->of - o->ffn_dim;
    }
    if (!(o->keep > 0)) return;
    const size_t now = lm_count(p->m, p->j->facts, &(lm_sizes){0});
    const double limit = o->keep * (double)now;
    const size_t stay = (size_t)limit;
    if (stay >= now) return;
    const size_t go = now - stay + new_biases(p->m, p->j->facts);
    if (lm_share(w, p->parts, parts, go) < go)
        w_fail(w, PARE_ERR_PROMISE,
               "values and hidden units are not enough to leave %zu of %zu parameters", stay, now);
}

void lm_auto(lm_job *j)
{
    work *const w = j->w;
    pass p = {.j = j, .w = w, .m = j->m};
    p.parts = w_alloc(w, 2 * j->m->m->nblocks, sizeof *p.parts);
    p.metric = w->st ? NULL : lm_metric(w, j->m, j->data, j->o->tokens, j->o->seed);
    const pare_mark mark = pare_arena_mark(w->a);
    (void)mark;
    if (!w->st) p.large = lm_stem_rows(w, j->m, j->data, j->o->tokens);
    if (!w->st) costs(&p);
    if (!w->st) settle(&p);
    if (!w->st) cut_all(&p);
}
