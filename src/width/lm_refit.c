/* lm_refit.c - the cut, block by block (step 3 of lm_auto.c). Two streams run side by side: that of
 * the large model, and that of the model as it is cut. At every sublayer the last map, with fewer
 * inputs, is fitted to its old outputs plus
 *
 *     residual = stream of the large model - output of the old sublayer on the small stream,
 *
 * so errors of earlier layers are compensated where the inputs allow it. The small stream then
 * moves by the change of the map: the sublayer does not run again. Sums are compared before the
 * norm that some models have behind them. */
#include "linalg/matrix.h"
#include "balance.h"
#include "lm_auto.h"
#include <string.h>

/* ---- what is removed ------------------------------------------------------------------------- */

removal removal_of(pare_work *w, const bundles *b, bool *removed, size_t inputs)
{
    removal c = {.removed = removed, .kept = pare_work_alloc(w, inputs, sizeof *c.kept)};
    bool *const out = pare_work_alloc(w, inputs, sizeof *out);
    for (size_t i = 0; !w->st && i < b->n; i++)
        for (size_t k = 0; removed[i] && k < b->all[i].count; k++)
            out[b->column[b->all[i].from + k]] = true;
    for (size_t i = 0; !w->st && i < inputs; i++)
        if (!out[i]) c.kept[c.n++] = i;
    return c;
}

removal choose_removals(pare_work *w, const ridge_fit *r, const pare_mat *root, const bundles *b,
                        size_t removed)
{
    bool *const out = pare_work_alloc(w, b->n, sizeof *out);
    size_t *const order = pare_work_alloc(w, removed, sizeof *order);
    double *const cost = vec_zeros(w, removed);
    if (!w->st) elimination_order(w, order, cost, r, root, b, b->n - removed);
    for (size_t i = 0; !w->st && i < removed; i++) out[order[i]] = true;
    return removal_of(w, b, out, r->inputs);
}

static pare_mat residual_of(pare_work *w, const lm_rows *large, const lm_rows *small)
{
    pare_mat r = mat_copy(w, &large->x);
    for (size_t i = 0; !w->st && i < r.rows * r.cols; i++) r.v[i] -= small->x.v[i];
    return r;
}

/* rows += [f, 1] change^T */
static void move_rows(pare_work *w, pare_mat *rows, const pare_mat *f, const pare_mat *change)
{
    if (w->st) return;
    const pare_mat part = pare_mat_part(change, 0, 0, change->rows, f->cols);
    pare_gemm(rows, 1, f, false, &part, true, 1);
    for (size_t i = 0; i < rows->rows; i++)
        for (size_t o = 0; o < rows->cols; o++)
            pare_row_mut(rows, i)[o] += pare_row(change, o)[f->cols];
}

/* The new map (outputs x (kept + 1)) in all inputs, less the old one. basis: of the new inputs
 * (value_directions.all), NULL: they are some of the old ones. */
static pare_mat change_of(pare_work *w, const pare_mat *map, const removal *c,
                          const pare_mat *basis, const pare_mat *map0, const double *bias0)
{
    const size_t inputs = map0->cols;
    pare_mat d = mat_zeros(w, map->rows, inputs + 1);
    for (size_t o = 0; !w->st && o < map->rows; o++) {
        double *const row = pare_row_mut(&d, o);
        for (size_t i = 0; !basis && i < c->n; i++) row[c->kept[i]] = pare_row(map, o)[i];
        row[inputs] = pare_row(map, o)[c->n];
    }
    if (!w->st && basis) {
        const pare_mat back = mat_take_rows(w, basis, c->kept, c->n);
        const pare_mat front = pare_mat_part(map, 0, 0, map->rows, c->n);
        pare_mat to = pare_mat_part(&d, 0, 0, map->rows, inputs);
        if (!w->st) pare_gemm(&to, 1, &front, false, &back, false, 0);
    }
    for (size_t o = 0; !w->st && o < d.rows; o++) {
        for (size_t i = 0; i < inputs; i++) pare_row_mut(&d, o)[i] -= pare_row(map0, o)[i];
        pare_row_mut(&d, o)[inputs] -= bias0[o];
    }
    return d;
}

/* Whether the last map before the place may get a bias. */
static bool may_have_bias(const prune_pass *p, size_t place)
{
    const pare_block *const b = &p->m->m->blocks[(place - 1) / 2];
    const pare_ffn *const f = &b->ffn;
    return !p->standard || pare_has(place % 2 ? &b->attn.bo : &f->layers[f->nlayers - 1].b);
}

/* ---- attention ------------------------------------------------------------------------------ */

static lm_attn refit_values(prune_pass *p, const lm_attn *a, const pare_mat *pooled, size_t place,
                            size_t removed)
{
    pare_work *const w = p->w;
    const pare_mat residual = residual_of(w, &p->large, &p->small), root = metric_root_at(p, place);
    const ridge_fit r = attn_fit(w, a, pooled, &residual, may_have_bias(p, place));
    const value_directions t = value_directions_of(w, a, &r, &root);
    if (w->st) return *a;
    const removal c = choose_removals(w, &t.fit, &root, &t.b, removed);
    const pare_mat map = ridge_fit_restricted(w, &t.fit, c.kept, c.n), wo = concat_wo(w, a);
    const pare_mat change = w->st ? map : change_of(w, &map, &c, &t.all, &wo, a->bo);
    move_rows(w, &p->small.x, pooled, &change);
    return w->st ? *a : attn_without_values(w, a, &t, c.removed, &map);
}

/* Fewer queries and keys, on the stream that they will meet. */
static lm_attn cut_keys(prune_pass *p, const lm_attn *a, size_t place, size_t removed)
{
    pare_work *const w = p->w;
    bool wide = removed > 0;
    for (size_t g = 0; p->qk_dim && g < a->nkeys; g++) wide |= a->keys[g].wk.rows > p->qk_dim;
    if (w->st || !wide) return *a;
    const pare_mat root = metric_root_at(p, place);
    const key_directions t = key_directions_of(w, p->m, a, &p->small, &root);
    if (w->st) return *a;
    const removal c = p->qk_dim ? choose_keys_within(w, a, &t, p->qk_dim)
                                : choose_removals(w, &t.fit, &t.root, &t.b, removed);
    p->changed = true;
    return w->st ? *a : attn_without_keys(w, p->m, a, &t, &c);
}

static lm_attn cut_attention(prune_pass *p, const lm_attn *a, size_t place, const part_cost *parts)
{
    pare_work *const w = p->w;
    if (w->st || !a->present) return *a;
    lm_attn out = cut_keys(p, a, place, parts[KEYS].removed), sum = *a;
    const lm_attn keys = out;
    const bool fit = p->fit && (parts[VALUES].removed || p->changed);
    const pare_mat pooled = fit ? lm_pooled(w, p->m, &keys, &p->small) : (pare_mat){0};
    sum.out = (lm_norm){0};
    lm_attention_step(w, p->m, &sum, &p->large);
    sum = keys;
    sum.out = (lm_norm){0};
    lm_attention_step(w, p->m, &sum, &p->small);
    if (!w->st && fit) out = refit_values(p, &keys, &pooled, place, parts[VALUES].removed);
    p->changed |= fit;
    if (keys.heads != a->heads) lm_balance_scores(w, p->m, &out); /* cut: lists of its own */
    if (fit) lm_balance_values(w, &out);
    lm_norm_rows(w, &a->out, &p->large);
    lm_norm_rows(w, &a->out, &p->small);
    return out;
}

/* ---- feed-forward --------------------------------------------------------------------------- */

/* before: the small stream that the sublayer read. */
static lm_ffn refit_units(prune_pass *p, const lm_ffn *f, const pare_mat *before, size_t place,
                          size_t removed)
{
    pare_work *const w = p->w;
    const pare_mat residual = residual_of(w, &p->large, &p->small), root = metric_root_at(p, place);
    const ridge_fit r = ffn_fit(w, f, before, &residual, may_have_bias(p, place));
    const bundles b = bundles_single(w, f->w1.rows);
    const removal c = choose_removals(w, &r, &root, &b, removed);
    const pare_mat map = ridge_fit_restricted(w, &r, c.kept, c.n);
    lm_ffn out = w->st ? *f : lm_select_units(w, f, c.kept, c.n);
    if (w->st) return out;
    const pare_mat change = change_of(w, &map, &c, NULL, &f->w2, f->b2);
    out.w2 = mat_first_cols(w, &map, c.n);
    out.b2 = vec_zeros(w, f->dout);
    for (size_t o = 0; !w->st && o < f->dout; o++) out.b2[o] = pare_row(&map, o)[c.n];
    for (size_t i = 0; !w->st && i < before->rows; i += LM_CHUNK) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const pare_mat units = hidden_rows(w, f, before, i);
        if (w->st) break;
        pare_mat rows = pare_mat_part(&p->small.x, i, 0, units.rows, p->small.x.cols);
        move_rows(w, &rows, &units, &change);
        pare_arena_reset(w->arena, mark);
    }
    return out;
}

/* A block without attention is the head of a masked-word model: its second map is not stored. */
static bool may_be_fitted(const prune_pass *p, size_t place)
{
    return p->fit && !(p->standard && p->m->m->blocks[place / 2 - 1].attn.kind == PARE_ATTN_NONE);
}

static lm_ffn cut_units(prune_pass *p, const lm_ffn *f, size_t place, size_t removed)
{
    pare_work *const w = p->w;
    lm_ffn sum = *f, out = *f;
    if (w->st || !f->present) return out;
    const bool fit = may_be_fitted(p, place) && (removed || p->changed);
    const pare_mat before = fit ? mat_copy(w, &p->small.x) : (pare_mat){0};
    sum.out = (lm_norm){0};
    lm_ffn_step(w, p->m, &sum, &p->large);
    lm_ffn_step(w, p->m, &sum, &p->small);
    if (!w->st && fit) out = refit_units(p, f, &before, place, removed);
    p->changed |= fit;
    lm_norm_rows(w, &f->out, &p->large);
    lm_norm_rows(w, &f->out, &p->small);
    return out;
}

void lm_refit(prune_pass *p)
{
    pare_work *const w = p->w;
    for (size_t b = 0; !w->st && b < p->m->m->nblocks; b++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const part_cost *const parts = &p->parts[PARTS * b];
        const lm_attn a = lm_read_attn(w, p->m, b), few = cut_attention(p, &a, 2 * b + 1, parts);
        lm_write_attn(w, p->out, b, &few);
        pare_arena_reset(w->arena, mark); /* what the moments of the units need is much */
        const lm_ffn f = lm_read_ffn(w, p->m, b);
        const lm_ffn less = cut_units(p, &f, 2 * b + 2, parts[UNITS].removed);
        lm_write_ffn(w, p->out, b, &less);
        pare_arena_reset(w->arena, mark);
        if (!w->st) w->st = pare_progress(w->exec, "cut", b + 1, p->m->m->nblocks, w->err);
    }
}
