/* lm_removal_costs.c - what it would cost to remove values, keys or hidden units of every
 * sublayer, on the rows of the large model (step 2 of lm_auto.c): the order of eliminate.c is
 * followed to its end, and the cost of each step is kept. */
#include "linalg/matrix.h"
#include "lm_auto.h"

#define METRIC_RIDGE 1e-3 /* of its largest eigenvalue: it was estimated from few gradients */

pare_mat metric_root_at(prune_pass *p, size_t place)
{
    return sym_roots_of(p->w, &p->metric[place], METRIC_RIDGE).root;
}

/* ---- fits ----------------------------------------------------------------------------------- */

pare_mat hidden_rows(pare_work *w, const lm_ffn *f, const pare_mat *x, size_t i)
{
    const size_t left = x->rows - i, n = left < LM_CHUNK ? left : LM_CHUNK;
    const pare_mat rows = pare_mat_part(x, i, 0, n, x->cols), u = lm_normed(w, &f->in, &rows);
    return w->st ? (pare_mat){0} : lm_hidden(w, f, &u);
}

ridge_fit ffn_fit(pare_work *w, const lm_ffn *f, const pare_mat *x, const pare_mat *residual,
                  bool bias)
{
    moments m = moments_new(w, f->w1.rows, f->dout);
    for (size_t i = 0; !w->st && i < x->rows; i += LM_CHUNK) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const pare_mat units = hidden_rows(w, f, x, i);
        if (!w->st && residual) {
            const pare_mat r = pare_mat_part(residual, i, 0, units.rows, residual->cols);
            moments_add(w, &m, &units, &r);
        } else if (!w->st) {
            moments_add(w, &m, &units, NULL);
        }
        pare_arena_reset(w->arena, mark);
    }
    return ridge_fit_of(w, &m, &f->w2, bias ? f->b2 : NULL);
}

ridge_fit attn_fit(pare_work *w, const lm_attn *a, const pare_mat *pooled, const pare_mat *residual,
                   bool bias)
{
    moments m = moments_new(w, pooled->cols, a->dout);
    if (!w->st) moments_add(w, &m, pooled, residual);
    const pare_mat wo = concat_wo(w, a);
    return ridge_fit_of(w, &m, &wo, bias ? a->bo : NULL);
}

/* ---- values and hidden units ---------------------------------------------------------------- */

/* Costs of removing the bundles b of a fit, each of which stores `size` parameters. */
static void set_costs(pare_work *w, part_cost *c, const ridge_fit *fit, const pare_mat *root,
                      const bundles *b, size_t size)
{
    size_t *const order = pare_work_alloc(w, c->n, sizeof *order);
    if (!w->st) elimination_order(w, order, c->cost, fit, root, b, c->count - c->n);
    for (size_t i = 0; i < c->n; i++) c->size[i] = size;
}

static void unit_costs(prune_pass *p, const lm_ffn *f, part_cost *c, size_t place)
{
    pare_work *const w = p->w;
    if (w->st || !f->present || c->n == 0) return;
    const ridge_fit r = ffn_fit(w, f, &p->large.x, NULL, true);
    const pare_mat root = metric_root_at(p, place);
    const bundles b = bundles_single(w, r.inputs);
    const bool b1 = !all_zero(f->b1, f->w1.rows);
    const bool b3 = f->gated && !all_zero(f->b3, f->w1.rows);
    set_costs(w, c, &r, &root, &b,
              f->din * (f->gated ? 2 : 1) + f->dout + (b1 ? 1 : 0) + (b3 ? 1 : 0));
}

/* ---- queries and keys ----------------------------------------------------------------------- */

/* E |G^1/2 error|^2 of the sublayer with other queries and keys. Softmax is far from linear: so
 * this is measured, not taken from the metric. The last map stays as it is: fitted again it would
 * seem to lose less on these rows than it does on others. */
static double measured_loss(prune_pass *p, const lm_attn *cut, const pare_mat *pooled,
                            const pare_mat *root)
{
    pare_work *const w = p->w;
    pare_mat gap = lm_pooled(w, p->m, cut, &p->large);
    const pare_mat wo = concat_wo(w, cut), map = mat_mul(w, root, false, &wo, false);
    double sum = 0;
    for (size_t i = 0; !w->st && i < gap.rows * gap.cols; i++) gap.v[i] -= pooled->v[i];
    for (size_t i = 0; !w->st && i < gap.rows; i += LM_CHUNK) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const size_t left = gap.rows - i, n = left < LM_CHUNK ? left : LM_CHUNK;
        const pare_mat rows = pare_mat_part(&gap, i, 0, n, gap.cols);
        const pare_mat off = affine_rows(w, &rows, &map, NULL);
        if (!w->st) sum += pare_mat_fro_est(&off) * pare_mat_fro_est(&off);
        pare_arena_reset(w->arena, mark);
    }
    return sum / (double)(gap.rows ? gap.rows : 1);
}

static void key_costs(prune_pass *p, const lm_attn *a, const pare_mat *pooled, const pare_mat *root,
                      part_cost *c)
{
    enum { POINTS = 8 }; /* at which the loss is measured */
    pare_work *const w = p->w;
    /* Queries are fitted to these rows. On other rows they lose more, for p inputs and n rows
     * (n + p) / (n - p) times as much (Akaike's final prediction error). Values and units need no
     * such factor, because a ridge holds them; nor do keys that are compared with keys alone. With
     * fewer than two rows for every input nothing can be said, and no keys are removed. */
    const double inputs = (double)a->din + 1, rows = (double)p->large.x.rows;
    const double factor = p->fit ? (rows + inputs) / (rows - inputs) : 1;
    if (p->fit && !(rows > 2 * inputs)) c->n = 0;
    if (w->st || c->n == 0) return;
    const key_directions t = key_directions_of(w, p->m, a, &p->large, root);
    size_t *const order = pare_work_alloc(w, c->n, sizeof *order);
    if (!w->st) elimination_order(w, order, c->cost, &t.fit, &t.root, &t.b, c->count - c->n);
    if (!w->st) key_parameters(c->size, a, &t, order, c->n);
    double before = 0;
    for (size_t k = 0, from = 0, to; !w->st && k < POINTS; k++, from = to) {
        const pare_mark mark = pare_arena_mark(w->arena);
        to = c->n * (k + 1) / POINTS;
        if (to == from) continue;
        bool *const removed = pare_work_alloc(w, t.b.n, sizeof *removed);
        for (size_t i = 0; !w->st && i < to; i++) removed[order[i]] = true;
        const removal first = removal_of(w, &t.b, removed, t.fit.inputs);
        const lm_attn cut = w->st ? *a : attn_without_keys(w, p->m, a, &t, &first);
        const double loss = w->st ? 0 : factor * measured_loss(p, &cut, pooled, root);
        /* Between two points the measured loss is spread as the metric says. */
        const double more = loss > before ? loss - before : 0;
        const size_t n = to - from;
        double *const cost = c->cost + from, sum = 0;
        for (size_t i = 0; i < n; i++) sum += cost[i];
        for (size_t i = 0; i < n; i++) cost[i] = more * (sum > 0 ? cost[i] / sum : 1 / (double)n);
        before = loss > before ? loss : before;
        pare_arena_reset(w->arena, mark);
    }
    if (!w->st && c->size[0] == 0) c->n = 0; /* lists of frequencies would cost what is saved */
}

void lm_removal_costs(prune_pass *p)
{
    pare_work *const w = p->w;
    for (size_t b = 0; !w->st && b < p->m->m->nblocks; b++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        part_cost *const parts = &p->parts[PARTS * b];
        const lm_attn a = lm_read_attn(w, p->m, b);
        if (!w->st && a.present) {
            const pare_mat pooled = lm_pooled(w, p->m, &a, &p->large);
            const pare_mat root = metric_root_at(p, 2 * b + 1);
            if (!w->st && parts[VALUES].n > 0) {
                const ridge_fit r = attn_fit(w, &a, &pooled, NULL, true);
                const value_directions t = value_directions_of(w, &a, &r, &root);
                /* A row of Wv, and a column of Wo for each head that shares it (on average). */
                const size_t size = a.din + a.dout * (a.nheads / a.nkeys);
                set_costs(w, &parts[VALUES], &t.fit, &root, &t.b, size);
            }
            key_costs(p, &a, &pooled, &root, &parts[KEYS]);
        }
        lm_attention_step(w, p->m, &a, &p->large);
        pare_arena_reset(w->arena, mark);
        const lm_ffn f = lm_read_ffn(w, p->m, b);
        unit_costs(p, &f, &parts[UNITS], 2 * b + 2);
        lm_ffn_step(w, p->m, &f, &p->large);
        pare_arena_reset(w->arena, mark);
        if (!w->st) w->st = pare_progress(w->exec, "weigh", b + 1, p->m->m->nblocks, w->err);
    }
}
