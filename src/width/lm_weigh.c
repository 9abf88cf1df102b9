/* What every part of a model would cost, on the rows of the large model (lm_auto.c, step 2): the
 * order of repair.c is followed to its end, and the price of each step is kept. */
#include "lm_auto.h"

#define METRIC_RIDGE 1e-3 /* of its largest eigenvalue: it was estimated from few slopes */

pare_mat metric_at(pass *p, size_t place)
{
    return w_root(p->w, &p->metric[place], METRIC_RIDGE).root;
}

/* ---- fits ----------------------------------------------------------------------------------- */

pare_mat units_of_rows(work *w, const lm_ffn *f, const pare_mat *x, size_t i)
{
    const size_t left = x->rows - i, n = left < LM_CHUNK ? left : LM_CHUNK;
    const pare_mat rows = pare_mat_part(x, i, 0, n, x->cols), u = lm_normed(w, &f->in, &rows);
    return w->st ? (pare_mat){0} : lm_hidden(w, f, &u);
}

repair ffn_fit(work *w, const lm_ffn *f, const pare_mat *x, const pare_mat *missed)
{
    moments m = moments_new(w, f->w1.rows, f->dout);
    for (size_t i = 0; !w->st && i < x->rows; i += LM_CHUNK) {
        const pare_mark mark = pare_arena_mark(w->a);
        const pare_mat units = units_of_rows(w, f, x, i);
        if (!w->st && missed) {
            const pare_mat r = pare_mat_part(missed, i, 0, units.rows, missed->cols);
            moments_add(w, &m, &units, &r);
        } else if (!w->st) {
            moments_add(w, &m, &units, NULL);
        }
        pare_arena_reset(w->a, mark);
    }
    return repair_of(w, &m, &f->w2, f->b2);
}

repair attn_fit(work *w, const lm_attn *a, const pare_mat *pooled, const pare_mat *missed)
{
    moments m = moments_new(w, pooled->cols, a->dout);
    if (!w->st) moments_add(w, &m, pooled, missed);
    const pare_mat wo = values_map(w, a);
    return repair_of(w, &m, &wo, a->bo);
}

/* ---- costs ---------------------------------------------------------------------------------- */

/* A row of Wv, and a column of Wo for each head that shares it (on average). */
static size_t value_size(const lm_attn *a)
{
    return a->din + a->dout * (a->nheads / a->nkeys);
}

static size_t unit_size(const lm_ffn *f)
{
    const bool b1 = !all_zero(f->b1, f->w1.rows);
    const bool b3 = f->gated && !all_zero(f->b3, f->w1.rows);
    return f->din * (f->gated ? 2 : 1) + f->dout + (b1 ? 1 : 0) + (b3 ? 1 : 0);
}

static void weigh_values(pass *p, const lm_attn *a, part_cost *c, size_t place)
{
    work *const w = p->w;
    if (w->st || !a->here) return;
    const pare_mat pooled = lm_pooled(w, p->m, a, &p->large), root = metric_at(p, place);
    const repair r = attn_fit(w, a, &pooled, NULL);
    const values_turn t = values_turned(w, a, &r, &root);
    size_t *const order = w_alloc(w, c->n, sizeof *order);
    if (!w->st) repair_order(w, order, c->cost, &t.fit, &root, &t.b, c->of - c->n);
    c->parameters = value_size(a);
}

static void weigh_units(pass *p, const lm_ffn *f, part_cost *c, size_t place)
{
    work *const w = p->w;
    if (w->st || !f->here) return;
    const repair r = ffn_fit(w, f, &p->large.x, NULL);
    const pare_mat root = metric_at(p, place);
    const bundles b = bundles_single(w, r.inputs);
    size_t *const order = w_alloc(w, c->n, sizeof *order);
    if (!w->st) repair_order(w, order, c->cost, &r, &root, &b, c->of - c->n);
    c->parameters = unit_size(f);
}

void lm_weigh(pass *p)
{
    work *const w = p->w;
    for (size_t b = 0; !w->st && b < p->m->m->nblocks; b++) {
        const pare_mark mark = pare_arena_mark(w->a);
        const lm_attn a = lm_read_attn(w, p->m, b);
        weigh_values(p, &a, &p->parts[2 * b], 2 * b + 1);
        lm_attend(w, p->m, &a, &p->large);
        pare_arena_reset(w->a, mark);
        const lm_ffn f = lm_read_ffn(w, p->m, b);
        weigh_units(p, &f, &p->parts[2 * b + 1], 2 * b + 2);
        lm_feed(w, p->m, &f, &p->large);
        pare_arena_reset(w->a, mark);
        pare_progress(w->exec, "weigh", b + 1, p->m->m->nblocks);
    }
}
