/* What every part of a model would cost, on the rows of the large model (lm_auto.c, step 2): the
 * order of eliminate.c is followed to its end, and the price of each step is kept. */
#include "lm_auto.h"

#define METRIC_RIDGE 1e-3 /* of its largest eigenvalue: it was estimated from few slopes */

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

ridge_fit ffn_fit(pare_work *w, const lm_ffn *f, const pare_mat *x, const pare_mat *missed)
{
    moments m = moments_new(w, f->w1.rows, f->dout);
    for (size_t i = 0; !w->st && i < x->rows; i += LM_CHUNK) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const pare_mat units = hidden_rows(w, f, x, i);
        if (!w->st && missed) {
            const pare_mat r = pare_mat_part(missed, i, 0, units.rows, missed->cols);
            moments_add(w, &m, &units, &r);
        } else if (!w->st) {
            moments_add(w, &m, &units, NULL);
        }
        pare_arena_reset(w->arena, mark);
    }
    return ridge_fit_of(w, &m, &f->w2, f->b2);
}

ridge_fit attn_fit(pare_work *w, const lm_attn *a, const pare_mat *pooled, const pare_mat *missed)
{
    moments m = moments_new(w, pooled->cols, a->dout);
    if (!w->st) moments_add(w, &m, pooled, missed);
    const pare_mat wo = concat_wo(w, a);
    return ridge_fit_of(w, &m, &wo, a->bo);
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

static void same_size(part_cost *c, size_t size)
{
    for (size_t i = 0; i < c->n; i++) c->size[i] = size;
}

static void weigh_values(prune_pass *p, const lm_attn *a, const pare_mat *pooled,
                         const pare_mat *root, part_cost *c)
{
    pare_work *const w = p->w;
    if (w->st || c->n == 0) return;
    const ridge_fit r = attn_fit(w, a, pooled, NULL);
    const value_directions t = value_directions_of(w, a, &r, root);
    size_t *const order = pare_work_alloc(w, c->n, sizeof *order);
    if (!w->st) elimination_order(w, order, c->cost, &t.fit, root, &t.b, c->of - c->n);
    same_size(c, value_size(a));
}

static void weigh_units(prune_pass *p, const lm_ffn *f, part_cost *c, size_t place)
{
    pare_work *const w = p->w;
    if (w->st || !f->here || c->n == 0) return;
    const ridge_fit r = ffn_fit(w, f, &p->large.x, NULL);
    const pare_mat root = metric_root_at(p, place);
    const bundles b = bundles_single(w, r.inputs);
    size_t *const order = pare_work_alloc(w, c->n, sizeof *order);
    if (!w->st) elimination_order(w, order, c->cost, &r, &root, &b, c->of - c->n);
    same_size(c, unit_size(f));
}

/* ---- queries and keys ----------------------------------------------------------------------- */

/* E |G^1/2 error|^2 of the sublayer with other queries and keys. Softmax is far from linear: so
 * this is measured, not taken from the metric. The last map stays as it is: fitted again it would
 * seem to lose less on these rows than it does on others. */
static double loss_of(prune_pass *p, const lm_attn *cut, const pare_mat *pooled,
                      const pare_mat *root)
{
    pare_work *const w = p->w;
    pare_mat gap = lm_pooled(w, p->m, cut, &p->large);
    const pare_mat wo = concat_wo(w, cut), seen = mat_mul(w, root, false, &wo, false);
    double sum = 0;
    for (size_t i = 0; !w->st && i < gap.rows * gap.cols; i++) gap.v[i] -= pooled->v[i];
    for (size_t i = 0; !w->st && i < gap.rows; i += LM_CHUNK) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const size_t left = gap.rows - i, n = left < LM_CHUNK ? left : LM_CHUNK;
        const pare_mat rows = pare_mat_part(&gap, i, 0, n, gap.cols);
        const pare_mat off = affine_rows(w, &rows, &seen, NULL);
        if (!w->st) sum += mat_fro_est(&off) * mat_fro_est(&off);
        pare_arena_reset(w->arena, mark);
    }
    return sum / (double)(gap.rows ? gap.rows : 1);
}

/* The first `gone` of the order. */
static removal first_of(pare_work *w, const key_directions *t, const size_t *order, size_t gone)
{
    bool *const out = pare_work_alloc(w, t->b.n, sizeof *out);
    for (size_t i = 0; !w->st && i < gone; i++) out[order[i]] = true;
    return removal_of(w, &t->b, out, t->fit.inputs);
}

/* Between two points the measured loss is spread as the metric says. */
static void spread(double *cost, size_t n, double loss)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += cost[i];
    for (size_t i = 0; i < n; i++) cost[i] = loss * (sum > 0 ? cost[i] / sum : 1 / (double)n);
}

/* Queries are fitted to these rows: on others they lose more than here, for p inputs and n rows
 * (n + p) / (n - p) times as much (Akaike's final prediction error). Values and units need no such
 * factor: they are held by a ridge. 0: too few rows to say, less than two for every input. */
static double on_other_rows(const prune_pass *p, const lm_attn *a)
{
    const double inputs = (double)a->din + 1, rows = (double)p->large.x.rows;
    if (!p->fit) return 1; /* keys are compared with keys alone */
    return rows > 2 * inputs ? (rows + inputs) / (rows - inputs) : 0;
}

static void weigh_keys(prune_pass *p, const lm_attn *a, const pare_mat *pooled,
                       const pare_mat *root, part_cost *c)
{
    enum { POINTS = 8 }; /* at which the loss is measured */
    pare_work *const w = p->w;
    const double more = on_other_rows(p, a);
    if (!(more > 0)) c->n = 0;
    if (w->st || c->n == 0) return;
    const key_directions t = key_directions_of(w, p->m, a, &p->large, root);
    size_t *const order = pare_work_alloc(w, c->n, sizeof *order);
    if (!w->st) elimination_order(w, order, c->cost, &t.fit, &t.root, &t.b, c->of - c->n);
    if (!w->st) key_parameters(c->size, a, &t, order, c->n);
    double before = 0;
    for (size_t k = 0, from = 0, to; !w->st && k < POINTS; k++, from = to) {
        const pare_mark mark = pare_arena_mark(w->arena);
        to = c->n * (k + 1) / POINTS;
        if (to == from) continue;
        const removal some = first_of(w, &t, order, to);
        const lm_attn cut = w->st ? *a : attn_without_keys(w, p->m, a, &t, &some);
        const double loss = w->st ? 0 : more * loss_of(p, &cut, pooled, root);
        spread(c->cost + from, to - from, loss > before ? loss - before : 0);
        before = loss > before ? loss : before;
        pare_arena_reset(w->arena, mark);
    }
    if (!w->st && c->size[0] == 0) c->n = 0; /* lists of frequencies would take what is saved */
}

static void weigh_attention(prune_pass *p, const lm_attn *a, part_cost *parts, size_t place)
{
    pare_work *const w = p->w;
    if (w->st || !a->here) return;
    const pare_mat pooled = lm_pooled(w, p->m, a, &p->large), root = metric_root_at(p, place);
    weigh_values(p, a, &pooled, &root, &parts[VALUES]);
    weigh_keys(p, a, &pooled, &root, &parts[KEYS]);
}

void lm_removal_costs(prune_pass *p)
{
    pare_work *const w = p->w;
    for (size_t b = 0; !w->st && b < p->m->m->nblocks; b++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const lm_attn a = lm_read_attn(w, p->m, b);
        weigh_attention(p, &a, &p->parts[PARTS * b], 2 * b + 1);
        lm_attention_step(w, p->m, &a, &p->large);
        pare_arena_reset(w->arena, mark);
        const lm_ffn f = lm_read_ffn(w, p->m, b);
        weigh_units(p, &f, &p->parts[PARTS * b + UNITS], 2 * b + 2);
        lm_ffn_step(w, p->m, &f, &p->large);
        pare_arena_reset(w->arena, mark);
        if (!w->st) w->st = pare_progress(w->exec, "weigh", b + 1, p->m->m->nblocks, w->err);
    }
}
